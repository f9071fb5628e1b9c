//! What the two sides say means: where prompts begin and end, and calls of tools. It only listens.

use crate::program::acp::line::{Message, messages, read_as};
use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResourceResource, StopReason, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// What all methods of oxundo's own begin with.
pub const OWN: &str = "_oxundo/";

/// A sign that something begins or ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// What, in a word that hooks know.
    pub event: &'static str,
    /// Whose session.
    pub session: String,
    /// Where that is at work.
    pub directory: Option<PathBuf>,
    /// A name for the prompt.
    pub prompt_id: Option<String>,
    /// What the user asked for.
    pub prompt: Option<String>,
    /// The call.
    pub call: Option<Call>,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The agent's id of it.
    pub id: String,
    /// The tool's name, or what it does in a word.
    pub tool: String,
    /// The one file that it is about.
    pub path: Option<String>,
    /// The command line, where it is one.
    pub command: Option<String>,
}

/// A request to oxundo itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its id, as it came; none where nobody waits for an answer.
    pub id: Option<String>,
    /// What is asked for, without [`OWN`].
    pub method: String,
    /// With what, as it came.
    pub params: String,
    /// Where the session is at work that it names.
    pub directory: Option<PathBuf>,
    /// Whether it names a session that is not open: where that would be at work, nobody knows.
    pub is_astray: bool,
}

/// What is to be done with a line of the agent's.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// What is to be told before the line goes on: the client may change files as soon as it hears that a prompt is over.
    pub signs: Vec<Sign>,
    /// Whether it answers `initialize`.
    pub is_introduction: bool,
}

/// A request of the client's that the agent has not answered.
enum Pending {
    Initialize,
    /// A session that the answer names, at work here.
    New(Option<PathBuf>),
    /// A session that is told anew, or a new one from it.
    Load {
        session: String,
        directory: Option<PathBuf>,
        is_fork: bool,
    },
    Prompt {
        session: String,
        number: u64,
    },
    Close(String),
}

#[derive(Default)]
struct Session {
    directory: Option<PathBuf>,
    /// Whether the agent has it, as far as its answers tell.
    is_open: bool,
    /// The newest prompt, until it is over.
    prompt: Option<u64>,
    /// So many times what was said before is being told anew.
    loads: usize,
    /// The calls that are not over; none of those is known that only read.
    calls: HashMap<String, Option<Call>>,
    /// Whether a call came while no prompt was given: it has a turn of its own.
    is_late: bool,
}

/// A conversation of a client with an agent.
pub struct Talk {
    /// What sets the names of these prompts apart from those of others.
    stamp: String,
    prompts: u64,
    pending: HashMap<String, Pending>,
    sessions: HashMap<String, Session>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Place<'a> {
    #[serde(borrow, default)]
    session_id: Option<Cow<'a, str>>,
    #[serde(default)]
    cwd: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Prompt<'a> {
    #[serde(borrow)]
    prompt: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered<'a> {
    #[serde(borrow, default)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    message_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    update: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow, rename = "sessionUpdate")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    state: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stop_reason: Option<&'a RawValue>,
}

impl Talk {
    pub fn new(stamp: String) -> Self {
        Self { stamp, prompts: 0, pending: HashMap::new(), sessions: HashMap::new() }
    }

    /// Hears a line of the client's. Gives what is to be told before it goes on, or what is asked of oxundo: that does not go on.
    pub fn client(&mut self, line: &[u8]) -> (Vec<Sign>, Option<Asked>) {
        let all = messages(line);
        if let [only] = &all[..]
            && let Some(method) = only.method.as_deref().and_then(|method| method.strip_prefix(OWN))
        {
            let named = read_as::<BTreeMap<Cow<'_, str>, &RawValue>>(only.params).unwrap_or_default();
            let session = named.get("sessionId").map(|named| self.open(named));
            let (id, params) = (only.id.map(RawValue::get), only.params.map_or("{}", RawValue::get));
            let asked = Asked {
                id: id.map(str::to_owned),
                method: method.to_owned(),
                params: params.to_owned(),
                directory: session.flatten().and_then(|session| session.directory.clone()),
                is_astray: session.is_some_and(|session| session.is_none()),
            };
            return (Vec::new(), Some(asked));
        }
        (all.iter().filter_map(|message| self.asked(message)).collect(), None)
    }

    /// The open session of this name.
    fn open(&self, named: &RawValue) -> Option<&Session> {
        let name: String = read_as(Some(named))?;
        self.sessions.get(&name).filter(|session| session.is_open)
    }

    fn asked(&mut self, message: &Message<'_>) -> Option<Sign> {
        let (Some(method), Some(id)) = (message.method.as_deref(), message.key()) else { return None };
        let place = place(message.params);
        let session = place.session_id.map(Cow::into_owned);
        let (pending, sign) = match (method, session) {
            ("initialize", _) => (Pending::Initialize, None),
            ("session/new", _) => (Pending::New(place.cwd), None),
            ("session/load" | "session/resume" | "session/fork", Some(session)) => {
                self.sessions.entry(session.clone()).or_default().loads += 1;
                (Pending::Load { session, directory: place.cwd, is_fork: method == "session/fork" }, None)
            }
            ("session/prompt", Some(session)) => {
                let (number, sign) = self.prompted(&session, message.params);
                (Pending::Prompt { session, number }, Some(sign))
            }
            ("session/close" | "session/delete", Some(session)) => (Pending::Close(session), None),
            _ => return None,
        };
        self.pending.insert(id, pending);
        sign
    }

    fn prompted(&mut self, session: &str, params: Option<&RawValue>) -> (u64, Sign) {
        self.prompts += 1;
        let number = self.prompts;
        let known = self.sessions.entry(session.to_owned()).or_default();
        known.prompt = Some(number);
        known.is_late = false;
        let (prompt_id, prompt) = (Some(format!("{}-{number}", self.stamp)), text_of(params));
        (number, Sign { prompt_id, prompt, ..self.sign("begin", session) })
    }

    fn sign(&self, event: &'static str, session: &str) -> Sign {
        let directory = self.sessions.get(session).and_then(|session| session.directory.clone());
        Sign { event, session: session.to_owned(), directory, prompt_id: None, prompt: None, call: None }
    }

    /// Hears a line of the agent's.
    pub fn agent(&mut self, line: &[u8]) -> Heard {
        let mut heard = Heard::default();
        for message in &messages(line) {
            match message.method.as_deref() {
                Some("session/update") => self.told(message, &mut heard),
                Some(_) => {}
                None => self.answered(message, &mut heard),
            }
        }
        heard
    }

    fn answered(&mut self, message: &Message<'_>, heard: &mut Heard) {
        if message.result.is_none() && message.error.is_none() {
            return;
        }
        let Some(pending) = message.key().and_then(|id| self.pending.remove(&id)) else { return };
        match pending {
            Pending::Initialize => heard.is_introduction = message.result.is_some(),
            Pending::New(directory) => self.opened(message.result, directory),
            Pending::Load { session, directory, is_fork } => {
                if let Some(known) = self.sessions.get_mut(&session) {
                    known.loads = known.loads.saturating_sub(1);
                }
                if message.result.is_some() && !is_fork {
                    self.is_open(session, directory.clone());
                }
                // A fork has another name than what it is from.
                self.opened(message.result, directory);
            }
            Pending::Prompt { session, number } => {
                if let Some(known) = self.sessions.get_mut(&session) {
                    known.is_open |= message.result.is_some();
                }
                let answer = read_as::<Answered<'_>>(message.result);
                // In the draft of version 2 this says that the prompt has come, and a state tells of its end.
                let has_come =
                    answer.as_ref().is_some_and(|answer| answer.message_id.is_some() && answer.stop_reason.is_none());
                if !has_come && self.sessions.get(&session).is_some_and(|known| known.prompt == Some(number)) {
                    let is_done =
                        message.result.is_some() && !answer.is_some_and(|answer| is_cancelled(answer.stop_reason));
                    heard.signs.push(self.ended(&session, is_done));
                }
            }
            Pending::Close(session) => {
                let is_at_work = self.sessions.get(&session).is_some_and(Session::is_at_work);
                if message.result.is_some() && is_at_work {
                    heard.signs.push(self.ended(&session, false));
                }
                if let Some(known) = self.sessions.get_mut(&session) {
                    known.is_open &= message.result.is_none();
                }
            }
        }
    }

    fn opened(&mut self, result: Option<&RawValue>, directory: Option<PathBuf>) {
        if let Some(id) = place(result).session_id {
            self.is_open(id.into_owned(), directory);
        }
    }

    fn is_open(&mut self, session: String, directory: Option<PathBuf>) {
        let known = self.sessions.entry(session).or_default();
        known.directory = directory.or_else(|| known.directory.take());
        known.is_open = true;
    }

    fn ended(&mut self, session: &str, is_done: bool) -> Sign {
        if let Some(known) = self.sessions.get_mut(session) {
            known.prompt = None;
            known.is_late = false;
            known.calls.clear();
        }
        self.sign(if is_done { "end" } else { "abort" }, session)
    }

    fn told(&mut self, message: &Message<'_>, heard: &mut Heard) {
        let Some(Told { session_id: session, update }) = read_as(message.params) else { return };
        let Some(about) = read_as::<Update<'_>>(Some(update)) else { return };
        let Some(known) = self.sessions.get(&*session) else { return };
        // What was said before is told anew when a session is loaded.
        if known.loads > 0 {
            return;
        }
        match &*about.kind {
            word @ ("tool_call" | "tool_call_update") => self.called(&session, update, word == "tool_call", heard),
            "state_update" if about.state.as_deref() == Some("idle") && known.prompt.is_some() => {
                heard.signs.push(self.ended(&session, !is_cancelled(about.stop_reason)));
            }
            _ => {}
        }
    }

    fn called(&mut self, session: &str, update: &RawValue, is_first: bool, heard: &mut Heard) {
        let Some(update) = read_as::<ToolCallUpdate>(Some(update)) else { return };
        let id = update.tool_call_id.0.to_string();
        let is_over = matches!(update.fields.status, Some(ToolCallStatus::Completed | ToolCallStatus::Failed));
        let Some(known) = self.sessions.get_mut(session) else { return };
        let (begun, may_write) = (known.calls.remove(&id), may_write(update.fields.kind));
        // Of one that is not known, something has to say what it is.
        if begun.is_none() && !is_first && update.fields.kind.is_none() {
            return;
        }
        let is_new = begun.is_none();
        let call = begun.unwrap_or_else(|| may_write.then(|| call_of(update)));
        if !is_over {
            known.calls.insert(id, call.clone());
        }
        let Some(call) = call.filter(|_| is_new || is_over) else { return };
        let event = if is_over { "called" } else { "call" };
        known.is_late |= known.prompt.is_none() && event == "call";
        let is_last = known.is_late && known.prompt.is_none() && !known.calls.values().any(Option::is_some);
        heard.signs.push(Sign { call: Some(call), ..self.sign(event, session) });
        if is_last {
            heard.signs.push(self.ended(session, true));
        }
    }

    /// Both sides have gone, or one of them: what is not over is cut off.
    pub fn cut_off(&mut self) -> Vec<Sign> {
        let at_work = self.sessions.iter().filter(|(_, session)| session.is_at_work());
        let at_work: Vec<String> = at_work.map(|(id, _)| id.clone()).collect();
        at_work.iter().map(|session| self.ended(session, false)).collect()
    }
}

impl Session {
    fn is_at_work(&self) -> bool {
        self.prompt.is_some() || self.is_late
    }
}

fn place(raw: Option<&RawValue>) -> Place<'_> {
    read_as(raw).unwrap_or(Place { session_id: None, cwd: None })
}

fn is_cancelled(reason: Option<&RawValue>) -> bool {
    read_as::<StopReason>(reason) == Some(StopReason::Cancelled)
}

/// What the user wrote, block by block. A kind of block that nobody knows yet is left out.
fn text_of(params: Option<&RawValue>) -> Option<String> {
    let blocks = read_as::<Prompt<'_>>(params)?.prompt;
    let texts = blocks.into_iter().filter_map(|block| match read_as::<ContentBlock>(Some(block))? {
        ContentBlock::Text(text) => Some(text.text),
        ContentBlock::ResourceLink(link) => Some(format!("[{}]", link.name)),
        ContentBlock::Resource(resource) => match resource.resource {
            EmbeddedResourceResource::TextResourceContents(text) => Some(format!("[{}]", text.uri)),
            _ => None,
        },
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.trim().is_empty()).then_some(text)
}

/// Whether a call may write, by what the agent says that it does. What it does not say may be anything.
fn may_write(kind: Option<ToolKind>) -> bool {
    !matches!(kind, Some(ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch | ToolKind::SwitchMode))
}

fn call_of(update: ToolCallUpdate) -> Call {
    let fields = update.fields;
    let word = match fields.kind {
        Some(ToolKind::Edit) => "edit",
        Some(ToolKind::Delete) => "delete",
        Some(ToolKind::Move) => "move",
        Some(ToolKind::Execute) => "execute",
        _ => "other",
    };
    let located = fields.locations.into_iter().flatten().map(|location| location.path);
    let diffs = fields.content.into_iter().flatten().filter_map(|content| match content {
        ToolCallContent::Diff(diff) => Some(diff.path),
        _ => None,
    });
    let mut paths: Vec<PathBuf> = located.chain(diffs).collect();
    paths.sort();
    paths.dedup();
    let path = if let [only] = &paths[..] { only.to_str().map(str::to_owned) } else { None };
    let given = fields.raw_input.as_ref().and_then(|input| Some(input.get("command")?.as_str()?.to_owned()));
    let is_command = fields.kind == Some(ToolKind::Execute);
    let command = given.or_else(|| fields.title.clone()).filter(|_| is_command);
    let tool = fields.name.filter(|name| !name.is_empty()).unwrap_or_else(|| word.to_owned());
    Call { id: update.tool_call_id.0.to_string(), tool, path: path.filter(|_| !is_command), command }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn talk() -> Talk {
        let mut talk = Talk::new("t".to_owned());
        talk.client(&line(&json!({"id": 0, "method": "session/new", "params": {"cwd": "/w"}})));
        talk.agent(&line(&json!({"id": 0, "result": {"sessionId": "s"}})));
        talk
    }

    fn line(value: &Value) -> Vec<u8> {
        format!("{value}\n").into_bytes()
    }

    fn prompt(talk: &mut Talk, id: &Value, session: &str) -> Vec<&'static str> {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "do it"}]});
        events(&talk.client(&line(&json!({"id": id, "method": "session/prompt", "params": params}))).0)
    }

    fn events(signs: &[Sign]) -> Vec<&'static str> {
        signs.iter().map(|sign| sign.event).collect()
    }

    fn answer(talk: &mut Talk, id: &Value, rest: Value) -> Vec<&'static str> {
        let Value::Object(mut all) = rest else { panic!("an object") };
        all.insert("id".to_owned(), id.clone());
        let heard = talk.agent(&line(&Value::Object(all)));
        events(&heard.signs)
    }

    fn update(talk: &mut Talk, session: &str, update: &Value) -> Vec<&'static str> {
        let params = json!({"sessionId": session, "update": update});
        let heard = talk.agent(&line(&json!({"method": "session/update", "params": params})));
        events(&heard.signs)
    }

    fn call(id: &str, status: &str) -> Value {
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "x", "kind": "edit", "status": status})
    }

    #[test]
    fn a_prompt_is_over_when_it_is_answered_and_not_before() {
        for (rest, wanted) in [
            (json!({"result": {"stopReason": "end_turn"}}), "end"),
            (json!({"result": {"stopReason": "something new"}}), "end"),
            (json!({"result": {"stopReason": "cancelled"}}), "abort"),
            (json!({"error": {"code": -1, "message": "no"}}), "abort"),
        ] {
            let mut talk = talk();
            assert_eq!(prompt(&mut talk, &json!(1), "s"), ["begin"]);
            talk.client(&line(&json!({"method": "session/cancel", "params": {"sessionId": "s"}})));
            assert!(answer(&mut talk, &json!("1"), rest.clone()).is_empty(), "another id");
            let asks = json!({"id": 1, "method": "fs/write_text_file", "params": {"sessionId": "s"}});
            assert_eq!(talk.agent(&line(&asks)), Heard::default(), "the agent has ids of its own");
            talk.client(&line(&json!({"id": 1, "result": {}})));
            assert_eq!(answer(&mut talk, &json!(1), rest), [wanted]);
            assert!(talk.cut_off().is_empty());
        }
    }

    #[test]
    fn a_session_has_the_directory_that_it_was_given() {
        let mut talk = talk();
        let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "a\nb"}, {"type": "later"},
            {"type": "resource_link", "name": "c.rs", "uri": "file:///c.rs"}]});
        let sign = talk.client(&line(&json!({"id": 7, "method": "session/prompt", "params": params}))).0.remove(0);
        assert_eq!((sign.directory, sign.prompt.as_deref()), (Some("/w".into()), Some("a\nb\n[c.rs]")));
        talk.client(&line(&json!({"id": 8, "method": "session/fork", "params": {"sessionId": "s", "cwd": "/v"}})));
        answer(&mut talk, &json!(8), json!({"result": {"sessionId": "f"}}));
        talk.client(&line(&json!({"id": 9, "method": "session/load", "params": {"sessionId": "old", "cwd": "/u"}})));
        answer(&mut talk, &json!(9), json!({"result": null}));
        for (session, directory) in [("s", "/w"), ("f", "/v"), ("old", "/u")] {
            let own = json!({"id": 1.5, "method": "_oxundo/undo", "params": {"sessionId": session}});
            let asked = talk.client(&line(&own)).1.expect("it is for oxundo");
            assert_eq!((asked.directory, asked.id.as_deref()), (Some(directory.into()), Some("1.5")), "{session}");
        }
    }

    #[test]
    fn a_session_that_is_not_open_is_nowhere() {
        let mut talk = talk();
        let is_astray = |talk: &mut Talk, params: &str| {
            let own = format!("{{\"id\":1,\"method\":\"_oxundo/undo\",\"params\":{params}}}\n");
            talk.client(own.as_bytes()).1.expect("it is for oxundo").is_astray
        };
        assert!(!is_astray(&mut talk, "{}") && !is_astray(&mut talk, r#"{"sessionId":"s"}"#));
        for session in ["7", "null", "[]", "\"S\"", "\"\"", "\"s \"", "\"s\",\"sessionId\":\"t\""] {
            assert!(is_astray(&mut talk, &format!("{{\"sessionId\":{session}}}")), "{session}");
        }
        let t = r#"{"sessionId":"t"}"#;
        talk.client(&line(&json!({"id": 2, "method": "session/load", "params": {"sessionId": "t", "cwd": "/v"}})));
        answer(&mut talk, &json!(2), json!({"error": {"code": -1, "message": "no such session"}}));
        prompt(&mut talk, &json!(3), "t");
        answer(&mut talk, &json!(3), json!({"error": {"code": -1, "message": "no such session"}}));
        assert!(is_astray(&mut talk, t), "the agent does not know it");
        prompt(&mut talk, &json!(4), "t");
        answer(&mut talk, &json!(4), json!({"result": {"stopReason": "end_turn"}}));
        assert!(!is_astray(&mut talk, t), "it does now");
        for (error, wanted) in [(json!({"error": {"code": -1, "message": "no"}}), false), (json!({"result": {}}), true)]
        {
            talk.client(&line(&json!({"id": 5, "method": "session/close", "params": {"sessionId": "t"}})));
            answer(&mut talk, &json!(5), error);
            assert_eq!(is_astray(&mut talk, t), wanted, "once it is closed");
        }
        // What an agent refuses to load stays where it is.
        talk.client(&line(&json!({"id": 6, "method": "session/load", "params": {"sessionId": "s", "cwd": "/u"}})));
        answer(&mut talk, &json!(6), json!({"error": {"code": -1, "message": "no"}}));
        let own = json!({"id": 1, "method": "_oxundo/undo", "params": {"sessionId": "s"}});
        assert_eq!(talk.client(&line(&own)).1.expect("it is for oxundo").directory, Some("/w".into()));
    }

    #[test]
    fn what_is_told_anew_is_no_call() {
        let mut talk = talk();
        talk.client(&line(&json!({"id": 1, "method": "session/load", "params": {"sessionId": "s", "cwd": "/w"}})));
        assert!(update(&mut talk, "s", &call("c", "pending")).is_empty());
        answer(&mut talk, &json!(1), json!({"result": null}));
        assert_eq!(update(&mut talk, "s", &call("d", "pending")), ["call"], "it is at work by itself");
        assert_eq!(update(&mut talk, "s", &call("d", "completed")), ["called", "end"]);
        assert!(update(&mut talk, "nobody", &call("d", "pending")).is_empty());
    }

    #[test]
    fn a_call_begins_once_and_ends_once() {
        let mut talk = talk();
        prompt(&mut talk, &json!(1), "s");
        assert_eq!(update(&mut talk, "s", &call("c", "pending")), ["call"]);
        assert!(update(&mut talk, "s", &call("c", "in_progress")).is_empty());
        assert_eq!(update(&mut talk, "s", &call("c", "failed")), ["called"]);
        let mut reads = call("r", "pending");
        reads["kind"] = json!("read");
        assert!(update(&mut talk, "s", &reads).is_empty());
        let over = |id: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"});
        assert!(update(&mut talk, "s", &over("r")).is_empty(), "which only reads is not said again");
        assert!(update(&mut talk, "s", &over("unheard")).is_empty());
        assert_eq!(update(&mut talk, "s", &call("d", "pending")), ["call"]);
        assert_eq!(talk.cut_off().iter().map(|sign| sign.event).collect::<Vec<_>>(), ["abort"]);
    }

    #[test]
    fn a_later_prompt_of_a_session_is_the_one_that_counts() {
        let mut talk = talk();
        prompt(&mut talk, &json!(1), "s");
        assert_eq!(prompt(&mut talk, &json!(2), "s"), ["begin"]);
        let done = json!({"result": {"stopReason": "end_turn"}});
        assert!(answer(&mut talk, &json!(1), done.clone()).is_empty());
        assert_eq!(answer(&mut talk, &json!(2), done), ["end"]);
    }

    #[test]
    fn in_the_draft_of_version_2_a_state_ends_a_prompt() {
        let mut talk = talk();
        prompt(&mut talk, &json!(1), "s");
        assert!(answer(&mut talk, &json!(1), json!({"result": {"messageId": "m"}})).is_empty());
        assert!(update(&mut talk, "s", &json!({"sessionUpdate": "state_update", "state": "running"})).is_empty());
        let idle = json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "cancelled"});
        assert_eq!(update(&mut talk, "s", &idle), ["abort"]);
        assert!(update(&mut talk, "s", &idle).is_empty());
    }

    #[test]
    fn a_call_names_the_one_file_that_it_is_about() {
        let read = |value: Value| call_of(serde_json::from_value(value).expect("a call"));
        let edit = json!({"toolCallId": "c", "kind": "edit", "locations": [{"path": "/w/a"}],
            "content": [{"type": "diff", "path": "/w/a", "newText": "x"}]});
        assert_eq!((read(edit.clone()).tool.as_str(), read(edit.clone()).path.as_deref()), ("edit", Some("/w/a")));
        let mut two = edit;
        two["locations"] = json!([{"path": "/w/a"}, {"path": "/w/b"}]);
        assert_eq!(read(two).path, None);
        let run = json!({"toolCallId": "c", "kind": "execute", "title": "make", "rawInput": {"command": "make all"}});
        assert_eq!((read(run.clone()).command.as_deref(), read(run).path), (Some("make all"), None));
        assert_eq!(read(json!({"toolCallId": "c"})).tool, "other");
    }
}
