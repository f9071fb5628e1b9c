//! `oxundo undo -p` and `oxundo restore -p`: git asks, and the answers are a plan like any other.

use crate::config::Config;
use crate::git::repo::Repo;
use crate::ops::outcome::Outcome;
use crate::ops::request::Request;
use crate::ops::turn::session::{By, Command, look_ahead};
use crate::ops::view::View;
use crate::program::cmd::make;
use crate::program::ui::Ui;
use crate::warning::Warn;
use anyhow::Result;

/// Asks, and does what was chosen.
pub fn run(repo: &Repo, ui: &Ui, request: Request, dry_run: bool) -> Result<Outcome> {
    let request = asked(repo, &ui.heard(), request)?;
    let forks = request.conversation || Config(repo).forks_conversations()?;
    let plan = |view: &View<'_>| request.plan_parts(&view.forking(forks));
    make(repo, ui, request.op(), dry_run, plan)
}

/// What was asked for, with what was chosen of it. Nobody is kept waiting while the user thinks.
pub fn asked(repo: &Repo, heard: Warn<'_>, request: Request) -> Result<Request> {
    // What only looks makes nothing that lasts.
    let look = Repo::open(&repo.top().join(repo.prefix()))?;
    let command = Command { op: request.op(), by: By::Typed };
    let questions = look_ahead(&look, heard, command, |view| request.questions(view))?;
    Ok(Request { chosen: Some(questions.ask(repo)?), ..request })
}
