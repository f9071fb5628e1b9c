//! The names that the branches of a turn have now, where the user has given them others since: by git's own reflogs, which go
//! along as git renames a branch. What has the old name by now is the user's.

use crate::git::refs::Refs;
use crate::git::refs::evidence::{KnownBy, Was};
use crate::git::repo::clock::seconds;
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::Checkpoint;
use crate::model::names::{Names, branches_of};
use crate::model::turn::Turn;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use std::collections::BTreeMap;

/// Branches, and where they are.
pub type Tips = BTreeMap<String, ObjectId>;

/// The names that the branches of a turn have now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The turn.
    pub turn: u64,
    /// Its branches, by the names that they had.
    pub names: Names,
    /// Whether it began with them, too.
    pub throughout: bool,
}

/// The name that a branch has now, if it is another, by where it was: what is known of that may depend on the name in question.
/// None where it might be two, one of which is the user's own; nor where oxundo has brought a branch there that has the old name.
pub fn called_now<'w>(refs: &Refs<'_>, name: &str, was: impl Fn(&str) -> Was<'w>, there: &Tips) -> Option<String> {
    // Else oxundo has made it again, without that line.
    let is_known = there.keys().any(|it| refs.has_line(it, &was(it)));
    let was_it = |other: &&String| {
        let was = was(other);
        *other != name && refs.was_called(other, name, &was) && (!is_known || refs.has_line(other, &was))
    };
    let mut called = there.keys().filter(was_it);
    let (Some(to), None) = (called.next(), called.next()) else { return None };
    let is_brought = there.get(name) == Some(&was(to).commit) && refs.is_where_brought(name);
    (!is_brought).then(|| to.clone())
}

/// The branch that a turn ended on, by the name that it has now; none for a detached HEAD.
pub fn branch_now(view: &View<'_>, turn: &Turn) -> Result<Option<String>> {
    let Some(name) = &turn.branch else { return Ok(None) };
    // One that is open has no end yet.
    if turn.ended_at.is_none() {
        return Ok(Some(name.clone()));
    }
    let Some(end) = view.timeline.checkpoint(turn.turn, Side::After)?.head.commit else {
        return Ok(Some(name.clone()));
    };
    let was = Was { known_by: known_by(turn, name, turn.ended_at.as_ref()), ..Was::at(end) };
    let refs = Refs::new(view.repo);
    Ok(called_now(&refs, name, |_| was, &refs.branches()?).or_else(|| Some(name.clone())))
}

/// What tells the branches of a turn, which it has under these names now, from others that get the names later, and what it did to
/// names from what others do.
pub fn logs(refs: &Refs<'_>, turn: &Turn, before: &Checkpoint, after: &Checkpoint) -> BTreeMap<String, String> {
    let mut names = branches_of(before, after);
    if !names.is_empty() {
        // One of them may change names with HEAD's.
        names.extend(after.head.branch.clone());
    }
    let written = |name: &&String| turn.began.is_none_or(|began| refs.is_log_written_since(name, began));
    names.extend(after.branches.keys().filter(written).cloned());
    names.into_iter().filter_map(|name| Some((refs.last_line(&name)?, name))).map(|(line, name)| (name, line)).collect()
}

/// The same where they have other names since.
pub fn logs_under(names: &Names, logs: BTreeMap<String, String>, refs: &Refs<'_>) -> BTreeMap<String, String> {
    let to = |name: &String| names.get(name).unwrap_or(name).clone();
    let mut logs: BTreeMap<_, _> = logs.into_iter().map(|(name, line)| (to(&name), line)).collect();
    logs.extend(names.values().filter_map(|to| Some((to.clone(), refs.last_line(to)?))));
    logs
}

/// A branch of a turn, at this commit.
pub fn was_at<'a>(turn: &'a Turn, name: &str, commit: ObjectId) -> Was<'a> {
    Was { known_by: known_by(turn, name, None), ..Was::at(commit) }
}

/// What tells that a branch of a turn was where the turn had it at this time.
pub fn known_by<'a>(turn: &'a Turn, name: &str, at: Option<&String>) -> KnownBy<'a> {
    turn.logs
        .as_ref()
        .and_then(|logs| logs.get(name))
        .map_or_else(|| KnownBy::Time(seconds(at)), |line| KnownBy::Line(line))
}
