//! Checkpoints: taking them, keeping them as trees, comparing them.

pub mod after;
pub mod capture;
pub mod captured;
pub mod codec;
pub mod content;
pub mod delta;
pub mod exposed;
pub mod formatted;
pub mod glance;
pub mod merge;
pub mod movers;
pub mod opened;
pub mod present;
pub mod stats;
pub mod uncaptured;
pub mod with;

use crate::git::repo::Repo;

/// Taking checkpoints, keeping and comparing them.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoints<'r> {
    repo: &'r Repo,
}

impl<'r> Checkpoints<'r> {
    /// Those of a repository.
    pub fn new(repo: &'r Repo) -> Self {
        Self { repo }
    }
}
