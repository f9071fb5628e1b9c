//! Undo and redo for any coding agent, on git.
//!
//! A **turn** is one piece of an agent's work. Around it oxundo takes two
//! **checkpoints**: HEAD, branches, index, and every tracked and untracked file,
//! as they were at one instant. The turns of a worktree are its **timeline**,
//! with a cursor on each branch: the turns below it are done, those above it are
//! undone. Undo and redo move the cursor and apply the difference. Four things
//! always hold:
//!
//! 1. *Exact*: if nothing else changed, undo brings back the very state before the
//!    turn, and redo the very state after it.
//! 2. *Nothing is lost*: before anything is touched, the present is kept as a rescue
//!    checkpoint; only what the turn is proven to have made is ever deleted.
//! 3. *All or nothing*: every check comes before the first write, and what is
//!    interrupted is finished or rolled back by the next command.
//! 4. *The user's edits are the user's*: what no turn changed is never touched.
//!
//! A front end, in an editor or an agent, opens a [`Worktree`]: it begins and ends turns, lists them, says what can be
//! undone, and shows a [`Preview`] of what undo, redo or restore would change before that is applied. What is refused
//! comes as an [`Error`] with a [`Code`], a message and what to do next; what the user should hear though nothing failed
//! comes as a [`Warning`]. The values are plain: ids, paths in bytes, and no type of another crate. All else here is the
//! program's own and changes as it likes; with the feature `cli`, which is on by default, `run` is the program.
//!
//! `model` decides, purely; `git` reads and acts; `ops` is what oxundo does, without a terminal;
//! `program` is the command line, a file a subcommand.

// The default build sees all dead code; without the program, what only that uses is no news.
#![cfg_attr(not(all(feature = "acp", feature = "cli", feature = "mcp")), allow(dead_code))]

mod agents;
#[warn(clippy::missing_errors_doc)]
mod api;
mod config;
mod error;
mod git;
mod model;
mod ops;
#[cfg(feature = "cli")]
mod program;
mod progress;
mod warning;

pub use api::Worktree;
pub use api::answers::{Changes, Checkpoint, Collected, Error, Patch, Result, Status};
pub use api::plain::{Change, Id, RelativePath};
pub use api::plan::{Action, BranchMove, DirectoryMove, Edits, FileMove, FileState, Head, Kind, Plan};
pub use api::plan::{Applied, Operation, Outcome, Preview, Redo, Restore, Undo};
pub use api::turns::{
    Began, CommitKind, Ended, FileChange, Made, Mode, Participant, Turn, TurnCommit, TurnInfo, Turns,
};
pub use error::Code;
pub use ops::list::State;
pub use progress::{Phase, Progress};
pub use warning::Warning;

#[cfg(feature = "cli")]
pub use program::dispatch::run;

/// What the tests, benches and fuzz targets of this package look at. No promise is made about it.
#[cfg(feature = "internals")]
pub mod internals {
    pub use crate::agents::adapters::{ADAPTERS, adapter};
    pub use crate::agents::payload::{HookEvent, parse as parse_hook};
    pub use crate::config::Config;
    pub use crate::config::keys::{KEYS, variable};
    pub use crate::git::checkpoint::Checkpoints;
    pub use crate::git::repo::Repo;
    pub use crate::git::repo::clock::ago;
    pub use crate::git::repo::settings::config_parameters;
    pub use crate::git::scan::ignore::rules_of;
    pub use crate::git::timeline::stored::Side;
    pub use crate::model::bytes::{exact, quoted, sanitized, shown};
    pub use crate::model::checkpoint::{FileState, IndexEntry, Skipped, StashEntry, UsualModes};
    pub use crate::model::plan::{Op, Plan};
    pub use crate::model::session::Signal;
    pub use crate::model::timeline::{Timeline, TurnSpec};
    pub use crate::model::turn::{FileChange, Note, Turn};
    pub use crate::ops::status::status;
    pub use crate::ops::undo::plan as plan_undo;
    pub use crate::ops::undo::range::Extent;
    pub use crate::ops::view::View;
    #[cfg(feature = "cli")]
    pub use crate::program::args::Cli;
    #[cfg(feature = "cli")]
    pub use crate::program::cmd::man::PAGES;
}
