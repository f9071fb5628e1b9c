//! What differs between two checkpoints.

use super::Repo;
use super::capture::file_kind;
use super::scan::own_state;
use crate::model::checkpoint::{
    Aside, Change, Checkpoint, Delta, FileState, IndexEntry, Kind, branch_changes, stash_change,
};
use crate::model::plan::parents;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::diff::tree::recorder::Change as TreeDiff;
use gix::diff::tree::{Recorder, State};
use gix::objs::TreeRefIter;
use gix::objs::tree::{EntryKind, EntryMode};
use std::collections::btree_map::Entry::Vacant;
use std::collections::{BTreeMap, BTreeSet};

type Entry = Option<(EntryMode, ObjectId)>;

impl Repo {
    /// All that differs between two checkpoints, except files of which it is not proven that
    /// the turn made them: an ignored file that it began to track may have been there before.
    ///
    /// # Errors
    ///
    /// When a record cannot be read.
    pub fn delta(&self, turn: u64, before: &Checkpoint, after: &Checkpoint) -> Result<Delta> {
        let mut files = self.file_changes(before, after)?;
        self.drop_unproven(before, &mut files)?;
        let directories = self.directory_changes(before, after, &files)?;
        Ok(Delta {
            files,
            directories,
            aside: self.made_beyond_limits(turn, before, after)?,
            index: self.index_changes(before, after)?,
            branches: branch_changes(before, after),
            head: (before.head != after.head).then(|| Change::new(before.head.clone(), after.head.clone())),
            stash: stash_change(before, after),
        })
    }

    /// The entries that differ between two trees, submodules and directories left out or not
    /// as the trees have them; no tree itself is listed.
    fn tree_changes(&self, before: ObjectId, after: ObjectId) -> Result<BTreeMap<BString, Change<Entry>>> {
        let mut all: BTreeMap<BString, Change<Entry>> = BTreeMap::new();
        if before == after {
            return Ok(all);
        }
        // By the plumbing: gix's own comparison of trees reads the index first, for attributes.
        let (before, after) = (self.gix.find_tree(before)?, self.gix.find_tree(after)?);
        let mut recorder = Recorder::default();
        let trees = (
            TreeRefIter::from_bytes(&before.data, before.id.kind()),
            TreeRefIter::from_bytes(&after.data, after.id.kind()),
        );
        gix::diff::tree(trees.0, trees.1, State::default(), &self.gix.objects, &mut recorder)?;
        let entry = |mode: EntryMode, id| (!mode.is_tree()).then_some((mode, id));
        let none = || Change::new(None, None);
        for change in recorder.records {
            match change {
                TreeDiff::Addition { path, entry_mode, oid, .. } => {
                    all.entry(path).or_insert_with(none).to = entry(entry_mode, oid);
                }
                TreeDiff::Deletion { path, entry_mode, oid, .. } => {
                    all.entry(path).or_insert_with(none).from = entry(entry_mode, oid);
                }
                TreeDiff::Modification { path, previous_entry_mode, previous_oid, entry_mode, oid } => {
                    let change = all.entry(path).or_insert_with(none);
                    change.from = change.from.or(entry(previous_entry_mode, previous_oid));
                    change.to = change.to.or(entry(entry_mode, oid));
                }
            }
        }
        all.retain(|_, change| change.from.is_some() || change.to.is_some());
        Ok(all)
    }

    /// The entries that differ between two trees, as index entries.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read.
    pub fn entry_changes(
        &self,
        before: ObjectId,
        after: ObjectId,
    ) -> Result<BTreeMap<BString, Change<Vec<IndexEntry>>>> {
        let changes = self.tree_changes(before, after)?.into_iter();
        let entries = |entry| plain_entry(entry, false);
        Ok(changes.map(|(path, change)| (path, Change::new(entries(change.from), entries(change.to)))).collect())
    }

    /// The entry of a tree at a path, as an index entry.
    ///
    /// # Errors
    ///
    /// When the tree cannot be read.
    pub fn plain_entries(&self, tree: ObjectId, path: &BStr) -> Result<Vec<IndexEntry>> {
        Ok(plain_entry(self.entry_at(tree, path)?, false))
    }

    fn entry_at(&self, tree: ObjectId, path: &BStr) -> Result<Entry> {
        let found = self.tree_entry(tree, path)?;
        Ok(found.filter(|(kind, _)| *kind != EntryKind::Tree).map(|(kind, id)| (kind.into(), id)))
    }

    /// Every file of a tree.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn paths_of(&self, tree: ObjectId) -> Result<Vec<BString>> {
        self.changed_paths(self.write_empty_tree()?, tree)
    }

    /// The files that one tree has and another has not.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read.
    pub fn removed_paths(&self, before: ObjectId, after: ObjectId) -> Result<Vec<BString>> {
        let changes = self.tree_changes(before, after)?;
        Ok(changes.into_iter().filter(|(_, change)| change.to.is_none()).map(|(path, _)| path).collect())
    }

    /// The files that differ between two trees.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read.
    pub fn changed_paths(&self, before: ObjectId, after: ObjectId) -> Result<Vec<BString>> {
        Ok(self.tree_changes(before, after)?.into_keys().collect())
    }

    /// The files that differ between two checkpoints, in content or mode.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read.
    pub fn file_changes(
        &self,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<BTreeMap<BString, Change<Option<FileState>>>> {
        let mut files = BTreeMap::new();
        for (path, change) in self.tree_changes(before.worktree, after.worktree)? {
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

    /// The file that a checkpoint captured at a path.
    ///
    /// # Errors
    ///
    /// When its tree cannot be read.
    pub fn captured_file(&self, checkpoint: &Checkpoint, path: &BStr) -> Result<Option<FileState>> {
        let found = self.tree_file(checkpoint.worktree, path)?;
        Ok(found.map(|(kind, id)| with_mode(checkpoint, path, kind, id)))
    }

    fn drop_unproven(
        &self,
        before: &Checkpoint,
        files: &mut BTreeMap<BString, Change<Option<FileState>>>,
    ) -> Result<()> {
        if files.values().all(|change| change.from.is_some()) {
            return Ok(());
        }
        let rules = self.rules_of(before)?;
        let mut unproven = Vec::new();
        for (path, change) in files.iter() {
            if change.from.is_some() || self.was_tracked(before, path.as_bstr())? {
                continue;
            }
            let skipped = before
                .skipped
                .iter()
                .any(|skipped| skipped.path == *path || parents(path.as_bstr()).any(|p| p == skipped.path));
            let ignored = || rules.matches_with_parents(path.as_bstr()) && !rules.includes(path.as_bstr(), false);
            if skipped || ignored() {
                unproven.push(path.clone());
            }
        }
        files.retain(|path, _| !unproven.contains(path));
        Ok(())
    }

    /// What is beyond the limits and was not there before: the scan before the turn would
    /// have listed it, since the same ignore rules and limits held.
    fn made_beyond_limits(
        &self,
        turn: u64,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<BTreeMap<BString, Change<Option<Aside>>>> {
        let mut made = BTreeMap::new();
        let movable = after.skipped.iter().filter(|skipped| skipped.is_movable());
        for (number, skipped) in movable.enumerate() {
            let path = skipped.path.as_bstr();
            let there = |at: &BStr| before.skipped.iter().any(|old| old.path == at);
            if there(path) || parents(path).any(there) || self.captured_directory(before, &skipped.path)?.is_some() {
                continue;
            }
            let aside = Aside { store: format!("aside/{turn}/{number}"), state: own_state(skipped) };
            made.insert(skipped.path.clone(), Change::new(None, Some(aside)));
        }
        Ok(made)
    }

    fn was_tracked(&self, checkpoint: &Checkpoint, path: &BStr) -> Result<bool> {
        Ok(checkpoint.index.special.contains_key(path) || self.tree_entry(checkpoint.index.tree, path)?.is_some())
    }

    /// The directories that differ between two checkpoints, where no file tells of them or
    /// these files come and go.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read.
    pub fn directory_changes(
        &self,
        before: &Checkpoint,
        after: &Checkpoint,
        files: &BTreeMap<BString, Change<Option<FileState>>>,
    ) -> Result<BTreeMap<BString, Change<Option<u32>>>> {
        let mut candidates: BTreeSet<BString> =
            before.directories.symmetric_difference(&after.directories).cloned().collect();
        for (path, change) in files {
            if change.from.is_none() || change.to.is_none() {
                candidates.extend(parents(path.as_bstr()).map(ToOwned::to_owned));
            }
        }
        for path in changed_keys(&before.modes.unusual, &after.modes.unusual) {
            candidates.extend(path.strip_suffix(b"/").map(BString::from));
        }
        let mut directories = BTreeMap::new();
        for path in candidates {
            let from = self.captured_directory(before, &path)?;
            let to = self.captured_directory(after, &path)?;
            if from != to {
                directories.insert(path, Change::new(from, to));
            }
        }
        Ok(directories)
    }

    /// The mode of a directory that was there when a checkpoint was taken.
    fn captured_directory(&self, checkpoint: &Checkpoint, path: &BString) -> Result<Option<u32>> {
        let exists = checkpoint.directories.contains(path)
            || matches!(self.tree_entry(checkpoint.worktree, path.as_bstr())?, Some((EntryKind::Tree, _)));
        if !exists {
            return Ok(None);
        }
        let key = BString::from([path.as_slice(), b"/"].concat());
        let modes = &checkpoint.modes;
        Ok(Some(modes.unusual.get(&key).copied().unwrap_or(modes.usual.directory)))
    }

    fn index_changes(
        &self,
        before: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<BTreeMap<BString, Change<Vec<IndexEntry>>>> {
        let mut trees = self.tree_changes(before.index.tree, after.index.tree)?;
        // What is the same in both trees may be left out of one worktree alone, or be special otherwise.
        for directory in before.index.sparse.symmetric_difference(&after.index.sparse) {
            let side = if before.index.sparse.contains(directory) { before } else { after };
            for (path, entry) in self.entries_below(side.index.tree, directory.as_bstr())? {
                trees.entry(path).or_insert_with(|| Change::new(entry, entry));
            }
        }
        for path in changed_keys(&before.index.special, &after.index.special) {
            if let Vacant(same) = trees.entry(path) {
                let entry = self.entry_at(before.index.tree, same.key().as_bstr())?;
                same.insert(Change::new(entry, entry));
            }
        }
        let entries = |checkpoint: &Checkpoint, path: &BString, entry: Entry| match checkpoint.index.special.get(path) {
            Some(special) => special.clone(),
            None => plain_entry(entry, checkpoint.index.sparse_directory(path.as_bstr()).is_some()),
        };
        let changes = trees.into_iter().map(|(path, change)| {
            let (from, to) = (entries(before, &path, change.from), entries(after, &path, change.to));
            (path, Change::new(from, to))
        });
        Ok(changes.filter(|(_, change)| change.from != change.to).collect())
    }

    /// All that is below a directory of a tree.
    fn entries_below(&self, tree: ObjectId, directory: &BStr) -> Result<Vec<(BString, Entry)>> {
        let Some((EntryKind::Tree, below)) = self.tree_entry(tree, directory)? else { return Ok(Vec::new()) };
        let found = self.tree_changes(self.write_empty_tree()?, below)?.into_iter();
        Ok(found.map(|(path, change)| ([directory.as_bytes(), b"/", &path].concat().into(), change.to)).collect())
    }
}

/// The entry of a tree as one of the index.
fn plain_entry(entry: Entry, skip_worktree: bool) -> Vec<IndexEntry> {
    let plain = |(mode, id): (EntryMode, ObjectId)| IndexEntry::plain(u32::from(mode.value()), id);
    entry.map(|entry| IndexEntry { skip_worktree, ..plain(entry) }).into_iter().collect()
}

fn file_state(checkpoint: &Checkpoint, path: &BStr, (mode, id): (EntryMode, ObjectId)) -> Option<FileState> {
    Some(with_mode(checkpoint, path, file_kind(mode.kind())?, id))
}

fn with_mode(checkpoint: &Checkpoint, path: &BStr, kind: Kind, id: ObjectId) -> FileState {
    if kind == Kind::Symlink {
        return FileState { kind, id, mode: 0 };
    }
    let recorded = checkpoint.modes.unusual.get(path).copied();
    let mode = recorded.unwrap_or_else(|| checkpoint.modes.usual.of(kind));
    // Without core.fileMode a tree says what the index says, which the file need not be.
    FileState { kind: Kind::of_mode(mode), id, mode }
}

fn changed_keys<K: Ord + Clone, V: PartialEq>(before: &BTreeMap<K, V>, after: &BTreeMap<K, V>) -> Vec<K> {
    let gone = before.iter().filter(|(key, value)| after.get(*key) != Some(*value));
    let new = after.keys().filter(|key| !before.contains_key(*key));
    gone.map(|(key, _)| key).chain(new).cloned().collect()
}
