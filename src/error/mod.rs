//! What oxundo will not do and why: a code that tools can rely on, a message,
//! and the next command to type.

pub mod failure;

use crate::model::bytes::{quoted, with_quoted_lines};
use gix::bstr::{BString, ByteSlice};
use serde::{Serialize, Serializer};
use std::fmt;

/// What kind of refusal or error this is. The words are part of the JSON contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// A commit that would leave its branch has been published.
    Published,
    /// A commit that would leave its branch is a merge.
    Merge,
    /// A commit that would leave its branch was not recorded by a turn.
    Foreign,
    /// HEAD is not on the turn's branch, or the branch cannot be moved.
    Branch,
    /// A merge, a rebase or the like is in progress.
    InProgress,
    /// Another turn, undo or redo is running in this worktree.
    Busy,
    /// The command is the user's to give, and an agent at work gave it.
    Agent,
    /// A plan would not do any more what it was to do when it was made.
    Stale,
    /// A command of the user's own, which was asked before, refused.
    Vetoed,
    /// The user's later changes overlap what would be restored.
    Conflict,
    /// There is nothing to undo or redo.
    Nothing,
    /// No such turn, path or repository.
    NotFound,
    /// The command line is wrong.
    Usage,
    /// No name and e-mail address for commits is configured.
    NoIdentity,
    /// git's index is locked.
    Locked,
    /// oxundo's own records cannot be read.
    Corrupt,
    /// Reading or writing failed.
    Io,
    /// Ctrl-C, or another signal that ends a program.
    Interrupted,
}

impl Code {
    /// The process's exit code.
    pub fn exit(self) -> u8 {
        match self {
            Self::Published
            | Self::Merge
            | Self::Foreign
            | Self::Branch
            | Self::InProgress
            | Self::Busy
            | Self::Agent
            | Self::Stale
            | Self::Vetoed
            | Self::Conflict
            | Self::Locked => 3,
            Self::Nothing => 4,
            Self::Usage => 2,
            Self::Interrupted => 130,
            Self::NotFound | Self::NoIdentity | Self::Corrupt | Self::Io => 1,
        }
    }
}

/// An operation that oxundo will not or cannot do, with nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// What kind.
    pub code: Code,
    /// What is in the way, in one line.
    pub message: String,
    /// What to do next, one command or sentence each.
    pub hints: Vec<String>,
    /// The commits in the way.
    pub commits: Vec<String>,
    /// The paths in the way; quoted as git does where they are told.
    #[serde(serialize_with = "all_quoted")]
    pub paths: Vec<BString>,
    /// Where there is nothing to undo: the hooks that should have told of turns.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub hooks: Box<[SilentHooks]>,
}

/// An agent's hooks that are set up, and when one of them last fired.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SilentHooks {
    /// The agent.
    pub agent: String,
    /// Whether its program is found.
    pub installed: bool,
    /// Since when they are set up as they are.
    pub set_up: String,
    /// When one of them last fired here.
    pub last_fired: Option<String>,
}

/// What the system says of an error has a number behind it in Rust's words, which tells nobody anything.
pub fn without_number(mut text: String) -> String {
    while let Some(at) = text.find(" (os error ")
        && let Some(end) = text[at..].find(')')
    {
        text.replace_range(at..=at + end, "");
    }
    text
}

impl Refusal {
    /// A refusal without hints.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: without_number(message.into()),
            hints: Vec::new(),
            commits: Vec::new(),
            paths: Vec::new(),
            hooks: Box::default(),
        }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(with_quoted_lines(hint));
        self
    }

    /// Adds what to do next, where there is something.
    #[must_use]
    pub fn hints(mut self, hints: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.hints.extend(hints.into_iter().map(with_quoted_lines));
        self
    }

    /// Names the commits in the way.
    #[must_use]
    pub fn commits<T: ToString>(mut self, commits: impl IntoIterator<Item = T>) -> Self {
        self.commits = commits.into_iter().map(|commit| commit.to_string()).collect();
        self
    }

    /// Names the paths in the way.
    #[must_use]
    pub fn paths(mut self, paths: impl IntoIterator<Item = BString>) -> Self {
        self.paths = paths.into_iter().collect();
        self
    }
}

fn all_quoted<S: Serializer>(paths: &[BString], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| quoted(path.as_bstr())))
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
