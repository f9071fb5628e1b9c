//! The sessions that have told of a prompt here, and will tell of its end; and those that tell of their calls: the records of turns
//! say so, and a file in the scratch directory of those whose turns left none, since they changed nothing.

use crate::git::repo::Repo;
use crate::git::repo::scratch::replace;
use crate::git::timeline::stored::Stored;
use crate::model::turn::{Participant, Turn};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The file in the scratch directory.
const FILE: &str = "sessions";

/// No more are remembered, the last ones.
const MOST: usize = 64;

/// A session.
#[derive(Serialize, Deserialize)]
struct Told {
    agent: String,
    session: Option<String>,
    /// Whether it tells of its calls.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    calls: bool,
}

impl Told {
    fn is_of(&self, part: &Participant) -> bool {
        (&self.agent, &self.session) == (&part.agent, &part.session)
    }
}

/// Remembers the sessions of a turn that leaves no record, and whether they tell of their calls.
pub fn note(repo: &Repo, turn: &Turn, calls: bool) -> Result<()> {
    let mut all = remembered(repo);
    let mut is_new = false;
    for part in &turn.origin.parts {
        match all.iter_mut().find(|told| told.is_of(part)) {
            Some(told) if told.calls || !calls => continue,
            Some(told) => told.calls = true,
            None => all.push(Told { agent: part.agent.clone(), session: part.session.clone(), calls }),
        }
        is_new = true;
    }
    if !is_new {
        return Ok(());
    }
    all.drain(..all.len().saturating_sub(MOST));
    repo.scratch()?;
    let text = serde_json::to_vec(&all).context("write down which sessions have told of a prompt")?;
    replace(&repo.scratch_path(FILE), &text).context("write down which sessions have told of a prompt")
}

/// Whether a session took part in one of the last turns, or in one that left no record.
pub fn has_told(repo: &Repo, timeline: &Stored<'_>, who: &Participant) -> Result<bool> {
    Ok(remembered(repo).iter().any(|told| told.is_of(who))
        || timeline.any_of_last(|turn| turn.origin.part_of(who).is_some())?)
}

/// Whether a session has told of all its calls in one of the last turns, or in one that left no record.
pub fn has_told_calls(repo: &Repo, timeline: &Stored<'_>, who: &Participant) -> Result<bool> {
    let has_told = |turn: &Turn| turn.users_end && turn.origin.part_of(who).is_some();
    let is_remembered = || remembered(repo).iter().any(|told| told.calls && told.is_of(who));
    Ok(timeline.any_of_last(has_told)? || is_remembered())
}

fn remembered(repo: &Repo) -> Vec<Told> {
    let text = std::fs::read(repo.scratch_path(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
