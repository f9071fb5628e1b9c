//! The hooks of an agent as they stand in its files, and when one of them last fired.

use crate::agents::adapters::adapter;
use crate::agents::files::SettingsDirectory;
use crate::agents::setup::{FileEdit, Scope, Setup};
use crate::git::repo::Repo;
use crate::git::repo::clock::rfc3339_of;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The hooks of an agent that stand in one place.
#[derive(Debug)]
pub struct Standing {
    /// The agent.
    pub setup: &'static Setup,
    /// Where.
    pub scope: Scope,
    /// The directory of the files.
    pub place: SettingsDirectory,
    /// What `init` would make of the files.
    pub edits: Vec<FileEdit>,
}

/// The scopes in which an agent's files are different ones.
pub fn scopes(setup: &Setup) -> impl Iterator<Item = Scope> {
    let is_twice = setup.place(Scope::Project) == setup.place(Scope::Local);
    [Scope::Local, Scope::Project, Scope::User].into_iter().filter(move |scope| !is_twice || *scope != Scope::Project)
}

/// The hooks of an agent in a scope, for the worktree with this top; none where there are none.
pub fn find(top: &Path, setup: &'static Setup, scope: Scope) -> Result<Option<Standing>> {
    let place = SettingsDirectory::of(top, setup, scope)?;
    let edits = setup.install(scope, |name| place.read(name))?;
    // The mark alone may be in what the user wrote, as in a list of commands that need no question.
    let is_there = setup.remove(scope, |name| place.read(name))?.iter().any(|edit| edit.before != edit.after);
    Ok(is_there.then_some(Standing { setup, scope, place, edits }))
}

/// Whether one of an agent's programs is found.
pub fn is_installed(agent: &str) -> bool {
    adapter(agent).is_some_and(|row| row.programs.iter().any(|program| which::which(program).is_ok()))
}

/// When a hook of an agent's last fired in a worktree.
pub fn fired(repo: &Repo, agent: &str) -> Option<SystemTime> {
    repo.scratch_path("fired").join(agent).metadata().ok()?.modified().ok()
}

/// A time as it is told.
pub fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    rfc3339_of(i64::try_from(seconds).unwrap_or_default())
}

impl Standing {
    /// The file, or the first of them.
    pub fn path(&self) -> PathBuf {
        self.place.path(self.edits.first().map_or(self.setup.place(self.scope), |edit| &edit.path))
    }

    /// Whether the text is another than the one that `init` writes.
    pub fn is_outdated(&self) -> bool {
        self.edits.iter().any(|edit| edit.before != edit.after)
    }
}
