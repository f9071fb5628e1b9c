//! The input and the results of a scan.

use crate::git::worktree::stat::{file_state, mode_of};
use crate::model::checkpoint::{Kind, Reason, Skipped};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::State;
use gix::index::entry::{self as index, Flags, Mode};
use rustix::fs::{AtFlags, Dir, FileType, Stat, statat};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// A name in a directory (a directory's ends with a slash) and the type of the file.
pub type Name = (Vec<u8>, FileType);

/// What a capture already knows from the one before it in the same turn.
pub struct Earlier<'a> {
    /// What was skipped then, and stays skipped.
    pub skipped: &'a [Skipped],
    /// Whether a file was captured then, and so must be again.
    pub captured: &'a dyn Fn(&BStr) -> bool,
    /// Whether a directory was there then.
    pub has_directory: &'a dyn Fn(&BStr) -> bool,
}

/// Whether the content of a file is known, so that it need not be read.
pub type Knows<'a> = &'a dyn Fn(&Candidate) -> bool;

/// A file on disk whose content is not known from the index.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Its path.
    pub path: BString,
    /// What it is.
    pub kind: Kind,
    /// Its size in bytes.
    pub size: u64,
    /// A fingerprint of its stat data; `None` for a file that was changed just now.
    pub stamp: Option<u64>,
    /// Whether others cannot read it, though they could read what git has: nothing new of it is for git.
    pub private: bool,
}

/// How a tracked path differs from its index entry.
#[derive(Clone, Debug)]
pub enum Difference {
    /// Its stat data differ; its content has to be read.
    MaybeModified(Candidate),
    /// Its stat data are the entry's, and yet its bytes are these and not the blob's: something converted it when git took it
    /// in or wrote it, or git did not see it change.
    Holds(Candidate, ObjectId),
    /// It is not there, or something that is no file is.
    Gone,
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scan {
    /// Index entries that are not exactly as the index says, by their position.
    pub tracked: Vec<(usize, Difference)>,
    /// Directories that a sparse checkout leaves out and that are missing, with the positions of their entries.
    pub missing_sparse: Vec<(BString, Range<usize>)>,
    /// Index entries that are marked skip-worktree and are on disk all the same, by their position.
    pub present_sparse: Vec<usize>,
    /// Files that are not in the index and not ignored.
    pub untracked: Vec<Candidate>,
    /// Permission bits that are not the usual ones; a directory's path ends with a slash.
    pub unusual: BTreeMap<BString, u32>,
    /// Directories without a captured file below them.
    pub directories: BTreeSet<BString>,
    /// What exists but is not captured.
    pub skipped: Vec<Skipped>,
    /// What is ignored; of a directory nothing that is in it.
    pub ignored: Vec<BString>,
    /// The directories whose names are known, for the next scan's record.
    pub listed: Vec<Listing>,
    /// The fingerprints of directories in which nothing differs: the next scan only asks the monitor about them.
    pub unchanged_dirs: Vec<u64>,
}

/// What one thread found among the tracked directories.
#[derive(Default)]
pub struct Findings {
    pub tracked: Vec<(usize, Difference)>,
    pub missing_sparse: Vec<(BString, Range<usize>)>,
    pub present_sparse: Vec<usize>,
    pub unusual: BTreeMap<BString, u32>,
    pub skipped: Vec<Skipped>,
    pub ignore_files: Vec<BString>,
    pub unknown: Vec<(BString, FileType)>,
    pub occupied: Vec<BString>,
    pub empty: Vec<BString>,
    pub listed: Vec<Listing>,
    pub unchanged_dirs: Vec<u64>,
    /// How many files have another hard link, through which they may change where the monitor does not see it.
    pub linked: usize,
}

impl Findings {
    pub fn merge(&mut self, other: Self) {
        self.tracked.extend(other.tracked);
        self.missing_sparse.extend(other.missing_sparse);
        self.present_sparse.extend(other.present_sparse);
        self.unusual.extend(other.unusual);
        self.skipped.extend(other.skipped);
        self.ignore_files.extend(other.ignore_files);
        self.unknown.extend(other.unknown);
        self.occupied.extend(other.occupied);
        self.empty.extend(other.empty);
        self.listed.extend(other.listed);
        self.unchanged_dirs.extend(other.unchanged_dirs);
    }

    /// Notes a directory below the top that was met.
    pub fn seen(&mut self, path: &BStr, occupied: bool) {
        if !path.is_empty() {
            let list = if occupied { &mut self.occupied } else { &mut self.empty };
            list.push(path.to_owned());
        }
    }

    /// How many findings there are because of which a directory does not count as unchanged.
    pub fn findings(&self) -> usize {
        self.tracked.len() + self.present_sparse.len() + self.unusual.len() + self.skipped.len() + self.linked
    }
}

pub fn skipped(path: &BStr, reason: Reason, size: u64) -> Skipped {
    Skipped { path: path.to_owned(), reason, size, state: None }
}

pub fn special(path: &BStr) -> Skipped {
    skipped(path, Reason::Special, 0)
}

/// A fingerprint of a file that is not captured: with its mode, to tell a change of that.
pub fn state_of(reason: Reason, stat: &Stat) -> Option<String> {
    let state = file_state(stat)?;
    // Of one that cannot be read, somebody else tells.
    Some(if reason == Reason::Unreadable { state } else { format!("{state} {:o}", mode_of(stat)) })
}

pub fn as_path(path: &BStr) -> &std::path::Path {
    std::path::Path::new(std::ffi::OsStr::from_bytes(path))
}

pub fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// The names in a directory, sorted as the index sorts them: a directory with its slash.
pub fn names_in(fd: &OwnedFd) -> Result<Vec<(Vec<u8>, FileType)>> {
    let mut names = Vec::with_capacity(32);
    for entry in Dir::read_from(fd)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let Ok(stat) = statat(fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            kind = FileType::from_raw_mode(stat.st_mode);
        }
        if name == b".git" {
            // Only a directory's being a repository matters; its name sorts as a file's.
            names.push((name.to_vec(), FileType::Unknown));
            continue;
        }
        let mut name = name.to_vec();
        if kind == FileType::Directory {
            name.push(b'/');
        }
        names.push((name, kind));
    }
    names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    Ok(names)
}

/// A directory to read: its path with a slash behind, and its range of the index.
#[derive(Clone)]
pub struct Job {
    pub path: BString,
    pub from: usize,
    pub to: usize,
}

impl Job {
    /// The top, with the whole index.
    pub fn top(index: &State) -> Self {
        Self { path: BString::default(), from: 0, to: index.entries().len() }
    }

    /// The directory's path, without a slash behind.
    pub fn directory(&self) -> &BStr {
        self.path.strip_suffix(b"/").unwrap_or_default().as_bstr()
    }

    /// The next name that the index has in it: a file's, or a directory's with its slash.
    pub fn component<'a>(&self, index: &'a State, at: usize) -> &'a [u8] {
        let rest = &index.entries()[at].path(index)[self.path.len()..];
        rest.find_byte(b'/').map_or(rest, |slash| &rest[..=slash])
    }

    /// The position after the last entry that is below the directory with this one.
    pub fn group_end(&self, index: &State, at: usize) -> usize {
        let component = self.component(index, at);
        let start = self.path.len();
        let entries = &index.entries()[at..self.to];
        at + entries.partition_point(|entry| entry.path(index)[start..].starts_with(component))
    }

    /// The directory in it that begins with this entry, where one does.
    pub fn below(&self, index: &State, at: usize) -> Option<Self> {
        let component = self.component(index, at);
        let path = || [self.path.as_slice(), component].concat().into();
        component.ends_with(b"/").then(|| Self { path: path(), from: at, to: self.group_end(index, at) })
    }

    /// A hash of the index's entries in the directory, without those in its subdirectories.
    pub fn fingerprint(&self, index: &State) -> u64 {
        const FLAGS: Flags =
            Flags::STAGE_MASK.union(Flags::ASSUME_VALID).union(Flags::INTENT_TO_ADD).union(Flags::SKIP_WORKTREE);
        // One piece is hashed much faster than many.
        let mut fingerprint = Vec::with_capacity(1 << 12);
        fingerprint.extend_from_slice(&self.path);
        let mut at = self.from;
        while at < self.to {
            let component = self.component(index, at);
            fingerprint.push(0);
            fingerprint.extend_from_slice(component);
            fingerprint.push(0);
            let entry = &index.entries()[at];
            if component.ends_with(b"/") && entry.mode != Mode::DIR {
                at = self.group_end(index, at);
                continue;
            }
            let index::Stat { mtime, ctime, dev, ino, uid, gid, size } = entry.stat;
            let (mode, flags) = (entry.mode.bits(), (entry.flags & FLAGS).bits());
            let numbers = [mode, flags, mtime.secs, mtime.nsecs, ctime.secs, ctime.nsecs, dev, ino, uid, gid, size];
            fingerprint.extend_from_slice(numbers.map(u32::to_ne_bytes).as_flattened());
            fingerprint.extend_from_slice(entry.id.as_slice());
            at += 1;
        }
        hash_of(&fingerprint)
    }
}

/// A directory with more untracked names than this is read each time: the record stays small.
const MOST_UNKNOWN: usize = 200;

/// A directory that has every name that the index has in it, and its other names.
#[derive(Clone, Debug)]
pub struct Listing {
    /// A key of its path and the index's names in it, and a fingerprint of its stat data.
    pub stamp: (u64, u64),
    /// The names in it that are not in the index.
    pub unknown: Vec<Name>,
}

impl Listing {
    /// A directory for the record, unless it has too many untracked names.
    pub fn new(stamp: (u64, u64), unknown: Vec<Name>) -> Option<Self> {
        (unknown.len() <= MOST_UNKNOWN).then_some(Self { stamp, unknown })
    }
}
