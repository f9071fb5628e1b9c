//! `oxundo branch`: a branch that starts at a turn, with HEAD on it and the worktree and index as
//! the turn left them, the user's edits merged in. The branch that HEAD was on stays as it is, and
//! so do its turns. It is a turn of its own: undo takes the branch away and goes back.

use crate::cli::{BranchArgs, Distance};
use crate::cmd::outcome::Outcome;
use crate::cmd::travel::{Prepared, Route};
use crate::cmd::{resolve, state_at};
use crate::config::Config;
use crate::error::{Code, Refusal};
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::bytes::sanitized;
use crate::model::plan::{BranchMove, Op, Plan};
use crate::model::turn::Made;
use crate::turns;
use crate::ui::Ui;
use anyhow::Result;

/// Starts a branch.
///
/// # Errors
///
/// A refusal, with nothing changed, or a failure, with everything taken back.
pub fn run(repo: &Repo, ui: &Ui, args: &BranchArgs) -> Result<Outcome> {
    let _lock = repo.lock("branch")?;
    turns::settle(repo, ui)?;
    turns::check_idle(repo)?;
    let stored = Timelines::new(repo).timeline()?;
    let name = Refs::new(repo).new_branch_name(&args.name)?;
    let head = Refs::new(repo).head()?;
    let turn = resolve(repo, &stored, &args.turn)?;
    let at = if turn == 0 {
        state_at(repo, &stored, "0")?.head
    } else {
        stored.checkpoint(crate::cmd::show::existing(repo, &stored, &args.turn)?, Side::After)?.head
    };
    let mut plan = walk_to(repo, &stored, args, turn)?;
    let Some(commit) = at.commit else {
        return Err(Refusal::new(Code::Branch, format!("there is no commit yet at turn {turn}"))
            .hint("give a later turn; 'oxundo log' shows them")
            .into());
    };
    plan.head.to.branch = Some(name.clone());
    plan.head.to.commit = Some(commit);
    plan.head.from = head;
    plan.branches = vec![BranchMove { name, from: None, to: Some(commit) }];
    let shown = sanitized(&args.name);
    let mut outcome = Outcome {
        what: format!("{} branch '{shown}' at turn {turn}", if args.dry_run { "Would start" } else { "Started" }),
        turns: vec![turn],
        turn: None,
        hints: vec!["'oxundo undo' takes it away and goes back".to_owned()],
        plan,
        rescue: None,
        conversations: Vec::new(),
        dry_run: args.dry_run,
    };
    if !args.dry_run {
        super::make(repo, ui, Made::Branch, format!("branch {} at turn {turn}", args.name), &mut outcome)?;
    }
    Ok(outcome)
}

/// What the worktree and the index need to be as the turn left them.
fn walk_to(repo: &Repo, stored: &Stored, args: &BranchArgs, turn: u64) -> Result<Plan> {
    let op = if stored.state.is_undone(turn) { Op::Redo } else { Op::Undo };
    let distance = Distance { to: Some(turn.to_string()), ..Distance::default() };
    let route = match Route::find(repo, stored, op, &distance) {
        Ok(route) => route,
        Err(error) if super::code_of(&error) == Some(Code::Nothing) => {
            return at_the_top(repo, stored, turn);
        }
        Err(error) => return Err(error),
    };
    let edits = Config(repo).edits_or(args.edits)?;
    let mut plan = Prepared::without_refs(repo, stored, op, &route, edits)?;
    plan.op = Op::Branch;
    Ok(plan)
}

/// The turn is the last one done: nothing is to be changed if HEAD is still there.
fn at_the_top(repo: &Repo, stored: &Stored, turn: u64) -> Result<Plan> {
    let head = Refs::new(repo).head()?;
    let then = if turn == 0 { None } else { Some(stored.checkpoint(turn, Side::After)?.head) };
    if then.is_some_and(|then| then.commit != head.commit) {
        return Err(crate::cmd::travel::head_moved(turn).into());
    }
    Ok(Plan::empty(Op::Branch, head))
}
