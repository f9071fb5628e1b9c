//! An index written as git stores it, with the checksum at its end. Where it is large, what is made of it is summed up and written
//! part by part in a second thread, while the rest is made.

use anyhow::{Context, Result, anyhow};
use gix::hash::Kind;
use gix::index::State;
use gix::index::write::{Extensions, Options};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

/// An index of so many entries takes longer to write than a thread to start.
const LARGE: usize = if cfg!(test) { 2 } else { 4096 };

/// How many bytes are summed up and written at once.
const PART: usize = if cfg!(test) { 100 } else { 1 << 16 };

/// How many parts may wait for that.
const WAITING: usize = 8;

/// About how many bytes an entry takes.
const USUAL_ENTRY: usize = 128;

/// Writes an index to a new file.
pub fn write_index(file: &File, index: &State) -> Result<()> {
    if index.entries().len() < LARGE {
        return write_whole(file, index);
    }
    let (sender, parts) = sync_channel(WAITING);
    std::thread::scope(|scope| {
        let kind = index.object_hash();
        let Ok(thread) = Builder::new().spawn_scoped(scope, move || write_parts(file, parts, kind)) else {
            return write_whole(file, index);
        };
        let mut out = BufWriter::with_capacity(PART, Parts(sender));
        let made = serialize(index, &mut out).and_then(|()| out.flush().context("write the index"));
        // Nothing more comes.
        drop(out);
        let written = thread.join().map_err(|_| anyhow!("a thread ended early: this is a bug in oxundo"))?;
        // Where a part cannot be written, that is why no more can be made.
        written.context("write the index")?;
        made
    })
}

fn write_whole(mut file: &File, index: &State) -> Result<()> {
    let mut bytes = Vec::with_capacity(index.entries().len() * USUAL_ENTRY);
    serialize(index, &mut bytes)?;
    let mut hasher = gix::hash::hasher(index.object_hash());
    hasher.update(&bytes);
    bytes.extend_from_slice(hasher.try_finalize()?.as_bytes());
    file.write_all(&bytes).context("write the index")
}

/// All but the checksum: by the field, as the crate's own way makes it, that takes thrice as long.
fn serialize(index: &State, out: impl Write) -> Result<()> {
    let extensions = Extensions::Given { tree_cache: true, end_of_index_entry: index.had_end_of_index_marker() };
    index.write_to(out, Options { extensions, skip_hash: false }).context("write the index")?;
    Ok(())
}

/// The parts are its own: where it ends early, nobody waits for it to take another one.
fn write_parts(mut file: &File, parts: Receiver<Vec<u8>>, kind: Kind) -> io::Result<()> {
    let mut hasher = gix::hash::hasher(kind);
    for part in parts {
        hasher.update(&part);
        file.write_all(&part)?;
    }
    file.write_all(hasher.try_finalize().map_err(io::Error::other)?.as_bytes())
}

/// Hands on what is written to it.
struct Parts(SyncSender<Vec<u8>>);

impl Write for Parts {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::index::Index;
    use crate::git::repo::testing::Fixture;

    #[test]
    fn in_parts_and_whole_it_is_what_git_wrote() {
        let f = Fixture::new();
        for n in 0..20 {
            f.write(format!("d{}/{}", n % 3, "x".repeat(n + 1)), format!("{n}"));
        }
        f.git(&["add", "-A"]);
        f.git(&["commit", "-qm", "many"]);
        let path = f.repo.git_dir().join("index");
        let by_git = std::fs::read(&path).expect("read the index");
        assert!(by_git.len() > PART * WAITING, "there are more parts than may wait");
        let index = Index::new(&f.repo).read_index().expect("read the index");
        let written = |write: fn(&File, &State) -> Result<()>| {
            let new = path.with_extension("new");
            write(&File::create(&new).expect("make a file"), &index).expect("write it");
            std::fs::read(&new).expect("read it")
        };
        assert!(written(write_index) == by_git, "in parts");
        assert!(written(write_whole) == by_git, "whole");
    }

    #[test]
    fn where_nothing_can_be_written_it_says_so_and_nobody_waits_for_that() {
        let f = Fixture::new();
        for n in 0..100 {
            f.write(format!("{n}-{}", "x".repeat(50)), "");
        }
        f.git(&["add", "-A"]);
        let index = Index::new(&f.repo).read_index().expect("read the index");
        let path = f.repo.git_dir().join("index");
        let closed = File::open(&path).expect("open it, to be read alone");
        let error = write_index(&closed, &index).expect_err("nothing can be written to it");
        let codes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::raw_os_error);
        let bad = rustix::io::Errno::BADF.raw_os_error();
        assert_eq!(codes.last(), Some(Some(bad)), "why, and not that the thread has ended: {error:#}");
    }
}
