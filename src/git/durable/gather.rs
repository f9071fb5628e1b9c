//! The files of objects that are not known to be on the disk: all that came since the last look, whoever wrote them. git does
//! not flush them either.

use crate::git::durable::log::Entry;
use crate::git::repo::Repo;
use crate::git::repo::platform::nanoseconds;
use anyhow::{Context, Result};
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// So many bytes are put into the log at once; with more, the whole file system is flushed instead.
const MOST: u64 = 4 << 20;

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
    let mut found = Vec::new();
    let digits = repo.hash_kind().len_in_hex() - 2;
    for (directory, above, about) in entries(&objects_directory(repo))? {
        if above.len() != 2 || !about.is_dir() || !is_since(&about, mark) {
            continue;
        }
        for (path, name, about) in entries(&directory)? {
            if name.len() == digits && about.is_file() && is_since(&about, mark) {
                found.push(LooseFile { name: format!("{above}{name}"), path, size: about.len() });
            }
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

/// What is in a directory; nothing where there is none any more.
fn entries(directory: &Path) -> Result<Vec<(PathBuf, String, Metadata)>> {
    let listed = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.with_context(|| format!("read '{}'", directory.display()))?,
    };
    let mut all = Vec::new();
    for entry in listed {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // What is gone meanwhile is not asked for.
        if let Ok(about) = entry.metadata() {
            all.push((entry.path(), name, about));
        }
    }
    Ok(all)
}

/// Whether something was written, or got its name, since a time.
fn is_since(about: &Metadata, mark: u64) -> bool {
    let changed = nanoseconds(about.ctime(), about.ctime_nsec());
    let slack = if about.ctime_nsec() == 0 { COARSE } else { 0 };
    changed.saturating_add(slack) >= mark
}
