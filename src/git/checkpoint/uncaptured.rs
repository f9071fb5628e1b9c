//! What was there before a turn and not captured, and what the turn moved of it to where it is captured, or moved aside. It
//! may be the only copy: undo gives it back under its old name, and leaves alone what the turn is not proven to have made.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::objects::tree::file_kind;
use crate::git::scan::found::Scan;
use crate::git::worktree::Worktree;
use crate::git::worktree::identity::Identity;
use crate::model::bytes::exact;
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState, Kind, Reason, Uncaptured};
use crate::model::path::{is_at_or_below, parents};
use crate::model::turn::Turn;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::Dev;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Of no more than these it is known which they are, so that a look stays quick.
const MOST: usize = 2000;

/// What is looked for among what is new at the end of a turn.
struct Movers<'a> {
    checkpoints: Checkpoints<'a>,
    turn: &'a Turn,
    before: &'a Checkpoint,
    /// The paths of before, by what tells the files from each other.
    known: BTreeMap<&'a str, &'a BString>,
    /// The device of which the clock is believed.
    device: Option<Dev>,
    /// Directories that nothing was found out about.
    passed: BTreeSet<BString>,
}

impl Checkpoints<'_> {
    /// Which files and directories they are that exist and are not captured. An ignored directory is one thing.
    pub fn uncaptured(&self, scan: &Scan) -> BTreeMap<BString, Uncaptured> {
        let mut paths: BTreeSet<&BStr> = BTreeSet::new();
        for skipped in scan.skipped.iter().filter(|skipped| skipped.is_movable()) {
            let path = skipped.path.as_bstr();
            // A directory with nothing else in it may go along.
            let above =
                parents(path).filter(|above| skipped.reason == Reason::Private && scan.directories.contains(*above));
            paths.extend(above.chain([path]));
        }
        paths.extend(scan.ignored.iter().map(|path| path.as_bstr()));
        let worktree = Worktree::new(self.repo);
        let known = paths.into_iter().take(MOST);
        known.filter_map(|path| Some((path.to_owned(), worktree.identity(path)?.known))).collect()
    }

    /// What is new at the end of a turn and was there before, by its new name, with its old one where that is known.
    pub fn came(&self, turn: &Turn, before: &Checkpoint, changed: &Delta) -> Result<BTreeMap<String, Option<String>>> {
        let mut came = BTreeMap::new();
        if turn.made.is_some() {
            return Ok(came);
        }
        let known = before.uncaptured.iter().map(|(path, known)| (known.file.as_str(), path)).collect();
        let device = Worktree::new(self.repo).local_device();
        let mut movers = Movers { checkpoints: *self, turn, before, known, device, passed: BTreeSet::new() };
        let files = changed.files.iter().filter(|(_, change)| change.to.is_some()).map(|(path, _)| path);
        let directories = changed.directories.iter().filter(|(_, change)| change.to.is_some()).map(|(path, _)| path);
        let aside = changed.aside.iter().filter(|(_, change)| change.to.is_some()).map(|(path, _)| path);
        let all: BTreeSet<&BString> = files.chain(directories).chain(aside).collect();
        let mut unknown = Vec::new();
        for path in all {
            match movers.find(path.as_bstr())? {
                Some((top, _)) if top != *path && movers.is_made(path.as_bstr()) => {
                    came.insert(exact::encode(path), Some(exact::encode(path)));
                }
                Some((top, old)) => drop(came.insert(exact::encode(&top), Some(exact::encode(&old)))),
                None => unknown.push(path),
            }
        }
        let is_new = |path: &&BString| changed.files.get(*path).is_some_and(|change| change.from.is_none());
        unknown.retain(|path| is_new(path) && movers.is_older(path.as_bstr()));
        if !unknown.is_empty() && is_all_explained(changed) {
            let captured = self.contents(before)?;
            // What was captured under another name is in the record of the turn.
            unknown.retain(|path| changed.files[*path].to.is_some_and(|to| !captured.contains(&to.id)));
            came.extend(unknown.into_iter().map(|path| (exact::encode(path), None)));
        }
        Ok(came)
    }

    /// The contents of all files that were captured.
    fn contents(&self, before: &Checkpoint) -> Result<HashSet<ObjectId>> {
        let objects = Objects::new(self.repo);
        let all = objects.tree_changes(objects.write_empty_tree()?, before.worktree)?;
        Ok(all.into_values().filter_map(|change| Some(change.to?.1)).collect())
    }

    /// What a turn made where a repository was before, that is none any more: in a repository nothing is captured, so that age
    /// has to prove it.
    pub fn made_in_repositories(
        &self,
        turn: &Turn,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<BTreeMap<String, Option<String>>> {
        let device = Worktree::new(self.repo).local_device();
        let movers =
            Movers { checkpoints: *self, turn, before, known: BTreeMap::new(), device, passed: BTreeSet::new() };
        let mut made = BTreeMap::new();
        for repository in before.skipped.iter().filter(|skipped| skipped.reason == Reason::Repository) {
            for (path, _) in Objects::new(self.repo).entries_below(after.worktree, repository.path.as_bstr())? {
                if self.captured_file(before, path.as_bstr())?.is_none() && movers.is_made(path.as_bstr()) {
                    made.insert(exact::encode(&path), Some(exact::encode(&path)));
                }
            }
        }
        Ok(made)
    }

    /// What `git stash` took along that was not captured and is gone, as the stash list has it.
    pub fn stashed(&self, before: &Checkpoint, changed: &Delta) -> Result<BTreeMap<String, FileState>> {
        let (objects, mut stashed) = (Objects::new(self.repo), BTreeMap::new());
        let new = changed.stash.iter().flat_map(|stash| stash.to.iter().filter(|entry| !stash.from.contains(entry)));
        for entry in new {
            // The commit of what was untracked, or ignored, has no parent.
            let Some(untracked) = objects.parents(entry.id)?.get(2).copied() else { continue };
            let found = objects.tree_changes(objects.write_empty_tree()?, objects.commit_tree(untracked)?)?;
            for (path, Change { to: slot, .. }) in found {
                let mut is_known = [path.as_bstr()].into_iter().chain(parents(path.as_bstr()));
                let known = is_known.find_map(|path| before.uncaptured.get(path));
                let kind = slot.and_then(|(mode, id)| Some((file_kind(mode.kind())?, id)));
                let (Some(known), Some((kind, id))) = (known, kind) else { continue };
                if Worktree::new(self.repo).has_file(path.as_bstr()) {
                    continue;
                }
                let state = FileState { kind, id, mode: before.modes.usual.of(kind) };
                let itself = before.uncaptured.get(&path).map(|_| known);
                stashed.insert(exact::encode(&path), as_before(state, itself));
            }
        }
        Ok(stashed)
    }

    /// What was stashed comes back with its directories.
    fn give_back_stashed(&self, turn: &Turn, before: &Checkpoint, delta: &mut Delta) -> Result<()> {
        for (path, state) in turn.stashed.iter().filter_map(|(path, state)| Some((exact::decode(path)?, *state))) {
            for above in parents(path.as_bstr()) {
                if self.captured_directory(before, above)?.is_none() {
                    let mode = before.uncaptured.get(above).map_or(before.modes.usual.directory, |known| known.mode);
                    delta.directories.entry(above.to_owned()).or_insert(Change::new(Some(mode), None));
                }
            }
            let change = delta.files.entry(path).or_insert(Change::new(None, None));
            change.from = change.from.or(Some(state));
        }
        Ok(())
    }

    /// Gives a turn's difference its other half: what it moved goes back to where it was.
    pub fn give_back(&self, turn: &Turn, before: &Checkpoint, delta: &mut Delta) -> Result<()> {
        let path = |text: &str| exact::decode(text).unwrap_or_default();
        let moved: BTreeMap<BString, Option<BString>> =
            turn.came.iter().map(|(new, old)| (path(new), old.as_deref().map(path))).collect();
        let old_name = |path: &BStr| -> Option<BString> {
            let top = [path].into_iter().chain(parents(path)).find(|top| moved.contains_key(*top))?;
            let old = moved.get(top)?.as_ref().filter(|old| *old != top)?;
            Some([old.as_slice(), &path[top.len()..]].concat().into())
        };
        delta.files.retain(|path, change| change.from.is_some() || moved.get(path) != Some(&None));
        let named = |path: &BString| Some((path.clone(), old_name(path.as_bstr())?));
        for (path, old) in delta.aside.keys().filter_map(named).collect::<Vec<_>>() {
            give_back_aside(delta, &path, old);
        }
        for (path, old) in delta.files.keys().filter_map(named).collect::<Vec<_>>() {
            let Some(state) = delta.files.get(&path).and_then(|change| change.to) else { continue };
            let state = as_before(state, before.uncaptured.get(&old));
            let change = delta.files.entry(old.clone()).or_insert(Change::new(None, None));
            change.from = change.from.or(Some(state));
            if change.from == change.to {
                delta.files.remove(&old);
            }
        }
        for (path, old) in delta.directories.keys().filter_map(named).collect::<Vec<_>>() {
            let made = delta.directories.get(&path).filter(|change| change.from.is_none()).and_then(|change| change.to);
            if made.is_some() && self.captured_directory(before, old.as_bstr())?.is_none() {
                let as_it_was = before.uncaptured.get(&old).map(|known| known.mode).or(made);
                delta.directories.entry(old).or_insert(Change::new(as_it_was, None));
            }
        }
        self.give_back_stashed(turn, before, delta)
    }
}

/// What was moved aside as a whole comes back so, with the directories that were there and empty.
fn give_back_aside(delta: &mut Delta, path: &BString, old: BString) {
    let kept = delta.aside.get(path).and_then(|change| change.to.clone());
    let is_in = |other: &BString| is_at_or_below(other.as_bstr(), old.as_bstr());
    let has_files = delta.files.iter().any(|(other, change)| is_in(other) && *other != old && change.from.is_some());
    if kept.is_none() || has_files || delta.aside.contains_key(&old) {
        return;
    }
    delta.directories.retain(|directory, _| !is_in(directory));
    delta.aside.insert(old, Change::new(kept, None));
}

/// A file that was moved, with the mode that it had before.
fn as_before(state: FileState, known: Option<&Uncaptured>) -> FileState {
    match known {
        Some(known) if state.kind != Kind::Symlink => {
            FileState { kind: Kind::of_mode(known.mode), mode: known.mode, ..state }
        }
        _ => state,
    }
}

/// Whether no captured file is gone: then none of them is what is new.
fn is_all_explained(changed: &Delta) -> bool {
    // One of these may have been moved, and changed then: it is as old as before.
    changed.files.values().all(|change| change.to.is_some())
}

impl Movers<'_> {
    fn identity(&self, path: &BStr) -> Option<Identity> {
        Worktree::new(self.checkpoints.repo).identity(path)
    }

    /// What was moved of a path: the file itself or a directory above it, with its old name.
    fn find(&mut self, path: &BStr) -> Result<Option<(BString, BString)>> {
        if self.known.is_empty() {
            return Ok(None);
        }
        let above: Vec<&BStr> = parents(path).collect();
        for top in above.into_iter().rev().chain([path]) {
            if self.passed.contains(top) {
                continue;
            }
            let was_there = top != path && self.checkpoints.captured_directory(self.before, top)?.is_some();
            if let Some(old) = (!was_there).then(|| self.old_name(top)).flatten() {
                return Ok(Some((top.to_owned(), old)));
            }
            if top != path {
                self.passed.insert(top.to_owned());
            }
        }
        Ok(None)
    }

    /// Where it was before, if it is gone from there.
    fn old_name(&self, path: &BStr) -> Option<BString> {
        let found = self.identity(path).filter(|found| !found.linked)?;
        let old = *self.known.get(found.known.file.as_str())?;
        let stayed = self.identity(old.as_bstr()).is_some_and(|now| now.known.file == found.known.file);
        (!stayed).then(|| old.clone())
    }

    /// When a file came to be, and when the turn began, by a clock that is believed.
    fn times(&self, path: &BStr) -> Option<(u64, u64)> {
        let found = self.identity(path).filter(|found| !found.linked && Some(found.device) == self.device)?;
        Some((found.born?, self.turn.began?))
    }

    fn is_older(&self, path: &BStr) -> bool {
        self.times(path).is_some_and(|(born, began)| born < began)
    }

    fn is_made(&self, path: &BStr) -> bool {
        self.times(path).is_some_and(|(born, began)| born >= began)
    }
}
