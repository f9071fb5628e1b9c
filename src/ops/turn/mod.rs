//! The life of a turn: what is recorded when it begins, and what is committed and recorded when it ends, whichever
//! way it ends.

pub mod begin;
pub mod branches;
pub mod calls;
pub mod checkouts;
pub mod commit;
pub mod end;
mod found;
mod gaps;
mod hidden;
mod known;
mod left;
pub mod leftover;
pub mod meanwhile;
pub mod missed;
pub mod pins;
pub mod popped;
mod reach;
mod renamed;
mod running;
pub mod session;
pub mod since;
pub mod skipped;
pub mod sole;
pub mod states;
pub mod steps;
pub mod unattended;
mod unplaced;
pub mod watch;

use crate::config::Config;
use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::model::bytes::in_quotes;
use crate::model::checkpoint::{Checkpoint, Head, short_branch};
use crate::model::operation::{FINISH, InProgress};
use crate::model::plan::{BranchMove, Plan};
use crate::model::subject::subject_of_prompt;
use crate::model::turn::{CommitKind, Mode, Note, Turn, TurnCommit};
use crate::warning::{Warn, Warning};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;

/// Who makes a turn and why.
#[derive(Clone, Debug)]
pub struct Who {
    /// The agent.
    pub agent: String,
    /// Its session.
    pub session: Option<String>,
    /// The message given, or what of the prompt git may be told.
    pub message: Option<String>,
    /// The whole prompt.
    pub prompt: Option<String>,
    /// Commit or ghost.
    pub mode: Mode,
}

/// What of a prompt git may be told. Where the settings cannot be read that is nothing, and a warning says so: the
/// agent goes on in any case.
pub fn message_of_prompt(config: Config<'_>, prompt: &str, heard: Warn<'_>) -> Option<String> {
    let tokens = config.secret_text().map_err(|error| {
        let why = to_refusal(&error).message;
        heard(Warning::new(format!("the prompt is no commit's message: {why}")));
    });
    subject_of_prompt(prompt, &tokens.ok()?, &config.trailer())
}

/// Checks that git is not in the middle of something.
pub fn check_not_in_progress(repo: &Repo) -> Result<()> {
    repo.in_progress().map_or(Ok(()), |doing| Err(in_progress(doing).into()))
}

/// Checks that git is not in the middle of something, and that nothing is unmerged.
pub fn check_idle(repo: &Repo) -> Result<()> {
    check_not_in_progress(repo)?;
    let Some(path) = Index::new(repo).first_unmerged()? else { return Ok(()) };
    let refusal = Refusal::new(Code::InProgress, format!("{} is unmerged", in_quotes(path.as_bstr())));
    Err(refusal.hint(FINISH).hint("or run 'git reset --merge' to give it up, with all that is staged").into())
}

/// The refusal where git is in the middle of something.
pub fn in_progress(doing: InProgress) -> Refusal {
    let (finish, give_up) = doing.hints();
    Refusal::new(Code::InProgress, format!("a {} is in progress", doing.word)).hint(finish).hints(give_up)
}

/// Checks that HEAD is on a branch, or detached. git lets it be on any ref, and a commit moves that; oxundo moves no
/// ref that is not a branch.
pub fn check_on_branch(head: &Head) -> Result<()> {
    if head.is_on_other_ref() {
        return Err(Refusal::new(
            Code::Branch,
            format!("HEAD is on '{}', which is no branch", short_branch(head.stack())),
        )
        .hint("run 'git switch --detach' first")
        .into());
    }
    Ok(())
}

/// Moves HEAD, with its branch if it is on one, to a commit.
pub fn advance(plan: &mut Plan, commit: ObjectId) {
    plan.head.to.commit = Some(commit);
    if let Some(branch) = &plan.head.from.branch {
        plan.branches.push(BranchMove { name: branch.clone(), from: plan.head.from.commit, to: Some(commit) });
    }
}

/// The state right after a turn began: the checkpoint, but on the dirty commit.
pub fn with_dirty_commit(repo: &Repo, before: &Checkpoint, dirty: Option<ObjectId>) -> Result<Checkpoint> {
    let mut start = before.clone();
    let Some(dirty) = dirty else { return Ok(start) };
    start.advance(dirty);
    // The dirty commit has the index as staged for it: intent-to-add entries have become ordinary ones.
    let objects = Objects::new(repo);
    let tree = objects.commit_tree(dirty)?;
    for path in objects.changed_paths(before.index.tree, tree)? {
        Index::new(repo).take_from_sparse(&mut start.index, path.as_bstr())?;
    }
    for entries in start.index.special.values_mut() {
        entries.retain(|entry| !entry.intent_to_add);
    }
    start.index.special.retain(|_, entries| !entries.is_empty());
    start.index.tree = tree;
    Ok(start)
}

/// As [`with_dirty_commit`], of the state that undo of a turn leads to: what the user staged meanwhile stays staged.
pub fn goal_with_dirty_commit(
    repo: &Repo,
    before: &Checkpoint,
    goal: &Checkpoint,
    dirty: Option<ObjectId>,
) -> Result<Checkpoint> {
    let mut start = with_dirty_commit(repo, goal, dirty)?;
    if dirty.is_none() {
        return Ok(start);
    }
    let checkpoints = Checkpoints::new(repo);
    let staged = checkpoints.work_between(before, goal)?.index;
    let staged = staged.into_iter().map(|(path, change)| (path, change.to)).collect();
    checkpoints.put_entries(&mut start.index, &staged)?;
    Ok(start)
}

/// The notes on a turn's commits: one for each session that may have made it.
pub fn notes(repo: &Repo, turn: &Turn) -> Vec<Note> {
    let note = |commit: &TurnCommit, agent: &str, session: Option<&str>| Note {
        v: 1,
        turn: turn.turn,
        kind: commit.kind,
        commit: commit.id,
        agent: agent.to_owned(),
        session: session.map(str::to_owned),
        worktree: repo.worktree_id(),
        at: turn.ended_at.clone().unwrap_or_else(|| turn.began_at.clone()),
    };
    let sessions = turn.sessions();
    let mut notes = Vec::new();
    for commit in &turn.commits {
        notes.push(note(commit, &turn.agent, turn.session.as_deref()));
        let others = sessions.iter().skip(1).filter(|other| commit.kind == CommitKind::Agent && !other.idle);
        notes.extend(others.map(|other| note(commit, other.agent, other.id)));
    }
    notes
}
