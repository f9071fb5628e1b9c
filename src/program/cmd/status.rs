//! `oxundo status`: where the timeline stands, and what undo would do now.

use crate::error::Refusal;
use crate::git::repo::Repo;
use crate::git::repo::clock::ago_of;
use crate::model::bytes::{quoted, sanitized, shown, size};
use crate::model::checkpoint::{short_branch, shown_place};
use crate::ops::outcome::Outcome;
use crate::ops::status::{self as ops, Short, Status};
use crate::ops::turn::session::{By, look};
use crate::ops::view::View;
use crate::program::typed::as_typed;
use crate::program::ui::{Answer, Ui};
use anyhow::Result;
use gix::bstr::ByteSlice;
use serde_json::json;
use std::os::unix::ffi::OsStrExt;

/// Looks.
pub fn run(repo: &Repo, ui: &Ui) -> Result<Status> {
    run_for(repo, ui, By::Typed)
}

/// Looks, for whoever asks: what undo would do is what it would for them.
pub fn run_for(repo: &Repo, ui: &Ui, by: By) -> Result<Status> {
    let heard = ui.heard();
    ops::status(&look(repo, &heard, "status")?, by)
}

/// Looks at what a prompt shows.
pub fn short(repo: &Repo, ui: &Ui) -> Result<Short> {
    let heard = ui.heard();
    ops::short(&View::open(repo, &heard)?)
}

/// What undo would be told.
fn refusal(status: &Status) -> Option<Refusal> {
    let refusal = status.undo.as_ref()?.as_ref().err()?;
    Some(as_typed(refusal.clone(), &["oxundo".into(), "undo".into()]))
}

fn planned(status: &Status) -> Option<&Outcome> {
    status.undo.as_ref()?.as_ref().ok()
}

impl Answer for Status {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let not_covered: Vec<_> = (self.not_covered.iter())
            .map(|skipped| json!({"path": quoted(skipped.path.as_bstr()), "reason": skipped.reason}))
            .collect();
        Ok(json!({
            "branch": self.branch.as_deref().map(short_branch),
            "enabled": self.enabled,
            "mode": self.mode,
            "obstacle": self.obstacle().map(|(_, why)| why),
            "turn": self.top.as_ref().map(|turn| turn.turn),
            "open_turn": self.open.as_ref().map(|turn| turn.turn),
            "undo_depth": self.undo_depth,
            "redo_depth": self.redo_depth,
            "refusal": refusal(self),
            "undo": planned(self).map(Outcome::json),
            "not_covered": not_covered,
            "taken_bytes": self.space.map(|(bytes, _)| bytes),
            "kept": self.kept.iter().map(|path| quoted(path.as_os_str().as_bytes().as_bstr())).collect::<Vec<_>>(),
        }))
    }

    fn text(&self) -> String {
        let mut text = format!("On {}: ", sanitized(&shown_place(self.branch.as_deref())));
        text.push_str(&match self.undo_depth {
            0 => "no turns to undo".to_owned(),
            1 => "1 turn to undo".to_owned(),
            many => format!("{many} turns to undo"),
        });
        if self.redo_depth > 0 {
            text.push_str(&format!(", {} to redo", self.redo_depth));
        }
        text.push('\n');
        if !self.enabled {
            text.push_str("oxundo.enabled is false: nothing is recorded\n");
        }
        if let Some(open) = &self.open {
            let is_between = open.origin.waiting && !open.origin.by_hooks;
            let what = if is_between { "waits for a prompt" } else { "is in progress" };
            text.push_str(&format!("Turn {} ({}) {what}\n", open.turn, sanitized(&open.label())));
        }
        if let Some((turn, why)) = self.obstacle() {
            let verb = if self.open.is_some() { "makes" } else { "made" };
            let (number, why) = (turn.turn, sanitized(why));
            text.push_str(&match turn.commits[..] {
                [] => format!("Turn {number} {verb} no commits: {why}\n"),
                // The agent has made some.
                _ => format!("oxundo {verb} no commits in turn {number}: {why}\n"),
            });
        }
        if let Some(undo) = planned(self) {
            text.push_str(&undo.in_short());
        }
        if let Some(refusal) = refusal(self) {
            text.push_str(&format!("undo would refuse: {}\n", sanitized(&refusal.message)));
        }
        if let Some(why) = &self.tracked_only {
            text.push_str(&format!("{why}\n"));
        }
        for kept in &self.kept {
            text.push_str(&format!("kept: {}\n", shown(kept.as_os_str().as_bytes().as_bstr())));
        }
        for skipped in &self.not_covered {
            text.push_str(&format!("not covered: {}\n", shown(skipped.path.as_bstr())));
        }
        if let Some((bytes, at)) = self.space {
            text.push_str(&format!("oxundo takes {}, as of {}\n", size(bytes), ago_of(at)));
        }
        text
    }

    fn hints(&self) -> Vec<String> {
        refusal(self).map(|refusal| refusal.hints).unwrap_or_default()
    }
}

impl Answer for Short {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({
            "branch": self.branch.as_deref().map(short_branch),
            "turn": self.turn,
            "open_turn": self.open,
            "undo_depth": self.undo_depth,
            "redo_depth": self.redo_depth,
            "dirty": self.dirty,
        }))
    }

    /// `undo:3 redo:1 open:7 dirty`, each where there is any.
    fn text(&self) -> String {
        let count = |word: &str, number: u64| (number > 0).then(|| format!("{word}:{number}"));
        let parts = [
            count("undo", self.undo_depth),
            count("redo", self.redo_depth as u64),
            count("open", self.open.unwrap_or(0)),
            self.dirty.then(|| "dirty".to_owned()),
        ];
        let line = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if line.is_empty() { line } else { line + "\n" }
    }
}
