//! The index as a tree, made from a tree that git has by changing only what differs.

use crate::git::index::Index;
use crate::git::index::read::entry_of;
use crate::git::index::sparse::sparse_directories;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeChange, tree_change};
use crate::git::repo::Repo;
use crate::model::checkpoint::IndexState;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use gix::index::State;
use gix::index::entry::{Flags, Mode};
use gix::objs::tree::EntryKind;
use std::collections::BTreeMap;

/// Compares an index with a tree by the index's cache tree, so that only trees are read below which
/// something was staged.
struct TreeWalk<'a> {
    repo: &'a Repo,
    index: &'a State,
}

impl TreeWalk<'_> {
    fn compare(
        &self,
        node: Option<&gix::index::extension::Tree>,
        tree: Option<ObjectId>,
        prefix: &[u8],
        range: std::ops::Range<usize>,
        changes: &mut Vec<TreeChange>,
    ) -> Result<()> {
        if let (Some(node), Some(tree)) = (node, tree)
            && node.num_entries.is_some_and(|n| n as usize == range.len())
            && node.id == tree
        {
            return Ok(());
        }
        let mut have = self.tree_entries(tree)?;
        let mut at = range.start;
        while at < range.end {
            let entry = &self.index.entries()[at];
            let path = entry.path(self.index);
            let rest = &path[prefix.len()..];
            if let Some(slash) = rest.find_byte(b'/').filter(|_| entry.mode != Mode::DIR) {
                let inner = [prefix, &rest[..=slash]].concat();
                let entries = &self.index.entries()[at..range.end];
                let end = at + entries.partition_point(|e| e.path(self.index).starts_with(&inner));
                let name = &rest[..slash];
                let child = node.and_then(|node| node.children.iter().find(|c| c.name.as_slice() == name));
                let subtree = match have.get(name) {
                    Some((EntryKind::Tree, id)) => Some(*id),
                    _ => None,
                };
                if subtree.is_some() {
                    have.remove(name);
                }
                self.compare(child, subtree, &inner, at..end, changes)?;
                at = end;
                continue;
            }
            at += 1;
            // Intent-to-add entries are in no tree, and unmerged ones cannot be.
            if entry.flags.contains(Flags::INTENT_TO_ADD) || entry.stage_raw() != 0 {
                continue;
            }
            let name = rest.strip_suffix(b"/").unwrap_or(rest);
            let kind = tree_kind(entry.mode);
            if have.remove(name) != Some((kind, entry.id)) {
                let path = path.strip_suffix(b"/").unwrap_or(path);
                changes.push((path.into(), Some((kind, entry.id))));
            }
        }
        for name in have.into_keys() {
            changes.push(([prefix, &name].concat().into(), None));
        }
        Ok(())
    }

    fn tree_entries(&self, tree: Option<ObjectId>) -> Result<BTreeMap<Vec<u8>, (EntryKind, ObjectId)>> {
        let Some(id) = tree else {
            return Ok(BTreeMap::new());
        };
        let tree = self.repo.gix.find_tree(id)?;
        let tree = tree.decode()?;
        let entries = tree.entries.iter();
        Ok(entries.map(|e| (e.filename.to_vec(), (e.mode.kind(), e.oid.to_owned()))).collect())
    }
}

/// What an entry of the index is in a tree.
fn tree_kind(mode: Mode) -> EntryKind {
    match mode {
        Mode::DIR => EntryKind::Tree,
        Mode::FILE_EXECUTABLE => EntryKind::BlobExecutable,
        Mode::SYMLINK => EntryKind::Link,
        Mode::COMMIT => EntryKind::Commit,
        _ => EntryKind::Blob,
    }
}

impl Index<'_> {
    /// The index as a value. `base` is a tree that most of it is in, such as HEAD's.
    pub fn index_state(&self, index: &State, base: ObjectId) -> Result<IndexState> {
        let tree = self.index_tree(index, base)?;
        let mut state = IndexState { tree, sparse: sparse_directories(index), special: BTreeMap::new() };
        for entry in index.entries() {
            let (value, path) = (entry_of(entry), entry.path(index));
            if !value.is_plain() && entry.mode != Mode::DIR && state.sparse_directory(path).is_none() {
                state.special.entry(path.to_owned()).or_default().push(value);
            }
        }
        Ok(state)
    }

    /// What `git write-tree` would give, made from `base` by changing only what differs.
    fn index_tree(&self, index: &State, base: ObjectId) -> Result<ObjectId> {
        let mut changes = Vec::new();
        let walk = TreeWalk { repo: self.repo, index };
        walk.compare(index.tree(), Some(base), b"", 0..index.entries().len(), &mut changes)?;
        Objects::new(self.repo).edited_tree(base, &changes)
    }

    /// A tree with some paths as they are in the index; those that it lacks are removed.
    pub fn tree_with_index_entries(&self, base: ObjectId, index: &State, paths: &[BString]) -> Result<ObjectId> {
        let changes: Result<Vec<TreeChange>> =
            (paths.iter()).map(|path| Ok(tree_change(path, &self.index_entries(index, path.as_bstr())?))).collect();
        Objects::new(self.repo).edited_tree(base, &changes?)
    }
}
