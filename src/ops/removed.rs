//! The timelines of linked worktrees that were removed: nobody goes on with them, and their turns expire as others do.

use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::parse_rfc3339;
use crate::git::timeline::Timelines;
use crate::git::timeline::others::Other;
use crate::git::timeline::stored::Stored;
use crate::git::timeline::update::Update;
use crate::model::checkpoint::shown_name;
use crate::model::expiry::{Expiry, expiry};
use crate::model::turn::Turn;
use crate::ops::turn::pins::repin;
use anyhow::Result;
use gix::ObjectId;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The turns of a removed worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RemovedWorktree {
    /// What the worktree is called; its turns are `NAME:17`.
    pub worktree: String,
    /// The turns that went, or would.
    pub expired: Vec<u64>,
    /// How many stay.
    pub kept: usize,
}

/// The timelines of removed worktrees that can be read.
fn timelines(repo: &Repo) -> Result<impl Iterator<Item = (Other<'_>, Stored<'_>)>> {
    let others = Timelines::new(repo).other_timelines()?.into_iter().filter(|other| other.removed);
    Ok(others.filter_map(|other| other.stored.as_ref().ok().cloned().map(|stored| (other, stored))))
}

/// The worktrees that were removed, and how many turns they have.
pub fn list(repo: &Repo) -> Result<Vec<RemovedWorktree>> {
    let counted = |(other, stored): (Other<'_>, Stored<'_>)| {
        let worktree = shown_name(&other.worktree).into();
        Ok(RemovedWorktree { worktree, expired: Vec::new(), kept: stored.turn_numbers()?.len() })
    };
    timelines(repo)?.map(counted).collect()
}

/// Lets the turns of removed worktrees go that ended before this time, but never the newest of a branch, nor those that are
/// held; or only says which.
pub fn expire(
    repo: &Repo,
    limit: Option<i64>,
    is_held: impl Fn(&Turn) -> bool,
    dry_run: bool,
) -> Result<Vec<RemovedWorktree>> {
    let is_old = |turn: &Turn| {
        let ended = turn.ended_at.as_deref().and_then(parse_rfc3339);
        limit.is_some_and(|limit| ended.is_some_and(|ended| ended < limit))
    };
    let mut all = Vec::new();
    for (other, stored) in timelines(repo)? {
        let turns = stored.turns()?;
        let gone = expiry(&stored.state, &turns, is_old, &is_held);
        let expired: Vec<u64> = gone.expired.iter().copied().collect();
        if expired.is_empty() {
            continue;
        }
        if !dry_run {
            write(repo, &other.name, &stored, &turns, &gone)?;
        }
        let worktree = shown_name(&other.worktree).into();
        all.push(RemovedWorktree { worktree, kept: turns.len() - expired.len(), expired });
    }
    Ok(all)
}

/// Writes the timeline without them.
fn write(repo: &Repo, name: &str, stored: &Stored<'_>, turns: &BTreeMap<u64, Turn>, gone: &Expiry) -> Result<()> {
    let mut update = stored.update();
    repin(repo, &mut update.state, &needed(stored, turns, &gone.expired)?)?;
    gone.expired.iter().for_each(|turn| update.remove_turn(*turn));
    gone.changed.iter().try_for_each(|turn| update.put_turn(turn))?;
    record(repo, name, update, format!("gc: {} turns", gone.expired.len()))
}

/// Moves the timeline of a worktree that was removed. If another worktree of this name has come meanwhile and has written, it
/// fails.
pub fn record(repo: &Repo, name: &str, update: Update<'_>, message: String) -> Result<()> {
    let (record, _) = update.into_record(message, Vec::new())?;
    let message = format!("oxundo: {}", record.message);
    Refs::new(repo).move_own_ref(name, record.timeline_from, record.timeline_to, &message)
}

/// The commits that what stays needs.
fn needed(stored: &Stored<'_>, turns: &BTreeMap<u64, Turn>, expired: &BTreeSet<u64>) -> Result<BTreeSet<ObjectId>> {
    let mut needed = BTreeSet::new();
    for turn in turns.values().filter(|turn| !expired.contains(&turn.turn)) {
        needed.extend(stored.needed_commits(turn)?);
    }
    for number in stored.rescue_numbers()? {
        needed.extend(stored.rescued_commits(number)?);
    }
    for named in stored.state.named.values() {
        needed.extend(stored.named_commits(named.number)?);
    }
    Ok(needed)
}
