//! Where the files of a turn that moved no ref say otherwise than the timeline: the user has put its work aside or thrown it away with git,
//! so that it is done and not here, or has brought it back, so that it is undone and here.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::timeline::stored::Side;
use crate::git::worktree::Worktree;
use crate::model::checkpoint::{Change, FileState, Kind};
use crate::model::plan::Op;
use crate::model::turn::Turn;
use crate::ops::list::delta_of;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};

/// Whether the files that a turn changed, which moved no ref, are all as they were at one of its ends.
pub fn are_as_at(view: &View<'_>, turn: &Turn, end: Side) -> Result<bool> {
    if view.timeline.node(turn.turn)?.moved() {
        return Ok(false);
    }
    let files = delta_of(&view.timeline, turn)?.files;
    let (worktree, hash) = (Worktree::new(view.repo), view.repo.hash_kind());
    let is_so = |(path, change): (&BString, &Change<Option<FileState>>)| {
        let wanted = if end == Side::Before { change.from } else { change.to };
        worktree.readable(path.as_bstr(), hash) == wanted
    };
    Ok(!files.is_empty() && files.iter().all(is_so))
}

/// Whether a file of a turn, of which another part was here as that was undone, has come back since.
fn is_one_back(view: &View<'_>, turn: &Turn) -> Result<bool> {
    let returns = view.timeline.return_state(turn.turn)?;
    if returns.files.iter().all(|file| file.from != file.to) || view.timeline.node(turn.turn)?.moved() {
        return Ok(false);
    }
    let files = delta_of(&view.timeline, turn)?.files;
    let (worktree, hash) = (Worktree::new(view.repo), view.repo.hash_kind());
    let is_back = |(path, change): (&BString, &Change<Option<FileState>>)| {
        returns.file(path) == Some(Change::new(change.from, change.from))
            && worktree.readable(path.as_bstr(), hash) == change.to
    };
    Ok(files.iter().any(is_back))
}

/// The turn whose commits the user has taken off, or that went from where HEAD is to be elsewhere: git has led back from there.
pub fn taken_off(view: &View<'_>) -> Result<Option<u64>> {
    if let Some(undone) = view.place()?.undone.first() {
        // What oxundo has undone has left nothing but the user's.
        let last = view.timeline.state.recorded(&view.head).last;
        let is_by_oxundo = last.undone.contains(undone) && !last.by_hand.contains(undone);
        return Ok(Some(*undone).filter(|_| !is_by_oxundo));
    }
    let Some((last, _)) = view.timeline.state.newest_done() else { return Ok(None) };
    let turn = view.timeline.require_turn(last)?;
    let has_left = turn.began_on == view.head.branch && turn.branch != view.head.branch;
    let is_back = || Ok::<_, anyhow::Error>(view.timeline.node(last)?.from == view.head.commit);
    Ok((has_left && is_back()?).then_some(last))
}

/// How like a file is to what a turn left.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Alike {
    /// It is the same.
    Exactly,
    /// It may have some of it.
    InPart,
}

/// The files that a turn changed and did not commit, and that are here so much as it left them, and uncommitted still, though HEAD has gone
/// where the turn is not.
pub fn left_behind(view: &View<'_>, turn: u64, alike: Alike) -> Result<Vec<BString>> {
    let mut left = Vec::new();
    if !view.timeline.node(turn)?.moved() {
        return Ok(left);
    }
    let (objects, worktree, hash) = (Objects::new(view.repo), Worktree::new(view.repo), view.repo.hash_kind());
    let committed = |side| objects.head_tree(&view.timeline.checkpoint(turn, side)?.head);
    let committed = objects.changed_paths(committed(Side::Before)?, committed(Side::After)?)?;
    let (now, saved) = (objects.head_tree(&view.head)?, view.timeline.undone_to(turn)?);
    for (path, change) in delta_of(&view.timeline, &view.timeline.require_turn(turn)?)?.files {
        if committed.contains(&path) || change.from == change.to {
            continue;
        }
        let here = worktree.readable(path.as_bstr(), hash);
        let is_in_part = || here.is_some() && change.to.is_some() && here != change.from;
        let is_here = here == change.to || alike == Alike::InPart && is_in_part();
        let is_of = |file: Option<(Kind, ObjectId)>| file == here.map(|file| (file.kind, file.id));
        let is_users =
            || Checkpoints::new(view.repo).captured_file(&saved, path.as_bstr()).map(|file| file == change.to);
        if is_here && !is_users()? && !is_of(objects.tree_file(now, path.as_bstr())?) {
            left.push(path);
        }
    }
    Ok(left)
}

/// What leads on where there is nothing to undo or redo.
pub fn leading_on(view: &View<'_>, op: Op) -> Result<Option<String>> {
    let place = view.place()?;
    let (next, end) = match op {
        Op::Undo => (place.undone.first().copied(), Side::After),
        _ => (place.top, Side::Before),
    };
    let Some(turn) = next.map(|next| view.timeline.require_turn(next)).transpose()? else { return Ok(None) };
    let is_told = are_as_at(view, &turn, end)? || op == Op::Undo && is_one_back(view, &turn)?;
    if !is_told {
        return Ok(None);
    }
    let number = turn.turn;
    Ok(Some(match op {
        Op::Undo => {
            format!("run 'oxundo redo && oxundo undo' to take out turn {number}, of which files are here again")
        }
        _ => format!(
            "run 'oxundo restore {number}' to have the files of turn {number} again, which is done and not here"
        ),
    }))
}
