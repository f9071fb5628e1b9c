//! What a turn only brings to its branch, as by a pull, a merge or a stash, and what somebody does with its work by git alone: taking the
//! turn out takes out what it made, and nothing else.

use crate::form::part;
use crate::operations::quietly;
use crate::sandbox::{Mode, Sandbox, check_all, in_both_modes};
use crate::steps::{hook, shell};
use serde_json::json;

/// A repository with a file of ten lines, and a remote to which a colleague has pushed a line at its end.
fn team() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("shared", &"line\n".repeat(10));
    repo.sh("git config --global user.name U; git config --global user.email u@example.org");
    repo.sh("git init -q --bare -b main ../up.git; git remote add origin ../up.git; git push -qu origin main
             git clone -q ../up.git ../colleague; cd ../colleague; echo COLLEAGUE >>shared; echo COLLEAGUE >theirs
             git add -A; git commit -qm colleague; git push -q");
    repo
}

/// How an agent gets what the colleague has pushed, what it does beside that, and what the user did before.
const PULLS: &[(&str, &str, &str)] = &[
    ("pulled", "", "git pull -q; echo AGENT >>own"),
    ("pulled into a file of its own", "", "git pull -q; sed -i '1s/.*/AGENT/' shared"),
    ("pulled and committed", "", "git pull -q; sed -i '1s/.*/AGENT/' shared; git commit -qam agent"),
    (
        "merged",
        "git commit -q --allow-empty -m own",
        "git pull -q --no-rebase --no-edit; echo AGENT >own; git add own; git commit -qm a",
    ),
    ("rebased", "echo mine >mine; git add mine; git commit -qm mine", "git pull -q --rebase; echo AGENT >own"),
    (
        "merged into another branch",
        "git switch -qc feat",
        "git fetch -q; git merge -q --no-edit origin/main; echo AGENT >own",
    ),
    (
        "rebased another branch",
        "git switch -qc feat; echo mine >mine; git add mine; git commit -qm mine",
        "git fetch -q; git rebase -q origin/main; echo AGENT >own",
    ),
    (
        "a conflict was resolved",
        "git pull -q; echo mine >>shared; git commit -qam mine; cd ../colleague; git pull -q; echo THEIRS >>shared; git commit -qam more; git push -q",
        "git pull -q --no-rebase --no-edit || :; git checkout -q --theirs shared; git add shared; git commit -qm merged; echo AGENT >>README.txt; git commit -qam a",
    ),
    (
        "merged from another remote",
        "git clone -q --bare ../up.git ../fork.git; git remote rename origin upstream; git remote add origin ../fork.git; git switch -qc feat; git branch -qD main",
        "git fetch -q upstream; git merge -q upstream/main; echo AGENT >own",
    ),
    (
        "merged into a detached HEAD",
        "git switch -q --detach",
        "git fetch -q; git merge -q origin/main; echo AGENT >own",
    ),
    ("main was pulled before", "git pull -q; git switch -qc feat HEAD~1", "git merge -q main; echo AGENT >own"),
];

#[test]
fn what_a_turn_pulled_stays_where_it_is_taken_out() {
    check_all(PULLS.iter().map(|(name, own, script)| ((*name).to_owned(), (*own, *script))), |(own, script)| {
        in_both_modes(|mode| {
            for args in [&["undo", "--revert"][..], &["undo", "--only", "1"]] {
                let repo = team();
                repo.sh(own);
                repo.turn(mode, script);
                let before = repo.state();
                let output = repo.oxundo(args);
                output.success();
                output.warns(") stays: turn 1 brought it, and has not made it");
                if script.contains("--theirs") {
                    output.warns("what turn 1 did to 'shared' stays: it has merged it with what others did");
                }
                assert_eq!(repo.sh("grep -rl --exclude-dir=.git AGENT . || :"), "", "what it made is out");
                // In the files, the index and the commits alike.
                for at in ["cat", "git show :", "git show HEAD:"] {
                    let file = |name: &str| repo.sh(&format!("{}{name}", if at == "cat" { "cat " } else { at }));
                    let there = |name: &str| repo.sh(&format!("git --git-dir=../up.git show main:{name}"));
                    assert_eq!([file("shared"), file("theirs")], [there("shared"), there("theirs")], "{at}");
                }
                repo.redo();
                repo.state().assert_is(&before, "brought back");
                repo.assert_sound();
            }
        });
    });
}

/// What a turn leaves in the middle of a merge, by what that is concluded, and the numbers of the turns until then.
const CONCLUDED: &[(&str, &str, &str)] = &[
    ("the user resolved the conflict", "git merge -q origin/main", "echo BOTH >>shared; git commit -qam merged"),
    (
        "beside new files of the agent's",
        "echo AGENT >agents; git merge -q origin/main",
        "echo BOTH >>shared; git commit -qam merged",
    ),
    (
        "the user took theirs",
        "git merge -q origin/main",
        "git checkout -q --theirs shared; git add shared; GIT_EDITOR=true git merge --continue >../said",
    ),
    (
        "nothing overlapped",
        "git merge -q --no-commit -s ours origin/main; git checkout -q origin/main theirs",
        "git commit -qm merged",
    ),
    ("pulled", "git pull -q --no-rebase", "git add -A; git commit -qm merged"),
];

#[test]
fn what_came_by_a_merge_that_the_user_has_concluded_stays() {
    check_all(CONCLUDED.iter().map(|(name, script, by)| ((*name).to_owned(), (*script, *by))), |(script, by)| {
        in_both_modes(|mode| {
            for args in [
                &["undo"][..],
                &["undo", "--revert"],
                &["undo", "--only", "1"],
                &["undo", "--", "README.txt", "theirs", "agents"],
            ] {
                let repo = team();
                repo.sh("echo MINE >>shared; git commit -qam mine");
                repo.turn(
                    mode,
                    &format!("git fetch -q; {script} >../said 2>&1 || :; sed -i '1s/^/AGENT /' README.txt"),
                );
                // What is not the merge's stays out of its commit, as where the user takes the files one by one.
                repo.sh(&format!(
                    "cp README.txt ../agents; git show HEAD:README.txt >README.txt; {by}; cp ../agents README.txt"
                ));
                let before = repo.state();
                let output = repo.oxundo(args);
                output.success();
                if args.len() < 3 || args[1] == "--only" {
                    output.warns("(colleague) stays: turn 1 brought it, and has not made it");
                }
                assert_eq!(repo.sh("grep -rl --exclude-dir=.git AGENT . || :"), "", "what it made is out");
                assert_eq!(repo.sh("git status --porcelain"), "", "all else is as it was committed");
                repo.redo();
                repo.state().assert_is(&before, "brought back");
                repo.assert_sound();
            }
        });
    });
}

/// What an agent does beside a pull that stops at a conflict as it rebases the user's two commits.
const STOPPED_PULLS: &[(&str, &str)] = &[
    ("nothing", "git pull -q --rebase"),
    ("a file of its own", "git pull -q --rebase; echo AGENT >own"),
    ("an edit before", "echo AGENT >>README.txt; git pull -q --rebase --autostash"),
    ("a commit before", "echo AGENT >own; git add own; git commit -qm agent; git pull -q --rebase"),
    ("half of the conflict", "git pull -q --rebase; sed -i 's/MINE/MINE AND AGENT/' shared"),
];

#[test]
fn what_the_user_had_committed_stays_where_a_turn_left_a_rebase_of_it_that_they_have_gone_on_with() {
    let go_on =
        "sed -i '/^[<=>]\\{7\\}/d; s/ AND AGENT//' shared; git add shared; GIT_EDITOR=true git rebase --continue";
    check_all(STOPPED_PULLS.iter().map(|(name, script)| ((*name).to_owned(), *script)), |script| {
        in_both_modes(|mode| {
            for args in [&["undo", "--only", "1"][..], &["undo", "--revert"]] {
                let repo = team();
                repo.sh("echo ONE >one; git add one; git commit -qm one; echo MINE >>shared; git commit -qam mine
                         echo TWO >two; git add two; git commit -qm two");
                repo.turn(mode, &quietly(&format!("({script}) || :")));
                repo.sh(&quietly(go_on));
                let (before, had) = (repo.state(), |name: &str| repo.sh(&format!("git show HEAD:{name}")));
                let files = ["one", "two", "theirs", "shared"].map(|name| (name, had(name)));
                let output = repo.oxundo(args);
                assert!(output.code == 0 || output.err().contains("nothing to undo"), "{output:?}");
                assert_eq!(repo.sh("grep -rl --exclude-dir=.git AGENT . || :"), "", "what it made is out");
                for (name, was) in &files {
                    assert_eq!(repo.sh(&format!("cat {name}")), *was, "{name}");
                    assert_eq!(had(name), *was, "{name}");
                }
                assert_eq!(repo.sh("git status --porcelain"), "", "and nothing is staged");
                if output.code == 0 {
                    repo.redo();
                    repo.state().assert_is(&before, "brought back");
                }
                repo.assert_sound();
            }
        });
    });
}

/// The user's rebase has stopped at a conflict in a.txt: `main` onto `side`, which has b.txt and d.txt as well. Something of theirs is
/// uncommitted.
fn stopped() -> Sandbox {
    let repo = Sandbox::new();
    repo.sh("for f in a b c; do seq 20 >$f.txt; done; git add -A; git commit -qm files; git branch side
        sed -i 5s/.*/USER1/ a.txt; git commit -qam own; git switch -q side
        sed -i 5s/.*/SIDE1/ a.txt; echo SIDE2 >>b.txt; echo SIDE3 >d.txt; git add -A; git commit -qm side; git switch -q main
        sed -i 2s/.*/USER2/ c.txt; git rebase -q --autostash side || :");
    repo
}

/// A turn by hooks: a `run` begins no other in the middle of a rebase.
fn turn_by_hooks(repo: &Sandbox, mode: Mode, command: &str) {
    repo.git(["config", "oxundo.mode", if mode == Mode::Ghost { "ghost" } else { "commit" }]);
    hook(repo, "s", "UserPromptSubmit", &json!({}));
    shell(repo, 1, command);
    hook(repo, "s", "Stop", &json!({}));
}

#[test]
fn what_git_had_stashed_of_the_users_stays_where_the_turn_that_ended_their_rebase_is_taken_out() {
    let ends = [
        "sed -i '/^[<=>]/d' a.txt; git add a.txt; GIT_EDITOR=true git rebase --continue",
        "git rebase --abort",
        "git rebase --abort; sed -i 15s/.*/AGENT/ c.txt",
    ];
    let ways: [&[&str]; 3] = [&["undo", "--only", "1"], &["undo", "--revert"], &["undo", "--", ":/"]];
    let stories = ends.into_iter().flat_map(|end| ways.map(|way| (end, way)));
    for (mode, (end, way)) in part(stories.flat_map(|story| Mode::BOTH.map(|mode| (mode, story)))) {
        let name = format!("{mode:?}: {end}: {way:?}");
        let repo = stopped();
        turn_by_hooks(&repo, mode, &format!("{end}; echo AGENT >its.txt"));
        let after = repo.state();
        repo.oxundo(way).success();
        let left = repo.sh("cat c.txt; ls");
        assert!(left.contains("USER2") && !left.contains("AGENT") && !left.contains("its.txt"), "{name}: {left}");
        repo.redo();
        repo.state().assert_is(&after, &name);
        repo.assert_sound();
    }
}

/// Git leaves it in the stash list then.
#[test]
fn what_git_had_stashed_of_the_users_and_could_not_bring_back_stays_in_the_stash_list() {
    let ways: [&[&str]; 2] = [&["undo", "--only", "1"], &["undo", "--revert"]];
    for (mode, way) in Mode::BOTH.into_iter().flat_map(|mode| ways.map(|way| (mode, way))) {
        let repo = stopped();
        repo.sh("git rebase --abort; git stash -q; git switch -q side; sed -i 2s/.*/SIDE4/ c.txt; git commit -qam more; git switch -q main
            git stash pop -q; git rebase -q --autostash side || :");
        turn_by_hooks(
            &repo,
            mode,
            "sed -i '/^[<=>]/d' a.txt; git add a.txt; GIT_EDITOR=true git rebase --continue; echo AGENT >its.txt",
        );
        let (after, list) = (repo.state(), repo.sh("git stash list; git stash show -p"));
        assert!(list.contains("+USER2"), "{list}");
        repo.oxundo(way).success();
        assert_eq!(repo.sh("git stash list; git stash show -p"), list, "{mode:?}: {way:?}");
        repo.assert_absent("its.txt", &format!("{mode:?}: {way:?}"));
        repo.redo();
        repo.state().assert_is(&after, &format!("{mode:?}: {way:?}"));
        repo.assert_sound();
    }
}

#[test]
fn what_was_there_in_the_middle_of_the_users_rebase_stays_where_the_turn_that_ended_it_is_taken_out() {
    let ways: [&[&str]; 2] = [&["undo", "--only", "1"], &["undo", "--revert"]];
    for (mode, way) in Mode::tried().into_iter().flat_map(|mode| ways.map(|way| (mode, way))) {
        let repo = stopped();
        // Not the main branch, whose commits are others' in any case.
        repo.sh("git rebase --abort; git stash -q; git branch -m main own; git rebase -q side || :");
        let end = "sed -i '/^[<=>]/d' a.txt; git add a.txt; GIT_EDITOR=true git rebase --continue; echo AGENT >its.txt";
        turn_by_hooks(&repo, mode, end);
        let after = repo.state();
        repo.oxundo(way).success();
        let left = repo.sh("cat b.txt d.txt; ls");
        let stays = left.contains("SIDE2") && left.contains("SIDE3");
        assert!(stays && !left.contains("its.txt"), "{mode:?}: {way:?}: {left}");
        repo.redo();
        repo.state().assert_is(&after, &format!("{mode:?}: {way:?}"));
        repo.assert_sound();
    }
}

/// The branch is not in the middle of anything: what git had stashed for that is in the stash list, as where git cannot bring it back.
#[test]
fn what_git_had_stashed_of_the_users_is_in_the_stash_list_where_a_branch_begins_before_it_came_back() {
    let ends = [
        "sed -i '/^[<=>]/d' a.txt; git add a.txt; GIT_EDITOR=true git rebase --continue",
        "git rebase --abort; sed -i 15s/.*/AGENT/ c.txt",
    ];
    for (mode, end) in part(ends.into_iter().flat_map(|end| Mode::BOTH.map(|mode| (mode, end)))) {
        let repo = stopped();
        turn_by_hooks(&repo, mode, &format!("{end}; echo AGENT >its.txt"));
        let after = repo.state();
        let output = repo.oxundo(["branch", "new", "0"]);
        output.success();
        assert!(repo.sh("git stash show -p").contains("+USER2"), "{mode:?}: {end}: {output:?}");
        assert_eq!(repo.sh("git stash list"), "stash@{0}: autostash", "{mode:?}: {end}");
        repo.undo();
        repo.state().assert_is(&after, &format!("{mode:?}: {end}"));
        repo.assert_sound();
    }
}

/// In a copy of the repository nobody trusts the record of what git was in the middle of.
#[test]
fn what_git_may_have_stashed_of_the_users_stays_in_a_copy_of_the_repository() {
    for mode in Mode::BOTH {
        let repo = stopped();
        turn_by_hooks(&repo, mode, "git rebase --abort; sed -i 15s/.*/AGENT/ a.txt; git commit -qm its a.txt");
        for way in ["undo --only 1", "undo --revert", "undo -- :/"] {
            repo.sh(&format!("rm -rf ../copy; cp -r . ../copy; cd ../copy; oxundo {way} >../said 2>&1"));
            assert!(repo.sh("cat ../copy/c.txt").contains("USER2"), "{mode:?}: {way}");
            assert!(!repo.sh("cat ../copy/a.txt").contains("AGENT"), "{mode:?}: {way}: what is committed is taken out");
        }
    }
}

/// What the user had stashed is nowhere else, once the files go that it came back to.
#[test]
fn a_stash_entry_that_a_turn_popped_comes_back_by_each_way_to_take_that_out() {
    let ways: [&[&str]; 8] = [
        &["undo"],
        &["undo", "--only", "1"],
        &["undo", "--revert"],
        &["undo", "--", "b.txt"],
        &["undo", "--", ":/"],
        &["branch", "new", "0"],
        &["restore", "--exact", "1:before"],
        &["restore", "--exact", "mine"],
    ];
    for way in ways {
        let repo = Sandbox::new();
        repo.commit("a.txt", "a\n");
        repo.commit("b.txt", "b\n");
        repo.git(["config", "oxundo.mode", "ghost"]);
        repo.sh("echo USER1 >>b.txt; echo USER2 >u.txt; git stash -q -u; echo USER3 >>a.txt; git stash -q");
        let list = repo.sh("git stash list");
        repo.oxundo(["checkpoint", "-m", "mine"]).success();
        turn_by_hooks(&repo, Mode::Ghost, "git stash pop -q stash@{1}; echo AGENT1 >>a.txt");
        let after = repo.state();
        repo.oxundo(way).success();
        assert_eq!(repo.sh("git stash list"), list, "{way:?}");
        assert_eq!(repo.sh("cat b.txt"), "b", "{way:?}");
        // What oxundo made is undone, what it undid is redone.
        repo.oxundo([if way[0] == "undo" { "redo" } else { "undo" }]).success();
        repo.state().assert_is(&after, &format!("{way:?}"));
        repo.assert_sound();
    }
}

/// What was being merged is so again, and nobody loses anything of it.
#[test]
fn a_merge_of_others_work_that_the_user_began_and_a_turn_ended_goes_with_undo_and_the_turns_below_it() {
    for mode in Mode::BOTH {
        let repo = team();
        repo.turn(mode, "echo AGENT >own.txt");
        repo.sh("echo MINE >>shared; git commit -qam mine; git pull -q --no-rebase >../said 2>&1 || :");
        let merging = repo.state();
        turn_by_hooks(&repo, mode, "sed -i '/^[<=>]/d' shared; git add shared; git commit -qm merged");
        let merged = repo.state();
        repo.undo();
        repo.state().assert_is(&merging, &format!("{mode:?}: it is being merged"));
        let output = repo.oxundo(["redo"]);
        output.success();
        assert!(output.err().contains("'oxundo undo' takes it back"), "{mode:?}: {output:?}");
        repo.state().assert_is(&merged, "redone");
        if mode == Mode::Commit {
            continue;
        }
        repo.oxundo(["undo", "2"]).success();
        let both = repo.state();
        repo.oxundo(["redo", "2"]).success();
        repo.state().assert_is(&merged, "both redone");
        repo.undo();
        repo.undo();
        repo.state().assert_is(&both, "one by one it is the same");
        assert!(!repo.exists("own.txt"), "the one below is undone, too");
        repo.assert_sound();
    }
}

/// Of a turn that did nothing but begin the merge nothing is left to take out. The turn below can be undone all the same.
#[test]
fn a_turn_that_only_began_a_merge_is_passed_over_by_undo() {
    let repo = team();
    repo.sh("echo MINE >>shared; git commit -qam mine");
    repo.turn(Mode::Ghost, "echo AGENT >own");
    repo.turn(Mode::Ghost, "git pull -q --no-rebase >../said 2>&1 || :");
    repo.sh("git checkout -q --theirs shared; git add shared; git commit -qm merged");
    let refusal = repo.refuses(&["undo", "--revert"], "nothing");
    let line = refusal["hints"][0].as_str().and_then(|hint| hint.split('\'').nth(1)).expect("a line");
    assert!(line.starts_with("git revert -m 1 --no-edit "), "{line}");
    let output = repo.oxundo(["undo"]);
    output.success();
    output.warns("(colleague) stays: turn 2 brought it, and has not made it");
    assert_eq!(repo.sh("git status --porcelain"), "?? own");
    repo.undo();
    assert_eq!(repo.sh("git status --porcelain"), "");
    assert_eq!(repo.sh("git show origin/main:shared"), repo.sh("cat shared"));
}

/// Where a turn has put the user's own work together with another branch and deleted theirs, that is the only one that has it.
#[test]
fn the_users_branch_that_a_turn_took_into_its_own_commit_comes_back_with_the_turn_taken_out() {
    let cases = [
        ("squashed", "git merge -q --squash topic; git commit -qm squashed; git branch -qD topic"),
        (
            "rebased",
            "git switch -q topic; git rebase -q main; git switch -q main; git merge -q topic; git branch -qd topic",
        ),
        ("picked", "git cherry-pick topic >../said; git branch -qD topic"),
    ];
    check_all(cases.map(|(name, script)| (name.to_owned(), script)), |script| {
        for args in [&["undo", "--revert"][..], &["undo", "--only", "1"]] {
            let repo = Sandbox::new();
            repo.sh("git switch -qc topic; echo USER >users; git add users; git commit -qm topic; git switch -q main
                     echo other >other; git add other; git commit -qm other");
            repo.agent(script);
            let before = repo.state();
            repo.oxundo(args).success();
            repo.assert_absent("users", "it is out");
            assert_eq!(repo.sh("git show topic:users"), "USER");
            repo.redo();
            repo.state().assert_is(&before, "brought back");
            repo.assert_sound();
        }
    });
}

/// However many turns of it are taken out: nothing else has what the user had uncommitted there.
#[test]
fn a_branch_with_the_users_work_comes_back_as_it_was_deleted_with_several_turns_taken_out() {
    for begun in [":", "echo USER0 >zero; git add zero; git commit -qm zero"] {
        for makes in [["git switch -qc topic", begun], [begun, "git switch -qc topic"]] {
            let repo = Sandbox::new();
            repo.sh(&makes.join("; "));
            repo.agent("echo AGENT1 >one");
            repo.sh("echo USER1 >>README.txt");
            repo.agent(
                "git switch -q main; git merge -q --squash topic; git commit -qm squashed; git branch -qD topic",
            );
            let before = repo.state();
            let done = repo.oxundo(["undo", "--revert", "2"]);
            done.success();
            assert!(!repo.exists("one") && !repo.sh("cat README.txt").contains("USER1"), "both are out of main");
            assert!(repo.sh("git show topic:README.txt").contains("USER1"), "{done:?}");
            done.warns("'topic' comes back as it was when it was deleted: it has commits of yours");
            repo.redo();
            repo.state().assert_is(&before, "brought back");
            repo.assert_sound();
        }
    }
}

/// What others have of it by now they have without it.
#[test]
fn a_branch_that_was_made_again_goes_with_redo_though_it_is_published() {
    let repo = Sandbox::new();
    repo.sh("git init -q --bare ../up.git; git remote add origin ../up.git; git push -q origin main
             git switch -qc topic; echo USER >users; git add users; git commit -qm topic");
    repo.agent("echo ITS >its");
    repo.sh("git push -q origin topic; echo USER >>users");
    repo.agent("echo ITS >>its; git commit -qam its; git switch -q main; git merge -q --squash topic; git commit -qm squashed; git branch -qD topic");
    let before = repo.state();
    repo.oxundo(["undo", "--revert"]).success();
    repo.assert_absent("its", "it is out");
    assert_eq!(repo.sh("git show topic:users"), "USER\nUSER", "and on its branch");
    repo.redo();
    repo.state().assert_is(&before, "brought back");
    repo.assert_sound();
}

/// The branch has its name no more: the line that is named has its commits again.
#[test]
fn where_the_name_of_a_branch_is_taken_the_line_that_brings_its_commits_back_is_named() {
    for taken in ["git branch topic", "git branch topic/x", "git branch kept; git worktree add -q -b topic ../linked"] {
        let repo = Sandbox::new();
        repo.sh("git switch -qc topic; echo USER >users; git add users; git commit -qm topic; git switch -q main");
        repo.agent("git merge -q --squash topic; git commit -qm squashed; git branch -qD topic");
        repo.sh(taken);
        let output = repo.oxundo(["undo", "--revert"]);
        output.success();
        output.warns("'topic' was deleted, and nothing else has its commits: 'git branch topic-kept ");
        let said = output.err();
        let line = said.split('\'').find(|part| part.starts_with("git branch ")).expect("a line");
        repo.sh(line);
        assert_eq!(repo.sh("git show topic-kept:users"), "USER");
    }
}

/// The agent has deleted it everywhere: by when the files were written can be seen that it has not made it.
#[test]
fn a_colleagues_branch_that_a_turn_took_in_and_deleted_on_the_remote_is_not_the_turns() {
    let cases = [
        ("fast-forward", "git merge -q --ff-only origin/theirs"),
        ("merge", "git merge -q --no-ff --no-edit origin/theirs"),
        ("rebase", "git rebase -q origin/theirs"),
    ];
    check_all(cases.map(|(name, script)| (name.to_owned(), script)), |script| {
        in_both_modes(|mode| {
            let repo = team();
            repo.sh("git pull -q; cd ../colleague; git switch -qc theirs; echo COLLEAGUE >branch; git add branch
                     git commit -qm branch; git push -q origin theirs; cd ../repo; git fetch -q
                     find .git/objects -type f -exec touch -d '1 hour ago' {} +");
            repo.turn(mode, &format!("{script}; git push -q origin --delete theirs 2>../said; echo AGENT >>shared"));
            let note = repo.sh("git log --notes=oxundo --grep='^branch$' --format=%N");
            assert!(!note.contains(r#""kind":"agent""#), "{note}");
            let before = repo.state();
            let output = repo.oxundo(["undo", "--revert"]);
            output.success();
            output.warns("(branch) stays: turn 1 brought it, and has not made it");
            assert_eq!(repo.sh("cat branch"), "COLLEAGUE");
            assert_eq!(repo.sh("grep AGENT shared || :"), "");
            repo.redo();
            repo.state().assert_is(&before, "brought back");
        });
    });
}

/// Another program makes a branch of that name as undo is about to: it stays, and all else is as it was.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_branch_that_somebody_makes_while_undo_brings_it_back_stays() {
    let repo = Sandbox::new();
    repo.sh("git switch -qc topic; echo USER >users; git add users; git commit -qm topic; git switch -q main");
    repo.agent("git merge -q --squash topic; git commit -qm squashed; git branch -qD topic");
    let head = repo.head();
    let makes = || drop(repo.git(["branch", "topic", "main"]));
    let mut command = repo.launched_command(crate::tracer::LAUNCH, &["undo", "--revert"]);
    let Ok(trace) = crate::tracer::interrupt_at_opening(&mut command, "refs/heads/topic.lock", 0, &makes) else {
        return crate::sandbox::announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
    };
    assert_eq!(trace.code, Some(3), "{}", trace.stderr);
    assert_eq!(repo.sh("git rev-parse main topic; cat users"), format!("{head}\n{head}\nUSER"));
    repo.assert_sound();
}

/// A turn that began the merge of a local branch and the one that concluded it are taken out together: all of it goes.
#[test]
fn what_one_turn_began_to_merge_and_the_next_concluded_goes_with_both() {
    let repo = Sandbox::new();
    repo.sh("git switch -qc topic; echo THEIRS >README.txt; echo THEIRS >theirs; git add -A; git commit -qm topic
             git switch -q main; echo OURS >README.txt; git commit -qam ours");
    let files = repo.files();
    repo.turn(Mode::Commit, "git merge -q topic >../said 2>&1 || :");
    repo.turn(Mode::Ghost, "echo BOTH >README.txt; git add README.txt; git commit -qm merged");
    let output = repo.oxundo(["undo", "--revert", "--steps", "2"]);
    output.success();
    assert!(!output.err().contains("stays"), "{}", output.err());
    assert_eq!(repo.files(), files);
}

/// A branch of the turns' own does not come back.
#[test]
fn a_branch_that_one_turn_made_and_the_next_one_deleted_stays_away() {
    let repo = Sandbox::new();
    repo.agent("git switch -qc topic; echo AGENT >agents; git add agents; git commit -qm topic; git switch -q main");
    repo.agent("git merge -q --squash topic; git commit -qm squashed; git branch -qD topic");
    repo.oxundo(["undo", "--revert", "--steps", "2"]).success();
    repo.assert_absent("agents", "it is out");
    assert_eq!(repo.sh("git branch --format='%(refname:short)'"), "main");
}

#[test]
fn a_turn_that_only_pulled_has_nothing_to_take_out() {
    in_both_modes(|mode| {
        let repo = team();
        repo.turn(mode, "git pull -q");
        let refusal = repo.refuses(&["undo", "--revert"], "nothing");
        assert_eq!(refusal["message"], "nothing to undo: the turn only brought what others have made");
    });
}

#[test]
fn above_another_turn_the_hint_names_that_where_the_last_one_only_pulled() {
    let repo = team();
    repo.turn(Mode::Ghost, "git fetch -q; echo ITS >>shared; git commit -qam its; git push -q --force");
    repo.sh("cd ../colleague; git fetch -q; git reset -q --hard origin/main; echo MORE >more; git add more; git commit -qm more; git push -q");
    repo.turn(Mode::Ghost, "git pull -q");
    let hints = repo.refuses(&["undo"], "published")["hints"].to_string();
    assert!(hints.contains("'oxundo undo --only 1' to take out turn 1") && !hints.contains("--revert"), "{hints}");
    repo.oxundo(["undo", "--only", "1"]).success();
    assert_eq!(repo.sh("tail -1 shared; cat more"), "line\nMORE");
}

/// The line of the hint takes out the whole merge.
#[test]
fn a_turn_that_only_merged_names_the_line_that_takes_the_merge_out() {
    let repo = team();
    repo.sh(
        "git pull -q; git switch -qc feat; echo USER >users; git add users; git commit -qm feat; git switch -q main",
    );
    repo.agent("git merge -q --no-ff --no-edit feat; git push -q; git branch -qd feat");
    let refusal = repo.refuses(&["undo", "--revert"], "nothing");
    let line = refusal["hints"][0].as_str().and_then(|hint| hint.split('\'').nth(1)).expect("a line");
    repo.sh(line);
    repo.assert_absent("users", "it is out");
}

/// What is on a branch that is there still goes with the merge that brought it; what nothing else has any more stays.
#[test]
fn what_a_turn_picked_of_others_stays_once_the_user_has_pulled_it() {
    let picks = ["git cherry-pick -n origin/main", "git merge -q --squash origin/main"];
    let pulls = ["git pull -q --rebase", "git pull -q --no-rebase --no-edit", "git pull -q --rebase; git push -q"];
    let ways: [&[&str]; 2] = [&["undo", "--only", "1"], &["undo", "--revert"]];
    let cases = picks.into_iter().flat_map(|pick| pulls.map(|pull| (format!("{pick}; {pull}"), (pick, pull))));
    check_all(cases, |(pick, pull)| {
        for way in ways {
            let repo = team();
            repo.sh("cd ../colleague; seq 30 >numbers; git add -A; git commit -qm numbers
                     sed -i '8s/.*/PICKED/' numbers; echo PICKED >picked; git add -A
                     GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' git commit -qm picked; git push -q");
            repo.sh("git pull -q; git reset -q --hard HEAD~; echo mine >mine; git add mine; git commit -qm mine");
            repo.agent(&format!("{pick}; sed -i '1s/.*/AGENT/' numbers; git add -A; git commit -qm agent"));
            repo.sh("cd ../colleague; sed -i '20s/.*/LATER/' numbers; git commit -qam later; git push -q");
            repo.sh(pull);
            let before = repo.state();
            let done = repo.oxundo(way);
            done.success();
            let left = repo.sh("git show HEAD:numbers HEAD:picked HEAD:mine; cat numbers picked");
            assert_eq!([left.matches("PICKED").count(), left.matches("LATER").count()], [4, 2], "{done:?}");
            assert!(!left.contains("AGENT") && left.contains("mine"), "{left}");
            assert!(done.err().contains("(picked) stays: turn 1 brought it"), "{done:?}");
            repo.redo();
            repo.state().assert_is(&before, "redo brings it back");
            repo.assert_sound();
        }
    });
}

#[test]
fn what_others_made_of_a_turn_and_published_is_taken_out_with_it() {
    let brings = ["git merge -q --no-edit --no-ff origin/topic", "git cherry-pick origin/topic"];
    for brings in brings {
        let repo = team();
        repo.sh("git pull -q; seq 30 >numbers; git add -A; git commit -qm numbers; git push -q; git switch -qc topic");
        repo.agent("sed -i '1s/.*/AGENT/' numbers");
        repo.sh("git push -q origin topic");
        repo.sh(&format!(
            "cd ../colleague; git pull -q; {brings}; sed -i '20s/.*/THEIRS/' numbers; git commit -qam theirs; git push -q"
        ));
        repo.sh("git switch -q main; git pull -q");
        repo.oxundo(["undo", "--only", "1"]).success();
        assert_eq!(repo.sh("grep -c AGENT numbers || :; grep -c THEIRS numbers"), "0\n1", "{brings}");
        repo.assert_sound();
    }
}

#[test]
fn what_is_nowhere_else_stays_where_the_turn_that_merged_it_is_taken_out() {
    for (and, stays) in
        [("git branch -qD topic", true), ("git branch -qD topic; git branch release", true), ("true", false)]
    {
        let repo = Sandbox::new();
        repo.sh("git switch -qc topic; echo USER >users; git add users; git commit -qm topic; git switch -q main");
        repo.agent("git merge -q --no-ff --no-edit topic; echo AGENT >agents");
        repo.sh(and);
        repo.oxundo(["undo", "--revert"]).success();
        repo.assert_absent("agents", "it is the turn's");
        assert_eq!(repo.sh("cat users 2>/dev/null || git show topic:users"), "USER");
        assert_eq!(repo.exists("users"), stays, "{and}");
    }
}

/// It is in the dirty commit, on the branch that the turn merged.
#[test]
fn what_was_uncommitted_on_a_branch_stays_where_the_turn_that_merged_that_is_taken_out() {
    let merges = ["git merge -q topic", "git commit -q --allow-empty -m its; git merge -q --no-edit topic"];
    for (merges, undo) in merges.into_iter().flat_map(|it| ["--revert", "--only=1"].map(|undo| (it, undo))) {
        let repo = Sandbox::new();
        repo.sh("git switch -qc topic; echo OWN >own; git add own; git commit -qm own; echo USER >>README.txt");
        repo.agent(&format!("git switch -q main; {merges}; git branch -qD topic; echo AGENT >agents"));
        let done = repo.state();
        repo.oxundo(["undo", undo]).success();
        repo.assert_absent("agents", "it is the turn's");
        assert_eq!(repo.sh("cat own; tail -1 README.txt; git status --short"), "OWN\nUSER", "{merges}: {undo}");
        repo.undo();
        repo.state().assert_is(&done, undo);
    }
}

/// The user's stash entry that a turn popped or dropped comes back where that is taken out alone, and what it stashed goes.
#[test]
fn the_stash_is_as_without_the_turn_where_that_is_taken_out() {
    let cases = [
        ("popped", "git stash pop -q; echo AGENT >>own"),
        ("dropped", "git stash drop -q; echo AGENT >>own"),
        ("made", "echo AGENT >made; git stash -qu; echo AGENT >>other"),
    ];
    check_all(cases.map(|(name, script)| (name.to_owned(), script)), |script| {
        in_both_modes(|mode| {
            let repo = Sandbox::new();
            repo.sh("echo USER >>README.txt; git stash -q");
            let stash = repo.git(["stash", "list"]);
            repo.turn(mode, script);
            repo.turn(mode, "echo later >later");
            let before = repo.state();
            let words = repo.oxundo(["undo", "--only", "1"]).out();
            assert!(
                words.contains(if script.contains("made") { "a stash entry goes" } else { "a stash entry comes back" }),
                "{words}"
            );
            assert_eq!(repo.git(["stash", "list"]), stash);
            assert_eq!(repo.sh("grep -rl --exclude-dir=.git 'AGENT\\|USER' . || :"), "");
            repo.assert_file("later", "later\n", "it stays");
            repo.redo();
            repo.state().assert_is(&before, "brought back");
            repo.assert_sound();
        });
    });
}

/// A ghost turn of which the user has staged what, and what is to be staged once it is undone.
const STAGED: &[(&str, &str, &str)] = &[
    ("all of it", "git add -A", ""),
    ("with an edit of the user's in it", "sed -i '9s/.*/USER/' file; git add -A", "file: USER"),
    (
        "only what the user wrote",
        "sed '9s/.*/USER/' <file | grep -v AGENT >../staged; cp file ../kept; cp ../staged file; git add file; cp ../kept file",
        "file: USER",
    ),
    (
        "one hunk of two",
        "sed '5s/.*/4/' <file >../staged; cp file ../kept; cp ../staged file; git add file; cp ../kept file",
        "",
    ),
    ("what it deleted", "git add gone", ""),
    ("a file of the user's beside it", "echo USER >users; git add users", "users: USER"),
];

#[test]
fn what_is_staged_of_a_ghost_turn_goes_with_it_and_comes_back() {
    check_all(STAGED.iter().map(|(name, stage, stays)| ((*name).to_owned(), (*stage, *stays))), |(stage, stays)| {
        for args in [&["undo"][..], &["undo", "--only", "1"], &["undo", "--revert"], &["undo", "--steps", "2"]] {
            let repo = Sandbox::new();
            repo.commit("file", &(0..10).map(|line| format!("{line}\n")).collect::<String>());
            repo.commit("gone", "gone\n");
            if args.contains(&"2") {
                repo.turn(Mode::Ghost, "echo AGENT >new");
                repo.git(["add", "new"]);
            }
            repo.turn(Mode::Ghost, "sed -i '2s/.*/AGENT/; 5s/.*/AGENT/' file; echo AGENT >>new; rm gone");
            repo.sh(stage);
            let before = repo.state();
            repo.oxundo(args).success();
            let staged = repo.sh(
                "git diff --cached --name-only | while read f; do git show :$f | sed -n \"s/^/$f: /; /[A-Z]/p\"; done",
            );
            assert_eq!(staged, *stays, "{args:?}");
            assert_eq!(repo.sh("git ls-files -s gone | wc -l; cat gone"), "1\ngone");
            let back = if args.contains(&"2") { &["redo", "--steps", "2"][..] } else { &["redo"] };
            repo.oxundo(back).success();
            repo.state().assert_is(&before, &format!("redo of {args:?}"));
            repo.assert_sound();
        }
    });
}

/// The turn itself has staged, or committed, a part of what it did to a file, and the user the rest, with a line of their own.
#[test]
fn what_is_staged_beside_what_a_ghost_turn_had_staged_itself_goes_too() {
    for itself in ["git add file", "git commit -qam agent"] {
        for args in [&["undo"][..], &["undo", "--only", "1"]] {
            let repo = Sandbox::new();
            repo.commit("file", &(0..10).map(|line| format!("{line}\n")).collect::<String>());
            repo.turn(Mode::Ghost, &format!("sed -i '2s/.*/AGENT/' file; {itself}; sed -i '5s/.*/AGENT/' file"));
            repo.sh("sed -i '9s/.*/USER/' file; git add file");
            let before = repo.state();
            repo.oxundo(args).success();
            assert_eq!(repo.sh("git show :file | grep '[A-Z]'; grep '[A-Z]' file"), "USER\nUSER", "{itself} {args:?}");
            repo.redo();
            repo.state().assert_is(&before, itself);
        }
    }
}

/// What of the index is the turn's cannot be told: it stays, and is named.
#[test]
fn what_stays_staged_of_a_ghost_turn_is_named() {
    let repo = Sandbox::new();
    repo.commit("file", "one\n");
    repo.turn(Mode::Ghost, "echo AGENT >file");
    repo.sh("echo AGENT and USER >file; git add file; echo AGENT >file");
    let before = repo.state();
    repo.oxundo(["undo"]).says("Still staged as it was: file");
    assert_eq!(repo.sh("git show :file; cat file"), "AGENT and USER\none");
    repo.redo();
    repo.state().assert_is(&before, "redo");
}

/// Who commits a ghost turn's work and undoes it has that as a change that is not staged.
#[test]
fn what_the_user_has_committed_of_a_ghost_turn_is_not_staged_by_undo() {
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "echo AGENT >>README.txt");
    repo.git(["add", "README.txt"]);
    repo.oxundo(["undo"]).says("No longer staged: README.txt");
    repo.redo();
    repo.git(["commit", "-qam", "own"]);
    repo.undo();
    assert_eq!(repo.sh("git diff --cached --name-only; git diff --name-only"), "README.txt");
}

/// Where a ghost turn's work has gone by git alone, and how it comes back.
const AWAY: &[(&str, &str, &str)] = &[
    ("stashed", "git stash -qu", "git stash pop -q"),
    (
        "committed elsewhere",
        "git switch -qc wip; git add -A; git commit -qm wip; git switch -q main",
        "git merge -q wip",
    ),
    ("copied", "cp new ../new; git diff >../patch; git restore .; git clean -fdq", "git apply ../patch; cp ../new new"),
];

#[test]
fn a_ghost_turn_whose_work_was_away_as_it_was_undone_is_taken_out_once_it_is_back() {
    check_all(AWAY.iter().map(|(name, away, back)| ((*name).to_owned(), (*away, *back))), |(away, back)| {
        let repo = Sandbox::new();
        let begun = repo.files();
        repo.turn(Mode::Ghost, "echo AGENT >>README.txt; echo AGENT >new");
        repo.sh(away);
        repo.oxundo(["undo"]).warns("the files of turn 1 are not here: 'oxundo restore 1' brings them back");
        repo.sh(back);
        let refusal = repo.refuses(&["undo"], "nothing");
        let line = "run 'oxundo redo && oxundo undo' to take out turn 1, of which files are here again";
        assert_eq!(refusal["hints"][0], line);
        let there = repo.state();
        repo.redo();
        repo.state().assert_is(&there, "it is here");
        repo.undo();
        assert_eq!(repo.files(), begun, "taken out");
        repo.redo();
        repo.state().assert_is(&there, "and brought back");
    });
}

/// Where only a part was away, the rest was taken out, and all of it comes back.
#[test]
fn the_part_of_a_ghost_turn_that_was_away_as_it_was_undone_is_taken_out_once_it_is_back() {
    let parts = [("a change", "README.txt"), ("a new file", "new"), ("what is gone", "gone")];
    check_all(parts.map(|(name, path)| (name.to_owned(), path)), |path| {
        let repo = Sandbox::new();
        repo.commit("gone", "USER");
        let begun = repo.files();
        repo.turn(Mode::Ghost, "echo AGENT >>README.txt; echo AGENT >new; echo AGENT >other; rm gone");
        repo.sh(&format!("git stash push -qu -- {path}"));
        repo.undo();
        assert_eq!(repo.files(), begun, "the rest is out");
        repo.sh("git stash pop -q");
        let refusal = repo.refuses(&["undo"], "nothing");
        let line = "run 'oxundo redo && oxundo undo' to take out turn 1, of which files are here again";
        assert_eq!(refusal["hints"][0], line);
        repo.redo();
        let there = repo.state();
        repo.undo();
        assert_eq!(repo.files(), begun, "taken out");
        repo.redo();
        repo.state().assert_is(&there, "and brought back");
    });
}

#[test]
fn a_ghost_turn_whose_work_was_thrown_away_comes_back_by_the_line_that_redo_names() {
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "echo AGENT >>README.txt; echo AGENT >new");
    let there = repo.files();
    repo.sh("git restore .; git clean -fdq");
    let refusal = repo.refuses(&["redo"], "nothing");
    let line = "run 'oxundo restore 1' to have the files of turn 1 again, which is done and not here";
    assert_eq!(refusal["hints"][0], line);
    repo.oxundo(["restore", "1"]).success();
    assert_eq!(repo.files(), there);
}

/// The agent made a branch, which was merged by the user.
#[test]
fn the_hint_where_a_turns_own_branch_was_merged_takes_the_turn_out_here() {
    let merges = [
        ("merged", "git merge -q --no-ff --no-edit feat"),
        ("forward", "git merge -q feat"),
        ("squashed", "git merge -q --squash feat; git commit -qm squashed; git branch -qD feat"),
    ];
    check_all(merges.map(|(name, merge)| (name.to_owned(), merge)), |merge| {
        let repo = Sandbox::new();
        repo.agent("git switch -qc feat; echo AGENT >own; git add own; git commit -qm agent");
        repo.sh(&format!("git switch -q main; {merge}"));
        let refusal = repo.refuses(&["undo"], "branch");
        assert_eq!(refusal["hints"][0], "run 'oxundo undo --only 1' to take it out here, by a commit on top");
        repo.oxundo(["undo", "--only", "1"]).success();
        repo.assert_absent("own", "it is out");
        assert_eq!(repo.git(["status", "--porcelain"]), "");
    });
}

#[test]
fn where_a_worktrees_turn_was_merged_into_a_branch_without_turns_undo_says_whose_it_is() {
    for merge in ["--ff", "--no-ff"] {
        let repo = Sandbox::new();
        let tree = repo.linked("tree");
        tree.agent("echo AGENT >own");
        repo.git(["merge", "-q", "--no-edit", merge, "tree"]);
        let refusal = repo.refuses(&["undo"], "foreign");
        assert!(
            refusal["message"].as_str().is_some_and(|it| it.ends_with("was made by turn 1 of the worktree 'tree'")),
            "{refusal}"
        );
        let line = refusal["hints"][0].as_str().expect("a hint");
        repo.sh(line.split('\'').nth(1).expect("a line"));
        repo.assert_absent("own", "it leads there");
        // Where a turn is undone here, that is what there is to say.
        repo.agent("echo AGENT >own");
        repo.undo();
        repo.refuses(&["undo"], "nothing");
    }
}

/// An undone turn, and what others have published since: no redo takes that off, the turn's commits go on top of it.
#[test]
fn redo_over_what_was_pulled_names_the_line_that_has_the_turn_on_top() {
    let repo = team();
    repo.agent("echo AGENT >own");
    repo.undo();
    repo.sh("git pull -q");
    let refusal = repo.refuses(&["redo"], "published");
    let line = refusal["hints"][0].as_str().and_then(|hint| hint.split('\'').nth(1)).expect("a line");
    assert!(line.starts_with("git cherry-pick "), "{refusal}");
    repo.sh(line);
    repo.assert_file("own", "AGENT\n", "it is there");
    assert_eq!(repo.log()[0]["state"], "done");
    repo.oxundo(["undo", "--revert"]).success();
    repo.assert_absent("own", "and can be taken out");
    assert_eq!(repo.sh("tail -n1 shared"), "COLLEAGUE");
}

/// What was staged of a step, between the calls of its turn.
#[test]
fn what_is_staged_of_a_step_goes_with_the_step() {
    let repo = Sandbox::new();
    repo.git(["config", "oxundo.mode", "ghost"]);
    repo.commit("file", &(0..10).map(|line| format!("{line}\n")).collect::<String>());
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    shell(&repo, 1, "sed -i '2s/.*/ONE/' file");
    repo.git(["add", "file"]);
    shell(&repo, 2, "sed -i '9s/.*/TWO/' file");
    hook(&repo, "s", "Stop", &json!({}));
    let before = repo.state();
    repo.oxundo(["undo", "--only", "1.1"]).success();
    assert_eq!(repo.sh("git show :file | grep '[A-Z]' || :; grep '[A-Z]' file"), "TWO");
    repo.redo();
    repo.state().assert_is(&before, "redo");
}

/// The user has resolved a conflict as the turn's commit was rebased: what others did goes with the lines of then, and git knows better.
#[test]
fn the_hint_takes_out_what_a_turns_commit_has_become_in_a_conflict() {
    let repo = team();
    repo.agent("echo AGENT >>shared");
    repo.sh("git pull -q --rebase || :; sed -i '/^[<=>]\\{7\\}/d' shared; git add shared; GIT_EDITOR=true git rebase --continue");
    let refusal = repo.refuses(&["undo", "--revert"], "conflict");
    let line = refusal["hints"][0].as_str().and_then(|hint| hint.split('\'').nth(1)).expect("a line");
    repo.sh(line);
    assert_eq!(repo.sh("grep '[A-Z]' shared"), "COLLEAGUE");
}

/// Where names have changed, too, nothing of anybody's goes: the agent resolves a conflict and renames the file, or a colleague has renamed
/// one with a line of the user's.
#[test]
fn what_a_turn_merged_stays_whatever_its_name_is_now() {
    let resolved =
        "git pull -q --no-rebase --no-edit || :; sed -i '/^[<=>]\\{7\\}/d' shared; git add -A; git commit -qm merged";
    let cases = [
        (
            "the agent renames it",
            "echo USER >>shared",
            "",
            format!("{resolved}; git mv shared renamed; echo AGENT >>tracked; git add -A; git commit -qm agent"),
        ),
        ("uncommitted", "echo USER >>shared", "", format!("{resolved}; mv shared renamed; echo AGENT >>tracked")),
        (
            "a colleague has renamed it",
            "sed -i '3s/.*/USER/' shared",
            "git mv shared renamed; git commit -qm renamed",
            "git pull -q --no-rebase --no-edit; echo AGENT >>tracked".to_owned(),
        ),
        (
            "and it is rebased",
            "sed -i '3s/.*/USER/' shared",
            "git mv shared renamed; git commit -qm renamed",
            "git pull -q --rebase; echo AGENT >>tracked".to_owned(),
        ),
        (
            "the user has renamed it",
            "sed -i '3s/.*/USER/' shared; git mv shared renamed; git add -A",
            "",
            "git pull -q --no-rebase --no-edit; echo AGENT >>tracked".to_owned(),
        ),
        (
            "and theirs is rebased",
            "sed -i '3s/.*/USER/' shared; git mv shared renamed; git add -A",
            "",
            "git pull -q --rebase; echo AGENT >>tracked".to_owned(),
        ),
    ];
    check_all(
        cases.map(|(name, own, theirs, script)| (name.to_owned(), (own, theirs, script))),
        |(own, theirs, script)| {
            for mode in Mode::tried() {
                let repo = team();
                repo.sh(&format!("cd ../colleague; {}; git push -q", if theirs.is_empty() { "true" } else { theirs }));
                repo.sh(&format!("echo tracked >tracked; git add tracked; {own}; git commit -qam own"));
                repo.turn(mode, script);
                let before = repo.state();
                let output = repo.oxundo(["undo", "--revert"]);
                output.success();
                output.warns("stays: it has merged it with what others did");
                for at in ["cat renamed", "git show HEAD:renamed || git show HEAD:shared"] {
                    let lines = repo.sh(&format!("{{ {at}; }} | grep '[A-Z]' | sort"));
                    assert_eq!(lines, "COLLEAGUE\nUSER", "{at}, {mode:?}");
                }
                assert_eq!(repo.sh("grep AGENT tracked || :"), "");
                repo.redo();
                repo.state().assert_is(&before, "redo");
            }
        },
    );
}

/// git carries the user's uncommitted line to the name that the file has on the branch to which the agent goes.
#[test]
fn a_line_of_the_users_that_came_to_another_name_in_a_rebase_is_not_the_turns() {
    let repo = team();
    repo.sh("git switch -qc topic; git mv shared renamed; git commit -qm renamed; git push -q origin topic; git switch -q main
             sed -i '3s/.*/USER/' shared");
    repo.turn(Mode::Ghost, "echo AGENT >>README.txt; git commit -qam agent; git rebase -q topic");
    let before = repo.state();
    repo.oxundo(["undo", "--revert"]).success();
    assert_eq!(repo.sh("grep USER renamed"), "USER");
    assert_eq!(repo.sh("grep AGENT README.txt || :"), "");
    repo.redo();
    repo.state().assert_is(&before, "redo");
}

/// A file is in the way of a directory of the user's.
#[test]
fn what_is_in_the_place_of_an_unclear_file_stays_as_the_user_has_concluded_it() {
    in_both_modes(|mode| {
        for args in [&["undo"][..], &["undo", "--revert"], &["undo", "--only", "1"]] {
            let repo = Sandbox::new();
            repo.sh("mkdir dir; echo one >dir/file; git add -A; git commit -qm base
                     git switch -qc topic; git rm -rq dir; echo THEIRS >dir; git add -A; git commit -qm topic
                     git switch -q main; echo USER >dir/file; git commit -qam mine");
            repo.turn(mode, "git merge -q topic >../said 2>&1 || :; sed -i '1s/^/AGENT /' README.txt");
            repo.sh("cp README.txt ../agents; git show HEAD:README.txt >README.txt
                     git add -A; git commit -qm concluded; cp ../agents README.txt");
            let before = repo.state();
            repo.oxundo(args).success();
            assert_eq!(repo.sh("git status --porcelain; git show :dir/file"), "USER", "{args:?}");
            repo.redo();
            repo.state().assert_is(&before, "redo");
            repo.assert_sound();
        }
    });
}

/// The resolved file is all that the turn changed: the hint takes out what it has committed since.
#[test]
fn where_a_turn_changed_only_what_it_merged_the_hint_takes_out_its_later_commits() {
    let repo = team();
    repo.sh("echo USER >>shared; git commit -qam own");
    repo.agent("git pull -q --no-rebase --no-edit || :; sed -i '/^[<=>]\\{7\\}/d' shared; git commit -qam merged; sed -i '1s/.*/AGENT/' shared");
    let refusal = repo.refuses(&["undo", "--revert"], "nothing");
    let line = refusal["hints"][0].as_str().and_then(|hint| hint.split('\'').nth(1)).expect("a line");
    repo.sh(line);
    assert_eq!(repo.sh("grep '[A-Z]' shared | sort"), "COLLEAGUE\nUSER");
}

/// What is staged is the turn's as undo looks, and is the user's as it is about to write.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn what_somebody_stages_while_undo_is_at_work_is_not_overwritten() {
    let repo = Sandbox::new();
    repo.commit("file", "one\n");
    repo.turn(Mode::Ghost, "echo AGENT >file");
    repo.git(["add", "file"]);
    let stages = || {
        repo.sh("git update-index --cacheinfo 100644,$(echo USER | git hash-object -w --stdin),file");
    };
    let mut command = repo.launched_command(crate::tracer::LAUNCH, &["undo"]);
    let Ok(trace) = crate::tracer::interrupt_at_opening(&mut command, "/index.lock", 0, &stages) else {
        return crate::sandbox::announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
    };
    assert_eq!(trace.code, Some(3), "{}", trace.stderr);
    assert_eq!(repo.sh("git show :file; cat file"), "USER\nAGENT");
    repo.assert_sound();
}

/// What the user has in the stash, and what an agent does that pops it: after a 'git stash' that had nothing to put away it is the next one.
const POPS: &[(&str, &str, &str)] = &[
    ("lines", "sed -i 2s/.*/USER/ shared; echo USER >>README.txt; git stash -q", "git stash -q; git stash pop -q"),
    ("a new file", "echo USER >new; git add new; git stash -q", "git stash pop -q"),
    ("an untracked file", "echo USER >new; echo USER >>README.txt; git stash -qu", "git stash pop -q"),
    ("a deletion", "git rm -q theirs; sed -i 2s/.*/USER/ shared; git stash -q", "git stash pop -q"),
    (
        "two entries",
        "sed -i 2s/.*/USER/ shared; git stash -q; echo USER >>README.txt; git stash -q",
        "git stash pop -q; git stash pop -q",
    ),
    ("applied and dropped", "sed -i 2s/.*/USER/ shared; git stash -q", "git stash apply -q; git stash drop -q"),
    ("other line ends", "git config core.autocrlf true; sed -i 2s/.*/USER/ shared; git stash -q", "git stash pop -q"),
];

#[test]
fn what_a_turn_pops_of_the_users_stash_is_in_no_commit_of_the_agents() {
    check_all(POPS.iter().map(|(name, own, pops)| ((*name).to_owned(), (*own, *pops))), |&(own, pops)| {
        for edits in ["sed -i 5s/.*/AGENT/ shared; echo AGENT >own", "sed -i 3s/.*/AGENT/ shared", ":"] {
            let repo = team();
            repo.sh("git pull -q");
            repo.sh(own);
            let before = repo.state();
            repo.turn(Mode::Commit, &format!("{pops}; {edits}"));
            let commits = repo.sh("git log -p origin/main..");
            assert!(!commits.contains("USER") && !commits.contains("deleted file"), "{edits}: {commits}");
            assert_eq!(commits.matches("+AGENT").count(), edits.matches("AGENT").count(), "{edits}: {commits}");
            for name in ["shared", "README.txt", "new"].into_iter().filter(|name| repo.exists(name)) {
                let lines = repo.sh(&format!("cat {name}"));
                let by = repo.json(["blame", name]).1["lines"].clone();
                for (line, by) in lines.lines().zip(by.as_array().expect("lines")) {
                    assert_eq!(line.contains("AGENT"), by["by"].is_object(), "{name}: {line}: {by}");
                }
            }
            let after = repo.state();
            repo.undo();
            repo.state().assert_is(&before, edits);
            repo.redo();
            repo.state().assert_is(&after, edits);
            // The next turn saves it as the user's.
            repo.turn(Mode::Commit, "echo AGENT >>own");
            let its = repo.git(["show", "--format=%b"]);
            assert!(!its.contains("USER"), "{edits}: {its}");
            repo.assert_sound();
        }
    });
}

#[test]
fn what_a_turn_pops_that_an_earlier_one_stashed_is_the_agents() {
    let repo = team();
    repo.turn(Mode::Commit, "sed -i 2s/.*/AGENT/ shared; git stash -q");
    repo.turn(Mode::Commit, "git stash pop -q");
    assert!(repo.git(["show"]).contains("+AGENT"), "it is committed");
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

#[test]
fn a_turn_that_throws_the_users_stash_away_has_its_own_lines_committed() {
    let repo = team();
    repo.sh("sed -i 2s/.*/USER/ shared; git stash -q");
    repo.turn(Mode::Commit, "git stash drop -q; sed -i 2s/.*/AGENT/ shared");
    assert!(repo.git(["show"]).contains("+AGENT"), "it is committed");
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

/// What the turn before had committed was on the branch that this one left.
#[test]
fn what_a_turn_rebased_before_it_began_a_branch_on_top_is_not_what_it_did() {
    in_both_modes(|mode| {
        for more in [":", "echo AGENT2 >second; git add second; git commit -qm second"] {
            let repo = team();
            repo.sh("git switch -qc feat; echo USER >users");
            repo.turn(mode, "echo AGENT >first; git add first users; git commit -qm first");
            let rebase = "git fetch -q; git rebase -q --autostash origin/main; git switch -qc next";
            repo.turn(mode, &format!("{rebase}; {more}"));
            let before = repo.state();
            assert_eq!(repo.json(["blame", "first"]).1["lines"][0]["by"]["turn"], 1);
            for args in [&["undo", "--revert"][..], &["undo", "--only", "2"]] {
                let output = repo.oxundo(args);
                assert_eq!(output.code == 0, more != ":", "{output:?}");
                assert_eq!(repo.sh("cat first users theirs; ls second 2>/dev/null || :"), "AGENT\nUSER\nCOLLEAGUE");
                assert_eq!(repo.git(["status", "--porcelain"]), "");
                if output.code == 0 {
                    repo.redo();
                }
                repo.state().assert_is(&before, more);
            }
        }
    });
}

#[test]
fn what_the_user_stashed_of_a_turns_is_that_ones_where_another_turn_pops_it() {
    let repo = team();
    repo.turn(Mode::Ghost, "echo AGENT >new");
    repo.sh("echo USER >>new; git stash -qu");
    repo.turn(Mode::Ghost, "git stash pop -q; echo AGENT2 >>new");
    let lines = repo.json(["blame", "new"]).1["lines"].clone();
    let by: Vec<_> = lines.as_array().expect("lines").iter().map(|line| line["by"]["turn"].as_u64()).collect();
    assert_eq!(by, [Some(1), None, Some(2)]);
}

/// They are on the branch that it left.
#[test]
fn what_the_user_had_is_not_brought_to_a_branch_that_a_turn_put_elsewhere() {
    in_both_modes(|mode| {
        for begins in [
            "git switch -qc fix; git fetch -q; git reset -q --hard origin/main",
            "git fetch -q; git reset -q --hard origin/main; git switch -qc fix",
            "git fetch -q; git switch -qc fix origin/main",
        ] {
            let repo = team();
            repo.sh("echo USER >users; git add users; git commit -qm users");
            repo.turn(mode, &format!("{begins}; echo AGENT >own; git add own; git commit -qm own"));
            repo.oxundo(["undo", "--only", "1"]).success();
            assert_eq!(repo.sh("git status --porcelain; git ls-files"), "README.txt\nshared\ntheirs", "{begins}");
        }
    });
}

/// The branch began where HEAD was, whatever became of the commit there.
#[test]
fn what_the_user_had_is_theirs_where_a_turn_begins_a_branch_and_amends_there() {
    in_both_modes(|mode| {
        for begins in [
            "git switch -qc new",
            "git fetch -q; git rebase -q --autostash origin/main; git switch -qc new",
            "git switch -qc new; git fetch -q; git rebase -q --autostash origin/main",
        ] {
            let repo = team();
            repo.sh("git switch -qc feat; echo ONE >one; git add one; git commit -qm one; echo USER >>README.txt");
            repo.turn(mode, &format!("{begins}; sed -i '5s/.*/AGENT/' shared; git commit -qa --amend --no-edit"));
            let before = repo.state();
            repo.oxundo(["undo", "--only", "1"]).success();
            assert_eq!(repo.sh("cat one; tail -1 README.txt; grep -c AGENT shared || :"), "ONE\nUSER\n0", "{begins}");
            let theirs = if begins.contains("rebase") { "COLLEAGUE" } else { "" };
            assert_eq!(repo.sh("cat theirs 2>/dev/null || :"), theirs, "{begins}");
            assert_eq!(repo.sh("git show HEAD:theirs 2>/dev/null || :"), theirs, "{begins}");
            repo.redo();
            repo.state().assert_is(&before, begins);
        }
    });
}

/// So it is as the agent takes back "its" last commit.
#[test]
fn what_the_user_had_uncommitted_is_in_no_commit_of_the_agents_where_it_takes_the_dirty_commit_off() {
    for reset in ["git reset -q --soft HEAD~1", "git reset -q HEAD~1"] {
        for edits in ["echo AGENT >>README.txt", "sed -i 5s/.*/AGENT/ shared", ":"] {
            let repo = team();
            repo.sh("sed -i 2s/.*/USER/ shared; git rm -q --cached README.txt; git add README.txt");
            let before = repo.state();
            repo.turn(Mode::Commit, &format!("{reset}; {edits}"));
            let commits = repo.sh("git log -p origin/main..");
            assert!(!commits.contains("+USER"), "{reset}, {edits}: {commits}");
            assert_eq!(commits.matches("+AGENT").count(), edits.matches("AGENT").count(), "{reset}: {commits}");
            assert_eq!(repo.sh("grep -c USER shared"), "1");
            repo.undo();
            repo.state().assert_is(&before, reset);
        }
    }
}

/// What a call has committed of it is committed, and stays.
#[test]
fn what_the_agent_itself_commits_of_the_users_stash_stays_in_its_commit() {
    let repo = team();
    repo.sh("sed -i 2s/.*/USER/ shared; git stash -q");
    repo.turn(Mode::Commit, "git stash pop -q; git commit -qam popped; sed -i 5s/.*/AGENT/ shared");
    assert_eq!(repo.sh("git show HEAD:shared | grep -c 'USER\\|AGENT'"), "2");
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

/// It stops at a conflict, and leaves the entry in the list.
#[test]
fn what_a_pop_that_stopped_has_brought_of_the_users_stash_is_theirs() {
    for mode in Mode::tried() {
        let repo = team();
        repo.sh("sed -i 5s/.*/USER/ shared; echo USER >>README.txt; git stash -q; sed -i 5s/.*/MINE/ shared; git commit -qam mine");
        repo.turn(
            mode,
            "git stash pop -q >/dev/null 2>&1 || :; git checkout -q --ours shared; git add shared; echo AGENT >own",
        );
        assert!(!repo.sh("git log -p origin/main..").contains("+USER"));
        let by = repo.json(["blame", "README.txt"]).1["lines"][1]["by"].clone();
        assert!(by.is_null(), "{by}");
    }
}

/// They are the same commits on another branch.
#[test]
fn what_the_agent_rebases_or_picks_is_still_its_authors() {
    for (name, does, users) in [
        ("rebased and merged", "git switch -q feat; git rebase -q main; git switch -q main; git merge -q feat", true),
        ("picked", "git cherry-pick feat >/dev/null", true),
        ("picked from the remote", "git fetch -q; git cherry-pick origin/main >/dev/null", false),
        ("onto a new branch", "git switch -q feat; git fetch -q; git rebase -q origin/main; git switch -qc next", true),
    ] {
        for mode in Mode::tried() {
            let repo = team();
            repo.sh("git switch -qc feat; echo USER >users; git add users; git commit -qm users
                     git switch -q main; echo MORE >more; git add more; git commit -qm more");
            repo.turn(mode, &format!("{does}; echo AGENT >own; git add own; git commit -qm own"));
            let file = if users { "users" } else { "theirs" };
            let by = |file: &str| repo.json(["blame", file]).1["lines"][0]["by"]["turn"].as_u64();
            assert_eq!((by(file), by("own")), (None, Some(1)), "{name}");
        }
    }
}

#[test]
fn what_the_agent_committed_is_its_own_where_the_user_goes_on_with_its_rebase() {
    for mode in Mode::tried() {
        let repo = team();
        repo.sh("sed -i '10s/$/ USER/' shared; git commit -qam mine");
        repo.turn(mode, &quietly("echo AGENT >own; git add own; git commit -qm own; git pull -q --rebase || :"));
        repo.sh(&quietly(
            "echo BOTH >>shared; sed -i '/^[<=>]\\{7\\}/d' shared; git add shared; git rebase --continue",
        ));
        let by = |file: &str| repo.json(["blame", file]).1["lines"][0]["by"]["turn"].as_u64();
        assert_eq!((by("own"), by("theirs"), by("shared")), (Some(1), None, None));
    }
}
