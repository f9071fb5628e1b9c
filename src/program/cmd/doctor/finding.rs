//! What doctor finds, and what it says of what is there.

use crate::agents::setup;
use crate::git::repo::clock::ago;
use crate::model::bytes::{sanitized, size};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something does not work until it is mended.
    Error,
    /// Something may go wrong.
    Warning,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub message: String,
    /// What belongs to it, a line each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// The commands that mend it, the best first.
    pub mend: Vec<String>,
}

impl Finding {
    /// A finding without a remedy.
    pub fn new(severity: Severity, message: impl Into<String>) -> Self {
        Self { severity, message: message.into(), details: Vec::new(), mend: Vec::new() }
    }

    /// Adds a command that mends it.
    #[must_use]
    pub fn mend(mut self, command: impl Into<String>) -> Self {
        self.mend.push(command.into());
        self
    }
}

/// A file of an agent's that was mended, or a directory of git's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fixed {
    /// The agent, or `git`.
    pub agent: &'static str,
    /// The file.
    pub path: String,
    /// What there is to do now.
    #[serde(skip)]
    pub advice: Option<&'static str>,
}

/// A path as a word of a shell's command line.
pub fn quoted_word(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// What is there, right or wrong.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Overview {
    /// git's version.
    pub git: Option<String>,
    /// Where git's hooks are, where that is configured.
    pub hooks_path: Option<String>,
    /// How many turns have been recorded.
    pub turns: u64,
    /// How much oxundo keeps outside git's objects.
    pub scratch_bytes: u64,
    /// How much oxundo takes in all.
    pub taken_bytes: u64,
    /// The worktrees that were removed, and how many turns each has left.
    pub removed_worktrees: BTreeMap<String, usize>,
    /// The agents that are installed or set up.
    pub agents: Vec<serde_json::Value>,
}

impl Overview {
    /// The agents and the removed worktrees, a line each, and the space.
    pub fn text(&self) -> String {
        let line = |agent: &serde_json::Value| {
            let word = |key: &str| agent[key].as_str().map(sanitized);
            let state = match (word("set_up_with"), word("last_fired")) {
                (Some(command), _) => format!("its hooks are not set up: '{command}'"),
                (None, Some(fired)) => format!("its hooks last fired {}", ago(&fired)),
                (None, None) => "its hooks are set up, and have not fired yet".to_owned(),
            };
            format!("{}: {state}\n", setup::title(&word("agent").unwrap_or_default()))
        };
        let taken = format!("oxundo takes {}\n", size(self.taken_bytes));
        let removed = |(name, turns): (&String, &usize)| {
            let (name, count) =
                (sanitized(name), if *turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") });
            format!("the removed worktree '{name}': {count}, of which 'oxundo log --all' tells\n")
        };
        let removed = self.removed_worktrees.iter().map(removed);
        self.agents.iter().map(line).chain(removed).chain([taken]).collect()
    }
}
