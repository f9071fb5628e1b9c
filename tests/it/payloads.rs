//! What each agent's hooks send, a file an event in `payloads/<agent>/`, and what becomes of it
//! when a field is missing, of another type, spelled otherwise, or more than expected.

use crate::sandbox::{Output, Sandbox, check_all};
use oxundo::internals::Signal;
use oxundo::internals::{ADAPTERS, adapter};
use oxundo::internals::{HookEvent, parse_hook};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

const END: Signal = Signal::End { interrupted: false };
const CUT: Signal = Signal::End { interrupted: true };

/// What every payload means: the agent, the file, the event where the payload does not tell, and
/// the signal.
const MEANINGS: &[(&str, &str, Option<&str>, Option<Signal>)] = &[
    ("amp", "begin", Some("begin"), Some(Signal::Begin)),
    ("amp", "end", Some("end"), Some(END)),
    ("amp", "end-cancelled", Some("end"), Some(CUT)),
    ("claude", "PostToolUse", None, Some(Signal::Called)),
    ("claude", "PreToolUse", None, Some(Signal::Call)),
    ("claude", "PreToolUse-sub-agent", None, Some(Signal::Call)),
    ("claude", "SessionEnd", None, Some(Signal::Gone)),
    ("claude", "SessionStart", None, None),
    ("claude", "Stop", None, Some(END)),
    ("claude", "StopFailure", None, Some(CUT)),
    ("claude", "SubagentStop", None, None),
    ("claude", "UserPromptSubmit", None, Some(Signal::Begin)),
    ("claude", "background-1-UserPromptSubmit", None, Some(Signal::Begin)),
    ("claude", "background-2-Stop", None, Some(Signal::GoOn)),
    ("claude", "background-3-notification", None, Some(Signal::GoOn)),
    ("claude", "background-4-Stop", None, Some(END)),
    ("claude", "background-5-SessionEnd", None, Some(Signal::Gone)),
    ("cline", "PostToolUse", Some("PostToolUse"), Some(Signal::Called)),
    ("cline", "PreToolUse", Some("PreToolUse"), Some(Signal::Call)),
    ("cline", "TaskCancel", None, Some(CUT)),
    ("cline", "TaskComplete", None, Some(END)),
    ("cline", "TaskStart", None, Some(Signal::Work)),
    ("cline", "UserPromptSubmit", None, Some(Signal::Begin)),
    ("cline", "headless-1-TaskStart", Some("TaskStart"), Some(Signal::Work)),
    ("cline", "headless-2-sub-TaskStart", Some("TaskStart"), None),
    ("cline", "headless-3-sub-TaskComplete", Some("TaskComplete"), None),
    ("cline", "headless-4-TaskComplete", Some("TaskComplete"), Some(END)),
    ("cline", "interactive-1-TaskStart", Some("TaskStart"), Some(Signal::Work)),
    ("cline", "interactive-2-SessionShutdown", Some("SessionShutdown"), Some(Signal::Gone)),
    ("cline", "interactive-3-TaskStart", Some("TaskStart"), Some(Signal::Work)),
    ("cline", "interactive-4-TaskComplete", Some("TaskComplete"), Some(END)),
    ("codex", "Interrupt", None, Some(CUT)),
    ("codex", "PostToolUse", None, Some(Signal::Called)),
    ("codex", "PreToolUse", None, Some(Signal::Call)),
    ("codex", "SessionEnd", None, Some(Signal::Gone)),
    ("codex", "Stop", None, Some(END)),
    ("codex", "UserPromptSubmit", None, Some(Signal::Begin)),
    ("codex", "agent-turn-complete", None, Some(END)),
    ("copilot", "agentStop", Some("agentStop"), Some(END)),
    ("copilot", "postToolUse", Some("postToolUse"), Some(Signal::Called)),
    ("copilot", "preToolUse", Some("preToolUse"), Some(Signal::Call)),
    ("copilot", "preToolUse-sub-agent", Some("preToolUse"), Some(Signal::Call)),
    ("copilot", "sessionEnd", Some("sessionEnd"), Some(Signal::Gone)),
    ("copilot", "userPromptSubmitted", Some("userPromptSubmitted"), Some(Signal::Begin)),
    ("copilot", "userPromptSubmitted-notification", Some("userPromptSubmitted"), Some(Signal::GoOn)),
    ("crush", "PreToolUse", None, Some(Signal::Work)),
    ("crush", "PreToolUse-view", None, None),
    ("cursor", "afterFileEdit", None, None),
    ("cursor", "beforeSubmitPrompt", None, Some(Signal::Begin)),
    ("cursor", "stop", None, Some(END)),
    ("cursor", "stop-aborted", None, Some(CUT)),
    ("droid", "PostToolUse", None, Some(Signal::Called)),
    ("droid", "PreToolUse", None, Some(Signal::Call)),
    ("droid", "SessionEnd", None, Some(Signal::Gone)),
    ("droid", "Stop", None, Some(END)),
    ("droid", "UserPromptSubmit", None, Some(Signal::Begin)),
    ("droid", "interactive-1-UserPromptSubmit", None, Some(Signal::Begin)),
    ("droid", "interactive-2-Stop", None, Some(END)),
    ("gemini", "AfterAgent", None, Some(END)),
    ("gemini", "AfterTool", None, Some(Signal::Called)),
    ("gemini", "BeforeAgent", None, Some(Signal::Begin)),
    ("gemini", "BeforeTool", None, Some(Signal::Call)),
    ("gemini", "SessionEnd", None, Some(Signal::Gone)),
    ("goose", "SessionEnd", None, Some(Signal::Gone)),
    ("goose", "Stop", None, Some(END)),
    ("goose", "UserPromptSubmit", None, Some(Signal::Begin)),
    ("opencode", "begin", Some("begin"), Some(Signal::Begin)),
    ("opencode", "call", Some("call"), Some(Signal::Call)),
    ("opencode", "called", Some("called"), Some(Signal::Called)),
    ("opencode", "child-end", Some("end"), None),
    ("opencode", "end", Some("end"), Some(END)),
    ("pi", "begin", Some("begin"), Some(Signal::Begin)),
    ("pi", "call", Some("call"), Some(Signal::Call)),
    ("pi", "called", Some("called"), Some(Signal::Called)),
    ("pi", "end", Some("end"), Some(END)),
    ("pi", "interactive-1-begin", Some("begin"), Some(Signal::Begin)),
    ("pi", "interactive-2-end", Some("end"), Some(END)),
    ("pi", "interactive-3-begin", Some("begin"), Some(Signal::Begin)),
    ("pi", "interactive-4-end-aborted", Some("end"), Some(CUT)),
    ("qwen", "PostToolUse", None, Some(Signal::Called)),
    ("qwen", "PreToolUse", None, Some(Signal::Call)),
    ("qwen", "PreToolUse-sub-agent", None, Some(Signal::Call)),
    ("qwen", "SessionEnd", None, Some(Signal::Gone)),
    ("qwen", "Stop", None, Some(END)),
    ("qwen", "SubagentStop", None, None),
    ("qwen", "UserPromptSubmit", None, Some(Signal::Begin)),
    ("qwen", "UserPromptSubmit-continued", None, Some(Signal::Work)),
    ("qwen", "background-1-UserPromptSubmit", None, Some(Signal::Begin)),
    ("qwen", "background-2-UserPromptSubmit", None, Some(Signal::Work)),
    ("qwen", "background-3-Stop", None, Some(Signal::GoOn)),
    ("qwen", "background-4-Stop", None, Some(END)),
    ("qwen", "background-5-SessionEnd", None, Some(Signal::Gone)),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/payloads")
}

fn text(agent: &str, file: &str) -> String {
    let path = directory().join(agent).join(file).with_extension("json");
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn payload(agent: &str, file: &str) -> Map<String, Value> {
    match serde_json::from_str(&text(agent, file)) {
        Ok(Value::Object(fields)) => fields,
        other => panic!("{agent}/{file} is no object: {other:?}"),
    }
}

fn meaning(agent: &str, event: Option<&str>, fields: Map<String, Value>) -> Option<HookEvent> {
    let row = adapter(agent).expect("it is in the table");
    parse_hook(row, event, &Value::Object(fields), None)
}

#[test]
fn every_agent_is_here_and_every_file_is_in_the_table() {
    let mut files = Vec::new();
    for agent in std::fs::read_dir(directory()).expect("read the payloads").flatten() {
        for file in std::fs::read_dir(agent.path()).expect("read an agent's").flatten() {
            let stem = file.path().file_stem().expect("a name").to_string_lossy().into_owned();
            files.push((agent.file_name().to_string_lossy().into_owned(), stem));
        }
    }
    files.sort();
    let known: Vec<_> = MEANINGS.iter().map(|(agent, file, ..)| ((*agent).to_owned(), (*file).to_owned())).collect();
    assert_eq!(files, known);
    for adapter in ADAPTERS.iter().filter(|adapter| !adapter.sessionless) {
        assert!(known.iter().any(|(agent, _)| agent == adapter.name), "{} has payloads", adapter.name);
    }
}

#[test]
fn every_payload_means_what_it_should() {
    for (agent, file, event, wanted) in MEANINGS {
        let heard = meaning(agent, *event, payload(agent, file));
        assert_eq!(heard.as_ref().map(|heard| heard.signal), *wanted, "{agent}/{file}");
        let Some(heard) = heard else { continue };
        assert_eq!(heard.part.agent, *agent);
        assert!(heard.part.session.is_some_and(|session| session.len() > 5), "{agent}/{file} has a session");
        if heard.signal == Signal::Begin {
            assert_eq!(heard.prompt.as_deref(), Some("add a cache"), "{agent}/{file}");
        }
    }
}

/// A beginning and an end are of one call by what the agent calls it, where it has a name for it.
#[test]
fn the_call_of_a_tool_is_known_by_its_file_and_its_id() {
    let calls = [
        ("cline", "PreToolUse", "PostToolUse"),
        ("copilot", "preToolUse", "postToolUse"),
        ("droid", "PreToolUse", "PostToolUse"),
        ("opencode", "call", "called"),
        ("pi", "call", "called"),
        ("qwen", "PreToolUse", "PostToolUse"),
    ];
    for (agent, begins, ends) in calls {
        let [begun, ended] = [begins, ends].map(|file| {
            let heard = meaning(agent, Some(file), payload(agent, file)).expect("it is heard");
            heard.tool.expect("it is a call")
        });
        assert!(begun.path.is_some(), "{agent}: {begun:?}");
        assert_eq!((&begun.tool, &begun.id), (&ended.tool, &ended.id), "{agent}");
        assert_eq!(begun.id.is_some(), !["copilot", "droid"].contains(&agent), "{agent}: {begun:?}");
    }
}

/// In all of these an agent's own session has the same id.
#[test]
fn a_call_of_a_sub_agents_is_its_agents() {
    for (agent, event) in [("claude", None), ("copilot", Some("preToolUse")), ("qwen", None)] {
        let file = format!("{}-sub-agent", event.unwrap_or("PreToolUse"));
        let heard = meaning(agent, event, payload(agent, &file)).expect("it is heard");
        assert_eq!(heard.part.session.as_deref(), Some("7d9f0c1e-5a44-4b7e-9a53-2f1c8f1d6b10"), "{agent}");
    }
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..])
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[test]
fn spelling_order_and_more_fields_make_no_difference() {
    for (agent, file, event, _) in MEANINGS {
        let fields = payload(agent, file);
        let usual = meaning(agent, *event, fields.clone());
        let respelled = |spell: fn(&str) -> String| fields.iter().map(|(k, v)| (spell(k), v.clone())).collect();
        let mut more = fields.clone();
        for (key, value) in [("zzz", json!({"session_id": "x"})), ("", json!(null)), ("Ω", json!([1, [2]]))] {
            more.insert(key.to_owned(), value);
        }
        let reversed = fields.clone().into_iter().rev().collect();
        for (what, changed) in
            [("camel", respelled(camel)), ("snake", respelled(snake)), ("more", more), ("reversed", reversed)]
        {
            assert_eq!(meaning(agent, *event, changed), usual, "{agent}/{file} {what}");
        }
    }
}

#[test]
fn a_field_that_is_missing_or_of_another_type_is_absent() {
    let others = [json!(null), json!(7), json!(true), json!([]), json!({}), json!(""), json!(["x"]), json!({"a": {}})];
    for (agent, file, event, wanted) in MEANINGS {
        let fields = payload(agent, file);
        for key in fields.keys() {
            let mut without = fields.clone();
            without.remove(key);
            let without = meaning(agent, *event, without);
            for other in &others {
                let mut changed = fields.clone();
                changed.insert(key.clone(), other.clone());
                let changed = meaning(agent, *event, changed);
                let nested = key == "model" || key == "workspaceRoots" || key == "workspace_roots";
                let again = *other == json!(true) && matches!(key.as_str(), "stop_hook_active" | "stopHookActive");
                assert!(changed == without || nested || again, "{agent}/{file}: {key} is {other}");
            }
            if let (Some(found), Some(wanted)) = (without, wanted) {
                let weaker = matches!(
                    (found.signal, wanted),
                    (Signal::Work, Signal::Begin) | (END, &CUT) | (END | Signal::Begin, Signal::GoOn)
                );
                assert!(found.signal == *wanted || weaker, "{agent}/{file} without {key}: {found:?}");
            }
        }
    }
}

#[test]
fn no_cut_in_a_payload_reads_as_another_one() {
    for (agent, file, ..) in MEANINGS {
        let text = text(agent, file);
        let text = text.trim_end();
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert!(serde_json::from_str::<Value>(&text[..end]).is_err(), "{agent}/{file} cut at {end}");
        }
    }
}

/// The agent's hook is called with a payload; it is silent.
#[track_caller]
fn told(repo: &Sandbox, agent: &str, file: &str) {
    let (.., event, _) = MEANINGS.iter().find(|row| row.0 == agent && row.1 == file).expect("it is there");
    let words = ["hook", agent].into_iter().chain(*event);
    let output = Output::fired(&mut repo.oxundo_command(words), text(agent, file).as_bytes());
    output.success();
    assert_eq!((output.out(), output.err()), (String::new(), String::new()), "a hook is silent");
}

/// What real agents told around one prompt, in the order in which it came, and the agent at work in between.
#[test]
fn a_prompt_of_a_real_run_is_one_turn_with_all_that_was_done_for_it() {
    const WORK: &str = "";
    let done = |message: &'static str| (json!(message), false);
    let cut = |message: &'static str| (json!(message), true);
    let runs: &[(&str, &[&str], (Value, bool))] = &[
        // Claude Code 2.1.330: a command in the background, which tells of its end in a prompt.
        (
            "claude",
            &[
                "background-1-UserPromptSubmit",
                "background-2-Stop",
                WORK,
                "background-3-notification",
                WORK,
                "background-4-Stop",
                "background-5-SessionEnd",
            ],
            done("add a cache"),
        ),
        // The same where the first end was not heard.
        (
            "claude",
            &["background-1-UserPromptSubmit", WORK, "background-3-notification", WORK, "background-4-Stop"],
            done("add a cache"),
        ),
        // The same where nothing was heard before the notification, whose text is nobody's message.
        ("claude", &["background-3-notification", WORK, "background-4-Stop"], done("claude: turn 1")),
        // Claude Code is stopped while the command is at work.
        (
            "claude",
            &["background-1-UserPromptSubmit", "background-2-Stop", WORK, "background-5-SessionEnd"],
            cut("add a cache"),
        ),
        // Qwen Code 0.24.4: a sub-agent in the background; the second end is that of a prompt that nobody gave.
        (
            "qwen",
            &[
                "background-1-UserPromptSubmit",
                "background-2-UserPromptSubmit",
                "background-3-Stop",
                WORK,
                "background-4-Stop",
                "background-5-SessionEnd",
            ],
            done("add a cache"),
        ),
        // Cline 3.0.65: what it does is done by a sub-agent, for which it waits.
        (
            "cline",
            &[
                "headless-1-TaskStart",
                "headless-2-sub-TaskStart",
                WORK,
                "headless-3-sub-TaskComplete",
                "headless-4-TaskComplete",
            ],
            done("cline: turn 1"),
        ),
        // The same with a screen: Escape, after which the session goes on.
        ("cline", &["interactive-1-TaskStart", WORK, "interactive-2-SessionShutdown"], cut("cline: turn 1")),
        ("cline", &["interactive-3-TaskStart", WORK, "interactive-4-TaskComplete"], done("cline: turn 1")),
        // pi 0.73.1, and Escape.
        ("pi", &["interactive-1-begin", WORK, "interactive-2-end"], done("add a cache")),
        ("pi", &["interactive-3-begin", WORK, "interactive-4-end-aborted"], cut("add a cache")),
        // Copilot 1.0.102: a sub-agent in the background is done, which nobody's message tells.
        ("copilot", &["userPromptSubmitted-notification", WORK, "agentStop", "sessionEnd"], done("copilot: turn 1")),
        // Droid 0.215.0: the id of a message is another one at the end.
        ("droid", &["interactive-1-UserPromptSubmit", WORK, "interactive-2-Stop"], done("add a cache")),
    ];
    check_all(runs.iter().map(|run| (format!("{} {}", run.0, run.1[0]), run)), |(agent, events, wanted)| {
        let repo = Sandbox::new();
        let before = repo.state();
        for event in *events {
            match *event {
                WORK => drop(repo.sh("echo more >>README.txt; echo new >>new.txt")),
                file => told(&repo, agent, file),
            }
        }
        let after = repo.state();
        let log = repo.log();
        assert_eq!((log.len(), &log[0]["state"]), (1, &json!("done")), "{log:?}");
        assert_eq!((log[0]["message"].clone(), log[0]["interrupted"] == true), *wanted, "{log:?}");
        assert_eq!((&log[0]["dirty_commit"], &log[0]["shared"]), (&Value::Null, &json!(false)), "{log:?}");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "all of it is the turn's");
        repo.undo();
        repo.state().assert_is(&before, "undone");
        repo.redo();
        repo.state().assert_is(&after, "redone");
    });
}

/// Every agent's own beginning and end, from its own payloads, around a change.
#[test]
fn every_agent_makes_a_turn() {
    let ends = [
        ("amp", "begin", "end"),
        ("claude", "UserPromptSubmit", "Stop"),
        ("cline", "UserPromptSubmit", "TaskComplete"),
        ("codex", "UserPromptSubmit", "Stop"),
        ("copilot", "userPromptSubmitted", "agentStop"),
        ("cursor", "beforeSubmitPrompt", "stop"),
        ("droid", "UserPromptSubmit", "Stop"),
        ("gemini", "BeforeAgent", "AfterAgent"),
        ("goose", "UserPromptSubmit", "Stop"),
        ("opencode", "begin", "end"),
        ("pi", "begin", "end"),
        ("qwen", "UserPromptSubmit", "Stop"),
    ];
    check_all(ends.map(|row| (row.0.to_owned(), row)), |(agent, begin, end)| {
        let repo = Sandbox::new();
        told(&repo, agent, begin);
        repo.sh("echo two >>README.txt");
        told(&repo, agent, end);
        let log = repo.log();
        assert_eq!(log.len(), 1, "{log:?}");
        assert_eq!((&log[0]["message"], &log[0]["agent"]), (&json!("add a cache"), &json!(agent)));
        assert!(log[0]["session"].is_string(), "{log:?}");
        if payload(agent, begin).get("model").is_some_and(Value::is_string) {
            assert_eq!(log[0]["model"], "mock", "{log:?}");
        }
        repo.undo();
        repo.assert_file("README.txt", "readme\n", "it is undone");
    });
}

#[test]
fn ten_megabytes_are_read() {
    let repo = Sandbox::new();
    let mut begin = payload("claude", "UserPromptSubmit");
    begin.insert("prompt".to_owned(), json!(format!("add a cache\n{}", "é".repeat(5 << 20))));
    let big = serde_json::to_vec(&begin).expect("it is JSON");
    assert!(big.len() > 10 << 20);
    Output::fired(&mut repo.oxundo_command(["hook", "claude"]), &big).success();
    repo.sh("echo two >>README.txt");
    let end = text("claude", "Stop");
    Output::fired(&mut repo.oxundo_command(["hook", "claude"]), end.as_bytes()).success();
    assert_eq!(repo.log()[0]["message"], "add a cache");
    assert!(repo.git(["log", "-1", "--format=%B"]).len() < 20_000, "the message is cut");
}

#[test]
fn a_notification_gives_its_json_as_the_last_word() {
    let repo = Sandbox::new();
    Output::fired(&mut repo.oxundo_command(["hook", "codex"]), text("codex", "UserPromptSubmit").as_bytes()).success();
    repo.sh("echo two >>README.txt");
    repo.oxundo(["hook", "codex", &text("codex", "agent-turn-complete")]).success();
    assert_eq!(repo.log().len(), 1);
}

#[test]
fn what_another_agent_runs_of_claudes_hooks_is_its_own_and_is_told_once() {
    let repo = Sandbox::new();
    let begin = text("cursor", "beforeSubmitPrompt");
    let mut imported = payload("cursor", "beforeSubmitPrompt");
    imported.insert("hook_event_name".to_owned(), json!("beforeSubmitPrompt"));
    let imported = Value::Object(imported).to_string();
    for (agent, input) in [("cursor", &begin), ("claude", &imported)] {
        Output::fired(&mut repo.oxundo_command(["hook", agent]), input.as_bytes()).success();
    }
    repo.sh("echo two >>README.txt");
    let end = text("cursor", "stop");
    for agent in ["claude", "cursor"] {
        Output::fired(&mut repo.oxundo_command(["hook", agent]), end.as_bytes()).success();
    }
    let log = repo.log();
    assert_eq!((log.len(), &log[0]["agent"], &log[0]["shared"]), (1, &json!("cursor"), &json!(false)), "{log:?}");
}
