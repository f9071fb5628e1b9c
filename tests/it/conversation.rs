//! `undo --conversation`: a copy of the agent's transcript that ends before the undone prompt. The transcripts are made here, a line
//! as the agents write it; what the agents make of the copies is proved by `tests/agents/run --conversation`.

use crate::form::part;
use crate::sandbox::{Output, Sandbox};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

/// How one agent's transcript is written.
pub(crate) struct Form {
    agent: &'static str,
    title: &'static str,
    /// Below the home directory.
    file: &'static str,
    session: &'static str,
    resume: &'static str,
    /// What a transcript begins with.
    header: fn(&str) -> Vec<Value>,
    /// A prompt and its answer: from the number, the line before it, and the session.
    said: fn(u64, &str, &str, &str) -> [Value; 2],
}

const V4: &str = "7d9f0c1e-5a44-4b7e-9a53-2f1c8f1d6b10";
const V7: &str = "01a2088f-98cb-75e2-a5f9-b6cf51ee1601";

pub(crate) const CLAUDE: Form = Form {
    agent: "claude",
    title: "Claude Code",
    file: ".claude/projects/-repo/{}.jsonl",
    session: V4,
    resume: "claude --resume {}",
    header: |id| vec![json!({"type": "mode", "mode": "normal", "sessionId": id})],
    said: |n, text, before, id| {
        let (said, before) = (format!("said-{n}"), if n == 1 { Value::Null } else { json!(before) });
        [
            json!({"parentUuid": before, "promptId": format!("p{n}"), "type": "user", "uuid": said, "sessionId": id,
                "message": {"role": "user", "content": text}}),
            json!({"parentUuid": said, "type": "assistant", "uuid": format!("answer-{n}"), "sessionId": id,
                "message": {"role": "assistant", "content": [{"type": "text", "text": format!("answer {n}, \"sessionId\":\"{id}\"")}]}}),
        ]
    },
};

const CODEX: Form = Form {
    agent: "codex",
    title: "Codex",
    file: ".codex/sessions/2026/11/23/rollout-2026-11-23T13-19-18-{}.jsonl",
    session: V7,
    resume: "codex resume {}",
    header: |id| vec![json!({"type": "session_meta", "payload": {"session_id": id, "id": id, "cwd": "/"}})],
    said: |n, text, _, id| {
        let turn = format!("p{n}");
        [
            json!({"type": "event_msg", "payload": {"type": "task_started", "thread_id": id, "turn_id": turn, "text": text}}),
            json!({"type": "response_item", "payload": {"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": format!("answer {n}")}]}}),
        ]
    },
};

const GEMINI: Form = Form {
    agent: "gemini",
    title: "Gemini CLI",
    file: ".gemini/tmp/repo/chats/session-2026-11-23T13-19-{8}.jsonl",
    session: V4,
    resume: "gemini --resume {}",
    header: |id| {
        let context = json!({"id": "c", "type": "user", "content": [{"text": "<session_context>"}]});
        vec![json!({"sessionId": id, "kind": "main"}), json!({"$set": {"messages": [context]}})]
    },
    said: |n, text, _, _| {
        [
            json!({"id": format!("said-{n}"), "type": "user", "content": [{"text": text}]}),
            json!({"id": format!("answer-{n}"), "type": "gemini", "content": format!("answer {n}")}),
        ]
    },
};

const QWEN: Form = Form {
    agent: "qwen",
    title: "Qwen Code",
    file: ".qwen/projects/-repo/chats/{}.jsonl",
    session: V4,
    resume: "qwen --resume {}",
    header: |_| Vec::new(),
    said: |n, text, before, id| {
        let (said, before) = (format!("said-{n}"), if n == 1 { Value::Null } else { json!(before) });
        [
            json!({"uuid": said, "parentUuid": before, "sessionId": id, "type": "user",
                "message": {"role": "user", "parts": [{"text": text}]}}),
            json!({"uuid": format!("answer-{n}"), "parentUuid": said, "sessionId": id, "type": "assistant",
                "message": {"role": "model", "parts": [{"text": format!("answer {n}")}]}}),
        ]
    },
};

const PI: Form = Form {
    agent: "pi",
    title: "pi",
    file: ".pi/agent/sessions/--repo--/2026-11-23T13-20-56-374Z_{}.jsonl",
    session: V7,
    resume: "pi --session {}",
    header: |id| {
        vec![
            json!({"type": "session", "version": 3, "id": id, "cwd": "/"}),
            json!({"type": "model_change", "id": "answer-0", "parentId": null}),
        ]
    },
    said: |n, text, before, _| {
        let said = format!("said-{n}");
        [
            json!({"type": "message", "id": said, "parentId": before,
                "message": {"role": "user", "content": [{"type": "text", "text": text}]}}),
            json!({"type": "message", "id": format!("answer-{n}"), "parentId": said,
                "message": {"role": "assistant", "content": [{"type": "text", "text": format!("answer {n}")}]}}),
        ]
    },
};

const FORMS: [&Form; 5] = [&CLAUDE, &CODEX, &GEMINI, &QWEN, &PI];

/// A session of an agent, with its transcript.
pub(crate) struct Chat<'r> {
    repo: &'r Sandbox,
    form: &'static Form,
    session: String,
    pub(crate) path: PathBuf,
    prompts: u64,
    /// The id of the last answer.
    last: String,
    /// Whether its hooks tell of calls.
    calls: bool,
}

impl<'r> Chat<'r> {
    pub(crate) fn new(repo: &'r Sandbox, form: &'static Form) -> Self {
        Self::of(repo, form, form.session)
    }

    fn of(repo: &'r Sandbox, form: &'static Form, session: &str) -> Self {
        let name = form.file.replace("{}", session).replace("{8}", &session[..8]);
        let chat = Self {
            repo,
            form,
            session: session.to_owned(),
            path: repo.home().join(name),
            prompts: 0,
            last: "answer-0".into(),
            calls: false,
        };
        fs::create_dir_all(chat.path.parent().expect("a directory")).expect("make a directory");
        chat.add(&(form.header)(session));
        fs::set_permissions(&chat.path, PermissionsExt::from_mode(0o600)).expect("close it");
        chat
    }

    /// The session of a copy, from the answer of an undo.
    fn copy(&self, undone: &Value) -> Self {
        let fork = &undone["conversations"][0]["fork"];
        Self {
            session: fork["session"].as_str().expect("a session").to_owned(),
            path: fork["transcript"].as_str().expect("a file").into(),
            last: format!("answer-{}", self.prompts - 1),
            ..*self
        }
    }

    fn add(&self, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.append(text.as_bytes());
    }

    pub(crate) fn append(&self, text: &[u8]) {
        let mut file = fs::File::options().create(true).append(true).open(&self.path).expect("open the transcript");
        file.write_all(text).expect("write the transcript");
    }

    fn hook(&self, event: &str, text: &str) {
        let payload = json!({"session_id": self.session, "prompt_id": format!("p{}", self.prompts), "prompt": text,
            "submitted_prompt": text, "transcript_path": self.path.to_string_lossy(),
            "tool_name": "Bash", "tool_use_id": format!("t{}", self.prompts), "tool_input": {"command": "echo"}});
        let mut command = self.repo.oxundo_command(["hook", self.form.agent, event]);
        let payload = payload.to_string();
        // The agent is to be no child of a thread that waits for all that it traces.
        let fired = std::thread::scope(|scope| scope.spawn(|| Output::fired(&mut command, payload.as_bytes())).join());
        let output = fired.expect("a hook is fired");
        output.success();
    }

    /// A prompt, which appends a line to a file, and its answer. An agent may write the prompt down before its hook hears of it.
    fn prompt_at(&mut self, text: &str, file: &str, is_early: bool) {
        self.prompts += 1;
        let [said, answer] = (self.form.said)(self.prompts, text, &self.last, &self.session);
        self.last = format!("answer-{}", self.prompts);
        if is_early {
            self.add(std::slice::from_ref(&said));
        }
        self.hook("begin", text);
        if !is_early {
            self.add(&[said]);
        }
        if self.calls {
            self.hook("call", text);
        }
        self.repo.sh(&format!("echo {} >>{file}", self.prompts));
        if self.calls {
            self.hook("called", text);
            // After its last step.
            self.repo.sh(&format!("echo after >>{file}-after"));
        }
        self.add(&[answer]);
        self.hook("end", text);
    }

    fn prompt(&mut self, text: &str) {
        self.prompt_at(text, "a.txt", false);
    }

    pub(crate) fn three(&mut self) -> &Self {
        for text in ["add one", "add two", "add three"] {
            self.prompt(text);
        }
        self
    }

    pub(crate) fn text(&self) -> String {
        fs::read_to_string(&self.path).expect("read the transcript")
    }

    fn resume(&self) -> String {
        self.form.resume.replace("{}", &self.session)
    }
}

pub(crate) fn repo() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo
}

/// All files below the places where agents keep conversations, by their paths.
pub(crate) fn kept(repo: &Sandbox) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut left) = (BTreeMap::new(), vec![repo.home()]);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).expect("list it").flatten() {
            let path = entry.path();
            if entry.file_type().expect("a type").is_dir() {
                left.push(path);
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            let text = if path.is_file() { fs::read(&path).expect("read it") } else { Vec::new() };
            if path.extension().is_some_and(|end| end == "jsonl") || name.starts_with(".oxundo") {
                found.insert(path, text);
            }
        }
    }
    found
}

fn undo(repo: &Sandbox, args: &[&str]) -> Value {
    let (code, undone) = repo.json(["undo", "--conversation"].iter().chain(args));
    assert_eq!(code, 0, "{undone}");
    undone
}

/// Undo says that there is no copy, and why; the files are undone all the same.
#[track_caller]
fn not_forked(repo: &Sandbox, args: &[&str], why: &str) {
    let before = kept(repo);
    let head = repo.head();
    let output = repo.oxundo(["undo", "--conversation"].iter().chain(args));
    output.success();
    output.warns("conversation is not forked: ");
    output.warns(why);
    assert!(repo.head() != head || repo.log().len() > 1, "the files are undone");
    assert_eq!(kept(repo), before, "nothing is made, and nothing changed");
}

#[test]
fn each_agents_copy_ends_before_the_undone_prompt_and_the_original_stays() {
    for form in FORMS {
        let repo = repo();
        let mut chat = Chat::new(&repo, form);
        chat.three();
        // What comes in while it is undone, as far as it is written.
        chat.append(b"{\"type\":\"user\",\"torn");
        let before = kept(&repo);
        let dry = undo(&repo, &["--dry-run"]);
        assert_eq!(kept(&repo), before, "{}: a dry run makes nothing", form.agent);

        let undone = undo(&repo, &[]);
        let copy = chat.copy(&undone);
        assert_eq!(dry["conversations"], undone["conversations"], "{}: it told of this", form.agent);
        assert_eq!(undone["conversations"][0]["fork"]["resume"], copy.resume(), "{}", form.agent);
        let lines: Vec<String> = copy.text().lines().map(str::to_owned).collect();
        let wanted: Vec<&str> = before[&chat.path]
            .split(|byte| *byte == b'\n')
            .map(|line| std::str::from_utf8(line).expect("a text"))
            .collect();
        let wanted = &wanted[..wanted.len() - 3];
        assert_eq!(lines.len(), wanted.len(), "{}: {lines:?}", form.agent);
        for (line, wanted) in lines.iter().zip(wanted) {
            // A text that quotes the id stays as it is.
            let quoted = wanted.replace(&format!("\\\"{}\\\"", chat.session), "QUOTED");
            let renamed =
                quoted.replace(&chat.session, &copy.session).replace("QUOTED", &format!("\\\"{}\\\"", chat.session));
            assert_eq!(*line, renamed, "{}", form.agent);
        }
        assert!(!copy.text().contains("add three") && copy.text().contains("answer 2"), "{}", form.agent);
        assert_eq!(copy.session.len(), 36, "{}", copy.session);
        assert_eq!(copy.session[14..15], chat.session[14..15], "{}: an id of the same kind", form.agent);
        assert_eq!(
            fs::metadata(&copy.path).expect("it is there").permissions().mode() & 0o7777,
            0o600,
            "{}",
            form.agent
        );
        let mut all = before.clone();
        all.insert(copy.path.clone(), copy.text().into_bytes());
        assert_eq!(kept(&repo), all, "{}: one file is new, and no other changed", form.agent);

        let redone = repo.oxundo(["redo"]);
        redone.warns(&format!("hint: '{}' takes up {}'s conversation with it", chat.resume(), form.title));
        let again = repo.oxundo(["undo", "--conversation"]);
        again.says(&format!("Forked {}'s conversation before it: {}\n", form.title, copy.resume()));
        again.warns(&format!("hint: '{}' takes up {}'s conversation as it was", chat.resume(), form.title));
        assert_eq!(kept(&repo), all, "{}: it is the same copy", form.agent);

        // Somebody goes on with it, and undoes once more.
        copy.add(&[json!({"gone": "on"})]);
        all.insert(copy.path.clone(), copy.text().into_bytes());
        repo.redo();
        let other = chat.copy(&undo(&repo, &[]));
        assert_ne!(other.session, copy.session, "{}: another copy", form.agent);
        assert_eq!(
            other.text(),
            String::from_utf8_lossy(&all[&copy.path])
                .replace("{\"gone\":\"on\"}\n", "")
                .replace(&copy.session, &other.session)
        );
        all.insert(other.path.clone(), other.text().into_bytes());
        assert_eq!(kept(&repo), all, "{}", form.agent);
    }
}

#[test]
fn the_configuration_asks_for_it_and_nothing_that_only_looks_makes_a_copy() {
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.three();
    let before = kept(&repo);
    let (_, plan) = repo.json(["undo", "--conversation", "--plan"]);
    repo.oxundo(["status"]).success();
    assert_eq!(kept(&repo), before, "a plan makes no copy");
    repo.git(["config", "oxundo.conversation", "fork"]);
    let (_, applied) = repo.json(["apply", plan["plan"].as_str().expect("an id")]);
    let copy = chat.copy(&applied);
    assert!(copy.text().contains("answer 2") && !copy.text().contains("answer 3"), "{}", copy.text());
    let undone = repo.oxundo(["undo"]);
    undone.success();
    undone.says("Forked Claude Code's conversation before it: claude --resume ");
    assert_eq!(kept(&repo).len(), before.len() + 2);
    repo.redo();
    repo.git(["config", "oxundo.conversation", "hint"]);
    repo.oxundo(["undo"]).warns("Claude Code still remembers it");
    assert_eq!(kept(&repo).len(), before.len() + 2, "it is not asked for");
}

#[test]
fn several_prompts_at_once_and_a_prompt_given_twice_are_told_apart() {
    for form in FORMS {
        for is_early in [false, true] {
            let repo = repo();
            let mut chat = Chat::new(&repo, form);
            for _ in 0..4 {
                chat.prompt_at("go on", "a.txt", is_early);
            }
            let copy = chat.copy(&undo(&repo, &[]));
            assert_eq!(copy.text().matches("go on").count(), 3, "{} {is_early}: {}", form.agent, copy.text());
            assert!(copy.text().contains("answer 3") && !copy.text().contains("answer 4"), "{}", form.agent);
            let copy = chat.copy(&undo(&repo, &["2"]));
            assert_eq!(copy.text().matches("go on").count(), 1, "{} {is_early}: {}", form.agent, copy.text());
            not_forked(&repo, &[], "it begins with the undone prompt: start a new one");
        }
    }
}

#[test]
fn a_turn_in_the_middle_and_parts_of_turns_take_no_conversation_back() {
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    for (at, text) in ["one", "two", "three", "four"].into_iter().enumerate() {
        chat.prompt_at(text, &format!("{at}.txt"), false);
    }
    not_forked(&repo, &["--only", "2"], "what is undone is not the end of it: later turns of the session stay");
    repo.oxundo(["redo"]).success();
    not_forked(&repo, &["--", "3.txt"], "only a part of what it is about is undone");
    repo.oxundo(["redo"]).success();
    let copy = chat.copy(&undo(&repo, &["--only", "4"]));
    assert!(copy.text().contains("answer 3") && !copy.text().contains("answer 4"), "{}", copy.text());
    // What was taken out before is no turn that stays.
    let copy = chat.copy(&undo(&repo, &["--only", "3"]));
    assert!(copy.text().contains("answer 2") && !copy.text().contains("answer 3"), "{}", copy.text());
    let redone = repo.oxundo(["redo"]);
    redone.success();
    redone.warns(&format!("hint: '{}' takes up Claude Code's conversation with it", chat.resume()));
    let copy = chat.copy(&undo(&repo, &["--to", "1"]));
    assert!(copy.text().contains("answer 1") && !copy.text().contains("answer 2"), "{}", copy.text());
}

#[test]
fn a_step_takes_no_conversation_back() {
    let repo = repo();
    let mut chat = Chat { calls: true, ..Chat::new(&repo, &CLAUDE) };
    chat.prompt_at("one", "1", false);
    chat.prompt_at("two", "2", false);
    chat.prompt_at("three", "3", false);
    not_forked(&repo, &["--to", "3.1"], "only a part of what it is about is undone");
    repo.oxundo(["redo"]).success();
    not_forked(&repo, &["--only", "3.1"], "only a part of what it is about is undone");
}

#[test]
fn by_revert_and_by_session_it_goes_too() {
    let repo = repo();
    let mut chat = Chat::new(&repo, &GEMINI);
    chat.three();
    let copy = chat.copy(&undo(&repo, &["--revert"]));
    assert!(copy.text().contains("answer 2") && !copy.text().contains("answer 3"), "{}", copy.text());
    repo.oxundo(["undo"]).success();
    let copy = chat.copy(&undo(&repo, &["--session", &chat.session]));
    assert!(copy.text().contains("answer 2") && !copy.text().contains("answer 3"), "{}", copy.text());
}

#[test]
fn two_sessions_undone_at_once_have_a_copy_each() {
    let repo = repo();
    let mut first = Chat::new(&repo, &CLAUDE);
    let mut second = Chat::of(&repo, &CLAUDE, "99999999-5a44-4b7e-9a53-2f1c8f1d6b10");
    let mut third = Chat::new(&repo, &CODEX);
    for _ in 0..2 {
        first.prompt("first");
        second.prompt("second");
        third.prompt("third");
    }
    let undone = undo(&repo, &["3"]);
    let forks: BTreeMap<&str, &Value> = (undone["conversations"].as_array().expect("a list").iter())
        .map(|one| (one["session"].as_str().expect("an id"), &one["fork"]))
        .collect();
    assert_eq!(forks.len(), 3, "{undone}");
    for (chat, word) in [(&first, "first"), (&second, "second"), (&third, "third")] {
        let path = forks[chat.session.as_str()]["transcript"].as_str().expect("a file");
        let text = fs::read_to_string(path).expect("read it");
        assert_eq!((text.matches(word).count(), text.contains("answer 2")), (1, false), "{text}");
    }
}

#[test]
fn a_copy_that_was_gone_on_with_is_one_conversation_with_its_original() {
    for form in FORMS {
        let repo = repo();
        let mut chat = Chat::new(&repo, form);
        for (text, file) in [("add one", "1"), ("add two", "2"), ("add three", "3")] {
            chat.prompt_at(text, file, false);
        }
        let mut copy = chat.copy(&undo(&repo, &[]));
        copy.prompts = 10;
        copy.prompt_at("add four", "4", false);
        assert!(copy.text().contains("answer 11"), "{}", copy.text());
        not_forked(&repo, &["--only", "2"], "later turns of the session stay");
        repo.oxundo(["redo"]).success();
        let before = kept(&repo).len();
        let undone = undo(&repo, &["2"]);
        let copies: Vec<&str> = (undone["conversations"].as_array().expect("a list").iter())
            .map(|one| one["fork"]["transcript"].as_str().expect("a file"))
            .collect();
        assert_eq!((copies.len(), copies[0] == copies[1]), (2, true), "{}: the same for both: {undone}", form.agent);
        let text = fs::read_to_string(copies[0]).expect("read it");
        assert!(text.contains("answer 1") && !text.contains("add two") && !text.contains("add four"), "{text}");
        assert_eq!(kept(&repo).len(), before + 1, "{}: one copy", form.agent);
    }
}

/// What is in a transcript's place, and what is said of it.
type Odd = (&'static str, fn(&Chat<'_>), &'static str);

#[test]
fn what_is_no_transcript_of_the_users_own_is_let_alone() {
    let odd: [Odd; 7] = [
        ("gone", |chat| fs::remove_file(&chat.path).expect("remove it"), "' is gone"),
        (
            "a link",
            |chat| {
                let aside = chat.path.with_extension("aside");
                fs::rename(&chat.path, &aside).expect("move it");
                std::os::unix::fs::symlink(&aside, &chat.path).expect("make a link");
            },
            "' is a symbolic link",
        ),
        (
            "a pipe",
            |chat| {
                fs::remove_file(&chat.path).expect("remove it");
                let made = std::process::Command::new("mkfifo").arg(&chat.path).status();
                assert!(made.is_ok_and(|status| status.success()), "make a pipe");
            },
            "' is no file",
        ),
        (
            "a directory",
            |chat| {
                fs::remove_file(&chat.path).expect("remove it");
                fs::create_dir(&chat.path).expect("make a directory");
            },
            "' is no file",
        ),
        ("empty", |chat| fs::write(&chat.path, "").expect("empty it"), "the undone prompt is not in '"),
        (
            "nonsense",
            |chat| fs::write(&chat.path, "[{]\n\n42\nnull\n\"x\"\n").expect("write it"),
            "the undone prompt is not in '",
        ),
        (
            "no UTF-8",
            |chat| fs::write(&chat.path, [0xff, 0xfe, b'\n', 0, b'\n']).expect("write it"),
            "the undone prompt is not in '",
        ),
    ];
    for (what, make, why) in odd {
        let repo = repo();
        let mut chat = Chat::new(&repo, &CLAUDE);
        chat.three();
        make(&chat);
        not_forked(&repo, &[], why);
        repo.assert_file("a.txt", "one\n1\n2\n", what);
    }
}

/// A way to write a line as `serde_json` does not.
type Odder = (&'static str, fn(&str) -> Vec<u8>);

#[test]
fn what_agents_read_though_it_is_odd_json_is_in_the_copy() {
    let odder: [Odder; 5] = [
        ("half of a character", |line| line.replace("answer 2", "answer 2 \\ud83d").into_bytes()),
        ("a number beyond all bounds", |line| line.replacen('{', "{\"q\":1e400,", 1).into_bytes()),
        ("many brackets", |line| {
            line.replacen('{', &format!("{{\"q\":{}{},", "[".repeat(130), "]".repeat(130)), 1).into_bytes()
        }),
        ("no UTF-8", |line| {
            let (before, after) = line.split_once("answer 2").expect("it says so");
            [before.as_bytes(), b"answer 2\xff", after.as_bytes()].concat()
        }),
        ("a control character", |line| line.replace("answer 2", "\u{1}answer 2").into_bytes()),
    ];
    let all = FORMS.into_iter().flat_map(|form| odder.map(|odder| (form, odder)));
    for (form, (what, write)) in part(all) {
        let repo = repo();
        let mut chat = Chat::new(&repo, form);
        chat.three();
        let text = chat.text();
        let line = text.lines().find(|line| line.contains("answer 2")).expect("the answer");
        let (before, after) = text.split_once(line).expect("it is there");
        fs::write(&chat.path, [before.as_bytes(), &write(line), after.as_bytes()].concat()).expect("write it");
        let copy = chat.copy(&undo(&repo, &[]));
        let text = fs::read(&copy.path).expect("read it");
        let has = |words: &[u8]| text.windows(words.len()).any(|part| part == words);
        for words in ["add one", "answer 1", "add two"] {
            assert!(has(words.as_bytes()), "{}, {what}: {words}", form.agent);
        }
        let line = String::from_utf8_lossy(&write(line)).into_owned();
        let line = line.split("answer 2").next().expect("its beginning").replace(&chat.session, &copy.session);
        assert!(has(line.as_bytes()) && has(b"answer 2"), "{}, {what}: as it was", form.agent);
        assert!(!has(b"add three"), "{}, {what}", form.agent);
    }
}

#[test]
fn where_a_torn_line_leads_to_the_prompt_there_is_no_copy_that_lacks_something() {
    for form in [&CLAUDE, &QWEN, &PI] {
        let repo = repo();
        let mut chat = Chat::new(&repo, form);
        chat.three();
        let text = chat.text();
        let line = text.lines().find(|line| line.contains("answer 2")).expect("the answer");
        fs::write(&chat.path, text.replace(line, &format!("{:1$}", &line[..line.len() - 9], line.len())))
            .expect("write it");
        not_forked(&repo, &[], "cannot be read, and a copy might lack what came before");
    }
}

#[test]
fn in_a_transcript_that_was_rewritten_no_other_prompt_is_taken_for_the_undone_one() {
    for (form, pad) in [(&GEMINI, 150), (&GEMINI, 300), (&PI, 300), (&QWEN, 150)] {
        let rewrite = |chat: &Chat<'_>| {
            let text = chat.text().replacen('{', &format!("{{\"q\":\"{}\",", "x".repeat(pad)), 1);
            fs::write(&chat.path, text).expect("write it");
        };
        let repo = repo();
        let mut chat = Chat::new(&repo, form);
        rewrite(chat.three());
        let copy = chat.copy(&undo(&repo, &[])).text();
        assert!(copy.contains("answer 2") && !copy.contains("add three"), "{} {pad}: {copy}", form.agent);

        let repo = self::repo();
        let mut chat = Chat::new(&repo, form);
        for _ in 0..3 {
            chat.prompt("go on");
        }
        rewrite(&chat);
        not_forked(&repo, &[], "is the undone one is not certain");
    }
}

#[test]
fn whatever_stands_at_the_copys_name_is_let_alone_and_not_waited_for() {
    type Make = fn(&PathBuf);
    let odd: [(&str, Make); 5] = [
        ("a pipe", |path| {
            let made = std::process::Command::new("mkfifo").arg(path).status();
            assert!(made.is_ok_and(|status| status.success()), "make a pipe");
        }),
        ("a link to a device", |path| std::os::unix::fs::symlink("/dev/zero", path).expect("make a link")),
        ("a link to nothing", |path| std::os::unix::fs::symlink("nothing", path).expect("make a link")),
        ("a directory", |path| fs::create_dir(path).expect("make a directory")),
        ("a huge file", |path| fs::File::create(path).and_then(|file| file.set_len(1 << 40)).expect("make a file")),
    ];
    for (what, make) in odd {
        let repo = repo();
        let mut chat = Chat::new(&repo, &CLAUDE);
        chat.three();
        let first = chat.copy(&undo(&repo, &["--dry-run"]));
        make(&first.path);
        let before = first.path.symlink_metadata().expect("it is there");
        let copy = chat.copy(&undo(&repo, &[]));
        assert_ne!(copy.path, first.path, "{what}");
        assert!(copy.text().contains("answer 2") && !copy.text().contains("add three"), "{what}");
        let after = first.path.symlink_metadata().expect("it is there");
        assert_eq!((before.ino(), before.len()), (after.ino(), after.len()), "{what}");
        repo.assert_file("a.txt", "one\n1\n2\n", what);
    }
}

#[test]
fn nobody_else_can_read_a_copy_than_its_original() {
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.three();
    let (own, is_root) = (fs::metadata(&chat.path).expect("it is there").gid(), rustix::process::geteuid().is_root());
    let check = |group: u32, mode: u32, prepare: &dyn Fn(), wanted: u32| {
        if group != own {
            std::os::unix::fs::chown(&chat.path, None, Some(group)).expect("give it to a group");
        }
        fs::set_permissions(&chat.path, PermissionsExt::from_mode(mode)).expect("set its mode");
        prepare();
        let copy = chat.copy(&undo(&repo, &[]));
        let about = fs::metadata(&copy.path).expect("it is there");
        let mode = about.permissions().mode() & 0o7777;
        assert!(mode == wanted, "{mode:o}, not {wanted:o}");
        assert!(mode == mode & 0o700 || about.gid() == group, "group {}, not {group}", about.gid());
        fs::remove_file(&copy.path).expect("remove it");
        repo.redo();
    };
    // Where nothing tells of access lists, it is private.
    let open = |mode: u32| if cfg!(target_os = "linux") { mode } else { mode & 0o700 };
    for mode in [0o600, 0o640, 0o644, 0o604] {
        check(own, mode, &|| (), open(mode));
        if is_root {
            check(1234, mode, &|| (), open(mode));
            std::os::unix::fs::chown(&chat.path, None, Some(own)).expect("give it back");
        }
    }
    #[cfg(target_os = "linux")]
    {
        // The owner rw, a user r, the group nothing, the mask r, others nothing.
        let mut list = 2u32.to_le_bytes().to_vec();
        for (tag, may, id) in
            [(1u16, 6u16, u32::MAX), (2, 4, 1234), (4, 0, u32::MAX), (16, 4, u32::MAX), (32, 0, u32::MAX)]
        {
            list.extend([&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat());
        }
        let give = |path: &std::path::Path, name: &str| {
            rustix::fs::setxattr(path, name, &list, rustix::fs::XattrFlags::empty()).is_ok()
        };
        if !give(&chat.path, "system.posix_acl_access") {
            crate::sandbox::announce("SKIPPED: no access lists on this file system");
            return;
        }
        check(own, 0o640, &|| (), 0o600);
        rustix::fs::removexattr(&chat.path, "system.posix_acl_access").expect("take it away");
        let directory = chat.path.parent().expect("a directory");
        check(own, 0o640, &|| assert!(give(directory, "system.posix_acl_default")), 0o600);
    }
}

#[test]
fn a_path_outside_the_agents_own_directory_is_not_followed() {
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.path = repo.home().join(format!("{V4}.jsonl"));
    chat.three();
    not_forked(&repo, &[], "' is not where Claude Code keeps conversations");
    // A link that leads there is not below it either.
    let mut chat = Chat::of(&repo, &CLAUDE, "99999999-5a44-4b7e-9a53-2f1c8f1d6b10");
    fs::create_dir_all(repo.home().join("outside")).expect("make a directory");
    std::os::unix::fs::symlink(repo.home().join("outside"), repo.home().join(".claude/projects/-link"))
        .expect("make a link");
    chat.path = repo.home().join(format!(".claude/projects/-link/{}.jsonl", chat.session));
    chat.three();
    not_forked(&repo, &[], "' is not where Claude Code keeps conversations");
    // All of it may be elsewhere, where the agent is told so.
    let moved = repo.home().join("claude");
    fs::rename(repo.home().join(".claude"), &moved).expect("move it");
    std::os::unix::fs::symlink(&moved, repo.home().join(".claude")).expect("make a link");
    let mut chat = Chat::of(&repo, &CLAUDE, "88888888-5a44-4b7e-9a53-2f1c8f1d6b10");
    chat.three();
    assert!(chat.copy(&undo(&repo, &[])).text().contains("answer 2"));
}

#[test]
fn another_users_transcript_and_ids_that_are_none_are_let_alone() {
    let repo = repo();
    for (session, why) in [("s1", "the session's id 's1' is no UUID"), ("x; rm -rf ~", "is no UUID")] {
        let mut chat = Chat { session: session.into(), ..Chat::new(&repo, &CODEX) };
        chat.path = chat.path.with_file_name(format!("rollout-{session}.jsonl"));
        chat.three();
        not_forked(&repo, &[], why);
    }
    let mut chat = Chat::new(&repo, &PI);
    let path = chat.path.with_file_name("other.jsonl");
    fs::rename(&chat.path, &path).expect("rename it");
    chat.path = path;
    chat.three();
    not_forked(&repo, &[], "'other.jsonl' is not named for the session");
    if rustix::process::geteuid().is_root() {
        let mut chat = Chat::new(&repo, &CLAUDE);
        chat.three();
        std::os::unix::fs::chown(&chat.path, Some(1234), None).expect("give it away");
        not_forked(&repo, &[], "' is another user's");
    }
}

#[test]
fn an_agent_whose_conversations_are_elsewhere_has_none_forked() {
    let repo = repo();
    let payload = json!({"session_id": "s1", "prompt": "p"}).to_string();
    let hook =
        |event: &str| Output::fired(&mut repo.oxundo_command(["hook", "copilot", event]), payload.as_bytes()).success();
    hook("begin");
    repo.sh("echo two >>a.txt");
    hook("end");
    let output = repo.oxundo(["undo", "--conversation"]);
    output.warns("warning: Copilot CLI's conversation is not forked: oxundo cannot, for Copilot CLI");
    output.warns("hint: Copilot CLI still remembers it: 'copilot --resume s1', then '/rewind'");
    repo.agent("echo three >>a.txt");
    let output = repo.oxundo(["undo", "--conversation"]);
    output.success();
    output.warns("warning: no agent's session is on record for what is undone: no conversation is forked");
}

#[test]
fn what_is_refused_or_vetoed_or_fails_makes_no_copy() {
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.three();
    let before = kept(&repo);
    repo.git(["config", "oxundo.beforeUndo", "exit 1"]);
    let (_, refused) = repo.json(["undo", "--conversation"]);
    assert_eq!(refused["error"]["code"], "vetoed");
    assert_eq!(kept(&repo), before, "the user's command said no");
    repo.git(["config", "--unset", "oxundo.beforeUndo"]);
    repo.sh("sed -i 's/^3$/mine/' a.txt");
    repo.refuses(&["undo", "--conversation"], "conflict");
    assert_eq!(kept(&repo), before, "the user's edits are in the way");
}

#[test]
fn the_copies_are_the_agents_and_stay_when_oxundo_goes() {
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.three();
    undo(&repo, &[]);
    let all = kept(&repo);
    assert_eq!(all.len(), 2);
    repo.oxundo(["gc", "--keep", "0d"]).success();
    repo.oxundo(["uninstall", "--purge", "--yes"]).success();
    assert_eq!(kept(&repo), all);
}

#[test]
fn a_transcript_of_many_megabytes_is_read_as_far_as_it_may_be() {
    if !crate::form::is_thorough() {
        return;
    }
    let repo = repo();
    let mut chat = Chat::new(&repo, &CLAUDE);
    chat.three();
    fs::File::options().append(true).open(&chat.path).expect("open it").set_len(3 << 30).expect("make it long");
    assert!(chat.copy(&undo(&repo, &[])).text().contains("answer 2"), "the prompt comes before all that");
    let mut chat = Chat::new(&repo, &PI);
    fs::File::options().append(true).open(&chat.path).expect("open it").set_len(300 << 20).expect("make it long");
    chat.three();
    not_forked(&repo, &[], "the undone prompt is not in the first 256 MiB of '");
}
