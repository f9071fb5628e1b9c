//! The user works between an agent's calls, at random: with files, directories, modes, the index and what git is in the middle
//! of. A twin, in which there is neither an agent nor oxundo, says what is left when the agent's part is undone.

use crate::form::random_cases;
use crate::sandbox::{Mode, Sandbox};
use crate::steps::{edit, hook, shell, tick};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the user does with what is theirs, beginning with `u` or `new`. No line is like one of the agent's: what was theirs in a file that
/// is gone would count as copied.
const USER: [&str; 26] = [
    "echo u{} >>u1",
    "echo u{} >u1",
    "echo u{} >new{}",
    "chmod 755 u1",
    "chmod 600 u2",
    "rm -f u2",
    "mv u1 u{}",
    "ln -sf {} u3",
    "git add -A -- u*",
    "git add -A",
    "git add -N .",
    "git add -- new*",
    "git rm -q --cached u2",
    "git reset -q -- u1 u2",
    "git update-index --chmod=+x u1",
    "git update-index --assume-unchanged u2",
    "mkdir -p ud/x{}",
    "rm -rf ud",
    "mkdir -p ud; chmod 700 ud",
    "mkdir -p ud; echo u{} >ud/f; rm -f ud/g",
    "mkdir -p ud; echo u{} >ud/g; rm -f ud/f",
    "git bisect start -q",
    "git bisect reset -q",
    "printf 'a message\\n' >.git/MERGE_MSG",
    "git switch -q topic",
    "git switch -q main",
];

/// What a call does, with what is the agent's.
const AGENT: [(&str, &str); 13] = [
    ("Edit", "echo a{} >>a1"),
    ("Edit", "echo a{} >a1"),
    ("Bash", "echo a{} >>a1"),
    ("Bash", "echo a{} >a{}"),
    ("Bash", "rm -f a2"),
    ("Bash", "mkdir -p ad/x{}; echo a{} >ad/f"),
    ("Bash", "rm -rf ad; chmod 700 a1"),
    ("Bash", "git add -- a*"),
    ("Bash", "git commit -qm its -- a1 || true"),
    ("Bash", "echo a{} >>a1; git commit -qm its -- a1 || true"),
    ("Bash", "echo a{} >>t1; git commit -qm its -- t1 || true"),
    ("Bash", "git branch -f its"),
    ("Bash", "git status -s >/dev/null; mv a1 a9; cp a9 a1"),
];

#[derive(Clone, Debug)]
enum Event {
    User(String),
    Call(&'static str, String),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let filled = |line: &str, n: u8| line.replace("{}", &n.to_string());
    let user = (0..USER.len(), 4..9u8).prop_map(move |(at, n)| Event::User(filled(USER[at], n)));
    let call = (0..AGENT.len(), 4..9u8).prop_map(move |(at, n)| Event::Call(AGENT[at].0, filled(AGENT[at].1, n)));
    prop::collection::vec(prop_oneof![3 => user, 2 => call], 2..12)
}

/// With `before` something is there that git does not have as the prompt begins. What nobody tells a call of is the agent's: it
/// calls first.
fn story(mode: Mode, before: bool, events: &[Event]) {
    let repo = Sandbox::new();
    for name in ["u1", "u2", "a1", "a2"] {
        repo.write(name, format!("{name}\n").repeat(9));
    }
    // Another branch, on which one file is another.
    repo.write("t1", "main\n".repeat(9));
    repo.sh("git add -A; git commit -qm files; git switch -qc topic; sed -i s/main/topic/ t1; git commit -qam topic; git switch -q main");
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    if before {
        repo.sh("echo mine >new1; mkdir -p ud/x1");
    }
    let twin = repo.copy();
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    edit(&repo, 1, "a1", "true");
    for (number, event) in (2..).zip(events) {
        match event {
            // It takes a message away, which a commit of the agent's would have taken before.
            Event::User(line) if line.starts_with("git switch") && twin.exists(".git/MERGE_MSG") => {}
            Event::User(line) if line.starts_with("git switch") => {
                // It is refused where it would take along what the agent has not committed.
                let did = repo.sh(&format!("{line} 2>/dev/null && echo yes || true"));
                if did == "yes" {
                    twin.sh(line);
                }
            }
            Event::User(line) => {
                // What is not there any more cannot be moved: the same in both.
                let line = format!("( {line} ) 2>/dev/null || true");
                repo.sh(&line);
                twin.sh(&line);
            }
            Event::Call("Edit", line) => edit(&repo, number, "a1", line),
            Event::Call(_, line) => shell(&repo, number, line),
        }
        tick();
    }
    hook(&repo, "s", "Stop", &json!({}));
    let (after, wanted) = (repo.state(), twin.state());
    let undone = repo.oxundo(["undo"]);
    if undone.code != 0 {
        repo.state().assert_is(&after, "what is refused changes nothing");
        let is_all_theirs = after.difference(&wanted).is_empty();
        assert!(is_all_theirs || undone.err().contains("in progress"), "{}", undone.err());
        return;
    }
    repo.state().assert_is(&wanted, "without the agent's");
    repo.redo();
    repo.state().assert_is(&after, "redo");
    repo.assert_sound();
}

#[test]
fn undo_of_a_turn_leaves_what_the_user_did_between_its_calls_as_if_they_had_been_alone() {
    let cases = random_cases(6);
    let mode = prop_oneof![Just(Mode::Commit), Just(Mode::Ghost)];
    let mut runner =
        TestRunner::new(Config { cases, max_shrink_iters: 80, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&(mode, any::<bool>(), events()), |(mode, before, events)| {
        catch_unwind(AssertUnwindSafe(|| story(mode, before, &events))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
            TestCaseError::fail(format!("{text}\n{mode:?}, {before}: {events:#?}"))
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
