//! Whether the system went on for long after the last record: then all of it came to the disk, and what is there is what somebody
//! wanted. A log says where refs are about to be; a command that was killed has never moved them.

use crate::git::durable::Durable;
use crate::git::index::Index;
use crate::git::repo::clock::boot_time;
use crate::git::repo::platform::{nanoseconds, writeback};
use anyhow::Result;
use gix::bstr::ByteSlice;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How much longer than the system says that it keeps what is written in memory.
const SLOWER: u32 = 3;

impl Durable<'_> {
    /// Whether something was written, before the system was started, so long after a record of this time that all of before is
    /// on the disk.
    pub(super) fn lived_on(&self, record: u64) -> Result<bool> {
        let from = record.saturating_add(u64::try_from((writeback() * SLOWER).as_nanos())?);
        let until = boot_time();
        let is_between = |about: &Metadata| {
            let written = nanoseconds(about.mtime(), about.mtime_nsec());
            // A time to come that somebody has given a file says nothing.
            (from..until).contains(&written) && written <= nanoseconds(about.ctime(), about.ctime_nsec())
        };
        Ok(from < until
            && self.witnesses()?.iter().any(|path| path.symlink_metadata().is_ok_and(|about| is_between(&about))))
    }

    /// What git, the user and their programs write: the files of git's, its reflogs and refs, in files or tables, and what the index knows.
    fn witnesses(&self) -> Result<BTreeSet<PathBuf>> {
        let mut all = BTreeSet::new();
        for directory in [&self.repo.git_dir, &self.repo.common_dir] {
            all.extend(std::fs::read_dir(directory)?.flatten().map(|entry| entry.path()));
            for below in ["logs", "refs", "reftable"] {
                add_all(&directory.join(below), &mut all);
            }
        }
        let top = self.repo.top();
        let known = Index::new(self.repo).read_index().ok();
        for entry in known.iter().flat_map(|index| index.entries().iter().map(|entry| entry.path(index))) {
            let path = top.join(entry.to_os_str_lossy());
            all.extend(path.ancestors().take_while(|above| above.starts_with(top)).map(Path::to_owned));
        }
        Ok(all)
    }
}

fn add_all(directory: &Path, all: &mut BTreeSet<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_all(&entry.path(), all);
        }
        all.insert(entry.path());
    }
}
