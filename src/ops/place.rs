//! Where HEAD stands on the timeline: [`model::place`](crate::model::place) decides, here is looked at what it needs. Where HEAD has not
//! moved since the timeline was written, that is nothing.

use crate::git::objects::Objects;
use crate::git::objects::commit::Likeness;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::checkpoint::Head;
use crate::model::place::{Found, Place, Recorded, decide};
use crate::model::turn::Note;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;

/// How many commits are looked at, from HEAD down: the first few, and then more at once.
const NEAR: [usize; 4] = [2, 14, 48, 192];

/// How many turns of the recorded line are looked at for commits that were rewritten or copied.
const NEAR_TURNS: usize = 32;

/// Finds where HEAD stands.
pub fn find(repo: &Repo, timeline: &Stored<'_>, head: &Head) -> Result<Place> {
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

/// The nearest end of a turn in a commit's history: what the notes say of its commits, and where that is nothing, what
/// the turns of the recorded line do.
fn nearest(repo: &Repo, timeline: &Stored<'_>, recorded: &Recorded, from: ObjectId) -> Result<Option<Found>> {
    let objects = Objects::new(repo);
    let mut ends = ends(&objects, timeline, recorded)?;
    let mut history = objects.newest_first(from);
    for many in NEAR {
        let commits = history.take(many)?;
        let notes = Refs::new(repo).notes_on(&commits)?;
        for (commit, notes) in commits.iter().zip(notes) {
            let found = match end_of(repo, timeline, &notes)? {
                Some(found) => Some(found),
                None => end_like(&objects, &ends, *commit),
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        if commits.len() < many {
            return Ok(None);
        }
    }
    ends.retain(|end| history.may_have(end.found.commit));
    far(&objects, &ends, from)
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
    /// Who wrote the commit, and when.
    author: Option<BString>,
}

/// The turn whose last commit this is, or of which it was amended, rebased or picked.
fn end_like(objects: &Objects<'_>, ends: &[End], commit: ObjectId) -> Option<Found> {
    if let Some(end) = ends.iter().find(|end| end.found.commit == commit) {
        return Some(end.found);
    }
    let author = objects.author_line(commit)?;
    let is_it = |end: &&End| {
        end.author.as_ref() == Some(&author)
            && match objects.likeness(end.found.commit, commit) {
                Likeness::None => false,
                Likeness::Beside => end.is_amendable,
                Likeness::Copy | Likeness::Reworded => true,
            }
    };
    ends.iter().find(is_it).map(|end| end.found)
}

/// The ends of the recorded line's turns, the newest first: those that are done, and those that are undone.
fn ends(objects: &Objects<'_>, timeline: &Stored<'_>, recorded: &Recorded) -> Result<Vec<End>> {
    let mut ends = Vec::new();
    let mut add = |turn: u64, is_amendable: bool| -> Result<Option<u64>> {
        let node = timeline.node(turn)?;
        let commit = node.to.filter(|_| node.moved());
        ends.extend(commit.map(|commit| {
            let author = objects.author_line(commit);
            End { found: Found { turn, commit }, is_amendable, author }
        }));
        Ok(match node.base {
            // What stands above the same commit need not be read.
            Some(base) if base < turn => Some(base).filter(|base| *base != 0),
            _ => node.previous,
        })
    };
    for turn in recorded.last.undone.iter().take(NEAR_TURNS) {
        add(*turn, false)?;
    }
    let (mut at, mut left) = (recorded.last.top, NEAR_TURNS);
    while let Some(turn) = at.filter(|_| left > 0) {
        at = add(turn, recorded.is_here)?;
        left -= 1;
    }
    for other in recorded.here.iter().chain(&recorded.others).filter_map(|stack| stack.top).take(NEAR_TURNS) {
        add(other, false)?;
    }
    ends.sort_by_key(|end| std::cmp::Reverse(end.found.turn));
    Ok(ends)
}
