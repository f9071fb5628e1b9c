//! Which files differ between two states, or between one and the worktree.

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::model::checkpoint::{Checkpoint, Delta};
use crate::model::turn::FileChange;
use crate::ops::resolve::state_at;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use std::ffi::OsString;

/// The two states that these words mean; without a second, the worktree as it is.
pub fn states(view: &View<'_>, from: &str, to: Option<&str>) -> Result<[Checkpoint; 2]> {
    let from = state_at(view, from)?;
    let to = match to {
        Some(words) => state_at(view, words)?,
        None => view.present()?.checkpoint,
    };
    Ok([from, to])
}

/// The files that differ, by path, those that these pathspecs match or all.
pub fn changes(
    view: &View<'_>,
    [from, to]: &[Checkpoint; 2],
    pathspecs: &[OsString],
) -> Result<Vec<(BString, FileChange)>> {
    let checkpoints = Checkpoints::new(view.repo);
    let mut files = checkpoints.file_changes(from, to)?;
    if !pathspecs.is_empty() {
        let mut selection = Index::new(view.repo).selection(pathspecs)?;
        files.retain(|path, _| selection.takes(path.as_bstr()));
    }
    let paths: Vec<BString> = files.keys().cloned().collect();
    let (changes, _) = checkpoints.file_stats(&Delta { files, ..Delta::default() })?;
    Ok(paths.into_iter().zip(changes).collect())
}

/// How a file differs, as git's patches have it.
pub fn patch(view: &View<'_>, [from, to]: &[Checkpoint; 2], path: &BStr) -> Result<Vec<u8>> {
    Objects::new(view.repo).patch(from.worktree, to.worktree, path)
}
