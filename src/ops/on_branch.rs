//! What a turn or a step did on one branch, where it went from one to another on the way. Git wrote the files in which the two
//! differ, and what takes the turn out, or tells whose a line is, is not to have them for the turn's.
//!
//! ```text
//!              the agent goes to topic and edits f
//! begins       main    a of main
//! ends         topic   b of topic, f
//! on topic     from    b of topic       to    b of topic, f
//! ```
//!
//! So did git where the turn brought to its branch what HEAD's had already, as by a merge of that; or what others have published, as by
//! a pull: whoever takes that out of it takes it from them with the next push.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeSlot, plain_entry};
use crate::git::refs::Refs;
use crate::git::refs::evidence::Began;
use crate::model::checkpoint::{Change, Checkpoint, Head};
use crate::model::merge::Merge;
use crate::model::path::is_at_or_below;
use crate::model::pointers::{History, Pointers};
use crate::model::renames::Weighed;
use crate::model::turn::{CommitKind, Turn};
use crate::ops::brought::Brought;
use crate::ops::stashed;
use crate::ops::turn::checkouts::{content_of, is_of_files};
use crate::ops::turn::meanwhile::{has_ended_operation, users_moves};
use crate::ops::turn::states::pointers_at_beginning;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Both ends as they are on one branch, and what is committed there, as trees.
pub struct OnOne {
    /// The states.
    pub ends: [Checkpoint; 2],
    /// The trees.
    pub committed: [ObjectId; 2],
    /// What the turn only brought.
    pub brought: Brought,
}

/// The ends of a step on one branch, as [`ends_of_turn`] has a turn's.
pub fn ends_of_step(view: &View<'_>, turn: &Turn, ends: [Checkpoint; 2]) -> Result<[Checkpoint; 2]> {
    Ok(on_one(view, turn, ends, Of::Step)?.ends)
}

/// The ends of a turn on one branch: the one that it ended on, or the one that HEAD is on, where the turn has committed to that. There
/// it did no more than it committed. What the user brought to it in the middle of the turn is there at both ends, and what cannot be
/// told of a file is no difference.
pub fn ends_of_turn(view: &View<'_>, turn: &Turn, ends: [Checkpoint; 2]) -> Result<OnOne> {
    on_one(view, turn, ends, Of::Turn)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Turn,
    Step,
}

fn on_one(view: &View<'_>, turn: &Turn, [start, end]: [Checkpoint; 2], of: Of) -> Result<OnOne> {
    let objects = Objects::new(view.repo);
    let has_moved = |name: &&String| start.branches.get(*name) != end.branches.get(*name);
    let is_other = |name: &&String| end.head.branch.as_ref() != Some(*name) && end.branches.contains_key(*name);
    // Where git was in the middle of leading this branch elsewhere, and no more is, it has come back to it with all else that was made.
    let is_on_its_way = end.head.branch.is_none() && end.operation.is_under_way();
    let is_led_back = |name: &&String| is_on_its_way && start.head.branch.as_ref() == Some(*name);
    let other = view.head.branch.as_ref().filter(is_other).filter(|name| has_moved(name) || is_led_back(name));
    let comes_back = other.is_some_and(|name| is_led_back(&name));
    let went = |from: &Option<String>| *from != end.head.branch;
    let is_on_one = other.is_none() && !went(&start.head.branch) && (of == Of::Step || !went(&turn.began_on));
    let branch = other.or(end.head.branch.as_ref());
    let tip = |state: &Checkpoint| branch.and_then(|name| state.branches.get(name)).copied();
    let to = branch.map_or(end.head.commit, |_| tip(&end));
    let from = match (tip(&start), to) {
        (None, Some(to)) if !is_on_one => began_at(view, turn, [&start, &end], (branch, to))?,
        (None, Some(_)) if branch.is_none() => start.head.commit,
        (from, _) => from,
    };
    let (mut pulled, mut had) = (Vec::new(), Vec::new());
    if let (Some(from), Some(to)) = (from, to) {
        pulled = pulled_between(view, turn, [from, to])?;
        if !is_on_one && pulled.is_empty() && tip(&start).is_none() {
            pulled = came_between(view, turn, [from, to])?;
        }
        let here = if is_on_one { had_here(view, [&start, &end], [from, to])? } else { None };
        had.extend(pulled.iter().copied().chain(here));
        had.extend(detached_at(view, &start, [from, to])?);
    }
    let gained = to.filter(|_| of == Of::Turn).map_or_else(|| Ok(Vec::new()), |to| gained_since(view, turn, to))?;
    // What git left to the user to put together is as they have committed it.
    let is_plain = is_on_one && had.is_empty() && gained.is_empty();
    let is_plain = is_plain && !(of == Of::Turn && has_ended_operation(view, turn, &end)?);
    let (Some(from), Some(to), false) = (from, to, is_plain) else {
        let committed = [objects.head_tree(&start.head)?, objects.head_tree(&end.head)?];
        return Ok(OnOne { ends: [start, end], committed, brought: Brought { commits: pulled, ..Brought::default() } });
    };
    let checkpoints = Checkpoints::new(view.repo);
    checkpoints.merging(|merge| {
        let now = objects.commit_tree(to)?;
        let (was, mut left) = match branch.filter(|_| of == Of::Turn) {
            Some(name) => without_calls(view, turn, (&end, name), from, merge)?,
            None => (objects.commit_tree(from)?, Vec::new()),
        };
        let (was, overlaps, others) = with_had(view, (was, from), &had, merge)?;
        let (was, picked) = with_picked(view, (was, now), &gained, merge)?;
        pulled.extend(picked);
        left.extend(overlaps);
        let (mut on_end, unclear) = led(view, &end, now, merge)?;
        if comes_back {
            left.extend(end.index.unmerged());
            left.extend(stashed::put_autostashes(view.repo, &mut on_end, &Refs::new(view.repo).stash()?)?);
            on_end.stash.clone_from(&end.stash);
        }
        on_end.head = Head { branch: branch.cloned(), commit: Some(to), through: end.head.through.clone() };
        let begins = if other.is_some() && !comes_back { &on_end } else { &start };
        let (mut on_start, also_unclear) = led(view, begins, was, merge)?;
        left.extend(unclear.into_iter().chain(also_unclear));
        let committed = under_other_names(view, [objects.commit_tree(from)?, now], &left, &others)?;
        let there = under_other_names(view, [start.worktree, end.worktree], &left, &others)?;
        left.extend(committed.into_iter().chain(there));
        on_start = checkpoints.with_all_of_paths(&on_start, &on_end, &left)?;
        let unclear: Vec<_> = left
            .iter()
            .map(|path| Ok((path.clone(), objects.tree_entry(now, path.as_bstr())?)))
            .collect::<Result<_>>()?;
        let was = objects.edited_tree(was, &unclear)?;
        on_start.head = Head { commit: Some(from), ..on_end.head.clone() };
        left.sort_unstable();
        left.dedup();
        let brought = Brought { commits: pulled, unclear: left, by: None };
        Ok(OnOne { ends: [on_start, on_end], committed: [was, now], brought })
    })
}

/// Of so many pairs of files at most is looked at what they have in common.
const MOST_PAIRS: usize = 40_000;

/// The files by which two trees differ and that may be, under another name, what overlaps at these paths; and those that are in the
/// place of these. What overlaps is what these trees and the others have there.
pub fn under_other_names(
    view: &View<'_>,
    [from, to]: [ObjectId; 2],
    overlaps: &[BString],
    others: &[ObjectId],
) -> Result<Vec<BString>> {
    let (objects, checkpoints) = (Objects::new(view.repo), Checkpoints::new(view.repo));
    if overlaps.is_empty() || from == to {
        return Ok(Vec::new());
    }
    let (mut known, mut missing) = (BTreeSet::new(), BTreeSet::new());
    for path in overlaps {
        let file = |tree: &ObjectId| objects.tree_file(*tree, path.as_bstr()).map(|file| file.map(|(_, id)| id));
        let ends = [file(&from)?, file(&to)?];
        let is_missing = ends.contains(&None);
        for id in others.iter().map(file).chain(ends.into_iter().map(Ok)) {
            let id = id?;
            known.extend(id);
            missing.extend(id.filter(|_| is_missing));
        }
    }
    let changes = objects.tree_changes(from, to)?;
    let blob = |slot| content_of(slot).map(|(_, id)| id);
    let of = |is_one: fn(&Change<TreeSlot>) -> bool| {
        let ids = changes.values().filter(|change| is_one(change)).filter_map(|it| blob(it.to.or(it.from)));
        ids.collect::<BTreeSet<ObjectId>>()
    };
    let (gone, come) = (of(|it| it.to.is_none()), of(|it| it.from.is_none()));
    // Each pair would be compared: of many files any may be it that has come or gone.
    let is_many = (known.len() + gone.len()).saturating_mul(come.len() + gone.len()) > MOST_PAIRS;
    let [known, missing, gone, come] = [known, missing, gone, come].map(|ids| checkpoints.weighed(ids));
    let (known, missing, gone, come) = (known?, missing?, gone?, come?);
    let mut found = Vec::new();
    for (path, change) in &changes {
        let likely: &[&[Option<Weighed>]] = match (change.from, change.to) {
            (None, _) => &[&known, &gone],
            (_, None) => &[&known, &come],
            _ => &[&missing],
        };
        let one = blob(change.to.or(change.from)).map(|id| checkpoints.weighed([id])).transpose()?;
        let one = one.and_then(|mut one| one.pop().flatten());
        let is_akin =
            |other: &Option<Weighed>| one.as_ref().zip(other.as_ref()).is_none_or(|(one, other)| one.is_akin(other));
        let is_in = |one: &BString, other: &BString| is_at_or_below(one.as_bstr(), other.as_bstr());
        let is_in_place = || overlaps.iter().any(|other| is_in(path, other) || is_in(other, path));
        let is_new_or_gone = change.from.is_none() || change.to.is_none();
        if is_many && is_new_or_gone || likely.iter().copied().flatten().any(is_akin) || is_in_place() {
            found.push(path.clone());
        }
    }
    Ok(found)
}

/// The last commit of what HEAD's branch had before a turn brought it to the one on which it was made.
fn had_here(view: &View<'_>, [start, end]: [&Checkpoint; 2], [from, to]: [ObjectId; 2]) -> Result<Option<ObjectId>> {
    let objects = Objects::new(view.repo);
    let here = view.head.branch.as_ref().filter(|name| end.head.branch.as_ref() != Some(*name));
    let Some(tip) = here.and_then(|name| start.branches.get(name)) else { return Ok(None) };
    let Some(had) = objects.merge_base(to, *tip)? else { return Ok(None) };
    Ok(if objects.is_ancestor(had, from)? { None } else { Some(had) })
}

/// The commit that HEAD was at where it was on no branch, as in the middle of a rebase of the user's, and to which the turn brought its own.
fn detached_at(view: &View<'_>, start: &Checkpoint, [from, to]: [ObjectId; 2]) -> Result<Option<ObjectId>> {
    let objects = Objects::new(view.repo);
    let Some(at) = start.head.commit.filter(|_| start.head.branch.is_none()) else { return Ok(None) };
    let has_come = objects.is_ancestor(at, to)? && !objects.is_ancestor(at, from)?;
    Ok(has_come.then_some(at))
}

/// The usual names of the main branch, onto which others go on.
const MAIN: [&str; 2] = ["refs/heads/main", "refs/heads/master"];

/// The last commits of what a turn only brought to its branch and that others have, as it is published or on the main branch, or that
/// nobody has anywhere else by now.
fn pulled(view: &View<'_>, turn: &Turn) -> Result<Vec<ObjectId>> {
    let (objects, refs) = (Objects::new(view.repo), Refs::new(view.repo));
    // What was uncommitted as the turn began is the user's, and the newest there was.
    let of = |kind| turn.commits.iter().filter(move |commit| commit.kind == kind).map(|commit| commit.id);
    let mut found: Vec<ObjectId> = of(CommitKind::Found).chain(of(CommitKind::Dirty)).collect();
    // What the user has had oxundo bring is not others'.
    if found.is_empty() || turn.made.is_some() {
        return Ok(Vec::new());
    }
    let here = [turn.branch.as_deref(), view.head.branch.as_deref()];
    let beside: Vec<(String, ObjectId)> =
        refs.branches()?.into_iter().filter(|(name, _)| !here.contains(&Some(name))).collect();
    let main = beside.iter().filter(|(name, _)| MAIN.contains(&name.as_str())).map(|(_, tip)| *tip);
    let mut theirs = objects.reachable_from(&main.collect::<Vec<_>>(), &found)?;
    theirs.extend(objects.published(&found)?.into_keys());
    let rest: Vec<ObjectId> = found.iter().copied().filter(|id| !theirs.contains(id)).collect();
    if !rest.is_empty() {
        // What goes on from the turn's end says nothing of where it was before.
        let end = view.timeline.node(turn.turn)?.to;
        let goes_on = |tip: &ObjectId| end.is_some_and(|end| objects.is_ancestor(end, *tip).unwrap_or(false));
        let beside = beside.iter().map(|(_, tip)| *tip).chain(refs.tips_beside()?);
        let elsewhere = objects.reachable_from(&beside.filter(|tip| !goes_on(tip)).collect::<Vec<_>>(), &rest)?;
        found.retain(|id| !elsewhere.contains(id));
    }
    last_of(&objects, found)
}

/// Those of some commits that none of the others has below it; the newest stands last.
fn last_of(objects: &Objects<'_>, mut commits: Vec<ObjectId>) -> Result<Vec<ObjectId>> {
    let mut last = Vec::new();
    while let Some(id) = commits.pop() {
        let below = objects.reachable_from(&[id], &commits)?;
        commits.retain(|id| !below.contains(id));
        last.push(id);
    }
    Ok(last)
}

/// The last commits that one commit has, and another one has not, of what came from another repository to a branch that the turn has made: its
/// record has what it did alone.
fn came_between(view: &View<'_>, turn: &Turn, [from, to]: [ObjectId; 2]) -> Result<Vec<ObjectId>> {
    let (objects, its): (_, HashSet<ObjectId>) = (Objects::new(view.repo), its_own(turn).collect());
    let mut others = objects.commits_between(&[from], to)?;
    others.retain(|id| !its.contains(id));
    let came = Refs::new(view.repo).came_here(&others, Began::of(turn))?;
    others.retain(|id| came.contains(id));
    others.reverse();
    last_of(&objects, others)
}

/// Those of them that one commit has, and another one has not.
fn pulled_between(view: &View<'_>, turn: &Turn, [from, to]: [ObjectId; 2]) -> Result<Vec<ObjectId>> {
    let (objects, mut between) = (Objects::new(view.repo), Vec::new());
    for id in pulled(view, turn)? {
        if objects.is_ancestor(id, to)? && !objects.is_ancestor(id, from)? {
            between.push(id);
        }
    }
    Ok(between)
}

/// The commits that others have published and HEAD has gained since a turn's end, oldest first, as far as they are older than what the turn
/// made: it may have picked what they did.
fn gained_since(view: &View<'_>, turn: &Turn, to: ObjectId) -> Result<Vec<ObjectId>> {
    let (objects, its): (_, Vec<ObjectId>) = (Objects::new(view.repo), its_own(turn).collect());
    let made = its.iter().filter_map(|id| objects.time(*id)).max();
    let (Some(head), Some(made)) = (view.head.commit.filter(|head| *head != to), made) else { return Ok(Vec::new()) };
    let mut gained = objects.commits_between(&[to], head)?;
    gained.retain(|id| objects.time(*id).is_some_and(|time| time < made));
    let published = objects.published(&gained)?;
    gained.retain(|id| published.contains_key(id));
    let own = objects.picked(&gained, &its);
    gained.retain(|id| !own.contains(id));
    gained.reverse();
    Ok(gained)
}

/// A turn's tree from before it, with what these commits did that the one after it has as well; and which of them that were.
fn with_picked(
    view: &View<'_>,
    (mut was, now): (ObjectId, ObjectId),
    gained: &[ObjectId],
    merge: &mut Merge<'_>,
) -> Result<(ObjectId, Vec<ObjectId>)> {
    let (objects, checkpoints, mut picked) = (Objects::new(view.repo), Checkpoints::new(view.repo), Vec::new());
    if gained.is_empty() || was == now {
        return Ok((was, picked));
    }
    let own: BTreeSet<BString> = objects.changed_paths(was, now)?.into_iter().collect();
    let empty = objects.write_empty_tree()?;
    for id in gained {
        let [parent] = objects.parents(*id)?[..] else { continue };
        let [made_on, made] = [objects.commit_tree(parent)?, objects.commit_tree(*id)?];
        let mut is_any = false;
        for path in objects.changed_paths(made_on, made)?.into_iter().filter(|path| own.contains(path)) {
            let alone = |tree| objects.edited_tree(empty, &[(path.clone(), objects.tree_entry(tree, path.as_bstr())?)]);
            let ([made_on, made, with], mut overlaps) = ([alone(made_on)?, alone(made)?, alone(now)?], BTreeMap::new());
            let mut gains = |tree| checkpoints.merge_trees(tree, made_on, made, &mut overlaps, merge);
            let (on_end, on_start) = (gains(with)?, gains(alone(was)?)?);
            if on_end == with && on_start != alone(was)? && overlaps.is_empty() {
                let entry = objects.tree_entry(on_start, path.as_bstr())?;
                (was, is_any) = (objects.edited_tree(was, &[(path, entry)])?, true);
            }
        }
        picked.extend(is_any.then_some(*id));
    }
    Ok((was, picked))
}

/// A tree with what was there too, the paths where the two overlap, and the trees that this was, and was made upon.
fn with_had(
    view: &View<'_>,
    (mut tree, from): (ObjectId, ObjectId),
    had: &[ObjectId],
    merge: &mut Merge<'_>,
) -> Result<(ObjectId, Vec<BString>, Vec<ObjectId>)> {
    let (objects, mut overlaps, mut others) = (Objects::new(view.repo), BTreeMap::new(), Vec::new());
    for had in had {
        let base = objects.merge_base(*had, from)?;
        let base = base.map_or_else(|| objects.write_empty_tree(), |base| objects.commit_tree(base))?;
        let had = objects.commit_tree(*had)?;
        others.extend([base, had]);
        tree = Checkpoints::new(view.repo).merge_trees(tree, base, had, &mut overlaps, merge)?;
    }
    Ok((tree, overlaps.into_keys().collect(), others))
}

/// What a branch has at the end of a turn without what calls made of it, and the paths of which that cannot be told. `from` is where
/// it is without them, as far as that is a commit: what the user merged into what is the turn's is at none.
fn without_calls(
    view: &View<'_>,
    turn: &Turn,
    (end, name): (&Checkpoint, &String),
    from: ObjectId,
    merge: &mut Merge<'_>,
) -> Result<(ObjectId, Vec<BString>)> {
    let (objects, checkpoints) = (Objects::new(view.repo), Checkpoints::new(view.repo));
    let moves = users_moves(view, turn, end)?;
    let has_moved = |(was, now): &(Pointers, Pointers)| was.branches.get(name) != now.branches.get(name);
    let Some(last) = end.branches.get(name).filter(|_| moves.iter().any(has_moved)) else {
        return Ok((objects.commit_tree(from)?, Vec::new()));
    };
    let start = pointers_at_beginning(&view.timeline, turn)?;
    let its: Vec<ObjectId> = its_own(turn).collect();
    let (mut tree, mut overlaps) = (objects.commit_tree(*last)?, BTreeMap::new());
    let mut take_out = |made, made_on| {
        let [made, made_on] = [objects.commit_tree(made)?, objects.commit_tree(made_on)?];
        tree = checkpoints.merge_trees(tree, made, made_on, &mut overlaps, merge)?;
        Ok::<_, anyhow::Error>(())
    };
    let (mut name, mut later) = (Some(name), Some(*last));
    for (was, now) in moves.iter().map(|(was, now)| (Some(was), now)).rev().chain([(None, &start)]) {
        let tip = |at: &Pointers| name.and_then(|name| at.branches.get(name)).copied();
        let made_on = match (tip(now), later) {
            (None, Some(tip)) => objects.base(tip, &[start.tips(), now.tips()].concat())?,
            (made_on, _) => made_on,
        };
        if let (Some(made_on), Some(made)) = (made_on, later) {
            take_out(made, made_on)?;
        }
        let Some(was) = was else { break };
        let left = was.head.branch.as_ref();
        let on_top = [was.head.commit, left.and_then(|name| now.branches.get(name)).copied()];
        let is_on_top = |new| on_top.into_iter().flatten().any(|below| objects.is_above(new, below));
        (later, name) = match (tip(was), tip(now)) {
            // The user made it on top of what HEAD was at, on another branch or under another name of it.
            (None, Some(new)) if is_on_top(new) => (was.head.commit, left),
            (was, _) => (was, name),
        };
        // They may have brought what calls committed elsewhere.
        if let Some(now) = made_on.filter(|now| later != Some(*now)) {
            let brought = objects.commits_between(&later.map_or_else(|| start.tips(), |tip| vec![tip]), now)?;
            let brought_of_its = objects.picked(&brought, &its);
            for id in brought.iter().filter(|id| brought_of_its.contains(*id)) {
                if let [parent] = objects.parents(*id)?[..] {
                    take_out(*id, parent)?;
                }
            }
        }
    }
    Ok((tree, overlaps.into_keys().collect()))
}

/// The commit that git had checked out as the turn made a branch, which is at this one at its end: what came from another repository is
/// not what the turn made, but for what it has sent there itself. Where it has made the commits anew of the branch that it left, as by a
/// rebase, and that goes on in this one, or those of this one itself, it is where that was.
fn began_at(
    view: &View<'_>,
    turn: &Turn,
    [start, end]: [&Checkpoint; 2],
    (branch, to): (Option<&String>, ObjectId),
) -> Result<Option<ObjectId>> {
    let objects = Objects::new(view.repo);
    let its: Vec<ObjectId> = its_own(turn).collect();
    let tip = |state: &Checkpoint| start.head.branch.as_ref().and_then(|left| state.branches.get(left)).copied();
    if let (Some(was), Some(now)) = (tip(start), tip(end)) {
        let first = branch.and_then(|name| Refs::new(view.repo).began_at(name));
        let goes_on = first == Some(now) || objects.is_ancestor(now, to)?;
        // What it has only left behind, as by a reset, it has not made anew.
        if goes_on && !objects.is_ancestor(was, to)? && objects.are_among(&[was], &its) {
            return Ok(Some(was));
        }
    }
    let mut made: HashSet<ObjectId> = objects.commits_between(&start.tips(), to)?.into_iter().collect();
    let its: HashSet<ObjectId> = its.into_iter().collect();
    let others: Vec<ObjectId> = made.difference(&its).copied().collect();
    for id in Refs::new(view.repo).came_here(&others, Began::of(turn))? {
        made.remove(&id);
    }
    objects.first_but(to, &made)
}

/// Whether HEAD's history has any of the commits that a turn made itself: the user may have taken off the others by hand, or given up
/// what git was in the middle of at its end.
pub fn has_any_here(view: &View<'_>, turn: &Turn) -> Result<bool> {
    let own: Vec<ObjectId> = its_own(turn).collect();
    let head: Vec<ObjectId> = view.head.commit.into_iter().collect();
    Ok(!Objects::new(view.repo).reachable_from(&head, &own)?.is_empty())
}

/// The commits that a turn made itself.
fn its_own(turn: &Turn) -> impl Iterator<Item = ObjectId> {
    turn.commits.iter().filter(|commit| commit.kind == CommitKind::Agent).map(|commit| commit.id)
}

/// A state as it is after git has led HEAD to what has this tree, and the paths of which it cannot be told.
fn led(
    view: &View<'_>,
    state: &Checkpoint,
    tree: ObjectId,
    merge: &mut Merge<'_>,
) -> Result<(Checkpoint, Vec<BString>)> {
    gained(view, state, [Objects::new(view.repo).head_tree(&state.head)?, tree], merge)
}

/// A state with what has led from one tree to another, and the paths of which it cannot be told.
pub fn gained(
    view: &View<'_>,
    state: &Checkpoint,
    [from, to]: [ObjectId; 2],
    merge: &mut Merge<'_>,
) -> Result<(Checkpoint, Vec<BString>)> {
    merged_into(view, state, from, [to; 2], merge)
}

/// A state with what has led from one tree to another in the worktree, and to this one in the index; and the paths of which it cannot
/// be told.
pub fn merged_into(
    view: &View<'_>,
    state: &Checkpoint,
    from: ObjectId,
    [in_worktree, in_index]: [ObjectId; 2],
    merge: &mut Merge<'_>,
) -> Result<(Checkpoint, Vec<BString>)> {
    let (objects, checkpoints) = (Objects::new(view.repo), Checkpoints::new(view.repo));
    let mut overlaps = BTreeMap::new();
    let worktree = checkpoints.merge_trees(state.worktree, from, in_worktree, &mut overlaps, merge)?;
    // A submodule is in no worktree's tree, but in the index.
    let changes = objects.tree_changes(from, in_worktree)?;
    overlaps.retain(|path, _| changes.get(path).is_none_or(is_of_files));
    let index = checkpoints.merge_trees(state.index.tree, from, in_index, &mut overlaps, merge)?;
    let mut written = objects.tree_changes(state.worktree, worktree)?;
    written.retain(|_, change| is_of_files(change));
    let goal = Checkpoint { worktree, ..state.clone() };
    let mut gained = checkpoints.with_paths_of(state, &goal, written.keys())?;
    let staged = objects.tree_changes(state.index.tree, index)?.into_iter();
    let staged = staged.map(|(path, change)| (path, plain_entry(change.to, false))).collect();
    checkpoints.put_entries(&mut gained.index, &staged)?;
    Ok((gained, overlaps.into_keys().collect()))
}
