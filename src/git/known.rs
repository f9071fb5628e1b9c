//! What is known from the last time that the worktree was looked at. Files: git's
//! index says what tracked files hold, nothing does of the others; one whose stat
//! data are the same is not read again. Directories: one that held just what the
//! index says, and whose stat data are the same, still does, and is not read.

use super::Repo;
use super::scan::Unread;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::{HashMap, HashSet};
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

/// The name of the directories' record in the scratch directory.
const LISTED: &str = "listed";

/// Fewer directories are read as fast.
const WORTHWHILE_DIRECTORIES: usize = 16;

/// The directories that are known to hold what the index says and nothing else.
#[derive(Debug, Default)]
pub struct Listings {
    old: HashSet<(u64, u64)>,
    /// The file system whose directories tell by their times when a name comes or goes.
    device: Option<rustix::fs::Dev>,
}

impl Listings {
    /// Reads what is known.
    pub fn load(repo: &Repo) -> Self {
        let Some(device) = repo.worktree.telling_device() else { return Self::default() };
        let record = std::fs::read(repo.scratch_path(LISTED)).unwrap_or_default();
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        // Of a damaged record no number is met again.
        let old = record.chunks_exact(16).map(|pair| (number(&pair[..8]), number(&pair[8..]))).collect();
        Self { old, device: Some(device) }
    }

    /// A directory with the names that the index has in it, at the time of its last change; `None`
    /// for one that cannot be known, or that was changed just now.
    pub fn stamp(&self, path: &BStr, stat: &rustix::fs::Stat, names: impl FnOnce() -> u64) -> Option<(u64, u64)> {
        if self.device != Some(stat.st_dev) {
            return None;
        }
        let stamp = stamp_of(stat)?;
        let mut hasher = DefaultHasher::new();
        (path.as_bytes(), names()).hash(&mut hasher);
        Some((hasher.finish(), stamp))
    }

    /// Whether a directory is known to hold what the index says.
    pub fn has(&self, stamp: (u64, u64)) -> bool {
        self.old.contains(&stamp)
    }

    /// Keeps for the next time what a scan has found.
    pub fn save(&self, repo: &Repo, listed: &[(u64, u64)]) {
        if listed.len() < WORTHWHILE_DIRECTORIES || listed.iter().all(|stamp| self.old.contains(stamp)) {
            return;
        }
        let record: Vec<u8> =
            (listed.iter()).flat_map(|(path, stamp)| [path.to_be_bytes(), stamp.to_be_bytes()]).flatten().collect();
        // Without it the next scan takes a little longer.
        let Ok(scratch) = repo.scratch() else { return };
        let new = scratch.join(format!("{LISTED}.new"));
        let _ = std::fs::write(&new, record).and_then(|()| std::fs::rename(&new, scratch.join(LISTED)));
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
