//! What differs between two checkpoints.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeSlot, file_kind, plain_entry};
use crate::git::scan::ignore::rules_of;
use crate::git::scan::nested::own_state;
use crate::model::checkpoint::{
    Aside, Change, Checkpoint, Delta, FileState, IndexEntry, Kind, branch_changes, stash_change,
};
use crate::model::path::parents;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::tree::{EntryKind, EntryMode};
use std::collections::btree_map::Entry::Vacant;
use std::collections::{BTreeMap, BTreeSet};

impl Checkpoints<'_> {
    /// All that differs between two checkpoints, except files that the turn is not proven to have made: an
    /// ignored file that it began to track may have been there before.
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

    /// The file that a checkpoint captured at a path.
    pub fn captured_file(&self, checkpoint: &Checkpoint, path: &BStr) -> Result<Option<FileState>> {
        let found = Objects::new(self.repo).tree_file(checkpoint.worktree, path)?;
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
        let rules = rules_of(self.repo, before)?;
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

    /// What is beyond the limits and new: the scan before the turn, by the same rules and limits, would have
    /// listed it.
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
            || matches!(
                Objects::new(self.repo).tree_entry(checkpoint.worktree, path.as_bstr())?,
                Some((EntryKind::Tree, _))
            );
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

fn file_state(checkpoint: &Checkpoint, path: &BStr, (mode, id): (EntryMode, ObjectId)) -> Option<FileState> {
    Some(with_mode(checkpoint, path, file_kind(mode.kind())?, id))
}

fn with_mode(checkpoint: &Checkpoint, path: &BStr, kind: Kind, id: ObjectId) -> FileState {
    if kind == Kind::Symlink {
        return FileState { kind, id, mode: 0 };
    }
    let recorded = checkpoint.modes.unusual.get(path).copied();
    let mode = recorded.unwrap_or_else(|| checkpoint.modes.usual.of(kind));
    // Without core.fileMode a tree has the index's kind, which the file may not have.
    FileState { kind: Kind::of_mode(mode), id, mode }
}

fn changed_keys<K: Ord + Clone, V: PartialEq>(before: &BTreeMap<K, V>, after: &BTreeMap<K, V>) -> Vec<K> {
    let gone = before.iter().filter(|(key, value)| after.get(*key) != Some(*value));
    let new = after.keys().filter(|key| !before.contains_key(*key));
    gone.map(|(key, _)| key).chain(new).cloned().collect()
}
