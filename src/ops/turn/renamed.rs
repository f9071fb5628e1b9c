//! What is the user's and what the calls' in a file follows the file where the user gives it another name, or puts it over another
//! one; they may write to it in the same moment.
//!
//! ```text
//!                           a.txt            c.txt        committed       undo leaves
//! before the turn           1
//! a call writes             1, its
//! the user: mv, and writes                   1, its, 2    c.txt 1, its    c.txt 1, 2
//! ```

use crate::git::checkpoint::Checkpoints;
use crate::model::checkpoint::{Change, Checkpoint, FileState};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// Files that changed.
type Files = BTreeMap<BString, Change<Option<FileState>>>;

/// The paths from which files came, by those at which they are.
pub type CameFrom = BTreeMap<BString, BString>;

/// Which files the user gave other names, where calls have changed one of them before or have later.
pub fn came_from(view: &View<'_>, files: &Files, (base, after): (&Checkpoint, &Checkpoint)) -> Result<CameFrom> {
    let checkpoints = Checkpoints::new(view.repo);
    let other = |state: &Checkpoint, path: &BString, file| {
        Ok::<_, anyhow::Error>(checkpoints.captured_file(state, path.as_bstr())? != file)
    };
    for (path, change) in files {
        if change.from.is_some() && other(base, path, change.from)?
            || change.to.is_some() && other(after, path, change.to)?
        {
            return checkpoints.came_from(files);
        }
    }
    Ok(CameFrom::new())
}

/// Follows some files through one more change.
pub fn follow(known: &mut CameFrom, next: &CameFrom) {
    let was = known.clone();
    let moved: BTreeSet<&BString> = next.values().collect();
    known.retain(|path, _| !moved.contains(path));
    known.extend(next.iter().map(|(now, old)| (now.clone(), was.get(old).unwrap_or(old).clone())));
}

/// A file that only the user has changed since.
#[derive(Clone)]
struct Chain {
    /// Its path in the beginning.
    origin: BString,
    change: Change<Option<FileState>>,
}

/// What calls left of files that only the user has changed since, by the paths that they have at the end. `changes` are the user's,
/// in order.
pub fn left_by_calls<'g>(
    view: &View<'_>,
    changes: impl Iterator<Item = (&'g Files, &'g CameFrom)>,
    (before, after): (&Checkpoint, &Checkpoint),
) -> Result<BTreeMap<BString, Option<FileState>>> {
    let mut chains: BTreeMap<BString, Option<Chain>> = BTreeMap::new();
    for (files, came_from) in changes {
        let was = chains.clone();
        let moved: BTreeSet<&BString> = came_from.values().collect();
        chains.extend(moved.iter().map(|old| ((*old).clone(), None)));
        for (path, change) in files.iter().filter(|(path, _)| came_from.contains_key(*path) || !moved.contains(path)) {
            let old = came_from.get(path).unwrap_or(path);
            let from = files.get(old).map_or(change.from, |change| change.from);
            let fresh = || Some(Chain { origin: old.clone(), change: Change::new(from, from) });
            // Where a call has changed it in between, nobody can tell.
            let chain = was.get(old).cloned().unwrap_or_else(fresh).filter(|chain| chain.change.to == from);
            let on = |chain: Chain| Chain { change: Change::new(chain.change.from, change.to), ..chain };
            chains.insert(path.clone(), chain.map(on));
        }
    }
    let file = |state: &Checkpoint, path: &BString| Checkpoints::new(view.repo).captured_file(state, path.as_bstr());
    let mut left = BTreeMap::new();
    for (path, chain) in chains {
        let Some(Chain { origin, change }) = chain else { continue };
        if file(after, &path)? == change.to && file(before, &origin)? != change.from {
            left.insert(path, change.from);
        }
    }
    Ok(left)
}
