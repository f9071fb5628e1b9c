//! Turns, undo, redo and the user's own git commands in any order, in both modes: what oxundo refuses changes nothing, what
//! it undoes it brings back exactly, no commit of the user's leaves the branches, and no file of the user's is touched.

use crate::form::random_cases;
use crate::sandbox::{Mode, Sandbox, State};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    /// A turn in this mode, by this line of shell.
    Turn(Mode, String),
    /// A command of oxundo's.
    Oxundo(Vec<String>),
    /// A line of the user's.
    User(String),
}

fn turn() -> impl Strategy<Value = Event> {
    let mode = prop_oneof![Just(Mode::Commit), Just(Mode::Ghost)];
    let script = prop_oneof![
        4 => (0..3u8, 0..100u8).prop_map(|(n, text)| format!("echo {text} >>f{n}")),
        2 => (0..3u8, 0..100u8).prop_map(|(n, text)| format!("echo {text} >f{n}; echo new >n{text}")),
        2 => (0..100u8).prop_map(|text| format!("echo {text} >>f0; git add -u; git commit -qm 'agent {text}'")),
        1 => Just("git reset -q --hard HEAD~1 || true".to_owned()),
        1 => (0..3u8).prop_map(|n| format!("git switch -qc a{n} || true; echo on >>f1")),
        1 => (0..3u8).prop_map(|n| format!("rm -f f{n}; echo gone >>f2")),
        1 => Just("git switch -q main || true".to_owned()),
    ];
    (mode, script).prop_map(|(mode, script)| Event::Turn(mode, script))
}

fn oxundo() -> impl Strategy<Value = Event> {
    let args = prop_oneof![
        4 => (1..4u8).prop_map(|n| format!("undo --steps {n}")),
        4 => (1..4u8).prop_map(|n| format!("redo --steps {n}")),
        2 => (1..9u8).prop_map(|n| format!("redo --to {n}")),
        1 => (0..9u8).prop_map(|n| format!("undo --to {n}")),
        1 => (1..9u8).prop_map(|n| format!("undo --only {n}")),
        1 => (0..3u8).prop_map(|n| format!("undo -- f{n}")),
        1 => Just("undo --revert".to_owned()),
        1 => (1..9u8, 0..3u8).prop_map(|(n, name)| format!("branch o{name} {n}")),
    ];
    args.prop_map(|args| Event::Oxundo(args.split(' ').map(ToOwned::to_owned).collect()))
}

fn user() -> impl Strategy<Value = Event> {
    let line = prop_oneof![
        4 => (0..100u8).prop_map(|n| format!("echo {n} >own{n}; git add own{n}; git commit -qm 'own {n}'")),
        2 => (0..3u8).prop_map(|n| format!("git switch -qc b{n}")),
        2 => (0..3u8).prop_map(|n| format!("git switch -q b{n}")),
        2 => Just("git switch -q main".to_owned()),
        1 => Just("git switch -q --detach".to_owned()),
        1 => (0..3u8).prop_map(|n| format!("git branch -m r{n}")),
        2 => (1..3u8).prop_map(|n| format!("git reset -q --hard HEAD~{n}")),
        1 => (1..3u8).prop_map(|n| format!("git reset -q --soft HEAD~{n}")),
        1 => Just("git reset -q --hard ORIG_HEAD".to_owned()),
        1 => (0..3u8).prop_map(|n| format!("git merge -q --no-edit b{n} || git merge --abort")),
        1 => (0..3u8).prop_map(|n| format!("git cherry-pick b{n} || git cherry-pick --abort")),
        1 => (0..3u8).prop_map(|n| format!("git rebase -q b{n} || git rebase --abort")),
        1 => (0..100u8).prop_map(|n| format!("git commit -q --amend -m 'reworded {n}'")),
        1 => (0..100u8).prop_map(|n| format!("echo {n} >>f1; git commit -qa --amend --no-edit")),
    ];
    line.prop_map(Event::User)
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(prop_oneof![3 => turn(), 3 => oxundo(), 3 => user()], 4..16)
}

impl Event {
    fn told(&self) -> String {
        match self {
            Self::Turn(Mode::Ghost, script) => format!("oxundo run --ghost -- sh -c {script:?}"),
            Self::Turn(Mode::Commit, script) => format!("oxundo run -- sh -c {script:?}"),
            Self::Oxundo(args) => format!("oxundo {}", args.join(" ")),
            Self::User(line) => line.clone(),
        }
    }
}

/// The user's commits that a branch or HEAD holds.
fn own_commits(repo: &Sandbox) -> BTreeSet<String> {
    let printed = repo.git(["log", "--branches", "HEAD", "--format=%H %s"]);
    printed.lines().filter(|line| line.contains(" own ")).map(ToOwned::to_owned).collect()
}

fn is_mine(fact: &str) -> bool {
    fact.starts_with("on disk mine")
}

/// `taken` are the user's commits that turns took off their branches: to redo these turns does so again.
fn oxundo_keeps_its_promises(repo: &Sandbox, args: &[String], taken: &BTreeSet<String>) {
    let (before, own) = (repo.state(), own_commits(repo));
    // What the user took off with git need not have had its files taken back: undo leads to the turn's beginning then.
    let is_by_hand = repo.log().iter().any(|turn| turn["by_hand"] == true);
    let everything = repo.everything();
    let (code, answer) = repo.json(args);
    repo.state().only(is_mine).assert_is(&before.clone().only(is_mine), "the user's files are the user's");
    if code != 0 {
        let word = answer["error"]["code"].as_str().unwrap_or("none");
        assert!(!["none", "io", "corrupt"].contains(&word), "{args:?} is refused, it does not fail: {answer}");
        repo.everything().assert_is(&everything, "a refusal changes nothing");
        return;
    }
    let after = repo.state();
    let held = own_commits(repo);
    let is_redo = args[0] == "redo";
    let gone: Vec<&String> = own.difference(&held).filter(|commit| !is_redo || !taken.contains(*commit)).collect();
    assert!(gone.is_empty(), "no commit of the user's leaves its branch: {gone:?}");
    // The way back leads to the very state, as nothing has happened in between.
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (back, forth) = match words[..] {
        ["undo", "--steps", steps] => (vec!["redo", "--steps", steps], words.clone()),
        ["redo", "--steps", steps] if !is_by_hand && answer["undone"] == serde_json::json!([]) => {
            (vec!["undo", "--steps", steps], words.clone())
        }
        ["undo", "--revert" | "--only", ..] | ["branch", ..] => (vec!["undo"], vec!["redo"]),
        _ => return,
    };
    repo.oxundo(&back).success();
    repo.state().assert_is(&before, &format!("{back:?} takes {args:?} back"));
    repo.oxundo(&forth).success();
    repo.state().assert_is(&after, &format!("{forth:?} after {back:?}"));
}

/// What is told of the turns is what undo and redo do, and the same wherever it is told.
fn told_as_it_is(repo: &Sandbox) {
    let turns = |args: &[&str]| repo.json(args).1["turns"].as_array().expect("turns").clone();
    let word = |turn: &serde_json::Value| (turn["turn"].as_u64(), turn["state"].as_str().map(ToOwned::to_owned));
    let here: Vec<_> = turns(&["log"]).iter().map(word).collect();
    let all: Vec<_> = turns(&["log", "--all"]).iter().map(word).collect();
    let of_here = |turn: &&(Option<u64>, Option<String>)| here.iter().any(|(number, _)| *number == turn.0);
    let mut told = here.clone();
    told.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    assert_eq!(all.iter().filter(of_here).cloned().collect::<Vec<_>>(), told, "log and log --all tell the same");
    let (_, status) = repo.json(["status"]);
    assert_eq!(repo.json(["status", "--short"]).1["redo_depth"], status["redo_depth"]);
    let is_nothing = |op: &str| repo.json([op, "--dry-run"]).1["error"]["code"] == "nothing";
    assert_eq!(status["redo_depth"] == 0, is_nothing("redo"), "{status}, {here:?}");
    let undone = here.iter().any(|(_, state)| state.as_deref() == Some("undone"));
    assert!(!undone || status["redo_depth"] != 0, "{status}, {here:?}");
}

fn tell(events: &[Event]) {
    let repo = Sandbox::new();
    repo.write("f0", "a\nb\nc\n").write("f1", "1\n2\n3\n").sh("git add -A; git commit -qm files");
    repo.write("mine.txt", "mine\n");
    let mut taken = BTreeSet::new();
    for event in events {
        match event {
            Event::Turn(mode, script) => {
                // It may be refused, as in the middle of a merge.
                let mut args = vec!["run"];
                args.extend((*mode == Mode::Ghost).then_some("--ghost"));
                args.extend(["--", "sh", "-c", script]);
                let (before, count, own) = (repo.state(), next(&repo), own_commits(&repo));
                let output = repo.oxundo(&args);
                assert!(!output.err().contains("panicked"), "{output:?}");
                taken.extend(own.difference(&own_commits(&repo)).cloned());
                if next(&repo) > count {
                    there_and_back(&repo, &before, script);
                }
            }
            Event::Oxundo(args) => oxundo_keeps_its_promises(&repo, args, &taken),
            Event::User(line) => {
                repo.shell(&format!("{{ {line}; }} >/dev/null 2>&1 || true")).status().expect("run a shell");
            }
        }
        told_as_it_is(&repo);
    }
    repo.assert_sound();
}

/// The number of the newest turn.
fn next(repo: &Sandbox) -> u64 {
    repo.json(["log", "--all", "-n", "1"]).1["turns"][0]["turn"].as_u64().unwrap_or(0)
}

/// Right after a turn, undo leads to the state before it, and redo to the one after it.
fn there_and_back(repo: &Sandbox, before: &State, script: &str) {
    let after = repo.state();
    repo.oxundo(["undo"]).success();
    repo.state().assert_is(before, &format!("undo of {script:?}"));
    repo.oxundo(["redo"]).success();
    repo.state().assert_is(&after, &format!("redo of {script:?}"));
}

#[test]
fn whatever_the_user_does_with_git_the_promises_hold() {
    let cases = random_cases(12);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 150, ..Config::default() };
    let outcome = TestRunner::new(config).run(&events(), |events| {
        catch_unwind(AssertUnwindSafe(|| tell(&events))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
            let told: Vec<String> = events.iter().map(Event::told).collect();
            TestCaseError::fail(format!("{text}\n{}", told.join("\n")))
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
