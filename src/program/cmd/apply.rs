//! `oxundo undo --plan` and `oxundo apply`: a plan now, and this very plan later.

use crate::error::Refusal;
use crate::git::repo::Repo;
use crate::ops::offer;
use crate::ops::offer::{Applied, Asked};
use crate::ops::outcome::Outcome;
use crate::ops::request::Request;
use crate::program::args::{ApplyArgs, RedoArgs, RestoreArgs, UndoArgs};
use crate::program::cmd::hunks;
use crate::program::cmd::request::{distant, restore_request, undo_request};
use crate::program::interrupt;
use crate::program::typed::for_the_same_place;
use crate::program::ui::{Answer, Ui};
use anyhow::{Context, Result};
use std::env::set_current_dir;
use std::path::Path;

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
    let heard = ui.heard();
    let Some(there) = offer::made_in(repo, &args.plan) else {
        interrupt::watch(repo)?;
        return offer::apply(repo, &heard, &args.plan, Asked::TYPED);
    };
    // As '-C' does it.
    set_current_dir(&there).with_context(|| format!("go to '{}'", there.display()))?;
    let mut repo = Repo::open(Path::new("."))?;
    repo.set_progress(ui.watch());
    interrupt::watch(&repo)?;
    let applied = offer::apply(&repo, &heard, &args.plan, Asked::TYPED);
    applied.map_err(|error| match error.downcast::<Refusal>() {
        Ok(mut refusal) => {
            let line = ["oxundo".into(), "-C".into(), there.into_os_string()];
            refusal.hints.iter_mut().for_each(|hint| *hint = for_the_same_place(hint, &line));
            refusal.into()
        }
        Err(error) => error,
    })
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
