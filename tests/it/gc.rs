//! Old turns go; what can be undone, redone or was kept by age stays whole.

use crate::sandbox::{Mode, Sandbox, check_all};
use std::time::{Duration, Instant};

/// Turns 1 to `count`, each of one line in `README.txt`.
fn turns(repo: &Sandbox, count: usize) {
    for n in 1..=count {
        repo.agent(&format!("echo {n} >>README.txt"));
    }
}

#[test]
fn the_newest_turns_stay_and_lead_there_and_back() {
    let repo = Sandbox::new();
    repo.git(["config", "gc.auto", "0"]);
    turns(&repo, 3);
    let third = repo.state();
    turns(&repo, 50);
    let last = repo.state();
    let (code, gc) = repo.json(["gc", "--keep", "now", "--dry-run"]);
    assert_eq!((code, &gc["expired"], &gc["kept"]), (0, &serde_json::json!([1, 2, 3]), &50.into()), "{gc}");
    assert_eq!(
        repo.json(["log", "--all", "-n", "99"]).1["turns"].as_array().map(Vec::len),
        Some(53),
        "a dry run changes nothing"
    );
    let (_, gc) = repo.json(["gc", "--keep", "now"]);
    assert_eq!((&gc["expired"], &gc["dry_run"]), (&serde_json::json!([1, 2, 3]), &false.into()), "{gc}");
    assert!(gc["released_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{gc}");
    repo.state().assert_is(&last, "nothing of the user's changes");
    repo.prune();
    let log = repo.log();
    assert_eq!((log.len(), &log[49]["turn"]), (50, &4.into()), "the oldest that is left is the fourth");
    assert_eq!(repo.json(["status"]).1["undo_depth"], 50);
    repo.oxundo(["undo", "--steps", "50"]).success();
    repo.state().assert_is(&third, "every kept turn is undone");
    repo.oxundo(["undo"]).exits(4);
    repo.oxundo(["redo", "--steps", "50"]).success();
    repo.state().assert_is(&last, "and redone");
    repo.oxundo(["show", "2"]).exits(1);
    repo.oxundo(["diff", "0"]).exits(1);
    assert_eq!(repo.json(["gc", "--keep", "now"]).1["expired"], serde_json::json!([]), "nothing more to do");
    repo.assert_sound();
}

#[test]
fn nothing_young_goes() {
    let repo = Sandbox::new();
    turns(&repo, 2);
    repo.undo();
    repo.agent("echo other >>README.txt");
    let before = repo.everything();
    for args in [&["gc"] as &[_], &["gc", "--keep", "1d"], &["gc", "--keep", "never"]] {
        let output = repo.oxundo(args);
        output.success();
        output.says("Expired 0 turns, 3 kept");
    }
    repo.everything().assert_is(&before, "nothing changes");
    repo.git(["config", "oxundo.keep", "now"]);
    assert_eq!(repo.json(["gc"]).1["expired"], serde_json::json!([2]), "the turn that a new one took the place of");
    repo.undo();
    repo.undo();
    repo.assert_file("README.txt", "readme\n", "the others can be undone");
}

#[test]
fn old_rescue_checkpoints_go_too() {
    let repo = Sandbox::new();
    turns(&repo, 1);
    for _ in 0..26 {
        repo.undo();
        repo.redo();
    }
    let rescues = |repo: &Sandbox| {
        repo.git(["ls-tree", "-r", "-t", "--name-only", "refs/oxundo/timeline", "rescues/"])
            .lines()
            .filter(|path| path.ends_with("/checkpoint.json"))
            .count()
    };
    assert_eq!((rescues(&repo), &repo.json(["gc", "--keep", "1d"]).1["rescues"]), (52, &0.into()), "they are young");
    assert_eq!(repo.json(["gc", "--keep", "now"]).1["rescues"], 2);
    assert_eq!(rescues(&repo), 50, "the newest stay");
    repo.undo();
    repo.assert_file("README.txt", "readme\n", "and undo works");
}

#[test]
fn the_state_before_an_expired_turn_is_not_found() {
    let repo = Sandbox::new();
    turns(&repo, 52);
    repo.oxundo(["gc", "--keep", "now"]).success();
    for args in [&["branch", "early", "0"] as &[_], &["restore", "0"], &["show", "1"]] {
        let (code, value) = repo.json(args);
        assert_eq!((code, &value["error"]["code"]), (1, &"not_found".into()), "{args:?}: {value}");
    }
}

/// Below it and above it others have expired: no walk leads over what nothing tells of.
#[test]
fn a_kept_turn_below_what_has_expired_has_a_branch_and_those_above_it_are_redone_from_there() {
    let repo = Sandbox::new();
    turns(&repo, 54);
    repo.oxundo(["keep", "3"]).success();
    repo.oxundo(["gc", "--keep", "now"]).success();
    let last = repo.state();
    repo.refuses(&["undo", "--to", "3"], "branch");
    let refusal = repo.oxundo(["undo", "--to", "3"]);
    refusal.warns("of what was done between turn 3 and turn 5 there is no record any more");
    refusal.warns("run 'oxundo branch turn-3 3' to start a branch at turn 3");
    repo.sh("git reset -q --hard HEAD~51");
    let refusal = repo.oxundo(["redo", "--to", "54"]);
    refusal.exits(3);
    let fourth = repo.git(["log", "-1", "--format=%h", "ORIG_HEAD~50"]);
    let line = format!("git merge --ff-only {fourth}");
    refusal.warns(&format!("run '{line}' first"));
    repo.sh(&line);
    repo.oxundo(["redo", "--to", "54"]).success();
    repo.state()
        .assert_is(&last, "those above what has expired are there again, and the kept one was left where it is");
    repo.oxundo(["branch", "turn-3", "3"]).success();
    repo.assert_file("README.txt", "readme\n1\n2\n3\n", "it leads there");
    repo.undo();
    repo.state().assert_is(&last, "and back");
}

#[test]
fn a_malformed_age_is_a_usage_error() {
    let repo = Sandbox::new();
    turns(&repo, 1);
    for args in [["gc", "--keep", "soon"], ["gc", "--keep", "-1"], ["gc", "--keep", ""]] {
        repo.oxundo(args).exits(2);
    }
}

#[test]
fn what_is_moved_aside_is_counted_and_freed() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        let make = "dd if=/dev/zero of=large.bin bs=1024 count=11264 2>/dev/null; mkdir -p node_modules/locked; echo x >node_modules/locked/file; chmod 500 node_modules/locked";
        repo.turn(mode, make);
        repo.undo();
        let (_, gc) = repo.json(["gc", "--keep", "now"]);
        let bytes = |gc: &serde_json::Value, key: &str| gc[key].as_u64().unwrap_or_else(|| panic!("{key}: {gc}"));
        assert!(bytes(&gc, "aside_bytes") >= 11 << 20, "it can be redone: {gc}");
        assert_eq!(bytes(&gc, "freed_bytes"), 0, "{gc}");
        repo.redo();
        assert_eq!(repo.read("large.bin").len(), 11 << 20, "and it is");
        repo.undo();
        repo.turn(mode, "echo two >README.txt");
        let (_, gc) = repo.json(["gc", "--keep", "now", "--dry-run"]);
        assert!(bytes(&gc, "freed_bytes") >= 11 << 20, "{gc}");
        let output = repo.oxundo(["gc", "--keep", "now"]);
        output.says("11.0 MiB freed");
        assert_eq!(repo.sh("find .git/oxundo/aside -type f | wc -l").trim(), "0", "its space is free");
        repo.undo();
        repo.assert_file("README.txt", "readme\n", "what is left is undone");
    }
}

#[test]
fn an_amended_away_commit_is_held_as_long_as_its_turn() {
    let repo = Sandbox::new();
    let lost = {
        repo.agent("echo a >a; git add a; git commit -qm a");
        let lost = repo.head();
        repo.agent("git commit -q --amend -m b");
        lost
    };
    let after = repo.state();
    repo.oxundo(["gc", "--keep", "now"]).success();
    repo.prune();
    repo.undo();
    assert_eq!(repo.head(), lost, "both turns are among the newest");
    repo.redo();
    repo.state().assert_is(&after, "and redo works");
}

#[test]
fn old_turns_go_by_themselves_once_a_day() {
    let repo = Sandbox::new();
    turns(&repo, 52);
    let numbers = |repo: &Sandbox| {
        let (_, log) = repo.json(["log", "--all", "-n", "99"]);
        let turns = log["turns"].as_array().expect("turns").clone();
        turns.iter().filter_map(|turn| turn["turn"].as_u64()).collect::<Vec<_>>()
    };
    let looked = |repo: &Sandbox| repo.path(".git/oxundo/gc").metadata().and_then(|about| about.modified()).ok();
    let last = looked(&repo);
    assert!(last.is_some(), "more than fifty turns are looked at");
    repo.git(["config", "oxundo.keep", "now"]);
    repo.agent("echo 53 >>README.txt");
    assert_eq!((looked(&repo), numbers(&repo).len()), (last, 53), "not twice a day");

    repo.git(["config", "oxundo.keep", "never"]);
    repo.sh("touch -d '2 days ago' .git/oxundo/gc");
    let last = looked(&repo);
    repo.agent("echo 54 >>README.txt");
    assert_eq!((looked(&repo), numbers(&repo).len()), (last, 54), "nor against the user's will");

    repo.git(["config", "oxundo.keep", "now"]);
    repo.agent("echo 55 >>README.txt");
    assert_ne!(looked(&repo), last, "now it is time");
    let end = Instant::now() + Duration::from_secs(60);
    while numbers(&repo).len() > 50 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(numbers(&repo), (6..=55).rev().collect::<Vec<_>>(), "in the background");
    repo.oxundo(["undo", "--steps", "50"]).success();
    repo.assert_sound();
}

#[test]
fn over_the_size_that_is_allowed_the_oldest_turns_go_and_no_more_than_must() {
    let repo = Sandbox::new();
    repo.git(["config", "gc.auto", "0"]);
    repo.oxundo(["gc"]).says("oxundo takes ");
    // A mebibyte each, that nothing else has; the newest 50 always stay.
    for _ in 0..4 {
        repo.turn(Mode::Ghost, "head -c 1048576 /dev/urandom >random");
    }
    for n in 0..50 {
        repo.turn(Mode::Ghost, &format!("echo {n} >random"));
    }
    let taken = |args: &[&str]| repo.json(args).1["taken_bytes"].as_u64().expect("it is told");
    let all = taken(&["gc", "--dry-run"]);
    assert!(all > 4 << 20, "each is there: {all}");
    let most = all - (3 << 19);
    repo.git(["config", "oxundo.maxSize", &most.to_string()]);
    let (_, doctor) = repo.json(["doctor"]);
    let said =
        doctor["findings"].as_array().into_iter().flatten().any(|it| it["message"].to_string().contains("maxSize"));
    assert!(said, "{doctor}");
    assert_eq!(taken(&["status"]), doctor["about"]["taken_bytes"].as_u64().expect("it is told"));
    // A turn's state before is the one after the turn below: of the first, nothing of its mebibyte goes.
    let (_, gc) = repo.json(["gc", "--keep", "never"]);
    assert_eq!((&gc["expired"], &gc["kept"]), (&serde_json::json!([1, 2, 3]), &51.into()), "{gc}");
    let left = taken(&["status"]);
    assert!((most - (1 << 20)..=most).contains(&left), "{left} of {most}");
    repo.oxundo(["status"]).says("oxundo takes ");
    repo.prune();
    assert_eq!(repo.json(["doctor"]).1["about"]["taken_bytes"].as_u64().expect("it is told") >> 20, left >> 20);
    repo.git(["config", "oxundo.maxSize", "1k"]);
    repo.oxundo(["gc", "--keep", "never"]).warns("more than oxundo.maxSize, 1.0 KiB");
    assert_eq!(repo.log().len(), 50, "the newest stay");
    repo.oxundo(["undo", "--steps", "50"]).success();
    repo.assert_sound();
}

#[test]
fn what_may_be_the_only_copy_of_something_of_the_users_is_no_matter_of_age_or_size() {
    let repo = Sandbox::new();
    repo.write("precious", "mine\n").write("edited", "mine too\n");
    repo.turn(Mode::Ghost, "rm precious");
    repo.turn(Mode::Ghost, "echo agent >edited");
    for n in 0..51 {
        repo.turn(Mode::Ghost, &format!("echo {n} >edited"));
    }
    let gone = |args: &[&str]| repo.json(args).1["expired"].clone();
    assert_eq!(gone(&["gc", "--keep", "now"]), serde_json::json!([3]), "the agent's own goes");
    repo.oxundo(["gc", "--keep", "now"]).warns("oxundo gc --drop-user");
    repo.git(["config", "oxundo.maxSize", "1k"]);
    assert_eq!(gone(&["gc", "--keep", "never"]), serde_json::json!([]));
    repo.oxundo(["gc", "--keep", "never"]).warns("oxundo gc --drop-user");
    repo.prune();
    repo.oxundo(["restore", "1:before", "--", "precious"]).success();
    repo.assert_file("precious", "mine\n", "it is there");
    // Turn 4 is none of the newest any more.
    assert_eq!(gone(&["gc", "--keep", "now"]), serde_json::json!([1, 4]), "a file has it now");
    assert_eq!(gone(&["gc", "--keep", "now", "--drop-user"]), serde_json::json!([2]), "at the user's word");
    assert_eq!(repo.json(["log"]).1["turns"].as_array().map(Vec::len), Some(50));
}

#[test]
fn the_turns_of_a_removed_worktree_expire_as_others_do() {
    let repo = Sandbox::new();
    let linked = repo.linked("tree");
    // So many that two are older than the newest fifty.
    for n in 1..=52 {
        linked.turn(Mode::Ghost, &format!("echo {n} >>README.txt"));
    }
    repo.agent("echo one >one.txt");
    assert_eq!(repo.json(["gc", "--keep", "now"]).1["removed_worktrees"], serde_json::json!([]), "it is there");
    repo.git(["worktree", "remove", "--force", "../tree"]);
    let before = repo.everything();
    let wanted = serde_json::json!([{"worktree": "tree", "expired": [1, 2], "kept": 50}]);
    assert_eq!(repo.json(["gc", "--keep", "1d"]).1["removed_worktrees"], serde_json::json!([]), "they are young");
    assert_eq!(repo.json(["gc", "--keep", "now", "--dry-run"]).1["removed_worktrees"], wanted);
    repo.everything().assert_is(&before, "a look changes nothing");
    repo.copy().oxundo(["gc", "--keep", "now"]).says("of the removed worktree 'tree': 2 turns, 50 kept");
    assert_eq!(repo.json(["gc", "--keep", "now"]).1["removed_worktrees"], wanted);
    repo.prune();
    assert_eq!(repo.oxundo(["show", "tree:3:README.txt"]).out(), "readme\n1\n2\n3");
    assert_eq!(repo.json(["show", "tree:2"]).1["error"]["code"], "not_found");
    assert_eq!(repo.json(["log", "--all", "-n", "99"]).1["turns"].as_array().map(Vec::len), Some(51));
    repo.undo();
    repo.assert_absent("one.txt", "the turns here are not touched");
    repo.assert_sound();
}

#[test]
fn a_rescue_with_the_users_version_of_what_an_undo_replaced_is_no_matter_of_age() {
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "echo agent >edited");
    repo.write("edited", "mine\n");
    repo.oxundo(["undo", "--edits=overwrite"]).success();
    for n in 0..51 {
        repo.turn(Mode::Ghost, &format!("echo {n} >other"));
        repo.undo();
    }
    assert_eq!(repo.copy().json(["gc", "--keep", "now"]).1["rescues"], 1, "those that have the agent's alone go");
    repo.oxundo(["gc", "--keep", "now"]).warns("oxundo gc --drop-user");
    repo.prune();
    repo.oxundo(["restore", "rescue:1", "--", "edited"]).success();
    repo.assert_file("edited", "mine\n", "it is there");
    repo.undo();
    let copy = repo.copy();
    copy.oxundo(["gc", "--keep", "now", "--drop-user"]).success();
    assert_eq!(copy.json(["restore", "rescue:1"]).1["error"]["code"], "not_found", "at the user's word");
    repo.sh("echo mine >edited; git add edited; git commit -qm mine");
    assert!(!repo.oxundo(["gc", "--keep", "now"]).err().contains("--drop-user"), "a branch has it now");
    assert_eq!(repo.json(["restore", "rescue:1"]).1["error"]["code"], "not_found");
}

/// What is in no file any more, but in the index, on a branch, or in what a rebase had put by.
#[test]
fn what_only_git_had_of_the_users_is_no_matter_of_age_either() {
    let rebasing = "echo theirs >README.txt; git commit -qam theirs; git switch -qc side HEAD~1; echo ours >README.txt
        git commit -qam ours; echo mine >tracked; git add tracked; git rebase -q --autostash main 2>/dev/null || true";
    // What the user does, what agents do in the first turns, and whether the last of these has the only copy of something of the
    // user's.
    let cases = [
        ("a branch is deleted", "git branch own $(git commit-tree -m own HEAD^{tree})", "git branch -qD own", true),
        ("a branch goes back", "echo o >own; git add own; git commit -qm own", "git reset -q --hard HEAD~1", true),
        ("HEAD goes", "git switch -q --detach; git commit -qm own --allow-empty", "git switch -q main", true),
        ("something staged goes", "echo one >own; git add own; echo two >own", "git add own", true),
        ("a rebase is thrown away", rebasing, "rm -rf .git/rebase-merge", true),
        (
            "another branch has it",
            "git switch -qc other; git commit -qm own --allow-empty; git branch own",
            "git branch -qD own",
            false,
        ),
        (
            "it was an agent's",
            "true",
            "echo o >own; git add own; git commit -qm own | git reset -q --hard HEAD~1",
            false,
        ),
        ("an agent had staged it", "true", "echo one >own; git add own; echo two >own | git add own", false),
        ("the file has it", "echo one >own; git add own", "git reset -q", false),
    ];
    let cases = cases.map(|(name, users, agents, is_sole)| (name.to_owned(), (users, agents, is_sole)));
    check_all(cases, |&(users, agents, is_sole)| {
        let repo = Sandbox::new();
        repo.write("tracked", "tracked\n");
        repo.sh("git add tracked; git commit -qm tracked");
        repo.sh(users);
        let agents: Vec<_> = agents.split(" | ").collect();
        for script in &agents {
            repo.turn(Mode::Ghost, script);
        }
        for n in 0..51 {
            repo.turn(Mode::Ghost, &format!("echo {n} >later"));
        }
        let gone = |repo: &Sandbox, args: &[&str]| repo.json(args).1["expired"].clone();
        let older = 1..=agents.len() + 1;
        let wanted: Vec<_> = older.filter(|number| !is_sole || *number != agents.len()).collect();
        assert_eq!(gone(&repo.copy(), &["gc", "--keep", "now"]), serde_json::json!(wanted));
        if !is_sole {
            return;
        }
        repo.oxundo(["gc", "--keep", "now"]).warns("oxundo gc --drop-user");
        repo.prune();
        repo.oxundo(["show", "1:before"]).success();
        repo.assert_sound();
        assert_eq!(
            gone(&repo.copy(), &["gc", "--keep", "now", "--drop-user"]),
            serde_json::json!([1]),
            "at their word"
        );
    });
}

#[test]
fn a_turn_that_dropped_what_the_user_had_stashed_is_no_matter_of_age() {
    let repo = Sandbox::new();
    repo.sh(
        "echo mine >README.txt; echo new >new.txt; git stash push -q -u; echo other >README.txt; git stash push -q",
    );
    let entry = repo.git(["rev-parse", "stash@{1}"]).trim().to_owned();
    repo.turn(Mode::Ghost, "git stash drop -q stash@{1}");
    repo.turn(Mode::Ghost, "echo agent >README.txt; git stash push -q");
    repo.turn(Mode::Ghost, "git stash drop -q");
    for n in 0..51 {
        repo.turn(Mode::Ghost, &format!("echo {n} >other.txt"));
    }
    let gone = |repo: &Sandbox, args: &[&str]| repo.json(args).1["expired"].clone();
    assert_eq!(gone(&repo, &["gc", "--keep", "now"]), serde_json::json!([2, 3, 4]), "the agent's own goes");
    repo.prune();
    repo.git(["cat-file", "-e", &entry]);
    let copy = repo.copy();
    assert_eq!(gone(&copy, &["gc", "--keep", "now", "--drop-user"]), serde_json::json!([1]), "at the user's word");
    repo.sh("echo mine >README.txt; echo new >new.txt");
    assert_eq!(gone(&repo, &["gc", "--keep", "now"]), serde_json::json!([1]), "files have it now");
}

/// git keeps such an entry, and shows no list.
#[test]
fn a_stash_entry_that_its_reflog_does_not_know_is_lost_by_no_undo() {
    for rest in ["true", "git stash drop -q"] {
        let repo = Sandbox::new();
        repo.sh("echo one >one; echo two >two; git add .; git commit -qm files; echo mine >>one; git stash -q");
        let mine = repo.git(["rev-parse", "refs/stash"]);
        repo.sh("git reflog expire --expire=now --all");
        repo.agent(&format!("echo its >>two; git stash -q; {rest}; echo more >>two"));
        repo.undo();
        assert_eq!(repo.git(["rev-parse", "refs/stash"]), mine, "{rest}");
        assert_eq!(repo.git(["stash", "list", "--format=%H"]), mine, "{rest}: and it is in the list again");
        repo.redo();
        repo.undo();
        repo.sh("git gc -q --prune=now");
        assert_eq!(repo.git(["stash", "show", "-p", "-U0"]).lines().last(), Some("+mine"), "{rest}");
    }
}

#[test]
fn an_undo_leaves_a_later_stash_entry_of_which_the_reflog_was_wiped() {
    let repo = Sandbox::new();
    repo.sh("echo one >one; git add .; git commit -qm files; echo mine >>one; git stash -q");
    repo.agent("git stash pop -q");
    repo.sh("echo more >>one; git stash -q; rm .git/logs/refs/stash");
    let later = repo.git(["rev-parse", "refs/stash"]);
    repo.undo();
    assert_eq!(repo.git(["stash", "list", "--format=%H"]).lines().count(), 2, "its own, and the later one");
    assert!(repo.git(["stash", "list", "--format=%H"]).contains(&later));
}
