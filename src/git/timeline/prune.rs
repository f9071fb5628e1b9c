//! Freeing the space of old records: what was moved aside is deleted at once, objects
//! when git next collects its garbage.

use crate::git::objects::Objects;
use crate::git::refs::read::REFS;
use crate::git::refs::{OwnRef, Refs};
use crate::git::repo::clock::parse_rfc3339;
use crate::git::repo::platform::nanoseconds;
use crate::git::repo::scratch::{KEPT_AT_PURGE, check_no_mount, disk_usage, remove_tree};
use crate::git::timeline::Timelines;
use crate::git::timeline::oplog::Operation;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::Worktree;
use crate::git::worktree::stat::file_state;
use crate::model::call::ToolCall;
use crate::model::checkpoint::{Aside, Checkpoint};
use crate::model::turn::Turn;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// What keeps `git gc` from taking locks that nobody would remove if it were killed, for what is of no use in a repository of
/// oxundo's own.
const NO_LOCKS: [&str; 4] =
    ["gc.packRefs=false", "gc.reflogExpire=never", "gc.reflogExpireUnreachable=never", "gc.writeCommitGraph=false"];

/// Removes a scratch directory; what other programs saved stays.
fn remove_all_but_kept(scratch: &Path) -> Result<()> {
    let linked = scratch.join("worktrees");
    for entry in std::fs::read_dir(&linked).into_iter().flatten() {
        remove_all_but_kept(&entry?.path())?;
    }
    // Where nothing is kept, it is empty.
    let keeps_linked = linked.is_dir() && std::fs::remove_dir(&linked).is_err();
    if !keeps_linked && !KEPT_AT_PURGE.iter().any(|name| scratch.join(name).exists()) {
        return remove_tree(scratch);
    }
    for entry in std::fs::read_dir(scratch)? {
        let entry = entry?;
        if KEPT_AT_PURGE.iter().any(|name| entry.file_name() == *name) || entry.path() == linked {
            continue;
        }
        remove_tree(&entry.path())?;
    }
    Ok(())
}

/// When a turn was at work, in seconds: what anybody does between its calls is not its own.
struct Spans(Vec<(i64, i64)>);

impl Spans {
    fn of(timeline: &Stored<'_>, turn: &Turn) -> Option<Self> {
        let began = parse_rfc3339(&turn.began_at)?;
        let ended = turn.ended_at.as_deref().and_then(parse_rfc3339).unwrap_or(i64::MAX);
        // A command that oxundo runs is at work all the time.
        let calls = if turn.origin.by_hooks { timeline.turn_calls(turn.turn).ok()? } else { Vec::new() };
        let span = |call: &ToolCall| {
            let over = call.ended_at.as_deref().and_then(parse_rfc3339);
            Some((parse_rfc3339(&call.began_at)?, over.unwrap_or(ended)))
        };
        let spans: Vec<_> = calls.iter().filter_map(span).collect();
        Some(Self(if spans.is_empty() { vec![(began, i64::MAX)] } else { spans }))
    }

    fn have(&self, time: i64) -> bool {
        self.0.iter().any(|(from, to)| (*from..=*to).contains(&time))
    }

    /// Whether a file, or all that is in a directory, was made while a turn was at work, and written last: a rename does not change
    /// when that was.
    fn have_made(&self, path: &Path) -> bool {
        let mut rest = vec![path.to_owned()];
        while let Some(path) = rest.pop() {
            let Ok(about) = path.symlink_metadata() else { return false };
            if about.is_dir() {
                let Ok(entries) = std::fs::read_dir(&path) else { return false };
                rest.extend(entries.flatten().map(|entry| entry.path()));
                continue;
            }
            let made = about.created().ok().and_then(|made| made.duration_since(UNIX_EPOCH).ok());
            let made = made.and_then(|made| i64::try_from(made.as_secs()).ok());
            let is_its = made.is_some_and(|made| self.have(made) && (about.mtime() < made || self.have(about.mtime())));
            // What has another name too is not the only copy.
            if !is_its && about.nlink() < 2 {
                return false;
            }
        }
        true
    }
}

/// Whether nothing in a directory has changed later than a time of the clock of files, and no repository is in it: a rename changes
/// the times of what is renamed, and of nothing in it.
fn is_unchanged_since(top: &Path, time: u64) -> bool {
    let mut rest = vec![top.to_owned()];
    let mut linked: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    while let Some(directory) = rest.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { return false };
        for entry in entries {
            let Ok((entry, about)) = entry.and_then(|entry| entry.metadata().map(|about| (entry, about))) else {
                return false;
            };
            if entry.file_name() == ".git" {
                return false;
            }
            let is_later = nanoseconds(about.ctime(), about.ctime_nsec()) > time;
            if is_later && (about.is_dir() || about.nlink() < 2) {
                return false;
            }
            if about.is_dir() {
                rest.push(entry.path());
            } else if is_later {
                let elsewhere = linked.entry((about.dev(), about.ino())).or_insert_with(|| about.nlink());
                *elsewhere = elsewhere.saturating_sub(1);
            }
        }
    }
    // A package manager gives the same file another name: it is not the only copy, unless all of them are here.
    linked.values().all(|elsewhere| *elsewhere > 0)
}

impl Timelines<'_> {
    /// Removes every ref and all scratch, of all worktrees, but for what other programs saved.
    pub fn purge(&self) -> Result<()> {
        self.repo.scratches().iter().try_for_each(|scratch| check_no_mount(scratch))?;
        // First: who is killed here has lost no timeline.
        self.forget_timelines()?;
        Refs::new(self.repo).delete_own_refs()?;
        for scratch in self.repo.scratches() {
            remove_all_but_kept(&scratch).with_context(|| format!("remove '{}'", scratch.display()))?;
        }
        // git leaves empty directories, and reflogs, of deleted refs.
        for name in REFS {
            for place in [self.repo.common_dir.join("logs").join(name), self.repo.common_dir.join(name)] {
                let _ = std::fs::remove_dir_all(&place).or_else(|_| std::fs::remove_file(&place));
            }
        }
        Ok(())
    }

    /// The number of the first rescue checkpoint that is not known to be older than a time, by the reflog.
    pub fn first_rescue_since(&self, limit: i64) -> Result<u64> {
        let old = |operation: &Operation| parse_rfc3339(&operation.at).is_some_and(|at| at < limit);
        let newest_old = self.operations()?.into_iter().find(old);
        let state = newest_old.and_then(|operation| self.timeline_at(operation.commit).ok());
        Ok(state.map_or(1, |stored| stored.state.next_rescue))
    }

    /// The disk space of the objects that only these records hold.
    pub fn released(&self, go: &[ObjectId], stay: &[ObjectId]) -> Result<u64> {
        if go.is_empty() {
            return Ok(0);
        }
        let lines = go.iter().map(|id| format!("{id}\n")).chain(stay.iter().map(|id| format!("^{id}\n")));
        let input: String = lines.collect();
        let args = ["rev-list", "--objects", "--disk-usage", "--stdin", "--not", "--exclude=refs/oxundo/*", "--all"];
        let printed = self.repo.git(args).run(input.as_bytes())?;
        printed.to_str()?.trim().parse().context("read what 'git rev-list --disk-usage' says")
    }

    /// The disk space that oxundo takes: of the objects that only its refs hold, and of its own directories, of all worktrees.
    pub fn space(&self) -> Result<u64> {
        let own = "--glob=refs/oxundo/*";
        let args = ["rev-list", "--objects", "--disk-usage", own, "--not", "--exclude=refs/oxundo/*", "--all"];
        let printed = self.repo.git(args).run(b"")?;
        let objects: u64 = printed.to_str()?.trim().parse().context("read what 'git rev-list --disk-usage' says")?;
        Ok(objects + self.repo.scratches().iter().map(|scratch| disk_usage(scratch)).sum::<u64>())
    }

    /// Removes the reflog entries of the timeline that are older than a time.
    pub fn expire_operations(&self, limit: i64) -> Result<()> {
        let name = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        if Refs::new(self.repo).ref_id(&name)?.is_none() {
            return Ok(());
        }
        Refs::new(self.repo).expire_log(&name, limit)
    }

    /// Has git delete unreachable objects at once: only for a shadow repository.
    pub fn collect_garbage(&self) -> Result<()> {
        self.gc(&["--prune=now"])
    }

    /// Runs `git gc --auto`, as git does after some of its commands: recent unreachable objects stay.
    pub fn tidy_objects(&self) -> Result<()> {
        self.gc(&["--auto"])
    }

    fn gc(&self, args: &[&str]) -> Result<()> {
        let settings = NO_LOCKS.iter().flat_map(|setting| ["-c", *setting]);
        self.repo.git(settings.chain(["gc", "--quiet"]).chain(args.iter().copied())).run(b"").map(drop)
    }

    /// The turns of which something is moved aside, with the disk space that it takes.
    pub fn aside(&self) -> Result<BTreeMap<u64, u64>> {
        let mut aside = BTreeMap::new();
        for directory in self.repo.aside_directories() {
            for entry in std::fs::read_dir(directory).into_iter().flatten() {
                let entry = entry?;
                if let Some(turn) = entry.file_name().to_str().and_then(|name| name.parse().ok()) {
                    *aside.entry(turn).or_default() += disk_usage(&entry.path());
                }
            }
        }
        Ok(aside)
    }

    /// The turns of which something is moved aside that they are not proven to have made: it was made or written when they were not at
    /// work, so that they have moved it, or somebody has saved something in it, or nobody knows when it was made, or it may be copied.
    /// It may be the only copy.
    pub fn unproven_aside(&self, timeline: &Stored<'_>, turns: &BTreeMap<u64, Turn>) -> Result<BTreeSet<u64>> {
        let mut unproven = BTreeSet::new();
        for directory in self.repo.aside_directories() {
            for entry in std::fs::read_dir(directory).into_iter().flatten() {
                let entry = entry?;
                let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
                let spans = turns.get(&number).and_then(|turn| Spans::of(timeline, turn));
                let mut all = std::fs::read_dir(entry.path()).into_iter().flatten().flatten();
                let is_made =
                    |made: std::fs::DirEntry| spans.as_ref().is_some_and(|spans| spans.have_made(&made.path()));
                // A copy is younger than what was copied and is gone.
                let has_copies = turns.get(&number).is_some_and(|turn| !turn.copies.is_empty());
                if has_copies || !all.all(is_made) {
                    unproven.insert(number);
                }
            }
        }
        Ok(unproven)
    }

    /// Whether something that was moved aside for a turn is not proven to be what it left, which was this: a program may have gone on
    /// writing to it.
    pub fn has_changed_aside(&self, turn: &Turn, left: &BTreeMap<BString, Aside>) -> bool {
        let ended = turn.ended.or_else(|| {
            // Older records have no other.
            let seconds = turn.ended_at.as_deref().and_then(parse_rfc3339)?;
            Some(nanoseconds(seconds, 0))
        });
        // A network's file system goes by another clock, and a copy is younger than what it was made of.
        let device = Worktree::new(self.repo).local_device();
        let directories = self.repo.aside_directories().into_iter().map(|place| place.join(turn.turn.to_string()));
        let mut all = directories.flat_map(|place| std::fs::read_dir(place).into_iter().flatten().flatten());
        all.any(|entry| {
            let store = format!("aside/{}/{}", turn.turn, entry.file_name().display());
            let Some(aside) = left.values().find(|aside| aside.store == store) else { return true };
            let Ok(about) = rustix::fs::lstat(entry.path()) else { return true };
            match FileType::from_raw_mode(about.st_mode) {
                FileType::Directory if Some(about.st_dev) == device => {
                    ended.is_none_or(|ended| !is_unchanged_since(&entry.path(), ended))
                }
                _ => aside.state.is_none() || file_state(&about) != aside.state,
            }
        })
    }

    /// Deletes for good what was moved aside for a turn.
    pub fn delete_aside(&self, turn: u64) -> Result<()> {
        let of_turn = self.repo.aside_directories().into_iter().map(|directory| directory.join(turn.to_string()));
        of_turn
            .filter(|directory| directory.symlink_metadata().is_ok())
            .try_for_each(|directory| remove_tree(&directory))
    }
}

impl Stored<'_> {
    /// The commits that a turn needs: those of its checkpoints, and its own.
    pub fn needed_commits(&self, turn: &Turn) -> Result<BTreeSet<ObjectId>> {
        let mut needed: BTreeSet<ObjectId> = turn.commits.iter().map(|commit| commit.id).collect();
        needed.extend(self.commits_in(&self.checkpoint(turn.turn, Side::Before)?)?);
        if turn.ended_at.is_some() {
            needed.extend(self.commits_in(&self.checkpoint(turn.turn, Side::After)?)?);
        }
        needed.extend(self.steps(turn.turn)?.iter().filter_map(|step| step.head));
        needed.extend(turn.passed.iter().filter_map(|tip| tip.0));
        Ok(needed)
    }

    /// The commits that a rescue checkpoint needs.
    pub fn rescued_commits(&self, number: u64) -> Result<BTreeSet<ObjectId>> {
        self.commits_in(&self.rescue(number)?)
    }

    /// The commits that a checkpoint needs that the user named.
    pub fn named_commits(&self, number: u64) -> Result<BTreeSet<ObjectId>> {
        self.commits_in(&self.named_checkpoint(number)?)
    }

    fn commits_in(&self, checkpoint: &Checkpoint) -> Result<BTreeSet<ObjectId>> {
        let mut commits = Objects::new(self.repo).commits_named(&checkpoint.operation)?;
        commits.extend(checkpoint.stash.iter().map(|entry| entry.id));
        commits.extend(checkpoint.branches.values().copied().chain(checkpoint.head.commit));
        Ok(commits)
    }
}
