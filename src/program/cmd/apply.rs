//! `oxundo undo --plan` and `oxundo apply`: a plan now, and this very plan later.

use crate::git::repo::Repo;
use crate::ops::offer;
use crate::ops::offer::{Applied, Asked};
use crate::ops::outcome::Outcome;
use crate::ops::request::Request;
use crate::program::args::{ApplyArgs, RedoArgs, RestoreArgs, UndoArgs};
use crate::program::cmd::hunks;
use crate::program::cmd::request::{distant, restore_request, undo_request};
use crate::program::interrupt;
use crate::program::ui::{Answer, Ui};
use anyhow::Result;

/// A plan, and the id by which it is carried out.
pub struct Offer {
    id: String,
    outcome: Outcome,
}

/// Makes a plan for an undo.
pub fn offer_undo(repo: &Repo, ui: &Ui, args: &UndoArgs) -> Result<Offer> {
    let request = undo_request(args);
    let request = if args.patch { hunks::asked(repo, &ui.heard(), request)? } else { request };
    offer(repo, ui, &request)
}

/// Makes a plan for a redo.
pub fn offer_redo(repo: &Repo, ui: &Ui, args: &RedoArgs) -> Result<Offer> {
    offer(repo, ui, &distant(Request::redo(), &args.distance))
}

/// Makes a plan for a restore.
pub fn offer_restore(repo: &Repo, ui: &Ui, args: &RestoreArgs) -> Result<Offer> {
    let request = restore_request(args);
    let request = if args.patch { hunks::asked(repo, &ui.heard(), request)? } else { request };
    offer(repo, ui, &request)
}

fn offer(repo: &Repo, ui: &Ui, request: &Request) -> Result<Offer> {
    let heard = ui.heard();
    let (id, outcome) = offer::offer(repo, &heard, request, Asked::TYPED)?;
    Ok(Offer { id, outcome })
}

/// Carries one out.
pub fn run(repo: &Repo, ui: &Ui, args: &ApplyArgs) -> Result<Applied> {
    interrupt::watch(repo)?;
    let heard = ui.heard();
    offer::apply(repo, &heard, &args.plan, Asked::TYPED)
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
