//! The agent: looked up before anything is recorded, run with the terminal as
//! it is, and its end told as a shell would.

use crate::git::Repo;
use crate::git::process::LOCAL_ENVIRONMENT;
use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The variable by which a `run` inside a `run` knows that it is.
pub const INSIDE: &str = "OXUNDO_RUN";

/// Why an agent cannot be started, as env(1) has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no such command.
    NotFound,
    /// It is there but cannot be executed.
    NotExecutable,
}

/// Finds the agent's program.
///
/// # Errors
///
/// When there is none, or it is no program.
pub fn find(program: &OsStr) -> Result<PathBuf, Missing> {
    if program.is_empty() {
        return Err(Missing::NotFound);
    }
    let found = which::which(program);
    found.map_err(|_| {
        let named = Path::new(program);
        let there = if named.components().count() > 1 {
            named.exists()
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(named).exists())
        };
        if there { Missing::NotExecutable } else { Missing::NotFound }
    })
}

/// The name of the agent that this command is.
pub fn name_of(command: &OsStr) -> String {
    let name = Path::new(command).file_stem().unwrap_or(command);
    crate::model::bytes::sanitized(&name.to_string_lossy())
}

/// Runs the agent to its end. SIGINT and SIGQUIT reach it from the terminal and are its
/// own; SIGTERM and SIGHUP are passed on to it.
///
/// # Errors
///
/// When it cannot be started.
pub fn run(program: &Path, command: &[OsString], repo: Option<&Repo>) -> Result<ExitStatus> {
    let mut agent = Command::new(program);
    agent.args(&command[1..]);
    std::os::unix::process::CommandExt::arg0(&mut agent, &command[0]);
    if let Some(repo) = repo {
        agent.env(INSIDE, repo.git_dir());
        for variable in LOCAL_ENVIRONMENT {
            agent.env_remove(variable);
        }
        // A repository that only these variables lead to must stay within reach.
        if repo.only_by_environment() {
            agent.env("GIT_DIR", repo.git_dir()).env("GIT_WORK_TREE", repo.top());
        }
    }
    // Handlers, not "ignore": an ignored signal would be ignored by the agent as well.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).context("watch signals")?;
    let handle = signals.handle();
    let mut child = agent.spawn().with_context(|| format!("start '{}'", program.display()))?;
    let pid = rustix::process::Pid::from_child(&child);
    let status = std::thread::scope(|scope| {
        scope.spawn(move || {
            for signal in signals.forever() {
                let passed_on = match signal {
                    SIGTERM => rustix::process::Signal::TERM,
                    SIGHUP => rustix::process::Signal::HUP,
                    _ => continue,
                };
                // An agent that is gone already needs no signal.
                let _ = rustix::process::kill_process(pid, passed_on);
            }
        });
        let status = child.wait();
        handle.close();
        status
    });
    status.context("wait for the agent")
}

/// The exit code by which a shell tells of this end.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}
