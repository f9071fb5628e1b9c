//! Undo of one session's share, where three are at work in one turn beside the user.
//!
//! Each line that is written is a token of its own, and the story says who wrote it. What oxundo has on record is asked for
//! nothing: files show whose it took a token for.

use crate::form::random_cases;
use crate::sandbox::{Output, Sandbox};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A session edits this file by a tool that names it.
    Edits(usize, usize),
    /// It writes by a shell: a line of this file, or a new one.
    Shell(usize, usize, bool),
    /// Two of them at once, by shells.
    Both(usize, usize),
    /// The user saves this file, or a new one.
    Saves(usize, bool),
    /// The user does so while a session's shell is at work alone.
    Beside(usize, usize, bool),
}

const SESSIONS: [&str; 3] = ["a", "b", "c"];
const USER: usize = 3;

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => (0..3_usize, 0..2_usize).prop_map(|(who, file)| Event::Edits(who, file)),
        3 => (0..3_usize, 0..2_usize, any::<bool>()).prop_map(|(who, file, new)| Event::Shell(who, file, new)),
        1 => (0..3_usize, 0..2_usize).prop_map(|(who, file)| Event::Both(who, file)),
        4 => (0..2_usize, any::<bool>()).prop_map(|(file, new)| Event::Saves(file, new)),
        1 => (0..3_usize, 0..2_usize, any::<bool>()).prop_map(|(who, file, new)| Event::Beside(who, file, new)),
    ]
}

struct Story {
    repo: Sandbox,
    /// Who wrote each token.
    tokens: Vec<usize>,
    /// What the user saved while a shell was at work: nobody can tell that from what that wrote. With whose it is taken for, and where.
    unsure: BTreeMap<usize, (usize, String)>,
}

fn file(number: usize) -> String {
    format!("file{number}.txt")
}

impl Story {
    fn hook(&self, who: usize, event: &str, tool: &str, path: Option<&str>) {
        let mut payload = json!({"hook_event_name": event, "session_id": SESSIONS[who], "prompt": "p", "tool_name": tool,
            "tool_use_id": format!("{who}-{}", self.tokens.len()), "tool_input": {}});
        if let Some(path) = path {
            payload["tool_input"]["file_path"] = json!(self.repo.path(path));
        }
        let output = Output::fired(&mut self.repo.oxundo_command(["hook", "claude"]), payload.to_string().as_bytes());
        assert_eq!((output.code, output.out(), output.err()), (0, String::new(), String::new()));
    }

    /// Each token has a place of its own.
    fn write(&mut self, who: usize, number: usize, is_new: bool) {
        let token = self.tokens.len();
        self.tokens.push(who);
        if is_new {
            self.repo.write(format!("new{token}.txt"), format!("token{token}.\n"));
            return;
        }
        let text = String::from_utf8(self.repo.read(file(number))).expect("it is text");
        let place = format!("line {token}\n");
        self.repo.write(file(number), text.replacen(&place, &format!("{place}token{token}.\n"), 1));
    }

    /// While a session's shell is at work alone, it or the user writes.
    fn shell(&mut self, who: usize, writer: usize, number: usize, is_new: bool) {
        let start = self.tokens.len();
        self.hook(who, "PreToolUse", "Bash", None);
        self.write(writer, number, is_new);
        self.tokens.truncate(start);
        self.hook(who, "PostToolUse", "Bash", None);
        self.tokens.push(writer);
    }

    fn tell(&mut self, event: Event) {
        let start = self.tokens.len();
        match event {
            Event::Edits(who, number) => {
                self.hook(who, "PreToolUse", "Edit", Some(&file(number)));
                self.write(who, number, false);
                self.tokens.truncate(start);
                self.hook(who, "PostToolUse", "Edit", Some(&file(number)));
                self.tokens.push(who);
            }
            Event::Shell(who, number, is_new) => self.shell(who, who, number, is_new),
            Event::Both(who, number) => {
                let other = (who + 1) % 3;
                self.hook(who, "PreToolUse", "Bash", None);
                self.hook(other, "PreToolUse", "Bash", None);
                self.write(who, number, false);
                self.tokens.truncate(start);
                self.hook(other, "PostToolUse", "Bash", None);
                self.hook(who, "PostToolUse", "Bash", None);
                self.tokens.push(who);
            }
            Event::Saves(number, is_new) => self.write(USER, number, is_new),
            Event::Beside(who, number, is_new) => {
                self.shell(who, USER, number, is_new);
                let name = if is_new { format!("new{start}.txt") } else { file(number) };
                self.unsure.insert(start, (who, name));
            }
        }
    }

    /// How often each token is there.
    fn there(&self) -> BTreeMap<usize, usize> {
        let all = self.repo.sh("cat *.txt");
        let count = |token: usize| (token, all.matches(&format!("token{token}.")).count());
        (0..self.tokens.len()).map(count).collect()
    }
}

/// Tells a story, and takes out one session's share.
fn check(events: &[Event], mode: &str, whose: usize) -> bool {
    let repo = Sandbox::new();
    let ruled: String = (0..40).map(|line| format!("line {line}\n-\n-\n-\n")).collect();
    repo.write(file(0), &ruled).write(file(1), &ruled);
    repo.sh(&format!("git add -A; git commit -qm ruled; git config oxundo.mode {mode}"));
    let mut story = Story { repo, tokens: Vec::new(), unsure: BTreeMap::new() };
    for who in 0..3 {
        story.hook(who, "UserPromptSubmit", "", None);
    }
    for event in events {
        story.tell(*event);
    }
    for who in 0..3 {
        story.hook(who, "Stop", "", None);
    }
    let before = story.there();
    assert!(before.values().all(|times| *times == 1), "{before:?}");
    let output = story.repo.oxundo(["--json", "undo", "--session", SESSIONS[whose]]);
    let (code, said) = (output.code, output.err());
    let answer: serde_json::Value = serde_json::from_str(&output.out()).expect("one object");
    let after = story.there();
    if code != 0 {
        assert_eq!(after, before, "{answer}");
        let is_named = answer["error"]["paths"].as_array().is_some_and(|paths| !paths.is_empty());
        let wrote = story.tokens.contains(&whose) || story.unsure.values().any(|(who, _)| *who == whose);
        assert!((code == 3 && is_named) || !wrote || code == 4, "{answer}");
        return false;
    }
    let mut wanted: BTreeMap<usize, usize> =
        story.tokens.iter().enumerate().map(|(token, who)| (token, usize::from(*who != whose))).collect();
    for (token, (_, name)) in story.unsure.iter().filter(|(_, (who, _))| *who == whose) {
        // It goes with the share, and is named.
        let mut lines = said.lines().filter(|line| line.contains("during a shell's call"));
        assert!(lines.any(|line| line.contains(name)), "{said}");
        wanted.insert(*token, 0);
    }
    assert_eq!(after, wanted, "{answer}");
    story.repo.oxundo(["redo"]).success();
    assert_eq!(story.there(), before, "redo brings it back");
    true
}

#[test]
fn undo_of_a_session_takes_out_its_tokens_and_no_others_or_refuses() {
    use Event::{Edits, Saves, Shell};
    let mut rng = TestRunner::new_with_rng(Config::default(), TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let many = random_cases(3) as usize;
    for case in 0..many {
        let stories = (prop::collection::vec(event(), 4..10), 0..3_usize);
        let (events, whose) = stories.new_tree(&mut rng).expect("a story").current();
        let mode = ["commit", "ghost"][case % 2];
        let checked = catch_unwind(AssertUnwindSafe(|| check(&events, mode, whose)));
        assert!(checked.is_ok(), "case {case}, {mode}, of {}: {events:?}", SESSIONS[whose]);
    }
    let plain =
        [Edits(0, 0), Saves(0, false), Edits(1, 0), Saves(1, true), Edits(0, 1), Shell(2, 1, false), Edits(2, 0)];
    assert!((0..3).all(|whose| check(&plain, "commit", whose)), "what is known is never refused");
    assert!(!check(&[Edits(0, 0), Event::Both(0, 1)], "commit", 0), "what two may have done is refused");
}
