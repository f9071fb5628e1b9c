//! What an operation of `log --ops` kept of the worktree: the state in which a turn began or had ended, the one before an
//! undo or a redo, or the one that was named. `op:12` means it.

use crate::git::timeline::Timelines;
use crate::git::timeline::oplog::Operation;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::checkpoint::Checkpoint;
use crate::ops::view::View;
use anyhow::Result;

/// The operations with their numbers, the newest first. Each has its own, but for what takes one back; the first release
/// did not number them.
pub fn numbered(view: &View<'_>) -> Result<Vec<(u64, Operation)>> {
    let timelines = Timelines::new(view.repo);
    let operations = timelines.operations()?;
    let mut last = operations.len() as u64 + 1;
    let mut numbered = Vec::new();
    for operation in operations {
        let known = timelines.timeline_at(operation.commit).map_or(0, |stored| stored.state.operation);
        last = if known == 0 { last.saturating_sub(1) } else { known };
        numbered.push((last, operation));
    }
    Ok(numbered)
}

/// The state that an operation kept; none where there is no such operation, or it kept none.
pub fn state_of(view: &View<'_>, number: u64) -> Result<Option<Checkpoint>> {
    let timelines = Timelines::new(view.repo);
    let mut operations =
        numbered(view)?.into_iter().skip_while(|(at, _)| *at != number).map(|(_, operation)| operation);
    let read = |operation: Operation| timelines.timeline_at(operation.commit);
    let mut stored = operations.next().map(read).transpose()?;
    while let Some(at) = stored {
        // What did not touch the worktree left it as the operation before it.
        let before = operations.next().map(read).transpose()?;
        if let Some(kept) = kept(&at, before.as_ref())? {
            return Ok(Some(kept));
        }
        stored = before;
    }
    Ok(None)
}

/// What one operation kept, by what the timeline was before it.
fn kept(stored: &Stored<'_>, before: Option<&Stored<'_>>) -> Result<Option<Checkpoint>> {
    let (now, was) = (&stored.state, before.map(|before| &before.state));
    let was_open = was.and_then(|was| was.open);
    if let Some(open) = now.open.filter(|_| now.open != was_open) {
        return stored.checkpoint(open, Side::Before).map(Some);
    }
    if let (Some(ended), None) = (was_open, now.open)
        && stored.find_turn(ended)?.is_some()
    {
        return stored.checkpoint(ended, Side::After).map(Some);
    }
    if let Some(was) = was.filter(|was| was.next_rescue < now.next_rescue)
        && let Ok(rescue) = stored.rescue(was.next_rescue)
    {
        return Ok(Some(rescue));
    }
    let is_new = |number: u64| was.is_some_and(|was| was.named.values().all(|named| named.number != number));
    match now.named.values().find(|named| is_new(named.number)) {
        Some(named) => stored.named_checkpoint(named.number).map(Some),
        None => Ok(None),
    }
}
