//! The plugins that oxundo brings for agents whose hooks are programs: what they tell of what an agent calls them with.

use crate::manual::skipped;
use crate::sandbox::Sandbox;

/// A plugin as plain JavaScript: an older Node does not know TypeScript's types, of which the plugins have these.
fn untyped(plugin: &str) -> String {
    [": any", ": string | undefined", "?: string", ": string"]
        .iter()
        .fold(plugin.to_owned(), |text, kind| text.replace(kind, ""))
}

/// Calls a plugin as its agent would, with a script in which it is `plugin`. Gives whether there is a Node.
fn call(repo: &Sandbox, plugin: &str, script: &str) -> bool {
    call_by(repo, "node", plugin, script)
}

fn call_by(repo: &Sandbox, node: &str, plugin: &str, script: &str) -> bool {
    if which::which("node").is_err() {
        skipped("node");
        return false;
    }
    std::fs::write(repo.home().join("plugin.mjs"), untyped(plugin)).expect("write the plugin");
    let script = format!(
        "import * as plugin from './plugin.mjs'\nimport {{ appendFileSync }} from 'node:fs'\n\
         const work = () => appendFileSync('README.txt', 'more\\n')\n{script}"
    );
    std::fs::write(repo.home().join("agent.mjs"), script).expect("write the script");
    repo.sh(&format!("{node} ../home/agent.mjs"));
    true
}

/// The turns, oldest first: the message, and whether it was interrupted.
fn turns(repo: &Sandbox) -> Vec<(String, bool)> {
    let log = repo.log();
    let turn = |turn: &serde_json::Value| {
        assert_eq!(turn["state"], "done", "{turn}");
        (turn["message"].as_str().expect("a message").to_owned(), turn["interrupted"] == true)
    };
    log.iter().rev().map(turn).collect()
}

/// The calls of tools in the first turn, and whether each of them is over.
fn calls(repo: &Sandbox) -> Vec<String> {
    let text = repo.git(["show", "refs/oxundo/timeline:turns/00/00/01/calls"]);
    let calls = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let told = |call: serde_json::Value| {
        let [session, tool, path, id] = ["session", "tool", "path", "id"].map(|key| word(&call[key]));
        format!("{session} {tool} {path} {id} {}", call["ended_at"].is_string())
    };
    calls.map(|call| told(call.expect("a line of JSON"))).collect()
}

fn told(turns: &[(&str, bool)]) -> Vec<(String, bool)> {
    turns.iter().map(|(message, interrupted)| ((*message).to_owned(), *interrupted)).collect()
}

#[test]
fn pi_tells_how_its_last_answer_ended() {
    let repo = Sandbox::new();
    let script = r#"
        const heard = {}
        plugin.default({ on: (event, act) => { heard[event] = act } })
        const ctx = { cwd: process.cwd(), model: { id: "mock" }, sessionManager: {
            getSessionId: () => "01a201f8-8b95-75eb-b3ec-c3fcc1a41b10", getSessionFile: () => undefined } }
        const prompt = async (text, messages) => {
            await heard.before_agent_start({ prompt: text }, ctx)
            await heard.agent_start({}, ctx)
            const call = { toolCallId: text, toolName: "edit", args: { path: "README.txt" } }
            await heard.tool_execution_start(call, ctx)
            work()
            await heard.tool_execution_end(call, ctx)
            await heard.agent_end({ messages }, ctx)
        }
        const [user, tool] = [{ role: "user", content: "x" }, { role: "assistant", stopReason: "toolUse" }]
        await prompt("first", [user, tool, { role: "assistant", stopReason: "stop" }, { role: "custom" }])
        await prompt("second", [user, tool, { role: "toolResult" }, { role: "assistant", stopReason: "aborted" }])
        await prompt("third", undefined)
    "#;
    if call(&repo, include_str!("../../src/agents/plugins/pi.ts"), script) {
        assert_eq!(turns(&repo), told(&[("first", false), ("second", true), ("third", false)]));
        assert_eq!(calls(&repo), ["01a201f8-8b95-75eb-b3ec-c3fcc1a41b10 edit README.txt first true"]);
    }
}

#[test]
fn opencode_tells_that_a_prompt_was_aborted_before_it_is_idle() {
    let repo = Sandbox::new();
    let script = r#"
        const { event, "chat.message": message, "tool.execute.before": before, "tool.execute.after": after } = await plugin.Oxundo({ directory: process.cwd() })
        const tell = (type, properties) => event({ event: { type, properties: { sessionID: "ses_1", ...properties } } })
        const prompt = async (text, messageID, error) => {
            await message({ sessionID: "ses_1", messageID }, { parts: [{ type: "text", text }] })
            const call = { tool: "edit", sessionID: "ses_1", callID: text }
            await before(call, { args: { filePath: "README.txt" } })
            work()
            await after(call, { title: "", output: "", metadata: {} })
            await tell("session.created", { info: { id: `sub-${text}`, parentID: "ses_1" } })
            const other = { tool: "bash", sessionID: `sub-${text}`, callID: `sub-${text}` }
            await before(other, { args: { command: "true" } })
            await after(other, { title: "", output: "", metadata: {} })
            if (error) await tell("session.error", { error: { name: error, data: { message: "Aborted" } } })
            await tell("session.status", { status: { type: "idle" } })
            await tell("session.idle", {})
        }
        await prompt("first", "m1", "MessageAbortedError")
        await prompt("second", "m2")
        await tell("session.error", { sessionID: "ses_2", error: { name: "MessageAbortedError" } })
        await prompt("third", "m3")
    "#;
    if call(&repo, include_str!("../../src/agents/plugins/opencode.js"), script) {
        assert_eq!(turns(&repo), told(&[("first", true), ("second", false), ("third", false)]));
        assert_eq!(calls(&repo), ["ses_1 edit README.txt first true", "ses_1 bash  sub-first true"]);
    }
}

/// In a run, what the user saves after the last prompt is theirs, and what the run's command does after its agent is the run's.
fn assert_the_end_is_told(repo: &Sandbox, plugin: &str, script: &str) {
    let run = "oxundo run -- sh -c 'node \"$0\"; echo after >after.txt'";
    if call_by(repo, run, plugin, &format!("const saved = () => appendFileSync('user.txt', 'user\\n')\n{script}")) {
        assert_eq!(repo.git(["status", "--porcelain"]), "?? user.txt", "it is the user's");
        assert_eq!(repo.git(["show", "--format=", "--name-only"]), "after.txt");
        assert_eq!(turns(repo)[0], ("first".to_owned(), false));
    }
}

#[test]
fn pi_tells_that_its_session_is_over() {
    let script = r#"
        const heard = {}
        plugin.default({ on: (event, act) => { heard[event] = act } })
        const ctx = { cwd: process.cwd(), sessionManager: { getSessionId: () => "s", getSessionFile: () => undefined } }
        await heard.before_agent_start({ prompt: "first" }, ctx)
        await heard.agent_start({}, ctx)
        work()
        await heard.agent_end({}, ctx)
        for (const reason of ["reload", "new", "quit"]) {
            saved()
            await heard.session_shutdown({ reason }, ctx)
        }
    "#;
    assert_the_end_is_told(&Sandbox::new(), include_str!("../../src/agents/plugins/pi.ts"), script);
}

#[test]
fn opencode_tells_that_its_sessions_are_over() {
    let script = r#"
        const { event, "chat.message": message, dispose } = await plugin.Oxundo({ directory: process.cwd() })
        await message({ sessionID: "ses_1", messageID: "m1" }, { parts: [{ type: "text", text: "first" }] })
        work()
        await event({ event: { type: "session.idle", properties: { sessionID: "ses_1" } } })
        saved()
        await dispose()
    "#;
    assert_the_end_is_told(&Sandbox::new(), include_str!("../../src/agents/plugins/opencode.js"), script);
}

#[test]
fn amp_tells_of_each_call_in_the_thread_of_its_prompt() {
    let repo = Sandbox::new();
    let script = r#"
        const heard = {}
        plugin.default({ on: (event, act) => { heard[event] = act } })
        await heard["agent.start"]({ id: "1", message: "first", thread: { id: "T-1" } })
        const call = { tool: "edit_file", toolUseID: "c1", input: { path: "README.txt" } }
        const allowed = await heard["tool.call"](call)
        if (allowed.action !== "allow") throw new Error("every tool may run")
        work()
        await heard["tool.result"]({ ...call, status: "done" })
        await heard["agent.end"]({ id: "1", status: "done", thread: { id: "T-1" } })
    "#;
    if call(&repo, include_str!("../../src/agents/plugins/amp.ts"), script) {
        assert_eq!(turns(&repo), told(&[("first", false)]));
        assert_eq!(calls(&repo), ["T-1 edit_file README.txt c1 true"]);
    }
}

/// Inside a run an end that no beginning announced closes the turn that waits for a prompt.
#[test]
fn opencode_tells_of_an_end_once() {
    let repo = Sandbox::new();
    let script = r#"
        const { event, "chat.message": message } = await plugin.Oxundo({ directory: process.cwd() })
        const tell = (type, properties) => event({ event: { type, properties: { sessionID: "ses_1", ...properties } } })
        const prompt = async (text, messageID) => {
            await message({ sessionID: "ses_1", messageID }, { parts: [{ type: "text", text }] })
            work()
            await tell("session.status", { status: { type: "idle" } })
            // The user's, before it is told again.
            work()
            await tell("session.idle", {})
        }
        await prompt("first", "m1")
        await prompt("second", "m2")
    "#;
    if call_by(&repo, "oxundo run -- node", include_str!("../../src/agents/plugins/opencode.js"), script) {
        assert_eq!(turns(&repo)[..2], told(&[("first", false), ("second", false)]));
    }
}
