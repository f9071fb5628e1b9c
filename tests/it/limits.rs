//! What is beyond the limits: said once, never deleted, never committed; what a turn made of it is moved
//! aside and back.

use crate::sandbox::{Mode, Output, Sandbox, in_both_modes};
use std::os::unix::fs::MetadataExt;

/// One thing of the user's beyond each limit.
fn beyond_every_limit() -> Sandbox {
    let repo = Sandbox::new();
    for (key, value) in
        [("maxFileSize", "1k"), ("maxDirEntries", "3"), ("skipDir", "junk"), ("exclude", "*.tmp private/x")]
    {
        repo.git(["config", &format!("oxundo.{key}"), value]);
    }
    repo.write("large.bin", "x".repeat(1025)).write("within.bin", "x".repeat(1024));
    for n in 0..4 {
        repo.write(format!("many/deep/{n}"), "mine\n");
    }
    repo.write("few/1", "mine\n").write("few/2", "mine\n").write("few/3", "mine\n");
    repo.write("junk/a", "mine\n").write("sub/junk/b/c", "mine\n").write("node_modules/d", "mine\n");
    repo.write("a.tmp", "mine\n")
        .write("sub/b.tmp", "mine\n")
        .write("private/x/y", "mine\n")
        .write("private/z", "mine\n");
    repo
}

const SKIPPED: [&str; 8] =
    ["large.bin", "many/deep", "junk", "sub/junk", "node_modules", "a.tmp", "sub/b.tmp", "private/x"];

#[track_caller]
fn warnings(output: &Output, about: &str) -> Vec<String> {
    output.err().lines().filter(|line| line.contains(about)).map(str::to_owned).collect()
}

#[test]
fn what_names_nothing_is_refused_before_the_agent_starts() {
    let repo = Sandbox::new();
    for (key, value, wanted) in [
        ("skipDir", "out/*", "a directory's name"),
        ("skipDir", "a/b", "a directory's name"),
        ("skipDir", "junk-?", "a directory's name"),
        ("include", "[x", "unclosed character class"),
        ("include", "[z-a].key", "invalid range"),
        ("exclude", "[x", "unclosed character class"),
    ] {
        repo.git(["config", &format!("oxundo.{key}"), value]);
        let refused = repo.oxundo(["run", "--", "touch", "started"]);
        assert_eq!(refused.code, 125, "{key}={value}: {refused:?}");
        assert!(refused.err().contains(&format!("oxundo.{key} is '{value}'")), "{refused:?}");
        assert!(refused.err().contains(wanted), "{refused:?}");
        repo.assert_absent("started", "no agent was started");
        repo.git(["config", "--unset-all", &format!("oxundo.{key}")]);
    }
    // What git's ignore files and names of directories have.
    for (key, value) in [("skipDir", "junk/ [slug] {a}"), ("include", "{x [!a]*.key \\#x")] {
        repo.git(["config", &format!("oxundo.{key}"), value]);
    }
    repo.write("junk/mine", "mine\n").write("[slug]/mine", "mine\n");
    let ran = repo.turn(Mode::Commit, "echo 1 >one");
    for skipped in ["junk", "[slug]"] {
        assert!(ran.err().contains(skipped), "{ran:?}");
    }
}

#[test]
fn what_is_skipped_is_said_once_before_the_agent_starts() {
    in_both_modes(|mode| {
        let repo = beyond_every_limit();
        let output = repo.turn(mode, "echo agent >&2; echo two >README.txt");
        let lines: Vec<_> = output.err().lines().map(str::to_owned).collect();
        assert_eq!(warnings(&output, "not covered by undo").len(), 1, "one line\n{output:?}");
        assert!(lines[0].contains("not covered by undo"), "before the agent\n{output:?}");
        assert!(lines[0].contains("5 more"), "three are named, the others counted\n{output:?}");
        assert!(warnings(&repo.turn(mode, "echo 3 >README.txt"), "not covered").is_empty(), "and not again");
        repo.write("large.bin", "y".repeat(2000));
        assert!(warnings(&repo.turn(mode, "echo 4 >README.txt"), "not covered").is_empty(), "not for a change either");
        repo.write("other.tmp", "mine\n");
        assert!(
            warnings(&repo.turn(mode, "echo 5 >README.txt"), "not covered")[0].contains("other.tmp"),
            "what is new is said"
        );
        let (_, status) = repo.json(["status"]);
        let named: Vec<_> =
            status["not_covered"].as_array().expect("a list").iter().map(|skip| skip["path"].clone()).collect();
        assert!(SKIPPED.iter().all(|path| named.contains(&(*path).into())), "status names them all: {status}");
    });
}

#[test]
fn what_is_within_the_limits_is_captured() {
    in_both_modes(|mode| {
        let repo = beyond_every_limit();
        repo.there_and_back(mode, "rm -r few within.bin private/z; echo agent >README.txt");
    });
}

#[test]
fn what_is_skipped_is_never_deleted_and_undo_says_what_the_turn_did_to_it() {
    in_both_modes(|mode| {
        for (name, script, unharmed) in [
            (
                "changed",
                "for f in large.bin many/deep/2 junk/a sub/junk/b/c node_modules/d a.tmp sub/b.tmp private/x/y; do echo agent >$f; done",
                "",
            ),
            (
                "added to",
                "for d in many/deep junk sub/junk node_modules private/x; do echo agent >$d/new; done",
                "large.bin a.tmp sub/b.tmp",
            ),
            ("deleted", "rm -r large.bin many junk sub/junk node_modules a.tmp sub/b.tmp private/x", ""),
        ] {
            let repo = beyond_every_limit();
            repo.git(["config", "--add", "oxundo.skipDir", "node_modules"]);
            repo.turn(mode, &format!("{script}; echo two >README.txt"));
            let after = repo.state();
            for op in ["undo", "redo", "undo"] {
                let output = repo.oxundo([op]);
                output.success();
                for path in SKIPPED.iter().filter(|path| !unharmed.contains(*path)) {
                    output.warns(&format!("'{path}'"));
                }
            }
            repo.assert_file("README.txt", "readme\n", "the rest is undone");
            let skipped = |fact: &str| {
                fact.strip_prefix("on disk ").is_some_and(|at| SKIPPED.iter().any(|path| at.starts_with(path)))
            };
            repo.state()
                .only(skipped)
                .assert_is(&after.only(skipped), &format!("{name}: it stays as the turn left it"));
        }
    });
}

/// What tells one file or directory from another, however it is named.
fn inode(repo: &Sandbox, path: &str) -> u64 {
    repo.path(path).symlink_metadata().expect("it is there").ino()
}

#[test]
fn what_a_turn_makes_beyond_the_limits_is_moved_and_not_copied() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        let before = repo.state();
        let files = if crate::form::is_thorough() { 40_000 } else { 1_000 };
        let script = format!(
            "truncate -s 5G huge.bin; mkdir -p node_modules/pkg sub; i=0; while [ $i -lt {files} ]; do : >node_modules/pkg/$i; i=$((i+1)); done; truncate -s 11M sub/large; echo two >README.txt"
        );
        let output = repo.turn(mode, &script);
        if mode == Mode::Commit {
            let said = warnings(&output, "not committed");
            assert_eq!(said.len(), 1, "one line\n{output:?}");
            assert!(["huge.bin", "node_modules", "sub/large"].iter().all(|path| said[0].contains(path)), "{said:?}");
            assert_eq!(repo.git(["ls-files"]), "README.txt", "and they are not");
        }
        let inodes = |at: &[&str]| at.iter().map(|path| inode(&repo, path)).collect::<Vec<_>>();
        let made = ["huge.bin", "node_modules", "sub/large"];
        let (was, status) = (inodes(&made), repo.git(["status", "--porcelain"]));
        for _ in 0..2 {
            repo.undo();
            repo.state().assert_is(&before, "what the turn made is gone");
            repo.redo();
            assert_eq!(inodes(&made), was, "the very files are back: they were renamed");
            assert_eq!(repo.git(["status", "--porcelain"]), status, "git sees what it saw");
            assert_eq!(std::fs::read_dir(repo.path("node_modules/pkg")).expect("it is there").count(), files);
        }
    });
}

#[test]
fn what_the_user_does_to_it_after_the_turn_is_kept() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.git(["config", "oxundo.maxFileSize", "1k"]);
        repo.turn(
            mode,
            "truncate -s 2k large.bin; mkdir node_modules; echo agent >node_modules/a; echo two >README.txt",
        );
        repo.write("large.bin", "mine".repeat(1000));
        repo.refuses(&["undo"], "conflict");
        repo.write("large.bin", "").write("node_modules/mine", "mine\n");
        std::fs::remove_file(repo.path("large.bin")).expect("delete it");
        repo.undo();
        repo.assert_absent("node_modules", "it is moved aside");
        repo.assert_file("README.txt", "readme\n", "the rest is undone");
        repo.redo();
        repo.assert_file("node_modules/mine", "mine\n", "what the user put into it is not lost");
    });
}

#[test]
fn something_of_the_users_in_its_place_is_not_overwritten() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.turn(mode, "mkdir node_modules; echo agent >node_modules/a; echo two >README.txt");
        repo.undo();
        repo.write("node_modules/mine", "mine\n");
        repo.refuses(&["redo"], "conflict");
    });
}

#[test]
fn the_auto_commit_takes_nothing_beyond_the_limits() {
    let repo = beyond_every_limit();
    let script = "mkdir -p junk2 junk/n; truncate -s 1025 new.bin; echo agent >new.tmp; echo agent >junk/n/f; for i in 1 2 3 4 5; do mkdir -p made; echo $i >made/$i; done";
    let output = repo.agent(script);
    let said = warnings(&output, "not committed");
    assert_eq!(said.len(), 1, "one line\n{output:?}");
    assert!(said[0].contains("new.bin") && said[0].contains("new.tmp"), "{said:?}");
    assert!(!said[0].contains("large.bin") && !said[0].contains("junk"), "what was there before is not news: {said:?}");
    let committed = repo.git(["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(committed, "made/1\nmade/2\nmade/3\nmade/4\nmade/5", "a directory that the turn made has no limit");
}

#[test]
fn a_large_file_is_captured_when_it_is_tracked() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.sh("seq 2000000 >large.txt; git add . && git commit -qm large");
        repo.sh("echo mine >>large.txt");
        repo.there_and_back(mode, "seq 1999999 >large.txt");
    });
}

/// Untracked content of which a part is over the budget.
fn over_budget(key: &str, value: &str) -> Sandbox {
    let repo = Sandbox::new();
    repo.git(["config", key, value]);
    for n in 0..4 {
        repo.write(format!("data/big/{n}"), format!("{n}\n").repeat(100_000));
    }
    repo.write("data/small", "small\n").write("other/a", "a\n").write("other/b", "b\n");
    repo
}

#[test]
fn the_largest_directories_are_left_out_where_there_is_too_much_to_read() {
    for (key, value) in [("oxundo.maxCapture", "100k"), ("oxundo.maxCaptureFiles", "4")] {
        in_both_modes(|mode| {
            let repo = over_budget(key, value);
            let before = repo.files();
            let output = repo.turn(mode, "echo agent >>data/small; echo agent >>data/big/1; echo 2 >README.txt");
            let said = warnings(&output, "not covered by undo");
            assert!(said.len() == 1 && said[0].contains("data/big (") && !said[0].contains("other"), "{output:?}");
            assert!(repo.git(["count-objects", "-v"]).contains("size: "), "git counts");
            let size: u64 = repo.git(["count-objects"]).split(' ').nth(2).and_then(|n| n.parse().ok()).expect("a size");
            assert!(size < 400, "what is left out is not read: {size} KiB");
            repo.undo();
            repo.assert_file("data/small", "small\n", "the rest is covered");
            assert!(repo.read("data/big/1").ends_with(b"agent\n"), "what is left out is left alone");
            repo.sh("sed -i '$d' data/big/1");
            repo.files().assert_is(&before, "and never deleted");
        });
    }
}

#[test]
fn the_lines_that_ignore_what_is_over_the_budget_or_cover_it_do_so() {
    for (key, value) in [("oxundo.maxCapture", "100k"), ("oxundo.maxCaptureFiles", "4")] {
        for which in [0, 1] {
            let repo = over_budget(key, value);
            let output = repo.agent("echo 2 >README.txt");
            let said = warnings(&output, "to ignore it for good: ");
            let (ignore, cover) = said[0]
                .split_once("for good: ")
                .and_then(|(_, lines)| lines.split_once("; to cover it: "))
                .expect("there are two ways");
            repo.sh([ignore, cover][which]);
            let output = repo.agent("echo 3 >README.txt; echo agent >>data/big/1");
            assert!(warnings(&output, "not covered").is_empty(), "{output:?}");
            repo.undo();
            assert_eq!(repo.read("data/big/1").ends_with(b"agent\n"), which == 0, "{}", [ignore, cover][which]);
        }
    }
}

#[test]
fn what_a_turn_makes_over_the_budget_is_moved_aside_and_back() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.git(["config", "oxundo.maxCapture", "100k"]);
        repo.write("old/mine", "mine\n");
        let make =
            "mkdir -p new/deep; for n in 1 2 3; do head -c 90000 /dev/zero >new/deep/$n; done; echo n >new/small";
        let script = format!("{make}; head -c 95000 /dev/zero >old/made; echo 2 >README.txt");
        repo.there_and_back(mode, &script);
        repo.assert_file("old/mine", "mine\n", "what was there is left");
    });
}

#[test]
fn in_a_repository_at_home_only_tracked_files_are_covered() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        let root = repo.root().to_owned();
        let repo = repo.with_variable("HOME", root);
        repo.write("Downloads/film", "mine\n").write("notes", "nobody knows\n").write("sub/tracked", "one\n");
        repo.git(["add", "sub"]);
        repo.git(["commit", "-qm", "sub"]);
        let before = repo.files();
        let output = repo.turn(mode, "echo 2 >README.txt; echo 2 >sub/tracked; echo 2 >sub/made; git add Downloads");
        assert_eq!(warnings(&output, "only tracked files are covered").len(), 1, "{output:?}");
        let notes = repo.git(["hash-object", "notes"]);
        assert!(repo.try_git(["cat-file", "-e", notes.trim()]).code != 0, "it is not captured");
        let output = repo.turn(mode, "echo 3 >README.txt");
        assert!(warnings(&output, "only tracked").is_empty(), "it is said once\n{output:?}");
        repo.oxundo(["status"]).says("only tracked files are covered");
        repo.undo();
        repo.undo();
        repo.assert_file("Downloads/film", "mine\n", "what was there, whatever git was told of it");
        repo.sh("rm sub/made");
        repo.files().assert_is(&before, "undo");
    });
}
