//! Files that git has written anew since, as by a switch of branches or a stash, with other line ends or through a filter: to git they are
//! what a turn left, and so they are to undo.

use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::model::checkpoint::{Change, FileState, Kind};
use crate::model::plan::Plan;
use crate::model::planner::{Occupant, Present, TurnDelta};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;

/// So many files are looked at: git may be asked of each.
const MOST: usize = 200;

/// What turns left, and what is there instead.
#[derive(Default)]
pub struct Converted(BTreeMap<BString, Change<FileState>>);

impl Converted {
    /// Those of the files that a walk changes: nobody has edited them, and each is there as it was left.
    pub fn find(view: &View<'_>, capture: &Capture, deltas: &[TurnDelta], present: &mut Present) -> Result<Self> {
        let change_of = |path: &BString| deltas.iter().find_map(|turn| turn.delta.files.get(path));
        let mut ends = Vec::new();
        for (path, edit) in &present.edited {
            let (left, now) = match (change_of(path), present.files.get(path)) {
                (Some(change), Some(Occupant::File(now))) => (change.from, Some(*now)),
                (None, _) => (edit.to, edit.from),
                _ => continue,
            };
            let has_links = [left, now].into_iter().flatten().any(|file| file.kind == Kind::Symlink);
            if let (Some(left), Some(now)) = (left, now)
                && !has_links
                && left.mode == now.mode
                && left.id != now.id
            {
                ends.push((path.clone(), Change::new(left, now)));
            }
        }
        let mut found = BTreeMap::new();
        if ends.is_empty() {
            return Ok(Self(found));
        }
        // Those of the walk come first: of the others no more is at stake than that they are named.
        ends.sort_by_key(|(path, _)| change_of(path).is_none());
        let (index, objects) = (Index::new(view.repo), Objects::new(view.repo));
        let mut conversion = index.conversion(&capture.index)?;
        for (path, change) in ends.into_iter().take(MOST) {
            if !conversion.may_convert(path.as_bstr())? {
                continue;
            }
            // What differs by more than that needs no git to tell.
            let text = |file: FileState| objects.blob(file.id).map(|text| text.replace("\r", ""));
            let is_same = || matches!((text(change.from), text(change.to)), (Ok(was), Ok(is)) if was == is);
            if !conversion.may_convert_more(path.as_bstr())? && !is_same() {
                continue;
            }
            let to_git = |file: FileState| index.converted(path.as_bstr(), file.id);
            // A filter may be gone by now.
            if let (Ok(was), Ok(is)) = (to_git(change.from), to_git(change.to))
                && was == is
            {
                present.edited.remove(&path);
                if change_of(&path).is_some() {
                    present.files.insert(path.clone(), Occupant::File(change.from));
                    found.insert(path, change);
                }
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
