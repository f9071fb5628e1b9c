//! A recorded state brought back as a whole: files, empty directories, the index, and where HEAD's branch points; new files
//! go. What was there is in the turn that records it, and undo brings it back. It stays on HEAD's branch, takes no commit
//! off that undo would not, and takes nothing away that no checkpoint holds.

use crate::error::{Code, Refusal};
use crate::git::apply::{Apply, foresee};
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::model::bytes::{sanitized, shell_word};
use crate::model::checkpoint::{Change, Checkpoint, Delta, short_branch};
use crate::model::guard;
use crate::model::merge::Edits;
use crate::model::plan::{Op, Plan};
use crate::model::planner::{TurnDelta, plan as planned};
use crate::model::turn::{Made, Turn};
use crate::ops::conversation::Conversations;
use crate::ops::made::PlannedTurn;
use crate::ops::resolve::state_at;
use crate::ops::restore::kept_aside;
use crate::ops::switching;
use crate::ops::turn::in_progress;
use crate::ops::undo::leaving::{check_elsewhere, described};
use crate::ops::undo::range::nothing;
use crate::ops::view::View;
use anyhow::Result;

/// Plans to go to the state that these words mean.
pub fn plan(view: &View<'_>, words: &str) -> Result<PlannedTurn> {
    let goal = under_its_name_now(view, state_at(view, words)?)?;
    check_branch(view, words, &goal)?;
    if goal.head.commit.is_some_and(|commit| !Objects::new(view.repo).has_commit(commit)) {
        return Err(is_gone(words, &goal).into());
    }
    check_commits(view, &goal).map_err(|error| with_files_alone(error, words))?;
    let capture = view.present()?;
    let checkpoints = Checkpoints::new(view.repo);
    let delta = difference(view, &capture.checkpoint, &goal)?;
    let deltas = [TurnDelta { turn: 0, delta, ..TurnDelta::default() }];
    let present = checkpoints.present(&deltas, &capture.checkpoint, &capture.index)?;
    let plan = checkpoints.merging(|merge| planned(Op::Restore, &deltas, &present, Edits::Overwrite, merge))?;
    if plan.is_empty() {
        return Err(nothing(Op::Restore, "all is as it was then").into());
    }
    check(view, &plan)?;
    Ok(PlannedTurn {
        plan,
        capture,
        made: Made::Restore,
        turns: Vec::new(),
        message: format!("restore --exact {words}"),
        verbs: ["Restored", "Would restore"],
        object: format!("the state of {}", sanitized(words)),
        hint: "'oxundo undo' takes it back".to_owned(),
        conversations: Conversations::default(),
    })
}

/// Refuses what would stop it in the middle.
fn check(view: &View<'_>, plan: &Plan) -> Result<()> {
    Apply::check_names(plan)?;
    check_elsewhere(view, plan)?;
    if view.is_preview {
        foresee::check(view.repo, plan)?;
    }
    if !plan.index.is_empty() {
        Index::new(view.repo).check_index_is_free(view.config().lock_timeout()?)?;
    }
    Ok(())
}

/// A branch that is not there any more has HEAD's name now, where HEAD's history goes on from it or back to it.
fn under_its_name_now(view: &View<'_>, mut goal: Checkpoint) -> Result<Checkpoint> {
    let (Some(name), Some(own)) = (&goal.head.branch, &view.head.branch) else { return Ok(goal) };
    let (Some(then), Some(now)) = (goal.head.commit, view.head.commit) else { return Ok(goal) };
    let objects = Objects::new(view.repo);
    let is_gone = name != own && Refs::new(view.repo).ref_id(name)?.is_none() && objects.has_commit(then);
    // What was there beside it then is no new name of it.
    let is_new = !goal.branches.contains_key(own);
    if is_gone && is_new && (objects.is_ancestor(then, now)? || objects.is_ancestor(now, then)?) {
        goal.head.branch = Some(own.clone());
    }
    Ok(goal)
}

/// Refuses a state of another branch than the one that HEAD is on.
fn check_branch(view: &View<'_>, words: &str, goal: &Checkpoint) -> Result<()> {
    if goal.head.branch == view.head.branch {
        return Ok(());
    }
    if let Some(word) = view.repo.in_progress() {
        // git switches no branch then.
        return Err(in_progress(word).hint(files_alone(words)).into());
    }
    let then = goal.head.branch.as_deref().map_or("a detached HEAD".into(), |name| format!("'{}'", short_branch(name)));
    let Some(switch) = switching::line(view, goal.head.branch.as_deref(), goal.head.commit)? else {
        return Err(is_gone(words, goal).into());
    };
    let message = format!("the state of '{}' is one of {then}, and HEAD is not there", sanitized(words));
    Err(Refusal::new(Code::Branch, message).hint(format!("run '{switch}' first")).hint(files_alone(words)).into())
}

fn files_alone(words: &str) -> String {
    format!("or run 'oxundo restore {}' to bring the files back alone", shell_word(words.as_bytes()))
}

fn is_gone(words: &str, goal: &Checkpoint) -> Refusal {
    let commit = goal.head.commit.map_or_else(String::new, |commit| commit.to_hex_with_len(7).to_string());
    let message = format!("commit {commit} of '{}' is gone: git has deleted it", sanitized(words));
    Refusal::new(Code::Branch, message).hint(files_alone(words).replacen("or run", "run", 1))
}

/// Refuses to take commits off the branch that no turn recorded, or that others have.
fn check_commits(view: &View<'_>, goal: &Checkpoint) -> Result<()> {
    let (Some(at), objects) = (view.head.commit, Objects::new(view.repo)) else { return Ok(()) };
    let hidden: Vec<_> = goal.head.commit.into_iter().collect();
    let leaving = objects.commits_between(&hidden, at)?;
    let mut turns: Vec<Turn> = Vec::new();
    for note in Refs::new(view.repo).notes_on(&leaving)?.into_iter().flatten() {
        if note.worktree == view.repo.worktree_id() && turns.iter().all(|turn| turn.turn != note.turn) {
            turns.extend(view.timeline.find_turn(note.turn)?);
        }
    }
    let described = described(view, Op::Restore, &turns, &leaving, &[])?;
    Ok(guard::check(Op::Restore, view.head.stack(), &described)?)
}

/// A refusal about commits, with the way to have the files of the state all the same.
fn with_files_alone(error: anyhow::Error, words: &str) -> anyhow::Error {
    match error.downcast::<Refusal>() {
        Ok(refusal) => refusal.hint(files_alone(words).replacen("or run", "run", 1)).into(),
        Err(error) => error,
    }
}

/// All that leads from one state to another on the same branch. What the other one would have left out had it been there
/// stays: nobody knows whether it was.
fn difference(view: &View<'_>, now: &Checkpoint, goal: &Checkpoint) -> Result<Delta> {
    let checkpoints = Checkpoints::new(view.repo);
    let mut files = checkpoints.file_changes(now, goal)?;
    let going = files.iter().filter(|(_, change)| change.to.is_none()).map(|(path, _)| path);
    let unknown = checkpoints.left_out(goal, going)?;
    files.retain(|path, _| !unknown.contains(path));
    let directories = checkpoints.directory_changes(now, goal, &files)?;
    let Delta { index, operation, .. } = checkpoints.delta(&Turn::default(), now, goal)?;
    let (from, to) = (now.head.commit, goal.head.commit);
    let moved = goal.head.branch.iter().filter(|_| from != to);
    Ok(Delta {
        files,
        directories,
        index,
        operation,
        aside: kept_aside(view, goal, &[])?,
        branches: moved.map(|name| (name.clone(), Change::new(from, to))).collect(),
        head: (from != to).then(|| Change::new(now.head.clone(), goal.head.clone())),
        ..Delta::default()
    })
}
