//! The index. gix reads it; only git writes it, since git knows its extensions, its racy entries and
//! the filters.

pub mod hooks;
pub mod lock;
pub mod pathspec;
pub mod read;
pub mod sparse;
pub mod stage;
pub mod tree;

use crate::git::repo::Repo;

/// The index of a worktree.
#[derive(Clone, Copy, Debug)]
pub struct Index<'r> {
    repo: &'r Repo,
}

impl<'r> Index<'r> {
    /// That of a repository.
    pub fn new(repo: &'r Repo) -> Self {
        Self { repo }
    }
}
