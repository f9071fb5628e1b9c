//! Making files and directories in the worktree, beside their places and with their final modes.

use crate::git::repo::platform::{
    At, access_list, exchange, remove_access_list, rename_away, rename_to_nothing, set_mode_at,
};
use crate::git::worktree::stat::{OPEN, mode_of, permissions};
use crate::git::worktree::{DIRECTORY, Place, Worktree};
use crate::model::checkpoint::{FileState, Kind};
use anyhow::{Context, Result, bail};
use gix::bstr::BStr;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

impl Worktree<'_> {
    /// Makes a file or link under another name in the directory of a path, with its final mode; `fill` writes its
    /// content.
    pub fn make_beside(
        &self,
        path: &BStr,
        name: &OsStr,
        state: &FileState,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        let Place::In(directory, place) = self.place(path)? else {
            bail!("'{path}' has no directory to be in");
        };
        let made = make_file(&directory, (name, place), state, fill);
        if made.is_err() {
            // The error to report is the one above.
            let _ = rustix::fs::unlinkat(&directory, name, AtFlags::empty());
        }
        made.with_context(|| format!("write '{path}'"))
    }

    /// Changes the permission bits of a file that is no link; says whether it had the old ones, and is still what the path
    /// leads to. The file that was looked at is changed, not what another program may have put into its place.
    pub fn change_mode(&self, path: &BStr, from: u32, to: u32) -> Result<bool> {
        let Place::In(directory, name) = self.place(path)? else {
            return Ok(false);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let changed = || -> rustix::io::Result<bool> {
            let file = match openat(&directory, name, flags, Mode::empty()) {
                // Even its owner may not read this file.
                Err(Errno::ACCESS) => None,
                opened => Some(opened?),
            };
            let now = || file.as_ref().map_or_else(|| statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW), fstat);
            let before = now()?;
            if mode_of(&before) != from {
                return Ok(false);
            }
            match &file {
                Some(file) => set_mode_of(file, to)?,
                None => set_mode_at((directory.as_fd(), name), permissions(to))?,
            }
            let there = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok((there.st_dev, there.st_ino, mode_of(&there)) == (before.st_dev, before.st_ino, to))
        };
        match changed() {
            Err(Errno::NOENT | Errno::LOOP) => Ok(false),
            outcome => outcome.with_context(|| format!("set the mode of '{path}'")),
        }
    }

    /// Sets the permission bits of a file or directory.
    pub fn set_mode(&self, path: &BStr, mode: u32) -> Result<()> {
        let Place::In(directory, name) = self.place(path)? else {
            bail!("'{path}' is not there");
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&directory, name, flags, Mode::empty()) {
            Ok(fd) => set_mode_of(&fd, mode),
            // Even its owner may not read this file.
            Err(Errno::ACCESS) => set_mode_at((directory.as_fd(), name), permissions(mode)),
            Err(error) => Err(error),
        }
        .with_context(|| format!("set the mode of '{path}'"))
    }

    /// Makes a directory with this mode, first under the other name beside it, unless there is one.
    pub fn make_directory(&self, path: &BStr, mode: u32, temporary: &OsStr) -> Result<()> {
        if self.open_directory(path)?.is_some() {
            return Ok(());
        }
        let Place::In(directory, name) = self.place(path)? else {
            bail!("'{path}' has no directory to be in");
        };
        // A rename of a directory replaces nothing, or an empty one.
        let outcome = rustix::fs::mkdirat(&directory, temporary, Mode::from_raw_mode(0o700))
            .and_then(|()| openat(&directory, temporary, DIRECTORY, Mode::empty()))
            .and_then(|fd| set_mode_of(&fd, mode))
            .and_then(|()| rustix::fs::renameat(&directory, temporary, &directory, name));
        if outcome.is_err() {
            // The error to report is the one above.
            let _ = rustix::fs::unlinkat(&directory, temporary, AtFlags::REMOVEDIR);
        }
        outcome.with_context(|| format!("make directory '{path}'"))
    }

    /// Makes two files in this directory, under these names, lets them change places and names there, and removes them, and
    /// a directory too if there are to be any: what the system refuses of that is known before anything is changed.
    pub fn rehearse(&self, path: &BStr, mode: u32, names: &[OsString; 3], has_directories: bool) -> Result<()> {
        let Some(directory) = self.open_directory(path)? else { return Ok(()) };
        let [first, second, third] = names.each_ref().map(|name| (directory.as_fd(), name.as_os_str()));
        let state = FileState { kind: Kind::of_mode(mode), id: gix::ObjectId::null(gix::hash::Kind::Sha1), mode };
        let tried = make_file(&directory, (first.1, first.1), &state, |_| Ok(()))
            .and_then(|()| Ok(rename_to_nothing(first.0, first.1, second.0, second.1)?))
            .and_then(|()| make_file(&directory, (first.1, first.1), &state, |_| Ok(())))
            .and_then(|()| Ok(exchange(first, second, third)?))
            .and_then(|()| Ok(rustix::fs::unlinkat(&directory, second.1, AtFlags::empty())?))
            .and_then(|()| Ok(rustix::fs::unlinkat(&directory, third.1, AtFlags::empty())?));
        let tried = match tried {
            Ok(()) if has_directories => rustix::fs::mkdirat(&directory, second.1, Mode::from_raw_mode(0o700))
                .and_then(|()| rustix::fs::unlinkat(&directory, second.1, AtFlags::REMOVEDIR))
                .map_err(Into::into),
            tried => tried,
        };
        if tried.is_err() {
            for name in names {
                // The error to report is the one above.
                let _ = rustix::fs::unlinkat(&directory, name, AtFlags::empty());
                let _ = rustix::fs::unlinkat(&directory, name, AtFlags::REMOVEDIR);
            }
        }
        tried.with_context(|| format!("write a file in '{}'", if path.is_empty() { ".".into() } else { path }))
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
        let here = (directory.as_fd(), name);
        let there = (rustix::fs::CWD, store.as_os_str());
        let (from, to) = if out { (here, there) } else { (there, here) };
        let moved =
            || if out { rename_away(here, there) } else { rename_to_nothing(there.0, there.1, &directory, name) };
        let moved = moved().or_else(|error| while_open(from, to, error, moved));
        moved.with_context(|| format!("move '{path}' {}", if out { "aside" } else { "back" }))
    }

    /// Deletes files, links and empty directories of a directory whose names begin so.
    pub fn sweep(&self, path: &BStr, beginning: &str) -> Result<()> {
        let Some(fd) = self.open_directory(path)? else {
            return Ok(());
        };
        for entry in rustix::fs::Dir::read_from(&fd)? {
            let entry = entry?;
            if entry.file_name().to_bytes().starts_with(beginning.as_bytes()) {
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

/// Renames a directory that its owner may not write to, once more, while they may: another one is above it then, which is
/// written in it.
fn while_open(
    from: At<'_>,
    to: At<'_>,
    error: Errno,
    rename: impl FnOnce() -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let stat = statat(from.0, from.1, AtFlags::SYMLINK_NOFOLLOW)?;
    let mode = mode_of(&stat);
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
    if error != Errno::ACCESS || !is_directory || !is_own || mode & OPEN == OPEN {
        return Err(error);
    }
    let set = |at, mode| set_mode_at(at, permissions(mode));
    set(from, mode | OPEN)?;
    match rename() {
        Ok(()) => set(to, mode),
        failed => set(from, mode).and(failed),
    }
}

fn make_file(
    directory: &OwnedFd,
    (name, place): (&OsStr, &OsStr),
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
    // Private until it is complete. The mode is set explicitly, since the umask would remove bits.
    let mut made = File::from(openat(directory, name, flags, Mode::from_raw_mode(0o600))?);
    fill(&mut made)?;
    let permitted = for_those_who_may(directory, [name, place], &made, state.mode)?;
    set_mode_of(&made, permitted)?;
    Ok(())
}

/// A mode without the bits that would give a new file to others than those of whom they spoke: its group's, where the file whose place
/// it takes has another group or another access list. Owners, groups and lists themselves are taken from nobody: whoever else may
/// write in the directory could have put theirs there. Where nothing is there, it is a new file as any other one.
fn for_those_who_may(directory: &OwnedFd, [name, place]: [&OsStr; 2], file: &File, mut mode: u32) -> Result<u32> {
    let own = fstat(file)?;
    if own.st_gid != rustix::process::getegid().as_raw() {
        mode &= !0o2000;
    }
    let there = statat(directory, place, AtFlags::SYMLINK_NOFOLLOW).ok().filter(|_| place != name);
    let Some(there) = there.filter(|there| FileType::from_raw_mode(there.st_mode) == FileType::RegularFile) else {
        return Ok(mode);
    };
    let lists = [name, place].map(|name| access_list(directory, name));
    if there.st_gid == own.st_gid && lists[0] == lists[1] {
        return Ok(mode);
    }
    if lists[0].is_some() {
        remove_access_list(file)?;
    }
    let others = mode & 0o007;
    Ok((mode & !0o070) | (mode & (others << 3)))
}

/// Sets the permission bits of an open file. A file system that has the same for all files may refuse: where they are
/// these already, that is no failure.
pub fn set_mode_of(file: impl AsFd, mode: u32) -> rustix::io::Result<()> {
    let Err(error) = rustix::fs::fchmod(&file, permissions(mode)) else { return Ok(()) };
    if fstat(&file).is_ok_and(|stat| mode_of(&stat) == mode) { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Code, Refusal};
    use crate::git::repo::scratch::TEMPORARY;
    use crate::git::repo::testing::Fixture;
    use crate::git::worktree::exchange::Spot;
    use gix::bstr::ByteSlice;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    fn state(kind: Kind, mode: u32) -> FileState {
        FileState { kind, id: gix::ObjectId::null(gix::hash::Kind::Sha1), mode }
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).expect("list a directory");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    const NEW: &str = ".oxundo-tmp-1-new-1";
    const OUT: &str = ".oxundo-tmp-1-out-1";

    /// Puts a file or link at a path: over the file or link that is there, or only where nothing is.
    fn write(
        worktree: Worktree<'_>,
        path: &BStr,
        state: &FileState,
        replace: bool,
        fill: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        worktree.make_beside(path, OsStr::new(NEW), state, fill)?;
        let [ready, out] = [NEW, OUT].map(|name| Spot::Beside(name.into()));
        let placed = if replace {
            worktree.exchange(path, &ready, std::slice::from_ref(&out)).map(|out| out.is_some())
        } else {
            worktree.put(path, &ready)
        };
        if !placed.as_ref().is_ok_and(|placed| *placed) {
            worktree.delete_at(path, &ready)?;
            placed?;
            bail!("something is there, or nothing");
        }
        let seen = worktree.look_at(path, &out, gix::hash::Kind::Sha1)?;
        if seen.is_some_and(|seen| seen.state.is_none()) {
            worktree.exchange(path, &out, std::slice::from_ref(&ready))?;
            worktree.delete_at(path, &ready)?;
            bail!("a directory came out");
        }
        worktree.delete_at(path, &out)
    }

    fn delete(worktree: Worktree<'_>, path: &BStr) -> Result<()> {
        let Some(out) = worktree.take_out(path, &[Spot::Beside(OUT.into())])? else { return Ok(()) };
        worktree.delete_at(path, &out).or_else(|error| worktree.put(path, &out).and(Err(error)))
    }

    /// All that changes something, by a path.
    fn changes(worktree: Worktree<'_>, path: &BStr, store: &Path) -> Vec<(&'static str, Result<()>)> {
        let file = state(Kind::File, 0o644);
        vec![
            ("write", write(worktree, path, &file, false, |out| Ok(out.write_all(b"new")?))),
            ("replace", write(worktree, path, &file, true, |out| Ok(out.write_all(b"new")?))),
            ("link", write(worktree, path, &state(Kind::Symlink, 0), true, |out| Ok(out.write_all(b"new")?))),
            ("mode", worktree.set_mode(path, 0o600)),
            ("changed mode", worktree.change_mode(path, 0o644, 0o600).map(drop)),
            ("delete", delete(worktree, path)),
            ("make directory", worktree.make_directory(path, 0o755, OsStr::new(NEW))),
            ("remove directory", worktree.remove_empty_directory(path).map(drop)),
            ("aside", worktree.move_aside(path, store, true)),
            ("sweep", worktree.sweep(path, TEMPORARY)),
        ]
    }

    #[test]
    fn a_file_comes_whole_and_with_its_mode_in_one_step() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        f.write("d/a", "old");
        for (kind, mode) in [(Kind::File, 0o666), (Kind::Executable, 0o4755), (Kind::File, 0o400), (Kind::File, 0)] {
            let fill = |out: &mut dyn Write| {
                out.write_all(b"half")?;
                assert_eq!(std::fs::read(f.path("d/a"))?, b"old", "until it is whole, what was there is there");
                let beside = names(&f.path("d"));
                let [beside, _] = &beside[..] else { panic!("one file is written beside it: {beside:?}") };
                assert!(beside.starts_with(TEMPORARY), "what a kill leaves is known by its name: {beside}");
                assert_eq!(f.mode(format!("d/{beside}")), 0o600, "nobody else reads what is not whole yet");
                Ok(out.write_all(b" and half")?)
            };
            write(worktree, "d/a".into(), &state(kind, mode), true, fill).expect("write a file");
            assert_eq!(names(&f.path("d")), ["a"], "nothing is left beside it");
            assert_eq!(f.mode("d/a"), mode, "the umask takes nothing away");
            worktree.set_mode("d/a".into(), 0o640).expect("set the mode");
            assert_eq!(f.mode("d/a"), 0o640, "even of a file that nobody may read");
            assert_eq!(std::fs::read(f.path("d/a")).expect("read a file"), b"half and half");
            std::fs::write(f.path("d/a"), "old").expect("write a file");
        }
    }

    #[test]
    fn a_link_holds_the_very_bytes_of_its_target_and_is_never_followed() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        f.write("target", "kept");
        for target in [b"target".as_slice(), b"nowhere/\xff\n", b"../repo/target"] {
            let fill = |out: &mut dyn Write| Ok(out.write_all(target)?);
            let there = f.path("link").is_symlink();
            write(worktree, "link".into(), &state(Kind::Symlink, 0), there, fill).expect("write a link");
            let found = std::fs::read_link(f.path("link")).expect("read a link");
            assert_eq!(found.as_os_str().as_bytes(), target);
        }
        worktree.set_mode("link".into(), 0o600).expect_err("a link has no mode of its own");
        let mode = f.mode("target");
        let fill = |out: &mut dyn Write| Ok(out.write_all(b"file")?);
        write(worktree, "link".into(), &state(Kind::File, 0o600), true, fill).expect("put a file in its place");
        assert!(f.path("link").symlink_metadata().expect("look at it").is_file(), "the link itself is replaced");
        assert_eq!(std::fs::read(f.path("target")).expect("read a file"), b"kept", "what it led to stays");
        assert_eq!(f.mode("target"), mode, "with its mode");
        symlink("target", f.path("other")).expect("make a link");
        delete(worktree, "other".into()).expect("delete a link");
        assert!(f.path("target").exists() && !f.path("other").is_symlink(), "a link is deleted, not its target");
    }

    #[test]
    fn what_is_there_is_only_replaced_where_that_was_meant() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        let put = |path: &str, kind, replace| {
            write(worktree, path.into(), &state(kind, 0o644), replace, |out| Ok(out.write_all(b"new")?))
        };
        f.write("file", "mine");
        f.write("directory/inner", "mine");
        symlink("nowhere", f.path("link")).expect("make a link");
        std::fs::create_dir(f.path("empty")).expect("make a directory");
        for path in ["file", "directory", "link", "empty"] {
            for kind in [Kind::File, Kind::Symlink] {
                put(path, kind, false).expect_err("something is there");
            }
        }
        put("directory", Kind::File, true).expect_err("a file takes no directory's place");
        put("empty", Kind::File, true).expect_err("not even that of an empty one");
        put("file/below", Kind::File, true).expect_err("there is no such directory");
        put("none/below", Kind::File, true).expect_err("there is no such directory");
        assert_eq!(std::fs::read(f.path("file")).expect("read a file"), b"mine");
        assert_eq!(std::fs::read_link(f.path("link")).expect("read a link"), PathBuf::from("nowhere"));
        assert_eq!(names(f.repo.top()), [".git", "directory", "empty", "file", "link"], "nothing is left behind");
        assert_eq!(names(&f.path("directory")), ["inner"]);
        put("new", Kind::File, false).expect("nothing is there");
        assert_eq!(std::fs::read(f.path("new")).expect("read a file"), b"new");
    }

    #[test]
    fn content_that_cannot_be_had_leaves_all_as_it_was() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        f.write("d/there", "mine");
        for (path, replace) in [("d/there", true), ("d/there", false), ("d/new", false), ("d/new", true)] {
            for kind in [Kind::File, Kind::Executable, Kind::Symlink] {
                let fill = |out: &mut dyn Write| {
                    out.write_all(b"half")?;
                    bail!("the object is gone")
                };
                let error = write(worktree, path.into(), &state(kind, 0o644), replace, fill).expect_err("it fails");
                assert_eq!(format!("{error:#}"), format!("write '{path}': the object is gone"), "it says why");
                assert_eq!(names(&f.path("d")), ["there"], "nothing is left behind");
            }
        }
        assert_eq!(std::fs::read(f.path("d/there")).expect("read a file"), b"mine");
    }

    #[test]
    fn nothing_is_reached_through_a_link() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        for place in [f.outside().join("away"), f.path("inside")] {
            std::fs::create_dir_all(place.join("empty")).expect("make a directory");
            std::fs::create_dir(place.join("d")).expect("make a directory");
            for file in ["file", "d/file", ".oxundo-tmp-1-1"] {
                std::fs::write(place.join(file), "mine").expect("write a file");
            }
            std::fs::set_permissions(place.join("file"), PermissionsExt::from_mode(0o644)).expect("set a mode");
            let link = f.path("link");
            symlink(&place, &link).expect("make a link");
            let before = (names(&place), names(&place.join("d")));
            for path in ["link", "link/file", "link/new", "link/empty", "link/d", "link/d/file", "link/d/new"] {
                for (what, _) in changes(worktree, path.into(), &f.outside().join("store")) {
                    let now = (names(&place), names(&place.join("d")));
                    assert_eq!(now, before, "{what} of {path} stays on this side of the link");
                }
                // What stands there by now may have been taken out of the link's place.
                let _ = std::fs::remove_dir(&link).or_else(|_| std::fs::remove_file(&link));
                let _ = std::fs::remove_file(f.outside().join("store"));
                symlink(&place, &link).expect("make a link");
            }
            let about = place.join("file").metadata().expect("look at a file");
            assert_eq!(about.permissions().mode() & 0o7777, 0o644, "no mode was set");
            assert_eq!(std::fs::read(place.join("file")).expect("read a file"), b"mine");
            std::fs::remove_file(&link).expect("remove the link");
        }
    }

    #[test]
    fn no_name_leads_out_of_the_worktree_or_into_a_git_directory() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        f.write("a/b", "mine");
        f.write("sub/.Git/config", "mine");
        let head = std::fs::read(f.repo.git_dir().join("HEAD")).expect("read HEAD");
        let bad = [
            &b".."[..],
            b"../x",
            b"a/../../x",
            b"a/..",
            b".",
            b"./a",
            b"a/./b",
            b"/a",
            b"//",
            b"a//b",
            b"a/",
            b".git",
            b".git/HEAD",
            b".GIT/HEAD",
            b".giT",
            b"sub/.Git/config",
            b"sub/.git",
            b"a\0b",
        ];
        for path in bad {
            for (what, done) in changes(worktree, path.as_bstr(), &f.outside().join("store")) {
                let error = done.expect_err("it is refused");
                let refusal = error.downcast::<Refusal>().expect("a refusal");
                assert_eq!(refusal.code, Code::Corrupt, "{what} of {:?}", path.as_bstr());
            }
        }
        for (what, done) in changes(worktree, b"".into(), &f.outside().join("store")) {
            assert!(done.is_err() || ["make directory", "sweep"].contains(&what), "the top stays: {what}");
        }
        assert_eq!(names(f.outside()), ["repo"], "nothing came to be outside");
        assert_eq!(names(f.repo.top()), [".git", "a", "sub"]);
        assert_eq!(std::fs::read(f.repo.git_dir().join("HEAD")).expect("read HEAD"), head);
        assert_eq!(std::fs::read(f.path("sub/.Git/config")).expect("read a file"), b"mine");
        for path in [".gitignore", ".github/x", "a/.git-x", "...", "-x", " "] {
            let parent = path.split_once('/').map(|(parent, _)| parent);
            parent
                .map(|parent| worktree.make_directory(parent.into(), 0o755, OsStr::new(NEW)))
                .transpose()
                .expect("make a directory");
            let fill = |out: &mut dyn Write| Ok(out.write_all(b"new")?);
            write(worktree, path.into(), &state(Kind::File, 0o644), false, fill).expect("it only looks alike");
            assert_eq!(std::fs::read(f.path(path)).expect("read a file"), b"new");
        }
    }

    #[test]
    fn only_files_and_links_are_deleted() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        f.write("d/file", "");
        delete(worktree, "d".into()).expect_err("a directory is no file");
        assert!(f.path("d/file").exists());
        delete(worktree, "d/file/below".into()).expect("nothing is there");
        assert!(f.path("d/file").exists(), "what stands above stays");
        delete(worktree, "d/file".into()).expect("delete a file");
        delete(worktree, "d/file".into()).expect("it is gone already");
        delete(worktree, "none/file".into()).expect("so is its directory");
        assert_eq!(names(f.repo.top()), [".git", "d"]);
        assert_eq!(names(&f.path("d")), [""; 0]);
    }

    #[test]
    fn a_directory_is_made_with_its_mode_and_one_that_is_there_stays() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        for mode in [0o777, 0o700, 0o1755, 0o500] {
            worktree.make_directory("d".into(), mode, OsStr::new(NEW)).expect("make a directory");
            assert_eq!(f.mode("d"), mode, "the umask takes nothing away");
            worktree.make_directory("d".into(), 0o711, OsStr::new(NEW)).expect("there is one");
            assert_eq!(f.mode("d"), mode, "it stays as it is");
            assert!(worktree.remove_empty_directory("d".into()).expect("remove a directory"), "it is gone");
        }
        f.write("file", "mine");
        symlink("/", f.path("link")).expect("make a link");
        for path in ["file", "link"] {
            worktree.make_directory(path.into(), 0o755, OsStr::new(NEW)).expect_err("something else is there");
            assert!(!worktree.remove_empty_directory(path.into()).expect("nothing fails"), "{path} is no directory");
        }
        worktree
            .make_directory("none/d".into(), 0o755, OsStr::new(NEW))
            .expect_err("there is no directory to make it in");
        assert_eq!(names(f.repo.top()), [".git", "file", "link"], "nothing is left behind");
    }

    #[test]
    fn only_an_empty_directory_is_removed() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        f.write("d/e/file", "");
        let remove = |path: &str| worktree.remove_empty_directory(path.into()).expect("nothing fails");
        assert!(!remove("d") && !remove("d/e"), "there is something in them");
        std::fs::remove_file(f.path("d/e/file")).expect("remove a file");
        assert!(!remove("d"), "there is a directory in it");
        assert!(remove("d/e") && remove("d") && remove("d"), "gone is gone");
        assert!(remove("none/d"), "what cannot be there is gone too");
        assert_eq!(names(f.repo.top()), [".git"]);
    }

    #[test]
    fn what_is_moved_aside_comes_back_as_it_was_and_over_nothing() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        f.write("d/big/inner", "one");
        f.write("taken", "two");
        let store = f.outside().join("aside/1/0");
        std::fs::create_dir_all(f.outside().join("aside/1")).expect("make a directory");
        worktree.move_aside("d/big".into(), &store, true).expect("move a directory");
        assert_eq!((names(&f.path("d")), names(&store)), (vec![], vec!["inner".to_owned()]));
        worktree.move_aside("taken".into(), &store, true).expect_err("its place is taken");
        worktree.move_aside("taken".into(), &store, false).expect_err("something is there");
        worktree.move_aside("none".into(), &f.outside().join("aside/1/1"), true).expect_err("nothing is there");
        worktree.move_aside("none/big".into(), &store, false).expect_err("there is no directory to be in");
        assert_eq!(std::fs::read(f.path("taken")).expect("read a file"), b"two");
        worktree.move_aside("d/big".into(), &store, false).expect("move it back");
        assert_eq!(std::fs::read(f.path("d/big/inner")).expect("read a file"), b"one");
        assert!(!store.exists(), "it is in one place only");
    }

    #[test]
    fn a_sweep_takes_what_a_kill_left_and_nothing_else() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        for name in ["1-new-1", "1-new-2", "1-out-1", "2-new-1", "notes", "1-new", "1-newer"] {
            f.write(format!("d/{TEMPORARY}{name}"), "");
        }
        f.write(format!("d/x{TEMPORARY}1-new-1"), "");
        f.write(format!("d/e/{TEMPORARY}1-new-1"), "");
        symlink("x", f.path("d/.oxundo-tmp-1-new-3")).expect("make a link");
        std::fs::create_dir(f.path("d/.oxundo-tmp-1-new-4")).expect("make a directory");
        worktree.sweep("d".into(), ".oxundo-tmp-1-new-").expect("sweep");
        let kept = ["1-new", "1-newer", "1-out-1", "2-new-1", "notes"].map(|name| format!("{TEMPORARY}{name}"));
        let rest = ["e".to_owned(), format!("x{TEMPORARY}1-new-1")];
        assert_eq!(names(&f.path("d")), [&kept[..], &rest].concat());
        assert_eq!(names(&f.path("d/e")), [".oxundo-tmp-1-new-1"], "only in the directory itself");
        worktree.sweep("none".into(), TEMPORARY).expect("there is nothing to sweep");
        worktree.sweep("d/.oxundo-tmp-notes".into(), TEMPORARY).expect("a file has nothing in it");
        assert!(f.path("d/.oxundo-tmp-notes").exists());
    }
}
