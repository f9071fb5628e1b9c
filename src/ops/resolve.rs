//! What a user's words for a turn or a state mean: `17`, `@~2`, `17:before`, a checkpoint's name, a commit.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::bytes::{in_quotes, instead, quoted_line, sanitized, shell_word};
use crate::model::checkpoint::Checkpoint;
use crate::model::step::{Step, StepName};
use crate::model::timeline::TurnSpec;
use crate::model::turn::Turn;
use crate::ops::dropped::{LOOKED_AT, fates, picked};
use crate::ops::elsewhere::{self, without_own_name};
use crate::ops::operation::{last_replaced, state_of};
use crate::ops::turn::states;
use crate::ops::view::{View, last_whole};
use anyhow::{Error, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::ffi::OsString;

/// The number of the turn that these words mean; 0 is the state before the first.
pub fn resolve(view: &View<'_>, words: &str) -> Result<u64> {
    let (timeline, words) = (&view.timeline, without_own_name(view, words));
    if let Some(named) = timeline.state.named.get(words) {
        let turn = named.top.unwrap_or(0);
        if turn != 0 && timeline.find_turn(turn)?.is_none() {
            let name = shell_word(words.as_bytes());
            let message = format!("turn {turn}, the last one done at '{}', has expired", sanitized(words));
            let hint = format!("run 'oxundo restore --exact {name}' to go to that state itself");
            return Err(Refusal::new(Code::NotFound, message).hint(hint).into());
        }
        return Ok(turn);
    }
    let unknown = || missing(&format!("there is no turn '{words}' here")).into();
    let spec = match TurnSpec::parse(words) {
        Ok(spec) => spec,
        // Whatever git finds a commit by names the turn that made it.
        Err(message) => {
            if let Some(refusal) = elsewhere::refusal(view, words)? {
                return Err(refusal.into());
            }
            if let Some(refusal) = whole_turn(view, words) {
                return Err(refusal.into());
            }
            let is_state = kept_prefix(words) > 0
                || words == "@rescue"
                || [":before", ":after"].iter().any(|side| words.ends_with(side));
            if is_state && state_at(view, words).is_ok() {
                let message = format!("{} is a state, and a turn is wanted", in_quotes(words.as_bytes().as_bstr()));
                let name = shell_word(words.as_bytes());
                let hint = format!("run 'oxundo restore --exact {name}' to go to that state itself");
                return Err(Refusal::new(Code::NotFound, message).hint(hint).into());
            }
            let missing = || no_step(view, words).unwrap_or_else(|| missing(&message));
            let commit = Objects::new(view.repo).commit_named(words)?.ok_or_else(missing)?;
            return turn_of_commit(view, commit)?.ok_or_else(unknown);
        }
    };
    match spec {
        TurnSpec::Number(0) => Ok(0),
        TurnSpec::Number(number) => match timeline.find_turn(number)? {
            Some(_) => Ok(number),
            None => Err(unknown()),
        },
        TurnSpec::Below(n) => {
            let mut at = view.last_whole()?;
            for _ in 0..n {
                let Some(number) = at else { break };
                at = last_whole(timeline, timeline.require_turn(number)?.previous)?;
            }
            at.map_or_else(|| Err(none_done(view, words).unwrap_or_else(unknown)), Ok)
        }
        TurnSpec::Commit(digits) => {
            let Ok(commit) = Objects::new(view.repo).find_commit_id(&digits) else { return Err(unknown()) };
            turn_of_commit(view, commit)?.ok_or_else(unknown)
        }
    }
}

/// The refusal of a step where only a whole turn will do: what can be done with a step.
fn whole_turn(view: &View<'_>, words: &str) -> Option<Refusal> {
    let (turn, step) = step_of(view, &StepName::parse(words)?).ok()?;
    let (name, turn) = (step.name(), turn.turn);
    let is_undone = view.place().ok()?.undone.contains(&turn);
    let out = if is_undone { String::new() } else { format!(", 'oxundo undo --only {name}' to take it out") };
    let refusal = Refusal::new(Code::Usage, format!("'{words}' is a step, and a whole turn is wanted: {turn}"));
    Some(refusal.hint(format!("run 'oxundo show {name}' to see the step{out}")))
}

/// The refusal of a step that is not there.
fn no_step(view: &View<'_>, words: &str) -> Option<Refusal> {
    step_of(view, &StepName::parse(words)?).err()?.downcast().ok()
}

/// The turn of this worktree that made a commit.
fn turn_of_commit(view: &View<'_>, commit: ObjectId) -> Result<Option<u64>> {
    for note in Refs::new(view.repo).notes_on(&[commit])?.into_iter().flatten() {
        if note.worktree == view.repo.worktree_id()
            && view.timeline.find_turn(note.turn)?.is_some_and(|turn| turn.knows(&commit))
        {
            return Ok(Some(note.turn));
        }
    }
    // The user has made it anew of the turn's own: with another message, or on top of another one.
    let mut stand_for = picked(view)?;
    stand_for.extend(fates(view, view.timeline.state.next.saturating_sub(LOOKED_AT))?.copies);
    Ok(stand_for.into_iter().rev().find_map(|(turn, id)| (id == commit).then_some(turn)))
}

/// Why there is no last turn, where none is done.
fn none_done(view: &View<'_>, words: &str) -> Option<Error> {
    if view.last_whole().ok()?.is_some() {
        return None;
    }
    let refusal = Refusal::new(Code::NotFound, format!("'{words}' is the last turn done, and none is done here"));
    let undone = view.place().ok()?.undone.first();
    Some(match undone {
        Some(turn) => refusal.hint(format!("run 'oxundo redo' to bring turn {turn} back, or give its number")).into(),
        None if view.timeline.turn_numbers().ok()?.is_empty() => {
            refusal.hint("'oxundo run -- COMMAND' makes a turn").into()
        }
        None => refusal.hint("run 'oxundo log --all' to see the turns").into(),
    })
}

/// The number of a turn that has two checkpoints.
pub fn ended_turn(view: &View<'_>, words: &str) -> Result<u64> {
    let number = resolve(view, words)?;
    if number == 0 {
        let refusal = Refusal::new(Code::Usage, "0 is the state before the first turn, not a turn");
        return Err(refusal.hint("run 'oxundo log' to see the turns").into());
    }
    if view.timeline.state.open == Some(number) {
        return Err(missing(&format!("turn {number} is still in progress")).into());
    }
    Ok(number)
}

/// The state that these words mean: after a turn, before it with `:before`, or one that the user named; a rescue, the last
/// one by `@rescue`; or any of these of another worktree's, with its name before it.
pub fn state_at(view: &View<'_>, words: &str) -> Result<Checkpoint> {
    let words = without_own_name(view, words);
    if !view.timeline.state.named.contains_key(words) {
        if words == "@rescue"
            && let Some(replaced) = last_replaced(view)?
        {
            return Ok(replaced);
        }
        if let Some(rescue) = rescue_at(&view.timeline, words)? {
            return Ok(rescue);
        }
        if let Some(number) = words.strip_prefix("op:") {
            let found = number.parse().ok().map(|number| state_of(view, number)).transpose()?.flatten();
            let message = format!("there is no operation '{words}' here that kept a state");
            let refusal = Refusal::new(Code::NotFound, message).hint("run 'oxundo log --ops' to see them");
            return found.ok_or_else(|| refusal.into());
        }
        if let Some((worktree, rest)) = words.split_once(':')
            && let Some(other) = Timelines::new(view.repo).other_timeline(worktree)?
        {
            return state_elsewhere(&other.stored?, words, rest);
        }
    }
    let sided = match words.rsplit_once(':') {
        Some((turn, "before")) => Some((turn, Side::Before)),
        Some((turn, "after")) => Some((turn, Side::After)),
        _ => None,
    };
    let of_turn = |(turn, side)| match StepName::parse(turn) {
        Some(name) => state_of_step(view, &name, side),
        None => state_of_turn(view, turn, side),
    };
    match view.timeline.state.named.get(words) {
        // Older releases took `17:before` for a name.
        Some(named) => {
            sided.and_then(|it| of_turn(it).ok()).map_or_else(|| view.timeline.named_checkpoint(named.number), Ok)
        }
        None => of_turn(sided.unwrap_or((words, Side::After))),
    }
}

/// Refuses a path without a state, as git writes one in its index.
pub fn check_is_of_state(words: &[u8]) -> Result<(), Refusal> {
    if !words.starts_with(b":") {
        return Ok(());
    }
    let message = format!("'{}' has no turn before its colon", sanitized(&words.to_str_lossy()));
    Err(Refusal::new(Code::NotFound, message).hint(instead(words, [b"@", words].concat())))
}

/// As [`state_at`], or a path in such a state: `17:src/a.rs`, `tree:17.3:a.rs`. Gives the words for the state, and the path.
pub fn state_and_path<'w>(view: &View<'_>, words: &'w str) -> Result<(Checkpoint, &'w str, Option<&'w str>)> {
    check_is_of_state(words.as_bytes())?;
    let unknown = match state_at(view, words) {
        Err(error) if error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == Code::NotFound) => error,
        state => return Ok((state?, words, None)),
    };
    let behind = |(at, _): &(usize, &str)| *at > 0 && at + 1 < words.len();
    for (at, _) in words.rmatch_indices(':').filter(behind) {
        if let Ok(state) = state_at(view, &words[..at]) {
            return Ok((state, &words[..at], Some(&words[at + 1..])));
        }
    }
    Err(unknown)
}

/// The pathspec of a path that stands behind a state, as it is: seen from here, or from the top where it begins with `:/`.
pub fn pathspec_of(path: &str) -> OsString {
    match path.strip_prefix(":/") {
        Some(from_the_top) => format!(":(top,literal){from_the_top}").into(),
        None => format!(":(literal){path}").into(),
    }
}

/// The line that shows what is in a state: a turn's number alone would show what that changed.
pub fn shown_by(view: &View<'_>, state: &str) -> String {
    let is_whole = [":before", ":after"].iter().any(|side| state.ends_with(side))
        || kept_prefix(state) > 0
        || view.timeline.state.named.contains_key(state);
    let side = if is_whole { "" } else { ":after" };
    quoted_line(&format!("oxundo show {}", shell_word(format!("{state}{side}"))))
}

/// How long the word is before a rescue's or an operation's number, with its colon; 0 where the words name neither.
pub fn kept_prefix(words: &str) -> usize {
    ["op:", "rescue:"].iter().find(|prefix| words.starts_with(**prefix)).map_or(0, |prefix| prefix.len())
}

/// A rescue, where the words mean one.
fn rescue_at(timeline: &Stored<'_>, words: &str) -> Result<Option<Checkpoint>> {
    let number = match words.strip_prefix("rescue:") {
        Some(number) => number.parse().ok(),
        None if words == "@rescue" => timeline.rescue_numbers()?.last().copied(),
        None => return Ok(None),
    };
    match number.filter(|number| timeline.rescue_tree(*number).is_ok_and(|tree| tree.is_some())) {
        Some(number) => timeline.rescue(number).map(Some),
        None => Err(missing(&format!("there is no rescue checkpoint '{words}' here")).into()),
    }
}

/// A state of another worktree's timeline.
fn state_elsewhere(timeline: &Stored<'_>, words: &str, rest: &str) -> Result<Checkpoint> {
    if let Some(named) = timeline.state.named.get(rest) {
        return timeline.named_checkpoint(named.number);
    }
    if let Some(rescue) = rescue_at(timeline, rest)? {
        return Ok(rescue);
    }
    let (number, side) = match rest.split_once(':') {
        Some((number, "before")) => (number, Side::Before),
        Some((number, "after")) => (number, Side::After),
        _ => (rest, Side::After),
    };
    // As in the worktree itself.
    let (number, side) = if number == "0" { ("1", Side::Before) } else { (number, side) };
    let (number, step) = match StepName::parse(number) {
        Some(name) => (name.turn, Some(name.step)),
        None => (number.to_owned(), None),
    };
    let turn = number.parse().ok().map(|number| timeline.find_turn(number)).transpose()?.flatten();
    if let (Some(turn), Some(step)) = (&turn, step)
        && timeline.step(turn.turn, step)?.is_some()
    {
        return if side == Side::Before {
            states::before(timeline, turn, step)
        } else {
            states::after(timeline, turn, step)
        };
    }
    match turn.filter(|_| step.is_none()).filter(|turn| turn.ended_at.is_some() || side == Side::Before) {
        Some(turn) => timeline.checkpoint(turn.turn, side),
        None => Err(missing(&format!("there is no state '{words}'")).into()),
    }
}

fn state_of_turn(view: &View<'_>, turn: &str, side: Side) -> Result<Checkpoint> {
    let timeline = &view.timeline;
    if turn == "0" {
        let first = timeline.find_turn(1)?.ok_or_else(|| missing("there is no first turn, or it has expired"))?;
        return timeline.checkpoint(first.turn, Side::Before);
    }
    // The state before it is known as soon as it begins.
    if side == Side::Before
        && let Some(open) = timeline.state.open
        && resolve(view, turn)? == open
    {
        return timeline.checkpoint(open, side);
    }
    timeline.checkpoint(ended_turn(view, turn)?, side)
}

fn state_of_step(view: &View<'_>, name: &StepName, side: Side) -> Result<Checkpoint> {
    let (turn, step) = step_of(view, name)?;
    match side {
        Side::Before => states::before(&view.timeline, &turn, step.step),
        Side::After => states::after(&view.timeline, &turn, step.step),
    }
}

/// The step of this name, and its turn.
pub fn step_of(view: &View<'_>, name: &StepName) -> Result<(Turn, Step)> {
    let turn = resolve(view, &name.turn)?;
    if let Some(step) = view.timeline.step(turn, name.step)? {
        return Ok((view.timeline.require_turn(turn)?, step));
    }
    let why = match view.timeline.last_step(turn)? {
        0 => format!("turn {turn} has no steps"),
        last => format!("there is no step '{name}': the last one of turn {turn} is {turn}.{last}"),
    };
    Err(Refusal::new(Code::NotFound, why).hint("run 'oxundo log --steps' to see the steps").into())
}

/// The error for a turn that does not exist.
fn missing(why: &str) -> Refusal {
    Refusal::new(Code::NotFound, why).hint("run 'oxundo log --all' to see the turns")
}
