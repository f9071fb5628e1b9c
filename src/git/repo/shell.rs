//! Commands that the user has configured: they run in a shell, as git runs its own.

use crate::git::repo::Repo;
use crate::git::repo::listen::{Said, listen};
use crate::git::repo::process::{fed, fed_within, leave_interrupts};
use anyhow::{Context, Result};
use gix::bstr::{BStr, ByteSlice};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A command line of the user's configuration, run by the shell.
#[derive(Debug)]
pub struct Shell(Command);

impl Shell {
    /// The command line, to run in this directory.
    pub fn new(line: impl AsRef<[u8]>, directory: &Path) -> Self {
        let mut command = Command::new("sh");
        command.arg("-c").arg(OsStr::from_bytes(line.as_ref())).current_dir(directory);
        Self(command)
    }

    /// Gives it arguments: `$0` and those behind it.
    #[must_use]
    pub fn args<'a>(mut self, args: impl IntoIterator<Item = &'a BStr>) -> Self {
        self.0.args(args.into_iter().map(|arg| OsStr::from_bytes(arg)));
        self
    }

    /// Feeds `input`, and gives what the command prints.
    pub fn run(self, input: &[u8]) -> Result<Vec<u8>> {
        fed(self.0, input, "sh")
    }

    /// Gives what the command prints, as [`Git::run_within`] does.
    pub fn run_within(self, limit: Duration) -> Result<Vec<u8>> {
        fed_within(self.0, b"", "sh", limit)
    }

    /// Feeds `input` to a pager that has the terminal, as git does: `less` shows colours and leaves the
    /// screen as it is unless the user has it otherwise.
    pub fn page(mut self, input: &[u8]) -> Result<()> {
        for (variable, value) in [("LESS", "FRX"), ("LV", "-c")] {
            if std::env::var_os(variable).is_none() {
                self.0.env(variable, value);
            }
        }
        leave_interrupts()?;
        let mut pager = self.0.stdin(Stdio::piped()).spawn().context("run the pager")?;
        // A user who quits the pager early has seen enough.
        drop(pager.stdin.take().map(|mut stdin| stdin.write_all(input)));
        pager.wait().context("wait for the pager").map(drop)
    }
}

impl Repo {
    /// Runs the user's command on what was done or is to be, at the top of the worktree; gives what it said.
    pub fn run_user_command(&self, command: &str, what: &[u8], limit: Option<Duration>) -> Result<Said> {
        listen(Shell::new(command, self.top()).0, what, "sh", limit)
    }

    /// Shows a text in the pager that git would use; gives whether it did.
    pub fn show_in_pager(&self, text: &[u8]) -> bool {
        self.pager().is_some_and(|pager| Shell::new(&pager, self.top()).page(text).is_ok())
    }

    /// The command that git shows differences with; none where it only prints them.
    pub fn pager_of_differences(&self) -> Option<String> {
        match self.boolean("pager.diff") {
            Ok(Some(false)) => None,
            Err(pager) if std::env::var_os("GIT_PAGER").is_none() => Some(pager),
            _ => self.pager(),
        }
    }

    /// The command that git shows all else with.
    fn pager(&self) -> Option<String> {
        let named = self.git(["var", "GIT_PAGER"]).run(b"").unwrap_or_default();
        Some(String::from_utf8_lossy(named.trim()).into_owned()).filter(|pager| !matches!(&**pager, "" | "cat"))
    }
}
