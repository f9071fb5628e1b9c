//! The half of a scan that goes by the index: directories in parallel, each merged with its entries.

use crate::git::index::sparse::is_left_out;
use crate::git::repo::threads::in_threads;
use crate::git::scan::found::{Findings, Job, Listing, Name, hash_of, names_in, skipped};
use crate::git::scan::nested::is_repository;
use crate::git::scan::scanner::Scanner;
use crate::git::worktree::is_denied;
use crate::git::worktree::stat::mode_of;
use crate::model::bytes::in_quotes;
use crate::model::checkpoint::Reason;
use anyhow::{Context, Result, anyhow};
use gix::bstr::ByteSlice;
use gix::index::entry::{Flags, Mode, Stage};
use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};

/// The directories still to read, and how many are being read.
pub(super) struct Queue {
    state: Mutex<(Vec<Job>, usize)>,
    ready: Condvar,
}

impl Queue {
    pub fn starting_with(job: Job) -> Self {
        Self { state: Mutex::new((vec![job], 0)), ready: Condvar::new() }
    }

    fn take(&self) -> Option<Job> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(job) = state.0.pop() {
                state.1 += 1;
                return Some(job);
            }
            if state.1 == 0 {
                return None;
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Does jobs until there are none left anywhere. A panic in one of them is an error, and not the end of this thread while
    /// others wait for what it was about to bring.
    pub fn drain(&self, mut work: impl FnMut(&Job) -> Result<Vec<Job>>) -> Result<()> {
        while let Some(job) = self.take() {
            let outcome = catch_unwind(AssertUnwindSafe(|| work(&job)));
            let outcome = outcome.unwrap_or_else(|_| {
                let what = in_quotes(job.path.as_bstr());
                Err(anyhow!("look at the files in {what}: this is a bug in oxundo, of which it has told above"))
            });
            self.done(outcome.as_ref().ok().cloned().unwrap_or_default());
            outcome?;
        }
        Ok(())
    }

    fn done(&self, jobs: Vec<Job>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let more = !jobs.is_empty();
        state.0.extend(jobs);
        state.1 -= 1;
        let over = state.0.is_empty() && state.1 == 0;
        drop(state);
        if more || over {
            self.ready.notify_all();
        }
    }
}

/// The merge of one directory's names with its range of the index.
struct DirectoryDiff<'a, 'b> {
    scanner: &'a Scanner<'b>,
    job: &'a Job,
    /// The directory; `None` where its files are known to be as the index says.
    fd: Option<&'a OwnedFd>,
    found: &'a mut Findings,
    jobs: Vec<Job>,
    occupied: bool,
    nested: bool,
    /// Whether the directory holds every name that the index has in it.
    complete: bool,
    /// The names in it that are not in the index.
    unknown: Vec<Name>,
    /// Why something in it could not be looked at.
    failed: Option<Errno>,
}

impl<'a, 'b> DirectoryDiff<'a, 'b> {
    fn new(scanner: &'a Scanner<'b>, job: &'a Job, fd: Option<&'a OwnedFd>, found: &'a mut Findings) -> Self {
        let (jobs, unknown) = (Vec::new(), Vec::new());
        Self { scanner, job, fd, found, jobs, occupied: false, nested: false, complete: true, unknown, failed: None }
    }

    /// A hash of the names that the index has in this directory.
    fn names(&self) -> u64 {
        let mut names = Vec::new();
        let mut at = self.job.from;
        while at < self.job.to {
            let component = self.component(at);
            names.extend_from_slice(component);
            names.push(0);
            at = if component.ends_with(b"/") { self.group_end(at) } else { self.stages_end(at) };
        }
        hash_of(&names)
    }

    /// Merges with a directory that is known to have the index's names, and these others.
    fn run_as_known(&mut self, unknown: &[Name]) {
        let mut at = self.job.from;
        while at < self.job.to {
            let scanner = self.scanner;
            at = self.in_both(at, self.job.component(scanner.index, at));
        }
        self.look_for_repository(unknown);
        for name in unknown {
            self.only_on_disk(name);
        }
    }

    fn run(&mut self, names: &[Name]) {
        self.look_for_repository(names);
        let (mut at, mut k) = (self.job.from, 0);
        while at < self.job.to || k < names.len() {
            if k < names.len() && names[k].0 == b".git" {
                self.only_on_disk(&names[k]);
                k += 1;
                continue;
            }
            if at < self.job.to && self.scanner.index.entries()[at].mode == Mode::DIR {
                self.complete = false;
                at += 1;
                continue;
            }
            let component = (at < self.job.to).then(|| self.component(at));
            let order = match (component, names.get(k)) {
                (Some(component), Some((name, _))) => component.cmp(name.as_slice()),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, _) => std::cmp::Ordering::Greater,
            };
            self.complete &= order.is_ge();
            match order {
                std::cmp::Ordering::Less => at = self.only_in_index(at, names),
                std::cmp::Ordering::Greater => {
                    self.only_on_disk(&names[k]);
                    k += 1;
                }
                std::cmp::Ordering::Equal => {
                    at = self.in_both(at, &names[k].0);
                    k += 1;
                }
            }
        }
    }

    /// Of a directory that is a repository of its own, only what is tracked here is taken in.
    fn look_for_repository(&mut self, names: &[Name]) {
        self.nested = !self.job.path.is_empty() && self.fd.is_some_and(|fd| is_repository(fd, names));
        if self.nested {
            let path = self.job.directory();
            self.found.skipped.push(skipped(path, Reason::Repository, 0));
        }
    }

    fn component(&self, at: usize) -> &[u8] {
        self.job.component(self.scanner.index, at)
    }

    fn group_end(&self, at: usize) -> usize {
        self.job.group_end(self.scanner.index, at)
    }

    fn only_in_index(&mut self, at: usize, names: &[Name]) -> usize {
        if self.component(at).ends_with(b"/") {
            let end = self.group_end(at);
            if self.scanner.index.entries()[at..end].iter().all(is_left_out) {
                let directory =
                    [self.job.path.as_slice(), &self.component(at)[..self.component(at).len() - 1]].concat();
                self.found.missing_sparse.push((directory.into(), at..end));
            } else {
                (at..end).for_each(|at| self.scanner.gone(at, self.found));
            }
            return end;
        }
        let entry = &self.scanner.index.entries()[at];
        let is_directory = |name: &[u8]| names.binary_search_by(|n| n.0.cmp(&[name, b"/"].concat())).is_ok();
        if entry.flags.contains(Flags::SKIP_WORKTREE) && is_directory(self.component(at)) {
            self.found.present_sparse.push(at);
        }
        if entry.mode == Mode::COMMIT {
            // A submodule: `sub` in the index, `sub/` on disk. The name is met again as one not in the index.
            self.occupied |= is_directory(self.component(at));
            return at + 1;
        }
        let end = self.stages_end(at);
        self.scanner.gone(at, self.found);
        end
    }

    fn only_on_disk(&mut self, unknown: &Name) {
        self.unknown.push(unknown.clone());
        let (name, kind) = unknown;
        self.special_files(name);
        if !self.nested && name != b".git" {
            let path = [self.job.path.as_slice(), name].concat();
            self.found.unknown.push((path.into(), *kind));
        }
    }

    fn special_files(&mut self, name: &[u8]) {
        if name == b".gitignore" {
            self.found.ignore_files.push([self.job.path.as_slice(), name].concat().into());
        }
    }

    fn in_both(&mut self, at: usize, name: &[u8]) -> usize {
        if name.ends_with(b"/") {
            let end = self.group_end(at);
            self.jobs.push(Job { path: [self.job.path.as_slice(), name].concat().into(), from: at, to: end });
            return end;
        }
        self.occupied = true;
        self.special_files(name);
        let end = self.stages_end(at);
        let Some(fd) = self.fd else { return end };
        match statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => self.scanner.entry(at, (fd.as_fd(), OsStr::from_bytes(name)), &stat, self.found),
            Err(Errno::ACCESS) => {
                self.found.skipped.push(skipped(self.scanner.path(at), Reason::Unreadable, 0));
            }
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => self.scanner.gone(at, self.found),
            Err(error) => self.failed = Some(error),
        }
        end
    }

    /// The position after the last entry with this path; only an unmerged path has several.
    fn stages_end(&self, at: usize) -> usize {
        if self.scanner.index.entries()[at].stage() == Stage::Unconflicted {
            return at + 1;
        }
        let path = self.scanner.path(at);
        let mut end = at + 1;
        while end < self.job.to && self.scanner.path(end) == path {
            end += 1;
        }
        end
    }
}

/// So many files are looked at as fast as another thread starts.
const FEW: usize = 250;

/// In how many threads to walk over so many files. The system is asked once: it looks at several files for it.
pub(super) fn threads(files: usize) -> usize {
    static THREADS: LazyLock<usize> =
        LazyLock::new(|| std::thread::available_parallelism().map_or(2, |n| n.get().min(8)));
    if files <= FEW { 1 } else { *THREADS }
}

impl Scanner<'_> {
    /// Walks over all that the index knows, in several threads.
    pub fn walk_tracked(&self) -> Result<Findings> {
        let queue = Queue::starting_with(Job::top(self.index));
        let work = || {
            let mut found = Findings::default();
            queue.drain(|job| {
                let outcome = self.directory(job, &mut found);
                let below: usize = outcome.iter().flatten().map(|job| job.to - job.from).sum();
                self.underway.advance((job.to - job.from).saturating_sub(below));
                outcome
            })?;
            Ok(found)
        };
        let mut all = Findings::default();
        for found in in_threads(threads(self.index.entries().len()), work) {
            all.merge(found?);
        }
        Ok(all)
    }

    /// Compares one directory with its range of the index; gives the subdirectories to go on with.
    pub fn directory(&self, job: &Job, found: &mut Findings) -> Result<Vec<Job>> {
        let path = job.directory();
        // What is in there counts as unchanged.
        let unreadable = |found: &mut Findings| {
            found.skipped.push(skipped(path, Reason::Unreadable, 0));
            found.occupied.push(path.to_owned());
            Ok(Vec::new())
        };
        let fingerprint = self.monitor.map(|_| job.fingerprint(self.index));
        if let (Some(monitor), Some(fingerprint)) = (self.monitor, fingerprint)
            && monitor.knows(path, fingerprint)
        {
            return Ok(self.unchanged(job, fingerprint, found));
        }
        let findings = found.findings();
        let fd = match self.worktree.open_directory(path) {
            Err(error) if is_denied(&error) => return unreadable(found),
            opened => opened?,
        };
        let Some(fd) = fd else {
            (job.from..job.to).for_each(|at| self.gone(at, found));
            return Ok(Vec::new());
        };
        let stat = rustix::fs::fstat(&fd)?;
        let mut merge = DirectoryDiff::new(self, job, Some(&fd), found);
        let stamp = self.directories.stamp(path, &stat, || merge.names());
        if let Some(unknown) = stamp.and_then(|stamp| self.directories.unknown(stamp)) {
            merge.run_as_known(unknown);
        } else {
            let mut names = match names_in(&fd) {
                Err(error) if is_denied(&error) => return unreadable(found),
                names => names?,
            };
            self.spell_as_the_index(job, &fd, &mut names);
            merge.run(&names);
        }
        let DirectoryDiff { jobs, occupied, complete, unknown, failed, .. } = merge;
        if let Some(error) = failed {
            return Err(error).with_context(|| format!("look at the files in {}", in_quotes(path)));
        }
        let is_plain = complete && unknown.is_empty();
        found.listed.extend(stamp.filter(|_| complete).and_then(|stamp| Listing::new(stamp, unknown)));
        if !job.path.is_empty() {
            let mode = mode_of(&stat);
            if mode != self.usual.directory {
                found.unusual.insert(job.path.clone(), mode);
            }
        }
        found.unchanged_dirs.extend(fingerprint.filter(|_| is_plain && findings == found.findings()));
        found.seen(path, occupied);
        Ok(jobs)
    }

    /// Where `core.ignoreCase` is set, a file that has other letters on disk than in the index is the tracked file: it
    /// gets the index's name.
    fn spell_as_the_index(&self, job: &Job, fd: &OwnedFd, names: &mut [Name]) {
        if !self.worktree.ignores_case() {
            return;
        }
        let has = |component: &[u8]| names.binary_search_by(|name| name.0.as_slice().cmp(component)).is_ok();
        let (here, gone): (BTreeSet<&[u8]>, BTreeSet<&[u8]>) =
            (job.from..job.to).map(|at| job.component(self.index, at)).partition(|component| has(component));
        if gone.is_empty() {
            return;
        }
        let mut gone: BTreeMap<_, _> = gone.into_iter().map(|name| (name.to_ascii_lowercase(), name)).collect();
        for (name, _) in names.iter_mut().filter(|(name, _)| !here.contains(name.as_slice())) {
            // The file system decides: the setting may come from another machine.
            if let Some(spelled) = gone.remove(&name.to_ascii_lowercase())
                && statat(fd, spelled, AtFlags::SYMLINK_NOFOLLOW).is_ok()
            {
                *name = spelled.to_vec();
            }
        }
        names.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    }

    /// A directory that the monitor says is unchanged: it is not looked at.
    fn unchanged(&self, job: &Job, fingerprint: u64, found: &mut Findings) -> Vec<Job> {
        let path = job.directory();
        let mut merge = DirectoryDiff::new(self, job, None, found);
        let listing = self.directories.earlier(path, || merge.names());
        merge.run_as_known(&[]);
        let DirectoryDiff { jobs, occupied, .. } = merge;
        found.listed.extend(listing);
        found.unchanged_dirs.push(fingerprint);
        found.seen(path, occupied);
        jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_panic_in_any_thread_is_an_error_and_nobody_waits_for_ever() {
        let job = |path: &str| Job { path: path.into(), from: 0, to: 0 };
        for bad in 0..20 {
            let (queue, done) = (Queue::starting_with(job("")), AtomicUsize::new(0));
            let all = in_threads(4, || {
                queue.drain(|at| {
                    let number = done.fetch_add(1, Ordering::SeqCst);
                    assert_ne!(number, bad, "a bug");
                    Ok(if at.path.len() < 4 {
                        vec![job(&format!("{}a", at.path)), job(&format!("{}b", at.path))]
                    } else {
                        Vec::new()
                    })
                })
            });
            let failed: Vec<_> = all.into_iter().filter_map(Result::err).collect();
            assert_eq!(failed.len(), 1, "{bad}");
            assert!(failed[0].to_string().contains("bug in oxundo"), "{failed:?}");
        }
    }
}
