//! What is lost is found by one command, and comes back by the line that it prints.

use crate::sandbox::{Mode, Sandbox};
use crate::steps::{hook, shell};
use serde_json::{Value, json};

fn found(repo: &Sandbox, args: &[&str]) -> Vec<Value> {
    let (code, told) = repo.json(["find"].iter().chain(args));
    assert_eq!(code, 0, "{told}");
    told["found"].as_array().expect("a list").clone()
}

fn fails(repo: &Sandbox, args: &[&str], code: &str) {
    let (_, told) = repo.json(args);
    assert_eq!(told["error"]["code"], code, "{told}");
}

/// Types the line that is printed for the newest of what is found, which is to bring back a file with this in it.
#[track_caller]
fn comes_back(repo: &Sandbox, args: &[&str], path: &str, content: &str) {
    let all = found(repo, args);
    let lost: Vec<_> = all.iter().filter(|one| one["present"] == false).collect();
    assert!(!lost.is_empty(), "{args:?} finds it: {all:?}");
    let line = lost[0]["command"].as_str().expect("a line");
    let text = repo.oxundo(["find"].iter().chain(args)).out();
    assert!(text.contains(line), "people are told the same: {line}\n{text}");
    let words = shell_words::split(line).expect("a line");
    if words[0] == "oxundo" {
        repo.oxundo(&words[1..]).success();
    } else {
        repo.sh(line);
    }
    let there = repo.read(path);
    assert!(String::from_utf8_lossy(&there).contains(content), "{args:?}: {line} brings {path}: {there:?}");
}

/// How something is lost, what is asked, and which file comes back with what in it.
struct Loss {
    what: &'static str,
    mode: Mode,
    turns: &'static [&'static str],
    args: &'static [&'static str],
    path: &'static str,
    content: &'static str,
}

const LOSSES: &[Loss] = &[
    Loss {
        what: "the agent deleted what it had made",
        mode: Mode::Ghost,
        turns: &["echo lost-one >a.txt", "rm a.txt"],
        args: &["a.txt"],
        path: "a.txt",
        content: "lost-one",
    },
    Loss {
        what: "the agent deleted the user's untracked file, and worked on",
        mode: Mode::Commit,
        turns: &["rm untracked.txt", "echo 1 >b", "echo 2 >b"],
        args: &["untracked.txt"],
        path: "untracked.txt",
        content: "the user's own",
    },
    Loss {
        what: "only its text is known",
        mode: Mode::Ghost,
        turns: &["mkdir -p deep/er; echo 'fn lost_two() {}' >deep/er/x.rs", "rm -r deep"],
        args: &["-S", "lost_two"],
        path: "deep/er/x.rs",
        content: "lost_two",
    },
    Loss {
        what: "by a pattern, below a directory",
        mode: Mode::Ghost,
        turns: &["mkdir src; echo 'TODO(me): 42' >src/x; echo 'TODO(me): 43' >y", "rm -r src y"],
        args: &["-G", r"TODO\(\w+\): \d+", "src"],
        path: "src/x",
        content: "TODO(me): 42",
    },
    Loss {
        what: "an edit that another turn wrote over",
        mode: Mode::Commit,
        turns: &["echo lost-three >>README.txt", "echo other >README.txt"],
        args: &["-S", "lost-three", "README.txt"],
        path: "README.txt",
        content: "lost-three",
    },
    Loss {
        what: "a name that is no plain pathspec",
        mode: Mode::Ghost,
        turns: &["echo lost-four >'[x] $y*.txt'", "rm -- '[x] $y*.txt'"],
        args: &["-S", "lost-four"],
        path: "[x] $y*.txt",
        content: "lost-four",
    },
    Loss {
        what: "a glob",
        mode: Mode::Ghost,
        turns: &["mkdir m; echo lost-five >m/n.md", "rm -r m"],
        args: &["*.md"],
        path: "m/n.md",
        content: "lost-five",
    },
    Loss {
        what: "a stash that was dropped, of a file that a turn had",
        mode: Mode::Ghost,
        turns: &["echo lost-six >>README.txt", "git stash -q; git stash drop -q"],
        args: &["-S", "lost-six"],
        path: "README.txt",
        content: "lost-six",
    },
];

#[test]
fn what_is_lost_is_found_and_comes_back() {
    for Loss { what, mode, turns, args, path, content } in LOSSES {
        let repo = Sandbox::new();
        repo.write("untracked.txt", "the user's own\n");
        for turn in *turns {
            repo.turn(*mode, turn);
        }
        let before = repo.everything();
        let _ = found(&repo, args);
        repo.everything().assert_is(&before, &format!("it looks only: {what}"));
        comes_back(&repo, args, path, content);
    }
}

#[test]
fn an_edit_that_undo_overwrote_is_in_a_rescue() {
    let repo = Sandbox::new();
    repo.agent("echo agent >>README.txt");
    repo.write("README.txt", "mine, never saved elsewhere\n");
    repo.oxundo(["undo", "--edits=overwrite"]).success();
    comes_back(&repo, &["-S", "never saved elsewhere"], "README.txt", "mine, never");
    let repo = Sandbox::new();
    repo.agent("echo agent >>README.txt");
    repo.write("README.txt", "mine\n");
    repo.oxundo(["undo", "--edits=overwrite"]).success();
    repo.oxundo(["restore", "@rescue", "--", "README.txt"]).success();
    repo.assert_file("README.txt", "mine\n", "the last rescue has a name");
    fails(&repo, &["restore", "rescue:77"], "not_found");
}

#[test]
fn what_was_only_in_a_named_state_or_in_an_undone_or_replaced_turn_is_found() {
    let repo = Sandbox::new();
    repo.write("idea.txt", "an idea\n");
    repo.oxundo(["checkpoint", "lunch"]).success();
    repo.sh("rm idea.txt");
    comes_back(&repo, &["idea.txt"], "idea.txt", "an idea");
    repo.sh("rm idea.txt");
    repo.turn(Mode::Ghost, "echo first-way >way.txt");
    repo.undo();
    repo.turn(Mode::Ghost, "echo second-way >way.txt");
    comes_back(&repo, &["-S", "first-way"], "way.txt", "first-way");
}

#[test]
fn what_is_in_another_worktree_that_was_removed_is_found() {
    let repo = Sandbox::new();
    let linked = repo.linked("tree");
    linked.turn(Mode::Ghost, "echo away >gone.txt");
    linked.oxundo(["checkpoint", "there"]).success();
    linked.turn(Mode::Ghost, "echo further >gone.txt");
    repo.git(["worktree", "remove", "--force", "../tree"]);
    let all = found(&repo, &["gone.txt"]);
    let states: Vec<_> = all.iter().filter_map(|one| one["state"].as_str()).collect();
    assert!(states.iter().all(|state| state.starts_with("tree:")), "{states:?}");
    comes_back(&repo, &["-S", "away", "gone.txt"], "gone.txt", "away");
    comes_back(&repo, &["-S", "further"], "gone.txt", "further");
    fails(&repo, &["restore", "tree:9"], "not_found");
}

#[test]
fn what_was_moved_aside_and_what_was_kept_is_found() {
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "mkdir -p node_modules/p; echo module >node_modules/p/index.js");
    repo.undo();
    repo.assert_absent("node_modules", "it is moved aside");
    comes_back(&repo, &["node_modules/p/index.js"], "node_modules/p/index.js", "module");

    std::fs::create_dir_all(repo.path(".git/oxundo/kept/0123-1")).expect("make a directory");
    repo.write(".git/oxundo/kept/0123-1/saved.txt", "saved in the moment\n");
    comes_back(&repo, &["-S", "in the moment"], "saved.txt", "saved in the moment");
}

#[test]
fn each_content_is_given_once_with_the_newest_state_that_has_it() {
    let repo = Sandbox::new();
    for number in 1..=6 {
        repo.turn(Mode::Ghost, &format!("echo {} >x.txt; echo {number} >other", (number + 1) / 2));
    }
    let all = found(&repo, &["x.txt"]);
    let told: Vec<_> = all.iter().map(|one| (one["state"].as_str(), one["present"].as_bool())).collect();
    assert_eq!(told, [(Some("6"), Some(true)), (Some("4"), Some(false)), (Some("2"), Some(false))], "the newest first");
    let (_, told) = repo.json(["find", "-n", "2", "x.txt"]);
    assert_eq!((told["found"].as_array().map(Vec::len), &told["more"]), (Some(2), &true.into()));
}

/// Only HEAD's reflog tells of it.
#[test]
fn a_commit_that_came_and_went_in_one_turn_is_found() {
    for (script, what) in [
        (
            "echo LOST >new; git add new; git commit -qm x; git rm -q new; echo 1 >other; git add other; git commit -q --amend -m y",
            "amended",
        ),
        (
            "git switch -q --detach; echo LOST >new; git add new; git commit -qm x; git switch -q main; echo 1 >other",
            "detached",
        ),
        ("echo LOST >new; git add new; git commit -qm x; git reset -q --hard HEAD~; echo 1 >other", "reset"),
        (
            "git switch -qc topic; echo LOST >new; git add new; git commit -qm x; git switch -q main; git branch -qD topic; echo 1 >other",
            "its branch deleted",
        ),
    ] {
        for mode in Mode::tried() {
            let repo = Sandbox::new();
            repo.turn(mode, script);
            repo.sh("git reflog expire --expire=now --all");
            repo.prune();
            // What expires takes nothing of it along.
            repo.turn(mode, "echo 2 >other");
            repo.prune();
            let found = repo.json(["find", "-S", "LOST"]).1;
            let command = found["found"][0]["command"].as_str().unwrap_or_default().to_owned();
            assert!(!repo.exists("new") && !command.is_empty(), "{what}, {mode:?}: {found}");
            assert_eq!(found["found"][0]["path"], "new", "{found}");
            repo.sh(&command.replacen("oxundo", env!("CARGO_BIN_EXE_oxundo"), 1));
            repo.assert_file("new", "LOST\n", what);
            repo.assert_sound();
        }
    }
}

#[test]
fn what_is_nowhere_or_no_question_is_said() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >>README.txt");
    let output = repo.oxundo(["find", "no-such-file"]);
    output.success();
    output.says("nothing is found");
    fails(&repo, &["find", "-G", "("], "usage");
    repo.oxundo(["find"]).exits(2);
    fails(&repo, &["find", "../outside"], "usage");
    let never = Sandbox::new();
    never.oxundo(["find", "x"]).says("nothing is found");
}

#[test]
fn from_a_directory_below_the_line_means_the_same_file() {
    let mut repo = Sandbox::new();
    repo.turn(Mode::Ghost, "mkdir -p sub; echo here >sub/x.txt; echo top >x.txt");
    repo.turn(Mode::Ghost, "rm sub/x.txt x.txt; touch sub/stay");
    repo.start_in("sub");
    comes_back(&repo, &["x.txt"], "sub/x.txt", "here");
    comes_back(&repo, &[":/x.txt"], "x.txt", "top");
}

#[test]
fn a_name_that_no_terminal_can_show_comes_back_by_the_line_as_well() {
    let repo = Sandbox::new();
    let name = b"n\xff\n'\\x";
    repo.write(name, "lost-name\n");
    repo.turn(Mode::Ghost, "rm n*");
    let all = found(&repo, &["-S", "lost-name"]);
    let line = all[0]["command"].as_str().expect("a line");
    assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line}");
    let line = line.replacen("oxundo", env!("CARGO_BIN_EXE_oxundo"), 1);
    repo.git(["config", "alias.typed", &format!("!bash -c {}", shell_words::quote(&line))]);
    repo.git(["typed"]);
    assert_eq!(repo.read(name), b"lost-name\n");
}

#[test]
fn a_pattern_goes_line_by_line_and_what_is_looked_for_may_begin_with_a_dash() {
    let repo = Sandbox::new();
    repo.write("list.txt", "one\n- wanted\nthree\n");
    repo.turn(Mode::Ghost, "rm list.txt");
    for args in [["-G", "^- wanted$"], ["-G", "^three"], ["-G", "one$"], ["-S", "- wanted"], ["-S", "-"], ["-G", "- w"]]
    {
        comes_back(&repo, &args, "list.txt", "one\n- wanted\nthree");
        repo.undo();
    }
    repo.oxundo(["run", "-m", "--force it", "--", "touch", "x"]).success();
    assert_eq!(repo.oxundo(["log", "--grep", "--force", "--format", "%s"]).out(), "--force it");
}

#[test]
fn a_worktree_whose_name_means_something_else_is_named_so_that_it_does_not() {
    let repo = Sandbox::new();
    repo.agent("echo other >note.txt; echo 6 >6");
    for name in ["main", "op", "rescue", "-d", "1", "HEAD"] {
        let branch = format!("of{name}");
        repo.git(["worktree", "add", "-q", "-b", &branch, "--", &format!("../{name}")]);
        repo.beside(name).agent(&format!("echo 'wanted {name}' >note.txt"));
        repo.git(["worktree", "remove", "--force", "--", &format!("../{name}")]);
        comes_back(&repo, &["-S", &format!("wanted {name}")], "note.txt", &format!("wanted {name}"));
        repo.undo();
        let words = format!("worktrees/{name}:1");
        assert!(repo.oxundo(["show", &words]).out().contains(&format!("+wanted {name}")), "{words}");
        repo.oxundo(["keep", &words]).success();
        let listed = repo.oxundo(["log", "--format", "%(turn)", "--worktree", &format!("worktrees/{name}")]);
        assert_eq!(listed.out(), "1", "{name}");
    }
}

#[test]
fn in_its_open_turn_an_agent_brings_back_what_it_took_away() {
    let repo = Sandbox::new();
    repo.write("mine.txt", "mine\n");
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    shell(&repo, 1, "rm mine.txt");
    assert_eq!(repo.oxundo(["show", "1:before:mine.txt"]).out(), "mine");
    comes_back(&repo, &["mine.txt"], "mine.txt", "mine");
}
