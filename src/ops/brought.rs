//! What a turn only brought, as by a merge, and has not made: it stays where the turn is taken back.

use crate::git::objects::Objects;
use crate::model::bytes::in_quotes;
use crate::model::turn::Turn;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};

/// So many files are named in a warning.
const NAMED: usize = 5;

/// What a turn only brought.
#[derive(Default)]
pub struct Brought {
    /// Its last commits.
    pub commits: Vec<ObjectId>,
    /// The files of which cannot be told what the turn did to them.
    pub unclear: Vec<BString>,
    /// The commit by which somebody else has brought it to its end.
    pub by: Option<ObjectId>,
}

impl Brought {
    /// Whether nothing stays.
    pub fn is_nothing(&self) -> bool {
        self.commits.is_empty() && self.unclear.is_empty()
    }

    /// With something else that it brought.
    pub fn add(&mut self, other: Self) {
        self.commits.extend(other.commits);
        self.unclear.extend(other.unclear);
        self.by = self.by.or(other.by);
    }

    /// What is said of it.
    pub fn told(&self, view: &View<'_>, turn: &Turn) -> Result<Vec<String>> {
        let mut told = Vec::new();
        for id in &self.commits {
            let (id, subject) = (id.to_hex_with_len(7), Objects::new(view.repo).commit_subject(*id)?);
            told.push(format!("commit {id} ({subject}) stays: turn {} brought it, and has not made it", turn.turn));
        }
        told.extend(self.told_of_unclear(turn));
        Ok(told)
    }

    /// What is said of files of which cannot be told what the turn did to them.
    pub fn told_of_unclear(&self, turn: &Turn) -> Option<String> {
        let mut paths: Vec<String> = self.unclear.iter().take(NAMED).map(|path| in_quotes(path.as_bstr())).collect();
        if let more @ 1.. = self.unclear.len().saturating_sub(NAMED) {
            paths.push(format!("{more} more"));
        }
        let (turn, paths) = (turn.turn, paths.join(", "));
        let told = || format!("what turn {turn} did to {paths} stays: it has merged it with what others did");
        (!self.unclear.is_empty()).then(told)
    }
}
