//! What would stop a plan in the middle, and a look can tell before anything is changed: what may not be changed, by its flags,
//! its owner or its directory, what is mounted, and a disk that is too full.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::repo::platform::{fixed_by, is_mount_point, mounted_in};
use crate::git::scan::found::as_path;
use crate::git::worktree::stat::mode_of;
use crate::git::worktree::{Worktree, is_denied};
use crate::model::bytes::{in_quotes, quoted_line, shell_word, size};
use crate::model::path::parents;
use crate::model::plan::{AsideMove, FileMove, Plan};
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use rustix::fs::{Access, AtFlags, FileType, Stat, accessat, fstat, fstatvfs};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// In a directory with this bit, a file is its owner's to remove, and the directory's owner's.
const STICKY: u32 = 0o1000;

/// Where so much is free, nobody counts how much is written.
const PLENTY: u64 = 8 << 30;

/// Refuses a plan that could not be carried out to its end.
pub fn check(repo: &Repo, plan: &Plan) -> Result<()> {
    let mut foresight = Foresight { repo, user: rustix::process::geteuid().as_raw(), looked: HashSet::new() };
    for file in &plan.files {
        foresight.file(file)?;
    }
    for directory in plan.directories.iter().filter(|directory| directory.from.is_none() != directory.to.is_none()) {
        foresight.entry(directory.path.as_bstr(), Place::Changes)?;
    }
    for aside in &plan.aside {
        let found = foresight.entry(aside.path.as_bstr(), Place::Changes)?;
        if aside.out && found.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory) {
            foresight.check_may_move(aside.path.as_bstr())?;
            check_no_mount(repo, aside.path.as_bstr())?;
            if crosses(repo, aside) {
                foresight.all_in(aside.path.as_bstr())?;
            }
        }
    }
    foresight.space(plan)
}

/// Whether what goes aside goes to another file system, as far as that can be told before.
fn crosses(repo: &Repo, aside: &AsideMove) -> bool {
    let device = |path: &Path| path.symlink_metadata().ok().map(|about| about.dev());
    let place = device(&repo.top().join(as_path(aside.path.as_bstr())));
    let store = repo.aside_path(&aside.store).ancestors().find_map(device);
    place.zip(store).is_some_and(|(place, store)| place != store)
}

/// Whether something else comes to a place, or nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Changes,
    Stays,
}

struct Foresight<'a> {
    repo: &'a Repo,
    user: u32,
    /// The directories that may be changed, and those that are still to come, in one that may.
    looked: HashSet<BString>,
}

impl Foresight<'_> {
    fn is_foreign(&self, stat: &Stat) -> bool {
        self.user != 0 && stat.st_uid != self.user
    }

    fn file(&mut self, file: &FileMove) -> Result<()> {
        let path = file.path.as_bstr();
        let place = if file.action() == "mode" { Place::Stays } else { Place::Changes };
        let found = self.entry(path, place)?;
        if file.from.is_some() && found.is_some_and(|stat| self.is_foreign(&stat)) {
            self.check_readable(path)?;
        }
        if place == Place::Stays && found.is_some_and(|stat| self.is_foreign(&stat)) {
            let message = format!("{} is another user's, who alone can change its mode", in_quotes(path));
            let mode = file.to.map_or(0, |to| to.mode);
            return Err(refusal(path, message, &to_its_owner(&format!("{mode:o}"), path)));
        }
        Ok(())
    }

    /// Whether all that is in a directory may be taken away, name by name: it goes to another file system.
    fn all_in(&mut self, path: &BStr) -> Result<()> {
        // One's own that is closed is opened for as long as it takes.
        let Ok(entries) = std::fs::read_dir(self.repo.top().join(as_path(path))) else { return Ok(()) };
        for entry in entries {
            let below = BString::from([path.as_bytes(), b"/", entry?.file_name().as_bytes()].concat());
            let Some(found) = self.entry(below.as_bstr(), Place::Changes)? else { continue };
            if self.is_foreign(&found) {
                self.check_readable(below.as_bstr())?;
            }
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
                self.all_in(below.as_bstr())?;
            }
        }
        Ok(())
    }

    /// What another user has closed cannot be looked at before it is replaced, nor brought back.
    fn check_readable(&self, path: &BStr) -> Result<()> {
        if !self.is_denied_at(path, Access::READ_OK)? {
            return Ok(());
        }
        let message = format!("{} is another user's now, and cannot be read", in_quotes(path));
        let found = Worktree::new(self.repo).stat(path)?;
        Err(refusal(path, message, &open_to_all_of(found.map(|(stat, _)| stat), "r", path)))
    }

    /// A directory that leaves its place is written to: another one is above it then.
    fn check_may_move(&self, path: &BStr) -> Result<()> {
        let found = Worktree::new(self.repo).stat(path)?;
        let is_foreign = found.as_ref().is_some_and(|(stat, _)| self.is_foreign(stat));
        if !is_foreign || !self.is_denied_at(path, Access::WRITE_OK)? {
            return Ok(());
        }
        let shown = in_quotes(path);
        let message = format!("{shown} is another user's directory, and only who may write to it can move it");
        Err(refusal(path, message, &open_to_all_of(found.map(|(stat, _)| stat), "w", path)))
    }

    fn is_denied_at(&self, path: &BStr, access: Access) -> Result<bool> {
        let Some((stat, directory)) = Worktree::new(self.repo).stat(path)? else { return Ok(false) };
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        Ok(!is_link && accessat(&directory, name, access, AtFlags::empty()) == Err(Errno::ACCESS))
    }

    /// Whether something may come to a path, or go from there; gives what is there.
    fn entry(&mut self, path: &BStr, place: Place) -> Result<Option<Stat>> {
        // What is in a directory that is closed is seen when it is open.
        let found = match Worktree::new(self.repo).stat(path) {
            Err(error) if is_denied(&error) => return Ok(None),
            found => found?,
        };
        if let Some((stat, directory)) = &found {
            let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
            let name = OsStr::from_bytes(name);
            check_fixed(path, directory, name)?;
            if place == Place::Changes && is_mount_point(directory, name) {
                return Err(mounted(path));
            }
            let above = fstat(directory)?;
            if mode_of(&above) & STICKY != 0 && self.is_foreign(&above) && self.is_foreign(stat) {
                let above = directory_at(parents(path).next());
                let [shown, place] = [path, above].map(in_quotes);
                let message =
                    format!("{shown} is another user's, and only they may remove what is theirs from {place}");
                return Err(refusal(path, message, &to_its_owner("-t", above)));
            }
        }
        self.directory(path)?;
        Ok(found.map(|(stat, _)| stat))
    }

    /// Whether what is in the nearest directory above a path may be changed.
    fn directory(&mut self, path: &BStr) -> Result<()> {
        let mut missing = Vec::new();
        for above in parents(path).chain([BStr::new("")]) {
            if self.looked.contains(above) {
                break;
            }
            let opened = match Worktree::new(self.repo).open_directory(above) {
                Err(error) if is_denied(&error) => return Ok(()),
                opened => opened?,
            };
            let Some(directory) = opened else {
                missing.push(above.to_owned());
                continue;
            };
            check_fixed(above, &directory, OsStr::new("."))?;
            // One's own is opened for as long as it takes.
            let stat = fstat(&directory)?;
            if self.is_foreign(&stat)
                && accessat(&directory, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())
                    == Err(Errno::ACCESS)
            {
                let above = directory_at(Some(above));
                let message = format!("{} is another user's, and nothing in it may be changed", in_quotes(above));
                return Err(refusal(path, message, &open_to_all_of(Some(stat), "wx", above)));
            }
            self.looked.insert(above.to_owned());
            break;
        }
        self.looked.extend(missing);
        Ok(())
    }

    /// Whether there is room for all that is written: what is there goes only when that is in its place.
    fn space(&self, plan: &Plan) -> Result<()> {
        let Ok(about) = fstatvfs(&self.repo.opened().fd) else { return Ok(()) };
        let blocks = if self.user == 0 { about.f_bfree } else { about.f_bavail };
        let (block, free) = (about.f_frsize.max(1), blocks.saturating_mul(about.f_frsize));
        // Where a file system does not say, it has no size either.
        if free >= PLENTY || about.f_blocks == 0 {
            return Ok(());
        }
        let mut needed = 0_u64;
        for file in plan.files.iter().filter(|file| file.action() == "write") {
            if let Some(to) = &file.to {
                needed += Objects::new(self.repo).size(to.id)?.div_ceil(block) * block;
            }
        }
        if needed <= free {
            return Ok(());
        }
        let message =
            format!("there is not enough space: {} are to be written, and {} are free", size(needed), size(free));
        Err(Refusal::new(Code::Io, message).hint("free some space, then run the same command again").into())
    }
}

fn check_fixed(path: &BStr, directory: &OwnedFd, name: &OsStr) -> Result<()> {
    let Some((word, flag)) = fixed_by(directory, name) else { return Ok(()) };
    let path = directory_at(Some(path));
    let message = format!("{} is {word}: nothing may change it", in_quotes(path));
    let line = quoted_line(&format!("chattr -{flag} {}", shell_word(&**path)));
    let hint = format!("run {line} at the top of the worktree, as the superuser, then the same command again");
    Err(refusal(path, message, &hint))
}

/// Refuses to move a directory in which something is mounted: that is in another place as well, and nobody may delete it here.
fn check_no_mount(repo: &Repo, path: &BStr) -> Result<()> {
    let Some(place) = mounted_in(&repo.top().join(as_path(path))) else { return Ok(()) };
    let top = repo.top().canonicalize().unwrap_or_else(|_| repo.top().to_owned());
    let place = place.strip_prefix(&top).unwrap_or(&place);
    Err(mounted(place.as_os_str().as_bytes().as_bstr()))
}

/// Nothing takes the place of what is mounted, as single files are in containers.
fn mounted(path: &BStr) -> anyhow::Error {
    let message = format!("something is mounted at {}: nothing can take its place", in_quotes(path));
    let line = quoted_line(&format!("umount {}", shell_word(&**path)));
    let hint = format!("run {line} at the top of the worktree, as the superuser, then the same command again");
    refusal(path, message, &hint)
}

fn directory_at(path: Option<&BStr>) -> &BStr {
    path.filter(|path| !path.is_empty()).unwrap_or(b".".into())
}

/// The hint that its owner has to change its mode.
fn to_its_owner(mode: &str, path: &BStr) -> String {
    let line = quoted_line(&format!("chmod {mode} {}", shell_word(&**path)));
    format!("have its owner run {line}, then run the same command again")
}

/// The hint that its owner has to open something, to those to whom the user belongs.
fn open_to_all_of(stat: Option<Stat>, bits: &str, path: &BStr) -> String {
    let groups = rustix::process::getgroups().unwrap_or_default();
    let own = rustix::process::getegid();
    let is_in_group = |group: u32| own.as_raw() == group || groups.iter().any(|one| one.as_raw() == group);
    let whom = if stat.is_some_and(|stat| is_in_group(stat.st_gid)) { "g" } else { "o" };
    to_its_owner(&format!("{whom}+{bits}"), path)
}

fn refusal(path: &BStr, message: String, hint: &str) -> anyhow::Error {
    Refusal::new(Code::Io, message).hint(hint).paths([path.to_owned()]).into()
}
