//! Where HEAD, the branches and the stash list are, and whose it is that they went there: what the user did with git between
//! an agent's calls is the user's.
//!
//! ```text
//! the turn begins   main A
//! a call            main A   topic T      the agent's: undo takes the branch off again
//! the user          main A   topic U      on top of the agent's: undo leaves it there
//! a call            main B   topic U      the agent's
//!                   undo leads to main A, topic U
//! ```

use crate::model::checkpoint::{Checkpoint, Head, StashEntry, hex_option};
use gix::ObjectId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pointers {
    /// HEAD.
    pub head: Head,
    /// Every branch and where it points.
    pub branches: BTreeMap<String, ObjectId>,
    /// The branches that stand for another ref, and for which.
    pub symbolic: BTreeMap<String, String>,
    /// The stash list, newest first.
    pub stash: Vec<StashEntry>,
}

/// What history says of commits.
pub trait History {
    /// Whether a commit has another one below it, or is it.
    fn is_above(&self, commit: ObjectId, below: ObjectId) -> bool;

    /// The first on the way down from a commit, by first parents, that has nothing of these others' but what `own` have, nor a
    /// copy of that, as what was amended or picked.
    fn without(&self, commit: ObjectId, others: &[ObjectId], own: &[ObjectId]) -> Option<ObjectId>;

    /// Whether what a commit has, and this base has not, are copies of what another one has so, or it is that.
    fn has_copies(&self, commit: ObjectId, of: ObjectId, base: ObjectId) -> bool;
}

/// A commit or none, as records have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tip(#[serde(with = "hex_option")] pub Option<ObjectId>);

/// What is not where it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
    /// Branches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub branches: BTreeMap<String, Tip>,
    /// Branches that stand for another ref, or no more.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub symbolic: BTreeMap<String, Option<String>>,
    /// The stash list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stash: Option<Vec<StashEntry>>,
}

impl Pointers {
    /// Those of a state.
    pub fn of(state: &Checkpoint) -> Self {
        let Checkpoint { head, branches, symbolic, stash, .. } = state.clone();
        Self { head, branches, symbolic, stash }
    }

    /// Whether they are the same in two states.
    pub fn are_of_both(one: &Checkpoint, other: &Checkpoint) -> bool {
        one.head == other.head
            && one.branches == other.branches
            && one.symbolic == other.symbolic
            && one.stash == other.stash
    }

    /// Gives them to a state.
    pub fn put_into(self, state: &mut Checkpoint) {
        state.head = self.head;
        (state.branches, state.symbolic, state.stash) = (self.branches, self.symbolic, self.stash);
    }

    /// Gives them to a state, but for HEAD and the branch that it is on.
    pub fn put_beside_head(mut self, state: &mut Checkpoint) {
        self.head = state.head.clone();
        if let Some(branch) = &self.head.branch {
            set(&mut self.branches, branch, self.head.commit.as_ref());
            set(&mut self.symbolic, branch, state.symbolic.get(branch));
        }
        self.put_into(state);
    }

    /// Leaves these branches where they are now, with HEAD on the one that it is on. One that is gone now is not left.
    pub fn leave<'n>(&mut self, names: impl IntoIterator<Item = &'n String>, now: &Self) {
        for name in names {
            let Some(tip) = now.branches.get(name) else { continue };
            self.branches.insert(name.clone(), *tip);
            if self.head.branch.as_ref() == Some(name) {
                self.head.commit = Some(*tip);
            }
        }
    }

    /// What is not where these have it.
    pub fn moved_to(&self, now: &Self) -> Moved {
        Moved {
            head: (self.head != now.head).then(|| now.head.clone()),
            branches: changes(&self.branches, &now.branches).map(|(name, tip)| (name, Tip(tip))).collect(),
            symbolic: changes(&self.symbolic, &now.symbolic).collect(),
            stash: (self.stash != now.stash).then(|| now.stash.clone()),
        }
    }

    /// Where they are then.
    #[must_use]
    pub fn with(&self, moved: &Moved) -> Self {
        let mut now = self.clone();
        if let Some(head) = &moved.head {
            now.head.clone_from(head);
        }
        for (name, tip) in &moved.branches {
            set(&mut now.branches, name, tip.0.as_ref());
        }
        for (name, other) in &moved.symbolic {
            set(&mut now.symbolic, name, other.as_ref());
        }
        if let Some(stash) = &moved.stash {
            now.stash.clone_from(stash);
        }
        now
    }

    /// Whether HEAD's branch got another name, or a new branch begins there, with more on it or not: what was done before on the
    /// old one is on it.
    fn on_new_branch(&mut self, from: &Self, to: &Self, history: &impl History) -> bool {
        let (Some(old), Some(new)) = (&from.head.branch, &to.head.branch) else { return false };
        let goes_on = || to.head.commit.zip(from.head.commit).is_some_and(|(now, was)| history.is_above(now, was));
        let is_new = !from.branches.contains_key(new) && goes_on();
        if !is_new || self.head.branch.as_ref() != Some(old) || self.head == from.head {
            return false;
        }
        set(&mut self.branches, new, self.head.commit.as_ref());
        if !to.branches.contains_key(old) {
            self.branches.remove(old);
        }
        self.head.branch = Some(new.clone());
        true
    }

    /// HEAD's branch got another name while somebody else had led HEAD away from it.
    fn follow_new_name(&mut self, from: &Self, to: &Self, history: &impl History) {
        let Some(old) = self.head.branch.as_ref().filter(|old| from.head.branch.as_ref() != Some(*old)) else { return };
        let Some(was) = from.branches.get(old).filter(|_| !to.branches.contains_key(old)) else { return };
        let is_new = |(name, tip): &(&String, &ObjectId)| {
            !from.branches.contains_key(*name) && (*tip == was || history.is_above(**tip, *was))
        };
        let mut new = to.branches.iter().filter(is_new);
        if let (Some((name, _)), None) = (new.next(), new.next()) {
            self.head.branch = Some(name.clone());
        }
    }

    /// The ends of what is on branches, and on HEAD.
    pub fn tips(&self) -> Vec<ObjectId> {
        self.branches.values().copied().chain(self.head.commit).collect()
    }

    /// The ends of what somebody else has committed on branches, or on a detached HEAD, as where a rebase stands still.
    fn tips_of_others(&self, from: &Self) -> Vec<ObjectId> {
        let moved = from.branches.iter().filter(|(name, tip)| self.branches.get(*name) != Some(*tip));
        let detached = from.head.commit.filter(|_| from.head.branch.is_none());
        moved.map(|(_, tip)| *tip).chain(detached).collect()
    }

    /// Leads the branch that HEAD is on, or comes from, to what is below somebody else's commits there: it goes on to that, or away
    /// with it, and a new one begins there. One that they began is nowhere here, and where none of theirs is found, though they
    /// have committed on it, what they did may be in what was made of it.
    fn lead_without(&mut self, name: &str, (tip, to): (ObjectId, ObjectId), from: &Self, history: &impl History) {
        let was_there = |tip: &ObjectId| history.is_above(*tip, to);
        let may_go = match (self.branches.get(name), from.branches.get(name)) {
            (Some(was), left) => {
                let is_led_away = || left.is_some_and(|left| !history.is_above(tip, *left));
                // Unless what they had by then is on top of the others'.
                let goes_away = || is_led_away() && !history.has_copies(tip, *was, to);
                (to != tip || self.tips().iter().any(was_there)) && (history.is_above(to, *was) || goes_away())
            }
            (None, left) => left.is_none(),
        };
        if !may_go {
            return;
        }
        self.branches.insert(name.to_owned(), to);
        if self.head.branch.as_deref() == Some(name) {
            self.head.commit = Some(to);
        }
    }

    fn follow_head(&mut self, from: &Head, to: &Head) {
        let tip = to.branch.as_ref().and_then(|branch| self.branches.get(branch)).copied();
        let leads = match &to.branch {
            // To the branch as it is without what somebody else made of it, if it is there then.
            Some(branch) if from.branch.as_ref() != Some(branch) => tip.is_some() || to.commit.is_none(),
            Some(_) => self.head == *from && tip == to.commit,
            None => self.head == *from,
        };
        if leads {
            let commit = if to.branch.is_some() { tip } else { to.commit };
            self.head = Head { commit, ..to.clone() };
        }
    }

    /// Follows somebody who led them from one place to another. Of the branch that HEAD is on, that is only where these are there
    /// too: what stands on somebody else's commits cannot be had without them, nor can what was merged of these into the branch that
    /// HEAD is on then. HEAD goes to another branch as that is here.
    pub fn follow(&mut self, from: &Self, to: &Self, history: &impl History) {
        let (on, now_on) = (from.head.branch.as_ref(), to.head.branch.as_ref());
        let renamed = self.on_new_branch(from, to, history);
        self.follow_new_name(from, to, history);
        let own_on = self.head.branch.clone();
        let is_on = |name: &String| on == Some(name) || now_on == Some(name) || own_on.as_ref() == Some(name);
        let moved: Vec<_> = changes(&from.branches, &to.branches).collect();
        // History is asked only where HEAD's branch has moved: most often nothing has.
        let is_asked = !renamed && moved.iter().any(|(name, _)| is_on(name));
        let of_others = if is_asked { self.tips_of_others(from) } else { Vec::new() };
        let own = if of_others.is_empty() { Vec::new() } else { self.tips() };
        let mut gone = Vec::new();
        for (name, tip) in moved {
            let to = tip.filter(|_| !of_others.is_empty() && is_on(&name));
            let to = to.and_then(|tip| Some((tip, history.without(tip, &of_others, &own)?)));
            let is_led = on == Some(&name) && self.branches.get(&name) != from.branches.get(&name);
            if is_on(&name) && (renamed || is_led || to.is_some_and(|(tip, to)| tip != to)) {
                if let Some(to) = to {
                    self.lead_without(&name, to, from, history);
                }
                continue;
            }
            match tip {
                Some(tip) => {
                    // Somebody else has led HEAD away from it, and it goes back there.
                    if self.head.branch.as_ref() == Some(&name) && on != Some(&name) {
                        self.head.commit = Some(tip);
                    }
                    self.branches.insert(name, tip);
                }
                None => gone.push(name),
            }
        }
        for (name, other) in changes(&from.symbolic, &to.symbolic) {
            set(&mut self.symbolic, &name, other.as_ref());
        }
        if !renamed {
            self.follow_head(&from.head, &to.head);
        }
        // It could go since the turn had left it, and HEAD goes back there.
        gone.retain(|name| self.head.branch.as_ref() != Some(name));
        self.branches.retain(|name, _| !gone.contains(name));
        if self.stash == from.stash {
            self.stash.clone_from(&to.stash);
            return;
        }
        self.stash.retain(|entry| to.stash.contains(entry) || !from.stash.contains(entry));
        for (at, entry) in to.stash.iter().enumerate().rev() {
            if from.stash.contains(entry) || self.stash.contains(entry) {
                continue;
            }
            let older = to.stash[at + 1..].iter().find_map(|older| self.stash.iter().position(|kept| kept == older));
            self.stash.insert(older.unwrap_or_default(), entry.clone());
        }
    }
}

/// What differs between two maps, with the second one's values.
fn changes<'a, V: Clone + PartialEq>(
    from: &'a BTreeMap<String, V>,
    to: &'a BTreeMap<String, V>,
) -> impl Iterator<Item = (String, Option<V>)> + 'a {
    let gone = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), None));
    let new = to.iter().filter(|(name, value)| from.get(*name) != Some(value));
    gone.chain(new.map(|(name, value)| (name.clone(), Some(value.clone()))))
}

fn set<V: Clone>(map: &mut BTreeMap<String, V>, name: &str, value: Option<&V>) {
    match value {
        Some(value) => drop(map.insert(name.to_owned(), value.clone())),
        None => drop(map.remove(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[digit; 20])
    }

    fn stashed(digit: u8) -> StashEntry {
        let text = String::new;
        StashEntry { id: id(digit), name: text(), email: text(), date: text(), message: text() }
    }

    /// HEAD on the first of these branches; a stash entry for each of these digits, newest first.
    fn at(branches: &[(&str, u8)], stash: &[u8]) -> Pointers {
        let (on, tip) = branches[0];
        Pointers {
            head: Head { branch: Some(on.to_owned()), commit: Some(id(tip)), through: None },
            branches: branches.iter().map(|(name, tip)| ((*name).to_owned(), id(*tip))).collect(),
            symbolic: BTreeMap::new(),
            stash: stash.iter().map(|digit| stashed(*digit)).collect(),
        }
    }

    /// One line of commits, by their digits.
    struct Line;

    impl History for Line {
        fn is_above(&self, commit: ObjectId, below: ObjectId) -> bool {
            commit >= below
        }

        fn without(&self, commit: ObjectId, others: &[ObjectId], own: &[ObjectId]) -> Option<ObjectId> {
            let own = own.iter().max()?;
            Some(if others.iter().any(|other| other > own) { commit.min(*own) } else { commit })
        }

        fn has_copies(&self, commit: ObjectId, of: ObjectId, base: ObjectId) -> bool {
            commit.min(of) > base
        }
    }

    /// Nobody may ask it.
    struct Unasked;

    impl History for Unasked {
        fn is_above(&self, _: ObjectId, _: ObjectId) -> bool {
            unreachable!("a turn has hundreds of gaps, and a repository thousands of branches")
        }

        fn without(&self, commit: ObjectId, _: &[ObjectId], _: &[ObjectId]) -> Option<ObjectId> {
            self.is_above(commit, commit).then_some(commit)
        }

        fn has_copies(&self, commit: ObjectId, of: ObjectId, _: ObjectId) -> bool {
            self.is_above(commit, of)
        }
    }

    #[test]
    fn what_moved_is_told_and_leads_there() {
        let start = at(&[("main", 1), ("old", 2)], &[1]);
        let mut now = at(&[("topic", 3), ("main", 1)], &[2, 1]);
        now.symbolic.insert("link".to_owned(), "main".to_owned());
        let moved = start.moved_to(&now);
        assert_eq!(start.with(&moved), now);
        assert_eq!(now.with(&now.moved_to(&start)), start);
        assert_eq!(start.moved_to(&start), Moved::default());
        let read: Moved = serde_json::from_str(&serde_json::to_string(&moved).expect("text")).expect("read");
        assert_eq!(read, moved);
    }

    #[test]
    fn what_others_did_to_the_same_stays_out_of_it() {
        // Each line: where the turn began, what others made of it, and where the user led that from there; then what is the
        // user's.
        for (start, from, to, users, what) in [
            (at(&[("a", 1)], &[]), at(&[("a", 1)], &[]), at(&[("a", 2)], &[]), at(&[("a", 2)], &[]), "a commit"),
            (
                at(&[("a", 1), ("b", 2)], &[]),
                at(&[("b", 2), ("a", 1)], &[]),
                at(&[("b", 2)], &[]),
                at(&[("a", 1), ("b", 2)], &[]),
                "the branch gone that HEAD comes back to",
            ),
            (
                at(&[("a", 1)], &[1]),
                at(&[("a", 1)], &[1]),
                at(&[("a", 1)], &[1, 1]),
                at(&[("a", 1)], &[1, 1]),
                "two stash entries that are the same commit",
            ),
            (
                at(&[("a", 1)], &[]),
                at(&[("a", 2)], &[]),
                at(&[("a", 3)], &[]),
                at(&[("a", 1)], &[]),
                "one on top of the agent's",
            ),
            (
                at(&[("a", 1)], &[]),
                at(&[("a", 2)], &[]),
                at(&[("b", 2), ("a", 2)], &[]),
                at(&[("b", 1), ("a", 1)], &[]),
                "a new branch there",
            ),
            (
                at(&[("a", 1)], &[]),
                at(&[("a", 2)], &[]),
                at(&[("b", 2)], &[]),
                at(&[("b", 1)], &[]),
                "another name for the branch",
            ),
            (
                at(&[("a", 1)], &[]),
                at(&[("a", 1)], &[]),
                at(&[("b", 1)], &[]),
                at(&[("b", 1)], &[]),
                "and where nobody had committed on it",
            ),
            (
                at(&[("a", 1)], &[]),
                at(&[("a", 1)], &[]),
                at(&[("b", 2)], &[]),
                at(&[("b", 2)], &[]),
                "with a commit on top",
            ),
            (
                at(&[("a", 1)], &[]),
                at(&[("a", 2)], &[]),
                at(&[("b", 3), ("a", 2)], &[]),
                at(&[("b", 1), ("a", 1)], &[]),
                "a new branch there, with a commit on top of the agent's",
            ),
            (
                at(&[("a", 1), ("b", 5)], &[]),
                at(&[("a", 2), ("b", 5)], &[]),
                at(&[("b", 6), ("a", 2)], &[]),
                at(&[("b", 6), ("a", 1)], &[]),
                "switching away from what the agent moved, and a commit there",
            ),
            (
                at(&[("a", 1), ("b", 5)], &[]),
                at(&[("a", 1), ("b", 6)], &[]),
                at(&[("b", 6), ("a", 1)], &[]),
                at(&[("b", 5), ("a", 1)], &[]),
                "switching to what the agent moved",
            ),
            (
                at(&[("b", 5), ("a", 1)], &[]),
                at(&[("b", 5), ("a", 2)], &[]),
                at(&[("a", 2), ("b", 5)], &[]),
                at(&[("a", 1), ("b", 5)], &[]),
                "and back to the one on which it has committed",
            ),
            (
                at(&[("a", 1)], &[2, 1]),
                at(&[("a", 1)], &[3, 2]),
                at(&[("a", 1)], &[4, 3]),
                at(&[("a", 1)], &[4, 1]),
                "the stash list: it has 1 dropped and 3 made, and the user 2 dropped and 4 made",
            ),
        ] {
            let mut pointers = start;
            pointers.follow(&from, &to, &Line);
            assert_eq!(pointers, users, "{what}");
        }
    }

    #[test]
    fn the_branch_that_somebody_else_has_left_keeps_the_name_that_it_is_given_and_gets_nothing_of_theirs() {
        for (start, from, to, users) in [
            // With a commit on it.
            (&[("a", 2)][..], &[("b", 1), ("a", 2)][..], &[("b", 1), ("c", 3)][..], &[("c", 3)][..]),
            // One of theirs.
            (&[("a", 1)], &[("b", 3), ("a", 1)], &[("b", 3), ("a", 2)], &[("a", 1)]),
            // There may be two of it.
            (&[("a", 2)], &[("b", 1), ("a", 2)], &[("b", 1), ("c", 2), ("d", 2)], &[("a", 2), ("c", 2), ("d", 2)]),
        ] {
            let mut pointers = at(start, &[]);
            pointers.follow(&at(from, &[]), &at(to, &[]), &Line);
            assert_eq!(pointers, at(users, &[]));
        }
    }

    #[test]
    fn history_is_asked_only_where_the_branch_that_head_is_on_has_moved() {
        let mut pointers = at(&[("a", 1), ("b", 1)], &[]);
        let (agents, moved) = (at(&[("a", 2), ("b", 1)], &[]), at(&[("a", 2), ("b", 3)], &[]));
        for (from, to) in [(&agents, &agents), (&agents, &moved)] {
            pointers.follow(from, to, &Unasked);
        }
        assert_eq!(pointers, at(&[("a", 1), ("b", 3)], &[]));
    }

    #[test]
    fn what_the_user_merges_into_heads_branch_is_there_without_what_the_agent_committed() {
        let led = |mut start: Pointers, from, to| {
            start.follow(&from, &to, &Line);
            start
        };
        let start = || at(&[("b", 1), ("a", 1)], &[]);
        let (agents, merged) = (at(&[("b", 3), ("a", 1)], &[]), at(&[("a", 3), ("b", 3)], &[]));
        assert_eq!(led(start(), agents, merged.clone()), at(&[("a", 1), ("b", 1)], &[]));
        let on_top = at(&[("b", 2), ("a", 1)], &[]);
        let agents = at(&[("b", 3), ("a", 1)], &[]);
        assert_eq!(led(on_top, agents, merged.clone()), at(&[("a", 2), ("b", 2)], &[]), "what is the user's below it");
        let (beside, agents) = (at(&[("a", 1), ("b", 2)], &[]), at(&[("a", 1), ("b", 3)], &[]));
        assert_eq!(led(beside, agents, merged.clone()), at(&[("a", 2), ("b", 2)], &[]), "where HEAD was");
        let users = at(&[("b", 3), ("a", 1)], &[]);
        assert_eq!(led(users.clone(), users, merged.clone()), merged, "what is their own");
    }
}
