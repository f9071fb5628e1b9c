//! Which turns an undo or a redo walks over: from where HEAD stands down the turns below, up those that are undone, or
//! down and up again to a turn of another line.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::timeline::stored::Side;
use crate::model::bytes::{first_in_quotes, instead, shell_word};
use crate::model::checkpoint::{Checkpoint, Head, shown_place};
use crate::model::guard::{self, CommitOrigin, Leaving};
use crate::model::place::{Place, way};
use crate::model::plan::Op;
use crate::model::turn::Turn;
use crate::ops::brought_back::is_back;
use crate::ops::called::branch_now;
use crate::ops::dropped;
use crate::ops::on_branch::has_any_here;
use crate::ops::place;
use crate::ops::resolve::resolve;
use crate::ops::switching;
use crate::ops::undo::not_here::{self, Alike};
use crate::ops::view::{View, last_whole};
use anyhow::Result;
use gix::ObjectId;
use std::collections::BTreeSet;

/// How far to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Over so many turns.
    Steps(u64),
    /// Until the turn that these words mean is the last one done.
    To(String),
}

/// Which way a turn is walked over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From its end to its beginning.
    Back,
    /// From its beginning to its end.
    Forward,
}

/// The turns to walk over, in walking order, and the place that this leads to.
pub struct TurnRange {
    /// The turns.
    pub turns: Vec<Turn>,
    /// How many of them, the first ones, are walked back over; the others forward.
    pub back: usize,
    /// What is done and undone after it.
    pub place: Place,
    /// Whether it brings back what the last turn took out.
    pub brings_back: bool,
    /// Whether a turn comes back below one that is done already and newer.
    pub comes_below: bool,
    /// The state at which the last of them is left, where that is not its end.
    pub until: Option<Box<Checkpoint>>,
}

impl TurnRange {
    /// Finds the turns.
    pub fn find(view: &View<'_>, op: Op, extent: &Extent) -> Result<Self> {
        let range = match extent {
            Extent::Steps(steps) => match reverted_last(view)?.filter(|_| op == Op::Redo) {
                Some(turn) => return Self::over_revert(view, turn, *steps),
                None => Self::steps(view, op, *steps)?,
            },
            Extent::To(words) => {
                if let Some(range) = Self::to_taken_out(view, op, words)? {
                    return Ok(range);
                }
                Self::to(view, op, goal(view, op, words)?)?
            }
        };
        range.check_branches(view, extent)?;
        if range.turns.is_empty() {
            let refusal = nothing(op, "that turn is the last one done");
            return Err(match extent {
                Extent::To(words) if view.timeline.state.named.contains_key(words) => {
                    let name = shell_word(words.as_bytes());
                    refusal.hint(format!("run 'oxundo restore --exact {name}' to go to that state itself")).into()
                }
                _ => refusal.into(),
            });
        }
        Ok(range)
    }

    /// Refuses to go on with another branch's turns below one that began a branch: `log` shows those that this branch has.
    fn check_branches(&self, view: &View<'_>, extent: &Extent) -> Result<()> {
        let passed = &self.turns[..self.back.saturating_sub(1)];
        let Some(at) = passed.iter().position(Turn::began_branch) else { return Ok(()) };
        let turn = &passed[at];
        let [began, other] = [&turn.branch, &turn.began_on].map(|name| shown_place(name.as_deref()));
        let message = format!("turn {} began {began}, and the turns below it are those of {other}", turn.turn);
        let switch = match &turn.began_on {
            Some(other) if has_own_commits(view, turn)? => {
                // This branch has that one's name by now.
                if let Some(line) = self.on_a_branch().filter(|_| view.head.branch.as_ref() == Some(other)) {
                    return Err(Refusal::new(Code::Branch, message).hint(line).into());
                }
                switching::line(view, Some(other), None)?
            }
            _ => None,
        };
        // Those above it come first.
        let back = switch.unwrap_or_else(|| match at {
            0 => "oxundo undo".to_owned(),
            _ => format!("oxundo undo --to {}", below(view, turn).unwrap_or(0)),
        });
        let again = match extent {
            // Those up to there are undone by then.
            Extent::Steps(steps) => {
                let undone = passed[..=at].iter().filter(|turn| !turn.is_part()).count() as u64;
                format!("'oxundo undo {}' for the others", steps.saturating_sub(undone))
            }
            Extent::To(_) => "the same command again".to_owned(),
        };
        Err(Refusal::new(Code::Branch, message)
            .hint(format!("run '{back}' to go back to {other}, then {again}"))
            .into())
    }

    /// Which way a turn of it is walked over.
    pub fn direction(&self, at: usize) -> Direction {
        if at < self.back { Direction::Back } else { Direction::Forward }
    }

    /// What leads on where the walk comes as far as one of its turns and not over it: to end there, or, as no walk ends between two
    /// lines, another way to the turn that it leads to.
    pub fn short_of(&self, at: usize) -> Option<String> {
        let passed = self.turns[at.checked_sub(1)?].turn;
        let (op, until) = match self.back {
            0 => (Op::Redo, passed),
            all if all == self.turns.len() => (Op::Undo, self.turns[at].turn),
            _ => return self.on_a_branch(),
        };
        Some(format!("run 'oxundo {} --to {until}' to go no further than to turn {until}", op.word()))
    }

    /// How the turn that it leads to is to be had while all stays that is on this branch.
    pub fn on_a_branch(&self) -> Option<String> {
        let goal = self.place.top?;
        Some(format!("run 'oxundo branch turn-{goal} {goal}' to have the turn on a branch of its own"))
    }

    fn steps(view: &View<'_>, op: Op, wanted: u64) -> Result<Self> {
        if op == Op::Undo {
            check_left_behind(view)?;
        }
        let mut walk = LineWalk::from(view, op)?;
        while walk.whole < wanted || walk.goes_on()? {
            match walk.next()? {
                Some(turn) => walk.over(turn)?,
                None => return Err(walk.exhausted(wanted)?.into()),
            }
        }
        Ok(walk.into_range())
    }

    /// To where a turn is the last one done, whatever line it is on.
    pub fn to(view: &View<'_>, op: Op, goal: u64) -> Result<Self> {
        let mut walk = LineWalk::from(view, op)?;
        if op == Op::Redo && walk.place.undone.contains(&goal) {
            let is_part = view.timeline.require_turn(goal)?.is_part();
            while walk.place.undone.contains(&goal) || !is_part && walk.goes_on()? {
                let Some(turn) = walk.next()? else { break };
                walk.over(turn)?;
            }
            if walk.turns.iter().any(|turn| turn.turn == goal) {
                return Ok(walk.into_range());
            }
            // A branch that began there is undone as well, and leads elsewhere.
            walk = LineWalk::from(view, op)?;
        }
        if walk.last_whole()? == goal {
            return Ok(walk.into_range());
        }
        let top = view.top()?.unwrap_or(0);
        let (back, forward) = way(top, goal, |turn| Ok(below(view, &view.timeline.require_turn(turn)?).unwrap_or(0)))?;
        if !forward.is_empty() && op == Op::Undo {
            return Err(not_below(view, goal)?.into());
        }
        let back = if begins_here(view, &back, &forward)? { Vec::new() } else { back };
        walk.op = Op::Undo;
        for turn in back {
            // What stands above it took only parts of it out.
            if walk.last_whole()? == goal {
                break;
            }
            let turn = view.timeline.require_turn(turn)?;
            if !walk.passes_dropped(&turn)? {
                walk.over(turn)?;
            }
        }
        if !forward.is_empty() {
            (walk.op, walk.place.undone) = (Op::Redo, forward.clone());
            for turn in forward {
                walk.over(view.timeline.require_turn(turn)?)?;
            }
        }
        Ok(walk.into_range())
    }

    /// To a turn of which the last one done took something out: it is the last one done again where that is brought back, or below what
    /// comes back then.
    fn to_taken_out(view: &View<'_>, op: Op, words: &str) -> Result<Option<Self>> {
        let Some(turn) = reverted_last(view)?.filter(|_| op == Op::Redo) else { return Ok(None) };
        let goal = resolve(view, words)?;
        if !turn.takes_out().contains(&goal) {
            return Ok(None);
        }
        if last_whole(&view.timeline, turn.previous)? == Some(goal) {
            return Self::over_revert(view, turn, 1).map(Some);
        }
        let message = format!("what turn {} took out comes back first, by a redo of its own", turn.turn);
        Err(Refusal::new(Code::Usage, message).hint("run 'oxundo redo' first").into())
    }

    /// Redo right after turns were taken out brings back these, and no others.
    fn over_revert(view: &View<'_>, turn: Turn, steps: u64) -> Result<Self> {
        if steps > 1 {
            let message = format!("what turn {} took out comes back first, by a redo of its own", turn.turn);
            return Err(Refusal::new(Code::Usage, message).hint("run 'oxundo redo' first, without --steps").into());
        }
        let place = Place { top: turn.previous, ..view.place()?.clone() };
        Ok(Self { turns: vec![turn], back: 1, place, brings_back: true, comes_below: false, until: None })
    }
}

/// A walk from turn to turn.
struct LineWalk<'v, 'r> {
    view: &'v View<'r>,
    op: Op,
    turns: Vec<Turn>,
    back: usize,
    place: Place,
    /// Turns that only took parts of others out are walked over together with the next one.
    whole: u64,
    /// Whether what it has come over stands in HEAD's history as the records have it: nothing was dropped there.
    is_own: bool,
    /// Whether it has come over one that HEAD has gained newer ones above.
    comes_below: bool,
    /// The turns that the user dropped, from this one on.
    dropped: (u64, BTreeSet<u64>),
}

impl<'v, 'r> LineWalk<'v, 'r> {
    fn from(view: &'v View<'r>, op: Op) -> Result<Self> {
        let (place, dropped) = (view.place()?.clone(), (u64::MAX, BTreeSet::new()));
        let is_own = op == Op::Undo && place.top.map_or(Ok(false), |top| dropped::stands_on_its_own(view, top))?;
        Ok(Self { view, op, turns: Vec::new(), back: 0, place, whole: 0, is_own, comes_below: false, dropped })
    }

    fn next(&mut self) -> Result<Option<Turn>> {
        loop {
            let next = if self.op == Op::Redo { self.place.undone.first().copied() } else { self.place.top };
            let Some(turn) = next.map(|number| self.view.timeline.require_turn(number)).transpose()? else {
                return Ok(None);
            };
            if self.op == Op::Redo || !self.passes_dropped(&turn)? {
                return Ok(Some(turn));
            }
        }
    }

    /// Leads on below a turn that the user dropped: it is not on the line any more.
    fn passes_dropped(&mut self, turn: &Turn) -> Result<bool> {
        let Some(above) = self.turns.last() else { return Ok(false) };
        self.is_own &= self.view.timeline.node(above.turn)?.from == self.view.timeline.node(turn.turn)?.to;
        if self.is_own {
            return Ok(false);
        }
        if turn.turn < self.dropped.0 {
            let lowest = turn.turn.saturating_sub(dropped::LOOKED_AT);
            self.dropped = (lowest, dropped::dropped(self.view, lowest)?);
        }
        let is_dropped = self.dropped.1.contains(&turn.turn);
        if is_dropped {
            self.place.top = below(self.view, turn);
        }
        Ok(is_dropped)
    }

    fn over(&mut self, turn: Turn) -> Result<()> {
        if self.op == Op::Redo {
            self.comes_below |= self.place.top > Some(turn.turn);
            self.place.top = self.place.top.max(Some(turn.turn));
            self.place.undone.retain(|undone| *undone != turn.turn);
            self.place.by_hand.remove(&turn.turn);
            let next = self.place.undone.first().map(|next| self.view.timeline.require_turn(*next)).transpose()?;
            // What is undone on the branch that it leaves stays there.
            if turn.began_on != turn.branch && next.is_some_and(|next| below(self.view, &next) != Some(turn.turn)) {
                self.place.undone.clear();
            }
        } else {
            self.place.top = below(self.view, &turn);
            if turn.began_on != turn.branch && self.place.undone.is_empty() {
                let stack = self.view.timeline.state.stack(turn.began_on.as_deref().unwrap_or("HEAD"));
                let is_there = stack.top == self.place.top;
                self.place.undone =
                    stack.undone.into_iter().filter(|undone| is_there && *undone != turn.turn).collect();
            }
            self.place.undone.insert(0, turn.turn);
            self.back += 1;
        }
        self.whole += u64::from(!turn.is_part());
        self.turns.push(turn);
        Ok(())
    }

    /// The last turn done, without those that only took parts of others out; 0 for none.
    fn last_whole(&self) -> Result<u64> {
        Ok(last_whole(&self.view.timeline, self.place.top)?.unwrap_or(0))
    }

    /// Whether the next turn took parts of the last one out: it is walked over with it.
    fn goes_on(&mut self) -> Result<bool> {
        Ok(self.op == Op::Redo && self.next()?.is_some_and(|turn| turn.is_part()))
    }

    fn into_range(self) -> TurnRange {
        let Self { turns, back, place, comes_below, .. } = self;
        TurnRange { turns, back, place, brings_back: false, comes_below, until: None }
    }

    /// Why there are no more turns to walk over.
    fn exhausted(&self, wanted: u64) -> Result<Refusal> {
        let (view, op) = (self.view, self.op);
        let here = here(view);
        if self.whole == 0
            && op == Op::Undo
            && let Some(refusal) = made_elsewhere(view)?
        {
            return Ok(refusal);
        }
        if self.whole == 0
            && op == Op::Undo
            && view.place()?.undone.is_empty()
            && let Some(refusal) = of_another_worktree(view)?
        {
            return Ok(refusal);
        }
        if view.timeline.commit.is_none() {
            let message = format!("nothing to {}: no turn is recorded here", op.word());
            return Ok(Refusal::new(Code::Nothing, message).hint(
                "run 'oxundo run -- COMMAND' to make one, or 'oxundo init' to have an agent's prompts be turns",
            ));
        }
        let mut refusal = nothing(
            op,
            &match (op, self.whole) {
                (Op::Redo, 0) => "no turn is undone".to_owned(),
                (Op::Redo, 1) => format!("1 turn is undone, {wanted} were asked for"),
                (Op::Redo, n) => format!("{n} turns are undone, {wanted} were asked for"),
                (_, 0) => "no turn is done".to_owned(),
                (_, 1) => format!("{here} has 1 turn, {wanted} were asked for"),
                (_, n) => format!("{here} has {n} turns, {wanted} were asked for"),
            },
        );
        if self.whole == 0 {
            refusal.hints.splice(..0, not_here::leading_on(view, op)?);
            let next = view.place()?.undone.first().copied().filter(|_| op == Op::Undo);
            refusal.hints.splice(..0, next.map(|next| taking_out_rest(view, next)).transpose()?.flatten());
            let given_up = if op == Op::Undo && refusal.hints.len() == 1 { given_up(view)? } else { None };
            let back = |turn| {
                let line = format!("run 'oxundo restore --exact {turn}:before' to go back to before turn {turn}");
                format!("{line}, which ended in the middle of what you have given up")
            };
            refusal.hints.splice(..0, given_up.map(back));
        }
        // No walk goes on below one that began a branch.
        let began = self.turns.iter().take(self.back).position(Turn::began_branch);
        let on_branch = began.map(|at| &self.turns[..=at]).filter(|above| above.len() < self.turns.len());
        let all = match (on_branch, self.whole) {
            (Some(above), _) => match above.iter().filter(|turn| !turn.is_part()).count() {
                1 => Some(format!("or run 'oxundo {}' for the one that began {here}", op.word())),
                all => Some(format!("or run 'oxundo {} {all}' for those of {here} alone", op.word())),
            },
            (None, 0) => None,
            (None, 1) => Some(format!("or run 'oxundo {}' for that one", op.word())),
            (None, all) => Some(format!("or run 'oxundo {} {all}' for all of them", op.word())),
        };
        Ok(refusal.hints(all))
    }
}

/// The last turn, where it left HEAD's branch for the middle of something, as a rebase, and the user has given that up.
fn given_up(view: &View<'_>) -> Result<Option<u64>> {
    let Some(last) = view.timeline.newest_turns(1, 0)?.pop() else { return Ok(None) };
    let (turn, head) = (view.timeline.require_turn(last)?, &view.head);
    if turn.ended_at.is_none() || turn.began_on != head.branch || view.repo.in_progress().is_some() {
        return Ok(None);
    }
    let end = view.timeline.checkpoint(last, Side::After)?;
    let is_it = end.operation.is_under_way() && end.head.branch.is_none();
    let tip = head.branch.as_ref().and_then(|name| end.branches.get(name)).copied();
    let was = view.timeline.checkpoint(last, Side::Before)?.head.commit;
    Ok(Some(last).filter(|_| is_it && tip.is_some() && tip == head.commit && was != tip))
}

/// The refusal where the last commits have what a turn of another worktree made: its own worktree undoes that.
fn of_another_worktree(view: &View<'_>) -> Result<Option<Refusal>> {
    let (Some(head), objects) = (view.head.commit, Objects::new(view.repo)) else { return Ok(None) };
    let commits = objects.newest_first(head).take(NEAR)?;
    let here = view.repo.worktree_id();
    for (id, notes) in commits.iter().zip(Refs::new(view.repo).notes_on(&commits)?) {
        let made = notes.into_iter().rev().find(|note| note.commit == *id && note.worktree != here);
        if let (Some(note), 1) = (made, objects.parents(*id)?.len()) {
            let origin = CommitOrigin::OfWorktree(note.turn, note.worktree);
            let subject = objects.commit_subject(*id)?;
            let made = Leaving { id: *id, parents: 1, subject, published: None, notes: Vec::new(), origin };
            return Ok(guard::check(Op::Undo, view.head.stack(), &[made]).err());
        }
    }
    Ok(None)
}

/// How many commits are looked at for one of another worktree's turns.
const NEAR: usize = 8;

/// Where HEAD is.
fn here(view: &View<'_>) -> String {
    view.head.branch.as_deref().map_or_else(|| "the detached HEAD".to_owned(), |name| shown_place(Some(name)))
}

/// Whether somebody has committed on top of where a turn ended: such a branch stays.
fn has_own_commits(view: &View<'_>, turn: &Turn) -> Result<bool> {
    let (to, objects) = (view.timeline.node(turn.turn)?.to, Objects::new(view.repo));
    let (Some(to), Some(head)) = (to.filter(|to| objects.has_commit(*to)), view.head.commit) else { return Ok(false) };
    let above = objects.commits_between(&[to], head)?;
    let notes = Refs::new(view.repo).notes_on(&above)?;
    Ok(above.iter().zip(notes).any(|(commit, notes)| notes.iter().all(|note| note.commit != *commit)))
}

/// Refuses to go on below a turn that the user took off with git as long as there is what it did not commit: it would stay, as if it
/// was the user's.
fn check_left_behind(view: &View<'_>) -> Result<()> {
    let Some(turn) = not_here::taken_off(view)? else { return Ok(()) };
    let left = not_here::left_behind(view, turn, Alike::Exactly)?;
    if left.is_empty() {
        return Ok(());
    }
    let [are, them] = if left.len() == 1 { ["is", "it"] } else { ["are", "them"] };
    let files = format!("{} {are}", first_in_quotes(&left.iter().collect::<Vec<_>>(), 3));
    let message = format!("the commits of turn {turn} are off this branch, and {files} here as it left {them}");
    let mut refusal =
        Refusal::new(Code::Branch, message).hint(format!("run 'oxundo undo --only {turn}' to take that out"));
    if let Some(top) = view.place()?.top {
        let goal = below(view, &view.timeline.require_turn(top)?).unwrap_or(0);
        refusal = refusal.hint(format!("run 'oxundo undo --to {goal}' to leave it and undo turn {top}"));
    }
    Err(refusal.into())
}

/// The turn that undoing one leads to.
pub fn below(view: &View<'_>, turn: &Turn) -> Option<u64> {
    match &turn.footing {
        Some(footing) => footing.back_to.map_or(turn.previous, |back| Some(back).filter(|back| *back != 0)),
        // The first release kept a line for each branch.
        None if turn.began_on != turn.branch => {
            let stack = turn.began_on.as_deref().unwrap_or("HEAD");
            view.timeline.state.top(stack).filter(|top| *top < turn.turn)
        }
        None => turn.previous,
    }
}

/// The refusal that no turn is done here, where some are elsewhere.
fn made_elsewhere(view: &View<'_>) -> Result<Option<Refusal>> {
    let here = here(view);
    let recorded = view.timeline.state.recorded(&view.head);
    if recorded.is_here && recorded.last.top.is_none() && !recorded.last.undone.is_empty() {
        return Ok(None);
    }
    let newest = recorded.last.top.or_else(|| view.timeline.state.newest_done().map(|(turn, _)| turn));
    let Some(turn) = newest.map(|turn| view.timeline.require_turn(turn)).transpose()? else { return Ok(None) };
    let number = turn.turn;
    let branch = branch_now(view, &turn)?;
    let place = shown_place(branch.as_deref());
    let message = format!("{here} has no turns: turn {number}, the last one, was made on {place}");
    let elsewhere = branch.as_deref().filter(|name| *name != view.head.stack());
    let tip = elsewhere.map(|name| Refs::new(view.repo).ref_id(name)).transpose()?.flatten();
    let there =
        elsewhere.zip(tip).map(|(name, tip)| Head { branch: Some(name.to_owned()), commit: Some(tip), through: None });
    let has_it = there.map(|there| place::find(view.repo, &view.timeline, &there)).transpose()?.map(|it| it.top);
    // What was taken off this branch, or began on it, is undone, by whatever means; and so is what the user has taken off
    // the other one, too.
    let is_of_here = [&turn.branch, &turn.began_on].contains(&&view.head.branch);
    let is_undone_here = is_of_here && view.place()?.undone.contains(&number);
    if has_it.map_or(is_undone_here, |top| top.is_none() || is_undone_here && turn.began_on != turn.branch) {
        return Ok(None);
    }
    let switch = elsewhere.map(|name| switching::line(view, Some(name), None)).transpose()?.flatten();
    let hint = match switch {
        Some(switch) => format!("run '{switch}' first"),
        None => format!("run 'oxundo redo --to {number}' to bring it here, or 'oxundo log --all' to see all turns"),
    };
    Ok(Some(Refusal::new(Code::Branch, message).hints(taking_out_rest(view, number)?).hint(hint)))
}

/// The line that takes out what is here of a turn which is not done.
fn taking_out_rest(view: &View<'_>, number: u64) -> Result<Option<String>> {
    let is_here = has_any_here(view, &view.timeline.require_turn(number)?)?;
    let line =
        || format!("run 'oxundo undo --only {number}' to take out what turn {number} committed, as far as it is here");
    Ok(is_here.then(line))
}

fn goal(view: &View<'_>, op: Op, words: &str) -> Result<u64> {
    let goal = resolve(view, words)?;
    if op == Op::Undo && view.place()?.undone.contains(&goal) {
        return Err(Refusal::new(Code::Usage, format!("turn {goal} is undone already"))
            .hint(format!("run 'oxundo redo --to {goal}' to go forward to it"))
            .into());
    }
    if is_done(view, goal)? {
        dropped::check(view, goal)?;
    }
    if op == Op::Redo && view.last_whole()?.unwrap_or(0) != goal && is_done(view, goal)? {
        return Err(Refusal::new(Code::Usage, format!("turn {goal} is not undone"))
            .hint(format!("run 'oxundo undo --to {goal}' to go back to it"))
            .into());
    }
    Ok(goal)
}

/// Whether a turn is done where HEAD stands; 0, the state before all turns, always is.
pub fn is_done(view: &View<'_>, turn: u64) -> Result<bool> {
    is_below(view, turn, view.top()?)
}

/// Whether a turn would be done if HEAD were here.
pub fn is_done_at(view: &View<'_>, turn: u64, head: &Head) -> Result<bool> {
    is_below(view, turn, place::find(view.repo, &view.timeline, head)?.top)
}

/// Whether a turn is this one or below it.
fn is_below(view: &View<'_>, turn: u64, top: Option<u64>) -> Result<bool> {
    Ok(turn == 0 || place::first_up_to(&view.timeline, turn, top)? == Some(turn))
}

/// The refusal to go back to a turn that is not below the last one done.
fn not_below(view: &View<'_>, goal: u64) -> Result<Refusal> {
    let message = format!("turn {goal} is not among the turns of {}", here(view));
    let refusal = Refusal::new(Code::Branch, message);
    // A branch that starts at it, and that undo takes away again.
    if is_done(view, goal).unwrap_or(false) {
        let line = line_off(view, goal)?;
        return Ok(
            refusal.hint(format!("run '{line} && oxundo redo --to {goal}' to go to it by where the branch began"))
        );
    }
    let node = view.timeline.node(goal)?;
    if let (Some(to), Some(head)) = (node.to.filter(|_| node.moved()), view.head.commit)
        && Objects::new(view.repo).is_ancestor(to, head)?
    {
        if let Some(above) = above_what_expired(view, to)? {
            let message = format!("of what was done between turn {goal} and turn {above} there is no record any more");
            let branch = format!("run 'oxundo branch turn-{goal} {goal}' to start a branch at turn {goal}");
            return Ok(Refusal::new(Code::Branch, message).hint(branch));
        }
        let message = format!("turn {goal} was merged: nothing that is done in {} stands above it", here(view));
        return Ok(Refusal::new(Code::Branch, message).hint("run 'oxundo log' to see the turns to which undo leads"));
    }
    if let Some(switch) = switching::to_turn(view, &view.timeline.require_turn(goal)?)? {
        return Ok(refusal.hint(format!("run '{switch}' to go where it is done, then the same command again")));
    }
    Ok(refusal.hint(format!("run 'oxundo redo --to {goal}' to go to it: undo and redo lead there")))
}

/// Whether the first of these turns, below which there is no record any more, began where HEAD stands: what those that are done have
/// committed is below it.
fn begins_here(view: &View<'_>, done: &[u64], undone: &[u64]) -> Result<bool> {
    let Some(first) = undone.first() else { return Ok(false) };
    let (node, turn) = (view.timeline.node(*first)?, view.timeline.require_turn(*first)?);
    let is_here = node.from.is_some() && node.from == view.head.commit && turn.began_on == view.head.branch;
    if !is_here || below(view, &turn).is_some() {
        return Ok(false);
    }
    for turn in done {
        if !view.timeline.node(*turn)?.moved() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The lowest turn done, where it stands on a commit by a line without merges, and a turn between them has expired.
fn above_what_expired(view: &View<'_>, commit: ObjectId) -> Result<Option<u64>> {
    let (objects, mut at, mut lowest) = (Objects::new(view.repo), view.top()?, None);
    while let Some(turn) = at.map(|number| view.timeline.require_turn(number)).transpose()? {
        (at, lowest) = (below(view, &turn), Some(turn.turn));
    }
    let from = lowest.map(|turn| view.timeline.node(turn)).transpose()?.and_then(|node| node.from);
    let Some(from) = from.filter(|from| objects.has_commit(*from)) else { return Ok(None) };
    let between = objects.commits_between(&[commit], from)?;
    for id in &between {
        if objects.parents(*id)?.len() > 1 {
            return Ok(None);
        }
    }
    for note in Refs::new(view.repo).notes_on(&between)?.into_iter().flatten() {
        if note.worktree == view.repo.worktree_id() && view.timeline.find_turn(note.turn)?.is_none() {
            return Ok(lowest);
        }
    }
    Ok(None)
}

/// The line that undoes all from the last turn done down to the one that began the branch on which a turn below is done.
fn line_off(view: &View<'_>, goal: u64) -> Result<String> {
    let (mut lines, mut whole) = (Vec::new(), 0_u64);
    let mut at = view.top()?;
    while let Some(turn) = at.filter(|_| is_below(view, goal, at).unwrap_or(false)) {
        let turn = view.timeline.require_turn(turn)?;
        at = below(view, &turn);
        whole += u64::from(!turn.is_part());
        // No walk goes on with the turns of another branch.
        if turn.began_branch() || !is_below(view, goal, at)? {
            lines.push(if whole == 1 { "oxundo undo".to_owned() } else { format!("oxundo undo {whole}") });
            whole = 0;
        }
    }
    Ok(lines.join(" && "))
}

/// The turns on the other side of where this walk begins, at most so many, the nearest first: undone ones for an
/// undo, done ones for a redo.
pub fn passed(view: &View<'_>, op: Op, most: usize) -> Result<Vec<Turn>> {
    let mut walk = LineWalk::from(view, if op == Op::Redo { Op::Undo } else { Op::Redo })?;
    while walk.turns.len() < most
        && let Some(turn) = walk.next()?
    {
        walk.over(turn)?;
    }
    Ok(walk.turns)
}

/// The last turn done, if it took other turns out and is newer than all undone turns: redo first brings back what it
/// took out, unless that is there again.
pub fn reverted_last(view: &View<'_>) -> Result<Option<Turn>> {
    let Some(top) = view.top()? else { return Ok(None) };
    let turn = view.timeline.require_turn(top)?;
    let is_newest = view.place()?.undone.first().is_none_or(|undone| *undone < top);
    Ok(Some(turn).filter(|turn| is_newest && !turn.takes_out().is_empty() && !is_back(view, turn).unwrap_or(false)))
}

/// The refusal that there is nothing to do, and why.
pub fn nothing(op: Op, why: &str) -> Refusal {
    Refusal::new(Code::Nothing, format!("nothing to {}: {why}", op.word())).hint("run 'oxundo log' to see the turns")
}

/// The refusal of a range whose ends are not one below the other.
pub fn no_such_line() -> Refusal {
    Refusal::new(Code::Branch, "these turns do not follow each other on this branch")
        .hint("run 'oxundo log' to see its turns")
}

/// The refusal of a range whose ends are the wrong way round.
pub fn begins_with_the_older(first: &str, last: &str) -> Refusal {
    let refusal = Refusal::new(Code::Usage, "a range of turns begins with the older one");
    if first.is_empty() || last.is_empty() {
        // The other way round others would be meant.
        return refusal.hint("run 'oxundo log' to see the turns: an end that is left out is the last one done");
    }
    refusal.hint(instead(format!("{first}..{last}"), format!("{last}..{first}")))
}

/// The turns from one up to another, the newest first; an end that is left out is the last turn done.
pub fn line_between(
    view: &View<'_>,
    (first, last): (&str, &str),
    end: impl Fn(&View<'_>, &str) -> Result<Turn>,
) -> Result<Vec<Turn>> {
    let named = |words: &str| end(view, if words.is_empty() { "@" } else { words });
    let (lowest, mut at) = (named(first)?, named(last)?);
    if lowest.turn > at.turn {
        return Err(begins_with_the_older(first, last).into());
    }
    let mut turns = Vec::new();
    while at.turn != lowest.turn {
        let below = at.previous.filter(|below| *below >= lowest.turn).ok_or_else(no_such_line)?;
        turns.push(std::mem::replace(&mut at, view.timeline.require_turn(below)?));
    }
    turns.push(at);
    Ok(turns)
}

/// The refusal for a plan that would be another one now.
pub fn changed_since(op: Op) -> Refusal {
    let message = format!("something has changed since this {} was planned", op.word());
    Refusal::new(Code::Conflict, message).hint("look at the plan again")
}
