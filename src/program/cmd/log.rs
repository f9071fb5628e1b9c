//! `oxundo log`: the timeline, or the operations on it.

use crate::git::repo::Repo;
use crate::git::repo::clock::{ago, parse_rfc3339};
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::model::step::Step;
use crate::model::turn::{Made, Turn};
use crate::ops::filter::{Filter, Wanted};
use crate::ops::list::{State, every, here};
use crate::ops::operation::numbered;
use crate::ops::status::status;
use crate::ops::turn::session::look;
use crate::program::args::LogArgs;
use crate::program::text::line::{InWorktree, Line, StepLine, Taken};
use crate::program::text::log::{Log, Operations, Overview};
use crate::program::ui::{Answer, Ui};
use anyhow::Result;
use std::collections::BTreeMap;
use std::rc::Rc;

/// How many turns are shown when nobody says.
const USUAL: usize = 50;

/// What the done turns took out of others.
fn taken_out(turns: &[(Turn, State)]) -> BTreeMap<u64, Taken> {
    let mut taken = BTreeMap::new();
    for (turn, _) in turns.iter().filter(|(_, state)| *state == State::Done) {
        let how = if turn.is_part() { Taken::Parts } else { Taken::All };
        for number in turn.takes_out() {
            let is_left = matches!(&turn.made, Some(Made::BackTo { turns, .. }) if turns.last() == Some(number));
            let how = if is_left { Taken::Parts } else { how };
            let known = taken.entry(*number).or_insert(how);
            *known = how.max(*known);
        }
    }
    taken
}

/// So many turns are shown beside where the timeline stands.
const LAST: usize = 5;

/// Where the timeline stands, and the last turns.
pub fn overview(repo: &Repo, ui: &Ui) -> Result<Overview> {
    let heard = ui.heard();
    let view = look(repo, &heard, "status")?;
    let place = InWorktree { id: repo.worktree_id(), here: true, removed: false };
    let mut lines = described(&view.timeline, place, here(&view, LAST + 1)?)?;
    let more = lines.len() > LAST;
    lines.truncate(LAST);
    let (branch, recorded) = (view.head.branch.clone(), view.timeline.commit.is_some());
    let log = Log { branch, worktree: repo.worktree_id(), lines, recorded, graph: false, look: Ui::look() };
    Ok(Overview { status: status(&view)?, log, more })
}

/// Reads the timeline, newest first.
pub fn run(repo: &Repo, ui: &Ui, args: &LogArgs) -> Result<Box<dyn Answer>> {
    let heard = ui.heard();
    let view = look(repo, &heard, "log")?;
    if args.ops {
        let mut operations = numbered(&view)?;
        operations.truncate(args.number.unwrap_or(usize::MAX));
        return Ok(Box::new(Operations(operations)));
    }
    let most = args.number.unwrap_or(USUAL);
    let timeline = &view.timeline;
    let worktree = repo.worktree_id();
    let mut filter = Filter::of(repo, wanted(args))?;
    let read = if filter.is_some() { usize::MAX } else { most };
    let turns = if args.all { every(timeline, Some(&view), read)? } else { here(&view, read)? };
    let turns = meant(timeline, filter.as_mut(), turns, most)?;
    let here = InWorktree { id: worktree.clone(), here: true, removed: false };
    let mut lines = described(timeline, here, turns)?;
    if args.all {
        for other in Timelines::new(repo).other_timelines()? {
            let read = other.stored.and_then(|stored| {
                let turns = every(&stored, None, read)?;
                Ok((meant(&stored, filter.as_mut(), turns, most)?, stored))
            });
            let place = InWorktree { id: other.worktree, here: false, removed: other.removed };
            match read.and_then(|(turns, stored)| described(&stored, place, turns)) {
                Ok(theirs) => lines = merged(lines, theirs),
                // What is damaged there must not hide what is here.
                Err(_) => ui.warn(&format!("{} cannot be read: its turns are left out", other.name)),
            }
        }
        lines.truncate(most);
    }
    if args.steps {
        lines.iter_mut().filter(|line| line.place.here).try_for_each(|line| add_steps(timeline, line))?;
    }
    let (branch, recorded) = (view.head.branch.clone(), timeline.commit.is_some());
    Ok(Box::new(Log { branch, worktree, lines, recorded, graph: args.graph, look: Ui::look() }))
}

fn described(timeline: &Stored<'_>, place: InWorktree, turns: Vec<(Turn, State)>) -> Result<Vec<Line>> {
    let place = Rc::new(place);
    let taken = taken_out(&turns);
    let line = |(turn, state): (Turn, State)| {
        Ok(Line {
            files: timeline.turn_files(turn.turn)?,
            steps: None,
            taken_out: taken.get(&turn.turn).copied(),
            age: ago(turn.ended_at.as_deref().unwrap_or(&turn.began_at)),
            place: Rc::clone(&place),
            turn,
            state,
        })
    };
    turns.into_iter().map(line).collect()
}

fn wanted(args: &LogArgs) -> Wanted<'_> {
    Wanted {
        pathspecs: &args.pathspecs,
        agent: args.agent.as_deref(),
        session: args.session.as_deref(),
        since: args.since.as_deref(),
        until: args.until.as_deref(),
        grep: args.grep.as_deref(),
    }
}

/// The first of the turns that are meant.
fn meant(
    timeline: &Stored<'_>,
    filter: Option<&mut Filter<'_, '_>>,
    turns: Vec<(Turn, State)>,
    most: usize,
) -> Result<Vec<(Turn, State)>> {
    let Some(filter) = filter else { return Ok(turns) };
    let mut meant = Vec::new();
    for (turn, state) in turns {
        if meant.len() == most {
            break;
        }
        if filter.takes(timeline, &turn)? {
            meant.push((turn, state));
        }
    }
    Ok(meant)
}

fn add_steps(timeline: &Stored<'_>, line: &mut Line) -> Result<()> {
    let number = line.turn.turn;
    let with_files = |step: Step| Ok(StepLine { files: timeline.step_files(number, step.step)?, step });
    line.steps = Some(timeline.steps(number)?.into_iter().map(with_files).collect::<Result<_>>()?);
    Ok(())
}

/// Two lists in one, each in its own order, which is newest first by number: clocks jump.
fn merged(one: Vec<Line>, other: Vec<Line>) -> Vec<Line> {
    let began = |line: &Line| parse_rfc3339(&line.turn.began_at);
    let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
    let mut merged = Vec::new();
    loop {
        let next = match (one.peek(), other.peek()) {
            (Some(a), Some(b)) if began(b) > began(a) => other.next(),
            (Some(_), _) => one.next(),
            _ => other.next(),
        };
        match next {
            Some(line) => merged.push(line),
            None => return merged,
        }
    }
}
