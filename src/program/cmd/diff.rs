//! `oxundo diff`: what changed since a turn, or between two, through git's own diff.

use crate::error::{Code, Refusal};
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::model::bytes::quoted_line;
use crate::model::timeline::range_ends;
use crate::model::turn::FileChange;
use crate::ops::diff::{changes, states};
use crate::ops::resolve::{pathspec_of, state_and_path};
use crate::ops::turn::session::look;
use crate::program::args::DiffArgs;
use crate::program::ui::{Answer, Ui};
use crate::program::usage::line;
use anyhow::{Error, Result};
use serde_json::json;
use std::path::Path;

/// Compares the state after a turn with that after another, or with the worktree; of `17:src/a.rs` this path.
pub fn run(repo: &Repo, ui: &Ui, args: &DiffArgs) -> Result<Option<Changes>> {
    let heard = ui.heard();
    let view = look(repo, &heard, "diff")?;
    let (from, to) = ends(&args.turns);
    let mut literal = Vec::new();
    let mut without_path = |words| {
        if !args.pathspecs.is_empty() {
            return Ok(words);
        }
        let (_, words, path) = state_and_path(&view, words).map_err(|error| or_paths(error, &args.turns))?;
        literal.extend(path.map(pathspec_of));
        anyhow::Ok(words)
    };
    let from = without_path(from)?;
    let to = to.map(without_path).transpose()?;
    let states = states(&view, from, to).map_err(|error| or_paths(error, &args.turns))?;
    let pathspecs = if literal.is_empty() { &args.pathspecs } else { &literal };
    if ui.json {
        let files = changes(&view, &states, pathspecs)?;
        return Ok(Some(Changes(files.into_iter().map(|(_, change)| change).collect())));
    }
    if !pathspecs.is_empty() {
        // git's own words for one that it does not take lead nowhere.
        let _ = Index::new(repo).selection(pathspecs)?;
    }
    let [from, to] = states.map(|state| state.worktree);
    Objects::new(repo).print_diff(from, to, Ui::diff_style(args.stat), pathspecs)?;
    Ok(None)
}

/// The refusal of a word that is no turn, and may be a path.
fn or_paths(error: Error, turns: &[String]) -> Error {
    let is_path = |word: &String| Path::new(word).symlink_metadata().is_ok();
    match (error.downcast::<Refusal>(), turns.iter().position(is_path)) {
        (Ok(mut refusal), Some(first)) if refusal.code == Code::NotFound => {
            let (before, paths) = turns.split_at(first);
            let words = ["diff"].into_iter().chain(before.iter().map(String::as_str)).chain(["--"]);
            let meant = line(words.chain(paths.iter().map(String::as_str)));
            refusal.hints.insert(0, format!("paths come behind ' -- ': {}", quoted_line(&meant)));
            refusal.into()
        }
        (Ok(refusal), _) => refusal.into(),
        (Err(error), _) => error,
    }
}

/// Between which states, in one word (`3..5`) or two; a side that is left out is the last turn done, as HEAD is for git.
fn ends(turns: &[String]) -> (&str, Option<&str>) {
    match turns {
        [] => ("@", None),
        [one] => match range_ends(one) {
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
