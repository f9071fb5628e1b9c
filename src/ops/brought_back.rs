//! Turns whose work was taken out by a commit on top, and which the user has brought back with git: by a revert of that commit, or
//! by picking the turn's own again; and turns that the user has reverted.

use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::model::turn::{Made, Turn};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};

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

/// Whether all files that these turns have committed, the newest first, are in HEAD as they were before.
pub fn is_out(view: &View<'_>, turns: &[Turn]) -> Result<bool> {
    let ([newest, ..], [.., oldest], Some(head)) = (turns, turns, view.head.commit) else { return Ok(false) };
    let (began, ended) = (view.timeline.node(oldest.turn)?, view.timeline.node(newest.turn)?);
    let objects = Objects::new(view.repo);
    let (Some(from), Some(to)) = (began.dirty.or(began.from), ended.to) else { return Ok(false) };
    if from == to || !objects.has_commit(from) || !objects.has_commit(to) {
        return Ok(false);
    }
    let (before, after) = (objects.commit_tree(from)?, objects.commit_tree(to)?);
    let paths = objects.changed_paths(before, after)?;
    Ok(!paths.is_empty() && has_all(&objects, &paths, objects.commit_tree(head)?, before)?)
}

/// Whether a tree has these files as another one has them.
fn has_all(objects: &Objects<'_>, paths: &[BString], tree: ObjectId, of: ObjectId) -> Result<bool> {
    for path in paths {
        if objects.tree_entry(tree, path.as_bstr())? != objects.tree_entry(of, path.as_bstr())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The line that takes out again what a turn took out, where that is back.
pub fn taken_again(view: &View<'_>, turn: &Turn) -> Result<Option<String>> {
    let (Some(lowest), Some(highest)) = (turn.takes_out().iter().min(), turn.takes_out().iter().max()) else {
        return Ok(None);
    };
    let (range, noun) = if lowest == highest {
        (lowest.to_string(), format!("turn {lowest}"))
    } else {
        (format!("{lowest}..{highest}"), format!("turns {lowest} to {highest}"))
    };
    Ok(is_back(view, turn)?
        .then(|| format!("run 'oxundo undo --only {range}' to take {noun} out again, by a commit on top")))
}
