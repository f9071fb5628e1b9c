//! Trees: looking things up in them, editing and comparing them.

use crate::git::objects::Objects;
use crate::model::checkpoint::{Change, Head, IndexEntry, Kind};
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::diff::tree::recorder::Change as TreeDiff;
use gix::diff::tree::{Recorder, State};
use gix::objs::TreeRefIter;
use gix::objs::tree::{EntryKind, EntryMode};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

pub type TreeSlot = Option<(EntryMode, ObjectId)>;

/// A path, and the entry that a tree is to have there.
pub type TreeChange = (BString, Option<(EntryKind, ObjectId)>);

impl Objects<'_> {
    /// The tree of HEAD's commit; the empty tree on an unborn branch.
    pub fn head_tree(&self, head: &Head) -> Result<ObjectId> {
        match head.commit {
            Some(commit) => self.commit_tree(commit),
            None => self.write_empty_tree(),
        }
    }

    /// The tree of a commit.
    pub fn commit_tree(&self, commit: ObjectId) -> Result<ObjectId> {
        let commit = self.repo.gix.find_commit(commit).with_context(|| format!("read commit {commit}"))?;
        Ok(commit.tree_id()?.detach())
    }

    /// The file or link at a path of a tree.
    pub fn tree_file(&self, tree: ObjectId, path: &BStr) -> Result<Option<(Kind, ObjectId)>> {
        let entry = self.tree_entry(tree, path)?;
        Ok(entry.and_then(|(kind, id)| Some((file_kind(kind)?, id))))
    }

    /// Whether a tree has a file, link or submodule at a path.
    pub fn tree_has_entry(&self, tree: ObjectId, path: &BStr) -> Result<bool> {
        Ok(self.tree_entry(tree, path)?.is_some_and(|(kind, _)| kind != EntryKind::Tree))
    }

    /// Whatever is at a path of a tree.
    pub fn tree_entry(&self, tree: ObjectId, path: &BStr) -> Result<Option<(EntryKind, ObjectId)>> {
        let tree = self.repo.gix.find_tree(tree)?;
        let entry = tree.lookup_entry(path.split(|byte| *byte == b'/'))?;
        Ok(entry.map(|entry| (entry.mode().kind(), entry.object_id())))
    }

    /// The entries that differ between two trees, submodules and directories left out or not
    /// as the trees have them; no tree itself is listed.
    pub fn tree_changes(&self, before: ObjectId, after: ObjectId) -> Result<BTreeMap<BString, Change<TreeSlot>>> {
        let mut all: BTreeMap<BString, Change<TreeSlot>> = BTreeMap::new();
        if before == after {
            return Ok(all);
        }
        // By the plumbing: gix's own comparison of trees reads the index first, for attributes.
        let (before, after) = (self.repo.gix.find_tree(before)?, self.repo.gix.find_tree(after)?);
        let mut recorder = Recorder::default();
        let trees = (
            TreeRefIter::from_bytes(&before.data, before.id.kind()),
            TreeRefIter::from_bytes(&after.data, after.id.kind()),
        );
        gix::diff::tree(trees.0, trees.1, State::default(), &self.repo.gix.objects, &mut recorder)?;
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
    pub fn plain_entries(&self, tree: ObjectId, path: &BStr) -> Result<Vec<IndexEntry>> {
        Ok(plain_entry(self.entry_at(tree, path)?, false))
    }

    pub fn entry_at(&self, tree: ObjectId, path: &BStr) -> Result<TreeSlot> {
        let found = self.tree_entry(tree, path)?;
        Ok(found.filter(|(kind, _)| *kind != EntryKind::Tree).map(|(kind, id)| (kind.into(), id)))
    }

    /// Every file of a tree.
    pub fn paths_of(&self, tree: ObjectId) -> Result<Vec<BString>> {
        self.changed_paths(self.write_empty_tree()?, tree)
    }

    /// The files that one tree has and another has not.
    pub fn removed_paths(&self, before: ObjectId, after: ObjectId) -> Result<Vec<BString>> {
        let changes = self.tree_changes(before, after)?;
        Ok(changes.into_iter().filter(|(_, change)| change.to.is_none()).map(|(path, _)| path).collect())
    }

    /// The files that differ between two trees.
    pub fn changed_paths(&self, before: ObjectId, after: ObjectId) -> Result<Vec<BString>> {
        Ok(self.tree_changes(before, after)?.into_keys().collect())
    }

    /// All that is below a directory of a tree.
    pub fn entries_below(&self, tree: ObjectId, directory: &BStr) -> Result<Vec<(BString, TreeSlot)>> {
        let Some((EntryKind::Tree, below)) = self.tree_entry(tree, directory)? else { return Ok(Vec::new()) };
        let found = self.tree_changes(self.write_empty_tree()?, below)?.into_iter();
        Ok(found.map(|(path, change)| ([directory.as_bytes(), b"/", &path].concat().into(), change.to)).collect())
    }

    /// A tree with some paths replaced or removed.
    pub fn edited_tree(&self, base: ObjectId, changes: &[TreeChange]) -> Result<ObjectId> {
        if changes.is_empty() {
            return Ok(base);
        }
        let mut editor = self.repo.gix.edit_tree(base)?;
        // Removals first: a file may make way for a directory, or a directory for a file.
        for (path, _) in changes.iter().filter(|(_, entry)| entry.is_none()) {
            editor.remove(path.as_bstr())?;
        }
        for (path, entry) in changes {
            if let Some((kind, id)) = entry {
                editor.upsert(path.as_bstr(), *kind, *id)?;
            }
        }
        Ok(editor.write().context("write a tree")?.detach())
    }

    pub fn empty_tree(&self) -> ObjectId {
        ObjectId::empty_tree(self.repo.hash_kind())
    }

    pub fn write_empty_tree(&self) -> Result<ObjectId> {
        Ok(self.repo.gix.write_object(gix::objs::Tree::empty())?.detach())
    }

    pub fn blob_at(&self, tree: ObjectId, path: &str) -> Result<Option<Vec<u8>>> {
        let Some((_, id)) = self.tree_entry(tree, path.into())? else {
            return Ok(None);
        };
        Ok(Some(self.repo.gix.find_blob(id)?.data.clone()))
    }

    pub fn json_at<T: DeserializeOwned>(&self, tree: ObjectId, path: &str) -> Result<Option<T>> {
        let Some(text) = self.blob_at(tree, path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&text).with_context(|| format!("read {path}")).map(Some)
    }
}

/// What kind of file a tree entry is; `None` for a tree or a submodule.
pub fn file_kind(kind: EntryKind) -> Option<Kind> {
    match kind {
        EntryKind::Blob => Some(Kind::File),
        EntryKind::BlobExecutable => Some(Kind::Executable),
        EntryKind::Link => Some(Kind::Symlink),
        EntryKind::Tree | EntryKind::Commit => None,
    }
}

/// What a tree says of a file or link.
pub fn entry_kind(kind: Kind) -> EntryKind {
    match kind {
        Kind::File => EntryKind::Blob,
        Kind::Executable => EntryKind::BlobExecutable,
        Kind::Symlink => EntryKind::Link,
    }
}

/// The entry of a tree as one of the index.
pub fn plain_entry(entry: TreeSlot, skip_worktree: bool) -> Vec<IndexEntry> {
    let plain = |(mode, id): (EntryMode, ObjectId)| IndexEntry::plain(u32::from(mode.value()), id);
    entry.map(|entry| IndexEntry { skip_worktree, ..plain(entry) }).into_iter().collect()
}

/// What a tree has where the index has these entries.
pub fn tree_change(path: &BString, entries: &[IndexEntry]) -> TreeChange {
    let entry = entries.iter().find(|entry| entry.stage == 0 && !entry.intent_to_add);
    let kind = entry.map(|entry| match entry.mode {
        0o100_755 => (EntryKind::BlobExecutable, entry.id),
        0o120_000 => (EntryKind::Link, entry.id),
        0o160_000 => (EntryKind::Commit, entry.id),
        _ => (EntryKind::Blob, entry.id),
    });
    (path.clone(), kind)
}
