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

use super::Repo;
use super::capture::entry_kind;
use super::faults::told;
use super::index::IndexLock;
use super::process::Killed;
use super::refs::{Own, remove_if_there};
use super::stat::OPEN;
use super::worktree::{Found, Worktree, astray, is_storable};
use crate::error::{Code, Refusal};
use crate::model::bytes::quoted;
use crate::model::checkpoint::IndexEntry;
use crate::model::plan::{AsideMove, DirectoryMove, FileMove, IndexMove, Plan};
use crate::model::progress::Work;
use crate::model::turn::Note;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::Tree;
use gix::objs::tree::{Entry, EntryKind, EntryMode};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// What goes with a plan: the timeline that records it, and the notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The timeline's commit before.
    #[serde(with = "crate::model::checkpoint::hex_option")]
    pub timeline_from: Option<ObjectId>,
    /// The timeline's commit after.
    #[serde(with = "crate::model::checkpoint::hex_option")]
    pub timeline_to: Option<ObjectId>,
    /// What the reflogs say.
    pub message: String,
    /// Notes to add.
    pub notes: Vec<Note>,
}

/// A plan in progress, as the journal keeps it.
#[derive(Serialize, Deserialize)]
struct Journal {
    v: u32,
    /// When it was begun, in milliseconds of Unix time.
    #[serde(default)]
    at: u64,
    plan: Plan,
    record: Record,
}

/// What becomes of the index when a plan is carried out.
enum Index<'a> {
    /// Nothing.
    Stays,
    /// It has been made ready.
    Ready(IndexLock<'a>),
    /// It is changed as the plan says, and these entries are staged again as they are.
    Moves(IndexLock<'a>, Vec<IndexMove>),
}

/// How an interrupted apply ended after all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// What it was for.
    pub what: String,
    /// Whether it was finished; else it was rolled back.
    pub finished: bool,
    /// Paths that were left as they are, because they changed since.
    pub left: Vec<BString>,
}

impl Repo {
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
            self.add_notes(&record.notes)?;
            self.record(record)?;
            return conclude();
        }
        let begun = SystemTime::now();
        let pending = self.write_journal(plan, record, begun)?;
        let concluded = match self.carry_out(plan, record, index).and_then(|()| conclude()) {
            Ok(concluded) => concluded,
            Err(error) => {
                // All or nothing: what was done is taken back, then the cause is told.
                let cleared = if error.is::<Killed>() { self.clear_stash_locks(begun) } else { Ok(()) };
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
        self.add_notes(&record.notes)?;
        self.record(record)?;
        self.end_journal(pending)?;
        Ok(concluded)
    }

    fn carry_out(&self, plan: &Plan, record: &Record, index: Index<'_>) -> Result<()> {
        let mut files = Files { repo: self, lenient: false, left: BTreeSet::new() };
        files.apply(plan)?;
        match index {
            Index::Stays => {}
            Index::Ready(lock) => lock.commit()?,
            Index::Moves(lock, rewritten) => {
                let all = [plan.index.as_slice(), &rewritten].concat();
                // A filter that fails for one that need not be staged is no reason to give up.
                self.apply_index(&all, &lock).or_else(|error| match &rewritten[..] {
                    [] => Err(error),
                    _ => self.apply_index(&plan.index, &lock),
                })?;
                lock.commit()?;
            }
        }
        self.move_refs(plan, &record.message)?;
        if let Some(stash) = &plan.stash {
            self.set_stash(stash)?;
        }
        Ok(())
    }

    /// Locks the index for a plan, and checks that it is at the plan's beginning still.
    fn index_for<'a>(&'a self, plan: &Plan, prepared: Option<IndexLock<'a>>) -> Result<Index<'a>> {
        if let Some(lock) = prepared {
            return Ok(Index::Ready(lock));
        }
        // git's own knowledge of files is not worth waiting for.
        if plan.index.is_empty() && (self.rewritten_entries(plan)?.is_empty() || self.index_is_locked()) {
            return Ok(Index::Stays);
        }
        let lock = self.lock_index()?;
        let now = self.read_index()?;
        for entry in &plan.index {
            if !same_entries(&self.index_entries(&now, entry.path.as_bstr())?, &entry.from) {
                return Err(changed_meanwhile(entry.path.as_bstr()));
            }
        }
        lock.expect_set(&self.moves_away_from_the_worktree(plan))?;
        Ok(Index::Moves(lock, self.rewritten_entries(plan)?))
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
                None => [self.worktree.state(entry.path.as_bstr(), self.hash_kind()).ok().flatten(); 2],
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
        let index = self.read_index()?;
        let moved: BTreeSet<&BString> = plan.index.iter().map(|entry| &entry.path).collect();
        let written = plan.files.iter().filter(|file| !moved.contains(&file.path));
        let entry = |file: &FileMove| {
            let (to, entries) = (file.to?, self.index_entries(&index, file.path.as_bstr()).ok()?);
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
        let timeline = self.own_ref(Own::Timeline);
        if record.timeline_to.is_none() {
            // First: killed in between, nobody misses the ref that oxundo itself takes away.
            self.forget_timeline()?;
        }
        self.move_own_ref(&timeline, record.timeline_from, record.timeline_to, &record.message)?;
        if let Some(commit) = record.timeline_to {
            self.remember_timeline(commit);
        }
        Ok(())
    }

    fn apply_index(&self, moves: &[IndexMove], lock: &IndexLock<'_>) -> Result<()> {
        let fresh = |entry: &IndexMove| match &entry.to[..] {
            // Where no filter stands between, the worktree's bytes must be the entry's.
            [to] => {
                to.is_plain() && is_unmarked(entry) && !to.is_gitlink() && self.worktree.has_file(entry.path.as_bstr())
            }
            [] => is_unmarked(entry) && matches!(self.worktree.find(entry.path.as_bstr()), Ok(Found::Absent)),
            _ => false,
        };
        lock.set(moves, fresh)
    }

    /// Whether an interrupted command left a journal.
    ///
    /// # Errors
    ///
    /// When the ref cannot be read.
    pub fn is_interrupted(&self) -> Result<bool> {
        let left = |lock: &PathBuf| lock.symlink_metadata().is_ok();
        Ok(self.ref_id(&self.own_ref(Own::Pending))?.is_some()
            || self.own_ref_locks().iter().any(left)
            || left(&self.scratch_path("index.mark"))
            || self.has_marked_locks())
    }

    /// The lock files of the refs that only holders of this worktree's lock write.
    fn own_ref_locks(&self) -> [PathBuf; 2] {
        [Own::Timeline, Own::Pending].map(|own| self.common_dir.join(format!("{}.lock", self.own_ref(own))))
    }

    fn clear_own_ref_locks(&self) -> Result<()> {
        self.own_ref_locks().iter().try_for_each(|lock| remove_if_there(lock))
    }

    /// Finishes or rolls back what an interrupted command left. To be called with the
    /// worktree's lock held.
    ///
    /// # Errors
    ///
    /// When the journal cannot be read, or the way on fails.
    pub fn recover(&self) -> Result<Option<Recovered>> {
        self.clear_own_index_lock()?;
        self.clear_marked_locks()?;
        self.clear_own_ref_locks()?;
        let Some(pending) = self.ref_id(&self.own_ref(Own::Pending))? else {
            return Ok(None);
        };
        let journal = self.read_journal(pending).map_err(|error| {
            let what = format!("the journal of an interrupted command cannot be read: {}", told(&error));
            Refusal::new(Code::Corrupt, what).hint("run 'oxundo doctor': it says how to go on")
        })?;
        self.check_names(&journal.plan)?;
        let Journal { plan, record, at, .. } = journal;
        self.clear_stash_locks(SystemTime::UNIX_EPOCH + Duration::from_millis(at))?;
        let finished = self.committed(&plan, &record)?;
        let left = if finished {
            let left = self.force(&plan, &record.message)?;
            self.add_notes(&record.notes)?;
            if self.ref_id(&self.own_ref(Own::Timeline))? == record.timeline_from {
                self.record(&record)?;
            }
            left
        } else {
            self.force(&plan.clone().inverse(), &record.message)?
        };
        self.end_journal(pending)?;
        Ok(Some(Recovered { what: record.message, finished, left: left.into_iter().collect() }))
    }

    /// Whether an interrupted apply got beyond its commit point.
    fn committed(&self, plan: &Plan, record: &Record) -> Result<bool> {
        let timeline = self.ref_id(&self.own_ref(Own::Timeline))?;
        // What records nothing itself has a conclusion that does.
        let recorded = if record.timeline_to == record.timeline_from {
            timeline != record.timeline_from
        } else {
            timeline == record.timeline_to
        };
        if recorded {
            return Ok(true);
        }
        for branch in &plan.branches {
            if self.ref_id(&branch.name)? == branch.to {
                return Ok(true);
            }
        }
        Ok(plan.moves_head() && self.head()? == plan.head.to)
    }

    /// Brings everything to where the plan leads, from wherever it is between the plan's two
    /// ends. Gives the paths that are at neither end, which are left.
    fn force(&self, plan: &Plan, message: &str) -> Result<BTreeSet<BString>> {
        self.check_names(plan)?;
        let mut files = Files { repo: self, lenient: true, left: BTreeSet::new() };
        files.sweep(plan)?;
        files.apply(plan)?;
        let mut left = files.left;
        if !plan.index.is_empty() {
            let lock = self.lock_index()?;
            let index = lock.read()?;
            let mut moves = Vec::new();
            for entry in &plan.index {
                let now = self.index_entries(&index, entry.path.as_bstr())?;
                if same_entries(&now, &entry.from) || same_entries(&now, &entry.to) {
                    moves.push(entry.clone());
                } else {
                    left.insert(entry.path.clone());
                }
            }
            self.apply_index(&moves, &lock)?;
            lock.commit()?;
        }
        let branches = self.branches()?;
        let head = self.head()?;
        let mut rest = plan.clone();
        rest.branches.retain(|branch| branches.get(&branch.name).copied() == branch.from);
        if head != rest.head.from {
            rest.head.from = head.clone();
            rest.head.to = head;
        }
        self.move_refs(&rest, message)?;
        if let Some(stash) = &plan.stash {
            self.set_stash(stash)?;
        }
        Ok(left)
    }

    fn write_journal(&self, plan: &Plan, record: &Record, begun: SystemTime) -> Result<ObjectId> {
        let at = begun.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let at = at.as_millis().try_into().unwrap_or(u64::MAX);
        let journal = Journal { v: 1, at, plan: plan.clone(), record: record.clone() };
        let text = self.gix.write_blob(serde_json::to_vec(&journal)?)?.detach();
        let entry = |name: String, kind: EntryKind, oid| Entry { mode: kind.into(), filename: name.into(), oid };
        let states = plan.files.iter().flat_map(|file| [file.from, file.to]).flatten().map(|state| state.id);
        let entries = (plan.index.iter()).flat_map(|entry| entry.from.iter().chain(&entry.to));
        let staged = entries.filter(|entry| !entry.is_gitlink()).map(|entry| entry.id);
        let blobs: BTreeSet<ObjectId> = states.chain(staged).filter(|id| self.gix.has_object(id)).collect();
        let mut kept: Vec<Entry> = blobs.into_iter().map(|id| entry(id.to_string(), EntryKind::Blob, id)).collect();
        kept.sort();
        let kept = self.gix.write_object(&Tree { entries: kept })?.detach();
        let tree = Tree {
            entries: vec![
                entry("journal.json".to_owned(), EntryKind::Blob, text),
                entry("kept".to_owned(), EntryKind::Tree, kept),
            ],
        };
        let tree = self.gix.write_object(&tree)?.detach();
        let tips = plan.tips().into_iter().flat_map(|(_, from, to)| [from, to]).flatten();
        let stash = plan.stash.iter().flat_map(|change| change.from.iter().chain(&change.to));
        let timeline = [record.timeline_from, record.timeline_to].into_iter().flatten();
        let parents: BTreeSet<ObjectId> =
            tips.chain(stash.map(|entry| entry.id)).chain(timeline).filter(|id| self.gix.has_object(id)).collect();
        let commit = self.write_own_commit(tree, parents.into_iter().collect(), &record.message)?;
        self.move_own_ref(&self.own_ref(Own::Pending), None, Some(commit), &record.message)?;
        Ok(commit)
    }

    fn read_journal(&self, commit: ObjectId) -> Result<Journal> {
        let tree = self.commit_tree(commit)?;
        let (_, id) = self.tree_entry(tree, "journal.json".into())?.context("it has no plan")?;
        Ok(serde_json::from_slice(&self.gix.find_blob(id)?.data)?)
    }

    /// Whether a journal can be read.
    pub(super) fn check_journal(&self, commit: ObjectId) -> Result<()> {
        self.read_journal(commit).map(drop)
    }

    fn end_journal(&self, pending: ObjectId) -> Result<()> {
        self.move_own_ref(&self.own_ref(Own::Pending), Some(pending), None, "done")
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

/// The worktree's part of a plan.
struct Files<'a> {
    repo: &'a Repo,
    /// Leave what is at neither end of the plan, instead of refusing.
    lenient: bool,
    left: BTreeSet<BString>,
}

impl Files<'_> {
    fn worktree(&self) -> &Worktree {
        &self.repo.worktree
    }

    fn apply(&mut self, plan: &Plan) -> Result<()> {
        let underway = self.repo.watch.begin(Work::Apply, plan.files.len());
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

    /// Whether a file is at the plan's beginning, so that it may be changed.
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
            self.repo.copy_blob(to.id, out).with_context(|| format!("read what '{path}' was"))
        })
    }

    fn move_aside(&mut self, aside: &AsideMove) -> Result<()> {
        let store = self.repo.scratch_path(&aside.store);
        let path = aside.path.as_bstr();
        let there = matches!(self.worktree().find(path)?, Found::There(_));
        let kept = store.symlink_metadata().is_ok();
        // A lenient apply finds it at either end, or, if the user changed that, at both or none.
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

    /// Lets its owner change what is in a directory, until all that is done.
    fn open(&self, directory: &DirectoryMove) -> Result<()> {
        let path = directory.path.as_bstr();
        match directory.from.or(directory.to.filter(|_| self.lenient)) {
            Some(mode) if mode & OPEN != OPEN && self.worktree().open_directory(path)?.is_some() => {
                self.worktree().set_mode(path, mode | OPEN)
            }
            _ => Ok(()),
        }
    }

    /// Clears what a killed write left beside the plan's files and directories.
    fn sweep(&self, plan: &Plan) -> Result<()> {
        let files = plan.files.iter().map(|file| &file.path);
        let parents: BTreeSet<&[u8]> = files
            .chain(plan.directories.iter().map(|directory| &directory.path))
            .map(|path| path.rfind_byte(b'/').map_or(&b""[..], |slash| &path[..slash]))
            .collect();
        for parent in parents {
            self.worktree().sweep(parent.as_bstr())?;
        }
        Ok(())
    }
}
