//! `oxundo gc`: lets old turns go, and frees what was moved aside for them.

use crate::git::repo::Repo;
use crate::git::repo::clock::{parse_rfc3339, unix_now};
use crate::model::bytes::{sanitized, size};
use crate::model::expiry::NEWEST;
use crate::ops::gc::{Collected, Effort, collect, collect_automatically, plan};
use crate::ops::removed::RemovedWorktree;
use crate::ops::turn::session::beside_turn;
use crate::ops::view::View;
use crate::program::args::GcArgs;
use crate::program::ui::{Answer, Ui};
use anyhow::Result;
use serde_json::json;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// How often it runs by itself.
const DAY: Duration = Duration::from_secs(86_400);

/// Lets go what is older than the limit.
pub fn run(repo: &Repo, ui: &Ui, args: &GcArgs) -> Result<Collected> {
    let heard = ui.heard();
    if args.auto {
        return collect_automatically(repo, &heard);
    }
    let mut locked = beside_turn(repo, &heard, "gc")?;
    let keep = locked.config().keep(args.keep.as_deref())?;
    let effort = if args.drop_user { Effort::DropUser } else { Effort::Asked };
    if args.dry_run {
        return Ok(plan(&locked, keep, effort)?.preview(&locked));
    }
    collect(&mut locked, keep, effort)
}

/// Starts it in the background where it is time: at most once a day, and only if there is a turn to let go.
/// A turn that ends calls this, and does not wait.
pub fn start_if_due(view: &View<'_>) {
    // Old turns take space and do no other harm; 'oxundo gc' says what is in the way.
    drop(is_due(view).and_then(|due| if due { start(view.repo) } else { Ok(()) }));
}

fn is_due(view: &View<'_>) -> Result<bool> {
    if view.repo.since_collected().is_some_and(|age| age < DAY) {
        return Ok(false);
    }
    let (keep, most) = (view.config().keep(None)?, view.config().max_size()?);
    if keep.is_none() && most.is_none() {
        return Ok(false);
    }
    let turns = view.timeline.turn_numbers()?;
    if turns.len() <= NEWEST {
        return Ok(false);
    }
    view.repo.mark_collected()?;
    let oldest = view.timeline.require_turn(turns[0])?;
    let ended = oldest.ended_at.as_deref().and_then(parse_rfc3339);
    // How much it takes is found out in the background.
    let is_old = |keep: u64| ended.is_some_and(|ended| ended <= unix_now().saturating_sub_unsigned(keep));
    Ok(most.is_some() || keep.is_some_and(is_old))
}

fn start(repo: &Repo) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("-C").arg(repo.top()).args(["gc", "--auto"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not in the terminal's way: ctrl-c is for what the user started.
    command.process_group(0).spawn()?;
    Ok(())
}

impl Answer for Collected {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({
            "dry_run": self.dry_run,
            "expired": self.expired,
            "kept": self.kept,
            "rescues": self.rescues,
            "removed_worktrees": self.removed,
            "freed_bytes": self.freed,
            "aside_bytes": self.aside,
            "released_bytes": self.released,
            "taken_bytes": self.taken,
        }))
    }

    fn text(&self) -> String {
        let count = |n: usize| if n == 1 { "1 turn".to_owned() } else { format!("{n} turns") };
        let word = if self.dry_run { "Would expire" } else { "Expired" };
        let mut text = format!("{word} {}, {} kept\n", count(self.expired.len()), self.kept);
        for RemovedWorktree { worktree, expired, kept } in &self.removed {
            let (expired, worktree) = (count(expired.len()), sanitized(worktree));
            text.push_str(&format!("of the removed worktree '{worktree}': {expired}, {kept} kept\n"));
        }
        if self.freed > 0 || self.aside > 0 {
            let word = if self.dry_run { "to be freed" } else { "freed" };
            text.push_str(&format!("moved aside: {} {word}, {} kept\n", size(self.freed), size(self.aside)));
        }
        if self.released > 0 {
            let whose = if self.own { "" } else { ", which 'git gc' frees once nothing else needs them" };
            text.push_str(&format!("objects: {}{whose}\n", size(self.released)));
        }
        text.push_str(&format!("oxundo takes {}\n", size(self.taken)));
        text
    }
}
