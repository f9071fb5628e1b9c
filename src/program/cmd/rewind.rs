//! `oxundo rewind` and `oxundo undo -i`: a turn chosen from a searchable list, a look at what going
//! there changes, a question, and then an undo or a redo to it.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::repo::clock::ago;
use crate::model::bytes::sanitized;
use crate::model::merge::Edits;
use crate::model::plan::Op;
use crate::model::turn::Turn;
use crate::ops::list::{State, here};
use crate::ops::turn::session::look;
use crate::ops::undo::range::nothing;
use crate::program::args::Distance;
use crate::program::cmd::undo::walk;
use crate::program::ui::{Answer, Ui};
use anyhow::Result;
use std::process::ExitCode;

/// As a shell reports an interrupt.
const INTERRUPTED: u8 = 130;

/// Where one can go.
struct Goal {
    turn: u64,
    forward: bool,
    line: String,
}

/// Lets the user choose, and goes there.
pub fn run(repo: &Repo, ui: &Ui, edits: Option<Edits>) -> Result<ExitCode> {
    if !ui.can_ask() {
        return Err(Refusal::new(Code::Usage, "there is no terminal to choose a turn on")
            .hint("run 'oxundo log' to see the turns")
            .hint("then 'oxundo undo --to TURN', 'oxundo undo --steps N' or 'oxundo redo --to TURN'")
            .into());
    }
    let heard = ui.heard();
    let view = look(repo, &heard, "rewind")?;
    let top = view.last_whole()?.unwrap_or_default();
    let turns = here(&view, usize::MAX)?;
    let goals = goals(&turns, top, Ui::width());
    if goals.len() < 2 {
        return Err(nothing(Op::Undo, "no turn is recorded here").into());
    }
    let lines: Vec<String> = goals.iter().map(|goal| goal.line.clone()).collect();
    let start = goals.iter().position(|goal| goal.turn == top).map_or(0, |at| (at + 1).min(goals.len() - 1));
    let Some(chosen) = answered(Ui::choose("Go to the state after turn", &lines, start))? else {
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let Some(goal) = chosen.map(|at| &goals[at]) else { return Ok(left()) };
    let op = if goal.forward { Op::Redo } else { Op::Undo };
    let distance = |dry_run| Distance { to: Some(goal.turn.to_string()), edits, dry_run, ..Distance::default() };
    let preview = walk(repo, ui, op, &distance(true))?;
    Ui::show(&preview.text());
    match answered(Ui::confirm("Go there?"))? {
        None => Ok(ExitCode::from(INTERRUPTED)),
        Some(Some(true)) => {
            let done = walk(repo, ui, op, &distance(false))?;
            ui.answer(&done)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(_) => Ok(left()),
    }
}

fn left() -> ExitCode {
    Ui::show("Nothing is changed\n");
    ExitCode::SUCCESS
}

/// What was answered; `None` for ctrl-c.
fn answered<T>(answer: Result<T, dialoguer::Error>) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(dialoguer::Error::IO(error)) if error.kind() == std::io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The states to go to, newest first, and at last the one before all turns.
fn goals(turns: &[(Turn, State)], top: u64, width: usize) -> Vec<Goal> {
    let whole = || turns.iter().filter(|(turn, state)| !turn.is_part() && *state != State::Open);
    let ages: Vec<String> = whole().map(|(turn, _)| ago(turn.ended_at.as_deref().unwrap_or(&turn.began_at))).collect();
    let age_width = ages.iter().map(String::len).max().unwrap_or_default();
    let number_width = whole().map(|(turn, _)| turn.turn.to_string().len()).max().unwrap_or(1);
    let mut goals: Vec<Goal> = whole()
        .zip(&ages)
        .map(|((turn, state), age)| {
            let mark = match state {
                State::Undone => " [undone]",
                _ if turn.turn == top => " [now]",
                _ => "",
            };
            let line = format!(
                "{:>number_width$}  {age:<age_width$}  +{} -{}{mark}  {}",
                turn.turn,
                turn.totals.insertions,
                turn.totals.deletions,
                sanitized(&turn.label())
            );
            Goal { turn: turn.turn, forward: *state == State::Undone, line }
        })
        .collect();
    let mark = if top == 0 { " [now]" } else { "" };
    let first = format!("{:>number_width$}  before the first turn{mark}", 0);
    goals.push(Goal { turn: 0, forward: false, line: first });
    for goal in &mut goals {
        // The list puts its own marks before each line.
        goal.line = console::truncate_str(&goal.line, width.saturating_sub(4), Ui::look().ellipsis()).into_owned();
    }
    goals
}
