//! What an open turn has changed so far, and what of that is the user's.

use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::{Before, Capture};
use crate::git::checkpoint::movers::{End, MOST};
use crate::git::index::Index;
use crate::git::scan::ignore::rules_of;
use crate::git::timeline::stored::Side;
use crate::git::worktree::Worktree;
use crate::git::worktree::identity::Identity;
use crate::model::bytes::exact;
use crate::model::call::{ToolCall, is_between};
use crate::model::checkpoint::{Checkpoint, Delta, Uncaptured};
use crate::model::path::up_from;
use crate::model::plan::Plan;
use crate::model::turn::Turn;
use crate::ops::turn::gaps::{are_gaps_users, is_users_end};
use crate::ops::turn::meanwhile::{Ends, Theirs};
use crate::ops::turn::{branches, calls, goal_with_dirty_commit, with_dirty_commit};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// What an open turn has changed so far.
pub struct Since {
    /// The state before it.
    pub before: Checkpoint,
    /// The state right after it began.
    pub start: Checkpoint,
    /// The present, by the turn's rules.
    pub capture: Capture,
    /// What it is proven to have made where a repository was.
    pub made: BTreeMap<String, Option<String>>,
    /// What of it is the user's.
    pub theirs: Theirs,
    /// Whether it has moved a branch that another worktree's turn may have moved as well.
    pub is_shared: bool,
}

impl Since {
    /// Looks, and asks which branches a turn of another worktree may have moved.
    pub fn look(view: &View<'_>, turn: &Turn) -> Result<Self> {
        let mut since = Self::look_within(view, turn)?;
        let seen = branches::moved_in_other_turns(view, turn, &since.before, &since.capture.checkpoint)?;
        since.is_shared = branches::were_moved_in_steps(view, turn, &seen)?;
        since.capture.checkpoint.elsewhere.extend(seen);
        Ok(since)
    }

    /// Looks, in the middle of a turn. A branch that moved in a call is a part of the step, whoever else was at work.
    pub fn look_within(view: &View<'_>, turn: &Turn) -> Result<Self> {
        let before = view.timeline.checkpoint(turn.turn, Side::Before)?;
        let start = with_dirty_commit(view.repo, &before, turn.dirty_commit)?;
        let frozen = Before { checkpoint: &before, rules: rules_of(view.repo, &before)? };
        let limits = view.limits()?;
        let mut capture =
            Checkpoints::new(view.repo).capture(before.modes.usual, &limits, Some(&frozen), &|_, _| false)?;
        let theirs = branches::moved_by_others(view, &before, &capture.checkpoint)?;
        capture.checkpoint.elsewhere.extend(theirs);
        let made = Checkpoints::new(view.repo).made_in_repositories(turn, &before, &capture.checkpoint)?;
        Ok(Self { before, start, capture, made, theirs: Theirs::default(), is_shared: false })
    }

    /// For a turn that oxundo makes: the state after it, computed from the plan that it has carried out. Scans the
    /// worktree where that is not enough.
    pub fn told(view: &View<'_>, turn: &Turn, before: Capture, plan: &Plan) -> Result<Self> {
        let Some(after) = Checkpoints::new(view.repo).after(&before.checkpoint, plan)? else {
            let mut since = Self::look(view, turn)?;
            let found = &since.capture.checkpoint;
            let planned = Checkpoints::new(view.repo).as_planned(&before.checkpoint, found, turn, plan)?;
            since.capture.checkpoint = planned;
            return Ok(since);
        };
        let index = Index::new(view.repo).read_index()?;
        let capture = Capture {
            checkpoint: after,
            index,
            changed: Vec::new(),
            torn: Vec::new(),
            opened: Arc::default(),
            at: None,
            ignored: Vec::new(),
        };
        let made = BTreeMap::new();
        let theirs = Theirs::default();
        Ok(Self {
            start: before.checkpoint.clone(),
            before: before.checkpoint,
            capture,
            made,
            theirs,
            is_shared: false,
        })
    }

    /// Finds out what the turn moved that was not captured, for its record.
    pub fn find_moves(&self, view: &View<'_>, turn: &mut Turn, changed: &Delta) -> Result<()> {
        let checkpoints = Checkpoints::new(view.repo);
        let Capture { ignored, checkpoint, index, .. } = &self.capture;
        let between = &view.timeline.uncaptured_between(turn.turn, &self.before)?;
        let told = calls::in_open_turn(view.repo);
        let calls = are_gaps_users(view.repo, &view.timeline, turn, &told)?.then_some(&*told);
        let end = End { ignored, skipped: &checkpoint.skipped, index, between, calls };
        let moves = checkpoints.moves(turn, &self.before, changed, end)?;
        (turn.came, turn.placed, turn.copies) = (moves.came, moves.placed, moves.copies);
        turn.came.extend(self.made.clone());
        leave_placed_by_user(view, turn, &told)?;
        turn.stashed = checkpoints.stashed(&self.before, changed)?;
        for (path, file) in checkpoints.taken_away(turn, &self.before, changed) {
            turn.stashed.entry(path).or_insert(file);
        }
        turn.brought.clear();
        Ok(())
    }

    /// What is ignored that somebody has made between the turn's calls, or saved by a rename, and no step has found yet: a call may give
    /// it another name.
    pub fn ignored_between(
        &self,
        view: &View<'_>,
        turn: &Turn,
        told: &[ToolCall],
    ) -> Result<BTreeMap<BString, Uncaptured>> {
        let worktree = Worktree::new(view.repo);
        let (device, known) = (worktree.local_device(), &self.before.uncaptured);
        let began: HashSet<&str> = known.values().map(|known| known.file.as_str()).collect();
        let is_theirs = |found: &Identity| {
            let is_since = Some(found.device) == device && turn.began.is_some_and(|began| found.changed >= began);
            is_since && is_between(told, found.changed) && !began.contains(found.known.file.as_str())
        };
        let identity =
            |path: &BString| Some((path.clone(), worktree.identity(path.as_bstr()).filter(is_theirs)?.known));
        let mut new: BTreeMap<BString, Uncaptured> =
            self.capture.ignored.iter().take(MOST).filter_map(identity).collect();
        if !new.is_empty() {
            let found = view.timeline.uncaptured_between(turn.turn, &self.before)?;
            let known: HashSet<&str> =
                began.into_iter().chain(found.values().map(|found| found.file.as_str())).collect();
            let is_known =
                |path: &BStr| worktree.identity(path).is_some_and(|it| known.contains(it.known.file.as_str()));
            // What is in something that a call has moved has come along.
            new.retain(|path, _| !up_from(path.as_bstr()).any(is_known));
        }
        Ok(new)
    }

    /// Finds out what of it is the user's. Tells whether that is all.
    pub fn find_theirs(&mut self, view: &View<'_>, turn: &mut Turn) -> Result<bool> {
        let Self { before, start, capture, .. } = self;
        let ends = Ends { before, start, after: &capture.checkpoint };
        self.theirs = Theirs::find(view, turn, ends)?;
        let Some(goal) = &self.theirs.goal else { return Ok(false) };
        let dirty = turn.dirty_commit.filter(|_| turn.onto.is_none());
        let goal = goal_with_dirty_commit(view.repo, &self.before, goal, dirty)?;
        Ok(Checkpoints::new(view.repo).delta(turn, &goal, &self.capture.checkpoint)?.is_empty())
    }

    /// Takes these files as they are now. One that is not there stays as it was seen.
    pub fn look_again_at(&mut self, view: &View<'_>, paths: &[BString]) -> Result<()> {
        let checkpoints = Checkpoints::new(view.repo);
        let now = |path: &BString| Ok((path.clone(), checkpoints.file_now(path.as_bstr())?));
        let mut files: Vec<_> = paths.iter().map(now).collect::<Result<_>>()?;
        files.retain(|(_, file)| file.is_some());
        self.capture.checkpoint = checkpoints.with_files(&self.capture.checkpoint, &files)?;
        Ok(())
    }

    /// What the user had uncommitted as it began, where that was committed.
    pub fn dirty_commit(&self) -> Option<ObjectId> {
        self.start.head.commit.filter(|start| self.before.head.commit != Some(*start))
    }

    /// The state that undo of the turn leads to.
    pub fn goal(&self) -> &Checkpoint {
        self.theirs.goal.as_ref().unwrap_or(&self.before)
    }

    /// The present state.
    pub fn into_state(self) -> Checkpoint {
        self.capture.checkpoint
    }

    /// What has changed since the turn began.
    pub fn changed(&self, view: &View<'_>, turn: &Turn) -> Result<Delta> {
        let turn = Turn { came: self.made.clone(), ..turn.clone() };
        Checkpoints::new(view.repo).delta(&turn, &self.start, &self.capture.checkpoint)
    }
}

/// What came to be between calls, in the place of what one has moved away, the user has put there, or has saved in what calls had.
fn leave_placed_by_user(view: &View<'_>, turn: &mut Turn, told: &[ToolCall]) -> Result<()> {
    if turn.placed.is_empty() {
        return Ok(());
    }
    let worktree = Worktree::new(view.repo);
    if is_users_end(view.repo, &view.timeline, turn, told)? {
        // Another machine may have a clock of its own.
        let device = worktree.local_device();
        let is_local = |found: &Identity| Some(found.device) == device;
        let found = |path: &String| worktree.identity(exact::decode(path)?.as_bstr()).filter(is_local);
        let is_theirs = |time: u64| turn.began.is_some_and(|began| time >= began) && is_between(told, time);
        // What came from elsewhere may have been made between calls, or saved, and one has moved it.
        let is_of_user = |path: &String| {
            let found = found(path).filter(|_| !turn.came.contains_key(path));
            found.is_some_and(|found| is_theirs(found.changed) || found.born.is_some_and(is_theirs))
        };
        turn.placed.retain(|path, _| !is_of_user(path));
    }
    Ok(())
}
