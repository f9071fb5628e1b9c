//! Turns by the name of their worktree, `NAME:17`: what can be looked at and brought here, what can be said of them, and where
//! what is to be done to them is done.

use crate::sandbox::Sandbox;
use crate::steps::{hook, shell};
use serde_json::{Value, json};

/// A worktree with two turns, the first of two steps.
fn tree(repo: &Sandbox) -> Sandbox {
    let linked = repo.linked("tree");
    hook(&linked, "s", "UserPromptSubmit", &json!({}));
    shell(&linked, 1, "echo first >one.txt");
    shell(&linked, 2, "echo second >one.txt");
    hook(&linked, "s", "Stop", &json!({}));
    linked.agent("echo two >two.txt");
    linked
}

fn messages(repo: &Sandbox) -> Vec<Value> {
    let (_, log) = repo.json(["log", "--all"]);
    let turns = log["turns"].as_array().expect("turns").iter();
    turns.map(|turn| json!([turn["worktree"], turn["turn"], turn["message"], turn["kept"]])).collect()
}

#[test]
fn a_turn_of_a_removed_worktree_is_described_and_kept_by_its_name() {
    let repo = Sandbox::new();
    tree(&repo);
    repo.git(["worktree", "remove", "--force", "../tree"]);
    let before = repo.state();
    assert_eq!(
        repo.oxundo(["describe", "tree:1", "-m", "another way"]).out(),
        "Described turn tree:1 (claude: another way)"
    );
    repo.oxundo(["keep", "tree:1"]).says("Kept turn tree:1");
    assert_eq!(messages(&repo), [json!(["tree", 2, "sh: turn 2", false]), json!(["tree", 1, "another way", true])]);
    let reflog = repo.git(["reflog", "show", "--format=%gs", "refs/oxundo/worktrees/tree/timeline"]);
    assert!(reflog.starts_with("oxundo: keep 1 (claude: another way)\noxundo: describe 1"), "{reflog}");
    for (line, code) in [
        (&["describe", "tree:9", "-m", "x"][..], "not_found"),
        (&["keep", "tree:1.1"], "branch"),
        (&["keep", "nowhere:1"], "not_found"),
    ] {
        let all = repo.everything();
        let (_, answer) = repo.json(line);
        assert_eq!(answer["error"]["code"], code, "{line:?}: {answer}");
        repo.everything().assert_is(&all, "nothing is changed");
    }
    repo.oxundo(["keep", "--off", "tree:1"]).success();
    assert_eq!(messages(&repo)[1], json!(["tree", 1, "another way", false]));
    repo.state().assert_is(&before, "what is here is as it was");
    repo.prune();
    assert_eq!(repo.oxundo(["show", "tree:1:one.txt"]).out(), "second");
    repo.assert_sound();
}

#[test]
fn what_is_to_be_done_to_a_turn_of_another_worktree_is_refused_and_says_where() {
    let repo = Sandbox::new();
    tree(&repo);
    repo.agent("echo mine >mine.txt");
    let lines: [&[&str]; 9] = [
        &["undo", "--to", "tree:1"],
        &["undo", "--to", "tree:1.1"],
        &["undo", "--only", "tree:1"],
        &["undo", "--only", "tree:1.2"],
        &["undo", "--only", "tree:1", "--", "one.txt"],
        &["redo", "--to", "tree:1"],
        &["squash", "tree:1.."],
        &["keep", "tree:1.1"],
        &["undo", "--revert", "--to", "tree:1"],
    ];
    for removed in [false, true] {
        if removed {
            repo.git(["worktree", "remove", "--force", "../tree"]);
        }
        for line in lines {
            let error = repo.refuses(line, "branch");
            let (message, hints) = (error["message"].as_str().expect("why"), error["hints"].to_string());
            assert!(message.contains("is a turn of the worktree 'tree'"), "{line:?}: {message}");
            assert_eq!(message.contains("removed"), removed, "{line:?}: {message}");
            assert_eq!(hints.contains("'cd "), !removed, "{line:?}: {hints}");
            assert!(hints.contains("oxundo restore tree:1"), "{line:?}: {hints}");
        }
    }
    // What can be looked at, and brought here.
    repo.oxundo(["show", "tree:1.2"]).says("+second");
    assert_eq!(repo.json(["diff", "tree:1.1", "tree:1.2"]).1["files"][0]["path"], "one.txt");
    assert_eq!(repo.json(["diff", "tree:1..tree:2"]).1["files"][0]["path"], "two.txt");
    repo.oxundo(["restore", "tree:1.1", "--", "one.txt"]).success();
    repo.assert_file("one.txt", "first\n", "it came here");
    repo.assert_absent("two.txt", "and nothing else");
}

#[test]
fn a_worktrees_own_name_before_a_turn_means_its_own() {
    let repo = Sandbox::new();
    let linked = tree(&repo);
    let shown = |words: &str| linked.oxundo(["show", words]).out();
    for (words, same) in
        [("tree:1", "1"), ("tree:1.2", "1.2"), ("tree:1:one.txt", "1:one.txt"), ("tree:1.1:one.txt", "1.1:one.txt")]
    {
        assert_eq!(shown(words), shown(same), "{words}");
    }
    let before = linked.state();
    linked.oxundo(["undo", "--only", "tree:1.2"]).success();
    linked.assert_file("one.txt", "first\n", "the step is taken out");
    linked.redo();
    linked.oxundo(["undo", "--to", "tree:1"]).success();
    linked.assert_absent("two.txt", "undone");
    linked.oxundo(["redo", "--to", "tree:2"]).success();
    linked.state().assert_is(&before, "and redone");
    linked.oxundo(["restore", "tree:1.1", "--", "one.txt"]).success();
    linked.oxundo(["keep", "tree:1"]).success();
    assert_eq!(linked.json(["show", "1"]).1["kept"], true);
    // The main one is called so too, and a path is no turn.
    repo.agent("echo x >x; git add x; git commit -qm x");
    repo.oxundo(["undo", "--only", "main:1"]).success();
    repo.assert_absent("x", "it is taken out");
    repo.redo();
    assert_eq!(linked.json(["diff", "main:1:before", "main:1"]).1["files"][0]["path"], "x");
    assert_eq!(repo.oxundo(["show", "main:x"]).out(), "x", "a file of the turn of the branch's commit");
}

#[test]
fn a_turn_of_another_worktree_is_shown_as_the_log_has_it() {
    for removed in [false, true] {
        let repo = Sandbox::new();
        tree(&repo);
        if removed {
            repo.git(["worktree", "remove", "--force", "../tree"]);
        }
        let log = repo.json(["log", "--all"]).1;
        let shown = |words: &str| repo.json(["show", words]).1;
        let one = shown("tree:1");
        let is_same = |shown: &Value, line: &Value| {
            ["worktree", "worktree_removed", "turn"].iter().all(|key| shown[key] == line[key])
        };
        assert!(is_same(&one, &log["turns"][1]), "{one}\n{log}");
        let range = shown("tree:1..2");
        assert!(is_same(&range["turns"][0], &log["turns"][0]), "{range}\n{log}");
        let kept = repo.json(["keep", "tree:1..2"]).1.to_string();
        assert!(kept.contains("one turn is wanted"), "{kept}");
        // 0 is what was there before the first, as in the worktree itself.
        let diff = repo.oxundo(["diff", "tree:0", "tree:2"]).out();
        assert!(diff.contains("+second") && diff.contains("+two"), "{diff}");
    }
}

#[test]
fn a_path_behind_a_state_is_what_comes_back_of_it() {
    let mut repo = Sandbox::new();
    let linked = repo.linked("tree");
    hook(&linked, "s", "UserPromptSubmit", &json!({}));
    shell(&linked, 1, "mkdir d; echo first >one.txt; echo deep >d/deep.txt");
    shell(&linked, 2, "echo second >one.txt");
    hook(&linked, "s", "Stop", &json!({}));
    repo.git(["worktree", "remove", "--force", "../tree"]);
    repo.agent("echo a >'a*b'; echo other >axb; echo mine >mine.txt");
    repo.agent("rm 'a*b' axb mine.txt");
    let before = repo.state();
    for (words, path, content) in [
        ("tree:1:one.txt", "one.txt", "second\n"),
        ("tree:1.1:one.txt", "one.txt", "first\n"),
        ("tree:1.2:before:one.txt", "one.txt", "first\n"),
        ("tree:1:d", "d/deep.txt", "deep\n"),
        ("1:mine.txt", "mine.txt", "mine\n"),
        ("2:before:mine.txt", "mine.txt", "mine\n"),
        ("main:1:mine.txt", "mine.txt", "mine\n"),
        ("1:a*b", "a*b", "a\n"),
    ] {
        repo.oxundo(["restore", words]).says("Restored");
        repo.assert_file(path, content, words);
        repo.assert_absent("axb", "a path is meant literally, and nothing else comes back");
        repo.undo();
        repo.state().assert_is(&before, words);
    }
    for words in ["tree:1:nope", "tree:9:one.txt", "1:", "1:before:nope", ":one.txt"] {
        assert_eq!(repo.json(["restore", words]).1["error"]["code"], "not_found", "{words}");
        repo.state().assert_is(&before, words);
    }
    repo.sh("mkdir d");
    repo.start_in("d");
    repo.oxundo(["restore", "tree:1:deep.txt"]).success();
    repo.assert_file("d/deep.txt", "deep\n", "seen from where one is");
}

/// A worktree of the same name comes back, and has a turn, in the instant in which something is said of one of the old ones.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn what_a_worktree_that_comes_back_records_is_not_lost() {
    let repo = Sandbox::new();
    let name = "refs/oxundo/worktrees/tree/timeline";
    // The agent is to be no child of a thread that waits for all that it traces.
    let linked = std::thread::scope(|scope| scope.spawn(|| tree(&repo)).join()).expect("two turns");
    let two = repo.git(["rev-parse", name]);
    linked.agent("echo three >three.txt");
    repo.git(["update-ref", "refs/kept/three", name]);
    repo.git(["worktree", "remove", "--force", "../tree"]);
    repo.git(["update-ref", "--create-reflog", name, two.trim()]);
    // What oxundo would do there, in one step: one that is stopped holds another up.
    let comes_back = || {
        repo.git(["worktree", "add", "-q", "../tree", "tree"]);
        repo.git(["update-ref", name, "refs/kept/three"]);
    };
    let mut command = repo.launched_command(crate::tracer::LAUNCH, &["keep", "tree:1"]);
    let lock = format!("{name}.lock");
    let Ok(trace) = crate::tracer::interrupt_at_opening(&mut command, &lock, 0, &comes_back) else {
        return crate::sandbox::announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
    };
    assert!(trace.stderr.starts_with("error: ") && trace.code != Some(0), "{:?}: {}", trace.code, trace.stderr);
    let numbers: Vec<_> = linked.log().iter().map(|turn| json!([turn["turn"], turn["kept"]])).collect();
    assert_eq!(numbers, [json!([3, false]), json!([2, false]), json!([1, false])]);
    linked.oxundo(["keep", "1"]).success();
    assert_eq!(linked.json(["show", "1"]).1["kept"], true);
    repo.assert_sound();
}
