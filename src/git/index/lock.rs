//! `index.lock`: the index is written on a copy while it is held, and the copy is renamed over the index.

use crate::git::index::Index;
use crate::git::refs::lockfile::locked_error;
use crate::git::repo::Repo;
use crate::git::repo::process::{Git, Waiting};
use anyhow::{Context, Result};
use gix::bstr::BString;
use gix::index::File as IndexFile;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often a lock of git's is looked at.
const PAUSE: Duration = Duration::from_millis(25);

/// The worktree of stand-ins, in the scratch directory.
pub const STAND_IN: &str = "stand-in";

/// How the names of the index's copies begin. They are beside it: a split index finds its other
/// half there.
const COPY: &str = "index.oxundo-";

/// git's index, locked, with a copy to work on. Dropping it leaves the index as it was.
#[derive(Debug)]
pub struct IndexLock<'repo> {
    pub repo: &'repo Repo,
    index: PathBuf,
    lock: PathBuf,
    mark: PathBuf,
    copy: PathBuf,
    pub stager: RefCell<Option<Stager>>,
}

/// A git that waits for the paths to stage.
#[derive(Debug)]
pub struct Stager {
    pub git: Waiting,
    /// The paths whose entries it makes without a look at the worktree.
    pub given: BTreeSet<BString>,
}

impl Drop for IndexLock<'_> {
    fn drop(&mut self) {
        self.stager.take();
        // Nothing can be done about a failure here; the next command clears them.
        let _ = std::fs::remove_file(&self.copy);
        let _ = std::fs::remove_file(lock_path(&self.copy));
        let _ = std::fs::remove_dir_all(self.repo.scratch_path(STAND_IN));
        // The mark tells the next command that the lock is ours.
        let _ = release(&self.lock).and_then(|()| std::fs::remove_file(&self.mark));
    }
}

impl<'r> Index<'r> {
    /// Takes `index.lock` and makes a copy of the index to work on.
    pub fn lock_index(&self, wait: Duration) -> Result<IndexLock<'r>> {
        let index = self.index_path();
        let lock = lock_path(&index);
        let scratch = self.repo.scratch()?;
        // A git that outlives its killed oxundo works on that one's copy, never on another's.
        let (mark, copy) =
            (scratch.join("index.mark"), self.repo.git_dir.join(format!("{COPY}{}", std::process::id())));
        std::fs::write(&mark, OWN).with_context(|| format!("make '{}'", mark.display()))?;
        let started = Instant::now();
        while let Err(error) = mark_as_lock(&mark, &lock) {
            if error.kind() != std::io::ErrorKind::AlreadyExists {
                return Err(error).with_context(|| format!("make '{}'", lock.display()));
            }
            wait_for_lock(&lock, started, wait)?;
        }
        let held = IndexLock { repo: self.repo, index, lock, mark, copy, stager: RefCell::default() };
        held.start_copy()?;
        Ok(held)
    }

    /// Whether something holds the index now.
    pub fn index_is_locked(&self) -> bool {
        lock_path(&self.index_path()).symlink_metadata().is_ok()
    }

    /// Waits a moment for the index to be free.
    pub fn check_index_is_free(&self, wait: Duration) -> Result<()> {
        let lock = lock_path(&self.index_path());
        let started = Instant::now();
        while self.index_is_locked() {
            wait_for_lock(&lock, started, wait)?;
        }
        Ok(())
    }

    /// Removes an `index.lock` that an oxundo which was killed left behind. To be called with
    /// the worktree's lock held.
    pub fn clear_own_index_lock(&self) -> Result<()> {
        let mark = self.repo.scratch()?.join("index.mark");
        let lock = lock_path(&self.index_path());
        if !mark.exists() {
            return Ok(());
        }
        // Whoever made it is gone: this process holds the worktree's lock.
        if is_own(&lock) {
            release(&lock).with_context(|| format!("remove '{}'", lock.display()))?;
        }
        // The copies, what a git that was killed with its oxundo left beside one, and the stand-ins.
        for entry in std::fs::read_dir(&self.repo.git_dir)?.flatten() {
            if entry.file_name().as_bytes().starts_with(COPY.as_bytes()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        let _ = std::fs::remove_dir_all(self.repo.scratch_path(STAND_IN));
        // Last: while it is there, the next command knows that there is something to clear.
        std::fs::remove_file(&mark).with_context(|| format!("remove '{}'", mark.display()))
    }
}

impl IndexLock<'_> {
    fn start_copy(&self) -> Result<()> {
        let _ = std::fs::remove_file(&self.copy);
        let _ = std::fs::remove_file(lock_path(&self.copy));
        // git does not write into an index, it puts another in its place: for a copy, a second name will do.
        match self.index.symlink_metadata() {
            Ok(about) if about.is_file() && std::fs::hard_link(&self.index, &self.copy).is_ok() => Ok(()),
            Ok(_) if self.index.exists() => copy_index(&self.index, &self.copy),
            _ => Ok(()),
        }
    }

    /// The copy as it is now.
    pub fn read(&self) -> Result<IndexFile> {
        Index::new(self.repo).decode_index(&self.copy)
    }

    /// Puts the copy in the index's place.
    pub fn commit(self) -> Result<()> {
        self.stager.take();
        if self.copy.exists() {
            std::fs::rename(&self.copy, &self.index).context("replace the index")?;
        }
        Ok(())
    }

    pub fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> Git {
        // One that waits has the copy locked.
        self.stager.take();
        self.repo.git(args).index(&self.copy)
    }

    /// The copy, for a hook of the user's to look at.
    pub fn path(&self) -> &Path {
        &self.copy
    }
}

/// Lets a moment pass, unless `wait` is over since it started.
fn wait_for_lock(lock: &Path, started: Instant, wait: Duration) -> Result<()> {
    if started.elapsed() >= wait {
        return Err(locked_error(lock, "the index"));
    }
    std::thread::sleep(PAUSE);
    Ok(())
}

fn lock_path(index: &Path) -> PathBuf {
    let mut name = index.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// What an `index.lock` of oxundo's holds, by which one that a kill left behind is told from git's.
const OWN: &[u8] = b"oxundo's\n";

/// Makes the lock, as whole as the mark is.
fn mark_as_lock(mark: &Path, lock: &Path) -> std::io::Result<()> {
    // A second name of the mark; a file system that has none says so in many ways. There it is a directory: that is
    // made whole in one call too, stands in the way of all who make the lock as git does, and is never git's.
    match std::fs::hard_link(mark, lock) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => std::fs::create_dir(lock),
        outcome => outcome,
    }
}

fn release(lock: &Path) -> std::io::Result<()> {
    if lock.is_dir() { std::fs::remove_dir(lock) } else { std::fs::remove_file(lock) }
}

/// Whether oxundo made this lock.
fn is_own(lock: &Path) -> bool {
    // git's is of the index's size.
    let fits = |about: &Metadata| about.is_file() && about.len() == OWN.len() as u64;
    lock.symlink_metadata()
        .is_ok_and(|about| about.is_dir() || fits(&about) && std::fs::read(lock).is_ok_and(|held| held == OWN))
}

/// Copies an index with its time: git takes that to tell which entries may have changed unseen.
fn copy_index(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).context("copy the index")?;
    let modified = std::fs::metadata(from).and_then(|about| about.modified());
    let copy = File::options().write(true).open(to);
    modified.and_then(|modified| copy?.set_modified(modified)).context("copy the index's time")?;
    Ok(())
}
