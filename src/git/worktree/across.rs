//! What cannot be renamed, since the place where it goes is on another file system: it is copied, made durable and compared,
//! and only then removed where it was.

use anyhow::{Context, Result, bail};
use std::fs::{File, FileTimes, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Copies a file, a link, or a directory with all below it, with modes and times, to a path where nothing is; on stable storage
/// when this returns. Nobody else may read the copy before it has its modes.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let about = from.symlink_metadata().with_context(|| format!("read '{}'", from.display()))?;
    copy_one(from, to, &about).with_context(|| format!("copy '{}' to '{}'", from.display(), to.display()))?;
    to.parent().map_or(Ok(()), sync)
}

fn copy_one(from: &Path, to: &Path, about: &Metadata) -> Result<()> {
    let kind = about.file_type();
    if kind.is_symlink() {
        return Ok(symlink(std::fs::read_link(from)?, to)?);
    }
    if kind.is_dir() {
        std::fs::create_dir(to)?;
        std::fs::set_permissions(to, PermissionsExt::from_mode(0o700))?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy_one(&entry.path(), &to.join(entry.file_name()), &entry.metadata()?)?;
        }
    } else if kind.is_file() {
        let mut made = File::options().write(true).create_new(true).mode(0o600).open(to)?;
        std::io::copy(&mut File::open(from)?, &mut made)?;
    } else {
        bail!("'{}' is no file, and cannot be copied", from.display());
    }
    let made = File::open(to)?;
    made.set_permissions(PermissionsExt::from_mode(about.mode() & 0o7777))?;
    made.set_times(FileTimes::new().set_modified(about.modified()?).set_accessed(about.accessed()?))?;
    Ok(made.sync_all()?)
}

fn sync(directory: &Path) -> Result<()> {
    File::open(directory).and_then(|directory| directory.sync_all()).context("make a copy durable")
}

/// What shows that somebody has written: each name below with its size, its inode and its times.
pub fn stamp(top: &Path) -> Result<Vec<(PathBuf, [i64; 7])>> {
    let mut stamps = Vec::new();
    let mut rest = vec![top.to_owned()];
    while let Some(path) = rest.pop() {
        let about = path.symlink_metadata().with_context(|| format!("read '{}'", path.display()))?;
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let times = [about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()];
        let [a, b, c, d] = times;
        if about.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                rest.push(entry?.path());
            }
        }
        stamps.push((path, [number(about.size()), number(about.ino()), i64::from(about.mode()), a, b, c, d]));
    }
    stamps.sort();
    Ok(stamps)
}

/// Whether two trees are the same: names, kinds, modes and content.
pub fn is_same(one: &Path, other: &Path) -> Result<bool> {
    let (a, b) = (one.symlink_metadata()?, other.symlink_metadata()?);
    if a.file_type() != b.file_type() {
        return Ok(false);
    }
    if a.is_symlink() {
        let target = |path| std::fs::read_link(path).map(|target| target.as_os_str().as_bytes().to_owned());
        return Ok(target(one)? == target(other)?);
    }
    if a.mode() != b.mode() {
        return Ok(false);
    }
    if !a.is_dir() {
        return Ok(a.size() == b.size() && has_same_content(one, other)?);
    }
    let names = |path| -> Result<Vec<_>> {
        let names = std::fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>>>();
        names.map(|mut names| {
            names.sort();
            names
        })
    };
    let all = names(one)?;
    if all != names(other)? {
        return Ok(false);
    }
    for name in all {
        if !is_same(&one.join(&name), &other.join(&name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_same_content(one: &Path, other: &Path) -> Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut a, mut b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let read = one.read(&mut a)?;
        if read == 0 {
            return Ok(other.read(&mut b)? == 0);
        }
        if other.read_exact(&mut b[..read]).is_err() || a[..read] != b[..read] {
            return Ok(false);
        }
    }
}
