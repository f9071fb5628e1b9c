//! The git layer: the only place with gix handles, and the only door to the
//! `git` binary. It reads the present, keeps checkpoints and the timeline, and
//! carries plans out. It decides nothing.

pub mod apply;
pub mod capture;
pub mod commit;
pub mod delta;
pub mod facts;
pub mod faults;
pub mod health;
pub mod identity;
pub mod ignore;
pub mod index;
pub mod known;
pub mod lock;
pub mod merge;
pub mod monitor;
pub mod notes;
pub mod others;
pub mod platform;
pub mod private;
pub mod process;
pub mod published;
pub mod refs;
pub mod scan;
pub mod select;
pub mod setup;
pub mod space;
pub mod sparse;
pub mod stat;
pub mod store;
pub mod time;
pub mod turn_work;
pub mod worktree;

use crate::error::{Code, Refusal};
use crate::model::progress::{Progress, Watch};
use anyhow::{Context, Result};
use gix::bstr::BString;
use process::Git;
use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worktree::Worktree;

/// A git repository with its worktree, as oxundo works on it.
#[derive(Debug)]
pub struct Repo {
    gix: gix::Repository,
    worktree: Worktree,
    git_dir: PathBuf,
    common_dir: PathBuf,
    scratch: PathBuf,
    prefix: PathBuf,
    from_environment: bool,
    /// The index as it was last read.
    index: RefCell<Option<(index::Stamp, Arc<gix::index::File>)>>,
    watch: Watch,
}

impl Repo {
    /// Has what is going on told from now on.
    pub fn watched_by(&mut self, watch: Watch) {
        self.watch = watch;
    }

    /// Finds and opens the repository that `directory` is in, or the one that `GIT_DIR` names
    /// when `directory` is in its worktree, or oxundo's own store for the directory.
    ///
    /// # Errors
    ///
    /// A refusal `not_found` where there is none, where it has no worktree, or where it
    /// cannot be read, and `io` for one that belongs to another user.
    pub fn open(directory: &Path) -> Result<Self> {
        Self::open_existing(directory)?.ok_or_else(|| {
            let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
            if let Some(refusal) = private::broken_repository(&directory) {
                return refusal.into();
            }
            let message = format!("'{}' is in no git repository, and no turn is recorded for it", directory.display());
            Refusal::new(Code::NotFound, message)
                .hint("run 'oxundo run -- COMMAND' to record a turn, or give another directory with -C")
                .hint("run 'oxundo gc --stores' to see the directories that have turns")
                .into()
        })
    }

    fn open_existing(directory: &Path) -> Result<Option<Self>> {
        let directory = process::absolute(directory)?;
        if let Some(repo) = Self::open_from_environment(&directory)? {
            return Ok(Some(repo));
        }
        let Ok(found) = gix::discover::upwards(&directory) else {
            let store = private::Store::find(&directory)?;
            return store.map(|store| Self::open_store(&store, &directory)).transpose();
        };
        let (path, top) = found.0.into_repository_and_work_tree_directories();
        let mut gix = open_gix(&path)?;
        if std::env::var_os("GIT_WORK_TREE").is_some() {
            // It belongs to a GIT_DIR that is not meant here.
            gix.set_workdir(top)?;
        }
        Self::new(gix, &directory, false).map(Some)
    }

    fn open_store(store: &private::Store, directory: &Path) -> Result<Self> {
        let mut gix = open_gix(&store.git_dir)?;
        gix.set_workdir(store.directory.clone())?;
        Self::new(gix, &process::absolute(directory)?, false)
    }

    /// A hook or an alias may have left `GIT_DIR` behind; it counts only where it fits.
    fn open_from_environment(directory: &Path) -> Result<Option<Self>> {
        let Some(git_dir) = std::env::var_os("GIT_DIR").filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let Ok(git_dir) = process::absolute(&directory.join(git_dir)) else {
            return Ok(None);
        };
        let Ok(mut gix) = open_gix(&git_dir) else {
            return Ok(None);
        };
        let given = std::env::var_os("GIT_WORK_TREE").filter(|value| !value.is_empty());
        if let Some(given) = given {
            gix.set_workdir(process::absolute(&directory.join(given))?)?;
        }
        let fits = match gix.workdir() {
            Some(top) => directory.starts_with(process::absolute(top)?),
            None => false,
        };
        if !fits {
            return Ok(None);
        }
        Self::new(gix, directory, true).map(Some)
    }

    fn new(mut gix: gix::Repository, directory: &Path, from_environment: bool) -> Result<Self> {
        check_format(&gix)?;
        let Some(top) = gix.workdir() else {
            return Err(Refusal::new(Code::NotFound, "this repository is bare: it has no worktree")
                .hint("run oxundo in a worktree; 'git worktree add' makes one")
                .into());
        };
        let top = process::absolute(top)?;
        let git_dirs = [process::absolute(gix.git_dir())?, process::absolute(gix.common_dir())?];
        if git_dirs.iter().any(|git_dir| directory.starts_with(git_dir) && !top.starts_with(git_dir)) {
            return Err(Refusal::new(Code::NotFound, format!("'{}' is in a git directory", directory.display()))
                .hint(format!("run oxundo in the worktree, '{}'", top.display()))
                .into());
        }
        let [git_dir, common_dir] = git_dirs;
        let prefix = directory.strip_prefix(&top).map(Path::to_owned).unwrap_or_default();
        gix.object_cache_size_if_unset(4 * 1024 * 1024);
        Ok(Self {
            worktree: Worktree::open(&top)?,
            scratch: git_dir.join("oxundo"),
            git_dir,
            common_dir,
            prefix,
            gix,
            from_environment,
            index: RefCell::default(),
            watch: Watch::default(),
        })
    }

    /// The top of the worktree.
    pub fn top(&self) -> &Path {
        self.worktree.path()
    }

    /// Where the command was called, relative to the top.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Whether nothing but `GIT_DIR` leads here.
    pub fn only_by_environment(&self) -> bool {
        self.from_environment && !self.is_private() && gix::discover::upwards(self.top()).is_err()
    }

    /// Whether this is oxundo's own store for a directory without a repository.
    pub fn is_private(&self) -> bool {
        private::is_store(&self.git_dir)
    }

    /// The git directory of this worktree.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The directory for locks, logs and other scratch; made when first needed.
    ///
    /// # Errors
    ///
    /// When it cannot be made.
    pub fn scratch(&self) -> Result<&Path> {
        std::fs::create_dir_all(&self.scratch).with_context(|| format!("make '{}'", self.scratch.display()))?;
        Ok(&self.scratch)
    }

    /// A path below the scratch directory.
    pub fn scratch_path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// How this worktree is called in notes and refs: `main`, or a linked worktree's id.
    pub fn worktree_id(&self) -> String {
        self.linked_id().unwrap_or_else(|| "main".to_owned())
    }

    fn linked_id(&self) -> Option<String> {
        let linked = self.git_dir != self.common_dir;
        let name = self.git_dir.file_name()?;
        linked.then(|| name.to_string_lossy().into_owned())
    }

    /// A git command in this repository.
    pub fn git<I, S>(&self, args: I) -> Git
    where
        I: IntoIterator<Item = S>,
        S: AsRef<OsStr>,
    {
        let git = Git::new(&self.git_dir, self.top(), args);
        self.watch.tell(Progress::Runs(git.line()));
        git
    }

    /// The last value of a configuration key, whatever its scope.
    pub fn setting(&self, key: &str) -> Option<BString> {
        self.gix.config_snapshot().string(key)
    }

    /// The value of a configuration key that the user has for all repositories.
    pub fn setting_of_user(key: &str) -> Option<BString> {
        let config = gix::config::File::from_globals().ok()?;
        config.string(key)
    }

    /// All values of a configuration key.
    pub fn settings(&self, key: &str) -> Vec<BString> {
        let snapshot = self.gix.config_snapshot();
        let values = snapshot.plumbing().strings(key).unwrap_or_default();
        values.into_iter().collect()
    }

    /// The operation that git is in the middle of, in git's words.
    pub fn in_progress(&self) -> Option<&'static str> {
        use gix::state::InProgress as P;
        self.gix.state().map(|state| match state {
            P::ApplyMailbox => "am",
            P::ApplyMailboxRebase | P::Rebase | P::RebaseInteractive => "rebase",
            P::Bisect => "bisect",
            P::CherryPick | P::CherryPickSequence => "cherry-pick",
            P::Merge => "merge",
            P::Revert | P::RevertSequence => "revert",
        })
    }

    fn hash_kind(&self) -> gix::hash::Kind {
        self.gix.object_hash()
    }

    fn empty_tree(&self) -> gix::ObjectId {
        gix::ObjectId::empty_tree(self.hash_kind())
    }

    fn write_empty_tree(&self) -> Result<gix::ObjectId> {
        Ok(self.gix.write_object(gix::objs::Tree::empty())?.detach())
    }
}

fn open_gix(path: &Path) -> Result<gix::Repository> {
    let mut permissions = gix::open::Permissions::default();
    permissions.config.git_binary = true;
    // A hook may run with an object directory of its own.
    permissions.env.objects = gix::sec::Permission::Deny;
    let mut options = gix::open::Options::default().permissions(permissions).bail_if_untrusted(true);
    if let Ok(parameters) = std::env::var("GIT_CONFIG_PARAMETERS") {
        options = options.cli_overrides(process::config_parameters(&parameters));
    }
    gix::open_opts(path, options).map_err(|error| not_opened(path, &error.to_string()))
}

fn not_opened(path: &Path, error: &str) -> anyhow::Error {
    let refusal = Refusal::new(Code::Io, format!("the repository at '{}' cannot be opened: {error}", path.display()));
    if error.contains("unsafe") {
        let directory = path.parent().filter(|_| path.ends_with(".git")).unwrap_or(path).display();
        let hint = format!("if you trust it, run 'git config --global --add safe.directory {directory}'");
        return refusal.hint(hint).into();
    }
    refusal.hint("run 'git status' to see what git says of it").into()
}

/// Refuses what gix cannot read, before anything is recorded.
fn check_format(gix: &gix::Repository) -> Result<()> {
    let format = gix.config_snapshot().string("extensions.refStorage").map(|value| value.to_string());
    if format.as_deref().is_some_and(|format| format != "files") {
        return Err(Refusal::new(
            Code::NotFound,
            "this repository keeps its refs in the reftable format, which oxundo cannot read yet",
        )
        .hint("run 'git refs migrate --ref-format=files' to convert it")
        .into());
    }
    Ok(())
}
