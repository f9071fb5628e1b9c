//! Whose a branch is that moved while agents were at work in several worktrees: its, in whose call alone it moved.

use crate::sandbox::{Mode, Sandbox, in_both_modes};
use crate::steps::{call, hook};
use serde_json::json;
use std::collections::BTreeMap;

fn branches(repo: &Sandbox) -> BTreeMap<String, String> {
    let all = repo.git(["for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads"]);
    all.lines().filter_map(|line| line.split_once(' ')).map(|(name, id)| (name.to_owned(), id.to_owned())).collect()
}

fn shell(repo: &Sandbox, session: &str, id: u32, script: &str) {
    call(repo, session, id, "Bash", &json!({"command": script}), script);
}

fn tool(repo: &Sandbox, session: &str, event: &str, id: u32) {
    hook(
        repo,
        session,
        event,
        &json!({"tool_name": "Bash", "tool_use_id": format!("{session}{id}"), "tool_input": {}}),
    );
}

fn prompt(repo: &Sandbox, session: &str) {
    hook(repo, session, "UserPromptSubmit", &json!({}));
}

fn stop(repo: &Sandbox, session: &str) {
    hook(repo, session, "Stop", &json!({}));
}

/// Two worktrees, and branches that can be moved and deleted.
fn two(mode: Mode) -> (Sandbox, Sandbox) {
    let repo = Sandbox::new();
    repo.sh("for name in a b; do git branch old-$name; git branch gone-$name; git branch -f seen HEAD; done");
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    let tree = repo.linked("tree");
    (repo, tree)
}

/// What a call does to branches that have this letter.
fn moves(letter: &str) -> String {
    format!(
        "git branch new-{letter}; git branch -D gone-{letter}; git symbolic-ref refs/heads/link-{letter} refs/heads/seen
         git branch -f old-{letter} $(git commit-tree -p HEAD -m {letter} 'HEAD^{{tree}}'); echo {letter} >>{letter}.txt"
    )
}

fn stays(name: &str) -> String {
    format!("'{name}' moved during turn 1, not by it, and stays: '--branches=all' moves it too")
}

#[test]
fn a_branch_is_its_in_whose_call_alone_it_moved() {
    in_both_modes(|mode| {
        for first in ["a", "b"] {
            let (repo, tree) = two(mode);
            let start = branches(&repo);
            prompt(&repo, "a");
            prompt(&tree, "b");
            shell(&repo, "a", 1, &moves("a"));
            shell(&tree, "b", 1, &moves("b"));
            repo.git(["branch", "users"]);
            tool(&repo, "a", "PreToolUse", 2);
            tool(&tree, "b", "PreToolUse", 2);
            repo.git(["branch", "somebodys"]);
            tool(&repo, "a", "PostToolUse", 2);
            tool(&tree, "b", "PostToolUse", 2);
            let (one, other) = if first == "a" { (&repo, &tree) } else { (&tree, &repo) };
            stop(one, first);
            stop(other, if first == "a" { "b" } else { "a" });
            let all = branches(&repo);
            let (undone, is_its) = (one.oxundo(["undo"]), |name: &str| name.ends_with(&format!("-{first}")));
            undone.success();
            for (name, id) in branches(&repo).into_iter().filter(|(name, _)| !["main", "tree"].contains(&name.as_str()))
            {
                let wanted = if is_its(&name) { start.get(&name) } else { all.get(&name) };
                assert_eq!(Some(&id), wanted, "{name}: {undone:?}");
            }
            assert!(branches(&repo).contains_key(&format!("gone-{first}")), "{undone:?}");
            assert!(undone.err().contains(&stays("somebodys")), "{undone:?}");
            one.redo();
            assert_eq!(branches(&repo), all, "redo leads where it was");
            other.undo();
            one.undo();
            let mut wanted = start.clone();
            for name in ["users", "somebodys"] {
                wanted.insert(name.to_owned(), all[name].clone());
            }
            assert_eq!(branches(&repo), wanted, "each has taken its own back");
            repo.assert_sound();
        }
    });
}

#[test]
fn a_call_that_is_in_flight_as_another_worktrees_turn_ends_has_moved_what_moved_since_it_began() {
    let (repo, tree) = two(Mode::Commit);
    prompt(&repo, "a");
    prompt(&tree, "b");
    shell(&tree, "b", 1, "echo b >b.txt");
    shell(&repo, "a", 1, "git branch before; echo a >a.txt");
    tool(&tree, "b", "PreToolUse", 2);
    shell(&repo, "a", 2, "git branch within");
    stop(&repo, "a");
    let undone = repo.oxundo(["undo"]);
    undone.success();
    assert!(undone.err().contains(&stays("within")) && !undone.err().contains("before"), "{undone:?}");
    let left = branches(&repo);
    assert!(left.contains_key("within") && !left.contains_key("before"), "{undone:?}");
    tool(&tree, "b", "PostToolUse", 2);
    stop(&tree, "b");
    tree.oxundo(["undo"]).warns(&stays("within"));
    assert!(branches(&repo).contains_key("within"), "nor does the other one take it");
}

#[test]
fn a_turn_that_may_have_moved_a_branch_and_did_nothing_else_is_on_record() {
    let (repo, tree) = two(Mode::Commit);
    prompt(&repo, "a");
    prompt(&tree, "b");
    shell(&repo, "a", 1, "echo a >a.txt");
    tool(&repo, "a", "PreToolUse", 2);
    tool(&tree, "b", "PreToolUse", 2);
    repo.git(["branch", "somebodys"]);
    tool(&tree, "b", "PostToolUse", 2);
    stop(&tree, "b");
    tool(&repo, "a", "PostToolUse", 2);
    stop(&repo, "a");
    for (worktree, session) in [(&repo, "a"), (&tree, "b")] {
        let undone = worktree.oxundo(["undo"]);
        assert!(undone.err().contains(&stays("somebodys")), "{session}: {undone:?}");
        assert!(branches(&repo).contains_key("somebodys"), "{session}: {undone:?}");
        worktree.redo();
    }
    tree.oxundo(["undo", "--branches=all"]).success();
    assert!(!branches(&repo).contains_key("somebodys"), "where it is asked for it goes");
}

#[test]
fn what_a_hook_of_gits_moves_in_a_call_is_the_calls() {
    let (repo, tree) = two(Mode::Commit);
    let hooks = "#!/bin/sh\ngit update-ref refs/heads/last-commit HEAD\n";
    repo.write(".git/hooks/post-commit", hooks).chmod(".git/hooks/post-commit", 0o755);
    let start = branches(&repo);
    prompt(&tree, "b");
    prompt(&repo, "a");
    shell(&tree, "b", 1, "echo b >b.txt");
    shell(&repo, "a", 1, "echo a >a.txt; git add a.txt; git commit -qm own");
    stop(&repo, "a");
    assert!(branches(&repo).contains_key("last-commit"));
    repo.undo();
    assert_eq!(branches(&repo), start);
    repo.redo();
    // Where another's is in flight as well, nobody can tell.
    tool(&tree, "b", "PreToolUse", 2);
    prompt(&repo, "a");
    shell(&repo, "a", 2, "echo a >>a.txt; git commit -qam again");
    tool(&tree, "b", "PostToolUse", 2);
    stop(&repo, "a");
    let there = branches(&repo)["last-commit"].clone();
    repo.oxundo(["undo"]).warns("'last-commit' moved during turn 2, not by it");
    assert_eq!(branches(&repo)["last-commit"], there);
}

#[test]
fn another_worktrees_branch_stays_though_head_has_followed_it() {
    let repo = Sandbox::new();
    repo.agent(
        "echo work >work.txt
         git worktree add -q -b theirs ../w && git -C ../w commit -q --allow-empty -m theirs && git worktree remove ../w
         git merge -q --ff-only theirs",
    );
    let theirs = branches(&repo)["theirs"].clone();
    repo.oxundo(["undo"]).warns(&stays("theirs"));
    assert_eq!(branches(&repo)["theirs"], theirs);
    repo.redo();
    assert_eq!(repo.git(["merge-base", "--is-ancestor", "theirs", "HEAD"]), "");
}

/// In their shell agents make a worktree, commit there, and merge that.
#[test]
fn what_calls_commit_in_a_worktree_of_their_own_and_merge_is_the_turns() {
    for mode in Mode::tried() {
        let (repo, _) = two(mode);
        let before = repo.state();
        prompt(&repo, "s");
        shell(&repo, "s", 1, "git worktree add -q -b fx ../wx");
        shell(&repo, "s", 2, "cd ../wx; echo ITS >its.txt; git add its.txt; git commit -qm its");
        shell(&repo, "s", 3, "git merge -q fx; git worktree remove ../wx; git branch -qd fx");
        stop(&repo, "s");
        let done = repo.state();
        repo.undo();
        repo.state().assert_is(&before, "it is the turn's");
        repo.redo();
        repo.state().assert_is(&done, "redo");
    }
}

/// The user's uncommitted work is below what the turn made on another branch: it is committed in both, or in neither.
#[test]
fn a_dirty_commit_from_which_another_branch_goes_on_stays_until_undo() {
    let (repo, _) = two(Mode::Commit);
    repo.sh("echo USER >>README.txt");
    let before = repo.state();
    prompt(&repo, "s");
    shell(
        &repo,
        "s",
        1,
        "git worktree add -q -b fx ../wx; cd ../wx; echo ITS >its.txt; git add its.txt; git commit -qm its",
    );
    stop(&repo, "s");
    assert_eq!(repo.git(["status", "--porcelain"]), "", "it is in the dirty commit");
    assert_eq!(repo.log().len(), 1, "and in a turn");
    let copy = repo.copy();
    copy.git(["merge", "-q", "fx"]);
    assert_eq!(copy.sh("tail -1 README.txt; cat its.txt"), "USER\nITS");
    repo.undo();
    repo.assert_file("README.txt", copy.read("README.txt"), "the user's");
    assert_eq!(repo.git(["status", "--porcelain"]), " M README.txt");
    repo.git(["worktree", "remove", "../wx"]);
    repo.git(["branch", "-qD", "fx"]);
    repo.state().assert_is(&before, "uncommitted again");
    repo.redo();
    assert_eq!(repo.git(["status", "--porcelain"]), "", "redo has it in the dirty commit");
}

#[test]
fn a_turn_that_was_open_as_its_worktree_was_removed_ended_with_its_last_step() {
    let (repo, tree) = two(Mode::Commit);
    tree.agent("echo below >below.txt");
    prompt(&tree, "b");
    shell(&tree, "b", 1, "echo b >b.txt");
    tool(&tree, "b", "PreToolUse", 2);
    repo.git(["worktree", "remove", "--force", "../tree"]);
    let listed = repo.json(["log", "--worktree", "tree"]).1;
    let states: Vec<_> = (listed["turns"].as_array().expect("turns").iter())
        .map(|turn| json!([turn["turn"], turn["state"], turn["interrupted"], turn["files"][0]["path"]]))
        .collect();
    assert_eq!(states, [json!([2, "done", true, "b.txt"]), json!([1, "done", false, "below.txt"])]);
    let before = repo.state();
    for _ in 0..2 {
        assert_eq!(repo.oxundo(["show", "tree:2:b.txt"]).out(), "b");
        assert!(repo.oxundo(["show", "tree:2"]).out().contains("+b"));
        repo.oxundo(["restore", "tree:2", "--", "b.txt"]).success();
        repo.assert_file("b.txt", "b\n", "it came back");
        repo.undo();
        repo.state().assert_is(&before, "and goes again");
        // From here on it is written so.
        repo.oxundo(["keep", "tree:2"]).success();
    }
    repo.oxundo(["doctor"]).success();
    // It moves no branch any more.
    let start = branches(&repo);
    prompt(&repo, "a");
    shell(&repo, "a", 1, "git branch own; echo a >a.txt");
    stop(&repo, "a");
    repo.undo();
    assert_eq!(branches(&repo), start);
    repo.assert_sound();
}

#[test]
fn a_turn_that_is_cut_off_by_the_removal_of_its_worktree_may_have_moved_what_moved_until_then() {
    let (repo, tree) = two(Mode::Commit);
    prompt(&tree, "b");
    shell(&tree, "b", 1, "echo b >b.txt");
    tool(&tree, "b", "PreToolUse", 2);
    prompt(&repo, "a");
    shell(&repo, "a", 1, "git branch somebodys; echo a >a.txt");
    repo.git(["worktree", "remove", "--force", "../tree"]);
    stop(&repo, "a");
    repo.oxundo(["undo"]).warns(&stays("somebodys"));
    assert!(branches(&repo).contains_key("somebodys"));
}

#[test]
fn a_branch_starts_at_a_step_with_the_files_of_then() {
    in_both_modes(|mode| {
        let (repo, _tree) = two(mode);
        for (turn, names) in [(1, ["one", "two"]), (2, ["three", "four"])] {
            prompt(&repo, "a");
            for (at, name) in (0..).zip(names) {
                shell(&repo, "a", 2 * turn + at, &format!("echo {name} >{name}"));
            }
            stop(&repo, "a");
        }
        repo.write("mine", "mine\n");
        let before = repo.state();
        for (step, there) in [("2.1", "mine one three two"), ("1.1", "mine one")] {
            let started = repo.oxundo(["branch", "again", step]);
            assert_eq!(repo.sh("echo $(ls | grep -v README)").trim(), there, "{step}: {started:?}");
            assert_eq!(repo.git(["branch", "--show-current"]), "again");
            repo.undo();
            repo.state().assert_is(&before, "undo takes it away");
        }
    });
}

/// A call of another worktree's moves a branch at any instant of a hook's.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod instants {
    use super::{Mode, Sandbox, branches, prompt, shell, stop, tool, two};
    use crate::kill_points::in_parallel;
    use crate::sandbox::announce;
    use crate::tracer::{LAUNCH, interrupt_each};
    use serde_json::json;
    use std::cell::Cell;
    use std::fs::File;
    use std::io::Write as _;

    /// Does this in a thread of its own: agents that it starts are to be no children of one that waits for all that it traces.
    fn apart<T: Send>(act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(act).join()).expect("it is done")
    }

    /// Two worktrees in which agents are at work, at this event of the first one's.
    fn at(event: &str) -> (Sandbox, Sandbox) {
        let (repo, tree) = two(Mode::Commit);
        prompt(&repo, "a");
        prompt(&tree, "b");
        shell(&repo, "a", 1, "echo a >a.txt");
        shell(&tree, "b", 1, "echo b >b.txt");
        if event == "PostToolUse" {
            tool(&repo, "a", "PreToolUse", 2);
        }
        tool(&tree, "b", "PreToolUse", 2);
        (repo, tree)
    }

    /// Fires a hook, and lets the branch be made before its change of this number, or after the last. Gives how many there are.
    fn act_at(repo: &Sandbox, event: &str, number: usize) -> Option<usize> {
        let payload = json!({"hook_event_name": event, "session_id": "a", "prompt": "p", "tool_name": "Bash",
            "tool_use_id": "a2", "tool_input": {}});
        let path = repo.home().join(format!("payload-{event}"));
        File::create(&path).and_then(|mut file| write!(file, "{payload}")).expect("write the payload");
        let seen = Cell::new(0);
        let each = |_: &str| {
            if seen.replace(seen.get() + 1) == number {
                repo.git(["branch", "theirs"]);
            }
        };
        let mut command = repo.launched_command(LAUNCH, &["hook", "claude"]);
        command.stdin(File::open(&path).expect("open the payload"));
        let trace = interrupt_each(&mut command, None, &each).ok()?;
        assert_eq!((trace.code, trace.stderr.as_str()), (Some(0), ""), "{event} at {number}");
        // How many there are goes by which of the objects' directories are there: a late one may be none.
        if number != usize::MAX && seen.get() <= number {
            repo.git(["branch", "theirs"]);
        }
        Some(seen.get())
    }

    fn check(event: &str, number: usize) {
        let (repo, tree) = apart(|| at(event));
        act_at(&repo, event, number);
        if event == "PreToolUse" {
            tool(&repo, "a", "PostToolUse", 2);
        }
        if event != "Stop" {
            stop(&repo, "a");
        }
        tool(&tree, "b", "PostToolUse", 2);
        stop(&tree, "b");
        repo.oxundo(["undo"]).success();
        assert!(branches(&repo).contains_key("theirs"), "{event} at {number}: no call of this worktree's has made it");
        repo.redo();
        repo.oxundo(["undo", "--to", "1.1"]).success();
        assert!(branches(&repo).contains_key("theirs"), "{event} at {number}: nor does going back to a step take it");
        tree.oxundo(["undo"]).success();
        repo.assert_sound();
    }

    #[test]
    fn no_undo_takes_what_another_worktrees_call_moves_at_any_instant_of_a_hooks() {
        let mut cases = Vec::new();
        for event in ["PreToolUse", "PostToolUse", "Stop"] {
            let (repo, _tree) = apart(|| at(event));
            let Some(many) = act_at(&repo, event, usize::MAX) else {
                return announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
            };
            let thorough = crate::form::is_thorough();
            let chosen = (0..many).filter(|number| thorough || number % (many / 3).max(1) == 0);
            cases.extend(chosen.map(|number| (event, number)));
        }
        let failed = in_parallel(&cases, |(event, number)| check(event, *number));
        let told: String = failed.iter().map(|(at, text)| format!("== {:?}\n{text}\n\n", cases[*at])).collect();
        assert!(failed.is_empty(), "{} of {} are wrong:\n{told}", failed.len(), cases.len());
    }
}

#[test]
fn what_was_deleted_from_the_index_is_put_away_by_the_hint_of_a_branch_that_writes_it() {
    let repo = Sandbox::new();
    repo.turn(Mode::Commit, "echo its >>README.txt");
    repo.sh("echo mine >>README.txt; git commit -qam mine; git rm -q README.txt");
    let refusal = repo.refuses(&["branch", "new", "1"], "conflict");
    let hints = refusal["hints"].to_string();
    let line = hints.split_once("run '").and_then(|(_, rest)| rest.split_once("' to put these changes away"));
    let line = line.map(|(line, _)| line.rsplit("run '").next().unwrap_or(line));
    repo.sh(line.unwrap_or_else(|| panic!("{hints}")));
    repo.oxundo(["branch", "new", "1"]).success();
    repo.assert_file("README.txt", "readme\nits\n", "as the turn left it");
    repo.assert_sound();
}

/// Its record ended on what was there before: that HEAD has it says nothing.
#[test]
fn a_branch_that_is_undone_is_not_taken_out_once_more() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.sh("seq 18 >f; git add f; git commit -qm f; sed -i 11s/.*/USER/ f; git add f");
        repo.turn(mode, "echo AGENT >its");
        repo.oxundo(["branch", "bb", "1"]).success();
        repo.undo();
        repo.sh("git add -A; git commit -qm mine --allow-empty");
        let before = repo.everything();
        repo.refuses(&["undo", "--only", "2"], "nothing");
        repo.everything().assert_is(&before, "nothing has changed");
    }
}
