//! The timelines of the repository's other worktrees. They stay when a worktree is removed.

use crate::git::checkpoint::Checkpoints;
use crate::git::refs::Refs;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::bytes::lossless;
use crate::model::checkpoint::shown_name;
use crate::model::place::Place;
use crate::model::timeline::{Pin, Timeline, reads_otherwise};
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// What the main worktree is called.
const MAIN: &str = "main";

/// The timeline of another worktree.
pub struct Other<'r> {
    /// The full name of its ref.
    pub name: String,
    /// How notes and refs call the worktree.
    pub worktree: String,
    /// Whether the worktree has been removed.
    pub removed: bool,
    /// The timeline, or why it cannot be read.
    pub stored: Result<Stored<'r>>,
}

/// What stands before the name of a linked worktree that alone would be taken for something else.
const LINKED: &str = "worktrees/";

impl Other<'_> {
    /// The words by which its turns are named: `NAME` of `NAME:17`.
    pub fn words(&self) -> String {
        let name = shown_name(&self.worktree);
        let is_plain = !reads_otherwise(&format!("{name}:1")) && !name.starts_with('-') && !name.contains(':');
        if is_plain && (name != MAIN || !self.is_linked()) { name.into_owned() } else { format!("{LINKED}{name}") }
    }

    fn is_linked(&self) -> bool {
        self.name.contains("/worktrees/")
    }

    /// Whether these words name it.
    fn is_called(&self, words: &str) -> bool {
        let name = shown_name(&self.worktree);
        words == name || (self.is_linked() && words.strip_prefix(LINKED).is_some_and(|rest| rest == name))
    }
}

impl<'r> Timelines<'r> {
    /// The timelines of all worktrees but this one, by their refs' names.
    pub fn other_timelines(&self) -> Result<Vec<Other<'r>>> {
        let own = Refs::new(self.repo).own_ref(crate::git::refs::OwnRef::Timeline);
        let mut others = Vec::new();
        for (name, commit) in self.repo.refs_below("refs/oxundo/")? {
            let name = lossless::encode(name.as_bstr());
            let worktree =
                match name.strip_prefix("refs/oxundo/worktrees/").and_then(|rest| rest.strip_suffix("/timeline")) {
                    Some(id) => id.to_owned(),
                    None if name == "refs/oxundo/timeline" => MAIN.to_owned(),
                    None => continue,
                };
            if name == own {
                continue;
            }
            let place = self.repo.common_dir.join("worktrees").join(OsStr::from_bytes(&lossless::decode(&worktree)));
            let removed = name.contains("/worktrees/") && !place.exists();
            let stored = commit.context("it is a symbolic ref").and_then(|commit| self.timeline_at(commit));
            let stored = if removed { stored.map(|stored| ended(&stored).unwrap_or(stored)) } else { stored };
            others.push(Other { name, worktree, removed, stored });
        }
        Ok(others)
    }

    /// The timeline of the worktree that people call so.
    pub fn other_timeline(&self, worktree: &str) -> Result<Option<Other<'r>>> {
        Ok(self.other_timelines()?.into_iter().find(|other| other.is_called(worktree)))
    }
}

/// The timeline of a worktree that is gone: a turn that was open then ended with its last step, since nobody goes on with it. It is
/// written when something else is.
fn ended<'r>(stored: &Stored<'r>) -> Result<Stored<'r>> {
    let Some(number) = stored.state.open else { return Ok(stored.clone()) };
    let checkpoints = Checkpoints::new(stored.repo);
    let mut turn = stored.require_turn(number)?;
    let before = stored.checkpoint(number, Side::Before)?;
    let last = stored.last_step(number)?;
    let mut after = stored.step_checkpoint(number, last, Side::After)?.unwrap_or_else(|| before.clone());
    if last == 0 {
        turn.dirty_commit.into_iter().for_each(|dirty| after.advance(dirty));
    }
    let (files, totals) = checkpoints.file_stats(&checkpoints.delta(&turn, &before, &after)?)?;
    turn.ended_at = Some(stored.step(number, last)?.map_or_else(|| turn.began_at.clone(), |step| step.ended_at));
    (turn.interrupted, turn.origin.waiting, turn.totals) = (true, false, totals);
    turn.branch.clone_from(&after.head.branch);
    turn.previous = stored.state.top(after.head.stack()).filter(|top| *top < number);
    let below = turn.previous.map(|below| stored.require_turn(below)).transpose()?;
    turn.depth = below.map_or(0, |below| below.depth) + 1;
    let mut update = stored.update();
    update.state.open = None;
    for Pin(held) in std::mem::take(&mut update.state.held) {
        update.state.pin(held);
    }
    update.state.stand(&after.head, &Place { top: Some(number), ..Place::default() });
    update.put_turn(&turn)?;
    update.put_above(&turn)?;
    update.put_files(number, &files)?;
    update.put_checkpoint(number, Side::After, &after)?;
    let (_, now) = update.into_record(String::new(), Vec::new())?;
    let state = Timeline { operation: stored.state.operation, ..now.state };
    Ok(Stored { commit: stored.commit, state, ..now })
}
