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
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
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
    /// Its place in the index.
    at: usize,
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
            plain: Keys::new(plain),
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

    /// What the file with this key, at this place in the index, holds, if it was read before.
    pub fn find(&self, at: usize, key: u64, entry: ObjectId) -> Option<ObjectId> {
        if self.plain.meet(at, key) {
            return Some(entry);
        }
        let (id, met) = self.others.get(&key)?;
        met.store(true, Ordering::Relaxed);
        Some(*id)
    }

    /// Takes in a file that was read now.
    pub fn add(&self, at: usize, key: u64, holds: ObjectId, entry: ObjectId, size: u64) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.1.push(ReadFile { at, key, other: (holds != entry).then_some(holds), size });
        if read.0.elapsed() >= WRITTEN_DOWN {
            // Without it, nothing is lost but time.
            let _ = replace(&self.record, &whole(&self.all(&read.1, true)));
            read.0 = Instant::now();
        }
    }

    /// Writes what a scan has found. What was known stays known until there is much that may be of files that are gone: the
    /// scan may have passed over some.
    pub fn save(&self, repo: &Repo) {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let is_little = read.1.len() < WORTHWHILE.0 && read.1.iter().map(|file| file.size).sum::<u64>() < WORTHWHILE.1;
        if is_little && !self.plain.is_out_of_order() {
            return;
        }
        write_record(repo, RECORD, &self.all(&read.1, !self.has_old));
    }

    /// A record of these files, and of those that were known: of all where they are kept, else of those that were met.
    fn all(&self, read: &[ReadFile], kept: bool) -> Vec<u8> {
        let added = read.iter().filter(|file| file.other.is_none()).map(|file| (place_of(file.at), file.key));
        let mut plain: Vec<(u32, u64)> = self.plain.with_places(kept).chain(added).collect();
        plain.sort_by_key(|(place, _)| *place);
        plain.dedup();
        let mut others: HashMap<u64, ObjectId> = read.iter().filter_map(|file| Some((file.key, file.other?))).collect();
        let stays = |met: &AtomicBool| kept || met.load(Ordering::Relaxed);
        others.extend(self.others.iter().filter(|(_, (_, met))| stays(met)).map(|(key, (id, _))| (*key, *id)));
        let mut record = (plain.len() as u64).to_be_bytes().to_vec();
        record.extend(plain.iter().flat_map(|(_, key)| key.to_be_bytes()));
        for (key, id) in others {
            record.extend(key.to_be_bytes());
            record.extend_from_slice(id.as_bytes());
        }
        record
    }
}

/// So far from where a number is looked for first it is looked for next: of files that came and went others have moved a little.
const NEAR: usize = 64;

/// So many numbers are looked for among all of them; for more, these are put in order.
const FEW: usize = 32;

/// Numbers in the order of the index, as it was when they were written down. They are asked for in that order: at random, most of
/// the time would go to wait for the memory.
#[derive(Debug, Default)]
struct Keys {
    all: Vec<u64>,
    /// Which one file's number each was found to be: one more than the file's place in the index; 0 for those that were not met.
    met: Vec<AtomicU32>,
    /// How far from its file's place in the index the last one was.
    shift: AtomicIsize,
    /// How many were not near.
    far: AtomicUsize,
    /// Each with its place, by size.
    sorted: OnceLock<Vec<(u64, usize)>>,
}

impl Keys {
    fn new(all: Vec<u64>) -> Self {
        let mut met = Vec::new();
        met.resize_with(all.len(), AtomicU32::default);
        Self { all, met, ..Self::default() }
    }

    /// Whether the number of the file at this place in the index is among them; then it is met.
    fn meet(&self, at: usize, key: u64) -> bool {
        let near = at.saturating_add_signed(self.shift.load(Ordering::Relaxed));
        let is_there = self.all.get(near) == Some(&key);
        let found = if is_there { Some(near) } else { self.find_near(near, key).or_else(|| self.find_far(key)) };
        let Some(found) = found else { return false };
        if !is_there {
            self.shift.store(found.cast_signed() - at.cast_signed(), Ordering::Relaxed);
        }
        self.met[found].store(place_of(at), Ordering::Relaxed);
        true
    }

    fn find_near(&self, near: usize, key: u64) -> Option<usize> {
        let from = near.saturating_sub(NEAR).min(self.all.len());
        let to = near.saturating_add(NEAR).min(self.all.len());
        self.all[from..to].iter().position(|known| *known == key).map(|at| from + at)
    }

    fn find_far(&self, key: u64) -> Option<usize> {
        if self.far.fetch_add(1, Ordering::Relaxed) < FEW {
            // Whether it is among them is found many times as fast as where.
            return self.all.contains(&key).then(|| self.all.iter().position(|known| *known == key)).flatten();
        }
        let sorted = self.sorted.get_or_init(|| {
            let mut sorted: Vec<_> = self.all.iter().enumerate().map(|(at, key)| (*key, at)).collect();
            sorted.sort_unstable();
            sorted
        });
        let at = sorted.partition_point(|(known, _)| *known < key);
        sorted.get(at).filter(|(known, _)| *known == key).map(|(_, at)| *at)
    }

    /// Whether so many were looked for far away that it is worth the while to write them down in order.
    fn is_out_of_order(&self) -> bool {
        self.far.load(Ordering::Relaxed) > FEW.max(self.all.len() / 16)
    }

    /// All of them, or those that were met, each with its place in the index; those that were not met stay behind the one before them.
    fn with_places(&self, all: bool) -> impl Iterator<Item = (u32, u64)> {
        let places = self.met.iter().map(|met| met.load(Ordering::Relaxed));
        let known = places.zip(&self.all).filter(move |(place, _)| all || *place != 0);
        known.scan(0, |last, (place, key)| {
            *last = if place == 0 { *last } else { place };
            Some((*last, *key))
        })
    }
}

/// One more than a place in the index; git's indexes have no more than this can count.
fn place_of(at: usize) -> u32 {
    u32::try_from(at + 1).unwrap_or(u32::MAX)
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
            files.add(usize::try_from(number).expect("a place"), key(number), content(number), id(1), 3);
        }
    }

    fn known(files: &ReadFiles, numbers: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let is_known = |number: &u64| {
            let holds = files.find(usize::try_from(*number).expect("a place"), key(*number), id(1));
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
    fn each_number_is_found_and_no_other_wherever_it_is_looked_for() {
        for count in [0, 1, 2, 3, 7, 200, 1000] {
            // Where the index has them, reversed, behind others, and nowhere near.
            for place in [|at: usize, _: usize| at, |at, count| count - at, |at, _| at + 5, |at, count| at + 2 * count]
            {
                let numbers: Vec<u64> = (0..count).map(|at| key(2 * at)).collect();
                let keys = Keys::new(numbers.clone());
                let all = numbers.len();
                for (at, number) in numbers.iter().enumerate() {
                    assert!(keys.meet(place(at, all), *number), "{at} of {count}");
                    assert!(!keys.meet(place(at, all), key(2 * at as u64 + 1)), "{at} of {count}");
                }
                let met: Vec<u64> = keys.with_places(false).map(|(_, key)| key).collect();
                assert_eq!(met, numbers, "all {count} are met");
                assert_eq!(Keys::new(numbers).with_places(false).count(), 0);
            }
        }
    }

    #[test]
    fn a_record_out_of_order_is_put_in_order_by_the_next_scan() {
        let f = Fixture::new();
        let numbers: Vec<u64> = (1..=1000_u64).filter(|number| !number.is_multiple_of(4)).collect();
        let meet_all = || {
            let scan = ReadFiles::load(&f.repo, 1000);
            assert_eq!(known(&scan, numbers.iter().copied()), numbers);
            scan.save(&f.repo);
            scan.plain.far.into_inner()
        };
        let first = ReadFiles::load(&f.repo, 1000);
        // Each is where another one is to be.
        for number in &numbers {
            let at = usize::try_from(number * 389 % 1009).expect("a place");
            first.add(at, key(*number), id(1), id(1), 3);
        }
        first.save(&f.repo);
        assert!(meet_all() > FEW, "they are far");
        assert_eq!(meet_all(), 0, "each is where it is looked for");
        // A scan that passes over most of them leaves these where they are.
        let few = ReadFiles::load(&f.repo, 1000);
        known(&few, [2]);
        add(&few, 2000..2000 + MANY);
        few.save(&f.repo);
        assert_eq!(meet_all(), 0, "they stay in order");
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
