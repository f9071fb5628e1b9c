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
use crate::git::objects::Objects;
use crate::model::checkpoint::{Change, Checkpoint, FileState};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// Files that changed.
pub type Files = BTreeMap<BString, Change<Option<FileState>>>;

/// Where a file was that has another name.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Its name then.
    pub path: BString,
    /// What it was as it got the other one.
    pub file: Option<FileState>,
}

/// Which files got other names in one of the user's changes.
#[derive(Clone, Debug, Default)]
pub struct Renames {
    /// Where they were, by the names that they have.
    pub came: BTreeMap<BString, Origin>,
    /// The names from which one has gone.
    pub gone: BTreeSet<BString>,
}

impl Renames {
    /// Leaves out those of which a name is one of these.
    pub fn leave(&mut self, is_one: impl Fn(&BString) -> bool) {
        self.came.retain(|new, old| !is_one(new) && !is_one(&old.path));
        self.gone.retain(|path| !is_one(path));
    }

    fn note(&mut self, all: &Files, pairs: BTreeMap<BString, BString>) {
        for (new, old) in pairs {
            let file = all.get(&old).and_then(|change| change.from);
            self.gone.insert(old.clone());
            self.came.insert(new, Origin { path: old, file });
        }
    }
}

/// The paths in the beginning of files with other names, by these.
pub type CameFrom = BTreeMap<BString, BString>;

/// Which files the user gave other names in each of their changes, where calls have changed one of them before or have later. Each
/// comes with the files that it goes from, as a tree.
pub fn find(view: &View<'_>, changes: &[(ObjectId, &Files)], ends: (&Checkpoint, &Checkpoint)) -> Result<Vec<Renames>> {
    let (was, changes): (Vec<ObjectId>, Vec<&Files>) = changes.iter().copied().unzip();
    let mut found = vec![Renames::default(); changes.len()];
    if !are_of_both(view, &changes, ends)? {
        return Ok(found);
    }
    // What calls put there since, as a copy, was not there to get another name.
    let was_there = |at: usize, path: &BString, file: Option<FileState>| {
        let there = Objects::new(view.repo).tree_file(was[at], path.as_bstr())?;
        Ok::<_, anyhow::Error>(there == file.map(|file| (file.kind, file.id)))
    };
    let checkpoints = Checkpoints::new(view.repo);
    for (files, renames) in changes.iter().zip(&mut found) {
        renames.note(files, checkpoints.came_from(files)?);
    }
    note_apart(view, &changes, was_there, &mut found)?;
    note_passing(view, &changes, was_there, ends.1, &mut found)?;
    note_again(&changes, was_there, &mut found)?;
    note_back(view, &changes, was_there, ends.0, &mut found)?;
    Ok(found)
}

/// A file that a call had given another name, and that has its own again, is what it was: the other was the call's. So is one that the
/// user had given the name from which the call took it.
fn note_back(
    view: &View<'_>,
    changes: &[&Files],
    was_there: impl Fn(usize, &BString, Option<FileState>) -> Result<bool>,
    before: &Checkpoint,
    found: &mut [Renames],
) -> Result<()> {
    let checkpoints = Checkpoints::new(view.repo);
    let in_beginning = |path: &BString| checkpoints.captured_file(before, path.as_bstr());
    for (at, renames) in found.iter_mut().enumerate() {
        let earlier = |path: &BString| changes[..at].iter().rev().find_map(|files| files.get(path));
        let is_it = |was: Option<FileState>, now: Option<FileState>| match (was, now) {
            (Some(was), Some(now)) => Ok(was == now || checkpoints.are_alike(was.id, now.id)?),
            _ => Ok::<_, anyhow::Error>(false),
        };
        let mut taken = Vec::new();
        for (path, origin) in &mut renames.came {
            let is_of_calls = earlier(&origin.path).is_none() && in_beginning(&origin.path)?.is_none();
            if !is_of_calls || changes[at][path].from.is_some() {
                continue;
            }
            let was = earlier(path).map_or_else(|| in_beginning(path), |change| Ok(change.to))?;
            if is_it(was, origin.file)? {
                origin.path.clone_from(path);
                continue;
            }
            for name in changes[..at].iter().rev().flat_map(|files| files.keys()).filter(|name| *name != path) {
                let last = earlier(name).and_then(|change| change.to);
                if !changes[at].contains_key(name) && was_there(at, name, None)? && is_it(last, origin.file)? {
                    origin.path.clone_from(name);
                    taken.push(name.clone());
                    break;
                }
            }
        }
        renames.gone.extend(taken);
    }
    Ok(())
}

/// Notes those of which the one name was looked at before the other: where a call names its file only that one is.
fn note_apart(
    view: &View<'_>,
    changes: &[&Files],
    was_there: impl Fn(usize, &BString, Option<FileState>) -> Result<bool>,
    found: &mut [Renames],
) -> Result<()> {
    let mut seen: BTreeMap<&BString, usize> = BTreeMap::new();
    for (at, files) in changes.iter().enumerate() {
        for (path, change) in files.iter().filter(|(path, _)| !is_in(&found[at], path)) {
            if change.to.is_none() || !seen.contains_key(path) {
                seen.insert(path, at);
            }
        }
    }
    let mut rest: Files = seen.iter().map(|(path, at)| ((*path).clone(), changes[*at][*path].clone())).collect();
    let pairs = loop {
        let (pairs, mut put) = (Checkpoints::new(view.repo).came_from(&rest)?, BTreeSet::new());
        for (new, old) in &pairs {
            if !was_there(seen[new].min(seen[old]), old, rest[old].from)? {
                put.extend([new.clone(), old.clone()]);
            }
        }
        if put.is_empty() {
            break pairs;
        }
        // Nor is what is there now the other one then.
        rest.retain(|path, _| !put.contains(path));
    };
    for (new, old) in pairs {
        let (came, gone) = (seen[&new], seen[&old]);
        found[gone].gone.insert(old.clone());
        found[came].came.insert(new, Origin { file: rest[&old].from, path: old });
    }
    Ok(())
}

/// Notes the names that came and went: the old name was not looked at before the file was there again, or had gone on.
fn note_passing(
    view: &View<'_>,
    changes: &[&Files],
    was_there: impl Fn(usize, &BString, Option<FileState>) -> Result<bool> + Copy,
    after: &Checkpoint,
    found: &mut [Renames],
) -> Result<()> {
    for (at, files) in changes.iter().enumerate() {
        let mut known = None;
        let new = files.iter().filter(|(path, change)| change.from.is_none() && !is_in(&found[at], path));
        for (path, file) in new.filter_map(|(path, change)| Some((path, change.to?))).collect::<Vec<_>>() {
            if Checkpoints::new(view.repo).captured_file(after, path.as_bstr())?.is_some() {
                continue;
            }
            if known.is_none() {
                known = Some(looked_at_later(changes, at, was_there)?);
            }
            let known = known.as_deref().unwrap_or_default();
            let Some(Left { old, seen, own, back }) = left(view, changes, (path, file), known, was_there, found)?
            else {
                continue;
            };
            found[at].came.insert(path.clone(), Origin { path: old.clone(), file: Some(own) });
            if changes[seen][&old].to.is_none() {
                found[seen].gone.insert(old);
            } else if let Some(origin) = back.filter(|_| !found[seen].came.contains_key(&old)) {
                let next = (seen..changes.len()).find(|at| changes[*at].contains_key(&origin.path));
                if let Some(next) = next.filter(|next| changes[*next][&origin.path].to.is_none()) {
                    found[next].gone.insert(origin.path.clone());
                }
                found[seen].came.insert(old, origin);
            }
        }
    }
    Ok(())
}

/// Where a file came from that got another name, and what became of that.
struct Left {
    /// Its name before.
    old: BString,
    /// The first change in which that was looked at again.
    seen: usize,
    /// What it was as it went.
    own: FileState,
    /// The name under which it was by then, where it is there again.
    back: Option<Origin>,
}

/// The files that were there before a change as the next one that has them found them, and which one that is: no call has written to
/// them in between.
fn looked_at_later<'c>(
    changes: &[&'c Files],
    at: usize,
    was_there: impl Fn(usize, &BString, Option<FileState>) -> Result<bool>,
) -> Result<Vec<(usize, &'c BString, FileState)>> {
    let (mut known, mut later) = (BTreeSet::new(), Vec::new());
    for (seen, files) in changes.iter().enumerate().skip(at + 1) {
        for (path, own) in files.iter().filter_map(|(path, change)| Some((path, change.from?))) {
            if known.insert(path) && was_there(at, path, Some(own))? {
                later.push((seen, path, own));
            }
        }
    }
    Ok(later)
}

/// Finds it of a file that came to a path, among those that were `known` then. A file of that content is it; else one that is like it,
/// and is gone as it is looked at again, or has come back from another name.
fn left(
    view: &View<'_>,
    changes: &[&Files],
    (path, file): (&BString, FileState),
    known: &[(usize, &BString, FileState)],
    was_there: impl Fn(usize, &BString, Option<FileState>) -> Result<bool> + Copy,
    found: &[Renames],
) -> Result<Option<Left>> {
    let back_from = |(seen, old): (usize, &BString)| match changes[seen][old].to {
        Some(to) => came_back(view, changes, (seen, old, to), path, was_there),
        None => Ok(None),
    };
    let others = || known.iter().copied().filter(|(_, old, _)| *old != path);
    if let Some((seen, old, own)) = others().find(|(.., own)| *own == file) {
        return Ok(Some(Left { old: old.clone(), seen, own, back: back_from((seen, old))? }));
    }
    for (seen, old, own) in others() {
        if !Checkpoints::new(view.repo).are_alike(own.id, file.id)? {
            continue;
        }
        let back = back_from((seen, old))?;
        if back.is_some() || changes[seen][old].to.is_none() && !found[seen].gone.contains(old) {
            return Ok(Some(Left { old: old.clone(), seen, own, back }));
        }
    }
    Ok(None)
}

/// The name that a file had before it came back to its own: what is gone from there is what is here. It may be there still, as where only
/// this one was looked at.
fn came_back(
    view: &View<'_>,
    changes: &[&Files],
    (seen, old, to): (usize, &BString, FileState),
    path: &BString,
    was_there: impl Fn(usize, &BString, Option<FileState>) -> Result<bool>,
) -> Result<Option<Origin>> {
    if was_there(seen, path, Some(to))? {
        return Ok(Some(Origin { path: path.clone(), file: Some(to) }));
    }
    let mut rest = Files::from([(old.clone(), Change::new(None, Some(to)))]);
    let mut known = BTreeSet::from([old]);
    for (name, change) in changes[seen..].iter().copied().flatten() {
        if known.insert(name) && change.to.is_none() && was_there(seen, name, change.from)? {
            rest.insert(name.clone(), change.clone());
        }
    }
    // Whatever was written to it in the same moment.
    let only = || changes[seen].get(path).filter(|gone| gone.to.is_none()).map(|_| path.clone());
    let name = Checkpoints::new(view.repo).came_from(&rest)?.remove(old).or_else(only);
    Ok(name.map(|name| Origin { file: rest.get(&name).and_then(|change| change.from), path: name }))
}

/// Notes the names between which a file went to and fro while only one of them was looked at: what is at one is what was at the other.
fn note_again(
    changes: &[&Files],
    was_there: impl Fn(usize, &BString, Option<FileState>) -> Result<bool>,
    found: &mut [Renames],
) -> Result<()> {
    let mut linked: BTreeMap<BString, BTreeSet<BString>> = BTreeMap::new();
    for ((at, files), renames) in changes.iter().enumerate().zip(found) {
        for (path, change) in files.iter().filter(|(_, change)| change.from.is_some()) {
            let Some(to) = change.to.filter(|_| !is_in(renames, path)) else { continue };
            for other in linked.get(path).into_iter().flatten() {
                if was_there(at, other, Some(to))? {
                    if files.get(other).is_some_and(|change| change.to.is_none()) {
                        renames.gone.insert(other.clone());
                    }
                    renames.came.insert(path.clone(), Origin { path: other.clone(), file: Some(to) });
                    break;
                }
            }
        }
        for (new, Origin { path: old, .. }) in &renames.came {
            for (one, other) in [(new, old), (old, new)] {
                linked.entry(one.clone()).or_default().insert(other.clone());
            }
        }
    }
    Ok(())
}

fn is_in(renames: &Renames, path: &BString) -> bool {
    renames.came.contains_key(path) || renames.gone.contains(path)
}

/// Whether calls have changed a file of these too.
fn are_of_both(view: &View<'_>, changes: &[&Files], (before, after): (&Checkpoint, &Checkpoint)) -> Result<bool> {
    let is_other = |state: &Checkpoint, path: &BString, file: Option<FileState>| {
        let then = Checkpoints::new(view.repo).captured_file(state, path.as_bstr())?;
        Ok::<_, anyhow::Error>(file.is_some() && then != file)
    };
    for (path, change) in changes.iter().copied().flatten() {
        if is_other(before, path, change.from)? || is_other(after, path, change.to)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where the files were in the beginning that have other names after these changes.
pub fn came_from<'g>(changes: impl Iterator<Item = &'g Renames>) -> CameFrom {
    let (mut known, mut gone) = (CameFrom::new(), CameFrom::new());
    for renames in changes {
        let was = known.clone();
        for path in &renames.gone {
            gone.insert(path.clone(), known.remove(path).unwrap_or_else(|| path.clone()));
        }
        for (new, Origin { path: old, .. }) in &renames.came {
            let origin = gone.get(old).or_else(|| was.get(old)).unwrap_or(old);
            if origin != new {
                known.insert(new.clone(), origin.clone());
            }
        }
    }
    known
}
