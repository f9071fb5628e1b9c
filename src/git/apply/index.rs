//! The index's part of a plan.

use crate::git::apply::Apply;
use crate::git::apply::refusals::changed_meanwhile;
use crate::git::durable::Durable;
use crate::git::index::Index;
use crate::git::index::lock::IndexLock;
use crate::git::objects::tree::entry_kind;
use crate::git::worktree::{Lookup, Worktree};
use crate::model::checkpoint::IndexEntry;
use crate::model::plan::{FileMove, IndexMove, Plan};
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use gix::objs::tree::EntryMode;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of the index when a plan is carried out.
pub enum IndexWork<'a> {
    /// Nothing.
    Stays,
    /// It has been made ready.
    Ready(IndexLock<'a>),
    /// It is changed as the plan says, and these entries are staged again as they are.
    Moves(IndexLock<'a>, Vec<IndexMove>),
}

impl Apply<'_> {
    /// Locks the index for a plan, and checks that it is still as the plan found it.
    pub fn index_for<'a>(&'a self, plan: &Plan, prepared: Option<IndexLock<'a>>) -> Result<IndexWork<'a>> {
        if let Some(lock) = prepared {
            return Ok(IndexWork::Ready(lock));
        }
        // Refreshing git's stat data alone is not worth waiting for.
        if plan.index.is_empty()
            && plan.moved_operation().is_none()
            && (self.rewritten_entries(plan)?.is_empty() || Index::new(self.repo).index_is_locked())
        {
            return Ok(IndexWork::Stays);
        }
        let lock = Index::new(self.repo).lock_index(self.wait)?;
        let now = Index::new(self.repo).read_index()?;
        for entry in &plan.index {
            if !same_entries(&Index::new(self.repo).index_entries(&now, entry.path.as_bstr())?, &entry.from) {
                return Err(changed_meanwhile(entry.path.as_bstr()));
            }
        }
        // With the files that it writes, all at once.
        if plan.changes_files() && Durable::new(self.repo).is_on() {
            lock.flush_later();
        }
        lock.expect_set(&self.moves_away_from_the_worktree(plan))?;
        Ok(IndexWork::Moves(lock, self.rewritten_entries(plan)?))
    }

    /// The moves to entries whose content will not be that of the file in the worktree. Where a filter may convert
    /// the file, only git can tell, and they are left out.
    pub fn moves_away_from_the_worktree<'a>(&self, plan: &'a Plan) -> Vec<&'a IndexMove> {
        let files: BTreeMap<&BString, &FileMove> = plan.files.iter().map(|file| (&file.path, file)).collect();
        let mut away = Vec::new();
        for entry in plan.index.iter().filter(|entry| is_unmarked(entry)) {
            let ([from], [to]) = (&entry.from[..], &entry.to[..]) else { continue };
            if !from.is_plain() || !to.is_plain() || from.is_gitlink() || to.is_gitlink() {
                continue;
            }
            let now = match files.get(&entry.path) {
                Some(file) => [file.from, file.to],
                None => [Worktree::new(self.repo).readable(entry.path.as_bstr(), self.repo.hash_kind()); 2],
            };
            // A file whose bytes are those of its entry, before or after, is not filtered.
            if let [Some(before), Some(after)] = now
                && before.id == from.id
                && after.id != to.id
            {
                away.push(entry);
            }
        }
        away
    }

    /// The entries that stay as they are while the plan writes their files. They are staged again for the new
    /// files' stat data, so that the next `git status` need not read them. Those of files that git converts too: it takes
    /// one for another by its size alone, though what it would make of it is still what the entry says.
    pub fn rewritten_entries(&self, plan: &Plan) -> Result<Vec<IndexMove>> {
        if plan.files.is_empty() {
            return Ok(Vec::new());
        }
        let index = Index::new(self.repo).read_index()?;
        let moved: BTreeSet<&BString> = plan.index.iter().map(|entry| &entry.path).collect();
        let written = plan.files.iter().filter(|file| !moved.contains(&file.path));
        // By the attributes that there will be.
        let other_rules = plan.files.iter().any(|file| file.path.ends_with(b".gitattributes"));
        let conversion = OnceCell::new();
        let may_convert = |path: &BString| {
            if other_rules {
                return true;
            }
            let conversion = conversion.get_or_init(|| Index::new(self.repo).conversion(&index).ok().map(RefCell::new));
            conversion.as_ref().is_some_and(|found| found.borrow_mut().may_convert(path.as_bstr()).unwrap_or_default())
        };
        let entry = |file: &FileMove| {
            let (to, entries) = (file.to?, Index::new(self.repo).index_entries(&index, file.path.as_bstr()).ok()?);
            let mode = u32::from(EntryMode::from(entry_kind(to.kind)).value());
            let fits = match &entries[..] {
                [entry] if *entry == IndexEntry::plain(mode, to.id) => true,
                [entry] => *entry == IndexEntry::plain(mode, entry.id) && may_convert(&file.path),
                _ => false,
            };
            fits.then(|| IndexMove { path: file.path.clone(), from: entries.clone(), to: entries })
        };
        Ok(written.filter_map(entry).collect())
    }

    pub fn apply_index(&self, moves: &[IndexMove], lock: &IndexLock<'_>) -> Result<()> {
        let fresh = |entry: &IndexMove| match &entry.to[..] {
            // Without a filter, the file's bytes must be the entry's.
            [to] => {
                to.is_plain()
                    && is_unmarked(entry)
                    && !to.is_gitlink()
                    && Worktree::new(self.repo).has_file(entry.path.as_bstr())
            }
            [] => {
                is_unmarked(entry) && matches!(Worktree::new(self.repo).find(entry.path.as_bstr()), Ok(Lookup::Absent))
            }
            _ => false,
        };
        lock.set(moves, fresh)
    }
}

/// Whether no flag keeps git from looking at the file.
fn is_unmarked(entry: &IndexMove) -> bool {
    entry.from.iter().all(|from| !from.skip_worktree && !from.assume_unchanged)
}

/// Whether these are the same, apart from skip-worktree: a file that is there although a sparse checkout leaves it
/// out is captured without that flag, which the index may still have.
pub fn same_entries(some: &[IndexEntry], others: &[IndexEntry]) -> bool {
    let staged = |entry: &IndexEntry| IndexEntry { skip_worktree: false, ..*entry };
    some.iter().map(staged).eq(others.iter().map(staged))
}
