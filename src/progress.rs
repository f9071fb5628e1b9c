//! What is going on while it lasts, told to whoever wants to know: the git
//! layer prints nothing.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// What takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Files are compared with the index.
    Scan,
    /// Files that differ are read.
    Read,
    /// The lines that differ are counted.
    Count,
    /// git stages files.
    Stage,
    /// Files are written and deleted.
    Apply,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// An operation begins, such as `undoing turn 2`, perhaps within another.
    Starts(&'a str),
    /// The last that has begun is over.
    Finishes,
    /// A work begins, with so many files to go, as far as is known.
    Begins(Phase, u64),
    /// So many more are done.
    Advances(u64),
    /// It is over.
    Ends,
    /// A git command is about to run.
    Runs(&'a str),
    /// A record of oxundo's own is read.
    Opens(&'a str),
    /// A command of the user's own, by the name of its setting (`onUndo`), has printed a line.
    Says(&'a str, &'a str),
}

type Listener = dyn Fn(Progress<'_>) + Send + Sync;

/// Who is told; nobody at first.
#[derive(Clone, Default)]
pub struct ProgressSink(Option<Arc<Listener>>);

impl ProgressSink {
    /// Has this called with all that happens, from any thread.
    pub fn new(listener: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    /// Tells.
    pub fn emit(&self, progress: Progress<'_>) {
        if let Some(listener) = &self.0 {
            listener(progress);
        }
    }

    /// Tells that an operation begins; it is over when what this gives is dropped.
    pub fn start(&self, what: &str) -> OperationGuard<'_> {
        self.emit(Progress::Starts(what));
        OperationGuard(self)
    }

    /// Tells that a work begins; it ends when what this gives is dropped.
    pub fn begin(&self, work: Phase, files: usize) -> ProgressGuard<'_> {
        self.emit(Progress::Begins(work, files as u64));
        ProgressGuard(self)
    }
}

impl fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgressSink").field(&self.0.is_some()).finish()
    }
}

/// A work that lasts.
#[derive(Debug)]
pub struct ProgressGuard<'a>(&'a ProgressSink);

impl ProgressGuard<'_> {
    /// Tells that so many more files are done.
    pub fn advance(&self, files: usize) {
        self.0.emit(Progress::Advances(files as u64));
    }
}

impl Drop for ProgressGuard<'_> {
    fn drop(&mut self) {
        self.0.emit(Progress::Ends);
    }
}

/// An operation that is going on.
#[derive(Debug)]
pub struct OperationGuard<'a>(&'a ProgressSink);

impl Drop for OperationGuard<'_> {
    fn drop(&mut self) {
        self.0.emit(Progress::Finishes);
    }
}

/// By this, whoever hears of signals asks an apply to stop. An apply says by it how far it is.
#[derive(Clone, Debug, Default)]
pub struct StopSwitch(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    at: AtomicU8,
    /// Whether somebody has asked when it was too late for the apply at hand: the next one of the command does not begin.
    asked_late: AtomicBool,
}

const IDLE: u8 = 0;
const UNDER_WAY: u8 = 1;
const ASKED: u8 = 2;
const SETTLED: u8 = 3;
const DONE: u8 = 4;

/// What it is to ask an apply to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// There is none.
    Idle,
    /// It stops as soon as it can, and is rolled back.
    Stops,
    /// It has been asked before, or is being finished or rolled back already, or is over: what is left to do is little.
    Settled,
}

impl StopSwitch {
    /// Asks the apply that is under way to stop.
    pub fn ask(&self) -> Asked {
        match self.0.at.compare_exchange(UNDER_WAY, ASKED, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => Asked::Stops,
            Err(IDLE) => Asked::Idle,
            Err(ASKED) => Asked::Settled,
            Err(_) => {
                self.0.asked_late.store(true, Ordering::SeqCst);
                Asked::Settled
            }
        }
    }

    /// Whether it has been asked to stop, and may.
    pub fn is_asked(&self) -> bool {
        self.0.at.load(Ordering::SeqCst) == ASKED
    }

    /// Whether something is under way that must not be cut off.
    pub fn is_under_way(&self) -> bool {
        ![IDLE, DONE].contains(&self.0.at.load(Ordering::SeqCst))
    }

    /// An apply begins; it is over when what this gives is dropped.
    pub fn begin(&self) -> StopGuard<'_> {
        self.0.at.store(UNDER_WAY, Ordering::SeqCst);
        if self.0.asked_late.swap(false, Ordering::SeqCst) {
            self.0.at.store(ASKED, Ordering::SeqCst);
        }
        StopGuard(self)
    }

    /// From now on it does not stop any more: it is being finished, or rolled back. Says whether it was asked before.
    pub fn settle(&self) -> bool {
        self.0.at.swap(SETTLED, Ordering::SeqCst) == ASKED
    }
}

/// An apply that is under way.
#[derive(Debug)]
pub struct StopGuard<'a>(&'a StopSwitch);

impl Drop for StopGuard<'_> {
    fn drop(&mut self) {
        self.0.0.at.store(DONE, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_between_two_applies_of_a_command_keeps_the_second_from_being_made() {
        let switch = StopSwitch::default();
        assert_eq!(switch.ask(), Asked::Idle);
        drop(switch.begin());
        assert_eq!(switch.ask(), Asked::Settled, "it is over");
        let second = switch.begin();
        assert!(switch.is_asked() && switch.settle(), "the next one stops");
        drop(second);
        let way_back = switch.begin();
        assert!(!switch.is_asked(), "what takes back what was done goes on");
        switch.settle();
        assert_eq!(switch.ask(), Asked::Settled);
        drop(way_back);
        let third = switch.begin();
        assert!(switch.is_asked(), "asked while one was being finished");
        assert_eq!(switch.ask(), Asked::Settled);
        drop(third);
        let fourth = switch.begin();
        assert!(!switch.is_asked(), "asked in the third, and stopped there");
        assert_eq!(switch.ask(), Asked::Stops);
        drop(fourth);
    }
}
