//! Undo and redo: both move the timeline's cursor and apply the difference.

pub mod alone;
pub mod committed;
pub mod conflict;
pub mod converted;
pub mod leaving;
pub mod legs;
pub mod not_here;
pub mod prepare;
pub mod range;
pub mod remade;
pub mod staged;

use crate::error::{Code, Refusal};
use crate::git::refs::Refs;
use crate::git::timeline::stored::Side;
use crate::git::timeline::update::Update;
use crate::model::bytes::{exact, in_quotes, quoted_line, sanitized, shell_word};
use crate::model::checkpoint::{Checkpoint, branch_word, short_branch};
use crate::model::merge::Edits;
use crate::model::names::rename;
use crate::model::plan::{Op, Plan};
use crate::model::turn::{Note, Turn, listed};
use crate::ops::called::{Renamed, logs_under};
use crate::ops::conversation;
use crate::ops::conversation::Conversations;
use crate::ops::fingerprint::fingerprint;
use crate::ops::locked::Locked;
use crate::ops::outcome::Outcome;
use crate::ops::place::{keep_line, put_redone};
use crate::ops::side_effects::Foreseen;
use crate::ops::switching;
use crate::ops::turn::meanwhile::{warn_of_both, warn_of_lost};
use crate::ops::turn::pins::{lost_elsewhere, pin_by_hand, pin_displaced, refs_delta};
use crate::ops::turn::skipped::{announce_whole, not_covered, warn_of_changed, warn_of_overwritten, warn_of_unignored};
use crate::ops::turn::{in_progress, notes, unattended};
use crate::ops::undo::legs::{RefMoves, Reworded, reword};
use crate::ops::undo::prepare::Prepared;
use crate::ops::undo::range::{Extent, TurnRange};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;

/// So many turns of a walk are named in the log of operations.
const NAMED: usize = 5;

/// What may be in the way because of an operation in progress.
const OBSTACLES: [Code; 6] = [Code::Published, Code::Merge, Code::Foreign, Code::Branch, Code::Conflict, Code::Nothing];

/// An undo or a redo with all checks made.
pub struct PlannedUndo {
    op: Op,
    range: TurnRange,
    prepared: Prepared,
    conversations: Conversations,
}

/// Plans an undo or a redo for all its turns, and changes nothing. `edits` overrides the configuration.
pub fn plan(view: &View<'_>, op: Op, extent: &Extent, edits: Option<Edits>) -> Result<PlannedUndo> {
    let planned = || {
        let range = TurnRange::find(view, op, extent)?;
        let edits = view.config().edits_or(edits)?;
        let prepared = Prepared::new(view, op, &range, edits, RefMoves::Move);
        let prepared = prepared
            .map_err(|error| on_its_branch(view, op, &range, error))
            .map_err(|error| with_all_by_hand(view, op, &range, edits, error))?;
        let conversations = match op {
            Op::Undo => Conversations::undone(view, &range.turns, conversation::Extent::Whole)?,
            _ => Conversations::told(&range.turns),
        };
        Ok(PlannedUndo { op, range, prepared, conversations })
    };
    planned().map_err(|error| in_the_middle(view, error))
}

/// Where the branches do not let redo lead to a turn that is done on another one, git does.
fn on_its_branch(view: &View<'_>, op: Op, range: &TurnRange, error: anyhow::Error) -> anyhow::Error {
    let Some(goal) = range.turns[range.back..].last().filter(|_| op == Op::Redo) else { return error };
    match error.downcast::<Refusal>() {
        Ok(refusal) => match switching::to_turn(view, goal) {
            Ok(Some(switch)) if refusal.code == Code::Branch => Refusal { hints: Vec::new(), ..refusal }
                .hint(format!("run '{switch}' to go to where turn {} is done", goal.turn))
                .into(),
            _ => refusal.into(),
        },
        Err(error) => error,
    }
}

/// Where the user took turns off with git and kept their files, what later ones did is in the way of one alone: all of them are brought
/// back together.
fn with_all_by_hand(view: &View<'_>, op: Op, range: &TurnRange, edits: Edits, error: anyhow::Error) -> anyhow::Error {
    let is_conflict = error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == Code::Conflict);
    let Some(place) = view.place().ok().filter(|_| is_conflict && op == Op::Redo) else { return error };
    let last = place.undone.iter().rev().find(|turn| place.by_hand.contains(turn));
    let Some(last) = last.filter(|last| range.turns.iter().all(|turn| turn.turn != **last)) else { return error };
    if plan(view, op, &Extent::To(last.to_string()), Some(edits)).is_err() {
        return error;
    }
    error.downcast::<Refusal>().map_or_else(
        |error| error,
        |mut refusal| {
            let line = format!("run 'oxundo redo --to {last}' to bring back all that you took off with git");
            refusal.hints.insert(0, line);
            refusal.into()
        },
    )
}

/// Where the user is in the middle of something that has begun since the last turn, no other obstacle is worth a word: it may go
/// with that.
pub fn in_the_middle(view: &View<'_>, error: anyhow::Error) -> anyhow::Error {
    let is_obstacle = error.downcast_ref::<Refusal>().is_some_and(|refusal| OBSTACLES.contains(&refusal.code));
    match view.repo.in_progress() {
        Some(doing) if is_obstacle && !is_turns_own(view).unwrap_or(true) => in_progress(doing).into(),
        _ => error,
    }
}

/// Whether git is in the middle of what it was in the middle of when the last turn ended, or the next one to redo began.
fn is_turns_own(view: &View<'_>) -> Result<bool> {
    let place = view.place()?;
    let now = view.repo.operation(view.limits()?.max_file_size)?;
    let ends = [(place.top, Side::After), (place.undone.first().copied(), Side::Before)];
    for (turn, side) in ends {
        if let Some(turn) = turn
            && view.timeline.checkpoint(turn, side)?.operation == now
        {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Foreseen for PlannedUndo {
    fn foreseen(&self) -> Option<Outcome> {
        Some(self.preview())
    }

    fn digest(&self, view: &View<'_>) -> Result<String> {
        fingerprint(self.plan(), false, view)
    }
}

impl PlannedUndo {
    /// Warns of paths that the turns changed and that are not covered, and of branches that stay.
    pub fn announce(&self, view: &View<'_>) {
        self.conversations.warn(view);
        for (name, turn) in &self.prepared.beside {
            let name = short_branch(name);
            view.warn(format!(
                "'{name}' moved during turn {turn}, not by it, and stays: '--branches=all' moves it too"
            ));
        }
        for (name, turn) in &self.prepared.owned {
            let name = short_branch(name);
            view.warn(format!("'{name}' moved during turn {turn}, and stays: it is another tool's branch"));
        }
        let back = &self.range.turns[..self.range.back];
        for (number, brought) in &self.prepared.brought {
            let turn = back.iter().find(|turn| turn.turn == *number);
            let told = turn.and_then(|turn| brought.told(view, turn).ok());
            told.unwrap_or_default().into_iter().for_each(|told| view.warn(told));
        }
        warn_of_both(view, back.iter(), self.plan());
        warn_of_overwritten(view, back.iter(), self.plan());
        warn_of_changed(view, back.iter(), self.plan());
        warn_of_unignored(view, back.iter(), self.plan(), self.present());
        for turn in back {
            warn_of_lost_branches(view, turn, self.plan());
            warn_of_copies(view, turn);
            warn_of_lost(view, turn, self.plan());
            if let Some(told) = unattended::told_of_taken(view, turn, self.plan()) {
                view.warn(told);
            }
        }
        let stays = back.last().filter(|turn| turn.dirty_commit.is_some() && turn.onto.is_none());
        if let Some((turn, dirty)) = stays.and_then(|turn| Some((turn.turn, turn.dirty_commit?)))
            && self.plan().head.to.commit == Some(dirty)
            && view.config().keep_dirty().is_ok_and(|keeps| !keeps)
        {
            let id = dirty.to_hex_with_len(7);
            view.warn(format!("what you had uncommitted before turn {turn} stays committed: {id} is published"));
        }
        if let ([turn], true) = (back, self.plan().is_empty())
            && turn.totals.files > 0
            && not_here::are_as_at(view, turn, Side::Before).unwrap_or(false)
        {
            let number = turn.turn;
            view.warn(format!("the files of turn {number} are not here: 'oxundo restore {number}' brings them back"));
        }
        announce_whole(view, self.plan());
        for path in &self.prepared.uncovered {
            view.warn(not_covered(path));
        }
    }

    /// What it changes.
    pub fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// The present that it is planned for.
    pub fn present(&self) -> &Checkpoint {
        &self.prepared.capture.checkpoint
    }

    /// What would be done.
    pub fn preview(&self) -> Outcome {
        self.outcome(&self.conversations, None)
    }

    /// The answer: what was done if there is a rescue checkpoint, else what would be.
    fn outcome(&self, conversations: &Conversations, rescue: Option<ObjectId>) -> Outcome {
        let (back, forward) = self.range.turns.split_at(self.range.back);
        let rewinds = if self.op == Op::Redo { Vec::new() } else { conversations.hints() };
        let undone = whole(back).iter().map(|turn| turn.turn).collect();
        Outcome {
            turns: whole(back).into_iter().chain(whole(forward)).map(|turn| turn.turn).collect(),
            undone,
            turn: None,
            what: told(self.op, &self.range, rescue.is_none()),
            hints: self.way_back().into_iter().chain(rewinds).collect(),
            conversations: conversations.json(),
            forks: conversations.lines(rescue.is_none()),
            plan: self.prepared.plan.clone(),
            rescue,
            dry_run: rescue.is_none(),
        }
    }

    /// How to go back to where the walk began. What undo leaves is taken out by commits on top, or stays with its branch.
    fn way_back(&self) -> Option<String> {
        let range = &self.range;
        if range.brings_back {
            return None;
        }
        let top = range.turns[..range.back].first().filter(|_| self.op == Op::Redo);
        let all = if self.prepared.with_all { " --branches=all" } else { "" };
        let (steps, it) = match whole(&range.turns).len() {
            1 => (String::new(), "it"),
            n => (format!(" --steps {n}"), "them"),
        };
        if range.comes_below {
            let numbers: Vec<u64> = range.turns.iter().map(|turn| turn.turn).collect();
            return match numbers[..] {
                [turn] => Some(format!("'oxundo undo --only {turn}' takes it out again")),
                [first, .., last] if numbers.iter().copied().eq(first..=last) => {
                    Some(format!("'oxundo undo --only {first}..{last}' takes them out again"))
                }
                _ => None,
            };
        }
        Some(match (self.op, top.map(|top| top.turn), self.prepared.stays) {
            (Op::Redo, Some(top), true) => {
                format!("'oxundo branch turn-{top} {top}' goes back, on a branch of its own")
            }
            (Op::Redo, Some(top), false) => format!("'oxundo redo --to {top}{all}' goes back"),
            (Op::Redo, None, true) => format!("'oxundo undo --revert{steps}' takes {it} out again, by a commit on top"),
            (Op::Redo, None, false) => format!("'oxundo undo{steps}{all}' takes {it} back"),
            _ => format!("'oxundo redo{steps}{all}' brings {it} back"),
        })
    }

    /// What it is called while it goes on.
    fn doing(&self) -> String {
        let doing = if self.op == Op::Redo { "redoing" } else { "undoing" };
        match &self.range.turns[..] {
            [turn] => format!("{doing} turn {}", turn.turn),
            turns => format!("{doing} {} turns", turns.len()),
        }
    }

    /// Does it; after a failure everything is as it was.
    pub fn carry_out(self, locked: &mut Locked<'_>) -> Result<Outcome> {
        let _doing = locked.repo.start(&self.doing());
        let mut conversations = self.conversations.clone();
        let rescue = conversations.go_with(locked, |locked| self.apply(locked))?;
        let mut outcome = self.outcome(&conversations, Some(rescue));
        if self.op == Op::Redo {
            outcome.hints.extend(conversation::originals(locked.repo, &self.range.turns));
        }
        Ok(outcome)
    }

    /// Applies the plan and records it; gives the rescue checkpoint.
    fn apply(&self, locked: &mut Locked<'_>) -> Result<ObjectId> {
        let plan = &self.prepared.plan;
        let mut update = locked.timeline.update();
        pin_by_hand(locked, &mut update.state)?;
        let was = locked.place()?;
        if plan.head.from.commit == plan.head.to.commit {
            update.state.stand_everywhere(was, &self.range.place);
        }
        // From what it walks over nobody else has taken the branch away.
        let mut known = self.range.place.clone();
        known.undone.extend(self.range.turns.iter().map(|turn| turn.turn));
        keep_line(&locked.timeline, &mut update.state, &plan.head.to, &known)?;
        if let Some(lowest) = self.range.turns.first().filter(|_| self.range.back == 0) {
            // Below one under which all has expired nothing is known to be.
            let below = was.top.filter(|_| lowest.previous.is_some());
            let redone = self.range.turns.iter().map(|turn| turn.turn);
            let tops = redone.chain(below).chain(self.range.place.top).collect();
            put_redone(&locked.timeline, &mut update.state, &tops)?;
        }
        update.state.stand(&plan.head.to, &self.range.place);
        let notes = self.reword(locked, &mut update)?;
        let rescue = update.put_rescue(&self.prepared.capture.checkpoint, &self.prepared.users)?;
        for (turn, state) in &plan.returns {
            update.put_return_state(*turn, state)?;
        }
        pin_displaced(locked.repo, &mut update.state, &refs_delta(plan))?;
        let label = |turn: &Turn| format!("{} ({})", turn.turn, turn.label());
        let labels = |turns: &[Turn]| {
            let mut labels: Vec<String> = turns.iter().take(NAMED).map(label).collect();
            if let Some(rest) = turns.get(NAMED..).filter(|rest| !rest.is_empty()) {
                labels.push(format!("and {} more", rest.len()));
            }
            labels.join(", ")
        };
        let message = match self.range.turns.split_at(self.range.back) {
            (back, forward) if !back.is_empty() && !forward.is_empty() => {
                format!("undo {}; redo {}", labels(back), labels(forward))
            }
            _ => format!("{} {}", plan.op.word(), labels(&self.range.turns)),
        };
        locked.carry_out(plan, update, message, notes, None)?;
        Ok(rescue)
    }

    /// A turn and the states at its ends, with the names that its branches have now.
    fn under_new_names(&self, view: &View<'_>, number: u64) -> Result<(Turn, Checkpoint, Checkpoint)> {
        let mut turn = view.timeline.require_turn(number)?;
        let mut before = view.timeline.checkpoint(number, Side::Before)?;
        let mut after = view.timeline.checkpoint(number, Side::After)?;
        for Renamed { names, throughout, .. } in self.prepared.renamed.iter().filter(|renamed| renamed.turn == number) {
            rename(&mut after, names);
            if *throughout {
                rename(&mut before, names);
            }
            for on in [&mut turn.began_on].into_iter().filter(|_| *throughout).chain([&mut turn.branch]).flatten() {
                *on = names.get(on).unwrap_or(on).clone();
            }
            turn.logs = turn.logs.map(|logs| logs_under(names, logs, &Refs::new(view.repo)));
        }
        Ok((turn, before, after))
    }

    /// Whether a branch is at a commit of which the user has made another, or was as one of these turns left it; HEAD's own is at the new.
    fn has_branches_at_old_commits(&self, view: &View<'_>) -> Result<bool> {
        let Prepared { reworded, remade, .. } = &self.prepared;
        // Those that a redo makes anew take the turn's branches along.
        let by_user = || remade.iter().filter(|it| it.by_user);
        let is_old = |tip: &ObjectId| {
            reworded.iter().any(|it| it.from == *tip) || by_user().any(|it| it.commits.contains_key(tip))
        };
        if Refs::new(view.repo).branches()?.values().any(is_old) {
            return Ok(true);
        }
        for turn in &self.range.turns {
            let after = view.timeline.checkpoint(turn.turn, Side::After)?;
            let own = after.head.branch.as_ref();
            if after.branches.iter().any(|(name, tip)| own != Some(name) && is_old(tip)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Records the commits whose message the user has changed as those of their turns, and those that are made anew upon such
    /// commits; gives the notes on them.
    fn reword(&self, view: &View<'_>, update: &mut Update<'_>) -> Result<Vec<Note>> {
        let (mut made, stay) = (Vec::new(), self.has_branches_at_old_commits(view)?);
        for renamed in &self.prepared.renamed {
            let (turn, before, after) = self.under_new_names(view, renamed.turn)?;
            update.put_checkpoint(turn.turn, Side::Before, &before)?;
            update.put_checkpoint(turn.turn, Side::After, &after)?;
            update.put_turn(&turn)?;
        }
        for Reworded { turn, from, to } in &self.prepared.reworded {
            let (mut turn, _, mut after) = self.under_new_names(view, *turn)?;
            reword(&mut after, *from, *to);
            turn.became(|id| if id == *from { *to } else { id }, stay);
            if let Some(footing) = &mut turn.footing {
                footing.to = Some(*to);
            }
            made.extend(notes(view.repo, &turn).into_iter().filter(|note| note.commit == *to));
            update.put_checkpoint(turn.turn, Side::After, &after)?;
            update.put_turn(&turn)?;
        }
        for remade in &self.prepared.remade {
            let turn = self.under_new_names(view, remade.turn)?;
            made.extend(remade.record(turn, &view.timeline, update, stay)?);
        }
        Ok(made)
    }
}

/// Says of the branches that other worktrees had, and that a turn has taken commits from, how they come back.
fn warn_of_lost_branches(view: &View<'_>, turn: &Turn, plan: &Plan) {
    let read = |side| view.timeline.checkpoint(turn.turn, side).ok();
    let Some(before) = read(Side::Before).filter(|before| !before.elsewhere.is_empty()) else { return };
    let Some(after) = read(Side::After) else { return };
    let now = Refs::new(view.repo).branches().unwrap_or_default();
    for (name, from) in lost_elsewhere(view.repo, &before, &after) {
        let stays = plan.branches.iter().all(|branch| branch.name != name);
        if stays && now.get(&name) == after.branches.get(&name) {
            let (shown, word) = (short_branch(&name), branch_word(&name));
            let line = format!("git branch -f {word} {}", from.to_hex_with_len(10));
            view.warn(format!(
                "'{shown}' lost commits during turn {}, and stays: '{line}' brings them back",
                turn.turn
            ));
        }
    }
}

/// Says where that is which may be the only copy of what was not captured, and goes with the turn.
fn warn_of_copies(view: &View<'_>, turn: &Turn) {
    let number = turn.turn;
    for (new, old) in turn.copies.iter().filter_map(|(new, old)| Some((exact::decode(new)?, exact::decode(old)?))) {
        let line = quoted_line(&format!("oxundo restore {number} -- {}", shell_word(new.as_slice())));
        let (new, old) = (in_quotes(new.as_bstr()), in_quotes(old.as_bstr()));
        view.warn(format!(
            "{old} was not captured before turn {number}, and {new} may be a copy of it: {line} brings that back"
        ));
    }
}

/// The turns without those that only took parts of others out, where there are any.
fn whole(turns: &[Turn]) -> Vec<&Turn> {
    let whole: Vec<&Turn> = turns.iter().filter(|turn| !turn.is_part()).collect();
    if whole.is_empty() { turns.iter().collect() } else { whole }
}

fn told(op: Op, range: &TurnRange, dry_run: bool) -> String {
    let named = |turns: &[Turn]| match &whole(turns)[..] {
        [turn] => format!("turn {} ({})", turn.turn, sanitized(&turn.label())),
        turns => format!("turns {}", listed(&turns.iter().map(|turn| turn.turn).collect::<Vec<_>>())),
    };
    let (back, forward) = range.turns.split_at(range.back);
    if op == Op::Redo && !range.brings_back && !back.is_empty() {
        let (back, forward) = (named(back), named(forward));
        return match (dry_run, range.turns.len() == range.back) {
            (true, true) => format!("Would undo {back}"),
            (false, true) => format!("Undid {back}"),
            (true, false) => format!("Would undo {back} and redo {forward}"),
            (false, false) => format!("Undid {back} and redid {forward}"),
        };
    }
    let words = match (range.brings_back, dry_run, op) {
        (true, false, _) => "Brought back what was taken out by",
        (true, true, _) => "Would bring back what was taken out by",
        (_, false, Op::Redo) => "Redid",
        (_, false, _) => "Undid",
        (_, true, Op::Redo) => "Would redo",
        (_, true, _) => "Would undo",
    };
    format!("{words} {}", named(&range.turns))
}
