//! Steps: what changed around each call of an agent's tools, and undo by them.

use crate::sandbox::{Mode, Output, Sandbox, check_all};
use serde_json::{Value, json};
use std::time::Duration;

/// Calls a hook of Claude Code's.
#[track_caller]
pub(crate) fn hook(repo: &Sandbox, session: &str, event: &str, more: &Value) {
    let mut payload = json!({"hook_event_name": event, "session_id": session, "prompt": format!("work of {session}")});
    for (key, value) in more.as_object().expect("an object") {
        payload[key] = value.clone();
    }
    let output = Output::fired(&mut repo.oxundo_command(["hook", "claude"]), payload.to_string().as_bytes());
    output.success();
    assert_eq!((output.out(), output.err()), (String::new(), String::new()));
}

/// A call of a tool, while which this happens.
#[track_caller]
pub(crate) fn call(repo: &Sandbox, session: &str, id: u32, tool: &str, input: &Value, script: &str) {
    let about = json!({"tool_name": tool, "tool_use_id": format!("{session}{id}"), "tool_input": input});
    hook(repo, session, "PreToolUse", &about);
    repo.sh(script);
    hook(repo, session, "PostToolUse", &about);
}

pub(crate) fn edit(repo: &Sandbox, id: u32, path: &str, script: &str) {
    call(repo, "s", id, "Edit", &json!({"file_path": repo.path(path)}), script);
}

pub(crate) fn shell(repo: &Sandbox, id: u32, script: &str) {
    call(repo, "s", id, "Bash", &json!({"command": script}), script);
}

fn steps_of(log: &Value) -> Vec<Value> {
    let step = |step: &Value| {
        let files = step["files"].as_array().expect("files").iter().map(|file| file["path"].clone());
        json!([step["step"], step["tool"], step["share"], files.collect::<Vec<_>>()])
    };
    log["turns"][0]["steps"].as_array().expect("steps").iter().map(step).collect()
}

/// A turn of five steps, one of which makes a commit of its own.
pub(crate) fn story(mode: Mode) -> Sandbox {
    let repo = Sandbox::new();
    repo.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n").write("b.txt", "b\n");
    repo.sh("git add -A; git commit -qm files; echo mine >>b.txt; echo new >mine.txt; chmod 600 mine.txt");
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    edit(&repo, 1, "a.txt", "sed -i s/1/one/ a.txt");
    shell(&repo, 2, "echo two >two.txt; chmod +x two.txt; mkdir d; git add two.txt; git commit -qm own");
    call(&repo, "s", 3, "Read", &json!({"file_path": "a.txt"}), "true");
    shell(&repo, 4, "true");
    edit(&repo, 5, "a.txt", "sed -i s/8/eight/ a.txt");
    call(&repo, "s", 6, "Write", &json!({"file_path": repo.path("d/new.txt")}), "echo new >d/new.txt");
    shell(&repo, 7, "rm b.txt mine.txt; git stash list");
    repo
}

#[test]
fn each_call_that_changed_something_is_a_step_and_undo_goes_to_it_and_takes_it_out() {
    for mode in Mode::tried() {
        let repo = story(mode);
        // What it looked like while the turn was open is what it looks like after.
        let open = steps_of(&repo.json(["log", "--steps"]).1);
        hook(&repo, "s", "Stop", &json!({}));
        let (_, log) = repo.json(["log", "--steps"]);
        let wanted = [
            json!(["1.1", "Edit", "named", ["a.txt"]]),
            json!(["1.2", "Bash", "claimed", ["two.txt"]]),
            json!(["1.3", "Edit", "named", ["a.txt"]]),
            json!(["1.4", "Write", "named", ["d/new.txt"]]),
            json!(["1.5", "Bash", "claimed", ["b.txt", "mine.txt"]]),
        ];
        assert_eq!((open, steps_of(&log)), (wanted.to_vec(), wanted.to_vec()));
        let text = repo.oxundo(["log", "--steps"]).out();
        assert!(text.contains("      1.3  Edit a.txt  1 file +1 -1\n"), "{text}");
        forms(&repo);
        there_and_back(&repo);
        repo.assert_sound();
    }
}

/// A step is a state, wherever a turn is.
fn forms(repo: &Sandbox) {
    let shown = repo.oxundo(["show", "1.3"]).out();
    assert!(
        shown.starts_with("step 1.3 (claude: Edit a.txt)") && shown.contains("\n-8\n+eight") && !shown.contains("+one"),
        "{shown}"
    );
    assert_eq!(repo.json(["show", "1.3"]).1["step"], "1.3");
    assert_eq!(repo.oxundo(["show", "1.1:a.txt"]).out(), "one\n2\n3\n4\n5\n6\n7\n8");
    assert_eq!(repo.oxundo(["show", "1.1:before:a.txt"]).out(), "1\n2\n3\n4\n5\n6\n7\n8");
    let (_, between) = repo.json(["diff", "1.2", "@.4"]);
    let paths: Vec<_> = between["files"].as_array().expect("files").iter().map(|file| file["path"].clone()).collect();
    assert_eq!(paths, ["a.txt", "d/new.txt"]);
    let after = repo.state();
    repo.oxundo(["restore", "1.2", "--", "a.txt", "b.txt"]).success();
    repo.assert_file("a.txt", "one\n2\n3\n4\n5\n6\n7\n8\n", "as it was after the step");
    repo.assert_file("b.txt", "b\nmine\n", "as it was after the step");
    repo.undo();
    repo.state().assert_is(&after, "the files of a step were brought back, and taken back again");
    for (words, why) in [("1.6", "the last one of turn 1 is 1.5"), ("7.1", "no turn '7'"), ("1.0", "not a turn")] {
        let (code, refused) = repo.json(["show", words]);
        assert_eq!((code, &refused["error"]["code"]), (1, &json!("not_found")), "{refused}");
        assert!(refused["error"]["message"].as_str().is_some_and(|message| message.contains(why)), "{refused}");
    }
}

/// To each step and on again, and each taken out and put back.
fn there_and_back(repo: &Sandbox) {
    let after = repo.state();
    for (step, a) in [("1.1", "one\n2\n3\n4\n5\n6\n7\n8\n"), ("1.3", "one\n2\n3\n4\n5\n6\n7\neight\n")] {
        let planned = repo.json(["undo", "--to", step, "--dry-run"]).1;
        let done = repo.json(["undo", "--to", step]).1;
        assert_eq!((&planned["files"], &planned["head"]), (&done["files"], &done["head"]), "{planned} {done}");
        repo.assert_file("a.txt", a, step);
        assert_eq!((repo.exists("two.txt"), repo.exists("d/new.txt")), (step != "1.1", false), "{step}");
        repo.assert_file("b.txt", "b\nmine\n", step);
        let there = repo.state();
        repo.oxundo(["redo"]).success();
        repo.state().assert_is(&after, &format!("{step}, and on again"));
        repo.oxundo(["undo", "--to", step]).success();
        repo.state().assert_is(&there, &format!("{step} once more"));
        repo.oxundo(["redo"]).success();
    }
    for step in ["1.1", "1.3", "1.4", "1.5"] {
        repo.oxundo(["undo", "--only", step]).success();
        repo.assert_file(
            "a.txt",
            ["1", "one"][usize::from(step != "1.1")].to_owned()
                + "\n2\n3\n4\n5\n6\n7\n"
                + ["8", "eight"][usize::from(step != "1.3")]
                + "\n",
            step,
        );
        assert_eq!((repo.exists("d/new.txt"), repo.exists("mine.txt")), (step != "1.4", step == "1.5"), "{step}");
        repo.oxundo(["redo"]).success();
        repo.state().assert_is(&after, &format!("{step} taken out, and put back"));
    }
    repo.undo();
    let before = repo.state();
    repo.oxundo(["redo"]).success();
    repo.state().assert_is(&after, "all of it");
    repo.oxundo(["undo", "--to", "1.2"]).success();
    let there = repo.state();
    repo.undo();
    repo.state().assert_is(&before, "from a step on, undo takes the rest back");
    repo.oxundo(["redo"]).success();
    repo.state().assert_is(&there, "and redo leads to the step again");
    repo.oxundo(["redo"]).success();
    repo.state().assert_is(&after, "and on");
}

#[test]
fn git_collects_nothing_of_a_step() {
    let repo = Sandbox::new();
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    shell(&repo, 1, "echo kept >one.txt; git add -A; git commit -qm first");
    shell(&repo, 2, "git reset -q --hard HEAD~; echo other >two.txt");
    let collect = "git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now";
    repo.sh(collect);
    assert_eq!(repo.oxundo(["show", "1.1:one.txt"]).out(), "kept");
    hook(&repo, "s", "Stop", &json!({}));
    repo.sh(collect);
    assert_eq!(repo.oxundo(["show", "1.1:one.txt"]).out(), "kept");
    repo.oxundo(["undo", "--to", "1.1"]).success();
    assert_eq!(repo.git(["log", "-1", "--format=%s"]), "first");
    repo.oxundo(["gc", "--keep", "now"]).success();
    repo.assert_sound();
}

#[test]
fn switched_off_there_are_no_steps() {
    let repo = Sandbox::new();
    repo.git(["config", "oxundo.steps", "off"]);
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    shell(&repo, 1, "echo one >one.txt");
    hook(&repo, "s", "Stop", &json!({}));
    let (_, log) = repo.json(["log", "--steps"]);
    assert_eq!(log["turns"][0]["steps"], json!([]));
    let refused = repo.json(["undo", "--to", "1.1"]).1;
    assert!(refused["error"]["message"].as_str().is_some_and(|why| why.contains("has no steps")), "{refused}");
}

/// Waits until the clock by which files get their times has gone on by more than two times of files have to differ by, for one to be
/// known to be the later one.
pub(crate) fn tick() {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(target_os = "linux")]
    let clock = ClockId::RealtimeCoarse;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::Realtime;
    let seen = |clock| Duration::try_from(clock_gettime(clock)).expect("a time after 1970");
    let (now, apart) = (seen(ClockId::Realtime), Duration::from_millis(10));
    while seen(clock) <= now + apart {
        std::thread::yield_now();
    }
}

#[test]
fn what_the_user_saves_between_calls_is_no_steps_and_survives_undo() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.write("both.txt", "1\n2\n3\n4\n5\n6\n7\n8\n").write("shared.txt", "1\n2\n3\n4\n5\n6\n7\n8\n");
        repo.write("g/gone.txt", "gone\n").write("g/stays.txt", "stays\n").write("d/one.txt", "one\n");
        repo.sh("git add -A; git commit -qm files");
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        // An edit of a file that the user has just saved, a command of a shell, and something at the end.
        repo.sh("sed -i s/8/mine/ both.txt");
        edit(&repo, 1, "both.txt", "sed -i s/1/its/ both.txt");
        repo.sh("echo mine >mine.txt; echo mine >>d/one.txt; rm g/gone.txt");
        tick();
        shell(&repo, 2, "sed -i s/1/its/ shared.txt; echo its >its.txt; mkdir e; echo its >e/its.txt");
        repo.sh("sed -i s/4/late/ both.txt; echo late >late.txt");
        hook(&repo, "s", "Stop", &json!({}));
        let (_, log) = repo.json(["log", "--steps"]);
        let wanted = [
            json!(["1.1", "Edit", "named", ["both.txt"]]),
            json!(["1.2", "Bash", "claimed", ["e/its.txt", "its.txt", "shared.txt"]]),
        ];
        assert_eq!(steps_of(&log), wanted, "{mode:?}");
        let after = repo.state();
        repo.undo();
        let files = |words: [&str; 2]| {
            repo.assert_file("both.txt", format!("{}\n2\n3\nlate\n5\n6\n7\nmine\n", words[0]), "merged");
            repo.assert_file("shared.txt", format!("{}\n2\n3\n4\n5\n6\n7\n8\n", words[1]), "the agent's");
            repo.assert_file("d/one.txt", "one\nmine\n", "the user's");
            repo.assert_file("mine.txt", "mine\n", "the user's");
            repo.assert_file("late.txt", "late\n", "the user's");
            assert!(!repo.exists("g/gone.txt"), "the user has removed it");
        };
        files(["1", "1"]);
        assert!(!repo.exists("its.txt") && !repo.exists("e"), "it was the agent's");
        let before = repo.state();
        repo.oxundo(["redo"]).success();
        repo.state().assert_is(&after, "all of it");
        repo.oxundo(["undo", "--to", "1.1"]).success();
        files(["its", "1"]);
        repo.oxundo(["redo"]).success();
        repo.state().assert_is(&after, "and on");
        repo.oxundo(["restore", "--exact", "1.1"]).success();
        repo.assert_file(
            "both.txt",
            "its\n2\n3\n4\n5\n6\n7\nmine\n",
            "the state right after the call, and nothing else",
        );
        repo.assert_file("d/one.txt", "one\n", "what was saved later is not in it");
        assert!(!repo.exists("mine.txt") && repo.exists("g/gone.txt"), "what was saved later is not in it");
        repo.undo();
        repo.state().assert_is(&after, "undo brings it back");
        repo.undo();
        repo.state().assert_is(&before, "once more");
        repo.assert_sound();
    }
}

#[test]
fn a_call_that_writes_in_a_new_directory_is_of_that_file_alone() {
    for path in ["top.txt", "sub/new.txt", "new/file.txt", "deep/er/file.txt"] {
        let repo = Sandbox::new();
        repo.write("own.txt", "1\n2\n3\n").write("sub/x", "x\n").sh("git add -A; git commit -qm files");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 1, "README.txt", "echo agent >>README.txt");
        // The user makes a file before the call that writes to it, and saves another while it goes on.
        repo.sh(&format!("mkdir -p $(dirname {path}); echo USER >{path}"));
        edit(&repo, 2, path, &format!("echo agent >>{path}; sed -i s/2/USER/ own.txt"));
        let steps = steps_of(&repo.json(["log", "--steps"]).1);
        assert_eq!(steps[1], json!(["1.2", "Edit", "named", [path]]), "{path}");
        hook(&repo, "s", "Stop", &json!({}));
        assert!(!repo.git(["show", "HEAD"]).contains("USER"), "{path}: it is in no commit of the agent's");
        repo.undo();
        repo.assert_file(path, "USER\n", "the user's file is there");
        repo.assert_file("own.txt", "1\nUSER\n3\n", "and what was saved");
        repo.redo();
        repo.assert_file(path, "USER\nagent\n", "with the agent's line again");
        repo.assert_sound();
    }
}

#[test]
fn a_call_of_a_file_that_no_turn_takes_in_takes_nothing_else() {
    for path in ["ignored.log", "nest/file", "node_modules/new/file", "gone.txt"] {
        let repo = Sandbox::new();
        repo.write("own.txt", "1\n2\n3\n").write(".gitignore", "*.log\nnode_modules\n").write("gone.txt", "gone\n");
        repo.sh("git add -A; git commit -qm files; git init -q nest");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 1, "README.txt", "echo agent >>README.txt");
        let write = if path == "gone.txt" { "rm gone.txt" } else { "mkdir -p $(dirname $p); echo agent >>$p" };
        edit(&repo, 2, path, &format!("p={path}; {write}; sed -i s/2/USER/ own.txt"));
        hook(&repo, "s", "Stop", &json!({}));
        assert!(!repo.git(["show", "HEAD"]).contains("USER"), "{path}: it is in no commit of the agent's");
        repo.undo();
        repo.assert_file("own.txt", "1\nUSER\n3\n", path);
        assert!(repo.exists("gone.txt"), "{path}");
        repo.assert_sound();
    }
}

#[test]
fn what_a_call_writes_over_in_a_new_directory_is_found() {
    for tool in ["Write", "Bash"] {
        let repo = Sandbox::new();
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, "echo agent >>README.txt");
        repo.write("deep/er/mine.txt", "USER\n");
        let input = json!({"file_path": repo.path("deep/er/mine.txt"), "command": "x"});
        // With all that git lets go of, in the call already.
        call(&repo, "s", 2, tool, &input, "echo agent >deep/er/mine.txt; git gc -q --prune=now");
        hook(&repo, "s", "Stop", &json!({}));
        repo.prune();
        repo.undo();
        repo.assert_file("deep/er/mine.txt", "USER\n", "it is there again");
        repo.assert_sound();
    }
}

/// The user stages a line and takes it out of the file again: only the index has it, and the next call stages something else.
#[test]
fn what_is_only_staged_is_kept_when_a_call_stages_over_it() {
    for (mode, tool) in [(Mode::Commit, "Edit"), (Mode::Ghost, "Edit"), (Mode::Commit, "Bash"), (Mode::Ghost, "Bash")] {
        let repo = Sandbox::new();
        repo.commit("own.txt", "1\n2\n3\n");
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        // After this the index is known as a whole.
        shell(&repo, 1, "echo agent >>README.txt; git add README.txt");
        repo.sh("sed -i '2i STAGED' own.txt; git add own.txt; sed -i 2d own.txt");
        let staged = repo.git(["diff", "--cached", "--", "own.txt"]);
        tick();
        let about = json!({"tool_name": tool, "tool_use_id": "x",
            "tool_input": {"file_path": repo.path("own.txt"), "command": "x"}});
        hook(&repo, "s", "PreToolUse", &about);
        // With all that git lets go of, in the call already.
        repo.sh("echo agent >>own.txt; git add own.txt; git gc -q --prune=now");
        let found = repo.json(["find", "-S", "STAGED"]).1;
        assert_eq!(found["found"][0]["path"], "own.txt", "{tool}, {mode:?}: in the call already: {found}");
        hook(&repo, "s", "PostToolUse", &about);
        hook(&repo, "s", "Stop", &json!({}));
        repo.prune();
        let after = repo.state();
        let found = repo.json(["find", "-S", "STAGED"]).1;
        let command = found["found"][0]["command"].as_str().unwrap_or_default().to_owned();
        assert!(!command.is_empty(), "{tool}, {mode:?}: it is found: {found}");
        repo.undo();
        repo.assert_file("own.txt", "1\n2\n3\n", "the file is as it was");
        assert_eq!(repo.git(["diff", "--cached", "--", "own.txt"]), staged, "{tool}, {mode:?}: staged as it was");
        repo.redo();
        repo.state().assert_is(&after, tool);
        repo.assert_sound();
    }
}

#[test]
fn steps_that_follow_each_other_are_taken_out_together() {
    let repo = Sandbox::new();
    repo.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n").sh("git add -A; git commit -qm files");
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    edit(&repo, 1, "a.txt", "sed -i s/1/one/ a.txt");
    edit(&repo, 2, "a.txt", "sed -i s/one/eins/ a.txt");
    repo.sh("sed -i s/4/mine/ a.txt");
    tick();
    shell(&repo, 3, "echo new >new.txt; echo other >other.txt");
    edit(&repo, 4, "a.txt", "sed -i s/8/last/ a.txt");
    hook(&repo, "s", "Stop", &json!({}));
    let after = repo.state();
    let planned = repo.json(["undo", "--only", "1.1..1.3", "--dry-run"]).1;
    let done = repo.json(["undo", "--only", "@.1..@.3"]).1;
    assert_eq!(done["files"], planned["files"]);
    repo.assert_file("a.txt", "1\n2\n3\nmine\n5\n6\n7\nlast\n", "the fourth step stays, and the user's");
    assert!(!repo.exists("new.txt") && !repo.exists("other.txt"));
    repo.redo();
    repo.state().assert_is(&after, "redo");
    repo.oxundo(["undo", "--only", "1.2..1.3", "--", "new.txt"]).success();
    assert!(!repo.exists("new.txt") && repo.exists("other.txt"), "of these paths");
    repo.redo();
    for (words, code) in [("1.3..1.1", 2), ("1.1..1.9", 1), ("1.1..2.1", 2)] {
        repo.oxundo(["undo", "--only", words]).exits(code);
    }
    repo.state().assert_is(&after, "a refusal changes nothing");
    repo.assert_sound();
}

/// Where only a turn will do, a step is said to be one, and the lines that are told work.
#[test]
fn a_step_where_a_whole_turn_is_wanted_is_told_what_can_be_done_with_it() {
    let repo = story(Mode::Commit);
    hook(&repo, "s", "Stop", &json!({}));
    for args in [&["squash", "1.1"][..], &["keep", "1.1"], &["redo", "--to", "1.1"], &["undo", "--only", "1.1..2"]] {
        let refused = repo.oxundo(args);
        refused.exits(2);
        refused.warns("'1.1' is a step, and a whole turn is wanted: 1");
        refused.warns("run 'oxundo show 1.1'");
    }
    repo.oxundo(["show", "1.1"]).success();
    repo.oxundo(["undo", "--only", "1.1", "--dry-run"]).success();
    repo.oxundo(["redo", "1.1"]).warns("'oxundo show 1.1'");
}

#[test]
fn a_commit_of_the_users_that_a_call_takes_off_its_branch_is_kept() {
    let repo = Sandbox::new();
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    shell(&repo, 1, "echo agent >>README.txt");
    repo.sh("git switch -qc mine; echo USER >mine.txt; git add mine.txt; git commit -qm mine; git switch -q main");
    repo.sh("echo own >own.txt; git add own.txt; git stash push -qm aside -- own.txt");
    let own = repo.git(["rev-parse", "mine"]);
    shell(
        &repo,
        2,
        "git branch -qD mine; git stash drop -q; git reflog expire --expire=now --all; git gc -q --prune=now",
    );
    hook(&repo, "s", "Stop", &json!({}));
    repo.prune();
    repo.undo();
    assert_eq!(repo.git(["rev-parse", "mine"]), own, "the branch is there again, and its commit");
    assert_eq!(repo.git(["stash", "list"]).lines().count(), 1, "and the stash entry");
    repo.redo();
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    hook(&repo, "s", "Stop", &json!({}));
    repo.agent("echo more >>README.txt");
    repo.assert_sound();
}

#[test]
fn what_the_user_stashes_between_calls_stays_stashed_and_what_a_call_stashes_comes_back() {
    let repo = Sandbox::new();
    repo.write("u.txt", "the user's\n");
    repo.sh("echo mine >>README.txt");
    let before = repo.state();
    for is_users in [true, false] {
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 1, "one.txt", "echo one >one.txt");
        let push = "git stash push -qu";
        if is_users {
            repo.sh(push);
        } else {
            shell(&repo, 2, push);
        }
        edit(&repo, 3, "two.txt", "echo two >two.txt");
        hook(&repo, "s", "Stop", &json!({}));
        let after = repo.state();
        repo.undo();
        if is_users {
            assert_eq!(repo.git(["status", "--porcelain"]), " M README.txt", "the rest is in the user's entry");
            assert_eq!(repo.git(["show", "stash^3:u.txt"]), "the user's");
        } else {
            repo.state().assert_is(&before, "nothing is only in an entry that is gone");
        }
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.undo();
        if is_users {
            repo.sh("git stash pop -q; rm one.txt");
            repo.state().assert_is(&before, "the user takes theirs back");
        }
    }
}

#[test]
fn what_was_there_in_a_turn_that_took_all_of_it_back_is_found() {
    let repo = Sandbox::new();
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    edit(&repo, 1, "one.txt", "echo one >one.txt");
    repo.write("u.txt", "the user's\n");
    tick();
    shell(&repo, 2, "echo two >two.txt");
    shell(&repo, 3, "git reset -q --hard; git clean -fdq");
    let stop = json!({"hook_event_name": "Stop", "session_id": "s"}).to_string();
    let told = Output::fired(&mut repo.oxundo_command(["hook", "claude"]), stop.as_bytes());
    assert_eq!(told.err(), "");
    let log = String::from_utf8(repo.read(".git/oxundo/hooks.log")).expect("text");
    assert!(log.contains("after its steps it was as in rescue:1 to rescue:4"), "{log}");
    assert_eq!(repo.log().len(), 0, "nothing is left to undo");
    repo.sh("git gc -q --prune=now");
    let found = repo.json(["find", "u.txt"]).1;
    let command = found["found"][0]["command"].as_str().unwrap_or_default().to_owned();
    assert!(command.starts_with("oxundo restore rescue:"), "{found}");
    repo.sh(&command.replacen("oxundo", &format!("'{}'", env!("CARGO_BIN_EXE_oxundo")), 1));
    repo.assert_file("u.txt", "the user's\n", "it is back");
}

/// A line with which an agent tells of its call of a shell.
fn told(event: &str) -> String {
    let payload =
        json!({"hook_event_name": event, "session_id": "s", "prompt": "p", "tool_name": "Bash", "tool_use_id": "1"});
    format!("printf %s '{payload}' | '{}' hook claude", env!("CARGO_BIN_EXE_oxundo"))
}

/// An agent that does this. It is git.
fn agent_of_lines(repo: &Sandbox, lines: &[&str]) {
    std::fs::write(repo.home().join("agent"), lines.join("\n")).expect("write the agent");
    repo.git(["-c", "alias.agent=!sh ../home/agent", "agent"]);
}

#[test]
fn what_an_agents_call_leaves_running_is_still_its_work() {
    let ways = [
        ("a child", "", ""),
        ("without a parent, in the agent's group", "sh -c '", "'"),
        ("without a parent, in a session of its own", "CLAUDECODE=1 setsid -w sh -c '", "'"),
    ];
    check_all(ways.map(|way| (way.0.to_owned(), way)), |(_, before, behind)| {
        let repo = Sandbox::new();
        let start = repo.state();
        let work =
            "(until [ -e ../home/go ]; do sleep 0.01; done; echo its >its.txt; touch ../home/done) >/dev/null 2>&1 &";
        let lines = [
            &told("UserPromptSubmit"),
            &told("PreToolUse"),
            &*format!("{before}{work}{behind}"),
            &told("PostToolUse"),
            "touch ../home/go; until [ -e ../home/done ]; do sleep 0.01; done",
            &told("Stop"),
        ];
        agent_of_lines(&repo, &lines);
        assert!(repo.exists("its.txt"));
        repo.undo();
        repo.state().assert_is(&start, "what it wrote after the call's end goes too");
    });
}

#[test]
fn what_somebody_else_leaves_running_is_no_agents_work() {
    let ways = [
        ("elsewhere", "cd ../home; CLAUDECODE=1 setsid -w sh -c '", "'"),
        ("not in a call", "setsid -w sh -c '", "'"),
        ("before the call", "", ""),
    ];
    check_all(ways.map(|way| (way.0.to_owned(), way)), |(way, before, behind)| {
        let repo = Sandbox::new();
        // Nor longer than there is such a directory: what nobody waits for may not be asked again before that goes.
        let wait = "(while [ -d \"$HOME\" -a ! -e \"$HOME/go\" ]; do sleep 0.01; done) >/dev/null 2>&1 &";
        let first = if *way == "before the call" { "CLAUDECODE=1 setsid -w sh -c '{wait}'" } else { "" };
        let [first, run] = [
            first.replace("{wait}", wait),
            if before.is_empty() { String::new() } else { format!("({before}{wait}{behind})") },
        ];
        let lines = [
            &told("UserPromptSubmit"),
            &*first,
            &told("PreToolUse"),
            &*run,
            "echo its >its.txt",
            &told("PostToolUse"),
            "sleep 0.02; echo mine >mine.txt",
            &told("Stop"),
            "touch \"$HOME/go\"",
        ];
        agent_of_lines(&repo, &lines);
        repo.undo();
        assert!(!repo.exists("its.txt"), "undone");
        repo.assert_file("mine.txt", "mine\n", "what the user saved after the call is theirs");
    });
}

#[test]
fn the_turns_and_steps_of_a_removed_worktree_are_named_by_it() {
    let repo = Sandbox::new();
    let linked = repo.linked("tree");
    hook(&linked, "s", "UserPromptSubmit", &json!({}));
    shell(&linked, 1, "echo first >one.txt");
    shell(&linked, 2, "echo second >one.txt");
    hook(&linked, "s", "Stop", &json!({}));
    repo.git(["worktree", "remove", "--force", "../tree"]);
    let (_, shown) = repo.json(["show", "tree:1"]);
    assert_eq!((&shown["turn"], &shown["files"][0]["path"]), (&json!(1), &json!("one.txt")), "{shown}");
    assert!(repo.oxundo(["show", "tree:1.2"]).out().contains("-first\n+second"));
    assert_eq!(repo.oxundo(["show", "tree:1", "--prompt"]).out(), "work of s");
    for (words, content) in
        [("tree:1:one.txt", "second"), ("tree:1.1:one.txt", "first"), ("tree:1.2:before:one.txt", "first")]
    {
        assert_eq!(repo.oxundo(["show", words]).out(), content, "{words}");
    }
    assert_eq!(repo.json(["diff", "tree:1.1", "tree:1"]).1["files"][0]["path"], "one.txt");
    let before = repo.state();
    for (words, content) in [("tree:1", "second\n"), ("tree:1.1", "first\n"), ("tree:1:before", "")] {
        repo.oxundo(["branch", "again", words]).success();
        assert_eq!(repo.git(["branch", "--show-current"]).trim(), "again");
        let found = if repo.exists("one.txt") { repo.read("one.txt") } else { Vec::new() };
        assert_eq!(found, content.as_bytes(), "a branch starts at {words}");
        repo.undo();
        repo.state().assert_is(&before, "undo takes it away");
    }
    assert_eq!(repo.json(["branch", "again", "tree:9"]).1["error"]["code"], "not_found");
    repo.oxundo(["doctor"]).says("the removed worktree 'tree': 1 turn, of which 'oxundo log --all' tells");
    repo.oxundo(["restore", "tree:1.1", "--", "one.txt"]).success();
    repo.assert_file("one.txt", "first\n", "it came back");
    assert_eq!(repo.json(["show", "tree:1.3"]).1["error"]["code"], "not_found");
}

/// What is named as a step is no turn's name that nobody can read.
#[test]
fn a_step_of_a_turn_without_steps_is_told_to_be_none() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    repo.agent("echo 2 >two");
    for args in [&["squash", "1.1..2"][..], &["keep", "1.1"], &["branch", "new", "1.1"], &["undo", "--only", "1.1..2"]]
    {
        let refused = repo.oxundo(args);
        refused.exits(1);
        refused.warns("error: turn 1 has no steps");
    }
    repo.oxundo(["squash", "9.1.."]).warns("error: there is no turn '9' here");
    repo.git(["tag", "1.1"]);
    repo.oxundo(["keep", "1.1"]).says("2");
}

/// A file that a call of an editing tool names while a shell gives it another name: all of the new name is in one step, whichever
/// ends first.
#[test]
fn a_file_that_a_shell_moves_under_an_edit_goes_and_comes_back_whole() {
    let orders = [
        ("edit first", "PE PS write move QE QS"),
        ("shell first", "PE PS write move QS QE"),
        ("moved first", "PE PS move later QE QS"),
        ("within the shell", "PS PE write move QE QS"),
        ("shell within", "PE write PS move QS QE"),
    ];
    check_all(orders.map(|(name, order)| (name.to_owned(), order)), |order| {
        let repo = Sandbox::new();
        repo.sh("echo b >b; echo 1 >one; git add -A; git commit -qm files");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        let before = repo.files();
        for word in order.split(' ') {
            let (tool, input) = match word.chars().last() {
                Some('E') => ("Edit", json!({"file_path": repo.path("b")})),
                _ => ("Bash", json!({"command": "x"})),
            };
            let about = json!({"tool_name": tool, "tool_use_id": tool, "tool_input": input});
            match word {
                "write" => drop(repo.sh("echo edit >>b")),
                "later" => drop(repo.sh("echo edit >>c")),
                "move" => drop(repo.sh("mv b c; echo shell >>c")),
                _ if word.starts_with('P') => hook(&repo, "s", "PreToolUse", &about),
                _ => hook(&repo, "s", "PostToolUse", &about),
            }
        }
        hook(&repo, "s", "Stop", &json!({}));
        let (after, log) = (repo.state(), repo.json(["log", "--steps"]).1);
        let moves =
            steps_of(&log).into_iter().find(|step| step[3].as_array().is_some_and(|it| it.contains(&json!("c"))));
        let moves = moves.expect("a step of the shell's");
        assert_eq!(moves[3], json!(["b", "c"]), "{log}");
        let name = moves[0].as_str().expect("a name");
        repo.oxundo(["undo", "--only", name]).success();
        repo.assert_absent("c", "the step is out");
        assert!(repo.exists("b"), "with both of its names");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.undo();
        repo.files().assert_is(&before, "undo of all");
    });
}

#[test]
fn what_undo_to_a_step_took_out_comes_back_by_the_number_of_the_last_turn() {
    let repo = Sandbox::new();
    repo.sh("echo a >a.txt; echo b >b.txt; git add -A; git commit -qm files");
    for (id, path) in [(1, "a.txt"), (2, "b.txt"), (3, "a.txt")] {
        if id != 2 {
            hook(&repo, "s", "UserPromptSubmit", &json!({}));
        }
        edit(&repo, id, path, &format!("echo {id} >>{path}"));
        if id != 1 {
            hook(&repo, "s", "Stop", &json!({}));
        }
    }
    let last = repo.state();
    repo.oxundo(["undo", "--to", "1.1"]).success();
    repo.assert_file("b.txt", "b\n", "it is taken out");
    let first = repo.oxundo(["redo", "--to", "1"]);
    first.exits(2);
    first.warns("what turn 3 took out comes back first");
    repo.oxundo(["redo", "--to", "2"]).success();
    repo.state().assert_is(&last, "turn 2 is the last one done again");
}

/// A later step has changed what this one made.
#[test]
fn the_hints_of_a_step_whose_file_a_later_one_changed_lead_to_it() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.git(["config", "oxundo.mode", if mode == Mode::Ghost { "ghost" } else { "commit" }]);
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, "echo AGENT1 >new.txt");
        shell(&repo, 2, "echo AGENT2 >two.txt");
        shell(&repo, 3, "echo AGENT3 >>new.txt");
        hook(&repo, "s", "Stop", &json!({}));
        let refused = repo.refuses(&["undo", "--only", "1.1"], "conflict");
        let wanted = "run 'oxundo undo --only 1.1..1.3' to take out what was done to it since, too";
        assert_eq!(refused["hints"][0], json!(wanted), "{refused}");
        repo.oxundo(["undo", "--only", "1.1..1.3"]).success();
        repo.assert_absent("new.txt", "it is taken out");
    }
}

/// Of what was made once, later changes are not the step's: a line leads out of it, whoever made them.
#[test]
fn the_hints_lead_out_where_a_file_that_a_step_made_was_changed_since() {
    for (name, changes, says) in [
        ("uncommitted", "sed -i s/2/USER/ f", "run 'git stash push -u -- :/f'"),
        ("committed", "sed -i s/2/USER/ f; git commit -qam mine", "run 'git rm -q -- :/f && git commit -m "),
        ("by a later turn", "", "run 'oxundo undo --only 1..2'"),
    ] {
        let repo = Sandbox::new();
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, "seq 3 >f");
        shell(&repo, 2, "seq 3 >g");
        hook(&repo, "s", "Stop", &json!({}));
        if changes.is_empty() {
            hook(&repo, "s", "UserPromptSubmit", &json!({}));
            shell(&repo, 3, "sed -i s/2/AGENT/ f");
            hook(&repo, "s", "Stop", &json!({}));
        }
        repo.sh(changes);
        let refused = repo.oxundo(["undo", "--only", "1.1"]).err();
        let hint = refused.lines().find(|line| line.contains(says)).unwrap_or_else(|| panic!("{name}: {refused}"));
        let line = hint.split('\'').nth(1).expect("a line").to_owned();
        match line.strip_prefix("oxundo ") {
            Some(line) => repo.oxundo(line.split(' ')).success(),
            None => drop(repo.sh(&line)),
        }
        if repo.exists("f") {
            repo.oxundo(["undo", "--only", "1.1"]).success();
        }
        assert!(!repo.exists("f"), "{name}");
    }
}
