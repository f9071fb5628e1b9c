//! `oxundo branch`: a branch that starts at a turn.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::model::bytes::quoted_line;
use crate::model::plan::Op;
use crate::ops::branch::plan;
use crate::ops::outcome::Outcome;
use crate::ops::resolve::resolve;
use crate::program::args::BranchArgs;
use crate::program::cmd::make;
use crate::program::ui::Ui;
use crate::program::usage::line;
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
    make(repo, ui, Op::Branch, args.dry_run, |view| {
        let planned = plan(view, name, &args.turn, args.edits);
        // Other commands take the turn first.
        let is_swapped = || resolve(view, &args.turn).is_err() && name != &args.turn && resolve(view, name).is_ok();
        planned.map_err(|error| match error.downcast::<Refusal>() {
            Ok(refusal) if refusal.code == Code::NotFound && is_swapped() => {
                let meant = quoted_line(&line(["branch", &args.turn, name]));
                Refusal { hints: vec![format!("the name comes first: {meant}")], ..refusal }.into()
            }
            Ok(refusal) => refusal.into(),
            Err(error) => error,
        })
    })
}
