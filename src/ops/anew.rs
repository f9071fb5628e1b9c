//! Which commits stand for those that turns ended on, where the user has made these anew: [`model::kin`](crate::model::kin)
//! decides, here is looked at what it needs.

use crate::git::objects::Objects;
use crate::git::objects::alike::{Likeness, Seen};
use crate::git::objects::changes::Changes;
use crate::model::kin::{Claim, settle};
use crate::model::place::Node;
use anyhow::Result;
use gix::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// In how many commits at most is looked for what turns changed that none of them is made of.
const DEEP: usize = 64;

/// How many turns in a row may have become other commits together.
const TOGETHER: usize = 16;

/// The commit that each of the originals became, by their numbers; both are in order, the newest first.
pub fn copies(
    objects: &Objects<'_>,
    originals: &[&Seen],
    commits: &[Seen],
    takes: impl Fn(usize, Likeness) -> bool,
) -> BTreeMap<usize, usize> {
    let mut claims = Vec::new();
    for (original, one) in originals.iter().enumerate() {
        let Some(was) = &one.features else { continue };
        for (commit, other) in commits.iter().enumerate() {
            let Some(is) = other.features.as_ref().filter(|is| was.may_be(is)) else { continue };
            let likeness = objects.alike(one, other);
            if likeness != Likeness::None && takes(original, likeness) {
                let (has_message, has_author) = (was.has_message_of(is), was.has_author_of(is));
                let is_likely = likeness != Likeness::Beside;
                claims.push(Claim { original, commit, is_likely, has_message, has_author });
            }
        }
    }
    settle(&claims, |original, commit| objects.change_the_same(originals[original], &commits[commit]))
}

/// What a turn changed: the commit that it began upon, and the one that it ended on.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Where it began.
    pub from: Option<ObjectId>,
    /// Where it ended.
    pub to: ObjectId,
}

impl Work {
    /// That of a turn; the user's work upon which it began is not its own.
    pub fn of(node: &Node) -> Option<Self> {
        Some(Self { from: node.dirty.or(node.from), to: node.to? })
    }
}

/// Commits in which there may be what several turns, or a part of one, became.
pub struct Rest<'a, 'r> {
    objects: &'a Objects<'r>,
    commits: Vec<&'a Seen>,
}

impl<'a, 'r> Rest<'a, 'r> {
    /// Of these commits those that are not wholly an original's.
    pub fn of(
        objects: &'a Objects<'r>,
        originals: &[&Seen],
        commits: &'a [Seen],
        copies: &BTreeMap<usize, usize>,
    ) -> Self {
        let is_whole = |(original, commit): (&usize, &usize)| {
            objects.change_the_same(originals[*original], &commits[*commit]).then_some(*commit)
        };
        let taken: BTreeSet<usize> = copies.iter().filter_map(is_whole).collect();
        let rest = commits.iter().enumerate().filter(|(at, _)| !taken.contains(at)).map(|(_, commit)| commit);
        // What a merge brings is in the commits that it merges.
        let rest = rest.filter(|commit| commit.features.as_ref().is_some_and(|features| !features.is_merge()));
        Self { objects, commits: rest.take(DEEP).collect() }
    }

    /// The commits in which all is that these turns changed, which followed each other, the newest first: one for each of them.
    pub fn find(&self, works: &[Work]) -> Result<Option<Vec<ObjectId>>> {
        let ([newest, ..], [.., oldest]) = (works, works) else { return Ok(None) };
        let all: Vec<&Changes> = self.commits.iter().map(|commit| self.objects.changes_in(commit)).collect();
        if !self.objects.changes_have(&all, &self.objects.changes_between(oldest.from, newest.to)?) {
            return Ok(None);
        }
        works.iter().map(|work| self.stands_for(*work)).collect()
    }

    /// The newest of them in which a turn's changes are, or some of them.
    fn stands_for(&self, work: Work) -> Result<Option<ObjectId>> {
        let part = self.objects.changes_between(work.from, work.to)?;
        let has_all = |commit: &&&Seen| self.objects.changes_have(&[self.objects.changes_in(commit)], &part);
        let has_some = |commit: &&&Seen| self.objects.changes_in(commit).keys().any(|path| part.contains_key(path));
        let found = self.commits.iter().find(has_all).or_else(|| self.commits.iter().find(has_some));
        // What it did may be gone for what those above it did.
        let found = found.or(self.commits.first());
        Ok(found.map(|commit| commit.id))
    }

    /// Of turns that followed each other, the newest first, those that are there, and in which commit each of them is: as many
    /// together as can be found so.
    pub fn find_most(&self, works: &[Work]) -> Result<BTreeMap<usize, ObjectId>> {
        let (mut found, mut first) = (BTreeMap::new(), 0);
        while first < works.len() {
            let most = works.len().min(first + TOGETHER);
            let mut next = first + 1;
            for end in (first + 1..=most).rev() {
                if let Some(commits) = self.find(&works[first..end])? {
                    found.extend((first..end).zip(commits));
                    next = end;
                    break;
                }
            }
            first = next;
        }
        Ok(found)
    }
}
