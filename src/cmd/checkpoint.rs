//! `oxundo checkpoint`: the present state under a name, for `--to`, `restore`, `show` and `diff`.
//! It is no turn: nothing changes but the timeline, undo does not stop at it, and `--delete`
//! takes it back.

use crate::cli::CheckpointArgs;
use crate::error::{Code, Refusal};
use crate::git::apply::Apply;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::{age, now};
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::git::timeline::update::Update;
use crate::model::bytes::sanitized;
use crate::model::checkpoint::Head;
use crate::model::plan::{Op, Plan};
use crate::model::timeline::{Named, TurnSpec};
use crate::turns;
use crate::ui::{Answer, Ui};
use anyhow::Result;
use serde_json::json;
use std::collections::BTreeMap;

/// Names the present state, or lists or forgets what was named.
///
/// # Errors
///
/// A refusal, with nothing changed, or a failure.
pub fn run(repo: &Repo, ui: &Ui, args: &CheckpointArgs) -> Result<Box<dyn Answer>> {
    let _lock = repo.lock("checkpoint")?;
    turns::settle(repo, ui)?;
    let stored = Timelines::new(repo).timeline()?;
    if args.list {
        return Ok(Box::new(List(stored.state.named)));
    }
    if args.delete {
        return delete(repo, &stored, args.name.as_deref().unwrap_or_default());
    }
    let name = new_name(&stored, args)?;
    let capture = turns::present(repo, &stored)?;
    let head = &capture.checkpoint.head;
    let mut update = stored.update();
    let number = stored.state.named.values().map(|named| named.number).max().unwrap_or_default() + 1;
    let top = super::last_whole(repo, &stored, stored.state.top(head.stack()))?;
    let named = Named { number, stack: head.stack().to_owned(), top, at: now() };
    update.state.usual_modes = Some(capture.checkpoint.modes.usual);
    update.state.named.insert(name.clone(), named.clone());
    update.put_named(number, &capture.checkpoint)?;
    record(repo, update, format!("checkpoint {name}"), head.clone())?;
    Ok(Box::new(Made { name, top, forgotten: false }))
}

fn new_name(stored: &Stored, args: &CheckpointArgs) -> Result<String> {
    let given = args.name.as_deref().or(args.message.as_deref()).map(str::trim);
    let Some(name) = given else {
        let free = |name: &String| !stored.state.named.contains_key(name);
        let last = stored.state.named.len() + 1;
        return Ok((1..=last).map(|n| format!("c{n}")).find(free).unwrap_or_default());
    };
    let bad = |why: &str, hint: &str| {
        Err(Refusal::new(Code::Usage, format!("'{}' {why}", sanitized(name))).hint(hint).into())
    };
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_control) {
        return bad("cannot be a checkpoint's name", "give it a name in words");
    }
    if TurnSpec::parse(name).is_ok() {
        return bad("would be taken for a turn or a commit", "give it a name in words");
    }
    if stored.state.named.contains_key(name) {
        return bad(
            "is a checkpoint already",
            "give another name, or run 'oxundo checkpoint --delete' on this one first",
        );
    }
    Ok(name.to_owned())
}

fn delete(repo: &Repo, stored: &Stored, name: &str) -> Result<Box<dyn Answer>> {
    let mut update = stored.update();
    let Some(named) = update.state.named.remove(name) else {
        return Err(Refusal::new(Code::NotFound, format!("there is no checkpoint '{}'", sanitized(name)))
            .hint("run 'oxundo checkpoint --list' to see them")
            .into());
    };
    update.remove_named(named.number);
    record(repo, update, format!("forget checkpoint {name}"), Refs::new(repo).head()?)?;
    Ok(Box::new(Made { name: name.to_owned(), top: named.top, forgotten: true }))
}

fn record(repo: &Repo, update: Update<'_>, message: String, head: Head) -> Result<()> {
    Apply::new(repo).apply(&Plan::empty(Op::Checkpoint, head), &update.into_record(message, Vec::new())?, None)
}

struct Made {
    name: String,
    top: Option<u64>,
    forgotten: bool,
}

impl Answer for Made {
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
        let name = sanitized(&self.name);
        vec![format!(
            "'oxundo restore \"{name}\"' brings its files back, 'oxundo undo --to \"{name}\"' undoes later turns"
        )]
    }
}

struct List(BTreeMap<String, Named>);

impl List {
    fn newest_first(&self) -> Vec<(&String, &Named)> {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by_key(|(_, named)| std::cmp::Reverse(named.number));
        all
    }
}

impl Answer for List {
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
            format!("{}  {}  {turn}\n", sanitized(name), age(&named.at))
        };
        self.newest_first().into_iter().map(line).collect()
    }
}
