//! What a user says of a turn afterwards: what it was about, and that it is to be kept. The timeline alone changes.

use crate::error::Code;
use crate::error::failure::to_refusal;
use crate::model::plan::{Op, Plan};
use crate::model::turn::Turn;
use crate::ops::elsewhere::turn_of;
use crate::ops::locked::Locked;
use crate::ops::removed;
use crate::ops::resolve::ended_turn;
use anyhow::Result;

/// Gives a turn another message. That of its commits stays.
pub fn describe(locked: &mut Locked<'_>, words: &str, message: &str) -> Result<Turn> {
    change(locked, words, "describe", |turn| Turn { message: Some(message.to_owned()), ..turn })
}

/// Says whether a turn is never to expire.
pub fn keep(locked: &mut Locked<'_>, words: &str, kept: bool) -> Result<Turn> {
    let word = if kept { "keep" } else { "let go of" };
    change(locked, words, word, |turn| Turn { kept, ..turn })
}

fn change(locked: &mut Locked<'_>, words: &str, word: &str, how: impl Fn(Turn) -> Turn) -> Result<Turn> {
    let number = match ended_turn(locked, words) {
        Err(error) if to_refusal(&error).code == Code::Branch => {
            // Nobody else has the timeline of a worktree that was removed.
            return removed_turn(locked, words, word, how)?.ok_or(error);
        }
        number => number?,
    };
    let turn = how(locked.timeline.require_turn(number)?);
    let mut update = locked.timeline.update();
    update.put_turn(&turn)?;
    let plan = Plan::empty(Op::Checkpoint, locked.head.clone());
    locked.carry_out(&plan, update, said(word, &turn), Vec::new(), None)?;
    Ok(turn)
}

fn removed_turn(locked: &Locked<'_>, words: &str, word: &str, how: impl Fn(Turn) -> Turn) -> Result<Option<Turn>> {
    let is_turn = |number: u64| words.ends_with(&format!(":{number}"));
    let found = turn_of(locked, words)?.filter(|(other, number)| other.removed && is_turn(*number));
    let Some((other, number)) = found else { return Ok(None) };
    let stored = other.stored?;
    let turn = how(stored.require_turn(number)?);
    let mut update = stored.update();
    update.put_turn(&turn)?;
    removed::record(locked.repo, &other.name, update, said(word, &turn))?;
    Ok(Some(turn))
}

fn said(word: &str, turn: &Turn) -> String {
    format!("{word} {} ({})", turn.turn, turn.label())
}
