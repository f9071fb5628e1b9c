//! Another program gives up what git is in the middle of, in the very instant in which oxundo begins it again or takes it back:
//! whoever comes first, what is there in the end is whole.

use crate::kill_points::{has_journal, in_parallel, points_of};
use crate::sandbox::{Mode, Sandbox, announce};
use crate::tracer::{LAUNCH, interrupt_each};
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;

const FORK: &str = "echo edit >edit.txt; echo base >a.txt; git add -A; git commit -qm files
    git checkout -q -b side; echo side >a.txt; echo new >side.txt; git add -A; git commit -qm side
    git checkout -q main; echo main >a.txt; git commit -qam main";

/// After the turn and after its undo, with what the user gives up.
fn cases() -> Vec<(&'static str, Sandbox, &'static str, &'static str)> {
    let mut all = Vec::new();
    for (begin, abort) in [
        ("git merge -q side >/dev/null || :", "git merge --abort"),
        ("git rebase -q side >/dev/null 2>&1 || :", "git rebase --abort"),
    ] {
        let left = Sandbox::new();
        left.sh(FORK);
        let given_up = left.copy();
        left.turn(Mode::Ghost, &format!("{begin}; echo more >more.txt"));
        let undone = left.copy();
        undone.undo();
        given_up.sh(begin);
        given_up.turn(Mode::Ghost, abort);
        let begun = given_up.copy();
        begun.undo();
        all.push(("undo of what was begun", left, "undo", abort));
        all.push(("redo of what was begun", undone, "redo", abort));
        all.push(("undo of what was given up", given_up, "undo", abort));
        all.push(("redo of what was given up", begun, "redo", abort));
    }
    all
}

/// There is an operation with all that belongs to it, or none, and nothing of it.
#[track_caller]
fn assert_whole(repo: &Sandbox, said: &str) {
    let names: Vec<String> = repo.operation().into_keys().collect();
    let has = |name: &str| names.iter().any(|found| found == name);
    let is_under_way = has("MERGE_HEAD") || has("rebase-merge/");
    let unmerged = !repo.git(["ls-files", "--unmerged"]).is_empty();
    let marked = String::from_utf8_lossy(&repo.read("a.txt")).contains("<<<<<<<");
    assert_eq!((unmerged, marked), (is_under_way, is_under_way), "{names:?}, {said}");
    if has("MERGE_HEAD") {
        assert!(has("MERGE_MSG") && has("MERGE_MODE") && has("AUTO_MERGE"), "{names:?}, {said}");
    }
    let detached = repo.try_git(["symbolic-ref", "-q", "HEAD"]).code != 0;
    assert_eq!(detached, has("rebase-merge/"), "HEAD is where it belongs, {names:?}, {said}");
    if is_under_way {
        let ends = if has("MERGE_HEAD") { "git merge --abort" } else { "git rebase --abort" };
        repo.sh(ends);
    }
    assert_eq!(repo.git(["status", "--porcelain", "-uno"]), "", "{said}");
}

#[test]
fn what_somebody_gives_up_at_any_instant_of_an_apply_is_whole_or_gone() {
    if let Err(error) = points_of(&Sandbox::new(), &["status"]) {
        return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    let thorough = crate::form::is_thorough();
    let (all, mut chosen) = (cases(), Vec::new());
    for (at, (name, repo, op, abort)) in all.iter().enumerate() {
        let seen = act_at(&repo.copy(), op, usize::MAX, &|| true).1;
        for (number, text) in seen.iter().enumerate() {
            // Around what is done to the operation itself, and to the index.
            let is_near = ["MERGE_", "rebase-merge", "AUTO_MERGE", "index.lock", "HEAD.lock"]
                .iter()
                .any(|word| text.contains(word));
            if thorough || is_near && number % 3 == at % 3 || number % 23 == at {
                chosen.push((*name, repo, *op, *abort, number));
            }
        }
    }
    let failed = in_parallel(&chosen, |(_, repo, op, abort, number)| {
        let repo = repo.copy();
        let gives_up = || repo.shell(abort).output().is_ok_and(|output| output.status.success());
        let (code, seen, did, stderr) = act_at(&repo, op, *number, &gives_up);
        let said = format!("{code:?}, given up: {did}, before {:?}:\n{stderr}", seen.get(*number));
        assert!(matches!(code, Some(0 | 3 | 4)), "it works or is refused, {said}");
        assert!(!has_journal(&repo), "the journal is gone, {said}");
        repo.oxundo(["status"]).success();
        assert_whole(&repo, &said);
        repo.assert_sound();
    });
    let mut told = String::new();
    for (at, text) in &failed {
        let (name, _, op, abort, number) = chosen[*at];
        let _ = writeln!(told, "== {name}: {op} beside {abort} at {number}\n{text}\n");
    }
    if thorough {
        announce(&format!("{} times given up at an instant, {} torn", chosen.len(), failed.len()));
    }
    assert!(failed.is_empty(), "{} of {} are torn:\n{told}", failed.len(), chosen.len());
}

#[test]
fn what_the_user_commits_or_stashes_at_any_instant_of_an_apply_has_nothing_of_the_turns() {
    if let Err(error) = points_of(&Sandbox::new(), &["status"]) {
        return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    let repo = Sandbox::new();
    repo.agent("echo its >>README.txt; git commit -qam its");
    repo.sh("echo own >own.txt; git add own.txt");
    let undone = repo.copy();
    undone.undo();
    let mut chosen = Vec::new();
    for (op, repo) in [("undo", &repo), ("redo", &undone)] {
        let seen = act_at(&repo.copy(), op, usize::MAX, &|| true).1;
        let is_near = |text: &String| ["index", "HEAD", "refs/heads"].iter().any(|word| text.contains(word));
        for (number, _) in seen.iter().enumerate().filter(|(_, text)| is_near(text) || crate::form::is_thorough()) {
            chosen.extend([(op, repo, number, "git commit -qm own"), (op, repo, number, "git stash -qm own")]);
        }
    }
    let failed = in_parallel(&chosen, |(op, repo, number, act)| {
        let repo = repo.copy();
        let acts = || repo.shell(act).output().is_ok_and(|output| output.status.success());
        let (code, seen, did, stderr) = act_at(&repo, op, *number, &acts);
        let said = format!("{code:?}, {act}: {did}, before {:?}:\n{stderr}", seen.get(*number));
        assert!(matches!(code, Some(0 | 3 | 4)), "it works or is refused, {said}");
        let own = repo.sh("git log --all --format=%h --grep='^own$' --grep='On main: own'");
        for commit in own.lines() {
            let files = repo.git(["diff", "--name-only", &format!("{commit}^1"), commit]);
            assert_eq!(files, "own.txt", "of the user's own alone, {said}");
        }
        assert!(!did || !own.is_empty(), "it is there, {said}");
        assert!(!repo.git(["diff", "--cached", "--name-only"]).contains("README"), "{said}");
        repo.assert_sound();
    });
    let told: Vec<String> = failed
        .iter()
        .map(|(at, text)| format!("== {} beside {} at {}\n{text}\n", chosen[*at].0, chosen[*at].3, chosen[*at].2))
        .collect();
    assert!(!chosen.is_empty() && failed.is_empty(), "{} of {}:\n{}", failed.len(), chosen.len(), told.join("\n"));
}

/// Runs an operation and lets another program act at the instant of this number. Gives the exit code, all instants, whether it
/// could act, and what was said.
fn act_at(repo: &Sandbox, op: &str, number: usize, act: &dyn Fn() -> bool) -> (Option<i32>, Vec<String>, bool, String) {
    let (seen, acted) = (RefCell::new(Vec::new()), Cell::new(false));
    let each = |text: &str| {
        let mut seen = seen.borrow_mut();
        if seen.len() == number {
            acted.set(act());
        }
        seen.push(text.to_owned());
    };
    let trace = interrupt_each(&mut repo.launched_command(LAUNCH, &[op]), None, &each).expect("it was traced before");
    (trace.code, seen.into_inner(), acted.get(), trace.stderr)
}
