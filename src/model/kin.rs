//! Whose the commits of a history are that was made anew. Each commit is made of one original at most, the one with which it has
//! the most in common, and each original has one commit.
//!
//! ```text
//!   originals   a   b   c          a, b and c were on one line; b' has the changes of b, and the author and the
//!                \ / \   \         message of both a and b: it is b's, and a was dropped
//!   commits       b'  ──  c'
//! ```
//!
//! What is made of none by itself may still be in some, as where several became one commit, or others: [`Lines`] tell.

use std::collections::{BTreeMap, BTreeSet};

/// An original of which a commit may be made, both by their numbers, the newest first; and what they have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The original.
    pub original: usize,
    /// The commit.
    pub commit: usize,
    /// Whether there is more to it than that both stand upon the same commit.
    pub is_likely: bool,
    /// Whether they have one message.
    pub has_message: bool,
    /// Whether they were written by the same author at the same time.
    pub has_author: bool,
}

/// How much of what an original changes a commit changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    /// A part of it at most.
    Part,
    /// All of it, and more.
    All,
    /// The same.
    Same,
}

/// Which original each commit is made of: by original, the commit. What the changes are is looked at only where there is a
/// choice.
pub fn settle(claims: &[Claim], share: impl Fn(usize, usize) -> Share) -> BTreeMap<usize, usize> {
    let count = |of: fn(&Claim) -> usize| {
        let mut counts = BTreeMap::<usize, usize>::new();
        for claim in claims {
            *counts.entry(of(claim)).or_default() += 1;
        }
        counts
    };
    let (of_original, of_commit) = (count(|claim| claim.original), count(|claim| claim.commit));
    let is_contested = |claim: &Claim| of_original[&claim.original] > 1 || of_commit[&claim.commit] > 1;
    let rank = |claim: &Claim| {
        let share = if is_contested(claim) { share(claim.original, claim.commit) } else { Share::Part };
        (share, claim.is_likely, claim.has_message, claim.has_author)
    };
    let mut ranked: Vec<_> = claims.iter().map(|claim| (rank(claim), claim)).collect();
    // Of several that are as likely, the order is kept.
    ranked.sort_by_key(|(rank, claim)| (std::cmp::Reverse(*rank), claim.original, claim.commit));
    let (mut settled, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for (_, claim) in ranked {
        if !settled.contains_key(&claim.original) && taken.insert(claim.commit) {
            settled.insert(claim.original, claim.commit);
        }
    }
    settled
}

/// How often each line was added to a file and removed from it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    added: BTreeMap<Vec<u8>, usize>,
    removed: BTreeMap<Vec<u8>, usize>,
}

impl Lines {
    /// One more line.
    pub fn add(&mut self, line: &[u8]) {
        *self.added.entry(line.to_vec()).or_default() += 1;
    }

    /// One line less.
    pub fn remove(&mut self, line: &[u8]) {
        *self.removed.entry(line.to_vec()).or_default() += 1;
    }

    /// And what another change did.
    pub fn and(&mut self, other: &Self) {
        for (all, more) in [(&mut self.added, &other.added), (&mut self.removed, &other.removed)] {
            for (line, count) in more {
                *all.entry(line.clone()).or_default() += count;
            }
        }
    }

    /// Whether all of another change is in this one.
    pub fn has(&self, other: &Self) -> bool {
        let within = |all: &BTreeMap<Vec<u8>, usize>, part: &BTreeMap<Vec<u8>, usize>| {
            part.iter().all(|(line, count)| all.get(line).is_some_and(|there| there >= count))
        };
        within(&self.added, &other.added) && within(&self.removed, &other.removed)
    }

    /// Whether a line was added in both, or removed in both.
    pub fn shares(&self, other: &Self) -> bool {
        let any =
            |one: &BTreeMap<Vec<u8>, usize>, other: &BTreeMap<_, _>| one.keys().any(|line| other.contains_key(line));
        any(&self.added, &other.added) || any(&self.removed, &other.removed)
    }

    /// Whether no line was added or removed.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn claim(original: usize, commit: usize) -> Claim {
        Claim { original, commit, is_likely: true, has_message: true, has_author: true }
    }

    #[test]
    fn of_several_that_may_be_the_one_that_changes_the_same_is() {
        let by_changes = |original, commit| if (original, commit) == (1, 0) { Share::All } else { Share::Part };
        assert_eq!(settle(&[claim(0, 0), claim(1, 0)], by_changes), [(1, 0)].into(), "and the other one has none");
        assert_eq!(settle(&[claim(1, 0), claim(1, 1), claim(0, 1)], by_changes), [(0, 1), (1, 0)].into());
        let only_beside = Claim { is_likely: false, ..claim(0, 0) };
        assert_eq!(settle(&[only_beside, claim(1, 0)], |_, _| Share::Part), [(1, 0)].into());
        let reworded = Claim { has_message: false, ..claim(0, 0) };
        assert_eq!(settle(&[reworded, claim(1, 0)], |_, _| Share::Part), [(1, 0)].into());
    }

    #[test]
    fn where_there_is_no_choice_no_change_is_looked_at() {
        let settled = settle(&[claim(0, 2), claim(1, 1)], |_, _| unreachable!("it is no use"));
        assert_eq!(settled, [(0, 2), (1, 1)].into());
        let all = [claim(0, 0), claim(0, 1), claim(1, 0), claim(1, 1)];
        assert_eq!(settle(&all, |_, _| Share::Part), [(0, 0), (1, 1)].into(), "they are in their order");
    }

    #[test]
    fn a_change_has_those_that_it_is_made_of() {
        let lines = |added: &[&str], removed: &[&str]| {
            let mut lines = Lines::default();
            for line in added {
                lines.add(line.as_bytes());
            }
            for line in removed {
                lines.remove(line.as_bytes());
            }
            lines
        };
        let mut both = lines(&["a", "b"], &["x"]);
        assert!(both.has(&lines(&["b"], &[])) && both.has(&lines(&[], &["x"])) && !both.has(&lines(&["x"], &[])));
        assert!(both.shares(&lines(&["b", "c"], &["y"])) && both.shares(&lines(&[], &["x"])));
        assert!(!both.shares(&lines(&["x", "c"], &["a"])) && !both.shares(&Lines::default()));
        assert!(!both.has(&lines(&["a", "a"], &[])), "it is there once");
        both.and(&lines(&["a"], &[]));
        assert!(both.has(&lines(&["a", "a"], &[])) && !both.is_empty() && Lines::default().is_empty());
    }

    proptest! {
        #[test]
        fn no_commit_is_made_of_two_and_none_is_left_over_for_one_that_has_none(
            claims in prop::collection::vec((0..5_usize, 0..5_usize, any::<[bool; 3]>()), 0..16), same: u32,
        ) {
            let claims: Vec<Claim> = claims.into_iter().map(|(original, commit, [is_likely, has_message, has_author])| {
                Claim { original, commit, is_likely, has_message, has_author }
            }).collect();
            let is_same = |original: usize, commit: usize| same >> (original * 5 + commit) & 1 == 1;
            let settled = settle(&claims, |original, commit| if is_same(original, commit) { Share::Same } else { Share::Part });
            let taken: BTreeSet<usize> = settled.values().copied().collect();
            prop_assert_eq!(taken.len(), settled.len());
            for claim in &claims {
                prop_assert!(settled.contains_key(&claim.original) || taken.contains(&claim.commit));
            }
            for (original, commit) in &settled {
                prop_assert!(claims.iter().any(|claim| (claim.original, claim.commit) == (*original, *commit)));
            }
        }
    }
}
