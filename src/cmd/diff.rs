//! `oxundo diff`: what changed since a turn, or between two, through git's own diff.

use crate::cli::DiffArgs;
use crate::cmd::state_at;
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::checkpoint::Delta;
use crate::model::turn::FileChange;
use crate::turns;
use crate::ui::{Answer, Ui};
use anyhow::Result;
use gix::bstr::ByteSlice;
use serde_json::json;

/// Compares the state after a turn with that after another, or with the worktree.
///
/// # Errors
///
/// A refusal when there is no such turn.
pub fn run(repo: &Repo, ui: &Ui, args: &DiffArgs) -> Result<Option<Changes>> {
    let stored = Timelines::new(repo).timeline()?;
    let from = state_at(repo, &stored, args.turns.first().map_or("@", String::as_str))?;
    let to = if let Some(second) = args.turns.get(1) {
        state_at(repo, &stored, second)?
    } else {
        turns::present(repo, &stored)?.checkpoint
    };
    if ui.json {
        let mut files = Checkpoints::new(repo).file_changes(&from, &to)?;
        if !args.pathspecs.is_empty() {
            let mut selection = Index::new(repo).selection(&args.pathspecs)?;
            files.retain(|path, _| selection.takes(path.as_bstr()));
        }
        return Ok(Some(Changes(Checkpoints::new(repo).file_stats(&Delta { files, ..Delta::default() })?)));
    }
    Objects::new(repo).print_diff(from.worktree, to.worktree, args.stat, &args.pathspecs)?;
    Ok(None)
}

/// The files that differ.
pub struct Changes(Vec<FileChange>);

impl Changes {
    /// The files.
    pub fn into_files(self) -> Vec<FileChange> {
        self.0
    }
}

impl Answer for Changes {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({"files": self.0}))
    }

    fn text(&self) -> String {
        self.0.iter().map(|file| format!("{} {}\n", file.status, file.path)).collect()
    }
}
