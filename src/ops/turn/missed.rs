//! What a hook could not do in time, or at all: it is told by the next command, and a turn that could not begin then
//! begins at the agent's next sign.

use crate::git::repo::Repo;
use crate::git::repo::clock::{ago, rfc3339_now};
use crate::git::repo::scratch::{append_line, remove_if_there};
use crate::model::bytes::sanitized;
use crate::model::session::Signal;
use crate::model::turn::Participant;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The file in the scratch directory.
const FILE: &str = "missed";

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
}

impl Missed {
    /// What is missed if nobody acts on this signal; nothing where that is no matter.
    pub fn of(signal: Signal, part: &Participant, message: Option<&str>) -> Option<Self> {
        let missed = match signal {
            Signal::Begin => Part::Begin,
            Signal::End { .. } | Signal::EndAgain => Part::End,
            Signal::Work | Signal::GoOn | Signal::Call | Signal::Called | Signal::Gone => return None,
        };
        let Participant { agent, session, prompt, .. } = part.clone();
        let message = message.map(str::to_owned);
        Some(Self { at: rfc3339_now(), part: missed, agent, session, prompt, message, why: String::new() })
    }

    /// Writes it down, below this scratch directory.
    pub fn write(mut self, scratch: &Path, why: &str) -> Result<()> {
        why.clone_into(&mut self.why);
        append_line(&scratch.join(FILE), &serde_json::to_vec(&self).context("write down what was missed")?)
    }

    fn is_of(&self, part: &Participant) -> bool {
        self.agent == part.agent && self.session == part.session
    }
}

fn file(repo: &Repo) -> PathBuf {
    repo.scratch_path(FILE)
}

fn all(repo: &Repo) -> Vec<Missed> {
    let text = std::fs::read(file(repo)).unwrap_or_default();
    // A line that was cut off, by a full disk, says nothing.
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The prompt whose turn begins late: its beginning was missed, and this signal shows that its agent is at work. Gives the
/// agent's id of it, and the message.
pub fn begun_late(repo: &Repo, signal: Signal, part: &Participant) -> Option<(Option<String>, Option<String>)> {
    if !matches!(signal, Signal::Work | Signal::GoOn | Signal::Call) {
        return None;
    }
    let missed = all(repo).into_iter().rfind(|missed| missed.is_of(part))?;
    let is_its = missed.prompt.is_none() || part.prompt.is_none() || missed.prompt == part.prompt;
    (missed.part == Part::Begin && is_its).then(|| (part.prompt.clone().or(missed.prompt), missed.message))
}

/// Remembers that a turn was begun late.
pub fn note_late(repo: &Repo, part: &Participant) -> Result<()> {
    let late = Missed::of(Signal::Begin, part, None).map(|missed| Missed { part: Part::Late, ..missed });
    late.map_or(Ok(()), |late| late.write(repo.scratch()?, ""))
}

/// What the user is to know, a sentence each.
pub fn told(repo: &Repo) -> Vec<String> {
    let all = all(repo);
    if all.is_empty() && file(repo).exists() {
        return vec!["a hook of an agent's gave up, and could not write down why".to_owned()];
    }
    let sentence = |(at, missed): (usize, &Missed)| {
        let is_begun = || all[at..].iter().any(|later| later.part == Part::Late && later.session == missed.session);
        let what = match missed.part {
            Part::Begin if is_begun() => "the prompt's turn was begun late, and is partial",
            Part::Begin => "the prompt was not recorded: what it changed counts as yours",
            Part::End => "the prompt's turn was left open",
            Part::Late => return None,
        };
        let (agent, why) = (sanitized(&missed.agent), sanitized(&missed.why));
        Some(format!("a hook of {agent} gave up {} ({why}): {what}", ago(&missed.at)))
    };
    all.iter().enumerate().filter_map(sentence).collect()
}

/// Forgets it all: the user has been told.
pub fn forget(repo: &Repo) -> Result<()> {
    remove_if_there(&file(repo))
}
