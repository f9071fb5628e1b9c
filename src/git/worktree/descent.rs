//! Going down into directories and up again, name by name: each is opened from the one above it, so that the way down is as
//! long as it is deep, and not as the sum of all paths. Only the last few stay open.

use crate::git::worktree::{DIRECTORY, Worktree};
use anyhow::{Context, Result};
use gix::bstr::{BStr, BString};
use rustix::fs::{Mode, openat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// So many directories are open at most.
const OPEN: usize = 64;

/// A directory, and those on the way down to it.
pub struct Descent<'t> {
    worktree: Worktree<'t>,
    path: BString,
    /// Where the name of the one above ends in the path, and the directory, unless it was closed.
    levels: Vec<(usize, Option<OwnedFd>)>,
}

impl<'t> Descent<'t> {
    /// Begins at a directory; `None` when there is none at this path.
    pub fn begin(worktree: Worktree<'t>, path: &BStr) -> Result<Option<Self>> {
        let Some(fd) = worktree.open_directory(path)? else { return Ok(None) };
        Ok(Some(Self { worktree, path: path.to_owned(), levels: vec![(0, Some(fd))] }))
    }

    /// The path of where it is.
    pub fn path(&self) -> &BString {
        &self.path
    }

    /// The path of something here.
    pub fn inside(&self, name: &[u8]) -> BString {
        let separator: &[u8] = if self.path.is_empty() { b"" } else { b"/" };
        [self.path.as_slice(), separator, name].concat().into()
    }

    /// The directory where it is; `None` when it was closed meanwhile, and is not there any more.
    pub fn directory(&mut self) -> Result<Option<&OwnedFd>> {
        let Some((_, fd)) = self.levels.last_mut() else { return Ok(None) };
        if fd.is_none() {
            *fd = self.worktree.open_directory(self.path.as_ref())?;
        }
        Ok(fd.as_ref())
    }

    /// Goes into a directory that is here; says whether it is one.
    pub fn enter(&mut self, name: &[u8]) -> Result<bool> {
        let path = self.inside(name);
        let Some(directory) = self.directory()? else { return Ok(false) };
        let fd = match openat(directory, name, DIRECTORY, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(false),
            Err(error) => return Err(error).with_context(|| format!("read directory '{path}'")),
        };
        self.levels.push((self.path.len(), Some(fd)));
        self.path = path;
        if let Some((_, above)) = self.levels.len().checked_sub(OPEN + 1).map(|at| &mut self.levels[at]) {
            *above = None;
        }
        Ok(true)
    }

    /// Goes up again; says whether that is still where it began, or below.
    pub fn leave(&mut self) -> bool {
        let Some((end, _)) = self.levels.pop() else { return false };
        self.path.truncate(end);
        !self.levels.is_empty()
    }
}
