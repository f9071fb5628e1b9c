//! Unmerged entries without an operation, as a conflicting `git stash pop` leaves them, are state like any other.

use crate::sandbox::{Mode, Sandbox, State, in_both_modes};

/// The agent commits, and pops what the user has stashed: a conflict, with the entry kept.
const POP: &str = "echo agent >a.txt; git commit -qam agent; git stash pop -q >/dev/null 2>&1 || :; echo new >new.txt";

fn stashed() -> Sandbox {
    let repo = Sandbox::new();
    repo.write("a.txt", "base\n").write("b.txt", "b\n").sh("git add -A; git commit -qm files");
    repo.sh("echo mine >>a.txt; git stash push -q -m mine; echo unstaged >>b.txt; echo loose >loose.txt");
    repo
}

/// The same, with the conflict as the user's.
fn unmerged() -> Sandbox {
    let repo = stashed();
    repo.sh("echo other >a.txt; git commit -qm other a.txt; git stash pop -q >/dev/null 2>&1 || :");
    assert_eq!(repo.git(["ls-files", "--unmerged"]).lines().count(), 3, "three stages");
    repo
}

/// What a commit-mode turn leaves of the user's work is committed.
fn there_and_back(repo: &Sandbox, before: &State, after: &State) {
    for (op, wanted) in [("undo", before), ("redo", after), ("undo", before), ("redo", after)] {
        repo.oxundo([op]).success();
        repo.state().assert_is(wanted, op);
    }
}

/// git's own index keeps the sides of a conflict; once a turn has taken it away, the record does.
#[test]
fn the_sides_of_a_conflict_that_a_turn_gave_up_outlast_all_collecting() {
    let repo = unmerged();
    repo.sh("git stash drop -q; git checkout -q --ours a.txt");
    let (before, mine) = (repo.state(), repo.git(["show", ":3:a.txt"]));
    repo.turn(Mode::Ghost, "git reset -q --hard; echo new >new.txt");
    repo.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    repo.undo();
    repo.state().assert_is(&before, "undo");
    assert_eq!(repo.git(["show", ":3:a.txt"]), mine);
    repo.assert_sound();
}

#[test]
fn an_agents_conflicting_pop_comes_and_goes_with_all_its_stages() {
    in_both_modes(|mode| {
        let repo = stashed();
        let before = repo.state();
        repo.turn(mode, POP);
        assert_eq!(repo.git(["ls-files", "--unmerged"]).lines().count(), 3, "three stages");
        there_and_back(&repo, &before, &repo.state());
        repo.assert_sound();
    });
}

#[test]
fn what_the_user_gives_up_of_an_agents_conflict_is_no_edit_and_redo_has_it() {
    in_both_modes(|mode| {
        for gives_up in [
            "git reset -q",
            "git checkout -q --ours a.txt; git add a.txt",
            "git reset -q -- a.txt; git checkout -q a.txt",
        ] {
            let repo = stashed();
            let before = repo.state();
            repo.turn(mode, POP);
            repo.sh(gives_up);
            there_and_back(&repo, &before, &repo.state());
        }
    });
}

/// The user takes what their stash entry had, and drops that: there is no other copy.
#[test]
fn what_the_user_takes_of_their_dropped_stash_is_an_edit() {
    in_both_modes(|mode| {
        let repo = stashed();
        repo.sh("echo other >a.txt; git commit -qm other a.txt");
        repo.turn(mode, "git stash pop -q >/dev/null 2>&1 || :");
        repo.sh("git checkout -q --theirs a.txt; git add a.txt; git stash drop -q");
        let before = repo.state();
        repo.refuses(&["undo"], "conflict");
        repo.state().assert_is(&before, "refused");
        repo.sh("git checkout -q HEAD -- a.txt");
        repo.undo();
        assert_eq!(repo.sh("cat a.txt"), "other");
    });
}

#[test]
fn what_the_user_makes_of_an_agents_conflict_is_theirs_and_the_hint_leads_on() {
    in_both_modes(|mode| {
        for makes in ["echo resolved >a.txt", "echo resolved >a.txt; git add a.txt"] {
            let repo = stashed();
            let before = repo.files();
            repo.turn(mode, POP);
            repo.sh(makes);
            let refusal = repo.refuses(&["undo"], "conflict");
            let hints = refusal["hints"].as_array().expect("there are some").clone();
            let line = hints.iter().filter_map(|hint| hint.as_str()).find(|hint| hint.contains("git stash"));
            let line = line.and_then(|hint| hint.split('\'').nth(1)).expect("it has a line");
            repo.sh(line);
            repo.undo();
            repo.files().assert_is(&before, line);
            assert_eq!(repo.git(["show", "stash@{0}:a.txt"]), "resolved", "it is put away");
        }
    });
}

#[test]
fn a_users_conflict_stays_in_a_turn_that_does_not_touch_it_and_comes_back_where_one_resolves_it() {
    for script in [
        "echo more >>b.txt; echo new >new.txt",
        "echo own >own.txt; git add own.txt",
        "echo resolved >a.txt; git add a.txt",
        "echo resolved >a.txt; git add -u; git commit -qm resolved; git stash drop -q",
        "git reset -q",
        "git checkout -q --theirs a.txt; git add a.txt",
        "git reset -q --hard",
        "rm a.txt",
        "git rm -q -f a.txt",
    ] {
        let repo = unmerged();
        let before = repo.state();
        repo.turn(Mode::Ghost, script);
        there_and_back(&repo, &before, &repo.state());
        repo.assert_sound();
    }
}

#[test]
fn a_users_conflict_after_a_turn_stays_unless_it_is_in_the_turns_files() {
    let repo = stashed();
    repo.turn(Mode::Ghost, "echo agent >>b.txt");
    repo.sh("echo other >a.txt; git commit -qm other a.txt; git stash pop -q >/dev/null 2>&1 || :");
    let entries = repo.git(["ls-files", "-s"]);
    assert_eq!(repo.git(["ls-files", "--unmerged"]).lines().count(), 3, "three stages");
    repo.undo();
    repo.assert_file("b.txt", "b\nunstaged\n", "the turn is undone");
    assert_eq!(repo.git(["ls-files", "-s"]), entries, "the conflict is as it was");
    repo.sh("git add a.txt; git commit -qm done; git stash push -q -- b.txt");
    repo.turn(Mode::Ghost, "echo more >>a.txt");
    repo.sh("git checkout -q a.txt; echo mine >>a.txt; git stash push -q; echo 2 >>a.txt; git commit -qam 2; git stash pop -q >/dev/null 2>&1 || :");
    let before = repo.everything();
    repo.refuses(&["undo"], "conflict");
    repo.everything().assert_is(&before, "the user's conflict is not torn");
}

#[test]
fn a_users_conflict_stays_as_it_is_below_what_takes_out_squashes_and_branches() {
    for (mode, args) in [
        (Mode::Ghost, &["undo", "--only", "1"][..]),
        (Mode::Commit, &["undo", "--only", "1"]),
        (Mode::Commit, &["undo", "--revert", "--steps", "2"]),
        (Mode::Commit, &["squash", "1..2", "-m", "one"]),
        (Mode::Commit, &["branch", "other", "2"]),
    ] {
        let repo = stashed();
        repo.sh("git stash push -q -- b.txt; echo other >a.txt; git commit -qm other a.txt");
        repo.turn(mode, "echo one >one.txt");
        repo.turn(mode, "echo two >two.txt");
        repo.sh("git stash pop -q stash@{1} >/dev/null 2>&1 || :");
        let entries = || repo.git(["ls-files", "--unmerged"]);
        let (before, conflict) = (repo.state(), entries());
        assert_eq!(conflict.lines().count(), 3, "three stages");
        repo.oxundo(args).success();
        assert_eq!(entries(), conflict, "{args:?}: the conflict is as it was");
        assert!(repo.exists("one.txt") == (args[0] != "undo"), "{args:?}");
        let after = repo.state();
        there_and_back(&repo, &before, &after);
        repo.sh("echo resolved >a.txt; git add a.txt; git commit -qm resolved");
    }
}
