//! Repositories whose refs are in tables (`git init --ref-format=reftable`).

use crate::sandbox::{Mode, Output, Sandbox, in_both_modes};
use std::fs;

/// A turn that moves, makes and deletes branches of every kind, and changes the stash list at both ends.
const SCRIPT: &str = "
git branch kept HEAD; git symbolic-ref refs/heads/alias refs/heads/kept; git branch -D -q gone/below; git branch gone
git stash drop -q stash@{1}; echo own >>README.txt; git stash push -q -m 'the  turn'
echo 1 >>README.txt; git commit -qam own; git switch -q -c topic; echo 2 >>README.txt; git commit -qam two
git branch -f main HEAD~2; echo loose >>README.txt; echo new >new.txt";

/// With two stash entries, a branch below another's name, and work.
const BEFORE: &str = "
git branch gone/below; for i in 1 2 3; do echo $i >>README.txt; git stash push -q -m \"entry $i\"; done
echo staged >staged.txt; git add staged.txt; echo mine >mine.txt";

fn prepared() -> Sandbox {
    let repo = Sandbox::with_tables(&[]);
    repo.sh(BEFORE);
    repo
}

#[test]
fn every_kind_of_ref_comes_and_goes_and_heads_log_has_a_line_for_each_move() {
    if !Sandbox::has_tables() {
        return;
    }
    in_both_modes(|mode| {
        for repo in [prepared(), prepared().linked("linked")] {
            let is_linked = repo.root().ends_with("linked");
            let script = if is_linked { SCRIPT.replace("main", "linked") } else { SCRIPT.to_owned() };
            let script = if is_linked {
                script.replace("gone", "other").replace("git branch -D -q other/below;", "")
            } else {
                script
            };
            let before = repo.state();
            repo.turn(mode, &script);
            let after = repo.state();
            let lines = || repo.git(["reflog", "HEAD"]).lines().count();
            for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
                let had = lines();
                repo.oxundo([op]).success();
                repo.state().assert_is(wanted, op);
                assert_eq!(lines(), had + 1, "{op} is in HEAD's reflog, once");
            }
            repo.assert_sound();
        }
    });
}

#[test]
fn tables_stay_few_though_nobody_but_oxundo_writes_any() {
    if !Sandbox::has_tables() {
        return;
    }
    let repo = prepared();
    for turn in 0..8 {
        repo.turn(Mode::Ghost, &format!("echo {turn} >>README.txt"));
    }
    let tables = repo.read(".git/reftable/tables.list");
    let there = fs::read_dir(repo.path(".git/reftable")).expect("list the tables").count();
    let listed = tables.split(|byte| *byte == b'\n').filter(|name| !name.is_empty()).count();
    assert!(listed <= 20 && there == listed + 1, "{listed} tables are listed, {there} files are there");
    assert_eq!(
        repo.git(["reflog", "show", "refs/oxundo/timeline"]).lines().count() % 8,
        0,
        "each operation is told of"
    );
    repo.oxundo(["undo", "--steps", "8"]).success();
    repo.assert_file("README.txt", "readme\n", "all are undone");
}

#[test]
fn a_lock_on_the_list_of_tables_is_named_and_stays_and_nothing_changes() {
    if !Sandbox::has_tables() {
        return;
    }
    let repo = prepared();
    repo.agent("echo 1 >>README.txt");
    repo.write(".git/reftable/tables.list.lock", "");
    let before = repo.everything();
    let refusal = repo.refuses(&["undo"], "locked");
    assert!(refusal.to_string().contains("reftable/tables.list.lock"), "{refusal}");
    repo.everything().assert_is(&before, "nothing is changed");
    fs::remove_file(repo.path(".git/reftable/tables.list.lock")).expect("git is done");
    repo.undo();
}

#[test]
fn beside_gits_that_pack_and_move_refs_no_turn_and_no_branch_is_lost() {
    if !Sandbox::has_tables() {
        return;
    }
    let repo = prepared();
    let stop = repo.base().join("home/stop");
    let script = format!(
        "i=0; until [ -e '{}' ]; do i=$((i+1)); git update-ref refs/tags/t$i HEAD && echo t$i >>../home/made; git pack-refs --all; done",
        stop.display()
    );
    let child = repo.shell(&script).stderr(std::process::Stdio::null()).spawn().expect("start a shell");
    for _ in 0..3 {
        let before = repo.files();
        repo.turn(Mode::Ghost, "echo more >>README.txt");
        repo.undo();
        repo.files().assert_is(&before, "undo, beside git");
        repo.redo();
    }
    fs::write(&stop, "").expect("stop it");
    Output::awaited(child);
    let made = String::from_utf8(repo.read("../home/made")).expect("it is text");
    let there = repo.git(["tag"]);
    let lost: Vec<_> = made.lines().filter(|tag| !there.lines().any(|other| other == *tag)).collect();
    assert!(lost.is_empty() && !made.is_empty(), "{lost:?}");
    assert_eq!(repo.log().len(), 3);
    repo.assert_sound();
}

#[test]
fn tables_that_a_power_cut_has_torn_are_taken_out_and_all_that_is_recorded_is_there() {
    if !Sandbox::has_tables() {
        return;
    }
    let repo = prepared();
    repo.agent("echo 1 >>README.txt");
    let before = repo.printed();
    // git waits for the disk with nothing that it writes here.
    repo.sh("GIT_TEST_REFTABLE_AUTOCOMPACTION=false git tag torn");
    let list = String::from_utf8(repo.read(".git/reftable/tables.list")).expect("it is text");
    let newest = list.lines().next_back().expect("there is one");
    repo.write(format!(".git/reftable/{newest}"), "");
    assert_eq!(repo.git(["for-each-ref"]), "", "git reads no ref");
    let refusal = repo.refuses(&["undo"], "corrupt");
    assert!(refusal.to_string().contains("oxundo doctor"), "{refusal}");
    let doctor = repo.oxundo(["doctor"]);
    doctor.says("tables of refs that are damaged");
    repo.oxundo(["doctor", "--fix"]).success();
    repo.printed().assert_is(&before, "all but what was torn is there");
    repo.undo();
    repo.redo();
    repo.printed().assert_is(&before, "there and back");
}

#[test]
fn a_branch_that_stands_for_one_that_is_not_there_comes_and_goes_as_any_other() {
    if !Sandbox::has_tables() {
        return;
    }
    in_both_modes(|mode| {
        for script in [
            "git symbolic-ref refs/heads/new refs/heads/nowhere",
            "git branch -q -D kept",
            "git symbolic-ref refs/heads/lost refs/heads/main",
            "git symbolic-ref -d refs/heads/lost",
            "git update-ref --no-deref refs/heads/lost HEAD",
            "git symbolic-ref -d refs/heads/alias; git branch -q -D kept; git branch none",
        ] {
            let repo = prepared();
            repo.sh("git branch kept; git symbolic-ref refs/heads/alias refs/heads/kept
                git symbolic-ref refs/heads/lost refs/heads/none");
            let all = |repo: &Sandbox| {
                let names = ["new", "alias", "lost"].map(|name| format!("refs/heads/{name}"));
                names.map(|name| repo.try_git(["symbolic-ref", "-q", &name]).out())
            };
            let before = (repo.state(), all(&repo));
            repo.turn(mode, script);
            let after = (repo.state(), all(&repo));
            for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
                repo.oxundo([op]).success();
                repo.state().assert_is(&wanted.0, op);
                assert_eq!(all(&repo), wanted.1, "{op}: {script}");
            }
        }
    });
}
