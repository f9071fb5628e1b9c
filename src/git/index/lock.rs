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

/// The directory of stand-in files that `git add -N` is shown as its worktree, in the scratch directory.
pub const STAND_IN: &str = "stand-in";

/// How the names of the index's copies begin. They are in the index's own directory, where a split index finds
/// its shared half.
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

/// A started git command that waits on stdin for the paths to stage.
#[derive(Debug)]
pub struct Stager {
    pub git: Waiting,
    /// The paths whose entries it sets without looking at the worktree.
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
        // Each process has a copy of its own: a git that outlives its killed oxundo never writes to another's.
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
        // The process that made it is gone: this one holds the worktree's lock.
        if is_own(&lock) {
            release(&lock).with_context(|| format!("remove '{}'", lock.display()))?;
        }
        // The copies, the lock files that a killed git left beside them, and the stand-ins.
        for entry in std::fs::read_dir(&self.repo.git_dir)?.flatten() {
            if entry.file_name().as_bytes().starts_with(COPY.as_bytes()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        let _ = std::fs::remove_dir_all(self.repo.scratch_path(STAND_IN));
        // Last: while it is there, the next command knows that there is something to clean up.
        std::fs::remove_file(&mark).with_context(|| format!("remove '{}'", mark.display()))
    }
}

impl IndexLock<'_> {
    fn start_copy(&self) -> Result<()> {
        let _ = std::fs::remove_file(&self.copy);
        let _ = std::fs::remove_file(lock_path(&self.copy));
        // git never writes into an index, it replaces the file: a hard link serves as a copy.
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
        // A waiting stager holds the lock on the copy.
        self.stager.take();
        self.repo.git(args).index(&self.copy)
    }

    /// The copy, for a hook of the user's to look at.
    pub fn path(&self) -> &Path {
        &self.copy
    }
}

/// Sleeps for a moment; an error once `wait` is over.
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

/// The text in an `index.lock` of oxundo's: it shows that a lock left behind is not git's.
const OWN: &[u8] = b"oxundo's\n";

/// Makes the lock in one step, complete from the start.
fn mark_as_lock(mark: &Path, lock: &Path) -> std::io::Result<()> {
    // A hard link to the mark. File systems without hard links report that in many ways. There the lock is a
    // directory: it too is made in one call, keeps git from making its lock, and cannot be git's.
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
    // git's lock is empty, or as large as the index.
    let fits = |about: &Metadata| about.is_file() && about.len() == OWN.len() as u64;
    lock.symlink_metadata()
        .is_ok_and(|about| about.is_dir() || fits(&about) && std::fs::read(lock).is_ok_and(|held| held == OWN))
}

/// Copies an index with its modification time, by which git tells which entries it must compare by content.
fn copy_index(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).context("copy the index")?;
    let modified = std::fs::metadata(from).and_then(|about| about.modified());
    let copy = File::options().write(true).open(to);
    modified.and_then(|modified| copy?.set_modified(modified)).context("copy the index's time")?;
    Ok(())
}
