//! `oxundo restore`: files of any turn or checkpoint, brought into the worktree.

use crate::git::repo::Repo;
use crate::model::plan::Op;
use crate::ops::exact;
use crate::ops::outcome::Outcome;
use crate::ops::restore::plan;
use crate::program::args::RestoreArgs;
use crate::program::cmd::request::restore_request;
use crate::program::cmd::{hunks, make};
use crate::program::ui::Ui;
use anyhow::Result;

/// Brings files back.
pub fn run(repo: &Repo, ui: &Ui, args: &RestoreArgs) -> Result<Outcome> {
    if args.patch {
        return hunks::run(repo, ui, restore_request(args), args.dry_run);
    }
    make(repo, ui, Op::Restore, args.dry_run, |view| {
        if args.exact { exact::plan(view, &args.state) } else { plan(view, &args.state, &args.pathspecs) }
    })
}
