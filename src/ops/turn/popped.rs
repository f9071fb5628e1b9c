//! What came out of the user's stash in a turn, as by an agent's `git stash pop` after a `git stash` that had nothing to put away; and what
//! was in their dirty commit, where the agent took that off the branch and left the files. It is theirs still, and in no commit of the
//! turn's. Undo of the turn puts it back where it was.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::timeline::stored::Stored;
use crate::model::checkpoint::{Checkpoint, Kind, StashEntry};
use crate::model::merge::{Blobs, Merged};
use crate::ops::turn::meanwhile::{Part, Parts, Whose};
use crate::ops::turn::sole::of_no_turn;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::BTreeSet;

/// How many of the newest entries are looked at that are in the stash list still: a pop that stops at a conflict leaves its entry there.
const KEPT: usize = 4;

/// Entries that were in the stash list before a turn, and that no turn had put there; and the like.
pub struct Popped(Vec<Entry>);

/// What is in one, as trees.
struct Entry {
    onto: ObjectId,
    files: ObjectId,
    /// What was untracked.
    new: Option<ObjectId>,
    /// The files in it.
    paths: BTreeSet<BString>,
    /// Whether it is in the list no more: else only what came out as a whole is known to have come out.
    is_gone: bool,
}

/// A file, and what it was made of.
type File = Option<(Kind, ObjectId)>;

impl Popped {
    /// Finds those that a turn had before it, which stands above this one.
    pub fn find(
        view: &View<'_>,
        timeline: &Stored<'_>,
        below: Option<u64>,
        [before, after]: [&Checkpoint; 2],
    ) -> Result<Self> {
        let objects = Objects::new(view.repo);
        let is_kept = |entry: &&StashEntry| after.stash.contains(entry);
        let (mut kept, gone): (Vec<&StashEntry>, Vec<&StashEntry>) = before.stash.iter().partition(is_kept);
        kept.truncate(KEPT);
        let mut entries = Vec::new();
        for (which, is_gone) in [(gone, true), (kept, false)] {
            // What has not changed any file of it has not come out.
            for entry in of_no_turn(timeline, below, which)? {
                let parents = if objects.has_commit(entry.id) { objects.parents(entry.id)? } else { Vec::new() };
                let Some(onto) = parents.first() else { continue };
                let [onto, files] = [objects.commit_tree(*onto)?, objects.commit_tree(entry.id)?];
                let new = parents.get(2).map(|new| objects.commit_tree(*new)).transpose()?;
                entries.push(Entry::of(&objects, [onto, files], new, is_gone)?);
            }
        }
        Ok(Self(entries))
    }

    /// With what was in the user's dirty commit, where HEAD has not got that any more.
    pub fn with_dirty_commit(
        mut self,
        view: &View<'_>,
        dirty: Option<ObjectId>,
        head: Option<ObjectId>,
    ) -> Result<Self> {
        let objects = Objects::new(view.repo);
        let (Some(dirty), Some(head)) = (dirty, head) else { return Ok(self) };
        let is_off = objects.has_commit(dirty) && !objects.is_ancestor(dirty, head)?;
        if let ([onto], true) = (&objects.parents(dirty)?[..], is_off) {
            let ends = [objects.commit_tree(*onto)?, objects.commit_tree(dirty)?];
            self.0.push(Entry::of(&objects, ends, None, true)?);
        }
        Ok(self)
    }

    /// Whose a path is of which something has come out of these and is not committed; none where nothing has.
    pub fn whose<'r>(
        &self,
        view: &View<'r>,
        after: &Checkpoint,
        path: &BStr,
        parts: &mut Parts<'_, '_, 'r>,
    ) -> Result<Option<Whose>> {
        let checkpoints = Checkpoints::new(view.repo);
        let changes = self.changes_of(view, path)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let (committed, now) = (parts.committed(view, path)?, checkpoints.captured_file(after, path)?);
        let Some(now) = now else {
            let is_deleted = changes.iter().any(|(change, is_gone)| *is_gone && change[1].is_none());
            return Ok((committed.is_some() && is_deleted).then_some(Whose::Users));
        };
        let mut left = parts.as_git_has(view, path, now)?;
        let mut has_come = false;
        for ([onto, stashed], is_gone) in changes {
            let Some((_, stashed)) = stashed else { continue };
            let (Some((_, onto)), Some((_, committed))) = (onto, committed) else {
                // git did not have it: nobody adds it for them.
                let is_it = left == stashed || is_gone && checkpoints.are_alike(stashed, left)?;
                if committed.is_none() && is_it {
                    return Ok(Some(Whose::Users));
                }
                continue;
            };
            let is_in_part = has_come_out(&checkpoints, [onto, stashed], [committed, left])?;
            if !is_in_part || !is_gone && !has_all(&checkpoints, path, [onto, stashed, left])? {
                continue;
            }
            let blobs = Blobs { base: stashed, ours: left, theirs: onto };
            match checkpoints.merging_for_theirs(|merge| merge(path, blobs))? {
                Merged::Clean(id) => left = id,
                // It cannot be told apart.
                Merged::Overlap(_) => return Ok(Some(Whose::Users)),
            }
            has_come = true;
        }
        Ok(match committed {
            _ if !has_come => None,
            Some((kind, id)) if id == left && kind == now.kind => Some(Whose::Users),
            _ => Some(Whose::Both(Some(Part::as_in_git(now, left)))),
        })
    }

    /// The versions of a file in which these had the user's lines that came to it, each with a tree that it is in.
    pub fn versions(&self, view: &View<'_>, after: &Checkpoint, path: &BStr) -> Result<Vec<(ObjectId, ObjectId)>> {
        let (checkpoints, mut versions) = (Checkpoints::new(view.repo), Vec::new());
        let Some(now) = checkpoints.captured_file(after, path)? else { return Ok(versions) };
        for entry in &self.0 {
            let [onto, stashed] = entry.change_of(&Objects::new(view.repo), path)?;
            let Some((_, stashed)) = stashed.filter(|_| entry.paths.contains(path)) else { continue };
            let is_out = entry.is_gone
                || match onto {
                    Some((_, onto)) => has_all(&checkpoints, path, [onto, stashed, now.id])?,
                    None => now.id == stashed,
                };
            let tree = if entry.new.is_some() && onto.is_none() { entry.new } else { None };
            versions.extend(is_out.then_some((tree.unwrap_or(entry.files), stashed)));
        }
        Ok(versions)
    }

    /// What of a file is in each of them, the newest last, from what it was; and whether the entry is gone.
    fn changes_of(&self, view: &View<'_>, path: &BStr) -> Result<Vec<([File; 2], bool)>> {
        let (objects, mut changes) = (Objects::new(view.repo), Vec::new());
        for entry in self.0.iter().rev().filter(|entry| entry.paths.contains(path)) {
            changes.push((entry.change_of(&objects, path)?, entry.is_gone));
        }
        Ok(changes)
    }
}

impl Entry {
    fn of(objects: &Objects<'_>, [onto, files]: [ObjectId; 2], new: Option<ObjectId>, is_gone: bool) -> Result<Self> {
        let mut paths: BTreeSet<BString> = objects.changed_paths(onto, files)?.into_iter().collect();
        if let Some(new) = new {
            paths.extend(objects.changed_paths(objects.empty_tree(), new)?);
        }
        Ok(Self { onto, files, new, paths, is_gone })
    }

    /// What of a file is in it, from what it was.
    fn change_of(&self, objects: &Objects<'_>, path: &BStr) -> Result<[File; 2]> {
        let [onto, stashed] = [objects.tree_file(self.onto, path)?, objects.tree_file(self.files, path)?];
        let new = self.new.map(|new| objects.tree_file(new, path)).transpose()?.flatten();
        Ok(if onto == stashed && new.is_some() { [None, new] } else { [onto, stashed] })
    }
}

/// Whether all that was stashed of a file is in it.
fn has_all(checkpoints: &Checkpoints<'_>, path: &BStr, [onto, stashed, now]: [ObjectId; 3]) -> Result<bool> {
    let blobs = Blobs { base: onto, ours: now, theirs: stashed };
    Ok(now == stashed || checkpoints.merging(|merge| merge(path, blobs))? == Merged::Clean(now))
}

/// Whether a line that was stashed has come to a file since it was committed, or one has gone from it.
fn has_come_out(
    checkpoints: &Checkpoints<'_>,
    [onto, stashed]: [ObjectId; 2],
    [was, now]: [ObjectId; 2],
) -> Result<bool> {
    let content = |id: ObjectId| checkpoints.content_of(id);
    let (Some(onto), Some(stashed), Some(was), Some(now)) =
        (content(onto)?, content(stashed)?, content(was)?, content(now)?)
    else {
        return Ok(true);
    };
    let [onto, stashed, was, now] = [&onto, &stashed, &was, &now].map(|text| text.lines().collect::<BTreeSet<&[u8]>>());
    let came = stashed.difference(&onto).any(|line| now.contains(line) && !was.contains(line));
    let went = onto.difference(&stashed).any(|line| was.contains(line) && !now.contains(line));
    Ok(came || went && stashed.is_subset(&onto))
}
