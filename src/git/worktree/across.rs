//! What cannot be renamed, since the place where it goes is on another file system: it is copied, made durable and compared,
//! and only then removed where it was. Every name is looked up in the open directory that it is in, and no link is followed: whoever
//! may write in the worktree may put one there at any instant.

use crate::git::repo::platform::{At, Inodes, give_node, make_node, names_in, open_up};
use crate::git::worktree::DIRECTORY;
use crate::git::worktree::extents::{Stops, copy_content, has_same_content};
use crate::git::worktree::look::number;
use crate::git::worktree::stat::{OPEN, all_bits, permissions, stamped};
use crate::git::worktree::write::set_mode_of;
use anyhow::{Context, Result, bail};
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, Uid, fchown, fstat, futimens, mkdirat, openat,
    readlinkat, statat, symlinkat, unlinkat, utimensat,
};
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Copies a file, a link, or a directory with all below it, with modes and times, to where nothing is; on stable storage
/// when this returns, but for its own name. Nobody else may read the copy before it has its modes.
pub fn copy(from: At<'_>, to: At<'_>, stops: Stops<'_>) -> Result<()> {
    stops()?;
    let about = stat(from)?;
    match kind(&about) {
        FileType::Directory => copy_directory(from, to, stops),
        FileType::RegularFile => copy_file(from, to, stops),
        FileType::Symlink => copy_link(from, to, &about),
        other => make_special(to, other, &about),
    }
}

fn copy_directory(from: At<'_>, to: At<'_>, stops: Stops<'_>) -> Result<()> {
    let there = openat(from.0, from.1, DIRECTORY, Mode::empty())?;
    let about = fstat(&there)?;
    mkdirat(to.0, to.1, permissions(OPEN))?;
    let made = File::from(openat(to.0, to.1, DIRECTORY, Mode::empty())?);
    // Somebody may have put another one in its place.
    let now = fstat(&made)?;
    if now.st_uid != rustix::process::geteuid().as_raw() || all_bits(&now) & 0o077 != 0 {
        bail!("another directory has come there");
    }
    for name in names_in(&there)? {
        copy((there.as_fd(), &name), (made.as_fd(), &name), stops)
            .with_context(|| format!("copy '{}' of it", name.display()))?;
    }
    complete(&made, &about)
}

fn copy_file(from: At<'_>, to: At<'_>, stops: Stops<'_>) -> Result<()> {
    let content = open(from)?;
    let about = fstat(&content)?;
    let made = make_file(to)?;
    copy_content(&content, &made, stops)?;
    complete(&made, &about)
}

fn copy_link(from: At<'_>, to: At<'_>, about: &Stat) -> Result<()> {
    symlinkat(readlinkat(from.0, from.1, Vec::new())?, to.0, to.1)?;
    complete_node(to, about)
}

/// A FIFO, a socket or a device: there is nothing in it to be copied.
fn make_special(to: At<'_>, kind: FileType, about: &Stat) -> Result<()> {
    make_node(to, kind, number(about.st_rdev))?;
    complete_node(to, about)
}

/// Gives what is not opened its owner, its mode and its times.
fn complete_node(made: At<'_>, about: &Stat) -> Result<()> {
    give_node(made, kind(about), (owner(about), group(about)), permissions(all_bits(about)))?;
    Ok(utimensat(made.0, made.1, &times(about), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// Gives a copy its owner, where that may be done, its mode and its times, and makes it durable. What runs as somebody is not to
/// run as somebody else.
fn complete(made: &File, about: &Stat) -> Result<()> {
    let _ = fchown(made, Some(owner(about)), Some(group(about)));
    let now = fstat(made)?;
    let is_same = (now.st_uid, now.st_gid) == (about.st_uid, about.st_gid);
    if !is_same && kind(about) == FileType::RegularFile && all_bits(about) & 0o6000 != 0 {
        bail!("it runs as another user or group, and cannot be copied");
    }
    set_mode_of(made, all_bits(about))?;
    futimens(made, &times(about))?;
    Ok(made.sync_all()?)
}

fn stat(at: At<'_>) -> rustix::io::Result<Stat> {
    statat(at.0, at.1, AtFlags::SYMLINK_NOFOLLOW)
}

fn kind(about: &Stat) -> FileType {
    FileType::from_raw_mode(about.st_mode)
}

fn owner(about: &Stat) -> Uid {
    Uid::from_raw(about.st_uid)
}

fn group(about: &Stat) -> Gid {
    Gid::from_raw(about.st_gid)
}

fn times(about: &Stat) -> Timestamps {
    let time = |tv_sec, tv_nsec: u32| Timespec { tv_sec, tv_nsec: tv_nsec.into() };
    Timestamps {
        last_access: time(about.st_atime, number(about.st_atime_nsec)),
        last_modification: time(about.st_mtime, number(about.st_mtime_nsec)),
    }
}

/// Opens a regular file that is no link.
fn open(at: At<'_>) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(at.0, at.1, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        bail!("'{}' is no file any more", at.1.display());
    }
    Ok(file)
}

/// Makes a file for its owner alone, where nothing is.
fn make_file(at: At<'_>) -> Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(at.0, at.1, flags, permissions(0o600))?))
}

/// Visits something, and all below it, from above and by name.
fn walk(top: At<'_>, path: &Path, visit: &mut dyn FnMut(&Path, &Stat)) -> Result<()> {
    let about = stat(top).with_context(|| format!("read '{}'", top.1.display()))?;
    visit(path, &about);
    if kind(&about) == FileType::Directory {
        let directory = openat(top.0, top.1, DIRECTORY, Mode::empty())
            .with_context(|| format!("read directory '{}'", top.1.display()))?;
        for name in names_in(&directory)? {
            walk((directory.as_fd(), &name), &path.join(&name), visit)?;
        }
    }
    Ok(())
}

/// What shows that somebody has written: each name below with its size, its inode, its mode and its times.
pub fn stamp(top: At<'_>) -> Result<Vec<(PathBuf, Option<[u8; 64]>)>> {
    let mut stamps = Vec::new();
    walk(top, Path::new(""), &mut |path, about| stamps.push((path.to_owned(), stamped(about, i64::MAX))))?;
    Ok(stamps)
}

/// What is in a tree, by device and inode: its files, and its directories.
pub fn inodes(top: At<'_>) -> Result<[Inodes; 2]> {
    let [mut files, mut directories] = [Inodes::new(), Inodes::new()];
    walk(top, Path::new(""), &mut |_, about| {
        let all = if kind(about) == FileType::Directory { &mut directories } else { &mut files };
        all.insert((number(about.st_dev), about.st_ino));
    })?;
    Ok([files, directories])
}

/// Whether two trees are the same: names, kinds, modes and content.
pub fn is_same(one: At<'_>, other: At<'_>, stops: Stops<'_>) -> Result<bool> {
    stops()?;
    let (a, b) = (stat(one)?, stat(other)?);
    if kind(&a) != kind(&b) || kind(&a) != FileType::Symlink && all_bits(&a) != all_bits(&b) {
        return Ok(false);
    }
    match kind(&a) {
        FileType::Directory => {
            let [one, other] = [one, other].map(|at| openat(at.0, at.1, DIRECTORY, Mode::empty()));
            let (one, other) = (one?, other?);
            let all = names_in(&one)?;
            if all != names_in(&other)? {
                return Ok(false);
            }
            for name in &all {
                if !is_same((one.as_fd(), name), (other.as_fd(), name), stops)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        FileType::RegularFile => has_same_content(&open(one)?, &open(other)?, stops),
        FileType::Symlink => has_same_target(one, other),
        _ => Ok(a.st_rdev == b.st_rdev),
    }
}

fn has_same_target(one: At<'_>, other: At<'_>) -> Result<bool> {
    Ok(readlinkat(one.0, one.1, Vec::new())? == readlinkat(other.0, other.1, Vec::new())?)
}

/// Removes what a copy has, and leaves what it has not: somebody has written that since. Says whether all is gone.
pub fn remove_copied(from: At<'_>, copy: At<'_>) -> Result<bool> {
    let about = stat(from)?;
    let Some(kept) = stat(copy).ok().filter(|kept| kind(kept) == kind(&about)) else { return Ok(false) };
    match kind(&about) {
        FileType::Directory => remove_directory(from, copy, &kept),
        FileType::RegularFile => remove_file(from, copy),
        FileType::Symlink if !has_same_target(from, copy)? => Ok(false),
        _ => Ok(unlinkat(from.0, from.1, AtFlags::empty()).is_ok()),
    }
    .with_context(|| format!("remove '{}'", from.1.display()))
}

/// It is closed to all others first: from then on nobody exchanges what has been compared.
fn remove_directory(from: At<'_>, copy: At<'_>, kept: &Stat) -> Result<bool> {
    let copied = openat(copy.0, copy.1, DIRECTORY, Mode::empty())?;
    let there = open_up(from, permissions(OPEN))?;
    // Another user's cannot be closed.
    let _ = set_mode_of(&there, OPEN);
    let mut is_gone = true;
    for name in names_in(&there)? {
        is_gone &= remove_copied((there.as_fd(), &name), (copied.as_fd(), &name))?;
    }
    let is_gone = is_gone && unlinkat(from.0, from.1, AtFlags::REMOVEDIR).is_ok();
    if !is_gone {
        let _ = set_mode_of(&there, all_bits(kept));
    }
    Ok(is_gone)
}

fn remove_file(from: At<'_>, copy: At<'_>) -> Result<bool> {
    let file = open(from)?;
    let before = fstat(&file)?;
    if !has_same_content(&file, &open(copy)?, &|| Ok(()))? || unlinkat(from.0, from.1, AtFlags::empty()).is_err() {
        return Ok(false);
    }
    let after = fstat(&file)?;
    let is_still = |about: &Stat| (about.st_size, about.st_mtime, about.st_mtime_nsec);
    if is_still(&before) == is_still(&after) {
        return Ok(true);
    }
    // Written in that very instant, by whoever had it open: it is there again.
    let again = make_file(from)?;
    copy_content(&file, &again, &|| Ok(()))?;
    set_mode_of(&again, all_bits(&before))?;
    again.sync_all()?;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::platform::set_mode_at;
    use crate::git::worktree::extents::PIECE;
    use rustix::fs::CWD;
    use std::fs;
    use std::fs::FileTimes;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn at(path: &Path) -> At<'_> {
        (CWD, path.as_os_str())
    }

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
        copy(at(&from), at(&to), &|| Ok(())).expect("copy it");
        assert!(is_same(at(&from), at(&to), &|| Ok(())).expect("compare them"));
        let times = ["run", "d", "d/file"].map(|name| {
            [&from, &to].map(|top| top.join(name).metadata().and_then(|about| about.modified()).expect("a time"))
        });
        assert!(times.iter().all(|[one, other]| one == other), "{times:?}");
        copy(at(&from), at(&to), &|| Ok(())).expect_err("something is there");
        fs::create_dir(top.path().join("odd")).expect("make a directory");
        let odd = ["odd", "not"].map(|name| top.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(odd[0].join("fifo")).status();
        assert!(made.expect("run mkfifo").success());
        let copied = copy(at(&odd[0]), at(&odd[1]), &|| Ok(()));
        if cfg!(target_os = "linux") {
            assert!(copied.and_then(|()| is_same(at(&odd[0]), at(&odd[1]), &|| Ok(()))).expect("a FIFO is made again"));
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
            copy(at(&from), at(&to), &|| Ok(())).expect("copy it");
            fs::set_permissions(from.join("d"), PermissionsExt::from_mode(0o755)).expect("set a mode");
            write(&from).expect("write to it");
            assert_eq!(remove_copied(at(&from), at(&to)).expect("remove it"), left.is_empty(), "{left:?}");
            let mut there: Vec<_> = stamp(at(&from)).into_iter().flatten().map(|(path, _)| path).collect();
            there.retain(|path| path != Path::new(""));
            assert_eq!(there, left.iter().map(PathBuf::from).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_link_that_somebody_puts_in_the_way_leads_nowhere() {
        let top = tempfile::tempdir().expect("make a directory");
        let [from, to, outside] = ["from", "to", "outside"].map(|name| top.path().join(name));
        tree(top.path());
        fs::create_dir(&outside).expect("make a directory");
        let stops = || {
            if to.join("d").exists() && !to.is_symlink() {
                fs::rename(&to, top.path().join("away")).expect("take it away");
                symlink(&outside, &to).expect("make a link");
            }
            Ok(())
        };
        copy(at(&from), at(&to), &stops).expect("what was begun is copied");
        assert!(to.is_symlink() && fs::read_dir(&outside).expect("look").next().is_none(), "nothing is made there");
        let away = top.path().join("away");
        assert!(is_same(at(&from), at(&away), &|| Ok(())).expect("compare them"));

        fs::set_permissions(&outside, PermissionsExt::from_mode(0o755)).expect("set a mode");
        fs::rename(from.join("d"), outside.join("d")).expect("move it");
        symlink(outside.join("d"), from.join("d")).expect("make a link");
        assert!(!remove_copied(at(&from), at(&away)).expect("remove it"));
        assert!(outside.join("d/file").exists() && outside.join("d/empty").exists());
        open_up(at(&to), permissions(OPEN)).expect_err("it is a link");
        set_mode_at(at(&to), permissions(OPEN)).expect_err("it is a link");
        fs::set_permissions(away.join("run"), PermissionsExt::from_mode(0o640)).expect("set a mode");
        open_up(at(&away.join("run")), permissions(OPEN)).expect_err("it is a file");
        assert_eq!(fs::metadata(away.join("run")).expect("look at it").permissions().mode() & 0o777, 0o640);
        assert_eq!(fs::metadata(&outside).expect("look at it").permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn whoever_asks_it_to_stop_need_not_wait_for_the_end_of_a_large_file() {
        let top = tempfile::tempdir().expect("make a directory");
        let [from, to] = ["from", "to"].map(|name| top.path().join(name));
        fs::write(&from, vec![1; 5 * PIECE]).expect("make a file");
        let asked = std::cell::Cell::new(0);
        let stops = || {
            asked.set(asked.get() + 1);
            anyhow::ensure!(asked.get() != 3, "stop");
            Ok(())
        };
        copy(at(&from), at(&to), &stops).expect_err("it stops");
        assert_eq!(to.metadata().expect("there is half of it").len(), PIECE as u64);
        fs::remove_file(&to).expect("remove it");
        copy(at(&from), at(&to), &|| Ok(())).expect("copy it");
        asked.set(0);
        is_same(at(&from), at(&to), &stops).expect_err("it stops");
        assert!(is_same(at(&from), at(&to), &|| Ok(())).expect("compare them"));
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
        for (number, change) in changes.iter().enumerate() {
            let top = tempfile::tempdir().expect("make a directory");
            let (from, to) = (tree(top.path()), top.path().join("to"));
            copy(at(&from), at(&to), &|| Ok(())).expect("copy it");
            let before = stamp(at(&from)).expect("look at it");
            assert_eq!(stamp(at(&from)).expect("look at it"), before, "to look changes nothing");
            change(&from).expect("change it");
            assert!(!is_same(at(&from), at(&to), &|| Ok(())).expect("compare them"), "change {number} shows");
            assert_ne!(stamp(at(&from)).expect("look at it"), before, "and in the stamp, {number}");
        }
    }
}
