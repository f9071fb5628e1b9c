//! Locks on refs: taking them, and removing those that a killed oxundo is proven to have left.

use crate::error::{Code, Refusal};
use crate::git::refs::lists::COPY;
use crate::git::refs::{NOTES, OwnRef, Refs, STASH, full_name};
use crate::git::repo::scratch::remove_if_there;
use crate::git::repo::told::LIST;
use crate::model::bytes::{lossless, shell_word};
use crate::model::checkpoint::short_branch;
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;
use gix::lock::acquire::resolve_symlink;
use gix::refs::FullName;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file in the scratch directory that names the refs being locked.
const MARK: &str = "refs.mark";

/// A ref's file in the making, in the scratch directory.
const NEW: &str = "refs.new";

/// A lock in the making, in the scratch directory, where there are no hard links.
const DIRECTORY: &str = "refs.lock";

/// How the file of the packed refs is called.
pub const PACKED: &str = "packed-refs";

/// How making a lock fails where somebody has it.
const TAKEN: ErrorKind = ErrorKind::AlreadyExists;

/// How long somebody's lock is waited for where git's own keys do not say it. git waits for 100 ms, in which a housekeeping of its
/// own on a busy machine is not over, and what it refuses then is soon done again; an undo is not.
const UNLESS_SET: Duration = Duration::from_millis(1500);

/// While a lock is younger than this, whoever made it may be at work still, on a machine that has much else to do: it is waited for longer,
const YOUNG: Duration = Duration::from_secs(5);

/// but no longer than this, however many have it one after the other.
const MOST: Duration = Duration::from_secs(15);

/// How often the directory of a lock may be gone again.
const TRIES: u32 = 10;

/// How long to sleep between two looks at somebody's lock.
const PAUSE: Duration = Duration::from_millis(5);

/// A lock older than this is reported by `oxundo doctor` as left behind.
const ANY_GIT_AT_MOST: Duration = Duration::from_secs(60);

impl Refs<'_> {
    /// Lock files of git's that are so old that no running command should hold them.
    pub fn stale_locks(&self) -> Vec<PathBuf> {
        let branch = self.head().ok().and_then(|head| head.branch);
        let own = [OwnRef::Timeline, OwnRef::Pending].map(|own| self.own_ref(own));
        let shared = [NOTES, STASH, PACKED, "config"].map(str::to_owned);
        let locks = own.into_iter().chain(branch).chain(shared).chain(["HEAD".to_owned()]).chain(self.table_lists());
        let locks = locks.map(|name| self.ref_lock(&name)).chain([self.repo.git_dir.join("index.lock")]);
        let old = |lock: &PathBuf| {
            let made = lock.symlink_metadata().and_then(|about| about.modified());
            made.is_ok_and(|made| made.elapsed().unwrap_or_default() > ANY_GIT_AT_MOST)
        };
        locks.filter(old).collect()
    }

    /// The file that holds a ref.
    pub fn ref_file(&self, name: &str) -> PathBuf {
        let directory = if name == "HEAD" { &self.repo.git_dir } else { &self.repo.common_dir };
        let file = directory.join(OsStr::from_bytes(&lossless::decode(name)));
        // As git, which follows a link there, and nowhere else.
        if name == PACKED { resolve_symlink(&file) } else { file }
    }

    /// Whether a file says more than where one ref is, so that no log has all of it: without HEAD git finds no repository,
    /// the packed refs are many, and a reflog is all that a ref has been.
    fn is_for_many(&self, path: &Path) -> bool {
        self.table_lists().iter().any(|list| self.ref_file(list) == path)
            || path.starts_with(self.repo.common_dir.join("logs"))
            || [self.ref_file("HEAD"), self.ref_file(PACKED)].iter().any(|file| file == path)
    }

    fn ref_lock(&self, name: &str) -> PathBuf {
        let mut lock = self.ref_file(name).into_os_string();
        lock.push(".lock");
        lock.into()
    }

    /// Whether a command may have left locks on refs.
    pub fn has_marked_locks(&self) -> bool {
        self.repo.scratch_path(MARK).symlink_metadata().is_ok()
    }

    /// Removes the locks that a killed oxundo left on refs, which are those with the content of its mark: whatever else is
    /// there is somebody's who may be alive. To be called with the worktree's lock held.
    pub fn clear_marked_locks(&self) -> Result<()> {
        let mark = self.repo.scratch_path(MARK);
        let content = match std::fs::read(&mark) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read.with_context(|| format!("read '{}'", mark.display()))?,
        };
        // Behind the line that says whose it is.
        for name in content.to_str_lossy().lines().skip(1).filter(|name| *name == PACKED || full_name(name).is_ok()) {
            let lock = self.ref_lock(name);
            if is_marked(&lock, &content) {
                release(&lock).with_context(|| format!("remove '{}'", lock.display()))?;
            }
        }
        for left in [NEW, DIRECTORY, COPY] {
            let left = self.repo.scratch_path(left);
            let _ = std::fs::remove_file(&left).or_else(|_| std::fs::remove_dir_all(&left));
        }
        remove_if_there(&mark)
    }
}

/// Locks on refs, held together. They have a mark's content, in which it is written whose they are, so that the next
/// command recognises those that a kill leaves; git's are never like it. Dropped, all are released.
pub struct RefLocks<'r> {
    refs: Refs<'r>,
    mark: PathBuf,
    held: Vec<PathBuf>,
}

impl<'r> RefLocks<'r> {
    /// Is to lock some of these refs. The caller holds the worktree's lock, or the one on the notes.
    pub fn begin(refs: Refs<'r>, names: &[&str]) -> Result<Self> {
        // A failure may have left it; and it must not be written into, since a lock may be another name of it.
        refs.clear_marked_locks()?;
        let mark = refs.repo.scratch()?.join(MARK);
        let whose = format!("oxundo's, of {}, process {}", refs.repo.worktree_id(), std::process::id());
        let content = [&[whose.as_str()], names].concat().join("\n");
        let made = File::create_new(&mark).and_then(|mut file| file.write_all(content.as_bytes()));
        let locks = Self { refs, mark, held: Vec::new() };
        made.with_context(|| format!("write '{}'", locks.mark.display()))?;
        Ok(locks)
    }

    /// Locks a ref; waits while somebody else has it.
    pub fn take(&mut self, name: &str) -> Result<()> {
        let lock = self.refs.ref_lock(name);
        let (begun, patience) = (Instant::now(), self.patience(name));
        let is_over = || match patience {
            Some(patience) => begun.elapsed() >= patience,
            None => begun.elapsed() >= UNLESS_SET && (begun.elapsed() >= MOST || !is_young(&lock)),
        };
        let mut tries = 0..TRIES;
        loop {
            match self.make(&lock) {
                Ok(()) => break,
                Err(error) if error.kind() == TAKEN => {
                    if is_over() {
                        return Err(locked_error(&lock, &format!("'{}'", short_branch(name))));
                    }
                    std::thread::sleep(PAUSE);
                }
                // More than once: git removes directories that it leaves empty.
                Err(error) if error.kind() == ErrorKind::NotFound && tries.next().is_some() => {
                    let sharing = self.refs.repo.sharing();
                    let directory = lock.parent().map_or(Ok(()), |above| sharing.make_directories(above));
                    directory.with_context(|| format!("make the directory of '{}'", lock.display()))?;
                }
                Err(error) => return Err(error).with_context(|| format!("make '{}'", lock.display())),
            }
        }
        self.held.push(lock);
        Ok(())
    }

    /// Locks all of these, or none: somebody who has one of them is not waited for.
    pub fn take_all(&mut self, names: &[String]) {
        let begun = self.held.len();
        for name in names {
            let lock = self.refs.ref_lock(name);
            if self.make(&lock).is_err() {
                self.held.drain(begun..).for_each(|lock| drop(release(&lock)));
                return;
            }
            self.held.push(lock);
        }
    }

    /// Whether the lock of this file is held.
    pub fn has(&self, file: &Path) -> bool {
        let mut lock = file.as_os_str().to_owned();
        lock.push(".lock");
        self.held.contains(&PathBuf::from(lock))
    }

    /// Makes a lock in one step, complete from the start: it is another name of the mark. File systems without hard links
    /// say so in many ways; there it is a directory with the mark's content in it, which keeps git away as well.
    fn make(&self, lock: &Path) -> std::io::Result<()> {
        match std::fs::hard_link(&self.mark, lock) {
            Err(error) if ![TAKEN, ErrorKind::NotFound].contains(&error.kind()) => self.make_directory(lock),
            made => made,
        }
    }

    fn make_directory(&self, lock: &Path) -> std::io::Result<()> {
        let directory = self.refs.repo.scratch_path(DIRECTORY);
        std::fs::create_dir_all(&directory)?;
        std::fs::copy(&self.mark, directory.join(MARK))?;
        // It takes no file's place, nor that of a directory with something in it.
        std::fs::rename(&directory, lock).map_err(|error| {
            // The next try may find that there are hard links.
            let _ = std::fs::remove_dir_all(&directory);
            match error.kind() {
                ErrorKind::NotADirectory | ErrorKind::DirectoryNotEmpty => TAKEN.into(),
                _ => error,
            }
        })
    }

    /// How long a lock is waited for, where the user says so.
    fn patience(&self, name: &str) -> Option<Duration> {
        let key = match name {
            PACKED => "core.packedRefsTimeout",
            _ if name.ends_with(LIST) => "reftable.lockTimeout",
            _ => "core.filesRefLockTimeout",
        };
        let set = self.refs.repo.gix.config_snapshot().integer(key)?;
        // Less than nothing is for ever.
        Some(Duration::from_millis(set.try_into().unwrap_or(u64::MAX)))
    }

    /// Puts a link to a ref's name in the place of a file whose lock is held.
    pub fn link(&self, path: &Path, target: &FullName) -> Result<()> {
        let new = self.refs.repo.scratch_path(NEW);
        remove_if_there(&new)?;
        let made = std::os::unix::fs::symlink(OsStr::from_bytes(target.as_bstr()), &new);
        made.and_then(|()| std::fs::rename(&new, path)).with_context(|| format!("write '{}'", path.display()))
    }

    /// Puts a file with this content in the place of one whose lock is held.
    pub fn put(&self, path: &Path, content: &[u8]) -> Result<()> {
        let new = self.refs.repo.scratch_path(NEW);
        let put = || {
            let mut file = File::create(&new)?;
            file.write_all(content)?;
            self.refs.repo.sharing().share(&new)?;
            if self.refs.is_for_many(path) && self.refs.repo.power.flushes.get() {
                file.sync_all()?;
            }
            match std::fs::rename(&new, path) {
                // git leaves directories empty where there were refs below this name.
                Err(error) if error.kind() == ErrorKind::IsADirectory => {
                    remove_empty(path)?;
                    std::fs::rename(&new, path)
                }
                renamed => renamed,
            }
        };
        put().inspect_err(|_| drop(remove_if_there(&new))).with_context(|| format!("write '{}'", path.display()))
    }
}

impl Drop for RefLocks<'_> {
    fn drop(&mut self) {
        let refs = self.refs.repo.common_dir.join("refs");
        // The mark tells the next command that a lock that could not be removed is ours.
        let mut all = true;
        for lock in &self.held {
            all &= release(lock).is_ok();
            remove_empty_above(lock, &refs);
        }
        if all {
            let _ = std::fs::remove_file(&self.mark);
        }
    }
}

/// Removes a directory in which there are only directories, and no file in any of them.
pub fn remove_empty(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        remove_empty(&entry?.path())?;
    }
    std::fs::remove_dir(directory)
}

/// Removes the directories above a file that have become empty, as far up as this one, which stays.
pub fn remove_empty_above(file: &Path, boundary: &Path) {
    let above = file.ancestors().skip(1).take_while(|at| *at != boundary && at.starts_with(boundary));
    let _ = above.map(std::fs::remove_dir).take_while(Result::is_ok).count();
}

/// Removes a lock of oxundo's: a file, or a directory with one in it.
fn release(lock: &Path) -> std::io::Result<()> {
    if !lock.symlink_metadata()?.is_dir() {
        return std::fs::remove_file(lock);
    }
    // A kill may have removed it. Where it cannot be removed, the directory cannot either.
    let _ = std::fs::remove_file(lock.join(MARK));
    std::fs::remove_dir(lock)
}

/// Whether a lock was made so lately that whoever made it may still be at work.
fn is_young(lock: &Path) -> bool {
    let made = lock.symlink_metadata().and_then(|about| about.modified());
    // One that has just gone is tried again; of a clock that was set back nothing is known.
    made.map_or(true, |made| made.elapsed().is_ok_and(|age| age < YOUNG))
}

/// Whether this lock is one that the mark with this content tells of.
fn is_marked(lock: &Path, content: &[u8]) -> bool {
    let Ok(about) = lock.symlink_metadata() else { return false };
    let file = if about.is_dir() { lock.join(MARK) } else { lock.to_owned() };
    let fits = file.symlink_metadata().is_ok_and(|about| about.is_file() && about.len() == content.len() as u64);
    // A kill may have removed what was in the directory.
    let emptied = about.is_dir() && std::fs::read_dir(lock).is_ok_and(|mut entries| entries.next().is_none());
    emptied || fits && std::fs::read(file).is_ok_and(|held| held == content)
}

/// The refusal where git has a lock file of its own on `what`.
pub fn locked_error(lock: &Path, what: &str) -> anyhow::Error {
    let (lock, word) = (lock.display(), shell_word(lock.as_os_str().as_bytes()));
    Refusal::new(Code::Locked, format!("'{lock}' exists: git holds {what}"))
        .hint("wait for the git command that is running, then run this again")
        .hint(format!("if none is running, a crashed one left it: run 'rm {word}', then the same command again"))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use std::time::SystemTime;

    /// The locks there are.
    fn locks(f: &Fixture) -> Vec<&'static str> {
        ["HEAD.lock", "packed-refs.lock", "refs/heads/main.lock"]
            .into_iter()
            .filter(|lock| f.repo.git_dir().join(lock).symlink_metadata().is_ok())
            .collect()
    }

    #[test]
    fn a_lock_is_waited_for_as_long_as_git_is_told_to_or_longer_than_it_would() {
        let waits = |f: &Fixture, name| {
            let mut held = RefLocks::begin(Refs::new(&f.repo), &[name]).expect("begin");
            held.take(name).expect("lock it");
            held.patience(name)
        };
        let f = Fixture::new();
        assert_eq!((waits(&f, "HEAD"), waits(&f, PACKED)), (None, None));
        let f = Fixture::with(&["core.filesRefLockTimeout=70", "core.packedRefsTimeout=-1"]);
        assert_eq!(waits(&f, "HEAD"), Some(Duration::from_millis(70)));
        assert!(waits(&f, PACKED) > Some(Duration::from_secs(1 << 30)), "for ever");
    }

    #[test]
    fn a_lock_that_may_be_of_somebody_at_work_is_waited_for_longer() {
        let f = Fixture::new();
        f.commit("a", "one");
        let refs = Refs::new(&f.repo);
        let lock = refs.ref_lock("refs/heads/main");
        let made = File::create_new(&lock).expect("a lock of another's");
        assert!(is_young(&lock), "it is at work");
        let minute = Duration::from_secs(60);
        for then in [SystemTime::now() - minute, SystemTime::now() + minute] {
            made.set_modified(then).expect("set its time");
            assert!(!is_young(&lock), "it has crashed, or the clock was set");
        }
        let mut held = RefLocks::begin(refs, &["refs/heads/main"]).expect("begin");
        assert!(held.take("refs/heads/main").is_err(), "it is not waited for without end");
        made.set_modified(SystemTime::now()).expect("set its time");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Longer than the lock of a crashed one is waited for.
                std::thread::sleep(UNLESS_SET + UNLESS_SET / 2);
                std::fs::remove_file(&lock).expect("it is done");
            });
            held.take("refs/heads/main").expect("it was waited for");
        });
    }

    #[test]
    fn the_locks_of_the_dead_go_and_those_of_the_living_stay() {
        let f = Fixture::new();
        f.commit("a", "one");
        let refs = Refs::new(&f.repo);
        let mut held = RefLocks::begin(refs, &["HEAD", "refs/heads/main", PACKED]).expect("begin");
        held.take("HEAD").expect("lock HEAD");
        held.take("refs/heads/main").expect("lock a branch");
        assert!(!f.git_agrees(&["commit", "-q", "--allow-empty", "-m", "no"]), "git respects them");
        std::mem::forget(held);
        let packed = f.repo.git_dir().join("packed-refs.lock");
        std::fs::write(&packed, "oxundo's, of main, process 1\n").expect("somebody has it");
        assert!(refs.has_marked_locks());
        refs.clear_marked_locks().expect("clear them");
        assert_eq!(locks(&f), ["packed-refs.lock"], "what is not the mark's is somebody else's");
        assert!(!refs.has_marked_locks(), "no trace is left");
        refs.clear_marked_locks().expect("there is nothing left to do");
    }

    #[test]
    fn a_lock_of_another_worktrees_oxundo_stays() {
        let f = Fixture::new();
        f.commit("a", "one");
        let other = f.outside().join("other");
        f.git(&["worktree", "add", "-q", other.to_str().expect("a plain path")]);
        let linked = crate::git::repo::Repo::open(&other).expect("open the repository");
        let mut theirs = RefLocks::begin(Refs::new(&linked), &["refs/heads/main"]).expect("begin");
        theirs.take("refs/heads/main").expect("lock a branch");
        std::mem::forget(RefLocks::begin(Refs::new(&f.repo), &["refs/heads/main"]).expect("begin"));
        Refs::new(&f.repo).clear_marked_locks().expect("clear them");
        assert_eq!(locks(&f), ["refs/heads/main.lock"]);
        drop(theirs);
        assert_eq!(locks(&f), [""; 0]);
    }

    #[test]
    fn where_there_are_no_links_a_lock_is_a_directory_with_the_mark_in_it() {
        let f = Fixture::new();
        f.commit("a", "one");
        let refs = Refs::new(&f.repo);
        let held = RefLocks::begin(refs, &["HEAD", "refs/heads/main"]).expect("begin");
        let lock = |name: &str| f.repo.git_dir().join(format!("{name}.lock"));
        for name in ["HEAD", "refs/heads/main"] {
            held.make_directory(&lock(name)).expect("make a lock");
            assert_eq!(held.make_directory(&lock(name)).expect_err("it is taken").kind(), TAKEN);
        }
        assert!(!f.git_agrees(&["commit", "-q", "--allow-empty", "-m", "no"]), "git respects them");
        std::mem::forget(held);
        // A kill in the middle of a release.
        std::fs::remove_file(lock("HEAD").join(MARK)).expect("remove a file");
        refs.clear_marked_locks().expect("clear them");
        assert_eq!(locks(&f), [""; 0]);
        let held = RefLocks::begin(refs, &["HEAD"]).expect("begin");
        std::fs::write(lock("HEAD"), "").expect("git has it");
        assert_eq!(held.make_directory(&lock("HEAD")).expect_err("it is taken").kind(), TAKEN);
        drop(held);
        refs.clear_marked_locks().expect("nothing is marked");
        assert_eq!(locks(&f), ["HEAD.lock"]);
    }

    #[test]
    fn a_lock_that_could_not_be_made_leaves_nothing() {
        let f = Fixture::new();
        let name = "refs/none/x";
        let locks = RefLocks::begin(Refs::new(&f.repo), &[name]).expect("make a mark");
        locks.make_directory(&f.repo.git_dir().join("refs/none/x.lock")).expect_err("its directory is not there");
        assert!(!f.repo.scratch_path(DIRECTORY).exists());
    }
}
