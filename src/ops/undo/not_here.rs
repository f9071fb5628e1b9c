//! Where the files of a turn that moved no ref say otherwise than the timeline: the user has put its work aside or thrown it away with git,
//! so that it is done and not here, or has brought it back, so that it is undone and here.

use crate::git::timeline::stored::Side;
use crate::git::worktree::Worktree;
use crate::model::checkpoint::{Change, FileState};
use crate::model::plan::Op;
use crate::model::turn::Turn;
use crate::ops::list::delta_of;
use crate::ops::view::View;
use anyhow::Result;
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
