//! `oxundo undo` and `oxundo redo`: both move the timeline's cursor and apply
//! the difference.

use super::resolve;
use crate::cli::Distance;
use crate::config::Config;
use crate::error::{Code, Refusal};
use crate::git::Repo;
use crate::git::apply::Record;
use crate::git::store::{Side, Stored};
use crate::model::bytes::{quoted, sanitized, shown};
use crate::model::checkpoint::{Checkpoint, Head, short_branch, uncovered_changes};
use crate::model::guard::{self, Leaving, Origin};
use crate::model::merge::Edits;
use crate::model::plan::{Op, Plan};
use crate::model::timeline::Timeline;
use crate::model::turn::Turn;
use crate::model::walk::{Facts, Leg, travel};
use crate::turns;
use crate::ui::{Answer, Ui};
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Walks over turns.
///
/// # Errors
///
/// A refusal, with nothing changed, or a failure, with everything taken back.
pub fn run(repo: &Repo, ui: &Ui, op: Op, distance: &Distance) -> Result<Travelled> {
    let _lock = repo.lock(op.word())?;
    turns::settle(repo, ui)?;
    turns::check_idle(repo)?;
    let stored = repo.timeline()?;
    let route = Route::find(repo, &stored, op, distance)?;
    let edits = match distance.edits {
        Some(edits) => edits,
        None => Config(repo).edits()?,
    };
    let prepared = Prepared::new(repo, &stored, op, &route, edits)?;
    for path in &prepared.uncovered {
        ui.warn(&format!("'{}' was changed too, and is not covered", shown(path.as_bstr())));
    }
    if distance.dry_run {
        return Ok(Travelled::new(prepared.plan, route.turns, None, true));
    }
    let rescue = apply(repo, &stored, &prepared, &route)?;
    Ok(Travelled::new(prepared.plan, route.turns, Some(rescue), false))
}

/// What undo of one turn would do now; the refusal if it would refuse. Changes nothing.
///
/// # Errors
///
/// When that cannot be found out.
pub fn would_refuse(repo: &Repo, stored: &Stored) -> Result<Option<Refusal>> {
    let distance = Distance { steps: Some(1), to: None, edits: None, dry_run: true };
    let edits = Config(repo).edits()?;
    let outcome = turns::check_idle(repo)
        .and_then(|()| Route::find(repo, stored, Op::Undo, &distance))
        .and_then(|route| Prepared::new(repo, stored, Op::Undo, &route, edits));
    match outcome {
        Ok(_) => Ok(None),
        Err(error) => match error.downcast::<Refusal>() {
            Ok(refusal) => Ok(Some(refusal)),
            Err(error) => Err(error),
        },
    }
}

/// The turns to walk over, in walking order, and the state of the stack behind them.
struct Route {
    turns: Vec<Turn>,
    state: Timeline,
}

impl Route {
    fn find(repo: &Repo, stored: &Stored, op: Op, distance: &Distance) -> Result<Self> {
        let goal = match &distance.to {
            Some(text) => Some(Self::goal(repo, stored, op, text)?),
            None => None,
        };
        let wanted = distance.steps.unwrap_or(1);
        let mut route = Self { turns: Vec::new(), state: stored.state.clone() };
        let head = repo.head()?;
        let mut stack = head.stack().to_owned();
        loop {
            match goal {
                Some(goal) if route.state.top(&stack).unwrap_or(0) == goal => break,
                None if route.turns.len() as u64 == wanted => break,
                _ => {}
            }
            let next = match op {
                Op::Redo => route.state.next_redo(&stack),
                _ => route.state.top(&stack),
            };
            let Some(number) = next else {
                return Err(exhausted(op, stored, &head, route.turns.len(), wanted, goal).into());
            };
            let turn = repo.known_turn(stored, number)?;
            let step = Repo::step(&turn);
            if op == Op::Redo {
                route.state.redo(&step);
                stack = step.ended_on;
            } else {
                route.state.undo(&step);
                stack = step.began_on;
            }
            route.turns.push(turn);
        }
        if route.turns.is_empty() {
            return Err(nothing(op, "that turn is the last one done").into());
        }
        Ok(route)
    }

    fn goal(repo: &Repo, stored: &Stored, op: Op, text: &str) -> Result<u64> {
        let goal = resolve(repo, stored, text)?;
        if stored.state.top(repo.head()?.stack()) == Some(goal) {
            return Ok(goal);
        }
        let undone = stored.state.is_undone(goal);
        if undone && op == Op::Undo {
            return Err(Refusal::new(Code::Usage, format!("turn {goal} is undone already"))
                .hint(format!("run 'oxundo redo --to {goal}' to go forward to it"))
                .into());
        }
        if !undone && op == Op::Redo {
            return Err(Refusal::new(Code::Usage, format!("turn {goal} is not undone"))
                .hint(format!("run 'oxundo undo --to {goal}' to go back to it"))
                .into());
        }
        Ok(goal)
    }
}

fn nothing(op: Op, why: &str) -> Refusal {
    Refusal::new(Code::Nothing, format!("nothing to {}: {why}", op.word())).hint("run 'oxundo log' to see the turns")
}

fn exhausted(op: Op, stored: &Stored, head: &Head, found: usize, wanted: u64, goal: Option<u64>) -> Refusal {
    let branch = short_branch(head.stack());
    if let Some(goal) = goal {
        return Refusal::new(Code::Branch, format!("turn {goal} is not among the turns of '{branch}'"))
            .hint("run 'oxundo log --all' to see which branch it belongs to");
    }
    if found == 0
        && op == Op::Undo
        && let Some((turn, other)) = stored.state.newest_done()
    {
        let other = short_branch(other);
        return Refusal::new(
            Code::Branch,
            format!("'{branch}' has no turns: turn {turn}, the last one, was made on '{other}'"),
        )
        .hint(format!("run 'git switch {other}' first"));
    }
    let what = match (op, found) {
        (Op::Redo, 0) => "no turn is undone".to_owned(),
        (Op::Redo, n) => format!("{n} turns are undone, {wanted} were asked for"),
        (_, 0) => "no turn is recorded here".to_owned(),
        (_, n) => format!("'{branch}' has {n} turns, {wanted} were asked for"),
    };
    nothing(op, &what)
}

/// A checked plan, the present state that it was made for, and the paths that the turns
/// changed and that are not covered.
struct Prepared {
    plan: Plan,
    now: Checkpoint,
    uncovered: BTreeSet<BString>,
}

impl Prepared {
    fn new(repo: &Repo, stored: &Stored, op: Op, route: &Route, edits: Edits) -> Result<Self> {
        let config = Config(repo);
        let head = repo.head()?;
        let mut legs: Vec<Leg> = Vec::new();
        let mut ends_met: Vec<(Checkpoint, Checkpoint)> = Vec::new();
        let mut uncovered = BTreeSet::new();
        for (at, turn) in route.turns.iter().enumerate() {
            let last = at + 1 == route.turns.len();
            let (before, after) = ends(repo, stored, op, turn, last, &head)?;
            let delta = repo.delta(turn.turn, &before, &after)?;
            uncovered.extend(uncovered_changes(&before, &after).into_iter().cloned());
            let carried = repo.carried(stored, turn.turn)?;
            let (delta, met) =
                if op == Op::Redo { (delta, (before, after)) } else { (delta.inverse(), (after, before)) };
            legs.push(Leg { turn: turn.turn, delta, carried });
            ends_met.push(met);
        }
        let (Some((start, _)), Some((_, goal))) = (ends_met.first(), ends_met.last()) else {
            return Err(nothing(op, "no turn was asked for").into());
        };
        let usual = stored.state.usual_modes.unwrap_or_else(Repo::umask_modes);
        let capture = repo.capture(usual, &config.limits()?, None)?;
        let now = &capture.checkpoint;
        check_commits(repo, op, route, &legs, start, now)?;
        let since = (start, now);
        let between = ends_met.windows(2).map(|pair| (&pair[0].1, &pair[1].0));
        let gaps: Vec<_> = between.chain([since]).collect();
        let facts = Facts { edited: repo.edited(&gaps, now, goal)?, ..repo.facts(&legs, now, &capture.index)? };
        let mut merger = None;
        let mut merge = |path: &BStr, blobs| {
            let merger = match &mut merger {
                Some(merger) => merger,
                None => merger.insert(repo.merger(&capture.index)?),
            };
            merger.merge(path, blobs)
        };
        let plan = travel(op, &legs, &facts, edits, &mut merge)?;
        repo.check_names(&plan)?;
        check_elsewhere(repo, &plan)?;
        if !plan.index.is_empty() {
            repo.check_index_is_free()?;
        }
        Ok(Self { plan, now: capture.checkpoint, uncovered })
    }
}

/// A turn's two ends. The dirty commit stays when it was published, or is to be kept; then
/// the turn begins on it.
fn ends(
    repo: &Repo,
    stored: &Stored,
    op: Op,
    turn: &Turn,
    last: bool,
    head: &Head,
) -> Result<(Checkpoint, Checkpoint)> {
    let before = repo.checkpoint(stored, turn.turn, Side::Before)?;
    let after = repo.checkpoint(stored, turn.turn, Side::After)?;
    let Some(dirty) = turn.dirty_commit else {
        return Ok((before, after));
    };
    let stays = match op {
        // Where undo left HEAD tells whether the commit stayed.
        Op::Redo => head.commit == Some(dirty),
        _ => last && (Config(repo).keep_dirty()? || !repo.published(&[dirty])?.is_empty()),
    };
    let before = if stays { turns::with_dirty_commit(repo, &before, Some(dirty))? } else { before };
    Ok((before, after))
}

/// Checks every commit that the walk would take off a branch, for all its steps.
fn check_commits(repo: &Repo, op: Op, route: &Route, legs: &[Leg], start: &Checkpoint, now: &Checkpoint) -> Result<()> {
    if now.head.branch != start.head.branch {
        let wanted = start.head.branch.as_deref().map_or("a detached HEAD", short_branch);
        return Err(Refusal::new(
            Code::Branch,
            format!("turn {} belongs to '{wanted}', and HEAD is not on it", route.turns[0].turn),
        )
        .hint(format!("run 'git switch {wanted}' first"))
        .into());
    }
    for (name, at, goal) in moving_tips(legs, start, now) {
        let from = match op {
            // What the turn itself took off a branch goes off it again; only later commits count.
            Op::Redo => start.branches.get(&name).copied().or(start.head.commit),
            _ => goal,
        };
        let hidden = match from {
            Some(from) => vec![from],
            // A branch that goes: what stays on the others does not count as leaving.
            None => staying_tips(legs, now),
        };
        let leaving = repo.commits_between(&hidden, at)?;
        guard::check(op, &name, &described(repo, route, &leaving)?)?;
    }
    Ok(())
}

/// Every branch that the walk moves, and a detached HEAD: where it is, and where it would go.
fn moving_tips(legs: &[Leg], start: &Checkpoint, now: &Checkpoint) -> Vec<(String, ObjectId, Option<ObjectId>)> {
    let mut goals = BTreeMap::new();
    for Leg { delta, .. } in legs {
        for (name, change) in &delta.branches {
            goals.insert(name.clone(), change.to);
        }
        if let Some(change) = &delta.head
            && change.from.branch.is_none()
        {
            goals.insert("HEAD".to_owned(), change.to.commit);
        }
    }
    if let Some(branch) = &now.head.branch
        && now.head.commit != start.head.commit
    {
        goals.entry(branch.clone()).or_insert(start.head.commit);
    }
    let at = |name: &str| match name {
        "HEAD" if now.head.branch.is_none() => now.head.commit,
        _ => now.branches.get(name).copied(),
    };
    goals
        .into_iter()
        .filter_map(|(name, goal)| Some((at(&name)?, name, goal)).map(|(at, name, goal)| (name, at, goal)))
        .collect()
}

/// Where the branches are that the walk leaves in place or moves somewhere, and HEAD behind it.
fn staying_tips(legs: &[Leg], now: &Checkpoint) -> Vec<ObjectId> {
    let mut tips = now.branches.clone();
    let last = legs.iter().rev().find_map(|leg| leg.delta.head.as_ref());
    let head = last.map_or(now.head.commit, |change| change.to.commit);
    for Leg { delta, .. } in legs {
        for (name, change) in &delta.branches {
            match change.to {
                Some(to) => tips.insert(name.clone(), to),
                None => tips.remove(name),
            };
        }
    }
    tips.into_values().chain(head).collect()
}

fn described(repo: &Repo, route: &Route, commits: &[ObjectId]) -> Result<Vec<Leaving>> {
    let published = repo.published(commits)?;
    let notes = repo.notes_on(commits)?;
    let worktree = repo.worktree_id();
    let mut leaving = Vec::new();
    for (id, notes) in commits.iter().zip(notes) {
        let turn = route.turns.iter().find(|turn| turn.knows(id));
        let own = |turn: &Turn| {
            notes.iter().any(|note| note.commit == *id && note.turn == turn.turn && note.worktree == worktree)
        };
        let origin = match turn {
            Some(turn) if own(turn) => Origin::Recorded,
            Some(turn) => Origin::NoteMissing(turn.turn),
            None => match notes.iter().find(|note| note.commit != *id) {
                Some(copy) => Origin::Copied(copy.turn, copy.commit),
                None => rewritten_from(repo, route, *id)?,
            },
        };
        leaving.push(Leaving {
            id: *id,
            parents: repo.parents(*id)?.len(),
            subject: repo.commit_subject(*id)?,
            published: published.get(id).cloned(),
            origin,
        });
    }
    Ok(leaving)
}

/// A commit that took a turn's place without its note: same parents as one of the turn's, whose
/// own commit is on the branch no more.
fn rewritten_from(repo: &Repo, route: &Route, id: ObjectId) -> Result<Origin> {
    let parents = repo.parents(id)?;
    for turn in &route.turns {
        for commit in &turn.commits {
            if repo.has_commit(commit.id) && repo.parents(commit.id)? == parents {
                return Ok(Origin::Copied(turn.turn, commit.id));
            }
        }
    }
    Ok(Origin::Unknown)
}

/// A branch that another worktree has checked out is never moved under it.
fn check_elsewhere(repo: &Repo, plan: &Plan) -> Result<()> {
    let switches = plan.head.from.branch != plan.head.to.branch;
    if plan.branches.is_empty() && !switches {
        return Ok(());
    }
    let elsewhere = repo.branches_elsewhere()?;
    let to = plan.head.to.branch.as_ref().filter(|_| switches);
    let taken = plan.branches.iter().map(|branch| &branch.name).chain(to).find_map(|name| {
        let place = elsewhere.get(name)?;
        Some((short_branch(name), place))
    });
    match taken {
        Some((name, place)) => {
            Err(Refusal::new(Code::Branch, format!("'{name}' is checked out in another worktree, at '{place}'"))
                .hint(format!("switch that worktree to another branch, then run this again: 'git -C {place} switch …'"))
                .into())
        }
        None => Ok(()),
    }
}

fn apply(repo: &Repo, stored: &Stored, prepared: &Prepared, route: &Route) -> Result<ObjectId> {
    let plan = &prepared.plan;
    let mut update = repo.update(stored);
    update.state.stacks.clone_from(&route.state.stacks);
    let rescue = update.put_rescue(&prepared.now)?;
    for (turn, carried) in &plan.carried {
        update.put_carried(*turn, carried)?;
    }
    turns::pin_displaced(repo, &mut update.state, &turns::refs_delta(plan))?;
    let labels: Vec<String> = route.turns.iter().map(|turn| format!("{} ({})", turn.turn, turn.label())).collect();
    let message = format!("{} {}", plan.op.word(), labels.join(", "));
    let record =
        Record { timeline_from: stored.commit, timeline_to: Some(update.write(&message)?), notes: Vec::new(), message };
    repo.apply(plan, &record, None)?;
    Ok(rescue)
}

/// What undo or redo did, or would do.
pub struct Travelled {
    plan: Plan,
    turns: Vec<Turn>,
    rescue: Option<ObjectId>,
    dry_run: bool,
}

impl Travelled {
    fn new(plan: Plan, turns: Vec<Turn>, rescue: Option<ObjectId>, dry_run: bool) -> Self {
        Self { plan, turns, rescue, dry_run }
    }

    fn summary(&self) -> String {
        let count = |n: usize| if n == 1 { "1 file".to_owned() } else { format!("{n} files") };
        let mut text = count(self.plan.actions().len());
        for (name, from, to) in self.plan.tips() {
            let id =
                |id: Option<ObjectId>| id.map_or_else(|| "nothing".to_owned(), |id| id.to_hex_with_len(7).to_string());
            text.push_str(&format!(", {} {}..{}", sanitized(&name), id(from), id(to)));
        }
        if self.plan.head.from.branch != self.plan.head.to.branch {
            let to = self.plan.head.to.branch.as_deref().map_or("detached", short_branch);
            text.push_str(&format!(", HEAD to {}", sanitized(to)));
        }
        text
    }

    fn preview(&self) -> String {
        let mut text = String::new();
        for (path, action) in self.plan.actions() {
            text.push_str(&format!("  {action:6} {}\n", shown(path.as_bstr())));
        }
        text
    }
}

/// How many paths a line of the answer names.
const NAMED: usize = 5;

fn line(words: &str, paths: &[BString]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let mut named: Vec<String> = paths.iter().take(NAMED).map(|path| shown(path.as_bstr())).collect();
    if paths.len() > NAMED {
        named.push(format!("{} more", paths.len() - NAMED));
    }
    format!("{words} {}\n", named.join(", "))
}

impl Answer for Travelled {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let plan = &self.plan;
        let id = |id: Option<ObjectId>| id.map(|id| id.to_string());
        let files: Vec<_> = (plan.actions().into_iter())
            .map(|(path, action)| json!({"path": quoted(path.as_bstr()), "action": action}))
            .collect();
        let branches: Vec<_> = (plan.branches.iter())
            .map(|b| json!({"branch": short_branch(&b.name), "from": id(b.from), "to": id(b.to)}))
            .collect();
        let list = |paths: &[BString]| paths.iter().map(|path| quoted(path.as_bstr())).collect::<Vec<_>>();
        let (kept, unstaged, overwritten) = (list(&plan.kept_edits), list(&plan.unstaged), list(&plan.overwritten));
        Ok(json!({
            "op": plan.op.word(),
            "dry_run": self.dry_run,
            "turns": plan.turns,
            "head": {
                "from": id(plan.head.from.commit),
                "to": id(plan.head.to.commit),
                "branch": plan.head.to.branch.as_deref().map(short_branch),
            },
            "branches": branches,
            "files": files,
            "kept_edits": kept,
            "unstaged": unstaged,
            "overwritten": overwritten,
            "rescue": id(self.rescue),
        }))
    }

    fn text(&self) -> String {
        let word = match (self.dry_run, self.plan.op) {
            (false, Op::Redo) => "Redid",
            (false, _) => "Undid",
            (true, Op::Redo) => "Would redo",
            (true, _) => "Would undo",
        };
        let what = match &self.turns[..] {
            [turn] => format!("turn {} ({})", turn.turn, sanitized(&turn.label())),
            turns => {
                let numbers: Vec<_> = turns.iter().map(|turn| turn.turn.to_string()).collect();
                format!("turns {}", numbers.join(", "))
            }
        };
        let mut text = format!("{word} {what}: {}\n", self.summary());
        let (keeps, overwrites) = if self.dry_run { ("Would keep", "Would overwrite") } else { ("Kept", "Overwrote") };
        text.push_str(&line(&format!("{keeps} your edits in"), &self.plan.kept_edits));
        text.push_str(&line("No longer staged:", &self.plan.unstaged));
        text.push_str(&line(&format!("{overwrites} your edits in"), &self.plan.overwritten));
        if let (Some(rescue), false) = (self.rescue, self.plan.overwritten.is_empty()) {
            text.push_str(&format!("They are in the rescue checkpoint {rescue}\n"));
        }
        if self.dry_run {
            text.push_str(&self.preview());
        }
        text
    }

    fn hints(&self) -> Vec<String> {
        if self.dry_run {
            return Vec::new();
        }
        let steps = match self.turns.len() {
            1 => String::new(),
            n => format!(" --steps {n}"),
        };
        match self.plan.op {
            Op::Redo => vec![format!("'oxundo undo{steps}' takes it back")],
            _ => vec![format!("'oxundo redo{steps}' brings it back")],
        }
    }
}
