//! `oxundo turn`: the ends of a turn, told by a script or an editor.

use crate::agents::spawn;
use crate::git::repo::Repo;
use crate::model::bytes::sanitized;
use crate::model::session::{SessionStep, Signal};
use crate::model::turn::{Participant, Turn};
use crate::ops::turn::session::{Handled, SignalCall, handle_signal};
use crate::program::args::{TurnArgs, TurnEnd};
use crate::program::cmd::gc::start_if_due;
use crate::program::ui::{Answer, Ui};
use anyhow::Result;
use serde_json::json;
use std::time::Duration;

/// The default agent name.
const NOBODY: &str = "script";

/// How long to wait for another oxundo.
const PATIENCE: Duration = Duration::from_secs(5);

/// Begins or ends a turn.
pub fn run(repo: &Repo, ui: &Ui, args: &TurnArgs) -> Result<Told> {
    let part = Participant {
        agent: args.agent.clone().unwrap_or_else(|| NOBODY.to_owned()),
        session: args.session.clone(),
        prompt: args.turn.clone(),
        ..Participant::default()
    };
    let signal = match args.end {
        TurnEnd::Begin => Signal::Begin,
        TurnEnd::End => Signal::End { interrupted: false },
        TurnEnd::Abort => Signal::End { interrupted: true },
    };
    let inside = spawn::is_inside(repo);
    let message = args.message.clone();
    let call = SignalCall {
        signal,
        part,
        message,
        prompt: None,
        tool: None,
        inside,
        has_process: false,
        patience: PATIENCE,
        partial: false,
    };
    let heard = ui.heard();
    let Handled { step, closed, view } = handle_signal(repo, &heard, &call)?;
    if closed.is_some() {
        start_if_due(&view);
    }
    Ok(Told { step, closed, open: view.timeline.state.open, end: args.end })
}

/// A turn that does not begin, since nothing is to be recorded.
pub fn not_begun(ui: &mut Ui) -> Told {
    super::tell_of_no_record(ui);
    Told { step: SessionStep::Nothing, closed: None, open: None, end: TurnEnd::Begin }
}

/// What came of it.
pub struct Told {
    step: SessionStep,
    closed: Option<Turn>,
    open: Option<u64>,
    end: TurnEnd,
}

impl Answer for Told {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let op = match self.end {
            TurnEnd::Begin => "begin",
            TurnEnd::End => "end",
            TurnEnd::Abort => "abort",
        };
        let closed = self.closed.as_ref().map(|turn| turn.turn);
        let changed = self.step != SessionStep::Nothing;
        Ok(json!({"op": op, "changed": changed, "open_turn": self.open, "closed_turn": closed}))
    }

    fn text(&self) -> String {
        let Self { step, open, closed, .. } = self;
        let mut text = match closed {
            Some(turn) => closed_line(turn),
            None => String::new(),
        };
        if self.end == TurnEnd::Begin && open.is_none() {
            return text;
        }
        let open = open.unwrap_or_default();
        text.push_str(&match step {
            SessionStep::Open | SessionStep::Claim | SessionStep::Renew => format!("Began turn {open}\n"),
            SessionStep::Join => format!("Turn {open} is shared with another session\n"),
            SessionStep::GoOn | SessionStep::Record => format!("Turn {open} goes on\n"),
            SessionStep::Leave => format!("Turn {open} goes on in another session\n"),
            SessionStep::Drop | SessionStep::Rest => "What was changed since is the user's: no turn\n".to_owned(),
            SessionStep::Close { .. } | SessionStep::Late if closed.is_none() => {
                "Nothing was changed: no turn\n".to_owned()
            }
            SessionStep::Nothing if self.end == TurnEnd::Begin => format!("Turn {open} has begun already\n"),
            SessionStep::Nothing if self.open.is_some() => {
                format!("Turn {open} goes on: it is another session's, or of another --turn\n")
            }
            SessionStep::Nothing => "No turn is open\n".to_owned(),
            SessionStep::Close { .. } | SessionStep::Late => String::new(),
        });
        text
    }
}

fn closed_line(turn: &Turn) -> String {
    let word = if turn.interrupted { "Closed interrupted" } else { "Ended" };
    let files = if turn.totals.files == 1 { "1 file".to_owned() } else { format!("{} files", turn.totals.files) };
    format!("{word} turn {} ({}): {files}\n", turn.turn, sanitized(&turn.label()))
}
