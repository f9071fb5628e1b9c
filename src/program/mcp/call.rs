//! A call of a tool: what came is read as what it is to be, and given to the operation that a command gives it to.

use crate::config::{Access, Config};
use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::ops::diff;
use crate::ops::offer;
use crate::ops::offer::{Applied, Asked};
use crate::ops::outcome::versioned;
use crate::ops::request::Request;
use crate::ops::turn::session::{By, look};
use crate::program::args::{CheckpointArgs, DiffArgs, FindArgs, ShowArgs};
use crate::program::asked::{List, Redo, Undo, most, words};
use crate::program::cmd;
use crate::program::mcp::inert;
use crate::program::ui::{Answer, Ui};
use crate::warning::Warning;
use anyhow::Result;
use gix::bstr::ByteSlice;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;

/// So many bytes of a patch or a file are given.
const SHOWN: usize = 100_000;

/// What a client is told.
pub struct Told {
    /// The answer, or the refusal.
    pub json: Value,
    /// Whether it is a refusal.
    pub is_refused: bool,
}

#[derive(Deserialize)]
#[serde(tag = "tool", content = "with", rename_all = "snake_case")]
enum Call {
    List(List),
    Show(Show),
    Diff(Diff),
    Find(Find),
    Status(Nothing),
    Checkpoint(Checkpoint),
    PlanUndo(Undo),
    PlanRedo(Redo),
    PlanRestore(Restore),
    Apply(Apply),
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Show {
    turn: Option<String>,
    path: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Diff {
    from: Option<String>,
    to: Option<String>,
    paths: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Find {
    paths: Vec<String>,
    text: Option<String>,
    regex: Option<String>,
    n: Option<usize>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Nothing {}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Checkpoint {
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Restore {
    state: String,
    #[serde(default)]
    paths: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Apply {
    plan: String,
}

/// What a client may do in the repository that this directory is in. Where there is none there is nothing to change.
pub fn access(directory: &Path) -> Access {
    let access = Repo::open(directory).and_then(|repo| Config(&repo).mcp());
    access.unwrap_or(Access::Read)
}

/// Answers a call.
pub fn call(directory: &Path, tool: &str, arguments: Map<String, Value>, client: &str) -> Told {
    let warnings = RefCell::new(Vec::new());
    let heard = |warning: Warning| warnings.borrow_mut().push(Value::from(warning.message));
    let answered = read(tool, arguments).and_then(|call| answer(directory, call, &heard, client));
    let (mut json, is_refused) = match answered {
        Ok(json) => (versioned(json), false),
        Err(error) => (json!({"v": 1, "error": to_refusal(&error)}), true),
    };
    let warnings = warnings.into_inner();
    if !warnings.is_empty() {
        json["warnings"] = warnings.into();
    }
    Told { json: inert::value(json), is_refused }
}

fn read(tool: &str, arguments: Map<String, Value>) -> Result<Call> {
    let mut call = json!({"tool": tool});
    call["with"] = arguments.into();
    serde_json::from_value(call).map_err(|error| {
        Refusal::new(Code::Usage, format!("'{tool}' cannot be called with that: {error}"))
            .hint("see what its schema takes")
            .into()
    })
}

fn answer(directory: &Path, call: Call, heard: &dyn Fn(Warning), client: &str) -> Result<Value> {
    let repo = Repo::open(directory)?;
    check(Config(&repo).mcp()?, &call)?;
    let repo = &repo;
    let ui = &Ui { json: true, quiet: true, ..Ui::default() };
    Ok(match call {
        Call::List(list) => cmd::log::run(repo, ui, &list.args())?.json()?,
        Call::Show(show) => shown(repo, ui, &show)?,
        Call::Diff(diff) => differing(repo, ui, heard, &diff)?,
        Call::Find(find) => cmd::find::run(repo, ui, &find.args())?.json()?,
        Call::Status(Nothing {}) => cmd::status::run_for(repo, ui, By::Agent)?.json()?,
        Call::Checkpoint(Checkpoint { name }) => {
            let args = CheckpointArgs { name, message: None, delete: false, list: false };
            cmd::checkpoint::run(repo, ui, &args)?.json()?
        }
        Call::PlanUndo(asked) => offered(repo, heard, &asked.request(), client)?,
        Call::PlanRedo(asked) => offered(repo, heard, &asked.request(), client)?,
        Call::PlanRestore(Restore { state, paths }) => {
            offered(repo, heard, &Request::restore(state).paths(words(paths).as_deref()), client)?
        }
        Call::Apply(Apply { plan }) => match offer::apply(repo, heard, &plan, Asked::agent(client))? {
            Applied::Now(outcome) => {
                let mut told = outcome.json();
                (told["became"], told["what"]) = ("applied".into(), outcome.what.as_str().into());
                told
            }
            Applied::Before(done) => {
                let mut told = done.json;
                (told["became"], told["what"]) = ("applied_before".into(), done.what.into());
                told
            }
        },
    })
}

/// Refuses what `oxundo.mcp` does not allow.
fn check(access: Access, call: &Call) -> Result<()> {
    let changes = matches!(call, Call::Apply(_));
    let refusal = match access {
        Access::Full => return Ok(()),
        Access::Read if !changes => return Ok(()),
        Access::Read => Refusal::new(Code::Agent, "oxundo.mcp is 'read': an agent can plan, and the user applies")
            .hint("the user can type 'oxundo apply PLAN', or 'git config oxundo.mcp full' to let agents do it"),
        Access::Off => Refusal::new(Code::Agent, "oxundo.mcp is 'off' here")
            .hint("the user can type 'git config oxundo.mcp read' to let agents look"),
    };
    Err(refusal.into())
}

impl Find {
    fn args(self) -> FindArgs {
        FindArgs {
            text: self.text.map(OsString::from),
            pattern: self.regex,
            number: Some(most(self.n)),
            pathspecs: words(Some(self.paths)).unwrap_or_default(),
        }
    }
}

/// A plan, as it was asked for by a client.
fn offered(repo: &Repo, heard: &dyn Fn(Warning), request: &Request, client: &str) -> Result<Value> {
    let (id, outcome) = offer::offer(repo, heard, request, Asked::agent(client))?;
    let mut told = outcome.json();
    (told["plan"], told["what"]) = (id.into(), outcome.what.into());
    Ok(told)
}

/// A turn, or a file. What the user typed stays theirs: of a prompt there is the first line, as in the log.
fn shown(repo: &Repo, ui: &Ui, show: &Show) -> Result<Value> {
    let args = ShowArgs {
        turn: show.turn.as_deref().unwrap_or("@").into(),
        path: None,
        stat: false,
        prompt: false,
        format: None,
    };
    let args = match &show.path {
        Some(path) => {
            let state = show.turn.as_deref().unwrap_or("@");
            ShowArgs { turn: format!("{state}:{path}").into(), ..args }
        }
        None => args,
    };
    let Some(answer) = cmd::show::run(repo, ui, &args)? else { return Ok(json!({})) };
    let mut told = answer.json()?;
    if let Some(all) = told.as_object_mut() {
        all.shift_remove("prompt");
        all.shift_remove("record");
        if let Some(text) = all.get("text").and_then(Value::as_str) {
            let (text, is_all) = inert::beginning(text, SHOWN);
            let text = text.to_owned();
            all.insert("text".to_owned(), text.into());
            all.insert("more".to_owned(), (!is_all).into());
        }
    }
    Ok(told)
}

/// The files that differ, and how.
fn differing(repo: &Repo, ui: &Ui, heard: &dyn Fn(Warning), asked: &Diff) -> Result<Value> {
    let from = asked.from.as_deref().unwrap_or("@");
    let pathspecs: Vec<OsString> = asked.paths.iter().map(OsString::from).collect();
    let view = look(repo, heard, "diff")?;
    let states = diff::states(&view, from, asked.to.as_deref())?;
    let files = diff::changes(&view, &states, &pathspecs)?;
    let mut patch = String::new();
    let mut more = false;
    for (path, _) in &files {
        if patch.len() >= SHOWN {
            more = true;
            break;
        }
        patch.push_str(&diff::patch(&view, &states, path.as_bstr())?.to_str_lossy());
    }
    let (shown, is_all) = inert::beginning(&patch, SHOWN);
    let turns = [Some(from.to_owned()), asked.to.clone()].into_iter().flatten().collect();
    let mut told = cmd::diff::run(repo, ui, &DiffArgs { turns, stat: false, pathspecs })?
        .map_or_else(|| Ok(json!({})), |changes| changes.json())?;
    (told["patch"], told["more"]) = (shown.into(), (more || !is_all).into());
    Ok(told)
}
