//! `oxundo restore`: files of any turn or checkpoint, brought into the worktree. It deletes
//! nothing, leaves HEAD and the index alone, and is a turn of its own: undo takes it back.

use crate::cli::RestoreArgs;
use crate::cmd::outcome::Outcome;
use crate::cmd::state_at;
use crate::cmd::travel::{merging, nothing};
use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::bytes::sanitized;
use crate::model::checkpoint::{Delta, short_branch};
use crate::model::merge::{Carried, Edits};
use crate::model::plan::{Op, parents};
use crate::model::turn::Made;
use crate::model::walk::{Leg, travel};
use crate::turns;
use crate::ui::Ui;
use anyhow::Result;
use gix::bstr::ByteSlice;

/// Brings files back.
///
/// # Errors
///
/// A refusal, with nothing changed, or a failure, with everything taken back.
pub fn run(repo: &Repo, ui: &Ui, args: &RestoreArgs) -> Result<Outcome> {
    let _lock = repo.lock("restore")?;
    turns::settle(repo, ui)?;
    let stored = Timelines::new(repo).timeline()?;
    let goal = state_at(repo, &stored, &args.state)?;
    let capture = turns::present(repo, &stored)?;
    let now = &capture.checkpoint;
    let mut files = Checkpoints::new(repo).file_changes(now, &goal)?;
    if !args.pathspecs.is_empty() {
        let mut selection = Index::new(repo).selection(&args.pathspecs)?;
        if !Objects::new(repo).paths_of(goal.worktree)?.iter().any(|path| selection.takes(path.as_bstr())) {
            return Err(Refusal::new(Code::NotFound, "that state has no file that the pathspec matches")
                .hint(format!("run 'oxundo show {}' to see what it has", short_branch(&args.state)))
                .into());
        }
        files.retain(|path, _| selection.takes(path.as_bstr()));
    }
    files.retain(|_, change| change.to.is_some());
    let mut directories = Checkpoints::new(repo).directory_changes(now, &goal, &files)?;
    directories.retain(|directory, change| {
        let within = || files.keys().any(|file| parents(file.as_bstr()).any(|parent| parent == directory.as_bstr()));
        change.to.is_some() && (args.pathspecs.is_empty() || within())
    });
    let delta = Delta { files, directories, ..Delta::default() };
    let legs = [Leg { turn: 0, delta, carried: Carried::default() }];
    let facts = Checkpoints::new(repo).facts(&legs, now, &capture.index)?;
    let plan = merging(repo, |merge| travel(Op::Restore, &legs, &facts, Edits::Merge, merge))?;
    if plan.is_empty() {
        return Err(nothing(Op::Restore, "every file that was there then is as it was").into());
    }
    let state = sanitized(&args.state);
    let mut outcome = Outcome {
        what: format!("{} the files of {state}", if args.dry_run { "Would restore" } else { "Restored" }),
        turns: Vec::new(),
        turn: None,
        hints: vec!["'oxundo undo' takes it back".to_owned()],
        plan,
        rescue: None,
        conversations: Vec::new(),
        dry_run: args.dry_run,
    };
    if !args.dry_run {
        super::make(repo, ui, Made::Restore, format!("restore {}", args.state), &mut outcome)?;
    }
    Ok(outcome)
}
