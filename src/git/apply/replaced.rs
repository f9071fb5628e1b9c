//! What came out of the worktree stays for a while when an operation is over: a program that has a file open may save to
//! it at any time later, and to ask every process what it has open takes longer than a small undo. A later command looks
//! at it again, and deletes what is still what it was, and is open nowhere.

use crate::git::apply::Apply;
use crate::git::apply::journal::read_journal;
use crate::git::apply::outs::Outs;
use crate::git::repo::platform::{Inodes, open_for_writing};
use crate::git::worktree::exchange::Spot;
use crate::model::bytes::sanitized;
use crate::model::plan::FileMove;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::fs::{DirEntry, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// For how long it stays at least.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of how many operations, however new they are.
const MOST: usize = 16;

impl Apply<'_> {
    /// Deletes what came out of a worktree some time ago, or `all` of it, but for what somebody has open; `replaced` is the
    /// directory in that worktree's scratch. What was saved since is kept, and named. What cannot be looked at now is left
    /// for the next time.
    pub fn sweep_replaced(&self, replaced: &Path, all: bool) {
        let mut operations = entries(replaced);
        if !all && operations.len() <= MOST {
            operations.retain(is_old);
        }
        let files: Vec<DirEntry> = operations.iter().flat_map(|operation| entries(&operation.path())).collect();
        let inodes = files.iter().filter_map(|file| file.metadata().ok()).map(|about| (about.dev(), about.ino()));
        let inodes: Inodes = inodes.collect();
        let open = open_for_writing(&inodes);
        for file in &files {
            if file.metadata().is_ok_and(|about| !open.contains(&(about.dev(), about.ino()))) {
                self.conclude(file);
            }
        }
        for operation in operations.into_iter().map(|operation| operation.path()) {
            // It stays where something in it does, and is new again: not each command is to ask all processes.
            if std::fs::remove_dir(&operation).is_err() {
                let _ = File::open(&operation).and_then(|directory| directory.set_modified(SystemTime::now()));
            }
        }
        let _ = std::fs::remove_dir(replaced);
    }

    /// Deletes a file that came out, or keeps it.
    fn conclude(&self, file: &DirEntry) {
        let name = file.file_name().to_string_lossy().into_owned();
        let (journal, number) = name.split_once('-').unwrap_or((&name, ""));
        let journal = ObjectId::from_hex(journal.as_bytes()).ok();
        let moved = journal.and_then(|journal| self.file_of(journal, number));
        // Its journal may have been pruned since: then what git has is lost to nobody.
        let is_known = |state| match &moved {
            Some(moved) => moved.from == Some(state),
            None => self.repo.has_object(state.id),
        };
        let path = moved.as_ref().map_or_else(|| BString::from(sanitized(&name)), |moved| moved.path.clone());
        let mut outs = Outs::new(self.repo, journal.unwrap_or_else(|| ObjectId::null(self.repo.hash_kind())));
        // Where that fails, the next command tries again.
        let _ = outs.conclude(path.as_bstr(), &Spot::Apart(file.path()), is_known);
        self.tell_of(&outs.kept);
    }

    /// What a journal said of the file with this number.
    fn file_of(&self, journal: ObjectId, number: &str) -> Option<FileMove> {
        let mut plan = read_journal(self.repo, journal).ok()?.plan;
        Self::check_names(&plan).ok()?;
        let number: usize = number.split('-').next()?.parse().ok()?;
        (number < plan.files.len()).then(|| plan.files.swap_remove(number))
    }
}

fn entries(directory: &Path) -> Vec<DirEntry> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().collect()
}

/// Whether the last file came into a directory some time ago.
fn is_old(operation: &DirEntry) -> bool {
    let at = operation.metadata().and_then(|about| about.modified());
    at.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > PATIENCE))
}
