//! What a purge would take that nobody else may have.

use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Side;
use anyhow::Result;
use gix::ObjectId;
use std::collections::HashSet;

/// What a purge deletes that may be the only copy of something of the user's, by the names under which it is found.
pub fn only_copies(repo: &Repo) -> Result<Vec<String>> {
    let mut copies: Vec<String> = repo.moved_aside().iter().map(|copy| format!("'{}'", copy.display())).collect();
    let timelines = Timelines::new(repo);
    let here = [(String::new(), timelines.timeline())];
    let others = timelines.other_timelines()?.into_iter().map(|other| (format!("{}:", other.worktree), other.stored));
    for (prefix, stored) in here.into_iter().chain(others) {
        // What cannot be read is purged for just that.
        let Ok(stored) = stored else { continue };
        let turns = stored.turn_numbers().unwrap_or_default();
        let is_sole = |number: &&u64| stored.find_turn(**number).is_ok_and(|turn| turn.is_some_and(|turn| turn.sole));
        copies.extend(turns.iter().filter(is_sole).map(|number| format!("{prefix}{number}:before")));
        let may_copy = |number: &&u64| {
            stored.find_turn(**number).is_ok_and(|turn| turn.is_some_and(|turn| !turn.copies.is_empty()))
        };
        copies.extend(turns.iter().filter(may_copy).map(|number| format!("{prefix}{number}")));
        let ends = turns.iter().flat_map(|number| [Side::Before, Side::After].map(|side| (*number, side)));
        let ends: HashSet<ObjectId> =
            ends.filter_map(|(number, side)| Some(stored.checkpoint(number, side).ok()?.worktree)).collect();
        // Before most undos all was as a turn had left it.
        let has_more = |number: &u64| stored.rescue(*number).is_ok_and(|rescue| !ends.contains(&rescue.worktree));
        let rescues = stored.rescue_numbers().unwrap_or_default();
        copies.extend(rescues.into_iter().filter(has_more).map(|number| format!("{prefix}rescue:{number}")));
    }
    Ok(copies)
}
