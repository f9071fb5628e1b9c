//! The steps of a `run` of which no hook tells: the worktree is watched, and when it has been quiet for a moment, what has changed
//! is one. A state in which something is being written is none. Where a hook does tell of calls, its steps are better, and
//! none is made here.

use crate::error::Code;
use crate::error::failure::to_refusal;
use crate::git::objects::Objects;
use crate::git::objects::tree::Level;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Side;
use crate::git::worktree::Worktree;
use crate::git::worktree::watch::{Heard, Places, Watch, Woken, wait};
use crate::model::checkpoint::Checkpoint;
use crate::model::turn::Turn;
use crate::ops::locked::Locked;
use crate::ops::turn::since::Since;
use crate::ops::turn::{calls, steps};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// For so long nothing must have happened.
const QUIET: Duration = Duration::from_millis(250);

/// Events come one by one: so long they are collected.
const TOGETHER: Duration = Duration::from_millis(20);

/// Where it is not quiet for so long, there is a step all the same, without what is being written.
const AT_LEAST: Duration = Duration::from_secs(5);

/// Where it is not quiet for so long, files of which nothing is known are looked for: they may be none that count.
const LEARN: Duration = Duration::from_millis(500);

/// How often is looked where nothing can be heard.
const LOOK: Duration = Duration::from_secs(2);

/// How long another command is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// A look takes a core for this part of the time at most.
const SHARE: u32 = 4;

/// A worktree that is watched while an agent is at work.
pub struct Watching {
    stop: UnixStream,
    thread: JoinHandle<Option<String>>,
}

impl Watching {
    /// Begins. `open` opens the repository again, for the thread that watches; `held` is its git directory, open.
    pub fn begin(
        (git_dir, top): (PathBuf, PathBuf),
        held: Option<File>,
        open: impl Fn() -> Result<Option<Repo>> + Send + 'static,
    ) -> Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let (listens, ready) = channel();
        let thread = std::thread::Builder::new().spawn(move || {
            let mut watcher = Watcher {
                open: &open,
                git_dir,
                top,
                held,
                watch: None,
                problem: None,
                is_lost: false,
                directories_at: None,
                seen: None,
                known: None,
                touched: HashMap::new(),
                counts: HashSet::new(),
                took: Duration::ZERO,
                looked: Instant::now(),
            };
            watcher.watch = Watch::new().map_err(|error| watcher.cannot_hear(&error)).ok();
            let listened = watcher.listen();
            // Whoever waits for it is there.
            let _ = listens.send(());
            watcher.until(stopped.as_fd(), listened.is_err().then(Instant::now));
            watcher.problem
        })?;
        // Nothing is written before it is listened to.
        let _ = ready.recv();
        Ok(Self { stop, thread })
    }

    /// Ends; gives what there is to say of it.
    pub fn end(self) -> Option<String> {
        drop(self.stop);
        self.thread.join().unwrap_or_else(|_| Some("the worktree was not watched to the end".to_owned()))
    }
}

/// What became of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    /// What has changed is in a step, or nothing has.
    Settled,
    /// It was not quiet.
    Again,
}

struct Watcher<'a> {
    open: &'a dyn Fn() -> Result<Option<Repo>>,
    git_dir: PathBuf,
    top: PathBuf,
    held: Option<File>,
    /// None where nothing can be heard.
    watch: Option<Watch>,
    problem: Option<String>,
    /// Whether something happened of which nothing was heard.
    is_lost: bool,
    /// When directories came, went or moved last.
    directories_at: Option<Instant>,
    /// The state of the last look, where two of them must see the same.
    seen: Option<(ObjectId, ObjectId)>,
    /// The directories of the last state, by its tree.
    known: Option<(ObjectId, BTreeSet<BString>)>,
    /// The files of which was heard since the last step, and when.
    touched: HashMap<BString, Instant>,
    /// Those that looks take in.
    counts: HashSet<BString>,
    /// How long the last look took.
    took: Duration,
    /// When it was over.
    looked: Instant,
}

impl Watcher<'_> {
    /// Listens to the directories that there are as the turn begins.
    fn listen(&mut self) -> Result<()> {
        let Some(repo) = (self.open)()? else { return Ok(()) };
        let timeline = Timelines::new(&repo).timeline()?;
        let Some(turn) = timeline.state.open else { return Ok(()) };
        let before = timeline.checkpoint(turn, Side::Before)?;
        self.cover(&repo, &before).map(drop)
    }

    /// Takes steps until it is stopped; `since` when something may have changed of which nothing was heard.
    fn until(&mut self, stop: BorrowedFd<'_>, mut since: Option<Instant>) {
        loop {
            let limit = match (&self.watch, since) {
                (None, _) => Some(LOOK.max(self.took * SHARE)),
                (Some(_), None) => None,
                (Some(_), Some(_)) => Some(self.quiet()),
            };
            match wait(self.watch.as_ref(), stop, limit) {
                Ok(Woken::Stopped) | Err(_) => return,
                Ok(Woken::Quiet) => {}
                Ok(Woken::Heard) => {
                    if wait(None, stop, Some(TOGETHER)).is_ok_and(|woken| woken == Woken::Stopped) {
                        return;
                    }
                    if self.hear().is_any {
                        since.get_or_insert_with(Instant::now);
                    }
                    let elapsed = since.map(|since| since.elapsed()).unwrap_or_default();
                    let may_learn = elapsed >= LEARN && self.looked.elapsed() >= self.quiet() && self.has_unknown();
                    if elapsed < AT_LEAST && !may_learn {
                        continue;
                    }
                }
            }
            let is_forced = since.is_some_and(|since| since.elapsed() >= AT_LEAST);
            since = match self.look(is_forced) {
                Ok(Looked::Settled) => None,
                Ok(Looked::Again) => since.filter(|_| !is_forced).or_else(|| Some(Instant::now())),
                Err(error) => {
                    self.problem = Some(format!("steps were not kept: {}", to_refusal(&error).message));
                    Some(Instant::now())
                }
            };
        }
    }

    fn quiet(&self) -> Duration {
        QUIET.max(self.took * SHARE)
    }

    /// Hears what there is to hear.
    fn hear(&mut self) -> Heard {
        let heard = self.watch.as_mut().map(|watch| watch.hear(&self.top)).transpose();
        let heard = heard.map_err(|error| self.cannot_hear(&error)).ok().flatten().unwrap_or_default();
        let now = Instant::now();
        self.touched.extend(heard.files.iter().map(|file| (file.clone(), now)));
        self.is_lost |= heard.is_lost;
        if heard.has_directories {
            self.directories_at = Some(now);
        }
        heard
    }

    /// From here on nothing is heard, and the worktree is looked at now and then.
    fn cannot_hear(&mut self, error: &io::Error) {
        let why = format!("the worktree cannot be watched ({error}): it was looked at every few seconds for steps");
        self.problem.get_or_insert(why);
        self.watch = None;
    }

    /// Looks, and records a step where it was quiet.
    fn look(&mut self, is_forced: bool) -> Result<Looked> {
        let began = Instant::now();
        let looked = self.try_look(began, is_forced);
        (self.took, self.looked) = (began.elapsed(), Instant::now());
        looked
    }

    fn try_look(&mut self, began: Instant, is_forced: bool) -> Result<Looked> {
        let Some(repo) = (self.open)()?.filter(|repo| self.is_same(repo)) else { return Ok(Looked::Settled) };
        let heard = |_| {};
        let lock = match repo.lock_beside_run("run --steps", PATIENCE) {
            Err(error) if to_refusal(&error).code == Code::Busy => return Ok(Looked::Again),
            lock => lock?,
        };
        let mut locked = Locked::over(&repo, &heard, lock)?;
        // Of a call of which a hook tells more is known.
        let is_told = calls::are_told(&repo);
        let turn = locked.open_turn()?.filter(|turn| !turn.origin.waiting && !is_told);
        let Some(turn) = turn else { return Ok(Looked::Settled) };
        repo.look();
        let mut since = Since::look_within(&locked, &turn)?;
        if self.cover(&repo, &since.capture.checkpoint)? {
            // Nobody heard what happened there meanwhile.
            since = Since::look_within(&locked, &turn)?;
            if self.cover(&repo, &since.capture.checkpoint)? {
                return Ok(Looked::Again);
            }
        }
        self.learn(&repo, since.capture.checkpoint.worktree);
        let Some(busy) = self.busy(&repo, &since, began, is_forced) else { return Ok(Looked::Again) };
        self.record(&mut locked, &turn, since.into_state(), &busy)?;
        Ok(if self.watch.as_ref().is_some_and(|watch| busy.iter().any(|file| !watch.writing().contains(file))) {
            Looked::Again
        } else {
            Looked::Settled
        })
    }

    /// Whether this is the repository in which the turn began: the agent may have put another in its place.
    fn is_same(&self, repo: &Repo) -> bool {
        repo.git_dir() == self.git_dir && self.held.as_ref().is_none_or(|held| repo.is_at(held))
    }

    /// Listens to the directories of a state; says whether one of them was not listened to.
    fn cover(&mut self, repo: &Repo, state: &Checkpoint) -> Result<bool> {
        let Some(watch) = &mut self.watch else { return Ok(false) };
        let (tree, mut directories) = match self.known.take() {
            Some(known) if known.0 == state.worktree => known,
            _ => (state.worktree, directories_of(repo, state.worktree)?),
        };
        directories.extend(state.directories.iter().cloned());
        let logs = repo.common_dir().join("logs/refs");
        let git = [repo.git_dir().to_owned(), repo.git_dir().join("logs"), logs.join("heads"), logs];
        let covered = watch.cover(&Places { top: &self.top, directories: &directories, git: &git });
        self.known = Some((tree, directories));
        Ok(covered.map_err(|error| self.cannot_hear(&error)).unwrap_or_default())
    }

    /// Whether there are files of which was heard and of which no look has told yet whether they count.
    fn has_unknown(&self) -> bool {
        self.touched.keys().any(|file| !self.counts.contains(file))
    }

    /// Learns which files count, by what a look has seen: what is told of others is no reason to look.
    fn learn(&mut self, repo: &Repo, seen: ObjectId) {
        let Some(watch) = &mut self.watch else { return };
        let is_seen = |file: &BString| Objects::new(repo).tree_has_entry(seen, file.as_bstr()).unwrap_or(true);
        let new: Vec<BString> = self.touched.keys().filter(|file| !self.counts.contains(*file)).cloned().collect();
        let (counts, others): (Vec<BString>, Vec<BString>) = new.into_iter().partition(is_seen);
        self.counts.extend(counts);
        for file in others {
            self.touched.remove(&file);
            // Of what is gone nobody knows.
            if Worktree::new(repo).has_file(file.as_bstr()) {
                watch.leave_out(file);
            }
        }
    }

    /// The files that are being written, and that a step has as the last one had them. None where it is not quiet enough for
    /// one.
    fn busy(&mut self, repo: &Repo, since: &Since, began: Instant, is_forced: bool) -> Option<BTreeSet<BString>> {
        let heard = self.hear();
        if let Some(watch) = &mut self.watch {
            watch.forget(|file| Worktree::new(repo).has_file(file.as_bstr()));
        }
        let is_at_work = repo.git_dir().join("index.lock").symlink_metadata().is_ok();
        let is_quiet = !heard.is_any && since.capture.torn.is_empty() && !is_at_work;
        let Some(watch) = self.watch.as_ref().filter(|_| !self.is_lost) else {
            let state = &since.capture.checkpoint;
            let now = (state.worktree, state.index.tree);
            let is_as_before = self.seen.replace(now) == Some(now) && is_quiet;
            return is_as_before.then(BTreeSet::new);
        };
        let mut busy = watch.writing().clone();
        let from = began.checked_sub(self.quiet()).unwrap_or(began);
        if !is_quiet {
            if !is_forced || is_at_work || self.directories_at.is_some_and(|at| at >= from) {
                return None;
            }
            busy.extend(since.capture.torn.iter().cloned());
            busy.extend(self.touched.iter().filter(|(_, at)| **at >= from).map(|(file, _)| file.clone()));
        }
        Some(busy)
    }

    fn record(
        &mut self,
        locked: &mut Locked<'_>,
        turn: &Turn,
        state: Checkpoint,
        busy: &BTreeSet<BString>,
    ) -> Result<()> {
        let repo = locked.repo;
        repo.keep()?;
        self.touched.clear();
        (self.seen, self.is_lost) = (None, false);
        steps::record_watched(locked, turn, state, busy)
    }
}

/// The directories of a tree, its top among them.
fn directories_of(repo: &Repo, tree: ObjectId) -> Result<BTreeSet<BString>> {
    let (mut directories, mut rest) = (BTreeSet::new(), vec![(BString::default(), tree)]);
    while let Some((directory, tree)) = rest.pop() {
        for (name, id, level) in Objects::new(repo).level(tree)? {
            if level == Level::Directory {
                let separator: &[u8] = if directory.is_empty() { b"" } else { b"/" };
                rest.push(([directory.as_bytes(), separator, &name].concat().into(), id));
            }
        }
        directories.insert(directory);
    }
    Ok(directories)
}
