//! Carrying a plan out, all of it or nothing.
//!
//! ```text
//! objects ─▶ journal ─▶ files ─▶ index ─▶ branches, HEAD ─▶ stash ─▶ notes ─▶ timeline ─▶ journal gone
//!                                         └ the commit point
//! ```
//!
//! The journal is a ref, `refs/oxundo/pending`: a commit that holds the plan and
//! keeps every object of it alive. Whoever finds one goes on if a branch has moved,
//! and goes back if none has. Either way is the plan, or its inverse, applied
//! leniently: what is already as it shall be is left, and so is what the user
//! changed meanwhile, which is named.

pub mod files;
pub mod journal;
pub mod recover;

use crate::error::failure::told;
use crate::error::{Code, Refusal};
use crate::git::apply::files::Files;
use crate::git::index::Index;
use crate::git::index::lock::IndexLock;
use crate::git::objects::tree::entry_kind;
use crate::git::refs::{Own, Refs};
use crate::git::repo::Repo;
use crate::git::repo::process::Killed;
use crate::git::timeline::Timelines;
use crate::git::worktree::names::is_storable;
use crate::git::worktree::{Found, Worktree, astray};
use crate::model::bytes::quoted;
use crate::model::checkpoint::IndexEntry;
use crate::model::plan::{FileMove, IndexMove, Plan};
use crate::model::record::Record;
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::tree::EntryMode;
use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

/// What becomes of the index when a plan is carried out.
enum IndexWork<'a> {
    /// Nothing.
    Stays,
    /// It has been made ready.
    Ready(IndexLock<'a>),
    /// It is changed as the plan says, and these entries are staged again as they are.
    Moves(IndexLock<'a>, Vec<IndexMove>),
}

impl Apply<'_> {
    /// Applies a plan under the worktree's lock. `prepared` is an index that has been made
    /// ready; without it the index is changed as the plan says.
    ///
    /// # Errors
    ///
    /// When any part fails; then all is as it was before.
    pub fn apply(&self, plan: &Plan, record: &Record, prepared: Option<IndexLock<'_>>) -> Result<()> {
        self.apply_and(plan, record, prepared, || Ok(()))
    }

    /// As [`Self::apply`], with a conclusion that is part of it: it may record something, and when
    /// it fails, the plan is taken back.
    ///
    /// # Errors
    ///
    /// When any part or the conclusion fails; then all is as it was before.
    pub fn apply_and<T>(
        &self,
        plan: &Plan,
        record: &Record,
        prepared: Option<IndexLock<'_>>,
        conclude: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.check_names(plan)?;
        let index = self.index_for(plan, prepared)?;
        // A plan that only records something is one move of one ref.
        if plan.is_empty() {
            Refs::new(self.repo).add_notes(&record.notes)?;
            self.record(record)?;
            return conclude();
        }
        let begun = SystemTime::now();
        let pending = self.write_journal(plan, record, begun)?;
        let concluded = match self.carry_out(plan, record, index).and_then(|()| conclude()) {
            Ok(concluded) => concluded,
            Err(error) => {
                // All or nothing: what was done is taken back, then the cause is told.
                let cleared = if error.is::<Killed>() { Refs::new(self.repo).clear_stash_locks(begun) } else { Ok(()) };
                let rolled_back = cleared.and_then(|()| self.force(&plan.clone().inverse(), &record.message));
                return match rolled_back.and_then(|_| self.end_journal(pending)) {
                    Ok(()) => Err(error),
                    Err(second) => Err(second.context(format!(
                        "roll back after a failure ({}), which the next command tries again",
                        told(&error)
                    ))),
                };
            }
        };
        Refs::new(self.repo).add_notes(&record.notes)?;
        self.record(record)?;
        self.end_journal(pending)?;
        Ok(concluded)
    }

    fn carry_out(&self, plan: &Plan, record: &Record, index: IndexWork<'_>) -> Result<()> {
        let mut files = Files::strict(self.repo);
        files.apply(plan)?;
        match index {
            IndexWork::Stays => {}
            IndexWork::Ready(lock) => lock.commit()?,
            IndexWork::Moves(lock, rewritten) => {
                let all = [plan.index.as_slice(), &rewritten].concat();
                // A filter that fails for one that need not be staged is no reason to give up.
                self.apply_index(&all, &lock).or_else(|error| match &rewritten[..] {
                    [] => Err(error),
                    _ => self.apply_index(&plan.index, &lock),
                })?;
                lock.commit()?;
            }
        }
        Refs::new(self.repo).move_refs(plan, &record.message)?;
        if let Some(stash) = &plan.stash {
            Refs::new(self.repo).set_stash(stash)?;
        }
        Ok(())
    }

    /// Locks the index for a plan, and checks that it is at the plan's beginning still.
    fn index_for<'a>(&'a self, plan: &Plan, prepared: Option<IndexLock<'a>>) -> Result<IndexWork<'a>> {
        if let Some(lock) = prepared {
            return Ok(IndexWork::Ready(lock));
        }
        // git's own knowledge of files is not worth waiting for.
        if plan.index.is_empty()
            && (self.rewritten_entries(plan)?.is_empty() || Index::new(self.repo).index_is_locked())
        {
            return Ok(IndexWork::Stays);
        }
        let lock = Index::new(self.repo).lock_index()?;
        let now = Index::new(self.repo).read_index()?;
        for entry in &plan.index {
            if !same_entries(&Index::new(self.repo).index_entries(&now, entry.path.as_bstr())?, &entry.from) {
                return Err(changed_meanwhile(entry.path.as_bstr()));
            }
        }
        lock.expect_set(&self.moves_away_from_the_worktree(plan))?;
        Ok(IndexWork::Moves(lock, self.rewritten_entries(plan)?))
    }

    /// The moves to entries that are other than what the worktree will have. Where a filter may stand between,
    /// git alone can tell, and they are left out.
    fn moves_away_from_the_worktree<'a>(&self, plan: &'a Plan) -> Vec<&'a IndexMove> {
        let files: BTreeMap<&BString, &FileMove> = plan.files.iter().map(|file| (&file.path, file)).collect();
        let mut away = Vec::new();
        for entry in plan.index.iter().filter(|entry| is_unmarked(entry)) {
            let ([from], [to]) = (&entry.from[..], &entry.to[..]) else { continue };
            if !from.is_plain() || !to.is_plain() || from.is_gitlink() || to.is_gitlink() {
                continue;
            }
            let now = match files.get(&entry.path) {
                Some(file) => [file.from, file.to],
                None => [Worktree::new(self.repo).state(entry.path.as_bstr(), self.repo.hash_kind()).ok().flatten(); 2],
            };
            // What is the same as its entry at one end is not filtered.
            if let [Some(before), Some(after)] = now
                && before.id == from.id
                && after.id != to.id
            {
                away.push(entry);
            }
        }
        away
    }

    /// The entries that stay as they are while the plan writes their files. Staged again they have these
    /// files' stat data, and the next `git status` need not look into them.
    fn rewritten_entries(&self, plan: &Plan) -> Result<Vec<IndexMove>> {
        if plan.files.is_empty() {
            return Ok(Vec::new());
        }
        let index = Index::new(self.repo).read_index()?;
        let moved: BTreeSet<&BString> = plan.index.iter().map(|entry| &entry.path).collect();
        let written = plan.files.iter().filter(|file| !moved.contains(&file.path));
        let entry = |file: &FileMove| {
            let (to, entries) = (file.to?, Index::new(self.repo).index_entries(&index, file.path.as_bstr()).ok()?);
            // Where a filter stands between, git alone can tell whether the file is as its entry says.
            let mode = EntryMode::from(entry_kind(to.kind)).value();
            let same = entries == [IndexEntry::plain(u32::from(mode), to.id)];
            same.then(|| IndexMove { path: file.path.clone(), from: entries.clone(), to: entries })
        };
        Ok(written.filter_map(entry).collect())
    }

    fn record(&self, record: &Record) -> Result<()> {
        if record.timeline_from == record.timeline_to {
            return Ok(());
        }
        let timeline = Refs::new(self.repo).own_ref(Own::Timeline);
        if record.timeline_to.is_none() {
            // First: killed in between, nobody misses the ref that oxundo itself takes away.
            Timelines::new(self.repo).forget_timeline()?;
        }
        Refs::new(self.repo).move_own_ref(&timeline, record.timeline_from, record.timeline_to, &record.message)?;
        if let Some(commit) = record.timeline_to {
            Timelines::new(self.repo).remember_timeline(commit);
        }
        Ok(())
    }

    fn apply_index(&self, moves: &[IndexMove], lock: &IndexLock<'_>) -> Result<()> {
        let fresh = |entry: &IndexMove| match &entry.to[..] {
            // Where no filter stands between, the worktree's bytes must be the entry's.
            [to] => {
                to.is_plain()
                    && is_unmarked(entry)
                    && !to.is_gitlink()
                    && Worktree::new(self.repo).has_file(entry.path.as_bstr())
            }
            [] => {
                is_unmarked(entry) && matches!(Worktree::new(self.repo).find(entry.path.as_bstr()), Ok(Found::Absent))
            }
            _ => false,
        };
        lock.set(moves, fresh)
    }

    /// No plan, whoever wrote it, leads out of the worktree, into a git directory, or to a ref
    /// that is no branch.
    ///
    /// # Errors
    ///
    /// A refusal `corrupt` that names what does.
    pub fn check_names(&self, plan: &Plan) -> Result<()> {
        let files = plan.files.iter().map(|file| &file.path);
        let directories = plan.directories.iter().map(|directory| &directory.path);
        let aside = plan.aside.iter().map(|aside| &aside.path);
        let bad_file = files.chain(directories).chain(aside).find(|path| !is_storable(path.as_bstr(), true));
        // What is tracked already has passed git's own rules.
        let bad_entry = plan.index.iter().map(|entry| &entry.path).find(|path| !is_storable(path.as_bstr(), false));
        if let Some(path) = bad_file.or(bad_entry) {
            return Err(astray(path.as_bstr()));
        }
        let heads = [&plan.head.from, &plan.head.to].into_iter().filter(|_| plan.moves_head());
        let mut branches =
            plan.branches.iter().map(|branch| &branch.name).chain(heads.filter_map(|head| head.branch.as_ref()));
        let place = plan.aside.iter().map(|aside| &aside.store).find(|store| !is_store(store));
        match branches.find(|name| !is_branch(name)).or(place) {
            Some(name) => Err(astray(name.as_bytes().as_bstr())),
            None => Ok(()),
        }
    }
}

/// Whether no flag keeps git from looking at the file.
fn is_unmarked(entry: &IndexMove) -> bool {
    entry.from.iter().all(|from| !from.skip_worktree && !from.assume_unchanged)
}

/// Whether these are the same. What was to be left out of the worktree and is there is captured as an entry
/// like others, which the index need not say yet.
fn same_entries(some: &[IndexEntry], others: &[IndexEntry]) -> bool {
    let staged = |entry: &IndexEntry| IndexEntry { skip_worktree: false, ..*entry };
    some.iter().map(staged).eq(others.iter().map(staged))
}

fn changed_meanwhile(path: &BStr) -> anyhow::Error {
    let path = quoted(path);
    Refusal::new(Code::Conflict, format!("'{path}' was changed meanwhile"))
        .hint("run the same command again")
        .paths([path])
        .into()
}

fn is_branch(name: &str) -> bool {
    name.starts_with("refs/heads/") && gix::refs::FullName::try_from(name).is_ok()
}

/// `aside/<turn>/<number>`, and nothing that leads elsewhere.
fn is_store(name: &str) -> bool {
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(name.split('/').collect::<Vec<_>>()[..], ["aside", turn, n] if number(turn) && number(n))
}

/// Carrying plans out.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'r> {
    repo: &'r Repo,
}

impl<'r> Apply<'r> {
    /// Of this repository.
    pub fn new(repo: &'r Repo) -> Self {
        Self { repo }
    }
}
