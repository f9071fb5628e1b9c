//! Whose a branch is that moved during a turn: another than HEAD's is the turn's only where nothing shows that it is not.

use crate::config::Config;
use crate::git::refs::Refs;
use crate::model::checkpoint::{Checkpoint, Head, branch_changes, short_branch, symbolic_changes};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// The branches that others have moved between two states.
pub fn moved_by_others(view: &View<'_>, before: &Checkpoint, now: &Checkpoint) -> Result<BTreeSet<String>> {
    let moved = branch_changes(before, now).into_keys().chain(symbolic_changes(before, now).into_keys());
    let own = [&before.head, &now.head].map(|head| head.branch.as_ref());
    let moved: BTreeSet<String> = moved.filter(|name| !own.contains(&Some(name))).collect();
    if moved.is_empty() {
        return Ok(moved);
    }
    let theirs = view.config().others_branches()?;
    let refs = Refs::new(view.repo);
    let is_theirs = |name: &String| theirs.matches(short(name).as_bstr()) || refs.was_moved_elsewhere(name);
    Ok(moved.into_iter().filter(is_theirs).collect())
}

/// Why turns make no commits on HEAD's branch: another tool owns it.
pub fn owned_by_others(config: Config<'_>, head: &Head) -> Result<Option<String>> {
    let Some(name) = &head.branch else { return Ok(None) };
    let is_theirs = config.others_branches()?.matches(short(name).as_bstr());
    Ok(is_theirs.then(|| format!("'{}' is another tool's branch", short_branch(name))))
}

fn short(name: &str) -> BString {
    name.strip_prefix("refs/heads/").unwrap_or(name).into()
}
