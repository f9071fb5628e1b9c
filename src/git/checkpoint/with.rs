//! A state with some files as they are elsewhere: what changed is known, and nothing else need be looked at.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeChange, entry_kind};
use crate::model::checkpoint::{Checkpoint, FileState, Kind};
use crate::model::path::parents;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};

impl Checkpoints<'_> {
    /// A state with these files, or without them.
    pub fn with_files(&self, base: &Checkpoint, files: &[(BString, Option<FileState>)]) -> Result<Checkpoint> {
        let mut state = base.clone();
        let mut changes: Vec<TreeChange> = Vec::new();
        for (path, file) in files {
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
}
