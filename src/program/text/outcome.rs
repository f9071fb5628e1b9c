//! What an operation did, or would do, as people read it.

use crate::model::bytes::{pathspec_word, sanitized, shown};
use crate::model::checkpoint::{Change, Delta, Head, short_branch};
use crate::model::turn::{Totals, Turn};
use crate::ops::outcome::Outcome;
use crate::program::ui::{Answer, Ui};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};

/// How many paths a line of the answer names.
const NAMED: usize = 5;

impl Outcome {
    /// What it does, without the list of its files.
    pub fn in_short(&self) -> String {
        let mut text = format!("{}: {}\n", self.what, self.summary());
        let (keeps, overwrites) = if self.dry_run { ("Would keep", "Would overwrite") } else { ("Kept", "Overwrote") };
        text.push_str(&line(&format!("{keeps} your edits in"), &self.plan.kept_edits));
        text.push_str(&line("No longer staged:", &self.plan.unstaged));
        text.push_str(&line("Still staged as it was:", &self.plan.still_staged));
        text.push_str(&line(&format!("{overwrites} your edits in"), &self.plan.overwritten));
        self.forks.iter().for_each(|fork| text.push_str(&format!("{fork}\n")));
        text
    }

    fn summary(&self) -> String {
        // Where there are files, their directories go without saying.
        let mut text = match (self.plan.actions().len(), self.plan.directories.len()) {
            (0, 1) => "1 directory".to_owned(),
            (0, n) if n > 1 => format!("{n} directories"),
            (1, _) => "1 file".to_owned(),
            (n, _) => format!("{n} files"),
        };
        for (name, from, to) in self.plan.tips() {
            text.push_str(&format!(", {}", moved(&sanitized(&name), from, to)));
        }
        if self.plan.head.from.branch != self.plan.head.to.branch {
            text.push_str(&format!(", {}", head_to(&self.plan.head.to)));
        }
        if let Some(Change { from, to }) = &self.plan.stash {
            let [gone, back] =
                [(from, to), (to, from)].map(|(of, not)| of.iter().filter(|it| !not.contains(it)).count());
            for (number, one, many) in [(gone, "goes", "go"), (back, "comes back", "come back")] {
                match number {
                    0 => {}
                    1 => text.push_str(&format!(", a stash entry {one}")),
                    number => text.push_str(&format!(", {number} stash entries {many}")),
                }
            }
        }
        text
    }
}

/// What a `run`'s turn was, in a line: how many files, and which refs it moved.
pub fn ended(turn: &Turn, delta: &Delta) -> String {
    let cut_off = if turn.interrupted { " (interrupted)" } else { "" };
    let Totals { files, insertions, deletions } = turn.totals;
    let noun = if files == 1 { "file" } else { "files" };
    let mut text = format!("turn {}{cut_off}: {files} {noun} +{insertions} -{deletions}", turn.turn);
    for (name, change) in &delta.branches {
        text.push_str(&format!(", {}", moved(&sanitized(&short_branch(name)), change.from, change.to)));
    }
    if let Some(Change { from, to }) = &delta.head {
        if from.branch != to.branch {
            text.push_str(&format!(", {}", head_to(to)));
        } else if to.branch.is_none() {
            text.push_str(&format!(", {}", moved("HEAD", from.commit, to.commit)));
        }
    }
    text + "\n"
}

/// Where HEAD is led.
pub fn head_to(head: &Head) -> String {
    head.branch.as_deref().map_or("HEAD detached".to_owned(), |to| format!("HEAD to {}", sanitized(&short_branch(to))))
}

/// How a branch moves, comes or goes.
pub fn moved(name: &str, from: Option<ObjectId>, to: Option<ObjectId>) -> String {
    match (from, to) {
        (None, to) => format!("{name} made at {}", short(to)),
        (from, None) => format!("{name} deleted at {}", short(from)),
        (from, to) => format!("{name} {}..{}", short(from), short(to)),
    }
}

fn short(id: Option<ObjectId>) -> String {
    id.map_or_else(|| "nothing".to_owned(), |id| id.to_hex_with_len(7).to_string())
}

/// What some words say of these paths, the first five by name.
pub fn line(words: &str, paths: &[BString]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let mut named: Vec<String> = paths.iter().take(NAMED).map(|path| shown(path.as_bstr())).collect();
    if paths.len() > NAMED {
        named.push(format!("{} more", paths.len() - NAMED));
    }
    format!("{words} {}\n", named.join(", "))
}

impl Answer for Outcome {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(Self::json(self))
    }

    fn text(&self) -> String {
        let mut text = self.in_short();
        if self.rescue.is_some() && !self.plan.overwritten.is_empty() {
            let paths: Vec<String> = self.plan.overwritten.iter().map(pathspec_word).collect();
            let paths = if paths.len() > NAMED { ":/".to_owned() } else { paths.join(" ") };
            text.push_str(&format!("They are in @rescue: 'oxundo restore @rescue -- {paths}' brings them back\n"));
        }
        let actions = self.plan.actions();
        if !self.dry_run {
            let paths: Vec<BString> = actions.iter().map(|(path, _)| (*path).clone()).collect();
            return text + &line("Files:", &paths);
        }
        // What was said before it, and the line that it is cut off with, stay on the screen.
        let most = Ui::rows().map_or(usize::MAX, |rows| rows.saturating_sub(text.lines().count() + 3).max(NAMED));
        for (path, action) in actions.iter().take(most) {
            text.push_str(&format!("  {action:6} {}\n", shown(path.as_bstr())));
        }
        if actions.len() > most {
            text.push_str(&format!("  and {} more; in a pipe, as to 'less', all are listed\n", actions.len() - most));
        }
        text
    }

    fn hints(&self) -> Vec<String> {
        if self.dry_run { Vec::new() } else { self.hints.clone() }
    }
}
