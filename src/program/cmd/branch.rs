//! `oxundo branch`: a branch that starts at a turn.

use crate::git::repo::Repo;
use crate::ops::branch::plan;
use crate::ops::outcome::Outcome;
use crate::ops::turn::session::settled;
use crate::program::args::BranchArgs;
use crate::program::cmd::carry_out;
use crate::program::ui::Ui;
use anyhow::Result;

/// Starts a branch.
pub fn run(repo: &Repo, ui: &Ui, args: &BranchArgs) -> Result<Outcome> {
    let heard = ui.heard();
    let mut locked = settled(repo, &heard, "branch")?;
    let planned = plan(&locked, &args.name, &args.turn, args.edits)?;
    carry_out(planned, &mut locked, args.dry_run)
}
