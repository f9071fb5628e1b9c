//! The states at the ends of a turn's steps.

use crate::git::timeline::stored::{Side, Stored};
use crate::model::checkpoint::Checkpoint;
use crate::model::pointers::Pointers;
use crate::model::turn::Turn;
use crate::ops::turn::with_dirty_commit;
use anyhow::{Context, Result};

/// The state before a step: its own, or the one after the step below it, or at the turn's beginning.
pub fn before(timeline: &Stored<'_>, turn: &Turn, step: u64) -> Result<Checkpoint> {
    if let Some(own) = timeline.step_checkpoint(turn.turn, step, Side::Before)? {
        return Ok(own);
    }
    after(timeline, turn, step.saturating_sub(1))
}

/// Where HEAD, the branches and the stash list were as it began.
pub fn pointers_at_beginning(timeline: &Stored<'_>, turn: &Turn) -> Result<Pointers> {
    let mut start = timeline.checkpoint(turn.turn, Side::Before)?;
    turn.dirty_commit.into_iter().for_each(|dirty| start.advance(dirty));
    Ok(Pointers::of(&start))
}

fn at_beginning(timeline: &Stored<'_>, turn: &Turn) -> Result<Checkpoint> {
    with_dirty_commit(timeline.repo, &timeline.checkpoint(turn.turn, Side::Before)?, turn.dirty_commit)
}

/// The state after a step; after 0 the turn's beginning.
pub fn after(timeline: &Stored<'_>, turn: &Turn, step: u64) -> Result<Checkpoint> {
    if step == 0 {
        return at_beginning(timeline, turn);
    }
    let state = timeline.step_checkpoint(turn.turn, step, Side::After)?;
    state.with_context(|| format!("step {}.{step} has no state", turn.turn))
}
