//! Turns that the user dropped out of the middle of a line, in an interactive rebase or by picking only later ones. The line
//! leads on below them, and they are not on it any more: what they did is not there.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::objects::commit::Likeness;
use crate::git::objects::history::Newest;
use crate::model::place::Node;
use crate::ops::switching::stash_of;
use crate::ops::turn::commit::uncommitted;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// How many commits are looked at for a copy of a turn's last one.
const NEAR: usize = 256;

/// How far down HEAD's history turns are looked for, in commits.
const FAR: usize = 1024;

/// HEAD's history, as far as somebody has asked.
struct History<'o, 'r> {
    seen: HashSet<ObjectId>,
    rest: Newest<'o, 'r>,
}

impl History<'_, '_> {
    /// Whether a commit is in it, or too far down to tell.
    fn may_have(&mut self, commit: ObjectId) -> Result<bool> {
        while !self.seen.contains(&commit) {
            if self.seen.len() >= FAR {
                return Ok(true);
            }
            if !self.rest.may_have(commit) {
                return Ok(false);
            }
            self.seen.extend(self.rest.take(16)?);
        }
        Ok(true)
    }
}

/// Whether HEAD stands on the very commit of the last turn done: nothing below it was dropped since.
pub fn stands_on_its_own(view: &View<'_>, top: u64) -> Result<bool> {
    let (objects, to) = (Objects::new(view.repo), view.timeline.node(top)?.to);
    let (Some(head), Some(to)) = (view.head.commit, to) else { return Ok(true) };
    History { seen: HashSet::new(), rest: objects.newest_first(head) }.may_have(to)
}

/// What became of the turns of HEAD's line.
#[derive(Debug, Default)]
pub struct Fates {
    /// Those that were dropped.
    pub dropped: BTreeSet<u64>,
    /// The commits that stand for others' last ones: the user has made these anew, or made one of several.
    pub copies: BTreeMap<u64, ObjectId>,
}

/// The turns of HEAD's line that were dropped, down to one.
pub fn dropped(view: &View<'_>, lowest: u64) -> Result<BTreeSet<u64>> {
    Ok(fates(view, lowest)?.dropped)
}

/// What became of the turns of HEAD's line, down to one.
pub fn fates(view: &View<'_>, lowest: u64) -> Result<Fates> {
    let objects = Objects::new(view.repo);
    let (mut fates, mut copies, mut is_first) = (Fates::default(), BTreeSet::new(), true);
    let Some(head) = view.head.commit else { return Ok(fates) };
    let mut history = History { seen: HashSet::new(), rest: objects.newest_first(head) };
    // Where the history of what stands above goes on, and a commit that may have been made of several, with what is below it.
    let (mut above, mut whole, mut at) = (Some(head), None, view.top()?);
    while let (Some(upper), Some(number)) = (above, at.filter(|number| *number >= lowest)) {
        let node = view.timeline.node(number)?;
        at = node.previous;
        let Some(to) = node.to.filter(|_| node.moved()) else { continue };
        let is_within = |below: ObjectId| below != to && objects.is_ancestor(below, to).unwrap_or(false);
        if to == upper || history.may_have(to)? || objects.is_ancestor(to, upper)? {
            above = node.from;
        } else if let Some(copy) = copy_in(&objects, &node, upper, |commit| !copies.contains(&commit))? {
            above = objects.parents(copy)?.first().copied();
            whole = above.filter(|_| objects.is_squash(to, copy)).map(|below| (copy, below));
            copies.insert(copy);
            fates.copies.insert(number, copy);
        } else if let Some(copy) = whole.filter(|(_, below)| is_within(*below)).map(|(copy, _)| copy) {
            // It is in the commit that was made of it and of those above it.
            fates.copies.insert(number, copy);
        } else if is_first {
            // What HEAD stands on is not known by its commits.
            break;
        } else {
            // On top of what it was below of, for example. One that was amended is where it was.
            let is_other = |commit| !copies.contains(&commit) && objects.likeness(to, commit) != Likeness::Beside;
            match copy_in(&objects, &node, head, is_other)? {
                Some(copy) => {
                    copies.insert(copy);
                    fates.copies.insert(number, copy);
                }
                None => drop(fates.dropped.insert(number)),
            }
        }
        is_first = false;
        let turn = view.timeline.require_turn(number)?;
        if turn.began_on != turn.branch {
            break;
        }
    }
    Ok(fates)
}

/// The commit that a turn's last one became, when it was amended, rebased, picked or made one with others; those that the turn
/// began upon are older.
fn copy_in(
    objects: &Objects<'_>,
    node: &Node,
    from: ObjectId,
    may_be: impl Fn(ObjectId) -> bool,
) -> Result<Option<ObjectId>> {
    let Some((original, features)) = node.to.and_then(|to| Some((to, objects.features(to)?))) else { return Ok(None) };
    let (mut history, mut likely) = (objects.newest_first(from), None);
    for _ in 0..NEAR {
        let Some(commit) = history.take(1)?.pop() else { break };
        if Some(commit) == node.from || Some(commit) == node.dirty {
            break;
        }
        let is_copy = || objects.likeness(original, commit) != Likeness::None || objects.is_squash(original, commit);
        if may_be(commit) && is_copy() {
            // Of two that have each other's content the message tells which is which.
            if objects.features(commit).is_some_and(|copy| copy.has_message_of(&features)) {
                return Ok(Some(commit));
            }
            likely = likely.or(Some(commit));
        }
    }
    Ok(likely)
}

/// Refuses to walk to or from a turn that was dropped.
pub fn check(view: &View<'_>, number: u64) -> Result<()> {
    if number == 0 || !dropped(view, number)?.contains(&number) {
        return Ok(());
    }
    let node = view.timeline.node(number)?;
    let short = |id: ObjectId| id.to_hex_with_len(10).to_string();
    let Some(to) = node.to else { return Ok(()) };
    let message = format!("turn {number} is not done any more: commit {} is not in HEAD's history", short(to));
    let missing = missing(view, &node)?;
    let mut written = Vec::new();
    for commit in &missing {
        written.extend(Objects::new(view.repo).changed_in(*commit)?);
    }
    let picked: Vec<String> = missing.into_iter().map(short).collect();
    let mut line = format!("git cherry-pick {}", picked.join(" "));
    // git picks nothing while anything is staged, whatever that is.
    written.extend(uncommitted(view, &view.present()?)?);
    if let Some(stash) = stash_of(view, &written)? {
        // A file that both have would stop the pop.
        let pop = if stash.ends_with("-u") { "" } else { " && git stash pop" };
        line = format!("{stash} && {line}{pop}");
    }
    let pick = format!("run '{line}' to have it again");
    Err(Refusal::new(Code::Foreign, message)
        .hints(Some(pick).filter(|_| !picked.is_empty()))
        .hint(format!("run 'oxundo restore {number}' to bring back the files that it left"))
        .into())
}

/// The commits of a turn that HEAD's history has not, be it in another form, the oldest first.
fn missing(view: &View<'_>, node: &Node) -> Result<Vec<ObjectId>> {
    let (Some(to), Some(head)) = (node.to, view.head.commit) else { return Ok(Vec::new()) };
    let objects = Objects::new(view.repo);
    let begun: Vec<ObjectId> = node.dirty.or(node.from).into_iter().collect();
    let mut missing = Vec::new();
    for commit in objects.commits_between(&begun, to)?.into_iter().rev() {
        let alone = Node { to: Some(commit), ..node.clone() };
        if !objects.is_ancestor(commit, head)? && copy_in(&objects, &alone, head, |_| true)?.is_none() {
            missing.push(commit);
        }
    }
    Ok(missing)
}
