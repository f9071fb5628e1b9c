//! The sessions that have told of a prompt here, and will tell of its end: the records of turns say so, and a file in the scratch
//! directory of those whose turns left none, since they changed nothing.

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
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    agent: String,
    session: Option<String>,
}

impl Told {
    fn of(part: &Participant) -> Self {
        Self { agent: part.agent.clone(), session: part.session.clone() }
    }
}

/// Remembers the sessions of a turn that leaves no record.
pub fn note(repo: &Repo, turn: &Turn) -> Result<()> {
    let mut all = remembered(repo);
    let known = all.len();
    for told in turn.origin.parts.iter().map(Told::of) {
        if !all.contains(&told) {
            all.push(told);
        }
    }
    if all.len() == known {
        return Ok(());
    }
    all.drain(..all.len().saturating_sub(MOST));
    repo.scratch()?;
    let text = serde_json::to_vec(&all).context("write down which sessions have told of a prompt")?;
    replace(&repo.scratch_path(FILE), &text).context("write down which sessions have told of a prompt")
}

/// Whether a session took part in one of the last turns, or in one that left no record.
pub fn has_told(repo: &Repo, timeline: &Stored<'_>, who: &Participant) -> Result<bool> {
    Ok(remembered(repo).contains(&Told::of(who)) || timeline.any_of_last(|turn| turn.origin.part_of(who).is_some())?)
}

fn remembered(repo: &Repo) -> Vec<Told> {
    let text = std::fs::read(repo.scratch_path(FILE)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}
