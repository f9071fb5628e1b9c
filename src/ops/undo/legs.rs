//! The turns of a walk, each as the walk goes over it: from which state to which, on the branch that HEAD is on now.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::objects::alike::Likeness;
use crate::git::refs::Refs;
use crate::git::refs::evidence::{Recorded, Was};
use crate::git::repo::clock::seconds;
use crate::git::scan::nested::{own_state, whole_state};
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::{
    Aside, Change, Checkpoint, Head, Skipped, branch_changes, branch_word, short_branch, shown_place, uncovered_changes,
};
use crate::model::names::{Names, branches_of, give_back, names_now, rename};
use crate::model::place::base_of;
use crate::model::plan::{Op, Plan};
use crate::model::planner::{TurnDelta, putting_back};
use crate::model::turn::Turn;
use crate::ops::brought::Brought;
use crate::ops::called::{Renamed, Tips, called_now, known_by, was_at};
use crate::ops::concluded;
use crate::ops::switching;
use crate::ops::turn::branches::is_owned;
use crate::ops::turn::goal_with_dirty_commit;
use crate::ops::undo::range::{self, Direction, TurnRange, is_done, is_done_at};
use crate::ops::undo::remade::Remade;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// What becomes of the refs that the turns moved.
#[derive(Clone, Copy, Debug)]
pub enum RefMoves<'s> {
    /// They move as the turns moved them.
    Move,
    /// They stay, and no commit leaves a branch. The walk ends where HEAD was in this state, where one is given: what is committed
    /// between the last turn and that stays on its branch, too.
    Stay {
        /// The state.
        at: Option<&'s Checkpoint>,
    },
}

impl RefMoves<'_> {
    /// Whether they move.
    pub fn moves(self) -> bool {
        matches!(self, Self::Move)
    }
}

/// One turn of a walk: the state that the walk enters it from, the state that it leaves it in, and the difference.
pub struct Leg {
    /// The state that the walk comes from.
    pub start: Checkpoint,
    /// The state that it leads to.
    pub goal: Checkpoint,
    /// The difference.
    pub delta: TurnDelta,
}

/// The commit that a turn ended on, of which the user has changed the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reworded {
    /// The turn.
    pub turn: u64,
    /// The commit that it ended on.
    pub from: ObjectId,
    /// The commit that stands in its place.
    pub to: ObjectId,
}

/// The legs of a walk.
#[derive(Default)]
pub struct Way {
    /// In walking order.
    pub legs: Vec<Leg>,
    /// The paths that the turns changed and that are not covered.
    pub uncovered: BTreeSet<BString>,
    /// The turns whose last commit has another message now.
    pub reworded: Vec<Reworded>,
    /// The turns whose commits are made anew, by the user or upon a commit with another message.
    pub remade: Vec<Remade>,
    /// The branches of turns that have another name now.
    pub renamed: Vec<Renamed>,
    /// The branches that others have moved during a turn, and the turn: they stay.
    pub beside: BTreeMap<String, u64>,
    /// What turns brought by merges that others have concluded, and the turns: it stays.
    pub brought: Vec<(u64, Brought)>,
    /// Whether it moves such branches too, as it was asked.
    pub with_all: bool,
    /// Those of them on which HEAD was, and which another tool owns.
    pub owned: BTreeMap<String, u64>,
    /// The branches to which somebody has given the name of a turn's: the turn, and where it had its own. They may not be moved.
    pub another: BTreeMap<String, (u64, ObjectId)>,
}

/// Where a walk has come to.
struct Reached<'n> {
    /// The branches as they are now.
    now: &'n Tips,
    /// As they are there.
    there: Tips,
    /// The names that it has given to branches of now on the way.
    names: Names,
}

impl<'n> Reached<'n> {
    fn at(now: &'n Tips) -> Self {
        Self { now, there: now.clone(), names: Names::new() }
    }

    /// Over one more turn, which may give HEAD's branch another name.
    fn go(&mut self, leg: &Leg) {
        leg.delta.delta.lead(&mut self.there);
        let (start, goal) = (&leg.start, &leg.goal);
        let (Some(from), Some(to)) = (&start.head.branch, &goal.head.branch) else { return };
        let is_renamed = [from, to].map(|name| (start.branches.contains_key(name), goal.branches.contains_key(name)))
            == [(true, false), (false, true)];
        if is_renamed {
            let first = self.names.iter().find_map(|(first, name)| (name == from).then(|| first.clone()));
            self.names.insert(first.unwrap_or_else(|| from.clone()), to.clone());
        }
    }
}

impl Way {
    /// Reads the turns of a range.
    pub fn of(view: &View<'_>, range: &TurnRange, refs: RefMoves<'_>, now: &Checkpoint) -> Result<Self> {
        let mut legs = Self::default();
        let (mut head, mut reached) = (view.head.clone(), Reached::at(&now.branches));
        for (at, turn) in range.turns.iter().enumerate() {
            let is_last = at + 1 == range.turns.len();
            let (mut before, mut after) = ends(view, range, at, &head)?;
            let beside = beside(view, turn, &mut before, &mut after)?;
            if view.takes_all_branches {
                legs.with_all |= !beside.is_empty();
            } else {
                legs.beside.extend(beside);
            }
            legs.owned.extend(owned(view, turn, &before, &after)?.into_iter().map(|name| (name, turn.turn)));
            if let Some(until) = range.until.as_ref().filter(|_| is_last) {
                before = (**until).clone();
            }
            let brought = concluded::leave_out(view, (&mut before, &after), head.commit)?;
            legs.brought.extend(Some((turn.turn, brought)).filter(|(_, it)| !it.is_nothing()));
            legs.rename(view, (turn, range.direction(at)), [&mut before, &mut after], (range, &reached))?;
            if range.direction(at) == Direction::Forward {
                take_renamed(&mut before, &after, &head, &reached.there);
            }
            leave_beside(view, turn, [&mut before, &mut after], (&head, &reached.there))?;
            if at == 0 && range.back == 0 {
                take_reset(view, turn, (&mut before, &after), now)?;
            } else if at == 0 {
                legs.renamed.extend(renamed(turn, &mut before, &mut after, now));
            } else {
                legs.take_reset_between(view, (range, at), (&mut before, &after), now)?;
            }
            if refs.moves() {
                legs.remake(view, turn, range.direction(at), [&mut before, &mut after], &head)?;
            }
            if refs.moves() {
                check_is_begun(turn, range.direction(at), &before, &head)?;
            }
            let mut leg = legs.leg(view, turn, range.direction(at), (before, after), &head)?;
            leg.delta.short_of = range.short_of(at);
            if leg.delta.delta.head.is_some() {
                if refs.moves() && leg.start.head.branch != head.branch {
                    let first = undone_first(view, range, at);
                    let refusal = on_other_branch(view, turn, &leg.start, &legs.renamed, &first)?;
                    return Err(behind_others(view, refusal, range, at)?.into());
                }
                head = leg.goal.head.clone();
            }
            reached.go(&leg);
            legs.legs.push(leg);
        }
        Ok(legs)
    }

    /// Where the user took several turns off with git, or one beside those that the walk comes from, as [`take_reset`].
    fn take_reset_between(
        &self,
        view: &View<'_>,
        (range, at): (&TurnRange, usize),
        (before, after): (&mut Checkpoint, &Checkpoint),
        now: &Checkpoint,
    ) -> Result<()> {
        let (objects, turn) = (Objects::new(view.repo), range.turns[at].turn);
        let is_reset =
            range.direction(at) == Direction::Forward && (at == range.back || view.place()?.by_hand.contains(&turn));
        let end = after.head.commit.filter(|end| is_reset && objects.has_commit(*end));
        let (Some(end), Some(last)) = (end, self.legs.last()) else { return Ok(()) };
        put_as_left(&objects, (before, end), &last.goal, now)
    }

    /// Puts the commits that are made anew in the place of a turn's own, where only messages differ.
    fn remake(
        &mut self,
        view: &View<'_>,
        turn: &Turn,
        direction: Direction,
        [before, after]: [&mut Checkpoint; 2],
        head: &Head,
    ) -> Result<()> {
        let remade = match direction {
            Direction::Forward => Remade::of(view, turn, [before, after], head.commit)?,
            Direction::Back => Remade::by_user(view, turn, [before, after], head.commit)?,
        };
        let Some(remade) = remade else { return Ok(()) };
        if direction == Direction::Forward && self.remade.is_empty() {
            self.reworded.extend(below(view, &remade, head)?);
        }
        remade.put_into(before, after);
        self.remade.push(remade);
        Ok(())
    }

    /// Gives the branches of a turn the names that they have as the walk comes to it.
    fn rename(
        &mut self,
        view: &View<'_>,
        (turn, direction): (&Turn, Direction),
        [before, after]: [&mut Checkpoint; 2],
        (range, reached): (&TurnRange, &Reached<'_>),
    ) -> Result<()> {
        let own = branches_of(before, after);
        if own.is_empty() {
            return Ok(());
        }
        let (refs, there) = (Refs::new(view.repo), &reached.there);
        let [began, ended] = [Some(&turn.began_at), turn.ended_at.as_ref()];
        let ends = match direction {
            Direction::Back => vec![(&*after, ended)],
            // What the user took off with git may have left a branch that the turn made.
            Direction::Forward if view.place()?.by_hand.contains(&turn.turn) => {
                vec![(&*before, began), (&*after, ended)]
            }
            Direction::Forward => vec![(&*before, began)],
        };
        // What the turns of this walk did to names that were there is in the records.
        let recorded = recorded(turn, range);
        let is_known = |name: &str| [&*before, &*after].iter().any(|state| state.branches.contains_key(name));
        let names = names_now(&own, before, after, |name| {
            let (commit, at) = ends.iter().find_map(|(end, at)| Some((*end.branches.get(name)?, *at)))?;
            let known = self.renamed.iter().find_map(|renamed| renamed.names.get(name));
            if let Some(to) = known.filter(|to| there.contains_key(*to)) {
                return Some(to.clone());
            }
            let known_by = known_by(turn, name, at);
            let was = |other: &str| Was { commit, known_by, recorded: if is_known(other) { &recorded } else { &[] } };
            let called = called_now(&refs, name, was, there).or_else(|| {
                let now = called_now(&refs, name, was, reached.now).filter(|_| !reached.names.is_empty());
                now.and_then(|now| reached.names.get(&now).filter(|to| there.contains_key(*to)).cloned())
            });
            let is_left = |to: &String| before.branches.contains_key(name) || there.get(to) == Some(&commit);
            called.filter(|to| direction == Direction::Back || is_left(to))
        });
        // HEAD's own goes with the commits, whatever it was.
        let heads = [&view.head.branch, &after.head.branch].map(Clone::clone);
        let is_moved = |name: &String| before.branches.get(name) != after.branches.get(name);
        let is_beside =
            |name: &&String| is_moved(name) && !names.contains_key(*name) && !heads.contains(&Some((*name).clone()));
        for name in own.iter().filter(is_beside) {
            let tip = ends[0].0.branches.get(name).filter(|tip| there.get(name) == Some(*tip));
            let Some(was) = tip.map(|tip| was_at(turn, name, *tip)) else { continue };
            if refs.is_another_since(name, &Was { recorded: &recorded, ..was }) {
                self.another.insert(name.clone(), (turn.turn, was.commit));
            }
        }
        if !names.is_empty() {
            let throughout = direction == Direction::Forward || !give_back(&names, before, after);
            rename(after, &names);
            if throughout {
                rename(before, &names);
            }
            // The next walk may lead over it where the branch has been made again, without the reflog that tells.
            self.renamed.push(Renamed { turn: turn.turn, names, throughout });
        }
        Ok(())
    }

    fn leg(
        &mut self,
        view: &View<'_>,
        turn: &Turn,
        direction: Direction,
        (mut before, mut after): (Checkpoint, Checkpoint),
        head: &Head,
    ) -> Result<Leg> {
        let uncovered: Vec<Skipped> = uncovered_changes(&before, &after).into_iter().cloned().collect();
        move_to_branch(&mut before, &mut after, head);
        if direction == Direction::Back {
            self.reworded.extend(reworded(view, turn, &before, &mut after, head));
        }
        let delta = Checkpoints::new(view.repo).delta(turn, &before, &after)?;
        let is_covered = |old: &Skipped| match delta.aside.get(&old.path) {
            // It comes back from another name, with what was done to it there.
            Some(Change { from: Some(kept), .. }) => old.state.is_none() || is_same(kept, old),
            found => found.is_some() || turn.has_moved(old.path.as_bstr()),
        };
        self.uncovered.extend(uncovered.into_iter().filter(|old| !is_covered(old)).map(|old| old.path));
        let returns = view.timeline.return_state(turn.turn)?;
        let (delta, start, goal) = match direction {
            Direction::Back => (delta.inverse(), after, before),
            Direction::Forward => (delta, before, after),
        };
        let mut within = start.operation.clone();
        if delta.operation.is_none() && within.is_under_way() {
            // What the user has begun between its calls is not the turn's.
            within = view.timeline.checkpoint(turn.turn, Side::Before)?.operation;
        }
        Ok(Leg { start, goal, delta: TurnDelta { turn: turn.turn, delta, returns, within, ..TurnDelta::default() } })
    }
}

/// Whether what is kept is as it was where a state names it.
fn is_same(kept: &Aside, old: &Skipped) -> bool {
    (kept.state.is_none() || kept.state == own_state(old)) && (kept.tree.is_none() || kept.tree == whole_state(old))
}

/// A turn and those above it in a walk.
fn recorded<'t>(turn: &Turn, range: &'t TurnRange) -> Vec<Recorded<'t>> {
    let of = |it: &'t Turn| {
        let [began, ended] = [Some(&it.began_at), it.ended_at.as_ref()].map(seconds);
        // Before its agent was started, and not as it was recorded: git's clock was no more behind by then.
        let began = it.began.and_then(|time| i64::try_from(time / 1_000_000_000).ok()).unwrap_or(began);
        Recorded { began, ended, lines: it.logs.as_ref() }
    };
    range.turns.iter().filter(|it| it.turn >= turn.turn).map(of).collect()
}

/// Refuses to redo a turn that made a branch's first commit where HEAD has commits already.
fn check_is_begun(turn: &Turn, direction: Direction, before: &Checkpoint, head: &Head) -> Result<()> {
    let Some(name) = before.head.branch.as_deref().filter(|_| direction == Direction::Forward) else { return Ok(()) };
    if before.head.commit.is_some() || head.commit.is_none() {
        return Ok(());
    }
    let (shown, word) = (shown_place(Some(name)), branch_word(name));
    let message = format!("turn {} began on {shown} before its first commit, and HEAD is not there", turn.turn);
    Err(Refusal::new(Code::Branch, message)
        .hint(format!("run 'git switch --orphan {word}' first"))
        .hint(format!("or run 'oxundo restore {}' to bring its files back alone", turn.turn))
        .into())
}

/// Refuses a plan that moves a branch to which the user has given the name of a turn's own.
pub fn check_others(plan: &Plan, another: &BTreeMap<String, (u64, ObjectId)>) -> Result<(), Refusal> {
    let moved = plan.branches.iter().find_map(|it| Some((&it.name, another.get(&it.name)?)));
    moved.map_or(Ok(()), |(name, (turn, left))| Err(is_another(*turn, name, *left)))
}

fn is_another(turn: u64, name: &str, left: ObjectId) -> Refusal {
    let shown = short_branch(name);
    let line = format!("{} && {}", putting_back(name, None, true), putting_back(name, Some(left), false));
    let message = format!("'{shown}' is another branch since turn {turn}, which was renamed to that");
    Refusal::new(Code::Branch, message)
        .hint(format!("run '{line}' to keep it under another name, then the same command again"))
}

/// The refusal where HEAD's branch has the name by now that a branch of the turn's had beside it.
fn has_its_name(turn: u64, was: &str, now: &str) -> Refusal {
    let [shown, old] = [now, was].map(short_branch);
    let message = format!("'{shown}', which was '{old}', has the name of a branch that turn {turn} moved beside it");
    let [new, old] = [now, was].map(branch_word);
    Refusal::new(Code::Branch, message)
        .hint(format!("run 'git branch -m {new} {old}' to give it its name back, then the same command again"))
        .hint(format!("or run 'oxundo branch turn-{turn} {turn}' to have the turn on a branch of its own"))
}

/// The refusal where the walk has come as far as here: to switch now would not be to have switched then.
fn behind_others(view: &View<'_>, mut refusal: Refusal, range: &TurnRange, at: usize) -> Result<Refusal> {
    let walked = &range.turns[..at];
    let whole = walked.iter().filter(|turn| !turn.is_part()).count();
    let op = match range.direction(at) {
        Direction::Back => Op::Undo,
        Direction::Forward => Op::Redo,
    };
    // On the line of another branch nothing may be undone that would be redone first.
    let is_next = op == Op::Undo || view.place()?.undone.iter().take(at).eq(walked.iter().map(|turn| &turn.turn));
    if whole > 0 && is_next && (0..at).all(|one| range.direction(one) == range.direction(at)) {
        let line = if whole == 1 { format!("oxundo {}", op.word()) } else { format!("oxundo {} {whole}", op.word()) };
        refusal.hints = vec![format!("run '{line}' first, then the rest by itself")];
    }
    Ok(refusal)
}

/// The beginning of a line that undoes what is undone before this turn is redone: to switch before that would leave it.
fn undone_first(view: &View<'_>, range: &TurnRange, at: usize) -> String {
    let last = range.turns[..range.back].last().filter(|_| at >= range.back);
    last.map_or_else(String::new, |last| format!("oxundo undo --to {} && ", range::below(view, last).unwrap_or(0)))
}

/// The refusal for a turn that has switched branches, or has moved the one that HEAD is on beside another, where HEAD is not on the
/// one on which the walk enters it; with how a line begins that leads there.
fn on_other_branch(
    view: &View<'_>,
    turn: &Turn,
    state: &Checkpoint,
    renamed: &[Renamed],
    first: &str,
) -> Result<Refusal> {
    if let Some(refusal) = over_since(view, turn, state)? {
        return Ok(refusal);
    }
    let start = &state.head;
    let refs = Refs::new(view.repo);
    let has_it =
        |name: &String| renamed.iter().any(|it| it.turn == turn.turn && it.names.values().any(|to| to == name));
    let called = match (&start.branch, start.commit) {
        (Some(name), _) if has_it(name) => None,
        (Some(name), Some(commit)) => called_now(&refs, name, |_| was_at(turn, name, commit), &refs.branches()?),
        _ => None,
    };
    let branch = called.as_deref().or(start.branch.as_deref());
    let beside = branch
        .filter(|name| view.head.branch.as_deref() == Some(*name))
        .and_then(|name| state.branches.get_key_value(name));
    if let Some((name, left)) = beside {
        return Ok(is_another(turn.turn, name, *left));
    }
    if let (Some(was), Some(now)) = (&start.branch, &view.head.branch)
        && was != now
        && branch == Some(now.as_str())
    {
        return Ok(has_its_name(turn.turn, was, now));
    }
    let wanted = shown_place(branch);
    let message = if turn.began_on == turn.branch {
        let here = shown_place(view.head.branch.as_deref());
        format!("turn {} changed {here} as well as {wanted}, where HEAD is to be", turn.turn)
    } else {
        format!("turn {} switched branches, and HEAD is not on {wanted}, where it is to be", turn.turn)
    };
    if start.branch.is_none() {
        return Ok(Refusal::new(Code::Branch, message).hint(format!("run '{first}git switch --detach' first")));
    }
    let switch = switching::line(view, branch, start.commit)?;
    let hint = match switch {
        Some(switch) => format!("run '{first}{switch}' first"),
        None => format!("run 'oxundo restore {}' to bring its files back", turn.turn),
    };
    // Its branch, or what it made there, was merged into the one that it began on: from there undo would take that back.
    let is_back = first.is_empty() && view.head.branch == turn.began_on;
    let is_merged = is_back && is_done(view, turn.turn)? && view.timeline.node(turn.turn)?.moved();
    let only = format!("run 'oxundo undo --only {}' to take it out here, by a commit on top", turn.turn);
    Ok(Refusal::new(Code::Branch, message).hints(is_merged.then_some(only)).hint(hint))
}

/// The refusal for a turn that has left an operation in progress with HEAD on no branch, which the user has finished: the branch has
/// what came of it.
fn over_since(view: &View<'_>, turn: &Turn, left: &Checkpoint) -> Result<Option<Refusal>> {
    let is_over = left.head.branch.is_none() && left.operation.is_under_way() && view.repo.in_progress().is_none();
    let Some(name) = view.head.branch.as_ref().filter(|name| is_over && turn.began_on.as_ref() == Some(*name)) else {
        return Ok(None);
    };
    let began = turn
        .dirty_commit
        .map_or_else(|| view.timeline.undone_to(turn.turn).map(|it| it.head.commit), |id| Ok(Some(id)))?;
    let Some(began) = began.filter(|began| view.head.commit != Some(*began)) else { return Ok(None) };
    let (word, shown, kept) = (left.operation.word(), short_branch(name), branch_word(&format!("{name}-kept")));
    let line = format!("git branch {kept} && git reset -q --keep {}", began.to_hex_with_len(10));
    let message = format!("turn {} left a {word} in progress, which is over since", turn.turn);
    let hint = format!("run '{line}' to have '{shown}' as it was before the turn, and what it is now beside it");
    let only =
        format!("run 'oxundo undo --only {}' to take out what the turn made here, by a commit on top", turn.turn);
    Ok(Some(Refusal::new(Code::Branch, message).hint(only).hint(hint)))
}

/// Where a turn gave the branch that it began on another name, and the user took it off by hand, the branch has that name still: the
/// walk begins with it.
fn take_renamed(before: &mut Checkpoint, after: &Checkpoint, head: &Head, there: &Tips) {
    let (Some(from), Some(to)) = (&before.head.branch, &after.head.branch) else { return };
    let is_renamed = from != to && !there.contains_key(from) && !after.branches.contains_key(from);
    if is_renamed && head.branch.as_ref() == Some(to) && head.commit == before.head.commit {
        let names = Names::from([(from.clone(), to.clone())]);
        rename(before, &names);
    }
}

/// Where a turn is brought to another branch, and is done on its own still, what it did to branches beside that stays as it is: it was
/// not brought along, and is not taken back.
fn leave_beside(
    view: &View<'_>,
    turn: &Turn,
    [before, after]: [&mut Checkpoint; 2],
    (head, there): (&Head, &Tips),
) -> Result<()> {
    let Some(made_on) = after.head.branch.clone().filter(|name| before.head.branch.as_ref() == Some(name)) else {
        return Ok(());
    };
    let is_heads = |name: &String| head.branch.as_ref() == Some(name);
    if is_heads(&made_on) {
        return Ok(());
    }
    // A turn that moved no branch of its own is done on none.
    let node = view.timeline.node(turn.turn)?;
    let Some(tip) = there.get(&made_on).filter(|_| node.moved()) else { return Ok(()) };
    let moved = branch_changes(before, after);
    let own = Head { branch: Some(made_on.clone()), commit: Some(*tip), through: None };
    if moved.keys().any(is_heads) || !is_done_at(view, turn.turn, &own)? {
        return Ok(());
    }
    for name in moved.into_keys().filter(|name| *name != made_on) {
        before.branches.remove(&name);
        after.branches.remove(&name);
    }
    Ok(())
}

/// A turn goes with the commits, whatever branch holds them now: what it did to the branch that it was made on is done
/// to the one that HEAD is on.
fn move_to_branch(before: &mut Checkpoint, after: &mut Checkpoint, head: &Head) {
    let made_on = before.head.branch.clone();
    if made_on != after.head.branch {
        return;
    }
    if made_on == head.branch {
        // It may have another name that stands for it, and HEAD may be there by either.
        if before.head.through == after.head.through {
            before.head.through.clone_from(&head.through);
            after.head.through.clone_from(&head.through);
        }
        return;
    }
    // What the turn itself did to this branch would be lost.
    let own = |state: &Checkpoint| head.branch.as_ref().and_then(|name| state.branches.get(name)).copied();
    if before.head == after.head || own(before) != own(after) {
        return;
    }
    for state in [before, after] {
        if let Some(name) = &made_on {
            state.branches.remove(name);
        }
        if let (Some(name), Some(commit)) = (&head.branch, state.head.commit) {
            state.branches.insert(name.clone(), commit);
        }
        state.head.branch.clone_from(&head.branch);
        state.head.through.clone_from(&head.through);
    }
}

/// Whether the branch that a turn switched to is gone, and HEAD is where it was, on another; then that is the one, if no other can be.
fn renamed(turn: &Turn, before: &mut Checkpoint, after: &mut Checkpoint, now: &Checkpoint) -> Option<Renamed> {
    let (from, to) = (after.head.branch.clone()?, now.head.branch.clone()?);
    let is_there = after.head.commit == now.head.commit && now.branches.get(&to).copied() == now.head.commit;
    let may_be =
        |(name, tip): (&String, &ObjectId)| Some(*tip) == now.head.commit && !after.branches.contains_key(name);
    let is_only = now.branches.iter().filter(|it| may_be(*it)).all(|(name, _)| *name == to);
    if turn.began_on == turn.branch || !is_there || !is_only || from == to || now.branches.contains_key(&from) {
        return None;
    }
    // One that was there when the turn began is the same.
    let throughout = before.branches.contains_key(&from) && !before.branches.contains_key(&to);
    let names = Names::from([(from, to)]);
    rename(after, &names);
    if throughout {
        rename(before, &names);
    }
    Some(Renamed { turn: turn.turn, names, throughout })
}

/// Whether the user has changed nothing but the message of the commit that a turn ended on; then the state after it has
/// the new one.
fn reworded(
    view: &View<'_>,
    turn: &Turn,
    before: &Checkpoint,
    after: &mut Checkpoint,
    head: &Head,
) -> Option<Reworded> {
    let (from, to) = (after.head.commit?, head.commit?);
    // So it is with a turn's commit on which it only made a branch.
    let has_made = |name: &String| head.branch.as_ref() == Some(name) && !before.branches.contains_key(name);
    let is_its = turn.knows(&from)
        || after.head.branch.as_ref().is_some_and(has_made) && is_a_turns(view, from).unwrap_or(false);
    if from == to || !is_its || Objects::new(view.repo).likeness(from, to) != Likeness::Reworded {
        return None;
    }
    reword(after, from, to);
    Some(Reworded { turn: turn.turn, from, to })
}

/// Whether a turn has made a commit, by its note.
fn is_a_turns(view: &View<'_>, commit: ObjectId) -> Result<bool> {
    let notes = Refs::new(view.repo).notes_on(&[commit])?;
    Ok(notes.iter().flatten().any(|note| note.is_of_agents(commit)))
}

/// The turn that ended on the commit upon which another turn's are made anew, where only the message of that has changed.
fn below(view: &View<'_>, remade: &Remade, head: &Head) -> Result<Option<Reworded>> {
    let read = |turn| view.timeline.node(turn);
    let (Some(base), Some(to)) = (base_of(view.top()?, &read)?, head.commit) else { return Ok(None) };
    let from = read(base)?.to.filter(|from| remade.commits.get(from) == Some(&to));
    let is_its = |from: &ObjectId| Ok::<_, anyhow::Error>(view.timeline.require_turn(base)?.knows(from));
    match from {
        Some(from) if is_its(&from)? => Ok(Some(Reworded { turn: base, from, to })),
        _ => Ok(None),
    }
}

/// Puts one commit in the place of another where HEAD is.
pub fn reword(state: &mut Checkpoint, from: ObjectId, to: ObjectId) {
    state.head.commit = Some(to);
    let tip = state.head.branch.as_ref().and_then(|name| state.branches.get_mut(name));
    if let Some(tip) = tip.filter(|tip| **tip == from) {
        *tip = to;
    }
}

/// Where the user took the turn off with git: the walk begins at the commit that HEAD is at, with what of it is there, and brings
/// back the rest as the turn left it, also what was the user's before it and is in its commits.
fn take_reset(
    view: &View<'_>,
    turn: &Turn,
    (before, after): (&mut Checkpoint, &Checkpoint),
    now: &Checkpoint,
) -> Result<()> {
    let objects = Objects::new(view.repo);
    let is_middle = |commit: &ObjectId| turn.knows(commit) && before.head.commit != Some(*commit);
    let middle = now.head.commit.filter(is_middle);
    let is_reset = middle.is_some() || now.head.commit == before.head.commit;
    let end = after.head.commit.filter(|end| is_reset && objects.has_commit(*end));
    let Some(end) = end.filter(|_| view.place().is_ok_and(|place| place.by_hand.contains(&turn.turn))) else {
        return Ok(());
    };
    put_as_left(&objects, (before, end), now, now)?;
    if let Some(middle) = middle {
        before.advance(middle);
    }
    Ok(())
}

/// Gives what a turn's commits, which end at this one, have changed the state in which the user's own reset has left it where that is
/// so still, and was so where the walk has come to: what they had changed before the turn comes back with its commits.
fn put_as_left(
    objects: &Objects<'_>,
    (before, end): (&mut Checkpoint, ObjectId),
    reached: &Checkpoint,
    now: &Checkpoint,
) -> Result<()> {
    let (head, left) = (objects.head_tree(&now.head)?, objects.head_tree(&reached.head)?);
    let (mut files, mut staged) = (Vec::new(), Vec::new());
    for path in objects.changed_paths(objects.head_tree(&before.head)?, objects.commit_tree(end)?)? {
        let entry = |tree: ObjectId| objects.tree_entry(tree, path.as_bstr());
        let committed = entry(head)?;
        // It is as the reset has left it, and so it was where that was done.
        if entry(now.worktree)? == committed && entry(reached.worktree)? == entry(left)? {
            files.push((path.clone(), entry(reached.worktree)?));
        }
        let is_special = [now, reached].iter().any(|state| state.index.special.contains_key(&path));
        if !is_special && entry(now.index.tree)? == committed && entry(reached.index.tree)? == entry(left)? {
            before.index.special.remove(&path);
            staged.push((path.clone(), entry(reached.index.tree)?));
        }
    }
    before.worktree = objects.edited_tree(before.worktree, &files)?;
    before.index.tree = objects.edited_tree(before.index.tree, &staged)?;
    Ok(())
}

/// The branches that others have moved during a turn, and that are checked out nowhere else now. They are as other branches
/// where all are to be moved.
fn beside(view: &View<'_>, turn: &Turn, before: &mut Checkpoint, after: &mut Checkpoint) -> Result<Vec<(String, u64)>> {
    let moved = |name: &String| before.branches.get(name) != after.branches.get(name);
    let ours = [&before.head.branch, &after.head.branch].map(Clone::clone);
    let beside = before.elsewhere.union(&after.elsewhere);
    let mut beside: BTreeSet<String> =
        beside.filter(|name| moved(name) && !ours.contains(&Some((*name).clone()))).cloned().collect();
    if beside.is_empty() {
        return Ok(Vec::new());
    }
    let used = Refs::new(view.repo).branches_elsewhere()?;
    beside.retain(|name| !used.contains_key(name));
    if view.takes_all_branches {
        for state in [before, after] {
            state.elsewhere.retain(|name| !beside.contains(name));
        }
    } else {
        beside.retain(|name| !before.elsewhere.contains(name));
    }
    Ok(beside.into_iter().map(|name| (name, turn.turn)).collect())
}

/// The branches of other tools on which HEAD was during a turn, and which stay where they went.
fn owned(view: &View<'_>, turn: &Turn, goal: &Checkpoint, after: &Checkpoint) -> Result<BTreeSet<String>> {
    let on = [&turn.began_on, &turn.branch].into_iter().flatten();
    let stays = on.filter(|name| goal.branches.get(*name) == after.branches.get(*name));
    let mut owned = BTreeSet::new();
    for name in stays {
        if is_owned(view.config(), name)? {
            owned.insert(name.clone());
        }
    }
    if owned.is_empty() {
        return Ok(owned);
    }
    let began = view.timeline.checkpoint(turn.turn, Side::Before)?;
    owned.retain(|name| began.branches.get(name) != after.branches.get(name));
    Ok(owned)
}

/// A turn's two ends. Where the dirty commit stays, it begins on that.
fn ends(view: &View<'_>, range: &TurnRange, at: usize, head: &Head) -> Result<(Checkpoint, Checkpoint)> {
    let turn = &range.turns[at];
    let before = view.timeline.undone_to(turn.turn)?;
    let after = view.timeline.checkpoint(turn.turn, Side::After)?;
    // Below a commit of the user's the dirty commit stays in any case.
    let Some(dirty) = turn.dirty_commit.filter(|_| turn.onto.is_none()) else {
        return Ok((before, after));
    };
    let stays = match range.direction(at) {
        // It was published, or is to be kept.
        Direction::Back if at + 1 == range.turns.len() => {
            view.config().keep_dirty()? || !Objects::new(view.repo).published(&[dirty])?.is_empty()
        }
        // The turn of another line that comes next stands on it.
        Direction::Back if at + 1 == range.back => view.timeline.node(range.turns[at + 1].turn)?.from == Some(dirty),
        Direction::Back => false,
        // The dirty commit stayed if HEAD is on it, by whatever message.
        Direction::Forward => {
            head.commit.is_some_and(|at| at == dirty || Objects::new(view.repo).is_reworded(dirty, at))
        }
    };
    if !stays {
        return Ok((before, after));
    }
    let began = view.timeline.checkpoint(turn.turn, Side::Before)?;
    Ok((goal_with_dirty_commit(view.repo, &began, &before, Some(dirty))?, after))
}
