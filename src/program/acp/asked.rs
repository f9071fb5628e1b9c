//! Methods of oxundo's own: an editor's buttons. What they take is what `oxundo mcp` takes, what they give is what the commands
//! print with `--json`. It is the user who asks, by the editor.

use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::model::bytes::sanitized;
use crate::model::plan::Op;
use crate::ops::offer;
use crate::ops::offer::{Applied, Asked as By};
use crate::ops::outcome::{Outcome, versioned};
use crate::ops::request::Request;
use crate::ops::turn::session::{self, Command, settled_for};
use crate::program::acp::talk::Asked;
use crate::program::asked::{List, Redo, Undo};
use crate::program::cmd;
use crate::program::interrupt;
use crate::program::ui::Ui;
use crate::warning::Warning;
use agent_client_protocol_schema::v1::{Error, ErrorCode};
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::io::{Read, stdin};
use std::path::Path;

/// What the agent's answer to `initialize` says of them.
pub const CAPABILITY: &str = r#"{"methods":["_oxundo/list","_oxundo/plan","_oxundo/undo","_oxundo/redo"]}"#;

/// Their names.
const METHODS: [&str; 4] = ["list", "plan", "undo", "redo"];

/// What JSON-RPC leaves to servers: it was refused.
const REFUSED: i32 = -32000;

#[derive(Deserialize)]
#[serde(tag = "method", content = "with", rename_all = "snake_case")]
enum Call {
    List(List),
    Plan(Plan),
    Undo(Undo),
    Redo(Redo),
    ApplyUndo(Apply),
    ApplyRedo(Apply),
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Plan {
    Undo(Undo),
    Redo(Redo),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Apply {
    plan: String,
}

/// Answers a method: what it gives, or why not, as JSON. Its parameters are on standard input.
pub fn answer(directory: &Path, method: &str) -> Result<Value> {
    let mut params = Vec::new();
    stdin().read_to_end(&mut params).context("read what is asked for")?;
    let warnings = RefCell::new(Vec::new());
    let heard = |warning: Warning| warnings.borrow_mut().push(Value::from(warning.message));
    let mut told = match call(method, &params).and_then(|call| done(directory, call, &heard)) {
        Ok(told) => versioned(told),
        Err(error) => json!({"v": 1, "error": to_refusal(&error)}),
    };
    let warnings = warnings.into_inner();
    if !warnings.is_empty() {
        told["warnings"] = warnings.into();
    }
    Ok(told)
}

fn call(method: &str, params: &[u8]) -> Result<Call> {
    if !METHODS.contains(&method) {
        let refusal = Refusal::new(Code::Usage, format!("there is no method '_oxundo/{}'", sanitized(method)));
        return Err(refusal.hint("see 'oxundo help acp' for what there is").into());
    }
    asked_for(method, params).map_err(|error| {
        Refusal::new(Code::Usage, format!("'_oxundo/{method}' cannot be asked for like that: {error}"))
            .hint("see 'oxundo help acp' for what there is")
            .into()
    })
}

fn asked_for(method: &str, params: &[u8]) -> serde_json::Result<Call> {
    let mut with: Map<String, Value> = serde_json::from_slice(params)?;
    with.shift_remove("sessionId");
    with.shift_remove("_meta");
    let method = match method {
        "undo" if with.contains_key("plan") => "apply_undo",
        "redo" if with.contains_key("plan") => "apply_redo",
        method => method,
    };
    serde_json::from_value(json!({"method": method, "with": with}))
}

fn done(directory: &Path, call: Call, heard: &dyn Fn(Warning)) -> Result<Value> {
    let repo = &Repo::open(directory)?;
    let ui = &Ui { json: true, quiet: true, ..Ui::default() };
    Ok(match call {
        Call::List(list) => cmd::log::run(repo, ui, &list.args())?.json()?,
        Call::Plan(plan) => {
            let request = match plan {
                Plan::Undo(asked) => asked.request(),
                Plan::Redo(asked) => asked.request(),
            };
            let (id, outcome) = offer::offer(repo, heard, &request, By::EDITOR)?;
            let mut told = outcome.json();
            told["plan"] = id.into();
            told
        }
        Call::Undo(asked) => carried_out(repo, heard, &asked.request())?.json(),
        Call::Redo(asked) => carried_out(repo, heard, &asked.request())?.json(),
        Call::ApplyUndo(Apply { plan }) => applied(repo, heard, &plan, Op::Undo)?,
        Call::ApplyRedo(Apply { plan }) => applied(repo, heard, &plan, Op::Redo)?,
    })
}

/// Carries a plan out, if it is for what is asked.
fn applied(repo: &Repo, heard: &dyn Fn(Warning), plan: &str, op: Op) -> Result<Value> {
    let planned = offer::op_of(repo, plan, By::EDITOR)?;
    if planned != op {
        let message = format!("plan '{}' is for {}, and not for {}", sanitized(plan), planned.word(), op.word());
        let hint = format!("ask for '_oxundo/plan' with \"op\": \"{}\"", op.word());
        return Err(Refusal::new(Code::Usage, message).hint(hint).into());
    }
    interrupt::watch(repo)?;
    Ok(match offer::apply(repo, heard, plan, By::EDITOR)? {
        Applied::Now(outcome) => outcome.json(),
        Applied::Before(done) => done.json,
    })
}

/// What is said of a session that is not open.
pub fn no_session() -> Refusal {
    Refusal::new(Code::Usage, "no session with this 'sessionId' is open here")
        .hint("leave 'sessionId' out to ask for the directory in which 'oxundo acp' was started")
}

fn carried_out(repo: &Repo, heard: &dyn Fn(Warning), request: &Request) -> Result<Outcome> {
    interrupt::watch(repo)?;
    let command = Command { op: request.op(), by: session::By::Editor };
    settled_for(repo, heard, command, |view| request.plan(view), |locked, planned, _| planned.carry_out(locked))
}

/// The line that answers, where somebody waits for an answer.
pub fn as_answered(asked: &Asked, told: Result<Value, Refusal>) -> Option<Vec<u8>> {
    let id = asked.id.as_deref()?;
    let told = told.unwrap_or_else(|refusal| json!({"v": 1, "error": refusal}));
    let (key, value) = match told.get("error") {
        None => ("result", told),
        Some(error) => {
            let message = error["message"].as_str().unwrap_or("refused");
            let code = match error["code"].as_str() {
                _ if !METHODS.contains(&asked.method.as_str()) => ErrorCode::MethodNotFound,
                Some("usage") => ErrorCode::InvalidParams,
                _ => ErrorCode::Other(REFUSED),
            };
            ("error", json!(Error::new(code.into(), message).data(told.clone())))
        }
    };
    // The id is as it came.
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{key}\":{value}}}\n").into_bytes())
}
