//! What tools may rely on: the documented keys, errors as objects, and dry runs.

use crate::sandbox::{Mode, Sandbox};
use serde_json::{Value, json};

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[track_caller]
fn assert_has(value: &Value, wanted: &[&str]) {
    for key in wanted {
        assert!(keys(value).contains(key), "{key:?} is documented: {value}");
    }
}

fn is_time(value: &Value) -> bool {
    // RFC 3339: 2024-05-06T07:08:09Z, or with an offset.
    value.as_str().is_some_and(|text| {
        let bytes = text.as_bytes();
        bytes.len() >= 20 && bytes[4] == b'-' && bytes[7] == b'-' && bytes[10] == b'T' && bytes[13] == b':'
    })
}

/// A turn that does one of everything.
fn with_everything() -> Sandbox {
    let repo = Sandbox::new();
    repo.write("a.txt", "one\ntwo\n").write("gone.txt", "1\n2\n3\n").write("kind.txt", "k\n").write("mode.sh", "m\n");
    repo.write("bin.dat", b"\0\x01").write("same.txt", "s\n");
    repo.sh("git add -A; git commit -qm files; echo dirty >>same.txt");
    let script = "echo three >>a.txt; sed -i 1d a.txt; rm gone.txt; rm kind.txt; ln -s a.txt kind.txt; chmod +x mode.sh; printf '\\000\\002\\003' >bin.dat; printf '1\\n2\\n' >new.txt";
    repo.oxundo(["run", "-m", "Do it all", "--agent", "claude", "--session", "s-1", "--", "sh", "-c", script])
        .success();
    repo
}

fn file<'a>(value: &'a Value, path: &str) -> &'a Value {
    let files = value["files"].as_array().expect("files is a list");
    files.iter().find(|file| file["path"] == path).unwrap_or_else(|| panic!("{path} is listed: {value}"))
}

#[test]
fn log_has_its_documented_keys() {
    let repo = with_everything();
    let (code, log) = repo.json(["log"]);
    assert_eq!(code, 0);
    assert_has(&log, &["v", "branch", "turns"]);
    assert_eq!(log["branch"], "main");
    let turn = &log["turns"][0];
    assert_has(
        turn,
        &[
            "turn",
            "state",
            "agent",
            "session",
            "message",
            "branch",
            "mode",
            "began_at",
            "ended_at",
            "exit_code",
            "interrupted",
            "dirty_commit",
            "commits",
            "files",
        ],
    );
    assert_eq!(turn["turn"], 1);
    assert_eq!(turn["state"], "done");
    assert_eq!(turn["agent"], "claude");
    assert_eq!(turn["session"], "s-1");
    assert_eq!(turn["message"], "Do it all");
    assert_eq!(turn["branch"], "main");
    assert_eq!(turn["mode"], "commit");
    assert!(is_time(&turn["began_at"]) && is_time(&turn["ended_at"]), "RFC 3339: {turn}");
    assert_eq!(turn["exit_code"], 0);
    assert_eq!(turn["interrupted"], false);
    assert_eq!(turn["dirty_commit"], repo.git(["rev-parse", "HEAD^"]));
    assert_eq!(turn["commits"], json!([repo.head()]));
    for (path, status, insertions, deletions) in [
        ("a.txt", "M", 1, 1),
        ("gone.txt", "D", 0, 3),
        ("new.txt", "A", 2, 0),
        ("mode.sh", "M", 0, 0),
        ("bin.dat", "M", 0, 0),
    ] {
        let file = file(turn, path);
        assert_eq!(file["status"], status, "{file}");
        assert_eq!((&file["insertions"], &file["deletions"]), (&json!(insertions), &json!(deletions)), "{file}");
    }
    assert_eq!(file(turn, "kind.txt")["status"], "T");
    let files: Vec<_> = turn["files"].as_array().into_iter().flatten().map(|file| &file["path"]).collect();
    assert!(!files.contains(&&json!("same.txt")), "what the user changed is not the turn's: {files:?}");
}

#[test]
fn log_is_newest_first_and_marks_the_undone() {
    let repo = Sandbox::new();
    for number in 1..=3 {
        repo.agent(&format!("echo {number} >>README.txt"));
    }
    repo.undo();
    let states = |turns: Vec<Value>| -> Vec<(Value, Value)> {
        turns.into_iter().map(|turn| (turn["turn"].clone(), turn["state"].clone())).collect()
    };
    let wanted = [(3, "undone"), (2, "done"), (1, "done")].map(|(turn, state)| (json!(turn), json!(state)));
    assert_eq!(states(repo.log()), wanted);
    let (_, log) = repo.json(["log", "-n", "1"]);
    assert_eq!(log["turns"].as_array().map(Vec::len), Some(1), "at most one: {log}");
    repo.oxundo(["log"]).success();
}

#[test]
fn log_of_nothing_is_empty() {
    let repo = Sandbox::new();
    let (code, log) = repo.json(["log"]);
    assert_eq!((code, &log["turns"]), (0, &json!([])));
    repo.oxundo(["log"]).success();
}

#[test]
fn undo_and_redo_have_their_documented_keys() {
    let repo = with_everything();
    let (base, head) = (repo.git(["rev-parse", "HEAD~2"]), repo.head());
    repo.write("mine.txt", "mine\n");
    for (op, from, to) in [("undo", &head, &base), ("redo", &base, &head)] {
        let (code, done) = repo.json([op]);
        assert_eq!(code, 0, "{done}");
        assert_has(&done, &["v", "op", "dry_run", "turns", "head", "files", "kept_edits", "rescue"]);
        assert_eq!(done["op"], op);
        assert_eq!(done["dry_run"], false);
        assert_eq!(done["turns"], json!([1]));
        assert_eq!(done["head"], json!({"from": from, "to": to, "branch": "main"}));
        assert!(done["kept_edits"].is_array(), "{done}");
        assert!(done["rescue"].is_string(), "{done}");
        let (made, gone) = if op == "undo" { ("gone.txt", "new.txt") } else { ("new.txt", "gone.txt") };
        assert_eq!(file(&done, "a.txt")["action"], "write", "{done}");
        assert_eq!(file(&done, made)["action"], "write", "{done}");
        assert_eq!(file(&done, gone)["action"], "delete", "{done}");
        assert_eq!(file(&done, "mode.sh")["action"], "mode", "{done}");
        let files = done["files"].as_array().map(Vec::len);
        assert_eq!(files, Some(6), "only what differs: {done}");
    }
}

#[test]
fn the_turns_of_a_walk_are_all_named() {
    let repo = Sandbox::new();
    for number in 1..=3 {
        repo.agent(&format!("echo {number} >>README.txt"));
    }
    let sorted = |value: &Value| {
        let mut turns: Vec<_> = value["turns"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
        turns.sort_unstable();
        turns
    };
    let (_, done) = repo.json(["undo", "--steps", "2"]);
    assert_eq!(sorted(&done), [2, 3]);
    let (_, done) = repo.json(["undo", "--to", "0"]);
    assert_eq!(sorted(&done), [1]);
    let (_, done) = repo.json(["redo", "--to", "3"]);
    assert_eq!(sorted(&done), [1, 2, 3]);
}

#[test]
fn status_has_its_documented_keys() {
    let repo = Sandbox::new();
    let (code, status) = repo.json(["status"]);
    assert_eq!(code, 0);
    let documented = ["v", "branch", "mode", "turn", "open_turn", "undo_depth", "redo_depth", "refusal", "not_covered"];
    assert_has(&status, &documented);
    assert_eq!(status["branch"], "main");
    assert_eq!(status["mode"], "commit");
    assert_eq!((&status["turn"], &status["open_turn"]), (&Value::Null, &Value::Null));
    assert_eq!((&status["undo_depth"], &status["redo_depth"]), (&json!(0), &json!(0)));

    for number in 1..=3 {
        repo.agent(&format!("echo {number} >>README.txt"));
    }
    repo.undo();
    let (_, status) = repo.json(["status"]);
    assert_eq!(
        (&status["turn"], &status["undo_depth"], &status["redo_depth"]),
        (&json!(2), &json!(2), &json!(1)),
        "{status}"
    );
    assert_eq!(status["refusal"], Value::Null, "nothing stands in the way: {status}");
    assert_eq!(
        status["undo"],
        without_version(repo.json(["undo", "--dry-run"]).1),
        "it says what undo would do: {status}"
    );

    repo.commit("mine.txt", "mine\n");
    let (code, status) = repo.json(["status"]);
    assert_eq!(code, 0, "status is no refusal: {status}");
    assert!(!status["refusal"].is_null(), "it says what undo would refuse: {status}");
    assert_eq!(status["undo"], Value::Null, "{status}");
    repo.git(["config", "oxundo.mode", "ghost"]);
    let (_, status) = repo.json(["status"]);
    assert_eq!(status["mode"], "ghost");
    repo.oxundo(["status"]).success();
}

#[test]
fn looking_changes_nothing() {
    let repo = with_everything();
    repo.agent("echo four >>a.txt");
    repo.undo();
    let before = repo.everything();
    for args in [
        &["log"] as &[_],
        &["log", "--all"],
        &["log", "--ops"],
        &["status"],
        &["show"],
        &["show", "1"],
        &["diff"],
        &["diff", "1"],
    ] {
        let (code, value) = repo.json(args);
        assert_eq!(code, 0, "{args:?}: {value}");
        repo.oxundo(args).success();
        repo.everything().assert_is(&before, &format!("{args:?} changes nothing"));
    }
}

#[test]
fn a_dry_run_prints_the_plan_that_is_applied() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.write("a.txt", "one\n").write("gone.txt", "g\n");
        repo.sh("git add -A; git commit -qm files; echo dirty >>README.txt");
        repo.turn(mode, "echo two >>a.txt; rm gone.txt; echo new >new.txt; chmod +x a.txt");
        repo.turn(mode, "echo three >>a.txt; mkdir d; echo x >d/x; git add -A; git commit -qm own; chmod 600 new.txt");
        repo.write("mine.txt", "mine\n");
        for args in
            [&["undo"] as &[_], &["redo"], &["undo", "--steps", "2"], &["redo", "--to", "2"], &["undo", "--to", "0"]]
        {
            let before = repo.everything();
            let (code, mut dry) = repo.json(args.iter().chain(&["--dry-run"]));
            assert_eq!((code, &dry["dry_run"]), (0, &json!(true)), "{dry}");
            let spoken = repo.oxundo(args.iter().chain(&["--dry-run"]));
            spoken.success();
            repo.everything().assert_is(&before, "a dry run changes nothing");
            let (code, mut wet) = repo.json(args);
            assert_eq!((code, &wet["dry_run"]), (0, &json!(false)), "{wet}");
            for value in [&mut dry, &mut wet] {
                let object = value.as_object_mut().expect("an object");
                object.remove("dry_run");
                object.remove("rescue");
            }
            assert_eq!(dry, wet, "{args:?}: it is the same plan ({mode:?})");
        }
    }
}

#[test]
fn errors_are_objects_with_documented_keys() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >>README.txt");
    repo.commit("mine.txt", "mine\n");
    for (args, code, word) in [
        (&["undo"] as &[_], 3, "foreign"),
        (&["redo"], 4, "nothing"),
        (&["undo", "--to", "99"], 1, "not_found"),
        (&["undo", "--steps", "0"], 2, "usage"),
        (&["show", "99"], 1, "not_found"),
        (&["diff", "99"], 1, "not_found"),
    ] {
        let (found, value) = repo.json(args);
        assert_eq!((found, &value["error"]["code"]), (code, &json!(word)), "{args:?}: {value}");
        assert_has(&value["error"], &["code", "message", "hints", "commits", "paths"]);
        assert!(value["error"]["message"].is_string(), "{value}");
        for list in ["hints", "commits", "paths"] {
            assert!(value["error"][list].is_array(), "{list}: {value}");
        }
    }
    let output = repo.oxundo(["undo", "--json"]);
    output.exits(3);
    assert!(output.out().starts_with('{'), "--json works behind the command too\n{output:?}");
}

#[test]
fn paths_are_given_as_they_are_or_as_git_quotes_them() {
    let repo = Sandbox::new();
    let odd = b"latin\xe9 \"q\".txt";
    repo.write(odd, "one\n").write("文件 name.txt", "one\n").write("tab\there", "one\n");
    repo.sh("git add -A; git commit -qm odd");
    let quoted = repo.git(["ls-files", "--", ":(glob)latin*"]);
    assert!(quoted.starts_with('"') && quoted.contains("\\351"), "git quotes it: {quoted}");
    repo.sh("for f in latin* 文件* tab*; do echo two >>\"$f\"; done; git status >/dev/null; git checkout -q .");
    repo.agent("for f in latin* 文件* tab*; do echo two >>\"$f\"; done");
    let turn = &repo.log()[0];
    file(turn, &quoted);
    file(turn, "文件 name.txt");
    file(turn, "tab\there");
    let (_, done) = repo.json(["undo"]);
    file(&done, &quoted);
    file(&done, "文件 name.txt");
    repo.write(odd, "mine\n");
    let error = repo.refuses(&["redo"], "conflict");
    assert!(error["paths"].as_array().is_some_and(|paths| paths.contains(&json!(quoted))), "{error}");
}

// What people read

#[test]
fn people_are_told_what_was_done_and_how_to_take_it_back() {
    let repo = Sandbox::new();
    repo.oxundo([
        "run",
        "-m",
        "add a cache",
        "--agent",
        "claude",
        "--",
        "sh",
        "-c",
        "echo 1 >>README.txt; echo n >n; echo o >o",
    ])
    .success();
    let (from, to) = (repo.head(), repo.git(["rev-parse", "HEAD^"]));
    let output = repo.oxundo(["undo"]);
    output.success();
    let line = format!("Undid turn 1 (claude: add a cache): 3 files, main {}..{}", &from[..7], &to[..7]);
    assert_eq!(output.out(), format!("{line}\nFiles: README.txt, n, o"));
    assert_eq!(output.err(), "hint: 'oxundo redo' brings it back");
    let output = repo.oxundo(["redo"]);
    output.success();
    output.says("turn 1 (claude: add a cache): 3 files, main ");
    repo.undo();
    let output = repo.oxundo(["-q", "redo"]);
    output.success();
    assert_eq!(output.err(), "", "-q prints no hints");
}

#[test]
fn control_characters_of_a_turn_do_not_reach_the_terminal() {
    let repo = Sandbox::new();
    repo.oxundo([
        "run",
        "-m",
        "red \u{1b}[31m bell \u{7}",
        "--",
        "sh",
        "-c",
        "printf x >\"$(printf 'esc\\033[31m')\"; echo s >\"$(printf '.env.\\033[2J')\"",
    ])
    .success();
    for args in [&["log"] as &[_], &["undo"], &["status"], &["redo"], &["show", "--stat"], &["log", "--ops"]] {
        let output = repo.oxundo(args);
        output.success();
        for bytes in [&output.stdout, &output.stderr] {
            assert!(!bytes.contains(&0x1b) && !bytes.contains(&7), "{args:?} is clean\n{}", bytes.escape_ascii());
        }
    }
}

#[test]
fn show_and_diff_speak_gits_language() {
    let repo = Sandbox::new();
    repo.write("u.txt", "untracked\n");
    repo.agent("echo two >>README.txt; echo new >new.txt; echo more >>u.txt");
    repo.agent("echo three >>README.txt");
    let output = repo.oxundo(["show", "1"]);
    for part in ["+two", "+++ b/new.txt", "+new", "+more"] {
        output.says(part);
    }
    assert!(!output.out().contains("three"), "only this turn\n{output:?}");
    let output = repo.oxundo(["show", "1:README.txt"]);
    assert_eq!(output.stdout, b"readme\ntwo\n", "a file as it was after the turn");
    let output = repo.oxundo(["show"]);
    output.says("+three");
    let output = repo.oxundo(["diff", "1", "2"]);
    output.says("+three");
    assert!(!output.out().contains("+two"), "what is between the two\n{output:?}");
    repo.write("README.txt", "mine\n");
    let output = repo.oxundo(["diff", "--", "README.txt"]);
    output.says("+mine");
    repo.oxundo(["show", "1:no-such-file"]).exits(1);
}

fn without_version(mut value: Value) -> Value {
    value.as_object_mut().expect("an object").remove("v");
    value
}

#[test]
fn no_character_that_a_terminal_takes_for_a_command_is_printed_as_it_is() {
    let repo = Sandbox::new();
    let message = "a\u{9b}31m\u{7f}\u{85}b \u{e9}";
    repo.oxundo(["run", "-m", message, "--", "sh", "-c", "echo x >>README.txt"]).success();
    for args in [&["log", "--json"][..], &["status", "--json"], &["show", "\u{9b}1", "--json"]] {
        let output = repo.oxundo(args);
        assert!(!output.out().chars().any(|char| char.is_control() && char != '\n'), "{output:?}");
    }
    assert_eq!(repo.log()[0]["message"], message, "it says the same");
}

#[test]
fn where_stdout_takes_no_answer_it_is_said_that_all_is_done() {
    let repo = Sandbox::new();
    let start = repo.state();
    repo.agent("echo one >>README.txt");
    let before = repo.state();
    repo.agent("echo two >>README.txt");
    for option in ["", "--json"] {
        let output = crate::sandbox::Output::of(&mut repo.shell(&format!("oxundo {option} undo >/dev/full")));
        output.exits(1);
        output.warns("error: the answer cannot be written: No space left on device");
        output.warns("hint: it is done all the same: run 'oxundo log");
        if option.is_empty() {
            repo.state().assert_is(&before, "one turn is undone");
        }
    }
    repo.state().assert_is(&start, "and the other one");
    for look in
        ["log", "gc --dry-run", "gc --stores", "checkpoint --list", "redo --plan", "-h", "--version", "help undo"]
    {
        let output = crate::sandbox::Output::of(&mut repo.shell(&format!("oxundo {look} >/dev/full")));
        output.exits(1);
        output.warns("error: the answer cannot be written: No space left on device");
        output.warns("hint: give another place for its output");
    }
    for look in ["diff 1", "diff --stat 1"] {
        let output = crate::sandbox::Output::of(&mut repo.shell(&format!("oxundo {look} >/dev/full")));
        output.exits(1);
        output.warns("error: git has not shown all of it, and says why above");
        output.warns(&format!("or give another place for the output, then run 'oxundo {look}' again"));
    }
    for done in ["gc", "describe 1 -m one", "keep 1"] {
        let output = crate::sandbox::Output::of(&mut repo.shell(&format!("oxundo {done} >/dev/full")));
        output.warns("hint: it is done all the same");
    }
}
