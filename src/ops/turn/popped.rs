//! What came out of the user's stash in a turn, as by an agent's `git stash pop` after a `git stash` that had nothing to put away: it is
//! theirs still, and in no commit of the turn's. Undo of the turn puts it back into the stash list.

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
use gix::bstr::{BStr, ByteSlice};
use std::collections::BTreeSet;

/// Entries that are in the stash list no more, and that no turn had put there.
pub struct Popped(Vec<Entry>);

/// What is in one, as trees.
struct Entry {
    onto: ObjectId,
    files: ObjectId,
    /// What was untracked.
    new: Option<ObjectId>,
}

/// A file, and what it was made of.
type File = Option<(Kind, ObjectId)>;

impl Popped {
    /// Finds those that a turn, which stands above this one, had before it and has not after it.
    pub fn find(
        view: &View<'_>,
        timeline: &Stored<'_>,
        below: Option<u64>,
        [before, after]: [&Checkpoint; 2],
    ) -> Result<Self> {
        let objects = Objects::new(view.repo);
        let gone: Vec<&StashEntry> = before.stash.iter().filter(|entry| !after.stash.contains(entry)).collect();
        let mut entries = Vec::new();
        for entry in of_no_turn(timeline, below, gone)? {
            let parents = if objects.has_commit(entry.id) { objects.parents(entry.id)? } else { Vec::new() };
            let Some(onto) = parents.first() else { continue };
            entries.push(Entry {
                onto: objects.commit_tree(*onto)?,
                files: objects.commit_tree(entry.id)?,
                new: parents.get(2).map(|new| objects.commit_tree(*new)).transpose()?,
            });
        }
        Ok(Self(entries))
    }

    /// Whose a path is of which something has come out of these; none where nothing has.
    pub fn whose<'r>(
        &self,
        view: &View<'r>,
        [before, after]: [&Checkpoint; 2],
        path: &BStr,
        parts: &mut Parts<'_, '_, 'r>,
    ) -> Result<Option<Whose>> {
        let checkpoints = Checkpoints::new(view.repo);
        let changes = self.changes_of(view, path)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let [was, now] = [checkpoints.captured_file(before, path)?, checkpoints.captured_file(after, path)?];
        let committed = parts.committed(view, path)?;
        let Some(now) = now else {
            let is_deleted = was.is_some() && changes.iter().any(|(_, stashed)| stashed.is_none());
            return Ok(is_deleted.then_some(Whose::Users));
        };
        let mut left = parts.as_git_has(view, path, now)?;
        let was = was.map(|was| parts.as_git_has(view, path, was)).transpose()?;
        let mut has_come = false;
        for (onto, stashed) in changes {
            let Some((_, stashed)) = stashed else { continue };
            let Some((_, onto)) = onto else {
                // git did not have it: nobody adds it for them.
                if committed.is_none() && (left == stashed || checkpoints.are_alike(stashed, left)?) {
                    return Ok(Some(Whose::Users));
                }
                continue;
            };
            if left == stashed && was == Some(onto) {
                return Ok(Some(Whose::Users));
            }
            if !has_come_out(&checkpoints, [onto, stashed], [was, Some(left)])? {
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

    /// The versions of a file in which these had the user's lines.
    pub fn versions(&self, view: &View<'_>, path: &BStr) -> Result<Vec<ObjectId>> {
        let changes = self.changes_of(view, path)?.into_iter();
        Ok(changes.filter_map(|(_, stashed)| Some(stashed?.1)).collect())
    }

    /// What of a file is in each of them, the newest last, from what it was.
    fn changes_of(&self, view: &View<'_>, path: &BStr) -> Result<Vec<(File, File)>> {
        let (objects, mut changes) = (Objects::new(view.repo), Vec::new());
        for entry in self.0.iter().rev() {
            let [onto, stashed] = [objects.tree_file(entry.onto, path)?, objects.tree_file(entry.files, path)?];
            let new = entry.new.map(|new| objects.tree_file(new, path)).transpose()?.flatten();
            if onto != stashed {
                changes.push((onto, stashed));
            } else if new.is_some() {
                changes.push((None, new));
            }
        }
        Ok(changes)
    }
}

/// Whether a line that was stashed has come to a file, or one has gone from it.
fn has_come_out(checkpoints: &Checkpoints<'_>, stash: [ObjectId; 2], file: [Option<ObjectId>; 2]) -> Result<bool> {
    let content = |id: Option<ObjectId>| id.map_or(Ok(Some(Vec::new())), |id| checkpoints.content_of(id));
    let [onto, stashed, was, now] =
        [content(Some(stash[0]))?, content(Some(stash[1]))?, content(file[0])?, content(file[1])?];
    let (Some(onto), Some(stashed), Some(was), Some(now)) = (onto, stashed, was, now) else { return Ok(true) };
    let [onto, stashed, was, now] = [&onto, &stashed, &was, &now].map(|text| text.lines().collect::<BTreeSet<&[u8]>>());
    let came = stashed.difference(&onto).any(|line| now.contains(line) && !was.contains(line));
    let went = onto.difference(&stashed).any(|line| was.contains(line) && !now.contains(line));
    Ok(came || went && stashed.is_subset(&onto))
}
