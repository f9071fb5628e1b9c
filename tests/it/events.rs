//! `log --follow`: each operation is told once, in its order, whatever else is done to the refs meanwhile.

use crate::sandbox::Sandbox;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

/// Somebody who follows the timeline.
pub(crate) struct Listener {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Listener {
    /// One who has begun.
    pub(crate) fn new(repo: &Sandbox) -> Self {
        // Nothing that is missed makes the test wait for ever.
        let mut command = repo.launched_command("exec timeout 60 \"$0\" log --follow --json", &[]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("follow");
        let lines = BufReader::new(child.stdout.take().expect("it has an output"));
        let mut listener = Self { child, lines };
        let start = listener.next();
        assert_eq!((&start["v"], &start["event"]), (&1.into(), &"start".into()));
        listener
    }

    /// The next event.
    #[track_caller]
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("read an event");
        assert!(line.ends_with('\n'), "it goes on: {line:?}");
        serde_json::from_str(&line).expect("an event is JSON")
    }

    /// The events until an operation that is described so.
    #[track_caller]
    pub(crate) fn until(&mut self, last: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next();
            let is_last = event["message"].as_str().is_some_and(|what| what.starts_with(last));
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    /// Nobody reads any more: it ends, and says nothing.
    #[track_caller]
    pub(crate) fn ends_quietly(self) {
        let Self { mut child, lines } = self;
        drop(lines);
        assert_eq!(child.wait().expect("wait").code(), Some(0));
    }
}

/// The last events of one whose repository goes, which ends with it.
#[track_caller]
fn last_events(listener: Listener) -> Vec<Value> {
    let Listener { mut child, lines } = listener;
    let events = lines.lines().map(|line| serde_json::from_str(&line.expect("read")).expect("JSON")).collect();
    assert_eq!(child.wait().expect("wait").code(), Some(0), "it ends by itself");
    events
}

fn messages(events: &[Value]) -> Vec<&str> {
    let told = |event: &'_ Value| event["message"].as_str().is_some();
    events.iter().filter(|event| told(event)).map(|event| event["message"].as_str().expect("it is told")).collect()
}

#[test]
fn every_operation_is_an_event_with_the_turn_that_it_is_about() {
    let repo = Sandbox::new();
    let mut listener = Listener::new(&repo);
    repo.oxundo(["run", "--agent", "claude", "-m", "one", "--", "sh", "-c", "echo 1 >one"]).success();
    let events = listener.until("end 1");
    assert_eq!(messages(&events), ["begin 1 (claude: one)", "end 1 (claude: one)"]);
    let [begin, end] = &events[..] else { panic!("{events:?}") };
    assert_eq!((&begin["event"], &begin["op"], &begin["open_turn"]), (&"operation".into(), &"begin".into(), &1.into()));
    assert_eq!((&begin["turn"]["state"], &end["turn"]["state"]), (&"open".into(), &"done".into()));
    assert_eq!(end["turn"]["files"], repo.log()[0]["files"], "a turn has one shape");
    repo.undo();
    repo.oxundo(["checkpoint", "here"]).success();
    let events = listener.until("checkpoint");
    let operations = repo.json(["log", "--ops", "-n", "2"]).1["operations"].clone();
    for (event, operation) in events.iter().rev().zip(operations.as_array().expect("they are listed")) {
        for key in ["state", "timeline", "at", "message"] {
            assert_eq!(event[key], operation[key], "as the operations are listed");
        }
    }
    listener.ends_quietly();
}

#[test]
fn nothing_is_missed_or_told_twice_while_git_packs_the_refs() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    let mut listener = Listener::new(&repo);
    let names: Vec<String> = (0..12).map(|n| format!("c{n}")).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| repo.sh("for n in 1 2 3 4 5 6 7 8; do git pack-refs --all --prune; done; git gc -q"));
        for name in &names {
            repo.oxundo(["checkpoint", name]).success();
        }
    });
    let events = listener.until("checkpoint c11");
    let wanted: Vec<String> = names.iter().map(|name| format!("checkpoint {name}")).collect();
    assert_eq!(messages(&events), wanted);
    listener.ends_quietly();
}

#[test]
fn what_has_expired_before_it_was_seen_is_said_to_be_unknown() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    let mut listener = Listener::new(&repo);
    repo.oxundo(["checkpoint", "a"]).success();
    assert_eq!(messages(&listener.until("checkpoint a")).len(), 1);
    // What was seen goes, and nothing is told twice.
    repo.sh("git reflog expire --expire=now --all");
    repo.oxundo(["checkpoint", "b"]).success();
    let events = listener.until("checkpoint b");
    assert_eq!(messages(&events), ["checkpoint b"]);
    // Somebody sets the ref to where it was, by hand.
    let tip = repo.git(["rev-parse", "refs/oxundo/timeline"]);
    let tree = repo.git(["rev-parse", "refs/oxundo/timeline^{tree}"]);
    let other = repo.git(["commit-tree", "-m", "by hand", &tree]);
    repo.git(["update-ref", "-d", "refs/oxundo/timeline"]);
    assert_eq!(listener.next()["event"], "gone");
    repo.git(["update-ref", "refs/oxundo/timeline", &other]);
    let events = listener.until("by hand");
    assert_eq!(events[0]["event"], "unknown");
    repo.git(["update-ref", "refs/oxundo/timeline", &tip]);
    assert_eq!(listener.next()["timeline"], Value::Null, "how it came to that is not known");
    assert_eq!(listener.next()["timeline"], tip.as_str());
    listener.ends_quietly();
}

#[test]
fn what_a_killed_writer_left_in_the_reflog_did_not_happen() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    let mut listener = Listener::new(&repo);
    let tip = repo.git(["rev-parse", "refs/oxundo/timeline"]);
    let never = repo.git(["rev-parse", "HEAD"]);
    let line = format!("{tip} {never} A <a@example.com> 1700000000 +0000\tundo 1 (never)");
    repo.sh(&format!(
        "printf '%s\\n' '{line}' >>.git/logs/refs/oxundo/timeline; touch .git/refs/oxundo/x; rm .git/refs/oxundo/x"
    ));
    repo.oxundo(["checkpoint", "a"]).success();
    assert_eq!(messages(&listener.until("checkpoint a")), ["checkpoint a"]);
    listener.ends_quietly();
}

#[test]
fn another_worktree_is_followed_there() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    let linked = repo.linked("other");
    let (mut here, mut there) = (Listener::new(&repo), Listener::new(&linked));
    linked.oxundo(["checkpoint", "there"]).success();
    repo.oxundo(["checkpoint", "here"]).success();
    assert_eq!(messages(&there.until("checkpoint")), ["checkpoint there"]);
    assert_eq!(messages(&here.until("checkpoint")), ["checkpoint here"]);
    there.ends_quietly();
    here.ends_quietly();
}

#[test]
fn a_directory_without_turns_is_followed_from_the_first_one() {
    let repo = Sandbox::new();
    let mut listener = Listener::new(&repo);
    repo.agent("echo 1 >one");
    assert_eq!(messages(&listener.until("end 1")).len(), 2);
    repo.oxundo(["uninstall", "--purge", "--yes"]).success();
    listener.ends_quietly();
}

#[test]
fn the_end_of_an_interrupted_turn_tells_of_that_turn() {
    let repo = Sandbox::new();
    let mut listener = Listener::new(&repo);
    repo.oxundo(["turn", "begin", "--agent", "gone"]).success();
    repo.write("new", "new\n");
    repo.agent("echo 1 >one");
    let told = listener.until("end (interrupted) 1");
    let turn = &told.last().expect("an event")["turn"];
    assert_eq!((&turn["turn"], &turn["interrupted"]), (&1.into(), &true.into()), "{told:?}");
}

#[test]
fn with_nobody_to_read_it_ends_at_once() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    for (json, place) in [("--json", ">&-"), ("--json", ">/dev/null"), ("--color=never", ">&-")] {
        let launch = format!("exec timeout 20 \"$0\" log --follow {json} {place}");
        let status = repo.launched_command(&launch, &[]).status().expect("run it");
        assert_eq!(status.code(), Some(0), "{json} {place}");
    }
}

#[test]
fn a_repository_that_is_deleted_is_gone_and_that_is_the_end() {
    let mut places: Vec<fn() -> Sandbox> = vec![Sandbox::new];
    if Sandbox::has_tables() {
        places.push(|| Sandbox::with_tables(&[]));
    }
    for place in places {
        for has_turns in [true, false] {
            let repo = place();
            if has_turns {
                repo.agent("echo 1 >one");
            }
            let (listener, other) = (Listener::new(&repo), repo.linked("other"));
            let beside = Listener::new(&other);
            repo.git(["worktree", "remove", "--force", "../other"]);
            for (which, listener) in [("a worktree", beside), ("all", listener)] {
                if which == "all" {
                    std::fs::remove_dir_all(repo.path(".git")).expect("delete it");
                }
                let events = last_events(listener);
                let kinds: Vec<_> = events.iter().map(|event| event["event"].as_str()).collect();
                assert_eq!(kinds, [Some("gone")], "{which}, with turns: {has_turns}: {events:?}");
            }
        }
    }
}
