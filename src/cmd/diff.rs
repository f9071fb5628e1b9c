//! `oxundo diff`: what changed since a turn, or between two, through git's own diff.

use super::show::{existing, missing};
use crate::cli::DiffArgs;
use crate::config::Config;
use crate::error::{Code, Refusal};
use crate::git::Repo;
use crate::git::store::Side;
use crate::model::turn::FileChange;
use crate::ui::{Answer, Ui};
use anyhow::Result;
use serde_json::json;

/// Compares the state after a turn with that after another, or with the worktree.
///
/// # Errors
///
/// A refusal when there is no such turn.
pub fn run(repo: &Repo, ui: &Ui, args: &DiffArgs) -> Result<Option<Changes>> {
    let stored = repo.timeline()?;
    let first = args.turns.first().map_or("@", String::as_str);
    let state_after = |text: &str| {
        if text == "0" {
            let first = repo.turn(&stored, 1)?.ok_or_else(|| missing("there is no first turn, or it has expired"))?;
            return repo.checkpoint(&stored, first.turn, Side::Before);
        }
        repo.checkpoint(&stored, existing(repo, &stored, text)?, Side::After)
    };
    let from = state_after(first)?;
    let to = if let Some(second) = args.turns.get(1) {
        state_after(second)?
    } else {
        let usual = stored.state.usual_modes.unwrap_or_else(Repo::umask_modes);
        repo.capture(usual, &Config(repo).limits()?, None)?.checkpoint
    };
    if ui.json {
        if !args.pathspecs.is_empty() {
            return Err(Refusal::new(Code::Usage, "--json lists every file: it takes no pathspec")
                .hint("leave the pathspec out, or leave '--json' out")
                .into());
        }
        return Ok(Some(Changes(repo.file_stats(&repo.delta(0, &from, &to)?)?)));
    }
    repo.print_diff(from.worktree, to.worktree, args.stat, &args.pathspecs)?;
    Ok(None)
}

/// The files that differ.
pub struct Changes(Vec<FileChange>);

impl Answer for Changes {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({"files": self.0}))
    }

    fn text(&self) -> String {
        self.0.iter().map(|file| format!("{} {}\n", file.status, file.path)).collect()
    }
}
