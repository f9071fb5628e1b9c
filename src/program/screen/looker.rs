//! What is read and planned while the screen is drawn: threads with a repository of their own each, one for the rows, one for
//! what would be done, and one that sees when something else acts.

use crate::error::Refusal;
use crate::error::failure::to_refusal;
use crate::git::objects::Objects;
use crate::git::objects::print::DiffStyle;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::checkpoint::Head;
use crate::model::merge::Edits;
use crate::program::screen::deed::{Deed, Told, Wanted, literal};
use crate::program::screen::read;
use crate::program::screen::row::{Timeline, harmless};
use crate::program::typed::as_typed;
use crate::program::ui::Ui;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// So many lines of a difference are shown.
const DIFF_LINES: usize = 2000;

/// So often it is looked whether the timeline or HEAD is another, and after so many looks all is read anew: ages and the
/// worktree are others.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
const LOOKS: u32 = 60;

/// What was found.
pub enum News {
    /// By which reading it was found.
    Timeline(u64, Timeline),
    /// After which reading it was planned.
    Told(u64, Deed, Result<Box<Told>, Refusal>),
    Diff(Deed, BString, Vec<String>),
    /// Something else acted, or some time has passed.
    Moved,
    /// What could not be read, so that nothing can be chosen.
    Failed(Refusal),
    /// The pager was left.
    Paged,
}

/// After which reading, and of what.
enum Job {
    Look(u64, Wanted),
    Page(u64, Wanted),
}

/// The threads.
pub struct Looker {
    top: PathBuf,
    jobs: Sender<Job>,
    send: Sender<News>,
    news: Receiver<News>,
    /// How many times the timeline was to be read.
    readings: Cell<u64>,
}

impl Looker {
    pub fn start(repo: &Repo, edits: Option<Edits>) -> Self {
        let (send, news) = channel();
        let (jobs, wanted) = channel();
        let top = repo.top().join(repo.prefix());
        let (at, told) = (top.clone(), send.clone());
        thread::spawn(move || look(&at, edits, &wanted, &told));
        let (at, told) = (top.clone(), send.clone());
        thread::spawn(move || watch(&at, &told));
        let looker = Self { top, jobs, send, news, readings: Cell::new(0) };
        looker.read();
        looker
    }

    /// Reads the timeline, again too.
    pub fn read(&self) {
        let (top, send) = (self.top.clone(), self.send.clone());
        let reading = self.readings.get() + 1;
        self.readings.set(reading);
        thread::spawn(move || {
            let tell = |timeline| drop(send.send(News::Timeline(reading, timeline)));
            if let Err(error) = read::timeline(&top, tell) {
                let _ = send.send(News::Failed(to_refusal(&error)));
            }
        });
    }

    /// Whether nothing has changed since this reading began, as far as is known: one that began before another may end after it.
    pub fn is_last(&self, reading: u64) -> bool {
        self.readings.get() == reading
    }

    pub fn look(&self, reading: u64, wanted: Wanted) {
        // A thread that has panicked is told of where its news are missing.
        let _ = self.jobs.send(Job::Look(reading, wanted));
    }

    /// Shows the difference in the user's pager, which has the terminal until it is left.
    pub fn page(&self, reading: u64, wanted: Wanted) -> Result<()> {
        self.jobs.send(Job::Page(reading, wanted))?;
        while !matches!(self.news.recv()?, News::Paged) {}
        Ok(())
    }

    /// The next piece of news, if there is one within this time.
    pub fn news(&self, within: Duration) -> Option<News> {
        self.news.recv_timeout(within).ok()
    }
}

/// Tells when what the rows are of is another, until nobody listens.
fn watch(top: &Path, send: &Sender<News>) {
    // What cannot be read is told of by who reads it.
    let Ok(repo) = Repo::open(top) else { return };
    let mut seen = scene(&repo);
    loop {
        for _ in 0..LOOKS {
            thread::sleep(BETWEEN_LOOKS);
            let now = scene(&repo);
            if now.is_some() && now != seen {
                seen = now;
                break;
            }
        }
        if send.send(News::Moved).is_err() {
            return;
        }
    }
}

fn scene(repo: &Repo) -> Option<(Head, Option<ObjectId>)> {
    Some((Refs::new(repo).head().ok()?, Timelines::new(repo).tip().ok()?))
}

/// Plans what is wanted last, until nobody wants anything.
fn look(top: &Path, edits: Option<Edits>, jobs: &Receiver<Job>, send: &Sender<News>) {
    let mut last: Option<Seen> = None;
    while let Ok(mut job) = jobs.recv() {
        while let (Job::Look(..), Ok(newer)) = (&job, jobs.try_recv()) {
            job = newer;
        }
        let (Job::Look(reading, wanted) | Job::Page(reading, wanted)) = &job;
        if last.as_ref().is_none_or(|seen| (seen.reading, &seen.deed) != (*reading, &wanted.deed)) {
            last = None;
            match Seen::of(top, edits, *reading, &wanted.deed) {
                Ok((seen, told)) => {
                    last = Some(seen);
                    let _ = send.send(News::Told(*reading, wanted.deed.clone(), Ok(Box::new(told))));
                }
                Err(error) => {
                    let refusal = as_typed(to_refusal(&error), &wanted.deed.line(edits));
                    let _ = send.send(News::Told(*reading, wanted.deed.clone(), Err(refusal)));
                }
            }
        }
        let news = match (&job, &last) {
            (Job::Look(_, wanted), Some(seen)) => seen.diff(wanted.path.as_ref()),
            (Job::Page(_, wanted), Some(seen)) => {
                // What git cannot show it says itself.
                let _ = seen.page(wanted.path.as_ref());
                Some(News::Paged)
            }
            (Job::Page(..), None) => Some(News::Paged),
            (Job::Look(..), None) => None,
        };
        if news.is_some_and(|news| send.send(news).is_err()) {
            return;
        }
    }
}

/// What was planned last, and the repository that has its contents.
struct Seen {
    repo: Repo,
    reading: u64,
    deed: Deed,
    trees: [ObjectId; 2],
    first: Option<BString>,
}

impl Seen {
    fn of(top: &Path, edits: Option<Edits>, reading: u64, deed: &Deed) -> Result<(Self, Told)> {
        let repo = Repo::open(top)?;
        let told = deed.told(&repo, &|_| {}, edits)?;
        let first = told.files.first().map(|file| file.path.clone());
        Ok((Self { repo, reading, deed: deed.clone(), trees: told.trees, first }, told))
    }

    fn diff(&self, path: Option<&BString>) -> Option<News> {
        let path = path.or(self.first.as_ref())?;
        let [from, to] = self.trees;
        let lines = match Objects::new(&self.repo).shown_diff(from, to, path.as_bstr()) {
            Ok(text) => text.lines().take(DIFF_LINES).map(|line| plain(&line.to_str_lossy())).collect(),
            Err(error) => vec![harmless(&error.to_string())],
        };
        Some(News::Diff(self.deed.clone(), path.clone(), lines))
    }

    fn page(&self, path: Option<&BString>) -> Result<()> {
        let [from, to] = self.trees;
        let paths: Vec<_> = path.map(literal).into_iter().collect();
        let style = DiffStyle { waits: true, ..Ui::diff_style(false) };
        Objects::new(&self.repo).print_diff(from, to, style, &paths)
    }
}

/// A line of a difference as cells: without tabs and what steers a terminal.
fn plain(line: &str) -> String {
    harmless(&line.replace('\t', "    "))
}
