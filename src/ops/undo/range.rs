//! Which turns an undo or a redo walks over, by the branch's stack.

use crate::error::{Code, Refusal};
use crate::model::checkpoint::short_branch;
use crate::model::plan::Op;
use crate::model::timeline::{Step, Timeline};
use crate::model::turn::Turn;
use crate::ops::resolve::resolve;
use crate::ops::view::{View, last_whole};
use anyhow::Result;

/// How far to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Over so many turns.
    Steps(u64),
    /// Until the turn that these words mean is the last one done.
    To(String),
}

/// Which way a turn is walked over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From its end to its beginning.
    Back,
    /// From its beginning to its end.
    Forward,
}

/// The turns to walk over, in walking order, and the stacks as they are after it.
pub struct TurnRange {
    /// The turns.
    pub turns: Vec<Turn>,
    /// Which way.
    pub direction: Direction,
    /// The stack as it is when that is done.
    pub state: Timeline,
}

impl TurnRange {
    /// Finds the turns.
    pub fn find(view: &View<'_>, op: Op, extent: &Extent) -> Result<Self> {
        if op == Op::Redo
            && let Extent::Steps(steps) = extent
            && let Some(turn) = reverted_last(view)?
        {
            return Self::over_revert(view, turn, *steps);
        }
        let goal = match extent {
            Extent::To(words) => Some(goal(view, op, words)?),
            Extent::Steps(_) => None,
        };
        let mut walk = StackWalk::from(view, op);
        loop {
            let there = match (extent, goal) {
                (_, Some(goal)) => last_whole(&view.timeline, walk.range.state.top(&walk.stack))?.unwrap_or(0) == goal,
                (Extent::Steps(wanted), _) => walk.whole == *wanted,
                (Extent::To(_), None) => true,
            };
            let next = walk.next()?;
            // A turn that took parts of this one out is walked over with it.
            if there && !(op == Op::Redo && next.as_ref().is_some_and(Turn::is_part)) {
                break;
            }
            match next {
                Some(turn) => walk.over(turn),
                None => return Err(walk.exhausted(extent, goal)?.into()),
            }
        }
        if walk.range.turns.is_empty() {
            return Err(nothing(op, "that turn is the last one done").into());
        }
        Ok(walk.range)
    }

    /// Redo right after turns were taken out brings back these, and no others.
    fn over_revert(view: &View<'_>, turn: Turn, steps: u64) -> Result<Self> {
        if steps > 1 {
            let message = format!("redo first brings back what turn {} took out, and that alone", turn.turn);
            return Err(Refusal::new(Code::Usage, message).hint("run 'oxundo redo' first, without --steps").into());
        }
        let mut state = view.timeline.state.clone();
        state.drop_turn(&Step::of(&turn));
        Ok(Self { turns: vec![turn], direction: Direction::Back, state })
    }
}

/// A walk from turn to turn, along the stacks of the branches that they were made on.
struct StackWalk<'v, 'r> {
    view: &'v View<'r>,
    op: Op,
    /// The stack at this point.
    stack: String,
    range: TurnRange,
    /// How many turns were walked over, not counting those that took parts of others out.
    whole: u64,
}

impl<'v, 'r> StackWalk<'v, 'r> {
    fn from(view: &'v View<'r>, op: Op) -> Self {
        let direction = if op == Op::Redo { Direction::Forward } else { Direction::Back };
        let range = TurnRange { turns: Vec::new(), direction, state: view.timeline.state.clone() };
        Self { view, op, stack: view.head.stack().to_owned(), range, whole: 0 }
    }

    fn next(&self) -> Result<Option<Turn>> {
        let next = match self.op {
            Op::Redo => self.range.state.next_redo(&self.stack),
            _ => self.range.state.top(&self.stack),
        };
        next.map(|number| self.view.timeline.require_turn(number)).transpose()
    }

    fn over(&mut self, turn: Turn) {
        let step = Step::of(&turn);
        if self.op == Op::Redo {
            self.range.state.redo(&step);
            self.stack = step.ended_on;
        } else {
            self.range.state.undo(&step);
            self.stack = step.began_on;
        }
        self.whole += u64::from(!turn.is_part());
        self.range.turns.push(turn);
    }

    /// Why there are no more turns to walk over.
    fn exhausted(&self, extent: &Extent, goal: Option<u64>) -> Result<Refusal> {
        let (view, op) = (self.view, self.op);
        let branch = short_branch(view.head.stack());
        if let Some(goal) = goal {
            if view.timeline.find_turn(goal)?.is_some_and(|turn| turn.branch == view.head.branch) {
                return Ok(replaced(goal));
            }
            return Ok(Refusal::new(Code::Branch, format!("turn {goal} is not among the turns of '{branch}'"))
                .hint("run 'oxundo log --all' to see which branch it belongs to"));
        }
        if self.whole == 0
            && op == Op::Undo
            && let Some((turn, other)) = view.timeline.state.newest_done()
        {
            let other = short_branch(other);
            let message = format!("'{branch}' has no turns: turn {turn}, the last one, was made on '{other}'");
            return Ok(Refusal::new(Code::Branch, message).hint(format!("run 'git switch {other}' first")));
        }
        if view.timeline.commit.is_none() {
            let message = format!("nothing to {}: no turn is recorded here", op.word());
            return Ok(Refusal::new(Code::Nothing, message).hint(
                "run 'oxundo run -- COMMAND' to make one, or 'oxundo init' to have an agent's prompts be turns",
            ));
        }
        let wanted = if let Extent::Steps(wanted) = extent { *wanted } else { 1 };
        Ok(nothing(
            op,
            &match (op, self.whole) {
                (Op::Redo, 0) => "no turn is undone".to_owned(),
                (Op::Redo, 1) => format!("1 turn is undone, {wanted} were asked for"),
                (Op::Redo, n) => format!("{n} turns are undone, {wanted} were asked for"),
                (_, 0) => "no turn is done".to_owned(),
                (_, 1) => format!("'{branch}' has 1 turn, {wanted} were asked for"),
                (_, n) => format!("'{branch}' has {n} turns, {wanted} were asked for"),
            },
        ))
    }
}

fn goal(view: &View<'_>, op: Op, words: &str) -> Result<u64> {
    let goal = resolve(view, words)?;
    if view.last_whole()? == Some(goal) {
        return Ok(goal);
    }
    let is_undone = view.timeline.state.is_undone(goal);
    if is_undone && op == Op::Undo {
        return Err(Refusal::new(Code::Usage, format!("turn {goal} is undone already"))
            .hint(format!("run 'oxundo redo --to {goal}' to go forward to it"))
            .into());
    }
    if !is_undone && op == Op::Redo {
        return Err(Refusal::new(Code::Usage, format!("turn {goal} is not undone"))
            .hint(format!("run 'oxundo undo --to {goal}' to go back to it"))
            .into());
    }
    Ok(goal)
}

/// The turns on the other side of where this walk begins, at most so many, the nearest first: undone ones for an
/// undo, done ones for a redo.
pub fn passed(view: &View<'_>, op: Op, most: usize) -> Result<Vec<Turn>> {
    let mut walk = StackWalk::from(view, if op == Op::Redo { Op::Undo } else { Op::Redo });
    while walk.range.turns.len() < most
        && let Some(turn) = walk.next()?
    {
        walk.over(turn);
    }
    Ok(walk.range.turns)
}

/// The last turn done, if it took other turns out and is newer than all undone turns: redo first brings back what it
/// took out.
pub fn reverted_last(view: &View<'_>) -> Result<Option<Turn>> {
    let Some(top) = view.top() else { return Ok(None) };
    let turn = view.timeline.require_turn(top)?;
    let is_newest = view.timeline.state.next_redo(view.head.stack()).is_none_or(|undone| undone < top);
    Ok(Some(turn).filter(|turn| is_newest && !turn.takes_out().is_empty()))
}

/// The refusal that there is nothing to do, and why.
pub fn nothing(op: Op, why: &str) -> Refusal {
    Refusal::new(Code::Nothing, format!("nothing to {}: {why}", op.word())).hint("run 'oxundo log' to see the turns")
}

/// The refusal for a plan that would be another one now.
pub fn changed_since(op: Op) -> Refusal {
    let message = format!("something has changed since this {} was planned", op.word());
    Refusal::new(Code::Conflict, message).hint("look at the plan again")
}

/// The refusal for a turn that is recorded, but is neither done nor can be redone.
pub fn replaced(turn: u64) -> Refusal {
    Refusal::new(Code::Branch, format!("turn {turn} was undone, and later turns stand in its place"))
        .hint(format!("run 'oxundo restore {turn}' to bring its files back"))
}
