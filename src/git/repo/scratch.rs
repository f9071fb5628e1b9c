//! Files that oxundo keeps for itself in the git directory: whole or not at all, and nobody needs them.

use crate::git::repo::Repo;
use anyhow::{Context, Result};
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

impl Repo {
    /// Every scratch directory, of all worktrees.
    pub fn scratches(&self) -> Vec<PathBuf> {
        let linked = std::fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let all = linked.map(|entry| entry.path()).chain([self.common_dir.clone()]);
        all.map(|directory| directory.join("oxundo")).filter(|scratch| scratch.is_dir()).collect()
    }

    /// Remembers that old turns have been looked for.
    ///
    /// # Errors
    ///
    /// When that cannot be written.
    pub fn mark_collected(&self) -> Result<()> {
        let path = self.scratch()?.join("gc");
        std::fs::write(&path, "").with_context(|| format!("write {}", path.display()))
    }

    /// How long ago old turns were looked for last; `None` if never, or if the clock says that it is yet to come.
    pub fn since_collected(&self) -> Option<Duration> {
        let about = self.scratch_path("gc").metadata().ok()?;
        about.modified().ok()?.elapsed().ok()
    }
}

fn sum_of(record: &[u8]) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    hasher.write(record);
    hasher.finish().to_be_bytes()
}

/// Puts a record into the scratch directory. Without it the next scan takes a little longer.
pub fn keep(repo: &Repo, name: &str, record: &[u8]) {
    let Ok(scratch) = repo.scratch() else { return };
    let new = scratch.join(format!("{name}.new"));
    let record = [&sum_of(record), record].concat();
    let _ = std::fs::write(&new, record).and_then(|()| std::fs::rename(&new, scratch.join(name)));
}

/// What a record says; `None` when it is damaged.
pub fn intact(record: &[u8]) -> Option<&[u8]> {
    let (sum, record) = record.split_first_chunk()?;
    (*sum == sum_of(record)).then_some(record)
}

/// The number that a record begins with.
pub fn take_number(record: &mut &[u8]) -> Option<u64> {
    let (number, rest) = record.split_first_chunk()?;
    *record = rest;
    Some(u64::from_be_bytes(*number))
}

/// Removes a file; that it is gone already is no error.
///
/// # Errors
///
/// When the system refuses.
pub fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove '{}'", path.display()))
        }
        _ => Ok(()),
    }
}

/// The disk space that a file, or a directory with all below it, takes: as far as it can be seen, and is still there.
pub fn disk_usage(path: &Path) -> u64 {
    let Ok(about) = path.symlink_metadata() else { return 0 };
    let below = about.is_dir().then(|| std::fs::read_dir(path)).into_iter().flatten().flatten().flatten();
    about.blocks() * 512 + below.map(|entry| disk_usage(&entry.path())).sum::<u64>()
}

/// Removes a directory with all below it, also where directories may not be written.
///
/// # Errors
///
/// When the system refuses.
pub fn remove_tree(path: &Path) -> Result<()> {
    if std::fs::remove_dir_all(path).is_err() {
        open_up(path)?;
        std::fs::remove_dir_all(path).with_context(|| format!("remove '{}'", path.display()))?;
    }
    Ok(())
}

fn open_up(path: &Path) -> Result<()> {
    if path.symlink_metadata()?.is_dir() {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        for entry in std::fs::read_dir(path)? {
            open_up(&entry?.path())?;
        }
    }
    Ok(())
}
