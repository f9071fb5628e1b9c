//! The other half of a scan: names that are not in the index, matched with the ignore rules and the limits.

use crate::git::scan::budget::over_budget;
use crate::git::scan::found::{
    Candidate, Earlier, Findings, Knows, Name, Scan, as_path, names_in, skipped, special, state_of,
};
use crate::git::scan::ignore::Rules;
use crate::git::scan::nested::{is_repository, tree_state};
use crate::git::scan::scanner::Scanner;
use crate::git::worktree::descent::Descent;
use crate::git::worktree::is_denied;
use crate::git::worktree::names::is_storable;
use crate::git::worktree::privacy::{Privacy, is_open, is_open_directory};
use crate::git::worktree::stat::{kind_of, mode_of, size_of, stamp_of};
use crate::model::checkpoint::{Kind, Reason, Skipped};
use crate::model::path::{is_at_or_below, parents};
use anyhow::{Context, Result};
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::Mode;
use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The walk over everything that is not in the index.
pub struct UntrackedWalk<'a, 'b> {
    scanner: &'a Scanner<'b>,
    rules: &'a mut Rules,
    earlier: Option<&'a Earlier<'b>>,
    nested: &'a dyn Fn(&BStr, &Rules) -> Option<String>,
    knows: Knows<'a>,
    /// Who can read what; nothing is hidden without.
    privacy: Option<&'a Privacy<'b>>,
    scan: Scan,
    excluded: HashMap<BString, bool>,
    occupied: Vec<BString>,
    empty: Vec<BString>,
    /// The untracked directories.
    directories: Vec<BString>,
    earlier_skips: BTreeMap<BString, Skipped>,
    /// The tracked directories that are closed to somebody, and whether all may be.
    closed: (HashSet<BString>, bool),
}

/// What was found below one untracked directory.
#[derive(Default)]
struct Subtree {
    files: Vec<Candidate>,
    unusual: Vec<(BString, u32)>,
    skipped: Vec<Skipped>,
    directories: Vec<BString>,
    ignored: Vec<BString>,
}

/// A directory that is being walked over.
struct Level {
    /// The names in it that are still to be looked at.
    names: std::vec::IntoIter<Name>,
    ignored: bool,
    mode: u32,
    /// Whether it, or one above it, is closed to somebody.
    closed: bool,
    below: Subtree,
}

/// What is to be done with a directory.
enum Found {
    /// This stands for all of it.
    Whole(Subtree),
    /// It is looked into; whether it is ignored, so that only what is included is captured.
    Inside(bool),
}

/// Directories that are deeper in each other are not captured. git's own limit is 2048 (`core.maxTreeDepth`), and its `gc`
/// fails where there is a tree with more; in the timeline a few are above the worktree's top.
const LEVELS: usize = 2000;

impl Subtree {
    fn skipped(skipped: Skipped) -> Self {
        Self { skipped: vec![skipped], ..Self::default() }
    }

    fn ignored(path: &BStr) -> Self {
        Self { ignored: vec![path.to_owned()], ..Self::default() }
    }

    fn merge(&mut self, other: Self) {
        join(&mut self.files, other.files);
        join(&mut self.unusual, other.unusual);
        join(&mut self.skipped, other.skipped);
        join(&mut self.directories, other.directories);
        join(&mut self.ignored, other.ignored);
    }
}

/// Adds the elements of a list to another: none is moved once more on its way up through the directories.
fn join<T>(all: &mut Vec<T>, more: Vec<T>) {
    if all.is_empty() {
        *all = more;
    } else {
        all.extend(more);
    }
}

/// The stat data of a name in the directory where a walk is.
fn stat_in(descent: &mut Descent<'_>, name: &[u8]) -> Result<Option<Stat>> {
    let path = descent.inside(name);
    let Some(fd) = descent.directory()? else { return Ok(None) };
    match statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("look at '{path}'")),
    }
}

impl<'a, 'b> UntrackedWalk<'a, 'b> {
    /// `nested` gives the state of a repository in the worktree, `knows` whether a file need not be read.
    pub fn new(
        scanner: &'a Scanner<'b>,
        rules: &'a mut Rules,
        earlier: Option<&'a Earlier<'b>>,
        nested: &'a dyn Fn(&BStr, &Rules) -> Option<String>,
        (knows, privacy): (Knows<'a>, Option<&'a Privacy<'b>>),
    ) -> Self {
        let skips = earlier.iter().flat_map(|earlier| earlier.skipped);
        Self {
            scanner,
            rules,
            earlier,
            nested,
            knows,
            privacy,
            closed: Default::default(),
            scan: Scan::default(),
            excluded: HashMap::new(),
            occupied: Vec::new(),
            empty: Vec::new(),
            directories: Vec::new(),
            earlier_skips: skips.map(|skipped| (skipped.path.clone(), skipped.clone())).collect(),
        }
    }

    /// Walks, starting from what the tracked half found.
    pub fn run(mut self, found: Findings) -> Result<Scan> {
        let Findings { mut unknown, occupied, empty, .. } = found;
        (self.occupied, self.empty) = (occupied, empty);
        self.scan = Scan {
            tracked: found.tracked,
            missing_sparse: found.missing_sparse,
            present_sparse: found.present_sparse,
            unusual: found.unusual,
            skipped: found.skipped,
            listed: found.listed,
            unchanged_dirs: found.unchanged_dirs,
            ..Scan::default()
        };
        // With tracked files in them.
        for at in 0..self.scan.skipped.len() {
            if self.scan.skipped[at].reason == Reason::Repository {
                self.scan.skipped[at] = self.repository(self.scan.skipped[at].path.as_bstr());
            }
        }
        self.closed = self.closed_directories();
        unknown.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let submodules: HashSet<&BStr> = (self.scanner.index.entries().iter())
            .filter(|entry| entry.mode == Mode::COMMIT)
            .map(|entry| entry.path(self.scanner.index))
            .collect();
        for (path, kind) in unknown {
            let below = match path.strip_suffix(b"/") {
                Some(directory) if submodules.contains(directory.as_bstr()) => {
                    Subtree::skipped(self.repository(directory.as_bstr()))
                }
                Some(directory) => {
                    let excluded = self.in_excluded(directory.as_bstr());
                    self.directory(directory.as_bstr(), excluded)?
                }
                None => {
                    let excluded = self.in_excluded(path.as_bstr());
                    let stat = || self.stat(path.as_bstr());
                    let closed = self.is_in_closed(path.as_bstr());
                    self.file(path.as_bstr(), kind, (excluded, closed), stat)?
                }
            };
            self.keep(below);
        }
        self.keep_to_budget()?;
        self.empty_directories();
        Ok(self.scan)
    }

    /// Looks at an untracked file beside tracked ones.
    fn stat(&self, path: &BStr) -> Result<Option<Stat>> {
        let worktree = self.scanner.worktree;
        if is_storable(path, true) {
            return Ok(worktree.stat(path)?.map(|(stat, _)| stat));
        }
        // No record may lead to such a name, and yet somebody may have a file '.GIT'.
        let above = parents(path).next().unwrap_or_default();
        let Some(mut descent) = Descent::begin(worktree, above)? else { return Ok(None) };
        stat_in(&mut descent, &path[path.rfind_byte(b'/').map_or(0, |slash| slash + 1)..])
    }

    fn keep(&mut self, below: Subtree) {
        self.scan.untracked.extend(below.files);
        self.scan.unusual.extend(below.unusual);
        self.scan.skipped.extend(below.skipped);
        self.directories.extend(below.directories);
        self.scan.ignored.extend(below.ignored);
    }

    /// Leaves the largest directories out where there is too much to read.
    fn keep_to_budget(&mut self) -> Result<()> {
        let budget = (self.scanner.limits.max_bytes, self.scanner.limits.max_files);
        let is_new = |file: &Candidate| {
            !self.earlier.is_some_and(|earlier| (earlier.captured)(file.path.as_bstr())) && !(self.knows)(file)
        };
        let is_old = |directory: &BStr| self.earlier.is_some_and(|earlier| (earlier.has_directory)(directory));
        let new_directories = || self.directories.iter().filter(|directory| !is_old(directory.as_bstr()));
        for (path, reason, size) in over_budget(&self.scan.untracked, budget, is_new, new_directories) {
            let stat = self.scanner.worktree.stat(path.as_bstr())?;
            let state = match stat.as_ref().and_then(|(stat, _)| state_of(reason, stat)) {
                Some(file) => Some(file),
                None => tree_state(self.scanner.worktree, path.as_bstr()),
            };
            let goes = |other: &BStr| is_at_or_below(other, path.as_bstr());
            self.scan.untracked.retain(|file| !goes(file.path.as_bstr()));
            self.scan.unusual.retain(|other, _| !goes(other.as_bstr()));
            self.scan.skipped.retain(|skipped| !goes(skipped.path.as_bstr()));
            self.directories.retain(|directory| !goes(directory.as_bstr()));
            self.scan.skipped.push(Skipped { path, reason, size, state });
        }
        Ok(())
    }

    /// Notes a directory that has no captured file anywhere below it.
    fn empty_directories(&mut self) {
        let mut occupied: HashSet<&BStr> = HashSet::with_capacity(self.occupied.len());
        let above_files = self.scan.untracked.iter().filter_map(|file| parents(file.path.as_bstr()).next());
        for path in self.occupied.iter().map(|path| path.as_bstr()).chain(above_files) {
            let mut path = path;
            while occupied.insert(path) {
                let Some(slash) = path.rfind_byte(b'/') else { break };
                path = path[..slash].as_bstr();
            }
        }
        let all = self.empty.iter().chain(&self.directories);
        self.scan.directories = all.filter(|path| !occupied.contains(path.as_bstr())).cloned().collect();
    }

    /// The directories that the index knows and that are closed to somebody.
    fn closed_directories(&self) -> (HashSet<BString>, bool) {
        let closed = self.scan.unusual.iter().filter(|(path, mode)| path.ends_with(b"/") && !is_open_directory(**mode));
        let closed = closed.map(|(path, _)| path[..path.len() - 1].into()).collect();
        let all = self.privacy.is_some_and(Privacy::hides_all) || !is_open_directory(self.scanner.usual.directory);
        (closed, all)
    }

    fn hides(&self, path: &BStr, stat: &Stat) -> bool {
        self.privacy.is_some_and(|privacy| privacy.hides(path, stat))
    }

    fn is_in_closed(&self, path: &BStr) -> bool {
        let (closed, all) = &self.closed;
        *all || (!closed.is_empty() && parents(path).any(|above| closed.contains(above)))
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

    /// What is captured of a name that is no directory; `stat` looks at it.
    fn file(
        &self,
        path: &BStr,
        kind: FileType,
        (excluded, closed): (bool, bool),
        mut stat: impl FnMut() -> Result<Option<Stat>>,
    ) -> Result<Subtree> {
        self.scanner.underway.advance(1);
        let mut below = Subtree::default();
        if (excluded || self.rules.matches(path, false)) && !self.rules.includes(path, false) {
            return Ok(Subtree::ignored(path));
        }
        if let Some(earlier) = self.earlier_skips.get(path) {
            let state = stat()?.and_then(|stat| state_of(earlier.reason, &stat));
            below.skipped.push(Skipped { state, ..earlier.clone() });
            return Ok(below);
        }
        if !matches!(kind, FileType::RegularFile | FileType::Symlink) {
            below.skipped.push(special(path));
            return Ok(below);
        }
        let stat = match stat() {
            Err(error) if is_denied(&error) => return Ok(Subtree::skipped(skipped(path, Reason::Unreadable, 0))),
            stat => stat?,
        };
        let Some(stat) = stat else { return Ok(below) };
        let Some(kind) = kind_of(&stat) else { return Ok(below) };
        let mode = mode_of(&stat);
        let size = size_of(&stat);
        let captured = self.earlier.is_some_and(|earlier| (earlier.captured)(path));
        let private = (closed || !is_open(&stat)) && self.hides(path, &stat);
        let reason = if captured {
            None
        } else if !is_storable(path, true) {
            Some(Reason::Name)
        } else if self.scanner.limits.exclude.is_match(as_path(path)) {
            Some(Reason::Excluded)
        } else if size > self.scanner.limits.max_file_size {
            Some(Reason::Large)
        } else {
            private.then_some(Reason::Private)
        };
        if let Some(reason) = reason {
            below.skipped.push(Skipped { state: state_of(reason, &stat), ..skipped(path, reason, size) });
            return Ok(below);
        }
        if kind != Kind::Symlink && mode != self.scanner.usual.of(kind) {
            below.unusual.push((path.to_owned(), mode));
        }
        below.files.push(Candidate { path: path.to_owned(), kind, size, stamp: stamp_of(&stat), private });
        Ok(below)
    }

    /// All that is captured below an untracked directory.
    fn directory(&mut self, path: &BStr, excluded: bool) -> Result<Subtree> {
        let ignored = match self.judge(path, excluded) {
            Found::Whole(below) => return Ok(below),
            Found::Inside(ignored) => ignored,
        };
        let mut descent = match Descent::begin(self.scanner.worktree, path) {
            Err(error) if is_denied(&error) => return Ok(Subtree::skipped(skipped(path, Reason::Unreadable, 0))),
            begun => match begun? {
                Some(descent) => descent,
                None => return Ok(Subtree::default()),
            },
        };
        let mut levels: Vec<Level> = Vec::new();
        let mut whole = self.enter(&mut descent, ignored, &mut levels)?;
        loop {
            // A directory with all that is below it: it is part of the one above.
            if let Some(below) = whole.take() {
                if !descent.leave() {
                    return Ok(below);
                }
                if let Some(above) = levels.last_mut() {
                    above.below.merge(below);
                }
            }
            let Some(level) = levels.last_mut() else { return Ok(Subtree::default()) };
            match level.names.next() {
                Some((name, kind)) => whole = self.name(&mut descent, &name, kind, &mut levels)?,
                None => whole = levels.pop().map(|level| self.sum(&descent, level)),
            }
        }
    }

    /// Whether a directory is entered, or what stands for all of it.
    fn judge(&self, path: &BStr, excluded: bool) -> Found {
        if excluded || self.rules.matches(path, true) {
            let enters = self.rules.includes_below(path) && is_storable(path, true);
            return if enters { Found::Inside(true) } else { Found::Whole(Subtree::ignored(path)) };
        }
        if let Some(earlier) = self.earlier_skips.get(path).filter(|skip| skip.reason != Reason::Repository) {
            let state = tree_state(self.scanner.worktree, path);
            return Found::Whole(Subtree::skipped(Skipped { state, ..earlier.clone() }));
        }
        // What was looked into before the turn is at its end: tracked then, it may not be now.
        let was_entered = self.earlier.is_some_and(|earlier| (earlier.has_directory)(path));
        match self.directory_reason(path).filter(|reason| *reason != Reason::SkipDir || !was_entered) {
            Some(reason) => Found::Whole(self.whole(path, reason, 0)),
            None => Found::Inside(false),
        }
    }

    /// A directory that is not captured.
    fn whole(&self, path: &BStr, reason: Reason, size: u64) -> Subtree {
        Subtree::skipped(Skipped { state: tree_state(self.scanner.worktree, path), ..skipped(path, reason, size) })
    }

    /// Takes in one name of the directory where the walk is. Where that is a directory which is entered, it is where the
    /// walk is next; one that is done with is given.
    fn name(
        &mut self,
        descent: &mut Descent<'_>,
        name: &[u8],
        kind: FileType,
        levels: &mut Vec<Level>,
    ) -> Result<Option<Subtree>> {
        let Some(level) = levels.last_mut() else { return Ok(None) };
        if name == b".git" {
            return Ok(None);
        }
        let Some(directory) = name.strip_suffix(b"/") else {
            let path = descent.inside(name);
            let stat = || stat_in(descent, name);
            level.below.merge(self.file(path.as_bstr(), kind, (level.ignored, level.closed), stat)?);
            return Ok(None);
        };
        let path = descent.inside(directory);
        match self.judge(path.as_bstr(), level.ignored) {
            Found::Whole(below) => level.below.merge(below),
            Found::Inside(ignored) => match descent.enter(directory) {
                Ok(true) => return self.enter(descent, ignored, levels),
                Ok(false) => {}
                Err(error) if is_denied(&error) => {
                    level.below.skipped.push(skipped(path.as_bstr(), Reason::Unreadable, 0));
                }
                Err(error) => return Err(error),
            },
        }
        Ok(None)
    }

    /// Lists the directory where the walk is; of an ignored one only what is included is captured. Gives it where it is not
    /// looked into.
    fn enter(&mut self, descent: &mut Descent<'_>, ignored: bool, levels: &mut Vec<Level>) -> Result<Option<Subtree>> {
        let path = descent.path().clone();
        let path = path.as_bstr();
        let Some(fd) = descent.directory()? else { return Ok(Some(Subtree::default())) };
        let names = match names_in(fd) {
            Err(error) if is_denied(&error) => {
                return Ok(Some(Subtree::skipped(skipped(path, Reason::Unreadable, 0))));
            }
            names => names?,
        };
        let stat = rustix::fs::fstat(fd)?;
        let mode = mode_of(&stat);
        if is_repository(fd, &names) {
            return Ok(Some(if ignored { Subtree::default() } else { Subtree::skipped(self.repository(path)) }));
        }
        if path.find_iter(b"/").count() >= LEVELS {
            return Ok(Some(if ignored { Subtree::default() } else { self.whole(path, Reason::Deep, 0) }));
        }
        let closed = !is_open(&stat) || levels.last().map_or_else(|| self.is_in_closed(path), |above| above.closed);
        // One that is new is moved as a whole: in it, what is in it stays closed.
        let is_new = || self.earlier.is_some_and(|earlier| !(earlier.has_directory)(path));
        if closed && !ignored && is_new() && self.hides(path, &stat) {
            return Ok(Some(self.whole(path, Reason::Private, 0)));
        }
        if self.earlier.is_none() && !ignored && names.iter().any(|name| name.0 == b".gitignore") {
            let ignore_file = descent.inside(b".gitignore");
            if let Some(text) = self.scanner.worktree.read_plain_file(ignore_file.as_bstr())? {
                self.rules.add(ignore_file, text);
            }
        }
        levels.push(Level { names: names.into_iter(), ignored, mode, closed, below: Subtree::default() });
        Ok(None)
    }

    /// The directory where the walk is, when all that is below it has been looked at.
    fn sum(&self, descent: &Descent<'_>, level: Level) -> Subtree {
        let Level { ignored, mode, mut below, .. } = level;
        if ignored && below.files.is_empty() {
            return below;
        }
        if mode != self.scanner.usual.directory {
            below.unusual.push((descent.inside(b""), mode));
        }
        below.directories.push(descent.path().clone());
        // The limit holds for what was there before the turn only.
        let private = below.skipped.iter().filter(|skipped| skipped.reason == Reason::Private).count();
        let count = (below.files.len() + private) as u64;
        if self.earlier.is_none() && count > self.scanner.limits.max_directory_entries {
            return self.whole(descent.path().as_bstr(), Reason::Many, count);
        }
        below
    }

    fn repository(&self, path: &BStr) -> Skipped {
        Skipped { state: (self.nested)(path, self.rules), ..skipped(path, Reason::Repository, 0) }
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
