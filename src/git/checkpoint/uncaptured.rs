//! What was there before a turn and not captured, and what the turn moved of it to where it is captured, or moved aside. It
//! may be the only copy: undo gives it back under its old name, and leaves alone what the turn is not proven to have made.

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::file_kind;
use crate::git::scan::found::Scan;
use crate::git::worktree::Worktree;
use crate::git::worktree::identity::{Identity, is_directory, is_telling, size_in};
use crate::model::bytes::exact;
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState, Kind, Reason, Skipped, Uncaptured};
use crate::model::path::{is_at_or_below, parents, up_from};
use crate::model::turn::{Brought, Turn};
use anyhow::{Error, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::Dev;
use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Of no more than these it is known which they are, so that a look stays quick.
const MOST: usize = 2000;

/// In a second.
const NANOS: u64 = 1_000_000_000;

/// Among more than these nobody looks for those that changed places.
const FEW: usize = 200;

/// What a turn moved of what was not captured.
#[derive(Debug, Default)]
pub struct UncapturedMoves {
    /// What is under another name, by that, with the old one where it is known.
    pub came: BTreeMap<String, Option<String>>,
    /// What is where nothing is captured, and was put there.
    pub placed: BTreeMap<String, Option<String>>,
    /// What may be a copy, with the name of what it may be a copy of.
    pub copies: BTreeMap<String, String>,
}

/// What is not captured at the end of a turn.
#[derive(Clone, Copy)]
pub struct End<'a> {
    /// What is ignored; of a directory nothing that is in it.
    pub ignored: &'a [BString],
    /// What else is not captured.
    pub skipped: &'a [Skipped],
    /// The index, which knows of files that were added before which ones they were.
    pub index: &'a gix::index::File,
    /// What others made between the turn's calls and is not captured, whatever became of it.
    pub between: &'a BTreeMap<BString, Uncaptured>,
}

/// By what a thing is known under another name.
#[derive(Clone, Copy)]
enum By {
    /// It is the very same.
    Identity,
    /// It has come from there to another file system, or was copied with its time, and the old one is gone or changed.
    State,
}

/// What is looked for among what is new at the end of a turn.
struct Movers<'a> {
    checkpoints: Checkpoints<'a>,
    turn: &'a Turn,
    before: &'a Checkpoint,
    /// The paths of before, by what tells the files from each other.
    known: BTreeMap<&'a str, &'a BString>,
    /// The paths of before, by what copies have in common with them.
    states: BTreeMap<&'a str, Vec<&'a BString>>,
    /// Of what it is known where it is.
    taken: BTreeSet<&'a BString>,
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
        self.identities(paths.into_iter())
    }

    /// Which files and directories are at these paths.
    pub fn identities<'p>(&self, paths: impl Iterator<Item = &'p BStr>) -> BTreeMap<BString, Uncaptured> {
        let worktree = Worktree::new(self.repo);
        paths.take(MOST).filter_map(|path| Some((path.to_owned(), worktree.identity(path)?.known))).collect()
    }

    /// What a turn moved that was there before and not captured, and what may be a copy of such a thing.
    pub fn moves(&self, turn: &Turn, before: &Checkpoint, changed: &Delta, end: End<'_>) -> Result<UncapturedMoves> {
        let mut found = UncapturedMoves::default();
        if turn.made.is_some() {
            return Ok(found);
        }
        let began = &before.uncaptured;
        let mut before = Cow::Borrowed(before);
        if !end.between.is_empty() {
            before.to_mut().uncaptured.extend(end.between.clone());
        }
        let mut movers = Movers::new(*self, turn, &before);
        // What has another in its place by now may have been moved away before that.
        for (path, known) in began {
            movers.known.entry(&known.file).or_insert(path);
        }
        let files = changed.files.iter().filter(|(_, change)| change.to.is_some()).map(|(path, _)| path);
        let directories = changed.directories.iter().filter(|(_, change)| change.to.is_some()).map(|(path, _)| path);
        let aside = changed.aside.iter().filter(|(_, change)| change.to.is_some()).map(|(path, _)| path);
        let listed: BTreeSet<&BString> = files.chain(directories).chain(aside).collect();
        let hidden: BTreeSet<&BString> = movers.hidden(end).filter(|path| !listed.contains(path)).collect();
        let mut unknown: BTreeSet<&BString> = listed.union(&hidden).copied().collect();
        for by in [By::Identity, By::State] {
            movers.passed.clear();
            for path in std::mem::take(&mut unknown) {
                match movers.find(path.as_bstr(), by)? {
                    Some(known) if movers.is_brought(path, &known) => movers.keep(&mut found, known, &hidden),
                    Some((top, old))
                        if top != *path && movers.is_made(path.as_bstr()) && !end.between.contains_key(old) =>
                    {
                        found.came.insert(exact::encode(path), Some(exact::encode(path)));
                    }
                    Some((top, old)) => movers.keep(&mut found, (top, old), &hidden),
                    None => drop(unknown.insert(path)),
                }
            }
        }
        let kept = movers.keep_brought(&mut found, changed, &hidden);
        unknown.retain(|path| !kept.contains(*path));
        movers.take_places();
        movers.note_placed(&mut found, changed);
        self.note_older(&movers, &mut found, changed, &unknown, end.index)?;
        self.note_copies(&movers, &mut found, changed, &unknown)?;
        Ok(found)
    }

    /// What calls have moved that was there before the turn and not captured, or came between its calls, after another one has changed
    /// this: each as it was when that was first known.
    pub fn brought(
        &self,
        turn: &Turn,
        before: &Checkpoint,
        between: BTreeMap<BString, Uncaptured>,
        changed: &Delta,
    ) -> Result<BTreeMap<String, Brought>> {
        let mut brought = turn.brought.clone();
        let mut before = Cow::Borrowed(before);
        if !between.is_empty() {
            before.to_mut().uncaptured.extend(between);
        }
        let mut movers = Movers::new(*self, turn, &before);
        if !brought.is_empty() {
            let moved = self.surely_came_from(&changed.files)?.into_iter();
            let moved: BTreeMap<String, String> =
                moved.map(|(new, old)| (exact::encode(&old), exact::encode(&new))).collect();
            for known in brought.values_mut() {
                if let Some(new) = moved.get(&known.to) {
                    known.to.clone_from(new);
                }
            }
            brought.retain(|from, _| !movers.is_back(from));
        }
        let files = changed.files.iter().filter(|(_, change)| change.to.is_some());
        let aside = changed.aside.iter().filter(|(_, change)| change.to.is_some());
        let all = files.map(|(path, change)| (path, change.to)).chain(aside.map(|(path, _)| (path, None)));
        for (path, file) in all.take(MOST) {
            let Some((top, old)) = movers.find(path.as_bstr(), By::Identity)? else { continue };
            let to = exact::encode(path);
            // What is known to have been elsewhere in a directory has come along with that all the same.
            let is_of_it = || !movers.is_made(path.as_bstr()) && brought.values().all(|known| known.to != to);
            if top == *path || is_of_it() {
                let from = exact::encode(&below(&top, old, path));
                let first = brought.get(&from).and_then(|known| known.file);
                brought.insert(from, Brought { to, file: first.or(file) });
            }
        }
        Ok(brought)
    }

    /// The files that a turn's calls moved from where they were not captured, which are not there again, as they were after that: another
    /// call may have changed or deleted them since.
    pub fn taken_away(&self, turn: &Turn, before: &Checkpoint, changed: &Delta) -> BTreeMap<String, FileState> {
        let mut taken = BTreeMap::new();
        let goes_away =
            |path: &BString| up_from(path.as_bstr()).any(|top| turn.placed.contains_key(&exact::encode(top)));
        // What is where nothing is captured goes back as it is.
        let is_whole = |new: &String| {
            turn.placed.contains_key(new) || exact::decode(new).is_some_and(|new| changed.aside.contains_key(&new))
        };
        let came_whole = turn.came.iter().filter(|(new, _)| is_whole(new));
        let whole: Vec<BString> = came_whole.filter_map(|(_, old)| exact::decode(old.as_ref()?)).collect();
        for (from, Brought { to, file }) in &turn.brought {
            let (Some(new), Some(old), Some(file)) = (exact::decode(to), exact::decode(from), *file) else { continue };
            let is_as_it_was = changed.files.get(&new).is_some_and(|change| change.to == Some(file));
            let goes_back = is_as_it_was && old_name(&turn.came, &new).as_ref() == Some(&old);
            let is_known = goes_back || whole.iter().any(|top| is_at_or_below(old.as_bstr(), top.as_bstr()));
            let stays = Worktree::new(self.repo).has_file(old.as_bstr()) && !goes_away(&old);
            if !is_known && !stays {
                taken.insert(from.clone(), as_before(file, before.uncaptured.get(&old)));
            }
        }
        taken
    }

    /// Notes what is older than the turn and came from elsewhere.
    fn note_older(
        &self,
        movers: &Movers<'_>,
        found: &mut UncapturedMoves,
        changed: &Delta,
        unknown: &BTreeSet<&BString>,
        index: &gix::index::File,
    ) -> Result<()> {
        let is_new = |path: &BString| changed.files.get(path).is_some_and(|change| change.from.is_none());
        let older = unknown.iter().filter(|path| is_new(path) && movers.is_older(path.as_bstr()));
        let mut older: Vec<&BString> = older.copied().collect();
        if !older.is_empty() && is_all_explained(changed) {
            let captured = self.contents(movers.before)?;
            // What was captured under another name is in the record of the turn.
            older.retain(|path| changed.files[*path].to.is_some_and(|to| !captured.contains(&to.id)));
            let begun = (!older.is_empty()).then(|| Index::new(self.repo).begun()).flatten();
            let mut elsewhere = Vec::new();
            for path in older {
                let mut indexes = [Some(index), begun.as_ref()].into_iter().flatten();
                if !indexes
                    .try_fold(false, |is, index| Ok::<_, Error>(is || self.was_elsewhere(movers, path, index)?))?
                {
                    elsewhere.push(path);
                }
            }
            older = elsewhere;
            found.came.extend(older.into_iter().map(|path| (exact::encode(path), None)));
        }
        Ok(())
    }

    /// Whether a file is one that was tracked under another name, where there is another one now: the index knows which it was.
    fn was_elsewhere(&self, movers: &Movers<'_>, path: &BString, index: &gix::index::File) -> Result<bool> {
        let found = Worktree::new(self.repo).stat(path.as_bstr())?.zip(movers.identity(path.as_bstr()));
        let Some(((stat, _), Identity { born: Some(born), .. })) = found else { return Ok(false) };
        // git keeps so much of the number, and none where a file system has none.
        let number = u32::try_from(stat.st_ino & u64::from(u32::MAX)).unwrap_or_default();
        // A number is used again: what had it when the file was not there yet is another.
        let is_since = |entry: &gix::index::Entry| {
            let changed = entry.stat.ctime;
            (u64::from(changed.secs), u64::from(changed.nsecs))
                >= (born / NANOS, if changed.nsecs == 0 { 0 } else { born % NANOS })
        };
        let is_it = |entry: &&gix::index::Entry| number != 0 && entry.stat.ino == number && is_since(entry);
        for entry in index.entries().iter().filter(is_it) {
            let old = entry.path(index);
            if old != path.as_bstr() && self.captured_file(movers.before, old)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Notes what may be the only copy of what was not captured and is changed or gone: nothing else is known of that.
    fn note_copies(
        &self,
        movers: &Movers<'_>,
        found: &mut UncapturedMoves,
        changed: &Delta,
        unknown: &BTreeSet<&BString>,
    ) -> Result<()> {
        let mut copies: Vec<(&BString, &BString)> = Vec::new();
        let gone = LazyCell::new(|| movers.gone(found));
        for path in unknown.iter().filter(|path| !found.came.contains_key(&exact::encode(path))) {
            let is_aside = changed.aside.contains_key(*path);
            let old = movers.copied_from(path, is_aside);
            // What was saved by a rename has nothing in common with what it was.
            copies.extend(old.or_else(|| if is_aside { *gone } else { None }).map(|old| (*path, old)));
        }
        if !copies.is_empty() {
            let captured = self.contents(movers.before)?;
            let to = |path: &BString| changed.files.get(path).and_then(|change| change.to);
            copies.retain(|(path, _)| !to(path).is_some_and(|to| captured.contains(&to.id)));
        }
        found.copies = copies.into_iter().map(|(new, old)| (exact::encode(new), exact::encode(old))).collect();
        Ok(())
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
        let movers = Movers::new(*self, turn, before);
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
                let mut is_known = up_from(path.as_bstr());
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

    /// What was stashed, or changed after it was moved, comes back with its directories.
    fn give_back_taken(&self, turn: &Turn, before: &Checkpoint, delta: &mut Delta) -> Result<()> {
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
        self.give_back_taken(turn, before, delta)?;
        let is_of_nowhere = |path: &BString| turn.came.get(&exact::encode(path)) == Some(&None);
        delta.files.retain(|path, change| change.from.is_some() || !is_of_nowhere(path));
        let named = |path: &BString| Some((path.clone(), old_name(&turn.came, path)?));
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
        Ok(())
    }
}

/// What a path was called before it, or the nearest above it, was moved: by the new names, the old ones.
fn old_name(came: &BTreeMap<String, Option<String>>, path: &BString) -> Option<BString> {
    if came.is_empty() {
        return None;
    }
    let mut tops = up_from(path.as_bstr());
    let (top, old) = tops.find_map(|top| Some((top, came.get(&exact::encode(top))?)))?;
    let old = exact::decode(old.as_ref()?).filter(|old| old != top)?;
    Some(below(top, &old, path))
}

/// What a path was called when that above it, or itself, had its old name.
fn below(top: &[u8], old: &[u8], path: &[u8]) -> BString {
    [old, &path[top.len()..]].concat().into()
}

/// What was moved aside as a whole comes back so, with the directories that were there and empty.
fn give_back_aside(delta: &mut Delta, path: &BString, old: BString) {
    let kept = delta.aside.get(path).and_then(|change| change.to.clone());
    let is_in = |other: &BString| is_at_or_below(other.as_bstr(), old.as_bstr());
    let has_files = delta.files.iter().any(|(other, change)| is_in(other) && *other != old && change.from.is_some());
    if kept.is_none() || has_files || delta.aside.get(&old).is_some_and(|change| change.from.is_some()) {
        return;
    }
    delta.directories.retain(|directory, _| !is_in(directory));
    delta.aside.entry(old).or_insert(Change::new(None, None)).from = kept;
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

impl<'a> Movers<'a> {
    fn new(checkpoints: Checkpoints<'a>, turn: &'a Turn, before: &'a Checkpoint) -> Self {
        let known = before.uncaptured.iter().map(|(path, known)| (known.file.as_str(), path)).collect();
        let mut states: BTreeMap<&str, Vec<&BString>> = BTreeMap::new();
        for (path, known) in &before.uncaptured {
            if let Some(state) = known.state.as_deref().filter(|state| is_telling(state)) {
                states.entry(state).or_default().push(path);
            }
        }
        let device = Worktree::new(checkpoints.repo).local_device();
        Self { checkpoints, turn, before, known, states, taken: BTreeSet::new(), device, passed: BTreeSet::new() }
    }

    fn identity(&self, path: &BStr) -> Option<Identity> {
        Worktree::new(self.checkpoints.repo).identity(path)
    }

    /// What no delta has, and may be what was under another name: ignored names that are new, and those whose places others
    /// may have taken.
    fn hidden<'p>(&self, end: End<'p>) -> impl Iterator<Item = &'p BString> {
        let known = &self.before.uncaptured;
        let is_whole = known.len() < MOST;
        let are_few = known.len() <= FEW;
        let skipped = &self.before.skipped;
        // What was made at once may be of one size and time.
        let is_anothers = move |path: &BString, now: &Uncaptured| {
            self.known.get(now.file.as_str()).is_some_and(|other| *other != path)
        };
        let is_another = move |path: &BString| {
            are_few && self.identity(path.as_bstr()).is_some_and(|now| is_anothers(path, &now.known))
        };
        let has_changed = move |now: &&Skipped| {
            let was = skipped.iter().find(|was| was.path == now.path).filter(|_| known.contains_key(&now.path));
            was.is_some_and(|was| was.state != now.state || is_another(&now.path))
        };
        let over_limits = end.skipped.iter().filter(has_changed).map(|now| &now.path);
        let is_hidden = move |path: &&BString| match known.get(*path) {
            // What only its place on the disk tells from what was there came with a copy of all.
            Some(was) => {
                let differs =
                    |now: &Uncaptured| now.file != was.file && (now.state != was.state || is_anothers(path, now));
                are_few && self.identity(path.as_bstr()).is_some_and(|now| differs(&now.known))
            }
            None => is_whole && !known.is_empty(),
        };
        end.ignored.iter().filter(is_hidden).take(MOST).chain(over_limits)
    }

    /// What was moved of a path: the file itself or a directory above it, with its old name.
    fn find(&mut self, path: &BStr, by: By) -> Result<Option<(BString, &'a BString)>> {
        if self.known.is_empty() {
            return Ok(None);
        }
        // The nearest first: something may have been moved into what was moved.
        for top in up_from(path) {
            if self.passed.contains(top) {
                continue;
            }
            let was_there = top != path && self.checkpoints.captured_directory(self.before, top)?.is_some();
            let old = match by {
                _ if was_there => None,
                By::Identity => self.old_name(top),
                By::State => self.name_by_state(top),
            };
            if let Some(old) = old {
                return Ok(Some((top.to_owned(), old)));
            }
            if top != path {
                self.passed.insert(top.to_owned());
            }
        }
        Ok(None)
    }

    /// Whether a call moved this along with what is above it: it may have been written anew since.
    fn is_brought(&self, path: &BString, (top, old): &(BString, &BString)) -> bool {
        let brought = self.turn.brought.get(&exact::encode(&below(top, old, path)));
        brought.is_some_and(|brought| brought.to == exact::encode(path))
    }

    /// Whether it is there again, the very same.
    fn is_back(&self, from: &str) -> bool {
        let Some(old) = exact::decode(from) else { return false };
        let is_it = |top: &BStr| {
            let known = self.before.uncaptured.get(top);
            known.is_some_and(|known| self.identity(top).is_some_and(|now| now.known.file == known.file))
        };
        up_from(old.as_bstr()).any(is_it) && Worktree::new(self.checkpoints.repo).has_file(old.as_bstr())
    }

    /// Keeps the files that calls moved and that are not to be known any more by what they are, as they were written anew since, or not by
    /// what is above them, as they were moved on in that. Gives which they are.
    fn keep_brought(
        &mut self,
        moves: &mut UncapturedMoves,
        changed: &Delta,
        hidden: &BTreeSet<&BString>,
    ) -> BTreeSet<BString> {
        let mut kept = BTreeSet::new();
        for (from, Brought { to, .. }) in &self.turn.brought {
            let (Some(new), Some(old)) = (exact::decode(to), exact::decode(from)) else { continue };
            let is_there = changed.files.get(&new).is_some_and(|change| change.to.is_some())
                || changed.aside.get(&new).is_some_and(|change| change.to.is_some());
            if !is_there || moves.came.contains_key(to) || old_name(&moves.came, &new).as_ref() == Some(&old) {
                continue;
            }
            match self.before.uncaptured.get_key_value(&old) {
                Some((old, _)) if self.taken.contains(old) || !self.is_changed(old) => continue,
                Some((old, _)) => self.keep(moves, (new.clone(), old), hidden),
                // It was in something of which nothing more was known.
                None if self.identity(old.as_bstr()).is_some() => continue,
                None => drop(moves.came.insert(to.clone(), Some(from.clone()))),
            }
            kept.insert(new);
        }
        kept
    }

    /// What is in the place of something that calls moved and that is known goes away, too.
    fn take_places(&mut self) {
        for (from, _) in self.turn.brought.iter().filter(|(_, brought)| brought.file.is_some()) {
            let Some(old) = exact::decode(from) else { continue };
            let Some((old, known)) = self.before.uncaptured.get_key_value(&old) else { continue };
            if self.identity(old.as_bstr()).is_some_and(|now| now.known.file != known.file) {
                self.taken.insert(old);
            }
        }
    }

    /// Keeps what was found.
    fn keep(&mut self, moves: &mut UncapturedMoves, (top, old): (BString, &'a BString), hidden: &BTreeSet<&BString>) {
        self.taken.insert(old);
        if hidden.contains(&top) {
            moves.placed.insert(exact::encode(&top), self.fingerprint(top.as_bstr()));
        }
        moves.came.insert(exact::encode(&top), Some(exact::encode(old)));
    }

    /// Notes what is in the old places, and no delta has: it came there in the turn.
    fn note_placed(&self, moves: &mut UncapturedMoves, changed: &Delta) {
        let is_captured = |path: &BString| {
            changed.files.get(path).is_some_and(|change| change.to.is_some())
                || changed.directories.get(path).is_some_and(|change| change.to.is_some())
                || changed.aside.get(path).is_some_and(|change| change.to.is_some())
        };
        for old in self.taken.iter().filter(|old| !is_captured(old)) {
            if self.identity(old.as_bstr()).is_some() {
                moves.placed.insert(exact::encode(old), self.fingerprint(old.as_bstr()));
            }
        }
    }

    /// Something that was over the limits, and is neither there nor known to have been moved.
    fn gone(&self, moves: &UncapturedMoves) -> Option<&'a BString> {
        let has_come = |old: &BString| moves.came.values().flatten().any(|came| *came == exact::encode(old));
        let mut skipped =
            self.before.skipped.iter().filter(|skipped| skipped.is_movable()).map(|skipped| &skipped.path);
        skipped.find(|old| self.identity(old.as_bstr()).is_none() && !has_come(old))
    }

    fn fingerprint(&self, path: &BStr) -> Option<String> {
        self.identity(path)?.known.state.filter(|state| !is_directory(state))
    }

    /// Where it was before, if it is gone from there.
    fn old_name(&self, path: &BStr) -> Option<&'a BString> {
        let found = self.identity(path).filter(|found| !found.linked)?;
        let old = *self.known.get(found.known.file.as_str())?;
        let stayed = self.identity(old.as_bstr()).is_some_and(|now| now.known.file == found.known.file);
        (!stayed).then_some(old)
    }

    /// Where that was before which this is a copy of, with its time, if it is not there any more as it was.
    fn name_by_state(&self, path: &BStr) -> Option<&'a BString> {
        if self.states.is_empty() {
            return None;
        }
        let found = self.identity(path)?;
        // What has stayed is itself.
        if self.before.uncaptured.get(path).is_some_and(|known| known.file == found.known.file) {
            return None;
        }
        let state = found.known.state?;
        let is_gone = |old: &&&BString| !self.taken.contains(**old) && self.is_changed(old);
        let alike: Vec<&&BString> = self.states.get(state.as_str())?.iter().filter(is_gone).collect();
        match alike[..] {
            [old] => Some(old),
            // Of several that were made at once, the one of the same name.
            _ => alike.into_iter().find(|old| file_name(old.as_bstr()) == file_name(path)).copied(),
        }
    }

    /// Whether what was at a path is not there any more, or a file is not as it was.
    fn is_changed(&self, old: &BString) -> bool {
        let Some(known) = self.before.uncaptured.get(old) else { return false };
        self.identity(old.as_bstr()).is_none_or(|now| {
            let has_changed = now.known.state != known.state && !known.state.as_deref().is_some_and(is_directory);
            now.known.file != known.file || has_changed
        })
    }

    /// What this may be a copy of, and nothing else is: a file of the same size; of directories, one of the same name, and
    /// any that is gone where this one is kept as a whole.
    fn copied_from(&self, path: &BString, is_aside: bool) -> Option<&'a BString> {
        if self.states.is_empty() || !self.is_made(path.as_bstr()) {
            return None;
        }
        let state = self.identity(path.as_bstr())?.known.state?;
        let is_alike = |old: &BString, was: &str| {
            if let Some(size) = size_in(was) {
                return size_in(&state) == Some(size);
            }
            let is_named_so = file_name(old.as_bstr()) == file_name(path.as_bstr());
            is_directory(was) && is_directory(&state) && (is_aside || is_named_so)
        };
        let all = self.before.uncaptured.iter().filter(|(old, known)| {
            *old != path && known.state.as_deref().is_some_and(|was| is_alike(old, was)) && !self.taken.contains(old)
        });
        all.map(|(old, _)| old).find(|old| self.is_changed(old))
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

fn file_name(path: &BStr) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
