//! The first command after the system was started anew, without a power cut, or with one of which no log tells.

use crate::disk::start_anew;
use crate::sandbox::{Mode, Sandbox};
use std::fs;
use std::time::{Duration, SystemTime};

fn turn() -> Sandbox {
    let repo = Sandbox::new();
    repo.turn(Mode::Commit, "echo more >>README.txt; echo new >new.txt");
    repo
}

/// The log of the main worktree.
fn log(repo: &Sandbox) -> std::path::PathBuf {
    let logs = repo.base().join("repo/.git/oxundo/log");
    let all = fs::read_dir(logs).expect("list the logs").flatten().map(|entry| entry.path());
    all.into_iter().find(|path| path.to_string_lossy().contains("/main-")).expect("it has a log")
}

#[test]
fn where_all_came_to_the_disk_nothing_is_said_and_nothing_is_moved() {
    let moves = [
        ":",
        "git reset -q --hard HEAD~1",
        "git reset -q --hard HEAD~1; rm -r .git/logs",
        "git commit -q --allow-empty -m later",
        "git switch -q -c other; git branch -q -D main",
        "git pack-refs --all; git gc -q --prune=now",
        "oxundo undo -q; git reset -q --hard ORIG_HEAD || git reset -q --hard refs/oxundo/timeline^",
        "git notes --ref=oxundo append -m mine",
        "git switch -q --detach; git branch -q -D main; git switch -q -c main HEAD~1",
        "git switch -q -c other HEAD~1; git branch -q -M other main",
        "git reset -q --hard HEAD~1; git reflog delete main@{1}",
        "git reflog expire --expire=now --all; git commit -q --allow-empty -m later; git reset -q --hard HEAD~2",
        "GIT_COMMITTER_DATE=@1000000000 git reset -q --hard HEAD~1",
        "oxundo undo -q; git switch -q --detach; git branch -q -D main; git switch -q -c main refs/oxundo/timeline^",
    ];
    for script in moves {
        let repo = turn();
        // Reflogs know seconds only: what is done by hand comes later.
        repo.sh(&format!("export GIT_COMMITTER_DATE=@$(($(date +%s) + 60)); {script}"));
        start_anew(&repo.base());
        let before = (repo.state(), repo.refs());
        let status = repo.oxundo(["log"]);
        status.success();
        assert!(!status.err().contains("mended"), "{script}: {status:?}");
        assert!((repo.state(), repo.refs()) == before, "nothing is moved: {script}");
        assert!(fs::read(log(&repo)).expect("read the log").len() < 200, "it begins anew: {script}");
        repo.assert_sound();
    }
}

#[test]
fn what_git_has_purged_since_the_start_does_not_come_back() {
    let purge = "git reset -q --hard HEAD~1; git reflog expire --expire=now --all; git gc -q --prune=now";
    for tables in [false, true] {
        if tables && !Sandbox::has_tables() {
            continue;
        }
        let repo = if tables { Sandbox::with_tables(&[]) } else { Sandbox::new() };
        repo.turn(Mode::Commit, "echo more >>README.txt; echo new >new.txt");
        start_anew(&repo.base());
        repo.sh(purge);
        let (before, refs) = (repo.state(), repo.refs());
        let status = repo.oxundo(["status"]);
        status.success();
        assert!(!status.err().contains("mended"), "{status:?}");
        assert_eq!(before.difference(&repo.state()), "");
        assert_eq!(repo.refs(), refs, "no ref moves");
        repo.assert_sound();
    }
}

#[test]
fn what_is_out_of_reach_for_now_is_not_taken_for_lost() {
    let base = turn();
    let clone = base.beside("clone");
    base.sh("git clone -q --shared . ../clone; cp .git/config ../clone/.git/config");
    clone.sh("oxundo run -q -- sh -c 'echo turn >>README.txt'; git commit -q --allow-empty -m mine; git branch mine; git tag t");
    let (before, refs) = (clone.state(), clone.refs());
    let away = base.base().join("away");
    for (hidden, name) in [("repo/.git/objects", "an alternate"), ("clone/.git/objects/pack", "a pack")] {
        if name == "a pack" {
            clone.sh("git repack -q -d");
        }
        start_anew(&base.base());
        let hidden = base.base().join(hidden);
        let packs: Vec<_> = fs::read_dir(&hidden).expect("list it").flatten().map(|entry| entry.path()).collect();
        let pack = packs.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "pack"));
        // A link that leads nowhere near, as one that cannot be read: it fails for the superuser too.
        let place = pack.filter(|_| name == "a pack").unwrap_or(hidden);
        fs::rename(&place, &away).expect("take it away");
        if name == "a pack" {
            std::os::unix::fs::symlink(&place, &place).expect("make a link");
        }
        let looked = clone.oxundo(["status"]);
        assert!(!looked.err().contains("mended"), "{name}: {looked:?}");
        looked.warns("cannot look for what a power cut may have left");
        let changed = clone.oxundo(["undo"]);
        assert_ne!(changed.code, 0, "{name}: {changed:?}");
        let _ = fs::remove_file(&place);
        fs::rename(&away, &place).expect("bring it back");
        let after = clone.oxundo(["log"]);
        assert!(!after.err().contains("mended"), "{name}: {after:?}");
        assert_eq!(clone.refs(), refs, "{name}");
        assert_eq!(before.difference(&clone.state()), "", "{name}");
        clone.assert_sound();
    }
}

#[test]
fn what_is_staged_and_gone_is_made_again_from_the_file() {
    let repo = turn();
    repo.sh("echo staged >staged.txt; echo again >>README.txt; git add -A");
    let before = repo.state();
    repo.sh(
        "for f in staged.txt README.txt; do id=$(git rev-parse :$f); rm -f .git/objects/${id%${id#??}}/${id#??}; done",
    );
    start_anew(&repo.base());
    repo.oxundo(["status"]).success();
    repo.assert_sound();
    assert_eq!(before.difference(&repo.state()), "");
    repo.oxundo(["run", "--", "sh", "-c", "echo more >>staged.txt"]).success();
    repo.oxundo(["undo"]).success();
    assert_eq!(before.difference(&repo.state()), "");
}

#[test]
fn an_index_whose_end_never_came_to_the_disk_is_made_anew() {
    for skips in ["", "git config index.skipHash true; git update-index --force-write-index"] {
        for zeros in [20, 60, 150] {
            let repo = turn();
            repo.sh(&format!("seq 9 >more.txt; git add more.txt; {skips}"));
            repo.oxundo(["run", "--", "sh", "-c", "echo x >>new.txt"]).success();
            let index = repo.path(".git/index");
            let mut bytes = fs::read(&index).expect("read the index");
            let at = bytes.len() - zeros;
            bytes[at..].fill(0);
            fs::write(&index, bytes).expect("write the index");
            start_anew(&repo.base());
            let is_damaged = repo.try_git(["ls-files"]).code != 0 || skips.is_empty();
            let status = repo.oxundo(["status"]);
            status.success();
            assert_eq!(status.err().contains("the index made anew"), is_damaged, "{skips} {zeros}: {status:?}");
            repo.sh("git status; git fsck --full");
            repo.oxundo(["undo"]).success();
            repo.oxundo(["redo"]).success();
        }
    }
}

/// As if all that the log tells of were of two hours before the start of the system, and this file of one.
fn long_ago(repo: &Sandbox, later: &str) {
    let up: f64 = fs::read_to_string("/proc/uptime")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .expect("the system says how long it is up");
    let before = |hours: u64| SystemTime::now() - Duration::from_secs_f64(up) - Duration::from_secs(3600 * hours);
    for (path, hours) in [(log(repo), 2), (repo.path(later), 1)] {
        let file = fs::File::options().write(true).open(path).expect("open a file");
        file.set_modified(before(hours)).expect("set a time");
    }
}

#[test]
fn what_a_killed_command_was_about_to_do_does_not_come_about_after_a_restart() {
    for args in [&["undo"][..], &["run", "--", "sh", "-c", "echo later >>new.txt"]] {
        let repo = turn();
        let killed = repo.copy();
        repo.oxundo(args).success();
        // Killed when the log was flushed, and nothing else was done.
        fs::copy(log(&repo), log(&killed)).expect("copy the log");
        killed.sh(
            "echo mine >>README.txt; git commit -qam mine; echo staged >>new.txt; git add new.txt; echo more >more.txt",
        );
        start_anew(&killed.base());
        long_ago(&killed, ".git/index");
        let (before, refs) = (killed.state(), killed.refs());
        for looks in [["status"], ["log"]] {
            let output = killed.oxundo(looks);
            output.success();
            assert!(!output.err().contains("warning"), "{args:?}: {output:?}");
        }
        assert_eq!(before.difference(&killed.state()), "", "{args:?}");
        assert_eq!(killed.refs(), refs, "{args:?}");
        killed.oxundo(["run", "--", "sh", "-c", "echo next >next.txt"]).success();
        killed.oxundo(["undo"]).success();
        killed.assert_file("more.txt", "more\n", "it is the user's");
    }
}

#[test]
fn what_was_let_go_and_pruned_is_not_brought_back_in_pieces() {
    let repo = turn();
    repo.oxundo(["uninstall", "--purge"]).success();
    start_anew(&repo.base());
    repo.oxundo(["log"]).success();
    assert!(repo.refs().keys().all(|name| !name.contains("oxundo")), "a purge is for good: {:?}", repo.refs());
    let repo = turn();
    repo.sh("git for-each-ref --format='delete %(refname)' refs/oxundo refs/notes | git update-ref --stdin");
    repo.sh("git reset -q --hard HEAD~1; rm -f .git/oxundo/timeline");
    repo.prune();
    start_anew(&repo.base());
    repo.oxundo(["log"]).success();
    repo.assert_sound();
}

#[test]
fn doctor_names_what_no_log_tells_of_and_mends_it() {
    let repo = Sandbox::new();
    repo.git(["config", "oxundo.fsync", "false"]);
    repo.turn(Mode::Commit, "echo more >>README.txt");
    repo.sh("git branch spare; echo staged >>README.txt; git add README.txt");
    assert!(!repo.exists(".git/oxundo/log"), "nothing is logged");
    let object = repo.git_fed(&["hash-object", "-w", "--stdin"], b"somebody's");
    let object = format!(".git/objects/{}/{}", &object[..2], object[2..].trim());
    fs::remove_file(repo.path(&object)).expect("remove an object");
    let head = repo.head();
    for (path, what) in [
        (".git/refs/heads/spare", "names no object"),
        (".git/refs/heads/main", "names no object"),
        (".git/refs/oxundo/timeline", "names no object"),
        (".git/index", "the index cannot be read"),
        (&object, "is empty"),
    ] {
        repo.write(path, "");
        let doctor = repo.oxundo(["doctor"]);
        doctor.exits(1);
        doctor.says(what);
        doctor.says("mend: oxundo doctor --fix");
        repo.oxundo(["doctor", "--fix"]).warns("mended what a power cut has left");
        repo.oxundo(["doctor"]).success();
        repo.assert_sound();
        assert_eq!(repo.head(), head, "{path}");
        repo.git(["status"]);
    }
    assert_eq!(repo.git(["rev-parse", "spare"]), head, "its reflog told");
    repo.git(["reset", "-q", "--hard"]);
    repo.undo();
}

#[test]
fn any_worktree_mends_what_stops_git_in_all_of_them() {
    for removed in [false, true] {
        let repo = Sandbox::new();
        let linked = repo.linked("linked");
        linked.turn(Mode::Commit, "echo more >>README.txt");
        if removed {
            repo.git(["worktree", "remove", "--force", "../linked"]);
        }
        let timeline = repo.git(["rev-parse", "refs/oxundo/worktrees/linked/timeline"]);
        let file = format!(".git/objects/{}/{}", &timeline[..2], timeline[2..].trim());
        fs::remove_file(repo.path(&file)).expect("remove an object");
        repo.write(&file, "").write(".git/refs/oxundo/worktrees/linked/timeline", "");
        assert_ne!(repo.try_git(["log", "--all"]).code, 0, "git stops");
        start_anew(&repo.base());
        let log = repo.oxundo(["log"]);
        log.success();
        log.warns("mended what a power cut has left: 1 objects written again");
        assert_eq!(repo.git(["rev-parse", "refs/oxundo/worktrees/linked/timeline"]), timeline);
        repo.assert_sound();
        if !removed {
            linked.undo();
        }
    }
}

#[test]
fn the_log_is_private_and_what_is_too_much_for_it_is_not_in_it() {
    let repo = turn();
    assert_eq!(fs::metadata(log(&repo)).expect("look at the log").len() / 100_000, 0, "it is short");
    assert_eq!(repo.mode(log(&repo).to_str().expect("a plain path")) & 0o777, 0o600);
    // What chance makes is no shorter when it is compressed.
    repo.turn(Mode::Commit, "head -c 6000000 /dev/urandom >large; git add large");
    assert!(fs::metadata(log(&repo)).expect("look at the log").len() < 1_000_000, "the file system was flushed");
    repo.undo();
}
