//! The worktree's files. Every path is walked from the top, one component at a
//! time, never through a symbolic link: what looks like a parent and is a link
//! leads nowhere. Files are written beside their place, with their final mode, and
//! change places with what is there, which is then looked at.

pub mod across;
pub mod age;
pub mod descent;
pub mod exchange;
pub mod extents;
pub mod filesystem;
pub mod identity;
pub mod look;
pub mod names;
pub mod privacy;
pub mod stat;
pub mod watch;
pub mod write;

use crate::error::{Code, Refusal};
use crate::git::repo::platform::{At, open_beneath, open_own_directory, open_own_file};
use crate::git::repo::{Repo, Top};
use crate::git::worktree::look::look;
use crate::git::worktree::stat::{OPEN, kind_of, mode_of, permissions};
use crate::model::bytes::in_quotes;
use crate::model::checkpoint::{FileState, Kind};
use anyhow::{Context, Result};
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

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

/// A path of the worktree as one of the system, for as long as this is held: its directory stays the same, whatever becomes of
/// the names above it.
pub struct Reached {
    /// The path.
    pub path: PathBuf,
    directory: OwnedFd,
}

impl Reached {
    /// Its name, in its directory.
    pub fn at(&self) -> At<'_> {
        (self.directory.as_fd(), self.path.file_name().unwrap_or_default())
    }

    /// Makes the names in its directory durable.
    pub fn sync(&self) -> Result<()> {
        match rustix::fs::fsync(&self.directory) {
            // There is nothing to wait for.
            Ok(()) | Err(Errno::INVAL | Errno::ROFS | Errno::NOTSUP) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("make '{}' durable", self.path.display())),
        }
    }

    /// Another name in the same directory.
    #[must_use]
    pub fn beside(self, name: &OsStr) -> Self {
        Self { path: self.path.with_file_name(name), ..self }
    }
}

/// What is at a path.
pub enum Lookup {
    /// Nothing.
    Absent,
    /// Nothing, because this parent is not a directory.
    Behind(BString),
    /// Something, with these stat data.
    There(Box<rustix::fs::Stat>),
}

impl<'t> Worktree<'t> {
    /// That of a repository.
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
        if let Some(slash) = path.rfind_byte(b'/')
            && let Some(Ok(directory)) = open_beneath(&self.top.fd, path[..slash].as_bstr(), DIRECTORY)
        {
            return Ok(Place::In(directory, OsStr::from_bytes(&path[slash + 1..])));
        }
        // One name after the other: to learn which of them leads nowhere, or where the system cannot go at once.
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

    /// Whether every name in a path is spelled this way on disk, and not in other letters.
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

    /// What is at a path, with exactly this name.
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

    /// A path as one of the system; `None` where its directory is not there.
    pub fn reach(&self, path: &BStr) -> Result<Option<Reached>> {
        let Place::In(directory, name) = self.place(path)? else { return Ok(None) };
        let path = if cfg!(target_os = "linux") {
            PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name)
        } else {
            self.top.path.join(OsStr::from_bytes(path))
        };
        Ok(Some(Reached { path, directory }))
    }

    /// Whether there is a directory for a path to be in.
    pub fn has_place(&self, path: &BStr) -> bool {
        matches!(self.place(path), Ok(Place::In(..)))
    }

    /// Whether a directory is there, that may be looked into or not.
    pub fn has_directory(&self, path: &BStr) -> Result<bool> {
        let stat = self.stat(path)?;
        Ok(stat.is_some_and(|(stat, _)| FileType::from_raw_mode(stat.st_mode) == FileType::Directory))
    }

    /// Opens a directory of the user's that may not be looked into or changed; gives it and the mode that it had. `None` where
    /// there is none.
    pub fn open_closed_directory(&self, path: &BStr) -> Result<Option<(OwnedFd, u32)>> {
        let Place::In(directory, name) = self.place(path)? else { return Ok(None) };
        match open_own_directory((directory.as_fd(), name), permissions(OPEN)) {
            Ok((opened, stat)) => Ok(Some((opened, mode_of(&stat)))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("open directory '{path}'")),
        }
    }

    /// Whether a file or link is there.
    pub fn has_file(&self, path: &BStr) -> bool {
        matches!(self.stat(path), Ok(Some((stat, _))) if kind_of(&stat).is_some())
    }

    /// The bytes of a regular file that is no link, where it can be read.
    pub fn read_plain_file(&self, path: &BStr) -> Result<Option<Vec<u8>>> {
        match self.read(path, Kind::File) {
            Err(error) if is_denied(&error) => Ok(None),
            read => read,
        }
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
        self.open_file_by(path, |_| Err(Errno::ACCESS))
    }

    /// As [`Self::open_file`], also where it is the user's, and not even the user may read it: it has another mode for an
    /// instant.
    pub fn open_closed_file(&self, path: &BStr) -> Result<Option<File>> {
        self.open_file_by(path, open_own_file)
    }

    fn open_file_by(
        &self,
        path: &BStr,
        when_denied: impl FnOnce(At<'_>) -> rustix::io::Result<OwnedFd>,
    ) -> Result<Option<File>> {
        let Place::In(directory, name) = self.place(path)? else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = match openat(&directory, name, flags, Mode::empty()) {
            Err(Errno::ACCESS) => when_denied((directory.as_fd(), name)),
            opened => opened,
        };
        let file = match opened {
            Ok(fd) => File::from(fd),
            // The last is a socket.
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR | Errno::NXIO) => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("read '{path}'")),
        };
        Ok(file.metadata()?.is_file().then_some(file))
    }

    /// The state of the file at a path, its content hashed now. `None` where no file or link is.
    pub fn state(&self, path: &BStr, hash: gix::hash::Kind) -> Result<Option<FileState>> {
        let Place::In(directory, name) = self.place(path)? else {
            return Ok(None);
        };
        let seen = look((directory.as_fd(), name), hash).with_context(|| format!("read '{path}'"))?;
        Ok(seen.and_then(|seen| seen.state))
    }

    /// The same, where it can be read.
    pub fn readable(&self, path: &BStr, hash: gix::hash::Kind) -> Option<FileState> {
        self.state(path, hash).ok().flatten()
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
                if is_unsafe(name) {
                    // Something that is never looked into, and in the way.
                    all.push(inner);
                    continue;
                }
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

/// The error for a record that names a path that oxundo must not touch.
pub fn corrupt_path(name: &BStr) -> anyhow::Error {
    let path = in_quotes(name);
    Refusal::new(Code::Corrupt, format!("oxundo's records name {path}, which no turn can have changed"))
        .hint("run 'oxundo doctor': it says how to go on")
        .paths([name.to_owned()])
        .into()
}

/// A component that would lead out of the worktree, or into a git directory.
fn is_unsafe(component: &[u8]) -> bool {
    matches!(component, b"" | b"." | b"..") || component.eq_ignore_ascii_case(b".git") || component.contains(&0)
}

/// Whether permission was missing to look at something.
pub fn is_denied(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Errno>() == Some(&Errno::ACCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use std::os::unix::fs::symlink;

    fn said(lookup: &Lookup) -> String {
        match lookup {
            Lookup::Absent => "absent".to_owned(),
            Lookup::Behind(parent) => format!("behind {parent}"),
            Lookup::There(stat) => format!("{:?}", FileType::from_raw_mode(stat.st_mode)),
        }
    }

    /// A worktree with one of each kind.
    fn of_all_kinds() -> Fixture {
        let f = Fixture::new();
        f.write("d/file", "one\r\n");
        f.write("d/\u{e9}/\n", "two");
        std::fs::create_dir_all(f.path("d/empty/none")).expect("make directories");
        symlink("file", f.path("d/link")).expect("make a link");
        symlink("d", f.path("to-d")).expect("make a link");
        let made = std::process::Command::new("mkfifo").arg(f.path("d/fifo")).status();
        assert!(made.expect("run mkfifo").success());
        f
    }

    #[test]
    fn a_path_leads_to_what_stands_there_or_to_what_stands_in_its_way() {
        let f = of_all_kinds();
        let worktree = Worktree::new(&f.repo);
        for (path, stands) in [
            ("d", "Directory"),
            ("d/file", "RegularFile"),
            ("d/link", "Symlink"),
            ("d/fifo", "Fifo"),
            ("to-d", "Symlink"),
            ("none", "absent"),
            ("none/below", "absent"),
            ("d/file/below/it", "behind d/file"),
            ("d/link/below", "behind d/link"),
            ("to-d/file", "behind to-d"),
            ("D/file", "absent"),
        ] {
            let found = worktree.find(path.into()).expect("look at it");
            assert_eq!(said(&found), stands, "{path}");
            let stat = worktree.stat(path.into()).expect("look at it");
            assert_eq!(stat.is_some(), matches!(found, Lookup::There(_)), "{path}: both ways of looking agree");
            assert_eq!(worktree.is_behind_a_file(path.into()), stands.starts_with("behind"), "{path}");
            assert_eq!(worktree.has_file(path.into()), ["RegularFile", "Symlink"].contains(&stands), "{path}");
        }
        for path in ["../repo/d/file", ".git/HEAD", "d/../d/file", ""] {
            assert!(worktree.find(path.into()).is_err() && worktree.stat(path.into()).is_err(), "{path:?}");
            assert!(!worktree.has_file(path.into()) && !worktree.is_behind_a_file(path.into()), "{path:?}");
        }
    }

    #[test]
    fn content_is_read_of_the_kind_that_is_asked_for_alone() {
        let f = of_all_kinds();
        let worktree = Worktree::new(&f.repo);
        let read = |path: &str, kind| worktree.read(path.into(), kind).expect("nothing fails");
        assert_eq!(read("d/file", Kind::File).as_deref(), Some(&b"one\r\n"[..]));
        assert_eq!(read("d/link", Kind::Symlink).as_deref(), Some(&b"file"[..]));
        for path in ["d/link", "to-d", "to-d/file", "d", "d/fifo", "none", "d/file/below"] {
            assert_eq!(read(path, Kind::File), None, "{path} is no file, and never waited for");
            assert_eq!(worktree.read_plain_file(path.into()).expect("it is no error"), None, "{path}");
        }
        for path in ["d/file", "to-d/link", "d", "d/fifo", "none"] {
            assert_eq!(read(path, Kind::Symlink), None, "{path} is no link");
        }
        worktree.read("d/../d/file".into(), Kind::File).expect_err("no record may say so");
    }

    #[test]
    fn the_state_of_a_file_is_what_git_makes_of_its_raw_bytes() {
        let f = of_all_kinds();
        let worktree = Worktree::new(&f.repo);
        let kind = f.repo.hash_kind();
        let state = |path: &str| worktree.state(path.into(), kind).expect("look at it");
        for (mode, found) in
            [(0o600, Kind::File), (0o654, Kind::File), (0o740, Kind::Executable), (0o4755, Kind::Executable)]
        {
            worktree.set_mode("d/file".into(), mode).expect("set a mode");
            let id = f.id(&["hash-object", "--no-filters", "d/file"]);
            assert_eq!(state("d/file"), Some(FileState { kind: found, id, mode }), "the owner's bit tells the kind");
        }
        let id = f.blob("file");
        assert_eq!(state("d/link"), Some(FileState { kind: Kind::Symlink, id, mode: 0 }), "a link is its target");
        for path in ["d", "d/fifo", "none", "to-d/file", "d/file/below"] {
            assert_eq!(state(path), None, "{path} is no file");
        }
    }

    #[test]
    fn all_that_is_below_a_directory_is_listed_and_no_link_is_followed() {
        let f = of_all_kinds();
        let worktree = Worktree::new(&f.repo);
        let list = |path: &str| {
            let mut all = worktree.list_below(path.into()).expect("list a directory");
            all.sort();
            all.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(list("d"), ["d/empty/none/", "d/fifo", "d/file", "d/link", "d/\u{e9}/\n"]);
        assert_eq!(list("d/empty"), ["d/empty/none/"]);
        assert_eq!(list("d/empty/none"), ["d/empty/none/"]);
        for path in ["to-d", "to-d/empty", "none", "d/file"] {
            assert_eq!(list(path), [""; 0], "{path} is no directory");
        }
        worktree.list_below("..".into()).expect_err("it leads out");
        worktree.list_below(".git".into()).expect_err("it is git's");
    }

    #[test]
    fn a_directory_is_opened_by_its_own_path_alone() {
        let f = of_all_kinds();
        let worktree = Worktree::new(&f.repo);
        let opened = |path: &str| worktree.open_directory(path.into()).expect("nothing fails").is_some();
        assert!(opened("") && opened("d") && opened("d/empty/none"), "they are there");
        assert!(!opened("to-d") && !opened("to-d/empty") && !opened("d/file") && !opened("d/none/x"), "these are not");
        for path in ["..", "d/..", ".git", "d/.GIT", "/", "d/"] {
            worktree.open_directory(path.into()).expect_err("no record may say so");
        }
    }

    #[test]
    fn a_name_is_the_same_only_in_the_same_letters() {
        let f = of_all_kinds();
        let worktree = Worktree::new(&f.repo);
        let spelled = |path: &str| worktree.is_spelled_so(path.into()).expect("look at it");
        assert!(spelled("d") && spelled("d/file") && spelled("d/empty/none"));
        assert!(!spelled("D") && !spelled("d/File") && !spelled("d/fil") && !spelled("d/empty/none/x"));
        let top = Top::open(f.repo.top(), true).expect("open the top");
        let found = Worktree::at(&top).find("d/file".into()).expect("look at it");
        assert_eq!(said(&found), "RegularFile", "what has just this name is found where letters may differ too");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_cannot_be_read_is_an_error_and_not_one_that_is_not_there() {
        // The memory of this process is a file of which nothing can be read from its beginning.
        let top = Top::open(Path::new("/proc/self"), false).expect("open a directory");
        let read = |path: &str| Worktree::at(&top).read_plain_file(path.into());
        read("mem").expect_err("it is there");
        assert_eq!(read("none").expect("there is none"), None);
        assert!(read("status").expect("it can be read").is_some());
    }
}
