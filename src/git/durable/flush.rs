//! Waiting for the disk.

use crate::git::durable::Durable;
use crate::git::repo::platform::{begin_writing, file_system, sync_file_system};
use crate::git::repo::threads::in_threads;
use crate::git::worktree::Worktree;
use crate::model::path::parents;
use crate::model::plan::Plan;
use anyhow::{Context, Result};
use gix::bstr::{BStr, ByteSlice};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many files and directories are flushed one by one; with more, the whole file system is.
const SEVERAL: usize = 48;

/// So many of them are open at the same time.
const AT_ONCE: usize = 32;

/// In so many threads they are waited for.
const THREADS: usize = 8;

/// The file system that is in memory.
const TMPFS: u64 = 0x0102_1994;

/// Flushes the file systems that these are on; says whether the system can.
pub fn sync_whole(places: &[&Path]) -> Result<bool> {
    let mut done = BTreeSet::new();
    for place in places {
        let file = File::open(place).with_context(|| format!("open '{}'", place.display()))?;
        if done.insert(file.metadata()?.dev()) {
            match sync_file_system(&file) {
                None => return Ok(false),
                Some(synced) => synced.with_context(|| format!("flush the file system of '{}'", place.display()))?,
            }
        }
    }
    Ok(true)
}

impl Durable<'_> {
    /// Waits until all that a plan has written, made or removed is on the disk, and the index.
    pub fn flush(&self, plan: &Plan) -> Result<()> {
        let is_in_refs = plan.stash.is_some() || plan.branches.iter().any(|branch| branch.to.is_none());
        let all = plan.files.len() + plan.directories.len();
        // What nobody may read cannot be opened either.
        let is_closed = plan.files.iter().any(|file| file.to.is_some_and(|to| to.mode & 0o400 == 0));
        let whole = all > SEVERAL || is_in_refs || is_closed;
        if whole && self.flush_all()? {
            return Ok(());
        }
        match self.flush_each(plan) {
            // A directory above may be closed, too.
            Err(error) if is_denied(&error) && !whole && self.flush_all()? => Ok(()),
            flushed => flushed,
        }
    }

    fn flush_all(&self) -> Result<bool> {
        sync_whole(&[self.repo.top(), &self.repo.common_dir, &self.repo.scratch_path("")])
    }

    fn flush_each(&self, plan: &Plan) -> Result<()> {
        let worktree = Worktree::new(self.repo);
        let mut open = Vec::new();
        let mut add = |file: File, what: String| {
            open.push((file, what));
            if open.len() < AT_ONCE { Ok(()) } else { sync_together(&std::mem::take(&mut open)) }
        };
        for file in plan.files.iter().filter(|file| file.to.is_some()) {
            if let Some(file) = worktree.open_file(file.path.as_bstr())? {
                add(file, file_name(plan))?;
            }
        }
        for directory in directories(plan) {
            if let Some(directory) = worktree.open_directory(directory)? {
                add(File::from(directory), file_name(plan))?;
            }
        }
        // With the directories above, which may be new: of a linked worktree they are in the directory of all.
        let stores = plan.aside.iter().map(|aside| self.repo.aside_path(&aside.store));
        let aside: BTreeSet<_> = stores.flat_map(|store| self.repo.above(&store)).collect();
        let operation = plan.moved_operation().into_iter().flat_map(|change| change.to.files.keys());
        let operation: BTreeSet<_> = operation
            .filter_map(|path| self.repo.operation_path(path.as_bstr()).parent().map(Path::to_owned))
            .collect();
        let places = [self.repo.git_dir.join("index"), self.repo.git_dir.clone(), self.repo.scratch_path("")];
        for place in aside.iter().chain(&operation).chain(&places) {
            if let Ok(file) = File::open(place) {
                add(file, place.display().to_string())?;
            }
        }
        sync_together(&open)
    }
}

/// Flushes files at the same time, where that takes time at all: the disk has what it is to write for several of them together.
fn sync_together(files: &[(File, String)]) -> Result<()> {
    let waits = files.first().is_some_and(|(file, _)| file_system(file) != Some(TMPFS));
    let threads = if waits { files.len().min(THREADS) } else { 1 };
    for (file, _) in files.iter().filter(|_| waits) {
        begin_writing(file);
    }
    let next = AtomicUsize::new(0);
    let work = || loop {
        match files.get(next.fetch_add(1, Ordering::Relaxed)) {
            Some((file, what)) => sync(file, what)?,
            None => return Ok(()),
        }
    };
    in_threads(threads, work).into_iter().collect()
}

fn is_denied(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref() == Some(&Errno::ACCESS)
            || cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::PermissionDenied)
    })
}

/// The directories in which a plan changes names, and those of which it changes the mode.
fn directories(plan: &Plan) -> BTreeSet<&BStr> {
    let files = plan.files.iter().map(|file| file.path.as_bstr());
    let aside = plan.aside.iter().map(|aside| aside.path.as_bstr());
    let own = plan.directories.iter().map(|directory| directory.path.as_bstr());
    let parent = |path| parents(path).next().unwrap_or_else(|| BStr::new(""));
    files.chain(aside).chain(own.clone()).map(parent).chain(own).collect()
}

fn file_name(plan: &Plan) -> String {
    format!("what {} wrote", plan.op.word())
}

fn sync(file: &File, what: &str) -> Result<()> {
    match rustix::fs::fsync(file) {
        // There is nothing to wait for.
        Ok(()) | Err(Errno::INVAL | Errno::ROFS | Errno::NOTSUP) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("flush {what}")),
    }
}
