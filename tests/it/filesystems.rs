//! Repositories on file systems without hard links, without an executable bit, or where letters' case makes no other
//! name.

use crate::form::part;
use crate::fuse::Mounted;
use crate::sandbox::{Mode, Sandbox, check_all};

/// What a turn does in these tests: edits, new files, deletions, renames, modes, an index, a commit and a branch.
const TURN: &str = "printf 'two\\n' >>edited; rm deleted; \
                    git mv renamed moved; mkdir -p new/deep; echo new >new/deep/file; mkdir empty; \
                    chmod 755 script; chmod 600 private; echo staged >staged; git add staged; \
                    mv directory other; git branch topic; echo c >committed; git add committed; \
                    git commit -qm 'agent: a commit' committed";

#[test]
fn a_turn_is_undone_and_redone_to_the_byte_on_every_file_system() {
    let kinds: [&[&str]; 3] = [&["no-links"], &["any-case"], &["no-links", "any-case", "no-symlinks", "no-exec"]];
    let cases = kinds.iter().flat_map(|kind| Mode::BOTH.map(|mode| (format!("{kind:?} {mode:?}"), (*kind, mode))));
    check_all(cases, |(kind, mode)| {
        let Some(repo) = Mounted::new(kind) else { return };
        repo.sh("for name in edited deleted renamed script private directory/a directory/b; do \
               mkdir -p \"$(dirname $name)\"; echo $name >$name; \
             done; \
             git add -A; git commit -qm files; \
             echo untracked >untracked; echo half >>edited; git add edited; echo dirty >>edited");
        repo.there_and_back(*mode, TURN);
    });
}

#[test]
fn what_only_changes_its_letters_comes_and_goes() {
    let Some(repo) = Mounted::new(&["any-case"]) else { return };
    repo.sh("mkdir dir; echo a >dir/a; echo notes >notes.txt; git add dir; git commit -qm dir");
    for (mode, turn) in part([
        (Mode::Commit, "git mv README.txt Readme.txt"),
        (Mode::Ghost, "git mv README.txt Readme.txt; echo more >>Readme.txt"),
        (Mode::Commit, "git mv README.txt Readme.txt; git commit -qm 'agent: other letters'"),
        (Mode::Commit, "git mv dir/a dir/A; git mv dir x; git mv x Dir"),
        (Mode::Ghost, "git mv dir/a dir/A; git mv dir x; git mv x Dir"),
        // A file that is committed is git's, which does not look at its letters.
        (Mode::Ghost, "mv notes.txt x; mv x Notes.txt"),
    ]) {
        repo.there_and_back(mode, turn);
        repo.redo();
        if mode == Mode::Commit {
            let twice = repo.sh("git ls-files | tr A-Z a-z | sort | uniq -d");
            assert_eq!(twice, "", "no name is there twice: {turn}");
            assert_eq!(repo.git(["status", "--porcelain", "-uno"]), "", "all is committed: {turn}");
        }
        repo.undo();
    }
}

#[test]
fn a_setting_from_a_machine_where_letters_make_no_difference_does_no_harm_where_they_do() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.sh("git config core.ignoreCase true; echo notes >notes; echo Notes >Notes");
        repo.there_and_back(mode, "mv README.txt readme.TXT; echo two >>readme.TXT; rm notes; echo NOTES >Notes");
        repo.redo();
        repo.assert_file("readme.TXT", "readme\ntwo\n", "the agent's file");
        repo.assert_file("Notes", "NOTES\n", "another file than 'notes'");
    }
}

#[test]
fn what_is_on_disk_in_other_letters_than_in_the_index_is_the_tracked_file() {
    let Some(repo) = Mounted::new(&["any-case"]) else { return };
    repo.sh("mkdir dir; echo a >dir/a; git add dir; git commit -qm dir; mv README.txt x; mv x readme.TXT; mv dir x; mv x Dir");
    assert_eq!(repo.git(["status", "--porcelain"]), "", "git calls it clean");
    for mode in Mode::tried() {
        let before = repo.state();
        repo.turn(mode, "true");
        assert_eq!(repo.log().len(), 0, "nor is there anything for oxundo");
        repo.there_and_back(mode, "echo two >>readme.txt; echo b >DIR/b; echo more >>DIR/A");
        repo.redo();
        if mode == Mode::Commit {
            assert_eq!(repo.git(["show", "--name-only", "--format="]), "README.txt\ndir/a\ndir/b", "it is committed");
        }
        repo.undo();
        repo.state().assert_is(&before, "it is undone");
        repo.sh("git update-ref -d refs/oxundo/timeline; rm -rf .git/oxundo");
    }
}

#[cfg(target_arch = "x86_64")]
mod traced {
    use super::Mounted;
    use crate::crash::locks;
    use crate::sandbox::announce;
    use crate::tracer::{Kill, LAUNCH, Victim, interrupt, trace};
    use nix::errno::Errno;
    use std::cell::RefCell;

    #[test]
    fn without_hard_links_git_is_kept_out_while_the_index_is_written() {
        let Some(repo) = Mounted::new(&["no-links"]) else { return };
        repo.agent("echo two >>README.txt");
        let error = RefCell::new(String::new());
        let add = || *error.borrow_mut() = repo.try_git(["add", "README.txt"]).err();
        if let Err(error) = interrupt(&mut repo.launched_command(LAUNCH, &["undo"]), "index.oxundo-", &add) {
            return untraceable(error);
        }
        assert!(error.borrow().contains("index.lock': File exists"), "git waits its turn: {error:?}");
        repo.assert_file("README.txt", "readme\n", "undo is done");
        assert_eq!(locks(&repo.path(".git")), Vec::<String>::new(), "no lock is left");
    }

    fn untraceable(error: Errno) {
        announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }

    #[test]
    fn without_hard_links_a_killed_command_leaves_no_lock_for_good() {
        let Some(repo) = Mounted::new(&["no-links"]) else { return };
        repo.sh("echo staged >>README.txt; git add README.txt");
        let before = repo.state();
        repo.agent("echo two >>README.txt; git add README.txt; echo new >new");
        let after = repo.state();
        let undo = |kill| trace(&mut repo.launched_command(LAUNCH, &["undo"]), kill);
        let points = match undo(None) {
            Ok(trace) => trace.points,
            Err(error) => return untraceable(error),
        };
        let of_the_lock =
            points.iter().filter(|point| ["index.lock", "index.mark"].iter().any(|it| point.text.contains(it)));
        let mut killed = 0;
        for point in of_the_lock {
            for done in [false, true] {
                repo.redo();
                repo.state().assert_is(&after, "redo brings back what the turn made");
                let kill = Kill { number: point.number, done, victim: Victim::All };
                killed += usize::from(undo(Some(kill)).expect("it was traced before").killed);
                repo.oxundo(["status"]).success();
                let left = locks(&repo.path(".git"));
                assert_eq!(left, Vec::<String>::new(), "the next command removes the lock, killed at {}", point.text);
                assert!(!repo.exists(".git/index.lock"), "nor is it there as a directory");
                // Only as far as the kill let it come.
                let _ = repo.oxundo(["undo"]);
                repo.state().assert_is(&before, &format!("it is undone in the end, killed at {}", point.text));
            }
        }
        assert!(killed > 4, "there is a lock to be killed with: {points:#?}");
    }
}
