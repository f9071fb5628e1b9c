//! The names that the branches of a turn have now, where the user has given them others since: by git's own reflogs, which go
//! along as git renames a branch. What has the old name by now is the user's.

use crate::git::refs::Refs;
use crate::git::repo::clock::parse_rfc3339;
use crate::git::timeline::stored::Side;
use crate::model::names::Names;
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

/// The name that a branch has now which was at a commit at such a time, in seconds since 1970, if it is another. None where it
/// might be two, one of which is the user's own; nor where oxundo has brought a branch there that has the old name.
pub fn called_now(refs: &Refs<'_>, name: &str, (commit, until): (ObjectId, i64), there: &Tips) -> Option<String> {
    let was_it = |other: &&String| *other != name && refs.was_called(other, name, (commit, until));
    let mut called = there.keys().filter(was_it);
    let (Some(to), None) = (called.next(), called.next()) else { return None };
    let is_brought = there.get(name) == Some(&commit) && refs.is_where_brought(name);
    (!is_brought).then(|| to.clone())
}

/// The branch that a turn ended on, by the name that it has now; none for a detached HEAD.
pub fn branch_now(view: &View<'_>, turn: &Turn) -> Result<Option<String>> {
    let Some(name) = &turn.branch else { return Ok(None) };
    let Some(end) = view.timeline.checkpoint(turn.turn, Side::After)?.head.commit else {
        return Ok(Some(name.clone()));
    };
    let until = turn.ended_at.as_ref().and_then(|at| parse_rfc3339(at)).unwrap_or(i64::MAX);
    let refs = Refs::new(view.repo);
    Ok(called_now(&refs, name, (end, until), &refs.branches()?).or_else(|| Some(name.clone())))
}
