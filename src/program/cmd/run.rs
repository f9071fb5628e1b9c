//! `oxundo run`: one turn around a command.

use crate::agents::spawn;
use crate::agents::spawn::Missing;
use crate::config::Config;
use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::repo::lock::Lock;
use crate::model::bytes::{instead, quoted_line, sanitized, shell_word};
use crate::model::turn::Mode;
use crate::ops::list::delta_of;
use crate::ops::locked::Locked;
use crate::ops::outcome::versioned;
use crate::ops::turn::Who;
use crate::ops::turn::end::Ending;
use crate::ops::turn::session::{RunEnd, begin_run, end_run, is_within};
use crate::ops::turn::watch::Watching;
use crate::ops::view::View;
use crate::program::args::RunArgs;
use crate::program::cmd::gc::start_if_due;
use crate::program::cmd::log::line_of;
use crate::program::text::outcome::ended;
use crate::program::ui::Ui;
use crate::program::usage;
use crate::warning::Warn;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

/// oxundo itself failed or refused, as env(1) has it.
pub const FAILED: u8 = 125;

/// How long the end of a turn waits for a hook of its agent that is still at it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the agent as a turn; gives the exit code. What goes wrong is reported here, since
/// `run` has exit codes of its own.
pub fn run(directory: &Path, ui: &mut Ui, args: &RunArgs) -> u8 {
    let name = args.command[0].to_string_lossy();
    let program = match spawn::find(&args.command[0]) {
        Ok(program) => program,
        Err(missing) => {
            let (what, code) = missing.told();
            super::apply_global_settings(ui);
            let refusal = Refusal::new(Code::NotFound, format!("'{name}': {what}"));
            let words = usage::in_words(&args.command[0]).filter(|_| args.command.len() == 1);
            let refusal = match words {
                Some(line) => refusal.hint(format!("give the command in words of its own: {line}")),
                None if matches!(missing, Missing::Directory { .. }) => {
                    let there = usage::line([&b"-C"[..], args.command[0].as_bytes(), b"run", b"--", b"COMMAND"]);
                    refusal.hint(format!("to run a command there: {}", quoted_line(&there)))
                }
                None => refusal.hint("check the command's name and PATH"),
            };
            ui.refuse(&refusal);
            report(ui, args, || Ok(json!({"error": refusal})));
            return code;
        }
    };
    if let Some(refusal) = args.report.as_deref().and_then(no_place_for) {
        super::apply_global_settings(ui);
        ui.refuse(&refusal);
        return FAILED;
    }
    match turn(directory, ui, args, &program) {
        Ok(code) => code,
        Err(error) => {
            let refusal = to_refusal(&error);
            ui.refuse(&refusal);
            report(ui, args, || Ok(json!({"error": refusal})));
            FAILED
        }
    }
}

/// Refuses to start the agent: what was given for it, or for where it is to be, is wrong. A report has it too, if its place does
/// not hang on that of the agent.
pub fn refused(ui: &Ui, args: &RunArgs, refusal: &Refusal) -> u8 {
    ui.refuse(refusal);
    if args.report.as_ref().is_some_and(|file| file.is_absolute()) {
        report(ui, args, || Ok(json!({"error": refusal})));
    }
    FAILED
}

/// The refusal of a report that could not be written after the agent has run.
fn no_place_for(report: &Path) -> Option<Refusal> {
    if report.is_dir() {
        let message = format!("the report cannot be written to '{}', which is a directory", report.display());
        let within = report.join("report.json");
        let [given, within] = [report, &within].map(|path| path.as_os_str().as_bytes());
        return Some(Refusal::new(Code::Usage, message).hint(instead(given, within)));
    }
    let directory =
        report.parent().filter(|parent| !parent.as_os_str().is_empty()).filter(|parent| !parent.is_dir())?;
    let make = quoted_line(&format!("mkdir -p {}", shell_word(directory.as_os_str().as_bytes())));
    let message = format!("there is no directory '{}' for the report", directory.display());
    Some(Refusal::new(Code::NotFound, message).hint(format!("run {make}, then the same command again")))
}

/// Writes the report that was asked for.
fn report(ui: &Ui, args: &RunArgs, told: impl FnOnce() -> Result<Value>) {
    let Some(file) = &args.report else { return };
    let written = told().and_then(|told| Ok(std::fs::write(file, format!("{}\n", versioned(told)))?));
    if let Err(error) = written {
        ui.warn(&format!("the report cannot be written to '{}': {error:#}", file.display()));
    }
}

/// What became of a turn: none where there is none.
fn reported(became: &str, code: u8, turn: Option<&Value>) -> Value {
    json!({"op": "run", "became": became, "exit_code": code, "turn": turn})
}

fn turn(directory: &Path, ui: &mut Ui, args: &RunArgs, program: &Path) -> Result<u8> {
    let opened = super::open_to_record(directory).inspect_err(|_| super::apply_global_settings(ui))?;
    let Some(mut repo) = opened else {
        super::tell_of_no_record(ui);
        let code = spawn::run(program, &args.command, None).map(spawn::exit_code)?;
        report(ui, args, || Ok(reported("not_recorded", code, None)));
        return Ok(code);
    };
    super::apply_user_settings(&mut repo, ui);
    let (repo, ui) = (&repo, &*ui);
    let heard = ui.heard();
    let agent = args.agent.clone().unwrap_or_else(|| spawn::name_of(&args.command[0]));
    let watches = args.steps || Config(repo).watches()?;
    let Some(run) = begin(repo, ui, &heard, args, agent)? else {
        // Within a turn of this worktree: what this agent does is part of it.
        let code = spawn::exit_code(spawn::run(program, &args.command, None)?);
        report(ui, args, || Ok(reported("within", code, None)));
        return Ok(code);
    };
    let held = repo.hold();
    let watching = if watches { watch(repo, ui, directory) } else { None };
    let ended = spawn::run(program, &args.command, Some(repo));
    if let Some(problem) = watching.and_then(Watching::end) {
        ui.warn(&problem);
    }
    let ended = match ended {
        Ok(status) => status,
        Err(error) => {
            // It never ran: the turn changed nothing and goes without a trace.
            end(repo, &heard, run, FAILED, false)?;
            return Err(error);
        }
    };
    let is_away = held.is_some_and(|held| !repo.is_at(&held));
    Ok(closed(repo, ui, &heard, args, (run, ended), is_away))
}

/// Ends the turn of a command that has ended, and says so; gives the exit code.
fn closed(
    repo: &Repo,
    ui: &Ui,
    heard: Warn<'_>,
    args: &RunArgs,
    (run, ended): (Lock, ExitStatus),
    is_away: bool,
) -> u8 {
    let code = spawn::exit_code(ended);
    let ended = if is_away {
        Err(moved_away(repo))
    } else {
        let ended = end(repo, heard, run, code, spawn::was_killed(ended));
        ended.map_err(|error| to_refusal(&error).hint("the turn is still open; 'oxundo status' closes it"))
    };
    match ended {
        Err(refusal) => {
            ui.refuse(&refusal);
            report(ui, args, || Ok(json!({"error": refusal})));
            if code == 0 { FAILED } else { code }
        }
        Ok((view, end)) => {
            // What is said of it is not worth an exit code of its own.
            if ui.is_watched()
                && let Ok(line) = told(&view, &end)
            {
                Ui::show(&line);
            }
            report(ui, args, || became(&view, &end, code));
            code
        }
    }
}

/// Watches the worktree for steps while the agent is at work. Where that cannot be, the agent is at work all the same.
fn watch(repo: &Repo, ui: &Ui, directory: &Path) -> Option<Watching> {
    let (places, directory) = ((repo.git_dir().to_owned(), repo.top().to_owned()), directory.to_owned());
    let open = move || super::open_to_record(&directory);
    let watching = Watching::begin(places, repo.hold(), open);
    watching.map_err(|error| ui.warn(&format!("the worktree is not watched: {error:#}"))).ok()
}

/// Begins the turn; gives the lock that is held while the agent is at work, or nothing where the agent is part of a
/// turn already.
fn begin(repo: &Repo, ui: &Ui, heard: Warn<'_>, args: &RunArgs, agent: String) -> Result<Option<Lock>> {
    // The variable may outlive its turn, in a terminal that the agent opened: the lock does not.
    if spawn::is_inside(repo) && repo.is_running()? {
        return Ok(None);
    }
    let _doing = repo.start("saving your work");
    let view = View::open(repo, heard)?;
    if is_within(&view)? {
        return Ok(None);
    }
    let who = Who {
        mode: if args.ghost { Mode::Ghost } else { view.config().mode()? },
        session: args.session.clone(),
        message: args.message.clone(),
        prompt: None,
        agent,
    };
    if view.timeline.commit.is_none() {
        super::tell_of_earlier_store(repo, ui);
    }
    begin_run(view, who).map(Some)
}

/// The command took the git directory away, and the records with it: nothing is made in its place.
fn moved_away(repo: &Repo) -> Refusal {
    let place = sanitized(&repo.common_dir().display().to_string());
    let message = format!("cannot record the turn: '{place}' was moved away, removed or made anew meanwhile");
    Refusal::new(Code::Io, message)
        .hint("if it was moved, move it back, then run 'oxundo status', which ends the turn")
        .hint("if it was removed, the records of earlier turns went with it")
}

/// Ends the turn; gives what became of it.
fn end<'r>(repo: &'r Repo, heard: Warn<'r>, run: Lock, exit_code: u8, interrupted: bool) -> Result<(View<'r>, RunEnd)> {
    let _doing = repo.start("recording the turn");
    let mut locked = Locked::beside_run(repo, heard, "run", PATIENCE).context("record the turn")?;
    let ending = Ending { exit_code: Some(i32::from(exit_code)), interrupted };
    let end = end_run(&mut locked, ending).context("record the turn")?;
    let view = locked.into_view();
    // It would find an agent at work, and not try again before tomorrow.
    drop(run);
    start_if_due(&view);
    Ok((view, end))
}

/// What the report says of the end.
fn became(view: &View<'_>, end: &RunEnd, code: u8) -> Result<Value> {
    Ok(match end {
        RunEnd::Recorded(turn) => reported("recorded", code, Some(&line_of(view, turn.turn)?.json()?)),
        RunEnd::Nothing => reported("nothing_changed", code, None),
        RunEnd::GoesOn(_) => reported("goes_on", code, None),
        RunEnd::ByHooks => reported("by_hooks", code, None),
    })
}

/// The line that a terminal is shown at the end.
fn told(view: &View<'_>, end: &RunEnd) -> Result<String> {
    let turn = match end {
        RunEnd::Recorded(turn) => turn,
        RunEnd::Nothing => return Ok("no turn: nothing changed\n".to_owned()),
        RunEnd::GoesOn(turn) => return Ok(format!("turn {turn} goes on: another session is at work in it\n")),
        RunEnd::ByHooks => return Ok("each of its prompts is a turn of its own: 'oxundo log' shows them\n".to_owned()),
    };
    Ok(ended(turn, &delta_of(&view.timeline, turn)?))
}
