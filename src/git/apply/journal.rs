//! The journal of an apply in progress: a ref to a commit that keeps every object that the plan needs.

use crate::error::failure::error_chain;
use crate::git::apply::Apply;
use crate::git::durable::{Durable, RefState, When};
use crate::git::objects::Objects;
use crate::git::refs::{NOTES, OwnRef, Refs};
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::plan::Plan;
use crate::model::record::Record;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::objs::Tree;
use gix::objs::tree::{Entry, EntryKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A plan in progress, as the journal keeps it.
#[derive(Serialize, Deserialize)]
pub struct Journal {
    pub v: u32,
    pub plan: Plan,
    pub record: Record,
}

impl Apply<'_> {
    pub fn record(&self, record: &Record) -> Result<()> {
        if record.timeline_from == record.timeline_to {
            return Ok(());
        }
        let timeline = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        if record.timeline_to.is_none() {
            // First: after a kill in between, a ref that oxundo itself deletes must not count as lost.
            Timelines::new(self.repo).forget_timeline()?;
        }
        Refs::new(self.repo).move_own_ref(&timeline, record.timeline_from, record.timeline_to, &record.message)?;
        self.repo.write_pruned_again()?;
        if let Some(commit) = record.timeline_to {
            Timelines::new(self.repo).remember_timeline(commit);
        }
        Ok(())
    }

    pub fn write_journal(&self, plan: &Plan, record: &Record) -> Result<ObjectId> {
        let journal = Journal { v: 1, plan: plan.clone(), record: record.clone() };
        let text = self.repo.gix.write_blob(serde_json::to_vec(&journal)?)?.detach();
        let entry = |name: String, kind: EntryKind, oid| Entry { mode: kind.into(), filename: name.into(), oid };
        let states = plan.files.iter().flat_map(|file| [file.from, file.to]).flatten().map(|state| state.id);
        let entries = (plan.index.iter()).flat_map(|entry| entry.from.iter().chain(&entry.to));
        let staged = entries.filter(|entry| !entry.is_gitlink()).map(|entry| entry.id);
        let operation =
            plan.operation.iter().flat_map(|it| it.from.files.values().chain(it.to.files.values())).copied();
        let blobs: BTreeSet<ObjectId> =
            states.chain(staged).chain(operation).filter(|id| self.repo.has_object(*id)).collect();
        let mut kept: Vec<Entry> = blobs.into_iter().map(|id| entry(id.to_string(), EntryKind::Blob, id)).collect();
        kept.sort();
        let kept = self.repo.gix.write_object(&Tree { entries: kept })?.detach();
        let seal = self.repo.gix.write_blob(self.repo.seal(text)?)?.detach();
        let tree = Tree {
            entries: vec![
                entry("journal.json".to_owned(), EntryKind::Blob, text),
                entry("kept".to_owned(), EntryKind::Tree, kept),
                entry("seal".to_owned(), EntryKind::Blob, seal),
            ],
        };
        let tree = self.repo.gix.write_object(&tree)?.detach();
        let tips = plan.tips().into_iter().flat_map(|(_, from, to)| [from, to]).flatten();
        let stash = plan.stash.iter().flat_map(|change| change.from.iter().chain(&change.to));
        let timeline = [record.timeline_from, record.timeline_to].into_iter().flatten();
        let parents: BTreeSet<ObjectId> =
            tips.chain(stash.map(|entry| entry.id)).chain(timeline).filter(|id| self.repo.has_object(*id)).collect();
        let commit = Objects::new(self.repo).write_own_commit(tree, parents.into_iter().collect(), &record.message)?;
        let name = Refs::new(self.repo).own_ref(OwnRef::Pending);
        self.keep_records(plan, record, Some((name.clone(), Some(commit))))?;
        Refs::new(self.repo).move_own_ref(&name, None, Some(commit), &record.message).inspect_err(|_| {
            // It is not to come about later. The error to report is the one above.
            let from = (Refs::new(self.repo).own_ref(OwnRef::Timeline), record.timeline_from);
            let _ = Durable::new(self.repo).note(&[from, (name.clone(), None)], When::Now);
        })?;
        Ok(commit)
    }

    /// Makes durable what a plan relies on, and what records it: from here on it may be carried out.
    pub fn keep_records(&self, plan: &Plan, record: &Record, journal: Option<RefState>) -> Result<()> {
        let timeline = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        let head = plan.head.from.branch.clone().map(|branch| (branch, plan.head.from.commit));
        let [from, to] = [record.timeline_from, record.timeline_to].map(|id| (timeline.clone(), id));
        Durable::new(self.repo).keep(&head.into_iter().chain([from, to]).chain(journal).collect::<Vec<_>>())
    }

    /// The plan is carried out, or rolled back: all that it wrote is on the disk before its journal goes.
    pub fn end_journal(&self, plan: &Plan, pending: ObjectId, when: When) -> Result<()> {
        let (durable, name) = (Durable::new(self.repo), Refs::new(self.repo).own_ref(OwnRef::Pending));
        if durable.is_on() {
            if when == When::Now {
                durable.flush(plan)?;
            }
            let mut refs = self.refs_of(plan)?;
            refs.push((name.clone(), None));
            durable.note(&refs, when)?;
        }
        Refs::new(self.repo).move_own_ref(&name, Some(pending), None, "done")
    }

    /// The refs that a plan and its record are about, as they are now.
    fn refs_of(&self, plan: &Plan) -> Result<Vec<RefState>> {
        let refs = Refs::new(self.repo);
        let branches = plan.branches.iter().map(|branch| branch.name.clone());
        let names = branches.chain([refs.own_ref(OwnRef::Timeline), NOTES.to_owned()]);
        names.map(|name| Ok((name.clone(), refs.ref_id(&name)?))).collect()
    }
}

/// Whether this git directory wrote a journal.
pub fn is_own_journal(repo: &Repo, commit: ObjectId) -> Result<bool> {
    let tree = Objects::new(repo).commit_tree(commit)?;
    let entry = |name: &str| Objects::new(repo).tree_entry(tree, name.into());
    let (Some((_, text)), Some((_, seal))) = (entry("journal.json")?, entry("seal")?) else { return Ok(false) };
    repo.is_sealed(text, &repo.find_blob(seal)?.data)
}

pub fn read_journal(repo: &Repo, commit: ObjectId) -> Result<Journal> {
    let tree = Objects::new(repo).commit_tree(commit)?;
    let (_, id) = Objects::new(repo).tree_entry(tree, "journal.json".into())?.context("it has no plan")?;
    Ok(serde_json::from_slice(&repo.find_blob(id)?.data)?)
}

/// Whether a journal can be read.
fn check_journal(repo: &Repo, commit: ObjectId) -> Result<()> {
    read_journal(repo, commit).map(drop)
}

/// The journal of an interrupted command, if it cannot be read: its commit, and why.
pub fn damaged_journal(repo: &Repo) -> Result<Option<(ObjectId, String)>> {
    let Some(pending) = Refs::new(repo).ref_id(&Refs::new(repo).own_ref(OwnRef::Pending))? else {
        return Ok(None);
    };
    Ok(check_journal(repo, pending).err().map(|error| (pending, error_chain(&error))))
}
