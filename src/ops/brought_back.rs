//! Turns whose work was taken out by a commit on top, and which the user has brought back with git: by a revert of that commit, or
//! by picking the turn's own again; and turns that the user has reverted.

use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::timeline::stored::Side;
use crate::model::turn::{Made, Turn};
use crate::ops::dropped::{LOOKED_AT, dropped};
use crate::ops::view::{View, last_whole};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// How many commits on top are looked at.
const NEAR: usize = 256;

/// Whether what a turn took out by commits is there again: the newest of the user's own commits above it that has all of these files
/// as they were before it, or as they were after it, says so.
pub fn is_back(view: &View<'_>, turn: &Turn) -> Result<bool> {
    if !matches!(turn.made, Some(Made::Revert(_))) {
        return Ok(false);
    }
    let (node, objects) = (view.timeline.node(turn.turn)?, Objects::new(view.repo));
    let (Some(from), Some(to), Some(head)) = (node.from, node.to, view.head.commit) else { return Ok(false) };
    if from == to || head == to || !objects.has_commit(from) || !objects.has_commit(to) {
        return Ok(false);
    }
    let mut above = objects.commits_between(&[to], head)?;
    above.truncate(NEAR);
    let (before, after) = (objects.commit_tree(from)?, objects.commit_tree(to)?);
    let paths = objects.changed_paths(before, after)?;
    for (commit, notes) in above.iter().zip(Refs::new(view.repo).notes_on(&above)?) {
        if notes.iter().any(|note| note.commit == *commit) {
            continue;
        }
        let tree = objects.commit_tree(*commit)?;
        if has_all(&objects, &paths, tree, before)? {
            return Ok(true);
        }
        if has_all(&objects, &paths, tree, after)? {
            return Ok(false);
        }
    }
    Ok(false)
}

/// Whether all files that these turns have committed, the newest first, are in HEAD as they were before, or before the user's work
/// upon which they began.
pub fn is_out(view: &View<'_>, turns: &[Turn]) -> Result<bool> {
    let ([.., oldest], Some(head)) = (turns, view.head.commit) else { return Ok(false) };
    let objects = Objects::new(view.repo);
    let mut paths = BTreeSet::new();
    for turn in turns {
        let node = view.timeline.node(turn.turn)?;
        let ends = node.dirty.or(node.from).zip(node.to).filter(|(from, to)| from != to);
        let Some((from, to)) = ends.filter(|(from, to)| objects.has_commit(*from) && objects.has_commit(*to)) else {
            return Ok(false);
        };
        paths.extend(objects.changed_paths(objects.commit_tree(from)?, objects.commit_tree(to)?)?);
    }
    let (began, now) = (view.timeline.node(oldest.turn)?, objects.commit_tree(head)?);
    for before in [began.dirty, began.from].into_iter().flatten().filter(|id| objects.has_commit(*id)) {
        if !paths.is_empty() && has_all(&objects, &paths, now, objects.commit_tree(before)?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the files are as they were before turns of which nothing is committed: what is left of them is where branches are.
pub fn only_branches_are_left(view: &View<'_>, turns: &[Turn]) -> Result<bool> {
    let (objects, now) = (Objects::new(view.repo), view.present()?.checkpoint.worktree);
    let Some(oldest) = turns.last().filter(|_| turns.iter().all(|turn| turn.commits.is_empty())) else {
        return Ok(false);
    };
    let before = view.timeline.checkpoint(oldest.turn, Side::Before)?.worktree;
    let mut paths = BTreeSet::new();
    for turn in turns {
        let [from, to] = [Side::Before, Side::After].map(|side| view.timeline.checkpoint(turn.turn, side));
        paths.extend(objects.changed_paths(from?.worktree, to?.worktree)?);
    }
    has_all(&objects, &paths, now, before)
}

/// The last turn from here down of which something may be in HEAD, where these above it, the newest first, are out already: the user may
/// have reverted several by one commit, and dropped others.
pub fn next_in(view: &View<'_>, above: &[Turn], from: Option<u64>) -> Result<Option<u64>> {
    let mut out = above.to_vec();
    let mut at = last_whole(&view.timeline, from)?;
    let lowest = at.unwrap_or_default().saturating_sub(LOOKED_AT);
    let dropped = if at.is_some() { dropped(view, lowest)? } else { BTreeSet::new() };
    let mut next = None;
    while let Some(number) = at.filter(|number| *number >= lowest) {
        let turn = view.timeline.require_turn(number)?;
        at = last_whole(&view.timeline, turn.previous)?;
        if dropped.contains(&number) {
            continue;
        }
        out.push(turn);
        if is_out(view, &out)? {
            // So is what a later one went on with.
            next = None;
        } else if !is_out(view, &out[out.len() - 1..])? {
            next.get_or_insert(number);
        }
    }
    Ok(next.or(at))
}

/// Whether a tree has these files as another one has them.
fn has_all<'p>(
    objects: &Objects<'_>,
    paths: impl IntoIterator<Item = &'p BString>,
    tree: ObjectId,
    of: ObjectId,
) -> Result<bool> {
    for path in paths {
        if objects.tree_entry(tree, path.as_bstr())? != objects.tree_entry(of, path.as_bstr())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The line that takes out again what a turn took out, where that is back.
pub fn taken_again(view: &View<'_>, turn: &Turn) -> Result<Option<String>> {
    let Some((line, turns)) = only(turn.takes_out().iter().copied()) else { return Ok(None) };
    Ok(is_back(view, turn)?.then(|| format!("run '{line}' to take {turns} out again, by a commit on top")))
}

/// The line that takes these turns out by a commit on top, and what they are called.
pub fn only(turns: impl Iterator<Item = u64> + Clone) -> Option<(String, String)> {
    let (lowest, highest) = (turns.clone().min()?, turns.max()?);
    let [range, noun] = if lowest == highest {
        [lowest.to_string(), format!("turn {lowest}")]
    } else {
        [format!("{lowest}..{highest}"), format!("turns {lowest} to {highest}")]
    };
    Some((format!("oxundo undo --only {range}"), noun))
}
