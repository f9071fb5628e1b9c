//! `oxundo log --follow`: what happens to the timeline, as it happens.

use crate::git::repo::Repo;
use crate::git::repo::clock::rfc3339_now;
use crate::git::repo::date_form::DateForm;
use crate::git::repo::heed::{Listener, goes_nowhere};
use crate::git::timeline::Timelines;
use crate::git::timeline::follow::{Follower, Happened};
use crate::git::timeline::oplog::Operation;
use crate::git::timeline::stored::Stored;
use crate::model::bytes::sanitized;
use crate::ops::list::State;
use crate::ops::outcome::versioned;
use crate::ops::turn::session::look;
use crate::program::args::LogArgs;
use crate::program::cmd::log::{dates_of_operations, recorded_line};
use crate::program::ui::Ui;
use anyhow::Result;
use console::style;
use serde_json::{Value, json};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// So long what cannot be read may be about to go, since the repository is being deleted.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints until nobody reads it any more, or the repository is gone.
pub fn run(repo: &Repo, ui: &Ui, args: &LogArgs) -> Result<()> {
    let (heard, held) = (ui.heard(), repo.hold());
    let view = look(repo, &heard, "log")?;
    let (timelines, dates) = (Timelines::new(repo), dates_of_operations(&view, args)?);
    let mut follower = Follower::from(view.timeline.commit);
    let (mut listener, out) = (Listener::new(), Ui::out());
    if goes_nowhere(out.as_fd()) {
        return Ok(());
    }
    if ui.json {
        Ui::line(&told("start", None, Some(&view.timeline)).to_string())?;
    }
    let tell = |happened: &Happened| {
        Ui::line(&if ui.json { object(&timelines, happened).to_string() } else { text(happened, &dates, &timelines) })
    };
    let (mut is_gone, mut fails_since) = (false, None);
    loop {
        listener.cover(&timelines.places());
        let news = follower.news(&timelines);
        let is_there = held.as_ref().is_none_or(|held| repo.is_at(held)) && repo.is_whole();
        match news {
            Ok(news) => {
                fails_since = None;
                for happened in news {
                    is_gone = matches!(happened, Happened::Gone);
                    tell(&happened)?;
                }
            }
            Err(error) if is_there && fails_since.get_or_insert_with(Instant::now).elapsed() > PATIENCE => {
                return Err(error);
            }
            Err(_) => {}
        }
        if !is_there {
            if !is_gone {
                tell(&Happened::Gone)?;
            }
            return Ok(());
        }
        if !listener.wait(out.as_fd())? {
            return Ok(());
        }
    }
}

/// What happened, as an object.
fn object(timelines: &Timelines<'_>, happened: &Happened) -> Value {
    match happened {
        Happened::Operation(operation) => {
            // It may be gone again by now.
            let stored = timelines.timeline_at(operation.commit).ok();
            told("operation", Some(operation), stored.as_ref())
        }
        Happened::Unknown => told("unknown", None, None),
        Happened::Gone => told("gone", None, None),
    }
}

/// An event: the operation, and the timeline after it.
fn told(event: &str, operation: Option<&Operation>, stored: Option<&Stored<'_>>) -> Value {
    let number = stored.map(|stored| stored.state.operation).filter(|number| *number > 0);
    let at = operation.map_or_else(rfc3339_now, |operation| operation.at.clone());
    let turn = operation.zip(stored).and_then(|(operation, stored)| turn(operation, stored));
    versioned(json!({
        "event": event,
        "at": at,
        "state": number.map(|number| format!("op:{number}")),
        "timeline": stored.and_then(|stored| stored.commit).map(|id| id.to_string()),
        "op": operation.and_then(|operation| operation.what.split([' ', ':']).next()),
        "message": operation.map(|operation| &operation.what),
        "open_turn": stored.and_then(|stored| stored.state.open),
        "turn": turn,
    }))
}

/// The turn that began or ended with it.
fn turn(operation: &Operation, stored: &Stored<'_>) -> Option<Value> {
    let ways = ["begin ", "end (interrupted) ", "end "];
    let number = ways.iter().find_map(|way| operation.what.strip_prefix(way))?;
    let number = number.split(' ').next()?.parse().ok()?;
    let turn = stored.find_turn(number).ok()??;
    let state = if stored.state.open == Some(number) { State::Open } else { State::Done };
    recorded_line(stored, (turn, state)).ok()?.json().ok()
}

fn text(happened: &Happened, dates: &DateForm, timelines: &Timelines<'_>) -> String {
    match happened {
        Happened::Operation(operation) => {
            let number = timelines.timeline_at(operation.commit).map_or(0, |stored| stored.state.operation);
            let (name, at) = (style(format!("op:{number}")).yellow(), style(dates.of(&operation.at)).dim());
            format!("{name}  {at}  {}", sanitized(&operation.what))
        }
        Happened::Unknown => "what happened in between is not known: the reflog was cut".to_owned(),
        Happened::Gone => "the timeline is gone".to_owned(),
    }
}
