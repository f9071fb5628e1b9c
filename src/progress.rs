//! What is going on while it lasts, told to whoever wants to know: the git
//! layer prints nothing.

use std::fmt;
use std::sync::Arc;

/// What takes its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Files are compared with the index.
    Scan,
    /// Files that differ are read.
    Read,
    /// Files are written and deleted.
    Apply,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress<'a> {
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
