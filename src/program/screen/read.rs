//! Reads what the timeline screen shows: first the newest turns of the line on which HEAD stands, then all there are.

use crate::git::repo::Repo;
use crate::git::repo::clock::ago;
use crate::model::checkpoint::short_branch;
use crate::model::turn::{FileChange, Turn};
use crate::ops::list::{State, every, here};
use crate::ops::turn::session::look;
use crate::ops::view::View;
use crate::program::screen::row::{Checkpoint, Recorded, Timeline, harmless};
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::Path;

/// So many turns are there at once.
const FIRST: usize = 100;

/// Tells of the timeline, in one part or two.
pub fn timeline(top: &Path, tell: impl Fn(Timeline)) -> Result<()> {
    let repo = Repo::open(top)?;
    let heard = |_| {};
    let view = look(&repo, &heard, "rewind")?;
    let first = newest(&view, FIRST)?;
    let numbers = view.timeline.turn_numbers()?.len();
    let is_all = first.turns.len() >= numbers;
    tell(Timeline { more: !is_all, ..first });
    if !is_all {
        tell(all(&view)?);
    }
    Ok(())
}

/// The newest turns of the line on which HEAD stands.
pub fn newest(view: &View<'_>, most: usize) -> Result<Timeline> {
    let mut turns = Vec::new();
    for (turn, state) in here(view, most)? {
        let files = view.timeline.turn_files(turn.turn)?;
        turns.push(recorded(&turn, state, true, &files));
    }
    with(view, turns)
}

fn all(view: &View<'_>) -> Result<Timeline> {
    let line: BTreeSet<u64> = here(view, usize::MAX)?.iter().map(|(turn, _)| turn.turn).collect();
    let mut turns = Vec::new();
    for (turn, state) in every(&view.timeline, Some(view), usize::MAX)? {
        let files = view.timeline.turn_files(turn.turn)?;
        turns.push(recorded(&turn, state, line.contains(&turn.turn), &files));
    }
    with(view, turns)
}

fn with(view: &View<'_>, turns: Vec<Recorded>) -> Result<Timeline> {
    let named = view.timeline.state.named.iter().map(|(name, named)| Checkpoint {
        name: name.clone(),
        top: named.top,
        age: ago(&named.at),
        number: named.number,
    });
    let branch = view
        .head
        .branch
        .as_deref()
        .map_or_else(|| "a detached HEAD".to_owned(), |name| short_branch(name).into_owned());
    Ok(Timeline {
        branch: harmless(&branch),
        top: view.last_whole()?.unwrap_or_default(),
        turns,
        checkpoints: named.collect(),
        more: false,
    })
}

fn recorded(turn: &Turn, state: State, here: bool, files: &[FileChange]) -> Recorded {
    let mut words = turn.label();
    let session = turn.session.as_deref();
    for more in [turn.prompt.as_deref(), turn.message.as_deref(), session, turn.branch.as_deref()].into_iter().flatten()
    {
        words.push('\n');
        words.push_str(more);
    }
    for file in files {
        words.push('\n');
        words.push_str(&file.path);
    }
    let marks = [(turn.interrupted, "interrupted"), (turn.kept, "kept"), (state == State::UndoneByHand, "by hand")];
    let totals = turn.totals;
    Recorded {
        number: turn.turn,
        previous: turn.previous,
        state,
        here,
        part: turn.is_part(),
        age: ago(turn.ended_at.as_deref().unwrap_or(&turn.began_at)),
        label: harmless(&turn.label()),
        marks: marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect(),
        changes: (totals.files, totals.insertions, totals.deletions),
        words: words.to_lowercase(),
    }
}
