//! What is committed between the turns of a walk, or since, where the turns themselves moved no ref. It is no change of a walk to take
//! that back: where refs stay, it stays on its branch; elsewhere it stays where it is.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeSlot, plain_entry};
use crate::model::checkpoint::{Change, Checkpoint, FileState, IndexEntry};
use crate::model::merge::{Blobs, Merge, Merged};
use crate::model::planner::{Occupant, Present, TurnDelta};
use crate::model::turn::Turn;
use crate::ops::on_branch::merged_into;
use crate::ops::turn::checkouts::{content_of, file_of};
use crate::ops::undo::legs::Leg;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// The legs of a walk where refs stay, with one more wherever HEAD was led on between two turns, or since, or is to be elsewhere at the
/// goal, if one is given. Refuses, of this turn, where it cannot be told apart.
pub fn left_on_its_branch(
    view: &View<'_>,
    legs: Vec<Leg>,
    (now, at): (&Checkpoint, Option<&Checkpoint>),
    turn: u64,
) -> Result<Vec<Leg>> {
    let mut all: Vec<Leg> = Vec::new();
    for leg in legs {
        let found = all.last().map_or(now, |last| &last.goal);
        all.extend(back_to(view, found, &leg.start, (now, turn))?);
        all.push(leg);
    }
    if let (Some(at), Some(last)) = (at, all.last()) {
        all.extend(back_to(view, &last.goal, at, (now, turn))?);
    }
    Ok(all)
}

/// From a state to where HEAD was in another one. What was uncommitted then is so again where it has been committed since; what the user
/// has only done since, and committed, is on its branch alone.
pub fn back_to(
    view: &View<'_>,
    found: &Checkpoint,
    left: &Checkpoint,
    (now, turn): (&Checkpoint, u64),
) -> Result<Option<Leg>> {
    if now.head.commit == left.head.commit && found.head.commit == left.head.commit {
        return Ok(None);
    }
    let (objects, checkpoints) = (Objects::new(view.repo), Checkpoints::new(view.repo));
    let is_there = |state: &Checkpoint| state.head.commit.is_none_or(|commit| objects.has_commit(commit));
    if ![found, left, now].into_iter().all(is_there) {
        return Err(head_moved(turn).into());
    }
    let [from, to, here] = [found, left, now].map(|state| objects.head_tree(&state.head));
    let (from, to, here) = (from?, to?, here?);
    let committed = objects.changed_paths(from, to)?;
    let then = |tree| {
        let entries = committed.iter().map(|path| Ok((path.clone(), objects.tree_entry(tree, path.as_bstr())?)));
        objects.edited_tree(to, &entries.collect::<Result<Vec<_>>>()?)
    };
    let then = [then(left.worktree)?, then(left.index.tree)?];
    let (goal, unclear) = checkpoints.merging(|merge| {
        let (goal, unclear) = merged_into(view, found, from, then, merge)?;
        let done = done_and_committed(view, (left, &goal), [to, here], merge)?;
        Ok((checkpoints.with_all_of_paths(&goal, left, &done)?, unclear))
    })?;
    if !unclear.is_empty() {
        return Err(head_moved(turn).into());
    }
    let goal = Checkpoint { head: left.head.clone(), ..goal };
    let mut delta = TurnDelta { delta: checkpoints.delta(&Turn::default(), found, &goal)?, ..TurnDelta::default() };
    delta.leave_refs();
    delta.delta.aside.clear();
    Ok(Some(Leg { start: found.clone(), goal, delta }))
}

/// The files in which all that differs is committed in the second of these trees, and was not in the first.
fn done_and_committed(
    view: &View<'_>,
    (left, goal): (&Checkpoint, &Checkpoint),
    [then, here]: [ObjectId; 2],
    merge: &mut Merge<'_>,
) -> Result<Vec<BString>> {
    let (objects, mut done) = (Objects::new(view.repo), Vec::new());
    if then == here {
        return Ok(done);
    }
    for (path, Change { from, to }) in Checkpoints::new(view.repo).file_changes(left, goal)? {
        let [was, is] = [then, here].map(|tree| objects.tree_file(tree, path.as_bstr()));
        let (was, is) = (was?, is?);
        let is_in = match (from, to, is) {
            (_, to, is) if to.map(|file| (file.kind, file.id)) == is => true,
            (Some(from), Some(to), Some((_, is))) => {
                merge(path.as_bstr(), Blobs { base: from.id, ours: is, theirs: to.id })? == Merged::Clean(is)
            }
            _ => false,
        };
        if was != is && is_in {
            done.push(path);
        }
    }
    Ok(done)
}

/// HEAD is not where the turn left it.
fn head_moved(turn: u64) -> Refusal {
    Refusal::new(Code::Branch, format!("HEAD is not where turn {turn} left it"))
        .hint(format!("run 'oxundo redo --to {turn}' first"))
}

/// Notes of each turn of a walk what has been committed since of what it changed: since it was made, of what is staged; since it was undone,
/// of the files that redo would take it from, as those that the turn had put away. Undo takes what a turn did out of a file, committed
/// or not.
pub fn note_since<'l>(
    view: &View<'_>,
    turns: impl Iterator<Item = (&'l Leg, &'l mut TurnDelta)>,
    is_undone: impl Fn(u64) -> bool,
    (capture, present): (&Capture, &Present),
) -> Result<()> {
    let objects = Objects::new(view.repo);
    let tree = |commit: Option<ObjectId>| {
        let there = commit.filter(|commit| objects.has_commit(*commit));
        there.map(|commit| objects.commit_tree(commit)).transpose()
    };
    let mut here = present.head.commit;
    for (leg, turn) in turns {
        let made_at = leg.start.head.commit;
        if made_at != here
            && let (Some(then), Some(now)) = (tree(made_at)?, tree(here)?)
            && then != now
        {
            turn.since.head = here;
            let mut staged = objects.tree_changes(then, now)?;
            staged.retain(|path, _| turn.delta.index.contains_key(path));
            let entries =
                |change: Change<TreeSlot>| Change::new(plain_entry(change.from, false), plain_entry(change.to, false));
            turn.since.entries.extend(staged.into_iter().map(|(path, change)| (path, entries(change))));
            let undone_at = turn.returns.head.or(made_at);
            if !is_undone(turn.turn)
                && undone_at != here
                && let Some(then) = tree(undone_at)?
            {
                note_files(view, (leg, turn), objects.tree_changes(then, now)?, (capture, present))?;
            }
        }
        if turn.delta.head.is_some() {
            here = leg.goal.head.commit;
        }
    }
    Ok(())
}

/// Notes of a turn that is redone what has been committed of its files. What git converts is there otherwise than it is committed.
fn note_files(
    view: &View<'_>,
    (leg, turn): (&Leg, &mut TurnDelta),
    committed: BTreeMap<BString, Change<TreeSlot>>,
    (capture, present): (&Capture, &Present),
) -> Result<()> {
    let index = Index::new(view.repo);
    let mut conversion = index.conversion(&capture.index)?;
    for (path, Change { from, to }) in committed {
        let (Some(led), Some(Occupant::File(there))) = (turn.delta.files.get(&path), present.files.get(&path)) else {
            continue;
        };
        let is_converted = conversion.may_convert(path.as_bstr())?;
        let file = |slot, there: FileState| {
            let is_as = |(_, id)| index.converted(path.as_bstr(), there.id).is_ok_and(|it| it == id);
            let is_it = is_converted && content_of(slot).is_some_and(is_as);
            if is_it { Some(there) } else { file_of(&leg.start, slot, Some(there)) }
        };
        let since = Change::new(file(from, led.to.unwrap_or(*there)), file(to, *there));
        turn.since.files.insert(path, since);
    }
    Ok(())
}

/// What is committed of the files of which something may be staged that these turns did.
pub fn committed(
    view: &View<'_>,
    now: &Checkpoint,
    deltas: &[TurnDelta],
) -> Result<BTreeMap<BString, Vec<IndexEntry>>> {
    let objects = Objects::new(view.repo);
    let (head, mut committed) = (objects.head_tree(&now.head)?, BTreeMap::new());
    for path in deltas.iter().flat_map(|turn| turn.staged.keys()) {
        committed.insert(path.clone(), objects.plain_entries(head, path.as_bstr())?);
    }
    Ok(committed)
}

/// What the user committed beside the turns is no edit that a walk keeps: it stays in any case.
pub fn leave_committed(
    view: &View<'_>,
    edited: &mut BTreeMap<BString, Change<Option<FileState>>>,
    deltas: &[TurnDelta],
    now: &Checkpoint,
) -> Result<()> {
    let objects = Objects::new(view.repo);
    let head = objects.head_tree(&now.head)?;
    let mut committed = BTreeSet::new();
    for path in edited.keys() {
        let is_touched = deltas.iter().any(|turn| turn.delta.files.contains_key(path));
        if !is_touched && objects.tree_file(head, path.as_bstr())? == objects.tree_file(now.worktree, path.as_bstr())? {
            committed.insert(path.clone());
        }
    }
    edited.retain(|path, _| !committed.contains(path));
    Ok(())
}
