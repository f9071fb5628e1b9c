//! What was there before a turn and not captured, and what the turn moved of it to where it is captured, or moved aside. It
//! may be the only copy: undo gives it back under its old name, and leaves alone what the turn is not proven to have made.

use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::movers::{End, MOST, Movers, UncapturedMoves, below, old_name};
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::file_kind;
use crate::git::scan::found::Scan;
use crate::git::worktree::Worktree;
use crate::git::worktree::identity::Identity;
use crate::model::bytes::exact;
use crate::model::call::ToolCall;
use crate::model::checkpoint::{Aside, Change, Checkpoint, Delta, FileState, Kind, Reason, Uncaptured};
use crate::model::path::{is_at_or_below, parents, up_from};
use crate::model::turn::{Brought, TakenFile, Turn};
use anyhow::{Error, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::borrow::Cow;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// In a second.
const NANOS: u64 = 1_000_000_000;

impl Checkpoints<'_> {
    /// Which files and directories they are that exist and are not captured. An ignored directory is one thing.
    pub fn uncaptured(&self, scan: &Scan) -> BTreeMap<BString, Uncaptured> {
        let mut paths: BTreeSet<&BStr> = BTreeSet::new();
        for skipped in scan.skipped.iter().filter(|it| it.is_movable() || it.reason == Reason::Many) {
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

    /// Whether any of these is not where it was any more.
    pub fn has_taken_any(&self, known: &BTreeMap<BString, Uncaptured>) -> bool {
        let worktree = Worktree::new(self.repo);
        known.iter().any(|(path, known)| !worktree.is_at(path.as_bstr(), &known.file))
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
        let mut movers = Movers::new(*self, turn, &before, end.calls);
        movers.also_look_for(began);
        let files = changed.files.iter().filter(|(_, change)| change.to.is_some()).map(|(path, _)| path);
        let directories = changed.directories.iter().filter(|(_, change)| change.to.is_some()).map(|(path, _)| path);
        let aside = changed.aside.iter().filter(|(_, change)| change.to.is_some()).map(|(path, _)| path);
        let listed: BTreeSet<&BString> = files.chain(directories).chain(aside).collect();
        let hidden: BTreeSet<&BString> = movers.hidden(end).filter(|path| !listed.contains(path)).collect();
        let unknown = listed.union(&hidden).copied().collect();
        let mut unknown = movers.find_all(&mut found, unknown, &hidden, end.between)?;
        movers.leave_former(&mut found);
        let kept = movers.keep_brought(&mut found, changed, &hidden);
        unknown.retain(|path| !kept.contains(*path));
        movers.take_places(&mut found);
        movers.leave_changed(&mut found, end.between);
        movers.note_placed(&mut found, changed);
        self.leave_strange(&movers, &mut found, end.between)?;
        self.note_older(&movers, &mut found, changed, &unknown, end.index)?;
        self.note_copies(&movers, &mut found, changed, &unknown)?;
        Ok(found)
    }

    /// What calls have moved that was there before the turn and not captured, or came between its calls, after another one has changed
    /// this: each as it was when that was first known. `found` is what came right before that one.
    pub fn brought(
        &self,
        turn: &Turn,
        before: &Checkpoint,
        (between, found): (BTreeMap<BString, Uncaptured>, BTreeMap<BString, Uncaptured>),
        (step, changed, calls): (u64, &Delta, Option<&[ToolCall]>),
    ) -> Result<BTreeMap<String, Brought>> {
        let (mut brought, mut former, began) = (turn.brought.clone(), BTreeMap::new(), before);
        let mut before = Cow::Borrowed(before);
        if !between.is_empty() || !found.is_empty() {
            let known = &mut before.to_mut().uncaptured;
            known.extend(between);
            // Where somebody has put another one, that is what comes back if a call moves it, too.
            let is_another = |path: &BString, new: &Uncaptured| known.get(path).is_some_and(|was| was.file != new.file);
            (former, brought) = brought.into_iter().partition(|(from, _)| {
                exact::decode(from).is_some_and(|path| found.get(&path).is_some_and(|new| is_another(&path, new)))
            });
            known.extend(found);
        }
        // What others made in the middle of the turn, and what is in it, is no older, and may have come right after a call.
        let is_between = |old: &BString| {
            began.uncaptured.get(old).map(|was| &was.file) != before.uncaptured.get(old).map(|now| &now.file)
        };
        let mut movers = Movers::new(*self, turn, &before, calls);
        let moved: BTreeMap<BString, BString> = self.surely_came_from(&changed.files)?.into_iter().collect();
        let moved_on: BTreeMap<&BString, &BString> =
            moved.iter().map(|(new, old)| (old, new)).chain(moved_aside(changed)).collect();
        for (from, known) in &mut brought {
            let Some((to, old)) = exact::decode(&known.to).zip(exact::decode(from)) else { continue };
            let new = moved_on.get(&to).copied();
            if let Some(Change { from: was, to: now }) = changed.files.get(&to) {
                let there = |new| changed.files.get(new).and_then(|change| change.to);
                known.note(step, *was, new.map_or(*now, there).or_else(|| movers.in_place(&old)));
            }
            if let Some(new) = new {
                known.to = exact::encode(new);
            }
        }
        brought.retain(|from, known| !movers.is_back(from, known));
        // What is known to have been elsewhere in a directory has come along with that all the same.
        let known: HashSet<String> = brought.values().map(|known| known.to.clone()).collect();
        let files = changed.files.iter().filter(|(_, change)| change.to.is_some());
        let aside = changed.aside.iter().filter(|(_, change)| change.to.is_some());
        let all = files.map(|(path, change)| (path, change.to)).chain(aside.map(|(path, _)| (path, None)));
        for (path, file) in all {
            let to = exact::encode(path);
            match movers.find_itself(path.as_bstr())? {
                Some((top, old)) => {
                    let is_older = is_between(old) || !movers.is_made(path.as_bstr());
                    if top == *path || is_older && !known.contains(&to) {
                        let from = exact::encode(&below(&top, old, path));
                        let first = brought.remove(&from).unwrap_or_else(|| Brought::new(to.clone(), file, step));
                        brought.insert(from, Brought { to, file: first.file.or(file), nowhere: false, ..first });
                    }
                }
                // Others have made it where nothing is looked at, and the call has moved it.
                None if movers.is_made_between(path.as_bstr())
                    && !known.contains(&to)
                    && is_from_nowhere(path, changed, &moved) =>
                {
                    brought.insert(to.clone(), Brought { nowhere: true, ..Brought::new(to, file, step) });
                }
                None => {}
            }
        }
        for (from, known) in former {
            brought.entry(from).or_insert(known);
        }
        Ok(brought)
    }

    /// The files that a turn's calls moved from where they were not captured, which are not there again, as they were after that: another
    /// call may have changed or deleted them since. So are those of what goes back as a whole, which is not known file by file.
    pub fn taken_away(&self, turn: &Turn, before: &Checkpoint, changed: &Delta) -> BTreeMap<String, TakenFile> {
        let mut taken = BTreeMap::new();
        let goes_away =
            |path: &BString| up_from(path.as_bstr()).any(|top| turn.placed.contains_key(&exact::encode(top)));
        let readable = |path: &BString| Worktree::new(self.repo).readable(path.as_bstr(), self.repo.hash_kind());
        let is_there = |path: &BString, file: FileState| readable(path).is_some_and(|now| now.id == file.id);
        let whole: Vec<(BString, BString)> = moved_whole(turn, changed).collect();
        for (from, Brought { to, file, step, until, .. }) in &turn.brought {
            let (Some(new), Some(old), Some(file)) = (exact::decode(to), exact::decode(from), *file) else { continue };
            if turn.came.get(to) == Some(&None) {
                continue;
            }
            let is_as_it_was = changed.files.get(&new).is_some_and(|change| change.to == Some(file));
            let goes_back = is_as_it_was && old_name(&turn.came, &new).as_ref() == Some(&old);
            let is_taken = match whole.iter().find(|(_, top)| is_at_or_below(old.as_bstr(), top.as_bstr())) {
                Some((now, top)) => !is_there(&below(top, now, &old), file),
                None => !is_there(&old, file) || goes_away(&old),
            };
            if is_taken && !goes_back {
                let file = as_before(file, before.uncaptured.get(&old));
                taken.insert(from.clone(), TakenFile { file, step: *step, until: *until });
            }
        }
        taken
    }

    /// What a call took from where nobody looks into the place of something else is not the turn's to take away, nor what it wrote over what
    /// others had put or saved there: nothing else may have it.
    fn leave_strange(
        &self,
        movers: &Movers<'_>,
        found: &mut UncapturedMoves,
        between: &BTreeMap<BString, Uncaptured>,
    ) -> Result<()> {
        let strange = movers.strange(found, between);
        if !strange.is_empty() {
            let captured = self.contents(movers.before)?;
            for (path, _) in strange.iter().filter(|(_, file)| !file.is_some_and(|file| captured.contains(&file.id))) {
                found.placed.remove(path);
            }
        }
        Ok(())
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
        copies.extend(movers.copies_in_places(found));
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
        let movers = Movers::new(*self, turn, before, None);
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
    pub fn stashed(&self, before: &Checkpoint, changed: &Delta) -> Result<BTreeMap<String, TakenFile>> {
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
                stashed.insert(
                    exact::encode(&path),
                    TakenFile { file: as_before(state, itself), step: None, until: None },
                );
            }
        }
        Ok(stashed)
    }

    /// What was stashed, or changed after it was moved, comes back with its directories.
    fn give_back_taken(
        &self,
        turn: &Turn,
        (before, after): (&Checkpoint, &Checkpoint),
        delta: &mut Delta,
    ) -> Result<()> {
        // What is where nothing is captured goes back as it is.
        let whole: Vec<BString> = moved_whole(turn, delta).map(|(_, old)| old).collect();
        let is_in_whole = |path: &BString| whole.iter().any(|top| is_at_or_below(path.as_bstr(), top.as_bstr()));
        let taken = turn.stashed.iter().filter_map(|(path, state)| Some((exact::decode(path)?, *state)));
        for (path, state) in taken.filter(|(path, _)| !is_in_whole(path)) {
            self.give_back_above(path.as_bstr(), (before, after), delta)?;
            let change = delta.files.entry(path).or_insert(Change::new(None, None));
            change.from = change.from.or(Some(state.file));
        }
        Ok(())
    }

    /// What comes back has its directories, and if the turn had made them.
    fn give_back_above(
        &self,
        path: &BStr,
        (before, after): (&Checkpoint, &Checkpoint),
        delta: &mut Delta,
    ) -> Result<()> {
        for above in parents(path) {
            if self.captured_directory(before, above)?.is_none() {
                let mode = before.uncaptured.get(above).map_or(before.modes.usual.directory, |known| known.mode);
                let now = self.captured_directory(after, above)?;
                let change = delta.directories.entry(above.to_owned()).or_insert(Change::new(None, now));
                change.from.get_or_insert(now.unwrap_or(mode));
            }
        }
        Ok(())
    }

    /// Gives a turn's difference its other half: what it moved goes back to where it was.
    pub fn give_back(&self, turn: &Turn, (before, after): (&Checkpoint, &Checkpoint), delta: &mut Delta) -> Result<()> {
        self.give_back_taken(turn, (before, after), delta)?;
        let is_of_nowhere = |path: &BString| turn.came.get(&exact::encode(path)) == Some(&None);
        delta.files.retain(|path, change| change.from.is_some() || !is_of_nowhere(path));
        delta.aside.retain(|path, change| change.from.is_some() || !is_of_nowhere(path));
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
        let whole: Vec<BString> =
            delta.aside.iter().filter(|(_, change)| change.from.is_some()).map(|(path, _)| path.clone()).collect();
        for path in whole {
            self.give_back_above(path.as_bstr(), (before, after), delta)?;
        }
        Ok(())
    }
}

/// Whether something is new, and nothing that was captured may have been it: that may have another name, and another content, too.
fn is_from_nowhere(path: &BString, changed: &Delta, moved: &BTreeMap<BString, BString>) -> bool {
    let is_new = changed.files.get(path).is_none_or(|change| change.from.is_none())
        && changed.aside.get(path).is_none_or(|change| change.from.is_none());
    let mut gone = changed.files.iter().filter(|(_, change)| change.to.is_none()).map(|(old, _)| old);
    is_new && !moved.contains_key(path) && gone.all(|old| moved.values().any(|from| from == old))
}

/// What a turn moved and is where nothing is captured: its new name and the old one.
fn moved_whole(turn: &Turn, changed: &Delta) -> impl Iterator<Item = (BString, BString)> {
    turn.moves().filter(|(new, _)| turn.placed.contains_key(&exact::encode(new)) || changed.aside.contains_key(new))
}

/// What is beyond the limits and went from one name to another.
fn moved_aside(changed: &Delta) -> impl Iterator<Item = (&BString, &BString)> {
    let is_it =
        |kept: &Aside, other: &Change<Option<Aside>>| other.to.as_ref().is_some_and(|to| to.store == kept.store);
    changed.aside.iter().filter_map(move |(old, change)| {
        let kept = change.from.as_ref()?;
        let (new, _) = changed.aside.iter().find(|(new, other)| *new != old && is_it(kept, other))?;
        Some((old, new))
    })
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
