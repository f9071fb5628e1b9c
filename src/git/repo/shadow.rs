//! Shadow repositories, for directories that are in no git repository: each is a
//! git directory elsewhere, whose worktree is the directory. Nothing is made in the
//! directory itself. To the user they are stores.
//!
//! A store is found by the directory's path. The directory's identity (its inode and
//! when it was made) shows whether that path still has the same directory, and finds
//! a directory that was moved.

use crate::error::{Code, Refusal};
use crate::git::repo::discover::searched;
use crate::git::repo::process::Git;
use crate::git::repo::refs;
use crate::git::repo::scratch::{disk_usage, remove_tree, replace};
use crate::model::bytes::shell_word;
use crate::model::timeline::Timeline;
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The record of the directory that a store is for, below its git directory.
const RECORD: &str = "oxundo/directory";

/// Directories that belong to the system; each holds much more than one project.
const SYSTEM: &str = "/Applications /Library /System /Users /Volumes /bin /boot /dev /dev/shm /etc /home /lib /lib32 /lib64 \
     /media /mnt /opt /private /private/tmp /private/var /proc /root /run /sbin /snap /srv /sys /tmp /usr /usr/bin \
     /usr/lib /usr/local /usr/share /usr/src /var /var/lib /var/log /var/tmp";

/// Where file systems are mounted, one directory each.
const MOUNTS: [&str; 4] = ["/mnt", "/media", "/run/media", "/Volumes"];

/// The store of one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowRepository {
    /// Its git directory.
    pub git_dir: PathBuf,
    /// The directory that it is for, where that was last seen.
    pub directory: PathBuf,
    identity: Option<String>,
}

/// What is known of a store without opening its directory.
#[derive(Clone, Debug)]
pub struct ShadowUse {
    /// The store.
    pub store: ShadowRepository,
    /// Whether the directory is still there.
    pub there: bool,
    /// How many turns were recorded, those included that expired.
    pub turns: u64,
    /// When the last of them was, RFC 3339.
    pub last: Option<String>,
    /// The disk space that it takes.
    pub bytes: u64,
}

impl ShadowRepository {
    /// The store of the nearest directory, this one or one above it, that has one. A directory
    /// that was moved takes its store along.
    pub fn find(directory: &Path) -> Result<Option<Self>> {
        let Some(root) = root() else { return Ok(None) };
        if let Some(store) = directory.ancestors().find_map(|directory| Self::of(&root, directory)) {
            return Ok(Some(store));
        }
        let stores = Self::in_root(&root)?;
        let moved = directory.ancestors().find_map(|directory| {
            let identity = identity_of(directory)?;
            Some((stores.iter().find(|store| store.identity.as_ref() == Some(&identity))?, directory))
        });
        moved.map(|(store, directory)| store.clone().follow(&root, directory)).transpose()
    }

    /// The store of just this directory.
    pub fn of(root: &Path, directory: &Path) -> Option<Self> {
        let store = Self::read(&root.join(name_for(directory)))?;
        (store.directory == directory && store.is_for(directory)).then_some(store)
    }

    /// Every store.
    pub fn all() -> Result<Vec<Self>> {
        root().map_or_else(|| Ok(Vec::new()), |root| Self::in_root(&root))
    }

    fn in_root(root: &Path) -> Result<Vec<Self>> {
        let entries = match std::fs::read_dir(root) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("list '{}'", root.display()))?,
        };
        let mut stores = Vec::new();
        for entry in entries {
            stores.extend(Self::read(&entry?.path()));
        }
        stores.sort_by(|a, b| (&a.directory, &a.git_dir).cmp(&(&b.directory, &b.git_dir)));
        Ok(stores)
    }

    fn read(git_dir: &Path) -> Option<Self> {
        let record = std::fs::read(git_dir.join(RECORD)).ok()?;
        let (identity, directory) = record.split_once_str("\n")?;
        let identity = identity.to_str().ok()?;
        Some(Self {
            git_dir: git_dir.to_owned(),
            directory: OsString::from_vec(directory.to_vec()).into(),
            identity: (!identity.is_empty()).then(|| identity.to_owned()),
        })
    }

    /// Whether this directory is the one that the store was made for. Where a file system does not
    /// say when a directory was made, its path has to do.
    fn is_for(&self, directory: &Path) -> bool {
        let now = identity_of(directory);
        self.identity.is_none() || now.is_none() || self.identity == now
    }

    /// Makes the store of a directory.
    pub fn make(directory: &Path) -> Result<Self> {
        let root = root().ok_or_else(|| {
            Refusal::new(Code::NotFound, "there is no place for a store: HOME is not set")
                .hint("run 'export OXUNDO_STORE=DIRECTORY' with one for oxundo's stores, then the same command again")
        })?;
        if let Some(reason) = why_not(directory, &root) {
            let directory = directory.display();
            return Err(Refusal::new(
                Code::NotFound,
                format!("'{directory}' is in no git repository, and no turn is recorded for it as it is: {reason}"),
            )
            .hint("go to the project's own directory, or give it with -C")
            .into());
        }
        if let Some(refusal) = broken_repository(directory) {
            return Err(refusal.into());
        }
        let git_dir = root.join(name_for(directory));
        if let Some(other) = Self::read(&git_dir) {
            // The store is another directory's that was here, and may only have been moved.
            std::fs::rename(&git_dir, other.aside(&root))?;
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(git_dir.join("oxundo"))?;
        let made = Git::new(&git_dir, directory, ["init", "--quiet", "--template=", "--initial-branch=main"])
            .for_oxundo()
            .env("GIT_DEFAULT_REF_FORMAT", "files")
            .run(b"");
        made.with_context(|| format!("make a store at '{}'", git_dir.display()))?;
        let store = Self { git_dir, directory: directory.to_owned(), identity: identity_of(directory) };
        store.write()?;
        Ok(store)
    }

    /// Where the store of a directory that is no longer at its path is kept.
    fn aside(&self, root: &Path) -> PathBuf {
        let mut name = name_for(&self.directory);
        name.push(format!("-{}", digest(self.identity.as_deref().unwrap_or_default().as_bytes())));
        root.join(name)
    }

    /// Makes this the store of a directory that was moved to there.
    fn follow(mut self, root: &Path, directory: &Path) -> Result<Self> {
        let _lock = self.lock()?;
        let git_dir = root.join(name_for(directory));
        if let Some(other) = Self::read(&git_dir) {
            std::fs::rename(&git_dir, other.aside(root))?;
        }
        std::fs::rename(&self.git_dir, &git_dir).with_context(|| format!("make '{}'", git_dir.display()))?;
        self.git_dir = git_dir;
        directory.clone_into(&mut self.directory);
        self.write()?;
        Ok(self)
    }

    fn write(&self) -> Result<()> {
        let worktree = [OsStr::new("config"), OsStr::new("core.worktree"), self.directory.as_os_str()];
        Git::new(&self.git_dir, &self.directory, worktree).for_oxundo().run(b"")?;
        let identity = self.identity.as_deref().unwrap_or_default().as_bytes();
        let record = [identity, b"\n", self.directory.as_os_str().as_bytes()].concat();
        // Last: with it, the store is whole.
        replace(&self.git_dir.join(RECORD), &record).context("record the directory")
    }

    /// Takes both locks of the worktree: then nothing is at work in it, not even an agent.
    fn lock(&self) -> Result<[File; 2]> {
        let take = |name: &str| {
            let path = self.git_dir.join("oxundo").join(name);
            let file = File::options().write(true).create(true).truncate(false).open(&path)?;
            match file.try_lock() {
                Ok(()) => Ok(file),
                Err(TryLockError::WouldBlock) => {
                    let directory = self.directory.display();
                    Err(Refusal::new(Code::Busy, format!("a turn is running in '{directory}'"))
                        .hint("wait until it is done, and run this again")
                        .into())
                }
                Err(TryLockError::Error(error)) => Err(error).context("lock a store"),
            }
        };
        Ok([take("lock")?, take("run")?])
    }

    /// What `oxundo gc --stores` shows of it.
    pub fn about(self) -> Result<ShadowUse> {
        let gix = gix::open(&self.git_dir).map_err(|error| anyhow::Error::msg(error.to_string()))?;
        let (mut turns, mut last) = (0, None);
        if let Some(timeline) = refs::object(&gix, "refs/oxundo/timeline".try_into()?)? {
            let commit = gix.find_commit(timeline)?;
            if let Some(state) = commit.tree()?.lookup_entry_by_path("state.json")? {
                let state: Timeline = serde_json::from_slice(&state.object()?.data).context("read a timeline")?;
                turns = state.next.saturating_sub(1);
            }
            last = Some(commit.time()?.format_or_unix(gix::date::time::format::ISO8601_STRICT));
        }
        let there = self.directory.is_dir() && self.is_for(&self.directory);
        Ok(ShadowUse { there, turns, last, bytes: disk_usage(&self.git_dir), store: self })
    }

    /// Removes it with every turn that it holds.
    pub fn remove(&self) -> Result<()> {
        let _lock = self.lock()?;
        // First: without it, what an interrupted removal leaves does not count as a store.
        std::fs::remove_file(self.git_dir.join(RECORD)).context("remove a store")?;
        remove_tree(&self.git_dir)
    }
}

/// Whether a git directory is such a store.
pub fn is_shadow_directory(git_dir: &Path) -> bool {
    git_dir.join(RECORD).is_file()
}

/// The directory of all stores.
pub fn root() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let root = given("OXUNDO_STORE")
        .or_else(|| given("XDG_STATE_HOME").map(|state| state.join("oxundo")))
        .or_else(|| given("HOME").map(|home| home.join(".local/state/oxundo")))?;
    // Paths of stores are compared with those of directories, which have no links in them.
    let root = std::path::absolute(root).ok()?;
    let there = root.ancestors().find_map(|there| Some((std::fs::canonicalize(there).ok()?, there)))?;
    Some(there.0.join(root.strip_prefix(there.1).ok()?))
}

/// The name of the store of the directory at this path.
fn name_for(directory: &Path) -> OsString {
    let mut name = directory.file_name().unwrap_or_default().to_owned();
    name.push(format!("-{}", digest(directory.as_os_str().as_bytes())));
    name
}

fn digest(bytes: &[u8]) -> String {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(bytes);
    hasher.try_finalize().map_or_else(|_| "0".to_owned(), |id| id.to_hex_with_len(16).to_string())
}

/// What distinguishes two directories at the same path; `None` where the file system does not record when
/// a directory was made, since an inode's number alone is soon used again.
fn identity_of(directory: &Path) -> Option<String> {
    let about = directory.metadata().ok()?;
    let born = about.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} {}.{:09}", about.ino(), born.as_secs(), born.subsec_nanos()))
}

/// The refusal for a directory below a `.git` that cannot be used.
pub fn broken_repository(directory: &Path) -> Option<Refusal> {
    let broken = searched(directory).find(|directory| directory.join(".git").symlink_metadata().is_ok())?;
    (device(broken) == device(directory)).then(|| {
        let message = format!("there is a '.git' in '{}' that is no repository", broken.display());
        let word = shell_word(broken.join(".git").as_os_str().as_bytes());
        Refusal::new(Code::NotFound, message)
            .hint("run 'git status' to see what git says of it, and mend it")
            .hint(format!("or run 'mv {word} {word}.aside' to do without it, then the same command again"))
    })
}

/// Why no turns are recorded for a directory as a whole.
fn why_not(directory: &Path, root: &Path) -> Option<String> {
    let canonical = |path: PathBuf| std::fs::canonicalize(path).ok();
    let mount = |mounts: &&str| directory.starts_with(mounts) && is_mount_point(directory);
    let reason = if let Some(reason) = why_no_project(directory) {
        reason
    } else if canonical(std::env::temp_dir()).as_deref() == Some(directory) {
        "it is the directory for temporary files"
    } else if MOUNTS.iter().any(mount) {
        "it is the root of a file system"
    } else if root.starts_with(directory) {
        "oxundo's own stores are in it"
    } else if directory.starts_with(root) {
        "it belongs to oxundo"
    } else {
        return None;
    };
    Some(reason.to_owned())
}

/// Why a directory is more than one project: it is the user's home, or the system's.
pub fn why_no_project(directory: &Path) -> Option<&'static str> {
    let home = std::env::var_os("HOME").and_then(|home| std::fs::canonicalize(home).ok());
    if directory.parent().is_none() {
        Some("it is the root of the file system")
    } else if home.as_deref() == Some(directory) {
        Some("it is your home directory")
    } else if home.is_some_and(|home| home.starts_with(directory)) {
        Some("your home directory is in it")
    } else {
        let is_system = SYSTEM.split_whitespace().any(|system| Path::new(system) == directory);
        is_system.then_some("it is a directory of the system")
    }
}

fn device(path: &Path) -> Option<u64> {
    path.metadata().map(|about| about.dev()).ok()
}

fn is_mount_point(directory: &Path) -> bool {
    directory.parent().is_some_and(|parent| device(parent) != device(directory))
}
