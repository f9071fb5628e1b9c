//! A hook that cannot look in time gives up: the agent goes on, the turn begins at the next sign, and the next command
//! tells.

use crate::sandbox::{Output, Sandbox, State, announce};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

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

/// Undo leads back to where a late turn began, and says that it was late, once.
#[track_caller]
fn assert_told_by_undo(repo: &Sandbox, before: &State) {
    let undo = repo.oxundo(["undo"]);
    undo.success();
    undo.warns("the prompt's turn was begun late, and is partial");
    repo.state().assert_is(before, "what was there when it began is back");
    assert_eq!(repo.oxundo(["status"]).err(), "", "it was told");
    repo.assert_sound();
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

/// Claude Code's hook is called with these bytes, and is silent.
#[track_caller]
fn told(repo: &Sandbox, payload: &[u8]) {
    let output = Output::fired(&mut repo.oxundo_command(["hook", "claude"]), payload);
    output.success();
    assert_eq!((output.out(), output.err()), (String::new(), String::new()), "a hook is silent");
}

#[test]
fn json_that_is_too_much_to_read_is_read_where_it_counts() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let objects = format!("{}7{}", "{\"a\":".repeat(5000), "}".repeat(5000));
    for more in ["1e400", "-1E+999", &deep(130), &deep(100_000), &objects, "\"\\ud800\"", "[1e400,\"\\ud83d \\udc00\"]"]
    {
        let repo = Sandbox::new();
        let before = repo.state();
        let payload = |event: &str| {
            format!(
                r#"{{"q":{more},"hook_event_name":"{event}","prompt":"do it","tool_name":"Bash","tool_use_id":"t",
                "tool_input":{{"command":"make","more":{more}}},"session_id":"s","prompt_id":"1"}}"#
            )
        };
        told(&repo, payload(BEGIN).as_bytes());
        told(&repo, payload("PreToolUse").as_bytes());
        repo.sh("echo one >one.txt");
        told(&repo, payload("PostToolUse").as_bytes());
        told(&repo, payload(END).as_bytes());
        assert_eq!(repo.oxundo(["status"]).err(), "", "nothing is missed");
        let turn = first(&repo);
        assert_eq!((&turn["partial"], &turn["message"]), (&json!(false), &json!("do it")), "{turn}");
        assert_eq!(repo.json(["log", "--steps"]).1["turns"][0]["steps"][0]["tool"], json!("Bash"));
        repo.undo();
        repo.state().assert_is(&before, "undone");
    }
}

#[test]
fn what_cannot_be_read_is_told_of_and_the_next_sign_begins_the_turn() {
    for broken in
        ["{", "{\"hook_event_name\":\"UserPromptSubmit\",\"session_id\":\"s\",\"prompt\":\"do i", "{\"a\": NaN}"]
    {
        let repo = Sandbox::new();
        told(&repo, broken.as_bytes());
        told(&repo, broken.as_bytes());
        let status = repo.oxundo(["status"]);
        status.warns("read the hook's JSON");
        status.warns("a prompt may not be recorded, or its turn may be left open");
        assert_eq!(status.err().matches("gave up").count(), 1, "once is enough: {}", status.err());
        repo.sh("echo early >early.txt");
        let before = repo.state();
        hook(&repo, "PreToolUse", "1");
        repo.sh("echo late >late.txt");
        // What cannot be read in the middle of it begins nothing, and ends nothing.
        told(&repo, broken.as_bytes());
        hook(&repo, "PostToolUse", "1");
        hook(&repo, "PreToolUse", "1");
        hook(&repo, "PostToolUse", "1");
        hook(&repo, END, "1");
        assert_eq!((first(&repo)["partial"].clone(), repo.log().len()), (json!(true), 1));
        assert_told_by_undo(&repo, &before);
    }
}

#[test]
fn what_could_not_be_read_before_another_prompt_is_no_beginning_of_it() {
    let repo = Sandbox::new();
    told(&repo, b"{");
    hook(&repo, BEGIN, "1");
    repo.sh("echo one >one.txt");
    hook(&repo, END, "1");
    repo.sh("echo mine >mine.txt");
    // A session that nobody has heard of, in a call: where it began nobody knows.
    let call = json!({"hook_event_name": "PreToolUse", "session_id": "other", "tool_name": "Bash", "tool_use_id": "t"});
    told(&repo, call.to_string().as_bytes());
    assert_eq!((first(&repo)["partial"].clone(), repo.log().len()), (json!(false), 1));
    repo.oxundo(["undo"]).success();
    assert!(repo.exists("mine.txt") && !repo.exists("one.txt"));
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
    let payload = json!({"hook_event_name": event, "session_id": "s", "prompt_id": prompt, "prompt": "do it",
        "tool_name": "Bash", "tool_use_id": "k"});
    kill_waiting_with(repo, &["claude", event], &payload, signal);
}

fn kill_waiting_with(repo: &Sandbox, words: &[&str], payload: &Value, signal: Signal) {
    let held = File::options().write(true).open(repo.path(".git/oxundo/lock")).expect("open the lock");
    held.lock().expect("hold the lock");
    let mut command = repo.oxundo_command([&["hook"][..], words].concat());
    let mut process = command.stdin(Stdio::piped()).spawn().expect("start the hook");
    let mut input = process.stdin.take().expect("stdin is a pipe");
    write!(input, "{payload}").expect("give it its JSON");
    drop(input);
    let start = Instant::now();
    while repo.sh("cat .git/oxundo/attempt-* 2>/dev/null || true").is_empty() {
        assert!(start.elapsed() < Duration::from_secs(60), "{words:?} writes down what it is about to do");
    }
    kill_process(Pid::from_child(&process), signal).expect("kill the hook");
    process.wait().expect("wait for the hook");
}

/// What an agent's hook was told once.
fn payload(agent: &str, file: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/payloads").join(agent).join(file);
    serde_json::from_slice(&std::fs::read(path.with_extension("json")).expect("read a payload")).expect("it is JSON")
}

#[track_caller]
fn fire(repo: &Sandbox, words: &[&str], payload: &Value) {
    let mut command = repo.oxundo_command([&["hook"][..], words].concat());
    Output::fired(&mut command, payload.to_string().as_bytes()).success();
}

/// The payloads of one session of Cline's: what it was told without a screen.
fn cline(repo: &Sandbox, file: &str) -> Value {
    let mut told = payload("cline", file);
    let first = payload("cline", "headless-1-TaskStart");
    for key in ["taskId", "sessionContext"] {
        told[key] = first[key].clone();
    }
    told["workspaceRoots"] = json!([repo.path("")]);
    told
}

#[test]
fn a_killed_sign_that_is_all_there_is_of_a_beginning_is_told_of_too() {
    let repo = Sandbox::new();
    repo.agent("echo first >first.txt");
    // Cline tells of no prompt without a screen, but that its task starts.
    kill_waiting_with(&repo, &["cline", "TaskStart"], &cline(&repo, "headless-1-TaskStart"), Signal::KILL);
    repo.oxundo(["status"]).warns("a hook of cline gave up ");
    repo.oxundo(["status"]).warns("(it was killed): the prompt was not recorded: what it changed counts as yours");
    let before = repo.state();
    fire(&repo, &["cline", "PreToolUse"], &cline(&repo, "PreToolUse"));
    repo.sh("echo agent >>first.txt");
    fire(&repo, &["cline", "PostToolUse"], &cline(&repo, "PostToolUse"));
    fire(&repo, &["cline", "TaskComplete"], &cline(&repo, "headless-4-TaskComplete"));
    let turn = first(&repo);
    assert_eq!((&turn["partial"], &turn["state"]), (&json!(true), &json!("done")), "{turn}");
    assert_told_by_undo(&repo, &before);
}

#[test]
fn a_killed_call_of_a_session_that_goes_on_after_its_end_is_told_of() {
    let repo = Sandbox::new();
    hook(&repo, BEGIN, "1");
    repo.sh("echo first >first.txt");
    hook(&repo, END, "1");
    kill_waiting(&repo, "PreToolUse", "1", Signal::KILL);
    repo.oxundo(["status"]).warns("(it was killed): the prompt was not recorded: what it changed counts as yours");
    repo.sh("echo early >early.txt");
    let before = repo.state();
    hook(&repo, "PreToolUse", "1");
    repo.sh("echo late >late.txt");
    hook(&repo, "PostToolUse", "1");
    hook(&repo, END, "1");
    assert_eq!(first(&repo)["partial"], true, "its next call begins the turn");
    repo.oxundo(["undo"]).warns("the prompt's turn was begun late, and is partial");
    repo.state().assert_is(&before, "what was there when it began is back");
    repo.assert_sound();
}

#[test]
fn an_agent_that_tells_only_of_tools_that_change_something_begins_with_the_next_one() {
    let repo = Sandbox::new();
    repo.agent("echo first >first.txt");
    let mut tool = payload("crush", "PreToolUse");
    tool["cwd"] = json!(repo.path(""));
    kill_waiting_with(&repo, &["crush"], &tool, Signal::KILL);
    repo.sh("echo early >early.txt");
    fire(&repo, &["crush"], &tool);
    repo.oxundo(["status"]).warns("the prompt's turn was begun late, and is partial");
    repo.sh("echo late >late.txt");
    // In the middle of the turn it is no beginning.
    let held = File::options().write(true).open(repo.path(".git/oxundo/lock")).expect("open the lock");
    repo.git(["config", "oxundo.hookTimeout", "400"]);
    held.lock().expect("hold the lock");
    fire(&repo, &["crush"], &tool);
    drop(held);
    patient(&repo);
    let undo = repo.oxundo(["undo"]);
    undo.warns("the prompt's turn was begun late, and is partial");
    assert_eq!(undo.err().matches("gave up").count(), 1, "{}", undo.err());
    assert!(repo.exists("early.txt") && !repo.exists("late.txt"), "what changed before it began stays");
    repo.assert_sound();
}

#[test]
fn without_any_sign_what_an_unrecorded_prompt_changed_is_kept_and_told_of() {
    let repo = Sandbox::new();
    repo.agent("echo first >first.txt");
    let before = repo.state();
    kill_waiting(&repo, BEGIN, "1", Signal::KILL);
    repo.sh("echo agent >agent.txt");
    // No hook tells of its tools, as in settings of an older 'oxundo init'.
    hook(&repo, END, "1");
    let undo = repo.oxundo(["undo", "--dry-run"]);
    undo.warns("the prompt was not recorded: what it changed counts as yours");
    repo.undo();
    repo.assert_file("agent.txt", "agent\n", "it counts as the user's");
    assert!(!repo.exists("first.txt"), "the turn before is undone");
    repo.redo();
    repo.sh("rm agent.txt");
    repo.state().assert_is(&before, "nothing else was changed");
    repo.assert_sound();
}

#[test]
fn within_a_run_the_end_of_an_unrecorded_prompt_takes_nothing_of_the_users() {
    let repo = Sandbox::new();
    repo.agent("echo first >first.txt");
    let told = |event: &str, prompt: &str| {
        format!(r#"{{"hook_event_name":"{event}","session_id":"s","prompt_id":"{prompt}","prompt":"do it"}}"#)
    };
    let script = format!(
        "hook() {{ printf %s \"$1\" | oxundo hook claude; }}
        hook '{}'; echo one >one.txt; hook '{}'; : >../home/idle
        while [ ! -e ../home/edited ]; do sleep 0.01; done
        hook '{}'; : >../home/asked
        while [ ! -e ../home/go ]; do sleep 0.01; done
        hook '{}'; hook '{}'; echo three >three.txt; hook '{}'",
        told(BEGIN, "1"),
        told(END, "1"),
        told(BEGIN, "2"),
        told(END, "2"),
        told(BEGIN, "3"),
        told(END, "3")
    );
    let run = repo.spawn(&["run", "--agent", "claude", "--", "sh", "-c", &script]);
    repo.wait_for("idle");
    repo.sh("echo user >>README.txt; echo user >user.txt");
    repo.git(["config", "oxundo.hookTimeout", "400"]);
    let held = File::options().write(true).open(repo.path(".git/oxundo/lock")).expect("open the lock");
    held.lock().expect("hold the lock");
    repo.signal("edited");
    repo.wait_for("asked");
    drop(held);
    patient(&repo);
    repo.oxundo(["status"]).warns("the prompt was not recorded: what it changed counts as yours");
    repo.signal("go");
    Output::awaited(run).success();
    assert_eq!(repo.log().len(), 3, "the second prompt changed nothing that is known to be its: {:?}", repo.log());
    repo.undo();
    let files = repo.sh("cat README.txt user.txt; ls");
    assert_eq!(files, "readme\nuser\nuser\nREADME.txt\nfirst.txt\none.txt\nuser.txt", "the user's edits stay");
    repo.undo();
    repo.assert_file("user.txt", "user\n", "also where the turn before them is undone");
    assert!(!repo.exists("one.txt"), "which is undone");
    repo.assert_sound();
}

#[test]
fn a_killed_end_of_an_agent_without_sessions_is_told_of() {
    let repo = Sandbox::new();
    let prompts = "echo one >one.txt; oxundo hook aider </dev/null; echo two >two.txt; : >../home/written
        while [ ! -e ../home/killed ]; do sleep 0.01; done; echo three >three.txt; oxundo hook aider </dev/null";
    let run = repo.spawn(&["run", "--agent", "aider", "--", "sh", "-c", prompts]);
    repo.wait_for("written");
    kill_waiting_with(&repo, &["aider"], &Value::Null, Signal::KILL);
    repo.oxundo(["status"]).warns("a hook of aider gave up ");
    repo.signal("killed");
    Output::awaited(run).success();
    repo.oxundo(["status"]).warns("(it was killed): the prompt's turn was left open");
    assert_eq!(repo.log().len(), 2, "the prompt is in one turn with the next one");
    repo.undo();
    assert!(repo.exists("one.txt") && !repo.exists("two.txt") && !repo.exists("three.txt"), "and is undone with it");
    repo.assert_sound();
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

/// One prompt of an agent on a small disk, of which only so many KiB are left while one of its hooks is at work; undo of it.
const ON_A_SMALL_DISK: &str = r#"
    mkdir -p ../home/small; ln -s "$(command -v sh)" ../home/agent; mount -t tmpfs -o size=24m small ../home/small || exit 77
    hook() {
        printf '{"hook_event_name":"%s","session_id":"s","prompt_id":"%s","prompt":"p","tool_name":"Bash","tool_use_id":"%s"}' $1 $id $id >../../payload
        said=$(../../agent -c '"$OXUNDO" hook claude 2>/dev/null; exit $?' <../../payload) || echo "$when, $room: $1 exits $?"
        [ -z "$said" ] || echo "$when, $room: $1 says $said"
    }
    at() {
        [ $1 != $when ] || dd if=/dev/zero of=../fill bs=1024 count=$(($(df --output=avail -k . | tail -1) - room)) status=none
        hook $1; rm -f ../fill
    }
    seen() { git status --porcelain; git rev-parse HEAD; git for-each-ref refs/oxundo/pending; cat a b new 2>&1; }
    cd ../home/small; git init -q top; cd top; git config user.name a; git config user.email a@b
    for f in a b; do echo $f >$f; done; git add -A; git commit -qm files; echo mine >>b
    id=0
    for room in 0 4 16 64; do for when in UserPromptSubmit PreToolUse PostToolUse Stop; do
        id=$((id + 1)); before=$(seen)
        at UserPromptSubmit; at PreToolUse; echo its $id >>a; echo its >new; at PostToolUse; at Stop
        "$OXUNDO" status >../../told 2>&1 || echo "$when, $room: status fails"
        "$OXUNDO" undo -q >>../../told 2>&1 || echo "$when, $room: undo fails: $(cat ../../told)"
        [ "$(seen)" = "$before" ] || echo "$when, $room: undo leads to $(seen), not to $before: $(cat ../../told)"
        "$OXUNDO" redo -q >../../said 2>../../told || echo "$when, $room: redo fails: $(cat ../../told)"
        "$OXUNDO" undo -q >../../said 2>../../told || echo "$when, $room: undo fails then: $(cat ../../told)"
        [ "$(seen)" = "$before" ] || echo "$when, $room: undo leads to $(seen) then"
    done; done
    git fsck --no-dangling 2>&1; echo $id"#;

#[test]
fn a_disk_that_is_full_while_a_hook_is_at_work_loses_nothing() {
    let repo = Sandbox::new();
    let mut shell = repo.shell("exec unshare -m sh -uc \"$SCRIPT\"");
    let output = Output::of(shell.env("SCRIPT", ON_A_SMALL_DISK).env("OXUNDO", env!("CARGO_BIN_EXE_oxundo")));
    if output.code == 77 || output.err().contains("unshare") {
        return announce("SKIPPED, NOTHING IS PROVED: no file system can be mounted here");
    }
    assert_eq!(output.out(), "16", "{output:?}");
}
