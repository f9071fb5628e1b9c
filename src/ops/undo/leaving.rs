//! Which commits leave a branch, and whether they may.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::objects::alike::Likeness;
use crate::git::refs::Refs;
use crate::git::refs::read::in_the_way_of;
use crate::git::timeline::stored::Side;
use crate::model::bytes::shell_word;
use crate::model::checkpoint::{Checkpoint, branch_word, short_branch, shown_place};
use crate::model::guard;
use crate::model::guard::{CommitOrigin, Leaving};
use crate::model::operation::Operation;
use crate::model::plan::{Op, Plan};
use crate::model::planner::putting_back;
use crate::model::turn::{CommitKind, Made, Turn};
use crate::ops::brought_back::{is_out, next_in, only, only_branches_are_left, taken_again};
use crate::ops::called::branch_now;
use crate::ops::dropped::{fates, picked};
use crate::ops::switching;
use crate::ops::undo::alone::{goes_reworded, stays_reworded};
use crate::ops::undo::legs::Leg;
use crate::ops::undo::range::{TurnRange, below};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// How many commits that no turn knows are described, where there are more.
const MANY: usize = 100;

/// Checks every commit that the walk would take off a branch, for all its steps.
pub fn check_commits(
    view: &View<'_>,
    op: Op,
    range: &TurnRange,
    legs: &[Leg],
    now: &Checkpoint,
    known: &[ObjectId],
) -> Result<()> {
    let (back, forward) = legs.split_at(range.back);
    let walked = back.iter().zip(&range.turns).map(|(leg, turn)| (turn, &leg.goal.operation));
    let merges = merges_that_may_leave(view, walked)?;
    let held = held_by_operation(view, back)?;
    let walk = Walk { view, op, range, legs, known, merges, head: head_after(legs, now) };
    let mut then = now.clone();
    for (name, at, goal) in moving_tips(back, now) {
        // A deleted branch: commits that are still on other branches do not count as leaving.
        let mut hidden = goal.map_or_else(|| staying_tips(back, now), |goal| vec![goal]);
        hidden.extend(&held);
        // One that oxundo has made again, as a turn had deleted it: what others have of it by now they keep.
        let mut walked = back.iter().zip(&range.turns);
        if goal.is_none() && walked.any(|(leg, turn)| !turn.takes_out().is_empty() && moves(leg, &name)) {
            hidden.extend(Objects::new(view.repo).remote_tip_ids()?);
        }
        walk.check(&name, &hidden, at)?;
        walk_tip(&mut then, &name, goal);
    }
    for (name, at, goal) in moving_tips(forward, &then) {
        // Turns before it may have moved no ref, and own commits may have come between.
        let Some((leg, turn)) = forward.iter().zip(&range.turns[range.back..]).find(|(leg, _)| moves(leg, &name))
        else {
            continue;
        };
        let begins_at = leg.start.branches.get(&name).copied().or(leg.start.head.commit);
        // Commits that the turn itself took off a branch may leave it again; only later commits count.
        let hidden = begins_at.map_or_else(|| staying_tips(forward, &then), |from| vec![from]);
        walk.check(&name, &hidden, at)?;
        let tips = [now.branches.get(&name).copied().or(now.head.commit), Some(at)];
        // What has the name of a branch that the turn makes is in its way, wherever it is.
        let is_made = leg.start.head.stack() != name && !leg.start.branches.contains_key(&name);
        let begins_at = begins_at.filter(|from| *from != at && !is_made);
        check_begins(view, range, turn, &name, begins_at, tips)?;
        check_is_there(view, &range.turns[range.turns.len() - 1], goal)?;
    }
    Ok(())
}

/// A walk, and what is known of the commits that it takes off branches.
struct Walk<'a, 'v> {
    view: &'a View<'v>,
    op: Op,
    range: &'a TurnRange,
    legs: &'a [Leg],
    /// Those that the user has put in the place of the turns'.
    known: &'a [ObjectId],
    /// The merges that may leave.
    merges: BTreeSet<ObjectId>,
    /// Where HEAD goes.
    head: Option<ObjectId>,
}

impl Walk<'_, '_> {
    /// Refuses where a commit must not leave a branch, which is at this one, but for what the hidden ones have.
    fn check(&self, name: &str, hidden: &[ObjectId], at: ObjectId) -> Result<()> {
        let Self { view, op, range, legs, known, .. } = *self;
        let objects = Objects::new(view.repo);
        let mut leaving = objects.commits_between(hidden, at)?;
        // Only so many can be the turns': among those on top of them there is one that may not leave.
        let ours = range.turns.iter().map(|turn| turn.commits.len()).sum::<usize>() + known.len();
        leaving.truncate(ours + MANY);
        let mut described = described(view, op, &to_branch(name, range, legs), &leaving, known)?;
        if op == Op::Undo && name == "HEAD" && goes_to_branch(legs) {
            // On no branch of ours it was: what others have made goes with that from nowhere.
            let own = |id: ObjectId| {
                let mut commits = range.turns.iter().flat_map(|turn| &turn.commits);
                commits.any(|commit| commit.id == id && commit.kind == CommitKind::Agent)
            };
            described.retain(|commit| commit.published.is_none() || own(commit.id));
        }
        // A detached HEAD goes by its own name.
        let is_beside = view.head.branch.as_deref().unwrap_or_else(|| view.head.stack()) != name;
        for commit in &mut described {
            if self.merges.contains(&commit.id) {
                commit.parents = 1;
            }
            // A branch beside HEAD's may have the commits of turns below that HEAD's has in other words now.
            let may_be_turns = is_beside && commit.origin == CommitOrigin::Unknown;
            let is_recorded = commit.origin == CommitOrigin::Recorded
                || may_be_turns && (is_made_by_a_turn(view, commit)? || self.was_there(commit.id)?)
                || goes_reworded(&objects, known, commit.id)
                || stays_reworded(&objects, self.head, commit.id)?;
            if is_recorded {
                commit.origin = CommitOrigin::Recorded;
            }
        }
        match guard::check(op, name, &described) {
            Err(refusal) if op == Op::Undo && is_beside && refusal.code == Code::Foreign => {
                Err(in_the_middle(view, self.putting_back(name, at, refusal)).into())
            }
            Err(refusal) if op == Op::Redo => {
                let ahead = ahead(view)?.filter(|_| refusal.code == Code::Foreign);
                let hints = ahead.into_iter().chain(picking(view, range)?).chain(range.on_a_branch());
                Err(in_the_middle(view, refusal.hints(hints)).into())
            }
            Err(refusal) if op == Op::Undo => {
                let refusal = of_others(view, of_its_turn(refusal, &described, range), range)?;
                let refusal = of_taken_out(view, refusal, range)?;
                Err(in_the_middle(view, beside_branch(view, refusal, name, range)?).into())
            }
            Ok(()) if op == Op::Undo && view.head.branch.as_deref() == Some(name) => {
                self.check_were_not_here(name, &described)
            }
            checked => Ok(checked.map_err(|refusal| in_the_middle(view, refusal))?),
        }
    }

    /// Refuses to take off HEAD's branch what that had before a turn brought it to the one on which it was made: HEAD's has gone on to it.
    fn check_were_not_here(&self, name: &str, leaving: &[Leaving]) -> Result<()> {
        for (at, turn) in self.range.turns.iter().enumerate() {
            if turn.began_on.as_deref().is_none_or(|began| began == name) {
                continue;
            }
            let before = self.view.timeline.checkpoint(turn.turn, Side::Before)?;
            let Some(tip) = before.branches.get(name) else { continue };
            // What it did not bring itself, the user has.
            let brought = |id: &ObjectId| turn.commits.iter().any(|commit| commit.id == *id);
            let ids: Vec<ObjectId> = leaving.iter().map(|commit| commit.id).filter(brought).collect();
            let here = Objects::new(self.view.repo).reachable_from(&[*tip], &ids)?;
            let Some(first) = leaving.iter().find(|commit| here.contains(&commit.id)) else { continue };
            let (first, branch, number) = (guard::named(first), short_branch(name), turn.turn);
            let other = shown_place(turn.began_on.as_deref());
            let message = format!("commit {first} was on '{branch}' before turn {number}, which brought it to {other}");
            let back = || {
                let tip = tip.to_hex_with_len(10);
                format!("run 'git reset -q --keep {tip}' to put '{branch}' back to where it was then")
            };
            let line = self.range.short_of(at).unwrap_or_else(back);
            return Err(Refusal::new(Code::Foreign, message)
                .hint(line)
                .hint(format!("or run 'oxundo undo --only {number}' to take out that turn by a commit on top"))
                .commits(here)
                .into());
        }
        Ok(())
    }

    /// Whether a commit was on a branch in one of the states that the walk leads to: on whatever others it is since.
    fn was_there(&self, commit: ObjectId) -> Result<bool> {
        let states = self.legs.iter().map(|leg| &leg.goal);
        let tips: Vec<ObjectId> = states.flat_map(|state| state.branches.values().copied()).collect();
        Ok(!Objects::new(self.view.repo).reachable_from(&tips, &[commit])?.is_empty())
    }

    /// What is on a branch beside HEAD's stays on another one, where that is put back.
    fn putting_back(&self, name: &str, at: ObjectId, mut refusal: Refusal) -> Refusal {
        let left = self.legs.iter().find_map(|leg| leg.start.branches.get(name).copied());
        // It is there: what is in the way came to it during the turn.
        let goal = || self.legs.last().and_then(|leg| leg.goal.branches.get(name).copied());
        let left = if left == Some(at) { goal() } else { left };
        let has = |left: &ObjectId| Objects::new(self.view.repo).has_commit(*left);
        if left.is_some_and(|left| !has(&left)) {
            return refusal;
        }
        let line = if left.is_some() {
            putting_back(name, left, true)
        } else {
            // By a rename the new name would be the turn's.
            let [word, kept] = [name.to_owned(), format!("{name}-kept")].map(|name| branch_word(&name));
            format!("git branch {kept} {word} && git branch -qD {word}")
        };
        refusal.hints.retain(|hint| !hint.contains("--revert"));
        refusal.hint(format!("run '{line}' to keep it under another name, then the same command again"))
    }
}

/// Most commits that a line names.
const MOST_NAMED: usize = 4;

/// The line that has the commits of one turn on top of what is there, where they are all that it did.
fn picking(view: &View<'_>, range: &TurnRange) -> Result<Option<String>> {
    let ([turn], 0, objects) = (&range.turns[..], range.back, Objects::new(view.repo)) else { return Ok(None) };
    let after = view.timeline.checkpoint(turn.turn, Side::After)?;
    let is_all = objects.head_tree(&after.head)? == after.worktree;
    let mut ids = Vec::new();
    for commit in turn.commits.iter().filter(|commit| commit.kind != CommitKind::Found) {
        if commit.kind == CommitKind::Dirty || !objects.has_commit(commit.id) || objects.parents(commit.id)?.len() != 1
        {
            return Ok(None);
        }
        ids.push(commit.id.to_hex_with_len(10).to_string());
    }
    let line = format!("run 'git cherry-pick {}' to have it on top of that", ids.join(" "));
    Ok((is_all && (1..=MOST_NAMED).contains(&ids.len())).then_some(line))
}

/// The turns of a walk, each with the commits that it brought to this branch: what it found, and brought to another one alone, is none
/// of its own here.
fn to_branch<'r>(name: &str, range: &'r TurnRange, legs: &[Leg]) -> Cow<'r, [Turn]> {
    let has_found = |turn: &Turn| turn.commits.iter().any(|commit| commit.kind == CommitKind::Found);
    let mut turns = Cow::Borrowed(&range.turns[..]);
    for (at, leg) in legs.iter().enumerate() {
        if !moves(leg, name) && has_found(&turns[at]) {
            turns.to_mut()[at].commits.retain(|commit| commit.kind != CommitKind::Found);
        }
    }
    turns
}

/// Where the commit in the way is a turn's that is to stay, as the user has put them in another order, the way out is to take out
/// that one.
fn of_its_turn(mut refusal: Refusal, leaving: &[Leaving], range: &TurnRange) -> Refusal {
    let first = leaving.iter().find(|commit| commit.origin != CommitOrigin::Recorded);
    if let Some(CommitOrigin::Copied(turn, _)) = first.map(|commit| &commit.origin)
        && refusal.code == Code::Foreign
        && range.turns.iter().all(|walked| walked.turn != *turn)
    {
        let rest = only(range.turns.iter().filter(|walked| !walked.is_part()).map(|walked| walked.turn));
        let rest = rest
            .map(|(line, turns)| format!("run '{line}' to take out {turns} and leave that one, by a commit on top"));
        refusal.hints = rest.into_iter().collect();
        refusal.hints.push(format!("run 'oxundo undo --only {turn}' to take that turn out, by a commit on top"));
    }
    refusal
}

/// What others have published and a turn has only gone to, as by a pull or a reset, hardly anybody wants to have taken out again: what
/// was before is to be had beside it.
fn of_others(view: &View<'_>, mut refusal: Refusal, range: &TurnRange) -> Result<Refusal> {
    let back = &range.turns[..range.back];
    let found = back.iter().flat_map(|turn| &turn.commits).filter(|commit| commit.kind == CommitKind::Found);
    let found: BTreeSet<String> = found.map(|commit| commit.id.to_string()).collect();
    if let Some(Turn { turn, .. }) = back.last()
        && refusal.code == Code::Published
        && refusal.commits.iter().all(|id| found.contains(id))
    {
        let line = format!("run 'oxundo branch before-turn-{turn} {turn}:before'");
        refusal.hints.insert(0, format!("{line} to have what was before turn {turn} on a branch of its own"));
        let below =
            if back.len() == 1 && only_brought(view, &back[0])? { next_in(view, back, range.place.top)? } else { None };
        if let Some(below) = below {
            let line =
                format!("run 'oxundo undo --only {below}' to take out turn {below}: turn {turn} made nothing itself");
            refusal.hints.retain(|hint| !hint.contains("--revert"));
            refusal.hints.insert(0, line);
        }
    }
    Ok(refusal)
}

/// Whether a turn has only brought commits of others.
fn only_brought(view: &View<'_>, turn: &Turn) -> Result<bool> {
    let objects = Objects::new(view.repo);
    let is_clean = |side| {
        let state = view.timeline.checkpoint(turn.turn, side)?;
        Ok::<_, anyhow::Error>(objects.head_tree(&state.head)? == state.worktree)
    };
    let are_found = turn.commits.iter().all(|commit| commit.kind == CommitKind::Found);
    Ok(are_found && is_clean(Side::Before)? && is_clean(Side::After)?)
}

/// Where nothing is left of the turns that --revert could take out: the last one took others out, and the user has brought these
/// back, or the user has reverted them.
fn of_taken_out(view: &View<'_>, mut refusal: Refusal, range: &TurnRange) -> Result<Refusal> {
    let back = &range.turns[..range.back];
    let again = back.first().map(|turn| taken_again(view, turn)).transpose()?.flatten();
    let made_one = back.iter().all(|turn| matches!(turn.made, Some(Made::Squash)));
    let line = match again {
        None if made_one => next_in(view, &[], range.place.top)?
            .map(|below| format!("run 'oxundo undo --only {below}' to take out turn {below}, the last one in it")),
        None if is_out(view, back)? => Some(match next_in(view, back, range.place.top)? {
            Some(below) => {
                format!(
                    "run 'oxundo undo --only {below}' to take out turn {below} as well: what is above it is taken out already"
                )
            }
            None => "run 'oxundo log' to see the turns: what they changed is taken out already".to_owned(),
        }),
        again => again,
    };
    if let Some(line) = line {
        refusal.hints.retain(|hint| !hint.contains("--revert"));
        refusal.hints.push(line);
    }
    Ok(refusal)
}

/// Where HEAD was set back into the middle of what an undone turn made, as of a squash, git itself leads on to its end.
fn ahead(view: &View<'_>) -> Result<Option<String>> {
    let (Some(head), objects) = (view.head.commit, Objects::new(view.repo)) else { return Ok(None) };
    for turn in view.place()?.undone.iter().rev().take(MANY) {
        let to = view.timeline.node(*turn)?.to.filter(|to| *to != head && objects.has_commit(*to));
        if let Some(to) = to
            && objects.is_ancestor(head, to)?
        {
            let line = format!("git merge -q --ff-only {}", to.to_hex_with_len(10));
            return Ok(Some(format!("run '{line}' to have all up to turn {turn} again")));
        }
    }
    Ok(None)
}

/// A branch that a turn of the walk began stays where somebody has committed to it, and what it came from is there without that;
/// on top of it there may be nothing of the turn's to be taken out.
fn beside_branch(view: &View<'_>, mut refusal: Refusal, name: &str, range: &TurnRange) -> Result<Refusal> {
    let back = &range.turns[..range.back];
    let went_to = || back.iter().find(|turn| turn.branch.as_deref() == Some(name) && turn.began_on != turn.branch);
    let began = match back.iter().find(|turn| turn.began_branch() && turn.branch.as_deref() == Some(name)) {
        None if only_branches_are_left(view, back)? => went_to(),
        began => began,
    };
    let Some(other) = began.and_then(|turn| turn.began_on.as_deref()) else { return Ok(refusal) };
    let (here, shown) = (short_branch(name), short_branch(other));
    let renamed = || format!("git branch -m {} {}", branch_word(name), branch_word(other));
    let hint = match switching::line(view, Some(other), None)? {
        Some(switch) => format!("run '{switch}' to go back to '{shown}', which leaves '{here}' as it is"),
        None => format!("run '{}' to have the branch under the name that it had before", renamed()),
    };
    refusal.hints.retain(|hint| !hint.contains("--revert"));
    Ok(refusal.hint(hint))
}

/// Whether undo leaves what a redo brings to a branch: merges, and what is published by now.
pub fn stays_on_undo(view: &View<'_>, range: &TurnRange, legs: &[Leg], plan: &Plan) -> Result<bool> {
    let walked = legs.iter().zip(&range.turns).skip(range.back).map(|(leg, turn)| (turn, &leg.start.operation));
    let may_leave = merges_that_may_leave(view, walked)?;
    let objects = Objects::new(view.repo);
    let mut comes = commits_that_come(view, plan)?;
    // What was being merged then is so again.
    let merged = legs.iter().skip(range.back).map(|leg| objects.merged_by(&leg.start.operation));
    let merged = merged.collect::<Result<Vec<_>>>()?.concat();
    let held = objects.reachable_from(&merged, &comes)?;
    comes.retain(|commit| !held.contains(commit));
    for commit in comes.iter().filter(|commit| !may_leave.contains(*commit)) {
        if objects.parents(*commit)?.len() > 1 {
            return Ok(true);
        }
    }
    Ok(!objects.published(&comes)?.is_empty())
}

/// Whether a plan brings to a branch what others have by now, which undo leaves there.
pub fn brings_published(view: &View<'_>, plan: &Plan) -> Result<bool> {
    Ok(!Objects::new(view.repo).published(&commits_that_come(view, plan)?)?.is_empty())
}

/// The commits that a plan brings to branches, or to a detached HEAD.
fn commits_that_come(view: &View<'_>, plan: &Plan) -> Result<Vec<ObjectId>> {
    let detached = Some(&plan.head).filter(|head| head.to.branch.is_none());
    let moves = plan.branches.iter().map(|branch| (branch.from, branch.to));
    let mut comes = Vec::new();
    for (from, to) in moves.chain(detached.map(|head| (head.from.commit, head.to.commit))) {
        let Some(to) = to else { continue };
        // A branch that appears has what others have already.
        let hidden = match from {
            Some(from) => vec![from],
            None => Refs::new(view.repo).branches()?.into_values().collect(),
        };
        comes.extend(Objects::new(view.repo).commits_between(&hidden, to)?);
    }
    Ok(comes)
}

/// The merges that turns have made of what was being merged when they began, and is again when they are undone; and those that were
/// made before, and that oxundo itself has only gone to.
fn merges_that_may_leave<'a>(
    view: &View<'_>,
    walked: impl Iterator<Item = (&'a Turn, &'a Operation)>,
) -> Result<BTreeSet<ObjectId>> {
    let objects = Objects::new(view.repo);
    let mut may_leave = BTreeSet::new();
    for (turn, begun_in) in walked {
        let is_gone_to = matches!(turn.made, Some(Made::Restore | Made::Branch));
        let merged = objects.merged_by(begun_in)?;
        let may_be = |id: ObjectId| (is_gone_to || !merged.is_empty()) && objects.has_commit(id);
        for commit in turn.commits.iter().filter(|commit| may_be(commit.id)) {
            if is_gone_to || objects.parents(commit.id)?.get(1..).is_some_and(|others| others == merged) {
                may_leave.insert(commit.id);
            }
        }
    }
    Ok(may_leave)
}

/// What an operation holds that a walk leads to: what is being merged, and what is on no branch, as a rebase has it. Turns further down
/// that moved no ref leave one alone that was begun since.
pub fn held_by_operation(view: &View<'_>, legs: &[Leg]) -> Result<Vec<ObjectId>> {
    let leads = |leg: &&Leg| leg.start.head != leg.goal.head || leg.start.operation != leg.goal.operation;
    let leading = legs.iter().rev().find(leads).or(legs.last());
    let Some(goal) = leading.map(|leg| &leg.goal).filter(|goal| goal.operation.is_under_way()) else {
        return Ok(Vec::new());
    };
    let named = Objects::new(view.repo).merged_by(&goal.operation)?;
    Ok(named.into_iter().chain(goal.head.commit).collect())
}

/// In the middle of an operation no turn is taken out on top: it is finished or given up first.
fn in_the_middle(view: &View<'_>, mut refusal: Refusal) -> Refusal {
    let Some(doing) = view.repo.in_progress() else { return refusal };
    refusal.hints.retain(|hint| !hint.contains("--revert") && !hint.contains("'oxundo branch "));
    let (finish, give_up) = doing.hints();
    refusal.hint(finish).hints(give_up)
}

/// Where a branch, or a detached HEAD, is after the first legs.
fn walk_tip(state: &mut Checkpoint, name: &str, goal: Option<ObjectId>) {
    match goal {
        Some(goal) => drop(state.branches.insert(name.to_owned(), goal)),
        None => drop(state.branches.remove(name)),
    }
    if state.head.stack() == name {
        state.head.commit = goal;
    }
}

/// Refuses to redo a turn that began on top of commits that the user has taken off the branch, which is now, and after what is undone
/// first, at these tips.
fn check_begins(
    view: &View<'_>,
    range: &TurnRange,
    turn: &Turn,
    name: &str,
    from: Option<ObjectId>,
    [now, at]: [Option<ObjectId>; 2],
) -> Result<()> {
    let (Some(from), Some(at)) = (from, at) else { return Ok(()) };
    let objects = Objects::new(view.repo);
    if !objects.has_commit(from) || !objects.is_ancestor(at, from)? {
        return Ok(());
    }
    let (id, name) = (from.to_hex_with_len(7), short_branch(name));
    let subject = objects.commit_subject(from)?;
    let message = format!("turn {} began at commit {id} ({subject}), which '{name}' does not have now", turn.turn);
    // On top of what is undone first they cannot be brought back.
    let is_below = now.is_some_and(|now| objects.is_ancestor(now, from).unwrap_or(false));
    let undo = range.turns[..range.back].last().filter(|_| !is_below).map(|last| below(view, last).unwrap_or(0));
    let undo = undo.map_or_else(String::new, |goal| format!("oxundo undo --to {goal} && "));
    Err(Refusal::new(Code::Branch, message).hint(format!("run '{undo}git merge --ff-only {id}' first")).into())
}

/// Refuses to bring commits back that git has deleted.
fn check_is_there(view: &View<'_>, turn: &Turn, goal: Option<ObjectId>) -> Result<()> {
    let Some(goal) = goal.filter(|goal| !Objects::new(view.repo).has_commit(*goal)) else { return Ok(()) };
    let message = format!("commit {} of turn {} is gone: git has deleted it", goal.to_hex_with_len(7), turn.turn);
    let hint = format!("run 'oxundo restore {}' to bring the turn's files back", turn.turn);
    Err(Refusal::new(Code::Branch, message).hint(hint).into())
}

/// Whether a leg moves a branch, or a detached HEAD.
fn moves(leg: &Leg, name: &str) -> bool {
    let delta = &leg.delta.delta;
    delta.branches.contains_key(name) || (name == "HEAD" && delta.head.is_some())
}

/// Every branch that the walk moves, and a detached HEAD: where it is, and where it would go.
fn moving_tips(legs: &[Leg], now: &Checkpoint) -> Vec<(String, ObjectId, Option<ObjectId>)> {
    let mut goals = BTreeMap::new();
    for delta in legs.iter().map(|leg| &leg.delta.delta) {
        for (name, change) in &delta.branches {
            goals.insert(name.clone(), change.to);
        }
        if let Some(change) = &delta.head
            && change.from.branch.is_none()
        {
            goals.insert("HEAD".to_owned(), change.to.commit);
        }
    }
    let at = |name: &str| match name {
        "HEAD" if now.head.branch.is_none() => now.head.commit,
        _ => now.branches.get(name).copied(),
    };
    goals
        .into_iter()
        .filter_map(|(name, goal)| Some((at(&name)?, name, goal)))
        .map(|(at, name, goal)| (name, at, goal))
        .collect()
}

/// Whether a walk leads HEAD to a branch.
fn goes_to_branch(legs: &[Leg]) -> bool {
    legs.iter().rev().find_map(|leg| leg.delta.delta.head.as_ref()).is_some_and(|change| change.to.branch.is_some())
}

/// Where HEAD is after the walk.
fn head_after(legs: &[Leg], now: &Checkpoint) -> Option<ObjectId> {
    let last = legs.iter().rev().find_map(|leg| leg.delta.delta.head.as_ref());
    last.map_or(now.head.commit, |change| change.to.commit)
}

/// The tips of all branches, and of HEAD, as they are after the walk.
fn staying_tips(legs: &[Leg], now: &Checkpoint) -> Vec<ObjectId> {
    let mut tips = now.branches.clone();
    let head = head_after(legs, now);
    for leg in legs {
        leg.delta.delta.lead(&mut tips);
    }
    tips.into_values().chain(head).collect()
}

/// What the guard wants to know of these commits.
pub fn described(
    view: &View<'_>,
    op: Op,
    turns: &[Turn],
    commits: &[ObjectId],
    reworded: &[ObjectId],
) -> Result<Vec<Leaving>> {
    let objects = Objects::new(view.repo);
    let published = objects.published(commits)?;
    let notes = Refs::new(view.repo).notes_on(commits)?;
    let worktree = view.repo.worktree_id();
    let (mut leaving, mut made_of) = (Vec::new(), None::<MadeOf>);
    for (id, notes) in commits.iter().zip(notes) {
        let turn = turns.iter().find(|turn| turn.knows(id));
        let own = |turn: &Turn| {
            view.as_if_ended == Some(turn.turn)
                || notes.iter().any(|note| note.commit == *id && note.turn == turn.turn && note.worktree == worktree)
        };
        let mut rewritten = || match &mut made_of {
            Some(made_of) => made_of.origin(view, *id),
            // A turn that is undone has no commits that anyone could have rewritten, those below it have.
            none => none.insert(MadeOf::find(view, if op == Op::Redo { &[] } else { turns })?).origin(view, *id),
        };
        let origin = match turn {
            _ if reworded.contains(id) => CommitOrigin::Recorded,
            Some(turn) if own(turn) => CommitOrigin::Recorded,
            Some(turn) => CommitOrigin::NoteMissing(turn.turn),
            None => match notes.iter().find(|note| note.commit != *id) {
                Some(copy) => CommitOrigin::Copied(copy.turn, copy.commit),
                None if notes.iter().all(|note| note.worktree != worktree) && !notes.is_empty() => {
                    let note = &notes[notes.len() - 1];
                    CommitOrigin::OfWorktree(note.turn, note.worktree.clone())
                }
                None => match notes.iter().find(|note| note.worktree == worktree) {
                    Some(note) => match of_other_turn(view, *id, note.turn)? {
                        // The turn of which the note tells has only found it.
                        CommitOrigin::Unknown => rewritten()?,
                        known => known,
                    },
                    None => rewritten()?,
                },
            },
        };
        let origin = match origin {
            CommitOrigin::Unknown => kept_at(view, *id)?.map_or(origin, CommitOrigin::Kept),
            known => known,
        };
        leaving.push(Leaving {
            id: *id,
            parents: objects.parents(*id)?.len(),
            subject: objects.commit_subject(*id)?,
            published: published.get(id).cloned(),
            notes,
            origin,
        });
    }
    Ok(leaving)
}

/// The turn that is undone and whose dirty commit HEAD is still on.
fn kept_at(view: &View<'_>, commit: ObjectId) -> Result<Option<u64>> {
    let Some(undone) = view.place()?.undone.last().filter(|_| view.head.commit == Some(commit)) else {
        return Ok(None);
    };
    let turn = view.timeline.find_turn(*undone)?.filter(|turn| turn.dirty_commit == Some(commit));
    Ok(turn.map(|turn| turn.turn))
}

/// Whether a turn of this worktree has made a commit, by its record: nothing of the user's is in that.
fn is_made_by_a_turn(view: &View<'_>, commit: &Leaving) -> Result<bool> {
    let worktree = view.repo.worktree_id();
    for note in &commit.notes {
        let is_here = note.commit == commit.id && note.worktree == worktree;
        let is_made = |turn: Turn| turn.commits.iter().any(|it| it.id == commit.id && it.kind == CommitKind::Agent);
        if is_here && view.timeline.find_turn(note.turn)?.is_some_and(is_made) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where a commit comes from whose note names a turn that is not walked over.
fn of_other_turn(view: &View<'_>, id: ObjectId, number: u64) -> Result<CommitOrigin> {
    let turn = view.timeline.find_turn(number)?.filter(|turn| turn.commits.iter().any(|commit| commit.id == id));
    let branch = turn.as_ref().map(|turn| branch_now(view, turn)).transpose()?.flatten();
    let is_part = |turn: &Turn| {
        let is_its = turn.commits.iter().any(|commit| commit.id == id && commit.kind == CommitKind::Agent);
        Ok::<_, anyhow::Error>(is_its && view.place()?.undone.contains(&number))
    };
    Ok(match branch.filter(|branch| view.head.branch.as_ref() != Some(branch)) {
        Some(branch) => CommitOrigin::Elsewhere(number, branch),
        None if turn.as_ref().map_or(Ok(false), is_part)? => CommitOrigin::PartOf(number),
        None => CommitOrigin::Unknown,
    })
}

/// How many turns of HEAD's line are looked at for the commit that another was made from.
const NEAR_TURNS: usize = 32;

/// What commits without a note may be made of.
struct MadeOf {
    /// The turns of HEAD's line, the newest first.
    line: Vec<Turn>,
    /// The turns for which commits stand, as far as that is known.
    stand_for: Vec<(ObjectId, u64)>,
}

impl MadeOf {
    fn find(view: &View<'_>, turns: &[Turn]) -> Result<Self> {
        let (mut line, mut at) = (turns.to_vec(), view.top()?);
        while let Some(number) = at.filter(|_| line.len() < NEAR_TURNS) {
            let turn = view.timeline.require_turn(number)?;
            at = turn.previous;
            if line.iter().all(|known| known.turn != number) {
                line.push(turn);
            }
        }
        let lowest = line.iter().map(|turn| turn.turn).min().unwrap_or_default();
        let newest_first = |copies: BTreeMap<u64, ObjectId>| copies.into_iter().rev();
        let all = newest_first(fates(view, lowest)?.copies).chain(newest_first(picked(view)?));
        Ok(Self { line, stand_for: all.map(|(turn, copy)| (copy, turn)).collect() })
    }

    /// Whether a commit is made of a turn's; the turn that it stands for comes before one of whose commits it may be made.
    fn origin(&self, view: &View<'_>, id: ObjectId) -> Result<CommitOrigin> {
        let known = self.stand_for.iter().find(|(copy, _)| *copy == id);
        if let Some((_, turn)) = known
            && let Some(commit) = view.timeline.node(*turn)?.to
        {
            return Ok(CommitOrigin::Copied(*turn, commit));
        }
        let objects = Objects::new(view.repo);
        // What the commit is on top of was not made anew, nor was what the turn has made it of.
        let is_below =
            |below: Option<ObjectId>, of| below.is_some_and(|below| objects.is_ancestor(below, of).unwrap_or(false));
        for turn in &self.line {
            for commit in turn.commits.iter().map(|commit| commit.id) {
                if objects.likeness(commit, id) != Likeness::None
                    && !is_below(Some(commit), id)
                    && !view.timeline.node(turn.turn)?.from.is_some_and(|from| is_below(Some(id), from))
                {
                    return Ok(CommitOrigin::Copied(turn.turn, commit));
                }
            }
        }
        Ok(CommitOrigin::Unknown)
    }
}

/// Refuses what git can do to no branch: to move one that another worktree has checked out, to delete the one that HEAD stays on,
/// and to make one beside another of which the name goes on from its own.
pub fn check_branches(view: &View<'_>, plan: &Plan) -> Result<()> {
    let switches = plan.head.from.branch != plan.head.to.branch;
    let own = plan.head.to.branch.as_ref().filter(|_| !switches && plan.head.to.commit.is_some());
    if let Some(name) = own.filter(|own| plan.branches.iter().any(|branch| branch.name == **own && branch.to.is_none()))
    {
        let message = format!("HEAD is on '{}', which would be deleted", short_branch(name));
        let hint = "run 'git switch --detach' first, or switch to another branch";
        return Err(Refusal::new(Code::Branch, message).hint(hint).into());
    }
    if plan.branches.is_empty() && !switches {
        return Ok(());
    }
    check_names(view, plan)?;
    check_checked_out(view, plan, plan.head.to.branch.as_ref().filter(|_| switches))
}

fn check_checked_out(view: &View<'_>, plan: &Plan, to: Option<&String>) -> Result<()> {
    let elsewhere = Refs::new(view.repo).branches_elsewhere()?;
    let taken =
        plan.branches.iter().map(|branch| &branch.name).chain(to).find_map(|name| Some((name, elsewhere.get(name)?)));
    let Some((name, place)) = taken else { return Ok(()) };
    let (shown, directory) = (short_branch(name), shell_word(place.as_bytes()));
    let message = format!("'{shown}' is checked out in another worktree, at '{place}'");
    // Without a commit there is nothing to be detached at.
    let leave = match Refs::new(view.repo).ref_id(name)? {
        Some(_) => "switch --detach".to_owned(),
        None => format!("switch -c {}", branch_word(&format!("{name}-kept"))),
    };
    let hint = format!("run 'git -C {directory} {leave}' to free it, then the same command again");
    Err(Refusal::new(Code::Branch, message).hint(hint).into())
}

fn check_names(view: &View<'_>, plan: &Plan) -> Result<()> {
    let branches = plan.branches.iter().map(|it| (&it.name, it.from.is_none(), it.to.is_none()));
    let symbolic = plan.symbolic.iter().map(|it| (&it.name, it.from.is_none(), it.to.is_none()));
    let moves: Vec<_> = branches.chain(symbolic).collect();
    let mut made = moves.iter().filter(|(_, is_new, _)| *is_new).map(|(name, ..)| *name).peekable();
    if made.peek().is_none() {
        return Ok(());
    }
    let (branches, symbolic) = Refs::new(view.repo).all_branches()?;
    let goes = |name: &String| moves.iter().any(|(other, _, is_gone)| *is_gone && *other == name);
    let stays = || branches.keys().chain(symbolic.keys()).filter(|name| !goes(name));
    let Some((name, other)) = made.find_map(|name| Some((name, in_the_way_of(name, stays())?))) else { return Ok(()) };
    let (shown, shown_other) = (short_branch(name), short_branch(other));
    let aside = match other.strip_prefix(name.as_str()) {
        Some(rest) => format!("{name}{}", rest.replace('/', "-")),
        None => format!("{other}-kept"),
    };
    let [other_word, aside] = [other, &aside].map(|name| branch_word(name));
    let message = format!("there is a branch '{shown_other}', beside which git cannot keep one '{shown}'");
    let hint = format!("run 'git branch -m {other_word} {aside}' to give it another name, then the same command again");
    Err(Refusal::new(Code::Branch, message).hint(hint).into())
}
