//! Removing old turns, and freeing what was moved aside for them.

use crate::git::apply::Apply;
use crate::git::repo::clock::{parse_rfc3339, unix_now};
use crate::git::repo::{Repo, ask};
use crate::git::timeline::Timelines;
use crate::model::bytes::{in_quotes, size};
use crate::model::expiry::{self, Expiry, NEWEST};
use crate::model::plan::{Op, Plan};
use crate::model::timeline::Timeline;
use crate::model::turn::Turn;
use crate::ops::locked::Locked;
use crate::ops::removed::{self, RemovedWorktree};
use crate::ops::restore::aside_in;
use crate::ops::turn::pins::repin;
use crate::ops::turn::sole;
use crate::ops::view::View;
use crate::warning::Warn;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;

/// How thoroughly to collect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As the user asked.
    Asked,
    /// As the user asked, who gives up what only a turn's state before, or a rescue checkpoint, holds of theirs.
    DropUser,
    /// Automatically, in the background: it waits for nobody, and nobody waits for it.
    Automatic,
}

/// What is said where turns stay for what is in them.
const HELD: &str = "older turns and rescues that may hold the only copy of something of yours stay too: 'oxundo gc --drop-user' lets them go";

/// The age in seconds beyond which turns go; `None` keeps all.
type Keep = Option<u64>;

/// Plans what goes now.
pub fn plan(view: &View<'_>, keep: Keep, effort: Effort) -> Result<Collection> {
    let timeline = &view.timeline;
    // Times are whole seconds: a turn that ended within the present second counts as older than now.
    let limit = keep.map(|keep| unix_now().saturating_sub_unsigned(keep) + i64::from(keep == 0));
    let is_old = |time: &str| limit.is_some_and(|limit| parse_rfc3339(time).is_some_and(|time| time < limit));
    let turns = timeline.turns()?;
    let by_age = |turn: &Turn| turn.ended_at.as_deref().is_some_and(is_old);
    let most = view.config().max_size()?;
    let drops = effort == Effort::DropUser;
    let only = if drops { BTreeSet::new() } else { only_copies(view, &turns, by_age, most)? };
    let is_held = |turn: &Turn| only.contains(&turn.turn);
    let state = with_place(view);
    let mut expiry = expiry::expiry(&state, &turns, by_age, is_held);
    let aside = Timelines::new(view.repo).aside()?;
    // Nobody reads the automatic one's number, unless there is a limit; but the next status does.
    let taken = Timelines::new(view.repo).space()?;
    let is_over = most.is_some_and(|most| taken > most);
    let mut rescues = old_rescues(view, if is_over && drops { Some(i64::MAX) } else { limit })?;
    let old = rescues.len();
    keep_sole(view, &mut rescues, drops)?;
    let holds_rescues = rescues.len() < old;
    if let Some(most) = most.filter(|_| is_over) {
        expiry = within((view, &state), (&turns, &rescues), by_age, is_held, taken.saturating_sub(most))?;
    }
    // What was moved aside of one turn may come back with another, which stays.
    let stays = |turn: &&Turn| !expiry.expired.contains(&turn.turn);
    let moved = turns.values().filter(stays).flat_map(|turn| &turn.moved);
    let needed: BTreeSet<u64> =
        moved.filter_map(|aside| aside.store.strip_prefix("aside/")?.split('/').next()?.parse().ok()).collect();
    let unproven = Timelines::new(view.repo).unproven_aside(&view.timeline, &turns)?;
    if effort != Effort::Automatic {
        for turn in unproven.iter().filter(|turn| !turns.contains_key(turn) || expiry.expired.contains(turn)) {
            let place = view.repo.aside_path(&format!("aside/{turn}"));
            let place = in_quotes(place.as_os_str().as_bytes().as_bstr());
            view.warn(format!("kept {place}: turn {turn} moved it, and is not proven to have made it"));
        }
    }
    let gone = |turn: &u64| {
        let is_over = turns.contains_key(turn) && expiry.expired.contains(turn);
        is_over && !needed.contains(turn) && !unproven.contains(turn)
    };
    let (freed, held): (BTreeMap<u64, u64>, BTreeMap<u64, u64>) = aside.into_iter().partition(|(turn, _)| gone(turn));
    let released = released(view, &turns, &expiry.expired, &rescues)?;
    let removed = removed::expire(view.repo, limit, may_hold(drops), true)?;
    let taken = taken.saturating_sub(released).saturating_sub(freed.values().sum());
    if effort != Effort::Automatic {
        let over = most.filter(|most| taken > *most);
        let would_go = |turn: &Turn| if over.is_some() { !expiry.expired.contains(&turn.turn) } else { by_age(turn) };
        if let Some(most) = over {
            let (taken, most) = (size(taken), size(most));
            view.warn(format!("oxundo takes {taken}, more than oxundo.maxSize, {most}: the newest turns stay, and what is not oxundo's to delete"));
        }
        if holds_rescues || turns.values().any(|turn| is_held(turn) && would_go(turn)) {
            view.warn(HELD);
        }
    }
    Ok(Collection { turns, expiry, rescues, removed, limit, drops, freed, held, released, taken })
}

/// The timeline's state, and in it the turns of the line that HEAD is on, whether git has put it there or oxundo.
fn with_place(view: &View<'_>) -> Timeline {
    let mut state = view.timeline.state.clone();
    // What cannot be read is said where it is needed. No branch has this name.
    if let Ok(place) = view.place() {
        state.stacks.insert(String::new(), place.to_stack());
    }
    state
}

/// Of a worktree that is gone nobody can ask whether it is still the only copy.
fn may_hold(drops: bool) -> impl Fn(&Turn) -> bool {
    move |turn| !drops && turn.is_only_copy()
}

/// The turns that would go and may have the only copy of something of the user's: no branch has it now, nor a file. They go where
/// the user says so, and at no age.
fn only_copies(
    view: &View<'_>,
    turns: &BTreeMap<u64, Turn>,
    by_age: impl Fn(&Turn) -> bool,
    most: Option<u64>,
) -> Result<BTreeSet<u64>> {
    let mut only = BTreeSet::new();
    let aside = Timelines::new(view.repo).aside()?;
    for turn in turns.values().filter(|turn| turn.ended_at.is_some() && (most.is_some() || by_age(turn))) {
        let is_changed = aside.contains_key(&turn.turn)
            && Timelines::new(view.repo).has_changed_aside(turn, &aside_in(&view.timeline, turn.turn)?);
        if is_changed || (turn.is_only_copy() && sole::is_still_only_copy(view, turn)?) {
            only.insert(turn.turn);
        }
    }
    Ok(only)
}

/// What goes where too much space is taken: the oldest turns, and no more of them than must.
fn within(
    (view, state): (&View<'_>, &Timeline),
    (turns, rescues): (&BTreeMap<u64, Turn>, &BTreeSet<u64>),
    by_age: impl Fn(&Turn) -> bool,
    is_held: impl Fn(&Turn) -> bool,
    excess: u64,
) -> Result<Expiry> {
    let all: Vec<u64> = expiry::expiry(state, turns, |_| true, &is_held).expired.into_iter().collect();
    let aside = Timelines::new(view.repo).aside()?;
    let oldest = |number: usize| {
        let limit = number.checked_sub(1).and_then(|last| all.get(last)).copied().unwrap_or_default();
        expiry::expiry(state, turns, |turn| by_age(turn) || turn.turn <= limit, &is_held)
    };
    let (mut few, mut enough) = (0, all.len());
    while few < enough {
        let number = few.midpoint(enough);
        let expired = oldest(number).expired;
        let freed: u64 = expired.iter().filter_map(|turn| aside.get(turn)).sum();
        if released(view, turns, &expired, rescues)? + freed >= excess { enough = number } else { few = number + 1 }
    }
    Ok(oldest(enough))
}

/// The bytes of the objects that nothing of oxundo's holds any more when these have gone.
fn released(
    view: &View<'_>,
    turns: &BTreeMap<u64, Turn>,
    expired: &BTreeSet<u64>,
    rescues: &BTreeSet<u64>,
) -> Result<u64> {
    let timeline = &view.timeline;
    let (mut go, mut stay) = (Vec::new(), Vec::new());
    for turn in turns.keys() {
        let list = if expired.contains(turn) { &mut go } else { &mut stay };
        list.extend(timeline.turn_tree(*turn)?);
    }
    for rescue in timeline.rescue_numbers()? {
        let list = if rescues.contains(&rescue) { &mut go } else { &mut stay };
        list.extend(timeline.rescue_tree(rescue)?);
    }
    Timelines::new(view.repo).released(&go, &stay)
}

/// What goes, and what stays.
pub struct Collection {
    turns: BTreeMap<u64, Turn>,
    expiry: Expiry,
    rescues: BTreeSet<u64>,
    /// What goes of removed worktrees.
    removed: Vec<RemovedWorktree>,
    /// What ended before this time goes.
    limit: Option<i64>,
    /// Whether what may be the only copy of something of the user's goes too.
    drops: bool,
    /// The bytes of what was moved aside, a turn each, where it goes.
    freed: BTreeMap<u64, u64>,
    /// The bytes of what was moved aside and stays.
    held: BTreeMap<u64, u64>,
    released: u64,
    /// The bytes that oxundo takes then.
    taken: u64,
}

impl Collection {
    /// What would be collected.
    pub fn preview(&self, view: &View<'_>) -> Collected {
        Collected {
            kept: self.turns.len() - self.expiry.expired.len(),
            rescues: self.rescues.len(),
            removed: self.removed.clone(),
            freed: self.freed.values().sum(),
            aside: self.held.values().sum(),
            released: self.released,
            taken: self.taken,
            expired: self.expiry.expired.iter().copied().collect(),
            dry_run: true,
            own: view.repo.is_shadow(),
        }
    }

    /// Lets it go.
    pub fn carry_out(&self, locked: &mut Locked<'_>) -> Result<Collected> {
        locked.repo.mark_collected()?;
        ask::sweep(locked.repo);
        let collected = Collected { dry_run: false, ..self.preview(locked) };
        self.record(locked)?;
        let removed = removed::expire(locked.repo, self.limit, may_hold(self.drops), false)?;
        let collected = Collected { removed, ..collected };
        let timelines = Timelines::new(locked.repo);
        self.freed.keys().try_for_each(|turn| timelines.delete_aside(*turn))?;
        locked.repo.remember_space(self.taken);
        Ok(collected)
    }

    fn record(&self, locked: &mut Locked<'_>) -> Result<()> {
        let Expiry { expired, changed } = &self.expiry;
        if expired.is_empty() && self.rescues.is_empty() {
            return Ok(());
        }
        // An operation older than all turns that stay is of no use: nothing of it can be undone.
        if let Some(oldest) = self.kept().filter_map(|turn| parse_rfc3339(&turn.began_at)).min() {
            Timelines::new(locked.repo).expire_operations(oldest)?;
        }
        let needed = self.needed(locked)?;
        let mut update = locked.timeline.update();
        repin(locked.repo, &mut update.state, &needed)?;
        for turn in expired {
            update.remove_turn(*turn);
        }
        for rescue in &self.rescues {
            update.remove_rescue(*rescue);
        }
        for turn in changed {
            update.put_turn(turn)?;
        }
        let message = format!("gc: {} turns, {} rescue checkpoints", expired.len(), self.rescues.len());
        let plan = Plan::empty(Op::Gc, locked.head.clone());
        locked.carry_out(&plan, update, message, Vec::new(), None)
    }

    fn kept(&self) -> impl Iterator<Item = &Turn> {
        self.turns.values().filter(|turn| !self.expiry.expired.contains(&turn.turn))
    }

    /// The commits that the remaining turns need.
    fn needed(&self, view: &View<'_>) -> Result<BTreeSet<ObjectId>> {
        let timeline = &view.timeline;
        let mut needed = BTreeSet::new();
        for turn in self.kept() {
            needed.extend(timeline.needed_commits(turn)?);
        }
        for number in timeline.rescue_numbers()?.into_iter().filter(|number| !self.rescues.contains(number)) {
            needed.extend(timeline.rescued_commits(number)?);
        }
        for named in timeline.state.named.values() {
            needed.extend(timeline.named_commits(named.number)?);
        }
        Ok(needed)
    }
}

/// Without those that may have the only copy of something of the user's, unless the user says so.
fn keep_sole(view: &View<'_>, rescues: &mut BTreeSet<u64>, drops: bool) -> Result<()> {
    for rescue in rescues.clone().into_iter().filter(|_| !drops) {
        if sole::is_nowhere(view, view.timeline.rescued(rescue)?)? {
            rescues.remove(&rescue);
        }
    }
    Ok(())
}

fn old_rescues(view: &View<'_>, limit: Option<i64>) -> Result<BTreeSet<u64>> {
    let rescues = view.timeline.rescue_numbers()?;
    let first_young = limit.map_or(Ok(0), |limit| Timelines::new(view.repo).first_rescue_since(limit))?;
    Ok(rescues.into_iter().rev().skip(NEWEST).filter(|rescue| *rescue < first_young).collect())
}

/// Collects in the background: everything is read before the lock is taken, so that nobody has to wait.
pub fn collect_automatically(repo: &Repo, heard: Warn<'_>) -> Result<Collected> {
    let view = View::open(repo, heard)?;
    let collection = plan(&view, view.config().keep(None)?, Effort::Automatic)?;
    repo.mark_collected()?;
    let preview = Collected { dry_run: false, ..collection.preview(&view) };
    let Some(lock) = repo.try_lock("gc")? else { return Ok(preview) };
    if Apply::is_interrupted(repo)? {
        return Ok(preview);
    }
    let mut locked = Locked::over(repo, heard, lock)?;
    ask::sweep(repo);
    if locked.timeline.commit != view.timeline.commit {
        return Ok(preview);
    }
    let collected = collection.carry_out(&mut locked)?;
    drop(locked);
    if repo.is_shadow() {
        Timelines::new(repo).tidy_objects()?;
    }
    Ok(collected)
}

/// Collects what is older than `keep` seconds, as the user asked.
pub fn collect(locked: &mut Locked<'_>, keep: Keep, effort: Effort) -> Result<Collected> {
    let collected = plan(locked, keep, effort)?.carry_out(locked)?;
    if locked.repo.is_shadow() {
        Timelines::new(locked.repo).collect_garbage()?;
    }
    Ok(collected)
}

/// What went, and what stays.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Collected {
    /// The turns that went, or would.
    pub expired: Vec<u64>,
    /// How many turns stay.
    pub kept: usize,
    /// How many rescue checkpoints went.
    pub rescues: usize,
    /// What went of worktrees that were removed.
    pub removed: Vec<RemovedWorktree>,
    /// The bytes freed of what was moved aside.
    pub freed: u64,
    /// The bytes that what is moved aside still takes.
    pub aside: u64,
    /// The bytes of objects that nothing of oxundo's holds any more: git frees them.
    pub released: u64,
    /// The bytes that oxundo takes when git has freed them.
    pub taken: u64,
    /// Whether nothing was done.
    pub dry_run: bool,
    /// Whether the repository is oxundo's own.
    pub(crate) own: bool,
}
