//! Where HEAD stands on the timeline: the last turn done there, and those that redo would bring back. Commits decide,
//! not the branch's name. A turn that moved HEAD is done where the commit that it ended on is in HEAD's history; turns
//! that moved no ref stand directly above the last such turn below them, and go with it. Where HEAD's history has the turns
//! of several lines, they stand above each other by their numbers ([`joined`]). Files never decide.
//!
//! ```text
//!          1 ◀── 2 ◀── g ◀── 3        each turn knows the one below it; g moved no ref
//!   c0 ── c1 ── c2 ───────── c3        the commits that they ended on
//!
//!   HEAD at c3, on whatever branch        3 is done, and so are g, 2 and 1
//!   own commits on top of c3              the same: c3 is in HEAD's history
//!   at c2, after a reset of the user's    g is done, as it goes with 2; 3 was undone by hand
//!   at c3 again                           3 is done again
//! ```
//!
//! A line of turns from which git took the branch away is kept as it was ([`left`](crate::model::timeline::Timeline::left)), and
//! counts where HEAD comes back to it.
//!
//! What was recorded last is asked first ([`Recorded`]): the commits only say which turn's end is the nearest in HEAD's
//! history ([`Found`]), not what was done with those that moved no ref.

use anyhow::Result;
use gix::ObjectId;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How many turns the recorded line is followed down.
const FAR: usize = 1024;

/// In the middle of how many other lines HEAD is looked for, and how far from their ends.
const MOST_LINES: usize = 8;
const NEAR: usize = 64;

/// How many turns of several lines are put above each other: below them it is the line of the newest.
const MOST_JOINED: usize = 256;

/// The turns of one branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// The last turn done.
    pub top: Option<u64>,
    /// The undone turns, next to redo first.
    pub undone: Vec<u64>,
    /// Those of them that the user took off with git: their files may be there still.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub by_hand: BTreeSet<u64>,
    /// The turns that stand above others than those above which they were made: HEAD's history has the turns of several lines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub lifted: BTreeMap<u64, Lift>,
}

impl Stack {
    /// As it was before the user took turns off with git, as far as that can be told.
    pub fn before_by_hand(mut self) -> Self {
        let taken = self.undone.iter().take_while(|turn| self.by_hand.contains(turn)).count();
        self.top = self.undone.drain(..taken).next_back().or(self.top);
        self.by_hand.retain(|turn| self.undone.contains(turn));
        self
    }
}

/// Where a turn stands that was made above another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lift {
    /// The turn below it, 0 for none.
    pub previous: u64,
    /// How many turns stand there, with it.
    pub depth: u64,
}

impl Lift {
    /// The turn below it.
    pub fn below(self) -> Option<u64> {
        Some(self.previous).filter(|previous| *previous != 0)
    }
}

/// A turn, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its number.
    pub turn: u64,
    /// The turn below it.
    pub previous: Option<u64>,
    /// The commit that HEAD was at when it began.
    pub from: Option<ObjectId>,
    /// The commit with the user's work upon which it began, where there is one.
    pub dirty: Option<ObjectId>,
    /// The commit that HEAD was at when it ended.
    pub to: Option<ObjectId>,
    /// The last turn that moved HEAD among this one and those below it, 0 for none; older records do not have it.
    pub base: Option<u64>,
    /// Whether it did nothing but put HEAD on a new branch.
    pub is_branch_alone: bool,
}

impl Node {
    /// Whether it moved HEAD to another commit.
    pub fn moved(&self) -> bool {
        self.from != self.to
    }

    /// Whether it began where HEAD is, be it with the user's work committed.
    pub fn begins_at(&self, head: Option<ObjectId>) -> bool {
        self.from == head || head.is_some() && self.dirty == head
    }
}

/// Reads a turn.
pub type Read<'a> = dyn Fn(u64) -> Result<Node> + 'a;

/// The nearest end of a turn in HEAD's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The turn.
    pub turn: u64,
    /// The commit.
    pub commit: ObjectId,
}

/// What the timeline says of where the cursor was.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// The line of turns that was walked last.
    pub last: Stack,
    /// Whether that was on the branch that HEAD is on.
    pub is_here: bool,
    /// What is recorded of the branch that HEAD is on.
    pub here: Option<Stack>,
    /// What is recorded of other branches, and of lines from which git took one away.
    pub others: Vec<Stack>,
    /// Those lines, the last one first.
    pub left: Vec<Stack>,
    /// Whether git has put HEAD's branch where it was before.
    pub comes_back: bool,
}

impl Recorded {
    /// The line of the branch that HEAD is on, where another one was walked last.
    pub fn own(&self) -> Option<&Stack> {
        self.here.as_ref().filter(|_| !self.is_here)
    }
}

/// Where HEAD stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The last turn done.
    pub top: Option<u64>,
    /// The turns that redo would bring back, the next one first.
    pub undone: Vec<u64>,
    /// Those of them that the user took off with git.
    pub by_hand: BTreeSet<u64>,
}

impl Place {
    /// As it was recorded.
    pub fn of(stack: &Stack) -> Self {
        let Stack { top, undone, by_hand, .. } = stack.clone();
        Self { top, undone, by_hand }
    }

    /// As it is to be recorded.
    pub fn to_stack(&self) -> Stack {
        let Self { top, undone, mut by_hand } = self.clone();
        by_hand.retain(|turn| undone.contains(turn));
        Stack { top, undone, by_hand, lifted: BTreeMap::new() }
    }
}

/// The last turn that moved HEAD among a turn and those below it.
pub fn base_of(top: Option<u64>, read: &Read<'_>) -> Result<Option<u64>> {
    let mut at = top;
    while let Some(turn) = at {
        let node = read(turn)?;
        if node.moved() {
            return Ok(Some(turn));
        }
        if let Some(base) = node.base {
            return Ok(Some(base).filter(|base| *base != 0));
        }
        at = node.previous;
    }
    Ok(None)
}

/// Where the last turn that moved HEAD among a turn and those below it ended.
pub fn end_below(top: Option<u64>, read: &Read<'_>) -> Result<Option<Found>> {
    let Some(base) = base_of(top, read)? else { return Ok(None) };
    Ok(read(base)?.to.map(|commit| Found { turn: base, commit }))
}

/// How the turns of several lines that are all done, of each of which the last turn is given, stand above each other, by their numbers:
/// those that stand above another one than they were made on, or above such, each with the one below it, the lowest first.
pub fn joined(tops: &BTreeSet<u64>, read: &Read<'_>) -> Result<Vec<(u64, u64)>> {
    let (mut next, mut line) = (tops.clone(), Vec::new());
    while next.len() > 1
        && line.len() < MOST_JOINED
        && let Some(turn) = next.pop_last()
    {
        let previous = read(turn)?.previous;
        line.push((turn, previous));
        next.extend(previous);
    }
    let mut below = next.pop_last();
    let mut joined = Vec::new();
    for (turn, made_on) in line.into_iter().rev() {
        if let Some(below) = below.filter(|below| !joined.is_empty() || made_on != Some(*below)) {
            joined.push((turn, below));
        }
        below = Some(turn);
    }
    Ok(joined)
}

/// Decides where HEAD stands, by the nearest end of a turn in its history.
pub fn decide(recorded: &Recorded, head: Option<ObjectId>, found: Option<Found>, read: &Read<'_>) -> Result<Place> {
    let Recorded { last, others, .. } = recorded;
    let base = |stack: &Stack| base_of(stack.top, read);
    let fits = |stack: &Stack| fits(base(stack)?, found, read);
    let own = recorded.own();
    if fits(last)? {
        // The branch has a line of its own; what stands above the same commit is the same on every branch that began below it.
        let Some(own) = own else { return with_by_hand(Place::of(last), recorded.comes_back, read) };
        let is_its = if base(own)? == base(last)? { part(own, last, read)? } else { fits(own)? };
        return Ok(Place::of(if is_its { own } else { last }));
    }
    if let Some(own) = own
        && fits(own)?
    {
        return left_by_git(own, last, read);
    }
    let along = along(recorded, head, found, read)?;
    if !along.as_ref().map_or(Ok(false), |place| begins_here(place, head, read))? {
        for line in recorded.left.iter().filter(|_| recorded.comes_back) {
            if line.top != base(line)? && fits(line)? {
                return left_by_git(line, last, read);
            }
        }
        for line in own.into_iter().chain(others).take(MOST_LINES) {
            if let Some(top) = below_next(line, head, found, read)? {
                return Ok(Place { top: Some(top), ..Place::default() });
            }
        }
    }
    if let Some(place) = along {
        return Ok(place);
    }
    for other in others {
        if fits(other)? {
            return left_by_git(other, last, read);
        }
    }
    Ok(Place { top: found.map(|found| found.turn), ..Place::default() })
}

/// A place to which git has brought HEAD back: what moved no ref and was taken off by hand comes with what it stands on.
fn with_by_hand(mut place: Place, comes_back: bool, read: &Read<'_>) -> Result<Place> {
    while let Some(next) = place.undone.first().copied().filter(|next| comes_back && place.by_hand.contains(next))
        && !read(next)?.moved()
    {
        place.top = Some(next);
        place.undone.remove(0);
    }
    Ok(Place::of(&place.to_stack()))
}

/// Whether the next turn to redo began where HEAD is.
fn begins_here(place: &Place, head: Option<ObjectId>, read: &Read<'_>) -> Result<bool> {
    place.undone.first().map_or(Ok(false), |next| Ok(read(*next)?.begins_at(head)))
}

/// Of a line on which a turn began where HEAD is, the last one below that, which moved no ref itself.
fn below_next(line: &Stack, head: Option<ObjectId>, found: Option<Found>, read: &Read<'_>) -> Result<Option<u64>> {
    let Some((Some(top), above)) = down_to(line.top, found, NEAR, read)? else { return Ok(None) };
    let is_it = above.last().is_some_and(|next| next.begins_at(head)) && !read(top)?.moved();
    Ok(is_it.then_some(top))
}

/// Goes down a line to the end that was found in HEAD's history: the last turn done there, and those above it, the last of the line first.
fn down_to(
    top: Option<u64>,
    found: Option<Found>,
    far: usize,
    read: &Read<'_>,
) -> Result<Option<(Option<u64>, Vec<Node>)>> {
    let is_there = |node: &Node| {
        found.is_some_and(|found| node.turn == found.turn || (node.moved() && node.to == Some(found.commit)))
    };
    let (mut above, mut at) = (Vec::new(), top);
    while let Some(turn) = at {
        let node = read(turn)?;
        if is_there(&node) {
            break;
        }
        if above.len() == far {
            return Ok(None);
        }
        at = node.previous;
        above.push(node);
    }
    if at.is_none() && found.is_some() {
        return Ok(None);
    }
    // What moved no ref goes with the turn below it.
    while let Some(node) = above.pop_if(|node| !node.moved()) {
        at = Some(node.turn);
    }
    Ok(Some((at, above)))
}

/// A place on another line than the one walked last: which of its undone turns were done there until git took HEAD away.
/// They may have been undone here and redone since, and then git left the files as they are now.
fn left_by_git(stack: &Stack, last: &Stack, read: &Read<'_>) -> Result<Place> {
    let mut place = Place::of(stack);
    let lowest = place.undone.iter().min().copied().unwrap_or(u64::MAX);
    let mut at = last.top;
    for _ in 0..FAR {
        let Some(turn) = at.filter(|turn| *turn >= lowest) else { break };
        if place.undone.contains(&turn) {
            place.by_hand.insert(turn);
        }
        at = read(turn)?.previous;
    }
    Ok(place)
}

/// Whether what is done on two lines differs by a branch that one of them began.
fn part(one: &Stack, other: &Stack, read: &Read<'_>) -> Result<bool> {
    let [one, other] = [one, other].map(|stack| stack.top.unwrap_or(0));
    let (back, forward) = way(one, other, |turn| Ok(read(turn)?.previous.unwrap_or(0)))?;
    for turn in back.into_iter().chain(forward) {
        if read(turn)?.is_branch_alone {
            return Ok(true);
        }
    }
    Ok(one == other)
}

/// Whether this is the last turn that moved HEAD, by what was found in HEAD's history.
fn fits(base: Option<u64>, found: Option<Found>, read: &Read<'_>) -> Result<bool> {
    Ok(match (base, found) {
        (None, None) => true,
        (Some(base), Some(found)) => base == found.turn || read(base)?.to == Some(found.commit),
        _ => false,
    })
}

/// A place on the line that was walked last: the user has moved HEAD along it.
fn along(recorded: &Recorded, head: Option<ObjectId>, found: Option<Found>, read: &Read<'_>) -> Result<Option<Place>> {
    let last = &recorded.last;
    if let Some(found) = found
        && let Some(at) = last.undone.iter().position(|turn| *turn == found.turn)
    {
        let undone = last.undone[at + 1..].to_vec();
        let place = Place { top: Some(found.turn), undone, by_hand: last.by_hand.clone() };
        return with_by_hand(place, true, read).map(Some);
    }
    let Some((at, above)) = down_to(last.top, found, FAR, read)? else { return Ok(None) };
    // On a branch where no turn was ever made, and that only shares older history with this line, none was undone.
    let is_by_hand = found.is_some() || recorded.is_here || above.last().is_some_and(|next| next.begins_at(head));
    if !is_by_hand {
        return Ok(Some(Place { top: at, ..Place::default() }));
    }
    let taken: Vec<u64> = above.iter().rev().map(|node| node.turn).collect();
    let by_hand = taken.iter().chain(&last.by_hand).copied().collect();
    // What is undone stands above what the user took off, or was made below that.
    if let Some(next) = last.undone.first().filter(|next| taken.iter().all(|turn| turn < *next))
        && read(*next)?.previous == at
        && last.top != at
    {
        return Ok(Some(Place { top: at, undone: last.undone.clone(), by_hand: last.by_hand.clone() }));
    }
    Ok(Some(Place { top: at, undone: [taken, last.undone.clone()].concat(), by_hand }))
}

/// The way from one turn to another, through the last turn that is below both: those to undo, the last one first, and
/// those to redo. `below` gives the turn that undoing one leads to. 0 is the state before all turns.
pub fn way(from: u64, to: u64, below: impl Fn(u64) -> Result<u64>) -> Result<(Vec<u64>, Vec<u64>)> {
    let (mut back, mut forward) = (Vec::new(), Vec::new());
    let (mut from, mut to) = (from, to);
    while from != to {
        // A turn is above turns of smaller numbers only.
        let (at, turns) = if from > to { (&mut from, &mut back) } else { (&mut to, &mut forward) };
        turns.push(*at);
        *at = below(*at)?;
    }
    forward.reverse();
    Ok((back, forward))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn commit(n: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[n; 20])
    }

    #[test]
    fn what_the_user_took_off_with_git_was_done_before_that() {
        let line = |top, undone: &[u64], by_hand: &[u64]| Stack {
            top,
            undone: undone.to_vec(),
            by_hand: by_hand.iter().copied().collect(),
            ..Stack::default()
        };
        assert_eq!(line(None, &[1, 2], &[1, 2]).before_by_hand(), line(Some(2), &[], &[]));
        assert_eq!(line(Some(1), &[2, 3], &[2]).before_by_hand(), line(Some(2), &[3], &[]));
        assert_eq!(line(Some(1), &[2, 3], &[3]).before_by_hand(), line(Some(1), &[2, 3], &[3]));
        assert_eq!(line(Some(1), &[], &[]).before_by_hand(), line(Some(1), &[], &[]));
    }

    /// 1 and 2 moved HEAD, 3 did not, 4 did; 5 moved HEAD from where 2 had left it; 6 stands above 5.
    fn read(turn: u64) -> Result<Node> {
        let node = |previous, from, to| Node {
            turn,
            previous,
            from: Some(commit(from)),
            to: Some(commit(to)),
            ..Node::default()
        };
        Ok(match turn {
            1 => node(None, 100, 1),
            2 => node(Some(1), 1, 2),
            3 => node(Some(2), 2, 2),
            4 => node(Some(3), 2, 4),
            5 => node(Some(2), 2, 5),
            6 => node(Some(5), 5, 5),
            _ => anyhow::bail!("there is no turn {turn}"),
        })
    }

    fn stack(top: u64, undone: &[u64]) -> Stack {
        Stack { top: Some(top).filter(|top| *top != 0), undone: undone.to_vec(), ..Stack::default() }
    }

    fn on_its_branch(last: Stack) -> Recorded {
        Recorded { here: Some(last.clone()), last, is_here: true, others: Vec::new(), ..Recorded::default() }
    }

    fn on_another(last: Stack, here: Option<Stack>) -> Recorded {
        Recorded { last, is_here: false, here, others: Vec::new(), ..Recorded::default() }
    }

    /// The last turn done, those undone, and how many of them by hand.
    fn told(recorded: &Recorded, head: u8, found: Option<u64>) -> (u64, Vec<u64>, usize) {
        let end = |turn| Found { turn, commit: read(turn).expect("read it").to.expect("a commit") };
        let place = decide(recorded, Some(commit(head)), found.map(end), &read).expect("decide");
        (place.top.unwrap_or(0), place.undone, place.by_hand.len())
    }

    #[test]
    fn the_recorded_place_stays_where_its_last_commit_is_in_heads_history() {
        for name in [on_its_branch(stack(4, &[])), on_another(stack(4, &[]), None)] {
            assert_eq!(told(&name, 4, Some(4)), (4, vec![], 0));
            assert_eq!(told(&name, 50, Some(4)), (4, vec![], 0), "own commits are on top");
        }
        assert_eq!(told(&on_its_branch(stack(2, &[3])), 2, Some(2)), (2, vec![3], 0), "3 moved nothing, and is undone");
        assert_eq!(told(&on_its_branch(stack(0, &[1, 2])), 100, None), (0, vec![1, 2], 0));
    }

    #[test]
    fn what_the_user_took_off_is_undone_by_hand_and_what_moved_no_ref_goes_with_the_turn_below() {
        assert_eq!(told(&on_its_branch(stack(4, &[])), 2, Some(2)), (3, vec![4], 1));
        assert_eq!(told(&on_its_branch(stack(4, &[])), 1, Some(1)), (1, vec![2, 3, 4], 3));
        assert_eq!(told(&on_its_branch(stack(3, &[4])), 100, None), (0, vec![1, 2, 3, 4], 3));
        assert_eq!(told(&on_its_branch(stack(2, &[3, 4])), 4, Some(4)), (4, vec![], 0), "and forward again");
    }

    #[test]
    fn a_branch_that_only_shares_older_history_has_no_turns() {
        assert_eq!(told(&on_another(stack(4, &[]), None), 99, None), (0, vec![], 0));
        assert_eq!(told(&on_another(stack(4, &[]), None), 100, None), (0, vec![1, 2, 3, 4], 4), "1 began there");
        assert_eq!(told(&on_another(stack(4, &[]), None), 1, Some(1)), (1, vec![2, 3, 4], 3));
    }

    #[test]
    fn a_branch_has_its_own_line_where_that_is_in_its_history() {
        let other = on_another(stack(6, &[]), Some(stack(4, &[])));
        assert_eq!(told(&other, 4, Some(4)), (4, vec![], 0));
        let other = on_another(stack(6, &[]), Some(stack(2, &[3, 4])));
        assert_eq!(told(&other, 2, Some(2)), (2, vec![3, 4], 0), "its own undone turns, not 5 and 6");
        let gone = Recorded { others: vec![stack(6, &[])], ..on_another(stack(4, &[]), None) };
        assert_eq!(told(&gone, 5, Some(5)), (6, vec![], 0), "what stands above 5 is known from another branch");
    }

    #[test]
    fn what_was_undone_here_and_redone_since_was_taken_off_by_the_switch() {
        let redone_elsewhere = on_another(stack(4, &[]), Some(stack(0, &[1, 2, 3, 4])));
        assert_eq!(told(&redone_elsewhere, 100, None), (0, vec![1, 2, 3, 4], 4));
        let partly = on_another(stack(2, &[3, 4]), Some(stack(0, &[1, 2, 3, 4])));
        assert_eq!(told(&partly, 100, None), (0, vec![1, 2, 3, 4], 2), "3 and 4 were undone by oxundo");
    }

    #[test]
    fn what_stands_above_a_commit_is_the_same_on_every_branch() {
        let undone_elsewhere = on_another(stack(2, &[3]), Some(stack(3, &[])));
        assert_eq!(told(&undone_elsewhere, 2, Some(2)), (2, vec![3], 0));
    }

    #[test]
    fn what_stands_on_a_branch_that_oxundo_began_at_a_commit_is_not_done_where_that_came_from() {
        // 1 moved HEAD, 2 began a branch there, 3 stands on it.
        let read = |turn: u64| {
            let from = if turn == 1 { 100 } else { 1 };
            let (from, to) = (Some(commit(from)), Some(commit(1)));
            let previous = (turn > 1).then(|| turn - 1);
            Ok(Node { turn, previous, from, to, is_branch_alone: turn == 2, ..Node::default() })
        };
        let found = Some(Found { turn: 1, commit: commit(1) });
        let top = |last: Stack, own: Stack| {
            decide(&on_another(last, Some(own)), Some(commit(1)), found, &read).expect("decide").top
        };
        assert_eq!(top(stack(3, &[]), stack(1, &[])), Some(1), "gone back with git");
        assert_eq!(top(stack(1, &[]), stack(3, &[])), Some(3), "and forth");
        assert_eq!(top(stack(2, &[3]), stack(3, &[])), Some(2), "above it all is the same");
    }

    #[test]
    fn where_several_lines_are_done_their_turns_stand_above_each_other_by_their_numbers() {
        // 1 and 2 moved HEAD, each from where the first began; 3 and 4 did not; 5 did, above them.
        let read = |turn: u64| {
            let (from, to) = (Some(commit(100)), Some(commit(u8::try_from(turn)?)));
            let previous = match turn {
                1 | 2 => None,
                3 => Some(1),
                _ => Some(turn - 1),
            };
            let to = if matches!(turn, 3 | 4) { from } else { to };
            Ok(Node { turn, previous, from, to, ..Node::default() })
        };
        let above = |tops: &[u64]| joined(&tops.iter().copied().collect(), &read).expect("read");
        assert_eq!(above(&[4, 2]), [(2, 1), (3, 2), (4, 3)], "3 was made on 1, which is there too");
        assert_eq!(above(&[5, 2]), [(2, 1), (3, 2), (4, 3), (5, 4)]);
        assert!(above(&[4, 1]).is_empty() && above(&[4]).is_empty(), "it is one line");
    }

    #[test]
    fn a_line_without_ends_in_heads_history_is_not_followed_for_ever() {
        let long = |turn: u64| -> Result<Node> {
            let at = |turn: u64| Some(ObjectId::from_bytes_or_panic(&[&[0; 12][..], &turn.to_be_bytes()].concat()));
            Ok(Node {
                turn,
                previous: (turn > 1).then(|| turn - 1),
                from: at(turn - 1),
                to: at(turn),
                ..Node::default()
            })
        };
        let place = decide(&on_its_branch(stack(100_000, &[])), Some(commit(9)), None, &long).expect("decide");
        assert_eq!(place, Place::default());
    }

    #[test]
    fn the_way_leads_through_the_last_turn_below_both() {
        let below = |turn| Ok(read(turn)?.previous.unwrap_or(0));
        assert_eq!(way(4, 2, below).expect("a way"), (vec![4, 3], vec![]));
        assert_eq!(way(4, 6, below).expect("a way"), (vec![4, 3], vec![5, 6]));
        assert_eq!(way(6, 0, below).expect("a way"), (vec![6, 5, 2, 1], vec![]));
        assert_eq!(way(3, 3, below).expect("a way"), (vec![], vec![]));
    }

    proptest! {
        #[test]
        fn the_way_ends_where_it_is_to_and_never_passes_a_turn_twice(
            tree in prop::collection::vec(any::<prop::sample::Index>(), 1..20), from: prop::sample::Index, to: prop::sample::Index,
        ) {
            let below: Vec<u64> = tree.iter().enumerate().map(|(at, below)| below.index(at + 1) as u64).collect();
            let (from, to) = (from.index(below.len() + 1) as u64, to.index(below.len() + 1) as u64);
            let under = |turn: u64| below[usize::try_from(turn).expect("small") - 1];
            let (back, forward) = way(from, to, |turn| Ok(under(turn))).expect("a way");
            let mut at = from;
            for turn in &back {
                prop_assert_eq!(at, *turn);
                at = under(at);
            }
            for turn in &forward {
                prop_assert_eq!(at, under(*turn));
                at = *turn;
            }
            prop_assert_eq!(at, to);
            prop_assert!(back.iter().all(|turn| !forward.contains(turn)));
        }
    }
}
