//! Turns by the name of their worktree: `NAME:17`. States of any worktree's can be looked at and brought here; what is done to a
//! turn is done where it was made.

use crate::error::{Code, Refusal};
use crate::git::timeline::Timelines;
use crate::git::timeline::others::Other;
use crate::model::bytes::{quoted_line, sanitized, shell_word};
use crate::model::checkpoint::shown_name;
use crate::model::step::StepName;
use crate::model::timeline::{TurnSpec, range_ends};
use crate::ops::view::View;
use anyhow::Result;
use std::os::unix::ffi::OsStrExt;

/// The words without this worktree's own name, where that stands before a turn.
pub fn without_own_name<'w>(view: &View<'_>, words: &'w str) -> &'w str {
    let Some((name, rest)) = words.split_once(':') else { return words };
    let turn = rest.split_once(':').map_or(rest, |(turn, _)| turn);
    let is_turn = turn.parse::<u64>().is_ok() || StepName::parse(turn).is_some();
    let is_own = is_turn && !view.timeline.state.named.contains_key(words) && TurnSpec::parse(name).is_err();
    if is_own && shown_name(&view.repo.worktree_id()) == name { rest } else { words }
}

/// The other worktree whose name stands before a turn's number, and that number.
pub fn turn_of<'r>(view: &View<'r>, words: &str) -> Result<Option<(Other<'r>, u64)>> {
    let Some((name, rest)) = words.split_once(':').filter(|(name, _)| TurnSpec::parse(name).is_err()) else {
        return Ok(None);
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    let Ok(number) = digits.parse() else { return Ok(None) };
    Ok(Timelines::new(view.repo).other_timeline(name)?.map(|other| (other, number)))
}

/// Why a turn of another worktree's is not meant by these words where something is to be done to it.
pub fn refusal(view: &View<'_>, words: &str) -> Result<Option<Refusal>> {
    let Some((other, number)) = turn_of(view, words)? else { return Ok(None) };
    // One turn is wanted, which is said first.
    if range_ends(words).is_some() {
        return Ok(None);
    }
    let Ok(Some(_)) = other.stored.as_ref().map(|stored| stored.find_turn(number).unwrap_or_default()) else {
        return Ok(None);
    };
    let (name, word) = (shown_name(&other.worktree), shell_word(words.as_bytes()));
    let named = sanitized(words);
    Ok(Some(if other.removed {
        let message = format!("'{named}' is a turn of the worktree '{name}', which was removed");
        let before = shell_word(format!("{}:{number}:before", other.words()).as_bytes());
        Refusal::new(Code::Branch, message)
            .hint(format!("run 'oxundo restore {word}' to bring its files here"))
            .hint(format!("or run 'oxundo restore {before}' for those that were there before it"))
    } else {
        let message = format!("'{named}' is a turn of the worktree '{name}', and is undone and changed there");
        let refusal = Refusal::new(Code::Branch, message);
        let refusal = match view.repo.top_of(&other.worktree)? {
            Some(top) => {
                let line = format!("cd {}", shell_word(top.as_os_str().as_bytes()));
                refusal.hint(format!("run {}, then the same command again", quoted_line(&line)))
            }
            None => refusal,
        };
        refusal.hint(format!("or run 'oxundo restore {word}' to bring its files here"))
    }))
}
