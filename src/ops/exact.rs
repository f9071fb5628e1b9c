//! A recorded state brought back as a whole: files, empty directories, the index, and where HEAD's branch points; new files
//! go. What was there is in the turn that records it, and undo brings it back. It stays on HEAD's branch, takes no commit
//! off that undo would not, and takes nothing away that no checkpoint holds.

use crate::error::{Code, Refusal};
use crate::git::apply::{Apply, foresee};
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::refs::evidence::Was;
use crate::git::timeline::stored::Side;
use crate::model::bytes::{exact, sanitized, shell_word};
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState, Head, Skipped, shown_place, uncovered_changes};
use crate::model::guard;
use crate::model::guard::{CommitOrigin, Leaving};
use crate::model::merge::Edits;
use crate::model::path::up_from;
use crate::model::plan::{Op, Plan};
use crate::model::planner::{TurnDelta, plan as planned};
use crate::model::turn::{Made, Turn};
use crate::ops::called::called_now;
use crate::ops::made::{PlannedTurn, Words};
use crate::ops::resolve::{resolve, state_at};
use crate::ops::restore::{kept_aside, plan as restored};
use crate::ops::revert::{Which, plan as revert};
use crate::ops::stashed;
use crate::ops::switching;
use crate::ops::turn::in_progress;
use crate::ops::undo::alone::check_plan;
use crate::ops::undo::leaving::{brings_published, check_branches, described};
use crate::ops::undo::range::{Extent, nothing};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// Plans to go to the state that these words mean.
pub fn plan(view: &View<'_>, words: &str) -> Result<PlannedTurn> {
    let mut goal = under_its_name_now(view, state_at(view, words)?)?;
    check_branch(view, words, &goal)?;
    if goal.head.commit.is_some_and(|commit| !Objects::new(view.repo).has_commit(commit)) {
        return Err(is_gone(view, words, &goal).into());
    }
    check_commits(view, words, &mut goal).map_err(|error| with_way_out(view, error, words, &goal.head))?;
    let capture = view.present()?;
    let checkpoints = Checkpoints::new(view.repo);
    let (delta, unknown) = difference(view, &capture.checkpoint, &goal, ended_at(view, words).unwrap_or(0))?;
    let deltas = [TurnDelta { turn: 0, delta, ..TurnDelta::default() }];
    let present = checkpoints.present(&deltas, &capture.checkpoint, &capture.index)?;
    let plan = checkpoints.merging(|merge| planned(Op::Restore, &deltas, &present, Edits::Overwrite, merge))?;
    if plan.is_empty() {
        return Err(nothing(Op::Restore, "all is as it was then").into());
    }
    check(view, &plan)?;
    check_plan(view, &plan, &[&goal], &[], Vec::new())?;
    let staying = staying(&capture.checkpoint, &goal, &plan, unknown);
    let words = Words {
        message: format!("restore --exact {words}"),
        verbs: ["Restored", "Would restore"],
        object: format!("the state of {}", sanitized(words)),
        hint: way_back(view, &plan)?.to_owned(),
    };
    Ok(PlannedTurn { staying, ..PlannedTurn::new(plan, capture, Made::Restore, words) })
}

/// Undo leaves what others have by now.
fn way_back(view: &View<'_>, plan: &Plan) -> Result<&'static str> {
    Ok(if brings_published(view, plan)? {
        "'oxundo undo --revert' takes it out again, by a commit on top"
    } else {
        "'oxundo undo' takes it back"
    })
}

/// Refuses what would stop it in the middle.
fn check(view: &View<'_>, plan: &Plan) -> Result<()> {
    Apply::check_names(plan)?;
    check_branches(view, plan)?;
    if view.is_preview {
        foresee::check(view.repo, plan)?;
    }
    if !plan.index.is_empty() {
        Index::new(view.repo).check_index_is_free(view.config().lock_timeout()?)?;
    }
    Ok(())
}

/// The state's branch may have another name now, by git's own word; and one that is not there any more has HEAD's name, where
/// HEAD's history goes on from it or back to it.
fn under_its_name_now(view: &View<'_>, mut goal: Checkpoint) -> Result<Checkpoint> {
    let (Some(name), Some(then)) = (&goal.head.branch, goal.head.commit) else { return Ok(goal) };
    let (objects, refs) = (Objects::new(view.repo), Refs::new(view.repo));
    if let Some(to) = called_now(&refs, name, |_| Was::at(then), &refs.branches()?) {
        goal.head.branch = Some(to);
        return Ok(goal);
    }
    let (Some(own), Some(now)) = (&view.head.branch, view.head.commit) else { return Ok(goal) };
    let is_gone = name != own && refs.ref_id(name)?.is_none() && objects.has_commit(then);
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
    if let Some(doing) = view.repo.in_progress() {
        // git switches no branch then.
        let files = files_alone(view, words).map(|line| format!("or {line}"));
        return Err(in_progress(doing).hints(files).into());
    }
    let then = shown_place(goal.head.branch.as_deref());
    let Some(switch) = switching::line(view, goal.head.branch.as_deref(), goal.head.commit)? else {
        return Err(is_gone(view, words, goal).into());
    };
    let message = format!("'{}' is a state of {then}, and HEAD is not there", sanitized(words));
    let files = files_alone(view, words).map(|line| format!("or {line}"));
    Err(Refusal::new(Code::Branch, message).hint(format!("run '{switch}' first")).hints(files).into())
}

/// The line that brings the files of a state back, where any is missing or differs.
fn files_alone(view: &View<'_>, words: &str) -> Option<String> {
    let is_nothing = |error: &anyhow::Error| error.downcast_ref().is_some_and(|it: &Refusal| it.code == Code::Nothing);
    if restored(view, words, &[]).is_err_and(|error| is_nothing(&error)) {
        return None;
    }
    Some(format!("run 'oxundo restore {}' to bring the files back alone", shell_word(words.as_bytes())))
}

fn is_gone(view: &View<'_>, words: &str, goal: &Checkpoint) -> Refusal {
    let commit = goal.head.commit.map_or_else(String::new, |commit| commit.to_hex_with_len(7).to_string());
    let message = format!("commit {commit} of '{}' is gone: git has deleted it", sanitized(words));
    let files = files_alone(view, words).unwrap_or_else(|| "run 'oxundo log' to see the turns".to_owned());
    Refusal::new(Code::Branch, message).hint(files)
}

/// Refuses to take commits off the branch that no turn recorded, or that others have. A commit of which only the message was
/// changed is the turn's, and the state has it in the old one's place.
fn check_commits(view: &View<'_>, words: &str, goal: &mut Checkpoint) -> Result<()> {
    let Some(at) = view.head.commit else { return Ok(()) };
    let mut leaving = leaving(view, goal.head.commit.as_slice(), at)?;
    let objects = Objects::new(view.repo);
    for commit in &mut leaving {
        if let CommitOrigin::Copied(_, original) = commit.origin
            && objects.is_reworded(original, commit.id)
        {
            commit.origin = CommitOrigin::Recorded;
            goal.head.commit.iter_mut().filter(|goal| **goal == original).for_each(|goal| *goal = commit.id);
        }
    }
    let refused = guard::check(Op::Restore, view.head.stack(), &leaving);
    if refused.is_err()
        && let Some(begun) = begun_here(view, words, goal, at)?
    {
        // What a turn itself took off the branch may leave it again, as by redo.
        leaving.retain(|commit| !objects.is_ancestor(commit.id, begun).unwrap_or(false));
        return Ok(guard::check(Op::Restore, view.head.stack(), &leaving)?);
    }
    Ok(refused?)
}

/// The commits that HEAD's branch loses, and what is known of them. Those that a turn among theirs took off it, as by an amend, are
/// in what it made of them, and are lost with that.
fn leaving(view: &View<'_>, hidden: &[ObjectId], at: ObjectId) -> Result<Vec<Leaving>> {
    let objects = Objects::new(view.repo);
    let mut leaving = objects.commits_between(hidden, at)?;
    let (mut turns, mut looked): (Vec<Turn>, usize) = (Vec::new(), 0);
    while looked < leaving.len() {
        let notes = Refs::new(view.repo).notes_on(&leaving[looked..])?;
        looked = leaving.len();
        for note in notes.into_iter().flatten().filter(|note| note.worktree == view.repo.worktree_id()) {
            if turns.iter().any(|turn| turn.turn == note.turn) {
                continue;
            }
            let Some(turn) = view.timeline.find_turn(note.turn)? else { continue };
            let began = view.timeline.node(turn.turn)?.from.filter(|from| objects.has_commit(*from));
            if let Some(from) = began.filter(|from| !objects.is_ancestor(*from, at).unwrap_or(true)) {
                let taken = objects.commits_between(hidden, from)?;
                let taken: Vec<ObjectId> = taken.into_iter().filter(|id| !leaving.contains(id)).collect();
                leaving.extend(taken);
            }
            turns.push(turn);
        }
    }
    described(view, Op::Restore, &turns, &leaving, &[])
}

/// How many turns are followed down from a state.
const NEAR_TURNS: usize = 64;

/// The commit in HEAD's history from which turns led to the commit of a state: where the first of them began.
fn begun_here(view: &View<'_>, words: &str, goal: &Checkpoint, at: ObjectId) -> Result<Option<ObjectId>> {
    let Some(end) = goal.head.commit else { return Ok(None) };
    let objects = Objects::new(view.repo);
    let noted = Refs::new(view.repo).notes_on(&[end])?.into_iter().flatten();
    let noted = noted.filter(|note| note.worktree == view.repo.worktree_id()).map(|note| note.turn);
    let undone = view.place()?.undone.iter().copied();
    for number in resolve(view, words).into_iter().chain(undone).chain(noted) {
        let mut next = view.timeline.find_turn(number)?.map(|turn| turn.turn);
        for near in 0..NEAR_TURNS {
            let Some(node) = next.map(|turn| view.timeline.node(turn)).transpose()? else { break };
            if near == 0 && (!node.moved() || node.to != Some(end)) {
                break;
            }
            if let Some(from) = node.from.filter(|from| objects.is_ancestor(*from, at).unwrap_or(false)) {
                return Ok(Some(from));
            }
            next = node.previous;
        }
    }
    Ok(None)
}

/// A refusal about commits, with the ways to have the files of the state all the same. Where there was no commit yet, no branch can
/// start.
fn with_way_out(view: &View<'_>, error: anyhow::Error, words: &str, then: &Head) -> anyhow::Error {
    let refusal = match error.downcast::<Refusal>() {
        Ok(refusal) => refusal,
        Err(error) => return error,
    };
    let taken_out = taken_out(view, words).ok().flatten();
    let taken_out = taken_out.map(|turn| {
        format!("run 'oxundo undo --revert --to {turn}' to take out what turns did since, by commits on top")
    });
    let or = if taken_out.is_some() { "or " } else { "" };
    let files = files_alone(view, words).map(|line| format!("{or}{line}"));
    let branch = then.commit.map(|_| format!("run '{}' to have it on a branch of its own", branched(words)));
    refusal.hints(taken_out).hints(files).hints(branch).into()
}

/// The line that starts a branch at a state.
fn branched(words: &str) -> String {
    let name =
        if words.bytes().all(|byte| byte.is_ascii_digit()) { format!("turn-{words}") } else { "restored".into() };
    format!("oxundo branch {name} {}", shell_word(words.as_bytes()))
}

/// The turn at the end of which this state is.
fn ended_at(view: &View<'_>, words: &str) -> Result<u64> {
    match words.strip_suffix(":before") {
        Some(turn) => Ok(view.timeline.require_turn(resolve(view, turn)?)?.previous.unwrap_or(0)),
        None => resolve(view, words.strip_suffix(":after").unwrap_or(words)),
    }
}

/// The same, where all that turns did since can be taken out.
fn taken_out(view: &View<'_>, words: &str) -> Result<Option<u64>> {
    let turn = ended_at(view, words)?;
    // What is only looked at is not signed.
    let mut view = view.clone();
    view.is_preview = true;
    Ok(revert(&view, &Which::Last(Extent::To(turn.to_string())), &[], None).is_ok().then_some(turn))
}

/// All that leads from one state to another on the same branch. What the other one would have left out had it been there
/// stays, and is named: nobody knows whether it was. So does what turns after this one have moved from where it was not captured: it may
/// be the only copy.
fn difference(view: &View<'_>, now: &Checkpoint, goal: &Checkpoint, since: u64) -> Result<(Delta, BTreeSet<BString>)> {
    let checkpoints = Checkpoints::new(view.repo);
    let mut files = checkpoints.file_changes(now, goal)?;
    let going = files.iter().filter(|(_, change)| change.to.is_none()).map(|(path, _)| path);
    let mut unknown = checkpoints.left_out(goal, going)?;
    if files.values().any(|change| change.from.is_some()) {
        let came = Came::since(view, since)?;
        unknown.extend(files.iter().filter(|(path, change)| came.is_of(path, change)).map(|(path, _)| path.clone()));
    }
    files.retain(|path, _| !unknown.contains(path));
    let directories = checkpoints.directory_changes(now, goal, &files)?;
    let Delta { index, operation, .. } = checkpoints.delta(&Turn::default(), now, goal)?;
    let (from, to) = (now.head.commit, goal.head.commit);
    let moved = goal.head.branch.iter().filter(|_| from != to);
    let stash = stashed::back(view, &goal.stash, &now.stash, |path| files.contains_key(path))?;
    let delta = Delta {
        stash,
        files,
        directories,
        index,
        operation,
        aside: kept_aside(view, goal, &[])?.0,
        branches: moved.map(|name| (name.clone(), Change::new(from, to))).collect(),
        head: (from != to).then(|| Change::new(now.head.clone(), goal.head.clone())),
        ..Delta::default()
    };
    Ok((delta, unknown))
}

/// What turns of this line after one have moved from where nothing captured it.
#[derive(Default)]
struct Came {
    /// The names that they gave it, of directories too.
    names: BTreeSet<BString>,
    /// The contents: it may have another name since.
    contents: BTreeSet<ObjectId>,
}

impl Came {
    fn since(view: &View<'_>, since: u64) -> Result<Self> {
        let (objects, mut came, mut at) = (Objects::new(view.repo), Self::default(), view.top()?);
        while let Some(number) = at.filter(|number| *number > since) {
            let turn = view.timeline.require_turn(number)?;
            at = turn.previous;
            if turn.came.is_empty() {
                continue;
            }
            let after = view.timeline.checkpoint(number, Side::After)?.worktree;
            for name in turn.came.keys().filter_map(|name| exact::decode(name)) {
                let file = objects.tree_file(after, name.as_bstr())?.map(|(_, id)| id);
                let below = objects.entries_below(after, name.as_bstr())?;
                came.contents.extend(file.into_iter().chain(below.into_iter().filter_map(|(_, slot)| Some(slot?.1))));
                came.names.insert(name);
            }
        }
        came.contents.remove(&ObjectId::empty_blob(view.repo.hash_kind()));
        Ok(came)
    }

    /// Whether a file that is changed so is of that.
    fn is_of(&self, path: &BString, change: &Change<Option<FileState>>) -> bool {
        let Some(now) = change.from else { return false };
        let is_named = || up_from(path.as_bstr()).any(|top| self.names.contains(top));
        self.contents.contains(&now.id) || change.to.is_none() && is_named()
    }
}

/// What stays as it is, though it may not have been so then, or not been there: nothing captures it, or that state would not have.
fn staying(now: &Checkpoint, goal: &Checkpoint, plan: &Plan, mut unknown: BTreeSet<BString>) -> Vec<BString> {
    let is_new = |new: &&Skipped| goal.skipped.iter().all(|old| old.path != new.path);
    let uncovered = uncovered_changes(goal, now).into_iter().chain(now.skipped.iter().filter(is_new));
    unknown.extend(uncovered.map(|skipped| skipped.path.clone()));
    unknown.into_iter().filter(|path| plan.aside.iter().all(|aside| aside.path != *path)).collect()
}
