//! What cannot be renamed, since the place where it goes is on another file system: it is copied, made durable and compared,
//! and only then removed where it was.

use crate::git::repo::platform::{Inodes, make_node};
use crate::git::worktree::stat::type_of;
use anyhow::{Context, Result, bail};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use std::fs::{DirBuilder, File, FileTimes, Metadata};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown, symlink};
use std::path::{Path, PathBuf};

/// How much is copied or compared before anybody is asked again whether to go on.
const PIECE: u64 = 1 << 22;

/// Whether to stop: it may take long.
type Stops<'a> = &'a dyn Fn() -> Result<()>;

/// Copies a file, a link, or a directory with all below it, with modes and times, to a path where nothing is; on stable storage
/// when this returns. Nobody else may read the copy before it has its modes.
pub fn copy(from: &Path, to: &Path, stops: Stops<'_>) -> Result<()> {
    let about = from.symlink_metadata().with_context(|| format!("read '{}'", from.display()))?;
    copy_one(from, to, &about, stops).with_context(|| format!("copy '{}' to '{}'", from.display(), to.display()))?;
    to.parent().map_or(Ok(()), sync)
}

fn copy_one(from: &Path, to: &Path, about: &Metadata, stops: Stops<'_>) -> Result<()> {
    stops()?;
    let kind = about.file_type();
    if kind.is_symlink() {
        symlink(std::fs::read_link(from)?, to)?;
        // Whose it is tells nobody anything.
        let _ = lchown(to, Some(about.uid()), Some(about.gid()));
        return set_times(to, about);
    }
    if kind.is_dir() {
        DirBuilder::new().mode(0o700).create(to)?;
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            copy_one(&entry.path(), &to.join(entry.file_name()), &entry.metadata()?, stops)?;
        }
    } else if kind.is_file() {
        let mut made = File::options().write(true).create_new(true).mode(0o600).open(to)?;
        let mut content = File::open(from)?;
        while std::io::copy(&mut content.by_ref().take(PIECE), &mut made)? > 0 {
            stops()?;
        }
    } else {
        return make_special(to, about);
    }
    let made = File::open(to)?;
    keep_owner(&made, from, about)?;
    made.set_permissions(PermissionsExt::from_mode(about.mode() & 0o7777))?;
    made.set_times(FileTimes::new().set_modified(about.modified()?).set_accessed(about.accessed()?))?;
    Ok(made.sync_all()?)
}

/// A FIFO, a socket or a device: there is nothing in it to be copied.
fn make_special(to: &Path, about: &Metadata) -> Result<()> {
    make_node(to, type_of(u8::try_from(about.mode() >> 12)?), about.rdev())?;
    let _ = lchown(to, Some(about.uid()), Some(about.gid()));
    std::fs::set_permissions(to, PermissionsExt::from_mode(about.mode() & 0o7777))?;
    set_times(to, about)
}

/// Gives a copy to whom the original belongs, where that may be done. What runs as somebody is not to run as somebody else.
fn keep_owner(made: &File, from: &Path, about: &Metadata) -> Result<()> {
    let _ = fchown(made, Some(about.uid()), Some(about.gid()));
    let now = made.metadata()?;
    let is_same = (now.uid(), now.gid()) == (about.uid(), about.gid());
    if !is_same && about.is_file() && about.mode() & 0o6000 != 0 {
        bail!("'{}' runs as another user or group, and cannot be copied", from.display());
    }
    Ok(())
}

/// Those of a link itself, too.
fn set_times(path: &Path, about: &Metadata) -> Result<()> {
    let time = |tv_sec: i64, tv_nsec: i64| Timespec { tv_sec, tv_nsec };
    let last_access = time(about.atime(), about.atime_nsec());
    let last_modification = time(about.mtime(), about.mtime_nsec());
    Ok(utimensat(CWD, path, &Timestamps { last_access, last_modification }, AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Makes a directory's names durable.
pub fn sync(directory: &Path) -> Result<()> {
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
pub fn is_same(one: &Path, other: &Path, stops: Stops<'_>) -> Result<bool> {
    stops()?;
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
    if !a.is_dir() && !a.is_file() {
        return Ok(a.rdev() == b.rdev());
    }
    if !a.is_dir() {
        return Ok(a.size() == b.size() && has_same_content(one, other, stops)?);
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
        if !is_same(&one.join(&name), &other.join(&name), stops)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is in a tree, by device and inode: its files, and its directories.
pub fn inodes(top: &Path) -> Result<[Inodes; 2]> {
    let [mut files, mut directories] = [Inodes::new(), Inodes::new()];
    let mut rest = vec![top.to_owned()];
    while let Some(path) = rest.pop() {
        let about = path.symlink_metadata().with_context(|| format!("read '{}'", path.display()))?;
        if about.is_dir() {
            for entry in std::fs::read_dir(&path)? {
                rest.push(entry?.path());
            }
        }
        let all = if about.is_dir() { &mut directories } else { &mut files };
        all.insert((about.dev(), about.ino()));
    }
    Ok([files, directories])
}

/// Removes what a copy has, and leaves what it has not: somebody has written that since. Says whether all is gone.
pub fn remove_copied(from: &Path, copy: &Path) -> Result<bool> {
    let about = from.symlink_metadata()?;
    if !about.is_dir() {
        return remove_file_copied(from, copy, &about).with_context(|| format!("remove '{}'", from.display()));
    }
    if !copy.symlink_metadata().is_ok_and(|kept| kept.is_dir()) {
        return Ok(false);
    }
    // It may be closed to its owner as well; another user's cannot be opened, and may be open to all.
    if about.mode() & 0o700 != 0o700 {
        let _ = std::fs::set_permissions(from, PermissionsExt::from_mode(0o700));
    }
    let mut is_gone = true;
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        is_gone &= remove_copied(&from.join(&name), &copy.join(&name))?;
    }
    Ok(is_gone && std::fs::remove_dir(from).is_ok())
}

fn remove_file_copied(from: &Path, copy: &Path, about: &Metadata) -> Result<bool> {
    let kept = copy.symlink_metadata();
    if !kept.is_ok_and(|kept| kept.file_type() == about.file_type()) {
        return Ok(false);
    }
    if about.is_symlink() {
        let is_same = std::fs::read_link(from)? == std::fs::read_link(copy)?;
        return Ok(is_same && std::fs::remove_file(from).is_ok());
    }
    if !about.is_file() {
        return Ok(std::fs::remove_file(from).is_ok());
    }
    let file = File::open(from)?;
    let before = file.metadata()?;
    if before.size() != copy.metadata()?.size() || !has_same_content(from, copy, &|| Ok(()))? {
        return Ok(false);
    }
    if std::fs::remove_file(from).is_err() {
        return Ok(false);
    }
    let after = file.metadata()?;
    let is_still = |about: &Metadata| (about.size(), about.mtime(), about.mtime_nsec());
    if is_still(&before) == is_still(&after) {
        return Ok(true);
    }
    // Written in that very instant, by whoever had it open: it is there again.
    let mut again = File::options().write(true).create_new(true).mode(0o600).open(from)?;
    std::io::copy(&mut &file, &mut again)?;
    again.set_permissions(PermissionsExt::from_mode(about.mode() & 0o7777))?;
    again.sync_all()?;
    Ok(false)
}

fn has_same_content(one: &Path, other: &Path, stops: Stops<'_>) -> Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    let (mut a, mut b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    for piece in 0_u64.. {
        if piece % (PIECE >> 16) == 0 {
            stops()?;
        }
        let read = one.read(&mut a)?;
        if read == 0 {
            return Ok(other.read(&mut b)? == 0);
        }
        if other.read_exact(&mut b[..read]).is_err() || a[..read] != b[..read] {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(top: &Path) -> PathBuf {
        let from = top.join("from");
        fs::create_dir_all(from.join("d/empty")).expect("make directories");
        fs::write(from.join("d/file"), vec![7; 200_000]).expect("write a file");
        fs::write(from.join("run"), "run").expect("write a file");
        symlink("nowhere", from.join("link")).expect("make a link");
        fs::set_permissions(from.join("run"), PermissionsExt::from_mode(0o4750)).expect("set a mode");
        fs::set_permissions(from.join("d"), PermissionsExt::from_mode(0o711)).expect("set a mode");
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        let times = FileTimes::new().set_modified(old);
        File::open(from.join("run")).and_then(|file| file.set_times(times)).expect("set a time");
        from
    }

    #[test]
    fn a_copy_is_the_very_same_with_modes_and_times_and_goes_over_nothing() {
        let top = tempfile::tempdir().expect("make a directory");
        let (from, to) = (tree(top.path()), top.path().join("to"));
        copy(&from, &to, &|| Ok(())).expect("copy it");
        assert!(is_same(&from, &to, &|| Ok(())).expect("compare them"));
        let times = ["run", "d", "d/file"].map(|name| {
            [&from, &to].map(|top| top.join(name).metadata().and_then(|about| about.modified()).expect("a time"))
        });
        assert!(times.iter().all(|[one, other]| one == other), "{times:?}");
        copy(&from, &to, &|| Ok(())).expect_err("something is there");
        fs::create_dir(top.path().join("odd")).expect("make a directory");
        let odd = ["odd", "not"].map(|name| top.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(odd[0].join("fifo")).status();
        assert!(made.expect("run mkfifo").success());
        let copied = copy(&odd[0], &odd[1], &|| Ok(()));
        if cfg!(target_os = "linux") {
            assert!(copied.and_then(|()| is_same(&odd[0], &odd[1], &|| Ok(()))).expect("a FIFO is made again"));
        } else {
            copied.expect_err("not all of it can be copied");
        }
    }

    #[test]
    fn what_a_copy_has_is_removed_and_what_somebody_has_written_since_is_left() {
        type Write = fn(&Path) -> std::io::Result<()>;
        let writes: [(Write, &[&str]); 6] = [
            (|_| Ok(()), &[]),
            (|top| fs::write(top.join("run"), "ruN"), &["run"]),
            (|top| fs::write(top.join("d/new"), "new"), &["d", "d/new"]),
            (|top| fs::create_dir(top.join("d/more")), &["d", "d/more"]),
            (|top| fs::remove_file(top.join("link")).and_then(|()| symlink("else", top.join("link"))), &["link"]),
            (
                |top| fs::remove_dir(top.join("d/empty")).and_then(|()| fs::write(top.join("d/empty"), "")),
                &["d", "d/empty"],
            ),
        ];
        for (write, left) in writes {
            let top = tempfile::tempdir().expect("make a directory");
            let (from, to) = (tree(top.path()), top.path().join("to"));
            fs::set_permissions(from.join("d"), PermissionsExt::from_mode(0o511)).expect("set a mode");
            copy(&from, &to, &|| Ok(())).expect("copy it");
            fs::set_permissions(from.join("d"), PermissionsExt::from_mode(0o755)).expect("set a mode");
            write(&from).expect("write to it");
            assert_eq!(remove_copied(&from, &to).expect("remove it"), left.is_empty(), "{left:?}");
            let mut there: Vec<_> = stamp(&from).into_iter().flatten().map(|(path, _)| path).collect();
            there.retain(|path| *path != from);
            assert_eq!(there, left.iter().map(|name| from.join(name)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn whoever_asks_it_to_stop_need_not_wait_for_the_end_of_a_large_file() {
        let top = tempfile::tempdir().expect("make a directory");
        let [from, to] = ["from", "to"].map(|name| top.path().join(name));
        let file = File::create(&from).and_then(|file| file.set_len(5 * PIECE));
        file.expect("make a file");
        let asked = std::cell::Cell::new(0);
        let stops = || {
            asked.set(asked.get() + 1);
            anyhow::ensure!(asked.get() != 3, "stop");
            Ok(())
        };
        copy(&from, &to, &stops).expect_err("it stops");
        assert_eq!(to.metadata().expect("there is half of it").len(), 2 * PIECE);
        fs::remove_file(&to).expect("remove it");
        copy(&from, &to, &|| Ok(())).expect("copy it");
        asked.set(0);
        is_same(&from, &to, &stops).expect_err("it stops");
        assert!(is_same(&from, &to, &|| Ok(())).expect("compare them"));
    }

    #[test]
    fn whatever_somebody_does_to_one_of_two_shows() {
        let changes: [fn(&Path) -> std::io::Result<()>; 6] = [
            |top| fs::write(top.join("run"), "ruN"),
            |top| fs::write(top.join("new"), ""),
            |top| fs::remove_file(top.join("d/file")),
            |top| fs::set_permissions(top.join("d"), PermissionsExt::from_mode(0o755)),
            |top| fs::remove_file(top.join("link")).and_then(|()| symlink("else", top.join("link"))),
            |top| fs::remove_dir(top.join("d/empty")).and_then(|()| fs::write(top.join("d/empty"), "")),
        ];
        for (at, change) in changes.iter().enumerate() {
            let top = tempfile::tempdir().expect("make a directory");
            let (from, to) = (tree(top.path()), top.path().join("to"));
            copy(&from, &to, &|| Ok(())).expect("copy it");
            let before = stamp(&from).expect("look at it");
            assert_eq!(stamp(&from).expect("look at it"), before, "to look changes nothing");
            change(&from).expect("change it");
            assert!(!is_same(&from, &to, &|| Ok(())).expect("compare them"), "change {at} shows");
            assert_ne!(stamp(&from).expect("look at it"), before, "and in the stamp, {at}");
        }
    }
}
