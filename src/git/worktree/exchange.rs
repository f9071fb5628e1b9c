//! Files that come into the worktree and go out of it. Another program may save at the same instant: so nothing is ever
//! replaced or deleted that has not been looked at after it was out of everybody's reach. What comes in is made beside its
//! place, and changes places with what is there; what goes out is renamed, first of all.

use crate::git::repo::platform::{At, exchange, rename_away, rename_to_nothing};
use crate::git::worktree::look::{Seen, look};
use crate::git::worktree::{Place, Worktree};
use anyhow::{Context, Result, bail};
use gix::bstr::BStr;
use rustix::fs::{AtFlags, CWD, statat, unlinkat};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where something is that has come out of the worktree, or is to go into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spot {
    /// At this path, outside of the worktree.
    Apart(PathBuf),
    /// Under this name, in the directory of its path in the worktree.
    Beside(OsString),
}

impl Spot {
    /// Where it is, for a path in this directory.
    fn at<'d>(&'d self, directory: &'d OwnedFd) -> At<'d> {
        match self {
            Self::Apart(path) => (CWD, path.as_os_str()),
            Self::Beside(name) => (directory.as_fd(), name),
        }
    }
}

impl Worktree<'_> {
    fn directory_of<'p>(&self, path: &'p BStr) -> Result<(OwnedFd, &'p OsStr)> {
        match self.place(path)? {
            Place::In(directory, name) => Ok((directory, name)),
            Place::Missing | Place::Blocked(_) => bail!("'{path}' has no directory to be in"),
        }
    }

    /// Puts something at a path where nothing is; says whether nothing was.
    pub fn put(&self, path: &BStr, from: &Spot) -> Result<bool> {
        let (directory, name) = self.directory_of(path)?;
        let (from_in, from) = from.at(&directory);
        match rename_to_nothing(from_in, from, &directory, name) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("write '{path}'")),
        }
    }

    /// Lets something change places with what is at a path, which comes out: to the first of these spots that is free and
    /// on its file system. Says to which; `None` where nothing is at the path, or something came there in the same instant.
    pub fn exchange(&self, path: &BStr, ready: &Spot, out: &[Spot]) -> Result<Option<Spot>> {
        let (directory, name) = self.directory_of(path)?;
        let name = self.spelled(&directory, name)?;
        let to = |spot: &Spot| exchange(ready.at(&directory), (directory.as_fd(), &name), spot.at(&directory));
        first_of(out, to).with_context(|| format!("write '{path}'"))
    }

    /// A name as it is spelled on disk, where it may be in other letters: what takes its place has the same.
    fn spelled<'n>(&self, directory: &OwnedFd, name: &'n OsStr) -> Result<Cow<'n, OsStr>> {
        let lower = |name: &OsStr| name.to_string_lossy().to_lowercase();
        let mut other = None;
        if self.ignores_case() {
            for entry in rustix::fs::Dir::read_from(directory)? {
                let entry = entry?;
                match OsStr::from_bytes(entry.file_name().to_bytes()) {
                    same if same == name => return Ok(name.into()),
                    alike if lower(alike) == lower(name) => other = Some(alike.to_owned()),
                    _ => {}
                }
            }
        }
        Ok(other.map_or(name.into(), Cow::Owned))
    }

    /// Takes what is at a path out of the worktree, to the first of these spots that is free and on its file system.
    /// `None` where nothing is there.
    pub fn take_out(&self, path: &BStr, out: &[Spot]) -> Result<Option<Spot>> {
        let Place::In(directory, name) = self.place(path)? else {
            return Ok(None);
        };
        let to = |spot: &Spot| rename_away((directory.as_fd(), name), spot.at(&directory));
        first_of(out, to).with_context(|| format!("delete '{path}'"))
    }

    /// Looks at a spot, for a path.
    pub fn look_at(&self, path: &BStr, spot: &Spot, hash: gix::hash::Kind) -> Result<Option<Seen>> {
        let seen = self.with(path, spot, |at| look(at, hash))?;
        seen.unwrap_or(Ok(None)).with_context(|| format!("read what was '{path}'"))
    }

    /// The stat data of a spot, for a path.
    pub fn stat_at(&self, path: &BStr, spot: &Spot) -> Result<Option<rustix::fs::Stat>> {
        let stat = self.with(path, spot, |(directory, name)| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW));
        Ok(stat?.and_then(rustix::io::Result::ok))
    }

    /// Deletes a file or link that is at a spot, for a path; that it is gone already is no failure.
    pub fn delete_at(&self, path: &BStr, spot: &Spot) -> Result<()> {
        match self.with(path, spot, |(directory, name)| unlinkat(directory, name, AtFlags::empty()))? {
            None | Some(Ok(()) | Err(Errno::NOENT)) => Ok(()),
            Some(Err(error)) => Err(error).with_context(|| format!("delete what was '{path}'")),
        }
    }

    /// Moves what is at a spot, for a path, to a place outside of the worktree; says whether that is on its file system.
    pub fn carry_away(&self, path: &BStr, spot: &Spot, to: &Path) -> Result<bool> {
        match self.with(path, spot, |at| rename_away(at, (CWD, to.as_os_str())))? {
            Some(Err(Errno::XDEV)) => Ok(false),
            Some(Err(error)) => Err(error).with_context(|| format!("keep what was saved in '{path}'")),
            None | Some(Ok(())) => Ok(true),
        }
    }

    /// Does something where a spot is, for a path; nothing where its directory is gone.
    fn with<T>(&self, path: &BStr, spot: &Spot, act: impl FnOnce(At<'_>) -> T) -> Result<Option<T>> {
        match spot {
            Spot::Apart(path) => Ok(Some(act((CWD, path.as_os_str())))),
            Spot::Beside(name) => match self.place(path)? {
                Place::In(directory, _) => Ok(Some(act((directory.as_fd(), name)))),
                Place::Missing | Place::Blocked(_) => Ok(None),
            },
        }
    }
}

/// Moves something to the first of these spots that is free and on its file system.
fn first_of(spots: &[Spot], to: impl Fn(&Spot) -> rustix::io::Result<()>) -> rustix::io::Result<Option<Spot>> {
    let mut failed = Errno::XDEV;
    for spot in spots {
        match to(spot) {
            Ok(()) => return Ok(Some(spot.clone())),
            Err(Errno::NOENT) => return Ok(None),
            Err(error @ (Errno::XDEV | Errno::EXIST)) => failed = error,
            Err(error) => return Err(error),
        }
    }
    Err(failed)
}
