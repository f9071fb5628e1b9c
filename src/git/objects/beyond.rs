//! What some commits reach and others do not, told in this process: of a few thousand commits whose clocks are in order,
//! which is the usual case. Else git is asked (`history.rs`): a walk by time knows of no commit above an older one.

use crate::git::objects::Objects;
use gix::ObjectId;
use gix::shallow::Commits;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// How many commits to look at: git has ways to look at more of them faster.
const MOST: usize = 4096;

/// How many more commits to look at when nothing is left to be told, for one whose clock is wrong. git has this number.
const SLOP: usize = 5;

/// What is known of a commit.
struct Met {
    time: i64,
    /// Whether one of the hidden commits reaches it.
    is_hidden: bool,
    /// None while it waits in the queue.
    parents: Option<Vec<ObjectId>>,
}

/// History from some commits down, by time.
struct Walk<'o, 'r> {
    objects: &'o Objects<'r>,
    edge: Option<Commits>,
    met: HashMap<ObjectId, Met>,
    /// Of one second, the one that was met first comes first, as git has it.
    next: BinaryHeap<(i64, Reverse<usize>, ObjectId)>,
    /// How many in the queue are not hidden.
    open: usize,
}

impl Objects<'_> {
    /// All that is reached from some commits and not from the hidden ones, newest first; `None` where only git can tell.
    pub(super) fn beyond(&self, from: &[ObjectId], hidden: &[ObjectId]) -> Option<Vec<ObjectId>> {
        let mut walk =
            Walk { objects: self, edge: self.edge().ok()?, met: HashMap::new(), next: BinaryHeap::new(), open: 0 };
        for id in from {
            walk.meet(*id, false, i64::MAX)?;
        }
        for id in hidden {
            walk.meet(*id, true, i64::MAX)?;
        }
        let (mut told, mut slop) = (Vec::new(), SLOP);
        let mut oldest = i64::MAX;
        while let Some((time, _, id)) = walk.next.pop() {
            if walk.met.len() > MOST {
                return None;
            }
            if !walk.pass(id, time)? {
                (oldest, slop) = (time, SLOP);
                told.push(id);
            }
            // What is of the oldest one's second may lead to it.
            if walk.open == 0 && (told.is_empty() || walk.next.peek().is_none_or(|(next, ..)| *next < oldest)) {
                slop -= 1;
                if slop == 0 {
                    break;
                }
            }
        }
        told.retain(|id| !walk.met[id].is_hidden);
        Some(told)
    }
}

impl Walk<'_, '_> {
    /// Takes a commit out of the queue and goes on to its parents. Tells whether it is hidden.
    fn pass(&mut self, id: ObjectId, time: i64) -> Option<bool> {
        let parents = self.objects.parents_above(self.edge.as_ref(), id).ok()?;
        let is_hidden = self.met[&id].is_hidden;
        self.open -= usize::from(!is_hidden);
        for parent in &parents {
            self.meet(*parent, is_hidden, time)?;
        }
        self.met.get_mut(&id)?.parents = Some(parents);
        Some(is_hidden)
    }

    /// Comes to a commit from one that was made at this time. Not where it is missing, or newer than that.
    fn meet(&mut self, id: ObjectId, is_hidden: bool, from: i64) -> Option<()> {
        if let Some(met) = self.met.get(&id) {
            let is_in_order = met.time <= from;
            if is_hidden {
                self.hide(id);
            }
            return is_in_order.then_some(());
        }
        let time = self.objects.time(id)?;
        self.next.push((time, Reverse(self.met.len()), id));
        self.open += usize::from(!is_hidden);
        self.met.insert(id, Met { time, is_hidden, parents: None });
        (time <= from).then_some(())
    }

    /// A hidden commit reaches this one, and so all that was already passed below it.
    fn hide(&mut self, id: ObjectId) {
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            let Some(met) = self.met.get_mut(&id).filter(|met| !met.is_hidden) else { continue };
            met.is_hidden = true;
            match &met.parents {
                Some(parents) => left.extend(parents),
                None => self.open -= 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use gix::prelude::Write as _;
    use proptest::prelude::*;

    /// Makes a commit of an empty tree, with these parents, at this second.
    fn commit(f: &Fixture, parents: &[ObjectId], time: i64) -> ObjectId {
        let mut text = format!("tree {}\n", ObjectId::empty_tree(gix::hash::Kind::Sha1));
        for parent in parents {
            text += &format!("parent {parent}\n");
        }
        text += &format!("author a <a> {time} +0000\ncommitter a <a> {time} +0000\n\n{parents:?}\n");
        f.repo.gix.write_buf(gix::objs::Kind::Commit, text.as_bytes()).expect("write a commit")
    }

    fn by_git(f: &Fixture, from: &[ObjectId], hidden: &[ObjectId]) -> Vec<String> {
        let from = from.iter().map(ToString::to_string);
        let args: Vec<String> = from.chain(hidden.iter().map(|id| format!("^{id}"))).collect();
        f.lines(&[&["rev-list"][..], &args.iter().map(String::as_str).collect::<Vec<_>>()].concat())
    }

    #[test]
    fn what_is_told_is_what_git_tells_and_of_clocks_in_order_it_is_always_told() {
        let parents = |at: usize| prop::collection::btree_set(0..at.max(1), 0..=at.min(3));
        let one = move |at| (parents(at), 0..3_i64, 0..8_u8);
        let dag = (2..12_usize).prop_flat_map(move |size| (0..size).map(one).collect::<Vec<_>>());
        let asked = prop::collection::vec(
            (prop::collection::vec(0..12_usize, 1..3), prop::collection::vec(0..12_usize, 0..3)),
            4,
        );
        let config = ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() };
        proptest!(config, |(dag in dag, asked in asked, clocks_are_right: bool)| {
            let f = Fixture::new();
            let (mut commits, mut times) = (Vec::new(), Vec::new());
            for (parents, later, wrong) in &dag {
                let of: Vec<ObjectId> = if commits.is_empty() { Vec::new() } else { parents.iter().map(|at| commits[*at]).collect() };
                let newest = parents.iter().filter_map(|at| times.get(*at)).max().copied().unwrap_or(1_000_000_000);
                let time = if *wrong == 0 && !clocks_are_right { newest - 2 } else { newest + later };
                commits.push(commit(&f, &of, time));
                times.push(time);
            }
            for (from, hidden) in &asked {
                let chosen = |at: &Vec<usize>| at.iter().map(|at| commits[at % commits.len()]).collect::<Vec<_>>();
                let (from, hidden) = (chosen(from), chosen(hidden));
                let told = Objects::new(&f.repo).beyond(&from, &hidden);
                prop_assert!(told.is_some() || !clocks_are_right);
                if let Some(told) = told {
                    let told: Vec<String> = told.iter().map(ToString::to_string).collect();
                    prop_assert_eq!(told, by_git(&f, &from, &hidden));
                }
            }
        });
    }

    #[test]
    fn an_end_that_is_an_hour_older_and_below_many_others_still_hides() {
        let f = Fixture::new();
        let base = commit(&f, &[], 1_000_000_000);
        let old = commit(&f, &[base], 1_000_000_001);
        let mut tip = old;
        for second in 0..100 {
            tip = commit(&f, &[tip], 1_000_003_600 + second);
        }
        let beside = commit(&f, &[base], 1_000_009_000);
        let objects = Objects::new(&f.repo);
        assert_eq!(objects.beyond(&[old], &[tip]), Some(Vec::new()));
        assert_eq!(objects.beyond(&[beside], &[tip]), Some(vec![beside]));
        assert_eq!(objects.beyond(&[tip], &[beside]).map(|told| told.len()), Some(101));
    }

    #[test]
    fn what_is_missing_is_for_git_to_tell_of() {
        let f = Fixture::new();
        let gone = ObjectId::from_bytes_or_panic(&[7; 20]);
        let above = commit(&f, &[gone], 1_000_000_000);
        assert_eq!(Objects::new(&f.repo).beyond(&[above], &[]), None);
        assert_eq!(Objects::new(&f.repo).beyond(&[above], &[gone]), None);
    }
}
