//! The next timeline: what an operation changes of it, written as one commit.

use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::codec::json_lines;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{
    Side, Stored, above_file, journal_directory, named_directory, rescue_directory, rescued_file, turn_directory,
};
use crate::model::bytes::exact;
use crate::model::call::ToolCall;
use crate::model::checkpoint::Checkpoint;
use crate::model::place::Lift;
use crate::model::plan::ReturnState;
use crate::model::record::Record;
use crate::model::timeline::{Timeline, VERSION};
use crate::model::turn::{FileChange, Note, Turn};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;
use gix::objs::tree::EntryKind;
use std::collections::BTreeSet;

/// The next timeline in the making.
pub struct Update<'repo> {
    repo: &'repo Repo,
    base: Stored<'repo>,
    /// The state of the stack.
    pub state: Timeline,
    /// Whether it takes the last operation back: it has no number of its own.
    pub takes_back: bool,
    entries: Vec<(String, Option<(EntryKind, ObjectId)>)>,
}

impl<'repo> Update<'repo> {
    /// Adds a turn's record. Where it has gone up with HEAD, that is not part of it.
    pub fn put_turn(&mut self, turn: &Turn) -> Result<()> {
        let path = format!("{}/turn.json", turn_directory(turn.turn));
        let is_lifted = |lift: &Lift| lift.below() == turn.previous;
        if self.state.lifted.get(&turn.turn).is_some_and(is_lifted)
            && let Some(Turn { previous, depth, .. }) = self.base.as_made(turn.turn)?
        {
            // Those below it that have expired are counted where it stands.
            for lift in self.state.all_lifted().filter_map(|lifted| lifted.get_mut(&turn.turn)) {
                lift.depth = lift.depth.min(turn.depth);
            }
            return self.put(path, serde_json::to_vec_pretty(&Turn { previous, depth, ..turn.clone() })?);
        }
        self.state.lifted.remove(&turn.turn);
        self.put(path, serde_json::to_vec_pretty(turn)?)
    }

    /// Adds the list of files that a turn changed.
    pub fn put_files(&mut self, number: u64, files: &[FileChange]) -> Result<()> {
        self.put(format!("{}/files", turn_directory(number)), json_lines(files)?)
    }

    /// Adds the calls of tools in a turn, where there are any.
    pub fn put_calls(&mut self, number: u64, calls: &[ToolCall]) -> Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        self.put(format!("{}/calls", turn_directory(number)), json_lines(calls)?)
    }

    /// Adds to an open turn the journal of its plan, which has been carried out: its end is still to be recorded.
    pub fn put_journal(&mut self, number: u64, journal: ObjectId) {
        self.entries.push((journal_directory(number), Some((EntryKind::Tree, journal))));
    }

    /// Removes that.
    pub fn remove_journal(&mut self, number: u64) {
        self.remove(journal_directory(number));
    }

    /// Removes what is at a path.
    pub fn remove(&mut self, path: String) {
        self.entries.push((path, None));
    }

    /// Notes that a turn was made on top of the one below it, where their numbers do not say so.
    pub fn put_above(&mut self, turn: &Turn) -> Result<()> {
        let below = turn.previous.unwrap_or(0);
        if below + 1 == turn.turn {
            return Ok(());
        }
        let mut above = self.base.above(turn.previous)?;
        above.push(turn.turn);
        self.put(above_file(turn.previous), serde_json::to_vec(&above)?)
    }

    /// Adds one of a turn's checkpoints.
    pub fn put_checkpoint(&mut self, number: u64, side: Side, checkpoint: &Checkpoint) -> Result<()> {
        let path = format!("{}/{}", turn_directory(number), side.name());
        // Only of what was there before a turn does anybody ask where it is then.
        match side {
            Side::Before => self.put_state(path, checkpoint),
            Side::After => self.put_state(path, &checkpoint.alone()),
        }
    }

    /// Adds a state at a path.
    pub fn put_state(&mut self, path: String, checkpoint: &Checkpoint) -> Result<()> {
        let id = Checkpoints::new(self.repo).write_checkpoint(checkpoint)?;
        self.entries.push((path, Some((EntryKind::Tree, id))));
        Ok(())
    }

    /// Adds a rescue checkpoint, which may be the only copy of these contents of the user's; gives its tree.
    pub fn put_rescue(&mut self, checkpoint: &Checkpoint, users: &BTreeSet<(BString, ObjectId)>) -> Result<ObjectId> {
        let id = Checkpoints::new(self.repo).write_checkpoint(&checkpoint.alone())?;
        let path = rescue_directory(self.state.next_rescue);
        if !users.is_empty() {
            let users = users.iter().map(|(path, id)| (exact::encode(path), id.to_string())).collect::<Vec<_>>();
            self.put(rescued_file(self.state.next_rescue), serde_json::to_vec(&users)?)?;
        }
        self.state.next_rescue += 1;
        self.entries.push((path, Some((EntryKind::Tree, id))));
        Ok(id)
    }

    /// Adds what the next undo or redo of a turn needs to know, and the blobs for it.
    pub fn put_return_state(&mut self, number: u64, state: &ReturnState) -> Result<()> {
        let directory = format!("{}/carried", turn_directory(number));
        self.entries.push((directory.clone(), None));
        if state.is_empty() {
            return Ok(());
        }
        for id in state.blobs().filter(|id| self.repo.has_object(*id)) {
            self.entries.push((format!("{directory}/kept/{id}"), Some((EntryKind::Blob, id))));
        }
        self.put(format!("{directory}/carried.json"), serde_json::to_vec(state)?)
    }

    /// Adds a checkpoint that the user named.
    pub fn put_named(&mut self, number: u64, checkpoint: &Checkpoint) -> Result<()> {
        let id = Checkpoints::new(self.repo).write_checkpoint(&checkpoint.alone())?;
        self.entries.push((named_directory(number), Some((EntryKind::Tree, id))));
        Ok(())
    }

    /// Removes a checkpoint that the user named.
    pub fn remove_named(&mut self, number: u64) {
        self.entries.push((named_directory(number), None));
    }

    /// Removes a turn.
    pub fn remove_turn(&mut self, number: u64) {
        for lifted in self.state.all_lifted() {
            lifted.retain(|turn, lift| *turn != number && lift.previous != number);
        }
        self.state.left.retain(|line| line.top != Some(number) && !line.undone.contains(&number));
        self.entries.push((turn_directory(number), None));
    }

    /// Removes a rescue checkpoint.
    pub fn remove_rescue(&mut self, number: u64) {
        self.entries.extend([rescue_directory(number), rescued_file(number)].map(|path| (path, None)));
    }

    /// Adds a file at a path.
    pub fn put(&mut self, path: String, bytes: Vec<u8>) -> Result<()> {
        let id = self.repo.gix.write_blob(bytes)?.detach();
        self.entries.push((path, Some((EntryKind::Blob, id))));
        Ok(())
    }

    /// Writes the timeline's commit; gives the record by which an apply moves the ref to it, and the timeline as it
    /// is after that.
    pub fn into_record(mut self, message: String, notes: Vec<Note>) -> Result<(Record, Stored<'repo>)> {
        self.state.v = VERSION;
        self.state.operation = match (self.base.commit, self.state.operation) {
            (Some(_), last) if self.takes_back => last.saturating_sub(1),
            (None, _) => 1,
            (Some(_), 0) => Timelines::new(self.repo).operations()?.len() as u64 + 1,
            (Some(_), last) => last + 1,
        };
        self.put("state.json".to_owned(), serde_json::to_vec_pretty(&self.state)?)?;
        let changes: Vec<_> = (self.entries.into_iter()).map(|(path, entry)| (path.into(), entry)).collect();
        let tree = Objects::new(self.repo).edited_tree(self.base.tree, &changes)?;
        let pins = self.state.pins.iter().chain(&self.state.held).map(|pin| pin.0);
        let parents: BTreeSet<ObjectId> = pins.filter(|id| self.repo.has_object(*id)).collect();
        let commit = Objects::new(self.repo).write_own_commit(tree, parents.into_iter().collect(), &message)?;
        let record = Record { timeline_from: self.base.commit, timeline_to: Some(commit), notes, message };
        Ok((record, Stored::known(self.repo, commit, tree, self.state)))
    }
}

impl<'r> Stored<'r> {
    /// Starts to change the timeline.
    pub fn update(&self) -> Update<'r> {
        Update {
            repo: self.repo,
            base: self.clone(),
            state: self.state.clone(),
            takes_back: false,
            entries: Vec::new(),
        }
    }
}
