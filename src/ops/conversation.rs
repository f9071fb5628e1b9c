//! The agent's conversation, which belongs to a turn and is outside the worktree: its own commands take it back, or a copy that
//! ends before what is undone takes its place.

use crate::agents::adapters::{Adapter, adapter};
use crate::agents::fork::{Fork, Transcript};
use crate::agents::talk::Sought;
use crate::git::repo::Repo;
use crate::git::repo::scratch::{verify, write_record};
use crate::model::bytes::sanitized;
use crate::model::turn::{Made, Participant, Turn};
use crate::ops::locked::Locked;
use crate::ops::view::View;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where copies are noted, in the scratch directory.
const FORKS: &str = "forks";

/// So many copies are remembered.
const REMEMBERED: usize = 200;

/// Whether turns are undone as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// They are.
    Whole,
    /// Only parts of them.
    Parts,
}

/// The conversations of some turns, and what becomes of them.
#[derive(Clone, Debug, Default)]
pub struct Conversations {
    said: Vec<Said>,
    /// For each session of which a copy was asked for: the copy, or why there is none.
    forks: BTreeMap<Session, Result<Fork, String>>,
}

/// An agent's session.
type Session = (String, String);

/// A session's part in a turn.
#[derive(Clone, Debug)]
struct Said {
    turn: u64,
    part: Participant,
    sought: Sought,
}

/// A copy that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Noted {
    agent: String,
    session: String,
    fork: String,
    /// The turns before which it ends, of this session.
    turns: Vec<u64>,
}

impl Said {
    fn all(turns: &[Turn]) -> Vec<Self> {
        let said =
            |turn: &Turn, part: &Participant| Self { turn: turn.turn, part: part.clone(), sought: sought(turn, part) };
        turns.iter().flat_map(|turn| turn.origin.parts.iter().map(move |part| said(turn, part))).collect()
    }

    fn session(&self) -> Option<Session> {
        Some((self.part.agent.clone(), self.part.session.clone()?))
    }
}

/// With what the session's part in a turn began: it may have got more than one prompt in it.
fn sought(turn: &Turn, part: &Participant) -> Sought {
    let first = part.asked.first();
    let id = match first {
        Some(first) if part.asked.len() > 1 => first.id.clone(),
        _ => part.prompt.clone(),
    };
    let alone = || turn.prompt.clone().filter(|_| turn.origin.parts.len() == 1);
    let text = first.and_then(|first| first.prompt.clone()).or_else(alone);
    Sought { id, text, from: part.from.unwrap_or(0), to: part.to }
}

impl Conversations {
    /// Those of turns that are undone, or brought back: nothing becomes of them.
    pub fn told(turns: &[Turn]) -> Self {
        Self { said: Said::all(turns), forks: BTreeMap::new() }
    }

    /// Those of turns that are undone; plans a copy of each session's where that was asked for.
    pub fn undone(view: &View<'_>, turns: &[Turn], extent: Extent) -> Result<Self> {
        Self::told(turns).planned(view, extent)
    }

    /// As [`Self::undone`], of the share that one session had.
    pub fn of_session(self, view: &View<'_>, session: &str) -> Result<Self> {
        let said = self.said.into_iter().filter(|said| said.part.session.as_deref() == Some(session)).collect();
        Self { said, ..Self::default() }.planned(view, Extent::Whole)
    }

    fn planned(mut self, view: &View<'_>, extent: Extent) -> Result<Self> {
        if !view.takes_conversation {
            return Ok(self);
        }
        let mut sessions: BTreeMap<Session, Vec<&Said>> = BTreeMap::new();
        for said in &self.said {
            if let Some(session) = said.session() {
                sessions.entry(session).or_default().push(said);
            }
        }
        let undone: BTreeSet<u64> = self.said.iter().map(|said| said.turn).collect();
        let mut read = BTreeMap::new();
        for (session, said) in sessions {
            let found = match extent {
                Extent::Parts => Err(in_parts()),
                Extent::Whole if some_stay(view, &session, &said, &undone)? => {
                    Err("what is undone is not the end of it: later turns of the session stay".to_owned())
                }
                Extent::Whole => with_marks(&session, &said),
            };
            read.insert(session, found);
        }
        // A copy of a copy has what the first one has.
        let marks = |agent: &str| -> BTreeSet<String> {
            let its = read.iter().filter(|((name, _), _)| name == agent);
            its.filter_map(|(_, found)| Some(&found.as_ref().ok()?.1)).flatten().cloned().collect()
        };
        let marks: BTreeMap<String, _> = read.keys().map(|(agent, _)| (agent.clone(), marks(agent))).collect();
        self.forks = (read.into_iter())
            .map(|(session, found)| {
                let marks = &marks[&session.0];
                let fork = found.and_then(|(transcript, _)| transcript.fork(marks));
                (session, fork)
            })
            .collect();
        Ok(self)
    }

    /// As JSON: each session's part in each turn.
    pub fn json(&self) -> Vec<Value> {
        let row = |said: &Said| {
            let part = &said.part;
            let found = said.session().and_then(|session| self.forks.get(&session));
            let fork = found.and_then(|found| found.as_ref().ok()).map(|fork| {
                json!({
                    "session": fork.session,
                    "transcript": fork.path.to_string_lossy(),
                    "resume": adapter(&part.agent).and_then(|adapter| adapter.resume_command(&fork.session)),
                })
            });
            json!({
                "turn": said.turn,
                "agent": part.agent,
                "session": part.session,
                "prompt": part.prompt,
                "transcript": part.transcript,
                "from": part.from,
                "to": part.to,
                "resume": resume(part),
                "fork": fork,
                "not_forked": found.and_then(|found| found.as_ref().err()),
            })
        };
        self.said.iter().map(row).collect()
    }

    /// The copies, in a line each.
    pub fn lines(&self, dry_run: bool) -> Vec<String> {
        let forks = self.forks.iter().filter_map(|((agent, _), fork)| Some((adapter(agent)?, fork.as_ref().ok()?)));
        let mut lines: Vec<String> = forks
            .filter_map(|(adapter, fork)| {
                let command = adapter.resume_command(&fork.session)?;
                Some(if dry_run {
                    format!("Would fork {}'s conversation before it", adapter.title)
                } else {
                    format!("Forked {}'s conversation before it: {command}", adapter.title)
                })
            })
            .collect();
        lines.dedup();
        lines
    }

    /// How to take the agents back to where the worktree is now, or at least how to reach them.
    pub fn hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        for said in &self.said {
            let part = &said.part;
            let (Some(command), Some(adapter)) = (resume(part), adapter(&part.agent)) else { continue };
            let is_forked = said.session().is_some_and(|session| matches!(self.forks.get(&session), Some(Ok(_))));
            let hint = match adapter.rewind {
                _ if is_forked => format!("'{command}' takes up {}'s conversation as it was", adapter.title),
                Some(rewind) => still(adapter, &format!("'{command}', then '{rewind}' takes the conversation back")),
                None => still(adapter, &format!("'{command}' takes the conversation up again, and takes nothing back")),
            };
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        hints
    }

    /// What takes the conversations up of which there are copies.
    pub fn ways_back(&self) -> Vec<String> {
        if self.forks.values().any(Result::is_ok) { self.hints() } else { Vec::new() }
    }

    /// Says of which there is no copy though one was asked for.
    pub fn warn(&self, view: &View<'_>) {
        for ((agent, _), fork) in &self.forks {
            if let Err(why) = fork {
                warn(view, agent, why);
            }
        }
    }

    /// Makes the copies, and does what they go with after that: whoever finds a copy finds it whole, and where that fails they go.
    pub fn go_with<'r, T>(
        &mut self,
        locked: &mut Locked<'r>,
        carry_out: impl FnOnce(&mut Locked<'r>) -> Result<T>,
    ) -> Result<T> {
        self.make(locked);
        let done = carry_out(locked);
        match &done {
            Ok(_) => self.note(locked.repo),
            Err(_) => self.forks.values().flatten().for_each(Fork::take_back),
        }
        done
    }

    fn make(&mut self, view: &View<'_>) {
        for ((agent, _), fork) in &mut self.forks {
            if let Err(why) = fork.as_ref().map_or(Ok(()), Fork::make) {
                warn(view, agent, &why);
                *fork = Err(why);
            }
        }
    }

    /// Notes the copies, so that redo can point to what they were made of.
    fn note(&self, repo: &Repo) {
        let forks = self.forks.iter().filter_map(|(session, fork)| Some((session, fork.as_ref().ok()?)));
        let made: Vec<Noted> = forks.map(|(session, fork)| self.noted(session, fork)).collect();
        if made.is_empty() {
            return;
        }
        let mut all = noted(repo);
        all.retain(|old| !made.iter().any(|new| (&old.agent, &old.fork) == (&new.agent, &new.fork)));
        all.extend(made);
        let last = &all[all.len().saturating_sub(REMEMBERED)..];
        if let Ok(record) = serde_json::to_vec(last) {
            write_record(repo, FORKS, &record);
        }
    }

    fn noted(&self, session: &Session, fork: &Fork) -> Noted {
        let its = self.said.iter().filter(|said| said.session().as_ref() == Some(session));
        let turns = its.map(|said| said.turn).collect();
        let (agent, session) = session.clone();
        Noted { agent, session, fork: fork.session.clone(), turns }
    }
}

/// What takes up the conversations as they were before copies were made that end before these turns.
pub fn originals(repo: &Repo, turns: &[Turn]) -> Vec<String> {
    let about = |turn: &Turn| match &turn.made {
        Some(Made::Revert(turns)) => turns.clone(),
        _ => vec![turn.turn],
    };
    let turns: BTreeSet<u64> = turns.iter().flat_map(about).collect();
    let mut hints = Vec::new();
    for noted in noted(repo).iter().filter(|noted| noted.turns.iter().any(|turn| turns.contains(turn))) {
        let Some(adapter) = adapter(&noted.agent) else { continue };
        let Some(command) = adapter.resume_command(&noted.session) else { continue };
        let hint = format!("'{command}' takes up {}'s conversation with it", adapter.title);
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    hints
}

fn warn(view: &View<'_>, agent: &str, why: &str) {
    let name = adapter(agent).map_or_else(|| sanitized(agent), |adapter| adapter.title.to_owned());
    view.warn(format!("{name}'s conversation is not forked: {why}"));
}

fn noted(repo: &Repo) -> Vec<Noted> {
    let record = std::fs::read(repo.scratch_path(FORKS)).unwrap_or_default();
    verify(&record).and_then(|record| serde_json::from_slice(record).ok()).unwrap_or_default()
}

fn in_parts() -> String {
    "only a part of what it is about is undone".to_owned()
}

/// Whether a turn of the session, or of a copy that has the same prompts in it, stays done above one that is undone.
fn some_stay(view: &View<'_>, session: &Session, said: &[&Said], undone: &BTreeSet<u64>) -> Result<bool> {
    let Some(first) = said.iter().map(|said| said.turn).min() else { return Ok(false) };
    let mut family = BTreeSet::from([session.1.clone()]);
    for noted in noted(view.repo) {
        let is_later = noted.turns.iter().all(|turn| *turn > first);
        if noted.agent == session.0 && is_later && family.contains(&noted.session) {
            family.insert(noted.fork);
        }
    }
    let is_its = |part: &Participant| {
        part.agent == session.0 && part.session.as_ref().is_some_and(|session| family.contains(session))
    };
    let (mut at, mut out) = (view.top()?, undone.clone());
    while let Some(number) = at.filter(|number| *number > first) {
        let turn = view.timeline.require_turn(number)?;
        if let Some(Made::Revert(turns)) = &turn.made {
            out.extend(turns);
        }
        if !out.contains(&number) && turn.origin.parts.iter().any(is_its) {
            return Ok(true);
        }
        at = turn.previous;
    }
    Ok(false)
}

/// Reads a session's transcript, and finds the undone prompts in it.
fn with_marks(session: &Session, said: &[&Said]) -> Result<(Transcript, BTreeSet<String>), String> {
    let (agent, id) = session;
    let adapter = adapter(agent).ok_or_else(|| "the agent is not known".to_owned())?;
    if adapter.transcript.is_none() {
        return Err(format!("oxundo cannot, for {}", adapter.title));
    }
    let path = said.iter().find_map(|said| said.part.transcript.as_deref());
    let path = path.ok_or_else(|| "its file was not recorded".to_owned())?;
    let transcript = Transcript::read(adapter, id, Path::new(path))?;
    let prompts: Vec<Sought> = said.iter().map(|said| said.sought.clone()).collect();
    let marks = transcript.marks(&prompts)?;
    Ok((transcript, marks))
}

fn still(adapter: &Adapter, how: &str) -> String {
    format!("{} still remembers it: {how}", adapter.title)
}

fn resume(part: &Participant) -> Option<String> {
    adapter(&part.agent)?.resume_command(part.session.as_deref()?)
}
