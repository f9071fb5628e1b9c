//! The one door to the `git` binary, for what gix cannot do correctly.

use crate::git::repo::Repo;
use crate::git::repo::threads::start;
use crate::progress::{Progress, StopSwitch};
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;

/// Variables that bind a git process to a repository; as `git rev-parse --local-env-vars`
/// lists them, without those that hold configuration.
pub const LOCAL_ENVIRONMENT: [&str; 13] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// Keeps the repository's hooks from running, except where the user asked for them.
const NO_HOOKS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

/// The commands that run programs of the user's: hooks, filters, what signs a commit. These have the user's environment, and
/// what oxundo sets for itself is no part of it: they may look at another repository, or ask for a password.
const FOR_THE_USER: [&str; 4] = ["hook", "update-index", "hash-object", "commit-tree"];

/// The commands that run hooks, or print where they are.
const ABOUT_HOOKS: [&str; 2] = ["hook", "rev-parse"];

/// The hook that git runs when it has written an index.
const INDEX_HOOK: &str = "post-index-change";

impl Repo {
    /// A git command in this repository. It finds what oxundo has just made, and nobody else does if this is only a look.
    pub fn git<I, S>(&self, args: I) -> Git
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        if !self.is_looking() {
            let written = self.flush();
            return self.git_apart(args).after(written);
        }
        let (git, own) = (self.git_apart(args), self.common_dir.join("objects"));
        match self.set_apart() {
            Ok(directory) => {
                git.env("GIT_OBJECT_DIRECTORY", directory).env("GIT_ALTERNATE_OBJECT_DIRECTORIES", listed(&own))
            }
            Err(error) => git.after(Err(error)),
        }
    }

    /// A git command that asks for no object that oxundo has just made.
    pub fn git_apart<I, S>(&self, args: I) -> Git
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let git = Git::new(&self.git_dir, self.top(), args);
        let mut git = if git.is_for_the_user() { git.for_the_user(self) } else { git.for_oxundo() };
        if self.stop.get().is_some_and(StopSwitch::is_under_way) {
            // The terminal's keys are for oxundo alone, which says what becomes of it.
            git.command.process_group(0);
        }
        self.watch.emit(Progress::Runs(git.line()));
        git
    }
}

/// A directory as git reads it in a list of them.
fn listed(path: &Path) -> OsString {
    let mut text = b"\"".to_vec();
    for byte in path.as_os_str().as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            text.push(b'\\');
        }
        text.push(*byte);
    }
    text.push(b'"');
    OsString::from_vec(text)
}

/// A git command in one repository.
#[derive(Debug)]
pub struct Git {
    command: Command,
    /// What is to follow the options of git itself.
    args: Vec<OsString>,
    name: String,
    line: String,
    /// Why it must not run.
    unready: Option<anyhow::Error>,
}

impl Git {
    /// A git command for the repository with this git directory and worktree.
    pub fn new<I, S>(git_dir: &Path, worktree: &Path, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let args: Vec<OsString> = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        let at = 2 * args.iter().step_by(2).take_while(|arg| *arg == "-c").count();
        let name = args.get(at);
        let name = name.map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default();
        let words: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
        let line = format!("git {}", words.join(" "));
        let mut command = Command::new("git");
        for variable in LOCAL_ENVIRONMENT {
            command.env_remove(variable);
        }
        command.current_dir(worktree).env("GIT_DIR", git_dir).env("GIT_WORK_TREE", worktree);
        Self { command, args, name, line, unready: None }
    }

    /// A git command in a repository of oxundo's own making, which it finds as the user's git finds any: what it starts knows
    /// of no other.
    pub fn found_in<I, S>(top: &Path, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let mut git = Self::new(&top.join(".git"), top, args);
        // The last would have git ask about hunks that it cannot apply.
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_ATTR_SOURCE", "GIT_DIFF_OPTS"] {
            git.command.env_remove(variable);
        }
        git
    }

    fn is_for_the_user(&self) -> bool {
        FOR_THE_USER.contains(&self.name.as_str())
    }

    /// With what oxundo wants of git that the user may not.
    #[must_use]
    pub fn for_oxundo(mut self) -> Self {
        self.command.env("GIT_TERMINAL_PROMPT", "0");
        if !ABOUT_HOOKS.contains(&self.name.as_str()) {
            // Objects as they were made, as gix gives them (`open_gix`).
            self.command.env("GIT_NO_REPLACE_OBJECTS", "1").args(NO_HOOKS);
        }
        self
    }

    /// With nothing that a git of the user's would not have in its environment.
    fn for_the_user(mut self, repo: &Repo) -> Self {
        if repo.found_from_top {
            self.command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
        }
        // No other way keeps this one hook from running.
        if self.name == "update-index" && repo.hooks().join(INDEX_HOOK).exists() {
            self.command.args(NO_HOOKS);
        }
        self
    }

    /// The command line as people would write it.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// Runs only if what it needs was done.
    #[must_use]
    pub fn after(mut self, done: Result<()>) -> Self {
        self.unready = done.err();
        self
    }

    /// Makes it ready to run.
    fn check(&mut self) -> Result<()> {
        self.command.args(std::mem::take(&mut self.args));
        self.unready.take().map_or(Ok(()), Err)
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Runs in this directory instead of the top of the worktree.
    #[must_use]
    pub fn directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    /// Works on another index file than the repository's.
    #[must_use]
    pub fn index(self, index: &Path) -> Self {
        self.env("GIT_INDEX_FILE", index)
    }

    /// Feeds `input`, and gives what the command prints.
    pub fn run(self, input: &[u8]) -> Result<Vec<u8>> {
        self.start()?.run(input)
    }

    /// Starts it before its input is known, so that it is ready by then.
    pub fn start(mut self) -> Result<Waiting> {
        self.check()?;
        self.speak_english();
        Waiting::start(self.command, format!("git {}", self.name))
    }

    /// As [`Git::run`], but gives up on a command that does not end: it may be waiting for a passphrase that nobody
    /// types. The command is left running, and what it still prints is ignored.
    pub fn run_within(mut self, input: &[u8], limit: Duration) -> Result<Vec<u8>> {
        self.check()?;
        self.speak_english();
        fed_within(self.command, input, &format!("git {}", self.name), limit)
    }

    /// Writes what the command prints to `out`, as it comes.
    pub fn copy_to(mut self, out: &mut dyn Write) -> Result<()> {
        let name = format!("git {}", self.name);
        self.check()?;
        self.speak_english();
        self.command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().with_context(|| format!("run {name}"))?;
        let mut stdout = child.stdout.take().context("no way to its output")?;
        let copied = std::io::copy(&mut stdout, out);
        // Dropping the pipe ends git, even if not everything was read.
        drop(stdout);
        let output = child.wait_with_output().with_context(|| format!("run {name}"))?;
        copied?;
        succeeded(&output, &name)
    }

    /// As [`Git::run`], for a command whose exit code has a meaning: gives it too.
    pub fn ask(mut self) -> Result<(i32, Vec<u8>)> {
        self.check()?;
        self.speak_english();
        self.command.stdin(Stdio::null()).stderr(Stdio::null());
        let output = self.command.output().with_context(|| format!("run git {}", self.name))?;
        let code = output.status.code().with_context(|| format!("git {} was killed", self.name))?;
        Ok((code, output.stdout))
    }

    /// git's messages are quoted in English, but of a git that runs programs of the user's: they have the user's language.
    fn speak_english(&mut self) {
        if !self.is_for_the_user() {
            self.command.env("LANGUAGE", "C");
        }
    }

    /// Runs with the terminal as it is, so that git's pager and colours work.
    pub fn interactive(mut self) -> Result<ExitStatus> {
        self.check()?;
        leave_interrupts()?;
        self.command.status().context("run git")
    }

    /// Has it ask the user, where oxundo asks: what it prints is no answer. Gives how it ended; none where it was cut off, by a
    /// key, a signal, or the end of the terminal.
    pub fn asks(mut self) -> Result<Option<ExitStatus>> {
        self.check()?;
        let stdin = std::io::stdin();
        let is_typed = stdin.is_terminal();
        let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).context("watch signals")?;
        let handle = signals.handle();
        let mut child = self.command.stdout(std::io::stderr()).spawn().context("run git")?;
        let (pid, ends) = (Pid::from_child(&child), AtomicBool::new(false));
        let status = std::thread::scope(|scope| {
            let ending = || {
                for signal in signals.forever().filter(|signal| [SIGTERM, SIGHUP].contains(signal)) {
                    ends.store(true, Ordering::SeqCst);
                    // The terminal's keys have told git themselves; of the others it does not hear. It may be gone by now.
                    let _ = kill_process(pid, if signal == SIGTERM { Signal::TERM } else { Signal::HUP });
                }
            };
            // Where the system gives no thread, git has the terminal all the same.
            let _ = Builder::new().spawn_scoped(scope, ending);
            let status = child.wait();
            handle.close();
            status
        });
        let status = status.context("run git")?;
        // Asked for nothing, the system tells of the terminal's end alone: git takes that for the end of the answers.
        let mut terminal = [PollFd::new(&stdin, PollFlags::empty())];
        let is_gone = is_typed && matches!(poll(&mut terminal, Some(&Timespec::default())), Ok(1..));
        // Of anything else, such as SIGPIPE at a filter of its own, it has failed.
        let is_cut_off = status.signal().is_some_and(|signal| [SIGINT, SIGQUIT, SIGTERM, SIGHUP].contains(&signal));
        Ok((!is_gone && !ends.load(Ordering::SeqCst) && !is_cut_off).then_some(status))
    }
}

/// Whether git uses the repository that this directory is in, by what the user has it trust. It runs nothing there.
pub fn git_uses_repository(directory: &Path) -> Result<bool> {
    let mut git = Command::new("git");
    for variable in LOCAL_ENVIRONMENT {
        git.env_remove(variable);
    }
    git.args(["rev-parse", "--absolute-git-dir"]).current_dir(directory);
    let output = git.stdin(Stdio::null()).output().context("run git rev-parse")?;
    Ok(output.status.success())
}

/// The version of git; none where it cannot be run.
pub fn git_version() -> Option<String> {
    let output = Command::new("git").arg("--version").env("LANGUAGE", "C").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().strip_prefix("git version ").map(str::to_owned)
}

/// What any pipe takes at once, whether its other end is read or not.
const PIPED: usize = 4096;

/// A command that was started and waits for its input. One that is dropped gets none, and ends.
#[derive(Debug)]
pub struct Waiting {
    child: Option<Child>,
    name: String,
}

impl Waiting {
    fn start(mut command: Command, name: String) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| format!("run {name}"))?;
        Ok(Self { child: Some(child), name })
    }

    /// Feeds `input`, and gives what the command prints.
    pub fn run(mut self, input: &[u8]) -> Result<Vec<u8>> {
        let mut child = self.child.take().context("it has run")?;
        let mut stdin = child.stdin.take().context("no way to its input")?;
        // A command that has read enough closes the pipe: its exit status decides.
        let output = if input.len() <= PIPED {
            drop(stdin.write_all(input));
            drop(stdin);
            child.wait_with_output()
        } else {
            std::thread::scope(|scope| {
                match Builder::new().spawn_scoped(scope, move || drop(stdin.write_all(input))) {
                    Ok(_) => child.wait_with_output(),
                    // It must not take what it has got for all of it.
                    Err(error) => child.kill().and_then(|()| child.wait()).and(Err(error)),
                }
            })
        };
        let output = output.with_context(|| format!("run {}", self.name))?;
        succeeded(&output, &self.name)?;
        Ok(output.stdout)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            // Nobody waits for what it says.
            let _ = child.wait();
        }
    }
}

/// Leaves Ctrl-C to the child that has the terminal, from here to the end of this process: if oxundo ended before
/// its pager, the shell and the pager would read the same keys.
pub fn leave_interrupts() -> Result<()> {
    // A handler, not "ignore": that the child would inherit.
    let heard = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&heard)).context("watch signals")?;
    }
    Ok(())
}

pub fn fed(command: Command, input: &[u8], name: &str) -> Result<Vec<u8>> {
    Waiting::start(command, name.to_owned())?.run(input)
}

pub fn fed_within(command: Command, input: &[u8], name: &str, limit: Duration) -> Result<Vec<u8>> {
    let (input, told) = (input.to_vec(), name.to_owned());
    let (send, receive) = std::sync::mpsc::channel();
    start(move || send.send(fed(command, &input, &told)))?;
    let Ok(outcome) = receive.recv_timeout(limit) else {
        bail!("{name}: no answer within {} s", limit.as_secs());
    };
    outcome
}

/// Whether this process is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);

/// From now on nobody acts on the death of a child: this process kills them, and ends.
pub fn about_to_end() {
    ENDING.store(true, Ordering::SeqCst);
}

/// Says what the command said, where it has not done its work.
pub fn succeeded(output: &Output, name: &str) -> Result<()> {
    if output.status.code().is_none() {
        while ENDING.load(Ordering::SeqCst) {
            std::thread::park();
        }
        // It may have left locks.
        bail!("{name}: {}", output.status);
    }
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        match said.trim() {
            "" => bail!("{name}: {}", output.status),
            said => bail!("{name}: {said}"),
        }
    }
    Ok(())
}

/// A path that does not depend on the current directory.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).with_context(|| format!("find '{}'", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_binds_git_to_a_repository_is_what_git_says() {
        let printed = Command::new("git").args(["rev-parse", "--local-env-vars"]).output().expect("run git");
        let printed = String::from_utf8(printed.stdout).expect("variables have plain names");
        let all = printed.lines().filter(|name| !name.starts_with("GIT_CONFIG"));
        // An older git may know fewer, a newer one more.
        let unknown: Vec<_> = all.filter(|name| !LOCAL_ENVIRONMENT.contains(name)).collect();
        assert_eq!(unknown, Vec::<&str>::new());
    }
}
