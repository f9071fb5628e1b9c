//! The timeline as git keeps it: one commit. Its tree holds the state of the stacks, every turn's
//! record and its two checkpoints; its parents are the commits that turns need and no branch holds.
//!
//! ```text
//! state.json
//! turns/00/00/17/turn.json        the record
//!                files            a line of JSON for each file changed
//!                calls            a line of JSON for each call of a tool
//!                steps/           what changed around each of these calls
//!                above            the turns made on top of it, but for the one with the next number
//!                before/ after/   the checkpoints
//!                journal/         of a turn of oxundo's own that is open: its plan, which was carried out
//!                carried/         what undo and redo did with the user's edits
//! named/00/00/02/                 a checkpoint that the user named
//! rescues/00/00/04/               a checkpoint taken before undo or redo
//! rescued/00/00/04                what of the user's may be in that one alone
//! ```

use crate::error::failure::error_chain;
use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::codec::lines;
use crate::git::objects::Objects;
use crate::git::refs::{OwnRef, Refs};
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::bytes::exact;
use crate::model::call::ToolCall;
use crate::model::checkpoint::Checkpoint;
use crate::model::place::Node;
use crate::model::plan::{Plan, ReturnState};
use crate::model::timeline::{Timeline, VERSION};
use crate::model::turn::{FileChange, Turn};
use crate::progress::Progress;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use serde::Deserialize;
use std::collections::BTreeMap;

/// More turns than any worktree has, and small enough that adding one never overflows.
const BEYOND_COUNT: u64 = 1 << 53;

/// In how many of the last turns a session or a prompt is looked for.
const LAST_TURNS: u64 = 8;

/// How many directories name a number.
const LEVELS: usize = 3;

/// The timeline as it was read: its commit, its tree and its state.
#[derive(Clone, Debug)]
pub struct Stored<'r> {
    pub repo: &'r Repo,
    /// The commit; `None` before the first turn.
    pub commit: Option<ObjectId>,
    /// The tree.
    pub tree: ObjectId,
    /// The state of the stack.
    pub state: Timeline,
}

/// Which of a turn's checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one at its beginning.
    Before,
    /// The one at its end.
    After,
}

impl Side {
    /// The name of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

impl<'r> Stored<'r> {
    /// A timeline that has just been written and need not be read.
    pub fn known(repo: &'r Repo, commit: ObjectId, tree: ObjectId, state: Timeline) -> Self {
        Self { repo, commit: Some(commit), tree, state }
    }

    /// No timeline at all.
    pub fn none(repo: &'r Repo) -> Self {
        Self { repo, commit: None, tree: Objects::new(repo).empty_tree(), state: Timeline::default() }
    }

    /// Every recorded turn, by its number.
    pub fn turns(&self) -> Result<BTreeMap<u64, Turn>> {
        let mut turns = BTreeMap::new();
        for number in self.turn_numbers()? {
            turns.insert(number, self.require_turn(number)?);
        }
        Ok(turns)
    }

    /// The record of a turn, which stands where it does now; `None` where there is none of this number.
    pub fn find_turn(&self, number: u64) -> Result<Option<Turn>> {
        let mut turn = self.as_made(number)?;
        if let (Some(turn), Some(lift)) = (&mut turn, self.state.lifted.get(&number).filter(|at| at.previous < number))
        {
            (turn.previous, turn.depth) = (lift.below(), lift.depth);
        }
        Ok(turn)
    }

    /// The record of a turn, which stands where it was made.
    pub fn as_made(&self, number: u64) -> Result<Option<Turn>> {
        let damaged = |what: &str| Timelines::new(self.repo).corrupt(&format!("turn {number}: {what}"));
        let turn: Option<Turn> = (Objects::new(self.repo)
            .json_at(self.tree, &format!("{}/turn.json", turn_directory(number))))
        .map_err(|error| damaged(&error_chain(&error)))?;
        // A turn's `previous` must be smaller: otherwise following the chain would never end.
        match turn {
            Some(turn) if turn.turn != number || turn.previous.is_some_and(|previous| previous >= number) => {
                Err(damaged("its record contradicts itself"))
            }
            turn => Ok(turn),
        }
    }

    /// The plan of a turn of oxundo's own that was carried out before the turn could be ended; none where it was not.
    pub fn carried_out(&self, number: u64) -> Result<Option<Plan>> {
        #[derive(Deserialize)]
        struct Journal {
            plan: Plan,
        }
        let path = format!("{}/journal.json", journal_directory(number));
        let journal: Option<Journal> = Objects::new(self.repo).json_at(self.tree, &path)?;
        Ok(journal.map(|journal| journal.plan))
    }

    /// Whether one of the last turns is such.
    pub fn any_of_last(&self, is_such: impl Fn(&Turn) -> bool) -> Result<bool> {
        let next = self.state.next;
        for number in (next.saturating_sub(LAST_TURNS)..next).rev() {
            if self.find_turn(number)?.is_some_and(|turn| is_such(&turn)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The numbers of all turns that are recorded, in order.
    pub fn turn_numbers(&self) -> Result<Vec<u64>> {
        self.numbers_in("turns")
    }

    /// The numbers of the newest turns, the newest first: at most so many, and none below this one.
    pub fn newest_turns(&self, most: usize, lowest: u64) -> Result<Vec<u64>> {
        self.newest_in("turns", most, lowest)
    }

    /// The numbers of all rescue checkpoints, in order.
    pub fn rescue_numbers(&self) -> Result<Vec<u64>> {
        self.numbers_in("rescues")
    }

    fn numbers_in(&self, directory: &str) -> Result<Vec<u64>> {
        let mut numbers = self.newest_in(directory, usize::MAX, 0)?;
        numbers.reverse();
        Ok(numbers)
    }

    /// The largest numbers; no more trees are read than it takes.
    fn newest_in(&self, directory: &str, most: usize, lowest: u64) -> Result<Vec<u64>> {
        let (mut numbers, mut rest) = (Vec::new(), Vec::new());
        rest.extend(Objects::new(self.repo).tree_entry(self.tree, directory.into())?.map(|(_, tree)| (0_u64, tree, 0)));
        while let Some((number, tree, level)) = rest.pop().filter(|_| numbers.len() < most) {
            if level == LEVELS {
                if number < lowest {
                    break;
                }
                numbers.push(number);
                continue;
            }
            let mut below = Vec::new();
            for entry in self.repo.find_tree(tree)?.decode()?.entries {
                let name = entry.filename.to_str().ok().and_then(|name| name.parse::<u64>().ok());
                let number = name.and_then(|name| number.checked_mul(100)?.checked_add(name));
                below.extend(number.filter(|_| entry.mode.is_tree()).map(|it| (it, entry.oid.to_owned(), level + 1)));
            }
            below.sort_unstable_by_key(|(number, ..)| *number);
            rest.append(&mut below);
        }
        Ok(numbers)
    }

    /// The record of a turn that the timeline refers to.
    pub fn require_turn(&self, number: u64) -> Result<Turn> {
        self.find_turn(number)?.ok_or_else(|| Timelines::new(self.repo).corrupt(&format!("turn {number} is missing")))
    }

    /// The files that a turn changed.
    pub fn turn_files(&self, number: u64) -> Result<Vec<FileChange>> {
        let path = format!("{}/files", turn_directory(number));
        let Some(text) = Objects::new(self.repo).blob_at(self.tree, &path)? else {
            return Ok(Vec::new());
        };
        lines(&text)
            .map_err(|error| Timelines::new(self.repo).corrupt(&format!("turn {number}: {}", error_chain(&error))))
    }

    /// The calls of tools that a turn's agents told of.
    pub fn turn_calls(&self, number: u64) -> Result<Vec<ToolCall>> {
        let path = format!("{}/calls", turn_directory(number));
        let text = Objects::new(self.repo).blob_at(self.tree, &path)?;
        let calls = text.map_or_else(|| Ok(Vec::new()), |text| lines(&text));
        calls.map_err(|error| Timelines::new(self.repo).corrupt(&format!("turn {number}: {}", error_chain(&error))))
    }

    /// A checkpoint of a turn.
    pub fn checkpoint(&self, number: u64, side: Side) -> Result<Checkpoint> {
        let path = format!("{}/{}", turn_directory(number), side.name());
        Timelines::new(self.repo)
            .checkpoint_at(self.tree, &path)
            .map_err(|error| Timelines::new(self.repo).corrupt(&format!("turn {number}: {}", error_chain(&error))))
    }

    /// What of a turn matters for where HEAD stands. Older records do not say it: their checkpoints do.
    pub fn node(&self, number: u64) -> Result<Node> {
        let turn = self.require_turn(number)?;
        let (from, to) = match &turn.footing {
            Some(footing) => (footing.from, footing.to),
            None => (self.commit_at(number, Side::Before)?, self.commit_at(number, Side::After)?),
        };
        let is_lifted = self.state.lifted.contains_key(&number);
        let base = turn.footing.as_ref().map(|footing| footing.base).filter(|_| !is_lifted);
        let is_branch_alone = turn.began_branch() && turn.totals.files == 0;
        let (previous, dirty) = (turn.previous, turn.dirty_commit);
        Ok(Node { turn: number, previous, from, dirty, to, base, is_branch_alone })
    }

    /// The turns that were made right above one, or above none. Only those are listed that do not have the next number.
    pub fn above(&self, turn: Option<u64>) -> Result<Vec<u64>> {
        let path = above_file(turn);
        let listed: Option<Vec<u64>> = Objects::new(self.repo)
            .json_at(self.tree, &path)
            .map_err(|error| Timelines::new(self.repo).corrupt(&format!("{path}: {}", error_chain(&error))))?;
        let below = turn.unwrap_or(0);
        let mut above = Vec::new();
        // Only what is newer can be above: no record leads in a circle.
        let newer = listed.unwrap_or_default().into_iter().filter(|number| *number > below);
        for number in newer.chain(below.checked_add(1)) {
            if self.find_turn(number)?.is_some_and(|above| above.previous == turn && above.ended_at.is_some()) {
                above.push(number);
            }
        }
        Ok(above)
    }

    /// The commit that HEAD was at, at one of a turn's ends.
    pub fn commit_at(&self, number: u64, side: Side) -> Result<Option<ObjectId>> {
        let read = || {
            let tree = self.checkpoint_id(number, side)?.context("a checkpoint is missing")?;
            Checkpoints::new(self.repo).read_head(tree)
        };
        let head = read()
            .map_err(|error| Timelines::new(self.repo).corrupt(&format!("turn {number}: {}", error_chain(&error))))?;
        Ok(head.commit)
    }

    /// A checkpoint that the user named.
    pub fn named_checkpoint(&self, number: u64) -> Result<Checkpoint> {
        let path = named_directory(number);
        Timelines::new(self.repo)
            .checkpoint_at(self.tree, &path)
            .map_err(|error| Timelines::new(self.repo).corrupt(&error_chain(&error)))
    }

    /// Where a checkpoint of a turn is kept.
    pub fn checkpoint_id(&self, number: u64, side: Side) -> Result<Option<ObjectId>> {
        let path = format!("{}/{}", turn_directory(number), side.name());
        Ok(Objects::new(self.repo).tree_entry(self.tree, path.as_str().into())?.map(|(_, id)| id))
    }

    /// What the last undo or redo of a turn left for the next one.
    pub fn return_state(&self, number: u64) -> Result<ReturnState> {
        let path = format!("{}/carried/carried.json", turn_directory(number));
        let found = Objects::new(self.repo).json_at(self.tree, &path);
        Ok(found
            .map_err(|error| Timelines::new(self.repo).corrupt(&format!("turn {number}: {}", error_chain(&error))))?
            .unwrap_or_default())
    }

    /// The tree of a turn's records.
    pub fn turn_tree(&self, number: u64) -> Result<Option<ObjectId>> {
        Ok(Objects::new(self.repo).tree_entry(self.tree, turn_directory(number).as_str().into())?.map(|(_, id)| id))
    }

    /// The tree of a rescue checkpoint.
    pub fn rescue_tree(&self, number: u64) -> Result<Option<ObjectId>> {
        Ok(Objects::new(self.repo).tree_entry(self.tree, rescue_directory(number).as_str().into())?.map(|(_, id)| id))
    }

    /// The tree of a checkpoint that the user named.
    pub fn named_tree(&self, number: u64) -> Result<Option<ObjectId>> {
        Ok(Objects::new(self.repo).tree_entry(self.tree, named_directory(number).as_str().into())?.map(|(_, id)| id))
    }

    /// The paths and contents of the user's that a rescue checkpoint may be the only copy of.
    pub fn rescued(&self, number: u64) -> Result<Vec<(BString, ObjectId)>> {
        let Some((_, id)) = Objects::new(self.repo).tree_entry(self.tree, rescued_file(number).as_str().into())? else {
            return Ok(Vec::new());
        };
        let all: Vec<(String, String)> = serde_json::from_slice(&self.repo.find_blob(id)?.data)?;
        let read = |(path, id): (String, String)| {
            Ok((exact::decode(&path).context("a path is damaged")?, ObjectId::from_hex(id.as_bytes())?))
        };
        all.into_iter().map(read).collect()
    }

    /// A rescue checkpoint.
    pub fn rescue(&self, number: u64) -> Result<Checkpoint> {
        Timelines::new(self.repo).checkpoint_at(self.tree, &rescue_directory(number))
    }
}

impl<'r> Timelines<'r> {
    /// The commit that the timeline is now.
    pub fn tip(&self) -> Result<Option<ObjectId>> {
        let refs = Refs::new(self.repo);
        refs.ref_id(&refs.own_ref(OwnRef::Timeline))
    }

    /// Reads the timeline.
    pub fn timeline(&self) -> Result<Stored<'r>> {
        self.repo.watch.emit(Progress::Opens("the timeline"));
        let name = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        match Refs::new(self.repo).ref_id(&name).map_err(|error| self.corrupt(&error_chain(&error)))? {
            None if self.had_timeline() => Err(self.corrupt("it is gone, and turns were recorded here")),
            None => Ok(Stored {
                repo: self.repo,
                commit: None,
                tree: Objects::new(self.repo).empty_tree(),
                state: Timeline::default(),
            }),
            Some(commit) => self.timeline_at(commit).map_err(|error| self.corrupt(&error_chain(&error))),
        }
    }

    /// Reads the timeline that a commit holds.
    pub fn timeline_at(&self, commit: ObjectId) -> Result<Stored<'r>> {
        let tree = Objects::new(self.repo).commit_tree(commit)?;
        let state: Timeline = Objects::new(self.repo).json_at(tree, "state.json")?.context("state.json is missing")?;
        anyhow::ensure!(state.v > 0, "version {} is not known to this oxundo", state.v);
        anyhow::ensure!(state.v <= VERSION, "version {} was made by a newer oxundo, which reads it", state.v);
        anyhow::ensure!(state.next.max(state.next_rescue) < BEYOND_COUNT, "a number is beyond counting");
        Ok(Stored { repo: self.repo, commit: Some(commit), tree, state })
    }

    /// Whether the timeline was made by a newer oxundo.
    pub fn is_newer(&self) -> bool {
        let objects = Objects::new(self.repo);
        let read = || objects.json_at::<Version>(objects.commit_tree(self.tip()?.context("none")?)?, "state.json");
        read().is_ok_and(|state| state.is_some_and(|state| state.v > VERSION))
    }

    /// The refusal that the timeline cannot be read.
    pub fn corrupt(&self, what: &str) -> anyhow::Error {
        let name = Refs::new(self.repo).own_ref(OwnRef::Timeline);
        Refusal::new(Code::Corrupt, format!("the timeline in {name} cannot be read: {what}"))
            .hint("run 'oxundo doctor': it names the last good state and the command that brings it back")
            .into()
    }

    fn checkpoint_at(&self, tree: ObjectId, path: &str) -> Result<Checkpoint> {
        let entry = Objects::new(self.repo).tree_entry(tree, path.into())?;
        let (_, id) = entry.with_context(|| format!("{path} is missing"))?;
        Checkpoints::new(self.repo).read_checkpoint(id)
    }
}

/// What every version of `state.json` has.
#[derive(serde::Deserialize)]
struct Version {
    v: u32,
}

/// Two digits a level, so that one more turn rewrites three small trees.
fn fan(number: u64) -> String {
    format!("{:02}/{:02}/{:02}", number / 10_000, number / 100 % 100, number % 100)
}

/// Where a timeline's tree has a turn.
pub fn turn_directory(number: u64) -> String {
    format!("turns/{}", fan(number))
}

/// Where a timeline's tree lists the turns right above one, or above none.
pub fn above_file(turn: Option<u64>) -> String {
    turn.map_or_else(|| "above".to_owned(), |turn| format!("{}/above", turn_directory(turn)))
}

/// Where an open turn of oxundo's own keeps the journal of its plan, which was finished after an interruption.
pub fn journal_directory(number: u64) -> String {
    format!("{}/journal", turn_directory(number))
}

pub fn named_directory(number: u64) -> String {
    format!("named/{}", fan(number))
}

pub fn rescue_directory(number: u64) -> String {
    format!("rescues/{}", fan(number))
}

/// The path of what a rescue checkpoint may be the only copy of.
pub fn rescued_file(number: u64) -> String {
    format!("rescued/{}", fan(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use crate::model::place::Stack;
    use gix::objs::tree::EntryKind;

    #[test]
    fn turns_fan_out_two_digits_a_level() {
        assert_eq!(turn_directory(17), "turns/00/00/17");
        assert_eq!(turn_directory(1_234_567), "turns/123/45/67");
    }

    fn turn(number: u64, previous: Option<u64>) -> Turn {
        Turn { v: 1, turn: number, previous, agent: "sh".into(), ..Turn::default() }
    }

    /// A timeline with these turns, moved to by real git.
    fn kept(f: &Fixture, turns: &[Turn]) -> ObjectId {
        let mut update = Stored::none(&f.repo).update();
        for turn in turns {
            update.put_turn(turn).expect("keep a turn");
        }
        let (record, _) = update.into_record("kept".to_owned(), Vec::new()).expect("write the timeline");
        let commit = record.timeline_to.expect("a commit");
        f.git(&["update-ref", "refs/oxundo/timeline", &commit.to_string()]);
        commit
    }

    #[track_caller]
    fn corrupt<T>(found: Result<T>, what: &str) {
        let Err(error) = found else { panic!("it is damaged: {what}") };
        let refusal = error.downcast::<Refusal>().expect("a refusal");
        assert_eq!(refusal.code, Code::Corrupt);
        assert!(refusal.message.contains(what), "it says what: {}", refusal.message);
    }

    /// The timeline with a file of its tree replaced or taken out.
    fn with_file(f: &Fixture, base: ObjectId, path: &str, content: Option<&str>) -> ObjectId {
        let objects = Objects::new(&f.repo);
        let tree = objects.commit_tree(base).expect("read the tree");
        let entry = content.map(|content| (EntryKind::Blob, f.blob(content)));
        let tree = objects.edited_tree(tree, &[(path.into(), entry)]).expect("edit the tree");
        let commit = f.id(&["commit-tree", "-m", "damaged", &tree.to_string()]);
        f.git(&["update-ref", "refs/oxundo/timeline", &commit.to_string()]);
        commit
    }

    #[test]
    fn turns_that_were_kept_are_found_by_their_numbers_in_order() {
        let f = Fixture::new();
        let numbers = [1, 9, 10, 99, 100, 10_001, 1_234_567];
        let turns: Vec<Turn> = numbers.iter().map(|number| turn(*number, None)).collect();
        let commit = kept(&f, &turns);
        let stored = Timelines::new(&f.repo).timeline().expect("read it");
        assert_eq!(stored.turn_numbers().expect("list them"), numbers);
        let newest = |most, lowest| stored.newest_turns(most, lowest).expect("list the newest");
        assert_eq!(newest(3, 0), [1_234_567, 10_001, 100]);
        assert_eq!(newest(3, 100), [1_234_567, 10_001, 100]);
        assert_eq!(newest(100, 99), [1_234_567, 10_001, 100, 99]);
        assert_eq!(newest(100, 1_234_568), [0; 0]);
        assert_eq!(newest(0, 0), [0; 0]);
        assert_eq!(stored.turns().expect("read them").into_values().collect::<Vec<_>>(), turns);
        assert_eq!((stored.find_turn(2).expect("look"), stored.rescue_numbers().expect("list them")), (None, vec![]));
        let paths = f.lines(&["ls-tree", "-r", "--name-only", &commit.to_string(), "turns/"]);
        assert!(paths.contains(&"turns/123/45/67/turn.json".to_owned()), "git finds it where it is to be: {paths:?}");
        let mut update = stored.update();
        update.remove_turn(99);
        update.remove_turn(5);
        let (_, left) = update.into_record("removed".to_owned(), Vec::new()).expect("write it");
        assert_eq!(left.turn_numbers().expect("list them"), [1, 9, 10, 100, 10_001, 1_234_567]);
        assert_eq!(stored.turn_numbers().expect("list them"), numbers, "what was read stays as it is");
    }

    #[test]
    fn a_record_that_is_gone_or_makes_no_sense_is_corrupt_and_named() {
        let f = Fixture::new();
        let base = kept(&f, &[turn(1, None), turn(2, Some(1))]);
        let read = || Timelines::new(&f.repo).timeline().expect("the state itself is whole");
        corrupt(read().require_turn(3), "turn 3 is missing");
        corrupt(read().checkpoint(1, Side::Before), "turn 1");
        corrupt(read().named_checkpoint(1), "named/00/00/01 is missing");
        with_file(&f, base, "turns/00/00/02/turn.json", Some("{"));
        corrupt(read().require_turn(2), "turn 2: read turns/00/00/02/turn.json");
        assert_eq!(read().require_turn(1).expect("it is whole"), turn(1, None), "the others can be read");
        with_file(&f, base, "turns/00/00/02/files", Some("{}\n"));
        corrupt(read().turn_files(2), "turn 2");
        with_file(&f, base, "turns/00/00/02/carried/carried.json", Some("1"));
        corrupt(read().return_state(2), "turn 2");
    }

    #[test]
    fn a_chain_that_does_not_go_down_is_corrupt_and_never_walked() {
        let f = Fixture::new();
        let base = kept(&f, &[turn(1, None), turn(2, Some(1))]);
        for odd in [turn(2, Some(2)), turn(2, Some(3)), turn(2, Some(u64::MAX)), turn(1, None)] {
            let text = serde_json::to_string(&odd).expect("write a record");
            with_file(&f, base, "turns/00/00/02/turn.json", Some(&text));
            let stored = Timelines::new(&f.repo).timeline().expect("the state itself is whole");
            corrupt(stored.find_turn(2), "turn 2: its record contradicts itself");
            corrupt(stored.turns(), "turn 2");
        }
    }

    #[test]
    fn a_state_that_this_oxundo_cannot_read_is_corrupt() {
        let f = Fixture::new();
        let base = kept(&f, &[turn(1, None)]);
        let state = |change: fn(&mut Timeline)| {
            let mut state = Timeline::default();
            change(&mut state);
            serde_json::to_string(&state).expect("write a state")
        };
        for (content, what) in [
            (None, "state.json is missing"),
            (Some("[]".to_owned()), "read state.json"),
            (Some(state(|state| state.v = VERSION + 1)), "version 3 was made by a newer oxundo"),
            (Some(state(|state| state.next = BEYOND_COUNT)), "beyond counting"),
            (Some(state(|state| state.next_rescue = u64::MAX)), "beyond counting"),
        ] {
            with_file(&f, base, "state.json", content.as_deref());
            corrupt(Timelines::new(&f.repo).timeline(), what);
        }
        f.git(&["update-ref", "refs/oxundo/timeline", &f.blob("no commit").to_string()]);
        corrupt(Timelines::new(&f.repo).timeline(), "read commit");
    }

    #[test]
    fn a_timeline_that_is_gone_is_missed_only_where_there_was_one() {
        let f = Fixture::new();
        let timelines = Timelines::new(&f.repo);
        assert_eq!(timelines.timeline().expect("there is none").commit, None);
        let commit = kept(&f, &[turn(1, None)]);
        f.repo.scratch().expect("make the directory");
        timelines.remember_timeline(commit);
        f.git(&["update-ref", "-d", "refs/oxundo/timeline"]);
        corrupt(timelines.timeline(), "it is gone");
        assert_eq!(timelines.remembered_timeline(), Some(commit));
        timelines.forget_timeline().expect("forget it");
        assert_eq!(timelines.timeline().expect("nobody misses it").commit, None);
    }

    #[test]
    fn the_state_of_the_stack_and_the_pins_survive_the_commit() {
        let f = Fixture::new();
        let pinned = f.commit("a", "one");
        let mut update = Stored::none(&f.repo).update();
        update.state.next = 5;
        update
            .state
            .stacks
            .insert("refs/heads/caf\0e9".into(), Stack { top: Some(3), undone: vec![4], ..Stack::default() });
        update.state.pins = vec![
            crate::model::timeline::Pin(pinned),
            crate::model::timeline::Pin(ObjectId::from_bytes_or_panic(&[9; 20])),
        ];
        let (record, written) = update.into_record("kept".to_owned(), Vec::new()).expect("write it");
        let commit = record.timeline_to.expect("a commit");
        f.git(&["update-ref", "refs/oxundo/timeline", &commit.to_string()]);
        let read = Timelines::new(&f.repo).timeline().expect("read it");
        assert_eq!((read.commit, read.tree, &read.state), (Some(commit), written.tree, &written.state));
        let parents = f.lines(&["log", "-1", "--format=%P", &commit.to_string()]);
        assert_eq!(parents, [pinned.to_string()], "git keeps the pinned commit that is there");
    }
}
