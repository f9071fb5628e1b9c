//! The timeline of a worktree: one commit behind one ref.

pub mod follow;
pub mod fsck;
pub mod oplog;
pub mod others;
pub mod prune;
pub mod steps;
pub mod stored;
pub mod update;

use crate::git::repo::Repo;

/// The records of a worktree.
#[derive(Clone, Copy, Debug)]
pub struct Timelines<'r> {
    repo: &'r Repo,
}

impl<'r> Timelines<'r> {
    /// Those of a repository's worktree.
    pub fn new(repo: &'r Repo) -> Self {
        Self { repo }
    }
}
