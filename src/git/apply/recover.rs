//! Finishing or rolling back what an interrupted command left.

use crate::error::failure::error_chain;
use crate::error::{Code, Refusal};
use crate::git::apply::Apply;
use crate::git::apply::files::{Files, Obstacles};
use crate::git::apply::index::same_entries;
use crate::git::apply::journal::{Journal, is_own_journal, read_journal};
use crate::git::durable::{Durable, When};
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::refs::{OwnRef, Refs};
use crate::git::repo::Repo;
use crate::git::repo::scratch::REPLACED;
use crate::git::timeline::Timelines;
use crate::model::checkpoint::Change;
use crate::model::plan::{BranchMove, Plan};
use crate::model::record::Record;
use crate::progress::StopSwitch;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// What became of an interrupted apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// What it was for.
    pub what: String,
    /// Whether it was finished; else it was rolled back.
    pub finished: bool,
    /// What was left as it is, because it changed since.
    pub left: Left,
}

/// What a lenient apply leaves alone: neither as the plan begins nor as it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Files, directories, and entries of the index.
    pub paths: BTreeSet<BString>,
    /// How many entries of the stash list.
    pub stashed: usize,
    /// Whether what git is in the middle of.
    pub operation: bool,
}

/// What is said of that.
pub const OPERATION_LEFT: &str = "left what git is in the middle of as it is: it was changed since";

/// A command that was interrupted in another git directory, of which this is a copy, or from which its journal was fetched.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// The journal.
    pub commit: ObjectId,
    /// What it was for.
    pub what: String,
    /// Whether it would be finished; else it would be rolled back.
    pub finishes: bool,
    /// What that changes.
    pub plan: Plan,
}

impl Apply<'_> {
    /// Whether an interrupted command left something to finish or to roll back.
    pub fn is_interrupted(repo: &Repo) -> Result<bool> {
        let refs = Refs::new(repo);
        Ok(refs.ref_id(&refs.own_ref(OwnRef::Pending))?.is_some()
            || repo.scratch_path("index.mark").symlink_metadata().is_ok()
            || refs.has_marked_locks()
            || repo.half_written().next().is_some())
    }

    /// Finishes or rolls back what an interrupted command left here. To be called with the worktree's lock held.
    pub fn recover(&self) -> Result<Option<Recovered>> {
        self.clear_locks()?;
        let Some((pending, journal)) = self.pending()? else {
            // An earlier version had that of a linked worktree in its own directory.
            let (own, lasting) = (self.repo.scratch_path(REPLACED), self.repo.lasting_path(REPLACED));
            if own != lasting {
                self.sweep_replaced(&own, false);
            }
            self.sweep_replaced(&lasting, false);
            return Ok(None);
        };
        if !is_own_journal(self.repo, pending)? {
            let name = Refs::new(self.repo).own_ref(OwnRef::Pending);
            let what = format!("{name} is the journal of a command that was interrupted in another git directory");
            return Err(Refusal::new(Code::Corrupt, what)
                .hint("run 'oxundo doctor': it says what the command was about to do, and how to go on")
                .into());
        }
        self.finish(pending, journal).map(Some)
    }

    /// As [`Self::recover`], also of a command that was interrupted elsewhere: in what this git directory is a copy of.
    pub fn recover_any(&self) -> Result<Option<Recovered>> {
        self.clear_locks()?;
        let Some((pending, journal)) = self.pending()? else { return Ok(None) };
        self.finish(pending, journal).map(Some)
    }

    /// What [`Self::recover_any`] would do, and [`Self::recover`] would not.
    pub fn foreign(&self) -> Result<Option<Foreign>> {
        let Some((commit, Journal { plan, record, .. })) = self.pending()? else { return Ok(None) };
        if is_own_journal(self.repo, commit)? {
            return Ok(None);
        }
        let finishes = self.committed(&plan, &record)?;
        let plan = if finishes { plan } else { plan.inverse() };
        Ok(Some(Foreign { commit, what: record.message, finishes, plan }))
    }

    fn clear_locks(&self) -> Result<()> {
        for half in self.repo.half_written() {
            let _ = std::fs::remove_file(half);
        }
        Index::new(self.repo).clear_own_index_lock()?;
        Refs::new(self.repo).clear_marked_locks()
    }

    fn pending(&self) -> Result<Option<(ObjectId, Journal)>> {
        let Some(pending) = Refs::new(self.repo).ref_id(&Refs::new(self.repo).own_ref(OwnRef::Pending))? else {
            return Ok(None);
        };
        let journal = read_journal(self.repo, pending).map_err(|error| {
            let what = format!("the journal of an interrupted command cannot be read: {}", error_chain(&error));
            Refusal::new(Code::Corrupt, what).hint("run 'oxundo doctor': it says how to go on")
        })?;
        Ok(Some((pending, journal)))
    }

    /// The plan of a command that was interrupted here.
    pub fn interrupted_plan(&self) -> Result<Option<Plan>> {
        Ok(self.pending()?.map(|(_, journal)| journal.plan))
    }

    fn finish(&self, pending: ObjectId, journal: Journal) -> Result<Recovered> {
        Self::check_names(&journal.plan)?;
        let _under_way = self.repo.stop.get().map(StopSwitch::begin);
        // It does not stop: it rolls back, or finishes.
        self.repo.stop.get().map(StopSwitch::settle);
        let Journal { plan, record, .. } = journal;
        let finished = self.committed(&plan, &record)?;
        let doing = if finished { "finishing" } else { "rolling back" };
        let _doing = self.repo.start(&format!("{doing} what was interrupted"));
        let left = if finished {
            let left = self.force(&plan, pending, &record.message, Obstacles::Last)?;
            Refs::new(self.repo).add_notes(&record.notes)?;
            if Refs::new(self.repo).ref_id(&Refs::new(self.repo).own_ref(OwnRef::Timeline))? == record.timeline_from {
                self.record(&self.concluding(record.clone(), pending)?)?;
            }
            left
        } else {
            self.force(&plan.clone().inverse(), pending, &record.message, Obstacles::Last)?
        };
        self.end_journal(&plan, pending, When::Now)?;
        Ok(Recovered { what: record.message, finished, left })
    }

    /// The record of a plan that was finished. Of one that has a last step behind it, the end of its turn, the turn keeps
    /// the journal: it ends as the plan says, whatever others have changed by then.
    fn concluding(&self, record: Record, pending: ObjectId) -> Result<Record> {
        if record.timeline_to != record.timeline_from {
            return Ok(record);
        }
        let timeline = Timelines::new(self.repo).timeline()?;
        let Some(open) = timeline.state.open else { return Ok(record) };
        let mut update = timeline.update();
        update.put_journal(open, Objects::new(self.repo).commit_tree(pending)?);
        update.into_record(format!("finish {}", record.message), record.notes).map(|(record, _)| record)
    }

    /// Whether an interrupted apply had passed its commit point.
    fn committed(&self, plan: &Plan, record: &Record) -> Result<bool> {
        let timeline = Refs::new(self.repo).ref_id(&Refs::new(self.repo).own_ref(OwnRef::Timeline))?;
        // A plan that does not move the timeline itself has a last step that does.
        let recorded = if record.timeline_to == record.timeline_from {
            timeline != record.timeline_from
        } else {
            timeline == record.timeline_to
        };
        if recorded {
            return Ok(true);
        }
        for BranchMove { name, from, to } in &plan.branches {
            if self.has_moved([*from, *to], Refs::new(self.repo).ref_id(name)?)? {
                return Ok(true);
            }
        }
        let (Change { from, to }, now) = (&plan.head, Refs::new(self.repo).head()?);
        if !plan.moves_head() || now.branch != to.branch {
            return Ok(false);
        }
        let left = from.commit.filter(|_| from.branch == to.branch);
        Ok(now == *to || self.has_moved([left, to.commit], now.commit)?)
    }

    /// Whether a branch, or HEAD, was moved as planned, be it that somebody has committed there since.
    fn has_moved(&self, [from, to]: [Option<ObjectId>; 2], now: Option<ObjectId>) -> Result<bool> {
        if now == to || now == from {
            return Ok(now == to);
        }
        let (Some(now), Some(to)) = (now, to) else { return Ok(false) };
        let is_on = |below: ObjectId, above: ObjectId| Objects::new(self.repo).is_ancestor(below, above);
        let Some(from) = from else { return is_on(to, now) };
        Ok(is_on(to, now)? && (is_on(from, to)? || !is_on(from, now)?))
    }

    /// Applies what is left of a plan, however much of it has been done.
    pub fn force(&self, plan: &Plan, journal: ObjectId, message: &str, obstacles: Obstacles) -> Result<Left> {
        Self::check_names(plan)?;
        let mut files = Files::lenient(self.repo, journal, obstacles);
        files.after_cut = Durable::new(self.repo).is_cut(journal)?;
        let plan = &*if files.after_cut { Cow::Owned(by_names(plan)) } else { Cow::Borrowed(plan) };
        let applied = files.apply(plan).and_then(|()| files.outs.finish());
        self.tell_of(&files.outs.kept);
        applied?;
        let refs = Refs::new(self.repo);
        let (branches, head) = (refs.branches()?, refs.head()?);
        let mut rest = plan.clone();
        let mut left = Left { paths: files.left, ..Left::default() };
        let mut kept_lock = None;
        if !plan.index.is_empty() || plan.moved_operation().is_some() {
            let lock = Index::new(self.repo).lock_index(self.wait)?;
            let index = lock.read()?;
            let mut moves = Vec::new();
            for entry in &plan.index {
                let now = Index::new(self.repo).index_entries(&index, entry.path.as_bstr())?;
                if same_entries(&now, &entry.from) || same_entries(&now, &entry.to) {
                    moves.push(entry.clone());
                } else {
                    left.paths.insert(entry.path.clone());
                }
            }
            rest.operation = self.force_operation(plan, &head, files.after_cut)?;
            left.operation = plan.moved_operation().is_some() && rest.operation.is_none();
            self.apply_index(&moves, &lock)?;
            lock.put()?;
            kept_lock = Some(lock);
        }
        Files::lenient(self.repo, journal, obstacles).close(plan)?;
        // Of a branch that stands for another ref on one side, both moves go on or none.
        let symbolic = refs.symbolic()?;
        let elsewhere = plan.symbolic.iter().filter(|other| symbolic.get(&other.name) != other.from.as_ref());
        let elsewhere: BTreeSet<&String> = elsewhere.map(|other| &other.name).collect();
        let is_at = |branch: &BranchMove| branches.get(&branch.name).copied() == branch.from;
        rest.branches.retain(|branch| is_at(branch) && !elsewhere.contains(&branch.name));
        let has_own = |name: &String| plan.branches.iter().any(|branch| branch.name == *name);
        let goes_on = |name: &String| rest.branches.iter().any(|branch| branch.name == *name);
        rest.symbolic
            .retain(|other| !elsewhere.contains(&other.name) && (!has_own(&other.name) || goes_on(&other.name)));
        // After a power cut the branch may be gone that HEAD names.
        let is_there = head == rest.head.from || head.branch.is_some() && head.commit.is_none();
        if !is_there || head.branch != rest.head.from.branch {
            rest.head.to = head.clone();
        }
        rest.head.from = head;
        refs.move_refs(&rest, message)?;
        drop(kept_lock);
        if let Some(stash) = &plan.stash {
            left.stashed = refs.set_stash(stash)?;
        }
        Ok(left)
    }
}

/// A power cut may have changed what tells the things from each other that a plan moves as a whole: where none has another's
/// place, their names do.
fn by_names(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    let places: Vec<(BString, bool)> = plan.aside.iter().map(|one| (one.path.clone(), one.out)).collect();
    for one in &mut plan.aside {
        one.state = None;
        let is_taken = places.iter().any(|(path, out)| *out != one.out && *path == one.path);
        one.file = one.file.take().filter(|_| is_taken);
    }
    plan
}
