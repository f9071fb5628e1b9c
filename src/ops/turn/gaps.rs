//! What changed in a turn outside of every call of its agents' tools, where they tell of all of these: nobody but the user did
//! it.

use crate::agents::adapters::adapter;
use crate::git::checkpoint::Checkpoints;
use crate::git::timeline::stored::Side;
use crate::model::call::{ToolCall, first_unknown};
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState, IndexEntry, IndexState, Kind};
use crate::model::merge::{Blobs, Merge, Merged};
use crate::model::operation::Operation;
use crate::model::pointers::Pointers;
use crate::model::turn::{Bounds, Turn};
use crate::ops::turn::states;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;

/// What changed between two calls, or after the last.
struct Gap {
    work: Delta,
    from: Pointers,
    to: Pointers,
}

/// All that changed outside of the calls in a turn, in order.
pub struct Gaps(Vec<Gap>);

impl Gaps {
    /// What changed between the steps after this one, and after the last, where its agents tell of all their calls.
    pub fn since(view: &View<'_>, turn: &Turn, since: u64, after: &Checkpoint) -> Result<Self> {
        let (timeline, checkpoints) = (&view.timeline, Checkpoints::new(view.repo));
        let mut gaps = Vec::new();
        if !tells_all(turn) {
            return Ok(Self(gaps));
        }
        let gap = |from: &Checkpoint, to: &Checkpoint| {
            let work = checkpoints.work_between(from, to)?;
            Ok::<_, anyhow::Error>(Gap { work, from: Pointers::of(from), to: Pointers::of(to) })
        };
        let last = timeline.last_step(turn.turn)?;
        for step in since + 1..=last {
            let Some(found) = timeline.step_checkpoint(turn.turn, step, Side::Before)? else { continue };
            gaps.push(gap(&states::after(timeline, turn, step - 1)?, &found)?);
        }
        if turn.users_end {
            gaps.push(gap(&states::after(timeline, turn, last)?, after)?);
        }
        gaps.retain(|gap| !gap.work.is_empty() || gap.from != gap.to);
        Ok(Self(gaps))
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where HEAD, branches and the stash list are without what was done to them by calls.
    pub fn led(&self, mut start: Pointers) -> Pointers {
        for gap in &self.0 {
            start.follow(&gap.from, &gap.to);
        }
        start
    }

    /// Where the user led them from, and where to.
    pub fn moves(self) -> Vec<(Pointers, Pointers)> {
        self.0.into_iter().map(|gap| (gap.from, gap.to)).filter(|(from, to)| from != to).collect()
    }

    /// What git is in the middle of without what calls began and ended.
    pub fn operation(&self, mut start: Operation) -> Operation {
        for change in self.0.iter().filter_map(|gap| gap.work.operation.as_ref()) {
            follow(&mut start, change);
        }
        start
    }

    /// What is staged otherwise than it was, without what calls did.
    pub fn staged(&self, view: &View<'_>, start: &IndexState) -> Result<BTreeMap<BString, Vec<IndexEntry>>> {
        let mut staged: BTreeMap<BString, (Vec<IndexEntry>, Vec<IndexEntry>)> = BTreeMap::new();
        for (path, change) in self.0.iter().flat_map(|gap| &gap.work.index) {
            if !staged.contains_key(path) {
                let was = Checkpoints::new(view.repo).entries_of(start, path.as_bstr())?;
                staged.insert(path.clone(), (was.clone(), was));
            }
            if let Some((_, now)) = staged.get_mut(path) {
                follow(now, change);
            }
        }
        Ok(staged.into_iter().filter(|(_, (was, now))| was != now).map(|(path, (_, now))| (path, now)).collect())
    }

    /// A state with the files and directories as the user left them; what overlaps with what calls did is as it was.
    pub fn put_files(&self, view: &View<'_>, state: &mut Checkpoint) -> Result<()> {
        let checkpoints = Checkpoints::new(view.repo);
        let mut files: BTreeMap<BString, Option<FileState>> = BTreeMap::new();
        checkpoints.merging(|merge| {
            for (path, change) in self.0.iter().flat_map(|gap| &gap.work.files) {
                let now = match files.get(path) {
                    Some(now) => *now,
                    None => checkpoints.captured_file(state, path.as_bstr())?,
                };
                files.insert(path.clone(), saved(path, now, change, merge)?);
            }
            Ok(())
        })?;
        let mut directories: BTreeMap<BString, Option<u32>> = BTreeMap::new();
        for (path, change) in self.0.iter().flat_map(|gap| &gap.work.directories) {
            if !directories.contains_key(path) {
                directories.insert(path.clone(), checkpoints.captured_directory(state, path.as_bstr())?);
            }
            if let Some(now) = directories.get_mut(path) {
                follow(now, change);
            }
        }
        let files: Vec<_> = files.into_iter().collect();
        *state = checkpoints.with_files(state, &files)?;
        checkpoints.put_directories(state, &directories)
    }
}

/// Does what was done to a value to another that is the same.
fn follow<T: Clone + PartialEq>(now: &mut T, change: &Change<T>) {
    if *now == change.from {
        now.clone_from(&change.to);
    }
}

/// A file with a change of the user's made to it; as it was where that overlaps.
fn saved(
    path: &BString,
    now: Option<FileState>,
    change: &Change<Option<FileState>>,
    merge: &mut Merge<'_>,
) -> Result<Option<FileState>> {
    if now == change.from || now == change.to {
        return Ok(change.to);
    }
    let (Some(ours), Some(base), Some(theirs)) = (now, change.from, change.to) else { return Ok(now) };
    if [ours, base, theirs].iter().any(|side| side.kind == Kind::Symlink) {
        return Ok(now);
    }
    let mode = if ours.mode == base.mode { theirs.mode } else { ours.mode };
    let kind = Kind::of_mode(mode);
    if ours.id == base.id || base.id == theirs.id {
        let id = if ours.id == base.id { theirs.id } else { ours.id };
        return Ok(Some(FileState { kind, id, mode }));
    }
    let merged = merge(path.as_bstr(), Blobs { base: base.id, ours: ours.id, theirs: theirs.id })?;
    Ok(match merged {
        Merged::Clean(id) => Some(FileState { kind, id, mode }),
        Merged::Overlap(_) => Some(FileState { kind, mode, ..ours }),
    })
}

/// Whether its agents tell of each call of theirs, and nobody is at work in a turn who tells of none.
fn tells_all(turn: &Turn) -> bool {
    let Bounds { parts, by_hooks, .. } = &turn.origin;
    // The agent of a `run` that has none of these sessions tells of nothing.
    let is_of_run = !by_hooks || turn.exit_code.is_some();
    let are_known = !is_of_run || parts.iter().any(|part| part.inside);
    let all = parts.iter().all(|part| adapter(&part.agent).is_some_and(|adapter| adapter.all_calls));
    are_known && all && !parts.is_empty()
}

/// Whether what changed after a turn's last call is not its agents': all of them tell of each call, and of each of these it
/// is known what it changed.
pub fn is_users_end(turn: &Turn, told: &[ToolCall]) -> bool {
    let has_called = |session: &Option<String>| told.iter().any(|call| call.session == *session);
    let have_all = turn.origin.parts.iter().all(|part| has_called(&part.session));
    tells_all(turn) && have_all && first_unknown(told).is_none()
}
