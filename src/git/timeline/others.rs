//! The timelines of the repository's other worktrees. They stay when a worktree is removed.

use crate::git::refs::Refs;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::model::bytes::lossless;
use crate::model::checkpoint::shown_name;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The timeline of another worktree.
pub struct Other<'r> {
    /// The full name of its ref.
    pub name: String,
    /// How notes and refs call the worktree.
    pub worktree: String,
    /// Whether the worktree has been removed.
    pub removed: bool,
    /// The timeline, or why it cannot be read.
    pub stored: Result<Stored<'r>>,
}

impl<'r> Timelines<'r> {
    /// The timelines of all worktrees but this one, by their refs' names.
    pub fn other_timelines(&self) -> Result<Vec<Other<'r>>> {
        let own = Refs::new(self.repo).own_ref(crate::git::refs::OwnRef::Timeline);
        let mut others = Vec::new();
        for (name, commit) in self.repo.refs_below("refs/oxundo/")? {
            let name = lossless::encode(name.as_bstr());
            let worktree =
                match name.strip_prefix("refs/oxundo/worktrees/").and_then(|rest| rest.strip_suffix("/timeline")) {
                    Some(id) => id.to_owned(),
                    None if name == "refs/oxundo/timeline" => "main".to_owned(),
                    None => continue,
                };
            if name == own {
                continue;
            }
            let place = self.repo.common_dir.join("worktrees").join(OsStr::from_bytes(&lossless::decode(&worktree)));
            let removed = name.contains("/worktrees/") && !place.exists();
            let stored = commit.context("it is a symbolic ref").and_then(|commit| self.timeline_at(commit));
            others.push(Other { name, worktree, removed, stored });
        }
        Ok(others)
    }

    /// The timeline of the worktree that people call so.
    pub fn other_timeline(&self, worktree: &str) -> Result<Option<Other<'r>>> {
        Ok(self.other_timelines()?.into_iter().find(|other| shown_name(&other.worktree) == worktree))
    }
}
