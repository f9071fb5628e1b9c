//! What a turn or a step did on one branch, where it went from one to another on the way. Git wrote the files in which the two
//! differ, and what takes the turn out, or tells whose a line is, is not to have them for the turn's.
//!
//! ```text
//!              the agent goes to topic and edits f
//! begins       main    a of main
//! ends         topic   b of topic, f
//! on topic     from    b of topic       to    b of topic, f
//! ```

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::objects::tree::plain_entry;
use crate::git::repo::clock::parse_rfc3339;
use crate::model::checkpoint::Checkpoint;
use crate::model::merge::Merge;
use crate::model::pointers::Pointers;
use crate::model::turn::{CommitKind, Turn};
use crate::ops::turn::checkouts::is_of_files;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;
use std::collections::BTreeMap;

/// Both ends as they are on one branch: the one that the turn ended on, or the one that HEAD is on, where the turn has committed to
/// that. There it did no more than it committed. What cannot be told of a file is no difference.
pub fn ends_on_one(view: &View<'_>, turn: &Turn, [start, end]: [Checkpoint; 2]) -> Result<[Checkpoint; 2]> {
    let has_moved = |name: &&String| start.branches.get(*name) != end.branches.get(*name);
    let is_other = |name: &&String| end.head.branch.as_ref() != Some(*name) && end.branches.contains_key(*name);
    let other = view.head.branch.as_ref().filter(is_other).filter(has_moved);
    if other.is_none() && start.head.branch == end.head.branch {
        return Ok([start, end]);
    }
    let branch = other.or(end.head.branch.as_ref());
    let tip = |state: &Checkpoint| branch.and_then(|name| state.branches.get(name)).copied();
    let Some(to) = branch.map_or(end.head.commit, |_| tip(&end)) else { return Ok([start, end]) };
    let from = match tip(&start) {
        None => began_at(view, turn, &start, to)?,
        from => from,
    };
    let Some(from) = from else { return Ok([start, end]) };
    let checkpoints = Checkpoints::new(view.repo);
    checkpoints.merging(|merge| {
        let (mut on_end, mut left) = led(view, &end, to, merge)?;
        let (mut on_start, also_left) = led(view, if other.is_some() { &on_end } else { &start }, from, merge)?;
        left.extend(also_left);
        on_start = checkpoints.with_all_of_paths(&on_start, &on_end, &left)?;
        for state in [&mut on_start, &mut on_end] {
            state.head.branch = branch.cloned();
        }
        Ok([on_start, on_end])
    })
}

/// The commit that git had checked out as the turn made a branch, which is at this one at its end: what the turn found of others is
/// not what it made, but for what it has sent there itself.
fn began_at(view: &View<'_>, turn: &Turn, start: &Checkpoint, to: ObjectId) -> Result<Option<ObjectId>> {
    let objects = Objects::new(view.repo);
    let began = parse_rfc3339(&turn.began_at).unwrap_or_default();
    let is_older = |id: &ObjectId| objects.features(*id).is_some_and(|commit| !commit.is_after(began - 1));
    let found = turn.commits.iter().filter(|commit| commit.kind == CommitKind::Found).map(|commit| commit.id);
    let known: Vec<ObjectId> = Pointers::of(start).tips().into_iter().chain(found.filter(is_older)).collect();
    objects.base(to, &known)
}

/// A state as it is after git has led HEAD to a commit, and the paths of which it cannot be told.
fn led(view: &View<'_>, state: &Checkpoint, to: ObjectId, merge: &mut Merge<'_>) -> Result<(Checkpoint, Vec<BString>)> {
    let (objects, checkpoints) = (Objects::new(view.repo), Checkpoints::new(view.repo));
    let [from, tree] = [objects.head_tree(&state.head)?, objects.commit_tree(to)?];
    let mut overlaps = BTreeMap::new();
    let worktree = checkpoints.merge_trees(state.worktree, from, tree, &mut overlaps, merge)?;
    let index = checkpoints.merge_trees(state.index.tree, from, tree, &mut overlaps, merge)?;
    let mut written = objects.tree_changes(state.worktree, worktree)?;
    written.retain(|_, change| is_of_files(change));
    let goal = Checkpoint { worktree, ..state.clone() };
    let mut led = checkpoints.with_paths_of(state, &goal, written.keys())?;
    let staged = objects.tree_changes(state.index.tree, index)?.into_iter();
    let staged = staged.map(|(path, change)| (path, plain_entry(change.to, false))).collect();
    checkpoints.put_entries(&mut led.index, &staged)?;
    led.head.commit = Some(to);
    Ok((led, overlaps.into_keys().collect()))
}
