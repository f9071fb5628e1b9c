//! `oxundo checkpoint`: the present state under a name, for `--to`, `restore`, `show` and `diff`; `--delete` takes it
//! back.

use crate::git::repo::Repo;
use crate::git::repo::clock::ago;
use crate::model::bytes::{quoted_line, sanitized};
use crate::model::timeline::Named;
use crate::ops::checkpoint::{forget, name};
use crate::ops::turn::session::{beside_turn, look};
use crate::program::args::CheckpointArgs;
use crate::program::ui::{Answer, Ui};
use crate::program::usage::line;
use anyhow::Result;
use serde_json::json;
use std::collections::BTreeMap;

/// Names the present state, or lists or forgets what was named.
pub fn run(repo: &Repo, ui: &Ui, args: &CheckpointArgs) -> Result<Box<dyn Answer>> {
    let heard = ui.heard();
    if args.list {
        return Ok(Box::new(CheckpointList(look(repo, &heard, "checkpoint")?.timeline.state.named)));
    }
    let mut locked = beside_turn(repo, &heard, "checkpoint")?;
    if args.delete {
        let name = args.name.clone().unwrap_or_default();
        let named = forget(&mut locked, &name)?;
        return Ok(Box::new(Answered { name, top: named.top, forgotten: true }));
    }
    let (name, named) = name(&mut locked, args.name.as_deref().or(args.message.as_deref()))?;
    Ok(Box::new(Answered { name, top: named.top, forgotten: false }))
}

struct Answered {
    name: String,
    top: Option<u64>,
    forgotten: bool,
}

impl Answer for Answered {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({"checkpoint": self.name, "turn": self.top, "deleted": self.forgotten}))
    }

    fn text(&self) -> String {
        let name = sanitized(&self.name);
        match (self.forgotten, self.top) {
            (true, _) => format!("Forgot checkpoint '{name}'\n"),
            (false, Some(turn)) => format!("Checkpoint '{name}' after turn {turn}\n"),
            (false, None) => format!("Checkpoint '{name}' before the first turn\n"),
        }
    }

    fn hints(&self) -> Vec<String> {
        if self.forgotten {
            return Vec::new();
        }
        let [restore, undo] =
            [&["restore"][..], &["undo", "--to"]].map(|words| line(words.iter().chain([&self.name.as_str()])));
        vec![format!("{} brings its files back, {} undoes later turns", quoted_line(&restore), quoted_line(&undo))]
    }
}

struct CheckpointList(BTreeMap<String, Named>);

impl CheckpointList {
    fn newest_first(&self) -> Vec<(&String, &Named)> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, named)| std::cmp::Reverse(named.number));
        all
    }
}

impl Answer for CheckpointList {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let all = self.newest_first().into_iter();
        let all: Vec<_> = all.map(|(name, named)| json!({"name": name, "turn": named.top, "at": named.at})).collect();
        Ok(json!({"checkpoints": all}))
    }

    fn text(&self) -> String {
        if self.0.is_empty() {
            return "no checkpoints yet\n".to_owned();
        }
        let line = |(name, named): (&String, &Named)| {
            let turn = named.top.map_or("before the first turn".to_owned(), |turn| format!("after turn {turn}"));
            format!("{}  {}  {turn}\n", sanitized(name), ago(&named.at))
        };
        self.newest_first().into_iter().map(line).collect()
    }
}
