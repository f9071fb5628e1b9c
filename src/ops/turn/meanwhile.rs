//! What the user saved during a turn, outside of every call of its agents' tools: it is the user's, and undo of the turn keeps
//! it as it keeps what was edited after the turn.

use crate::agents::adapters::adapter;
use crate::git::checkpoint::Checkpoints;
use crate::git::timeline::stored::Side;
use crate::model::call::{ToolCall, first_unknown};
use crate::model::checkpoint::{Change, Checkpoint, FileState, stash_change};
use crate::model::merge::{Blobs, Merge, Merged};
use crate::model::turn::Turn;
use crate::ops::turn::states;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;

/// What changed in each file, and in which order.
type Changes = Vec<BTreeMap<BString, Change<Option<FileState>>>>;

/// Whether what changed after a turn's last call is not its agents': all of them tell of each call, and of each of these it
/// is known what it changed.
pub fn is_users_end(turn: &Turn, told: &[ToolCall]) -> bool {
    let tells_all = |agent: &str| adapter(agent).is_some_and(|adapter| adapter.all_calls);
    let has_called = |session: &Option<String>| told.iter().any(|call| call.session == *session);
    let parts = &turn.origin.parts;
    let is_told = |agent: &str, session| tells_all(agent) && has_called(session);
    !parts.is_empty() && parts.iter().all(|part| is_told(&part.agent, &part.session)) && first_unknown(told).is_none()
}

/// A state from before the end of a turn, with what the user saved after this step of it; none where that is nothing.
pub fn with_saved(
    view: &View<'_>,
    turn: &Turn,
    base: &Checkpoint,
    since: u64,
    after: &Checkpoint,
) -> Result<Option<Checkpoint>> {
    // Undo takes a new entry off the stash list again: what that took from the worktree has to come back then.
    if stash_change(base, after).is_some() {
        return Ok(None);
    }
    let gaps = gaps(view, turn, since, after)?;
    if gaps.is_empty() {
        return Ok(None);
    }
    let checkpoints = Checkpoints::new(view.repo);
    let mut files: BTreeMap<BString, Option<FileState>> = BTreeMap::new();
    checkpoints.merging(|merge| {
        for (path, change) in gaps.into_iter().flatten() {
            let now = match files.get(&path) {
                Some(now) => *now,
                None => checkpoints.captured_file(base, path.as_bstr())?,
            };
            // What overlaps with what the turn did goes with the turn.
            let next = saved(&path, now, &change, merge)?;
            files.insert(path, next);
        }
        Ok(())
    })?;
    let mut changed = Vec::new();
    for (path, file) in files {
        if checkpoints.captured_file(base, path.as_bstr())? != file {
            changed.push((path, file));
        }
    }
    if changed.is_empty() { Ok(None) } else { checkpoints.with_files(base, &changed).map(Some) }
}

/// What changed between the steps after this one, and after the last.
fn gaps(view: &View<'_>, turn: &Turn, since: u64, after: &Checkpoint) -> Result<Changes> {
    let (timeline, checkpoints) = (&view.timeline, Checkpoints::new(view.repo));
    let last = timeline.last_step(turn.turn)?;
    let mut gaps = Vec::new();
    for step in since + 1..=last {
        let Some(found) = timeline.step_checkpoint(turn.turn, step, Side::Before)? else { continue };
        gaps.push(checkpoints.file_changes(&states::after(timeline, turn, step - 1)?, &found)?);
    }
    if turn.users_end {
        gaps.push(checkpoints.file_changes(&states::after(timeline, turn, last)?, after)?);
    }
    gaps.retain(|gap| !gap.is_empty());
    Ok(gaps)
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
    if [base, theirs].iter().any(|side| side.kind != ours.kind) {
        return Ok(now);
    }
    let merged = merge(path.as_bstr(), Blobs { base: base.id, ours: ours.id, theirs: theirs.id })?;
    Ok(match merged {
        Merged::Clean(id) => Some(FileState { id, ..ours }),
        Merged::Overlap(_) => now,
    })
}
