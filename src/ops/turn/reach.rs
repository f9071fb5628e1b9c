//! Where the calls of tools may write, as far as they say it.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::worktree::names::is_storable;
use crate::model::call::{ToolCall, ToolUse};
use crate::model::checkpoint::{Checkpoint, FileState};
use crate::model::turn::Turn;
use crate::ops::turn::states;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
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
        let full = full_path(repo, named);
        // It fails there, and changes nothing of what is in it.
        if full.symlink_metadata().is_ok_and(|it| it.is_dir()) {
            return Self::Nowhere;
        }
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

/// A tool's call, as it begins: the file that it names may be a link to another one, or have more names than one.
pub fn as_begun(repo: &Repo, tool: &ToolUse) -> ToolUse {
    let about = tool.only_file().and_then(|named| full_path(repo, named).symlink_metadata().ok());
    let has_other_names = about.is_some_and(|file| file.is_symlink() || (file.is_file() && file.nlink() > 1));
    ToolUse { has_other_names, ..tool.clone() }
}

fn full_path(repo: &Repo, named: &str) -> PathBuf {
    repo.top().join(repo.prefix()).join(Path::new(named))
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

/// The files that calls of these name which write no other: as the first of them found it, or else as a state has it. Of one
/// that was left out of that nothing is told.
pub fn found_by(
    repo: &Repo,
    told: &[ToolCall],
    which: impl Fn(&ToolCall) -> bool,
    state: &Checkpoint,
) -> Result<BTreeMap<BString, Option<FileState>>> {
    let mut files = BTreeMap::new();
    for call in told.iter().filter(|call| which(call)) {
        let Reach::File(path) = Reach::of(repo, &call.tool) else { continue };
        if let Entry::Vacant(place) = files.entry(path) {
            let file = match found(repo, told, call, place.key()) {
                Some(found) => found,
                None => Checkpoints::new(repo).captured_file(state, place.key().as_bstr())?,
            };
            // It was there all the same.
            if file.is_some() || !call.beyond {
                place.insert(file);
            }
        }
    }
    Ok(files)
}

/// What a call found in the file that it names, where nothing tells yet what came of that: neither itself nor a later one.
#[allow(clippy::option_option, reason = "it may have been taken away")]
fn found(repo: &Repo, told: &[ToolCall], call: &ToolCall, path: &BString) -> Option<Option<FileState>> {
    let found = call.left(|file| Objects::new(repo).has_object(file.id)).filter(|_| !call.is_known)?;
    let is_later = |other: &&ToolCall| other.is_known && other.told.1.is_some_and(|end| end > call.told.0);
    let names_it = |other: &ToolCall| Reach::of(repo, &other.tool) == Reach::File(path.clone());
    (!told.iter().filter(is_later).any(names_it)).then_some(found)
}

/// What a call that has ended found in the file that it names: as it began, or where another one might write that then, as
/// that one began.
#[allow(clippy::option_option, reason = "it may have been taken away")]
pub fn found_as_begun(
    repo: &Repo,
    told: &[ToolCall],
    call: &ToolCall,
    path: &BString,
) -> Result<Option<Option<FileState>>> {
    if let Some(found) = found(repo, told, call, path) {
        return Ok(Some(found));
    }
    let names_it = |other: &ToolCall| Reach::of(repo, &other.tool) == Reach::File(path.clone());
    for other in told.iter().filter(|other| other.told.0 < call.told.0 && other.overlaps(call)) {
        if names_it(other) {
            if let Some(found) = found_as_begun(repo, told, other, path)? {
                return Ok(Some(found));
            }
            continue;
        }
        let is_since = |one: &&ToolCall| one.is_known && one.told.1.is_some_and(|end| end > other.told.0);
        let state = other.state.filter(|state| Objects::new(repo).has_object(*state));
        if let Some(state) = state.filter(|_| !told.iter().filter(is_since).any(names_it)) {
            let state = Checkpoints::new(repo).read_checkpoint(state)?;
            return Checkpoints::new(repo).captured_file(&state, path.as_bstr()).map(Some);
        }
    }
    Ok(None)
}

/// Whether one of these calls may do anything.
pub fn is_any_at_large<'c>(repo: &Repo, mut calls: impl Iterator<Item = &'c ToolCall>) -> bool {
    calls.any(|call| Reach::of(repo, &call.tool) == Reach::Anywhere)
}

/// Of a call that ended nowhere, as one that was denied, it is known that it changed nothing where the one file that it may
/// write is as it was, or as somebody had left it.
pub fn note_idle(view: &View<'_>, turn: &Turn, told: &mut [ToolCall], now: &Checkpoint) -> Result<()> {
    let mut last = None;
    for call in told.iter_mut().filter(|call| call.ended_at.is_none() && !call.is_known) {
        let Reach::File(path) = Reach::of(view.repo, &call.tool) else { continue };
        let last = match &mut last {
            Some(last) => last,
            None => last.insert(states::after(&view.timeline, turn, view.timeline.last_step(turn.turn)?)?),
        };
        let file = |state: &Checkpoint| Checkpoints::new(view.repo).captured_file(state, path.as_bstr());
        let now = file(now)?;
        call.is_known = now == file(last)? || call.left(|_| true) == Some(now);
    }
    Ok(())
}
