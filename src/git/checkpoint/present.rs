//! The present state of just what a walk would touch.

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::worktree::stat::{file_state, is_open, kind_of, mode_of};
use crate::git::worktree::{Found, Worktree};
use crate::model::checkpoint::{Change, Checkpoint, FileState};
use crate::model::plan::parents;
use crate::model::walk::{Facts, Leg, Present};
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};

impl Checkpoints<'_> {
    /// Looks at everything that a walk touches. `now` is the rescue checkpoint.
    ///
    /// # Errors
    ///
    /// When something cannot be read.
    pub fn facts(&self, legs: &[Leg], now: &Checkpoint, index: &gix::index::State) -> Result<Facts> {
        let mut facts = Facts {
            branches: now.branches.clone(),
            head: now.head.clone(),
            stash: now.stash.clone(),
            ..Facts::default()
        };
        let deltas = || legs.iter().map(|leg| &leg.delta);
        let files: BTreeSet<&BString> = deltas().flat_map(|delta| delta.files.keys()).collect();
        for path in files {
            facts.files.insert(path.clone(), self.present(now, path.as_bstr())?);
        }
        for path in deltas().flat_map(|delta| delta.directories.keys()) {
            if let Found::There(stat) = Worktree::new(self.repo).find(path.as_bstr())?
                && FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            {
                facts.directories.insert(path.clone(), mode_of(&stat));
            }
        }
        let changed = deltas().flat_map(|delta| delta.files.keys().chain(delta.directories.keys()));
        let above: BTreeSet<&BStr> = changed.flat_map(|path| parents(path.as_bstr())).collect();
        for path in above {
            if let Found::There(stat) = Worktree::new(self.repo).find(path)?
                && FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && !is_open(&stat)
            {
                facts.closed.insert(path.to_owned(), mode_of(&stat));
            }
        }
        for (path, change) in deltas().flat_map(|delta| &delta.aside) {
            let store = change.from.iter().chain(&change.to).map(|aside| self.repo.scratch_path(&aside.store));
            let kept = store.into_iter().any(|store| store.symlink_metadata().is_ok());
            let state = match Worktree::new(self.repo).find(path.as_bstr())? {
                Found::There(found) => Some(file_state(&found)),
                Found::Absent | Found::Behind(_) => None,
            };
            facts.aside.insert(path.clone(), (state, kept));
        }
        for path in deltas().flat_map(|delta| delta.index.keys()) {
            let entries = Index::new(self.repo).index_entries(index, path.as_bstr())?;
            if !entries.is_empty() {
                facts.index.insert(path.clone(), entries);
            }
        }
        Ok(facts)
    }

    /// What the user edited: what differs within one of these pairs, of which each is the end of
    /// something recorded and the state that was found next. As it is now, and as `goal` has it.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read.
    pub fn edited(
        &self,
        gaps: &[(&Checkpoint, &Checkpoint)],
        now: &Checkpoint,
        goal: &Checkpoint,
    ) -> Result<BTreeMap<BString, Change<Option<FileState>>>> {
        let mut edited = BTreeMap::new();
        for (left, found) in gaps {
            for path in self.file_changes(left, found)?.into_keys() {
                let state = |checkpoint| self.captured_file(checkpoint, path.as_bstr());
                edited.insert(path.clone(), Change::new(state(now)?, state(goal)?));
            }
        }
        Ok(edited)
    }

    fn present(&self, now: &Checkpoint, path: &BStr) -> Result<Present> {
        if let Some(state) = self.captured_file(now, path)? {
            return Ok(Present::File(state));
        }
        Ok(match Worktree::new(self.repo).find(path)? {
            Found::Absent => Present::Absent,
            Found::Behind(parent) => Present::Behind(parent),
            Found::There(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                Present::Directory(Worktree::new(self.repo).list_below(path)?)
            }
            // There, but not captured: ignored by now, or over a limit.
            Found::There(stat) if kind_of(&stat).is_some() => {
                match Worktree::new(self.repo).state(path, self.repo.hash_kind()) {
                    Ok(Some(state)) => Present::NotCaptured(state),
                    Ok(None) => Present::Absent,
                    Err(_) => Present::Other,
                }
            }
            Found::There(_) => Present::Other,
        })
    }
}
