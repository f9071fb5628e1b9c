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
    repo.sh("node ../home/agent.mjs");
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
            work()
            await heard.agent_end({ messages }, ctx)
        }
        const [user, tool] = [{ role: "user", content: "x" }, { role: "assistant", stopReason: "toolUse" }]
        await prompt("first", [user, tool, { role: "assistant", stopReason: "stop" }, { role: "custom" }])
        await prompt("second", [user, tool, { role: "toolResult" }, { role: "assistant", stopReason: "aborted" }])
        await prompt("third", undefined)
    "#;
    if call(&repo, include_str!("../../src/agents/plugins/pi.ts"), script) {
        assert_eq!(turns(&repo), told(&[("first", false), ("second", true), ("third", false)]));
    }
}

#[test]
fn opencode_tells_that_a_prompt_was_aborted_before_it_is_idle() {
    let repo = Sandbox::new();
    let script = r#"
        const { event, "chat.message": message } = await plugin.Oxundo({ directory: process.cwd() })
        const tell = (type, properties) => event({ event: { type, properties: { sessionID: "ses_1", ...properties } } })
        const prompt = async (text, messageID, error) => {
            await message({ sessionID: "ses_1", messageID }, { parts: [{ type: "text", text }] })
            work()
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
    }
}
