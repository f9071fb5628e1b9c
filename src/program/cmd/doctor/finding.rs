//! What doctor finds, and what it says of what is there.

use crate::agents::setup;
use crate::git::repo::Repo;
use crate::git::repo::clock::ago;
use crate::model::bytes::{sanitized, size};
use crate::model::turn::listed;
use crate::ops::offer::{Offered, asked_by_agents};
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
    /// The plans that agents have asked for, the newest first.
    pub plans: Vec<PlanAsked>,
    /// The agents that are installed or set up.
    pub agents: Vec<serde_json::Value>,
}

impl Overview {
    /// The agents, the removed worktrees and what agents have asked for, a line each, and the space.
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
        let plans = self.plans.iter().map(PlanAsked::text);
        self.agents.iter().map(line).chain(removed).chain(plans).chain([taken]).collect()
    }
}

/// A plan that an agent has asked for.
#[derive(Clone, Debug, Serialize)]
pub struct PlanAsked {
    /// The plan's id.
    pub plan: String,
    /// Who has asked.
    pub by: String,
    /// When.
    pub at: Option<String>,
    /// `undo`, `redo` or `restore`.
    pub op: &'static str,
    /// The turns that it is about.
    pub turns: Vec<u64>,
    /// Whether it was carried out.
    pub done: bool,
}

impl PlanAsked {
    /// The plans that are remembered, the newest first.
    pub fn all(repo: &Repo) -> Vec<Self> {
        let plan = |offered: Offered| {
            let told = offered.told.map(|told| told.json["turns"].clone()).unwrap_or_default();
            let turns = told.as_array().map(|all| all.iter().filter_map(serde_json::Value::as_u64).collect());
            Some(Self {
                plan: offered.id,
                by: offered.by?,
                at: offered.at,
                op: offered.request.op().word(),
                turns: turns.unwrap_or_default(),
                done: offered.done.is_some(),
            })
        };
        asked_by_agents(repo).into_iter().filter_map(plan).collect()
    }

    fn text(&self) -> String {
        let when = self.at.as_deref().map(|at| format!(" {}", ago(at))).unwrap_or_default();
        let what = if self.done { "carried out" } else { "not carried out" };
        let of = if self.turns.is_empty() { String::new() } else { format!(" of {}", listed(&self.turns)) };
        format!("{} asked{when} for {}{of}, {what}: plan {}\n", sanitized(&self.by), self.op, sanitized(&self.plan))
    }
}
