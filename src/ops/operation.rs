//! What an operation of `log --ops` kept of the worktree: the state in which a turn began or had ended, the one before an
//! undo or a redo, or the one that was named. `op:12` means it.

use crate::git::timeline::Timelines;
use crate::git::timeline::oplog::Operation;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::checkpoint::Checkpoint;
use crate::model::timeline::Timeline;
use crate::ops::view::View;
use anyhow::Result;

/// The operations with the numbers by which their states are named, the newest first, at most so many. One that kept no state
/// has none, nor has one that was taken back, and what took it back: the next one gets that number. The first release did not number them.
pub fn numbered(view: &View<'_>, most: usize) -> Result<Vec<(Option<u64>, Operation)>> {
    let timelines = Timelines::new(view.repo);
    let mut operations = timelines.operations()?;
    let all = operations.len() as u64;
    // What took the one below it back is told by that.
    operations.truncate(most.saturating_add(1));
    let known = |at: usize| {
        let operation: &Operation = &operations[at];
        timelines.timeline_at(operation.commit).map_or(0, |stored| stored.state.operation)
    };
    let all = names(&numbers(operations.len(), all, &known)).into_iter().zip(operations);
    let named = all.map(|(name, operation)| (name.filter(|_| !operation.keeps_nothing()), operation));
    Ok(named.take(most).collect())
}

/// The numbers of operations that are names, the newest first: each is the name of one.
fn names(numbers: &[u64]) -> Vec<Option<u64>> {
    let mut least = u64::MAX;
    let name = |(at, number): (usize, &u64)| {
        let is_taken_back = *number > least;
        let takes_back = numbers.get(at + 1).is_some_and(|below| below > number);
        least = least.min(*number);
        Some(*number).filter(|_| !is_taken_back && !takes_back)
    };
    numbers.iter().enumerate().map(name).collect()
}

/// The numbers of operations, the newest first, of which each says its own, or 0. Most are one more than the one below, and
/// where two are as far apart as that makes them, all between are: these are not read.
fn numbers(count: usize, all: u64, known: &dyn Fn(usize) -> u64) -> Vec<u64> {
    let Some(end) = count.checked_sub(1) else { return Vec::new() };
    let mut numbers = vec![0; count];
    (numbers[0], numbers[end]) = (known(0), known(end));
    let mut gaps = vec![(0, end)];
    while let Some((new, old)) = gaps.pop() {
        if old - new < 2 {
            continue;
        }
        let (above, below) = (numbers[new], numbers[old]);
        if below != 0 && above == below + (old - new) as u64 {
            for (number, at) in (below..above).rev().zip(new + 1..old) {
                numbers[at] = number;
            }
        } else if (above, below) != (0, 0) {
            let middle = usize::midpoint(new, old);
            numbers[middle] = known(middle);
            gaps.extend([(new, middle), (middle, old)]);
        }
    }
    let mut last = all + 1;
    for number in &mut numbers {
        last = if *number == 0 { last.saturating_sub(1) } else { *number };
        *number = last;
    }
    numbers
}

/// The state that an operation kept; none where there is no such operation, or it kept none.
pub fn state_of(view: &View<'_>, number: u64) -> Result<Option<Checkpoint>> {
    let timelines = Timelines::new(view.repo);
    let mut operations = numbered(view, usize::MAX)?
        .into_iter()
        .skip_while(|(at, _)| *at != Some(number))
        .map(|(_, operation)| operation);
    let read = |operation: Operation| timelines.timeline_at(operation.commit);
    let mut stored = operations.next().map(read).transpose()?;
    while let Some(at) = stored {
        // What did not touch the worktree left it as the operation before it.
        let before = operations.next().map(read).transpose()?;
        if let Some(kept) = kept(&at, before.as_ref())? {
            return Ok(Some(kept));
        }
        stored = before;
    }
    Ok(None)
}

/// What was there before oxundo last put something else in its place, be it by an undo, which keeps a rescue, or by what is a turn
/// itself, as `undo --revert`. None where no operation is known that did.
pub fn last_replaced(view: &View<'_>) -> Result<Option<Checkpoint>> {
    let timelines = Timelines::new(view.repo);
    let mut at = None;
    for operation in timelines.operations()? {
        // Git may have let the rest of them go.
        let Ok(before) = timelines.timeline_at(operation.commit) else { break };
        if let Some(now) = at.replace(before.clone())
            && let Some(found) = replaced(view, &now.state, &before.state)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn replaced(view: &View<'_>, now: &Timeline, was: &Timeline) -> Result<Option<Checkpoint>> {
    let timeline = &view.timeline;
    if was.next_rescue < now.next_rescue && timeline.rescue_tree(was.next_rescue)?.is_some() {
        return timeline.rescue(was.next_rescue).map(Some);
    }
    let begun = now.open.filter(|_| now.open != was.open).map(|turn| timeline.find_turn(turn)).transpose()?.flatten();
    begun.filter(|turn| turn.made.is_some()).map(|turn| timeline.checkpoint(turn.turn, Side::Before)).transpose()
}

/// What one operation kept, by what the timeline was before it.
fn kept(stored: &Stored<'_>, before: Option<&Stored<'_>>) -> Result<Option<Checkpoint>> {
    let (now, was) = (&stored.state, before.map(|before| &before.state));
    let was_open = was.and_then(|was| was.open);
    if let Some(open) = now.open.filter(|_| now.open != was_open) {
        return stored.checkpoint(open, Side::Before).map(Some);
    }
    if let (Some(ended), None) = (was_open, now.open)
        && stored.find_turn(ended)?.is_some()
    {
        return stored.checkpoint(ended, Side::After).map(Some);
    }
    if let Some(was) = was.filter(|was| was.next_rescue < now.next_rescue)
        && let Ok(rescue) = stored.rescue(was.next_rescue)
    {
        return Ok(Some(rescue));
    }
    let is_new = |number: u64| was.is_some_and(|was| was.named.values().all(|named| named.number != number));
    match now.named.values().find(|named| is_new(named.number)) {
        Some(named) => stored.named_checkpoint(named.number).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    /// What reading each of them gives.
    fn by_reading(all: &[u64]) -> Vec<u64> {
        let mut last = all.len() as u64 + 1;
        let number = |known: &u64| {
            last = if *known == 0 { last.saturating_sub(1) } else { *known };
            last
        };
        all.iter().map(number).collect()
    }

    fn told(all: &[u64], most: usize) -> (Vec<u64>, usize) {
        let read = Cell::new(0);
        let known = |at: usize| {
            read.set(read.get() + 1);
            all[at]
        };
        (numbers(all.len().min(most), all.len() as u64, &known), read.get())
    }

    #[test]
    fn what_counts_up_is_read_at_its_ends_alone() {
        let all: Vec<u64> = (1..=20_000).rev().collect();
        assert_eq!(told(&all, usize::MAX), (all.clone(), 2));
        assert_eq!(told(&all, 50), (all[..50].to_vec(), 2));
        assert_eq!(told(&all[..1], usize::MAX).0, [20_000]);
        assert_eq!(told(&[], usize::MAX).0, Vec::<u64>::new());
    }

    #[test]
    fn an_operation_that_was_taken_back_leaves_its_number_to_the_next() {
        // checkpoint, drop 2, begin 2, end 1, begin 1
        assert_eq!(names(&[3, 2, 3, 2, 1]), [Some(3), None, None, Some(2), Some(1)]);
        assert_eq!(names(&[2, 3, 2, 1]), [None, None, Some(2), Some(1)]);
        assert_eq!(names(&[3, 2]), [Some(3), Some(2)]);
        assert_eq!(names(&[]), []);
    }

    proptest! {
        #[test]
        fn the_numbers_are_those_that_reading_all_of_them_gives(first in 0_usize..6, taken in prop::collection::vec(prop::bool::weighted(0.2), 0..40)) {
            // The first release numbered none; what takes the last one back has the number before it.
            let mut all = vec![0; first];
            let mut last = first as u64;
            for is_taken in taken {
                last = if is_taken && last > 1 { last - 1 } else { last + 1 };
                all.push(last);
            }
            all.reverse();
            prop_assert_eq!(told(&all, usize::MAX).0, by_reading(&all));
        }
    }
}
