//! Undo of one session's share of a turn in which several were at work: its steps are taken out, the last one first. What
//! nobody can tell apart is refused.

use crate::error::{Code, Refusal};
use crate::model::bytes::{exact, first_in_quotes, in_quotes, quoted, sanitized, unquoted};
use crate::model::checkpoint::Checkpoint;
use crate::model::merge::Edits;
use crate::model::plan::Op;
use crate::model::step::{Share, Step};
use crate::model::turn::{Participant, Turn};
use crate::ops::beyond::Beyond;
use crate::ops::conversation::Conversations;
use crate::ops::dropped;
use crate::ops::made::PlannedTurn;
use crate::ops::revert;
use crate::ops::revert::Which;
use crate::ops::steps::{TakenOut, inverse_of, take_out};
use crate::ops::switching;
use crate::ops::taken::would_change;
use crate::ops::turn::meanwhile;
use crate::ops::turn::unattended::told_of_taken;
use crate::ops::undo::conflict::beside_later;
use crate::ops::undo::range::nothing;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// So many files are named in a line.
const NAMED: usize = 8;

/// Plans to take a session's share out of the last turn in which it took part.
pub fn plan(view: &View<'_>, session: &str, edits: Option<Edits>) -> Result<PlannedTurn> {
    let turn = last_of(view, session)?;
    let is_its = |its: Option<&str>| its == Some(session);
    if turn.sessions().iter().all(|part| is_its(part.id)) {
        let both = format!("or run 'oxundo undo --only {}' to take out both", turn.turn);
        let changed = view.timeline.turn_files(turn.turn)?.into_iter();
        let changed = changed.map(|file| unquoted(&file.path).unwrap_or_else(|| file.path.into()));
        meanwhile::check_apart(&turn, changed, &both)?;
        let planned = revert::plan(view, &Which::Only(turn.turn.to_string()), &[], edits)?;
        return naming_claims(view, &turn, &view.timeline.steps(turn.turn)?, planned);
    }
    let steps = view.timeline.steps(turn.turn)?;
    let capture = view.present()?;
    check_known(view, &turn, (session, &steps), &capture.checkpoint)?;
    let mut deltas = Vec::new();
    for step in steps.iter().rev().filter(|step| is_its(step.session.as_deref())) {
        deltas.push((step.step, inverse_of(view, &turn, step.step, &[])?));
    }
    if deltas.is_empty() {
        return Err(nothing(Op::Undo, &format!("session '{session}' changed nothing in turn {}", turn.turn)).into());
    }
    let words = TakenOut {
        message: format!("take out session {session} of turn {}", turn.turn),
        object: format!("what session '{}' did in turn {}", sanitized(session), turn.turn),
        changed: "what the session changed",
    };
    let its: Vec<u64> = deltas.iter().map(|(step, _)| *step).collect();
    let beyond = Beyond::of(view, &turn, &its, &[])?;
    let planned = take_out(view, &turn, capture, (deltas, beyond), edits, words);
    let planned = planned.map_err(|error| beside(view, error, (&turn, &steps), session))?;
    let conversations = Conversations::told(std::slice::from_ref(&turn)).of_session(view, session)?;
    let its: Vec<Step> = steps.into_iter().filter(|step| is_its(step.session.as_deref())).collect();
    let told = told_of_taken(view, &turn, &planned.plan);
    let warnings = planned.warnings.into_iter().chain(told).collect();
    naming_claims(view, &turn, &its, PlannedTurn { conversations, warnings, ..planned })
}

/// Names the files that are taken out, and that changed while a shell's call was in flight: it tells of none, and somebody else may
/// have saved in that time.
fn naming_claims(view: &View<'_>, turn: &Turn, steps: &[Step], mut planned: PlannedTurn) -> Result<PlannedTurn> {
    let mut claimed = BTreeSet::new();
    for step in steps.iter().filter(|step| step.share == Share::Claimed && !step.is_background()) {
        claimed.extend(view.timeline.step_files(turn.turn, step.step)?.into_iter().map(|file| file.path));
    }
    let changed = planned.plan.files.iter().map(|file| &file.path);
    let paths: Vec<_> = changed.filter(|path| claimed.contains(&quoted(path.as_bstr()))).collect();
    if !paths.is_empty() {
        let what = "changed during a shell's call: what you saved there meanwhile goes with it";
        planned.warnings.push(format!("{} {what}", first_in_quotes(&paths, NAMED)));
    }
    Ok(planned)
}

/// Names the session that wrote beside what this one did, where that is what is in the way: it is no change of the user's, which
/// they could put away.
fn beside(view: &View<'_>, error: anyhow::Error, (turn, steps): (&Turn, &[Step]), session: &str) -> anyhow::Error {
    let refusal = match error.downcast::<Refusal>() {
        Ok(refusal) => refusal,
        Err(error) => return error,
    };
    let others = steps.iter().rev().filter(|step| step.session.as_deref().is_some_and(|other| other != session));
    let found = others.into_iter().find_map(|step| {
        let files = view.timeline.step_files(turn.turn, step.step).ok()?;
        let path = refusal.paths.iter().find(|path| files.iter().any(|file| file.path == quoted(path.as_bstr())))?;
        Some((path.clone(), step.session.clone()?))
    });
    let Some((path, other)) = found.filter(|_| refusal.code == Code::Conflict) else {
        return beside_later_turns(view, refusal, turn).unwrap_or_else(|error| error);
    };
    let message = format!("{} has what session '{}' wrote beside it", in_quotes(path.as_bstr()), sanitized(&other));
    Refusal::new(Code::Conflict, message)
        .hint(format!("run 'oxundo undo --only {}' to take out what all sessions did in the turn", turn.turn))
        .paths(refusal.paths)
        .into()
}

/// The same where it is what the user did, or a later turn. Nothing is overwritten: that stays.
fn beside_later_turns(view: &View<'_>, refusal: Refusal, turn: &Turn) -> Result<anyhow::Error> {
    if refusal.code != Code::Conflict {
        return Ok(refusal.into());
    }
    Ok(beside_later(view, refusal, &view.present()?.checkpoint, std::slice::from_ref(turn)))
}

/// The last turn done in which a session took part.
fn last_of(view: &View<'_>, session: &str) -> Result<Turn> {
    let has_it = |turn: &Turn| turn.sessions().iter().any(|part| part.id == Some(session));
    let (mut at, mut beside) = (view.top()?, None);
    while let Some(number) = at {
        let turn = view.timeline.require_turn(number)?;
        at = turn.previous;
        if has_it(&turn) && has_changed_any(view, &turn, session)? {
            return Ok(turn);
        }
        beside = beside.or(Some(turn).filter(has_it));
    }
    if let Some(turn) = beside {
        return Ok(turn);
    }
    // The last one to be redone comes last.
    for undone in view.place()?.undone.iter().rev() {
        if has_it(&view.timeline.require_turn(*undone)?) {
            let refusal = nothing(Op::Undo, &format!("what session '{}' did is undone already", sanitized(session)));
            return Err(refusal.hint(format!("run 'oxundo redo --to {undone}' to bring it back")).into());
        }
    }
    Err(not_done(view, session)?.into())
}

/// Whether a session may have changed anything in a turn in which it had a part: others may have been at work there alone.
fn has_changed_any(view: &View<'_>, turn: &Turn, session: &str) -> Result<bool> {
    if turn.sessions().iter().all(|part| part.id == Some(session)) {
        return Ok(true);
    }
    let is_its =
        |step: &Step| step.session.as_deref() == Some(session) || step.others.iter().any(|other| other == session);
    Ok(view.timeline.steps(turn.turn)?.iter().filter(|step| !step.is_users()).any(is_its))
}

/// The refusal where no turn of a session is done or undone on HEAD's line.
fn not_done(view: &View<'_>, session: &str) -> Result<Refusal> {
    let session_shown = sanitized(session);
    let all = view.timeline.turns()?;
    let Some(turn) = all.values().rev().find(|turn| turn.sessions().iter().any(|part| part.id == Some(session))) else {
        let refusal = Refusal::new(Code::NotFound, format!("session '{session_shown}' has no turn here"));
        return Ok(refusal.hint("run 'oxundo log --all --json' to see the sessions of the turns"));
    };
    let number = turn.turn;
    dropped::check(view, number)?;
    let refusal =
        nothing(Op::Undo, &format!("turn {number}, the last one of session '{session_shown}', is not done here"));
    Ok(match switching::to_turn(view, turn)? {
        Some(switch) => refusal.hint(format!("run '{switch}' to go to where it is done, then the same command again")),
        None => refusal.hint(format!("run 'oxundo redo --to {number}' to go to it")),
    })
}

/// Refuses where it is not known of each change whose it is, but for those that are taken out already.
fn check_known(view: &View<'_>, turn: &Turn, (session, steps): (&str, &[Step]), now: &Checkpoint) -> Result<()> {
    // A `run` whose agent tells of no call may write at any time.
    let is_beside_run = turn.own_part().is_none() && !turn.origin.by_hooks;
    let is_in = |step: &&Step| {
        let is_its = step.session.as_deref() == Some(session) || step.others.iter().any(|other| other == session);
        is_its && (step.share == Share::Shared || is_beside_run && step.share == Share::Claimed)
    };
    for step in steps.iter().filter(|step| !step.is_users()).filter(is_in) {
        let changes = inverse_of(view, turn, step.step, &[])?.files;
        let mut is_there = changes.is_empty();
        for (path, change) in &changes {
            is_there |= would_change(view, path, change, now)? != Some(false);
        }
        if !is_there {
            continue;
        }
        let paths: Vec<BString> = changes.into_keys().collect();
        let whose = step.others.iter().chain(&step.session).map(|id| format!("'{}'", sanitized(id)));
        let whose = whose.collect::<Vec<_>>().join(" and ");
        let path = paths.first().map(|path| in_quotes(path.as_bstr())).unwrap_or_default();
        let message = format!("{path} changed while {whose} may have been at work: nobody can tell whose it is");
        return Err(unknown(message, paths, &format!("{}.{}", turn.turn, step.step)));
    }
    // What no call tells of is that agent's, or the user's, but where this one has something in the background.
    let has_background = |part: &Participant| part.session.as_deref() == Some(session) && part.listed.is_some();
    let is_others = turn.users_end && !turn.origin.parts.iter().any(has_background) || is_beside_run;
    let is_unknown = |path: &BString| !is_others || turn.unended.contains_key(&exact::encode(path));
    let paths: Vec<BString> = meanwhile::changed_at_end(view, turn)?.into_iter().filter(is_unknown).collect();
    match paths.first() {
        Some(path) => {
            let path = in_quotes(path.as_bstr());
            let message = format!("{path} changed in turn {}, and no call tells whose it is", turn.turn);
            Err(unknown(message, paths, &turn.turn.to_string()))
        }
        None => Ok(()),
    }
}

fn unknown(message: String, paths: Vec<BString>, whole: &str) -> anyhow::Error {
    let mut refusal = Refusal::new(Code::Conflict, message).hint(format!(
        "run 'oxundo log --steps' to see what each call changed, 'oxundo undo --only {whole}' to take it out, whose it may be"
    ));
    refusal.paths = paths;
    refusal.into()
}
