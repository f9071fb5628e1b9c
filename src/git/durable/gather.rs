//! The files of objects that are not known to be on the disk: all that came since the last look, whoever wrote them. git does
//! not flush them either.

use crate::git::durable::log::Entry;
use crate::git::repo::Repo;
use crate::git::repo::platform::nanoseconds;
use crate::git::repo::written::MOST;
use anyhow::{Context, Result};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// File systems that know seconds only may know every other one only.
const COARSE: u64 = 2_000_000_000;

/// The file of an object.
#[derive(Debug)]
pub struct LooseFile {
    /// The object's name.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// How long it is.
    pub size: u64,
}

/// Where the files of objects are.
pub fn objects_directory(repo: &Repo) -> PathBuf {
    repo.gix.objects.store_ref().path().to_owned()
}

/// The files of objects that have come since a time.
pub fn loose_since(repo: &Repo, mark: u64) -> Result<Vec<LooseFile>> {
    let objects = objects_directory(repo);
    let top = File::open(&objects).with_context(|| format!("open '{}'", objects.display()))?;
    let digits = repo.hash_kind().len_in_hex() - 2;
    let mut found = Vec::new();
    for above in (0..=u8::MAX).map(|first| format!("{first:02x}")) {
        let is_new = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory && is_since(stat, mark);
        let files = match statat(&top, &above, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_new(&stat) => openat(&top, &above, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
                .and_then(|directory| files_since(&directory, digits, mark)),
            Ok(_) => continue,
            Err(error) => Err(error),
        };
        match files {
            Ok(files) => found.extend(files.into_iter().map(|(name, size)| {
                let path = objects.join(&above).join(&name);
                LooseFile { name: format!("{above}{name}"), path, size }
            })),
            // There is none, or git has just removed it.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error).with_context(|| format!("read '{}'", objects.join(&above).display())),
        }
    }
    Ok(found)
}

/// The files in a directory that have come since a time and have so many characters in their names, with their sizes.
fn files_since(directory: &OwnedFd, digits: usize, mark: u64) -> rustix::io::Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name.len() != digits {
            continue;
        }
        // What is gone meanwhile is not asked for.
        let Ok(stat) = statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else { continue };
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && is_since(&stat, mark) {
            found.push((name.to_owned(), u64::try_from(stat.st_size).unwrap_or_default()));
        }
    }
    Ok(found)
}

/// What the log is to have of them; none if that is too much.
pub fn logged(files: &[LooseFile]) -> Result<Option<Vec<Entry>>> {
    if files.iter().map(|file| file.size).sum::<u64>() > MOST {
        return Ok(None);
    }
    let mut entries = Vec::new();
    for file in files {
        match std::fs::read(&file.path) {
            Ok(bytes) => entries.push(Entry::Object(file.name.clone(), bytes)),
            // git has packed it meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("read '{}'", file.path.display())),
        }
    }
    Ok(Some(entries))
}

/// Whether something was written, or got its name, since a time.
#[expect(clippy::cast_possible_wrap, reason = "less than a second")]
fn is_since(stat: &Stat, mark: u64) -> bool {
    let changed = nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64);
    let slack = if stat.st_ctime_nsec == 0 { COARSE } else { 0 };
    changed.saturating_add(slack) >= mark
}
