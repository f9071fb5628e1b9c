//! Repositories in the worktree, and directories that are not captured: only whether they change.

use crate::git::repo::{Top, refs};
use crate::git::scan::dircache::DirCache;
use crate::git::scan::found::{Difference, Scan, as_path, names_in};
use crate::git::scan::ignore::{Rules, read_rules};
use crate::git::scan::scanner::Scanner;
use crate::git::worktree::descent::Descent;
use crate::git::worktree::stat::file_state;
use crate::git::worktree::{DIRECTORY, Worktree};
use crate::model::checkpoint::Skipped;
use anyhow::Result;
use gix::bstr::{BStr, ByteSlice};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A file `.git` with more bytes leads nowhere.
const LONGEST: u64 = 1 << 14;

/// How the state of a directory begins.
const TREE_STATE: &str = "tree ";

/// A fingerprint of another repository, to tell whether it changed: its HEAD, its index, and what differs from the
/// index or is not in it. It is only read, and nothing that it configures is run.
pub fn repository_state(
    scanner: &Scanner<'_>,
    rules: &Rules,
    path: &BStr,
    scan: &dyn Fn(&Scanner<'_>, &mut Rules) -> Result<Scan>,
) -> Option<String> {
    let top = scanner.worktree.path().join(as_path(path));
    let repo = gix::open(&top).ok()?;
    let ignores_case = repo.filesystem_options().ok()?.ignore_case;
    let (top, index) = (Top::open(&top, ignores_case).ok()?, repo.index_or_empty().ok()?);
    let worktree = Worktree::at(&top);
    let mut rules = rules.elsewhere(read_rules(&repo.common_dir().join("info/exclude")).ok()?);
    let inside =
        Scanner { worktree, index: &index, directories: &DirCache::default(), monitor: None, read: None, ..*scanner };
    let scan = scan(&inside, &mut rules).ok()?;
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    let mut add =
        |path: &BStr, state: String| hasher.update(&[path.as_bytes(), b"\0", state.as_bytes(), b"\n"].concat());
    for entry in index.entries() {
        add(entry.path(&index), format!("{} {:o} {}", entry.id, entry.mode.bits(), entry.stage_raw()));
    }
    for (at, difference) in &scan.tracked {
        let entry = &index.entries()[*at];
        let path = entry.path(&index);
        let now = match difference {
            Difference::Gone => None,
            Difference::MaybeModified(_) | Difference::Holds(..) => worktree.state(path, entry.id.kind()).ok()?,
        };
        // A file that only looks different may look the same once git has refreshed its stat data.
        if now.is_none_or(|now| now.id != entry.id) {
            add(path, format!("{now:?}"));
        }
    }
    for file in &scan.untracked {
        let state = worktree.stat(file.path.as_bstr()).ok()?.and_then(|(stat, _)| file_state(&stat));
        add(file.path.as_bstr(), format!("{state:?}"));
    }
    for skipped in &scan.skipped {
        add(skipped.path.as_bstr(), format!("{:?}", skipped.state));
    }
    let head = refs::object(&repo, "HEAD".try_into().ok()?).ok()?;
    let head = head.map_or_else(|| "unborn".to_owned(), |id| id.to_string());
    Some(format!("{head} {}", hasher.try_finalize().ok()?))
}

/// A directory with a `.git` in it that is a repository, or points to one.
pub fn is_repository(fd: &OwnedFd, names: &[(Vec<u8>, FileType)]) -> bool {
    names.iter().any(|name| name.0 == b".git") && has_repository(fd)
}

/// As [`is_repository`], of a directory whose names nobody has read.
pub fn has_repository(fd: &OwnedFd) -> bool {
    let kind = statat(fd, c".git", AtFlags::empty()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::Directory) => is_git_directory(fd, b".git"),
        Ok(FileType::RegularFile) => git_file(fd).is_some_and(|place| is_git_directory(fd, &place)),
        // One that cannot be looked at may be one.
        Err(Errno::ACCESS) => true,
        _ => false,
    }
}

/// Where the file `.git` of a directory leads.
fn git_file(fd: &OwnedFd) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(fd, c".git", flags, Mode::empty()).ok()?);
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(text.strip_prefix(b"gitdir: ")?.trim_end_with(|c| c == '\n' || c == '\r').to_owned())
}

/// Whether git would take a directory for a git directory: that of a linked worktree has its objects elsewhere.
fn is_git_directory(fd: &OwnedFd, place: &[u8]) -> bool {
    let has = |name: &[u8]| statat(fd, [place, b"/", name].concat(), AtFlags::SYMLINK_NOFOLLOW).is_ok();
    has(b"HEAD") && (has(b"commondir") || has(b"objects") && has(b"refs"))
}

/// A fingerprint of a directory that is not captured, to tell whether anything in it changed: of the names below it, and the
/// sizes, times and modes of its files.
pub fn tree_state(worktree: Worktree<'_>, path: &BStr) -> Option<String> {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    let mut descent = Descent::begin(worktree, path).ok()??;
    // Changes in what cannot be read are not seen.
    let listed = |descent: &mut Descent<'_>| {
        let directory = descent.directory().ok().flatten();
        directory.and_then(|fd| names_in(fd).ok()).unwrap_or_default().into_iter()
    };
    let mut levels = vec![listed(&mut descent)];
    while let Some(names) = levels.last_mut() {
        let Some((name, kind)) = names.next() else {
            hasher.update(b"/");
            levels.pop();
            descent.leave();
            continue;
        };
        hasher.update(&name);
        if kind == FileType::Directory {
            if descent.enter(name.strip_suffix(b"/").unwrap_or(&name)).is_ok_and(|entered| entered) {
                levels.push(listed(&mut descent));
            }
        } else if let Ok(Some(fd)) = descent.directory()
            && let Ok(stat) = statat(fd, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW)
        {
            let state = format!("\0{} {}.{} {}\n", stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_mode);
            hasher.update(state.as_bytes());
        }
    }
    Some(format!("{TREE_STATE}{}", hasher.try_finalize().ok()?))
}

/// The repository that is in a directory, or the directory itself; of what cannot be read nobody knows.
pub fn repository_below(top: &Path) -> Option<PathBuf> {
    let mut rest = vec![top.to_owned()];
    while let Some(path) = rest.pop() {
        let mut is_one = false;
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            is_one |= entry.file_name() == ".git";
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                rest.push(entry.path());
            }
        }
        if is_one && openat(CWD, &path, DIRECTORY, Mode::empty()).is_ok_and(|fd| has_repository(&fd)) {
            return Some(path);
        }
    }
    None
}

/// The part of a skipped directory's state that tells whether anything in it changed.
pub fn whole_state(skipped: &Skipped) -> Option<String> {
    skipped.state.clone().filter(|state| state.starts_with(TREE_STATE))
}

/// The part of a skipped item's state that must still be the same when it is moved aside: a directory is moved
/// with everything in it.
pub fn own_state(skipped: &Skipped) -> Option<String> {
    skipped.state.as_deref().filter(|state| !state.starts_with(TREE_STATE)).map(own_part)
}

/// Likewise, of a state.
pub fn own_part(state: &str) -> String {
    // What else is in it tells which file it is.
    let own: Vec<&str> = state.split(' ').take(2).collect();
    own.join(" ")
}
