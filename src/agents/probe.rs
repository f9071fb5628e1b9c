//! A trial of an agent's hook: the payload that is none of the agent's, what oxundo answers to it, and what it means
//! when the answer is another.
//!
//! The payload names no session and an event that nobody knows, so that an oxundo that does not know the mark does
//! nothing either.

use crate::agents::fire::Fired;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The field that says that nothing has happened.
const MARK: &str = "oxundo_probe";

/// The field that an answer has.
const ANSWER: &str = "oxundo_answer";

/// An oxundo: its version, and where its program is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The version.
    pub version: String,
    /// The file, with every link followed.
    pub file: PathBuf,
}

/// What is wrong with a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is no oxundo on PATH.
    NotOnPath,
    /// Another oxundo answers.
    Another(Program),
    /// This program is on PATH under oxundo's name, and does not answer.
    Silent(PathBuf),
    /// The command fails: how, in words.
    Fails(String),
    /// It does not end.
    Slow,
    /// It may not be executed.
    NotExecutable,
}

/// This oxundo.
pub fn own() -> Result<Program> {
    let file = std::env::current_exe().context("find oxundo's own program")?;
    Ok(Program { version: env!("CARGO_PKG_VERSION").to_owned(), file: file.canonicalize().unwrap_or(file) })
}

/// What is fed to a hook.
pub fn payload() -> String {
    json!({MARK: 1, "hook_event_name": "OxundoProbe"}).to_string()
}

/// Whether a payload is such a one.
pub fn is_trial(payload: &Value) -> bool {
    payload.get(MARK).is_some()
}

/// What a hook prints then.
pub fn answer(own: &Program) -> String {
    let program = json!({"version": own.version, "program": own.file.to_string_lossy()});
    format!("{}\n", json!({ANSWER: program}))
}

/// What is wrong, if anything is. `found` is what a shell finds for oxundo's name.
pub fn judge(fired: &Fired, own: &Program, found: Option<&Path>) -> Option<Trouble> {
    match fired {
        Fired::Slow => Some(Trouble::Slow),
        Fired::NotExecutable => Some(Trouble::NotExecutable),
        Fired::NotFound => Some(Trouble::NotOnPath),
        Fired::Ended { out, code, err } => match (answered(out), code, found) {
            (Some(program), Some(0), _) if program == *own => None,
            // The program of 'git oxundo' is beside it, and the same otherwise.
            (Some(program), Some(0), _) if is_beside(&program, own) => None,
            (Some(program), Some(0), _) => Some(Trouble::Another(program)),
            (None, _, None) => Some(Trouble::NotOnPath),
            (None, Some(0), Some(found)) => Some(Trouble::Silent(found.to_owned())),
            (_, code, _) => Some(Trouble::Fails(failure(*code, err))),
        },
    }
}

fn is_beside(program: &Program, own: &Program) -> bool {
    program.version == own.version && program.file.parent() == own.file.parent()
}

fn failure(code: Option<i32>, err: &str) -> String {
    let how = code.map_or("it was killed".to_owned(), |code| format!("exit code {code}"));
    match err.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{how}: {line}"),
        None => how,
    }
}

/// The answer, among whatever else a hook says.
fn answered(out: &str) -> Option<Program> {
    let objects = out.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut answers = objects.filter_map(|object| object.get(ANSWER).cloned());
    let program = |answer: Value| {
        let text = |key: &str| answer.get(key)?.as_str().map(str::to_owned);
        Some(Program { version: text("version")?, file: PathBuf::from(text("program")?) })
    };
    answers.find_map(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::adapters::ADAPTERS;
    use crate::agents::payload::parse;

    fn here() -> Program {
        Program { version: "1.0.0".to_owned(), file: PathBuf::from("/bin/oxundo") }
    }

    fn ended(code: i32, out: &str, err: &str) -> Fired {
        Fired::Ended { code: Some(code), out: out.to_owned(), err: err.to_owned() }
    }

    #[test]
    fn an_oxundo_that_does_not_know_the_mark_hears_nothing() {
        let payload = serde_json::from_str(&payload()).expect("it is JSON");
        assert!(is_trial(&payload));
        for adapter in ADAPTERS.iter().filter(|adapter| !adapter.sessionless) {
            assert_eq!(parse(adapter, None, &payload, Some("s".to_owned())), None, "{}", adapter.name);
            for (event, _) in adapter.events {
                assert_eq!(parse(adapter, Some(event), &payload, None), None, "{} {event}", adapter.name);
            }
        }
    }

    #[test]
    fn what_an_answer_means() {
        let said = answer(&here());
        assert!(!is_trial(&json!({"hook_event_name": "Stop"})), "an agent's own event");
        let there = Some(Path::new("/bin/oxundo"));
        assert_eq!(judge(&ended(0, &format!("{said}{{\"cancel\": false}}\n"), ""), &here(), there), None);
        let twin = Program { file: PathBuf::from("/bin/git-oxundo"), ..here() };
        assert_eq!(judge(&ended(0, &said, ""), &twin, there), None);
        for other in [Program { version: "0.9.0".to_owned(), ..here() }, Program { file: "/o/oxundo".into(), ..here() }]
        {
            assert_eq!(judge(&ended(0, &said, ""), &other, there), Some(Trouble::Another(here())));
        }
        let silent = Trouble::Silent(PathBuf::from("/bin/oxundo"));
        assert_eq!(judge(&ended(0, &payload(), ""), &here(), there), Some(silent), "what echoes is no answer");
        assert_eq!(judge(&ended(0, "", ""), &here(), None), Some(Trouble::NotOnPath));
        assert_eq!(judge(&ended(127, "", "sh: oxundo: not found"), &here(), None), Some(Trouble::NotOnPath));
        let fails = |how: &str| Some(Trouble::Fails(how.to_owned()));
        assert_eq!(judge(&ended(2, "", "\nsh: bad quote\n"), &here(), there), fails("exit code 2: sh: bad quote"));
        assert_eq!(judge(&ended(2, &said, ""), &here(), there), fails("exit code 2"), "agents take 2 for a veto");
        assert_eq!(judge(&Fired::Slow, &here(), there), Some(Trouble::Slow));
        assert_eq!(judge(&Fired::NotExecutable, &here(), there), Some(Trouble::NotExecutable));
    }
}
