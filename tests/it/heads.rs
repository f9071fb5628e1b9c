//! HEAD on a branch that stands for another one, and HEAD as a link: git works there, and so does oxundo.

use crate::sandbox::{Mode, Sandbox, check_all};

/// HEAD is on 'alias', which stands for 'main'; there is another branch.
const ALIAS: &str =
    "git branch other; git symbolic-ref refs/heads/alias refs/heads/main; git symbolic-ref HEAD refs/heads/alias";

/// What HEAD's file says, as a link or as a file.
fn head(repo: &Sandbox) -> String {
    repo.sh("git symbolic-ref -q HEAD || git rev-parse HEAD; readlink .git/HEAD || :; git symbolic-ref -q refs/heads/alias || :")
}

/// Each turn there and back, HEAD's own words compared too.
fn check(prepare: &str) {
    let turns = [
        "echo two >>README.txt",
        "echo two >>README.txt; git commit -qam two; echo three >>README.txt",
        "git switch -q other; echo two >>README.txt",
        "git switch -qc new; echo two >>README.txt; git commit -qam two",
        "git switch -q --detach; echo two >>README.txt",
        "git reset -q --hard HEAD~",
    ];
    let cases = turns.iter().flat_map(|turn| Mode::BOTH.map(|mode| (format!("{turn} {mode:?}"), (*turn, mode))));
    check_all(cases, |(turn, mode)| {
        let repo = Sandbox::new();
        repo.commit("README.txt", "one\n");
        repo.sh(prepare);
        repo.sh("echo dirty >mine");
        let (before, said) = (repo.state(), head(&repo));
        repo.turn(*mode, turn);
        let (after, then) = (repo.state(), head(&repo));
        for (op, wanted, words) in [("undo", &before, &said), ("redo", &after, &then), ("undo", &before, &said)] {
            repo.oxundo([op]).success();
            repo.state().assert_is(wanted, op);
            assert_eq!(&head(&repo), words, "{op}: HEAD is as it was");
        }
        repo.assert_sound();
    });
}

#[test]
fn a_branch_that_stands_for_another_is_worked_on_as_git_does() {
    check(ALIAS);
}

#[test]
fn a_head_that_is_a_link_stays_one() {
    check("git branch other; git config core.preferSymlinkRefs true; ln -sf refs/heads/main .git/HEAD");
}

#[test]
fn an_unborn_branch_behind_another_name_is_born() {
    let repo = Sandbox::unborn();
    repo.sh("git symbolic-ref refs/heads/alias refs/heads/main; git symbolic-ref HEAD refs/heads/alias; echo one >one; git add one");
    for mode in Mode::tried() {
        let before = repo.state();
        repo.turn(mode, "echo two >two; git add two; git commit -qm first");
        let after = repo.state();
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.oxundo([op]).success();
            repo.state().assert_is(wanted, op);
            assert_eq!(repo.sh("cat .git/HEAD"), "ref: refs/heads/alias");
        }
    }
}

#[test]
fn a_turn_on_a_branch_by_one_name_comes_and_goes_where_head_has_the_other() {
    for (made_on, then) in [("alias", "main"), ("main", "alias")] {
        let repo = Sandbox::new();
        repo.sh(&format!("git symbolic-ref refs/heads/alias refs/heads/main; git switch -q {made_on}"));
        repo.sh(&format!("git switch -q {then}"));
        let before = repo.state();
        repo.sh(&format!("git switch -q {made_on}"));
        repo.agent("echo two >>README.txt");
        repo.sh(&format!("git switch -q {then}"));
        let after = repo.state();
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.oxundo([op]).success();
            repo.state().assert_is(wanted, op);
            assert_eq!(repo.sh("cat .git/HEAD"), format!("ref: refs/heads/{then}"));
        }
    }
}

#[test]
fn branches_that_stand_for_others_come_and_go() {
    let turns = [
        ("made", "git symbolic-ref refs/heads/new refs/heads/other"),
        ("made, to nothing", "git symbolic-ref refs/heads/new refs/heads/nothing"),
        ("made, below a directory", "git symbolic-ref refs/heads/new/deep refs/heads/other"),
        ("deleted", "git symbolic-ref -d refs/heads/alias"),
        ("deleted with its branch", "git symbolic-ref -d refs/heads/alias; git branch -qD other"),
        ("led elsewhere", "git symbolic-ref refs/heads/alias refs/heads/main"),
        ("led to a tag", "git tag -f v1; git symbolic-ref refs/heads/alias refs/tags/v1"),
        ("a branch of its own now", "git update-ref --no-deref refs/heads/alias main"),
        ("no branch of its own any more", "git symbolic-ref refs/heads/other refs/heads/main"),
        ("moved along", "git branch -f other main~"),
        ("in the way of another", "git symbolic-ref -d refs/heads/alias; git branch alias/deep"),
    ];
    let cases =
        turns.iter().flat_map(|(name, turn)| Mode::BOTH.map(|mode| (format!("{name} {mode:?}"), (*turn, mode))));
    check_all(cases, |(turn, mode)| {
        let repo = Sandbox::new();
        repo.commit("a.txt", "one\n");
        repo.sh("git branch other; git symbolic-ref refs/heads/alias refs/heads/other");
        let listed = || repo.sh("cd .git/refs/heads; find . -type f | sort | xargs grep ''");
        for more in ["", "; echo two >>a.txt"] {
            let before = listed();
            repo.turn(*mode, &format!("{turn}{more}"));
            let after = listed();
            for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
                repo.oxundo([op]).success();
                assert_eq!(&listed(), wanted, "{op}");
            }
        }
    });
}

#[test]
fn a_branch_that_was_led_elsewhere_since_is_not_moved() {
    let repo = Sandbox::new();
    repo.sh("git branch other; git symbolic-ref refs/heads/alias refs/heads/other");
    repo.agent("git symbolic-ref refs/heads/alias refs/heads/main; echo two >>README.txt");
    repo.sh("git symbolic-ref refs/heads/alias refs/heads/elsewhere");
    repo.refuses(&["undo"], "branch");
}

/// Others commit at an instant of oxundo's look.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod moments {
    use crate::sandbox::{Sandbox, announce};
    use crate::tracer::{LAUNCH, interrupt_at_opening};
    use std::cell::Cell;

    /// HEAD's commit and that of its branch, as each checkpoint in the timeline has them.
    fn recorded(repo: &Sandbox) -> Vec<(String, String)> {
        let trees = repo.sh("git ls-tree -rd --full-tree refs/oxundo/timeline | cut -f2");
        let mut all = Vec::new();
        for tree in trees.lines() {
            let place = format!("refs/oxundo/timeline:{tree}");
            let about = repo.try_git(["show", &format!("{place}/checkpoint.json")]);
            if about.code != 0 {
                continue;
            }
            let about: serde_json::Value = serde_json::from_str(&about.out()).expect("it is JSON");
            let branches = repo.git(["show", &format!("{place}/branches")]);
            let main = branches.lines().find_map(|line| line.strip_suffix(" refs/heads/main")).unwrap_or_default();
            all.push((about["head"]["commit"].as_str().unwrap_or_default().to_owned(), main.to_owned()));
        }
        all
    }

    #[test]
    fn head_and_the_branches_are_of_one_moment_whenever_somebody_commits() {
        let repo = Sandbox::new();
        repo.sh("git branch other; git pack-refs --all; git commit -q --allow-empty -m loose");
        let mut met = 0;
        for place in ["/HEAD", "refs/heads/main", "packed-refs"] {
            for often in 0..12 {
                let copy = repo.copy();
                let done = Cell::new(false);
                let commits = || {
                    done.set(true);
                    copy.git(["commit", "-q", "--allow-empty", "-m", "meanwhile"]);
                };
                let mut command = copy.launched_command(LAUNCH, &["checkpoint", "one"]);
                let Ok(_) = interrupt_at_opening(&mut command, place, often, &commits) else {
                    announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
                    return;
                };
                if !done.get() {
                    break;
                }
                met += 1;
                let states = recorded(&copy);
                assert!(!states.is_empty(), "a checkpoint is made");
                for (head, main) in states {
                    assert_eq!(head, main, "a commit before '{place}' is opened, {often} times before");
                }
            }
        }
        assert!(met > 6, "somebody commits in between: {met}");
    }
}
