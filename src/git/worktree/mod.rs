//! The worktree's files. Every path is walked from the top, one component at a
//! time, never through a symbolic link: what looks like a parent and is a link
//! leads nowhere. Files are written beside their place, with their final mode,
//! and renamed.

pub mod filesystem;
pub mod names;
pub mod stat;
pub mod write;

use crate::error::{Code, Refusal};
use crate::git::objects::blob::{blob_id, file_id};
use crate::git::repo::platform::open_beneath;
use crate::git::repo::{Repo, Top};
use crate::git::worktree::stat::{kind_of, mode_of};
use crate::model::bytes::quoted;
use crate::model::checkpoint::{FileState, Kind};
use anyhow::{Context, Result};
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A worktree, by its open top.
#[derive(Clone, Copy, Debug)]
pub struct Worktree<'t> {
    top: &'t Top,
}

/// Where a path leads.
enum Place<'a> {
    /// Into this directory, under this name.
    In(OwnedFd, &'a OsStr),
    /// Nowhere: this parent does not exist.
    Missing,
    /// Nowhere: this parent is not a directory.
    Blocked(&'a BStr),
}

/// What stands at a path.
pub enum Lookup {
    /// Nothing.
    Absent,
    /// Nothing, because this parent is not a directory.
    Behind(BString),
    /// Something, of which this tells.
    There(Box<rustix::fs::Stat>),
}

impl<'t> Worktree<'t> {
    /// Of this repository.
    pub fn new(repo: &'t Repo) -> Self {
        Self { top: repo.opened() }
    }

    /// The one whose top this is.
    pub fn at(top: &'t Top) -> Self {
        Self { top }
    }

    /// Its directory.
    pub fn path(&self) -> &'t Path {
        &self.top.path
    }

    /// Opens a directory below the top; `None` when there is none at this path.
    pub fn open_directory(&self, path: &BStr) -> Result<Option<OwnedFd>> {
        if path.is_empty() {
            return Ok(Some(openat(&self.top.fd, c".", DIRECTORY, Mode::empty())?));
        }
        let at_once = if path.split(|byte| *byte == b'/').any(is_unsafe) {
            None
        } else {
            open_beneath(&self.top.fd, path, DIRECTORY)
        };
        let opened = match at_once {
            Some(opened) => opened,
            None => match self.place(path)? {
                Place::In(parent, name) => openat(&parent, name, DIRECTORY, Mode::empty()),
                Place::Missing | Place::Blocked(_) => return Ok(None),
            },
        };
        match opened {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("read directory '{path}'")),
        }
    }

    fn place<'a>(&self, path: &'a BStr) -> Result<Place<'a>> {
        if path.is_empty() || path.split(|byte| *byte == b'/').any(is_unsafe) {
            return Err(corrupt_path(path));
        }
        let mut directory = openat(&self.top.fd, c".", DIRECTORY, Mode::empty())?;
        let mut start = 0;
        while let Some(slash) = path[start..].find_byte(b'/') {
            let name = OsStr::from_bytes(&path[start..start + slash]);
            directory = match openat(&directory, name, DIRECTORY, Mode::empty()) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => return Ok(Place::Missing),
                Err(Errno::NOTDIR | Errno::LOOP) => return Ok(Place::Blocked(path[..start + slash].as_bstr())),
                Err(error) => {
                    return Err(error).with_context(|| format!("open directory '{}'", path[..start + slash].as_bstr()));
                }
            };
            start += slash + 1;
        }
        Ok(Place::In(directory, OsStr::from_bytes(&path[start..])))
    }

    /// Whether `core.ignoreCase` is set.
    pub fn ignores_case(&self) -> bool {
        self.top.ignores_case
    }

    /// Whether what a path leads to has the very names that are in it, and not only in other letters.
    fn is_spelled_so(&self, path: &BStr) -> Result<bool> {
        let mut start = 0;
        for end in path.find_iter(b"/").chain([path.len()]) {
            let Some(fd) = self.open_directory(path[..start].strip_suffix(b"/").unwrap_or_default().as_bstr())? else {
                return Ok(false);
            };
            let name = &path[start..end];
            if !rustix::fs::Dir::new(fd)?.any(|entry| entry.is_ok_and(|entry| entry.file_name().to_bytes() == name)) {
                return Ok(false);
            }
            start = end + 1;
        }
        Ok(true)
    }

    /// What stands at a path, with just this name.
    pub fn find(&self, path: &BStr) -> Result<Lookup> {
        match self.place(path)? {
            Place::Missing => Ok(Lookup::Absent),
            Place::Blocked(parent) => Ok(Lookup::Behind(parent.to_owned())),
            Place::In(directory, name) => match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) if self.top.ignores_case && !self.is_spelled_so(path)? => Ok(Lookup::Absent),
                Ok(stat) => Ok(Lookup::There(Box::new(stat))),
                Err(Errno::NOENT) => Ok(Lookup::Absent),
                Err(error) => Err(error).with_context(|| format!("look at '{path}'")),
            },
        }
    }

    /// The stat of a path, and the directory it is in.
    pub fn stat(&self, path: &BStr) -> Result<Option<(rustix::fs::Stat, OwnedFd)>> {
        let Place::In(directory, name) = self.place(path)? else {
            return Ok(None);
        };
        match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some((stat, directory))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("look at '{path}'")),
        }
    }

    /// Whether a parent of this path is there and is no directory.
    pub fn is_behind_a_file(&self, path: &BStr) -> bool {
        matches!(self.place(path), Ok(Place::Blocked(_)))
    }

    /// Whether a file or link is there.
    pub fn has_file(&self, path: &BStr) -> bool {
        matches!(self.stat(path), Ok(Some((stat, _))) if kind_of(&stat).is_some())
    }

    /// The bytes of a regular file that is no link, where it can be read.
    pub fn read_plain_file(&self, path: &BStr) -> Option<Vec<u8>> {
        self.read(path, Kind::File).ok().flatten()
    }

    /// The raw content of a file, or the target of a link. `None` when it is gone or another kind.
    pub fn read(&self, path: &BStr, kind: Kind) -> Result<Option<Vec<u8>>> {
        let Place::In(directory, name) = self.place(path)? else {
            return Ok(None);
        };
        if kind == Kind::Symlink {
            return match rustix::fs::readlinkat(&directory, name, Vec::new()) {
                Ok(target) => Ok(Some(target.into_bytes())),
                Err(Errno::NOENT | Errno::INVAL) => Ok(None),
                Err(error) => Err(error).with_context(|| format!("read link '{path}'")),
            };
        }
        let Some(mut file) = self.open_file(path)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).with_context(|| format!("read '{path}'"))?;
        Ok(Some(bytes))
    }

    /// Opens a regular file that is no link. `None` when it is gone or another kind.
    pub fn open_file(&self, path: &BStr) -> Result<Option<File>> {
        let Place::In(directory, name) = self.place(path)? else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&directory, name, flags, Mode::empty()) {
            Ok(fd) => File::from(fd),
            Err(Errno::NOENT | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("read '{path}'")),
        };
        Ok(file.metadata()?.is_file().then_some(file))
    }

    /// The state of the file at a path, its content hashed now. `None` where no file or link is.
    pub fn state(&self, path: &BStr, hash: gix::hash::Kind) -> Result<Option<FileState>> {
        let Some((stat, _)) = self.stat(path)? else {
            return Ok(None);
        };
        let Some(kind) = kind_of(&stat) else {
            return Ok(None);
        };
        let id = if kind == Kind::Symlink {
            self.read(path, kind)?.map(|target| blob_id(&target, hash)).transpose()?
        } else {
            self.open_file(path)?.map(|file| file_id(&file, hash)).transpose()?
        };
        let mode = if kind == Kind::Symlink { 0 } else { mode_of(&stat) };
        Ok(id.map(|id| FileState { kind, id, mode }))
    }

    /// Every file, and every empty directory with a slash behind, below a directory.
    pub fn list_below(&self, path: &BStr) -> Result<Vec<BString>> {
        let mut all = Vec::new();
        let mut directories = vec![path.to_owned()];
        while let Some(directory) = directories.pop() {
            let Some(fd) = self.open_directory(directory.as_bstr())? else {
                continue;
            };
            let mut empty = true;
            for entry in rustix::fs::Dir::new(fd)? {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if name == b"." || name == b".." {
                    continue;
                }
                empty = false;
                let inner = BString::from([directory.as_slice(), b"/", name].concat());
                match self.stat(inner.as_bstr())? {
                    Some((stat, _)) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                        directories.push(inner);
                    }
                    _ => all.push(inner),
                }
            }
            if empty {
                all.push([directory.as_slice(), b"/"].concat().into());
            }
        }
        Ok(all)
    }
}

/// The refusal of a record that names what is not oxundo's to touch.
pub fn corrupt_path(name: &BStr) -> anyhow::Error {
    let path = quoted(name);
    Refusal::new(Code::Corrupt, format!("oxundo's records name '{path}', which no turn can have changed"))
        .hint("run 'oxundo doctor': it says how to go on")
        .paths([name.to_owned()])
        .into()
}

/// A component that would lead out of the worktree, or into a git directory.
fn is_unsafe(component: &[u8]) -> bool {
    matches!(component, b"" | b"." | b"..") || component.eq_ignore_ascii_case(b".git") || component.contains(&0)
}

/// Whether something could not be looked at for want of permission.
pub fn is_denied(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Errno>() == Some(&Errno::ACCESS)
}
