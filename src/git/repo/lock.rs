//! Two kernel locks per worktree. The kernel releases them when the process ends, however
//! it ends, and the agent never inherits them.
//!
//! - `lock` is held by every command while it changes the worktree or its timeline: for a moment.
//! - `run` is held by `oxundo run` as long as its agent is at work: the agent's hooks, which
//!   are processes of their own, take `lock` meanwhile.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::repo::scratch::overwrite;
use anyhow::{Context, Result};
use std::fs::{File, TryLockError};
use std::time::{Duration, Instant};

/// How long a command waits for the lock, unless it is told otherwise.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// How long it sleeps between two attempts.
const PAUSE: Duration = Duration::from_millis(10);

/// Held while a command changes the worktree or its timeline, or while an agent is at work.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Wraps a file that has been locked.
    pub fn over(file: File) -> Self {
        Self { _file: file }
    }
}

impl Repo {
    /// Takes the worktree's lock unless a `run` is at work. It waits for a moment: even a killed process can hold
    /// the lock a little longer, in a child that was forked and has not become git yet.
    pub fn try_lock(&self, who: &str) -> Result<Option<Lock>> {
        if self.is_running()? {
            return Ok(None);
        }
        let lock = self.take("lock", who, self.patience())?;
        Ok(if self.is_running()? { None } else { lock })
    }

    /// Takes the worktree's lock, whether or not a `run` is at work.
    pub fn lock_beside_run(&self, who: &str, patience: Duration) -> Result<Lock> {
        self.take("lock", who, patience)?.ok_or_else(|| self.busy("lock"))
    }

    /// Takes the lock that is held while an agent is at work. The caller holds the worktree's lock.
    pub fn lock_for_run(&self, who: &str) -> Result<Lock> {
        if self.is_running()? {
            return Err(self.busy_with_run());
        }
        // Nobody else can begin a run now; `is_running` of others holds this lock for an instant.
        self.take("run", who, self.patience())?.ok_or_else(|| self.busy_with_run())
    }

    /// Whether a `run` is at work in this worktree.
    pub fn is_running(&self) -> Result<bool> {
        let path = self.scratch_path("run");
        if !path.exists() {
            return Ok(false);
        }
        let file = File::open(&path).with_context(|| format!("open '{}'", path.display()))?;
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error).context("look at the lock of a run"),
        }
    }

    /// The refusal that names the `run` whose agent is at work.
    pub fn busy_with_run(&self) -> anyhow::Error {
        self.busy("run")
    }

    fn busy(&self, name: &str) -> anyhow::Error {
        let holder = std::fs::read_to_string(self.scratch_path(name)).unwrap_or_default();
        let holder = crate::model::bytes::sanitized(holder.trim());
        Refusal::new(Code::Busy, format!("another oxundo is at work in this worktree: {holder}"))
            .hint("wait until it is done, or end it, and run this again")
            .into()
    }

    fn take(&self, name: &str, who: &str, patience: Duration) -> Result<Option<Lock>> {
        let path = self.scratch()?.join(name);
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("open '{}'", path.display()))?;
        self.sharing().share(&path)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => std::thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error).context("lock the worktree"),
            }
        }
        // The text is only for the message of whoever finds the lock taken: ignore a full disk.
        let _ = overwrite(&file, format!("{who} (pid {})\n", std::process::id()).as_bytes());
        Ok(Some(Lock { _file: file }))
    }
}
