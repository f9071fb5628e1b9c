//! What programs ask for, by whichever protocol, read as what the command line would give.

use crate::model::merge::Edits;
use crate::ops::request::Request;
use crate::ops::undo::range::Extent;
use crate::program::args::LogArgs;
use serde::Deserialize;
use std::ffi::OsString;

/// So many turns or files are listed where nobody says, and at most.
const LISTED: (usize, usize) = (20, 500);

/// Turns, as `log` lists them.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct List {
    n: Option<usize>,
    all: bool,
    agent: Option<String>,
    session: Option<String>,
    grep: Option<String>,
    paths: Vec<String>,
}

/// What is to be undone.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Undo {
    turns: Option<u64>,
    to: Option<String>,
    only: Option<String>,
    revert: bool,
    paths: Option<Vec<String>>,
    edits: Option<Kept>,
}

/// What is to be redone.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Redo {
    turns: Option<u64>,
    to: Option<String>,
    edits: Option<Kept>,
}

/// What may become of the user's edits: a program does not overwrite them.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kept {
    Merge,
    Refuse,
}

/// Pathspecs as the command line has them.
pub fn words(paths: Option<Vec<String>>) -> Option<Vec<OsString>> {
    Some(paths?.into_iter().map(OsString::from).collect())
}

/// How many are listed.
pub fn most(number: Option<usize>) -> usize {
    let (usual, most) = LISTED;
    number.unwrap_or(usual).clamp(1, most)
}

impl List {
    /// As the command line has it.
    pub fn args(self) -> LogArgs {
        let pathspecs = words(Some(self.paths)).unwrap_or_default();
        let Self { n, all, agent, session, grep, .. } = Self { paths: Vec::new(), ..self };
        let (graph, steps, ops, since, until) = (false, false, false, None, None);
        let (format, date, follow) = (None, None, false);
        LogArgs {
            number: Some(most(n)),
            all,
            worktree: None,
            graph,
            steps,
            ops,
            format,
            date,
            follow,
            agent,
            session,
            since,
            until,
            grep,
            pathspecs,
        }
    }
}

impl Undo {
    /// As it is planned.
    pub fn request(self) -> Request {
        let request = Request { only: self.only, revert: self.revert, ..Request::default() };
        request
            .over(&extent(self.turns, self.to))
            .paths(words(self.paths).as_deref())
            .edits(self.edits.map(Kept::model))
    }
}

impl Redo {
    /// As it is planned.
    pub fn request(self) -> Request {
        Request::redo().over(&extent(self.turns, self.to)).edits(self.edits.map(Kept::model))
    }
}

impl Kept {
    fn model(self) -> Edits {
        match self {
            Self::Merge => Edits::Merge,
            Self::Refuse => Edits::Refuse,
        }
    }
}

fn extent(turns: Option<u64>, to: Option<String>) -> Extent {
    to.map_or(Extent::Steps(turns.unwrap_or(1)), Extent::To)
}
