//! `oxundo branch`: a branch that starts at a turn.

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
    make(repo, ui, Op::Branch, args.dry_run, |view| plan(view, &args.name, &args.turn, args.edits))
}
