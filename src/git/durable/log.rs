//! The write-ahead log: one file of each worktree, and of each user, to which records are only ever added, and which is for
//! its owner alone.
//!
//! ```text
//! oxundo log 1 BOOT-ID\n
//! length sum content mark sum        a record; numbers are eight bytes, the highest first
//! ```
//!
//! A record that a power cut has torn does not have its sum: it counts for nothing, nor does what is behind it. The mark at
//! its end is the time up to which all objects are known to be on the disk, in it or elsewhere.

use crate::git::repo::platform::{boot_id, nanoseconds};
use crate::git::repo::scratch::{checksum, take_number};
use anyhow::{Context, Result};
use gix::ObjectId;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How a log begins, before the id of the boot in which it was written.
const MAGIC: &str = "oxundo log 1 ";

/// How long the first line is, its end included.
const HEAD: usize = MAGIC.len() + BOOT + 1;

/// How long the id of a boot is.
const BOOT: usize = 36;

/// How long a record is without its content.
const AROUND: usize = 32;

/// How long the end of a record is that says how much is known to be on the disk.
const MARK: usize = 16;

/// How it fails to open a log that is not to be read here.
const NOT_OURS: [ErrorKind; 3] = [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem];

/// What a record holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A file of git's objects: its name, without the slash, and all that is in it.
    Object(String, Vec<u8>),
    /// Where a ref is, or is to be: nowhere, if it is to be gone.
    Ref(String, Option<ObjectId>),
    /// How long the reflog of a ref is, and the checksum of its end.
    Reflog(String, u64, [u8; 8]),
    /// The command with this journal was interrupted by a power cut.
    Cut(ObjectId),
}

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Of all records.
    pub entries: Vec<Entry>,
    /// The mark of the last record.
    pub mark: u64,
    /// That of the one before, which is no later than when the last operation began.
    pub begun: u64,
}

/// A log, open.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Log {
    /// Opens a log to add to it; makes it where there is none.
    pub fn open(path: PathBuf) -> Result<Self> {
        let open = || File::options().read(true).append(true).create(true).mode(0o600).open(&path);
        let opened = open().or_else(|error| match (error.kind(), path.parent()) {
            (ErrorKind::NotFound, Some(directory)) => {
                DirBuilder::new().recursive(true).mode(0o777).create(directory)?;
                open()
            }
            _ => Err(error),
        });
        let file = opened.with_context(|| format!("open '{}'", path.display()))?;
        Self::over(path, file)
    }

    /// Opens a log that is there.
    pub fn find(path: PathBuf) -> Result<Option<Self>> {
        match File::options().read(true).append(true).open(&path) {
            Ok(file) => Self::over(path, file).map(Some),
            // Another user's is theirs to read; and where nothing can be written, nothing is mended.
            Err(error) if NOT_OURS.contains(&error.kind()) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("open '{}'", path.display())),
        }
    }

    fn over(path: PathBuf, file: File) -> Result<Self> {
        let length = file.metadata()?.size();
        Ok(Self { path, file, length })
    }

    /// Keeps all others from reading and writing it until it is dropped.
    pub fn lock(&mut self) -> Result<()> {
        self.file.lock().with_context(|| format!("lock '{}'", self.path.display()))?;
        self.length = self.file.metadata()?.size();
        Ok(())
    }

    /// Whether nothing was ever written to it.
    pub fn is_new(&self) -> bool {
        self.length == 0
    }

    /// How long it is.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// When the last record was added.
    pub fn time(&self) -> Result<u64> {
        let about = self.file.metadata()?;
        Ok(nanoseconds(about.mtime(), about.mtime_nsec()))
    }

    /// Whether it was written since the system was started, so that what it tells of is there, on the disk or not.
    pub fn is_of_this_boot(&self) -> bool {
        let mut head = [0; HEAD];
        self.file.read_exact_at(&mut head, 0).is_ok() && head == *first_line().as_bytes()
    }

    /// Up to when all objects are known to be on the disk.
    pub fn mark(&self) -> Option<u64> {
        let mut end = [0; MARK];
        self.file.read_exact_at(&mut end, self.length.checked_sub(MARK as u64)?).ok()?;
        let (mark, sum) = end.split_at(8);
        (checksum(mark)[..] == *sum).then(|| take_number(&mut &*mark)).flatten()
    }

    /// Adds a record. A disk that is full leaves the log as it was.
    pub fn append(&mut self, entries: &[Entry], mark: u64) -> Result<()> {
        let mut bytes = if self.is_new() { first_line().into_bytes() } else { Vec::new() };
        bytes.extend(record(entries, mark));
        let written = self.file.write_all(&bytes);
        if written.is_err() {
            // The error to report is the first one.
            let _ = self.file.set_len(self.length);
        }
        written.with_context(|| format!("write '{}'", self.path.display()))?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Waits until all of it is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().with_context(|| format!("flush '{}'", self.path.display()))
    }

    /// Removes all records.
    pub fn empty(&mut self) -> Result<()> {
        self.file.set_len(0).with_context(|| format!("empty '{}'", self.path.display()))?;
        self.length = 0;
        Ok(())
    }

    /// What all records hold that are whole, one after the other.
    pub fn read(&mut self) -> Result<Content> {
        let mut bytes = Vec::new();
        (&self.file).read_to_end(&mut bytes).with_context(|| format!("read '{}'", self.path.display()))?;
        let mut content = Content::default();
        let mut rest = bytes.strip_prefix(MAGIC.as_bytes()).and_then(|rest| rest.get(BOOT + 1..)).unwrap_or_default();
        while let Some((more, mark)) = take_record(&mut rest) {
            content.entries.extend(more);
            content.begun = content.mark;
            content.mark = mark;
        }
        Ok(content)
    }

    /// Its place.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn first_line() -> String {
    format!("{MAGIC}{:-<BOOT$.BOOT$}\n", boot_id())
}

fn record(entries: &[Entry], mark: u64) -> Vec<u8> {
    let mut content = Vec::new();
    let mut put = |kind: u8, name: &str, value: &[u8]| {
        content.push(kind);
        for part in [name.as_bytes(), value] {
            content.extend_from_slice(&(part.len() as u64).to_be_bytes());
            content.extend_from_slice(part);
        }
    };
    for entry in entries {
        match entry {
            Entry::Object(name, bytes) => put(b'o', name, bytes),
            Entry::Reflog(name, length, sum) => put(b'l', name, &[length.to_be_bytes(), *sum].concat()),
            Entry::Cut(id) => put(b'c', "", id.to_string().as_bytes()),
            Entry::Ref(name, id) => put(b'r', name, id.map(|id| id.to_string()).unwrap_or_default().as_bytes()),
        }
    }
    let mut bytes = Vec::with_capacity(content.len() + AROUND);
    bytes.extend_from_slice(&(content.len() as u64).to_be_bytes());
    bytes.extend_from_slice(&checksum(&content));
    bytes.extend_from_slice(&content);
    bytes.extend_from_slice(&mark.to_be_bytes());
    bytes.extend_from_slice(&checksum(&mark.to_be_bytes()));
    bytes
}

fn take_record(rest: &mut &[u8]) -> Option<(Vec<Entry>, u64)> {
    let mut bytes = *rest;
    let length = usize::try_from(take_number(&mut bytes)?).ok()?;
    let (sum, bytes) = bytes.split_at_checked(8)?;
    let (content, mut bytes) = bytes.split_at_checked(length)?;
    let mark = take_number(&mut bytes)?;
    let (_, bytes) = bytes.split_at_checked(8)?;
    if checksum(content)[..] != *sum {
        return None;
    }
    *rest = bytes;
    let (mut content, mut entries) = (content, Vec::new());
    while !content.is_empty() {
        entries.push(take_entry(&mut content)?);
    }
    Some((entries, mark))
}

fn take_entry(content: &mut &[u8]) -> Option<Entry> {
    let (kind, rest) = content.split_first()?;
    *content = rest;
    let name = String::from_utf8(take_part(content)?.to_vec()).ok()?;
    let value = take_part(content)?;
    match kind {
        b'o' => Some(Entry::Object(name, value.to_vec())),
        b'l' => {
            let (length, sum) = value.split_first_chunk()?;
            Some(Entry::Reflog(name, u64::from_be_bytes(*length), sum.try_into().ok()?))
        }
        b'c' => Some(Entry::Cut(ObjectId::from_hex(value).ok()?)),
        b'r' if value.is_empty() => Some(Entry::Ref(name, None)),
        b'r' => Some(Entry::Ref(name, Some(ObjectId::from_hex(value).ok()?))),
        _ => None,
    }
}

fn take_part<'a>(content: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_number(content)?).ok()?;
    let (part, rest) = content.split_at_checked(length)?;
    *content = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(number: u8) -> Vec<Entry> {
        vec![
            Entry::Object(format!("{number:040}"), vec![number; 300]),
            Entry::Ref("refs/oxundo/timeline".to_owned(), Some(ObjectId::from_bytes_or_panic(&[number; 20]))),
            Entry::Ref("refs/oxundo/pending".to_owned(), None),
            Entry::Reflog("refs/heads/main".to_owned(), 7, [number; 8]),
        ]
    }

    fn opened(top: &Path) -> Log {
        Log::open(top.join("log/main")).expect("open a log")
    }

    #[test]
    fn what_was_added_is_read_again_and_a_torn_record_counts_for_nothing() {
        let top = tempfile::tempdir().expect("make a directory");
        let mut log = opened(top.path());
        assert!(log.is_new() && log.mark().is_none());
        for number in 1..=3 {
            log.append(&entries(number), u64::from(number)).expect("add a record");
        }
        assert_eq!((log.mark(), log.is_of_this_boot()), (Some(3), true));
        let all: Vec<Entry> = (1..=3).flat_map(entries).collect();
        let read = || opened(top.path()).read().expect("read it");
        assert_eq!(read(), Content { entries: all.clone(), mark: 3, begun: 2 });
        let whole = std::fs::read(top.path().join("log/main")).expect("read a file");
        let [two, three] = [2, 3].map(|records| HEAD + (whole.len() - HEAD) / 3 * records);
        for length in two..three {
            std::fs::write(top.path().join("log/main"), &whole[..length]).expect("write a file");
            assert_eq!((read().entries, read().mark), (all[..8].to_vec(), 2), "cut at {length}");
            let mut zeros = whole.clone();
            zeros[length..].fill(0);
            std::fs::write(top.path().join("log/main"), &zeros).expect("write a file");
            let found = read().entries;
            assert!(found == all[..8] || found == all, "zeros from {length}");
        }
        std::fs::write(top.path().join("log/main"), &whole[..HEAD - 1]).expect("write a file");
        assert_eq!(read(), Content::default());
    }

    #[test]
    fn a_log_of_another_boot_is_known_and_it_is_for_its_owner_alone() {
        let top = tempfile::tempdir().expect("make a directory");
        let mut log = opened(top.path());
        log.append(&entries(1), 1).expect("add a record");
        assert_eq!(log.file.metadata().expect("look at it").mode() & 0o777, 0o600);
        let text = std::fs::read(log.path()).expect("read a file");
        let other = [MAGIC.as_bytes(), &[b'x'; BOOT], &text[HEAD - 1..]].concat();
        std::fs::write(log.path(), other).expect("write a file");
        let mut log = opened(top.path());
        assert!(!log.is_of_this_boot());
        assert_eq!(log.read().expect("read it").entries, entries(1));
        log.empty().expect("empty it");
        assert!(log.is_new());
    }
}
