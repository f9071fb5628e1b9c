//! What the user saved, staged, stashed and committed during a turn, and which branches they made and switched to, outside of
//! every call of its agents' tools: it is the user's. It is in no commit of the turn's, and undo of the turn keeps it as it
//! keeps what was edited after the turn.

use crate::agents::adapters::adapter;
use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::tree::TreeChange;
use crate::git::timeline::stored::Side;
use crate::model::call::{ToolCall, first_unknown};
use crate::model::checkpoint::{Change, Checkpoint, FileState};
use crate::model::merge::{Blobs, Merge, Merged};
use crate::model::pointers::Pointers;
use crate::model::turn::{Bounds, Turn};
use crate::ops::turn::{calls, states};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// What changed outside of every call, between two of them or after the last.
struct Gap {
    files: BTreeMap<BString, Change<Option<FileState>>>,
    from: Pointers,
    to: Pointers,
}

/// The states at an open turn's ends.
#[derive(Clone, Copy)]
pub struct Ends<'a> {
    /// Before it.
    pub before: &'a Checkpoint,
    /// Right after it began.
    pub start: &'a Checkpoint,
    /// Now.
    pub after: &'a Checkpoint,
}

/// What in a turn is the user's.
#[derive(Clone, Debug, Default)]
pub struct Theirs {
    /// The state that undo of the turn leads to, where that is not the one before it.
    pub goal: Option<Checkpoint>,
    /// Where the user led HEAD, branches and the stash list from, and where to.
    moves: Vec<(Pointers, Pointers)>,
}

/// Whose a path is that changed in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The turn's.
    Turns,
    /// The user's alone.
    Users,
    /// Both have changed it: the turn's part makes this of what is committed.
    Both(ObjectId),
}

impl Theirs {
    /// Finds it in the open turn, and notes it in the turn's record.
    pub fn find(view: &View<'_>, turn: &mut Turn, ends: Ends<'_>) -> Result<Self> {
        let told = calls::in_open_turn(view.repo);
        turn.users_end = is_users_end(turn, &told);
        let gaps = gaps(view, turn, 0, ends.after)?;
        let led = followed(Pointers::of(ends.start), &gaps);
        turn.onto = led.head.commit.filter(|_| led.head != ends.start.head);
        let saved = with_files(view, ends.before, &gaps)?;
        let goal = goal(view, turn.onto, saved, led, ends)?;
        let moves = gaps.into_iter().map(|gap| (gap.from, gap.to)).filter(|(from, to)| from != to).collect();
        Ok(Self { goal, moves })
    }

    /// The commits to which the user led HEAD and branches, and those below them.
    pub fn commits(&self, view: &View<'_>) -> Result<BTreeSet<ObjectId>> {
        let tips = |at: &Pointers| at.branches.values().copied().chain(at.head.commit).collect::<BTreeSet<_>>();
        let mut commits = BTreeSet::new();
        for (from, to) in &self.moves {
            let (from, to) = (tips(from), tips(to));
            let hidden: Vec<ObjectId> = from.iter().copied().collect();
            for new in to.difference(&from) {
                commits.extend(Objects::new(view.repo).commits_between(&hidden, *new)?);
            }
        }
        Ok(commits)
    }

    /// Whose a path is, and what of it is to be committed where `head` is the tree that is.
    pub fn whose(
        &self,
        view: &View<'_>,
        (before, after): (&Checkpoint, &Checkpoint),
        head: ObjectId,
        path: &BStr,
        merge: &mut Merge<'_>,
    ) -> Result<Whose> {
        let Some(goal) = &self.goal else { return Ok(Whose::Turns) };
        let checkpoints = Checkpoints::new(view.repo);
        let file = |state: &Checkpoint| checkpoints.captured_file(state, path);
        let (was, saved, now) = (file(before)?, file(goal)?, file(after)?);
        if was == saved {
            return Ok(Whose::Turns);
        }
        if saved == now {
            return Ok(Whose::Users);
        }
        let committed = Objects::new(view.repo).tree_file(head, path)?;
        let (Some(saved), Some(now)) = (saved, now) else { return Ok(Whose::Turns) };
        // git does not have the user's file: nobody adds it for them.
        let Some((kind, ours)) = committed else { return Ok(Whose::Users) };
        if [saved.kind, now.kind].iter().any(|side| *side != kind) || ours == now.id {
            return Ok(Whose::Turns);
        }
        Ok(match merge(path, Blobs { base: saved.id, ours, theirs: now.id })? {
            Merged::Clean(id) => Whose::Both(id),
            Merged::Overlap(_) => Whose::Turns,
        })
    }
}

/// Where HEAD, branches and the stash list are without what was done to them by calls.
fn followed(mut start: Pointers, gaps: &[Gap]) -> Pointers {
    for gap in gaps {
        start.follow(&gap.from, &gap.to);
    }
    start
}

/// The state that undo of a turn leads to: with what the user saved, staged and committed.
fn goal(
    view: &View<'_>,
    onto: Option<ObjectId>,
    saved: Option<Checkpoint>,
    led: Pointers,
    ends: Ends<'_>,
) -> Result<Option<Checkpoint>> {
    if saved.is_none() && led == Pointers::of(ends.start) {
        return Ok(None);
    }
    let (objects, index) = (Objects::new(view.repo), Index::new(view.repo));
    let mut goal = saved.unwrap_or_else(|| ends.before.clone());
    let mut entries: Vec<TreeChange> = Vec::new();
    if onto.is_none() {
        led.put_beside_head(&mut goal);
    } else {
        led.put_into(&mut goal);
    }
    if let Some(onto) = onto {
        goal.index = ends.start.index.clone();
        // Whatever the user has ended by a commit is over.
        goal.operation = ends.after.operation.clone();
        let tree = objects.commit_tree(onto)?;
        for path in objects.changed_paths(objects.head_tree(&ends.start.head)?, tree)? {
            index.take_from_sparse(&mut goal.index, path.as_bstr())?;
            goal.index.special.remove(&path);
            let committed = objects.tree_entry(tree, path.as_bstr())?;
            entries.push((path, committed));
        }
    }
    let (checkpoints, now) = (Checkpoints::new(view.repo), ends.after);
    let staged = |state: &Checkpoint, path: &BString| {
        let entry = objects.tree_entry(state.index.tree, path.as_bstr())?;
        Ok::<_, anyhow::Error>((entry, state.index.special.get(path).cloned()))
    };
    for path in objects.changed_paths(ends.before.worktree, goal.worktree)? {
        let file = |state: &Checkpoint| checkpoints.captured_file(state, path.as_bstr());
        let is_sparse = !(goal.index.sparse.is_empty() && now.index.sparse.is_empty());
        // What was staged since of a file that the turn did not change is the user's too.
        if !is_sparse && file(&goal)? == file(now)? && staged(now, &path)? != staged(ends.start, &path)? {
            entries.retain(|(committed, _)| *committed != path);
            let (staged, _) = staged(now, &path)?;
            match now.index.special.get(&path) {
                Some(special) => drop(goal.index.special.insert(path.clone(), special.clone())),
                None => drop(goal.index.special.remove(&path)),
            }
            entries.push((path, staged));
        }
    }
    goal.index.tree = objects.edited_tree(goal.index.tree, &entries)?;
    Ok(Some(goal))
}

/// Whether its agents tell of each call of theirs, and nobody is at work in a turn who tells of none.
fn tells_all(turn: &Turn) -> bool {
    let Bounds { parts, by_hooks, .. } = &turn.origin;
    // The agent of a `run` that has none of these sessions tells of nothing.
    let is_of_run = !by_hooks || turn.exit_code.is_some();
    let are_known = !is_of_run || parts.iter().any(|part| part.inside);
    let all = parts.iter().all(|part| adapter(&part.agent).is_some_and(|adapter| adapter.all_calls));
    are_known && all && !parts.is_empty()
}

/// Whether what changed after a turn's last call is not its agents': all of them tell of each call, and of each of these it
/// is known what it changed.
fn is_users_end(turn: &Turn, told: &[ToolCall]) -> bool {
    let has_called = |session: &Option<String>| told.iter().any(|call| call.session == *session);
    let have_all = turn.origin.parts.iter().all(|part| has_called(&part.session));
    tells_all(turn) && have_all && first_unknown(told).is_none()
}

/// A state from before the end of a turn, with what the user did after this step of it, but for where they led HEAD; none
/// where that is nothing.
pub fn with_saved(
    view: &View<'_>,
    turn: &Turn,
    base: &Checkpoint,
    since: u64,
    after: &Checkpoint,
) -> Result<Option<Checkpoint>> {
    let gaps = gaps(view, turn, since, after)?;
    let led = followed(Pointers::of(base), &gaps);
    let saved = with_files(view, base, &gaps)?;
    let mut with_led = saved.clone().unwrap_or_else(|| base.clone());
    led.put_beside_head(&mut with_led);
    Ok(if Pointers::of(&with_led) == Pointers::of(base) { saved } else { Some(with_led) })
}

/// A state with what the user saved; none where that is nothing.
fn with_files(view: &View<'_>, base: &Checkpoint, gaps: &[Gap]) -> Result<Option<Checkpoint>> {
    let checkpoints = Checkpoints::new(view.repo);
    let mut files: BTreeMap<BString, Option<FileState>> = BTreeMap::new();
    checkpoints.merging(|merge| {
        for (path, change) in gaps.iter().flat_map(|gap| &gap.files) {
            let now = match files.get(path) {
                Some(now) => *now,
                None => checkpoints.captured_file(base, path.as_bstr())?,
            };
            // What overlaps with what the turn did goes with the turn.
            let next = saved(path, now, change, merge)?;
            files.insert(path.clone(), next);
        }
        Ok(())
    })?;
    let mut changed = Vec::new();
    for (path, file) in files {
        if checkpoints.captured_file(base, path.as_bstr())? != file {
            changed.push((path, file));
        }
    }
    if changed.is_empty() { Ok(None) } else { checkpoints.with_files(base, &changed).map(Some) }
}

/// What changed between the steps after this one, and after the last, where its agents tell of all their calls.
fn gaps(view: &View<'_>, turn: &Turn, since: u64, after: &Checkpoint) -> Result<Vec<Gap>> {
    let (timeline, checkpoints) = (&view.timeline, Checkpoints::new(view.repo));
    let mut gaps = Vec::new();
    if !tells_all(turn) {
        return Ok(gaps);
    }
    let gap = |from: &Checkpoint, to: &Checkpoint| {
        let files = checkpoints.file_changes(from, to)?;
        Ok::<_, anyhow::Error>(Gap { files, from: Pointers::of(from), to: Pointers::of(to) })
    };
    let last = timeline.last_step(turn.turn)?;
    for step in since + 1..=last {
        let Some(found) = timeline.step_checkpoint(turn.turn, step, Side::Before)? else { continue };
        gaps.push(gap(&states::after(timeline, turn, step - 1)?, &found)?);
    }
    if turn.users_end {
        gaps.push(gap(&states::after(timeline, turn, last)?, after)?);
    }
    gaps.retain(|gap| !gap.files.is_empty() || gap.from != gap.to);
    Ok(gaps)
}

/// A file with a change of the user's made to it; as it was where that overlaps.
fn saved(
    path: &BString,
    now: Option<FileState>,
    change: &Change<Option<FileState>>,
    merge: &mut Merge<'_>,
) -> Result<Option<FileState>> {
    if now == change.from || now == change.to {
        return Ok(change.to);
    }
    let (Some(ours), Some(base), Some(theirs)) = (now, change.from, change.to) else { return Ok(now) };
    if [base, theirs].iter().any(|side| side.kind != ours.kind) {
        return Ok(now);
    }
    let merged = merge(path.as_bstr(), Blobs { base: base.id, ours: ours.id, theirs: theirs.id })?;
    Ok(match merged {
        Merged::Clean(id) => Some(FileState { id, ..ours }),
        Merged::Overlap(_) => now,
    })
}
