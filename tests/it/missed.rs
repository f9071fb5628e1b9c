//! A hook that cannot look in time gives up: the agent goes on, the turn begins at the next sign, and the next command
//! tells.

use crate::sandbox::{Output, Sandbox};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::File;

const BEGIN: &str = "UserPromptSubmit";
const END: &str = "Stop";

/// A repository in which hooks give up soon.
fn impatient() -> Sandbox {
    let repo = Sandbox::new();
    repo.git(["config", "oxundo.hookTimeout", "400"]);
    repo.sh("echo dirty >>README.txt");
    repo
}

/// Claude Code's hook is called, which the agent hears nothing of.
#[track_caller]
fn hook(repo: &Sandbox, event: &str, prompt: &str) {
    let payload = json!({"hook_event_name": event, "session_id": "s", "prompt_id": prompt, "prompt": "do it",
        "tool_name": "Bash", "tool_use_id": "t"});
    let output = Output::fired(&mut repo.oxundo_command(["hook", "claude"]), payload.to_string().as_bytes());
    output.success();
    assert_eq!(output.out(), "", "{event}");
}

/// Hooks have all the time that they need from now on.
fn patient(repo: &Sandbox) {
    repo.git(["config", "--unset", "oxundo.hookTimeout"]);
}

fn first(repo: &Sandbox) -> Value {
    repo.log().into_iter().next().unwrap_or_default()
}

#[test]
fn a_turn_whose_beginning_was_blocked_begins_at_the_next_sign_and_is_partial() {
    let repo = impatient();
    // git opens it, and waits for somebody who writes.
    repo.sh("mkfifo .gitattributes");
    hook(&repo, BEGIN, "1");
    repo.sh("rm .gitattributes");
    patient(&repo);
    let output = repo.oxundo(["status"]);
    output.warns("a hook of claude gave up ");
    output.warns("it took longer than 400 ms");
    output.warns("the prompt was not recorded: what it changed counts as yours");
    repo.sh("echo early >early.txt");
    let before = repo.state();
    hook(&repo, "PreToolUse", "1");
    repo.sh("echo late >>README.txt; echo late >late.txt");
    hook(&repo, "PostToolUse", "1");
    hook(&repo, END, "1");
    let turn = first(&repo);
    assert_eq!((&turn["partial"], &turn["message"]), (&json!(true), &json!("do it")), "{turn}");
    repo.oxundo(["log"]).says("[partial]");
    let output = repo.oxundo(["undo"]);
    output.success();
    output.warns("the prompt's turn was begun late, and is partial");
    repo.state().assert_is(&before, "what was there when it began is back");
    assert_eq!(repo.oxundo(["status"]).err(), "", "it was told");
    repo.assert_sound();
}

#[test]
fn the_next_prompt_is_no_late_beginning() {
    let repo = impatient();
    repo.sh("mkfifo .gitattributes");
    hook(&repo, BEGIN, "1");
    repo.sh("rm .gitattributes; echo late >late.txt");
    patient(&repo);
    hook(&repo, END, "1");
    assert_eq!(repo.log(), Vec::<Value>::new(), "nobody knows what was there before");
    hook(&repo, BEGIN, "2");
    hook(&repo, "PreToolUse", "2");
    repo.sh("echo two >two.txt");
    hook(&repo, "PostToolUse", "2");
    hook(&repo, END, "2");
    let turn = first(&repo);
    assert_eq!((&turn["partial"], &turn["turn"]), (&json!(false), &json!(1)), "{turn}");
    repo.oxundo(["undo"]).warns("the prompt was not recorded");
    assert!(repo.exists("late.txt"), "it counts as the user's");
}

#[test]
fn a_lock_that_another_holds_is_not_waited_for_for_ever() {
    let repo = impatient();
    repo.agent("echo first >first.txt");
    let held = File::options().write(true).open(repo.path(".git/oxundo/lock")).expect("open the lock");
    held.lock().expect("hold the lock");
    hook(&repo, BEGIN, "1");
    drop(held);
    repo.oxundo(["status"]).warns("another oxundo is at work");
    patient(&repo);
    hook(&repo, BEGIN, "1");
    let held = File::options().write(true).open(repo.path(".git/oxundo/lock")).expect("open the lock");
    repo.git(["config", "oxundo.hookTimeout", "400"]);
    repo.sh("echo one >one.txt");
    held.lock().expect("hold the lock");
    hook(&repo, END, "1");
    drop(held);
    patient(&repo);
    let output = repo.oxundo(["status"]);
    output.warns("the prompt's turn was left open");
    repo.undo();
    assert!(!repo.exists("one.txt"), "it is undone");
}

/// A hook that waits for a lock, killed as its agent does when it has waited for long enough.
fn kill_waiting(repo: &Sandbox, event: &str, prompt: &str, signal: Signal) {
    let held = File::options().write(true).open(repo.path(".git/oxundo/lock")).expect("open the lock");
    held.lock().expect("hold the lock");
    let payload = json!({"hook_event_name": event, "session_id": "s", "prompt_id": prompt, "prompt": "do it"});
    let mut process = repo.spawn(&["hook", "claude", &payload.to_string()]);
    repo.sh("until grep -qs prompt .git/oxundo/attempt-*; do sleep 0.01; done");
    kill_process(Pid::from_child(&process), signal).expect("kill the hook");
    process.wait().expect("wait for the hook");
}

#[test]
fn a_hook_that_its_agent_kills_is_told_of_and_its_turn_is_partial() {
    for signal in [Signal::KILL, Signal::TERM] {
        let repo = Sandbox::new();
        repo.agent("echo first >first.txt");
        repo.sh("echo user >>README.txt");
        kill_waiting(&repo, BEGIN, "1", signal);
        let status = repo.oxundo(["status"]);
        status.warns("a hook of claude gave up ");
        status.warns("(it was killed): the prompt was not recorded: what it changed counts as yours");
        let before = repo.state();
        hook(&repo, "PreToolUse", "1");
        repo.sh("echo agent >>first.txt");
        hook(&repo, "PostToolUse", "1");
        // The last prompt's end was told of by none: the next one begins its turn all the same.
        kill_waiting(&repo, BEGIN, "2", signal);
        hook(&repo, "PreToolUse", "2");
        repo.sh("echo second >second.txt");
        hook(&repo, "PostToolUse", "2");
        kill_waiting(&repo, END, "2", signal);
        let status = repo.oxundo(["status"]);
        status.warns("(it was killed): the prompt's turn was begun late, and is partial");
        status.warns("(it was killed): the prompt's turn was left open");
        let undo = repo.oxundo(["undo", "--steps", "2"]);
        undo.success();
        undo.warns("left open");
        assert_eq!(repo.oxundo(["status"]).err(), "", "it was told");
        repo.state().assert_is(&before, "both prompts are undone");
        repo.redo();
        let turns = repo.log();
        let partial: Vec<_> = turns.iter().rev().map(|turn| turn["partial"] == true).collect();
        assert_eq!(partial, [false, true, true, false], "the last one goes on after an undo: {turns:?}");
        assert_eq!(repo.sh("ls .git/oxundo | grep -c -e attempt -e missed || true"), "0", "nothing is left of it");
        repo.assert_sound();
    }
}

#[test]
fn what_cannot_even_be_written_down_is_told_too() {
    let repo = impatient();
    repo.agent("echo first >first.txt");
    // As a full disk leaves it: there is room for a name, and not for a line.
    repo.sh("mkdir -p .git/oxundo; : >.git/oxundo/missed");
    repo.oxundo(["status"]).warns("could not write down why");
    repo.oxundo(["checkpoint"]).success();
    assert!(!repo.exists(".git/oxundo/missed"), "it was told");
    repo.sh("mkdir .git/oxundo/missed; mkfifo .gitattributes; echo more >>README.txt");
    hook(&repo, BEGIN, "1");
}
