//! The plan of a walk over turns, with every check made.

use crate::error::{Code, Refusal};
use crate::git::apply::{Apply, foresee};
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::timeline::stored::Side;
use crate::git::worktree::Worktree;
use crate::model::checkpoint::{Aside, Change, Checkpoint, Head, branch_word, short_branch};
use crate::model::merge::Edits;
use crate::model::path::parents;
use crate::model::plan::{Op, Plan, ReturnState};
use crate::model::planner::{Occupant, Present, Standing, TurnDelta, plan, putting_back};
use crate::model::turn::CommitKind;
use crate::ops::brought::Brought;
use crate::ops::called::Renamed;
use crate::ops::switching;
use crate::ops::turn::meanwhile::{BOTH, changed_files, check_apart};
use crate::ops::undo::alone::check_plan;
use crate::ops::undo::committed::{committed, leave_committed, left_on_its_branch, note_since};
use crate::ops::undo::conflict::{check_new_names, leading_on, under_new_names};
use crate::ops::undo::converted::Converted;
use crate::ops::undo::leaving::{check_branches, check_commits, held_by_operation, stays_on_undo};
use crate::ops::undo::legs::{Leg, RefMoves, Reworded, Way, check_others};
use crate::ops::undo::range::{TurnRange, nothing, passed};
use crate::ops::undo::remade::Remade;
use crate::ops::undo::staged;
use crate::ops::view::View;
use anyhow::{Error, Result};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// A checked plan, the present state that it was made for, and the paths that the turns
/// changed and that are not covered.
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// The present.
    pub capture: Capture,
    /// The paths.
    pub uncovered: BTreeSet<BString>,
    /// The turns whose last commit has another message now.
    pub reworded: Vec<Reworded>,
    /// The turns whose commits are made anew, by the user or upon a commit with another message.
    pub remade: Vec<Remade>,
    /// The branches of turns that have another name now.
    pub renamed: Vec<Renamed>,
    /// What the user has made of what it changes: the rescue may be the only copy.
    pub users: BTreeSet<(BString, ObjectId)>,
    /// The branches that others have moved during a turn, and the turn: they stay.
    pub beside: BTreeMap<String, u64>,
    /// What turns brought by merges that others have concluded, and the turns: it stays.
    pub brought: Vec<(u64, Brought)>,
    /// Whether it moves such branches too.
    pub with_all: bool,
    /// Those of them on which HEAD was, and which another tool owns.
    pub owned: BTreeMap<String, u64>,
    /// Whether undo would leave the commits that it brings back.
    pub stays: bool,
}

impl Prepared {
    /// Plans the walk.
    pub fn new(view: &View<'_>, op: Op, range: &TurnRange, edits: Edits, refs: RefMoves<'_>) -> Result<Self> {
        let capture = view.present()?;
        let Way { mut legs, uncovered, reworded, remade, renamed, beside, with_all, owned, another, brought } =
            Way::of(view, range, refs, &capture.checkpoint)?;
        let now = &capture.checkpoint;
        if let RefMoves::Stay { at } = refs {
            legs = left_on_its_branch(view, legs, (now, at), range.turns[0].turn)?;
        }
        let (Some(Leg { start, .. }), Some(Leg { goal, .. })) = (legs.first(), legs.last()) else {
            return Err(nothing(op, "no turn was asked for").into());
        };
        let mut deltas: Vec<TurnDelta> = legs.iter().map(|leg| leg.delta.clone()).collect();
        check_on_branch(op, &legs, now, refs)?;
        let between = legs.windows(2).map(|pair| (&pair[0].goal, &pair[1].start));
        let gaps: Vec<_> = between.chain([(start, now)]).collect();
        match refs {
            RefMoves::Move => check_commits(view, op, range, &legs, now, &made_by_user(&reworded, &remade))?,
            // What is committed on this branch alone is no edit that goes along to another.
            RefMoves::Stay { .. } => deltas.iter_mut().for_each(TurnDelta::leave_refs),
        }
        let checkpoints = Checkpoints::new(view.repo);
        let mut edited = checkpoints.edited(&gaps, now, goal)?;
        // What went and came as a whole is known, though git has files of it by now.
        let is_whole = |path: &BString| deltas.iter().any(|turn| turn.delta.aside.contains_key(path));
        edited.retain(|path, _| !is_whole(path) && !parents(path.as_bstr()).any(|above| is_whole(&above.into())));
        if gaps.iter().any(|(left, found)| left.head.commit != found.head.commit) {
            leave_committed(view, &mut edited, &deltas, now)?;
        }
        let is_back = |turn: u64| range.turns[..range.back].iter().any(|back| back.turn == turn);
        let found = std::iter::once(now).chain(legs.iter().map(|leg| &leg.goal));
        let ends = found.zip(&legs).zip(&mut deltas).map(|((found, leg), turn)| (found, &leg.start, turn));
        staged::note(view, &capture, ends.filter(|(.., turn)| is_back(turn.turn)))?;
        let mut present = checkpoints.present(&deltas, now, &capture.index)?;
        present.committed = committed(view, now, &deltas)?;
        if refs.moves() {
            note_since(view, legs.iter().zip(&mut deltas), is_back, (&capture, &present))?;
        }
        present.uncovered.clone_from(&uncovered);
        present.touched.retain(|path| gaps.iter().any(|gap| differs(path, *gap)));
        as_stashed(view, range, &deltas, &mut present)?;
        let by_hand = if op == Op::Redo { view.place()?.by_hand.clone() } else { BTreeSet::new() };
        if range.turns.iter().any(|turn| by_hand.contains(&turn.turn)) {
            leave_reached(&mut deltas, &present);
        }
        let left = left(view, op, &deltas, &present)?;
        let taken_out = taken_out(view, &legs, &present)?;
        let mut present = Present { left, taken_out, edited, ..present };
        let converted = Converted::find(view, &capture, &deltas, &mut present)?;
        let oldest = range.turns[range.turns.len() - 1].turn;
        let plan = checkpoints.merging(|merge| plan(op, &deltas, &present, edits, merge));
        let plan = plan.map_err(|error| leading_on(view, error, now, (op, oldest)));
        let undone = (&range.turns[..range.back], &deltas[..]);
        let plan = plan.map_err(|error| match op {
            Op::Undo => under_new_names(view, error, undone, now),
            _ => error,
        });
        let mut plan = plan.map_err(|error| to_another_line(op, range, error))?;
        converted.put_into(&mut plan);
        if op == Op::Undo && edits != Edits::Overwrite {
            check_new_names(view, undone, now)?;
        }
        if op == Op::Redo && plan.is_empty() {
            // The user has brought back the files themselves: undo takes them out.
            plan.returns.iter_mut().for_each(|(_, returns)| *returns = ReturnState::default());
        }
        if edits != Edits::Overwrite {
            for turn in &range.turns[..range.back] {
                check_apart(turn, changed_files(&plan), BOTH)?;
            }
        }
        for (_, returns) in plan.returns.iter_mut().filter(|(turn, _)| by_hand.contains(turn)) {
            forget_reached(returns);
        }
        check_head_moves(op, &plan)?;
        check_arrival(view, &plan, now)?;
        Apply::check_names(&plan)?;
        check_others(&plan, &another)?;
        check_branches(view, &plan)?;
        if refs.moves() {
            // What a turn that is redone took off, it takes off again.
            let last = if range.back < legs.len() { legs.len() - 1 } else { 0 };
            let goals: Vec<&Checkpoint> = legs[last..].iter().map(|leg| &leg.goal).collect();
            let held = held_by_operation(view, &legs[..range.back])?;
            // The user's work upon which a turn began goes back into the files, or into the commits that a squash made of several.
            let commits = range.turns.iter().flat_map(|turn| &turn.commits);
            let dirty = commits.filter(|commit| commit.kind == CommitKind::Dirty).map(|commit| commit.id);
            let known: Vec<ObjectId> = made_by_user(&reworded, &remade).into_iter().chain(dirty).collect();
            check_plan(view, &plan, &goals, &known, held)?;
        }
        // Whoever carries it out looks again.
        if view.is_preview {
            foresee::check(view.repo, &plan)?;
        }
        if !plan.index.is_empty() {
            Index::new(view.repo).check_index_is_free(view.config().lock_timeout()?)?;
        }
        // Whoever carries the plan out opens them as it says.
        capture.opened.close();
        let users = plan.replaced(|path, id| is_of_turns(&deltas, path, id));
        let stays = op == Op::Redo && stays_on_undo(view, range, &legs, &plan)?;
        Ok(Self { plan, capture, uncovered, reworded, remade, renamed, users, beside, brought, with_all, owned, stays })
    }
}

/// Where a redo has to go back first, a branch that is put back to where a turn left it may lack what the next one begins on: all
/// stays where it is by a branch of the turn's own.
fn to_another_line(op: Op, range: &TurnRange, error: Error) -> Error {
    match error.downcast::<Refusal>() {
        Ok(mut refusal) => {
            if op == Op::Redo && range.back > 0 && refusal.code == Code::Branch {
                refusal.hints = range.on_a_branch().into_iter().collect();
            }
            refusal.into()
        }
        Err(error) => error,
    }
}

/// Whether one of the turns has found, made or staged this content there.
fn is_of_turns(deltas: &[TurnDelta], path: &BString, id: ObjectId) -> bool {
    deltas.iter().any(|turn| {
        let files = turn.delta.files.get(path).into_iter().flat_map(|change| [change.from, change.to]).flatten();
        let entries = turn.delta.index.get(path).into_iter().flat_map(|change| change.from.iter().chain(&change.to));
        files.map(|file| file.id).chain(entries.map(|entry| entry.id)).any(|known| known == id)
    })
}

/// Whether what is not captured at a path is another in the one state than in the other. In a turn it is the turn that changes it.
fn differs(path: &BString, (left, found): (&Checkpoint, &Checkpoint)) -> bool {
    let state = |state: &'_ Checkpoint| {
        let skipped = state.skipped.iter().find(|skipped| skipped.path == *path);
        skipped.map(|skipped| skipped.state.clone())
    };
    state(left) != state(found)
}

/// What a walk has written out of the stash is what a turn left, though its times are others.
fn as_stashed(view: &View<'_>, range: &TurnRange, deltas: &[TurnDelta], present: &mut Present) -> Result<()> {
    let mut differs: Vec<(&BString, &Aside)> = Vec::new();
    for (path, change) in deltas.iter().flat_map(|turn| &turn.delta.aside) {
        let standing = present.aside.get(path);
        differs.extend(
            change
                .from
                .as_ref()
                .filter(|left| *standing.unwrap_or(&Standing::Nothing) != Standing::Something(left.state.clone()))
                .map(|left| (path, left)),
        );
    }
    if differs.is_empty() {
        return Ok(());
    }
    // It may be another turn that stashed it, on either side of here: undo of that one has written it.
    let beside = [passed(view, Op::Undo, MOST_BESIDE)?, passed(view, Op::Redo, MOST_BESIDE)?].concat();
    let turns = beside.iter().chain(&range.turns);
    let stashed: BTreeSet<ObjectId> = turns.flat_map(|turn| turn.stashed.values()).map(|taken| taken.file.id).collect();
    for (path, left) in differs.into_iter().filter(|_| !stashed.is_empty()) {
        let state = Worktree::new(view.repo).readable(path.as_bstr(), view.repo.hash_kind());
        if state.is_some_and(|state| stashed.contains(&state.id)) {
            present.aside.insert(path.clone(), Standing::Something(left.state.clone()));
        }
    }
    Ok(())
}

/// Where the user took turns off with git and kept their files, these are where redo leads to already, however many turns
/// changed them on the way.
fn leave_reached(deltas: &mut [TurnDelta], present: &Present) {
    let (mut files, mut entries) = (BTreeMap::new(), BTreeMap::new());
    for turn in deltas.iter() {
        files.extend(turn.delta.files.iter().map(|(path, change)| (path.clone(), change.to)));
        entries.extend(turn.delta.index.iter().map(|(path, change)| (path.clone(), change.to.clone())));
    }
    let file = |path: &BString| match present.files.get(path) {
        Some(Occupant::File(state)) => Some(Some(*state)),
        None | Some(Occupant::Absent) => Some(None),
        _ => None,
    };
    let none = Vec::new();
    files.retain(|path, to| file(path) == Some(*to));
    entries.retain(|path, to| present.index.get(path).unwrap_or(&none) == to);
    for turn in deltas {
        turn.delta.files.retain(|path, _| !files.contains_key(path));
        turn.delta.index.retain(|path, _| !entries.contains_key(path));
    }
}

/// What the user kept of a turn, and has edited since, stays as it is; the way back takes the turn's part out all the same, as
/// it does where nothing was edited. Only what the walk changes has to be brought back to what it was.
fn forget_reached(returns: &mut ReturnState) {
    returns.files.retain(|file| file.from != file.to);
    returns.index.retain(|entry| entry.from != entry.to);
    returns.directories.retain(|directory| directory.from != directory.to);
    returns.branches.retain(|branch| branch.from != branch.to);
    returns.stash.take_if(|stash| stash.from == stash.to);
    returns.operation.take_if(|operation| operation.from == operation.to);
}

/// How many turns beside the walk are looked at for what somebody staged.
const MOST_BESIDE: usize = 16;

/// What one turn after the other did to a file, from the side that is farther from a walk.
type LeftBeside = BTreeMap<BString, Vec<Change<Option<ObjectId>>>>;

/// Files whose index entries somebody changed since, and what the turns that were walked over before did to them, the last of
/// them first.
fn left(view: &View<'_>, op: Op, deltas: &[TurnDelta], present: &Present) -> Result<LeftBeside> {
    let mut left = LeftBeside::new();
    let none = Vec::new();
    let mut paths = BTreeSet::new();
    for (path, change) in deltas.iter().flat_map(|turn| &turn.delta.index) {
        let now = present.index.get(path).unwrap_or(&none);
        if *now != change.from && *now != change.to {
            paths.insert(path);
        }
    }
    if paths.is_empty() {
        return Ok(left);
    }
    for turn in passed(view, op, MOST_BESIDE)?.into_iter().rev() {
        let (before, after) = (view.timeline.undone_to(turn.turn)?, view.timeline.checkpoint(turn.turn, Side::After)?);
        let (far, near) = if op == Op::Redo { (before, after) } else { (after, before) };
        for path in &paths {
            let file = |state| Checkpoints::new(view.repo).captured_file(state, path.as_bstr());
            if let Some(from) = file(&far)? {
                let to = file(&near)?.map(|file| file.id);
                left.entry((*path).clone()).or_default().push(Change::new(Some(from.id), to));
            }
        }
    }
    Ok(left)
}

/// What a turn of the walk staged, and somebody has taken out of the index since and committed so.
fn taken_out(view: &View<'_>, legs: &[Leg], present: &Present) -> Result<BTreeSet<BString>> {
    let (objects, mut out) = (Objects::new(view.repo), BTreeSet::new());
    let head = objects.head_tree(&present.head)?;
    for leg in legs.iter().filter(|leg| leg.start.head.commit != present.head.commit) {
        let is_staged = |path: &BString| present.index.get(path).is_some_and(|entries| !entries.is_empty());
        let mut missing = leg.delta.delta.index.keys().filter(|path| !is_staged(path)).peekable();
        if missing.peek().is_none() || !leg.start.head.commit.is_none_or(|commit| objects.has_commit(commit)) {
            continue;
        }
        let then = objects.head_tree(&leg.start.head)?;
        for path in missing {
            if !objects.tree_has_entry(head, path.as_bstr())? && objects.tree_has_entry(then, path.as_bstr())? {
                out.insert(path.clone());
            }
        }
    }
    Ok(out)
}

/// The commits that the user has put in the place of the turns', with nothing but messages changed.
fn made_by_user(reworded: &[Reworded], remade: &[Remade]) -> Vec<ObjectId> {
    let anew = remade.iter().filter(|remade| remade.by_user).flat_map(|remade| remade.commits.values().copied());
    reworded.iter().map(|commit| commit.to).chain(anew).collect()
}

/// Refuses to move what HEAD is on now, where that is no branch.
fn check_on_branch(op: Op, legs: &[Leg], now: &Checkpoint, refs: RefMoves<'_>) -> Result<()> {
    let moves = refs.moves() && legs.iter().any(|leg| leg.delta.delta.head.is_some());
    if !moves || !now.head.is_on_other_ref() {
        return Ok(());
    }
    Err(not_on_branch(op, &now.head, "run 'git switch --detach' first").into())
}

fn not_on_branch(op: Op, head: &Head, hint: &str) -> Refusal {
    let (op, name) = (op.word(), short_branch(head.stack()));
    Refusal::new(Code::Branch, format!("{op} would move HEAD, and '{name}', where it was, is no branch")).hint(hint)
}

/// Refuses to lead HEAD to a branch that is gone, or has gone on: what was committed there would be staged for its reversal.
fn check_arrival(view: &View<'_>, plan: &Plan, now: &Checkpoint) -> Result<()> {
    let to = &plan.head.to;
    let Some(name) = to.branch.as_ref().filter(|name| plan.head.from.branch.as_ref() != Some(name)) else {
        return Ok(());
    };
    let moved = plan.branches.iter().find(|branch| branch.name == *name);
    let found = moved.map_or_else(|| now.branches.get(name).copied(), |moved| moved.to);
    if found == to.commit {
        return Ok(());
    }
    let shown = short_branch(name);
    let switch = switching::line(view, Some(name), None)?;
    if to.commit.is_none() {
        return Err(Refusal::new(Code::Branch, format!("'{shown}' has commits now, and had none then"))
            .hints(switch.map(|switch| format!("run '{switch}' to go there")))
            .into());
    }
    let line = putting_back(name, to.commit, found.is_some());
    if found.is_none() {
        return Err(Refusal::new(Code::Branch, format!("'{shown}', to which HEAD would go, is no branch any more"))
            .hint(format!("run '{line}' to have it again, then the same command again"))
            .into());
    }
    let objects = Objects::new(view.repo);
    if let (Some(found), Some(then)) = (found, to.commit.filter(|then| objects.has_commit(*then)))
        && objects.is_ancestor(found, then)?
    {
        let line = format!("git branch -f {} {}", branch_word(name), then.to_hex_with_len(10));
        return Err(Refusal::new(Code::Branch, format!("'{shown}', to which HEAD would go, was put back"))
            .hint(format!("run '{line}' to have it where it was, then the same command again"))
            .into());
    }
    Err(Refusal::new(Code::Branch, format!("'{shown}', to which HEAD would go, has new commits"))
        .hint(format!("run '{line}' to put it there, then the same command again"))
        .hints(switch.map(|switch| format!("or run '{switch}' to go there with git")))
        .into())
}

/// Refuses to move HEAD, and what it is on, where that is no branch.
fn check_head_moves(op: Op, plan: &Plan) -> Result<()> {
    let heads = [&plan.head.from, &plan.head.to].into_iter().filter(|_| plan.moves_head());
    let (Some(head), Some(turn)) = (heads.into_iter().find(|head| head.is_on_other_ref()), plan.turns.last()) else {
        return Ok(());
    };
    let hint = format!("run 'oxundo restore {turn}:before' to bring the files back alone");
    Err(not_on_branch(op, head, &hint).into())
}
