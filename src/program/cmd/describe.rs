//! `oxundo describe` and `oxundo keep`: what a user says of a turn afterwards.

use crate::git::repo::Repo;
use crate::model::bytes::sanitized;
use crate::model::turn::Turn;
use crate::ops::describe;
use crate::ops::turn::session::beside_turn;
use crate::program::args::{DescribeArgs, KeepArgs};
use crate::program::ui::{Answer, Ui};
use anyhow::Result;
use serde_json::json;

/// Gives a turn another message.
pub fn run(repo: &Repo, ui: &Ui, args: &DescribeArgs) -> Result<Said> {
    let heard = ui.heard();
    let mut locked = beside_turn(repo, &heard, "describe")?;
    let turn = describe::describe(&mut locked, &args.turn, &args.message)?;
    Ok(Said { verb: "Described", turn })
}

/// Keeps a turn from expiring, or no longer does.
pub fn keep(repo: &Repo, ui: &Ui, args: &KeepArgs) -> Result<Said> {
    let heard = ui.heard();
    let mut locked = beside_turn(repo, &heard, "keep")?;
    let turn = describe::keep(&mut locked, &args.turn, !args.off)?;
    Ok(Said { verb: if args.off { "Let go of" } else { "Kept" }, turn })
}

/// What was said.
pub struct Said {
    verb: &'static str,
    turn: Turn,
}

impl Answer for Said {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({"turn": self.turn.turn, "message": self.turn.title(), "kept": self.turn.kept}))
    }

    fn text(&self) -> String {
        format!("{} turn {} ({})\n", self.verb, self.turn.turn, sanitized(&self.turn.label()))
    }
}
