//! Where the timeline stands, and what undo would do now.

use crate::error::{Code, Refusal};
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::Skipped;
use crate::model::plan::Op;
use crate::model::turn::{Mode, Turn};
use crate::ops::dropped::dropped_since;
use crate::ops::outcome::Outcome;
use crate::ops::turn::end::as_if_ended;
use crate::ops::turn::session::{By, Command, check_command};
use crate::ops::turn::skipped::tracked_only;
use crate::ops::undo::plan;
use crate::ops::undo::range::{Extent, below, passed, reverted_last};
use crate::ops::view::View;
use anyhow::Result;
use std::path::PathBuf;
use std::time::SystemTime;

/// The status of a worktree.
pub struct Status {
    /// The full name of HEAD's branch; none where HEAD is detached.
    pub branch: Option<String>,
    /// Whether turns are recorded.
    pub enabled: bool,
    /// The mode of the next turn.
    pub mode: Mode,
    /// The last turn done.
    pub top: Option<Turn>,
    /// The open turn.
    pub open: Option<Turn>,
    /// How many turns undo could take back.
    pub undo_depth: u64,
    /// How many turns redo could bring back.
    pub redo_depth: usize,
    /// What undo would do, or why it would refuse; `None` where there is nothing to undo.
    pub undo: Option<Result<Outcome, Refusal>>,
    /// Why only tracked files are covered here, in a sentence, where that is so.
    pub tracked_only: Option<String>,
    /// What is kept beside the worktree, that was not oxundo's to delete.
    pub kept: Vec<PathBuf>,
    /// How many bytes oxundo took when somebody asked last, and when that was.
    pub space: Option<(u64, SystemTime)>,
    /// What the last turn left uncovered.
    pub not_covered: Vec<Skipped>,
}

impl Status {
    /// The open turn, or else the last one, if it makes no commits though it should, and why.
    pub fn obstacle(&self) -> Option<(&Turn, &str)> {
        let turn = self.open.as_ref().or(self.top.as_ref())?;
        Some((turn, turn.obstacle.as_deref()?))
    }
}

/// Reads the status, and changes nothing. What undo would do is what it would for whoever asks.
pub fn status(view: &View<'_>, by: By) -> Result<Status> {
    let timeline = &view.timeline;
    let top = view.top()?.map(|number| timeline.require_turn(number)).transpose()?;
    // Undo closes the open turn first.
    let closed = as_if_ended(view, false)?;
    let is_nothing = |undo: &Result<Outcome, Refusal>| undo.as_ref().is_err_and(|it| it.code == Code::Nothing);
    let has_done = closed.top()?.is_some();
    let undo = Some(would_do(view, &closed, by)?).filter(|undo| has_done || !is_nothing(undo));
    let not_covered = match &top {
        Some(turn) => timeline.checkpoint(turn.turn, Side::After)?.skipped,
        None => Vec::new(),
    };
    Ok(Status {
        enabled: view.config().enabled()?,
        mode: view.config().mode()?,
        open: view.open_turn()?,
        undo_depth: undo_depth(view, top.as_ref())?,
        redo_depth: redo_depth(view)?,
        branch: view.head.branch.clone(),
        top,
        undo,
        tracked_only: tracked_only(view),
        kept: view.repo.kept(),
        space: view.repo.remembered_space(),
        not_covered,
    })
}

/// The status in short, for a prompt.
pub struct Short {
    /// The full name of HEAD's branch; none where HEAD is detached.
    pub branch: Option<String>,
    /// The last turn done.
    pub turn: Option<u64>,
    /// The open turn.
    pub open: Option<u64>,
    /// How many turns undo could take back.
    pub undo_depth: u64,
    /// How many turns redo could bring back.
    pub redo_depth: usize,
    /// Whether anything is uncommitted.
    pub dirty: bool,
}

/// Reads the status in short: no undo is planned, whatever the last turn changed.
pub fn short(view: &View<'_>) -> Result<Short> {
    let top = view.top()?.map(|number| view.timeline.require_turn(number)).transpose()?;
    Ok(Short {
        branch: view.head.branch.clone(),
        turn: top.as_ref().map(|turn| turn.turn),
        open: view.timeline.state.open,
        undo_depth: undo_depth(view, top.as_ref())?,
        redo_depth: redo_depth(view)?,
        // Where nothing was recorded, a prompt shows nothing.
        dirty: view.timeline.commit.is_some() && view.is_dirty()?,
    })
}

fn undo_depth(view: &View<'_>, top: Option<&Turn>) -> Result<u64> {
    let Some(top) = top else { return Ok(0) };
    Ok(depth(view, top)?.saturating_sub(dropped_since(view, top)?))
}

/// How many turns one undo after the other leads over, down from a turn: from one that began a branch it goes on with those that
/// were done where that was made.
fn depth(view: &View<'_>, top: &Turn) -> Result<u64> {
    let (mut at, mut depth) = (top.clone(), 0_u64);
    loop {
        let turn = at.footing.and_then(|footing| footing.back_at).filter(|turn| *turn <= at.turn);
        let Some(turn) = turn.map(|turn| view.timeline.require_turn(turn)).transpose()? else { break };
        depth = depth.saturating_add(at.depth.saturating_sub(turn.depth)).saturating_add(u64::from(!turn.is_part()));
        let Some(next) = below(view, &turn).filter(|below| *below < turn.turn) else { return Ok(depth) };
        at = view.timeline.require_turn(next)?;
    }
    Ok(depth.saturating_add(at.depth))
}

/// So many undone turns are looked at one by one; seldom is there any other.
const MOST_REDONE: usize = 256;

fn redo_depth(view: &View<'_>) -> Result<usize> {
    let all = view.place()?.undone.len();
    // What was undone on a branch that one of them leaves stays there.
    let walked = passed(view, Op::Undo, MOST_REDONE)?;
    let undone = walked.iter().filter(|turn| !turn.is_part()).count()
        + if walked.len() < MOST_REDONE { 0 } else { all.saturating_sub(MOST_REDONE) };
    Ok(undone + usize::from(reverted_last(view)?.is_some()))
}

/// What undo of one turn would do now, or the refusal if it would refuse.
fn would_do(view: &View<'_>, closed: &View<'_>, by: By) -> Result<Result<Outcome, Refusal>> {
    // What stands in the way is looked at, too.
    let mut closed = closed.clone();
    closed.is_preview = true;
    let command = Command { op: Op::Undo, by };
    match check_command(view, command).and_then(|()| plan(&closed, Op::Undo, &Extent::Steps(1), None)) {
        Ok(planned) => Ok(Ok(planned.preview())),
        Err(error) => error.downcast::<Refusal>().map(Err),
    }
}

/// The refusal, where there is one; another failure stays one.
pub fn refusal_of<T>(result: Result<T>) -> Result<Option<Refusal>> {
    result.map_or_else(|error| error.downcast().map(Some), |_| Ok(None))
}
