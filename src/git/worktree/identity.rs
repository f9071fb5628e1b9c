//! Which file it is, whatever it is called: what was moved is known by this.

use crate::git::repo::platform::{born, nanoseconds};
use crate::git::worktree::Worktree;
use crate::git::worktree::stat::{file_state, mode_of, size_of};
use crate::model::checkpoint::Uncaptured;
use gix::bstr::{BStr, ByteSlice};
use rustix::fs::{CWD, Dev, FileType, Stat, lstat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How the state of a directory begins.
const DIRECTORY: &str = "directory";

/// Whether this is the state of a directory.
pub fn is_directory(state: &str) -> bool {
    state.starts_with(DIRECTORY)
}

/// The size in the state of a file that has something in it.
pub fn size_in(state: &str) -> Option<&str> {
    state.split_once(' ').map(|(size, _)| size).filter(|size| !is_directory(size) && *size != "0")
}

/// Whether nothing else has a state like this by chance: a time to the nanosecond, or a time and a size.
pub fn is_telling(state: &str) -> bool {
    size_in(state).is_some() || !state.ends_with(".000000000")
}

/// A file or directory, as it is known under any name.
#[derive(Clone, Debug)]
pub struct Identity {
    /// What tells it from every other, and its mode.
    pub known: Uncaptured,
    /// When it was made, in nanoseconds since 1970, where the file system says so.
    pub born: Option<u64>,
    /// When anything about it changed last, its name included, by the same clock.
    pub changed: u64,
    /// The device that it is on.
    pub device: Dev,
    /// Whether it is a file that has another name too: to take one of them away loses nothing.
    pub linked: bool,
}

/// What tells a file from every other. Numbers are used again at once, so that one alone proves nothing.
fn name_of(stat: &Stat, born: Option<u64>) -> String {
    match born {
        Some(born) => format!("{} {born}", stat.st_ino),
        None => format!("{} {} {}.{:09}", stat.st_ino, size_of(stat), stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// Which file or directory is somewhere outside the worktree.
pub fn identity_of(path: &Path) -> Option<String> {
    let stat = lstat(path).ok()?;
    Some(name_of(&stat, born((CWD, path.as_os_str()), &stat)))
}

/// How long the path of something in a directory may be that is looked at: the same wherever the directory is.
const FAR: usize = 1024;

/// A fingerprint of all that is at a path outside the worktree, or in it, and of all below: names, kinds, modes, and the sizes and
/// times of what is no directory. A rename changes none of it, nor does a copy. A file's begins with its state. Changes in what cannot
/// be read are not seen, nor what is deeper than anybody goes. `None` where nothing is there, or its path is too long.
pub fn state_of(top: &Path) -> Option<String> {
    let about = lstat(top).ok()?;
    if let Some(state) = file_state(&about) {
        return Some(format!("{state} {:o}", about.st_mode));
    }
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    let mut rest = vec![(top.to_owned(), about)];
    while let Some((path, stat)) = rest.pop() {
        let name = path.strip_prefix(top).unwrap_or(&path).as_os_str();
        hasher.update(name.as_bytes());
        hasher.update(format!("\0{:o}", stat.st_mode).as_bytes());
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            let state = format!(" {} {}.{}", stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
            hasher.update(state.as_bytes());
        } else if name.len() <= FAR {
            let within = match std::fs::read_dir(&path) {
                Err(error) if error.kind() == ErrorKind::InvalidFilename => return None,
                within => within,
            };
            let mut within: Vec<_> = within.into_iter().flatten().flatten().map(|it| it.path()).collect();
            within.sort_unstable();
            for path in within {
                match lstat(&path) {
                    Ok(stat) => rest.push((path, stat)),
                    Err(Errno::NAMETOOLONG) => return None,
                    Err(_) => {}
                }
            }
        }
        hasher.update(b"\n");
    }
    Some(hasher.try_finalize().ok()?.to_string())
}

impl Worktree<'_> {
    /// Whether the file or directory is at a path that is known by this.
    pub fn is_at(&self, path: &BStr, file: &str) -> bool {
        self.identity(path).is_some_and(|found| found.known.file == file)
    }

    /// Which file or directory is at a path; `None` where there is none, or it cannot be looked at.
    pub fn identity(&self, path: &BStr) -> Option<Identity> {
        let (stat, directory) = self.stat(path).ok()??;
        let name = &path[path.rfind_byte(b'/').map_or(0, |slash| slash + 1)..];
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let born = born((directory.as_fd(), OsStr::from_bytes(name)), &stat);
        let file = name_of(&stat, born);
        let state = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Some(format!("{DIRECTORY} {}.{:09}", stat.st_mtime, stat.st_mtime_nsec)),
            _ => file_state(&stat),
        };
        let known = Uncaptured { file, mode: mode_of(&stat), state };
        let changed = nanoseconds(stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or_default());
        Some(Identity { known, born, changed, device: stat.st_dev, linked: !is_directory && stat.st_nlink > 1 })
    }
}
