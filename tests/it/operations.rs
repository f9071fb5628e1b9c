//! What git is in the middle of is state like any other: undo and redo bring it back, byte for byte, and git goes on with it.

use crate::sandbox::{Mode, Sandbox, State, check_all, in_both_modes};

/// Branches to merge, rebase and pick: `side` and `clash` conflict with `main` in `a.txt`; `side` has a file more.
fn forked() -> Sandbox {
    fork(Sandbox::new())
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

fn quietly(script: &str) -> String {
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
    in_both_modes(|mode| {
        check_all(
            OPERATIONS.map(|(name, begin, end, abort)| (name.to_owned(), (begin, end, abort))),
            |(begin, end, abort)| {
                for ends in [end, abort] {
                    let repo = forked();
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
}

#[test]
fn what_a_turn_does_in_the_middle_of_the_users_operation_comes_and_goes() {
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
                let repo = forked();
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
}

#[test]
fn a_bisect_comes_and_goes_and_git_goes_on_with_it() {
    let repo = Sandbox::new();
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
}

#[test]
fn what_is_prepared_for_the_next_commit_comes_and_goes() {
    in_both_modes(|mode| {
        for script in ["git stash -q; git merge -q --squash side~1 || :", "git cherry-pick -n side || :"] {
            let repo = forked();
            let before = repo.printed();
            repo.turn(mode, &quietly(script));
            let after = repo.printed();
            there_and_back(&repo, &before, &after);
        }
    });
}
