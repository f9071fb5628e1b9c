//! The files of objects that are not known to be on the disk: all that came since the last look, whoever wrote them. git does
//! not flush them either.

use crate::git::durable::log::Entry;
use crate::git::durable::seen::Seen;
use crate::git::repo::Repo;
use crate::git::repo::platform::nanoseconds;
use crate::git::repo::written::MOST;
use anyhow::{Context, Result};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, statat};
use rustix::io::Errno;
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

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
    loose_beside(repo, mark, None)
}

/// The files of objects that have come since a time, but for those in directories that hold what was seen in them. All that is
/// there has then been seen.
pub fn loose_beside(repo: &Repo, mark: u64, seen: Option<&mut Seen>) -> Result<Vec<LooseFile>> {
    loose_in(&objects_directory(repo), repo.hash_kind().len_in_hex() - 2, mark, seen)
}

/// The same of the repositories from which this one borrows objects: git copies none that is there.
pub fn borrowed_since(repo: &Repo, mark: u64) -> Result<Vec<LooseFile>> {
    let mut found = Vec::new();
    // What is away for now has nothing new.
    for objects in repo.gix.objects.store_ref().alternate_db_paths()?.iter().filter(|objects| objects.is_dir()) {
        found.extend(loose_in(objects, repo.hash_kind().len_in_hex() - 2, mark, None)?);
    }
    Ok(found)
}

fn loose_in(objects: &Path, digits: usize, mark: u64, mut seen: Option<&mut Seen>) -> Result<Vec<LooseFile>> {
    let top = File::open(objects).with_context(|| format!("open '{}'", objects.display()))?;
    let mut found = Vec::new();
    for number in 0..=u8::MAX {
        let above = format!("{number:02x}");
        let listed = changed_since(&top, &above, mark)
            .and_then(|changed| changed.map(|directory| Ok((names(&directory, digits)?, directory))).transpose());
        let (names, directory) = match listed {
            Ok(Some(listed)) => listed,
            Ok(None) => continue,
            Err(Errno::NOENT) => {
                if let Some(seen) = &mut seen {
                    seen.set(number, &[]);
                }
                continue;
            }
            Err(error) => return Err(error).with_context(|| format!("read '{}'", objects.join(&above).display())),
        };
        if let Some(seen) = &mut seen {
            if seen.has(number, &names) {
                continue;
            }
            seen.set(number, &names);
        }
        for (name, _) in names {
            // What is gone meanwhile is not asked for.
            let Ok(stat) = statat(&directory, &name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && is_since(&stat, mark) {
                let (path, size) = (objects.join(&above).join(&name), u64::try_from(stat.st_size).unwrap_or_default());
                found.push(LooseFile { name: format!("{above}{name}"), path, size });
            }
        }
    }
    Ok(found)
}

/// A directory of objects, if something has come into it since a time.
fn changed_since(top: &File, name: &str, mark: u64) -> rustix::io::Result<Option<OwnedFd>> {
    let stat = statat(top, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_changed = FileType::from_raw_mode(stat.st_mode) == FileType::Directory && is_since(&stat, mark);
    is_changed.then(|| openat(top, name, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())).transpose()
}

/// The names in a directory that have so many characters, and the inodes.
fn names(directory: &OwnedFd, digits: usize) -> rustix::io::Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        if let Some(name) = entry.file_name().to_str().ok().filter(|name| name.len() == digits) {
            found.push((name.to_owned(), entry.ino()));
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
