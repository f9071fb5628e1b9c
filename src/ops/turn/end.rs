//! The end of a turn: what it changed is committed, and the state after it is kept. A turn that changed nothing is
//! taken back without a trace.

use crate::error::failure::to_refusal;
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::index::lock::IndexLock;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::refs::evidence::Began;
use crate::git::repo::Repo;
use crate::git::repo::clock::rfc3339_now;
use crate::git::repo::platform::{exact_clock, is_past_on_file_clock};
use crate::git::timeline::stored::{Side, Stored};
use crate::git::timeline::update::Update;
use crate::model::call::ToolCall;
use crate::model::checkpoint::{Checkpoint, Delta, Head, branch_changes};
use crate::model::merge::{Cause, Edits, Merged};
use crate::model::place::Node;
use crate::model::place::{Place, base_of};
use crate::model::plan::{Op, Plan};
use crate::model::planner::{TurnDelta, plan};
use crate::model::pointers::Tip;
use crate::model::record::Record;
use crate::model::step::Step;
use crate::model::timeline::{Pin, Timeline};
use crate::model::turn::{Asked, CommitKind, Footing, Made, Mode, Participant, Turn, TurnCommit, listed};
use crate::ops::called::logs;
use crate::ops::dropped::dropped_since;
use crate::ops::locked::Locked;
use crate::ops::place::keep_line;
use crate::ops::turn::branches::owned_by_others;
use crate::ops::turn::commit::{as_if_committed, auto_commit, replaces_staged_content};
use crate::ops::turn::gaps::{committed_since, is_users_end, tells_all};
use crate::ops::turn::pins::{lost_elsewhere, passed, pin_displaced, unpin_below};
use crate::ops::turn::since::Since;
use crate::ops::turn::skipped::{announce_uncovered, note_torn};
use crate::ops::turn::{advance, check_on_branch, notes};
use crate::ops::turn::{calls, known, leftover, sole, unattended};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How a turn ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ending {
    /// The agent's exit code.
    pub exit_code: Option<i32>,
    /// Whether it was cut off.
    pub interrupted: bool,
}

/// Ends the open turn. Gives the turn, if there is one that changed anything. When something cannot be read or
/// written, the turn is still open.
pub fn end(locked: &mut Locked<'_>, ending: Ending) -> Result<Option<Turn>> {
    let Some(turn) = locked.open_turn()? else { return Ok(None) };
    if turn.made.is_some() {
        return end_made(locked, turn);
    }
    let since = Since::look(locked, &turn)?;
    end_as_seen(locked, turn, since, ending)
}

/// Ends a turn of oxundo's own that was interrupted: as its plan says where that was finished, and else without a trace. What
/// anybody has changed since is not its own.
fn end_made(locked: &mut Locked<'_>, turn: Turn) -> Result<Option<Turn>> {
    let Some(plan) = locked.timeline.carried_out(turn.turn)? else { return drop_open(locked).map(|()| None) };
    let before = as_before(locked, locked.timeline.checkpoint(turn.turn, Side::Before)?)?;
    let since = Since::told(locked, &turn, before, &plan)?;
    end_as_seen(locked, turn, since, Ending::default())
}

/// Ends the open turn with the state that has been looked at.
pub fn end_as_seen(locked: &mut Locked<'_>, mut turn: Turn, mut since: Since, ending: Ending) -> Result<Option<Turn>> {
    turn.ended_at = Some(rfc3339_now());
    turn.exit_code = ending.exit_code.or(turn.exit_code);
    turn.interrupted = ending.interrupted;
    turn.origin.waiting = false;
    turn.origin.parts.iter_mut().for_each(crate::agents::transcript::finish);
    turn.torn.extend(note_torn(locked, &since.capture));
    announce_published(locked, &turn);
    let changed = since.changed(locked, &turn)?;
    since.find_moves(locked, &mut turn, &changed)?;
    let has_come = has_come(locked, &turn, &since)?;
    if changed.is_empty() && !has_moved_away(&turn) && !since.is_shared && !has_come {
        announce_uncovered(locked, &turn, &since.before, &since.capture.checkpoint, &changed);
        take_back(locked, &turn, &since)?;
        return Ok(None);
    }
    let is_nothing = since.find_theirs(locked, &mut turn)? && !has_moved_away(&turn) && !since.is_shared;
    if is_nothing && !has_come && take_back(locked, &turn, &since).is_ok() {
        return Ok(None);
    }
    note_who_changed_nothing(locked, &mut turn, &since.capture.checkpoint)?;
    let mut plan = Plan::empty(Op::End, since.capture.checkpoint.head.clone());
    let mut update = locked.timeline.update();
    let lock = commit(locked, &mut turn, &mut since, &changed, &mut plan, &mut update)?;
    announce_uncovered(locked, &turn, &since.before, &since.capture.checkpoint, &changed);
    let undone = locked.place()?.undone.clone();
    put_ended(locked, &mut turn, &since, &mut update)?;
    let word = if ending.interrupted { "end (interrupted)" } else { "end" };
    let message = format!("{word} {} ({})", turn.turn, turn.label());
    let notes = notes(locked.repo, &turn);
    locked.carry_out(&plan, update, message, notes, lock)?;
    announce_left(locked, &turn, &undone, since.before.head.commit);
    // Else the next turn does it as it begins.
    let _ = calls::forget(locked.repo).and_then(|()| Index::new(locked.repo).forget_begun());
    Ok(Some(turn))
}

/// Notes which of several sessions only looked, where all told of each call, or nothing changed outside of those told of: the turn is
/// called after another one then.
fn note_who_changed_nothing(view: &View<'_>, turn: &mut Turn, after: &Checkpoint) -> Result<()> {
    if turn.origin.parts.len() < 2 || !turn.origin.by_hooks {
        return Ok(());
    }
    let (steps, told) = (view.timeline.steps(turn.turn)?, calls::in_open_turn(view.repo));
    if !turn.led_by_user && !are_all_in_steps(view, turn, &told, after)? {
        return Ok(());
    }
    let in_background = turn.origin.at_work_after().is_some() && !unattended::changed(view, turn, after)?.is_empty();
    let has_changed = |part: &Participant| {
        let is_its = |step: &Step| {
            let is_named = || part.session.as_ref().is_some_and(|id| step.others.contains(id));
            let is_empty = step.is_background() && step.totals.files == 0;
            (step.session == part.session || is_named()) && !step.is_users() && !is_empty
        };
        let goes_on = told.iter().any(|call| call.session == part.session && call.goes_on);
        goes_on || (in_background && part.listed.is_some()) || part.told_twice || steps.iter().any(is_its)
    };
    let changed: Vec<bool> = turn.origin.parts.iter().map(has_changed).collect();
    let Some(first) = changed.iter().position(|has| *has) else { return Ok(()) };
    for (part, has) in turn.origin.parts.iter_mut().zip(changed) {
        part.idle = !has;
    }
    if turn.own_part().is_some_and(|part| part.idle) {
        let Participant { agent, session, asked, .. } = turn.origin.parts[first].clone();
        let Asked { message, prompt, .. } = asked.into_iter().next().unwrap_or_default();
        (turn.agent, turn.session, turn.message, turn.prompt) = (agent, session, message, prompt);
    }
    Ok(())
}

/// Whether all that a turn changed is in the steps of calls that are over, though not all may be told of.
fn are_all_in_steps(view: &View<'_>, turn: &Turn, told: &[ToolCall], after: &Checkpoint) -> Result<bool> {
    if tells_all(turn) || told.is_empty() || told.iter().any(|call| call.ended_at.is_none() || !call.is_known) {
        return Ok(false);
    }
    // What is at work in the background makes no commits.
    for (from, to) in unattended::beside_told(view, turn, after)? {
        let committed = committed_since(view, &from, &to)?;
        if Checkpoints::new(view.repo).file_changes(&from, &to)?.keys().any(|path| !committed.contains(path)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether something has come of a turn that no difference of its ends has.
fn has_come(view: &View<'_>, turn: &Turn, since: &Since) -> Result<bool> {
    let has_passed = || passed(view.repo, turn, &since.start, &since.capture.checkpoint);
    Ok(!has_passed()?.is_empty() || is_built_upon(view, turn, since)?)
}

/// Whether another branch goes on from a turn's dirty commit, as that of a worktree which the turn made: that cannot be taken back then.
fn is_built_upon(view: &View<'_>, turn: &Turn, since: &Since) -> Result<bool> {
    let Some(dirty) = turn.dirty_commit else { return Ok(false) };
    let (objects, head, known) =
        (Objects::new(view.repo), since.capture.checkpoint.head.branch.as_ref(), &since.before.branches);
    let has_moved = |(name, tip): &(&String, &ObjectId)| head != Some(*name) && known.get(*name) != Some(*tip);
    for (_, tip) in since.capture.checkpoint.branches.iter().filter(has_moved) {
        if objects.is_ancestor(dirty, *tip)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a turn moved what is not captured, or took it away: no difference of its ends has that.
fn has_moved_away(turn: &Turn) -> bool {
    !turn.placed.is_empty() || !turn.stashed.is_empty()
}

/// Tells that the agent has pushed what the user had uncommitted.
fn announce_published(view: &View<'_>, turn: &Turn) {
    let dirty = turn.dirty_commit.filter(|_| turn.onto.is_none() && !turn.origin.by_hooks);
    let is_published =
        |dirty: &ObjectId| Objects::new(view.repo).published(&[*dirty]).is_ok_and(|published| !published.is_empty());
    if let Some(dirty) = dirty.filter(is_published) {
        let (turn, id) = (turn.turn, dirty.to_hex_with_len(7));
        view.warn(format!("what you had uncommitted before turn {turn} is published, as commit {id}"));
    }
}

/// Says once which turns a new one was made instead of. Hooks say nothing of what has gone well.
fn announce_left(view: &View<'_>, turn: &Turn, undone: &[u64], begun: Option<ObjectId>) {
    let is_quiet = turn.keeps_redo() || turn.origin.by_hooks;
    let Some(last) = undone.last().filter(|_| !is_quiet) else { return };
    let (turns, are) = if undone.len() == 1 { ("turn", "is") } else { ("turns", "are") };
    let left = listed(undone);
    // What stands on other commits cannot be had beside those of the user's.
    let first = undone.iter().find_map(|undone| view.timeline.node(*undone).ok().filter(Node::moved));
    let knows = |left: Turn| begun.is_some_and(|begun| left.knows(&begun));
    let is_apart = first.is_some_and(|first| {
        first.from != begun && !view.timeline.find_turn(first.turn).ok().flatten().is_some_and(knows)
    });
    // Nor can what git has brought newer turns above: to go back there takes these off.
    let is_below = undone.iter().any(|undone| Some(*undone) < turn.previous);
    let is_apart = is_apart || is_below || !has_their_branches(view, undone).unwrap_or(true);
    let line = if is_apart { format!("oxundo branch turn-{last} {last}") } else { format!("oxundo redo --to {last}") };
    view.warn(format!("{turns} {left} {are} left beside turn {}: '{line}' goes back there", turn.turn));
}

/// Whether the branches beside HEAD's that these turns moved are where they found them: who has moved one keeps it.
fn has_their_branches(view: &View<'_>, undone: &[u64]) -> Result<bool> {
    let (mut seen, now) = (BTreeSet::from([view.head.stack().to_owned()]), Refs::new(view.repo).branches()?);
    for turn in undone {
        let [before, after] = [Side::Before, Side::After].map(|side| view.timeline.checkpoint(*turn, side));
        let (before, after) = (before?.branches, after?.branches);
        for name in before.keys().chain(after.keys()).filter(|name| before.get(*name) != after.get(*name)) {
            if seen.insert(name.clone()) && before.get(name) != now.get(name) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Puts what is known of a turn at its end into the next timeline.
fn put_ended(view: &View<'_>, turn: &mut Turn, since: &Since, update: &mut Update<'_>) -> Result<()> {
    let Since { before, start, capture, theirs, .. } = since;
    let after = &capture.checkpoint;
    turn.branch.clone_from(&after.head.branch);
    turn.logs = Some(logs(&Refs::new(view.repo), turn, before, after));
    let users = theirs.commits(view, start)?;
    let mut made = commits_of(view.repo, turn, start, after)?;
    if turn.made == Some(Made::Squash) {
        // Below the one that it makes are those that were the user's.
        made.iter_mut().filter(|it| Some(it.id) != after.head.commit).for_each(|it| it.kind = CommitKind::Dirty);
    }
    turn.commits.extend(made.into_iter().filter(|commit| !users.contains(&commit.id)));
    let checkpoints = Checkpoints::new(view.repo);
    let whole = checkpoints.delta(turn, before, after)?;
    let own = theirs.goal.as_ref().map(|goal| checkpoints.delta(turn, goal, after)).transpose()?;
    let ended = capture.at.map(|_| exact_clock());
    turn.ended = ended.filter(|ended| !whole.aside.is_empty() && is_past_on_file_clock(*ended));
    let (files, totals) = checkpoints.file_stats(own.as_ref().unwrap_or(&whole))?;
    turn.totals = totals;
    place_on_timeline(view, turn, since, &mut update.state)?;
    turn.sole = sole::is_sole(view, turn, [before, after], &whole)?;
    update.state.open = None;
    let held = std::mem::take(&mut update.state.held);
    pin_displaced(view.repo, &mut update.state, &whole)?;
    for id in lost_elsewhere(view.repo, before, after).into_values() {
        update.state.pin(id);
    }
    let below = turn.previous.map(|below| view.timeline.node(below)).transpose()?;
    unpin_below(view.repo, &mut update.state, below.and_then(|below| below.to), after.head.commit)?;
    pin_steps(view, &mut update.state, held, before, after)?;
    turn.passed = passed(view.repo, turn, start, after)?.into_iter().map(|id| Tip(Some(id))).collect();
    for id in turn.passed.iter().filter_map(|tip| tip.0) {
        update.state.pin(id);
    }
    leftover::note(view, &mut update.state, turn, &whole, capture)?;
    let told = calls::in_open_turn(view.repo);
    if let Some(goal) = &theirs.goal {
        update.put_saved(turn.turn, goal)?;
    }
    if let Some(found) = &theirs.found {
        update.put_found(turn.turn, found)?;
    }
    update.put_turn(turn)?;
    update.put_above(turn)?;
    update.remove_journal(turn.turn);
    update.put_files(turn.turn, &files)?;
    update.put_calls(turn.turn, &told)?;
    update.put_checkpoint(turn.turn, Side::After, after)
}

/// Keeps alive the commits at which a step was, and which neither end of the turn holds.
fn pin_steps(
    view: &View<'_>,
    state: &mut Timeline,
    pins: Vec<Pin>,
    before: &Checkpoint,
    after: &Checkpoint,
) -> Result<()> {
    let ends = |id: &ObjectId| [before, after].into_iter().any(|end| end.branches.values().any(|tip| tip == id));
    let stashed = |id: &ObjectId| before.stash.iter().any(|entry| entry.id == *id);
    for Pin(id) in pins.into_iter().filter(|pin| !ends(&pin.0) && !stashed(&pin.0)) {
        let is_held = match after.head.commit {
            Some(head) => Objects::new(view.repo).is_ancestor(id, head)?,
            None => false,
        };
        if !is_held {
            state.pin(id);
        }
    }
    Ok(())
}

/// The view as it would be if the open turn were ended now, with its commit or without: for a plan. No ref is moved.
pub fn as_if_ended<'r>(view: &View<'r>, with_commit: bool) -> Result<View<'r>> {
    let Some(mut turn) = view.open_turn()? else { return Ok(view.clone()) };
    let mut since = Since::look(view, &turn)?;
    let changed = since.changed(view, &turn)?;
    since.find_moves(view, &mut turn, &changed)?;
    let has_come = has_come(view, &turn, &since)?;
    let is_nothing = changed.is_empty() && !has_moved_away(&turn) && !since.is_shared && !has_come;
    let is_theirs =
        !is_nothing && !has_come && since.find_theirs(view, &mut turn)? && !has_moved_away(&turn) && !since.is_shared;
    let mut update = view.timeline.update();
    let mut taken_back = None;
    let mut head = view.head.clone();
    if turn.origin.waiting || is_nothing || is_theirs {
        if turn.dirty_commit.is_some() && turn.onto.is_none() {
            taken_back = Some(as_before(view, since.goal().clone())?);
        }
        update.state.open = None;
        update.state.held.clear();
        update.state.stand(taken_back.as_ref().map_or(&head, |before| &before.checkpoint.head), view.place()?);
        update.remove_turn(turn.turn);
    } else {
        turn.ended_at = Some(rfc3339_now());
        let is_owned = owned_by_others(view.config(), &since.capture.checkpoint.head)?.is_some();
        if with_commit && turn.mode == Mode::Commit && !is_owned {
            let commit = as_if_committed(view, &turn, &since, &changed)?;
            if let Some(commit) = commit {
                since.capture.checkpoint.advance(commit);
            }
            head = since.capture.checkpoint.head.clone();
        }
        put_ended(view, &mut turn, &since, &mut update)?;
    }
    let (_, timeline) = update.into_record(String::new(), Vec::new())?;
    let mut ended = view.clone();
    ended.as_if_ended = Some(turn.turn);
    let head = taken_back.as_ref().map_or(head, |before| before.checkpoint.head.clone());
    ended.became(timeline, head);
    ended.as_if_present = taken_back;
    Ok(ended)
}

/// The present as it would be if a turn that changed nothing were taken back with its dirty commit: as it was before.
fn as_before(view: &View<'_>, before: Checkpoint) -> Result<Capture> {
    let index = Index::new(view.repo).of_tree(before.index.tree)?;
    let changed = Objects::new(view.repo).tree_changes(before.index.tree, before.worktree)?;
    // What is not in the index is not tracked.
    let changed = changed.into_iter().filter(|(_, change)| change.from.is_some()).map(|(path, _)| path).collect();
    Ok(Capture {
        checkpoint: before,
        index,
        changed,
        torn: Vec::new(),
        opened: Arc::default(),
        at: None,
        ignored: Vec::new(),
    })
}

/// Makes the auto-commit, and puts it into the plan and into the state after the turn.
fn commit<'r>(
    locked: &Locked<'r>,
    turn: &mut Turn,
    since: &mut Since,
    changed: &Delta,
    plan: &mut Plan,
    update: &mut Update<'_>,
) -> Result<Option<IndexLock<'r>>> {
    if turn.mode != Mode::Commit {
        return Ok(None);
    }
    // It has switched there.
    if let Some(why) = owned_by_others(locked.config(), &since.capture.checkpoint.head)? {
        locked.warn(format!("the turn's changes were not committed: {why}"));
        turn.obstacle = Some(why);
        return Ok(None);
    }
    let made = check_on_branch(&since.capture.checkpoint.head).and_then(|()| auto_commit(locked, turn, since, changed));
    let made = match made {
        Ok(Some(made)) => made,
        Ok(None) => return Ok(None),
        // The turn is recorded all the same; its changes stay uncommitted.
        Err(error) => {
            let why = to_refusal(&error).message;
            locked.warn(format!("the turn's changes were not committed: {why}"));
            turn.obstacle = Some(why);
            return Ok(None);
        }
    };
    let after = &mut since.capture.checkpoint;
    plan.index = made.index;
    let head_tree = Objects::new(locked.repo).head_tree(&after.head)?;
    if replaces_staged_content(locked.repo, head_tree, &plan.index)? {
        update.put_rescue(after, &plan.replaced(|_, _| false))?;
    }
    advance(plan, made.commit);
    after.advance(made.commit);
    after.index = made.state;
    Ok(Some(made.lock))
}

/// Where the turn stands: above the last one done when it began, or, where it has switched to other history, above
/// the last one done there.
fn place_on_timeline(view: &View<'_>, turn: &mut Turn, since: &Since, state: &mut Timeline) -> Result<()> {
    let (before, after) = (&since.before, &since.capture.checkpoint);
    let began = view.place()?.clone();
    let mut there = view.clone();
    there.head.clone_from(&before.head);
    let (from, to) = (turn.onto.or(before.head.commit), after.head.commit);
    let switched = since.goal().head.branch != after.head.branch;
    // A branch of oxundo's own starts at a turn, be it one that is undone.
    let starts = matches!(turn.made, Some(Made::Branch)) && before.head.commit != to;
    let is_on_another = before.head.branch != after.head.branch;
    // What the other branch had is below the turn there.
    let had = after.head.branch.as_ref().filter(|_| is_on_another).and_then(|name| before.branches.get(name)).copied();
    let is_further = had.is_some() && !goes_on(view.repo, had, before.head.commit)?;
    let elsewhere = if starts || is_further || (is_on_another && !goes_on(view.repo, before.head.commit, to)?) {
        Some((after.head.clone(), None))
    } else {
        // What the user brought to it in the middle, as by a merge, is below it.
        let onto = turn.onto.filter(|_| !is_on_another);
        onto.map(|onto| (Head { commit: Some(onto), ..before.head.clone() }, state.at.clone()))
    };
    if let Some((head, at)) = elsewhere {
        let closed = Timeline { open: None, at, ..state.clone() };
        there.became(Stored { state: closed, ..view.timeline.clone() }, head);
    }
    state.lifted.clone_from(&there.timeline.state.lifted);
    let place = there.place()?;
    let node = |number| there.timeline.node(number);
    let base = if from == to { base_of(place.top, &node)?.unwrap_or(0) } else { turn.turn };
    turn.previous = place.top;
    let below = place.top.map(|below| there.timeline.require_turn(below)).transpose()?;
    let back_to = switched.then(|| began.top.unwrap_or(0));
    let back_at = match &below {
        _ if switched && began.top != place.top => Some(turn.turn),
        below => below.as_ref().and_then(|below| below.footing?.back_at),
    };
    turn.footing = Some(Footing { from, to, base, back_to, back_at });
    let dropped = below.as_ref().map_or(Ok(0), |below| dropped_since(&there, below))?;
    let depth = below.map_or(0, |below| below.depth.saturating_sub(dropped));
    turn.depth = depth.saturating_add(u64::from(!turn.is_part()));
    // On a new branch nothing is undone; the old one keeps what is.
    let undone = if turn.is_part() { began.undone.clone() } else { Vec::new() };
    let now = Place { top: Some(turn.turn), undone, by_hand: began.by_hand.clone() };
    if from == to && !switched {
        state.stand_everywhere(&began, &now);
    }
    keep_line(&view.timeline, state, &after.head, &Place { top: place.top, ..now.clone() })?;
    state.stand(&after.head, &now);
    Ok(())
}

/// Whether the history of one commit goes on to the other.
fn goes_on(repo: &Repo, from: Option<ObjectId>, to: Option<ObjectId>) -> Result<bool> {
    match (from, to) {
        (Some(from), Some(to)) => Objects::new(repo).is_ancestor(from, to),
        (from, _) => Ok(from.is_none()),
    }
}

/// Takes back the record of the open turn and its dirty commit. What changed since it began
/// stays as it is, uncommitted.
pub fn drop_open(locked: &mut Locked<'_>) -> Result<()> {
    let Some(turn) = locked.open_turn()? else { return Ok(()) };
    let since = Since::look(locked, &turn)?;
    take_back(locked, &turn, &since)
}

/// Takes back the dirty commit and the record of a turn that changed nothing.
pub fn take_back(locked: &mut Locked<'_>, turn: &Turn, since: &Since) -> Result<()> {
    let number = turn.turn;
    let checkpoints = Checkpoints::new(locked.repo);
    let told = calls::in_open_turn(locked.repo);
    known::note(locked.repo, turn, is_users_end(locked.repo, &locked.timeline, turn, &told)?)?;
    let _ = Index::new(locked.repo).forget_begun();
    let delta = checkpoints.delta(turn, &since.before, &since.start)?.inverse();
    let within = since.capture.checkpoint.operation.clone();
    let mut deltas = vec![TurnDelta { turn: number, delta, within, ..TurnDelta::default() }];
    // Nothing else was done as it began, and it stays below a commit of the user's.
    deltas.retain(|_| turn.dirty_commit.is_some() && turn.onto.is_none());
    let present = checkpoints.present(&deltas, &since.capture.checkpoint, &since.capture.index)?;
    let plan = plan(Op::End, &deltas, &present, Edits::Refuse, &mut |_, _| Ok(Merged::Overlap(Cause::Edited)))?;
    let mut update = locked.timeline.update();
    update.state.open = None;
    update.state.held.clear();
    update.state.next = number;
    update.takes_back = true;
    if turn.ended_at.is_some() {
        keep_steps(locked, number, &mut update)?;
    }
    update.state.stand(&plan.head.to, locked.place()?);
    update.remove_turn(number);
    let message = format!("drop {number}, which changed nothing");
    // The notes first: if this is interrupted, the turn is still open and the next command tries again.
    let dirty: Vec<_> = turn.dirty_commit.into_iter().collect();
    Refs::new(locked.repo).remove_notes(&dirty)?;
    let untouched = Timeline { usual_modes: None, operation: 0, ..update.state.clone() } == Timeline::default();
    if !untouched {
        return locked.carry_out(&plan, update, message, Vec::new(), None);
    }
    let record = Record { timeline_from: locked.timeline.commit, timeline_to: None, notes: Vec::new(), message };
    locked.apply()?.apply(&plan, &record, None)?;
    locked.became(Stored::none(locked.repo), &plan);
    Ok(())
}

/// Of how many steps the states are kept as rescues.
const KEPT_STEPS: u64 = 50;

/// Keeps what was there after the steps of a turn that changed nothing in the end: what the user saved meanwhile may be
/// nowhere else.
fn keep_steps(view: &View<'_>, number: u64, update: &mut Update<'_>) -> Result<()> {
    let (checkpoints, began) = (Checkpoints::new(view.repo), view.timeline.checkpoint(number, Side::Before)?);
    let last = view.timeline.last_step(number)?;
    let first = update.state.next_rescue;
    for step in last.saturating_sub(KEPT_STEPS) + 1..=last {
        for side in [Side::Before, Side::After] {
            if let Some(state) = view.timeline.step_checkpoint(number, step, side)? {
                let of_step = checkpoints.file_changes(&began, &state)?;
                let of_step = of_step.into_iter().filter_map(|(path, change)| Some((path, change.to?.id)));
                update.put_rescue(&state, &of_step.collect())?;
            }
        }
    }
    if update.state.next_rescue > first {
        let kept = update.state.next_rescue - 1;
        view.warn(format!(
            "nothing is left of what the turn changed: after its steps it was as in rescue:{first} to rescue:{kept}"
        ));
    }
    Ok(())
}

/// Every commit between the turn's beginning and its end, on HEAD and on each branch that moved. A branch that was made brings none
/// that was there before, or came from another repository.
fn commits_of(repo: &Repo, turn: &Turn, start: &Checkpoint, after: &Checkpoint) -> Result<Vec<TurnCommit>> {
    let objects = Objects::new(repo);
    let old_tips = start.tips();
    let moved = branch_changes(start, after);
    let mut tips: Vec<(Option<ObjectId>, ObjectId)> =
        moved.values().filter_map(|change| Some((change.from, change.to?))).collect();
    if after.head.branch.is_none() {
        tips.extend(after.head.commit.map(|tip| (start.head.commit, tip)));
    }
    let (mut found, mut seen, mut is_brought) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (old, new) in tips {
        if old == Some(new) {
            continue;
        }
        let hidden = old.map_or_else(|| old_tips.clone(), |old| vec![old]);
        let line = objects.commits_between(&hidden, new)?;
        is_brought.extend(line.iter().filter(|_| old.is_some()).copied());
        let is_new = |id: &ObjectId| Some(*id) != turn.dirty_commit && seen.insert(*id);
        found.extend(line.into_iter().rev().filter(is_new));
    }
    let mut known = objects.reachable_from(&old_tips, &found)?;
    let unknown: Vec<ObjectId> = found.iter().filter(|id| !known.contains(*id)).copied().collect();
    let came = Refs::new(repo).came_here(&unknown, Began::of(turn))?;
    found.retain(|id| is_brought.contains(id) || !came.contains(id));
    known.extend(came);
    let kind = |id| if known.contains(id) { CommitKind::Found } else { CommitKind::Agent };
    Ok(found.iter().map(|id| TurnCommit { id: *id, kind: kind(id) }).collect())
}
