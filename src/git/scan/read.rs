//! Which tracked files were read, and what they held. The index only says what git made of a file, by the settings, attributes
//! and filters of that day, and trusts stat data that are less than the whole: a file that it calls clean may have other
//! bytes than its blob. So each file is read once, and is known for as long as its stat data are the same.

use crate::git::repo::Repo;
use crate::git::repo::scratch::{replace, take_number, verify, whole, write_record};
use crate::git::worktree::stat::{just_now, stamped};
use gix::ObjectId;
use gix::bstr::BStr;
use rustix::fs::Stat;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The name of the record in the scratch directory.
const RECORD: &str = "read";

/// So few files, and so few bytes, are read as fast as a record is written.
const WORTHWHILE: (usize, u64) = (32, 1 << 20);

/// Where there is much to read, what was read is written down so often: a hook that gives up before the end has a successor
/// that goes on from there.
const WRITTEN_DOWN: Duration = Duration::from_secs(4);

/// A file that was read now, by its path, its stat data and its entry's blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReadFile {
    key: u64,
    /// Its raw bytes as a blob; `None` if they are the entry's.
    other: Option<ObjectId>,
    size: u64,
}

/// What is known of tracked files.
#[derive(Debug)]
pub struct ReadFiles {
    hash: gix::hash::Kind,
    /// Where the record is.
    record: PathBuf,
    /// What was changed since this second may change again without a sign.
    limit: Option<i64>,
    /// When what was read was last written down, and what came since the beginning.
    read: Mutex<(Instant, Vec<ReadFile>)>,
    /// Whether much that is known may be of files that are gone.
    has_old: bool,
    /// Files whose bytes are their entries'.
    plain: Keys,
    /// Files that hold something else, and whether the scan has met them.
    others: HashMap<u64, (ObjectId, AtomicBool)>,
}

impl ReadFiles {
    /// Reads the record, of a repository with so many tracked files. What is damaged says nothing.
    pub fn load(repo: &Repo, files: usize) -> Self {
        let record = std::fs::read(repo.scratch_path(RECORD)).ok();
        let hash = repo.hash_kind();
        let (plain, others) = record.and_then(|record| parse(&record, hash)).unwrap_or_default();
        let has_old = plain.len() + others.len() > 2 * files + WORTHWHILE.0;
        Self {
            hash,
            record: repo.scratch_path(RECORD),
            limit: just_now(),
            read: Mutex::new((Instant::now(), Vec::new())),
            has_old,
            plain: Keys::new(&plain, has_old),
            others: others.into_iter().map(|(key, id)| (key, (id, AtomicBool::new(false)))).collect(),
        }
    }

    /// The kind of hash that content is named by.
    pub fn hash(&self) -> gix::hash::Kind {
        self.hash
    }

    /// By what a file is known that has these stat data; `None` for one that was changed just now.
    pub fn key_of(&self, path: &BStr, stat: &Stat, entry: ObjectId) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        hasher.write(&stamped(stat, self.limit?)?);
        hasher.write(entry.as_bytes());
        hasher.write(path);
        Some(hasher.finish())
    }

    /// What the file with this key holds, if it was read before.
    pub fn find(&self, key: u64, entry: ObjectId) -> Option<ObjectId> {
        if self.plain.meet(key) {
            return Some(entry);
        }
        let (id, met) = self.others.get(&key)?;
        met.store(true, Ordering::Relaxed);
        Some(*id)
    }

    /// Takes in a file that was read now.
    pub fn add(&self, key: u64, holds: ObjectId, entry: ObjectId, size: u64) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.1.push(ReadFile { key, other: (holds != entry).then_some(holds), size });
        if read.0.elapsed() >= WRITTEN_DOWN {
            // Without it, nothing is lost but time.
            let _ = replace(&self.record, &whole(&self.all(&read.1, true)));
            read.0 = Instant::now();
        }
    }

    /// Writes what a scan has found. What was known stays known until there is much that may be of files that are gone: the
    /// scan may have passed over some, and to note which ones it met costs each of its threads more than to keep them.
    pub fn save(&self, repo: &Repo) {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.1.len() < WORTHWHILE.0 && read.1.iter().map(|file| file.size).sum::<u64>() < WORTHWHILE.1 {
            return;
        }
        write_record(repo, RECORD, &self.all(&read.1, !self.has_old));
    }

    /// A record of these files, and of those that were known: of all where they are kept, else of those that were met.
    fn all(&self, read: &[ReadFile], kept: bool) -> Vec<u8> {
        let mut plain: Vec<u64> = read.iter().filter(|file| file.other.is_none()).map(|file| file.key).collect();
        let mut others: HashMap<u64, ObjectId> = read.iter().filter_map(|file| Some((file.key, file.other?))).collect();
        let stays = |met: &AtomicBool| kept || met.load(Ordering::Relaxed);
        plain.extend(self.plain.all(stays));
        others.extend(self.others.iter().filter(|(_, (_, met))| stays(met)).map(|(key, (id, _))| (*key, *id)));
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

/// Numbers that are spread evenly, as hashes are, and which of them were met. 0 is none of them.
#[derive(Debug, Default)]
struct Keys {
    /// In their order, each where its first bits say, or as soon behind that as there is room.
    slots: Vec<u64>,
    /// None where that is not asked for.
    met: Vec<AtomicBool>,
    bits: u32,
}

impl Keys {
    fn new(sorted: &[u64], notes_met: bool) -> Self {
        let bits = (2 * sorted.len()).next_power_of_two().ilog2();
        let mut keys = Self { slots: vec![0; 1 << bits], met: Vec::new(), bits };
        let mut free = 0;
        for key in sorted.iter().filter(|key| **key != 0) {
            let at = keys.begin(*key).max(free);
            keys.slots.resize(keys.slots.len().max(at + 1), 0);
            keys.slots[at] = *key;
            free = at + 1;
        }
        if notes_met {
            keys.met.resize_with(keys.slots.len(), AtomicBool::default);
        }
        keys
    }

    /// Where to look for a number first.
    fn begin(&self, key: u64) -> usize {
        usize::try_from(key.checked_shr(u64::BITS - self.bits).unwrap_or(0)).unwrap_or(0)
    }

    /// Whether a number is among them; then it is met.
    fn meet(&self, key: u64) -> bool {
        let begin = self.begin(key);
        let run = self.slots.get(begin..).unwrap_or_default().iter().take_while(|known| (1..=key).contains(*known));
        let Some(at) = run.enumerate().find(|(_, known)| **known == key).map(|(at, _)| begin + at) else {
            return false;
        };
        if let Some(met) = self.met.get(at) {
            met.store(true, Ordering::Relaxed);
        }
        true
    }

    /// Those that were met, or all of them.
    fn all(&self, stays: impl Fn(&AtomicBool) -> bool) -> impl Iterator<Item = u64> {
        let stays = move |at: usize| self.met.get(at).is_none_or(&stays);
        self.slots.iter().enumerate().filter(move |(at, key)| **key != 0 && stays(*at)).map(|(_, key)| *key)
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

    const MANY: u64 = WORTHWHILE.0 as u64;

    fn id(of: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[of; 20])
    }

    /// Spread as hashes are.
    fn key(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Each fourth holds something else than its entry.
    fn content(number: u64) -> ObjectId {
        id(if number.is_multiple_of(4) { 7 } else { 1 })
    }

    /// As if these files were read.
    fn add(files: &ReadFiles, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            files.add(key(number), content(number), id(1), 3);
        }
    }

    fn known(files: &ReadFiles, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let is_known = |number: &u64| {
            let holds = files.find(key(*number), id(1));
            assert!(holds.is_none_or(|holds| holds == content(*number)));
            holds.is_some()
        };
        numbers.into_iter().filter(is_known).collect()
    }

    #[test]
    fn what_was_read_is_known_until_a_later_scan_does_not_meet_it() {
        let f = Fixture::new();
        let few = ReadFiles::load(&f.repo, 0);
        add(&few, 1..MANY);
        few.save(&f.repo);
        assert!(!f.repo.scratch_path(RECORD).exists(), "so few are not worth it");
        add(&few, [MANY]);
        few.save(&f.repo);
        let scan = ReadFiles::load(&f.repo, 40);
        assert_eq!(known(&scan, 0..=2 * MANY), (1..=MANY).collect::<Vec<_>>());
        scan.save(&f.repo);
        // Another meets some of them, and reads as many others.
        let scan = ReadFiles::load(&f.repo, 40);
        known(&scan, [1, 4]);
        add(&scan, 100..200);
        scan.save(&f.repo);
        assert_eq!(known(&ReadFiles::load(&f.repo, 40), 1..=MANY).len(), WORTHWHILE.0, "kept");
        let scan = ReadFiles::load(&f.repo, 20);
        known(&scan, [1, 4]);
        add(&scan, 200..200 + MANY);
        scan.save(&f.repo);
        assert_eq!(known(&ReadFiles::load(&f.repo, 20), 1..200), [1, 4], "the others are not there any more");
    }

    #[test]
    fn a_record_does_not_grow_for_ever() {
        let f = Fixture::new();
        for (files, kept) in [(60, true), (20, false)] {
            let many = ReadFiles::load(&f.repo, 1000);
            add(&many, 1..=133);
            many.save(&f.repo);
            let scan = ReadFiles::load(&f.repo, files);
            add(&scan, 1000..1000 + MANY);
            scan.save(&f.repo);
            assert_eq!(
                known(&ReadFiles::load(&f.repo, files), [50]).len(),
                usize::from(kept),
                "a hundred for {files} files"
            );
        }
    }

    #[test]
    fn whatever_the_numbers_are_each_is_found_and_no_other() {
        for count in [0, 1, 2, 3, 7, 64, 1000] {
            for of in [key, |number| number, |number| u64::MAX - number] {
                let mut sorted: Vec<u64> = (1..=count).map(|number| of(2 * number)).collect();
                sorted.sort_unstable();
                let keys = Keys::new(&sorted, false);
                for number in 1..=count {
                    assert!(keys.meet(of(2 * number)) && !keys.meet(of(2 * number + 1)), "{number} of {count}");
                }
                assert!(!keys.meet(0) && keys.all(|_| false).eq(sorted), "{count}");
            }
        }
    }

    #[test]
    fn a_record_that_is_damaged_says_nothing() {
        let f = Fixture::new();
        let files = ReadFiles::load(&f.repo, 0);
        add(&files, 0..MANY);
        files.save(&f.repo);
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
}
