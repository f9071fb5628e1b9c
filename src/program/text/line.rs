//! What a line of the log is made of.

use crate::model::bytes::sanitized;
use crate::model::checkpoint::{short_branch, shown_name};
use crate::model::step::{Share, Step};
use crate::model::turn::{CommitKind, FileChange, Session, Turn};
use crate::ops::list::State;
use gix::ObjectId;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::rc::Rc;

/// A worktree whose turns are shown.
#[derive(Debug)]
pub struct InWorktree {
    /// How notes and refs call it.
    pub id: String,
    /// Whether it is this one.
    pub here: bool,
    /// Whether it is there no more.
    pub removed: bool,
}

/// One turn of the log.
#[derive(Debug)]
pub struct Line {
    pub turn: Turn,
    pub state: State,
    pub files: Vec<FileChange>,
    /// When it was, as dates are shown.
    pub age: String,
    /// What it changed, where that is no file.
    pub instead: Option<&'static str>,
    /// Its steps, where they are asked for.
    pub steps: Option<Vec<StepLine>>,
    /// The commit that stands for its last one where HEAD is, if the user has made that anew.
    pub made_anew: Option<ObjectId>,
    /// Its branch, by the name that it has now.
    pub branch: Option<String>,
    /// Whether that is another one than HEAD's, and has it.
    pub is_elsewhere: bool,
    /// What later turns took out of it.
    pub taken_out: Option<Taken>,
    pub place: Rc<InWorktree>,
}

/// A step and the files that it changed.
#[derive(Debug)]
pub struct StepLine {
    pub step: Step,
    pub files: Vec<FileChange>,
}

impl StepLine {
    pub fn json(&self) -> serde_json::Result<Value> {
        let mut value = serde_json::to_value(&self.step)?;
        value["files"] = json!(self.files);
        value["step"] = json!(self.step.name().to_string());
        Ok(value)
    }

    /// It in one line.
    pub fn text(&self) -> String {
        let Step { share, others, totals, .. } = &self.step;
        let mark = match share {
            Share::Shared if others.is_empty() => " [shared]".to_owned(),
            Share::Shared => format!(" [shared with {}]", others.join(", ")),
            Share::Named | Share::Claimed => String::new(),
        };
        let what = match totals.files {
            1 => "1 file".to_owned(),
            many => format!("{many} files"),
        };
        let (name, label) = (self.step.name(), self.step.label());
        sanitized(&format!("{name}  {label}{mark}  {what} +{} -{}", totals.insertions, totals.deletions))
    }
}

impl Line {
    pub fn worktree(&self) -> &str {
        &self.place.id
    }

    /// Its last commit, but for that of the user's changes.
    pub fn commit(&self) -> Option<ObjectId> {
        self.made_anew.or_else(|| self.turn.last_commit())
    }

    /// Its branch as people write it.
    pub fn branch_name(&self) -> Option<Cow<'_, str>> {
        self.branch.as_deref().map(short_branch)
    }

    /// When it was.
    pub fn time(&self) -> &str {
        self.turn.ended_at.as_deref().unwrap_or(&self.turn.began_at)
    }

    pub fn model(&self) -> Option<&str> {
        self.turn.own_part()?.model.as_deref()
    }

    /// How many of its files only have another name, or were changed beside.
    pub fn renames(&self) -> u64 {
        self.files.iter().filter(|file| file.from.is_some()).count() as u64
    }

    /// As JSON: what a turn is in every answer.
    pub fn json(&self) -> serde_json::Result<Value> {
        let turn = &self.turn;
        let made = turn.commits.iter().filter(|commit| commit.kind != CommitKind::Dirty);
        let mut value = json!({
            "turn": turn.turn,
            "state": self.state.word(),
            "agent": turn.agent,
            "session": turn.session,
            "message": turn.title(),
            "branch": self.branch_name(),
            "worktree": shown_name(self.worktree()),
            "worktree_removed": self.place.removed,
            "mode": turn.mode,
            "began_at": turn.began_at,
            "ended_at": turn.ended_at,
            "exit_code": turn.exit_code,
            "interrupted": turn.interrupted,
            "shared": turn.origin.shared,
            "partial": turn.origin.partial,
            "by_hand": self.state == State::UndoneByHand,
            "kept": turn.kept,
            "model": self.model(),
            "sessions": turn.sessions().iter().map(session_json).collect::<Vec<_>>(),
            "dirty_commit": turn.dirty_commit.map(|id| id.to_string()),
            "commits": made.map(|commit| commit.id.to_string()).collect::<Vec<_>>(),
            "taken_out": self.taken_out.map(Taken::word),
            "files": self.files,
        });
        if let Some(steps) = &self.steps {
            value["steps"] = steps.iter().map(StepLine::json).collect::<serde_json::Result<_>>()?;
        }
        Ok(value)
    }

    /// Whether they are of the same branch of the same worktree.
    pub fn is_beside(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.place, &other.place) && self.turn.branch == other.turn.branch
    }
}

/// The sessions of a turn beside its own, a line each: `codex:gpt-5: fix the tests`.
pub fn others(turn: &Turn) -> Vec<String> {
    let line = |one: &Session<'_>| match one.messages().join(" / ") {
        said if said.is_empty() => sanitized(&one.assistant()),
        said => sanitized(&format!("{}: {said}", one.assistant())),
    };
    turn.sessions().iter().skip(1).map(line).collect()
}

fn session_json(one: &Session<'_>) -> Value {
    json!({"agent": one.agent, "session": one.id, "model": one.model, "messages": one.messages()})
}

/// How much of a turn was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Taken {
    Parts,
    All,
}

impl Taken {
    pub fn word(self) -> &'static str {
        match self {
            Self::Parts => "partly undone",
            Self::All => "taken out",
        }
    }
}
