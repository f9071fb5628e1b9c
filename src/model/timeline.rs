//! The state of a timeline: for each branch on which turns were made, the last turn done there and the undone ones; and
//! where HEAD was when that was written. Which of them counts where HEAD is now, [`super::place`] decides.
//!
//! ```text
//!   undo  ◀──────────┐        ┌──────────▶  redo
//!   1 ◀─ 2 ◀─ 3 = top          undone = [4, 5]   (next to redo first)
//! ```
//!
//! A turn that others were made instead of is in no list, and still known by its number, until it expires.

use crate::model::checkpoint::{Head, UsualModes, hex, hex_option};
use crate::model::place::{Found, Lift, Place, Recorded, Stack};
use gix::ObjectId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of a timeline that this oxundo writes; it reads those before it. The first one filed turns under branches:
/// an oxundo that does so must not go on with one that follows the commits.
pub const VERSION: u32 = 2;

/// Of how many turns of a branch it is written that they stand above others than they were made on, the newest.
const MOST_LIFTED: usize = 512;

/// Of how many lines of turns it is kept that git took a branch away from them, the last.
const MOST_LEFT: usize = 16;

/// Where HEAD was when the timeline was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The name of the stack that says which turns are done there.
    pub stack: String,
    /// The commit.
    #[serde(with = "hex_option")]
    pub commit: Option<ObjectId>,
}

/// A commit that no branch holds any more and that a turn still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pin(#[serde(with = "hex")] pub ObjectId);

/// A state that the user named, and where it stands among the turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Where it is kept.
    pub number: u64,
    /// The stack of the branch that HEAD was on.
    pub stack: String,
    /// The last turn done there.
    pub top: Option<u64>,
    /// When it was named, RFC 3339.
    pub at: String,
}

/// The state of a worktree's timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The version of this record's format.
    pub v: u32,
    /// The number of the operation that wrote this, from 1 on; older releases did not count.
    #[serde(default, skip_serializing_if = "is_none")]
    pub operation: u64,
    /// The number that the next turn gets.
    pub next: u64,
    /// The number that the next rescue checkpoint gets.
    pub next_rescue: u64,
    /// The turn in progress.
    pub open: Option<u64>,
    /// By the full name of the branch, or `HEAD` when detached.
    pub stacks: BTreeMap<String, Stack>,
    /// The lines of turns from which git took a branch away, the last one at the end: HEAD may come back to them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Stack>,
    /// Where HEAD was when this was written; older releases did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Standing>,
    /// The usual permission bits, which checkpoints do not record for each file.
    pub usual_modes: Option<UsualModes>,
    /// The states that the user named.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub named: BTreeMap<String, Named>,
    /// The commits kept alive by the timeline commit's parents.
    pub pins: Vec<Pin>,
    /// Those kept alive only while the open turn lasts: commits that the agent could drop.
    #[serde(default)]
    pub held: Vec<Pin>,
    /// The turns, oldest first, whose changes were not all committed when they ended, and may be uncommitted still.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<u64>,
    /// Those of HEAD's branch that have gone up with it, as its stack has them once this is written.
    #[serde(skip)]
    pub lifted: BTreeMap<u64, Lift>,
    /// The newest end of a turn in HEAD's history, where that was looked for.
    #[serde(skip)]
    pub found: Option<(Head, Option<Found>)>,
    /// What a newer release says beside all this: it is left alone.
    #[serde(flatten)]
    pub others: BTreeMap<String, Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives it so")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            v: VERSION,
            operation: 0,
            next: 1,
            next_rescue: 1,
            open: None,
            stacks: BTreeMap::new(),
            left: Vec::new(),
            at: None,
            usual_modes: None,
            named: BTreeMap::new(),
            pins: Vec::new(),
            held: Vec::new(),
            uncommitted: Vec::new(),
            lifted: BTreeMap::new(),
            found: None,
            others: BTreeMap::new(),
        }
    }
}

impl Timeline {
    /// The stack of a branch; an empty one where it has none.
    pub fn stack(&self, name: &str) -> Stack {
        self.stacks.get(name).cloned().unwrap_or_default()
    }

    /// The last turn done on a branch.
    pub fn top(&self, name: &str) -> Option<u64> {
        self.stacks.get(name)?.top
    }

    /// The newest turn done on any branch, with the branch's stack name.
    pub fn newest_done(&self) -> Option<(u64, &str)> {
        self.stacks.iter().filter_map(|(name, stack)| Some((stack.top?, name.as_str()))).max()
    }

    /// Whether a turn is waiting to be redone.
    pub fn is_undone(&self, turn: u64) -> bool {
        self.stacks.values().any(|stack| stack.undone.contains(&turn))
    }

    /// What is recorded of where the cursor was, for one who stands here.
    pub fn recorded(&self, head: &Head) -> Recorded {
        let name = head.stack();
        let newest = || self.newest_done().map(|(_, name)| name);
        let last = match &self.at {
            Some(at) => at.stack.as_str(),
            None if self.stacks.contains_key(name) => name,
            None => newest().unwrap_or(name),
        };
        let others = self.stacks.iter().filter(|(other, _)| *other != name && *other != last);
        let left = self.left.iter().rev().cloned().collect();
        let mut others: Vec<Stack> = others.map(|(_, stack)| stack).chain(&self.left).cloned().collect();
        others.sort_by_key(|stack| std::cmp::Reverse(stack.top));
        Recorded {
            last: self.stack(last),
            is_here: last == name,
            here: self.stacks.get(name).cloned(),
            others,
            left,
            comes_back: false,
        }
    }

    /// HEAD stands here now, and this is done and undone.
    pub fn stand(&mut self, head: &Head, place: &Place) {
        let mut lifted = self.lifted.clone();
        while lifted.len() > MOST_LIFTED {
            lifted.pop_first();
        }
        self.stacks.insert(head.stack().to_owned(), Stack { lifted, ..place.to_stack() });
        self.tidy();
        self.left.retain(|left| left.top != place.top);
        let at = || Standing { stack: head.stack().to_owned(), commit: head.commit };
        self.at = (!self.stacks.is_empty()).then(at);
    }

    /// Where turns stand is not looked at: they do above those on which they were made.
    pub fn stand_as_made(&mut self) {
        (self.lifted, self.found) = (BTreeMap::new(), None);
    }

    /// Git has taken a branch away from this line of turns.
    pub fn leave(&mut self, line: Stack) {
        self.left.retain(|left| left.top != line.top);
        self.left.push(line);
        self.left.drain(..self.left.len().saturating_sub(MOST_LEFT));
    }

    /// What stands above a commit has changed, and that goes for every branch that is there.
    pub fn stand_everywhere(&mut self, was: &Place, now: &Place) {
        for stack in self.stacks.values_mut().chain(&mut self.left).filter(|stack| stack.top == was.top) {
            if stack.undone == was.undone {
                *stack = Stack { lifted: std::mem::take(&mut stack.lifted), ..now.to_stack() };
            }
            stack.top = now.top;
        }
    }

    /// The turns that have gone up with HEAD, of each branch.
    pub fn all_lifted(&mut self) -> impl Iterator<Item = &mut BTreeMap<u64, Lift>> {
        self.stacks.values_mut().chain(&mut self.left).map(|stack| &mut stack.lifted).chain([&mut self.lifted])
    }

    /// Keeps a commit alive.
    pub fn pin(&mut self, id: ObjectId) {
        if let Err(at) = self.pins.binary_search(&Pin(id)) {
            self.pins.insert(at, Pin(id));
        }
    }

    /// Whether a commit is kept alive as such.
    pub fn is_pinned(&self, id: ObjectId) -> bool {
        self.pins.binary_search(&Pin(id)).is_ok()
    }

    /// Lets go of a commit that another one keeps alive.
    pub fn unpin(&mut self, id: ObjectId) {
        self.pins.retain(|pin| pin.0 != id);
    }

    fn tidy(&mut self) {
        self.stacks.retain(|_, stack| stack.top.is_some() || !stack.undone.is_empty());
    }
}

/// What a user may write for a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnSpec {
    /// A number; 0 is the state before the first turn.
    Number(u64),
    /// `@`, `@~2`: so many below the last one done.
    Below(u64),
    /// Anything else: a commit that a turn made.
    Commit(String),
}

/// The ends of a range, `3..5`; none where it is no range, or has more than two dots between them.
pub fn range_ends(text: &str) -> Option<(&str, &str)> {
    let (first, last) = text.split_once("..")?;
    // In a path two dots are the directory above.
    let is_above = first.ends_with([':', '/']) || last.starts_with('/');
    (!is_above && !last.starts_with('.') && !last.contains("..")).then_some((first, last))
}

impl TurnSpec {
    /// Reads `17`, `@`, `@~2` or a commit id.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || {
            if range_ends(text).is_some() {
                return format!("'{text}' is a range of turns, and one turn is wanted");
            }
            if text.contains("..") {
                return format!("'{text}' is not a turn: a range has two ends, with two dots between them");
            }
            format!("'{text}' is not a turn: give a number, @, @~N or a commit id")
        };
        if text == "@" {
            return Ok(Self::Below(0));
        }
        if let Some(n) = text.strip_prefix("@~") {
            let n = if n.is_empty() { "1" } else { n };
            return plain_number(n).map(Self::Below).ok_or_else(bad);
        }
        // Seven digits or more may be an abbreviated commit id; there are never so many turns.
        match plain_number(text) {
            Some(n) if text.len() < 7 => Ok(Self::Number(n)),
            _ if (4..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit()) => {
                Ok(Self::Commit(text.to_ascii_lowercase()))
            }
            _ => Err(bad()),
        }
    }
}

/// Whether these words, as a checkpoint's name, can be read as something else: a turn or a step of one, a commit or what
/// git finds from HEAD, each with or without a side or a path after a colon, or a range.
pub fn reads_otherwise(name: &str) -> bool {
    let state = name.split_once(':').map_or(name, |(state, _)| state);
    let goes_on = |rest: &str| rest.is_empty() || rest.starts_with(['~', '^', '{']) || rest.starts_with("@{");
    let is_head = ["HEAD", "@"].iter().any(|head| state.strip_prefix(head).is_some_and(goes_on));
    let is_number = |text| plain_number(text).is_some();
    let is_step = state.split_once('.').is_some_and(|(turn, step)| is_number(turn) && is_number(step));
    let is_kept = ["op:", "rescue:"].iter().any(|word| name.starts_with(word)) || state == "@rescue";
    name.contains("..") || is_head || is_step || is_kept || TurnSpec::parse(state).is_ok()
}

fn plain_number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(branch: &str, commit: u8) -> Head {
        let commit = Some(ObjectId::from_bytes_or_panic(&[commit; 20]));
        Head { branch: Some(format!("refs/heads/{branch}")), commit, through: None }
    }

    fn place(top: u64, undone: &[u64]) -> Place {
        Place { top: Some(top), undone: undone.to_vec(), ..Place::default() }
    }

    #[test]
    fn what_a_newer_release_says_beside_it_is_written_again() {
        let newer = serde_json::json!({"later": {"key": [1]}});
        let mut record = serde_json::to_value(Timeline::default()).expect("write it");
        record["later"] = newer["later"].clone();
        let read: Timeline = serde_json::from_value(record.clone()).expect("read it");
        assert_eq!(serde_json::to_value(&read).expect("write it again"), record);
        let turn = crate::model::turn::Turn { turn: 3, ..Default::default() };
        let mut record = serde_json::to_value(turn).expect("write it");
        record["later"] = newer["later"].clone();
        let read: crate::model::turn::Turn = serde_json::from_value(record.clone()).expect("read it");
        assert_eq!(serde_json::to_value(&read).expect("write it again"), record);
    }

    #[test]
    fn what_was_written_last_is_told_apart_from_what_is_known_of_heads_branch() {
        let mut timeline = Timeline::default();
        timeline.stand(&head("main", 1), &place(1, &[]));
        timeline.stand(&head("feature", 2), &place(2, &[3]));
        let recorded = timeline.recorded(&head("main", 1));
        assert_eq!(
            (recorded.last, recorded.is_here),
            (Stack { top: Some(2), undone: vec![3], ..Stack::default() }, false)
        );
        assert_eq!(recorded.here, Some(Stack { top: Some(1), ..Stack::default() }));
        assert!(timeline.recorded(&head("feature", 2)).is_here);
        assert_eq!(timeline.recorded(&head("new", 2)).others.len(), 1, "main's");
    }

    #[test]
    fn a_timeline_of_the_first_release_says_what_its_branches_say() {
        let mut timeline = Timeline::default();
        timeline.stacks.insert("refs/heads/main".into(), Stack { top: Some(2), ..Stack::default() });
        timeline.stacks.insert("refs/heads/old".into(), Stack { top: Some(1), ..Stack::default() });
        let here = timeline.recorded(&head("old", 1));
        assert_eq!((here.last.top, here.is_here), (Some(1), true));
        let elsewhere = timeline.recorded(&head("new", 1));
        assert_eq!((elsewhere.last.top, elsewhere.is_here), (Some(2), false), "the newest");
    }

    #[test]
    fn what_stands_above_a_commit_changes_on_every_branch_that_is_there() {
        let mut timeline = Timeline::default();
        timeline.stand(&head("main", 1), &place(2, &[]));
        timeline.stand(&head("new", 1), &place(2, &[]));
        timeline.stand(&head("other", 3), &place(3, &[]));
        timeline.stand_everywhere(&place(2, &[]), &place(1, &[2]));
        assert_eq!(timeline.stack("refs/heads/main"), Stack { top: Some(1), undone: vec![2], ..Stack::default() });
        assert_eq!(timeline.stack("refs/heads/other").top, Some(3));
    }

    #[test]
    fn of_the_lines_that_git_left_the_last_are_kept_until_head_is_there_again() {
        let mut timeline = Timeline::default();
        timeline.stand(&head("main", 1), &place(20, &[]));
        for top in (1..=17).chain([5]) {
            timeline.leave(Stack { top: Some(top), ..Stack::default() });
        }
        let left = |timeline: &Timeline| timeline.left.iter().filter_map(|line| line.top).collect::<Vec<_>>();
        assert_eq!(left(&timeline), (2..5).chain(6..18).chain([5]).collect::<Vec<_>>());
        assert_eq!(timeline.recorded(&head("main", 1)).others.len(), 16);
        timeline.stand(&head("main", 2), &place(5, &[]));
        assert_eq!(left(&timeline), (2..5).chain(6..18).collect::<Vec<_>>());
        timeline.stand_everywhere(&place(17, &[]), &place(16, &[17]));
        let last = timeline.left.last().expect("it is kept");
        assert_eq!((last.top, &last.undone[..]), (Some(16), &[17][..]));
    }

    #[test]
    fn turns_are_written_in_four_ways() {
        assert_eq!(TurnSpec::parse("17"), Ok(TurnSpec::Number(17)));
        assert_eq!(TurnSpec::parse("@"), Ok(TurnSpec::Below(0)));
        assert_eq!(TurnSpec::parse("@~"), Ok(TurnSpec::Below(1)));
        assert_eq!(TurnSpec::parse("@~2"), Ok(TurnSpec::Below(2)));
        assert_eq!(TurnSpec::parse("a1b2C3d"), Ok(TurnSpec::Commit("a1b2c3d".into())));
        assert_eq!(TurnSpec::parse("1234567"), Ok(TurnSpec::Commit("1234567".into())));
        for bad in ["", "-1", "+1", "@~x", "@1", "HEAD", "abc", "99999999999999999999999999x", "1 "] {
            assert!(TurnSpec::parse(bad).is_err(), "{bad:?} is no turn");
        }
    }

    #[test]
    fn a_name_that_some_form_reads_is_no_name() {
        for form in ["17", "@", "@~2", "@~-1", "@^", "@{1}", "17:", "17:before", "@:a b", "17.2", "17.2:x", "a1b2c3d:x"]
        {
            assert!(reads_otherwise(form), "{form:?} is a turn or of one");
        }
        for form in ["HEAD", "HEAD~", "HEAD^2:x", "HEAD@{1}", "..", "a..b", "it is..."] {
            assert!(reads_otherwise(form), "{form:?} is of HEAD, or a range");
        }
        for name in
            ["", "c1", "HEADS", "head", "@home", "v1.2", "1.2.3", "1 2", "fix: it", "before:1", "a.b", "add a cache"]
        {
            assert!(!reads_otherwise(name), "{name:?} is a name");
        }
    }
}
