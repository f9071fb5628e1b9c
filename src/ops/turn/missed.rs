//! What a hook could not do in time, or at all: it is told by the next command, and a turn that could not begin then
//! begins at the agent's next sign.

use crate::git::repo::Repo;
use crate::git::repo::clock::{ago, rfc3339_now};
use crate::git::repo::scratch::{append_line, remove_if_there};
use crate::git::timeline::Timelines;
use crate::model::bytes::sanitized;
use crate::model::session::Signal;
use crate::model::turn::{Participant, Turn};
use crate::ops::turn::calls;
use crate::ops::turn::known::has_told;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The file in the scratch directory.
const FILE: &str = "missed";

/// How the files are called there in which a hook writes down what it is about to do.
const ATTEMPT: &str = "attempt-";

/// What was missed of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    /// Its beginning: no turn is open for it.
    Begin,
    /// Its end: its turn is open still.
    End,
    /// Its beginning, and the turn was begun later.
    Late,
    /// What could not be read: whichever of these it was, of whichever session.
    Unread,
}

/// A signal that nobody could act on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Missed {
    at: String,
    part: Part,
    agent: String,
    session: Option<String>,
    prompt: Option<String>,
    message: Option<String>,
    why: String,
    /// The turn that was to end, where the agent has no sessions by which to find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open: Option<u64>,
    /// The number of the next turn then, where the prompt has a turn already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

impl Missed {
    /// What is missed if nobody acts on this signal; nothing where that is no matter.
    pub fn of(repo: &Repo, signal: Signal, part: &Participant, message: Option<&str>) -> Option<Self> {
        let open = || open_turn(repo).map(|turn| turn.turn);
        let (missed, open) = match signal {
            Signal::Begin => (Part::Begin, None),
            // A sign that it is at work is a beginning where none was told of.
            Signal::Work | Signal::GoOn if !is_at_work(repo, part) => (Part::Begin, None),
            // And so is a call of a session that goes on after its end. Where calls were told of, a turn is open.
            Signal::Call if !calls::are_told(repo) && !is_at_work(repo, part) && has_worked(repo, part) => {
                (Part::Begin, None)
            }
            Signal::End { .. } | Signal::EndAgain if part.session.is_none() => (Part::End, Some(open()?)),
            Signal::End { .. } | Signal::EndAgain => (Part::End, None),
            Signal::Work | Signal::GoOn | Signal::Call | Signal::Called | Signal::Left | Signal::Gone => return None,
        };
        let Participant { agent, session, prompt, .. } = part.clone();
        let next = match signal {
            Signal::Call => Some(Timelines::new(repo).timeline().ok()?.state.next),
            _ => None,
        };
        let message = message.map(str::to_owned);
        Some(Self { at: rfc3339_now(), part: missed, agent, session, prompt, message, why: String::new(), open, next })
    }

    /// Writes it down, below this scratch directory.
    pub fn write(mut self, scratch: &Path, why: &str) -> Result<()> {
        why.clone_into(&mut self.why);
        let mut line = serde_json::to_vec(&self).context("write down what was missed")?;
        if is_cut(&scratch.join(FILE)) {
            line.insert(0, b'\n');
        }
        append_line(&scratch.join(FILE), &line)
    }

    fn is_of(&self, part: &Participant) -> bool {
        self.agent == part.agent && (self.part == Part::Unread || self.session == part.session)
    }

    /// Whether it is a beginning of the session that another one is of.
    fn is_begin_of(&self, other: &Self) -> bool {
        match self.part {
            Part::Begin => self.session == other.session,
            Part::Unread => self.agent == other.agent,
            Part::End | Part::Late => false,
        }
    }

    /// Whether it was acted on nevertheless, as the timeline has it.
    fn is_done(&self, repo: &Repo) -> Result<bool> {
        let timeline = Timelines::new(repo).timeline()?;
        let is_its = |part: &Participant| self.is_of(part) && (self.prompt.is_none() || self.prompt == part.prompt);
        if self.open.is_some() {
            return Ok(timeline.state.open != self.open);
        }
        if self.part == Part::End {
            let open = timeline.state.open.map(|open| timeline.require_turn(open)).transpose()?;
            return Ok(!open.is_some_and(|turn| turn.origin.parts.iter().any(|part| part.at_work && is_its(part))));
        }
        let is_later = |turn: &Turn| match self.next {
            Some(next) => turn.turn >= next,
            None => self.prompt.is_some() || turn.began_at >= self.at,
        };
        let is_begun = |turn: &Turn| is_later(turn) && turn.origin.parts.iter().any(is_its);
        timeline.any_of_last(is_begun)
    }
}

/// Whether a session took part in a turn before.
fn has_worked(repo: &Repo, part: &Participant) -> bool {
    Timelines::new(repo).timeline().and_then(|timeline| has_told(repo, &timeline, part)).unwrap_or_default()
}

/// The open turn, as it is before anybody holds the lock.
fn open_turn(repo: &Repo) -> Option<Turn> {
    let timeline = Timelines::new(repo).timeline().ok()?;
    timeline.find_turn(timeline.state.open?).ok()?
}

/// Whether a session is known to be at work in the open turn.
fn is_at_work(repo: &Repo, part: &Participant) -> bool {
    open_turn(repo).is_some_and(|turn| turn.origin.part_of(part).is_some_and(|part| part.at_work))
}

/// What a hook is about to do, written down first: whoever is killed in the middle writes nothing any more. A lock on the
/// file shows that it lives.
#[derive(Debug)]
pub struct Attempt {
    path: PathBuf,
    _lock: File,
}

impl Attempt {
    /// Writes down what is missed if this process is killed.
    pub fn begin(repo: &Repo, missed: &Missed) -> Result<Self> {
        let path = repo.scratch()?.join(format!("{ATTEMPT}{}", std::process::id()));
        let mut lock = File::options().create(true).truncate(true).write(true).open(&path)?;
        lock.try_lock()?;
        let missed = Missed { why: "it was killed".to_owned(), ..missed.clone() };
        lock.write_all(&serde_json::to_vec(&missed)?)?;
        Ok(Self { path, _lock: lock })
    }

    /// The file, which goes when it is done, or has been missed for a reason that is written down.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It is over.
    pub fn end(self) -> Result<()> {
        remove_if_there(&self.path)
    }
}

/// The attempts of hooks that were killed, with what each has missed; none where even that was cut off.
fn killed(repo: &Repo) -> Vec<(PathBuf, Option<Missed>)> {
    let Ok(found) = std::fs::read_dir(repo.scratch_path("")) else { return Vec::new() };
    let is_attempt = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(ATTEMPT));
    let paths = found.filter_map(|entry| Some(entry.ok()?.path())).filter(is_attempt);
    let is_dead = |path: &Path| File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok());
    let read = |path: &PathBuf| serde_json::from_slice(&std::fs::read(path).ok()?).ok();
    paths.filter(|path| is_dead(path)).map(|path| (path.clone(), read(&path))).collect()
}

/// Puts what hooks that were killed have missed to the rest, where they have missed it. Their turn may begin late.
pub fn collect(repo: &Repo) -> Result<()> {
    for (path, missed) in killed(repo) {
        if let Some(missed) = missed
            && !missed.is_done(repo)?
        {
            append_line(&file(repo), &serde_json::to_vec(&missed).context("write down what was missed")?)?;
        }
        remove_if_there(&path)?;
    }
    Ok(())
}

fn file(repo: &Repo) -> PathBuf {
    repo.scratch_path(FILE)
}

fn all(repo: &Repo) -> Vec<Missed> {
    let text = std::fs::read(file(repo)).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// Whether something was missed that could not be written down: a full disk leaves a name, or a part of a line.
fn is_cut(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|text| !text.ends_with(b"}\n"))
}

/// The prompt whose turn begins late: its beginning was missed, and this signal shows that its agent is at work. Gives the
/// agent's id of it, and the message.
pub fn begun_late(repo: &Repo, signal: Signal, part: &Participant) -> Option<(Option<String>, Option<String>)> {
    if !matches!(signal, Signal::Work | Signal::GoOn | Signal::Call) {
        return None;
    }
    unrecorded(repo, part).map(|missed| (part.prompt.clone().or(missed.prompt), missed.message))
}

/// What was missed last of a session, where that is the beginning of this prompt.
pub fn unrecorded(repo: &Repo, part: &Participant) -> Option<Missed> {
    let unknown = || Missed::of(repo, Signal::Begin, part, None).filter(|_| is_cut(&file(repo)));
    let missed = all(repo).into_iter().rfind(|missed| missed.is_of(part)).or_else(unknown)?;
    let is_its = missed.prompt.is_none() || part.prompt.is_none() || missed.prompt == part.prompt;
    let is_begin = match missed.part {
        Part::Begin => true,
        // It may have been, unless its agent has begun something since.
        Part::Unread => !missed.is_done(repo).unwrap_or_default(),
        Part::End | Part::Late => false,
    };
    (is_begin && is_its).then_some(missed)
}

/// Remembers that an agent has told of something that cannot be read; once, as long as nothing has begun since.
pub fn note_unread(repo: &Repo, agent: &str, why: &str) -> Result<()> {
    let next = Some(Timelines::new(repo).timeline()?.state.next);
    let is_known = |missed: &Missed| missed.part == Part::Unread && missed.agent == agent && missed.next == next;
    if all(repo).iter().any(is_known) {
        return Ok(());
    }
    let unread = Missed {
        at: rfc3339_now(),
        part: Part::Unread,
        agent: agent.to_owned(),
        session: None,
        prompt: None,
        message: None,
        why: String::new(),
        open: None,
        next,
    };
    unread.write(repo.scratch()?, why)
}

/// Remembers that a turn was begun late.
pub fn note_late(repo: &Repo, part: &Participant) -> Result<()> {
    let late = Missed::of(repo, Signal::Begin, part, None).map(|missed| Missed { part: Part::Late, ..missed });
    late.map_or(Ok(()), |late| late.write(repo.scratch()?, ""))
}

/// What the user is to know, a sentence each.
pub fn told(repo: &Repo) -> Vec<String> {
    let mut all = all(repo);
    let killed = killed(repo).into_iter().filter_map(|(_, missed)| missed);
    all.extend(killed.filter(|missed| !missed.is_done(repo).unwrap_or_default()));
    if all.is_empty() && file(repo).exists() {
        return vec!["a hook of an agent's gave up, and could not write down why".to_owned()];
    }
    let sentence = |(at, missed): (usize, &Missed)| {
        let is_begun = || all[at..].iter().any(|later| later.part == Part::Late && missed.is_begin_of(later));
        let what = match missed.part {
            Part::Begin | Part::Unread if is_begun() => "the prompt's turn was begun late, and is partial",
            Part::Begin => "the prompt was not recorded: what it changed counts as yours",
            Part::End => "the prompt's turn was left open",
            Part::Unread => "a prompt may not be recorded, or its turn may be left open",
            Part::Late if all[..at].iter().any(|earlier| earlier.is_begin_of(missed)) => return None,
            Part::Late => "the prompt's turn was begun late, and is partial",
        };
        let why = if missed.why.is_empty() { "it could not write down why" } else { &missed.why };
        let (agent, why) = (sanitized(&missed.agent), sanitized(why));
        Some(format!("a hook of {agent} gave up {} ({why}): {what}", ago(&missed.at)))
    };
    all.iter().enumerate().filter_map(sentence).collect()
}

/// Forgets it all: the user has been told.
pub fn forget(repo: &Repo) -> Result<()> {
    for (path, _) in killed(repo) {
        remove_if_there(&path)?;
    }
    remove_if_there(&file(repo))
}
