//! The worktree's files. Every path is walked from the top, one component at a
//! time, never through a symbolic link: what looks like a parent and is a link
//! leads nowhere. Files are written beside their place, with their final mode,
//! and renamed.

use super::platform::{file_system, open_beneath, rename_to_nothing};
use super::stat::{kind_of, mode_of, permissions};
use crate::error::{Code, Refusal};
use crate::model::bytes::quoted;
use crate::model::checkpoint::{FileState, Kind};
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// How the files begin that a write leaves behind when it is killed.
pub const TEMPORARY: &[u8] = b".oxundo-tmp-";

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A worktree, held open at its top.
#[derive(Debug)]
pub struct Worktree {
    top: OwnedFd,
    path: PathBuf,
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
pub enum Found {
    /// Nothing.
    Absent,
    /// Nothing, because this parent is not a directory.
    Behind(BString),
    /// Something, of which this tells.
    There(Box<rustix::fs::Stat>),
}

impl Worktree {
    /// Opens the worktree at this directory.
    ///
    /// # Errors
    ///
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let top = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .with_context(|| format!("open '{}'", path.display()))?;
        Ok(Self { top, path: path.to_owned() })
    }

    /// Its directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The device that the top is on, where its file system is one whose directories are known to
    /// tell by their times that a name in them came or went.
    pub fn telling_device(&self) -> Option<rustix::fs::Dev> {
        // ext2, ext3 and ext4; XFS; Btrfs; F2FS; Bcachefs; tmpfs; overlayfs, which writes into one of these.
        const TELLING: [u64; 7] =
            [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0xca45_1a4e, 0x0102_1994, 0x794c_7630];
        self.device_of(|kind| TELLING.contains(&kind))
    }

    /// The device that the top is on, where its file system is not known to be shared with other machines, or kept
    /// by some program.
    pub fn local_device(&self) -> Option<rustix::fs::Dev> {
        // NFS; SMB, CIFS and SMB2; 9P; FUSE; Ceph; AFS twice; Coda; NCP; Lustre; GPFS; OCFS2; GFS2; OrangeFS; BeeGFS;
        // and what shows a virtual machine its host's files: VirtualBox, VMware, Parallels.
        const SHARED: [u64; 20] = [
            0x6969,
            0x517b,
            0xff53_4d42,
            0xfe53_4d42,
            0x0102_1997,
            0x6573_5546,
            0x00c3_6400,
            0x5346_414f,
            0x6b41_4653,
            0x7375_7245,
            0x564c,
            0x0bd0_0bd0,
            0x4750_4653,
            0x7461_636f,
            0x0116_1970,
            0x2003_0528,
            0x1983_0326,
            0x786f_4256,
            0xbacb_acbc,
            0x7c7c_6673,
        ];
        self.device_of(|kind| !SHARED.contains(&kind))
    }

    fn device_of(&self, fits: impl Fn(u64) -> bool) -> Option<rustix::fs::Dev> {
        fits(file_system(&self.top)?).then(|| Some(rustix::fs::fstat(&self.top).ok()?.st_dev))?
    }

    /// Opens a directory below the top; `None` when there is none at this path.
    ///
    /// # Errors
    ///
    /// When it is there but cannot be opened.
    pub fn open_directory(&self, path: &BStr) -> Result<Option<OwnedFd>> {
        if path.is_empty() {
            return Ok(Some(openat(&self.top, c".", DIRECTORY, Mode::empty())?));
        }
        let at_once = if path.split(|byte| *byte == b'/').any(is_unsafe) {
            None
        } else {
            open_beneath(&self.top, path, DIRECTORY)
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
            return Err(astray(path));
        }
        let mut directory = openat(&self.top, c".", DIRECTORY, Mode::empty())?;
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

    /// What stands at a path.
    ///
    /// # Errors
    ///
    /// When that cannot be found out.
    pub fn find(&self, path: &BStr) -> Result<Found> {
        match self.place(path)? {
            Place::Missing => Ok(Found::Absent),
            Place::Blocked(parent) => Ok(Found::Behind(parent.to_owned())),
            Place::In(directory, name) => match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => Ok(Found::There(Box::new(stat))),
                Err(Errno::NOENT) => Ok(Found::Absent),
                Err(error) => Err(error).with_context(|| format!("look at '{path}'")),
            },
        }
    }

    /// The stat of a path, and the directory it is in.
    ///
    /// # Errors
    ///
    /// When that cannot be found out.
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
    ///
    /// # Errors
    ///
    /// When it is there and cannot be read.
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
    ///
    /// # Errors
    ///
    /// When it is there and cannot be opened.
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
    ///
    /// # Errors
    ///
    /// When it is there and cannot be read.
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

    /// Puts a file or link at a path, in one step; `fill` writes its content. With `replace`,
    /// over the file that is there; without, only where nothing is.
    ///
    /// # Errors
    ///
    /// When something is there without `replace`, or writing fails; then nothing is left behind.
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
        let temporary = OsStr::from_bytes(&temporary);
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
    ///
    /// # Errors
    ///
    /// When it is not there, or the system refuses.
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
    ///
    /// # Errors
    ///
    /// When the system refuses. That it is gone already is no error.
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
    ///
    /// # Errors
    ///
    /// When something else is there, or the system refuses.
    pub fn make_directory(&self, path: &BStr, mode: u32) -> Result<()> {
        if self.open_directory(path)?.is_some() {
            return Ok(());
        }
        let Place::In(directory, name) = self.place(path)? else {
            bail!("'{path}' has no directory to be in");
        };
        let temporary = temporary_name();
        let temporary = OsStr::from_bytes(&temporary);
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
    ///
    /// # Errors
    ///
    /// When the system refuses for another reason than what is in it.
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
    ///
    /// # Errors
    ///
    /// When something is at its goal, or the system refuses, for example across file systems.
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

    /// Every file, and every empty directory with a slash behind, below a directory.
    ///
    /// # Errors
    ///
    /// When a directory cannot be read.
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
                match self.find(inner.as_bstr())? {
                    Found::There(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
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

    /// Deletes what a killed write left in a directory.
    ///
    /// # Errors
    ///
    /// When the directory cannot be read.
    pub fn sweep(&self, path: &BStr) -> Result<()> {
        let Some(fd) = self.open_directory(path)? else {
            return Ok(());
        };
        for entry in rustix::fs::Dir::read_from(&fd)? {
            let entry = entry?;
            if entry.file_name().to_bytes().starts_with(TEMPORARY) {
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

/// Whether git would store a file of this name: under the rules of every file system, or, where
/// git itself looks at what is tracked, without those of Apple's.
pub fn is_storable(path: &BStr, protect_hfs: bool) -> bool {
    let options = gix::validate::path::component::Options { protect_windows: false, protect_hfs, protect_ntfs: true };
    path.split(|byte| *byte == b'/')
        .all(|component| gix::validate::path::component(component.as_bstr(), None, options).is_ok())
}

/// The refusal of a record that names what is not oxundo's to touch.
pub fn astray(name: &BStr) -> anyhow::Error {
    let path = quoted(name);
    Refusal::new(Code::Corrupt, format!("oxundo's records name '{path}', which no turn can have changed"))
        .hint("run 'oxundo doctor': it says how to go on")
        .paths([path])
        .into()
}

/// A component that would lead out of the worktree, or into a git directory.
fn is_unsafe(component: &[u8]) -> bool {
    matches!(component, b"" | b"." | b"..") || component.eq_ignore_ascii_case(b".git") || component.contains(&0)
}

fn temporary_name() -> Vec<u8> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    [TEMPORARY, format!("{}-{number}", std::process::id()).as_bytes()].concat()
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

/// Whether something could not be looked at for want of permission.
pub fn is_denied(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Errno>() == Some(&Errno::ACCESS)
}

/// The id that these bytes have as a blob.
///
/// # Errors
///
/// When the hash finds that they were made to collide.
pub fn blob_id(bytes: &[u8], hash: gix::hash::Kind) -> Result<ObjectId> {
    Ok(gix::objs::compute_hash(hash, gix::objs::Kind::Blob, bytes)?)
}

/// The id that a file's bytes have as a blob, however large it is.
///
/// # Errors
///
/// When it cannot be read, or becomes shorter meanwhile.
pub fn file_id(file: &File, hash: gix::hash::Kind) -> Result<ObjectId> {
    let mut bytes = Exactly::of(file)?;
    let (size, progress, go_on) = (bytes.left, &mut gix::progress::Discard, AtomicBool::new(false));
    Ok(gix::objs::compute_stream_hash(hash, gix::objs::Kind::Blob, &mut bytes, size, progress, &go_on)?)
}

/// A file's bytes, just as many as it had when it was opened: an object says its size first.
pub struct Exactly<'a> {
    file: BufReader<&'a File>,
    /// How many there are still to read.
    pub left: u64,
    /// Whether reading failed.
    pub failed: bool,
}

impl<'a> Exactly<'a> {
    /// All bytes of a file.
    ///
    /// # Errors
    ///
    /// When its size cannot be found out.
    pub fn of(mut file: &'a File) -> Result<Self> {
        file.rewind()?;
        Ok(Self { left: file.metadata()?.len(), failed: false, file: BufReader::with_capacity(1 << 16, file) })
    }
}

impl Read for Exactly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = match self.file.read(&mut buffer[..most]) {
            Ok(0) if most > 0 => Err(std::io::Error::other("the file became shorter")),
            read => read,
        };
        self.failed |= read.is_err();
        self.left -= read.as_ref().map_or(0, |read| *read as u64);
        read
    }
}
