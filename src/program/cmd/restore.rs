//! `oxundo restore`: files of any turn or checkpoint, brought into the worktree.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::model::bytes::quoted_line;
use crate::model::plan::Op;
use crate::ops::exact;
use crate::ops::outcome::Outcome;
use crate::ops::restore::plan;
use crate::program::args::RestoreArgs;
use crate::program::cmd::request::restore_request;
use crate::program::cmd::{hunks, make};
use crate::program::ui::Ui;
use crate::program::usage::line;
use anyhow::{Error, Result};
use std::path::Path;

/// Brings files back.
pub fn run(repo: &Repo, ui: &Ui, args: &RestoreArgs) -> Result<Outcome> {
    if args.patch {
        return hunks::run(repo, ui, restore_request(args), args.dry_run);
    }
    let made = make(repo, ui, Op::Restore, args.dry_run, |view| {
        if args.exact { exact::plan(view, &args.state) } else { plan(view, &args.state, &args.pathspecs) }
    });
    made.map_err(|error| or_a_path(error, &args.state))
}

/// Who names a file alone means it as it was at the end of the last turn.
fn or_a_path(error: Error, words: &str) -> Error {
    match error.downcast::<Refusal>() {
        Ok(mut refusal) if refusal.code == Code::NotFound && Path::new(words).symlink_metadata().is_ok() => {
            refusal.hints.insert(0, format!("run {} for the file", quoted_line(&line(["restore", "@", "--", words]))));
            refusal.into()
        }
        Ok(refusal) => refusal.into(),
        Err(error) => error,
    }
}
