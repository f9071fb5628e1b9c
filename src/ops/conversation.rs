//! The agent's conversation, which belongs to a turn and is outside the worktree: its own commands take it back.

use crate::agents::adapters::adapter;
use crate::model::turn::{Participant, Turn};
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
