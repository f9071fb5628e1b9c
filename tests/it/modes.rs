//! Permission bits: kept for every captured file, tracked or not, and never for an instant wider.

use crate::sandbox::{Mode, Output, Sandbox, announce, check_all};
use std::sync::atomic::{AtomicBool, Ordering};

const MODES: [u32; 8] = [0o600, 0o640, 0o644, 0o700, 0o750, 0o755, 0o444, 0o4711];

/// A tracked and an untracked file of each mode.
fn of_each_mode() -> Sandbox {
    let repo = Sandbox::new();
    for mode in MODES {
        repo.write(format!("t{mode:o}"), format!("tracked {mode:o}\n"));
    }
    repo.sh("git add . && git commit -qm modes");
    for mode in MODES {
        repo.write(format!("u{mode:o}"), format!("untracked {mode:o}\n"));
        repo.chmod(format!("t{mode:o}"), mode).chmod(format!("u{mode:o}"), mode);
    }
    repo
}

#[test]
fn the_mode_of_every_file_comes_back() {
    let scripts = [
        ("deleted", "rm -f t* u*"),
        ("rewritten", "for f in t* u*; do rm -f $f; echo agent >$f; done"),
        ("widened", "chmod 0666 t* u*"),
        ("made executable", "chmod +x t* u*"),
        ("moved", "mkdir d; mv t* u* d"),
        ("replaced by links", "for f in t* u*; do rm -f $f; ln -s README.txt $f; done"),
    ];
    let cases =
        scripts.iter().enumerate().map(|(at, (name, script))| ((*name).to_owned(), (Mode::BOTH[at % 2], *script)));
    check_all(cases, |(mode, script)| of_each_mode().there_and_back(*mode, script));
}

#[test]
fn a_turn_that_only_changes_modes_is_a_turn() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.write("key", "secret\n").chmod("key", 0o600).chmod("README.txt", 0o640);
        repo.there_and_back(mode, "chmod 644 key README.txt");
        repo.there_and_back(mode, "chmod 400 README.txt; chmod 000 key");
    }
}

#[test]
fn the_executable_bit_is_not_gits_when_file_mode_is_off() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.write("tool", "#!/bin/sh\n").chmod("tool", 0o755);
        repo.sh("git add . && git commit -qm tool");
        repo.git(["config", "core.fileMode", "false"]);
        repo.chmod("README.txt", 0o755).chmod("tool", 0o644);
        repo.write("untracked", "mine\n").chmod("untracked", 0o750);
        repo.there_and_back(mode, "rm untracked; echo two >README.txt; echo two >>tool; chmod 600 README.txt");
        repo.redo();
        assert_eq!(repo.git(["ls-files", "--format=%(objectmode)", "tool"]), "100755", "the index keeps its bit");
        repo.undo();
        repo.there_and_back(mode, "chmod +x untracked tool");
    }
}

#[test]
fn a_private_file_is_never_more_readable_than_it_was() {
    let repo = Sandbox::new();
    repo.sh("mkdir d; for i in $(seq 60); do echo secret >d/$i; chmod 600 d/$i; done");
    repo.agent("rm -r d; mkdir d; chmod 755 d; for i in $(seq 60); do echo agent >d/$i; chmod 600 d/$i; done");
    let (directory, done) = (repo.path("d"), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut wide = Vec::new();
            while !done.load(Ordering::Relaxed) {
                for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                    // What is gone between the two calls has no mode to look at.
                    let Ok(metadata) = entry.metadata() else { continue };
                    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
                    if mode & 0o077 != 0 {
                        wide.push((entry.file_name(), mode));
                    }
                }
            }
            wide
        });
        for _ in 0..3 {
            repo.undo();
            repo.redo();
        }
        done.store(true, Ordering::Relaxed);
        assert_eq!(watcher.join().expect("the watcher ends"), [], "no file was wider, not even while it was written");
    });
}

#[test]
fn umask_and_setgid_directories_are_respected() {
    for umask in [0o022, 0o077, 0o002, 0o027] {
        let repo = Sandbox::new();
        repo.sh("mkdir shared shared/deep && chmod 2775 shared shared/deep && echo mine >shared/deep/file && mkdir private && chmod 700 private && echo mine >private/file");
        let before = repo.state();
        let turn = |args: &[&str]| {
            let mut shell = repo.shell(&format!("umask {umask:o}; exec oxundo \"$@\""));
            Output::of(shell.arg("sh").args(args)).success();
        };
        turn(&[
            "run",
            "--",
            "sh",
            "-c",
            "rm -r shared private; mkdir made made/deep; echo new >made/deep/file; echo two >README.txt",
        ]);
        let after = repo.state();
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            turn(&[op]);
            repo.state().assert_is(wanted, &format!("{op} under umask {umask:o}"));
        }
        assert_eq!(repo.mode("shared/deep"), 0o2775, "the setgid bit is back");
    }
}

#[test]
fn a_turn_under_one_umask_is_undone_under_another() {
    let repo = Sandbox::new();
    repo.write("loose", "mine\n");
    let before = repo.state();
    let run = |umask: &str, rest: &str| {
        Output::of(&mut repo.shell(&format!("umask {umask}; {rest}"))).success();
    };
    run("022", "oxundo run -- sh -c 'rm loose; mkdir d; echo new >d/new'");
    let after = repo.state();
    run("077", "oxundo undo");
    repo.state().assert_is(&before, "the mode is the recorded one, not that of this umask");
    run("002", "oxundo redo");
    repo.state().assert_is(&after, "the mode is the recorded one, not that of this umask");
}

#[test]
fn directories_that_may_not_be_written_come_back_with_what_is_in_them() {
    let repo = Sandbox::new();
    repo.sh("mkdir -p shut/below kept; echo 1 >shut/below/x; echo 2 >shut/y; echo 3 >kept/z
        git add -A; git commit -qm files; chmod 555 shut/below shut kept");
    let before = repo.state();
    repo.agent("chmod -R u+w shut; rm -r shut; chmod u+w kept; echo more >>kept/z; echo new >kept/new; chmod u-w kept");
    let after = repo.state();
    for _ in 0..2 {
        repo.undo();
        repo.state().assert_is(&before, "undone");
        repo.redo();
        repo.state().assert_is(&after, "redone");
    }
    repo.sh("chmod -R u+w .");
}

/// Who may read a file is told by its bits, its owner, its group and its list together; and what runs as its owner by both.
#[test]
fn what_undo_writes_nobody_reads_who_could_not_read_it_before() {
    // It lets one user read, and the group not: the bits show that as 0640.
    let list = |user: u32| {
        format!(
            "exec python3 -c \"import os,struct; os.setxattr('file','system.posix_acl_access',struct.pack('<I',2)+b''.join(\
             struct.pack('<HHI',*e) for e in ((1,6,2**32-1),(2,4,{user}),(4,0,2**32-1),(16,4,2**32-1),(32,0,2**32-1))))\" 2>/dev/null"
        )
    };
    // What is done before the turn, so that 4321 does not read the file, and what the turn does.
    let ways = [
        ("of another group", "chgrp 4242 file; chmod 640 file".to_owned(), "echo more >>file".to_owned()),
        ("with a list", list(1234), "echo more >>file".to_owned()),
        ("given away by the turn", "chmod 600 file".to_owned(), "echo public >file; chown 4321:4321 file".to_owned()),
        ("given away, by a list", "chmod 640 file".to_owned(), format!("echo public >file; {}", list(4321))),
    ]
    .map(|(name, before, turn)| (name.to_owned(), (before, turn)));
    let reads = |repo: &Sandbox, group: u32| {
        let read = format!("exec setpriv --reuid 4321 --regid {group} --clear-groups cat file 2>/dev/null");
        repo.sh(&format!("({read}) || :")).contains("secret")
    };
    let root = Sandbox::new();
    let anyone = root.shell("exec setpriv --reuid 4321 --regid 4321 --clear-groups true 2>/dev/null").status();
    if !anyone.is_ok_and(|status| status.success()) {
        return announce("SKIPPED: only root may be anyone");
    }
    check_all(ways, |(before, turn)| {
        let repo = Sandbox::new();
        repo.sh("chmod o+x . ..; chmod 700 .git");
        repo.write("file", "secret\n").sh("git add -A; git commit -qm file; chmod 600 file");
        if !repo.shell(before).status().is_ok_and(|status| status.success()) {
            return announce("SKIPPED: no access lists here");
        }
        let before = [4321, 0].map(|group| reads(&repo, group));
        assert!(!before[0], "4321 does not read it");
        repo.agent(turn);
        repo.undo();
        repo.assert_file("file", "secret\n", "it is back");
        let after = [4321, 0].map(|group| reads(&repo, group));
        assert!(!after[0] && after[1] <= before[1], "after undo: {}", repo.sh("ls -l file"));
        repo.redo();
    });
}

#[test]
fn what_runs_as_somebody_else_does_not_run_as_whoever_undoes_its_turn() {
    let repo = Sandbox::new();
    repo.write("tool", "#!/bin/sh\n");
    if !repo.shell("chown 4321:4321 tool 2>/dev/null && chmod 6755 tool").status().is_ok_and(|it| it.success()) {
        return announce("SKIPPED: nothing may be given away here");
    }
    for turn in ["rm tool", "cp tool ../new; echo more >>../new; mv -f ../new tool", "echo more >>tool"] {
        repo.sh("chown 4321:4321 tool; chmod 6755 tool");
        repo.agent(turn);
        repo.undo();
        let [mode, owner] = ["%a", "%u"].map(|format| repo.sh(&format!("stat -c {format} tool")));
        assert!(owner == "4321" || mode == "755", "{turn}: {mode} of {owner}");
    }
}
