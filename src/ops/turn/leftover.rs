//! What earlier turns did and nobody has committed. A dirty commit, which is the user's, must not take it along.

use crate::git::checkpoint::capture::Capture;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::{Delta, Kind};
use crate::model::leftover::Ends;
use crate::model::timeline::Timeline;
use crate::model::turn::{Made, Turn};
use crate::ops::turn::commit::uncommitted;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::BTreeSet;

/// So many turns are remembered. Without commits there are ever more.
const REMEMBERED: usize = 100;

/// A file or link of a tree.
type Slot = Option<(Kind, ObjectId)>;

/// Remembers a turn that ends, if not all that it changed is committed then. What the user has restored is the user's.
/// Forgets the others where nothing is uncommitted, but for those that redo or the stash may bring back.
pub fn note(repo: &Repo, state: &mut Timeline, turn: &Turn, changed: &Delta, capture: &Capture) -> Result<()> {
    let (objects, after) = (Objects::new(repo), &capture.checkpoint);
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
        let all = std::mem::take(&mut state.uncommitted);
        state.uncommitted = all.into_iter().filter(|turn| state.is_undone(*turn)).collect();
    }
    let counts = matches!(turn.made, None | Some(Made::Branch));
    if counts && any(&mut changed.files.keys().chain(changed.index.keys()))? {
        state.uncommitted.push(turn.turn);
        let over = state.uncommitted.len().saturating_sub(REMEMBERED);
        state.uncommitted.drain(..over);
    }
    Ok(())
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
    let head = Objects::new(view.repo).head_tree(&capture.checkpoint.head)?;
    for number in turns.iter().rev().filter(|number| !view.timeline.state.is_undone(**number)) {
        let Some(turn) = view.timeline.find_turn(*number)? else { continue };
        let [before, after] = [Side::Before, Side::After].map(|side| view.timeline.checkpoint(turn.turn, side));
        let trees = [before?.worktree, after?.worktree, head, capture.checkpoint.worktree];
        for path in &paths {
            if is_left_at(view.repo, trees, path.as_bstr())? {
                return Ok(Some(Left { turn: turn.turn, path: path.clone() }));
            }
        }
    }
    Ok(None)
}

/// Whether what changed at a path between the first two trees is part of what changed between the others.
fn is_left_at(repo: &Repo, trees: [ObjectId; 4], path: &BStr) -> Result<bool> {
    let objects = Objects::new(repo);
    let [before, after, head, now] = trees.map(|tree| objects.tree_file(tree, path));
    let [before, after, head, now]: [Slot; 4] = [before?, after?, head?, now?];
    if before == after || head == now {
        return Ok(false);
    }
    let is_kind = |slot: Slot| slot.map(|(kind, _)| kind);
    if is_kind(before) != is_kind(after) && is_kind(head) != is_kind(now) {
        return Ok(true);
    }
    let mut contents = Vec::new();
    for slot in [before, after, head, now] {
        let content = slot.map(|(_, id)| objects.small_blob(id)).transpose()?;
        // Too large to be looked into.
        let Some(content) = content.map_or(Some(None), |content| content.map(Some)) else { return Ok(true) };
        contents.push(content);
    }
    let end = |at: usize| contents[at].as_deref();
    Ok(Ends { from: end(0), to: end(1) }.is_in(Ends { from: end(2), to: end(3) }))
}
