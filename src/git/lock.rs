//! One kernel lock per worktree. It goes with the process, however that ends,
//! and the agent never inherits it.

use super::Repo;
use super::notes::NOTES;
use super::refs::clear_lock_of_the_dead;
use crate::error::{Code, Refusal};
use anyhow::{Context, Result};
use std::fs::{File, TryLockError};
use std::io::Write;
use std::time::SystemTime;

/// Held while a command changes the worktree or its timeline.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Repo {
    /// Takes the worktree's lock, in the name of `who`.
    ///
    /// # Errors
    ///
    /// A refusal `busy` that names the one who has it.
    pub fn lock(&self, who: &str) -> Result<Lock> {
        if let Some(lock) = self.try_lock(who)? {
            Ok(lock)
        } else {
            let holder = std::fs::read_to_string(self.scratch()?.join("lock")).unwrap_or_default();
            let holder = crate::model::bytes::sanitized(holder.trim());
            Err(Refusal::new(Code::Busy, format!("another oxundo is at work in this worktree: {holder}"))
                .hint("wait until it is done, or end it, and run this again")
                .into())
        }
    }

    /// Takes the lock that all worktrees share for writing the notes; waits while another oxundo
    /// has it.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be made.
    pub fn lock_notes(&self) -> Result<Lock> {
        let directory = self.common_dir.join("oxundo");
        std::fs::create_dir_all(&directory).with_context(|| format!("make {}", directory.display()))?;
        let path = directory.join("notes");
        let file = File::options().write(true).create(true).truncate(false).open(&path);
        let file = file.with_context(|| format!("open {}", path.display()))?;
        file.lock().context("lock the notes")?;
        // No oxundo has it now: what stands there is git's, or was left by a kill.
        clear_lock_of_the_dead(&self.common_dir.join(format!("{NOTES}.lock")), SystemTime::UNIX_EPOCH)?;
        Ok(Lock { _file: file })
    }

    /// Takes the worktree's lock if it is free.
    ///
    /// # Errors
    ///
    /// When the lock file cannot be made.
    pub fn try_lock(&self, who: &str) -> Result<Option<Lock>> {
        let path = self.scratch()?.join("lock");
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .with_context(|| format!("open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error).context("lock the worktree"),
        }
        // Only for the message of those who find it taken: a full disk is no reason not to work.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{who} (pid {})", std::process::id()));
        Ok(Some(Lock { _file: file }))
    }
}
