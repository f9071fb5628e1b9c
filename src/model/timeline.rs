//! Where the cursor is, and where it goes. Per branch: a chain of done turns,
//! each knowing the one below it, and the undone turns that redo would bring back.
//!
//! ```text
//!   undo  ◀──────────┐        ┌──────────▶  redo
//!   1 ◀─ 2 ◀─ 3 = top          undone = [4, 5]   (next to redo first)
//! ```
//!
//! A done turn is kept under the branch on which it ended, an undone one under
//! the branch on which it began: each where HEAD is when its turn comes.

use crate::model::checkpoint::{UsualModes, hex};
use crate::model::turn::Turn;
use gix::ObjectId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The turns of one branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// The last turn done.
    pub top: Option<u64>,
    /// The undone turns, next to redo first.
    pub undone: Vec<u64>,
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
    /// The number that the next turn gets.
    pub next: u64,
    /// The number that the next rescue checkpoint gets.
    pub next_rescue: u64,
    /// The turn in progress.
    pub open: Option<u64>,
    /// By the full name of the branch, or `HEAD` when detached.
    pub stacks: BTreeMap<String, Stack>,
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
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            v: 1,
            next: 1,
            next_rescue: 1,
            open: None,
            stacks: BTreeMap::new(),
            usual_modes: None,
            named: BTreeMap::new(),
            pins: Vec::new(),
            held: Vec::new(),
            uncommitted: Vec::new(),
        }
    }
}

/// Which turn to walk over, with the branches that decide where it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The turn.
    pub turn: u64,
    /// The stack of the branch on which it began.
    pub began_on: String,
    /// The stack of the branch on which it ended.
    pub ended_on: String,
    /// The turn below it.
    pub previous: Option<u64>,
}

impl Step {
    /// The step that a turn is.
    pub fn of(turn: &Turn) -> Self {
        let stack = |branch: &Option<String>| branch.clone().unwrap_or_else(|| "HEAD".to_owned());
        Self {
            turn: turn.turn,
            began_on: stack(&turn.began_on),
            ended_on: stack(&turn.branch),
            previous: turn.previous,
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

    /// The next turn that redo would bring back on a branch.
    pub fn next_redo(&self, name: &str) -> Option<u64> {
        self.stacks.get(name)?.undone.first().copied()
    }

    /// The newest turn done on any branch, with the branch's stack name.
    pub fn newest_done(&self) -> Option<(u64, &str)> {
        self.stacks.iter().filter_map(|(name, stack)| Some((stack.top?, name.as_str()))).max()
    }

    /// Whether a turn is waiting to be redone.
    pub fn is_undone(&self, turn: u64) -> bool {
        self.stacks.values().any(|stack| stack.undone.contains(&turn))
    }

    /// Takes the turn off the done ones.
    pub fn undo(&mut self, step: &Step) {
        self.stacks.entry(step.ended_on.clone()).or_default().top = step.previous;
        self.stacks.entry(step.began_on.clone()).or_default().undone.insert(0, step.turn);
        self.tidy();
    }

    /// Puts the turn back on the done ones.
    pub fn redo(&mut self, step: &Step) {
        let began = self.stacks.entry(step.began_on.clone()).or_default();
        began.undone.retain(|turn| *turn != step.turn);
        self.stacks.entry(step.ended_on.clone()).or_default().top = Some(step.turn);
        self.tidy();
    }

    /// Puts a new turn on its branch. Turns that are undone there can no longer be redone, unless this one
    /// leaves that possible.
    pub fn push(&mut self, step: &Step, keeps_redo: bool) {
        if !keeps_redo {
            self.stacks.entry(step.began_on.clone()).or_default().undone.clear();
            self.stacks.entry(step.ended_on.clone()).or_default().undone.clear();
        }
        self.stacks.entry(step.ended_on.clone()).or_default().top = Some(step.turn);
        self.tidy();
    }

    /// Removes a turn from the done ones for good: the turns that it took out are back.
    pub fn drop_turn(&mut self, step: &Step) {
        self.stacks.entry(step.ended_on.clone()).or_default().top = step.previous;
        self.tidy();
    }

    /// Keeps a commit alive.
    pub fn pin(&mut self, id: ObjectId) {
        if let Err(at) = self.pins.binary_search(&Pin(id)) {
            self.pins.insert(at, Pin(id));
        }
    }

    /// Lets go of a commit that a ref holds again.
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

impl TurnSpec {
    /// Reads `17`, `@`, `@~2` or a commit id.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is not a turn: give a number, @, @~N or a commit id");
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
    name.contains("..") || is_head || is_step || TurnSpec::parse(state).is_ok()
}

fn plain_number(text: &str) -> Option<u64> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step(turn: u64, previous: Option<u64>) -> Step {
        Step { turn, began_on: "main".into(), ended_on: "main".into(), previous }
    }

    #[test]
    fn a_new_turn_ends_redo() {
        let mut timeline = Timeline::default();
        timeline.push(&step(1, None), false);
        timeline.push(&step(2, Some(1)), false);
        timeline.undo(&step(2, Some(1)));
        assert_eq!((timeline.top("main"), timeline.next_redo("main")), (Some(1), Some(2)));
        timeline.push(&step(3, Some(1)), false);
        assert_eq!((timeline.top("main"), timeline.next_redo("main")), (Some(3), None));
    }

    #[test]
    fn a_turn_that_changed_branch_is_undone_on_one_and_redone_on_the_other() {
        let mut timeline = Timeline::default();
        let switch = Step { turn: 1, began_on: "main".into(), ended_on: "feature".into(), previous: None };
        timeline.push(&switch, false);
        assert_eq!(timeline.top("feature"), Some(1));
        timeline.undo(&switch);
        assert_eq!((timeline.next_redo("main"), timeline.top("feature")), (Some(1), None));
        timeline.redo(&switch);
        assert_eq!((timeline.top("feature"), timeline.next_redo("main")), (Some(1), None));
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

    proptest! {
        #[test]
        fn undo_and_redo_walk_the_same_line(total in 1_u64..12, walk in prop::collection::vec(any::<bool>(), 0..40)) {
            let mut timeline = Timeline::default();
            let previous = |turn: u64| (turn > 1).then(|| turn - 1);
            for turn in 1..=total {
                timeline.push(&step(turn, previous(turn)), false);
            }
            let mut cursor = total;
            for back in walk {
                if back && cursor > 0 {
                    timeline.undo(&step(cursor, previous(cursor)));
                    cursor -= 1;
                } else if !back && cursor < total {
                    prop_assert_eq!(timeline.next_redo("main"), Some(cursor + 1));
                    cursor += 1;
                    timeline.redo(&step(cursor, previous(cursor)));
                }
                prop_assert_eq!(timeline.top("main"), (cursor > 0).then_some(cursor));
                prop_assert_eq!(timeline.stack("main").undone, (cursor + 1..=total).collect::<Vec<_>>());
            }
        }
    }
}
