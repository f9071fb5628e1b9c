//! What commits change, whatever is around it: whether two change the same, and whether what some changed is in others.

use crate::git::objects::Objects;
use crate::git::objects::tree::TreeSlot;
use crate::model::checkpoint::Change;
use crate::model::kin::Lines;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;
use gix::bstr::ByteSlice;
use gix::diff::blob::{Algorithm, Diff, InternedInput};
use std::collections::BTreeMap;

/// How large a file may be of which lines are compared.
const LARGE: u64 = 1 << 20;

/// Of how many files at most lines are compared for one answer.
const MANY: usize = 256;

/// What was at each path, and what is there.
pub type Changes = BTreeMap<BString, Change<TreeSlot>>;

impl Objects<'_> {
    /// What a commit changes against its first parent.
    pub fn changes_of(&self, id: ObjectId) -> Result<Changes> {
        self.changes_between(self.parents(id)?.first().copied(), id)
    }

    /// The paths that a commit changed against its first parent.
    pub fn changed_in(&self, id: ObjectId) -> Result<Vec<BString>> {
        Ok(self.changes_of(id)?.into_keys().collect())
    }

    /// What differs between two commits; from none, all that is there.
    pub fn changes_between(&self, from: Option<ObjectId>, to: ObjectId) -> Result<Changes> {
        let from = from.map_or_else(|| self.write_empty_tree(), |from| self.commit_tree(from))?;
        self.tree_changes(from, self.commit_tree(to)?)
    }

    /// Whether some changes are of the same paths as others, to the same or by the same lines.
    pub fn are_the_same(&self, one: &Changes, other: &Changes) -> bool {
        let is_same = |one: &Change<TreeSlot>, other: &Change<TreeSlot>| {
            one.to == other.to || self.lines(one).is_some_and(|lines| Some(lines) == self.lines(other))
        };
        !one.is_empty()
            && one.keys().eq(other.keys())
            && one.len() <= MANY
            && one.values().zip(other.values()).all(|(one, other)| is_same(one, other))
    }

    /// Whether some changes are others and nothing more, whatever was there before them: what leads to the same content may have more
    /// in it.
    pub fn are_no_more(&self, one: &Changes, other: &Changes) -> bool {
        let is_same = |one: &Change<TreeSlot>, other: &Change<TreeSlot>| {
            one == other || self.lines(one).is_some_and(|lines| Some(lines) == self.lines(other))
        };
        one.keys().eq(other.keys())
            && one.len() <= MANY
            && one.values().zip(other.values()).all(|(one, other)| is_same(one, other))
    }

    /// Whether all of some changes is in those of commits: the file was made what it was to be, or all the lines came and went.
    pub fn changes_have(&self, all: &[&Changes], part: &Changes) -> bool {
        let is_in = |(path, wanted): (&BString, &Change<TreeSlot>)| {
            let there: Vec<&Change<TreeSlot>> = all.iter().filter_map(|changes| changes.get(path)).collect();
            if there.iter().any(|change| change.to == wanted.to) {
                return true;
            }
            let Some(lines) = self.lines(wanted).filter(|_| !there.is_empty()) else { return false };
            let mut sum = Lines::default();
            there.iter().filter_map(|change| self.lines(change)).for_each(|lines| sum.and(&lines));
            sum.has(&lines)
        };
        !part.is_empty() && part.len() <= MANY && part.iter().all(is_in)
    }

    /// Whether anything of some changes is in others: a file was made the same, or a line came or went.
    pub fn changes_share(&self, whole: &Changes, part: &Changes) -> bool {
        let shares = |(path, one): (&BString, &Change<TreeSlot>)| {
            let Some(other) = whole.get(path) else { return false };
            let lines = || self.lines(one).zip(self.lines(other)).is_some_and(|(one, other)| one.shares(&other));
            one.to == other.to || lines()
        };
        part.iter().any(shares)
    }

    /// The lines that a change added and removed, where that is all that it did, to a text that is not too large.
    fn lines(&self, change: &Change<TreeSlot>) -> Option<Lines> {
        let text = |slot: &TreeSlot| {
            let Some((mode, id)) = slot else { return Some(Vec::new()) };
            let is_small = mode.is_blob() && self.repo.gix.find_header(*id).is_ok_and(|blob| blob.size() <= LARGE);
            let blob = is_small.then(|| self.repo.find_blob(*id).ok()).flatten()?;
            (!blob.data.contains(&0)).then(|| blob.data.clone())
        };
        let mode = |slot: &TreeSlot| slot.map(|(mode, _)| mode.kind());
        let is_same_mode = mode(&change.from).is_none_or(|was| mode(&change.to) == Some(was));
        let (from, to) = (text(&change.from)?, text(&change.to).filter(|_| is_same_mode)?);
        let lines = counted(&from, &to);
        (!lines.is_empty()).then_some(lines)
    }
}

/// The lines that one text has and another has not.
fn counted(from: &[u8], to: &[u8]) -> Lines {
    let input = InternedInput::new(from, to);
    let diff = Diff::compute(Algorithm::Histogram, &input);
    let (was, is): (Vec<&[u8]>, Vec<&[u8]>) =
        (from.lines_with_terminator().collect(), to.lines_with_terminator().collect());
    let mut lines = Lines::default();
    for hunk in diff.hunks() {
        let of = |all: &[&[u8]], range: std::ops::Range<u32>| -> Vec<Vec<u8>> {
            all.get(range.start as usize..range.end as usize)
                .unwrap_or_default()
                .iter()
                .map(|line| line.to_vec())
                .collect()
        };
        for line in of(&was, hunk.before) {
            lines.remove(&line);
        }
        for line in of(&is, hunk.after) {
            lines.add(&line);
        }
    }
    lines
}
