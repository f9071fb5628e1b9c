//! Where HEAD stands on the timeline: [`model::place`](crate::model::place) decides, here is looked at what it needs. Where HEAD has not
//! moved since the timeline was written, that is nothing.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::objects::alike::{Likeness, Seen};
use crate::git::refs::Refs;
use crate::git::refs::evidence::{Reset, Was};
use crate::git::repo::Repo;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::checkpoint::Head;
use crate::model::place::{Found, Lift, Node, Place, Recorded, Stack, base_of, decide, end_below, joined};
use crate::model::timeline::Timeline;
use crate::model::turn::Note;
use crate::ops::anew::{Anew, Original, Rest, Work};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// How many commits are looked at, from HEAD down: the first few, and then more at once.
const NEAR: [usize; 4] = [2, 14, 48, 192];

/// How many turns of the recorded line are looked at for commits that were rewritten or copied.
const NEAR_TURNS: usize = 32;

/// Finds where HEAD stands. Where the cursor knows of nothing to redo, the newest line above it is.
pub fn find(repo: &Repo, timeline: &Stored<'_>, head: &Head) -> Result<Place> {
    let mut place = recorded_or_found(repo, timeline, head)?;
    if place.undone.is_empty() && timeline.state.open.is_none() && timeline.commit.is_some() {
        place.undone = line_above(timeline, place.top, head)?;
    }
    Ok(place)
}

/// Has the turns of all lines stand where they do now that are in HEAD's history. Where HEAD has not moved since the timeline was
/// written, that is as it was; where what they went up above is gone from it again, they are where they were made.
pub fn lift(timeline: &mut Stored<'_>, head: &Head) -> Result<()> {
    timeline.state.stand_as_made();
    let (Some(at), Some(commit)) = (timeline.state.at.clone(), head.commit) else { return Ok(()) };
    let is_there = at.commit == head.commit && at.stack == head.stack();
    timeline.state.lifted = timeline.state.stack(&at.stack).lifted;
    if is_there || timeline.state.open.is_some() {
        return Ok(());
    }
    let recorded = timeline.state.recorded(head);
    if !is_among_others(timeline, &recorded)? {
        return Ok(());
    }
    keep_lifted(timeline, &recorded, head, (at.commit, commit))?;
    let lines = lines(timeline, &recorded, head, commit)?;
    timeline.state.found = Some((head.clone(), lines.found));
    timeline.state.lifted = with_lifts(timeline, timeline.state.lifted.clone(), &lines.joined, lines.newest)?;
    let undone = &recorded.own().unwrap_or(&recorded.last).undone;
    let over = over_undone(timeline, undone, lines.newest)?;
    if !over.is_empty() {
        timeline.state.lifted = with_lifts(timeline, timeline.state.lifted.clone(), &over, lines.newest)?;
    }
    Ok(())
}

/// Which done turns stand above others than they did, as what was below them is undone here, moved no ref, and was not there when they began:
/// each with the one below it, 0 for none, the lowest first.
fn over_undone(timeline: &Stored<'_>, undone: &[u64], newest: Option<u64>) -> Result<Vec<(u64, u64)>> {
    let is_passed_over = |turn: u64, below: u64| {
        Ok::<_, anyhow::Error>(
            undone.contains(&below) && !timeline.node(below)?.moved() && began_without(timeline, turn, below)?,
        )
    };
    let lowest = undone.iter().min().copied().unwrap_or(u64::MAX);
    let (mut over, mut at, mut left) = (Vec::new(), newest, NEAR_TURNS);
    while let Some(turn) = at.filter(|turn| *turn > lowest && left > 0) {
        let stood_on = timeline.node(turn)?.previous;
        at = stood_on;
        while let Some(below) = at
            && is_passed_over(turn, below)?
        {
            at = timeline.node(below)?.previous;
        }
        if at != stood_on {
            over.push((turn, at.unwrap_or(0)));
        }
        left -= 1;
    }
    over.reverse();
    Ok(over)
}

/// Whether nothing of what a turn did to the files was there when a later one began.
fn began_without(timeline: &Stored<'_>, turn: u64, below: u64) -> Result<bool> {
    let checkpoints = Checkpoints::new(timeline.repo);
    let [was, became] = [Side::Before, Side::After].map(|side| timeline.checkpoint(below, side));
    let (changed, began) = (checkpoints.file_changes(&was?, &became?)?, timeline.checkpoint(turn, Side::Before)?);
    for (path, change) in &changed {
        if checkpoints.captured_file(&began, path.as_bstr())? != change.from {
            return Ok(false);
        }
    }
    Ok(!changed.is_empty())
}

/// Those that stand elsewhere, with more of them, each with the one below it, the lowest first. Those that stand above such, from the newest
/// turn down, are counted again.
fn with_lifts(
    timeline: &Stored<'_>,
    mut lifted: BTreeMap<u64, Lift>,
    joined: &[(u64, u64)],
    newest: Option<u64>,
) -> Result<BTreeMap<u64, Lift>> {
    let put = |lifted: &mut BTreeMap<u64, Lift>, (turn, previous): (u64, u64)| {
        let below = match lifted.get(&previous) {
            Some(lift) => lift.depth,
            None if previous == 0 => 0,
            None => timeline.require_turn(previous)?.depth,
        };
        let depth = below + u64::from(!timeline.require_turn(turn)?.is_part());
        lifted.insert(turn, Lift { previous, depth });
        Ok::<_, anyhow::Error>(())
    };
    joined.iter().try_for_each(|lift| put(&mut lifted, *lift))?;
    let (mut above, mut at) = (Vec::new(), newest.filter(|_| !lifted.is_empty()));
    while let Some(turn) = at.filter(|turn| !lifted.contains_key(turn) && above.len() < NEAR_TURNS) {
        at = timeline.require_turn(turn)?.previous;
        above.extend(at.map(|below| (turn, below)));
    }
    if at.is_some_and(|turn| lifted.contains_key(&turn)) {
        above.into_iter().rev().try_for_each(|lift| put(&mut lifted, lift))?;
    }
    Ok(lifted)
}

/// Before it is written that turns are done again: they stand by their numbers, below what HEAD has gained since, or above what it had lost
/// with that.
pub fn put_redone(timeline: &Stored<'_>, state: &mut Timeline, tops: &BTreeSet<u64>) -> Result<()> {
    let joined = joined(tops, &|turn| timeline.node(turn))?;
    state.lifted = with_lifts(timeline, std::mem::take(&mut state.lifted), &joined, tops.last().copied())?;
    Ok(())
}

/// A line of which git has taken off again what it had gained above turns that moved no ref: the last of these is the last one done.
fn without_gained(timeline: &Stored<'_>, line: Stack, head: ObjectId, found: Option<Found>) -> Result<Stack> {
    let objects = Objects::new(timeline.repo);
    let (mut gone, mut at) = (Vec::new(), line.top);
    while let Some(turn) = at.filter(|_| !line.lifted.is_empty() && gone.len() < NEAR_TURNS) {
        let is_there = match end_below(at, &|turn| timeline.node(turn))? {
            Some(end) => objects.has_commit(end.commit) && objects.is_ancestor(end.commit, head)?,
            None => true,
        };
        // It may be there anew.
        if is_there || found.is_some_and(|found| found.turn == turn) {
            break;
        }
        gone.push(turn);
        at = line.lifted.get(&turn).map_or(timeline.node(turn)?.previous, |lift| lift.below());
    }
    let stood_higher = |turn: &u64| line.lifted.contains_key(turn);
    let Some(top) = at.filter(|_| gone.iter().any(stood_higher)) else { return Ok(line) };
    if timeline.node(top)?.moved() {
        return Ok(line);
    }
    gone.reverse();
    let by_hand = gone.iter().chain(&line.by_hand).copied().collect();
    Ok(Stack { top: at, undone: [gone, line.undone].concat(), by_hand, lifted: line.lifted })
}

/// Adds the undone turns that moved no ref and that HEAD, or what it was put back from, has gained newer ones above: redo brings them back
/// below these.
fn add_passed_over(timeline: &Stored<'_>, recorded: &Recorded, head: &Head, place: &mut Place) -> Result<()> {
    let newest = place.top.max(place.undone.last().copied());
    let lines = match recorded.own() {
        Some(own) => vec![own.clone()],
        None => [vec![recorded.last.clone()], others_here(timeline, head, |line| !line.undone.is_empty())?].concat(),
    };
    let is_done = |turn: u64| Ok::<_, anyhow::Error>(first_up_to(timeline, turn, place.top)? == Some(turn));
    let Some(line) = lines.into_iter().find(|line| line.undone.iter().any(|turn| Some(*turn) < newest)) else {
        return Ok(());
    };
    for turn in line.undone {
        if place.undone.contains(&turn) || is_done(turn)? {
            continue;
        }
        let node = timeline.node(turn)?;
        let is_above = match node.previous {
            Some(below) => place.undone.contains(&below) || is_done(below)?,
            None => true,
        };
        if node.moved() || !is_above {
            break;
        }
        let at = place.undone.iter().take_while(|undone| **undone < turn).count();
        place.undone.insert(at, turn);
    }
    Ok(())
}

/// The lines of other branches that are at HEAD's commit, or had another name. Refs are read for those alone that are wanted.
fn others_here(timeline: &Stored<'_>, head: &Head, is_wanted: impl Fn(&Stack) -> bool) -> Result<Vec<Stack>> {
    let (refs, mut lines) = (Refs::new(timeline.repo), Vec::new());
    let others = timeline.state.stacks.iter().filter(|(name, _)| *name != "HEAD" && *name != head.stack());
    for (name, stack) in others.filter(|(_, stack)| is_wanted(stack)) {
        if refs.ref_id(name)?.is_none_or(|tip| Some(tip) == head.commit) {
            lines.push(stack.clone());
        }
    }
    Ok(lines)
}

/// Before it is written that a branch stands here: the line of turns from which git has taken it away is kept, with what moved no ref
/// on it.
pub fn keep_line(timeline: &Stored<'_>, state: &mut Timeline, head: &Head, place: &Place) -> Result<()> {
    let line = timeline.state.stack(head.stack()).before_by_hand();
    let Some(top) = line.top else { return Ok(()) };
    if !place.undone.contains(&top) && first_up_to(timeline, top, place.top)? != Some(top) {
        state.leave(line);
    }
    Ok(())
}

/// The lines of turns that HEAD's history has.
struct Lines {
    /// The newest end of a turn in it.
    found: Option<Found>,
    /// The newest turn that is done.
    newest: Option<u64>,
    /// The turns that stand elsewhere than they did, each with the one below it.
    joined: Vec<(u64, u64)>,
}

/// Finds them where HEAD has moved since the timeline was written.
fn lines(timeline: &Stored<'_>, recorded: &Recorded, head: &Head, to: ObjectId) -> Result<Lines> {
    let objects = Objects::new(timeline.repo);
    let is_below = |end: Found| objects.is_ancestor(end.commit, to);
    let nearest = nearest(timeline.repo, timeline, recorded, head, to)?;
    let comes_along = LazyCell::new(|| has_come_along(&objects, timeline, recorded, head).unwrap_or(false));
    let mut ends: Vec<Found> = ends_near(timeline, recorded, to)?.into_iter().chain(nearest).collect();
    let mut tops: BTreeSet<u64> = ends.iter().map(|end| end.turn).collect();
    let own = recorded.own();
    let mut most = u64::MAX;
    for (line, is_own) in own.map(|own| (own, true)).into_iter().chain([(&recorded.last, false)]) {
        let end = end_below(line.top, &|turn| timeline.node(turn))?;
        let base = end.map(|end| end.turn);
        let is_nearest = |end: Found| nearest.is_some_and(|it| it.turn == end.turn || it.commit == end.commit);
        let is_reached = match end {
            None => true,
            Some(end) => (is_nearest(end) || ended_on_its_own(timeline, end)?) && is_below(end)?,
        };
        if !is_reached && !ends.iter().any(|found| Some(found.turn) == base) {
            continue;
        }
        if let Some(top) = line.top.filter(|_| !is_reached && (is_own || own.is_none())) {
            let newest = ends.iter().max_by_key(|end| end.turn).filter(|newest| Some(newest.turn) > base);
            let has_it = |newest: &Found| {
                Ok::<_, anyhow::Error>(
                    ends_near(timeline, recorded, newest.commit)?.iter().any(|end| Some(end.turn) == base),
                )
            };
            // It was made anew upon what is newer: that stands below all of it. Else that was made upon it as it is now.
            if !newest.map_or(Ok(false), has_it)? {
                most = top;
            }
        }
        // What moved no ref is not where HEAD is only beside it.
        let is_done = line.top == base || is_own || *comes_along;
        tops.extend(line.top.filter(|_| is_done).or(base));
        ends.extend(end);
    }
    for top in tops.split_off(&most.saturating_add(1)) {
        tops.extend(first_up_to(timeline, most, Some(top))?);
    }
    // What moved no ref stands above such an end wherever that is.
    let newest = tops.last().copied();
    let undone = &own.unwrap_or(&recorded.last).undone;
    let is_done = |line: &&Stack| line.top.is_some_and(|top| Some(top) < newest && !undone.contains(&top));
    for line in recorded.others.iter().filter(is_done) {
        let base = base_of(line.top, &|turn| timeline.node(turn))?;
        tops.extend(line.top.filter(|_| ends.iter().any(|end| Some(end.turn) == base)));
    }
    let mut joined = joined(&tops, &|turn| timeline.node(turn))?;
    if *comes_along {
        joined.extend(going_up(timeline, &recorded.last, &tops)?);
    }
    Ok(Lines { found: ends.into_iter().filter(|end| end.turn <= most).max_by_key(|end| end.turn), newest, joined })
}

/// The first turn from one down that is no newer than this one.
pub fn first_up_to(timeline: &Stored<'_>, most: u64, from: Option<u64>) -> Result<Option<u64>> {
    let mut at = from;
    while let Some(turn) = at.filter(|turn| *turn > most) {
        at = timeline.require_turn(turn)?.previous;
    }
    Ok(at)
}

/// Whether there are turns beside the line that was walked last, or such that moved no ref at its top: none are elsewhere otherwise.
fn is_among_others(timeline: &Stored<'_>, recorded: &Recorded) -> Result<bool> {
    let Recorded { last, here, others, .. } = recorded;
    let Some(top) = last.top.or(last.undone.last().copied()) else { return Ok(true) };
    let turn = timeline.require_turn(top)?;
    Ok(!others.is_empty()
        || here.as_ref().is_some_and(|here| here != last)
        || !last.lifted.is_empty()
        || !timeline.node(top)?.moved()
        || turn.depth + last.undone.len() as u64 + 1 < timeline.state.next)
}

/// The turns that ended on one of the last commits of HEAD's history, by the notes, or of which one that is done on another line is copied
/// there.
fn ends_near(timeline: &Stored<'_>, recorded: &Recorded, head: ObjectId) -> Result<Vec<Found>> {
    let objects = Objects::new(timeline.repo);
    let commits = objects.newest_first(head).take(NEAR.iter().sum())?;
    let (mut ends, mut bare) = (Vec::new(), Vec::new());
    for (commit, notes) in commits.iter().zip(Refs::new(timeline.repo).notes_on(&commits)?) {
        match end_of(timeline.repo, timeline, &notes)? {
            Some(found) => ends.push(found),
            None => bare.push(*commit),
        }
    }
    let known: HashSet<u64> = ends.iter().map(|end| end.turn).collect();
    let mut others = beside(&objects, timeline, recorded)?;
    others.retain(|end| !known.contains(&end.found.turn));
    if !others.is_empty() && !bare.is_empty() {
        let bare: Vec<Seen> = bare.iter().take(NEAR_TURNS).map(|commit| objects.seen(*commit)).collect();
        let copied = copied(&objects, Anew::new(&objects, timeline), &others, &bare, head)?;
        ends.extend(others.iter().map(|end| end.found).filter(|found| copied.contains(&found.commit)));
    }
    Ok(ends)
}

/// Has those stand where they did that went up on the line of HEAD's branch, of another one that is here, or on the one that was walked last,
/// while all of that is in HEAD's history, which went from one commit to another since.
fn keep_lifted(
    timeline: &mut Stored<'_>,
    recorded: &Recorded,
    head: &Head,
    (from, to): (Option<ObjectId>, ObjectId),
) -> Result<()> {
    let objects = Objects::new(timeline.repo);
    let others = others_here(timeline, head, |line| !line.lifted.is_empty())?;
    let lines = recorded.own().into_iter().chain(&others).map(|line| (line, false)).chain([(&recorded.last, true)]);
    for (line, is_last) in lines.filter(|(line, _)| !line.lifted.is_empty()) {
        timeline.state.lifted.clone_from(&line.lifted);
        // What it had then it has still, where it has only gained something.
        if is_last && from.map_or(Ok(false), |from| objects.is_ancestor(from, to))? {
            return Ok(());
        }
        let mut ends = BTreeSet::new();
        for (turn, lift) in &line.lifted {
            for turn in [Some(*turn), lift.below()] {
                ends.extend(end_below(turn, &|turn| timeline.node(turn))?.map(|end| end.commit));
            }
        }
        let ends: Vec<ObjectId> = ends.into_iter().collect();
        if objects.reachable_from(&[to], &ends)?.len() == ends.len() {
            return Ok(());
        }
    }
    timeline.state.lifted.clear();
    Ok(())
}

/// Which undone turns that moved no ref stand above what HEAD has gained since, each with the one below it, the next one first.
fn going_up(timeline: &Stored<'_>, line: &Stack, tops: &BTreeSet<u64>) -> Result<Vec<(u64, u64)>> {
    let mut up = Vec::new();
    let has_line = line.top.is_none_or(|top| tops.contains(&top));
    let newest = tops.last().copied().filter(|newest| has_line && Some(*newest) != line.top);
    let Some(mut below) = newest else { return Ok(up) };
    for turn in &line.undone {
        if *turn < below || timeline.node(*turn)?.moved() {
            break;
        }
        up.push((*turn, below));
        below = *turn;
    }
    Ok(up)
}

/// The newest line of turns above one, the next one first. Above none, it is one that began where HEAD is: other history has none.
fn line_above(timeline: &Stored<'_>, top: Option<u64>, head: &Head) -> Result<Vec<u64>> {
    let (mut line, mut at) = (Vec::new(), top);
    while let Some(next) = newest_above(timeline, at)? {
        if at.is_none() && !timeline.node(next)?.begins_at(head.commit) {
            break;
        }
        line.push(next);
        at = Some(next);
    }
    Ok(line)
}

/// The newest turn right above one. What takes others out is brought back by the redo that comes right after it, or not at all; and
/// on a branch that oxundo began one is by a switch.
fn newest_above(timeline: &Stored<'_>, at: Option<u64>) -> Result<Option<u64>> {
    let mut newest = None;
    for turn in timeline.above(at)? {
        if timeline.require_turn(turn)?.takes_out().is_empty() && !timeline.node(turn)?.is_branch_alone {
            newest = newest.max(Some(turn));
        }
    }
    Ok(newest)
}

fn recorded_or_found(repo: &Repo, timeline: &Stored<'_>, head: &Head) -> Result<Place> {
    let state = &timeline.state;
    if state.stacks.is_empty() {
        return Ok(Place::default());
    }
    let mut recorded = state.recorded(head);
    let is_open = state.open.is_some() && state.at.is_some();
    if is_open || (recorded.is_here && is_where_recorded(timeline, &recorded, head)?) {
        return Ok(Place::of(&recorded.last));
    }
    let found = match (&state.found, head.commit) {
        (Some((of, found)), _) if of == head => *found,
        (_, Some(commit)) => nearest(repo, timeline, &recorded, head, commit)?,
        _ => None,
    };
    if let Some(at) = state.at.as_ref().and_then(|at| at.commit)
        && !(recorded.left.is_empty() && recorded.last.by_hand.is_empty())
    {
        let resets = Refs::new(repo).resets_since(head.stack(), at);
        recorded.comes_back = resets.last().is_some_and(|reset| reset.goes_back);
    }
    if let Some(commit) = head.commit {
        recorded.last = without_gained(timeline, recorded.last, commit, found)?;
        recorded.here = recorded.here.map(|line| without_gained(timeline, line, commit, found)).transpose()?;
    }
    let mut place = decide(&recorded, head.commit, found, &|turn| timeline.node(turn))?;
    if place.undone.is_empty() {
        let goes_up = |turn: &&u64| state.lifted.get(turn).is_some_and(|lift| lift.below() >= place.top);
        place.undone = recorded.last.undone.iter().take_while(goes_up).copied().collect();
    }
    add_passed_over(timeline, &recorded, head, &mut place)?;
    Ok(place)
}

/// Whether HEAD is at the commit at which it was when the timeline was written; older timelines do not say it, but their
/// last turn does.
fn is_where_recorded(timeline: &Stored<'_>, recorded: &Recorded, head: &Head) -> Result<bool> {
    if let Some(at) = &timeline.state.at {
        return Ok(at.commit == head.commit);
    }
    let commit = match (recorded.last.top, recorded.last.undone.first()) {
        (Some(top), _) => timeline.commit_at(top, Side::After)?,
        (None, Some(next)) => timeline.commit_at(*next, Side::Before)?,
        (None, None) => return Ok(false),
    };
    Ok(commit == head.commit)
}

/// The nearest end of a turn in a commit's history: what the notes say of its commits, and what those without notes are
/// copies of.
fn nearest(
    repo: &Repo,
    timeline: &Stored<'_>,
    recorded: &Recorded,
    head: &Head,
    from: ObjectId,
) -> Result<Option<Found>> {
    let objects = Objects::new(repo);
    let standing = base_of(recorded.last.top, &|turn| timeline.node(turn))?;
    let (mut all, mut noted, mut bare, mut passed) = (None, None, Vec::new(), Vec::new());
    let mut history = objects.newest_first(from);
    for (round, many) in NEAR.into_iter().enumerate() {
        let commits = history.take(many)?;
        let is_end = commits.len() < many;
        let (above, is_own) = until_own(repo, timeline, &commits, &mut noted)?;
        bare.extend(above);
        // A few commits of one's own, or copies, say nothing before it is known what is below them.
        if !is_own && round == 0 && !is_end {
            continue;
        }
        let like = |ends: &[End]| end_like(&objects, timeline, ends, &bare, from);
        let found = match noted {
            // All that is done is below: no commit above it is a copy of that.
            Some(noted) if Some(noted.turn) == standing => {
                like(&beside(&objects, timeline, recorded)?)?.or(Some(noted))
            }
            noted => {
                if all.is_none() && !bare.is_empty() {
                    all = Some(ends(&objects, timeline, recorded, head)?);
                }
                like(all.as_deref().unwrap_or_default())?.or(noted)
            }
        };
        passed.append(&mut bare);
        if found.is_some() || is_end {
            let together = together(&objects, timeline, all.as_deref().unwrap_or_default(), &passed, found)?;
            return Ok(together.or(found));
        }
    }
    let mut ends = all.unwrap_or_default();
    ends.retain(|end| history.may_have(end.found.commit));
    far(&objects, &ends, from)
}

/// The commits of which the notes say nothing, down to the first that is a turn's own, and whether there is one. Of the turns that
/// ended on that, or on one that is copied above it, the newest counts: the user may have put them in another order.
fn until_own(
    repo: &Repo,
    timeline: &Stored<'_>,
    commits: &[ObjectId],
    newest: &mut Option<Found>,
) -> Result<(Vec<ObjectId>, bool)> {
    let mut bare = Vec::new();
    for (commit, notes) in commits.iter().zip(Refs::new(repo).notes_on(commits)?) {
        let Some(found) = end_of(repo, timeline, &notes)? else {
            bare.push(*commit);
            continue;
        };
        if newest.is_none_or(|newest| found.turn > newest.turn) {
            *newest = Some(found);
        }
        if found.commit == *commit {
            return Ok((bare, true));
        }
    }
    Ok((bare, false))
}

/// Beyond what was looked at one by one, git is asked for the recorded line's ends, for all of them at once.
fn far(objects: &Objects<'_>, ends: &[End], from: ObjectId) -> Result<Option<Found>> {
    let commits: Vec<ObjectId> = ends.iter().map(|end| end.found.commit).collect();
    let reached = objects.reachable_from(&[from], &commits)?;
    Ok(ends.iter().map(|end| end.found).find(|found| reached.contains(&found.commit)))
}

/// The turn that ended on a commit, or on the one that this is a copy of, by its notes.
fn end_of(repo: &Repo, timeline: &Stored<'_>, notes: &[Note]) -> Result<Option<Found>> {
    let worktree = repo.worktree_id();
    let mut numbers: Vec<u64> = notes.iter().filter(|note| note.worktree == worktree).map(|note| note.turn).collect();
    numbers.sort_unstable();
    for number in numbers.into_iter().rev() {
        // One that is open has no end yet.
        let Some(turn) = timeline.find_turn(number)?.filter(|turn| turn.ended_at.is_some()) else { continue };
        let node = timeline.node(number)?;
        let ended_on = |id: ObjectId| node.moved() && node.to == Some(id) && turn.knows(&id);
        let original = notes.iter().find(|note| note.turn == number && ended_on(note.commit));
        if let Some(original) = original {
            return Ok(Some(Found { turn: number, commit: original.commit }));
        }
    }
    Ok(None)
}

/// The line of turns of which one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// The one that was walked last, and HEAD has come along: the user may have amended a turn of it, or made one of several.
    Here,
    /// The one that was walked last, and HEAD is elsewhere.
    Last,
    /// Another one, or what is undone.
    Other,
}

/// The end of a turn.
struct End {
    node: Node,
    found: Found,
    /// Whose it is.
    line: Line,
    /// The commit.
    original: Original,
}

/// Whether a turn ended on a commit of its own: another's says nothing of it.
fn ended_on_its_own(timeline: &Stored<'_>, end: Found) -> Result<bool> {
    Ok(timeline.require_turn(end.turn)?.knows(&end.commit))
}

/// The newest turn whose end is among these commits, made anew or not, in whatever order the user has put them.
fn end_like(
    objects: &Objects<'_>,
    timeline: &Stored<'_>,
    ends: &[End],
    commits: &[ObjectId],
    head: ObjectId,
) -> Result<Option<Found>> {
    let anew = Anew::new(objects, timeline);
    let seen: Vec<Seen> = commits.iter().map(|commit| objects.seen(*commit)).collect();
    let copied = copied(objects, anew, ends, &seen, head)?;
    for end in ends {
        let commit = end.found.commit;
        if commits.contains(&commit) || copied.contains(&commit) || is_squashed(objects, anew, end, &seen)? {
            return Ok(Some(end.found));
        }
    }
    Ok(None)
}

/// Whether one of these commits leaves all as a turn left it: the user has made one of several.
fn is_squashed(objects: &Objects<'_>, anew: Anew<'_, '_>, end: &End, commits: &[Seen]) -> Result<bool> {
    let Original { turn, seen, .. } = &end.original;
    if end.line != Line::Here || objects.changes_in(seen).is_empty() {
        return Ok(false);
    }
    let has_tree = |other: &&Seen| {
        seen.features.as_ref().zip(other.features.as_ref()).is_some_and(|(was, is)| was.has_tree_of(is))
    };
    let alike: Vec<&Seen> = commits.iter().filter(has_tree).collect();
    Ok(anew.there_before(*turn, seen, &alike)?.len() < alike.len())
}

/// The ends of which one of these commits is a copy.
fn copied(
    objects: &Objects<'_>,
    anew: Anew<'_, '_>,
    ends: &[End],
    commits: &[Seen],
    head: ObjectId,
) -> Result<HashSet<ObjectId>> {
    let originals = Original::each_once(ends.iter().map(|end| &end.original));
    let is_amendable: HashSet<ObjectId> =
        ends.iter().filter(|end| end.line == Line::Here).map(|end| end.found.commit).collect();
    let mut there = HashSet::new();
    loop {
        let takes = |at: usize, likeness| {
            let id = originals[at].seen.id;
            !there.contains(&id) && (likeness != Likeness::Beside || is_amendable.contains(&id))
        };
        let pairs = anew.copies(&originals, commits, takes)?;
        let claimed: Vec<ObjectId> = pairs.keys().map(|at| originals[*at].seen.id).collect();
        // What HEAD's history has itself is known by itself: a copy of it says nothing.
        let known = objects.reachable_from(&[head], &claimed)?;
        if known.is_empty() {
            return Ok(claimed.into_iter().collect());
        }
        there.extend(known);
    }
}

/// The newest turn above one that was found, whose changes are in these commits together with those of others. Where HEAD has not come
/// along from where the turns were made, one alone says nothing, unless a commit does all that it did and no more, or all that its branch
/// did, whoever made that.
fn together(
    objects: &Objects<'_>,
    timeline: &Stored<'_>,
    ends: &[End],
    commits: &[ObjectId],
    found: Option<Found>,
) -> Result<Option<Found>> {
    let above = |end: &&End| found.is_none_or(|found| end.found.turn > found.turn);
    let of = |line| ends.iter().filter(above).filter(move |end| end.line == line).collect::<Vec<&End>>();
    let (lost, least) = match of(Line::Here) {
        lost if lost.is_empty() => (of(Line::Last), 2),
        lost => (lost, 1),
    };
    if lost.is_empty() || commits.is_empty() {
        return Ok(None);
    }
    let anew = Anew::new(objects, timeline);
    let seen: Vec<Seen> = commits.iter().map(|commit| objects.seen(*commit)).collect();
    let originals = Original::each_once(ends.iter().map(|end| &end.original));
    let pairs = anew.copies(&originals, &seen, |_, likeness| likeness != Likeness::Beside)?;
    let works: Vec<Work> = lost.iter().filter_map(|end| Work::of(&end.node)).collect();
    let there = Rest::of(anew, &originals, &seen, &pairs).find_most(&works)?;
    if there.len() < least {
        for (at, commit) in &there {
            let is_it = seen.iter().find(|it| it.id == *commit).map(|it| works[*at].is_whole_in(objects, it));
            if is_it.unwrap_or(Ok(false))? {
                return Ok(Some(lost[*at].found));
            }
        }
        let all: Vec<&Seen> = seen.iter().collect();
        for end in lost {
            if anew.squash_of(&end.node, commits[0], &all)?.is_some() {
                return Ok(Some(end.found));
            }
        }
        return Ok(None);
    }
    Ok(there.keys().next().map(|at| lost[*at].found))
}

impl End {
    /// Where a turn ended, if it moved HEAD.
    fn of(objects: &Objects<'_>, node: Node, line: Line) -> Option<Self> {
        let commit = node.to.filter(|_| node.moved())?;
        let original = Original::end_of(objects, &node)?;
        Some(Self { found: Found { turn: node.turn, commit }, line, original, node })
    }
}

/// Whether HEAD is where it was recorded, or has come along from there: on a branch that goes on from that one, or detached; or
/// the branch has another name now.
fn has_come_along(objects: &Objects<'_>, timeline: &Stored<'_>, recorded: &Recorded, head: &Head) -> Result<bool> {
    let (Some(at), Some(commit)) = (&timeline.state.at, head.commit) else { return Ok(recorded.is_here) };
    let refs = Refs::new(timeline.repo);
    if let Some(was) = at.commit.filter(|_| recorded.is_here) {
        let top = recorded.last.top.map(|top| timeline.node(top)).transpose()?;
        // Of what moved HEAD its commit tells.
        if recorded.last.undone.is_empty() && top.as_ref().is_none_or(Node::moved) {
            return Ok(true);
        }
        let made_at = top.and_then(|top| top.to);
        let resets = refs.resets_since(&at.stack, was);
        return Ok(!is_put_elsewhere(objects, &resets, made_at.unwrap_or(was), commit)?);
    }
    let is_renamed = |was| refs.was_called(head.stack(), &at.stack, &Was::at(was));
    if recorded.is_here || at.commit.is_some_and(is_renamed) {
        return Ok(true);
    }
    let comes_along = match refs.ref_id(&at.stack)? {
        Some(tip) => objects.is_ancestor(tip, commit)?,
        None => at.commit.is_some_and(|was| refs.was_at(head.stack(), was)),
    };
    // The branch may have gone elsewhere since.
    let left = at.commit.filter(|_| !comes_along).and_then(|was| refs.left_at(&at.stack, was));
    Ok(comes_along || left.map_or(Ok(false), |left| objects.is_ancestor(left, commit))?)
}

/// Whether one of these resets has put a branch on another line than what the user had committed upon this commit, and it has stayed there:
/// what moved no ref upon that may be in what was committed.
fn is_put_elsewhere(objects: &Objects<'_>, resets: &[Reset], made_at: ObjectId, now: ObjectId) -> Result<bool> {
    for Reset { from, to, .. } in resets.iter().copied() {
        let is_above = from != made_at && objects.is_ancestor(made_at, from)?;
        // Who only goes back, goes on from there.
        if is_above && !objects.is_ancestor(to, from)? && !objects.is_ancestor(from, now)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The ends of all recorded turns that are near, the newest first.
fn ends(objects: &Objects<'_>, timeline: &Stored<'_>, recorded: &Recorded, head: &Head) -> Result<Vec<End>> {
    let mut ends = beside(objects, timeline, recorded)?;
    let line = if has_come_along(objects, timeline, recorded, head)? { Line::Here } else { Line::Last };
    let (mut at, mut left) = (recorded.last.top, NEAR_TURNS);
    while let Some(turn) = at.filter(|_| left > 0) {
        let node = timeline.node(turn)?;
        at = match node.base {
            // What stands above the same commit need not be read.
            Some(base) if base < turn => Some(base).filter(|base| *base != 0),
            _ => node.previous,
        };
        ends.extend(End::of(objects, node, line));
        left -= 1;
    }
    ends.sort_by_key(|end| std::cmp::Reverse(end.found.turn));
    Ok(ends)
}

/// The ends of those that are not done here: undone ones, and the last ones of other lines that moved HEAD; the newest first.
fn beside(objects: &Objects<'_>, timeline: &Stored<'_>, recorded: &Recorded) -> Result<Vec<End>> {
    let base = |stack: &Stack| base_of(stack.top, &|turn| timeline.node(turn));
    let last = base(&recorded.last)?;
    let here = recorded.here.as_ref().map(base).transpose()?.flatten();
    let mut turns: Vec<u64> = recorded.last.undone.iter().copied().take(NEAR_TURNS).collect();
    for stack in recorded.here.iter().chain(&recorded.others).take(NEAR_TURNS) {
        turns.extend(base(stack)?.filter(|turn| Some(*turn) != last && !turns.contains(turn)));
    }
    let mut ends = Vec::new();
    for turn in turns {
        let end = End::of(objects, timeline.node(turn)?, Line::Other);
        if let Some(end) = end
            && (Some(turn) == here || ended_on_its_own(timeline, end.found)?)
        {
            ends.push(end);
        }
    }
    ends.sort_by_key(|end| std::cmp::Reverse(end.found.turn));
    Ok(ends)
}
