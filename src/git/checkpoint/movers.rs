//! Where what was not captured before a turn was, of what is there now: by which file or directory it is, or by its size and time.

use crate::git::checkpoint::Checkpoints;
use crate::git::worktree::Worktree;
use crate::git::worktree::identity::{Identity, is_directory, is_telling, size_in};
use crate::model::bytes::exact;
use crate::model::call::{ToolCall, is_between};
use crate::model::checkpoint::{Checkpoint, Delta, FileState, Skipped, Uncaptured};
use crate::model::path::up_from;
use crate::model::turn::{Brought, Turn};
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::Dev;
use std::collections::{BTreeMap, BTreeSet};

/// Of no more than these it is known which they are, so that a look stays quick.
pub const MOST: usize = 2000;

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

impl UncapturedMoves {
    /// Whether it is known where this is now.
    fn has_come(&self, old: &BString) -> bool {
        let name = exact::encode(old);
        self.came.values().flatten().any(|came| *came == name)
    }
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
    /// The turn's calls, where what came between them is not its agents'.
    pub calls: Option<&'a [ToolCall]>,
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
pub struct Movers<'a> {
    checkpoints: Checkpoints<'a>,
    turn: &'a Turn,
    /// The turn's calls, where what came between them is not its agents'.
    calls: Option<&'a [ToolCall]>,
    /// The state.
    pub before: &'a Checkpoint,
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

impl<'a> Movers<'a> {
    /// Looks for what a turn moved of what this state names.
    pub fn new(
        checkpoints: Checkpoints<'a>,
        turn: &'a Turn,
        before: &'a Checkpoint,
        calls: Option<&'a [ToolCall]>,
    ) -> Self {
        let known = before.uncaptured.iter().map(|(path, known)| (known.file.as_str(), path)).collect();
        let mut states: BTreeMap<&str, Vec<&BString>> = BTreeMap::new();
        for (path, known) in &before.uncaptured {
            if let Some(state) = known.state.as_deref().filter(|state| is_telling(state)) {
                states.entry(state).or_default().push(path);
            }
        }
        let device = Worktree::new(checkpoints.repo).local_device();
        Self {
            checkpoints,
            turn,
            calls,
            before,
            known,
            states,
            taken: BTreeSet::new(),
            device,
            passed: BTreeSet::new(),
        }
    }

    /// Which file or directory is at a path.
    pub fn identity(&self, path: &BStr) -> Option<Identity> {
        Worktree::new(self.checkpoints.repo).identity(path)
    }

    /// Looks for these as well, but not in the place of what has theirs: they may have been moved away before that.
    pub fn also_look_for(&mut self, others: &'a BTreeMap<BString, Uncaptured>) {
        for (path, known) in others {
            self.known.entry(&known.file).or_insert(path);
        }
    }

    /// What no delta has, and may be what was under another name: ignored names that are new, and those whose places others
    /// may have taken.
    pub fn hidden<'p>(&self, end: End<'p>) -> impl Iterator<Item = &'p BString> {
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

    /// Finds where each of these was, of which some are where nothing is captured. Gives those of which it is not known.
    pub fn find_all<'p>(
        &mut self,
        found: &mut UncapturedMoves,
        paths: BTreeSet<&'p BString>,
        hidden: &BTreeSet<&BString>,
        between: &BTreeMap<BString, Uncaptured>,
    ) -> Result<BTreeSet<&'p BString>> {
        let mut unknown = paths;
        for by in [By::Identity, By::State] {
            self.passed.clear();
            for path in std::mem::take(&mut unknown) {
                match self.find(path.as_bstr(), by)? {
                    Some(known) if self.is_brought(path, &known) => self.keep(found, known, hidden),
                    Some((top, old)) if top != *path && self.is_made(path.as_bstr()) && !between.contains_key(old) => {
                        found.came.insert(exact::encode(path), Some(exact::encode(path)));
                    }
                    Some((top, old)) => {
                        // It is where nothing is captured, in a directory that is somewhere else.
                        if top != *path && hidden.contains(path) {
                            let from = below(&top, old, path);
                            found.came.insert(exact::encode(path), Some(exact::encode(&from)));
                            found.placed.insert(exact::encode(path), self.fingerprint(path.as_bstr()));
                        }
                        self.keep(found, (top, old), hidden);
                    }
                    None => drop(unknown.insert(path)),
                }
            }
        }
        Ok(unknown)
    }

    /// What was moved of a path, by which one it is.
    pub fn find_itself(&mut self, path: &BStr) -> Result<Option<(BString, &'a BString)>> {
        self.find(path, By::Identity)
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

    /// Whether it is there again, the very same or with what somebody has saved in it, and calls have not changed it.
    pub fn is_back(&self, from: &str, known: &Brought) -> bool {
        let Some((old, to)) = exact::decode(from).zip(exact::decode(&known.to)) else { return false };
        let is_it = |file: FileState| self.readable(&old) == Some(file);
        let has_gone = || !Worktree::new(self.checkpoints.repo).has_file(to.as_bstr());
        // What somebody has saved in is theirs wherever they, or a call, have put it back.
        (self.is_in_place(&old) || known.saved && known.last.is_some_and(is_it) && has_gone())
            && (!known.changed || known.file.is_none_or(is_it))
    }

    /// What a file is where it was before, or in a directory that is.
    pub fn in_place(&self, old: &BString) -> Option<FileState> {
        if self.is_in_place(old) { self.readable(old) } else { None }
    }

    fn readable(&self, path: &BString) -> Option<FileState> {
        let repo = self.checkpoints.repo;
        Worktree::new(repo).readable(path.as_bstr(), repo.hash_kind())
    }

    /// Whether a file is where it was before, or in a directory that is.
    fn is_in_place(&self, old: &BString) -> bool {
        let worktree = Worktree::new(self.checkpoints.repo);
        let is_it = |top: &BStr| self.before.uncaptured.get(top).is_some_and(|known| worktree.is_at(top, &known.file));
        up_from(old.as_bstr()).any(is_it) && worktree.has_file(old.as_bstr())
    }

    /// Keeps the files that calls moved and that are not to be known any more by what they are, as they were written anew since, or not by
    /// what is above them, as they were moved on in that. Gives which they are.
    pub fn keep_brought(
        &mut self,
        moves: &mut UncapturedMoves,
        changed: &Delta,
        hidden: &BTreeSet<&BString>,
    ) -> BTreeSet<BString> {
        let mut kept = BTreeSet::new();
        for (from, Brought { to, nowhere, .. }) in &self.turn.brought {
            let (Some(new), Some(old)) = (exact::decode(to), exact::decode(from)) else { continue };
            let is_there = changed.files.get(&new).is_some_and(|change| change.to.is_some())
                || changed.aside.get(&new).is_some_and(|change| change.to.is_some());
            if !is_there || moves.came.contains_key(to) || old_name(&moves.came, &new).as_ref() == Some(&old) {
                continue;
            }
            match self.before.uncaptured.get_key_value(&old) {
                _ if *nowhere => drop(moves.came.insert(to.clone(), None)),
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

    /// What is in the place of something that calls moved and that is known goes away, too; so does that itself, where it is back and
    /// they have changed it.
    pub fn take_places(&mut self, moves: &mut UncapturedMoves) {
        for (from, brought) in self.turn.brought.iter().filter(|(_, brought)| brought.file.is_some()) {
            let Some(old) = exact::decode(from) else { continue };
            let Some(now) = self.identity(old.as_bstr()) else { continue };
            match self.before.uncaptured.get_key_value(&old) {
                Some((old, known)) if now.known.file != known.file => drop(self.taken.insert(old)),
                // Where others have saved in it, too, undo does not take it away.
                _ if !brought.saved && !self.is_saved(&now) && self.readable(&old) != brought.file => {
                    moves.placed.insert(from.clone(), self.fingerprint(old.as_bstr()));
                }
                _ => {}
            }
        }
    }

    /// What calls changed and moved on to where nothing is captured is the turn's, as it comes back as it was when they had moved it first.
    /// Where others have saved in it, or have put another one there, it goes back as it is.
    pub fn leave_changed(&self, moves: &mut UncapturedMoves, between: &BTreeMap<BString, Uncaptured>) {
        let is_changed = |new: &String, old: &String| {
            let Some(Brought { file: Some(file), saved: false, .. }) = self.turn.brought.get(old) else { return false };
            let Some((new, old)) = exact::decode(new).zip(exact::decode(old)) else { return false };
            !between.contains_key(&old)
                && self.readable(&new).is_some_and(|now| now.id != file.id)
                && !self.identity(new.as_bstr()).is_some_and(|now| self.is_saved(&now))
        };
        let placed = &moves.placed;
        moves.came.retain(|new, old| {
            !placed.contains_key(new) || old.as_ref().is_none_or(|old| old == new || !is_changed(new, old))
        });
    }

    /// Of what was at one place, one after the other, and was all moved away, only the last goes back there. What was there before stays.
    pub fn leave_former(&self, moves: &mut UncapturedMoves) {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for old in moves.came.values().flatten() {
            *places.entry(old).or_default() += 1;
        }
        let is_former = |new: &String, old: &String| {
            let last = exact::decode(old).and_then(|old| self.before.uncaptured.get(&old));
            let now = exact::decode(new).and_then(|new| self.identity(new.as_bstr()));
            last.zip(now).is_some_and(|(last, now)| last.file != now.known.file)
        };
        let came = moves.came.iter().filter_map(|(new, old)| Some((new, old.as_ref()?)));
        let came = came.filter(|(_, old)| places[old.as_str()] > 1);
        let former: Vec<String> = came.filter(|(new, old)| is_former(new, old)).map(|(new, _)| new.clone()).collect();
        for new in former {
            moves.placed.remove(&new);
            moves.came.insert(new, None);
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
    pub fn note_placed(&self, moves: &mut UncapturedMoves, changed: &Delta) {
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

    /// What is in the old places and older than the turn, and of which it is not known where it was, or where others had something between
    /// the turn's calls; what it is.
    pub fn strange(
        &self,
        moves: &UncapturedMoves,
        between: &BTreeMap<BString, Uncaptured>,
    ) -> Vec<(String, Option<FileState>)> {
        let is_known = |path: &BStr| self.identity(path).is_some_and(|now| self.known.contains_key(&*now.known.file));
        let is_strange = |old: &&&BString| {
            let name = exact::encode(old);
            let is_placed = moves.placed.contains_key(&name) && !moves.came.contains_key(&name);
            let is_unknown = self.is_older(old.as_bstr()) && !is_known(old.as_bstr());
            is_placed && (is_unknown || between.contains_key(**old))
        };
        self.taken.iter().filter(is_strange).map(|old| (exact::encode(old), self.readable(old))).collect()
    }

    /// Something that was over the limits, and is neither there nor known to have been moved.
    pub fn gone(&self, moves: &UncapturedMoves) -> Option<&'a BString> {
        let mut skipped =
            self.before.skipped.iter().filter(|skipped| skipped.is_movable()).map(|skipped| &skipped.path);
        skipped.find(|old| self.identity(old.as_bstr()).is_none() && !moves.has_come(old))
    }

    /// What calls have made in the old places, where a file is gone of which nothing more is known: it may be a copy of that.
    pub fn copies_in_places(&self, moves: &UncapturedMoves) -> Vec<(&'a BString, &'a BString)> {
        let is_made = |old: &&BString| moves.placed.contains_key(&exact::encode(old)) && self.is_made(old.as_bstr());
        let mut made = self.taken.iter().copied().filter(is_made).peekable();
        if made.peek().is_none() {
            return Vec::new();
        }
        let is_gone = |old: &BString, known: &Uncaptured| {
            let is_file = known.state.as_deref().is_some_and(|state| size_in(state).is_some());
            is_file && !self.taken.contains(old) && self.identity(old.as_bstr()).is_none() && !moves.has_come(old)
        };
        let gone = self.before.uncaptured.iter().find(|(old, known)| is_gone(old, known));
        gone.map_or_else(Vec::new, |(gone, _)| made.map(|new| (new, gone)).collect())
    }

    fn fingerprint(&self, path: &BStr) -> Option<String> {
        self.identity(path)?.known.state.filter(|state| !is_directory(state))
    }

    /// Where it was before, if it is gone from there.
    fn old_name(&self, path: &BStr) -> Option<&'a BString> {
        let found = self.identity(path).filter(|found| !found.linked)?;
        let old = *self.known.get(found.known.file.as_str())?;
        let stayed = Worktree::new(self.checkpoints.repo).is_at(old.as_bstr(), &found.known.file);
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
    pub fn copied_from(&self, path: &BString, is_aside: bool) -> Option<&'a BString> {
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

    /// Whether a file is older than the turn, by a clock that is believed.
    pub fn is_older(&self, path: &BStr) -> bool {
        self.times(path).is_some_and(|(born, began)| born < began)
    }

    /// Whether it is no older, by such a clock, and not known to have come between calls.
    pub fn is_made(&self, path: &BStr) -> bool {
        self.times(path).is_some_and(|(born, began)| born >= began && !self.is_between(born))
    }

    /// Whether somebody made it between the turn's calls.
    pub fn is_made_between(&self, path: &BStr) -> bool {
        self.times(path).is_some_and(|(born, began)| born >= began && self.is_between(born))
    }

    /// Whether somebody did something to it last between the turn's calls, be it that they gave it another name.
    fn is_saved(&self, now: &Identity) -> bool {
        Some(now.device) == self.device && self.is_between(now.changed)
    }

    fn is_between(&self, time: u64) -> bool {
        self.calls.is_some_and(|calls| is_between(calls, time))
    }
}

fn file_name(path: &BStr) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

/// What a path was called before it, or the nearest above it, was moved: by the new names, the old ones.
pub fn old_name(came: &BTreeMap<String, Option<String>>, path: &BString) -> Option<BString> {
    if came.is_empty() {
        return None;
    }
    let mut tops = up_from(path.as_bstr());
    let (top, old) = tops.find_map(|top| Some((top, came.get(&exact::encode(top))?)))?;
    let old = exact::decode(old.as_ref()?).filter(|old| old != top)?;
    Some(below(top, &old, path))
}

/// What a path was called when that above it, or itself, had its old name.
pub fn below(top: &[u8], old: &[u8], path: &[u8]) -> BString {
    [old, &path[top.len()..]].concat().into()
}
