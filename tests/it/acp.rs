//! `oxundo acp`, between a client that speaks the protocol in its own types and an agent; both are played by the test.

use crate::sandbox::Sandbox;
use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    CancelNotification, ClientCapabilities, ContentBlock, InitializeRequest, InitializeResponse, JsonRpcMessage,
    LoadSessionRequest, NewSessionRequest, NewSessionResponse, Notification, PromptRequest, PromptResponse, Request,
    RequestId, Response, SessionNotification, SessionUpdate, StopReason, ToolCall, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Longer than anything takes here.
const LIMIT: Duration = Duration::from_secs(60);

/// What the agent is: what it hears and says is the test's.
const AGENT: &str = "exec 3<&0; cat <&3 >../heard & echo $$ >../pid; exec cat ../say 3<&-";

/// What comes from one side, line by line, to its end.
struct Ear(Receiver<Vec<u8>>);

impl Ear {
    fn to(from: impl Read + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            loop {
                let mut line = Vec::new();
                match from.read_until(b'\n', &mut line) {
                    Ok(1..) if sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        Self(receiver)
    }

    #[track_caller]
    fn line(&self) -> Vec<u8> {
        self.0.recv_timeout(LIMIT).expect("a line comes")
    }

    #[track_caller]
    fn hears(&self, line: &[u8]) {
        let heard = self.line();
        assert!(heard == line, "{} is not {}", String::from_utf8_lossy(&heard), String::from_utf8_lossy(line));
    }

    #[track_caller]
    fn is_over(&self) {
        assert_eq!(self.0.recv_timeout(LIMIT), Err(RecvTimeoutError::Disconnected), "it is over");
    }
}

/// A client, an agent, and what stands between them.
struct Talk {
    oxundo: Child,
    to_oxundo: Option<ChildStdin>,
    client: Ear,
    agent: Ear,
    say: Option<File>,
    ids: i64,
}

impl Drop for Talk {
    fn drop(&mut self) {
        self.say = None;
        self.to_oxundo = None;
        let _ = self.oxundo.kill();
        let _ = self.oxundo.wait();
    }
}

impl Talk {
    fn of(repo: &Sandbox) -> Self {
        repo.sh("rm -f ../heard ../say; mkfifo ../heard ../say");
        let mut oxundo = repo.oxundo_command(["acp", "--", "sh", "-c", AGENT]);
        let mut oxundo = oxundo.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start oxundo");
        let agent = Ear::to(File::open(repo.path("../heard")).expect("hear what the agent hears"));
        let say = File::options().write(true).open(repo.path("../say")).expect("speak for the agent");
        let client = Ear::to(oxundo.stdout.take().expect("a pipe"));
        Self::between(oxundo, client, agent, say)
    }

    fn between(mut oxundo: Child, client: Ear, agent: Ear, say: File) -> Self {
        let to_oxundo = oxundo.stdin.take();
        Self { oxundo, to_oxundo, client, agent, say: Some(say), ids: 0 }
    }

    /// The client says a line.
    fn ask(&mut self, line: &[u8]) {
        self.to_oxundo.as_mut().expect("the client is there").write_all(line).expect("say it");
    }

    /// The agent says a line, which the client hears as it is.
    #[track_caller]
    fn tell(&mut self, line: &[u8]) {
        self.say(line);
        self.client.hears(line);
    }

    fn say(&mut self, line: &[u8]) {
        self.say.as_mut().expect("the agent is there").write_all(line).expect("say it");
    }

    /// The client asks for something, which the agent hears as it is.
    #[track_caller]
    fn request(&mut self, method: &str, params: impl Serialize) -> i64 {
        self.ids += 1;
        let request = Request { id: RequestId::Number(self.ids), method: method.into(), params: Some(params) };
        let line = line(&JsonRpcMessage::wrap(request));
        self.ask(&line);
        self.agent.hears(&line);
        self.ids
    }

    /// The agent answers.
    #[track_caller]
    fn answer(&mut self, id: i64, result: impl Serialize) {
        let response: Response<_> = Response::new(RequestId::Number(id), Ok(result));
        self.tell(&line(&JsonRpcMessage::wrap(response)));
    }

    /// Begins a session.
    #[track_caller]
    fn session(&mut self, repo: &Sandbox, session: &str) {
        let id = self.request("session/new", NewSessionRequest::new(repo.root()));
        self.answer(id, NewSessionResponse::new(session.to_owned()));
    }

    #[track_caller]
    fn prompt(&mut self, session: &str, text: &str) -> i64 {
        self.request("session/prompt", PromptRequest::new(session.to_owned(), vec![ContentBlock::from(text)]))
    }

    #[track_caller]
    fn done(&mut self, prompt: i64, why: StopReason) {
        self.answer(prompt, PromptResponse::new(why));
    }

    #[track_caller]
    fn update(&mut self, session: &str, update: SessionUpdate) {
        let params = SessionNotification::new(session.to_owned(), update);
        let update = Notification { method: "session/update".into(), params: Some(params) };
        self.tell(&line(&JsonRpcMessage::wrap(update)));
    }

    /// A call of a tool begins, which may write this file.
    #[track_caller]
    fn call(&mut self, session: &str, id: &str, kind: ToolKind, path: Option<&str>) {
        let locations = path.into_iter().map(ToolCallLocation::new).collect();
        let call = ToolCall::new(id.to_owned(), "a call").kind(kind).status(ToolCallStatus::InProgress);
        self.update(session, SessionUpdate::ToolCall(call.locations(locations)));
    }

    #[track_caller]
    fn called(&mut self, session: &str, id: &str) {
        let fields = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
        self.update(session, SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.to_owned(), fields)));
    }

    /// What oxundo answers to a method of its own: the result, or the error.
    #[track_caller]
    fn own(&mut self, method: &str, params: &Value) -> Result<Value, Value> {
        self.ask(&line(
            &json!({"jsonrpc": "2.0", "id": "own", "method": format!("_oxundo/{method}"), "params": params}),
        ));
        let answer: Value = serde_json::from_slice(&self.client.line()).expect("JSON");
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!("own")), "{answer}");
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"].clone()),
        }
    }

    /// The agent ends, and oxundo with it; gives its exit code.
    #[track_caller]
    fn end(&mut self) -> Option<i32> {
        self.say = None;
        self.client.is_over();
        self.oxundo.wait().expect("it ends").code()
    }
}

fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("JSON");
    line.push(b'\n');
    line
}

/// The turns, the oldest first: message, state, whether it was cut off.
fn turns(repo: &Sandbox) -> Vec<(String, String, bool)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let turn = |turn: &Value| (text(&turn["message"]), text(&turn["state"]), turn["interrupted"] == json!(true));
    repo.log().iter().rev().map(turn).collect()
}

fn turn(message: &str, state: &str, interrupted: bool) -> (String, String, bool) {
    (message.to_owned(), state.to_owned(), interrupted)
}

/// Waits until it is so.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = std::time::Instant::now() + LIMIT;
    while !is_so() {
        assert!(std::time::Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

// Prompts

#[test]
fn each_prompt_is_a_turn() {
    let repo = Sandbox::new();
    repo.write("mine.txt", "mine\n");
    let before = repo.state();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    repo.everything();
    let prompt = talk.prompt("s", "add one\n\nplease");
    // The agent has just heard of it.
    assert_eq!(turns(&repo), [turn("add one", "open", false)]);
    repo.sh("echo 1 >one.txt");
    talk.done(prompt, StopReason::EndTurn);
    // The client has just heard of it: what is changed now is the user's.
    assert_eq!(turns(&repo), [turn("add one", "done", false)]);
    let first = repo.state();
    repo.write("mine.txt", "mine and more\n");
    let between = repo.state();
    let prompt = talk.prompt("s", "add two");
    repo.sh("echo 2 >two.txt");
    talk.done(prompt, StopReason::MaxTokens);
    let second = repo.state();
    let log = repo.log();
    assert_eq!((&log[0]["agent"], &log[0]["session"]), (&json!("sh-acp"), &json!("s")), "{log:?}");
    let undone = talk.own("undo", &json!({"sessionId": "s"})).expect("it is undone");
    assert_eq!((&undone["op"], &undone["turns"]), (&json!("undo"), &json!([2])));
    repo.state().assert_is(&between, "undone");
    talk.own("redo", &json!({})).expect("it is redone");
    repo.state().assert_is(&second, "redone");
    repo.write("mine.txt", "mine\n");
    talk.own("undo", &json!({"turns": 2})).expect("they are undone");
    repo.state().assert_is(&before, "both are undone");
    talk.own("redo", &json!({"turns": 1})).expect("it is redone");
    repo.state().without("on disk mine.txt").assert_is(&first.without("on disk mine.txt"), "and one is redone");
    assert_eq!(talk.end(), Some(0));
}

#[test]
fn a_prompt_that_changes_nothing_leaves_no_trace() {
    let repo = Sandbox::new();
    let before = repo.everything();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    let prompt = talk.prompt("s", "what is this?");
    talk.done(prompt, StopReason::EndTurn);
    repo.everything().assert_is(&before, "no turn, no commit, no ref");
}

#[test]
fn what_is_cancelled_and_what_fails_is_cut_off() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    let prompt = talk.prompt("s", "first");
    repo.sh("echo 1 >one.txt");
    let cancel =
        Notification { method: "session/cancel".into(), params: Some(CancelNotification::new("s".to_owned())) };
    let cancel = line(&JsonRpcMessage::wrap(cancel));
    talk.ask(&cancel);
    talk.agent.hears(&cancel);
    repo.sh("echo more >>one.txt");
    assert_eq!(turns(&repo), [turn("first", "open", false)], "it is at work until it says that it is not");
    talk.done(prompt, StopReason::Cancelled);
    assert_eq!(turns(&repo), [turn("first", "done", true)]);
    let prompt = talk.prompt("s", "second");
    repo.sh("echo 2 >two.txt");
    talk.tell(
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{prompt},\"error\":{{\"code\":-1,\"message\":\"no\"}}}}\n").as_bytes(),
    );
    assert_eq!(turns(&repo), [turn("first", "done", true), turn("second", "done", true)]);
    repo.oxundo(["undo", "2"]).success();
    repo.assert_absent("one.txt", "undone");
}

#[test]
fn sessions_are_told_apart() {
    let repo = Sandbox::new();
    let other = repo.linked("other");
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "here");
    talk.session(&other, "there");
    let (here, there) = (talk.prompt("here", "one"), talk.prompt("there", "two"));
    repo.sh("echo 1 >one.txt");
    other.sh("echo 2 >two.txt");
    talk.done(there, StopReason::EndTurn);
    assert_eq!((turns(&repo), turns(&other)), (vec![turn("one", "open", false)], vec![turn("two", "done", false)]));
    talk.done(here, StopReason::EndTurn);
    talk.own("undo", &json!({"sessionId": "there"})).expect("it is undone");
    other.assert_absent("two.txt", "undone where its session is");
    repo.assert_file("one.txt", "1\n", "and nowhere else");
    // In one worktree they share a turn, and nobody can tell whose a change is.
    talk.session(&repo, "too");
    let (first, second) = (talk.prompt("here", "three"), talk.prompt("too", "four"));
    repo.sh("echo 3 >three.txt");
    talk.done(first, StopReason::EndTurn);
    repo.sh("echo 4 >four.txt");
    talk.done(second, StopReason::EndTurn);
    let log = repo.log();
    assert_eq!((&log[0]["shared"], log[0]["files"].as_array().map(Vec::len)), (&json!(true), Some(2)), "{log:?}");
}

#[test]
fn a_session_that_is_loaded_is_told_anew_and_nothing_is_at_work() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    let prompt = talk.prompt("s", "one");
    repo.sh("echo 1 >one.txt");
    talk.done(prompt, StopReason::EndTurn);
    let before = repo.everything();
    let id = talk.request("session/load", LoadSessionRequest::new("s".to_owned(), repo.root()));
    talk.call("s", "old", ToolKind::Edit, None);
    talk.called("s", "old");
    talk.answer(id, Value::Null);
    let id = talk.request("session/fork", json!({"sessionId": "s", "cwd": repo.root()}));
    talk.call("s", "old", ToolKind::Execute, None);
    talk.answer(id, json!({"sessionId": "fork"}));
    repo.everything().assert_is(&before, "nothing is at work");
    // What is at work now is no more told anew.
    talk.call("s", "new", ToolKind::Execute, None);
    repo.sh("echo late >late.txt");
    talk.called("s", "new");
    assert_eq!(repo.log()[0]["files"][0]["path"], json!("late.txt"));
    let prompt = talk.prompt("fork", "two");
    repo.sh("echo 2 >two.txt");
    talk.done(prompt, StopReason::EndTurn);
    assert_eq!(repo.log()[0]["session"], json!("fork"));
}

// Lines

#[test]
fn every_line_goes_on_as_it_came() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    let long = "x".repeat(10 << 20);
    let big = format!("{{\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":\"{long}\"}}}}\n");
    let prompt = format!(
        "{{\"id\":1, \"method\":\"session/prompt\",\"params\":{{\"sessionId\":\"s\",\"prompt\":[{{\"type\":\"text\",\"text\":\"{long}\"}}]}}}}\n"
    );
    let lines: [&[u8]; 14] = [
        b"\n",
        b"nonsense\n",
        b"{\"id\": 1.0e0 , \"method\" : \"session/prompt\"}\r\n",
        b"\xff\xfe not UTF-8 \x00\n",
        b"[]\n",
        b"[{\"method\":\"_oxundo/undo\",\"id\":1},{\"id\":2,\"result\":null}]\n",
        b"{\"method\":\"session/prompt\",\"id\":1,\"id\":1,\"params\":{}}\n",
        b"{\"id\":null,\"method\":\"session/prompt\",\"params\":{\"sessionId\":7}}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{\"stopReason\":\"end_turn\"}}\n",
        b"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"s\",\"update\":{\"sessionUpdate\":\"tool_call\"}}}\n",
        "{\"method\":\"\\u005foxundo\",\"params\":\"é\"}\n".as_bytes(),
        big.as_bytes(),
        prompt.as_bytes(),
        b"{\"deep\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\n",
    ];
    for line in lines {
        talk.ask(line);
        talk.agent.hears(line);
        talk.tell(line);
    }
    // The last line of either has no end.
    talk.ask(b"{\"last\":");
    talk.to_oxundo = None;
    talk.agent.hears(b"{\"last\":");
    talk.agent.is_over();
    talk.say(b"and last");
    talk.say = None;
    talk.client.hears(b"and last");
    assert_eq!(talk.end(), Some(0));
    repo.assert_sound();
}

#[test]
fn only_the_introduction_has_one_key_more() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    let able = InitializeRequest::new(ProtocolVersion::V1).client_capabilities(ClientCapabilities::default());
    let id = talk.request("initialize", able);
    let response: Response<_> = Response::new(RequestId::Number(id), Ok(InitializeResponse::new(ProtocolVersion::V1)));
    let said = line(&JsonRpcMessage::wrap(response));
    talk.say(&said);
    let heard = String::from_utf8(talk.client.line()).expect("text");
    let key =
        "\"_meta\":{\"oxundo\":{\"methods\":[\"_oxundo/list\",\"_oxundo/plan\",\"_oxundo/undo\",\"_oxundo/redo\"]}}";
    let without = heard.replacen(&format!("{key},"), "", 1);
    assert_eq!(without.as_bytes(), said, "{heard}");
    let answer: JsonRpcMessage<Response<InitializeResponse>> = serde_json::from_str(&heard).expect("it is an answer");
    let Response::Result { result, .. } = answer.into_inner() else { panic!("it is no error") };
    let meta = result.agent_capabilities.meta.expect("it is announced");
    for method in meta["oxundo"]["methods"].as_array().expect("methods") {
        let name = method.as_str().and_then(|name| name.strip_prefix("_oxundo/")).expect("its name");
        let error = talk.own(name, &json!({"no such": "thing"})).expect_err("it is refused");
        assert_eq!((&error["code"], &error["data"]["error"]["code"]), (&json!(-32602), &json!("usage")), "{error}");
    }
    assert_eq!(talk.own("apply", &json!({})).expect_err("there is no such method")["code"], json!(-32601));
}

// Calls

#[test]
fn calls_are_steps() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    let prompt = talk.prompt("s", "work");
    let path = repo.path("one.txt");
    talk.call("s", "a", ToolKind::Edit, path.to_str());
    let error = talk.own("undo", &json!({})).expect_err("it is at work");
    assert_eq!((&error["code"], &error["data"]["error"]["code"]), (&json!(-32000), &json!("busy")), "{error}");
    repo.sh("echo 1 >one.txt");
    talk.called("s", "a");
    talk.call("s", "b", ToolKind::Read, path.to_str());
    talk.called("s", "b");
    // The agent does not wait until it is heard.
    repo.sh("echo 2 >two.txt");
    talk.call("s", "c", ToolKind::Execute, None);
    repo.sh("echo 3 >three.txt");
    talk.called("s", "c");
    repo.sh("echo 4 >four.txt");
    talk.call("s", "d", ToolKind::Edit, repo.path("four.txt").to_str());
    talk.called("s", "d");
    talk.done(prompt, StopReason::EndTurn);
    let steps = repo.json(["log", "--steps"]).1["turns"][0]["steps"].clone();
    let about: Vec<(&Value, &Value, usize)> = (steps.as_array().expect("steps").iter())
        .map(|step| (&step["tool"], &step["path"], step["files"].as_array().map_or(0, Vec::len)))
        .collect();
    let wanted = [
        (&json!("edit"), &json!("one.txt"), 1),
        (&json!("execute"), &Value::Null, 2),
        (&json!("edit"), &json!("four.txt"), 1),
    ];
    assert_eq!(about, wanted, "{steps}");
    repo.oxundo(["undo", "--only", "1.2"]).success();
    repo.assert_absent("two.txt", "undone");
    repo.assert_file("one.txt", "1\n", "of the other step");
}

#[test]
fn what_an_agent_does_after_its_answer_is_its_own_turn() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    let prompt = talk.prompt("s", "begin");
    repo.sh("echo 1 >one.txt");
    talk.done(prompt, StopReason::EndTurn);
    repo.write("mine.txt", "mine\n");
    talk.call("s", "late", ToolKind::Execute, None);
    assert_eq!(turns(&repo).last().map(|turn| turn.1.as_str()), Some("open"));
    repo.sh("echo 2 >two.txt");
    talk.called("s", "late");
    assert_eq!(turns(&repo).last().map(|turn| turn.1.as_str()), Some("done"));
    repo.oxundo(["undo"]).success();
    repo.assert_absent("two.txt", "undone");
    repo.assert_file("mine.txt", "mine\n", "it is the user's");
}

// Ends

#[test]
fn an_agent_that_crashes_leaves_a_turn_that_was_cut_off() {
    let repo = Sandbox::new();
    let before = repo.state();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    talk.prompt("s", "work");
    repo.sh("echo 1 >one.txt; kill -9 $(cat ../pid)");
    talk.client.is_over();
    assert_eq!(talk.oxundo.wait().expect("it ends").code(), Some(137), "as a shell has it");
    assert_eq!(turns(&repo), [turn("work", "done", true)]);
    repo.undo();
    repo.state().assert_is(&before, "undone");
}

#[test]
fn a_client_that_goes_leaves_a_turn_that_was_cut_off() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    talk.prompt("s", "work");
    repo.sh("echo 1 >one.txt");
    talk.to_oxundo = None;
    talk.agent.is_over();
    repo.sh("echo 2 >two.txt");
    assert_eq!(talk.end(), Some(0));
    assert_eq!(turns(&repo), [turn("work", "done", true)]);
    assert_eq!(repo.log()[0]["files"].as_array().map(Vec::len), Some(2), "what it did until its end is its work");
}

#[test]
fn a_client_that_is_killed_leaves_a_turn_that_was_cut_off() {
    let repo = Sandbox::new();
    let before = repo.state();
    repo.sh("mkfifo ../heard ../say ../asked");
    // Another program is the client, and nobody hears what is said to it.
    let client = "\"$@\" <../asked | sh -c 'echo $$ >../client; exec sleep 600'";
    let words = repo.oxundo_command(["acp", "--", "sh", "-c", AGENT]);
    let mut shell = repo.shell(client);
    shell.arg("sh").arg(words.get_program()).args(words.get_args());
    let oxundo = shell.spawn().expect("start it");
    let ask = File::options().write(true).open(repo.path("../asked")).expect("speak for the client");
    let agent = Ear::to(File::open(repo.path("../heard")).expect("hear what the agent hears"));
    let say = File::options().write(true).open(repo.path("../say")).expect("speak for the agent");
    let mut talk = Talk::between(oxundo, Ear(channel().1), agent, say);
    let prompt = PromptRequest::new("s".to_owned(), vec![ContentBlock::from("work")]);
    let prompt = Request { id: RequestId::Number(1), method: "session/prompt".into(), params: Some(prompt) };
    let prompt = line(&JsonRpcMessage::wrap(prompt));
    (&ask).write_all(&prompt).expect("say it");
    talk.agent.hears(&prompt);
    repo.sh("echo 1 >one.txt; kill -9 $(cat ../client)");
    drop(ask);
    talk.agent.is_over();
    talk.say(b"nobody hears this\n");
    talk.say = None;
    until("it is closed", || turns(&repo) == [turn("work", "done", true)]);
    repo.undo();
    repo.state().assert_is(&before, "undone");
}

#[test]
fn an_agent_that_never_ends_holds_no_turn_open() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    talk.prompt("s", "work");
    repo.sh("echo 1 >one.txt");
    talk.to_oxundo = None;
    until("it is closed", || turns(&repo) == [turn("work", "done", true)]);
    // It goes on, as it would if nobody stood between.
    assert!(talk.oxundo.try_wait().expect("look").is_none());
    talk.tell(b"I am here\n");
    repo.oxundo(["undo"]).success();
    repo.assert_absent("one.txt", "undone");
}

#[test]
fn when_oxundo_is_killed_the_next_command_closes_the_turn() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    talk.prompt("s", "work");
    repo.sh("echo 1 >one.txt");
    talk.oxundo.kill().expect("kill it");
    talk.oxundo.wait().expect("it ends");
    talk.agent.is_over();
    repo.oxundo(["undo"]).success();
    repo.assert_absent("one.txt", "undone");
    assert_eq!(turns(&repo), [turn("work", "undone", true)]);
}

#[test]
fn a_signal_goes_on_to_the_agent() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    talk.prompt("s", "work");
    repo.sh(&format!("echo 1 >one.txt; kill {}", talk.oxundo.id()));
    talk.client.is_over();
    assert_eq!(talk.oxundo.wait().expect("it ends").code(), Some(143));
    assert_eq!(turns(&repo), [turn("work", "done", true)]);
}

#[test]
fn where_nothing_can_be_recorded_the_talk_goes_on() {
    let repo = Sandbox::new();
    repo.git(["config", "oxundo.enabled", "false"]);
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    let prompt = talk.prompt("s", "work");
    repo.sh("echo 1 >one.txt");
    talk.done(prompt, StopReason::EndTurn);
    repo.git(["config", "oxundo.enabled", "true"]);
    damage(&repo);
    let prompt = talk.prompt("s", "more");
    repo.sh("echo 2 >two.txt");
    talk.done(prompt, StopReason::EndTurn);
    let error = talk.own("list", &json!({"sessionId": "s"})).expect_err("it cannot be read");
    assert_eq!(error["data"]["error"]["code"], json!("corrupt"), "{error}");
    let elsewhere = Sandbox::without_repository();
    let id = talk.request("session/new", NewSessionRequest::new(elsewhere.root()));
    talk.answer(id, NewSessionResponse::new("e"));
    let prompt = talk.prompt("e", "elsewhere");
    talk.done(prompt, StopReason::EndTurn);
    assert_eq!(
        talk.own("list", &json!({"sessionId": "e"})).expect_err("nothing is there")["data"]["error"]["code"],
        "not_found"
    );
}

fn damage(repo: &Sandbox) {
    repo.git(["update-ref", "refs/oxundo/timeline", "HEAD"]);
}

// What is asked of oxundo

#[test]
fn a_plan_is_carried_out_as_it_was_shown_or_not_at_all() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one.txt");
    repo.agent("echo 2 >two.txt");
    let mut talk = Talk::of(&repo);
    let list = talk.own("list", &json!({"n": 1})).expect("they are listed");
    assert_eq!((&list["turns"][0]["turn"], &list["more"]), (&json!(2), &json!(true)), "{list}");
    let before = repo.everything();
    let plan =
        |talk: &mut Talk| talk.own("plan", &json!({"op": "undo", "turns": 2})).expect("it is planned")["plan"].clone();
    let first = plan(&mut talk);
    repo.everything().assert_is(&before, "a plan changes nothing");
    // Another program writes to what it is about.
    repo.write("two.txt", "2\nand more\n");
    let before = repo.everything();
    let error = talk.own("undo", &json!({"plan": first})).expect_err("it is stale");
    assert_eq!(error["data"]["error"]["code"], json!("stale"), "{error}");
    let error = talk.own("plan", &json!({"op": "undo", "edits": "refuse"})).expect_err("the user has edited it");
    assert_eq!(error["data"]["error"]["code"], json!("conflict"), "{error}");
    repo.everything().assert_is(&before, "a refusal changes nothing");
    repo.write("two.txt", "2\n");
    let second = plan(&mut talk);
    let done = talk.own("undo", &json!({"plan": second})).expect("it is carried out");
    repo.assert_absent("one.txt", "undone");
    assert_eq!(talk.own("undo", &json!({"plan": second})).expect("it was done before"), done);
    assert_eq!(talk.own("undo", &json!({})).expect_err("nothing is left")["data"]["error"]["code"], json!("nothing"));
    for nonsense in [json!([]), json!(7), json!({"turns": -1})] {
        assert_eq!(talk.own("undo", &nonsense).expect_err("nothing is asked")["code"], json!(-32602), "{nonsense}");
    }
}

#[test]
fn what_is_asked_for_a_session_that_is_not_open_is_done_nowhere() {
    let repo = Sandbox::new();
    let other = repo.linked("other");
    let mut talk = Talk::of(&repo);
    for (session, place) in [("here", &repo), ("there", &other)] {
        talk.session(place, session);
        let prompt = talk.prompt(session, session);
        place.sh("echo 1 >one.txt");
        talk.done(prompt, StopReason::EndTurn);
    }
    let id = talk.request("session/load", LoadSessionRequest::new("lost".to_owned(), other.root()));
    talk.tell(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-1,\"message\":\"no\"}}}}\n").as_bytes());
    let id = talk.request("session/close", json!({"sessionId": "there"}));
    talk.answer(id, json!({}));
    let before = (repo.everything(), other.everything());
    for session in [json!("no-such-session"), json!("lost"), json!("there"), json!(7), Value::Null] {
        for (method, more) in
            [("undo", json!({})), ("redo", json!({})), ("plan", json!({"op": "undo"})), ("list", json!({}))]
        {
            let mut params = more;
            params["sessionId"] = session.clone();
            let error = talk.own(method, &params).expect_err("there is no such session");
            assert_eq!((&error["code"], &error["data"]["error"]["code"]), (&json!(-32602), &json!("usage")), "{error}");
        }
    }
    repo.everything().assert_is(&before.0, "nothing is done here");
    other.everything().assert_is(&before.1, "nor there");
    let id = talk.request("session/load", LoadSessionRequest::new("there".to_owned(), other.root()));
    talk.answer(id, Value::Null);
    talk.own("undo", &json!({"sessionId": "there"})).expect("it is open again");
    other.assert_absent("one.txt", "undone where its session is");
    talk.own("undo", &json!({})).expect("it is undone");
    repo.assert_absent("one.txt", "undone where oxundo was started");
}

#[test]
fn a_plan_is_for_what_it_was_made_for() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one.txt");
    repo.agent("echo 2 >two.txt");
    repo.oxundo(["undo"]).success();
    let (_, restore) = repo.json(["restore", "2", "--plan"]);
    let mut talk = Talk::of(&repo);
    let plan = |talk: &mut Talk, op: &str| talk.own("plan", &json!({"op": op})).expect("planned")["plan"].clone();
    let (back, forth) = (plan(&mut talk, "undo"), plan(&mut talk, "redo"));
    let before = repo.everything();
    for (method, id) in [("redo", &back), ("undo", &forth), ("undo", &restore["plan"]), ("redo", &restore["plan"])] {
        let error = talk.own(method, &json!({"plan": id})).expect_err("it is for something else");
        assert_eq!((&error["code"], &error["data"]["error"]["code"]), (&json!(-32602), &json!("usage")), "{error}");
    }
    repo.everything().assert_is(&before, "a refusal changes nothing");
    talk.own("redo", &json!({"plan": forth})).expect("it is redone");
    repo.assert_file("two.txt", "2\n", "redone");
    let error = talk.own("undo", &json!({"plan": forth})).expect_err("also when it was done before");
    assert_eq!(error["code"], json!(-32602), "{error}");
}

#[test]
fn what_cannot_be_started_is_said() {
    let repo = Sandbox::new();
    let before = repo.everything();
    for (words, code, message) in [
        (
            ["acp", "--", "no-such-agent"],
            127,
            "error: 'no-such-agent': no such command\nhint: check the agent's command",
        ),
        (["acp", "--", "./README.txt"], 126, "error: './README.txt': not executable\nhint: check the agent's command"),
    ] {
        let output = repo.oxundo(words);
        output.exits(code);
        assert!(output.stdout.is_empty() && output.err().starts_with(message), "{output:?}");
    }
    repo.oxundo(["acp"]).exits(2);
    repo.everything().assert_is(&before, "nothing is recorded");
}

/// An agent that tells of the same prompt by its own hooks, under a name of its own for the session.
#[test]
fn what_an_agent_tells_by_its_own_hooks_too_is_no_work_beside_it() {
    let hooked = |event: &str, session: &str| {
        let told = json!({"hook_event_name": event, "session_id": session, "prompt_id": "1", "prompt": "work"});
        format!("printf '%s' '{told}' | oxundo hook claude")
    };
    // Which session the hook's is, of two that are at work, nobody can tell; nor of a hook that the agent has not started.
    for (others, is_agents, shared) in [(0, true, false), (1, true, true), (0, false, true)] {
        let repo = Sandbox::new();
        let before = repo.state();
        repo.sh("rm -f ../heard ../say ../do; mkfifo ../heard ../say ../do ../done");
        // It does what it is told by another way, and says when that is done.
        let agent = "exec 3<&0; cat <&3 >../heard & (while read -r line; do sh -c \"$line\"; echo >../done; done) <../do & exec cat ../say 3<&-";
        let mut oxundo = repo.oxundo_command(["acp", "--", "sh", "-c", agent]);
        let mut oxundo = oxundo.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start oxundo");
        let heard = Ear::to(File::open(repo.path("../heard")).expect("hear what the agent hears"));
        let say = File::options().write(true).open(repo.path("../say")).expect("speak for the agent");
        let mut order = File::options().write(true).open(repo.path("../do")).expect("order the agent about");
        let client = Ear::to(oxundo.stdout.take().expect("a pipe"));
        let mut talk = Talk::between(oxundo, client, heard, say);
        let mut tell = |event: &str| {
            if is_agents {
                order.write_all(format!("{}\n", hooked(event, "own")).as_bytes()).expect("order it");
                // It may be the end of the last word that is heard.
                repo.sh("until read -r done <../done; do :; done");
            } else {
                repo.sh(&hooked(event, "own"));
            }
        };
        talk.session(&repo, "s");
        let prompt = talk.prompt("s", "work");
        let rest: Vec<i64> = (0..others)
            .map(|_| {
                talk.session(&repo, "t");
                talk.prompt("t", "more")
            })
            .collect();
        tell("UserPromptSubmit");
        repo.sh("echo 1 >one.txt");
        tell("Stop");
        assert_eq!(turns(&repo).len(), 1, "the prompt is not answered yet");
        for prompt in rest.into_iter().chain([prompt]) {
            talk.done(prompt, StopReason::EndTurn);
        }
        let log = repo.log();
        assert_eq!((&log[0]["shared"], &log[0]["state"], log.len()), (&json!(shared), &json!("done"), 1), "{log:?}");
        repo.undo();
        repo.state().assert_is(&before, "undone");
        drop(order);
    }
}

/// What an agent starts like an editor is the agent's still.
#[test]
fn an_agent_is_no_editor() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one.txt");
    let begin = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "work", "cwd": repo.root()});
    repo.write("../begin", begin.to_string());
    let undo = r#"{"jsonrpc":"2.0","id":1,"method":"_oxundo/undo","params":{}}"#;
    repo.write("../undo", format!("{undo}\n"));
    let ways = ["oxundo acp -- cat <../undo", "echo '{}' | oxundo acp --answer undo"];
    repo.by_agent("oxundo hook codex <../begin; echo 2 >two.txt").success();
    let before = repo.everything();
    for way in ways {
        let told = repo.by_agent(way);
        assert!(told.out().contains(r#""code":"agent""#), "{way}: {told:?}");
        repo.everything().assert_is(&before, way);
    }
    // Those that the user starts are the user's.
    let undone = repo.sh("oxundo acp -- cat <../undo");
    assert!(undone.contains(r#""undone":[2]"#), "{undone}");
    repo.assert_absent("two.txt", "undone");
}

#[test]
fn a_number_is_the_same_however_it_is_written() {
    let repo = Sandbox::new();
    let mut talk = Talk::of(&repo);
    talk.session(&repo, "s");
    let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "work"}]});
    let asked = format!("{{\"jsonrpc\":\"2.0\",\"id\":7.0,\"method\":\"session/prompt\",\"params\":{prompt}}}\n");
    talk.ask(asked.as_bytes());
    talk.agent.hears(asked.as_bytes());
    repo.sh("echo 1 >one.txt");
    talk.tell(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"stopReason\":\"end_turn\"}}\n");
    assert_eq!(turns(&repo), [turn("work", "done", false)], "the agent has answered");
}
