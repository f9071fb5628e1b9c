//! Reading stat data: kinds of files, permission bits, what changes with a file's content.
//! The only place that knows that modes are 32 bits wide on Linux and 16 on macOS.

use crate::model::checkpoint::{Kind, UsualModes};
use gix::index::entry::Stat;
use gix::index::entry::stat::Time;
use rustix::fs::{FileType, Mode};
use std::hash::{DefaultHasher, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

/// What the owner of a directory must be allowed to change what is in it.
pub const OPEN: u32 = 0o700;

/// The twelve permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;

const SETUID: u32 = 0o4000;

const SETGID: u32 = 0o2000;

/// A file that was changed less than this many seconds before it is read may change again with the same time:
/// no file system's clock is coarser.
pub const COARSEST: i64 = 2;

/// The twelve permission bits, but for those with which a file of another owner or group runs as theirs: a file that is written anew
/// would run as this user.
pub fn mode_of(stat: &rustix::fs::Stat) -> u32 {
    let mode = all_bits(stat);
    if mode & (SETUID | SETGID) == 0 || FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return mode;
    }
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
    let is_own_group = stat.st_gid == rustix::process::getegid().as_raw();
    mode & !(if is_own { 0 } else { SETUID }) & !(if is_own_group { 0 } else { SETGID })
}

/// All twelve permission bits, whosever the file is.
pub fn all_bits(stat: &rustix::fs::Stat) -> u32 {
    from_raw(stat.st_mode) & PERMISSIONS
}

/// The permission bits of this mode, as the system takes them.
pub fn permissions(mode: u32) -> Mode {
    Mode::from_bits_truncate(to_raw(mode & PERMISSIONS))
}

/// The size in bytes.
pub fn size_of(stat: &rustix::fs::Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
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

/// The kind of file in stat data; `None` for what is neither file nor link.
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

/// A fingerprint of a file that is not read, to tell whether it changed; none for directories.
pub fn file_state(stat: &rustix::fs::Stat) -> Option<String> {
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file.then(|| format!("{} {}.{:09}", stat.st_size, stat.st_mtime, stat.st_mtime_nsec))
}

/// A fingerprint that changes whenever a file's content does; `None` for a file that was changed just now.
pub fn stamp_of(stat: &rustix::fs::Stat) -> Option<u64> {
    stamp_before(stat, just_now()?)
}

/// From which second on a file was changed just now.
pub fn just_now() -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    Some(i64::try_from(now).ok()? - COARSEST)
}

/// As [`stamp_of`], with the second that [`just_now`] gave some time ago.
pub fn stamp_before(stat: &rustix::fs::Stat, limit: i64) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    hasher.write(&stamped(stat, limit)?);
    Some(hasher.finish())
}

/// What [`stamp_before`] is made of.
pub fn stamped(stat: &rustix::fs::Stat, limit: i64) -> Option<[u8; 64]> {
    if stat.st_mtime >= limit || stat.st_ctime >= limit {
        return None;
    }
    let fields: [&[u8]; 8] = [
        &stat.st_size.to_ne_bytes(),
        &stat.st_mtime.to_ne_bytes(),
        &stat.st_mtime_nsec.to_ne_bytes(),
        &stat.st_ctime.to_ne_bytes(),
        &stat.st_ctime_nsec.to_ne_bytes(),
        &stat.st_ino.to_ne_bytes(),
        &stat.st_dev.to_ne_bytes(),
        &stat.st_mode.to_ne_bytes(),
    ];
    let mut bytes = [0; 64];
    for (slot, field) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(fields) {
        slot[..field.len()].copy_from_slice(field);
    }
    Some(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use crate::git::worktree::Worktree;
    use rustix::fs::Stat as FileStat;

    fn stat(f: &Fixture, path: &str) -> FileStat {
        Worktree::new(&f.repo).stat(path.into()).expect("look at it").expect("it is there").0
    }

    /// As it would be had its file been changed so many seconds earlier.
    fn aged(stat: &FileStat, seconds: i64) -> FileStat {
        let mut stat = *stat;
        (stat.st_mtime, stat.st_ctime) = (stat.st_mtime - seconds, stat.st_ctime - seconds);
        stat
    }

    #[test]
    fn the_twelve_bits_of_a_mode_survive_the_way_to_the_system_and_back() {
        let f = Fixture::new();
        f.write("file", "");
        let worktree = Worktree::new(&f.repo);
        for mode in [0o644, 0o755, 0o4711, 0o1600, 0o400] {
            worktree.set_mode("file".into(), mode).expect("set a mode");
            assert_eq!(mode_of(&stat(&f, "file")), mode);
            assert_eq!(f.mode("file"), mode, "std reads the same");
        }
        assert_eq!(permissions(0o100_644), permissions(0o644), "the type is no permission");
        assert_eq!(type_of(0o4), FileType::Directory);
        assert_eq!(type_of(0o10), FileType::RegularFile);
        assert_eq!(type_of(0o12), FileType::Symlink);
    }

    #[test]
    fn a_directory_is_open_when_its_owner_may_do_all() {
        let f = Fixture::new();
        let worktree = Worktree::new(&f.repo);
        std::fs::create_dir(f.path("d")).expect("make a directory");
        for (mode, open) in [(0o700, true), (0o755, true), (0o577, false), (0o077, false), (0o300, false)] {
            worktree.set_mode("d".into(), mode).expect("set a mode");
            assert_eq!(is_open(&stat(&f, "d")), open, "{mode:o}");
        }
        worktree.set_mode("d".into(), 0o700).expect("set a mode");
    }

    #[test]
    fn the_index_is_given_what_git_itself_would_note() {
        let f = Fixture::new();
        f.write("file", "content");
        f.git(&["add", "file"]);
        let noted = index_stat(&stat(&f, "file"));
        let expected = [
            format!("  ctime: {}:{}", noted.ctime.secs, noted.ctime.nsecs),
            format!("  mtime: {}:{}", noted.mtime.secs, noted.mtime.nsecs),
            format!("  dev: {}\tino: {}", noted.dev, noted.ino),
            format!("  uid: {}\tgid: {}", noted.uid, noted.gid),
            format!("  size: {}\tflags: 0", noted.size),
        ];
        assert_eq!(f.lines(&["ls-files", "--debug"])[1..], expected);
    }

    #[test]
    fn a_stamp_changes_with_all_that_tells_of_an_edit_and_is_not_made_of_what_is_too_new() {
        let f = Fixture::new();
        f.write("file", "content");
        let now = stat(&f, "file");
        let mut to_come = now;
        to_come.st_ctime += 1_000_000;
        assert_eq!(stamp_of(&to_come), None, "it may change again without a sign");
        let mut edited_late = aged(&now, 100);
        edited_late.st_mtime = to_come.st_ctime;
        assert_eq!(stamp_of(&edited_late), None, "either time counts");
        let old = aged(&now, 100);
        let known = stamp_of(&old).expect("it is old enough");
        assert_eq!(stamp_of(&old), Some(known), "nothing changed");
        let changes: [fn(&mut FileStat); 8] = [
            |stat| stat.st_size += 1,
            |stat| stat.st_mtime -= 1,
            |stat| stat.st_mtime_nsec ^= 1,
            |stat| stat.st_ctime -= 1,
            |stat| stat.st_ctime_nsec ^= 1,
            |stat| stat.st_ino += 1,
            |stat| stat.st_dev += 1,
            |stat| stat.st_mode ^= 0o100,
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut other = old;
            change(&mut other);
            let stamp = stamp_of(&other);
            assert!(stamp.is_some_and(|stamp| stamp != known), "change {at} shows");
        }
    }

    #[test]
    fn only_a_file_that_is_not_read_has_a_state() {
        let f = Fixture::new();
        f.write("d/file", "content");
        let told = file_state(&stat(&f, "d/file")).expect("it is a file");
        assert!(told.starts_with("7 "), "its size is told first: {told}");
        assert_ne!(Some(told), file_state(&aged(&stat(&f, "d/file"), 1)), "so is its time");
        assert_eq!(file_state(&stat(&f, "d")), None);
        assert_eq!(kind_of(&stat(&f, "d")), None, "a directory is neither file nor link");
    }
}
