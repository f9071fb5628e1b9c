//! What the user's git has rewritten, collected, renamed or deleted between the turns: nothing that a turn needs is lost, what
//! the user did stays done, and where a turn begins or ends is known all the same.

use crate::follow::as_of_the_first_release;
use crate::sandbox::{Mode, Sandbox, State, check_all, in_both_modes};

#[test]
fn what_was_rewritten_and_collected_before_the_next_command_is_there_all_the_same() {
    let ways = [
        ("amended", "git commit -q --amend -m better", "undo"),
        ("amended, and taken out", "git commit -q --amend -m better", "undo --only 1"),
        ("amended with more", "echo mine >mine.txt; git add -A; git commit -q --amend -m better", "undo --revert"),
        ("taken off with its dirty commit", "git reset -q --hard HEAD~2", "redo"),
        ("on a branch of its own", "git reset -q --hard HEAD~2", "branch back 1"),
    ];
    check_all(ways.map(|(name, git, command)| (name.to_owned(), (git, command))), |&(git, command)| {
        let repo = Sandbox::new();
        repo.write("README.txt", "mine\n");
        repo.agent("echo one >one.txt");
        repo.sh(git);
        repo.prune();
        repo.oxundo(command.split(' ')).success();
        assert_eq!(repo.exists("one.txt"), !command.starts_with("undo"), "'{command}' works");
        let after = repo.state();
        let back = if command.starts_with("undo") { "redo" } else { "undo" };
        repo.oxundo([back]).success();
        if command == "undo" || command == "redo" {
            repo.oxundo([command]).success();
            repo.state().assert_is(&after, "there and back");
        }
        repo.assert_sound();
    });
}

/// Three turns, each of which makes a file, and what the user has made of their commits.
fn three_turns_then(line: &str) -> Sandbox {
    let repo = Sandbox::new();
    for number in 1..=3 {
        repo.agent(&format!("echo {number} >n{number}"));
    }
    repo.sh(line);
    repo
}

/// Each turn's number, and where it stands.
fn standing(repo: &Sandbox, all: bool) -> Vec<(u64, String)> {
    let args = ["log", "--all"];
    let log = repo.json(&args[..=usize::from(all)]).1;
    let turns = log["turns"].as_array().expect("turns").iter();
    turns
        .map(|turn| (turn["turn"].as_u64().expect("a number"), turn["state"].as_str().expect("a word").into()))
        .collect()
}

const DROP_THE_SECOND: &str = "GIT_SEQUENCE_EDITOR='sed -i 2d' git rebase -q -i HEAD~3";

#[test]
fn a_turn_that_was_dropped_below_others_is_left_and_git_brings_it_back() {
    let picked =
        "git switch -q -c other HEAD~3; git commit -q --allow-empty -m own; git cherry-pick main~2 main >/dev/null";
    check_all([("rebased", DROP_THE_SECOND), ("picked", picked)].map(|(name, line)| (name.to_owned(), line)), |line| {
        let repo = three_turns_then(line);
        let left = [(3, "done".to_owned()), (2, "left".to_owned()), (1, "done".to_owned())];
        for all in [false, true] {
            assert_eq!(standing(&repo, all), left);
        }
        let everything = repo.everything();
        for line in
            [&["redo", "--to", "2"][..], &["undo", "--to", "2"], &["undo", "--only", "2"], &["undo", "--only", "2..3"]]
        {
            let refused = repo.oxundo(line);
            refused.exits(3);
            refused.warns("turn 2 is not done any more");
        }
        repo.everything().assert_is(&everything, "refusals change nothing");
        // A turn that is made on top does not hide it.
        repo.agent("echo 4 >n4");
        assert_eq!(standing(&repo, false)[1..], left);
        let refused = repo.oxundo(["redo", "--to", "2"]).err();
        let line =
            refused.split("run '").nth(1).and_then(|rest| rest.split('\'').next()).expect("a line to type").to_owned();
        repo.sh(&format!("{line} >/dev/null"));
        let done: Vec<_> = (1..=4).rev().map(|turn| (turn, "done".to_owned())).collect();
        assert_eq!(standing(&repo, false), done, "it is there again, on top");
        repo.assert_sound();
    });
}

#[test]
fn turns_that_were_made_in_one_second_are_told_apart() {
    let repo = Sandbox::new();
    repo.write("all.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n").sh("git add -A; git commit -qm files");
    for number in 1..=3 {
        let at = "2026-01-01T00:00:00Z";
        let run = repo
            .oxundo_command([
                "run",
                "-m",
                &format!("t{number}"),
                "--",
                "sh",
                "-c",
                &format!("sed -i {}s/$/x/ all.txt", 3 * number - 1),
            ])
            .env("GIT_AUTHOR_DATE", at)
            .env("GIT_COMMITTER_DATE", at)
            .status();
        assert!(run.is_ok_and(|status| status.success()));
    }
    repo.sh(DROP_THE_SECOND);
    assert_eq!(standing(&repo, false), [(3, "done".to_owned()), (2, "left".to_owned()), (1, "done".to_owned())]);
}

#[test]
fn turns_that_the_user_made_one_commit_of_are_done_and_each_is_taken_out() {
    let ways = [
        ("reset, and committed", "git reset -q --soft HEAD~2; git commit -qm both"),
        ("the last with the one below", "GIT_SEQUENCE_EDITOR='sed -i 3s/pick/fixup/' git rebase -q -i HEAD~3"),
        ("the second with the first", "GIT_SEQUENCE_EDITOR='sed -i 2s/pick/fixup/' git rebase -q -i HEAD~3"),
        ("all", "GIT_EDITOR=true GIT_SEQUENCE_EDITOR='sed -i 2,3s/pick/squash/' git rebase -q -i HEAD~3"),
        (
            "merged as one, the branch gone",
            "git switch -qc at HEAD~3; git commit -q --allow-empty -m own; git merge -q --squash main; git commit -qm all; git branch -qD main",
        ),
    ];
    check_all(ways.map(|(name, line)| (name.to_owned(), line)), |line| {
        let repo = three_turns_then(line);
        let done: Vec<_> = (1..=3).rev().map(|turn| (turn, "done".to_owned())).collect();
        assert_eq!(standing(&repo, false), done);
        let before = repo.state();
        for (words, gone) in
            [(&["undo", "--revert"][..], "n3"), (&["undo", "--only", "2"], "n2"), (&["undo", "--only", "1"], "n1")]
        {
            repo.oxundo(words).success();
            let left = ["n1", "n2", "n3"].map(|file| repo.exists(file));
            assert_eq!(left, ["n1", "n2", "n3"].map(|file| file != gone), "{words:?}");
            repo.oxundo(["redo"]).success();
            repo.state().assert_is(&before, "and back");
        }
        repo.oxundo(["undo"]).exits(3);
        repo.state().assert_is(&before, "a commit of the user's stays");
        repo.agent("echo 4 >n4");
        assert_eq!(standing(&repo, false)[1..], done);
        repo.undo();
        repo.state().assert_is(&before, "a turn on top is undone as any");
    });
}

/// The commits that the log names are those that `git log` has.
#[test]
fn log_names_the_commits_that_are_there() {
    // What the user did, and for the turns from the last one down how many commits below HEAD theirs is.
    let ways = [
        ("nothing", "true", &[0, 1, 2][..]),
        ("amended", "git commit -q --amend -m better", &[0, 1, 2]),
        (
            "amended, with own work on top",
            "git commit -q --amend -m better; echo own >own; git add own; git commit -qm own",
            &[1, 2, 3],
        ),
        ("made one of", "git reset -q --soft HEAD~2; git commit -qm both", &[0, 0, 1]),
        ("reworded below", "git rebase -qi HEAD~3 2>/dev/null", &[0, 1, 2]),
        (
            "reworded on another base",
            "git rebase -qi --onto $(git commit-tree -m up -p main~3 main~3^{tree}) main~3",
            &[0, 1, 2],
        ),
        (
            "brought back on another branch",
            "git switch -qc other HEAD~2; GIT_COMMITTER_DATE=\"$(($(date +%s) + 7)) +0000\" git commit -q --amend -m better; \"$OXUNDO\" -q redo 2; git switch -q main",
            &[0, 1, 2],
        ),
    ];
    check_all(ways.map(|(name, line, below)| (name.to_owned(), (line, below))), |&(line, below)| {
        let editor = "export GIT_SEQUENCE_EDITOR='sed -i \"1s/^pick/reword/\"' GIT_EDITOR='sed -i \"1s/$/ anew/\"'";
        let repo = three_turns_then(&format!("OXUNDO={}; {editor}; {line}", env!("CARGO_BIN_EXE_oxundo")));
        let is_dirty_only = |id: &str| repo.git(["log", "-1", "--format=%s", id]).contains("uncommitted changes");
        assert!(!is_dirty_only("HEAD"), "the story has no dirty commits");
        for (turn, below) in [3, 2, 1].into_iter().zip(below) {
            let commit = repo.git(["rev-parse", &format!("HEAD~{below}")]);
            for words in [&["log", "--format=%(turn) %H"][..], &["log", "--all", "--format=%(turn) %H"]] {
                let log = repo.oxundo(words).out();
                assert!(log.lines().any(|told| told == format!("{turn} {}", commit.trim())), "{below}: {commit}{log}");
            }
        }
    });
}

#[test]
fn of_a_turn_of_which_one_commit_was_dropped_that_one_is_brought_back() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >n1");
    repo.agent("echo own >own; git add own; git commit -qm own; echo 2 >n2");
    repo.agent("echo 3 >n3");
    let dropped = repo.git(["rev-parse", "--short=10", "HEAD~1"]);
    repo.sh("GIT_SEQUENCE_EDITOR='sed -i 3d' git rebase -q -i HEAD~4");
    assert!(repo.exists("own") && !repo.exists("n2"), "git did it");
    let refused = repo.oxundo(["redo", "--to", "2"]);
    refused.exits(3);
    refused.warns(&format!("run 'git cherry-pick {}' to have it again", dropped.trim()));
    repo.sh(&format!("git cherry-pick {} >/dev/null", dropped.trim()));
    let done: Vec<_> = (1..=3).rev().map(|turn| (turn, "done".to_owned())).collect();
    assert_eq!(standing(&repo, false), done);
}

#[test]
fn turns_in_another_order_are_all_done() {
    let repo = three_turns_then("GIT_SEQUENCE_EDITOR=\"sed -i '2{h;d};3G'\" git rebase -q -i HEAD~3");
    assert_eq!(repo.git(["diff", "--name-only", "HEAD~1"]), "n2", "git did it");
    let done: Vec<_> = (1..=3).rev().map(|turn| (turn, "done".to_owned())).collect();
    assert_eq!(standing(&repo, false), done);
    let before = repo.state();
    let refused = repo.oxundo(["undo"]);
    refused.warns("was rewritten since turn 2 made it");
    refused.warns("hint: run 'oxundo undo --only 3' to take out turn 3 and leave that one");
    refused.warns("hint: run 'oxundo undo --only 2' to take that turn out");
    repo.state().assert_is(&before, "refused");
    for (words, gone) in [(&["undo", "--only", "2"][..], "n2"), (&["undo", "--revert"], "n3")] {
        repo.oxundo(words).success();
        assert_eq!(["n1", "n2", "n3"].map(|file| repo.exists(file)), ["n1", "n2", "n3"].map(|file| file != gone));
        repo.oxundo(["redo"]).success();
        repo.state().assert_is(&before, "and comes back");
    }
}

#[test]
fn turns_that_were_dropped_are_not_counted() {
    let repo = three_turns_then("true");
    repo.agent("echo 4 >n4");
    repo.sh(&DROP_THE_SECOND.replace("2d", "3d").replace("HEAD~3", "HEAD~4"));
    assert_eq!(repo.json(["status"]).1["undo_depth"], 3);
    assert_eq!(repo.json(["status", "--short"]).1["undo_depth"], 3);
    let before = repo.state();
    for (words, turns) in [(&["undo", "--revert", "--steps", "2"][..], [4, 2]), (&["undo", "--only", "2..4"], [4, 2])] {
        let done = repo.json(words).1;
        assert_eq!(done["turns"], serde_json::json!(turns), "{done}");
        assert!(!repo.exists("n4") && !repo.exists("n2") && repo.exists("n1"));
        repo.oxundo(["redo"]).success();
        repo.state().assert_is(&before, "and back");
    }
    repo.oxundo(["undo", "--revert", "--steps", "4"]).exits(4);
    repo.state().assert_is(&before, "there are no four");
}

#[test]
fn turns_that_were_dropped_are_not_counted_below_what_is_done_on_top_either() {
    let repo = three_turns_then(DROP_THE_SECOND);
    let counted = |count: u64| {
        let done = standing(&repo, false).iter().filter(|(_, state)| state == "done").count();
        assert_eq!(done as u64, count, "{:?}", standing(&repo, false));
        for words in [&["status"][..], &["status", "--short"]] {
            assert_eq!(repo.json(words).1["undo_depth"], count, "{words:?}");
        }
        let refused = repo.oxundo(["undo", "--revert", "--steps", &(count + 1).to_string()]);
        refused.exits(4);
        refused.warns(&format!("'main' has {count} turns"));
    };
    repo.oxundo(["checkpoint"]).success();
    counted(2);
    repo.agent("echo 4 >n4");
    counted(3);
    repo.sh(DROP_THE_SECOND);
    assert_eq!(standing(&repo, false)[1], (3, "left".to_owned()));
    counted(2);
    repo.turn(Mode::Ghost, "echo 5 >n5");
    counted(3);
    repo.oxundo(["gc", "--keep", "0d"]).success();
    counted(3);
}

#[test]
fn after_a_take_out_was_brought_back_redo_goes_on_where_it_was() {
    let repo = three_turns_then("true");
    let after = repo.state();
    repo.oxundo(["undo", "2"]).success();
    let before = repo.state();
    repo.oxundo(["undo", "--only", "1"]).success();
    repo.redo();
    repo.state().assert_is(&before, "what was taken out is there again");
    repo.oxundo(["redo", "2"]).success();
    repo.state().assert_is(&after, "and so are the turns that were undone before");
}

#[test]
fn below_a_turn_that_the_user_reverted_the_hints_lead_to_the_next() {
    let repo = three_turns_then("git revert --no-edit HEAD >/dev/null");
    repo.oxundo(["undo"])
        .warns("hint: run 'oxundo undo --only 2' to take out turn 2 as well: what is above it is taken");
    let refused = repo.oxundo(["undo", "--revert"]);
    refused.exits(4);
    refused.warns("hint: run 'oxundo undo --only 2' to take out turn 2, the next one below");
    repo.oxundo(["undo", "--only", "2"]).success();
    assert_eq!(["n1", "n2", "n3"].map(|file| repo.exists(file)), [true, false, false]);
}

#[test]
fn turns_that_became_one_commit_which_the_user_reverted_are_passed_over_by_the_hints() {
    let one_commit = "git switch -q main; git merge -q --squash feature; git commit -qm all; git revert --no-edit HEAD";
    let seen_in_log = "hint: run 'oxundo log' to see the turns";
    for (first, next) in [("true", seen_in_log), ("echo 1 >n1", "hint: run 'oxundo undo --only 1' to take out turn 1")]
    {
        // All of one second: else what the user made one of is another's, and is undone with its revert.
        let at = ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"];
        let repo = at.into_iter().fold(Sandbox::new(), |repo, name| repo.with_variable(name, "1700000000 +0000"));
        repo.agent(first);
        repo.sh("git switch -qc feature");
        repo.agent("echo a >>n2");
        repo.agent("echo b >>n2");
        repo.agent("echo c >n3");
        repo.sh(one_commit);
        let turns = repo.log().len();
        let numbers = [turns, turns - 1, turns - 2].map(|number| number.to_string());
        let [top, middle, lowest] = [0, 1, 2].map(|at| numbers[at].as_str());
        for typed in [&["undo"][..], &["undo", "--revert"], &["undo", "--only", top], &["undo", "--only", lowest]] {
            repo.oxundo(typed).warns(next);
        }
        // One whose changes a later one went on with is out together with that.
        assert!(!repo.oxundo(["undo", "--revert"]).err().contains(&format!("--only {middle}'")));
    }
}

#[test]
fn below_a_turn_that_the_user_picked_and_reverted_no_hint_leads_to_one_that_was_left() {
    let repo = Sandbox::new();
    repo.sh("git branch third");
    repo.agent("echo 1 >n1");
    repo.agent("echo 2 >n2");
    repo.sh("git switch -q third; git cherry-pick main >/dev/null; git revert --no-edit HEAD");
    for typed in [&["undo"][..], &["undo", "--revert"], &["undo", "--only", "2"]] {
        let refused = repo.oxundo(typed);
        refused.warns("hint: run 'oxundo log' to see the turns");
        assert!(!refused.err().contains("--only 1"), "{refused:?}");
    }
}

#[test]
fn where_the_user_reverted_his_own_work_too_no_hint_leads_to_a_revert_of_the_turn() {
    let repo = Sandbox::new();
    repo.sh("seq 40 >f; git add f; git commit -qm f; sed -i 's/^3$/3 mine/' f");
    repo.agent("sed -i 's/^30$/30 one/' f; echo 1 >n1");
    repo.sh("git revert --no-edit HEAD HEAD~1");
    repo.oxundo(["undo"]).warns("hint: run 'oxundo log' to see the turns");
    assert!(!repo.oxundo(["undo"]).err().contains("--revert"), "there is nothing of the turn left");
}

#[test]
fn undo_leads_to_no_branch_from_which_the_user_has_taken_the_turn() {
    let repo = Sandbox::new();
    repo.sh("git branch other");
    repo.agent("echo 1 >n1");
    repo.sh("git switch -q other");
    repo.refuses(&["undo"], "branch");
    repo.sh("git switch -q main; git reset -q --hard HEAD~1; git switch -q other");
    repo.refuses(&["undo"], "nothing");
}

#[test]
fn a_turn_that_was_amended_and_merged_stays_done_below_another() {
    // All of one second, and each a second later than the one before.
    for [amended, merged] in [[0, 0], [1, 2]] {
        let repo = Sandbox::new();
        repo.sh("git branch other");
        repo.agent("echo 1 >n1");
        let later =
            |seconds: u32| format!("GIT_COMMITTER_DATE=\"$(( $(git log -1 --format=%ct main) + {seconds} )) +0000\"");
        repo.sh(&format!("echo mine >mine; git add mine; {} git commit -q --amend --no-edit", later(amended)));
        repo.sh(&format!("git switch -q other; {} git merge -q --no-ff -m both main", later(merged)));
        repo.agent("echo 2 >n2");
        assert_eq!(repo.json(["status"]).1["undo_depth"], 2);
        let states: Vec<_> = repo.log().iter().map(|turn| turn["state"].clone()).collect();
        assert_eq!(states, ["done", "done"]);
        repo.oxundo(["undo", "--only", "1"]).success();
        assert!(repo.exists("n2"));
    }
}

#[test]
fn what_the_user_did_to_a_branch_is_seen_from_another_one_too() {
    let cases = [("git commit -q --amend -m again", "done"), ("git reset -q --hard HEAD~1", "undone by hand")];
    check_all(cases.map(|(git, state)| (git.to_owned(), (git, state))), |&(git, state)| {
        let repo = Sandbox::new();
        repo.sh("git branch other");
        repo.agent("echo 1 >n1");
        repo.sh("git switch -q other");
        repo.agent("echo 2 >n2");
        repo.sh(&format!("{git}; git switch -q main"));
        let (_, all) = repo.json(["log", "--all"]);
        let states: Vec<_> = [0, 1].iter().map(|at| all["turns"][at]["state"].clone()).collect();
        let printed = repo.oxundo(["log", "--all"]).out();
        assert_eq!(states[1], "done", "{printed}");
        assert_eq!(states[0], state.split(' ').next().unwrap_or_default(), "{printed}");
        assert!(state == "done" || printed.contains(state), "{printed}");
    });
}

/// Goes back and forth by these lines, twice: all is as it was there.
fn back_and_forth_twice(repo: &Sandbox, lines: [&str; 2], states: [&State; 2], name: &str) {
    for _ in 0..2 {
        for (line, state) in lines.iter().zip(states) {
            repo.oxundo(line.split(' ')).success();
            repo.state().assert_is(state, name);
        }
    }
}

#[test]
fn a_commit_that_was_worded_anew_is_the_turns_beside_the_old_one_on_another_branch() {
    for script in ["git branch g", "git branch -f other HEAD", "echo two >>n1; git commit -qam two; git branch g"] {
        let repo = Sandbox::new();
        repo.sh("git branch other");
        let before = repo.state();
        repo.agent(&format!("echo 1 >n1; git add n1; git commit -qm one; {script}"));
        repo.sh("git commit -q --amend -m again");
        let after = repo.state();
        back_and_forth_twice(&repo, ["undo", "redo"], [&before, &after], script);
    }
}

#[test]
fn a_branch_at_what_the_user_has_worded_anew_since_goes_with_the_turn_that_made_it() {
    for made in ["git branch keep HEAD~1", "git branch keep"] {
        let repo = Sandbox::new();
        let before = repo.state();
        repo.agent("echo 1 >n1; git add n1; git commit -qm one");
        let one = repo.state();
        repo.agent(&format!("echo 2 >n2; git add n2; git commit -qm two; {made}"));
        repo.sh("GIT_SEQUENCE_EDITOR='sed -i s/^pick/reword/' GIT_EDITOR='sed -i 1s/$/W/' git rebase -q -i HEAD~2");
        let after = repo.state();
        back_and_forth_twice(&repo, ["undo 2", "redo 2"], [&before, &after], made);
        repo.undo();
        repo.files().assert_is(&one.only(|fact| fact.starts_with("on disk")), "the files of then");
        assert_eq!(repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads"]).trim(), "main");
        repo.redo();
        repo.state().assert_is(&after, made);
    }
}

#[test]
fn a_branch_at_what_was_worded_anew_before_the_turn_and_since_goes_with_it() {
    for turns in 1..=2 {
        let repo = Sandbox::new();
        for number in 1..=turns {
            repo.agent(&format!("echo {number} >n{number}"));
            (0..number).rev().for_each(|below| reword(&repo, below));
        }
        repo.agent("echo mine >last; git add last; git commit -qm last; git branch keep");
        let (branches, with_it) = (repo.git(["for-each-ref", "refs/heads/keep"]), repo.git(["rev-parse", "HEAD"]));
        (0..=turns).rev().for_each(|below| reword(&repo, below));
        assert_ne!(repo.git(["rev-parse", "HEAD"]), with_it, "its message is another");
        let after = repo.state();
        for _ in 0..2 {
            repo.undo();
            assert!(!repo.exists("last") && repo.exists(format!("n{turns}")), "the turns below stay");
            assert_eq!(repo.git(["for-each-ref", "refs/heads", "--format=%(refname:short)"]).trim(), "main");
            repo.redo();
            repo.state().assert_is(&after, "redone");
            assert_eq!(repo.git(["for-each-ref", "refs/heads/keep"]), branches);
        }
        let by_steps = repo.copy();
        repo.oxundo(["undo", "2"]).success();
        by_steps.undo();
        by_steps.undo();
        by_steps.state().assert_is(&repo.state(), "both at once");
        repo.oxundo(["redo", "2"]).success();
        repo.state().assert_is(&after, "and redone");
    }
}

#[test]
fn a_branch_that_a_turn_only_made_goes_with_the_new_message_of_its_commit_and_comes_back_with_it() {
    for (above, undo, redo) in [("true", "undo", "redo"), ("echo 3 >n3", "undo --to 1", "redo --to 3")] {
        let repo = Sandbox::new();
        repo.agent("echo 1 >n1");
        let one = repo.state();
        repo.agent("git switch -qc ag");
        repo.sh("git commit -q --amend -m again");
        if above != "true" {
            repo.agent(above);
        }
        let after = repo.state();
        back_and_forth_twice(&repo, [undo, redo], [&one, &after], above);
    }
    // With more than words it is the user's, and where it is is on no other branch.
    let repo = Sandbox::new();
    repo.agent("echo 1 >n1");
    repo.agent("git switch -qc ag");
    repo.sh("echo mine >mine; git add mine; git commit -q --amend -m again");
    let there = repo.state();
    repo.refuses(&["undo"], "foreign");
    repo.state().assert_is(&there, "it stays");
}

#[test]
fn what_a_turn_brought_to_another_branch_is_not_its_own_on_the_one_where_it_was() {
    let repo = Sandbox::new();
    repo.sh("git branch other");
    repo.agent("echo 1 >n1; git add n1; git commit -qm one");
    repo.sh("echo mine >mine; git add mine; git commit -q --amend --no-edit");
    repo.agent("git branch -f other HEAD");
    let there = repo.state();
    let refusal = repo.refuses(&["undo", "--to", "0"], "foreign");
    assert!(refusal["message"].as_str().is_some_and(|it| it.contains("was rewritten since turn 1")), "{refusal}");
    repo.state().assert_is(&there, "nothing");
    repo.undo();
    assert!(repo.exists("mine"), "its own alone is taken back");
    repo.oxundo(["undo", "--revert"]).success();
    assert!(repo.exists("mine") && !repo.exists("n1"));
}

#[test]
fn what_was_worded_anew_and_brought_to_another_branch_is_undone_by_one_walk() {
    for (script, users) in [
        ("git branch -f other HEAD; git switch -q other", "true"),
        ("git branch -M other; git branch main", "true"),
        ("git branch -M other; git branch main", "git branch -m mine"),
        ("git branch -f other HEAD; git switch -q other; echo 2 >n2; git add n2; git commit -qm two", "true"),
    ] {
        let repo = Sandbox::new();
        repo.sh("git branch other");
        repo.agent("echo 1 >n1; git add n1; git commit -qm one");
        repo.sh("git commit -q --amend -m again");
        repo.agent(script);
        repo.sh(users);
        let (after, by_steps) = (repo.state(), repo.copy());
        for _ in 0..2 {
            repo.oxundo(["undo", "2"]).success();
            assert!(!repo.exists("n1"));
            repo.redo();
            repo.redo();
            repo.state().assert_is(&after, script);
        }
        repo.oxundo(["undo", "2"]).success();
        by_steps.undo();
        by_steps.undo();
        by_steps.state().assert_is(&repo.state(), script);
    }
}

#[test]
fn nothing_that_moves_a_branch_leaves_a_commit_of_the_users_on_none() {
    let merge = "TURN git merge -q --ff-only feat";
    let cases: [(&str, &[&str], &str); 11] = [
        ("undo", &[merge, "git branch -d feat"], "undo"),
        ("restore --exact", &[merge, "git branch -d feat"], "restore --exact 1:before"),
        (
            "a state before the branch",
            &["TURN echo 1 >n1", "git reset -q --hard HEAD~1", merge, "git branch -d feat"],
            "restore --exact 1:before",
        ),
        (
            "redo of what took it off",
            &["git merge -q --ff-only feat", "TURN git reset -q --hard HEAD~1", "oxundo undo", "git branch -d feat"],
            "redo",
        ),
        (
            "redo of what took it off, with a commit",
            &[
                "git merge -q --ff-only feat",
                "TURN git reset -q --hard HEAD~1; echo 1 >n1; git add n1; git commit -qm one",
                "oxundo undo",
                "git branch -d feat",
            ],
            "redo",
        ),
        (
            "redo of a deletion",
            &["git branch copy feat", "TURN git branch -qD feat", "oxundo undo", "git branch -D copy"],
            "redo",
        ),
        (
            "redo of a move",
            &["git branch -f other feat", "TURN git branch -f feat main", "oxundo undo", "git branch -D other"],
            "redo",
        ),
        (
            "redo of a name that another had",
            &[
                "git branch -f other feat",
                "TURN git branch -M feat other",
                "oxundo undo",
                "git branch -D other",
                "git switch -qc x",
                "git switch -q main",
            ],
            "redo",
        ),
        (
            "redo to another line",
            &[
                "TURN git merge -q --ff-only feat; echo 1 >n1; git add n1; git commit -qm one",
                "oxundo undo",
                "TURN echo 2 >n2; git add n2; git commit -qm two",
                "oxundo redo --to 1",
                "git branch -d feat",
            ],
            "redo --to 2",
        ),
        (
            "undo of what deleted the branch, which the user has deleted since as well",
            &[
                "TURN git merge -q --ff-only feat; git branch -d feat",
                "oxundo undo",
                "git branch k feat; git branch -D feat",
                "oxundo redo",
                "git branch -d k",
            ],
            "undo",
        ),
        ("undo of a branch that was made there", &["TURN git branch ag feat", "git branch -D feat"], "undo"),
    ];
    check_all(cases.map(|(name, commands, typed)| (name.to_owned(), (commands, typed))), |(commands, typed)| {
        let repo = Sandbox::new();
        repo.sh("git branch other; git switch -qc feat; echo mine >mine; git add mine; git commit -qm mine; git switch -q main");
        let mine = repo.git(["rev-parse", "feat"]).trim().to_owned();
        for command in *commands {
            match (command.strip_prefix("TURN "), command.strip_prefix("oxundo ")) {
                (Some(script), _) => drop(repo.agent(script)),
                (_, Some(args)) => repo.oxundo(args.split(' ')).success(),
                _ => drop(repo.sh(command)),
            }
        }
        let on = || repo.git(["branch", "--contains", &mine, "--format=%(refname:short)"]);
        let (there, had) = (repo.state(), on());
        assert!(!had.is_empty());
        let typed: Vec<&str> = typed.split(' ').collect();
        let refusal = repo.refuses(&typed, "foreign");
        repo.state().assert_is(&there, "nothing is done");
        let hint = refusal["hints"][0].as_str().expect("a hint");
        repo.sh(hint.split('\'').nth(1).expect("a line"));
        repo.oxundo(&typed).success();
        assert!(on().starts_with("kept-"), "it is on a branch: {:?}", on());
    });
}

#[test]
fn what_a_tag_a_remote_or_another_worktree_has_may_leave_the_branches() {
    let kept = [
        "git tag v1 feat",
        "git tag -a -m v1 v1 feat",
        "git worktree add -q --detach ../x feat",
        "git push -q origin feat",
    ];
    for kept in kept {
        let repo = Sandbox::new();
        repo.remote("origin");
        repo.sh("git switch -qc feat; echo mine >mine; git add mine; git commit -qm mine; git switch -q main");
        let base = repo.git(["rev-parse", "HEAD"]);
        repo.agent("git merge -q --ff-only feat");
        repo.sh(&format!("{kept}; git branch -qD feat"));
        let typed: &[&str] = if kept.contains("push") { &["restore", "--exact", "1:before"] } else { &["undo"] };
        if kept.contains("push") {
            // What is published stays in any case, and for that reason.
            repo.refuses(typed, "published");
            continue;
        }
        repo.oxundo(typed).success();
        assert!(!repo.exists("mine"), "{kept}");
        assert_eq!(repo.git(["rev-parse", "HEAD"]), base);
    }
}

#[test]
fn squash_leaves_what_a_turn_only_brought_onto_the_branch() {
    for kept in ["true", "git branch -d feat"] {
        let repo = Sandbox::new();
        repo.sh("git switch -qc feat; echo mine >mine; git add mine; git commit -qm mine; git switch -q main");
        repo.agent("git merge -q --ff-only feat; echo 1 >n1; git add n1; git commit -qm one");
        repo.agent("echo 2 >n2");
        repo.sh(kept);
        let there = repo.state();
        repo.refuses(&["squash", "1"], "foreign");
        repo.state().assert_is(&there, kept);
    }
}

#[test]
fn what_the_user_did_to_a_branch_beside_stays_under_another_name() {
    for users in ["git commit -q --amend -m again", "echo mine >mine; git add mine; git commit -qm mine"] {
        let repo = Sandbox::new();
        let before = repo.state();
        repo.agent("git switch -qc f; echo c1 >c1; git add c1; git commit -qm c1; git switch -q main");
        repo.sh(&format!("git switch -q f; {users}; git switch -q main"));
        let mine = repo.git(["rev-parse", "f"]);
        let refusal = repo.refuses_any(&["undo"], &["foreign", "branch"]);
        let lines =
            refusal["hints"].as_array().into_iter().flatten().filter_map(|hint| hint.as_str()?.split('\'').nth(1));
        repo.sh(lines.into_iter().find(|line| line.starts_with("git branch")).expect("a line"));
        repo.undo();
        assert_eq!(repo.git(["rev-parse", "f-kept"]), mine);
        repo.state().only(|fact| !fact.contains("f-kept")).assert_is(&before, users);
    }
}

#[test]
fn what_a_turn_itself_has_left_on_no_branch_is_so_again_by_redo() {
    for script in
        ["git reset -q --hard HEAD~1", "git commit -q --amend -m other", "git switch -q other; git branch -D main"]
    {
        let repo = Sandbox::new();
        repo.sh("git branch other; echo mine >mine; git add mine; git commit -qm mine");
        let before = repo.state();
        repo.agent(script);
        let after = repo.state();
        back_and_forth_twice(&repo, ["undo", "redo"], [&before, &after], script);
    }
}

#[test]
fn what_a_later_turn_has_left_on_no_branch_is_so_again_by_a_redo_of_both() {
    for (one, two) in [
        ("echo x >x", "git branch -D g; echo y >y"),
        ("echo x >x; git add x; git commit -qm x", "git reset -q --hard HEAD~2"),
        ("git cherry-pick g", "git branch -qD g; echo y >y"),
        ("git branch -m g h", "git branch -D h"),
    ] {
        let repo = Sandbox::new();
        repo.sh("echo mine >mine; git add mine; git commit -qm mine; git branch g; git switch -qc other HEAD~1; git branch -D main; git switch -qc main; git branch -D other");
        repo.sh("git merge -q --ff-only g; echo own >own; git add own; git commit -qm own; git branch -qf g; git reset -q --hard HEAD~1");
        let before = repo.state();
        repo.agent(one);
        repo.agent(two);
        let after = repo.state();
        back_and_forth_twice(&repo, ["undo 2", "redo 2"], [&before, &after], one);
    }
}

#[test]
fn what_the_user_words_anew_of_his_own_on_a_branch_that_a_turn_made_stays() {
    // Under the old name it has the new words.
    for amended in ["git commit -q --amend -m again", "git commit -q --amend --no-edit --author='Other <o@x>'"] {
        let repo = Sandbox::new();
        repo.sh("echo mine >mine; git add mine; git commit -qm mine");
        repo.agent("git branch -m x");
        repo.sh(amended);
        let (after, mine) = (repo.state(), repo.git(["rev-parse", "HEAD"]));
        for _ in 0..2 {
            repo.undo();
            assert_eq!(repo.git(["rev-parse", "refs/heads/main"]), mine, "{amended}");
            assert_eq!(repo.git(["branch", "--format=%(refname:short)"]).trim(), "main");
            repo.redo();
            repo.state().assert_is(&after, amended);
        }
        let repo = Sandbox::new();
        repo.sh("echo mine >mine; git add mine; git commit -qm mine");
        repo.agent("git switch -qc x");
        repo.sh(amended);
        let there = repo.state();
        repo.refuses(&["undo"], "branch");
        repo.state().assert_is(&there, "nothing");
    }
    let repo = Sandbox::new();
    repo.agent("echo 1 >n1");
    repo.agent("git branch -m x");
    repo.sh("git commit -q --amend -m again");
    let mine = repo.git(["rev-parse", "HEAD"]);
    repo.undo();
    assert_eq!(repo.git(["rev-parse", "refs/heads/main"]), mine, "the turn below stays, in the user's words");
    repo.undo();
    assert!(!repo.exists("n1"));
}

#[test]
fn a_branch_from_a_detached_head_names_what_is_left_on_none() {
    let repo = Sandbox::new();
    repo.sh("git switch -q --detach");
    repo.agent("echo 1 >n1; git add n1; git commit -qm one");
    let plain = repo.copy().oxundo(["branch", "nb", "1"]);
    assert!(!plain.err().contains("on no branch"), "{plain:?}");
    repo.sh("echo mine >mine; git add mine; git commit -qm mine");
    let mine = repo.git(["rev-parse", "HEAD"]).trim().to_owned();
    let told = repo.oxundo(["branch", "nb", "1"]);
    told.success();
    told.warns(&format!("commit {} (mine) is on no branch: 'git branch kept-", &mine[..7]));
}

#[test]
fn going_back_by_commits_on_top_names_the_turns_that_were_merged() {
    let repo = Sandbox::new();
    repo.sh("git branch third");
    repo.agent("echo 1 >n1");
    repo.sh("git switch -q third");
    repo.agent("echo 2 >n2");
    repo.sh("git switch -q main; git merge -q --no-ff -m merged third");
    repo.agent("echo 3 >n3");
    let (merged, state) = (repo.copy(), repo.state());
    let all = repo.oxundo(["undo", "--revert", "--to", "0"]);
    all.success();
    assert!(!all.err().contains("was merged") && !["n1", "n2", "n3"].iter().any(|file| repo.exists(file)));
    repo.undo();
    repo.state().assert_is(&state, "all of it");
    // An older release has another line.
    let repo = merged;
    as_of_the_first_release(&repo);
    let first = repo.oxundo(["undo", "--revert", "--to", "0"]);
    first.success();
    let left = if repo.exists("n1") { 1 } else { 2 };
    assert!(repo.exists(format!("n{left}")) && !repo.exists("n3"));
    first.warns(&format!("turn {left} was merged, and stays: 'oxundo undo --only {left}' takes it out too"));
    repo.oxundo(["undo", "--only", &left.to_string()]).success();
    assert!(!repo.exists("n1") && !repo.exists("n2"));
    let again = repo.oxundo(["undo", "--revert", "--to", "0"]);
    assert!(!again.err().contains("was merged"), "it is taken out: {again:?}");
    let repo = Sandbox::new();
    repo.sh("git branch third");
    repo.agent("echo 1 >n1");
    repo.sh("git switch -q third");
    repo.agent("echo 2 >n2");
    repo.sh("git switch -q main");
    repo.agent("git merge -q --no-ff -m merged third");
    let all = repo.oxundo(["undo", "--revert", "--to", "0"]);
    assert!(!all.err().contains("was merged"), "what the agent merged goes with its turn: {all:?}");
    assert!(!repo.exists("n1") && !repo.exists("n2"));
}

#[test]
fn a_branch_of_a_turns_that_alone_has_the_users_commits_stays() {
    for users in ["echo mine >mine; git add mine; git commit -qm mine", "echo mine >>README.txt"] {
        let repo = Sandbox::new();
        repo.sh(users);
        repo.agent("echo 1 >n1");
        repo.agent("git branch keep HEAD~1");
        repo.sh("git rebase -q --onto HEAD~2 HEAD~1");
        let there = repo.state();
        for typed in [&["undo"][..], &["undo", "2"], &["undo", "--to", "0"]] {
            assert_ne!(repo.oxundo(typed).code, 0, "{users}: {typed:?}");
        }
        repo.state().assert_is(&there, users);
    }
}

#[test]
fn what_the_user_has_on_a_branch_of_the_turns_alone_by_now_is_not_taken_off() {
    let merged = "git merge -q --no-edit feat";
    let moved =
        ["echo 1 >n1; git add n1; git commit -qm one; git branch ag feat", "git branch -f other ag; git branch -D ag"];
    for turns in [&[merged][..], &["git merge -q --ff-only feat"], &moved] {
        let repo = Sandbox::new();
        repo.sh("git branch other; git switch -qc feat; echo mine >mine; git add mine; git commit -qm mine; git switch -q main");
        let before = repo.state();
        for turn in turns {
            repo.agent(turn);
        }
        let with_it = repo.copy();
        repo.sh("git branch -D feat");
        let there = repo.state();
        repo.refuses(&["undo", "--to", "0"], "foreign");
        repo.state().assert_is(&there, "it would be on no branch");
        with_it.oxundo(["undo", "--to", "0"]).success();
        with_it.state().assert_is(&before, "where it is on its own still, it is");
    }
}

#[test]
fn what_a_turn_brought_onto_another_branch_is_still_the_turns_that_made_it() {
    for amended in ["git commit -q --amend -m again", "echo mine >mine; git add mine; git commit -q --amend --no-edit"]
    {
        let repo = Sandbox::new();
        repo.sh("git branch other");
        repo.agent("echo 1 >n1; git add n1; git commit -qm one");
        repo.sh(amended);
        repo.agent("echo 2 >n2; git add n2; git commit -qm two; git branch -f other HEAD");
        let two = repo.git(["rev-parse", "HEAD"]).trim().to_owned();
        let turns = repo.log();
        assert_eq!(turns.iter().map(|turn| &turn["state"]).collect::<Vec<_>>(), ["done", "done"], "{amended}");
        repo.oxundo(["log"]).says(&two[..7]);
        repo.undo();
        assert_eq!(repo.json(["status"]).1["undo_depth"], 1, "{amended}");
    }
}

#[test]
fn what_a_reworded_turn_did_to_branches_beside_stays_where_it_is_undone_elsewhere() {
    let acts = [
        "git branch ak",
        "git branch ak HEAD~1",
        "git branch -D other",
        "git branch -f other HEAD",
        "git branch -m other o2",
    ];
    let places = [
        "git switch -q --detach",
        "git switch -qc new",
        "git switch -qc new; git commit -q --allow-empty -m mine; git reset -q --soft HEAD~1",
    ];
    let cases = acts.into_iter().flat_map(|act| places.map(|place| (format!("{act}; {place}"), (act, place))));
    check_all(cases, |(act, place)| {
        let repo = Sandbox::new();
        repo.sh("git branch other");
        repo.agent(&format!("echo 1 >n1; git add n1; git commit -qm one; {act}"));
        repo.sh(&format!("git commit -q --amend -m again; {place}"));
        let there = repo.state();
        let branches = || {
            repo.git(["for-each-ref", "refs/heads", "--format=%(refname) %(objectname)", "--exclude=refs/heads/new"])
        };
        let before = branches();
        for _ in 0..2 {
            repo.undo();
            assert!(!repo.exists("n1"));
            assert_eq!(branches(), before, "they are done on the other branch still");
            repo.redo();
            repo.state().assert_is(&there, "redone");
        }
    });
}

#[test]
fn a_turn_that_was_reverted_and_brought_back_is_no_turn_that_is_out() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >n1");
    repo.sh("git revert --no-edit HEAD");
    repo.agent("echo 2 >n2");
    repo.sh("git revert --no-edit HEAD HEAD~1");
    assert!(repo.exists("n1") && !repo.exists("n2"), "git did it");
    for typed in [&["undo"][..], &["undo", "--revert"], &["undo", "--only", "2"]] {
        repo.oxundo(typed).warns("hint: run 'oxundo undo --only 1' to take out turn 1");
    }
    repo.oxundo(["undo", "--only", "1"]).success();
    assert!(!repo.exists("n1"));
}

#[test]
fn a_turn_that_renamed_its_branch_is_redone_where_the_user_took_it_off_by_hand() {
    let repo = Sandbox::new();
    let before = repo.state();
    repo.agent("echo 1 >n1; git add n1; git commit -qm one; git branch -m to");
    let after = repo.state();
    repo.sh("git reset -q --hard HEAD~1");
    repo.redo();
    repo.state().assert_is(&after, "redone");
    repo.undo();
    repo.state().assert_is(&before, "and undone, with its name");
}

#[test]
fn a_commit_that_got_an_earlier_date_is_still_the_turns() {
    let early = "GIT_COMMITTER_DATE=2020-01-01T00:00:00Z git commit -q --amend";
    let dated = "echo 1 >n1; git add n1; git commit -qm one --date=2020-01-01T00:00:00Z";
    let cases = [
        ("other words", "echo 1 >n1", format!("{early} -m better")),
        ("the same words", "echo 1 >n1", format!("{early} --no-edit")),
        ("its author's date", dated, "git rebase -q -f --committer-date-is-author-date HEAD~1".to_owned()),
    ];
    check_all(cases.map(|(name, script, git)| (name.to_owned(), (script, git))), |(script, git)| {
        let repo = Sandbox::new();
        let before = repo.state();
        repo.agent(script);
        repo.agent("echo 2 >n2");
        repo.undo();
        repo.sh(git);
        let after = repo.state();
        assert_eq!(repo.log()[1]["state"], "done", "{:?}", repo.log());
        repo.undo();
        repo.state().assert_is(&before, "undone");
        repo.redo();
        repo.state().assert_is(&after, "and redone, as the user made it");
    });
    let repo = Sandbox::new();
    repo.agent("echo 1 >n1");
    repo.sh(&format!("echo mine >mine; git add mine; {early} --no-edit"));
    repo.refuses(&["undo"], "foreign");
    repo.oxundo(["undo", "--only", "1"]).success();
    assert!(repo.exists("mine") && !repo.exists("n1"));
    // By a clock that was ahead in the turn, all that comes later is earlier.
    let ahead = "GIT_COMMITTER_DATE=2037-01-01T00:00:00Z git commit -qm one";
    for dated in [ahead.to_owned(), format!("GIT_AUTHOR_DATE=2037-01-01T00:00:00Z {ahead}")] {
        let repo = Sandbox::new();
        repo.agent(&format!("echo 1 >n1; git add n1; {dated}"));
        repo.sh("echo mine >mine; git add mine; git commit -q --amend --no-edit --reset-author");
        assert_eq!(repo.log()[0]["state"], "done", "{dated}");
        repo.refuses(&["undo"], "foreign");
    }
    // What was there before the turn amended it is older too, and is the user's.
    let repo = Sandbox::new();
    let mine = repo.commit("n1", "1\n");
    repo.agent("GIT_COMMITTER_DATE=2037-01-01T00:00:00Z git commit -q --amend --no-edit");
    repo.sh(&format!("git reset -q --hard {mine}"));
    assert_eq!(repo.json(["log", "--all"]).1["turns"][0]["state"], "undone");
    repo.refuses(&["undo"], "nothing");
}

#[test]
fn a_turn_that_was_taken_out_and_is_there_again_is_told_so_and_taken_out_again() {
    let ways = [("picked", "git cherry-pick main~2"), ("reverted", "git revert --no-edit HEAD")];
    check_all(ways.map(|(name, line)| (name.to_owned(), line)), |line| {
        let repo = three_turns_then("true");
        let taken = |repo: &Sandbox| repo.log().iter().any(|turn| turn["taken_out"] != serde_json::Value::Null);
        repo.oxundo(["undo", "--only", "2"]).success();
        assert!(taken(&repo) && !repo.exists("n2"));
        repo.sh(&format!("{line} >/dev/null"));
        assert!(!taken(&repo) && repo.exists("n2"), "{:?}", repo.log());
        assert!(!repo.oxundo(["show", "2"]).out().contains("taken out"));
        repo.refuses(&["redo"], "nothing");
        repo.agent("echo 5 >n5");
        assert!(!taken(&repo), "nor does a turn on top change that");
        repo.undo();
        for command in [&["undo"][..], &["undo", "--revert"]] {
            let refused = repo.oxundo(command);
            refused.warns("hint: run 'oxundo undo --only 2' to take turn 2 out again, by a commit on top");
            assert!(!refused.err().contains("oxundo undo --revert"), "that leads nowhere");
        }
        repo.oxundo(["undo", "--only", "2"]).success();
        assert!(taken(&repo) && !repo.exists("n2"), "it is taken out again");
        assert_eq!(["n1", "n3"].map(|file| repo.exists(file)), [true; 2]);
        repo.undo();
        // The user, too, may take it out again.
        repo.sh("git revert --no-edit HEAD >/dev/null");
        assert!(taken(&repo) && !repo.exists("n2"));
    });
}

#[test]
fn redo_on_a_rebased_turn_says_that_it_was_rewritten() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.agent("echo two >two.txt");
    repo.sh("git switch -qc up HEAD~2; git commit -q --allow-empty -m up; git switch -q main; git rebase -q up; git reset -q --hard HEAD~1");
    let error = repo.refuses(&["redo"], "foreign");
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.contains("was rewritten since turn 1 made it"), "{message}");
}

#[test]
fn a_turn_rebased_onto_what_is_published_is_said_to_be_rewritten() {
    let repo = Sandbox::new();
    repo.sh(
        "git init -q --bare ../up; git push -q ../up HEAD:refs/heads/main; git remote add up ../up; git fetch -q up",
    );
    repo.agent("echo 1 >n1");
    repo.sh("git clone -q ../up ../other; cd ../other; git switch -q main; git config user.name x; git config user.email x@x; echo r >r; git add r; git commit -qm theirs; git push -q origin HEAD:main");
    repo.sh("git pull -q --rebase up main");
    let refused = repo.oxundo(["undo"]);
    refused.exits(3);
    refused.warns("was rewritten since turn 1 made it");
    repo.oxundo(["undo", "--revert"]).success();
    assert_eq!((repo.exists("n1"), repo.exists("r")), (false, true));
}

#[test]
fn a_deletion_that_the_user_committed_is_not_to_be_stashed() {
    for mode in ["--commit", "--ghost"] {
        let repo = Sandbox::new();
        repo.write("gone", "1\n2\n3\n").sh("git add -A; git commit -qm files");
        let ghost = ["--ghost"];
        let mode = if mode == "--ghost" { &ghost[..] } else { &[] };
        repo.oxundo([&["run"], mode, &["--", "sh", "-c", "echo 4 >>gone; echo 5 >>README.txt"]].concat()).success();
        repo.sh("git rm -qf gone; git commit -qm 'not wanted'");
        let revert = if mode.is_empty() { &["undo", "--revert"][..] } else { &["undo"] };
        let refused = repo.oxundo(revert).err();
        assert!(!refused.contains("stash"), "{refused}");
        let restore = "oxundo restore 1:before -- :/gone";
        assert!(refused.contains(restore), "{refused}");
        repo.sh(restore);
        repo.assert_file("gone", "1\n2\n3\n", "the file of then");
    }
}

#[test]
fn what_an_agent_dropped_is_done_until_that_turn_is_undone() {
    let repo = Sandbox::new();
    for number in 1..=3 {
        repo.agent(&format!("echo {number} >n{number}"));
    }
    let before = repo.state();
    repo.agent(DROP_THE_SECOND);
    assert!(!repo.exists("n2"));
    let done: Vec<_> = (1..=4).rev().map(|turn| (turn, "done".to_owned())).collect();
    assert_eq!(standing(&repo, false), done);
    repo.undo();
    repo.state().assert_is(&before, "undo of the rebase brings it back");
    assert_eq!(standing(&repo, false), [vec![(4, "undone".to_owned())], done[1..].to_vec()].concat());
}

#[test]
fn the_ends_of_turns_are_kept_by_one_commit_however_many_there_are_and_gc_lets_go_of_them() {
    let repo = Sandbox::new();
    let parents = || repo.git(["log", "-1", "--format=%P", "refs/oxundo/timeline"]).split_whitespace().count();
    repo.agent("echo one >one.txt");
    repo.oxundo(["keep", "1"]).success();
    for number in 0..3 {
        repo.commit(&format!("own{number}"), "own\n");
        repo.agent(&format!("echo {number} >file"));
    }
    assert_eq!(parents(), 1, "the last one keeps those below it");
    assert_eq!(
        repo.git(["rev-list", "--count", "--exclude=refs/notes/*", "--all", "--not", "main"]).trim(),
        "1",
        "the timeline's own commit"
    );
    repo.undo();
    assert_eq!(parents(), 1, "what is undone keeps them too");
    repo.sh("git reset -q --hard HEAD~3; git commit -q --allow-empty -m other");
    repo.prune();
    repo.oxundo(["branch", "old", "4"]).success();
    repo.assert_file("file", "2\n", "none of them is lost");
}

#[test]
fn what_only_an_expired_turn_kept_alive_is_kept_for_those_that_stay() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    let one = repo.state();
    repo.oxundo(["keep", "1"]).success();
    repo.agent("echo two >two.txt");
    repo.git(["reset", "-q", "--hard", "HEAD~2"]);
    repo.agent("echo three >three.txt");
    repo.oxundo(["gc", "--keep", "0"]).says("1 turn");
    repo.prune();
    repo.oxundo(["redo", "--to", "1"]).success();
    repo.state().assert_is(&one, "the turn that is kept is whole");
}

#[test]
fn a_branch_or_a_stash_entry_that_the_user_deleted_stays_so() {
    let repo = Sandbox::new();
    repo.agent("git branch theirs; echo x >>README.txt; git stash -q; echo one >one.txt");
    repo.git(["branch", "-m", "theirs", "mine"]);
    repo.git(["stash", "drop", "-q"]);
    let end = repo.state();
    repo.undo();
    repo.redo();
    repo.state().assert_is(&end, "redo makes neither of them again");
    repo.undo();
    repo.redo();
    repo.state().assert_is(&end, "nor the second time");

    let repo = Sandbox::new();
    repo.agent("echo x >>README.txt; git stash -q; echo one >one.txt");
    repo.sh("echo mine >>README.txt; git stash -q");
    let end = repo.state();
    repo.undo();
    repo.redo();
    repo.state().assert_is(&end, "entries come back where they were in the list");
}

#[test]
fn a_turn_goes_along_with_its_branch_under_another_name() {
    let repo = Sandbox::new();
    let before = repo.state();
    repo.agent("git switch -qc theirs; echo one >one.txt");
    repo.git(["branch", "-m", "nice"]);
    let end = repo.state();
    repo.undo();
    repo.state().assert_is(&before, "the branch is gone by whatever name");
    repo.redo();
    repo.state().assert_is(&end, "and has the user's name for it");

    repo.sh("git switch -q main; git merge -q nice; git branch -qd nice");
    repo.undo();
    repo.state().assert_is(&before, "what was merged and deleted is undone on the branch that has it");
    repo.redo();
    repo.assert_file("one.txt", "one\n", "and redone");
    assert_eq!(repo.git(["branch", "--format=%(refname:short)"]).trim(), "main");
}

#[test]
fn a_branch_that_oxundo_started_is_undone_after_a_rename() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    let before = repo.state();
    repo.oxundo(["branch", "br", "1"]).success();
    repo.git(["branch", "-m", "br2"]);
    repo.undo();
    repo.state().assert_is(&before, "it is taken away, and HEAD is back");
}

#[test]
fn only_a_commit_about_the_same_is_an_amended_one() {
    let repo = Sandbox::new();
    let at = "export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'";
    repo.git(["switch", "-q", "-c", "w"]);
    let repo = repo.with_variable("GIT_AUTHOR_DATE", "1700000000 +0000");
    repo.agent("echo one >one.txt");
    repo.sh(&format!(
        "{at}; git switch -q main; git branch -qD w; echo q >q; git add q; git commit -qm own; git switch -qc w"
    ));
    assert_eq!(repo.log()[0]["state"], "undone", "the user's own commit is no copy of the turn's");
    repo.oxundo(["branch", "back", "1"]).success();
    repo.assert_file("one.txt", "one\n", "its work is there");

    let repo = Sandbox::new();
    repo.agent("git commit -q --allow-empty -m empty");
    repo.git(["reset", "-q", "--hard", "HEAD~1"]);
    assert_eq!(repo.log()[0]["state"], "undone", "nor is the commit that it was made on top of");
    repo.redo();
    assert_eq!(repo.git(["log", "-1", "--format=%s"]).trim(), "empty");
}

#[test]
fn a_commit_right_after_a_reset_is_an_amended_one_only_with_something_of_the_turn_in_it() {
    // All of one second: the user's own commit after a reset to below the turn, and whether that is the turn's amended.
    let ways = [
        ("other lines", "git reset -q --hard HEAD~1; sed -i 8s/$/u/ f; git commit -qam mine", false),
        (
            "another file beside",
            "git reset -q --hard HEAD~1; sed -i 8s/$/u/ f; echo u >u; git add u; git commit -qam mine",
            false,
        ),
        ("the same line", "git reset -q --hard HEAD~1; sed -i 2s/$/u/ f; git commit -qam mine", true),
        (
            "the same file made",
            "git reset -q --hard HEAD~1; echo u >one.txt; git add one.txt; git commit -qm mine",
            true,
        ),
        ("amended", "sed -i 8s/$/u/ f; git commit -qam mine --amend", true),
        ("the work again", "git reset -q --soft HEAD~1; sed -i 8s/$/u/ f; git commit -qam mine", true),
    ];
    check_all(ways.map(|way| (way.0.to_owned(), way)), |(_, line, is_amended)| {
        let at = "1700000000 +0000";
        let repo = Sandbox::new().with_variable("GIT_AUTHOR_DATE", at).with_variable("GIT_COMMITTER_DATE", at);
        repo.write("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n").sh("git add -A; git commit -qm files");
        repo.agent("sed -i 2s/$/x/ f; echo one >one.txt");
        repo.sh(line);
        let told = repo.log();
        assert_eq!(told[0]["state"], if *is_amended { "done" } else { "undone" }, "{told:?}");
        if *is_amended {
            repo.refuses(&["undo"], "foreign");
        } else {
            // It is to be had, on a branch of its own.
            repo.refuses(&["redo"], "foreign");
            repo.oxundo(["branch", "turn-1", "1"]).success();
            repo.assert_file("one.txt", "one\n", "its work");
        }
    });
}

#[test]
fn a_reset_into_the_middle_of_a_turn_is_redone_from_there() {
    let repo = Sandbox::new();
    repo.write("mine.txt", "mine\n").sh("git add mine.txt");
    let before = repo.state();
    repo.agent("echo 1 >one.txt; git add -A; git commit -qm one; echo 2 >two.txt; echo 2 >>one.txt");
    let end = repo.state();
    for how in ["hard", "soft", "mixed"] {
        repo.git(["reset", "-q", &format!("--{how}"), "HEAD~1"]);
        repo.redo();
        repo.state().assert_is(&end, &format!("redo goes on from there after reset --{how}"));
    }
    repo.undo();
    repo.state().assert_is(&before, "undo takes all of it back");
}

#[test]
fn a_mixed_reset_below_staged_work_is_no_edit() {
    let repo = Sandbox::new();
    repo.write("a", "1\n2\n3\n").write("b", "b\n").sh("git add -A; git commit -qm files");
    repo.write("a", "one\n2\n3\n").sh("git add a");
    repo.write("b", "mine\n");
    let before = repo.state();
    repo.agent("echo 4 >>a; echo v >f1");
    let end = repo.state();
    repo.git(["reset", "-q", "HEAD~2"]);
    repo.redo();
    repo.state().assert_is(&end, "nothing is in the way");
    repo.undo();
    repo.state().assert_is(&before, "and undo leads to where it began");
}

#[test]
fn a_turn_beside_one_that_stands_on_the_same_dirty_commit_is_gone_to() {
    let repo = Sandbox::new();
    repo.write("README.txt", "mine\n");
    repo.agent("echo one >one.txt");
    let one = repo.state();
    repo.git(["reset", "-q", "--hard", "HEAD~1"]);
    repo.agent("echo two >two.txt").warns("'oxundo redo --to 1' goes back there");
    let two = repo.state();
    repo.oxundo(["redo", "--to", "1"]).success();
    repo.state().assert_is(&one, "the warning's own line works");
    repo.oxundo(["redo", "--to", "2"]).success();
    repo.state().assert_is(&two, "and back");
}

#[test]
fn a_branch_starts_at_a_turn_from_wherever_head_is() {
    let repo = Sandbox::new();
    repo.write("f", "1\n2\n3\n4\n5\n").write("skip.me", "").sh("git add -A; git commit -qm files");
    repo.agent("echo one >one.txt; sed -i s/1/one/ f");
    let one = repo.state();
    repo.undo();
    repo.commit("own.txt", "own\n");
    let own = repo.state();
    let elsewhere = repo.copy();
    let error = repo.refuses(&["redo"], "foreign");
    assert!(error["hints"].to_string().contains("oxundo branch turn-1 1"), "{error}");
    repo.oxundo(["branch", "turn-1", "1"]).success();
    let files = |state: &State| state.clone().only(|fact| fact.starts_with("on disk "));
    files(&repo.state()).assert_is(&files(&one), "the files are the turn's");
    assert_eq!(repo.git(["status", "--porcelain"]), "", "and nothing is uncommitted");
    repo.undo();
    repo.state().assert_is(&own, "undo goes back");
    elsewhere.write("f", "1\n2\n3\n4\nfive\n").write("new", "new\n");
    elsewhere.oxundo(["branch", "turn-1", "1"]).success();
    elsewhere.assert_file("f", "one\n2\n3\n4\nfive\n", "what is uncommitted goes along");
    elsewhere.assert_file("new", "new\n", "and what is untracked");
}

#[test]
fn what_nobody_edited_is_named_by_nobody() {
    let repo = Sandbox::new();
    repo.git(["switch", "-q", "-c", "w"]);
    repo.agent("echo one >one.txt");
    repo.sh("git switch -q main; echo m >m; git add m; git commit -qm m; git merge -q --no-edit w");
    let (code, answer) = repo.json(["undo", "--revert"]);
    assert_eq!((code, &answer["kept_edits"]), (0, &serde_json::json!([])), "{answer}");
}

#[test]
fn a_redo_over_what_was_committed_leads_on() {
    let repo = Sandbox::new();
    repo.write("f", "1\n").sh("git add -A; git commit -qm f");
    repo.turn(Mode::Ghost, "echo 2 >f");
    repo.undo();
    repo.commit("f", "mine\n");
    let error = repo.refuses(&["redo"], "conflict");
    let hints = error["hints"].to_string();
    assert!(!hints.contains("stash") && hints.contains("oxundo restore 1 -- :/f"), "{hints}");
    repo.oxundo(["restore", "1", "--", "f"]).success();
    repo.assert_file("f", "2\n", "the hint leads on");
}

#[test]
fn a_commit_of_the_users_own_that_comes_to_the_same_stays() {
    let by_hand = "echo one >one.txt; git add -A; git -c user.name=Me -c user.email=me@example.com commit -qm mine";
    for git in [format!("git switch -q main; {by_hand}"), format!("git reset -q --hard main; {by_hand}")] {
        let repo = Sandbox::new();
        repo.git(["switch", "-q", "-c", "topic"]);
        repo.agent("echo one >one.txt");
        repo.sh(&git);
        let there = repo.state();
        repo.refuses(&["undo"], "foreign");
        repo.state().assert_is(&there, "no turn made it");
        assert_eq!(repo.log()[0]["state"], "done", "its work is there");
    }
}

#[test]
fn a_turn_whose_commit_got_another_author_or_date_is_undone_and_redone() {
    for how in [
        "commit -q --amend --reset-author --no-edit",
        "commit -q --amend --no-edit --date=2020-01-01T00:00:00",
        "commit -q --amend --no-edit --author='Me <me@example.com>'",
        "rebase -q --ignore-date HEAD~1",
    ] {
        for copies_notes in [false, true] {
            let repo = Sandbox::new();
            if copies_notes {
                repo.git(["config", "notes.rewriteRef", "refs/notes/oxundo"]);
            }
            repo.agent("echo zero >zero.txt");
            let before = repo.state();
            repo.agent("echo one >one.txt");
            repo.git(["config", "user.name", "Somebody Else"]);
            repo.sh(&format!("GIT_COMMITTER_DATE='2030-01-01T00:00:00' git {how}"));
            let end = repo.state();
            assert_eq!(repo.log()[0]["state"], "done", "{how}: its work is there");
            repo.undo();
            repo.state().assert_is(&before, &format!("undo after {how}"));
            repo.redo();
            repo.state().assert_is(&end, &format!("redo brings it back as it was changed: {how}"));
            repo.oxundo(["undo", "--revert"]).success();
            repo.assert_absent("one.txt", "the last turn is taken out");
            repo.assert_file("zero.txt", "zero\n", "and no other");
            repo.assert_sound();
        }
    }
}

#[test]
fn a_branch_at_a_turn_that_is_not_done_has_that_turn() {
    for before in [
        "oxundo undo -q",
        "git reset -q --hard HEAD~1",
        "git reset -q --hard HEAD~1; git commit -q --allow-empty -m own",
        "git reset -q --hard HEAD~1; oxundo run -q -m two -- sh -c 'echo two >two.txt'; oxundo undo -q",
    ] {
        let repo = Sandbox::new();
        repo.agent("echo one >one.txt");
        repo.sh(before);
        let there = repo.state();
        repo.oxundo(["branch", "back", "1"]).success();
        let numbers: Vec<_> = repo.log().iter().map(|line| line["turn"].clone()).collect();
        assert!(numbers.contains(&1.into()), "{before}: {numbers:?}");
        let own = repo.state();
        let error = repo.refuses(&["undo", "--to", "1"], "branch");
        let hint = error["hints"][0].as_str().expect("a hint").to_owned();
        assert!(hint.contains("'oxundo undo && oxundo redo --to 1'"), "{hint}");
        repo.oxundo(["undo"]).success();
        repo.state().assert_is(&there, &format!("undo takes the branch away: {before}"));
        repo.oxundo(["redo"]).success();
        repo.state().assert_is(&own, "and redo brings it back");
    }
}

#[test]
fn a_refusal_names_what_was_asked_for_and_who_made_a_commit() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.agent("echo two >two.txt");
    repo.oxundo(["branch", "ob", "1"]).success();
    repo.git(["commit", "-q", "--allow-empty", "-m", "own"]);
    let error = repo.refuses(&["redo", "--to", "2"], "foreign");
    assert!(error["hints"].to_string().contains("'oxundo branch turn-2 2'"), "{error}");

    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    let linked = repo.linked("linked");
    linked.agent("echo theirs >theirs.txt");
    repo.git(["merge", "-q", "--ff-only", "linked"]);
    let error = repo.refuses(&["undo"], "foreign");
    assert!(error["message"].to_string().contains("was made by turn 1 of the worktree 'linked'"), "{error}");
    let hint = error["hints"][0].as_str().expect("a hint");
    repo.sh(hint.split('\'').nth(1).expect("a line"));
    repo.assert_absent("theirs.txt", "the line of the hint");

    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.undo();
    repo.sh("git checkout -q --orphan o; git rm -rqf .");
    let error = repo.refuses(&["redo"], "branch");
    let hint = error["hints"][0].as_str().expect("a hint").to_owned();
    repo.sh(hint.split('\'').nth(1).expect("a line"));
    repo.oxundo(["redo"]).success();
    repo.assert_file("one.txt", "one\n", "the line of the hint leads on");
}

#[test]
fn no_hint_puts_the_work_of_later_turns_away() {
    let repo = Sandbox::new();
    repo.commit("a.txt", &(1..=20).map(|line| format!("{line}\n")).collect::<String>());
    for turn in 1..=5 {
        repo.turn(Mode::Ghost, &format!("sed -i '{turn}s/^/turn /' a.txt"));
    }
    let error = repo.refuses(&["undo", "--only", "2"], "conflict");
    let hints = error["hints"].to_string();
    assert!(!hints.contains("stash") && hints.contains("'oxundo undo --only 2..5'"), "{hints}");
    repo.oxundo(["undo", "--only", "2..5"]).success();
    repo.assert_file(
        "a.txt",
        (1..=20).map(|line| if line == 1 { "turn 1\n".into() } else { format!("{line}\n") }).collect::<String>(),
        "turn 1 stays",
    );
}

#[test]
fn a_branch_that_is_gone_is_made_again_by_the_line_of_the_hint() {
    for (begin, turn, gone, command) in [
        // As a rename that no reflog tells of.
        ("git branch o", "git switch -q o; echo one >>README.txt", "git branch -q oo o; git branch -qD o", "redo"),
        ("git branch o", "echo one >>README.txt; git commit -qam x; git switch -q o", "git branch -qD main", "undo"),
        (
            ":",
            "git switch -qc theirs; echo one >>README.txt; git commit -qam x",
            "git switch -qc trunk; git branch -qD main",
            "redo",
        ),
    ] {
        let repo = Sandbox::new();
        repo.sh(begin);
        let before = repo.state();
        repo.agent(turn);
        let after = repo.state();
        if command == "redo" {
            repo.undo();
        }
        repo.sh(gone);
        let error = repo.refuses(&[command], "branch");
        let hint = error["hints"][0].as_str().expect("a hint").to_owned();
        repo.sh(hint.split('\'').nth(1).expect("a line to type"));
        repo.oxundo([command]).success();
        let wanted = if command == "redo" { &after } else { &before };
        let files = |state: &State| state.clone().only(|fact| fact.starts_with("on disk") || fact.starts_with("index"));
        files(&repo.state()).assert_is(&files(wanted), &format!("{hint}, and {command} again"));
    }
}

/// What the user does to `main` while HEAD is elsewhere.
const GOES_ON: &str = "git update-ref refs/heads/main $(git commit-tree -p main -m own 'main^{tree}')";

#[test]
fn head_is_led_to_no_branch_that_went_on_or_is_gone() {
    in_both_modes(|mode| {
        for (ends, to) in [("git commit -qam x", "undo"), (":", "undo"), ("git commit -qam x", "redo")] {
            for other in [GOES_ON, "git branch -qD main", "git branch -qm main trunk"] {
                let repo = Sandbox::new();
                // What has another name is led to by that.
                let is_renamed = other.contains("trunk");
                let began = repo.copy();
                if is_renamed {
                    began.sh(other);
                }
                let began = began.state();
                repo.turn(mode, &format!("git switch -qc theirs; echo one >>README.txt; {ends}"));
                if to == "redo" {
                    repo.undo();
                    repo.sh("git branch -q theirs main; git switch -qc elsewhere; git switch -q main");
                }
                let other = if to == "redo" { other.replace("main", "theirs") } else { other.to_owned() };
                repo.sh(&other);
                let before = repo.state();
                let result = repo.oxundo([to]);
                let what = format!("{to} {mode:?} {ends} {other}");
                let branch = repo.git(["symbolic-ref", "--short", "HEAD"]);
                assert!(!repo.git(["rev-parse", "--verify", "-q", "HEAD"]).is_empty(), "HEAD is on a commit: {what}");
                if result.code == 0 {
                    let staged = repo.git(["diff", "--cached", "--name-only", "HEAD"]);
                    let there = match to {
                        "undo" if is_renamed => "trunk",
                        "undo" => "main",
                        _ => "theirs",
                    };
                    assert_eq!((branch.trim(), staged.trim()), (there, ""), "nothing is staged for reversal: {what}");
                    if to == "undo" {
                        repo.state().assert_is(&began, &what);
                    }
                    continue;
                }
                repo.state().assert_is(&before, &format!("a refusal changes nothing: {what}"));
                let hint = result.err().lines().find(|line| line.starts_with("hint: ")).expect("a hint").to_owned();
                if result.err().contains("was not made by a turn") {
                    continue;
                }
                repo.sh(hint.split('\'').nth(1).expect("a line to type"));
                repo.oxundo([to]).success();
                repo.assert_sound();
            }
        }
    });
}

#[test]
fn a_commit_on_the_branch_that_head_is_led_to_is_seen_at_the_last_instant() {
    for in_tables in [false, true] {
        if in_tables && !Sandbox::has_tables() {
            continue;
        }
        let repo = if in_tables { Sandbox::init(&["--ref-format=reftable"]) } else { Sandbox::new() };
        repo.identify();
        repo.commit("a.txt", "a\n");
        repo.agent("git switch -qc theirs; echo one >one.txt");
        repo.git(["config", "oxundo.beforeUndo", &format!("cat >../home/plan; {GOES_ON}")]);
        let before = repo.state();
        repo.oxundo(["undo"]).exits(3);
        let own = |state: &State| state.clone().without("ref refs/heads/main");
        own(&repo.state()).assert_is(&own(&before), "all is as it was, but for the commit");
        assert_eq!(repo.git(["log", "-1", "--format=%s", "main"]).trim(), "own");
    }
}

#[test]
fn redo_above_a_changed_message_takes_no_branch_back_to_before_it() {
    let repo = Sandbox::new();
    repo.agent("echo one >one");
    repo.agent("echo two >two");
    repo.agent("git switch -qc made; echo three >three; git add three; git commit -qm three");
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.git(["commit", "-q", "--amend", "-m", "better"]);
    let (reworded, before) = (repo.head(), repo.state());
    repo.oxundo(["redo", "--steps", "2"]).success();
    repo.git(["merge-base", "--is-ancestor", reworded.trim(), "main"]);
    repo.git(["merge-base", "--is-ancestor", "main", "made"]);
    let end = repo.state();
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.state().assert_is(&before, "undo leads back to the reworded commit");
    repo.oxundo(["redo", "--steps", "2"]).success();
    repo.state().assert_is(&end, "and redo to the same commits");
}

#[test]
fn redo_goes_on_above_a_commit_of_which_only_the_message_was_changed() {
    in_both_modes(|mode| {
        let own = if mode == Mode::Ghost { "; git add -A; git commit -qm own" } else { "" };
        let repo = Sandbox::new();
        repo.turn(mode, &format!("echo one >one.txt{own}"));
        let first = repo.head();
        let first = first.trim();
        repo.write("mine.txt", "mine\n");
        repo.turn(
            mode,
            &format!("echo a >a.txt; git add a.txt; git commit -qm a; git branch made; echo two >two.txt{own}"),
        );
        repo.turn(mode, &format!("echo three >three.txt{own}"));
        let [one, two, three] = [first, "main~1", "main"].map(|end| repo.git(["rev-parse", end]).trim().to_owned());
        let trees = repo.git(["log", "--format=%T %an %ad %s", "main"]);
        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.git(["commit", "-q", "--amend", "--only", "-m", "better"]);
        repo.git(["config", "user.name", "Somebody Else"]);
        let amended = repo.state();
        let (_, plan) = repo.json(["redo", "--dry-run"]);
        let after_two = repo.json(["redo"]).1;
        assert_eq!(plan["head"], after_two["head"], "the plan is what is done");
        let end_of_two = repo.state();
        repo.undo();
        repo.state().assert_is(&amended, &format!("undo leads back to the amended commit ({mode:?})"));
        repo.oxundo(["redo", "--steps", "2"]).success();
        let end = repo.state();
        let now = repo.git(["log", "--format=%T %an %ad %s", "main"]);
        assert_eq!(now.lines().count(), trees.lines().count(), "no commit more or less");
        for (new, old) in now.lines().zip(trees.lines()) {
            assert!(new == old || new.ends_with(" better"), "only the message differs: {new}, {old}");
        }
        assert_eq!(repo.git(["rev-parse", "made"]), repo.git(["rev-parse", "main~2"]), "its branch goes along");
        for (turn, old) in [(1, &one), (2, &two), (3, &three)] {
            let line = repo.log().into_iter().find(|line| line["turn"] == turn).expect("it is there");
            let commits: Vec<String> = line["commits"]
                .as_array()
                .expect("commits")
                .iter()
                .map(|id| id.as_str().expect("an id").to_owned())
                .collect();
            assert!(!commits.contains(old), "the log has the new commits");
            for commit in &commits {
                repo.git(["merge-base", "--is-ancestor", commit, "main"]);
                let note = repo.git(["notes", "--ref=oxundo", "show", commit]);
                assert!(note.contains(&format!("\"turn\":{turn},")), "and so do the notes: {note}");
            }
        }
        repo.prune();
        repo.undo();
        repo.state().assert_is(&end_of_two, "one back");
        repo.undo();
        repo.state().assert_is(&amended, "and one more");
        repo.oxundo(["redo", "--to", "3"]).success();
        repo.state().assert_is(&end, "redo is exact");
        repo.oxundo(["undo", "--to", "0"]).success();
        repo.oxundo(["redo", "--to", "3"]).success();
        repo.state().assert_is(&end, "also from below the amended one");
        repo.assert_sound();
    });
}

#[test]
fn undo_after_a_redo_of_what_was_reset_takes_the_turn_out_and_leaves_what_was_edited_since() {
    let edits = [
        ("nothing", "true", "true"),
        ("the turn's file", "sed -i s/9/nine/ f", "sed -i s/9/nine/ f"),
        ("another file", "echo own >own.txt", "echo own >own.txt"),
        ("staged", "sed -i s/9/nine/ f; git add f", "sed -i s/9/nine/ f; git add f"),
    ];
    in_both_modes(|mode| {
        let own = if mode == Mode::Ghost { "; git add -A; git commit -qm own" } else { "" };
        let done = Sandbox::new();
        done.write("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n").write("gone", "gone\n").sh("git add -A; git commit -qm files");
        let before = done.copy();
        done.turn(mode, &format!("sed -i s/1/one/ f; rm gone; mkdir d; echo new >d/new{own}"));
        let cases = ["soft", "mixed", "keep"].into_iter().flat_map(|how| {
            edits.into_iter().map(move |(name, edit, same)| (format!("{how}, {name}, {mode:?}"), (how, edit, same)))
        });
        check_all(cases, |(how, edit, same)| {
            let (repo, wanted) = (done.copy(), before.copy());
            repo.sh(&format!("git reset -q --{how} HEAD~1; {edit}"));
            let reset = repo.state();
            repo.redo();
            repo.undo();
            wanted.sh(same);
            let there = |repo: &Sandbox| repo.state().only(|fact| fact.starts_with("on disk "));
            there(&repo).assert_is(&there(&wanted), "the turn is out, and the user's edit is there");
            // What the reset had left is in the rescue that redo made; after --keep that is the same.
            if *how != "keep" {
                repo.oxundo(["restore", "--exact", "rescue:1"]).success();
            }
            repo.state().assert_is(&reset, "what was there after the reset can be gone to");
            repo.assert_sound();
        });
    });
}

/// Words the message anew of a commit so far below HEAD, and leaves those above as they were but for their parents.
fn reword(repo: &Sandbox, below: usize) {
    let rebased = repo.try_git([
        "-c",
        "sequence.editor=sed -i '1s/^pick/reword/'",
        "-c",
        "core.editor=sed -i '1s/.*/better/'",
        "rebase",
        "-q",
        "-i",
        &format!("HEAD~{}", below + 1),
    ]);
    rebased.success();
}

#[test]
fn turns_above_a_commit_of_which_only_the_message_was_changed_are_undone_and_redone() {
    in_both_modes(|mode| {
        let own = if mode == Mode::Ghost { "; git add -A; git commit -qm own" } else { "" };
        let done = Sandbox::new();
        done.commit("mine.txt", "mine\n");
        done.turn(mode, &format!("echo one >one.txt{own}"));
        if mode == Mode::Commit {
            done.write("mine.txt", "dirty\n");
        }
        done.turn(
            mode,
            &format!("echo a >a.txt; git add a.txt; git commit -qm a; git branch made; echo two >two.txt{own}"),
        );
        done.turn(mode, &format!("echo three >three.txt{own}"));
        let count: usize = done.git(["rev-list", "--count", "HEAD"]).trim().parse().expect("a number");
        // The user's own, and each of the turns', but for the last one.
        let cases = (1..count - 1).map(|below| (format!("{below} below, {mode:?}"), below));
        check_all(cases, |below| {
            let repo = done.copy();
            if *below == count - 2 {
                // What the user had made of the words before is on it, and on no other branch.
                repo.git(["branch", "-q", "-D", "made"]);
            }
            let made = repo.try_git(["rev-parse", "made"]).out();
            reword(&repo, *below);
            let end = repo.state();
            let bodies = repo.git(["log", "--format=%T %an %ad %s"]);
            repo.prune();
            let (_, plan) = repo.json(["undo", "--dry-run"]);
            let undone = repo.json(["undo"]).1;
            assert_eq!(plan["head"], undone["head"], "the plan is what is done: {undone}");
            assert_eq!(repo.git(["log", "--format=%T %an %ad %s"]), bodies.split_once('\n').expect("lines").1);
            assert_eq!(repo.try_git(["rev-parse", "made"]).out(), made, "what was not worded anew stays");
            repo.redo();
            repo.state().assert_is(&end, "redo brings back what the user had made of it");
            repo.oxundo(["undo", "--steps", "3"]).success();
            repo.assert_absent("one.txt", "all three are undone");
            assert_eq!(
                repo.git(["log", "-1", "--format=%T"]),
                bodies.lines().nth(count - 2).expect("it is there")[..40]
            );
            repo.prune();
            repo.oxundo(["redo", "--to", "3"]).success();
            repo.state().assert_is(&end, "from below it, too");
            repo.assert_sound();
        });
    });
}

#[test]
fn what_was_worded_anew_below_own_commits_or_with_more_than_words_is_refused_and_reverted() {
    in_both_modes(|mode| {
        let own = if mode == Mode::Ghost { "; git add -A; git commit -qm own" } else { "" };
        for more in ["true", "echo x >>one.txt; git commit -q --amend -a --no-edit"] {
            let repo = Sandbox::new();
            repo.turn(mode, &format!("echo one >one.txt{own}"));
            repo.turn(mode, &format!("echo two >two.txt{own}"));
            if more == "true" {
                repo.commit("own.txt", "own\n");
            }
            reword(&repo, 1 + usize::from(more == "true"));
            repo.sh(more);
            repo.refuses(&["undo"], "foreign");
            repo.oxundo(["undo", "--revert"]).success();
            repo.assert_absent("two.txt", "it is taken out on top");
            assert_eq!(repo.exists("own.txt"), more == "true", "what is the user's stays");
        }
    });
}

#[test]
fn turns_in_one_file_that_became_one_commit_are_there_whenever_they_were_made() {
    let repo = Sandbox::new();
    let lines: String = (1..=20).map(|line| format!("{line}\n")).collect();
    repo.commit("f", &lines);
    for (line, token) in [(3, "A1"), (15, "A2")] {
        // One message, as where an agent is given the same prompt twice.
        repo.oxundo(["run", "-m", "m", "--", "sh", "-c", &format!("sed -i '{line}s/.*/{token}/' f")]).success();
    }
    repo.sh("git reset -q --soft HEAD~2; git commit -qm m");
    assert_eq!(standing(&repo, true), [(2, "done".into()), (1, "done".into())]);
    repo.oxundo(["undo", "--only", "1"]).success();
    repo.assert_file("f", lines.replace("15\n", "A2\n"), "the first is taken out");
}

#[test]
fn a_turn_that_was_amended_is_done_wherever_head_has_come_along_to() {
    let ways = [
        "git branch -m t",
        "git switch -q -c u",
        "git switch -q --detach",
        "git switch -q -c u; echo more >more; git add more; git commit -qm more",
    ];
    check_all(ways.map(|line| (line.to_owned(), line)), |line| {
        let repo = Sandbox::new();
        repo.agent("echo one >one.txt");
        repo.agent("echo two >two.txt");
        // One commit of both, with something of the user's.
        repo.sh("echo mine >mine.txt; git add mine.txt; git reset -q --soft HEAD~2; git commit -qm all");
        repo.sh(line);
        assert_eq!(standing(&repo, false), [(2, "done".into()), (1, "done".into())]);
        repo.oxundo(["undo", "--only", "1"]).success();
        assert_eq!(["one.txt", "two.txt", "mine.txt"].map(|file| repo.exists(file)), [false, true, true]);
        // Elsewhere nothing of it is there.
        repo.sh("git switch -qf -c other $(git rev-list --max-parents=0 HEAD)");
        assert!(standing(&repo, true).iter().all(|(turn, state)| *turn == 3 || state != "done"), "{:?}", repo.log());
    });
}

#[test]
fn what_the_user_committed_between_two_turns_that_took_each_other_back_is_neither_of_them() {
    let repo = Sandbox::new();
    repo.commit("b", "b\n");
    repo.sh("git switch -q -c f");
    repo.agent("echo its >>b");
    repo.sh("git switch -q main; echo mine >>README.txt; git commit -qam mine; git merge -q --no-edit f");
    repo.agent("git checkout -q HEAD^1 -- b");
    let after = repo.state();
    repo.sh("git reset -q --hard HEAD~2");
    assert!(standing(&repo, false).iter().all(|(_, state)| state != "done"), "{:?}", repo.log());
    repo.sh("git reset -q --hard @{1}");
    repo.state().assert_is(&after, "and forward again");
    assert_eq!(standing(&repo, false)[0], (2, "done".into()));
}
