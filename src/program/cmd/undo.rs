//! `oxundo undo` and `oxundo redo`, and the forms of undo that take turns out by their inverse: `--only`, `--revert`
//! and `-- PATHSPEC`.

use crate::git::repo::Repo;
use crate::model::plan::Op;
use crate::ops::conversation::hand_over;
use crate::ops::outcome::Outcome;
use crate::ops::revert;
use crate::ops::revert::Which;
use crate::ops::turn::session::settled;
use crate::ops::undo::plan;
use crate::ops::undo::range::Extent;
use crate::program::args::{Distance, UndoArgs};
use crate::program::cmd::carry_out;
use crate::program::ui::Ui;
use anyhow::Result;

/// Undoes turns, whichever way.
pub fn undo(repo: &Repo, ui: &Ui, args: &UndoArgs) -> Result<Outcome> {
    if args.revert || args.only.is_some() || !args.pathspecs.is_empty() {
        return revert(repo, ui, args);
    }
    walk(repo, ui, Op::Undo, &args.distance)
}

/// Moves the timeline's cursor.
pub fn walk(repo: &Repo, ui: &Ui, op: Op, distance: &Distance) -> Result<Outcome> {
    let heard = ui.heard();
    let mut locked = settled(repo, &heard, op.word())?;
    let planned = plan(&locked, op, &extent(distance), distance.edits)?;
    planned.announce(&locked);
    if distance.dry_run {
        return Ok(planned.preview());
    }
    let done = planned.carry_out(&mut locked)?;
    hand_over(&locked.into_view(), op, &done);
    Ok(done)
}

fn revert(repo: &Repo, ui: &Ui, args: &UndoArgs) -> Result<Outcome> {
    let heard = ui.heard();
    let mut locked = settled(repo, &heard, "undo")?;
    let which = match &args.only {
        Some(turn) => Which::Only(turn.clone()),
        None if args.revert => Which::Last(extent(&args.distance)),
        None => Which::PartsOf(extent(&args.distance)),
    };
    let planned = revert::plan(&locked, &which, &args.pathspecs, args.distance.edits)?;
    carry_out(planned, &mut locked, args.distance.dry_run)
}

fn extent(distance: &Distance) -> Extent {
    match &distance.to {
        Some(turn) => Extent::To(turn.clone()),
        None => Extent::Steps(distance.steps().unwrap_or(1)),
    }
}
