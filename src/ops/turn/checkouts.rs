//! Where the user leads HEAD between an agent's calls, git writes the files of the commit that it goes to: nobody has saved
//! them. Without what the calls did HEAD comes from elsewhere or goes elsewhere, and other files come with it.
//!
//! ```text
//!                      HEAD     its file     without what the calls did
//! the turn begins      main A   1            main A    1
//! a call commits       main B   1, its       main A    1
//! the user switches    topic T  1            topic T   1
//! and back             main B   1, its       main A    1
//! ```

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeSlot, file_kind, plain_entry};
use crate::model::checkpoint::{Change, Checkpoint, FileState, Head, IndexEntry, Kind};
use crate::model::pointers::Pointers;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What git wrote as HEAD went from one commit to another, and what it would have written without what calls did, where that
/// is something else.
pub struct Checkout {
    found: BTreeMap<BString, Change<TreeSlot>>,
    own: BTreeMap<BString, Change<TreeSlot>>,
    /// The trees of either.
    trees: [Change<ObjectId>; 2],
    /// Whether it led to another branch, and no commits were made on the way.
    is_all: bool,
    /// The files that were written to after that, where it led elsewhere on the same branch.
    saved_after: BTreeSet<BString>,
}

impl Checkout {
    /// What it was as HEAD went from here to there, and goes from here to there without what calls did. Commits that were
    /// made on the way are none of it: what they have was saved. `known` tells the tips that there have been by then.
    pub fn of(
        view: &View<'_>,
        (from, to): (&Pointers, &Pointers),
        own: (&Head, &Pointers),
        known: impl FnOnce() -> BTreeSet<ObjectId>,
    ) -> Result<Option<Self>> {
        let (Some(was), Some(now)) = (from.head.commit, to.head.commit) else { return Ok(None) };
        let (Some(own_was), Some(own_now)) = (own.0.commit, own.1.head.commit) else { return Ok(None) };
        if (was, own_was) == (now, own_now) {
            return Ok(None);
        }
        let stays = own_was == own_now && from.head.branch == to.head.branch;
        if stays && is_made_anew(view, (was, now), &own.1.tips())? {
            return Ok(None);
        }
        let Some(base) = made_on(view, (from, to), now, (&known(), &own.1.tips()))? else { return Ok(None) };
        let objects = Objects::new(view.repo);
        let (base, own_now) = if own_now == now && own_was != own_now {
            (base, base)
        } else if own_was != own_now && objects.is_ancestor(base, own_now)? && objects.is_ancestor(own_now, now)? {
            // What calls did, or a copy of it, is on top of what was made on the way.
            (own_now, own_now)
        } else {
            (base, own_now)
        };
        let tree = |commit| objects.commit_tree(commit);
        let trees = [Change::new(tree(was)?, tree(base)?), Change::new(tree(own_was)?, tree(own_now)?)];
        if trees[0] == trees[1] {
            return Ok(None);
        }
        let changes = |trees: &Change<ObjectId>| objects.tree_changes(trees.from, trees.to);
        let (mut found, mut own) = (changes(&trees[0])?, changes(&trees[1])?);
        let is_same = |path: &BString| found.get(path) == own.get(path);
        let mut others: BTreeSet<BString> =
            found.keys().chain(own.keys()).filter(|path| !is_same(path)).cloned().collect();
        leave_converted(view, &mut others)?;
        for changes in [&mut found, &mut own] {
            changes.retain(|path, change| others.contains(path) && is_of_files(change));
        }
        let is_all = base == now && from.head.branch != to.head.branch;
        Ok(Some(Self { found, own, trees, is_all, saved_after: BTreeSet::new() }))
    }

    /// Finds the files that were written to after git had written them. HEAD may have been led back with no file written, too: what
    /// is in one then is more like what was there before.
    pub fn find_saved(&mut self, view: &View<'_>, files: &BTreeMap<BString, Change<Option<FileState>>>) -> Result<()> {
        let apart = |change: &Change<Option<FileState>>| {
            let (added, removed) = Checkpoints::new(view.repo).line_counts(change)?;
            Ok::<_, anyhow::Error>(added + removed)
        };
        for (path, written) in self.found.iter().filter(|_| !self.is_all) {
            let (Some(change), Some((_, id))) = (files.get(path), written.to) else { continue };
            let (Some(was), Some(_)) = (change.from, change.to) else { continue };
            let may_be = is_as(change.from, written.from) && !is_as(change.to, written.to);
            if may_be && apart(&Change::new(Some(FileState { id, ..was }), change.to))? < apart(change)? {
                self.saved_after.insert(path.clone());
            }
        }
        Ok(())
    }

    /// What git would have written without what calls did, where that is not what it did write.
    pub fn own(&self) -> impl Iterator<Item = (&BString, &Change<TreeSlot>)> {
        self.own.iter()
    }

    /// What was done to a file beside what git wrote; none where that is nothing. `base` is a state with the usual modes.
    pub fn rest(
        &self,
        base: &Checkpoint,
        path: &BString,
        change: &Change<Option<FileState>>,
    ) -> Option<Change<Option<FileState>>> {
        if self.wrote(path, change) {
            return None;
        }
        match self.found.get(path).filter(|written| is_as(change.from, written.from)) {
            // It was written to after that.
            Some(written) if self.is_all || self.saved_after.contains(path) => {
                Some(Change::new(file_of(base, written.to, None), change.to))
            }
            _ => Some(change.clone()),
        }
    }

    /// Whether git wrote a file.
    pub fn has_written(&self, path: &BString) -> bool {
        self.found.contains_key(path)
    }

    /// Whether git wrote all that a file has become.
    pub fn wrote(&self, path: &BString, change: &Change<Option<FileState>>) -> bool {
        self.found.get(path).is_some_and(|written| is_as(change.from, written.from) && is_as(change.to, written.to))
    }

    /// Whether git wrote the entries of a path along with its file.
    pub fn wrote_entries(&self, path: &BString, change: &Change<Vec<IndexEntry>>) -> bool {
        let is = |entries: &[IndexEntry], slot| *entries == plain_entry(slot, false)[..];
        self.found.get(path).is_some_and(|written| is(&change.from, written.from) && is(&change.to, written.to))
    }

    /// Whether git made or removed a directory, and would not have without what calls did.
    pub fn moved_directory(&self, view: &View<'_>, path: &BStr) -> Result<bool> {
        let objects = Objects::new(view.repo);
        let is_in = |tree| Ok::<_, anyhow::Error>(objects.tree_entry(tree, path)?.is_some());
        let [found, own] = &self.trees;
        let is_there = is_in(found.to)?;
        Ok(is_in(found.from)? != is_there && is_in(own.to)? != is_there)
    }
}

/// Whether all that calls had committed by then is there again on what it was upon, as after a rebase in which somebody puts work of
/// their own between that, or into it: the rest was saved.
fn is_made_anew(view: &View<'_>, (was, now): (ObjectId, ObjectId), own: &[ObjectId]) -> Result<bool> {
    let objects = Objects::new(view.repo);
    let only = |at, other| objects.reached_only_from(&[at], &[own, &[other]].concat());
    let of_calls = only(was, now)?;
    Ok(!of_calls.is_empty()
        && objects.base(was, own)? == objects.base(now, own)?
        && objects.are_among(&of_calls, &only(now, was)?))
}

/// The commit that git has checked out on the way to this one, upon which others may have been made.
fn made_on(
    view: &View<'_>,
    (from, to): (&Pointers, &Pointers),
    now: ObjectId,
    (known, own): (&BTreeSet<ObjectId>, &[ObjectId]),
) -> Result<Option<ObjectId>> {
    let objects = Objects::new(view.repo);
    let tips: Vec<ObjectId> = known.iter().copied().collect();
    let made = objects.commits_between(&tips, now)?;
    if made.is_empty() {
        return Ok(Some(now));
    }
    // What was picked of calls' commits git wrote as it does those.
    let of_calls: Vec<ObjectId> = tips.into_iter().filter(|tip| !own.contains(tip)).collect();
    let picked = objects.picked(&made, &objects.reached_only_from(&of_calls, own)?);
    let made: HashSet<ObjectId> = made.into_iter().filter(|commit| !picked.contains(commit)).collect();
    let base = objects.first_but(now, &made)?;
    if base.is_some_and(|base| picked.contains(&base)) {
        return Ok(base);
    }
    if to.head.branch != from.head.branch {
        if let Some(tip) = to.head.branch.as_ref().and_then(|branch| from.branches.get(branch)) {
            return Ok(Some(*tip));
        }
    } else if from.head.commit.map_or(Ok(true), |was| objects.is_ancestor(was, now))? {
        return Ok(from.head.commit);
    }
    Ok(base)
}

/// Takes out those of these files that git converts: they do not have what its trees have.
fn leave_converted(view: &View<'_>, paths: &mut BTreeSet<BString>) -> Result<()> {
    if paths.is_empty() {
        return Ok(());
    }
    let index = Index::new(view.repo);
    let read = index.read_index()?;
    let mut conversion = index.conversion(&read)?;
    paths.retain(|path| !conversion.may_convert(path.as_bstr()).unwrap_or(true));
    Ok(())
}

/// Whether a path was, and is, a file or link, or nothing.
pub fn is_of_files(change: &Change<TreeSlot>) -> bool {
    [change.from, change.to].into_iter().flatten().all(|(mode, _)| file_kind(mode.kind()).is_some())
}

/// What a tree has of a file or link.
pub fn content_of(slot: TreeSlot) -> Option<(Kind, ObjectId)> {
    slot.and_then(|(mode, id)| Some((file_kind(mode.kind())?, id)))
}

/// Whether a file is as a tree has it.
fn is_as(file: Option<FileState>, slot: TreeSlot) -> bool {
    file.map(|file| (file.kind, file.id)) == content_of(slot)
}

/// A file as git writes it; as it is, where it has that content.
pub fn file_of(base: &Checkpoint, slot: TreeSlot, there: Option<FileState>) -> Option<FileState> {
    if is_as(there, slot) {
        return there;
    }
    let (kind, id) = content_of(slot)?;
    let mode = if kind == Kind::Symlink { 0 } else { base.modes.usual.of(kind) };
    Some(FileState { kind, id, mode })
}
