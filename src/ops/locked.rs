//! The only way into a change: the worktree's lock is taken, an interrupted command is finished or rolled back, and
//! the timeline and HEAD are read, once. Whoever has a `Locked` has all of this.

use crate::config::Config;
use crate::git::apply::Apply;
use crate::git::apply::recover::{OPERATION_LEFT, Recovered};
use crate::git::durable::Durable;
use crate::git::index::lock::IndexLock;
use crate::git::repo::Repo;
use crate::git::repo::lock::Lock;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::git::timeline::update::Update;
use crate::model::bytes::in_quotes;
use crate::model::plan::Plan;
use crate::model::turn::Note;
use crate::ops::view::{View, mend};
use crate::warning::Warn;
use anyhow::Result;
use gix::bstr::ByteSlice;
use std::ops::Deref;
use std::time::Duration;

/// A repository that no other oxundo changes, as it was when the lock was taken, and kept up to date with each change
/// made through this.
pub struct Locked<'r> {
    view: View<'r>,
    /// What the log of operations has behind each message.
    note: String,
    _lock: Lock,
}

impl<'r> Deref for Locked<'r> {
    type Target = View<'r>;

    fn deref(&self) -> &View<'r> {
        &self.view
    }
}

impl<'r> Locked<'r> {
    /// Takes the lock in the name of `who`. Refuses `busy` where another has it, or where a `run`'s agent is at work.
    pub fn take(repo: &'r Repo, heard: Warn<'r>, who: &str) -> Result<Self> {
        let lock = repo.lock_beside_run(who, repo.patience())?;
        check_no_run(repo)?;
        Self::over(repo, heard, lock)
    }

    /// Takes the lock whether or not a `run`'s agent is at work, as that agent's hooks do.
    pub fn beside_run(repo: &'r Repo, heard: Warn<'r>, who: &str, patience: Duration) -> Result<Self> {
        let lock = repo.lock_beside_run(who, patience)?;
        Self::over(repo, heard, lock)
    }

    /// With a lock that has been taken: recovers an interrupted command, and reads the timeline and HEAD.
    pub fn over(repo: &'r Repo, heard: Warn<'r>, lock: Lock) -> Result<Self> {
        repo.act();
        mend(repo, heard)?;
        Durable::new(repo).begin()?;
        let recovered = Apply::new(repo, Config(repo).lock_timeout()?, heard).recover()?;
        let locked = Self { view: View::open(repo, heard)?, note: String::new(), _lock: lock };
        if let Some(recovered) = recovered {
            locked.tell_of(&recovered);
        }
        Ok(locked)
    }

    /// As [`Self::over`], with a view from before the lock was taken: what has not changed is not read again.
    pub fn from_view(view: View<'r>, lock: Lock) -> Result<Self> {
        view.repo.act();
        view.mend()?;
        Durable::new(view.repo).begin()?;
        let recovered = view.apply()?.recover()?;
        let locked = Self { view: view.refreshed()?, note: String::new(), _lock: lock };
        if let Some(recovered) = recovered {
            locked.tell_of(&recovered);
        }
        Ok(locked)
    }

    fn tell_of(&self, recovered: &Recovered) {
        let how = if recovered.finished { "finished" } else { "rolled back" };
        self.warn(format!("{how} an interrupted operation: {}", recovered.what));
        for path in &recovered.left.paths {
            self.warn(format!("left {} as it is: it was changed since", in_quotes(path.as_bstr())));
        }
        if recovered.left.operation {
            self.warn(OPERATION_LEFT);
        }
        match recovered.left.stashed {
            0 => {}
            1 => self.warn("left an entry of the stash list as it is: it was made since"),
            many => self.warn(format!("left {many} entries of the stash list as they are: they were made since")),
        }
    }

    /// Carries a plan out and records it as the next timeline, both or neither.
    pub fn carry_out(
        &mut self,
        plan: &Plan,
        update: Update<'r>,
        message: String,
        notes: Vec<Note>,
        index: Option<IndexLock<'_>>,
    ) -> Result<()> {
        let (record, next) = update.into_record(message + &self.note, notes)?;
        self.apply()?.apply(plan, &record, index)?;
        self.became(next, plan);
        Ok(())
    }

    /// Updates the timeline and HEAD to what they are after a plan.
    pub fn became(&mut self, timeline: Stored<'r>, plan: &Plan) {
        self.view.became(timeline, plan.head.to.clone());
    }

    /// Reads again what a program of the user's may have changed.
    pub fn look_again(&mut self) -> Result<()> {
        self.view = self.view.clone().refreshed()?;
        Ok(())
    }

    /// Has the log of operations say this behind each message from now on.
    pub fn note(&mut self, note: String) {
        self.note = note;
    }

    /// Releases the lock, and keeps the view.
    pub fn into_view(self) -> View<'r> {
        self.view
    }
}

/// Refuses `busy` where a `run`'s agent is at work.
pub fn check_no_run(repo: &Repo) -> Result<()> {
    if repo.is_running()? && !run_is_waiting(repo)? { Err(repo.busy_with_run()) } else { Ok(()) }
}

/// Whether the agent in a `run` waits for its next prompt.
fn run_is_waiting(repo: &Repo) -> Result<bool> {
    let timeline = Timelines::new(repo).timeline()?;
    match timeline.state.open {
        Some(open) => Ok(timeline.require_turn(open)?.origin.waiting),
        None => Ok(true),
    }
}
