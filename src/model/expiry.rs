//! Which turns expire: those older than the limit, but never a turn that can be
//! redone, nor one of the newest that can be undone.

use crate::model::place::Stack;
use crate::model::timeline::Timeline;
use crate::model::turn::{Footing, Turn};
use std::collections::{BTreeMap, BTreeSet};

/// This many turns of each branch, and this many rescue checkpoints, never expire.
pub const NEWEST: usize = 50;

/// Which of a timeline's turns go.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// The turns that go.
    pub expired: BTreeSet<u64>,
    /// The turns that stay, but whose records change because a turn below them goes.
    pub changed: Vec<Turn>,
}

/// Decides which turns go. `is_old` says whether a turn ended before the limit; those that `is_held` names stay, however old they
/// are.
pub fn expiry(
    timeline: &Timeline,
    turns: &BTreeMap<u64, Turn>,
    is_old: impl Fn(&Turn) -> bool,
    is_held: impl Fn(&Turn) -> bool,
) -> Expiry {
    let mut kept: BTreeSet<u64> = timeline.open.into_iter().collect();
    for stack in timeline.stacks.values() {
        kept.extend(&stack.undone);
        let mut newest = NEWEST.saturating_sub(stack.undone.len());
        let mut at = stack.top.and_then(|top| turns.get(&top));
        while let Some(turn) = at
            && (newest > 0 || !is_old(turn))
        {
            newest = newest.saturating_sub(1);
            kept.insert(turn.turn);
            at = below(stack, turn).and_then(|below| turns.get(&below));
        }
    }
    kept.extend(turns.values().filter(|turn| turn.kept || is_held(turn)).map(|turn| turn.turn));
    let stacked = stacked(timeline, turns);
    kept.extend(turns.values().filter(|turn| !stacked.contains(&turn.turn) && !is_old(turn)).map(|turn| turn.turn));
    Expiry {
        expired: turns.keys().filter(|turn| !kept.contains(turn)).copied().collect(),
        changed: changed(turns, &kept),
    }
}

/// The turns that can be undone or redone.
fn stacked(timeline: &Timeline, turns: &BTreeMap<u64, Turn>) -> BTreeSet<u64> {
    let mut stacked: BTreeSet<u64> = timeline.stacks.values().flat_map(|stack| stack.undone.iter().copied()).collect();
    for stack in timeline.stacks.values() {
        let mut at = stack.top;
        while let Some(turn) = at.and_then(|turn| turns.get(&turn)) {
            // On another line it may stand above others.
            if !stacked.insert(turn.turn) && stack.lifted.is_empty() {
                break;
            }
            at = below(stack, turn);
        }
    }
    stacked
}

/// The turn below one on a branch's line.
fn below(stack: &Stack, turn: &Turn) -> Option<u64> {
    let lift = stack.lifted.get(&turn.turn).filter(|lift| lift.previous < turn.turn);
    lift.map_or(turn.previous, |lift| lift.below())
}

/// A turn right above one that goes becomes the lowest of its branch; depths are counted from there.
fn changed(turns: &BTreeMap<u64, Turn>, kept: &BTreeSet<u64>) -> Vec<Turn> {
    let mut depths: BTreeMap<u64, u64> = BTreeMap::new();
    let mut changed = Vec::new();
    for turn in kept.iter().filter_map(|number| turns.get(number)).filter(|turn| turn.ended_at.is_some()) {
        let previous = turn.previous.filter(|below| kept.contains(below));
        let counted =
            previous.and_then(|below| depths.get(&below)).map_or(1, |below| below + u64::from(!turn.is_part()));
        // What the user had dropped below it was not counted.
        let depth = turn.depth.min(counted);
        depths.insert(turn.turn, depth);
        let footing = turn.footing.map(|footing| standing(footing, kept));
        if (previous, depth, footing) != (turn.previous, turn.depth, turn.footing) {
            changed.push(Turn { previous, depth, footing, ..turn.clone() });
        }
    }
    changed
}

/// Below a turn that goes there is nothing.
fn standing(footing: Footing, kept: &BTreeSet<u64>) -> Footing {
    let there = |turn: u64| if kept.contains(&turn) { turn } else { 0 };
    let back_at = footing.back_at.filter(|turn| kept.contains(turn));
    Footing { base: there(footing.base), back_to: footing.back_to.map(there), back_at, ..footing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::place::Lift;

    fn expiry(timeline: &Timeline, turns: &BTreeMap<u64, Turn>, is_old: impl Fn(&Turn) -> bool) -> Expiry {
        super::expiry(timeline, turns, is_old, |_| false)
    }

    #[test]
    fn what_stands_below_a_turn_on_a_branchs_line_stays_with_it() {
        let turn = |number, previous| {
            (number, Turn { turn: number, previous, ended_at: Some(String::new()), ..Turn::default() })
        };
        let turns = BTreeMap::from([turn(1, None), turn(2, Some(1)), turn(3, None), turn(4, None)]);
        let mut timeline = timeline(3, &[]);
        for stack in timeline.stacks.values_mut() {
            stack.lifted.insert(3, Lift { previous: 2, depth: 3 });
        }
        assert_eq!(expiry(&timeline, &turns, |_| true).expired, BTreeSet::from([4]));
        // Nothing is below it there, whatever it was made on.
        let turns = BTreeMap::from([turn(1, None), turn(2, Some(1)), turn(3, Some(2))]);
        for stack in timeline.stacks.values_mut() {
            stack.lifted.insert(3, Lift { previous: 0, depth: 1 });
        }
        assert_eq!(expiry(&timeline, &turns, |_| true).expired, BTreeSet::from([1, 2]));
    }

    /// Turns 1 to `count` on one branch, each on the one below it.
    fn line(count: u64) -> (Timeline, BTreeMap<u64, Turn>) {
        let mut turns = BTreeMap::new();
        let timeline = timeline(count, &[]);
        for number in 1..=count {
            let previous = (number > 1).then(|| number - 1);
            let turn = Turn { turn: number, previous, depth: number, ended_at: Some(String::new()), ..Turn::default() };
            turns.insert(number, turn);
        }
        (timeline, turns)
    }

    fn timeline(top: u64, undone: &[u64]) -> Timeline {
        let stack = Stack { top: Some(top), undone: undone.to_vec(), ..Stack::default() };
        Timeline { stacks: [("main".to_owned(), stack)].into(), ..Timeline::default() }
    }

    #[test]
    fn the_newest_stay_however_old_and_count_from_the_lowest() {
        let (timeline, turns) = line(60);
        let expiry = expiry(&timeline, &turns, |_| true);
        assert_eq!(expiry.expired, (1..=10).collect());
        let ends: Vec<_> = expiry.changed.iter().map(|turn| (turn.turn, turn.previous, turn.depth)).collect();
        assert_eq!((ends.len(), ends[0], ends[49]), (50, (11, None, 1), (60, Some(59), 50)));
    }

    #[test]
    fn young_turns_stay_and_nothing_below_an_expired_one_does() {
        let (timeline, turns) = line(80);
        assert_eq!(expiry(&timeline, &turns, |turn| turn.turn <= 7).expired, (1..=7).collect());
        let odd = expiry(&timeline, &turns, |turn| turn.turn == 20);
        assert_eq!(odd.expired, (1..=20).collect(), "a chain has no gaps");
        assert_eq!(expiry(&timeline, &turns, |_| false), Expiry::default());
    }

    #[test]
    fn what_is_to_be_kept_stays_without_those_below_it() {
        let (timeline, mut turns) = line(60);
        turns.get_mut(&5).expect("it is there").kept = true;
        let expiry = expiry(&timeline, &turns, |_| true);
        assert_eq!(expiry.expired, (1..=10).filter(|turn| *turn != 5).collect());
        let fifth = expiry.changed.iter().find(|turn| turn.turn == 5).map(|turn| (turn.previous, turn.depth));
        assert_eq!(fifth, Some((None, 1)));
    }

    #[test]
    fn undone_turns_stay_and_dropped_ones_go_by_their_age() {
        let (_, turns) = line(55);
        let mut timeline = timeline(53, &[54, 55]);
        assert_eq!(expiry(&timeline, &turns, |_| true).expired, (1..=5).collect());
        timeline.stacks.entry("main".into()).or_default().undone.clear();
        let expired = expiry(&timeline, &turns, |turn| turn.turn != 54).expired;
        assert_eq!(expired, [1, 2, 3, 55].into(), "55 was dropped and is old, 54 is young");
    }
}
