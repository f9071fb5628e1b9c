//! Whether a turn's state before it may hold the only copy of something that no turn has made.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::timeline::stored::Side;
use crate::git::worktree::Worktree;
use crate::model::bytes::exact;
use crate::model::checkpoint::{Checkpoint, Delta, StashEntry};
use crate::model::turn::Turn;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// How many turns below are asked whether they have made it. What is older counts as the user's.
const MOST: usize = 50;

/// A file's path and content.
type Content<'a> = (&'a BString, ObjectId);

/// Whether a turn changed or deleted what no commit has and no turn below it has made, or took it off the stash: the user's.
pub fn is_sole(view: &View<'_>, turn: &Turn, before: &Checkpoint, whole: &Delta) -> Result<bool> {
    if let Some(stash) = &whole.stash
        && !made_elsewhere(view, turn, dropped(&stash.from, &stash.to))?
    {
        return Ok(true);
    }
    let committed = match turn.dirty_commit {
        Some(dirty) => Objects::new(view.repo).commit_tree(dirty)?,
        None => Objects::new(view.repo).head_tree(&before.head)?,
    };
    let stays = |path: &BString, id| whole.files[path].to.is_some_and(|to| to.id == id);
    let gone = whole.files.iter().filter_map(|(path, change)| Some((path, change.from?.id)));
    let (_, mut gone) = split(view, committed, gone.filter(|(path, id)| !stays(path, *id)).collect())?;
    let mut below = turn.previous;
    for _ in 0..MOST {
        let Some(number) = below.filter(|_| !gone.is_empty()) else { break };
        let [left, found] = [Side::After, Side::Before].map(|side| view.timeline.checkpoint(number, side));
        let (made, came_between) = split(view, left?.worktree, gone)?;
        if !came_between.is_empty() {
            return Ok(true);
        }
        (gone, _) = split(view, found?.worktree, made)?;
        below = view.timeline.require_turn(number)?.previous;
    }
    Ok(!gone.is_empty())
}

/// The entries of a stash list that are not in another one.
fn dropped<'s>(before: &'s [StashEntry], after: &[StashEntry]) -> Vec<&'s StashEntry> {
    before.iter().filter(|entry| !after.contains(entry)).collect()
}

/// Whether turns below have stashed all of this.
fn made_elsewhere(view: &View<'_>, turn: &Turn, mut entries: Vec<&StashEntry>) -> Result<bool> {
    let mut below = turn.previous;
    for _ in 0..MOST {
        let Some(number) = below.filter(|_| !entries.is_empty()) else { break };
        let [found, left] = [Side::Before, Side::After].map(|side| view.timeline.checkpoint(number, side));
        let (found, left) = (found?.stash, left?.stash);
        entries.retain(|entry| !left.contains(entry) || found.contains(entry));
        below = view.timeline.require_turn(number)?.previous;
    }
    Ok(entries.is_empty())
}

/// What is in a stash entry: of the files, of the index, and of what was untracked.
fn stashed(view: &View<'_>, entry: ObjectId) -> Result<Vec<(BString, ObjectId)>> {
    let objects = Objects::new(view.repo);
    if !objects.has_commit(entry) {
        return Ok(Vec::new());
    }
    let parents = objects.parents(entry)?;
    let Some(base) = parents.first().map(|base| objects.commit_tree(*base)).transpose()? else { return Ok(Vec::new()) };
    let mut contents = Vec::new();
    for (at, commit) in [entry].into_iter().chain(parents.into_iter().skip(1)).enumerate() {
        let tree = objects.commit_tree(commit)?;
        // The third has what was untracked, and nothing else.
        let from = if at < 2 { base } else { objects.empty_tree() };
        for path in objects.changed_paths(from, tree)? {
            let file = objects.tree_file(tree, path.as_bstr())?;
            contents.extend(file.map(|(_, id)| (path, id)));
        }
    }
    Ok(contents)
}

/// Whether no branch and no file has, under its name, all that a turn's records alone may have of the user's.
pub fn is_still_only_copy(view: &View<'_>, turn: &Turn) -> Result<bool> {
    let [before, after] = [Side::Before, Side::After].map(|side| view.timeline.checkpoint(turn.turn, side));
    let (before, after) = (before?, after?);
    let checkpoints = Checkpoints::new(view.repo);
    let mut contents: Vec<(BString, ObjectId)> = Vec::new();
    if turn.sole {
        let gone = checkpoints.file_changes(&before, &after)?.into_iter();
        contents.extend(gone.filter_map(|(path, change)| Some((path, change.from?.id))));
        let (dropped, now) = (dropped(&before.stash, &after.stash), Refs::new(view.repo).stash()?);
        for entry in dropped.into_iter().filter(|entry| now.iter().all(|other| other.id != entry.id)) {
            contents.extend(stashed(view, entry.id)?);
        }
    }
    for copy in turn.copies.keys().filter_map(|path| exact::decode(path)) {
        match checkpoints.captured_file(&after, copy.as_bstr())? {
            Some(file) => contents.push((copy, file.id)),
            // Nobody knows what is in it.
            None => return Ok(true),
        }
    }
    is_nowhere(view, contents)
}

/// Whether neither a branch nor a file has one of these contents, under its name.
pub fn is_nowhere(view: &View<'_>, contents: Vec<(BString, ObjectId)>) -> Result<bool> {
    let objects = Objects::new(view.repo);
    let heads: BTreeSet<ObjectId> = Refs::new(view.repo).moment()?.branches.into_values().collect();
    let trees: BTreeSet<ObjectId> = heads.into_iter().filter_map(|head| objects.commit_tree(head).ok()).collect();
    for (path, id) in contents {
        let path = path.as_bstr();
        let is_at = |tree: &ObjectId| matches!(objects.tree_file(*tree, path), Ok(Some((_, found))) if found == id);
        let is_there = || matches!(Worktree::new(view.repo).state(path, id.kind()), Ok(Some(now)) if now.id == id);
        if !trees.iter().any(is_at) && !is_there() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What of this a tree has, and what it has not.
fn split<'a>(view: &View<'_>, tree: ObjectId, all: Vec<Content<'a>>) -> Result<(Vec<Content<'a>>, Vec<Content<'a>>)> {
    let (mut has, mut has_not) = (Vec::new(), Vec::new());
    for (path, id) in all {
        let found = Objects::new(view.repo).tree_file(tree, path.as_bstr())?;
        let list = if found.is_some_and(|(_, found)| found == id) { &mut has } else { &mut has_not };
        list.push((path, id));
    }
    Ok((has, has_not))
}
