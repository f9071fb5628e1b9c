//! `oxundo undo` and `oxundo redo`: both move the timeline's cursor and apply
//! the difference.

use crate::cli::Distance;
use crate::cmd::outcome::Outcome;
use crate::cmd::{conversation, resolve};
use crate::config::Config;
use crate::error::{Code, Refusal};
use crate::git::apply::Apply;
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored, step};
use crate::model::bytes::{sanitized, shown};
use crate::model::checkpoint::{Checkpoint, Head, short_branch, uncovered_changes};
use crate::model::guard;
use crate::model::guard::{Leaving, Origin};
use crate::model::merge::{Edits, Merge};
use crate::model::plan::{Op, Plan};
use crate::model::timeline::Timeline;
use crate::model::turn::Turn;
use crate::model::walk::{Facts, Leg, travel};
use crate::turns;
use crate::ui::Ui;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// Walks over turns.
///
/// # Errors
///
/// A refusal, with nothing changed, or a failure, with everything taken back.
pub fn run(repo: &Repo, ui: &Ui, op: Op, distance: &Distance) -> Result<Outcome> {
    run_as(repo, ui, op, distance, None)
}

/// As [`run`], but only if the plan is the one that was looked at.
///
/// # Errors
///
/// A refusal `conflict` if it is not; else as [`run`].
pub fn run_as(repo: &Repo, ui: &Ui, op: Op, distance: &Distance, looked_at: Option<&Plan>) -> Result<Outcome> {
    let _lock = repo.lock(op.word())?;
    turns::settle(repo, ui)?;
    turns::check_idle(repo)?;
    let stored = Timelines::new(repo).timeline()?;
    let route = Route::find(repo, &stored, op, distance)?;
    let edits = Config(repo).edits_or(distance.edits)?;
    let prepared = Prepared::new(repo, &stored, op, &route, edits)?;
    for path in &prepared.uncovered {
        ui.warn(&format!("'{}' was changed too, and is not covered", shown(path.as_bstr())));
    }
    if distance.dry_run {
        return Ok(outcome(op, &route, prepared.plan, None, true));
    }
    if looked_at.is_some_and(|plan| *plan != prepared.plan) {
        let message = format!("something has changed since this {} was planned", op.word());
        return Err(Refusal::new(Code::Conflict, message).hint("look at the plan again").into());
    }
    let rescue = apply(repo, &stored, &prepared, &route)?;
    Ok(outcome(op, &route, prepared.plan, Some(rescue), false))
}

/// What undo of one turn would do now, or the refusal if it would refuse. Changes nothing.
///
/// # Errors
///
/// When that cannot be found out.
pub fn would_do(repo: &Repo, stored: &Stored) -> Result<Result<Outcome, Refusal>> {
    let distance = Distance { dry_run: true, ..Distance::default() };
    let edits = Config(repo).edits()?;
    let planned = turns::check_idle(repo)
        .and_then(|()| Route::find(repo, stored, Op::Undo, &distance))
        .and_then(|route| Ok((Prepared::new(repo, stored, Op::Undo, &route, edits)?, route)));
    match planned {
        Ok((prepared, route)) => Ok(Ok(outcome(Op::Undo, &route, prepared.plan, None, true))),
        Err(error) => error.downcast::<Refusal>().map(Err),
    }
}

/// The turns to walk over, in walking order, and the state of the stack behind them.
pub(super) struct Route {
    pub(super) turns: Vec<Turn>,
    /// Whether the walk goes back over them.
    pub(super) back: bool,
    state: Timeline,
}

impl Route {
    pub(super) fn find(repo: &Repo, stored: &Stored, op: Op, distance: &Distance) -> Result<Self> {
        let goal = match &distance.to {
            Some(text) => Some(Self::goal(repo, stored, op, text)?),
            None => None,
        };
        let wanted = distance.steps().unwrap_or(1);
        let mut route = Self { turns: Vec::new(), back: op != Op::Redo, state: stored.state.clone() };
        let head = Refs::new(repo).head()?;
        let mut stack = head.stack().to_owned();
        if op == Op::Redo
            && goal.is_none()
            && let Some(turn) = taken_out_last(repo, stored, &stack)?
        {
            if wanted > 1 {
                let message = format!("redo first brings back what turn {} took out, and that alone", turn.turn);
                return Err(Refusal::new(Code::Usage, message).hint("run 'oxundo redo' first, without --steps").into());
            }
            route.state.drop_turn(&step(&turn));
            route.turns.push(turn);
            route.back = true;
            return Ok(route);
        }
        let mut walked = 0;
        loop {
            let there = match goal {
                Some(goal) => super::last_whole(repo, stored, route.state.top(&stack))?.unwrap_or(0) == goal,
                None => walked == wanted,
            };
            let next = match op {
                Op::Redo => route.state.next_redo(&stack),
                _ => route.state.top(&stack),
            };
            let turn = match next {
                Some(number) => Some(stored.known_turn(number)?),
                None => None,
            };
            // What took parts of a turn out goes with it.
            if there && !(op == Op::Redo && turn.as_ref().is_some_and(Turn::is_part)) {
                break;
            }
            let Some(turn) = turn else {
                if let Some(goal) = goal
                    && stored.turn(goal)?.is_some_and(|turn| turn.branch == head.branch)
                {
                    return Err(replaced(goal).into());
                }
                return Err(exhausted(op, stored, &head, walked, wanted, goal).into());
            };
            let step = step(&turn);
            if op == Op::Redo {
                route.state.redo(&step);
                stack = step.ended_on;
            } else {
                route.state.undo(&step);
                stack = step.began_on;
            }
            walked += u64::from(!turn.is_part());
            route.turns.push(turn);
        }
        if route.turns.is_empty() {
            return Err(nothing(op, "that turn is the last one done").into());
        }
        Ok(route)
    }

    fn goal(repo: &Repo, stored: &Stored, op: Op, text: &str) -> Result<u64> {
        let goal = resolve(repo, stored, text)?;
        if super::last_whole(repo, stored, stored.state.top(Refs::new(repo).head()?.stack()))? == Some(goal) {
            return Ok(goal);
        }
        let undone = stored.state.is_undone(goal);
        if undone && op == Op::Undo {
            return Err(Refusal::new(Code::Usage, format!("turn {goal} is undone already"))
                .hint(format!("run 'oxundo redo --to {goal}' to go forward to it"))
                .into());
        }
        if !undone && op == Op::Redo {
            return Err(Refusal::new(Code::Usage, format!("turn {goal} is not undone"))
                .hint(format!("run 'oxundo undo --to {goal}' to go back to it"))
                .into());
        }
        Ok(goal)
    }
}

/// The last turn done, if it took other turns out after all that is undone now: redo brings
/// these back first.
pub(super) fn taken_out_last(_repo: &Repo, stored: &Stored, stack: &str) -> Result<Option<Turn>> {
    let Some(top) = stored.state.top(stack) else { return Ok(None) };
    let turn = stored.known_turn(top)?;
    let newest = stored.state.next_redo(stack).is_none_or(|undone| undone < top);
    Ok(Some(turn).filter(|turn| newest && !turn.takes_out().is_empty()))
}

pub(super) fn nothing(op: Op, why: &str) -> Refusal {
    Refusal::new(Code::Nothing, format!("nothing to {}: {why}", op.word())).hint("run 'oxundo log' to see the turns")
}

/// A turn that is recorded, and neither done nor to be redone.
pub(super) fn replaced(turn: u64) -> Refusal {
    Refusal::new(Code::Branch, format!("turn {turn} was undone, and later turns stand in its place"))
        .hint(format!("run 'oxundo restore {turn}' to bring its files back"))
}

fn exhausted(op: Op, stored: &Stored, head: &Head, found: u64, wanted: u64, goal: Option<u64>) -> Refusal {
    let branch = short_branch(head.stack());
    if let Some(goal) = goal {
        return Refusal::new(Code::Branch, format!("turn {goal} is not among the turns of '{branch}'"))
            .hint("run 'oxundo log --all' to see which branch it belongs to");
    }
    if found == 0
        && op == Op::Undo
        && let Some((turn, other)) = stored.state.newest_done()
    {
        let other = short_branch(other);
        return Refusal::new(
            Code::Branch,
            format!("'{branch}' has no turns: turn {turn}, the last one, was made on '{other}'"),
        )
        .hint(format!("run 'git switch {other}' first"));
    }
    if stored.commit.is_none() {
        return Refusal::new(Code::Nothing, format!("nothing to {}: no turn is recorded here", op.word()))
            .hint("run 'oxundo run -- COMMAND' to make one, or 'oxundo init' to have an agent's prompts be turns");
    }
    let what = match (op, found) {
        (Op::Redo, 0) => "no turn is undone".to_owned(),
        (Op::Redo, 1) => format!("1 turn is undone, {wanted} were asked for"),
        (Op::Redo, n) => format!("{n} turns are undone, {wanted} were asked for"),
        (_, 0) => "no turn is done".to_owned(),
        (_, 1) => format!("'{branch}' has 1 turn, {wanted} were asked for"),
        (_, n) => format!("'{branch}' has {n} turns, {wanted} were asked for"),
    };
    nothing(op, &what)
}

/// A checked plan, the present state that it was made for, and the paths that the turns
/// changed and that are not covered.
pub(super) struct Prepared {
    plan: Plan,
    now: Checkpoint,
    uncovered: BTreeSet<BString>,
}

impl Prepared {
    fn new(repo: &Repo, stored: &Stored, op: Op, route: &Route, edits: Edits) -> Result<Self> {
        Self::find(repo, stored, op, route, edits, false)
    }

    /// The plan of a walk that moves no ref and takes no commit off a branch.
    pub(super) fn without_refs(repo: &Repo, stored: &Stored, op: Op, route: &Route, edits: Edits) -> Result<Plan> {
        Ok(Self::find(repo, stored, op, route, edits, true)?.plan)
    }

    fn find(repo: &Repo, stored: &Stored, op: Op, route: &Route, edits: Edits, refs_stay: bool) -> Result<Self> {
        let head = Refs::new(repo).head()?;
        let mut legs: Vec<Leg> = Vec::new();
        let mut ends_met: Vec<(Checkpoint, Checkpoint)> = Vec::new();
        let mut uncovered = BTreeSet::new();
        for (at, turn) in route.turns.iter().enumerate() {
            let last = at + 1 == route.turns.len();
            let (before, after) = ends(repo, stored, route.back, turn, last, &head)?;
            let delta = Checkpoints::new(repo).delta(turn.turn, &before, &after)?;
            uncovered.extend(uncovered_changes(&before, &after).into_iter().map(|old| old.path.clone()));
            let carried = stored.carried(turn.turn)?;
            let (delta, met) = if route.back { (delta.inverse(), (after, before)) } else { (delta, (before, after)) };
            legs.push(Leg { turn: turn.turn, delta, carried });
            ends_met.push(met);
        }
        let (Some((start, _)), Some((_, goal))) = (ends_met.first(), ends_met.last()) else {
            return Err(nothing(op, "no turn was asked for").into());
        };
        let capture = turns::present(repo, stored)?;
        let now = &capture.checkpoint;
        if refs_stay {
            if now.head != start.head {
                return Err(head_moved(route.turns[0].turn).into());
            }
            for leg in &mut legs {
                leg.delta.branches.clear();
                (leg.delta.head, leg.delta.stash) = (None, None);
            }
        } else {
            check_commits(repo, op, route, &legs, start, now)?;
        }
        let since = (start, now);
        let between = ends_met.windows(2).map(|pair| (&pair[0].1, &pair[1].0));
        let gaps: Vec<_> = between.chain([since]).collect();
        let facts = Facts {
            edited: Checkpoints::new(repo).edited(&gaps, now, goal)?,
            ..Checkpoints::new(repo).facts(&legs, now, &capture.index)?
        };
        let plan = merging(repo, |merge| travel(op, &legs, &facts, edits, merge))?;
        Apply::new(repo).check_names(&plan)?;
        check_elsewhere(repo, &plan)?;
        if !plan.index.is_empty() {
            Index::new(repo).check_index_is_free()?;
        }
        Ok(Self { plan, now: capture.checkpoint, uncovered })
    }
}

/// HEAD is not where the turn left it.
pub(super) fn head_moved(turn: u64) -> Refusal {
    Refusal::new(Code::Branch, format!("HEAD is not where turn {turn} left it"))
        .hint("run 'git switch -c NAME COMMIT' to start a branch at any commit")
}

/// Does something that merges content; what that takes is made ready when it is first needed.
pub(super) fn merging<T>(repo: &Repo, work: impl FnOnce(&mut Merge<'_>) -> Result<T>) -> Result<T> {
    let mut merger = None;
    work(&mut |path, blobs| {
        let merger = match &mut merger {
            Some(merger) => merger,
            None => merger.insert(Checkpoints::new(repo).merger()?),
        };
        merger.merge(path, blobs)
    })
}

/// A turn's two ends. The dirty commit stays when it was published, or is to be kept; then
/// the turn begins on it.
fn ends(
    repo: &Repo,
    stored: &Stored,
    back: bool,
    turn: &Turn,
    last: bool,
    head: &Head,
) -> Result<(Checkpoint, Checkpoint)> {
    let before = stored.checkpoint(turn.turn, Side::Before)?;
    let after = stored.checkpoint(turn.turn, Side::After)?;
    let Some(dirty) = turn.dirty_commit else {
        return Ok((before, after));
    };
    let stays = if back {
        last && (Config(repo).keep_dirty()? || !Objects::new(repo).published(&[dirty])?.is_empty())
    } else {
        // Where undo left HEAD tells whether the commit stayed.
        head.commit == Some(dirty)
    };
    let before = if stays { turns::with_dirty_commit(repo, &before, Some(dirty))? } else { before };
    Ok((before, after))
}

/// Checks every commit that the walk would take off a branch, for all its steps.
fn check_commits(repo: &Repo, op: Op, route: &Route, legs: &[Leg], start: &Checkpoint, now: &Checkpoint) -> Result<()> {
    if now.head.branch != start.head.branch {
        let wanted = start.head.branch.as_deref().map_or("a detached HEAD", short_branch);
        return Err(Refusal::new(
            Code::Branch,
            format!("turn {} belongs to '{wanted}', and HEAD is not on it", route.turns[0].turn),
        )
        .hint(format!("run 'git switch {wanted}' first"))
        .into());
    }
    for (name, at, goal) in moving_tips(legs, start, now) {
        let from = if route.back {
            goal
        } else {
            // What the turn itself took off a branch goes off it again; only later commits count.
            start.branches.get(&name).copied().or(start.head.commit)
        };
        let hidden = match from {
            Some(from) => vec![from],
            // A branch that goes: what stays on the others does not count as leaving.
            None => staying_tips(legs, now),
        };
        let leaving = Objects::new(repo).commits_between(&hidden, at)?;
        guard::check(op, &name, &described(repo, &route.turns, &leaving)?)?;
    }
    Ok(())
}

/// Every branch that the walk moves, and a detached HEAD: where it is, and where it would go.
fn moving_tips(legs: &[Leg], start: &Checkpoint, now: &Checkpoint) -> Vec<(String, ObjectId, Option<ObjectId>)> {
    let mut goals = BTreeMap::new();
    for Leg { delta, .. } in legs {
        for (name, change) in &delta.branches {
            goals.insert(name.clone(), change.to);
        }
        if let Some(change) = &delta.head
            && change.from.branch.is_none()
        {
            goals.insert("HEAD".to_owned(), change.to.commit);
        }
    }
    if let Some(branch) = &now.head.branch
        && now.head.commit != start.head.commit
    {
        goals.entry(branch.clone()).or_insert(start.head.commit);
    }
    let at = |name: &str| match name {
        "HEAD" if now.head.branch.is_none() => now.head.commit,
        _ => now.branches.get(name).copied(),
    };
    goals
        .into_iter()
        .filter_map(|(name, goal)| Some((at(&name)?, name, goal)).map(|(at, name, goal)| (name, at, goal)))
        .collect()
}

/// Where the branches are that the walk leaves in place or moves somewhere, and HEAD behind it.
fn staying_tips(legs: &[Leg], now: &Checkpoint) -> Vec<ObjectId> {
    let mut tips = now.branches.clone();
    let last = legs.iter().rev().find_map(|leg| leg.delta.head.as_ref());
    let head = last.map_or(now.head.commit, |change| change.to.commit);
    for Leg { delta, .. } in legs {
        for (name, change) in &delta.branches {
            match change.to {
                Some(to) => tips.insert(name.clone(), to),
                None => tips.remove(name),
            };
        }
    }
    tips.into_values().chain(head).collect()
}

pub(super) fn described(repo: &Repo, turns: &[Turn], commits: &[ObjectId]) -> Result<Vec<Leaving>> {
    let published = Objects::new(repo).published(commits)?;
    let notes = Refs::new(repo).notes_on(commits)?;
    let worktree = repo.worktree_id();
    let mut leaving = Vec::new();
    for (id, notes) in commits.iter().zip(notes) {
        let turn = turns.iter().find(|turn| turn.knows(id));
        let own = |turn: &Turn| {
            notes.iter().any(|note| note.commit == *id && note.turn == turn.turn && note.worktree == worktree)
        };
        let origin = match turn {
            Some(turn) if own(turn) => Origin::Recorded,
            Some(turn) => Origin::NoteMissing(turn.turn),
            None => match notes.iter().find(|note| note.commit != *id) {
                Some(copy) => Origin::Copied(copy.turn, copy.commit),
                None => match notes.iter().find(|note| note.worktree == worktree) {
                    Some(note) => of_other_turn(repo, *id, note.turn)?,
                    None => rewritten_from(repo, turns, *id)?,
                },
            },
        };
        leaving.push(Leaving {
            id: *id,
            parents: Objects::new(repo).parents(*id)?.len(),
            subject: Objects::new(repo).commit_subject(*id)?,
            published: published.get(id).cloned(),
            origin,
        });
    }
    Ok(leaving)
}

/// A commit whose note is of a turn that the walk does not go over.
fn of_other_turn(repo: &Repo, id: ObjectId, number: u64) -> Result<Origin> {
    let stored = Timelines::new(repo).timeline()?;
    let head = Refs::new(repo).head()?;
    Ok(match stored.turn(number)? {
        Some(Turn { branch: Some(branch), commits, .. })
            if head.branch.as_ref() != Some(&branch) && commits.iter().any(|commit| commit.id == id) =>
        {
            Origin::Elsewhere(number, branch)
        }
        _ => Origin::Unknown,
    })
}

/// A commit that took a turn's place without its note: same parents as one of the turn's, whose
/// own commit is on the branch no more.
fn rewritten_from(repo: &Repo, turns: &[Turn], id: ObjectId) -> Result<Origin> {
    let parents = Objects::new(repo).parents(id)?;
    for turn in turns {
        for commit in &turn.commits {
            if Objects::new(repo).has_commit(commit.id) && Objects::new(repo).parents(commit.id)? == parents {
                return Ok(Origin::Copied(turn.turn, commit.id));
            }
        }
    }
    Ok(Origin::Unknown)
}

/// A branch that another worktree has checked out is never moved under it.
fn check_elsewhere(repo: &Repo, plan: &Plan) -> Result<()> {
    let switches = plan.head.from.branch != plan.head.to.branch;
    if plan.branches.is_empty() && !switches {
        return Ok(());
    }
    let elsewhere = Refs::new(repo).branches_elsewhere()?;
    let to = plan.head.to.branch.as_ref().filter(|_| switches);
    let taken = plan.branches.iter().map(|branch| &branch.name).chain(to).find_map(|name| {
        let place = elsewhere.get(name)?;
        Some((short_branch(name), place))
    });
    match taken {
        Some((name, place)) => {
            Err(Refusal::new(Code::Branch, format!("'{name}' is checked out in another worktree, at '{place}'"))
                .hint(format!(
                    "switch that worktree to another branch, then run this again: 'git -C {place} switch BRANCH'"
                ))
                .into())
        }
        None => Ok(()),
    }
}

fn apply(repo: &Repo, stored: &Stored, prepared: &Prepared, route: &Route) -> Result<ObjectId> {
    let plan = &prepared.plan;
    let mut update = stored.update();
    update.state.stacks.clone_from(&route.state.stacks);
    let rescue = update.put_rescue(&prepared.now)?;
    for (turn, carried) in &plan.carried {
        update.put_carried(*turn, carried)?;
    }
    turns::pin_displaced(repo, &mut update.state, &turns::refs_delta(plan))?;
    let labels: Vec<String> = route.turns.iter().map(|turn| format!("{} ({})", turn.turn, turn.label())).collect();
    let message = format!("{} {}", plan.op.word(), labels.join(", "));
    Apply::new(repo).apply(plan, &update.into_record(message, Vec::new())?, None)?;
    Ok(rescue)
}

/// What was done, or would be.
fn outcome(op: Op, route: &Route, plan: Plan, rescue: Option<ObjectId>, dry_run: bool) -> Outcome {
    let whole: Vec<&Turn> = route.turns.iter().filter(|turn| !turn.is_part()).collect();
    let brings_back = op == Op::Redo && route.back;
    let shown: Vec<&Turn> = if whole.is_empty() { route.turns.iter().collect() } else { whole };
    let what = match &shown[..] {
        [turn] => format!("turn {} ({})", turn.turn, sanitized(&turn.label())),
        turns => format!("turns {}", turns.iter().map(|turn| turn.turn.to_string()).collect::<Vec<_>>().join(", ")),
    };
    let words = match (brings_back, dry_run, op) {
        (true, false, _) => "Brought back what was taken out by",
        (true, true, _) => "Would bring back what was taken out by",
        (_, false, Op::Redo) => "Redid",
        (_, false, _) => "Undid",
        (_, true, Op::Redo) => "Would redo",
        (_, true, _) => "Would undo",
    };
    let (steps, it) = match shown.len() {
        1 => (String::new(), "it"),
        n => (format!(" --steps {n}"), "them"),
    };
    let hint = match op {
        Op::Redo if brings_back => None,
        Op::Redo => Some(format!("'oxundo undo{steps}' takes {it} back")),
        _ => Some(format!("'oxundo redo{steps}' brings {it} back")),
    };
    let rewinds = if op == Op::Redo { Vec::new() } else { conversation::hints(&route.turns) };
    Outcome {
        turns: shown.iter().map(|turn| turn.turn).collect(),
        turn: None,
        what: format!("{words} {what}"),
        hints: hint.into_iter().chain(rewinds).collect(),
        conversations: conversation::described(&route.turns),
        plan,
        rescue,
        dry_run,
    }
}
