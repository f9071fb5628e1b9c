//! What an agent may ask for: turns of its own session, and those that are no session's.

use crate::agents::process::is_above;
use crate::error::{Code, Refusal};
use crate::model::bytes::sanitized;
use crate::model::plan::Op;
use crate::model::turn::{Participant, Turn};
use crate::ops::view::View;
use anyhow::Result;

/// Refuses an agent what it asks for of these turns: one of another session's, or one that the user had oxundo make. To bring
/// files back takes nothing away from anybody's turn.
pub fn check(view: &View<'_>, op: Op, turns: &[u64]) -> Result<()> {
    if op == Op::Restore {
        return Ok(());
    }
    for number in turns {
        let turn = view.timeline.require_turn(*number)?;
        if let Some(whose) = whose(&turn) {
            return Err(Refusal::new(
                Code::Agent,
                format!("turn {number} ({}) is {whose}, and out of an agent's reach", sanitized(&turn.label())),
            )
            .hint(format!("type 'oxundo {} --dry-run' on a terminal of your own, then without '--dry-run'", op.word()))
            .into());
        }
    }
    Ok(())
}

/// Whose a turn is, where it is not this agent's.
fn whose(turn: &Turn) -> Option<&'static str> {
    if turn.made.is_some() {
        return Some("the user's");
    }
    let parts = &turn.origin.parts;
    let is_others = |part: &Participant| part.session.is_some() && !is_above(part);
    let is_named = parts.is_empty() && turn.session.is_some();
    (is_named || parts.iter().any(is_others)).then_some("another session's")
}
