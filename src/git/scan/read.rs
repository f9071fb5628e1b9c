//! Which tracked files were read, and what they held. The index only says what git made of a file, by the settings, attributes
//! and filters of that day, and trusts stat data that are less than the whole: a file that it calls clean may have other
//! bytes than its blob. So each file is read once, and is known for as long as its stat data are the same.

use crate::git::repo::Repo;
use crate::git::repo::scratch::{replace, take_number, verify, whole, write_record};
use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The name of the record in the scratch directory.
const RECORD: &str = "read";

/// So few files, and so few bytes, are read as fast as a record is written.
const WORTHWHILE: (usize, u64) = (32, 1 << 20);

/// A file that was read, or is known from an earlier time, by its path, its stat data and its entry's blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadFile {
    key: u64,
    /// Its raw bytes as a blob; `None` if they are the entry's.
    other: Option<ObjectId>,
    /// How many bytes were read now.
    read: Option<u64>,
}

/// Where there is much to read, what was read is written down so often: a hook that gives up before the end has a successor
/// that goes on from there.
const WRITTEN_DOWN: Duration = Duration::from_secs(4);

/// What is known of tracked files.
#[derive(Debug)]
pub struct ReadFiles {
    hash: gix::hash::Kind,
    /// Where the record is.
    record: PathBuf,
    /// When what was read was last written down, and what came since the beginning.
    read: Mutex<(Instant, Vec<ReadFile>)>,
    /// Files whose bytes are their entries', sorted.
    plain: Vec<u64>,
    /// Files that hold something else.
    others: HashMap<u64, ObjectId>,
}

/// By what a file is known whose stat data have this stamp.
pub fn key_of(path: &BStr, stamp: u64, entry: ObjectId) -> u64 {
    let mut hasher = DefaultHasher::new();
    (path.as_bytes(), stamp, entry).hash(&mut hasher);
    hasher.finish()
}

impl ReadFile {
    /// One that was read now, and has so many bytes.
    pub fn now(key: u64, holds: ObjectId, entry: ObjectId, size: u64) -> Self {
        Self { key, other: (holds != entry).then_some(holds), read: Some(size) }
    }

    /// What it holds.
    pub fn holds(&self, entry: ObjectId) -> ObjectId {
        self.other.unwrap_or(entry)
    }
}

impl ReadFiles {
    /// Reads the record. What is damaged says nothing.
    pub fn load(repo: &Repo) -> Self {
        let record = std::fs::read(repo.scratch_path(RECORD)).ok();
        let hash = repo.hash_kind();
        let (plain, others) = record.and_then(|record| parse(&record, hash)).unwrap_or_default();
        let read = Mutex::new((Instant::now(), Vec::new()));
        Self { hash, record: repo.scratch_path(RECORD), read, plain, others }
    }

    /// The kind of hash that content is named by.
    pub fn hash(&self) -> gix::hash::Kind {
        self.hash
    }

    /// The file with this key, if it was read before.
    pub fn find(&self, key: u64) -> Option<ReadFile> {
        let known = |other| ReadFile { key, other, read: None };
        match self.plain.binary_search(&key) {
            Ok(_) => Some(known(None)),
            Err(_) => self.others.get(&key).map(|id| known(Some(*id))),
        }
    }

    /// Takes in a file that was read now.
    pub fn add(&self, file: ReadFile) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.1.push(file);
        if read.0.elapsed() >= WRITTEN_DOWN {
            // Without it, nothing is lost but time.
            let _ = replace(&self.record, &whole(&self.all(&read.1, true)));
            read.0 = Instant::now();
        }
    }

    /// Writes what a scan of so many tracked files has found. Where it passed over directories, what was known of their files
    /// stays known, until there is much that may be of files that are gone.
    pub fn save(&self, repo: &Repo, found: &[ReadFile], files: usize, passed_over: bool) {
        let sizes: Vec<u64> = found.iter().filter_map(|file| file.read).collect();
        if sizes.len() < WORTHWHILE.0 && sizes.iter().sum::<u64>() < WORTHWHILE.1 {
            return;
        }
        let kept = passed_over && self.plain.len() <= 2 * files + WORTHWHILE.0;
        write_record(repo, RECORD, &self.all(found, kept));
    }

    /// A record of these files, and of those that were known where they are kept.
    fn all(&self, found: &[ReadFile], kept: bool) -> Vec<u8> {
        let mut plain: Vec<u64> = found.iter().filter(|file| file.other.is_none()).map(|file| file.key).collect();
        let mut others: HashMap<u64, ObjectId> =
            found.iter().filter_map(|file| Some((file.key, file.other?))).collect();
        if kept {
            plain.extend(&self.plain);
            others.extend(&self.others);
        }
        plain.sort_unstable();
        plain.dedup();
        let mut record = (plain.len() as u64).to_be_bytes().to_vec();
        record.extend(plain.iter().flat_map(|key| key.to_be_bytes()));
        for (key, id) in others {
            record.extend(key.to_be_bytes());
            record.extend_from_slice(id.as_bytes());
        }
        record
    }
}

fn parse(record: &[u8], hash: gix::hash::Kind) -> Option<(Vec<u64>, HashMap<u64, ObjectId>)> {
    let mut rest = verify(record)?;
    let count = usize::try_from(take_number(&mut rest)?).ok()?;
    let (plain, mut rest) = rest.split_at_checked(count.checked_mul(8)?)?;
    let plain = plain.as_chunks().0.iter().map(|key| u64::from_be_bytes(*key)).collect();
    let mut others = HashMap::new();
    while !rest.is_empty() {
        let key = take_number(&mut rest)?;
        let (id, after) = rest.split_at_checked(hash.len_in_bytes())?;
        rest = after;
        others.insert(key, ObjectId::try_from(id).ok()?);
    }
    Some((plain, others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    /// Enough files to be worth a record; each fourth holds something else.
    fn files(read: Option<u64>) -> Vec<ReadFile> {
        let id = ObjectId::from_bytes_or_panic(&[7; 20]);
        let other = |key: u64| key.is_multiple_of(4).then_some(id);
        (0..WORTHWHILE.0 as u64).map(|key| ReadFile { key, other: other(key), read }).collect()
    }

    #[test]
    fn what_was_read_is_known_until_a_later_scan_does_not_meet_it() {
        let f = Fixture::new();
        ReadFiles::load(&f.repo).save(&f.repo, &files(Some(3))[1..], 0, false);
        assert!(!f.repo.scratch_path(RECORD).exists(), "so few are not worth it");
        ReadFiles::load(&f.repo).save(&f.repo, &files(Some(3)), 0, false);
        let known = ReadFiles::load(&f.repo);
        let found: Vec<_> = (0..WORTHWHILE.0 as u64).filter_map(|key| known.find(key)).collect();
        assert_eq!(found, files(None));
        assert_eq!(known.find(1000), None);
        let large = ReadFile { key: 1000, other: None, read: Some(WORTHWHILE.1) };
        known.save(&f.repo, &[large], 0, true);
        let known = ReadFiles::load(&f.repo);
        assert!(known.find(1000).is_some() && known.find(4) == Some(files(None)[4]), "passed over, and kept");
        known.save(&f.repo, &[large], 0, false);
        assert_eq!(ReadFiles::load(&f.repo).find(4), None, "it is not there any more");
        let many = ReadFiles { plain: (0..100).collect(), ..ReadFiles::load(&f.repo) };
        for (files, kept) in [(40, true), (20, false)] {
            many.save(&f.repo, &[large], files, true);
            assert_eq!(ReadFiles::load(&f.repo).find(50).is_some(), kept, "a hundred for {files} files");
        }
    }

    #[test]
    fn a_record_that_is_damaged_says_nothing() {
        let f = Fixture::new();
        ReadFiles::load(&f.repo).save(&f.repo, &files(Some(3)), 0, false);
        let whole = std::fs::read(f.repo.scratch_path(RECORD)).expect("read the record");
        assert!(parse(&whole, f.repo.hash_kind()).is_some());
        for at in 0..whole.len() {
            assert!(parse(&whole[..at], f.repo.hash_kind()).is_none(), "it ends at {at}");
        }
        for nonsense in [&[0xff; 8][..], &[0, 0, 0, 0, 0, 0, 0, 1], &[0; 9], &[0; 30]] {
            write_record(&f.repo, RECORD, nonsense);
            let record = std::fs::read(f.repo.scratch_path(RECORD)).expect("read the record");
            assert!(parse(&record, f.repo.hash_kind()).is_none(), "{nonsense:?}");
        }
    }

    #[test]
    fn what_was_read_is_known_to_the_next_though_the_end_was_not_reached() {
        let f = Fixture::new();
        f.repo.scratch().expect("make the directory");
        let mut first = ReadFiles::load(&f.repo);
        first.add(files(Some(3))[1]);
        assert!(!f.repo.scratch_path(RECORD).exists(), "not so soon");
        first.read.get_mut().expect("a lock").0 = Instant::now().checked_sub(WRITTEN_DOWN).expect("a time");
        first.add(files(Some(3))[4]);
        let known = ReadFiles::load(&f.repo);
        assert_eq!([1, 4, 5].map(|key| known.find(key)), [Some(files(None)[1]), Some(files(None)[4]), None]);
    }

    #[test]
    fn a_file_is_known_by_all_three() {
        let id = |byte| ObjectId::from_bytes_or_panic(&[byte; 20]);
        let key = key_of("a".into(), 1, id(1));
        for other in [key_of("b".into(), 1, id(1)), key_of("a".into(), 2, id(1)), key_of("a".into(), 1, id(2))] {
            assert_ne!(key, other);
        }
    }
}
