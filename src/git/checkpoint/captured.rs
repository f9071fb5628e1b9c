//! What a checkpoint has at a path.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::model::checkpoint::{Checkpoint, FileState, Kind};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::tree::EntryKind;

impl Checkpoints<'_> {
    /// The file that a checkpoint captured at a path.
    pub fn captured_file(&self, checkpoint: &Checkpoint, path: &BStr) -> Result<Option<FileState>> {
        let found = Objects::new(self.repo).tree_file(checkpoint.worktree, path)?;
        Ok(found.map(|(kind, id)| with_mode(checkpoint, path, kind, id)))
    }

    /// The mode of a directory that was there when a checkpoint was taken.
    pub fn captured_directory(&self, checkpoint: &Checkpoint, path: &BStr) -> Result<Option<u32>> {
        let exists = checkpoint.directories.contains(path)
            || matches!(Objects::new(self.repo).tree_entry(checkpoint.worktree, path)?, Some((EntryKind::Tree, _)));
        if !exists {
            return Ok(None);
        }
        let key = BString::from([path.as_bytes(), b"/"].concat());
        let modes = &checkpoint.modes;
        Ok(Some(modes.unusual.get(&key).copied().unwrap_or(modes.usual.directory)))
    }

    /// Whether a file can be at a path beside what a checkpoint captured: no directory is there, nor a file where one would have
    /// to be.
    pub fn has_room(&self, checkpoint: &Checkpoint, path: &BStr) -> Result<bool> {
        let is_tree = |path: &BStr| {
            let entry = Objects::new(self.repo).tree_entry(checkpoint.worktree, path)?;
            Ok::<_, anyhow::Error>(entry.map(|(kind, _)| kind == EntryKind::Tree))
        };
        for at in path.find_iter("/") {
            if is_tree(path[..at].as_bstr())? == Some(false) {
                return Ok(false);
            }
        }
        Ok(is_tree(path)? != Some(true))
    }
}

/// A file with the mode that a checkpoint says.
pub fn with_mode(checkpoint: &Checkpoint, path: &BStr, kind: Kind, id: ObjectId) -> FileState {
    if kind == Kind::Symlink {
        return FileState { kind, id, mode: 0 };
    }
    let recorded = checkpoint.modes.unusual.get(path).copied();
    let mode = recorded.unwrap_or_else(|| checkpoint.modes.usual.of(kind));
    // Without core.fileMode a tree has the index's kind, which the file may not have.
    FileState { kind: Kind::of_mode(mode), id, mode }
}
