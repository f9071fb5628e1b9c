//! `oxundo acp`: between an editor and its agent, who speak the Agent Client Protocol. Each line goes on as it came, byte for
//! byte. What oxundo adds are the answers to its own methods, and that it has them, in the agent's answer to `initialize`.

mod asked;
mod line;
mod talk;
mod tell;

pub use asked::answer;

use crate::agents::spawn;
use crate::git::repo::threads::start;
use crate::program::acp::asked::{CAPABILITY, as_answered, no_session};
use crate::program::acp::line::{LONGEST, Piece, read, with_capability};
use crate::program::acp::talk::Talk;
use crate::program::acp::tell::Teller;
use crate::program::ui::Ui;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::io::{BufReader, Read, Write, stdin};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// So long one side may take to end after the other has: what it still does belongs to its prompt.
const GRACE: Duration = Duration::from_secs(3);

/// So much is read at once.
const READ: usize = 64 << 10;

/// What has ended.
enum Over {
    /// What the client says.
    Client,
    /// What the agent says.
    Words,
    /// The agent itself.
    Agent(std::io::Result<ExitStatus>),
}

/// What both directions share.
struct Between {
    talk: Mutex<Talk>,
    /// Held for as long as a line is written to the client.
    to_client: Mutex<()>,
    teller: Teller,
}

/// Starts the agent, and stands between it and the client until it ends; gives its exit code.
pub fn serve(program: &Path, command: &[OsString]) -> Result<u8> {
    let teller = Teller::new(tell::name_of(command))?;
    let stamp = tell::stamp();
    let between = Arc::new(Between { talk: Mutex::new(Talk::new(stamp)), to_client: Mutex::new(()), teller });
    let mut agent = Command::new(program)
        .args(&command[1..])
        .arg0(&command[0])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start '{}'", program.display()))?;
    pass_signals_on(&agent)?;
    let (into, out_of) = (agent.stdin.take().context("speak to it")?, agent.stdout.take().context("hear it")?);
    let (sender, over) = channel();
    listen(&between, &sender, Over::Client, move |between| between.hear_client(into))?;
    listen(&between, &sender, Over::Words, move |between| between.hear_agent(out_of))?;
    start(move || drop(sender.send(Over::Agent(agent.wait()))))?;
    let status = between.until_over(&over)?;
    Ok(spawn::exit_code(status))
}

/// Listens to one side in a thread of its own. A failure there is an end: the other side sees it as one.
fn listen(
    between: &Arc<Between>,
    sender: &Sender<Over>,
    over: Over,
    work: impl FnOnce(&Between) -> std::io::Result<()> + Send + 'static,
) -> Result<()> {
    let (between, sender) = (between.clone(), sender.clone());
    start(move || {
        let _ = work(&between);
        // Nobody waits for it when all is over.
        drop(sender.send(over));
    })
    .map(drop)
}

/// What ends this process ends the agent, which then ends the rest.
fn pass_signals_on(agent: &Child) -> Result<()> {
    let pid = Pid::from_child(agent);
    // Those of the terminal reach it by themselves.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP]).context("watch signals")?;
    start(move || {
        for signal in signals.forever() {
            let passed_on = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => continue,
            };
            // It may have ended.
            let _ = kill_process(pid, passed_on);
        }
    })
    .map(drop)
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Between {
    /// Waits until the agent has ended. Where either side ends, what is not over is cut off after a while.
    fn until_over(&self, over: &Receiver<Over>) -> Result<ExitStatus> {
        let (mut ended, mut heard_all, mut is_ending) = (None, false, false);
        loop {
            let next = if is_ending { over.recv_timeout(GRACE).ok() } else { over.recv().ok() };
            match next {
                Some(Over::Agent(status)) => ended = Some(status),
                Some(Over::Words) => heard_all = true,
                Some(Over::Client) => {}
                None => {
                    self.cut_off();
                    is_ending = false;
                    // What the agent has left behind may hold its end open.
                    heard_all |= ended.is_some();
                    if ended.is_none() {
                        continue;
                    }
                }
            }
            if heard_all && ended.is_some() {
                self.cut_off();
                break;
            }
            is_ending = true;
        }
        ended.context("wait for the agent")?.context("wait for the agent")
    }

    fn cut_off(&self) {
        let signs = held(&self.talk).cut_off();
        self.teller.tell(&signs);
    }

    /// From the client to the agent, to the end of what the client says.
    fn hear_client(&self, mut agent: impl Write) -> std::io::Result<()> {
        let mut client = BufReader::with_capacity(READ, stdin());
        let (mut line, mut last) = (Vec::new(), Piece::Line);
        loop {
            let piece = read(&mut client, &mut line, &last, LONGEST)?;
            match piece {
                Piece::End => return Ok(()),
                Piece::Part | Piece::Rest => agent.write_all(&line)?,
                Piece::Line => {
                    let (signs, asked) = held(&self.talk).client(&line);
                    self.teller.tell(&signs);
                    match asked {
                        Some(asked) => {
                            let told = if asked.is_astray { Err(no_session()) } else { self.teller.ask(&asked) };
                            let answer = as_answered(&asked, told);
                            answer.map_or(Ok(()), |answer| self.say(&answer))?;
                        }
                        None => agent.write_all(&line)?,
                    }
                }
            }
            agent.flush()?;
            last = piece;
        }
    }

    /// From the agent to the client, to the end of what the agent says.
    fn hear_agent(&self, agent: impl Read) -> std::io::Result<()> {
        let mut agent = BufReader::with_capacity(READ, agent);
        let (mut line, mut last, mut whole) = (Vec::new(), Piece::Line, None);
        loop {
            let piece = read(&mut agent, &mut line, &last, LONGEST)?;
            match piece {
                Piece::End => return Ok(()),
                Piece::Part | Piece::Rest => {
                    // Nothing else is said in the middle of a line.
                    whole.get_or_insert_with(|| held(&self.to_client));
                    Ui::raw(&line).map_err(|error| error.0)?;
                    if piece == Piece::Rest {
                        whole = None;
                    }
                }
                Piece::Line => self.pass_on(&line)?,
            }
            last = piece;
        }
    }

    fn pass_on(&self, line: &[u8]) -> std::io::Result<()> {
        let heard = held(&self.talk).agent(line);
        self.teller.tell(&heard.signs);
        let made = if heard.is_introduction { with_capability(line, "oxundo", CAPABILITY) } else { None };
        self.say(made.as_deref().unwrap_or(line))
    }

    fn say(&self, line: &[u8]) -> std::io::Result<()> {
        let _whole = held(&self.to_client);
        Ui::raw(line).map_err(|error| error.0)
    }
}
