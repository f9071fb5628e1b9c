//! Reading the index, once; a large one while other things are read.

use crate::git::index::Index;
use crate::git::repo::Stamp;
use crate::git::repo::threads::start;
use crate::model::checkpoint::IndexEntry;
use crate::model::plan::IndexMove;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::config::tree::Index as Threads;
use gix::index::decode::Options;
use gix::index::entry::Flags;
use gix::index::{File as IndexFile, State};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An index of more bytes than this takes longer to read than a thread takes to start.
const LARGE: u64 = 1 << 18;

impl Index<'_> {
    /// Begins to read the index, where that takes long, in a thread of its own: who reads it later has it sooner.
    pub fn read_ahead(&self) {
        let path = self.index_path();
        let is_large = |stamp: &Stamp| stamp.size() >= LARGE;
        let known = self.repo.index.borrow().as_ref().map(|(stamp, _)| stamp.clone());
        let Some(stamp) = Stamp::of(&path).filter(|stamp| is_large(stamp) && known.as_ref() != Some(stamp)) else {
            return;
        };
        let how = self.how(&path);
        self.repo.ahead.replace(start(move || Some((stamp, decode(&path, how).ok()?))).ok());
    }

    /// Reads the index, or an empty one where there is none. It is read again only after the file was
    /// replaced.
    pub fn read_index(&self) -> Result<Arc<IndexFile>> {
        let path = self.index_path();
        // What is wrong with it is told when it is read here.
        let ahead = self.repo.ahead.take().and_then(|thread| thread.join().ok().flatten());
        if let Some((stamp, index)) = ahead.filter(|(stamp, _)| Stamp::of(&path).as_ref() == Some(stamp)) {
            self.repo.index.replace(Some((stamp, Arc::new(index))));
        }
        let stamp = Stamp::of(&path);
        if let Some((known, index)) = &*self.repo.index.borrow()
            && stamp.as_ref() == Some(known)
        {
            return Ok(Arc::clone(index));
        }
        let index = Arc::new(self.decode_index(&path)?);
        // The file may have been replaced between the stat and the reading.
        let read = stamp.filter(|stamp| Stamp::of(&path).as_ref() == Some(stamp));
        self.repo.index.replace(read.map(|stamp| (stamp, Arc::clone(&index))));
        Ok(index)
    }

    /// Which index was read last; none where it was replaced as it was read.
    pub fn last_read(&self) -> Option<String> {
        self.repo.index.borrow().as_ref().map(|(stamp, _)| stamp.to_string())
    }

    /// Which index is there.
    pub fn present(&self) -> Option<String> {
        Stamp::of(&self.index_path()).map(|stamp| stamp.to_string())
    }

    /// Where git keeps this worktree's index, whatever `GIT_INDEX_FILE` says: a hook sets that
    /// to a file of its own.
    pub fn index_path(&self) -> PathBuf {
        self.repo.git_dir.join("index")
    }

    pub fn decode_index(&self, path: &Path) -> Result<IndexFile> {
        decode(path, self.how(path))
    }

    fn how(&self, path: &Path) -> How {
        // git itself reports a value that is no number.
        let set = self.repo.setting("index.threads").and_then(|n| Threads::THREADS.try_into_index_threads(n).ok());
        // To ask how many there may be takes longer than to read a small one.
        let is_small = Stamp::of(path).is_none_or(|stamp| stamp.size() < LARGE);
        let threads = set.or(is_small.then_some(1));
        (self.repo.hash_kind(), Options { thread_limit: threads, ..Default::default() })
    }

    /// The index that a tree makes.
    pub fn of_tree(&self, tree: ObjectId) -> Result<Arc<IndexFile>> {
        Ok(Arc::new(self.repo.gix.index_from_tree(&tree)?))
    }

    /// The entries of a path.
    pub fn index_entries(&self, index: &State, path: &BStr) -> Result<Vec<IndexEntry>> {
        match index.entry_range(path) {
            Some(range) => Ok(index.entries()[range].iter().map(entry_of).collect()),
            None => Ok(self.entry_in_sparse_index(index, path)?.into_iter().collect()),
        }
    }

    /// How these paths differ between two readings of the index.
    pub fn index_moves(&self, paths: &[BString], before: &State, after: &State) -> Result<Vec<IndexMove>> {
        let mut moves = Vec::new();
        for path in paths {
            let from = self.index_entries(before, path.as_bstr())?;
            let to = self.index_entries(after, path.as_bstr())?;
            if from != to {
                moves.push(IndexMove { path: path.clone(), from, to });
            }
        }
        Ok(moves)
    }

    /// The first path that is unmerged.
    pub fn first_unmerged(&self) -> Result<Option<BString>> {
        let index = self.read_index()?;
        let unmerged = index.entries().iter().find(|entry| entry.stage_raw() != 0);
        Ok(unmerged.map(|entry| entry.path(&index).to_owned()))
    }
}

/// The paths that have other entries in the second of two readings of the index.
pub fn changed_entries(before: &State, after: &State) -> Vec<BString> {
    let entry =
        |index: &State, it: &gix::index::Entry| (it.path(index).to_owned(), (it.flags.stage_raw(), it.id, it.mode));
    let known: BTreeMap<_, _> = before.entries().iter().map(|it| entry(before, it)).collect();
    let now = after.entries().iter().map(|it| entry(after, it));
    let mut changed: Vec<BString> =
        now.filter(|(path, now)| known.get(path) != Some(now)).map(|(path, _)| path).collect();
    changed.dedup();
    changed
}

/// The kind of hash in an index, and how it is read.
type How = (gix::hash::Kind, Options);

fn decode(path: &Path, (hash, options): How) -> Result<IndexFile> {
    // Without verifying the checksum, as git: that would take longer than all the rest.
    let decoded = IndexFile::at_or_default(path, hash, true, options);
    decoded.map_err(|error| anyhow::Error::msg(error.to_string())).context("read the index")
}

pub fn entry_of(entry: &gix::index::Entry) -> IndexEntry {
    IndexEntry {
        mode: entry.mode.bits(),
        id: entry.id,
        stage: entry.stage_raw().try_into().unwrap_or_default(),
        intent_to_add: entry.flags.contains(Flags::INTENT_TO_ADD),
        skip_worktree: entry.flags.contains(Flags::SKIP_WORKTREE),
        assume_unchanged: entry.flags.contains(Flags::ASSUME_VALID),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    /// As many entries as make the index a large one, of this blob.
    fn fill(f: &Fixture, content: &[u8]) {
        let id = f.git_fed(&["hash-object", "-w", "--stdin"], content);
        let line = |at: u32| format!("100644 {}\td/a-file-with-a-long-name-{at}\n", id.trim().to_str_lossy());
        f.git_fed(&["update-index", "--add", "--index-info"], (0..4000).map(line).collect::<String>().as_bytes());
    }

    #[test]
    fn an_index_that_is_read_ahead_is_the_one_that_is_there_when_it_is_asked_for() {
        let f = Fixture::new();
        let index = Index::new(&f.repo);
        let content = || {
            let read = index.read_index().expect("read it");
            let entry = read.entries().last().expect("an entry").id;
            f.git(&["cat-file", "blob", &entry.to_string()])
        };
        index.read_ahead();
        assert!(f.repo.ahead.borrow().is_none(), "there is none yet");
        fill(&f, b"one");
        index.read_ahead();
        assert!(f.repo.ahead.borrow().is_some(), "it is large");
        assert_eq!(content(), b"one");
        index.read_ahead();
        assert!(f.repo.ahead.borrow().is_none(), "it is known");
        fill(&f, b"two");
        index.read_ahead();
        // Another git replaces it before anybody asks.
        fill(&f, b"six");
        assert_eq!(content(), b"six");
        std::fs::write(index.index_path(), vec![0; 1 << 19]).expect("damage it");
        index.read_ahead();
        assert!(index.read_index().is_err(), "what is wrong with it is told");
    }
}
