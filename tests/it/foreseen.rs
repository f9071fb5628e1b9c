//! What stands in the way and can be seen before: it is dealt with, or nothing is changed; and what is left when a roll-back
//! cannot be completed.

use crate::kill_points::{killed_at, points_of};
use crate::sandbox::{Mode, Output, Sandbox, announce, check_all, in_both_modes};
use std::os::unix::fs::PermissionsExt;
use std::panic::AssertUnwindSafe;

/// Nothing where no process can be traced, said aloud.
fn can_trace() -> bool {
    let traced = points_of(&Sandbox::new(), &["status"]).is_ok();
    if !traced {
        announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
    }
    traced
}

fn filled() -> Sandbox {
    let repo = Sandbox::new();
    repo.write("src/lib.rs", "one\n").write("src/deep/x", "x\n").write("b.txt", "b\n").write("mine", "mine\n");
    repo.sh("git add src b.txt; git commit -qm files");
    repo
}

#[test]
fn what_a_turn_closed_to_its_owner_is_opened_for_undo_and_closed_again_by_redo() {
    let cases = [
        "echo new >n.txt; echo more >>README.txt; echo more >>b.txt; chmod 000 b.txt",
        "echo new >n.txt; chmod 000 n.txt; chmod 200 b.txt",
        "echo more >>src/lib.rs; echo n >src/n; echo 2 >README.txt; chmod 311 src",
        "echo more >>src/lib.rs; chmod 000 src; echo 2 >README.txt",
        "chmod 000 src",
        "echo more >>src/lib.rs; echo n >src/n; chmod 555 src",
        "echo more >>src/deep/x; chmod 000 src/deep src",
        "mkdir -p d/e; echo x >d/e/x; chmod 000 d/e/x d/e d; echo 2 >README.txt",
        "mkdir d; echo x >d/x; chmod 000 d; git mv b.txt c.txt; chmod 000 c.txt",
    ];
    for mode in Mode::tried() {
        check_all(cases.map(|case| (case.to_owned(), case)), |case| {
            let repo = filled().unprivileged();
            // The test itself, where it is the superuser, sees all.
            let before = repo.files();
            repo.turn(mode, case);
            let after = repo.files();
            for _ in 0..2 {
                repo.oxundo(["status"]).success();
                repo.oxundo(["undo", "--dry-run"]).success();
                repo.files().assert_is(&after, "a look changes nothing");
                repo.undo();
                repo.files().assert_is(&before, "undo");
                repo.redo();
                repo.files().assert_is(&after, "redo");
            }
            // What is undone over it stays as closed as it is.
            repo.turn(mode, "echo 3 >>README.txt");
            repo.undo();
            repo.files().assert_is(&after, "undo of another turn");
            repo.undo();
            repo.files().assert_is(&before, "undo of both");
        });
    }
}

#[test]
fn what_the_user_closed_is_a_refusal_that_says_how_to_open_it() {
    in_both_modes(|mode| {
        let repo = filled().unprivileged();
        repo.turn(mode, "echo more >>src/lib.rs; echo 2 >README.txt");
        let after = repo.files();
        repo.chmod("src", 0o000);
        if std::fs::read_dir(repo.path("src")).is_ok() && !rustix::process::geteuid().is_root() {
            return announce("SKIPPED, NOTHING IS PROVED: modes do not count here");
        }
        repo.refuses(&["undo"], "conflict");
        repo.oxundo(["undo"]).warns("chmod u+rwx src");
        repo.oxundo(["status"]).success();
        repo.sh("chmod u+rwx src; chmod go+rx src");
        repo.files().assert_is(&after, "nothing is changed");
        repo.undo();
        repo.assert_file("src/lib.rs", "one\n", "then it is undone");
    });
}

#[test]
fn a_killed_command_is_finished_though_it_closed_something() {
    if !can_trace() {
        return;
    }
    let repo = filled();
    repo.agent("mkdir d; echo x >d/x; echo more >>src/lib.rs; chmod 000 d/x d; chmod 300 src; echo 2 >README.txt");
    let repo = repo.unprivileged();
    let after = repo.files();
    for call in [["renameat", "oxundo-tmp"], ["unlink", "index.lock"], ["rename", "refs/heads/main"]] {
        let killed = killed_at(&repo, &["undo"], call);
        let said = killed.oxundo(["status"]);
        said.success();
        said.warns("an interrupted operation: ");
        if killed.log().iter().any(|turn| turn["state"] == "undone") {
            killed.redo();
        }
        killed.files().assert_is(&after, &format!("{call:?}"));
    }
}

#[test]
fn what_somebody_put_in_the_place_of_a_directory_after_a_crash_is_kept_and_named() {
    if !can_trace() {
        return;
    }
    let repo = Sandbox::new();
    repo.agent("mkdir -p made/deep; echo x >made/deep/f; echo y >>README.txt");
    let after = repo.files();
    for (what, name) in [
        ("echo mine >made", "made"),
        ("ln -s nowhere made", "made"),
        ("ln -s ../outside made", "made"),
        ("mkdir made; echo mine >made/deep", "made/deep"),
    ] {
        let killed = killed_at(&repo, &["undo"], ["rename", "index.oxundo-"]);
        assert!(!killed.exists("made"), "it is gone by then");
        killed.sh("mkdir ../outside");
        killed.sh(what);
        // A link by where it leads, a file by what is in it.
        let told = |path: &str| killed.sh(&format!("readlink '{path}' || cat '{path}'"));
        let theirs = told(name);
        let said = killed.oxundo(["status"]);
        said.success();
        said.warns(&format!("'{name}' was in the place of a directory: kept as '"));
        killed.files().assert_is(&after, &format!("{what}: all is rolled back"));
        assert_eq!(killed.sh("ls -A ../outside"), "", "{what}: no link is followed");
        assert_eq!(killed.git(["for-each-ref", "refs/oxundo/pending"]), "", "{what}: the journal is gone");
        let (_, status) = killed.json(["status"]);
        let kept = status["kept"][0].as_str().expect("it is listed").to_owned();
        assert_eq!(told(&kept), theirs, "{what}: it is the very same");
        killed.oxundo(["doctor"]).says(&kept);
        killed.undo();
        killed.redo();
    }
}

#[test]
fn a_look_works_while_a_journal_cannot_be_dealt_with_and_doctor_says_what_stands_where() {
    if !can_trace() || !rustix::process::geteuid().is_root() {
        return announce("SKIPPED, NOTHING IS PROVED: only the superuser can give a file to another");
    }
    let repo = filled();
    repo.agent("echo 2 >>README.txt; echo 2 >>b.txt; echo 2 >>src/lib.rs; echo n >n");
    let repo = repo.unprivileged();
    let after = repo.files();
    let killed = killed_at(&repo, &["undo"], ["renameat", "oxundo-tmp"]);
    std::os::unix::fs::chown(killed.path("b.txt"), Some(0), Some(0)).expect("give it away");
    killed.chmod("b.txt", 0o600);
    for args in [&["status"][..], &["log"], &["show", "1"], &["diff", "1"], &["doctor"]] {
        let output = killed.oxundo(args);
        output.success();
        assert!(!killed.git(["for-each-ref", "refs/oxundo/pending"]).is_empty(), "{args:?}: it is still there");
    }
    killed.oxundo(["status"]).warns("an interrupted operation is still to be finished or rolled back");
    let said = killed.oxundo(["doctor"]);
    for line in ["'b.txt': cannot be read", "'src/lib.rs': as before", "'n': "] {
        said.says(line);
    }
    let output = killed.oxundo(["undo"]);
    output.exits(1);
    output.warns("b.txt");
    std::os::unix::fs::chown(killed.path("b.txt"), Some(65534), Some(65534)).expect("give it back");
    killed.chmod("b.txt", 0o644);
    killed.oxundo(["status"]).warns("rolled back an interrupted operation");
    killed.files().assert_is(&after, "then all is as it was");
}

/// A turn that changes, makes and deletes.
const TURN: &str =
    "echo more >>b.txt; echo more >>src/lib.rs; rm src/deep/x; echo n >src/n; head -c 12000000 /dev/zero >big";

#[test]
fn what_nobody_may_change_is_seen_before_anything_is_changed() {
    for (path, flag, word) in [
        ("b.txt", 'i', "immutable"),
        ("b.txt", 'a', "append-only"),
        ("src", 'i', "immutable"),
        ("src/deep", 'a', "append-only"),
        ("src/n", 'i', "immutable"),
        ("big", 'i', "immutable"),
        (".", 'i', "immutable"),
    ] {
        let repo = filled();
        let before = repo.state();
        repo.turn(Mode::Commit, TURN);
        let set = |sign: char| Output::of(&mut repo.shell(&format!("chattr {sign}{flag} {path}")));
        if set('+').code != 0 {
            return announce("SKIPPED, NOTHING IS PROVED: no file can be made immutable here");
        }
        let refused = std::panic::catch_unwind(AssertUnwindSafe(|| repo.refuses(&["undo"], "io")));
        set('-').success();
        let refused = refused.unwrap_or_else(|_| panic!("{path}, {flag}"));
        let words = |key: &str| refused[key].to_string();
        assert!(words("message").contains(&format!("'{path}' is {word}")), "{refused}");
        assert!(words("hints").contains(&format!("chattr -{flag} {path}")), "{refused}");
        repo.undo();
        repo.state().assert_is(&before, "then it is undone");
    }
}

#[test]
fn what_is_anothers_is_seen_before_anything_is_changed() {
    if !rustix::process::geteuid().is_root() {
        return announce("SKIPPED, NOTHING IS PROVED: only the superuser can give a file away");
    }
    for (path, script, said) in [
        ("src/lib.rs", "chmod 1777 src; chmod 666 src/lib.rs; chown root src src/lib.rs", "only they may remove"),
        ("src", "chown root src; chmod 755 src", "nothing in it may be changed"),
        ("b.txt", "chown root b.txt", "who alone can change its mode"),
        ("b.txt", "chown root b.txt", "is another user's now, and cannot be read"),
        ("nm", "chown root nm", "is another user's directory, and only who may write to it can move it"),
    ] {
        let repo = filled().unprivileged();
        let turn = match said {
            "who alone can change its mode" => "echo 2 >README.txt; chmod 755 b.txt",
            _ if path == "b.txt" => "echo 2 >README.txt; chmod 600 b.txt",
            _ if path == "nm" => "mkdir -p node_modules/a; mv node_modules nm; chmod 755 nm; echo 2 >README.txt",
            _ => TURN,
        };
        repo.git(["config", "--add", "oxundo.skipDir", "nm"]);
        repo.turn(Mode::Ghost, turn);
        let as_root = |script: &str| {
            let done = std::process::Command::new("sh").args(["-ec", script]).current_dir(repo.root()).status();
            assert!(done.is_ok_and(|done| done.success()), "{script}");
        };
        let mode = repo.path("src").metadata().expect("it is there").permissions().mode();
        as_root(script);
        repo.oxundo(["status"]).says(said);
        let refused = repo.refuses(&["undo"], "io");
        assert!(refused["message"].to_string().contains(said), "{refused}");
        assert_eq!(repo.git(["for-each-ref", "refs/oxundo/pending"]), "", "nothing is half done");
        as_root(&format!(
            "chown -R 65534:65534 src b.txt; chmod {:o} src; chmod 644 b.txt; [ ! -e nm ] || chown 65534 nm",
            mode & 0o7777
        ));
        repo.undo();
    }
}

#[test]
fn a_directory_that_its_owner_may_not_write_to_is_moved_aside_and_back_all_the_same() {
    for script in [
        "mkdir -p node_modules/a; echo 1 >node_modules/a/x; chmod 500 node_modules/a node_modules; echo 2 >README.txt",
        "chmod 700 venv; mkdir v; mv venv v/nm; chmod 500 v/nm; echo 2 >README.txt",
        "chmod 755 out; mv out out2; chmod 555 out2; echo 2 >README.txt",
    ] {
        let repo = filled().unprivileged();
        repo.sh("echo out >.gitignore; git add .gitignore; git commit -qm ignore; for d in out venv; do mkdir $d; echo 1 >$d/x; chmod 500 $d; done");
        repo.there_and_back(Mode::Ghost, script);
    }
}

/// Files on which others are mounted, as in containers: only their mode may change.
#[test]
fn what_is_mounted_is_seen_before_anything_is_changed() {
    let repo = filled();
    repo.write("other", "mounted\n").write("one.txt", "one\n");
    let script = "mount --bind other b.txt || exit 77
        look() { git status --porcelain=v2; cat .git/HEAD b.txt one.txt; git for-each-ref; }
        \"$OXUNDO\" run --ghost -- sh -c 'chmod 755 b.txt; echo two >one.txt' 2>/dev/null
        \"$OXUNDO\" undo >/dev/null 2>&1; stat -c %a b.txt
        \"$OXUNDO\" run --ghost -- sh -c 'echo two >>b.txt; echo two >one.txt' 2>/dev/null; before=$(look)
        for args in --dry-run -q; do \"$OXUNDO\" undo $args 2>&1 && exit 1; done
        [ \"$before\" = \"$(look)\" ] || echo changed
        \"$OXUNDO\" undo -- . ':(exclude)b.txt' >/dev/null 2>&1; cat b.txt one.txt; umount b.txt; cat b.txt";
    let mut shell = repo.shell("exec unshare -m sh -ec \"$SCRIPT\"");
    let output = Output::of(shell.env("SCRIPT", script).env("OXUNDO", env!("CARGO_BIN_EXE_oxundo")));
    if output.code == 77 || output.err().contains("unshare") {
        return announce("SKIPPED, NOTHING IS PROVED: no file can be mounted here");
    }
    output.success();
    let said = output.out();
    let lines = said.lines().filter(|line| !line.starts_with("hint: run 'umount b.txt' at the top of the worktree, "));
    let error = "error: something is mounted at 'b.txt': nothing can take its place";
    assert_eq!(lines.collect::<Vec<_>>(), ["644", error, error, "mounted", "two", "one", "b"], "{output:?}");
}

#[test]
fn a_disk_that_is_too_full_is_seen_before_anything_is_changed() {
    let repo = Sandbox::new();
    // The git directory is elsewhere: there is room for the records.
    let script = "mkdir ../home/small; mount -t tmpfs -o size=2m small ../home/small || exit 77
        git init -q --separate-git-dir ../home/git ../home/small/top; cd ../home/small/top; git config user.name a; git config user.email a@b
        head -c 900000 /dev/urandom >big; echo a >a; git add -A; git commit -qm big
        \"$OXUNDO\" run --ghost -- sh -c ': >big; echo b >a' 2>/dev/null
        head -c 1900000 /dev/zero >../fill
        for args in --dry-run -q; do \"$OXUNDO\" undo $args 2>&1 && exit 1; cat a; wc -c <big; done
        git for-each-ref refs/oxundo/pending; rm ../fill; \"$OXUNDO\" undo -q; cat a; wc -c <big";
    let mut shell = repo.shell("exec unshare -m sh -ec \"$SCRIPT\"");
    let output = Output::of(shell.env("SCRIPT", script).env("OXUNDO", env!("CARGO_BIN_EXE_oxundo")));
    if output.code == 77 || output.err().contains("unshare") {
        return announce("SKIPPED, NOTHING IS PROVED: no file system can be mounted here");
    }
    output.success();
    let said = output.out();
    let is_told = |line: &&str| !["hint: ", "Undid", "Files: "].iter().any(|word| line.starts_with(word));
    let lines: Vec<_> = said.lines().filter(is_told).collect();
    let [first, "b", "0", second, "b", "0", "a", "900000"] = lines[..] else { panic!("{output:?}") };
    for error in [first, second] {
        assert!(error.starts_with("error: there is not enough space: "), "{error}");
    }
}
