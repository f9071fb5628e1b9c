//! The state after a plan that has just been carried out, computed from the state before it: only the plan counts,
//! since what somebody else changes meanwhile is not part of it.

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::{TreeChange, entry_kind};
use crate::git::worktree::Worktree;
use crate::git::worktree::stat::mode_of;
use crate::model::bytes::exact;
use crate::model::checkpoint::{Checkpoint, Kind};
use crate::model::path::{all_parents, is_at_or_below};
use crate::model::plan::{FileMove, Plan};
use crate::model::turn::Turn;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::Mode;
use rustix::fs::FileType;
use std::collections::BTreeSet;

impl Checkpoints<'_> {
    /// The state after a plan. `None` where it takes a scan of the worktree: something was moved aside or back, or the
    /// worktree is sparse, has submodules, or does not keep the executable bit; or a file came that git leaves out.
    pub fn after(&self, before: &Checkpoint, plan: &Plan) -> Result<Option<Checkpoint>> {
        let index = Index::new(self.repo).read_index()?;
        let is_told = plan.aside.is_empty()
            && come_though_left_out(before, plan).is_empty()
            && before.index.sparse.is_empty()
            && self.repo.gix.filesystem_options()?.executable_bit
            && index.entries().iter().all(|entry| entry.mode != Mode::COMMIT && entry.mode != Mode::DIR);
        if !is_told || !self.is_all_in(before, plan)? {
            return Ok(None);
        }
        let mut after = before.clone();
        after.head = plan.head.to.clone();
        for branch in &plan.branches {
            match branch.to {
                Some(to) => after.branches.insert(branch.name.clone(), to),
                None => after.branches.remove(&branch.name),
            };
        }
        for branch in &plan.symbolic {
            match &branch.to {
                Some(to) => after.symbolic.insert(branch.name.clone(), to.clone()),
                None => after.symbolic.remove(&branch.name),
            };
        }
        if let Some(stash) = &plan.stash {
            after.stash.clone_from(&stash.to);
        }
        if let Some(operation) = &plan.operation {
            after.operation.clone_from(&operation.to);
        }
        let entries = plan.index.iter().map(|entry| (entry.path.clone(), entry.to.clone())).collect();
        self.put_entries(&mut after.index, &entries)?;
        after.worktree = Objects::new(self.repo).edited_tree(before.worktree, &changes(plan.files.iter()))?;
        let gone = self.gone(plan)?;
        file_modes(&mut after, plan.files.iter());
        directory_modes(&mut after, plan, &gone);
        after.directories = self.empty_directories(before, &after, plan, &gone)?;
        Ok(Some(after))
    }

    /// The tree of the worktree's files after a plan.
    pub fn tree_after(&self, before: ObjectId, plan: &Plan) -> Result<ObjectId> {
        Objects::new(self.repo).edited_tree(before, &changes(plan.files.iter()))
    }

    /// The state before a plan, with the files that it takes away or replaces and that the state leaves out, as what is ignored
    /// since a turn made it: no record else has them.
    pub fn with_what_goes_though_left_out(&self, before: &Checkpoint, plan: &Plan) -> Result<Checkpoint> {
        let mut left_out = Vec::new();
        for (path, from) in plan.files.iter().filter_map(|file| Some((&file.path, file.from?))) {
            if self.captured_file(before, path.as_bstr())?.is_none() && Objects::new(self.repo).has_object(from.id) {
                left_out.push((path.clone(), Some(from)));
            }
        }
        if left_out.is_empty() { Ok(before.clone()) } else { self.with_files(before, &left_out) }
    }

    /// The files that a plan writes where nothing is and that the state before it leaves out, as a turn's record has
    /// them. The directories that are there already become part of that state: the way back leaves them.
    pub fn written_though_left_out(&self, before: &mut Checkpoint, plan: &Plan) -> Result<BTreeSet<String>> {
        let new = plan.files.iter().filter(|file| file.from.is_none() && file.to.is_some());
        let written = self.left_out(before, new.map(|file| &file.path))?;
        self.add_directories_above(before, written.iter())?;
        Ok(written.iter().map(|path| exact::encode(path)).collect())
    }

    /// The state that was found after a plan, of which only what the plan did counts: each of its files is as it has it,
    /// also where a scan leaves it out, and each other file and entry of the index as before, whoever has changed it since.
    pub fn as_planned(&self, before: &Checkpoint, found: &Checkpoint, turn: &Turn, plan: &Plan) -> Result<Checkpoint> {
        let mut indexed: BTreeSet<&BString> = plan.index.iter().map(|entry| &entry.path).collect();
        // git sees such a file as one that it does not leave out.
        indexed.extend(come_though_left_out(before, plan));
        let is_aside = |path: &BString| plan.aside.iter().any(|it| is_at_or_below(path.as_bstr(), it.path.as_bstr()));
        let is_others = |path: &BString| !indexed.contains(path) && !is_aside(path);
        let others: Vec<BString> = self.file_changes(before, found)?.into_keys().filter(is_others).collect();
        let mut after = self.with_paths_of(found, before, &others)?;
        let staged = self.index_changes(before, found)?.into_iter().filter(|(path, _)| is_others(path));
        self.put_entries(&mut after.index, &staged.map(|(path, change)| (path, change.from)).collect())?;
        after.worktree = Objects::new(self.repo).edited_tree(after.worktree, &changes(plan.files.iter()))?;
        file_modes(&mut after, plan.files.iter());
        let written = plan.files.iter().filter(|file| turn.has_written(file.path.as_bstr()));
        self.add_directories_above(&mut after, written.map(|file| &file.path))?;
        Ok(after)
    }

    fn add_directories_above<'p>(
        &self,
        state: &mut Checkpoint,
        files: impl Iterator<Item = &'p BString>,
    ) -> Result<()> {
        for path in all_parents(files.map(|path| path.as_bstr())) {
            let Some((stat, _)) = Worktree::new(self.repo).stat(path)? else { continue };
            if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
                continue;
            }
            if Objects::new(self.repo).tree_entry(state.worktree, path)?.is_none() {
                state.directories.insert(path.to_owned());
            }
            if mode_of(&stat) != state.modes.usual.directory {
                state.modes.unusual.insert(BString::from([path.as_bytes(), b"/"].concat()), mode_of(&stat));
            }
        }
        Ok(())
    }

    /// Whether the plan names every file that changes: none comes to be captured only since it is tracked now.
    fn is_all_in(&self, before: &Checkpoint, plan: &Plan) -> Result<bool> {
        let files: BTreeSet<&BString> = plan.files.iter().map(|file| &file.path).collect();
        for entry in plan.index.iter().filter(|entry| !entry.to.is_empty() && !files.contains(&entry.path)) {
            if Objects::new(self.repo).tree_file(before.worktree, entry.path.as_bstr())?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Every directory that exists and has no captured file in it or below.
    fn empty_directories(
        &self,
        before: &Checkpoint,
        after: &Checkpoint,
        plan: &Plan,
        gone: &BTreeSet<&BString>,
    ) -> Result<BTreeSet<BString>> {
        let planned = plan.directories.iter().map(|directory| directory.path.clone());
        let removed = plan.files.iter().filter(|file| file.to.is_none());
        let emptied = all_parents(removed.map(|file| file.path.as_bstr())).into_iter();
        let candidates: BTreeSet<BString> =
            before.directories.iter().cloned().chain(planned).chain(emptied.map(BStr::to_owned)).collect();
        let mut empty = BTreeSet::new();
        for path in candidates.into_iter().filter(|path| !gone.contains(path)) {
            if Objects::new(self.repo).tree_entry(after.worktree, path.as_bstr())?.is_none() {
                empty.insert(path);
            }
        }
        Ok(empty)
    }

    /// The directories that were to go and have gone: what is not captured keeps one.
    fn gone<'p>(&self, plan: &'p Plan) -> Result<BTreeSet<&'p BString>> {
        let mut gone = BTreeSet::new();
        for directory in plan.directories.iter().filter(|directory| directory.to.is_none()) {
            if Worktree::new(self.repo).open_directory(directory.path.as_bstr())?.is_none() {
                gone.insert(&directory.path);
            }
        }
        Ok(gone)
    }
}

/// The files that a plan writes and that git leaves out of the worktree.
fn come_though_left_out<'p>(before: &Checkpoint, plan: &'p Plan) -> BTreeSet<&'p BString> {
    let written = plan.files.iter().filter(|file| file.to.is_some()).map(|file| &file.path);
    written.filter(|path| before.index.leaves_out(path)).collect()
}

fn changes<'p>(files: impl Iterator<Item = &'p FileMove>) -> Vec<TreeChange> {
    files.map(|file| (file.path.clone(), file.to.map(|to| (entry_kind(to.kind), to.id)))).collect()
}

fn file_modes<'p>(after: &mut Checkpoint, files: impl Iterator<Item = &'p FileMove>) {
    let usual = after.modes.usual;
    let unusual = &mut after.modes.unusual;
    for file in files {
        match file.to.filter(|to| to.kind != Kind::Symlink && to.mode != usual.of(to.kind)) {
            Some(to) => unusual.insert(file.path.clone(), to.mode),
            None => unusual.remove(&file.path),
        };
    }
}

fn directory_modes(after: &mut Checkpoint, plan: &Plan, gone: &BTreeSet<&BString>) {
    let usual = after.modes.usual;
    let unusual = &mut after.modes.unusual;
    for directory in
        plan.directories.iter().filter(|directory| directory.to.is_some() || gone.contains(&directory.path))
    {
        let key = BString::from([directory.path.as_slice(), b"/"].concat());
        match directory.to.filter(|mode| *mode != usual.directory) {
            Some(mode) => unusual.insert(key, mode),
            None => unusual.remove(&key),
        };
    }
}
