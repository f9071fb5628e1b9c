//! Files that a turn, or a step, has changed and that somebody has given other names since: what takes it out follows them, as
//! `git revert` does.
//!
//! ```text
//! the turn's end   b.txt      1, its
//! since            lib/b.txt  1, its, 2
//! taken out        lib/b.txt  1, 2
//! ```

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::worktree::Worktree;
use crate::model::checkpoint::{Change, Checkpoint, Delta, FileState};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// The names that files have now, by those that they had at a turn's end.
#[derive(Default)]
pub struct RenamedSince(BTreeMap<BString, BString>);

impl RenamedSince {
    /// Those of what an inverse changes, by how files were at the end of what is taken out, and are now. `above` is taken out before:
    /// what it brings back is at its place then, and what it takes away is not what had another name before.
    pub fn find(
        view: &View<'_>,
        (inverse, end): (&Delta, impl FnOnce() -> Result<Checkpoint>),
        now: &Checkpoint,
        above: &[&Delta],
    ) -> Result<Self> {
        let (checkpoints, worktree) = (Checkpoints::new(view.repo), Worktree::new(view.repo));
        let any_above = |path: &BString, is: fn(&Change<Option<FileState>>) -> bool| {
            above.iter().any(|delta| delta.files.get(path).is_some_and(is))
        };
        let mut gone = BTreeSet::new();
        for (path, _) in inverse.files.iter().filter(|(_, change)| change.from.is_some()) {
            let comes_back = any_above(path, |change| change.to.is_some());
            // What is ignored by now is in no state, and there.
            let is_there = || worktree.readable(path.as_bstr(), view.repo.hash_kind()).is_some();
            if !comes_back && checkpoints.captured_file(now, path.as_bstr())?.is_none() && !is_there() {
                gone.insert(path);
            }
        }
        if gone.is_empty() {
            return Ok(Self::default());
        }
        let mut names = BTreeMap::new();
        for (new, old) in checkpoints.surely_came_from(&checkpoints.file_changes(&end()?, now)?)? {
            let goes_away = any_above(&new, |change| change.from.is_some() && change.to.is_none());
            // Under a name that it has changed as well the file may be back at its own place.
            if gone.contains(&old) && !goes_away && !inverse.files.contains_key(&new) {
                names.insert(old, new);
            }
        }
        Ok(Self(names))
    }

    /// Leads what changes files, and their entries where these have their new names too, to where they are now.
    pub fn lead(&self, view: &View<'_>, delta: &mut Delta, now: &Checkpoint) -> Result<()> {
        let checkpoints = Checkpoints::new(view.repo);
        let is_staged =
            |path: &BString| Ok::<_, anyhow::Error>(!checkpoints.entries_of(&now.index, path.as_bstr())?.is_empty());
        for (old, new) in &self.0 {
            let change = delta.files.remove(old);
            delta.files.extend(change.map(|change| (new.clone(), change)));
            if !is_staged(old)? && is_staged(new)? {
                let change = delta.index.remove(old);
                delta.index.extend(change.map(|change| (new.clone(), change)));
            }
        }
        Ok(())
    }

    /// Trees with the names that these files have in this one.
    pub fn lead_trees(&self, view: &View<'_>, trees: [ObjectId; 2], head: ObjectId) -> Result<[ObjectId; 2]> {
        let objects = Objects::new(view.repo);
        let has = |tree, path: &BString| objects.tree_has_entry(tree, path.as_bstr());
        let mut changes = [Vec::new(), Vec::new()];
        for (old, new) in &self.0 {
            if has(head, old)? || !has(head, new)? || has(trees[0], new)? || has(trees[1], new)? {
                continue;
            }
            for (tree, changes) in trees.iter().zip(&mut changes) {
                let entry = objects.tree_entry(*tree, old.as_bstr())?;
                changes.extend([(old.clone(), None), (new.clone(), entry)].into_iter().filter(|_| entry.is_some()));
            }
        }
        Ok([objects.edited_tree(trees[0], &changes[0])?, objects.edited_tree(trees[1], &changes[1])?])
    }

    /// Each name then, and the one now.
    pub fn iter(&self) -> impl Iterator<Item = (&BString, &BString)> {
        self.0.iter()
    }

    /// Whether what had this name has another one.
    pub fn has(&self, then: &BString) -> bool {
        self.0.contains_key(then)
    }

    /// What a file was called at the turn's end that has this name now.
    pub fn name_then(&self, now: &BString) -> Option<&BString> {
        self.0.iter().find(|(_, new)| *new == now).map(|(old, _)| old)
    }

    /// Leaves out of what somebody has edited that files have other names.
    pub fn leave_out(&self, edited: &mut BTreeMap<BString, Change<Option<FileState>>>, delta: &Delta) {
        for (old, new) in &self.0 {
            edited.remove(old);
            if let Some(change) = delta.files.get(new)
                && edited.get(new).is_some_and(|edit| edit.to == change.from)
            {
                edited.remove(new);
            }
        }
    }
}

/// The other names of the files that an inverse changes, those that it gives back and those that it takes: such a file is one thing.
pub fn other_names(
    view: &View<'_>,
    files: &BTreeMap<BString, Change<Option<FileState>>>,
) -> Result<BTreeMap<BString, BString>> {
    let pairs = Checkpoints::new(view.repo).surely_came_from(files)?;
    Ok(pairs.into_iter().flat_map(|(old, new)| [(old.clone(), new.clone()), (new, old)]).collect())
}
