//! The timeline as git keeps it: one commit. Its tree holds the state of the stacks, every turn's
//! record and its two checkpoints; its parents are the commits that turns need and no branch holds.
//!
//! ```text
//! state.json
//! turns/00/00/17/turn.json        the record
//!                files            a line of JSON for each file changed
//!                before/ after/   the checkpoints
//!                carried/         what undo and redo did with the user's edits
//! named/00/00/02/                 a checkpoint that the user named
//! rescues/00/00/04/               a checkpoint taken before undo or redo
//! ```

use crate::error::failure::error_chain;
use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::codec::lines;
use crate::git::objects::Objects;
use crate::git::refs::{OwnRef, Refs};
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::checkpoint::Checkpoint;
use crate::model::plan::ReturnState;
use crate::model::timeline::Timeline;
use crate::model::turn::{FileChange, Turn};
use crate::progress::Progress;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::BTreeMap;

/// More turns than any worktree has, and small enough that adding one never overflows.
const BEYOND_COUNT: u64 = 1 << 53;

/// The timeline as it was read: its commit, its tree and its state.
#[derive(Clone, Debug)]
pub struct Stored<'r> {
    pub repo: &'r Repo,
    /// The commit; `None` before the first turn.
    pub commit: Option<ObjectId>,
    /// The tree.
    pub tree: ObjectId,
    /// The state of the stack.
    pub state: Timeline,
}

/// Which of a turn's checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one at its beginning.
    Before,
    /// The one at its end.
    After,
}

impl Side {
    /// The name of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

impl<'r> Stored<'r> {
    /// A timeline that has just been written and need not be read.
    pub fn known(repo: &'r Repo, commit: ObjectId, tree: ObjectId, state: Timeline) -> Self {
        Self { repo, commit: Some(commit), tree, state }
    }

    /// No timeline at all.
    pub fn none(repo: &'r Repo) -> Self {
        Self { repo, commit: None, tree: Objects::new(repo).empty_tree(), state: Timeline::default() }
    }

    /// Every recorded turn, by its number.
    pub fn turns(&self) -> Result<BTreeMap<u64, Turn>> {
        let mut turns = BTreeMap::new();
        for number in self.turn_numbers()? {
            turns.insert(number, self.require_turn(number)?);
        }
        Ok(turns)
    }

    /// The record of a turn; `None` where there is none of this number.
    pub fn find_turn(&self, number: u64) -> Result<Option<Turn>> {
        let damaged = |what: &str| Timelines::new(self.repo).corrupt(&format!("turn {number}: {what}"));
        let turn: Option<Turn> = (Objects::new(self.repo)
            .json_at(self.tree, &format!("{}/turn.json", turn_directory(number))))
        .map_err(|error| damaged(&error_chain(&error)))?;
        // A turn's `previous` must be smaller: otherwise following the chain would never end.
        match turn {
            Some(turn) if turn.turn != number || turn.previous.is_some_and(|previous| previous >= number) => {
                Err(damaged("its record contradicts itself"))
            }
            turn => Ok(turn),
        }
    }

    /// The numbers of all turns that are recorded, in order.
    pub fn turn_numbers(&self) -> Result<Vec<u64>> {
        self.numbers_in("turns")
    }

    /// The numbers of all rescue checkpoints, in order.
    pub fn rescue_numbers(&self) -> Result<Vec<u64>> {
        self.numbers_in("rescues")
    }

    fn numbers_in(&self, directory: &str) -> Result<Vec<u64>> {
        let Some((_, top)) = Objects::new(self.repo).tree_entry(self.tree, directory.into())? else {
            return Ok(Vec::new());
        };
        let mut level = vec![(0_u64, top)];
        for _ in 0..3 {
            let mut below = Vec::new();
            for (above, tree) in level {
                for entry in self.repo.gix.find_tree(tree)?.decode()?.entries {
                    let name = entry.filename.to_str().ok().and_then(|name| name.parse::<u64>().ok());
                    let number = name.and_then(|name| above.checked_mul(100)?.checked_add(name));
                    below.extend(number.filter(|_| entry.mode.is_tree()).map(|number| (number, entry.oid.to_owned())));
                }
            }
            level = below;
        }
        let mut numbers: Vec<u64> = level.into_iter().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// The record of a turn that the timeline refers to.
    pub fn require_turn(&self, number: u64) -> Result<Turn> {
        self.find_turn(number)?.ok_or_else(|| Timelines::new(self.repo).corrupt(&format!("turn {number} is missing")))
    }

    /// The files that a turn changed.
    pub fn turn_files(&self, number: u64) -> Result<Vec<FileChange>> {
        let path = format!("{}/files", turn_directory(number));
        let Some(text) = Objects::new(self.repo).blob_at(self.tree, &path)? else {
            return Ok(Vec::new());
        };
        lines(&text)
            .map_err(|error| Timelines::new(self.repo).corrupt(&format!("turn {number}: {}", error_chain(&error))))
    }

    /// A checkpoint of a turn.
    pub fn checkpoint(&self, number: u64, side: Side) -> Result<Checkpoint> {
        let path = format!("{}/{}", turn_directory(number), side.name());
        Timelines::new(self.repo)
            .checkpoint_at(self.tree, &path)
            .map_err(|error| Timelines::new(self.repo).corrupt(&format!("turn {number}: {}", error_chain(&error))))
    }

    /// A checkpoint that the user named.
    pub fn named_checkpoint(&self, number: u64) -> Result<Checkpoint> {
        let path = named_directory(number);
        Timelines::new(self.repo)
            .checkpoint_at(self.tree, &path)
            .map_err(|error| Timelines::new(self.repo).corrupt(&error_chain(&error)))
    }

    /// Where a checkpoint of a turn is kept.
    pub fn checkpoint_id(&self, number: u64, side: Side) -> Result<Option<ObjectId>> {
        let path = format!("{}/{}", turn_directory(number), side.name());
        Ok(Objects::new(self.repo).tree_entry(self.tree, path.as_str().into())?.map(|(_, id)| id))
    }

    /// What the last undo or redo of a turn left for the next one.
    pub fn return_state(&self, number: u64) -> Result<ReturnState> {
        let path = format!("{}/carried/carried.json", turn_directory(number));
        let found = Objects::new(self.repo).json_at(self.tree, &path);
        Ok(found
            .map_err(|error| Timelines::new(self.repo).corrupt(&format!("turn {number}: {}", error_chain(&error))))?
            .unwrap_or_default())
    }

    /// The tree of a turn's records.
    pub fn turn_tree(&self, number: u64) -> Result<Option<ObjectId>> {
        Ok(Objects::new(self.repo).tree_entry(self.tree, turn_directory(number).as_str().into())?.map(|(_, id)| id))
    }

    /// The tree of a rescue checkpoint.
    pub fn rescue_tree(&self, number: u64) -> Result<Option<ObjectId>> {
        Ok(Objects::new(self.repo).tree_entry(self.tree, rescue_directory(number).as_str().into())?.map(|(_, id)| id))
    }

    /// A rescue checkpoint.
    pub fn rescue(&self, number: u64) -> Result<Checkpoint> {
        Timelines::new(self.repo).checkpoint_at(self.tree, &rescue_directory(number))
    }
}

impl<'r> Timelines<'r> {
    /// The commit that the timeline is now.
    pub fn tip(&self) -> Result<Option<ObjectId>> {
        let refs = Refs::new(self.repo);
        refs.ref_id(&refs.own_ref(OwnRef::Timeline))
    }

    /// Reads the timeline.
    pub fn timeline(&self) -> Result<Stored<'r>> {
        self.repo.watch.emit(Progress::Opens("the timeline"));
        let name = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        match Refs::new(self.repo).ref_id(&name).map_err(|error| self.corrupt(&error_chain(&error)))? {
            None if self.had_timeline() => Err(self.corrupt("it is gone, and turns were recorded here")),
            None => Ok(Stored {
                repo: self.repo,
                commit: None,
                tree: Objects::new(self.repo).empty_tree(),
                state: Timeline::default(),
            }),
            Some(commit) => self.timeline_at(commit).map_err(|error| self.corrupt(&error_chain(&error))),
        }
    }

    /// Reads the timeline that a commit holds.
    pub fn timeline_at(&self, commit: ObjectId) -> Result<Stored<'r>> {
        let tree = Objects::new(self.repo).commit_tree(commit)?;
        let state: Timeline = Objects::new(self.repo).json_at(tree, "state.json")?.context("state.json is missing")?;
        anyhow::ensure!(state.v == 1, "version {} is not known to this oxundo", state.v);
        anyhow::ensure!(state.next.max(state.next_rescue) < BEYOND_COUNT, "a number is beyond counting");
        Ok(Stored { repo: self.repo, commit: Some(commit), tree, state })
    }

    fn corrupt(&self, what: &str) -> anyhow::Error {
        let name = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        Refusal::new(Code::Corrupt, format!("the timeline in {name} cannot be read: {what}"))
            .hint("run 'oxundo doctor': it names the last good state and the command that brings it back")
            .into()
    }

    fn checkpoint_at(&self, tree: ObjectId, path: &str) -> Result<Checkpoint> {
        let entry = Objects::new(self.repo).tree_entry(tree, path.into())?;
        let (_, id) = entry.with_context(|| format!("{path} is missing"))?;
        Checkpoints::new(self.repo).read_checkpoint(id)
    }
}

/// Two digits a level, so that one more turn rewrites three small trees.
fn fan(number: u64) -> String {
    format!("{:02}/{:02}/{:02}", number / 10_000, number / 100 % 100, number % 100)
}

/// Where a timeline's tree has a turn.
pub fn turn_directory(number: u64) -> String {
    format!("turns/{}", fan(number))
}

pub fn named_directory(number: u64) -> String {
    format!("named/{}", fan(number))
}

pub fn rescue_directory(number: u64) -> String {
    format!("rescues/{}", fan(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_fan_out_two_digits_a_level() {
        assert_eq!(turn_directory(17), "turns/00/00/17");
        assert_eq!(turn_directory(1_234_567), "turns/123/45/67");
    }
}
