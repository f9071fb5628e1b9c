//! Carrying a plan out, all of it or nothing.
//!
//! ```text
//! objects ─▶ journal ─▶ files ─▶ operation ─▶ index ─▶ branches, HEAD ─▶ stash ─▶ notes ─▶ timeline ─▶ journal gone
//!         └ the log is flushed            └ the commit point                           └ files are flushed
//! ```
//!
//! The journal is a ref, `refs/oxundo/pending`: a commit that holds the plan and
//! keeps every object of it alive. A command that finds one finishes the plan if the
//! commit point was passed, and rolls it back if not. Either way it applies the plan,
//! or its inverse, leniently: what is already as wanted is left alone, and so is what
//! the user changed meanwhile, which is named.
//!
//! A file that is replaced or deleted is out of everybody's reach before it is looked at for the last time (`outs.rs`):
//! what another program saves in the same instant goes back, or is kept. What came out stays for a while (`replaced.rs`).

pub mod aside;
pub mod carry_out;
pub mod files;
pub mod foresee;
pub mod index;
pub mod journal;
pub mod names;
pub mod operation;
pub mod outs;
pub mod recover;
pub mod refusals;
pub mod replaced;
pub mod standing;

use crate::git::apply::refusals::interrupted;
use crate::git::repo::Repo;
use crate::warning::{Warn, Warning};
use anyhow::Result;
use std::time::Duration;

/// Carrying plans out.
#[derive(Clone, Copy)]
pub struct Apply<'r> {
    repo: &'r Repo,
    /// How long to wait for a lock on the index.
    wait: Duration,
    heard: Warn<'r>,
}

impl<'r> Apply<'r> {
    /// For this repository; `wait` is how long to wait while git has its index locked.
    pub fn new(repo: &'r Repo, wait: Duration, heard: Warn<'r>) -> Self {
        Self { repo, wait, heard }
    }

    /// Refuses to go on when it has been asked to stop.
    fn check_stop(&self) -> Result<()> {
        if self.repo.is_asked_to_stop() { Err(interrupted()) } else { Ok(()) }
    }

    /// Says where a file is kept that another program saved meanwhile, or may still save.
    fn tell_of(&self, kept: &[String]) {
        for kept in kept {
            (self.heard)(Warning::vital(kept));
        }
    }
}
