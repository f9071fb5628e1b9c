//! Which commits leave a branch, and whether they may.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::model::checkpoint::{Checkpoint, short_branch};
use crate::model::guard;
use crate::model::guard::{CommitOrigin, Leaving};
use crate::model::plan::{Op, Plan};
use crate::model::planner::TurnDelta;
use crate::model::turn::Turn;
use crate::ops::undo::range::{Direction, TurnRange};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::collections::BTreeMap;

/// Checks every commit that the walk would take off a branch, for all its steps.
pub fn check_commits(
    view: &View<'_>,
    op: Op,
    range: &TurnRange,
    deltas: &[TurnDelta],
    start: &Checkpoint,
    now: &Checkpoint,
) -> Result<()> {
    if now.head.branch != start.head.branch {
        let wanted = start.head.branch.as_deref().map_or("a detached HEAD".into(), short_branch);
        let message = format!("turn {} belongs to '{wanted}', and HEAD is not on it", range.turns[0].turn);
        return Err(Refusal::new(Code::Branch, message).hint(format!("run 'git switch {wanted}' first")).into());
    }
    for (name, at, goal) in moving_tips(deltas, start, now) {
        let from = match range.direction {
            Direction::Back => goal,
            // Commits that the turn itself took off a branch may leave it again; only later commits count.
            Direction::Forward => start.branches.get(&name).copied().or(start.head.commit),
        };
        let hidden = match from {
            Some(from) => vec![from],
            // A deleted branch: commits that are still on other branches do not count as leaving.
            None => staying_tips(deltas, now),
        };
        let leaving = Objects::new(view.repo).commits_between(&hidden, at)?;
        guard::check(op, &name, &described(view, &range.turns, &leaving)?)?;
    }
    Ok(())
}

/// Every branch that the walk moves, and a detached HEAD: where it is, and where it would go.
fn moving_tips(
    deltas: &[TurnDelta],
    start: &Checkpoint,
    now: &Checkpoint,
) -> Vec<(String, ObjectId, Option<ObjectId>)> {
    let mut goals = BTreeMap::new();
    for TurnDelta { delta, .. } in deltas {
        for (name, change) in &delta.branches {
            goals.insert(name.clone(), change.to);
        }
        if let Some(change) = &delta.head
            && change.from.branch.is_none()
        {
            goals.insert("HEAD".to_owned(), change.to.commit);
        }
    }
    if let Some(branch) = &now.head.branch
        && now.head.commit != start.head.commit
    {
        goals.entry(branch.clone()).or_insert(start.head.commit);
    }
    let at = |name: &str| match name {
        "HEAD" if now.head.branch.is_none() => now.head.commit,
        _ => now.branches.get(name).copied(),
    };
    goals
        .into_iter()
        .filter_map(|(name, goal)| Some((at(&name)?, name, goal)))
        .map(|(at, name, goal)| (name, at, goal))
        .collect()
}

/// The tips of all branches, and of HEAD, as they are after the walk.
fn staying_tips(deltas: &[TurnDelta], now: &Checkpoint) -> Vec<ObjectId> {
    let mut tips = now.branches.clone();
    let last = deltas.iter().rev().find_map(|turn| turn.delta.head.as_ref());
    let head = last.map_or(now.head.commit, |change| change.to.commit);
    for TurnDelta { delta, .. } in deltas {
        for (name, change) in &delta.branches {
            match change.to {
                Some(to) => tips.insert(name.clone(), to),
                None => tips.remove(name),
            };
        }
    }
    tips.into_values().chain(head).collect()
}

/// What the guard wants to know of these commits.
pub fn described(view: &View<'_>, turns: &[Turn], commits: &[ObjectId]) -> Result<Vec<Leaving>> {
    let objects = Objects::new(view.repo);
    let published = objects.published(commits)?;
    let notes = Refs::new(view.repo).notes_on(commits)?;
    let worktree = view.repo.worktree_id();
    let mut leaving = Vec::new();
    for (id, notes) in commits.iter().zip(notes) {
        let turn = turns.iter().find(|turn| turn.knows(id));
        let own = |turn: &Turn| {
            view.as_if_ended == Some(turn.turn)
                || notes.iter().any(|note| note.commit == *id && note.turn == turn.turn && note.worktree == worktree)
        };
        let origin = match turn {
            Some(turn) if own(turn) => CommitOrigin::Recorded,
            Some(turn) => CommitOrigin::NoteMissing(turn.turn),
            None => match notes.iter().find(|note| note.commit != *id) {
                Some(copy) => CommitOrigin::Copied(copy.turn, copy.commit),
                None => match notes.iter().find(|note| note.worktree == worktree) {
                    Some(note) => of_other_turn(view, *id, note.turn)?,
                    None => rewritten_from(view, turns, *id)?,
                },
            },
        };
        leaving.push(Leaving {
            id: *id,
            parents: objects.parents(*id)?.len(),
            subject: objects.commit_subject(*id)?,
            published: published.get(id).cloned(),
            origin,
        });
    }
    Ok(leaving)
}

/// Where a commit comes from whose note names a turn that is not walked over.
fn of_other_turn(view: &View<'_>, id: ObjectId, number: u64) -> Result<CommitOrigin> {
    Ok(match view.timeline.find_turn(number)? {
        Some(Turn { branch: Some(branch), commits, .. })
            if view.head.branch.as_ref() != Some(&branch) && commits.iter().any(|commit| commit.id == id) =>
        {
            CommitOrigin::Elsewhere(number, branch)
        }
        _ => CommitOrigin::Unknown,
    })
}

/// Whether a commit without a note is an amended commit of a turn: it has the same parents as a commit of the turn
/// that is no longer on the branch.
fn rewritten_from(view: &View<'_>, turns: &[Turn], id: ObjectId) -> Result<CommitOrigin> {
    let objects = Objects::new(view.repo);
    let parents = objects.parents(id)?;
    for turn in turns {
        for commit in &turn.commits {
            if objects.has_commit(commit.id) && objects.parents(commit.id)? == parents {
                return Ok(CommitOrigin::Copied(turn.turn, commit.id));
            }
        }
    }
    Ok(CommitOrigin::Unknown)
}

/// Refuses to move a branch that another worktree has checked out.
pub fn check_elsewhere(view: &View<'_>, plan: &Plan) -> Result<()> {
    let switches = plan.head.from.branch != plan.head.to.branch;
    if plan.branches.is_empty() && !switches {
        return Ok(());
    }
    let elsewhere = Refs::new(view.repo).branches_elsewhere()?;
    let to = plan.head.to.branch.as_ref().filter(|_| switches);
    let taken = plan.branches.iter().map(|branch| &branch.name).chain(to).find_map(|name| {
        let place = elsewhere.get(name)?;
        Some((short_branch(name), place))
    });
    let Some((name, place)) = taken else { return Ok(()) };
    let message = format!("'{name}' is checked out in another worktree, at '{place}'");
    let hint = format!("switch that worktree to another branch, then run this again: 'git -C {place} switch BRANCH'");
    Err(Refusal::new(Code::Branch, message).hint(hint).into())
}
