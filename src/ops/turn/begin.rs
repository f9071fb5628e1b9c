//! The beginning of a turn: the state before it is kept, and in commit mode the user's uncommitted work is saved in
//! a dirty commit.

use crate::error::Refusal;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::rfc3339_now;
use crate::git::repo::platform::is_past_on_file_clock;
use crate::git::timeline::stored::Side;
use crate::model::bytes::in_quotes;
use crate::model::checkpoint::{Checkpoint, Head};
use crate::model::plan::{AsideMove, Op, Plan};
use crate::model::timeline::Pin;
use crate::model::turn::{Bounds, CommitKind, Made, Mode, Totals, Turn, TurnCommit};
use crate::ops::locked::Locked;
use crate::ops::place;
use crate::ops::turn::commit::{dirty_commit, has_uncommitted};
use crate::ops::turn::pins::pin_by_hand;
use crate::ops::turn::skipped::{announce_skipped, note_torn};
use crate::ops::turn::{Who, advance, check_idle, check_on_branch, notes};
use crate::ops::turn::{branches, calls, leftover};
use anyhow::Result;
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a turn makes no commits that could take along what is not its own.
const UNKNOWN: &str = "what is uncommitted may be yours or the agent's";

/// Begins a turn of an agent's; gives its number.
pub fn begin(locked: &mut Locked<'_>, who: Who, origin: Bounds) -> Result<u64> {
    if who.mode == Mode::Commit {
        let can_commit = check_idle(locked.repo).and_then(|()| check_on_branch(&locked.head));
        let can_commit = can_commit.and_then(|()| locked.repo.check_identity());
        can_commit.map_err(|error| match error.downcast::<Refusal>() {
            Ok(refusal) => refusal.hint("or pass --ghost, which makes no commits").into(),
            Err(error) => error,
        })?;
        // These settings are needed when the agent is done: report a wrong one now.
        locked.config().verify()?;
        locked.config().sign()?;
        locked.config().secrets()?;
    }
    let capture = locked.present()?;
    let obstacle = if who.mode == Mode::Commit { obstacle(locked, &origin, &capture)? } else { None };
    let turn = begun_despite(locked, who, origin, &capture, obstacle);
    let head = capture.checkpoint.head.clone();
    record(locked, turn, &capture, head)
}

/// Begins a turn that cannot make commits, though it should.
pub fn begin_without_commits(locked: &mut Locked<'_>, who: Who, origin: Bounds, why: String) -> Result<u64> {
    let capture = locked.present()?;
    let turn = begun_despite(locked, who, origin, &capture, Some(why));
    let head = capture.checkpoint.head.clone();
    record(locked, turn, &capture, head)
}

/// Begins a turn at the end of the last one: what has changed since then is its. It commits only where all was committed
/// then.
pub fn begin_after(locked: &mut Locked<'_>, who: Who, origin: Bounds, last: &Turn) -> Result<u64> {
    let checkpoint = locked.timeline.checkpoint(last.turn, Side::After)?;
    let index = Index::new(locked.repo).read_index()?;
    let capture = Capture {
        checkpoint,
        index,
        changed: Vec::new(),
        torn: Vec::new(),
        opened: Arc::default(),
        at: None,
        ignored: Vec::new(),
    };
    let obstacle = match who.mode {
        Mode::Ghost => None,
        Mode::Commit if last.mode != Mode::Commit => Some(format!("turn {} made none", last.turn)),
        Mode::Commit => has_uncommitted(locked, &capture)?.then(|| UNKNOWN.to_owned()),
    };
    let turn = begun_despite(locked, who, origin, &capture, obstacle);
    let head = locked.head.clone();
    record(locked, turn, &capture, head)
}

/// Why work that is uncommitted can be saved in no commit of its own: where a command broke in, or between two prompts, an
/// agent's commit could take the user's along; and where what a turn did is uncommitted, the user's the agent's.
fn obstacle(locked: &Locked<'_>, origin: &Bounds, capture: &Capture) -> Result<Option<String>> {
    if let Some(why) = branches::owned_by_others(locked.config(), &capture.checkpoint.head)? {
        return Ok(Some(why));
    }
    if origin.waiting && has_uncommitted(locked, capture)? {
        return Ok(Some(UNKNOWN.to_owned()));
    }
    let left = leftover::find(locked, capture)?;
    Ok(left.map(|left| format!("{} has what turn {} left uncommitted", in_quotes(left.path.as_bstr()), left.turn)))
}

/// Begins a turn that oxundo itself makes, from a present that has been looked at; `wrote` is what its plan writes
/// though it is left out, `moved` what it moves out of the worktree, or back
/// though it is left out.
pub fn begin_made(
    locked: &mut Locked<'_>,
    message: String,
    made: Made,
    wrote: BTreeSet<String>,
    moved: Vec<AsideMove>,
    capture: &Capture,
) -> Result<u64> {
    let who =
        Who { agent: "oxundo".to_owned(), session: None, message: Some(message), prompt: None, mode: Mode::Ghost };
    let turn = Turn { made: Some(made), wrote, moved, began: None, ..begun(locked, who, Bounds::default(), capture) };
    let head = capture.checkpoint.head.clone();
    record(locked, turn, capture, head)
}

fn record(locked: &mut Locked<'_>, mut turn: Turn, capture: &Capture, head: Head) -> Result<u64> {
    let number = turn.turn;
    // Of a turn before it, which is over.
    calls::forget(locked.repo)?;
    turn.torn = note_torn(locked, capture);
    let mut plan = Plan::empty(Op::Begin, head);
    let mut lock = None;
    // Between two prompts nothing is committed: it is not known whose the changes are.
    if turn.mode == Mode::Commit
        && !turn.origin.waiting
        && let Some(dirty) = dirty_commit(locked, capture, &turn)?
    {
        turn.dirty_commit = Some(dirty.commit);
        turn.commits.push(TurnCommit { id: dirty.commit, kind: CommitKind::Dirty });
        advance(&mut plan, dirty.commit);
        plan.index = dirty.index;
        lock = dirty.lock;
    }
    announce_skipped(locked, &turn, &capture.checkpoint)?;
    let mut update = locked.timeline.update();
    update.state.next = number + 1;
    update.state.open = Some(number);
    pin_by_hand(locked, &mut update.state)?;
    place::keep_line(&locked.timeline, &mut update.state, &plan.head.to, locked.place()?)?;
    update.state.stand(&plan.head.to, locked.place()?);
    update.state.usual_modes = Some(capture.checkpoint.modes.usual);
    update.state.held = held(locked.repo, &capture.checkpoint, &turn)?;
    update.put_turn(&turn)?;
    let before = &capture.checkpoint;
    let alone = turn.made.is_some().then(|| before.alone());
    update.put_checkpoint(number, Side::Before, alone.as_ref().unwrap_or(before))?;
    let message = format!("begin {number} ({})", turn.label());
    let notes = notes(locked.repo, &turn);
    locked.carry_out(&plan, update, message, notes, lock)?;
    if turn.made.is_none() {
        // Without it, undo may leave a file that the turn moved.
        let _ = Index::new(locked.repo).keep_begun();
    }
    if let Some(began) = turn.began.filter(|_| !turn.origin.by_hooks) {
        // What was there has an exact time at the latest, and what a program writes that is started now may have that of the clock of
        // files, which is behind: it is to be younger, however quick the program is. No prompt is answered in that time.
        is_past_on_file_clock(began);
    }
    Ok(number)
}

/// The record of a turn that has just begun, and that makes no commits where something keeps it from that.
fn begun_despite(locked: &Locked<'_>, who: Who, origin: Bounds, capture: &Capture, obstacle: Option<String>) -> Turn {
    let mixed = obstacle.is_some();
    let mode = if mixed { Mode::Ghost } else { who.mode };
    Turn { mixed, obstacle, ..begun(locked, Who { mode, ..who }, origin, capture) }
}

/// The record of a turn that has just begun.
fn begun(locked: &Locked<'_>, who: Who, origin: Bounds, capture: &Capture) -> Turn {
    let before = &capture.checkpoint;
    Turn {
        v: 1,
        turn: locked.timeline.state.next,
        agent: who.agent,
        session: who.session,
        message: who.message,
        prompt: who.prompt,
        mode: who.mode,
        mixed: false,
        obstacle: None,
        began_on: before.head.branch.clone(),
        branch: before.head.branch.clone(),
        began_at: rfc3339_now(),
        ended_at: None,
        logs: None,
        exit_code: None,
        interrupted: false,
        dirty_commit: None,
        commits: Vec::new(),
        previous: None,
        depth: 0,
        totals: Totals::default(),
        origin,
        torn: Vec::new(),
        wrote: BTreeSet::new(),
        moved: Vec::new(),
        came: BTreeMap::new(),
        placed: BTreeMap::new(),
        copies: BTreeMap::new(),
        brought: BTreeMap::new(),
        stashed: BTreeMap::new(),
        sole: false,
        began: capture.at,
        ended: None,
        users_end: false,
        led_by_user: false,
        unended: BTreeMap::new(),
        overlaps: BTreeSet::new(),
        within: BTreeSet::new(),
        head_log: Refs::new(locked.repo).head_log_length(),
        passed: Vec::new(),
        onto: None,
        made: None,
        kept: false,
        footing: None,
        others: BTreeMap::new(),
    }
}

/// The commits that must be kept while the turn is open, whatever the agent does to the refs.
fn held(repo: &Repo, before: &Checkpoint, turn: &Turn) -> Result<Vec<Pin>> {
    let tips = before.branches.values().copied();
    let stash = before.stash.iter().map(|entry| entry.id);
    let commits = before.head.commit.into_iter().chain(turn.dirty_commit);
    let named = Objects::new(repo).commits_named(&before.operation)?;
    let held: BTreeSet<Pin> = tips.chain(commits).chain(stash).chain(named).map(Pin).collect();
    Ok(held.into_iter().collect())
}
