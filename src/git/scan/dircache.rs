//! What the last scan learnt. Untracked files: their content, which git's index does not
//! know; one whose stat data are the same is not read again. Directories: one whose stat data
//! are the same still has the same names, untracked ones included, and is not read again.

use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::repo::scratch::{replace, take_number, verify, write_record};
use crate::git::scan::found::{Candidate, Listing, Name};
use crate::git::worktree::Worktree;
use crate::git::worktree::stat::{stamp_of, type_of};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The name of the record in the scratch directory.
const RECORD: &str = "known";

/// Fewer files than this are read as fast as they are looked up.
const WORTHWHILE: usize = 100;

/// The name of the directories' record in the scratch directory.
const LISTED: &str = "listed";

/// Fewer directories than this are read as fast as they are looked up.
const WORTHWHILE_DIRECTORIES: usize = 16;

/// Set in the byte that stands before each name in the record; its low bits are the file's type.
const KIND: u8 = b'@';

/// The files whose content is known.
#[derive(Debug, Default)]
pub struct BlobCache {
    old: HashMap<BString, (u64, ObjectId)>,
    new: Vec<(BString, u64, ObjectId)>,
    learnt: bool,
}

impl BlobCache {
    /// Reads what is known, for a capture of so many untracked files.
    pub fn load(repo: &Repo, files: usize) -> Self {
        let record = if files < WORTHWHILE { None } else { std::fs::read(repo.scratch_path(RECORD)).ok() };
        // A file whose line cannot be parsed is read again.
        let lines = record.iter().flat_map(|record| record.split_str("\0")).filter_map(parse);
        Self { old: lines.collect(), ..Self::default() }
    }

    /// The content of a file, where it is known and git still has it.
    pub fn find(&mut self, repo: &Repo, file: &Candidate) -> Option<ObjectId> {
        let (stamp, id) = *self.old.get(&file.path)?;
        if file.stamp != Some(stamp) || !Objects::new(repo).has_object(id) {
            return None;
        }
        self.new.push((file.path.clone(), stamp, id));
        Some(id)
    }

    /// Whether the content of a file is known, and git still has it.
    pub fn knows(&self, repo: &Repo, file: &Candidate) -> bool {
        let known = self.old.get(&file.path).filter(|(stamp, _)| file.stamp == Some(*stamp));
        known.is_some_and(|(_, id)| Objects::new(repo).has_object(*id))
    }

    /// Records the content of a file that was read after its stat.
    pub fn insert(&mut self, file: &Candidate, id: ObjectId) {
        if let Some(stamp) = file.stamp {
            self.new.push((file.path.clone(), stamp, id));
            self.learnt = true;
        }
    }

    /// Writes the record for the next scan.
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
        Ok(replace(&repo.scratch()?.join(RECORD), &record)?)
    }
}

/// The directories that are known.
#[derive(Debug, Default)]
pub struct DirCache {
    old: HashMap<u64, (u64, Vec<Name>)>,
    /// The file system, if the times of its directories reliably change when a name in them comes or goes.
    device: Option<rustix::fs::Dev>,
}

impl DirCache {
    /// Reads the record. As git does for its untracked cache, it believes the user's setting about whether the times of
    /// directories are reliable.
    pub fn load(repo: &Repo) -> Self {
        let given = repo.given("core.untrackedCache").is_some();
        let key = if given { "core.untrackedCache" } else { "feature.manyFiles" };
        let device = match repo.boolean(key) {
            Ok(Some(true)) => Worktree::new(repo).local_device(),
            Ok(Some(false)) if given => None,
            // `keep`, git's default.
            _ => Worktree::new(repo).reliable_mtime_device(),
        };
        let old = device.and_then(|_| Self::parse(&std::fs::read(repo.scratch_path(LISTED)).ok()?));
        Self { old: old.unwrap_or_default(), device }
    }

    /// The key and the stamp of a directory; `None` on another file system, or for one that was changed just now.
    pub fn stamp(&self, path: &BStr, stat: &rustix::fs::Stat, names: impl FnOnce() -> u64) -> Option<(u64, u64)> {
        if self.device != Some(stat.st_dev) {
            return None;
        }
        Some((key_of(path, names()), stamp_of(stat)?))
    }

    /// The names that a directory is known to hold beside those of the index.
    pub fn unknown(&self, (key, stamp): (u64, u64)) -> Option<&[Name]> {
        self.old.get(&key).filter(|known| known.0 == stamp).map(|known| known.1.as_slice())
    }

    /// What was known of a directory that was not looked at.
    pub fn earlier(&self, path: &BStr, names: impl FnOnce() -> u64) -> Option<Listing> {
        self.device?;
        let key = key_of(path, names());
        let (stamp, unknown) = self.old.get(&key)?;
        Some(Listing { stamp: (key, *stamp), unknown: unknown.clone() })
    }

    /// Writes what a scan has found, for the next scan.
    pub fn save(&self, repo: &Repo, listed: &[Listing]) {
        let is_known = |listing: &Listing| self.unknown(listing.stamp).is_some();
        if listed.len() < WORTHWHILE_DIRECTORIES || listed.iter().all(is_known) {
            return;
        }
        let mut record = Vec::new();
        for Listing { stamp: (key, stamp), unknown } in listed {
            record.extend([key.to_be_bytes(), stamp.to_be_bytes()].concat());
            for (name, kind) in unknown {
                record.push(KIND | u8::try_from(kind.as_raw_mode() >> 12).unwrap_or_default());
                record.extend_from_slice(name);
                record.push(0);
            }
            record.push(0);
        }
        write_record(repo, LISTED, &record);
    }

    fn parse(record: &[u8]) -> Option<HashMap<u64, (u64, Vec<Name>)>> {
        let mut rest = verify(record)?;
        let mut known = HashMap::with_capacity(rest.len() / 17);
        while !rest.is_empty() {
            let (key, stamp) = (take_number(&mut rest)?, take_number(&mut rest)?);
            let mut unknown = Vec::new();
            loop {
                let (first, after) = rest.split_first()?;
                rest = after;
                if *first == 0 {
                    break;
                }
                let (name, after) = rest.split_once_str("\0")?;
                rest = after;
                unknown.push((name.to_vec(), type_of(first & !KIND)));
            }
            known.insert(key, (stamp, unknown));
        }
        Some(known)
    }
}

fn key_of(path: &BStr, names: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path.as_bytes(), names).hash(&mut hasher);
    hasher.finish()
}

fn parse(line: &[u8]) -> Option<(BString, (u64, ObjectId))> {
    let (id, rest) = line.split_once_str(" ")?;
    let (stamp, path) = rest.split_once_str(" ")?;
    Some((path.into(), (stamp.to_str().ok()?.parse().ok()?, ObjectId::from_hex(id).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use crate::model::checkpoint::Kind;
    use rustix::fs::FileType;

    fn listings(count: u64) -> Vec<Listing> {
        let names = |at: u64| {
            vec![(format!("f\n{at}").into_bytes(), FileType::RegularFile), (b"d\xff/".to_vec(), FileType::Directory)]
        };
        (0..count).map(|at| Listing { stamp: (at, at + 1000), unknown: names(at) }).collect()
    }

    fn cache(f: &Fixture) -> DirCache {
        let record = std::fs::read(f.repo.scratch_path(LISTED)).ok();
        DirCache { old: record.and_then(|record| DirCache::parse(&record)).unwrap_or_default(), device: None }
    }

    #[test]
    fn directories_that_were_kept_are_known_at_the_same_time_only() {
        let f = Fixture::new();
        let all = listings(WORTHWHILE_DIRECTORIES as u64);
        cache(&f).save(&f.repo, &all[1..]);
        assert!(!f.repo.scratch_path(LISTED).exists(), "so few are not worth it");
        cache(&f).save(&f.repo, &all);
        let known = cache(&f);
        for Listing { stamp: (key, stamp), unknown } in &all {
            assert_eq!(known.unknown((*key, *stamp)), Some(unknown.as_slice()));
            assert_eq!(known.unknown((*key, stamp + 1)), None, "it has changed since");
            assert_eq!(known.unknown((key + 100, *stamp)), None, "it is another");
        }
    }

    #[test]
    fn a_record_of_directories_that_is_damaged_anywhere_says_nothing() {
        let f = Fixture::new();
        cache(&f).save(&f.repo, &listings(WORTHWHILE_DIRECTORIES as u64));
        let whole = std::fs::read(f.repo.scratch_path(LISTED)).expect("read the record");
        assert!(DirCache::parse(&whole).is_some_and(|known| known.len() == WORTHWHILE_DIRECTORIES));
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            assert!(DirCache::parse(&damaged).is_none(), "a byte is wrong at {at}");
            assert!(DirCache::parse(&whole[..at]).is_none(), "it ends at {at}");
        }
        // Whole, and nonsense all the same.
        for nonsense in [&b"x"[..], &[0; 15], &[0; 16], b"0123456789abcdefno end", b"0123456789abcdef@no zero\0"] {
            write_record(&f.repo, LISTED, nonsense);
            let record = std::fs::read(f.repo.scratch_path(LISTED)).expect("read the record");
            assert!(DirCache::parse(&record).is_none(), "{:?}", nonsense.as_bstr());
        }
    }

    #[test]
    fn what_a_file_holds_is_known_by_its_stamp_and_only_while_git_has_it() {
        let f = Fixture::new();
        let (blob, gone) = (f.blob("one"), ObjectId::from_bytes_or_panic(&[7; 20]));
        let file = |at: usize, stamp| Candidate {
            path: format!("f \n{at}").into(),
            kind: Kind::File,
            size: 0,
            stamp,
            private: false,
        };
        let mut cache = BlobCache::load(&f.repo, WORTHWHILE);
        for at in 0..WORTHWHILE {
            cache.insert(&file(at, Some(5)), if at == 1 { gone } else { blob });
        }
        cache.insert(&file(WORTHWHILE, None), blob);
        cache.save(&f.repo).expect("keep it");
        let mut known = BlobCache::load(&f.repo, WORTHWHILE);
        assert_eq!(known.find(&f.repo, &file(0, Some(5))), Some(blob));
        assert_eq!(known.find(&f.repo, &file(0, Some(6))), None, "it has changed since");
        assert_eq!(known.find(&f.repo, &file(0, None)), None, "it was changed just now");
        assert_eq!(known.find(&f.repo, &file(1, Some(5))), None, "git does not have it");
        assert_eq!(known.find(&f.repo, &file(WORTHWHILE, Some(5))), None, "it had no stamp");
        let odd = format!("{blob} 5 a\0{blob} x b\0zz 5 c\0\0 \0{blob}\0{blob} 5 d");
        std::fs::write(f.repo.scratch_path(RECORD), odd).expect("damage it");
        let mut known: Vec<_> = BlobCache::load(&f.repo, WORTHWHILE).old.into_keys().collect();
        known.sort();
        assert_eq!(known, ["a", "d"], "what makes no sense is passed over");
    }
}
