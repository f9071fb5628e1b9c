//! The turns of a timeline, and where each of them stands.

use crate::git::timeline::stored::Stored;
use crate::model::turn::Turn;
use anyhow::Result;
use std::collections::BTreeSet;

/// Where a turn stands on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Done: undo takes it back.
    Done,
    /// Undone: redo brings it back.
    Undone,
    /// In progress.
    Open,
    /// Neither: it was undone and another took its place, or it has gone from the stack.
    Expired,
}

impl State {
    /// Its word, in text and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Undone => "undone",
            Self::Open => "open",
            Self::Expired => "expired",
        }
    }
}

pub fn on_branch(timeline: &Stored<'_>, name: &str, most: usize) -> Result<Vec<(Turn, State)>> {
    let stack = timeline.state.stack(name);
    let mut turns = Vec::new();
    if let Some(open) = timeline.state.open {
        turns.push((timeline.require_turn(open)?, State::Open));
    }
    for number in stack.undone.iter().rev() {
        turns.push((timeline.require_turn(*number)?, State::Undone));
    }
    turns.truncate(most);
    let mut at = stack.top;
    while let Some(number) = at
        && turns.len() < most
    {
        let turn = timeline.require_turn(number)?;
        at = turn.previous;
        turns.push((turn, State::Done));
    }
    Ok(turns)
}

pub fn every(timeline: &Stored<'_>, most: usize) -> Result<Vec<(Turn, State)>> {
    let mut done = BTreeSet::new();
    for stack in timeline.state.stacks.values() {
        let mut at = stack.top;
        while let Some(number) = at
            && done.insert(number)
        {
            at = timeline.require_turn(number)?.previous;
        }
    }
    let mut turns = Vec::new();
    for number in timeline.turn_numbers()?.into_iter().rev() {
        if turns.len() == most {
            break;
        }
        let Some(turn) = timeline.find_turn(number)? else { continue };
        let state = if timeline.state.open == Some(number) {
            State::Open
        } else if done.contains(&number) {
            State::Done
        } else if timeline.state.is_undone(number) {
            State::Undone
        } else {
            State::Expired
        };
        turns.push((turn, state));
    }
    Ok(turns)
}
