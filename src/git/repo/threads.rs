//! The same work in several threads.

use anyhow::{Result, anyhow};

/// Does the same in several threads, of which this is one.
pub fn in_threads<T: Send>(threads: usize, work: impl Fn() -> Result<T> + Sync) -> Vec<Result<T>> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        let mut all = vec![work()];
        all.extend(others.into_iter().map(|other| {
            other.join().unwrap_or_else(|_| {
                Err(anyhow!("a thread ended early: this is a bug in oxundo, of which it has told above"))
            })
        }));
        all
    })
}
