//! `oxundo restore`: files of any turn or checkpoint, brought into the worktree.

use crate::git::repo::Repo;
use crate::ops::outcome::Outcome;
use crate::ops::restore::plan;
use crate::ops::turn::session::settled;
use crate::program::args::RestoreArgs;
use crate::program::cmd::carry_out;
use crate::program::ui::Ui;
use anyhow::Result;

/// Brings files back.
pub fn run(repo: &Repo, ui: &Ui, args: &RestoreArgs) -> Result<Outcome> {
    let heard = ui.heard();
    let mut locked = settled(repo, &heard, "restore")?;
    let planned = plan(&locked, &args.state, &args.pathspecs)?;
    carry_out(planned, &mut locked, args.dry_run)
}
