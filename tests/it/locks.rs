//! Whose a lock is, and whose a stash entry: what somebody else made is never removed.

use crate::kill_points::killed_at;
use crate::sandbox::{Sandbox, announce};
use crate::tracer::{LAUNCH, interrupt_at_opening};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// Every lock that git takes where oxundo moves refs.
const LOCKS: [&str; 8] = [
    "refs/oxundo/timeline.lock",
    "refs/oxundo/pending.lock",
    "packed-refs.lock",
    "refs/notes/oxundo.lock",
    "refs/stash.lock",
    "logs/refs/stash.lock",
    "refs/heads/main.lock",
    "HEAD.lock",
];

const TURN: &str = "echo own >>README.txt; git commit -qam own; echo stashed >>README.txt; git stash -q";

/// The user stashes something.
const PUSH: &str = "c=$(git rev-parse stash@{0})
    git stash store -m newer $(git commit-tree -p $c^1 -p $c^2 -m newer $c^{tree})";

/// Nothing where no process can be traced, said aloud.
fn can_trace() -> bool {
    let traced = crate::kill_points::points_of(&Sandbox::new(), &["status"]);
    if traced.is_err() {
        announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
    }
    traced.is_ok()
}

/// What tells a lock from any other, and what is in it.
fn identity(repo: &Sandbox, lock: &str) -> (u64, Vec<u8>) {
    let path = repo.path(format!(".git/{lock}"));
    let about = path.symlink_metadata().unwrap_or_else(|_| panic!("{lock} is still there"));
    (about.ino(), repo.read(format!(".git/{lock}")))
}

#[test]
fn a_lock_of_gits_is_never_removed_however_old_it_is() {
    let repo = Sandbox::new();
    repo.append_to_config("[core]\n\tfilesRefLockTimeout = 0\n\tpackedRefsTimeout = 0\n");
    repo.agent(TURN);
    let mut states = vec![("at rest", repo.copy())];
    let marked = repo.copy();
    // As an oxundo of before left it, which did not know whose a lock is.
    marked.write(".git/oxundo/refs.mark", "refs/heads/main\nrefs/notes/oxundo\nrefs/oxundo/timeline\nHEAD");
    states.push(("with an old mark", marked));
    if can_trace() {
        for call in [["renameat", ".oxundo-tmp"], ["rename", "refs/heads/main"]] {
            states.push(("after a kill", killed_at(&repo, &["undo"], call)));
        }
    }
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for (what, state) in states {
        for lock in LOCKS {
            let repo = state.copy();
            // A lock that the killed undo left is not git's.
            if repo.exists(format!(".git/{lock}")) {
                continue;
            }
            repo.write(format!(".git/{lock}"), format!("{}\n", "1".repeat(40)));
            let file = File::options().write(true).open(repo.path(format!(".git/{lock}")));
            file.and_then(|file| file.set_modified(hour_ago)).expect("set a time");
            let held = identity(&repo, lock);
            for args in [&["status"][..], &["undo"], &["run", "--", "true"], &["checkpoint", "here"], &["redo"]] {
                let output = repo.oxundo(args);
                assert!(!output.err().contains("panicked"), "{output:?}");
                assert_eq!(identity(&repo, lock), held, "{what}: {args:?} leaves {lock} as it is");
            }
            repo.sh(&format!("rm .git/{lock}"));
            repo.oxundo(["status"]).success();
            repo.oxundo(["run", "--", "sh", "-c", "echo more >>more"]).success();
            repo.undo();
            repo.assert_sound();
        }
    }
}

#[test]
fn what_the_user_stashes_after_a_crash_is_left() {
    if !can_trace() {
        return;
    }
    let repo = Sandbox::new();
    repo.sh("echo mine >>README.txt; git stash -q -m older");
    repo.agent(TURN);
    for call in [["renameat", ".oxundo-tmp"], ["rename", "refs/heads/main"], ["oxundo: rename", "logs/refs/stash"]] {
        let repo = killed_at(&repo, &["undo"], call);
        // As git advises where it meets a lock.
        repo.sh(&format!("rm -f .git/refs/stash.lock; {PUSH}"));
        repo.oxundo(["status"]).warns("left an entry of the stash list as it is: it was made since");
        let list = repo.git(["stash", "list", "--format=%gs"]);
        let list: Vec<_> = list.lines().collect();
        assert_eq!((list.first(), list.last()), (Some(&"newer"), Some(&"On main: older")), "{call:?}: {list:?}");
        repo.oxundo(["status"]).success();
    }
}

#[test]
fn what_the_user_stashes_or_drops_meanwhile_is_theirs() {
    let start = Sandbox::new();
    start.sh("for n in first second; do echo $n >>README.txt; git stash -q -m $n; done");
    start.agent(TURN);
    for (what, script, left) in [
        ("pushed", PUSH, &["newer", "On main: second", "On main: first"][..]),
        ("dropped", "git stash drop -q stash@{1}", &["On main: first"]),
        ("all dropped", "git stash clear", &[]),
    ] {
        let repo = start.copy();
        let others = || drop(repo.sh(script));
        let lock = "refs/stash.lock";
        let Ok(trace) = interrupt_at_opening(&mut repo.launched_command(LAUNCH, &["undo"]), lock, 0, &others) else {
            return announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
        };
        assert_eq!(trace.code, Some(0), "{what}: {}", trace.stderr);
        assert_eq!(repo.git(["stash", "list", "--format=%gs"]).lines().collect::<Vec<_>>(), left, "{what}");
        repo.redo();
        repo.assert_sound();
    }
}

#[test]
fn a_lock_that_is_held_is_a_refusal_that_changes_nothing() {
    for lock in LOCKS {
        let repo = Sandbox::new();
        repo.append_to_config("[core]\n\tfilesRefLockTimeout = 0\n\tpackedRefsTimeout = 0\n");
        repo.agent(TURN);
        let before = repo.state();
        repo.write(format!(".git/{lock}"), "");
        let undone = repo.oxundo(["undo"]);
        if undone.err().contains("exists: git holds") {
            undone.exits(3);
            repo.state().assert_is(&before, &format!("{lock}: all is as before"));
            assert_eq!(repo.git(["for-each-ref", "refs/oxundo/pending"]), "", "{lock}: there is nothing to finish");
            repo.oxundo(["status"]).success();
        } else {
            undone.success();
            repo.redo();
        }
        std::fs::remove_file(repo.path(format!(".git/{lock}"))).expect("let go of the lock");
        repo.undo();
        repo.redo();
        repo.state().assert_is(&before, &format!("{lock}: there and back"));
    }
}

#[test]
fn what_a_killed_oxundo_had_half_written_is_swept_by_the_next_look() {
    let repo = Sandbox::new();
    repo.agent("echo own >own");
    let (gone, alive) =
        (".git/oxundo/.oxundo-tmp-4194305-0", format!(".git/oxundo/.oxundo-tmp-{}-0", std::process::id()));
    repo.write(gone, "half").write(&alive, "half").write(".git/oxundo/.oxundo-tmp-mine", "theirs");
    repo.oxundo(["status"]).success();
    repo.assert_absent(gone, "no process has that number");
    assert!(repo.exists(&alive) && repo.exists(".git/oxundo/.oxundo-tmp-mine"), "others may be at work");
}
