//! Turns that an agent's own hooks bound, alone and inside `oxundo run`; and `oxundo turn`, for
//! scripts. What the agents send is in `payloads/`, a file an event.

use crate::sandbox::{Mode, Output, Sandbox, check_all};
use serde_json::{Value, json};

fn repo() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo
}

/// The agent's hook is called; it is silent and succeeds.
#[track_caller]
fn hook(repo: &Sandbox, args: &[&str], payload: &Value) -> Output {
    fed(repo, args, payload.to_string().as_bytes())
}

#[track_caller]
fn fed(repo: &Sandbox, args: &[&str], input: &[u8]) -> Output {
    let output = Output::fired(&mut repo.oxundo_command(["hook"].iter().chain(args)), input);
    output.success();
    assert!(output.stdout.is_empty(), "a hook is silent on stdout\n{output:?}");
    output
}

fn prompt(session: &str, id: &str, text: &str) -> Value {
    json!({"hook_event_name": "UserPromptSubmit", "session_id": session, "prompt_id": id, "prompt": text})
}

fn stop(session: &str, id: &str) -> Value {
    json!({"hook_event_name": "Stop", "session_id": session, "prompt_id": id})
}

fn gone(session: &str) -> Value {
    json!({"hook_event_name": "SessionEnd", "session_id": session, "reason": "other"})
}

/// The turns, newest first: number, message, interrupted, shared.
fn turns(repo: &Sandbox) -> Vec<(u64, String, bool, bool)> {
    let turn = |turn: &Value| {
        let flag = |name: &str| turn[name].as_bool().expect("a flag");
        let message = turn["message"].as_str().expect("a message").to_owned();
        (turn["turn"].as_u64().expect("a number"), message, flag("interrupted"), flag("shared"))
    };
    repo.log().iter().map(turn).collect()
}

fn done(number: u64, message: &str) -> (u64, String, bool, bool) {
    (number, message.to_owned(), false, false)
}

fn subjects(repo: &Sandbox) -> Vec<String> {
    repo.git(["log", "--format=%s"]).lines().map(str::to_owned).collect()
}

// Hooks alone

#[test]
fn each_prompt_is_a_turn() {
    let repo = repo();
    repo.write("mine.txt", "mine\n");
    repo.sh("echo dirty >>README.txt");
    let start = repo.state();
    hook(&repo, &["claude"], &prompt("s", "1", "add two\n\nplease"));
    repo.sh("echo two >>a.txt");
    hook(&repo, &["claude"], &stop("s", "1"));
    let first = repo.state();
    repo.sh("echo edited >>mine.txt; echo user >>README.txt");
    let between = repo.state();
    hook(&repo, &["claude"], &prompt("s", "2", "add three"));
    repo.sh("echo three >>a.txt; rm mine.txt");
    hook(&repo, &["claude"], &stop("s", "2"));
    hook(&repo, &["claude"], &gone("s"));
    let second = repo.state();

    assert_eq!(turns(&repo), [done(2, "add three"), done(1, "add two")]);
    let log = repo.log();
    assert_eq!((&log[0]["agent"], &log[0]["session"]), (&json!("claude"), &json!("s")), "{log:?}");
    assert_eq!(
        subjects(&repo),
        [
            "add three",
            "oxundo: uncommitted changes before turn 2",
            "add two",
            "oxundo: uncommitted changes before turn 1",
            "user: a.txt",
            "base"
        ]
    );
    repo.undo();
    repo.state().assert_is(&between, "undo gives back the state before the second prompt");
    repo.redo();
    repo.state().assert_is(&second, "and redo the one after it");
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.state().without("on disk mine.txt").without("on disk README.txt").without("git status").assert_is(
        &start.without("on disk mine.txt").without("on disk README.txt").without("git status"),
        "the user's edits between the prompts aside, all is as it was",
    );
    drop(first);
}

#[test]
fn a_prompt_that_changes_nothing_leaves_no_trace() {
    let repo = repo();
    repo.sh("echo dirty >>a.txt; git add a.txt; echo more >>a.txt; echo new >new");
    let before = repo.everything();
    for id in ["1", "2"] {
        hook(&repo, &["claude"], &prompt("s", id, "what is this?"));
        hook(&repo, &["claude"], &stop("s", id));
        repo.everything().assert_is(&before, "no turn, no commit, no ref");
    }
    assert_eq!(repo.log().len(), 0);
}

#[test]
fn a_hook_that_fires_twice_makes_one_turn() {
    let repo = repo();
    repo.sh("echo dirty >>a.txt");
    for id in [json!("1"), Value::Null] {
        let before = repo.log().len();
        for _ in 0..3 {
            hook(
                &repo,
                &["claude"],
                &json!({"event": "UserPromptSubmit", "session_id": "s", "prompt_id": id, "prompt": "p"}),
            );
        }
        repo.sh("echo two >>a.txt");
        for _ in 0..3 {
            hook(&repo, &["claude"], &json!({"event": "Stop", "session_id": "s", "prompt_id": id}));
        }
        assert_eq!(repo.log().len(), before + 1, "{id}");
    }
    let dirty = subjects(&repo).iter().filter(|subject| subject.starts_with("oxundo: ")).count();
    assert_eq!(dirty, 1, "one dirty commit");
}

#[test]
fn an_interrupted_prompt_is_closed_by_the_next_and_is_the_agents() {
    let repo = repo();
    hook(&repo, &["claude"], &prompt("s", "1", "first"));
    repo.sh("echo half >>a.txt");
    let half = repo.state();
    // Escape: nothing fires.
    hook(&repo, &["claude"], &prompt("s", "2", "second"));
    repo.sh("echo whole >>a.txt");
    hook(&repo, &["claude"], &stop("s", "2"));
    assert_eq!(turns(&repo), [done(2, "second"), (1, "first".to_owned(), true, false)]);
    assert!(subjects(&repo).iter().all(|subject| !subject.starts_with("oxundo: ")), "nothing counts as the user's");
    repo.undo();
    repo.assert_file("a.txt", "one\nhalf\n", "the second prompt is undone");
    repo.undo();
    repo.assert_file("a.txt", "one\n", "and the first");
    repo.redo();
    repo.state()
        .only(|name| name.starts_with("on disk"))
        .assert_is(&half.only(|name| name.starts_with("on disk")), "and comes back");
}

#[test]
fn the_end_of_a_session_or_an_end_that_tells_of_it_is_an_interruption() {
    let cases = [
        ("claude", gone("s")),
        ("claude", json!({"hook_event_name": "StopFailure", "session_id": "s"})),
        ("codex", json!({"hook_event_name": "Interrupt", "session_id": "s"})),
        ("cursor", json!({"hook_event_name": "stop", "session_id": "s", "status": "aborted"})),
    ];
    for (agent, end) in cases {
        let repo = repo();
        hook(&repo, &[agent, "begin"], &json!({"session_id": "s", "prompt": "p"}));
        repo.sh("echo two >>a.txt");
        hook(&repo, &[agent], &end);
        assert_eq!(turns(&repo), [(1, "p".to_owned(), true, false)], "{agent}");
        repo.undo();
        repo.assert_file("a.txt", "one\n", "undone");
    }
}

#[test]
fn ends_without_a_beginning_and_sub_agents_do_nothing() {
    let repo = repo();
    repo.sh("echo dirty >>a.txt");
    let before = repo.everything();
    for payload in [stop("s", "1"), gone("s"), json!({"hook_event_name": "SubagentStop", "session_id": "s"})] {
        hook(&repo, &["claude"], &payload);
    }
    hook(&repo, &["aider"], &Value::Null);
    repo.everything().assert_is(&before, "nothing was open");

    hook(&repo, &["claude"], &prompt("s", "1", "p"));
    repo.sh("echo two >>a.txt");
    let mut sub = stop("s", "1");
    sub["agent_id"] = json!("sub");
    hook(&repo, &["claude"], &sub);
    hook(&repo, &["claude"], &stop("other", "1"));
    hook(&repo, &["claude"], &stop("s", "0"));
    assert_eq!(repo.json(["status"]).1["open_turn"], 1, "neither a sub-agent nor another session ends it");
    hook(&repo, &["claude"], &stop("s", "1"));
    assert_eq!(turns(&repo), [done(1, "p")]);
}

#[test]
fn two_sessions_share_a_turn() {
    for mode in Mode::tried() {
        let repo = repo();
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        let before = repo.state();
        hook(&repo, &["claude"], &prompt("a", "1", "from a"));
        repo.sh("echo a >>a.txt");
        hook(&repo, &["codex"], &prompt("b", "1", "from b"));
        repo.sh("echo b >b.txt");
        hook(&repo, &["claude"], &stop("a", "1"));
        repo.sh("echo more >>b.txt");
        assert_eq!(repo.json(["status"]).1["open_turn"], 1, "the other one is still at work");
        hook(&repo, &["codex"], &stop("b", "1"));
        let after = repo.state();
        assert_eq!(turns(&repo), [(1, "from a".to_owned(), false, true)]);
        repo.oxundo(["log"]).says("[shared]");
        repo.undo();
        repo.state().assert_is(&before, "undone as one");
        repo.redo();
        repo.state().assert_is(&after, "redone as one");
    }
}

/// As if by an agent that is gone when the hook has returned: git runs it.
#[track_caller]
fn hook_of_the_dead(repo: &Sandbox, session: &str) {
    let payload = prompt(session, "1", "by the dead");
    std::fs::write(repo.home().join("payload"), payload.to_string()).expect("write the payload");
    repo.sh("git -c alias.dead='!oxundo hook claude <\"$HOME/payload\"; :' dead");
}

#[test]
fn a_session_whose_agent_is_gone_holds_nothing_up() {
    let repo = repo();
    hook_of_the_dead(&repo, "dead");
    repo.sh("echo half >>a.txt");
    let output = repo.oxundo(["status"]);
    output.warns("closed turn 1, which was interrupted");
    assert_eq!(turns(&repo), [(1, "by the dead".to_owned(), true, false)]);

    hook_of_the_dead(&repo, "dead too");
    repo.sh("echo more >>a.txt");
    hook(&repo, &["claude"], &prompt("s", "1", "by the living"));
    repo.sh("echo two >>a.txt");
    hook(&repo, &["claude"], &stop("s", "1"));
    assert_eq!(
        turns(&repo)[..2],
        [done(3, "by the living"), (2, "by the dead".to_owned(), true, false)],
        "it is not shared with the dead"
    );
}

#[test]
fn a_turn_that_hooks_opened_is_shown_and_closed_by_undo() {
    let repo = repo();
    let before = repo.state();
    hook(&repo, &["claude"], &prompt("s", "1", "add two"));
    repo.sh("echo two >>a.txt");
    for args in [&["status"] as &[_], &["log"], &["diff", "0"]] {
        assert_eq!(repo.oxundo(args).err(), "", "looking leaves it open");
    }
    repo.oxundo(["status"]).says("Turn 1 (claude: add two) is in progress");
    assert_eq!(repo.log()[0]["state"], "open");
    let output = repo.oxundo(["undo"]);
    output.success();
    output.warns("closed turn 1, in which claude was at work");
    repo.state().assert_is(&before, "what it did until then is undone");
    hook(&repo, &["claude"], &stop("s", "1"));
    repo.state().assert_is(&before, "its end has nothing to end");
    repo.redo();
    repo.assert_file("a.txt", "one\ntwo\n", "it comes back");
}

#[test]
fn where_no_commit_can_be_made_the_turn_is_kept_without() {
    let repo = Sandbox::init(&[]);
    repo.write("a.txt", "one\n");
    let before = repo.state();
    let output = hook(&repo, &["claude"], &prompt("s", "1", "p"));
    assert_eq!(output.err(), "", "an agent has no use for it");
    let log = String::from_utf8(repo.read(".git/oxundo/hooks.log")).expect("text");
    assert!(log.contains("claude -: warning: recorded without commits"), "{log}");
    let told = repo.oxundo(["doctor"]).out();
    assert!(!told.contains("the last call of a hook failed"), "{told}");
    repo.sh("echo two >>a.txt");
    hook(&repo, &["claude"], &stop("s", "1"));
    assert_eq!(repo.log()[0]["mode"], "ghost");
    repo.undo();
    repo.state().assert_is(&before, "and undone");
    hook(&repo, &["claude"], &prompt("s", "2", "p"));
    repo.identify();
    repo.sh("echo two >>a.txt");
    hook(&repo, &["claude"], &prompt("s", "3", "with\u{0} a commit"));
    repo.sh("echo three >b.txt");
    hook(&repo, &["claude"], &stop("s", "3"));
    assert_eq!(repo.log()[0]["mode"], "commit", "as soon as one can be made");
    assert_eq!(subjects(&repo)[0], "with a commit");
    repo.assert_sound();
}

#[test]
fn the_turn_is_where_the_agent_is_at_work() {
    let mut here = repo();
    here.write("sub/x", "");
    let top = here.root().to_string_lossy().into_owned();
    here.start_in("sub");
    let elsewhere = here.beside("home");
    for (at, extra) in [
        (&here, json!({})),
        (&elsewhere, json!({"cwd": format!("{top}/sub")})),
        (&elsewhere, json!({"workspace_roots": [top]})),
    ] {
        let mut payload = json!({"conversation_id": "s", "prompt": "p"});
        payload.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        hook(at, &["cursor", "begin"], &payload);
        assert_eq!(here.json(["status"]).1["open_turn"], 1, "{payload}");
        hook(at, &["cursor", "end"], &payload);
    }
    // Where there is no repository there is no turn, and no complaint.
    std::fs::create_dir(here.home().join("plain")).expect("make a directory");
    let plain = here.beside("home/plain");
    assert_eq!(hook(&plain, &["claude"], &prompt("s", "1", "p")).err(), "");
}

// Trouble

#[test]
fn a_hook_never_fails_as_its_agent_sees_it() {
    let repo = repo();
    let before = repo.everything();
    let big = format!("{{\"session_id\": \"{}", "x".repeat(10 << 20));
    let inputs: [&[u8]; 8] = [
        b"",
        b"{",
        b"null",
        b"[1, 2]",
        b"\xff\xfe{}",
        br#"{"session_id": 1, "hook_event_name": "UserPromptSubmit"}"#,
        br#"{"session_id": "s", "hook_event_name": ["UserPromptSubmit"]}"#,
        big.as_bytes(),
    ];
    for words in [&["claude"] as &[&str], &["nobody"], &[], &["claude", "NoSuchEvent"], &["claude", "--what", "-x"]] {
        for input in inputs {
            fed(&repo, words, input);
        }
    }
    let bad = repo.oxundo(["--no-such-option", "hook", "claude"]);
    bad.success();
    assert!(bad.stdout.is_empty(), "{bad:?}");
    repo.everything().assert_is(&before, "and nothing is done");
    let log = std::fs::read_to_string(repo.path(".git/oxundo/hooks.log")).expect("there is a log");
    assert!(log.contains("claude -: read the hook's JSON"), "{log}");
}

#[test]
fn the_log_does_not_grow_without_end() {
    let repo = repo();
    fed(&repo, &["claude"], b"{");
    let log = repo.path(".git/oxundo/hooks.log");
    std::fs::write(&log, "x".repeat(65 << 10)).expect("write the log");
    fed(&repo, &["claude"], b"{");
    assert!(log.metadata().expect("it is there").len() < 1000);
}

#[test]
fn a_hook_gives_up_where_another_oxundo_stays_at_work() {
    let repo = repo();
    fed(&repo, &["claude"], b"{");
    let lock = std::fs::File::options().append(true).create(true).open(repo.path(".git/oxundo/lock")).expect("open it");
    lock.lock().expect("take it");
    let output = hook(&repo, &["claude"], &gone("s"));
    output.warns("another oxundo is at work");
    assert_eq!(repo.log().len(), 0, "looking needs no lock");
}

// Inside a run

/// A `run` of a script with a function `hook`, which feeds its argument to claude's hook.
#[track_caller]
fn run_with_hooks(repo: &Sandbox, args: &[&str], script: &str) -> Output {
    let script = format!("hook() {{ printf '%s' \"$1\" | oxundo hook claude || exit 99; }}\n{script}");
    let output = repo.oxundo(["run"].iter().chain(args).chain(&["--agent", "claude", "--", "sh", "-ec", &script]));
    output.success();
    output
}

fn quoted(payload: &Value) -> String {
    format!("hook '{payload}'\n")
}

#[test]
fn inside_a_run_each_prompt_is_a_turn() {
    for mode in Mode::tried() {
        let repo = repo();
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        repo.sh("echo dirty >>README.txt; echo mine >mine.txt");
        let before = repo.state();
        let script = [
            quoted(&prompt("s", "1", "first")),
            "echo two >>a.txt\n".to_owned(),
            quoted(&stop("s", "1")),
            quoted(&prompt("s", "2", "a question")),
            quoted(&stop("s", "2")),
            quoted(&prompt("s", "3", "third")),
            "echo three >>a.txt; rm mine.txt\n".to_owned(),
            quoted(&stop("s", "3")),
            quoted(&gone("s")),
        ];
        run_with_hooks(&repo, &[], &script.concat());
        let after = repo.state();
        assert_eq!(turns(&repo), [done(2, "third"), done(1, "first")], "{mode:?}");
        let dirty = subjects(&repo).iter().filter(|subject| subject.starts_with("oxundo: ")).count();
        assert_eq!(dirty, usize::from(mode == Mode::Commit), "the user's work, once");
        assert_eq!(repo.json(["status"]).1["open_turn"], Value::Null);
        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.state().assert_is(&before, "both undone");
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.state().assert_is(&after, "both redone");
    }
}

#[test]
fn inside_a_run_nothing_is_lost_whichever_hook_fails_to_fire() {
    let events = [
        quoted(&prompt("s", "1", "first")),
        "echo two >>a.txt\n".to_owned(),
        quoted(&stop("s", "1")),
        quoted(&prompt("s", "2", "second")),
        "echo three >>a.txt\n".to_owned(),
        quoted(&stop("s", "2")),
        quoted(&gone("s")),
    ];
    let hooks: Vec<usize> = (0..events.len()).filter(|at| events[*at].starts_with("hook")).collect();
    // Every subset of the five hooks.
    for missing in 0..1_u32 << hooks.len() {
        let repo = repo();
        repo.sh("echo dirty >>README.txt");
        let before = repo.state();
        let fires = |at: &usize| hooks.iter().position(|hook| hook == at).is_none_or(|bit| missing & (1 << bit) == 0);
        let script: String = (0..events.len()).filter(fires).map(|at| events[at].as_str()).collect();
        run_with_hooks(&repo, &[], &script);
        let found = turns(&repo);
        let case = format!("missing {missing:05b}: {found:?}");
        let [first, first_end, second, ..] = [1, 2, 4].map(|bit| missing & bit == 0);
        let second_end = missing & 8 == 0;
        let is_waiting = first && first_end && !second && !second_end;
        let apart = !is_waiting && (first_end || (first && second));
        assert_eq!(found.len(), if apart { 2 } else { 1 }, "one sign between the prompts is enough: {case}");
        let dirty = subjects(&repo).iter().filter(|subject| subject.starts_with("oxundo: ")).count();
        assert_eq!(dirty, 1, "the user's work, once: {case}");
        if is_waiting {
            repo.assert_file("a.txt", "one\ntwo\nthree\n", "an agent that waits and tells of no prompt made nothing");
            assert_eq!(repo.git(["status", "--porcelain"]), " M a.txt", "it is there: {case}");
            continue;
        }
        assert_eq!(repo.git(["status", "--porcelain"]), "", "all is committed: {case}");
        let steps = found.len().to_string();
        repo.oxundo(["undo", "--steps", &steps]).success();
        if !first && !first_end && second {
            // What was there before the first sign of a prompt counts as the user's.
            repo.assert_file("a.txt", "one\ntwo\n", &case);
        } else {
            repo.state().assert_is(&before, &case);
        }
    }
}

/// The end of a prompt for which a command in the background is still at work.
fn still_at_work(session: &str, id: &str) -> Value {
    let mut end = stop(session, id);
    end["background_tasks"] = json!([{"id": "b1", "type": "shell", "status": "running"}]);
    end
}

#[test]
fn inside_a_run_what_is_done_in_the_background_is_the_agents() {
    let told = prompt("s", "2", "<task-notification>\n<task-id>b1</task-id>");
    let events = [
        quoted(&prompt("s", "1", "first")),
        quoted(&still_at_work("s", "1")),
        "echo two >>a.txt\n".to_owned(),
        quoted(&told),
        "echo new >new\n".to_owned(),
        quoted(&stop("s", "2")),
        quoted(&prompt("s", "3", "third")),
        "echo three >>a.txt\n".to_owned(),
        quoted(&stop("s", "3")),
    ];
    // All of them; and without the first prompt, its end, and the notification.
    for missing in [None, Some(0), Some(1), Some(3)] {
        let repo = repo();
        repo.sh("echo dirty >>README.txt");
        let script: String =
            (0..events.len()).filter(|at| Some(*at) != missing).map(|at| events[at].as_str()).collect();
        run_with_hooks(&repo, &["-m", "first"], &script);
        assert_eq!(turns(&repo), [done(2, "third"), done(1, "first")], "without {missing:?}");
        let subjects = subjects(&repo);
        assert_eq!(subjects[..2], ["third", "first"], "nothing of it counts as the user's, without {missing:?}");
        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.assert_file("a.txt", "one\n", "undone");
        repo.assert_absent("new", "undone");
    }
}

#[test]
fn a_prompt_while_something_is_at_work_in_the_background_begins_a_turn() {
    let repo = repo();
    hook(&repo, &["claude"], &prompt("s", "1", "first"));
    hook(&repo, &["claude"], &still_at_work("s", "1"));
    repo.sh("echo two >>a.txt");
    hook(&repo, &["claude"], &prompt("s", "2", "second"));
    repo.sh("echo three >>a.txt");
    hook(&repo, &["claude"], &stop("s", "2"));
    assert_eq!(turns(&repo), [done(2, "second"), done(1, "first")], "the first was not interrupted");
    assert!(subjects(&repo).iter().all(|subject| !subject.starts_with("oxundo: ")), "nothing counts as the user's");
    assert_eq!(repo.json(["status"]).1["open_turn"], Value::Null);
}

#[test]
fn inside_a_run_a_second_end_of_a_prompt_is_that_of_work_after_the_first() {
    let mut again = stop("s", "1");
    again["stop_hook_active"] = json!(true);
    let repo = repo();
    let script = [
        quoted(&prompt("s", "1", "first")),
        "echo two >>a.txt\n".to_owned(),
        quoted(&stop("s", "1")),
        "echo three >>a.txt\n".to_owned(),
        quoted(&again),
        quoted(&prompt("s", "2", "second")),
        "echo four >>a.txt\n".to_owned(),
        quoted(&stop("s", "2")),
    ];
    run_with_hooks(&repo, &[], &script.concat());
    assert_eq!(turns(&repo), [done(3, "second"), done(2, "claude: turn 2"), done(1, "first")]);
    assert_eq!(subjects(&repo)[..3], ["second", "claude: turn 2", "first"], "nothing of it counts as the user's");
}

#[test]
fn edits_between_the_prompts_of_a_run_are_the_users() {
    let repo = repo();
    let script = [
        quoted(&prompt("s", "1", "first")),
        "echo two >>a.txt\n".to_owned(),
        quoted(&stop("s", "1")),
        "echo user >>README.txt; echo new >user.txt\n".to_owned(),
        quoted(&prompt("s", "2", "second")),
        "echo three >>a.txt\n".to_owned(),
        quoted(&stop("s", "2")),
    ];
    run_with_hooks(&repo, &[], &script.concat());
    assert_eq!(
        subjects(&repo)[..3],
        ["second", "oxundo: uncommitted changes before turn 2", "first"].map(str::to_owned),
        "the user's edits are the user's"
    );
    repo.undo();
    repo.assert_file("README.txt", "readme\nuser\n", "they survive undo");
    repo.assert_file("user.txt", "new\n", "new files too");
    assert_eq!(repo.git(["status", "--porcelain"]), " M README.txt\n?? user.txt");
}

#[test]
fn edits_after_the_last_prompt_of_a_run_are_the_users() {
    let cleared = json!({"hook_event_name": "SessionEnd", "session_id": "s", "reason": "clear"});
    for (mode, ends) in [
        (Mode::Commit, vec![gone("s")]),
        (Mode::Ghost, vec![gone("s")]),
        (Mode::Commit, vec![]),
        (Mode::Commit, vec![cleared]),
    ] {
        let repo = repo();
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        let script = [
            quoted(&prompt("s", "1", "first")),
            "echo two >>a.txt\n".to_owned(),
            quoted(&stop("s", "1")),
            "echo user >>README.txt; echo new >user.txt\n".to_owned(),
            ends.iter().map(quoted).collect(),
        ];
        run_with_hooks(&repo, &[], &script.concat());
        assert_eq!(turns(&repo), [done(1, "first")], "{mode:?} {ends:?}");
        let dirty = subjects(&repo).iter().filter(|subject| subject.starts_with("oxundo: ")).count();
        assert_eq!(dirty, 0, "nothing of theirs is committed: {ends:?}");
        repo.undo();
        repo.assert_file("README.txt", "readme\nuser\n", "they survive undo");
        assert_eq!(repo.git(["status", "--porcelain"]), " M README.txt\n?? user.txt", "{ends:?}");
    }
}

#[test]
fn what_a_script_does_once_its_agent_is_gone_is_a_turn() {
    let repo = repo();
    let script = [
        quoted(&prompt("s", "1", "first")),
        "echo two >>a.txt\n".to_owned(),
        quoted(&stop("s", "1")),
        "echo user >>README.txt\n".to_owned(),
        quoted(&gone("s")),
        "echo made >made.txt\n".to_owned(),
    ];
    run_with_hooks(&repo, &[], &script.concat());
    assert_eq!(turns(&repo), [done(2, "claude: turn 2"), done(1, "first")]);
    assert_eq!(
        subjects(&repo)[..2],
        ["claude: turn 2", "oxundo: uncommitted changes before turn 2"].map(str::to_owned)
    );
    repo.undo();
    assert_eq!(repo.git(["status", "--porcelain"]), " M README.txt", "the user's stays, the script's goes");
}

#[test]
fn what_changes_after_a_run_is_killed_that_waited_for_a_prompt_is_the_users() {
    let repo = repo();
    let script = [
        "hook() { printf '%s' \"$1\" | oxundo hook claude || exit 99; }\n".to_owned(),
        quoted(&prompt("s", "1", "first")),
        "echo two >>a.txt\n".to_owned(),
        quoted(&stop("s", "1")),
        ": >\"$HOME/ready\"; exec sleep 30".to_owned(),
    ];
    let mut run = repo.spawn(&["run", "--agent", "claude", "--", "sh", "-ec", &script.concat()]);
    repo.wait_for("ready");
    run.kill().expect("kill it");
    run.wait().expect("it is gone");
    repo.sh("echo user >>README.txt");
    let said = repo.oxundo(["status"]);
    said.success();
    assert_eq!(turns(&repo), [done(1, "first")], "{said:?}");
    assert_eq!(repo.git(["status", "--porcelain"]), " M README.txt", "what they saved is as they left it");
}

#[test]
fn edits_before_the_first_prompt_of_a_run_are_the_users() {
    let repo = repo();
    repo.sh("echo dirty >>README.txt");
    let script = [
        "echo user >>README.txt\n".to_owned(),
        quoted(&prompt("s", "1", "first")),
        "echo two >>a.txt\n".to_owned(),
        quoted(&stop("s", "1")),
    ];
    run_with_hooks(&repo, &["-m", "given"], &script.concat());
    assert_eq!(turns(&repo), [done(1, "given")], "the message that was given stays");
    let dirty = subjects(&repo).iter().filter(|subject| subject.starts_with("oxundo: ")).count();
    assert_eq!(dirty, 1, "one dirty commit");
    repo.undo();
    repo.assert_file("README.txt", "readme\ndirty\nuser\n", "the user's edits survive undo");
    assert_eq!(repo.git(["status", "--porcelain"]), " M README.txt");
}

#[test]
fn an_agent_that_tells_only_of_ends_has_a_turn_a_prompt() {
    let repo = repo();
    let script = "for i in 1 2 3; do echo $i >>a.txt; oxundo hook aider </dev/null; done; oxundo hook aider </dev/null";
    repo.oxundo(["run", "--agent", "aider", "--", "sh", "-ec", script]).success();
    assert_eq!(repo.log().len(), 3);
    repo.undo();
    repo.assert_file("a.txt", "one\n1\n2\n", "the last prompt is undone");
}

#[test]
fn a_session_beside_a_run_shares_its_turn() {
    let repo = repo();
    let before = repo.state();
    let script = "touch ../home/started; while [ ! -e ../home/go ]; do sleep 0.05; done; echo run >>a.txt";
    let run = repo.spawn(&["run", "-m", "the run", "--", "sh", "-c", script]);
    repo.wait_for("started");
    hook(&repo, &["codex"], &prompt("b", "1", "beside"));
    repo.sh("echo b >b.txt");
    hook(&repo, &["codex"], &stop("b", "1"));
    hook(&repo, &["codex"], &prompt("b", "2", "beside"));
    repo.signal("go");
    Output::awaited(run).success();
    assert_eq!(repo.json(["status"]).1["open_turn"], 1, "the session beside the run is still at work");
    repo.sh("echo more >>b.txt");
    hook(&repo, &["codex"], &stop("b", "2"));
    assert_eq!(turns(&repo), [(1, "the run".to_owned(), false, true)]);
    assert_eq!(repo.log()[0]["exit_code"], 0, "the run's");
    repo.undo();
    repo.state().assert_is(&before, "undone as one");
}

/// A call of a shell.
fn shell(repo: &Sandbox, (agent, session): (&str, &str), id: &str, command: &str) {
    let told = |event: &str| {
        hook(
            repo,
            &[agent],
            &json!({"hook_event_name": event, "session_id": session, "tool_name": "Bash", "tool_use_id": id,
                "tool_input": {"command": command}, "tool_response": ""}),
        )
    };
    told("PreToolUse");
    repo.sh(command);
    told("PostToolUse");
}

/// It goes aside as a whole, or by a part of the turn, or stays behind where a branch begins.
#[test]
fn what_is_beyond_the_limits_and_changed_outside_of_the_calls_is_named_too_and_by_each_way_to_take_it_away() {
    for made in ["mkdir dist; echo USER >dist/b.js", "seq 99999 >data.csv", "echo USER >b.txt"] {
        for args in [&["undo"][..], &["undo", "--to", "1.1"], &["branch", "b", "1.1"], &["branch", "b", "0"]] {
            let repo = repo();
            repo.git(["config", "oxundo.maxFileSize", "64k"]);
            hook(&repo, &["codex"], &prompt("c", "1", "p"));
            shell(&repo, ("codex", "c"), "1", "echo AGENT >>a.txt");
            repo.sh(made);
            shell(&repo, ("codex", "c"), "2", "echo AGENT >>a.txt");
            hook(&repo, &["codex"], &stop("c", "1"));
            let name = ["dist", "data.csv", "b.txt"].into_iter().find(|name| repo.exists(name)).expect("it was made");
            let output = repo.oxundo(args);
            output.success();
            let told = format!("'{name}' changed outside of turn 1's calls");
            assert_eq!(output.err().contains(&told), !repo.exists(name), "{made}, {args:?}: {output:?}");
        }
    }
}

/// Codex does not tell of all its calls, so that what lies between those of which it does counts as its work.
#[test]
fn what_changed_outside_of_the_calls_that_are_told_of_is_named_where_it_goes() {
    for (first, between, last, named) in [
        ("echo AGENT >>a.txt", "echo USER >>b.txt", ":", Some("b.txt")),
        ("echo AGENT >>a.txt", "echo USER >>b.txt", "echo AGENT >>a.txt", Some("b.txt")),
        (":", "echo USER >>b.txt", "echo AGENT >>a.txt", Some("b.txt")),
        ("echo AGENT >>a.txt", "echo USER >>a.txt", "echo AGENT >>b.txt", Some("a.txt")),
        ("echo AGENT >>a.txt", ":", "echo AGENT >>b.txt", None),
        (
            "echo AGENT >>a.txt",
            "echo USER >>b.txt; git add b.txt; git commit -qm mine",
            "echo AGENT >>a.txt",
            Some("b.txt"),
        ),
    ] {
        let name = format!("{first}; {between}; {last}");
        let repo = repo();
        hook(&repo, &["codex"], &prompt("c", "1", "p"));
        shell(&repo, ("codex", "c"), "1", first);
        repo.sh(between);
        shell(&repo, ("codex", "c"), "2", last);
        hook(&repo, &["codex"], &stop("c", "1"));
        let after = repo.state();
        let undone = repo.oxundo(["undo"]);
        let told = undone.err();
        let told = told.lines().find(|line| line.contains("changed outside of turn 1's calls"));
        assert_eq!(told.is_some(), named.is_some(), "{name}: {undone:?}");
        if let Some(named) = named {
            assert!(told.is_some_and(|told| told.contains(&format!("'{named}'"))), "{name}: {undone:?}");
        }
        if undone.code == 0 {
            repo.redo();
            repo.state().assert_is(&after, &name);
        }
    }
}

#[test]
fn a_session_that_changed_nothing_is_not_credited_beside_one_that_does_not_tell_of_all_its_calls() {
    let listed = json!({"hook_event_name": "Stop", "session_id": "a", "prompt_id": "1",
        "background_tasks": [{"id": "b", "type": "shell", "status": "running"}]});
    let commits = "echo USER >mine.txt; git add mine.txt; git commit -qm mine";
    for (between, wanted) in [(":", "codex"), (commits, "codex"), ("echo MORE >>a.txt", "codex claude")] {
        let repo = repo();
        hook(&repo, &["claude"], &prompt("a", "1", "with a server"));
        shell(&repo, ("claude", "a"), "1", "echo A >>a.txt");
        hook(&repo, &["claude"], &listed);
        hook(&repo, &["codex"], &prompt("c", "1", "beside"));
        shell(&repo, ("codex", "c"), "1", "echo C >b.txt");
        repo.sh(between);
        shell(&repo, ("codex", "c"), "2", "echo C >c.txt");
        hook(&repo, &["codex"], &stop("c", "1"));
        hook(&repo, &["claude"], &stop("a", "1"));
        let credits = "git log -1 --format=%B | sed -n 's/^Assisted-by: \\([a-z]*\\).*/\\1/p' | xargs";
        assert_eq!(repo.sh(credits), wanted, "{between}");
    }
}

/// A `run` that has been started, and whose agent waits in the middle.
fn run_that_waits(repo: &Sandbox, agent: &str, before: &str, after: &str) -> std::process::Child {
    let hook = "hook() { printf '%s' \"$1\" | oxundo hook claude || exit 99; }\n";
    let wait = |name: &str| format!("touch ../home/{name}; while [ -e ../home/{name} ]; do sleep 0.05; done\n");
    let script = format!("{hook}{before}{}{after}", wait("waits"));
    let run = repo.spawn(&["run", "--agent", agent, "--", "sh", "-ec", &script]);
    repo.wait_for("waits");
    run
}

fn goes_on(repo: &Sandbox, name: &str) {
    std::fs::remove_file(repo.home().join(name)).expect("let it go on");
}

/// A call of a tool by the session beside it.
fn calls(repo: &Sandbox, session: &str, script: &str) {
    for event in ["PreToolUse", "PostToolUse"] {
        let call = json!({"hook_event_name": event, "session_id": session, "prompt_id": "1", "tool_name": "Bash",
            "tool_input": {"command": script}, "tool_use_id": script});
        if event == "PostToolUse" {
            repo.sh(script);
        }
        hook(repo, &["claude"], &call);
    }
}

#[test]
fn a_session_beside_a_run_whose_agent_waits_has_a_turn_of_its_own() {
    let repo = repo();
    let first = [quoted(&prompt("s", "1", "first")), "echo two >>a.txt\n".to_owned(), quoted(&stop("s", "1"))];
    let last = [quoted(&prompt("s", "2", "last")), "echo four >>a.txt\n".to_owned(), quoted(&stop("s", "2"))];
    let run = run_that_waits(&repo, "mybot", &first.concat(), &last.concat());
    hook(&repo, &["claude"], &prompt("b", "1", "beside"));
    calls(&repo, "b", "echo three >>a.txt");
    repo.sh("echo user >user.txt; echo user >>README.txt");
    crate::steps::tick();
    calls(&repo, "b", "echo b >b.txt");
    hook(&repo, &["claude"], &stop("b", "1"));
    assert_eq!(turns(&repo)[1..], [done(2, "beside"), done(1, "first")]);
    assert_eq!(repo.git(["status", "--porcelain"]), " M README.txt\n?? user.txt", "what was saved is the user's");
    repo.oxundo(["undo"]).success();
    repo.assert_absent("b.txt", "nobody is at work: it can be undone");
    repo.assert_file("a.txt", "one\ntwo\n", "undone");
    repo.assert_file("user.txt", "user\n", "the user's stays");
    repo.oxundo(["redo"]).success();
    goes_on(&repo, "waits");
    Output::awaited(run).success();
    assert_eq!(turns(&repo), [done(3, "last"), done(2, "beside"), done(1, "first")]);
    let agents: Vec<Value> = repo.log().iter().map(|turn| turn["agent"].clone()).collect();
    assert_eq!(agents, ["mybot", "claude", "mybot"], "each is called what it was before");
    let sessions: Vec<Value> = repo.log().iter().map(|turn| turn["session"].clone()).collect();
    assert_eq!(sessions, ["s", "b", "s"]);
}

#[test]
fn a_prompt_beside_a_run_whose_agent_has_only_something_in_the_background_begins_a_turn() {
    let repo = repo();
    let listed = json!({"hook_event_name": "Stop", "session_id": "s", "prompt_id": "1",
        "background_tasks": [{"id": "b", "type": "shell", "status": "running"}]});
    let told = |event: &str, id: &str| {
        quoted(
            &json!({"hook_event_name": event, "session_id": "s", "prompt_id": id, "tool_name": "Bash", "tool_use_id": id,
            "tool_input": {"command": "x"}, "tool_response": ""}),
        )
    };
    let call =
        |id: &str, script: &str| [told("PreToolUse", id), format!("{script}\n"), told("PostToolUse", id)].concat();
    let first = [quoted(&prompt("s", "1", "first")), call("1", "echo two >>a.txt"), quoted(&listed)];
    let last = [quoted(&prompt("s", "2", "last")), call("2", "echo four >>a.txt"), quoted(&stop("s", "2"))];
    let run = run_that_waits(&repo, "mybot", &first.concat(), &last.concat());
    for number in ["1", "2"] {
        hook(&repo, &["claude"], &prompt("b", number, &format!("beside {number}")));
        calls(&repo, "b", &format!("echo b >b{number}.txt"));
        hook(&repo, &["claude"], &stop("b", number));
    }
    goes_on(&repo, "waits");
    Output::awaited(run).success();
    repo.oxundo(["undo", "--only", "2"]).success();
    assert!(!repo.exists("b1.txt") && repo.exists("b2.txt"), "one of them alone is taken out");
    repo.assert_file("a.txt", "one\ntwo\nfour\n", "what the run's agent did stays");
    repo.redo();
    let log = repo.log();
    let told = |what: &str| log.iter().map(|turn| turn[what].clone()).collect::<Vec<Value>>();
    assert_eq!(told("message"), ["last", "beside 2", "beside 1", "first"]);
    assert_eq!(told("agent"), ["mybot", "claude", "claude", "mybot"]);
    assert_eq!(told("session"), ["s", "b", "b", "s"]);
}

#[test]
fn beside_a_run_whose_agent_tells_only_of_ends_nobody_can_tell_what_is_the_users() {
    let repo = repo();
    let end = "oxundo hook aider </dev/null\n";
    let goes = "echo late >>a.txt; touch ../home/late; while [ -e ../home/late ]; do sleep 0.05; done\n";
    let run = run_that_waits(&repo, "aider", &format!("echo two >>a.txt\n{end}"), &format!("{goes}{end}"));
    hook(&repo, &["claude"], &prompt("b", "1", "beside"));
    calls(&repo, "b", "echo b >b.txt");
    goes_on(&repo, "waits");
    repo.wait_for("late");
    crate::steps::tick();
    calls(&repo, "b", "echo more >>b.txt");
    hook(&repo, &["claude"], &stop("b", "1"));
    goes_on(&repo, "late");
    Output::awaited(run).success();
    assert_eq!(repo.git(["status", "--porcelain"]), "", "the agent's work is in a turn");
    assert!(subjects(&repo).iter().all(|subject| !subject.starts_with("oxundo: ")), "and not the user's");
}

#[test]
fn a_session_that_goes_into_another_worktree_and_out_of_it_has_a_turn_in_each() {
    let repo = repo();
    repo.git(["worktree", "add", "-q", "-b", "other", "../other"]);
    let top = repo.path("a.txt").parent().expect("it is in the worktree").to_owned();
    let other = top.parent().expect("it is in a directory").join("other");
    let told = |place: &std::path::Path, mut payload: Value| {
        payload["cwd"] = json!(place);
        let mut command = repo.oxundo_command(["hook", "claude"]);
        let output = Output::fired(command.env("CLAUDE_PROJECT_DIR", &top), payload.to_string().as_bytes());
        assert_eq!((output.code, output.out(), output.err()), (0, String::new(), String::new()), "{output:?}");
    };
    let there = |args: &[&str]| repo.json([&["-C", "../other"], args].concat()).1;
    for number in 1..=2_u64 {
        repo.sh("echo mine >>../other/mine.txt");
        let asked = format!("prompt {number}");
        let call = |event: &str, tool: &str, id: &str| {
            let name = ("hook_event_name", event);
            json!({name.0: name.1, "session_id": "s", "prompt_id": asked, "tool_name": tool, "tool_use_id": id})
        };
        told(&top, prompt("s", &asked, &asked));
        told(&top, call("PreToolUse", "EnterWorktree", "t1"));
        told(&other, call("PostToolUse", "EnterWorktree", "t1"));
        told(&other, call("PreToolUse", "Bash", "t2"));
        repo.sh("echo agent >>../other/a.txt");
        told(&other, call("PostToolUse", "Bash", "t2"));
        crate::steps::tick();
        repo.sh("echo user >>../other/README.txt");
        told(&other, call("PreToolUse", "ExitWorktree", "t3"));
        told(&top, call("PostToolUse", "ExitWorktree", "t3"));
        told(&top, call("PreToolUse", "Bash", "t4"));
        repo.sh("echo two >>a.txt");
        told(&top, call("PostToolUse", "Bash", "t4"));
        assert_eq!(there(&["status"])["open_turn"], number, "it may go back");
        told(&top, stop("s", &asked));
        assert_eq!(turns(&repo)[0], done(number, &asked));
        assert_eq!(there(&["status"])["open_turn"], Value::Null);
        let turn = there(&["log"])["turns"][0].clone();
        assert_eq!((&turn["message"], &turn["session"]), (&json!(asked), &json!("s")), "{turn}");
        let left = repo.git(["-C", "../other", "status", "--porcelain"]);
        assert_eq!(left, " M README.txt\n?? mine.txt", "what the user saved there is the user's");
    }
    repo.oxundo(["-C", "../other", "undo", "--steps", "2"]).success();
    let found = repo.sh("cat ../other/a.txt ../other/mine.txt a.txt");
    assert_eq!(found, "one\nmine\nmine\none\ntwo\ntwo", "each is undone in its own worktree");
}

#[test]
fn a_file_in_another_worktree_that_a_call_names_by_its_whole_path_is_in_a_turn_there() {
    let agents = [("claude", Some("CLAUDE_PROJECT_DIR")), ("claude", None)];
    check_all(agents.map(|agent| (format!("{agent:?}"), agent)), |(agent, variable)| {
        let repo = repo();
        repo.git(["worktree", "add", "-q", "-b", "other", "../other"]);
        let (top, there) = (repo.path(""), |args: &[&str]| repo.json([&["-C", "../other"], args].concat()).1);
        let told = |mut payload: Value| {
            payload["cwd"] = json!(top);
            let mut command = repo.oxundo_command(["hook", agent]);
            command.env_remove("CLAUDE_PROJECT_DIR").envs(variable.map(|variable| (variable, &top)));
            let output = Output::fired(&mut command, payload.to_string().as_bytes());
            assert_eq!((output.code, output.out(), output.err()), (0, String::new(), String::new()), "{output:?}");
        };
        let file = repo.path("../other/new/file.txt");
        let call = |id: &str, tool: &str, change: &str| {
            for event in ["PreToolUse", "PostToolUse"] {
                told(json!({"hook_event_name": event, "session_id": "s", "tool_name": tool, "tool_use_id": id,
                    "tool_input": {"file_path": file, "command": "x"}}));
                if event == "PreToolUse" {
                    repo.sh(change);
                    crate::steps::tick();
                }
            }
        };
        told(prompt("s", "p", "write there"));
        call("t1", "Read", "");
        assert_eq!(there(&["status"])["open_turn"], Value::Null, "it was only read");
        call("t2", "Bash", "echo two >>a.txt");
        call("t3", "Write", "mkdir ../other/new; echo agent >../other/new/file.txt");
        repo.sh("echo user >>../other/README.txt");
        crate::steps::tick();
        call("t4", "Edit", "echo more >>../other/new/file.txt");
        told(stop("s", "p"));
        assert_eq!(turns(&repo), [done(1, "write there")]);
        let log = there(&["log"]);
        let turn = &log["turns"][0];
        assert_eq!((&turn["message"], &turn["state"]), (&json!("write there"), &json!("done")), "{log}");
        let shown = |at: &str| repo.git(["-C", at, "show", "--format=", "--name-only"]);
        assert_eq!([shown("."), shown("../other")], ["a.txt", "new/file.txt"], "each is its own worktree's");
        assert_eq!(repo.git(["-C", "../other", "status", "--porcelain"]), " M README.txt", "nor is the user's there");
        repo.oxundo(["-C", "../other", "undo"]).success();
        assert_eq!(repo.sh("ls ../other"), "README.txt\na.txt");
        repo.assert_file("a.txt", "one\ntwo\n", "the other turn stays");
    });
}

/// It may have led the session there and done nothing, or its beginning was lost with a hook.
#[test]
fn an_end_that_is_the_first_that_is_told_in_another_worktree_begins_a_turn_that_the_prompts_end_ends() {
    check_all(["EnterWorktree", "Edit"].map(|tool| (tool.to_owned(), tool)), |tool| {
        let repo = repo();
        repo.git(["worktree", "add", "-q", "-b", "other", "../other"]);
        let there = |args: &[&str]| repo.json([&["-C", "../other"], args].concat()).1;
        let told = |place: &str, mut payload: Value| {
            payload["cwd"] = json!(repo.path(place));
            let mut command = repo.oxundo_command(["hook", "claude"]);
            command.env("CLAUDE_PROJECT_DIR", repo.path(""));
            let output = Output::fired(&mut command, payload.to_string().as_bytes());
            assert_eq!((output.code, output.out(), output.err()), (0, String::new(), String::new()), "{output:?}");
        };
        let file = repo.path("../other/a.txt");
        let call = |event: &str| json!({"hook_event_name": event, "session_id": "s", "tool_name": tool, "tool_use_id": "t1", "tool_input": {"file_path": file}});
        told("", prompt("s", "p", "go there"));
        if *tool == "EnterWorktree" {
            told("", call("PreToolUse"));
            told("../other", call("PostToolUse"));
        } else {
            repo.sh("echo agent >>../other/a.txt");
            told("", call("PostToolUse"));
        }
        crate::steps::tick();
        repo.sh("cd ../other; echo user >>README.txt; git commit -qam user");
        told("", stop("s", "p"));
        assert_eq!(there(&["status"])["open_turn"], Value::Null, "it is ended");
        repo.sh("cd ../other; echo later >>README.txt; git commit -qam later");
        let output = repo.oxundo(["-C", "../other", "undo"]);
        assert_ne!(output.code, 0, "there is nothing of the agent's: {output:?}");
        assert_eq!(repo.git(["-C", "../other", "log", "-2", "--format=%s"]), "later\nuser");
    });
}

/// Claude Code's `isolation: worktree`, in the order in which its hooks told of it.
#[test]
fn a_sub_agent_in_a_worktree_of_its_own_has_a_turn_there_beside_its_agents() {
    let repo = repo();
    let place = ".claude/worktrees/agent-1";
    repo.git(["worktree", "add", "-q", "-b", "worktree-agent-1", place]);
    let top = repo.path("");
    let told = |below: &str, mut payload: Value| {
        payload["cwd"] = json!(top.join(below));
        if !below.is_empty() {
            payload["agent_id"] = json!("1");
        }
        let mut command = repo.oxundo_command(["hook", "claude"]);
        let output = Output::fired(command.env("CLAUDE_PROJECT_DIR", &top), payload.to_string().as_bytes());
        assert_eq!((output.code, output.out(), output.err()), (0, String::new(), String::new()), "{output:?}");
    };
    let call = |event: &str, tool: &str, id: &str| json!({"hook_event_name": event, "session_id": "s", "prompt_id": "p", "tool_name": tool, "tool_use_id": id});
    let there = |args: &[&str]| repo.json([&["-C", place], args].concat()).1;
    told("", prompt("s", "p", "write"));
    told("", call("PreToolUse", "Agent", "t1"));
    told("", call("PostToolUse", "Agent", "t1"));
    told(place, call("PreToolUse", "Bash", "t2"));
    told("", call("PreToolUse", "Bash", "t3"));
    repo.sh(&format!("echo apart >>{place}/a.txt; echo two >>a.txt"));
    told(place, call("PostToolUse", "Bash", "t2"));
    told("", call("PostToolUse", "Bash", "t3"));
    // It is at work longer than its agent.
    told("", still_at_work("s", "p"));
    told(place, call("PreToolUse", "Bash", "t4"));
    repo.sh(&format!("echo more >>{place}/a.txt"));
    told(place, call("PostToolUse", "Bash", "t4"));
    assert_eq!(there(&["status"])["open_turn"], 1);
    told("", prompt("s", "q", "<task-notification>done"));
    told("", stop("s", "q"));
    assert_eq!(turns(&repo), [done(1, "write")]);
    let log = there(&["log"]);
    assert_eq!((&log["turns"][0]["message"], &log["turns"][0]["state"]), (&json!("write"), &json!("done")), "{log}");
    repo.undo();
    assert_eq!(
        repo.sh(&format!("cat a.txt {place}/a.txt")),
        "one\none\napart\nmore",
        "its agent's turn is undone alone"
    );
    repo.oxundo(["-C", place, "undo"]).success();
    repo.redo();
    assert_eq!(repo.sh(&format!("cat a.txt {place}/a.txt")), "one\ntwo\none", "and its own");
}

/// No hook tells of Escape. What is in flight in the other worktree is its agent's until the end of the prompt after it.
#[test]
fn a_prompt_after_escape_ends_the_turn_in_another_worktree_unless_a_call_is_at_work_there() {
    let repo = repo();
    repo.git(["worktree", "add", "-q", "-b", "other", "../other"]);
    let there = |args: &[&str]| repo.json([&["-C", "../other"], args].concat()).1;
    let call = |event: &str, id: &str| json!({"hook_event_name": event, "session_id": "s", "tool_name": "Bash", "tool_use_id": id, "cwd": repo.path("../other")});
    let agent = |in_flight: &str| {
        let events = [
            quoted(&prompt("s", "1", "first")),
            quoted(&call("PreToolUse", "t1")),
            "echo one >>../other/a.txt; ".to_owned() + in_flight,
            quoted(&prompt("s", "2", "second")),
            "(cd ../other; oxundo --json status) >../home/status\n".to_owned(),
            "echo >../home/go; wait\n".to_owned(),
            quoted(&call("PreToolUse", "t2")),
            "echo two >>../other/a.txt\n".to_owned(),
            quoted(&call("PostToolUse", "t2")),
            quoted(&stop("s", "2")),
        ];
        let setting = format!("export CLAUDE_PROJECT_DIR={}\nrm -f ../home/go\n", repo.path("").display());
        // A pipe would be a process of the agent's.
        let hook = "hook() { oxundo hook claude <<END || exit 99\n$1\nEND\n}\n";
        std::fs::write(repo.home().join("agent"), [&setting, hook, &events.concat()].concat()).expect("write it");
        // The agent is git.
        repo.sh("git -c alias.agent='!sh ../home/agent; :' agent");
        let status = std::fs::read_to_string(repo.home().join("status")).expect("what status said");
        let status: Value = serde_json::from_str(&status).expect("it is JSON");
        let log = there(&["log"])["turns"].as_array().expect("turns").clone();
        let turns: Vec<Value> =
            log.iter().map(|turn| json!([turn["message"], turn["state"], turn["interrupted"]])).collect();
        (status["open_turn"].clone(), turns)
    };
    let (open, turns) = agent("\n");
    assert_eq!(open, Value::Null, "the first prompt is over");
    assert_eq!(turns, [json!(["second", "done", false]), json!(["first", "done", true])]);
    repo.oxundo(["-C", "../other", "undo", "--steps", "2"]).success();
    let (open, turns) = agent("(until [ -e ../home/go ]; do sleep 0.02; done; echo late >>../other/a.txt) &\n");
    assert_eq!(open, 3, "what it has started there is at work");
    assert_eq!(turns[0], json!(["first", "done", false]), "until the next prompt's end");
    assert_eq!(repo.sh("cat ../other/a.txt"), "one\none\nlate\ntwo");
    assert_eq!(repo.git(["-C", "../other", "status", "--porcelain"]), "", "all of it is in the turn");
}

#[test]
fn a_run_shares_its_turn_with_a_session_at_work() {
    let repo = repo();
    // An agent that is not above this process: git runs it.
    let payload = repo.home().join("payload");
    std::fs::write(&payload, prompt("b", "1", "beside").to_string()).expect("write the payload");
    let script =
        "oxundo hook codex <../home/payload; touch ../home/ready; while [ ! -e ../home/go ]; do sleep 0.05; done";
    std::fs::write(repo.home().join("agent"), script).expect("write the agent");
    let mut agent = repo.git_command(["-c", "alias.agent=!sh ../home/agent", "agent"]).spawn().expect("start it");
    repo.wait_for("ready");
    repo.sh("echo b >b.txt");
    let output = repo.oxundo(["run", "-m", "the run", "--", "sh", "-c", "echo run >>a.txt"]);
    output.success();
    output.warns("closed turn 1, in which codex was at work");
    hook(&repo, &["codex"], &stop("b", "1"));
    repo.signal("go");
    agent.wait().expect("it ends");
    assert_eq!(turns(&repo), [(2, "the run".to_owned(), false, true), (1, "beside".to_owned(), true, false)]);
}

#[test]
fn a_run_within_an_agents_turn_is_part_of_it() {
    let repo = repo();
    std::fs::write(repo.home().join("begin"), prompt("s", "1", "p").to_string()).expect("write a payload");
    repo.by_agent("oxundo hook claude <../home/begin; oxundo run -- sh -c 'echo two >>a.txt'").success();
    assert_eq!(repo.json(["status"]).1["open_turn"], 1, "the turn is still open");
    hook(&repo, &["claude"], &stop("s", "1"));
    assert_eq!(turns(&repo), [done(1, "p")]);
}

#[test]
fn undo_is_possible_while_the_agent_in_a_run_waits_for_a_prompt() {
    let repo = repo();
    let wait = |name: &str| format!(": >../home/{name}; until [ -e ../home/{name}-go ]; do sleep 0.02; done\n");
    let script = [
        "hook() { printf '%s' \"$1\" | oxundo hook claude || exit 99; }\n".to_owned(),
        quoted(&prompt("s", "1", "first")),
        "echo two >>a.txt\n".to_owned(),
        quoted(&stop("s", "1")),
        wait("waits"),
        quoted(&prompt("s", "2", "second")),
        wait("works"),
        "echo three >>a.txt\n".to_owned(),
        quoted(&stop("s", "2")),
    ];
    let run = repo.spawn(&["run", "--agent", "claude", "--", "sh", "-ec", &script.concat()]);
    repo.wait_for("waits");
    repo.undo();
    repo.assert_file("a.txt", "one\n", "it was undone");
    repo.signal("waits-go");
    repo.wait_for("works");
    repo.refuses(&["undo"], "busy");
    repo.signal("works-go");
    Output::awaited(run).success();
    assert_eq!(turns(&repo), [done(2, "second")]);
    repo.assert_file("a.txt", "one\nthree\n", "and the next prompt began there");
}

#[test]
fn a_run_that_is_killed_leaves_its_turn_to_be_closed() {
    let repo = repo();
    let script = format!(
        "printf '%s' '{}' | oxundo hook claude; echo two >>a.txt; : >\"$HOME/ready\"; exec sleep 30",
        prompt("s", "1", "first")
    );
    let mut run = repo.spawn(&["run", "--agent", "claude", "--", "sh", "-c", &script]);
    repo.wait_for("ready");
    run.kill().expect("kill it");
    run.wait().expect("it is gone");
    repo.oxundo(["status"]).warns("closed turn 1, which was interrupted");
    assert_eq!(turns(&repo), [(1, "first".to_owned(), true, false)]);
}

// For scripts

#[test]
fn a_script_tells_of_its_turns() {
    let repo = repo();
    let begin = ["turn", "begin", "--session", "s", "--turn", "1", "-m", "by hand", "--agent", "ed"];
    repo.oxundo(begin).says("Began turn 1");
    repo.sh("echo two >>a.txt");
    repo.oxundo(begin).says("Turn 1 has begun already");
    repo.oxundo(["turn", "end", "--session", "s", "--turn", "0"])
        .says("Turn 1 goes on: it is another session's, or of another --turn");
    repo.oxundo(["turn", "end", "--session", "s", "--turn", "1"]).says("Ended turn 1 (ed: by hand): 1 file");
    let again = repo.oxundo(["turn", "end", "--session", "s", "--turn", "1"]);
    again.success();
    again.says("No turn is open");
    assert_eq!(turns(&repo), [done(1, "by hand")]);

    let (_, value) = repo.json(["turn", "begin", "--session", "s"]);
    assert_eq!(value, json!({"v": 1, "op": "begin", "changed": true, "open_turn": 2, "closed_turn": null}));
    repo.sh("echo three >>a.txt");
    let (_, value) = repo.json(["turn", "abort", "--session", "s"]);
    assert_eq!(value, json!({"v": 1, "op": "abort", "changed": true, "open_turn": null, "closed_turn": 2}));
    assert_eq!(repo.log()[0]["interrupted"], true);
    repo.oxundo(["turn", "begin"]).success();
    repo.oxundo(["turn", "end"]).says("Nothing was changed: no turn");
    repo.oxundo(["turn", "middle"]).exits(2);
}

#[test]
fn a_script_that_begins_again_closes_what_it_left_open() {
    let repo = repo();
    repo.oxundo(["turn", "begin", "-m", "first"]).success();
    repo.sh("echo two >>a.txt");
    repo.oxundo(["turn", "begin", "-m", "second"])
        .says("Closed interrupted turn 1 (script: first): 1 file\nBegan turn 2");
    repo.oxundo(["turn", "end"]).success();
    assert_eq!(turns(&repo), [(1, "first".to_owned(), true, false)]);
}

// The conversation

#[test]
fn undo_says_how_to_take_the_agent_back_too() {
    let repo = repo();
    let transcript = repo.home().join("transcript.jsonl");
    std::fs::write(&transcript, "12345\n").expect("write a transcript");
    let with_transcript = |mut payload: Value| {
        payload["transcript_path"] = json!(transcript.to_string_lossy());
        payload
    };
    hook(&repo, &["claude"], &with_transcript(prompt("sess-1", "p1", "add two")));
    repo.sh("echo two >>a.txt");
    let text = "12345\n{\"type\":\"assistant\",\"message\":{\"model\":\"claude-x\"}}\n";
    std::fs::write(&transcript, text).expect("write a transcript");
    hook(&repo, &["claude"], &with_transcript(stop("sess-1", "p1")));
    assert_eq!(repo.log()[0]["model"], "claude-x", "the transcript names the model");
    let output = repo.oxundo(["undo"]);
    output.success();
    output.warns("hint: Claude Code still remembers it: 'claude --resume sess-1', then '/rewind' takes");
    repo.redo();
    let (_, undone) = repo.json(["undo"]);
    assert_eq!(
        undone["conversations"],
        json!([{"turn": 1, "agent": "claude", "session": "sess-1", "prompt": "p1", "resume": "claude --resume sess-1",
            "transcript": transcript.to_string_lossy(), "from": 6, "to": text.len(), "fork": null, "not_forked": null}])
    );
}

#[test]
fn undo_promises_no_way_back_in_a_conversation_that_has_none() {
    let hints = [
        ("qwen", "Qwen Code", "'qwen --resume s1' takes the conversation up again, and takes nothing back"),
        ("pi", "pi", "'pi --session s1', then '/tree' takes the conversation back"),
        ("copilot", "Copilot CLI", "'copilot --resume s1', then '/rewind' takes the conversation back"),
        ("droid", "Droid", "'droid --resume s1', then '/rewind-conversation' takes the conversation back"),
    ];
    for (agent, title, hint) in hints {
        let repo = repo();
        hook(&repo, &[agent, "begin"], &json!({"session_id": "s1", "prompt": "p", "submitted_prompt": "p"}));
        repo.sh("echo two >>a.txt");
        hook(&repo, &[agent, "end"], &json!({"session_id": "s1"}));
        let output = repo.oxundo(["undo"]);
        output.success();
        output.warns(&format!("hint: {title} still remembers it: {hint}"));
    }
}

#[test]
fn a_session_id_that_is_a_command_is_not_offered_as_one() {
    let repo = repo();
    hook(&repo, &["claude"], &prompt("x; rm -rf ~", "1", "p"));
    repo.sh("echo two >>a.txt");
    hook(&repo, &["claude"], &stop("x; rm -rf ~", "1"));
    let output = repo.oxundo(["undo"]);
    output.success();
    assert!(!output.err().contains("rm -rf"), "{output:?}");
}

#[test]
fn the_users_commands_are_told_of_undo_and_redo() {
    let repo = repo();
    repo.git(["config", "oxundo.onUndo", "cat >../home/undone; oxundo log >../home/log"]);
    repo.git(["config", "oxundo.onRedo", "cat >../home/redone; echo noise; echo failed >&2; exit 3"]);
    repo.agent("echo two >>a.txt");
    let told = |name: &str| std::fs::read(repo.home().join(name)).ok();
    repo.oxundo(["undo", "--dry-run"]).success();
    assert_eq!(told("undone"), None, "a dry run does nothing");
    let (_, printed) = repo.json(["undo"]);
    assert_eq!(serde_json::from_slice::<Value>(&told("undone").expect("it was told")).ok(), Some(printed));
    assert!(told("log").is_some_and(|log| !log.is_empty()), "it may call oxundo");
    let output = repo.oxundo(["redo"]);
    output.success();
    output.warns("warning: oxundo.onRedo failed: sh: failed");
    assert!(!output.out().contains("noise"), "{output:?}");
    assert!(told("redone").is_some());
    repo.assert_file("a.txt", "one\ntwo\n", "redone all the same");
}
