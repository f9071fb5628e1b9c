//! What is told of the turns, and what undo and redo do, is one decision; and no hint leads to where something of the user's is
//! lost, or around in a circle.

use crate::sandbox::{Sandbox, check_all};
use serde_json::Value;

/// So many turns, each with a file of its own.
fn turns(numbers: impl IntoIterator<Item = usize>, repo: &Sandbox) {
    for number in numbers {
        repo.agent(&format!("echo {number} >n{number}"));
    }
}

fn three_turns() -> Sandbox {
    let repo = Sandbox::new();
    turns(1..=3, &repo);
    repo
}

/// The lines of a refusal's hints that can be typed.
fn lines(error: &Value) -> Vec<String> {
    let hints = error["hints"].as_array().expect("hints").iter().filter_map(Value::as_str);
    hints.filter_map(|hint| Some(hint.split_once("run '")?.1.split_once('\'')?.0.to_owned())).collect()
}

fn subjects(repo: &Sandbox, of: &str) -> Vec<String> {
    repo.git(["log", "--format=%s", of]).lines().map(ToOwned::to_owned).collect()
}

#[test]
fn no_line_of_a_hint_takes_commits_off_a_branch_that_went_on_from_another() {
    let ways = ["git reset -q --keep main", "git rebase -q main", "git merge -q --ff-only main"];
    check_all(ways.map(|way| (way.to_owned(), way)), |way| {
        let repo = Sandbox::new();
        turns([1], &repo);
        repo.commit("own.txt", "own\n");
        repo.oxundo(["branch", "other", "1"]).success();
        repo.sh(way);
        let there = repo.state();
        turns([3, 4], &repo);
        let commits = subjects(&repo, "other");
        let error = repo.refuses(&["undo", "--to", "1"], "branch");
        assert_eq!(lines(&error), ["oxundo undo --to 2"], "as far as it goes");
        repo.sh(&lines(&error)[0].replace("oxundo", &format!("'{}'", env!("CARGO_BIN_EXE_oxundo"))));
        repo.state().assert_is(&there, "the turns above are undone, and no more");
        assert_eq!(subjects(&repo, "other"), commits[2..]);
        // And nothing of what is there goes by the next line.
        let error = repo.refuses(&["undo", "--to", "1"], "branch");
        repo.sh(&lines(&error)[0]);
        assert_eq!(subjects(&repo, "other-kept"), commits[2..], "what was there has another name");
        repo.undo();
        assert_eq!(repo.git(["branch", "--show-current"]), "main");
        assert_eq!(subjects(&repo, "other-kept"), commits[2..]);
    });
}

#[test]
fn below_a_branch_that_oxundo_began_the_hints_lead_back_to_where_it_came_from() {
    let repo = Sandbox::new();
    turns([1, 2], &repo);
    let main = repo.state();
    repo.oxundo(["branch", "other", "1"]).success();
    turns([4], &repo);
    let error = repo.refuses(&["undo", "--to", "1"], "branch");
    assert_eq!(lines(&error), ["oxundo undo --to 2"], "with what was done on it");
    let kept = repo.copy();
    repo.oxundo(["undo", "--to", "2"]).success();
    repo.state().assert_is(&main, "that leads back");

    // The user's own commit on it keeps it there.
    let repo = kept;
    repo.commit("own.txt", "own\n");
    let error = repo.refuses(&["undo", "--to", "2"], "foreign");
    assert_eq!(lines(&error)[1..], ["git switch main"], "{error}");
    let error = repo.refuses(&["undo", "--to", "1"], "branch");
    assert_eq!(lines(&error), ["git switch main"], "{error}");
    let own = repo.head();
    repo.git(["switch", "-q", "main"]);
    assert_eq!(repo.git(["rev-parse", "other"]), own.trim(), "it stays");
    repo.oxundo(["undo", "--to", "1"]).success();
    repo.assert_absent("n2", "the same command goes on there");
}

/// The numbers and words of the turns, as `log` has them with these arguments.
fn told(repo: &Sandbox, args: &[&str]) -> Vec<String> {
    let (_, log) = repo.json([&["log"], args].concat());
    let turns = log["turns"].as_array().expect("turns").iter();
    turns.map(|turn| format!("{} {}", turn["turn"], turn["state"].as_str().unwrap_or_default())).collect()
}

#[test]
fn what_redo_does_is_what_status_and_log_tell() {
    let ways: [(&str, &[&str], &str); 3] = [
        ("a take-out that was brought back", &["undo", "undo --only 1", "redo"], "true"),
        ("a branch of oxundo's that was moved", &["branch other 1"], "git reset -q --keep main~1"),
        ("a branch that was there before", &[], "git branch other HEAD~1; git switch -q other"),
    ];
    check_all(ways.map(|way| (way.0.to_owned(), way)), |(_, commands, line)| {
        let repo = three_turns();
        for command in *commands {
            repo.oxundo(command.split(' ')).success();
        }
        repo.sh(line);
        assert_eq!(told(&repo, &[])[..3], ["3 undone", "2 done", "1 done"]);
        assert_eq!(repo.json(["status"]).1["redo_depth"], 1);
        assert_eq!(repo.json(["status", "--short"]).1["redo_depth"], 1);
        repo.oxundo(["redo"]).says("Redid turn 3");
        assert_eq!(repo.json(["status"]).1["redo_depth"], 0);
    });
    let repo = three_turns();
    repo.sh("git switch -q --orphan other; git commit -q --allow-empty -m own");
    assert_eq!(repo.json(["status"]).1["redo_depth"], 0, "nothing of other history is undone");
    repo.refuses(&["redo"], "nothing");
}

#[test]
fn where_head_is_goes_before_what_is_done_on_other_branches() {
    for line in ["git switch -q --detach HEAD~2", "git switch -q -c other HEAD~2"] {
        let repo = three_turns();
        turns([4], &repo);
        repo.sh(line);
        repo.undo();
        let states = ["4 undone", "3 undone", "2 undone", "1 done"];
        assert_eq!(told(&repo, &[]), states, "{line}");
        assert_eq!(told(&repo, &["--all"]), states, "{line}");
        assert_eq!(repo.json(["status"]).1["redo_depth"], 3);
    }
}

#[test]
fn what_was_undone_on_a_branch_that_head_is_not_on_is_not_done_there() {
    // Each with how turn 2 stands at last, which was made on another branch than turn 3.
    let ways = [
        ("git switch -q side; ", "", "redo --dry-run"),
        ("git switch -q side; ", "", "redo --to 2"),
        ("", "; git switch -qc side", "redo --to 2"),
    ];
    check_all(ways.map(|way| (format!("{way:?}"), way)), |(before, after, then)| {
        let repo = Sandbox::new();
        repo.sh("git branch side");
        turns([1], &repo);
        repo.sh(if before.is_empty() { "git branch -D side" } else { "true" });
        repo.agent(&format!("{before}echo 2 >n2{after}"));
        repo.undo();
        turns([3], &repo);
        drop(repo.oxundo(then.split(' ')));
        let there = repo.git(["ls-tree", "--name-only", "HEAD"]);
        for number in [2, 3] {
            let state = if there.contains(&format!("n{number}")) { "done" } else { "left" };
            assert!(
                told(&repo, &["--all"]).contains(&format!("{number} {state}")),
                "{number}: {:?}",
                repo.oxundo(["log", "--all"])
            );
        }
    });
    let repo = three_turns();
    repo.sh("git switch -q -c side HEAD~2");
    turns([4], &repo);
    repo.sh("git reset -q --hard HEAD~1; git switch -q main");
    turns([5], &repo);
    assert_eq!(told(&repo, &["--all"])[..3], ["5 done", "4 left", "3 done"], "taken off with git");
}

#[test]
fn a_turn_that_began_below_where_the_other_line_did_is_to_be_had_on_a_branch() {
    let repo = Sandbox::new();
    repo.sh("git branch up; git switch -q up; git commit -q --allow-empty -m up; git switch -q main");
    repo.agent("git merge -q --ff-only up; echo 1 >n1");
    repo.sh("git reset -q --hard up");
    turns([2], &repo);
    let (_, refused) = repo.json(["redo", "--to", "1"]);
    let lines = lines(&refused["error"]);
    assert_eq!(lines, ["oxundo branch turn-1 1"], "{refused}");
    repo.oxundo(lines[0].split(' ').skip(1)).success();
    repo.assert_file("n1", "1\n", "it is there");
}

#[test]
fn as_many_turns_are_told_as_undo_leads_over() {
    // What is done before, and how many turns can be undone then, one after the other.
    let ways: [(&[&str], u64); 4] = [
        (&["undo --to 0", "branch other 1"], 1),
        (&["branch other 1"], 4),
        (&["undo --to 1", "branch other 3", "branch another 2"], 3),
        (&["undo --to 1", "branch other 3", "run -- sh -c 'echo 5 >n5'", "branch another 0"], 4),
    ];
    check_all(ways.map(|way| (way.0.join("; "), way)), |(commands, count)| {
        let repo = three_turns();
        for command in *commands {
            repo.sh(&format!("'{}' -q {command}", env!("CARGO_BIN_EXE_oxundo")));
        }
        for left in (0..=*count).rev() {
            let told = |args: &[&str]| repo.json(args).1["undo_depth"].as_u64();
            assert_eq!((told(&["status"]), told(&["status", "--short"])), (Some(left), Some(left)));
            let done = repo.oxundo(["undo"]);
            assert_eq!(done.code == 0, left > 0, "{left}: {done:?}");
        }
    });
}
