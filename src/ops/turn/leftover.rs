//! What earlier turns did and nobody has committed. A dirty commit, which is the user's, must not take it along.

use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::index::convert::Conversion;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::{Delta, Kind};
use crate::model::leftover::{Ends, is_like};
use crate::model::timeline::Timeline;
use crate::model::turn::{Made, Mode, Turn};
use crate::ops::turn::commit::uncommitted;
use crate::ops::turn::meanwhile::has_both;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::BTreeSet;

/// So many turns are remembered. Without commits there are ever more.
const REMEMBERED: usize = 100;

/// In so many pairs of files, a new one and one of a turn, a copy is looked for that is no exact one.
const COMPARED: usize = 1000;

/// A file or link of a tree.
type Slot = Option<(Kind, ObjectId)>;

/// Remembers a turn that ends, if not all that it changed is committed then. What the user has restored is the user's.
/// Forgets the others where nothing is uncommitted, but for those that redo or the stash may bring back, and those that made
/// a file which git does not track: the user may add it.
pub fn note(view: &View<'_>, state: &mut Timeline, turn: &Turn, changed: &Delta, capture: &Capture) -> Result<()> {
    let (objects, after) = (Objects::new(view.repo), &capture.checkpoint);
    let head = objects.head_tree(&after.head)?;
    let is_uncommitted = |path: &BString| -> Result<bool> {
        let committed = objects.tree_file(head, path.as_bstr())?;
        Ok(objects.tree_file(after.worktree, path.as_bstr())? != committed
            || objects.tree_file(after.index.tree, path.as_bstr())? != committed)
    };
    let any = |paths: &mut dyn Iterator<Item = &BString>| -> Result<bool> {
        Ok(paths.map(is_uncommitted).collect::<Result<Vec<_>>>()?.contains(&true))
    };
    let is_looked_at = turn.made.is_none();
    if is_looked_at && after.stash.is_empty() && after.index.tree == head && !any(&mut capture.changed.iter())? {
        for turn in std::mem::take(&mut state.uncommitted) {
            if state.is_undone(turn) || has_untracked(view, turn, head, after.worktree)? {
                state.uncommitted.push(turn);
            }
        }
    }
    let counts = matches!(turn.made, None | Some(Made::Branch));
    if counts && any(&mut changed.files.keys().chain(changed.index.keys()))? {
        state.uncommitted.push(turn.turn);
        let over = state.uncommitted.len().saturating_sub(REMEMBERED);
        state.uncommitted.drain(..over);
    }
    Ok(())
}

/// Whether a file that a turn made is there, and not committed.
fn has_untracked(view: &View<'_>, turn: u64, head: ObjectId, now: ObjectId) -> Result<bool> {
    if view.timeline.find_turn(turn)?.is_none() {
        return Ok(false);
    }
    let objects = Objects::new(view.repo);
    let (before, after) = (view.timeline.undone_to(turn), view.timeline.checkpoint(turn, Side::After));
    for (path, change) in objects.tree_changes(before?.worktree, after?.worktree)? {
        let is_in = |tree| objects.tree_has_entry(tree, path.as_bstr());
        if change.from.is_none() && !is_in(head)? && is_in(now)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What a turn left uncommitted, and where it is.
pub struct Left {
    /// The turn.
    pub turn: u64,
    /// The file.
    pub path: BString,
}

/// Finds what is uncommitted and still as one of them left it.
pub fn find(view: &View<'_>, capture: &Capture) -> Result<Option<Left>> {
    let turns = &view.timeline.state.uncommitted;
    let paths = if turns.is_empty() { BTreeSet::new() } else { uncommitted(view, capture)? };
    if paths.is_empty() {
        return Ok(None);
    }
    let objects = Objects::new(view.repo);
    let mut conversion = Index::new(view.repo).conversion(&capture.index)?;
    let head = objects.head_tree(&capture.checkpoint.head)?;
    let is_new = |path: &&BString| Ok(objects.tree_file(head, path.as_bstr())?.is_none());
    let new = paths.iter().filter_map(|path| is_new(&path).map(|new| new.then_some(path)).transpose());
    let new: Vec<&BString> = new.collect::<Result<_>>()?;
    for number in turns.iter().rev().filter(|number| !view.timeline.state.is_undone(**number)) {
        let Some(turn) = view.timeline.find_turn(*number)? else { continue };
        // What the user saved in it is not the turn's.
        let (before, after) = (view.timeline.undone_to(turn.turn)?, view.timeline.checkpoint(turn.turn, Side::After)?);
        let trees = [before.worktree, after.worktree, head, capture.checkpoint.worktree];
        // Of a file of both its own part is committed, under this name.
        let commits = turn.mode == Mode::Commit && !turn.mixed && turn.obstacle.is_none();
        let [was, own] = [objects.head_tree(&before.head)?, objects.head_tree(&after.head)?];
        let is_committed = |path: &BString| {
            let is = objects.tree_file(own, path.as_bstr())?;
            Ok::<_, anyhow::Error>(is.is_some() && is != objects.tree_file(was, path.as_bstr())?)
        };
        for path in &paths {
            let is_own = commits && (has_both(&turn, path) || is_committed(path)?);
            let after = if is_own { own } else { after.worktree };
            let trees = [trees[0], after, trees[2], trees[3]];
            let names = [path.as_bstr(); 2];
            if is_left_at(view.repo, &mut conversion, trees, is_own, names)? {
                return Ok(Some(Left { turn: turn.turn, path: path.clone() }));
            }
        }
        if let Some(path) = moved(view.repo, &mut conversion, trees, &new)? {
            return Ok(Some(Left { turn: turn.turn, path: path.clone() }));
        }
    }
    Ok(None)
}

/// Which of the new files is one that the turn changed, under another name or copied, and still has of that.
fn moved<'a>(
    repo: &Repo,
    conversion: &mut Conversion<'_>,
    trees: [ObjectId; 4],
    new: &[&'a BString],
) -> Result<Option<&'a BString>> {
    let objects = Objects::new(repo);
    let [before, after, _, now] = trees;
    let changed = if new.is_empty() { Vec::new() } else { objects.changed_paths(before, after)? };
    let are_few = changed.len() * new.len() <= COMPARED;
    for path in new {
        let copy = objects.tree_file(now, path.as_bstr())?.map(|(_, id)| id);
        // Empty files are no copies of each other.
        let Some(copy) = copy.filter(|id| !id.is_empty_blob()) else { continue };
        for from in changed.iter().filter(|from| from != path) {
            let Some((_, left)) = objects.tree_file(after, from.as_bstr())? else { continue };
            let is_copy = left == copy || (are_few && is_like_blob(repo, left, copy)?);
            if is_copy && is_left_at(repo, conversion, trees, false, [from.as_bstr(), path.as_bstr()])? {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

fn is_like_blob(repo: &Repo, one: ObjectId, other: ObjectId) -> Result<bool> {
    let objects = Objects::new(repo);
    let (Some(one), Some(other)) = (objects.small_blob(one)?, objects.small_blob(other)?) else { return Ok(false) };
    Ok(is_like(&one, &other))
}

/// Whether what changed at a path between the first two trees is part of what changed between the others, at the same path
/// or at the one that it has now. What git converts is compared as git has it, as the third tree does; so does the second one, where
/// it `is_committed`.
fn is_left_at(
    repo: &Repo,
    conversion: &mut Conversion<'_>,
    trees: [ObjectId; 4],
    is_committed: bool,
    [path, path_now]: [&BStr; 2],
) -> Result<bool> {
    let objects = Objects::new(repo);
    let [before, after, head, now] = trees;
    let [before, after, head] = [before, after, head].map(|tree| objects.tree_file(tree, path));
    let [before, after, head, now]: [Slot; 4] = [before?, after?, head?, objects.tree_file(now, path_now)?];
    if before == after || head == now {
        return Ok(false);
    }
    let is_kind = |slot: Slot| slot.map(|(kind, _)| kind);
    if is_kind(before) != is_kind(after) && is_kind(head) != is_kind(now) && is_kind(after) == is_kind(now) {
        return Ok(true);
    }
    let is_converted = match head {
        Some((kind, id)) if kind != Kind::Symlink => conversion.converts_with(path, id)?,
        _ => false,
    };
    let mut contents = Vec::new();
    for (slot, is_gits) in [(before, false), (after, is_committed), (head, true), (now, false)] {
        let mut content = slot.map(|(_, id)| objects.small_blob(id)).transpose()?;
        // Where the filter is gone, it is compared as it is.
        if let (Some(Some(_)), Some((kind, id))) = (&content, slot)
            && is_converted
            && !is_gits
            && kind != Kind::Symlink
            && let Ok(converted) = Index::new(repo).converted(path, id)
        {
            content = Some(objects.small_blob(converted)?);
        }
        // Too large to be looked into.
        let Some(content) = content.map_or(Some(None), |content| content.map(Some)) else { return Ok(true) };
        contents.push(content);
    }
    let end = |at: usize| contents[at].as_deref();
    Ok(Ends { from: end(0), to: end(1) }.is_in(Ends { from: end(2), to: end(3) }))
}
