//! What untracked files hold, as far as it is known from the last time they were
//! read: git's index says so of tracked files, nothing does of the others. A
//! file whose stat data are the same is not read again.

use super::Repo;
use super::scan::Unread;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

/// The name of the record in the scratch directory.
const RECORD: &str = "known";

/// Fewer files are read as fast as they are looked up.
const WORTHWHILE: usize = 100;

/// A file that was changed so few seconds before it is read may change again after with the same
/// time: no file system's clock is coarser.
const COARSEST: i64 = 2;

/// The files whose content is known.
#[derive(Debug, Default)]
pub struct Known {
    old: HashMap<BString, (u64, ObjectId)>,
    new: Vec<(BString, u64, ObjectId)>,
    learnt: bool,
}

impl Known {
    /// Reads what is known, for a capture of so many untracked files.
    pub fn load(repo: &Repo, files: usize) -> Self {
        let record = if files < WORTHWHILE { None } else { std::fs::read(repo.scratch_path(RECORD)).ok() };
        // What cannot be understood here is read from the files.
        let lines = record.iter().flat_map(|record| record.split_str("\0")).filter_map(parse);
        Self { old: lines.collect(), ..Self::default() }
    }

    /// The content of a file, where it is known and git still has it.
    pub fn find(&mut self, repo: &Repo, file: &Unread) -> Option<ObjectId> {
        let (stamp, id) = *self.old.get(&file.path)?;
        if file.stamp != Some(stamp) || !repo.has_object(id) {
            return None;
        }
        self.new.push((file.path.clone(), stamp, id));
        Some(id)
    }

    /// Learns what a file holds that was read after it had been looked at.
    pub fn learn(&mut self, file: &Unread, id: ObjectId) {
        if let Some(stamp) = file.stamp {
            self.new.push((file.path.clone(), stamp, id));
            self.learnt = true;
        }
    }

    /// Keeps it for the next time.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn save(self, repo: &Repo) -> Result<()> {
        if !self.learnt || self.new.len() < WORTHWHILE {
            return Ok(());
        }
        let mut record = Vec::new();
        for (path, stamp, id) in &self.new {
            record.extend_from_slice(format!("{id} {stamp} ").as_bytes());
            record.extend_from_slice(path);
            record.push(0);
        }
        let new = repo.scratch()?.join(format!("{RECORD}.{}", std::process::id()));
        std::fs::write(&new, record)?;
        Ok(std::fs::rename(&new, repo.scratch_path(RECORD))?)
    }
}

fn parse(line: &[u8]) -> Option<(BString, (u64, ObjectId))> {
    let (id, rest) = line.split_once_str(" ")?;
    let (stamp, path) = rest.split_once_str(" ")?;
    Some((path.into(), (stamp.to_str().ok()?.parse().ok()?, ObjectId::from_hex(id).ok()?)))
}

/// What changes whenever a file's content does; `None` for a file that was changed just now.
pub fn stamp_of(stat: &rustix::fs::Stat) -> Option<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_secs();
    let limit = i64::try_from(now).ok()? - COARSEST;
    if stat.st_mtime >= limit || stat.st_ctime >= limit {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec).hash(&mut hasher);
    (stat.st_ino, stat.st_dev, stat.st_mode).hash(&mut hasher);
    Some(hasher.finish())
}
