//! A state with some files as they are elsewhere: what changed is known, and nothing else need be looked at.

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeChange, entry_kind, plain_entry, tree_change};
use crate::model::checkpoint::{Checkpoint, FileState, IndexEntry, IndexState, Kind};
use crate::model::path::parents;
use anyhow::{Error, Result};
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::tree::EntryKind;
use std::collections::BTreeMap;

impl Checkpoints<'_> {
    /// A state with these files, or without them. Without a file is with the directory that has its name.
    pub fn with_files(&self, base: &Checkpoint, files: &[(BString, Option<FileState>)]) -> Result<Checkpoint> {
        let mut state = base.clone();
        let mut changes: Vec<TreeChange> = Vec::new();
        for (path, file) in files {
            let is_directory = |entry: Option<(EntryKind, _)>| entry.is_some_and(|(kind, _)| kind == EntryKind::Tree);
            if file.is_none() && is_directory(Objects::new(self.repo).tree_entry(base.worktree, path.as_bstr())?) {
                continue;
            }
            changes.push((path.clone(), file.map(|file| (entry_kind(file.kind), file.id))));
            state.modes.unusual.remove(path);
            let Some(file) = file else { continue };
            if file.kind != Kind::Symlink && file.mode != state.modes.usual.of(file.kind) {
                state.modes.unusual.insert(path.clone(), file.mode);
            }
            for directory in parents(path.as_bstr()) {
                state.directories.remove(directory);
            }
        }
        state.worktree = Objects::new(self.repo).edited_tree(base.worktree, &changes)?;
        Ok(state)
    }

    /// A state with these paths as another has them.
    pub fn with_paths_of<'p>(
        &self,
        base: &Checkpoint,
        from: &Checkpoint,
        paths: impl IntoIterator<Item = &'p BString>,
    ) -> Result<Checkpoint> {
        let file = |path: &BString| Ok((path.clone(), self.captured_file(from, path.as_bstr())?));
        let files: Vec<_> = paths.into_iter().map(file).collect::<Result<_>>()?;
        self.with_files(base, &files)
    }

    /// A state with these paths as another has them, in the worktree and in the index.
    pub fn with_all_of_paths(&self, base: &Checkpoint, from: &Checkpoint, paths: &[BString]) -> Result<Checkpoint> {
        let mut state = self.with_paths_of(base, from, paths)?;
        let entries = |path: &BString| Ok((path.clone(), self.entries_of(&from.index, path.as_bstr())?));
        self.put_entries(&mut state.index, &paths.iter().map(entries).collect::<Result<_>>()?)?;
        Ok(state)
    }

    /// Gives a state these directories, or takes them away; those with captured files stay.
    pub fn put_directories(&self, state: &mut Checkpoint, directories: &BTreeMap<BString, Option<u32>>) -> Result<()> {
        let objects = Objects::new(self.repo);
        for (path, mode) in directories {
            let key = BString::from([path.as_slice(), b"/"].concat());
            let mut here = parents(path.as_bstr()).chain([path.as_bstr()]);
            // Where a file is none can be.
            if here.try_fold(false, |is, at| Ok::<_, Error>(is || objects.tree_file(state.worktree, at)?.is_some()))? {
                state.modes.unusual.remove(&key);
                state.directories.remove(path);
                continue;
            }
            let holds_files = objects.tree_entry(state.worktree, path.as_bstr())?.is_some();
            match mode.filter(|mode| *mode != state.modes.usual.directory) {
                Some(mode) => drop(state.modes.unusual.insert(key, mode)),
                None if mode.is_some() || !holds_files => drop(state.modes.unusual.remove(&key)),
                None => {}
            }
            if mode.is_some() && !holds_files {
                state.directories.insert(path.clone());
            } else {
                state.directories.remove(path);
            }
        }
        Ok(())
    }

    /// What an index has at a path.
    pub fn entries_of(&self, index: &IndexState, path: &BStr) -> Result<Vec<IndexEntry>> {
        if let Some(special) = index.special.get(path) {
            return Ok(special.clone());
        }
        let entry = Objects::new(self.repo).entry_at(index.tree, path)?;
        Ok(plain_entry(entry, index.sparse_directory(path).is_some()))
    }

    /// Gives an index these entries.
    pub fn put_entries(&self, index: &mut IndexState, entries: &BTreeMap<BString, Vec<IndexEntry>>) -> Result<()> {
        let mut changes: Vec<TreeChange> = Vec::new();
        for (path, entries) in entries {
            Index::new(self.repo).take_from_sparse(index, path.as_bstr())?;
            changes.push(tree_change(path, entries));
            index.special.remove(path);
            if entries.iter().any(|entry| !entry.is_plain()) {
                index.special.insert(path.clone(), entries.clone());
            }
        }
        index.tree = Objects::new(self.repo).edited_tree(index.tree, &changes)?;
        Ok(())
    }
}
