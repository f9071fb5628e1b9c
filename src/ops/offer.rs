//! Plans that are made now and carried out later: as they were shown, once, or not at all.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::repo::clock::rfc3339_now;
use crate::git::repo::scratch::{checksum, verify, write_record};
use crate::git::timeline::Timelines;
use crate::model::bytes::{exact as lossless, sanitized};
use crate::model::plan::Op;
use crate::ops::outcome::Outcome;
use crate::ops::planned::Planned;
use crate::ops::reach;
use crate::ops::request::Request;
use crate::ops::side_effects;
use crate::ops::side_effects::Foreseen;
use crate::ops::turn::session::{By, Command, look_ahead, settled_for};
use crate::ops::undo::range::is_done;
use crate::ops::view::View;
use crate::warning::Warn;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// So many plans are remembered.
const REMEMBERED: usize = 50;

/// Where they are, in the scratch directory.
const PLANS: &str = "plans";

/// So much of a plan's id is in the log of operations.
const NAMED: usize = 12;

/// A plan that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Offered {
    v: u32,
    /// Its id.
    pub id: String,
    /// What was asked for.
    pub request: Request,
    /// From where, below the top of the worktree: its paths are seen from there.
    #[serde(default)]
    from: String,
    /// The agent that asked for it, where it was one.
    #[serde(default)]
    pub by: Option<String>,
    /// When.
    #[serde(default)]
    pub at: Option<String>,
    /// What would be done, in words and as JSON.
    #[serde(default)]
    pub told: Option<Done>,
    /// What was answered when it was carried out.
    pub done: Option<Done>,
}

/// What was answered when a plan was carried out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    /// In words.
    pub what: String,
    /// As JSON.
    pub json: serde_json::Value,
}

impl Done {
    fn of(outcome: &Outcome) -> Self {
        Self { what: outcome.what.clone(), json: outcome.json() }
    }
}

/// What became of a plan.
pub enum Applied {
    /// It was carried out.
    Now(Box<Outcome>),
    /// It had been before.
    Before(Done),
}

/// Who asks, and in which words.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Who asks.
    pub by: By,
    /// The agent's name, where it is one.
    pub agent: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// The user, on the command line.
    pub const TYPED: Self = Self { by: By::Typed, agent: None };
    /// A front end.
    pub const FRONT_END: Self = Self { by: By::FrontEnd, agent: None };

    /// An editor, between which and its agent oxundo stands.
    pub const EDITOR: Self = Self { by: By::Editor, agent: None };

    /// An agent of this name.
    pub fn agent(name: &'a str) -> Self {
        Self { by: By::Agent, agent: Some(name) }
    }

    fn to(self, request: &Request) -> Command {
        Command { op: request.op(), by: self.by }
    }
}

impl Foreseen for Result<Planned, Done> {
    fn foreseen(&self) -> Option<Outcome> {
        self.as_ref().ok().map(Planned::preview)
    }

    fn digest(&self, view: &View<'_>) -> Result<String> {
        self.as_ref().map_or_else(|done| Ok(done.what.clone()), |planned| planned.digest(view))
    }
}

fn plan(view: &View<'_>, request: &Request, asked: Asked<'_>) -> Result<Planned> {
    // Front ends and agents have conversations of their own.
    let forks = asked.by == By::Typed && (request.conversation || view.config().forks_conversations()?);
    let view = &view.forking(forks);
    let planned = request.plan(view)?;
    if asked.by == By::Agent {
        reach::check(view, request.op(), &planned.preview().turns)?;
    }
    Ok(planned)
}

/// Plans, changes nothing, and remembers it; gives the plan's id.
pub fn offer(repo: &Repo, heard: Warn<'_>, request: &Request, asked: Asked<'_>) -> Result<(String, Outcome)> {
    look_ahead(repo, heard, asked.to(request), |view| {
        let planned = plan(view, request, asked)?;
        planned.announce(view);
        let (id, outcome) = (id_of(&planned, view, asked.agent.is_some())?, planned.preview());
        let mut offers = remembered(repo);
        let known = offers.iter().position(|offered| offered.id == id).map(|at| offers.remove(at));
        // Of agents, it is the first one's.
        let by = known.and_then(|known| known.by).or_else(|| asked.agent.map(sanitized));
        let told = Some(Done::of(&outcome));
        let from = lossless::encode(repo.prefix().as_os_str().as_bytes());
        let (request, at) = (request.clone(), Some(rfc3339_now()));
        offers.push(Offered { v: 1, id: id.clone(), request, from, by, at, told, done: None });
        remember(repo, &offers)?;
        side_effects::name_who_is_asked(view, outcome.plan.op);
        Ok((id, outcome))
    })
}

/// A plan's id. What the user has planned stays the user's, and is another plan than the same one that an agent asks for.
fn id_of(planned: &Planned, view: &View<'_>, is_agents: bool) -> Result<String> {
    let digest = planned.digest(view)?;
    let agents = || format!("{:016x}", u64::from_be_bytes(checksum(format!("agent {digest}").as_bytes())));
    Ok(if is_agents { agents() } else { digest })
}

/// Carries a plan out, if it would still do the same, and has not been carried out yet. An agent carries out no other plan than
/// those that agents have asked for.
pub fn apply(repo: &Repo, heard: Warn<'_>, id: &str, asked: Asked<'_>) -> Result<Applied> {
    let offered = find(repo, id, asked)?;
    let is_checked = Cell::new(false);
    let prepare = |view: &View<'_>| {
        // Who has the lock now may have done it.
        if let Some(done) = find(repo, id, asked)?.done {
            return Ok(Err(as_it_stands(view, &offered.request, done)?));
        }
        let planned = plan(view, &offered.request, asked);
        let is_it = match &planned {
            // When an open turn was closed for it, the timeline is another one.
            Ok(planned) => is_checked.replace(true) || id_of(planned, view, offered.by.is_some())? == id,
            // It is not for being refused to agents that it is stale.
            Err(error) => error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == Code::Agent),
        };
        if is_it {
            return planned.map(Ok);
        }
        // Or it was killed before it could say what it had done.
        match by_record(repo, &offered)? {
            Some(done) => Ok(Err(as_it_stands(view, &offered.request, done)?)),
            None => Err(stale(id, &offered.request, planned.err())),
        }
    };
    settled_for(repo, heard, asked.to(&offered.request), prepare, |locked, planned, within| {
        let planned = match planned {
            Ok(planned) => planned,
            Err(done) => return Ok(Applied::Before(done)),
        };
        let by = offered.by.as_deref().map(|agent| format!(", as {agent} asked")).unwrap_or_default();
        locked.note(format!(" ({}{by})", mark(id)));
        let outcome = match within {
            Some(turn) => planned.carry_out_within(locked, turn),
            None => planned.carry_out(locked),
        }?;
        let mut offers = remembered(repo);
        let done = Done::of(&outcome);
        offers.iter_mut().filter(|offered| offered.id == id).for_each(|offered| offered.done = Some(done.clone()));
        remember(repo, &offers)?;
        Ok(Applied::Now(Box::new(outcome)))
    })
}

/// The directory in which a plan was made, where that is another one of this worktree: there it means the same paths.
pub fn made_in(repo: &Repo, id: &str) -> Option<PathBuf> {
    let offered = remembered(repo).into_iter().find(|offered| offered.id == id)?;
    let from = lossless::decode(&offered.from).map(|from| PathBuf::from(OsStr::from_bytes(&from)))?;
    Some(repo.top().join(&from)).filter(|there| from != repo.prefix() && there.is_dir())
}

/// What a plan is for. Its id is made of that too.
pub fn op_of(repo: &Repo, id: &str, asked: Asked<'_>) -> Result<Op> {
    Ok(find(repo, id, asked)?.request.op())
}

/// The plans that agents have asked for, the newest first.
pub fn asked_by_agents(repo: &Repo) -> Vec<Offered> {
    remembered(repo).into_iter().rev().filter(|offered| offered.by.is_some()).collect()
}

/// How a plan is called in the log of operations.
fn mark(id: &str) -> String {
    format!("plan {}", id.get(..NAMED).unwrap_or(id))
}

/// What was done by a command that was killed before it could remember it: the log of operations has it.
fn by_record(repo: &Repo, offered: &Offered) -> Result<Option<Done>> {
    let mark = mark(&offered.id);
    let operation = Timelines::new(repo).operations()?.into_iter().find(|operation| operation.what.contains(&mark));
    Ok(operation.zip(offered.told.as_ref()).map(|(operation, told)| {
        let mut json = told.json.clone();
        json["dry_run"] = false.into();
        Done { what: operation.what, json }
    }))
}

/// What was done, and whether it still is: the same plan twice is done once, also where it was taken back in between.
fn as_it_stands(view: &View<'_>, request: &Request, done: Done) -> Result<Done> {
    let numbers = |key: &str| -> Vec<u64> {
        done.json[key]
            .as_array()
            .map(|all| all.iter().filter_map(serde_json::Value::as_u64).collect())
            .unwrap_or_default()
    };
    let (undone, mut again) = (numbers("undone"), numbers("turns"));
    again.retain(|turn| !undone.contains(turn));
    let made = if request.is_walk() { again } else { done.json["turn"].as_u64().into_iter().collect() };
    let mut is_back = made.iter().any(|turn| view.place().is_ok_and(|place| place.undone.contains(turn)));
    for turn in undone.into_iter().filter(|_| request.is_walk()) {
        is_back |= is_done(view, turn)?;
    }
    let since = format!("; it was taken back since: '{}' makes another plan", request.line());
    Ok(Done { what: done.what.clone() + if is_back { &since } else { "" }, ..done })
}

fn stale(id: &str, request: &Request, error: Option<anyhow::Error>) -> anyhow::Error {
    let refusal = Refusal::new(Code::Stale, format!("plan '{}' would not do now what it was to do", sanitized(id)))
        .hint(format!("run '{}' to make another", request.line()));
    match error {
        Some(error) => refusal.hint(format!("{error:#}")).into(),
        None => refusal.into(),
    }
}

fn find(repo: &Repo, id: &str, asked: Asked<'_>) -> Result<Offered> {
    let is_it = |offered: &Offered| offered.id == id && (asked.by != By::Agent || offered.by.is_some());
    remembered(repo).into_iter().find(is_it).ok_or_else(|| {
        Refusal::new(Code::NotFound, format!("there is no plan '{}' here", sanitized(id)))
            .hint("run 'oxundo undo --plan' to make one")
            .into()
    })
}

/// The plans that were made last. What is damaged is as if it had not been made.
fn remembered(repo: &Repo) -> Vec<Offered> {
    let record = std::fs::read(repo.scratch_path(PLANS)).unwrap_or_default();
    verify(&record).and_then(|record| serde_json::from_slice(record).ok()).unwrap_or_default()
}

fn remember(repo: &Repo, offers: &[Offered]) -> Result<()> {
    let last = &offers[offers.len().saturating_sub(REMEMBERED)..];
    write_record(repo, PLANS, &serde_json::to_vec(last)?);
    Ok(())
}
