//! What belongs to a turn outside the worktree: the agent's conversation, which its own commands take back, and what
//! the commands of `oxundo.onUndo` and `oxundo.onRedo` take care of.

use crate::agents::adapters::adapter;
use crate::model::bytes::sanitized;
use crate::model::plan::Op;
use crate::model::turn::{Participant, Turn};
use crate::ops::outcome::{Outcome, versioned};
use crate::ops::view::View;
use serde_json::{Value, json};

/// The conversations of some turns, as JSON.
pub fn described(turns: &[Turn]) -> Vec<Value> {
    let parts = turns.iter().flat_map(|turn| turn.origin.parts.iter().map(move |part| (turn.turn, part)));
    parts
        .map(|(turn, part)| {
            json!({
                "turn": turn,
                "agent": part.agent,
                "session": part.session,
                "prompt": part.prompt,
                "transcript": part.transcript,
                "from": part.from,
                "to": part.to,
                "resume": resume(part),
            })
        })
        .collect()
}

/// How to take the agents back to where the worktree is now, or at least how to reach them.
pub fn hints(turns: &[Turn]) -> Vec<String> {
    let mut hints = Vec::new();
    for part in turns.iter().flat_map(|turn| &turn.origin.parts) {
        let (Some(command), Some(adapter)) = (resume(part), adapter(&part.agent)) else { continue };
        let how = match adapter.rewind {
            Some(rewind) => format!("'{command}', then '{rewind}' takes the conversation back"),
            None => format!("'{command}' takes the conversation up again, and takes nothing back"),
        };
        let hint = format!("{} still remembers it: {how}", adapter.title);
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    hints
}

fn resume(part: &Participant) -> Option<String> {
    adapter(&part.agent)?.resume_command(part.session.as_deref()?)
}

/// Gives what undo or redo did to the user's command, if one is configured.
pub fn hand_over(view: &View<'_>, op: Op, done: &Outcome) {
    let (key, command) = match op {
        Op::Redo => ("onRedo", view.config().on_redo()),
        _ => ("onUndo", view.config().on_undo()),
    };
    let Some(command) = command.filter(|_| !done.dry_run) else { return };
    if let Err(error) = view.repo.run_user_command(&command, versioned(done.json()).to_string().as_bytes()) {
        view.warn(sanitized(&format!("oxundo.{key} failed: {error:#}")));
    }
}
