//! What git is in the middle of, as a part of a plan. While it is moved, `index.lock` is held: git's own commands that finish an
//! operation or give it up want it first.

use crate::git::apply::Apply;
use crate::git::apply::refusals::other_operation;
use crate::git::objects::Objects;
use crate::git::refs::lockfile::remove_empty_above;
use crate::git::repo::large::blob_id;
use crate::git::repo::scratch::{remove_if_there, temporary_name};
use crate::model::checkpoint::{Change, Head};
use crate::model::operation::{self, ORIG_HEAD, Operation};
use crate::model::plan::Plan;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;

impl Apply<'_> {
    /// Refuses where git has begun, ended or changed something since the plan was made.
    pub fn check_operation(&self, plan: &Plan) -> Result<()> {
        let Some(Change { from, .. }) = &plan.operation else { return Ok(()) };
        if self.operation_like(from)? == *from { Ok(()) } else { Err(other_operation()) }
    }

    /// Refuses, as the last thing before the refs move, where git has done so since this was moved.
    pub fn check_operation_last(&self, plan: &Plan) -> Result<()> {
        let Some(Change { to, .. }) = &plan.operation else { return Ok(()) };
        // Those in tables move with the other refs.
        let in_files = |operation: Operation| {
            let mut files = operation.files;
            files.retain(|path, _| !self.repo.is_in_table(path.as_bstr()));
            (files, operation.unread)
        };
        let now = self.operation_like(to)?;
        if in_files(now) == in_files(to.clone()) { Ok(()) } else { Err(other_operation()) }
    }

    /// The present operation, read as far as another one was.
    fn operation_like(&self, other: &Operation) -> Result<Operation> {
        self.repo.operation(if other.unread.is_some() { 0 } else { u64::MAX })
    }

    /// Moves the part that is in files.
    pub fn move_operation(&self, plan: &Plan) -> Result<()> {
        let Some(change) = plan.moved_operation() else { return Ok(()) };
        self.check_operation(plan)?;
        self.bring_operation(change)
    }

    /// As [`Self::move_operation`], however much of it is done, unless git has gone on with it. Gives what the refs in tables are
    /// to be moved from; none where all of it is left as it is.
    pub fn force_operation(&self, plan: &Plan, head: &Head, after_cut: bool) -> Result<Option<Change<Operation>>> {
        let Some(change) = plan.moved_operation() else { return Ok(None) };
        let at = |other: &Head| head.given() == other.given() && (head.branch.is_some() || head.commit == other.commit);
        if !at(&plan.head.from) && !at(&plan.head.to) {
            return Ok(None);
        }
        let mut now = change.clone();
        let ours: BTreeSet<&BString> = change.from.files.keys().chain(change.to.files.keys()).collect();
        for path in ours.iter().filter(|path| ***path != ORIG_HEAD) {
            let ends = [change.from.files.get(*path).copied(), change.to.files.get(*path).copied()];
            let found = self.repo.operation_file(path.as_bstr())?;
            // What git has left behind is in no state that it was in the middle of nothing in.
            let ends_anything = !change.from.is_under_way() || !change.to.is_under_way();
            if operation::is_left_behind(path.as_bstr()) && ends_anything {
                now.from.files.remove(*path);
                continue;
            }
            let is_torn = after_cut && found.as_ref().is_some_and(Vec::is_empty);
            let found = found.map(|content| blob_id(&content, self.repo.hash_kind())).transpose()?;
            if !is_torn && !ends.contains(&found) {
                return Ok(None);
            }
            match found {
                Some(found) => drop(now.from.files.insert((*path).clone(), found)),
                None => drop(now.from.files.remove(*path)),
            }
        }
        if self.operation_like(&change.to)?.files.keys().any(|path| !ours.contains(path)) {
            return Ok(None);
        }
        self.bring_operation(change)?;
        Ok(Some(now))
    }

    fn bring_operation(&self, change: &Change<Operation>) -> Result<()> {
        for path in operation::left_before(&change.to) {
            if !self.repo.is_in_table(path) {
                self.remove_operation_file(path)?;
            }
        }
        for path in operation::removed(&change.from, &change.to) {
            if !self.repo.is_in_table(path.as_bstr()) {
                self.remove_operation_file(path.as_bstr())?;
            }
        }
        for (path, id) in operation::written(&change.to) {
            if !self.repo.is_in_table(path.as_bstr()) {
                self.write_operation_file(path.as_bstr(), id)?;
            }
        }
        Ok(())
    }

    fn remove_operation_file(&self, path: &BStr) -> Result<()> {
        let place = self.repo.operation_path(path);
        remove_if_there(&place)?;
        let boundary =
            if path.starts_with(b"refs/") { self.repo.git_dir.join("refs") } else { self.repo.git_dir.clone() };
        remove_empty_above(&place, &boundary);
        Ok(())
    }

    fn write_operation_file(&self, path: &BStr, id: ObjectId) -> Result<()> {
        let content = Objects::new(self.repo).blob(id)?;
        if self.repo.operation_file(path)?.as_ref() == Some(&content) {
            return Ok(());
        }
        let (place, new) = (self.repo.operation_path(path), self.repo.scratch()?.join(temporary_name()));
        let sharing = self.repo.sharing();
        let put = || {
            place.parent().map_or(Ok(()), |directory| sharing.make_directories(directory))?;
            let mut file = File::create_new(&new)?;
            file.write_all(&content)?;
            sharing.share(&new)?;
            if self.repo.power.flushes.get() {
                file.sync_all()?;
            }
            std::fs::rename(&new, &place)
        };
        put().inspect_err(|_| drop(remove_if_there(&new))).with_context(|| format!("write '{}'", place.display()))
    }
}
