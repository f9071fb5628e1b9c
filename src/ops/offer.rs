//! Plans that are made now and carried out later: as they were shown, once, or not at all.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::repo::scratch::{verify, write_record};
use crate::model::bytes::{sanitized, shell_word};
use crate::model::merge::Edits;
use crate::model::plan::Op;
use crate::ops::outcome::Outcome;
use crate::ops::planned::Planned;
use crate::ops::revert::{self, Which};
use crate::ops::side_effects;
use crate::ops::side_effects::Foreseen;
use crate::ops::turn::session::{Command, look_ahead, settled_for};
use crate::ops::undo;
use crate::ops::undo::range::Extent;
use crate::ops::view::View;
use crate::warning::Warn;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// So many plans are remembered.
const REMEMBERED: usize = 50;

/// Where they are, in the scratch directory.
const PLANS: &str = "plans";

/// What was asked for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Request {
    /// Whether to redo.
    pub redo: bool,
    /// Until this turn is the last one done.
    pub to: Option<String>,
    /// Over so many turns.
    pub steps: u64,
    /// This turn alone.
    pub only: Option<String>,
    /// By commits on top.
    pub revert: bool,
    /// What becomes of the user's edits, in the word of the command line.
    pub edits: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Offered {
    v: u32,
    id: String,
    request: Request,
    /// What was answered when it was carried out.
    done: Option<Done>,
}

/// What was answered when a plan was carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    /// In words.
    pub what: String,
    /// As JSON.
    pub json: serde_json::Value,
}

/// What became of a plan.
pub enum Applied {
    /// It was carried out.
    Now(Box<Outcome>),
    /// It had been before.
    Before(Done),
}

impl Request {
    fn command(&self) -> Command {
        Command { op: if self.redo { Op::Redo } else { Op::Undo }, is_typed: true }
    }

    /// The line that asks for it.
    fn line(&self) -> String {
        let mut line = format!("oxundo {} --plan", self.command().op.word());
        let steps = Some(self.steps.to_string()).filter(|_| self.steps > 1 && self.to.is_none());
        let values = [("to", &self.to), ("steps", &steps), ("only", &self.only), ("edits", &self.edits)];
        for (option, value) in values.into_iter().filter_map(|(option, value)| Some((option, value.as_ref()?))) {
            line.push_str(&format!(" --{option} {}", shell_word(value.as_bytes())));
        }
        if self.revert {
            line.push_str(" --revert");
        }
        line
    }

    fn plan(&self, view: &View<'_>) -> Result<Planned> {
        let edits = match self.edits.as_deref() {
            Some("merge") => Some(Edits::Merge),
            Some("refuse") => Some(Edits::Refuse),
            Some("overwrite") => Some(Edits::Overwrite),
            _ => None,
        };
        let extent = self.to.clone().map_or(Extent::Steps(self.steps), Extent::To);
        let which = match &self.only {
            Some(turn) => Which::Only(turn.clone()),
            None if self.revert => Which::Last(extent),
            None => return Ok(Planned::Walk(Box::new(undo::plan(view, self.command().op, &extent, edits)?))),
        };
        Ok(Planned::Made(Box::new(revert::plan(view, &which, &[], edits)?)))
    }
}

impl Foreseen for Result<Planned, Done> {
    fn foreseen(&self) -> Option<Outcome> {
        self.as_ref().ok().map(Planned::preview)
    }

    fn digest(&self, view: &View<'_>) -> Result<String> {
        self.as_ref().map_or_else(|done| Ok(done.what.clone()), |planned| planned.digest(view))
    }
}

/// Plans, changes nothing, and remembers it; gives the plan's id.
pub fn offer(repo: &Repo, heard: Warn<'_>, request: &Request) -> Result<(String, Outcome)> {
    look_ahead(repo, heard, request.command(), |view| {
        let planned = request.plan(view)?;
        let id = planned.digest(view)?;
        let mut offers = remembered(repo);
        offers.retain(|offered| offered.id != id);
        offers.push(Offered { v: 1, id: id.clone(), request: request.clone(), done: None });
        remember(repo, &offers)?;
        side_effects::name_who_is_asked(view, request.command().op);
        Ok((id, planned.preview()))
    })
}

/// Carries a plan out, if it would still do the same, and has not been carried out yet.
pub fn apply(repo: &Repo, heard: Warn<'_>, id: &str) -> Result<Applied> {
    let offered = find(repo, id)?;
    let is_checked = Cell::new(false);
    let plan = |view: &View<'_>| {
        // Who has the lock now may have done it.
        if let Some(done) = find(repo, id)?.done {
            return Ok(Err(done));
        }
        let planned = offered.request.plan(view).map_err(|error| stale(id, &offered.request, Some(error)))?;
        // When an open turn was closed for it, the timeline is another one.
        if !is_checked.replace(true) && planned.digest(view)? != id {
            return Err(stale(id, &offered.request, None));
        }
        Ok(Ok(planned))
    };
    settled_for(repo, heard, offered.request.command(), plan, |locked, planned, _| {
        let planned = match planned {
            Ok(planned) => planned,
            Err(done) => return Ok(Applied::Before(done)),
        };
        let outcome = planned.carry_out(locked)?;
        let mut offers = remembered(repo);
        let done = Done { what: outcome.what.clone(), json: outcome.json() };
        offers.iter_mut().filter(|offered| offered.id == id).for_each(|offered| offered.done = Some(done.clone()));
        remember(repo, &offers)?;
        Ok(Applied::Now(Box::new(outcome)))
    })
}

fn stale(id: &str, request: &Request, error: Option<anyhow::Error>) -> anyhow::Error {
    let refusal = Refusal::new(Code::Stale, format!("plan '{}' would not do now what it was to do", sanitized(id)))
        .hint(format!("run '{}' to make another", request.line()));
    match error {
        Some(error) => refusal.hint(format!("{error:#}")).into(),
        None => refusal.into(),
    }
}

fn find(repo: &Repo, id: &str) -> Result<Offered> {
    let offered = remembered(repo).into_iter().find(|offered| offered.id == id);
    offered.ok_or_else(|| {
        Refusal::new(Code::NotFound, format!("there is no plan '{}' here", sanitized(id)))
            .hint("run 'oxundo undo --plan' to make one")
            .into()
    })
}

/// The plans that were made last. What is damaged is as if it had not been made.
fn remembered(repo: &Repo) -> Vec<Offered> {
    let record = std::fs::read(repo.scratch_path(PLANS)).unwrap_or_default();
    verify(&record).and_then(|record| serde_json::from_slice(record).ok()).unwrap_or_default()
}

fn remember(repo: &Repo, offers: &[Offered]) -> Result<()> {
    let last = &offers[offers.len().saturating_sub(REMEMBERED)..];
    write_record(repo, PLANS, &serde_json::to_vec(last)?);
    Ok(())
}
