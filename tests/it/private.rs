//! What others cannot read in the worktree, they cannot read in the git directory either.

use crate::sandbox::{Mode, Sandbox, announce, in_both_modes};
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
use crate::{
    kill_points::points_of,
    tracer::{Kill, LAUNCH, Victim, trace},
};
use std::os::unix::fs::PermissionsExt;

/// In what no stranger may see.
const SECRET: &str = "correct-horse";

/// Files of the user's that are closed to others, each in another way; and one that git tracks, which is git's to publish.
const USER: &str = "umask 022; chmod 755 ../ . .git; git config oxundo.include .env; echo .env >.gitignore
    echo tracked >tracked; git add .gitignore tracked; git commit -qm more
    echo correct-horse key >key; echo correct-horse env >.env; chmod 600 key .env
    mkdir -p closed/in; echo correct-horse closed >closed/file; echo correct-horse in >closed/in/file; chmod 700 closed
    echo open >open; echo gone >gone; echo shut >shut; ln -s key link";

/// A repository that strangers can get at; none where nobody can be one.
fn open_repository() -> Option<(Sandbox, Sandbox)> {
    if !rustix::process::geteuid().is_root() {
        announce("SKIPPED, NOTHING IS PROVED: only the superuser can be two others");
        return None;
    }
    let repo = Sandbox::new().unprivileged();
    repo.sh(USER);
    let stranger = repo.stranger();
    assert_eq!(stranger.sh("cat open; cat .git/HEAD"), "open\nref: refs/heads/main", "a stranger gets there");
    Some((repo, stranger))
}

/// All that a stranger finds of the secret: in files, and in git's objects.
fn found_by(stranger: &Sandbox) -> String {
    stranger.sh("grep -rl correct-horse . 2>/dev/null || :
        export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
        git cat-file --batch-all-objects --batch --unordered --buffer | grep -a correct-horse || :")
}

#[track_caller]
fn holds(stranger: &Sandbox, when: &str) {
    assert_eq!(found_by(stranger), "", "{when}: a stranger reads the {SECRET}");
}

/// Makes, in places old and new, what is private.
const MAKE: &str = "umask 022; echo correct-horse made >made; chmod 600 made; echo correct-horse >closed/new
    mkdir -p new/in; echo correct-horse >new/in/file; chmod 700 new; echo more >>open; rm gone; echo plain >plain
    echo more >>tracked";

#[test]
fn no_command_copies_what_is_private_to_where_others_read() {
    in_both_modes(|mode| {
        let Some((repo, stranger)) = open_repository() else { return };
        holds(&stranger, "at first");
        let before = repo.state();
        let said = repo.turn(mode, MAKE);
        said.warns("not covered by undo: .env (private, and others can read what git has)");
        said.warns("to cover what is private: chmod go-rwx '");
        if mode == Mode::Commit {
            said.warns("not committed: closed/new (private");
        }
        holds(&stranger, "a turn");
        let after = repo.state();
        for args in [&["undo"][..], &["redo"], &["undo"], &["redo"]] {
            repo.oxundo(args).success();
            repo.state().assert_is(if args == ["undo"] { &before } else { &after }, args[0]);
            holds(&stranger, args[0]);
        }
        for args in [
            &["checkpoint", "named"][..],
            &["status"],
            &["diff"],
            &["undo", "--dry-run"],
            &["undo"],
            &["restore", "named"],
            &["undo"],
        ] {
            repo.oxundo(args).success();
            holds(&stranger, &args.join(" "));
        }
        repo.state().assert_is(&before, "undo of restore");
        repo.sh("git gc -q --prune=now; git repack -adq");
        repo.oxundo(["gc", "--keep", "now"]).success();
        holds(&stranger, "gc");
        repo.redo();
        holds(&stranger, "redo");
        repo.assert_sound();
    });
}

#[test]
fn what_a_turn_wrote_into_a_file_that_it_closed_is_moved_aside() {
    in_both_modes(|mode| {
        let Some((repo, stranger)) = open_repository() else { return };
        let work = "chmod 600 open; echo correct-horse >shut; chmod 600 shut; echo more >>tracked";
        repo.there_and_back(mode, work);
        holds(&stranger, "there and back");
    });
}

#[test]
fn what_a_turn_does_to_what_is_not_covered_is_named_and_not_taken_back() {
    in_both_modes(|mode| {
        let Some((repo, stranger)) = open_repository() else { return };
        let said = repo.turn(mode, "echo more >>key; chmod 644 .env; rm closed/file; echo more >>tracked");
        for path in ["key", ".env", "closed/file"] {
            said.warns(&format!("the turn changed '{path}', which undo does not cover"));
        }
        repo.sh("chmod 600 .env");
        repo.undo();
        repo.assert_file("key", "correct-horse key\nmore\n", "it is left alone");
        holds(&stranger, "undo");
    });
}

#[test]
fn what_is_private_and_was_moved_goes_back_to_where_it_was() {
    in_both_modes(|mode| {
        let Some((repo, stranger)) = open_repository() else { return };
        repo.there_and_back(
            mode,
            "mkdir d e; mv key d/key; mv closed/file closed/other; mv .env e/.env; echo more >>tracked",
        );
        holds(&stranger, "there and back");
    });
}

#[test]
fn what_is_private_and_in_the_way_is_neither_overwritten_nor_copied() {
    in_both_modes(|mode| {
        let Some((repo, stranger)) = open_repository() else { return };
        repo.turn(mode, "rm gone; echo 2 >>open");
        repo.sh("echo correct-horse >gone; chmod 600 gone");
        for args in [&["undo"][..], &["undo", "--edits=overwrite"]] {
            let refusal = repo.refuses(args, "conflict");
            assert_eq!(refusal["paths"], serde_json::json!(["gone"]), "{refusal}");
        }
        // What the turn left is known: to close it loses nothing.
        repo.sh("rm gone; chmod 600 open");
        repo.oxundo(["undo", "--edits=overwrite"]).success();
        repo.assert_file("open", "open\n", "it is taken back");
        holds(&stranger, "undo");
    });
}

#[test]
fn where_nobody_else_reads_the_git_directory_all_is_covered() {
    in_both_modes(|mode| {
        let Some((repo, stranger)) = open_repository() else { return };
        repo.sh("chmod go-rwx .git");
        let before = repo.state();
        let said = repo.turn(mode, &format!("{MAKE}; rm -r key .env closed"));
        assert!(!said.err().contains("private"), "{said:?}");
        repo.undo();
        repo.state().assert_is(&before, "undo");
        holds(&stranger, "a closed git directory");
        // Opened again in between.
        repo.redo();
        repo.undo();
        repo.sh("chmod go-rwx ..; chmod 755 .git");
        repo.turn(mode, "rm key");
        repo.undo();
        repo.state().assert_is(&before, "what is above both closes both");
    });
}

#[test]
fn oxundos_own_directories_are_closed_also_those_of_an_earlier_version() {
    let repo = Sandbox::new();
    repo.sh("umask 022; chmod 755 .. .git; mkdir -m 755 .git/oxundo");
    repo.turn(Mode::Ghost, "head -c 11000000 /dev/zero >big; echo 2 >README.txt");
    repo.undo();
    let linked = repo.linked("two");
    linked.turn(Mode::Ghost, "head -c 11000000 /dev/zero >big; echo 2 >README.txt");
    linked.undo();
    for path in [".git/oxundo", ".git/worktrees/two/oxundo"] {
        let mode = repo.path(path).metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{path}");
    }
}

/// What doctor warns of, each with the files that it names.
fn warned(repo: &Sandbox) -> Vec<(String, Vec<String>)> {
    let (_, doctor) = repo.json(["doctor"]);
    let all = doctor["findings"].as_array().expect("findings").iter();
    let private = all.filter(|finding| finding["mend"].to_string().contains("chmod"));
    let words = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let details =
        |finding: &serde_json::Value| finding["details"].as_array().map(|all| all.iter().map(words).collect());
    private.map(|finding| (words(&finding["message"]), details(finding).unwrap_or_default())).collect()
}

#[test]
fn doctor_names_what_is_private_and_closes_the_git_directory() {
    let Some((repo, stranger)) = open_repository() else { return };
    let was = [".env", "closed/file", "closed/in/file", "key"];
    repo.turn(Mode::Ghost, "echo 2 >>open");
    let [(message, paths)] = &warned(&repo)[..] else { panic!("one: {:?}", warned(&repo)) };
    assert!(message.contains("undo does not cover them"), "{message}");
    assert_eq!(*paths, was);
    repo.sh("chmod 600 tracked");
    let [_, (message, paths)] = &warned(&repo)[..] else { panic!("two: {:?}", warned(&repo)) };
    assert!(message.contains("what git tracks, it publishes"), "{message}");
    assert_eq!(*paths, ["tracked"]);
    let fixed = repo.oxundo(["doctor", "--fix"]);
    fixed.says("git: mended '");
    assert!(warned(&repo).is_empty(), "{:?}", warned(&repo));
    assert_eq!(stranger.try_git(["status"]).code, 128, "nobody else gets in");
    repo.there_and_back(Mode::Ghost, "rm -r key .env closed");
}

#[test]
fn doctor_names_what_was_recorded_though_it_is_private() {
    let Some((repo, stranger)) = open_repository() else { return };
    // As an earlier version did it, whoever could read that.
    repo.sh("chmod 700 .git");
    repo.turn(Mode::Ghost, "echo 2 >>key; echo 2 >>open");
    assert!(warned(&repo).is_empty(), "nobody can read it");
    repo.sh("chmod 755 .git");
    let [(message, paths)] = &warned(&repo)[..] else { panic!("one: {:?}", warned(&repo)) };
    assert!(message.contains("were recorded all the same"), "{message}");
    assert_eq!(*paths, [".env", "closed/file", "closed/in/file", "key"]);
    assert_ne!(found_by(&stranger), "", "others read it");
    repo.undo();
    repo.assert_file("key", "correct-horse key\n", "what is recorded is brought back");
    repo.oxundo(["doctor", "--fix"]).success();
    assert!(warned(&repo).is_empty());
    holds(&stranger, "it is closed");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn killed_at_any_call_what_changes_places_with_what_is_aside_is_all_there() {
    let Some((repo, _)) = open_repository() else { return };
    let before = repo.files();
    repo.turn(Mode::Ghost, "echo correct-horse >shut; chmod 600 shut; echo more >>tracked; mkdir d; mv key d/");
    let after = repo.files();
    for args in [["undo"], ["redo"]] {
        let Ok(points) = points_of(&repo, &args) else {
            announce("SKIPPED, NOTHING IS PROVED: this process may not trace others here");
            return;
        };
        let moves =
            points.iter().filter(|point| ["rename", "unlink", "link"].iter().any(|call| point.text.contains(call)));
        let step = if crate::form::is_thorough() {
            1
        } else if crate::form::is_whole() {
            3
        } else {
            6
        };
        let mut killed = 0;
        for point in moves.step_by(step) {
            let copy = repo.copy();
            let kill = Kill { number: point.number, done: true, victim: Victim::All };
            let trace = trace(&mut copy.launched_command(LAUNCH, &args), Some(kill)).expect("it was traced before");
            killed += usize::from(trace.killed);
            let next = copy.oxundo(["status"]);
            next.success();
            assert!(!next.err().contains("left '"), "{point:?}: {next:?}");
            let now = copy.files();
            let ends = [now.difference(&before), now.difference(&after)];
            assert!(ends.iter().any(String::is_empty), "{args:?} killed at {point:?}: {ends:#?}\n{next:?}");
            copy.oxundo(["undo"]).code.eq(&0).then(|| copy.files().assert_is(&before, "undo"));
            copy.redo();
            copy.files().assert_is(&after, "redo");
        }
        assert!(killed > 4, "{args:?} was killed: {killed}");
        repo.oxundo(args).success();
    }
}

#[test]
fn a_name_that_git_is_told_of_publishes_nothing() {
    in_both_modes(|mode| {
        let Some((repo, stranger)) = open_repository() else { return };
        repo.sh("git add -N key");
        let before = repo.state();
        repo.turn(mode, "echo more >>tracked");
        holds(&stranger, "a turn");
        repo.undo();
        repo.state().assert_is(&before, "undo");
        // What the agent opens is not the turn's to delete.
        repo.turn(mode, "chmod 644 key; echo more >>tracked");
        repo.undo();
        repo.assert_file("key", "correct-horse key\n", "it was there before");
    });
}
