//! Whose a branch is that moved during a turn: another than HEAD's is the turn's only where nothing shows that it is not.

use crate::config::Config;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::parse_rfc3339;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::call::found_by_only_unknown;
use crate::model::checkpoint::{Checkpoint, Head, branch_changes, short_branch, symbolic_changes};
use crate::model::pointers::Pointers;
use crate::model::turn::Turn;
use crate::ops::turn::gaps::{is_users_end, tells_all};
use crate::ops::turn::{calls, states};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// The branches that others have moved from the state before a turn to that of now, by what git wrote down and by their names.
pub fn moved_by_others(view: &View<'_>, before: &Checkpoint, now: &Checkpoint) -> Result<BTreeSet<String>> {
    let moved = moved(before, now);
    if moved.is_empty() {
        return Ok(moved);
    }
    let (theirs, refs) = (view.config().others_branches()?, Refs::new(view.repo));
    let is_theirs = |name: &String| theirs.matches(short(name).as_bstr()) || refs.was_moved_elsewhere(name);
    Ok(moved.into_iter().filter(is_theirs).collect())
}

/// The branches that moved in a turn, and may have been moved by one of another worktree's at the same time: by a call that was
/// in flight there, or at any time where its agent does not tell of all its calls.
pub fn moved_in_other_turns(
    view: &View<'_>,
    turn: &Turn,
    before: &Checkpoint,
    now: &Checkpoint,
) -> Result<BTreeSet<String>> {
    let (moved, mut seen) = (moved(before, now), BTreeSet::new());
    if moved.is_empty() {
        return Ok(seen);
    }
    let began = parse_rfc3339(&turn.began_at);
    let (found, before, now) = (&before.elsewhere, Pointers::of(before), Pointers::of(now));
    for other in Timelines::new(view.repo).other_timelines()? {
        let Ok(stored) = &other.stored else { continue };
        for number in stored.turn_numbers()?.into_iter().rev() {
            let Some(mut theirs) = stored.find_turn(number)? else { continue };
            // It was at work as this turn began, and nobody knows when its worktree went.
            let is_cut_off = other.removed && theirs.interrupted;
            if is_cut_off && theirs.branch.as_ref().is_some_and(|branch| found.contains(branch)) {
                theirs.ended_at = None;
            }
            if theirs.ended_at.as_deref().is_some_and(|ended| parse_rfc3339(ended) < began) {
                break;
            }
            for (from, to) in work_of(view.repo, (&other.worktree, stored), &theirs, &now)? {
                // What it did before this turn began is no matter.
                let is_moved = |name: &&String| at(&from, name) != at(&to, name) && at(&to, name) != at(&before, name);
                seen.extend(moved.iter().filter(is_moved).cloned());
            }
        }
    }
    let refs = Refs::new(view.repo);
    seen.retain(|name| !refs.was_moved_here(name));
    Ok(seen)
}

/// Whether one of these branches was moved in a step of a turn.
pub fn were_moved_in_steps(view: &View<'_>, turn: &Turn, branches: &BTreeSet<String>) -> Result<bool> {
    let is_moved = |(from, to): (Pointers, Pointers)| branches.iter().any(|name| at(&from, name) != at(&to, name));
    Ok(!branches.is_empty() && in_steps(&view.timeline, turn)?.into_iter().any(is_moved))
}

/// The branches, but for HEAD's, that are not where they were.
fn moved(before: &Checkpoint, now: &Checkpoint) -> BTreeSet<String> {
    let moved = branch_changes(before, now).into_keys().chain(symbolic_changes(before, now).into_keys());
    let own = [&before.head, &now.head].map(|head| head.branch.as_ref());
    moved.filter(|name| !own.contains(&Some(name))).collect()
}

/// Where a branch is.
fn at<'a>(pointers: &'a Pointers, name: &str) -> (Option<&'a ObjectId>, Option<&'a String>) {
    (pointers.branches.get(name), pointers.symbolic.get(name))
}

/// Where branches were as each step of a turn began, and as it ended.
fn in_steps(timeline: &Stored<'_>, turn: &Turn) -> Result<Vec<(Pointers, Pointers)>> {
    let mut last = states::pointers_at_beginning(timeline, turn)?;
    let mut steps = Vec::new();
    for step in 1..=timeline.last_step(turn.turn)? {
        let before = timeline.step_checkpoint(turn.turn, step, Side::Before)?;
        let from = before.map_or_else(|| last.clone(), |before| Pointers::of(&before));
        last = Pointers::of(&states::after(timeline, turn, step)?);
        steps.push((from, last.clone()));
    }
    Ok(steps)
}

/// Where branches were as an agent of another worktree's turn began to be at work, and as it paused: in each of its calls, where
/// it tells of all of these, else from the turn's beginning to its end.
fn work_of(
    repo: &Repo,
    (worktree, timeline): (&str, &Stored<'_>),
    turn: &Turn,
    now: &Pointers,
) -> Result<Vec<(Pointers, Pointers)>> {
    let start = states::pointers_at_beginning(timeline, turn)?;
    let is_open = turn.ended_at.is_none();
    let end = || {
        if is_open { Ok(now.clone()) } else { timeline.checkpoint(turn.turn, Side::After).map(|it| Pointers::of(&it)) }
    };
    if !tells_all(turn) {
        return Ok(vec![(start, end()?)]);
    }
    let mut work = in_steps(timeline, turn)?;
    let told = if is_open { calls::in_open_turn_of(repo, worktree) } else { Vec::new() };
    if !(turn.users_end || (is_open && is_users_end(repo, timeline, turn, &told)?)) {
        let last = work.last().map_or(&start, |(_, to)| to).clone();
        let found = match found_by_only_unknown(&told) {
            Some(moved) => Some(start.with(moved)),
            None => timeline.found(turn.turn)?.map(|found| Pointers::of(&found)),
        };
        work.push((found.unwrap_or(last), end()?));
    }
    Ok(work)
}

/// The branches of other tools that HEAD was on at an end of a turn and that are not where they were: they stay.
pub fn owned_that_moved(view: &View<'_>, before: &Checkpoint, now: &Checkpoint) -> Result<BTreeSet<String>> {
    let on = [&before.head, &now.head].into_iter().filter_map(|head| head.branch.clone());
    let mut moved = BTreeSet::new();
    for name in on.filter(|name| before.branches.get(name) != now.branches.get(name)) {
        if is_owned(view.config(), &name)? {
            moved.insert(name);
        }
    }
    Ok(moved)
}

/// Whether another tool owns a branch.
pub fn is_owned(config: Config<'_>, name: &str) -> Result<bool> {
    Ok(config.others_branches()?.matches(short(name).as_bstr()))
}

/// Why turns make no commits on HEAD's branch: another tool owns it.
pub fn owned_by_others(config: Config<'_>, head: &Head) -> Result<Option<String>> {
    let Some(name) = &head.branch else { return Ok(None) };
    Ok(is_owned(config, name)?.then(|| format!("'{}' is another tool's branch", short_branch(name))))
}

fn short(name: &str) -> BString {
    name.strip_prefix("refs/heads/").unwrap_or(name).into()
}
