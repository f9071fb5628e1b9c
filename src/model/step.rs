//! Steps: what changed around one call of a tool within a turn.

use crate::model::call::ToolUse;
use crate::model::checkpoint::hex_option;
use crate::model::timeline::range_ends;
use crate::model::turn::Totals;
use gix::ObjectId;
use serde::{Deserialize, Serialize};
use std::fmt;

/// How far a step is known to be its session's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Share {
    /// The tool named the file.
    Named,
    /// It changed while a call that names no file was in flight: the user may have saved in that time.
    Claimed,
    /// Calls of other sessions were in flight too.
    Shared,
}

/// The record of one step.
#[allow(clippy::struct_field_names, reason = "`step` is the key in the record; nobody is warned where it is public")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The version of this record's format.
    pub v: u32,
    /// The turn that it is a part of.
    pub turn: u64,
    /// Its number there, from 1.
    pub step: u64,
    /// Who called.
    pub agent: String,
    /// The agent's session, where it has one.
    pub session: Option<String>,
    /// What was called.
    #[serde(flatten)]
    pub tool: ToolUse,
    /// When the call began, RFC 3339.
    pub began_at: String,
    /// When it was over.
    pub ended_at: String,
    /// Whose it is.
    pub share: Share,
    /// The other sessions whose calls were in flight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// The commit that HEAD was at after it.
    #[serde(with = "hex_option")]
    pub head: Option<ObjectId>,
    /// The totals of its changes.
    pub totals: Totals,
}

impl Step {
    /// What a step is called that something made which a call had started.
    pub const BACKGROUND: &str = "background";

    /// Whether no call made it, but something that was at work in the background.
    pub fn is_background(&self) -> bool {
        self.tool.tool == Self::BACKGROUND
    }

    /// Whether it shows no more than where the user has led HEAD while something was at work in the background.
    pub fn is_users(&self) -> bool {
        self.is_background() && self.totals.files == 0
    }

    /// What was called, in one line: `Edit a.rs`.
    pub fn label(&self) -> String {
        let about = self.tool.path.as_deref().or(self.tool.command.as_deref()).unwrap_or_default();
        format!("{} {about}", self.tool.tool).trim().to_owned()
    }

    /// As users name it.
    pub fn name(&self) -> StepName {
        StepName { turn: self.turn.to_string(), step: self.step }
    }
}

/// A step as the user names it: `12.3`, `@.3`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepName {
    /// The words for the turn.
    pub turn: String,
    /// The step's number.
    pub step: u64,
}

impl StepName {
    /// Reads `12.3`, `@.3`, `@~2.3` or, of another worktree's turn, `NAME:12.3`.
    pub fn parse(text: &str) -> Option<Self> {
        let (turn, step) = text.rsplit_once('.')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_below = turn.strip_prefix('@').is_some_and(|rest| rest.is_empty() || rest.starts_with('~'));
        let is_elsewhere = turn.rsplit_once(':').is_some_and(|(name, turn)| !name.is_empty() && is_number(turn));
        if !(is_number(step) && (is_number(turn) || is_below || is_elsewhere)) {
            return None;
        }
        let step = step.parse().ok().filter(|step| *step > 0)?;
        Some(Self { turn: turn.to_owned(), step })
    }
}

/// Steps that follow each other in a turn, as the user names them: `12.3`, `12.3..12.5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepRange {
    /// The first one.
    pub first: StepName,
    /// The last one.
    pub last: StepName,
}

impl StepRange {
    /// Reads one name, or two of the same turn.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = range_ends(text).unwrap_or((text, text));
        let (first, last) = (StepName::parse(first)?, StepName::parse(last)?);
        (first.turn == last.turn && first.step <= last.step).then_some(Self { first, last })
    }
}

impl fmt::Display for StepRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last { first.fmt(f) } else { write!(f, "{first}..{last}") }
    }
}

impl fmt::Display for StepName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.turn, self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_follow_each_other_are_of_one_turn() {
        for (text, is_read) in [
            ("12.3", true),
            ("12.3..12.5", true),
            ("@.1..@.1", true),
            ("12.5..12.3", false),
            ("12.3..13.1", false),
            ("12..13", false),
            ("12.3..", false),
        ] {
            let read = StepRange::parse(text);
            assert_eq!(read.is_some(), is_read, "{text}");
        }
        assert_eq!(StepRange::parse("@.1..@.1").expect("it is one").to_string(), "@.1");
    }

    #[test]
    fn a_step_is_named_by_its_turn_and_its_number() {
        for (text, name) in [
            ("12.3", Some(("12", 3))),
            ("@.1", Some(("@", 1))),
            ("@~2.10", Some(("@~2", 10))),
            ("tree:12.3", Some(("tree:12", 3))),
            (":12.3", None),
            ("12.0", None),
            ("12.", None),
            (".3", None),
            ("a.3", None),
            ("12.3x", None),
            ("v1.2.3", None),
            ("12.99999999999999999999", None),
        ] {
            let read = StepName::parse(text);
            assert_eq!(read.as_ref().map(|name| (name.turn.as_str(), name.step)), name, "{text}");
            assert_eq!(read.map(|name| name.to_string()), name.map(|_| text.to_owned()));
        }
    }
}
