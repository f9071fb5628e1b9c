//! Lock files beside refs: whose they are, and removing those that a killed command left.

use crate::error::{Code, Refusal};
use crate::git::refs::{OwnRef, Refs, full_name};
use crate::git::repo::scratch::remove_if_there;
use crate::model::bytes::lossless;
use anyhow::{Context, Result};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The file in the scratch directory that names the refs being moved.
const MARK: &str = "refs.mark";

/// git's lock and temporary file for packed-refs.
const PACKED_LOCKS: [&str; 2] = ["packed-refs.lock", "packed-refs.new"];

/// By how much the clock of a file system may be behind.
const CLOCKS_DIFFER: Duration = Duration::from_secs(1);

/// A lock older than this is reported by `oxundo doctor` as left behind.
const ANY_GIT_AT_MOST: Duration = Duration::from_secs(60);

/// A ref's lock that is older than this counts as left behind. git holds one for milliseconds, but for longer on
/// packed-refs in a large repository.
const HELD_AT_MOST: Duration = Duration::from_secs(2);

impl Refs<'_> {
    /// Lock files of git's that are so old that no running command should hold them.
    pub fn stale_locks(&self) -> Vec<PathBuf> {
        let branch = self.head().ok().and_then(|head| head.branch);
        let own = [OwnRef::Timeline, OwnRef::Pending].map(|own| self.own_ref(own));
        let shared = own.into_iter().chain(branch).chain(["packed-refs".to_owned(), "config".to_owned()]);
        let locks = (shared.map(|name| self.repo.common_dir.join(format!("{name}.lock"))))
            .chain(["HEAD.lock", "index.lock"].map(|name| self.repo.git_dir.join(name)));
        let old = |lock: &PathBuf| {
            let made = lock.symlink_metadata().and_then(|about| about.modified());
            made.is_ok_and(|made| made.elapsed().unwrap_or_default() > ANY_GIT_AT_MOST)
        };
        locks.filter(old).collect()
    }

    /// The lock files of the refs that only holders of this worktree's lock write.
    pub fn own_ref_locks(&self) -> [PathBuf; 2] {
        [OwnRef::Timeline, OwnRef::Pending].map(|own| self.repo.common_dir.join(format!("{}.lock", self.own_ref(own))))
    }

    pub fn clear_own_ref_locks(&self) -> Result<()> {
        self.own_ref_locks().iter().try_for_each(|lock| remove_if_there(lock))
    }

    /// Moves refs under a mark that names them. By it the next command recognises locks as ours that a kill left,
    /// or that could not be removed.
    pub fn with_marker<T>(&self, names: &[&str], edit: impl FnOnce() -> T) -> Result<T> {
        let mark = self.repo.scratch()?.join(MARK);
        std::fs::write(&mark, names.join("\n")).with_context(|| format!("write '{}'", mark.display()))?;
        let edited = edit();
        let mut locks = names.iter().copied().chain(["packed-refs"]).map(|name| self.ref_lock(name));
        if !locks.any(|lock| lock.exists()) {
            // A mark left behind only makes the next command look for locks.
            let _ = std::fs::remove_file(&mark);
        }
        Ok(edited)
    }

    pub fn ref_lock(&self, name: &str) -> PathBuf {
        let directory = if name == "HEAD" { &self.repo.git_dir } else { &self.repo.common_dir };
        let name = [lossless::decode(name), b".lock".to_vec()].concat();
        directory.join(OsStr::from_bytes(&name))
    }

    /// Whether a command may have left locks on refs.
    pub fn has_marked_locks(&self) -> bool {
        self.repo.scratch_path(MARK).exists()
    }

    /// Removes the locks that a command left on refs. To be called with the worktree's lock held.
    pub fn clear_marked_locks(&self) -> Result<()> {
        let mark = self.repo.scratch_path(MARK);
        let Ok(since) = mark.metadata().and_then(|about| about.modified()) else {
            return Ok(());
        };
        let names = std::fs::read_to_string(&mark).with_context(|| format!("read '{}'", mark.display()))?;
        for name in names.lines().filter(|name| full_name(name).is_ok()) {
            remove_stale_lock(&self.ref_lock(name), since)?;
        }
        // gix locks the packed refs even to read a ref's old value.
        for lock in PACKED_LOCKS {
            remove_stale_lock(&self.repo.common_dir.join(lock), since)?;
        }
        remove_if_there(&mark)
    }

    /// Removes the locks that a killed git left which changed the stash list since `begun`.
    pub fn clear_stash_locks(&self, begun: SystemTime) -> Result<()> {
        // The clock of a file system may be a little behind.
        let since = begun - CLOCKS_DIFFER;
        let mut locks = PACKED_LOCKS.iter().chain(&["refs/stash.lock", "logs/refs/stash.lock"]);
        locks.try_for_each(|lock| remove_stale_lock(&self.repo.common_dir.join(lock), since))
    }
}

/// The refusal where git has a lock file of its own on `what`.
pub fn locked_error(lock: &Path, what: &str) -> anyhow::Error {
    let lock = lock.display();
    Refusal::new(Code::Locked, format!("'{lock}' exists: git holds {what}"))
        .hint("wait for the git command that is running, then run this again")
        .hint(format!("if none is running, a crashed one left it: remove '{lock}'"))
        .into()
}

/// Removes a ref's lock file that was left behind: waits until it is `HELD_AT_MOST` old and still the same. One
/// that was made before `since` is left alone.
pub fn remove_stale_lock(lock: &Path, since: SystemTime) -> Result<()> {
    let made = |lock: &Path| lock.metadata().and_then(|about| about.modified());
    let Some(first) = made(lock).ok().filter(|made| *made >= since) else {
        return Ok(());
    };
    std::thread::sleep(HELD_AT_MOST.saturating_sub(first.elapsed().unwrap_or_default()));
    if made(lock).is_ok_and(|now| now == first) { remove_if_there(lock) } else { Ok(()) }
}
