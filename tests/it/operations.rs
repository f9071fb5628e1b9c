//! What git is in the middle of is state like any other: undo and redo bring it back, byte for byte, and git goes on with it.

use crate::sandbox::{Mode, Output, Sandbox, State, check_all, in_both_modes};
use crate::steps::{call, hook, tick};
use serde_json::json;

/// Where a repository has its refs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Files,
    Tables,
}

impl Store {
    fn sandbox(self) -> Sandbox {
        match self {
            Self::Files => Sandbox::new(),
            Self::Tables => Sandbox::with_tables(&[]),
        }
    }

    /// Branches to merge, rebase and pick: `side` and `clash` conflict with `main` in `a.txt`; `side` has a file more.
    fn forked(self) -> Sandbox {
        fork(self.sandbox())
    }
}

/// The same story with refs in files and, in the long form, in tables.
fn in_each_store(check: impl Fn(Store)) {
    check(Store::Files);
    if crate::form::is_thorough() && Sandbox::has_tables() {
        check(Store::Tables);
    }
}

fn fork(repo: Sandbox) -> Sandbox {
    repo.sh(
        "echo base >a.txt; echo b >b.txt; seq 9 >c.txt; git add -A; git commit -qm files
        git checkout -q -b side; echo side >a.txt; echo new >side.txt; sed -i s/9/nine/ c.txt; git add -A; git commit -qm side
        echo more >>side.txt; git commit -qam more
        git checkout -q main; echo main >a.txt; git commit -qam main; git branch topic; echo unstaged >>b.txt; echo loose >loose.txt",
    );
    repo
}

/// What leaves git in the middle of something, what ends it, and what gives it up.
const OPERATIONS: [(&str, &str, &str, &str); 9] = [
    ("merge", "git merge -q side || :", "git commit -qm merged", "git merge --abort"),
    (
        "merge without a conflict",
        "git merge -q --no-commit --no-ff -s ours side",
        "git merge --continue",
        "git merge --abort",
    ),
    ("cherry-pick", "git cherry-pick side~1 || :", "git cherry-pick --continue", "git cherry-pick --abort"),
    ("cherry-pick of two", "git cherry-pick side~1 side || :", "git cherry-pick --continue", "git cherry-pick --abort"),
    (
        "revert",
        "echo again >a.txt; git commit -qm again a.txt; git revert --no-edit :/^main || :",
        "git revert --continue",
        "git revert --abort",
    ),
    ("rebase", "git stash -q; git rebase -q side || :", "git rebase --continue", "git rebase --abort"),
    ("rebase with a stash", "git rebase -q --autostash side || :", "git rebase --continue", "git rebase --abort"),
    (
        "rebase by patches",
        "git stash -q; git rebase -q --apply side || :",
        "git rebase --continue",
        "git rebase --abort",
    ),
    (
        "am",
        "git stash -q; git format-patch -q --stdout -2 side >../home/p; git am -q -3 ../home/p || :",
        "git am --continue",
        "git am --abort",
    ),
];

const QUIET: &str = "exec >/dev/null 2>&1; export GIT_EDITOR=true; ";

pub(crate) fn quietly(script: &str) -> String {
    format!("{QUIET}{script}")
}

fn there_and_back(repo: &Sandbox, before: &State, after: &State) {
    for (op, wanted) in [("undo", before), ("redo", after), ("undo", before), ("redo", after)] {
        repo.oxundo([op]).success();
        repo.printed().assert_is(wanted, op);
    }
    repo.assert_sound();
}

fn is_under_way(repo: &Sandbox) -> bool {
    repo.operation().keys().any(|name| name != "MERGE_MSG")
}

#[test]
fn what_a_turn_leaves_git_in_the_middle_of_comes_and_goes_and_git_goes_on_with_it() {
    in_each_store(|store| {
        in_both_modes(|mode| {
            check_all(
                OPERATIONS.map(|(name, begin, end, abort)| (name.to_owned(), (begin, end, abort))),
                |(begin, end, abort)| {
                    for ends in [end, abort] {
                        let repo = store.forked();
                        let control = repo.copy();
                        let before = repo.printed();
                        repo.turn(mode, &quietly(begin));
                        assert!(is_under_way(&repo), "git is in the middle of it");
                        let after = repo.printed();
                        there_and_back(&repo, &before, &after);
                        if mode == Mode::Ghost {
                            let go_on = quietly(&format!("printf 'resolved\\n' >a.txt; git add a.txt; {ends}"));
                            control.sh(&quietly(begin));
                            for repo in [&control, &repo] {
                                repo.sh(&go_on);
                            }
                            let trees = [&control, &repo].map(|repo| repo.git(["log", "--format=%T %s", "HEAD"]));
                            assert_eq!(trees[1], trees[0], "it ends as it would have");
                            assert_eq!(repo.operation(), control.operation(), "nothing is left of it");
                        }
                    }
                },
            );
        });
    });
}

#[test]
fn what_a_turn_does_in_the_middle_of_the_users_operation_comes_and_goes() {
    in_each_store(|store| {
        let resolve = "printf 'resolved\\n' >a.txt; git add a.txt; ";
        check_all(
            OPERATIONS.map(|(name, begin, end, abort)| (name.to_owned(), (begin, end, abort))),
            |(begin, end, abort)| {
                for script in [
                    "echo new >new.txt; echo more >>loose.txt".to_owned(),
                    resolve.to_owned(),
                    format!("{resolve}{end}"),
                    (*abort).to_owned(),
                    format!("{abort}; echo other >a.txt; git commit -qm other a.txt"),
                    "git reset -q --hard".to_owned(),
                ] {
                    let repo = store.forked();
                    repo.sh(&quietly(begin));
                    let before = repo.printed();
                    assert!(is_under_way(&repo), "git is in the middle of it");
                    repo.turn(Mode::Ghost, &quietly(&script));
                    let after = repo.printed();
                    assert_ne!(before, after, "{script}");
                    there_and_back(&repo, &before, &after);
                    // And from the middle of it again to its end.
                    repo.undo();
                    repo.sh(&quietly(&format!("{resolve}{end}")));
                }
            },
        );
    });
}

/// git leaves `AUTO_MERGE` behind where it ends with the stash that it had made of the user's edits.
#[test]
fn what_is_left_of_an_operation_that_was_given_up_is_no_part_of_it_when_it_comes_back() {
    in_each_store(|store| {
        let repo = store.sandbox();
        repo.sh(
            "mkdir p; echo one >p/one; echo edit >edit.txt; git add -A; git commit -qm files; git checkout -qb fork
            echo fork >>p/one; git commit -qam fork; git checkout -q main; echo 2 >>p/one; git commit -qam second
            echo more >>edit.txt",
        );
        let mut states = vec![repo.printed()];
        for script in ["git rebase -q --autostash fork || :", "git commit -qam all", "git rebase --abort"] {
            repo.turn(Mode::Ghost, script);
            states.push(repo.printed());
        }
        repo.undo();
        repo.printed().assert_is(&states[2], "the rebase is back as it was");
        repo.undo();
        repo.printed().assert_is(&states[1], "and before its commit");
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.printed().assert_is(&states[3], "and over again");
    });
}

#[test]
fn a_bisect_comes_and_goes_and_git_goes_on_with_it() {
    in_each_store(|store| {
        let repo = store.sandbox();
        repo.sh("for n in 1 2 3 4 5 6 7 8; do echo $n >n.txt; git add -A; git commit -qm $n; done");
        let before = repo.printed();
        repo.turn(Mode::Ghost, &quietly("git bisect start; git bisect bad; git bisect good HEAD~7"));
        let begun = repo.printed();
        there_and_back(&repo, &before, &begun);
        repo.turn(Mode::Ghost, &quietly("git bisect good"));
        let after = repo.printed();
        there_and_back(&repo, &begun, &after);
        repo.turn(Mode::Ghost, &quietly("git bisect reset"));
        there_and_back(&repo, &after, &repo.printed());
        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.printed().assert_is(&begun, "two at once");
        assert!(repo.sh("git bisect good").contains("left to test"), "git goes on with it");
    });
}

#[test]
fn what_others_may_not_read_of_a_bisect_is_empty_and_in_nobodys_way() {
    let repo = Sandbox::new();
    repo.sh("chmod 755 ..; echo 1 >n.txt; git add -A; git commit -qm 1");
    let before = repo.printed();
    repo.turn(Mode::Ghost, &quietly("git bisect start; git bisect bad; git bisect good HEAD~1"));
    assert_eq!(repo.mode(".git/BISECT_ANCESTORS_OK"), 0o600, "git closes it");
    let after = repo.printed();
    there_and_back(&repo, &before, &after);
}

#[test]
fn a_rebase_that_a_turn_began_and_the_user_quits_is_over_though_git_leaves_its_message() {
    in_each_store(|store| {
        let repo = store.forked();
        let before = repo.printed();
        repo.turn(Mode::Ghost, &quietly("git stash -q; git rebase -q side || :"));
        repo.sh("git rebase --quit");
        assert!(repo.exists(".git/MERGE_MSG"), "git leaves it behind");
        let over = repo.printed();
        there_and_back(&repo, &before, &over);
    });
}

/// git ends a rebase without any lock: at no instant is more or less lost by that than at another.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_rebase_that_is_quit_while_head_moves_is_as_one_that_is_quit_behind() {
    use crate::tracer::{LAUNCH, interrupt, interrupt_at};
    let repo = Store::Files.forked();
    let Ok(_) = crate::kill_points::points_of(&repo, &["status"]) else {
        return crate::sandbox::announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
    };
    repo.turn(Mode::Ghost, &quietly("git rebase -q --autostash side || :"));
    let undone = repo.copy();
    undone.undo();
    let quit = |repo: &Sandbox| drop(repo.try_git(["rebase", "--quit"]));
    for (start, args) in [(undone, ["redo"]), (repo, ["undo"])] {
        let [first, behind] = [(), ()].map(|()| start.copy());
        quit(&first);
        behind.oxundo(args).success();
        quit(&behind);
        let ends = [first.printed(), behind.printed()];
        let moved = start.copy();
        let trace = interrupt(&mut moved.launched_command(LAUNCH, &args), "HEAD.lock", &|| quit(&moved));
        assert_eq!(trace.expect("it was traced before").code, Some(0), "{args:?} is done");
        moved.printed().assert_is(&ends[1], "it is as if it had been quit later");
        let points = crate::kill_points::points_of(&start, &args).expect("it was traced before");
        let all = if crate::form::is_thorough() { points.len() } else { 0 };
        for point in &points[..all] {
            let repo = start.copy();
            let meanwhile = || quit(&repo);
            let trace = interrupt_at(&mut repo.launched_command(LAUNCH, &args), point.number, &meanwhile);
            let (code, said) = trace.map(|trace| (trace.code, trace.stderr)).expect("it was traced before");
            assert!(matches!(code, Some(0 | 3)), "{}: {code:?}: {said}", point.text);
            let now = repo.printed();
            assert!(
                ends.contains(&now),
                "{}: {said}\n{}\n{}",
                point.text,
                now.difference(&ends[0]),
                now.difference(&ends[1])
            );
            repo.assert_sound();
        }
    }
}

#[test]
fn what_is_prepared_for_the_next_commit_comes_and_goes() {
    in_each_store(|store| {
        in_both_modes(|mode| {
            for script in ["git stash -q; git merge -q --squash side~1 || :", "git cherry-pick -n side || :"] {
                let repo = store.forked();
                let before = repo.printed();
                repo.turn(mode, &quietly(script));
                let after = repo.printed();
                there_and_back(&repo, &before, &after);
            }
        });
    });
}

/// A ghost turn that leaves the branch where it is, and what the user then begins.
fn with_ghost_turn(store: Store, script: &str) -> (Sandbox, State) {
    let repo = store.forked();
    repo.git(["commit", "-qam", "the rest"]);
    let before = repo.state();
    repo.turn(Mode::Ghost, script);
    (repo, before)
}

#[test]
fn undo_goes_on_around_what_the_user_has_begun_and_does_not_touch() {
    in_each_store(|store| {
        check_all(
            OPERATIONS.map(|(name, begin, end, abort)| (name.to_owned(), (begin, end, abort))),
            |(begin, end, abort)| {
                for ends in [end, abort] {
                    let (repo, _) = with_ghost_turn(store, "echo agent >agents.txt; echo more >>loose.txt");
                    let control = repo.copy();
                    let begin = begin.replace("git stash -q; ", "");
                    repo.sh(&quietly(&begin));
                    let operation = repo.operation();
                    assert!(is_under_way(&repo), "git is in the middle of it");
                    repo.undo();
                    repo.assert_absent("agents.txt", "the turn is undone");
                    assert_eq!(repo.operation(), operation, "it is as it was");
                    repo.redo();
                    repo.undo();
                    let go_on = quietly(&format!("printf 'resolved\\n' >a.txt; git add a.txt; {ends}"));
                    repo.sh(&go_on);
                    control.sh(&quietly(&begin));
                    control.sh(&go_on);
                    let trees = [&control, &repo].map(|repo| repo.git(["log", "--format=%T %s", "HEAD"]));
                    assert_eq!(trees[1], trees[0], "it ends as it would have");
                }
            },
        );
    });
}

#[test]
fn what_the_user_has_begun_is_not_torn_and_the_hints_lead_on() {
    in_each_store(|store| {
        for (turn, begin) in [
            // What is staged is its commit's.
            ("echo agent >agents.txt; git add agents.txt; git commit -qm agents", "git merge -q side || :"),
            ("echo agent >>c.txt; git commit -qam agents", "git cherry-pick side~1 || :"),
            ("echo agent >>c.txt; git commit -qam agents", "git bisect start"),
            // A file that it has staged, or left unmerged.
            ("sed -i s/1/one/ c.txt", "git commit -qam taken; git merge -q side || :"),
            ("echo agent >a.txt", "git commit -qam taken; git merge -q side || :"),
            // What is in its stash comes back when it ends.
            ("echo agent >>b.txt", "git rebase -q --autostash side || :"),
        ] {
            let (repo, _) = with_ghost_turn(store, turn);
            repo.sh(&quietly(begin));
            let error = repo.refuses(&["undo"], "in_progress");
            let hint =
                error["hints"][1].as_str().and_then(|hint| hint.split('\'').nth(1)).expect("it has a line to type");
            repo.sh(&quietly(hint));
            let again = repo.oxundo(["undo"]);
            assert!(again.code == 0 || again.err().contains("was not made by a turn"), "{turn}: {again:?}");
        }
    });
}

#[test]
fn what_the_user_ends_of_what_a_turn_began_is_over_and_redo_leads_back_to_that() {
    in_each_store(|store| {
        in_both_modes(|mode| {
            for (begin, _, abort) in OPERATIONS.map(|(_, begin, end, abort)| (begin, end, abort)) {
                let repo = store.forked();
                let before = repo.printed();
                repo.turn(mode, &quietly(begin));
                repo.sh(&quietly(abort));
                let given_up = repo.printed();
                let undone = repo.oxundo(["undo"]);
                if undone.code == 0 {
                    repo.printed().assert_is(&before, begin);
                    repo.redo();
                    repo.printed().assert_is(&given_up, begin);
                    repo.undo();
                } else {
                    // HEAD is where it was before the turn: the user has undone it by hand.
                    assert_eq!(undone.code, 4, "{begin}: {undone:?}");
                    repo.redo();
                    assert!(is_under_way(&repo), "{begin}");
                    repo.undo();
                    repo.printed().assert_is(&before, begin);
                }
            }
        });
    });
}

#[test]
fn where_the_users_operation_is_over_undo_of_a_turn_in_it_leaves_nothing_that_nobody_can_end() {
    in_each_store(|store| {
        for ends in ["git commit -qm merged", "git merge --abort", "git reset -q --hard"] {
            let repo = store.forked();
            repo.sh(&quietly("git merge -q side || :"));
            repo.turn(Mode::Ghost, "printf 'resolved\\n' >a.txt; git add a.txt; echo agent >agents.txt");
            repo.sh(ends);
            let after = repo.printed();
            repo.undo();
            assert_eq!(repo.git(["ls-files", "--unmerged"]), "", "{ends}: no entry is left that nobody can end");
            repo.assert_absent("agents.txt", ends);
            let undone = repo.printed();
            repo.redo();
            repo.printed().assert_is(&after, ends);
            repo.undo();
            repo.printed().assert_is(&undone, ends);
        }
    });
}

#[test]
fn a_turn_that_ended_a_merge_is_taken_out_by_a_commit_on_top_and_no_conflict_is_left() {
    in_each_store(|store| {
        for args in [&["undo", "--revert"][..], &["undo", "--only", "1"]] {
            for later in ["true", "echo later >later.txt; git add -A; git commit -qm later"] {
                let repo = store.forked();
                repo.sh(&quietly("git merge -q side || :"));
                let ours = repo.git(["rev-parse", "HEAD^{tree}"]);
                repo.turn(Mode::Ghost, "printf 'resolved\\n' >a.txt; git add a.txt; git commit -qm merged");
                repo.sh(later);
                let after = repo.printed();
                repo.oxundo(args).success();
                assert_eq!(repo.git(["ls-files", "--unmerged"]), "", "no conflict is left");
                assert!(!is_under_way(&repo), "nor an operation");
                repo.assert_file("a.txt", "main\n", "as it was before the merge");
                if later == "true" {
                    assert_eq!(repo.git(["rev-parse", "HEAD^{tree}"]), ours, "the merge is taken back");
                    assert_eq!(repo.git(["diff", "--cached", "--name-only"]), "", "nothing is staged");
                }
                let reverted = repo.printed();
                for (op, wanted) in [("undo", &after), ("redo", &reverted), ("undo", &after)] {
                    repo.oxundo([op]).success();
                    repo.printed().assert_is(wanted, op);
                }
                repo.assert_sound();
            }
        }
    });
}

#[test]
fn what_an_operation_names_is_kept_when_nothing_else_holds_it() {
    in_each_store(|store| {
        let repo = store.forked();
        let before = repo.printed();
        repo.turn(Mode::Ghost, &quietly("git rebase -q --autostash side || :"));
        let after = repo.printed();
        repo.undo();
        repo.printed().assert_is(&before, "undo");
        repo.git(["branch", "-qD", "side"]);
        repo.prune();
        repo.redo();
        let without_side = |state: &State| state.clone().without("ref refs/heads/side");
        without_side(&repo.printed()).assert_is(&without_side(&after), "redo");
        repo.prune();
        repo.sh(&quietly("printf 'resolved\\n' >a.txt; git add a.txt; git rebase --continue"));
        repo.assert_file("b.txt", "b\nunstaged\n", "its stash comes back");
        repo.assert_sound();
    });
}

#[test]
fn a_state_in_the_middle_of_something_is_restored_exactly() {
    in_each_store(|store| {
        let repo = store.forked();
        repo.sh(&quietly("git merge -q side || :"));
        let before = repo.printed();
        repo.turn(Mode::Ghost, "git merge --abort");
        let after = repo.printed();
        repo.oxundo(["restore", "--exact", "1:before"]).success();
        repo.printed().assert_is(&before, "in the middle of it");
        repo.undo();
        repo.printed().assert_is(&after, "and back");
        repo.redo();
        repo.sh("printf 'resolved\\n' >a.txt; git add a.txt; git commit -qm merged");
        assert_eq!(repo.git(["log", "-1", "--format=%p"]).split(' ').count(), 2, "it is a merge");
    });
}

#[test]
fn what_is_too_large_for_a_checkpoint_is_left_alone_and_said() {
    in_each_store(|store| {
        let repo = store.forked();
        repo.git(["config", "oxundo.maxFileSize", "2k"]);
        let begin = "git stash -q; seq 9999 >patch.txt; git add -A; git commit -qm patch; git format-patch -q --stdout -1 >../home/p; git reset -q --hard HEAD~1; echo other >patch.txt; git add -A; git commit -qm other; git am -q ../home/p || :";
        repo.sh(&quietly(begin));
        let operation = repo.operation();
        assert!(operation.contains_key("rebase-apply/0001"), "{:?}", operation.keys());
        repo.turn(Mode::Ghost, "echo agent >agents.txt");
        repo.undo();
        repo.assert_absent("agents.txt", "undo goes on around it");
        repo.redo();
        assert_eq!(repo.operation(), operation, "and it is as it was");
        repo.turn(Mode::Ghost, "git am --abort; echo more >more.txt");
        let error = repo.refuses(&["undo"], "in_progress");
        assert!(error["message"].as_str().is_some_and(|why| why.contains("too large")), "{error}");
    });
}

#[test]
fn in_linked_worktrees_it_is_the_worktrees_own() {
    in_each_store(|store| {
        let repo = store.forked();
        repo.sh("git commit -qam rest; rm loose.txt");
        let linked = repo.linked("linked");
        linked.sh("echo main >a.txt; echo unstaged >>b.txt");
        repo.sh(&quietly("git cherry-pick side~1 || :"));
        let others = repo.printed();
        for (begin, _, _) in OPERATIONS.map(|(_, begin, end, abort)| (begin, end, abort)) {
            let linked = linked.copy();
            let before = linked.printed();
            linked.turn(Mode::Ghost, &quietly(begin));
            assert!(is_under_way(&linked), "{begin}");
            there_and_back(&linked, &before, &linked.printed());
        }
        let before = linked.printed();
        linked.turn(Mode::Ghost, &quietly("git merge -q side || :"));
        there_and_back(&linked, &before, &linked.printed());
        repo.printed()
            .only(|fact| fact.starts_with("git dir "))
            .assert_is(&others.only(|fact| fact.starts_with("git dir ")), "the other one's own");
    });
}

#[test]
fn where_refs_are_in_tables_it_comes_and_goes_too() {
    if !Sandbox::has_tables() {
        return;
    }
    let start = fork(Sandbox::with_tables(&[]));
    check_all(
        OPERATIONS.map(|(name, begin, end, abort)| (name.to_owned(), (begin, end, abort))),
        |(begin, end, abort)| {
            let repo = start.copy();
            let before = repo.printed();
            repo.turn(Mode::Ghost, &quietly(begin));
            assert!(is_under_way(&repo), "git is in the middle of it");
            let begun = repo.printed();
            there_and_back(&repo, &before, &begun);
            repo.turn(Mode::Ghost, &quietly(&format!("printf 'resolved\\n' >a.txt; git add a.txt; {end}")));
            there_and_back(&repo, &begun, &repo.printed());
            repo.undo();
            repo.turn(Mode::Ghost, &quietly(abort));
            there_and_back(&repo, &begun, &repo.printed());
            repo.oxundo(["undo", "--steps", "2"]).success();
            repo.printed().assert_is(&before, "two at once");
        },
    );
    let repo = Sandbox::with_tables(&[]);
    repo.sh("for n in 1 2 3 4 5 6 7 8; do echo $n >n.txt; git add -A; git commit -qm $n; done");
    let before = repo.printed();
    repo.turn(Mode::Ghost, &quietly("git bisect start; git bisect bad; git bisect good HEAD~7"));
    there_and_back(&repo, &before, &repo.printed());
    assert!(repo.sh("git bisect good").contains("left to test"), "git goes on with it");
}

#[test]
fn no_record_of_somebody_elses_makes_git_run_a_command() {
    in_each_store(|store| {
        let repo = store.forked();
        repo.git(["commit", "-qam", "rest"]);
        let before = repo.printed();
        repo.turn(Mode::Ghost, &quietly("git rebase -q --exec 'echo ran >>../home/ran' side || :"));
        there_and_back(&repo, &before, &repo.printed());
        repo.undo();
        // Who fetches the records of others, with no other notes and turns, has these turns.
        repo.sh(
            "git clone -q . ../home/clone; cd ../home/clone; git fetch -q origin '+refs/oxundo/*:refs/oxundo/*' side:side",
        );
        let theirs = "cd ../home/clone; git config user.name a; git config user.email a@b; \"$OXUNDO\" redo --json; ls .git/rebase-merge";
        let told = Output::of(repo.shell(theirs).env("OXUNDO", env!("CARGO_BIN_EXE_oxundo")));
        assert!(told.out().contains("\"in_progress\"") && told.out().contains("not recorded here"), "{told:?}");
        assert_ne!(told.code, 0, "and there is no rebase: {told:?}");
        // Here it is one's own.
        repo.redo();
        assert!(repo.exists(".git/rebase-merge/git-rebase-todo"));
    });
}

/// What takes a part of the first turn out, or more of it than undo would.
const TAKES_OUT: [&[&str]; 4] = [
    &["undo", "--only", "1"],
    &["undo", "--revert"],
    &["undo", "--", "agents.txt"],
    &["restore", "1:before", "--", "loose.txt"],
];

#[test]
fn a_turn_is_taken_out_around_what_the_user_has_begun_and_does_not_touch() {
    in_each_store(|store| {
        check_all(
            OPERATIONS.map(|(name, begin, end, abort)| (name.to_owned(), (begin, end, abort))),
            |(begin, end, _)| {
                let (start, _) = with_ghost_turn(store, "echo agent >agents.txt; echo more >>loose.txt");
                let begin = begin.replace("git stash -q; ", "");
                start.sh(&quietly(&begin));
                let before = start.printed();
                for args in TAKES_OUT {
                    let repo = start.copy();
                    repo.oxundo(args).success();
                    let is_out = !repo.exists("agents.txt") || args[0] == "restore";
                    assert!(is_out && repo.printed() != before, "{args:?}");
                    assert_eq!(repo.operation(), start.operation(), "{args:?}: it is as it was");
                    assert_eq!(
                        repo.git(["ls-files", "-s"]),
                        start.git(["ls-files", "-s"]),
                        "{args:?}: as is the index"
                    );
                    let back = repo.copy();
                    back.oxundo([if args[0] == "restore" { "undo" } else { "redo" }]).success();
                    back.printed().assert_is(&before, "and back");
                    let control = start.copy();
                    for repo in [&control, &repo] {
                        // In a copy no time is as the index has it, and git takes every file for changed.
                        repo.sh(&quietly(&format!("git status; printf 'resolved\\n' >a.txt; git add a.txt; {end}")));
                    }
                    let trees = [&control, &repo].map(|repo| repo.git(["log", "--format=%T %s", "HEAD"]));
                    assert_eq!(trees[1], trees[0], "{args:?}: it ends as it would have");
                }
            },
        );
    });
}

/// The line in the second hint.
fn line_to_give_up(error: &serde_json::Value) -> String {
    let hint = error["hints"][1].as_str().and_then(|hint| hint.split('\'').nth(1));
    hint.unwrap_or_else(|| panic!("it has a line to type: {error}")).to_owned()
}

#[test]
fn no_commit_is_made_or_moved_below_what_the_user_has_begun() {
    in_each_store(|store| {
        check_all(OPERATIONS.map(|(name, begin, _, _)| (name.to_owned(), begin)), |begin| {
            let (start, _) =
                with_ghost_turn(store, "echo agent >agents.txt; git add agents.txt; git commit -qm agents");
            start.sh("echo later >later.txt; git add later.txt; git commit -qm later");
            start.sh(&quietly(&begin.replace("git stash -q; ", "")));
            let before = start.everything();
            for args in [
                &["undo", "--only", "1"][..],
                &["undo", "--revert"],
                &["squash", "-m", "one"],
                &["branch", "other", "1"],
            ] {
                let error = start.refuses(args, "in_progress");
                start.everything().assert_is(&before, "nothing is changed");
                let repo = start.copy();
                repo.sh(&quietly(&line_to_give_up(&error)));
                assert!(!is_under_way(&repo), "{args:?}");
                let again = repo.oxundo(args);
                assert!(again.code == 0 || again.err().contains("was not made by a turn"), "{args:?}: {again:?}");
            }
        });
    });
}

#[test]
fn what_is_staged_for_the_users_commit_is_not_taken_out_of_it() {
    in_each_store(|store| {
        for (turn, args) in
            [("sed -i s/1/one/ c.txt", &["undo", "--only", "1"][..]), ("echo agent >a.txt", &["undo", "--", "a.txt"])]
        {
            let (repo, _) = with_ghost_turn(store, turn);
            repo.sh(&quietly("git commit -qam taken; git merge -q side || :"));
            let before = repo.everything();
            let error = repo.refuses(args, "in_progress");
            repo.everything().assert_is(&before, "nothing is changed");
            repo.sh(&quietly(&line_to_give_up(&error)));
            repo.oxundo(args).success();
        }
    });
}

#[test]
fn where_a_rebase_stands_still_a_turn_in_it_is_taken_out_by_a_commit_on_top() {
    in_each_store(|store| {
        let repo = store.forked();
        repo.sh("git stash -q; GIT_SEQUENCE_EDITOR='echo break >' git rebase -q -i HEAD~1 >/dev/null 2>&1");
        repo.turn(Mode::Ghost, "echo agent >agents.txt; git add agents.txt; git commit -qm agents");
        repo.turn(Mode::Ghost, "echo later >later.txt; git add later.txt; git commit -qm later");
        let before = repo.printed();
        repo.oxundo(["undo", "--only", "1"]).success();
        repo.assert_absent("agents.txt", "it is taken out");
        let subject = repo.git(["log", "-1", "--format=%s"]);
        assert!(subject.starts_with("Take out turn 1: "), "{subject}");
        let after = repo.printed();
        for (op, wanted) in [("undo", &before), ("redo", &after)] {
            repo.oxundo([op]).success();
            repo.printed().assert_is(wanted, op);
        }
        repo.sh(&quietly("git rebase --continue"));
        assert!(!is_under_way(&repo) && repo.exists("later.txt") && !repo.exists("agents.txt"), "git goes on with it");
        repo.assert_sound();
    });
}

#[test]
fn a_state_before_what_the_user_has_begun_is_restored_exactly_and_undo_leads_back_into_it() {
    in_each_store(|store| {
        for (name, begin, end, _) in OPERATIONS {
            let (repo, before) = with_ghost_turn(store, "echo agent >agents.txt");
            repo.sh(&quietly(&begin.replace("git stash -q; ", "")));
            let begun = repo.printed();
            let restored = repo.oxundo(["restore", "--exact", "1:before"]);
            if restored.code != 0 {
                // Others than these leave the branch, or have made a commit of the user's.
                assert!(!matches!(name, "merge" | "merge without a conflict" | "cherry-pick"), "{name}: {restored:?}");
                repo.refuses_any(&["restore", "--exact", "1:before"], &["in_progress", "foreign"]);
                repo.printed().assert_is(&begun, name);
                continue;
            }
            repo.state().without("git ").assert_is(&before.clone().without("git "), name);
            assert!(!is_under_way(&repo), "{name}: git is in the middle of nothing");
            repo.undo();
            repo.printed().assert_is(&begun, name);
            repo.sh(&quietly(&format!("printf 'resolved\\n' >a.txt; git add a.txt; {end}")));
            assert!(!is_under_way(&repo), "{name}: git goes on with it");
        }
    });
}

#[test]
fn steps_and_sessions_are_taken_out_around_what_the_user_has_begun() {
    in_each_store(|store| {
        let start = store.forked();
        start.sh("git commit -qam rest; rm loose.txt; git config oxundo.mode ghost");
        for session in ["one", "other"] {
            hook(&start, session, "UserPromptSubmit", &json!({}));
        }
        for (session, number) in [("one", 1), ("other", 2), ("one", 3)] {
            let script = format!("echo {session} >file{number}.txt");
            call(&start, session, number, "Bash", &json!({"command": script}), &script);
        }
        for session in ["one", "other"] {
            hook(&start, session, "Stop", &json!({}));
        }
        start.sh(&quietly("git merge -q side || :"));
        let before = start.printed();
        for (args, left) in [
            (&["undo", "--to", "1.1"][..], "file1.txt"),
            (&["undo", "--only", "1.2"], "file1.txt file3.txt"),
            (&["undo", "--session", "one"], "file2.txt"),
        ] {
            let repo = start.copy();
            repo.oxundo(args).success();
            assert_eq!(repo.sh("echo file?.txt").trim_end(), left, "{args:?}");
            assert_eq!(repo.operation(), start.operation(), "{args:?}");
            repo.redo();
            repo.printed().assert_is(&before, "and back");
        }
    });
}

/// What a turn leaves that git is in the middle of, or commits that the user takes off again in part: what it committed is here, though it
/// is not done.
#[test]
fn what_is_left_of_a_turn_whose_operation_is_given_up_or_ended_is_taken_out() {
    let solve = "printf 'USER\\n2\\n3\\n' >a.txt; git add a.txt; GIT_EDITOR=: git";
    let cases = [
        ("git rebase topic", "git rebase --abort".to_owned(), "m"),
        ("git rebase topic", format!("{solve} rebase --continue"), "USER"),
        ("git cherry-pick main..topic", "git cherry-pick --abort".to_owned(), "m"),
        ("git format-patch -q -o ../home main..topic; git am -3 ../home/0*", "git am --abort".to_owned(), "m"),
        ("git cherry-pick main..topic", format!("{solve} commit -qm solved"), "USER"),
        ("git cherry-pick topic", format!("{solve} commit -qm solved"), "USER"),
        ("echo ITS2 >c.txt; git commit -qam its-second", "git reset -q --keep HEAD~1".to_owned(), "m"),
    ];
    in_both_modes(|mode| {
        for (leaves, ends, first) in &cases {
            let repo = Sandbox::new();
            repo.sh(
                "printf '1\\n2\\n3\\n' >a.txt; seq 9 >b.txt; seq 9 >c.txt; git add -A; git commit -qm base
                 git switch -qc topic; echo TOPIC >c.txt; git commit -qam t0; printf 'TOPIC\\n2\\n3\\n' >a.txt; git commit -qam t1
                 git switch -q main; printf 'm\\n2\\n3\\n' >a.txt; git commit -qam m",
            );
            repo.turn(
                mode,
                &quietly(&format!("echo ITS >b.txt; git commit -qam its; {{ {leaves} || :; }}; echo ITS >n.txt")),
            );
            if mode == Mode::Commit && ends.starts_with("git reset") {
                // The commit that oxundo makes of what is uncommitted.
                repo.sh("git reset -q --keep HEAD~1");
            }
            repo.sh(&quietly(ends));
            assert!(!is_under_way(&repo), "{leaves}: {ends}");
            let (ended, is_its_there) = (repo.printed(), repo.exists("n.txt"));
            let error = repo.json(["undo"]);
            let hints = error.1["error"]["hints"].to_string();
            let line = if hints.contains("undo --revert") { "--revert" } else { "--only 1" };
            assert!(hints.contains(&format!("oxundo undo {line}")), "{leaves}; {ends}: {error:?}");
            repo.printed().assert_is(&ended, "nothing is changed");
            repo.oxundo(format!("undo {line}").split(' ')).success();
            assert_eq!(
                repo.sh("head -1 a.txt; head -1 b.txt").lines().collect::<Vec<_>>(),
                [*first, "1"],
                "{leaves}; {ends}"
            );
            repo.assert_absent("n.txt", "what is the turn's goes");
            assert_eq!(repo.git(["status", "--porcelain"]), "", "{leaves}; {ends}");
            let out = repo.printed();
            repo.undo();
            repo.printed().assert_is(&ended, "and comes back");
            assert_eq!(repo.exists("n.txt"), is_its_there);
            repo.redo();
            repo.printed().assert_is(&out, "redo");
            repo.assert_sound();
        }
    });
}

/// A file that the user has edited since has what the turn left there all the same.
#[test]
fn what_is_left_of_a_turn_that_was_taken_off_goes_from_files_that_the_user_has_edited() {
    for edit in [":", "sed -i s/^1$/MINE/ b.txt"] {
        let repo = Sandbox::new();
        repo.sh("for f in a b c; do seq 9 >$f.txt; done; git add -A; git commit -qm base");
        let ghost = "echo ITS >a.txt; git commit -qam its; sed -i s/^8$/ITS/ b.txt; rm c.txt; echo ITS >n.txt";
        repo.turn(Mode::Ghost, ghost);
        repo.sh(&format!("git reset -q --keep HEAD~1; {edit}"));
        let before = repo.state();
        repo.oxundo(["undo", "--only", "1"]).success();
        assert!(!repo.sh("cat *.txt").contains("ITS"), "all of it is out");
        assert_eq!(repo.sh("cat b.txt").contains("MINE"), edit != ":", "and the user's stays");
        assert!(repo.exists("c.txt") && !repo.exists("n.txt"));
        repo.undo();
        repo.state().assert_is(&before, "and comes back");
    }
}

/// All that it committed is off the branch, and what it did not commit is here: the turn below waits until that has gone, too.
#[test]
fn what_a_turn_left_uncommitted_goes_before_the_turn_below_where_its_commits_are_taken_off() {
    let commits = "echo ITS >b.txt; git commit -qam its";
    for (mode, leaves, ends) in [
        (Mode::Commit, "git rebase -q topic || :", "git rebase --abort"),
        (Mode::Ghost, "git rebase -q topic || :", "git rebase --abort"),
        (Mode::Ghost, commits, "git reset -q --keep HEAD~1"),
        (Mode::Ghost, commits, "git reset -q --hard HEAD~1"),
    ] {
        let repo = Sandbox::new();
        repo.sh("for f in a b c; do seq 9 >$f.txt; done; git add -A; git commit -qm base
            git switch -qc topic; echo TOPIC >a.txt; git commit -qam t0
            git switch -q main; echo m >a.txt; git commit -qam m");
        let before = repo.printed();
        repo.turn(mode, "echo BELOW >below.txt");
        let below = repo.printed();
        repo.turn(mode, &quietly(&format!("{leaves}; echo ITS >n.txt; [ -e .git/rebase-merge ] || echo ITS >>c.txt")));
        repo.sh(&quietly(ends));
        let ended = repo.printed();
        let error = repo.refuses(&["undo"], "branch");
        let [out, on] = [0, 1].map(|at| error["hints"][at].as_str().unwrap_or_default().to_owned());
        assert!(out.contains("'oxundo undo --only 2'") && on.contains("'oxundo undo --to 0'"), "{ends}: {error}");
        repo.oxundo(["undo", "--only", "2"]).success();
        repo.printed().assert_is(&below, "all of the turn is gone");
        repo.undo();
        repo.printed().assert_is(&ended, "and comes back");
        // What it left is whosever they take it for.
        repo.oxundo(["undo", "--to", "0"]).success();
        repo.assert_absent("below.txt", ends);
        assert_eq!(repo.sh("cat n.txt"), "ITS", "{ends}");
        repo.sh("rm n.txt; git checkout -q HEAD -- b.txt c.txt");
        repo.printed().assert_is(&before, ends);
        repo.assert_sound();
    }
}

/// What the agent's merge or pick has left to the user, and they end in the middle of the turn.
#[test]
fn what_the_user_ends_of_a_calls_merge_within_the_turn_stays_as_they_put_it_together() {
    let solve = "printf 'SOLVED\\n2\\n3\\n' >c; git add c; GIT_EDITOR=: git";
    in_both_modes(|mode| {
        for (begins, ends, brings) in [
            ("git merge -q o", "commit -qm merged", true),
            ("git cherry-pick o", "cherry-pick --continue", true),
            ("git revert --no-edit HEAD~2", "revert --continue", false),
        ] {
            for (args, later) in [("--revert", true), ("--only 1", true), ("--revert", false)] {
                let repo = Sandbox::new();
                repo.sh("printf '1\\n2\\n3\\n' >c; echo f >f; git add -A; git commit -qm base
                    git switch -qc o; printf 'o\\n2\\n3\\n' >c; echo o >new; git add -A; git commit -qm o; git switch -q main
                    printf 'p\\n2\\n3\\n' >c; git commit -qam p; printf 'm\\n2\\n3\\n' >c; git commit -qam m");
                if mode == Mode::Ghost {
                    repo.git(["config", "oxundo.mode", "ghost"]);
                }
                hook(&repo, "s", "UserPromptSubmit", &json!({}));
                call(&repo, "s", 1, "Bash", &json!({}), "echo ITS >>f; git commit -qam its");
                call(&repo, "s", 2, "Bash", &json!({}), &quietly(&format!("{begins} || :")));
                assert!(is_under_way(&repo), "{begins}");
                repo.sh(&quietly(&format!("{solve} {ends}")));
                tick();
                if later {
                    call(&repo, "s", 3, "Edit", &json!({"file_path": repo.path("f")}), "echo ITS >>f");
                }
                hook(&repo, "s", "Stop", &json!({}));
                let done = repo.printed();
                repo.oxundo(format!("undo {args}").split(' ')).success();
                let what = format!("{begins}, {args}, {later}");
                assert_eq!(repo.sh("cat c f; git show HEAD:c"), "SOLVED\n2\n3\nf\nSOLVED\n2\n3", "{what}");
                assert_eq!(
                    (repo.exists("new"), repo.git(["status", "--porcelain"])),
                    (brings, String::new()),
                    "{what}"
                );
                let out = repo.printed();
                repo.undo();
                repo.printed().assert_is(&done, &what);
                repo.redo();
                repo.printed().assert_is(&out, &what);
                repo.assert_sound();
            }
        }
    });
}

/// HEAD is on no branch there: what others have is on none of the user's, and stays with them.
#[test]
fn a_rebase_onto_what_others_have_that_a_turn_left_is_taken_back_by_undo() {
    for mode in Mode::BOTH {
        for beside in [":", "echo ITS >its"] {
            let repo = Sandbox::new();
            repo.commit("shared", "1\n2\n3\n");
            repo.sh("git init -q --bare -b main ../up.git; git remote add origin ../up.git; git push -qu origin main
                     git clone -q ../up.git ../c; cd ../c; git config user.name C; git config user.email c@example.org
                     echo C >new; git add new; git commit -qm new; sed -i 2s/.*/C/ shared; git commit -qam c; git push -q");
            repo.sh("sed -i 2s/.*/MINE/ shared; git commit -qam mine");
            let before = repo.state();
            repo.turn(mode, &quietly(&format!("git pull -q --rebase || :; {beside}")));
            let after = repo.state();
            repo.undo();
            repo.state().assert_is(&before, beside);
            repo.redo();
            repo.state().assert_is(&after, beside);
            repo.assert_sound();
        }
    }
}

#[test]
fn where_the_rebase_is_given_up_that_a_turn_left_a_line_goes_back_to_before_it() {
    let repo = Sandbox::new();
    repo.commit("shared", "1\n2\n3\n");
    repo.sh("git switch -qc other; sed -i 2s/.*/OTHER/ shared; git commit -qam other; git switch -q main
             sed -i 2s/.*/MINE/ shared; git commit -qam mine; echo MINE >>README.txt");
    let before = repo.state();
    repo.turn(Mode::Commit, &quietly("git rebase -q --autostash other || :"));
    repo.sh(&quietly("git rebase --abort"));
    let refused = repo.oxundo(["undo"]);
    assert!(refused.err().contains("run 'oxundo restore --exact 1:before'"), "{refused:?}");
    repo.oxundo(["restore", "--exact", "1:before"]).success();
    repo.state().assert_is(&before, "as it was");
    repo.assert_sound();
}
