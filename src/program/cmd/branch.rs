//! `oxundo branch`: a branch that starts at a turn.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::model::plan::Op;
use crate::ops::branch::plan;
use crate::ops::outcome::Outcome;
use crate::program::args::BranchArgs;
use crate::program::cmd::make;
use crate::program::ui::Ui;
use anyhow::Result;

/// Starts a branch.
pub fn run(repo: &Repo, ui: &Ui, args: &BranchArgs) -> Result<Outcome> {
    let name = &args.name;
    if args.turn == "@" && (name == "@" || name.parse::<u64>().is_ok()) {
        let free = if name == "@" { "new".to_owned() } else { format!("turn-{name}") };
        return Err(Refusal::new(Code::Usage, format!("'{name}' would be the new branch's name"))
            .hint(format!("run 'oxundo branch {free} {name}' to start one at that turn"))
            .into());
    }
    make(repo, ui, Op::Branch, args.dry_run, |view| plan(view, &args.name, &args.turn, args.edits))
}
