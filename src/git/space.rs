//! The space that records take, and how it is given back: what was moved aside
//! goes at once, objects when git next collects its garbage.

use super::Repo;
use super::health::Operation;
use super::refs::Own;
use super::store::{Side, Stored};
use crate::model::checkpoint::Checkpoint;
use crate::model::turn::Turn;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

impl Repo {
    /// Every recorded turn, by its number.
    ///
    /// # Errors
    ///
    /// When one cannot be read.
    pub fn turns(&self, stored: &Stored) -> Result<BTreeMap<u64, Turn>> {
        let mut turns = BTreeMap::new();
        for number in self.turn_numbers(stored)? {
            turns.insert(number, self.known_turn(stored, number)?);
        }
        Ok(turns)
    }

    /// The number of the first rescue checkpoint that is not known to be older than a time: the
    /// reflog tells which numbers were taken by then.
    ///
    /// # Errors
    ///
    /// When the reflog cannot be read.
    pub fn first_rescue_since(&self, limit: i64) -> Result<u64> {
        let old = |operation: &Operation| Self::seconds_of(&operation.at).is_some_and(|at| at < limit);
        let newest_old = self.operations()?.into_iter().find(old);
        let state = newest_old.and_then(|operation| self.timeline_at(operation.commit).ok());
        Ok(state.map_or(1, |stored| stored.state.next_rescue))
    }

    /// The commits that a turn needs: those of its checkpoints, and its own.
    ///
    /// # Errors
    ///
    /// When a checkpoint cannot be read.
    pub fn needed_commits(&self, stored: &Stored, turn: &Turn) -> Result<BTreeSet<ObjectId>> {
        let mut needed: BTreeSet<ObjectId> = turn.commits.iter().map(|commit| commit.id).collect();
        needed.extend(commits_in(&self.checkpoint(stored, turn.turn, Side::Before)?));
        if turn.ended_at.is_some() {
            needed.extend(commits_in(&self.checkpoint(stored, turn.turn, Side::After)?));
        }
        Ok(needed)
    }

    /// The commits that a rescue checkpoint needs.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn rescued_commits(&self, stored: &Stored, number: u64) -> Result<BTreeSet<ObjectId>> {
        Ok(commits_in(&self.rescue(stored, number)?).collect())
    }

    /// The commits that a checkpoint needs that the user named.
    ///
    /// # Errors
    ///
    /// When it cannot be read.
    pub fn named_commits(&self, stored: &Stored, number: u64) -> Result<BTreeSet<ObjectId>> {
        Ok(commits_in(&self.named_checkpoint(stored, number)?).collect())
    }

    /// The disk space of the objects that only these records hold.
    ///
    /// # Errors
    ///
    /// When git cannot find out.
    pub fn released(&self, go: &[ObjectId], stay: &[ObjectId]) -> Result<u64> {
        if go.is_empty() {
            return Ok(0);
        }
        let lines = go.iter().map(|id| format!("{id}\n")).chain(stay.iter().map(|id| format!("^{id}\n")));
        let input: String = lines.collect();
        let args = ["rev-list", "--objects", "--disk-usage", "--stdin", "--not", "--exclude=refs/oxundo/*", "--all"];
        let printed = self.git(args).run(input.as_bytes())?;
        printed.to_str()?.trim().parse().context("read what 'git rev-list --disk-usage' says")
    }

    /// Forgets the operations on the timeline that are older than a time.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn expire_operations(&self, limit: i64) -> Result<()> {
        let name = self.own_ref(Own::Timeline);
        if self.ref_id(&name)?.is_none() {
            return Ok(());
        }
        let time = format!("@{limit} +0000");
        let args = ["reflog", "expire", &format!("--expire={time}"), &format!("--expire-unreachable={time}"), &name];
        self.git(args).run(b"").map(drop)
    }

    /// Lets git throw away at once what nothing holds: only for a repository that is oxundo's own.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn collect_garbage(&self) -> Result<()> {
        self.git(["gc", "--quiet", "--prune=now"]).run(b"").map(drop)
    }

    /// Lets git tidy up as it does by itself after some of its commands: what was thrown away lately stays.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn tidy_objects(&self) -> Result<()> {
        self.git(["gc", "--quiet", "--auto"]).run(b"").map(drop)
    }

    /// Remembers that old turns have been looked for.
    ///
    /// # Errors
    ///
    /// When that cannot be written.
    pub fn mark_collected(&self) -> Result<()> {
        let path = self.scratch()?.join("gc");
        std::fs::write(&path, "").with_context(|| format!("write {}", path.display()))
    }

    /// How long ago old turns were looked for last; `None` if never, or if the clock says that it is yet to come.
    pub fn since_collected(&self) -> Option<Duration> {
        let about = self.scratch_path("gc").metadata().ok()?;
        about.modified().ok()?.elapsed().ok()
    }

    /// The turns of which something is moved aside, with the disk space that it takes.
    ///
    /// # Errors
    ///
    /// When that cannot be found out.
    pub fn aside(&self) -> Result<BTreeMap<u64, u64>> {
        let mut aside = BTreeMap::new();
        let Ok(entries) = std::fs::read_dir(self.scratch_path("aside")) else {
            return Ok(aside);
        };
        for entry in entries {
            let entry = entry?;
            if let Some(turn) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                aside.insert(turn, disk_usage(&entry.path())?);
            }
        }
        Ok(aside)
    }

    /// Deletes for good what is kept aside of a turn.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn delete_aside(&self, turn: u64) -> Result<()> {
        remove_tree(&self.scratch_path(&format!("aside/{turn}")))
    }
}

fn commits_in(checkpoint: &Checkpoint) -> impl Iterator<Item = ObjectId> {
    let stash = checkpoint.stash.iter().map(|entry| entry.id);
    checkpoint.branches.values().copied().chain(checkpoint.head.commit).chain(stash)
}

/// The disk space that a file, or a directory with all below it, takes.
///
/// # Errors
///
/// When it cannot be read.
pub fn disk_usage(path: &Path) -> Result<u64> {
    let about = path.symlink_metadata().with_context(|| format!("look at '{}'", path.display()))?;
    let mut bytes = about.blocks() * 512;
    if about.is_dir() {
        for entry in std::fs::read_dir(path).with_context(|| format!("read '{}'", path.display()))? {
            bytes += disk_usage(&entry?.path())?;
        }
    }
    Ok(bytes)
}

/// Removes a directory with all below it, also where directories may not be written.
///
/// # Errors
///
/// When the system refuses.
pub fn remove_tree(path: &Path) -> Result<()> {
    if std::fs::remove_dir_all(path).is_err() {
        open_up(path)?;
        std::fs::remove_dir_all(path).with_context(|| format!("remove '{}'", path.display()))?;
    }
    Ok(())
}

fn open_up(path: &Path) -> Result<()> {
    if path.symlink_metadata()?.is_dir() {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        for entry in std::fs::read_dir(path)? {
            open_up(&entry?.path())?;
        }
    }
    Ok(())
}
