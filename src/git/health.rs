//! Looking for damage in oxundo's own records, and for an earlier state of them
//! that has none.

use super::Repo;
use super::faults::told;
use super::refs::{Own, remove_if_there};
use super::store::{Stored, turn_directory};
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::tree::EntryKind;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;
use std::time::Duration;

/// One operation on the timeline, as its reflog tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The timeline's commit after it.
    pub commit: ObjectId,
    /// When.
    pub at: String,
    /// What.
    pub what: String,
}

/// No command of git's holds a lock for longer.
const HELD_AT_MOST: Duration = Duration::from_secs(60);

impl Repo {
    /// The timeline's operations, newest first, also when the ref itself is gone.
    ///
    /// # Errors
    ///
    /// When the reflog cannot be read.
    pub fn operations(&self) -> Result<Vec<Operation>> {
        let mut text = Vec::new();
        let name = self.own_ref(Own::Timeline);
        let Some(lines) = self.gix.refs.reflog_iter(&*name, &mut text).context("read the reflog")? else {
            return Ok(Vec::new());
        };
        // A damaged line must not hide the others.
        let mut operations: Vec<_> = (lines.flatten())
            .map(|line| Operation {
                commit: line.new_oid(),
                at: (line.signature.time())
                    .map(|time| time.format_or_unix(gix::date::time::format::ISO8601_STRICT))
                    .unwrap_or_default(),
                what: line.message.to_string(),
            })
            .collect();
        operations.reverse();
        Ok(operations)
    }

    /// Where oxundo last saw the timeline, outside git's refs.
    fn timeline_mark(&self) -> PathBuf {
        self.scratch_path("timeline")
    }

    /// Notes where the timeline is, so that a ref that something else deleted is missed.
    pub(super) fn remember_timeline(&self, commit: ObjectId) {
        // Without it, all that is lost is a warning.
        let _ = std::fs::write(self.timeline_mark(), format!("{commit}\n"));
    }

    /// Nobody shall miss the timeline.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub(super) fn forget_timeline(&self) -> Result<()> {
        remove_if_there(&self.timeline_mark())
    }

    fn remembered_timeline(&self) -> Option<ObjectId> {
        ObjectId::from_hex(std::fs::read(self.timeline_mark()).ok()?.trim()).ok()
    }

    /// Whether this worktree has had a timeline that oxundo itself did not take back. A reflog
    /// alone says nothing: git writes it before the ref.
    pub(super) fn had_timeline(&self) -> bool {
        self.timeline_mark().exists()
    }

    /// The newest state of the timeline that has no damage and no turn in progress: from the
    /// reflog, else from where oxundo last saw it, else from the commits that no ref holds.
    ///
    /// # Errors
    ///
    /// When the reflog cannot be read, or git fails.
    pub fn last_good_timeline(&self) -> Result<Option<Operation>> {
        let logged = self.operations()?;
        let remembered = self.remembered_timeline().map(|commit| self.operation_of(commit));
        let mut checked = HashSet::new();
        let sound = |stored: Stored| stored.state.open.is_none() && self.damaged_turns(&stored).is_empty();
        let mut good = |operation: &Operation| {
            checked.insert(operation.commit) && self.timeline_at(operation.commit).is_ok_and(sound)
        };
        if let Some(found) = logged.into_iter().chain(remembered).find(|operation| good(operation)) {
            return Ok(Some(found));
        }
        Ok(self.lost_timelines()?.into_iter().find(|operation| good(operation)))
    }

    /// The timeline's ref, if its file does not hold an id.
    pub fn broken_timeline_ref(&self) -> Option<PathBuf> {
        let name = self.own_ref(Own::Timeline);
        let broken = self.ref_id(&name).map_or(true, |id| id.is_some_and(|id| id.is_null()));
        broken.then(|| self.common_dir.join(name))
    }

    fn operation_of(&self, commit: ObjectId) -> Operation {
        let about = self.gix.find_commit(commit).ok();
        let about = about.as_ref().and_then(|commit| Some((commit.time().ok()?, commit.message_raw().ok()?)));
        let (at, what) = match about {
            Some((time, message)) => (
                time.format_or_unix(gix::date::time::format::ISO8601_STRICT),
                message.trim().to_str_lossy().into_owned(),
            ),
            None => Default::default(),
        };
        Operation { commit, at, what }
    }

    /// Timelines among the commits that nothing holds, newest first.
    fn lost_timelines(&self) -> Result<Vec<Operation>> {
        let printed = self.git(["fsck", "--unreachable", "--no-reflogs", "--connectivity-only", "--no-progress"]);
        // fsck fails where it finds damage; what it has printed until then is what counts.
        let printed = printed.ask()?.1;
        let ids =
            printed.lines().filter_map(|line| ObjectId::from_hex(line.strip_prefix(b"unreachable commit ")?).ok());
        let mut found: Vec<_> = ids
            .filter_map(|id| {
                let state = self.timeline_at(id).ok()?.state;
                // Several can be of one second.
                let operation = self.operation_of(id);
                Some(((operation.at.clone(), state.next, state.next_rescue), operation))
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| b.cmp(a));
        Ok(found.into_iter().map(|(_, operation)| operation).collect())
    }

    /// The turns that cannot be read in full, and why. It reads every object of every turn.
    pub fn damaged_turns(&self, stored: &Stored) -> BTreeMap<u64, String> {
        let mut sound = HashSet::new();
        let needed: BTreeSet<u64> =
            stored.state.stacks.values().flat_map(|stack| stack.top.iter().chain(&stack.undone)).copied().collect();
        let mut damaged = BTreeMap::new();
        // What the tree itself does not list is missing.
        let all: BTreeSet<u64> =
            self.turn_numbers(stored).unwrap_or_default().into_iter().chain(needed.iter().copied()).collect();
        for number in all {
            match self.check_turn(stored, number, &mut sound) {
                Ok(found) if found || !needed.contains(&number) => {}
                Ok(_) => drop(damaged.insert(number, "it is missing".to_owned())),
                Err(error) => drop(damaged.insert(number, told(&error))),
            }
        }
        damaged
    }

    fn check_turn(&self, stored: &Stored, number: u64, sound: &mut HashSet<ObjectId>) -> Result<bool> {
        let Some((_, tree)) = self.tree_entry(stored.tree, turn_directory(number).as_str().into())? else {
            return Ok(false);
        };
        self.turn(stored, number)?.context("its record is missing")?;
        self.check_tree(tree, sound)?;
        Ok(true)
    }

    fn check_tree(&self, id: ObjectId, sound: &mut HashSet<ObjectId>) -> Result<()> {
        if sound.contains(&id) {
            return Ok(());
        }
        let tree = self.gix.find_tree(id)?;
        for entry in tree.decode()?.entries {
            let id = entry.oid.to_owned();
            match entry.mode.kind() {
                EntryKind::Tree => self.check_tree(id, sound)?,
                EntryKind::Commit => {}
                _ if sound.contains(&id) => {}
                _ => {
                    self.gix.find_blob(id)?;
                    sound.insert(id);
                }
            }
        }
        sound.insert(id);
        Ok(())
    }

    /// The journal of an interrupted command, if it cannot be read: its commit, and why.
    ///
    /// # Errors
    ///
    /// When the ref itself cannot be read.
    pub fn damaged_journal(&self) -> Result<Option<(ObjectId, String)>> {
        let Some(pending) = self.ref_id(&self.own_ref(Own::Pending))? else { return Ok(None) };
        Ok(self.check_journal(pending).err().map(|error| (pending, told(&error))))
    }

    /// Lock files of git's that no running command can be holding.
    pub fn stale_locks(&self) -> Vec<PathBuf> {
        let branch = self.head().ok().and_then(|head| head.branch);
        let own = [Own::Timeline, Own::Pending].map(|own| self.own_ref(own));
        let shared = own.into_iter().chain(branch).chain(["packed-refs".to_owned(), "config".to_owned()]);
        let locks = (shared.map(|name| self.common_dir.join(format!("{name}.lock"))))
            .chain(["HEAD.lock", "index.lock"].map(|name| self.git_dir.join(name)));
        let old = |lock: &PathBuf| {
            let made = lock.symlink_metadata().and_then(|about| about.modified());
            made.is_ok_and(|made| made.elapsed().unwrap_or_default() > HELD_AT_MOST)
        };
        locks.filter(old).collect()
    }
}
