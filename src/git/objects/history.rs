//! What history says: which commits are between two, and which is another's ancestor. It is what the commits say, down
//! to where a shallow clone ends: whatever replaced objects and grafts show in their place.

use crate::git::objects::Objects;
use crate::git::objects::alike::{Likeness, Seen};
use crate::model::pointers::History;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

/// How many commits to follow one by one before walking history as a whole.
const STRAIGHT: usize = 64;

/// How many commits of one branch are compared with those of another, the newest.
const MOST_ALIKE: usize = 1000;

/// How far, in seconds, one commit's clock may be behind that of another made on top of it.
const SKEW: i64 = 24 * 60 * 60;

/// History from a commit down, the newest first, as far as one asks.
pub struct Newest<'o, 'r> {
    objects: &'o Objects<'r>,
    /// By time; of one second, the one that was met first comes first.
    next: BinaryHeap<(i64, Reverse<usize>, ObjectId)>,
    seen: HashSet<ObjectId>,
}

impl Newest<'_, '_> {
    /// Whether a commit may be among those that are left: it is no newer than the newest of them, but for a clock that is
    /// wrong by a day.
    pub fn may_have(&self, id: ObjectId) -> bool {
        let newest = self.next.peek().map(|(time, ..)| *time);
        self.objects.time(id).is_some_and(|time| newest.is_some_and(|newest| time <= newest.saturating_add(SKEW)))
    }

    /// The next so many of them.
    pub fn take(&mut self, most: usize) -> Result<Vec<ObjectId>> {
        let (mut taken, edge) = (Vec::new(), self.objects.edge()?);
        while taken.len() < most
            && let Some((.., id)) = self.next.pop()
        {
            for parent in self.objects.parents_above(edge.as_ref(), id)? {
                self.add(parent);
            }
            taken.push(id);
        }
        Ok(taken)
    }

    /// What a partial clone or damage has left out ends there.
    fn add(&mut self, id: ObjectId) {
        if let Some(time) = self.objects.time(id).filter(|_| self.seen.insert(id)) {
            self.next.push((time, Reverse(self.seen.len()), id));
        }
    }
}

impl<'r> Objects<'r> {
    /// History from a commit down.
    pub fn newest_first<'o>(&'o self, from: ObjectId) -> Newest<'o, 'r> {
        let mut newest = Newest { objects: self, next: BinaryHeap::new(), seen: HashSet::new() };
        newest.add(from);
        newest
    }
}

impl Objects<'_> {
    /// When a commit was made, in seconds since 1970; none of one that cannot be read.
    pub fn time(&self, id: ObjectId) -> Option<i64> {
        Some(self.repo.find_commit(id).ok()?.time().ok()?.seconds)
    }

    /// The commits that `from` reaches and `hidden` does not, newest first.
    pub fn commits_between(&self, hidden: &[ObjectId], from: ObjectId) -> Result<Vec<ObjectId>> {
        let hidden: Vec<_> = hidden.iter().copied().filter(|id| self.repo.has_object(*id)).collect();
        if hidden.contains(&from) {
            return Ok(Vec::new());
        }
        // The usual case needs no walk of history: a line of commits straight down. With more
        // than one tip, what is above the first may still be below another.
        if let [tip] = hidden[..]
            && let Some(line) = self.straight_line(tip, from)?
        {
            return Ok(line);
        }
        self.walk(&[from], &hidden)
    }

    /// All that is reached from some commits and not from the hidden ones, newest first. By git where it is no usual case: gix
    /// stops to hide commits too early where these are of one second.
    fn walk(&self, from: &[ObjectId], hidden: &[ObjectId]) -> Result<Vec<ObjectId>> {
        if let Some(told) = self.beyond(from, hidden) {
            return Ok(told);
        }
        let shown = from.iter().map(|id| format!("{id}\n"));
        let lines: String = shown.chain(hidden.iter().map(|id| format!("^{id}\n"))).collect();
        // Grafts are another way to look at it: git is told of a file of them that is not there.
        let git = self.repo.git(["rev-list", "--stdin"]).env("GIT_GRAFT_FILE", "/dev/null/none");
        let printed = git.run(lines.as_bytes()).context("walk history")?;
        printed.lines().map(|line| Ok(ObjectId::from_hex(line)?)).collect()
    }

    /// The best one of those that two commits have in common; none where they have no history in common.
    pub fn merge_base(&self, one: ObjectId, other: ObjectId) -> Result<Option<ObjectId>> {
        let args = ["merge-base", &one.to_string(), &other.to_string()];
        let (code, printed) = self.repo.git(args).env("GIT_GRAFT_FILE", "/dev/null/none").ask()?;
        match (code, printed.lines().next()) {
            (0, Some(id)) => Ok(Some(ObjectId::from_hex(id)?)),
            (1, _) => Ok(None),
            _ => anyhow::bail!("cannot find what {one} and {other} have in common"),
        }
    }

    /// All that some commits reach, of which some may be gone, and the hidden ones do not, newest first.
    pub fn reached_only_from(&self, from: &[ObjectId], hidden: &[ObjectId]) -> Result<Vec<ObjectId>> {
        let there = |ids: &[ObjectId]| ids.iter().copied().filter(|id| self.has_commit(*id)).collect::<Vec<_>>();
        let from = there(from);
        if from.is_empty() { Ok(Vec::new()) } else { self.walk(&from, &there(hidden)) }
    }

    fn straight_line(&self, tip: ObjectId, from: ObjectId) -> Result<Option<Vec<ObjectId>>> {
        let mut line = Vec::new();
        let mut at = from;
        while line.len() < STRAIGHT {
            if at == tip {
                return Ok(Some(line));
            }
            let parents = self.parents(at)?;
            let [parent] = parents[..] else { return Ok(None) };
            line.push(at);
            at = parent;
        }
        Ok(None)
    }

    fn only_parent(&self, commit: Option<ObjectId>) -> Option<ObjectId> {
        match self.parents(commit?).ok()?[..] {
            [parent] => Some(parent),
            _ => None,
        }
    }

    /// Whether one commit is another's ancestor, or the same.
    pub fn is_ancestor(&self, ancestor: ObjectId, of: ObjectId) -> Result<bool> {
        if ancestor == of {
            return Ok(true);
        }
        if !self.repo.has_object(ancestor) {
            return Ok(false);
        }
        // Most often one is a few steps below the other: follow the parents of both at once.
        let (mut below, mut above) = (Some(of), Some(ancestor));
        for _ in 0..STRAIGHT {
            (below, above) = (self.only_parent(below), self.only_parent(above));
            if below == Some(ancestor) || above == Some(of) {
                return Ok(below == Some(ancestor));
            }
        }
        Ok(!self.walk(&[ancestor], &[of])?.contains(&ancestor))
    }

    /// Some of the commits that each of these has below it: a few steps straight down from the one they all descend from,
    /// where there is such a one among them, and no further than to the last of the tips.
    fn straight_below(&self, commits: &HashSet<ObjectId>, tips: &[ObjectId]) -> Result<HashSet<ObjectId>> {
        let mut lowest = None;
        for commit in commits {
            let is_above = self.parents(*commit)?.iter().any(|parent| commits.contains(parent));
            if !is_above && lowest.replace(*commit).is_some() {
                return Ok(HashSet::new());
            }
        }
        let mut left: HashSet<ObjectId> = tips.iter().copied().collect();
        let mut below = HashSet::new();
        let mut at = lowest;
        while !left.is_empty() && below.len() < STRAIGHT {
            let Some(parent) = self.only_parent(at) else { break };
            left.remove(&parent);
            below.insert(parent);
            at = Some(parent);
        }
        Ok(below)
    }

    /// Which of these commits these tips reach.
    pub fn reachable_from(&self, tips: &[ObjectId], commits: &[ObjectId]) -> Result<HashSet<ObjectId>> {
        let mut reached: HashSet<ObjectId> = commits.iter().copied().collect();
        // What all of them are made upon reaches none of them: most often that is every tip.
        let below = self.straight_below(&reached, tips)?;
        let may_reach = |id: &ObjectId| !below.contains(id) && self.repo.has_object(*id);
        let tips: Vec<_> = tips.iter().copied().filter(may_reach).collect();
        if tips.is_empty() || commits.is_empty() {
            return Ok(HashSet::new());
        }
        for id in self.walk(commits, &tips)? {
            reached.remove(&id);
        }
        Ok(reached)
    }
}

impl Objects<'_> {
    /// The first on the way down from a commit, by first parents, that one of these has below it, or is.
    pub fn base(&self, commit: ObjectId, of: &[ObjectId]) -> Result<Option<ObjectId>> {
        let made: HashSet<ObjectId> = self.commits_between(of, commit)?.into_iter().collect();
        self.first_but(commit, &made)
    }

    /// The first on the way down from a commit, by first parents, that is none of these.
    pub fn first_but(&self, commit: ObjectId, these: &HashSet<ObjectId>) -> Result<Option<ObjectId>> {
        let mut at = Some(commit);
        while let Some(commit) = at.filter(|commit| these.contains(commit)) {
            at = self.parents(commit)?.first().copied();
        }
        Ok(at)
    }

    /// Which of these commits are some others, or made of them in this way.
    fn made_of(
        &self,
        made: &[ObjectId],
        others: &[ObjectId],
        is_made_of: impl Fn(&Seen, &Seen) -> bool,
    ) -> HashSet<ObjectId> {
        let originals: Vec<Seen> = others.iter().take(MOST_ALIKE).map(|id| self.seen(*id)).collect();
        if originals.is_empty() {
            return HashSet::new();
        }
        let is_of = |copy: &Seen| originals.iter().any(|one| one.id == copy.id || is_made_of(one, copy));
        made.iter().take(MOST_ALIKE).map(|id| self.seen(*id)).filter(is_of).map(|copy| copy.id).collect()
    }

    /// Which of these commits are some others made anew, or the same.
    fn copies(&self, made: &[ObjectId], others: &[ObjectId]) -> HashSet<ObjectId> {
        self.made_of(made, others, |original, copy| self.alike(original, copy) != Likeness::None)
    }

    /// Whether each of these commits was made anew among some others.
    pub fn are_among(&self, these: &[ObjectId], others: &[ObjectId]) -> bool {
        these.len() <= MOST_ALIKE && self.copies(these, others).len() == these.len()
    }

    /// Which of these commits have the changes of some others' and no more, as what was picked has.
    pub fn picked(&self, made: &[ObjectId], others: &[ObjectId]) -> HashSet<ObjectId> {
        self.made_of(made, others, |original, copy| {
            self.alike(original, copy) != Likeness::None && self.change_the_same(original, copy)
        })
    }
}

/// Of what cannot be read nothing is said.
impl History for Objects<'_> {
    fn is_above(&self, commit: ObjectId, below: ObjectId) -> bool {
        self.is_ancestor(below, commit).unwrap_or(false)
    }

    fn without(&self, commit: ObjectId, others: &[ObjectId], own: &[ObjectId]) -> Option<ObjectId> {
        let made = self.commits_between(own, commit).ok()?;
        let mut on_theirs = self.copies(&made, &self.reached_only_from(others, own).ok()?);
        on_theirs.extend(self.reachable_from(others, &made).ok()?);
        // By a clock that is wrong one may come after what it is made upon.
        while on_theirs.len() < made.len() {
            let known = on_theirs.len();
            for id in made.iter().rev() {
                if self.parents(*id).ok()?.iter().any(|parent| on_theirs.contains(parent)) {
                    on_theirs.insert(*id);
                }
            }
            if on_theirs.len() == known {
                break;
            }
        }
        self.first_but(commit, &on_theirs).ok()?
    }

    fn has_copies(&self, commit: ObjectId, of: ObjectId, base: ObjectId) -> bool {
        let [on_top, theirs] = [commit, of].map(|tip| self.commits_between(&[base], tip).unwrap_or_default());
        !self.copies(&on_top, &theirs).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::Repo;
    use crate::git::repo::testing::Fixture;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Makes commits, each with these earlier ones as parents.
    fn made(f: &Fixture, dag: &[Vec<usize>]) -> Vec<ObjectId> {
        let tree = f.git_fed(&["mktree"], b"");
        let tree = String::from_utf8(tree).expect("an id");
        let mut commits: Vec<ObjectId> = Vec::new();
        for (number, parents) in dag.iter().enumerate() {
            let message = format!("{number}");
            let mut args = vec!["commit-tree".to_owned(), tree.trim().to_owned(), "-m".to_owned(), message];
            for parent in parents.iter().collect::<BTreeSet<_>>() {
                args.extend(["-p".to_owned(), commits[*parent].to_string()]);
            }
            commits.push(f.id(&args.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        commits
    }

    #[test]
    fn history_says_what_git_says_of_it() {
        // Parents come before their children; several roots, and merges of up to three.
        let parents = |at: usize| prop::collection::vec(0..at.max(1), 0..=at.min(3));
        let dag = (2..9_usize).prop_flat_map(move |size| (0..size).map(parents).collect::<Vec<_>>());
        let config = ProptestConfig { cases: 5, failure_persistence: None, ..ProptestConfig::default() };
        proptest!(config, |(dag in dag)| {
            let f = Fixture::new();
            let (objects, commits) = (Objects::new(&f.repo), made(&f, &dag));
            let last = commits[commits.len() - 1];
            let listed = |id: &ObjectId| f.lines(&["rev-list", &id.to_string()]).into_iter().collect::<BTreeSet<_>>();
            let below: Vec<BTreeSet<String>> = commits.iter().map(listed).collect();
            let is_below = |id: &ObjectId, tip: &ObjectId| {
                let at = commits.iter().position(|commit| commit == tip).expect("it was made");
                below[at].contains(&id.to_string())
            };
            for a in &commits {
                let by_git = f.git_agrees(&["merge-base", "--is-ancestor", &a.to_string(), &last.to_string()]);
                prop_assert_eq!(objects.is_ancestor(*a, last).expect("look"), by_git);
                for hidden in [&[][..], &[*a], &[*a, commits[0]]] {
                    let found = objects.commits_between(hidden, last).expect("walk");
                    let all: HashSet<ObjectId> = found.iter().copied().collect();
                    prop_assert_eq!(found.len(), all.len(), "each is named once");
                    let reached = objects.reachable_from(hidden, &commits).expect("walk");
                    for b in &commits {
                        let is_hidden = hidden.iter().any(|tip| is_below(b, tip));
                        prop_assert_eq!(all.contains(b), is_below(b, &last) && !is_hidden, "{} lies between", b);
                        prop_assert_eq!(reached.contains(b), is_hidden, "{} is reached", b);
                    }
                }
                for b in &commits {
                    prop_assert_eq!(objects.is_ancestor(*a, *b).expect("look"), is_below(a, b));
                }
            }
        });
    }

    #[test]
    fn a_line_is_told_newest_first_also_where_it_is_long() {
        let f = Fixture::new();
        let line: Vec<Vec<usize>> =
            (0..STRAIGHT + 6).map(|at: usize| at.checked_sub(1).into_iter().collect()).collect();
        let (objects, commits) = (Objects::new(&f.repo), made(&f, &line));
        let last = commits.len() - 1;
        for from in [0, 1, last - STRAIGHT, last - 1, last] {
            let wanted: Vec<ObjectId> = commits[from + 1..].iter().rev().copied().collect();
            assert_eq!(objects.commits_between(&[commits[from]], commits[last]).expect("walk"), wanted, "{from}");
            let reached = objects.reachable_from(&[commits[from]], &commits).expect("walk");
            assert_eq!(reached, commits[..=from].iter().copied().collect(), "{from}: all of them of one second");
            assert!(objects.is_ancestor(commits[from], commits[last]).expect("look"), "{from} is below");
            assert_eq!(objects.is_ancestor(commits[last], commits[from]).expect("look"), from == last, "{from}");
        }
    }

    #[test]
    fn a_commit_that_is_gone_is_nobodys_ancestor_and_hides_nothing() {
        let f = Fixture::new();
        let commit = f.commit("a", "one");
        let (objects, gone) = (Objects::new(&f.repo), ObjectId::from_bytes_or_panic(&[7; 20]));
        assert!(!objects.is_ancestor(gone, commit).expect("look"));
        assert_eq!(objects.commits_between(&[gone], commit).expect("walk"), [commit]);
        assert!(objects.reachable_from(&[gone], &[commit]).expect("walk").is_empty());
        assert!(objects.commits_between(&[commit], gone).is_err(), "what is asked for must be there");
    }

    /// What is asked of history, of all these commits.
    fn told(repo: &Repo, commits: &[ObjectId]) -> Vec<String> {
        let (objects, last) = (Objects::new(repo), commits[commits.len() - 1]);
        let mut told = Vec::new();
        for a in commits {
            let ancestors = commits.iter().map(|b| objects.is_ancestor(*a, *b).expect("look")).collect::<Vec<_>>();
            let between = objects.commits_between(&[*a], last).expect("walk");
            let beside = objects.commits_between(&[*a, commits[0]], last).expect("walk");
            let reached: BTreeSet<_> = objects.reachable_from(&[*a], commits).expect("walk").into_iter().collect();
            told.push(format!("{ancestors:?} {between:?} {beside:?} {reached:?}"));
        }
        told
    }

    #[test]
    fn history_is_what_the_commits_say_whatever_git_is_told_to_see_in_their_place() {
        let f = Fixture::new();
        let dag = [vec![], vec![0], vec![], vec![1], vec![3], vec![2, 4], vec![5], vec![6]];
        let commits = made(&f, &dag);
        let names: Vec<String> = commits.iter().map(ToString::to_string).collect();
        let wanted = told(&f.repo, &commits);
        let seen = f.lines(&["rev-list", &names[7]]);
        f.git(&["replace", "--graft", &names[6], &names[3]]);
        assert_ne!(f.lines(&["rev-list", &names[7]]), seen, "git sees another history");
        let f = f.reopened();
        assert_eq!(told(&f.repo, &commits), wanted);
        f.git(&["replace", "-d", &names[6]]);
        let grafts = f.repo.git_dir().join("info/grafts");
        std::fs::create_dir_all(grafts.with_file_name("")).expect("make a directory");
        std::fs::write(grafts, format!("{} {} {}\n", names[6], names[3], names[2])).expect("write a file");
        assert_ne!(f.lines(&["rev-list", &names[7]]), seen, "git sees another history");
        assert_eq!(told(&f.reopened().repo, &commits), wanted);
    }

    #[test]
    fn a_shallow_clone_has_no_history_below_its_end_even_where_the_commits_are_there() {
        let f = Fixture::new();
        let dag: Vec<Vec<usize>> = (0..6).map(|at: usize| at.checked_sub(1).into_iter().collect()).collect();
        let commits = made(&f, &dag);
        std::fs::write(f.repo.git_dir().join("shallow"), format!("{}\n", commits[3])).expect("write a file");
        let f = f.reopened();
        let objects = Objects::new(&f.repo);
        let last = commits[5];
        assert_eq!(f.lines(&["rev-list", &last.to_string()]).len(), 3, "git ends there");
        for a in &commits {
            let name = a.to_string();
            let by_git = f.lines(&["rev-list", &last.to_string(), &format!("^{name}")]);
            let found = objects.commits_between(&[*a], last).expect("walk");
            assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), by_git, "{name}");
            let is_ancestor = f.git_agrees(&["merge-base", "--is-ancestor", &name, &last.to_string()]);
            assert_eq!(objects.is_ancestor(*a, last).expect("look"), is_ancestor, "{name}");
            let is_reached = objects.reachable_from(&[last], &[*a]).expect("walk").contains(a);
            assert_eq!(is_reached, is_ancestor, "{name}");
        }
    }
}
