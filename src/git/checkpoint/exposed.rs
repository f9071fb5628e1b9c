//! What a state has captured that others could not read in the worktree.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::repo::audience::Audience;
use crate::model::checkpoint::{Checkpoint, Kind};
use crate::model::path::parents;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};

impl Checkpoints<'_> {
    /// The files that a state captured, that git does not track, and that were closed to somebody who can read git's objects,
    /// by the permission bits that were recorded with it.
    pub fn exposed(&self, state: &Checkpoint) -> Result<Vec<BString>> {
        let all = match self.repo.audience() {
            Audience::Everybody => 0o11,
            Audience::Members(_) => 0o10,
            Audience::Nobody => return Ok(Vec::new()),
        };
        let is_closed = |mode: u32, need: u32| mode & (need * all) != need * all;
        let directory_mode = |path: &[u8]| {
            let unusual = state.modes.unusual.get([path, b"/"].concat().as_bstr());
            unusual.copied().unwrap_or(state.modes.usual.directory)
        };
        let mut exposed = Vec::new();
        for (path, change) in Objects::new(self.repo).tree_changes(state.index.tree, state.worktree)? {
            if change.from.is_some() || state.index.special.contains_key(&path) {
                continue;
            }
            let Some(file) = self.captured_file(state, path.as_bstr())? else { continue };
            let is_closed_itself = file.kind != Kind::Symlink && is_closed(file.mode, 0o4);
            if is_closed_itself || parents(path.as_bstr()).any(|above| is_closed(directory_mode(above), 0o5)) {
                exposed.push(path);
            }
        }
        Ok(exposed)
    }
}
