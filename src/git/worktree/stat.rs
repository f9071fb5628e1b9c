//! What a stat tells: kinds of files, permission bits, what changes with a file's content.
//! The only place that knows that modes are 32 bits wide on Linux and 16 on macOS.

use crate::model::checkpoint::{Kind, UsualModes};
use gix::index::entry::Stat;
use gix::index::entry::stat::Time;
use rustix::fs::{FileType, Mode};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the owner of a directory must be allowed to change what is in it.
pub const OPEN: u32 = 0o700;

/// The twelve permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;

/// A file that was changed so few seconds before it is read may change again after with the same
/// time: no file system's clock is coarser.
const COARSEST: i64 = 2;

/// The twelve permission bits.
pub fn mode_of(stat: &rustix::fs::Stat) -> u32 {
    from_raw(stat.st_mode) & PERMISSIONS
}

/// The permission bits of this mode, as the system takes them.
pub fn permissions(mode: u32) -> Mode {
    Mode::from_bits_truncate(to_raw(mode & PERMISSIONS))
}

/// Whether a directory's owner may change what is in it.
pub fn is_open(stat: &rustix::fs::Stat) -> bool {
    mode_of(stat) & OPEN == OPEN
}

/// The permission bits that this process gives to new files.
pub fn umask_modes() -> UsualModes {
    UsualModes::from_umask(told_umask().unwrap_or_else(|| {
        let umask = rustix::process::umask(Mode::from_raw_mode(0o077));
        rustix::process::umask(umask);
        from_raw(umask.bits())
    }))
}

/// The umask as Linux tells it. To ask the process itself is to change it for a moment, also for other threads.
fn told_umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(umask.trim(), 8).ok()
}

/// What kind of file a stat tells of; `None` for what is neither file nor link.
pub fn kind_of(stat: &rustix::fs::Stat) -> Option<Kind> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => Some(Kind::Symlink),
        FileType::RegularFile => Some(Kind::of_mode(mode_of(stat))),
        _ => None,
    }
}

/// The type of a file by the four bits above its permissions.
pub fn type_of(bits: u8) -> FileType {
    FileType::from_raw_mode(to_raw(u32::from(bits) << 12))
}

/// What tells whether a file changed that is not read; directories have nothing such.
pub fn file_state(stat: &rustix::fs::Stat) -> Option<String> {
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then(|| format!("{} {}.{:09}", stat.st_size, stat.st_mtime, stat.st_mtime_nsec))
}

/// What changes whenever a file's content does; `None` for a file that was changed just now.
pub fn stamp_of(stat: &rustix::fs::Stat) -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    let limit = i64::try_from(now).ok()? - COARSEST;
    if stat.st_mtime >= limit || stat.st_ctime >= limit {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec).hash(&mut hasher);
    (stat.st_ino, stat.st_dev, stat.st_mode).hash(&mut hasher);
    Some(hasher.finish())
}

/// A stat as the index keeps it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the index keeps the lower 32 bits, as git does"
)]
pub fn index_stat(stat: &rustix::fs::Stat) -> Stat {
    Stat {
        mtime: Time { secs: stat.st_mtime as u32, nsecs: stat.st_mtime_nsec as u32 },
        ctime: Time { secs: stat.st_ctime as u32, nsecs: stat.st_ctime_nsec as u32 },
        dev: stat.st_dev as u32,
        ino: stat.st_ino as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        size: stat.st_size as u32,
    }
}

fn from_raw(mode: impl Into<u32>) -> u32 {
    mode.into()
}

/// The lower 16 bits are all that a mode has: the type and the permissions.
fn to_raw<Raw: TryFrom<u32> + Default>(mode: u32) -> Raw {
    Raw::try_from(mode).unwrap_or_default()
}
