//! What the user wrote in the middle of a turn is never to go with it unsaid: of a line of theirs that is there at the end, and nowhere
//! without what calls did, is told, whatever became of the files meanwhile.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::model::checkpoint::{Change, Checkpoint, FileState};
use crate::model::leftover::tells;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The lines of files, each of which is read once.
struct Lines<'v, 'r> {
    view: &'v View<'r>,
    read: HashSet<ObjectId>,
    all: HashSet<BString>,
}

impl<'v, 'r> Lines<'v, 'r> {
    fn none(view: &'v View<'r>) -> Self {
        Self { view, read: HashSet::new(), all: HashSet::new() }
    }

    fn of(&self, id: ObjectId) -> Result<HashSet<BString>> {
        let content = Checkpoints::new(self.view.repo).content_of(id)?.unwrap_or_default();
        Ok(content.lines().map(BString::from).collect())
    }

    fn add(&mut self, id: ObjectId) -> Result<()> {
        if self.read.insert(id) {
            let lines = self.of(id)?;
            self.all.extend(lines);
        }
        Ok(())
    }
}

/// What the user wrote first in the middle of a turn, and is nowhere else.
pub struct Written<'v, 'r> {
    /// What was there by now, whoever wrote it.
    seen: Lines<'v, 'r>,
    own: HashSet<BString>,
}

impl<'v, 'r> Written<'v, 'r> {
    /// Nothing yet.
    pub fn none(view: &'v View<'r>) -> Self {
        Self { seen: Lines::none(view), own: HashSet::new() }
    }

    /// With what a change of the user's has that was nowhere by then: not `before` the turn, nor in the files, as a tree, that it goes
    /// from. What `is_gits` says is nobody's.
    pub fn follow(
        &mut self,
        (before, was): (&Checkpoint, ObjectId),
        files: &BTreeMap<BString, Change<Option<FileState>>>,
        is_gits: impl Fn(&BString) -> bool,
    ) -> Result<()> {
        let repo = self.seen.view.repo;
        if files.is_empty() {
            return Ok(());
        }
        for (mode, id) in Objects::new(repo).tree_changes(before.worktree, was)?.into_values().filter_map(|it| it.to) {
            if mode.is_blob_or_symlink() {
                self.seen.add(id)?;
            }
        }
        for (path, change) in files {
            let first = Checkpoints::new(repo).captured_file(before, path.as_bstr())?;
            for file in first.into_iter().chain(change.from) {
                self.seen.add(file.id)?;
            }
        }
        for (path, file) in files.iter().filter_map(|(path, change)| Some((path, change.to?))) {
            if !is_gits(path) && !self.seen.read.contains(&file.id) {
                let lines = self.seen.of(file.id)?;
                self.own.extend(lines.into_iter().filter(|line| tells(line) && !self.seen.all.contains(line)));
            }
        }
        for file in files.values().filter_map(|change| change.to) {
            self.seen.add(file.id)?;
        }
        Ok(())
    }

    /// The files at the end of which some lines are among these, and in no file that the turn is undone to.
    pub fn without_place(
        &self,
        before: &Checkpoint,
        goal: &Checkpoint,
        after: &Checkpoint,
    ) -> Result<BTreeSet<BString>> {
        let (view, mut paths) = (self.seen.view, BTreeSet::new());
        if self.own.is_empty() {
            return Ok(paths);
        }
        let (checkpoints, mut kept) = (Checkpoints::new(view.repo), Lines::none(view));
        for change in checkpoints.file_changes(before, goal)?.into_values() {
            change.to.map_or(Ok(()), |file| kept.add(file.id))?;
        }
        for (path, change) in checkpoints.file_changes(goal, after)? {
            let Some(file) = change.to else { continue };
            if kept.of(file.id)?.iter().any(|line| self.own.contains(line) && !kept.all.contains(line)) {
                paths.insert(path);
            }
        }
        Ok(paths)
    }
}
