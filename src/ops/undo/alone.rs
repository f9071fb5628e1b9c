//! Commits that would be on no branch: what the user has on one stays on one, though a turn has brought it to the branch that
//! moves, or took it off that one.
//!
//! ```text
//!   feat          c0 ── u        the turn brought main to u; the user has deleted feat since: undo of the turn, which
//!   main          c0 ── u        leads main back to c0, would leave u on no branch
//! ```

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::{Checkpoint, short_branch};
use crate::model::plan::Plan;
use crate::model::turn::{CommitKind, Note};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::collections::BTreeSet;

/// How many commits at most are looked at for one with another message.
const NEAR: usize = 64;

/// Refuses a plan that takes commits off a branch, or a detached HEAD, where one of them was on a branch in one of the states that it
/// leads to, or when the turn began that found it; is no turn's own; and would be on none. What is to be on none by right is
/// given, as what is being merged then.
pub fn check_plan(
    view: &View<'_>,
    plan: &Plan,
    goals: &[&Checkpoint],
    known: &[ObjectId],
    by_right: Vec<ObjectId>,
) -> Result<()> {
    let objects = Objects::new(view.repo);
    let mut tips = Refs::new(view.repo).branches()?;
    for branch in &plan.branches {
        match branch.to {
            Some(to) => drop(tips.insert(branch.name.clone(), to)),
            None => drop(tips.remove(&branch.name)),
        }
    }
    let head = plan.head.to.commit;
    let staying: Vec<ObjectId> = tips.into_values().chain(head).chain(by_right).collect();
    let detached = Some(&plan.head).filter(|head| head.from.branch.is_none());
    let moves = plan.branches.iter().map(|branch| (branch.name.as_str(), branch.from, branch.to));
    let alone = Alone { view, known, head, goals, staying: &staying };
    for (name, from, to) in moves.chain(detached.map(|head| ("HEAD", head.from.commit, head.to.commit))) {
        let Some(from) = from else { continue };
        let leaving = match to {
            Some(to) if from == to || objects.is_ancestor(from, to)? => continue,
            Some(to) => objects.commits_between(&[to], from)?,
            None => objects.commits_between(&staying, from)?,
        };
        alone.check(name, &leaving)?;
    }
    Ok(())
}

/// What is known of where a plan leads.
struct Alone<'a, 'v> {
    view: &'a View<'v>,
    /// The commits that go with the turns, whoever made them.
    known: &'a [ObjectId],
    /// The tips of the branches afterwards, and of HEAD.
    staying: &'a [ObjectId],
    /// Where HEAD is afterwards.
    head: Option<ObjectId>,
    /// The states that it leads to: what was on no branch there either, may be on none.
    goals: &'a [&'a Checkpoint],
}

impl Alone<'_, '_> {
    fn check(&self, name: &str, leaving: &[ObjectId]) -> Result<()> {
        if leaving.is_empty() {
            return Ok(());
        }
        let (view, objects) = (self.view, Objects::new(self.view.repo));
        let notes = Refs::new(view.repo).notes_on(leaving)?;
        let (mut others, mut found_by) = (Vec::new(), BTreeSet::new());
        for (id, notes) in leaving.iter().zip(&notes) {
            // Agents in several worktrees may make the very same commit within a second.
            let is_a_turns = notes.iter().any(|note| note.is_of_agents(*id));
            if is_a_turns || self.known.contains(id) || goes_reworded(&objects, self.known, *id) {
                continue;
            }
            others.push(*id);
            let is_here = |note: &&Note| note.commit == *id && note.worktree == view.repo.worktree_id();
            let found = notes.iter().filter(is_here).filter(|note| note.kind == CommitKind::Found);
            found_by.extend(found.map(|note| note.turn));
        }
        if others.is_empty() {
            return Ok(());
        }
        let staying = [self.staying, &Refs::new(view.repo).tips_beside()?].concat();
        let stays = objects.reachable_from(&staying, &others)?;
        others.retain(|id| !stays.contains(id));
        let mut began = Vec::new();
        for turn in found_by {
            if view.timeline.find_turn(turn)?.is_some() {
                began.push(view.timeline.checkpoint(turn, Side::Before)?);
            }
        }
        for then in self.goals.iter().copied().chain(&began) {
            let was_there = objects.reachable_from(&then.tips(), &others)?;
            for id in others.iter().filter(|id| was_there.contains(*id)) {
                if !stays_reworded(&objects, self.head, *id)? {
                    return Err(refusal(&objects, name, *id)?.into());
                }
            }
        }
        Ok(())
    }
}

/// Whether a commit goes with the turns under another message by now, which one of these has.
pub fn goes_reworded(objects: &Objects<'_>, known: &[ObjectId], commit: ObjectId) -> bool {
    known.iter().any(|known| objects.is_reworded(commit, *known))
}

/// Whether a commit stays in the history of where HEAD goes, with another message: nothing else of it is lost.
pub fn stays_reworded(objects: &Objects<'_>, head: Option<ObjectId>, commit: ObjectId) -> Result<bool> {
    let stays = head.map(|head| reworded_below(objects, head, commit)).transpose()?;
    Ok(stays.flatten().is_some())
}

/// The commit that is another one with another message, at or below this one.
pub fn reworded_below(objects: &Objects<'_>, head: ObjectId, commit: ObjectId) -> Result<Option<ObjectId>> {
    Ok(objects.newest_first(head).take(NEAR)?.into_iter().find(|near| objects.is_reworded(commit, *near)))
}

fn refusal(objects: &Objects<'_>, name: &str, id: ObjectId) -> Result<Refusal> {
    let (short, subject, name) = (id.to_hex_with_len(7), objects.commit_subject(id)?, short_branch(name));
    let message = format!("commit {short} ({subject}) would be on no branch: '{name}' has it now");
    Ok(Refusal::new(Code::Foreign, message)
        .hint(format!("run '{}' to keep it on a branch, then the same command again", keeping(id)))
        .commits(vec![id]))
}

fn keeping(id: ObjectId) -> String {
    format!("git branch kept-{} {}", id.to_hex_with_len(7), id.to_hex_with_len(10))
}

/// What one should know where a detached HEAD goes to this commit: as git says it, that the user's commits there are on no branch.
pub fn left_behind(view: &View<'_>, goal: ObjectId) -> Result<Option<String>> {
    let (None, Some(at)) = (&view.head.branch, view.head.commit) else { return Ok(None) };
    let (objects, refs) = (Objects::new(view.repo), Refs::new(view.repo));
    let tips: Vec<ObjectId> = refs.branches()?.into_values().chain([goal]).chain(refs.tips_beside()?).collect();
    let left = objects.commits_between(&tips, at)?;
    let notes = refs.notes_on(&left)?;
    let mut users = left.iter().zip(&notes).filter(|(id, notes)| !notes.iter().any(|note| note.is_of_agents(**id)));
    let Some((id, _)) = users.next() else { return Ok(None) };
    let (short, subject, line) = (id.to_hex_with_len(7), objects.commit_subject(*id)?, keeping(*id));
    Ok(Some(format!("commit {short} ({subject}) is on no branch: '{line}' keeps it")))
}
