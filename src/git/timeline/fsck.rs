//! Looking for damage in oxundo's own records, and for their last undamaged state.

use crate::error::failure::error_chain;
use crate::git::objects::Objects;
use crate::git::refs::{OwnRef, Refs};
use crate::git::timeline::Timelines;
use crate::git::timeline::oplog::Operation;
use crate::git::timeline::stored::{Stored, turn_directory};
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::tree::EntryKind;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::PathBuf;

impl Timelines<'_> {
    /// The newest state of the timeline without damage and without an open turn: from the reflog, else from the
    /// file that notes where it was, else from the commits that no ref holds.
    pub fn last_good_timeline(&self) -> Result<Option<Operation>> {
        let logged = self.operations()?;
        let remembered = self.remembered_timeline().map(|commit| self.operation_of(commit));
        let mut checked = HashSet::new();
        let sound = |stored: Stored| stored.state.open.is_none() && stored.damaged_turns().is_empty();
        let mut good = |operation: &Operation| {
            checked.insert(operation.commit) && self.timeline_at(operation.commit).is_ok_and(sound)
        };
        if let Some(found) = logged.into_iter().chain(remembered).find(|operation| good(operation)) {
            return Ok(Some(found));
        }
        Ok(self.lost_timelines()?.into_iter().find(|operation| good(operation)))
    }

    /// The file of the timeline's ref, if it does not contain an id.
    pub fn broken_timeline_ref(&self) -> Option<PathBuf> {
        let name = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        let broken = Refs::new(self.repo).ref_id(&name).map_or(true, |id| id.is_some_and(|id| id.is_null()));
        broken.then(|| self.repo.common_dir.join(name))
    }

    /// Timelines among the commits that nothing holds, newest first.
    fn lost_timelines(&self) -> Result<Vec<Operation>> {
        let printed =
            self.repo.git_apart(["fsck", "--unreachable", "--no-reflogs", "--connectivity-only", "--no-progress"]);
        // fsck fails where it finds damage; use what it has printed until then.
        let printed = printed.ask()?.1;
        let ids =
            printed.lines().filter_map(|line| ObjectId::from_hex(line.strip_prefix(b"unreachable commit ")?).ok());
        let others = self.logged_elsewhere()?;
        let mut found: Vec<_> = ids
            .filter(|id| !others.contains(id))
            .filter_map(|id| {
                let state = self.timeline_at(id).ok()?.state;
                // Several can have the same second.
                let operation = self.operation_of(id);
                Some(((operation.at.clone(), state.next, state.next_rescue), operation))
            })
            .collect();
        found.sort_by(|(a, _), (b, _)| b.cmp(a));
        Ok(found.into_iter().map(|(_, operation)| operation).collect())
    }

    /// What the timelines of other worktrees have been, by their reflogs.
    fn logged_elsewhere(&self) -> Result<HashSet<ObjectId>> {
        let refs = Refs::new(self.repo);
        let own = refs.own_ref(OwnRef::Timeline);
        let mut logged = HashSet::new();
        for name in refs.own_refs()?.into_iter().filter(|name| *name != own && name.ends_with("/timeline")) {
            let log = refs.log_text(&name)?.unwrap_or_default();
            let ids = log.lines().flat_map(|line| line.split_str(" ").take(2));
            logged.extend(ids.filter_map(|id| ObjectId::from_hex(id).ok()));
        }
        Ok(logged)
    }

    /// Reads all that is in a tree, however deep, but for what is known to be sound.
    fn check_tree(&self, id: ObjectId, sound: &mut HashSet<ObjectId>) -> Result<()> {
        let (mut read, mut left) = (Vec::new(), vec![id]);
        let mut seen = HashSet::new();
        while let Some(id) = left.pop() {
            if sound.contains(&id) || !seen.insert(id) {
                continue;
            }
            let tree = self.repo.find_tree(id)?;
            for entry in tree.decode()?.entries {
                let id = entry.oid.to_owned();
                match entry.mode.kind() {
                    EntryKind::Tree => left.push(id),
                    EntryKind::Commit => {}
                    _ if sound.contains(&id) => {}
                    _ => {
                        self.repo.find_blob(id)?;
                        sound.insert(id);
                    }
                }
            }
            read.push(id);
        }
        sound.extend(read);
        Ok(())
    }
}

impl Stored<'_> {
    /// The turns that cannot be read in full, and why. This reads every object of every turn.
    pub fn damaged_turns(&self) -> BTreeMap<u64, String> {
        let mut sound = HashSet::new();
        let needed: BTreeSet<u64> =
            self.state.stacks.values().flat_map(|stack| stack.top.iter().chain(&stack.undone)).copied().collect();
        let mut damaged = BTreeMap::new();
        // What the tree itself does not list is missing.
        let all: BTreeSet<u64> =
            self.turn_numbers().unwrap_or_default().into_iter().chain(needed.iter().copied()).collect();
        for number in all {
            match self.check_turn(number, &mut sound) {
                Ok(found) if found || !needed.contains(&number) => {}
                Ok(_) => drop(damaged.insert(number, "it is missing".to_owned())),
                Err(error) => drop(damaged.insert(number, error_chain(&error))),
            }
        }
        damaged
    }

    fn check_turn(&self, number: u64, sound: &mut HashSet<ObjectId>) -> Result<bool> {
        let Some((_, tree)) = Objects::new(self.repo).tree_entry(self.tree, turn_directory(number).as_str().into())?
        else {
            return Ok(false);
        };
        self.find_turn(number)?.context("its record is missing")?;
        Timelines::new(self.repo).check_tree(tree, sound)?;
        Ok(true)
    }
}
