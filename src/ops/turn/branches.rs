//! Whose a branch is that moved during a turn: another than HEAD's is the turn's only where nothing shows that it is not.

use crate::config::Config;
use crate::git::refs::Refs;
use crate::git::repo::clock::parse_rfc3339;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::{Checkpoint, Head, branch_changes, short_branch, symbolic_changes};
use crate::model::turn::Turn;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// The branches that others have moved in a turn, or may have, from the state before it to that of now.
pub fn moved_by_others(
    view: &View<'_>,
    turn: &Turn,
    before: &Checkpoint,
    now: &Checkpoint,
) -> Result<BTreeSet<String>> {
    let moved = branch_changes(before, now).into_keys().chain(symbolic_changes(before, now).into_keys());
    let own = [&before.head, &now.head].map(|head| head.branch.as_ref());
    let moved: BTreeSet<String> = moved.filter(|name| !own.contains(&Some(name))).collect();
    if moved.is_empty() {
        return Ok(moved);
    }
    let theirs = view.config().others_branches()?;
    let refs = Refs::new(view.repo);
    let seen = moved_in_other_turns(view, turn, before, now)?;
    let is_theirs = |name: &String| {
        let may_be = seen.contains(name) && !refs.was_moved_here(name);
        may_be || theirs.matches(short(name).as_bstr()) || refs.was_moved_elsewhere(name)
    };
    Ok(moved.into_iter().filter(is_theirs).collect())
}

/// The branches that also moved in a turn of another worktree's, at the same time: by which of the two nobody can tell.
fn moved_in_other_turns(
    view: &View<'_>,
    turn: &Turn,
    before: &Checkpoint,
    now: &Checkpoint,
) -> Result<BTreeSet<String>> {
    let began = parse_rfc3339(&turn.began_at);
    let mut moved = BTreeSet::new();
    for stored in Timelines::new(view.repo).other_timelines()?.into_iter().filter_map(|other| other.stored.ok()) {
        for number in stored.turn_numbers()?.into_iter().rev() {
            let Some(other) = stored.find_turn(number)? else { continue };
            let ended = other.ended_at.as_deref().map(parse_rfc3339);
            if ended.is_some_and(|ended| ended < began) {
                break;
            }
            let from = stored.checkpoint(number, Side::Before)?.branches;
            let to = ended.map(|_| stored.checkpoint(number, Side::After)).transpose()?;
            let to = to.map_or_else(|| now.branches.clone(), |after| after.branches);
            // What it did before this turn began is no matter.
            let is_moved =
                |name: &&String| from.get(*name) != to.get(*name) && to.get(*name) != before.branches.get(*name);
            moved.extend(from.keys().chain(to.keys()).filter(is_moved).cloned());
        }
    }
    Ok(moved)
}

/// Why turns make no commits on HEAD's branch: another tool owns it.
pub fn owned_by_others(config: Config<'_>, head: &Head) -> Result<Option<String>> {
    let Some(name) = &head.branch else { return Ok(None) };
    let is_theirs = config.others_branches()?.matches(short(name).as_bstr());
    Ok(is_theirs.then(|| format!("'{}' is another tool's branch", short_branch(name))))
}

fn short(name: &str) -> BString {
    name.strip_prefix("refs/heads/").unwrap_or(name).into()
}
