//! Turns whose ends agents tell of, by their hooks or by `oxundo turn`: what a signal of a
//! session does to the open turn.

use crate::config::Config;
use crate::error::Code;
use crate::error::failure::refusal_of;
use crate::git::apply::Apply;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::liveness;
use crate::model::plan::{Op, Plan};
use crate::model::session::{Origin, Part, Scene, Signal, Step, step};
use crate::model::turn::{Mode, Turn};
use crate::turns::{Ending, Who, begin_as, drop_open, end};
use crate::ui::Ui;
use anyhow::Result;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

/// How much of a transcript's end is searched for the model's name.
const TAIL: u64 = 256 << 10;

/// A signal and whose it is.
#[derive(Clone, Debug)]
pub struct Call {
    /// What it says.
    pub signal: Signal,
    /// Whose it is.
    pub part: Part,
    /// The prompt, or the message given.
    pub message: Option<String>,
    /// Whether it comes from within the `run` of this worktree, if one is at work.
    pub inside: bool,
    /// Whether the agent's process tells that its session is alive; a script comes and goes.
    pub has_process: bool,
    /// How long to wait for another oxundo's moment to pass.
    pub patience: Duration,
}

/// What a signal did.
#[derive(Clone, Debug)]
pub struct Done {
    /// What was done.
    pub step: Step,
    /// The turn that is open now.
    pub open: Option<u64>,
    /// The turn that was closed, where it changed anything.
    pub closed: Option<Turn>,
}

/// Acts on a signal.
///
/// # Errors
///
/// A refusal `busy` when another command holds the worktree for too long; a failure.
pub fn tell(repo: &Repo, ui: &Ui, call: &Call) -> Result<Done> {
    let _lock = repo.lock_beside_run(&format!("{}'s hook", call.part.agent), call.patience)?;
    super::recover(repo, ui)?;
    let stored = Timelines::new(repo).timeline()?;
    let open = match stored.state.open {
        Some(number) => Some(stored.known_turn(number)?),
        None => None,
    };
    let running = repo.is_running()?;
    let others = open.as_ref().is_some_and(|turn| at_work(turn).any(|part| !part.is_session_of(&call.part)));
    let scene = Scene { open: open.as_ref(), running, inside: call.inside, others };
    let step = step(scene, &call.part, call.signal);
    let mut closed = None;
    match (step, open) {
        (Step::Nothing, _) => {}
        (Step::Open, _) => open_turn(repo, ui, call, !(running && call.inside), Config(repo).mode()?)?,
        (Step::Claim, Some(turn)) => claim(repo, ui, call, &stored, turn)?,
        (Step::Renew, Some(turn)) => {
            closed = end(repo, ui, Ending { exit_code: None, interrupted: true })?;
            let by_hooks = !(running && call.inside);
            // What kept the last one from making commits may be over.
            let mode = if by_hooks { Config(repo).mode()? } else { turn.mode };
            open_turn(repo, ui, call, by_hooks, mode)?;
        }
        (Step::Join, Some(mut turn)) => {
            turn.origin.join(started(call));
            turn.message = turn.message.or_else(|| call.message.clone());
            amend(repo, &stored, &turn, "join")?;
        }
        (Step::Leave, Some(mut turn)) => {
            for part in turn.origin.parts.iter_mut().filter(|part| part.is_session_of(&call.part)) {
                finish(part);
            }
            amend(repo, &stored, &turn, "leave")?;
        }
        (Step::Close { interrupted }, Some(turn)) => {
            if turn.origin.part_of(&call.part).is_none() {
                let mut told = turn.clone();
                told.origin.parts = vec![started(call)];
                told.session = told.session.or_else(|| call.part.session.clone());
                amend(repo, &stored, &told, "claim")?;
            }
            closed = end(repo, ui, Ending { exit_code: None, interrupted })?;
            if running && call.inside && !turn.origin.by_hooks {
                wait_for_prompt(repo, ui, &turn, &call.part)?;
            }
        }
        (step, None) => unreachable_step(step)?,
    }
    Ok(Done { step, open: Timelines::new(repo).timeline()?.state.open, closed })
}

fn unreachable_step(step: Step) -> Result<()> {
    anyhow::bail!("{step:?} needs an open turn")
}

/// The sessions that are at work in a turn, as far as can be seen.
pub fn at_work(turn: &Turn) -> impl Iterator<Item = &Part> {
    turn.origin.parts.iter().filter(|part| part.at_work && liveness::is_alive(part))
}

/// Whether a turn that no process holds is still open for good reason.
pub fn is_live(turn: &Turn) -> bool {
    turn.origin.by_hooks && at_work(turn).next().is_some()
}

/// Closes the turn that a process or a session left open, or that is between two prompts.
///
/// # Errors
///
/// When it cannot be ended.
pub fn close(repo: &Repo, ui: &Ui, stored: &Stored, open: u64) -> Result<()> {
    let turn = stored.known_turn(open)?;
    if turn.origin.waiting && repo.is_running()? {
        return drop_open(repo);
    }
    let at_work: Vec<&str> = at_work(&turn).map(|part| part.agent.as_str()).collect();
    let why = match (turn.origin.by_hooks, &at_work[..]) {
        (true, [agent, ..]) => format!("in which {agent} was at work"),
        _ => "which was interrupted".to_owned(),
    };
    end(repo, ui, Ending { exit_code: None, interrupted: true })?;
    ui.warn(&crate::model::bytes::sanitized(&format!("closed turn {open}, {why}")));
    Ok(())
}

/// Begins the turn of a `run`. A session that is at work in the worktree shares it.
///
/// # Errors
///
/// A refusal, with nothing but an open turn closed, or a failure.
pub fn begin_run(repo: &Repo, ui: &Ui, who: &Who) -> Result<u64> {
    let stored = Timelines::new(repo).timeline()?;
    let beside: Vec<Part> = match stored.state.open {
        Some(open) => at_work(&stored.known_turn(open)?).cloned().collect(),
        None => Vec::new(),
    };
    super::settle(repo, ui)?;
    begin_as(repo, ui, who, Origin { shared: !beside.is_empty(), parts: beside, ..Origin::default() })
}

/// Whether this process is an agent's at work in the open turn, which is then part of it.
///
/// # Errors
///
/// When the timeline cannot be read.
pub fn is_within(repo: &Repo) -> Result<bool> {
    let stored = Timelines::new(repo).timeline()?;
    let Some(open) = stored.state.open else { return Ok(false) };
    Ok(at_work(&stored.known_turn(open)?).any(liveness::is_above))
}

/// A `run` is over. A session beside it that is still at work keeps the turn open; else the
/// turn ends with the run.
///
/// # Errors
///
/// When the turn cannot be ended.
pub fn run_is_over(repo: &Repo, ui: &Ui, ending: Ending) -> Result<()> {
    let stored = Timelines::new(repo).timeline()?;
    let Some(open) = stored.state.open else { return Ok(()) };
    let mut turn = stored.known_turn(open)?;
    if turn.origin.by_hooks {
        return Ok(());
    }
    if at_work(&turn).any(|part| !part.inside) {
        turn.origin.by_hooks = true;
        turn.exit_code = ending.exit_code;
        return amend(repo, &stored, &turn, "leave");
    }
    end(repo, ui, ending).map(drop)
}

fn open_turn(repo: &Repo, ui: &Ui, call: &Call, by_hooks: bool, mode: Mode) -> Result<()> {
    let origin = Origin { by_hooks, parts: vec![started(call)], ..Origin::default() };
    let mut who =
        Who { agent: call.part.agent.clone(), session: call.part.session.clone(), message: call.message.clone(), mode };
    match begin_as(repo, ui, &who, origin.clone()) {
        Err(error) if mode == Mode::Commit && refusal_of(&error).code != Code::Corrupt => {
            // The agent goes ahead in any case: better a turn without commits than none.
            ui.warn(&format!("recorded without commits: {}", refusal_of(&error).message));
            who.mode = Mode::Ghost;
            begin_as(repo, ui, &who, origin).map(drop)
        }
        begun => begun.map(drop),
    }
}

/// A `run`'s open turn becomes that of a prompt. What changed since it was opened is the user's.
fn claim(repo: &Repo, ui: &Ui, call: &Call, stored: &Stored, mut turn: Turn) -> Result<()> {
    if super::is_unchanged(repo, stored, &turn)? || (!turn.origin.waiting && drop_open(repo).is_err()) {
        let waiting = std::mem::take(&mut turn.origin.waiting);
        turn.origin.parts = vec![started(call)];
        turn.session = if waiting { call.part.session.clone() } else { turn.session.or(call.part.session.clone()) };
        turn.message = turn.message.or_else(|| call.message.clone());
        return amend(repo, stored, &turn, "claim");
    }
    if turn.origin.waiting {
        drop_open(repo)?;
    }
    let message = turn.message.or_else(|| call.message.clone());
    let part = Part { agent: turn.agent, ..call.part.clone() };
    open_turn(repo, ui, &Call { part, message, ..call.clone() }, false, turn.mode)
}

/// Inside a `run` there is always an open turn: what no hook tells of is not lost.
fn wait_for_prompt(repo: &Repo, ui: &Ui, last: &Turn, who: &Part) -> Result<()> {
    let part = Part { at_work: false, ..who.clone() };
    let origin = Origin { waiting: true, parts: vec![part], ..Origin::default() };
    let who = Who { agent: last.agent.clone(), session: last.session.clone(), message: None, mode: last.mode };
    begin_as(repo, ui, &who, origin).map(drop)
}

fn amend(repo: &Repo, stored: &Stored, turn: &Turn, word: &str) -> Result<()> {
    let mut update = stored.update();
    update.put_turn(turn)?;
    let message = format!("{word} {} ({})", turn.turn, turn.label());
    Apply::new(repo).apply(
        &Plan::empty(Op::Begin, Refs::new(repo).head()?),
        &update.into_record(message, Vec::new())?,
        None,
    )
}

/// The part as it begins.
fn started(call: &Call) -> Part {
    let from = call.part.transcript.as_deref().map(length);
    let process = call.has_process.then(liveness::caller).flatten();
    Part { from, at_work: true, inside: call.inside, process, ..call.part.clone() }
}

/// Ends a part: where its transcript ends, and the model that it tells of.
pub(super) fn finish(part: &mut Part) {
    if !part.at_work {
        return;
    }
    part.at_work = false;
    let Some(transcript) = part.transcript.as_deref() else { return };
    part.to = Some(length(transcript));
    part.model = part.model.take().or_else(|| model_in(transcript));
}

fn length(file: &str) -> u64 {
    std::fs::metadata(file).map_or(0, |about| about.len())
}

/// The last model that a transcript names.
fn model_in(transcript: &str) -> Option<String> {
    let mut file = std::fs::File::open(transcript).ok().filter(|file| file.metadata().is_ok_and(|a| a.is_file()))?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail).ok()?;
    let text = String::from_utf8_lossy(&tail);
    let (_, rest) = text.rsplit_once("\"model\":\"")?;
    let (model, _) = rest.split_once('"')?;
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    (!model.is_empty() && model.len() <= 100 && model.chars().all(plain)).then(|| model.to_owned())
}
