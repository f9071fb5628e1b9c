//! Looking at turns: what `show` and `diff` print, through git's own diff, and the list to choose from.

use crate::sandbox::{Mode, Sandbox};
use crate::terminal::Terminal;
use serde_json::json;

fn two_turns() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo.agent("printf 'two\\nthree\\n' >a.txt; mkdir sub; echo b >sub/b.txt");
    repo.agent("echo four >>a.txt; rm sub/b.txt; printf 'x\\000' >bin");
    repo
}

#[test]
fn changes_are_shown_across_turns_and_against_the_worktree() {
    let mut repo = two_turns();
    repo.write("a.txt", "five\n");
    let output = repo.oxundo(["diff", "0", "2"]);
    output.says("-one\n+two\n+three\n+four");
    output.says("Binary files /dev/null and b/bin differ");
    repo.oxundo(["diff", "1", "2", "--stat", "--", "a.txt"]).says("1 file changed, 1 insertion(+)");
    repo.oxundo(["diff", "1", "--", "a.txt"]).says("+five");
    let (_, changes) = repo.json(["diff", "0", "2"]);
    let bin = json!({"path": "bin", "status": "A", "insertions": 0, "deletions": 0});
    assert_eq!(changes["files"], json!([{"path": "a.txt", "status": "M", "insertions": 3, "deletions": 1}, bin]));
    let (_, changes) = repo.json(["diff", "1", "2", "--", "sub"]);
    assert_eq!(changes["files"], json!([{"path": "sub/b.txt", "status": "D", "insertions": 0, "deletions": 1}]));
    repo.sh("mkdir -p sub");
    repo.start_in("sub");
    let (_, changes) = repo.json(["diff", "1", "2", "--", "../a.txt"]);
    assert_eq!(changes["files"][0]["path"], "a.txt", "a pathspec counts from where one is: {changes}");
    repo.oxundo(["show", "1", "b.txt"]).says("+b");
}

#[test]
fn a_file_is_shown_as_it_was_before_and_after_any_turn() {
    let repo = two_turns();
    repo.oxundo(["checkpoint", "here: now"]).success();
    repo.write("a.txt", "five\n");
    for (spec, content) in [
        ("1:a.txt", "two\nthree\n"),
        ("1:before:a.txt", "one\n"),
        ("1:after:a.txt", "two\nthree\n"),
        ("0:a.txt", "one\n"),
        ("@~1:a.txt", "two\nthree\n"),
        ("2:before:sub/b.txt", "b\n"),
    ] {
        let output = repo.oxundo(["show", spec]);
        assert_eq!((output.code, output.stdout), (0, content.as_bytes().to_vec()), "{spec}");
    }
    assert_eq!(repo.oxundo(["show", "here: now", "a.txt"]).out(), "two\nthree\nfour");
    assert_eq!(repo.oxundo(["show", "2:bin"]).stdout, b"x\0", "byte for byte");
    assert_eq!(repo.oxundo(["show", "1:before"]).out(), "README.txt\na.txt");
    let (_, file) = repo.json(["show", "1:before:a.txt"]);
    assert_eq!((&file["path"], &file["size"], &file["text"]), (&json!("a.txt"), &json!(4), &json!("one\n")));
    let (_, files) = repo.json(["show", "2:after"]);
    assert_eq!(files["paths"], json!(["README.txt", "a.txt", "bin"]));
}

#[test]
fn a_difference_is_of_one_path_by_either_form_and_a_path_alone_is_told_where_it_goes() {
    let repo = Sandbox::new();
    repo.agent("echo one >'o*e.txt'; echo two >two.txt");
    repo.agent("echo more >>'o*e.txt'; echo more >>two.txt; mkdir sub; echo sub >sub/one.txt");
    let by = |args: &[&str]| {
        let shown = repo.oxundo(args);
        shown.success();
        shown.out()
    };
    let wanted = by(&["diff", "1", "--", ":(literal)o*e.txt"]);
    assert!(wanted.contains("+more") && !wanted.contains("two.txt"), "{wanted}");
    assert_eq!(by(&["diff", "1:o*e.txt"]), wanted);
    assert_eq!(by(&["diff", "1:before:two.txt"]), by(&["diff", "1:before", "--", "two.txt"]));
    let files = repo.json(["diff", "1:two.txt"]).1["files"].clone();
    assert_eq!(files.as_array().map(Vec::len), Some(1), "{files}");
    for (args, line) in [
        (&["diff", "two.txt"][..], "'oxundo diff -- two.txt'"),
        (&["diff", "1", "two.txt"], "'oxundo diff 1 -- two.txt'"),
    ] {
        let (code, answer) = repo.json(args);
        let hint = &answer["error"]["hints"][0];
        assert!(code == 1 && hint.as_str().is_some_and(|hint| hint.ends_with(line)), "{answer}");
        repo.sh(line.trim_matches('\''));
    }
    let (_, answer) = repo.json(["diff", "nowhere.txt"]);
    assert!(!answer["error"]["hints"].to_string().contains(" -- "), "{answer}");
}

#[test]
fn an_external_diff_and_a_pager_of_the_users_are_used() {
    let repo = two_turns();
    repo.write("../home/outer.sh", "echo outer $1\n");
    repo.sh("git config diff.external 'sh ../home/outer.sh'");
    repo.oxundo(["diff", "1", "2", "--", "a.txt"]).says("outer a.txt");
    repo.sh("git config --unset diff.external; git config core.pager 'sed s/^/paged./'");
    let mut command = repo.oxundo_command(["show", "1", "--stat"]);
    command.env_remove("GIT_PAGER").env_remove("PAGER");
    Terminal::start(command).shows("paged.");
}

#[test]
fn without_a_terminal_the_flags_are_named() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.turn(mode, "echo one >a.txt");
        for args in [&["rewind"][..], &["undo", "-i"]] {
            let before = repo.everything();
            let (code, said) = repo.json(args);
            assert_eq!((code, &said["error"]["code"]), (2, &json!("usage")), "{said}");
            let output = repo.oxundo(args);
            output.exits(2);
            output.warns("undo and redo take '--to'");
            repo.everything().assert_is(&before, "nothing is changed");
        }
    }
}

#[test]
fn status_says_in_a_line_what_undo_would_do() {
    let repo = Sandbox::new();
    assert_eq!(repo.oxundo(["status"]).out(), "On 'main': no turns to undo");
    repo.oxundo(["run", "--agent", "claude", "-m", "add a cache", "--", "sh", "-c", "echo 1 >a; echo 2 >b"]).success();
    repo.agent("echo 2 >>b");
    repo.undo();
    let (now, base) = (repo.head()[..7].to_owned(), repo.git(["rev-parse", "--short=7", "HEAD~"]).trim().to_owned());
    let output = repo.oxundo(["status"]);
    assert_eq!(
        output.out(),
        format!(
            "On 'main': 1 turn to undo, 1 to redo\nWould undo turn 1 (claude: add a cache): 2 files, main {now}..{base}"
        )
    );
    let dry = repo.oxundo(["undo", "--dry-run"]).out();
    assert_eq!(output.out().lines().nth(1), dry.lines().next(), "it is the line of the dry run");
    repo.commit("mine.txt", "mine\n");
    let output = repo.oxundo(["status"]);
    output.says("On 'main': 1 turn to undo, 1 to redo\nundo would refuse: ");
    output.warns("hint: ");
    repo.oxundo(["undo"]).warns(output.out().split_once("refuse: ").expect("it says why").1);
}

#[test]
fn a_path_that_was_not_changed_is_said_to_be_one() {
    let repo = crate::steps::story(Mode::Commit);
    crate::steps::hook(&repo, "s", "Stop", &serde_json::json!({}));
    for state in ["1", "1.4"] {
        let output = repo.oxundo(["show", state, "nosuch"]);
        output.success();
        assert_eq!(output.err(), "warning: nothing was changed that 'nosuch' matches", "{state}");
        assert_eq!(repo.json(["show", state, "nosuch"]).1["files"], serde_json::json!([]), "{state}");
    }
    let files = repo.json(["show", "1.4", "d/new.txt"]).1["files"].clone();
    assert_eq!((files[0]["path"].as_str(), files.as_array().map(Vec::len)), (Some("d/new.txt"), Some(1)));
}

#[test]
fn a_path_stands_behind_a_turn_wherever_one_is_named() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >a.txt; echo 1 >b.txt");
    repo.agent("echo 2 >>a.txt; echo 2 >>b.txt");
    let of_a = |args: &[&str]| {
        let files = repo.json(args.iter().copied()).1["files"].clone();
        assert_eq!(files.as_array().map(Vec::len), Some(1), "{args:?}: {files}");
        assert_eq!(files[0]["path"], "a.txt", "{args:?}");
    };
    of_a(&["diff", "1:a.txt"]);
    of_a(&["diff", "1:a.txt", "2:a.txt"]);
    of_a(&["diff", "1", "2:a.txt"]);
    of_a(&["undo", "--dry-run", "--only", "2:a.txt"]);
    for args in [["diff", ":a.txt"], ["restore", ":a.txt"], ["show", ":a.txt"]] {
        let told = repo.json(args).1;
        assert_eq!(told["error"]["code"], "not_found", "{told}");
        assert!(told["error"]["hints"][0].as_str().is_some_and(|hint| hint.contains("@:a.txt")), "{told}");
    }
    repo.oxundo(["undo", "--only", "2:a.txt"]).success();
    repo.assert_file("a.txt", "1\n", "it is taken out of this path");
    repo.assert_file("b.txt", "1\n2\n", "and of no other");
}
