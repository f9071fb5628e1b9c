//! What changed in a turn outside of its calls while something of it may have been at work: what one has left running, or a call of
//! which nothing told the end. It counts as the turn's, and somebody else may have saved in that time.

use crate::git::checkpoint::Checkpoints;
use crate::git::timeline::stored::Side;
use crate::model::bytes::first_in_quotes;
use crate::model::checkpoint::{Checkpoint, Skipped};
use crate::model::plan::Plan;
use crate::model::turn::Turn;
use crate::ops::turn::gaps::{committed_since, tells_all};
use crate::ops::turn::meanwhile::{changed_files, without_commit};
use crate::ops::turn::states;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::BString;
use std::collections::BTreeSet;

/// So many files are named.
const NAMED: usize = 5;

/// What is said of what of it a plan takes back.
pub fn told_of_taken(view: &View<'_>, turn: &Turn, plan: &Plan) -> Option<String> {
    // It is one more word than is asked for.
    let changed = changed_by_its_end(view, turn).unwrap_or_default();
    let taken: Vec<BString> = changed_files(plan).filter(|path| changed.contains(path)).collect();
    let paths: Vec<&BString> = taken.iter().collect();
    let told = || {
        format!(
            "{} changed outside of turn {}'s calls, while one may have been at work: what you saved there goes with it",
            first_in_quotes(&paths, NAMED),
            turn.turn
        )
    };
    (!paths.is_empty()).then(told)
}

fn changed_by_its_end(view: &View<'_>, turn: &Turn) -> Result<BTreeSet<BString>> {
    changed(view, turn, &without_commit(view, turn, &view.timeline.checkpoint(turn.turn, Side::After)?)?)
}

/// What lies between the steps of a turn that tells of some of its calls and not of all, and behind the last one.
pub fn beside_told(view: &View<'_>, turn: &Turn, after: &Checkpoint) -> Result<Vec<(Checkpoint, Checkpoint)>> {
    let (timeline, mut beside) = (&view.timeline, Vec::new());
    for step in timeline.steps_with_gaps(turn.turn)? {
        let Some(before) = timeline.step_checkpoint(turn.turn, step, Side::Before)? else { continue };
        if timeline.step(turn.turn, step)?.is_some_and(|step| step.is_background()) {
            beside.push((before.clone(), states::after(timeline, turn, step)?));
        }
        beside.push((states::after(timeline, turn, step - 1)?, before));
    }
    beside.push((states::after(timeline, turn, timeline.last_step(turn.turn)?)?, after.clone()));
    Ok(beside)
}

/// The files that changed so by this end of the turn, and what is beyond the limits; none where no calls are told of.
pub fn changed(view: &View<'_>, turn: &Turn, after: &Checkpoint) -> Result<BTreeSet<BString>> {
    let (timeline, checkpoints, mut changed) = (&view.timeline, Checkpoints::new(view.repo), BTreeSet::new());
    let (last, at_work_after) = (timeline.last_step(turn.turn)?, turn.origin.at_work_after());
    let is_over = turn.users_end && at_work_after.is_none();
    let tells_all = tells_all(turn);
    let tells_some = || Ok::<_, anyhow::Error>(last > 0 && !timeline.turn_calls(turn.turn)?.is_empty());
    if (is_over && turn.origin.background.is_empty()) || (!tells_all && !tells_some()?) {
        return Ok(changed);
    }
    if last == 0 && at_work_after.is_none() {
        let calls = timeline.turn_calls(turn.turn)?;
        // What nothing told the end of made all of it; of who tells of no call at all, each turn would be named.
        if calls.iter().any(|call| call.ended_at.is_none()) || calls.is_empty() && !view.config().steps()? {
            return Ok(changed);
        }
    }
    let mut note = |from: &Checkpoint, to: &Checkpoint| {
        // What the user has committed is theirs, but where not all calls are told of: a commit goes with the turn there.
        let theirs = if tells_all { committed_since(view, from, to)? } else { Vec::new() };
        let files = checkpoints.file_changes(from, to)?.into_keys().filter(|path| !theirs.contains(path));
        let files: BTreeSet<BString> = files.collect();
        if !files.is_empty() {
            // Somebody may have given it another name since.
            let since = checkpoints.surely_came_from(&checkpoints.file_changes(to, after)?)?.into_iter();
            changed.extend(since.filter(|(_, old)| files.contains(old)).map(|(new, _)| new));
        }
        changed.extend(files);
        let was: BTreeSet<&Skipped> = from.skipped.iter().collect();
        changed.extend(to.skipped.iter().filter(|it| it.is_movable() && !was.contains(it)).map(|it| it.path.clone()));
        Ok::<_, anyhow::Error>(())
    };
    if !tells_all {
        for (from, to) in beside_told(view, turn, after)? {
            note(&from, &to)?;
        }
        return Ok(changed);
    }
    for step in at_work_after.unwrap_or(last)..last {
        if let Some(before) = timeline.step_checkpoint(turn.turn, step + 1, Side::Before)? {
            note(&states::after(timeline, turn, step)?, &before)?;
        }
    }
    for step in timeline.steps_with_gaps(turn.turn)? {
        let Some(before) = timeline.step_checkpoint(turn.turn, step, Side::Before)? else { continue };
        if timeline.step(turn.turn, step)?.is_some_and(|step| step.is_background()) {
            note(&before, &states::after(timeline, turn, step)?)?;
        } else if turn.origin.was_background_before(step) {
            // A call that names this file has found it so.
            let last = states::after(timeline, turn, step - 1)?;
            note(&timeline.found_behind(turn.turn, step - 1)?.unwrap_or(last), &before)?;
        }
    }
    if is_over {
        return Ok(changed);
    }
    let is_last = at_work_after.is_none_or(|after| after == last);
    let found = if is_last { timeline.found(turn.turn)? } else { None };
    let found = found.map_or_else(|| states::after(timeline, turn, last), Ok)?;
    note(&found, after)?;
    Ok(changed)
}
