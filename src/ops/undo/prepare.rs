//! The plan of a walk over turns, with every check made.

use crate::error::{Code, Refusal};
use crate::git::apply::{Apply, foresee};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::{Checkpoint, short_branch, uncovered_changes};
use crate::model::merge::Edits;
use crate::model::plan::{Op, Plan};
use crate::model::planner::{Present, TurnDelta, plan};
use crate::model::turn::Turn;
use crate::ops::turn::with_dirty_commit;
use crate::ops::undo::leaving::{check_commits, check_elsewhere};
use crate::ops::undo::range::{Direction, TurnRange, nothing, passed};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of the refs that the turns moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefMoves {
    /// They move as the turns moved them.
    Move,
    /// They stay, and no commit leaves a branch.
    Stay,
}

/// A checked plan, the present state that it was made for, and the paths that the turns
/// changed and that are not covered.
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// The present.
    pub capture: Capture,
    /// The paths.
    pub uncovered: BTreeSet<BString>,
}

/// One turn of a walk: the state that the walk enters it from, the state that it leaves it in, and the difference.
struct Leg {
    start: Checkpoint,
    goal: Checkpoint,
    delta: TurnDelta,
}

impl Prepared {
    /// Plans the walk.
    pub fn new(view: &View<'_>, op: Op, range: &TurnRange, edits: Edits, refs: RefMoves) -> Result<Self> {
        let mut uncovered = BTreeSet::new();
        let mut legs = Vec::new();
        for (at, turn) in range.turns.iter().enumerate() {
            let is_last = at + 1 == range.turns.len();
            legs.push(leg(view, range.direction, turn, is_last, &mut uncovered)?);
        }
        let (Some(Leg { start, .. }), Some(Leg { goal, .. })) = (legs.first(), legs.last()) else {
            return Err(nothing(op, "no turn was asked for").into());
        };
        let mut deltas: Vec<TurnDelta> = legs.iter().map(|leg| leg.delta.clone()).collect();
        let capture = view.present()?;
        let now = &capture.checkpoint;
        match refs {
            RefMoves::Move => check_commits(view, op, range, &deltas, start, now)?,
            RefMoves::Stay if now.head != start.head => return Err(head_moved(range.turns[0].turn).into()),
            RefMoves::Stay => deltas.iter_mut().for_each(TurnDelta::leave_refs),
        }
        let between = legs.windows(2).map(|pair| (&pair[0].goal, &pair[1].start));
        let gaps: Vec<_> = between.chain([(start, now)]).collect();
        let checkpoints = Checkpoints::new(view.repo);
        let edited = checkpoints.edited(&gaps, now, goal)?;
        let present = checkpoints.present(&deltas, now, &capture.index)?;
        let left = left(view, op, &deltas, &present)?;
        let present = Present { left, edited, ..present };
        let plan = checkpoints.merging(|merge| plan(op, &deltas, &present, edits, merge))?;
        check_head_moves(op, &plan)?;
        Apply::check_names(&plan)?;
        check_elsewhere(view, &plan)?;
        // Whoever carries it out looks again.
        if view.is_preview {
            foresee::check(view.repo, &plan)?;
        }
        if !plan.index.is_empty() {
            Index::new(view.repo).check_index_is_free(view.config().lock_timeout()?)?;
        }
        // Whoever carries the plan out opens them as it says.
        capture.opened.close();
        Ok(Self { plan, capture, uncovered })
    }
}

/// How many turns beside the walk are looked at for what somebody staged.
const MOST_BESIDE: usize = 16;

/// Files whose index entries somebody changed since, as the turns that were walked over before left them, the last of
/// them first.
fn left(view: &View<'_>, op: Op, deltas: &[TurnDelta], present: &Present) -> Result<BTreeMap<BString, Vec<ObjectId>>> {
    let mut left: BTreeMap<BString, Vec<ObjectId>> = BTreeMap::new();
    let none = Vec::new();
    let mut paths = BTreeSet::new();
    for (path, change) in deltas.iter().flat_map(|turn| &turn.delta.index) {
        let now = present.index.get(path).unwrap_or(&none);
        if *now != change.from && *now != change.to {
            paths.insert(path);
        }
    }
    if paths.is_empty() {
        return Ok(left);
    }
    let far = if op == Op::Redo { Side::Before } else { Side::After };
    for turn in passed(view, op, MOST_BESIDE)?.into_iter().rev() {
        let checkpoint = view.timeline.checkpoint(turn.turn, far)?;
        for path in &paths {
            if let Some(file) = Checkpoints::new(view.repo).captured_file(&checkpoint, path.as_bstr())? {
                left.entry((*path).clone()).or_default().push(file.id);
            }
        }
    }
    Ok(left)
}

/// HEAD is not where the turn left it.
pub fn head_moved(turn: u64) -> Refusal {
    Refusal::new(Code::Branch, format!("HEAD is not where turn {turn} left it"))
        .hint("run 'git switch -c NAME COMMIT' to start a branch at any commit")
}

/// Refuses to move HEAD, and what it is on, where that is no branch.
fn check_head_moves(op: Op, plan: &Plan) -> Result<()> {
    let heads = [&plan.head.from, &plan.head.to].into_iter().filter(|_| plan.moves_head());
    let (Some(head), Some(turn)) = (heads.into_iter().find(|head| head.is_on_other_ref()), plan.turns.last()) else {
        return Ok(());
    };
    let (op, name) = (op.word(), short_branch(head.stack()));
    Err(Refusal::new(Code::Branch, format!("{op} would move HEAD, and '{name}', where it was, is no branch"))
        .hint(format!("run 'oxundo restore {turn}:before' to bring the files back alone"))
        .into())
}

fn leg(
    view: &View<'_>,
    direction: Direction,
    turn: &Turn,
    is_last: bool,
    uncovered: &mut BTreeSet<BString>,
) -> Result<Leg> {
    let (before, after) = ends(view, direction, turn, is_last)?;
    let delta = Checkpoints::new(view.repo).delta(turn, &before, &after)?;
    let changed = uncovered_changes(&before, &after).into_iter().filter(|old| !delta.aside.contains_key(&old.path));
    uncovered.extend(changed.map(|old| old.path.clone()));
    let returns = view.timeline.return_state(turn.turn)?;
    let (delta, start, goal) = match direction {
        Direction::Back => (delta.inverse(), after, before),
        Direction::Forward => (delta, before, after),
    };
    Ok(Leg { start, goal, delta: TurnDelta { turn: turn.turn, delta, returns } })
}

/// A turn's two ends. The dirty commit stays when it was published, or is to be kept; then
/// the turn begins on it.
fn ends(view: &View<'_>, direction: Direction, turn: &Turn, is_last: bool) -> Result<(Checkpoint, Checkpoint)> {
    let before = view.timeline.checkpoint(turn.turn, Side::Before)?;
    let after = view.timeline.checkpoint(turn.turn, Side::After)?;
    let Some(dirty) = turn.dirty_commit else {
        return Ok((before, after));
    };
    let stays = match direction {
        Direction::Back => {
            is_last && (view.config().keep_dirty()? || !Objects::new(view.repo).published(&[dirty])?.is_empty())
        }
        // The dirty commit stayed if HEAD is on it.
        Direction::Forward => view.head.commit == Some(dirty),
    };
    let before = if stays { with_dirty_commit(view.repo, &before, Some(dirty))? } else { before };
    Ok((before, after))
}
