//! Refs: HEAD, branches, the stash, notes, and oxundo's own.

pub mod edit;
pub mod evidence;
pub mod lists;
pub mod lockfile;
pub mod mend;
pub mod notes;
pub mod read;
mod remove;
pub mod stash;
pub mod tables;
mod torn;
mod transaction;

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::model::bytes::lossless;
use crate::model::checkpoint;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;
use gix::refs::{FullName, Target};

/// The ref that holds the notes.
pub const NOTES: &str = "refs/notes/oxundo";

/// The ref that holds the newest stash entry; its reflog is the list of them.
pub const STASH: &str = "refs/stash";

/// Where a worktree's records are.
#[derive(Clone, Copy, Debug)]
pub enum OwnRef {
    /// The timeline.
    Timeline,
    /// The journal of an apply in progress.
    Pending,
}

impl Refs<'_> {
    /// The full name of one of this worktree's own refs.
    pub fn own_ref(&self, own: OwnRef) -> String {
        let word = match own {
            OwnRef::Timeline => "timeline",
            OwnRef::Pending => "pending",
        };
        match self.repo.linked_id() {
            Some(id) => format!("refs/oxundo/worktrees/{id}/{word}"),
            None => format!("refs/oxundo/{word}"),
        }
    }
}

/// The refs of a repository, and of one of its worktrees.
#[derive(Clone, Copy, Debug)]
pub struct Refs<'r> {
    repo: &'r Repo,
}

impl<'r> Refs<'r> {
    /// Those of a repository.
    pub fn new(repo: &'r Repo) -> Self {
        Self { repo }
    }
}

/// A move of one ref.
#[derive(Clone, Debug)]
pub struct Edit {
    pub name: FullName,
    /// Where it must be.
    pub from: Option<Target>,
    /// Where it goes. Where it stays, only its reflog is written.
    pub to: Option<Target>,
    /// What the reflog says that it was, and is.
    pub logged: Option<(Option<ObjectId>, ObjectId)>,
    /// Has a reflog even where git would make none.
    pub always_logged: bool,
}

fn moved_meanwhile(name: &str) -> anyhow::Error {
    let name = checkpoint::short_branch(name);
    Refusal::new(Code::Branch, format!("'{name}' was moved by something else meanwhile"))
        .hint("run the same command again")
        .into()
}

pub fn full_name(name: &str) -> Result<FullName> {
    FullName::try_from(BString::from(lossless::decode(name)))
        .map_err(|error| anyhow::anyhow!("'{name}' is no ref: {error}"))
}
