//! Turns where the user has changed nothing but messages, of their commits or of those below: undone, they go with the commits that
//! are there now; redone, theirs are made anew upon these. Either way the record names the new ones.

use crate::git::objects::Objects;
use crate::git::objects::alike::Likeness;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::timeline::update::Update;
use crate::model::checkpoint::Checkpoint;
use crate::model::turn::{Note, Turn};
use crate::ops::turn::notes;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::collections::BTreeMap;

/// How many commits of a turn are made anew, at most.
const MOST: usize = 1000;

/// A turn whose commits are made anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remade {
    /// The turn.
    pub turn: u64,
    /// Each commit, and the one in its place; the one that the turn began at, too.
    pub commits: BTreeMap<ObjectId, ObjectId>,
    /// Whether the user made them: other branches are at the old ones then.
    pub by_user: bool,
}

impl Remade {
    /// Makes the commits of a turn anew, where HEAD is at a commit that differs from the one that it began at in nothing but
    /// messages.
    pub fn of(view: &View<'_>, turn: &Turn, ends: [&Checkpoint; 2], at: Option<ObjectId>) -> Result<Option<Self>> {
        let [before, after] = ends;
        let (Some(from), Some(to), Some(at)) = (before.head.commit, after.head.commit, at) else { return Ok(None) };
        let objects = Objects::new(view.repo);
        if from == at || from == to || !objects.is_reworded(from, at) || !objects.is_ancestor(from, to)? {
            return Ok(None);
        }
        let made = objects.commits_between(&[from], to)?;
        if made.len() > MOST {
            return Ok(None);
        }
        let mut commits = BTreeMap::from([(from, at)]);
        // The oldest first: each one's parents come before it.
        for commit in made.into_iter().rev() {
            let parents = objects.parents(commit)?;
            let new: Vec<ObjectId> = parents.iter().map(|id| *commits.get(id).unwrap_or(id)).collect();
            if new != parents {
                commits.insert(commit, objects.remake(commit, &new)?);
            }
        }
        Ok(Some(Self { turn: turn.turn, commits, by_user: false }))
    }

    /// The commits that the user has made anew of a turn's, where HEAD is at one that differs from the turn's last in nothing but
    /// messages of those below it.
    pub fn by_user(view: &View<'_>, turn: &Turn, ends: [&Checkpoint; 2], at: Option<ObjectId>) -> Result<Option<Self>> {
        let [before, after] = ends;
        let (Some(from), Some(to), Some(at)) = (before.head.commit, after.head.commit, at) else { return Ok(None) };
        let objects = Objects::new(view.repo);
        // Where a turn only gave the branch another name, what the user has worded anew there is so under the old one.
        let may_be = if from == to {
            is_renamed(before, after)
        } else {
            turn.knows(&to) && objects.likeness(to, at) != Likeness::Reworded
        };
        if !may_be || to == at || !objects.is_reworded(to, at) {
            return Ok(None);
        }
        let (mut commits, mut old, mut new) = (BTreeMap::new(), to, at);
        while old != new {
            commits.insert(old, new);
            if old == from {
                break;
            }
            let (below, beside) = (objects.parents(old)?, objects.parents(new)?);
            let ([below], [beside]) = (&below[..], &beside[..]) else { return Ok(None) };
            if commits.len() == MOST {
                return Ok(None);
            }
            (old, new) = (*below, *beside);
        }
        Ok(Some(Self { turn: turn.turn, commits, by_user: true }))
    }

    fn instead_of(&self, commit: ObjectId) -> ObjectId {
        self.commits.get(&commit).copied().unwrap_or(commit)
    }

    /// Puts the new commits in the place of the old ones: where HEAD is, and on the branches that the turn moved.
    pub fn put_into(&self, before: &mut Checkpoint, after: &mut Checkpoint) {
        let moved: Vec<String> = after.branches.keys().filter(|_| !self.by_user).cloned().collect();
        let moved = moved.into_iter().filter(|name| before.branches.get(name) != after.branches.get(name));
        for name in moved.collect::<Vec<_>>() {
            after.branches.entry(name).and_modify(|tip| *tip = self.instead_of(*tip));
        }
        // The branch that HEAD came from, or went to, the turn may have left where it was: it does so still.
        let names = [&before.head.branch, &after.head.branch].into_iter().flatten().cloned();
        let unmoved: Vec<String> = names.filter(|name| before.branches.get(name) == after.branches.get(name)).collect();
        self.put_into_head(before);
        self.put_into_head(after);
        for name in unmoved {
            let [was, is] = [&before, &after].map(|state| state.branches.get(&name).copied());
            // One of the two has the new commit now, if any has.
            let (Some(was), Some(is)) = (was, is) else { continue };
            let tip = if self.commits.contains_key(&was) { is } else { was };
            for state in [&mut *before, &mut *after] {
                state.branches.insert(name.clone(), tip);
            }
        }
    }

    /// As [`Self::put_into`], for a state of which it is not known what the turn moved.
    fn put_into_head(&self, state: &mut Checkpoint) {
        let Some(commit) = state.head.commit else { return };
        let new = self.instead_of(commit);
        state.head.commit = Some(new);
        let tip = state.head.branch.as_ref().and_then(|name| state.branches.get_mut(name));
        if let Some(tip) = tip.filter(|tip| **tip == commit) {
            *tip = new;
        }
    }

    /// Records it, and whether the old commits stay the turn's own; gives the notes on the new ones. The turn and its two ends are
    /// given as they are recorded else.
    pub fn record(
        &self,
        (mut turn, mut before, mut after): (Turn, Checkpoint, Checkpoint),
        timeline: &Stored<'_>,
        update: &mut Update<'_>,
        stay: bool,
    ) -> Result<Vec<Note>> {
        let number = self.turn;
        let was = before.branches.clone();
        self.put_into(&mut before, &mut after);
        let put_into_part = |state: &mut Checkpoint| {
            self.put_into_head(state);
            // What the turn left where it was is there in the middle of it, too.
            for (name, tip) in was.iter().filter(|(name, _)| before.branches.get(*name) == after.branches.get(*name)) {
                let new = before.branches.get(name).copied().unwrap_or(*tip);
                state.branches.entry(name.clone()).and_modify(|now| *now = if now == tip { new } else { *now });
            }
        };
        update.put_checkpoint(number, Side::Before, &before)?;
        update.put_checkpoint(number, Side::After, &after)?;
        if let Some(mut saved) = timeline.saved(number)? {
            put_into_part(&mut saved);
            update.put_saved(number, &saved)?;
        }
        for mut step in timeline.steps(number)? {
            for side in [Side::Before, Side::After] {
                if let Some(mut state) = timeline.step_checkpoint(number, step.step, side)? {
                    put_into_part(&mut state);
                    update.put_step_state(&step, side, &state)?;
                }
            }
            step.head = step.head.map(|commit| self.instead_of(commit));
            update.put_step_record(&step)?;
        }
        turn.dirty_commit = turn.dirty_commit.map(|commit| self.instead_of(commit));
        turn.became(|id| self.instead_of(id), stay);
        if let Some(footing) = &mut turn.footing {
            (footing.from, footing.to) = (before.head.commit, after.head.commit);
        }
        update.put_turn(&turn)?;
        let is_new = |note: &Note| self.commits.values().any(|new| *new == note.commit);
        Ok(notes(timeline.repo, &turn).into_iter().filter(is_new).collect())
    }
}

/// Whether HEAD's branch has another name in the one state than in the other.
fn is_renamed(before: &Checkpoint, after: &Checkpoint) -> bool {
    let (Some(was), Some(is)) = (&before.head.branch, &after.head.branch) else { return false };
    was != is && !after.branches.contains_key(was) && !before.branches.contains_key(is)
}
