//! A merge that a turn left in progress and that somebody has concluded since, by a commit of their own. What it brought is in HEAD's
//! history by that, and what did not go together is as they have put it together: neither is the turn's any more. Of a pick or the like
//! only the latter: the turn has picked the rest.
//!
//! ```text
//!              the agent begins a merge of theirs, and edits g
//! ends         h of main        f with both sides in it, g, n of theirs
//! concluded    m of main        f as the user has it, g, n of theirs: only g is the turn's
//! ```

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::model::checkpoint::Checkpoint;
use crate::ops::brought::Brought;
use crate::ops::on_branch::{gained, under_other_names};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;

/// Leaves it out of what a turn did, where HEAD has come to this commit: it is there at the beginning, too.
pub fn leave_out(
    view: &View<'_>,
    (before, after): (&mut Checkpoint, &Checkpoint),
    head: Option<ObjectId>,
) -> Result<Brought> {
    let objects = Objects::new(view.repo);
    let commits = if before.operation.is_under_way() { Vec::new() } else { objects.merged_by(&after.operation)? };
    let (Some(head), Some(tip)) = (head, after.head.commit) else { return Ok(Brought::default()) };
    if commits.is_empty() {
        let is_over = after.operation.is_under_way() && view.repo.in_progress().is_none();
        return if is_over && head != tip && objects.is_ancestor(tip, head)? {
            put_together(view, (before, after))
        } else {
            Ok(Brought::default())
        };
    }
    for id in &commits {
        if !objects.is_ancestor(*id, head)? || objects.is_ancestor(*id, tip)? {
            return Ok(Brought::default());
        }
    }
    let checkpoints = Checkpoints::new(view.repo);
    let (mut start, mut unclear, mut others) = (before.clone(), after.index.unmerged(), Vec::new());
    checkpoints.merging(|merge| {
        for id in &commits {
            let base = before.head.commit.map(|from| objects.merge_base(from, *id)).transpose()?.flatten();
            let base = base.map_or_else(|| objects.write_empty_tree(), |base| objects.commit_tree(base))?;
            let theirs = objects.commit_tree(*id)?;
            let (with, overlaps) = gained(view, &start, [base, theirs], merge)?;
            start = with;
            others.extend([base, theirs]);
            unclear.extend(overlaps);
        }
        Ok(())
    })?;
    let there = under_other_names(view, [before.worktree, after.worktree], &unclear, &others)?;
    let with = under_other_names(view, [start.worktree, after.worktree], &unclear, &others)?;
    let staged = under_other_names(view, [start.index.tree, after.index.tree], &unclear, &others)?;
    unclear.extend([there, with, staged].into_iter().flatten());
    unclear.sort_unstable();
    unclear.dedup();
    *before = checkpoints.with_all_of_paths(&start, after, &unclear)?;
    before.operation.clone_from(&after.operation);
    let mut by = None;
    for id in objects.commits_between(&[tip], head)? {
        if objects.parents(id)?.split_first().is_some_and(|(first, others)| *first == tip && others == commits) {
            by = Some(id);
        }
    }
    Ok(Brought { commits, unclear, by })
}

/// Of a pick, or another operation that is no merge, and that somebody has gone on with: what did not go together is as they have put it
/// together.
fn put_together(view: &View<'_>, (before, after): (&mut Checkpoint, &Checkpoint)) -> Result<Brought> {
    let unclear = after.index.unmerged();
    if before.operation.is_under_way() || unclear.is_empty() {
        return Ok(Brought::default());
    }
    *before = Checkpoints::new(view.repo).with_all_of_paths(before, after, &unclear)?;
    before.operation.clone_from(&after.operation);
    Ok(Brought { unclear, ..Brought::default() })
}
