//! Waiting for the disk.

use crate::git::durable::Durable;
use crate::git::repo::platform::sync_file_system;
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

/// So many files and directories are flushed one by one; with more, the whole file system is.
const SEVERAL: usize = 48;

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
        for file in plan.files.iter().filter(|file| file.to.is_some()) {
            if let Some(file) = worktree.open_file(file.path.as_bstr())? {
                sync(&file, || file_name(plan))?;
            }
        }
        for directory in directories(plan) {
            if let Some(directory) = worktree.open_directory(directory)? {
                sync(&File::from(directory), || file_name(plan))?;
            }
        }
        let aside =
            plan.aside.iter().filter_map(|aside| Some(self.repo.scratch_path(&aside.store).parent()?.to_owned()));
        let aside: BTreeSet<_> = aside.flat_map(|store| [store.clone(), self.repo.scratch_path("aside")]).collect();
        let places = [self.repo.git_dir.join("index"), self.repo.git_dir.clone(), self.repo.scratch_path("")];
        for place in aside.iter().chain(&places) {
            if let Ok(file) = File::open(place) {
                sync(&file, || place.display().to_string())?;
            }
        }
        Ok(())
    }
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

fn sync(file: &File, what: impl Fn() -> String) -> Result<()> {
    match rustix::fs::fsync(file) {
        // There is nothing to wait for.
        Ok(()) | Err(Errno::INVAL | Errno::ROFS | Errno::NOTSUP) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("flush {}", what())),
    }
}
