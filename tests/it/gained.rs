//! Where HEAD's history gains the turns of other lines, or loses them again: they stand above each other by their numbers, and what moved no ref
//! stays where it is.

use crate::copied::told_from;
use crate::follow::told;
use crate::sandbox::{Mode, Sandbox, check_all};

/// Where the commit of a turn is on `old` alone, above HEAD.
fn with_older() -> Sandbox {
    let repo = Sandbox::new();
    repo.agent("echo old >old.txt");
    repo.sh("git branch old; git reset -q --hard HEAD~1");
    repo
}

/// A ghost turn's, as the user goes on.
const NEW: &str = "oxundo run --ghost -- sh -c 'echo new >new.txt'";

/// And above a turn with a commit.
const OWN_AND_NEW: &str = "oxundo run -- sh -c 'echo own >own.txt'; oxundo run --ghost -- sh -c 'echo new >new.txt'";

/// What makes a turn that moves no ref, and how the user brings an older turn's commit into HEAD's history.
const GAINS: &[(&str, &str, &str)] = &[
    ("a tracked file", "oxundo run --ghost -- sh -c 'echo new >new.txt; echo more >>README.txt'", "git merge -q old"),
    (
        "two turns",
        "oxundo run --ghost -- sh -c 'echo more >>README.txt'; oxundo run --ghost -- sh -c 'echo new >new.txt'",
        "git merge -q old",
    ),
    ("reset", NEW, "git stash -qu; git reset -q --hard old; git stash pop -q"),
    ("pull", NEW, "git pull -q . old"),
    ("rebase", NEW, "git rebase -q --autostash old"),
    ("own commits", NEW, "git merge -q old; git commit -q --allow-empty -m own"),
    ("restore", "echo mine >>README.txt; oxundo restore 1:before -- README.txt", "git merge -q old"),
    ("a secret alone", "oxundo run -- sh -c 'echo new >.env'", "git merge -q old"),
    ("merge", NEW, "git add -A; git commit -qm own; git merge -q --no-edit old"),
    ("renamed", NEW, "git branch -m renamed; git merge -q old"),
    ("a new branch", NEW, "git switch -qc begun; git merge -q old"),
    ("detached", NEW, "git switch -q --detach; git merge -q old"),
    ("renamed after it", NEW, "git merge -q old; git branch -m renamed"),
    ("a new branch after it", NEW, "git merge -q old; git switch -qc begun"),
    ("detached after it", NEW, "git merge -q old; git switch -q --detach"),
    ("switched along", NEW, "git switch -q old"),
    (
        "rebased own commit",
        "git commit -q --allow-empty -m own; oxundo run --ghost -- sh -c 'echo new >new.txt'",
        "git rebase -q --autostash old",
    ),
    (
        "pulled below own commit",
        "echo 1 >own; git add own; git commit -qm own; oxundo run --ghost -- sh -c 'echo new >new.txt'",
        "git pull -q --rebase --autostash . old",
    ),
    (
        "dropped own commit",
        "git commit -q --allow-empty -m own; oxundo run --ghost -- sh -c 'echo new >new.txt'",
        "git stash -qu; git reset -q --hard old; git stash pop -q",
    ),
    (
        "its branch goes elsewhere",
        NEW,
        "b=$(git branch --show-current); git switch -qc begun; git merge -q old
        git branch -f $b $(git commit-tree -p $b -m x $b^{tree})",
    ),
    ("renamed, and a new branch", NEW, "git branch -m renamed; git merge -q old; git switch -qc begun"),
    (
        "its branch is deleted",
        NEW,
        "b=$(git branch --show-current); git switch -qc begun; git merge -q old; git branch -qD $b; git switch -qc on",
    ),
    ("merged beside an own turn", OWN_AND_NEW, "git merge -q --no-edit old"),
    ("rebased below an own turn", OWN_AND_NEW, "git rebase -q --autostash old"),
];

#[test]
fn what_moved_no_ref_stays_the_last_one_done_where_history_gains_an_older_turn() {
    for on_its_branch in [true, false] {
        check_all(GAINS.iter().map(|(name, turn, gain)| ((*name).to_owned(), (*turn, *gain))), |(turn, gain)| {
            let repo = with_older();
            if !on_its_branch {
                repo.sh("git switch -qc other");
            }
            repo.sh(turn);
            repo.sh(gain);
            let (gained, old) = (repo.copy(), told(&repo));
            let newest = old.len();
            assert!(newest > 1);
            assert_eq!(old, (1..=newest).rev().map(|turn| format!("{turn} done")).collect::<Vec<_>>());
            let (head, undone) = (repo.head(), repo.json(["undo"]).1);
            assert_eq!(undone["undone"], serde_json::json!([newest]), "{undone}");
            repo.assert_absent("new.txt", "what it made is gone");
            repo.assert_absent(".env", "and so is this");
            repo.assert_file("old.txt", "old\n", "and what the user has brought here is not");
            assert_eq!(repo.head(), head);
            assert_eq!(told(&repo)[1..], old[1..], "the other one is the last one done now");
            repo.oxundo(["redo"]).success();
            repo.state().assert_is(&gained.state(), "redo takes it back");
            assert_eq!(told(&repo), old);
            repo.refuses(&["redo"], "nothing");
            repo.agent("echo later >later.txt");
            repo.undo();
            repo.state().assert_is(&gained.state(), "undo of a later turn");
            let all = repo.copy().json(["undo", "--to", "0"]);
            assert!(
                all.0 == 0
                    || ["merge", "foreign", "rewritten"].contains(&all.1["error"]["code"].as_str().unwrap_or("")),
                "{all:?}"
            );
            repo.assert_sound();
        });
    }
}

/// Before a turn, and in its middle.
const BROUGHT: &[(&str, &str, &str, &[u64])] = &[
    ("merged", "true", "git merge -q old", &[2, 1]),
    ("above a ghost turn", NEW, "git merge -q old", &[3, 2, 1]),
    ("with own commits", "true", "git commit -q --allow-empty -m own; git rebase -q --autostash old", &[2, 1]),
    ("own commits alone", NEW, "git commit -q --allow-empty -m own", &[3, 2]),
];

#[test]
fn what_the_user_brings_in_the_middle_of_a_turn_is_below_it() {
    for mode in ["commit", "ghost"] {
        check_all(BROUGHT.iter().map(|case| (case.0.to_owned(), *case)), |(_, before, brought, wanted)| {
            let begun = format!(
                "oxundo run -- sh -c 'echo old >old.txt'; git branch old; git reset -q --hard HEAD~1
                git config oxundo.mode {mode}; {before}"
            );
            let repo = told_from(&begun, &[('e', "F echo AGENT1 >>F"), ('u', brought), ('e', "a echo AGENT2 >>a")]);
            let done: Vec<u64> = repo.log().iter().filter_map(|turn| turn["turn"].as_u64()).collect();
            assert_eq!(done, *wanted);
            for turn in &wanted[..wanted.len() - 1] {
                assert_eq!(repo.json(["undo"]).1["undone"], serde_json::json!([turn]));
            }
            assert!(!repo.sh("cat F a").contains("AGENT"), "they are undone");
            repo.assert_sound();
        });
    }
}

/// How two lines come together, turns 2 and 4 on `feature` and 1 and 3 on `main`, and which turns are done then, the newest first.
const TOGETHER: &[(&str, &str, &[u64])] = &[
    ("merged into main", "git switch -q main; git merge -q --no-edit feature", &[4, 3, 2, 1]),
    ("main merged", "git merge -q --no-edit main", &[4, 3, 2, 1]),
    ("above own commits", "git commit -q --allow-empty -m own; git merge -q --no-edit main", &[4, 3, 2, 1]),
    ("in steps", "git switch -q main; git merge -q --no-edit feature~1; git merge -q --no-edit feature", &[4, 3, 2, 1]),
    (
        "seen in between",
        "git switch -q main; git merge -q --no-edit feature~1; oxundo describe 3 -m x; git merge -q --no-edit feature",
        &[4, 3, 2, 1],
    ),
    ("rebased", "git rebase -q main", &[4, 3, 2, 1]),
    ("main rebased", "git switch -q main; git rebase -q feature", &[3, 2, 1]),
    ("picked", "git switch -q main; git cherry-pick feature >/dev/null", &[4, 3, 1]),
    ("main picked", "git cherry-pick main >/dev/null", &[4, 3, 2, 1]),
    ("all picked", "git switch -q main; git cherry-pick main..feature >/dev/null", &[4, 3, 2, 1]),
    (
        "the other goes on",
        "git switch -q main; git merge -q --no-edit feature; oxundo log
        git switch -qc more feature; oxundo run -- sh -c 'echo 5 >more.txt'; git switch -q main",
        &[4, 3, 2, 1],
    ),
    (
        "its own branch goes on",
        "git merge -q --no-edit main; git switch -q main; oxundo run -- sh -c 'echo 5 >more.txt'; git switch -q feature",
        &[4, 3, 2, 1],
    ),
    (
        "a part, and goes on",
        "git switch -q main; git merge -q --no-edit feature~1; git switch -q feature; oxundo describe 4 -m x
        git switch -q main",
        &[3, 2, 1],
    ),
    (
        "rebased, and merged",
        "git commit -q --amend --no-edit --date=2001-01-01; git switch -q main; oxundo run -- sh -c 'echo 5 >5.txt'
        git merge -q --no-edit feature",
        &[5, 4, 3, 2, 1],
    ),
    (
        "with a ghost turn",
        "oxundo run --ghost -- sh -c 'echo 5 >5.txt'; git add -A; git commit -qm ghost; git switch -q main
        oxundo run -- sh -c 'echo 6 >6.txt'; git merge -q --no-edit feature",
        &[6, 5, 4, 3, 2, 1],
    ),
    ("on a third branch", "git switch -qc third main; git merge -q --no-edit feature", &[4, 3, 2, 1]),
    ("detached", "git switch -q --detach main; git merge -q --no-edit feature", &[4, 3, 2, 1]),
];

#[test]
fn lines_that_come_together_are_one() {
    check_all(
        TOGETHER.iter().map(|(name, story, wanted)| ((*name).to_owned(), (*story, *wanted))),
        |&(story, wanted)| {
            let repo = Sandbox::new();
            repo.agent("echo 1 >1.txt");
            repo.sh("git switch -qc feature");
            repo.agent("echo 2 >2.txt");
            repo.sh("git switch -q main");
            repo.agent("echo 3 >3.txt");
            repo.sh("git switch -q feature");
            repo.agent("echo 4 >4.txt");
            repo.sh(story);
            let done = |repo: &Sandbox| {
                let log = repo.log();
                log.iter()
                    .filter(|turn| turn["state"] == "done")
                    .filter_map(|turn| turn["turn"].as_u64())
                    .collect::<Vec<_>>()
            };
            let (together, state) = (repo.copy(), repo.state());
            assert_eq!(done(&repo), wanted);
            // Each can be taken out, the newest first, and comes back.
            let steps = wanted.len().to_string();
            let (code, reverted) = repo.json(["undo", "--revert", "--steps", &steps]);
            assert_eq!((code, &reverted["turns"]), (0, &serde_json::json!(wanted)), "{reverted}");
            for turn in wanted {
                repo.assert_absent(&format!("{turn}.txt"), "it is taken out");
            }
            repo.undo();
            repo.state().assert_is(&state, "and brought back");
            assert_eq!(done(&repo), wanted);
            // A turn stands above them, and what they went up above is gone with a merge that is taken off.
            repo.agent("echo top >top.txt");
            assert_eq!(done(&repo)[1..], *wanted);
            repo.undo();
            repo.state().assert_is(&state, "undone");
            for (branch, wanted) in [("main", [3, 1]), ("feature", [4, 2])] {
                let other = together.copy();
                other.sh(&format!(
                    "git switch -q {branch}; git reset -q --hard $(git log --format=%H --grep=turn.{} -1)",
                    wanted[0]
                ));
                if story.contains("--ghost") {
                    // It goes with the one below it.
                    assert_eq!(done(&other).contains(&5), branch == "feature");
                    continue;
                }
                assert_eq!(done(&other)[0], wanted[0]);
                match other.json(["undo"]) {
                    (0, _) => other.assert_absent(&format!("{}.txt", wanted[0]), "undone"),
                    (_, error) => assert!(story.contains("rebase") && error["error"]["code"] == "foreign", "{error}"),
                }
            }
            repo.assert_sound();
        },
    );
}

#[test]
fn undo_takes_nothing_off_a_branch_that_a_turn_brought_to_its_own() {
    for (mine, brings) in [
        ("echo mine >mine; git add mine; git commit -qm mine", "git merge -q main"),
        ("echo mine >mine; git add mine; git commit -qm mine", "git rebase -q main"),
        ("oxundo run -- sh -c 'echo mine >mine'", "git merge -q main"),
    ] {
        let repo = Sandbox::new();
        repo.sh("git branch feature");
        repo.sh(mine);
        let tip = repo.head().trim().to_owned();
        repo.sh("git switch -q feature");
        repo.agent(&format!("{brings}; echo 2 >2.txt"));
        let merged = repo.copy();
        merged.sh("git switch -q main; git merge -q --ff-only feature");
        let state = merged.state();
        let error = merged.refuses(&["undo"], "foreign");
        merged.state().assert_is(&state, "it changes nothing");
        let line = format!("git reset -q --keep {}", &tip[..10]);
        assert!(error.to_string().contains(&line), "{error}");
        // That would take off more than was asked for where there is something on top.
        let later = merged.copy();
        later.agent("echo 3 >3.txt");
        let error = later.refuses(&["undo", "--steps", "2"], "foreign");
        assert!(!error.to_string().contains("--keep") && error.to_string().contains("oxundo undo --to"), "{error}");
        let later = merged.copy();
        later.sh("git commit -q --allow-empty -m later");
        let error = later.refuses(&["undo"], "foreign");
        assert!(!error.to_string().contains("--keep"), "{error}");
        merged.sh(&line);
        assert!(merged.exists("mine") && !merged.exists("2.txt"));
        // Where it was made it is undone.
        repo.undo();
        assert!(!repo.exists("mine") && !repo.exists("2.txt"));
        assert_eq!(repo.git(["rev-parse", "main"]).trim(), tip);
        repo.redo();
        assert!(repo.exists("mine") && repo.exists("2.txt"));
    }
}

/// A turn on another branch brings to that what HEAD's had, and HEAD's goes on to it: a commit on top takes out no more than the turn did.
#[test]
fn what_a_branch_had_before_a_turn_brought_it_to_its_own_is_not_taken_out_of_it() {
    let mine = "echo mine >mine; echo mine >>README.txt; git add mine README.txt; git commit -qm mine";
    let own = "echo own >own; git add own; git commit -qm own";
    let brings = ["git merge -q --no-edit main", "git rebase -q main", "git pull -q --rebase . main"];
    let mut cases = Vec::new();
    for brings in brings {
        for (mine, own) in [(mine, "true"), (mine, own), ("oxundo run -- sh -c 'echo mine >mine'", own)] {
            for merges in
                ["git merge -q --no-edit feature", "git merge -q --no-ff --no-edit feature", "git rebase -q feature"]
            {
                cases.push((format!("{mine}; {own}; {brings}; {merges}"), (mine, own, brings, merges)));
            }
        }
    }
    check_all(cases, |(mine, own, brings, merges)| {
        let repo = Sandbox::new();
        repo.sh("git branch feature");
        repo.sh(mine);
        let had = repo.files();
        repo.sh(&format!("git switch -q feature; {own}"));
        repo.agent(&format!("{brings} >/dev/null; echo 2 >2.txt; seq 9 >>README.txt"));
        repo.sh(&format!("git switch -q main; {merges}; echo later >later; git add later; git commit -qm later"));
        let merged = repo.state();
        for args in [vec!["undo", "--revert"], vec!["undo", "--only", "@"]] {
            let repo = repo.copy();
            repo.oxundo(&args).success();
            repo.sh("rm -f own later");
            assert_eq!(repo.files(), had, "{args:?}");
            repo.sh("git checkout -q .");
            repo.redo();
            repo.state().assert_is(&merged, "redo");
        }
    });
}

#[test]
fn what_the_branch_had_on_which_a_turn_ended_is_below_it() {
    let begun = "oxundo run -- sh -c 'echo one >one.txt'; git switch -qc feature HEAD~1";
    let agent = Sandbox::new();
    agent.sh(begun);
    agent.agent("git switch -q main; echo two >two.txt");
    assert_eq!(told(&agent), ["2 done", "1 done"]);
    let user = Sandbox::new();
    user.sh(begun);
    let (hook, edit) = (crate::steps::hook, crate::steps::edit);
    hook(&user, "s", "UserPromptSubmit", &serde_json::json!({}));
    edit(&user, 1, "two.txt", "echo two >two.txt");
    user.sh("git switch -q main");
    crate::steps::tick();
    edit(&user, 2, "three.txt", "echo three >three.txt");
    hook(&user, "s", "Stop", &serde_json::json!({}));
    assert_eq!(told(&user), ["2 done", "1 done"]);
    for (repo, branch, one) in [(agent, "feature", false), (user, "main", true)] {
        let after = repo.state();
        repo.undo();
        assert_eq!((repo.sh("git branch --show-current").trim(), repo.exists("one.txt")), (branch, one));
        repo.assert_absent("two.txt", "it is undone");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.json(["undo", "--revert"]);
        assert!(repo.exists("one.txt") && !repo.exists("two.txt"), "the turn below stays");
    }
}

#[test]
fn a_ghost_turn_stays_the_last_one_done_where_another_lines_turn_is_picked() {
    for commits in ["true", "git add -A; git commit -qm own"] {
        let repo = Sandbox::new();
        repo.sh("git switch -qc old");
        repo.agent("echo old >old.txt");
        repo.sh("git switch -q main");
        repo.agent("echo own >own.txt");
        repo.turn(Mode::Ghost, "echo new >new.txt");
        repo.sh(&format!("{commits}; git cherry-pick old >/dev/null"));
        assert_eq!(told(&repo), ["3 done", "2 done", "1 done"]);
        let picked = repo.copy();
        assert_eq!(repo.json(["undo"]).1["undone"], serde_json::json!([3]));
        repo.assert_absent("new.txt", "it is undone");
        repo.refuses(&["undo"], "foreign");
        repo.redo();
        repo.state().assert_is(&picked.state(), "and redone");
        repo.json(["undo", "--revert", "--steps", "3"]);
        for file in ["new", "own", "old"] {
            repo.assert_absent(&format!("{file}.txt"), "it is taken out");
        }
        repo.assert_sound();
    }
}

#[test]
fn a_line_of_turns_from_which_git_took_the_branch_away_is_as_it_was_where_it_comes_back() {
    // On another line; what moved no ref is committed by the user.
    let on_another = "git switch -qc other; oxundo run -- sh -c 'echo one >one.txt'; git switch -q main; \
        oxundo run -- sh -c 'echo two >two.txt'; oxundo run --ghost -- sh -c 'echo new >new.txt'; \
        git add -A; git commit -qm own; git branch was; git reset -q --hard other; git branch left";
    // Below all turns.
    let below_all = "oxundo run -- sh -c 'echo two >two.txt'; oxundo run --ghost -- sh -c 'echo new >new.txt'; \
        git add -A; git commit -qm own; git branch was; git reset -q --hard HEAD~2; git branch left";
    let between = [
        "oxundo undo; oxundo redo",
        "oxundo run -- sh -c 'echo 4 >4.txt'",
        "oxundo run --ghost -- sh -c 'echo 4 >4.txt'; git add -A; git commit -qm 4",
        "oxundo run --ghost -- sh -c 'echo 4 >4.txt'; rm 4.txt; oxundo run -- sh -c 'echo 5 >5.txt'; oxundo gc",
    ];
    for (begun, last) in [(on_another, 3), (below_all, 2)] {
        // Below all turns there is nothing to undo.
        for between in between.iter().skip(usize::from(begun == below_all)) {
            let repo = Sandbox::new();
            repo.sh(begun);
            repo.sh(between);
            repo.sh("git reset -q --hard was");
            let told = told(&repo);
            assert_eq!(told[..2], [format!("{last} done"), format!("{} done", last - 1)], "{between}");
            let after = repo.state();
            assert_eq!(repo.json(["undo"]).1["undone"], serde_json::json!([last]), "{between}");
            repo.assert_absent("new.txt", "undone");
            repo.redo();
            repo.state().assert_is(&after, "redone");
            // What was undone there is so when it comes back the next time.
            repo.undo();
            repo.sh("git reset -q --hard left; oxundo run -- sh -c 'echo 6 >6.txt'; git reset -q --hard was");
            assert_eq!(self::told(&repo)[..2], [format!("{last} undone"), format!("{} done", last - 1)], "{between}");
            repo.assert_sound();
        }
    }
}

#[test]
fn a_line_is_as_it_was_in_its_middle_too() {
    for (branch, back) in [("git reset -q --hard", "git reset -q --hard"), ("git switch -qc other", "git switch -q")] {
        let repo = Sandbox::new();
        repo.sh("oxundo run -- sh -c 'echo 1 >1.txt'; git branch below");
        repo.agent("echo 2 >2.txt");
        repo.sh(&format!("git branch second; {branch} below"));
        repo.turn(Mode::Ghost, "echo 3 >3.txt");
        repo.sh("git add -A; git commit -qm own; git branch middle");
        repo.agent("echo 4 >4.txt");
        repo.sh(&format!("{back} second; oxundo undo; oxundo redo; {back} middle"));
        assert_eq!(told(&repo), ["4 undone", "3 done", "1 done"], "{branch}");
        repo.json(["undo", "--revert"]);
        assert!(repo.exists("1.txt") && !repo.exists("3.txt"), "the last one is taken out");
    }
}

#[test]
fn a_ghost_turn_whose_work_was_reset_away_does_not_go_along() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >1.txt");
    repo.sh("git branch below");
    repo.agent("echo 2 >2.txt");
    repo.turn(Mode::Ghost, "echo 3 >3.txt");
    repo.sh("git add -A; git commit -qm own; git branch one; git reset -q --hard below");
    repo.turn(Mode::Ghost, "echo 4 >4.txt");
    repo.sh("git add -A; git commit -qm own; git branch other");
    for _ in 0..2 {
        repo.sh("git reset -q --hard one");
        assert_eq!(told(&repo), ["3 done", "2 done", "1 done"]);
        repo.sh("oxundo undo; oxundo redo; git reset -q --hard other");
        assert_eq!(told(&repo), ["4 done", "1 done"]);
        repo.sh("oxundo undo; oxundo redo");
    }
    // Who goes back and commits anew, goes on.
    repo.sh("git reset -q --soft HEAD~1; git commit -qm anew");
    assert_eq!(told(&repo), ["4 done", "1 done"]);
    repo.assert_sound();
}

#[test]
fn what_the_user_took_off_by_hand_comes_back_with_what_it_stands_on() {
    for between in ["oxundo undo; oxundo redo", "oxundo redo", "oxundo describe 1 -m x"] {
        let repo = Sandbox::new();
        repo.sh("oxundo run -- sh -c 'echo 1 >1.txt'; git branch below");
        repo.agent("echo 2 >2.txt");
        repo.turn(Mode::Ghost, "echo 3 >3.txt");
        repo.sh("git add -A; git commit -qm own; git branch own; git reset -q --hard below");
        repo.sh(&format!("{between}; git reset -q --hard own"));
        assert_eq!(told(&repo), ["3 done", "2 done", "1 done"], "{between}");
        // What oxundo has undone is so.
        repo.sh("oxundo undo; git reset -q --hard below; oxundo undo; oxundo redo; git checkout -q -- .; git reset -q --hard own");
        assert_eq!(told(&repo), ["3 undone", "2 done", "1 done"], "{between}");
    }
}

#[test]
fn no_turn_expires_that_is_done_where_git_has_put_head() {
    for back in ["git reset -q --hard here", "git checkout -q here^0", "git switch -q here"] {
        let repo = Sandbox::new();
        repo.sh("oxundo run -- sh -c 'echo 1 >1.txt'; oxundo run -- sh -c 'echo 2 >2.txt'; git branch here; git reset -q --hard HEAD~2");
        repo.agent("echo 3 >3.txt");
        repo.sh(&format!("{back}; oxundo gc --keep 0s"));
        assert_eq!(told(&repo)[..2], ["2 done", "1 done"], "{back}");
        repo.json(["undo", "--steps", "2"]);
        repo.assert_absent("1.txt", "it is undone");
    }
}

#[test]
fn what_is_undone_and_moved_no_ref_is_redone_above_what_history_gained() {
    for ghosts in [1, 2] {
        let repo = with_older();
        for ghost in 0..ghosts {
            repo.turn(Mode::Ghost, &format!("echo new >new{ghost}.txt"));
        }
        repo.json(["undo", "--steps", &ghosts.to_string()]);
        repo.sh("git merge -q old");
        let before = told(&repo);
        assert_eq!(before.last().map(String::as_str), Some("1 done"));
        let merged = repo.copy();
        repo.oxundo(["redo", "--steps", &ghosts.to_string()]).success();
        repo.assert_file("new0.txt", "new\n", "redone");
        repo.assert_file("old.txt", "old\n", "it takes nothing off the branch");
        assert_eq!(told(&repo).len(), before.len());
        repo.json(["undo", "--steps", &ghosts.to_string()]);
        repo.state().assert_is(&merged.state(), "undone again");
        // Where the merge is taken off it is redone as before.
        repo.sh("git reset -q --keep HEAD~1");
        assert_eq!(told(&repo)[0], format!("{} undone", ghosts + 1));
        repo.oxundo(["redo", "--steps", &ghosts.to_string()]).success();
        repo.assert_file("new0.txt", "new\n", "redone");
        repo.assert_absent("old.txt", "the merge that was taken off does not come with it");
        repo.assert_sound();
    }
}

#[test]
fn what_was_taken_out_and_brought_back_is_no_line_that_the_branch_has_left() {
    for goes in ["git switch -q --detach", "git switch -qc other", "git branch -m other", "true"] {
        let repo = Sandbox::new();
        repo.agent("echo one >one.txt");
        repo.turn(Mode::Ghost, "echo two >two.txt");
        repo.turn(Mode::Ghost, "echo three >three.txt");
        repo.oxundo(["undo", "--only", "2"]).success();
        repo.redo();
        repo.turn(Mode::Ghost, "echo five >five.txt");
        let before = told(&repo);
        assert_eq!(before, ["5 done", "3 done", "2 done", "1 done"]);
        repo.sh(goes);
        assert_eq!(told(&repo), before, "{goes}");
    }
}

#[test]
fn a_newer_turn_above_picked_ones_is_the_last_one_done() {
    let repo = Sandbox::new();
    repo.sh("git branch f; git branch g");
    repo.agent("echo one >one.txt");
    repo.sh("git switch -q g");
    repo.agent("echo two >two.txt");
    repo.agent("echo three >three.txt");
    repo.sh("git switch -q main; git cherry-pick main..g");
    repo.oxundo(["undo", "--only", "2"]).success();
    repo.redo();
    repo.sh("git switch -q f; git merge -q --ff-only main");
    repo.agent("echo five >five.txt");
    repo.sh("git switch -q main; git merge -q --ff-only f");
    assert_eq!(told(&repo)[0], "5 done");
    let there = repo.copy();
    repo.undo();
    repo.assert_absent("five.txt", "undone");
    repo.redo();
    repo.state().assert_is(&there.state(), "redo");
}

/// Where the turns that HEAD gains are newer than what is undone, that is redone below them.
#[test]
fn what_is_undone_and_moved_no_ref_is_redone_below_what_history_gained() {
    let own = "git commit -q --allow-empty -m own";
    let cases = [
        (1, format!("{own}; git merge -q --no-edit newer")),
        (2, format!("{own}; git merge -q --no-edit newer")),
        (1, "git merge -q newer".to_owned()),
        (2, "git merge -q newer".to_owned()),
        (1, format!("{own}; git rebase -q newer")),
    ];
    for (ghosts, merge) in cases {
        let repo = Sandbox::new();
        repo.agent("echo one >one.txt");
        repo.sh("git branch newer");
        for ghost in 0..ghosts {
            repo.turn(Mode::Ghost, &format!("echo new >new{ghost}.txt"));
        }
        repo.json(["undo", "--steps", &ghosts.to_string()]);
        repo.sh("git switch -q newer");
        repo.agent("echo newer >newer.txt");
        repo.sh(&format!("git switch -q main; {merge}"));
        let newer = ghosts + 2;
        let (merged, before) = (repo.copy(), told(&repo));
        assert!(before.contains(&"2 undone".to_owned()) && before.contains(&format!("{newer} done")), "{before:?}");
        let args = if ghosts == 1 { vec!["redo"] } else { vec!["redo", "--to", "3"] };
        let output = repo.oxundo(&args);
        output.success();
        assert_eq!((repo.head(), repo.read("newer.txt")), (merged.head(), b"newer\n".to_vec()), "nothing is taken off");
        for ghost in 0..ghosts {
            repo.assert_file(&format!("new{ghost}.txt"), "new\n", "redone");
        }
        let all: Vec<String> = (1..=newer).rev().map(|turn| format!("{turn} done")).collect();
        assert_eq!(told(&repo), all);
        repo.refuses(&["redo"], "nothing");
        // What the hint says takes it out again.
        let only = if ghosts == 1 { "2" } else { "2..3" };
        assert!(output.err().contains(&format!("'oxundo undo --only {only}'")), "{}", output.err());
        let redone = repo.copy();
        repo.oxundo(["undo", "--only", only]).success();
        assert_eq!(repo.files(), merged.files());
        repo.redo();
        assert_eq!(repo.files(), redone.files());
        // The merge is taken off again: what was redone stays done, and is below it when that comes back.
        let repo = redone;
        for kind in ["git reset -q --keep HEAD~1", "git stash -qu; git reset -q --hard HEAD~1; git stash pop -q"] {
            let repo = repo.copy();
            repo.sh(kind);
            let done = if merge.contains("rebase") { &all[..] } else { &all[1..] };
            let log = told(&repo);
            assert_eq!(log[log.len() - done.len()..], *done, "{kind}: {log:?}");
            repo.assert_file("new0.txt", "new\n", "it stays");
            // No redo leads over an own commit.
            if !merge.contains("own") {
                assert_eq!(log[0], format!("{newer} undone"));
                repo.oxundo(["redo"]).success();
                assert_eq!(told(&repo), all);
                repo.undo();
                assert_eq!(told(&repo), log);
            }
            repo.json(["undo", "--steps", &(done.len() - 1).to_string()]);
            repo.assert_absent("new0.txt", "it is undone");
            repo.assert_sound();
        }
    }
}

/// A turn, another one above it that moved no ref and is undone, and a newer one on another branch, which is merged.
fn with_newer(merge: &str) -> Sandbox {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.sh("git branch f; git branch g");
    repo.turn(Mode::Ghost, "echo two >two.txt");
    repo.undo();
    repo.sh("git switch -q f");
    repo.agent("echo three >three.txt");
    repo.sh(&format!("git switch -q main; git merge -q --no-edit {merge} f"));
    repo
}

/// What happens once a newer turn is merged.
const GOES_ON: &[(&str, &str)] = &[
    ("its branch", "git switch -q f; oxundo run -- sh -c 'echo 4 >4.txt'; git switch -q main"),
    ("another branch", "git switch -qc h; oxundo run -- sh -c 'echo 4 >4.txt'; git switch -q main"),
    (
        "another branch's is undone",
        "git switch -qc h; oxundo run --ghost -- sh -c 'echo 4 >4.txt'; oxundo undo; git switch -q main",
    ),
    ("renamed", "git branch -m mm"),
    ("detached", "git switch -q --detach"),
    ("a new branch", "git switch -qc h"),
    ("a new branch by way of another", "git switch -q g; git switch -qc h main"),
    ("put back", "git reset -q --hard HEAD~1; git merge -q --no-edit f"),
];

#[test]
fn what_is_undone_and_moved_no_ref_is_within_reach_however_the_branches_go_on() {
    for merge in ["--no-ff", "--ff"] {
        check_all(GOES_ON.iter().map(|(name, story)| (format!("{name} {merge}"), *story)), |story| {
            let repo = with_newer(merge);
            repo.sh(story);
            assert!(told(&repo).contains(&"2 undone".to_owned()), "{:?}", told(&repo));
            let head = repo.head();
            repo.oxundo(["redo"]).success();
            assert_eq!(repo.head(), head, "it moves no ref");
            repo.assert_file("two.txt", "two\n", "redone");
            let done: Vec<String> = told(&repo).into_iter().filter(|turn| turn.ends_with(" done")).collect();
            assert_eq!(done, ["3 done", "2 done", "1 done"]);
            repo.assert_sound();
        });
    }
}

/// A turn that moved no ref was put aside, or carried along, while a newer one was made on another branch, and is undone on its own since.
#[test]
fn what_is_undone_here_counts_as_done_only_where_a_gained_turn_began_with_it() {
    for (merge, has_first) in [("--ff", true), ("--no-ff", true), ("--no-ff", false)] {
        let begun = |away: &str, back: &str| {
            let repo = Sandbox::new();
            if has_first {
                repo.agent("echo one >one.txt");
            }
            repo.sh("git branch f");
            repo.turn(Mode::Ghost, "echo ghost >>README.txt");
            repo.sh(&format!("{away}; git switch -q f"));
            repo.agent("echo newer >newer.txt");
            repo.sh(&format!("git switch -q main; {back}"));
            repo
        };
        let first = u64::from(has_first);
        let (ghost, newer) = (first + 1, first + 2);
        let below: Vec<String> = (1..=first).map(|turn| format!("{turn} done")).collect();
        let repo = begun("git stash -q", "git stash pop -q");
        repo.undo();
        let undone = repo.files();
        repo.sh(&format!("git merge -q --no-edit {merge} f"));
        let (merged, log) = (repo.copy(), told(&repo));
        let wanted = [vec![format!("{ghost} undone"), format!("{newer} done")], below.clone()].concat();
        assert_eq!(log, wanted, "{merge}");
        assert!(repo.sh("oxundo status --short").contains(&format!("undo:{newer_done}", newer_done = first + 1)));
        repo.redo();
        assert!(repo.read("README.txt").ends_with(b"ghost\n"), "redone");
        let all = [vec![format!("{newer} done"), format!("{ghost} done")], below.clone()].concat();
        assert_eq!(told(&repo), all);
        repo.oxundo(["undo", "--only", &ghost.to_string()]).success();
        assert_eq!(repo.files(), merged.files());
        // What is gained goes again, and comes back; no turn is made anew of it.
        let repo = merged;
        if merge == "--ff" {
            repo.undo();
            assert_eq!(repo.files(), undone);
            repo.redo();
            assert_eq!(told(&repo), log);
        }
        repo.sh("git switch -qc on");
        assert_eq!(told(&repo), log, "on another branch");
        repo.agent("echo last >last.txt");
        assert_eq!(told(&repo)[1..], log[1..]);
        repo.assert_sound();
        // What the newer one began with is in its commits.
        let repo = begun("git switch -q f; git commit -qam mine", "true");
        repo.undo();
        repo.sh(&format!("git merge -q --no-edit {merge} f"));
        assert_eq!(told(&repo), all, "carried along, {merge}");
        repo.assert_sound();
    }
}

#[test]
fn what_moved_no_ref_is_redone_where_the_branch_is_put_back_into_what_it_gained() {
    let begun = |back: &str| {
        let repo = Sandbox::new();
        repo.agent("echo one >one.txt");
        repo.sh("git branch f");
        repo.turn(Mode::Ghost, "echo two >two.txt");
        repo.undo();
        repo.sh("git switch -q f");
        repo.agent("echo three >three.txt");
        repo.agent("echo four >four.txt");
        repo.sh(&format!("git switch -q main; git merge -q f; {back}"));
        repo
    };
    let all = ["4 done", "3 done", "2 done", "1 done"];
    for (back, redos) in [("git reset -q --hard HEAD~1", 2), ("git reset -q --hard HEAD~3", 4)] {
        let repo = begun(back);
        for _ in 0..redos {
            repo.oxundo(["redo"]).success();
        }
        assert_eq!(told(&repo), all, "{back}");
        repo.refuses(&["redo"], "nothing");
        repo.assert_file("two.txt", "two\n", "redone");
        assert_eq!(repo.sh("oxundo status --short").matches("undo:4").count(), 1);
    }
    // At once: no line takes back what comes at two places.
    let repo = begun("git reset -q --hard HEAD~1");
    let output = repo.oxundo(["redo", "--steps", "2"]);
    output.success();
    assert!(!output.err().contains("hint"), "{}", output.err());
    assert_eq!(told(&repo), all);
    // The one that is gained is between two that are undone.
    let repo = Sandbox::new();
    repo.sh("git branch f");
    repo.agent("echo one >one.txt");
    repo.turn(Mode::Ghost, "echo two >two.txt");
    repo.sh("git stash -qu; git switch -q f");
    repo.agent("echo three >three.txt");
    repo.sh("git switch -q main; git stash pop -q");
    repo.turn(Mode::Ghost, "echo four >four.txt");
    repo.json(["undo", "--steps", "2"]);
    repo.sh("git merge -q --no-edit --no-ff f");
    let output = repo.oxundo(["redo", "--steps", "2"]);
    output.success();
    assert!(!output.err().contains("--only"), "that would take out another one: {}", output.err());
    assert_eq!(told(&repo), all);
    repo.assert_file("four.txt", "four\n", "redone");
    // Redone, and then seen from elsewhere.
    let repo = with_newer("--no-ff");
    repo.redo();
    repo.sh("git stash -qu; git switch -q g; git switch -q --detach main; git stash pop -q");
    assert_eq!(told(&repo), ["3 done", "2 done", "1 done"]);
    // It stands there for gc, too, wherever HEAD is.
    let repo = with_newer("--no-ff");
    repo.redo();
    repo.sh("git stash -qu; git switch -q f; oxundo gc --keep 0s; git switch -q main; git stash pop -q");
    assert_eq!(told(&repo), ["3 done", "2 done", "1 done"]);
    // The branch of the newer one goes on, and is merged again.
    let repo = with_newer("--no-ff");
    repo.redo();
    repo.sh("git stash -qu; git switch -q f; oxundo run -- sh -c 'echo 4 >4.txt'; git switch -q main
        git merge -q --no-edit f; git stash pop -q");
    assert_eq!(told(&repo), all);
    assert_eq!(repo.sh("oxundo status --short").matches("undo:4").count(), 1);
}

/// A turn with a commit and one above it that moved no ref are undone together; the first comes back by a merge.
#[test]
fn what_stands_on_what_a_merge_brings_back_is_redone() {
    for elsewhere in [false, true] {
        let repo = Sandbox::new();
        repo.agent("echo one >one.txt");
        repo.agent("echo two >two.txt");
        repo.sh("git branch f");
        repo.turn(Mode::Ghost, "echo three >three.txt");
        if elsewhere {
            repo.sh("git switch -qc other");
        }
        repo.json(["undo", "--steps", "2"]);
        repo.sh("git switch -q f");
        repo.agent("echo four >four.txt");
        repo.sh("git switch -q -; git merge -q --no-edit --no-ff f");
        assert_eq!(told(&repo).iter().filter(|turn| turn.ends_with(" done")).count(), 3, "{:?}", told(&repo));
        repo.oxundo(["redo"]).success();
        repo.assert_file("three.txt", "three\n", "redone");
        assert_eq!(told(&repo), ["4 done", "3 done", "2 done", "1 done"]);
    }
}

#[test]
fn what_moved_no_ref_is_where_it_was_made_again_once_the_gained_turn_is_gone() {
    let repo = with_older();
    repo.turn(Mode::Ghost, "echo new >new.txt");
    let before = repo.copy();
    repo.sh("git merge -q --ff-only old");
    repo.undo();
    repo.redo();
    repo.sh("oxundo describe 2 -m described; git reset -q --keep HEAD~1");
    assert_eq!(told(&repo), ["2 done"]);
    repo.state().assert_is(&before.state(), "as before");
    repo.undo();
    repo.assert_absent("new.txt", "undone");
    assert_eq!(told(&repo), ["2 undone"]);
}

#[test]
fn a_turn_on_another_branch_leaves_those_where_they_are_that_went_up() {
    for writes in ["true", "oxundo undo; oxundo redo"] {
        let repo = with_older();
        repo.sh("git branch other");
        repo.turn(Mode::Ghost, "echo new >new.txt");
        repo.sh(&format!("git add -A; git commit -qm own; git merge -q --no-edit old; {writes}; git switch -q other"));
        repo.agent("echo 3 >3.txt");
        repo.sh("git switch -q main");
        assert_eq!(repo.json(["undo"]).1["undone"], serde_json::json!([2]));
        repo.assert_absent("new.txt", "undone");
        repo.refuses(&["undo"], "merge");
        repo.redo();
        repo.sh("git switch -q other");
        repo.undo();
        repo.assert_absent("3.txt", "the turn of that branch");
    }
}

#[test]
fn what_moved_no_ref_stays_where_the_user_goes_back_to_before_what_it_went_up_above() {
    let repo = with_older();
    repo.turn(Mode::Ghost, "echo new >new.txt");
    repo.sh("git add -A; git commit -qm own; git merge -q --no-edit old");
    repo.agent("echo 3 >3.txt");
    repo.sh("git reset -q --hard HEAD~2");
    assert_eq!(told(&repo)[1], "2 done");
    repo.undo();
    repo.assert_absent("new.txt", "undone");
    let repo = with_older();
    repo.turn(Mode::Ghost, "echo new >new.txt");
    repo.sh("git merge -q old; oxundo describe 2 -m x; git stash -qu; git reset -q --hard HEAD~1; git stash pop -q");
    assert_eq!(told(&repo), ["2 done"]);
}

#[test]
fn what_moved_no_ref_stays_where_one_of_two_gained_turns_is_gone_again() {
    for writes in ["true", "oxundo undo; oxundo redo"] {
        let repo = Sandbox::new();
        repo.sh("git switch -qc old");
        repo.agent("echo one >one.txt");
        repo.agent("echo two >two.txt");
        repo.sh("git switch -q main");
        repo.turn(Mode::Ghost, "echo new >new.txt");
        repo.sh(&format!("git merge -q old; {writes}; git stash -qu; git reset -q --hard HEAD~1; git stash pop -q"));
        assert_eq!(told(&repo), ["3 done", "1 done"]);
        repo.undo();
        repo.assert_absent("new.txt", "undone");
        repo.undo();
        repo.assert_absent("one.txt", "undone");
    }
}

#[test]
fn gc_leaves_what_went_up_where_it_is() {
    let repo = Sandbox::new();
    for turn in 1..56 {
        repo.turn(Mode::Ghost, &format!("echo {turn} >many.txt"));
    }
    repo.sh("git add -A; git commit -qm own");
    repo.agent("echo old >old.txt");
    repo.sh("git branch old; git reset -q --hard HEAD~1");
    repo.turn(Mode::Ghost, "echo new >new.txt");
    repo.sh("git merge -q old; oxundo undo; oxundo redo");
    assert_eq!(told(&repo)[..2], ["57 done", "56 done"]);
    repo.oxundo(["gc", "--keep", "0s"]).success();
    let kept = told(&repo);
    assert_eq!(kept[..3], ["57 done", "56 done", "55 done"]);
    assert!(kept.len() < 57, "some have expired");
    assert_eq!(repo.json(["status"]).1["undo_depth"], serde_json::json!(kept.len()));
    repo.sh("git stash -qu; git reset -q --hard HEAD~1; git stash pop -q");
    assert_eq!(told(&repo)[..2], ["57 done", "55 done"], "it is not gone with what it went up above");
    repo.undo();
    repo.assert_absent("new.txt", "undone");
    repo.assert_sound();
}

/// What redo would bring back below newer turns is left by what goes on above these: no redo leads there over a merge.
#[test]
fn the_words_of_a_turn_that_is_left_below_newer_ones_name_a_way_that_works() {
    let ways = [
        ("a take-out", &["undo", "--revert"][..], "turn 2 is left beside turn 4"),
        ("one turn alone", &["undo", "--only", "1"], "turn 2 is left beside turn 4"),
        ("a new turn", &["run", "--", "sh", "-c", "echo four >four.txt"], "turn 2 is left beside turn 4"),
    ];
    for (merge, (what, args, words)) in ["--no-ff", "--ff"].into_iter().flat_map(|merge| ways.map(|way| (merge, way))) {
        let repo = with_newer(merge);
        repo.oxundo(args).warns(&format!("{words}: 'oxundo branch turn-2 2' goes back there"));
        let main = repo.git(["rev-parse", "main"]);
        repo.oxundo(["branch", "turn-2", "2"]).success();
        repo.assert_file("two.txt", "two\n", &format!("{what} {merge}"));
        assert_eq!(repo.git(["rev-parse", "main"]), main, "nothing is taken off");
        repo.assert_sound();
    }
}

/// One of two is redone below what is gained, and taken out again as its hint says.
#[test]
fn the_other_one_of_two_that_were_to_be_redone_below_is_within_reach() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.sh("git branch f");
    for name in ["two", "three"] {
        repo.turn(Mode::Ghost, &format!("echo {name} >{name}.txt"));
    }
    repo.json(["undo", "--steps", "2"]);
    repo.sh("git switch -q f");
    repo.agent("echo four >four.txt");
    repo.sh("git switch -q main; git merge -q --no-edit --no-ff f");
    repo.redo();
    let output = repo.oxundo(["undo", "--only", "2"]);
    output.warns("turn 3 is left beside turn 5: 'oxundo branch turn-3 3' goes back there");
    repo.oxundo(["branch", "turn-3", "3"]).success();
    repo.assert_file("three.txt", "three\n", "it leads there");
    repo.assert_sound();
}

/// What the user has merged into a branch is not brought there by the turns that were made on it then.
#[test]
fn undo_takes_off_turns_that_the_user_had_merged_into_the_branch_of_later_ones() {
    for newer in 1..=2 {
        let repo = Sandbox::new();
        let begun = (repo.files(), repo.head());
        repo.sh("git branch f");
        repo.agent("echo one >one.txt");
        repo.sh("git switch -q f; git merge -q main");
        for turn in 0..newer {
            repo.agent(&format!("echo newer >newer{turn}.txt"));
        }
        repo.sh("git switch -q main; git merge -q f");
        let merged = repo.state();
        repo.oxundo(["undo", "--to", "0"]).success();
        assert_eq!((repo.files(), repo.head()), begun);
        repo.oxundo(["redo", "--to", &(newer + 1).to_string()]).success();
        repo.state().assert_is(&merged, "redo");
    }
}
