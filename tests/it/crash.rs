//! Killed at any instant, undo and redo leave a state that the next command makes whole: the one
//! before or the one after, and nothing that stands in git's way.

use crate::form::random_cases;
use crate::sandbox::{Mode, Sandbox};
use std::path::Path;
use std::time::Duration;

/// The lock files below a directory.
pub(crate) fn locks(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("read the git directory").flatten() {
        let path = entry.path();
        // Of the copy in which git makes new tables nobody waits for a lock, and the next one takes its place.
        if path.ends_with("oxundo/reftable") {
            continue;
        }
        if path.is_dir() {
            found.extend(locks(&path));
        } else if path.extension().is_some_and(|extension| extension == "lock") || path.ends_with("packed-refs.new") {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_killed_undo_or_redo_is_finished_or_rolled_back() {
    let repo = Sandbox::new();
    for i in 0..30 {
        repo.write(format!("d{i}/f"), format!("{i}\n"));
    }
    repo.sh("git add -A; git commit -qm files");
    repo.sh("echo staged >s; git add s; echo unstaged >>s; echo u >untracked; rm d3/f");
    let before = repo.state();
    repo.turn(
        Mode::Commit,
        "for i in $(seq 4 29); do echo x >>d$i/f; done; rm -r d5; mkdir -p n/m; echo n >n/m/n; chmod 600 d6/f; \
         git commit -qam c; echo y >>d9/f; git branch made; echo k >.env",
    );
    let after = repo.state();
    let mut there = &after;
    // From at once to longer than either takes; when exactly a kill comes does not matter.
    let kills = random_cases(60) as usize;
    for step in (0..60_u64).cycle().step_by(7).take(kills) {
        let command = if *there == after { "undo" } else { "redo" };
        let mut child = repo.spawn(&[command, "-q"]);
        std::thread::sleep(Duration::from_micros(step * 1500));
        child.kill().expect("kill it");
        child.wait().expect("it is gone");
        repo.oxundo(["status"]).success();
        let now = repo.state();
        if now == before {
            there = &before;
        } else {
            now.assert_is(&after, &format!("{command}, killed, is the state before or the state after"));
            there = &after;
        }
        assert_eq!(locks(&repo.root().join(".git")), Vec::<String>::new(), "no lock stands in git's way");
        assert_eq!(repo.git(["for-each-ref", "refs/oxundo/pending"]), "", "the journal is gone");
    }
    repo.assert_sound();
}

#[test]
fn a_turn_whose_process_was_killed_is_closed_as_interrupted_and_undone() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.write("mine.txt", "mine\n");
        let before = repo.state();
        let script = "echo more >>README.txt; echo new >new.txt; : >\"$HOME/ready\"; exec sleep 30";
        let mut args = vec!["run"];
        args.extend((mode == Mode::Ghost).then_some("--ghost"));
        args.extend(["--", "sh", "-c", script]);
        let mut child = repo.spawn(&args);
        repo.wait_for("ready");
        child.kill().expect("kill it");
        child.wait().expect("it is gone");
        let output = repo.oxundo(["status"]);
        output.success();
        output.warns("interrupted");
        let log = repo.log();
        assert_eq!((log.len(), &log[0]["interrupted"], &log[0]["state"]), (1, &true.into(), &"done".into()), "{log:?}");
        assert_eq!(log[0]["commits"].as_array().map(Vec::len), Some(usize::from(mode == Mode::Commit)), "{log:?}");
        let after = repo.state();
        repo.undo();
        repo.state().assert_is(&before, "an interrupted turn is undone like any other");
        repo.redo();
        repo.state().assert_is(&after, "and redone");
    }
}
