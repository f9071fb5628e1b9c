//! In which state a call found all as it began: what somebody had changed by then, since the last step, is not its own.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::model::call::ToolCall;
use crate::model::checkpoint::Checkpoint;
use crate::model::pointers::{Moved, Pointers};
use crate::model::timeline::Pin;
use crate::model::turn::Turn;
use crate::ops::turn::reach::{Reach, found_by, is_any_at_large};
use crate::ops::turn::{calls, states};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::BString;

/// The state in which the first call found all that may do anything and ended nowhere: who changed something between the last step
/// and that was none of the agents. None where nobody did, or it is not known.
pub fn found_by_unended(
    view: &View<'_>,
    turn: &Turn,
    last: &Checkpoint,
    now: &Checkpoint,
) -> Result<Option<Checkpoint>> {
    if view.timeline.state.open != Some(turn.turn) {
        return view.timeline.found(turn.turn);
    }
    let told = calls::in_open_turn(view.repo);
    let unended = told.iter().filter(|call| !call.is_known && Reach::of(view.repo, &call.tool) == Reach::Anywhere);
    let Some(first) = unended.min_by_key(|call| call.told.0) else { return Ok(None) };
    if let Some(found) = found_state(view, last, &told, first)? {
        return Ok(Some(found));
    }
    let (start, mut before) = (states::pointers_at_beginning(&view.timeline, turn)?, None);
    lead_before(view.repo, &start, last, (&told, first), (&mut before, now));
    Ok(before)
}

/// The state that was found as this call began, or one before it that is not over: what somebody else had changed by then is in
/// no step yet. What steps have told since is in it.
pub fn found_state(
    view: &View<'_>,
    last: &Checkpoint,
    told: &[ToolCall],
    call: &ToolCall,
) -> Result<Option<Checkpoint>> {
    let is_there = |one: &&ToolCall| one.state.is_some_and(|state| Objects::new(view.repo).has_object(state));
    let begun = told.iter().filter(|one| one.told.0 <= call.told.0 && (one.is_unknown() || one.told == call.told));
    let Some(first) = begun.filter(is_there).max_by_key(|one| one.told.0) else { return Ok(None) };
    let is_later = |one: &ToolCall| one.is_known && one.told.1.is_some_and(|end| end > first.told.0);
    if is_any_at_large(view.repo, told.iter().filter(|one| is_later(one))) {
        return Ok(None);
    }
    let state = first.state.map(|state| Checkpoints::new(view.repo).read_checkpoint(state)).transpose()?;
    let since: Vec<BString> = found_by(view.repo, told, is_later, last)?.into_keys().collect();
    state.map(|state| Checkpoints::new(view.repo).with_paths_of(&state, last, &since)).transpose()
}

/// Where somebody had led HEAD, branches and the stash list before a call began is in the state before it.
pub fn lead_before(
    repo: &Repo,
    start: &Pointers,
    last: &Checkpoint,
    (told, call): (&[ToolCall], &ToolCall),
    (before, after): (&mut Option<Checkpoint>, &Checkpoint),
) {
    let is_at_large = |one: &&ToolCall| Reach::of(repo, &one.tool) == Reach::Anywhere;
    let is_unknown = |one: &&ToolCall| one.is_unknown() || one.told == call.told;
    let unknown = told.iter().filter(is_unknown).filter(is_at_large);
    let Some(first) = unknown.min_by_key(|one| one.told.0) else { return };
    // What was looked at since it began is known better.
    let is_later = |one: &&ToolCall| one.is_known && one.told.1.is_some_and(|end| end > first.told.0);
    let is_stale = told.iter().filter(is_at_large).any(|one| is_later(&one));
    let is_there = |moved: &&Moved| commits_of(moved).all(|pin| Objects::new(repo).has_commit(pin.0));
    let Some(moved) = first.moved.as_ref().filter(|_| call.state.is_none() && !is_stale).filter(is_there) else {
        return;
    };
    let (found, known, now) = (start.with(moved), Pointers::of(last), Pointers::of(after));
    if found == known {
        return;
    }
    let before = before.get_or_insert_with(|| last.clone());
    if (&found.head, &found.stash) == (&now.head, &now.stash) {
        // The call did nothing that git keeps an index for.
        before.index = after.index.clone();
    }
    found.put_into(before);
}

/// The commits that HEAD, branches and the stash list were led to.
pub fn commits_of(moved: &Moved) -> impl Iterator<Item = Pin> {
    let stashed = moved.stash.iter().flatten().map(|entry| entry.id);
    let tips = moved.branches.values().filter_map(|tip| tip.0);
    tips.chain(moved.head.iter().filter_map(|head| head.commit)).chain(stashed).map(Pin)
}
