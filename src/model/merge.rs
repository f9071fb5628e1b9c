//! The rule for a value that both a turn and the user changed.
//!
//! An undo or redo of a turn (a step of a walk) takes a value `from` one state `to`
//! another; `now` is its present state. The rule is git's three-way merge, with `from` as the base:
//!
//! | now | becomes |
//! |---|---|
//! | = from | to |
//! | = to, or from = to | stays |
//! | else | both changed it: the table below |
//!
//! | both changed | becomes |
//! |---|---|
//! | one the content, the other the mode | each its own |
//! | the content of a text file | merged by lines; lines that both changed overlap |
//! | the same file under `-merge`, `merge=binary`, or a merge driver of the user's | overlaps |
//! | the same file under `merge=union` | both sides' lines |
//! | a binary file, or the target of a link | overlaps |
//! | the mode, each to another | overlaps |
//! | one the kind (file, link, nothing), the other anything | overlaps |
//! | a file where a directory stays, or behind a link | overlaps |
//!
//! Where a turn only renamed a file, the user's edits to it move with it; any other rename is a
//! deletion and an addition. An index entry follows the same rule; where it overlaps, what the turn
//! did to the file is taken out of it, and where that overlaps too and the worktree has what was
//! staged, it is unstaged and named instead. Overlaps are refused, with all
//! of them named, or overwritten when that was asked for.

use crate::model::checkpoint::{Change, FileState, IndexEntry, Kind};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BStr;
use std::ops::RangeInclusive;

/// What is done with the user's edits to what a walk changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edits {
    /// Keep them by a three-way merge; refuse where they overlap.
    #[default]
    Merge,
    /// Refuse wherever there are any.
    Refuse,
    /// Restore exactly; redo brings them back.
    Overwrite,
}

impl Edits {
    /// What there is to choose from.
    pub const ALL: [Self; 3] = [Self::Merge, Self::Refuse, Self::Overwrite];

    /// The word for it, in settings and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Refuse => "refuse",
            Self::Overwrite => "overwrite",
        }
    }
}

/// The blobs of a three-way merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blobs {
    /// What both sides started from.
    pub base: ObjectId,
    /// What is there.
    pub ours: ObjectId,
    /// Where the walk leads.
    pub theirs: ObjectId,
}

/// What a three-way merge of blobs gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merged {
    /// The blob of the merged content.
    Clean(ObjectId),
    /// The two sides overlap.
    Overlap(Cause),
}

/// Merges blobs for a path: the one thing that these rules need from outside.
pub type Merge<'a> = dyn FnMut(&BStr, Blobs) -> Result<Merged> + 'a;

/// Why a path cannot be brought to where the walk leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// These lines of the present file.
    Lines(Vec<RangeInclusive<u32>>),
    /// It is not text.
    Binary,
    /// It has a merge driver that is not run.
    Driver(String),
    /// The user deleted it.
    Deleted,
    /// There is a directory where it was.
    Directory,
    /// A sparse checkout leaves it out.
    LeftOut,
    /// It would be deleted, and the user changed it.
    Changed,
    /// Both made it.
    Added,
    /// It is another kind of file.
    Kind,
    /// Both changed its mode.
    Mode,
    /// It is in the place of a file or directory that the walk needs.
    InTheWay,
    /// It is not in any checkpoint: ignored, over a limit, or no file.
    NotCaptured,
    /// It was moved aside, and is not there any more.
    Lost,
    /// A turn moved it, and what was moved is not there any more.
    Gone,
    /// The staged content is nowhere else.
    Staged,
    /// A later commit changed it.
    Committed,
    /// The user changed it, and edits are to be refused.
    Edited,
}

impl Cause {
    /// In a few words, to follow a path.
    pub fn words(&self) -> String {
        match self {
            Self::Lines(lines) => {
                let shown = lines.iter().take(3).map(|range| match (range.start(), range.end()) {
                    (start, end) if start == end => start.to_string(),
                    (start, end) => format!("{start}-{end}"),
                });
                let shown = shown.collect::<Vec<_>>().join(", ");
                let word = if matches!(&lines[..], [one] if one.start() == one.end()) { "line" } else { "lines" };
                let more = if lines.len() > 3 { ", ..." } else { "" };
                format!("{word} {shown}{more}")
            }
            Self::Binary => "not text".to_owned(),
            Self::Driver(name) => format!("merge driver '{name}', which oxundo does not run"),
            Self::Deleted => "deleted since".to_owned(),
            Self::Directory => "a directory since".to_owned(),
            Self::LeftOut => "left out by the sparse checkout".to_owned(),
            Self::Changed => "changed since, and it would be deleted".to_owned(),
            Self::Added => "made since".to_owned(),
            Self::Kind => "another kind of file since".to_owned(),
            Self::Mode => "another mode since".to_owned(),
            Self::InTheWay => "in the way".to_owned(),
            Self::NotCaptured => "not covered".to_owned(),
            Self::Gone => "moved by the turn, and not there any more".to_owned(),
            Self::Lost => "moved aside by undo, and not there any more".to_owned(),
            Self::Staged => "staged".to_owned(),
            Self::Committed => "changed by a later commit".to_owned(),
            Self::Edited => "changed since".to_owned(),
        }
    }
}

/// What becomes of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict<T> {
    /// This.
    Becomes(T),
    /// This, with the merged content of these blobs in it.
    Merge(T, Blobs),
    /// Both sides changed it, in ways that cannot be merged.
    Overlap(Cause),
}

/// The rule of this module's first table; `None` where both sides changed the value.
pub fn resolve_trivially<T: PartialEq + Clone>(now: &T, change: &Change<T>) -> Option<T> {
    if *now == change.from {
        Some(change.to.clone())
    } else if *now == change.to || change.from == change.to {
        Some(now.clone())
    } else {
        None
    }
}

/// The rule for a file.
pub fn file(now: Option<FileState>, change: &Change<Option<FileState>>) -> Verdict<Option<FileState>> {
    if let Some(next) = resolve_trivially(&now, change) {
        return Verdict::Becomes(next);
    }
    let (now, from, to) = match (now, change.from, change.to) {
        (Some(now), Some(from), Some(to)) => (now, from, to),
        (None, ..) => return Verdict::Overlap(Cause::Deleted),
        (_, None, _) => return Verdict::Overlap(Cause::Added),
        (_, _, None) => return Verdict::Overlap(Cause::Changed),
    };
    let link = |state: FileState| state.kind == Kind::Symlink;
    let rest = |state: FileState| (state.kind, state.mode);
    let content = |state: FileState| (link(state), state.id);
    let Some((kind, mode)) = resolve_trivially(&rest(now), &Change::new(rest(from), rest(to))) else {
        let cause = if link(now) == link(from) && link(from) == link(to) { Cause::Mode } else { Cause::Kind };
        return Verdict::Overlap(cause);
    };
    match resolve_trivially(&content(now), &Change::new(content(from), content(to))) {
        Some((is_link, id)) if is_link == (kind == Kind::Symlink) => {
            Verdict::Becomes(Some(FileState { kind, id, mode }))
        }
        None if ![now, from, to].into_iter().any(link) => Verdict::Merge(
            Some(FileState { kind, id: now.id, mode }),
            Blobs { base: from.id, ours: now.id, theirs: to.id },
        ),
        _ => Verdict::Overlap(Cause::Kind),
    }
}

/// The rule for a path's index entries.
pub fn entries(now: &Vec<IndexEntry>, change: &Change<Vec<IndexEntry>>) -> Verdict<Vec<IndexEntry>> {
    if let Some(next) = resolve_trivially(now, change) {
        return Verdict::Becomes(next);
    }
    let ([now], [from], [to]) = (&now[..], &change.from[..], &change.to[..]) else {
        return Verdict::Overlap(Cause::Staged);
    };
    let flag = |flag: fn(&IndexEntry) -> bool| if flag(now) == flag(from) { flag(to) } else { flag(now) };
    let content = |entry: &IndexEntry| (entry.mode, entry.id, entry.stage, entry.intent_to_add);
    let flagged = |(mode, id, stage, intent_to_add)| IndexEntry {
        mode,
        id,
        stage,
        intent_to_add,
        skip_worktree: flag(|entry| entry.skip_worktree),
        assume_unchanged: flag(|entry| entry.assume_unchanged),
    };
    if let Some(content) = resolve_trivially(&content(now), &Change::new(content(from), content(to))) {
        return Verdict::Becomes(vec![flagged(content)]);
    }
    let file = |entry: &&IndexEntry| entry.mode & 0o170_000 == 0o100_000 && entry.stage == 0 && !entry.intent_to_add;
    match resolve_trivially(&now.mode, &Change::new(from.mode, to.mode)) {
        Some(mode) if [now, from, to].iter().all(file) => Verdict::Merge(
            vec![flagged((mode, now.id, 0, false))],
            Blobs { base: from.id, ours: now.id, theirs: to.id },
        ),
        _ => Verdict::Overlap(Cause::Staged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[n; 20])
    }

    /// Content, and mode; a link has none.
    fn state(n: u8, mode: u32) -> FileState {
        let kind = if mode == 0 { Kind::Symlink } else { Kind::of_mode(mode) };
        FileState { kind, id: id(n), mode }
    }

    #[test]
    fn a_file_that_both_changed_becomes_what_the_table_says() {
        let [one, two, three] = [1, 2, 3].map(|n| Some(state(n, 0o644)));
        let [link, other_link, third_link] = [1, 2, 3].map(|n| Some(state(n, 0)));
        let run = |n| Some(state(n, 0o755));
        let merge = |next, [base, ours, theirs]: [u8; 3]| {
            Verdict::Merge(next, Blobs { base: id(base), ours: id(ours), theirs: id(theirs) })
        };
        for (now, from, to, becomes) in [
            (one, one, two, Verdict::Becomes(two)),
            (two, one, two, Verdict::Becomes(two)),
            (three, one, one, Verdict::Becomes(three)),
            (None, one, None, Verdict::Becomes(None)),
            (run(1), one, two, Verdict::Becomes(run(2))),
            (two, one, run(1), Verdict::Becomes(run(2))),
            (two, one, three, merge(two, [1, 2, 3])),
            (run(2), one, three, merge(run(2), [1, 2, 3])),
            (two, one, run(3), merge(run(2), [1, 2, 3])),
            (Some(state(1, 0o600)), one, run(1), Verdict::Overlap(Cause::Mode)),
            (None, one, two, Verdict::Overlap(Cause::Deleted)),
            (one, None, two, Verdict::Overlap(Cause::Added)),
            (two, one, None, Verdict::Overlap(Cause::Changed)),
            (run(1), one, None, Verdict::Overlap(Cause::Changed)),
            (link, one, two, Verdict::Overlap(Cause::Kind)),
            (two, one, link, Verdict::Overlap(Cause::Kind)),
            (other_link, link, third_link, Verdict::Overlap(Cause::Kind)),
            (one, link, other_link, Verdict::Overlap(Cause::Kind)),
        ] {
            assert_eq!(file(now, &Change::new(from, to)), becomes, "{now:?}, where {from:?} became {to:?}");
        }
    }

    #[test]
    fn entries_that_both_changed_become_what_the_table_says() {
        let plain = |n| IndexEntry::plain(0o100_644, id(n));
        let hidden = |n| IndexEntry { skip_worktree: true, ..plain(n) };
        let run = |n| IndexEntry { mode: 0o100_755, ..plain(n) };
        let ours = |n| IndexEntry { stage: 2, ..plain(n) };
        let intended = |n| IndexEntry { intent_to_add: true, ..plain(n) };
        let link = |n| IndexEntry { mode: 0o120_000, ..plain(n) };
        let blobs = Blobs { base: id(1), ours: id(2), theirs: id(3) };
        for (now, from, to, becomes) in [
            (vec![plain(1)], vec![plain(1)], vec![], Verdict::Becomes(vec![])),
            (vec![plain(3)], vec![plain(1)], vec![plain(3)], Verdict::Becomes(vec![plain(3)])),
            (vec![hidden(1)], vec![plain(1)], vec![plain(3)], Verdict::Becomes(vec![hidden(3)])),
            (vec![plain(2)], vec![plain(1)], vec![hidden(1)], Verdict::Becomes(vec![hidden(2)])),
            (vec![plain(2)], vec![plain(1)], vec![plain(3)], Verdict::Merge(vec![plain(2)], blobs)),
            (vec![run(2)], vec![plain(1)], vec![plain(3)], Verdict::Merge(vec![run(2)], blobs)),
            (vec![plain(2)], vec![plain(1)], vec![hidden(3)], Verdict::Merge(vec![hidden(2)], blobs)),
            (vec![plain(2)], vec![plain(1)], vec![], Verdict::Overlap(Cause::Staged)),
            (vec![], vec![plain(1)], vec![plain(3)], Verdict::Overlap(Cause::Staged)),
            (vec![ours(2)], vec![plain(1)], vec![plain(3)], Verdict::Overlap(Cause::Staged)),
            (vec![intended(2)], vec![plain(1)], vec![plain(3)], Verdict::Overlap(Cause::Staged)),
            (vec![link(2)], vec![link(1)], vec![link(3)], Verdict::Overlap(Cause::Staged)),
            (vec![ours(1), plain(2)], vec![plain(1)], vec![plain(3)], Verdict::Overlap(Cause::Staged)),
        ] {
            assert_eq!(entries(&now, &Change::new(from.clone(), to.clone())), becomes, "{now:?}: {from:?} to {to:?}");
        }
    }

    #[test]
    fn an_overlap_of_lines_is_told_in_a_few_words() {
        for (lines, words) in [
            (vec![3..=3], "line 3"),
            (vec![3..=5], "lines 3-5"),
            (vec![1..=1, 4..=6], "lines 1, 4-6"),
            (vec![1..=1, 2..=2, 3..=3, 9..=9], "lines 1, 2, 3, ..."),
        ] {
            assert_eq!(Cause::Lines(lines).words(), words);
        }
    }
}
