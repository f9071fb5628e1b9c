//! Turns that the user dropped out of the middle of a line, in an interactive rebase or by picking only later ones. The line
//! leads on below them, and they are not on it any more: what they did is not there.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::objects::commit::Likeness;
use crate::model::place::Node;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::collections::BTreeSet;

/// How many commits are looked at for a copy of a turn's last one.
const NEAR: usize = 256;

/// The turns of HEAD's line that were dropped, down to one.
pub fn dropped(view: &View<'_>, lowest: u64) -> Result<BTreeSet<u64>> {
    let objects = Objects::new(view.repo);
    let (mut dropped, mut is_first) = (BTreeSet::new(), true);
    let Some(head) = view.head.commit else { return Ok(dropped) };
    // Where the history of what stands above goes on.
    let (mut above, mut at) = (Some(head), view.top()?);
    while let (Some(upper), Some(number)) = (above, at.filter(|number| *number >= lowest)) {
        let node = view.timeline.node(number)?;
        at = node.previous;
        let Some(to) = node.to.filter(|_| node.moved()) else { continue };
        if objects.is_ancestor(to, upper)? {
            above = node.from;
        } else if let Some(copy) = copy_in(&objects, &node, to, upper)? {
            above = objects.parents(copy)?.first().copied();
        } else if is_first {
            // What HEAD stands on is not known by its commits.
            break;
        } else if copy_in(&objects, &node, to, head)?.is_none() {
            dropped.insert(number);
        }
        is_first = false;
        let turn = view.timeline.require_turn(number)?;
        if turn.began_on != turn.branch {
            break;
        }
    }
    Ok(dropped)
}

/// The commit that a turn's last one became, when it was amended, rebased or picked; those that the turn began upon are older.
fn copy_in(objects: &Objects<'_>, node: &Node, original: ObjectId, from: ObjectId) -> Result<Option<ObjectId>> {
    let mut history = objects.newest_first(from);
    for _ in 0..NEAR {
        let Some(commit) = history.take(1)?.pop() else { break };
        if Some(commit) == node.from || Some(commit) == node.dirty {
            break;
        }
        if objects.likeness(original, commit) != Likeness::None {
            return Ok(Some(commit));
        }
    }
    Ok(None)
}

/// Refuses to walk to or from a turn that was dropped.
pub fn check(view: &View<'_>, number: u64) -> Result<()> {
    if number == 0 || !dropped(view, number)?.contains(&number) {
        return Ok(());
    }
    let node = view.timeline.node(number)?;
    let short = |id: ObjectId| id.to_hex_with_len(10).to_string();
    let (Some(to), begun) = (node.to, node.dirty.or(node.from)) else { return Ok(()) };
    let message = format!("turn {number} is not done any more: commit {} is not in HEAD's history", short(to));
    let picked = match begun {
        Some(begun) if Objects::new(view.repo).parents(to)? != [begun] => format!("{}..{}", short(begun), short(to)),
        _ => short(to),
    };
    Err(Refusal::new(Code::Foreign, message)
        .hint(format!("run 'git cherry-pick {picked}' to have it again"))
        .hint(format!("or run 'oxundo restore --exact {number}' to go to the state that it left"))
        .into())
}
