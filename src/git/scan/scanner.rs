//! What a scan works with, and the comparison of one index entry with its file.

use crate::git::repo::platform::At;
use crate::git::scan::dircache::DirCache;
use crate::git::scan::found::{Candidate, Difference, Findings, special};
use crate::git::scan::fsmonitor::Monitor;
use crate::git::scan::read::ReadFiles;
use crate::git::worktree::Worktree;
use crate::git::worktree::look::look;
use crate::git::worktree::stat::{index_stat, kind_of, mode_of, size_of};
use crate::model::checkpoint::{Kind, UsualModes};
use crate::model::limits::Limits;
use crate::progress::ProgressGuard;
use gix::ObjectId;
use gix::bstr::BStr;
use gix::index::entry::stat::Options;
use gix::index::entry::{Flags, Mode, Stage};
use gix::index::{Entry, State};

/// How a file is compared with its entry.
#[derive(Clone, Copy, Debug)]
pub struct Looks {
    /// How stat data are compared.
    pub stat_options: Options,
    /// `core.fileMode`.
    pub file_mode: bool,
}

impl Looks {
    /// What a file of this kind is, beside its entry.
    pub fn kind(&self, entry: &Entry, kind: Kind) -> Kind {
        match entry.mode {
            _ if self.file_mode || kind == Kind::Symlink => kind,
            Mode::FILE_EXECUTABLE => Kind::Executable,
            _ => Kind::File,
        }
    }

    /// Whether a file is as its entry says, by its stat data.
    pub fn is_clean(&self, index: &State, entry: &Entry, stat: &rustix::fs::Stat) -> bool {
        let now = index_stat(stat);
        now.matches(&entry.stat, self.stat_options) && !now.is_racy(index.timestamp(), self.stat_options)
    }
}

/// Whether an entry is of one file, of this kind, with content.
pub fn is_plain(entry: &Entry, kind: Kind) -> bool {
    let same_kind = match entry.mode {
        Mode::FILE => kind == Kind::File,
        Mode::FILE_EXECUTABLE => kind == Kind::Executable,
        Mode::SYMLINK => kind == Kind::Symlink,
        _ => false,
    };
    same_kind && entry.stage() == Stage::Unconflicted && !entry.flags.contains(Flags::INTENT_TO_ADD)
}

/// What the scan works with.
pub struct Scanner<'a> {
    /// The worktree.
    pub worktree: Worktree<'a>,
    /// The index.
    pub index: &'a State,
    /// How a file is compared with its entry.
    pub looks: Looks,
    /// The permission bits that are not recorded.
    pub usual: UsualModes,
    /// What is captured of untracked content.
    pub limits: &'a Limits,
    /// The directories that need not be read.
    pub directories: &'a DirCache,
    /// What is known of the content of tracked files; without it, the index is believed.
    pub read: Option<&'a ReadFiles>,
    /// The file system monitor, where there is one.
    pub monitor: Option<&'a Monitor>,
    /// Counts the progress.
    pub underway: &'a ProgressGuard<'a>,
}

impl Scanner<'_> {
    pub fn path(&self, at: usize) -> &BStr {
        self.index.entries()[at].path(self.index)
    }

    pub fn gone(&self, at: usize, found: &mut Findings) {
        let mode = self.index.entries()[at].mode;
        if mode != Mode::COMMIT && mode != Mode::DIR {
            found.tracked.push((at, Difference::Gone));
        }
    }

    /// Compares a tracked path with its stat data. `file` is where it is.
    pub fn entry(&self, at: usize, file: At<'_>, stat: &rustix::fs::Stat, found: &mut Findings) {
        let entry = &self.index.entries()[at];
        let path = entry.path(self.index);
        let mode = mode_of(stat);
        if entry.flags.contains(Flags::SKIP_WORKTREE) {
            found.present_sparse.push(at);
        }
        let Some(kind) = kind_of(stat).map(|kind| self.looks.kind(entry, kind)) else {
            found.skipped.push(special(path));
            self.gone(at, found);
            return;
        };
        if kind != Kind::Symlink && mode != self.usual.of(kind) {
            found.unusual.insert(path.to_owned(), mode);
        }
        found.linked += usize::from(stat.st_nlink > 1);
        let clean = is_plain(entry, kind) && self.looks.is_clean(self.index, entry, stat);
        let candidate = || Candidate { path: path.to_owned(), kind, size: size_of(stat), stamp: None, private: false };
        if !clean {
            found.tracked.push((at, Difference::MaybeModified(candidate())));
        } else if let Some(holds) = self.content(at, file, stat)
            && holds != entry.id
        {
            found.tracked.push((at, Difference::Holds(candidate(), holds)));
        }
    }

    /// What a file holds that the index calls clean: known, or read now. `None` where the index is to be believed, which it
    /// is of a file that cannot be read.
    fn content(&self, at: usize, file: At<'_>, stat: &rustix::fs::Stat) -> Option<ObjectId> {
        let files = self.read?;
        let entry = &self.index.entries()[at];
        let (path, blob) = (entry.path(self.index), entry.id);
        let key = files.key_of(path, stat, blob);
        if let Some(known) = key.and_then(|key| files.find(at, key, blob)) {
            return Some(known);
        }
        // To open a file that is closed would change its stat data.
        let is_closed = kind_of(stat) != Some(Kind::Symlink) && mode_of(stat) & 0o400 == 0;
        let seen = if is_closed { None } else { look(file, files.hash()).ok().flatten() }?;
        let holds = seen.state?.id;
        if let Some(key) = key.filter(|_| files.key_of(path, &seen.stat, blob) == key) {
            files.add(at, key, holds, blob, size_of(stat));
        }
        Some(holds)
    }
}
