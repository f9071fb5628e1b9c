//! `run --steps`: what has changed when the worktree is quiet is a step, of an agent that tells of nothing.

use crate::sandbox::{Mode, Sandbox};
use serde_json::{Value, json};

/// Waits in the agent until the turn has this step.
const STEP: &str = "step() { until git cat-file -e refs/oxundo/${TREE}timeline:turns/00/00/01/steps/00/0$1/step.json 2>/dev/null; \
                    do sleep 0.02; done; }; ";

/// A turn of an agent that is watched.
fn watched(repo: &Sandbox, mode: Mode, script: &str) {
    let script = format!("{STEP}{script}");
    let options: &[&str] = if mode == Mode::Ghost { &["--ghost"] } else { &[] };
    let args = [&["run", "--steps"], options, &["--", "sh", "-ec", &script]].concat();
    let output = repo.oxundo(args);
    output.success();
    assert_eq!(output.err(), "", "nothing went wrong");
}

/// The steps of the last turn: their names, whose they are, and the files.
fn steps(repo: &Sandbox) -> Vec<Value> {
    let (_, log) = repo.json(["log", "--steps"]);
    let step = |step: &Value| {
        let files = step["files"].as_array().expect("files").iter().map(|file| file["path"].clone());
        json!([step["step"], step["tool"], step["share"], files.collect::<Vec<_>>()])
    };
    log["turns"][0]["steps"].as_array().expect("steps").iter().map(step).collect()
}

#[test]
fn a_moment_of_quiet_is_a_step_that_is_a_state_like_any_other() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.write("mine.txt", "mine\n");
        let before = repo.state();
        // A directory is made and filled before anybody can listen to it; what is below it is heard later.
        watched(
            &repo,
            mode,
            "echo one >one.txt; step 1; mkdir -p d/e; echo new >d/e/new.txt; step 2; echo more >>d/e/new.txt; step 3; \
             rm mine.txt; git add -A; git commit -qm own; step 4; echo last >one.txt",
        );
        let after = repo.state();
        let wanted = [
            json!(["1.1", "watched", "claimed", ["one.txt"]]),
            json!(["1.2", "watched", "claimed", ["d/e/new.txt"]]),
            json!(["1.3", "watched", "claimed", ["d/e/new.txt"]]),
            json!(["1.4", "watched", "claimed", ["mine.txt"]]),
        ];
        assert_eq!(steps(&repo), wanted);
        assert_eq!(repo.oxundo(["show", "1.2:d/e/new.txt"]).out(), "new");
        repo.oxundo(["log", "--steps"]).says("1.1  watched one.txt  1 file +1");
        repo.oxundo(["undo", "--to", "1.2"]).success();
        repo.assert_file("d/e/new.txt", "new\n", "as it was after the step");
        repo.assert_file("mine.txt", "mine\n", "as it was after the step");
        repo.redo();
        repo.state().assert_is(&after, "redo goes on to the end");
        repo.oxundo(["undo", "--only", "1.3"]).success();
        repo.assert_file("d/e/new.txt", "new\n", "the step is taken out");
        repo.redo();
        repo.undo();
        repo.state().assert_is(&before, "the turn as a whole");
        repo.redo();
        repo.state().assert_is(&after, "and again");
        repo.assert_sound();
    }
}

#[test]
fn a_file_that_is_half_written_is_in_no_step() {
    let repo = Sandbox::new();
    repo.write("old.txt", "whole\n");
    watched(
        &repo,
        Mode::Ghost,
        "exec 3>half.txt 4>old.txt; echo half >&3; echo ha >&4; echo other >other.txt; step 1; \
         mv half.txt moved.txt; echo 2 >other.txt; step 2; echo rest >&3; exec 3>&- 4>&-; step 3",
    );
    let files: Vec<Value> = steps(&repo).iter().map(|step| step[3].clone()).collect();
    assert_eq!(files, [json!(["other.txt"]), json!(["other.txt"]), json!(["moved.txt", "old.txt"])]);
    assert_eq!(repo.oxundo(["show", "1.2:old.txt"]).out(), "whole", "as it was before");
    assert_eq!(repo.oxundo(["show", "1.3:moved.txt"]).out(), "half\nrest");
    assert_eq!(repo.oxundo(["show", "1.3:old.txt"]).out(), "ha");
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_half_written_has_the_name_that_its_directory_has() {
    let repo = Sandbox::new();
    repo.write("d/log.txt", "whole\n");
    watched(
        &repo,
        Mode::Ghost,
        "exec 3>>d/log.txt; echo half >&3; mv d e; echo 1 >one.txt; step 1; echo rest >&3; echo 2 >one.txt; step 2; \
         exec 3>&-; step 3; exec 3>>e/log.txt; echo more >&3; mv e ../away; echo 3 >one.txt; step 4",
    );
    let files: Vec<Value> = steps(&repo).iter().map(|step| step[3].clone()).collect();
    let wanted =
        [json!(["d/log.txt", "one.txt"]), json!(["one.txt"]), json!(["e/log.txt"]), json!(["e/log.txt", "one.txt"])];
    assert_eq!(files, wanted, "nothing is where it was not");
    assert_eq!(repo.oxundo(["show", "1.3:e/log.txt"]).out(), "whole\nhalf\nrest");
}

#[cfg(target_os = "linux")]
#[test]
fn switched_off_nothing_is_listened_to_and_what_is_ignored_never_is() {
    let listens = "ls -l /proc/$PPID/fd | grep -c inotify >../home/told || true; \
                   cat /proc/$PPID/fdinfo/* 2>/dev/null | grep -c ^inotify >../home/places || true";
    let told = |repo: &Sandbox, name: &str| {
        let text = std::fs::read_to_string(repo.home().join(name)).expect("it was told");
        text.trim().parse::<u32>().expect("a number")
    };
    let repo = Sandbox::new();
    repo.write(".gitignore", "/ignored\n");
    repo.sh("for n in 1 2 3 4 5 6 7 8 9; do mkdir -p ignored/$n d/$n; touch ignored/$n/f d/$n/f; done");
    repo.turn(Mode::Ghost, &format!("{listens}; echo 1 >one.txt"));
    assert_eq!((told(&repo, "told"), told(&repo, "places")), (0, 0));
    repo.oxundo(["run", "--steps", "--ghost", "--", "sh", "-ec", listens]).success();
    assert_eq!(told(&repo, "told"), 1);
    let places = told(&repo, "places");
    assert!((11..=15).contains(&places), "the directories of what is captured, and some of git's: {places}");
    repo.git(["config", "oxundo.steps", "watch"]);
    repo.turn(Mode::Ghost, listens);
    assert_eq!(told(&repo, "told"), 1, "the configuration asks for it");
    repo.git(["config", "oxundo.steps", "perhaps"]);
    let refused = repo.oxundo(["run", "--", "true"]);
    refused.exits(125);
    refused.warns("one of hooks, watch, off is wanted");
}

#[test]
fn what_goes_on_in_ignored_files_and_what_is_there_already_is_no_step() {
    let repo = Sandbox::new();
    repo.write(".gitignore", "*.log\n");
    watched(
        &repo,
        Mode::Ghost,
        "(while :; do echo line >>a.log; sleep 0.01; done) & echo 1 >one.txt; step 1; touch one.txt; echo 2 >two.txt; step 2; kill $!",
    );
    let files: Vec<Value> = steps(&repo).iter().map(|step| step[3].clone()).collect();
    assert_eq!(files, [json!(["one.txt"]), json!(["two.txt"])], "an ignored file is no reason to wait");
}

#[test]
fn an_agent_that_never_pauses_has_steps_too() {
    let repo = Sandbox::new();
    watched(
        &repo,
        Mode::Ghost,
        "(while :; do echo line >>busy.txt; sleep 0.01; done) & echo 1 >one.txt; step 1; kill $!; echo 2 >two.txt; step 2",
    );
    let has = |number: usize, path: &str| {
        let files = &steps(&repo)[number][3];
        assert!(files.as_array().is_some_and(|files| files.contains(&json!(path))), "{path}: {files}");
    };
    // A machine that is at its limits may make a pause in which it has the other one too.
    has(0, "one.txt");
    has(1, "two.txt");
}

#[cfg(target_os = "linux")]
#[test]
fn where_more_happens_than_can_be_heard_there_is_a_look() {
    let repo = Sandbox::new();
    // While nobody hears it more happens than the kernel keeps.
    watched(
        &repo,
        Mode::Ghost,
        "echo 1 >one.txt; step 1; kill -STOP $PPID; mkdir many; \
         most=$(cat /proc/sys/fs/inotify/max_queued_events); seq $((most / 2 + 100)) | xargs touch one.txt; \
         seq $((most / 2 + 100)) | xargs rm -f; echo 2 >two.txt; kill -CONT $PPID; step 2",
    );
    let last = steps(&repo).pop().expect("a step");
    assert_eq!(last[3].as_array().map(|files| files.contains(&json!("two.txt"))), Some(true), "{last}");
}

#[test]
fn the_steps_of_a_run_that_is_killed_are_there() {
    let repo = Sandbox::new();
    let before = repo.state();
    let script = format!("{STEP}echo 1 >one.txt; step 1; echo 2 >two.txt; step 2; kill -KILL $PPID; echo 3 >two.txt");
    repo.oxundo(["run", "--steps", "--ghost", "--", "sh", "-ec", &script]).exits(-9);
    repo.sh("until grep -q 3 two.txt; do sleep 0.01; done");
    repo.oxundo(["status"]).warns("closed turn 1, which was interrupted");
    assert_eq!(steps(&repo).len(), 2);
    let after = repo.state();
    repo.oxundo(["undo", "--to", "1.2"]).success();
    repo.assert_file("two.txt", "2\n", "as it was after the step");
    repo.redo();
    repo.state().assert_is(&after, "redo");
    repo.undo();
    repo.state().assert_is(&before, "undo");
    repo.assert_sound();
}

#[test]
fn an_agent_that_is_ended_ends_its_steps() {
    let repo = Sandbox::new();
    let script = format!("{STEP}echo 1 >one.txt; step 1; kill -TERM $PPID; exec sleep 60");
    repo.oxundo(["run", "--steps", "--ghost", "--", "sh", "-ec", &script]).exits(143);
    assert_eq!(steps(&repo).len(), 1);
    assert_eq!(repo.log()[0]["interrupted"], true);
}

#[test]
fn a_hook_that_tells_of_calls_makes_the_steps() {
    let repo = Sandbox::new();
    let hook = |event: &str| {
        let payload = json!({"hook_event_name": event, "session_id": "s", "prompt": "p", "tool_name": "Edit",
            "tool_use_id": "1", "tool_input": {"file_path": repo.path("one.txt")}});
        format!("printf %s '{payload}' | '{}' hook claude; ", env!("CARGO_BIN_EXE_oxundo"))
    };
    let script = [
        &hook("UserPromptSubmit"),
        &hook("PreToolUse"),
        "echo 1 >one.txt; ",
        &hook("PostToolUse"),
        "step 1; echo 2 >two.txt",
    ];
    watched(&repo, Mode::Ghost, &script.concat());
    assert_eq!(steps(&repo), [json!(["1.1", "Edit", "named", ["one.txt"]])]);
}

/// There and back over two steps, of a repository of another kind.
fn goes_by_steps(repo: &Sandbox, mode: Mode, setup: &str) {
    repo.write("mine.txt", "mine\n");
    let before = repo.state();
    watched(
        repo,
        mode,
        &format!(
            "{setup}echo one >one.txt; git branch made; step 1; echo two >one.txt; git add one.txt; git commit -qm own; step 2; rm mine.txt"
        ),
    );
    let after = repo.state();
    let files: Vec<Value> = steps(repo).iter().map(|step| step[3].clone()).collect();
    assert_eq!(files, [json!(["one.txt"]), json!(["one.txt"])]);
    repo.prune();
    repo.oxundo(["undo", "--to", "1.1"]).success();
    repo.assert_file("one.txt", "one\n", "as it was after the step");
    repo.redo();
    repo.state().assert_is(&after, "redo goes on to the end");
    repo.undo();
    repo.state().assert_is(&before, "undone");
    repo.redo();
    repo.state().assert_is(&after, "redone");
    repo.assert_sound();
}

#[test]
fn where_refs_are_in_tables_a_moment_of_quiet_is_a_step_too() {
    if Sandbox::has_tables() {
        for mode in Mode::tried() {
            goes_by_steps(&Sandbox::with_tables(&[]), mode, "");
        }
    }
}

#[test]
fn a_linked_worktree_is_watched_and_not_the_one_beside_it() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        let linked = repo.linked("tree");
        goes_by_steps(&linked, mode, "TREE=worktrees/tree/; echo beside >../repo/beside.txt; ");
        assert_eq!(repo.log().len(), 0, "nothing happened there");
        assert_eq!(linked.json(["log", "--steps"]).1["turns"][0]["steps"].as_array().map(Vec::len), Some(2));
    }
}

#[test]
fn ctrl_c_is_the_agents_and_the_steps_until_then_are_there() {
    let repo = Sandbox::new();
    let before = repo.state();
    let script = format!(
        "{STEP}echo 1 >one.txt; step 1; echo 2 >one.txt; step 2; echo 3 >one.txt; echo re''ady; exec sleep 600"
    );
    std::fs::write(repo.home().join("agent"), script).expect("write the agent");
    let mut terminal = crate::signals::shell(&repo);
    terminal.types("oxundo run --steps -- sh ../home/agent\n").shows("ready");
    terminal.types("\x03").shows("$ ").types("echo \"it ended with\" $?\n").shows("it ended with 130\r\n");
    assert_eq!(repo.log()[0]["interrupted"], true);
    assert!(steps(&repo).len() >= 2, "none is lost: {:?}", steps(&repo));
    let after = repo.state();
    repo.oxundo(["undo", "--to", "1.1"]).success();
    repo.assert_file("one.txt", "1\n", "as it was after the step");
    repo.redo();
    repo.state().assert_is(&after, "redo");
    repo.undo();
    repo.state().assert_is(&before, "undo");
    repo.assert_sound();
}
