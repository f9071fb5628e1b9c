//! `oxundo status`: where the timeline stands, and what undo would do now.

use crate::cmd::outcome::Outcome;
use crate::cmd::travel;
use crate::config::Config;
use crate::error::Refusal;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Side;
use crate::model::bytes::{quoted, sanitized, shown};
use crate::model::checkpoint::{Skipped, short_branch};
use crate::model::turn::{Mode, Turn};
use crate::ui::Answer;
use anyhow::Result;
use gix::bstr::ByteSlice;
use serde_json::json;

/// The status.
pub struct Status {
    branch: Option<String>,
    mode: Mode,
    top: Option<Turn>,
    open: Option<Turn>,
    redo_depth: usize,
    /// What undo would do; `None` where there is nothing to undo.
    undo: Option<Result<Outcome, Refusal>>,
    not_covered: Vec<Skipped>,
}

/// Looks.
///
/// # Errors
///
/// When something cannot be read.
pub fn run(repo: &Repo) -> Result<Status> {
    let stored = Timelines::new(repo).timeline()?;
    let head = Refs::new(repo).head()?;
    let top = match stored.state.top(head.stack()) {
        Some(number) => Some(stored.known_turn(number)?),
        None => None,
    };
    let undo = match &top {
        Some(_) => Some(travel::would_do(repo, &stored)?),
        None => None,
    };
    let not_covered = match &top {
        Some(turn) => stored.checkpoint(turn.turn, Side::After)?.skipped,
        None => Vec::new(),
    };
    Ok(Status {
        mode: Config(repo).mode()?,
        open: match stored.state.open {
            Some(number) => Some(stored.known_turn(number)?),
            None => None,
        },
        redo_depth: stored.state.stack(head.stack()).undone.len()
            + usize::from(travel::taken_out_last(repo, &stored, head.stack())?.is_some()),
        branch: head.branch,
        top,
        undo,
        not_covered,
    })
}

impl Status {
    fn refusal(&self) -> Option<&Refusal> {
        self.undo.as_ref()?.as_ref().err()
    }

    fn planned(&self) -> Option<&Outcome> {
        self.undo.as_ref()?.as_ref().ok()
    }
}

impl Answer for Status {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let not_covered: Vec<_> = (self.not_covered.iter())
            .map(|skipped| json!({"path": quoted(skipped.path.as_bstr()), "reason": skipped.reason}))
            .collect();
        Ok(json!({
            "branch": self.branch.as_deref().map(short_branch),
            "mode": self.mode,
            "turn": self.top.as_ref().map(|turn| turn.turn),
            "open_turn": self.open.as_ref().map(|turn| turn.turn),
            "undo_depth": self.top.as_ref().map_or(0, |turn| turn.depth),
            "redo_depth": self.redo_depth,
            "refusal": self.refusal(),
            "undo": self.planned().map(Answer::json).transpose()?,
            "not_covered": not_covered,
        }))
    }

    fn text(&self) -> String {
        let branch = self.branch.as_deref().map_or("detached HEAD", short_branch);
        let mut text = format!("On '{}': ", sanitized(branch));
        text.push_str(&match &self.top {
            Some(turn) if turn.depth == 1 => "1 turn to undo".to_owned(),
            Some(turn) => format!("{} turns to undo", turn.depth),
            None => "no turns to undo".to_owned(),
        });
        if self.redo_depth > 0 {
            text.push_str(&format!(", {} to redo", self.redo_depth));
        }
        text.push('\n');
        if let Some(open) = &self.open {
            let what = if open.origin.waiting { "waits for a prompt" } else { "is in progress" };
            text.push_str(&format!("Turn {} ({}) {what}\n", open.turn, sanitized(&open.label())));
        }
        if let Some(undo) = self.planned() {
            text.push_str(&undo.in_short());
        }
        if let Some(refusal) = self.refusal() {
            text.push_str(&format!("undo would refuse: {}\n", sanitized(&refusal.message)));
        }
        for skipped in &self.not_covered {
            text.push_str(&format!("not covered: {}\n", shown(skipped.path.as_bstr())));
        }
        text
    }

    fn hints(&self) -> Vec<String> {
        self.refusal().map(|refusal| refusal.hints.clone()).unwrap_or_default()
    }
}
