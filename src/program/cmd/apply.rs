//! `oxundo undo --plan` and `oxundo apply`: a plan now, and this very plan later.

use crate::git::repo::Repo;
use crate::ops::offer;
use crate::ops::offer::{Applied, Request};
use crate::ops::outcome::Outcome;
use crate::program::args::{ApplyArgs, Distance, RedoArgs, UndoArgs};
use crate::program::interrupt;
use crate::program::ui::{Answer, Ui};
use anyhow::Result;
use clap::ValueEnum;

/// A plan, and the id by which it is carried out.
pub struct Offer {
    id: String,
    outcome: Outcome,
}

/// Makes a plan for an undo.
pub fn offer_undo(repo: &Repo, ui: &Ui, args: &UndoArgs) -> Result<Offer> {
    offer(repo, ui, &Request { only: args.only.clone(), revert: args.revert, ..request(&args.distance) })
}

/// Makes a plan for a redo.
pub fn offer_redo(repo: &Repo, ui: &Ui, args: &RedoArgs) -> Result<Offer> {
    offer(repo, ui, &Request { redo: true, ..request(&args.distance) })
}

fn request(distance: &Distance) -> Request {
    let edits = distance.edits.and_then(|edits| Some(edits.to_possible_value()?.get_name().to_owned()));
    Request { to: distance.to.clone(), steps: distance.steps().unwrap_or(1), edits, ..Request::default() }
}

fn offer(repo: &Repo, ui: &Ui, request: &Request) -> Result<Offer> {
    let heard = ui.heard();
    let (id, outcome) = offer::offer(repo, &heard, request)?;
    Ok(Offer { id, outcome })
}

/// Carries one out.
pub fn run(repo: &Repo, ui: &Ui, args: &ApplyArgs) -> Result<Applied> {
    interrupt::watch(repo)?;
    let heard = ui.heard();
    offer::apply(repo, &heard, &args.plan)
}

impl Answer for Offer {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let mut told = self.outcome.json();
        told["plan"] = self.id.as_str().into();
        Ok(told)
    }

    fn text(&self) -> String {
        format!("Plan {}\n{}", self.id, self.outcome.text())
    }

    fn hints(&self) -> Vec<String> {
        vec![format!("'oxundo apply {}' does just that", self.id)]
    }
}

impl Answer for Applied {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        match self {
            Self::Now(outcome) => Ok(outcome.json()),
            Self::Before(done) => Ok(done.json.clone()),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Now(outcome) => outcome.text(),
            Self::Before(done) => format!("Done before: {}\n", done.what),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Now(outcome) => outcome.hints(),
            Self::Before(_) => Vec::new(),
        }
    }
}
