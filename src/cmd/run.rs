//! `oxundo run`: one turn around a command.

use crate::agent::Missing;
use crate::cli::RunArgs;
use crate::config::Config;
use crate::error::failure::refusal_of;
use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::turn::Mode;
use crate::turns::{Ending, Who};
use crate::ui::Ui;
use crate::{agent, turns};
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Duration;

/// oxundo itself failed or refused, as env(1) has it.
const FAILED: u8 = 125;

/// How long the end of a turn waits for a hook of its agent that is still at it.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the agent as a turn; gives the exit code. What goes wrong is reported here, since
/// `run` has exit codes of its own.
pub fn run(directory: &Path, ui: &mut Ui, args: &RunArgs) -> u8 {
    let name = args.command[0].to_string_lossy();
    let program = match agent::find(&args.command[0]) {
        Ok(program) => program,
        Err(missing) => {
            let (what, code) = match missing {
                Missing::NotFound => ("no such command", 127),
                Missing::NotExecutable => ("not executable", 126),
            };
            super::heed_user(ui);
            ui.refuse(
                &Refusal::new(Code::NotFound, format!("'{name}': {what}"))
                    .hint("nothing was recorded; check the command's name and PATH"),
            );
            return code;
        }
    };
    match turn(directory, ui, args, &program) {
        Ok(code) => code,
        Err(error) => {
            ui.refuse(&refusal_of(&error));
            FAILED
        }
    }
}

fn turn(directory: &Path, ui: &mut Ui, args: &RunArgs, program: &Path) -> Result<u8> {
    let mut repo = Repo::open_or_make(directory).inspect_err(|_| super::heed_user(ui))?;
    super::heed(&mut repo, ui);
    // The variable may outlive its turn, in a terminal that the agent opened: the lock does not.
    if (agent::is_inside(&repo) && repo.is_running()?) || turns::session::is_within(&repo)? {
        // Within a turn of this worktree: what this agent does is part of it.
        let status = agent::run(program, &args.command, None)?;
        return Ok(agent::exit_code(status));
    }
    let agent = args.agent.clone().unwrap_or_else(|| agent::name_of(&args.command[0]));
    let config = Config(&repo);
    let who = Who {
        mode: if args.ghost { Mode::Ghost } else { config.mode()? },
        session: args.session.clone(),
        message: args.message.clone(),
        agent,
    };
    let (_run, lock) = repo.lock_for_run(&format!("run {}", who.agent))?;
    if Timelines::new(&repo).timeline().is_ok_and(|stored| stored.commit.is_none()) {
        super::tell_of_earlier_store(&repo, ui);
    }
    turns::session::begin_run(&repo, ui, &who)?;
    drop(lock);
    let ended = match agent::run(program, &args.command, Some(&repo)) {
        Ok(status) => status,
        Err(error) => {
            // It never ran: the turn changed nothing and goes without a trace.
            end(&repo, ui, FAILED, false)?;
            return Err(error);
        }
    };
    let code = agent::exit_code(ended);
    if let Err(error) = end(&repo, ui, code, agent::was_killed(ended)) {
        ui.refuse(&refusal_of(&error).hint("the turn is still open; 'oxundo status' closes it"));
        return Ok(if code == 0 { FAILED } else { code });
    }
    crate::cmd::gc::start_if_due(&repo);
    Ok(code)
}

fn end(repo: &Repo, ui: &Ui, exit_code: u8, interrupted: bool) -> Result<()> {
    let _lock = repo.lock_beside_run("run", PATIENCE)?;
    let ending = Ending { exit_code: Some(i32::from(exit_code)), interrupted };
    turns::session::run_is_over(repo, ui, ending).context("record the turn")
}
