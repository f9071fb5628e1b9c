//! The files in which agents' hooks are set up: read and written as a whole or not at all,
//! and never outside the place that was meant.

use crate::agents::setup::{FileEdit, Home, Scope, Setup};
use crate::error::{Code, Refusal};
use crate::git::repo::scratch::{permit, replace_synced_if};
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A file that somebody else has changed since it was read.
#[derive(Clone, Copy, Debug)]
pub struct Changed;

impl std::error::Error for Changed {}

impl std::fmt::Display for Changed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("it was changed meanwhile")
    }
}

/// The directory that a scope's paths are below.
#[derive(Clone, Debug)]
pub struct SettingsDirectory {
    directory: PathBuf,
    /// Whether files outside must not be touched, even where a link leads there.
    closed: bool,
}

impl SettingsDirectory {
    /// Where an agent's files of this scope are, for the worktree with this top.
    pub fn of(top: &Path, setup: &Setup, scope: Scope) -> Result<Self> {
        Self::below(top, setup.user(), scope)
    }

    /// The same, where the user's own are below this place.
    pub fn below(top: &Path, user: Home, scope: Scope) -> Result<Self> {
        if scope != Scope::User {
            return Ok(Self { directory: top.to_owned(), closed: true });
        }
        let set = user.variable.and_then(std::env::var_os).filter(|value| !value.is_empty());
        let directory = match set {
            Some(directory) => PathBuf::from(directory),
            None => home()?.join(user.directory),
        };
        Ok(Self { directory, closed: false })
    }

    /// The path of a file, for people and for the file system.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The text of a file; none where there is no file.
    pub fn read(&self, name: &str) -> Result<Option<String>> {
        let path = self.resolved(name)?;
        // To open a FIFO would wait for whoever writes into it.
        if path.metadata().is_ok_and(|about| !about.is_file()) {
            bail!("it is no file");
        }
        match std::fs::read(&path) {
            Ok(bytes) => String::from_utf8(bytes).map(Some).map_err(|_| anyhow::anyhow!("it is not UTF-8")),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("read '{}'", path.display())),
        }
    }

    /// Whether there is nothing to change.
    pub fn is_done(&self, change: &FileEdit) -> bool {
        change.before == change.after && !self.lacks_permission(change)
    }

    /// Whether a program is there that nobody may execute.
    pub fn lacks_permission(&self, change: &FileEdit) -> bool {
        let about = self.resolved(&change.path).and_then(|path| Ok(path.metadata()?));
        change.executable && about.is_ok_and(|about| about.permissions().mode() & 0o111 == 0)
    }

    /// Makes a change, as a whole or not at all. A file that has changed since the edit was planned is left alone.
    pub fn apply(&self, change: &FileEdit) -> Result<()> {
        if self.read(&change.path)? != change.before {
            bail!(Changed);
        }
        let path = self.resolved(&change.path)?;
        let directory = path.parent().context("it has no directory")?;
        let Some(text) = &change.after else {
            std::fs::remove_file(&path).with_context(|| format!("remove '{}'", path.display()))?;
            self.remove_empty(directory);
            return Ok(());
        };
        std::fs::create_dir_all(directory).with_context(|| format!("make '{}'", directory.display()))?;
        let usual = if change.executable { 0o755 } else { 0o644 };
        let mode = path.metadata().map_or(usual, |about| about.permissions().mode() & 0o7777);
        // Whoever may read a program may execute it.
        let mode = if change.executable && mode & 0o111 == 0 { mode | (mode & 0o444) >> 2 } else { mode };
        // To write takes its time, in which the agent may save its settings.
        let check = || if self.is_as(change) { Ok(()) } else { Err(std::io::Error::other(Changed)) };
        replace_synced_if(&path, text.as_bytes(), permit(mode), check).map_err(|error| match error.get_ref() {
            Some(inner) if inner.is::<Changed>() => Changed.into(),
            _ => anyhow::Error::new(error).context(format!("write '{}'", path.display())),
        })
    }

    /// Whether a file is as it was when the edit was planned.
    fn is_as(&self, change: &FileEdit) -> bool {
        self.read(&change.path).is_ok_and(|text| text == change.before)
    }

    /// Directories that were made for a file go with it.
    fn remove_empty(&self, directory: &Path) {
        let Ok(top) = std::fs::canonicalize(&self.directory) else { return };
        let mut at = directory;
        while at != top && at.starts_with(&top) && std::fs::remove_dir(at).is_ok() {
            let Some(parent) = at.parent() else { return };
            at = parent;
        }
    }

    /// The path with every link followed, as far as it exists.
    fn resolved(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        let mut missing = Vec::new();
        let mut at = path.as_path();
        let found = loop {
            if at.symlink_metadata().is_ok() {
                break std::fs::canonicalize(at).with_context(|| format!("follow '{}'", at.display()))?;
            }
            let (Some(parent), Some(name)) = (at.parent(), at.file_name()) else { break PathBuf::from("/") };
            missing.push(name);
            at = parent;
        };
        let top = std::fs::canonicalize(&self.directory).unwrap_or_else(|_| self.directory.clone());
        if self.closed && !found.starts_with(&top) {
            bail!("it leads out of the worktree, to {}", found.display());
        }
        Ok(missing.into_iter().rev().fold(found, |path, name| path.join(name)))
    }
}

fn home() -> Result<PathBuf> {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    home.ok_or_else(|| {
        Refusal::new(Code::NotFound, "there is no home directory").hint("set HOME, or leave --user out").into()
    })
}
