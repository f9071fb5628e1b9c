//! Waits until something may have changed in some directories, or nobody reads any more what would be said of it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::time::Duration;

/// So often is looked where nothing is told, and where not all may be.
const LOOK: Duration = Duration::from_millis(500);
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

/// Whether nobody ever reads what is written there. Where the output was closed when a program began, it has been given this.
pub fn goes_nowhere(out: BorrowedFd<'_>) -> bool {
    let Ok((out, null)) = rustix::fs::fstat(out).and_then(|out| Ok((out, rustix::fs::stat("/dev/null")?))) else {
        return false;
    };
    FileType::from_raw_mode(out.st_mode).is_char_device() && out.st_rdev == null.st_rdev
}

/// Who listens to directories, where the system tells of changes in them.
#[derive(Debug, Default)]
pub struct Listener {
    #[cfg(target_os = "linux")]
    inotify: Option<std::os::fd::OwnedFd>,
}

impl Listener {
    /// One that listens to nothing yet.
    pub fn new() -> Self {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{CreateFlags, init};
            Self { inotify: init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok() }
        }
        #[cfg(not(target_os = "linux"))]
        Self::default()
    }

    /// Listens to these directories from now on. Look after that, and wait then: what changes in between is heard.
    pub fn cover(&mut self, places: &[PathBuf]) {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::inotify::{WatchFlags, add_watch};
            let changes = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::CLOSE_WRITE | WatchFlags::MOVE;
            let Some(inotify) = &self.inotify else { return };
            // Without a place for one more, it is looked at all the same, only later.
            if places.iter().any(|place| add_watch(inotify, place, changes | WatchFlags::ONLYDIR).is_err()) {
                self.inotify = None;
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = places;
    }

    /// Waits until there is a reason to look; says whether somebody still reads `out`.
    pub fn wait(&mut self, out: BorrowedFd<'_>) -> io::Result<bool> {
        let told = self.told();
        let limit = if told.is_some() { LOOK_ANYWAY } else { LOOK };
        let limit = Timespec::try_from(limit).map_err(|_| Errno::INVAL)?;
        // Nothing is asked of it: that it is closed is told unasked.
        let mut all = vec![PollFd::from_borrowed_fd(out, PollFlags::empty())];
        all.extend(told.map(|told| PollFd::from_borrowed_fd(told, PollFlags::IN)));
        match poll(&mut all, Some(&limit)) {
            Err(Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let is_read = all[0].revents().is_empty();
        drop(all);
        self.forget();
        Ok(is_read)
    }

    #[cfg(target_os = "linux")]
    fn told(&self) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "it listens elsewhere")]
    fn told(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// What was told so far is no news any more.
    fn forget(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(inotify) = &self.inotify {
            let mut buffer = [0; 1 << 12];
            while rustix::io::read(inotify, &mut buffer).is_ok_and(|read| read > 0) {}
        }
    }
}
