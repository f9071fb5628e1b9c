//! Reading an agent's payload, tolerantly, since formats change: a field is found by its name in any
//! spelling, a wrong type counts as absent, and unknown fields are ignored.

use crate::agents::adapters::{Adapter, BY_PROTOCOL, Background, Meaning, folded};
use crate::model::call::ToolUse;
use crate::model::session::Signal;
use crate::model::turn::{Participant, model_name};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A prompt longer than this is cut: the record of its turn is read with others.
const LONGEST: usize = 1 << 20;

/// Ids and paths longer than this are ignored.
const LONGEST_NAME: usize = 4 << 10;

/// So many levels down there are fields that count.
const LEVELS: usize = 4;

/// So many characters of a command line are kept.
const LONGEST_COMMAND: usize = 200;

const EVENT: &[&str] = &["hook_event_name", "hook_name", "event_name", "event", "type"];
const PROMPT: &[&str] = &["submitted_prompt", "prompt", "user_prompt", "user_prompt_submit.prompt", "message"];
const TRANSCRIPT: &[&str] = &["transcript_path", "session_file"];
const MODEL: &[&str] = &["model", "model.id", "model_id"];
const DIRECTORY: &[&str] = &["cwd", "working_dir", "directory", "workspace_roots.0"];
const TOOL: &[&str] = &[
    "tool_name",
    "tool",
    "pre_tool_use.tool_name",
    "pre_tool_use.tool",
    "post_tool_use.tool_name",
    "post_tool_use.tool",
];
const TOOL_CALL: &[&str] = &["tool_use_id", "tool_call_id", "call_id", "tool_call.id", "tool_result.id"];
const TOOL_PATH: &[&str] = &[
    "tool_input.file_path",
    "tool_input.path",
    "tool_input.notebook_path",
    "tool_input.absolute_path",
    "tool_args.path",
    "args.file_path",
    "args.path",
    "pre_tool_use.parameters.path",
    "post_tool_use.parameters.path",
];
const TOOL_COMMAND: &[&str] = &[
    "tool_input.command",
    "tool_args.command",
    "args.command",
    "pre_tool_use.parameters.command",
    "post_tool_use.parameters.command",
];
const OUTCOME: &[&str] = &["status", "reason", "stop_reason"];

/// Why a session is over whose agent goes on with another.
const OTHER_SESSION: &[&str] = &["clear", "resume"];

/// What a hook's payload says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookEvent {
    /// What it means.
    pub signal: Signal,
    /// Whose it is.
    pub part: Participant,
    /// The prompt.
    pub prompt: Option<String>,
    /// The call of a tool that it tells of.
    pub tool: Option<ToolUse>,
    /// Where the agent is at work.
    pub directory: Option<PathBuf>,
}

impl HookEvent {
    /// With the path that a call names as it is meant where it is told: an agent may be at work in another directory than its
    /// project's.
    #[must_use]
    pub fn told_at(mut self, place: &Path) -> Self {
        let there = self.directory.as_deref().filter(|there| there.is_absolute() && *there != place);
        if let (Some(there), Some(tool)) = (there, &mut self.tool)
            && let Some(path) = tool.path.as_ref().filter(|path| Path::new(path).is_relative())
            && let Ok(path) = there.join(path).into_os_string().into_string()
        {
            tool.path = Some(path);
        }
        self
    }
}

/// Reads a payload. Gives `None` for what does not mark the beginning or end of a turn: other events, a
/// sub-agent's, and those without a session.
pub fn parse(adapter: &Adapter, event: Option<&str>, payload: &Value, session: Option<String>) -> Option<HookEvent> {
    let name = event.map(str::to_owned).or_else(|| text(payload, EVENT)).unwrap_or_default();
    let meaning = adapter.meaning(&name)?;
    let session = text(payload, adapter.session).or(session).filter(|id| id.len() <= LONGEST_NAME);
    let is_call = matches!(meaning, Meaning::Call | Meaning::Called);
    // What a sub-agent calls is called for its agent's prompt, which its own ends do not end.
    let is_others = text(payload, adapter.sub_agent).is_some() && !is_call;
    if (session.is_none() && !adapter.sessionless) || is_others {
        return None;
    }
    let tool = text(payload, TOOL).map(|name| folded(&name));
    if tool.as_ref().is_some_and(|tool| adapter.harmless_tools.contains(&tool.as_str())) {
        return None;
    }
    let name = |keys: &[&str]| text(payload, keys).filter(|text| text.len() <= LONGEST_NAME);
    let signal = signal(adapter, meaning, payload);
    let agent: &[&str] = if adapter.name == BY_PROTOCOL.name { &["agent"] } else { &[] };
    Some(HookEvent {
        signal,
        part: Participant {
            agent: name(agent).unwrap_or_else(|| adapter.name.to_owned()),
            session,
            prompt: name(adapter.prompt_id),
            model: name(MODEL).and_then(|model| model_name(&model)),
            transcript: name(TRANSCRIPT),
            ..Participant::default()
        },
        prompt: text(payload, PROMPT).filter(|_| signal != Signal::GoOn && !is_call).map(|text| as_recorded(&text)),
        tool: is_call.then(|| ToolUse {
            tool: name(TOOL).unwrap_or_default(),
            path: name(TOOL_PATH),
            id: name(TOOL_CALL),
            command: text(payload, TOOL_COMMAND).filter(|_| name(TOOL_PATH).is_none()).map(|line| one_line(&line)),
            has_other_names: false,
            is_told_by_others: tool.is_some_and(|tool| adapter.delegates.contains(&tool.as_str())),
        }),
        directory: name(DIRECTORY).map(PathBuf::from),
    })
}

/// What a text in JSON says in its upper levels, which is where the fields are. Further down, and in the place of numbers beyond
/// what can be counted with, there is nothing.
pub fn in_part(text: &str) -> Option<Value> {
    serde_json::from_str::<&RawValue>(text).ok()?;
    Some(part(text, LEVELS))
}

fn part(text: &str, levels: usize) -> Value {
    match serde_json::from_str(text) {
        Ok(value) => return value,
        Err(_) if levels == 0 => return Value::Null,
        Err(_) => {}
    }
    let read = |raw: &RawValue| part(raw.get(), levels - 1);
    if let Ok(fields) = serde_json::from_str::<BTreeMap<String, &RawValue>>(text) {
        return Value::Object(fields.into_iter().map(|(key, raw)| (key, read(raw))).collect());
    }
    let list = serde_json::from_str::<Vec<&RawValue>>(text);
    list.map_or(Value::Null, |list| list.into_iter().map(read).collect())
}

/// The worktree that is about to be removed, where the payload says so.
pub fn removed_worktree(adapter: &Adapter, event: Option<&str>, payload: &Value) -> Option<PathBuf> {
    let (wanted, key) = adapter.removal?;
    let name = event.map(str::to_owned).or_else(|| text(payload, EVENT))?;
    let top = text(payload, &[key]).filter(|path| path.len() <= LONGEST_NAME).map(PathBuf::from);
    top.filter(|top| folded(&name) == folded(wanted) && top.is_absolute())
}

fn signal(adapter: &Adapter, meaning: Meaning, payload: &Value) -> Signal {
    match meaning {
        Meaning::Begin if is_notification(adapter, payload) => Signal::GoOn,
        Meaning::End | Meaning::Cut if adapter.background.is_some_and(|tasks| is_any_at_work(tasks, payload)) => {
            Signal::GoOn
        }
        Meaning::Begin if adapter.proof.is_some_and(|field| text(payload, &[field]).is_none()) => Signal::Work,
        Meaning::End if text(payload, OUTCOME).is_some_and(|outcome| is_cut(&outcome)) => {
            Signal::End { interrupted: true }
        }
        Meaning::End if field(payload, adapter.again) == Some(&Value::Bool(true)) => Signal::EndAgain,
        Meaning::Gone
            if text(payload, OUTCOME).is_some_and(|outcome| OTHER_SESSION.contains(&folded(&outcome).as_str())) =>
        {
            Signal::Left
        }
        meaning => meaning.signal(),
    }
}

/// Whether the agent tells itself something in the words of a prompt.
fn is_notification(adapter: &Adapter, payload: &Value) -> bool {
    let prompt = text(payload, PROMPT).unwrap_or_default();
    adapter.notifications.iter().any(|beginning| prompt.starts_with(beginning))
}

fn is_any_at_work(tasks: Background, payload: &Value) -> bool {
    let listed = field(payload, tasks.list).and_then(Value::as_array);
    let is_at_work = |task: &Value| text(task, &[tasks.status]).is_some_and(|status| status == tasks.at_work);
    listed.is_some_and(|tasks| tasks.iter().any(is_at_work))
}

fn is_cut(outcome: &str) -> bool {
    let outcome = folded(outcome);
    ["abort", "cancel", "interrupt", "error", "fail"].iter().any(|word| outcome.contains(word))
}

/// The first of these fields that is a text with something in it.
fn text(payload: &Value, keys: &[&str]) -> Option<String> {
    let found = keys.iter().filter_map(|key| field(payload, key)?.as_str());
    found.map(str::trim).find(|text| !text.is_empty()).map(str::to_owned)
}

/// Whether there is such a field.
pub fn has(payload: &Value, key: &str) -> bool {
    field(payload, key).is_some()
}

/// A field by its name, in any spelling; `a.b` is the field `b` of `a`, `a.0` the first of a list.
fn field<'a>(payload: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(payload, |value, key| match value {
        Value::Object(fields) => {
            let exact = fields.get(key);
            exact.or_else(|| fields.iter().find(|(name, _)| folded(name) == folded(key)).map(|(_, value)| value))
        }
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The beginning of a command line, which is there to be recognised.
fn one_line(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|c| !c.is_control()).take(LONGEST_COMMAND).collect()
}

/// A prompt as it is recorded: without control characters, and of limited length.
pub fn as_recorded(text: &str) -> String {
    let mut text = text.replace(|c: char| c.is_control() && c != '\n' && c != '\t', "");
    if text.len() > LONGEST {
        let mut end = LONGEST;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::adapters::adapter;
    use proptest::prelude::*;
    use serde_json::json;

    fn hear(agent: &str, payload: &Value) -> Option<HookEvent> {
        parse(adapter(agent).expect("it is in the table"), None, payload, None)
    }

    #[test]
    fn fields_are_known_in_every_spelling() {
        let snake = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt_id": "p", "prompt": "do it",
            "transcript_path": "/t", "model": {"id": "m"}, "cwd": "/repo"});
        let camel = json!({"hookEventName": "userPromptSubmit", "sessionId": "s", "promptId": "p", "prompt": "do it",
            "transcriptPath": "/t", "model": "m", "workspaceRoots": ["/repo"]});
        let heard = hear("claude", &snake).expect("it is a beginning");
        assert_eq!(heard.signal, Signal::Begin);
        assert_eq!(heard.prompt.as_deref(), Some("do it"));
        assert_eq!(heard.part.model.as_deref(), Some("m"));
        assert_eq!(hear("claude", &camel), Some(heard));
    }

    #[test]
    fn what_cannot_be_read_as_a_whole_is_read_in_part() {
        let deep = format!("{}7{}", "[".repeat(200), "]".repeat(200));
        let text =
            format!(r#"{{"a": 1e400, "b": "x", "c": {deep}, "d": {{"e": {{"f": ["y", {deep}]}}, "g": -1E+999}}}}"#);
        let wanted = json!({"a": null, "b": "x", "c": [[[null]]], "d": {"e": {"f": ["y", null]}, "g": null}});
        assert_eq!(in_part(&text), Some(wanted));
        for broken in ["", "{", "{\"a\": 1e400", "{\"a\": 1e400}}", "{\"a\": NaN}", "{\"a\": \"\\x\"}"] {
            assert_eq!(in_part(broken), None, "{broken}");
        }
    }

    #[test]
    fn sub_agents_and_sessions_without_an_id_are_not_heard() {
        let stop = json!({"hook_event_name": "Stop", "session_id": "s"});
        assert!(hear("claude", &stop).is_some());
        for (key, value) in [("agent_id", json!("a1")), ("parentSessionId", json!("p")), ("session_id", json!("  "))] {
            let mut other = stop.clone();
            other[key] = value;
            assert_eq!(hear("claude", &other), None, "{key}");
        }
        assert_eq!(hear("claude", &json!({"hook_event_name": "SubagentStop", "session_id": "s"})), None);
    }

    #[test]
    fn a_path_is_meant_from_where_the_agent_is_at_work() {
        for (directory, path, meant) in [
            ("/repo/d", "x", "/repo/d/x"),
            ("/repo/d", "../x", "/repo/d/../x"),
            ("/repo/d", "/repo/x", "/repo/x"),
            ("/repo", "d/x", "d/x"),
            ("d", "x", "x"),
        ] {
            let call = json!({"hook_event_name": "PreToolUse", "session_id": "s", "cwd": directory, "tool_name": "Edit",
                "tool_use_id": "1", "tool_input": {"file_path": path}});
            let heard = hear("claude", &call).expect("it is a call").told_at(Path::new("/repo"));
            assert_eq!(heard.tool.and_then(|tool| tool.path).as_deref(), Some(meant), "{directory}, {path}");
        }
    }

    #[test]
    fn a_removal_names_the_worktree() {
        let claude = adapter("claude").expect("it is in the table");
        let mut removal = json!({"hook_event_name": "WorktreeRemove", "session_id": "s", "worktree_path": "/w"});
        assert_eq!(removed_worktree(claude, None, &removal), Some(PathBuf::from("/w")));
        assert_eq!(hear("claude", &removal), None, "it is no end of a turn");
        assert_eq!(removed_worktree(adapter("codex").expect("it is in the table"), None, &removal), None);
        for other in [json!("w"), json!(7), Value::Null] {
            removal["worktree_path"] = other;
            assert_eq!(removed_worktree(claude, None, &removal), None, "{removal}");
        }
    }

    #[test]
    fn an_end_may_tell_that_it_was_cut_off() {
        for (status, interrupted) in [("completed", false), ("aborted", true), ("error", true), ("end_turn", false)] {
            let stop = json!({"hook_event_name": "stop", "conversation_id": "c", "status": status});
            assert_eq!(hear("cursor", &stop).map(|heard| heard.signal), Some(Signal::End { interrupted }), "{status}");
        }
    }

    #[test]
    fn a_session_that_is_cleared_leaves_its_agent_there() {
        let over = |reason: &str| json!({"hook_event_name": "SessionEnd", "session_id": "s", "reason": reason});
        for (reason, signal) in [("prompt_input_exit", Signal::Gone), ("other", Signal::Gone), ("clear", Signal::Left)]
        {
            assert_eq!(hear("claude", &over(reason)).map(|heard| heard.signal), Some(signal), "{reason}");
        }
    }

    #[test]
    fn a_prompt_that_may_be_a_continuation_is_work() {
        let mut begin = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "p"});
        assert_eq!(hear("qwen", &begin).map(|heard| heard.signal), Some(Signal::Work));
        begin["submitted_prompt"] = json!("p");
        assert_eq!(hear("qwen", &begin).map(|heard| heard.signal), Some(Signal::Begin));
    }

    #[test]
    fn a_tool_that_only_reads_is_no_beginning() {
        let mut tool = json!({"event": "PreToolUse", "session_id": "s", "tool_name": "view"});
        assert_eq!(hear("crush", &tool), None);
        tool["tool_name"] = json!("edit");
        assert_eq!(hear("crush", &tool).map(|heard| heard.signal), Some(Signal::Work));
    }

    #[test]
    fn a_prompt_has_no_control_characters() {
        let prompt = "add\u{0} a\tcache\r\n\u{1b}[31mplease";
        let heard = hear("claude", &json!({"event": "begin", "session_id": "s", "prompt": prompt})).expect("heard");
        assert_eq!(heard.prompt.as_deref(), Some("add a\tcache\n[31mplease"));
    }

    #[test]
    fn a_long_prompt_is_cut_at_a_character() {
        let prompt = "é".repeat(LONGEST);
        let heard = hear("claude", &json!({"event": "begin", "session_id": "s", "prompt": prompt})).expect("heard");
        let cut = heard.prompt.expect("it has a prompt");
        assert!(cut.len() <= LONGEST + 4 && cut.ends_with('…'));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            Just(json!("UserPromptSubmit")),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            let key = prop_oneof![".{0,8}", Just("session_id".to_owned()), Just("hookEventName".to_owned())];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..5).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_payload_makes_it_fail(payload in any_json(), event in proptest::option::of(".{0,12}")) {
            for adapter in crate::agents::adapters::ADAPTERS {
                let found = parse(adapter, event.as_deref(), &payload, None);
                prop_assert!(found.is_none_or(|heard| adapter.sessionless || heard.part.session.is_some()));
            }
        }
    }
}
