//! The steps of turns: a directory each in the turn's, two digits a level, so that one more rewrites two small trees and
//! the turn's end none. Which steps have a state of their own before them is read from these small trees alone.
//!
//! ```text
//! turns/00/00/17/steps/00/03/step.json   the record
//!                            files       a line of JSON for each file changed
//!                            after/      the state after it
//!                         03.before/     the state before it, where the last step's is not that
//! ```

use crate::error::failure::error_chain;
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::codec::{json_lines, lines, read_uncaptured};
use crate::git::objects::Objects;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored, turn_directory};
use crate::git::timeline::update::Update;
use crate::model::checkpoint::{Checkpoint, Uncaptured};
use crate::model::step::Step;
use crate::model::turn::FileChange;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;

/// What stands behind a step's number in the name of the state before it.
const BEFORE: &str = ".before";

/// Where a timeline's tree has the steps of a turn.
fn directory(turn: u64) -> String {
    format!("{}/steps", turn_directory(turn))
}

fn step_directory(turn: u64, step: u64) -> String {
    format!("{}/{:02}/{:02}", directory(turn), step / 100, step % 100)
}

/// Where a timeline's tree has the state at an end of a step.
fn state_directory(turn: u64, step: u64, side: Side) -> String {
    let directory = step_directory(turn, step);
    match side {
        Side::Before => format!("{directory}{BEFORE}"),
        Side::After => format!("{directory}/{}", side.name()),
    }
}

/// Where a timeline's tree has what undo of a turn leads to, where that is not the state before it.
fn saved_directory(turn: u64) -> String {
    format!("{}/saved", turn_directory(turn))
}

/// Where a timeline's tree has the state that was there before a call of a turn which ended nowhere, or as something went on in the
/// background.
fn found_directory(turn: u64) -> String {
    format!("{}/found", turn_directory(turn))
}

/// Likewise, behind this step, where that is over.
fn found_behind_directory(turn: u64, step: u64) -> String {
    format!("{}-{step}", found_directory(turn))
}

impl Stored<'_> {
    /// The number of the last step of a turn; 0 where it has none.
    pub fn last_step(&self, turn: u64) -> Result<u64> {
        let Some((hundreds, below)) = self.hundreds(turn)?.into_iter().max() else { return Ok(0) };
        let last = self.numbered(below, "")?.into_iter().max().map_or(0, |(number, _)| number);
        Ok(hundreds * 100 + last)
    }

    /// The steps of a turn that have a state of their own before them, in order.
    pub fn steps_with_gaps(&self, turn: u64) -> Result<Vec<u64>> {
        let mut steps = Vec::new();
        for (hundreds, below) in self.hundreds(turn)? {
            steps.extend(self.numbered(below, BEFORE)?.into_iter().map(|(number, _)| hundreds * 100 + number));
        }
        steps.sort_unstable();
        Ok(steps)
    }

    /// What others made between the calls of a turn and is not captured, or changed of what was there before it, and which files that
    /// were.
    pub fn uncaptured_between(&self, turn: u64, before: &Checkpoint) -> Result<BTreeMap<BString, Uncaptured>> {
        let mut all = BTreeMap::new();
        for step in self.steps_with_gaps(turn)? {
            let state = Objects::new(self.repo)
                .tree_entry(self.tree, state_directory(turn, step, Side::Before).as_str().into())?;
            let found = state.map_or_else(|| Ok(BTreeMap::new()), |(_, state)| read_uncaptured(self.repo, state))?;
            all.extend(self.uncaptured_of_others(turn, step, before, found)?);
        }
        Ok(all)
    }

    /// Of what a step found that is not captured, what others made, or changed of what was there before the turn.
    pub fn uncaptured_of_others(
        &self,
        turn: u64,
        step: u64,
        before: &Checkpoint,
        mut found: BTreeMap<BString, Uncaptured>,
    ) -> Result<BTreeMap<BString, Uncaptured>> {
        if !found.is_empty()
            && let Some(last) = self.step_checkpoint(turn, step.saturating_sub(1), Side::After)?
        {
            // What calls had made, and somebody has saved something in.
            found.retain(|path, _| before.skips(path) || !last.skips(path));
        }
        Ok(found)
    }

    /// The trees of a turn's steps, a hundred in each, by which hundred that is.
    fn hundreds(&self, turn: u64) -> Result<Vec<(u64, ObjectId)>> {
        let entry = Objects::new(self.repo).tree_entry(self.tree, directory(turn).as_str().into())?;
        entry.map_or_else(|| Ok(Vec::new()), |(_, tree)| self.numbered(tree, ""))
    }

    /// What is in a tree under a number with this behind it, by the number.
    fn numbered(&self, tree: ObjectId, behind: &str) -> Result<Vec<(u64, ObjectId)>> {
        let entries = Objects::new(self.repo).level(tree)?;
        let number = |name: &[u8]| name.to_str().ok()?.strip_suffix(behind)?.parse::<u64>().ok();
        Ok(entries.into_iter().filter_map(|(name, id, _)| Some((number(&name)?, id))).collect())
    }

    /// The steps of a turn, in order.
    pub fn steps(&self, turn: u64) -> Result<Vec<Step>> {
        let last = self.last_step(turn)?;
        (1..=last).filter_map(|number| self.step(turn, number).transpose()).collect()
    }

    /// The record of a step; none where there is none of this number.
    pub fn step(&self, turn: u64, number: u64) -> Result<Option<Step>> {
        let path = format!("{}/step.json", step_directory(turn, number));
        let damaged = |why: &str| Timelines::new(self.repo).corrupt(&format!("step {turn}.{number}: {why}"));
        let step: Option<Step> =
            Objects::new(self.repo).json_at(self.tree, &path).map_err(|error| damaged(&error_chain(&error)))?;
        match step {
            Some(step) if step.turn != turn || step.step != number => Err(damaged("its record contradicts itself")),
            step => Ok(step),
        }
    }

    /// The files that a step changed.
    pub fn step_files(&self, turn: u64, number: u64) -> Result<Vec<FileChange>> {
        let path = format!("{}/files", step_directory(turn, number));
        let text = Objects::new(self.repo).blob_at(self.tree, &path)?.unwrap_or_default();
        lines(&text).with_context(|| format!("step {turn}.{number}"))
    }

    /// The tree of the state at an end of a step. Before it, that is the state after the last one, or at the turn's
    /// beginning, where the step has none of its own: then it is none.
    pub fn step_tree(&self, turn: u64, number: u64, side: Side) -> Result<Option<ObjectId>> {
        let path = state_directory(turn, number, side);
        Ok(Objects::new(self.repo).tree_entry(self.tree, path.as_str().into())?.map(|(_, id)| id))
    }

    /// The state that a step has of its own at one of its ends.
    pub fn step_checkpoint(&self, turn: u64, number: u64, side: Side) -> Result<Option<Checkpoint>> {
        let read = self.step_tree(turn, number, side)?.map(|tree| Checkpoints::new(self.repo).read_checkpoint(tree));
        read.transpose().map_err(|error| {
            Timelines::new(self.repo).corrupt(&format!("step {turn}.{number}: {}", error_chain(&error)))
        })
    }
}

impl Stored<'_> {
    /// The state that undo of a turn leads to: the one before it, with what the user saved while it was open.
    pub fn undone_to(&self, turn: u64) -> Result<Checkpoint> {
        self.saved(turn)?.map_or_else(|| self.checkpoint(turn, Side::Before), Ok)
    }

    /// The state before a turn with what the user saved while it was open, where that was anything.
    pub fn saved(&self, turn: u64) -> Result<Option<Checkpoint>> {
        self.state_at(turn, &saved_directory(turn))
    }

    /// The state in which a call found all that ended nowhere, where somebody had changed something since the last step.
    pub fn found(&self, turn: u64) -> Result<Option<Checkpoint>> {
        self.state_at(turn, &found_directory(turn))
    }

    /// The state in which something began to be at work in the background behind this step, which is over, where somebody had changed
    /// something by then.
    pub fn found_behind(&self, turn: u64, step: u64) -> Result<Option<Checkpoint>> {
        self.state_at(turn, &found_behind_directory(turn, step))
    }

    fn state_at(&self, turn: u64, path: &str) -> Result<Option<Checkpoint>> {
        let entry = Objects::new(self.repo).tree_entry(self.tree, path.into())?;
        let read = entry.map(|(_, tree)| Checkpoints::new(self.repo).read_checkpoint(tree)).transpose();
        read.map_err(|error| Timelines::new(self.repo).corrupt(&format!("turn {turn}: {}", error_chain(&error))))
    }
}

impl Update<'_> {
    /// Adds the state before a turn with what the user saved while it was open.
    pub fn put_saved(&mut self, turn: u64, state: &Checkpoint) -> Result<()> {
        self.put_state(saved_directory(turn), &state.alone())
    }

    /// Adds the state in which a call found all that ended nowhere.
    pub fn put_found(&mut self, turn: u64, state: &Checkpoint) -> Result<()> {
        self.put_state(found_directory(turn), &state.alone())
    }

    /// Has the state that was found be that of what was at work in the background behind this step.
    pub fn put_found_behind(&mut self, turn: u64, step: u64, found: &Checkpoint) -> Result<()> {
        self.remove(found_directory(turn));
        self.put_state(found_behind_directory(turn, step), found)
    }

    /// Puts another record in the place of a step's.
    pub fn put_step_record(&mut self, step: &Step) -> Result<()> {
        self.put(format!("{}/step.json", step_directory(step.turn, step.step)), serde_json::to_vec(step)?)
    }

    /// Puts another state at one end of a step.
    pub fn put_step_state(&mut self, step: &Step, side: Side, state: &Checkpoint) -> Result<()> {
        let state = if side == Side::After { &state.alone() } else { state };
        self.put_state(state_directory(step.turn, step.step, side), state)
    }

    /// Adds a step: its record, its files, the state before it where that is none that is known, and the one after it.
    pub fn put_step(
        &mut self,
        step: &Step,
        files: &[FileChange],
        before: Option<&Checkpoint>,
        after: &Checkpoint,
    ) -> Result<()> {
        self.put_step_record(step)?;
        self.put(format!("{}/files", step_directory(step.turn, step.step)), json_lines(files)?)?;
        if let Some(before) = before {
            self.put_step_state(step, Side::Before, before)?;
        }
        self.put_step_state(step, Side::After, after)
    }
}
