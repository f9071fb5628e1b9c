//! Which file it is, whatever it is called: what was moved is known by this.

use crate::git::repo::platform::born;
use crate::git::worktree::Worktree;
use crate::git::worktree::stat::{mode_of, size_of};
use crate::model::checkpoint::Uncaptured;
use gix::bstr::{BStr, ByteSlice};
use rustix::fs::{Dev, FileType};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

/// A file or directory, as it is known under any name.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What tells it from every other, and its mode.
    pub known: Uncaptured,
    /// When it was made, in nanoseconds since 1970, where the file system says so.
    pub born: Option<u64>,
    /// The device that it is on.
    pub device: Dev,
    /// Whether it is a file that has another name too: to take one of them away loses nothing.
    pub linked: bool,
}

impl Worktree<'_> {
    /// Which file or directory is at a path; `None` where there is none, or it cannot be looked at.
    pub fn identity(&self, path: &BStr) -> Option<Identity> {
        let (stat, directory) = self.stat(path).ok()??;
        let name = &path[path.rfind_byte(b'/').map_or(0, |slash| slash + 1)..];
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let born = born((directory.as_fd(), OsStr::from_bytes(name)), &stat);
        // Numbers are used again at once, so that one alone proves nothing.
        let file = match born {
            Some(born) => format!("{} {born}", stat.st_ino),
            None => format!("{} {} {}.{:09}", stat.st_ino, size_of(&stat), stat.st_mtime, stat.st_mtime_nsec),
        };
        let known = Uncaptured { file, mode: mode_of(&stat) };
        Some(Identity { known, born, device: stat.st_dev, linked: !is_directory && stat.st_nlink > 1 })
    }
}
