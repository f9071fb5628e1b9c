//! Directories that are not captured, and files over the limits: undo moves them as a whole, whatever somebody has done in them
//! since. What is in them then is not the turn's alone.

use crate::form::part;
use crate::sandbox::{Mode, Sandbox};
use crate::steps::{hook, shell, tick};
use serde_json::json;

/// A turn, what somebody does before it is undone and while the shell has a file of the turn open as number 7, and behind that.
const SAVES: [(&str, &str, &str); 8] = [
    ("mkdir -p dist/in; echo made >dist/f", "echo MARK-a >>dist/f", ":"),
    ("mkdir -p dist/in; echo made >dist/f", "echo MARK-b >dist/in/new", ":"),
    ("mkdir -p dist/in; echo made >dist/f", "echo MARK-c >new; mv new dist", ":"),
    ("mkdir -p dist/in; echo made >dist/f", "exec 7>>dist/f", "echo MARK-d >&7"),
    // Its size and its time are as they were.
    (
        "mkdir -p dist/in; echo made-e >dist/f",
        "touch -r dist/f ref; echo MARK-e >dist/f; touch -r ref dist/f; rm ref",
        ":",
    ),
    ("mkdir -p dist/in; echo made >dist/f", "echo MARK-f >dist/f; ln dist/f dist/in/other", ":"),
    ("head -c 11000000 /dev/zero >app.log", "exec 7>>app.log", "echo MARK-g >&7"),
    ("mkdir -p dist; head -c 11000000 /dev/zero >app.log", "exec 7>>app.log", "echo MARK-h >&7"),
];

fn has_mark(repo: &Sandbox, mark: &str) -> bool {
    repo.sh(&format!("grep -rl --binary-files=text {mark} . || :")).lines().any(|path| !path.contains("/objects/"))
}

#[test]
fn what_was_saved_in_what_is_moved_aside_does_not_expire() {
    let repo = Sandbox::new();
    for (number, (make, before, behind)) in SAVES.iter().enumerate() {
        repo.turn(Mode::BOTH[number % 2], make);
        tick();
        repo.sh(&format!("{before}; oxundo undo --edits=overwrite -q; {behind}"));
        repo.sh("rm -rf dist app.log");
    }
    // Nobody has touched these.
    repo.turn(
        Mode::Ghost,
        "mkdir -p dist/in/empty; printf CON%s TROL >dist/in/f; ln dist/in/f dist/g; ln -s in dist/l",
    );
    repo.undo();
    repo.redo();
    repo.undo();
    repo.turn(Mode::Ghost, "echo two >README.txt");
    let marks: Vec<String> = ('a'..='h').map(|letter| format!("MARK-{letter}")).collect();
    repo.oxundo(["gc", "--keep", "now"]).warns("oxundo gc --drop-user");
    for mark in &marks {
        assert!(has_mark(&repo, mark), "{mark} is there");
    }
    let left = repo.sh("grep -rl CONTROL . || :; find .git/oxundo/aside -printf '%p %C@\\n'");
    assert!(!has_mark(&repo, "CONTROL"), "what the turn left has expired with it: {left}");
    repo.oxundo(["gc", "--keep", "now", "--drop-user"]).success();
    for mark in &marks {
        assert!(!has_mark(&repo, mark), "{mark} goes at the user's word");
    }
}

#[test]
fn undo_names_the_directory_that_it_takes_along_with_what_somebody_did_in_it() {
    for args in [&["undo"][..], &["undo", "--only", "1"], &["undo", "--", "dist"]] {
        for save in
            ["echo mine >>dist/f", "echo mine >dist/in/new", "echo /dist >.git/info/exclude; echo mine >dist/new"]
        {
            if args.len() > 1 && save.contains("exclude") {
                // The turn that records it knows of nothing that is ignored.
                continue;
            }
            let repo = Sandbox::new();
            repo.turn(Mode::Commit, "mkdir -p dist/in; echo made >dist/f; echo 2 >README.txt");
            let unchanged = repo.copy();
            let said = unchanged.oxundo(args);
            said.success();
            assert!(!said.err().contains("since"), "nobody did anything: {}", said.err());
            repo.sh(save);
            let before = repo.files();
            let refusal = repo.refuses(&[&args[..1], &["--edits=refuse"], &args[1..]].concat(), "conflict");
            assert_eq!(refusal["paths"], serde_json::json!(["dist"]), "{refusal}");
            let said = repo.oxundo(args);
            said.success();
            said.warns("'dist' has changed since, and goes as it is to ");
            assert!(said.err().contains("oxundo/aside/1/0"), "it says where it is: {}", said.err());
            repo.assert_absent("dist", "it is aside");
            repo.oxundo([if args.contains(&"--only") { "undo" } else { "redo" }]).success();
            repo.files().assert_is(&before, "it comes back with all that is in it");
        }
    }
}

#[test]
fn a_repository_in_a_directory_that_would_be_moved_stays_and_is_named() {
    let repo = Sandbox::new();
    repo.sh("git branch pages");
    let script =
        "git worktree add -q dist pages; git init -q build; mkdir -p node_modules/a; git init -q node_modules/a/dep
        mkdir target; echo made >target/f; echo 2 >README.txt";
    repo.turn(Mode::Ghost, script);
    let commit = "git -c user.name=U -c user.email=u@x -C $d commit -qm mine";
    repo.sh(&format!("for d in dist build node_modules/a/dep; do echo mine >$d/mine; git -C $d add .; {commit}; done"));
    for _ in 0..2 {
        let said = repo.oxundo(["undo"]);
        said.success();
        for path in ["dist", "build", "node_modules"] {
            said.warns(&format!("'{path}' stays: it is a repository, or has one, or files of git's by now"));
        }
        for path in ["dist", "build", "node_modules/a/dep"] {
            repo.assert_file(&format!("{path}/mine"), "mine\n", "it is where it was");
            repo.sh(&format!("git -C {path} log -1 --format=%s | grep -qx mine; git -C {path} diff --quiet HEAD"));
        }
        repo.assert_absent("target", "the rest is undone");
        assert!(!repo.git(["worktree", "list"]).contains("prunable"), "git finds it");
        repo.redo();
        repo.assert_file("target/f", "made\n", "the rest is redone");
        repo.assert_file("dist/mine", "mine\n", "and this stayed");
    }
}

/// It stays with all that is in it, and nothing of it is in the way of what comes later.
#[test]
fn a_directory_of_a_turns_of_which_git_has_files_since_stays_and_is_named() {
    let tracks = [
        "git add build; git commit -qm mine; echo USER1 >build/mine; git add build; git commit -qm more; echo USER2 >build/notes",
        "echo USER1 >build/mine; git add build/mine; echo USER2 >build/notes",
        "echo USER1 >build/mine; git add -N build/mine; echo USER2 >build/notes",
    ];
    for (mode, tracks) in Mode::tried().into_iter().flat_map(|mode| tracks.map(|tracks| (mode, tracks))) {
        for undo in ["undo --only 1", "undo"] {
            let repo = Sandbox::new();
            repo.turn(mode, "mkdir build; echo ITS >build/conf; echo ITS >its.txt");
            repo.sh(tracks);
            let before = repo.files();
            let said = repo.oxundo(undo.split(' '));
            if said.code != 0 {
                assert!(undo == "undo" && tracks.contains("commit"), "{undo}: {said:?}");
                continue;
            }
            said.warns("'build' stays: it is a repository, or has one, or files of git's by now");
            repo.assert_absent("its.txt", "the rest is undone");
            assert_eq!(repo.sh("cat build/conf build/mine build/notes"), "ITS\nUSER1\nUSER2", "{tracks}");
            repo.oxundo([if undo == "undo" { "redo" } else { "undo" }]).success();
            repo.files().assert_is(&before, "and comes back");
            repo.turn(mode, "echo ITS2 >later.txt");
            repo.undo();
            repo.files().assert_is(&before, "a later one comes and goes");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_is_in_the_place_of_a_directory_above_is_in_the_way_of_redo() {
    for (make, mine) in [
        ("mkdir -p n/m; head -c 11000000 /dev/zero >n/m/big", "n"),
        ("mkdir -p n/dist; echo 1 >n/dist/f", "n"),
        ("mkdir -p n/empty/more", "n/empty"),
    ] {
        let repo = Sandbox::new();
        repo.turn(Mode::Commit, make);
        let after = repo.files();
        repo.undo();
        repo.sh(&format!("mkdir -p $(dirname {mine}); echo mine >{mine}"));
        let before = repo.state();
        for args in [&["redo"][..], &["redo", "--edits=overwrite"]] {
            let refusal = repo.refuses(args, "conflict");
            assert_eq!(refusal["paths"], serde_json::json!([mine]), "{refusal}");
            repo.state().assert_is(&before, "nothing is changed");
        }
        repo.sh(&format!("rm {mine}"));
        repo.redo();
        repo.files().assert_is(&after, "it has its place again");
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod traced {
    use super::*;
    use crate::kill_points::points_of;
    use crate::sandbox::announce;
    use crate::tracer::{Failure, LAUNCH, fail, interrupt_each};
    use nix::errno::Errno;
    use std::cell::Cell;

    #[test]
    fn a_repository_that_comes_right_before_the_move_has_its_place_again() {
        let repo = Sandbox::new();
        repo.turn(Mode::Commit, "mkdir -p dist/in; echo made >dist/f; echo 2 >README.txt");
        if let Err(error) = points_of(&repo.copy(), &["status"]) {
            return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
        }
        let (before, came) = (repo.files(), Cell::new(false));
        let each = |text: &str| {
            if text.contains("rename") && text.contains("aside/1/0") && !came.replace(true) {
                repo.sh("git init -q dist/in");
            }
        };
        let trace =
            interrupt_each(&mut repo.launched_command(LAUNCH, &["undo"]), None, &each).expect("it was traced before");
        assert!(came.get(), "the instant was found");
        assert_eq!(trace.code, Some(3), "{}", trace.stderr);
        assert!(trace.stderr.contains("'dist' was changed meanwhile"), "{}", trace.stderr);
        assert!(repo.exists("dist/in/.git/HEAD"), "it is where it was made");
        repo.sh("rm -r dist/in/.git");
        repo.files().assert_is(&before, "and nothing is undone");
    }

    #[test]
    fn what_fails_when_all_is_done_says_that_it_is_done() {
        let repo = Sandbox::new();
        repo.turn(Mode::Commit, "echo one >one");
        repo.turn(Mode::Commit, "echo two >README.txt; echo more >more");
        let points = match points_of(&repo, &["undo"]) {
            Ok(points) => points,
            Err(error) => {
                return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
            }
        };
        let head = repo.git(["rev-parse", "HEAD"]);
        let mut told = 0;
        for point in points.iter().filter(|point| point.text.contains("sync") || point.text.contains("pending")) {
            let repo = repo.copy();
            let failure = Failure { number: point.number, errno: Errno::EIO, lasting: false };
            let trace = fail(&mut repo.launched_command(LAUNCH, &["undo"]), failure).expect("it was traced before");
            if trace.code == Some(0) || repo.git(["rev-parse", "HEAD"]) == head {
                continue;
            }
            told += 1;
            let said = &trace.stderr;
            assert!(said.contains("error: undo is done, and the next command finishes "), "{}: {said}", point.text);
            assert!(said.contains("run 'oxundo status'") && !said.contains("run 'oxundo undo'"), "{said}");
            repo.oxundo(["status"]).success();
            repo.oxundo(["redo"]).success();
            assert_eq!(repo.git(["rev-parse", "HEAD"]), head, "it was one undo: {said}");
        }
        assert!(told > 0, "some fail behind it: {points:?}");
    }
}

/// Whoever made it, the call only brings it within reach: the turn's goes, and what was there before it stays.
#[test]
fn what_one_call_makes_whole_and_the_next_one_adds_to_the_index_goes_with_the_turn() {
    for add in ["git add dist", "git add -A; git commit -qm its"] {
        for mode in Mode::BOTH {
            for (before, first, between, is_its) in [
                (":", "mkdir dist; echo ITS >dist/f", ":", true),
                ("mkdir dist; echo MINE >dist/f", "echo ITS >its.txt", ":", false),
                (":", "echo ITS >its.txt", "mkdir dist; echo MINE >dist/f", false),
                // And what somebody saves beside it between the two.
                (":", "mkdir dist; echo ITS >dist/f", "echo MINE >dist/mine", true),
                (":", "mkdir dist; echo ITS >dist/f", "echo MINE >dist/mine; echo MINE >mine.txt", true),
            ] {
                let repo = Sandbox::new();
                repo.git(["config", "oxundo.mode", if mode == Mode::Ghost { "ghost" } else { "commit" }]);
                repo.sh(before);
                hook(&repo, "s", "UserPromptSubmit", &json!({}));
                shell(&repo, 1, first);
                tick();
                repo.sh(between);
                tick();
                shell(&repo, 2, add);
                hook(&repo, "s", "Stop", &json!({}));
                let after = repo.state();
                let undone = repo.oxundo(["undo"]);
                undone.success();
                assert!(!undone.err().contains("what you saved"), "it stays, or there is none: {undone:?}");
                assert_eq!(repo.exists("dist/f"), !is_its, "{mode:?}: {add}: {before}; {first}; {between}");
                let is_there = between.contains("dist/mine");
                assert_eq!(repo.exists("dist/mine"), is_there, "{mode:?}: {add}: {before}; {first}; {between}");
                repo.redo();
                repo.state().assert_is(&after, &format!("{mode:?}: {add}: {before}; {first}; {between}"));
                repo.assert_sound();
            }
        }
    }
}

#[test]
fn what_calls_made_whole_is_theirs_where_the_user_adds_a_file_in_it_between_two() {
    let adds = [
        "git add dist/mine",
        "git add dist/mine; git commit -qm mine",
        "git add dist",
        "git add dist; git commit -qm both",
    ];
    let ends = [
        ":",
        "echo ITS >its.txt",
        "git add -A",
        "echo MORE >>dist/f",
        "mkdir dist/sub; echo ITS >dist/sub/g",
        "rm dist/f; echo ITS >its.txt",
        "rm -r dist/in",
    ];
    let stories = adds.into_iter().flat_map(|add| ends.map(|end| (add, end)));
    for (mode, (theirs, last)) in part(stories.flat_map(|story| Mode::BOTH.map(|mode| (mode, story)))) {
        let name = format!("{mode:?}: {theirs}; {last}");
        let repo = Sandbox::new();
        repo.git(["config", "oxundo.mode", if mode == Mode::Ghost { "ghost" } else { "commit" }]);
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, "mkdir -p dist/in; echo ITS >dist/f; echo ITS >dist/in/f");
        tick();
        repo.sh(&format!("echo MINE >dist/mine; {theirs}"));
        tick();
        shell(&repo, 2, last);
        hook(&repo, "s", "Stop", &json!({}));
        let after = repo.state();
        let undone = repo.oxundo(["undo"]);
        // What they have committed of the turn's stays.
        let is_theirs = theirs.ends_with("both");
        for file in ["dist/f", "dist/in/f"] {
            assert!(!repo.exists(file) || is_theirs, "{name}: {file}: {undone:?}");
        }
        assert_eq!(repo.read("dist/mine"), b"MINE\n", "{name}: {undone:?}");
        if undone.code == 0 {
            repo.redo();
            repo.state().assert_is(&after, &name);
        }
        repo.assert_sound();
    }
}
