//! What a user says of a turn afterwards: what it was about, and that it is to be kept. The timeline alone changes.

use crate::model::plan::{Op, Plan};
use crate::model::turn::Turn;
use crate::ops::locked::Locked;
use crate::ops::resolve::ended_turn;
use anyhow::Result;

/// Gives a turn another message. That of its commits stays.
pub fn describe(locked: &mut Locked<'_>, words: &str, message: &str) -> Result<Turn> {
    let number = ended_turn(locked, words)?;
    let turn = Turn { message: Some(message.to_owned()), ..locked.timeline.require_turn(number)? };
    record(locked, &turn, format!("describe {number} ({})", turn.label()))?;
    Ok(turn)
}

/// Says whether a turn is never to expire.
pub fn keep(locked: &mut Locked<'_>, words: &str, kept: bool) -> Result<Turn> {
    let number = ended_turn(locked, words)?;
    let turn = Turn { kept, ..locked.timeline.require_turn(number)? };
    let word = if kept { "keep" } else { "let go of" };
    record(locked, &turn, format!("{word} {number} ({})", turn.label()))?;
    Ok(turn)
}

fn record(locked: &mut Locked<'_>, turn: &Turn, message: String) -> Result<()> {
    let plan = Plan::empty(Op::Checkpoint, locked.head.clone());
    let mut update = locked.timeline.update();
    update.put_turn(turn)?;
    locked.carry_out(&plan, update, message, Vec::new(), None)
}
