//! Turns whose beginning and end come as signals, from agents' hooks or `oxundo turn`: what a signal does to the open
//! turn. Also the turn of a `run`, which such sessions may share.

use crate::agents::adapters::{Adapter, adapter};
use crate::agents::process::at_work;
use crate::agents::transcript::{finish, length};
use crate::agents::{process, spawn};
use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::git::apply::Apply;
use crate::git::checkpoint::Checkpoints;
use crate::git::repo::Repo;
use crate::git::repo::lock::Lock;
use crate::git::timeline::Timelines;
use crate::model::bytes::sanitized;
use crate::model::call::{ToolCall, ToolUse};
use crate::model::checkpoint::Checkpoint;
use crate::model::plan::{Op, Plan};
use crate::model::session::{Context, Descent, SessionStep, Signal, step};
use crate::model::turn::{Asked, Bounds, Mode, Participant, Turn};
use crate::ops::locked::{Locked, check_no_run};
use crate::ops::side_effects;
use crate::ops::side_effects::Foreseen;
use crate::ops::turn::Who;
use crate::ops::turn::begin::{begin, begin_after, begin_without_commits};
use crate::ops::turn::calls::FoundBefore;
use crate::ops::turn::end::{Ending, as_if_ended, drop_open, end, take_back};
use crate::ops::turn::gaps::{self, is_proven, is_users_end, tells_all};
use crate::ops::turn::known::has_told;
use crate::ops::turn::reach::{Reach, as_begun, is_any_at_large};
use crate::ops::turn::since::Since;
use crate::ops::turn::{calls, missed, steps};
use crate::ops::view::View;
use crate::warning::Warn;
use anyhow::Result;
use std::time::Duration;

/// A signal and whose it is.
#[derive(Clone, Debug)]
pub struct SignalCall {
    /// What it says.
    pub signal: Signal,
    /// Whose it is.
    pub part: Participant,
    /// The message given, or what of the prompt git may be told.
    pub message: Option<String>,
    /// The whole prompt.
    pub prompt: Option<String>,
    /// The call of a tool that it tells of.
    pub tool: Option<ToolUse>,
    /// Whether it comes from within the `run` of this worktree, if one is at work.
    pub inside: bool,
    /// Whether the calling process is the agent's, and shows that its session is alive; a script's is not.
    pub has_process: bool,
    /// How long to wait for the lock.
    pub patience: Duration,
    /// Whether the prompt had begun before: no hook could act on that.
    pub partial: bool,
}

/// What a signal did.
pub struct Handled<'r> {
    /// What was done.
    pub step: SessionStep,
    /// The turn that was closed, where it changed anything.
    pub closed: Option<Turn>,
    /// The repository after that.
    pub view: View<'r>,
}

/// Acts on a signal. Refuses `busy` when another command holds the worktree for too long.
pub fn handle_signal<'r>(repo: &'r Repo, heard: Warn<'r>, call: &SignalCall) -> Result<Handled<'r>> {
    if call.signal == Signal::Called {
        return after_call(repo, heard, call);
    }
    let mut locked = Locked::beside_run(repo, heard, &format!("{}'s hook", call.part.agent), call.patience)?;
    if call.signal != Signal::Call {
        // Evidence is less than the signal.
        let _ = steps::record_ended(&mut locked);
    }
    let open = locked.open_turn()?;
    missed::collect(repo)?;
    let late = missed::begun_late(repo, call.signal, &call.part).filter(|(prompt, _)| {
        let part = open.as_ref().and_then(|turn| turn.origin.part_of(&call.part));
        // It may be at work on the prompt before, of which nothing told the end.
        !part.is_some_and(|part| part.at_work && (prompt.is_none() || part.prompt.is_none() || part.prompt == *prompt))
    });
    let call = &late.map_or_else(|| as_first_end(call, open.as_ref()), |late| as_late_begin(call, late));
    let outlasting = outlasting(repo, call, open.as_ref());
    let call = outlasting.as_ref().unwrap_or(call);
    let running = repo.is_running()?;
    let others = others_at_work(open.as_ref(), &call.part);
    // Only a prompt asks for it.
    let others_rest =
        call.signal == Signal::Begin && !others.is_empty() && others.iter().all(|part| calls::rests(repo, part));
    let known = call.signal == Signal::Call && is_known(&locked, open.as_ref(), &call.part)?;
    let follows = call.signal == Signal::EndAgain && turn_of_first_end(&locked, call)?.is_some();
    let origin = open.as_ref().map(|turn| &turn.origin);
    let unrecorded = missed::unrecorded(repo, &call.part).is_some();
    let others = !others.is_empty();
    let context =
        Context { open: origin, running, inside: call.inside, others, others_rest, known, follows, unrecorded };
    let step = step(context, &call.part, call.signal);
    let closed = match (step, open) {
        (SessionStep::Nothing, _) => None,
        (step, open) => take_step(&mut locked, call, step, open, running)?,
    };
    if let Some(tool) = call.tool.as_ref().filter(|_| step != SessionStep::Nothing) {
        let tool = &as_begun(repo, tool);
        if adapter(&call.part.agent).is_some_and(|adapter| adapter.all_calls) {
            // Evidence is less than the call.
            let _ = steps::record_given_up(&mut locked, &call.part);
        }
        if adapter(&call.part.agent).is_some() {
            steps::record_begun(&mut locked, &call.part, tool)?;
        } else {
            // It is told of by another than the agent's own hook, for which the agent would wait.
            let found = FoundBefore { may_have_begun: true, ..FoundBefore::default() };
            calls::record_begun(repo, &call.part, tool, found)?;
        }
    }
    if outlasting.is_some() {
        // The user need not wait for it.
        calls::end_all(repo, &call.part)?;
    }
    if call.partial {
        missed::note_late(repo, &call.part)?;
    }
    Ok(Handled { step, closed, view: locked.into_view() })
}

/// Keeps the end of a call, without waiting for a lock: an end that gets lost would leave its call in flight. After that
/// its step.
fn after_call<'r>(repo: &'r Repo, heard: Warn<'r>, call: &SignalCall) -> Result<Handled<'r>> {
    let view = View::open(repo, heard)?;
    let open = view.open_turn()?;
    let origin = open.as_ref().map(|turn| &turn.origin);
    let context = Context {
        open: origin,
        running: false,
        inside: call.inside,
        others: false,
        others_rest: false,
        known: false,
        follows: false,
        unrecorded: false,
    };
    let is_proof = open.as_ref().is_some_and(|turn| proves(repo, turn, call));
    let step = if is_proof { SessionStep::Record } else { step(context, &call.part, call.signal) };
    if let (SessionStep::Record, Some(tool)) = (step, &call.tool) {
        if is_proof {
            // What is known since the command is what it found.
            let found = FoundBefore { may_have_begun: true, ..FoundBefore::default() };
            calls::record_begun(repo, &call.part, &as_begun(repo, tool), found)?;
        } else {
            let has_told = || gaps::has_told(repo, &view.timeline, &call.part).unwrap_or(false);
            calls::record_lost(repo, &call.part, tool, has_told)?;
        }
        calls::record(repo, &call.part, tool, true)?;
        if (view.config().steps()? || is_proof) && !tool.only_reads() {
            let who = format!("{}'s hook", call.part.agent);
            let lock = repo.lock_beside_run(&who, call.patience)?;
            let mut locked = Locked::from_view(view, lock)?;
            prove(&mut locked, call)?;
            steps::record(&mut locked, &call.part, tool)?;
            return Ok(Handled { step, closed: None, view: locked.into_view() });
        }
    }
    Ok(Handled { step, closed: None, view })
}

/// Whether the end of a call shows that its session is at work since a command of the user's closed its turn: what the call names
/// and has changed by then is its own, however long it had waited for a permission.
fn proves(repo: &Repo, turn: &Turn, call: &SignalCall) -> bool {
    let names_file = |tool: &ToolUse| matches!(Reach::of(repo, tool), Reach::File(_));
    let is_unproven = turn.origin.by_hooks && turn.origin.waiting;
    is_unproven && turn.origin.part_of(&call.part).is_some() && call.tool.as_ref().is_some_and(names_file)
}

/// Has the session of such a call be at work in its turn, as it is now that nobody else can change it.
fn prove(locked: &mut Locked<'_>, call: &SignalCall) -> Result<()> {
    let open = locked.open_turn()?;
    let Some(mut turn) = open.filter(|turn| proves(locked.repo, turn, call)) else { return Ok(()) };
    turn.origin.waiting = false;
    turn.origin.parts.iter_mut().filter(|part| part.is_session_of(&call.part)).for_each(|part| part.at_work = true);
    amend(locked, &turn, "go on")
}

/// What shows that a prompt is at work begins its turn, where no hook could act on its beginning.
fn as_late_begin(call: &SignalCall, (prompt, message): (Option<String>, Option<String>)) -> SignalCall {
    let part = Participant { prompt, ..call.part.clone() };
    SignalCall { signal: Signal::Begin, part, message, partial: true, ..call.clone() }
}

/// At the end of a prompt a call that has not ended shows that its session goes on, where the agent lists nothing of what is
/// in the background.
fn outlasting(repo: &Repo, call: &SignalCall, open: Option<&Turn>) -> Option<SignalCall> {
    let part = open?.origin.part_of(&call.part).filter(|part| part.at_work)?;
    let is_end = call.signal == Signal::End { interrupted: false } && !part.is_other_prompt_than(&call.part);
    let lists_none = adapter(&call.part.agent).is_some_and(|adapter| adapter.background.is_none());
    let goes_on = is_end && lists_none && calls::outlasts(repo, part);
    goes_on.then(|| SignalCall { signal: Signal::GoOn, ..call.clone() })
}

/// Where a turn is open, another end of a prompt ends it as any other does. It must not be taken for the first one, which
/// is told twice at times.
fn as_first_end(call: &SignalCall, open: Option<&Turn>) -> SignalCall {
    if open.is_none() || call.signal != Signal::EndAgain {
        return call.clone();
    }
    let part = Participant { prompt: None, ..call.part.clone() };
    SignalCall { signal: Signal::End { interrupted: false }, part, ..call.clone() }
}

/// The turn that the first end of a prompt ended, if the state after it is that of the end: nothing else has been
/// recorded or undone since, and no other session had a part in it.
fn turn_of_first_end(view: &View<'_>, call: &SignalCall) -> Result<Option<Turn>> {
    let number = view.timeline.state.next.saturating_sub(1);
    if view.top()? != Some(number) {
        return Ok(None);
    }
    // Undone and redone, or followed by a turn that changed nothing, it is the last one again.
    let last = Timelines::new(view.repo).operations()?.into_iter().find(|last| !last.only_names());
    if !last.is_some_and(|last| last.what.starts_with(&format!("end {number} ("))) {
        return Ok(None);
    }
    let turn = view.timeline.find_turn(number)?;
    let is_its = |turn: &Turn| {
        let [part] = &turn.origin.parts[..] else { return false };
        turn.origin.by_hooks && !turn.interrupted && part.is_session_of(&call.part) && part.is_prompt_of(&call.part)
    };
    Ok(turn.filter(is_its))
}

/// Records what was done since the first end of a prompt as a turn of its own.
fn late(locked: &mut Locked<'_>, call: &SignalCall) -> Result<Option<Turn>> {
    let Some(first) = turn_of_first_end(locked, call)? else { return Ok(None) };
    let who = Who {
        agent: first.agent.clone(),
        session: first.session.clone(),
        message: first.message.clone(),
        prompt: first.prompt.clone(),
        mode: first.wanted_mode(),
    };
    let origin = Bounds { by_hooks: true, parts: vec![started(call)], ..Bounds::default() };
    begin_after(locked, who, origin, &first)?;
    end(locked, Ending::default())
}

/// Whether a session took part in the open turn, or in one before.
fn is_known(view: &View<'_>, open: Option<&Turn>, who: &Participant) -> Result<bool> {
    let is_open = open.is_some_and(|turn| turn.origin.part_of(who).is_some());
    Ok(is_open || has_told(view.repo, &view.timeline, who)?)
}

/// Does what was decided; gives the turn that was closed.
fn take_step(
    locked: &mut Locked<'_>,
    call: &SignalCall,
    step: SessionStep,
    open: Option<Turn>,
    running: bool,
) -> Result<Option<Turn>> {
    let in_run = running && call.inside;
    let Some(mut turn) = open else {
        return match step {
            SessionStep::Late => late(locked, call),
            SessionStep::Open => open_first(locked, call, !in_run).map(|()| None),
            _ => anyhow::bail!("{step:?} needs an open turn"),
        };
    };
    match step {
        SessionStep::Record if call.signal == Signal::Call && turn.origin.prove(&call.part) => {
            amend(locked, &turn, "prove")?;
        }
        SessionStep::Nothing | SessionStep::Record | SessionStep::Late => {}
        SessionStep::Open => open_first(locked, call, !in_run)?,
        SessionStep::Claim => claim(locked, call, turn)?,
        SessionStep::Renew => return renew(locked, call, &turn, running && (call.inside || !turn.origin.by_hooks)),
        SessionStep::Join => {
            if turn.origin.part_of(&call.part).is_some_and(|part| part.at_work) {
                // Nothing has told of the end of its last prompt.
                steps::record_ended_with_prompt(locked, &call.part)?;
            }
            end_background(locked, &mut turn, &call.part)?;
            let told_twice = is_told_twice(call, &turn);
            let mut part = Participant { told_twice, ..started(call) };
            let is_call = call.signal == Signal::Call;
            let found = if is_call { None } else { keep_apart(locked, &turn, &mut part)? };
            turn.origin.join(part);
            turn.asked(call.message.clone(), call.prompt.clone());
            amend_with(locked, &turn, "join", found.as_ref())?;
        }
        SessionStep::GoOn => go_on_after_end(locked, call, turn)?,
        SessionStep::Leave => {
            turn.origin.parts.iter_mut().filter(|part| part.is_session_of(&call.part)).for_each(finish);
            // An end shows that its session was at work.
            let is_proven = turn.origin.by_hooks && matches!(call.signal, Signal::End { .. });
            turn.origin.waiting &= !is_proven;
            steps::record_ended_with_prompt(locked, &call.part)?;
            end_background(locked, &mut turn, &call.part)?;
            amend(locked, &turn, "leave")?;
        }
        SessionStep::Drop => drop_open(locked)?,
        SessionStep::Rest => rest(locked, turn)?,
        SessionStep::Close { interrupted } => {
            let closed = close(locked, call, &turn, interrupted)?;
            if running && !turn.origin.by_hooks {
                wait_for_prompt(locked, &turn, call)?;
            }
            return Ok(closed);
        }
    }
    Ok(None)
}

/// Of a session that joins others, and has not shown yet that it tells of its calls, all that changes from here on outside of calls may be
/// the work. Gives what was there before, where nothing is at work already that nobody tells of: whose that is the others show.
fn keep_apart(locked: &Locked<'_>, turn: &Turn, part: &mut Participant) -> Result<Option<Checkpoint>> {
    let (repo, timeline, told) = (locked.repo, &locked.timeline, calls::in_open_turn(locked.repo));
    let may_tell = adapter(&part.agent).is_some_and(|adapter| adapter.all_calls);
    if !may_tell || !tells_all(turn) || is_proven(repo, timeline, turn, &told, part)? {
        return Ok(None);
    }
    part.listed = Some(timeline.last_step(turn.turn)?);
    part.unproven = true;
    if turn.origin.at_work_after().is_some() {
        return Ok(None);
    }
    let is_any = is_any_at_large(repo, told.iter().filter(|call| call.is_unknown()));
    found_as_it_begins(locked, turn, &told, !is_any)
}

/// What is there as something begins to be at work outside of calls: as it is now, where nothing since the last call is a call's, or what
/// one has found that is in flight, or may be.
fn found_as_it_begins(
    locked: &Locked<'_>,
    turn: &Turn,
    told: &[ToolCall],
    is_known: bool,
) -> Result<Option<Checkpoint>> {
    if is_known {
        return Ok(Some(Since::look_within(locked, turn)?.into_state()));
    }
    let found = told.iter().find(|call| call.is_unknown()).and_then(|call| call.state);
    found.map(|found| Checkpoints::new(locked.repo).read_checkpoint(found)).transpose()
}

/// From here on what changes outside of calls is not the work of what this session had in the background.
fn end_background(locked: &mut Locked<'_>, turn: &mut Turn, who: &Participant) -> Result<()> {
    let is_listed =
        |is_its: bool| turn.origin.parts.iter().any(|part| part.listed.is_some() && part.is_session_of(who) == is_its);
    if is_listed(true) && is_listed(false) {
        steps::record_beside_others(locked, turn, who)?;
    }
    if let Some(from) = turn.origin.end_background(who) {
        let to = steps::record_background(locked, turn, who, from)?;
        turn.origin.background.push((from, to));
    }
    Ok(())
}

/// Whether an agent's own hook tells of what an editor's protocol has told of already: the server that stands between them has
/// started this agent.
fn is_told_twice(call: &SignalCall, turn: &Turn) -> bool {
    let mut others = at_work(turn).filter(|part| !part.is_session_of(&call.part)).peekable();
    let is_servers = |part: &Participant| adapter(&part.agent).is_none() && process::is_above(part);
    adapter(&call.part.agent).is_some() && turn.origin.by_hooks && others.peek().is_some() && others.all(is_servers)
}

/// Opens a turn where none is open.
fn open_first(locked: &mut Locked<'_>, call: &SignalCall, by_hooks: bool) -> Result<()> {
    let mode = locked.config().mode()?;
    // Whichever of its prompts ends next, that is the end of what a call began.
    let goes_on = call.signal == Signal::Call;
    let part = Participant { goes_on, ..call.part.clone() };
    open_turn(locked, &SignalCall { part, ..call.clone() }, by_hooks, mode)
}

/// The other sessions that are at work in a turn.
fn others_at_work<'t>(turn: Option<&'t Turn>, who: &Participant) -> Vec<&'t Participant> {
    turn.into_iter().flat_map(at_work).filter(|part| !part.is_session_of(who)).collect()
}

/// Closes a turn and opens the next, in which others go on that are at work; gives the one that was closed.
fn renew(locked: &mut Locked<'_>, call: &SignalCall, turn: &Turn, in_run: bool) -> Result<Option<Turn>> {
    // Of a session that goes on, an end was told before.
    let interrupted = turn.origin.parts.iter().any(|part| part.at_work && !part.goes_on);
    let closed = end(locked, Ending { exit_code: None, interrupted })?;
    // The reason why the last turn made no commits may be gone.
    let mode = if in_run { turn.wanted_mode() } else { locked.config().mode()? };
    // Here they were asked for nothing.
    let carried = |part: &Participant| Participant { asked: Vec::new(), ..going_on(part) };
    let parts: Vec<Participant> = others_at_work(Some(turn), &call.part).into_iter().map(carried).collect();
    let run_agent = run_agent(turn).filter(|_| in_run);
    let agent = run_agent.clone().filter(|_| call.inside).unwrap_or_else(|| call.part.agent.clone());
    let bounds = Bounds { by_hooks: !in_run, shared: !parts.is_empty(), parts, run_agent, ..Bounds::default() };
    open_turn_of(locked, agent, call, bounds, mode)?;
    Ok(closed)
}

/// Ends a turn in the name of the session that says so.
fn close(locked: &mut Locked<'_>, call: &SignalCall, turn: &Turn, interrupted: bool) -> Result<Option<Turn>> {
    if turn.origin.part_of(&call.part).is_none() {
        let mut told = turn.clone();
        told.origin.parts = vec![started(call)];
        told.session = told.session.or_else(|| call.part.session.clone());
        amend(locked, &told, "claim")?;
    }
    end(locked, Ending { exit_code: None, interrupted })
}

/// Takes the lock, and closes a turn that a process or a session left open.
pub fn settled<'r>(repo: &'r Repo, heard: Warn<'r>, who: &str) -> Result<Locked<'r>> {
    let mut locked = Locked::take(repo, heard, who)?;
    close_open(&mut locked)?;
    Ok(locked)
}

/// Takes the lock, and closes a turn that was left open only if nobody is at work in it.
pub fn beside_turn<'r>(repo: &'r Repo, heard: Warn<'r>, who: &str) -> Result<Locked<'r>> {
    let mut locked = Locked::beside_run(repo, heard, who, repo.patience())?;
    close_left(&mut locked)?;
    Ok(locked)
}

/// Plans as if the open turn were closed, and leaves it open.
pub fn look_ahead<'r, T>(
    repo: &'r Repo,
    heard: Warn<'r>,
    command: Command,
    plan: impl Fn(&View<'r>) -> Result<T>,
) -> Result<T> {
    let (mut locked, within) = take_for(repo, heard, command)?;
    if within.is_none() {
        close_left(&mut locked)?;
    }
    repo.look();
    let mut view =
        if within.is_some() { (*locked).clone() } else { as_if_ended(&locked, command.op.is_about_commits())? };
    view.is_preview = true;
    plan(&view)
}

/// Plans, as if the open turn were closed, and asks the user's own command, where one is to be asked. It may do anything but
/// change what it was asked about.
fn agreed<'r, T: Foreseen>(
    locked: &mut Locked<'r>,
    op: Op,
    is_open: bool,
    plan: impl Fn(&View<'r>) -> Result<T>,
) -> Result<T> {
    let asked = side_effects::is_asked(locked, op);
    let look = |locked: &Locked<'r>| {
        let ahead = if is_open { Some(as_if_ended(locked, op.is_about_commits())?) } else { None };
        let view: &View<'r> = ahead.as_ref().unwrap_or(locked);
        let planned = plan(view)?;
        let digest = if asked { planned.digest(view)? } else { String::new() };
        Ok::<_, anyhow::Error>((planned, digest))
    };
    let (planned, digest) = look(locked)?;
    let Some(told) = planned.foreseen().filter(|_| asked) else { return Ok(planned) };
    side_effects::ask(locked, op, &told)?;
    locked.look_again()?;
    let (again, now) = look(locked)?;
    if now == digest { Ok(again) } else { Err(side_effects::changed_by_asking(op).into()) }
}

/// Closes the open turn, plans and carries out; a plan that is refused leaves the turn open. What an agent does that is
/// still at work in it is its next turn, from the state that this leaves. A command of that agent's own ends nothing: it
/// is carried out within the open turn, which is then given.
pub fn settled_for<'r, T: Foreseen, D>(
    repo: &'r Repo,
    heard: Warn<'r>,
    command: Command,
    plan: impl Fn(&View<'r>) -> Result<T>,
    carry_out: impl FnOnce(&mut Locked<'r>, T, Option<Turn>) -> Result<D>,
) -> Result<D> {
    let (mut locked, within) = take_for(repo, heard, command)?;
    if within.is_none() {
        close_left(&mut locked)?;
    }
    let open = if within.is_none() { locked.open_turn()? } else { None };
    repo.look();
    let looked_at = agreed(&mut locked, command.op, open.is_some(), &plan)?;
    let is_kept = open.is_none() && repo.keep().is_ok();
    repo.act();
    if open.is_some() {
        close_open(&mut locked)?;
    }
    // A large file may change between the two.
    let planned = if is_kept { Ok(looked_at) } else { plan(&locked) };
    let is_refused = planned.is_err();
    let done = planned.and_then(|planned| carry_out(&mut locked, planned, within));
    // Refused after all, for what closing it has made: it goes on.
    reopen(&mut locked, open, |closed| !is_refused || closed.origin.waiting);
    done
}

/// A command that changes the worktree or its timeline.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// What it does.
    pub op: Op,
    /// Whose word it is.
    pub by: By,
}

/// Whose word a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// It comes from the command line, where an agent may have typed it.
    Typed,
    /// The user's, by a program that has opened the repository itself.
    FrontEnd,
    /// The user's, by an editor that has started `oxundo acp`; or an agent's, that has started it like an editor.
    Editor,
    /// An agent's, wherever it comes from.
    Agent,
}

/// Takes the lock for a command. Gives the turn of the agent whose own command it is: it may restore within it, and no
/// more.
fn take_for<'r>(repo: &'r Repo, heard: Warn<'r>, command: Command) -> Result<(Locked<'r>, Option<Turn>)> {
    let lock = repo.lock_beside_run(command.op.word(), repo.patience())?;
    let in_run = check_run(repo, command.by)?;
    let locked = Locked::over(repo, heard, lock)?;
    match turn_of(&locked, command.by, in_run)? {
        None => check_not_busy(&locked)?,
        Some(turn) if command.op == Op::Restore => return Ok((locked, Some(turn))),
        Some(turn) => return Err(not_the_agents(command.op.word(), &turn).into()),
    }
    Ok((locked, None))
}

/// Refuses what a command of its own would be refused for before it is planned, and takes no lock.
pub fn check_command(view: &View<'_>, command: Command) -> Result<()> {
    let in_run = check_run(view.repo, command.by)?;
    match turn_of(view, command.by, in_run)? {
        None => check_not_busy(view),
        Some(turn) => Err(not_the_agents(command.op.word(), &turn).into()),
    }
}

/// Whether a command comes from inside of a `run`; refuses it beside one.
fn check_run(repo: &Repo, by: By) -> Result<bool> {
    let in_run = spawn::is_inside(repo) && repo.is_running()?;
    if matches!(by, By::FrontEnd | By::Editor) || !in_run {
        check_no_run(repo)?;
    }
    Ok(in_run)
}

/// The turn of the agent whose word it is.
fn turn_of(view: &View<'_>, by: By, in_run: bool) -> Result<Option<Turn>> {
    match by {
        By::Typed => turn_of_caller(view, in_run),
        By::Agent => turn_of_agent(view, in_run),
        By::FrontEnd => Ok(None),
        By::Editor => turn_of_server(view),
    }
}

/// The open turn, if the agent whose server this is has a part in it. That of others is not an agent's to close.
fn turn_of_agent(view: &View<'_>, in_run: bool) -> Result<Option<Turn>> {
    let Some(turn) = view.open_turn()? else { return Ok(None) };
    if in_run || at_work(&turn).any(process::is_above) {
        return Ok(Some(turn));
    }
    let Some(part) = at_work(&turn).next() else { return Ok(None) };
    let agent = sanitized(&part.agent);
    Err(Refusal::new(Code::Busy, format!("another session is at work in turn {}: {agent}", turn.turn))
        .hint("wait until it is done, and ask again")
        .into())
}

/// Refuses `busy` where an agent is in the middle of something: a `run` that no hook bounds, or a call of a tool.
pub fn check_not_busy(view: &View<'_>) -> Result<()> {
    check_no_run(view.repo)?;
    calls::check_none_in_flight(view)
}

/// The open turn, if this command is the word of an agent that is at work in it.
fn turn_of_caller(view: &View<'_>, in_run: bool) -> Result<Option<Turn>> {
    let Some(turn) = view.open_turn()? else { return Ok(None) };
    let of_run = in_run.then(process::descent_of_run);
    let is_agents = at_work(&turn).filter_map(process::descent).chain(of_run).any(Descent::is_agents_word);
    Ok(is_agents.then_some(turn))
}

/// The open turn, if an agent that is at work in it has started what stands between the editor and its agent.
fn turn_of_server(view: &View<'_>) -> Result<Option<Turn>> {
    let Some(turn) = view.open_turn()? else { return Ok(None) };
    let is_agents = at_work(&turn).any(process::is_above_server);
    Ok(is_agents.then_some(turn))
}

fn not_the_agents(what: &str, turn: &Turn) -> Refusal {
    let agent = sanitized(&turn.agent);
    Refusal::new(Code::Agent, format!("'{what}' is not for an agent to say: {agent} is at work in turn {}", turn.turn))
        .hint(format!("type 'oxundo {what}' on a terminal of your own"))
        .hint("an agent can type 'oxundo checkpoint' within its turn, and restore files of a state")
}

fn reopen(locked: &mut Locked<'_>, closed: Option<Turn>, waits: impl FnOnce(&Turn) -> bool) {
    let Some(closed) = closed else { return };
    if let Err(error) = go_on(locked, &closed, waits(&closed)) {
        locked.warn(format!("what the agent does from here on is in no turn: {}", to_refusal(&error).message));
    }
}

/// Opens the next turn of those who are still at work in one that was closed. It waits for a sign of theirs.
fn go_on(locked: &mut Locked<'_>, closed: &Turn, waiting: bool) -> Result<()> {
    let in_run = !closed.origin.by_hooks && locked.repo.is_running()?;
    let parts: Vec<&Participant> =
        if in_run { closed.origin.parts.iter().collect() } else { at_work(closed).collect() };
    if parts.is_empty() && !in_run {
        return Ok(());
    }
    let parts: Vec<Participant> = parts.into_iter().map(going_on).collect();
    let Turn { agent, session, message, prompt, .. } = closed.clone();
    let mut who = Who { agent, session, message, prompt, mode: closed.wanted_mode() };
    // It is called after one of those who are still at work.
    if let Some(first) = parts.first().filter(|_| !in_run && !parts.iter().any(|part| part.session == closed.session)) {
        let Asked { message, prompt, .. } = first.asked.last().cloned().unwrap_or_default();
        who = Who { agent: first.agent.clone(), session: first.session.clone(), message, prompt, ..who };
    }
    let shared = closed.origin.shared && (in_run || parts.len() > 1);
    let Bounds { run_agent, .. } = closed.origin.clone();
    let origin = Bounds { waiting, shared, parts, by_hooks: !in_run, run_agent, ..Bounds::default() };
    begin(locked, who, origin).map(drop)
}

/// Reads the timeline and HEAD; first recovers, and closes a turn that was left open, if nobody else is at work in
/// the worktree.
pub fn look<'r>(repo: &'r Repo, heard: Warn<'r>, who: &str) -> Result<View<'r>> {
    let view = View::open(repo, heard)?;
    if view.timeline.state.open.is_none() && !Apply::is_interrupted(repo)? {
        return Ok(view);
    }
    let Some(lock) = repo.try_lock(who)? else { return Ok(view) };
    let mut locked = match Locked::over(repo, heard, lock) {
        Err(error) if may_wait(&error) && Apply::is_interrupted(repo)? => {
            let why = to_refusal(&error).message;
            view.warn(format!("an interrupted operation is still to be finished or rolled back: {why}"));
            repo.look();
            return Ok(view);
        }
        locked => locked?,
    };
    close_left(&mut locked)?;
    repo.look();
    Ok(locked.into_view())
}

/// Whether a look goes on though a recovery failed: for what may pass, or is to be seen.
fn may_wait(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_none_or(|refusal| refusal.code != Code::Corrupt)
}

/// Closes a turn that was left open and in which nobody is at work.
fn close_left(locked: &mut Locked<'_>) -> Result<()> {
    match locked.open_turn()? {
        Some(turn) if !is_live(&turn) && !locked.repo.is_running()? => close_open(locked),
        _ => Ok(()),
    }
}

/// Whether a turn is open because a session, which no lock shows, is at work: also one beside or within a `run` that was
/// killed, if its process is seen to live.
fn is_live(turn: &Turn) -> bool {
    at_work(turn).any(|part| turn.origin.by_hooks || !part.inside || part.process.is_some())
}

/// Closes the turn that a process or a session left open, or that is between two prompts.
fn close_open(locked: &mut Locked<'_>) -> Result<()> {
    let Some(turn) = locked.open_turn()? else { return Ok(()) };
    // Nothing shows that an agent made what changed since.
    if turn.origin.waiting && (turn.origin.by_hooks || locked.repo.is_running()? || waits_to_the_end(&turn)) {
        return drop_open(locked);
    }
    let at_work: Vec<&str> = at_work(&turn).map(|part| part.agent.as_str()).collect();
    let why = match (turn.origin.by_hooks, &at_work[..]) {
        (true, [agent, ..]) => format!("in which {agent} was at work"),
        _ => "which was interrupted".to_owned(),
    };
    // What became of oxundo's own, its recovery has told.
    let is_told = turn.made.is_some();
    // Of those that go on, an end was told before.
    let interrupted = !turn.origin.by_hooks || turn.origin.parts.iter().any(|part| part.at_work && !part.goes_on);
    if end(locked, Ending { exit_code: None, interrupted })?.is_some() && !is_told {
        locked.warn(sanitized(&format!("closed turn {}, {why}", turn.turn)));
    }
    Ok(())
}

/// Whether the turn is that of a `run` whose agent would have told that it is gone, or at work again. That of another is at work
/// for all that anybody knows.
fn waits_to_the_end(turn: &Turn) -> bool {
    let tells = |part: &Participant| adapter(&part.agent).is_some_and(Adapter::tells_it_is_gone);
    turn.origin.waiting && turn.origin.run_tells() && turn.origin.parts.iter().all(tells)
}

/// Begins the turn of a `run` in a repository that has been looked at; gives the lock that is held while its agent is
/// at work. A session that is at work in the worktree shares the turn.
pub fn begin_run(view: View<'_>, who: Who) -> Result<Lock> {
    let name = format!("run {}", who.agent);
    let lock = view.repo.lock_beside_run(&name, view.repo.patience())?;
    let run = view.repo.lock_for_run(&name)?;
    let mut locked = Locked::from_view(view, lock)?;
    let beside: Vec<Participant> = match locked.open_turn()? {
        Some(open) if !open.origin.waiting => {
            let beside = |part: &Participant| Participant { inside: false, asked: last_asked(part), ..part.clone() };
            at_work(&open).map(beside).collect()
        }
        _ => Vec::new(),
    };
    let calls = calls::in_open_turn(locked.repo);
    close_open(&mut locked)?;
    let origin = Bounds { shared: !beside.is_empty(), parts: beside, ..Bounds::default() };
    begin(&mut locked, who, origin.clone())?;
    calls::carry_over(locked.repo, calls, &origin.parts)?;
    Ok(run)
}

/// Whether this process is an agent's at work in the open turn, which is then part of it.
pub fn is_within(view: &View<'_>) -> Result<bool> {
    Ok(view.open_turn()?.is_some_and(|turn| at_work(&turn).any(process::is_above)))
}

/// What became of a `run`'s turn.
pub enum RunEnd {
    /// It is recorded.
    Recorded(Box<Turn>),
    /// It changed nothing, and went without a trace.
    Nothing,
    /// A session beside it is still at work in it.
    GoesOn(u64),
    /// The agent's hooks made turns of its prompts.
    ByHooks,
}

/// A `run` is over. A session beside it that is still at work keeps the turn open; else the turn ends with the run.
pub fn end_run(locked: &mut Locked<'_>, ending: Ending) -> Result<RunEnd> {
    let Some(mut turn) = locked.open_turn()? else { return Ok(RunEnd::ByHooks) };
    if turn.origin.by_hooks {
        return Ok(RunEnd::ByHooks);
    }
    if at_work(&turn).any(|part| !part.inside) {
        for part in turn.origin.parts.iter_mut().filter(|part| part.inside && part.at_work) {
            finish(part);
            calls::end_all(locked.repo, part)?;
        }
        turn.origin.by_hooks = true;
        turn.exit_code = ending.exit_code;
        amend(locked, &turn, "leave")?;
        return Ok(RunEnd::GoesOn(turn.turn));
    }
    if waits_to_the_end(&turn) {
        return drop_open(locked).map(|()| RunEnd::ByHooks);
    }
    let ended = end(locked, ending)?;
    if let Some(turn) = &ended {
        tell_of_obstacle(locked, turn);
    }
    Ok(ended.map_or(RunEnd::Nothing, |turn| RunEnd::Recorded(Box::new(turn))))
}

/// Says why a turn was begun without commits though it should make some.
fn tell_of_obstacle(locked: &Locked<'_>, turn: &Turn) {
    if let Some(why) = turn.obstacle.as_ref().filter(|_| turn.mixed) {
        locked.warn(format!("recorded without commits: {why}"));
    }
}

fn open_turn(locked: &mut Locked<'_>, call: &SignalCall, by_hooks: bool, mode: Mode) -> Result<()> {
    open_turn_of(locked, call.part.agent.clone(), call, Bounds { by_hooks, ..Bounds::default() }, mode)
}

/// Opens a turn of this agent: a `run` calls it by the command that it has started, which may be another name than the hook's.
fn open_turn_of(locked: &mut Locked<'_>, agent: String, call: &SignalCall, bounds: Bounds, mode: Mode) -> Result<()> {
    let mut parts = vec![started(call)];
    parts.extend(bounds.parts.iter().cloned());
    let origin = Bounds { partial: call.partial, parts, ..bounds };
    let session = call.part.session.clone();
    let who = Who { agent, session, message: call.message.clone(), prompt: call.prompt.clone(), mode };
    match begin(locked, who.clone(), origin.clone()) {
        Err(error) if mode == Mode::Commit && to_refusal(&error).code != Code::Corrupt => {
            // The agent starts in any case: a turn without commits is better than none.
            let why = to_refusal(&error).message;
            locked.warn(format!("recorded without commits: {why}"));
            begin_without_commits(locked, who, origin, why).map(drop)
        }
        // An agent has no use for it: 'oxundo status' tells the user.
        begun if call.has_process => begun.map(drop),
        begun => {
            begun?;
            locked.open_turn()?.iter().for_each(|turn| tell_of_obstacle(locked, turn));
            Ok(())
        }
    }
}

/// Has a session go on after an end of its prompt. What the user has saved by then, outside of its calls, is theirs.
fn go_on_after_end(locked: &mut Locked<'_>, call: &SignalCall, mut turn: Turn) -> Result<()> {
    let told = calls::in_open_turn(locked.repo);
    // As it was until now: what goes on from here on may change anything.
    let is_first = turn.origin.at_work_after().is_none();
    let is_known = is_first && is_users_end(locked.repo, &locked.timeline, &turn, &told)?;
    turn.origin.go_on(started(call), locked.timeline.last_step(turn.turn)?);
    turn.session = turn.session.or_else(|| call.part.session.clone());
    let is_begun = is_first && turn.origin.at_work_after().is_some();
    let found = if is_begun { found_as_it_begins(locked, &turn, &told, is_known)? } else { None };
    amend_with(locked, &turn, "go on", found.as_ref())
}

/// Makes a `run`'s open turn that of a prompt. What changed before the prompt is the user's.
fn claim(locked: &mut Locked<'_>, call: &SignalCall, mut turn: Turn) -> Result<()> {
    let since = Since::look(locked, &turn)?;
    if turn.origin.waiting {
        take_back(locked, &turn, &since)?;
        if turn.origin.by_hooks {
            let mode = locked.config().mode()?;
            return open_turn(locked, &of_the_same_prompt(call, &turn), true, mode);
        }
        let mode = turn.wanted_mode();
        let run_agent = turn.origin.run_agent;
        let own = run_agent.clone().unwrap_or(turn.agent);
        let agent = if call.inside { own } else { call.part.agent.clone() };
        return open_turn_of(locked, agent, call, Bounds { run_agent, ..Bounds::default() }, mode);
    }
    let is_unchanged = since.changed(locked, &turn)?.is_empty();
    if is_unchanged || take_back(locked, &turn, &since).is_err() {
        turn.origin.parts = vec![started(call)];
        turn.session = turn.session.or(call.part.session.clone());
        turn.asked(call.message.clone(), call.prompt.clone());
        return amend(locked, &turn, "claim");
    }
    turn.asked(call.message.clone(), call.prompt.clone());
    let mode = turn.wanted_mode();
    let Turn { agent, message, prompt, .. } = turn;
    open_turn_of(locked, agent, &SignalCall { message, prompt, ..call.clone() }, Bounds::default(), mode)
}

/// From here on the turn is that of a `run` which tells of nothing: its agent is gone.
fn rest(locked: &mut Locked<'_>, mut turn: Turn) -> Result<()> {
    let since = Since::look(locked, &turn)?;
    if since.changed(locked, &turn)?.is_empty() {
        turn.origin = Bounds::default();
        return amend(locked, &turn, "rest");
    }
    take_back(locked, &turn, &since)?;
    let mode = turn.wanted_mode();
    let who = Who { agent: turn.agent, session: None, message: None, prompt: None, mode };
    begin(locked, who, Bounds::default()).map(drop)
}

/// A call of a tool comes within a prompt that was told of before.
fn of_the_same_prompt(call: &SignalCall, turn: &Turn) -> SignalCall {
    let mine = turn.origin.part_of(&call.part).filter(|_| call.signal == Signal::Call);
    let Some(mine) = mine.cloned() else { return call.clone() };
    let prompt = call.part.prompt.clone().or(mine.prompt.clone());
    let part = Participant { prompt, ..mine };
    SignalCall { part, message: turn.message.clone(), prompt: turn.prompt.clone(), ..call.clone() }
}

/// Opens a turn until the next prompt: inside a `run` one is always open, for changes that no hook announces.
fn wait_for_prompt(locked: &mut Locked<'_>, last: &Turn, call: &SignalCall) -> Result<()> {
    let of_run = if call.inside { Some(&call.part) } else { last.origin.parts.iter().find(|part| part.inside) };
    let session = if call.inside { last.session.clone() } else { of_run.and_then(|part| part.session.clone()) };
    let known = |part: &Participant| {
        let Participant { agent, session, prompt, model, transcript, .. } = part.clone();
        Participant { agent, session, prompt, model, transcript, ..Participant::default() }
    };
    let run_agent = run_agent(last);
    let agent = run_agent.clone().unwrap_or_else(|| last.agent.clone());
    let parts = of_run.map(known).into_iter().collect();
    let origin = Bounds { waiting: true, run_agent, parts, ..Bounds::default() };
    let who = Who { agent, session, message: None, prompt: None, mode: last.wanted_mode() };
    begin(locked, who, origin).map(drop)
}

/// What a `run` calls its own agent, if that has told of prompts.
fn run_agent(turn: &Turn) -> Option<String> {
    let has_told = turn.origin.run_tells();
    turn.origin.run_agent.clone().or_else(|| has_told.then(|| turn.agent.clone()))
}

fn amend(locked: &mut Locked<'_>, turn: &Turn, word: &str) -> Result<()> {
    amend_with(locked, turn, word, None)
}

/// The same, with the state up to which what changes outside of calls is the user's.
fn amend_with(locked: &mut Locked<'_>, turn: &Turn, word: &str, found: Option<&Checkpoint>) -> Result<()> {
    let mut update = locked.timeline.update();
    update.put_turn(turn)?;
    if let Some(found) = found {
        update.put_found(turn.turn, found)?;
    }
    let message = format!("{word} {} ({})", turn.turn, turn.label());
    let plan = Plan::empty(Op::Begin, locked.head.clone());
    locked.carry_out(&plan, update, message, Vec::new(), None)
}

/// The part of one that goes on in the next turn. What it has in the background is at work from the beginning of that.
fn going_on(part: &Participant) -> Participant {
    Participant {
        from: part.transcript.as_deref().map(length),
        to: None,
        listed: part.listed.map(|_| 0),
        asked: last_asked(part),
        ..part.clone()
    }
}

/// What a session is at work on.
fn last_asked(part: &Participant) -> Vec<Asked> {
    part.asked.last().cloned().into_iter().collect()
}

/// The part as it begins.
fn started(call: &SignalCall) -> Participant {
    let from = call.part.transcript.as_deref().map(length);
    let process = call.has_process.then(process::caller).flatten();
    let goes_on = call.part.goes_on || call.signal == Signal::GoOn;
    let words = Asked { id: call.part.prompt.clone(), message: call.message.clone(), prompt: call.prompt.clone() };
    let is_asked = words.message.is_some() || words.prompt.is_some();
    let asked = if is_asked { vec![words] } else { Vec::new() };
    Participant { from, at_work: true, inside: call.inside, process, goes_on, asked, ..call.part.clone() }
}
