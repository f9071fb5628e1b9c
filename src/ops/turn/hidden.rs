//! What the user had in files that git was told to leave alone as a turn began, by a mark of theirs in the index: no dirty commit has
//! it. Whoever takes such a mark off, it is in no commit of the turn's.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::model::checkpoint::{Checkpoint, Delta, FileState, IndexEntry};
use crate::ops::turn::meanwhile::{Parts, Whose};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// The files, by the names that they have at the end of a turn.
pub struct Hidden(BTreeMap<BString, Was>);

/// A file as the turn found it.
struct Was {
    name: BString,
    file: FileState,
}

impl Hidden {
    /// Those of these that had something which is not committed. Who has staged one, or taken it out of the index, means all of it.
    pub fn find(
        view: &View<'_>,
        (before, after): (&Checkpoint, &Checkpoint),
        changed: &Delta,
        paths: &BTreeSet<&BString>,
    ) -> Result<Self> {
        let checkpoints = Checkpoints::new(view.repo);
        let staged = |state: &Checkpoint, path: &BString| checkpoints.entries_of(&state.index, path.as_bstr());
        let is_staged = |old: &BString, new: &BString| {
            let (was, mut now) = (staged(before, old)?, staged(after, new)?);
            if now.is_empty() {
                now = staged(after, old)?;
            }
            Ok::<_, anyhow::Error>(!now.iter().any(|now| was.iter().any(|was| was.id == now.id)))
        };
        let mut found = BTreeMap::new();
        if before.index.special.is_empty() {
            return Ok(Self(found));
        }
        let committed = Objects::new(view.repo).head_tree(&before.head)?;
        let is_hidden = |entry: &IndexEntry| entry.assume_unchanged || entry.skip_worktree;
        let marked = before.index.special.iter().filter(|(_, entries)| entries.iter().any(is_hidden));
        for path in marked.map(|(path, _)| path).filter(|path| paths.contains(path)) {
            let Some(file) = checkpoints.captured_file(before, path.as_bstr())? else { continue };
            if Objects::new(view.repo).tree_file(committed, path.as_bstr())? != Some((file.kind, file.id)) {
                found.insert(path.clone(), Was { name: path.clone(), file });
            }
        }
        let is_gone = |path: &BString| changed.files.get(path).is_some_and(|change| change.to.is_none());
        if found.keys().any(is_gone) {
            for (new, old) in checkpoints.surely_came_from(&changed.files)? {
                if let Some(was) = found.remove(&old) {
                    found.insert(new, was);
                }
            }
        }
        let mut hidden = BTreeMap::new();
        for (path, was) in found.into_iter().filter(|(path, _)| paths.contains(path)) {
            if !is_staged(&was.name, &path)? {
                hidden.insert(path, was);
            }
        }
        Ok(Self(hidden))
    }

    /// Whose a path is, with what of it is to be committed; none where it is no such file. `goal` is what undo of the turn leads to.
    pub fn whose<'r>(
        &self,
        view: &View<'r>,
        (goal, after): (&Checkpoint, &Checkpoint),
        path: &BString,
        parts: &mut Parts<'_, '_, 'r>,
    ) -> Result<Option<Whose>> {
        let Some(Was { name, file: was }) = self.0.get(path) else { return Ok(None) };
        let checkpoints = Checkpoints::new(view.repo);
        let Some(now) = checkpoints.captured_file(after, path.as_bstr())? else { return Ok(None) };
        let saved = checkpoints.captured_file(goal, name.as_bstr())?.unwrap_or(*was);
        if saved == now && name == path {
            return Ok(Some(Whose::Users));
        }
        // Where the two overlap, all of it stays as the user had it: git was not to have it.
        let whose = parts.part_in_head(view, path.as_bstr(), (*was, saved, now), name.as_bstr())?;
        Ok(Some(if whose == Whose::Turns { Whose::Users } else { whose }))
    }
}
