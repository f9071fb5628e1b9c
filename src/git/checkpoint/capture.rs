//! From the worktree and the index to a checkpoint: blobs for what git does
//! not have yet, and trees made from the index's by the differences alone.

use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::content::Content;
use crate::git::checkpoint::opened::Opened;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::TreeChange;
use crate::git::refs::Refs;
use crate::git::refs::read::Moment;
use crate::git::repo::platform::exact_clock;
use crate::git::scan;
use crate::git::scan::dircache::{BlobCache, DirCache};
use crate::git::scan::found::{Candidate, Earlier, Scan};
use crate::git::scan::fsmonitor::Monitor;
use crate::git::scan::ignore::{Rules, shared_rules};
use crate::git::scan::read::ReadFiles;
use crate::git::scan::scanner::{Looks, Scanner};
use crate::git::worktree::Worktree;
use crate::git::worktree::privacy::Privacy;
use crate::model::checkpoint::{Checkpoint, Modes, UsualModes};
use crate::model::limits::Limits;
use crate::model::operation::Operation;
use crate::model::path::{all_parents, is_at_or_below};
use crate::progress::Phase;
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often git may begin or end something while a checkpoint is taken.
const MOMENTS: u32 = 5;

/// A checkpoint and what was learnt while it was taken.
#[derive(Clone)]
pub struct Capture {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The index as it was read.
    pub index: Arc<gix::index::File>,
    /// Tracked paths that may differ from their index entries.
    pub changed: Vec<BString>,
    /// Paths that kept changing while they were read: their captured content may mix several moments.
    pub torn: Vec<BString>,
    /// The directories that were opened for it.
    pub opened: Arc<Opened>,
    /// When the look began, exactly, in nanoseconds since 1970: what was there before is older. Of no look it is not known.
    pub at: Option<u64>,
    /// What is ignored; of a directory nothing that is in it.
    pub ignored: Vec<BString>,
}

/// The checkpoint at the turn's beginning, whose rules hold at its end.
pub struct Before<'a> {
    /// The checkpoint.
    pub checkpoint: &'a Checkpoint,
    /// Its ignore rules, which stay in force.
    pub rules: Rules,
}

impl Checkpoints<'_> {
    /// Captures the whole present state. With `before`, by the rules and limits of that checkpoint. `left_closed` says of a
    /// file, or of a directory with a slash behind, whether a turn left it with this mode.
    pub fn capture(
        &self,
        usual: UsualModes,
        limits: &Limits,
        before: Option<&Before<'_>>,
        left_closed: &dyn Fn(&BStr, u32) -> bool,
    ) -> Result<Capture> {
        let look = || self.repo.operation(limits.max_file_size);
        let (mut operation, mut tries) = (look()?, 0..MOMENTS);
        loop {
            let capture = self.captured(usual, limits, before, left_closed, operation.clone())?;
            // A merge that began or ended meanwhile is in the one and not in the other.
            let now = look()?;
            if now == operation || tries.next().is_none() {
                return Ok(capture);
            }
            operation = now;
        }
    }

    fn captured(
        &self,
        usual: UsualModes,
        limits: &Limits,
        before: Option<&Before<'_>>,
        left_closed: &dyn Fn(&BStr, u32) -> bool,
        operation: Operation,
    ) -> Result<Capture> {
        let (refs, objects, index) = (Refs::new(self.repo), Objects::new(self.repo), Index::new(self.repo));
        let at = Some(exact_clock());
        let Moment { head, branches, symbolic } = refs.moment()?;
        let head_tree = objects.head_tree(&head)?;
        let opened = index.expanded_where_present(index.read_index()?)?;
        let earlier = before.map(|before| before.checkpoint);
        let mut rules = match before {
            Some(before) => before.rules.clone(),
            None => self.present_rules(limits)?,
        };
        let closed = Opened::default();
        let mut scan = self.scan(&opened, usual, limits, &mut rules, earlier)?;
        while closed.open(self, &scan, earlier, left_closed)? {
            scan = self.scan(&opened, usual, limits, &mut rules, earlier)?;
        }
        scan.unusual.extend(closed.modes());
        let uncaptured = if before.is_none() { self.uncaptured(&scan) } else { BTreeMap::new() };
        let opened = index.with_present_entries(opened, &scan.present_sparse)?;
        let state = index.index_state(&opened, head_tree)?;
        let mut content = Content::new(self.repo, &opened);
        let may_open = |path: &BStr| match earlier {
            // What is new at the end of a turn is the turn's, whatever its mode.
            Some(earlier) => !earlier.skipped.iter().any(|old| is_at_or_below(path, old.path.as_bstr())),
            None => scan.unusual.get(path).is_some_and(|mode| left_closed(path, *mode)),
        };
        content.read_all(&scan, &may_open, earlier)?;
        let mut worktree = objects.edited_tree(state.tree, &content.changes)?;
        if let Some(earlier) = earlier {
            let missed = content.missed(earlier, worktree, usual)?;
            worktree = objects.edited_tree(worktree, &missed)?;
        }
        let Content { changed, unusual: late_modes, skipped: unread, torn, .. } = content;
        let unusual = scan.unusual.into_iter().chain(late_modes).collect();
        // Their directories have no captured file for them.
        let mut directories = scan.directories;
        for directory in all_parents(unread.iter().map(|skipped| skipped.path.as_bstr())) {
            if objects.tree_entry(worktree, directory)?.is_none() {
                directories.insert(directory.to_owned());
            }
        }
        let mut skipped: Vec<_> = scan.skipped.into_iter().chain(unread).collect();
        skipped.sort();
        let checkpoint = Checkpoint {
            branches,
            symbolic,
            elsewhere: refs.branches_elsewhere()?.into_keys().collect(),
            stash: refs.stash()?,
            operation,
            head,
            index: state,
            worktree,
            modes: Modes { usual, unusual },
            directories,
            skipped,
            uncaptured,
            rules: self.repo.gix.write_blob(rules.to_record())?.detach(),
        };
        Ok(Capture { checkpoint, index: opened, changed, torn, opened: Arc::new(closed), at, ignored: scan.ignored })
    }

    /// The ignore rules for the whole worktree, `oxundo.include`, and what is left alone.
    fn present_rules(&self, limits: &Limits) -> Result<Rules> {
        let mut rules = shared_rules(self.repo, self.repo.gix.filesystem_options()?.ignore_case)?;
        rules.include(&limits.include);
        rules.leave_alone(&limits.left_alone);
        Ok(rules)
    }

    /// Scans the worktree, with what the last scan and the file system monitor know.
    fn scan(
        &self,
        index: &gix::index::File,
        usual: UsualModes,
        limits: &Limits,
        rules: &mut Rules,
        earlier: Option<&Checkpoint>,
    ) -> Result<Scan> {
        let objects = Objects::new(self.repo);
        let captured =
            |path: &BStr| earlier.is_some_and(|cp| matches!(objects.tree_file(cp.worktree, path), Ok(Some(_))));
        let has_directory = |path: &BStr| {
            let known = |cp: &Checkpoint| matches!(self.captured_directory(cp, path), Ok(Some(_)));
            earlier.is_some_and(known)
        };
        let same_turn = earlier.map(|checkpoint| Earlier {
            skipped: &checkpoint.skipped,
            captured: &captured,
            has_directory: &has_directory,
        });
        // Asked only where there is much.
        let blobs = LazyCell::new(|| BlobCache::load(self.repo, usize::MAX));
        let knows = |file: &Candidate| blobs.knows(self.repo, file);
        let directories = DirCache::load(self.repo);
        let read = ReadFiles::load(self.repo, index.entries().len());
        let (looks, monitor) = self.looks(usual)?;
        let underway = self.repo.watch.begin(Phase::Scan, index.entries().len());
        let scanner = Scanner {
            worktree: Worktree::new(self.repo),
            directories: &directories,
            monitor: monitor.as_ref(),
            read: Some(&read),
            index,
            looks,
            usual,
            limits,
            underway: &underway,
        };
        let privacy = Privacy::new(self.repo);
        let scan = scan::scan(&scanner, rules, same_turn.as_ref(), &knows, Some(&privacy))?;
        directories.save(self.repo, &scan.listed);
        read.save(self.repo);
        // What it calls unchanged has been read.
        if let Some(monitor) = monitor {
            monitor.save(self.repo, &scan.unchanged_dirs);
        }
        Ok(scan)
    }

    /// How files are compared with the index, and the monitor, asked now, where there is one.
    pub(super) fn looks(&self, usual: UsualModes) -> Result<(Looks, Option<Monitor>)> {
        let capabilities = self.repo.gix.filesystem_options()?;
        let stat_options = stat_options(self.repo.gix.stat_options()?);
        let case_insensitive = capabilities.ignore_case || capabilities.precompose_unicode;
        let looks = Looks { stat_options, file_mode: capabilities.executable_bit };
        let rules = (usual, looks.file_mode, stat_options, "read");
        Ok((looks, Monitor::ask(self.repo, case_insensitive, rules)))
    }

    /// The captured files that are not in the index.
    pub fn untracked_files(&self, capture: &Capture) -> Result<Vec<BString>> {
        let state = &capture.checkpoint;
        let left_out: Vec<TreeChange> = state.index.sparse.iter().map(|directory| (directory.clone(), None)).collect();
        let staged = Objects::new(self.repo).edited_tree(state.index.tree, &left_out)?;
        let mut untracked = Vec::new();
        for path in Objects::new(self.repo).changed_paths(staged, state.worktree)? {
            if Index::new(self.repo).index_entries(&capture.index, path.as_bstr())?.is_empty() {
                untracked.push(path);
            }
        }
        Ok(untracked)
    }
}

/// The finest comparison of stat data: nanoseconds show an edit within the same second that keeps the size.
/// What looks different is read, so being too fine does no harm.
fn stat_options(configured: gix::index::entry::stat::Options) -> gix::index::entry::stat::Options {
    gix::index::entry::stat::Options { use_nsec: true, trust_ctime: true, ..configured }
}
