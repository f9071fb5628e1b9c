//! What undo moved out of the worktree, since it is beyond the limits: it is never lost, and comes back.

use crate::sandbox::{Mode, Output, Sandbox, announce, in_both_modes};
use crate::steps::tick;

/// Makes a large file and a directory that is not captured.
const MAKE: &str = "head -c 11000000 /dev/zero >big; mkdir -p node_modules/a; echo code >node_modules/a/x; \
                    chmod 600 node_modules/a/x; ln -s a node_modules/link; echo 2 >README.txt";

#[test]
fn a_worktree_that_is_removed_takes_nothing_with_it_that_was_moved_aside() {
    let main = Sandbox::new();
    main.write(".gitignore", "");
    main.sh("git add .gitignore; git commit -qm ignore");
    let linked = main.linked("other");
    let before = linked.files();
    linked.turn(Mode::Ghost, MAKE);
    let after = linked.files();
    linked.undo();
    linked.files().assert_is(&before, "undo");
    main.git([std::ffi::OsStr::new("worktree"), "remove".as_ref(), linked.root().as_os_str()]);
    main.git([
        std::ffi::OsStr::new("worktree"),
        "add".as_ref(),
        "-q".as_ref(),
        linked.root().as_os_str(),
        "other".as_ref(),
    ]);
    linked.redo();
    linked.files().assert_is(&after, "redo");
}

#[test]
fn redo_without_what_was_moved_aside_is_refused_and_names_it() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.turn(mode, MAKE);
        repo.undo();
        repo.sh("rm -r .git/oxundo/aside");
        let before = repo.state();
        let refusal = repo.refuses(&["redo"], "conflict");
        assert_eq!(refusal["paths"], serde_json::json!(["big", "node_modules"]), "{refusal}");
        repo.state().assert_is(&before, "nothing is changed");
        repo.oxundo(["redo", "--edits=overwrite"]).success();
        repo.assert_file("README.txt", "2\n", "the rest comes back where that is wanted");
    });
}

#[test]
fn what_the_user_deleted_before_undo_is_not_missed_by_redo() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.turn(mode, MAKE);
        repo.sh("rm big");
        let after = repo.files();
        for _ in 0..2 {
            repo.undo();
            repo.redo();
            repo.files().assert_is(&after, "redo");
        }
    });
}

#[test]
fn what_other_commands_move_aside_comes_back_with_them() {
    in_both_modes(|mode| {
        for (args, back) in [
            (&["undo", "--only", "1"][..], &["undo"][..]),
            (&["undo", "--revert"], &["redo"]),
            (&["undo", "--", "big", "node_modules"], &["redo"]),
        ] {
            let repo = Sandbox::new();
            repo.turn(mode, MAKE);
            let after = repo.files();
            if repo.oxundo(args).code != 0 {
                // A ghost turn made nothing that could be taken out by a commit.
                continue;
            }
            repo.assert_absent("big", "it is moved aside");
            repo.oxundo(back).success();
            repo.files().assert_is(&after, &format!("{args:?}, {back:?}"));
        }
    });
}

#[test]
fn what_was_not_captured_and_overwritten_by_a_move_is_named_where_the_move_is_undone() {
    let scripts = [("mv one two", true), ("mv one t; mv two one; mv t two", false)];
    // They are of one size; made at once they are of one time too.
    let times = ["touch one; touch -d '1 hour ago' two", "touch -d @1700000000 one two"];
    for ((script, is_lost), time) in scripts.into_iter().flat_map(|script| times.map(|time| (script, time))) {
        let repo = Sandbox::new();
        repo.git(["config", "oxundo.maxFileSize", "2k"]);
        for name in ["one", "two"] {
            repo.write(name, name.repeat(1000));
        }
        repo.sh(time);
        repo.agent(&format!("{script}; echo more >>README.txt"));
        for args in [&["undo", "--dry-run"][..], &["undo"], &["redo"], &["undo", "--only", "1"]] {
            let output = repo.oxundo(args);
            output.success();
            let says =
                output.err().contains("'two' does not come back: it was not captured, and turn 1 moved another there");
            assert_eq!(says, is_lost && args[0] == "undo", "{args:?}: {output:?}");
        }
        repo.assert_file("one", "one".repeat(1000), "what was moved is back");
    }
}

#[test]
fn restore_brings_back_what_undo_moved_aside() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.turn(mode, MAKE);
        let after = repo.files();
        repo.undo();
        let before = repo.files();
        repo.oxundo(["restore", "1"]).success();
        repo.files().assert_is(&after, "restore");
        repo.undo();
        repo.files().assert_is(&before, "undo of it");
    });
}

#[test]
fn restore_of_what_is_aside_is_asked_where_something_else_has_its_place_and_brings_what_is_ignored() {
    let repo = Sandbox::new();
    repo.sh(
        "git config oxundo.maxFileSize 100; echo '*.log' >.gitignore; git add .; git commit -qm rules; echo old >1.log",
    );
    repo.turn(Mode::Ghost, "mkdir -p node_modules/q; echo its >node_modules/q/z; seq 100 >big; mv 1.log 2.log; echo its >1.log; echo its >a");
    repo.undo();
    repo.sh("mkdir node_modules; echo mine >node_modules/mine; echo mine >big; mv 1.log ../home");
    let before = repo.state();
    for path in ["big", "node_modules"] {
        let error = repo.refuses(&["restore", "1", "--", path], "conflict");
        assert_eq!(error["paths"], serde_json::json!([path]));
        repo.state().assert_is(&before, "nothing is changed");
    }
    repo.oxundo(["restore", "1", "--", "1.log"]).success();
    repo.assert_file("1.log", "its\n", "nothing is in its way");
    repo.undo();
    repo.state().assert_is(&before, "undo");
    let all = repo.oxundo(["restore", "1"]);
    all.success();
    for path in ["big", "node_modules"] {
        all.warns(&format!("'{path}' stays as it is: what was there is aside"));
    }
    repo.undo();
    repo.sh("rm -r node_modules big");
    for path in ["big", "node_modules"] {
        repo.oxundo(["restore", "1", "--", path]).success();
    }
    repo.assert_file("node_modules/q/z", "its\n", "it is back");
}

#[test]
fn no_line_has_git_delete_a_file_that_it_does_not_have() {
    let repo = Sandbox::new();
    repo.sh("git config oxundo.maxFileSize 100; seq 100 >big");
    repo.turn(Mode::Commit, "mv big big2; echo its >a");
    repo.sh("rm big2");
    let error = repo.refuses(&["undo"], "conflict");
    let hints = error["hints"].to_string();
    assert!(!hints.contains("git rm") && hints.contains("--edits=overwrite"), "{hints}");
    repo.oxundo(["undo", "--edits=overwrite"]).success();
    assert!(!repo.exists("a"), "it is undone");
}

/// With the worktree on another file system than its git directory.
fn across(script: &str) -> Option<(Sandbox, Output)> {
    let repo = Sandbox::new();
    let mut command = repo.shell("exec unshare -Urm sh -ec \"$1\"");
    let whole = format!(
        "mkdir ../home/other; mount -t tmpfs none ../home/other; mv .git ../home/git; cp -a . ../home/other/tree
         cd ../home/other/tree; export GIT_DIR=$(realpath ../../git); git config core.worktree $PWD
         look() {{ find . -printf '%p %y %m %l\\n' | sort; find . -type f -print0 | sort -z | xargs -0 cksum; }}
         {script}"
    );
    let output = Output::of(command.args(["sh", &whole]));
    if output.err().contains("unshare") || output.err().contains("mount:") {
        announce(&format!("SKIPPED: nothing can be mounted here ({})", output.err()));
        return None;
    }
    Some((repo, output))
}

#[test]
fn on_another_file_system_it_is_copied_compared_and_only_then_removed() {
    let script = format!(
        "look >../../home-before
         oxundo run --ghost -- sh -ec '{MAKE}; touch -d 2001-01-01 node_modules/a/x
             touch -h -d 2002-02-02 node_modules/link; mkfifo node_modules/fifo; chmod 640 node_modules/fifo'
         look >../../home-after
         for n in 1 2; do
             # A link that is another one is for the next undo something that somebody has changed.
             oxundo undo 2>../../said; if grep 'has changed since' ../../said; then exit 1; fi; look | diff ../../home-before -
             test -f ../../git/oxundo/aside/1/0; test -d ../../git/oxundo/aside/1/1
             oxundo redo; look | diff ../../home-after -; test ! -e ../../git/oxundo/aside/1/0
             test \"$(stat -c %Y node_modules/a/x)\" = \"$(date -d 2001-01-01 +%s)\"
             test \"$(stat -c %Y node_modules/link)\" = \"$(date -d 2002-02-02 +%s)\"
         done
         find ../.. -name '.oxundo-tmp*' -o -name '*.half' -o -name '*.gone' | grep . && exit 1 || :"
    );
    if let Some((_repo, output)) = across(&script) {
        output.success();
    }
}

#[test]
fn on_another_file_system_what_somebody_is_at_work_in_is_not_taken_away() {
    let script = format!(
        "oxundo run --ghost -- sh -ec '{MAKE}'
         refused() {{
             look >../../home-now
             if oxundo undo 2>../../said; then exit 1; fi
             grep -q 'open in another program' ../../said; look | diff ../../home-now -; test ! -e ../../git/oxundo/aside/1/0
         }}
         (cd node_modules/a; : >../../../../there; exec sleep 60 >/dev/null 2>&1) & there=$!
         until [ -e ../../there ]; do sleep 0.01; done
         refused; kill $there; wait $there || :
         exec 5>>big; refused; echo MINE >&5; tail -n1 big | grep -q MINE
         if find ../.. -name '.oxundo-tmp*' -o -name '*.half' -o -name '*.gone' | grep .; then exit 1; fi"
    );
    if let Some((_repo, output)) = across(&script) {
        output.success();
    }
}

#[test]
fn on_another_file_system_who_comes_when_it_is_copied_keeps_what_they_write() {
    // Whoever is in the directory waits until the copy has its name; each flush takes a while, as on a slow disk.
    let script = format!(
        "strace -V >/dev/null || exit 77
         oxundo run --ghost -- sh -ec '{MAKE}'
         (until ls ../../git/oxundo/aside/*/1 >../../seen 2>/dev/null; do :; done
          cd /proc/$(cat ../../pid)/cwd; d=$(ls -d .oxundo-tmp*aside-1) && cd $d/a && echo NEW >new; echo MORE >>x; exec sleep 60 >/dev/null 2>&1) & there=$!
         (echo $(exec sh -c 'echo $PPID') >../../pid
          exec strace -f -o ../../trace -e trace=fsync -e inject=fsync:delay_enter=100000 oxundo undo 2>../../said) && exit 1
         kill $there; wait $there || :
         test -s ../../seen; grep -q 'open in another program' ../../said
         grep -qx NEW node_modules/a/new; grep -qx MORE node_modules/a/x"
    );
    if let Some((_repo, output)) = across(&script) {
        if output.code == 77 {
            return announce("SKIPPED: there is no strace here, or it may trace nothing");
        }
        output.success();
    }
}

#[test]
fn what_is_mounted_in_what_would_be_moved_is_never_deleted() {
    for same in [false, true] {
        let script = format!(
            "{}
             oxundo run --ghost -- sh -ec '{MAKE}; mkdir \"node_modules/a m\"'
             mkdir ../outside; echo TOKEN >../outside/data; mount --bind ../outside 'node_modules/a m'
             if oxundo undo 2>../../said; then exit 1; fi
             grep -qF \"something is mounted at 'node_modules/a m'\" ../../said; grep -qx TOKEN ../outside/data
             umount 'node_modules/a m'; oxundo undo
             mount --bind ../outside \"$(find \"$GIT_DIR/oxundo/aside\" -name 'a m')\"
             if oxundo uninstall --purge --yes 2>../../said; then exit 1; fi
             grep -q 'something is mounted at' ../../said; grep -qx TOKEN ../outside/data; oxundo redo --dry-run",
            if same { "mv ../../git ..; export GIT_DIR=$(realpath ../git)" } else { ":" }
        );
        if let Some((_repo, output)) = across(&script) {
            output.success();
        }
    }
}

#[test]
fn on_another_file_system_no_half_of_a_copy_stays_where_somebody_has_taken_its_place() {
    let script = "strace -V >/dev/null || exit 77
         echo '*.log' >.gitignore; git add .gitignore; git commit -qm rules; echo one >1.log; sleep 0.01; echo two2 >2.log
         oxundo run --ghost -- sh -ec 'mv 1.log t; mv 2.log 1.log; mv t 2.log; echo its >>README.txt'
         for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
             rm -rf ../again; cp -a . ../again; rm -rf ../../git-again; cp -a ../../git ../../git-again
             (cd ../again; export GIT_DIR=$(realpath ../../git-again); git config core.worktree $PWD
              strace -o ../../trace -e trace=renameat2 -e inject=renameat2:signal=KILL:when=$n oxundo undo || :
              [ -e 1.log ] || echo mine >1.log
              oxundo status
              if find . -name '.oxundo-tmp*' | grep .; then exit 1; fi
              cat 1.log 2.log ../../git-again/oxundo/aside/*/* 2>/dev/null | sort -u >../../all
              grep -qx one ../../all; grep -qx two2 ../../all; cat ../../trace >>../../traces)
         done
         grep -q SIGKILL ../../traces || exit 77";
    if let Some((_repo, output)) = across(script) {
        if output.code == 77 {
            return announce("SKIPPED: there is no strace here, or it may trace nothing");
        }
        output.success();
    }
}

#[test]
fn what_a_turn_moved_and_did_not_make_does_not_expire() {
    // What is copied without its time and then removed is known by its size alone: undo says where it is.
    for (mode, work, is_copied) in [
        (Mode::Commit, "mkdir d; mv data.bin d/data.bin", false),
        (
            Mode::Ghost,
            "cp data.bin new; rm data.bin; cp .env env2; rm .env; cp -r node_modules nm; rm -r node_modules",
            true,
        ),
    ] {
        let repo = Sandbox::new();
        repo.write("data.bin", vec![b'x'; 11_000_000]).write(".gitignore", ".env\n").write(".env", "TOKEN=1234\n");
        repo.sh("git add .gitignore; git commit -qm ignore; mkdir -p node_modules; echo code >node_modules/x");
        // Older than the turn by more than the whole seconds in which its record counts.
        std::thread::sleep(std::time::Duration::from_millis(1100));
        repo.turn(mode, &format!("{work}; echo 2 >README.txt"));
        let said = repo.oxundo(["undo"]);
        said.success();
        if is_copied {
            said.warns(
                "'data.bin' was not captured before turn 1, and 'new' may be a copy of it: 'oxundo restore 1 -- new'",
            );
            said.warns("'oxundo restore 1 -- env2' brings that back");
        }
        for n in 0..52 {
            repo.turn(Mode::Ghost, &format!("echo {n} >README.txt"));
        }
        let output = repo.oxundo(["gc", "--keep", "now"]);
        output.success();
        let found = repo.sh("find . -size +10000k -type f");
        assert_eq!(found.lines().count(), 1, "its only copy is there: {found}");
        if is_copied {
            output.warns("oxundo gc --drop-user");
            repo.prune();
            repo.oxundo(["uninstall", "--purge"]).warns(", 1, and would be deleted");
            repo.oxundo(["restore", "1", "--", "new", "env2"]).success();
            repo.assert_file("env2", "TOKEN=1234\n", "it is there");
            repo.assert_file("new", vec![b'x'; 11_000_000], "this too");
            repo.undo();
            let gone = repo.json(["gc", "--keep", "now", "--drop-user"]).1["expired"].clone();
            assert_eq!(gone[0], 1, "at the user's word: {gone}");
        }
    }
}

#[test]
fn purge_names_what_may_be_the_only_copy_and_deletes_it_only_where_that_is_said() {
    let repo = Sandbox::new();
    repo.oxundo(["init", "claude"]).success();
    repo.turn(Mode::Commit, MAKE);
    repo.undo();
    let before = repo.everything();
    repo.refuses(&["uninstall", "--purge"], "conflict");
    let refused = repo.oxundo(["uninstall", "--purge"]);
    refused.warns("oxundo/aside/1/0");
    repo.everything().assert_is(&before, "nothing is changed");
    repo.oxundo(["uninstall", "--purge", "--dry-run"]).says("oxundo/aside/1/0");
    repo.everything().assert_is(&before, "nor by a dry run");
    repo.oxundo(["uninstall", "--purge", "--yes"]).success();
    repo.assert_absent(".git/oxundo", "all is gone");
}

#[test]
fn purge_asks_before_a_state_goes_that_alone_has_something_of_the_users() {
    let repo = Sandbox::new();
    repo.write("u.txt", "the user's\n");
    repo.turn(Mode::Ghost, "rm u.txt");
    let before = repo.everything();
    repo.refuses(&["uninstall", "--purge"], "conflict");
    repo.oxundo(["uninstall", "--purge"]).warns("may be in 1:before");
    repo.everything().assert_is(&before, "nothing is changed");
    repo.oxundo(["restore", "1:before", "--", "u.txt"]).success();
    repo.oxundo(["run", "--ghost", "--", "sh", "-c", "echo agent >u.txt"]).success();
    repo.write("u.txt", "edited\n");
    repo.oxundo(["undo", "--edits=overwrite"]).success();
    repo.oxundo(["uninstall", "--purge"]).warns("rescue:1");
    repo.oxundo(["uninstall", "--purge", "--yes"]).success();
    repo.assert_absent(".git/oxundo", "all is gone");
}

/// What the user has that is over the limits.
const LARGE: &str =
    "head -c 11000000 /dev/urandom >big.bin; mkdir -p node_modules/a; echo code >node_modules/a/x; echo 1 >note";

fn with_large_files() -> Sandbox {
    let repo = Sandbox::new();
    repo.sh(LARGE);
    repo
}

#[test]
fn what_a_turn_moved_goes_back_to_where_it_was() {
    in_both_modes(|mode| {
        for work in [
            "mv big.bin other.bin",
            "mkdir -p data/in; mv big.bin data/in/; echo 2 >note",
            "mkdir vendor; mv node_modules vendor/",
            "mkdir vendor; mv node_modules vendor/; mv big.bin vendor/node_modules.bin; rm note",
        ] {
            let repo = with_large_files();
            let said = repo.turn(mode, &format!("{work}; echo 2 >README.txt"));
            assert!(!said.err().contains("does not cover"), "{said:?}");
            repo.undo();
            let inode = |repo: &Sandbox| repo.sh("stat -c '%i %Y' big.bin node_modules/a/x");
            let was = inode(&repo);
            repo.redo();
            repo.there_and_back(mode, "echo 3 >README.txt");
            repo.undo();
            assert_eq!(inode(&repo), was, "it is the same file");
        }
        for work in ["mv big.bin other.bin", "mkdir d; mv node_modules big.bin d/"] {
            with_large_files().there_and_back(mode, &format!("{work}; echo 2 >README.txt"));
        }
    });
}

#[test]
fn what_turns_moved_on_and_on_comes_back_over_all_of_them() {
    in_both_modes(|mode| {
        let repo = with_large_files();
        let mut states = vec![repo.files()];
        for work in [
            "mv big.bin b",
            "mkdir d; mv b d/c; mv node_modules d/",
            "mv d/c e; head -c 12000000 /dev/zero >f",
            "mv f d/g; mv e big.bin",
        ] {
            repo.turn(mode, &format!("{work}; echo {} >>README.txt", states.len()));
            states.push(repo.files());
        }
        let last = states.len() - 1;
        for steps in 1..=last {
            repo.oxundo(["undo", "--steps", &steps.to_string()]).success();
            repo.files().assert_is(&states[last - steps], &format!("undo --steps {steps}"));
            repo.oxundo(["redo", "--steps", &steps.to_string()]).success();
            repo.files().assert_is(&states[last], &format!("redo --steps {steps}"));
        }
        for back in (0..last).rev() {
            repo.undo();
            repo.files().assert_is(&states[back], "undo");
        }
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.redo();
        repo.files().assert_is(&states[3], "redo");
        repo.oxundo(["undo", "--steps", "3"]).success();
        repo.files().assert_is(&states[0], "undo");
    });
}

#[test]
fn what_was_moved_is_not_moved_back_over_what_is_there_or_where_it_was_changed() {
    in_both_modes(|mode| {
        for user in ["echo mine >big.bin", "echo more >>other.bin"] {
            let repo = with_large_files();
            repo.turn(mode, "mv big.bin other.bin; echo 2 >README.txt");
            repo.sh(user);
            repo.refuses(&["undo"], "conflict");
        }
    });
}

/// What the user has that no checkpoint holds: ignored, over the limits, skipped by name, private. In a git directory that
/// others read.
const NOT_CAPTURED: &str = "umask 022; chmod 755 .. . .git; printf '.env\\n*.log\\nout/\\n' >.gitignore; git add .; git commit -qm more
    echo TOKEN >.env; chmod 640 .env; echo log >a.log; mkdir -p out/in out/empty; echo 1 >out/x; echo 2 >out/in/y; chmod 751 out/in
    head -c 11000000 /dev/zero >big; mkdir -p node_modules/a; echo code >node_modules/a/x; echo key >key; chmod 600 key
    mkdir -m700 safe; echo secret >safe/s";

/// Ways to move that to where a scan finds it, or finds it and may not take it.
const MOVES: [&str; 5] = [
    "mv .env env.bak; mv out res; mv a.log d-log; mv key key2; chmod 644 key2",
    "mv .env d; git add -f d; mkdir n; mv out n/res; git add n; git commit -qm theirs; mv node_modules nm",
    "mv safe s2; mv big big2; mv a.log README.txt; mkdir -p x/y; mv key x/y/open; chmod 644 x/y/open",
    "mv big kept.log2; mv .env big.env; mv out node_mods; echo new >node_mods/n; mkdir node_mods/made",
    "mv out out2; git mv -k a.log t; git add -A; git commit -qm all; git reset -q --soft HEAD^",
];

#[test]
fn what_was_not_captured_and_was_moved_to_where_it_is_goes_back() {
    for (number, work) in MOVES.iter().enumerate() {
        let mode = [Mode::Commit, Mode::Ghost][number % 2];
        let repo = Sandbox::new();
        repo.sh(NOT_CAPTURED);
        let before = repo.files();
        repo.turn(mode, &format!("{work}; echo 2 >tail"));
        let after = repo.files();
        for _ in 0..2 {
            repo.undo();
            repo.files().assert_is(&before, &format!("undo of {work}"));
            repo.redo();
            repo.files().assert_is(&after, &format!("redo of {work}"));
        }
    }
}

#[test]
fn what_is_in_the_old_place_of_something_moved_is_neither_overwritten_nor_lost() {
    let repo = Sandbox::new();
    repo.sh(NOT_CAPTURED);
    let before = repo.files();
    repo.turn(Mode::Commit, "mv .env env.bak; echo 2 >tail");
    let after = repo.files();
    // Another program is as late as can be.
    repo.sh("echo mine >.env");
    repo.refuses(&["undo"], "conflict");
    repo.refuses(&["undo", "--edits=overwrite"], "conflict");
    repo.sh("rm .env");
    repo.undo();
    repo.files().assert_is(&before, "undo");
    repo.sh("cp -p .env ../env; echo mine >>.env");
    repo.refuses(&["redo"], "conflict");
    repo.sh("mv ../env .env");
    repo.redo();
    repo.files().assert_is(&after, "redo");
}

#[test]
fn a_tracked_file_that_was_moved_and_changed_and_made_anew_is_no_file_from_elsewhere() {
    for script in [
        "mv a.txt a.bak; sed s/1/2/ a.bak >a.txt; echo more >>a.bak",
        "mv a.txt b.txt; cp b.txt a.txt; echo more >>b.txt",
        "mv sub sub2; cp -r sub2 sub; echo more >>sub2/x",
        // The index does not know it any more.
        "mv a.txt a.bak; git checkout -q -- a.txt; echo more >>a.bak",
        "mv a.txt b.txt; cp b.txt a.txt; echo more >>b.txt; git add -A; git commit -qm its",
        "git mv a.txt sub/a.txt; echo more >>sub/a.txt; echo new >a.txt; git add a.txt",
    ] {
        for mode in Mode::tried() {
            let repo = Sandbox::new();
            repo.write("a.txt", "1\n")
                .write("sub/x", "x\n")
                .sh("git add -A; git commit -qm files; echo mine >>README.txt");
            repo.there_and_back(mode, script);
        }
    }
}

#[test]
fn what_is_older_than_the_turn_and_came_from_elsewhere_is_left_and_named() {
    let repo = Sandbox::new();
    repo.sh("echo photo >../photo");
    tick();
    let said = repo.turn(Mode::Commit, "mv ../photo photo; ln README.txt linked; echo new >new");
    said.warns("'photo' was not made by the turn, which moved it there: undo leaves it");
    assert_eq!(repo.git(["show", "HEAD:photo"]), "photo", "it is committed as the agent had it");
    repo.undo();
    repo.assert_file("photo", "photo\n", "nothing proves that the turn made it");
    repo.assert_absent("new", "this the turn has made");
    repo.assert_absent("linked", "this is not the only name of a file");
    repo.redo();
    repo.assert_file("new", "new\n", "redo");
    // A file that was captured is another matter, whatever became of it.
    repo.there_and_back(Mode::Commit, "mv README.txt renamed; echo more >>renamed");
}

#[test]
fn what_was_captured_and_is_made_anew_leaves_no_copy_behind() {
    let repo = Sandbox::new();
    repo.write("a.txt", "a\n").commit("b.txt", "b\n");
    tick();
    for script in
        ["sed -i.bak s/a/z/ a.txt", "mv a.txt a.orig; echo new >a.txt", "mv b.txt c; git checkout -q b.txt; echo 2 >d"]
    {
        for mode in Mode::tried() {
            repo.copy().there_and_back(mode, script);
        }
    }
}

#[test]
fn half_of_a_move_is_not_undone_without_the_other() {
    let repo = Sandbox::new();
    repo.sh(NOT_CAPTURED);
    repo.sh("rmdir out/empty");
    let before = repo.files();
    repo.turn(Mode::Commit, "mkdir n; mv big n/big; mv .env n/env; mv out n/out2");
    let after = repo.files();
    for path in ["n", "big"] {
        repo.oxundo(["undo", "--only", "1", "--", path]).success();
        repo.assert_file("big", vec![0; 11_000_000], "both names, or neither");
        if path == "n" {
            repo.files().assert_is(&before, "all of it was moved there");
        }
        repo.redo();
        repo.files().assert_is(&after, "redo");
    }
}

#[test]
fn a_private_directory_comes_and_goes_over_several_turns() {
    for second in ["rm -r p", "mv p p9", "echo more >>p/q"] {
        let repo = Sandbox::new().unprivileged();
        repo.sh("chmod 755 .. . .git");
        let before = repo.files();
        repo.turn(Mode::Commit, "mkdir -m700 p; echo secret >p/q; echo 1 >tail");
        repo.turn(Mode::Commit, &format!("{second}; echo 2 >tail"));
        let after = repo.files();
        let undone = repo.oxundo(["undo", "2"]);
        undone.success();
        repo.files().assert_is(&before, second);
        repo.oxundo(["redo", "2"]).success();
        repo.files().assert_is(&after, second);
    }
}

#[test]
fn something_private_that_a_later_turn_changed_goes_aside_at_the_users_word_as_it_is() {
    let repo = Sandbox::new().unprivileged();
    repo.sh("chmod 755 .. . .git");
    let before = repo.files();
    repo.turn(Mode::Commit, "echo 1 >tail; umask 077; echo one >s");
    repo.turn(Mode::Commit, "echo two >>s; echo 2 >tail");
    repo.undo();
    repo.refuses(&["undo"], "conflict");
    repo.oxundo(["undo", "--edits=overwrite"]).success();
    repo.files().assert_is(&before, "undo");
    repo.redo();
    repo.assert_file("s", "one\ntwo\n", "nothing of it is lost");
}

#[test]
fn what_is_moved_to_where_a_directory_or_a_file_was_goes_both_ways() {
    let repo = Sandbox::new();
    repo.sh("mkdir k; head -c 11000001 /dev/zero >k/big2; echo small >k/small; head -c 11000000 /dev/zero >big");
    let before = repo.files();
    repo.turn(Mode::Ghost, "mv k k9");
    repo.turn(Mode::Ghost, "mv big k");
    let after = repo.files();
    for _ in 0..2 {
        repo.oxundo(["undo", "2"]).success();
        repo.files().assert_is(&before, "undo");
        repo.oxundo(["redo", "2"]).success();
        repo.files().assert_is(&after, "redo");
    }
    repo.oxundo(["undo", "2"]).success();
    // A link that the turn itself put into the place of what it moved makes way; one of the user's does not.
    repo.turn(Mode::Ghost, "mkdir data; mv big data/big; ln -s data/big big");
    repo.sh("rm big; ln -s README.txt big");
    repo.undo();
    repo.files().assert_is(&before, "undo");
}

/// What a turn does in place of a plain move, and changes of places.
const COPIES: [&str; 11] = [
    "cp -p .env env.bak; rm .env; cp -a out res; rm -r out; cp -p key open; rm key; chmod 644 open",
    "cp -p .env env.bak; sed -i s/T/t/ .env; cp -p a.log log; echo more >>a.log; mkdir v; cp -a node_modules v/nm; rm -r node_modules",
    "cp -p .env x.log; rm .env; mv a.log b.log",
    "mv a.log b.log",
    "mkdir data; mv big data/big; ln -s data/big big; mv .env data/env; ln -s data/env .env",
    "mv big t; mv README.txt big; mv t README.txt; mv out res; mkdir out; echo new >out/x; mv .env d; echo n >.env",
    "mv .env t; mv a.log .env; mv c.log a.log; mv t c.log; mv big t; mv big2 big; mv t big2",
    "git mv src lib; echo 2 >lib/s",
    "mkdir w; mv node_modules out/nm; mv out o2; mv safe o2/safe",
    "mv safe node_modules/; mv node_modules nm; mv out nm/out",
    "git mv src lib; mv lib/k.log lib/l.log; mkdir src; echo other >src/k.log; cp -p big big3; rm big",
];

#[test]
fn what_was_copied_or_changed_places_goes_back_as_what_was_moved() {
    for (number, work) in COPIES.iter().enumerate() {
        let mode = [Mode::Commit, Mode::Ghost][number % 2];
        let repo = Sandbox::new();
        repo.sh(NOT_CAPTURED);
        repo.sh("mkdir src; echo s >src/s; git add src; git commit -qm src; echo k >src/k.log; echo c >c.log; head -c 11000001 /dev/urandom >big2");
        tick();
        let before = repo.files();
        repo.turn(mode, work);
        let after = repo.files();
        for _ in 0..2 {
            let said = repo.oxundo(["undo"]);
            said.success();
            assert!(!said.err().contains("warning:"), "{work}: {}", said.err());
            repo.files().assert_is(&before, &format!("undo of {work}"));
            repo.redo();
            repo.files().assert_is(&after, &format!("redo of {work}"));
        }
        repo.turn(Mode::Ghost, "echo 3 >tail");
        let both = repo.files();
        let said = repo.oxundo(["undo", "2"]);
        said.success();
        assert!(!said.out().contains("your edits"), "{work}: {}", said.out());
        repo.files().assert_is(&before, &format!("undo of two, of {work}"));
        repo.oxundo(["redo", "2"]).success();
        repo.files().assert_is(&both, &format!("redo of two, of {work}"));
    }
}

#[test]
fn what_changed_places_or_names_and_was_taken_out_is_where_it_was_by_undo_of_that() {
    let setup = "git config oxundo.maxFileSize 100; printf '*.log\\nbuild\\n' >.gitignore; git add .; git commit -qm rules
        for n in 1 2; do { echo $n; head -c 200 /dev/zero; } >$n.big; echo $n$n >$n.log; mkdir -p $n/build; echo $n >$n/build/x; sleep 0.01; done";
    let swap = |one: &str, other: &str| format!("mv {one} t; mv {other} {one}; mv t {other}; echo its >>README.txt");
    let works = [
        swap("1.big", "2.big"),
        swap("1.log", "2.log"),
        swap("1/build", "2/build"),
        "mv 1.big 3.big; mv 2.big 1.big; echo its >>README.txt".to_owned(),
        "mv 1.log 3.log; mv 2.log 1.log; echo its >>README.txt".to_owned(),
        "mv 1.log 3.log; mv 1.big 3.big; mkdir 3; mv 1/build 3/build; echo its >>README.txt".to_owned(),
        "mv 1.log 1.txt; mv 2.log 1.log; mv 2.big 2.log; echo its >>README.txt".to_owned(),
    ];
    let commands: [&[&str]; 4] =
        [&["undo", "--revert"], &["undo", "--only", "1"], &["branch", "x", "1:before"], &["undo", "--", ":/"]];
    for work in &works {
        for command in commands {
            let repo = Sandbox::new();
            repo.sh(setup);
            let before = repo.files();
            repo.turn(Mode::Ghost, work);
            let after = repo.files();
            repo.oxundo(command).success();
            repo.files().assert_is(&before, &format!("{work}; {command:?}"));
            if command.contains(&"--") {
                // It is no turn that undo takes back.
                repo.redo();
                repo.files().assert_is(&after, &format!("{work}; {command:?}; redo"));
                continue;
            }
            for _ in 0..2 {
                repo.undo();
                repo.files().assert_is(&after, &format!("{work}; {command:?}; undo"));
                repo.redo();
                repo.files().assert_is(&before, &format!("{work}; {command:?}; undo; redo"));
            }
            repo.undo();
            repo.undo();
            repo.files().assert_is(&before, &format!("{work}; {command:?}; undo; undo"));
            repo.redo();
            repo.files().assert_is(&after, &format!("{work}; {command:?}; undo; undo; redo"));
            repo.assert_sound();
        }
    }
}

#[test]
fn what_turns_moved_or_made_and_stashed_or_deleted_comes_back_or_is_told_of() {
    for (first, second, back) in [
        ("mv key k2; mv big b2", "git stash -q -u -- k2 b2", true),
        ("umask 077; echo made >pm; head -c 11000000 /dev/zero >bm", "git stash -q -u", true),
        ("umask 077; echo made >pm; head -c 11000000 /dev/zero >bm", "git stash -q -a", true),
        ("mv key k2; mv big b2", "rm k2 b2", false),
        ("mv key k2", "echo x >key", true),
        ("echo mine >p; git add p", "git rm -qf p; mv key p", true),
    ] {
        let repo = Sandbox::new();
        repo.sh(NOT_CAPTURED);
        repo.sh("rmdir out/empty; chmod 755 out/in");
        let mut states = vec![repo.files()];
        for (number, work) in [first, second].iter().enumerate() {
            repo.turn(Mode::Commit, &format!("{work}; umask 022; echo {number} >tail"));
            states.push(repo.files());
        }
        let said = repo.oxundo(["undo", "2"]);
        said.success();
        if back {
            repo.files().assert_is(&states[0], &format!("undo of both: {first}; {second}"));
        } else {
            said.warns("'k2' was changed too, and is not covered");
        }
        repo.oxundo(["redo", "2"]).success();
        repo.files().assert_is(&states[2], &format!("redo of both: {first}; {second}"));
        if back {
            repo.undo();
            repo.files().assert_is(&states[1], &format!("undo of one: {first}; {second}"));
            repo.undo();
            repo.files().assert_is(&states[0], &format!("undo of one more: {first}; {second}"));
            repo.redo();
            repo.files().assert_is(&states[1], &format!("redo of one: {first}; {second}"));
            repo.redo();
            repo.files().assert_is(&states[2], &format!("redo of one more: {first}; {second}"));
        }
    }
    let repo = with_large_files();
    repo.turn(Mode::Ghost, "mv big.bin moved");
    repo.sh("rm moved");
    let refusal = repo.refuses(&["undo"], "conflict");
    assert!(refusal["message"].to_string().contains("moved by the turn, and not there any more"), "{refusal}");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_kill_between_changes_of_places_leaves_each_thing_in_one_of_them() {
    use crate::kill_points::{killed_at, points_of};
    let repo = Sandbox::new();
    repo.sh(NOT_CAPTURED);
    let before = repo.files();
    repo.turn(Mode::Ghost, "mv .env t; mv a.log .env; mv t a.log; mkdir data; mv big data/; ln -s data/big big");
    let after = repo.files();
    let Ok(points) = points_of(&repo, &["undo"]) else {
        return announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
    };
    let moves: Vec<String> =
        points.into_iter().map(|point| point.text).filter(|text| text.contains("aside/1/")).collect();
    assert!(moves.len() >= 6, "{moves:#?}");
    for call in moves.iter().filter(|call| call.contains("rename")) {
        // Each copy of the repository is elsewhere.
        let (what, _) = call.split_once('/').expect("it names a path");
        let (_, place) = call.split_once("/repo/").expect("of the repository");
        let killed = killed_at(&repo, &["undo"], [what, place]);
        let said = killed.oxundo(["status"]);
        said.success();
        assert!(!said.err().contains("as it is"), "{call}: {}", said.err());
        let is_undone = killed.log().iter().any(|turn| turn["state"] == "undone");
        killed.files().assert_is(if is_undone { &before } else { &after }, call);
        if is_undone {
            killed.redo();
        } else {
            killed.undo();
        }
        killed.files().assert_is(if is_undone { &after } else { &before }, call);
    }
}

#[test]
fn what_the_stash_took_of_what_is_not_captured_comes_back() {
    for (mode, work) in
        [(Mode::Commit, "git stash -q -a"), (Mode::Ghost, "echo more >>README.txt; git stash -q -u -- big README.txt")]
    {
        let repo = Sandbox::new();
        repo.sh(NOT_CAPTURED);
        // git keeps no directory's mode, and none that is empty.
        repo.sh("rmdir out/empty; chmod 755 out/in");
        let before = repo.state();
        repo.turn(mode, &format!("{work}; echo 2 >tail"));
        let after = repo.state();
        repo.undo();
        repo.state().assert_is(&before, work);
        repo.redo();
        repo.state().assert_is(&after, work);
    }
    // What came out again is in the worktree, and nobody's to write over.
    let repo = Sandbox::new();
    repo.sh(NOT_CAPTURED);
    repo.sh("rmdir out/empty; chmod 755 out/in; chmod 644 key .env");
    repo.there_and_back(Mode::Commit, "git stash -q -a; git stash apply -q; echo 2 >tail");
}

#[test]
fn what_a_turn_does_with_repositories_is_undone_or_named() {
    let repo = Sandbox::new();
    repo.sh("git init -q sub; git init -q other; echo k >sub/k");
    let said = repo.turn(Mode::Commit, "rm -rf sub; mkdir sub; echo agent >sub/new; git init -q made; rm -rf other");
    for path in ["sub", "made", "other"] {
        said.warns(&format!("the turn changed '{path}', which undo does not cover"));
    }
    assert_eq!(repo.git(["show", "HEAD:sub/new"]), "agent", "it is the turn's");
    repo.undo();
    repo.assert_absent("sub/new", "the turn made it");
    repo.redo();
    repo.assert_file("sub/new", "agent\n", "redo");
}

#[test]
fn a_turn_that_changes_only_what_is_not_covered_says_so() {
    let repo = Sandbox::new();
    repo.sh("head -c 11000000 /dev/zero >big");
    let before = repo.everything();
    let said = repo.turn(Mode::Commit, "rm big");
    said.warns("the turn changed 'big', which undo does not cover");
    assert_eq!(repo.log().len(), 0, "there is nothing to undo");
    repo.sh("head -c 11000000 /dev/zero >big");
    repo.everything().assert_is(&before, "and nothing is left");
}

#[test]
fn a_worktree_that_is_removed_takes_nothing_with_it_that_others_saved() {
    let repo = Sandbox::new();
    repo.write("big", vec![b'x'; 9 << 20]);
    repo.sh("echo small >small; git add .; git commit -qm files; git worktree add -q -b side wt");
    let run = |args: &[&str]| repo.oxundo([&["-C", "wt"], args].concat());
    let save = |path: &str, mark: &str| {
        run(&["run", "--ghost", "--", "sh", "-c", &format!("echo agent >>{path}")]).success();
        // Another program has it open, and saves when it is over.
        let mut open = std::fs::OpenOptions::new().append(true).open(repo.path(format!("wt/{path}"))).expect("open it");
        run(&["undo"]).success();
        std::io::Write::write_all(&mut open, mark.as_bytes()).expect("save");
    };
    save("big", "saved into what was kept");
    save("small", "saved into what was replaced");
    repo.git(["worktree", "remove", "--force", "wt"]);
    for mark in ["saved into what was kept", "saved into what was replaced"] {
        assert_ne!(repo.sh(&format!("grep -rl '{mark}' .git")), "", "{mark}");
    }
    repo.oxundo(["uninstall", "--purge", "--yes"]).success();
    for mark in ["saved into what was kept", "saved into what was replaced"] {
        assert_ne!(repo.sh(&format!("grep -rl '{mark}' .git")), "", "{mark}, after a purge");
    }
}

/// The power may go at any instant, and each of two file systems writes its names when it likes.
#[test]
fn on_another_file_system_what_is_whole_has_its_name_on_the_disk_before_the_other_goes() {
    let script = format!(
        "strace -V >/dev/null || exit 77
         oxundo run --ghost -- sh -ec '{MAKE}'
         traced() {{ strace -f -y -o ../../trace -e trace=fsync,rename,renameat,renameat2,linkat,unlink,unlinkat oxundo -q $1; }}
         ordered() {{ awk -v has=\"$1\" -v flushed=\"$2\" -v goes=\"$3\" '
             $0 ~ has {{ there = 1; durable = 0 }} there && $0 ~ flushed {{ durable = 1 }}
             there && $0 ~ goes {{ gone = 1; if (!durable) exit 1 }} END {{ if (!gone || !durable) exit 1 }}' ../../trace; }}
         traced undo; ordered 'rename.*aside/1/1[.]half' 'fsync.*/aside/1>' 'unlinkat.*aside-1[>/]'
         traced redo; ordered 'rename.*aside-1-new.*node_modules' \"fsync[(].*<$(pwd -P)>\" 'rename.*aside/1/1[.]gone'"
    );
    if let Some((_repo, output)) = across(&script) {
        if output.code == 77 {
            return announce("SKIPPED: there is no strace here, or it may trace nothing");
        }
        output.success();
    }
}
