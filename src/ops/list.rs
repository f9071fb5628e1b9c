//! The turns of a timeline, and where each of them stands.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::checkpoint::{Change, Delta, Head};
use crate::model::place::{Place, Stack};
use crate::model::turn::Turn;
use crate::ops::called::branch_now;
use crate::ops::dropped::{dropped, picked};
use crate::ops::place;
use crate::ops::turn::commit::uncommitted;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Where a turn stands on the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Done: undo takes it back.
    Done,
    /// Undone: redo brings it back.
    Undone,
    /// Undone by the user, with git: redo brings it back.
    UndoneByHand,
    /// In progress.
    Open,
    /// Neither: others were made instead of it, and `redo --to` leads back to it; or the user dropped it below others, with
    /// an interactive rebase.
    Left,
}

impl State {
    /// Its word, in text and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Undone | Self::UndoneByHand => "undone",
            Self::Open => "open",
            Self::Left => "left",
        }
    }
}

/// The turns of the line on which HEAD stands, the newest first.
pub fn here(view: &View<'_>, most: usize) -> Result<Vec<(Turn, State)>> {
    let mut turns = along(&view.timeline, view.place()?, most)?;
    let lowest = turns.last().map_or(0, |(turn, _)| turn.turn);
    let dropped = dropped(view, lowest)?;
    for (turn, state) in &mut turns {
        if *state == State::Done && dropped.contains(&turn.turn) {
            *state = State::Left;
        }
    }
    Ok(turns)
}

/// The turns of the line of this place, the newest first.
pub fn along(timeline: &Stored<'_>, place: &Place, most: usize) -> Result<Vec<(Turn, State)>> {
    let mut turns = Vec::new();
    if let Some(open) = timeline.state.open {
        turns.push((timeline.require_turn(open)?, State::Open));
    }
    for number in place.undone.iter().rev() {
        let state = if place.by_hand.contains(number) { State::UndoneByHand } else { State::Undone };
        turns.push((timeline.require_turn(*number)?, state));
    }
    turns.truncate(most);
    let mut at = place.top;
    while let Some(number) = at
        && turns.len() < most
    {
        let turn = timeline.require_turn(number)?;
        at = turn.previous;
        turns.push((turn, State::Done));
    }
    Ok(turns)
}

/// What is in no commit and not as the last turn left it, and that turn; nothing while a turn is open: it may be its.
pub fn uncommitted_since(view: &View<'_>) -> Result<Option<(u64, Vec<BString>)>> {
    let Some(top) = view.top()?.filter(|_| view.timeline.state.open.is_none()) else { return Ok(None) };
    let (checkpoints, present) = (Checkpoints::new(view.repo), view.present()?);
    let left = view.timeline.checkpoint(top, Side::After)?;
    let mut changed: Vec<BString> = checkpoints.file_changes(&left, &present.checkpoint)?.into_keys().collect();
    if !changed.is_empty() {
        let mut open = uncommitted(view, &present)?;
        open.extend(checkpoints.untracked_files(&present)?);
        changed.retain(|path| open.contains(path));
    }
    Ok((!changed.is_empty()).then_some((top, changed)))
}

/// What a turn changed.
pub fn delta_of(timeline: &Stored<'_>, turn: &Turn) -> Result<Delta> {
    let [before, after] = [Side::Before, Side::After].map(|side| timeline.checkpoint(turn.turn, side));
    Checkpoints::new(timeline.repo).delta(turn, &before?, &after?)
}

/// What a turn changed besides files, in two words.
pub fn only(turn: &Turn, delta: &Delta) -> Option<&'static str> {
    let moves = |change: &Change<Option<ObjectId>>| change.from.is_some() && change.to.is_some();
    let has_commits = !turn.commits.is_empty() || delta.branches.values().any(moves);
    if !delta.aside.is_empty() {
        None
    } else if delta.stash.is_some() {
        Some("stash only")
    } else if has_commits {
        Some("commits only")
    } else if !delta.branches.is_empty() || !delta.symbolic.is_empty() {
        Some("branches only")
    } else if delta.head.is_some() {
        Some("HEAD only")
    } else if !delta.index.is_empty() {
        Some("staging only")
    } else if !delta.directories.is_empty() {
        Some("directories only")
    } else {
        None
    }
}

/// The last of a branch's turns that it has, down to one: it may have been put back, by a walk that led on to another branch or with
/// git.
fn last_on(timeline: &Stored<'_>, top: Option<u64>, tip: Option<ObjectId>, lowest: u64) -> Result<Option<u64>> {
    let (objects, mut at) = (Objects::new(timeline.repo), top);
    while let (Some(number), Some(tip)) = (at.filter(|number| *number >= lowest), tip) {
        let node = timeline.node(number)?;
        let end = node.to.filter(|to| *to != tip && objects.has_commit(*to));
        if !end.is_some_and(|to| objects.is_ancestor(tip, to).unwrap_or(false)) {
            break;
        }
        at = node.previous;
    }
    Ok(at)
}

/// The name that the branch of a stack has now.
fn renamed(view: &View<'_>, stack: &Stack) -> Result<Option<String>> {
    let top = stack.top.map(|top| view.timeline.require_turn(top)).transpose()?;
    top.map_or(Ok(None), |top| branch_now(view, &top))
}

/// Where the turns of a timeline stand, from one number on: those below some places are done, those above them undone. What the
/// place says that HEAD is at goes before what is so on other branches.
#[derive(Default)]
struct States {
    lowest: u64,
    known: BTreeMap<u64, State>,
}

impl States {
    fn of(timeline: &Stored<'_>, view: Option<&View<'_>>, lowest: u64) -> Result<Self> {
        // Whether what is undone on a branch was left is known by the turn below it.
        let below = timeline.state.stacks.values().filter(|stack| stack.undone.iter().any(|undone| *undone >= lowest));
        let lowest = below.filter_map(|stack| stack.top).fold(lowest, u64::min);
        let mut states = Self { lowest, ..Self::default() };
        if let Some(view) = view {
            states.add(timeline, view.place()?)?;
            states.leave(dropped(view, lowest)?);
        }
        let is_here_done = |states: &Self, top| states.known.get(&top) == Some(&State::Done);
        let is_any_done = states.known.values().any(|state| *state == State::Done);
        let branches = Refs::new(timeline.repo).branches()?;
        let mut elsewhere = Vec::new();
        for (name, stack) in &timeline.state.stacks {
            let tip = branches.get(name).copied();
            let is_gone = name.starts_with("refs/heads/") && tip.is_none();
            // The branch was moved since.
            let is_moved = timeline.state.at.as_ref().is_some_and(|at| at.stack == *name && at.commit != tip);
            let is_here = view.is_some_and(|view| view.head.stack() == name);
            if is_here {
                continue;
            }
            if let Some(view) = view.filter(|_| is_gone || is_moved) {
                // What was recorded of it is not so any more, and what is there is known by its commits.
                let name = if is_gone { renamed(view, stack)? } else { Some(name.clone()) };
                let name = name.filter(|name| view.head.stack() != name);
                let tip = name.as_ref().and_then(|name| branches.get(name)).copied();
                if tip.is_some() {
                    let there = Head { branch: name, commit: tip, through: None };
                    elsewhere.push(place::find(timeline.repo, timeline, &there)?);
                }
                continue;
            }
            if is_gone {
                continue;
            }
            let top = last_on(timeline, stack.top, tip, lowest)?;
            let mut place = Place { top, ..Place::of(stack) };
            // Where this line goes on, what is undone on another branch was left.
            if is_any_done && place.top.is_none_or(|top| is_here_done(&states, top)) {
                place.undone.clear();
            }
            elsewhere.push(place);
        }
        // What is done on any of them is done.
        for place in &elsewhere {
            states.add(timeline, &Place { undone: Vec::new(), ..place.clone() })?;
        }
        for place in &elsewhere {
            states.add(timeline, place)?;
        }
        Ok(states)
    }

    /// Adds what a place says of turns of which nothing is known yet.
    fn add(&mut self, timeline: &Stored<'_>, place: &Place) -> Result<()> {
        for number in &place.undone {
            let state = if place.by_hand.contains(number) { State::UndoneByHand } else { State::Undone };
            self.known.entry(*number).or_insert(state);
        }
        let mut at = place.top;
        while let Some(number) = at.filter(|number| *number >= self.lowest) {
            match self.known.entry(number) {
                // So are all those below it.
                Entry::Occupied(known) if *known.get() == State::Done => break,
                Entry::Occupied(_) => {}
                Entry::Vacant(unknown) => drop(unknown.insert(State::Done)),
            }
            at = timeline.require_turn(number)?.previous;
        }
        Ok(())
    }

    fn leave(&mut self, dropped: BTreeSet<u64>) {
        self.known.extend(dropped.into_iter().map(|turn| (turn, State::Left)));
    }

    fn state(&self, timeline: &Stored<'_>, number: u64) -> State {
        if timeline.state.open == Some(number) {
            return State::Open;
        }
        self.known.get(&number).copied().unwrap_or(State::Left)
    }
}

/// Every recorded turn, the newest first; by where HEAD stands, where the timeline is this worktree's.
pub fn every(timeline: &Stored<'_>, view: Option<&View<'_>>, most: usize) -> Result<Vec<(Turn, State)>> {
    listed(timeline, view, timeline.newest_turns(most, 0)?)
}

/// The turns from one number on, the newest first.
pub fn since(timeline: &Stored<'_>, view: &View<'_>, lowest: u64) -> Result<Vec<(Turn, State)>> {
    listed(timeline, Some(view), timeline.newest_turns(usize::MAX, lowest)?)
}

/// The turns of these numbers, the last one of which is the lowest.
fn listed(timeline: &Stored<'_>, view: Option<&View<'_>>, numbers: Vec<u64>) -> Result<Vec<(Turn, State)>> {
    let states = States::of(timeline, view, numbers.last().copied().unwrap_or_default())?;
    let mut turns = Vec::new();
    for number in numbers {
        let Some(turn) = timeline.find_turn(number)? else { continue };
        turns.push((turn, states.state(timeline, number)));
    }
    if let Some(view) = view.filter(|_| turns.iter().any(|(_, state)| *state == State::Left)) {
        let picked = picked(view)?;
        let there = turns.iter_mut().filter(|(turn, state)| *state == State::Left && picked.contains_key(&turn.turn));
        there.for_each(|(_, state)| *state = State::Done);
    }
    Ok(turns)
}
