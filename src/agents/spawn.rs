//! Running the agent: it is looked up before anything is recorded, it gets the terminal, and its exit code is
//! reported as a shell does.

use crate::git::repo::Repo;
use crate::git::repo::process::LOCAL_ENVIRONMENT;
use anyhow::{Context, Result};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, waitpid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// The variable by which a `run` inside a `run` recognises this.
pub const INSIDE: &str = "OXUNDO_RUN";

/// Whether this process was started by an agent that a `run` in this worktree runs, or ran.
pub fn is_inside(repo: &Repo) -> bool {
    std::env::var_os(INSIDE).is_some_and(|outer| Path::new(&outer) == repo.git_dir())
}

/// Why an agent cannot be started, as env(1) has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no such command.
    NotFound,
    /// It is there but cannot be executed.
    NotExecutable,
    /// It is a directory: for what looks on `PATH` there is no such command.
    Directory { by_path: bool },
}

impl Missing {
    /// How it is said, and the exit code, which is that of env(1).
    pub fn told(self) -> (&'static str, u8) {
        match self {
            Self::NotFound => ("no such command", 127),
            Self::NotExecutable => ("not executable", 126),
            Self::Directory { by_path } => ("a directory, not a command", if by_path { 126 } else { 127 }),
        }
    }
}

/// Finds the agent's program.
pub fn find(program: &OsStr) -> Result<PathBuf, Missing> {
    if program.is_empty() {
        return Err(Missing::NotFound);
    }
    let found = which::which(program);
    found.map_err(|_| {
        let named = Path::new(program);
        let by_path = named.components().count() > 1 || named.is_absolute() || program == ".";
        let there = if by_path {
            named.exists()
        } else {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|directory| directory.join(named).exists())
        };
        if named.is_dir() {
            Missing::Directory { by_path }
        } else if there {
            Missing::NotExecutable
        } else {
            Missing::NotFound
        }
    })
}

/// The name of the agent that this command is.
pub fn name_of(command: &OsStr) -> String {
    let name = Path::new(command).file_stem().unwrap_or(command);
    crate::model::bytes::sanitized(&name.to_string_lossy())
}

/// Runs the agent to its end. SIGINT and SIGQUIT reach it from the terminal; SIGTERM and SIGHUP are passed on to it.
/// While it is stopped, this process stops too, so that the shell shows its prompt.
pub fn run(program: &Path, command: &[OsString], repo: Option<&Repo>) -> Result<ExitStatus> {
    let mut agent = Command::new(program);
    agent.args(&command[1..]);
    std::os::unix::process::CommandExt::arg0(&mut agent, &command[0]);
    prepare(&mut agent, repo);
    // Handlers, not "ignore": an ignored signal would be ignored by the agent as well.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).context("watch signals")?;
    let handle = signals.handle();
    let started = agent.spawn().or_else(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        // A script that does not say by what it is read: by the shell, as every shell has it.
        Some(Errno::NOEXEC) => {
            let mut shell = Command::new("/bin/sh");
            shell.arg(program).args(&command[1..]);
            prepare(&mut shell, repo);
            shell.spawn()
        }
        _ => Err(error),
    });
    let child = started.with_context(|| format!("start '{}'", program.display()))?;
    let pid = Pid::from_child(&child);
    let status = std::thread::scope(|scope| {
        let passing_on = move || {
            for signal in signals.forever() {
                let passed_on = match signal {
                    SIGTERM => Signal::TERM,
                    SIGHUP => Signal::HUP,
                    _ => continue,
                };
                // An agent that has ended already needs no signal.
                let _ = kill_process(pid, passed_on);
            }
        };
        // Where the system gives no thread, the agent is at work all the same.
        let _ = std::thread::Builder::new().spawn_scoped(scope, passing_on);
        let status = wait(pid);
        handle.close();
        status
    });
    status.context("wait for the agent")
}

/// What the agent is to know of the repository.
fn prepare(agent: &mut Command, repo: Option<&Repo>) {
    if let Some(repo) = repo {
        agent.env(INSIDE, repo.git_dir());
        for variable in LOCAL_ENVIRONMENT {
            agent.env_remove(variable);
        }
        // A repository that is found by these variables only must still be found by the agent.
        if repo.only_by_environment() {
            agent.env("GIT_DIR", repo.git_dir()).env("GIT_WORK_TREE", repo.top());
        }
    }
}

/// Gives the shell time to continue every process of its job, one after the other. In slices, since a sleep also
/// runs while this process is stopped.
fn pause() {
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits for the agent's end, and stops whenever it is stopped.
fn wait(agent: Pid) -> io::Result<ExitStatus> {
    loop {
        let mut news = wait_for(agent, WaitOptions::UNTRACED)?;
        if news.is_some_and(WaitStatus::stopped) {
            news = stop_with(agent)?;
        }
        if let Some(end) = news.filter(|news| news.exited() || news.signaled()) {
            return Ok(ExitStatus::from_raw(end.as_raw()));
        }
    }
}

/// Stops this process until the shell continues it, as long as the agent is stopped; gives the agent's state after
/// that.
fn stop_with(agent: Pid) -> io::Result<Option<WaitStatus>> {
    let since = || {
        pause();
        wait_for(agent, WaitOptions::UNTRACED | WaitOptions::CONTINUED | WaitOptions::NOHANG)
    };
    // It may run again already, if both were stopped and continued.
    let mut news = since()?;
    while news.is_none_or(WaitStatus::stopped) {
        kill_process(getpid(), Signal::STOP)?;
        news = since()?;
        if news.is_none() {
            // Only this process was continued: continue the agent.
            kill_process(agent, Signal::CONT)?;
            break;
        }
    }
    Ok(news)
}

fn wait_for(agent: Pid, what: WaitOptions) -> io::Result<Option<WaitStatus>> {
    let news = retry_on_intr(|| waitpid(Some(agent), what))?;
    Ok(news.map(|(_, status)| status))
}

/// Whether a signal ended it.
pub fn was_killed(status: ExitStatus) -> bool {
    status.signal().is_some()
}

/// The exit code that a shell gives for this end.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    u8::try_from(code).unwrap_or(u8::MAX)
}
