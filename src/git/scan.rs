//! One pass over the worktree, merged with the sorted index: what differs from
//! the index, what is not in it, and which permission bits are unusual.
//! Directories are read in parallel; only names unknown to the index are held
//! against the ignore rules.

use super::ignore::{Rules, read_rules};
use super::known::{Listing, Listings};
use super::monitor::Monitor;
use super::sparse::is_left_out;
use super::stat::{file_state, index_stat, kind_of, mode_of, stamp_of};
use super::worktree::{Worktree, is_denied, is_storable};
use crate::model::checkpoint::{Kind, Reason, Skipped, UsualModes};
use crate::model::plan::parents;
use crate::model::progress::Underway;
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::{Flags, Mode, Stage, Stat};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, openat, statat};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Condvar, Mutex, PoisonError};

/// Which untracked content is captured.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest file captured, in bytes.
    pub max_file_size: u64,
    /// The most files in an untracked directory.
    pub max_directory_entries: u64,
    /// Names of directories that are not entered.
    pub skip_directories: HashSet<BString>,
    /// Paths that are not captured.
    pub exclude: globset::GlobSet,
    /// Patterns of ignored paths that are captured all the same.
    pub include: Vec<String>,
}

/// What a capture already knows from the one before it in the same turn.
pub struct Earlier<'a> {
    /// What was skipped then stays skipped.
    pub skipped: &'a [Skipped],
    /// Whether a path was captured then, and so must be again.
    pub captured: &'a dyn Fn(&BStr) -> bool,
}

/// A file on disk whose content is not known from the index.
#[derive(Clone, Debug)]
pub struct Unread {
    /// Its path.
    pub path: BString,
    /// What it is.
    pub kind: Kind,
    /// Its permission bits.
    pub mode: u32,
    /// What changes whenever its content does, unless that was just now.
    pub stamp: Option<u64>,
}

/// How a tracked path differs from its index entry.
#[derive(Clone, Debug)]
pub enum Difference {
    /// Its stat data differ; its content has to be read.
    Suspect(Unread),
    /// It is not there, or something that is no file is.
    Gone,
}

/// What a scan found.
#[derive(Debug, Default)]
pub struct Scan {
    /// Index entries that are not exactly as the index says, by their position.
    pub tracked: Vec<(usize, Difference)>,
    /// Directories that are not there and are not to be, with the positions of what is in them.
    pub absent: Vec<(BString, Range<usize>)>,
    /// Index entries that are there and were to be left out, by their position.
    pub shown: Vec<usize>,
    /// Files that are not in the index and not ignored.
    pub untracked: Vec<Unread>,
    /// Permission bits that are not the usual ones; directories with a slash behind.
    pub unusual: BTreeMap<BString, u32>,
    /// Directories without a captured file below them.
    pub directories: BTreeSet<BString>,
    /// What is there but not captured.
    pub skipped: Vec<Skipped>,
    /// The paths of `.gitattributes` files seen.
    pub attributes: Vec<BString>,
    /// The directories of which the names are known, for the next scan.
    pub listed: Vec<Listing>,
    /// The directories of which a monitor need only be asked whether they changed, for the next scan.
    pub plain: Vec<u64>,
}

/// What the scan works with.
pub struct Scanner<'a> {
    /// The worktree.
    pub worktree: &'a Worktree,
    /// The index.
    pub index: &'a gix::index::State,
    /// How stat data are compared.
    pub stat_options: gix::index::entry::stat::Options,
    /// `core.fileMode`.
    pub file_mode: bool,
    /// The permission bits not worth a record.
    pub usual: UsualModes,
    /// What is captured of untracked content.
    pub limits: &'a Limits,
    /// The directories that need not be read.
    pub listings: &'a Listings,
    /// Who knows which directories have not changed at all.
    pub monitor: Option<&'a Monitor>,
    /// Who is told how far it is.
    pub underway: &'a Underway<'a>,
}

impl Scanner<'_> {
    /// Scans with `rules`. Without an `earlier` capture in the same turn, which froze them, the
    /// `.gitignore` files that the scan meets are added to them.
    ///
    /// # Errors
    ///
    /// When a directory cannot be read.
    pub fn scan(&self, rules: &mut Rules, earlier: Option<&Earlier<'_>>) -> Result<Scan> {
        let frozen = earlier.is_some();
        let found = self.walk_tracked()?;
        let mut scan = Scan {
            tracked: found.tracked,
            absent: found.absent,
            shown: found.shown,
            unusual: found.unusual,
            skipped: found.skipped,
            attributes: found.attributes,
            listed: found.listed,
            plain: found.plain,
            ..Scan::default()
        };
        if !frozen {
            for path in found.ignore_files {
                if let Some(text) = self.worktree.read_plain_file(path.as_bstr()) {
                    rules.add(path, text);
                }
            }
        }
        let mut unknown = UnknownWalk {
            scanner: self,
            rules,
            earlier,
            scan: &mut scan,
            excluded: HashMap::new(),
            occupied: found.occupied,
            empty: found.empty,
            earlier_skips: (earlier.iter())
                .flat_map(|earlier| earlier.skipped)
                .map(|skipped| (skipped.path.clone(), skipped.clone()))
                .collect(),
        };
        unknown.run(found.unknown)?;
        scan.tracked.sort_by_key(|(at, _)| *at);
        Ok(scan)
    }

    fn walk_tracked(&self) -> Result<Found> {
        let queue = Queue {
            state: Mutex::new((vec![Job { path: BString::default(), from: 0, to: self.index.entries().len() }], 0)),
            ready: Condvar::new(),
        };
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get().min(8));
        let mut all = Found::default();
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.work(&queue))).collect();
            for worker in workers {
                match worker.join() {
                    Ok(found) => all.merge(found?),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            anyhow::Ok(())
        })?;
        Ok(all)
    }

    fn work(&self, queue: &Queue) -> Result<Found> {
        let mut found = Found::default();
        while let Some(job) = queue.take() {
            let outcome = self.directory(&job, &mut found);
            let below: usize = outcome.iter().flatten().map(|job| job.to - job.from).sum();
            self.underway.advance((job.to - job.from).saturating_sub(below));
            queue.done(outcome.as_ref().ok().cloned().unwrap_or_default());
            outcome?;
        }
        Ok(found)
    }

    /// Compares one directory with its range of the index; gives the subdirectories to go on with.
    fn directory(&self, job: &Job, found: &mut Found) -> Result<Vec<Job>> {
        let path = job.path.strip_suffix(b"/").unwrap_or_default().as_bstr();
        // What is in there is as the index says, for all that is known.
        let unreadable = |found: &mut Found| {
            found.skipped.push(skipped(path, Reason::Unreadable, 0));
            found.occupied.push(path.to_owned());
            Ok(Vec::new())
        };
        let facts = self.monitor.map(|_| self.facts(job));
        if let (Some(monitor), Some(facts)) = (self.monitor, facts)
            && monitor.knows(path, facts)
        {
            return Ok(self.unchanged(job, facts, found));
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
        let mut merge = Merge::new(self, job, Some(&fd), found);
        let stamp = self.listings.stamp(path, &stat, || merge.names());
        if let Some(unknown) = stamp.and_then(|stamp| self.listings.unknown(stamp)) {
            merge.run_as_known(unknown);
        } else {
            let names = match names_in(&fd) {
                Err(error) if is_denied(&error) => return unreadable(found),
                names => names?,
            };
            merge.run(&names);
        }
        let Merge { jobs, occupied, complete, unknown, .. } = merge;
        let is_plain = complete && unknown.is_empty();
        found.listed.extend(stamp.filter(|_| complete).and_then(|stamp| Listing::new(stamp, unknown)));
        if !job.path.is_empty() {
            let mode = mode_of(&stat);
            if mode != self.usual.directory {
                found.unusual.insert(job.path.clone(), mode);
            }
        }
        found.plain.extend(facts.filter(|_| is_plain && findings == found.findings()));
        found.seen(path, occupied);
        Ok(jobs)
    }

    /// A directory that is plain, as a monitor knows, without a look at it.
    fn unchanged(&self, job: &Job, facts: u64, found: &mut Found) -> Vec<Job> {
        let path = job.path.strip_suffix(b"/").unwrap_or_default().as_bstr();
        let mut merge = Merge::new(self, job, None, found);
        let listing = self.listings.earlier(path, || merge.names());
        merge.run_as_known(&[]);
        let Merge { jobs, occupied, .. } = merge;
        found.listed.extend(listing);
        found.plain.push(facts);
        found.seen(path, occupied);
        jobs
    }

    /// All that the index says of a directory, but for what is in others below it.
    fn facts(&self, job: &Job) -> u64 {
        const FLAGS: Flags =
            Flags::STAGE_MASK.union(Flags::ASSUME_VALID).union(Flags::INTENT_TO_ADD).union(Flags::SKIP_WORKTREE);
        // One piece is hashed much faster than many.
        let mut facts = Vec::with_capacity(1 << 12);
        facts.extend_from_slice(&job.path);
        let mut at = job.from;
        while at < job.to {
            let component = self.component(job, at);
            facts.push(0);
            facts.extend_from_slice(component);
            facts.push(0);
            let entry = &self.index.entries()[at];
            if component.ends_with(b"/") && entry.mode != Mode::DIR {
                at = self.group_end(job, at);
                continue;
            }
            let Stat { mtime, ctime, dev, ino, uid, gid, size } = entry.stat;
            let (mode, flags) = (entry.mode.bits(), (entry.flags & FLAGS).bits());
            let numbers = [mode, flags, mtime.secs, mtime.nsecs, ctime.secs, ctime.nsecs, dev, ino, uid, gid, size];
            facts.extend_from_slice(numbers.map(u32::to_ne_bytes).as_flattened());
            facts.extend_from_slice(entry.id.as_slice());
            at += 1;
        }
        hash_of(&facts)
    }

    /// The next name in the index: a file's, or a directory's with its slash.
    fn component(&self, job: &Job, at: usize) -> &[u8] {
        let rest = &self.path(at)[job.path.len()..];
        rest.find_byte(b'/').map_or(rest, |slash| &rest[..=slash])
    }

    fn group_end(&self, job: &Job, at: usize) -> usize {
        let component = self.component(job, at);
        let start = job.path.len();
        let entries = &self.index.entries()[at..job.to];
        at + entries.partition_point(|entry| entry.path(self.index)[start..].starts_with(component))
    }

    fn path(&self, at: usize) -> &BStr {
        self.index.entries()[at].path(self.index)
    }

    fn gone(&self, at: usize, found: &mut Found) {
        let mode = self.index.entries()[at].mode;
        if mode != Mode::COMMIT && mode != Mode::DIR {
            found.tracked.push((at, Difference::Gone));
        }
    }

    /// The state of a tracked path of which `stat` tells.
    fn entry(&self, at: usize, stat: &rustix::fs::Stat, found: &mut Found) {
        let entry = &self.index.entries()[at];
        let path = entry.path(self.index);
        let mode = mode_of(stat);
        if entry.flags.contains(Flags::SKIP_WORKTREE) {
            found.shown.push(at);
        }
        let Some(mut kind) = kind_of(stat) else {
            found.skipped.push(special(path));
            self.gone(at, found);
            return;
        };
        if !self.file_mode && kind != Kind::Symlink {
            kind = if entry.mode == Mode::FILE_EXECUTABLE { Kind::Executable } else { Kind::File };
        }
        if kind != Kind::Symlink && mode != self.usual.of(kind) {
            found.unusual.insert(path.to_owned(), mode);
        }
        found.linked += usize::from(stat.st_nlink > 1);
        let same_kind = match entry.mode {
            Mode::FILE => kind == Kind::File,
            Mode::FILE_EXECUTABLE => kind == Kind::Executable,
            Mode::SYMLINK => kind == Kind::Symlink,
            _ => false,
        };
        let now = index_stat(stat);
        let clean = same_kind
            && entry.stage() == Stage::Unconflicted
            && !entry.flags.contains(Flags::INTENT_TO_ADD)
            && now.matches(&entry.stat, self.stat_options)
            && !now.is_racy(self.index.timestamp(), self.stat_options);
        if !clean {
            let path = path.to_owned();
            found.tracked.push((at, Difference::Suspect(Unread { path, kind, mode, stamp: None })));
        }
    }
}

/// What one thread found among the tracked directories.
#[derive(Default)]
struct Found {
    tracked: Vec<(usize, Difference)>,
    absent: Vec<(BString, Range<usize>)>,
    shown: Vec<usize>,
    unusual: BTreeMap<BString, u32>,
    skipped: Vec<Skipped>,
    attributes: Vec<BString>,
    ignore_files: Vec<BString>,
    unknown: Vec<(BString, FileType)>,
    occupied: Vec<BString>,
    empty: Vec<BString>,
    listed: Vec<Listing>,
    plain: Vec<u64>,
    /// How many files have another name, under which they may be changed where no monitor sees it.
    linked: usize,
}

impl Found {
    fn merge(&mut self, other: Self) {
        self.tracked.extend(other.tracked);
        self.absent.extend(other.absent);
        self.shown.extend(other.shown);
        self.unusual.extend(other.unusual);
        self.skipped.extend(other.skipped);
        self.attributes.extend(other.attributes);
        self.ignore_files.extend(other.ignore_files);
        self.unknown.extend(other.unknown);
        self.occupied.extend(other.occupied);
        self.empty.extend(other.empty);
        self.listed.extend(other.listed);
        self.plain.extend(other.plain);
    }

    /// Notes a directory below the top that was met.
    fn seen(&mut self, path: &BStr, occupied: bool) {
        if !path.is_empty() {
            let list = if occupied { &mut self.occupied } else { &mut self.empty };
            list.push(path.to_owned());
        }
    }

    /// How much was found for which a directory is not plain.
    fn findings(&self) -> usize {
        self.tracked.len() + self.shown.len() + self.unusual.len() + self.skipped.len() + self.linked
    }
}

/// A directory to read: its path with a slash behind, and its range of the index.
#[derive(Clone)]
struct Job {
    path: BString,
    from: usize,
    to: usize,
}

/// The directories still to read, and how many are being read.
struct Queue {
    state: Mutex<(Vec<Job>, usize)>,
    ready: Condvar,
}

impl Queue {
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
struct Merge<'a, 'b> {
    scanner: &'a Scanner<'b>,
    job: &'a Job,
    /// The directory; without it the files in it are known to be as the index says.
    fd: Option<&'a OwnedFd>,
    found: &'a mut Found,
    jobs: Vec<Job>,
    occupied: bool,
    nested: bool,
    /// Whether the directory holds every name that the index has in it.
    complete: bool,
    /// The names in it that the index has not.
    unknown: Vec<Name>,
}

impl<'a, 'b> Merge<'a, 'b> {
    fn new(scanner: &'a Scanner<'b>, job: &'a Job, fd: Option<&'a OwnedFd>, found: &'a mut Found) -> Self {
        let (jobs, unknown) = (Vec::new(), Vec::new());
        Self { scanner, job, fd, found, jobs, occupied: false, nested: false, complete: true, unknown }
    }

    /// The names that the index has in this directory, as one value.
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

    /// The merge with a directory that is known to hold what the index says, and these names.
    fn run_as_known(&mut self, unknown: &[Name]) {
        let mut at = self.job.from;
        while at < self.job.to {
            let scanner = self.scanner;
            at = self.in_both(at, scanner.component(self.job, at));
        }
        self.nested = self.is_nested(unknown);
        for name in unknown {
            self.only_on_disk(name);
        }
    }

    fn run(&mut self, names: &[Name]) {
        self.nested = self.is_nested(names);
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

    fn is_nested(&self, names: &[Name]) -> bool {
        !self.job.path.is_empty() && names.binary_search_by(|n| n.0.as_slice().cmp(b".git")).is_ok()
    }

    fn component(&self, at: usize) -> &[u8] {
        self.scanner.component(self.job, at)
    }

    fn group_end(&self, at: usize) -> usize {
        self.scanner.group_end(self.job, at)
    }

    fn only_in_index(&mut self, at: usize, names: &[Name]) -> usize {
        if self.component(at).ends_with(b"/") {
            let end = self.group_end(at);
            if self.scanner.index.entries()[at..end].iter().all(is_left_out) {
                let directory =
                    [self.job.path.as_slice(), &self.component(at)[..self.component(at).len() - 1]].concat();
                self.found.absent.push((directory.into(), at..end));
            } else {
                (at..end).for_each(|at| self.scanner.gone(at, self.found));
            }
            return end;
        }
        let entry = &self.scanner.index.entries()[at];
        let is_directory = |name: &[u8]| names.binary_search_by(|n| n.0.cmp(&[name, b"/"].concat())).is_ok();
        if entry.flags.contains(Flags::SKIP_WORKTREE) && is_directory(self.component(at)) {
            self.found.shown.push(at);
        }
        if entry.mode == Mode::COMMIT {
            // A submodule: `sub` in the index, `sub/` on disk. The name comes by as unknown.
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
        let list = match name {
            b".gitignore" => &mut self.found.ignore_files,
            b".gitattributes" => &mut self.found.attributes,
            _ => return,
        };
        list.push([self.job.path.as_slice(), name].concat().into());
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
            Ok(stat) => self.scanner.entry(at, &stat, self.found),
            Err(Errno::ACCESS) => {
                self.found.skipped.push(skipped(self.scanner.path(at), Reason::Unreadable, 0));
            }
            Err(_) => self.scanner.gone(at, self.found),
        }
        end
    }

    /// Behind the last of the entries with this path: more than one only when unmerged.
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

/// The walk over all that the index does not know.
struct UnknownWalk<'a, 'b> {
    scanner: &'a Scanner<'b>,
    rules: &'a mut Rules,
    earlier: Option<&'a Earlier<'b>>,
    scan: &'a mut Scan,
    excluded: HashMap<BString, bool>,
    occupied: Vec<BString>,
    empty: Vec<BString>,
    earlier_skips: BTreeMap<BString, Skipped>,
}

/// What was found below one untracked directory.
#[derive(Default)]
struct Below {
    files: Vec<Unread>,
    unusual: Vec<(BString, u32)>,
    skipped: Vec<Skipped>,
    directories: Vec<BString>,
}

impl Below {
    fn skipped(skipped: Skipped) -> Self {
        Self { skipped: vec![skipped], ..Self::default() }
    }

    fn merge(&mut self, other: Self) {
        self.files.extend(other.files);
        self.unusual.extend(other.unusual);
        self.skipped.extend(other.skipped);
        self.directories.extend(other.directories);
    }
}

impl UnknownWalk<'_, '_> {
    fn run(&mut self, mut unknown: Vec<(BString, FileType)>) -> Result<()> {
        unknown.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let submodules: HashSet<&BStr> = (self.scanner.index.entries().iter())
            .filter(|entry| entry.mode == Mode::COMMIT)
            .map(|entry| entry.path(self.scanner.index))
            .collect();
        for (path, kind) in unknown {
            let below = match path.strip_suffix(b"/") {
                Some(directory) if submodules.contains(directory.as_bstr()) => {
                    Below::skipped(self.repository(directory.as_bstr()))
                }
                Some(directory) => {
                    let excluded = self.in_excluded(directory.as_bstr());
                    self.directory(directory.as_bstr(), excluded)?
                }
                None => {
                    let excluded = self.in_excluded(path.as_bstr());
                    self.file(path.as_bstr(), kind, excluded)?
                }
            };
            self.keep(below);
        }
        self.empty_directories();
        Ok(())
    }

    fn keep(&mut self, below: Below) {
        for file in &below.files {
            self.occupied.extend(parents(file.path.as_bstr()).next().map(ToOwned::to_owned));
        }
        self.scan.untracked.extend(below.files);
        self.scan.unusual.extend(below.unusual);
        self.scan.skipped.extend(below.skipped);
        self.empty.extend(below.directories);
    }

    /// A directory read but without a captured file anywhere below is kept by name.
    fn empty_directories(&mut self) {
        let mut occupied: HashSet<&BStr> = HashSet::with_capacity(self.occupied.len());
        for path in &self.occupied {
            let mut path = path.as_bstr();
            while occupied.insert(path) {
                let Some(slash) = path.rfind_byte(b'/') else { break };
                path = path[..slash].as_bstr();
            }
        }
        self.scan.directories =
            (self.empty.iter()).filter(|path| !occupied.contains(path.as_bstr())).cloned().collect();
    }

    /// Whether a directory above `path` is ignored.
    fn in_excluded(&mut self, path: &BStr) -> bool {
        let Some(parent) = parents(path).next() else { return false };
        if let Some(known) = self.excluded.get(parent) {
            return *known;
        }
        let verdict = self.in_excluded(parent) || self.rules.matches(parent, true);
        self.excluded.insert(parent.to_owned(), verdict);
        verdict
    }

    fn file(&self, path: &BStr, kind: FileType, excluded: bool) -> Result<Below> {
        self.scanner.underway.advance(1);
        let mut below = Below::default();
        if (excluded || self.rules.matches(path, false)) && !self.rules.includes(path, false) {
            return Ok(below);
        }
        if let Some(earlier) = self.earlier_skips.get(path) {
            let state = self.scanner.worktree.stat(path)?.and_then(|(stat, _)| file_state(&stat));
            below.skipped.push(Skipped { state, ..earlier.clone() });
            return Ok(below);
        }
        if !matches!(kind, FileType::RegularFile | FileType::Symlink) {
            below.skipped.push(special(path));
            return Ok(below);
        }
        let stat = match self.scanner.worktree.stat(path) {
            Err(error) if is_denied(&error) => return Ok(Below::skipped(skipped(path, Reason::Unreadable, 0))),
            stat => stat?,
        };
        let Some((stat, _)) = stat else { return Ok(below) };
        let Some(kind) = kind_of(&stat) else { return Ok(below) };
        let mode = mode_of(&stat);
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        let captured = self.earlier.is_some_and(|earlier| (earlier.captured)(path));
        let reason = if captured {
            None
        } else if !is_storable(path, true) {
            Some(Reason::Name)
        } else if self.scanner.limits.exclude.is_match(as_path(path)) {
            Some(Reason::Excluded)
        } else {
            (size > self.scanner.limits.max_file_size).then_some(Reason::Large)
        };
        if let Some(reason) = reason {
            below.skipped.push(Skipped { state: file_state(&stat), ..skipped(path, reason, size) });
            return Ok(below);
        }
        if kind != Kind::Symlink && mode != self.scanner.usual.of(kind) {
            below.unusual.push((path.to_owned(), mode));
        }
        below.files.push(Unread { path: path.to_owned(), kind, mode, stamp: stamp_of(&stat) });
        Ok(below)
    }

    /// All that is captured below an untracked directory.
    fn directory(&mut self, path: &BStr, excluded: bool) -> Result<Below> {
        if excluded || self.rules.matches(path, true) {
            if !self.rules.includes_below(path) || !is_storable(path, true) {
                return Ok(Below::default());
            }
            return self.content(path, true);
        }
        if let Some(earlier) = self.earlier_skips.get(path).filter(|skip| skip.reason != Reason::Repository) {
            return Ok(Below::skipped(Skipped { state: self.tree_state(path), ..earlier.clone() }));
        }
        if let Some(reason) = self.directory_reason(path) {
            return Ok(Below::skipped(Skipped { state: self.tree_state(path), ..skipped(path, reason, 0) }));
        }
        self.content(path, false)
    }

    /// What is captured in a directory; of an ignored one only what is included.
    fn content(&mut self, path: &BStr, ignored: bool) -> Result<Below> {
        let mut below = Below::default();
        let listed = match list(self.scanner.worktree, path) {
            Err(error) if is_denied(&error) => return Ok(Below::skipped(skipped(path, Reason::Unreadable, 0))),
            listed => listed?,
        };
        let Some((fd, names)) = listed else { return Ok(below) };
        if is_repository(&fd, &names) {
            return Ok(if ignored { below } else { Below::skipped(self.repository(path)) });
        }
        let inside = |name: &[u8]| BString::from([path.as_bytes(), b"/", name].concat());
        if self.earlier.is_none() && !ignored && names.iter().any(|name| name.0 == b".gitignore") {
            let ignore_file = inside(b".gitignore");
            if let Some(text) = self.scanner.worktree.read_plain_file(ignore_file.as_bstr()) {
                self.rules.add(ignore_file, text);
            }
        }
        let mode = mode_of(&rustix::fs::fstat(&fd)?);
        drop(fd);
        for (name, kind) in &names {
            if name == b".git" {
                continue;
            }
            if name == b".gitattributes" {
                self.scan.attributes.push(inside(name));
            }
            let inner = match name.strip_suffix(b"/") {
                Some(name) => self.directory(inside(name).as_bstr(), ignored)?,
                None => self.file(inside(name).as_bstr(), *kind, ignored)?,
            };
            below.merge(inner);
        }
        if ignored && below.files.is_empty() {
            return Ok(below);
        }
        if mode != self.scanner.usual.directory {
            below.unusual.push((inside(b""), mode));
        }
        below.directories.push(path.to_owned());
        // The limit is for what was there before the turn.
        let count = below.files.len() as u64;
        if self.earlier.is_none() && count > self.scanner.limits.max_directory_entries {
            return Ok(Below::skipped(Skipped { state: self.tree_state(path), ..skipped(path, Reason::Many, count) }));
        }
        Ok(below)
    }

    fn repository(&self, path: &BStr) -> Skipped {
        Skipped { state: self.repository_state(path), ..skipped(path, Reason::Repository, 0) }
    }

    /// What tells whether another repository changed: its HEAD, its index, and what differs from
    /// that or is not in it. It is only looked at, and nothing that it configures is run.
    fn repository_state(&self, path: &BStr) -> Option<String> {
        let top = self.scanner.worktree.path().join(as_path(path));
        let repo = gix::open(&top).ok()?;
        let (worktree, index) = (Worktree::open(&top).ok()?, repo.index_or_empty().ok()?);
        let mut rules = self.rules.elsewhere(read_rules(&repo.common_dir().join("info/exclude")));
        let scan = Scanner {
            worktree: &worktree,
            index: &index,
            listings: &Listings::default(),
            monitor: None,
            ..*self.scanner
        }
        .scan(&mut rules, None)
        .ok()?;
        let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
        let mut add =
            |path: &BStr, state: String| hasher.update(&[path.as_bytes(), b"\0", state.as_bytes(), b"\n"].concat());
        for entry in index.entries() {
            add(entry.path(&index), format!("{} {:o} {}", entry.id, entry.mode.bits(), entry.stage_raw()));
        }
        for (at, difference) in &scan.tracked {
            let entry = &index.entries()[*at];
            let path = entry.path(&index);
            let now = match difference {
                Difference::Gone => None,
                Difference::Suspect(_) => worktree.state(path, entry.id.kind()).ok()?,
            };
            // What only looks different may look so no more when git has looked at it.
            if now.is_none_or(|now| now.id != entry.id) {
                add(path, format!("{now:?}"));
            }
        }
        for file in &scan.untracked {
            let state = worktree.stat(file.path.as_bstr()).ok()?.and_then(|(stat, _)| file_state(&stat));
            add(file.path.as_bstr(), format!("{state:?}"));
        }
        for skipped in &scan.skipped {
            add(skipped.path.as_bstr(), format!("{:?}", skipped.state));
        }
        let head = repo.head_id().map_or_else(|_| "unborn".to_owned(), |id| id.to_string());
        Some(format!("{head} {}", hasher.try_finalize().ok()?))
    }

    /// What tells whether anything in a directory changed that is not captured.
    fn tree_state(&self, path: &BStr) -> Option<String> {
        let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
        add_tree(&self.scanner.worktree.open_directory(path).ok()??, &mut hasher);
        Some(format!("{TREE_STATE}{}", hasher.try_finalize().ok()?))
    }

    fn directory_reason(&self, path: &BStr) -> Option<Reason> {
        let name = &path[path.rfind_byte(b'/').map_or(0, |slash| slash + 1)..];
        if !is_storable(path, true) {
            Some(Reason::Name)
        } else if self.scanner.limits.exclude.is_match(as_path(path)) {
            Some(Reason::Excluded)
        } else {
            let skip = self.scanner.limits.skip_directories.contains(name.as_bstr());
            skip.then_some(Reason::SkipDir)
        }
    }
}

fn skipped(path: &BStr, reason: Reason, size: u64) -> Skipped {
    Skipped { path: path.to_owned(), reason, size, state: None }
}

fn special(path: &BStr) -> Skipped {
    skipped(path, Reason::Special, 0)
}

fn as_path(path: &BStr) -> &std::path::Path {
    std::path::Path::new(std::ffi::OsStr::from_bytes(path))
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// A directory with a `.git` in it that is a repository, or points to one.
fn is_repository(fd: &OwnedFd, names: &[(Vec<u8>, FileType)]) -> bool {
    if !names.iter().any(|name| name.0 == b".git") {
        return false;
    }
    match statat(fd, c".git", AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
            statat(fd, c".git/HEAD", AtFlags::SYMLINK_NOFOLLOW).is_ok()
        }
        Ok(_) => true,
        Err(_) => false,
    }
}

/// A name in a directory, with a slash behind a directory's, and what has it.
pub type Name = (Vec<u8>, FileType);

/// A directory and the names in it; `None` when there is none at this path.
fn list(worktree: &Worktree, path: &BStr) -> Result<Option<(OwnedFd, Vec<Name>)>> {
    let Some(fd) = worktree.open_directory(path)? else { return Ok(None) };
    let names = names_in(&fd)?;
    Ok(Some((fd, names)))
}

/// The names in a directory, sorted as the index sorts them: a directory with its slash.
fn names_in(fd: &OwnedFd) -> Result<Vec<(Vec<u8>, FileType)>> {
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

/// How the state of a directory begins.
const TREE_STATE: &str = "tree ";

/// Adds the names below a directory, and the sizes, times and modes of its files.
fn add_tree(directory: &OwnedFd, hasher: &mut gix::hash::Hasher) {
    // What cannot be read cannot be seen to change.
    for (name, kind) in names_in(directory).unwrap_or_default() {
        hasher.update(&name);
        if kind == FileType::Directory {
            let inner = name.strip_suffix(b"/").unwrap_or(&name);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(inner) = openat(directory, inner, flags, rustix::fs::Mode::empty()) {
                add_tree(&inner, hasher);
            }
        } else if let Ok(stat) = statat(directory, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW) {
            let state = format!("\0{} {}.{} {}\n", stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_mode);
            hasher.update(state.as_bytes());
        }
    }
    hasher.update(b"/");
}

/// The part of a skipped thing's state that must be the same when it is moved aside: a directory is
/// moved with all that is in it.
pub fn own_state(skipped: &Skipped) -> Option<String> {
    skipped.state.clone().filter(|state| !state.starts_with(TREE_STATE))
}
