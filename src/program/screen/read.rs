//! Reads what the timeline screen shows: first the newest turns of the line on which HEAD stands, then all there are.

use crate::git::repo::Repo;
use crate::git::repo::clock::ago;
use crate::git::timeline::Timelines;
use crate::model::checkpoint::short_branch;
use crate::model::step::Step;
use crate::model::turn::{FileChange, Turn};
use crate::ops::list::{State, every, here};
use crate::ops::operation::numbered;
use crate::ops::turn::session::look;
use crate::ops::view::View;
use crate::program::screen::row::{Checkpoint, Part, Recorded, Rescue, Timeline, harmless};
use anyhow::Result;
use std::collections::BTreeSet;
use std::path::Path;

/// So many turns are there at once.
const FIRST: usize = 100;

/// Of so many operations it is looked what was kept before them.
const OPERATIONS: usize = 1000;

/// Tells of the timeline, in one part or two.
pub fn timeline(top: &Path, tell: impl Fn(Timeline)) -> Result<()> {
    let repo = Repo::open(top)?;
    let heard = |_| {};
    let view = look(&repo, &heard, "rewind")?;
    let first = newest(&view, FIRST)?;
    // Without a look at which have expired, so that the first picture need not wait for a list of them all.
    let is_all = first.turns.len() as u64 + 1 >= view.timeline.state.next;
    let has_rescues = view.timeline.state.next_rescue > 1;
    tell(Timeline { more: !is_all, ..first.clone() });
    if !is_all || has_rescues {
        let all = if is_all { first } else { all(&view)? };
        tell(Timeline { rescues: rescues(&view)?, ..all });
    }
    Ok(())
}

/// The rescues, by the operations before which they were taken.
fn rescues(view: &View<'_>) -> Result<Vec<Rescue>> {
    let timelines = Timelines::new(view.repo);
    let mut wanted: BTreeSet<u64> = view.timeline.rescue_numbers()?.into_iter().collect();
    let mut rescues = Vec::new();
    let mut operations = numbered(view, OPERATIONS)?.into_iter().map(|(_, operation)| operation).peekable();
    let mut now = view.timeline.state.next_rescue;
    while let (Some(operation), Some(before)) = (operations.next(), operations.peek())
        && !wanted.is_empty()
    {
        // What is damaged there is for `doctor` to tell.
        let Ok(was) = timelines.timeline_at(before.commit) else { break };
        let number = was.state.next_rescue;
        if number < now && wanted.remove(&number) {
            let top = was.state.at.as_ref().and_then(|at| was.state.top(&at.stack));
            let label = harmless(&format!("before {}", operation.what));
            rescues.push(Rescue { number, top, age: ago(&operation.at), label });
        }
        now = number;
    }
    Ok(rescues)
}

/// The newest turns of the line on which HEAD stands.
pub fn newest(view: &View<'_>, most: usize) -> Result<Timeline> {
    let mut turns = Vec::new();
    for (turn, state) in here(view, most)? {
        let files = view.timeline.turn_files(turn.turn)?;
        turns.push(recorded(view, &turn, state, true, &files));
    }
    with(view, turns)
}

fn all(view: &View<'_>) -> Result<Timeline> {
    let line: BTreeSet<u64> = here(view, usize::MAX)?.iter().map(|(turn, _)| turn.turn).collect();
    let mut turns = Vec::new();
    for (turn, state) in every(&view.timeline, Some(view), usize::MAX)? {
        let files = view.timeline.turn_files(turn.turn)?;
        turns.push(recorded(view, &turn, state, line.contains(&turn.turn), &files));
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
        rescues: Vec::new(),
        more: false,
    })
}

fn recorded(view: &View<'_>, turn: &Turn, state: State, here: bool, files: &[FileChange]) -> Recorded {
    let mut words = turn.label();
    let own = [turn.prompt.as_deref(), turn.message.as_deref()];
    let sessions = turn.sessions();
    let theirs = sessions.iter().flat_map(|one| [Some(one.agent), one.id].into_iter().flatten().chain(one.prompts()));
    for more in own.into_iter().flatten().chain(theirs) {
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
        steps: steps(view, turn.turn),
    }
}

/// A turn's steps. Damaged ones are for `doctor` to tell.
fn steps(view: &View<'_>, turn: u64) -> Vec<Part> {
    let part = |step: Step| {
        let (label, totals) = (harmless(&step.label()), step.totals);
        let words = format!("{label}\n{}", step.session.as_deref().unwrap_or_default()).to_lowercase();
        let changes = (totals.files, totals.insertions, totals.deletions);
        Part { number: step.step, age: ago(&step.ended_at), changes, words, label }
    };
    view.timeline.steps(turn).unwrap_or_default().into_iter().map(part).collect()
}
