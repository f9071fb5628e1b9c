//! The present state of only those paths and refs that an undo or redo would touch.

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::worktree::stat::{file_state, is_open, kind_of, mode_of};
use crate::git::worktree::{Lookup, Worktree};
use crate::model::checkpoint::{Change, Checkpoint, FileState};
use crate::model::path::all_parents;
use crate::model::planner::{Occupant, Present, Standing, TurnDelta};
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};

impl Checkpoints<'_> {
    /// Looks at everything that these turns touch. `now` is the rescue checkpoint.
    pub fn present(&self, turns: &[TurnDelta], now: &Checkpoint, index: &gix::index::State) -> Result<Present> {
        let mut present = Present {
            branches: now.branches.clone(),
            head: now.head.clone(),
            stash: now.stash.clone(),
            ..Present::default()
        };
        let deltas = || turns.iter().map(|turn| &turn.delta);
        let files: BTreeSet<&BString> = deltas().flat_map(|delta| delta.files.keys()).collect();
        for path in files {
            present.files.insert(path.clone(), self.occupant(now, path.as_bstr())?);
        }
        for path in deltas().flat_map(|delta| delta.directories.keys()) {
            if let Lookup::There(stat) = Worktree::new(self.repo).find(path.as_bstr())?
                && FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            {
                present.directories.insert(path.clone(), mode_of(&stat));
            }
        }
        let changed = deltas().flat_map(|delta| delta.files.keys().chain(delta.directories.keys()));
        for path in all_parents(changed.map(|path| path.as_bstr())) {
            if let Lookup::There(stat) = Worktree::new(self.repo).find(path)?
                && FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && !is_open(&stat)
            {
                present.closed.insert(path.to_owned(), mode_of(&stat));
            }
        }
        for (path, change) in deltas().flat_map(|delta| &delta.aside) {
            let store = change.from.iter().chain(&change.to).map(|aside| self.repo.scratch_path(&aside.store));
            let kept = store.into_iter().any(|store| store.symlink_metadata().is_ok());
            let standing = match Worktree::new(self.repo).find(path.as_bstr())? {
                Lookup::There(found) => Standing::Something(file_state(&found)),
                Lookup::Absent | Lookup::Behind(_) => Standing::Nothing,
            };
            present.aside.insert(path.clone(), (standing, kept));
        }
        for path in deltas().flat_map(|delta| delta.index.keys()) {
            let entries = Index::new(self.repo).index_entries(index, path.as_bstr())?;
            if !entries.is_empty() {
                present.index.insert(path.clone(), entries);
            }
        }
        Ok(present)
    }

    /// What the user edited: what differs within one of these pairs, each the end of a turn and the state at
    /// the next turn's beginning, or now. Each as it is now, even if it is ignored since, and as it is in `goal`.
    pub fn edited(
        &self,
        gaps: &[(&Checkpoint, &Checkpoint)],
        now: &Checkpoint,
        goal: &Checkpoint,
    ) -> Result<BTreeMap<BString, Change<Option<FileState>>>> {
        let mut edited = BTreeMap::new();
        for (left, found) in gaps {
            let changes = self.file_changes(left, found)?;
            let new = changes.iter().filter(|(_, change)| change.from.is_none()).map(|(path, _)| path);
            // What was there, but ignored, is no edit because it is listed by now.
            let unknown = self.left_out(left, new)?;
            for path in changes.into_keys().filter(|path| !unknown.contains(path)) {
                let captured = self.captured_file(now, path.as_bstr())?;
                let as_it_is = captured.or_else(|| self.uncaptured_file(path.as_bstr()));
                let as_it_was = self.captured_file(goal, path.as_bstr())?;
                edited.insert(path, Change::new(as_it_is, as_it_was));
            }
        }
        Ok(edited)
    }

    /// A file that no scan lists, as far as it can be read.
    fn uncaptured_file(&self, path: &BStr) -> Option<FileState> {
        Worktree::new(self.repo).state(path, self.repo.hash_kind()).ok().flatten()
    }

    fn occupant(&self, now: &Checkpoint, path: &BStr) -> Result<Occupant> {
        if let Some(state) = self.captured_file(now, path)? {
            return Ok(Occupant::File(state));
        }
        Ok(match Worktree::new(self.repo).find(path)? {
            Lookup::Absent => Occupant::Absent,
            Lookup::Behind(parent) => Occupant::Behind(parent),
            Lookup::There(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                Occupant::Directory(Worktree::new(self.repo).list_below(path)?)
            }
            // There, but not captured: ignored by now, or over a limit.
            Lookup::There(stat) if kind_of(&stat).is_some() => {
                match Worktree::new(self.repo).state(path, self.repo.hash_kind()) {
                    Ok(Some(state)) => Occupant::NotCaptured(state),
                    Ok(None) => Occupant::Absent,
                    Err(_) => Occupant::Other,
                }
            }
            Lookup::There(_) => Occupant::Other,
        })
    }
}
