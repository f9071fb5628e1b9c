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
    Ok(Said { verb: "Described", name: name(&args.turn, &turn), turn })
}

/// Keeps a turn from expiring, or no longer does.
pub fn keep(repo: &Repo, ui: &Ui, args: &KeepArgs) -> Result<Said> {
    let heard = ui.heard();
    let mut locked = beside_turn(repo, &heard, "keep")?;
    let turn = describe::keep(&mut locked, &args.turn, !args.off)?;
    Ok(Said { verb: if args.off { "Let go of" } else { "Kept" }, name: name(&args.turn, &turn), turn })
}

/// A turn's number; of another worktree's the words that were given.
fn name(words: &str, turn: &Turn) -> String {
    if words.contains(':') { words.to_owned() } else { turn.turn.to_string() }
}

/// What was said.
pub struct Said {
    verb: &'static str,
    name: String,
    turn: Turn,
}

impl Answer for Said {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({"turn": self.turn.turn, "message": self.turn.title(), "kept": self.turn.kept}))
    }

    fn text(&self) -> String {
        format!("{} turn {} ({})\n", self.verb, sanitized(&self.name), sanitized(&self.turn.label()))
    }
}
