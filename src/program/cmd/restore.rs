//! `oxundo restore`: files of any turn or checkpoint, brought into the worktree.

use crate::git::repo::Repo;
use crate::model::plan::Op;
use crate::ops::outcome::Outcome;
use crate::ops::restore::plan;
use crate::program::args::RestoreArgs;
use crate::program::cmd::make;
use crate::program::ui::Ui;
use anyhow::Result;

/// Brings files back.
pub fn run(repo: &Repo, ui: &Ui, args: &RestoreArgs) -> Result<Outcome> {
    make(repo, ui, Op::Restore, args.dry_run, |view| plan(view, &args.state, &args.pathspecs))
}
