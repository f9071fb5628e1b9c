//! Taking turns out: their inverse is merged into the worktree, the index and, where they made commits, into commits
//! on top of HEAD. Nothing is rewritten, and later turns stay. This is recorded as a turn of oxundo's own, which undo
//! takes back as any other; redo right after it brings the turns back.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::index::pathspec::ALL_BUT;
use crate::git::index::pathspec::Selection;
use crate::git::objects::Objects;
use crate::git::objects::alike::Likeness;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::stored::Side;
use crate::model::bytes::{in_quotes, quoted, sanitized, shell_word, unquoted};
use crate::model::checkpoint::{Aside, Change, Checkpoint, Delta, FileState, branch_word, short_branch};
use crate::model::merge::{Blobs, Edits, Merge, Merged};
use crate::model::operation::Operation;
use crate::model::path::all_parents;
use crate::model::place::Node;
use crate::model::plan::{BranchMove, Op, Plan};
use crate::model::planner::{Present, TurnDelta, conflict, plan as planned};
use crate::model::step::StepName;
use crate::model::timeline::range_ends;
use crate::model::turn::{CommitKind, Made, Turn, listed};
use crate::ops::brought::Brought;
use crate::ops::brought_back::{next_in, taken_again};
use crate::ops::concluded;
use crate::ops::conversation::{self, Conversations};
use crate::ops::dropped;
use crate::ops::list::delta_of;
use crate::ops::made::{PlannedTurn, Words};
use crate::ops::on_branch::{OnOne, ends_of_turn, has_any_here};
use crate::ops::renamed_since::{RenamedSince, other_names};
use crate::ops::resolve::resolve;
use crate::ops::stashed;
use crate::ops::switching;
use crate::ops::taken::Taken;
use crate::ops::turn::meanwhile::{BOTH, changed_files, check_apart};
use crate::ops::turn::unattended::told_of_taken;
use crate::ops::turn::{goal_with_dirty_commit, in_progress};
use crate::ops::undo::committed::leave_committed;
use crate::ops::undo::conflict::beside_later;
use crate::ops::undo::converted::Converted;
use crate::ops::undo::in_the_middle;
use crate::ops::undo::not_here::{Alike, left_behind, taken_off};
use crate::ops::undo::range::{Extent, TurnRange, begins_with_the_older, is_done, line_between, nothing};
use crate::ops::undo::staged;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// In how many turns is looked for those that were merged.
const MOST_MERGED: usize = 64;

/// Which turns are taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that these words mean, or the ones from one to another (`3..5`).
    Only(String),
    /// The last ones, as inverse commits on top.
    Last(Extent),
    /// Some paths of the last ones.
    PartsOf(Extent),
}

impl Which {
    /// Whether the work of later turns must stay, even where the user's edits may be overwritten.
    fn later_stay(&self) -> bool {
        !matches!(self, Self::PartsOf(_))
    }
}

/// Plans to take turns out, whole or the paths that these pathspecs match.
pub fn plan(view: &View<'_>, which: &Which, pathspecs: &[OsString], edits: Option<Edits>) -> Result<PlannedTurn> {
    take_out(view, which, pathspecs, edits).map_err(|error| in_the_middle(view, error))
}

fn take_out(view: &View<'_>, which: &Which, pathspecs: &[OsString], edits: Option<Edits>) -> Result<PlannedTurn> {
    let mut seen = None;
    let turns = match which {
        Which::Only(words) => match range_ends(words) {
            // As a range of steps it would have been read.
            Some((first, last)) if are_steps_of_one(first, last) => {
                return Err(begins_with_the_older(first, last).into());
            }
            Some(ends) => {
                let line = line_between(view, ends, on_this_branch)?;
                without_dropped(view, line)?
            }
            None => vec![on_this_branch(view, words)?],
        },
        Which::PartsOf(Extent::Steps(1)) => {
            vec![last_with(view, pathspecs, &seen.insert(view.present()?).checkpoint)?]
        }
        Which::Last(extent) | Which::PartsOf(extent) => last_ones(view, extent)?,
    };
    if turns.is_empty() {
        return Err(nothing(Op::Undo, "no turn is done").into());
    }
    if which.later_stay() && edits == Some(Edits::Overwrite) {
        return Err(Refusal::new(Code::Usage, "--edits=overwrite would take out later turns' work too")
            .hint("pass --edits=merge, or nothing: edits are merged where they go together")
            .into());
    }
    let edits = match view.config().edits_or(edits)? {
        Edits::Overwrite if which.later_stay() => Edits::Merge,
        edits => edits,
    };
    let rest = match (&turns[..], which, pathspecs) {
        ([turn], Which::Only(_), []) => only_left_of(view, turn)?,
        _ => Vec::new(),
    };
    let (given, pathspecs) = (pathspecs, if rest.is_empty() { pathspecs } else { &rest[..] });
    let capture = seen.map_or_else(|| view.present(), Ok)?;
    let taken = Taken::above(view, turns.iter().map(|turn| turn.turn).min().unwrap_or(u64::MAX))?;
    let revert = Revert { view, turns: &turns, taken: &taken, capture: &capture, edits };
    let plan = revert.plan(pathspecs).map_err(|error| revert.with_later_turns(error, which));
    let plan = plan.map_err(|error| revert.in_the_middle_of_its(error))?;
    if !which.later_stay() && edits != Edits::Overwrite {
        for turn in &turns {
            check_apart(turn, changed_files(&plan), BOTH)?;
        }
    }
    let extent = if given.is_empty() { conversation::Extent::Whole } else { conversation::Extent::Parts };
    let conversations = Conversations::undone(view, &turns, extent)?;
    let merged = match which {
        Which::Last(Extent::To(words)) => merged_since(view, resolve(view, words)?)?,
        _ => Vec::new(),
    };
    let stays = |turn| format!("turn {turn} was merged, and stays: 'oxundo undo --only {turn}' takes it out too");
    let taken = turns.iter().filter_map(|turn| told_of_taken(view, turn, &plan));
    let warnings = taken.chain(merged.into_iter().map(stays)).collect();
    Ok(PlannedTurn { conversations, warnings, ..named(&turns, plan, capture, given) })
}

fn are_steps_of_one(first: &str, last: &str) -> bool {
    StepName::parse(first).zip(StepName::parse(last)).is_some_and(|(first, last)| first.turn == last.turn)
}

/// The last turns that are there.
fn last_ones(view: &View<'_>, extent: &Extent) -> Result<Vec<Turn>> {
    let mut turns = without_dropped(view, TurnRange::find(view, Op::Undo, extent)?.turns)?;
    if let Extent::Steps(steps) = extent {
        let (wanted, mut all) = (usize::try_from(*steps)?, *steps);
        while turns.len() < wanted {
            all += (wanted - turns.len()) as u64;
            turns = without_dropped(view, TurnRange::find(view, Op::Undo, &Extent::Steps(all))?.turns)?;
        }
    }
    Ok(turns)
}

/// Of these turns of HEAD's line those that made something which the user has not dropped.
fn without_dropped(view: &View<'_>, mut turns: Vec<Turn>) -> Result<Vec<Turn>> {
    let dropped = dropped::dropped(view, turns.iter().map(|turn| turn.turn).min().unwrap_or_default())?;
    turns.retain(|turn| !turn.is_part() && !dropped.contains(&turn.turn));
    Ok(turns)
}

/// The planned turn, and what it is called.
fn named(turns: &[Turn], plan: Plan, capture: Capture, pathspecs: &[OsString]) -> PlannedTurn {
    let numbers: Vec<u64> = turns.iter().map(|turn| turn.turn).collect();
    let listed = listed(&numbers);
    let whose = match turns {
        [turn] => format!("turn {} ({})", turn.turn, sanitized(&turn.label())),
        _ => format!("turns {listed}"),
    };
    let noun = if turns.len() == 1 { "turn" } else { "turns" };
    let (made, message, object) = if pathspecs.is_empty() {
        (Made::Revert(numbers.clone()), format!("take out {noun} {listed}"), whose)
    } else {
        // What is left out with these words is no name of what is taken out.
        let is_given = |path: &&OsString| !path.as_bytes().starts_with(ALL_BUT);
        let paths: Vec<_> = pathspecs.iter().filter(is_given).map(|path| path.to_string_lossy()).collect();
        let paths = Some(paths.join(" ")).filter(|paths| paths != ":/").unwrap_or_else(|| "parts".to_owned());
        let message = format!("take out {paths} of {noun} {listed}");
        (Made::PartialRevert(numbers.clone()), message, format!("parts of {whose}"))
    };
    let hint = "'oxundo redo' brings it back".to_owned();
    let words = Words { message, verbs: ["Took out", "Would take out"], object, hint };
    PlannedTurn { turns: numbers, ..PlannedTurn::new(plan, capture, made, words) }
}

/// What is here of a turn of which nothing is committed here.
fn only_left_of(view: &View<'_>, turn: &Turn) -> Result<Vec<OsString>> {
    if taken_off(view)? != Some(turn.turn) || has_any_here(view, turn)? {
        return Ok(Vec::new());
    }
    let left = left_behind(view, turn.turn, Alike::InPart)?.into_iter();
    Ok(left.map(|path| OsString::from_vec([b":(top,literal)", path.as_slice()].concat())).collect())
}

/// Whether a turn that is not done has commits here, or what it did not commit.
fn is_in_part(view: &View<'_>, turn: u64) -> Result<bool> {
    let Some(turn) = view.timeline.find_turn(turn)?.filter(|turn| turn.ended_at.is_some()) else { return Ok(false) };
    Ok(has_any_here(view, &turn)? || !only_left_of(view, &turn)?.is_empty())
}

/// The turn that these words mean; an error unless it is done on HEAD's branch.
pub fn on_this_branch(view: &View<'_>, words: &str) -> Result<Turn> {
    let wanted = resolve(view, words)?;
    let timeline = &view.timeline;
    let is_picked = || Ok::<_, anyhow::Error>(dropped::picked(view)?.contains_key(&wanted));
    let is_here = || {
        Ok::<_, anyhow::Error>(
            is_done(view, wanted)?
                || is_merged(view, wanted)?
                || has_moved_here(view, wanted)?
                || is_picked()?
                || is_in_part(view, wanted)?,
        )
    };
    if wanted != 0 && is_here()? {
        dropped::check(view, wanted)?;
        return timeline.require_turn(wanted);
    }
    let refusal = if wanted == 0 {
        Refusal::new(Code::Usage, "0 is the state before the first turn, not a turn")
    } else if view.place()?.undone.contains(&wanted) {
        Refusal::new(Code::Nothing, format!("turn {wanted} is undone already"))
    } else {
        let switch = switching::to_turn(view, &timeline.require_turn(wanted)?)?;
        let line = switch.unwrap_or_else(|| format!("oxundo redo --to {wanted}"));
        Refusal::new(Code::Branch, format!("turn {wanted} is not among the turns of this branch"))
            .hint(format!("run '{line}' to go to where it is done"))
    };
    Err(refusal.hint("run 'oxundo log --all' to see the turns").into())
}

/// The turn to take these paths out of: the last one, or, where that was done before, the next one below that has
/// changed any of them.
fn last_with(view: &View<'_>, pathspecs: &[OsString], now: &Checkpoint) -> Result<Turn> {
    let mut selection = Index::new(view.repo).selection(pathspecs)?;
    let mut taken = Taken::default();
    let (mut last, mut was_taken) = (None, false);
    let mut at = view.top()?;
    while let Some(number) = at {
        let turn = view.timeline.require_turn(number)?;
        at = turn.previous;
        taken.add(view, &turn)?;
        if turn.is_part() {
            continue;
        }
        let mut files = view.timeline.turn_files(number)?;
        files.retain(|file| {
            let path = unquoted(&file.path).unwrap_or_else(|| file.path.as_str().into());
            selection.takes(path.as_bstr())
        });
        let is_first = last.is_none();
        let last = *last.get_or_insert(number);
        // Of other turns their number has to be given: what they did to directories is read for the last one alone.
        let may_be = is_first && files.is_empty();
        let is_other =
            may_be && (has_directory(view, &turn, &mut selection)? || has_new_name(view, &turn, &mut selection, now)?);
        let paths = files.iter().map(|file| file.path.as_str());
        if is_other || taken.out_of(view, number, paths, now)?.len() < files.len() {
            return if is_first || was_taken {
                Ok(turn)
            } else {
                Err(not_touched(view, last, Some(&turn), pathspecs).into())
            };
        }
        was_taken |= !files.is_empty();
    }
    Err(match last {
        Some(_) if was_taken => nothing(Op::Undo, "what the turns changed there is taken out already").into(),
        Some(last) => not_touched(view, last, None, pathspecs).into(),
        // It says why there is no turn.
        None => TurnRange::find(view, Op::Undo, &Extent::Steps(1))
            .err()
            .unwrap_or_else(|| nothing(Op::Undo, "no turn is done").into()),
    })
}

/// Whether a turn made or removed an empty directory that is meant.
fn has_directory(view: &View<'_>, turn: &Turn, selection: &mut Selection<'_>) -> Result<bool> {
    let delta = delta_of(&view.timeline, turn)?;
    Ok(delta.directories.keys().any(|path| selection.takes_directory(path.as_bstr())))
}

/// Whether a file that a turn changed has a name by now that is meant.
fn has_new_name(view: &View<'_>, turn: &Turn, selection: &mut Selection<'_>, now: &Checkpoint) -> Result<bool> {
    let (delta, end) = (delta_of(&view.timeline, turn)?.inverse(), || view.timeline.checkpoint(turn.turn, Side::After));
    let names = RenamedSince::find(view, (&delta, end), now, &[])?;
    Ok(names.iter().any(|(_, new)| selection.takes(new.as_bstr())))
}

/// The refusal where the last turn did not touch these paths: it names the last one that did.
fn not_touched(view: &View<'_>, last: u64, other: Option<&Turn>, pathspecs: &[OsString]) -> Refusal {
    if let Some(refusal) = no_file(view, last, pathspecs) {
        return refusal;
    }
    let Some(turn) = other else {
        let message = format!("turn {last} changed no file that the pathspec matches, nor did any turn below it");
        return Refusal::new(Code::NotFound, message)
            .hint(format!("run 'oxundo show --stat {last}' to see the turn's files"));
    };
    let paths: Vec<_> = pathspecs.iter().map(|path| shell_word(path.as_encoded_bytes())).collect();
    let (number, label) = (turn.turn, sanitized(&turn.label()));
    let message = format!("turn {last} changed no file that the pathspec matches: turn {number} ({label}) did");
    Refusal::new(Code::NotFound, message).hint(format!(
        "run 'oxundo undo --only {} -- {}' to take that out",
        turn.turn,
        paths.join(" ")
    ))
}

/// The refusal where a turn changed no file at all, and all of its files are meant.
fn no_file(view: &View<'_>, turn: u64, pathspecs: &[OsString]) -> Option<Refusal> {
    let are_all = pathspecs == [OsString::from(Index::new(view.repo).whole())];
    let refusal = || Refusal::new(Code::NotFound, format!("turn {turn} changed no file"));
    are_all.then(|| refusal().hint("leave -p and the paths out to take it back as a whole"))
}

struct Revert<'a, 'r> {
    view: &'a View<'r>,
    turns: &'a [Turn],
    taken: &'a Taken,
    capture: &'a Capture,
    edits: Edits,
}

/// Whether a turn of another line is in HEAD's history: its branch was merged. Of one that ended on what was there before, that says nothing.
fn is_merged(view: &View<'_>, turn: u64) -> Result<bool> {
    let node = view.timeline.node(turn)?;
    match (node.to.filter(|_| node.moved()), view.head.commit) {
        (Some(end), Some(head)) => {
            Ok(view.timeline.require_turn(turn)?.knows(&end) && Objects::new(view.repo).is_ancestor(end, head)?)
        }
        _ => Ok(false),
    }
}

/// Whether a turn that ended on another branch committed to HEAD's, and that is there.
fn has_moved_here(view: &View<'_>, turn: u64) -> Result<bool> {
    let (Some(branch), Some(head)) = (&view.head.branch, view.head.commit) else { return Ok(false) };
    let Some(turn) = view.timeline.find_turn(turn)?.filter(|turn| turn.ended_at.is_some()) else { return Ok(false) };
    let [from, to] = moves_of(view, &turn, branch)?;
    match to.filter(|_| from != to && turn.branch.as_ref() != Some(branch)) {
        Some(to) => Objects::new(view.repo).is_ancestor(to, head),
        None => Ok(false),
    }
}

/// Where a branch was before a turn, and after it.
fn moves_of(view: &View<'_>, turn: &Turn, branch: &str) -> Result<[Option<ObjectId>; 2]> {
    let tip = |side| Ok::<_, anyhow::Error>(view.timeline.checkpoint(turn.turn, side)?.branches.get(branch).copied());
    Ok([tip(Side::Before)?, tip(Side::After)?])
}

/// The turns of other lines in HEAD's history that are newer than this one, and of which nothing was taken out. Where HEAD has not moved
/// since an older release wrote the timeline, they are not in its line.
fn merged_since(view: &View<'_>, goal: u64) -> Result<Vec<u64>> {
    let (mut known, mut walked, mut at) = (BTreeSet::<u64>::new(), Vec::new(), view.top()?);
    while let Some(number) = at.filter(|number| *number > goal) {
        let turn = view.timeline.require_turn(number)?;
        known.extend(turn.takes_out().iter().chain([&number]));
        walked.push(view.timeline.node(number)?);
        at = turn.previous;
    }
    // What a turn merged is taken out with it.
    let came_with_one = |number: u64| -> Result<bool> {
        let end = view.timeline.node(number)?.to;
        for Node { from, to, .. } in walked.iter().filter(|node| node.moved()) {
            let has = |side: &Option<ObjectId>| match (end, side) {
                (Some(end), Some(side)) => Objects::new(view.repo).is_ancestor(end, *side),
                _ => Ok(false),
            };
            if has(to)? && !has(from)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let numbers = view.timeline.newest_turns(usize::MAX, goal + 1)?;
    let mut merged = Vec::new();
    for number in numbers.into_iter().filter(|number| !known.contains(number)).take(MOST_MERGED) {
        if is_merged(view, number)? && !came_with_one(number)? {
            merged.push(number);
        }
    }
    Ok(merged)
}

/// Refuses a commit on top of what the user is about to commit upon. In the middle of a rebase or a bisect that stands still,
/// with nothing staged, it is one more, as the user makes them there.
fn check_on_top(plan: &Plan, deltas: &[TurnDelta], present: &Present) -> Result<(), Refusal> {
    let now = &present.operation;
    let stands_still = || deltas.iter().all(|turn| turn.within == *now) && present.staged.is_empty();
    if !now.is_under_way() || plan.head.from == plan.head.to || !now.commits_next() && stands_still() {
        return Ok(());
    }
    Err(in_progress(now.in_progress()))
}

/// What a turn's commits did: the tree before them and the one after.
struct Committed<'a> {
    turn: &'a Turn,
    after: ObjectId,
    before: ObjectId,
    /// What it only brought: that stays.
    brought: Brought,
    /// The branches that it has moved, from where they are with it.
    branches: BTreeMap<String, Change<Option<ObjectId>>>,
}

impl<'a> Revert<'a, '_> {
    fn plan(&self, pathspecs: &[OsString]) -> Result<Plan> {
        let repo = self.view.repo;
        let checkpoints = Checkpoints::new(repo);
        let mut selection = match pathspecs {
            [] => None,
            pathspecs => Some(Index::new(repo).selection(pathspecs)?),
        };
        let mut deltas = Vec::new();
        let (mut committed, mut followed, mut was_there) = (Vec::new(), Vec::new(), false);
        for turn in self.turns {
            let (mut inverse, mut commits, names) = self.inverse(turn, &deltas)?;
            if let Some(selection) = &mut selection {
                let others = other_names(self.view, &inverse.delta.files)?;
                let then = |path: &BString| names.name_then(path).into_iter();
                let all = |path: &BString| {
                    let other = others.get(path);
                    then(path).chain(other).chain(other.into_iter().flat_map(then)).cloned().collect()
                };
                inverse.delta = restricted(inverse.delta, selection, turn, all);
                was_there |= !inverse.delta.files.is_empty();
                self.leave_taken(turn, &mut inverse, |_| true)?;
                inverse.staged.retain(|path, _| inverse.delta.files.contains_key(path));
                let state = |side| self.view.timeline.checkpoint(turn.turn, side);
                let (mut then, left) = (state(Side::Before)?.stash, state(Side::After)?.stash);
                then.retain(|entry| !left.contains(entry));
                let now = &self.capture.checkpoint.stash;
                inverse.delta.stash =
                    stashed::back(self.view, &then, now, |path| inverse.delta.files.contains_key(path))?;
            } else {
                // What took it out may be taken out as well.
                let goes = |by| self.turns.iter().any(|turn| Some(turn.turn) == by);
                let stays = |path: &str| !goes(self.taken.by(turn.turn, path));
                let out = self.leave_taken(turn, &mut inverse, stays)?;
                let entry = |path: BString| {
                    let entry = Objects::new(repo).tree_entry(commits.after, path.as_bstr())?;
                    Ok((path, entry))
                };
                let stays: Vec<_> = out.into_iter().map(entry).collect::<Result<_>>()?;
                commits.before = Objects::new(repo).edited_tree(commits.before, &stays)?;
                self.leave_staged(&mut inverse.delta, &mut commits, &deltas)?;
                committed.push(commits);
            }
            deltas.push(inverse);
            followed.push(names);
        }
        let is_none = |Delta { files, directories, aside, .. }: &Delta| {
            files.is_empty() && aside.is_empty() && (was_there || directories.is_empty())
        };
        if selection.is_some() && deltas.iter().all(|turn| is_none(&turn.delta)) {
            if was_there {
                return Err(nothing(Op::Undo, "what the turn changed is taken out already").into());
            }
            let turn = self.turns[0].turn;
            let refusal = || {
                Refusal::new(Code::NotFound, format!("turn {turn} changed no file that the pathspec matches"))
                    .hint(format!("run 'oxundo show --stat {turn}' to see the turn's files"))
            };
            return Err(no_file(self.view, turn, pathspecs).unwrap_or_else(refusal).into());
        }
        self.tell_of_none(pathspecs, &deltas, &followed)?;
        let now = &self.capture.checkpoint;
        let mut present = checkpoints.present(&deltas, now, &self.capture.index)?;
        present.edited = self.edited(now, &deltas)?;
        for (names, turn) in followed.iter().zip(&deltas) {
            names.leave_out(&mut present.edited, &turn.delta);
        }
        let converted = Converted::find(self.view, self.capture, &deltas, &mut present)?;
        checkpoints.merging(|merge| {
            let mut plan = planned(Op::Undo, &deltas, &present, self.edits, merge)?;
            converted.put_into(&mut plan);
            self.commit(&mut plan, &committed, merge)?;
            plan.branches.extend(self.only_there(&committed)?);
            check_on_top(&plan, &deltas, &present)?;
            if plan.is_empty() {
                return Err(self.is_out_already(&committed)?.into());
            }
            self.tell_of_others(&committed)?;
            Ok(plan)
        })
    }

    /// Tells of what the turns brought, or have merged with what others did.
    fn tell_of_others(&self, committed: &[Committed<'_>]) -> Result<()> {
        for Committed { turn, brought, .. } in committed {
            brought.told(self.view, turn)?.into_iter().for_each(|told| self.view.warn(told));
        }
        Ok(())
    }

    /// Tells of those of several pathspecs that match nothing of the turns.
    fn tell_of_none(&self, pathspecs: &[OsString], deltas: &[TurnDelta], followed: &[RenamedSince]) -> Result<()> {
        for pathspec in pathspecs.iter().filter(|_| pathspecs.len() > 1) {
            let mut selection = Index::new(self.view.repo).selection(std::slice::from_ref(pathspec))?;
            let has_any = deltas.iter().map(|turn| &turn.delta).any(|delta| {
                delta.files.keys().chain(delta.aside.keys()).any(|path| selection.takes(path.as_bstr()))
                    || delta.directories.keys().any(|path| selection.takes_directory(path.as_bstr()))
            });
            let has_any =
                has_any || followed.iter().flat_map(RenamedSince::iter).any(|(old, _)| selection.takes(old.as_bstr()));
            if !has_any {
                let pathspec = in_quotes(pathspec.as_bytes().as_bstr());
                self.view.warn(format!("nothing was changed that {pathspec} matches"));
            }
        }
        Ok(())
    }

    /// The refusal where nothing of the turns is left, as where the user has reverted them with git; the turn below is next then.
    fn is_out_already(&self, committed: &[Committed<'_>]) -> Result<Refusal> {
        for Committed { turn, brought, .. } in committed {
            if let Some(told) = brought.told_of_unclear(turn) {
                let mut refusal = nothing(Op::Undo, &told);
                refusal.hints.splice(..0, self.own_commits(turn)?.or(whole_merge(brought.by)));
                return Ok(refusal);
            }
        }
        let mut refusal = match self.turns {
            [Turn { made: Some(Made::Squash), turn, .. }] => {
                nothing(Op::Undo, &format!("turn {turn} only made one commit of others"))
            }
            _ => nothing(Op::Undo, "what the turn changed is taken out already"),
        };
        if let [turn] = self.turns {
            if let Some(refusal) = self.is_elsewhere(turn)? {
                return Ok(refusal);
            }
            if let Some(it) = committed.iter().find(|it| !it.brought.commits.is_empty()) {
                refusal.hints.splice(..0, whole_merge(it.brought.by.or(self.last_merge(turn)?)));
                refusal.message = nothing(Op::Undo, "the turn only brought what others have made").message;
            }
            if let Some(line) = taken_again(self.view, turn)? {
                refusal.hints.insert(0, line);
                return Ok(refusal);
            }
        }
        let lowest = self.turns.last().and_then(|turn| turn.previous);
        if let Some(below) = next_in(self.view, self.turns, lowest)? {
            let line = format!("run 'oxundo undo --only {below}' to take out turn {below}, the next one below");
            refusal.hints.insert(0, line);
        }
        Ok(refusal)
    }

    /// The commits of a turn that are taken back, in words.
    fn taken_commits(&self, Committed { turn, brought, .. }: &Committed<'_>) -> Result<String> {
        let commits = turn.commits.iter().filter(|commit| Some(commit.id) != turn.dirty_commit);
        let ids: Vec<ObjectId> = commits.map(|commit| commit.id).collect();
        let stay = Objects::new(self.view.repo).reachable_from(&brought.commits, &ids)?;
        let taken = ids.iter().filter(|id| !stay.contains(*id));
        Ok(taken.map(|id| format!("This takes back commit {id}.\n")).collect())
    }

    /// The line that takes out the commits which a turn made on top of what it merged.
    fn own_commits(&self, turn: &Turn) -> Result<Option<String>> {
        let (objects, mut own, mut has_merged) = (Objects::new(self.view.repo), Vec::new(), false);
        for commit in turn.commits.iter().filter(|commit| commit.kind == CommitKind::Agent) {
            if objects.parents(commit.id)?.len() > 1 {
                (own, has_merged) = (Vec::new(), true);
            } else {
                own.insert(0, commit.id.to_hex_with_len(10).to_string());
            }
        }
        let line = format!("run 'git revert --no-edit {}' to take out what it committed since", own.join(" "));
        Ok((has_merged && !own.is_empty() && !self.view.is_dirty()?).then_some(line))
    }

    /// The last merge that a turn has made.
    fn last_merge(&self, turn: &Turn) -> Result<Option<ObjectId>> {
        let objects = Objects::new(self.view.repo);
        for commit in turn.commits.iter().rev().filter(|commit| commit.kind == CommitKind::Agent) {
            if objects.parents(commit.id)?.len() == 2 {
                return Ok(Some(commit.id));
            }
        }
        Ok(None)
    }

    /// The refusal where a turn has committed to the branch that it began on, and then went to this one.
    fn is_elsewhere(&self, turn: &Turn) -> Result<Option<Refusal>> {
        let Some(began_on) = &turn.began_on else { return Ok(None) };
        if turn.began_on == turn.branch || turn.began_on == self.view.head.branch {
            return Ok(None);
        }
        let [from, to] = moves_of(self.view, turn, began_on)?;
        if from == to {
            return Ok(None);
        }
        let Some(line) = switching::line(self.view, Some(began_on), None)? else { return Ok(None) };
        let shown = short_branch(began_on);
        let number = turn.turn;
        let why = format!("turn {number} has changed nothing here, its commits are on '{shown}'");
        let mut refusal = nothing(Op::Undo, &why);
        refusal.hints.insert(0, format!("run '{line}' to go there, then 'oxundo undo --only {number}'"));
        Ok(Some(refusal))
    }

    /// The changes that take a turn out, apart from its commits; the commits; and its files that have other names since. `above` is
    /// taken out before.
    fn inverse(&self, turn: &'a Turn, above: &[TurnDelta]) -> Result<(TurnDelta, Committed<'a>, RenamedSince)> {
        let (repo, timeline) = (self.view.repo, &self.view.timeline);
        let mut before = timeline.undone_to(turn.turn)?;
        let after = timeline.checkpoint(turn.turn, Side::After)?;
        // The user's uncommitted work from before the turn is not the turn's.
        let dirty = turn.dirty_commit.filter(|_| turn.onto.is_none());
        let began = timeline.checkpoint(turn.turn, Side::Before)?;
        let is_ended = before.operation.is_under_way() && before.operation != after.operation;
        if is_ended && !began.operation.is_under_way() {
            before = with_operation_ended(repo, &before, &after)?;
        }
        let (mut start, mut apart) = (goal_with_dirty_commit(repo, &began, &before, dirty)?, Vec::new());
        if is_ended && began.operation.is_under_way() {
            (start, apart) = with_operation_given_up(repo, start, &after)?;
        }
        let mut with = start.clone();
        let mut concluded = concluded::leave_out(self.view, (&mut with, &after), self.view.head.commit)?;
        if concluded.by.is_some_and(|by| self.turns.iter().any(|turn| turn.knows(&by))) {
            // What concluded it is taken out as well.
            concluded = Brought::default();
        } else {
            start = with;
        }
        let OnOne { ends: [start, after], committed: [was, now], mut brought } =
            ends_of_turn(self.view, turn, [start, after])?;
        brought.add(concluded);
        brought.unclear.append(&mut apart);
        // Of what is as it was before the turn nothing stays.
        let (checkpoints, here) = (Checkpoints::new(repo), &self.capture.checkpoint);
        let mut stays = std::mem::take(&mut brought.unclear);
        stays.sort_unstable();
        stays.dedup();
        for path in stays {
            if checkpoints.captured_file(here, path.as_bstr())? != checkpoints.captured_file(&began, path.as_bstr())? {
                brought.unclear.push(path);
            }
        }
        let mut delta = Checkpoints::new(repo).delta(turn, &start, &after)?.inverse();
        let branches = std::mem::take(&mut delta.branches);
        delta.symbolic.clear();
        (delta.head, delta.operation) = (None, None);
        let within = start.operation.clone();
        let (before, users) = self.without_users([&began, &before, &after], was, now)?;
        // What the user saved and a call has committed is committed still, and so it is staged.
        for path in users {
            if let Some(change) = delta.index.get_mut(&path) {
                change.to = Objects::new(repo).plain_entries(before, path.as_bstr())?;
            }
        }
        let here = &self.capture.checkpoint;
        let above: Vec<&Delta> = above.iter().map(|turn| &turn.delta).collect();
        let followed = RenamedSince::find(self.view, (&delta, || Ok(after.clone())), here, &above)?;
        followed.lead(self.view, &mut delta, here)?;
        let [before, now] = followed.lead_trees(self.view, [before, now], Objects::new(repo).head_tree(&here.head)?)?;
        let mut delta = TurnDelta { turn: turn.turn, delta, within, ..TurnDelta::default() };
        staged::note(self.view, self.capture, [(&self.capture.checkpoint, &after, &mut delta)].into_iter())?;
        Ok((delta, Committed { turn, after: now, before, brought, branches }, followed))
    }

    /// Leaves out what was taken out of a turn before, and is out now: what somebody has in its place is theirs. Gives the files.
    fn leave_taken(&self, turn: &Turn, inverse: &mut TurnDelta, stays: impl Fn(&str) -> bool) -> Result<Vec<BString>> {
        let paths: Vec<String> = inverse.delta.files.keys().map(|path| quoted(path.as_bstr())).collect();
        let paths = paths.iter().map(String::as_str).filter(|path| stays(path));
        let out = self.taken.out_of(self.view, turn.turn, paths, &self.capture.checkpoint)?;
        let is_out = |path: &BString| out.contains(&quoted(path.as_bstr()));
        let left = inverse.delta.files.keys().filter(|path| is_out(path)).cloned().collect();
        inverse.delta.files.retain(|path, _| !is_out(path));
        inverse.staged.retain(|path, _| !is_out(path));
        Ok(left)
    }

    /// Leaves what the turn only staged or committed, as the user's edits, where somebody has gone on from that; and all that it staged
    /// where somebody has committed it. `above` is what other turns that are taken out did.
    fn leave_staged(&self, delta: &mut Delta, commits: &mut Committed<'_>, above: &[TurnDelta]) -> Result<()> {
        let (objects, checkpoints) = (Objects::new(self.view.repo), Checkpoints::new(self.view.repo));
        let is_theirs = |path| above.iter().any(|turn| turn.delta.index.contains_key(path));
        let here = objects.head_tree(&self.capture.checkpoint.head)?;
        let mut stays = Vec::new();
        let mut committed = Vec::new();
        for (path, change) in &delta.index {
            let is_in = |tree| Ok::<_, anyhow::Error>(objects.plain_entries(tree, path.as_bstr())? == change.from);
            if is_in(here)? && !is_in(commits.after)? {
                committed.push((path.clone(), objects.tree_entry(commits.after, path.as_bstr())?));
                continue;
            }
            let now = checkpoints.entries_of(&self.capture.checkpoint.index, path.as_bstr())?;
            if !delta.files.contains_key(path) && !is_theirs(path) && now != change.from && now != change.to {
                stays.push((path.clone(), objects.tree_entry(commits.after, path.as_bstr())?));
            }
        }
        for (path, _) in &stays {
            delta.index.remove(path);
            let (path, turn) = (in_quotes(path.as_bstr()), commits.turn.turn);
            self.view.warn(format!(
                "{path} stays as it is: turn {turn} changed only what was staged of it, and it is another since"
            ));
        }
        for (path, _) in &committed {
            delta.index.remove(path);
        }
        commits.before = objects.edited_tree(commits.before, &[stays, committed].concat())?;
        Ok(())
    }

    /// The tree to which its commits are taken back: what the user saved during the turn and somebody committed in it stays. And where
    /// that is.
    fn without_users(
        &self,
        [began, goal, end]: [&Checkpoint; 3],
        was: ObjectId,
        now: ObjectId,
    ) -> Result<(ObjectId, Vec<BString>)> {
        let (objects, checkpoints) = (Objects::new(self.view.repo), Checkpoints::new(self.view.repo));
        if began.worktree == goal.worktree {
            return Ok((was, Vec::new()));
        }
        let users = objects.changed_paths(began.worktree, goal.worktree)?;
        let mut stays = Vec::new();
        checkpoints.merging(|merge| {
            for (path, _) in objects.entry_changes(was, now)?.into_iter().filter(|(path, _)| users.contains(path)) {
                let committed = objects.tree_entry(now, path.as_bstr())?;
                let file = |state| checkpoints.captured_file(state, path.as_bstr());
                let next = match (committed, file(goal)?, file(end)?) {
                    (Some((kind, ours)), Some(theirs), Some(base)) if theirs.id != base.id => {
                        let merged = merge(path.as_bstr(), Blobs { base: base.id, ours, theirs: theirs.id })?;
                        let Merged::Clean(id) = merged else { continue };
                        Some((kind, id))
                    }
                    (committed, ..) => committed,
                };
                stays.push((path, next));
            }
            Ok(())
        })?;
        Ok((objects.edited_tree(was, &stays)?, stays.into_iter().map(|(path, _)| path).collect()))
    }

    /// What the user edited since the last turn.
    fn edited(&self, now: &Checkpoint, deltas: &[TurnDelta]) -> Result<BTreeMap<BString, Change<Option<FileState>>>> {
        let Some(top) = self.view.top()? else { return Ok(BTreeMap::new()) };
        let last = self.view.timeline.checkpoint(top, Side::After)?;
        let mut edited = Checkpoints::new(self.view.repo).edited(&[(&last, now)], now, &last)?;
        if last.head.commit != now.head.commit {
            leave_committed(self.view, &mut edited, deltas, now)?;
        }
        Ok(edited)
    }

    /// A commit for each turn that made some, on top of HEAD.
    fn commit(&self, plan: &mut Plan, committed: &[Committed<'_>], merge: &mut Merge<'_>) -> Result<()> {
        let repo = self.view.repo;
        let mut tree = Objects::new(repo).head_tree(&plan.head.from)?;
        let mut overlaps = BTreeMap::new();
        for one @ Committed { turn, after, before, .. } in committed {
            let next = Checkpoints::new(repo).merge_trees(tree, *after, *before, &mut overlaps, merge)?;
            if next != tree && overlaps.is_empty() {
                repo.check_identity()?;
                let message = format!("Take out turn {}: {}\n\n{}", turn.turn, turn.title(), self.taken_commits(one)?);
                let parents: Vec<_> = plan.head.to.commit.into_iter().collect();
                let sign = self.view.sign()?;
                plan.head.to.commit = Some(Objects::new(repo).make_commit(next, &parents, &message, sign)?);
            }
            tree = next;
        }
        if !overlaps.is_empty() {
            return Err(conflict(&overlaps, Op::Undo, Edits::Overwrite).into());
        }
        if tree == Objects::new(repo).head_tree(&plan.head.from)? {
            // One of them had taken out another: together they change nothing.
            plan.head.to.commit = plan.head.from.commit;
        }
        if let (Some(name), true) = (&plan.head.from.branch, plan.head.from.commit != plan.head.to.commit) {
            plan.branches.push(BranchMove { name: name.clone(), from: plan.head.from.commit, to: plan.head.to.commit });
        }
        Ok(())
    }

    /// Brings back the branches that the turns have deleted where nothing else has their commits by now: what they held may have come
    /// with a commit that is taken out, as by a squash or a rebase.
    fn only_there(&self, committed: &[Committed<'_>]) -> Result<Vec<BranchMove>> {
        let (mut deleted, mut were) = (BTreeMap::new(), BTreeMap::new());
        // The oldest turn says last where a branch was.
        for (name, change) in committed.iter().flat_map(|it| &it.branches) {
            if let (None, Some(tip)) = (change.from, change.to) {
                deleted.entry(name).or_insert(tip);
            }
            were.insert(name, change.to);
        }
        if deleted.is_empty() {
            return Ok(Vec::new());
        }
        let (objects, refs) = (Objects::new(self.view.repo), Refs::new(self.view.repo));
        let branches = refs.branches()?;
        let tips: Vec<ObjectId> =
            branches.values().copied().chain(self.view.head.commit).chain(refs.tips_beside()?).collect();
        let is_agents = |id: &ObjectId| {
            let mut commits = committed.iter().flat_map(|it| &it.turn.commits);
            commits.any(|commit| commit.id == *id && commit.kind == CommitKind::Agent)
        };
        for (name, tip) in deleted.iter().filter(|(_, tip)| objects.has_commit(**tip)) {
            let was = were[*name].filter(|was| objects.has_commit(*was));
            let hidden: Vec<ObjectId> = tips.iter().copied().chain(was).collect();
            if were[*name] != Some(*tip) && !objects.commits_between(&hidden, *tip)?.iter().all(is_agents) {
                let shown = short_branch(name);
                self.view.warn(format!("'{shown}' comes back as it was when it was deleted: it has commits of yours"));
                were.insert(*name, Some(*tip));
            }
        }
        let is_free = |name: &str| {
            let is_in = |one: &str, other: &str| one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'));
            !branches.keys().any(|other| other == name || is_in(name, other) || is_in(other, name))
        };
        let were = were.into_iter().filter(|(name, _)| deleted.contains_key(name));
        let were = were.filter_map(|(name, id)| Some((name, id.filter(|id| objects.has_commit(*id))?)));
        let lost: Vec<(&String, ObjectId)> = were.collect();
        let ids: Vec<ObjectId> = lost.iter().map(|(_, id)| *id).collect();
        let held = objects.reachable_from(&tips, &ids)?;
        let mut back = Vec::new();
        for (name, id) in lost.into_iter().filter(|(_, id)| !held.contains(id)) {
            if is_free(name) {
                back.push(BranchMove { name: name.clone(), from: None, to: Some(id) });
                continue;
            }
            let plain = name.strip_prefix("refs/heads/").unwrap_or(name).replace('/', "-");
            let kept = branch_word(&format!("{plain}-kept"));
            let (shown, line) = (short_branch(name), format!("git branch {kept} {}", id.to_hex_with_len(10)));
            self.view
                .warn(format!("'{shown}' was deleted, and nothing else has its commits: '{line}' brings them back"));
        }
        Ok(back)
    }

    /// The line by which git takes out what the user has made of the turn's commit, as they put it together with what others did.
    fn reverting_copy(&self) -> Result<Option<String>> {
        let [turn] = self.turns else { return Ok(None) };
        let copy = dropped::fates(self.view, turn.turn)?.copies.get(&turn.turn).copied();
        let Some(copy) = copy.filter(|_| turn.commits.len() == 1) else { return Ok(None) };
        let objects = Objects::new(self.view.repo);
        // In one that was made of several there is more.
        let is_it = matches!(objects.likeness(turn.commits[0].id, copy), Likeness::Copy | Likeness::Reworded);
        if !is_it || self.view.is_dirty()? || objects.parents(copy)?.len() != 1 {
            return Ok(None);
        }
        let id = copy.to_hex_with_len(10);
        Ok(Some(format!("run 'git revert --no-edit {id}' to take out the commit that it has become")))
    }

    /// The refusal where git is in the middle of what one of the turns has left: undo takes that back with all that the turn did.
    fn in_the_middle_of_its(&self, error: anyhow::Error) -> anyhow::Error {
        let mut refusal = match error.downcast::<Refusal>() {
            Ok(refusal) if refusal.code == Code::InProgress => refusal,
            Ok(refusal) => return refusal.into(),
            Err(error) => return error,
        };
        let now = &self.capture.checkpoint.operation;
        let has_left = |turn: &&Turn| {
            let end = self.view.timeline.checkpoint(turn.turn, Side::After);
            now.is_under_way() && end.is_ok_and(|end| end.operation == *now)
        };
        if let Some(turn) = self.turns.iter().find(has_left) {
            refusal.message = format!("turn {} left a {} in progress, and it is so still", turn.turn, now.word());
            let is_last = self.view.top().is_ok_and(|top| top == Some(turn.turn));
            let line = || "run 'oxundo undo' to take it back with all that the turn did".to_owned();
            refusal.hints.splice(..0, is_last.then(line));
        }
        refusal.into()
    }

    /// A conflict, with the later turn that changed each path.
    fn with_later_turns(&self, error: anyhow::Error, which: &Which) -> anyhow::Error {
        let mut refusal = match error.downcast::<Refusal>() {
            Ok(refusal) if refusal.code == Code::Conflict => refusal,
            Ok(refusal) => return refusal.into(),
            Err(error) => return error,
        };
        if which.later_stay() {
            refusal.hints.retain(|hint| !hint.contains("--edits=overwrite"));
        }
        refusal.hints.splice(..0, self.reverting_copy().ok().flatten());
        beside_later(self.view, refusal, &self.capture.checkpoint, self.turns)
    }
}

/// A state in the middle of a merge, or the like, that the user began within the turn, as it is when that is ended: what did not go
/// together is as somebody has put it together, and what they had staged stays.
fn with_operation_ended(repo: &Repo, state: &Checkpoint, after: &Checkpoint) -> Result<Checkpoint> {
    let mut ended = Checkpoints::new(repo).with_all_of_paths(state, after, &state.index.unmerged())?;
    ended.operation = Operation::default();
    Ok(ended)
}

/// A state in the middle of a merge, or the like, as it is when that is given up: a turn that ended it has its own commit for what
/// was staged. Tells of which files cannot be told what of them is in a stash that came back with that.
fn with_operation_given_up(
    repo: &Repo,
    mut state: Checkpoint,
    after: &Checkpoint,
) -> Result<(Checkpoint, Vec<BString>)> {
    let objects = Objects::new(repo);
    let head = objects.head_tree(&state.head)?;
    let unmerged = state.index.unmerged();
    let (mut staged, mut files) = (Vec::new(), Vec::new());
    for path in objects.changed_paths(head, state.index.tree)?.into_iter().chain(unmerged.iter().cloned()) {
        let committed = objects.tree_entry(head, path.as_bstr())?;
        let is_as_staged = objects.tree_entry(state.index.tree, path.as_bstr())?
            == objects.tree_entry(state.worktree, path.as_bstr())?;
        if is_as_staged || unmerged.contains(&path) {
            files.push((path.clone(), committed));
        }
        staged.push((path, committed));
    }
    state.index.special.retain(|path, _| !unmerged.contains(path));
    state.index.tree = objects.edited_tree(state.index.tree, &staged)?;
    state.worktree = objects.edited_tree(state.worktree, &files)?;
    let apart = put_stashed(repo, &mut state, after)?;
    state.operation = Operation::default();
    Ok((Checkpoints::new(repo).with_paths_of(&state, after, &apart)?, apart))
}

/// What git has stashed for as long as an operation lasts is there again as that ends; where it did not go together with what was there,
/// it is in the stash list of the state after it. Gives the files where it does not go together with what is in this state, or where it
/// may be, as it is not known what was stashed.
fn put_stashed(repo: &Repo, state: &mut Checkpoint, after: &Checkpoint) -> Result<Vec<BString>> {
    if state.operation.unread.is_some() {
        let objects = Objects::new(repo);
        let mut uncommitted = objects.changed_paths(objects.head_tree(&after.head)?, after.worktree)?;
        uncommitted.retain(|path| !after.index.unmerged().contains(path));
        return Ok(uncommitted);
    }
    stashed::put_autostashes(repo, state, &after.stash)
}

/// The line that takes out all of a merge.
fn whole_merge(merge: Option<ObjectId>) -> Option<String> {
    let line = |id: ObjectId| format!("run 'git revert -m 1 --no-edit {}'", id.to_hex_with_len(10));
    merge.map(|id| format!("{} to take out all that it merged, others' work too", line(id)))
}

/// Only what these pathspecs match of the worktree. What has several names, as the turn or somebody since has moved it, is one thing: all
/// of them, or none.
fn restricted(
    mut delta: Delta,
    selection: &mut Selection<'_>,
    turn: &Turn,
    others: impl Fn(&BString) -> Vec<BString>,
) -> Delta {
    delta.stash = None;
    delta.index.clear();
    let takes = |selection: &mut Selection<'_>, path: &BString| {
        let names = turn.other_names(path.as_bstr()).into_iter().chain(others(path));
        selection.takes(path.as_bstr()) || names.into_iter().any(|other| selection.takes(other.as_bstr()))
    };
    delta.files.retain(|path, _| takes(selection, path));
    let stores = |change: &Change<Option<Aside>>| -> Vec<String> {
        change.from.iter().chain(&change.to).map(|aside| aside.store.clone()).collect()
    };
    let matched = delta.aside.iter().filter(|(path, _)| takes(selection, path));
    let kept_in: BTreeSet<String> = matched.flat_map(|(_, change)| stores(change)).collect();
    delta.aside.retain(|_, change| stores(change).iter().any(|store| kept_in.contains(store)));
    let Delta { files, directories, .. } = &mut delta;
    // A directory goes with the files in it.
    let above = all_parents(files.keys().map(|file| file.as_bstr()));
    directories.retain(|path, _| selection.takes_directory(path.as_bstr()) || above.contains(path.as_bstr()));
    delta
}
