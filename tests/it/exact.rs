//! `restore --exact`: any recorded state as a whole, by its own states and real git's; and the names of operations.

use crate::sandbox::{Mode, Sandbox, State, check_all, in_both_modes};
use serde_json::Value;

/// Goes to a state, back and forth again.
#[track_caller]
fn goes(repo: &Sandbox, words: &str, wanted: &State) {
    let before = repo.state();
    let unchanged = repo.everything();
    repo.oxundo(["restore", "--exact", words, "--dry-run"]).success();
    repo.everything().assert_is(&unchanged, "a look changes nothing");
    repo.oxundo(["restore", "--exact", words]).success();
    repo.state().assert_is(wanted, &format!("restore --exact {words}"));
    repo.undo();
    repo.state().assert_is(&before, &format!("undo of restore --exact {words}"));
    repo.redo();
    repo.state().assert_is(wanted, &format!("redo of restore --exact {words}"));
    repo.undo();
}

#[test]
fn what_a_turn_moved_from_where_nothing_captures_it_stays_and_is_named() {
    let stories = [
        ("mv o.npy o.txt", "o.txt", ":"),
        ("mv o.npy o.txt; echo AGENT >>o.txt", "o.txt", ":"),
        ("mv data ds", "ds/o.csv", ":"),
        ("mv data/o.csv .", "o.csv", "echo MORE >>o.csv"),
        ("mv o.npy README.txt", "README.txt", ":"),
        ("mv o.npy o.txt", "p.txt", "oxundo run --ghost -- mv o.txt p.txt"),
    ];
    for (mode, (moves, now, edits)) in Mode::tried().into_iter().flat_map(|mode| stories.map(|story| (mode, story))) {
        for words in ["1:before", "mine"] {
            let name = format!("{mode:?}: {moves}; {edits}; {words}");
            let repo = Sandbox::new();
            repo.commit(".gitignore", "*.npy\ndata/\n");
            repo.sh("mkdir data; echo USER1 >data/o.csv; echo USER2 >o.npy");
            repo.oxundo(["checkpoint", "-m", "mine"]).success();
            repo.turn(mode, &format!("{moves}; echo AGENT >its.txt"));
            repo.sh(edits);
            let (before, there) = (repo.state(), repo.read(now));
            let done = repo.oxundo(["restore", "--exact", words]);
            done.success();
            done.warns(&format!("'{now}' stays as it is: that state does not say what was there"));
            repo.assert_absent("its.txt", &name);
            assert_eq!(repo.read(now), there, "{name}");
            repo.undo();
            repo.state().assert_is(&before, &name);
        }
    }
}

#[test]
fn each_recorded_state_is_gone_to_as_a_whole() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.write("kept", "kept\n").write("gone", "gone\n").sh("git add -A; git commit -qm files");
        repo.write("README.txt", "mine\n").sh("git add README.txt");
        repo.write("kept", "unstaged\n").write("new.txt", "new\n").sh("mkdir empty; chmod 600 new.txt");
        let mine = repo.state();
        repo.oxundo(["checkpoint", "-m", "before it"]).success();
        repo.turn(mode, "echo one >one.txt; rm gone; rmdir empty; chmod +x kept; mkdir void");
        let one = repo.state();
        repo.turn(mode, "echo two >one.txt; mkdir d; ln -s ../kept d/link; git rm -q --cached kept");
        let two = repo.state();
        repo.write("later.txt", "later\n").sh("echo edited >>README.txt; git add later.txt; mkdir later");
        let states = [("1", &one), ("1:before", &mine), ("2", &two), ("before it", &mine), ("0", &mine)];
        // What is committed makes no difference to names.
        let many = if mode == Mode::Commit { states.len() } else { 2 };
        for (words, wanted) in &states[..many] {
            goes(&repo, words, wanted);
        }
        let edited = repo.state();
        repo.oxundo(["undo", "--steps", "2"]).success();
        goes(&repo, "@rescue", &edited);
        let error = repo.refuses(&["undo", "--to", "before it"], "nothing");
        assert!(error["hints"].to_string().contains("oxundo restore --exact 'before it'"), "{error}");
        repo.assert_sound();
    });
}

#[test]
fn a_state_of_a_branch_that_was_renamed_is_gone_to_under_its_new_name() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    let one = repo.state();
    repo.agent("echo two >two.txt");
    repo.git(["branch", "-m", "trunk"]);
    let two = repo.state();
    repo.oxundo(["restore", "--exact", "1"]).success();
    let here = |state: &State| state.clone().only(|fact| !fact.contains("branch.head") && !fact.starts_with("ref "));
    here(&repo.state()).assert_is(&here(&one), "all but the branch's name");
    assert_eq!(repo.git(["branch", "--format=%(refname:short)"]).trim(), "trunk");
    repo.undo();
    repo.state().assert_is(&two, "and back");
}

#[test]
fn what_was_there_last_is_a_rescue_whatever_replaced_it() {
    for command in
        ["undo --revert", "undo --only 3", "undo -- README.txt", "restore --exact 1", "restore 1", "undo --steps 2"]
    {
        let repo = Sandbox::new();
        for turn in 1..=3 {
            repo.agent(&format!("echo {turn} >>b.txt; echo {turn} >{turn}.txt"));
        }
        repo.undo();
        repo.redo();
        repo.agent("echo four >>README.txt");
        let before = repo.state();
        repo.oxundo(command.split(' ')).success();
        goes(&repo, "@rescue", &before);
    }
}

#[test]
fn operations_have_names_that_all_forms_take() {
    let repo = Sandbox::new();
    let base = repo.state();
    repo.agent("echo one >one.txt");
    let one = repo.state();
    repo.oxundo(["checkpoint", "-m", "here"]).success();
    repo.write("one.txt", "mine\n");
    let edited = repo.state();
    repo.oxundo(["undo", "--edits=overwrite"]).success();
    let (_, log) = repo.json(["log", "--ops"]);
    let told = |log: &Value| -> Vec<String> {
        let operations = log["operations"].as_array().expect("operations").iter();
        operations.map(|op| format!("{} {}", op["state"], op["message"]).replace('"', "")).collect()
    };
    let wanted = ["op:4 undo 1 (sh)", "op:3 checkpoint here", "op:2 end 1 (sh)", "op:1 begin 1 (sh)"];
    assert_eq!(told(&log), wanted);
    repo.oxundo(["log", "--ops"]).says("op:4  ");
    let idle = repo.copy();
    idle.oxundo(["describe", "1", "-m", "it"]).success();
    idle.oxundo(["restore", "--exact", "op:5"]).exits(1);
    idle.agent("true");
    idle.oxundo(["checkpoint", "-m", "later"]).success();
    let (_, log) = idle.json(["log", "--ops"]);
    let dropped = ["op:6 checkpoint later", "null drop 2, which changed nothing", "null begin 2 (sh)"];
    let kept = ["null describe 1 (sh: it)", "op:4 undo 1 (sh)"];
    assert_eq!(told(&log)[..5], [&dropped[..], &kept].concat(), "each number is the name of one");
    for (words, wanted) in [("op:4", &edited), ("op:3", &one), ("op:2", &one)] {
        goes(&repo.copy(), words, wanted);
    }
    repo.state().assert_is(&base, "it is undone");
    repo.refuses(&["restore", "--exact", "op:1"], "nothing");
    repo.sh("git reflog expire --expire=now --all");
    repo.oxundo(["diff", "op:2"]).warns("error: there is no operation 'op:2' here that kept a state");
    repo.agent("echo two >two.txt");
    let (_, log) = repo.json(["log", "--ops"]);
    assert_eq!(told(&log), ["op:6 end 2 (sh)", "op:5 begin 2 (sh)"], "the numbers stay when old ones expire");
    repo.oxundo(["show", "op:6:two.txt"]).says("two");
    repo.oxundo(["show", "op:6"]).says("two.txt");
    repo.oxundo(["show", "@rescue"]).says("one.txt");
    repo.oxundo(["show", "rescue:1:one.txt"]).says("mine");
    repo.oxundo(["diff", "op:5", "op:6"]).says("+two");
    repo.oxundo(["restore", "op:5"]).exits(4);
    repo.oxundo(["branch", "then", "op:5"]).success();
    repo.assert_absent("two.txt", "the branch starts there");
    repo.undo();
    repo.oxundo(["branch", "rescued", "rescue:1"]).success();
    repo.assert_file("one.txt", "mine\n", "and with what was rescued");
    repo.oxundo(["checkpoint", "-m", "op:7"]).exits(2);
}

#[test]
fn commits_that_may_not_leave_keep_a_state_from_being_gone_to() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    let one = repo.state();
    repo.agent("echo two >two.txt");
    let two = repo.copy();
    repo.commit("own.txt", "own\n");
    let before = repo.everything();
    let error = repo.refuses(&["restore", "--exact", "1"], "foreign");
    assert!(error["hints"].to_string().contains("run 'oxundo undo --revert --to 1' to take out"), "{error}");
    assert!(
        !error["hints"].to_string().contains("oxundo restore"),
        "there is no file of then that is not there: {error}"
    );
    let reverted = repo.copy();
    reverted.oxundo(["undo", "--revert", "--to", "1"]).success();
    assert_eq!(["one.txt", "two.txt", "own.txt"].map(|name| reverted.exists(name)), [true, false, true]);
    reverted.write("one.txt", "mine\n").sh("git commit -qam mine");
    let error = reverted.refuses(&["restore", "--exact", "1"], "foreign");
    assert!(error["hints"].to_string().contains("run 'oxundo restore 1' to bring the files back alone"), "{error}");
    repo.everything().assert_is(&before, "nothing is changed");
    two.remote("up").sh("git push -q up main");
    two.refuses(&["restore", "--exact", "1"], "published");
    let forward = repo.copy();
    forward.sh("git reset -q --hard HEAD~2");
    repo.sh("git reset -q --hard HEAD~1");
    goes(&repo, "1", &one);
    // Where a turn ended may lie ahead as well.
    forward.oxundo(["restore", "--exact", "2"]).success();
    forward.assert_file("two.txt", "two\n", "it goes forth");

    let repo = Sandbox::new();
    repo.agent("git switch -qc other; echo one >one.txt");
    let other = repo.state();
    repo.git(["switch", "-q", "main"]);
    let error = repo.refuses(&["restore", "--exact", "1"], "branch");
    assert_eq!(error["hints"][0], "run 'git switch other' first");
    repo.git(["switch", "-q", "other"]);
    repo.write("one.txt", "mine\n");
    goes(&repo, "1", &other);
}

#[test]
fn a_merge_that_was_gone_to_is_left_again_by_undo() {
    let repo = Sandbox::new();
    repo.sh("git switch -qc up; echo u >u; git add u; git commit -qm u; git switch -q main");
    repo.agent("echo one >one; git add one; git commit -qm one; git merge -q --no-edit up");
    repo.sh("git reset -q --hard HEAD~2");
    for words in ["restore --exact 1", "branch there 1"] {
        let before = repo.state();
        repo.oxundo(words.split(' ')).success();
        let after = repo.state();
        repo.undo();
        repo.state().assert_is(&before, words);
        repo.redo();
        repo.state().assert_is(&after, words);
        repo.undo();
    }
}

#[test]
fn what_no_checkpoint_holds_stays_where_it_is() {
    let repo = Sandbox::new();
    repo.write(".gitignore", "*.log\n").write("old.log", "log\n").sh("git add .gitignore; git commit -qm ignore");
    repo.turn(Mode::Ghost, "echo one >one.txt");
    repo.git(["config", "oxundo.maxFileSize", "100"]);
    repo.write("large", "x".repeat(200)).write("new.log", "log\n").write("small", "small\n");
    repo.sh("echo '*.tmp' >.gitignore");
    let told = repo.oxundo(["restore", "--exact", "1"]);
    for path in ["large", "new.log"] {
        told.warns(&format!("'{path}' stays as it is: that state does not say what was there"));
    }
    repo.assert_absent("small", "it is new, and goes");
    repo.assert_file(".gitignore", "*.log\n", "it is back");
    repo.assert_file("old.log", "log\n", "it was ignored then: nobody knows whether it was there");
    repo.assert_file("new.log", "log\n", "likewise");
    repo.assert_file("large", "x".repeat(200), "no rescue holds it");
    repo.undo();
    repo.assert_file("small", "small\n", "it is back");
    repo.assert_file(".gitignore", "*.tmp\n", "so is this");
}

#[test]
fn a_branch_that_was_there_beside_the_one_that_is_gone_is_not_moved_to_it() {
    // A turn made the branch that undo took away; a turn was made on a branch that the user has deleted.
    let cases = [
        ("git switch -qc made; echo two >two; git add two; git commit -qm two", "undo", "@rescue"),
        ("git switch -qc made; echo two >two; git add two; git commit -qm two", "undo", "2"),
        ("echo two >two", "git switch -q main; git branch -qD feature", "2"),
    ];
    check_all(cases.map(|case| (format!("{case:?}"), case)), |&(script, then, words)| {
        let repo = Sandbox::new();
        repo.agent("echo one >one");
        if then != "undo" {
            repo.sh("git switch -qc feature");
        }
        repo.agent(script);
        let there = repo.state();
        if then == "undo" {
            repo.undo();
        } else {
            repo.sh(then);
        }
        let main = repo.git(["rev-parse", "main"]);
        repo.state();
        let error = repo.refuses(&["restore", "--exact", words], "branch");
        assert_eq!(repo.git(["rev-parse", "main"]), main);
        let hint = error["hints"][0].as_str().and_then(|hint| hint.split('\'').nth(1)).expect("a line to type");
        repo.sh(hint);
        if then == "undo" {
            repo.oxundo(["restore", "--exact", words]).exits(4);
            repo.state().assert_is(&there, "the line leads there, and all is as it was then");
        }
    });
}

#[test]
fn what_a_turn_took_off_the_branch_is_no_obstacle_to_its_state() {
    let scripts = [
        "echo one >one.txt; git add one.txt; git commit -q --amend --no-edit",
        "git reset -q --hard HEAD~1; echo one >one.txt",
        "git commit -q --allow-empty -m empty; git rebase -q --keep-empty --onto HEAD~2 HEAD~1; echo one >one.txt",
    ];
    for script in scripts {
        for more in [&[][..], &["echo two >two.txt; git add -A; git commit -q --amend -m all"], &["echo two >two.txt"]]
        {
            let repo = Sandbox::new();
            repo.commit("own.txt", "own\n");
            repo.agent(script);
            for more in more {
                repo.agent(more);
            }
            let (end, count) = (repo.state(), (1 + more.len()).to_string());
            repo.oxundo(["undo", "--to", "0"]).success();
            for words in [count.as_str(), "@rescue"] {
                goes(&repo, words, &end);
            }
            // What is not the turns' is one all the same.
            let mine = repo.copy();
            mine.commit("mine.txt", "mine\n");
            let everything = mine.everything();
            mine.refuses(&["restore", "--exact", &count], "foreign");
            mine.everything().assert_is(&everything, "nothing is changed");
            repo.oxundo(["redo", "--to", &count]).success();
            repo.state().assert_is(&end, "redo makes the same move");
        }
    }
}

#[test]
fn a_commit_of_which_only_the_message_was_changed_is_the_turns() {
    let below =
        "GIT_SEQUENCE_EDITOR=\"sed -i '1s/^pick/reword/'\" GIT_EDITOR='sed -i 1s/^/better/' git rebase -q -i HEAD~2";
    for (line, second) in [("git commit -q --amend -m better", "two"), (below, "bettertwo")] {
        let repo = Sandbox::new();
        repo.agent("echo one >one.txt");
        repo.oxundo(["run", "-q", "-m", "two", "--", "sh", "-c", "echo two >two.txt"]).success();
        repo.oxundo(["checkpoint", "-q", "-m", "here"]).success();
        repo.oxundo(["run", "-q", "-m", "three", "--", "sh", "-c", "echo three >three.txt"]).success();
        repo.sh(line);
        let worded = repo.state();
        for words in ["2", "3:before", "here", "op:4"] {
            repo.oxundo(["restore", "--exact", words]).success();
            repo.assert_absent("three.txt", words);
            assert_eq!(repo.git(["log", "-1", "--format=%s"]), second, "{words}: with the words of now");
            repo.undo();
            repo.state().assert_is(&worded, "and back");
        }
        repo.oxundo(["restore", "--exact", "1"]).success();
        repo.assert_absent("two.txt", "below it, too");
        repo.undo();
        repo.state().assert_is(&worded, "and back");
        // More than the message is not the turn's alone.
        repo.write("three.txt", "mine\n").sh("git commit -qa --amend -m more");
        repo.refuses(&["restore", "--exact", "2"], "foreign");
    }
}

#[test]
fn a_commit_of_the_users_that_a_later_turn_amended_is_theirs_all_the_same() {
    for (mode, state) in
        [(Mode::Commit, "1:before"), (Mode::Commit, "1"), (Mode::Ghost, "1:before"), (Mode::Ghost, "1")]
    {
        for again in [false, true] {
            let repo = Sandbox::new();
            repo.turn(mode, "echo 1 >one; git add one; git commit -qm own");
            repo.commit("mine.txt", "mine\n");
            repo.turn(mode, "echo 2 >two; git add two; git commit -q --amend --no-edit");
            if again {
                repo.turn(mode, "echo 3 >three; git add three; git commit -q --amend --no-edit");
            }
            let before = repo.everything();
            repo.refuses(&["restore", "--exact", state], "foreign");
            repo.everything().assert_is(&before, "nothing has changed");
            let end = repo.state();
            // Where it was before the turn amended it, it is.
            repo.oxundo(["restore", "--exact", "2:before"]).success();
            repo.assert_file("mine.txt", "mine\n", "the user's commit stays");
            repo.undo();
            repo.state().assert_is(&end, "and back");
        }
    }
}

#[test]
fn a_branch_at_a_checkpoint_begins_as_one_at_the_turn_that_ended_there() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.turn(mode, "echo one >a");
        repo.oxundo(["checkpoint", "there"]).success();
        repo.turn(mode, "echo two >a; echo b >b");
        repo.write("mine", "mine\n");
        let at_turn = repo.copy();
        at_turn.oxundo(["branch", "new", "1"]).success();
        repo.oxundo(["branch", "new", "there"]).success();
        repo.files().assert_is(&at_turn.files(), "what the later turn did is no edit of the user's");
        repo.assert_file("mine", "mine\n", "and that is");
        repo.assert_absent("b", "it is the later turn's");
        repo.undo();
        repo.assert_file("a", "two\n", "it is taken back as ever");
    });
}

#[test]
fn a_branch_at_a_state_keeps_an_edit_that_another_one_took_away() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.sh("seq 30 >a; git add a; git commit -qm a");
        repo.turn(mode, "sed -i '3s/.*/three/' a");
        repo.turn(mode, "echo seven >n7");
        repo.sh("sed -i '25s/.*/mine/' a");
        repo.oxundo(["branch", "one", "1:before", "--edits=overwrite"]).success();
        repo.oxundo(["undo"]).success();
        repo.oxundo(["branch", "other", "op:1"]).success();
        assert!(String::from_utf8_lossy(&repo.read("a")).contains("mine"), "nobody said that it may go");
    });
}
