//! Objects: trees, blobs and commits, and what history says of them.

mod age;
pub mod alike;
mod beyond;
pub mod blob;
pub mod changes;
pub mod commit;
pub mod edit;
pub mod history;
pub mod lines;
pub mod named;
pub mod print;
pub mod published;
pub mod tree;

use crate::git::repo::Repo;

/// The objects of a repository: trees, blobs, commits.
#[derive(Clone, Copy, Debug)]
pub struct Objects<'r> {
    repo: &'r Repo,
}

impl<'r> Objects<'r> {
    /// Those of a repository.
    pub fn new(repo: &'r Repo) -> Self {
        Self { repo }
    }
}
