//! Which commits stand for those that turns ended on, where the user has made these anew: [`model::kin`](crate::model::kin)
//! decides, here is looked at what it needs.

use crate::git::objects::Objects;
use crate::git::objects::alike::{Features, Likeness, Seen};
use crate::git::objects::changes::Changes;
use crate::git::refs::Refs;
use crate::git::repo::clock::seconds;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::kin::{Claim, Share, settle};
use crate::model::place::Node;
use crate::model::turn::Note;
use anyhow::Result;
use gix::ObjectId;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// In how many commits at most is looked for what turns changed that none of them is made of.
const DEEP: usize = 64;

/// How many turns in a row may have become other commits together.
const TOGETHER: usize = 16;

/// A commit on which a turn ended.
#[derive(Debug)]
pub struct Original {
    /// The turn; the first one, where several did.
    pub turn: u64,
    /// The commit.
    pub seen: Seen,
    /// What the turn did to come there.
    work: Option<Work>,
}

impl Original {
    /// The commit on which a turn ended, or none at all.
    pub fn end_of(objects: &Objects<'_>, node: &Node) -> Option<Self> {
        Some(Self { turn: node.turn, seen: objects.seen(node.to?), work: Work::of(node) })
    }

    /// One of the commits that a turn made.
    pub fn one_of(objects: &Objects<'_>, node: &Node, commit: ObjectId) -> Self {
        Self { turn: node.turn, seen: objects.seen(commit), work: None }
    }

    /// Each commit once, in the order in which they are given, which is the newest first.
    pub fn each_once<'a>(all: impl Iterator<Item = &'a Self>) -> Vec<&'a Self> {
        let mut once: Vec<&Self> = Vec::new();
        for original in all {
            match once.iter_mut().find(|known| known.seen.id == original.seen.id) {
                Some(known) => *known = original,
                None => once.push(original),
            }
        }
        once
    }
}

/// Where commits are looked for that others became.
#[derive(Clone, Copy)]
pub struct Anew<'a, 'r> {
    objects: &'a Objects<'r>,
    timeline: &'a Stored<'r>,
}

impl<'a, 'r> Anew<'a, 'r> {
    /// For the turns of a timeline.
    pub fn new(objects: &'a Objects<'r>, timeline: &'a Stored<'r>) -> Self {
        Self { objects, timeline }
    }

    /// The commit that each of the originals became, by their numbers; both are in order, the newest first.
    pub fn copies(
        &self,
        originals: &[&Original],
        commits: &[Seen],
        takes: impl Fn(usize, Likeness) -> bool,
    ) -> Result<BTreeMap<usize, usize>> {
        let mut claims = Vec::new();
        for (original, one) in originals.iter().enumerate() {
            let Some(was) = &one.seen.features else { continue };
            for (commit, other) in commits.iter().enumerate() {
                let Some(is) = other.features.as_ref().filter(|is| was.may_be(is)) else { continue };
                let likeness = self.objects.alike(&one.seen, other);
                if likeness != Likeness::None
                    && takes(original, likeness)
                    && self.there_before(one.turn, &one.seen, &[other])?.is_empty()
                    && !self.is_of_what_was_amended(one, other)?
                {
                    let (has_message, has_author) = (was.has_message_of(is), was.has_author_of(is));
                    let is_likely = likeness != Likeness::Beside;
                    claims.push(Claim { original, commit, is_likely, has_message, has_author });
                }
            }
        }
        Ok(settle(&claims, |original, commit| self.share(&originals[original].seen, &commits[commit])))
    }

    /// The one of these commits of HEAD's history that does all that the branch did on which a turn ended, and no more, whatever the user
    /// has added there since: others have made one commit of it.
    pub fn squash_of(&self, node: &Node, head: ObjectId, commits: &[&Seen]) -> Result<Option<ObjectId>> {
        let (objects, refs) = (self.objects, Refs::new(self.timeline.repo));
        let (Some(end), true) = (node.to, node.moved()) else { return Ok(None) };
        let Some(branch) = self.timeline.require_turn(node.turn)?.branch else { return Ok(None) };
        let goes_on = |tip: &ObjectId| objects.has_commit(*tip) && objects.is_ancestor(end, *tip).unwrap_or(false);
        let there = refs.ref_id(&branch)?.filter(goes_on);
        let Some(tip) = there.or_else(|| refs.left_at(&branch, end).filter(goes_on)) else { return Ok(None) };
        let Some(base) = objects.merge_base(tip, head)?.filter(|base| *base != tip) else { return Ok(None) };
        let whole = objects.changes_between(Some(base), tip)?;
        for commit in commits.iter().filter(|it| it.features.as_ref().is_some_and(|features| !features.is_merge())) {
            if objects.are_the_same(&whole, objects.changes_in(commit))
                && !objects.is_ancestor(commit.id, tip)?
                && self.there_before(node.turn, &objects.seen(end), &[commit])?.is_empty()
            {
                return Ok(Some(commit.id));
            }
        }
        Ok(None)
    }

    /// Whether a commit that may be a copy of one that a turn made of another is one of that other instead: it has all of that, and
    /// nothing of what the turn did to it.
    fn is_of_what_was_amended(&self, original: &Original, commit: &Seen) -> Result<bool> {
        let objects = self.objects;
        let Some(Work { from: Some(from), to, .. }) = original.work else { return Ok(false) };
        if objects.is_ancestor(from, to)? {
            return Ok(false);
        }
        let amended = objects.seen(from);
        if objects.change_the_same(&original.seen, commit) && !objects.change_the_same(&amended, commit) {
            return Ok(false);
        }
        let (work, changes) = (objects.changes_between(Some(from), to)?, objects.changes_in(commit));
        let has_message = |of: &Seen| {
            of.features.as_ref().zip(commit.features.as_ref()).is_some_and(|(of, commit)| of.has_message_of(commit))
        };
        let is_reworded = work.is_empty() && has_message(&original.seen) && !has_message(&amended);
        Ok(!is_reworded
            && !objects.changes_share(changes, &work)
            && objects.changes_have(&[changes], objects.changes_in(&amended)))
    }

    /// How much of what one commit changes another one does.
    fn share(&self, original: &Seen, commit: &Seen) -> Share {
        let objects = self.objects;
        if objects.change_the_same(original, commit) {
            Share::Same
        } else if objects.changes_have(&[objects.changes_in(commit)], objects.changes_in(original)) {
            Share::All
        } else {
            Share::Part
        }
    }

    /// Those of some commits that were there before a turn began, which ended on this one: they were not made of it. It may have been
    /// made of them, as the turn picked or amended the user's.
    pub fn there_before(&self, turn: u64, end: &Seen, commits: &[&Seen]) -> Result<HashSet<ObjectId>> {
        let (mut earlier, mut dated, mut at_once) = (Vec::new(), Vec::new(), Vec::new());
        let is_ahead = |end: &Features| {
            let ended = self.timeline.require_turn(turn)?.ended_at;
            Ok::<_, anyhow::Error>(end.is_after(seconds(ended.as_ref()).saturating_add(1)))
        };
        for commit in commits {
            let Some((is, was)) = commit.features.as_ref().zip(end.features.as_ref()) else { continue };
            match is.age_to(was) {
                // A rebase may give it the author's date, or a clock was set back; or the turn's was ahead.
                Ordering::Less if is.may_be_amended(was) || is_ahead(was)? => dated.push(commit.id),
                Ordering::Less => earlier.push(commit.id),
                Ordering::Equal => at_once.push(commit.id),
                Ordering::Greater => {}
            }
        }
        // What the turn made itself is older where its record has what the user made of it since.
        let repo = self.timeline.repo;
        let notes = if earlier.is_empty() { Vec::new() } else { Refs::new(repo).notes_on(&earlier)? };
        let is_own =
            |id: ObjectId, note: &Note| (note.turn, note.commit) == (turn, id) && note.worktree == repo.worktree_id();
        let others = earlier.into_iter().zip(notes).filter(|(id, notes)| !notes.iter().any(|note| is_own(*id, note)));
        let mut before: HashSet<ObjectId> = others.map(|(id, _)| id).collect();
        // Where the dates do not tell, as within one second, only the branches do.
        if !dated.is_empty() || !at_once.is_empty() {
            let checkpoint = self.timeline.checkpoint(turn, Side::Before)?;
            before.extend(self.objects.reachable_from(&checkpoint.tips(), &[dated.as_slice(), &at_once].concat())?);
        }
        if !dated.is_empty() {
            // What is on a remote a turn may have picked: git gives that the same author, and date.
            before.extend(self.objects.reachable_from(&self.objects.remote_tip_ids()?, &dated)?);
        }
        Ok(before)
    }
}

/// What a turn changed: the commit that it began upon, and the one that it ended on.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The turn.
    turn: u64,
    /// Where it began.
    from: Option<ObjectId>,
    /// Where it ended.
    to: ObjectId,
}

impl Work {
    /// That of a turn; the user's work upon which it began is not its own.
    pub fn of(node: &Node) -> Option<Self> {
        Some(Self { turn: node.turn, from: node.dirty.or(node.from), to: node.to? })
    }

    /// Whether a commit does all that a turn did, and no more: none that the turn brought, as by a rebase.
    pub fn is_whole_in(&self, objects: &Objects<'_>, commit: &Seen) -> Result<bool> {
        let (work, changes) = (objects.changes_between(self.from, self.to)?, objects.changes_in(commit));
        Ok(objects.are_the_same(&work, changes) && !objects.is_ancestor(commit.id, self.to)?)
    }
}

/// Commits in which there may be what several turns, or a part of one, became.
pub struct Rest<'a, 'r> {
    anew: Anew<'a, 'r>,
    commits: Vec<&'a Seen>,
}

impl<'a, 'r> Rest<'a, 'r> {
    /// Of these commits those that are not wholly an original's.
    pub fn of(
        anew: Anew<'a, 'r>,
        originals: &[&Original],
        commits: &'a [Seen],
        copies: &BTreeMap<usize, usize>,
    ) -> Self {
        let is_whole = |(original, commit): (&usize, &usize)| {
            let [was, is] = [&originals[*original].seen, &commits[*commit]].map(|seen| anew.objects.changes_in(seen));
            anew.objects.are_no_more(was, is).then_some(*commit)
        };
        let taken: BTreeSet<usize> = copies.iter().filter_map(is_whole).collect();
        let rest = commits.iter().enumerate().filter(|(at, _)| !taken.contains(at)).map(|(_, commit)| commit);
        // What a merge brings is in the commits that it merges.
        let rest = rest.filter(|commit| commit.features.as_ref().is_some_and(|features| !features.is_merge()));
        Self { anew, commits: rest.take(DEEP).collect() }
    }

    /// The commits in which all is that these turns changed, which followed each other, the newest first: one for each of them.
    pub fn find(&self, works: &[Work]) -> Result<Option<Vec<ObjectId>>> {
        let ([newest, ..], [.., oldest]) = (works, works) else { return Ok(None) };
        let objects = self.anew.objects;
        let whole = objects.changes_between(oldest.from, newest.to)?;
        let have = |commits: &[&Seen]| {
            let all: Vec<&Changes> = commits.iter().map(|commit| objects.changes_in(commit)).collect();
            objects.changes_have(&all, &whole)
        };
        if !have(&self.commits) || !self.is_all_of(works, &whole)? {
            return Ok(None);
        }
        let before = self.anew.there_before(oldest.turn, &objects.seen(oldest.to), &self.commits)?;
        let since: Vec<&Seen> = self.commits.iter().copied().filter(|commit| !before.contains(&commit.id)).collect();
        if !before.is_empty() && !have(&since) {
            return Ok(None);
        }
        works.iter().map(|work| self.stands_for(*work, &since)).collect()
    }

    /// Whether a whole is made of all these turns: where they have taken back each other's work, it is what the user did in between
    /// alone. Where the user had made one anew before the next began, another one below may have been dropped by then: of each of
    /// these there is something in it.
    fn is_all_of(&self, works: &[Work], whole: &Changes) -> Result<bool> {
        let objects = self.anew.objects;
        let mut is_any = false;
        for work in works {
            is_any = is_any || objects.changes_share(whole, &objects.changes_between(work.from, work.to)?);
        }
        if !is_any {
            return Ok(false);
        }
        let mut is_one_line = true;
        for pair in works.windows(2) {
            let [above, work] = pair else { continue };
            is_one_line = is_one_line && above.from.map_or(Ok(false), |from| objects.is_ancestor(work.to, from))?;
            if !is_one_line && !objects.changes_share(whole, &objects.changes_between(work.from, work.to)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The newest of some commits in which a turn's changes are, or some of them.
    fn stands_for(&self, work: Work, commits: &[&Seen]) -> Result<Option<ObjectId>> {
        let objects = self.anew.objects;
        let part = objects.changes_between(work.from, work.to)?;
        let has_all = |commit: &&&Seen| objects.changes_have(&[objects.changes_in(commit)], &part);
        let has_some = |commit: &&&Seen| objects.changes_in(commit).keys().any(|path| part.contains_key(path));
        let found = commits.iter().find(has_all).or_else(|| commits.iter().find(has_some));
        // What it did may be gone for what those above it did.
        let found = found.or(commits.first());
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
