//! Hears of changes in directories of the worktree, so that nobody has to look again and again. What is heard is a reason to
//! look, and never what is looked for: what cannot be heard is looked for.

use gix::bstr::BString;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What was heard since the last time.
#[derive(Debug, Default)]
pub struct Heard {
    /// Whether anything changed.
    pub is_any: bool,
    /// Whether not all of it was told, so that it is not known what is being written.
    pub is_lost: bool,
    /// Whether directories came, went or moved.
    pub has_directories: bool,
    /// The files.
    pub files: BTreeSet<BString>,
}

/// What to listen to.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "nothing is listened to there"))]
pub struct Places<'a> {
    /// The top of the worktree.
    pub top: &'a Path,
    /// Directories below it; the top itself is one of them.
    pub directories: &'a BTreeSet<BString>,
    /// Directories of git's in which something changes when HEAD, the index or the stash list does.
    pub git: &'a [PathBuf],
}

/// Why waiting was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Nobody is to wait any longer.
    Stopped,
    /// There is something to hear.
    Heard,
    /// The time is over.
    Quiet,
}

/// Waits until there is something to hear, but no longer than this.
pub fn wait(watch: Option<&Watch>, stop: BorrowedFd<'_>, limit: Option<Duration>) -> io::Result<Woken> {
    let limit = limit.map(|limit| Timespec::try_from(limit).map_err(|_| Errno::INVAL)).transpose()?;
    let mut all = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
    all.extend(watch.map(|watch| PollFd::from_borrowed_fd(watch.fd(), PollFlags::IN)));
    match poll(&mut all, limit.as_ref()) {
        // How long is left is not known: whoever waits for quiet waits once more.
        Err(Errno::INTR) => return Ok(Woken::Heard),
        polled => polled?,
    };
    let is_told = |at: usize| all.get(at).is_some_and(|one| !one.revents().is_empty());
    Ok(if is_told(0) {
        Woken::Stopped
    } else if is_told(1) {
        Woken::Heard
    } else {
        Woken::Quiet
    })
}

#[cfg(target_os = "linux")]
pub use linux::Watch;
#[cfg(not(target_os = "linux"))]
pub use nothing::Watch;

#[cfg(target_os = "linux")]
mod linux {
    use super::{BString, BTreeSet, BorrowedFd, Errno, Heard, Path, Places, io};
    use gix::bstr::ByteSlice;
    use rustix::fs::inotify::{CreateFlags, Event, ReadFlags, Reader, WatchFlags, add_watch, init, remove_watch};
    use std::collections::{HashMap, HashSet};
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::MetadataExt;

    /// What is told of a directory.
    const CHANGES: WatchFlags = WatchFlags::CREATE
        .union(WatchFlags::DELETE)
        .union(WatchFlags::MODIFY)
        .union(WatchFlags::ATTRIB)
        .union(WatchFlags::CLOSE_WRITE)
        .union(WatchFlags::MOVE)
        .union(WatchFlags::DELETE_SELF)
        .union(WatchFlags::MOVE_SELF)
        .union(WatchFlags::ONLYDIR)
        .union(WatchFlags::DONT_FOLLOW);

    /// So many names of files that do not count are known at most.
    const LEFT_OUT: usize = 10_000;

    /// A directory that is listened to.
    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Place {
        /// One of the worktree's.
        Worktree(BString),
        /// One of git's.
        Git,
    }

    /// Listens by inotify.
    pub struct Watch {
        inotify: OwnedFd,
        places: HashMap<i32, Place>,
        /// Files that were written and are still open for that.
        writing: BTreeSet<BString>,
        /// The last one that was renamed while it was being written.
        moved: Option<u32>,
        /// The last directory that was renamed, and what it was called.
        moved_directory: Option<(u32, BString)>,
        /// Files of which no look takes notice.
        left_out: HashSet<BString>,
    }

    impl Watch {
        /// Begins to listen, to nothing yet.
        pub fn new() -> io::Result<Self> {
            Ok(Self {
                inotify: init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
                places: HashMap::new(),
                writing: BTreeSet::new(),
                moved: None,
                moved_directory: None,
                left_out: HashSet::new(),
            })
        }

        /// Becomes ready when there is something to hear.
        pub fn fd(&self) -> BorrowedFd<'_> {
            self.inotify.as_fd()
        }

        /// Listens to these directories and no others; says whether one of them was not listened to before. Fails where the
        /// system has no place for more.
        pub fn cover(&mut self, places: &Places<'_>) -> io::Result<bool> {
            let mut covered = HashMap::new();
            let in_worktree = |directory: &BString| {
                let path = places.top.join(OsStr::from_bytes(directory));
                (path, Place::Worktree(directory.clone()))
            };
            let of_git = places.git.iter().map(|path| (path.clone(), Place::Git));
            for (path, place) in places.directories.iter().map(in_worktree).chain(of_git) {
                match add_watch(&self.inotify, &path, CHANGES) {
                    Ok(number) => drop(covered.insert(number, place)),
                    // It has gone since: that is heard.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let is_new = covered.iter().any(|(number, place)| self.places.get(number) != Some(place));
            for number in self.places.keys().filter(|number| !covered.contains_key(number)) {
                // Of one that was deleted there is none any more.
                let _ = remove_watch(&self.inotify, *number);
            }
            self.places = covered;
            Ok(is_new)
        }

        /// The files that were written and are still open for that.
        pub fn writing(&self) -> &BTreeSet<BString> {
            &self.writing
        }

        /// What is not there is not being written: the directory in which it was may have been moved away.
        pub fn forget(&mut self, is_there: impl Fn(&BString) -> bool) {
            self.writing.retain(is_there);
        }

        /// What is told of this file is no reason to look: the look does not take it in.
        pub fn leave_out(&mut self, file: BString) {
            if self.left_out.len() > LEFT_OUT {
                self.left_out.clear();
            }
            self.writing.remove(&file);
            self.left_out.insert(file);
        }

        /// Hears all that there is to hear, without waiting.
        pub fn hear(&mut self, top: &Path) -> io::Result<Heard> {
            let (mut heard, mut buffer) = (Heard::default(), [MaybeUninit::uninit(); 1 << 14]);
            let inotify = self.inotify.try_clone()?;
            let mut reader = Reader::new(&inotify, &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) => self.take(top, &event, &mut heard),
                    Err(Errno::WOULDBLOCK) => return Ok(heard),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }

        fn take(&mut self, top: &Path, event: &Event<'_>, heard: &mut Heard) {
            let what = event.events();
            if what.contains(ReadFlags::QUEUE_OVERFLOW) {
                (heard.is_any, heard.is_lost) = (true, true);
                self.writing.clear();
                return;
            }
            let Some(place) = self.places.get(&event.wd()).filter(|_| !what.contains(ReadFlags::IGNORED)) else {
                return;
            };
            let name = event.file_name().map(|name| name.to_bytes().to_owned()).unwrap_or_default();
            let Place::Worktree(directory) = place else {
                heard.is_any |= tells_of_state(&name);
                return;
            };
            let separator: &[u8] = if directory.is_empty() { b"" } else { b"/" };
            let path = BString::from([directory.as_slice(), separator, &name].concat());
            if name.is_empty() || what.contains(ReadFlags::ISDIR) {
                if name != b".git" || !directory.is_empty() {
                    (heard.is_any, heard.has_directories) = (true, true);
                    self.follow_directory(path, what, event.cookie());
                }
                return;
            }
            self.follow(top, &path, what, event.cookie());
            if !self.left_out.contains(&path) {
                heard.is_any = true;
                heard.files.insert(path);
            }
        }

        /// Keeps up with the names of directories: what is being written in one, and what is heard of it, has its new name.
        fn follow_directory(&mut self, path: BString, what: ReadFlags, cookie: u32) {
            if what.contains(ReadFlags::MOVED_FROM) {
                self.moved_directory = Some((cookie, path));
            } else if what.contains(ReadFlags::MOVED_TO)
                && let Some((_, from)) = self.moved_directory.take_if(|(moved, _)| *moved == cookie)
            {
                self.writing = self.writing.iter().map(|file| renamed(file, &from, &path)).collect();
                for place in self.places.values_mut() {
                    if let Place::Worktree(directory) = place {
                        *directory = renamed(directory, &from, &path);
                    }
                }
            }
        }

        /// Keeps up with what is being written.
        fn follow(&mut self, top: &Path, path: &BString, what: ReadFlags, cookie: u32) {
            if what.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::CREATE | ReadFlags::MOVED_TO) {
                self.left_out.remove(path);
            }
            if what.contains(ReadFlags::MODIFY) || (what.contains(ReadFlags::CREATE) && is_new(top, path)) {
                self.writing.insert(path.clone());
            } else if what.contains(ReadFlags::MOVED_FROM) {
                self.moved = self.writing.remove(path).then_some(cookie);
            } else if what.contains(ReadFlags::MOVED_TO) {
                self.writing.remove(path);
                if self.moved.take_if(|moved| *moved == cookie).is_some() {
                    self.writing.insert(path.clone());
                }
            } else if what.intersects(ReadFlags::CLOSE_WRITE | ReadFlags::DELETE) {
                self.writing.remove(path);
            }
        }
    }

    /// What a path is called once a directory is called something else.
    fn renamed(path: &BString, from: &BString, to: &BString) -> BString {
        match path.strip_prefix(from.as_slice()) {
            Some(rest) if rest.is_empty() || rest.starts_with(b"/") => [to.as_slice(), rest].concat().into(),
            _ => path.clone(),
        }
    }

    /// Whether a file has just been made, by whoever has it open: one that has another name, or is none, nobody need have open.
    fn is_new(top: &Path, path: &BString) -> bool {
        let about = top.join(OsStr::from_bytes(path.as_bytes())).symlink_metadata();
        about.is_ok_and(|about| about.is_file() && about.len() == 0 && about.nlink() == 1)
    }

    /// Whether something in a directory of git's tells of HEAD, the index, a branch or the stash list.
    fn tells_of_state(name: &[u8]) -> bool {
        !name.ends_with(b".lock") && !name.starts_with(b"oxundo") && name != b"notes"
    }
}

#[cfg(not(target_os = "linux"))]
mod nothing {
    use super::{BString, BTreeSet, BorrowedFd, Heard, Path, Places, io};
    use std::convert::Infallible;

    /// There is no other way to listen yet than to look.
    pub struct Watch(Infallible);

    impl Watch {
        pub fn new() -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn fd(&self) -> BorrowedFd<'_> {
            match self.0 {}
        }

        pub fn cover(&mut self, _: &Places<'_>) -> io::Result<bool> {
            match self.0 {}
        }

        pub fn writing(&self) -> &BTreeSet<BString> {
            match self.0 {}
        }

        pub fn forget(&mut self, _: impl Fn(&BString) -> bool) {
            match self.0 {}
        }

        pub fn leave_out(&mut self, _: BString) {
            match self.0 {}
        }

        pub fn hear(&mut self, _: &Path) -> io::Result<Heard> {
            match self.0 {}
        }
    }
}
