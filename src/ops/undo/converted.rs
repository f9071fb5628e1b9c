//! Files that git has written anew since, as by a switch of branches or a stash, with other line ends or through a filter: to git they are
//! what a turn left, and so they are to undo.

use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::model::checkpoint::{Change, FileState, Kind};
use crate::model::plan::Plan;
use crate::model::planner::{Occupant, Present, TurnDelta};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;

/// So many files are looked at: git is asked of each.
const MOST: usize = 200;

/// What turns left, and what is there instead.
#[derive(Default)]
pub struct Converted(BTreeMap<BString, Change<FileState>>);

impl Converted {
    /// Those of the files that a walk changes: nobody has edited them, and each is there as it was left.
    pub fn find(view: &View<'_>, capture: &Capture, deltas: &[TurnDelta], present: &mut Present) -> Result<Self> {
        let mut paths: Vec<BString> = present.edited.keys().cloned().collect();
        paths.retain(|path| matches!(present.files.get(path), Some(Occupant::File(_))));
        if paths.is_empty() {
            return Ok(Self::default());
        }
        let index = Index::new(view.repo);
        let (mut conversion, mut found) = (index.conversion(&capture.index)?, BTreeMap::new());
        for path in paths.into_iter().take(MOST) {
            let left = deltas.iter().find_map(|turn| turn.delta.files.get(&path)).and_then(|change| change.from);
            let (Some(left), Some(Occupant::File(now))) = (left, present.files.get(&path)) else { continue };
            let (now, has_links) = (*now, [left.kind, now.kind].contains(&Kind::Symlink));
            if has_links || left.mode != now.mode || left.id == now.id || !conversion.may_convert(path.as_bstr())? {
                continue;
            }
            let to_git = |file: FileState| index.converted(path.as_bstr(), file.id);
            // A filter may be gone by now.
            if let (Ok(was), Ok(is)) = (to_git(left), to_git(now))
                && was == is
            {
                present.edited.remove(&path);
                present.files.insert(path.clone(), Occupant::File(left));
                found.insert(path, Change::new(left, now));
            }
        }
        Ok(Self(found))
    }

    /// Has a plan go from what is there.
    pub fn put_into(&self, plan: &mut Plan) {
        for file in &mut plan.files {
            if let Some(Change { from: left, to: now }) = self.0.get(&file.path)
                && file.from == Some(*left)
            {
                file.from = Some(*now);
            }
        }
        plan.files.retain(|file| file.from != file.to);
    }
}
