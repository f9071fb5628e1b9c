//! `oxundo log`: the timeline, or the operations on it.

mod graph;
mod table;

use crate::cli::LogArgs;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::{age, seconds_of};
use crate::git::timeline::Timelines;
use crate::git::timeline::oplog::Operation;
use crate::git::timeline::stored::Stored;
use crate::model::bytes::sanitized;
use crate::model::checkpoint::short_branch;
use crate::model::turn::{CommitKind, FileChange, Turn};
use crate::ui::{Answer, Look, Ui};
use anyhow::Result;
use console::style;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use table::{Mark, Row};

/// How many turns are shown when nobody says.
const USUAL: usize = 50;

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Below the cursor.
    Done,
    /// Above it.
    Undone,
    /// In progress.
    Open,
    /// No longer on the stack.
    Expired,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Undone => "undone",
            Self::Open => "open",
            Self::Expired => "expired",
        }
    }
}

/// A worktree whose turns are shown.
#[derive(Debug)]
struct Place {
    /// How notes and refs call it.
    id: String,
    /// Whether it is this one.
    here: bool,
    /// Whether it is there no more.
    removed: bool,
}

/// One turn of the log.
#[derive(Debug)]
struct Line {
    turn: Turn,
    state: State,
    files: Vec<FileChange>,
    age: String,
    /// What later turns took out of it.
    taken_out: Option<Taken>,
    place: Rc<Place>,
}

impl Line {
    fn worktree(&self) -> &str {
        &self.place.id
    }

    /// Whether they are of the same branch of the same worktree.
    fn is_beside(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.place, &other.place) && self.turn.branch == other.turn.branch
    }
}

/// How much of a turn was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Taken {
    Parts,
    All,
}

impl Taken {
    fn word(self) -> &'static str {
        match self {
            Self::Parts => "partly undone",
            Self::All => "taken out",
        }
    }
}

/// What the done turns took out of others.
fn taken_out(turns: &[(Turn, State)]) -> BTreeMap<u64, Taken> {
    let mut taken = BTreeMap::new();
    for (turn, _) in turns.iter().filter(|(_, state)| *state == State::Done) {
        let how = if turn.is_part() { Taken::Parts } else { Taken::All };
        for number in turn.takes_out() {
            let known = taken.entry(*number).or_insert(how);
            *known = how.max(*known);
        }
    }
    taken
}

/// The log.
pub struct Log {
    branch: Option<String>,
    worktree: String,
    lines: Vec<Line>,
    graph: bool,
    look: Look,
}

/// The operations.
pub struct Operations(Vec<Operation>);

/// Reads the timeline, newest first.
///
/// # Errors
///
/// When it cannot be read.
pub fn run(repo: &Repo, ui: &Ui, args: &LogArgs) -> Result<Box<dyn Answer>> {
    if args.ops {
        let mut operations = Timelines::new(repo).operations()?;
        operations.truncate(args.number.unwrap_or(usize::MAX));
        return Ok(Box::new(Operations(operations)));
    }
    let stored = Timelines::new(repo).timeline()?;
    let head = Refs::new(repo).head()?;
    let worktree = repo.worktree_id();
    let most = args.number.unwrap_or(USUAL);
    let turns = if args.all { every(repo, &stored, most)? } else { on_branch(repo, &stored, head.stack(), most)? };
    let here = Place { id: worktree.clone(), here: true, removed: false };
    let mut lines = described(repo, &stored, here, turns)?;
    if args.all {
        for other in Timelines::new(repo).other_timelines()? {
            let read = other.stored.and_then(|stored| Ok((every(repo, &stored, most)?, stored)));
            let place = Place { id: other.worktree, here: false, removed: other.removed };
            match read.and_then(|(turns, stored)| described(repo, &stored, place, turns)) {
                Ok(theirs) => lines = merged(lines, theirs),
                // What is damaged there must not hide what is here.
                Err(_) => ui.warn(&format!("{} cannot be read: its turns are left out", other.name)),
            }
        }
        lines.truncate(most);
    }
    Ok(Box::new(Log { branch: head.branch, worktree, lines, graph: args.graph, look: Ui::look() }))
}

fn described(_repo: &Repo, stored: &Stored, place: Place, turns: Vec<(Turn, State)>) -> Result<Vec<Line>> {
    let place = Rc::new(place);
    let taken = taken_out(&turns);
    let line = |(turn, state): (Turn, State)| {
        Ok(Line {
            files: stored.turn_files(turn.turn)?,
            taken_out: taken.get(&turn.turn).copied(),
            age: age(turn.ended_at.as_deref().unwrap_or(&turn.began_at)),
            place: Rc::clone(&place),
            turn,
            state,
        })
    };
    turns.into_iter().map(line).collect()
}

/// Two lists in one, each in its own order, which is newest first by number: clocks jump.
fn merged(one: Vec<Line>, other: Vec<Line>) -> Vec<Line> {
    let began = |line: &Line| seconds_of(&line.turn.began_at);
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

pub(crate) fn on_branch(_repo: &Repo, stored: &Stored, name: &str, most: usize) -> Result<Vec<(Turn, State)>> {
    let stack = stored.state.stack(name);
    let mut turns = Vec::new();
    if let Some(open) = stored.state.open {
        turns.push((stored.known_turn(open)?, State::Open));
    }
    for number in stack.undone.iter().rev() {
        turns.push((stored.known_turn(*number)?, State::Undone));
    }
    turns.truncate(most);
    let mut at = stack.top;
    while let Some(number) = at
        && turns.len() < most
    {
        let turn = stored.known_turn(number)?;
        at = turn.previous;
        turns.push((turn, State::Done));
    }
    Ok(turns)
}

pub(crate) fn every(_repo: &Repo, stored: &Stored, most: usize) -> Result<Vec<(Turn, State)>> {
    let mut done = BTreeSet::new();
    for stack in stored.state.stacks.values() {
        let mut at = stack.top;
        while let Some(number) = at
            && done.insert(number)
        {
            at = stored.known_turn(number)?.previous;
        }
    }
    let mut turns = Vec::new();
    for number in stored.turn_numbers()?.into_iter().rev() {
        if turns.len() == most {
            break;
        }
        let Some(turn) = stored.turn(number)? else { continue };
        let state = if stored.state.open == Some(number) {
            State::Open
        } else if done.contains(&number) {
            State::Done
        } else if stored.state.is_undone(number) {
            State::Undone
        } else {
            State::Expired
        };
        turns.push((turn, state));
    }
    Ok(turns)
}

impl Answer for Log {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let turns: Vec<_> = (self.lines.iter())
            .map(|line| {
                let turn = &line.turn;
                let commits: Vec<_> = (turn.commits.iter())
                    .filter(|commit| commit.kind != CommitKind::Dirty)
                    .map(|commit| commit.id.to_string())
                    .collect();
                json!({
                    "turn": turn.turn,
                    "state": line.state.word(),
                    "agent": turn.agent,
                    "session": turn.session,
                    "message": turn.title(),
                    "branch": turn.branch_name(),
                    "worktree": line.worktree(),
                    "worktree_removed": line.place.removed,
                    "mode": turn.mode,
                    "began_at": turn.began_at,
                    "ended_at": turn.ended_at,
                    "exit_code": turn.exit_code,
                    "interrupted": turn.interrupted,
                    "shared": turn.origin.shared,
                    "model": turn.origin.parts.iter().find_map(|part| part.model.clone()),
                    "dirty_commit": turn.dirty_commit.map(|id| id.to_string()),
                    "commits": commits,
                    "taken_out": line.taken_out.map(Taken::word),
                    "files": line.files,
                })
            })
            .collect();
        let branch = self.branch.as_deref().map(short_branch);
        Ok(json!({"branch": branch, "worktree": self.worktree, "turns": turns}))
    }

    fn text(&self) -> String {
        if self.lines.is_empty() {
            return "no turns yet\n".to_owned();
        }
        let rows: Vec<Row> = self.lines.iter().map(|line| self.row(line)).collect();
        let graph: Vec<String> = if self.graph { graph::drawn(&self.lines, self.look) } else { Vec::new() };
        table::text(&rows, &graph, self.look)
    }

    fn hints(&self) -> Vec<String> {
        if self.lines.is_empty() {
            return vec![
                "'oxundo run -- COMMAND' makes one; 'oxundo log --all' shows those of other branches".to_owned(),
            ];
        }
        Vec::new()
    }
}

impl Log {
    fn row(&self, line: &Line) -> Row {
        let turn = &line.turn;
        let mut marks = Vec::new();
        match line.state {
            State::Done => {}
            State::Open => marks.push(Mark::Live("open".to_owned())),
            State::Undone | State::Expired => marks.push(Mark::Plain(line.state.word().to_owned())),
        }
        if turn.interrupted {
            marks.push(Mark::Alert("interrupted".to_owned()));
        }
        marks.extend(line.taken_out.map(|taken| Mark::Plain(taken.word().to_owned())));
        if turn.origin.shared {
            marks.push(Mark::Plain("shared".to_owned()));
        }
        if !line.place.here || turn.branch != self.branch {
            let branch = turn.branch_name().map_or_else(|| "a detached HEAD".to_owned(), sanitized);
            marks.push(Mark::Plain(format!("on {branch}")));
        }
        if !line.place.here {
            let which = if line.place.removed { "removed worktree" } else { "worktree" };
            marks.push(Mark::Plain(format!("{which} {}", sanitized(line.worktree()))));
        }
        let totals = turn.totals;
        Row {
            number: turn.turn,
            age: line.age.clone(),
            label: sanitized(&turn.label()),
            agent: sanitized(&turn.agent),
            marks,
            changes: turn.ended_at.is_some().then_some((totals.files, totals.insertions, totals.deletions)),
            dim: matches!(line.state, State::Undone | State::Expired),
        }
    }
}

impl Answer for Operations {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let operations: Vec<_> = (self.0.iter())
            .map(|op| json!({"timeline": op.commit.to_string(), "at": op.at, "message": op.what}))
            .collect();
        Ok(json!({"operations": operations}))
    }

    fn text(&self) -> String {
        if self.0.is_empty() {
            return "no operations yet\n".to_owned();
        }
        let line = |op: &Operation| {
            let id = op.commit.to_hex_with_len(7);
            format!("{}  {}  {}\n", style(id).yellow(), style(&op.at).dim(), sanitized(&op.what))
        };
        self.0.iter().map(line).collect()
    }
}
