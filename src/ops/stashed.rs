//! Stash entries that come back where the files go that had come out of them, as by `git stash pop` in a turn: what the user had put
//! away would be nowhere else.

use crate::git::objects::Objects;
use crate::model::checkpoint::{Change, StashEntry};
use crate::model::operation::Operation;
use crate::ops::turn::sole::stashed;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::BString;

/// A stash list with what git had stashed for as long as an operation lasts, which does not come along: git has it there as well, where
/// it cannot bring it back.
pub fn with_autostashes(view: &View<'_>, list: &[StashEntry], operation: &Operation) -> Result<Vec<StashEntry>> {
    let (objects, mut all) = (Objects::new(view.repo), Vec::new());
    for named in operation.autostashes() {
        let Ok(id) = ObjectId::from_hex(objects.blob(named)?.trim_ascii()) else { continue };
        all.extend(objects.as_stash_entry(id, "autostash"));
    }
    all.extend_from_slice(list);
    Ok(all)
}

/// The stash list with those entries of an earlier one that are in none any more, and hold one of the files that go, where they were; none
/// where there is no such entry.
pub fn back(
    view: &View<'_>,
    then: &[StashEntry],
    now: &[StashEntry],
    goes: impl Fn(&BString) -> bool,
) -> Result<Option<Change<Vec<StashEntry>>>> {
    let mut back = Vec::new();
    for entry in then.iter().filter(|entry| !now.contains(entry)) {
        let is_there = Objects::new(view.repo).has_commit(entry.id);
        if is_there && stashed(view, entry.id)?.iter().any(|(path, _)| goes(path)) {
            back.push(entry.clone());
        }
    }
    let (old, new): (Vec<_>, Vec<_>) = now.iter().cloned().partition(|entry| then.contains(entry));
    let there = then.iter().filter(|entry| old.contains(entry) || back.contains(entry)).cloned().collect();
    Ok((!back.is_empty()).then(|| Change::new(now.to_vec(), [new, there].concat())))
}
