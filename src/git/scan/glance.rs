//! Whether any tracked file is another than its entry says, as git's own status sees it. For a prompt that is all: no name is
//! looked for that the index has not, and the first difference is enough.

use crate::git::repo::threads::in_threads;
use crate::git::scan::found::Job;
use crate::git::scan::fsmonitor::Monitor;
use crate::git::scan::scanner::{Looks, is_plain};
use crate::git::scan::tracked::{Queue, threads};
use crate::git::worktree::look::look;
use crate::git::worktree::stat::{index_stat, kind_of, mode_of};
use crate::git::worktree::{Worktree, is_denied};
use crate::model::bytes::in_quotes;
use crate::model::checkpoint::Kind;
use anyhow::{Context, Result};
use gix::index::entry::{Flags, Mode};
use gix::index::{Entry, State};
use rustix::fs::{AtFlags, Stat, statat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

/// What a glance works with.
pub struct Glance<'a> {
    /// The worktree.
    pub worktree: Worktree<'a>,
    /// The index.
    pub index: &'a State,
    /// How a file is compared with its entry.
    pub looks: Looks,
    /// The file system monitor, where there is one.
    pub monitor: Option<&'a Monitor>,
    /// Whether git looks at a file that its entry leaves out of the worktree and that is there all the same.
    pub shows_left_out: bool,
}

/// How a file may differ from its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Whatever its bytes are.
    Sure,
    /// In its bytes, of which git may make those of the entry.
    Bytes,
}

impl Glance<'_> {
    /// A tracked file that is another than its entry says, by its place in the index: the first that is met.
    pub fn first(&self) -> Result<Option<(usize, Difference)>> {
        let (queue, first) = (Queue::starting_with(Job::top(self.index)), OnceLock::new());
        let work = || {
            queue.drain(|job| match first.get() {
                Some(_) => Ok(Vec::new()),
                None => self.directory(job, &first),
            })
        };
        in_threads(threads(self.index.entries().len()), work).into_iter().collect::<Result<()>>()?;
        Ok(first.into_inner())
    }

    /// Compares one directory with its range of the index; gives the subdirectories to go on with.
    fn directory(&self, job: &Job, first: &OnceLock<(usize, Difference)>) -> Result<Vec<Job>> {
        let is_known = self.monitor.is_some_and(|it| it.knows(job.directory(), job.fingerprint(self.index)));
        let opened = match self.worktree.open_directory(job.directory()) {
            _ if is_known => None,
            // What is in there counts as unchanged.
            Err(error) if is_denied(&error) => return Ok(Vec::new()),
            opened => opened?,
        };
        if opened.is_none() && !is_known {
            let gone = (job.from..job.to).find(|at| is_missed(&self.index.entries()[*at]));
            gone.map(|at| first.set((at, Difference::Sure)));
            return Ok(Vec::new());
        }
        let (mut at, mut below) = (job.from, Vec::new());
        while at < job.to {
            if let Some(directory) = job.below(self.index, at) {
                at = directory.to;
                below.push(directory);
                continue;
            }
            if let Some(directory) = &opened
                && let Some(difference) = self.entry(at, directory, job.component(self.index, at))?
            {
                // Another thread may have met one before.
                let _ = first.set((at, difference));
                return Ok(Vec::new());
            }
            at += 1;
        }
        Ok(below)
    }

    fn entry(&self, at: usize, directory: &OwnedFd, name: &[u8]) -> Result<Option<Difference>> {
        let entry = &self.index.entries()[at];
        let is_left_out = entry.flags.contains(Flags::SKIP_WORKTREE) && !self.shows_left_out;
        if is_left_out || entry.flags.contains(Flags::ASSUME_VALID) {
            return Ok(None);
        }
        let missed = is_missed(entry).then_some(Difference::Sure);
        let stat = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::ACCESS) => return Ok(None),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(missed),
            Err(error) => {
                let what = in_quotes(entry.path(self.index));
                return Err(error).with_context(|| format!("look at the file {what}"));
            }
        };
        let Some(kind) = kind_of(&stat).map(|kind| self.looks.kind(entry, kind)) else { return Ok(missed) };
        if !is_plain(entry, kind) {
            return Ok(Some(Difference::Sure));
        }
        let is_clean = self.looks.is_clean(self.index, entry, &stat);
        Ok(if is_clean { None } else { content(entry, directory, name, &stat, kind) })
    }
}

/// Whether git minds that nothing is where a file of this entry would be.
fn is_missed(entry: &Entry) -> bool {
    !matches!(entry.mode, Mode::COMMIT | Mode::DIR)
        && !entry.flags.intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE)
}

/// How what is in a file differs from its entry, where its stat data do.
fn content(entry: &Entry, directory: &OwnedFd, name: &[u8], stat: &Stat, kind: Kind) -> Option<Difference> {
    // As git has it: another size is another content, but where it has left the size open; and to open a file that is closed
    // would change its stat data.
    let is_other_size = entry.stat.size != 0 && entry.stat.size != index_stat(stat).size;
    if is_other_size || kind != Kind::Symlink && mode_of(stat) & 0o400 == 0 {
        return Some(Difference::Sure);
    }
    let seen = look((directory.as_fd(), OsStr::from_bytes(name)), entry.id.kind()).ok().flatten();
    match seen.and_then(|seen| seen.state) {
        Some(state) if state.id == entry.id => None,
        Some(_) => Some(Difference::Bytes),
        None => Some(Difference::Sure),
    }
}
