//! What a command sees: the timeline and HEAD, each read once.

use crate::config::Config;
use crate::git::apply::Apply;
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::git::worktree::stat::umask_modes;
use crate::model::checkpoint::Head;
use crate::model::turn::Turn;
use crate::warning::{Warn, Warning};
use anyhow::Result;

/// A repository as a command sees it, from the moment that it looked.
#[derive(Clone)]
pub struct View<'r> {
    /// The repository.
    pub repo: &'r Repo,
    /// The timeline.
    pub timeline: Stored<'r>,
    /// Where HEAD is.
    pub head: Head,
    heard: Warn<'r>,
}

impl<'r> View<'r> {
    /// Looks, and no more.
    pub fn open(repo: &'r Repo, heard: Warn<'r>) -> Result<Self> {
        Ok(Self { repo, timeline: Timelines::new(repo).timeline()?, head: Refs::new(repo).head()?, heard })
    }

    /// As it is now. A timeline that nobody has moved is not read again.
    pub fn refreshed(self) -> Result<Self> {
        let is_same = Timelines::new(self.repo).tip()? == self.timeline.commit;
        let timeline = if is_same { self.timeline } else { Timelines::new(self.repo).timeline()? };
        Ok(Self { head: Refs::new(self.repo).head()?, timeline, ..self })
    }

    /// The user's settings.
    pub fn config(&self) -> Config<'r> {
        Config(self.repo)
    }

    /// Tells whoever listens.
    pub fn warn(&self, message: impl Into<String>) {
        (self.heard)(Warning::new(message));
    }

    /// Carries plans out, with the patience that the user wants.
    pub fn apply(&self) -> Result<Apply<'r>> {
        Ok(Apply::new(self.repo, self.config().lock_timeout()?))
    }

    /// The present state, with the permission bits that this timeline takes for granted.
    pub fn present(&self) -> Result<Capture> {
        let usual = self.timeline.state.usual_modes.unwrap_or_else(umask_modes);
        Checkpoints::new(self.repo).capture(usual, &self.config().limits()?, None)
    }

    /// The open turn.
    pub fn open_turn(&self) -> Result<Option<Turn>> {
        self.timeline.state.open.map(|number| self.timeline.require_turn(number)).transpose()
    }

    /// The last turn done where HEAD is.
    pub fn top(&self) -> Option<u64> {
        self.timeline.state.top(self.head.stack())
    }

    /// The last turn done where HEAD is that is not only a part taken out of others.
    pub fn last_whole(&self) -> Result<Option<u64>> {
        last_whole(&self.timeline, self.top())
    }
}

/// The first turn from here down that is not only a part taken out of others.
pub fn last_whole(timeline: &Stored<'_>, from: Option<u64>) -> Result<Option<u64>> {
    let mut at = from;
    while let Some(number) = at {
        let turn = timeline.require_turn(number)?;
        if !turn.is_part() {
            break;
        }
        at = turn.previous;
    }
    Ok(at)
}
