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
use gix::index::entry::{Flags, Mode};
use gix::index::extension::Tree as CacheTree;
use gix::index::{Entry, State};
use gix::objs::tree::EntryKind;
use std::collections::BTreeMap;
use std::ops::Range;

/// Compares an index with a tree by the index's cache tree, so that only trees are read below which
/// something was staged.
struct TreeWalk<'a> {
    repo: &'a Repo,
    index: &'a State,
}

impl TreeWalk<'_> {
    fn compare(
        &self,
        node: Option<&CacheTree>,
        tree: Option<ObjectId>,
        prefix: &[u8],
        range: Range<usize>,
        changes: &mut Vec<TreeChange>,
    ) -> Result<()> {
        if tree.is_some_and(|tree| is_node(node, tree, &range)) {
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
                let child = child_of(node, name);
                let subtree = have.get(name).filter(|(kind, _)| *kind == EntryKind::Tree).map(|(_, id)| *id);
                if subtree.is_some() {
                    have.remove(name);
                }
                self.compare(child, subtree, &inner, at..end, changes)?;
                at = end;
                continue;
            }
            at += 1;
            if !is_in_tree(entry) {
                continue;
            }
            let name = rest.strip_suffix(b"/").unwrap_or(rest);
            let now = (tree_kind(entry.mode), entry.id);
            if have.remove(name) != Some(now) {
                changes.push((path.strip_suffix(b"/").unwrap_or(path).into(), Some(now)));
            }
        }
        for name in have.into_keys() {
            changes.push(([prefix, &name].concat().into(), None));
        }
        Ok(())
    }

    /// Whether a tree is what the index has in these places, below a directory with so long a name. Both are in the same order.
    fn is_same(&self, node: Option<&CacheTree>, tree: ObjectId, prefix: usize, range: Range<usize>) -> Result<bool> {
        if is_node(node, tree, &range) {
            return Ok(true);
        }
        let tree = self.repo.find_tree(tree)?;
        let (mut entries, mut at) = (tree.iter(), range.start);
        while at < range.end {
            let entry = &self.index.entries()[at];
            let rest = &entry.path(self.index)[prefix..];
            let Some(slash) = rest.find_byte(b'/').filter(|_| entry.mode != Mode::DIR) else {
                at += 1;
                if is_in_tree(entry) {
                    let now = (rest.strip_suffix(b"/").unwrap_or(rest).as_bstr(), tree_kind(entry.mode), &*entry.id);
                    match entries.next().transpose()? {
                        Some(known) if (known.filename(), known.kind(), known.oid()) == now => {}
                        _ => return Ok(false),
                    }
                }
                continue;
            };
            let (name, inner) = (rest[..slash].as_bstr(), &rest[..=slash]);
            let below = &self.index.entries()[at..range.end];
            let end = at + below.partition_point(|entry| entry.path(self.index)[prefix..].starts_with(inner));
            if below[..end - at].iter().any(is_in_tree) {
                let known = entries.next().transpose()?;
                let Some(known) = known.filter(|known| known.filename() == name && known.mode().is_tree()) else {
                    return Ok(false);
                };
                if !self.is_same(child_of(node, name), known.object_id(), prefix + slash + 1, at..end)? {
                    return Ok(false);
                }
            }
            at = end;
        }
        Ok(entries.next().is_none())
    }

    /// What is known of these places in the index, below a directory with so long a name, given a tree that may be what they hold.
    fn named(&self, node: Option<&CacheTree>, tree: ObjectId, prefix: usize, range: Range<usize>) -> Result<CacheTree> {
        if let Some(node) = node.filter(|node| is_node(Some(node), tree, &range)) {
            return Ok(node.clone());
        }
        let mut have = self.tree_entries(Some(tree))?;
        let (mut at, mut is_all, mut children) = (range.start, true, Vec::new());
        while at < range.end {
            let entry = &self.index.entries()[at];
            let rest = &entry.path(self.index)[prefix..];
            let Some(slash) = rest.find_byte(b'/') else {
                at += 1;
                is_all &= is_in_tree(entry) && have.remove(&**rest) == Some((tree_kind(entry.mode), entry.id));
                continue;
            };
            let (name, inner) = (&rest[..slash], &rest[..=slash]);
            let below = &self.index.entries()[at..range.end];
            let end = at + below.partition_point(|entry| entry.path(self.index)[prefix..].starts_with(inner));
            match (have.remove(name), child_of(node, name)) {
                (Some((EntryKind::Tree, subtree)), known) => {
                    let child = self.named(known, subtree, prefix + slash + 1, at..end)?;
                    is_all &= is_node(Some(&child), subtree, &(at..end));
                    children.push(CacheTree { name: name.as_bytes().into(), ..child });
                }
                (_, known) => {
                    is_all = false;
                    children.extend(known.cloned());
                }
            }
            at = end;
        }
        let entries = u32::try_from(range.len()).ok().filter(|_| is_all && have.is_empty());
        Ok(CacheTree {
            name: node.map(|node| node.name.clone()).unwrap_or_default(),
            id: tree,
            num_entries: entries,
            children,
        })
    }

    fn tree_entries(&self, tree: Option<ObjectId>) -> Result<BTreeMap<Vec<u8>, (EntryKind, ObjectId)>> {
        let Some(id) = tree else {
            return Ok(BTreeMap::new());
        };
        let tree = self.repo.find_tree(id)?;
        let tree = tree.decode()?;
        let entries = tree.entries.iter();
        Ok(entries.map(|e| (e.filename.to_vec(), (e.mode.kind(), e.oid.to_owned()))).collect())
    }
}

/// Whether the cache tree says that these places in the index are this tree.
fn is_node(node: Option<&CacheTree>, tree: ObjectId, range: &Range<usize>) -> bool {
    node.is_some_and(|node| node.num_entries == u32::try_from(range.len()).ok() && node.id == tree)
}

fn child_of<'a>(node: Option<&'a CacheTree>, name: &[u8]) -> Option<&'a CacheTree> {
    node?.children.iter().find(|child| child.name.as_slice() == name)
}

/// Intent-to-add entries are in no tree, and unmerged ones cannot be.
fn is_in_tree(entry: &Entry) -> bool {
    !entry.flags.contains(Flags::INTENT_TO_ADD) && entry.stage_raw() == 0
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

    /// Whether the index is this tree.
    pub fn equals_tree(&self, index: &State, tree: ObjectId) -> Result<bool> {
        TreeWalk { repo: self.repo, index }.is_same(index.tree(), tree, 0, 0..index.entries().len())
    }

    /// The cache tree of an index that has none for most of what it holds, as `git commit` would leave it there. `base` is a tree
    /// that some of it is in.
    pub fn cache_tree(&self, index: &State, base: ObjectId) -> Result<CacheTree> {
        let tree = self.index_tree(index, base)?;
        TreeWalk { repo: self.repo, index }.named(index.tree(), tree, 0, 0..index.entries().len())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use proptest::prelude::*;

    #[test]
    fn the_tree_of_an_index_is_what_git_writes_whatever_it_is_made_from() {
        let f = Fixture::new();
        for path in ["a", "d/e/x", "d/y", "d-/z"] {
            f.commit(path, path);
        }
        let blobs = ["one", "two"].map(|content| f.blob(content));
        let names = ["a", "d/e/x", "d/y", "d-/z", "d/e/new", "new", "n/deep/er"];
        let mode = || prop::sample::select(vec!["100644", "100755", "120000", "160000"]);
        let step =
            (prop::sample::select(names.to_vec()), prop::option::of((mode(), prop::sample::select(blobs.to_vec()))));
        let bases = [
            Objects::new(&f.repo).write_empty_tree().expect("write a tree"),
            f.id(&["rev-parse", "HEAD^{tree}"]),
            f.id(&["rev-parse", "HEAD~2^{tree}"]),
        ];
        let config = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
        proptest!(config, |(steps in prop::collection::vec(step, 1..5))| {
            for (path, entry) in steps {
                let line = match entry {
                    Some((mode, id)) => format!("{mode} {id} 0\t{path}\n"),
                    None => format!("0 {} 0\t{path}\n", ObjectId::null(f.repo.hash_kind())),
                };
                f.git_fed(&["update-index", "--index-info"], line.as_bytes());
            }
            let index = Index::new(&f.repo);
            // Before git has written trees into the index, and after.
            let without = index.read_index().expect("read the index");
            let wanted = f.id(&["write-tree", "--missing-ok"]);
            let with = index.read_index().expect("read the index");
            for (read, base) in [&without, &with].into_iter().flat_map(|read| bases.map(|base| (read, base))) {
                let state = index.index_state(read, base).expect("make its tree");
                prop_assert_eq!(state.tree, wanted);
                prop_assert!(state.special.is_empty() && state.sparse.is_empty(), "all of it is ordinary");
            }
        });
    }

    #[test]
    fn what_no_tree_can_hold_is_kept_one_by_one() {
        let f = Fixture::new();
        for path in ["flagged", "hidden", "out/x", "stays"] {
            f.commit(path, path);
        }
        f.git(&["update-index", "--assume-unchanged", "flagged"]);
        f.git(&["update-index", "--skip-worktree", "hidden", "out/x"]);
        f.write("intended", "");
        f.git(&["add", "-N", "intended"]);
        let wanted = f.id(&["write-tree"]);
        let conflict = format!("100644 {0} 1\tconflict\n100644 {0} 3\tconflict\n", f.blob("x"));
        f.git_fed(&["update-index", "--index-info"], conflict.as_bytes());
        let index = Index::new(&f.repo);
        let read = index.read_index().expect("read the index");
        let state = index.index_state(&read, wanted).expect("make a state");
        assert_eq!(state.tree, wanted, "the tree has neither the conflict nor what is only intended");
        assert_eq!(state.special.keys().collect::<Vec<_>>(), ["conflict", "flagged", "hidden", "intended"]);
        assert_eq!(state.sparse.iter().collect::<Vec<_>>(), ["out"], "a directory of which all is left out is one");
        let stages: Vec<u8> = state.special[gix::bstr::BStr::new("conflict")].iter().map(|entry| entry.stage).collect();
        assert_eq!(stages, [1, 3]);
        assert_eq!(index.first_unmerged().expect("look").expect("there is one"), "conflict");
        assert!(index.index_entries(&read, "none".into()).expect("look").is_empty());
    }
}
