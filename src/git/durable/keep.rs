//! Writing what is relied on into the log, and waiting for it.

use crate::git::durable::flush::sync_whole;
use crate::git::durable::gather::{logged, loose_since, objects_directory};
use crate::git::durable::log::{Entry, Log};
use crate::git::durable::{Durable, RefState, When};
use crate::git::repo::clock::{since_boot, unix_now};
use crate::git::repo::platform::{file_clock, nanoseconds};
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs::File;

/// A log longer than this begins anew.
const LONG: u64 = 16 << 20;

impl Durable<'_> {
    /// Makes the log where there is none: by it the next command knows that there was a power cut. To be called before anything
    /// is written.
    pub fn begin(&self) -> Result<()> {
        if !self.is_on() || self.repo.power.logs.replace(true) || self.own_log().exists() {
            return Ok(());
        }
        let mut log = Log::open(self.own_log())?;
        log.append(&[], boot_time())?;
        log.sync()?;
        self.sync_directories()
    }

    /// Makes all objects that there are durable, whoever wrote them, and these states of refs. To be called with the
    /// worktree's lock held.
    pub fn keep(&self, refs: &[RefState]) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        let mut log = Log::open(self.own_log())?;
        let begun = file_clock();
        // Those of others; then its own, which are at hand.
        let mut others = loose_since(self.repo, log.mark().unwrap_or_else(boot_time))?;
        self.repo.flush()?;
        let own = self.repo.power.written.borrow_mut().give();
        let names: BTreeSet<&str> = own.iter().flatten().map(|(name, _)| name.as_str()).collect();
        others.retain(|file| !names.contains(file.name.as_str()));
        let objects = own.map(own_entries).zip(logged(&others)?).map(|(own, others)| [own, others].concat());
        // Too much for the log, or the log itself is too much: all is flushed that is on the file system.
        if (objects.is_none() || log.length() > LONG) && sync_whole(&[&objects_directory(self.repo), log.path()])? {
            log.empty()?;
        }
        let states = refs.iter().map(|(name, id)| Entry::Ref(name.clone(), *id));
        log.append(&objects.unwrap_or_default().into_iter().chain(states).collect::<Vec<_>>(), begun)?;
        log.sync()
    }

    /// Adds what these refs are now, and the objects that were written for them, which something durable leads to already.
    pub fn note(&self, refs: &[RefState], when: When) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        self.repo.flush()?;
        let objects = self.repo.power.written.borrow_mut().give().map(own_entries);
        let mut log = Log::open(self.own_log())?;
        let states = refs.iter().map(|(name, id)| Entry::Ref(name.clone(), *id));
        let entries: Vec<Entry> = objects.into_iter().flatten().chain(states).collect();
        // Those of others are still to be taken in, and what was too much.
        log.append(&entries, log.mark().unwrap_or_else(boot_time))?;
        if when == When::Now { log.sync() } else { Ok(()) }
    }

    /// Once for each log: its name, and those of the directories above it.
    fn sync_directories(&self) -> Result<()> {
        let scratch = self.repo.common_dir.join("oxundo");
        for directory in [&self.logs(), &scratch, self.repo.scratch()?, &self.repo.common_dir, &self.repo.git_dir] {
            File::open(directory)
                .and_then(|directory| directory.sync_all())
                .with_context(|| format!("flush '{}'", directory.display()))?;
        }
        Ok(())
    }
}

fn own_entries(files: Vec<(String, Vec<u8>)>) -> Vec<Entry> {
    files.into_iter().map(|(name, content)| Entry::Object(name, content)).collect()
}

/// When the system was started: what was there before was read from the disk.
fn boot_time() -> u64 {
    // Both clocks are read to the second.
    nanoseconds(unix_now() - since_boot() - 2, 0)
}
