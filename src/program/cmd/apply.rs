//! `oxundo undo --plan` and `oxundo apply`: a plan now, and this very plan later.

use crate::git::repo::Repo;
use crate::ops::offer;
use crate::ops::offer::{Applied, Asked};
use crate::ops::outcome::Outcome;
use crate::ops::request::Request;
use crate::program::args::{ApplyArgs, Branches, Distance, RedoArgs, RestoreArgs, UndoArgs};
use crate::program::cmd::undo::extent;
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
    let paths = (!args.pathspecs.is_empty()).then_some(&args.pathspecs[..]);
    let request = Request {
        only: args.only.clone(),
        session: args.session.clone(),
        revert: args.revert,
        ..distant(Request::default(), &args.distance)
    };
    offer(repo, ui, &request.paths(paths))
}

/// Makes a plan for a redo.
pub fn offer_redo(repo: &Repo, ui: &Ui, args: &RedoArgs) -> Result<Offer> {
    offer(repo, ui, &distant(Request::redo(), &args.distance))
}

/// Makes a plan for a restore.
pub fn offer_restore(repo: &Repo, ui: &Ui, args: &RestoreArgs) -> Result<Offer> {
    let paths = (!args.pathspecs.is_empty()).then_some(&args.pathspecs[..]);
    offer(repo, ui, &Request { exact: args.exact, ..Request::restore(&args.state) }.paths(paths))
}

fn distant(request: Request, distance: &Distance) -> Request {
    let request = Request { all_branches: distance.branches == Some(Branches::All), ..request };
    request.over(&extent(distance)).edits(distance.edits)
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
