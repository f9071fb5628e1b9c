//! `oxundo diff`: what changed since a turn, or between two, through git's own diff.

use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::model::turn::FileChange;
use crate::ops::diff::{changes, states};
use crate::ops::turn::session::look;
use crate::program::args::DiffArgs;
use crate::program::ui::{Answer, Ui};
use anyhow::Result;
use serde_json::json;

/// Compares the state after a turn with that after another, or with the worktree.
pub fn run(repo: &Repo, ui: &Ui, args: &DiffArgs) -> Result<Option<Changes>> {
    let heard = ui.heard();
    let view = look(repo, &heard, "diff")?;
    let (from, to) = ends(&args.turns);
    let states = states(&view, from, to)?;
    if ui.json {
        let files = changes(&view, &states, &args.pathspecs)?;
        return Ok(Some(Changes(files.into_iter().map(|(_, change)| change).collect())));
    }
    let [from, to] = states.map(|state| state.worktree);
    Objects::new(repo).print_diff(from, to, Ui::diff_style(args.stat), &args.pathspecs)?;
    Ok(None)
}

/// Between which states, in one word (`3..5`) or two; a side that is left out is the last turn done, as HEAD is for git.
fn ends(turns: &[String]) -> (&str, Option<&str>) {
    match turns {
        [] => ("@", None),
        [one] => match one.split_once("..") {
            Some((from, to)) => (or_last(from), Some(or_last(to))),
            None => (one, None),
        },
        [from, to, ..] => (from, Some(to)),
    }
}

fn or_last(words: &str) -> &str {
    if words.is_empty() { "@" } else { words }
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
