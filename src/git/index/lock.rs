//! `index.lock`: the index is written on a copy while it is held, and the copy is renamed over the index.

use crate::git::index::Index;
use crate::git::index::checksum::write_index;
use crate::git::refs::lockfile::locked_error;
use crate::git::repo::process::{Git, Waiting};
use crate::git::repo::scratch::remove_if_there;
use crate::git::repo::threads::start;
use crate::git::repo::{Repo, Stamp};
use anyhow::{Context, Result};
use gix::bstr::BString;
use gix::index::File as IndexFile;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often a lock of git's is looked at.
const PAUSE: Duration = Duration::from_millis(25);

/// An index of so many entries takes longer to copy than a thread to start.
const LARGE: usize = if cfg!(test) { 2 } else { 4096 };

/// The directory of stand-in files that `git add -N` is shown as its worktree, in the scratch directory.
pub const STAND_IN: &str = "stand-in";

/// How the names of the index's copies begin. They are in the index's own directory, where a split index finds
/// its shared half.
const COPY: &str = "index.oxundo-";

/// git's index, locked, with a copy to work on. Dropping it leaves the index as it was.
#[derive(Debug)]
pub struct IndexLock<'repo> {
    pub repo: &'repo Repo,
    index: PathBuf,
    lock: PathBuf,
    mark: PathBuf,
    copy: PathBuf,
    pub stager: RefCell<Option<Stager>>,
    /// The copy as it was last read or written by oxundo, while no git has written it since.
    known: RefCell<Option<Arc<IndexFile>>>,
    /// What is to be written, as it is begun: the same as this one.
    draft: RefCell<Option<(Arc<IndexFile>, JoinHandle<IndexFile>)>>,
    /// Whether whoever holds it makes the index durable, when all is done.
    is_flushed_later: Cell<bool>,
}

/// A started git command that waits on stdin for the paths to stage.
#[derive(Debug)]
pub struct Stager {
    pub git: Waiting,
    /// The paths whose entries it sets without looking at the worktree.
    pub given: BTreeSet<BString>,
}

impl Drop for IndexLock<'_> {
    fn drop(&mut self) {
        self.stager.take();
        // Nothing can be done about a failure here; the next command clears them.
        let _ = std::fs::remove_file(&self.copy);
        let _ = std::fs::remove_file(lock_path(&self.copy));
        let _ = std::fs::remove_dir_all(self.repo.scratch_path(STAND_IN));
        // Twice where it has to be: git would be kept out until then. The mark tells the next command that the lock is ours.
        let released = release(&self.lock).or_else(|_| release(&self.lock));
        let _ = released.and_then(|()| std::fs::remove_file(&self.mark));
    }
}

impl<'r> Index<'r> {
    /// Takes `index.lock` and makes a copy of the index to work on.
    pub fn lock_index(&self, wait: Duration) -> Result<IndexLock<'r>> {
        let index = self.index_path();
        let lock = lock_path(&index);
        let scratch = self.repo.scratch()?;
        // Each process has a copy of its own: a git that outlives its killed oxundo never writes to another's.
        let (mark, copy) =
            (scratch.join("index.mark"), self.repo.git_dir.join(format!("{COPY}{}", std::process::id())));
        let write_mark = || std::fs::write(&mark, OWN).with_context(|| format!("make '{}'", mark.display()));
        write_mark()?;
        let started = Instant::now();
        while let Err(error) = mark_as_lock(&mark, &lock) {
            match error.kind() {
                ErrorKind::AlreadyExists => wait_for_lock(&lock, started, wait)?,
                // Whoever had the lock has taken the mark along.
                ErrorKind::NotFound => write_mark()?,
                _ => return Err(error).with_context(|| format!("make '{}'", lock.display())),
            }
        }
        let held = IndexLock {
            repo: self.repo,
            index,
            lock,
            mark,
            copy,
            stager: RefCell::default(),
            known: RefCell::default(),
            draft: RefCell::default(),
            is_flushed_later: Cell::default(),
        };
        held.start_copy()?;
        Ok(held)
    }

    /// Whether something holds the index now.
    pub fn index_is_locked(&self) -> bool {
        lock_path(&self.index_path()).symlink_metadata().is_ok()
    }

    /// Waits a moment for the index to be free.
    pub fn check_index_is_free(&self, wait: Duration) -> Result<()> {
        let lock = lock_path(&self.index_path());
        let started = Instant::now();
        while self.index_is_locked() {
            wait_for_lock(&lock, started, wait)?;
        }
        Ok(())
    }

    /// Removes an `index.lock` that an oxundo which was killed left behind. To be called with
    /// the worktree's lock held.
    pub fn clear_own_index_lock(&self) -> Result<()> {
        let mark = self.repo.scratch()?.join("index.mark");
        let lock = lock_path(&self.index_path());
        if !mark.exists() {
            return Ok(());
        }
        // The process that made it is gone: this one holds the worktree's lock.
        if is_own(&lock) || is_first_releases(&lock, &mark) {
            release(&lock).with_context(|| format!("remove '{}'", lock.display()))?;
        }
        // The copies, the lock files that a killed git left beside them, and the stand-ins.
        for entry in std::fs::read_dir(&self.repo.git_dir)?.flatten() {
            if entry.file_name().as_bytes().starts_with(COPY.as_bytes()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        let _ = std::fs::remove_dir_all(self.repo.scratch_path(STAND_IN));
        // Last: while it is there, the next command knows that there is something to clean up.
        std::fs::remove_file(&mark).with_context(|| format!("remove '{}'", mark.display()))
    }
}

impl IndexLock<'_> {
    fn start_copy(&self) -> Result<()> {
        let _ = std::fs::remove_file(&self.copy);
        let _ = std::fs::remove_file(lock_path(&self.copy));
        // git never writes into an index, it replaces the file: a hard link serves as a copy.
        match self.index.symlink_metadata() {
            Ok(about) if about.is_file() && std::fs::hard_link(&self.index, &self.copy).is_ok() => Ok(()),
            Ok(_) if self.index.exists() => copy_index(&self.index, &self.copy),
            _ => Ok(()),
        }
    }

    /// The copy as it is now.
    pub fn read(&self) -> Result<Arc<IndexFile>> {
        if let Some(known) = &*self.known.borrow() {
            return Ok(Arc::clone(known));
        }
        // A second name of the file that was read already has the same in it.
        let stamp = Stamp::of(&self.copy);
        let read = self.repo.index.borrow().clone().filter(|(read, _)| stamp.as_ref() == Some(read));
        let index = match read {
            Some((_, index)) => index,
            None => Arc::new(Index::new(self.repo).decode_index(&self.copy)?),
        };
        self.known.replace(Some(Arc::clone(&index)));
        Ok(index)
    }

    /// Begins a draft of the index, where that takes long, in a thread of its own: it is ready when the files are.
    pub fn begin_draft(&self) -> Result<()> {
        let index = self.read()?;
        if index.entries().len() >= LARGE {
            let from = Arc::clone(&index);
            let thread = start(move || (*from).clone()).ok();
            self.draft.replace(thread.map(|thread| (index, thread)));
        }
        Ok(())
    }

    /// An index to be changed and written, the same as this one.
    pub fn draft_of(&self, index: &Arc<IndexFile>) -> IndexFile {
        let begun = self.draft.take().filter(|(of, _)| Arc::ptr_eq(of, index));
        let draft = begun.and_then(|(_, thread)| thread.join().ok());
        draft.unwrap_or_else(|| (**index).clone())
    }

    /// Leaves it to the caller to make the index durable, when all is done.
    pub fn flush_later(&self) {
        self.is_flushed_later.set(true);
    }

    /// What a git may have written is read again.
    pub fn forget(&self) {
        self.known.take();
    }

    /// Makes this index the copy.
    pub fn replace_copy(&self, index: IndexFile) -> Result<()> {
        // Never into the file: it may be the index itself, under a second name. And never without it: where the new one
        // cannot be written, the copy is as it was.
        let mut new = self.copy.clone().into_os_string();
        new.push(".new");
        let new = PathBuf::from(new);
        // Who has git flush anything may have it flush the index.
        let flushes = !self.is_flushed_later.get() && self.repo.setting("core.fsync").is_some();
        let written = || {
            let file = File::create_new(&new)?;
            write_index(&file, &index)?;
            if flushes {
                file.sync_all()?;
            }
            Ok::<_, anyhow::Error>(std::fs::rename(&new, &self.copy)?)
        };
        written()
            .inspect_err(|_| drop(std::fs::remove_file(&new)))
            .with_context(|| format!("write '{}'", self.copy.display()))?;
        self.known.replace(Some(Arc::new(index)));
        Ok(())
    }

    /// Puts the copy in the index's place.
    pub fn commit(self) -> Result<()> {
        self.put()
    }

    /// As [`Self::commit`], but the index stays locked.
    pub fn put(&self) -> Result<()> {
        self.stager.take();
        self.repo.flush()?;
        if self.copy.exists() {
            self.repo.sharing().share(&self.copy)?;
            std::fs::rename(&self.copy, &self.index).context("replace the index")?;
        }
        Ok(())
    }

    /// Removes the lock that a git which died left on the copy.
    pub fn unlock_copy(&self) -> Result<()> {
        self.stager.take();
        remove_if_there(&lock_path(&self.copy))
    }

    pub fn git<S: AsRef<OsStr>>(&self, args: &[S]) -> Git {
        // A waiting stager holds the lock on the copy.
        self.stager.take();
        self.forget();
        self.repo.git(args).index(&self.copy)
    }

    /// The copy, for a hook of the user's to look at.
    pub fn path(&self) -> &Path {
        &self.copy
    }
}

/// Sleeps for a moment; an error once `wait` is over.
fn wait_for_lock(lock: &Path, started: Instant, wait: Duration) -> Result<()> {
    if started.elapsed() >= wait {
        return Err(locked_error(lock, "the index"));
    }
    std::thread::sleep(PAUSE);
    Ok(())
}

fn lock_path(index: &Path) -> PathBuf {
    let mut name = index.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}

/// The text in an `index.lock` of oxundo's: it shows that a lock left behind is not git's.
const OWN: &[u8] = b"oxundo's\n";

/// Makes the lock in one step, complete from the start.
fn mark_as_lock(mark: &Path, lock: &Path) -> std::io::Result<()> {
    // A hard link to the mark. File systems without hard links report that in many ways. There the lock is a
    // directory: it too is made in one call, keeps git from making its lock, and cannot be git's.
    match std::fs::hard_link(mark, lock) {
        // Without its mark nobody would know whose it is.
        Err(error) if ![ErrorKind::AlreadyExists, ErrorKind::NotFound].contains(&error.kind()) => {
            std::fs::create_dir(lock)
        }
        outcome => outcome,
    }
}

fn release(lock: &Path) -> std::io::Result<()> {
    if lock.is_dir() { std::fs::remove_dir(lock) } else { std::fs::remove_file(lock) }
}

/// Whether oxundo made this lock.
pub fn is_own(lock: &Path) -> bool {
    // git's lock is empty, or as large as the index.
    let fits = |about: &Metadata| about.is_file() && about.len() == OWN.len() as u64;
    lock.symlink_metadata()
        .is_ok_and(|about| about.is_dir() || fits(&about) && std::fs::read(lock).is_ok_and(|held| held == OWN))
}

/// Whether the first release made this lock: it was a second name of the mark, and empty.
fn is_first_releases(lock: &Path, mark: &Path) -> bool {
    let file = |path: &Path| path.symlink_metadata().ok().map(|about| (about.dev(), about.ino()));
    file(lock).is_some_and(|lock| Some(lock) == file(mark))
}

/// Copies an index with its modification time, by which git tells which entries it must compare by content.
fn copy_index(from: &Path, to: &Path) -> Result<()> {
    std::fs::copy(from, to).context("copy the index")?;
    let modified = std::fs::metadata(from).and_then(|about| about.modified());
    let copy = File::options().write(true).open(to);
    modified.and_then(|modified| copy?.set_modified(modified)).context("copy the index's time")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Code, Refusal};
    use crate::git::repo::testing::Fixture;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// What is in the git directory and in oxundo's own, but what was there before.
    fn traces(f: &Fixture) -> Vec<String> {
        let list = |directory: PathBuf| std::fs::read_dir(directory).into_iter().flatten().flatten();
        let all = list(f.repo.git_dir().to_owned()).chain(list(f.repo.scratch_path("")));
        let mut names: Vec<_> = all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name.starts_with("index.") || name == STAND_IN);
        names.sort();
        names
    }

    /// What a killed oxundo leaves: a lock that nobody drops.
    fn killed(f: &Fixture) {
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        std::fs::write(lock_path(&lock.copy), "half").expect("write a file");
        std::fs::create_dir(f.repo.scratch_path(STAND_IN)).expect("make a directory");
        std::fs::write(f.repo.scratch_path(STAND_IN).join("a"), "").expect("write a file");
        std::mem::forget(lock);
    }

    #[test]
    fn while_it_is_locked_git_writes_no_index_and_after_that_nothing_is_left() {
        let f = Fixture::new();
        f.commit("a", "one");
        let index = std::fs::read(f.repo.git_dir().join("index")).expect("read the index");
        f.write("b", "two");
        {
            let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
            assert!(Index::new(&f.repo).index_is_locked(), "it says so");
            assert!(!f.git_agrees(&["add", "b"]), "git respects the lock");
            lock.git(&["add", "b"]).run(b"").expect("work on the copy");
            assert_eq!(lock.read().expect("read the copy").entries().len(), 2, "the copy has what was added");
            assert_eq!(f.lines(&["ls-files"]), ["a"], "the index itself has not");
        }
        assert_eq!(traces(&f), [""; 0], "dropped, it leaves nothing");
        assert_eq!(std::fs::read(f.repo.git_dir().join("index")).expect("read the index"), index, "not a byte");
        assert!(f.git_agrees(&["add", "b"]), "git goes on");
    }

    #[test]
    fn where_a_new_copy_cannot_be_written_the_old_one_is_as_it_was() {
        let f = Fixture::new();
        f.commit("a", "one");
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        let index = lock.read().expect("read the copy");
        let mut in_the_way = lock.copy.clone().into_os_string();
        in_the_way.push(".new");
        std::fs::create_dir(&in_the_way).expect("make a directory");
        assert!(lock.replace_copy((*index).clone()).is_err(), "there is something in the way");
        lock.forget();
        assert_eq!(lock.read().expect("read the copy").entries().len(), 1, "it is all there");
    }

    #[test]
    fn a_committed_copy_becomes_the_index_and_nothing_else_is_left() {
        let f = Fixture::new();
        f.write("a", "one");
        // There is no index yet.
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        lock.git(&["add", "a"]).run(b"").expect("work on the copy");
        lock.commit().expect("replace the index");
        assert_eq!(f.lines(&["ls-files"]), ["a"]);
        assert_eq!(traces(&f), [""; 0]);
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        lock.git(&["rm", "-q", "--cached", "a"]).run(b"").expect("work on the copy");
        lock.commit().expect("replace the index");
        assert_eq!(f.lines(&["ls-files"]), [""; 0]);
        assert_eq!(traces(&f), [""; 0]);
    }

    #[test]
    fn a_second_lock_is_refused_and_takes_nothing_from_the_first() {
        let f = Fixture::new();
        f.commit("a", "one");
        let other = Repo::open(f.repo.top()).expect("open the repository");
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        let error = Index::new(&other).lock_index(Duration::ZERO).expect_err("it is taken");
        assert_eq!(error.downcast::<Refusal>().expect("a refusal").code, Code::Locked);
        let error = Index::new(&other).check_index_is_free(Duration::ZERO).expect_err("it is taken");
        assert_eq!(error.downcast::<Refusal>().expect("a refusal").code, Code::Locked);
        assert!(!f.git_agrees(&["rm", "-q", "--cached", "a"]), "the first one still holds");
        lock.git(&["rm", "-q", "--cached", "a"]).run(b"").expect("work on the copy");
        lock.commit().expect("replace the index");
        assert_eq!(f.lines(&["ls-files"]), [""; 0], "its copy is whole");
        Index::new(&other).check_index_is_free(Duration::ZERO).expect("it is free");
        drop(Index::new(&other).lock_index(Duration::ZERO).expect("it is free"));
    }

    #[test]
    fn who_waits_gets_the_lock_when_the_first_lets_go_and_sees_what_that_wrote() {
        let f = Fixture::new();
        f.write("a", "one");
        let top = f.repo.top().to_owned();
        let released = AtomicBool::new(false);
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let repo = Repo::open(&top).expect("open the repository");
                let lock = Index::new(&repo).lock_index(Duration::from_secs(600)).expect("lock the index");
                assert!(released.load(Ordering::SeqCst), "two never have it at once");
                lock.read().expect("read the copy").entries().len()
            });
            lock.git(&["add", "a"]).run(b"").expect("work on the copy");
            released.store(true, Ordering::SeqCst);
            lock.commit().expect("replace the index");
            assert_eq!(waiting.join().expect("it ends"), 1, "the copy is made of what the first one left");
        });
        assert_eq!(traces(&f), [""; 0]);
    }

    #[test]
    fn a_lock_of_gits_is_respected_whatever_is_in_it() {
        let f = Fixture::new();
        f.commit("a", "one");
        let lock = f.repo.git_dir().join("index.lock");
        let index = std::fs::read(f.repo.git_dir().join("index")).expect("read the index");
        for held in [&b""[..], &index, b"oxundo's", b"123456789"] {
            std::fs::write(&lock, held).expect("write a file");
            let error = Index::new(&f.repo).lock_index(Duration::ZERO).expect_err("git has it");
            assert_eq!(error.downcast::<Refusal>().expect("a refusal").code, Code::Locked);
            Index::new(&f.repo).clear_own_index_lock().expect("nothing fails");
            assert_eq!(std::fs::read(&lock).expect("it is still there"), held, "it is not oxundo's to remove");
            assert_eq!(traces(&f), ["index.lock"], "oxundo leaves none of its own");
        }
        std::fs::remove_file(&lock).expect("git is done");
        std::os::unix::fs::symlink("nowhere", &lock).expect("make a link");
        Index::new(&f.repo).lock_index(Duration::ZERO).expect_err("whatever it is, it is in the way");
        Index::new(&f.repo).clear_own_index_lock().expect("nothing fails");
        assert!(lock.is_symlink(), "and not oxundo's");
    }

    #[test]
    fn what_a_killed_oxundo_left_is_cleared_and_the_index_is_as_it_was() {
        let f = Fixture::new();
        f.commit("a", "one");
        let index = std::fs::read(f.repo.git_dir().join("index")).expect("read the index");
        killed(&f);
        assert_eq!(traces(&f).len(), 5, "lock, mark, copy, the copy's lock and the stand-ins: {:?}", traces(&f));
        std::fs::write(f.repo.git_dir().join("index.oxundo-999999"), "of another").expect("write a file");
        std::fs::write(f.repo.git_dir().join("index.mine"), "mine").expect("write a file");
        Index::new(&f.repo).clear_own_index_lock().expect("clear it");
        assert_eq!(traces(&f), ["index.mine"], "all of it goes, and nothing else");
        assert_eq!(std::fs::read(f.repo.git_dir().join("index")).expect("read the index"), index);
        assert!(f.git_agrees(&["rm", "-q", "--cached", "a"]), "git goes on");
        Index::new(&f.repo).clear_own_index_lock().expect("there is nothing left to clear");
    }

    #[test]
    fn a_lock_that_is_a_directory_is_one_too() {
        let f = Fixture::new();
        f.commit("a", "one");
        // As where there are no hard links.
        std::fs::create_dir(f.repo.git_dir().join("index.lock")).expect("make a directory");
        assert!(!f.git_agrees(&["rm", "-q", "--cached", "a"]), "git respects it");
        Index::new(&f.repo).lock_index(Duration::ZERO).expect_err("so does oxundo");
        Index::new(&f.repo).clear_own_index_lock().expect("clear it");
        assert_eq!(traces(&f), [""; 0], "only oxundo makes such a one");
    }

    #[test]
    fn without_a_mark_nothing_is_taken_for_oxundos() {
        let f = Fixture::new();
        f.commit("a", "one");
        let lock = f.repo.git_dir().join("index.lock");
        std::fs::write(&lock, OWN).expect("write a file");
        Index::new(&f.repo).clear_own_index_lock().expect("nothing fails");
        assert_eq!(std::fs::read(&lock).expect("it is still there"), OWN);
    }

    #[test]
    fn what_the_first_release_left_is_cleared_too() {
        let f = Fixture::new();
        f.commit("a", "one");
        let mark = f.repo.scratch().expect("the scratch directory").join("index.mark");
        std::fs::write(&mark, "").expect("write a file");
        std::fs::hard_link(&mark, f.repo.git_dir().join("index.lock")).expect("link it");
        assert!(!f.git_agrees(&["rm", "-q", "--cached", "a"]), "git respects it");
        Index::new(&f.repo).clear_own_index_lock().expect("clear it");
        assert_eq!(traces(&f), [""; 0], "its lock was empty, and a second name of its mark");
        assert!(f.git_agrees(&["rm", "-q", "--cached", "a"]), "git goes on");
    }

    #[test]
    fn a_lock_that_only_looks_like_the_first_releases_is_somebody_elses() {
        let f = Fixture::new();
        f.commit("a", "one");
        let (lock, elsewhere) = (f.repo.git_dir().join("index.lock"), f.outside().join("elsewhere"));
        let mark = f.repo.scratch().expect("the scratch directory").join("index.mark");
        std::fs::write(&elsewhere, "").expect("write a file");
        let empty = || std::fs::write(&lock, "");
        let linked = || std::fs::hard_link(&elsewhere, &lock);
        let points = || std::os::unix::fs::symlink(&mark, &lock);
        let likes: [(&str, &dyn Fn() -> std::io::Result<()>); 3] =
            [("empty, as git's", &empty), ("a second name of another file", &linked), ("a link to the mark", &points)];
        for (what, make) in likes {
            std::fs::write(&mark, "").expect("write a file");
            make().expect("somebody locks the index");
            Index::new(&f.repo).clear_own_index_lock().expect("nothing fails");
            assert_eq!(traces(&f), ["index.lock"], "{what}: it stays, and the mark goes");
            std::fs::remove_file(&lock).expect("they let go of it");
        }
    }

    #[test]
    fn a_copy_of_the_index_has_its_time() {
        let f = Fixture::new();
        f.commit("a", "one");
        let (index, copy) = (f.repo.git_dir().join("index"), f.outside().join("copy"));
        let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 5000);
        File::options().write(true).open(&index).and_then(|file| file.set_modified(long_ago)).expect("set a time");
        copy_index(&index, &copy).expect("copy the index");
        let modified = |path: &Path| path.metadata().and_then(|about| about.modified()).expect("look at a file");
        assert_eq!(modified(&copy), modified(&index), "by it git tells which entries it has to read");
        assert_eq!(std::fs::read(copy).expect("read it"), std::fs::read(index).expect("read it"));
    }
}
