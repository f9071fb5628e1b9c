//! Stash entries that come back where the files go that had come out of them, as by `git stash pop` in a turn: what the user had put
//! away would be nowhere else.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::model::checkpoint::{Change, Checkpoint, StashEntry};
use crate::model::operation::Operation;
use crate::ops::turn::sole::stashed;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;
use std::collections::BTreeMap;

/// A stash list with what git had stashed for as long as an operation lasts, which does not come along: git has it there as well, where
/// it cannot bring it back.
pub fn with_autostashes(view: &View<'_>, list: &[StashEntry], operation: &Operation) -> Result<Vec<StashEntry>> {
    let (objects, mut all) = (Objects::new(view.repo), Vec::new());
    for named in operation.autostashes() {
        let Ok(id) = ObjectId::from_hex(objects.blob(named)?.trim_ascii()) else { continue };
        all.extend(objects.as_stash_entry(id, "autostash"));
    }
    all.extend_from_slice(list);
    Ok(all)
}

/// What git has stashed for as long as the operation of a state lasts is in its files, or, where this stash list has it since git could not
/// bring it back, in its stash list. Gives the files where it does not go together with what is there.
pub fn put_autostashes(repo: &Repo, state: &mut Checkpoint, stash: &[StashEntry]) -> Result<Vec<BString>> {
    let (objects, checkpoints, mut overlaps) = (Objects::new(repo), Checkpoints::new(repo), BTreeMap::new());
    for named in state.operation.autostashes() {
        let Ok(entry) = ObjectId::from_hex(objects.blob(named)?.trim_ascii()) else { continue };
        if let Some(listed) = stash.iter().find(|listed| listed.id == entry) {
            state.stash.insert(0, listed.clone());
            continue;
        }
        if !objects.has_commit(entry) {
            continue;
        }
        let Some(onto) = objects.parents(entry)?.first().copied() else { continue };
        let [from, to] = [objects.commit_tree(onto)?, objects.commit_tree(entry)?];
        state.worktree =
            checkpoints.merging(|merge| checkpoints.merge_trees(state.worktree, from, to, &mut overlaps, merge))?;
    }
    Ok(overlaps.into_keys().collect())
}

/// The stash list with those entries of an earlier one that are in none any more, and hold one of the files that go, where they were; none
/// where there is no such entry.
pub fn back(
    view: &View<'_>,
    then: &[StashEntry],
    now: &[StashEntry],
    goes: impl Fn(&BString) -> bool,
) -> Result<Option<Change<Vec<StashEntry>>>> {
    let mut back = Vec::new();
    for entry in then.iter().filter(|entry| !now.contains(entry)) {
        let is_there = Objects::new(view.repo).has_commit(entry.id);
        if is_there && stashed(view, entry.id)?.iter().any(|(path, _)| goes(path)) {
            back.push(entry.clone());
        }
    }
    let (old, new): (Vec<_>, Vec<_>) = now.iter().cloned().partition(|entry| then.contains(entry));
    let there = then.iter().filter(|entry| old.contains(entry) || back.contains(entry)).cloned().collect();
    Ok((!back.is_empty()).then(|| Change::new(now.to_vec(), [new, there].concat())))
}
