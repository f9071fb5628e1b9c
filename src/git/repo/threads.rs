//! Threads, of which the system may have no more.

use anyhow::{Context, Result, anyhow};
use std::thread::{Builder, JoinHandle};

/// Starts a thread. Where the system gives none, that is an error like any other.
pub fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    Builder::new().spawn(work).context("start a thread")
}

/// Does the same in several threads, of which this is one: each takes of the work until none is left.
pub fn in_threads<T: Send>(threads: usize, work: impl Fn() -> Result<T> + Sync) -> Vec<Result<T>> {
    std::thread::scope(|scope| {
        // Where the system gives no more of them, those that there are do it all.
        let more = |_| Builder::new().spawn_scoped(scope, &work).ok();
        let others: Vec<_> = (1..threads).map_while(more).collect();
        let mut all = vec![work()];
        all.extend(others.into_iter().map(|other| {
            other.join().unwrap_or_else(|_| {
                Err(anyhow!("a thread ended early: this is a bug in oxundo, of which it has told above"))
            })
        }));
        all
    })
}
