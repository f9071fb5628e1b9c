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
use gix::bstr::ByteSlice;

/// Notes it for turns that are walked back over, each with its end; or for parts of one, which may have staged them, with its beginning.
pub fn note<'t>(
    view: &View<'_>,
    capture: &Capture,
    turns: impl Iterator<Item = (&'t Checkpoint, &'t mut TurnDelta)>,
) -> Result<()> {
    let (objects, checkpoints) = (Objects::new(view.repo), Checkpoints::new(view.repo));
    let now = &capture.checkpoint.index;
    let mut staged = None;
    for (end, turn) in turns.filter(|(end, _)| (end.index.tree, &end.index.special) != (now.tree, &now.special)) {
        let staged = match &mut staged {
            Some(staged) => staged,
            none => none.insert(objects.changed_paths(objects.head_tree(&capture.checkpoint.head)?, now.tree)?),
        };
        for path in staged.iter().filter(|path| !turn.delta.index.contains_key(*path)) {
            let Some(change) = turn.delta.files.get(path) else { continue };
            if checkpoints.entries_of(now, path.as_bstr())? != checkpoints.entries_of(&end.index, path.as_bstr())? {
                turn.staged.insert(path.clone(), Change::new(as_staged(change.from), as_staged(change.to)));
            }
        }
    }
    Ok(())
}

/// A file, as `git add` has it.
fn as_staged(file: Option<FileState>) -> Vec<IndexEntry> {
    file.map(|file| IndexEntry::plain(entry_mode(file.kind), file.id)).into_iter().collect()
}
