//! New objects stay in memory until somebody else could ask for them, and are then written as git writes them, each a file
//! of its own: before a ref or an index names one, and before git runs. A look writes none where others find them
//! (`look.rs`), but for the content of new files that are too much for memory together.
//!
//! gix makes a compressor ready for each object, which takes longer than all the rest of a small one, and gives up where
//! `git gc` has just removed the directory that the file was to be in.

use crate::git::repo::Repo;
use crate::git::repo::large::IN_MEMORY;
use crate::git::repo::sharing::Sharing;
use crate::git::repo::written::WrittenFile;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::objs::encode::loose_header;
use gix::objs::{Kind, Write as _};
use gix::zlib::stream::deflate::{Compress, FlushCompress};
use gix::zlib::{Compression, Status};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The size in bytes of the objects that are not compressed: they take one block of a disk in any case.
const SMALL: usize = 3000;

/// How many bytes zlib makes of one at most.
const MOST_PACKED: u64 = 1032;

/// About so many bytes of blobs are kept in memory at most.
const UNWRITTEN: usize = 32 << 20;

/// Nobody prunes what is younger, but for who prunes all.
const FRESH: Duration = Duration::from_secs(60 * 60);

/// How often the directory of an object may be removed by others before its file is in it.
const TRIES: u32 = 10;

impl Repo {
    /// Writes the objects that are in memory only.
    pub fn flush(&self) -> Result<()> {
        self.unwritten.set(0);
        let new = self.gix.objects.reset_object_memory().unwrap_or_default();
        let directory = self.gix.objects.store_ref().path().to_owned();
        let mut store = Loose { directory, sharing: self.sharing(), zlib: None };
        let mut failed = None;
        for (id, (kind, bytes)) in new.iter() {
            if failed.is_none() {
                match store.write(*id, *kind, bytes) {
                    Ok(file) => self.power.written.borrow_mut().add(file, self.power.flushes.get()),
                    Err(error) => failed = Some(error),
                }
            }
            if failed.is_some() {
                // Nothing is forgotten.
                self.gix.objects.write_buf_with_known_id(*kind, bytes, *id)?;
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Writes those objects again that somebody has pruned since they were written: until a ref led to them, nothing kept
    /// them. To be called when one does.
    pub fn write_pruned_again(&self) -> Result<()> {
        let directory = self.gix.objects.store_ref().path();
        for WrittenFile { name, content, .. } in self.power.written.borrow_mut().give_unsure() {
            let (above, below) = name.split_at(2);
            // One that was packed meanwhile is there twice until git packs again.
            if !directory.join(above).join(below).exists() {
                self.write_again(&name, &content)?;
            }
        }
        Ok(())
    }

    /// Whether an object is in a file of its own that holds no more than fits into memory, however well that is packed.
    pub fn is_in_small_file(&self, id: ObjectId) -> bool {
        let name = id.to_string();
        let (above, below) = name.split_at(2);
        let file = self.gix.objects.store_ref().path().join(above).join(below);
        file.metadata().is_ok_and(|file| file.len() <= IN_MEMORY / MOST_PACKED)
    }

    /// Writes them into another directory as well, and keeps them in memory.
    pub(in crate::git::repo) fn copy_unwritten(&self, directory: &Path) -> Result<()> {
        let new = self.gix.objects.reset_object_memory().unwrap_or_default();
        let mut store = Loose { directory: directory.to_owned(), sharing: Sharing::Own, zlib: None };
        let mut copied = Ok(());
        for (id, (kind, bytes)) in new.iter() {
            copied = copied.and_then(|()| store.write(*id, *kind, bytes).map(drop));
            self.gix.objects.write_buf_with_known_id(*kind, bytes, *id)?;
        }
        copied
    }

    /// Takes in all objects of another directory.
    pub(in crate::git::repo) fn take_in(&self, from: &Path) -> Result<()> {
        let to = self.gix.objects.store_ref().path().to_owned();
        for below in std::fs::read_dir(from)? {
            let below = below?;
            for object in std::fs::read_dir(below.path())? {
                let object = object?;
                let directory = to.join(below.file_name());
                let path = directory.join(object.file_name());
                if !path.exists() {
                    let content = std::fs::read(object.path())?;
                    place(self.sharing(), &directory, &path, &content)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the file of an object again, of which this is the content, if need be over what a power cut has left of it.
    pub fn write_again(&self, name: &str, content: &[u8]) -> Result<()> {
        let (directory, file) = name.split_at_checked(2).context("no object has such a name")?;
        let directory = self.gix.objects.store_ref().path().join(directory);
        place(self.sharing(), &directory, &directory.join(file), content).map(drop)
    }

    /// Gives an object's file, and its directory, the permissions that they have of git.
    pub(in crate::git::repo) fn share_object(&self, id: ObjectId) -> Result<()> {
        let name = id.to_string();
        let (directory, name) = name.split_at(2);
        let directory = self.gix.objects.store_ref().path().join(directory);
        let path = directory.join(name);
        // One that is in a pack has no file.
        if path.exists() {
            self.sharing().share(&directory)?;
            self.sharing().share(&path)?;
        }
        Ok(())
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
}

/// An object that is there and old, and that nothing may lead to, is one that git may prune: it is as new as those that are
/// written now, as git has it.
fn freshen(path: &Path, about: &Metadata) {
    let is_old = about.modified().ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age > FRESH);
    if is_old {
        // Another user's may not be changed: then it is as old as it is.
        let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
    }
}

/// Where objects are that are files of their own.
struct Loose {
    directory: PathBuf,
    sharing: Sharing,
    zlib: Option<Compress>,
}

impl Loose {
    /// Writes the file of an object, unless it is there; gives what is in it, or could as well be.
    fn write(&mut self, id: ObjectId, kind: Kind, bytes: &[u8]) -> Result<WrittenFile> {
        let name = id.to_string();
        let (directory, below) = name.split_at(2);
        let directory = self.directory.join(directory);
        let path = directory.join(below);
        let whole = [&loose_header(kind, bytes.len() as u64)[..], bytes].concat();
        let content = if whole.len() <= SMALL { stored(&whole)? } else { self.deflated(&whole)? };
        let inode = match path.metadata() {
            Ok(about) => {
                freshen(&path, &about);
                about.ino()
            }
            Err(_) => place(self.sharing, &directory, &path, &content)?,
        };
        Ok(WrittenFile { name, inode, content })
    }

    fn deflated(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        let zlib = self.zlib.get_or_insert_with(|| Compress::new(Compression::BEST_SPEED));
        zlib.reset();
        let mut out = Vec::new();
        loop {
            let (read, written) = (usize::try_from(zlib.total_in())?, usize::try_from(zlib.total_out())?);
            out.resize(written + (bytes.len() - read) / 2 + 64, 0);
            if zlib.compress(&bytes[read..], &mut out[written..], FlushCompress::Finish)? == Status::StreamEnd {
                out.truncate(usize::try_from(zlib.total_out())?);
                return Ok(out);
            }
        }
    }
}

/// Puts an object's file into place, and makes its directory where there is none; gives its inode.
fn place(sharing: Sharing, directory: &Path, path: &Path, content: &[u8]) -> Result<u64> {
    let mut tries = 0..TRIES;
    loop {
        match place_in(sharing, directory, path, content) {
            // There is no directory yet, or git has just removed it, since it was empty.
            Err(error) if error.kind() == ErrorKind::NotFound && tries.next().is_some() => make(sharing, directory)?,
            placed => return placed.with_context(|| format!("write '{}'", path.display())),
        }
    }
}

/// Puts an object's file into place, whole or not at all. git sweeps away what a kill leaves.
fn place_in(sharing: Sharing, directory: &Path, path: &Path, content: &[u8]) -> std::io::Result<u64> {
    let temporary = directory.join(temporary_name());
    let filled = File::options().write(true).create_new(true).mode(0o444).open(&temporary);
    let filled = filled.and_then(|mut file| {
        file.write_all(content)?;
        sharing.share(&temporary)?;
        Ok(file.metadata()?.ino())
    });
    let placed = filled.and_then(|inode| std::fs::rename(&temporary, path).map(|()| inode));
    if placed.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    placed
}

fn make(sharing: Sharing, directory: &Path) -> Result<()> {
    match std::fs::create_dir(directory).and_then(|()| sharing.share(directory)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(error).with_context(|| format!("make '{}'", directory.display()))
        }
        _ => Ok(()),
    }
}

/// A name that no other thread has, no other process, and none on another machine or in another container by chance.
fn temporary_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("tmp_obj_oxundo{}-{}-{now}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A zlib stream that holds the bytes as they are.
fn stored(bytes: &[u8]) -> Result<Vec<u8>> {
    let length = u16::try_from(bytes.len())?;
    // The fastest method, and one last block that is not compressed.
    let mut out = b"\x78\x01\x01".to_vec();
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&(!length).to_le_bytes());
    out.extend_from_slice(bytes);
    let (low, high) = bytes.iter().fold((1, 0), |(low, high): (u32, u32), byte| {
        let low = (low + u32::from(*byte)) % 65521;
        (low, (high + low) % 65521)
    });
    out.extend_from_slice(&(high << 16 | low).to_be_bytes());
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    /// How many objects are there.
    fn count(f: &Fixture) -> usize {
        let directory = f.repo.git_dir().join("objects");
        let below = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
        below(directory).filter(|entry| entry.file_name().len() == 2).map(|entry| below(entry.path()).count()).sum()
    }

    #[test]
    fn git_reads_what_is_written_whatever_its_kind_and_size() {
        for format in ["sha1", "sha256"] {
            let f = Fixture::of_format(format);
            let noise: Vec<u8> = (0..25_000_u32).flat_map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()).collect();
            let sizes = [0, 1, 15, 16, SMALL - 10, SMALL - 9, SMALL, SMALL + 1, 65_535, 65_536, 100_000];
            let contents = sizes.iter().flat_map(|size| [vec![b'a'; *size], noise[..*size].to_vec()]);
            let blobs: Vec<_> = contents.map(|bytes| (f.repo.put_blob(&bytes).expect("make a blob"), bytes)).collect();
            let tree = f.repo.gix.write_object(gix::objs::Tree::empty()).expect("make a tree").detach();
            assert_eq!(count(&f), 0, "nobody has asked for anything");
            f.repo.flush().expect("write them");
            for (id, bytes) in &blobs {
                assert!(f.git(&["cat-file", "blob", &id.to_string()]) == *bytes, "{} bytes", bytes.len());
            }
            assert_eq!(f.git(&["cat-file", "-t", &tree.to_string()]), b"tree\n");
            f.git(&["fsck", "--full", "--strict"]);
        }
    }

    #[test]
    fn what_is_only_looked_at_is_never_written() {
        let f = Fixture::new();
        let id = f.repo.put_blob(b"looked at").expect("make a blob");
        assert!(f.repo.gix.has_object(id), "it can be read here");
        f.repo.git_apart(["cat-file", "-e", &id.to_string()]).run(b"").expect_err("and nowhere else");
        f.repo.git(["cat-file", "-e", &id.to_string()]).run(b"").expect("until git runs");
    }

    #[test]
    fn what_is_there_already_is_not_written_again() {
        let f = Fixture::new();
        let id = f.blob("there");
        let path = f.repo.git_dir().join(format!("objects/{}/{}", &id.to_string()[..2], &id.to_string()[2..]));
        let before = path.metadata().expect("a file").modified().expect("a time");
        f.repo.gix.objects.write_buf_with_known_id(Kind::Blob, b"there", id).expect("keep it in memory");
        f.repo.flush().expect("nothing is to be done");
        assert_eq!(path.metadata().expect("a file").modified().expect("a time"), before);
    }

    #[test]
    fn memory_stays_free_when_much_is_new() {
        let f = Fixture::new();
        let bytes = vec![b'x'; 3 << 20];
        for number in 0..=UNWRITTEN / bytes.len() {
            f.repo.put_blob(&[&bytes[..], number.to_string().as_bytes()].concat()).expect("make a blob");
        }
        assert_eq!(f.repo.gix.objects.num_objects_in_memory(), 0);
        assert!(count(&f) > 10);
    }

    #[test]
    fn where_nothing_can_be_written_nothing_is_forgotten() {
        let f = Fixture::new();
        let id = f.repo.put_blob(b"content").expect("make a blob");
        let directory = f.repo.git_dir().join("objects").join(&id.to_string()[..2]);
        std::fs::write(&directory, "in the way").expect("make a file");
        f.repo.flush().expect_err("there is no place");
        f.repo.git(["cat-file", "-e", &id.to_string()]).run(b"").expect_err("git does not run without it");
        std::fs::remove_file(&directory).expect("remove a file");
        f.repo.git(["cat-file", "-e", &id.to_string()]).run(b"").expect("it is written now");
    }

    #[test]
    fn writers_of_the_same_objects_at_the_same_time_are_in_nobodys_way() {
        let f = Fixture::new();
        let top = f.repo.top();
        std::thread::scope(|scope| {
            for writer in 0..8 {
                scope.spawn(move || {
                    let repo = Repo::open(top).expect("open it");
                    for number in 0..100 {
                        // Each is made by two of them, and by others at other lengths.
                        let content = format!("{} ", number * 4 + writer / 2).repeat(1 + number * 20);
                        repo.put_blob(content.as_bytes()).expect("make a blob");
                        repo.flush().expect("write it");
                    }
                });
            }
        });
        assert_eq!(count(&f), 400, "nothing else is left");
        f.git(&["fsck", "--full", "--strict"]);
    }
}
