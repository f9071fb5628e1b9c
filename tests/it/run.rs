//! `run`: the agent has the terminal to itself, and its exit code is the command's.

use crate::sandbox::{Mode, Output, Sandbox};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

fn repo() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo
}

// Exit codes

#[test]
fn the_exit_code_is_the_agents() {
    for code in [0, 1, 2, 3, 4, 42, 124, 125, 126, 127, 128, 255] {
        let repo = repo();
        let output = repo.oxundo(["run", "--", "sh", "-c", &format!("echo two >>a.txt; exit {code}")]);
        output.exits(code);
        assert!(output.stdout.is_empty(), "nothing of our own on stdout\n{output:?}");
        let log = repo.log();
        assert_eq!(log.len(), 1, "a turn that failed is a turn");
        assert_eq!(log[0]["exit_code"], code);
        repo.undo();
        repo.assert_file("a.txt", "one\n", "and can be undone");
    }
}

#[test]
fn an_agent_that_a_signal_killed_exits_with_128_more() {
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("INT", 130), ("HUP", 129), ("ABRT", 134)] {
        let repo = repo();
        repo.oxundo(["run", "--", "sh", "-c", &format!("echo two >>a.txt; kill -{signal} $$; sleep 60")]).exits(code);
        assert_eq!(repo.log().len(), 1, "the turn is recorded");
        repo.undo();
        repo.assert_file("a.txt", "one\n", "and can be undone");
    }
}

#[test]
fn what_cannot_be_started_is_said_before_anything_is_recorded() {
    let repo = repo();
    repo.write("plain.txt", "not a program\n");
    repo.sh("echo dirty >>a.txt");
    let before = repo.everything();
    for (command, code) in [
        ("no-such-program", 127),
        ("./no-such-program", 127),
        ("/no/such/program", 127),
        ("", 127),
        ("./plain.txt", 126),
        ("./.git", 126),
        ("/", 126),
    ] {
        let output = repo.oxundo(["run", "--", command]);
        output.exits(code);
        output.warns("error: ");
        assert!(output.stdout.is_empty(), "stdout is the agent's\n{output:?}");
        repo.everything().assert_is(&before, &format!("nothing is recorded for {command:?}"));
    }
}

#[test]
fn a_run_without_a_command_is_a_usage_error() {
    let repo = repo();
    // The agent's own code may be any other.
    repo.oxundo(["run"]).exits(125);
    repo.oxundo(["run", "--"]).exits(125);
    repo.oxundo(["-C", "run", "lgo"]).exits(2);
}

#[test]
fn no_repository_is_an_error_and_no_agent_is_started() {
    let repo = repo();
    std::fs::create_dir(repo.home().join("no-repository")).expect("make a directory");
    let elsewhere = repo.beside("home/no-repository");
    let output = elsewhere.oxundo(["undo"]);
    assert!(matches!(output.code, 1 | 4), "there is nothing here\n{output:?}");
    output.warns("error: ");
}

// The terminal

#[test]
fn stdin_and_stdout_are_the_agents() {
    let repo = repo();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let output = Output::fed(&mut repo.oxundo_command(["run", "--", "cat"]), &bytes);
    output.success();
    assert!(output.stdout == bytes, "every byte goes through, and no other");
    let output = Output::fed(
        &mut repo.oxundo_command(["run", "--", "sh", "-c", "cat >in.bin; printf '\\000\\377'; echo e >&2"]),
        &bytes,
    );
    output.success();
    assert_eq!(output.stdout, b"\0\xff", "what the agent prints, nothing else");
    assert!(output.stderr.starts_with(b"e\n"), "its stderr too\n{output:?}");
    assert!(repo.read("in.bin") == bytes, "and all its input was its own");
}

#[test]
fn json_is_not_mixed_with_what_the_agent_prints() {
    let repo = repo();
    let output = repo.oxundo(["--json", "run", "--", "sh", "-c", "echo '{\"its\": 1}'; echo two >>a.txt"]);
    output.success();
    assert_eq!(output.out(), "{\"its\": 1}", "stdout is the agent's");
}

#[test]
fn an_agent_that_does_not_read_its_input_is_no_trouble() {
    let repo = repo();
    let mut command = repo.oxundo_command(["run", "--", "sh", "-c", "cat >/dev/null; echo two >>a.txt"]);
    Output::fed(&mut command, b"").success();
    repo.oxundo(["run", "--", "true"]).success();
}

#[test]
fn arguments_reach_the_agent_unchanged() {
    let repo = repo();
    let output = repo.oxundo(["run", "--", "printf", "%s|", "-m", "--", "a b", "", "--ghost", "*", "$HOME"]);
    assert_eq!(output.out(), "-m|--|a b||--ghost|*|$HOME|");
    let output = repo.oxundo(["run", "-m", "msg", "printf", "%s|", "--json", "-C", "/", "-q"]);
    assert_eq!(output.out(), "--json|-C|/|-q|", "what comes behind the command is the agent's");
}

#[test]
fn a_termination_signal_is_passed_on() {
    let repo = repo();
    let script = "trap 'echo caught >>a.txt; exit 7' TERM; touch ../home/started; while :; do sleep 0.05; done";
    let mut child = repo.spawn(&["run", "--", "sh", "-c", script]);
    repo.wait_for("started");
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
    assert!(kill.expect("run kill").success());
    let status = child.wait().expect("wait for oxundo");
    assert_eq!((status.code(), status.signal()), (Some(7), None), "the agent's own exit code");
    repo.assert_file("a.txt", "one\ncaught\n", "the agent got the signal");
    repo.undo();
    repo.assert_file("a.txt", "one\n", "the turn is recorded");
}

#[test]
fn what_the_agent_leaves_running_does_not_hold_the_turn_open() {
    let repo = repo();
    let mut command = repo.oxundo_command([
        "run",
        "--",
        "sh",
        "-c",
        "sleep 300 >/dev/null 2>&1 & echo $! >../home/pid; echo two >>a.txt",
    ]);
    let status = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).status();
    assert!(status.expect("run oxundo").success());
    repo.undo();
    repo.assert_file("a.txt", "one\n", "nothing that a child inherited keeps the lock");
    repo.sh("kill $(cat ../home/pid)");
}

// Where it is started

#[test]
fn it_works_from_a_subdirectory_and_for_another_directory() {
    for mode in Mode::tried() {
        let mut repo = repo();
        repo.write("deep/er/x.txt", "one\n");
        repo.sh("git add -A; git commit -qm deep");
        let root = repo.root().display().to_string();
        let before = repo.printed();
        repo.start_in("deep/er");
        let output = repo.turn(mode, "pwd; echo two >>x.txt; echo new >../new.txt; echo two >>../../a.txt");
        assert_eq!(output.out(), format!("{root}/deep/er"), "the agent is where the user is");
        let after = repo.printed();
        repo.undo();
        repo.printed().assert_is(&before, "all of the worktree is undone");
        repo.start_in("..");
        repo.oxundo(["-C", &root, "redo"]).success();
        repo.printed().assert_is(&after, "-C DIR is as if started there");
        repo.oxundo(["-C", &format!("{root}/deep"), "undo"]).success();
        repo.printed().assert_is(&before, "in a subdirectory too");
        let output = repo.oxundo(["-C", &format!("{root}/deep"), "run", "--", "pwd"]);
        assert_eq!(output.out(), format!("{root}/deep"), "the agent is started there");
    }
}

#[test]
fn git_oxundo_alone_says_what_is_missing() {
    let repo = Sandbox::new();
    let before = repo.everything();
    let alone = repo.home().join("git-oxundo");
    // By another process: whatever this one starts meanwhile would have it open for writing, and it could not be run.
    repo.sh(&format!("cp '{}' ../home/git-oxundo", env!("CARGO_BIN_EXE_git-oxundo")));
    let mut command = Command::new(&alone);
    let output = Output::of(command.arg("undo").current_dir(repo.root()).env("PATH", repo.home()));
    output.exits(127);
    output.warns("error: cannot start 'oxundo'");
    output.warns("hint: install oxundo again");
    repo.everything().assert_is(&before, "nothing is changed");
}

#[test]
fn git_oxundo_is_the_same_program() {
    let repo = repo();
    let before = repo.printed();
    repo.git(["oxundo", "run", "--", "sh", "-c", "echo two >>a.txt"]);
    assert_eq!(repo.log().len(), 1, "git finds it on the PATH");
    let after = repo.printed();
    repo.write("deep/x", "");
    repo.sh("cd deep && git oxundo undo >/dev/null 2>&1; rm -r ../deep");
    repo.printed().assert_is(&before, "from a subdirectory");
    repo.git(["config", "alias.again", "oxundo redo"]);
    repo.git(["again"]);
    repo.printed().assert_is(&after, "by an alias");
    repo.git(["config", "alias.back", "!oxundo undo"]);
    repo.sh("mkdir sub; cd sub; git back >/dev/null 2>&1; cd ..; rmdir sub");
    repo.printed().assert_is(&before, "by an alias of the shell");
}

#[test]
fn what_git_sets_in_the_environment_neither_misleads_nor_leaks() {
    let repo = repo();
    let before = repo.printed();
    let script = "env | grep -E '^GIT_(DIR|WORK_TREE|INDEX_FILE|PREFIX|COMMON_DIR)=' || echo clean; echo two >>a.txt; git add a.txt; echo new >new.txt";
    let misled = |args: &[&str]| {
        let mut command = repo.oxundo_command(args);
        command
            .env("GIT_DIR", repo.path(".git"))
            .env("GIT_WORK_TREE", repo.root())
            .env("GIT_INDEX_FILE", repo.path(".git/index"))
            .env("GIT_PREFIX", "");
        Output::of(&mut command)
    };
    let output = misled(&["run", "--", "sh", "-c", script]);
    output.success();
    assert_eq!(output.out(), "clean", "the agent gets none of it");
    assert_eq!(repo.git(["status", "--porcelain"]), "", "it is git's own index that the turn is in");
    let after = repo.printed();
    misled(&["undo"]).success();
    repo.printed().assert_is(&before, "undo works on git's own index");
    misled(&["redo"]).success();
    repo.printed().assert_is(&after, "redo works on git's own index");
}

#[test]
fn a_turn_can_be_made_in_a_hook_of_git() {
    let repo = repo();
    // `git commit a.txt` gives its hooks an index of their own.
    repo.sh("mkdir -p .git/hooks; printf '#!/bin/sh\\noxundo run --ghost -- sh -c \"echo hook >hook.txt\"\\n' >.git/hooks/post-commit; chmod +x .git/hooks/post-commit");
    repo.sh("echo two >>a.txt; echo staged >s.txt; git add s.txt; git commit -qm two a.txt");
    repo.assert_file("hook.txt", "hook\n", "the turn was made");
    assert_eq!(repo.git(["status", "--porcelain"]), "A  s.txt\n?? hook.txt", "what is staged stays staged");
    repo.undo();
    assert_eq!(repo.git(["status", "--porcelain"]), "A  s.txt", "and is so after undo");
}

#[test]
fn head_on_a_ref_that_is_no_branch_is_refused_before_the_agent_starts() {
    let repo = repo();
    repo.sh("git update-ref refs/foo/bar HEAD; git symbolic-ref HEAD refs/foo/bar");
    let before = repo.everything();
    let output = repo.oxundo(["run", "--", "sh", "-c", "echo two >>a.txt"]);
    assert_eq!(output.code, 125, "{output:?}");
    output.warns("HEAD is on 'refs/foo/bar', which is no branch");
    output.warns("hint: run 'git switch --detach' first");
    output.warns("hint: or run `oxundo run --ghost -- sh -c 'echo two >>a.txt'`, which makes no commits");
    repo.everything().assert_is(&before, "nothing is recorded, and no agent was started");
    let output = repo.oxundo(["turn", "begin"]);
    output.warns("recorded without commits: HEAD is on 'refs/foo/bar', which is no branch");
    repo.oxundo(["turn", "end"]).success();
    // Not there_and_back: `git fsck` calls such a HEAD strange.
    let before = repo.state();
    repo.turn(Mode::Ghost, "echo two >>a.txt; echo new >b.txt; git add b.txt");
    let after = repo.state();
    for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
        repo.oxundo([op]).success();
        repo.state().assert_is(wanted, op);
    }
    repo.sh("git switch -q --detach");
    repo.there_and_back(Mode::Commit, "echo two >>a.txt");
}

#[test]
fn a_turn_that_leaves_head_on_a_ref_that_is_no_branch_is_closed() {
    for mode in Mode::tried() {
        let repo = repo();
        let output =
            repo.turn(mode, "echo two >>a.txt; git update-ref refs/foo/bar HEAD; git symbolic-ref HEAD refs/foo/bar");
        let is_said = output.err().contains("were not committed: HEAD is on 'refs/foo/bar', which is no branch");
        assert_eq!(is_said, mode == Mode::Commit, "{output:?}");
        assert_eq!(repo.log().len(), 1, "it is recorded ({mode:?})");
        repo.refuses(&["undo"], "branch");
        repo.oxundo(["restore", "1:before"]).success();
        repo.assert_file("a.txt", "one\n", "its files come back");
        repo.sh("git switch -q -f main");
        repo.there_and_back(mode, "echo three >>a.txt");
    }
}

// Nesting

#[test]
fn a_run_in_a_run_is_part_of_the_outer_turn() {
    for mode in Mode::tried() {
        let repo = repo();
        repo.write("b.txt", "one\n");
        let before = repo.printed();
        let inner = "oxundo run -m inner -- sh -c 'echo two >>b.txt; exit 5' || echo $?";
        let output = repo.turn(mode, &format!("echo two >>a.txt; {inner}; echo three >>a.txt"));
        assert_eq!(output.out(), "5", "the inner exit code is passed on");
        let after = repo.printed();
        assert_eq!(repo.log().len(), 1, "it is one turn ({mode:?})");
        repo.undo();
        repo.printed().assert_is(&before, "and undone as one");
        repo.redo();
        repo.printed().assert_is(&after, "and redone as one");
    }
}

#[test]
fn a_run_in_another_repository_is_a_turn_there() {
    let repo = repo();
    repo.sh("git init -q -b main ../else; cd ../else; git config user.name a; git config user.email b; echo 1 >e.txt; git add -A; git commit -qm e");
    let elsewhere = repo.beside("else");
    repo.agent("echo two >>a.txt; cd ../else; oxundo run -- sh -c 'echo 2 >>e.txt'");
    assert_eq!((repo.log().len(), elsewhere.log().len()), (1, 1), "one turn each");
    elsewhere.undo();
    elsewhere.assert_file("e.txt", "1\n", "undone there");
    repo.assert_file("a.txt", "one\ntwo\n", "and not here");
}

#[test]
fn a_git_directory_that_is_moved_or_made_anew_is_named_and_nothing_is_put_in_its_place() {
    let repo = repo();
    repo.turn(Mode::Commit, "echo two >>a.txt");
    let output =
        repo.oxundo(["run", "--report", "../report", "--", "sh", "-ec", "mv .git ../gone; echo three >>a.txt"]);
    output.exits(125);
    assert!(repo.sh("cat ../report").contains("moved away"), "the report says it too");
    assert!(output.err().contains("was moved away, removed or made anew meanwhile"), "{output:?}");
    repo.assert_absent(".git", "nothing is made there");
    repo.sh("mv ../gone .git");
    repo.oxundo(["status"]).says("2 turns to undo");
    repo.undo();
    repo.assert_file("a.txt", "one\ntwo\n", "it was recorded when it was back");
    let output = repo.oxundo(["run", "--", "sh", "-ec", "rm -rf .git; git init -q; exit 7"]);
    output.exits(7);
    assert!(output.err().contains("the records of earlier turns went with it"), "{output:?}");
}

#[test]
fn a_script_that_does_not_say_by_what_it_is_read_is_the_shells() {
    let repo = Sandbox::new();
    repo.write("agent", "echo \"$1 of $OXUNDO_RUN\" >made; exit 3\n").sh("chmod +x agent");
    let output = repo.oxundo(["run", "--", "./agent", "work"]);
    output.exits(3);
    assert!(repo.sh("cat made").starts_with("work of /"), "it has its arguments, and is inside the run");
    repo.undo();
    assert!(!repo.exists("made"));
}

#[test]
fn who_ends_anothers_turn_is_told_that_it_goes_on() {
    let repo = Sandbox::new();
    repo.oxundo(["turn", "begin", "--agent", "claude"]).success();
    repo.write("new", "new\n");
    repo.oxundo(["turn", "end"]).says("Turn 1 goes on: it is another session's");
    repo.oxundo(["turn", "end", "--agent", "claude"]).success();
    assert_eq!(repo.log().len(), 1);
}

#[test]
fn a_session_whose_turn_no_hook_told_of_has_it_all_the_same() {
    let repo = Sandbox::new();
    repo.oxundo(["run", "-q", "--session", "s", "--", "sh", "-c", "echo 1 >one"]).success();
    let before = repo.state();
    repo.oxundo(["undo", "--session", "s"]).says("Took out turn 1");
    assert!(!repo.exists("one"));
    repo.redo();
    repo.state().assert_is(&before, "and back");
}
