//! The index. It is read with gix and written by git alone: git knows its
//! extensions, its racy entries and the filters. Writing happens on a copy
//! while `index.lock` is held, and the copy is renamed over the index.

use super::Repo;
use super::lock::held;
use super::platform::rename_to_nothing;
use super::process::{Git, Waiting};
use super::sparse::sparse_directories;
use crate::config::Config;
use crate::model::checkpoint::{IndexEntry, IndexState};
use crate::model::plan::IndexMove;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::config::tree::Index as Threads;
use gix::index::entry::{Flags, Mode};
use gix::index::{File as IndexFile, State};
use gix::objs::tree::EntryKind;
use rustix::fs::CWD;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Repo {
    /// Reads the index; an empty one where there is none. What was read is read again only when
    /// the file is another one.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn read_index(&self) -> Result<Arc<IndexFile>> {
        let path = self.index_path();
        let stamp = Stamp::of(&path);
        if let Some((known, index)) = &*self.index.borrow()
            && stamp.as_ref() == Some(known)
        {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(self.decode_index(&path)?);
        // A file that was replaced meanwhile is not the one that was looked at.
        let read = stamp.filter(|stamp| Stamp::of(&path).as_ref() == Some(stamp));
        self.index.replace(read.map(|stamp| (stamp, Arc::clone(&index))));
        Ok(index)
    }

    /// Where git keeps this worktree's index, whatever `GIT_INDEX_FILE` says: a hook sets that
    /// to a file of its own.
    fn index_path(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    fn decode_index(&self, path: &Path) -> Result<IndexFile> {
        // A number that is none is for git to report.
        let threads = self.setting("index.threads").and_then(|n| Threads::THREADS.try_into_index_threads(n).ok());
        let options = gix::index::decode::Options { thread_limit: threads, ..Default::default() };
        // As git itself does, which leaves the checksum to fsck: it takes longer than all the rest.
        let decode = || IndexFile::at_or_default(path, self.hash_kind(), true, options);
        let decoded = decode().or_else(|error| {
            // The shared part of a split index is looked for beside it, where a copy has none.
            let lent = self.lend_shared_parts(path).map_err(|_| error)?;
            let decoded = decode();
            for part in lent {
                let _ = std::fs::remove_file(part);
            }
            decoded
        });
        decoded.map_err(|error| anyhow::Error::msg(error.to_string())).context("read the index")
    }

    /// Puts links to the shared parts of split indexes beside a copy of the index.
    fn lend_shared_parts(&self, copy: &Path) -> std::io::Result<Vec<PathBuf>> {
        let mut lent = Vec::new();
        for entry in std::fs::read_dir(&self.git_dir)? {
            let entry = entry?;
            let link = copy.with_file_name(entry.file_name());
            if entry.file_name().as_bytes().starts_with(b"sharedindex.") && !link.exists() {
                std::fs::hard_link(entry.path(), &link)?;
                lent.push(link);
            }
        }
        Ok(lent)
    }

    /// The index as a value. `base` is a tree that most of it is in, such as HEAD's.
    ///
    /// # Errors
    ///
    /// When a tree cannot be read or written.
    pub fn index_state(&self, index: &State, base: ObjectId) -> Result<IndexState> {
        let tree = self.index_tree(index, base)?;
        let mut state = IndexState { tree, sparse: sparse_directories(index), special: BTreeMap::new() };
        for entry in index.entries() {
            let (value, path) = (entry_of(entry), entry.path(index));
            if !value.is_plain() && entry.mode != Mode::DIR && state.sparse_directory(path).is_none() {
                state.special.entry(path.to_owned()).or_default().push(value);
            }
        }
        Ok(state)
    }

    /// What `git write-tree` would give, made from `base` by the differences alone.
    fn index_tree(&self, index: &State, base: ObjectId) -> Result<ObjectId> {
        let mut changes = Vec::new();
        let walk = TreeWalk { repo: self, index };
        walk.compare(index.tree(), Some(base), b"", 0..index.entries().len(), &mut changes)?;
        self.edited_tree(base, &changes)
    }

    /// A tree with some paths replaced or removed.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn edited_tree(&self, base: ObjectId, changes: &[TreeChange]) -> Result<ObjectId> {
        if changes.is_empty() {
            return Ok(base);
        }
        let mut editor = self.gix.edit_tree(base)?;
        // Removals first: a file may make place for a directory, or a directory for a file.
        for (path, _) in changes.iter().filter(|(_, entry)| entry.is_none()) {
            editor.remove(path.as_bstr())?;
        }
        for (path, entry) in changes {
            if let Some((kind, id)) = entry {
                editor.upsert(path.as_bstr(), *kind, *id)?;
            }
        }
        Ok(editor.write().context("write a tree")?.detach())
    }

    /// The entries of a path.
    ///
    /// # Errors
    ///
    /// When it is in a sparse index by its directory, of which the tree cannot be read.
    pub fn index_entries(&self, index: &State, path: &BStr) -> Result<Vec<IndexEntry>> {
        match index.entry_range(path) {
            Some(range) => Ok(index.entries()[range].iter().map(entry_of).collect()),
            None => Ok(self.entry_in_sparse_index(index, path)?.into_iter().collect()),
        }
    }

    /// How these paths differ between two readings of the index.
    ///
    /// # Errors
    ///
    /// As [`Self::index_entries`].
    pub fn index_moves(&self, paths: &[BString], before: &State, after: &State) -> Result<Vec<IndexMove>> {
        let mut moves = Vec::new();
        for path in paths {
            let from = self.index_entries(before, path.as_bstr())?;
            let to = self.index_entries(after, path.as_bstr())?;
            if from != to {
                moves.push(IndexMove { path: path.clone(), from, to });
            }
        }
        Ok(moves)
    }

    /// Takes `index.lock` and makes a copy of the index to work on.
    ///
    /// # Errors
    ///
    /// A refusal `locked` when something else holds it for good.
    pub fn lock_index(&self) -> Result<IndexLock<'_>> {
        let index = self.index_path();
        let lock = lock_path(&index);
        let scratch = self.scratch()?;
        // A git that outlives its killed oxundo works on that one's copy, never on another's.
        let (mark, copy) = (scratch.join("index.mark"), self.git_dir.join(format!("{COPY}{}", std::process::id())));
        std::fs::write(&mark, OWN).with_context(|| format!("make '{}'", mark.display()))?;
        let started = Instant::now();
        while let Err(error) = mark_as_lock(&mark, &lock) {
            if error.kind() != std::io::ErrorKind::AlreadyExists {
                return Err(error).with_context(|| format!("make '{}'", lock.display()));
            }
            self.wait_for_lock(&lock, started)?;
        }
        let held = IndexLock { repo: self, index, lock, mark, copy, stager: RefCell::default() };
        held.start_copy()?;
        Ok(held)
    }

    /// Whether something holds the index now.
    pub fn index_is_locked(&self) -> bool {
        lock_path(&self.index_path()).symlink_metadata().is_ok()
    }

    /// Waits a moment for the index to be free.
    ///
    /// # Errors
    ///
    /// A refusal `locked` when something else holds it for good.
    pub fn check_index_is_free(&self) -> Result<()> {
        let lock = lock_path(&self.index_path());
        let started = Instant::now();
        while self.index_is_locked() {
            self.wait_for_lock(&lock, started)?;
        }
        Ok(())
    }

    /// Waits a little for a lock that was first met at `started`; refuses once that was long enough.
    fn wait_for_lock(&self, lock: &Path, started: Instant) -> Result<()> {
        if started.elapsed() >= Config(self).lock_timeout()? {
            return Err(held(lock, "the index"));
        }
        std::thread::sleep(Duration::from_millis(25));
        Ok(())
    }

    /// Removes an `index.lock` that an oxundo which was killed left behind. To be called with
    /// the worktree's lock held.
    ///
    /// # Errors
    ///
    /// When it cannot be removed.
    pub fn clear_own_index_lock(&self) -> Result<()> {
        let mark = self.scratch()?.join("index.mark");
        let lock = lock_path(&self.index_path());
        if !mark.exists() {
            return Ok(());
        }
        // Whoever made it is gone: this process holds the worktree's lock.
        if is_own(&lock) {
            std::fs::remove_file(&lock).with_context(|| format!("remove '{}'", lock.display()))?;
        }
        // The copies, what a git that was killed with its oxundo left beside one, and the stand-ins.
        for entry in std::fs::read_dir(&self.git_dir)?.flatten() {
            if entry.file_name().as_bytes().starts_with(COPY.as_bytes()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        let _ = std::fs::remove_dir_all(self.scratch_path(STAND_IN));
        let _ = std::fs::remove_file(copy_of(&mark));
        // Last: while it is there, the next command knows that there is something to clear.
        std::fs::remove_file(&mark).with_context(|| format!("remove '{}'", mark.display()))
    }
}

/// What tells one index file from the next: git never writes into one, it puts another in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let about = std::fs::metadata(path).ok()?;
        Some(Self {
            file: (about.dev(), about.ino()),
            size: about.size(),
            modified: (about.mtime(), about.mtime_nsec()),
        })
    }
}

/// The worktree of stand-ins, in the scratch directory.
const STAND_IN: &str = "stand-in";

/// How the names of the index's copies begin. They are beside it: a split index finds its other
/// half there.
const COPY: &str = "index.oxundo-";

fn lock_path(index: &Path) -> PathBuf {
    let mut name = index.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// What an `index.lock` of oxundo's holds, by which one that a kill left behind is told from git's.
const OWN: &[u8] = b"oxundo's\n";

/// Makes the lock, as whole as the mark is.
fn mark_as_lock(mark: &Path, lock: &Path) -> std::io::Result<()> {
    // A second name of the mark; a file system that has none says so in many ways.
    match std::fs::hard_link(mark, lock) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            let copy = copy_of(mark);
            std::fs::write(&copy, OWN)?;
            Ok(rename_to_nothing(CWD, copy.as_os_str(), CWD, lock.as_os_str())?)
        }
        outcome => outcome,
    }
}

fn copy_of(mark: &Path) -> PathBuf {
    mark.with_extension("copy")
}

/// Whether oxundo made this lock.
fn is_own(lock: &Path) -> bool {
    // git's is of the index's size.
    let fits = |about: Metadata| about.is_file() && about.len() == OWN.len() as u64;
    lock.symlink_metadata().is_ok_and(fits) && std::fs::read(lock).is_ok_and(|held| held == OWN)
}

/// A path and what a tree shall have there.
pub type TreeChange = (BString, Option<(EntryKind, ObjectId)>);

/// git's index, locked, with a copy to work on. Dropping it leaves the index as it was.
#[derive(Debug)]
pub struct IndexLock<'repo> {
    repo: &'repo Repo,
    index: PathBuf,
    lock: PathBuf,
    mark: PathBuf,
    copy: PathBuf,
    stager: RefCell<Option<Stager>>,
}

/// A git that waits for the paths to stage.
#[derive(Debug)]
struct Stager {
    git: Waiting,
    /// The paths whose entries it makes without a look at the worktree.
    given: BTreeSet<BString>,
}

/// How many entries fit well into a command line.
const MOST_GIVEN: usize = 100;

impl IndexLock<'_> {
    fn start_copy(&self) -> Result<()> {
        let _ = std::fs::remove_file(&self.copy);
        let _ = std::fs::remove_file(lock_path(&self.copy));
        // git does not write into an index, it puts another in its place: for a copy, a second name will do.
        match self.index.symlink_metadata() {
            Ok(about) if about.is_file() && std::fs::hard_link(&self.index, &self.copy).is_ok() => Ok(()),
            Ok(_) if self.index.exists() => copy_index(&self.index, &self.copy),
            _ => Ok(()),
        }
    }

    /// Starts the git that [`Self::set`] needs: it reads the index while other things are done. The moves given
    /// lead to entries that are not what the worktree will have. Not in a sparse checkout: there git looks at the
    /// same time for what is on disk, and that is not yet as it will be.
    ///
    /// # Errors
    ///
    /// When git cannot be started.
    pub fn expect_set(&self, given: &[&IndexMove]) -> Result<()> {
        if !self.repo.is_sparse_checkout() {
            let given = if given.len() > MOST_GIVEN { &[] } else { given };
            self.stager.replace(Some(self.stager(given)?));
        }
        Ok(())
    }

    fn stager(&self, given: &[&IndexMove]) -> Result<Stager> {
        let mut args: Vec<OsString> =
            ["-c", "core.safecrlf=false", "update-index", "-z", "--add", "--remove", "--replace"]
                .map(Into::into)
                .into();
        for entry in given {
            for to in &entry.to {
                let mut info = OsString::from(format!("{:o},{},", to.mode, to.id));
                info.push(OsStr::from_bytes(&entry.path));
                args.extend(["--cacheinfo".into(), info]);
            }
        }
        args.push("--stdin".into());
        let given = given.iter().map(|entry| entry.path.clone()).collect();
        Ok(Stager { git: self.git(&args).start()?, given })
    }

    /// The copy as it is now.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn read(&self) -> Result<IndexFile> {
        self.repo.decode_index(&self.copy)
    }

    /// Stages these paths as `git add` and `git rm` would: what is there with its content,
    /// filters applied, and what is gone removed.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn stage<'a>(&self, paths: impl IntoIterator<Item = &'a BStr>) -> Result<()> {
        let (behind, paths): (Vec<&BStr>, Vec<&BStr>) =
            paths.into_iter().partition(|path| self.repo.worktree.is_behind_a_file(path));
        // git does not look behind what is no directory any more: such entries go by name.
        let gone: Vec<IndexMove> = behind.into_iter().map(IndexMove::removal).collect();
        self.write_exactly(&gone.iter().collect::<Vec<_>>())?;
        let input = nul_separated(paths);
        let waiting = self.stager.take();
        if input.is_empty() && waiting.as_ref().is_none_or(|stager| stager.given.is_empty()) {
            return Ok(());
        }
        let stager = waiting.map_or_else(|| self.stager(&[]), Ok)?;
        stager.git.run(&input).map(drop)
    }

    /// Makes the entries of each path what the move says. `fresh` tells whether the worktree now has
    /// what the entry names, be it nothing, so that git can record its stat data.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn set(&self, moves: &[IndexMove], fresh: impl Fn(&IndexMove) -> bool) -> Result<()> {
        let is_given = |path| self.stager.borrow().as_ref().is_some_and(|stager| stager.given.contains(path));
        let staged: Vec<_> = moves.iter().filter(|entry| !is_given(&entry.path) && fresh(entry)).collect();
        self.stage(staged.iter().map(|entry| entry.path.as_bstr()))?;
        let now = self.read()?;
        let mut wrong = Vec::new();
        for entry in moves {
            if self.repo.index_entries(&now, entry.path.as_bstr())? != entry.to {
                wrong.push(entry);
            }
        }
        self.write_exactly(&wrong)?;
        if self.repo.has_sparse_index() { self.fold() } else { Ok(()) }
    }

    /// Has git fold directories that were opened and are to be left out again: in a sparse index that
    /// has some folded already, it does not look for more unless it had to open them all.
    fn fold(&self) -> Result<()> {
        let index = self.read()?;
        let Some(inside) = self.repo.path_to_fold_by(&index)? else { return Ok(()) };
        self.git(&["update-index", "-z", "--skip-worktree", "--stdin"])
            .run(&nul_separated([inside.as_bstr()]))
            .map(drop)
    }

    fn write_exactly(&self, moves: &[&IndexMove]) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        let null = ObjectId::null(self.repo.hash_kind());
        let mut input = Vec::new();
        let mut line = |mode: u32, id: ObjectId, stage: u8, path: &BString| {
            input.extend_from_slice(format!("{mode:o} {id} {stage}\t").as_bytes());
            input.extend_from_slice(path);
            input.push(0);
        };
        for entry in moves {
            line(0, null, 0, &entry.path);
        }
        for entry in moves {
            for to in entry.to.iter().filter(|to| !to.intent_to_add) {
                line(to.mode, to.id, to.stage, &entry.path);
            }
        }
        self.git(&["update-index", "-z", "--index-info"]).run(&input)?;
        let having = |flag: fn(&IndexEntry) -> bool| -> Vec<(&BStr, u32)> {
            let flagged = moves.iter().filter_map(|entry| {
                let to = entry.to.iter().find(|to| flag(to))?;
                Some((entry.path.as_bstr(), to.mode))
            });
            flagged.collect()
        };
        self.intend_to_add(&having(|to| to.intent_to_add))?;
        for (option, paths) in [
            ("--assume-unchanged", having(|to| to.assume_unchanged)),
            ("--skip-worktree", having(|to| to.skip_worktree)),
        ] {
            if !paths.is_empty() {
                let input = nul_separated(paths.iter().map(|(path, _)| *path));
                self.git(&["update-index", "-z", option, "--stdin"]).run(&input)?;
            }
        }
        Ok(())
    }

    /// `git add -N` wants the files to be there; the user's may not be. So it is shown a
    /// worktree of stand-ins.
    fn intend_to_add(&self, paths: &[(&BStr, u32)]) -> Result<()> {
        if paths.is_empty() {
            return Ok(());
        }
        let stand_in = self.repo.scratch_path(STAND_IN);
        make_stand_ins(&stand_in, paths).with_context(|| format!("make files in '{}'", stand_in.display()))?;
        let input = nul_separated(paths.iter().map(|(path, _)| *path));
        let added = self
            .git(&["add", "-N", "-f", "--pathspec-from-file=-", "--pathspec-file-nul"])
            .env("GIT_WORK_TREE", &stand_in)
            .directory(&stand_in)
            .run(&input);
        std::fs::remove_dir_all(&stand_in).with_context(|| format!("remove '{}'", stand_in.display()))?;
        added.map(drop)
    }

    /// Puts the copy in the index's place.
    ///
    /// # Errors
    ///
    /// When the rename fails; the index is then as it was.
    pub fn commit(self) -> Result<()> {
        self.stager.take();
        if self.copy.exists() {
            std::fs::rename(&self.copy, &self.index).context("replace the index")?;
        }
        Ok(())
    }

    fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> Git {
        // One that waits has the copy locked.
        self.stager.take();
        self.repo.git(args).index(&self.copy)
    }

    /// The copy, for a hook of the user's to look at.
    pub fn path(&self) -> &Path {
        &self.copy
    }
}

impl Drop for IndexLock<'_> {
    fn drop(&mut self) {
        self.stager.take();
        // Nothing can be done about a failure here; the next command clears them.
        let _ = std::fs::remove_file(&self.copy);
        let _ = std::fs::remove_file(lock_path(&self.copy));
        let _ = std::fs::remove_dir_all(self.repo.scratch_path(STAND_IN));
        // The mark tells the next command that the lock is ours.
        let _ = std::fs::remove_file(&self.lock).and_then(|()| std::fs::remove_file(&self.mark));
    }
}

fn make_stand_ins(stand_in: &Path, paths: &[(&BStr, u32)]) -> std::io::Result<()> {
    let _ = std::fs::remove_dir_all(stand_in);
    std::fs::create_dir(stand_in)?;
    for (path, mode) in paths {
        let file = stand_in.join(OsStr::from_bytes(path));
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        if *mode == 0o120_000 {
            std::os::unix::fs::symlink("stand-in", &file)?;
        } else {
            std::fs::write(&file, b"")?;
            let bits = if *mode == 0o100_755 { 0o755 } else { 0o644 };
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(bits))?;
        }
    }
    Ok(())
}

/// Copies an index with its time: git takes that to tell which entries may have changed unseen.
fn copy_index(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).context("copy the index")?;
    let modified = std::fs::metadata(from).and_then(|about| about.modified());
    let copy = File::options().write(true).open(to);
    modified.and_then(|modified| copy?.set_modified(modified)).context("copy the index's time")?;
    Ok(())
}

fn nul_separated<'a>(paths: impl IntoIterator<Item = &'a BStr>) -> Vec<u8> {
    let mut input = Vec::new();
    for path in paths {
        input.extend_from_slice(path);
        input.push(0);
    }
    input
}

fn entry_of(entry: &gix::index::Entry) -> IndexEntry {
    IndexEntry {
        mode: entry.mode.bits(),
        id: entry.id,
        stage: entry.stage_raw().try_into().unwrap_or_default(),
        intent_to_add: entry.flags.contains(Flags::INTENT_TO_ADD),
        skip_worktree: entry.flags.contains(Flags::SKIP_WORKTREE),
        assume_unchanged: entry.flags.contains(Flags::ASSUME_VALID),
    }
}

/// Compares an index with a tree by the index's own record of trees, so that only those
/// below which something was staged are read.
struct TreeWalk<'a> {
    repo: &'a Repo,
    index: &'a State,
}

impl TreeWalk<'_> {
    fn compare(
        &self,
        node: Option<&gix::index::extension::Tree>,
        tree: Option<ObjectId>,
        prefix: &[u8],
        range: std::ops::Range<usize>,
        changes: &mut Vec<TreeChange>,
    ) -> Result<()> {
        if let (Some(node), Some(tree)) = (node, tree)
            && node.num_entries.is_some_and(|n| n as usize == range.len())
            && node.id == tree
        {
            return Ok(());
        }
        let mut have = self.tree_entries(tree)?;
        let mut at = range.start;
        while at < range.end {
            let entry = &self.index.entries()[at];
            let path = entry.path(self.index);
            let rest = &path[prefix.len()..];
            if let Some(slash) = rest.find_byte(b'/').filter(|_| entry.mode != Mode::DIR) {
                let inner = [prefix, &rest[..=slash]].concat();
                let entries = &self.index.entries()[at..range.end];
                let end = at + entries.partition_point(|e| e.path(self.index).starts_with(&inner));
                let name = &rest[..slash];
                let child = node.and_then(|node| node.children.iter().find(|c| c.name.as_slice() == name));
                let subtree = match have.get(name) {
                    Some((EntryKind::Tree, id)) => Some(*id),
                    _ => None,
                };
                if subtree.is_some() {
                    have.remove(name);
                }
                self.compare(child, subtree, &inner, at..end, changes)?;
                at = end;
                continue;
            }
            at += 1;
            // Intent-to-add entries are in no tree; unmerged ones in none that could be made.
            if entry.flags.contains(Flags::INTENT_TO_ADD) || entry.stage_raw() != 0 {
                continue;
            }
            let name = rest.strip_suffix(b"/").unwrap_or(rest);
            let kind = match entry.mode {
                Mode::DIR => EntryKind::Tree,
                Mode::FILE_EXECUTABLE => EntryKind::BlobExecutable,
                Mode::SYMLINK => EntryKind::Link,
                Mode::COMMIT => EntryKind::Commit,
                _ => EntryKind::Blob,
            };
            if have.remove(name) != Some((kind, entry.id)) {
                let path = path.strip_suffix(b"/").unwrap_or(path);
                changes.push((path.into(), Some((kind, entry.id))));
            }
        }
        for name in have.into_keys() {
            changes.push(([prefix, &name].concat().into(), None));
        }
        Ok(())
    }

    fn tree_entries(&self, tree: Option<ObjectId>) -> Result<BTreeMap<Vec<u8>, (EntryKind, ObjectId)>> {
        let Some(id) = tree else {
            return Ok(BTreeMap::new());
        };
        let tree = self.repo.gix.find_tree(id)?;
        let tree = tree.decode()?;
        let entries = tree.entries.iter();
        Ok(entries.map(|e| (e.filename.to_vec(), (e.mode.kind(), e.oid.to_owned()))).collect())
    }
}
