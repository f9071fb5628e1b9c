//! A command was killed when all but its record was done, and the user goes on before the next one: what they do then is
//! theirs, and the command is done as a whole, or not at all.

use crate::kill_points::{has_journal, killed_at, points_of};
use crate::sandbox::{Mode, Output, Sandbox, State, announce};
use crate::steps::{hook, shell};
use crate::tracer::{Kill, LAUNCH, Victim, interrupt, trace};
use serde_json::json;

/// A branch has moved: what leads there is all done.
const BRANCH_MOVED: [&str; 2] = ["rename", "refs/heads/main"];

/// All but the record is done.
const RECORDING: [&str; 2] = ["linkat", "refs/oxundo/timeline.lock"];

/// What the user does, once the lock that a kill left is gone, as git tells them; and what takes that away again.
const SAVED: &str = "rm -f .git/index.lock; echo users-line >>edit.txt; echo users >users.txt; echo staged >staged-since.txt; git add staged-since.txt";
const TAKEN_AWAY: &str =
    "git rm -qf --cached staged-since.txt; rm users.txt staged-since.txt; sed -i /^users-line$/d edit.txt";

/// A turn that a restore takes back, the state before that restore, and the one after it.
fn restored(settings: &str, restore: &[&str]) -> (Sandbox, [State; 2]) {
    let repo = Sandbox::new();
    repo.sh(&format!(
        "{settings}; echo one >edit.txt; echo gone >gone.txt; git add .; git commit -qm files; echo mine >>edit.txt"
    ));
    repo.turn(
        Mode::Commit,
        "echo agents >>edit.txt; rm gone.txt; echo new >new.txt; git add -A; git commit -qm own; echo b >b.txt",
    );
    let goal = repo.copy();
    goal.oxundo(restore).success();
    let ends = [repo.state(), goal.state()];
    (repo, ends)
}

/// The next command, which first makes whole what was killed: finishes it, or rolls it back.
#[track_caller]
fn recovered(repo: &Sandbox, command: &str, how: &str) -> Output {
    let next = repo.oxundo([command]);
    next.success();
    next.warns(&format!("{how} an interrupted operation"));
    next
}

fn is_traced() -> bool {
    let traced = points_of(&Sandbox::new(), &["status"]);
    if let Err(error) = &traced {
        announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    traced.is_ok()
}

#[test]
fn what_the_user_saves_when_a_restore_is_all_but_recorded_is_not_its_own() {
    if !is_traced() {
        return;
    }
    let exact = ["restore", "--exact", "1:before"];
    // Where the worktree has to be looked at after a restore, and where it has not.
    for settings in ["true", "git config core.fileMode false"] {
        let (start, [before, after]) = restored(settings, &exact);
        let repo = killed_at(&start, &exact, BRANCH_MOVED);
        assert!(has_journal(&repo), "it was killed before it was recorded");
        repo.sh(SAVED);
        let saved = repo.files();
        recovered(&repo, "log", "finished");
        repo.files().assert_is(&saved, "what the user saved is left");
        let turns = repo.log();
        let turn = turns.iter().find(|turn| turn["turn"] == 2).expect("the restore is a turn");
        assert_eq!(turn["interrupted"], false, "it is done as a whole: {turn}");
        let diff = repo.oxundo(["show", "2"]).out();
        assert!(
            !diff.contains("users") && !diff.contains("since"),
            "{settings}: only what it changed is its own: {diff}"
        );
        // It is in the way of undo of the restore, which says so and changes nothing.
        repo.refuses(&["undo"], "conflict");
        repo.files().assert_is(&saved, "what the user saved is left");
        repo.sh(TAKEN_AWAY);
        repo.state().assert_is(&after, "all else is as the restore has it");
        repo.undo();
        repo.state().assert_is(&before, "undo of it is the state before it");
        repo.redo();
        repo.state().assert_is(&after, "redo of it is the state after it");
        repo.assert_sound();
    }
}

#[test]
fn what_the_user_saves_when_a_restore_is_rolled_back_is_no_turn() {
    if !is_traced() {
        return;
    }
    let restore = ["restore", "1:before", "--", "edit.txt", "gone.txt"];
    for settings in ["true", "git config core.fileMode false"] {
        let (start, [before, _]) = restored(settings, &restore);
        let repo = killed_at(&start, &restore, ["renameat", " gone.txt"]);
        assert!(has_journal(&repo), "it was killed before it was recorded");
        repo.sh(SAVED);
        let next = recovered(&repo, "log", "rolled back");
        assert!(repo.log().iter().all(|turn| turn["turn"] != 2), "it is no turn: {next:?}");
        repo.assert_absent("gone.txt", "what it had brought back is gone again");
        assert!(repo.read("edit.txt").ends_with(b"users-line\n"), "what the user saved is left");
        repo.sh(&format!("{TAKEN_AWAY}; git cat-file blob $(git rev-parse refs/oxundo/timeline:turns/00/00/01/after/worktree/edit.txt) >edit.txt"));
        repo.state().assert_is(&before, "all else is as it was");
        repo.undo();
        repo.assert_sound();
    }
}

#[test]
fn what_the_user_takes_away_of_what_a_killed_command_had_replaced_stays_away() {
    if !is_traced() {
        return;
    }
    for (takes, back) in
        [("rm edit.txt", "true"), ("mv edit.txt other.txt", "rm other.txt"), ("mkdir d; mv edit.txt d", "rm -r d")]
    {
        let restore = ["restore", "1:before", "--", "edit.txt", "gone.txt"];
        let (start, [before, _]) = restored("true", &restore);
        let repo = killed_at(&start, &restore, ["renameat", " gone.txt"]);
        repo.sh(takes);
        let next = recovered(&repo, "status", "rolled back");
        next.warns("left 'edit.txt' as it is: it was changed since");
        repo.assert_absent("edit.txt", "it does not come back");
        repo.sh(&format!(
            "{back}; git cat-file blob $(git rev-parse refs/oxundo/timeline:turns/00/00/01/after/worktree/edit.txt) >edit.txt"
        ));
        repo.state().assert_is(&before, "all else is as it was");
        repo.assert_sound();
    }
}

#[test]
fn where_a_killed_command_was_to_move_a_large_file_back_the_users_new_one_stops_no_command() {
    if !is_traced() {
        return;
    }
    let start = Sandbox::new();
    start.sh("git config oxundo.maxFileSize 100; echo 1 >a; git add a; git commit -qm base; seq 100 >big");
    start.turn(Mode::Commit, "mv big big2; echo its >>a");
    let before = start.state();
    let repo = killed_at(&start, &["undo", "--revert"], ["rename", ".git/oxundo/aside/"]);
    repo.sh("echo users >big");
    let next = recovered(&repo, "status", "rolled back");
    assert!(repo.log().iter().all(|turn| turn["turn"] != 2), "it is no turn: {next:?}");
    for args in [&["log"][..], &["status"], &["run", "--ghost", "--", "true"]] {
        repo.oxundo(args).success();
    }
    repo.assert_file("big", "users\n", "what the user made is left");
    repo.sh("rm big");
    repo.state().assert_is(&before, "all else is as it was");
}

#[test]
fn what_the_user_saves_beside_or_in_a_large_file_on_its_way_is_left_and_no_other_takes_its_place() {
    if !is_traced() {
        return;
    }
    let mut new_files = 0;
    for (args, place) in [(["undo"], "big"), (["redo"], "big2")] {
        let start = Sandbox::new();
        start.sh("git config oxundo.maxFileSize 100; echo 1 >a; git add a; git commit -qm base; seq 100 >big; echo only-copy >>big");
        start.turn(
            Mode::Commit,
            "mv big big2; echo its >>a; seq 200 >made; mkdir node_modules; echo code >node_modules/x",
        );
        if args == ["redo"] {
            start.undo();
        }
        let goal = start.copy();
        goal.oxundo(args).success();
        let ends = [start.files(), goal.files()];
        for point in points_of(&start, &args).expect("it was traced before") {
            if !point.text.contains("rename") {
                continue;
            }
            let repo = start.copy();
            let kill = Kill { number: point.number, done: true, victim: Victim::All };
            trace(&mut repo.launched_command(LAUNCH, &args), Some(kill)).expect("it was traced before");
            let is_new = !repo.path(place).exists();
            repo.sh(&format!("echo users-line >>{place}; [ ! -e made ] || echo users-end >>made"));
            let has_made = repo.path("made").exists();
            repo.oxundo(["status"]).success();
            let all = repo.sh("cat big big2 made 2>/dev/null || :");
            for line in ["users-line", "only-copy"].into_iter().chain(has_made.then_some("users-end")) {
                assert!(all.contains(line), "{args:?} killed at {point:?}: {line} is in no file");
            }
            if is_new && !has_made {
                new_files += 1;
                repo.sh(&format!("rm {place}"));
                let now = repo.files();
                let ends = [now.difference(&ends[0]), now.difference(&ends[1])];
                assert!(ends.iter().any(String::is_empty), "{args:?} killed at {point:?}: {ends:#?}");
                let again = repo.oxundo(args);
                repo.files().assert_is(&goal.files(), &format!("it can be done: {again:?}"));
            }
        }
    }
    assert!(new_files > 2, "it was killed where the place was free: {new_files}");
}

#[test]
fn what_is_saved_in_the_instant_before_something_is_moved_aside_is_seen() {
    if !is_traced() {
        return;
    }
    for (work, save, name) in [
        ("seq 100 >big", "echo users-line >>big", "big"),
        ("seq 100 >big", "seq 99 >other; mv other big", "big"),
        ("mkdir node_modules; echo code >node_modules/x", "echo users-line >node_modules/new", "node_modules"),
        ("mkdir -p node_modules/a; echo code >node_modules/a/x", "echo users-line >>node_modules/a/x", "node_modules"),
        ("mkdir -p node_modules/a; echo code >node_modules/a/x", "chmod +x node_modules/a/x", "node_modules"),
    ] {
        let repo = Sandbox::new();
        repo.sh("git config oxundo.maxFileSize 100; echo 1 >a; git add a; git commit -qm base");
        repo.turn(Mode::Commit, &format!("{work}; echo its >>a"));
        let saved = repo.copy();
        saved.sh(save);
        let act = || drop(repo.sh(save));
        let undo = interrupt(&mut repo.launched_command(LAUNCH, &["undo"]), "/oxundo/aside/1/0", &act);
        let undo = undo.expect("it was traced before");
        assert_eq!(undo.code, Some(3), "{save}: {undo:?}");
        assert!(undo.stderr.contains(&format!("'{name}' was changed meanwhile")), "{save}: {undo:?}");
        repo.files().assert_is(&saved.files(), save);
        repo.assert_sound();
    }
}

#[test]
fn what_was_finished_before_another_kill_ends_as_planned() {
    if !is_traced() {
        return;
    }
    let exact = ["restore", "--exact", "1:before"];
    let (start, [before, after]) = restored("true", &exact);
    let once = killed_at(&start, &exact, BRANCH_MOVED);
    // It is finished, and the end of its turn is not recorded yet.
    let repo = killed_at(&once, &["status"], ["unlink", "refs/oxundo/timeline.lock"]);
    repo.sh(SAVED);
    repo.prune();
    repo.oxundo(["status"]).success();
    let turn = &repo.log()[0];
    assert_eq!((&turn["turn"], &turn["interrupted"]), (&json!(2), &json!(false)), "it is done as a whole: {turn}");
    repo.sh(TAKEN_AWAY);
    repo.state().without("log ").assert_is(&after.without("log "), "it is as the restore has it");
    repo.undo();
    repo.state().without("log ").assert_is(&before.without("log "), "undo of it is the state before it");
    repo.assert_sound();
}

#[test]
fn a_commit_on_the_branch_that_undo_has_moved_is_on_what_undo_led_to() {
    if !is_traced() {
        return;
    }
    let script =
        "echo agents >>edit.txt; rm gone.txt; echo new >new.txt; git add -A; git commit -qm own; echo b >b.txt";
    let switching = "git switch -q -c topic; echo agents >>edit.txt; git commit -qam own; echo b >b.txt";
    for (script, call) in [(script, RECORDING), (switching, RECORDING)] {
        let repo = Sandbox::new();
        repo.sh("echo one >edit.txt; echo gone >gone.txt; git add .; git commit -qm files");
        let before = repo.state();
        repo.turn(Mode::Commit, script);
        let done = repo.state();
        let repo = killed_at(&repo, &["undo"], call);
        assert!(has_journal(&repo), "it was killed before it was recorded");
        repo.sh("echo users >users.txt; git add users.txt; git commit -qm users");
        recovered(&repo, "status", "finished");
        repo.assert_file("edit.txt", "one\n", "the files are those that the commit is on");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "nothing is left uncommitted");
        repo.sh("git reset -q --hard HEAD~1");
        repo.state().without("log ").assert_is(&before.clone().without("log "), "it is undone as a whole");
        repo.redo();
        repo.state().without("log ").assert_is(&done.without("log "), "redo brings all of it back");
        repo.assert_sound();
    }
}

#[test]
fn whatever_makes_a_turn_of_oxundos_own_is_done_as_a_whole_once_a_branch_has_moved() {
    if !is_traced() {
        return;
    }
    for (args, call) in [
        (&["squash", "1..2"][..], BRANCH_MOVED),
        (&["undo", "--revert"], BRANCH_MOVED),
        (&["branch", "other", "1"], ["rename", "refs/heads/other"]),
        (&["undo", "--to", "2.1"], BRANCH_MOVED),
    ] {
        let start = Sandbox::new();
        start.sh("echo one >edit.txt; git add .; git commit -qm files");
        start.turn(Mode::Commit, "echo first >>edit.txt; echo first >first.txt");
        hook(&start, "s", "UserPromptSubmit", &json!({}));
        shell(&start, 1, "echo second >>edit.txt; echo second >second.txt");
        shell(&start, 2, "echo third >third.txt; git add -A; git commit -qm own");
        hook(&start, "s", "Stop", &json!({}));
        let before = start.state();
        let repo = killed_at(&start, args, call);
        assert!(has_journal(&repo), "{args:?}: it was killed before it was recorded");
        repo.sh(SAVED);
        let saved = repo.files();
        recovered(&repo, "status", "finished");
        repo.files().assert_is(&saved, "what the user saved is left");
        let turn = &repo.log()[0];
        assert_eq!((&turn["turn"], &turn["interrupted"]), (&json!(3), &json!(false)), "{args:?}: {turn}");
        assert!(!turn["files"].to_string().contains("since") && !turn["files"].to_string().contains("users"), "{turn}");
        repo.sh(TAKEN_AWAY);
        repo.oxundo([if args.contains(&"--to") { "redo" } else { "undo" }]).success();
        repo.state().without("log ").assert_is(&before.clone().without("log "), &format!("undo of {args:?} is exact"));
        repo.assert_sound();
    }
}
