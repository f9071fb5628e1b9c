//! `oxundo log`: the timeline, or the operations on it.

use crate::cli::LogArgs;
use crate::git::Repo;
use crate::git::health::Operation;
use crate::git::store::Stored;
use crate::model::bytes::sanitized;
use crate::model::checkpoint::short_branch;
use crate::model::turn::{CommitKind, FileChange, Turn};
use crate::ui::Answer;
use anyhow::Result;
use console::style;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

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

/// One turn of the log.
struct Line {
    turn: Turn,
    state: State,
    files: Vec<FileChange>,
    age: String,
    /// What later turns took out of it.
    taken_out: Option<Taken>,
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
    lines: Vec<Line>,
}

/// The operations.
pub struct Operations(Vec<Operation>);

/// Reads the timeline, newest first.
///
/// # Errors
///
/// When it cannot be read.
pub fn run(repo: &Repo, args: &LogArgs) -> Result<Box<dyn Answer>> {
    if args.ops {
        let mut operations = repo.operations()?;
        operations.truncate(args.number.unwrap_or(usize::MAX));
        return Ok(Box::new(Operations(operations)));
    }
    let stored = repo.timeline()?;
    let head = repo.head()?;
    let most = args.number.unwrap_or(USUAL);
    let turns = if args.all { every(repo, &stored, most)? } else { on_branch(repo, &stored, head.stack(), most)? };
    let taken = taken_out(&turns);
    let lines = turns
        .into_iter()
        .map(|(turn, state)| {
            Ok(Line {
                files: repo.turn_files(&stored, turn.turn)?,
                taken_out: taken.get(&turn.turn).copied(),
                age: Repo::age(turn.ended_at.as_deref().unwrap_or(&turn.began_at)),
                turn,
                state,
            })
        })
        .collect::<Result<_>>()?;
    Ok(Box::new(Log { branch: head.branch, lines }))
}

pub(super) fn on_branch(repo: &Repo, stored: &Stored, name: &str, most: usize) -> Result<Vec<(Turn, State)>> {
    let stack = stored.state.stack(name);
    let mut turns = Vec::new();
    if let Some(open) = stored.state.open {
        turns.push((repo.known_turn(stored, open)?, State::Open));
    }
    for number in stack.undone.iter().rev() {
        turns.push((repo.known_turn(stored, *number)?, State::Undone));
    }
    turns.truncate(most);
    let mut at = stack.top;
    while let Some(number) = at
        && turns.len() < most
    {
        let turn = repo.known_turn(stored, number)?;
        at = turn.previous;
        turns.push((turn, State::Done));
    }
    Ok(turns)
}

fn every(repo: &Repo, stored: &Stored, most: usize) -> Result<Vec<(Turn, State)>> {
    let mut done = BTreeSet::new();
    for stack in stored.state.stacks.values() {
        let mut at = stack.top;
        while let Some(number) = at
            && done.insert(number)
        {
            at = repo.known_turn(stored, number)?.previous;
        }
    }
    let mut turns = Vec::new();
    for number in repo.turn_numbers(stored)?.into_iter().rev() {
        if turns.len() == most {
            break;
        }
        let Some(turn) = repo.turn(stored, number)? else { continue };
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
        Ok(json!({"branch": branch, "turns": turns}))
    }

    fn text(&self) -> String {
        if self.lines.is_empty() {
            return "no turns yet\n".to_owned();
        }
        let width = self.lines.iter().map(|line| line.turn.turn.to_string().len()).max().unwrap_or(1);
        let ages = self.lines.iter().map(|line| line.age.len()).max().unwrap_or_default();
        self.lines.iter().map(|line| one_line(line, width, ages)).collect()
    }
}

fn one_line(line: &Line, width: usize, ages: usize) -> String {
    let turn = &line.turn;
    let mut marks = Vec::new();
    if line.state != State::Done {
        marks.push(line.state.word());
    }
    if turn.interrupted {
        marks.push("interrupted");
    }
    marks.extend(line.taken_out.map(Taken::word));
    if turn.origin.shared {
        marks.push("shared");
    }
    let mark = if marks.is_empty() { String::new() } else { format!(" [{}]", marks.join(", ")) };
    let totals = turn.totals;
    let files = if totals.files == 1 { "1 file".to_owned() } else { format!("{} files", totals.files) };
    let changes = format!("{files} +{} -{}", totals.insertions, totals.deletions);
    let number = format!("{:>width$}", turn.turn);
    let age = format!("{:<ages$}", line.age);
    let label = sanitized(&turn.label());
    if line.state == State::Undone || line.state == State::Expired {
        return format!("{}\n", style(format!("{number}  {age}  {label}{mark}  {changes}")).dim());
    }
    format!(
        "{}  {}  {label}{}  {}\n",
        style(number).yellow(),
        style(age).dim(),
        style(mark).cyan(),
        style(changes).dim()
    )
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
