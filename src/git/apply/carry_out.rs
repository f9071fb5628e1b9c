//! A plan carried out, step by step in the order that the module's head draws.

use crate::error::Refusal;
use crate::error::failure::error_chain;
use crate::git::apply::Apply;
use crate::git::apply::files::{Files, Obstacles};
use crate::git::apply::foresee;
use crate::git::apply::index::IndexWork;
use crate::git::apply::recover::OPERATION_LEFT;
use crate::git::apply::refusals::{all_but_done, interrupted, perhaps_done};
use crate::git::durable::{Durable, When};
use crate::git::index::lock::IndexLock;
use crate::git::refs::{NOTES, OwnRef, Refs};
use crate::git::worktree::Worktree;
use crate::git::worktree::identity::identity_of;
use crate::model::bytes::in_quotes;
use crate::model::plan::Plan;
use crate::model::record::Record;
use crate::progress::StopSwitch;
use crate::warning::Warning;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::borrow::Cow;

impl Apply<'_> {
    /// Applies a plan under the worktree's lock. `prepared` is an index that has been made
    /// ready; without it the index is changed as the plan says.
    pub fn apply(&self, plan: &Plan, record: &Record, prepared: Option<IndexLock<'_>>) -> Result<()> {
        self.apply_and(plan, record, prepared, || Ok(()))
    }

    /// As [`Self::apply`], with a last step, `conclude`: it may record something, and when it fails,
    /// the plan is rolled back.
    pub fn apply_and<T>(
        &self,
        plan: &Plan,
        record: &Record,
        prepared: Option<IndexLock<'_>>,
        conclude: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        Self::check_names(plan)?;
        let _under_way = self.repo.stop.get().map(StopSwitch::begin);
        let index = self.index_for(plan, prepared)?;
        // A plan that only records something is one move of one ref.
        if plan.is_empty() {
            Refs::new(self.repo).add_notes(&record.notes)?;
            self.record_alone(plan, record)?;
            return conclude();
        }
        foresee::check(self.repo, plan)?;
        self.check_operation(plan)?;
        let plan = &*self.with_names_of_what_moves(plan);
        let pending = self.write_journal(plan, record)?;
        let mut files = Files::strict(self.repo, pending);
        if let Err(error) = files.rehearse(plan) {
            // Nothing has been changed that would have to be rolled back.
            self.end_journal(&Plan::empty(plan.op, plan.head.from.clone()), pending, When::Now)?;
            return Err(error);
        }
        let carried_out = self.carry_out(plan, record, index, &mut files);
        // From here on it is finished or rolled back.
        let stopped = self.repo.stop.get().is_some_and(StopSwitch::settle);
        let carried_out = if stopped { Err(interrupted()) } else { carried_out };
        let recorded = carried_out.and_then(|()| conclude()).and_then(|concluded| {
            self.record(record)?;
            Ok(concluded)
        });
        let concluded = match recorded {
            Ok(concluded) => concluded,
            Err(error) => {
                return Err(match self.is_recorded(record) {
                    // Once it is recorded it is done, whatever failed behind that: the next command finishes it.
                    Ok(true) => all_but_done(plan.op, &error),
                    Ok(false) => self.roll_back(plan, record, pending, error),
                    Err(_) => perhaps_done(plan.op, &error),
                });
            }
        };
        self.wind_up(plan, record, pending, &mut files).map_err(|error| all_but_done(plan.op, &error))?;
        Ok(concluded)
    }

    /// What is left to do when it is recorded.
    fn wind_up(&self, plan: &Plan, record: &Record, pending: ObjectId, files: &mut Files<'_>) -> Result<()> {
        Refs::new(self.repo).add_notes(&record.notes)?;
        let finished = files.outs.leave();
        self.tell_of(&files.outs.kept);
        finished?;
        // Where it wrote no file of the user's, the journal brings all of it about again; and what was staged is in the
        // record, unless this takes a turn back.
        let stays_recorded = plan.index.is_empty() || !record.notes.is_empty();
        let when = if plan.changes_files() || !stays_recorded { When::Now } else { When::Soon };
        self.end_journal(plan, pending, when)
    }

    /// The plan, with what tells the things that it moves as a whole from all else.
    fn with_names_of_what_moves<'p>(&self, plan: &'p Plan) -> Cow<'p, Plan> {
        if plan.aside.is_empty() {
            return Cow::Borrowed(plan);
        }
        let mut named = plan.clone();
        for one in &mut named.aside {
            let out = plan.aside.iter().find(|out| out.out && out.store == one.store);
            one.file = match out {
                Some(out) => Worktree::new(self.repo).identity(out.path.as_bstr()).map(|found| found.known.file),
                None => identity_of(&self.repo.aside_path(&one.store)),
            };
        }
        Cow::Owned(named)
    }

    /// Records what needs no plan.
    fn record_alone(&self, plan: &Plan, record: &Record) -> Result<()> {
        let notes = (!record.notes.is_empty()).then(|| Refs::new(self.repo).ref_id(NOTES)).transpose()?;
        self.keep_records(plan, record, notes.map(|id| (NOTES.to_owned(), id)))?;
        self.record(record).inspect_err(|_| {
            let from = (Refs::new(self.repo).own_ref(OwnRef::Timeline), record.timeline_from);
            // The error to report is the one above.
            let _ = Durable::new(self.repo).note(&[from], When::Now);
        })
    }

    fn is_recorded(&self, record: &Record) -> Result<bool> {
        let refs = Refs::new(self.repo);
        let moves = record.timeline_to != record.timeline_from;
        Ok(moves && refs.ref_id(&refs.own_ref(OwnRef::Timeline))? == record.timeline_to)
    }

    /// All or nothing: rolls back what was done of a plan, and gives the cause.
    fn roll_back(&self, plan: &Plan, record: &Record, pending: ObjectId, error: anyhow::Error) -> anyhow::Error {
        let _doing = self.repo.start("rolling back");
        self.repo.rolled_back.set(true);
        let rolled_back = self.force(&plan.clone().inverse(), pending, &record.message, Obstacles::MayPass);
        let named = error.downcast_ref::<Refusal>().map(|refusal| refusal.paths.clone()).unwrap_or_default();
        for path in rolled_back.iter().flat_map(|left| &left.paths).filter(|path| !named.contains(path)) {
            (self.heard)(Warning::new(format!("left {} as it is: it was changed since", in_quotes(path.as_bstr()))));
        }
        if rolled_back.as_ref().is_ok_and(|left| left.operation) {
            (self.heard)(Warning::new(OPERATION_LEFT));
        }
        match rolled_back.and_then(|_| self.end_journal(plan, pending, When::Now)) {
            Ok(()) => error,
            Err(second) => second.context(format!(
                "roll back after a failure ({}), which the next command tries again ('oxundo doctor' says what stands where)",
                error_chain(&error)
            )),
        }
    }

    fn carry_out(&self, plan: &Plan, record: &Record, index: IndexWork<'_>, files: &mut Files<'_>) -> Result<()> {
        files.apply(plan)?;
        self.check_stop()?;
        // Until HEAD is there too, nobody may give up what git is in the middle of, or commit what is staged upon what HEAD was.
        let held = match index {
            IndexWork::Stays => None,
            IndexWork::Ready(lock) => Some(lock),
            IndexWork::Moves(lock, rewritten) => {
                self.move_operation(plan)?;
                let all = [plan.index.as_slice(), &rewritten].concat();
                self.apply_index(&all, &lock)?;
                self.check_stop()?;
                Some(lock)
            }
        };
        held.as_ref().map_or(Ok(()), IndexLock::put)?;
        files.close(plan)?;
        self.check_operation_last(plan)?;
        Refs::new(self.repo).move_refs(plan, &record.message)?;
        drop(held);
        if let Some(stash) = &plan.stash {
            Refs::new(self.repo).set_stash(stash)?;
        }
        Ok(())
    }
}
