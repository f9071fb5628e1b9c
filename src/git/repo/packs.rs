//! New objects stay in memory until somebody else could ask for them, and are then written as one pack: before a ref or
//! an index names one, and before git runs. What is only looked at is never written.
//!
//! - One pack is three files where loose objects are one each.
//! - Beside each pack stands a `.keep` while the command is at work: a `git repack -ad` that began before a ref named
//!   the objects would delete the pack.
//! - A new pack takes in older ones of oxundo's that are small beside it, so that there are always few.

use crate::git::repo::Repo;
use crate::git::repo::keep::{Keep, create, temporary};
use anyhow::{Context, Result, bail, ensure};
use gix::ObjectId;
use gix::objs::{Kind, Write as _};
use gix::odb::memory::Storage;
use gix::odb::pack;
use gix::zlib::stream::deflate::{Compress, FlushCompress};
use gix::zlib::{Compression, Status};
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How the names of oxundo's packs end: its own name, as bytes in hex.
const MARK: &str = "6f78756e646f";

/// So many packs of oxundo's may lie side by side before some are taken into a new one.
const FEW: usize = 8;

/// The size in bytes of the packs that are not taken into another.
const LARGE: u64 = 16 << 20;

/// The size in bytes of the objects that are not compressed: to make the compressor ready takes longer.
const SMALL: usize = 1024;

/// So many bytes of objects are kept in memory at most.
const UNWRITTEN: usize = 32 << 20;

impl Repo {
    /// Writes the objects that are in memory only.
    pub fn flush(&self) -> Result<()> {
        self.unwritten.set(0);
        let new = self.gix.objects.reset_object_memory().unwrap_or_default();
        if new.is_empty() {
            return Ok(());
        }
        let written = self.write_pack(&new);
        if written.is_err() {
            for (id, (kind, bytes)) in new.iter() {
                self.gix.objects.write_buf_with_known_id(*kind, bytes, *id)?;
            }
        }
        written.context("write new objects")
    }

    /// Makes a blob, and keeps it in memory if there is room.
    pub fn put_blob(&self, bytes: &[u8]) -> Result<ObjectId> {
        let id = self.gix.write_blob(bytes)?.detach();
        let unwritten = self.unwritten.get().saturating_add(bytes.len());
        self.unwritten.set(unwritten);
        if unwritten > UNWRITTEN {
            self.flush()?;
        }
        Ok(id)
    }

    fn write_pack(&self, new: &Storage) -> Result<()> {
        let directory = self.gix.objects.store_ref().path().join("pack");
        std::fs::create_dir_all(&directory).with_context(|| format!("make '{}'", directory.display()))?;
        let older = to_take_in(&directory, self.gix.object_hash());
        let mut objects: BTreeMap<_, _> =
            older.iter().flat_map(Older::entries).map(|(id, entry)| (id, Content::Packed(entry))).collect();
        objects.extend(new.iter().map(|(id, (kind, bytes))| (*id, Content::New(*kind, bytes))));
        let pack = Pack::of(&objects, self.gix.object_hash())?;
        self.kept.add(pack.write(&directory)?);
        older.iter().for_each(Older::remove);
        Ok(())
    }
}

/// An object that is to be in a pack.
enum Content<'a> {
    New(Kind, &'a [u8]),
    /// As it is in another pack of oxundo's.
    Packed(&'a [u8]),
}

/// The bytes of a pack and of its index.
struct Pack {
    bytes: Vec<u8>,
    index: Vec<u8>,
    checksum: ObjectId,
}

impl Pack {
    fn of(objects: &BTreeMap<ObjectId, Content<'_>>, hash: gix::hash::Kind) -> Result<Self> {
        let count = u32::try_from(objects.len())?;
        let mut pack = pack::data::header::encode(pack::data::Version::V2, count).to_vec();
        let mut zlib = None;
        let mut places = Vec::with_capacity(objects.len());
        for content in objects.values() {
            let start = pack.len();
            match content {
                Content::Packed(entry) => pack.extend_from_slice(entry),
                Content::New(kind, bytes) => {
                    header(*kind).write_to(bytes.len() as u64, &mut pack)?;
                    match bytes.len() {
                        ..=SMALL => store(bytes, &mut pack)?,
                        _ => deflate(
                            zlib.get_or_insert_with(|| Compress::new(Compression::BEST_SPEED)),
                            bytes,
                            &mut pack,
                        )?,
                    }
                }
            }
            // Above this an index needs a second table.
            ensure!(start < 1 << 31, "more than 2 GiB of new objects");
            places.push((u32::try_from(start)?, crc32fast::hash(&pack[start..])));
        }
        let checksum = seal(&mut pack, hash)?;
        let index = index(objects.keys(), &places, checksum, hash)?;
        Ok(Self { bytes: pack, index, checksum })
    }

    /// Puts both files into place, the index last: by it others find the pack.
    fn write(&self, directory: &Path) -> Result<Keep> {
        let pack = directory.join(format!("{}.pack", self.name()));
        let keep = Keep::make(pack.with_extension("keep"))?;
        let placed = place(&pack, &self.bytes).and_then(|()| place(&pack.with_extension("idx"), &self.index));
        if placed.is_err() {
            let _ = std::fs::remove_file(&pack);
        }
        placed.map(|()| keep)
    }

    /// A name that no other pack has, as long as git's are.
    fn name(&self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let (checksum, now) = (self.checksum.to_string(), format!("{now:032x}"));
        let part = checksum.len() - MARK.len() - 12;
        format!("pack-{}{}{MARK}", &checksum[..part], &now[20..])
    }
}

fn header(kind: Kind) -> pack::data::entry::Header {
    use pack::data::entry::Header as H;
    match kind {
        Kind::Blob => H::Blob,
        Kind::Tree => H::Tree,
        Kind::Commit => H::Commit,
        Kind::Tag => H::Tag,
    }
}

/// Appends bytes as a zlib stream that holds them as they are.
fn store(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let length = u16::try_from(bytes.len())?;
    // The fastest method, and one last block that is not compressed.
    out.extend_from_slice(b"\x78\x01\x01");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(bytes);
    let (low, high) = bytes.iter().fold((1, 0), |(low, high): (u32, u32), byte| {
        let low = (low + u32::from(*byte)) % 65521;
        (low, (high + low) % 65521)
    });
    out.extend_from_slice(&(high << 16 | low).to_be_bytes());
    Ok(())
}

fn deflate(zlib: &mut Compress, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    zlib.reset();
    let start = out.len();
    loop {
        let (read, written) = (usize::try_from(zlib.total_in())?, usize::try_from(zlib.total_out())?);
        out.resize(start + written + (bytes.len() - read) / 2 + 64, 0);
        let status = zlib.compress(&bytes[read..], &mut out[start + written..], FlushCompress::Finish)?;
        if status == Status::StreamEnd {
            out.truncate(start + usize::try_from(zlib.total_out())?);
            return Ok(());
        }
    }
}

/// Appends the checksum over all that is there.
fn seal(bytes: &mut Vec<u8>, hash: gix::hash::Kind) -> Result<ObjectId> {
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(bytes);
    let checksum = hasher.try_finalize()?;
    bytes.extend_from_slice(checksum.as_slice());
    Ok(checksum)
}

/// The index, version 2, of objects in their order and where each begins in the pack, with its checksum.
fn index<'a>(
    ids: impl Iterator<Item = &'a ObjectId> + Clone,
    places: &[(u32, u32)],
    checksum: ObjectId,
    hash: gix::hash::Kind,
) -> Result<Vec<u8>> {
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    let mut below = [0_u32; 256];
    ids.clone().for_each(|id| below[usize::from(id.first_byte())] += 1);
    let mut sum = 0;
    for count in below {
        sum += count;
        index.extend_from_slice(&sum.to_be_bytes());
    }
    ids.for_each(|id| index.extend_from_slice(id.as_slice()));
    let (starts, checks): (Vec<_>, Vec<_>) = places.iter().copied().unzip();
    index.extend(checks.into_iter().chain(starts).flat_map(u32::to_be_bytes));
    index.extend_from_slice(checksum.as_slice());
    seal(&mut index, hash)?;
    Ok(index)
}

/// Makes a file whole or not at all.
fn place(path: &Path, content: &[u8]) -> Result<()> {
    let temporary = temporary(path);
    let filled = create(&temporary).and_then(|mut file| Ok(file.write_all(content)?));
    let placed = filled.and_then(|()| Ok(std::fs::rename(&temporary, path)?));
    if placed.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    placed.with_context(|| format!("write '{}'", path.display()))
}

/// A pack of oxundo's, read whole.
struct Older {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Where each object begins and ends.
    places: Vec<(ObjectId, usize, usize)>,
}

impl Older {
    /// Reads a pack; fails if it is not as oxundo wrote it.
    fn read(path: PathBuf, hash: gix::hash::Kind) -> Result<Self> {
        let bytes = std::fs::read(&path)?;
        let index = pack::index::File::at(path.with_extension("idx"), hash)?;
        let mut entries: Vec<_> = index.iter().collect();
        entries.sort_by_key(|entry| entry.pack_offset);
        let mut end = bytes.len().checked_sub(hash.len_in_bytes()).context("the pack is cut off")?;
        let mut places = Vec::with_capacity(entries.len());
        for entry in entries.iter().rev() {
            let start = usize::try_from(entry.pack_offset)?;
            let content = bytes.get(start..end).context("the pack is cut off")?;
            if entry.crc32 != Some(crc32fast::hash(content)) || !is_whole(content) {
                bail!("the pack is damaged");
            }
            places.push((entry.oid, start, end));
            end = start;
        }
        Ok(Self { path, bytes, places })
    }

    fn entries(&self) -> impl Iterator<Item = (ObjectId, &[u8])> {
        self.places.iter().map(|(id, start, end)| (*id, &self.bytes[*start..*end]))
    }

    /// Removes it, the index first. What stays is in two packs, and the next one takes it in.
    fn remove(&self) {
        for kind in ["idx", "rev", "pack"] {
            let _ = std::fs::remove_file(self.path.with_extension(kind));
        }
    }
}

/// Whether an entry of a pack is a whole object, and not what another one is to be changed by.
fn is_whole(entry: &[u8]) -> bool {
    entry.first().is_some_and(|first| (1..=4).contains(&(first >> 4 & 7)))
}

/// The packs that a new one takes in.
fn to_take_in(directory: &Path, hash: gix::hash::Kind) -> Vec<Older> {
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    // What begins otherwise is not whole yet, and somebody is at it.
    let own = |path: &PathBuf| {
        let name = path.file_stem().unwrap_or_default().as_encoded_bytes();
        name.starts_with(b"pack-") && name.ends_with(MARK.as_bytes())
    };
    let (packs, beside): (Vec<_>, Vec<_>) =
        names.filter(|path| own(path)).partition(|path| path.extension().is_some_and(|kind| kind == "pack"));
    if packs.len() < FEW {
        return Vec::new();
    }
    let Some(fixed) = in_multi_pack_index(directory) else { return Vec::new() };
    let beside: HashSet<_> = beside.into_iter().collect();
    let mut small = Vec::new();
    for pack in packs {
        let index = pack.with_extension("idx");
        if Keep::stands(&pack) || index.file_name().is_some_and(|name| fixed.contains(Path::new(name))) {
            continue;
        }
        if !beside.contains(&index) && !index.exists() {
            // A kill came before its index, or after: nobody finds it.
            let _ = std::fs::remove_file(&pack);
            continue;
        }
        let size = pack.metadata().map_or(LARGE, |about| about.len());
        if size < LARGE && ["promisor", "mtimes"].iter().all(|kind| !beside.contains(&pack.with_extension(kind))) {
            small.push((size, pack));
        }
    }
    small.sort();
    let sizes: Vec<_> = small.iter().map(|(size, _)| *size).collect();
    small.truncate(how_many(&sizes));
    // One that cannot be read, or was taken in by somebody else, stays as it is.
    small.into_iter().filter_map(|(_, pack)| Older::read(pack, hash).ok()).collect()
}

/// How many of the smallest packs are taken together, so that each is then at most half as large as the next.
fn how_many(sizes: &[u64]) -> usize {
    if sizes.len() < FEW {
        return 0;
    }
    let mut sum = 0;
    let alike = sizes.iter().take_while(|size| {
        let is_small = sum == 0 || **size <= 2 * sum;
        sum += **size;
        is_small && sum < 2 * LARGE
    });
    alike.count()
}

/// The indexes that git's index over many packs names; nothing if that cannot be told.
fn in_multi_pack_index(directory: &Path) -> Option<HashSet<PathBuf>> {
    let path = directory.join("multi-pack-index");
    if directory.join("multi-pack-index.d").exists() {
        return None;
    }
    if !path.exists() {
        return Some(HashSet::new());
    }
    let index = pack::multi_index::File::at(&path, None).ok()?;
    Some(index.index_names().iter().cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use std::collections::BTreeSet;
    use std::fs::File;

    /// The packs of oxundo's that are there.
    fn packs(f: &Fixture) -> BTreeSet<PathBuf> {
        let files = std::fs::read_dir(f.repo.git_dir().join("objects/pack")).expect("list the packs").flatten();
        let is_pack = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "pack");
        files.map(|file| file.path()).filter(is_pack).collect()
    }

    /// Writes one pack with one blob.
    fn one_more(f: &Fixture, content: &str) -> ObjectId {
        let id = f.repo.put_blob(content.as_bytes()).expect("make a blob");
        f.repo.flush().expect("write a pack");
        f.repo.kept.release();
        id
    }

    fn assert_found(f: &Fixture, ids: &[ObjectId]) {
        let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let printed = f.git_fed(&["cat-file", "--batch-check=%(objectname)"], input.as_bytes());
        assert_eq!(String::from_utf8(printed).expect("ids"), input, "git finds all");
        f.git(&["fsck", "--full", "--strict"]);
    }

    #[test]
    fn git_reads_what_is_written_whatever_its_kind_and_size() {
        for format in ["sha1", "sha256"] {
            let f = Fixture::of_format(format);
            let noise: Vec<u8> = (0..25_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
            let sizes = [0, 1, 15, 16, SMALL - 1, SMALL, SMALL + 1, 2063, 65_535, 65_536, 100_000];
            let contents = sizes.iter().flat_map(|size| [vec![b'a'; *size], noise[..*size].to_vec()]);
            let blobs: Vec<_> = contents.map(|bytes| (f.repo.put_blob(&bytes).expect("make a blob"), bytes)).collect();
            let tree = f.repo.gix.write_object(gix::objs::Tree::empty()).expect("make a tree").detach();
            assert_eq!(packs(&f).len(), 0, "nobody has asked for anything");
            f.repo.flush().expect("write a pack");
            assert_eq!(packs(&f).len(), 1);
            for (id, bytes) in &blobs {
                assert!(f.git(&["cat-file", "blob", &id.to_string()]) == *bytes, "{} bytes", bytes.len());
            }
            assert_eq!(f.git(&["cat-file", "-t", &tree.to_string()]), b"tree\n");
            let index = packs(&f).first().expect("a pack").with_extension("idx");
            f.git(&["verify-pack", index.to_str().expect("a plain path")]);
            let ids: Vec<_> = blobs.iter().map(|(id, _)| *id).collect();
            assert_found(&f, &ids);
        }
    }

    #[test]
    fn what_is_only_looked_at_is_never_written() {
        let f = Fixture::new();
        let id = f.repo.put_blob(b"looked at").expect("make a blob");
        assert!(f.repo.gix.has_object(id), "it can be read here");
        let Fixture { repo, .. } = &f;
        repo.git_apart(["cat-file", "-e", &id.to_string()]).run(b"").expect_err("and nowhere else");
        let there = f.git(&["cat-file", "-t", &id.to_string()]);
        assert_eq!(there, b"blob\n", "until somebody asks");
    }

    #[test]
    fn packs_stay_few_and_hold_all() {
        let f = Fixture::new();
        let mut ids = Vec::new();
        for number in 0..150 {
            ids.push(one_more(&f, &format!("content {number}")));
            assert!(packs(&f).len() <= FEW + 3, "after {number}: {:?}", packs(&f));
        }
        assert_found(&f, &ids);
    }

    #[test]
    fn a_large_blob_is_written_at_once_and_memory_stays_free() {
        let f = Fixture::new();
        let bytes = vec![b'x'; 3 << 20];
        for number in 0..=UNWRITTEN / bytes.len() {
            f.repo.put_blob(&[&bytes[..], number.to_string().as_bytes()].concat()).expect("make a blob");
        }
        assert_eq!(packs(&f).len(), 1, "it is written when there is much");
        assert_eq!(f.repo.gix.objects.num_objects_in_memory(), 0);
    }

    #[test]
    fn a_pack_that_somebody_keeps_stays() {
        let f = Fixture::new();
        let mut ids: Vec<_> = (1..FEW).map(|number| one_more(&f, &format!("content {number}"))).collect();
        let all: Vec<_> = packs(&f).into_iter().collect();
        let [user, alive, dead, ..] = &all[..] else { panic!("there are packs: {all:?}") };
        std::fs::write(user.with_extension("keep"), "mine\n").expect("keep a pack");
        let keep = Keep::make(alive.with_extension("keep")).expect("keep a pack");
        std::fs::write(dead.with_extension("keep"), "oxundo is writing\n").expect("keep a pack");
        ids.extend((0..2 * FEW).map(|number| one_more(&f, &format!("more {number}"))));
        let now = packs(&f);
        assert!(now.contains(user) && now.contains(alive), "they are kept: {now:?}");
        assert!(!now.contains(dead), "its command is gone: {now:?}");
        drop(keep);
        ids.extend((0..2 * FEW).map(|number| one_more(&f, &format!("most {number}"))));
        assert!(packs(&f).contains(user) && !packs(&f).contains(alive));
        assert_found(&f, &ids);
    }

    #[test]
    fn a_pack_that_is_damaged_or_not_oxundos_is_not_taken_in() {
        let f = Fixture::new();
        let foreign = f.blob("foreign");
        f.git_fed(&["pack-objects", "-q", ".git/objects/pack/pack"], foreign.to_string().as_bytes());
        f.git(&["prune-packed"]);
        let foreign_pack = packs(&f);
        let ids: Vec<_> = (0..FEW).map(|number| one_more(&f, &format!("content {number}"))).collect();
        let damaged = packs(&f).into_iter().find(|pack| !foreign_pack.contains(pack)).expect("a pack");
        let mut bytes = std::fs::read(&damaged).expect("read a pack");
        bytes[20] ^= 1;
        std::fs::remove_file(&damaged).expect("remove a pack");
        std::fs::write(&damaged, &bytes).expect("write a pack");
        for number in 0..2 * FEW {
            one_more(&f, &format!("more {number}"));
        }
        assert!(packs(&f).contains(&damaged), "a person can still look at it");
        assert!(foreign_pack.is_subset(&packs(&f)));
        std::fs::remove_file(damaged.with_extension("idx")).expect("remove an index");
        std::fs::remove_file(&damaged).expect("remove a pack");
        let found = ids.iter().filter(|id| f.git_agrees(&["cat-file", "-e", &id.to_string()])).count();
        assert_eq!(found, ids.len() - 1, "all others are there");
    }

    #[test]
    fn packs_that_gits_index_over_many_names_stay() {
        let f = Fixture::new();
        let mut ids: Vec<_> = (0..FEW).map(|number| one_more(&f, &format!("content {number}"))).collect();
        f.git(&["multi-pack-index", "write"]);
        let named = packs(&f);
        ids.extend((0..2 * FEW).map(|number| one_more(&f, &format!("more {number}"))));
        assert!(named.is_subset(&packs(&f)));
        f.git(&["multi-pack-index", "verify"]);
        assert_found(&f, &ids);
    }

    #[test]
    fn what_a_kill_left_between_two_files_goes() {
        let f = Fixture::new();
        let mut ids: Vec<_> = (0..FEW).map(|number| one_more(&f, &format!("content {number}"))).collect();
        let lost = f.repo.git_dir().join(format!("objects/pack/pack-{:028x}{MARK}.pack", 7));
        File::create(&lost).expect("make a pack");
        File::create(temporary(&lost)).expect("make a pack");
        ids.push(one_more(&f, "one more"));
        assert!(!packs(&f).contains(&lost), "a pack without an index");
        assert!(packs(&f).contains(&temporary(&lost)), "but not what somebody is writing");
        assert_found(&f, &ids);
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_forgotten() {
        let f = Fixture::new();
        let directory = f.repo.git_dir().join("objects/pack");
        std::fs::remove_dir(&directory).expect("remove a directory");
        std::fs::write(&directory, "in the way").expect("make a file");
        let id = f.repo.put_blob(b"content").expect("make a blob");
        let error = f.repo.flush().expect_err("there is no place");
        assert!(error.to_string().contains("write new objects"), "{error:#}");
        f.repo.git(["cat-file", "-e", &id.to_string()]).run(b"").expect_err("git does not run without it");
        std::fs::remove_file(&directory).expect("remove a file");
        assert_found(&f, &[id]);
    }

    #[test]
    fn so_many_packs_are_taken_together_that_each_is_small_beside_the_next() {
        assert_eq!(how_many(&[10; FEW - 1]), 0, "few may stay");
        assert_eq!(how_many(&[10; FEW]), FEW);
        assert_eq!(how_many(&[1, 1, 1, 1, 100, 1_000, 10_000, 100_000]), 4);
        assert_eq!(how_many(&[1, 3, 9, 27, 81, 243, 729, 2187]), 1, "each is small beside the next");
        let large = LARGE - 1;
        assert_eq!(how_many(&[large; FEW]), 2, "not more at once than memory holds");
    }
}
