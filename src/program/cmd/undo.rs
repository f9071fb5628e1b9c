//! `oxundo undo` and `oxundo redo`, and the forms of undo that take turns out by their inverse: `--only`, `--revert`
//! and `-- PATHSPEC`.

use crate::agents::setup::title;
use crate::agents::standing::silent;
use crate::config::Config;
use crate::error::{Code, Refusal, SilentHooks};
use crate::git::repo::Repo;
use crate::git::repo::clock::ago;
use crate::model::bytes::shell_word;
use crate::model::plan::Op;
use crate::model::step::{StepName, StepRange};
use crate::ops::outcome::Outcome;
use crate::ops::resolve::step_of;
use crate::ops::revert;
use crate::ops::revert::Which;
use crate::ops::side_effects;
use crate::ops::turn::session::{By, Command, look_ahead, settled_for};
use crate::ops::undo::plan;
use crate::ops::view::View;
use crate::ops::{sessions, steps};
use crate::program::args::{Branches, Distance, UndoArgs};
use crate::program::cmd::doctor::worktrees::missing_here;
use crate::program::cmd::request::{extent, undo_request};
use crate::program::cmd::{hunks, make};
use crate::program::interrupt;
use crate::program::ui::Ui;
use anyhow::{Error, Result};
use std::ffi::OsString;

/// Undoes turns, whichever way.
pub fn undo(repo: &Repo, ui: &Ui, args: &UndoArgs) -> Result<Outcome> {
    let done = undone(repo, ui, args)?;
    if args.conversation && done.conversations.iter().all(|one| one["session"].is_null()) {
        ui.warn("no agent's session is on record for what is undone: no conversation is forked");
    }
    Ok(done)
}

fn undone(repo: &Repo, ui: &Ui, args: &UndoArgs) -> Result<Outcome> {
    let forks = forks(repo, args)?;
    if args.patch {
        let done = hunks::run(repo, ui, undo_request(args), args.distance.dry_run);
        return done.map_err(|error| with_silent_hooks(repo, error));
    }
    if let Some(done) = by_steps(repo, ui, args, forks) {
        return done;
    }
    if args.revert || args.only.is_some() || !args.pathspecs.is_empty() {
        return revert(repo, ui, args, forks);
    }
    walk(repo, ui, Op::Undo, &args.distance, forks).map_err(|error| with_silent_hooks(repo, error))
}

/// Whether copies of agents' conversations are made.
fn forks(repo: &Repo, args: &UndoArgs) -> Result<bool> {
    Ok(Config(repo).forks_conversations()? || args.conversation)
}

/// Undoes by steps or by a session, where that is what the words mean.
fn by_steps(repo: &Repo, ui: &Ui, args: &UndoArgs, forks: bool) -> Option<Result<Outcome>> {
    let Distance { dry_run, edits, .. } = args.distance;
    if let Some(session) = &args.session {
        return Some(make(repo, ui, Op::Undo, dry_run, |view: &View<'_>| {
            sessions::plan(&view.forking(forks), session, edits)
        }));
    }
    if let Some(name) = args.only.as_deref().and_then(StepRange::parse) {
        let plan = |view: &View<'_>| steps::plan_only(&view.forking(forks), &name, &args.pathspecs, edits);
        return Some(make(repo, ui, Op::Undo, dry_run, plan));
    }
    let name = args.distance.to.as_deref().and_then(StepName::parse)?;
    if args.revert || !args.pathspecs.is_empty() {
        let refusal = Refusal::new(Code::Usage, format!("'--to {name}' goes back to a step as a whole"))
            .hint(way_without(&name.to_string(), &args.pathspecs));
        // Of a step that is not there, this is told first.
        return Some(make(repo, ui, Op::Undo, dry_run, |view: &View<'_>| {
            step_of(view, &name)?;
            Err(refusal.clone().into())
        }));
    }
    Some(make(repo, ui, Op::Undo, dry_run, |view: &View<'_>| steps::plan_to(&view.forking(forks), &name, edits)))
}

/// What leads to a step as `undo --to` cannot: with paths, or on top.
fn way_without(step: &str, pathspecs: &[OsString]) -> String {
    if pathspecs.is_empty() {
        return format!("run 'oxundo undo --to {step}' alone, or 'oxundo restore {step}' to have its files on top");
    }
    let paths: Vec<_> = pathspecs.iter().map(|path| shell_word(path.as_encoded_bytes())).collect();
    format!("run 'oxundo restore {step} -- {}' for some paths of it", paths.join(" "))
}

/// Where there is nothing to undo, it may be that no hook has told of what an agent did.
fn with_silent_hooks(repo: &Repo, error: Error) -> Error {
    let mut refusal = match error.downcast::<Refusal>() {
        Ok(refusal) if refusal.code == Code::Nothing => refusal,
        Ok(refusal) => return refusal.into(),
        Err(error) => return error,
    };
    refusal.hooks = silent(repo).into();
    // A team's file may be for agents that this user has not got: they are of interest where it is for no other.
    let (used, others): (Vec<_>, Vec<_>) =
        refusal.hooks.iter().partition(|hooks| hooks.installed || hooks.last_fired.is_some());
    let told = if used.is_empty() { others } else { used };
    refusal.hints.extend(told.into_iter().map(hint_of).collect::<Vec<_>>());
    refusal.hints.extend(missing_here(repo).into_iter().map(|setup| {
        let name = title(setup.agent);
        format!("{name}'s hooks are set up in another worktree, not in this one: run 'oxundo init {}'", setup.agent)
    }));
    refusal.into()
}

fn hint_of(hooks: &SilentHooks) -> String {
    let name = title(&hooks.agent);
    match &hooks.last_fired {
        // A team's file may be for agents that this user has not got.
        None if !hooks.installed => {
            format!("{name}'s hooks are set up here, but it is not installed (not found on PATH)")
        }
        None => format!(
            "{name}'s hooks are set up here since {}, and none has fired: 'oxundo doctor' tries them",
            hooks.set_up
        ),
        Some(fired) => format!("{name}'s hooks last fired {}", ago(fired)),
    }
}

/// Moves the timeline's cursor.
pub fn walk(repo: &Repo, ui: &Ui, op: Op, distance: &Distance, forks: bool) -> Result<Outcome> {
    let (heard, command) = (ui.heard(), Command { op, by: By::Typed });
    let plan = |view: &View<'_>| {
        let mut view = view.forking(forks);
        view.takes_all_branches = distance.branches == Some(Branches::All);
        plan(&view, op, &extent(distance), distance.edits)
    };
    if distance.dry_run {
        return look_ahead(repo, &heard, command, |view| {
            let planned = plan(view)?;
            planned.announce(view);
            side_effects::name_who_is_asked(view, op);
            Ok(planned.preview())
        });
    }
    interrupt::watch(repo)?;
    settled_for(repo, &heard, command, plan, |locked, planned, _| {
        planned.announce(locked);
        let done = planned.carry_out(locked)?;
        side_effects::tell(locked, op, &done);
        Ok(done)
    })
}

fn revert(repo: &Repo, ui: &Ui, args: &UndoArgs, forks: bool) -> Result<Outcome> {
    let which = match &args.only {
        Some(turn) => Which::Only(turn.clone()),
        None if args.revert => Which::Last(extent(&args.distance)),
        None => Which::PartsOf(extent(&args.distance)),
    };
    let plan = |view: &View<'_>| revert::plan(&view.forking(forks), &which, &args.pathspecs, args.distance.edits);
    make(repo, ui, Op::Undo, args.distance.dry_run, plan)
}
