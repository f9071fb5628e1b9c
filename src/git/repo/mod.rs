//! A repository with its worktree: where it is, how git is called in it, what its configuration says.

pub mod aliases;
pub mod apart;
pub mod ask;
pub mod audience;
pub mod clock;
pub mod closing;
pub mod date;
pub mod date_form;
pub mod discover;
pub mod environment;
pub mod find;
pub mod heed;
#[cfg(test)]
pub mod hermetic;
pub mod identity;
pub mod large;
pub mod listen;
pub mod lock;
pub mod look;
pub mod loose;
pub mod open;
pub mod operation;
pub mod platform;
pub mod process;
pub mod refs;
pub mod scratch;
pub mod seal;
pub mod settings;
pub mod shadow;
pub mod sharing;
pub mod shell;
#[cfg(test)]
pub mod testing;
pub mod threads;
pub mod told;
pub mod ways;
pub mod worktrees;
pub mod written;

use crate::git::repo::apart::Look;
use crate::git::repo::audience::Audience;
use crate::git::repo::sharing::Sharing;
use crate::git::repo::told::Told;
use crate::git::repo::ways::{Levels, Ways};
use crate::git::repo::written::Written;
use crate::model::bytes::lossless;
use crate::progress::{OperationGuard, Progress, ProgressSink, StopSwitch};
use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags};
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A git repository with its worktree, as oxundo works on it.
#[derive(Debug)]
pub struct Repo {
    pub(in crate::git) gix: gix::Repository,
    top: Top,
    pub(in crate::git) git_dir: PathBuf,
    pub(in crate::git) common_dir: PathBuf,
    scratch: PathBuf,
    prefix: PathBuf,
    from_environment: bool,
    /// Whether git finds it by itself where it stands at the top of the worktree.
    found_from_top: bool,
    /// The index as it was last read.
    pub(in crate::git) index: RefCell<Option<(Stamp, Arc<gix::index::File>)>>,
    /// The index as a thread is reading it.
    pub(in crate::git) ahead: RefCell<Option<ReadAhead>>,
    pub(in crate::git) watch: ProgressSink,
    /// Where somebody hears of signals.
    pub(in crate::git) stop: OnceCell<StopSwitch>,
    /// Whether git takes attributes from nowhere else than gix does, once that was asked.
    attributes: OnceCell<bool>,
    /// How long to wait for another command's moment to pass.
    patience: Duration,
    /// For whom the files in the git directory are, once that was asked.
    sharing: OnceCell<Sharing>,
    /// Who can read what is in the git directory, once that was asked.
    audience: RefCell<Option<Audience>>,
    /// About how many bytes of objects are in memory only.
    unwritten: Cell<usize>,
    /// What a look needs and has not written, while this is one.
    look: RefCell<Option<Look>>,
    /// What is done against the loss of power.
    pub(in crate::git) power: Power,
    /// The ways through trees that were gone last.
    pub(in crate::git) ways: RefCell<Ways>,
    /// The trees in which names were looked up last.
    pub(in crate::git) levels: RefCell<Levels>,
    /// What git said of refs in tables.
    told: RefCell<Told>,
    /// Whether a plan was carried out in part and then rolled back.
    pub(in crate::git) rolled_back: Cell<bool>,
}

/// What is done against the loss of power.
#[derive(Debug)]
pub struct Power {
    /// Whether what oxundo relies on is flushed to the disk.
    pub flushes: Cell<bool>,
    /// Whether it was looked for what a power cut may have left.
    pub looked: Cell<bool>,
    /// Whether there is a log.
    pub logs: Cell<bool>,
    /// What has been written since that was last asked for.
    pub written: RefCell<Written>,
}

impl Default for Power {
    fn default() -> Self {
        Self { flushes: true.into(), looked: false.into(), logs: false.into(), written: RefCell::default() }
    }
}

/// The top of a worktree, held open.
#[derive(Debug)]
pub struct Top {
    /// Its directory.
    pub path: PathBuf,
    /// The directory, open.
    pub fd: OwnedFd,
    /// `core.ignoreCase`: a path may find a file whose name is in other letters.
    pub ignores_case: bool,
}

impl Top {
    /// Opens the worktree at this directory.
    pub fn open(path: &Path, ignores_case: bool) -> Result<Self> {
        let fd = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .with_context(|| format!("open '{}'", path.display()))?;
        Ok(Self { path: path.to_owned(), fd, ignores_case })
    }
}

/// What distinguishes one index file from the next: git never writes into an index, it replaces the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64),
    size: u64,
    modified: (i64, i64),
}

/// A thread that reads an index; nothing where it cannot be read.
pub type ReadAhead = JoinHandle<Option<(Stamp, gix::index::File)>>;

impl Stamp {
    /// The stamp of the file at a path; none where there is none.
    pub fn of(path: &Path) -> Option<Self> {
        let about = std::fs::metadata(path).ok()?;
        Some(Self {
            file: (about.dev(), about.ino()),
            size: about.size(),
            modified: (about.mtime(), about.mtime_nsec()),
        })
    }

    /// How many bytes the file has.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, size, modified } = self;
        write!(f, "{} {} {size} {} {}", file.0, file.1, modified.0, modified.1)
    }
}

impl Repo {
    /// Tells whoever wants to know what is going on.
    pub fn emit(&self, progress: Progress<'_>) {
        self.watch.emit(progress);
    }

    /// Tells that an operation begins; it is over when what this gives is dropped.
    pub fn start(&self, what: &str) -> OperationGuard<'_> {
        self.watch.start(what)
    }

    /// Reports progress to this sink from now on.
    pub fn set_progress(&mut self, watch: ProgressSink) {
        self.watch = watch;
    }

    /// Whether a plan failed on its way and was rolled back since this was asked last.
    pub fn take_rolled_back(&self) -> bool {
        self.rolled_back.take()
    }

    /// The switch that stops what is under way, for the first who asks, and hears of signals.
    pub fn stop_switch(&self) -> Option<StopSwitch> {
        let stop = StopSwitch::default();
        self.stop.set(stop.clone()).is_ok().then_some(stop)
    }

    /// Whether what is under way is asked to stop.
    pub fn is_asked_to_stop(&self) -> bool {
        self.stop.get().is_some_and(StopSwitch::is_asked)
    }

    /// Waits so long from now on for another command's moment to pass.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// How long to wait for another command's moment to pass.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// The top of the worktree.
    pub fn top(&self) -> &Path {
        &self.top.path
    }

    /// The top of the worktree, open.
    pub fn opened(&self) -> &Top {
        &self.top
    }

    /// Where the command was called, relative to the top.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The git directory of this worktree.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Holds the git directory, so that its number is not used again; [`Self::is_at`] knows it by that.
    pub fn hold(&self) -> Option<std::fs::File> {
        std::fs::File::open(&self.common_dir).ok()
    }

    /// Whether the git directory is the one that is held, under the name that it had.
    pub fn is_at(&self, held: &std::fs::File) -> bool {
        let file = |about: std::fs::Metadata| (about.dev(), about.ino());
        self.common_dir.metadata().ok().map(file) == held.metadata().ok().map(file)
    }

    /// The git directory of all worktrees.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Where git looks for hooks.
    pub fn hooks(&self) -> PathBuf {
        let set = self.gix.config_snapshot().trusted_path("core.hooksPath").ok().flatten();
        set.map_or_else(|| self.common_dir.join("hooks"), |path| self.top().join(path))
    }

    /// For whom the files in the git directory are.
    pub fn sharing(&self) -> Sharing {
        *self.sharing.get_or_init(|| {
            let config = self.gix.config_snapshot();
            let value = config.plumbing().string_implicit("core.sharedRepository");
            value.map_or(Sharing::Own, |value| Sharing::of(value.as_ref().map(AsRef::as_ref)))
        })
    }

    /// The directory for locks, logs and other scratch; made when first needed.
    pub fn scratch(&self) -> Result<&Path> {
        if self.scratch.is_dir() {
            self.sharing().close(&self.scratch);
        } else {
            self.make_private(&self.scratch)?;
        }
        Ok(&self.scratch)
    }

    /// Makes a directory below that one, or below that of all worktrees.
    pub fn make_private(&self, path: &Path) -> Result<()> {
        let common = self.common_dir.join("oxundo");
        let is_own = path.starts_with(&self.scratch);
        if !is_own {
            self.sharing().close(&common);
        }
        // A repository that somebody has deleted is not made anew.
        let above = if is_own { &self.scratch } else { &common }.parent();
        above
            .map_or(Ok(()), |above| above.metadata().map(drop))
            .with_context(|| format!("make '{}'", path.display()))?;
        self.sharing().make_private(path).with_context(|| format!("make '{}'", path.display()))
    }

    /// A path below the scratch directory.
    pub fn scratch_path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// Where something is kept that was moved out of the worktree: for a linked worktree in the directory of all, since its own
    /// goes with it; there all the same, where an earlier version put it there.
    pub fn aside_path(&self, store: &str) -> PathBuf {
        let own = self.scratch.join(store);
        match self.linked_name() {
            Some(id) if own.symlink_metadata().is_err() => {
                self.common_dir.join("oxundo/worktrees").join(id).join(store)
            }
            _ => own,
        }
    }

    /// A file or directory of oxundo's that outlasts this worktree, where it is a linked one: its own goes with it.
    pub fn lasting_path(&self, name: &str) -> PathBuf {
        let lasting = |id| self.common_dir.join("oxundo/worktrees").join(id).join(name);
        self.linked_name().map_or_else(|| self.scratch_path(name), lasting)
    }

    /// The directories above a path, as far up as the git directory of all worktrees.
    pub fn above(&self, path: &Path) -> Vec<PathBuf> {
        let above = path.ancestors().skip(1).take_while(|above| above.starts_with(&self.common_dir));
        above.map(Path::to_owned).collect()
    }

    /// How this worktree is called in notes and refs: `main`, or a linked worktree's id.
    pub fn worktree_id(&self) -> String {
        self.linked_id().unwrap_or_else(|| "main".to_owned())
    }

    /// A linked worktree's id, as the names of refs are kept.
    pub fn linked_id(&self) -> Option<String> {
        self.linked_name().map(|name| lossless::encode(name.as_bytes()))
    }

    /// A linked worktree's id, as the name of a directory.
    pub fn linked_name(&self) -> Option<&OsStr> {
        let linked = self.git_dir != self.common_dir;
        self.git_dir.file_name().filter(|_| linked)
    }

    /// Says whether what oxundo relies on is flushed to the disk: unless this is called, it is.
    pub fn set_flushes(&self, flushes: bool) {
        self.power.flushes.set(flushes);
    }

    /// The kind of hash that objects are named by.
    pub fn hash_kind(&self) -> gix::hash::Kind {
        self.gix.object_hash()
    }
}
