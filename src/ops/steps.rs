//! Undo by steps: back to the state after one, or one taken out. Both are turns of oxundo's own, so that redo right after
//! brings back what they took.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::timeline::stored::Side;
use crate::model::bytes::{sanitized, shell_word};
use crate::model::checkpoint::{Checkpoint, Delta};
use crate::model::merge::Edits;
use crate::model::operation::Operation;
use crate::model::path::all_parents;
use crate::model::plan::Op;
use crate::model::planner::{TurnDelta, plan as planned};
use crate::model::step::{Step, StepName, StepRange};
use crate::model::turn::{Made, Turn};
use crate::ops::beyond::Beyond;
use crate::ops::conversation::{Conversations, Extent};
use crate::ops::made::{PlannedTurn, Words};
use crate::ops::on_branch::ends_of_step;
use crate::ops::renamed_since::{RenamedSince, other_names};
use crate::ops::resolve::step_of;
use crate::ops::revert::on_this_branch;
use crate::ops::turn::skipped::not_covered;
use crate::ops::turn::unattended::told_of_taken;
use crate::ops::turn::{meanwhile, states};
use crate::ops::undo::alone::reworded_below;
use crate::ops::undo::conflict::{as_git_does, beside_later};
use crate::ops::undo::in_the_middle;
use crate::ops::undo::legs::{RefMoves, reword};
use crate::ops::undo::prepare::Prepared;
use crate::ops::undo::range::{TurnRange, below, nothing};
use crate::ops::undo::staged;
use crate::ops::view::{View, last_whole};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

/// The step, if its turn is done here.
fn done_here(view: &View<'_>, name: &StepName) -> Result<(Turn, Step)> {
    let (turn, step) = step_of(view, name)?;
    on_this_branch(view, &turn.turn.to_string()).map_err(|error| in_the_middle(view, error))?;
    Ok((turn, step))
}

/// The turns from the last one done down to this one, of which all that came after a step is meant.
fn range_to(view: &View<'_>, turn: &Turn, step: u64) -> Result<TurnRange> {
    let goal = last_whole(&view.timeline, below(view, turn))?.unwrap_or(0);
    let mut range = TurnRange::to(view, Op::Undo, goal)?;
    // What stands on the turn below took only parts of that out.
    range.turns.truncate(range.turns.iter().position(|one| one.turn == turn.turn).map_or(usize::MAX, |at| at + 1));
    range.back = range.turns.len();
    let after = states::after(&view.timeline, turn, step)?;
    let end = view.timeline.checkpoint(turn.turn, Side::After)?;
    let saved = meanwhile::with_saved(view, turn, &after, step, &end)?;
    let (mut goal, overlaps) = saved.unwrap_or((after, BTreeSet::new()));
    if let Some(last) = range.turns.last_mut() {
        last.forget_taken_up_to(step);
        last.overlaps = meanwhile::taken_along(view, &overlaps, (&goal, &end))?;
    }
    put_reworded(view, &mut goal, end.head.commit)?;
    range.until = Some(Box::new(goal));
    Ok(range)
}

/// Where the commit that a state has HEAD at is below this one in the user's other words, HEAD is at that.
fn put_reworded(view: &View<'_>, state: &mut Checkpoint, end: Option<ObjectId>) -> Result<()> {
    let (Some(from), Some(end)) = (state.head.commit, end) else { return Ok(()) };
    let objects = Objects::new(view.repo);
    if objects.has_commit(from)
        && !objects.is_ancestor(from, end)?
        && let Some(to) = reworded_below(&objects, end, from)?
    {
        reword(state, from, to);
    }
    Ok(())
}

/// The changes that lead from here to the state after a step, and leave HEAD and branches where they are.
pub fn walk_to(view: &View<'_>, name: &StepName, edits: Option<Edits>) -> Result<Prepared> {
    let (turn, step) = done_here(view, name)?;
    let range = range_to(view, &turn, step.step)?;
    Prepared::new(view, Op::Undo, &range, view.config().edits_or(edits)?, RefMoves::Stay { at: None })
}

/// Plans to go back to the state after a step.
pub fn plan_to(view: &View<'_>, name: &StepName, edits: Option<Edits>) -> Result<PlannedTurn> {
    let (turn, step) = done_here(view, name)?;
    let range = range_to(view, &turn, step.step)?;
    let edits = view.config().edits_or(edits)?;
    let prepared = Prepared::new(view, Op::Undo, &range, edits, RefMoves::Move);
    let Prepared { plan, capture, .. } = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return Err(in_the_middle(view, not_by_commits(view, error, &range, &step)?)),
    };
    if plan.is_empty() {
        return Err(nothing(Op::Undo, &format!("it is as it was after step {}", step.name())).into());
    }
    let turns: Vec<u64> = range.turns.iter().filter(|turn| !turn.is_part()).map(|turn| turn.turn).collect();
    let words = Words {
        message: format!("back to step {}", step.name()),
        verbs: ["Went", "Would go"],
        object: format!("back to step {} ({}: {})", step.name(), sanitized(&turn.agent), sanitized(&step.label())),
        hint: "'oxundo redo' goes on to where it was".to_owned(),
    };
    let made = Made::BackTo { turns: turns.clone(), step: step.step };
    let conversations = Conversations::undone(view, &range.turns, Extent::Parts)?;
    let mut warnings = meanwhile::gone_with(range.turns.iter(), &plan);
    warnings.extend(range.turns.iter().filter_map(|turn| told_of_taken(view, turn, &plan)));
    Ok(PlannedTurn { turns, conversations, warnings, ..PlannedTurn::new(plan, capture, made, words) })
}

/// No step is gone back to by commits on top: where commits must not leave their branch, the files alone lead there.
fn not_by_commits(view: &View<'_>, error: anyhow::Error, range: &TurnRange, step: &Step) -> Result<anyhow::Error> {
    let mut refusal = match error.downcast::<Refusal>() {
        Ok(refusal) if refusal.hints.iter().any(|hint| hint.contains("'oxundo undo --revert'")) => refusal,
        Ok(refusal) => return Ok(refusal.into()),
        Err(error) => return Ok(error),
    };
    refusal.hints.retain(|hint| !hint.contains("'oxundo undo --revert'"));
    let (turn, last) = (step.turn, view.timeline.last_step(step.turn)?);
    if range.turns.len() == 1 && last > step.step {
        let [first, last] = [step.step + 1, last].map(|step| StepName { turn: turn.to_string(), step });
        let later = StepRange { first, last };
        refusal.hints.push(format!("run 'oxundo undo --only {later}' to take out of the files what came after it"));
    }
    refusal.hints.push(format!("run 'oxundo restore {}' to have its files on top", step.name()));
    Ok(refusal.into())
}

/// Plans to take steps out of the worktree.
pub fn plan_only(
    view: &View<'_>,
    range: &StepRange,
    pathspecs: &[OsString],
    edits: Option<Edits>,
) -> Result<PlannedTurn> {
    let (turn, last) = done_here(view, &range.last)?;
    let (_, first) = done_here(view, &range.first)?;
    let mut deltas = Vec::new();
    for step in (first.step..=last.step).rev() {
        deltas.push((step, inverse_of(view, &turn, step, pathspecs)?));
    }
    let steps: Vec<u64> = deltas.iter().map(|(step, _)| *step).collect();
    let beyond = Beyond::of(view, &turn, &steps, pathspecs)?;
    let (noun, changed) = match deltas.len() {
        1 => ("step", "what the step changed"),
        _ => ("steps", "what the steps changed"),
    };
    let name = StepRange { first: first.name(), last: last.name() };
    let label = if first.step == last.step { format!("{}: {}", turn.agent, last.label()) } else { turn.label() };
    let words = TakenOut {
        message: format!("take out {noun} {name}"),
        object: format!("{noun} {name} ({})", sanitized(&label)),
        changed,
    };
    let changed: BTreeSet<BString> = deltas.iter().flat_map(|(_, delta)| delta.files.keys().cloned()).collect();
    take_out(view, &turn, view.present()?, (deltas, beyond), edits, words).map_err(|error| {
        let refusal = match error.downcast::<Refusal>() {
            Ok(refusal) if refusal.code == Code::Conflict && !refusal.paths.is_empty() => refusal,
            Ok(refusal) => return refusal.into(),
            Err(error) => return error,
        };
        let later = last_to_change(view, &turn, last.step, &refusal.paths).unwrap_or_default();
        let was = states::before(&view.timeline, &turn, first.step);
        let is_there = |path: &BString| {
            was.as_ref().is_ok_and(|was| {
                Objects::new(view.repo).tree_entry(was.worktree, path.as_bstr()).is_ok_and(|it| it.is_some())
            })
        };
        let there: Vec<BString> = refusal.paths.iter().filter(|path| is_there(path)).cloned().collect();
        let is_stuck = later.is_none() && there.is_empty();
        let refusal = beside(refusal, &name, Beside { changed, there, later });
        match view.present().ok().filter(|_| is_stuck) {
            Some(now) => beside_later(view, refusal, &now.checkpoint, std::slice::from_ref(&turn)),
            None => refusal.into(),
        }
    })
}

/// The last step after this one that has changed any of these files.
fn last_to_change(view: &View<'_>, turn: &Turn, step: u64, paths: &[BString]) -> Result<Option<u64>> {
    for later in (step + 1..=view.timeline.last_step(turn.turn)?).rev() {
        let (before, after) =
            (states::before(&view.timeline, turn, later)?, states::after(&view.timeline, turn, later)?);
        let changed = Checkpoints::new(view.repo).file_changes(&before, &after)?;
        if paths.iter().any(|path| changed.contains_key(path)) {
            return Ok(Some(later));
        }
    }
    Ok(None)
}

/// What leads out where steps cannot be taken out.
struct Beside {
    /// The files that they changed.
    changed: BTreeSet<BString>,
    /// Those in the way that were there before them.
    there: Vec<BString>,
    /// The last step since that has changed any of these.
    later: Option<u64>,
}

/// What is changed beside what a step did leads out: git can put away what is not committed alone, and nothing is overwritten.
fn beside(mut refusal: Refusal, name: &StepRange, Beside { changed, there, later }: Beside) -> Refusal {
    let words = |magic: &[u8], paths: &[BString]| {
        let words = paths.iter().map(|path| shell_word([magic, path.as_slice()].concat()));
        words.collect::<Vec<_>>().join(" ")
    };
    let them = |paths: &[BString]| if paths.len() == 1 { "it" } else { "them" };
    let mut hints = Vec::new();
    let later = later.map(|later| {
        let last = StepName { step: later, ..name.last.clone() };
        let range = StepRange { first: name.first.clone(), last };
        format!("run 'oxundo undo --only {range}' to take out what was done to {} since, too", them(&refusal.paths))
    });
    if changed.iter().any(|path| !refusal.paths.contains(path)) {
        let but = words(b":(top,exclude,literal)", &refusal.paths);
        hints.push(format!("run 'oxundo undo --only {name} -- :/ {but}' to take out all but {}", them(&refusal.paths)));
    }
    if !there.is_empty() {
        let back = words(b":(top,literal)", &there);
        hints.push(format!(
            "run 'oxundo restore {}:before -- {back}' to go back there with {} alone",
            name.first,
            them(&there)
        ));
    }
    if later.is_some() || !hints.is_empty() {
        refusal.hints.retain(|hint| !hint.contains("git stash"));
    }
    refusal.hints.splice(..0, later);
    refusal.hints(hints)
}

/// The changes that take a step out, of what these pathspecs match, but for what is beyond the limits.
pub fn inverse_of(view: &View<'_>, turn: &Turn, step: u64, pathspecs: &[OsString]) -> Result<Delta> {
    let ends = [states::before(&view.timeline, turn, step)?, states::after(&view.timeline, turn, step)?];
    let [before, after] = ends_of_step(view, turn, ends)?;
    // What was taken away and is not captured comes back with the whole turn alone.
    let turn = &Turn { stashed: BTreeMap::new(), ..turn.clone() };
    let delta = Checkpoints::new(view.repo).delta(turn, &before, &after)?.inverse();
    let Delta { mut files, mut directories, .. } = delta;
    if !pathspecs.is_empty() {
        let mut selection = Index::new(view.repo).selection(pathspecs)?;
        let others = other_names(view, &files)?;
        files.retain(|path, _| {
            let mut names = others.get(path).into_iter().chain([path]);
            names.any(|name| selection.takes(name.as_bstr()))
        });
        let above = all_parents(files.keys().map(|file| file.as_bstr()));
        directories.retain(|path, _| above.contains(path.as_bstr()));
    }
    Ok(Delta { files, directories, ..Delta::default() })
}

/// What is taken out of files that have other names by now is taken out there: the newest step's changes come first.
fn under_names_of_now(
    view: &View<'_>,
    turn: &Turn,
    deltas: Vec<(u64, Delta)>,
    present: &Checkpoint,
) -> Result<Vec<Delta>> {
    let mut all: Vec<Delta> = Vec::new();
    for (step, mut delta) in deltas {
        let end = || states::after(&view.timeline, turn, step);
        let names = RenamedSince::find(view, (&delta, end), present, &all.iter().collect::<Vec<_>>())?;
        names.lead(view, &mut delta, present)?;
        all.push(delta);
    }
    Ok(all)
}

/// A refusal without the hints that have this in them.
fn without_hint(error: anyhow::Error, words: &str) -> anyhow::Error {
    match error.downcast::<Refusal>() {
        Ok(mut refusal) => {
            refusal.hints.retain(|hint| !hint.contains(words));
            refusal.into()
        }
        Err(error) => error,
    }
}

/// How a part of a turn that is taken out is called.
pub struct TakenOut {
    /// In the record.
    pub message: String,
    /// To people.
    pub object: String,
    /// Where it is out already.
    pub changed: &'static str,
}

/// Plans to take some changes of a turn's steps out of the present state; all that was done since stays.
pub fn take_out(
    view: &View<'_>,
    turn: &Turn,
    capture: Capture,
    (deltas, beyond): (Vec<(u64, Delta)>, Beyond),
    edits: Option<Edits>,
    words: TakenOut,
) -> Result<PlannedTurn> {
    let checkpoints = Checkpoints::new(view.repo);
    let [before, end] = [Side::Before, Side::After].map(|side| view.timeline.checkpoint(turn.turn, side));
    let (before, end) = (before?, end?.operation);
    // What is in the files of an operation that the turn began or moved on is that one's.
    let within = if before.operation == end { end } else { Operation::default() };
    let of_turn = |delta| TurnDelta { turn: turn.turn, delta, within: within.clone(), ..TurnDelta::default() };
    let mut deltas = under_names_of_now(view, turn, deltas, &capture.checkpoint)?;
    if let Some(newest) = deltas.first_mut() {
        newest.aside = beyond.inverse;
    }
    let mut deltas: Vec<TurnDelta> = deltas.into_iter().map(of_turn).collect();
    staged::note(view, &capture, deltas.iter_mut().map(|delta| (&capture.checkpoint, &before, delta)))?;
    let present = checkpoints.present(&deltas, &capture.checkpoint, &capture.index)?;
    let edits = match view.config().edits_or(edits)? {
        Edits::Overwrite => Edits::Merge,
        edits => edits,
    };
    let plan = checkpoints.merging(|merge| planned(Op::Undo, &deltas, &present, edits, merge));
    let plan = plan.map_err(|error| {
        // What was done since stays, whatever is asked for.
        let error = without_hint(error, "--edits=overwrite");
        in_the_middle(view, as_git_does(view, error, &capture.checkpoint))
    })?;
    if plan.is_empty() {
        return Err(nothing(Op::Undo, &format!("{} is taken out already", words.changed)).into());
    }
    let words = Words {
        message: words.message,
        verbs: ["Took out", "Would take out"],
        object: words.object,
        hint: "'oxundo redo' brings it back".to_owned(),
    };
    let (turns, made) = (vec![turn.turn], Made::PartialRevert(vec![turn.turn]));
    let conversations = Conversations::undone(view, std::slice::from_ref(turn), Extent::Parts)?;
    let warnings = beyond.stay.iter().map(not_covered).collect();
    Ok(PlannedTurn { turns, conversations, warnings, ..PlannedTurn::new(plan, capture, made, words) })
}
