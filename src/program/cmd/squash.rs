//! `oxundo squash`: one clean commit out of the commits of the last turns.

use crate::git::repo::Repo;
use crate::model::plan::Op;
use crate::ops::outcome::Outcome;
use crate::ops::squash::{DirtyCommits, Wish, plan};
use crate::program::args::SquashArgs;
use crate::program::cmd::make;
use crate::program::ui::Ui;
use anyhow::Result;

/// Makes one commit out of several.
pub fn run(repo: &Repo, ui: &Ui, args: &SquashArgs) -> Result<Outcome> {
    let wish = Wish {
        turns: args.turns.clone(),
        message: args.message.clone(),
        author: args.author.clone(),
        dirty: if args.all { DirtyCommits::Fold } else { DirtyCommits::Stay },
    };
    make(repo, ui, Op::Squash, args.dry_run, |view| plan(view, &wish))
}
