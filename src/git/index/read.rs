//! Reading the index, once.

use crate::git::index::Index;
use crate::git::repo::Stamp;
use crate::model::checkpoint::IndexEntry;
use crate::model::plan::IndexMove;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::config::tree::Index as Threads;
use gix::index::entry::Flags;
use gix::index::{File as IndexFile, State};
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Index<'_> {
    /// Reads the index, or an empty one where there is none. It is read again only after the file was
    /// replaced.
    pub fn read_index(&self) -> Result<Arc<IndexFile>> {
        let path = self.index_path();
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
        // git itself reports a value that is no number.
        let threads = self.repo.setting("index.threads").and_then(|n| Threads::THREADS.try_into_index_threads(n).ok());
        let options = gix::index::decode::Options { thread_limit: threads, ..Default::default() };
        // Without verifying the checksum, as git: that would take longer than all the rest.
        let decoded = IndexFile::at_or_default(path, self.repo.hash_kind(), true, options);
        decoded.map_err(|error| anyhow::Error::msg(error.to_string())).context("read the index")
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
