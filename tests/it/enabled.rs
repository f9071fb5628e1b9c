//! `oxundo.enabled=false`: nothing is recorded, in a repository or everywhere, and what is recorded can be undone.

use crate::sandbox::{Output, Sandbox};
use oxundo::{Code, TurnInfo, Worktree};
use serde_json::{Value, json};
use std::process::Command;

/// How it is switched off.
const WAYS: [&str; 3] = ["here", "everywhere", "in the environment"];

/// A repository in which a turn was made before it was switched off.
fn switched_off(way: &str) -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo.agent("echo agent >>a.txt");
    repo.write("dirty.txt", "mine\n");
    switch_off(repo, way)
}

fn switch_off(repo: Sandbox, way: &str) -> Sandbox {
    match way {
        "here" => {
            repo.append_to_config("[oxundo]\n\tenabled = false\n");
            repo
        }
        "everywhere" => {
            let file = repo.home().join("config");
            std::fs::write(&file, "[oxundo]\n\tenabled = no\n").expect("write the user's configuration");
            repo.with_variable("GIT_CONFIG_GLOBAL", file)
        }
        _ => repo.with_variable("OXUNDO_ENABLED", "0"),
    }
}

#[track_caller]
fn silent(mut command: Command, input: &Value) {
    let output = Output::fired(&mut command, input.to_string().as_bytes());
    output.success();
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "a hook says nothing\n{output:?}");
}

#[test]
fn hooks_run_and_turn_record_nothing() {
    for way in WAYS {
        let repo = switched_off(way);
        let before = repo.everything();
        for event in ["UserPromptSubmit", "Stop", "SessionEnd"] {
            let payload = json!({"hook_event_name": event, "session_id": "s", "prompt": "p"});
            silent(repo.oxundo_command(["hook", "claude"]), &payload);
        }
        silent(repo.oxundo_command(["hook", "claude"]), &json!("no payload"));
        repo.everything().assert_is(&before, &format!("hooks do nothing ({way})"));
        repo.assert_absent(".git/oxundo/fired", "not even what tells that they fire");

        let output = repo.oxundo(["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
        output.exits(7);
        assert_eq!(output.out(), "out", "{way}");
        assert_eq!(output.err(), "warning: oxundo.enabled is false: nothing is recorded\nerr", "{way}");
        let output = repo.oxundo(["-q", "run", "--", "sh", "-c", "echo out"]);
        assert_eq!((output.code, output.out(), output.err()), (0, "out".to_owned(), String::new()), "{way}");

        let output = repo.oxundo(["turn", "begin"]);
        output.success();
        output.warns("oxundo.enabled is false: nothing is recorded");
        assert_eq!(output.out(), "", "{way}");
        let (code, told) = repo.json(["turn", "begin"]);
        assert_eq!((code, &told["changed"], &told["open_turn"]), (0, &json!(false), &Value::Null), "{way}: {told}");
        repo.oxundo(["turn", "end"]).success();
        repo.everything().assert_is(&before, &format!("no commit, no ref, no turn ({way})"));
        assert_eq!(repo.log().len(), 1, "{way}");
    }
}

#[test]
fn status_says_so_and_what_is_recorded_is_undone_and_redone() {
    for way in WAYS {
        let repo = switched_off(way);
        let output = repo.oxundo(["status"]);
        output.says("oxundo.enabled is false: nothing is recorded");
        assert_eq!(repo.json(["status"]).1["enabled"], false, "{way}");
        repo.oxundo(["doctor"]).says("oxundo.enabled is false: nothing is recorded");
        let after = repo.state();
        repo.undo();
        repo.assert_file("a.txt", "one\n", "undone");
        repo.redo();
        repo.state().assert_is(&after, &format!("redo brings it back ({way})"));
        repo.oxundo(["log"]).says("1 file +1");
    }
    let repo = Sandbox::new();
    assert_eq!(repo.json(["status"]).1["enabled"], true);
    assert!(!repo.oxundo(["status"]).out().contains("enabled"), "nothing is said where it is on");
}

/// Else all that comes later would go into it.
#[test]
fn a_turn_that_is_open_when_it_is_switched_off_is_ended() {
    for way in WAYS {
        let repo = Sandbox::new();
        let event = |name: &str| json!({"hook_event_name": name, "session_id": "s", "prompt": "p"});
        silent(repo.oxundo_command(["hook", "claude"]), &event("UserPromptSubmit"));
        let repo = switch_off(repo, way);
        repo.sh("echo agent >>README.txt");
        silent(repo.oxundo_command(["hook", "claude"]), &event("Stop"));
        assert_eq!(repo.log()[0]["state"], "done", "{way}");
        repo.sh("echo user >>README.txt");
        silent(repo.oxundo_command(["hook", "claude"]), &event("UserPromptSubmit"));
        assert_eq!(repo.log().len(), 1, "and no other begins ({way})");
    }
}

#[test]
fn no_store_is_made_for_a_directory_without_git() {
    for way in ["everywhere", "in the environment"] {
        let dir = switch_off(Sandbox::without_repository(), way);
        let before = dir.outside();
        dir.oxundo(["run", "--", "sh", "-c", "true"]).success();
        dir.oxundo(["turn", "begin"]).success();
        dir.outside().assert_is(&before, &format!("nothing is made ({way})"));
    }
}

#[test]
fn the_environment_stands_over_the_configuration_and_nonsense_is_refused() {
    let repo = switched_off("here").with_variable("OXUNDO_ENABLED", "true");
    repo.agent("echo more >>a.txt");
    assert_eq!(repo.log().len(), 2);
    let repo = repo.with_variable("OXUNDO_ENABLED", "maybe");
    let output = repo.oxundo(["run", "--", "sh", "-c", "echo ran >ran"]);
    output.exits(125);
    output.warns("oxundo.enabled is 'maybe'");
    repo.assert_absent("ran", "before the agent starts");
}

#[test]
fn an_editor_is_told() {
    let repo = switched_off("here");
    let tree = Worktree::open(repo.root()).expect("open it");
    let error = tree.begin(&TurnInfo::by("editor")).expect_err("nothing begins");
    assert_eq!(error.code, Code::Nothing);
    assert!(!tree.status().expect("look").enabled);
    tree.end(&TurnInfo::by("editor")).expect("there is nothing to end");
}
