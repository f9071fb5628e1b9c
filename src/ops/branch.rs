//! A branch that starts at a turn, with HEAD on it and the worktree and index as the turn left them, the user's edits
//! merged in. The branch that HEAD was on stays as it is, and so do its turns. It is a turn of its own: undo takes the
//! branch away and goes back.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::timeline::stored::Side;
use crate::model::bytes::{sanitized, shell_word};
use crate::model::checkpoint::{Checkpoint, Head};
use crate::model::merge::Edits;
use crate::model::plan::{BranchMove, Op, Plan};
use crate::model::planner::{Present, TurnDelta, plan as planned};
use crate::model::step::StepName;
use crate::model::timeline::TurnSpec;
use crate::model::turn::{Made, Turn};
use crate::ops::made::{PlannedTurn, Words};
use crate::ops::resolve::{ended_turn, kept_prefix, resolve, state_at};
use crate::ops::stashed;
use crate::ops::steps;
use crate::ops::switching;
use crate::ops::turn::check_not_in_progress;
use crate::ops::turn::unattended::told_of_taken;
use crate::ops::undo::alone::left_behind;
use crate::ops::undo::committed::back_to;
use crate::ops::undo::conflict::as_git_does;
use crate::ops::undo::leaving::brings_published;
use crate::ops::undo::legs::RefMoves;
use crate::ops::undo::prepare::Prepared;
use crate::ops::undo::range::{TurnRange, below, is_done};
use crate::ops::view::{View, last_whole};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;
use std::collections::BTreeSet;

/// Plans to start a branch of this name at the turn, or the state, that these words mean.
pub fn plan(view: &View<'_>, name: &str, words: &str, edits: Option<Edits>) -> Result<PlannedTurn> {
    if view.repo.is_shadow() {
        let words = shell_word(words.as_bytes());
        return Err(Refusal::new(Code::Branch, "a directory without git has no branches")
            .hint(format!("run 'oxundo restore --exact {words}' to go to that state"))
            .into());
    }
    // As git switches no branch then: what is in progress is to be committed on this one.
    check_not_in_progress(view.repo)?;
    let (turn, mut goal) = start(view, words)?;
    let full_name = new_name(view, name, words)?;
    let as_made = as_made_anew(view, words, turn, &mut goal)?;
    let step = StepName::parse(words).filter(|_| turn.is_none() && !view.timeline.state.named.contains_key(words));
    let walked = match (turn, step) {
        (Some(turn), _) => Some(walk_to(view, turn, &goal, edits)),
        (None, Some(step)) => Some(steps::walk_to(view, &step, edits).map(as_branch)),
        (None, None) => {
            let end = || Ok::<_, anyhow::Error>(end_of_a_turn(view, &goal)?.map(Before::Turn));
            before(view, words)?.map_or_else(end, |before| Ok(Some(before)))?.map(|before| match before {
                Before::Turn(below) => walk_to(view, below, &goal, edits),
                Before::Step(below) => steps::walk_to(view, &below, edits).map(as_branch),
            })
        }
    };
    let (mut plan, capture) = match walked {
        Some(Ok(walked)) => walked,
        Some(Err(error)) if !starts_elsewhere(&error) => return Err(error),
        _ => switch_to(view, &goal, edits)?,
    };
    let goes = |path: &BString| plan.files.iter().any(|file| file.path == *path);
    let then = stashed::with_autostashes(view, &goal.stash, &goal.operation)?;
    plan.stash = stashed::back(view, &then, &capture.checkpoint.stash, goes)?;
    let what = turn.map_or_else(|| sanitized(words), |turn| format!("turn {turn}"));
    let Some(commit) = goal.head.commit else {
        return Err(Refusal::new(Code::Branch, format!("there is no commit yet at {what}"))
            .hint("give a later turn; 'oxundo log' shows them")
            .into());
    };
    check_is_there(view, &what, commit, words)?;
    plan.head.to = Head { branch: Some(full_name.clone()), commit: Some(commit), through: None };
    plan.head.from = view.head.clone();
    plan.branches = vec![BranchMove { name: full_name, from: None, to: Some(commit) }];
    let words = Words {
        message: format!("branch {name} at {what}"),
        verbs: ["Started", "Would start"],
        object: format!("branch '{}' at {what}", sanitized(name)),
        hint: way_back(view, &plan, &goal)?,
    };
    let mut warnings: Vec<String> = as_made.into_iter().chain(left_behind(view, commit)?).collect();
    for turn in &plan.turns {
        if is_done(view, *turn)? {
            warnings.extend(told_of_taken(view, &view.timeline.require_turn(*turn)?, &plan));
        }
    }
    let turns = turn.into_iter().collect();
    Ok(PlannedTurn { turns, warnings, ..PlannedTurn::new(plan, capture, Made::Branch, words) })
}

/// Undo leaves what others have by now where it is. What is uncommitted then may be in git's way back.
fn way_back(view: &View<'_>, plan: &Plan, goal: &Checkpoint) -> Result<String> {
    let is_to_stay = brings_published(view, plan)?;
    let switch = if is_to_stay { switching::line(view, view.head.branch.as_deref(), view.head.commit)? } else { None };
    let Some(switch) = switch else { return Ok("'oxundo undo' takes it away and goes back".to_owned()) };
    let objects = Objects::new(view.repo);
    let then = objects.head_tree(&goal.head)?;
    let uncommitted: BTreeSet<_> = objects.changed_paths(then, goal.worktree)?.into_iter().collect();
    let is_in_the_way =
        objects.changed_paths(then, objects.head_tree(&view.head)?)?.iter().any(|path| uncommitted.contains(path));
    let stash = if is_in_the_way && !switch.starts_with("git stash") { "git stash -u && " } else { "" };
    Ok(format!("'{stash}{switch}' goes back"))
}

/// The name in full of the new branch; where there is one of it already, another is named that is free.
fn new_name(view: &View<'_>, name: &str, words: &str) -> Result<String> {
    let refs = Refs::new(view.repo);
    let taken = match refs.new_branch_name(name) {
        Err(error) if error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == Code::Branch) => error,
        named => return named,
    };
    let free =
        (2..100).map(|n| format!("{}-{n}", name.replace('/', "-"))).find(|free| refs.new_branch_name(free).is_ok());
    let refusal = taken.downcast::<Refusal>()?;
    let line =
        |free: String| format!("run 'oxundo branch {} {}'", shell_word(free.as_bytes()), shell_word(words.as_bytes()));
    Err(refusal.hints(free.map(line)).into())
}

/// The turn that the branch starts after, where it is one, and the state then.
fn start(view: &View<'_>, words: &str) -> Result<(Option<u64>, Checkpoint)> {
    if words == "@rescue" || kept_prefix(words) > 0 || view.timeline.state.named.contains_key(words) {
        return Ok((None, state_at(view, words)?));
    }
    let turn = match resolve(view, words) {
        // An end of a turn, a step, or a turn of another worktree's.
        Err(_) if words.contains([':', '.']) => return Ok((None, state_at(view, words)?)),
        turn => turn?,
    };
    let state = match turn {
        0 => state_at(view, "0")?,
        _ => view.timeline.checkpoint(ended_turn(view, words)?, Side::After)?,
    };
    Ok((Some(turn), state))
}

/// A commit that the user has made anew of the turn's own names the turn. Where it has the same tree, as with another message, the
/// branch starts at it; else at the turn's own, and that is said.
fn as_made_anew(view: &View<'_>, words: &str, turn: Option<u64>, goal: &mut Checkpoint) -> Result<Option<String>> {
    let objects = Objects::new(view.repo);
    let (Some(number), Some(own)) = (turn.filter(|turn| *turn != 0), goal.head.commit) else { return Ok(None) };
    let is_number = matches!(TurnSpec::parse(words), Ok(TurnSpec::Number(_) | TurnSpec::Below(_)));
    if is_number || !objects.has_commit(own) {
        return Ok(None);
    }
    let Some(named) = objects.commit_named(words)? else { return Ok(None) };
    if view.timeline.require_turn(number)?.knows(&named) {
        return Ok(None);
    }
    if objects.commit_tree(named)? == objects.commit_tree(own)? {
        goal.head.commit = Some(named);
        return Ok(None);
    }
    let [own, named] = [own, named].map(|id| id.to_hex_with_len(7).to_string());
    Ok(Some(format!("commit {named} was made of {own}: the branch starts at that, as turn {number} made it")))
}

/// What is below a turn or a step.
enum Before {
    Turn(u64),
    Step(StepName),
}

/// Where one walks to for the state before a turn that is done here, or before a step of one; none for any other state. What
/// the user changed between that and the turn is theirs, as ever.
fn before(view: &View<'_>, words: &str) -> Result<Option<Before>> {
    let Some(words) = words.strip_suffix(":before") else { return Ok(None) };
    let turn = match StepName::parse(words) {
        Some(StepName { turn, step }) if step > 1 => {
            return Ok(Some(Before::Step(StepName { turn, step: step - 1 })));
        }
        Some(first) => first.turn,
        None => words.to_owned(),
    };
    let Ok(number) = ended_turn(view, &turn) else { return Ok(None) };
    if !is_done(view, number)? {
        return Ok(None);
    }
    let below = below(view, &view.timeline.require_turn(number)?);
    Ok(Some(Before::Turn(last_whole(&view.timeline, below)?.unwrap_or(0))))
}

/// How many turns are looked at for one that ended or began in a state.
const NEAR: usize = 64;

/// The turn to walk to for a state, where one that is done here, or undone, ended with it or began with it: what others that are done
/// since have changed is no edit of the user's.
fn end_of_a_turn(view: &View<'_>, goal: &Checkpoint) -> Result<Option<u64>> {
    let is_it = |state: &Checkpoint| {
        let of = |state: &Checkpoint| (state.head.commit, state.worktree, state.index.tree);
        of(state) == of(goal) && state.index.special == goal.index.special
    };
    let timeline = &view.timeline;
    // One that oxundo made may have taken an edit away, as it was told to.
    let is_agents = |turn: u64| Ok::<_, anyhow::Error>(timeline.require_turn(turn)?.made.is_none());
    for turn in view.place()?.undone.iter().take(NEAR) {
        if is_agents(*turn)? && is_it(&timeline.checkpoint(*turn, Side::After)?) {
            return Ok(Some(*turn));
        }
    }
    let mut at = view.last_whole()?;
    for _ in 0..NEAR {
        let Some(number) = at else { break };
        let turn = timeline.require_turn(number)?;
        if turn.made.is_some() {
            at = last_whole(timeline, turn.previous)?;
            continue;
        }
        if is_it(&timeline.checkpoint(number, Side::After)?) {
            return Ok(Some(number));
        }
        if is_it(&timeline.checkpoint(number, Side::Before)?) {
            return Ok(Some(last_whole(timeline, below(view, &turn))?.unwrap_or(0)));
        }
        at = last_whole(timeline, turn.previous)?;
    }
    Ok(None)
}

/// Refuses a commit that git has deleted.
fn check_is_there(view: &View<'_>, what: &str, commit: ObjectId, words: &str) -> Result<()> {
    if Objects::new(view.repo).has_commit(commit) {
        return Ok(());
    }
    let message = format!("commit {} of {what} is gone: git has deleted it", commit.to_hex_with_len(7));
    let hint = format!("run 'oxundo restore {}' to bring the files back", shell_word(words.as_bytes()));
    Err(Refusal::new(Code::Branch, message).hint(hint).into())
}

/// Whether the turns cannot be walked over from where HEAD is.
fn starts_elsewhere(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| matches!(refusal.code, Code::Branch))
}

/// The changes that make the worktree and the index those of a state, from wherever HEAD is, as git's own switch does it:
/// what differs from HEAD is the user's.
fn switch_to(view: &View<'_>, goal: &Checkpoint, edits: Option<Edits>) -> Result<(Plan, Capture)> {
    let capture = view.present()?;
    let (checkpoints, now) = (Checkpoints::new(view.repo), &capture.checkpoint);
    let committed = Objects::new(view.repo).head_tree(&now.head)?;
    let mut start = Checkpoint { worktree: committed, ..now.clone() };
    start.index.tree = committed;
    start.index.special.clear();
    let delta = checkpoints.delta(&Turn::default(), &start, goal)?;
    let mut deltas = [TurnDelta { turn: 0, delta, ..TurnDelta::default() }];
    deltas[0].leave_refs();
    deltas[0].delta.aside.clear();
    let present = checkpoints.present(&deltas, now, &capture.index)?;
    let edited = checkpoints.edited(&[(&start, now)], now, goal)?;
    let present = Present { edited, ..present };
    let edits = view.config().edits_or(edits)?;
    let plan = checkpoints.merging(|merge| planned(Op::Branch, &deltas, &present, edits, merge));
    let mut plan = plan.map_err(|error| as_git_does(view, error, now))?;
    plan.turns.clear();
    Ok((plan, capture))
}

/// The changes that make the worktree and the index what the turn left.
fn walk_to(view: &View<'_>, turn: u64, goal: &Checkpoint, edits: Option<Edits>) -> Result<(Plan, Capture)> {
    let op = if is_done(view, turn)? { Op::Undo } else { Op::Redo };
    let range = TurnRange::to(view, op, turn)?;
    if range.turns.is_empty() {
        return at_the_top(view, (turn, goal), edits);
    }
    let edits = view.config().edits_or(edits)?;
    Ok(as_branch(Prepared::new(view, op, &range, edits, RefMoves::Stay { at: Some(goal) })?))
}

fn as_branch(walk: Prepared) -> (Plan, Capture) {
    let Prepared { mut plan, capture, .. } = walk;
    plan.op = Op::Branch;
    // What is on the way to where it is to be is no turn.
    plan.turns.retain(|turn| *turn != 0);
    (plan, capture)
}

/// For the last turn done: nothing needs to change if HEAD is where it left it.
fn at_the_top(view: &View<'_>, (turn, goal): (u64, &Checkpoint), edits: Option<Edits>) -> Result<(Plan, Capture)> {
    let (capture, checkpoints) = (view.present()?, Checkpoints::new(view.repo));
    let now = &capture.checkpoint;
    let Some(leg) = back_to(view, now, goal, (now, turn))? else {
        return Ok((Plan::empty(Op::Branch, view.head.clone()), capture));
    };
    let deltas = [leg.delta];
    let present = checkpoints.present(&deltas, now, &capture.index)?;
    let edited = checkpoints.edited(&[(&leg.goal, goal)], now, goal)?;
    let (present, edits) = (Present { edited, ..present }, view.config().edits_or(edits)?);
    let plan = checkpoints.merging(|merge| planned(Op::Branch, &deltas, &present, edits, merge));
    let mut plan = plan.map_err(|error| as_git_does(view, error, now))?;
    plan.turns.clear();
    Ok((plan, capture))
}
