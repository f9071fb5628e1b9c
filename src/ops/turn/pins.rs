//! Which commits the timeline keeps alive, because no branch does any more.

use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::model::checkpoint::{Change, Checkpoint, Delta, Head};
use crate::model::plan::Plan;
use crate::model::timeline::{Pin, Timeline};
use crate::model::turn::Turn;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// Keeps alive what a change takes off the refs, and what it brings there: git's own commands can take that off again, and
/// leave it to the next `gc`.
pub fn pin_displaced(repo: &Repo, state: &mut Timeline, delta: &Delta) -> Result<()> {
    let mut moves: Vec<(Option<ObjectId>, Option<ObjectId>)> =
        delta.branches.values().map(|change| (change.from, change.to)).collect();
    if let Some(Change { from, to }) = &delta.head {
        let detached = |head: &Head| if head.branch.is_none() { head.commit } else { None };
        moves.push((detached(from), to.commit.filter(|_| from.branch.is_none())));
        moves.push((None, detached(to)));
    }
    // Only its reflog line keeps a stash entry, and one git command deletes that: the entries of a list that a turn changed stay
    // pinned.
    if let Some(Change { from, to }) = &delta.stash {
        from.iter().chain(to).for_each(|entry| state.pin(entry.id));
    }
    let objects = Objects::new(repo);
    // Of a rebase that is given up, for example, no branch has what it had made.
    for operation in delta.operation.iter().flat_map(|change| [&change.from, &change.to]) {
        objects.commits_named(operation)?.into_iter().for_each(|id| state.pin(id));
    }
    let keeps = |above: ObjectId, below: ObjectId| objects.is_ancestor(below, above);
    for (from, to) in moves {
        match (from, to) {
            // The one that is made upon the other keeps it.
            (Some(from), Some(to)) if keeps(from, to)? => state.pin(from),
            (Some(from), Some(to)) if keeps(to, from)? => {
                state.pin(to);
                state.unpin(from);
            }
            (from, to) => from.into_iter().chain(to).for_each(|id| state.pin(id)),
        }
    }
    Ok(())
}

/// The branches that another worktree had checked out as a turn began, and that have lost commits by its end: with where they were.
/// They are no part of what undo moves.
pub fn lost_elsewhere(repo: &Repo, before: &Checkpoint, after: &Checkpoint) -> BTreeMap<String, ObjectId> {
    let objects = Objects::new(repo);
    let mut lost = BTreeMap::new();
    for name in &before.elsewhere {
        let Some(from) = before.branches.get(name).filter(|from| objects.has_commit(**from)) else { continue };
        let is_kept = after.branches.get(name).is_some_and(|to| objects.is_ancestor(*from, *to).unwrap_or(true));
        if !is_kept {
            lost.insert(name.clone(), *from);
        }
    }
    lost
}

/// How many places of HEAD's in a turn are looked at.
const MOST_PASSED: usize = 256;

/// The commits at which HEAD was in a turn, and which no branch has after it nor had before: as one that was amended away.
pub fn passed(repo: &Repo, turn: &Turn, before: &Checkpoint, after: &Checkpoint) -> Result<Vec<ObjectId>> {
    let objects = Objects::new(repo);
    let Some(length) = turn.head_log else { return Ok(Vec::new()) };
    let mut ids = Vec::new();
    for id in Refs::new(repo).head_was_at(length)?.into_iter().take(MOST_PASSED) {
        let is_end = [before, after].iter().any(|end| end.head.commit == Some(id));
        if !is_end && !ids.contains(&id) && objects.has_commit(id) {
            ids.push(id);
        }
    }
    // Most often HEAD went on from each of them.
    let own: Vec<ObjectId> = after.head.commit.into_iter().collect();
    let below = objects.reachable_from(&own, &ids)?;
    ids.retain(|id| !below.contains(id));
    if ids.is_empty() {
        return Ok(ids);
    }
    let mut known = objects.reachable_from(&[before.tips(), after.tips()].concat(), &ids)?;
    let mut passed = Vec::new();
    for id in &ids {
        if !known.contains(id) {
            passed.push(*id);
            known.extend(objects.reachable_from(&[*id], &ids)?);
        }
    }
    Ok(passed)
}

/// Lets go of the end of the turn below where that of this one keeps it: the user may have committed between them.
pub fn unpin_below(repo: &Repo, state: &mut Timeline, below: Option<ObjectId>, end: Option<ObjectId>) -> Result<()> {
    if let (Some(below), Some(end)) = (below, end)
        && below != end
        && state.is_pinned(below)
        && state.is_pinned(end)
        && Objects::new(repo).is_ancestor(below, end)?
    {
        state.unpin(below);
    }
    Ok(())
}

/// Keeps alive what the user has taken off the refs with git, so that redo finds it.
pub fn pin_by_hand(view: &View<'_>, state: &mut Timeline) -> Result<()> {
    let place = view.place()?;
    let objects = Objects::new(view.repo);
    let mut above: Option<ObjectId> = None;
    for turn in place.undone.iter().rev().filter(|turn| place.by_hand.contains(turn)) {
        let Some(end) = view.timeline.node(*turn)?.to.filter(|end| objects.has_commit(*end)) else { continue };
        let is_held = above.map(|above| objects.is_ancestor(end, above)).transpose()?.unwrap_or(false);
        if !is_held {
            state.pin(end);
            above = Some(end);
        }
    }
    Ok(())
}

/// What a plan does to the refs, for pinning.
pub fn refs_delta(plan: &Plan) -> Delta {
    let branches: BTreeMap<_, _> =
        (plan.branches.iter()).map(|branch| (branch.name.clone(), Change::new(branch.from, branch.to))).collect();
    let operation = plan.moved_operation().cloned();
    Delta { branches, head: Some(plan.head.clone()), stash: plan.stash.clone(), operation, ..Delta::default() }
}

/// Lets go of the commits that nobody needs, and keeps those alive that these alone have kept for others.
pub fn repin(repo: &Repo, state: &mut Timeline, needed: &BTreeSet<ObjectId>) -> Result<()> {
    let (kept, gone): (Vec<Pin>, Vec<Pin>) = state.pins.iter().partition(|pin| needed.contains(&pin.0));
    if gone.is_empty() {
        return Ok(());
    }
    let objects = Objects::new(repo);
    let there: Vec<ObjectId> = needed.iter().copied().filter(|id| objects.has_commit(*id)).collect();
    let [kept_tips, gone] = [&kept, &gone].map(|pins| pins.iter().map(|pin| pin.0).collect::<Vec<_>>());
    let (lost, still) = (objects.reachable_from(&gone, &there)?, objects.reachable_from(&kept_tips, &there)?);
    state.pins = kept;
    lost.difference(&still).for_each(|id| state.pin(*id));
    Ok(())
}
