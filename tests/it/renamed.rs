//! Branches that the user gives other names, and new ones under the old names: git's own reflog says which is the turn's.

use crate::sandbox::{Sandbox, check_all};
use serde_json::json;
use std::os::unix::fs::MetadataExt;

/// Moves `side` beside HEAD.
const BESIDE: &str =
    "git switch -q side; echo two >>README.txt; git commit -qam two; git switch -q main; echo one >one.txt";

/// Makes `side`, and comes back.
const MADE: &str =
    "git switch -qc side; echo two >>README.txt; git commit -qam two; git switch -q main; echo one >one.txt";

/// Makes `side`, and stays on it.
const SWITCHED: &str = "git switch -qc side; echo two >>README.txt; git commit -qam two; echo one >one.txt";

/// By a clock that is behind: when it was does not tell who did it.
const BY_A_SLOW_CLOCK: &str = "export GIT_COMMITTER_DATE=2020-01-01T00:00:00Z";

/// Where the branches and HEAD are, and what is in the files.
fn seen(repo: &Sandbox) -> String {
    repo.sh("git for-each-ref --format='%(refname:short) %(objectname)' refs/heads; git symbolic-ref HEAD; git status -s; head *.txt")
}

/// A commit of the user's own that is on no branch.
fn others(repo: &Sandbox) -> String {
    repo.sh("git commit-tree -m other 'HEAD^{tree}'")
}

#[test]
fn a_turns_branch_is_known_by_its_new_name_and_what_is_under_the_old_one_is_the_users() {
    let renames = ["git branch -m side s2", "git branch -m side s1; git branch -m s1 s2"];
    let new = ["true", "git branch side OTHER", "git branch side s2"];
    let turns = [("git branch side", BESIDE), ("true", MADE), ("true", SWITCHED)];
    let cases = turns.into_iter().zip(renames.into_iter().cycle()).flat_map(|((before, script), rename)| {
        new.map(|new| (format!("{before}; {script}; {rename}; {new}"), (before, script, rename, new)))
    });
    check_all(cases, |(before, script, rename, new)| {
        let repo = Sandbox::new();
        let other = others(&repo);
        repo.sh(before);
        let as_renamed = |old: &str| old.replace("side ", "s2 ");
        let then = as_renamed(&seen(&repo));
        repo.agent(script);
        repo.sh(rename);
        repo.sh(&new.replace("OTHER", &other));
        let (after, mine) = (seen(&repo), repo.sh("git rev-parse -q --verify side || true"));
        repo.undo();
        let undone = seen(&repo);
        let own: Vec<&str> = undone.lines().filter(|line| !line.starts_with("side ")).collect();
        assert_eq!(own, then.lines().collect::<Vec<_>>(), "as it was, under the new name");
        assert_eq!(repo.sh("git rev-parse -q --verify side || true"), mine, "the user's own is not touched");
        repo.oxundo(["redo"]).success();
        assert_eq!(seen(&repo), after, "redo brings it back under the new name");
        repo.assert_sound();
    });
}

#[test]
fn a_branch_that_has_its_name_again_is_the_one_and_so_is_one_that_the_user_has_put_there() {
    let there_and_back = "git branch -m side s2; git branch -m s2 side";
    // A copy has the same reflog.
    let copied = "git branch -c side copy; git branch -m side s2; git branch -m s2 side";
    let put_back = "git switch -q side; echo U >u; git add u; git commit -qm U; git switch -q main; \
        git branch kept side; git branch -f side kept~1";
    for git in [there_and_back, copied, put_back] {
        let repo = Sandbox::new();
        let then = repo.sh("git rev-parse HEAD; git status -s; head *.txt");
        repo.agent(MADE);
        repo.sh(git);
        repo.undo();
        assert_eq!(repo.sh("git rev-parse HEAD; git status -s; head *.txt"), then);
        assert_eq!(repo.sh("git for-each-ref refs/heads/side"), "", "{git}");
    }
}

#[test]
fn several_turns_of_a_branch_come_back_under_its_new_name() {
    let next =
        "git switch -q side; echo next >>README.txt; git commit -qam next; git switch -q main; echo two >two.txt";
    for one_by_one in [true, false] {
        let repo = Sandbox::new();
        let then = seen(&repo);
        repo.agent(MADE);
        repo.agent(next);
        repo.sh("git branch -m side s2");
        let after = seen(&repo);
        let steps: &[&[&str]] = if one_by_one { &[&[], &[]] } else { &[&["2"]] };
        for (op, wanted) in [("undo", &then), ("redo", &after), ("undo", &then)] {
            for more in steps {
                repo.oxundo([&[op], *more].concat()).success();
            }
            assert_eq!(seen(&repo), *wanted, "{op}");
        }
    }
}

#[test]
fn a_branch_that_turns_and_the_user_gave_names_in_turn_is_followed_by_one_walk_and_by_several() {
    for users in ["true", "git branch -m mine", "git branch -m mine; git branch ag HEAD~1"] {
        let repo = Sandbox::new();
        repo.agent("git branch -m ag; echo 1 >n1");
        repo.sh(users);
        repo.agent("git branch -m ag2; echo 2 >n2");
        let (after, by_steps) = (repo.state(), repo.copy());
        for _ in 0..2 {
            repo.oxundo(["undo", "2"]).success();
            assert!(!repo.exists("n1") && !repo.exists("n2"));
            assert_eq!(repo.git(["branch", "--show-current"]).trim(), "main");
            repo.oxundo(["redo", "2"]).success();
            repo.state().assert_is(&after, users);
        }
        // Of two branches that may have had the name, none is taken.
        if users.ends_with("HEAD~1") {
            continue;
        }
        repo.oxundo(["undo", "2"]).success();
        by_steps.undo();
        by_steps.undo();
        by_steps.state().assert_is(&repo.state(), users);
        by_steps.oxundo(["redo", "2"]).success();
        by_steps.state().assert_is(&after, users);
    }
}

#[test]
fn the_users_name_of_a_branch_to_which_a_turn_switched_stays_by_one_walk_and_by_several() {
    for more in ["true", "echo 2 >n2; git add n2; git commit -qm two"] {
        let repo = Sandbox::new();
        repo.sh("git branch other");
        repo.agent("git switch -q other");
        repo.sh("git branch -m u1");
        repo.agent(&format!("git branch -m y; {more}"));
        let (after, by_steps) = (repo.state(), repo.copy());
        repo.oxundo(["undo", "2"]).success();
        assert_eq!(repo.git(["branch", "--format=%(refname:short)"]).trim(), "main\nu1");
        by_steps.undo();
        by_steps.undo();
        by_steps.state().assert_is(&repo.state(), more);
        for repo in [&repo, &by_steps] {
            repo.oxundo(["redo", "2"]).success();
            repo.state().assert_is(&after, more);
        }
    }
}

#[test]
fn a_new_name_stays_where_the_message_was_changed_too() {
    let repo = Sandbox::new();
    repo.sh("echo mine >mine; git add mine; git commit -qm mine");
    repo.agent("git branch -m x");
    repo.sh("git commit -q --amend -m again");
    repo.agent("echo 2 >n2; git add n2; git commit -qm two");
    repo.sh("git branch -m u2");
    let after = repo.state();
    for steps in [&["2"][..], &["1"]] {
        repo.oxundo([&["undo"], steps].concat()).success();
        repo.oxundo([&["redo"], steps].concat()).success();
        repo.state().assert_is(&after, "under the user's name");
    }
}

#[test]
fn names_that_the_user_has_given_back_stay_so() {
    let swap = "git branch -m tq; git branch -m other main; git branch -m tq other";
    let back = "git branch -m tq; git branch -m main other; git branch -m tq main";
    let beside = "git branch -m g tq; git branch -m h g; git branch -m tq h";
    let cases = [
        (swap.to_owned(), back),
        (format!("echo 1 >n1; git add n1; git commit -qm one; {swap}"), back),
        (beside.to_owned(), beside),
        (format!("echo 1 >n1; git add n1; git commit -qm one; {beside}"), beside),
    ];
    for (turn, users) in cases {
        let repo = Sandbox::new();
        repo.sh("git branch g; git switch -qc other; echo mine >mine; git add mine; git commit -qm mine; git branch h; git switch -q main");
        let before = repo.state();
        repo.agent(&turn);
        repo.sh(users);
        let after = repo.state();
        for _ in 0..2 {
            // Where nothing is left to be taken back, that is said, or done.
            let undone = repo.oxundo(["undo"]);
            repo.state().assert_is(&before, &turn);
            if undone.code != 0 {
                break;
            }
            repo.redo();
            repo.state().assert_is(&after, &turn);
        }
    }
}

#[test]
fn a_state_of_a_branch_is_gone_to_under_its_new_name() {
    let repo = Sandbox::new();
    repo.agent(SWITCHED);
    let then = repo.sh("git rev-parse HEAD; git status -s; head *.txt");
    repo.agent("echo three >>one.txt");
    repo.sh("git branch -m side s2; git branch side main");
    repo.oxundo(["restore", "--exact", "1"]).success();
    assert_eq!(repo.sh("git rev-parse HEAD; git status -s; head *.txt"), then);
    assert_eq!(repo.sh("git symbolic-ref --short HEAD; git rev-list --count main..side"), "s2\n0");
}

#[test]
fn without_a_reflog_nobody_knows_the_new_name() {
    let repo = Sandbox::new();
    let other = others(&repo);
    repo.sh("git config core.logAllRefUpdates false");
    repo.agent(MADE);
    repo.sh(&format!("git branch -m side s2; git branch side {other}"));
    repo.refuses(&["undo"], "foreign");
}

#[test]
fn without_a_reflog_a_branch_that_may_be_either_is_neither() {
    let repo = Sandbox::new();
    repo.agent(SWITCHED);
    repo.sh("git branch -m side p; git switch -qc mine; git reflog expire --all --expire=all");
    let there = seen(&repo);
    assert_ne!(repo.oxundo(["undo"]).code, 0);
    assert_eq!(seen(&repo), there, "one of them is the user's");
}

#[test]
fn what_the_user_amended_is_known_on_the_branchs_new_name_beside_a_new_one_under_the_old() {
    let repo = Sandbox::new();
    let other = others(&repo);
    repo.sh("git switch -qc side");
    repo.agent("echo one >one.txt");
    repo.agent("echo two >two.txt");
    repo.sh("echo mine >>README.txt; git commit -qa --amend -m mine");
    repo.sh(&format!("git branch -m side s2; git branch side {other}"));
    let states: Vec<_> = repo.log().iter().map(|turn| turn["state"].clone()).collect();
    assert_eq!(states, ["done", "done"]);
    repo.refuses(&["undo"], "foreign");
    repo.oxundo(["undo", "--revert"]).success();
    assert!(!repo.exists("two.txt") && repo.exists("one.txt"));
}

#[test]
fn a_branch_of_the_users_own_that_had_the_old_name_stays() {
    let cases = [
        (
            "renamed, and a new one too",
            "git branch side",
            "git branch -m side z; git branch side HEAD~1; git branch -m side keep",
        ),
        (
            "deleted, and a new one renamed",
            "git branch side",
            "git branch -D side; git branch side HEAD~1; git branch -m side keep",
        ),
        ("a new one at the same commit", MADE, "git branch -m side z; git branch side z; git branch -m side keep"),
        ("a copy", MADE, "git branch -c side x; git branch -m side z; git branch -m x keep"),
    ];
    check_all(cases.map(|(name, script, renamed)| (name.to_owned(), (script, renamed))), |(script, renamed)| {
        let repo = Sandbox::new();
        repo.agent(&format!("{script}; echo one >>README.txt; git commit -qam one"));
        repo.sh(&format!("{BY_A_SLOW_CLOCK}; {renamed}"));
        let (after, keep) = (seen(&repo), repo.sh("git rev-parse keep"));
        let undone = repo.oxundo(["undo"]);
        assert_eq!(repo.sh("git rev-parse keep"), keep, "it is the user's");
        if undone.code == 0 {
            assert!(!repo.sh("git branch").contains(" z"), "the turn's is the other one");
            repo.redo();
            assert_eq!(seen(&repo), after, "redo");
        }
    });
}

#[test]
fn the_branch_that_a_turn_came_from_is_known_beside_a_new_one_that_had_its_name() {
    let repo = Sandbox::new();
    repo.agent(SWITCHED);
    repo.sh(&format!("{BY_A_SLOW_CLOCK}; git branch -m main m2; git branch main m2; git branch -m main keep"));
    for (op, on) in [("undo", "m2"), ("redo", "side"), ("undo", "m2")] {
        repo.oxundo([op]).success();
        assert_eq!(repo.git(["branch", "--show-current"]), on);
        assert_eq!(repo.exists("one.txt"), op == "redo");
    }
    assert_eq!(repo.sh("git rev-parse keep"), repo.sh("git rev-parse m2"), "the user's own is where it was");
    repo.assert_sound();
}

#[test]
fn a_branch_that_redo_has_made_is_the_one_beside_another_that_had_its_name() {
    let repo = Sandbox::new();
    repo.agent("git branch side; echo one >>README.txt");
    repo.undo();
    repo.sh("git branch side; git branch -m side keep");
    repo.redo();
    repo.undo();
    assert_eq!(repo.sh("git branch --format='%(refname:short)'"), "keep\nmain", "what redo has made is undone");
}

/// The branches as they are, each with the last commit on it.
fn tips(repo: &Sandbox) -> String {
    repo.sh("git for-each-ref --format='%(refname:short)=%(contents:subject)' refs/heads").replace('\n', " ")
}

#[test]
fn names_that_change_hands_are_followed() {
    const SWAP: &str = "git branch -m side t; git branch -m other side; git branch -m t other";
    let cases = [
        ("two", SWAP, "main=B other=B side=B"),
        (
            "three",
            "git branch -m side t; git branch -m other side; git branch -m third other; git branch -m t third",
            "main=B other=B side=B third=B",
        ),
        ("with HEAD's", "git branch -m side t; git branch -m main side; git branch -m t main", "main=B other=B side=B"),
        ("over another", "git branch -M side other", "main=B other=B"),
        ("in the place of another", "git branch -D other; git branch -m side other", "main=B other=B"),
    ];
    let cases = cases.into_iter().flat_map(|(name, git, undone)| {
        [true, false].map(|is_before| {
            (format!("{name}, {}", if is_before { "before undo" } else { "before redo" }), (git, undone, is_before))
        })
    });
    check_all(cases, |&(git, undone, is_before)| {
        let repo = Sandbox::new();
        repo.sh("git commit -q --amend -m B; git branch side; git branch other; git branch third");
        if !git.contains("third") {
            repo.sh("git branch -D third");
        }
        repo.agent(BESIDE);
        if !is_before {
            repo.undo();
        }
        repo.sh(&format!("{BY_A_SLOW_CLOCK}; {git}"));
        // As git takes its word for whose the commit is.
        let renamed = if git.contains("-m third other") {
            "third"
        } else if git.contains("main side") {
            "main"
        } else {
            "other"
        };
        if is_before {
            assert!(tips(&repo).contains(&format!("{renamed}=two")), "{}", tips(&repo));
            repo.undo();
        }
        assert_eq!(tips(&repo), undone);
        repo.oxundo(["redo"]).success();
        assert!(tips(&repo).contains(&format!("{renamed}=two")), "{}", tips(&repo));
        assert_eq!(tips(&repo).matches("two").count(), 1);
        repo.undo();
        assert_eq!(tips(&repo), undone);
        repo.assert_sound();
    });
}

#[test]
fn what_has_the_old_name_is_the_users_wherever_the_turns_branch_has_gone() {
    const NEW: &str = "git branch nw; echo one >one.txt";
    const GOES_ON: &str = "git switch -q q; git commit -q --allow-empty -m U; git switch -q main";
    let cases = [
        ("a commit of the user's on it", NEW, format!("git branch -m nw q; git branch nw q; {GOES_ON}"), "undo", "nw"),
        (
            "and it was there before",
            BESIDE,
            format!("git branch -m side q; git branch side q; {GOES_ON}"),
            "undo",
            "side",
        ),
        (
            "and the turn is undone",
            BESIDE,
            format!("UNDO; git branch -m side q; git branch side; {GOES_ON}"),
            "redo",
            "side",
        ),
        ("HEAD is on it", NEW, "git branch -m nw q; git branch nw q; git switch -q q".to_owned(), "redo", "nw"),
    ];
    check_all(
        cases.map(|(name, script, git, op, mine)| (name.to_owned(), (script, git, op, mine))),
        |(script, git, op, mine)| {
            let repo = Sandbox::new();
            repo.sh("git branch side");
            repo.agent(script);
            let oxundo = format!("'{}' -q", env!("CARGO_BIN_EXE_oxundo"));
            repo.sh(&git.replace("UNDO", &format!("{oxundo} undo")));
            let there = tips(&repo);
            let done = repo.oxundo([op]);
            assert_ne!(done.code, 0, "{done:?}");
            assert_eq!(tips(&repo), there, "{mine} is the user's, and so is what is on the other");
        },
    );
}

#[test]
fn a_branch_that_a_turn_undone_by_hand_made_is_not_made_twice() {
    let repo = Sandbox::new();
    repo.sh("git commit -q --amend -m B");
    repo.agent("echo one >one.txt; git branch nw");
    repo.sh("git reset -q --hard HEAD~1; git branch -m nw nx");
    repo.oxundo(["redo"]).success();
    assert!(repo.exists("one.txt"));
    assert!(tips(&repo).ends_with("nx=B"), "{}", tips(&repo));
    repo.undo();
    assert_eq!(tips(&repo), "main=B", "it is undone with the turn");
}

#[test]
fn a_rename_of_a_later_turn_is_undone_before_the_turn_that_it_stands_for() {
    for script in [BESIDE, MADE] {
        let repo = Sandbox::new();
        if script == BESIDE {
            repo.sh("git branch side");
        }
        let then = seen(&repo);
        repo.agent(script);
        repo.agent("git branch -m side s2");
        let after = seen(&repo);
        repo.oxundo(["undo", "2"]).success();
        assert_eq!(seen(&repo), then);
        repo.oxundo(["redo", "2"]).success();
        assert_eq!(seen(&repo), after);
    }
}

#[test]
fn the_way_to_a_branch_is_by_the_name_that_it_has_now() {
    let cases = [
        ("a state of it", "git switch -q side", "restore --exact 1", "git switch m2"),
        (
            "and another has its old name",
            "git branch main main~1 2>/dev/null || git branch main m2~1; git switch -q main",
            "restore --exact 1",
            "git switch m2",
        ),
        ("its turn", "git switch -q side", "undo", "git switch m2"),
    ];
    check_all(cases.map(|(name, git, typed, hint)| (name.to_owned(), (git, typed, hint))), |(git, typed, hint)| {
        let repo = Sandbox::new();
        repo.sh("git branch side");
        repo.agent("echo one >one.txt; git add one.txt; git commit -qm one");
        repo.sh(&format!("git branch -m main m2; {git}"));
        let there = tips(&repo);
        let error = repo.refuses(&typed.split(' ').collect::<Vec<_>>(), "branch");
        assert!(error["hints"][0].as_str().is_some_and(|first| first.contains(hint)), "{error}");
        assert_eq!(tips(&repo), there);
    });
}

#[test]
fn what_turns_did_to_names_is_taken_back_by_the_same_walk() {
    const SWAP: &str = "git branch -m side t; git branch -m other side; git branch -m t other";
    let over = "git branch nw; echo 1 >f1";
    let cases = [
        ("over another", over, "git branch -M nw side; echo 2 >f2".to_owned()),
        ("over one with a commit of the user's", over, "git branch -M nw user; echo 2 >f2".to_owned()),
        ("a swap", BESIDE, format!("{SWAP}; echo 2 >f2")),
        ("over what was beside", BESIDE, "git branch -M side other; echo 2 >f2".to_owned()),
        (
            "behind a switch",
            "git switch -qc f; echo 2 >e2",
            "git branch -m main t; git branch -m side main; git branch -m t side; echo 3 >t3".to_owned(),
        ),
    ];
    check_all(cases.map(|(name, first, second)| (name.to_owned(), (first, second))), |(first, second)| {
        let repo = Sandbox::new();
        repo.sh("git branch side; git branch other; git branch user; U=$(git commit-tree -p HEAD -m U 'HEAD^{tree}'); git branch -f user $U");
        let then = repo.state();
        repo.agent(first);
        repo.agent(second);
        let after = repo.state();
        repo.oxundo(["undo", "2"]).success();
        repo.state().assert_is(&then, "both are undone");
        repo.oxundo(["redo", "2"]).success();
        repo.state().assert_is(&after, "and redone");
    });
}

#[test]
fn a_turn_of_a_renamed_branch_is_done_there_also_as_seen_from_another() {
    let repo = Sandbox::new();
    repo.sh("git branch other");
    repo.agent("echo 1 >n1");
    repo.sh("git switch -q other");
    repo.agent("echo 2 >n2");
    repo.sh("git switch -q main; git branch -m other o2");
    let (_, all) = repo.json(["log", "--all"]);
    let seen: Vec<_> = [0, 1].iter().map(|at| (&all["turns"][at]["state"], &all["turns"][at]["branch"])).collect();
    assert_eq!(seen, [(&json!("done"), &json!("o2")), (&json!("done"), &json!("main"))]);
}

#[test]
fn the_hint_leads_to_the_turns_branch_where_another_has_its_name_and_head() {
    let repo = Sandbox::new();
    repo.agent("git branch -m ag; echo 1 >n1; git add n1; git commit -qm c");
    repo.sh("git switch -qc new; git branch -m new t; git branch -m ag new; git branch -m t ag");
    let error = repo.refuses(&["undo"], "branch");
    assert!(error["hints"][0].as_str().is_some_and(|hint| hint.contains("'git switch new'")), "{error}");
    repo.sh("git switch -q new");
    repo.undo();
    assert_eq!(tips(&repo), "ag=c main=base", "the user's stays");
}

#[test]
fn heads_branch_under_the_name_of_one_that_the_turn_moved_beside_it_is_put_aside_first() {
    let repo = Sandbox::new();
    repo.sh("git branch other");
    repo.agent("echo 1 >n1; git add n1; git commit -qm c; git branch -f other HEAD");
    repo.sh("git branch -M other");
    let error = repo.refuses(&["undo"], "branch");
    let line = error["hints"][0].as_str().and_then(|hint| hint.split('\'').nth(1)).expect("there is a hint");
    repo.sh(line);
    repo.undo();
    assert_eq!(tips(&repo), "other=base other-kept=base", "both are where they were");
    repo.redo();
    assert_eq!(tips(&repo), "other=c other-kept=c");
}

#[test]
fn what_a_turn_writes_first_is_told_from_what_was_written_right_before_it() {
    let repo = Sandbox::new();
    let time_of = |path: &str| {
        let about = std::fs::metadata(repo.path(path)).expect("it is there");
        i128::from(about.mtime()) * 1_000_000_000 + i128::from(about.mtime_nsec())
    };
    repo.sh("git branch there; git branch -m there here");
    repo.agent("touch first");
    let (_, shown) = repo.json(["show", "1"]);
    let began = shown["record"]["began"].as_i64().map(i128::from).expect("it is recorded");
    let [before, first] = [".git/logs/refs/heads/here", "first"].map(|path| time_of(path) - began);
    assert!(before < 0 && first > 0, "the user's {before}, the agent's {first}");
}

#[test]
fn a_turn_that_swaps_heads_branch_is_undone_and_redone() {
    let repo = Sandbox::new();
    repo.sh("git branch side; git branch other; git switch -q side");
    let then = repo.state();
    repo.agent("git branch -m side t; git branch -m other side; git branch -m t other");
    let after = repo.state();
    for _ in 0..2 {
        repo.undo();
        repo.state().assert_is(&then, "undone");
        repo.redo();
        repo.state().assert_is(&after, "redone");
    }
}

#[test]
fn a_swap_of_the_branch_that_a_turn_came_from_stays_through_undo_and_redo() {
    let repo = Sandbox::new();
    repo.sh("git branch side");
    repo.agent("git switch -qc q; echo 1 >s; git add s; git commit -qm S1");
    repo.sh(&format!("{BY_A_SLOW_CLOCK}; git branch -m main z; git branch -m side main; git branch -m z side"));
    let after = repo.state();
    repo.undo();
    assert_eq!(repo.git(["branch", "--show-current"]), "side", "the main of then");
    repo.oxundo(["redo"]).success();
    repo.state().assert_is(&after, "redone");
}

#[test]
fn an_older_branch_under_a_name_of_the_turns_is_the_users() {
    let cases = [
        ("git branch nw; echo 1 >one.txt", "git branch -M older nw"),
        ("git branch nw; echo 1 >one.txt", "git branch -D nw; git branch -m older nw"),
        ("git branch -m side tmp; echo 1 >one.txt", "git branch -M older tmp"),
    ];
    check_all(cases.map(|case| (format!("{case:?}"), case)), |(script, git)| {
        let repo = Sandbox::new();
        repo.sh("git branch older; git branch side");
        repo.agent(script);
        repo.sh(&format!("{BY_A_SLOW_CLOCK}; {git}"));
        repo.refuses(&["undo"], "branch");
    });
}

#[test]
fn a_hint_that_puts_a_branch_aside_is_not_followed_as_a_rename() {
    let repo = Sandbox::new();
    repo.agent("git switch -qc nw; echo 1 >s; git add s; git commit -qm S1; echo m >>README.txt");
    repo.sh("git reset -q --hard HEAD~1; git switch -q main");
    let error = repo.refuses(&["redo"], "branch");
    assert!(error["hints"][0].as_str().is_some_and(|hint| hint.contains("git branch -m nw nw-kept")), "{error}");
    repo.sh("git branch -m nw nw-kept");
    repo.oxundo(["redo"]).success();
    assert_eq!(repo.git(["branch", "--show-current"]), "nw");
}

#[test]
fn a_turn_that_is_brought_to_another_branch_leaves_those_beside_its_own() {
    let places = ["git switch -q -c other HEAD~1", "git switch -q --detach HEAD~1"];
    let cases =
        places.iter().flat_map(|place| [BESIDE, MADE].map(|script| (format!("{place}; {script}"), (*place, script))));
    check_all(cases, |(place, script)| {
        let repo = Sandbox::new();
        if *script == BESIDE {
            repo.sh("git branch side");
        }
        repo.agent(script);
        repo.sh(place);
        let there = tips(&repo);
        repo.oxundo(["redo"]).success();
        assert!(repo.exists("one.txt"), "it is brought here");
        repo.undo();
        assert!(!repo.exists("one.txt"), "and taken back");
        assert_eq!(tips(&repo), there, "it is done on its own branch all the time");
        repo.sh("git switch -q main");
        repo.undo();
        assert!(!tips(&repo).contains("two"), "and undone there with all that it did");
    });
}

/// The user's renames before a turn are not its own, whatever else it does.
#[test]
fn a_later_turn_hides_no_rename_of_the_users() {
    const SWAP: &str = "git branch -m side t; git branch -m other side; git branch -m t other";
    let cases = [
        ("another has its name", "git branch nw; echo one >one.txt", "git branch -M other nw", None),
        (
            "another has it, the turn's is gone",
            "git branch nw; echo one >one.txt",
            "git branch -D nw; git branch -m other nw",
            None,
        ),
        ("two change names", BESIDE, SWAP, Some("main=B other=B side=B")),
    ];
    let later = ["echo four >four.txt", "git branch -f third main~1; echo four >four.txt"];
    let cases = cases.into_iter().flat_map(|(name, script, git, undone)| {
        later.map(|later| (format!("{name}; {later}"), (script, git, undone, later)))
    });
    check_all(cases, |&(script, git, undone, later)| {
        let repo = Sandbox::new();
        repo.sh("git commit -q --amend -m B; git branch side; git branch other");
        repo.agent(script);
        repo.sh(git);
        repo.agent(later);
        let there = tips(&repo);
        let done = repo.oxundo(["undo", "2"]);
        match undone {
            Some(undone) => assert_eq!((done.code, &*tips(&repo)), (0, undone)),
            None => assert_eq!((done.code, tips(&repo)), (3, there), "it is the user's"),
        }
    });
}

#[test]
fn a_branch_of_the_users_where_redo_would_make_one_stays_through_the_next_undo() {
    for git in ["git branch -m other nw", "git branch nw"] {
        let repo = Sandbox::new();
        repo.sh("git branch other");
        repo.agent("git branch nw; echo one >one.txt");
        repo.undo();
        repo.sh(git);
        let there = tips(&repo);
        repo.redo();
        repo.undo();
        assert_eq!(tips(&repo), there, "{git}");
    }
}

#[test]
fn what_undo_once_made_again_is_not_taken_for_what_a_later_turn_moved() {
    let repo = Sandbox::new();
    repo.sh("git commit -q --amend -m B; git branch side; git branch other; git commit -q --allow-empty -m m1");
    repo.agent("git branch -M side xx; echo one >one.txt");
    repo.sh("git branch -m other tt; git branch -m main other; git branch -m tt main");
    repo.undo();
    repo.sh("git switch -qc q; git branch -m other tt; git branch -m side other; git branch -m tt side");
    let there = tips(&repo);
    assert!(there.contains("other=B ") && there.contains("side=m1"), "{there}");
    let turn = "git branch -qf side other; echo four >four.txt";
    repo.oxundo(["run", "--ghost", "-m", "t", "--", "sh", "-c", turn]).success();
    repo.undo();
    assert_eq!(tips(&repo), there);
}
