//! What differs between two checkpoints.

use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::captured::with_mode;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeSlot, file_kind, plain_entry};
use crate::git::scan::ignore::{Ignored, rules_of};
use crate::git::scan::nested::{own_part, own_state, whole_state};
use crate::git::worktree::names::is_storable;
use crate::model::bytes::exact;
use crate::model::checkpoint::{
    Aside, Change, Checkpoint, Delta, FileState, IndexEntry, Skipped, branch_changes, stash_change, symbolic_changes,
};
use crate::model::operation::Operation;
use crate::model::path::{all_parents, is_at_or_below, parents};
use crate::model::plan::AsideMove;
use crate::model::turn::Turn;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::tree::EntryMode;
use std::collections::btree_map::Entry::Vacant;
use std::collections::{BTreeMap, BTreeSet};

/// In a turn's store, what no list of what is over the limits has comes from this number on.
const PLACED: u64 = 1_000_000;

/// What is beyond the limits in both of two states, and differs.
pub fn touched_beyond_limits<'c>(before: &Checkpoint, after: &'c Checkpoint) -> Vec<&'c Skipped> {
    let has_changed = |now: &&Skipped| {
        let was = before.skipped.iter().find(|was| was.path == now.path);
        was.is_some_and(|was| was.state.is_some() && now.state.is_some() && was.state != now.state)
    };
    after.skipped.iter().filter(|now| now.is_movable()).filter(has_changed).collect()
}

impl Checkpoints<'_> {
    /// All that differs between the two checkpoints of a turn, except files that the turn is not proven to have made:
    /// an ignored file that it began to track may have been there before.
    pub fn delta(&self, turn: &Turn, before: &Checkpoint, after: &Checkpoint) -> Result<Delta> {
        let mut files = self.file_changes(before, after)?;
        let new = files.iter().filter(|(_, change)| change.from.is_none()).map(|(path, _)| path);
        let unproven = self.left_out(before, new.filter(|path| !turn.has_written(path.as_bstr())))?;
        files.retain(|path, _| !unproven.contains(path));
        let directories = self.directory_changes(before, after, &files)?;
        let mut delta = Delta {
            files,
            directories,
            aside: self.moved_beyond_limits(turn, before, after)?,
            index: self.index_changes(before, after)?,
            branches: branch_changes(before, after),
            symbolic: symbolic_changes(before, after),
            head: (before.head != after.head).then(|| Change::new(before.head.clone(), after.head.clone())),
            stash: stash_change(before, after),
            operation: changed(&before.operation, &after.operation),
        };
        // What was moved as a whole takes its directories along.
        let is_in_moved =
            |path: &BString| turn.moved.iter().any(|it| is_at_or_below(path.as_bstr(), it.path.as_bstr()));
        delta.directories.retain(|path, _| !is_in_moved(path));
        self.give_back(turn, (before, after), &mut delta)?;
        Ok(delta)
    }

    /// What differs of files, directories, index and operation. A directory that is empty now is there with its mode.
    pub fn work_between(&self, before: &Checkpoint, after: &Checkpoint) -> Result<Delta> {
        let files = self.file_changes(before, after)?;
        let mut directories = self.directory_changes(before, after, &files)?;
        let gone = files.iter().filter(|(_, change)| change.to.is_none()).map(|(path, _)| path.as_bstr());
        for path in all_parents(gone).into_iter().map(ToOwned::to_owned) {
            if let (false, Some(mode)) = (directories.contains_key(&path), after.directories.get(&path)) {
                let mode = self.captured_directory(after, mode.as_bstr())?;
                directories.insert(path, Change::new(mode, mode));
            }
        }
        let index = self.index_changes(before, after)?;
        let operation = changed(&before.operation, &after.operation);
        Ok(Delta { files, directories, index, operation, ..Delta::default() })
    }

    /// The files that differ between two checkpoints, in content or mode.
    pub fn file_changes(
        &self,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<BTreeMap<BString, Change<Option<FileState>>>> {
        let mut files = BTreeMap::new();
        for (path, change) in Objects::new(self.repo).tree_changes(before.worktree, after.worktree)? {
            let from = change.from.and_then(|entry| file_state(before, path.as_bstr(), entry));
            let to = change.to.and_then(|entry| file_state(after, path.as_bstr(), entry));
            if from != to {
                files.insert(path, Change::new(from, to));
            }
        }
        for path in changed_keys(&before.modes.unusual, &after.modes.unusual) {
            if path.ends_with(b"/") || files.contains_key(&path) {
                continue;
            }
            let from = self.captured_file(before, path.as_bstr())?;
            let to = self.captured_file(after, path.as_bstr())?;
            if from != to {
                files.insert(path, Change::new(from, to));
            }
        }
        Ok(files)
    }

    /// Those of these files that a state does not have and would not have if they had been there: its rules and limits
    /// leave them out.
    pub fn left_out<'p>(
        &self,
        state: &Checkpoint,
        absent: impl Iterator<Item = &'p BString>,
    ) -> Result<BTreeSet<BString>> {
        let mut absent = absent.peekable();
        let mut left_out = BTreeSet::new();
        if absent.peek().is_none() {
            return Ok(left_out);
        }
        let rules = rules_of(self.repo, state)?;
        let mut ignored = Ignored::by(&rules);
        // A record can be forged: what git would not store is refused with the plan.
        for path in absent.filter(|path| is_storable(path.as_bstr(), false)) {
            // Of a file that is tracked, too: its name may be all that git has.
            let is_skipped = state.skipped.iter().any(|skipped| skipped.path == *path);
            if !is_skipped && self.was_tracked(state, path.as_bstr())? {
                continue;
            }
            let skipped = state.skipped.iter().any(|skipped| is_at_or_below(path.as_bstr(), skipped.path.as_bstr()));
            if skipped || (ignored.has(path.as_bstr()) && !rules.includes(path.as_bstr(), false)) {
                left_out.insert(path.clone());
            }
        }
        Ok(left_out)
    }

    /// What is beyond the limits and came or went: the turn made it, or oxundo moved it, which others had made.
    fn moved_beyond_limits(
        &self,
        turn: &Turn,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<BTreeMap<BString, Change<Option<Aside>>>> {
        let mut moved = self.made_beyond_limits(turn.turn, before, after)?;
        for (number, (path, state)) in (PLACED..).zip(&turn.placed) {
            let aside = Aside { store: format!("aside/{}/{number}", turn.turn), state: state.clone(), tree: None };
            let change = moved.entry(exact::decode(path).unwrap_or_default()).or_insert(Change::new(None, None));
            change.to = Some(aside);
        }
        for AsideMove { path, store, out, state, .. } in &turn.moved {
            let [side, other] = if *out { [before, after] } else { [after, before] };
            // Where it came from under another name: an ignored name is in no list.
            let came = turn.moved.iter().find(|it| !out && it.out && it.store == *store);
            let came = came.and_then(|it| Self::left_at(before, it.path.as_bstr(), store));
            let [there, gone] = [side, other].map(|state| Self::left_at(state, path.as_bstr(), store));
            // What is there on both sides has changed places with another.
            let changes_places = turn.moved.iter().any(|it| it.out != *out && it.path == *path)
                && there.as_ref().map(|it| &it.state) != gone.as_ref().map(|it| &it.state);
            // It was about to be moved, and was not: the command failed, and was rolled back.
            let is_past = gone.is_none() || changes_places;
            // What is ignored is in no list, on neither side.
            let ignored = || {
                // A directory has none of its own.
                let own = Some(own_part(state.as_deref()?)).filter(|own| own.contains(' '));
                Some(Aside { store: store.clone(), state: own, tree: None })
            };
            let Some(aside) = there.or(came).or_else(ignored).filter(|_| is_past) else { continue };
            let change = moved.entry(path.clone()).or_insert(Change::new(None, None));
            *(if *out { &mut change.from } else { &mut change.to }) = Some(aside);
        }
        Ok(moved)
    }

    /// What a checkpoint does not capture at a path, or a directory in which it captured nothing, such as a closed one, as it
    /// would be in this store.
    fn left_at(checkpoint: &Checkpoint, path: &BStr, store: &str) -> Option<Aside> {
        let skipped = checkpoint.skipped.iter().find(|skipped| skipped.path == path);
        let is_there = skipped.is_some() || checkpoint.directories.contains(path);
        is_there.then(|| Aside {
            store: store.to_owned(),
            state: skipped.and_then(own_state),
            tree: skipped.and_then(whole_state),
        })
    }

    /// What is beyond the limits and new in the later of two states: the scan for the other one, by the same rules and limits,
    /// would have listed it.
    pub fn new_beyond_limits<'c>(&self, before: &Checkpoint, after: &'c Checkpoint) -> Result<Vec<&'c Skipped>> {
        let mut new = Vec::new();
        for skipped in after.skipped.iter().filter(|skipped| skipped.is_movable()) {
            if self.lacks(before, skipped)? {
                new.push(skipped);
            }
        }
        Ok(new)
    }

    /// Whether a state has nothing where something that is not captured is now.
    fn lacks(&self, before: &Checkpoint, skipped: &Skipped) -> Result<bool> {
        let path = skipped.path.as_bstr();
        let there = |at: &BStr| before.skipped.iter().any(|old| old.path == at);
        Ok(!there(path) && !parents(path).any(there) && self.captured_directory(before, path)?.is_none())
    }

    /// What is beyond the limits and came between two states of a turn, or went from one name to another.
    pub fn made_beyond_limits(
        &self,
        turn: u64,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<BTreeMap<BString, Change<Option<Aside>>>> {
        let mut made = BTreeMap::new();
        let movable = after.skipped.iter().filter(|skipped| skipped.is_movable());
        for (number, skipped) in movable.enumerate() {
            if !self.lacks(before, skipped)? {
                continue;
            }
            let store = format!("aside/{turn}/{number}");
            let aside = Aside { store, state: own_state(skipped), tree: whole_state(skipped) };
            made.insert(skipped.path.clone(), Change::new(None, Some(aside)));
        }
        for (old, new) in Self::alike(before, after, &made) {
            // The way back leads through the place where such things are kept, from the new name to the old one.
            let kept = made.get(&new).and_then(|change| change.to.clone());
            made.insert(old, Change::new(kept, None));
        }
        Ok(made)
    }

    /// What was there before and not captured, is gone, and is under another name that is new: its old name and the new one.
    /// The sizes and the times to the nanosecond prove it, of a directory those of all that is in it, where nothing else has
    /// the same.
    fn alike(
        before: &Checkpoint,
        after: &Checkpoint,
        made: &BTreeMap<BString, Change<Option<Aside>>>,
    ) -> Vec<(BString, BString)> {
        let has_stayed = |old: &Skipped| after.skipped.iter().any(|new| new.path == old.path);
        let gone = before.skipped.iter().filter(|old| old.is_movable() && old.state.is_some() && !has_stayed(old));
        let gone: Vec<&Skipped> = gone.collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let new: Vec<&Skipped> = after.skipped.iter().filter(|new| made.contains_key(&new.path)).collect();
        let same = |one: &Skipped, other: &Skipped| (one.reason, &one.state) == (other.reason, &other.state);
        let alike = |all: &[&Skipped], one: &Skipped| -> Vec<BString> {
            let mut alike: Vec<&&Skipped> = all.iter().filter(|other| same(one, other)).collect();
            // Of several that were made at once, the one of the same name.
            if alike.len() > 1 {
                alike.retain(|other| file_name(&other.path) == file_name(&one.path));
            }
            alike.into_iter().map(|other| other.path.clone()).collect()
        };
        let mut moves = Vec::new();
        for old in &gone {
            if let [to] = &alike(&new, old)[..]
                && let Some(found) = new.iter().find(|found| found.path == *to)
                && alike(&gone, found) == [old.path.clone()]
            {
                moves.push((old.path.clone(), to.clone()));
            }
        }
        moves
    }

    fn was_tracked(&self, checkpoint: &Checkpoint, path: &BStr) -> Result<bool> {
        Ok(checkpoint.index.special.contains_key(path)
            || Objects::new(self.repo).tree_entry(checkpoint.index.tree, path)?.is_some())
    }

    /// The directories that differ between two checkpoints: empty ones, and those whose files come or go.
    pub fn directory_changes(
        &self,
        before: &Checkpoint,
        after: &Checkpoint,
        files: &BTreeMap<BString, Change<Option<FileState>>>,
    ) -> Result<BTreeMap<BString, Change<Option<u32>>>> {
        let mut candidates: BTreeSet<BString> =
            before.directories.symmetric_difference(&after.directories).cloned().collect();
        let come_or_gone = files.iter().filter(|(_, change)| change.from.is_none() || change.to.is_none());
        let above = all_parents(come_or_gone.map(|(path, _)| path.as_bstr()));
        candidates.extend(above.into_iter().map(ToOwned::to_owned));
        for path in changed_keys(&before.modes.unusual, &after.modes.unusual) {
            candidates.extend(path.strip_suffix(b"/").map(BString::from));
        }
        let mut directories = BTreeMap::new();
        for path in candidates {
            let from = self.captured_directory(before, path.as_bstr())?;
            let to = self.captured_directory(after, path.as_bstr())?;
            if from != to {
                directories.insert(path, Change::new(from, to));
            }
        }
        Ok(directories)
    }

    /// The index entries that differ between two checkpoints.
    pub fn index_changes(
        &self,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<BTreeMap<BString, Change<Vec<IndexEntry>>>> {
        let mut trees = Objects::new(self.repo).tree_changes(before.index.tree, after.index.tree)?;
        // An entry that is the same in both trees may still have other flags, or be left out of one worktree only.
        for directory in before.index.sparse.symmetric_difference(&after.index.sparse) {
            let side = if before.index.sparse.contains(directory) { before } else { after };
            for (path, entry) in Objects::new(self.repo).entries_below(side.index.tree, directory.as_bstr())? {
                trees.entry(path).or_insert_with(|| Change::new(entry, entry));
            }
        }
        for path in changed_keys(&before.index.special, &after.index.special) {
            if let Vacant(same) = trees.entry(path) {
                let entry = Objects::new(self.repo).entry_at(before.index.tree, same.key().as_bstr())?;
                same.insert(Change::new(entry, entry));
            }
        }
        let entries =
            |checkpoint: &Checkpoint, path: &BString, entry: TreeSlot| match checkpoint.index.special.get(path) {
                Some(special) => special.clone(),
                None => plain_entry(entry, checkpoint.index.sparse_directory(path.as_bstr()).is_some()),
            };
        let changes = trees.into_iter().map(|(path, change)| {
            let (from, to) = (entries(before, &path, change.from), entries(after, &path, change.to));
            (path, Change::new(from, to))
        });
        Ok(changes.filter(|(_, change)| change.from != change.to).collect())
    }
}

fn changed(before: &Operation, after: &Operation) -> Option<Change<Operation>> {
    (before != after).then(|| Change::new(before.clone(), after.clone()))
}

fn file_name(path: &BString) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

fn file_state(checkpoint: &Checkpoint, path: &BStr, (mode, id): (EntryMode, ObjectId)) -> Option<FileState> {
    Some(with_mode(checkpoint, path, file_kind(mode.kind())?, id))
}

fn changed_keys<K: Ord + Clone, V: PartialEq>(before: &BTreeMap<K, V>, after: &BTreeMap<K, V>) -> Vec<K> {
    let gone = before.iter().filter(|(key, value)| after.get(*key) != Some(*value));
    let new = after.keys().filter(|key| !before.contains_key(*key));
    gone.map(|(key, _)| key).chain(new).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use crate::model::checkpoint::{Head, Kind, Reason, Skipped, StashEntry};
    use std::fmt::Debug;

    /// A checkpoint of what was committed last, and clean.
    fn clean(f: &Fixture) -> Checkpoint {
        let tree = f.id(&["rev-parse", "HEAD^{tree}"]);
        let commit = f.id(&["rev-parse", "HEAD"]);
        Checkpoint {
            head: Head { branch: Some("refs/heads/main".into()), commit: Some(commit), through: None },
            branches: [("refs/heads/main".to_owned(), commit)].into(),
            symbolic: BTreeMap::new(),
            ..f.checkpoint(tree)
        }
    }

    fn seventh() -> Turn {
        Turn { turn: 7, ..Turn::default() }
    }

    fn delta(f: &Fixture, before: &Checkpoint, after: &Checkpoint) -> Delta {
        let (checkpoints, turn) = (Checkpoints::new(&f.repo), seventh());
        let delta = checkpoints.delta(&turn, before, after).expect("compare them");
        assert!(
            checkpoints.delta(&turn, before, before).expect("compare them").is_empty(),
            "nothing differs from itself"
        );
        assert!(checkpoints.delta(&turn, after, after).expect("compare them").is_empty(), "nor that");
        delta
    }

    /// The changes by path, as they print.
    fn told<T: Debug>(changes: &BTreeMap<BString, Change<T>>) -> Vec<String> {
        changes.iter().map(|(path, change)| format!("{path}: {:?} {:?}", change.from, change.to)).collect()
    }

    #[test]
    fn files_differ_in_content_kind_and_mode_as_the_trees_of_git_do() {
        let f = Fixture::new();
        for path in ["same", "d/edited", "d/gone", "mode", "kind"] {
            f.commit(path, path);
        }
        let before = clean(&f);
        f.write("d/edited", "two");
        f.write("made", "new");
        std::fs::remove_file(f.path("d/gone")).expect("remove a file");
        std::fs::remove_file(f.path("kind")).expect("remove a file");
        std::os::unix::fs::symlink("same", f.path("kind")).expect("make a link");
        f.commit("e/f/deep", "new");
        let mut after = clean(&f);
        after.modes.unusual = [("mode".into(), 0o600), ("d/edited".into(), 0o4755), ("e/".into(), 0o700)].into();
        let found = delta(&f, &before, &after);
        assert_eq!(
            found.files.keys().map(ToString::to_string).collect::<Vec<_>>(),
            ["d/edited", "d/gone", "e/f/deep", "kind", "made", "mode"]
        );
        let file = |content: &str, mode| Some(FileState { kind: Kind::of_mode(mode), id: f.blob(content), mode });
        assert_eq!(found.files[BStr::new("d/edited")], Change::new(file("d/edited", 0o644), file("two", 0o4755)));
        assert_eq!(found.files[BStr::new("d/gone")], Change::new(file("d/gone", 0o644), None));
        assert_eq!(found.files[BStr::new("made")], Change::new(None, file("new", 0o644)));
        assert_eq!(found.files[BStr::new("mode")], Change::new(file("mode", 0o644), file("mode", 0o600)));
        let link = Some(FileState { kind: Kind::Symlink, id: f.blob("same"), mode: 0 });
        assert_eq!(found.files[BStr::new("kind")], Change::new(file("kind", 0o644), link));
        assert_eq!(
            told(&found.directories),
            ["e: None Some(448)", "e/f: None Some(493)"],
            "directories come with their modes"
        );
        assert_eq!(found.branches.len(), 1, "main moved");
        assert_eq!(found.head.as_ref().map(|head| &head.to), Some(&after.head));
        let back = Checkpoints::new(&f.repo).delta(&seventh(), &after, &before).expect("compare them");
        assert_eq!(back, found.inverse(), "the way back is the inverse");
    }

    #[test]
    fn directories_differ_where_no_file_tells_of_them() {
        let f = Fixture::new();
        f.commit("d/file", "");
        let mut before = clean(&f);
        before.directories = ["gone".into(), "stays".into(), "mode".into()].into();
        before.modes.unusual = [("mode/".into(), 0o700)].into();
        let mut after = clean(&f);
        after.directories = ["made".into(), "stays".into(), "mode".into()].into();
        after.modes.unusual = [("d/".into(), 0o711)].into();
        let found = delta(&f, &before, &after);
        assert_eq!(
            told(&found.directories),
            ["d: Some(493) Some(457)", "gone: Some(493) None", "made: None Some(493)", "mode: Some(448) Some(493)"]
        );
        assert!(found.files.is_empty() && found.index.is_empty() && found.head.is_none());
    }

    #[test]
    fn index_entries_differ_in_flags_stages_and_what_is_left_out() {
        let f = Fixture::new();
        f.commit("flagged", "one");
        f.commit("out/x", "two");
        f.commit("out/y", "three");
        let before = clean(&f);
        let mut after = clean(&f);
        let one = IndexEntry::plain(0o100_644, f.blob("one"));
        let flagged = IndexEntry { assume_unchanged: true, ..one };
        let conflict: Vec<IndexEntry> = [1, 2].map(|stage| IndexEntry { stage, ..one }).into();
        after.index.special = [("flagged".into(), vec![flagged]), ("conflict".into(), conflict.clone())].into();
        after.index.sparse = ["out".into()].into();
        let found = delta(&f, &before, &after).index;
        let left_out = |content| {
            let entry = IndexEntry::plain(0o100_644, f.blob(content));
            Change::new(vec![entry], vec![IndexEntry { skip_worktree: true, ..entry }])
        };
        let wanted: BTreeMap<BString, _> = [
            ("conflict".into(), Change::new(vec![], conflict)),
            ("flagged".into(), Change::new(vec![one], vec![flagged])),
            ("out/x".into(), left_out("two")),
            ("out/y".into(), left_out("three")),
        ]
        .into();
        assert_eq!(found, wanted);
    }

    #[test]
    fn what_another_worktree_did_is_no_part_of_a_turn() {
        let f = Fixture::new();
        let [one, two] = ["1", "2"].map(|name| f.commit(name, name));
        let stash = |branch: &str| StashEntry {
            id: one,
            name: "A User".into(),
            email: "user@example.com".into(),
            date: "1 +0000".into(),
            message: format!("WIP on {branch}: x"),
        };
        let mut before = clean(&f);
        before.branches.extend(["theirs", "side"].map(|name| (format!("refs/heads/{name}"), one)));
        let mut after = before.clone();
        after.branches.extend(["theirs", "new"].map(|name| (format!("refs/heads/{name}"), two)));
        after.branches.remove("refs/heads/side");
        after.elsewhere = ["refs/heads/theirs".to_owned(), "refs/heads/main".to_owned()].into();
        after.stash = vec![stash("theirs"), stash("main")];
        let found = delta(&f, &before, &after);
        let wanted = [
            ("refs/heads/new".to_owned(), Change::new(None, Some(two))),
            ("refs/heads/side".to_owned(), Change::new(Some(one), None)),
        ];
        assert_eq!(found.branches, wanted.into(), "a branch that another worktree has is its own");
        assert_eq!(found.stash, Some(Change::new(vec![], vec![stash("main")])), "so is what was stashed there");
        assert_eq!(found.head, None);
    }

    #[test]
    fn what_was_made_beyond_the_limits_is_moved_aside_and_what_was_there_is_not() {
        let f = Fixture::new();
        f.commit("a", "one");
        let skipped = |path: &str, reason| Skipped { path: path.into(), reason, size: 1, state: Some("1 2.3".into()) };
        let mut before = clean(&f);
        before.skipped = vec![skipped("old", Reason::Large), skipped("modules", Reason::SkipDir)];
        before.directories = ["was".into()].into();
        let mut after = clean(&f);
        after.skipped = vec![
            skipped("big", Reason::Large),
            skipped("modules/inner", Reason::Large),
            skipped("old", Reason::Large),
            skipped("socket", Reason::Special),
            skipped("was", Reason::SkipDir),
        ];
        let found = delta(&f, &before, &after);
        let [(path, change)] = &found.aside.iter().collect::<Vec<_>>()[..] else { panic!("one: {:?}", found.aside) };
        assert_eq!(path.as_bstr(), "big");
        assert_eq!((&change.from, change.to.as_ref().map(|aside| aside.store.as_str())), (&None, Some("aside/7/0")));
    }

    #[test]
    fn a_file_that_may_have_been_there_before_is_nothing_that_the_turn_made() {
        let f = Fixture::new();
        f.commit("a", "one");
        let mut before = clean(&f);
        before.skipped = vec![Skipped { path: "hidden".into(), reason: Reason::Excluded, size: 1, state: None }];
        f.write("hidden/inner", "whose is it?");
        f.commit("made", "new");
        let after = clean(&f);
        let found = delta(&f, &before, &after);
        assert_eq!(found.files.keys().collect::<Vec<_>>(), ["made"], "what was not looked at is not deleted by undo");
        assert_eq!(found.index.len(), 2, "though it was added to the index");
    }
}
