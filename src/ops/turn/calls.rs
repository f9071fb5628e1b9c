//! The calls of tools in the open turn: told by hooks, a line each in a file of the scratch directory, since a call must
//! cost little; kept in the turn's record when it ends.

use crate::agents::process::{at_work, caller, processes_of};
use crate::error::{Code, Refusal};
use crate::git::index::Index;
use crate::git::repo::Repo;
use crate::git::repo::clock::{parse_rfc3339, rfc3339_now, since_boot, unix_now};
use crate::git::repo::platform::file_clock;
use crate::git::repo::scratch::{append_line, remove_if_there};
use crate::model::bytes::sanitized;
use crate::model::call::{CallMark, Looked, ToolCall, ToolUse, calls};
use crate::model::checkpoint::{FileState, IndexEntry};
use crate::model::pointers::Moved;
use crate::model::turn::{Participant, Turn};
use crate::ops::turn::running::{left_running, others_of};
use crate::ops::view::View;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::slice::from_ref;

/// The file. One is enough: only one turn is open.
const FILE: &str = "calls";

/// Adds what a hook tells of a call.
pub fn record(repo: &Repo, part: &Participant, tool: &ToolUse, ends: bool) -> Result<()> {
    append(repo, &mark(repo, part, tool, ends))
}

/// What somebody has left of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It is gone.
    Nothing,
    /// This.
    File(FileState),
    /// What is left out of the last state: only a look at all tells whether it still is.
    Beyond,
}

impl Left {
    /// What it is, if it is there.
    pub fn file(self) -> Option<FileState> {
        if let Self::File(file) = self { Some(file) } else { None }
    }
}

/// What a call finds as it begins.
#[derive(Clone, Debug, Default)]
pub struct FoundBefore {
    /// The file that it names.
    pub path: BString,
    /// What somebody has left in it.
    pub file: Option<Left>,
    /// What somebody has staged of it.
    pub staged: Option<Vec<IndexEntry>>,
    /// The state of all, as a tree.
    pub state: Option<ObjectId>,
    /// The refs that are not where the turn found them.
    pub moved: Option<Moved>,
    /// Whether it may have begun before it was told of: all since the last step may be its.
    pub may_have_begun: bool,
}

/// As [`record`], of a call that begins.
pub fn record_begun(repo: &Repo, part: &Participant, tool: &ToolUse, found: FoundBefore) -> Result<()> {
    record_begun_if(repo, part, tool, found, || true).map(|_| ())
}

/// As [`record_begun`], if this holds in the last moment. Tells whether it did.
pub fn record_begun_if(
    repo: &Repo,
    part: &Participant,
    tool: &ToolUse,
    found: FoundBefore,
    holds: impl FnOnce() -> bool,
) -> Result<bool> {
    let FoundBefore { file, staged, state, moved, may_have_begun, .. } = found;
    let mark = mark(repo, part, tool, false);
    let clock = if may_have_begun { Some(0) } else { mark.clock };
    let [gone, beyond] = [Left::Nothing, Left::Beyond].map(|left| file == Some(left));
    let mark = CallMark { clock, found: file.and_then(Left::file), gone, beyond, staged, state, moved, ..mark };
    Ok(holds() && append(repo, &mark).map(|()| true)?)
}

/// As [`in_open_turn`], with how much was told by then, in bytes.
pub fn so_far(repo: &Repo) -> (Vec<ToolCall>, u64) {
    let text = std::fs::read(repo.scratch_path(FILE)).unwrap_or_default();
    (read(&text), text.len() as u64)
}

/// Whether nothing was told since there was this much.
pub fn is_all(repo: &Repo, length: u64) -> bool {
    std::fs::metadata(repo.scratch_path(FILE)).map_or(0, |about| about.len()) == length
}

/// Adds a call of which the beginning is told nowhere, if this is the end of one: nobody knows what came before it, nor, where the
/// session has told of none that is over, here or in a turn before, what goes on after it.
pub fn record_lost(repo: &Repo, part: &Participant, tool: &ToolUse, has_told: impl FnOnce() -> bool) -> Result<()> {
    if tool.id.is_none() || is_told_of(repo, part, tool)? {
        return Ok(());
    }
    append(repo, &CallMark { clock: Some(0), ..mark(repo, part, tool, false) })?;
    let told = in_open_turn(repo);
    let last =
        told.iter().rev().find(|call| call.session == part.session && call.ended_at.is_some() && !call.is_unknown());
    if last.map_or_else(has_told, |last| left_running(repo, from_ref(part), &told, last).is_empty()) {
        return Ok(());
    }
    record(repo, part, tool, true)?;
    record_look(repo, part, tool, Looked::GoesOn)
}

/// Whether the beginning of this call was told: only lines that have its id are read, since a long turn has thousands.
fn is_told_of(repo: &Repo, part: &Participant, tool: &ToolUse) -> Result<bool> {
    let id = serde_json::to_vec(&tool.id).context("write a call's id down")?;
    let is_it = |mark: CallMark| !mark.ends && mark.session == part.session && mark.tool.id == tool.id;
    let text = std::fs::read(repo.scratch_path(FILE)).unwrap_or_default();
    let mut lines = text.lines().filter(|line| line.contains_str(&id));
    Ok(lines.any(|line| serde_json::from_slice(line).is_ok_and(is_it)))
}

/// Adds what was looked at after a call.
pub fn record_look(repo: &Repo, part: &Participant, tool: &ToolUse, looked: Looked) -> Result<()> {
    append(repo, &CallMark { looked: Some(looked), ..mark(repo, part, tool, true) })
}

/// As [`record_look`], where all was, when this much had been told: in one line, since a kill may come after any.
pub fn record_look_at_all(
    repo: &Repo,
    part: &Participant,
    tool: &ToolUse,
    told: &[ToolCall],
    goes_on: bool,
) -> Result<()> {
    let looked = if goes_on { Looked::GoesOn } else { Looked::All };
    let index = Index::new(repo).last_read();
    let seen = told.iter().map(|call| call.told.1.unwrap_or(call.told.0)).max();
    append(repo, &CallMark { looked: Some(looked), seen, index, ..mark(repo, part, tool, true) })
}

fn mark(repo: &Repo, part: &Participant, tool: &ToolUse, ends: bool) -> CallMark {
    let beside = if ends { None } else { processes_of(&part.agent, caller().as_ref(), repo.top()) };
    CallMark {
        session: part.session.clone(),
        tool: tool.clone(),
        at: rfc3339_now(),
        since_boot: Some(since_boot()),
        ends,
        beside: beside.unwrap_or_default(),
        clock: Some(file_clock()),
        found: None,
        gone: false,
        beyond: false,
        staged: None,
        state: None,
        moved: None,
        looked: None,
        seen: None,
        index: None,
    }
}

fn append(repo: &Repo, mark: &CallMark) -> Result<()> {
    append_line(&repo.scratch()?.join(FILE), &serde_json::to_vec(mark).context("write a call down")?)
}

/// Adds calls of the last turn's that are not over, of sessions that go on in this one.
pub fn carry_over(repo: &Repo, calls: Vec<ToolCall>, parts: &[Participant]) -> Result<()> {
    for call in calls.into_iter().filter(|call| call.ended_at.is_none()) {
        if parts.iter().any(|part| part.session == call.session) {
            // What it found was found before this turn.
            append(repo, &CallMark { state: None, moved: None, ..CallMark::of(call) })?;
        }
    }
    Ok(())
}

/// Adds that a session has no call in flight any more: its prompt is over, and others are at work in the turn.
pub fn end_all(repo: &Repo, part: &Participant) -> Result<()> {
    record(repo, part, &ToolUse::default(), true)
}

/// Whether a turn is open in which a call was told of.
pub fn are_told(repo: &Repo) -> bool {
    repo.scratch_path(FILE).exists()
}

/// The calls in the open turn so far. A line that cannot be read is none: it is evidence, and nothing hangs on it.
pub fn in_open_turn(repo: &Repo) -> Vec<ToolCall> {
    read(&std::fs::read(repo.scratch_path(FILE)).unwrap_or_default())
}

/// As [`in_open_turn`], of another worktree, by the name that it has in refs.
pub fn in_open_turn_of(repo: &Repo, worktree: &str) -> Vec<ToolCall> {
    let text = repo.scratches_of(worktree).into_iter().find_map(|scratch| std::fs::read(scratch.join(FILE)).ok());
    read(&text.unwrap_or_default())
}

fn read(text: &[u8]) -> Vec<ToolCall> {
    calls(text.lines().filter_map(|line| serde_json::from_slice::<CallMark>(line).ok()))
}

/// Forgets them: another turn begins, or they are kept in the record.
pub fn forget(repo: &Repo) -> Result<()> {
    remove_if_there(&repo.scratch_path(FILE))
}

/// Refuses `busy` where a session that is alive is in the middle of a call.
pub fn check_none_in_flight(view: &View<'_>) -> Result<()> {
    let Some(turn) = view.open_turn()? else { return Ok(()) };
    for call in in_open_turn(view.repo).iter().filter(|call| call.ended_at.is_none()) {
        let Some(part) = at_work(&turn).find(|part| part.session == call.session) else { continue };
        if is_in_flight(view.repo, call, part) {
            return Err(in_flight(&turn, call, part).into());
        }
    }
    Ok(())
}

fn is_in_flight(repo: &Repo, call: &ToolCall, part: &Participant) -> bool {
    let since_began = parse_rfc3339(&call.began_at).map(|began| unix_now().saturating_sub(began));
    call.is_in_flight(call.age(since_began, since_boot()), others_of(repo, part).as_deref())
}

/// Whether a session is done with its prompt but for something in the background, and carries out no call.
pub fn rests(repo: &Repo, part: &Participant) -> bool {
    let is_its = |call: &ToolCall| call.session == part.session && call.ended_at.is_none();
    part.goes_on
        && part.listed.is_some()
        && !in_open_turn(repo).iter().any(|call| is_its(call) && is_in_flight(repo, call, part))
}

/// The calls of a session that are in flight no more, though nothing has told of their ends: they were denied, most often.
pub fn given_up(repo: &Repo, part: &Participant) -> Vec<ToolCall> {
    let is_its = |call: &ToolCall| call.session == part.session && call.ended_at.is_none() && !call.is_known;
    in_open_turn(repo).into_iter().filter(|call| is_its(call) && !is_in_flight(repo, call, part)).collect()
}

/// Whether a call that nothing has told the end of goes on, seen by a process that the session's agent had not before it.
pub fn outlasts(repo: &Repo, part: &Participant) -> bool {
    let open = in_open_turn(repo).into_iter().filter(|call| call.ended_at.is_none() && call.session == part.session);
    let open: Vec<ToolCall> = open.collect();
    let now = if open.is_empty() { None } else { others_of(repo, part) };
    now.is_some_and(|now| open.iter().any(|call| now.iter().any(|id| !call.beside.contains(id))))
}

fn in_flight(turn: &Turn, call: &ToolCall, part: &Participant) -> Refusal {
    let what = [Some(call.tool.tool.as_str()), call.tool.path.as_deref()].into_iter().flatten();
    let what = sanitized(&what.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "));
    let message = format!("a tool call is in flight in turn {}: {} ({what})", turn.turn, sanitized(&part.agent));
    let plain = |id: &&str| !id.starts_with('-') && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    let session = part.session.as_deref().filter(plain).map(|id| format!(" --session {id}")).unwrap_or_default();
    Refusal::new(Code::Busy, message)
        .hint("wait until it is done, and run this again")
        .hint(format!("if you have stopped the agent: 'oxundo turn abort{session}' ends its turn"))
}
