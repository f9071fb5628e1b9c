//! Where the calls of tools may write, as far as they say it.

use crate::git::checkpoint::Checkpoints;
use crate::git::repo::Repo;
use crate::git::worktree::names::is_storable;
use crate::model::call::{ToolCall, ToolUse};
use crate::model::checkpoint::Checkpoint;
use crate::model::turn::Turn;
use crate::ops::turn::states;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where a call may write.
#[derive(Debug, PartialEq, Eq)]
pub enum Reach {
    /// No file of this worktree.
    Nowhere,
    /// This one.
    File(BString),
    /// Any.
    Anywhere,
}

impl Reach {
    /// Of this tool's call.
    pub fn of(repo: &Repo, tool: &ToolUse) -> Self {
        if tool.only_reads() {
            return Self::Nowhere;
        }
        let Some(named) = tool.only_file() else { return Self::Anywhere };
        let full = repo.top().join(repo.prefix()).join(Path::new(named));
        // A link is not followed at the end of a path: a file may be written in its place.
        let (Some((above, name)), Ok(top)) = (place_of(&full), repo.top().canonicalize()) else {
            return Self::Anywhere;
        };
        let Ok(below) = above.strip_prefix(&top) else { return Self::Nowhere };
        let path = BString::from(below.join(name).as_os_str().as_bytes());
        // What git keeps for itself is no file of the worktree.
        if is_storable(path.as_bstr(), true) { Self::File(path) } else { Self::Nowhere }
    }
}

/// The nearest directory above a file that is there, without links in it, and the names from there on: a call may make the
/// directories that it writes in.
fn place_of(file: &Path) -> Option<(PathBuf, PathBuf)> {
    let (mut at, mut names) = (file, PathBuf::new());
    loop {
        let name = Path::new(at.file_name()?);
        names = if names.as_os_str().is_empty() { name.to_owned() } else { name.join(names) };
        at = at.parent()?;
        match at.canonicalize() {
            Ok(above) => return Some((above, names)),
            // A link that leads nowhere is there.
            Err(error) if error.kind() == ErrorKind::NotFound && at.symlink_metadata().is_err() => {}
            Err(_) => return None,
        }
    }
}

/// Whether one of these calls may write a file.
pub fn may_write<'c>(repo: &Repo, mut calls: impl Iterator<Item = &'c ToolCall>, path: &BString) -> bool {
    calls.any(|call| match Reach::of(repo, &call.tool) {
        Reach::Nowhere => false,
        Reach::File(file) => file == *path,
        Reach::Anywhere => true,
    })
}

/// Whether one of these calls may do anything.
pub fn is_any_at_large<'c>(repo: &Repo, mut calls: impl Iterator<Item = &'c ToolCall>) -> bool {
    calls.any(|call| Reach::of(repo, &call.tool) == Reach::Anywhere)
}

/// Of a call that ended nowhere, as one that was denied, it is known that it changed nothing where the one file that it may
/// write is as it was.
pub fn note_idle(view: &View<'_>, turn: &Turn, told: &mut [ToolCall], now: &Checkpoint) -> Result<()> {
    let mut last = None;
    for call in told.iter_mut().filter(|call| call.ended_at.is_none() && !call.is_known) {
        let Reach::File(path) = Reach::of(view.repo, &call.tool) else { continue };
        let last = match &mut last {
            Some(last) => last,
            None => last.insert(states::after(&view.timeline, turn, view.timeline.last_step(turn.turn)?)?),
        };
        let file = |state: &Checkpoint| Checkpoints::new(view.repo).captured_file(state, path.as_bstr());
        call.is_known = file(last)? == file(now)?;
    }
    Ok(())
}
