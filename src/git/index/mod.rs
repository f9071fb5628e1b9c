//! The index. gix reads it; git writes it, since git knows its extensions, its flags and the filters. Only where
//! there are none of these oxundo writes it itself.

pub mod begun;
mod checksum;
pub mod convert;
pub mod hooks;
pub mod lock;
pub mod pathspec;
pub mod read;
pub mod sparse;
pub mod stage;
pub mod tree;
mod write;

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
