//! A branch that starts at a turn, with HEAD on it and the worktree and index as the turn left them, the user's edits
//! merged in. The branch that HEAD was on stays as it is, and so do its turns. It is a turn of its own: undo takes the
//! branch away and goes back.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::capture::Capture;
use crate::git::refs::Refs;
use crate::git::timeline::stored::Side;
use crate::model::bytes::sanitized;
use crate::model::merge::Edits;
use crate::model::plan::{BranchMove, Op, Plan};
use crate::model::turn::Made;
use crate::ops::made::PlannedTurn;
use crate::ops::resolve::{ended_turn, resolve, state_at};
use crate::ops::turn::check_idle;
use crate::ops::undo::legs::RefMoves;
use crate::ops::undo::prepare::{Prepared, head_moved};
use crate::ops::undo::range::{TurnRange, is_done};
use crate::ops::view::View;
use anyhow::Result;

/// Plans to start a branch of this name at the turn that these words mean.
pub fn plan(view: &View<'_>, name: &str, words: &str, edits: Option<Edits>) -> Result<PlannedTurn> {
    check_idle(view.repo)?;
    let full_name = Refs::new(view.repo).new_branch_name(name)?;
    let turn = resolve(view, words)?;
    let at = if turn == 0 {
        state_at(view, "0")?.head
    } else {
        view.timeline.checkpoint(ended_turn(view, words)?, Side::After)?.head
    };
    let (mut plan, capture) = walk_to(view, turn, edits)?;
    let Some(commit) = at.commit else {
        return Err(Refusal::new(Code::Branch, format!("there is no commit yet at turn {turn}"))
            .hint("give a later turn; 'oxundo log' shows them")
            .into());
    };
    plan.head.to.branch = Some(full_name.clone());
    plan.head.to.commit = Some(commit);
    plan.head.from = view.head.clone();
    plan.branches = vec![BranchMove { name: full_name, from: None, to: Some(commit) }];
    Ok(PlannedTurn {
        plan,
        capture,
        made: Made::Branch,
        turns: vec![turn],
        message: format!("branch {name} at turn {turn}"),
        verbs: ["Started", "Would start"],
        object: format!("branch '{}' at turn {turn}", sanitized(name)),
        hint: "'oxundo undo' takes it away and goes back".to_owned(),
        conversations: Vec::new(),
    })
}

/// The changes that make the worktree and the index what the turn left.
fn walk_to(view: &View<'_>, turn: u64, edits: Option<Edits>) -> Result<(Plan, Capture)> {
    let op = if is_done(view, turn)? { Op::Undo } else { Op::Redo };
    let range = TurnRange::to(view, op, turn)?;
    if range.turns.is_empty() {
        return at_the_top(view, turn);
    }
    let edits = view.config().edits_or(edits)?;
    let Prepared { mut plan, capture, .. } = Prepared::new(view, op, &range, edits, RefMoves::Stay)?;
    plan.op = Op::Branch;
    Ok((plan, capture))
}

/// For the last turn done: nothing needs to change if HEAD is where it left it.
fn at_the_top(view: &View<'_>, turn: u64) -> Result<(Plan, Capture)> {
    let then = if turn == 0 { None } else { Some(view.timeline.checkpoint(turn, Side::After)?.head) };
    if then.is_some_and(|then| then.commit != view.head.commit) {
        return Err(head_moved(turn).into());
    }
    Ok((Plan::empty(Op::Branch, view.head.clone()), view.present()?))
}
