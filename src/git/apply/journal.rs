//! The journal of an apply in progress: a ref to a commit that keeps alive all that the plan needs.

use crate::error::failure::told;
use crate::git::apply::Apply;
use crate::git::objects::Objects;
use crate::git::refs::{Own, Refs};
use crate::model::plan::Plan;
use crate::model::record::Record;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::objs::Tree;
use gix::objs::tree::{Entry, EntryKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// No command of git's holds a lock for longer.
const HELD_AT_MOST: Duration = Duration::from_secs(60);

/// A plan in progress, as the journal keeps it.
#[derive(Serialize, Deserialize)]
pub struct Journal {
    pub v: u32,
    /// When it was begun, in milliseconds of Unix time.
    #[serde(default)]
    pub at: u64,
    pub plan: Plan,
    pub record: Record,
}

impl Apply<'_> {
    pub fn write_journal(&self, plan: &Plan, record: &Record, begun: SystemTime) -> Result<ObjectId> {
        let at = begun.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = at.as_millis().try_into().unwrap_or(u64::MAX);
        let journal = Journal { v: 1, at, plan: plan.clone(), record: record.clone() };
        let text = self.repo.gix.write_blob(serde_json::to_vec(&journal)?)?.detach();
        let entry = |name: String, kind: EntryKind, oid| Entry { mode: kind.into(), filename: name.into(), oid };
        let states = plan.files.iter().flat_map(|file| [file.from, file.to]).flatten().map(|state| state.id);
        let entries = (plan.index.iter()).flat_map(|entry| entry.from.iter().chain(&entry.to));
        let staged = entries.filter(|entry| !entry.is_gitlink()).map(|entry| entry.id);
        let blobs: BTreeSet<ObjectId> = states.chain(staged).filter(|id| self.repo.gix.has_object(id)).collect();
        let mut kept: Vec<Entry> = blobs.into_iter().map(|id| entry(id.to_string(), EntryKind::Blob, id)).collect();
        kept.sort();
        let kept = self.repo.gix.write_object(&Tree { entries: kept })?.detach();
        let tree = Tree {
            entries: vec![
                entry("journal.json".to_owned(), EntryKind::Blob, text),
                entry("kept".to_owned(), EntryKind::Tree, kept),
            ],
        };
        let tree = self.repo.gix.write_object(&tree)?.detach();
        let tips = plan.tips().into_iter().flat_map(|(_, from, to)| [from, to]).flatten();
        let stash = plan.stash.iter().flat_map(|change| change.from.iter().chain(&change.to));
        let timeline = [record.timeline_from, record.timeline_to].into_iter().flatten();
        let parents: BTreeSet<ObjectId> =
            tips.chain(stash.map(|entry| entry.id)).chain(timeline).filter(|id| self.repo.gix.has_object(id)).collect();
        let commit = Objects::new(self.repo).write_own_commit(tree, parents.into_iter().collect(), &record.message)?;
        Refs::new(self.repo).move_own_ref(
            &Refs::new(self.repo).own_ref(Own::Pending),
            None,
            Some(commit),
            &record.message,
        )?;
        Ok(commit)
    }

    pub fn read_journal(&self, commit: ObjectId) -> Result<Journal> {
        let tree = Objects::new(self.repo).commit_tree(commit)?;
        let (_, id) = Objects::new(self.repo).tree_entry(tree, "journal.json".into())?.context("it has no plan")?;
        Ok(serde_json::from_slice(&self.repo.gix.find_blob(id)?.data)?)
    }

    /// Whether a journal can be read.
    pub fn check_journal(&self, commit: ObjectId) -> Result<()> {
        self.read_journal(commit).map(drop)
    }

    pub fn end_journal(&self, pending: ObjectId) -> Result<()> {
        Refs::new(self.repo).move_own_ref(&Refs::new(self.repo).own_ref(Own::Pending), Some(pending), None, "done")
    }

    /// The journal of an interrupted command, if it cannot be read: its commit, and why.
    ///
    /// # Errors
    ///
    /// When the ref itself cannot be read.
    pub fn damaged_journal(&self) -> Result<Option<(ObjectId, String)>> {
        let Some(pending) = Refs::new(self.repo).ref_id(&Refs::new(self.repo).own_ref(Own::Pending))? else {
            return Ok(None);
        };
        Ok(self.check_journal(pending).err().map(|error| (pending, told(&error))))
    }

    /// Lock files of git's that no running command can be holding.
    pub fn stale_locks(&self) -> Vec<PathBuf> {
        let branch = Refs::new(self.repo).head().ok().and_then(|head| head.branch);
        let own = [Own::Timeline, Own::Pending].map(|own| Refs::new(self.repo).own_ref(own));
        let shared = own.into_iter().chain(branch).chain(["packed-refs".to_owned(), "config".to_owned()]);
        let locks = (shared.map(|name| self.repo.common_dir.join(format!("{name}.lock"))))
            .chain(["HEAD.lock", "index.lock"].map(|name| self.repo.git_dir.join(name)));
        let old = |lock: &PathBuf| {
            let made = lock.symlink_metadata().and_then(|about| about.modified());
            made.is_ok_and(|made| made.elapsed().unwrap_or_default() > HELD_AT_MOST)
        };
        locks.filter(old).collect()
    }
}
