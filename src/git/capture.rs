//! From the worktree and the index to a checkpoint: blobs for what git does
//! not have yet, and trees made from the index's by the differences alone.

use super::Repo;
use super::ignore::{Rules, read_rules};
use super::index::TreeChange;
use super::known::{Known, Listings};
use super::monitor::Monitor;
use super::scan::{Difference, Earlier, Limits, Scan, Scanner, Unread};
use super::stat::{file_state, kind_of, mode_of};
use super::worktree::{Exactly, Found, file_id, is_denied};
use crate::model::checkpoint::{Checkpoint, Head, Kind, Modes, Reason, Skipped, UsualModes};
use crate::model::progress::Work;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::{Flags, Mode};
use gix::objs::Write;
use gix::objs::tree::EntryKind;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// A checkpoint and what was learnt while it was taken.
pub struct Capture {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The ignore rules that were in force.
    pub rules: Rules,
    /// The index as it was read.
    pub index: Arc<gix::index::File>,
    /// Tracked paths that may differ from their index entries.
    pub changed: Vec<BString>,
    /// Paths that something kept changing while they were read: what was captured of them may
    /// be from more than one moment.
    pub torn: Vec<BString>,
}

/// The checkpoint that this capture is compared with at the end of a turn.
pub struct Before<'a> {
    /// The checkpoint.
    pub checkpoint: &'a Checkpoint,
    /// Its ignore rules, which stay in force.
    pub rules: Rules,
}

/// Larger files are never held in memory as a whole.
const IN_MEMORY: u64 = 4 << 20;

/// How often a file that changes while it is read is read again.
const READS: u32 = 3;

impl Repo {
    /// Captures the whole present state. With `before`, by the rules and limits of that checkpoint.
    ///
    /// # Errors
    ///
    /// When something cannot be read or written.
    pub fn capture(&self, usual: UsualModes, limits: &Limits, before: Option<Before<'_>>) -> Result<Capture> {
        let head = self.head()?;
        let head_tree = self.head_tree(&head)?;
        let index = self.with_directories_opened(self.read_index()?)?;
        let earlier = before.as_ref().map(|before| before.checkpoint);
        let captured = |path: &BStr| earlier.is_some_and(|cp| matches!(self.tree_file(cp.worktree, path), Ok(Some(_))));
        let capabilities = self.gix.filesystem_options()?;
        let stat_options = stat_options(self.gix.stat_options()?);
        let listings = Listings::load(self);
        let folds = capabilities.ignore_case || capabilities.precompose_unicode;
        let monitor = Monitor::ask(self, folds, (usual, capabilities.executable_bit, stat_options));
        let underway = self.watch.begin(Work::Scan, index.entries().len());
        let scanner = Scanner {
            worktree: &self.worktree,
            listings: &listings,
            monitor: monitor.as_ref(),
            index: &index,
            stat_options,
            file_mode: capabilities.executable_bit,
            usual,
            limits,
            underway: &underway,
        };
        let same_turn = earlier.map(|checkpoint| Earlier { skipped: &checkpoint.skipped, captured: &captured });
        let mut rules = if let Some(before) = before {
            before.rules
        } else {
            let mut rules = self.shared_rules(capabilities.ignore_case)?;
            rules.include(&limits.include);
            rules
        };
        let scan = scanner.scan(&mut rules, same_turn.as_ref())?;
        listings.save(self, &scan.listed);
        if let Some(monitor) = monitor {
            monitor.save(self, &scan.plain);
        }
        drop(underway);
        let index = self.with_entries_shown(index, &scan.shown)?;
        let state = self.index_state(&index, head_tree)?;
        let mut content = Content {
            repo: self,
            index: &index,
            changes: Vec::new(),
            changed: Vec::new(),
            unusual: BTreeMap::new(),
            skipped: Vec::new(),
            torn: Vec::new(),
        };
        content.read_all(&scan)?;
        let mut worktree = self.edited_tree(state.tree, &content.changes)?;
        if let Some(earlier) = earlier {
            let missed = content.missed(earlier, worktree, usual)?;
            worktree = self.edited_tree(worktree, &missed)?;
        }
        let Content { changed, unusual: late_modes, skipped: unread, torn, .. } = content;
        let mut unusual = scan.unusual;
        unusual.extend(late_modes);
        let mut skipped = scan.skipped;
        skipped.extend(unread);
        skipped.sort();
        let rules_id = self.gix.write_blob(rules.to_record())?.detach();
        Ok(Capture {
            checkpoint: Checkpoint {
                branches: self.branches()?,
                elsewhere: self.branches_elsewhere()?.into_keys().collect(),
                stash: self.stash()?,
                head,
                index: state,
                worktree,
                modes: Modes { usual, unusual },
                directories: scan.directories,
                skipped,
                rules: rules_id,
            },
            rules,
            index,
            changed,
            torn,
        })
    }

    /// The ignore rules that a checkpoint was taken by.
    ///
    /// # Errors
    ///
    /// When their record cannot be read.
    pub fn rules_of(&self, checkpoint: &Checkpoint) -> Result<Rules> {
        let record = self.gix.find_blob(checkpoint.rules).context("read the ignore rules")?;
        Rules::from_record(&record.data, self.gix.filesystem_options()?.ignore_case)
    }

    /// The ignore rules that are not in the worktree: `info/exclude` and `core.excludesFile`.
    pub(super) fn shared_rules(&self, ignore_case: bool) -> Result<Rules> {
        let configured = match self.gix.config_snapshot().trusted_path("core.excludesFile")? {
            Some(path) => Some(path),
            None => std::env::var_os("XDG_CONFIG_HOME")
                .filter(|value| !value.is_empty())
                .map(std::path::PathBuf::from)
                .or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".config")))
                .map(|config| config.join("git/ignore")),
        };
        let exclude = read_rules(&self.common_dir.join("info/exclude"));
        let global = configured.and_then(|path: std::path::PathBuf| read_rules(&self.top().join(path)));
        Ok(Rules::new(exclude, global, ignore_case))
    }

    /// The tree of HEAD's commit; the empty tree on an unborn branch.
    ///
    /// # Errors
    ///
    /// When the commit cannot be read.
    pub fn head_tree(&self, head: &Head) -> Result<ObjectId> {
        match head.commit {
            Some(commit) => self.commit_tree(commit),
            None => self.write_empty_tree(),
        }
    }

    /// The tree of a commit.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn commit_tree(&self, commit: ObjectId) -> Result<ObjectId> {
        let commit = self.gix.find_commit(commit).with_context(|| format!("read commit {commit}"))?;
        Ok(commit.tree_id()?.detach())
    }

    /// The file or link at a path of a tree.
    ///
    /// # Errors
    ///
    /// When the tree cannot be read.
    pub fn tree_file(&self, tree: ObjectId, path: &BStr) -> Result<Option<(Kind, ObjectId)>> {
        let entry = self.tree_entry(tree, path)?;
        Ok(entry.and_then(|(kind, id)| Some((file_kind(kind)?, id))))
    }

    /// Whether a tree has a file, link or submodule at a path.
    ///
    /// # Errors
    ///
    /// When the tree cannot be read.
    pub fn tree_has_entry(&self, tree: ObjectId, path: &BStr) -> Result<bool> {
        Ok(self.tree_entry(tree, path)?.is_some_and(|(kind, _)| kind != EntryKind::Tree))
    }

    /// Whatever is at a path of a tree.
    ///
    /// # Errors
    ///
    /// When the tree cannot be read.
    pub fn tree_entry(&self, tree: ObjectId, path: &BStr) -> Result<Option<(EntryKind, ObjectId)>> {
        let tree = self.gix.find_tree(tree)?;
        let entry = tree.lookup_entry(path.split(|byte| *byte == b'/'))?;
        Ok(entry.map(|entry| (entry.mode().kind(), entry.object_id())))
    }
}

/// The finest comparison of stat data: an edit within the second that keeps size and time
/// is seen by its nanoseconds. What looks different is read, so too fine does no harm.
fn stat_options(configured: gix::index::entry::stat::Options) -> gix::index::entry::stat::Options {
    gix::index::entry::stat::Options { use_nsec: true, trust_ctime: true, ..configured }
}

/// What kind of file a tree entry is; `None` for a tree or a submodule.
pub fn file_kind(kind: EntryKind) -> Option<Kind> {
    match kind {
        EntryKind::Blob => Some(Kind::File),
        EntryKind::BlobExecutable => Some(Kind::Executable),
        EntryKind::Link => Some(Kind::Symlink),
        EntryKind::Tree | EntryKind::Commit => None,
    }
}

/// What a tree says of a file or link.
pub(super) fn entry_kind(kind: Kind) -> EntryKind {
    match kind {
        Kind::File => EntryKind::Blob,
        Kind::Executable => EntryKind::BlobExecutable,
        Kind::Symlink => EntryKind::Link,
    }
}

/// What became of a file that was to be written as a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Written {
    /// It is not there.
    Gone,
    /// It cannot be read.
    Unreadable,
    /// It is this blob.
    Blob(ObjectId),
}

impl Written {
    fn id(self) -> Option<ObjectId> {
        match self {
            Self::Blob(id) => Some(id),
            _ => None,
        }
    }
}

/// The reading of what a scan found.
struct Content<'a> {
    repo: &'a Repo,
    index: &'a gix::index::File,
    changes: Vec<TreeChange>,
    changed: Vec<BString>,
    unusual: BTreeMap<BString, u32>,
    skipped: Vec<Skipped>,
    /// What changed at every reading.
    torn: Vec<BString>,
}

impl Content<'_> {
    fn read_all(&mut self, scan: &Scan) -> Result<()> {
        for entry in self.index.entries() {
            if entry.mode == Mode::COMMIT || entry.mode == Mode::DIR {
                let path = entry.path(self.index);
                let path = path.strip_suffix(b"/").unwrap_or(path);
                self.changes.push((path.into(), None));
            }
        }
        self.changes.extend(scan.absent.iter().map(|(directory, _)| (directory.clone(), None)));
        let underway = self.repo.watch.begin(Work::Read, scan.tracked.len() + scan.untracked.len());
        for (at, difference) in &scan.tracked {
            self.tracked(*at, difference)?;
            underway.advance(1);
        }
        let mut known = Known::load(self.repo, scan.untracked.len());
        for file in &scan.untracked {
            let found = known.find(self.repo, file);
            let read = if found.is_none() { self.blob(file)? } else { None };
            if let Some(id) = read {
                known.learn(file, id);
            }
            let entry = found.or(read).map(|id| (entry_kind(file.kind), id));
            self.changes.extend(entry.map(|entry| (file.path.clone(), Some(entry))));
            underway.advance(1);
        }
        known.save(self.repo)?;
        self.filtered(scan)
    }

    fn tracked(&mut self, at: usize, difference: &Difference) -> Result<()> {
        let entry = &self.index.entries()[at];
        let path = entry.path(self.index).to_owned();
        // git takes no changes of these paths into a commit.
        let hidden = entry.flags.intersects(Flags::ASSUME_VALID | Flags::SKIP_WORKTREE);
        let now = match difference {
            Difference::Gone => None,
            Difference::Suspect(file) => match self.blob(file)? {
                Some(id) => Some((entry_kind(file.kind), id)),
                // Unreadable: what the index says is all that is known.
                None if self.skipped.last().is_some_and(|skipped| skipped.path == path) => return Ok(()),
                None => None,
            },
        };
        let staged = entry.mode.to_tree_entry_mode().map(|mode| (mode.kind(), entry.id));
        let in_tree = entry.stage_raw() == 0 && !entry.flags.contains(Flags::INTENT_TO_ADD);
        if now == staged && in_tree {
            return Ok(());
        }
        if !hidden {
            self.changed.push(path.clone());
        }
        if now.is_some() || in_tree {
            self.changes.push((path, now));
        }
        Ok(())
    }

    /// The raw content of a file as a blob; `None` when it is gone, or unreadable and said so.
    fn blob(&mut self, file: &Unread) -> Result<Option<ObjectId>> {
        let path = file.path.as_bstr();
        let time = |stat: Option<(rustix::fs::Stat, _)>| {
            stat.map(|(stat, _): (_, std::os::fd::OwnedFd)| (stat.st_mtime, stat.st_mtime_nsec, stat.st_size))
        };
        let (mut written, mut torn) = (Written::Gone, true);
        for _ in 0..READS {
            let before = self.repo.worktree.stat(path)?;
            written = self.repo.write_file(path, file.kind)?;
            torn = time(before) != time(self.repo.worktree.stat(path)?);
            if !torn {
                break;
            }
        }
        if torn {
            self.torn.push(path.to_owned());
        }
        if written == Written::Unreadable {
            let state = self.repo.worktree.stat(path)?.and_then(|(stat, _)| file_state(&stat));
            self.skipped.push(Skipped { path: path.to_owned(), reason: Reason::Unreadable, size: 0, state });
        }
        Ok(written.id())
    }

    /// A file that a filter stands between may have other bytes than its blob, even where
    /// git calls it clean: those get blobs of their own.
    fn filtered(&mut self, scan: &Scan) -> Result<()> {
        if !self.repo.may_filter(scan)? {
            return Ok(());
        }
        let absent = scan.absent.iter().flat_map(|(_, range)| range.clone());
        let known: HashSet<usize> = scan.tracked.iter().map(|(at, _)| *at).chain(absent).collect();
        let mut attributes = self
            .repo
            .gix
            .attributes_only(self.index, gix::worktree::stack::state::attributes::Source::WorktreeThenIdMapping)?;
        let names = ["text", "crlf", "eol", "ident", "filter", "working-tree-encoding"];
        let mut outcome = attributes.selected_attribute_matches(names);
        let auto = self.repo.converts_line_ends();
        for (at, entry) in self.index.entries().iter().enumerate() {
            let is_file = entry.mode == Mode::FILE || entry.mode == Mode::FILE_EXECUTABLE;
            if !is_file || known.contains(&at) {
                continue;
            }
            let path = entry.path(self.index);
            let matched = attributes.at_entry(path, Some(entry.mode))?.matching_attributes(&mut outcome);
            let (mut rewrites, mut shrinks) = (false, auto);
            if matched {
                for found in outcome.iter_selected() {
                    use gix::attrs::StateRef as S;
                    let name = found.assignment.name.as_str();
                    let set = !matches!(found.assignment.state, S::Unset | S::Unspecified);
                    match name {
                        "filter" | "working-tree-encoding" => rewrites |= set,
                        "text" if found.assignment.state == S::Unset => shrinks = false,
                        _ => shrinks |= set,
                    }
                }
            }
            // Line ends and $Id$ only ever get shorter on the way in: the same size is the same content.
            let same_size = || -> Result<bool> {
                let size = self.repo.gix.find_header(entry.id)?.size();
                Ok(size & u64::from(u32::MAX) == u64::from(entry.stat.size))
            };
            if !rewrites && (!shrinks || same_size()?) {
                continue;
            }
            let kind = if entry.mode == Mode::FILE { Kind::File } else { Kind::Executable };
            let Some(id) = self.repo.write_file(path, kind)?.id() else { continue };
            if id != entry.id {
                self.changes.push((path.to_owned(), Some((entry_kind(kind), id))));
            }
        }
        Ok(())
    }

    /// What was captured before the turn and is still there, though index and ignore rules
    /// hide it now.
    fn missed(&mut self, earlier: &Checkpoint, worktree: ObjectId, usual: UsualModes) -> Result<Vec<TreeChange>> {
        let mut missed = Vec::new();
        for path in self.repo.removed_paths(earlier.worktree, worktree)? {
            if self.skipped.iter().any(|skipped| skipped.path == path) {
                continue;
            }
            let found = match self.repo.worktree.find(path.as_bstr()) {
                // What can no longer be looked at is taken to be as it was.
                Err(error) if is_denied(&error) => {
                    missed.push((path.clone(), self.repo.tree_entry(earlier.worktree, path.as_bstr())?));
                    continue;
                }
                found => found?,
            };
            let Found::There(stat) = found else { continue };
            let Some(kind) = kind_of(&stat) else { continue };
            let mode = mode_of(&stat);
            let file = Unread { path: path.clone(), kind, mode, stamp: None };
            if let Some(id) = self.blob(&file)? {
                if kind != Kind::Symlink && mode != usual.of(kind) {
                    self.unusual.insert(path.clone(), mode);
                }
                missed.push((path, Some((entry_kind(kind), id))));
            }
        }
        Ok(missed)
    }
}

impl Repo {
    /// Copies a blob's content. git reads one that is large, which it does in pieces, and one that
    /// is not here, which it may know where to fetch.
    ///
    /// # Errors
    ///
    /// When it cannot be read or written.
    pub fn copy_blob(&self, id: ObjectId, out: &mut dyn std::io::Write) -> Result<()> {
        if self.gix.find_header(id).is_ok_and(|header| header.size() <= IN_MEMORY) {
            return Ok(out.write_all(&self.gix.find_blob(id)?.data)?);
        }
        let threshold = format!("core.bigFileThreshold={IN_MEMORY}");
        self.git(["-c", &threshold, "cat-file", "blob", &id.to_string()]).copy_to(out)
    }

    /// Writes a file's raw content, or a link's target, as a blob unless it is one already.
    fn write_file(&self, path: &BStr, kind: Kind) -> Result<Written> {
        let file = if kind == Kind::Symlink { Ok(None) } else { self.worktree.open_file(path) };
        let Ok(file) = file else { return Ok(Written::Unreadable) };
        let Some(file) = file.filter(|file| file.metadata().is_ok_and(|about| about.len() > IN_MEMORY)) else {
            return Ok(match self.worktree.read(path, kind) {
                Ok(Some(bytes)) => Written::Blob(self.gix.write_blob(bytes)?.detach()),
                Ok(None) => Written::Gone,
                Err(_) => Written::Unreadable,
            });
        };
        let Ok(id) = file_id(&file, self.hash_kind()) else { return Ok(Written::Unreadable) };
        if self.gix.has_object(id) {
            return Ok(Written::Blob(id));
        }
        let mut bytes = Exactly::of(&file)?;
        match self.gix.objects.write_stream(gix::objs::Kind::Blob, bytes.left, &mut bytes) {
            Ok(id) => Ok(Written::Blob(id)),
            Err(_) if bytes.failed => Ok(Written::Unreadable),
            Err(error) => Err(error.into()),
        }
    }

    fn converts_line_ends(&self) -> bool {
        let value = self.setting("core.autocrlf").map(|value| value.to_string().to_ascii_lowercase());
        value.is_some_and(|value| !matches!(value.as_str(), "false" | "no" | "off" | "0"))
    }

    /// Whether any attribute or setting could stand between a file and its blob.
    fn may_filter(&self, scan: &Scan) -> Result<bool> {
        if self.converts_line_ends() {
            return Ok(true);
        }
        let shared = [
            Some(self.common_dir.join("info/attributes")),
            self.gix.config_snapshot().trusted_path("core.attributesFile")?,
            std::env::var_os("XDG_CONFIG_HOME").map(|config| std::path::Path::new(&config).join("git/attributes")),
            std::env::var_os("HOME").map(|home| std::path::Path::new(&home).join(".config/git/attributes")),
        ];
        let shared = shared.into_iter().flatten().filter_map(|path| std::fs::read(path).ok());
        let own = (scan.attributes.iter()).filter_map(|path| self.worktree.read_plain_file(path.as_bstr()));
        let words = [b"text".as_slice(), b"eol", b"crlf", b"ident", b"filter", b"encoding"];
        Ok(shared.chain(own).any(|attributes| words.iter().any(|word| attributes.contains_str(word))))
    }
}
