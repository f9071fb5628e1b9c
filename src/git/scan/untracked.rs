//! The other half of a scan: names that are not in the index, matched with the ignore rules and the limits.

use crate::git::scan::found::{Candidate, Earlier, Findings, Scan, as_path, list, skipped, special};
use crate::git::scan::ignore::Rules;
use crate::git::scan::nested::{is_repository, tree_state};
use crate::git::scan::scanner::Scanner;
use crate::git::worktree::is_denied;
use crate::git::worktree::names::is_storable;
use crate::git::worktree::stat::{file_state, kind_of, mode_of, stamp_of};
use crate::model::checkpoint::{Kind, Reason, Skipped};
use crate::model::path::parents;
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::Mode;
use rustix::fs::FileType;
use std::collections::{BTreeMap, HashMap, HashSet};

/// The walk over everything that is not in the index.
pub struct UntrackedWalk<'a, 'b> {
    scanner: &'a Scanner<'b>,
    rules: &'a mut Rules,
    earlier: Option<&'a Earlier<'b>>,
    nested: &'a dyn Fn(&BStr, &Rules) -> Option<String>,
    scan: Scan,
    excluded: HashMap<BString, bool>,
    occupied: Vec<BString>,
    empty: Vec<BString>,
    earlier_skips: BTreeMap<BString, Skipped>,
}

/// What was found below one untracked directory.
#[derive(Default)]
struct Subtree {
    files: Vec<Candidate>,
    unusual: Vec<(BString, u32)>,
    skipped: Vec<Skipped>,
    directories: Vec<BString>,
}

impl Subtree {
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

impl<'a, 'b> UntrackedWalk<'a, 'b> {
    /// `nested` gives the state of a repository in the worktree.
    pub fn new(
        scanner: &'a Scanner<'b>,
        rules: &'a mut Rules,
        earlier: Option<&'a Earlier<'b>>,
        nested: &'a dyn Fn(&BStr, &Rules) -> Option<String>,
    ) -> Self {
        let skips = earlier.iter().flat_map(|earlier| earlier.skipped);
        Self {
            scanner,
            rules,
            earlier,
            nested,
            scan: Scan::default(),
            excluded: HashMap::new(),
            occupied: Vec::new(),
            empty: Vec::new(),
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
            attributes: found.attributes,
            listed: found.listed,
            unchanged_dirs: found.unchanged_dirs,
            ..Scan::default()
        };
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
                    self.file(path.as_bstr(), kind, excluded)?
                }
            };
            self.keep(below);
        }
        self.empty_directories();
        Ok(self.scan)
    }

    fn keep(&mut self, below: Subtree) {
        for file in &below.files {
            self.occupied.extend(parents(file.path.as_bstr()).next().map(ToOwned::to_owned));
        }
        self.scan.untracked.extend(below.files);
        self.scan.unusual.extend(below.unusual);
        self.scan.skipped.extend(below.skipped);
        self.empty.extend(below.directories);
    }

    /// Notes a directory that has no captured file anywhere below it.
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

    fn file(&self, path: &BStr, kind: FileType, excluded: bool) -> Result<Subtree> {
        self.scanner.underway.advance(1);
        let mut below = Subtree::default();
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
            Err(error) if is_denied(&error) => return Ok(Subtree::skipped(skipped(path, Reason::Unreadable, 0))),
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
        below.files.push(Candidate { path: path.to_owned(), kind, stamp: stamp_of(&stat) });
        Ok(below)
    }

    /// All that is captured below an untracked directory.
    fn directory(&mut self, path: &BStr, excluded: bool) -> Result<Subtree> {
        if excluded || self.rules.matches(path, true) {
            if !self.rules.includes_below(path) || !is_storable(path, true) {
                return Ok(Subtree::default());
            }
            return self.content(path, true);
        }
        if let Some(earlier) = self.earlier_skips.get(path).filter(|skip| skip.reason != Reason::Repository) {
            return Ok(Subtree::skipped(Skipped { state: tree_state(self.scanner.worktree, path), ..earlier.clone() }));
        }
        if let Some(reason) = self.directory_reason(path) {
            return Ok(Subtree::skipped(Skipped {
                state: tree_state(self.scanner.worktree, path),
                ..skipped(path, reason, 0)
            }));
        }
        self.content(path, false)
    }

    /// What is captured in a directory; of an ignored one only what is included.
    fn content(&mut self, path: &BStr, ignored: bool) -> Result<Subtree> {
        let mut below = Subtree::default();
        let listed = match list(self.scanner.worktree, path) {
            Err(error) if is_denied(&error) => return Ok(Subtree::skipped(skipped(path, Reason::Unreadable, 0))),
            listed => listed?,
        };
        let Some((fd, names)) = listed else { return Ok(below) };
        if is_repository(&fd, &names) {
            return Ok(if ignored { below } else { Subtree::skipped(self.repository(path)) });
        }
        let inside = |name: &[u8]| BString::from([path.as_bytes(), b"/", name].concat());
        if self.earlier.is_none() && !ignored && names.iter().any(|name| name.0 == b".gitignore") {
            let ignore_file = inside(b".gitignore");
            if let Some(text) = self.scanner.worktree.read_plain_file(ignore_file.as_bstr())? {
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
        // The limit holds for what was there before the turn only.
        let count = below.files.len() as u64;
        if self.earlier.is_none() && count > self.scanner.limits.max_directory_entries {
            return Ok(Subtree::skipped(Skipped {
                state: tree_state(self.scanner.worktree, path),
                ..skipped(path, Reason::Many, count)
            }));
        }
        Ok(below)
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
