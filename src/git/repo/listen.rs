//! The user's own commands of which the output is heard and the end is awaited, for as long as they may take.

use crate::git::repo::platform::descendants;
use crate::git::repo::process::succeeded;
use anyhow::{Context, Result, anyhow, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::process::{Pid, Signal, kill_process};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

/// So much of what it prints is kept; the rest is read and forgotten.
const KEPT: usize = 64 << 10;

/// How long nothing is looked at that no pipe tells: whether the command has ended.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };

/// What a command printed, and whether it did its work.
#[derive(Debug)]
pub struct Said {
    /// On standard output.
    pub out: String,
    /// On standard error, where it did its work: else that is in the error.
    pub err: String,
    /// Why it did not.
    pub done: Result<()>,
}

/// Feeds `input` and waits for the command's end. What it has left running in the background may go on, and keep its output
/// open; but where the time is over, all that it has started is ended.
pub fn listen(mut command: Command, input: &[u8], name: &str, limit: Option<Duration>) -> Result<Said> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("run {name}"))?;
    let heard = Pipes::of(&mut child, input).and_then(|mut pipes| {
        let ended = pipes.wait(&mut child, limit)?;
        Ok((ended, pipes))
    });
    let (status, pipes) = heard.inspect_err(|_| end(&mut child))?;
    let Some(status) = status else {
        let seconds = limit.unwrap_or_default().as_secs();
        let said = pipes.said(Ok(()));
        return Ok(Said { done: Err(anyhow!("{name}: no answer within {seconds} s")), ..said });
    };
    let output = Output { status, stdout: Vec::new(), stderr: pipes.err.kept.clone() };
    Ok(pipes.said(succeeded(&output, name)))
}

/// Ends a command, and what it has started.
fn end(child: &mut Child) {
    for id in descendants(child.id()).unwrap_or_default() {
        if let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) {
            // It may be gone by now.
            let _ = kill_process(id, Signal::KILL);
        }
    }
    drop(child.kill().and_then(|()| child.wait()));
}

/// One of the outputs.
struct Heard {
    from: Option<OwnedFd>,
    kept: Vec<u8>,
}

impl Heard {
    fn of(from: Option<impl Into<OwnedFd>>) -> Result<Self> {
        let from = from.context("no way to its output")?.into();
        ioctl_fionbio(&from, true)?;
        Ok(Self { from: Some(from), kept: Vec::new() })
    }

    /// Takes what is there now.
    fn take(&mut self) {
        let mut buffer = [0; 8192];
        while let Some(from) = &self.from {
            match read(from, &mut buffer) {
                Ok(0) => self.from = None,
                Ok(count) => {
                    let room = KEPT.saturating_sub(self.kept.len());
                    self.kept.extend_from_slice(&buffer[..count.min(room)]);
                    // A command that prints without end is not to keep this from looking at the time.
                    if room == 0 {
                        return;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.from = None,
            }
        }
    }
}

/// The ends of a command's pipes.
struct Pipes<'a> {
    stdin: Option<OwnedFd>,
    left: &'a [u8],
    out: Heard,
    err: Heard,
}

impl<'a> Pipes<'a> {
    fn of(child: &mut Child, input: &'a [u8]) -> Result<Self> {
        let stdin: OwnedFd = child.stdin.take().context("no way to its input")?.into();
        ioctl_fionbio(&stdin, true)?;
        let (out, err) = (Heard::of(child.stdout.take())?, Heard::of(child.stderr.take())?);
        Ok(Self { stdin: Some(stdin), left: input, out, err })
    }

    /// How it ended; none where it had to be ended.
    fn wait(&mut self, child: &mut Child, limit: Option<Duration>) -> Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            self.pass_on();
            if let Some(status) = child.try_wait().context("wait for a command")? {
                // What it printed last.
                self.out.take();
                self.err.take();
                return Ok(Some(status));
            }
            if limit.is_some_and(|limit| start.elapsed() >= limit) {
                end(child);
                self.out.take();
                self.err.take();
                return Ok(None);
            }
            self.pause()?;
        }
    }

    /// Gives and takes what goes through the pipes now.
    fn pass_on(&mut self) {
        while let Some(stdin) = &self.stdin {
            if self.left.is_empty() {
                self.stdin = None;
                break;
            }
            match write(stdin, self.left) {
                Ok(count) => self.left = &self.left[count..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // A command that has read enough closes the pipe: its exit status decides.
                Err(_) => self.stdin = None,
            }
        }
        self.out.take();
        self.err.take();
    }

    /// Waits until something goes through a pipe, or a moment.
    fn pause(&self) -> Result<()> {
        let mut watched: Vec<PollFd<'_>> = Vec::new();
        watched.extend(self.stdin.as_ref().map(|stdin| PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::OUT)));
        let outputs = [&self.out, &self.err].into_iter().filter_map(|heard| heard.from.as_ref());
        watched.extend(outputs.map(|from| PollFd::from_borrowed_fd(from.as_fd(), PollFlags::IN)));
        match poll(&mut watched, Some(&PAUSE)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => bail!("wait for a command: {error}"),
        }
    }

    fn said(self, done: Result<()>) -> Said {
        let text = |heard: Heard| String::from_utf8_lossy(&heard.kept).into_owned();
        Said { out: text(self.out), err: if done.is_ok() { text(self.err) } else { String::new() }, done }
    }
}
