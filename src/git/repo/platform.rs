//! Calls that some systems lack, and what is done instead. An old Linux kernel, a sandbox or a file system may lack
//! the same calls as macOS: the fallback is taken where the call fails, and the tests make it fail.

use gix::bstr::BStr;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fstat, openat, statat};
use rustix::io::{Errno, Result};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::Duration;

/// Opens a directory below another by a call that follows no link: by one, unless the path is longer than the system takes.
/// `None` where the system has no such call: the caller then walks the path.
#[cfg(target_os = "linux")]
pub fn open_beneath(top: impl AsFd, path: &BStr, flags: OFlags) -> Option<Result<OwnedFd>> {
    use gix::bstr::ByteSlice;
    use rustix::fs::{ResolveFlags, openat2};
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let (mut rest, mut above) = (path, None::<OwnedFd>);
    loop {
        let piece = if rest.len() < LONGEST { None } else { rest[..LONGEST].rfind_byte(b'/') };
        let (here, flags) = piece.map_or((rest, flags), |end| (rest[..end].as_bstr(), flags | OFlags::PATH));
        let start = above.as_ref().map_or(top.as_fd(), AsFd::as_fd);
        match (openat2(start, &**here, flags, Mode::empty(), resolve), piece) {
            (Ok(opened), Some(end)) => (above, rest) = (Some(opened), rest[end + 1..].as_bstr()),
            (opened @ (Ok(_) | Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)), _) => return Some(opened),
            // An old kernel, or a sandbox, does not know the call.
            (Err(_), _) => return None,
        }
    }
}

/// A path that is longer than the system takes at once is taken in pieces of this length.
#[cfg(target_os = "linux")]
const LONGEST: usize = 4000;

/// Only Linux has the call.
#[cfg(not(target_os = "linux"))]
pub fn open_beneath(_top: impl AsFd, _path: &BStr, _flags: OFlags) -> Option<Result<OwnedFd>> {
    None
}

/// The flag of a file, in a word and as `chattr` has it, for which nobody may change it, the superuser included.
#[cfg(target_os = "linux")]
pub fn fixed_by(directory: impl AsFd, name: &OsStr) -> Option<(&'static str, char)> {
    use rustix::fs::{StatxAttributes, StatxFlags, statx};
    let about = statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty()).ok()?;
    [(StatxAttributes::IMMUTABLE, ("immutable", 'i')), (StatxAttributes::APPEND, ("append-only", 'a'))]
        .into_iter()
        .find_map(|(flag, words)| about.stx_attributes.contains(flag).then_some(words))
}

/// Where there is no such flag, or no such call, the change itself says so.
#[cfg(not(target_os = "linux"))]
pub fn fixed_by(_directory: impl AsFd, _name: &OsStr) -> Option<(&'static str, char)> {
    None
}

/// Whether something is mounted there, be it a single file: it keeps its place.
#[cfg(target_os = "linux")]
pub fn is_mount_point(directory: impl AsFd, name: &OsStr) -> bool {
    use rustix::fs::{StatxAttributes, StatxFlags, statx};
    statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::empty())
        .is_ok_and(|about| about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Elsewhere the change itself says so.
#[cfg(not(target_os = "linux"))]
pub fn is_mount_point(_directory: impl AsFd, _name: &OsStr) -> bool {
    false
}

/// The access list of a name in a directory; none where there is none, or nobody tells. One that is very long is empty here.
#[cfg(target_os = "linux")]
pub fn access_list(directory: &OwnedFd, name: &OsStr) -> Option<Vec<u8>> {
    let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    let mut list = vec![0; LARGEST_LIST];
    match rustix::fs::lgetxattr(&path, ACCESS_LIST, &mut list[..]) {
        Ok(length) => Some(list[..length].to_vec()),
        Err(Errno::RANGE) => Some(Vec::new()),
        Err(_) => None,
    }
}

/// Where nobody has looked how lists are told.
#[cfg(not(target_os = "linux"))]
pub fn access_list(_directory: &OwnedFd, _name: &OsStr) -> Option<Vec<u8>> {
    None
}

/// Takes the access list off an open file.
#[cfg(target_os = "linux")]
pub fn remove_access_list(file: impl AsFd) -> Result<()> {
    rustix::fs::fremovexattr(file, ACCESS_LIST)
}

/// There is none.
#[cfg(not(target_os = "linux"))]
pub fn remove_access_list(_file: impl AsFd) -> Result<()> {
    Ok(())
}

#[cfg(target_os = "linux")]
const ACCESS_LIST: &str = "system.posix_acl_access";

/// So long in bytes; one with fifty entries takes a tenth of it.
#[cfg(target_os = "linux")]
const LARGEST_LIST: usize = 4096;

/// Makes a FIFO, a socket or a device, for its owner alone.
#[cfg(target_os = "linux")]
pub fn make_node((directory, name): At<'_>, kind: FileType, device: u64) -> Result<()> {
    use rustix::fs::mknodat;
    mknodat(directory, name, kind, Mode::from_raw_mode(0o600), device)
}

/// Where there is no call for that.
#[cfg(not(target_os = "linux"))]
pub fn make_node(_at: At<'_>, _kind: FileType, _device: u64) -> Result<()> {
    Err(Errno::NOTSUP)
}

/// Gives a link, a FIFO, a socket or a device that this process has just made its owner, where that may be done, and its mode; not
/// what somebody else has put in its place since.
#[cfg(target_os = "linux")]
pub fn give_node(at: At<'_>, kind: FileType, (owner, group): (Uid, Gid), mode: Mode) -> Result<()> {
    let (same, path, _) = own(at, kind)?;
    // What it is tells nobody anything.
    let _ = rustix::fs::chownat(&same, "", Some(owner), Some(group), AtFlags::EMPTY_PATH);
    if kind == FileType::Symlink { Ok(()) } else { rustix::fs::chmodat(CWD, path.as_str(), mode, AtFlags::empty()) }
}

/// Only links are made there, and whose these are tells nobody anything.
#[cfg(not(target_os = "linux"))]
pub fn give_node(_at: At<'_>, _kind: FileType, _owner: (Uid, Gid), _mode: Mode) -> Result<()> {
    Ok(())
}

/// Where something is mounted below a directory, or in it.
#[cfg(target_os = "linux")]
pub fn mounted_in(directory: &Path) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let (top, table) = (directory.canonicalize().ok()?, std::fs::read("/proc/self/mountinfo").ok()?);
    let places = table.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    let mut places = places.map(|place| PathBuf::from(OsStr::from_bytes(&without_octal(place))));
    places.find(|place| *place != top && place.starts_with(&top))
}

/// What the kernel's table has of a path: blanks and the like are in octal there.
#[cfg(target_os = "linux")]
fn without_octal(mut text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    while let Some((first, rest)) = text.split_first() {
        let octal =
            (*first == b'\\').then(|| rest.get(..3)).flatten().and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        text = if byte.is_some() { &rest[3..] } else { rest };
    }
    bytes
}

/// Nobody has looked how others say it.
#[cfg(not(target_os = "linux"))]
pub fn mounted_in(_directory: &Path) -> Option<PathBuf> {
    None
}

/// When a file was made, in nanoseconds since 1970; `None` where the file system does not say.
#[cfg(target_os = "linux")]
pub fn born((directory, name): At<'_>, _stat: &Stat) -> Option<u64> {
    use rustix::fs::{StatxFlags, statx};
    let about = statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    let says = StatxFlags::from_bits_retain(about.stx_mask).contains(StatxFlags::BTIME);
    says.then(|| nanoseconds(about.stx_btime.tv_sec, about.stx_btime.tv_nsec.into()))
}

/// macOS says so with all else.
#[cfg(target_os = "macos")]
pub fn born(_file: At<'_>, stat: &Stat) -> Option<u64> {
    Some(nanoseconds(stat.st_birthtime, stat.st_birthtime_nsec))
}

/// Nobody has looked how others say it.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn born(_file: At<'_>, _stat: &Stat) -> Option<u64> {
    None
}

/// The system's number for the kind of file system that this is on; `None` where it has no such number.
#[cfg(target_os = "linux")]
pub fn file_system(file: impl AsFd) -> Option<u64> {
    u64::try_from(rustix::fs::fstatfs(file).ok()?.f_type).ok()
}

/// Other systems name their file systems, and nobody has measured what those do.
#[cfg(not(target_os = "linux"))]
pub fn file_system(_file: impl AsFd) -> Option<u64> {
    None
}

/// How long the system keeps in memory at most what was written, if it has nothing else to do.
pub fn writeback() -> Duration {
    let hundredths = |name: &str| std::fs::read_to_string(format!("/proc/sys/vm/{name}")).ok()?.trim().parse().ok();
    let known = [("dirty_expire_centisecs", 3000), ("dirty_writeback_centisecs", 500)];
    let all: u64 = known.iter().map(|(name, usual)| hundredths(name).unwrap_or(*usual)).sum();
    Duration::from_millis(all.saturating_mul(10)).max(Duration::from_secs(30))
}

/// What tells this run of the system from the one before and the next; nothing where it does not say.
pub fn boot_id() -> &'static str {
    static ID: LazyLock<String> = LazyLock::new(|| ask_for_boot_id().unwrap_or_default());
    &ID
}

#[cfg(target_os = "linux")]
fn ask_for_boot_id() -> Option<String> {
    Some(std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// macOS has one under this name.
#[cfg(not(target_os = "linux"))]
fn ask_for_boot_id() -> Option<String> {
    let asked = std::process::Command::new("sysctl").args(["-n", "kern.bootsessionuuid"]).output().ok()?;
    Some(String::from_utf8(asked.stdout).ok()?.trim().to_owned())
}

/// Waits until all that was written to the file system that a file is on is on the disk. `None` where the system has no such
/// call.
#[cfg(target_os = "linux")]
pub fn sync_file_system(file: impl AsFd) -> Option<Result<()>> {
    match rustix::fs::syncfs(file) {
        Err(Errno::NOSYS | Errno::PERM) => None,
        synced => Some(synced),
    }
}

/// Only Linux has the call.
#[cfg(not(target_os = "linux"))]
pub fn sync_file_system(_file: impl AsFd) -> Option<Result<()>> {
    None
}

/// Has the system begin to write to the disk what a file holds, and waits for nothing: several are then written together.
#[cfg(target_os = "linux")]
pub fn begin_writing(file: impl AsFd) {
    // Of what is not on the disk yet this forgets nothing. Where it is no use the flush does it all.
    let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
}

/// Elsewhere it does that by itself, or at the flush.
#[cfg(not(target_os = "linux"))]
pub fn begin_writing(_file: impl AsFd) {}

/// The clock by which the times of files are set.
#[cfg(target_os = "linux")]
const FILE_CLOCK: ClockId = ClockId::RealtimeCoarse;
#[cfg(not(target_os = "linux"))]
const FILE_CLOCK: ClockId = ClockId::Realtime;

/// The time of that clock, in nanoseconds since 1970.
pub fn file_clock() -> u64 {
    time_of(clock_gettime(FILE_CLOCK))
}

/// Waits until that clock shows a later time than this, for an instant: what has that time was there by then.
pub fn is_past_on_file_clock(at: u64) -> bool {
    (0..100).any(|tried| {
        if tried > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        file_clock() > at
    })
}

/// The exact time, which no file has that was changed before: one that was looked at since its last change gets such a time.
pub fn exact_clock() -> u64 {
    time_of(clock_gettime(ClockId::Realtime))
}

fn time_of(time: Timespec) -> u64 {
    nanoseconds(time.tv_sec, time.tv_nsec)
}

/// A time as one number.
pub fn nanoseconds(seconds: i64, more: i64) -> u64 {
    let [seconds, more] = [seconds, more].map(|part| u64::try_from(part).unwrap_or_default());
    seconds.saturating_mul(1_000_000_000).saturating_add(more)
}

/// Opens a regular file to read that not even its owner may read, which this process is: it has another mode for an instant.
/// What other users may do stays as it is.
pub fn open_own_file(at: At<'_>) -> Result<OwnedFd> {
    let (_same, path, stat) = own(at, FileType::RegularFile)?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    rustix::fs::chmodat(CWD, path.as_str(), mode | Mode::RUSR, AtFlags::empty())?;
    let opened = openat(CWD, path.as_str(), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty());
    rustix::fs::chmodat(CWD, path.as_str(), mode, AtFlags::empty())?;
    opened
}

/// Lets the owner of a directory do all, which this process is, and opens it; gives what it was.
pub fn open_own_directory(at: At<'_>, all: Mode) -> Result<(OwnedFd, Stat)> {
    let (_same, path, stat) = own(at, FileType::Directory)?;
    rustix::fs::chmodat(CWD, path.as_str(), Mode::from_raw_mode(stat.st_mode) | all, AtFlags::empty())?;
    let opened = openat(CWD, path.as_str(), OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((opened, stat))
}

/// Opens a directory to change what is in it, and lets its owner do so where that may be done.
pub fn open_up(at: At<'_>, all: Mode) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(at.0, at.1, flags, Mode::empty()) {
        Err(Errno::ACCESS) => open_closed(at, all)?,
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(fstat(&opened)?.st_mode);
    if !mode.contains(all) {
        // Another user's may not be changed, and be open to all.
        let _ = rustix::fs::fchmod(&opened, mode | all);
    }
    Ok(opened)
}

#[cfg(target_os = "linux")]
fn open_closed(at: At<'_>, all: Mode) -> Result<OwnedFd> {
    open_own_directory(at, all).map(|(opened, _)| opened)
}

/// Without a call that opens what may not be read.
#[cfg(not(target_os = "linux"))]
fn open_closed(at: At<'_>, all: Mode) -> Result<OwnedFd> {
    if !is_directory(at)? {
        return Err(Errno::NOTDIR);
    }
    set_mode_at(at, all)?;
    openat(at.0, at.1, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
}

/// Whether a directory has a name, and no link to one.
pub fn is_directory(at: At<'_>) -> Result<bool> {
    let about = statat(at.0, at.1, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(about.st_mode).is_dir())
}

/// The names in a directory, in order.
pub fn names_in(directory: impl AsFd) -> Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        match entry?.file_name().to_bytes() {
            b"." | b".." => {}
            name => names.push(OsString::from_vec(name.to_vec())),
        }
    }
    names.sort();
    Ok(names)
}

/// Sets the permission bits of what has a name and is no link, be it such that not even its owner may open it.
#[cfg(target_os = "linux")]
pub fn set_mode_at((directory, name): At<'_>, mode: Mode) -> Result<()> {
    let same = openat(directory, name, SAME | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&same)?.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    rustix::fs::chmodat(CWD, format!("/proc/self/fd/{}", same.as_raw_fd()), mode, AtFlags::empty())
}

/// As on Linux, by a call that it lacks.
#[cfg(not(target_os = "linux"))]
pub fn set_mode_at((directory, name): At<'_>, mode: Mode) -> Result<()> {
    rustix::fs::chmodat(directory, name, mode, AtFlags::SYMLINK_NOFOLLOW)
}

/// Something that is this user's, open without leave to read it; with a path to the very same, whatever has its name by now.
fn own((directory, name): At<'_>, kind: FileType) -> Result<(OwnedFd, String, Stat)> {
    let same = openat(directory, name, SAME | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    let stat = fstat(&same)?;
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
    if !is_own || FileType::from_raw_mode(stat.st_mode) != kind {
        return Err(Errno::ACCESS);
    }
    let path = format!("/proc/self/fd/{}", same.as_raw_fd());
    Ok((same, path, stat))
}

/// To open something without leave to read it. Elsewhere than on Linux that fails, and it stays unreadable.
#[cfg(target_os = "linux")]
const SAME: OFlags = OFlags::PATH;

/// To open something without leave to read it.
#[cfg(not(target_os = "linux"))]
const SAME: OFlags = OFlags::RDONLY;

/// Renames a file, link or directory only if nothing has the new name.
pub fn rename_to_nothing(from_in: impl AsFd, from: &OsStr, to_in: impl AsFd, to: &OsStr) -> Result<()> {
    // RENAME_NOREPLACE on Linux, RENAME_EXCL on macOS: the kernel or the file system may not know it, and a sandbox may
    // not permit it. What may not be renamed at all, in an immutable or a sticky directory, may not be below either.
    match rustix::fs::renameat_with(&from_in, from, &to_in, to, RenameFlags::NOREPLACE) {
        Err(error) if is_lacking(error) => {}
        outcome => return outcome,
    }
    match rustix::fs::linkat(&from_in, from, &to_in, to, AtFlags::empty()) {
        Ok(()) => {
            let outcome = rustix::fs::unlinkat(&from_in, from, AtFlags::empty());
            if outcome.is_err() {
                // The error to report is the one above.
                let _ = rustix::fs::unlinkat(&to_in, to, AtFlags::empty());
            }
            outcome
        }
        // No directory has a second name either.
        Err(error) if is_without_links(error) => rename_after_a_look(from_in, from, to_in, to),
        outcome => outcome,
    }
}

/// A name in a directory.
pub type At<'a> = (BorrowedFd<'a>, &'a OsStr);

/// Renames something to a name that nobody else uses, if nothing has it. In its old place, another program may put
/// something at any instant: it is not touched, as it would be by a second name and the removal of the first.
pub fn rename_away(from: At<'_>, to: At<'_>) -> Result<()> {
    match rustix::fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE) {
        Err(error) if is_lacking(error) => rename_after_a_look(from.0, from.1, to.0, to.1),
        outcome => outcome,
    }
}

/// Puts what is at `ready` in the place of what is at `place`, in one step; that is at `out` then, a name that nobody
/// else uses. Where it fails, each is where it was. `NOENT` where nothing is at the place, or something has come there in
/// the same instant.
pub fn exchange(ready: At<'_>, place: At<'_>, out: At<'_>) -> Result<()> {
    rename_away(ready, out)?;
    // RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS.
    let error = match rustix::fs::renameat_with(out.0, out.1, place.0, place.1, RenameFlags::EXCHANGE) {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    rename_away(out, ready)?;
    if is_lacking(error) { exchange_in_two_steps(ready, place, out) } else { Err(error) }
}

/// As [`exchange`], without a call for it. Nothing is lost, since neither step replaces anything, where the system can
/// rename to nothing or has hard links; where it has neither, see [`rename_after_a_look`]. For an instant nothing is at
/// the place, and a program that looks just then finds no file. To rename over what is there would leave no such
/// instant, and would destroy what is saved in it.
fn exchange_in_two_steps(ready: At<'_>, place: At<'_>, out: At<'_>) -> Result<()> {
    rename_away(place, out)?;
    let Err(error) = rename_to_nothing(ready.0, ready.1, place.0, place.1) else { return Ok(()) };
    // The error to report is the first one. Where something has come there meanwhile, that stays, and so does `out`.
    let _ = rename_to_nothing(out.0, out.1, place.0, place.1);
    Err(if error == Errno::EXIST { Errno::NOENT } else { error })
}

/// Whether the kernel or the file system does not know a way to rename, or a sandbox does not permit it.
fn is_lacking(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM)
}

/// Files or directories, by device and inode.
pub type Inodes = BTreeSet<(u64, u64)>;

/// Which of these files a process has open for writing: it may still write to them although they have no name any more that it
/// knows. What other users' processes have open only root sees, and a mapping whose file was closed nobody.
#[cfg(target_os = "linux")]
pub fn open_for_writing(files: &Inodes) -> Inodes {
    in_use(files, &Inodes::new())
}

/// As [`open_for_writing`]; and in which of these directories a process is, or which it has open: it may make something there.
#[cfg(target_os = "linux")]
pub fn in_use(files: &Inodes, directories: &Inodes) -> Inodes {
    // How often it is looked for processes that have been started since.
    const ROUNDS: usize = 10;
    let own = std::process::id().to_string();
    let (mut found, mut seen) = (Inodes::new(), BTreeSet::new());
    if files.is_empty() && directories.is_empty() {
        return found;
    }
    for _ in 0..ROUNDS {
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let is_other = |name: &OsStr| name.as_encoded_bytes().iter().all(u8::is_ascii_digit) && *name != *own;
        let new: Vec<_> = processes.filter(|it| is_other(&it.file_name()) && seen.insert(it.file_name())).collect();
        if new.is_empty() {
            break;
        }
        for process in new {
            if add_open_of(&process.path(), (files, directories), &mut found) == 0 {
                // Its first thread may have ended, and others go on.
                let threads = std::fs::read_dir(process.path().join("task")).into_iter().flatten().flatten();
                for thread in threads {
                    add_open_of(&thread.path(), (files, directories), &mut found);
                }
            }
        }
    }
    found
}

/// Adds which of these files a thread has open for writing, and where it is; gives how many it has open at all.
#[cfg(target_os = "linux")]
fn add_open_of(thread: &Path, (files, directories): (&Inodes, &Inodes), found: &mut Inodes) -> usize {
    use rustix::fs::Dir;
    if !directories.is_empty()
        && let Ok(at) = statat(CWD, thread.join("cwd"), AtFlags::empty())
    {
        found.extend(Some((at.st_dev, at.st_ino)).filter(|at| directories.contains(at)));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, thread.join("fd"), flags, Mode::empty()).and_then(Dir::new);
    let (Ok(mut directory), mut all) = (directory, 0) else { return 0 };
    while let Some(Ok(open)) = directory.next() {
        let stat = |flags| directory.fd().and_then(|fd| statat(fd, open.file_name(), flags));
        if open.file_name().to_bytes().starts_with(b".") {
            continue;
        }
        all += 1;
        let Ok(file) = stat(AtFlags::empty()) else { continue };
        let file = (file.st_dev, file.st_ino);
        // The permissions of the link say how it was opened.
        let for_writing = || stat(AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|link| link.st_mode & 0o200 != 0);
        if directories.contains(&file) || files.contains(&file) && for_writing() {
            found.insert(file);
        }
    }
    all
}

/// Only Linux tells.
#[cfg(not(target_os = "linux"))]
pub fn open_for_writing(_files: &Inodes) -> Inodes {
    Inodes::new()
}

/// Likewise.
#[cfg(not(target_os = "linux"))]
pub fn in_use(_files: &Inodes, _directories: &Inodes) -> Inodes {
    Inodes::new()
}

/// Checks that nothing has the new name, then renames: the last resort, since a file that another program makes there
/// between the two calls is lost. A directory is safe: the kernel replaces only an empty one. Taking the name first,
/// with an empty file, would lose no less, and a kill in between would leave that file.
fn rename_after_a_look(from_in: impl AsFd, from: &OsStr, to_in: impl AsFd, to: &OsStr) -> Result<()> {
    match statat(&to_in, to, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EXIST),
        Err(Errno::NOENT) => rustix::fs::renameat(from_in, from, to_in, to),
        Err(error) => Err(error),
    }
}

/// Whether a hard link failed because the file system has none, as exFAT and many network and FUSE file systems.
fn is_without_links(error: Errno) -> bool {
    matches!(error, Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::ACCESS | Errno::MLINK)
}

/// What the system's table of processes says of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessEntry {
    /// Its program's name.
    pub name: String,
    /// Its parent process.
    pub parent: u32,
    /// When it was started, in the system's words: it distinguishes processes that have had the same number.
    pub started: String,
    /// Its terminal, in the system's words, where it has one.
    pub terminal: Option<String>,
}

/// Looks up a process; `None` when there is none of this number, or it is dead.
#[cfg(target_os = "linux")]
pub fn process(id: u32) -> Option<ProcessEntry> {
    use std::io::Read;
    // It says of no size to be read at once, and a hook looks at every process there is.
    let mut text = Vec::with_capacity(1024);
    std::fs::File::open(format!("/proc/{id}/stat")).and_then(|mut file| file.read_to_end(&mut text)).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, name) = text.split_once('(')?;
    // A program's name may have parentheses itself.
    let (name, rest) = name.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let process = ProcessEntry {
        name: name.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        started: (*fields.get(19)?).to_owned(),
        terminal: fields.get(4).filter(|number| **number != "0").map(|number| (*number).to_owned()),
    };
    (!is_dead(fields.first()?)).then_some(process)
}

/// The words with which a process was started; `None` where the system does not say.
#[cfg(target_os = "linux")]
pub fn arguments(id: u32) -> Option<Vec<String>> {
    let text = std::fs::read(format!("/proc/{id}/cmdline")).ok()?;
    Some(text.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect())
}

/// The words with which a process was started; `None` where the system does not say.
#[cfg(not(target_os = "linux"))]
pub fn arguments(_id: u32) -> Option<Vec<String>> {
    None
}

/// The processes that lead this one's session and its group, as far as they can be seen. Not by the calls of the `rustix`
/// crate, which know no leader outside of a container (it has the number 0 within).
#[cfg(target_os = "linux")]
pub fn leaders() -> Vec<u32> {
    let text = std::fs::read("/proc/self/stat").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let numbers = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace().skip(2).take(2);
    numbers.filter_map(|number| number.parse().ok()).filter(|number| *number != 0).collect()
}

/// The processes that lead this one's session and its group.
#[cfg(not(target_os = "linux"))]
pub fn leaders() -> Vec<u32> {
    let leaders = [rustix::process::getsid(None).ok(), Some(rustix::process::getpgrp())];
    leaders.into_iter().flatten().filter_map(|id| u32::try_from(id.as_raw_nonzero().get()).ok()).collect()
}

/// The parents of all processes; `None` where the system does not tell.
#[cfg(target_os = "linux")]
fn parents() -> Option<Vec<(u32, u32)>> {
    let ids = std::fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Some(ids.filter_map(|id| Some((id, process(id)?.parent))).collect())
}

/// The parents of all processes; `None` where the system does not tell.
#[cfg(not(target_os = "linux"))]
fn parents() -> Option<Vec<(u32, u32)>> {
    parents_by_ps()
}

/// As [`parents`], by the program `ps`.
#[cfg(any(test, not(target_os = "linux")))]
fn parents_by_ps() -> Option<Vec<(u32, u32)>> {
    let output = std::process::Command::new("ps").args(["-axo", "pid=,ppid="]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let pair = |line: &str| {
        let (id, parent) = line.trim().split_once(char::is_whitespace)?;
        Some((id.parse().ok()?, parent.trim().parse().ok()?))
    };
    output.status.success().then(|| text.lines().filter_map(pair).collect())
}

/// The processes that a process has started, and those that they have; `None` where the system does not tell.
pub fn descendants(id: u32) -> Option<Vec<u32>> {
    Some(descendants_in(&parents()?, id))
}

fn descendants_in(parents: &[(u32, u32)], id: u32) -> Vec<u32> {
    let mut found = vec![id];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(child, of)| *of == parent && !found.contains(child))
                .map(|(child, _)| *child)
                .collect::<Vec<_>>(),
        );
        at += 1;
    }
    found.remove(0);
    found
}

/// As [`descendants`]; and those that have lost the process that started them, and are below one of these that take over others.
#[cfg(target_os = "linux")]
pub fn descendants_and_orphans(id: u32, takes_over: impl Fn(u32, &str) -> bool) -> Option<(Vec<u32>, Vec<u32>)> {
    let parents = parents()?;
    let all: BTreeSet<u32> = parents.iter().map(|(_, parent)| *parent).collect();
    let is_one = |id: &u32| process(*id).is_some_and(|seen| takes_over(*id, &seen.name));
    let above: BTreeSet<u32> = all.into_iter().filter(is_one).collect();
    let below = descendants_in(&parents, id);
    let orphans = parents.into_iter().filter(|(_, parent)| above.contains(parent)).map(|(id, _)| id);
    let orphans = orphans.filter(|orphan| *orphan != id && !below.contains(orphan)).collect();
    Some((below, orphans))
}

/// Nobody has looked how others tell where a process is, and whose an orphan is then.
#[cfg(not(target_os = "linux"))]
pub fn descendants_and_orphans(id: u32, _takes_over: impl Fn(u32, &str) -> bool) -> Option<(Vec<u32>, Vec<u32>)> {
    Some((descendants(id)?, Vec::new()))
}

/// The process that leads the group of another, which may be gone.
pub fn group(id: u32) -> Option<u32> {
    let id = rustix::process::Pid::from_raw(i32::try_from(id).ok()?)?;
    u32::try_from(rustix::process::getpgid(Some(id)).ok()?.as_raw_nonzero().get()).ok()
}

/// The directory that a process is in; `None` where that is another user's, or the system does not tell.
pub fn directory_of(id: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{id}/cwd")).ok()
}

/// Whether one of these variables was set to anything when a process was started; `None` where that is another user's, or the
/// system does not tell.
pub fn has_any_set(id: u32, variables: &[&str]) -> Option<bool> {
    let environment = std::fs::read(format!("/proc/{id}/environ")).ok()?;
    let is_set = |entry: &[u8], name: &str| {
        let value = entry.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
        value.is_some_and(|value| !value.is_empty())
    };
    Some(environment.split(|byte| *byte == 0).any(|entry| variables.iter().any(|name| is_set(entry, name))))
}

/// Looks up a process; `None` when there is none of this number, or it is dead.
#[cfg(not(target_os = "linux"))]
pub fn process(id: u32) -> Option<ProcessEntry> {
    process_by_ps(id)
}

/// As [`process`], by the program `ps`, for systems without `/proc`.
#[cfg(any(test, not(target_os = "linux")))]
fn process_by_ps(id: u32) -> Option<ProcessEntry> {
    let mut ps = std::process::Command::new("ps");
    // In UTC: two hooks of one agent must see the same time.
    ps.env("LC_ALL", "C").env("TZ", "UTC");
    let output = ps.args(["-o", "ppid=,stat=,tty=,lstart=,comm=", "-p", &id.to_string()]).output().ok()?;
    process_of_line(&String::from_utf8_lossy(&output.stdout))
}

/// The parent, the state, the terminal, five words of time, and the program, whose path may have spaces.
#[cfg(any(test, not(target_os = "linux")))]
fn process_of_line(line: &str) -> Option<ProcessEntry> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.trim_start().split_once(char::is_whitespace)?;
        rest = after;
        Some(word)
    };
    let (parent, state, terminal) = (word()?.parse().ok()?, word()?, word()?);
    let terminal = (!terminal.starts_with(['?', '-'])).then(|| terminal.to_owned());
    let started = [word()?, word()?, word()?, word()?, word()?].join(" ");
    let program = rest.trim();
    let name = program.rsplit('/').next().unwrap_or(program).to_owned();
    (!is_dead(state)).then_some(ProcessEntry { name, parent, started, terminal })
}

fn is_dead(state: &str) -> bool {
    state.starts_with(['Z', 'X'])
}

/// The namespace of process numbers: those of another container cannot be compared.
pub fn process_space() -> String {
    let link = if cfg!(target_os = "linux") { std::fs::read_link("/proc/self/ns/pid").ok() } else { None };
    link.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    type Rename = fn(&Path, &Path) -> Result<()>;

    /// The ways to rename something.
    const WAYS: [Rename; 2] = [
        |from, to| rename_to_nothing(CWD, from.as_os_str(), CWD, to.as_os_str()),
        |from, to| rename_after_a_look(CWD, from.as_os_str(), CWD, to.as_os_str()),
    ];

    #[test]
    fn a_file_or_link_is_renamed_to_nothing_only() {
        for rename in WAYS {
            let top = tempfile::tempdir().expect("make a directory");
            let [file, link, taken, new, other] =
                ["file", "link", "taken", "new", "other"].map(|name| top.path().join(name));
            fs::write(&file, "content").expect("write a file");
            fs::write(&taken, "another's").expect("write a file");
            std::os::unix::fs::symlink("nowhere", &link).expect("make a link");
            assert_eq!(rename(&file, &taken), Err(Errno::EXIST));
            assert_eq!(rename(&file, &link), Err(Errno::EXIST), "a link that leads nowhere is something");
            assert_eq!(rename(&top.path().join("none"), &new), Err(Errno::NOENT));
            assert!(!new.exists(), "what fails leaves nothing behind");
            assert_eq!(fs::read(&taken).expect("read a file"), b"another's");
            rename(&file, &new).expect("rename a file");
            rename(&link, &other).expect("rename a link");
            assert_eq!(fs::read(&new).expect("read a file"), b"content");
            assert_eq!(fs::read_link(&other).expect("read a link"), Path::new("nowhere"));
            assert!(!file.exists() && fs::symlink_metadata(&link).is_err(), "the old names are gone");
        }
    }

    #[test]
    fn a_directory_is_renamed_to_nothing_only() {
        for rename in WAYS {
            let top = tempfile::tempdir().expect("make a directory");
            let [directory, empty, new] = ["directory", "empty", "new"].map(|name| top.path().join(name));
            fs::create_dir(&directory).expect("make a directory");
            fs::write(directory.join("file"), "content").expect("write a file");
            fs::create_dir(&empty).expect("make a directory");
            assert_eq!(rename(&directory, &empty), Err(Errno::EXIST), "not even over one that is empty");
            assert!(rename(&directory, &directory.join("inside")).is_err());
            assert!(!directory.join("inside").exists(), "what fails leaves nothing behind");
            rename(&directory, &new).expect("rename a directory");
            assert_eq!(fs::read(new.join("file")).expect("read a file"), b"content");
            assert!(!directory.exists(), "the old name is gone");
        }
    }

    #[test]
    fn what_a_process_has_started_is_found() {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "sleep 60 & echo $!; read line; kill $!"]);
        shell.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().expect("start a shell");
        let mut line = String::new();
        let mut said = std::io::BufReader::new(shell.stdout.take().expect("a pipe"));
        std::io::BufRead::read_line(&mut said, &mut line).expect("it says something");
        let sleep: u32 = line.trim().parse().expect("a number");
        assert_eq!(descendants(shell.id()), Some(vec![sleep]));
        let below = descendants(std::process::id()).expect("the system tells");
        assert!(below.contains(&shell.id()) && below.contains(&sleep), "{below:?}");
        if let Some(parents) = parents_by_ps() {
            assert!(parents.contains(&(sleep, shell.id())), "{parents:?}");
        }
        drop(shell.stdin.take());
        shell.wait().expect("it ends");
        assert_eq!(descendants(shell.id()), Some(Vec::new()));
    }

    #[test]
    fn ps_says_what_the_system_says() {
        if std::process::Command::new("ps").output().is_err() {
            // Past the test's captured output: a skip is to be seen.
            let _ = writeln!(std::io::stderr(), "SKIPPED, NOTHING IS PROVED: there is no ps here");
            return;
        }
        let own = std::process::id();
        let (one, other) = (process_by_ps(own).expect("ps knows it"), process(own).expect("it is there"));
        assert_eq!((&one.name, one.parent), (&other.name, other.parent));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("start a process");
        let seen = process_by_ps(child.id()).expect("ps knows it");
        assert_eq!((seen.name.as_str(), seen.parent), ("sleep", own));
        child.kill().expect("kill it");
        // Dead, but not waited for; a moment may pass until it is.
        while process(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(process_by_ps(child.id()), None, "what is dead is gone");
        child.wait().expect("it is gone");
        assert_eq!(process_by_ps(child.id()), None);
    }

    #[test]
    fn a_line_of_ps_on_a_mac() {
        let line =
            "  501 S+   ttys003  Sat Nov  7 09:05:03 2026     /Applications/An Agent.app/Contents/MacOS/an agent\n";
        let started = "Sat Nov 7 09:05:03 2026".to_owned();
        let (name, terminal) = ("an agent".to_owned(), Some("ttys003".to_owned()));
        let agent = ProcessEntry { name, parent: 501, started, terminal };
        assert_eq!(
            process_of_line(&line.replace("ttys003", "??")),
            Some(ProcessEntry { terminal: None, ..agent.clone() })
        );
        assert_eq!(process_of_line(line), Some(agent));
        assert_eq!(process_of_line("    1 Z    ??  Sat Nov  7 09:05:03 2026     (sleep)\n"), None);
        assert_eq!(process_of_line(""), None);
    }
}
