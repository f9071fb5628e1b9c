//! Files over the limits in the steps of a turn: taken out with their steps, and what the user saved in them is asked after under
//! whatever name calls have given them since.

use crate::form::part;
use crate::sandbox::{Mode, Sandbox, check_all, in_both_modes};
use crate::steps::{edit, hook, shell, tick};
use serde_json::json;

const MAKE: &str = "seq 100 >big; echo AGENT >>big";

fn small() -> Sandbox {
    let repo = Sandbox::new();
    repo.sh(
        "git config oxundo.maxFileSize 100; git config oxundo.skipDir dist; echo 1 >a; git add a; git commit -qm base",
    );
    repo
}

/// A turn of shells, with what the user does before each.
fn turn(repo: &Sandbox, calls: &[(&str, &str)]) {
    hook(repo, "s", "UserPromptSubmit", &json!({}));
    for (id, (user, agent)) in (1..).zip(calls) {
        repo.sh(user);
        shell(repo, id, agent);
    }
    hook(repo, "s", "Stop", &json!({}));
}

#[test]
fn what_the_user_saved_in_a_large_file_of_a_calls_is_asked_after_under_its_later_name() {
    let moves = ["mv big big2", "mv big big2; echo MORE >>big2", "mv big big3; mv big3 big2"];
    check_all(moves.map(|script| (script.to_owned(), script)), |script| {
        let repo = small();
        turn(&repo, &[("true", MAKE), ("echo USER >>big", script)]);
        let after = repo.state();
        let refusal = repo.refuses(&["undo"], "conflict");
        assert_eq!(refusal["paths"], json!(["big2"]), "{refusal}");
        repo.state().assert_is(&after, "nothing is changed");
        let done = repo.oxundo(["undo", "--edits=overwrite"]);
        done.success();
        done.warns("what you saved in 'big2' during turn 1 goes with it");
        repo.assert_absent("big2", "it is kept aside");
        repo.redo();
        repo.state().assert_is(&after, "with what the user saved");
    });
}

#[test]
fn a_large_file_of_the_users_goes_back_to_its_name_whatever_they_saved_in_it_on_the_way() {
    let save = "echo USER2 >big.new; cat big.new >>NAME";
    let anew = "cp NAME big.new; echo USER2 >>big.new; mv big.new NAME";
    check_all([save, anew].map(|save| (save.to_owned(), save)), |save| {
        let repo = small();
        repo.sh("seq 100 >big; echo USER1 >>big");
        turn(&repo, &[("true", "echo 2 >a"), (&save.replace("NAME", "big"), "mv big big2"), ("true", "true")]);
        let wanted = repo.read("big2");
        let said = repo.oxundo(["undo"]);
        said.success();
        assert!(!said.err().contains("does not come back"), "{}", said.err());
        assert_eq!(repo.read("big"), wanted, "all of it, under its name");
        repo.assert_absent("big2", "it has its own name");
    });
}

#[test]
fn a_step_takes_out_what_it_made_beyond_the_limits_and_puts_back_what_it_moved() {
    let repo = small();
    turn(
        &repo,
        &[("true", MAKE), ("true", "mv big big2"), ("true", "mkdir dist; echo AGENT >dist/f"), ("true", "echo 2 >a")],
    );
    let after = repo.state();
    let is_there = |wanted: [bool; 3]| {
        assert_eq!(["big", "big2", "dist/f"].map(|path| repo.exists(path)), wanted);
    };
    for (words, there) in [
        ("1.1..1.2", [false, false, true]),
        ("1.2", [true, false, true]),
        ("1.3", [false, true, false]),
        ("1.1..1.4", [false, false, false]),
    ] {
        let done = repo.oxundo(["undo", "--only", words]);
        done.success();
        assert!(!done.err().contains("changed too"), "{}", done.err());
        is_there(there);
        repo.redo();
        repo.state().assert_is(&after, words);
    }
    // The file has another name since: it cannot go by this step alone.
    let refusal = repo.refuses(&["undo", "--only", "1.1"], "nothing");
    assert!(refusal["message"].as_str().is_some_and(|said| said.contains("taken out already")), "{refusal}");
    repo.oxundo(["undo", "--only", "1.3", "--", "a", "dist"]).success();
    is_there([false, true, false]);
    repo.redo();
    repo.undo();
    is_there([false, false, false]);
    repo.assert_file("a", "1\n", "with the turn");
}

#[test]
fn a_step_does_not_take_a_later_steps_part_of_a_large_file_along() {
    let repo = small();
    turn(&repo, &[("true", MAKE), ("true", "echo LATER >>big; echo 2 >a")]);
    let after = repo.state();
    let refusal = repo.refuses(&["undo", "--only", "1.1"], "conflict");
    assert_eq!(refusal["paths"], json!(["big"]), "{refusal}");
    repo.state().assert_is(&after, "nothing is changed");
    repo.oxundo(["undo", "--only", "1.2"]).warns("'big' was changed too, and is not covered");
    repo.assert_file("a", "1\n", "the rest of the step");
    repo.redo();
    repo.oxundo(["undo", "--only", "1.1..1.2"]).success();
    repo.assert_absent("big", "with both steps");
}

#[test]
fn a_session_takes_out_what_it_made_beyond_the_limits() {
    let repo = small();
    for session in ["s", "t"] {
        hook(&repo, session, "UserPromptSubmit", &json!({}));
    }
    shell(&repo, 1, MAKE);
    crate::steps::call(&repo, "t", 1, "Bash", &json!({"command": "x"}), "seq 200 >other; echo 2 >a");
    for session in ["s", "t"] {
        hook(&repo, session, "Stop", &json!({}));
    }
    let after = repo.state();
    repo.oxundo(["undo", "--session", "s"]).success();
    repo.assert_absent("big", "its own");
    assert!(repo.exists("other"), "the other's stays");
    repo.redo();
    repo.state().assert_is(&after, "redo");
}

#[test]
fn what_a_call_changed_in_a_large_file_that_it_moved_is_said_to_stay() {
    let repo = small();
    repo.sh("seq 100 >big");
    turn(&repo, &[("true", "mv big big2; echo AGENT >>big2")]);
    repo.oxundo(["undo"]).warns("'big' was changed too, and is not covered");
    assert!(repo.exists("big"), "under its name");
}

#[test]
fn what_going_back_to_a_step_moves_away_is_not_said_to_be_left() {
    let repo = small();
    turn(&repo, &[("true", "echo 2 >a"), ("true", "mkdir dist; echo AGENT >dist/f")]);
    let done = repo.oxundo(["undo", "--to", "1.1"]);
    done.success();
    assert!(!done.err().contains("not covered"), "{}", done.err());
    repo.assert_absent("dist", "it came after that");
}

#[test]
fn what_the_user_puts_in_the_place_of_a_large_file_of_a_turns_is_not_deleted_with_that() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.git(["config", "oxundo.maxFileSize", "1k"]);
        repo.turn(mode, "seq 300 >big");
        repo.sh("rm big; echo mine >big");
        repo.turn(mode, "echo its >>big");
        repo.refuses(&["undo", "--steps", "2"], "conflict");
        repo.undo();
        repo.assert_file("big", "mine\n", "without the second turn");
        repo.refuses(&["undo"], "conflict");
        repo.oxundo(["undo", "--edits=overwrite"]).success();
        repo.assert_absent("big", "undone");
        repo.redo();
        repo.assert_file("big", "mine\n", "redo brings it back");
    });
}

/// What only an editing tool has made, by calls that each name one file.
#[test]
fn what_edits_take_over_the_limits_or_back_within_them_is_the_turns() {
    let (small_one, large) = ("echo AGENT >f", "seq 100 >>f");
    let stories: [&[&str]; 7] = [
        &[small_one, large],
        &[large, "echo AGENT2 >f"],
        &[small_one, large, "echo AGENT3 >f"],
        &[large, "echo AGENT2 >>f"],
        &[small_one, "chmod 600 f; seq 100 >>f", "chmod 644 f; echo AGENT3 >f"],
        &["mkdir -p new/in; seq 100 >new/in/f; ln new/in/f f; rm f"],
        &["mkdir -p new/in; seq 100 >new/in/f", "echo MORE >>new/in/f"],
    ];
    let stories = stories.into_iter().flat_map(|calls| [(calls, None), (calls, Some("echo AGENT >>a"))]);
    for (mode, (calls, last)) in part(stories.flat_map(|story| Mode::BOTH.map(|mode| (mode, story)))) {
        let name = format!("{mode:?}: {calls:?}, {last:?}");
        let repo = small();
        repo.git(["config", "oxundo.mode", if mode == Mode::Ghost { "ghost" } else { "commit" }]);
        let before = repo.state();
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        let path = if calls[0].contains("new/in") { "new/in/f" } else { "f" };
        let told = calls.iter().map(|call| (path, *call)).chain(last.map(|call| ("a", call)));
        for (id, (path, call)) in (1..).zip(told) {
            edit(&repo, id, path, call);
        }
        hook(&repo, "s", "Stop", &json!({}));
        let after = repo.state();
        let undone = repo.oxundo(["undo"]);
        undone.success();
        assert!(!undone.err().contains("you saved"), "{name}: {undone:?}");
        repo.state().assert_is(&before, &name);
        repo.redo();
        repo.state().assert_is(&after, &name);
    }
}

/// By paths, too.
#[test]
fn what_the_user_saved_in_what_goes_as_a_whole_is_named_by_each_way_to_take_it_out() {
    let ways: [&[&str]; 6] = [
        &["undo"],
        &["undo", "--", "dist"],
        &["undo", "--", ":/"],
        &["undo", "--only", "1", "--", "dist"],
        &["undo", "--only", "1"],
        &["undo", "--revert"],
    ];
    for way in ways {
        let repo = small();
        turn(&repo, &[("true", "mkdir dist; echo AGENT >dist/f"), ("echo USER >dist/u", "echo AGENT >>a")]);
        let after = repo.state();
        let undone = repo.oxundo(way);
        undone.success();
        undone.warns("what you saved in 'dist' during turn 1 goes with it");
        repo.redo();
        repo.state().assert_is(&after, &format!("{way:?}"));
    }
}

/// A turn that edits a file, what the user does then, and the next edit.
fn edited_by_both(mode: Mode, [first, user, second]: [&str; 3]) -> Sandbox {
    let repo = small();
    repo.git(["config", "oxundo.mode", if mode == Mode::Ghost { "ghost" } else { "commit" }]);
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    edit(&repo, 1, "f", first);
    tick();
    repo.sh(user);
    tick();
    edit(&repo, 2, if second.contains(">>a") { "a" } else { "f" }, second);
    hook(&repo, "s", "Stop", &json!({}));
    repo
}

#[test]
fn what_the_user_saves_in_a_file_while_it_is_over_the_limits_is_in_no_commit() {
    for story in [
        ["seq 100 >f", "echo USER >>f", "sed -i '/^[0-9]/d' f; echo AGENT >>f"],
        ["seq 100 >f", "echo USER >f", "echo AGENT >>a"],
        ["echo AGENT >f; chmod 600 f", "echo USER >>f", "echo AGENT >>f; chmod 644 f"],
        ["echo AGENT >f", "seq 100 >>f; echo USER >>f", "sed -i '/^[0-9]/d' f; echo AGENT >>f"],
    ] {
        let repo = edited_by_both(Mode::Commit, story);
        assert!(!repo.git(["log", "-p", "--format="]).contains("USER"), "{story:?}");
        assert!(repo.read("f").windows(4).any(|word| word == b"USER"), "{story:?}");
    }
}

/// It is theirs as well, and not theirs alone.
#[test]
fn a_file_of_an_edits_that_the_user_takes_over_the_limits_is_asked_after() {
    for (mode, story) in Mode::tried().into_iter().flat_map(|mode| {
        [
            ["echo AGENT >f", "chmod 600 f", "echo AGENT >>f"],
            ["echo AGENT >f", "chmod 600 f", "echo AGENT >>a"],
            ["echo AGENT >f", "seq 100 >>f", "echo AGENT >>f"],
            ["echo AGENT >f", "seq 100 >>f", "echo AGENT >>a"],
        ]
        .map(|story| (mode, story))
    }) {
        let repo = edited_by_both(mode, story);
        let after = repo.state();
        let refused = repo.refuses(&["undo"], "conflict");
        assert_eq!(refused["paths"], json!(["f"]), "{mode:?}: {story:?}: {refused}");
        repo.state().assert_is(&after, "nothing is changed");
        repo.oxundo(["undo", "--edits=overwrite"]).success();
        repo.assert_absent("f", &format!("{mode:?}: {story:?}"));
        repo.redo();
        repo.state().assert_is(&after, &format!("{mode:?}: {story:?}"));
    }
}
