//! Files of any turn or checkpoint, brought into the worktree. It deletes nothing but what is in their way, leaves HEAD and the index alone,
//! and is a turn of its own: undo takes it back.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::{Lookup, Worktree};
use crate::model::bytes::{exact, in_quotes, sanitized};
use crate::model::checkpoint::{Aside, Change, Checkpoint, Delta, FileState, short_branch};
use crate::model::merge::Edits;
use crate::model::path::{all_parents, parents, up_from};
use crate::model::plan::Op;
use crate::model::planner::{TurnDelta, plan as planned};
use crate::model::turn::{Made, Turn};
use crate::ops::made::{PlannedTurn, Words};
use crate::ops::resolve::{pathspec_of, shown_by, state_and_path, state_at};
use crate::ops::undo::conflict::as_git_does;
use crate::ops::undo::range::nothing;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

/// Plans to bring back those files of a state that these pathspecs match, or all; of `17:src/a.rs` this path.
pub fn plan(view: &View<'_>, words: &str, pathspecs: &[OsString]) -> Result<PlannedTurn> {
    let (goal, state, path) =
        if pathspecs.is_empty() { state_and_path(view, words)? } else { (state_at(view, words)?, words, None) };
    let literal = path.map(pathspec_of);
    let pathspecs = literal.as_ref().map_or(pathspecs, std::slice::from_ref);
    let capture = view.present()?;
    let checkpoints = Checkpoints::new(view.repo);
    let (delta, stays) = missing_files(view, &capture.checkpoint, &goal, state, pathspecs)?;
    let within = capture.checkpoint.operation.clone();
    let deltas = [TurnDelta { turn: 0, delta, within, ..TurnDelta::default() }];
    let present = checkpoints.present(&deltas, &capture.checkpoint, &capture.index)?;
    let plan = checkpoints.merging(|merge| planned(Op::Restore, &deltas, &present, Edits::Merge, merge));
    let plan = plan.map_err(|error| as_git_does(view, error, &capture.checkpoint))?;
    if plan.is_empty() {
        return Err(nothing(Op::Restore, "every file that was there then is as it was").into());
    }
    let words = Words {
        message: format!("restore {words}"),
        verbs: ["Restored", "Would restore"],
        object: path.map_or_else(|| format!("the files of {}", sanitized(state)), |_| sanitized(words)),
        hint: "'oxundo undo' takes it back".to_owned(),
    };
    let stays = stays.iter().map(|path| in_quotes(path.as_bstr()));
    let warnings =
        stays.map(|path| format!("{path} stays as it is: what was there is aside, and has its place no more"));
    Ok(PlannedTurn { warnings: warnings.collect(), ..PlannedTurn::new(plan, capture, Made::Restore, words) })
}

/// The files of a state that are missing now, or differ, and what does not come back where nothing is named.
fn missing_files(
    view: &View<'_>,
    now: &Checkpoint,
    goal: &Checkpoint,
    state: &str,
    pathspecs: &[OsString],
) -> Result<(Delta, BTreeSet<BString>)> {
    let checkpoints = Checkpoints::new(view.repo);
    let all = checkpoints.file_changes(now, goal)?;
    let mut files = all.clone();
    let (aside, stays) = kept_aside(view, goal, pathspecs)?;
    let mut selection = Index::new(view.repo).selection(pathspecs)?;
    if !pathspecs.is_empty() {
        let paths = Objects::new(view.repo).paths_of(goal.worktree)?;
        let has_any = !aside.is_empty()
            || paths.iter().any(|path| selection.takes(path.as_bstr()))
            || goal.directories.iter().any(|path| selection.takes_directory(path.as_bstr()));
        if !has_any {
            return Err(Refusal::new(Code::NotFound, "that state has no file that the pathspec matches")
                .hint(format!("run {} to see what it has", shown_by(view, &short_branch(state))))
                .into());
        }
        files.retain(|path, _| selection.takes(path.as_bstr()));
    }
    files.retain(|_, change| change.to.is_some());
    let in_the_way = turns_in_the_way(view, now, &all, &files)?;
    files.extend(all.into_iter().filter(|(path, _)| in_the_way.contains(path)));
    let mut directories = checkpoints.directory_changes(now, goal, &files)?;
    let named: BTreeSet<BString> = if pathspecs.is_empty() {
        BTreeSet::new()
    } else {
        directories.keys().filter(|directory| selection.takes_directory(directory.as_bstr())).cloned().collect()
    };
    let above = all_parents(files.keys().chain(aside.keys()).chain(&named).map(|path| path.as_bstr()));
    let is_in_the_way = |directory: &BStr| {
        let mut at = up_from(directory);
        at.any(|at| files.get(at).is_some_and(|file| file.to.is_some()))
    };
    directories.retain(|directory, change| match change.to {
        Some(_) => pathspecs.is_empty() || named.contains(directory) || above.contains(directory.as_bstr()),
        None => is_in_the_way(directory.as_bstr()),
    });
    Ok((Delta { files, directories, aside, ..Delta::default() }, stays))
}

/// The files in whose place a directory comes, or in whose directory's place a file, that are as the last turn left them: these
/// go. What the user has made is in the way.
fn turns_in_the_way(
    view: &View<'_>,
    now: &Checkpoint,
    all: &BTreeMap<BString, Change<Option<FileState>>>,
    comes: &BTreeMap<BString, Change<Option<FileState>>>,
) -> Result<BTreeSet<BString>> {
    let comes: BTreeSet<&BStr> = comes.keys().map(|path| path.as_bstr()).collect();
    let below = all_parents(comes.iter().copied());
    let is_in_the_way = |path: &BStr| below.contains(path) || parents(path).any(|above| comes.contains(above));
    let mut in_the_way = BTreeSet::new();
    let Some(top) = view.top()? else { return Ok(in_the_way) };
    let (objects, left) = (Objects::new(view.repo), view.timeline.checkpoint(top, Side::After)?);
    for (path, _) in all.iter().filter(|(path, change)| change.to.is_none() && is_in_the_way(path.as_bstr())) {
        let [was, is] = [&left, now].map(|state| objects.tree_file(state.worktree, path.as_bstr()));
        if was? == is? {
            in_the_way.insert(path.clone());
        }
    }
    Ok(in_the_way)
}

/// What undo has moved aside of what a state has beyond the limits; and where something else has its place, if nothing is named.
pub fn kept_aside(
    view: &View<'_>,
    goal: &Checkpoint,
    pathspecs: &[OsString],
) -> Result<(AsideChanges, BTreeSet<BString>)> {
    let (mut kept, mut stays) = (BTreeMap::new(), BTreeSet::new());
    let mut selection = Index::new(view.repo).selection(pathspecs)?;
    for number in Timelines::new(view.repo).aside()?.into_keys() {
        for (path, aside) in aside_of(view, number)? {
            let has_it = goal.skipped.iter().any(|skipped| skipped.path == path) || has_put(view, number, goal, &path)?;
            let is_in = has_it && (pathspecs.is_empty() || selection.takes(path.as_bstr()));
            let is_free = matches!(Worktree::new(view.repo).find(path.as_bstr())?, Lookup::Absent);
            // Else its directory comes back with it.
            let has_place = || match parents(path.as_bstr()).next() {
                Some(above) if !Worktree::new(view.repo).has_place(path.as_bstr()) => {
                    Checkpoints::new(view.repo).captured_directory(goal, above).map(|mode| mode.is_some())
                }
                _ => Ok(true),
            };
            if is_in && !is_free && pathspecs.is_empty() {
                stays.insert(path);
            } else if is_in && has_place()? {
                kept.insert(path, Change::new(None, Some(aside)));
            }
        }
    }
    Ok((kept, stays))
}

/// Whether a state is the one after a turn that has put something ignored here: no list has that.
fn has_put(view: &View<'_>, number: u64, goal: &Checkpoint, path: &BString) -> Result<bool> {
    let has_it = |turn: Turn| turn.placed.contains_key(&exact::encode(path));
    if !view.timeline.find_turn(number)?.is_some_and(has_it) {
        return Ok(false);
    }
    let end = view.timeline.checkpoint(number, Side::After)?;
    Ok((end.worktree, end.index.tree, &end.head) == (goal.worktree, goal.index.tree, &goal.head))
}

/// What goes aside, or comes back, by its path.
type AsideChanges = BTreeMap<BString, Change<Option<Aside>>>;

/// What a turn left beyond the limits, and is moved aside now.
fn aside_of(view: &View<'_>, number: u64) -> Result<BTreeMap<BString, Aside>> {
    let mut left = aside_in(&view.timeline, number)?;
    left.retain(|_, aside| view.repo.aside_path(&aside.store).symlink_metadata().is_ok());
    Ok(left)
}

/// What a turn of a timeline left beyond the limits, wherever that is now.
pub fn aside_in(timeline: &Stored<'_>, number: u64) -> Result<BTreeMap<BString, Aside>> {
    let Some(turn) = timeline.find_turn(number)?.filter(|turn| turn.ended_at.is_some()) else {
        return Ok(BTreeMap::new());
    };
    let (before, after) = (timeline.checkpoint(number, Side::Before)?, timeline.checkpoint(number, Side::After)?);
    let delta = Checkpoints::new(timeline.repo).delta(&turn, &before, &after)?;
    Ok(delta.aside.into_iter().filter_map(|(path, change)| Some((path, change.to?))).collect())
}
