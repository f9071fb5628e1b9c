//! Sparse checkouts: what is left out of the worktree, directory by directory.
//! git's sparse index has one entry for such a directory. It is read as it is, and
//! a directory is expanded only where a file of it is on disk or is asked for.

use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::worktree::names::is_storable;
use crate::git::worktree::{Worktree, is_denied};
use crate::model::checkpoint::{IndexEntry, IndexState};
use crate::model::path::parents;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::{Entry, File as IndexFile, State};
use gix::objs::tree::{EntryKind, EntryMode};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// What a tree has under one name.
type NamedEntry = (BString, EntryMode, ObjectId);

impl Index<'_> {
    /// A sparse index, with those of its directories expanded that are on disk all the same. Most often none
    /// is, and the index stays as it is.
    pub fn expanded_where_present(&self, index: Arc<IndexFile>) -> Result<Arc<IndexFile>> {
        let mut there = Vec::new();
        for entry in index.entries().iter().filter(|entry| entry.mode == Mode::DIR) {
            let path = entry.path(&index);
            if self.is_directory(path)? {
                there.push((path.to_owned(), entry.id));
            }
        }
        if there.is_empty() {
            return Ok(index);
        }
        let mut opened = (*index).clone();
        let paths: HashSet<&BStr> = there.iter().map(|(path, _)| path.as_bstr()).collect();
        opened.remove_entries(|_, path, entry| entry.mode == Mode::DIR && paths.contains(path));
        drop(paths);
        while let Some((directory, tree)) = there.pop() {
            for (name, mode, id) in self.tree_entries(tree)? {
                let slash: &[u8] = if mode.is_tree() { b"/" } else { b"" };
                let path = BString::from([directory.as_slice(), &name, slash].concat());
                if mode.is_tree() && self.is_directory(path.as_bstr())? {
                    there.push((path, id));
                } else {
                    let mode = Mode::from_bits_truncate(u32::from(mode.value()));
                    opened.dangerously_push_entry(Stat::default(), id, Flags::SKIP_WORKTREE, mode, path.as_bstr());
                }
            }
        }
        opened.sort_entries();
        Ok(Arc::new(opened))
    }

    fn is_directory(&self, path: &BStr) -> Result<bool> {
        let path = path.strip_suffix(b"/").unwrap_or(path).as_bstr();
        if !is_storable(path, false) {
            return Ok(false);
        }
        match Worktree::new(self.repo).open_directory(path) {
            Err(error) if is_denied(&error) => Ok(true),
            opened => Ok(opened?.is_some()),
        }
    }

    /// The index as git sees it where entries marked skip-worktree are on disk: in a sparse checkout git takes
    /// them for ordinary entries.
    pub fn with_present_entries(&self, index: Arc<IndexFile>, there: &[usize]) -> Result<Arc<IndexFile>> {
        if there.is_empty() || !self.shows_what_is_there()? {
            return Ok(index);
        }
        let mut shown = (*index).clone();
        for at in there {
            shown.entries_mut()[*at].flags.remove(Flags::SKIP_WORKTREE);
        }
        Ok(Arc::new(shown))
    }

    /// Whether git treats a file that is on disk as not left out (`sparse.expectFilesOutsideOfPatterns`). The agent may
    /// have changed the setting.
    pub fn shows_what_is_there(&self) -> Result<bool> {
        let now = gix::open_opts(self.repo.gix.git_dir(), self.repo.gix.open_options().clone())?;
        let config = now.config_snapshot();
        let expected = config.boolean("sparse.expectFilesOutsideOfPatterns").unwrap_or_default();
        Ok(config.boolean("core.sparseCheckout").unwrap_or_default() && !expected)
    }

    /// The entry of a path that is below an entry of a sparse index.
    pub fn entry_in_sparse_index(&self, index: &State, path: &BStr) -> Result<Option<IndexEntry>> {
        if !index.is_sparse() {
            return Ok(None);
        }
        for directory in parents(path) {
            let key = BString::from([directory.as_bytes(), b"/"].concat());
            if let Some(entry) = index.entry_by_path(key.as_bstr()) {
                let below = path[key.len()..].as_bstr();
                let found = Objects::new(self.repo).plain_entries(entry.id, below).or_else(|_| {
                    // A partial clone lacks a tree on the way: git fetches them.
                    let _ =
                        self.repo.git_apart(["rev-parse", "-q", "--verify", &format!("{}:{below}", entry.id)]).run(b"");
                    Objects::new(self.repo).plain_entries(entry.id, below)
                })?;
                return Ok(found.first().map(|entry| IndexEntry { skip_worktree: true, ..*entry }));
            }
        }
        Ok(None)
    }

    /// Takes a path out of the sparse directory that it is in; everything else in there stays left out.
    pub fn take_from_sparse(&self, state: &mut IndexState, path: &BStr) -> Result<()> {
        while let Some(top) = state.sparse_directory(path).map(ToOwned::to_owned) {
            state.sparse.remove(&top);
            let Some((EntryKind::Tree, tree)) = Objects::new(self.repo).tree_entry(state.tree, top.as_bstr())? else {
                continue;
            };
            for (name, mode, id) in self.tree_entries(tree)? {
                let inner = BString::from([top.as_slice(), b"/", &name].concat());
                if mode.is_tree() {
                    state.sparse.insert(inner);
                } else if inner != path {
                    let entry = IndexEntry::plain(u32::from(mode.value()), id);
                    state.special.insert(inner, vec![IndexEntry { skip_worktree: true, ..entry }]);
                }
            }
        }
        Ok(())
    }

    /// Whether this is a sparse checkout (`core.sparseCheckout`).
    pub fn is_sparse_checkout(&self) -> bool {
        self.repo.gix.config_snapshot().boolean("core.sparseCheckout").unwrap_or_default()
    }

    /// Whether git keeps a sparse index (`index.sparse`).
    pub fn has_sparse_index(&self) -> bool {
        self.repo.gix.config_snapshot().boolean("index.sparse").unwrap_or_default()
    }

    /// A path that is left out, where a directory could be collapsed and is not: looking it up makes git expand
    /// those that are collapsed.
    pub fn path_to_collapse_by(&self, index: &State) -> Result<Option<BString>> {
        let sparse = sparse_directories(index);
        let left_out = index.entries().iter().filter(|entry| entry.mode != Mode::DIR && is_left_out(entry));
        let mut paths = left_out.map(|entry| entry.path(index));
        let Some(open) = paths.find(|path| parents(path).any(|directory| sparse.contains(directory))) else {
            return Ok(None);
        };
        let Some(folded) = index.entries().iter().find(|entry| entry.mode == Mode::DIR) else {
            return Ok(Some(open.to_owned()));
        };
        let (mut path, mut tree) = (folded.path(index).to_owned(), folded.id);
        while let Some((name, mode, id)) = self.tree_entries(tree)?.into_iter().next() {
            path.extend_from_slice(&name);
            if !mode.is_tree() {
                return Ok(Some(path));
            }
            path.push(b'/');
            tree = id;
        }
        Ok(None)
    }

    /// The entries of a tree, which git fetches where a partial clone lacks it.
    fn tree_entries(&self, id: ObjectId) -> Result<Vec<NamedEntry>> {
        if !self.repo.has_object(id) {
            self.repo.git_apart(["cat-file", "-e", &id.to_string()]).run(b"").context("fetch a tree")?;
        }
        let tree = self.repo.find_tree(id)?;
        let tree = tree.decode()?;
        Ok(tree.entries.iter().map(|entry| (entry.filename.to_owned(), entry.mode, entry.oid.to_owned())).collect())
    }
}

/// Whether all that is special about an entry is that it is left out of the worktree.
pub fn is_left_out(entry: &Entry) -> bool {
    let flags = Flags::SKIP_WORKTREE | Flags::INTENT_TO_ADD | Flags::ASSUME_VALID;
    entry.stage_raw() == 0 && entry.flags.intersection(flags) == Flags::SKIP_WORKTREE
}

/// The topmost directories whose whole content is left out, whether the index has one entry for such a
/// directory or one for each file in it.
pub fn sparse_directories(index: &State) -> BTreeSet<BString> {
    let mut sparse: BTreeSet<BString> = BTreeSet::new();
    if !index.entries().iter().any(is_left_out) {
        return sparse;
    }
    let mut open: HashSet<&BStr> = HashSet::new();
    for entry in index.entries().iter().filter(|entry| !is_left_out(entry)) {
        // Once one is known, so are those above it.
        let _ = parents(entry.path(index)).find(|directory| !open.insert(directory));
    }
    let mut within: &[u8] = b"";
    for entry in index.entries().iter().filter(|entry| is_left_out(entry)) {
        let path = entry.path(index);
        if !within.is_empty() && path.starts_with(within) {
            continue;
        }
        let slashes = path.find_iter(b"/");
        if let Some(slash) = slashes.into_iter().find(|slash| !open.contains(path[..*slash].as_bstr())) {
            within = &path[..=slash];
            sparse.insert(path[..slash].into());
        }
    }
    sparse
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(entries: &[(&str, Flags)]) -> State {
        let kind = gix::hash::Kind::Sha1;
        let mut index = State::new(kind);
        for (path, flags) in entries {
            let mode = if path.ends_with('/') { Mode::DIR } else { Mode::FILE };
            index.dangerously_push_entry(Stat::default(), ObjectId::null(kind), *flags, mode, BStr::new(path));
        }
        index.sort_entries();
        index
    }

    #[track_caller]
    fn check(entries: &[(&str, Flags)], wanted: &[&str]) {
        let found = sparse_directories(&index(entries));
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn what_is_left_out_is_named_by_its_topmost_directories() {
        let (out, here) = (Flags::SKIP_WORKTREE, Flags::empty());
        check(&[("a/x", here), ("b/y", here)], &[]);
        check(&[("a/x", here), ("b/c/y", out), ("b/d/z", out), ("top", out)], &["b"]);
        check(&[("b/", out)], &["b"]);
        check(&[("b/c/", out), ("b/d/z", out), ("b/e/", out)], &["b"]);
        check(&[("b/c/", out), ("b/d/y", here), ("b/d/e/z", out), ("b-/x", out), ("b", out)], &["b-", "b/c", "b/d/e"]);
    }

    #[test]
    fn what_is_marked_otherwise_keeps_its_directories_from_being_sparse() {
        let out = Flags::SKIP_WORKTREE;
        check(&[("a/b/x", out), ("a/y", out | Flags::ASSUME_VALID), ("c/z", out | Flags::INTENT_TO_ADD)], &["a/b"]);
        check(&[("a/b/x", out), ("a/y", out | Flags::from_stage(gix::index::entry::Stage::Ours))], &["a/b"]);
    }
}
