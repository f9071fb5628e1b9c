//! The present state of only those paths and refs that an undo or redo would touch.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::scan::found::as_path;
use crate::git::scan::nested::{repository_below, tree_state, whole_state};
use crate::git::worktree::identity::state_of;
use crate::git::worktree::stat::{OPEN, file_state, kind_of, mode_of};
use crate::git::worktree::{Lookup, Worktree};
use crate::model::bytes::{in_quotes, quoted_line, shell_word};
use crate::model::checkpoint::{Aside, Change, Checkpoint, Delta, FileState, IndexEntry, Reason};
use crate::model::path::{all_parents, is_at_or_below};
use crate::model::planner::{Occupant, Present, Standing, TurnDelta};
use crate::model::shelf::Place;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};

impl Checkpoints<'_> {
    /// Looks at everything that these turns touch. `now` is the rescue checkpoint.
    pub fn present(&self, turns: &[TurnDelta], now: &Checkpoint, index: &gix::index::State) -> Result<Present> {
        let mut present = Present {
            branches: now.branches.clone(),
            symbolic: now.symbolic.clone(),
            head: now.head.clone(),
            stash: now.stash.clone(),
            operation: now.operation.clone(),
            staged: self.staged(now)?,
            ..Present::default()
        };
        let deltas = || turns.iter().map(|turn| &turn.delta);
        check_readable(now, deltas())?;
        let mut files: BTreeMap<&BString, BTreeSet<ObjectId>> = BTreeMap::new();
        for (path, change) in deltas().flat_map(|delta| &delta.files) {
            files.entry(path).or_default().extend(change.from.iter().chain(&change.to).map(|file| file.id));
        }
        for (path, known) in files {
            let there = self.occupant(now, path.as_bstr(), &known)?;
            if there == Occupant::Absent && now.index.leaves_out(path) {
                present.left_out.insert(path.clone());
            }
            present.files.insert(path.clone(), there);
        }
        let returns = turns.iter().flat_map(|turn| &turn.returns.directories).map(|directory| &directory.path);
        for path in deltas().flat_map(|delta| delta.directories.keys()).chain(returns) {
            match Worktree::new(self.repo).find(path.as_bstr())? {
                Lookup::There(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    present.directories.insert(path.clone(), captured_mode(now, path.as_bstr(), &stat));
                }
                Lookup::There(_) => drop(present.behind.insert(path.clone(), path.clone())),
                Lookup::Behind(above) => drop(present.behind.insert(path.clone(), above)),
                Lookup::Absent => {}
            }
        }
        let changed =
            deltas().flat_map(|delta| delta.files.keys().chain(delta.directories.keys()).chain(delta.aside.keys()));
        for path in all_parents(changed.map(|path| path.as_bstr())) {
            match Worktree::new(self.repo).find(path)? {
                Lookup::There(stat)
                    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                        && captured_mode(now, path, &stat) & OPEN != OPEN =>
                {
                    present.closed.insert(path.to_owned(), captured_mode(now, path, &stat));
                }
                Lookup::Absent => drop(present.missing.insert(path.to_owned(), now.modes.usual.directory)),
                Lookup::There(_) | Lookup::Behind(_) => {}
            }
        }
        for (path, change) in deltas().flat_map(|delta| &delta.aside) {
            let stores = change.from.iter().chain(&change.to).map(|aside| &aside.store);
            for store in stores {
                if let Some(state) = state_of(&self.repo.aside_path(store)) {
                    present.kept.insert(store.clone());
                    present.states.insert(Place::Store(store.clone()), state);
                }
            }
            if let Some(state) = state_of(&self.repo.top().join(as_path(path.as_bstr()))) {
                present.states.insert(Place::Path(path.clone()), state);
            }
            let standing = match Worktree::new(self.repo).find(path.as_bstr())? {
                Lookup::There(found) => {
                    if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                        self.look_into(path, change.from.as_ref(), now, &mut present);
                        let went_whole = change.from.iter().chain(&change.to).any(|it| it.tree.is_some());
                        if went_whole
                            && !Objects::new(self.repo).entries_below(now.worktree, path.as_bstr())?.is_empty()
                        {
                            present.tracked.insert(path.clone());
                        }
                    }
                    Standing::Something(file_state(&found))
                }
                Lookup::Absent => Standing::Nothing,
                Lookup::Behind(above) => {
                    present.behind.insert(path.clone(), above);
                    Standing::Nothing
                }
            };
            present.aside.insert(path.clone(), standing);
        }
        let returns = turns.iter().flat_map(|turn| turn.returns_of_staged().map(|known| &known.path));
        let staged = turns.iter().flat_map(|turn| turn.staged.keys()).chain(returns);
        for path in deltas().flat_map(|delta| delta.index.keys()).chain(staged) {
            let entries = Index::new(self.repo).index_entries(index, path.as_bstr())?;
            if !entries.is_empty() {
                present.index.insert(path.clone(), entries);
            }
        }
        Ok(present)
    }

    /// Looks into a directory that would be moved as a whole.
    fn look_into(&self, path: &BString, left: Option<&Aside>, now: &Checkpoint, present: &mut Present) {
        let worktree = Worktree::new(self.repo);
        if repository_below(&worktree.path().join(as_path(path.as_bstr()))).is_some() {
            present.repositories.insert(path.clone());
        }
        let Some(left) = left.and_then(|left| left.tree.as_ref()) else { return };
        // Ignored by now, it is in no list.
        let listed = now.skipped.iter().find(|skipped| skipped.path == *path).and_then(whole_state);
        if listed.or_else(|| tree_state(worktree, path.as_bstr())).as_ref() != Some(left) {
            present.touched.insert(path.clone());
        }
    }

    /// What an operation in progress has staged, or left unmerged.
    fn staged(&self, now: &Checkpoint) -> Result<BTreeSet<BString>> {
        if !now.operation.is_under_way() {
            return Ok(BTreeSet::new());
        }
        let objects = Objects::new(self.repo);
        let staged = objects.changed_paths(objects.head_tree(&now.head)?, now.index.tree)?;
        let is_unmerged = |entries: &[IndexEntry]| entries.iter().any(|entry| entry.stage > 0);
        let unmerged = now.index.special.iter().filter(|(_, entries)| is_unmerged(entries));
        Ok(staged.into_iter().chain(unmerged.map(|(path, _)| path.clone())).collect())
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
            let mut unknown = self.left_out(left, new)?;
            if !std::ptr::eq(*found, now) {
                // Between two turns: the one that is walked over next knew it, and did not capture it.
                let gone = changes.iter().filter(|(_, change)| change.to.is_none()).map(|(path, _)| path);
                unknown.extend(self.left_out(found, gone)?);
            }
            for path in changes.into_keys().filter(|path| !unknown.contains(path)) {
                let captured = self.captured_file(now, path.as_bstr())?;
                let uncaptured = || Worktree::new(self.repo).readable(path.as_bstr(), self.repo.hash_kind());
                let as_it_is = captured.or_else(uncaptured);
                let as_it_was = self.captured_file(goal, path.as_bstr())?;
                edited.insert(path, Change::new(as_it_is, as_it_was));
            }
        }
        Ok(edited)
    }

    /// What is at a path; these contents of it are in the records of turns.
    fn occupant(&self, now: &Checkpoint, path: &BStr, known: &BTreeSet<ObjectId>) -> Result<Occupant> {
        if let Some(state) = self.captured_file(now, path)? {
            return Ok(Occupant::File(state));
        }
        if now.is_in_repository(path) {
            return Ok(Occupant::Other);
        }
        Ok(match Worktree::new(self.repo).find(path)? {
            Lookup::Absent => Occupant::Absent,
            Lookup::Behind(parent) => Occupant::Behind(parent),
            Lookup::There(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                Occupant::Directory(Worktree::new(self.repo).list_below(path)?)
            }
            // There, but not captured: ignored by now, over a limit, or private.
            Lookup::There(stat) if kind_of(&stat).is_some() => {
                match Worktree::new(self.repo).state(path, self.repo.hash_kind()) {
                    // Closed to others since, for example: nothing in it could be lost.
                    Ok(Some(state)) if known.contains(&state.id) => Occupant::File(state),
                    Ok(Some(state)) => Occupant::NotCaptured(state),
                    Ok(None) => Occupant::Absent,
                    Err(_) => Occupant::Other,
                }
            }
            Lookup::There(_) => Occupant::Other,
        })
    }
}

/// A directory's mode when it was captured: it may be open only for that.
fn captured_mode(now: &Checkpoint, directory: &BStr, stat: &rustix::fs::Stat) -> u32 {
    let key = BString::from([directory.as_bytes(), b"/"].concat());
    now.modes.unusual.get(&key).copied().unwrap_or_else(|| mode_of(stat))
}

/// Refuses where the turns changed something in a directory that may not be looked into.
fn check_readable<'d>(now: &Checkpoint, deltas: impl Iterator<Item = &'d Delta>) -> Result<()> {
    let closed: Vec<&BStr> = (now.skipped.iter())
        .filter(|skipped| skipped.reason == Reason::Unreadable)
        .map(|skipped| skipped.path.as_bstr())
        .collect();
    if closed.is_empty() {
        return Ok(());
    }
    let changed = deltas.flat_map(|delta| delta.files.keys().chain(delta.directories.keys()).chain(delta.aside.keys()));
    for path in changed {
        let above = closed.iter().find(|closed| path != *closed && is_at_or_below(path.as_bstr(), closed));
        if let Some(directory) = above {
            let line = quoted_line(&format!("chmod u+rwx {}", shell_word(directory.as_bytes())));
            let directory = in_quotes(directory);
            return Err(Refusal::new(
                Code::Conflict,
                format!("{directory} cannot be read, and a turn changed what is in it"),
            )
            .hint(format!("run {line} at the top of the worktree, then the same command again"))
            .paths([path.clone()])
            .into());
        }
    }
    Ok(())
}
