//! Whether a turn's state before it may hold the only copy of something that no turn has made.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::Worktree;
use crate::model::bytes::exact;
use crate::model::checkpoint::{Checkpoint, Delta, StashEntry};
use crate::model::turn::{CommitKind, Note, Turn};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// How many turns below are asked whether they have made it. What is older counts as the user's.
const MOST: usize = 50;

/// A file's path and content.
type Content<'a> = (&'a BString, ObjectId);

/// Whether a turn changed or deleted what no commit has and no turn below it has made, staged or in a file, or took it off the
/// stash, or commits off every branch: the user's.
pub fn is_sole(view: &View<'_>, turn: &Turn, [before, after]: [&Checkpoint; 2], whole: &Delta) -> Result<bool> {
    if let Some(stash) = &whole.stash
        && !of_no_turn(&view.timeline, turn.previous, dropped(&stash.from, &stash.to))?.is_empty()
    {
        return Ok(true);
    }
    if has_users(view, &left(view, whole))? {
        return Ok(true);
    }
    let committed = match turn.dirty_commit {
        Some(dirty) => Objects::new(view.repo).commit_tree(dirty)?,
        None => Objects::new(view.repo).head_tree(&before.head)?,
    };
    let given_up = given_up(view, before, after)?;
    let gone = gone(whole).chain(given_up.iter().map(|(path, id)| (path, *id))).collect();
    let (_, gone) = split(view, &[after.worktree, after.index.tree], gone)?;
    let (_, mut gone) = split(view, &[committed], gone)?;
    let mut below = turn.previous;
    for _ in 0..MOST {
        let Some(number) = below.filter(|_| !gone.is_empty()) else { break };
        let [left, found] = [Side::After, Side::Before].map(|side| view.timeline.checkpoint(number, side));
        let (left, found) = (left?, found?);
        let (made, came_between) = split(view, &[left.worktree, left.index.tree], gone)?;
        if !came_between.is_empty() {
            return Ok(true);
        }
        (gone, _) = split(view, &[found.worktree, found.index.tree], made)?;
        below = view.timeline.require_turn(number)?.previous;
    }
    Ok(!gone.is_empty())
}

/// What a turn replaced or deleted, in files and in the index.
fn gone(whole: &Delta) -> impl Iterator<Item = Content<'_>> {
    let files = whole.files.iter().filter_map(|(path, change)| Some((path, change.from?.id)));
    let staged = whole.index.iter().flat_map(|(path, change)| {
        // The sides of a conflict are those of commits.
        let entries = change.from.iter().filter(|entry| entry.stage == 0 && !entry.intent_to_add);
        entries.map(move |entry| (path, entry.id))
    });
    files.chain(staged)
}

/// What is in a stash that was to come back at the end of an operation, and that the turn gave up.
fn given_up(view: &View<'_>, before: &Checkpoint, after: &Checkpoint) -> Result<Vec<(BString, ObjectId)>> {
    let mut contents = Vec::new();
    for file in before.operation.autostashes().filter(|file| !after.operation.autostashes().any(|now| now == *file)) {
        let text = Objects::new(view.repo).blob(file)?;
        if let Ok(entry) = ObjectId::from_hex(text.trim_ascii()) {
            contents.extend(stashed(view, entry)?);
        }
    }
    Ok(contents)
}

/// The commits that a turn moved branches away from, or a HEAD that was on none.
fn left(view: &View<'_>, whole: &Delta) -> Vec<ObjectId> {
    let branches = whole.branches.values().map(|change| (change.from, change.to));
    let heads = whole.head.iter().map(|change| (change.from.commit, change.to.commit));
    let goes_on = |from, to: Option<ObjectId>| {
        to.is_some_and(|to| Objects::new(view.repo).is_ancestor(from, to).unwrap_or(false))
    };
    branches.chain(heads).filter_map(|(from, to)| from.filter(|from| !goes_on(*from, to))).collect()
}

/// Whether nothing but these reaches a commit that no agent made.
fn has_users(view: &View<'_>, tips: &[ObjectId]) -> Result<bool> {
    if tips.is_empty() {
        return Ok(false);
    }
    let refs = Refs::new(view.repo);
    let others =
        view.repo.refs_below("refs/")?.into_iter().filter(|(name, _)| !name.as_bstr().starts_with(b"refs/oxundo/"));
    let hidden: Vec<ObjectId> = others.filter_map(|(_, id)| id).chain(refs.head()?.commit).collect();
    let only = Objects::new(view.repo).reached_only_from(tips, &hidden)?;
    let is_agents = |notes: &Vec<Note>| notes.iter().any(|note| note.kind == CommitKind::Agent);
    Ok(!refs.notes_on(&only)?.iter().all(is_agents))
}

/// The entries of a stash list that are not in another one.
fn dropped<'s>(before: &'s [StashEntry], after: &[StashEntry]) -> Vec<&'s StashEntry> {
    before.iter().filter(|entry| !after.contains(entry)).collect()
}

/// Those of these entries that no turn has put into the stash list, from one down over those below it.
pub fn of_no_turn<'s>(
    timeline: &Stored<'_>,
    mut below: Option<u64>,
    mut entries: Vec<&'s StashEntry>,
) -> Result<Vec<&'s StashEntry>> {
    for _ in 0..MOST {
        let Some(number) = below.filter(|_| !entries.is_empty()) else { break };
        let [found, left] = [Side::Before, Side::After].map(|side| timeline.checkpoint(number, side));
        let (found, left) = (found?.stash, left?.stash);
        entries.retain(|entry| !left.contains(entry) || found.contains(entry));
        below = timeline.require_turn(number)?.previous;
    }
    Ok(entries)
}

/// What is in a stash entry: of the files, of the index, and of what was untracked.
pub fn stashed(view: &View<'_>, entry: ObjectId) -> Result<Vec<(BString, ObjectId)>> {
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
        let whole = checkpoints.delta(turn, &before, &after)?;
        if has_users(view, &left(view, &whole))? {
            return Ok(true);
        }
        contents.extend(gone(&whole).map(|(path, id)| (path.clone(), id)));
        contents.extend(given_up(view, &before, &after)?);
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

/// What of this one of some trees has, and what none has.
fn split<'a>(
    view: &View<'_>,
    trees: &[ObjectId],
    all: Vec<Content<'a>>,
) -> Result<(Vec<Content<'a>>, Vec<Content<'a>>)> {
    let (mut has, mut has_not) = (Vec::new(), Vec::new());
    for (path, id) in all {
        let mut is_there = false;
        for tree in trees {
            let found = Objects::new(view.repo).tree_file(*tree, path.as_bstr())?;
            is_there |= found.is_some_and(|(_, found)| found == id);
        }
        if is_there { &mut has } else { &mut has_not }.push((path, id));
    }
    Ok((has, has_not))
}
