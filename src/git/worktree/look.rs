//! What is under a name, and whether it is still that.

use crate::git::repo::large::{blob_id, file_id};
use crate::git::repo::platform::{At, open_own_file};
use crate::git::worktree::stat::{COARSEST, kind_of, mode_of};
use crate::model::checkpoint::{FileState, Kind};
use anyhow::Result;
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;
use std::fs::File;

/// What was seen under a name.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The file or link; `None` for anything else.
    pub state: Option<FileState>,
    /// Its stat data, from before its content was read.
    pub stat: Stat,
}

impl Seen {
    /// Its device and inode.
    pub fn file(&self) -> (u64, u64) {
        (number(self.stat.st_dev), self.stat.st_ino)
    }

    /// Whether these stat data, taken later, prove that its content is still the same. What was written shortly before
    /// it was seen may have been written again since, with the same time.
    pub fn is_still(&self, now: &Stat) -> bool {
        let facts = |stat: &Stat| {
            let times = (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
            (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_size, times)
        };
        facts(&self.stat) == facts(now) && self.stat.st_mtime + COARSEST < self.stat.st_ctime
    }
}

/// A number of stat data, as of a device, which has fewer bits on macOS, and a sign.
pub fn number<Number: Default>(raw: impl TryInto<Number>) -> Number {
    raw.try_into().unwrap_or_default()
}

/// Looks at what is under a name, without following a link, and hashes it. `None` where nothing is.
pub fn look((directory, name): At<'_>, hash: gix::hash::Kind) -> Result<Option<Seen>> {
    let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Some(kind) = kind_of(&stat) else {
        return Ok(Some(Seen { state: None, stat }));
    };
    if kind == Kind::Symlink {
        return match rustix::fs::readlinkat(directory, name, Vec::new()) {
            Ok(target) => {
                let id = blob_id(target.as_bytes(), hash)?;
                Ok(Some(Seen { state: Some(FileState { kind, id, mode: 0 }), stat }))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::INVAL) => Ok(Some(Seen { state: None, stat })),
            Err(error) => Err(error.into()),
        };
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(directory, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Ok(Some(Seen { state: None, stat })),
        // A turn may have taken the permission.
        Err(Errno::ACCESS) => File::from(open_own_file((directory, name))?),
        Err(error) => return Err(error.into()),
    };
    let stat = fstat(&file)?;
    let Some(kind) = kind_of(&stat) else { return Ok(Some(Seen { state: None, stat })) };
    // None where it is being written.
    let id = file_id(&file, hash)?;
    let state = id.map(|id| FileState { kind, id, mode: mode_of(&stat) });
    Ok(Some(Seen { state, stat }))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::fd::AsFd;

    /// The kernel's own files have fewer bytes than they say, as one that an editor has just emptied.
    #[test]
    fn a_file_with_fewer_bytes_than_it_says_is_being_written() {
        let directory = File::open("/sys/devices/system/cpu").expect("the kernel tells of its processors");
        let seen = look((directory.as_fd(), "online".as_ref()), gix::hash::Kind::Sha1).expect("it is no failure");
        let seen = seen.expect("it is there");
        assert!(seen.stat.st_size > 0 && seen.state.is_none(), "nothing is known of its content");
    }
}
