//! What a line of the log is made of.

use crate::model::turn::{FileChange, Turn};
use crate::ops::list::State;
use std::rc::Rc;

/// A worktree whose turns are shown.
#[derive(Debug)]
pub struct InWorktree {
    /// How notes and refs call it.
    pub id: String,
    /// Whether it is this one.
    pub here: bool,
    /// Whether it is there no more.
    pub removed: bool,
}

/// One turn of the log.
#[derive(Debug)]
pub struct Line {
    pub turn: Turn,
    pub state: State,
    pub files: Vec<FileChange>,
    pub age: String,
    /// What later turns took out of it.
    pub taken_out: Option<Taken>,
    pub place: Rc<InWorktree>,
}

impl Line {
    pub fn worktree(&self) -> &str {
        &self.place.id
    }

    /// Whether they are of the same branch of the same worktree.
    pub fn is_beside(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.place, &other.place) && self.turn.branch == other.turn.branch
    }
}

/// How much of a turn was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    Parts,
    All,
}

impl Taken {
    pub fn word(self) -> &'static str {
        match self {
            Self::Parts => "partly undone",
            Self::All => "taken out",
        }
    }
}
