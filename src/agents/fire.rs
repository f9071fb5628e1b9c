//! Running a command as an agent runs its hooks: with a payload on stdin, without a terminal, within a limit of time.

use crate::git::repo::threads::start;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;

/// How much is read of what a command says.
const LONGEST: u64 = 64 << 10;

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fired {
    /// It ended.
    Ended {
        /// Its exit code; none where a signal ended it.
        code: Option<i32>,
        /// The beginning of what it wrote to stdout.
        out: String,
        /// The same of stderr.
        err: String,
    },
    /// It had not ended in time, and was killed with all that it had started.
    Slow,
    /// There is no such program.
    NotFound,
    /// The file is there, and may not be executed.
    NotExecutable,
}

/// Runs a command.
pub fn fire(mut command: Command, input: &[u8], limit: Duration) -> Result<Fired> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Its group is its own, so that a shell is killed with what it waits for.
    command.process_group(0);
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Fired::NotFound),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(Fired::NotExecutable),
        Err(error) => return Err(error).context("start a hook's command"),
    };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (send, receive) = mpsc::channel();
    let input = input.to_vec();
    // Whoever has stopped waiting needs it no more.
    start(move || drop(send.send(ended(child, &input))))?;
    let Ok(ended) = receive.recv_timeout(limit) else {
        // It may have ended at this instant.
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        return Ok(Fired::Slow);
    };
    ended
}

fn ended(mut child: Child, input: &[u8]) -> Result<Fired> {
    let (stdin, out, err) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (out, err) = std::thread::scope(|scope| {
        // A command that has read enough closes the pipe.
        Builder::new().spawn_scoped(scope, move || stdin.map(|mut stdin| drop(stdin.write_all(input))))?;
        let err = Builder::new().spawn_scoped(scope, move || beginning(err))?;
        std::io::Result::Ok((beginning(out), err.join().unwrap_or_default()))
    })
    .context("start a thread")?;
    let status = child.wait().context("wait for a hook's command")?;
    Ok(Fired::Ended { code: status.code(), out, err })
}

fn beginning(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    // What was read until it broke off is what there is.
    let _ = from.map(|from| from.take(LONGEST).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::OpenOptionsExt;

    fn shell(line: &str, input: &str, limit: Duration) -> Fired {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        fire(command, input.as_bytes(), limit).expect("it is started")
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_command_says_and_how_it_ends() {
        let said = Fired::Ended { code: Some(3), out: "in".to_owned(), err: "bad\n".to_owned() };
        assert_eq!(shell("cat; echo bad >&2; exit 3", "in", LONG), said);
        let mute = Fired::Ended { code: Some(0), out: String::new(), err: String::new() };
        assert_eq!(shell("exec true", &"x".repeat(1 << 20), LONG), mute, "it need not read");
        assert_eq!(fire(Command::new("/no/such/program"), b"", LONG).expect("said"), Fired::NotFound);
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_what_it_waits_for() {
        let there = tempfile::tempdir().expect("make a directory");
        let fifo = there.path().join("fifo");
        let line = format!("mkfifo '{0}' && cat '{0}'; :", fifo.display());
        assert_eq!(shell(&line, "", Duration::from_millis(300)), Fired::Slow);
        // Who is killed is gone a moment later; a 'cat' that lived on would read for ever.
        let is_read = || std::fs::File::options().write(true).custom_flags(nonblocking()).open(&fifo).is_ok();
        for _ in 0..6000 {
            if !is_read() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("it lives on");
    }

    fn nonblocking() -> i32 {
        i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a flag")
    }
}
