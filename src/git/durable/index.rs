//! The index after a power cut.

use crate::git::durable::Durable;
use crate::git::durable::log::Entry;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::refs::{OwnRef, Refs};
use crate::git::repo::large::file_id;
use crate::git::repo::scratch::KEPT;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::Worktree;
use crate::model::checkpoint::{Checkpoint, IndexEntry, IndexState};
use crate::model::plan::IndexMove;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::BString;
use gix::index::File as IndexFile;
use gix::index::decode::Options;
use gix::index::entry::Mode;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};
use std::path::Path;
use std::time::Duration;

/// So many states of the timeline are looked at.
const TIMELINES: usize = 6;

impl Durable<'_> {
    /// Makes an index that cannot be read anew: as it was last recorded for HEAD's commit, else as that commit itself. Says
    /// whether it had to.
    pub(super) fn mend_index(&self, entries: &[Entry]) -> Result<bool> {
        let index = Index::new(self.repo);
        if !self.is_index_damaged() {
            return Ok(false);
        }
        let path = index.index_path();
        let kept = self.repo.scratch_path(KEPT).join("index");
        kept.parent().map_or(Ok(()), |above| self.repo.make_private(above))?;
        std::fs::rename(&path, &kept).with_context(|| format!("write '{}'", kept.display()))?;
        let wanted = self.entries(&self.last_index(entries)?)?;
        let moves: Vec<_> = wanted.into_iter().map(|(path, to)| IndexMove { path, from: Vec::new(), to }).collect();
        let lock = index.lock_index(Duration::ZERO)?;
        lock.set(&moves, |_| false)?;
        lock.commit()?;
        Ok(true)
    }

    /// Makes blobs again that are staged and gone, where the file still has the same content: git flushes neither, but a file may
    /// have come to the disk. Gives how many.
    pub(super) fn mend_staged(&self) -> Result<usize> {
        if self.repo.setting("extensions.partialClone").is_some() {
            return Ok(0);
        }
        let (index, worktree) = (Index::new(self.repo).read_index()?, Worktree::new(self.repo));
        let gone = index.entries().iter().filter(|entry| {
            [Mode::FILE, Mode::FILE_EXECUTABLE].contains(&entry.mode) && !self.repo.has_object(entry.id)
        });
        let mut made = 0;
        for entry in gone {
            let Ok(Some(mut file)) = worktree.open_file(entry.path(&index)) else { continue };
            let mut content = Vec::new();
            if file_id(&file, self.repo.hash_kind())? == Some(entry.id) {
                file.rewind().and_then(|()| file.read_to_end(&mut content)).context("read what is staged")?;
                self.repo.put_blob(&content)?;
                made += 1;
            }
        }
        self.repo.flush()?;
        Ok(made)
    }

    /// Whether the index is there and cannot be read.
    pub(super) fn is_index_damaged(&self) -> bool {
        let (path, skips_check) = (Index::new(self.repo).index_path(), false);
        let read = || IndexFile::at_or_default(&path, self.repo.hash_kind(), skips_check, Options::default());
        path.exists() && (read().is_err() || self.is_index_torn(&path))
    }

    /// Whether an index has zeros where its checksum should be, as when its end never came to the disk. Where git is told to
    /// leave checksums out, it alone can say.
    fn is_index_torn(&self, path: &Path) -> bool {
        let bytes = std::fs::read(path).unwrap_or_default();
        let start = bytes.len().saturating_sub(self.repo.hash_kind().len_in_bytes());
        if bytes[start..].iter().any(|byte| *byte != 0) {
            return false;
        }
        let is_set = |key| self.repo.boolean(key) == Ok(Some(true));
        let leaves_out = is_set("index.skipHash") || is_set("feature.manyFiles");
        !leaves_out || self.repo.git_apart(["ls-files", "-z"]).run(b"").is_err()
    }

    fn last_index(&self, entries: &[Entry]) -> Result<IndexState> {
        let (head, timelines) = (Refs::new(self.repo).head()?, Timelines::new(self.repo));
        let own = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        // As it is, or was before the command that was interrupted. What cannot be read is no help.
        let known = entries.iter().rev().filter_map(|entry| match entry {
            Entry::Ref(name, id) if *name == own => *id,
            _ => None,
        });
        let stored = timelines.timeline().into_iter().chain(known.flat_map(|commit| timelines.timeline_at(commit)));
        let mut recorded = stored.take(TIMELINES).flat_map(|stored| self.checkpoints(&stored));
        if let Some(last) = recorded.find(|checkpoint| checkpoint.head == head) {
            return Ok(last.index);
        }
        let tree = Objects::new(self.repo).head_tree(&head)?;
        Ok(IndexState { tree, sparse: BTreeSet::new(), special: BTreeMap::new() })
    }

    /// What may be the last state that was recorded, the likeliest first.
    fn checkpoints(&self, stored: &Stored<'_>) -> Vec<Checkpoint> {
        let state = &stored.state;
        let last = state.recorded(&Refs::new(self.repo).head().unwrap_or_default()).last;
        let at = |number: Option<u64>, side| number.and_then(|number| stored.checkpoint(number, side).ok());
        let open = at(state.open, Side::Before);
        let top = at(last.top, Side::After);
        let undone = at(last.undone.first().copied(), Side::Before);
        let rescue = state.next_rescue.checked_sub(1).and_then(|number| stored.rescue(number).ok());
        open.into_iter().chain(top).chain(undone).chain(rescue).collect()
    }

    fn entries(&self, state: &IndexState) -> Result<BTreeMap<BString, Vec<IndexEntry>>> {
        let of_tree = Index::new(self.repo).of_tree(state.tree)?;
        let entry = |id: ObjectId, mode: u32| vec![IndexEntry::plain(mode, id)];
        let plain = of_tree.entries().iter().map(|it| (it.path(&of_tree).to_owned(), entry(it.id, it.mode.bits())));
        let mut all: BTreeMap<_, _> = plain.collect();
        all.extend(state.special.clone());
        Ok(all)
    }
}
