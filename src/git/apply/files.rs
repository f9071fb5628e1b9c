//! The worktree's part of a plan.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::worktree::stat::{OPEN, is_open};
use crate::git::worktree::{Lookup, Worktree};
use crate::model::bytes::quoted;
use crate::model::path::parents;
use crate::model::plan::{AsideMove, DirectoryMove, FileMove, Plan};
use crate::progress::Phase;
use anyhow::{Context, Result};
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::BTreeSet;

/// The worktree's part of a plan.
pub struct Files<'a> {
    repo: &'a Repo,
    /// Skip what is neither as the plan begins nor as it ends, instead of refusing.
    lenient: bool,
    pub left: BTreeSet<BString>,
}

impl<'a> Files<'a> {
    /// Refuses where anything is not as the plan expects it.
    pub fn strict(repo: &'a Repo) -> Self {
        Self { repo, lenient: false, left: BTreeSet::new() }
    }

    /// Skips what is neither as the plan begins nor as it ends, and notes it in `left`.
    pub fn lenient(repo: &'a Repo) -> Self {
        Self { lenient: true, ..Self::strict(repo) }
    }

    fn worktree(&self) -> Worktree<'_> {
        Worktree::new(self.repo)
    }

    /// Tries out what it takes to put files and directories into their places, before anything is changed. The way back
    /// takes the same: it would be refused too.
    pub fn rehearse(&self, plan: &Plan) -> Result<()> {
        let moved = plan.files.iter().find(|file| file.action() != "mode");
        let mode = moved.and_then(|file| file.to.or(file.from)).map_or(0, |state| state.mode);
        let first = (moved.map(|file| &file.path))
            .or_else(|| plan.aside.first().map(|aside| &aside.path))
            .or_else(|| plan.directories.iter().find(|it| it.from.is_none() || it.to.is_none()).map(|it| &it.path));
        let Some(path) = first else { return Ok(()) };
        for directory in parents(path.as_bstr()).chain([BStr::new("")]) {
            // One that is closed will be opened.
            if let Some(fd) = self.worktree().open_directory(directory)?
                && is_open(&rustix::fs::fstat(fd)?)
            {
                return self.worktree().rehearse(directory, mode & 0o777);
            }
        }
        Ok(())
    }

    pub fn apply(&mut self, plan: &Plan) -> Result<()> {
        let underway = self.repo.watch.begin(Phase::Apply, plan.files.len());
        for directory in &plan.directories {
            self.open(directory)?;
        }
        for file in plan.files.iter().filter(|file| file.to.is_none()) {
            self.delete(file)?;
            underway.advance(1);
        }
        for aside in plan.aside.iter().filter(|aside| aside.out) {
            self.move_aside(aside)?;
        }
        for directory in plan.directories.iter().rev().filter(|directory| directory.to.is_none()) {
            self.worktree().remove_empty_directory(directory.path.as_bstr())?;
        }
        for directory in plan.directories.iter().filter(|directory| directory.to.is_some()) {
            self.make_directory(directory)?;
        }
        for aside in plan.aside.iter().filter(|aside| !aside.out) {
            self.move_aside(aside)?;
        }
        for file in &plan.files {
            if let Some(to) = &file.to {
                self.write(file, to)?;
                underway.advance(1);
            }
        }
        // Last, and the deepest first: a directory may lose its write permission.
        for directory in plan.directories.iter().rev() {
            let path = directory.path.as_bstr();
            if let Some(to) = directory.to
                && (directory.from.is_some_and(|from| from != to) || to & OPEN != OPEN)
                && self.worktree().open_directory(path)?.is_some()
            {
                self.worktree().set_mode(path, to)?;
            }
        }
        Ok(())
    }

    /// Whether a file is still as the plan found it, so that it may be changed.
    fn ready(&mut self, file: &FileMove) -> Result<bool> {
        let now = self.worktree().state(file.path.as_bstr(), self.repo.hash_kind())?;
        if now == file.from {
            return Ok(true);
        }
        if self.lenient {
            if now != file.to {
                self.left.insert(file.path.clone());
            }
            return Ok(false);
        }
        Err(changed_meanwhile(file.path.as_bstr()))
    }

    fn delete(&mut self, file: &FileMove) -> Result<()> {
        if self.ready(file)? {
            self.worktree().delete(file.path.as_bstr())?;
        }
        Ok(())
    }

    fn write(&mut self, file: &FileMove, to: &crate::model::checkpoint::FileState) -> Result<()> {
        if !self.ready(file)? {
            return Ok(());
        }
        let path = file.path.as_bstr();
        if let Some(from) = &file.from
            && from.same_content(to)
        {
            return self.worktree().set_mode(path, to.mode);
        }
        self.worktree().write(path, to, file.from.is_some(), |out| {
            Objects::new(self.repo).copy_blob(to.id, out).with_context(|| format!("read what '{path}' was"))
        })
    }

    fn move_aside(&mut self, aside: &AsideMove) -> Result<()> {
        let store = self.repo.scratch_path(&aside.store);
        let path = aside.path.as_bstr();
        let there = matches!(self.worktree().find(path)?, Lookup::There(_));
        let kept = store.symlink_metadata().is_ok();
        // A lenient apply finds it in one of the two places; in both or in neither, if the user changed that.
        if self.lenient && (there, kept) != (aside.out, !aside.out) {
            if there == kept {
                self.left.insert(aside.path.clone());
            }
            return Ok(());
        }
        self.worktree().move_aside(path, &store, aside.out)
    }

    fn make_directory(&mut self, directory: &DirectoryMove) -> Result<()> {
        match (directory.from, directory.to) {
            (None, Some(mode)) => self.worktree().make_directory(directory.path.as_bstr(), mode | OPEN),
            _ => Ok(()),
        }
    }

    /// Gives a directory's owner all permissions, until its content has been changed.
    fn open(&self, directory: &DirectoryMove) -> Result<()> {
        let path = directory.path.as_bstr();
        match directory.from.or(directory.to.filter(|_| self.lenient)) {
            Some(mode) if mode & OPEN != OPEN && self.worktree().open_directory(path)?.is_some() => {
                self.worktree().set_mode(path, mode | OPEN)
            }
            _ => Ok(()),
        }
    }

    /// Deletes temporary files that a killed write or rehearsal left beside what the plan changes.
    pub fn sweep(&self, plan: &Plan) -> Result<()> {
        let files = plan.files.iter().map(|file| &file.path);
        let parents: BTreeSet<&[u8]> = files
            .chain(plan.directories.iter().map(|directory| &directory.path))
            .chain(plan.aside.iter().map(|aside| &aside.path))
            .map(|path| path.rfind_byte(b'/').map_or(&b""[..], |slash| &path[..slash]))
            .collect();
        for parent in parents {
            self.worktree().sweep(parent.as_bstr())?;
        }
        Ok(())
    }
}

pub fn changed_meanwhile(path: &BStr) -> anyhow::Error {
    Refusal::new(Code::Conflict, format!("'{}' was changed meanwhile", quoted(path)))
        .hint("run the same command again")
        .paths([path.to_owned()])
        .into()
}
