//! Where HEAD stands on the timeline: [`model::place`](crate::model::place) decides, here is looked at what it needs. Where HEAD has not
//! moved since the timeline was written, that is nothing.

use crate::git::objects::Objects;
use crate::git::objects::commit::{Features, Likeness};
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::checkpoint::Head;
use crate::model::place::{Found, Node, Place, Recorded, base_of, decide};
use crate::model::turn::Note;
use anyhow::Result;
use gix::ObjectId;

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

/// The newest turn right above one. What takes others out is brought back by the redo that comes right after it, or not at all.
fn newest_above(timeline: &Stored<'_>, at: Option<u64>) -> Result<Option<u64>> {
    let mut newest = None;
    for turn in timeline.above(at)? {
        if timeline.require_turn(turn)?.takes_out().is_empty() {
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
    let recorded = state.recorded(head);
    let is_open = state.open.is_some() && state.at.is_some();
    if is_open || (recorded.is_here && is_where_recorded(timeline, &recorded, head)?) {
        return Ok(Place::of(&recorded.last));
    }
    let found = head.commit.map(|commit| nearest(repo, timeline, &recorded, commit)).transpose()?.flatten();
    decide(&recorded, head.commit, found, &|turn| timeline.node(turn))
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
fn nearest(repo: &Repo, timeline: &Stored<'_>, recorded: &Recorded, from: ObjectId) -> Result<Option<Found>> {
    let objects = Objects::new(repo);
    let standing = base_of(recorded.last.top, &|turn| timeline.node(turn))?;
    let (mut all, mut bare) = (None, Vec::new());
    let mut history = objects.newest_first(from);
    for (round, many) in NEAR.into_iter().enumerate() {
        let commits = history.take(many)?;
        let is_end = commits.len() < many;
        let (above, noted) = until_noted(repo, timeline, &commits)?;
        bare.extend(above);
        // A few commits of one's own say nothing before it is known what is below them.
        if noted.is_none() && round == 0 && !is_end {
            continue;
        }
        let like = |ends: &[End]| end_like(&objects, ends, &bare);
        let found = match noted {
            // All that is done is below: no commit above it is a copy of that.
            Some(noted) if Some(noted.turn) == standing => like(&beside(&objects, timeline, recorded)?).or(Some(noted)),
            noted => {
                if all.is_none() && !bare.is_empty() {
                    all = Some(ends(&objects, timeline, recorded)?);
                }
                like(all.as_deref().unwrap_or_default()).or(noted)
            }
        };
        if found.is_some() || is_end {
            return Ok(found);
        }
        bare.clear();
    }
    let mut ends = all.unwrap_or_default();
    ends.retain(|end| history.may_have(end.found.commit));
    far(&objects, &ends, from)
}

/// The commits of which the notes say nothing, down to the first of which they do, and the turn that ended there.
fn until_noted(repo: &Repo, timeline: &Stored<'_>, commits: &[ObjectId]) -> Result<(Vec<ObjectId>, Option<Found>)> {
    let mut bare = Vec::new();
    for (commit, notes) in commits.iter().zip(Refs::new(repo).notes_on(commits)?) {
        match end_of(repo, timeline, &notes)? {
            Some(found) => return Ok((bare, Some(found))),
            None => bare.push(*commit),
        }
    }
    Ok((bare, None))
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
        let Some(turn) = timeline.find_turn(number)? else { continue };
        let node = timeline.node(number)?;
        let ended_on = |id: ObjectId| node.moved() && node.to == Some(id) && turn.knows(&id);
        let original = notes.iter().find(|note| note.turn == number && ended_on(note.commit));
        if let Some(original) = original {
            return Ok(Some(Found { turn: number, commit: original.commit }));
        }
    }
    Ok(None)
}

/// The end of a turn of the recorded line.
struct End {
    found: Found,
    /// Whether it may be amended: it is done, and HEAD is on the branch where it was.
    is_amendable: bool,
    /// What the commit is known by.
    features: Option<Features>,
}

/// The turn of whose last commit one of these is a copy, amended, rebased or picked; the newest one, in whatever order the user
/// has put them.
fn end_like(objects: &Objects<'_>, ends: &[End], commits: &[ObjectId]) -> Option<Found> {
    let features: Vec<_> = commits.iter().map(|commit| objects.features(*commit)).collect();
    let is_of = |end: &End, commit: ObjectId, features: Option<&Features>| {
        let may_be = || end.features.as_ref().zip(features).is_some_and(|(known, other)| known.may_be(other));
        let likeness = || objects.likeness(end.found.commit, commit);
        let is_squash = || {
            let is_same = end.features.as_ref().zip(features).is_some_and(|(known, other)| known.has_tree_of(other));
            end.is_amendable && is_same && objects.is_squash(end.found.commit, commit)
        };
        end.found.commit == commit
            || is_squash()
            || may_be()
                && match likeness() {
                    Likeness::None => false,
                    Likeness::Beside => end.is_amendable,
                    Likeness::Copy | Likeness::Reworded => true,
                }
    };
    let has_copy =
        |end: &&End| commits.iter().zip(&features).any(|(commit, features)| is_of(end, *commit, features.as_ref()));
    ends.iter().find(has_copy).map(|end| end.found)
}

/// The ends of all recorded turns that are near, the newest first.
fn ends(objects: &Objects<'_>, timeline: &Stored<'_>, recorded: &Recorded) -> Result<Vec<End>> {
    let mut ends = beside(objects, timeline, recorded)?;
    let (mut at, mut left) = (recorded.last.top, NEAR_TURNS);
    while let Some(turn) = at.filter(|_| left > 0) {
        let node = timeline.node(turn)?;
        ends.extend(end(objects, &node, recorded.is_here));
        at = match node.base {
            // What stands above the same commit need not be read.
            Some(base) if base < turn => Some(base).filter(|base| *base != 0),
            _ => node.previous,
        };
        left -= 1;
    }
    ends.sort_by_key(|end| std::cmp::Reverse(end.found.turn));
    Ok(ends)
}

/// The ends of those that are not done here: undone ones, and the last ones of other lines; the newest first.
fn beside(objects: &Objects<'_>, timeline: &Stored<'_>, recorded: &Recorded) -> Result<Vec<End>> {
    let undone = recorded.last.undone.iter().copied().take(NEAR_TURNS);
    let others = recorded.here.iter().chain(&recorded.others).filter_map(|stack| stack.top).take(NEAR_TURNS);
    let mut ends = Vec::new();
    for turn in undone.chain(others.filter(|top| Some(*top) != recorded.last.top)) {
        ends.extend(end(objects, &timeline.node(turn)?, false));
    }
    ends.sort_by_key(|end| std::cmp::Reverse(end.found.turn));
    Ok(ends)
}

/// Where a turn ended, if it moved HEAD.
fn end(objects: &Objects<'_>, node: &Node, is_amendable: bool) -> Option<End> {
    let commit = node.to.filter(|_| node.moved())?;
    Some(End { found: Found { turn: node.turn, commit }, is_amendable, features: objects.features(commit) })
}
