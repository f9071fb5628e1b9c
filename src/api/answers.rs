//! What calls give, apart from turns and plans: why not, how things stand, what differs.

use crate::api::plain::{Id, RelativePath};
use crate::api::turns::{FileChange, Mode, Turn};
use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::ops::gc;
use crate::warning::Warning;
use gix::ObjectId;
use std::fmt;

/// What a caller gets, or why it does not.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not done: it was refused, or reading or writing failed. Nothing is changed then.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Error {
    /// What kind; [`Code::Io`] and [`Code::Corrupt`] are failures, all others refusals.
    pub code: Code,
    /// What is in the way, in one line without a full stop.
    pub message: String,
    /// What the user can do next, one command or sentence each.
    pub hints: Vec<String>,
    /// The commits in the way.
    pub commits: Box<[Id]>,
    /// The paths in the way.
    pub paths: Box<[RelativePath]>,
    /// What the user should hear of that happened before.
    pub warnings: Vec<Warning>,
}

impl Error {
    pub(crate) fn of(error: &anyhow::Error, warnings: Vec<Warning>) -> Self {
        Self { warnings, ..Self::from_refusal(to_refusal(error)) }
    }

    pub(crate) fn from_refusal(refusal: Refusal) -> Self {
        // Hooks are the command line's to speak of.
        let Refusal { code, message, hints, commits, paths, hooks: _ } = refusal;
        let commits = commits.iter().filter_map(|commit| ObjectId::from_hex(commit.as_bytes()).ok());
        let (commits, paths) = (commits.map(Id::of).collect(), paths.into_iter().map(RelativePath::of).collect());
        Self { code, message, hints, commits, paths, warnings: Vec::new() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// How the timeline stands, for buttons: what can be undone and redone, and what is open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The branch that HEAD is on, as git shows it; none where HEAD is detached.
    pub branch: Option<String>,
    /// Whether turns are recorded: `oxundo.enabled`.
    pub enabled: bool,
    /// How the next turn will be kept.
    pub mode: Mode,
    /// The last turn done on this branch.
    pub last: Option<Turn>,
    /// The turn in progress.
    pub open: Option<Turn>,
    /// How many turns undo could take back.
    pub undo_depth: u64,
    /// How many turns redo could bring back.
    pub redo_depth: u64,
    /// Why undo of one turn would be refused now, where there is a turn to undo.
    pub undo_refusal: Option<Error>,
    /// Why redo of one turn would be refused now, where there is a turn to redo.
    pub redo_refusal: Option<Error>,
    /// What exists and is not covered by undo.
    pub not_covered: Vec<RelativePath>,
    /// What the user should hear of.
    pub warnings: Vec<Warning>,
}

impl Status {
    /// Whether undo of one turn would be done now.
    pub fn can_undo(&self) -> bool {
        self.undo_depth > 0 && self.undo_refusal.is_none()
    }

    /// Whether redo of one turn would be done now.
    pub fn can_redo(&self) -> bool {
        self.redo_depth > 0 && self.redo_refusal.is_none()
    }
}

/// The files that differ between two states.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Changes {
    /// The files, by path.
    pub files: Vec<FileChange>,
    /// What the user should hear of.
    pub warnings: Vec<Warning>,
}

/// How a file differs between two states.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Patch {
    /// A unified diff with git's headers, in the file's own encoding; nothing where it is the same in both.
    pub text: Vec<u8>,
    /// What the user should hear of.
    pub warnings: Vec<Warning>,
}

/// A state that was given a name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The name.
    pub name: String,
    /// What the user should hear of.
    pub warnings: Vec<Warning>,
}

/// What was let go, or would be, and what stays.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Collected {
    /// The numbers of the turns that went, oldest first.
    pub expired: Vec<u64>,
    /// How many turns stay.
    pub kept: usize,
    /// How many rescue checkpoints went.
    pub rescues: usize,
    /// The bytes freed of what was moved aside.
    pub freed: u64,
    /// The bytes that what is moved aside still takes.
    pub aside: u64,
    /// The bytes of objects that nothing of oxundo's holds any more: git frees them.
    pub released: u64,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// What the user should hear of.
    pub warnings: Vec<Warning>,
}

impl Collected {
    pub(crate) fn of(collected: gc::Collected, warnings: Vec<Warning>) -> Self {
        let gc::Collected { expired, kept, rescues, freed, aside, released, dry_run, .. } = collected;
        Self { expired, kept, rescues, freed, aside, released, dry_run, warnings }
    }
}
