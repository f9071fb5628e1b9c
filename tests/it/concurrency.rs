//! Several oxundos at once, and git beside them.

use crate::sandbox::{Mode, Output, Sandbox, State};
use serde_json::Value;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

// Several oxundos

/// Turns of eight at once in one worktree, and the state before each of them.
fn eight_turns() -> (Sandbox, Vec<State>) {
    let repo = Sandbox::new();
    let mut states = vec![repo.state()];
    for turn in 1..=8 {
        repo.agent(&format!("echo {turn} >>README.txt; echo {turn} >new{turn}"));
        states.push(repo.state());
    }
    (repo, states)
}

#[test]
fn of_eight_undos_at_once_each_undoes_a_turn_or_is_refused() {
    let (repo, states) = eight_turns();
    for (op, ends) in [("undo", [8, 0]), ("redo", [0, 8])] {
        let children: Vec<_> = (0..8).map(|_| repo.spawn(&[op])).collect();
        let mut done: usize = 0;
        for child in children {
            let output = Output::awaited(child);
            match output.code {
                0 => done += 1,
                3 => assert!(output.err().contains("another oxundo is at work"), "{output:?}"),
                _ => panic!("{op} works or is busy: {output:?}"),
            }
        }
        assert!(done > 0, "one of them works");
        let at = usize::abs_diff(ends[0], done);
        repo.state().assert_is(&states[at], &format!("{done} of eight {op}s were done, each whole"));
        let left = usize::abs_diff(at, ends[1]);
        if left > 0 {
            repo.oxundo([op, "--steps", &left.to_string()]).success();
        }
        repo.state().assert_is(&states[ends[1]], op);
    }
    repo.assert_sound();
}

#[test]
fn whoever_comes_second_is_told_who_was_first() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >>README.txt");
    let first = repo.spawn(&[
        "run",
        "--agent",
        "slow",
        "--",
        "sh",
        "-c",
        ": >../home/ready; until [ -e ../home/go ]; do sleep 0.05; done",
    ]);
    repo.wait_for("ready");
    let pid = first.id().to_string();
    for command in [&["undo"][..], &["redo"], &["undo", "--steps", "7"]] {
        let error = repo.refuses(command, "busy");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains("run slow") && message.contains(&pid), "{message}");
    }
    repo.signal("go");
    Output::awaited(first).success();
    repo.undo();
}

#[test]
fn eight_worktrees_lose_no_turn_no_note_and_no_commit() {
    let turns = if crate::form::is_thorough() { 25 } else { 5 };
    let repo = Sandbox::new();
    let trees: Vec<Sandbox> = (0..8).map(|n| repo.linked(&format!("tree{n}"))).collect();
    let before: Vec<State> = trees.iter().map(Sandbox::state).collect();
    std::thread::scope(|scope| {
        for tree in &trees {
            scope.spawn(move || {
                for turn in 0..turns {
                    tree.write("README.txt", format!("the user, before turn {turn}\n"));
                    let own = if turn % 3 == 0 { "git add work; git commit -qm own; " } else { "" };
                    tree.agent(&format!("echo {turn} >>work; {own}echo {turn} >>more"));
                }
            });
        }
    });
    for (tree, before) in trees.iter().zip(&before) {
        let log = tree.log();
        assert_eq!(log.len(), turns, "every turn is there");
        for turn in &log {
            let mut commits: Vec<&str> =
                turn["commits"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            commits.extend(turn["dirty_commit"].as_str());
            assert!(commits.len() > 1, "{turn}");
            for commit in commits {
                let note = tree.git(["notes", "--ref=oxundo", "show", commit]);
                assert!(note.contains(&format!("\"turn\":{}", turn["turn"])), "{note}");
                tree.git(["merge-base", "--is-ancestor", commit, "HEAD"]);
            }
        }
        tree.oxundo(["undo", "--steps", &turns.to_string()]).success();
        // The user's first edit is theirs.
        tree.write("README.txt", "readme\n");
        tree.git(["update-index", "-q", "--refresh"]);
        tree.state()
            .only(|fact| !fact.starts_with("ref "))
            .assert_is(&before.clone().only(|fact| !fact.starts_with("ref ")), "all are undone");
    }
    repo.assert_sound();
}

/// What git and its users do in a repository all the time. Not 'repack -a' or '-A', which takes packs away: beside 'gc' git's own
/// commits and stashes then lose objects, in every other or every fourth run of five seconds, without oxundo.
const HOUSEKEEPING: [&str; 5] = [
    // One after the other: beside each other git's own lose objects (`git_loses_objects_of_its_own…`).
    "git gc -q; git repack -dq; git prune --expire=2.weeks",
    "git pack-refs --all --prune",
    "git reflog expire --all",
    "git fetch -q --prune origin",
    "echo theirs >>theirs; git add theirs; git commit -qm theirs; echo more >>theirs; git stash -q; git stash drop -q",
];

/// git's own 'add' and 'commit' fail beside a 'gc' of its own now and then, without oxundo.
const TRY: &str = r#"try() { for i in 1 2 3 4 5; do "$@" && return; done; false; }; "#;

/// Turns, walks over them, hooks and collections in one worktree, until it is time; gives how many rounds there were.
fn work_beside(tree: &Sandbox, until: Instant) -> usize {
    for round in 0.. {
        if round > 1 && Instant::now() > until {
            return round;
        }
        tree.write("README.txt", format!("the user, before round {round}\n")).write("mine", format!("{round}\n"));
        let before = tree.files();
        match round % 3 {
            0 => drop(tree.agent(&format!(
                "{TRY} echo {round} >>work; try git add work; try git commit -qm own; echo {round} >>more"
            ))),
            1 => drop(tree.turn(Mode::Ghost, &format!("echo {round} >>work; rm mine"))),
            _ => {
                tree.oxundo(["turn", "begin", "--agent", "hooked"]).success();
                tree.write("work", format!("hooked {round}\n"));
                tree.oxundo(["turn", "end"]).success();
            }
        }
        let after = tree.files();
        for _ in 0..2 {
            tree.undo();
            tree.files().assert_is(&before, &format!("undo in round {round}"));
            tree.redo();
            tree.files().assert_is(&after, &format!("redo in round {round}"));
        }
        if round % 8 == 7 {
            tree.oxundo(["gc", "--keep", "now"]).success();
        }
        // All worktrees have one stash: whose entry is dropped, nobody knows.
        tree.sh(&format!(
            "{TRY} try git add -A; try git commit -q --allow-empty -m users; echo mine >>README.txt
            git stash -q || git checkout -q README.txt; git stash drop -q || :",
        ));
    }
    0
}

#[test]
fn beside_gits_housekeeping_no_command_fails_and_nothing_is_lost() {
    let seconds = std::env::var("OXUNDO_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    let trees = if seconds < 60 { 3 } else { 8 };
    let repo = Sandbox::new();
    repo.remote("origin").sh("git push -q origin main");
    let trees: Vec<Sandbox> = (0..trees).map(|n| repo.linked(&format!("tree{n}"))).collect();
    let (until, stop) = (Instant::now() + Duration::from_secs(seconds), AtomicBool::new(false));
    let kept = std::thread::scope(|scope| {
        for script in HOUSEKEEPING {
            let (repo, stop) = (&repo, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    // They fail beside each other now and then.
                    let _ = Output::of(&mut repo.shell(script));
                    std::thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let work: Vec<_> = trees.iter().map(|tree| scope.spawn(move || work_beside(tree, until))).collect();
        let kept: Vec<_> = work.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        stop.store(true, Ordering::Relaxed);
        kept
    });
    for (tree, rounds) in trees.iter().zip(kept) {
        let rounds = rounds.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        assert!(tree.log().len() >= rounds.min(50), "every turn is there, of {rounds}");
    }
    repo.assert_sound();
    assert_eq!(repo.sh("find .git -name '*.lock'"), "", "no lock is left");
}

/// A repack of git's, beside which another git writes a commit that it has had, as soon as the objects are packed, names it, and
/// packs what is loose.
const BESIDE_A_REPACK: &str = r#"
    cat >../home/make <<'MAKE'
        blob=$(echo same | git hash-object -w --stdin); tree=$(printf '100644 blob %s\tf\n' "$blob" | git mktree)
        commit=$(GIT_AUTHOR_DATE=@1600000000 GIT_COMMITTER_DATE=@1600000000 git commit-tree -m same "$tree")
        git update-ref refs/heads/kept "$commit"; git repack -dq 2>/dev/null
MAKE
    sh ../home/make; git update-ref -d refs/heads/kept
    mkdir ../home/core
    cat >../home/core/git <<GIT
#!/bin/sh
unset GIT_EXEC_PATH; PATH='$PATH'
git "\$@"; code=\$?
[ "\$1" != pack-objects ] || sh ../home/make
exit \$code
GIT
    chmod +x ../home/core/git
    GIT_EXEC_PATH=$PWD/../home/core git repack -qAd --unpack-unreachable=2.weeks.ago
    git rev-list --objects refs/heads/kept 2>&1"#;

#[test]
fn git_loses_objects_of_its_own_where_two_repack_beside_each_other() {
    // No fault of oxundo's, which is not run here: why the housekeeping above is done by one git at a time. One day it may be
    // mended.
    let repo = Sandbox::new();
    let output = Output::of(&mut repo.shell(BESIDE_A_REPACK));
    assert!(output.code != 0 && output.out().contains("bad object"), "git has mended it: {output:?}");
}

/// Refs packed, made and locked by others at an instant of oxundo's work.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod refs_of_others {
    use super::{Sandbox, fs};
    use crate::kill_points::{has_journal, in_parallel};
    use crate::sandbox::announce;
    use crate::tracer::{LAUNCH, Point, interrupt_at, interrupt_at_opening, trace};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    /// A turn that commits, leaves its branch, makes another and puts something on the stash.
    const TURN: [&str; 5] = [
        "run",
        "--",
        "sh",
        "-ec",
        "echo own >>README.txt; git commit -qam own; git branch made; git checkout -q -b topic; echo stashed >>README.txt
        git stash -q; echo more >>README.txt",
    ];

    #[derive(Clone, Copy, Debug)]
    enum Housekeeping {
        Repack,
        Prune,
    }

    #[derive(Clone, Copy, Debug)]
    enum Meddler {
        /// Makes a tag and packs all refs: none of them is loose then.
        Packs,
        /// Has git's lock on the packed refs for a moment, as any git that deletes a ref.
        Locks,
    }

    impl Meddler {
        fn act(self, repo: &Sandbox) {
            match self {
                Self::Packs => {
                    repo.git(["update-ref", "refs/tags/theirs", "base"]);
                    // Where oxundo has the lock they are not packed.
                    let _ = repo.try_git(["-c", "core.packedRefsTimeout=0", "pack-refs", "--all", "--prune"]);
                }
                Self::Locks => {
                    let lock = repo.path(".git/packed-refs.lock");
                    if fs::File::create_new(&lock).is_err() {
                        return;
                    }
                    // However long it takes, oxundo waits for it.
                    std::thread::spawn(move || {
                        std::thread::sleep(Duration::from_millis(50));
                        fs::remove_file(lock)
                    });
                }
            }
        }
    }

    /// The points of oxundo's own that have to do with refs.
    fn points(repo: &Sandbox, args: &[&str]) -> nix::Result<Vec<Point>> {
        let trace = trace(&mut repo.copy().launched_command(LAUNCH, args), None)?;
        let about_refs = |point: &Point| point.text.starts_with("oxundo: ") && point.text.contains("refs");
        Ok(trace.points.into_iter().filter(about_refs).collect())
    }

    #[test]
    fn whoever_packs_or_locks_the_refs_at_any_instant_loses_nothing_and_stops_nothing() {
        let thorough = crate::form::is_thorough();
        let start = Sandbox::new();
        start.sh("git config core.packedRefsTimeout 60000; git tag base");
        if let Err(error) = points(&start, &["status"]) {
            let skipped = format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})");
            assert!(!thorough, "{skipped}");
            return announce(&skipped);
        }
        let done = start.copy();
        done.oxundo(TURN).success();
        let packed = done.copy();
        packed.git(["pack-refs", "--all", "--prune"]);
        let undone = done.copy();
        undone.undo();
        let mut cases = Vec::new();
        let operations = [(&start, &TURN[..]), (&done, &["undo"]), (&packed, &["undo"]), (&undone, &["redo"])];
        for (repo, args) in operations {
            let points = points(repo, args).expect("it was traced before");
            assert!(points.len() > 10, "{args:?} moves refs: {points:#?}");
            for (at, point) in points.iter().enumerate() {
                for (way, meddler) in [Meddler::Packs, Meddler::Locks].into_iter().enumerate() {
                    if thorough || at % 20 == 10 * way {
                        cases.push((repo, args, point.clone(), meddler));
                    }
                }
            }
        }
        let met = AtomicUsize::new(0);
        let failures = in_parallel(&cases, |(repo, args, point, meddler)| {
            let repo = repo.copy();
            let before = repo.printed();
            // What is known from the last time saves calls: the last ones of a trace may not come.
            let is_met = Cell::new(false);
            let act = || {
                is_met.set(true);
                meddler.act(&repo);
            };
            let trace = interrupt_at(&mut repo.launched_command(LAUNCH, args), point.number, &act);
            let trace = trace.expect("it was traced before");
            assert_eq!(trace.code, Some(0), "{args:?} goes on when another {meddler:?}: {}", trace.stderr);
            assert!(!has_journal(&repo), "the journal is gone for good");
            let after = repo.printed();
            assert_ne!(after, before, "{args:?} does something");
            let (back, there) = if args[0] == "undo" { ("redo", "undo") } else { ("undo", "redo") };
            for (op, wanted) in [(back, &before), (there, &after)] {
                repo.oxundo([op]).success();
                repo.printed().assert_is(wanted, &format!("{op} after {args:?}"));
            }
            met.fetch_add(usize::from(is_met.get()), Ordering::Relaxed);
            if is_met.get() && matches!(meddler, Meddler::Packs) {
                assert_eq!(repo.git(["rev-parse", "theirs"]), repo.git(["rev-parse", "base"]), "their tag stays");
            }
            repo.assert_sound();
        });
        let failures: Vec<_> = failures
            .iter()
            .map(|(at, text)| format!("{:?} before {}\n{text}", cases[*at].3, cases[*at].2.text))
            .collect();
        assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
        let met = met.into_inner();
        assert!(met * 10 >= cases.len() * 9, "only {met} of {} instants came", cases.len());
        announce(&format!("{met} instants"));
    }

    /// The branches after a turn and its undo, during each of which another program does something just before oxundo
    /// opens this path.
    fn branches_after(path: &str, others: impl Fn(&Sandbox)) -> Option<String> {
        let repo = Sandbox::new();
        repo.sh("git branch first; git branch second");
        for args in [&["run", "--", "sh", "-c", "echo own >>README.txt"][..], &["undo"]] {
            let traced = interrupt_at_opening(&mut repo.launched_command(LAUNCH, args), path, 0, &|| others(&repo));
            match traced {
                Ok(trace) => assert_eq!(trace.code, Some(0), "{args:?} goes on: {}", trace.stderr),
                Err(error) => {
                    announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
                    return None;
                }
            }
        }
        repo.assert_sound();
        Some(repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads"]))
    }

    #[test]
    fn a_branch_that_is_deleted_while_the_branches_are_read_stops_nothing() {
        let deleted = Cell::new(0);
        let delete = |repo: &Sandbox| {
            deleted.set(deleted.get() + 1);
            repo.git(["branch", "-q", "-D", "first"]);
        };
        // It is gone when undo comes.
        if let Some(branches) = branches_after("refs/heads/first", delete) {
            assert_eq!((deleted.get(), branches.as_str()), (1, "main\nsecond"));
        }
    }

    #[test]
    fn branches_that_are_packed_while_they_are_read_are_not_missed() {
        let packed = Cell::new(0);
        let pack = |repo: &Sandbox| {
            packed.set(packed.get() + 1);
            repo.git(["pack-refs", "--all", "--prune"]);
        };
        // One that was missed before the turn would be taken for the turn's.
        if let Some(branches) = branches_after("refs/heads/", pack) {
            assert_eq!((packed.get(), branches.as_str()), (2, "first\nmain\nsecond"));
        }
    }

    fn pack_refs(repo: &Sandbox) {
        // Where oxundo has the lock they are not packed.
        let _ = repo.try_git(["-c", "core.packedRefsTimeout=0", "pack-refs", "--all", "--prune"]);
    }

    /// Runs a command in a copy for each time that it opens a path with this end, and has another program act just before.
    /// Gives how often that was, or nothing if no process can be traced here.
    fn before_each_opening(
        repo: &Sandbox,
        args: &[&str],
        path: &str,
        act: impl Fn(&Sandbox),
        check: impl Fn(&Sandbox, Option<i32>, &str),
    ) -> Option<usize> {
        for often in 0.. {
            let (repo, acted) = (repo.copy(), Cell::new(false));
            let others = || {
                acted.set(true);
                act(&repo);
            };
            let traced = interrupt_at_opening(&mut repo.launched_command(LAUNCH, args), path, often, &others);
            let Ok(trace) = traced else {
                announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
                return None;
            };
            if !acted.get() {
                return Some(often);
            }
            check(&repo, trace.code, &format!("{args:?}, before '{path}' is opened once more after {often} times"));
        }
        None
    }

    #[test]
    fn refs_that_are_packed_before_one_is_read_are_read_as_they_are() {
        let start = Sandbox::new();
        start.sh("git branch other; echo theirs >>README.txt; git stash -q; git commit -q --allow-empty -m theirs");
        start.remote("origin").sh("git push -q origin main");
        let done = start.copy();
        done.agent("echo own >>README.txt");
        let undone = done.copy();
        undone.undo();
        let [before, after] = [&start, &done].map(Sandbox::state);
        let run = &["run", "--", "sh", "-c", "echo own >>README.txt"][..];
        let nothing_missed = |repo: &Sandbox, code, what: &str| {
            assert_eq!(code, Some(0), "{what}");
            let made = repo.state();
            let walk = if made == before {
                [("redo", &after), ("undo", &before)]
            } else {
                [("undo", &before), ("redo", &made)]
            };
            for (op, wanted) in walk {
                repo.oxundo([op]).success();
                repo.state().assert_is(wanted, what);
            }
            repo.assert_sound();
        };
        let mut cases = Vec::new();
        for name in ["stash", "heads/main", "heads/other", "remotes/origin/main", "oxundo/timeline"] {
            for (repo, args) in [(&start, run), (&done, &["undo"]), (&undone, &["redo"])] {
                cases.push((repo, args, format!("repo/.git/refs/{name}")));
            }
        }
        let failures = in_parallel(&cases, |(repo, args, path)| {
            let times = before_each_opening(repo, args, path, pack_refs, nothing_missed);
            announce(&format!("{args:?}, '{path}': {times:?} times"));
        });
        assert_eq!(failures, []);
        done.sh("git update-ref refs/remotes/origin/main main");
        let refused = |repo: &Sandbox, code, what: &str| {
            assert_eq!(code, Some(3), "a published commit stays: {what}");
            repo.assert_sound();
        };
        let times = before_each_opening(&done, &["undo"], ".git/refs/remotes/origin/main", pack_refs, refused);
        assert!(times.is_none_or(|times| times > 0), "it is read");
    }

    #[test]
    fn new_objects_that_no_ref_names_yet_survive_a_repack_and_are_written_again_after_a_prune() {
        let start = Sandbox::new();
        start.commit("other", "other\n");
        start.write("new", "the user's\n").sh("echo dirty >>README.txt");
        let done = start.copy();
        done.agent("echo own >>new; echo own >own");
        done.sh("echo edited >>other");
        let undone = done.copy();
        undone.undo();
        let repack = |repo: &Sandbox| {
            repo.git(["repack", "-adq"]);
            repo.git(["prune-packed"]);
        };
        let whole = |repo: &Sandbox, code, what: &str| {
            assert_eq!(code, Some(0), "{what}");
            repack(repo);
            repo.assert_sound();
            let state = repo.state();
            let [there, back] = if repo.log()[0]["state"] == "done" { ["undo", "redo"] } else { ["redo", "undo"] };
            for op in [there, back] {
                repo.oxundo([op]).success();
            }
            repo.state().assert_is(&state, what);
        };
        let mut cases = Vec::new();
        for name in ["oxundo/timeline", "oxundo/pending", "notes/oxundo", "heads/main"] {
            let run = &["run", "--", "sh", "-c", "echo own >>new; echo own >own"][..];
            for (repo, args) in [(&start, run), (&done, &["undo"]), (&undone, &["redo"])] {
                let path = format!("repo/.git/refs/{name}.lock");
                if name == "oxundo/timeline" {
                    cases.push((repo, args, path.clone(), Housekeeping::Prune));
                }
                cases.push((repo, args, path, Housekeeping::Repack));
            }
        }
        // Whatever is in no ref goes, however young it is: at this instant, the new timeline.
        let prune = |repo: &Sandbox| drop(repo.git(["prune", "--expire=now"]));
        let failures = in_parallel(&cases, |(repo, args, path, housekeeping)| {
            let times = match housekeeping {
                Housekeeping::Repack => before_each_opening(repo, args, path, repack, whole),
                Housekeeping::Prune => before_each_opening(repo, args, path, prune, whole),
            };
            announce(&format!("{args:?}, '{path}': {times:?} times"));
        });
        assert_eq!(failures, []);
    }

    #[test]
    fn a_directory_of_refs_that_is_removed_before_a_lock_is_made_in_it_stops_nothing() {
        let repo = Sandbox::new();
        let before = repo.state();
        repo.agent("git branch made/deep; echo own >>README.txt");
        let after = repo.state();
        for (op, wanted) in [("undo", &before), ("redo", &after)] {
            // It is no file then, and git removes its directory.
            repo.git(["pack-refs", "--all", "--prune"]);
            let removed = Cell::new(false);
            let remove = || removed.set(fs::remove_dir(repo.path(".git/refs/heads/made")).is_ok());
            let lock = "refs/heads/made/deep.lock";
            // The first time finds none.
            let traced = interrupt_at_opening(&mut repo.launched_command(LAUNCH, &[op]), lock, 1, &remove);
            let Ok(trace) = traced else {
                return announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
            };
            assert!(removed.get(), "{op} has just made the directory");
            assert_eq!(trace.code, Some(0), "{}", trace.stderr);
            repo.state().assert_is(wanted, op);
        }
    }

    #[test]
    fn a_ref_that_others_put_where_undo_would_is_a_refusal() {
        let repo = Sandbox::new();
        repo.sh("git branch spare");
        repo.agent("git branch -q -D spare; echo own >>README.txt");
        let after = repo.state();
        let make = || drop(repo.git(["branch", "spare"]));
        let lock = "refs/heads/spare.lock";
        let Ok(trace) = interrupt_at_opening(&mut repo.launched_command(LAUNCH, &["undo"]), lock, 0, &make) else {
            return announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
        };
        assert_eq!(trace.code, Some(3), "{}", trace.stderr);
        repo.git(["branch", "-q", "-D", "spare"]);
        repo.state().assert_is(&after, "nothing else was changed");
    }

    #[test]
    fn a_commit_that_lands_between_plan_and_apply_stops_the_apply_and_stays() {
        let repo = Sandbox::new();
        repo.agent("echo 1 >>README.txt; echo new >new; mkdir empty");
        repo.write("mine.txt", "mine\n");
        for op in ["undo", "redo"] {
            let before = repo.printed();
            // The index is git's until it is replaced: what commits then goes around it.
            let commit = "c=$(GIT_AUTHOR_NAME=u git commit-tree -p HEAD -m user HEAD^{tree}) && git update-ref HEAD $c";
            let commit = || drop(repo.sh(commit));
            let mark = ".git/oxundo/index.mark";
            let Ok(trace) = interrupt_at_opening(&mut repo.launched_command(LAUNCH, &[op]), mark, 0, &commit) else {
                return announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
            };
            assert_eq!(trace.code, Some(3), "{}", trace.stderr);
            assert!(trace.stderr.contains("moved by something else"), "{}", trace.stderr);
            assert_eq!(repo.git(["log", "-1", "--format=%s"]), "user", "the user's commit stays");
            repo.git(["update-ref", "HEAD", "HEAD~1"]);
            repo.printed().assert_is(&before, &format!("all else is as it was before {op}"));
            assert_eq!(repo.git(["for-each-ref", "refs/oxundo/pending"]), "", "the journal is gone");
            repo.oxundo([op]).success();
        }
    }

    #[test]
    fn what_is_committed_just_before_the_dirty_commit_stays_in_the_index() {
        let repo = Sandbox::new();
        repo.commit("theirs", "one\n");
        repo.write("theirs", "two\n").write("README.txt", "dirty\n");
        let commit = || drop(repo.sh("git add theirs; git commit -qm theirs -- theirs"));
        let mark = ".git/oxundo/index.mark";
        let args = ["run", "--", "sh", "-c", "echo ran >ran"];
        let Ok(trace) = interrupt_at_opening(&mut repo.launched_command(LAUNCH, &args), mark, 0, &commit) else {
            return announce("SKIPPED, NOTHING IS PROVED: no process can be traced here");
        };
        assert_eq!(trace.code, Some(125), "{}", trace.stderr);
        assert_eq!(repo.git(["log", "-1", "--format=%s"]), "theirs", "their commit stays");
        assert_eq!(repo.git(["status", "--porcelain"]), " M README.txt", "what is committed is staged as it is");
    }
}

#[test]
fn what_happens_in_another_worktree_during_a_turn_is_not_undone() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        let other = repo.linked("other");
        let leaves = repo.linked("leaves");
        let before = repo.state();
        let script = "echo 1 >>README.txt; : >../home/ready; until [ -e ../home/go ]; do sleep 0.05; done
            echo stashed >s; git add s; git stash -q; git branch made";
        let mut args = vec!["run"];
        args.extend((mode == Mode::Ghost).then_some("--ghost"));
        args.extend(["--", "sh", "-ec", script]);
        let turn = repo.spawn(&args);
        repo.wait_for("ready");
        other.agent("echo other >>README.txt");
        other.sh("echo theirs >>README.txt; git stash -q");
        leaves.sh("git commit -q --allow-empty -m theirs; git checkout -q --detach");
        repo.signal("go");
        Output::awaited(turn).success();
        let shared = |repo: &Sandbox| {
            let theirs = ["ref refs/heads/other", "ref refs/heads/leaves"];
            repo.state().only(|fact| theirs.contains(&fact))
        };
        let theirs = shared(&repo);
        let tip = other.head();
        for _ in 0..2 {
            repo.undo();
            assert_eq!(repo.git(["stash", "list", "--format=%gs"]).lines().count(), 1, "their stash stays");
            shared(&repo).assert_is(&theirs, "their branches stay");
            let theirs_too = ["git stash list", "ref refs/heads/other", "ref refs/heads/leaves"];
            let ours = |state: State| state.only(|fact| !theirs_too.contains(&fact));
            ours(repo.state()).assert_is(&ours(before.clone()), "ours are undone");
            repo.redo();
            assert_eq!(repo.git(["stash", "list", "--format=%gs"]).lines().count(), 2, "ours is back");
            shared(&repo).assert_is(&theirs, "their branches stay");
        }
        assert_eq!(other.head(), tip);
        other.undo();
    }
}

#[test]
fn a_branch_that_two_worktrees_have_checked_out_is_not_moved_under_the_other() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >>README.txt");
    repo.git(["worktree", "add", "-qf", "../twin", "main"]);
    let error = repo.refuses(&["undo"], "branch");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("twin")), "{error}");
    repo.git(["worktree", "remove", "-f", "../twin"]);
    repo.undo();
}

// git beside them

#[test]
fn a_lock_that_git_holds_for_a_moment_is_waited_for() {
    let repo = Sandbox::new();
    let before = repo.state();
    repo.agent("echo 1 >>README.txt");
    let lock = repo.path(".git/index.lock");
    fs::write(&lock, "").expect("git locks the index");
    repo.git(["config", "oxundo.lockTimeout", "60000"]);
    let undo = repo.spawn(&["undo"]);
    let pid = format!("(pid {})", undo.id());
    while !fs::read_to_string(repo.path(".git/oxundo/lock")).is_ok_and(|holder| holder.contains(&pid)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // It is at work. What says when it meets git's lock? Nothing: if it takes longer there is only less to wait for.
    std::thread::sleep(Duration::from_millis(300));
    fs::remove_file(&lock).expect("git unlocks it");
    Output::awaited(undo).success();
    repo.git(["config", "--unset", "oxundo.lockTimeout"]);
    repo.state().assert_is(&before, "it is undone");
}

#[test]
fn a_lock_that_is_held_for_good_stops_everything_that_needs_it_and_stays() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >>README.txt");
    repo.git(["config", "oxundo.lockTimeout", "0"]);
    repo.sh("echo dirty >>README.txt");
    repo.write(".git/index.lock", "git's");
    let before = repo.everything();
    let run = repo.oxundo(["run", "--", "sh", "-c", "echo ran >ran"]);
    run.exits(125);
    assert!(run.err().contains("index.lock"), "{run:?}");
    repo.everything().assert_is(&before, "no turn begins, and the agent does not run");
    repo.assert_file(".git/index.lock", "git's", "the lock stays");
}

/// Whether the index has an extension of this signature.
fn has_extension(repo: &Sandbox, signature: &str) -> bool {
    repo.read(".git/index").windows(4).any(|bytes| bytes == signature.as_bytes())
}

#[test]
fn what_the_user_has_switched_on_in_the_index_survives() {
    for (name, setup, has) in [
        (
            "untracked cache",
            "git config core.untrackedCache true; git update-index --untracked-cache; git status -s",
            Some("UNTR"),
        ),
        ("split index", "git config core.splitIndex true; git update-index --split-index", Some("link")),
        ("version 4", "git config index.version 4; git update-index --index-version 4", None),
        (
            "fsmonitor",
            "printf '#!/bin/sh\\nprintf \"t\\\\0/\\\\0\"\\n' >../home/monitor; chmod +x ../home/monitor
             git config core.fsmonitor \"$PWD/../home/monitor\"; git update-index --fsmonitor; git status -s",
            Some("FSMN"),
        ),
    ] {
        for mode in Mode::tried() {
            let repo = Sandbox::new();
            repo.sh("for i in 1 2 3 4 5; do mkdir d$i; echo $i >d$i/f; done; git add -A; git commit -qm files");
            repo.sh(setup);
            repo.sh("echo staged >>d1/f; git add d1/f; echo unstaged >>d2/f; echo untracked >u");
            let version = repo.read(".git/index")[7];
            let before = repo.printed();
            repo.turn(mode, "echo x >>d3/f; rm d4/f; echo n >n; git add n; echo s >>d1/f");
            let after = repo.printed();
            for _ in 0..2 {
                repo.undo();
                repo.printed().assert_is(&before, &format!("{name}, {mode:?}: undone"));
                repo.redo();
                repo.printed().assert_is(&after, &format!("{name}, {mode:?}: redone"));
            }
            assert_eq!(repo.read(".git/index")[7], version, "{name}, {mode:?}: the index's version is kept");
            assert!(has.is_none_or(|signature| has_extension(&repo, signature)), "{name}, {mode:?}: it is still on");
        }
    }
}

#[test]
fn git_need_not_look_into_a_file_again() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.sh("for i in 1 2 3 4 5; do mkdir d$i; echo $i >d$i/f; done; git add -A; git commit -qm files; echo mine >>d5/f");
        // It compares stat data and refreshes none of them.
        let differing = || repo.git(["diff-files", "--name-only"]);
        repo.turn(mode, "echo x >>d1/f; rm d2/f; mv d3/f d3/g; chmod +x d4/f; echo n >n; git add n");
        let after = differing();
        for _ in 0..2 {
            repo.undo();
            assert_eq!(differing(), "d5/f", "{mode:?}: after undo");
            repo.redo();
            assert_eq!(differing(), after, "{mode:?}: after redo");
        }
    }
}

#[test]
fn no_hook_of_the_repository_runs_unasked() {
    let repo = Sandbox::new();
    repo.sh("mkdir hooks.d; for hook in pre-commit prepare-commit-msg commit-msg post-commit post-checkout post-index-change \
         reference-transaction pre-auto-gc post-rewrite post-merge pre-push; do
           printf '#!/bin/sh\\necho %s >>../home/hooks\\nexit 0\\n' $hook >hooks.d/$hook; chmod +x hooks.d/$hook
         done; git add -A; git commit -qm hooks");
    repo.agent("echo stashed >>README.txt; git stash -q");
    repo.undo();
    repo.git(["config", "core.hooksPath", "hooks.d"]);
    repo.sh("echo dirty >>README.txt; echo staged >s; git add -N s; rm ../home/hooks");
    let before = repo.everything();
    repo.agent("echo 1 >>README.txt; rm s; echo new >new");
    repo.undo();
    repo.redo();
    repo.undo();
    assert!(
        !repo.home().join("hooks").exists(),
        "these ran: {}",
        fs::read_to_string(repo.home().join("hooks")).unwrap_or_default()
    );
    repo.everything().only(|fact| !fact.contains("refs/oxundo") && !fact.contains("refs/notes")).assert_is(
        &before.only(|fact| !fact.contains("refs/oxundo") && !fact.contains("refs/notes")),
        "and core.hooksPath is as it was",
    );
}
