//! The timeline as git keeps it: one commit, whose tree holds the state of the
//! stack, every turn's record and its two checkpoints, and whose parents are
//! the commits that no branch holds any more.
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

use super::Repo;
use super::apply::Record;
use super::faults::told;
use super::refs::Own;
use crate::error::{Code, Refusal};
use crate::model::bytes::exact;
use crate::model::checkpoint::{Checkpoint, Head, IndexEntry, IndexState, Modes, Skipped, StashEntry, UsualModes};
use crate::model::merge::Carried;
use crate::model::timeline::{Step, Timeline};
use crate::model::turn::{FileChange, Note, Turn};
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use gix::objs::Tree;
use gix::objs::tree::{Entry, EntryKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The timeline as it was read: its commit, its tree and its state.
#[derive(Clone, Debug)]
pub struct Stored {
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
    fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

impl Repo {
    /// Reads the timeline.
    ///
    /// # Errors
    ///
    /// A refusal `corrupt` when it cannot be read, or a newer oxundo wrote it.
    pub fn timeline(&self) -> Result<Stored> {
        let name = self.own_ref(Own::Timeline);
        match self.ref_id(&name).map_err(|error| self.corrupt(&told(&error)))? {
            None if self.had_timeline() => Err(self.corrupt("it is gone, and turns were recorded here")),
            None => Ok(Stored { commit: None, tree: self.empty_tree(), state: Timeline::default() }),
            Some(commit) => self.timeline_at(commit).map_err(|error| self.corrupt(&told(&error))),
        }
    }

    /// Reads the timeline that a commit holds.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub fn timeline_at(&self, commit: ObjectId) -> Result<Stored> {
        let tree = self.commit_tree(commit)?;
        let state: Timeline = self.json_at(tree, "state.json")?.context("state.json is missing")?;
        anyhow::ensure!(state.v == 1, "version {} is not known to this oxundo", state.v);
        anyhow::ensure!(state.next.max(state.next_rescue) < BEYOND_COUNT, "a number is beyond counting");
        Ok(Stored { commit: Some(commit), tree, state })
    }

    fn corrupt(&self, what: &str) -> anyhow::Error {
        let name = self.own_ref(Own::Timeline);
        Refusal::new(Code::Corrupt, format!("the timeline in {name} cannot be read: {what}"))
            .hint("run 'oxundo doctor': it names the last good state and the command that brings it back")
            .into()
    }

    /// The record of a turn; `None` where there is none of this number.
    ///
    /// # Errors
    ///
    /// A refusal `corrupt` when it cannot be read.
    pub fn turn(&self, stored: &Stored, number: u64) -> Result<Option<Turn>> {
        let damaged = |what: &str| self.corrupt(&format!("turn {number}: {what}"));
        let turn: Option<Turn> = (self.json_at(stored.tree, &format!("{}/turn.json", turn_directory(number))))
            .map_err(|error| damaged(&told(&error)))?;
        // A chain that does not go down would never end.
        match turn {
            Some(turn) if turn.turn != number || turn.previous.is_some_and(|previous| previous >= number) => {
                Err(damaged("its record contradicts itself"))
            }
            turn => Ok(turn),
        }
    }

    /// The numbers of all turns that are recorded, in order.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn turn_numbers(&self, stored: &Stored) -> Result<Vec<u64>> {
        self.numbers_in(stored, "turns")
    }

    /// The numbers of all rescue checkpoints, in order.
    ///
    /// # Errors
    ///
    /// When they cannot be read.
    pub fn rescue_numbers(&self, stored: &Stored) -> Result<Vec<u64>> {
        self.numbers_in(stored, "rescues")
    }

    fn numbers_in(&self, stored: &Stored, directory: &str) -> Result<Vec<u64>> {
        let Some((_, top)) = self.tree_entry(stored.tree, directory.into())? else {
            return Ok(Vec::new());
        };
        let mut level = vec![(0_u64, top)];
        for _ in 0..3 {
            let mut below = Vec::new();
            for (above, tree) in level {
                for entry in self.gix.find_tree(tree)?.decode()?.entries {
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
    ///
    /// # Errors
    ///
    /// A refusal `corrupt` when it is missing or cannot be read.
    pub fn known_turn(&self, stored: &Stored, number: u64) -> Result<Turn> {
        self.turn(stored, number)?.ok_or_else(|| self.corrupt(&format!("turn {number} is missing")))
    }

    /// The files that a turn changed.
    ///
    /// # Errors
    ///
    /// When their record cannot be read.
    pub fn turn_files(&self, stored: &Stored, number: u64) -> Result<Vec<FileChange>> {
        let path = format!("{}/files", turn_directory(number));
        let Some(text) = self.blob_at(stored.tree, &path)? else {
            return Ok(Vec::new());
        };
        lines(&text).map_err(|error| self.corrupt(&format!("turn {number}: {}", told(&error))))
    }

    /// A checkpoint of a turn.
    ///
    /// # Errors
    ///
    /// A refusal `corrupt` when it is missing or cannot be read.
    pub fn checkpoint(&self, stored: &Stored, number: u64, side: Side) -> Result<Checkpoint> {
        let path = format!("{}/{}", turn_directory(number), side.name());
        self.checkpoint_at(stored.tree, &path)
            .map_err(|error| self.corrupt(&format!("turn {number}: {}", told(&error))))
    }

    /// A checkpoint that the user named.
    ///
    /// # Errors
    ///
    /// A refusal `corrupt` when it is missing or cannot be read.
    pub fn named_checkpoint(&self, stored: &Stored, number: u64) -> Result<Checkpoint> {
        let path = named_directory(number);
        self.checkpoint_at(stored.tree, &path).map_err(|error| self.corrupt(&told(&error)))
    }

    /// Where a checkpoint of a turn is kept.
    ///
    /// # Errors
    ///
    /// When the timeline cannot be read.
    pub fn checkpoint_id(&self, stored: &Stored, number: u64, side: Side) -> Result<Option<ObjectId>> {
        let path = format!("{}/{}", turn_directory(number), side.name());
        Ok(self.tree_entry(stored.tree, path.as_str().into())?.map(|(_, id)| id))
    }

    fn checkpoint_at(&self, tree: ObjectId, path: &str) -> Result<Checkpoint> {
        let entry = self.tree_entry(tree, path.into())?;
        let (_, id) = entry.with_context(|| format!("{path} is missing"))?;
        self.read_checkpoint(id)
    }

    /// What the next walk over a turn has to remember of the last one.
    ///
    /// # Errors
    ///
    /// A refusal `corrupt` when it cannot be read.
    pub fn carried(&self, stored: &Stored, number: u64) -> Result<Carried> {
        let path = format!("{}/carried/carried.json", turn_directory(number));
        let found = self.json_at(stored.tree, &path);
        Ok(found.map_err(|error| self.corrupt(&format!("turn {number}: {}", told(&error))))?.unwrap_or_default())
    }

    /// The tree of a turn's records.
    ///
    /// # Errors
    ///
    /// When the timeline cannot be read.
    pub fn turn_tree(&self, stored: &Stored, number: u64) -> Result<Option<ObjectId>> {
        Ok(self.tree_entry(stored.tree, turn_directory(number).as_str().into())?.map(|(_, id)| id))
    }

    /// The tree of a rescue checkpoint.
    ///
    /// # Errors
    ///
    /// When the timeline cannot be read.
    pub fn rescue_tree(&self, stored: &Stored, number: u64) -> Result<Option<ObjectId>> {
        Ok(self.tree_entry(stored.tree, rescue_directory(number).as_str().into())?.map(|(_, id)| id))
    }

    /// A rescue checkpoint.
    ///
    /// # Errors
    ///
    /// When it is missing or cannot be read.
    pub fn rescue(&self, stored: &Stored, number: u64) -> Result<Checkpoint> {
        self.checkpoint_at(stored.tree, &rescue_directory(number))
    }

    /// Where a step over this turn begins, ends, and leads.
    pub fn step(turn: &Turn) -> Step {
        let stack = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "HEAD".to_owned());
        Step {
            turn: turn.turn,
            began_on: stack(&turn.began_on),
            ended_on: stack(&turn.branch),
            previous: turn.previous,
        }
    }

    fn blob_at(&self, tree: ObjectId, path: &str) -> Result<Option<Vec<u8>>> {
        let Some((_, id)) = self.tree_entry(tree, path.into())? else {
            return Ok(None);
        };
        Ok(Some(self.gix.find_blob(id)?.data.clone()))
    }

    fn json_at<T: DeserializeOwned>(&self, tree: ObjectId, path: &str) -> Result<Option<T>> {
        let Some(text) = self.blob_at(tree, path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&text).with_context(|| format!("read {path}")).map(Some)
    }

    /// Starts to change the timeline.
    pub fn update(&self, stored: &Stored) -> Update<'_> {
        Update { repo: self, base: stored.clone(), state: stored.state.clone(), entries: Vec::new() }
    }

    /// Writes a checkpoint as a tree.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write_checkpoint(&self, checkpoint: &Checkpoint) -> Result<ObjectId> {
        let about = About {
            v: 1,
            head: checkpoint.head.clone(),
            elsewhere: checkpoint.elsewhere.clone(),
            usual_modes: checkpoint.modes.usual,
        };
        let branches: String = (checkpoint.branches.iter()).map(|(name, id)| format!("{id} {name}\n")).collect();
        let modes: BTreeMap<String, String> = (checkpoint.modes.unusual.iter())
            .map(|(path, mode)| (exact::encode(path), format!("{mode:04o}")))
            .collect();
        let directories: Vec<String> = checkpoint.directories.iter().map(|path| exact::encode(path)).collect();
        let special: Vec<Special> = (checkpoint.index.special.iter())
            .map(|(path, entries)| Special { path: path.clone(), entries: entries.clone() })
            .collect();
        let sparse: Vec<String> = checkpoint.index.sparse.iter().map(|path| exact::encode(path)).collect();
        let blob = |name: &str, bytes: Vec<u8>| -> Result<Entry> {
            let id = self.gix.write_blob(bytes)?.detach();
            Ok(tree_entry(name, EntryKind::Blob, id))
        };
        let mut entries = vec![
            blob("checkpoint.json", serde_json::to_vec(&about)?)?,
            blob("branches", branches.into_bytes())?,
            blob("stash", json_lines(&checkpoint.stash)?)?,
            blob("special", json_lines(&special)?)?,
            blob("modes", serde_json::to_vec(&modes)?)?,
            blob("directories", serde_json::to_vec(&directories)?)?,
            blob("skipped", json_lines(&checkpoint.skipped)?)?,
            tree_entry("rules", EntryKind::Blob, checkpoint.rules),
            tree_entry("index", EntryKind::Tree, checkpoint.index.tree),
            tree_entry("worktree", EntryKind::Tree, checkpoint.worktree),
        ];
        if !sparse.is_empty() {
            entries.push(blob("sparse", serde_json::to_vec(&sparse)?)?);
        }
        entries.sort();
        Ok(self.gix.write_object(&Tree { entries })?.detach())
    }

    fn read_checkpoint(&self, tree: ObjectId) -> Result<Checkpoint> {
        let about: About = self.json_at(tree, "checkpoint.json")?.context("checkpoint.json is missing")?;
        let blob = |name: &str| self.blob_at(tree, name)?.with_context(|| format!("{name} is missing"));
        let id = |name: &str| -> Result<ObjectId> {
            let entry = self.tree_entry(tree, name.into())?;
            Ok(entry.with_context(|| format!("{name} is missing"))?.1)
        };
        let modes: BTreeMap<String, String> = serde_json::from_slice(&blob("modes")?)?;
        let directories: Vec<String> = serde_json::from_slice(&blob("directories")?)?;
        let special: Vec<Special> = lines(&blob("special")?)?;
        // Only a sparse checkout has it, and earlier records have none.
        let sparse: Vec<String> = self.json_at(tree, "sparse")?.unwrap_or_default();
        let path = |text: &str| exact::decode(text).context("a path is damaged");
        Ok(Checkpoint {
            head: about.head,
            elsewhere: about.elsewhere,
            branches: parse_branches(&blob("branches")?)?,
            stash: lines::<StashEntry>(&blob("stash")?)?,
            index: IndexState {
                tree: id("index")?,
                sparse: sparse.iter().map(|name| path(name)).collect::<Result<_>>()?,
                special: special.into_iter().map(|special| (special.path, special.entries)).collect(),
            },
            worktree: id("worktree")?,
            modes: Modes {
                usual: about.usual_modes,
                unusual: (modes.iter())
                    .map(|(name, mode)| Ok((path(name)?, u32::from_str_radix(mode, 8)?)))
                    .collect::<Result<_>>()?,
            },
            directories: directories.iter().map(|name| path(name)).collect::<Result<BTreeSet<_>>>()?,
            skipped: lines::<Skipped>(&blob("skipped")?)?,
            rules: id("rules")?,
        })
    }
}

/// What a checkpoint says of itself.
#[derive(Serialize, Deserialize)]
struct About {
    v: u32,
    head: Head,
    #[serde(default)]
    elsewhere: BTreeSet<String>,
    usual_modes: UsualModes,
}

#[derive(Serialize, Deserialize)]
struct Special {
    #[serde(with = "exact")]
    path: BString,
    entries: Vec<IndexEntry>,
}

/// The next timeline in the making.
pub struct Update<'repo> {
    repo: &'repo Repo,
    base: Stored,
    /// The state of the stack.
    pub state: Timeline,
    entries: Vec<(String, Option<(EntryKind, ObjectId)>)>,
}

impl Update<'_> {
    /// Keeps a turn's record.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn put_turn(&mut self, turn: &Turn) -> Result<()> {
        let path = format!("{}/turn.json", turn_directory(turn.turn));
        self.put(path, serde_json::to_vec_pretty(turn)?)
    }

    /// Keeps the list of files that a turn changed.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn put_files(&mut self, number: u64, files: &[FileChange]) -> Result<()> {
        self.put(format!("{}/files", turn_directory(number)), json_lines(files)?)
    }

    /// Keeps one of a turn's checkpoints.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn put_checkpoint(&mut self, number: u64, side: Side, checkpoint: &Checkpoint) -> Result<()> {
        let id = self.repo.write_checkpoint(checkpoint)?;
        let path = format!("{}/{}", turn_directory(number), side.name());
        self.entries.push((path, Some((EntryKind::Tree, id))));
        Ok(())
    }

    /// Keeps a rescue checkpoint; gives its tree.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn put_rescue(&mut self, checkpoint: &Checkpoint) -> Result<ObjectId> {
        let id = self.repo.write_checkpoint(checkpoint)?;
        let path = rescue_directory(self.state.next_rescue);
        self.state.next_rescue += 1;
        self.entries.push((path, Some((EntryKind::Tree, id))));
        Ok(id)
    }

    /// Keeps what the next walk over a turn has to remember, and the blobs that it needs.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn put_carried(&mut self, number: u64, carried: &Carried) -> Result<()> {
        let directory = format!("{}/carried", turn_directory(number));
        self.entries.push((directory.clone(), None));
        if carried.is_empty() {
            return Ok(());
        }
        for id in carried.blobs().filter(|id| self.repo.gix.has_object(id)) {
            self.entries.push((format!("{directory}/kept/{id}"), Some((EntryKind::Blob, id))));
        }
        self.put(format!("{directory}/carried.json"), serde_json::to_vec(carried)?)
    }

    /// Keeps a checkpoint that the user named.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn put_named(&mut self, number: u64, checkpoint: &Checkpoint) -> Result<()> {
        let id = self.repo.write_checkpoint(checkpoint)?;
        self.entries.push((named_directory(number), Some((EntryKind::Tree, id))));
        Ok(())
    }

    /// Lets go of a checkpoint that the user named.
    pub fn remove_named(&mut self, number: u64) {
        self.entries.push((named_directory(number), None));
    }

    /// Removes a turn.
    pub fn remove_turn(&mut self, number: u64) {
        self.entries.push((turn_directory(number), None));
    }

    /// Removes a rescue checkpoint.
    pub fn remove_rescue(&mut self, number: u64) {
        self.entries.push((rescue_directory(number), None));
    }

    fn put(&mut self, path: String, bytes: Vec<u8>) -> Result<()> {
        let id = self.repo.gix.write_blob(bytes)?.detach();
        self.entries.push((path, Some((EntryKind::Blob, id))));
        Ok(())
    }

    /// Writes the timeline's commit; gives the record by which an apply moves the ref to it.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn into_record(self, message: String, notes: Vec<Note>) -> Result<Record> {
        let timeline_from = self.base.commit;
        Ok(Record { timeline_from, timeline_to: Some(self.write(&message)?), notes, message })
    }

    fn write(mut self, message: &str) -> Result<ObjectId> {
        self.put("state.json".to_owned(), serde_json::to_vec_pretty(&self.state)?)?;
        let changes: Vec<_> = (self.entries.into_iter()).map(|(path, entry)| (path.into(), entry)).collect();
        let tree = self.repo.edited_tree(self.base.tree, &changes)?;
        let pins = self.state.pins.iter().chain(&self.state.held).map(|pin| pin.0);
        let parents: BTreeSet<ObjectId> = pins.filter(|id| self.repo.gix.has_object(id)).collect();
        self.repo.write_own_commit(tree, parents.into_iter().collect(), message)
    }
}

/// No worktree gets to so many turns, and one more is always a number.
const BEYOND_COUNT: u64 = 1 << 53;

/// Two digits a level, so that one more turn rewrites three small trees.
fn fan(number: u64) -> String {
    format!("{:02}/{:02}/{:02}", number / 10_000, number / 100 % 100, number % 100)
}

/// Where a timeline's tree has a turn.
pub(super) fn turn_directory(number: u64) -> String {
    format!("turns/{}", fan(number))
}

fn named_directory(number: u64) -> String {
    format!("named/{}", fan(number))
}

fn rescue_directory(number: u64) -> String {
    format!("rescues/{}", fan(number))
}

fn tree_entry(name: &str, kind: EntryKind, oid: ObjectId) -> Entry {
    Entry { mode: kind.into(), filename: name.into(), oid }
}

fn json_lines<T: Serialize>(values: &[T]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for value in values {
        serde_json::to_writer(&mut text, value)?;
        text.push(b'\n');
    }
    Ok(text)
}

fn lines<T: DeserializeOwned>(text: &[u8]) -> Result<Vec<T>> {
    text.lines().map(|line| Ok(serde_json::from_slice(line)?)).collect()
}

fn parse_branches(text: &[u8]) -> Result<BTreeMap<String, ObjectId>> {
    text.lines()
        .map(|line| {
            let (id, name) = line.split_once_str(" ").context("a branch is damaged")?;
            Ok((name.to_str()?.to_owned(), ObjectId::from_hex(id)?))
        })
        .collect()
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
