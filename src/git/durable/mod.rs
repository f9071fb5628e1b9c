//! What a power cut must not take: what oxundo relies on is on the disk before anything is replaced, moved or deleted, and
//! before a command says that something is recorded.
//!
//! To flush each object and ref would take longer than all the rest. So all that is not known to be on the disk is added to
//! one file, the log, and that is flushed (`log.rs`, `gather.rs`); then objects and refs are written as ever. After a power
//! cut, which another boot id tells of, the next command writes again what is missing (`mend.rs`). What is in the worktree
//! is flushed itself, before the journal goes (`flush.rs`). Now and then the whole file system is flushed, and the log begins
//! anew.

pub mod flush;
pub mod gather;
pub mod index;
pub mod keep;
pub mod lived;
pub mod log;
pub mod mend;
pub mod objects;
pub mod reach;
pub mod refs;
pub mod seen;

use crate::git::repo::Repo;
use gix::ObjectId;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The directory of the logs, in the scratch directory of the main worktree: a linked worktree that is removed must not
/// take its own along.
const LOGS: &str = "log";

/// Where a ref is, or is to be.
pub type RefState = (String, Option<ObjectId>);

/// Whether to wait until it is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Waits.
    Now,
    /// The system does it within a minute or so, and the next command before it changes anything.
    Soon,
}

/// What is done in a repository against the loss of power.
#[derive(Clone, Copy, Debug)]
pub struct Durable<'r> {
    repo: &'r Repo,
}

impl<'r> Durable<'r> {
    /// In a repository.
    pub fn new(repo: &'r Repo) -> Self {
        Self { repo }
    }

    /// Whether anything is done at all.
    pub fn is_on(&self) -> bool {
        self.repo.power.flushes.get()
    }

    fn logs(&self) -> PathBuf {
        self.repo.common_dir.join("oxundo").join(LOGS)
    }

    /// The log of this worktree, and this user.
    fn own_log(&self) -> PathBuf {
        let user = rustix::process::geteuid().as_raw();
        let mut name = self.repo.linked_name().unwrap_or(OsStr::new("main")).to_owned();
        name.push(format!("-{user}"));
        self.logs().join(name)
    }
}
