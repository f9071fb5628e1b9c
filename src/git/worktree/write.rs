//! Writing into the worktree: beside its place first, with the final mode, then renamed.

use crate::git::repo::platform::rename_to_nothing;
use crate::git::repo::scratch::{TEMPORARY, temporary_name};
use crate::git::worktree::stat::permissions;
use crate::git::worktree::{DIRECTORY, Place, Worktree};
use crate::model::checkpoint::{FileState, Kind};
use anyhow::{Context, Result, bail};
use gix::bstr::BStr;
use rustix::fs::{AtFlags, Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Worktree<'_> {
    /// Puts a file or link at a path, in one step; `fill` writes its content. With `replace`,
    /// over the file that is there; without, only where nothing is.
    pub fn write(
        &self,
        path: &BStr,
        state: &FileState,
        replace: bool,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let Place::In(directory, name) = self.place(path)? else {
            bail!("'{path}' has no directory to be in");
        };
        let temporary = temporary_name();
        let temporary = OsStr::new(&temporary);
        let made = make_file(&directory, temporary, state, fill).and_then(|()| {
            if replace {
                rustix::fs::renameat(&directory, temporary, &directory, name)?;
            } else {
                rename_to_nothing(&directory, temporary, &directory, name)?;
            }
            Ok(())
        });
        if made.is_err() {
            // The error to report is the one above.
            let _ = rustix::fs::unlinkat(&directory, temporary, AtFlags::empty());
        }
        made.with_context(|| format!("write '{path}'"))
    }

    /// Sets the permission bits of a file or directory.
    pub fn set_mode(&self, path: &BStr, mode: u32) -> Result<()> {
        let Place::In(directory, name) = self.place(path)? else {
            bail!("'{path}' is not there");
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&directory, name, flags, Mode::empty()) {
            Ok(fd) => rustix::fs::fchmod(&fd, permissions(mode)),
            // A file that even its owner may not read.
            Err(Errno::ACCESS) => rustix::fs::chmodat(&directory, name, permissions(mode), AtFlags::empty()),
            Err(error) => Err(error),
        }
        .with_context(|| format!("set the mode of '{path}'"))
    }

    /// Deletes a file or link.
    pub fn delete(&self, path: &BStr) -> Result<()> {
        let Place::In(directory, name) = self.place(path)? else {
            return Ok(());
        };
        match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("delete '{path}'")),
        }
    }

    /// Makes a directory with this mode, in one step, unless there is one.
    pub fn make_directory(&self, path: &BStr, mode: u32) -> Result<()> {
        if self.open_directory(path)?.is_some() {
            return Ok(());
        }
        let Place::In(directory, name) = self.place(path)? else {
            bail!("'{path}' has no directory to be in");
        };
        let temporary = temporary_name();
        let temporary = OsStr::new(&temporary);
        // Renamed, a directory takes the place of nothing, or of one that is empty.
        let outcome = rustix::fs::mkdirat(&directory, temporary, Mode::from_raw_mode(0o700))
            .and_then(|()| openat(&directory, temporary, DIRECTORY, Mode::empty()))
            .and_then(|fd| rustix::fs::fchmod(&fd, permissions(mode)))
            .and_then(|()| rustix::fs::renameat(&directory, temporary, &directory, name));
        if outcome.is_err() {
            // The error to report is the one above.
            let _ = rustix::fs::unlinkat(&directory, temporary, AtFlags::REMOVEDIR);
        }
        outcome.with_context(|| format!("make directory '{path}'"))
    }

    /// Removes a directory if it is empty; says whether it is gone.
    pub fn remove_empty_directory(&self, path: &BStr) -> Result<bool> {
        let Place::In(directory, name) = self.place(path)? else {
            return Ok(true);
        };
        match rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("remove directory '{path}'")),
        }
    }

    /// Moves whatever is at a path to a place outside the worktree, or back to where nothing is.
    pub fn move_aside(&self, path: &BStr, store: &Path, out: bool) -> Result<()> {
        let Place::In(directory, name) = self.place(path)? else {
            bail!("'{path}' has no directory to be in");
        };
        if let Some(parent) = store.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("make '{}'", parent.display()))?;
        }
        let moved = if out {
            rename_to_nothing(&directory, name, rustix::fs::CWD, store.as_os_str())
        } else {
            rename_to_nothing(rustix::fs::CWD, store.as_os_str(), &directory, name)
        };
        moved.with_context(|| format!("move '{path}' {}", if out { "aside" } else { "back" }))
    }

    /// Deletes what a killed write left in a directory.
    pub fn sweep(&self, path: &BStr) -> Result<()> {
        let Some(fd) = self.open_directory(path)? else {
            return Ok(());
        };
        for entry in rustix::fs::Dir::read_from(&fd)? {
            let entry = entry?;
            if entry.file_name().to_bytes().starts_with(TEMPORARY.as_bytes()) {
                match rustix::fs::unlinkat(&fd, entry.file_name(), AtFlags::empty()) {
                    Err(Errno::ISDIR | Errno::PERM) => {
                        rustix::fs::unlinkat(&fd, entry.file_name(), AtFlags::REMOVEDIR)?;
                    }
                    outcome => outcome?,
                }
            }
        }
        Ok(())
    }
}

fn make_file(
    directory: &OwnedFd,
    name: &OsStr,
    state: &FileState,
    fill: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    if state.kind == Kind::Symlink {
        let mut target = Vec::new();
        fill(&mut target)?;
        rustix::fs::symlinkat(OsStr::from_bytes(&target), directory, name)?;
        return Ok(());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Private until it is whole; the umask must not take bits away that the file had.
    let mut made = File::from(openat(directory, name, flags, Mode::from_raw_mode(0o600))?);
    fill(&mut made)?;
    rustix::fs::fchmod(&made, permissions(state.mode))?;
    Ok(())
}
