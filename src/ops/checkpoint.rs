//! The present state under a name, for `--to`, restore, show and diff. It is no turn: nothing changes but the
//! timeline, and undo does not stop at it.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::repo::clock::rfc3339_now;
use crate::git::timeline::stored::Stored;
use crate::git::timeline::update::Update;
use crate::model::bytes::{sanitized, shell_word};
use crate::model::plan::{Op, Plan};
use crate::model::timeline::{Named, reads_otherwise};
use crate::ops::locked::Locked;
use anyhow::Result;

/// Where a name is none.
const UNNAMED: &str = "run 'oxundo checkpoint': it gives a name itself";

/// Names the present state; gives the name and its record. The default is the next free of `c1`, `c2` and so on.
pub fn name(locked: &mut Locked<'_>, given: Option<&str>) -> Result<(String, Named)> {
    let name = new_name(&locked.timeline, given)?;
    let capture = locked.present()?;
    let mut update = locked.timeline.update();
    let number = update.state.named.values().map(|named| named.number).max().unwrap_or_default() + 1;
    let stack = capture.checkpoint.head.stack().to_owned();
    let named = Named { number, stack, top: locked.last_whole()?, at: rfc3339_now() };
    update.state.usual_modes = Some(capture.checkpoint.modes.usual);
    update.state.named.insert(name.clone(), named.clone());
    capture.checkpoint.head.commit.into_iter().for_each(|commit| update.state.pin(commit));
    update.put_named(number, &capture.checkpoint)?;
    record(locked, update, format!("checkpoint {name}"))?;
    Ok((name, named))
}

/// Removes a named state; gives its record.
pub fn forget(locked: &mut Locked<'_>, name: &str) -> Result<Named> {
    let mut update = locked.timeline.update();
    let Some(named) = update.state.named.remove(name) else {
        return Err(Refusal::new(Code::NotFound, format!("there is no checkpoint '{}'", sanitized(name)))
            .hint("run 'oxundo checkpoint --list' to see them")
            .into());
    };
    update.remove_named(named.number);
    record(locked, update, format!("forget checkpoint {name}"))?;
    Ok(named)
}

fn record<'r>(locked: &mut Locked<'r>, update: Update<'r>, message: String) -> Result<()> {
    let plan = Plan::empty(Op::Checkpoint, locked.head.clone());
    locked.carry_out(&plan, update, message, Vec::new(), None)
}

fn new_name(stored: &Stored<'_>, given: Option<&str>) -> Result<String> {
    let named = &stored.state.named;
    // With a colon behind it, a name is the beginning of a state's side, or of a file in it.
    let begins = |name: &str, other: &str| other.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
    let reads = |name: &str| named.keys().any(|other| begins(name, other) || begins(other, name));
    let Some(name) = given.map(str::trim) else {
        let free = |name: &String| !named.contains_key(name) && !reads(name);
        let last = 2 * named.len() + 1;
        return Ok((1..=last).map(|n| format!("c{n}")).find(free).unwrap_or_default());
    };
    let bad = |why: &str, hint: &str| {
        Err(Refusal::new(Code::Usage, format!("'{}' {why}", sanitized(name))).hint(hint).into())
    };
    if name.is_empty() || name.starts_with('-') || name.contains(char::is_control) {
        return bad("cannot be a checkpoint's name", UNNAMED);
    }
    let is_commit = Objects::new(stored.repo).find_commit_id(name).is_ok();
    if is_commit || reads_otherwise(name) || reads(name) {
        return bad("would be taken for a turn, a commit, a range, or what is in a state", UNNAMED);
    }
    if named.contains_key(name) {
        let line = format!("run 'oxundo checkpoint --delete {}' first", shell_word(name.as_bytes()));
        return bad("is a checkpoint already", &line);
    }
    Ok(name.to_owned())
}
