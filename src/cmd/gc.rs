//! `oxundo gc`: lets old turns go, and frees what was moved aside for them.

use crate::cli::GcArgs;
use crate::config::Config;
use crate::git::apply::Apply;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::{seconds, seconds_of};
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::model::bytes::size;
use crate::model::expiry::{Expiry, NEWEST, expiry};
use crate::model::plan::{Op, Plan};
use crate::model::turn::Turn;
use crate::turns;
use crate::ui::{Answer, Ui};
use anyhow::Result;
use gix::ObjectId;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Lets go what is older than the limit.
///
/// # Errors
///
/// A refusal `busy` while a turn is running, or a failure.
pub fn run(repo: &Repo, ui: &Ui, args: &GcArgs) -> Result<Collected> {
    let keep = Config(repo).keep(args.keep.as_deref())?;
    let mut lock = None;
    if !args.auto {
        lock = Some(repo.lock("gc")?);
        turns::settle(repo, ui)?;
    }
    let stored = Timelines::new(repo).timeline()?;
    // Times are whole seconds: what ended within this very one is older than now.
    let limit = keep.map(|keep| seconds().saturating_sub_unsigned(keep) + i64::from(keep == 0));
    let is_old = |time: &str| limit.is_some_and(|limit| seconds_of(time).is_some_and(|time| time < limit));
    let turns = stored.turns()?;
    let goes = Goes {
        turns: expiry(&stored.state, &turns, |turn| turn.ended_at.as_deref().is_some_and(is_old)),
        rescues: old_rescues(repo, &stored, limit)?,
    };
    let aside = Timelines::new(repo).aside()?;
    let gone = |turn: &u64| !turns.contains_key(turn) || goes.turns.expired.contains(turn);
    let (freed, held): (BTreeMap<u64, u64>, BTreeMap<u64, u64>) = aside.into_iter().partition(|(turn, _)| gone(turn));
    let collected = Collected {
        kept: turns.len() - goes.turns.expired.len(),
        rescues: goes.rescues.len(),
        freed: freed.values().sum(),
        aside: held.values().sum(),
        // Nobody reads what the automatic one says.
        released: if args.auto { 0 } else { released(repo, &stored, &turns.keys().copied().collect(), &goes)? },
        expired: goes.turns.expired.iter().copied().collect(),
        dry_run: args.dry_run,
        own: repo.is_private(),
    };
    if args.dry_run {
        return Ok(collected);
    }
    repo.mark_collected()?;
    if args.auto {
        lock = repo.try_lock("gc")?;
        // It has read all this without the lock, so that nobody had to wait.
        if lock.is_none()
            || Apply::new(repo).is_interrupted()?
            || Timelines::new(repo).timeline()?.commit != stored.commit
        {
            return Ok(collected);
        }
    }
    record(repo, &stored, &turns, goes)?;
    freed.keys().try_for_each(|turn| Timelines::new(repo).delete_aside(*turn))?;
    if repo.is_private() {
        if args.auto {
            drop(lock);
            Timelines::new(repo).tidy_objects()?;
        } else {
            Timelines::new(repo).collect_garbage()?;
        }
    }
    Ok(collected)
}

/// Starts it in the background where it is time: at most once a day, and only if there is a turn to let go.
/// A turn that ends calls this, and does not wait.
pub fn start_if_due(repo: &Repo) {
    // Old turns take space and do no other harm; 'oxundo gc' says what is in the way.
    drop(is_due(repo).and_then(|due| if due { start(repo) } else { Ok(()) }));
}

fn is_due(repo: &Repo) -> Result<bool> {
    if repo.since_collected().is_some_and(|age| age < DAY) {
        return Ok(false);
    }
    let Some(keep) = Config(repo).keep(None)? else { return Ok(false) };
    let stored = Timelines::new(repo).timeline()?;
    let turns = stored.turn_numbers()?;
    if turns.len() <= NEWEST {
        return Ok(false);
    }
    repo.mark_collected()?;
    let oldest = stored.known_turn(turns[0])?;
    let ended = oldest.ended_at.as_deref().and_then(seconds_of);
    Ok(ended.is_some_and(|ended| ended <= seconds().saturating_sub_unsigned(keep)))
}

fn start(repo: &Repo) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("-C").arg(repo.top()).args(["gc", "--auto"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Not in the terminal's way: ctrl-c is for what the user started.
    command.process_group(0).spawn()?;
    Ok(())
}

/// How often it runs by itself.
const DAY: Duration = Duration::from_secs(86_400);

/// What goes.
struct Goes {
    turns: Expiry,
    rescues: BTreeSet<u64>,
}

fn old_rescues(repo: &Repo, stored: &Stored, limit: Option<i64>) -> Result<BTreeSet<u64>> {
    let rescues = stored.rescue_numbers()?;
    let first_young = limit.map_or(Ok(0), |limit| Timelines::new(repo).first_rescue_since(limit))?;
    Ok(rescues.into_iter().rev().skip(NEWEST).filter(|rescue| *rescue < first_young).collect())
}

fn released(repo: &Repo, stored: &Stored, turns: &BTreeSet<u64>, goes: &Goes) -> Result<u64> {
    let (mut go, mut stay) = (Vec::new(), Vec::new());
    for turn in turns {
        let list = if goes.turns.expired.contains(turn) { &mut go } else { &mut stay };
        list.extend(stored.turn_tree(*turn)?);
    }
    for rescue in stored.rescue_numbers()? {
        let list = if goes.rescues.contains(&rescue) { &mut go } else { &mut stay };
        list.extend(stored.rescue_tree(rescue)?);
    }
    Timelines::new(repo).released(&go, &stay)
}

fn record(repo: &Repo, stored: &Stored, turns: &BTreeMap<u64, Turn>, goes: Goes) -> Result<()> {
    let Goes { turns: Expiry { expired, changed }, rescues } = goes;
    if expired.is_empty() && rescues.is_empty() {
        return Ok(());
    }
    let mut needed: BTreeSet<ObjectId> = BTreeSet::new();
    let kept = || turns.values().filter(|turn| !expired.contains(&turn.turn));
    for turn in kept() {
        needed.extend(stored.needed_commits(turn)?);
    }
    for number in stored.rescue_numbers()?.into_iter().filter(|number| !rescues.contains(number)) {
        needed.extend(stored.rescued_commits(number)?);
    }
    for named in stored.state.named.values() {
        needed.extend(stored.named_commits(named.number)?);
    }
    // An operation from before every turn that stays leads back to nothing that can be undone.
    if let Some(oldest) = kept().filter_map(|turn| seconds_of(&turn.began_at)).min() {
        Timelines::new(repo).expire_operations(oldest)?;
    }
    let mut update = stored.update();
    update.state.pins.retain(|pin| needed.contains(&pin.0));
    for turn in &expired {
        update.remove_turn(*turn);
    }
    for rescue in &rescues {
        update.remove_rescue(*rescue);
    }
    for turn in &changed {
        update.put_turn(turn)?;
    }
    let message = format!("gc: {} turns, {} rescue checkpoints", expired.len(), rescues.len());
    Apply::new(repo).apply(
        &Plan::empty(Op::Gc, Refs::new(repo).head()?),
        &update.into_record(message, Vec::new())?,
        None,
    )
}

/// What went, and what stays.
#[derive(Clone, Debug)]
pub struct Collected {
    /// The turns that went, or would.
    pub expired: Vec<u64>,
    /// How many turns stay.
    pub kept: usize,
    /// How many rescue checkpoints went.
    pub rescues: usize,
    /// The bytes freed of what was moved aside.
    pub freed: u64,
    /// The bytes that what is moved aside still takes.
    pub aside: u64,
    /// The bytes of objects that nothing of oxundo's holds any more: git frees them.
    pub released: u64,
    /// Whether nothing was done.
    pub dry_run: bool,
    own: bool,
}

impl Answer for Collected {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(json!({
            "dry_run": self.dry_run,
            "expired": self.expired,
            "kept": self.kept,
            "rescues": self.rescues,
            "freed_bytes": self.freed,
            "aside_bytes": self.aside,
            "released_bytes": self.released,
        }))
    }

    fn text(&self) -> String {
        let count = |n: usize| if n == 1 { "1 turn".to_owned() } else { format!("{n} turns") };
        let word = if self.dry_run { "Would expire" } else { "Expired" };
        let mut text = format!("{word} {}, {} kept\n", count(self.expired.len()), self.kept);
        if self.freed > 0 || self.aside > 0 {
            let word = if self.dry_run { "to be freed" } else { "freed" };
            text.push_str(&format!("moved aside: {} {word}, {} kept\n", size(self.freed), size(self.aside)));
        }
        if self.released > 0 {
            let whose = if self.own { "" } else { ", which 'git gc' frees once nothing else needs them" };
            text.push_str(&format!("objects: {}{whose}\n", size(self.released)));
        }
        text
    }
}
