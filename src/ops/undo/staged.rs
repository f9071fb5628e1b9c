//! What somebody has staged of a turn's work, where the turn itself left the index alone: a ghost turn's, in a review by `git add`. It goes
//! with the turn, as it does where the turn has committed it; what else is staged stays.

use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::objects::Objects;
use crate::git::objects::tree::entry_mode;
use crate::model::checkpoint::{Change, Checkpoint, FileState, IndexEntry};
use crate::model::planner::TurnDelta;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Notes it for turns that are walked back over, each with the state from which the walk comes to it, and its end; or for parts of one,
/// which may have staged them, with its beginning.
pub fn note<'t>(
    view: &View<'_>,
    capture: &'t Capture,
    turns: impl Iterator<Item = (&'t Checkpoint, &'t Checkpoint, &'t mut TurnDelta)>,
) -> Result<()> {
    let (objects, checkpoints) = (Objects::new(view.repo), Checkpoints::new(view.repo));
    let now = &capture.checkpoint;
    let mut known: BTreeMap<(ObjectId, ObjectId), Vec<BString>> = BTreeMap::new();
    for (found, end, turn) in turns {
        for state in [now, found] {
            let index = &state.index;
            let is_gone = || state.head.commit.is_some_and(|commit| !objects.has_commit(commit));
            if (end.index.tree, &end.index.special) == (index.tree, &index.special) || is_gone() {
                continue;
            }
            let ends = (objects.head_tree(&state.head)?, index.tree);
            if let Entry::Vacant(new) = known.entry(ends) {
                new.insert(objects.changed_paths(ends.0, ends.1)?);
            }
            for path in known[&ends].iter().filter(|path| !turn.delta.index.contains_key(*path)) {
                let Some(change) = turn.delta.files.get(path) else { continue };
                if checkpoints.entries_of(index, path.as_bstr())?
                    != checkpoints.entries_of(&end.index, path.as_bstr())?
                {
                    turn.staged.insert(path.clone(), Change::new(as_staged(change.from), as_staged(change.to)));
                }
            }
        }
    }
    Ok(())
}

/// A file, as `git add` has it.
fn as_staged(file: Option<FileState>) -> Vec<IndexEntry> {
    file.map(|file| IndexEntry::plain(entry_mode(file.kind), file.id)).into_iter().collect()
}
