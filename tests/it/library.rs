//! The library as another front end uses it.

use crate::house::code;
use crate::sandbox::{Output, Sandbox};
use crate::steps::{call, hook};
use oxundo::{Applied, Code, Edits, Made, Mode, Operation, Phase, Preview, Progress, RelativePath, Warning};
use oxundo::{Redo, Restore, State, TurnInfo, Undo, Worktree};
use serde_json::json;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn ready() -> (Sandbox, Worktree) {
    let repo = Sandbox::new();
    let worktree = opened(&repo);
    (repo, worktree)
}

fn opened(repo: &Sandbox) -> Worktree {
    repo.git(["config", "commit.gpgSign", "false"]);
    Worktree::open(repo.root()).expect("it is a repository")
}

fn by(agent: &str, message: &str) -> TurnInfo {
    TurnInfo::by(agent).message(message)
}

/// What a preview would do to files.
fn actions(preview: &Preview) -> Vec<String> {
    preview.plan.files.iter().map(|file| format!("{} {}", file.action, file.path)).collect()
}

#[test]
fn turns_are_made_listed_undone_and_redone() {
    let (repo, worktree) = ready();
    let before = repo.state();
    let (first, second) = (by("editor", "first"), by("editor", "second").session("s1"));
    assert_eq!(worktree.end(&first).expect("nothing to end").turn, None);
    assert_eq!(worktree.begin(&first).map(|began| began.turn), Ok(1));
    assert_eq!(worktree.end(&first).expect("it ends").turn, None, "what changed nothing is no turn");
    worktree.begin(&first).expect("it begins");
    repo.write("a.txt", "one\n");
    let turn = worktree.end(&first).expect("it ends").turn.expect("it changed something");
    assert_eq!((turn.number, turn.label.as_str(), turn.interrupted), (1, "editor: first", false));
    assert_eq!((turn.commits.len(), turn.commits[0].id.to_string()), (1, repo.head()), "ids are git's");
    assert_eq!((turn.mode, turn.branch.as_deref(), turn.state), (Mode::Commit, Some("main"), State::Done));
    worktree.begin(&second).expect("it begins");
    repo.write("b.txt", "two\n");
    let turn = worktree.abort(&second).expect("it ends").turn.expect("it changed something");
    assert!(turn.interrupted);
    assert_eq!((turn.session.as_deref(), turn.participants.len()), (Some("s1"), 1));
    let after = repo.state();

    let outcome = worktree.undo(Undo::last(2)).expect("both are undone");
    assert_eq!((outcome.turns, outcome.rescue.is_some()), (vec![2, 1], true));
    assert_eq!((outcome.summary.as_str(), outcome.warnings), ("Undid turns 2, 1", vec![]));
    assert_eq!(outcome.plan.head.to.commit.map(|id| id.to_string()), Some(repo.head()));
    repo.state().assert_is(&before, "undo is exact");
    let states: Vec<_> = worktree.list(9).expect("a list").turns.into_iter().map(|turn| turn.state).collect();
    assert_eq!(states, [State::Undone, State::Undone]);
    worktree.redo(Redo::to("2")).expect("both are redone");
    repo.state().assert_is(&after, "redo is exact");
    let list = worktree.list_all(1).expect("a list").turns;
    assert_eq!((list.len(), list[0].number, &list[0].files[0].path), (1, 2, &"b.txt".into()));
}

#[test]
fn the_tests_themselves_heed_nothing_of_the_developers_environment() {
    let theirs = Sandbox::new();
    theirs.sh("git config --file ../home/.gitconfig oxundo.mode ghost");
    let before = theirs.everything();
    let mut tests = Command::new(std::env::current_exe().expect("the tests are a program"));
    tests.args(["--exact", "library::turns_are_made_listed_undone_and_redone"]);
    tests.env("GIT_DIR", theirs.root().join(".git")).env("GIT_WORK_TREE", "/").env("OXUNDO_MODE", "ghost");
    tests.env("HOME", theirs.home()).env("GIT_CONFIG_GLOBAL", theirs.home().join(".gitconfig"));
    let output = Output::of(&mut tests);
    output.success();
    output.says("1 passed");
    theirs.everything().assert_is(&before, "no turn is made in the repository that the environment names");
}

#[test]
fn only_what_was_looked_at_is_done() {
    let (repo, worktree) = ready();
    repo.agent("echo 1 >>README.txt; echo 1 >a.txt");
    let preview = worktree.preview(Undo::last(1)).expect("a plan");
    assert_eq!(actions(&preview), ["write README.txt", "delete a.txt"]);
    assert_eq!(preview.plan.branches[0].name, "main");
    repo.write("README.txt", "mine\nreadme\n1\n");
    let now = repo.everything();
    let error = worktree.apply(&preview).expect_err("it is another plan now");
    assert_eq!((error.code, error.hints.len()), (Code::Conflict, 1), "{error}");
    repo.everything().assert_is(&now, "nothing is changed");
    let preview = worktree.preview(Undo::last(1)).expect("a plan");
    assert_eq!(preview.plan.kept_edits, ["README.txt"]);
    worktree.apply(&preview).expect("it is done");
    repo.assert_file("README.txt", "mine\nreadme\n", "the user's edit stays");
    assert_eq!(worktree.preview(Undo::last(1)).expect_err("nothing is left").code, Code::Nothing);
}

#[test]
fn every_operation_is_looked_at_and_then_applied() {
    let operations = [
        Undo::only("2").into(),
        Undo::last(1).paths(["f"]).into(),
        Operation::from(Restore::of("1")),
        Restore::exact("1").into(),
    ];
    for operation in operations {
        let (repo, worktree) = ready();
        repo.agent("seq 9 >f");
        repo.agent("sed -i '9s/.*/two/' f");
        let preview = worktree.preview(operation).expect("a plan");
        let looked_at = repo.read("f");
        repo.sh("sed -i '1s/.*/mine/' f");
        let now = repo.everything();
        let error = worktree.apply(&preview).expect_err("it is another plan now");
        assert_eq!((error.code, &error.hints[..]), (Code::Conflict, &["look at the plan again".to_owned()][..]));
        repo.everything().assert_is(&now, "nothing is changed");
        repo.write("f", looked_at);
        // A commit made in a later second than the one that was looked at has another id.
        std::thread::sleep(Duration::from_millis(1100));
        let outcome = worktree.apply(&preview).expect("it is as it was looked at");
        assert_eq!(outcome.turn, Some(3), "{}", outcome.summary);
        repo.assert_file("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "as turn 1 left it");
        worktree.undo(Undo::last(1)).expect("it is a turn like any other");
    }
}

#[test]
fn a_step_a_sessions_share_and_an_exact_state_are_plans_as_all_others() {
    let repo = Sandbox::new();
    for session in ["one", "two"] {
        hook(&repo, session, "UserPromptSubmit", &json!({}));
    }
    for session in ["one", "two"] {
        let path = format!("{session}.txt");
        let input = json!({"file_path": repo.path(&path)});
        call(&repo, session, 1, "Write", &input, &format!("echo {session} >{path}"));
    }
    for session in ["one", "two"] {
        hook(&repo, session, "Stop", &json!({}));
    }
    repo.write("own.txt", "own\n");
    let operations = [
        (Operation::from(Undo::to("1.1")), &["delete two.txt"][..]),
        (Undo::only("1.1").into(), &["delete one.txt"]),
        (Undo::session("two").into(), &["delete two.txt"]),
        (Restore::exact("1.1").into(), &["delete own.txt", "delete two.txt"]),
    ];
    for (operation, wanted) in operations {
        let repo = repo.copy();
        let (worktree, before) = (opened(&repo), repo.state());
        let preview = worktree.preview(operation).expect("a plan");
        assert_eq!(actions(&preview), wanted);
        repo.state().assert_is(&before, "a look changes nothing");
        let outcome = worktree.apply(&preview).expect("it is done");
        assert_eq!(outcome.turn, Some(2), "it is a turn of its own: {}", outcome.summary);
        for action in wanted {
            repo.assert_absent(action.trim_start_matches("delete "), "it is gone");
        }
        let is_exact = wanted.len() == 2;
        if is_exact { worktree.undo(Undo::last(1)) } else { worktree.redo(Redo::next(1)) }.expect("the way back");
        repo.state().assert_is(&before, "all is there again");
    }
    let worktree = opened(&repo);
    let whole = [
        Operation::from(Undo::to("1.1").paths(["x"])),
        Undo::session("two").paths(["x"]).into(),
        Restore::exact("1").paths(["x"]).into(),
    ];
    for operation in whole {
        assert_eq!(worktree.preview(operation).expect_err("it goes as a whole").code, Code::Usage);
    }
}

#[test]
fn one_turn_or_some_paths_are_taken_back() {
    let (repo, worktree) = ready();
    for n in 1..=3 {
        repo.agent(&format!("echo {n} >f{n}; echo {n} >'g[{n}]'"));
    }
    let all = repo.state();
    let outcome = worktree.undo(Undo::only("2")).expect("it is taken out");
    assert_eq!((outcome.turns, outcome.turn), (vec![2], Some(4)));
    repo.assert_absent("f2", "turn 2 made it");
    repo.assert_file("f3", "3\n", "later turns stay");
    assert_eq!(worktree.list(1).expect("a list").turns[0].made, Some(Made::Revert(vec![2])));
    worktree.redo(Redo::next(1)).expect("it is brought back");
    repo.state().assert_is(&all, "redo is exact");

    let files = worktree.list(1).expect("a list").turns.remove(0).files;
    let odd = files.iter().find(|file| file.path == "g[3]").expect("a name with signs in it");
    worktree.undo(Undo::last(1).paths([odd.path.pathspec()])).expect("a listed path can be handed back");
    repo.assert_absent("g[3]", "it is taken back");
    repo.assert_file("f3", "3\n", "the rest stays");
    worktree.undo(Undo::only("1").paths(["f*"])).expect("so is a pathspec, of one turn");
    repo.assert_absent("f1", "it is taken back");
    repo.assert_file("g[1]", "1\n", "the rest stays");

    let now = repo.everything();
    let nothing: [&str; 0] = [];
    assert_eq!(worktree.undo(Undo::last(1).paths(nothing)).expect_err("no path").code, Code::Nothing);
    assert_eq!(worktree.restore(Restore::of("1").paths(nothing)).expect_err("no path").code, Code::Nothing);
    assert_eq!(worktree.undo(Undo::last(1).paths(["no"])).expect_err("no such path").code, Code::NotFound);
    assert_eq!(worktree.undo(Undo::only("9")).expect_err("no such turn").code, Code::NotFound);
    let overwrite = Undo::only("3").edits(Edits::Overwrite);
    assert_eq!(worktree.undo(overwrite).expect_err("later turns' work").code, Code::Usage);
    repo.everything().assert_is(&now, "a refusal changes nothing");
}

#[test]
fn states_are_named_compared_read_restored_and_let_go() {
    let (repo, worktree) = ready();
    repo.agent("echo 1 >a.txt");
    assert_eq!(worktree.checkpoint(Some("here")).expect("a name").name, "here");
    assert_eq!(worktree.checkpoint(Some("here")).expect_err("it is taken").code, Code::Usage);
    assert_eq!(worktree.checkpoint(None).expect("a name of its own").name, "c1");
    repo.agent("echo 2 >a.txt; echo 2 >b.txt");
    let changes = worktree.changes("here", Some("2")).expect("changes").files;
    assert_eq!(
        changes.iter().map(|file| (file.path.to_string(), file.status)).collect::<Vec<_>>(),
        [("a.txt".to_owned(), 'M'), ("b.txt".to_owned(), 'A')]
    );
    assert!(worktree.changes("2", None).expect("none").files.is_empty(), "the worktree is as after turn 2");
    let patch = worktree.diff("here", Some("2"), "a.txt").expect("a patch").text;
    let patch = String::from_utf8(patch).expect("it is text");
    assert!(patch.starts_with("diff --git a/a.txt b/a.txt\n") && patch.ends_with("@@ -1 +1 @@\n-1\n+2\n"), "{patch}");
    repo.git(["config", "color.ui", "always"]);
    repo.write("b.txt", "3\n");
    let patch = worktree.diff("2", None, "b.txt").expect("a patch").text;
    assert!(patch.ends_with(b"@@ -1 +1 @@\n-2\n+3\n"), "{}", String::from_utf8_lossy(&patch));
    assert_eq!(worktree.diff("2", None, "a.txt").expect("none").text, b"");
    repo.write("b.txt", "2\n");
    assert_eq!(worktree.read("here", "a.txt"), Ok(b"1\n".to_vec()));
    assert_eq!(worktree.read("here", "b.txt").expect_err("it came later").code, Code::NotFound);
    let preview = worktree.preview(Restore::of("here").paths(["a.txt"])).expect("a plan");
    assert_eq!(actions(&preview), ["write a.txt"]);
    repo.assert_file("a.txt", "2\n", "a plan changes nothing");
    assert_eq!(worktree.restore(Restore::of("here")).expect("it is restored").turn, Some(3));
    repo.assert_file("a.txt", "1\n", "as it was");
    worktree.undo(Undo::last(1)).expect("it is a turn like any other");
    repo.assert_file("a.txt", "2\n", "and taken back");
    let gone = worktree.preview_gc(Some(Duration::ZERO)).expect("what would go");
    assert_eq!((gone.expired, gone.kept, gone.dry_run), (vec![], 3, true), "the newest stay");
    let gone = worktree.gc(Some(Duration::ZERO)).expect("it goes");
    assert_eq!((gone.expired, gone.kept, gone.dry_run), (vec![], 3, false));
}

#[test]
fn a_listed_path_can_be_handed_back_whatever_its_bytes() {
    let (repo, worktree) = ready();
    // The last is called what the one that is not UTF-8 is quoted as.
    let names: [&[u8]; 4] = [b"a b", b"caf\xe9\n", "caf\u{e9}".as_bytes(), br#""caf\351\n""#];
    for (at, name) in names.into_iter().enumerate() {
        let info = by("editor", "names");
        worktree.begin(&info).expect("it begins");
        repo.write(name, "one\n");
        let turn = worktree.end(&info).expect("it ends").turn.expect("it made a file");
        let list = worktree.list(1).expect("a list").turns.remove(0);
        let number = turn.number.to_string();
        let changes = worktree.changes(&format!("{number}:before"), Some(&number)).expect("changes").files;
        for files in [turn.files, list.files, changes] {
            assert_eq!(files.iter().map(|file| file.path.as_bytes()).collect::<Vec<_>>(), [name]);
            assert_eq!(worktree.read(&number, &files[0].path), Ok(b"one\n".to_vec()));
            assert!(!worktree.diff("0", None, &files[0].path).expect("a patch").text.is_empty());
        }
        if at == 1 {
            let path = RelativePath::from(name);
            assert_eq!((path.to_string().as_str(), format!("{path:?}").is_ascii()), (r#""caf\351\n""#, true));
            repo.write(name, "two\n");
            let error = worktree.undo(Undo::last(1)).expect_err("an edit of the user's");
            assert_eq!((error.code, &*error.paths), (Code::Conflict, &[path][..]), "{error}");
            repo.write(name, "one\n");
        }
    }
}

#[test]
fn the_status_says_what_the_buttons_need() {
    let (repo, worktree) = ready();
    let status = worktree.status().expect("a status");
    assert_eq!((status.can_undo(), status.can_redo(), status.undo_depth, status.redo_depth), (false, false, 0, 0));
    assert_eq!((status.branch.as_deref(), status.mode, status.undo_refusal), (Some("main"), Mode::Commit, None));
    repo.agent("echo 1 >a.txt");
    repo.agent("echo 2 >b.txt");
    worktree.undo(Undo::last(1)).expect("it is undone");
    let status = worktree.status().expect("a status");
    assert_eq!((status.can_undo(), status.can_redo(), status.undo_depth, status.redo_depth), (true, true, 1, 1));
    assert_eq!(status.last.map(|turn| turn.number), Some(1));
    repo.write("a.txt", "mine\n").write("b.txt", "mine\n");
    let now = repo.everything();
    let status = worktree.status().expect("a status");
    assert_eq!((status.can_undo(), status.can_redo(), status.undo_depth, status.redo_depth), (false, false, 1, 1));
    for (refusal, path) in [(status.undo_refusal, "a.txt"), (status.redo_refusal, "b.txt")] {
        let refusal = refusal.expect("the user's edits are in the way");
        assert_eq!((refusal.code, refusal.paths.len()), (Code::Conflict, 1), "{refusal}");
        assert!(refusal.paths[0] == path && !refusal.hints.is_empty(), "{refusal}");
    }
    repo.everything().assert_is(&now, "a look changes nothing");
    worktree.begin(&by("editor", "more")).expect("it begins");
    let open = worktree.status().expect("a status").open.expect("it is open");
    assert_eq!((open.number, open.state, open.ended_at), (3, State::Open, None));
    worktree.end(&by("editor", "more")).expect("it ends");

    let run =
        repo.spawn(&["run", "--", "sh", "-c", "touch ../home/ready; while [ ! -e ../home/go ]; do sleep .02; done"]);
    repo.wait_for("ready");
    let busy = worktree.status().expect("a status");
    let refusals = [busy.undo_refusal, busy.redo_refusal, worktree.undo(Undo::last(1)).err()];
    assert_eq!(refusals.map(|refusal| refusal.map(|refusal| refusal.code)), [const { Some(Code::Busy) }; 3]);
    repo.signal("go");
    Output::awaited(run).success();
}

#[test]
fn every_error_has_its_code() {
    let (repo, worktree) = ready();
    let elsewhere = repo.base().join("nothing-here");
    std::fs::create_dir(&elsewhere).expect("make a directory");
    assert_eq!(Worktree::open(&elsewhere).expect_err("it is in no repository").code, Code::NotFound);
    assert_eq!(Worktree::open(&elsewhere.join("no")).expect_err("it is not there").code, Code::Io);
    let codes = |undo: Undo| worktree.undo(undo).map_err(|error| error.code).map(|outcome| outcome.turns);
    assert_eq!(codes(Undo::last(1)), Err(Code::Nothing));
    assert_eq!(codes(Undo::to("9")), Err(Code::NotFound));
    assert_eq!(worktree.redo(Redo::next(1)).expect_err("nothing is undone").code, Code::Nothing);
    assert_eq!(worktree.changes("9", None).expect_err("no such state").code, Code::NotFound);
    assert_eq!(worktree.checkpoint(Some("@~1")).expect_err("no name").code, Code::Usage);
    repo.agent("echo 1 >a.txt");
    assert_eq!(worktree.redo(Redo::to("0")).expect_err("it is behind").code, Code::Usage);
    repo.write("a.txt", "mine\n");
    assert_eq!(codes(Undo::last(1).edits(Edits::Merge)), Err(Code::Conflict));
    assert_eq!(codes(Undo::last(1).edits(Edits::Refuse)), Err(Code::Conflict));
    repo.write("a.txt", "1\n");
    let mine = repo.commit("mine.txt", "mine\n");
    let error = worktree.undo(Undo::last(1)).expect_err("a commit of the user's");
    assert_eq!((error.code, error.commits.len()), (Code::Foreign, 1), "{error} {mine}");
    assert_eq!(error.commits[0].to_string(), repo.head());
    repo.git(["switch", "-q", "-c", "other", "HEAD~2"]);
    assert_eq!(codes(Undo::last(1)), Err(Code::Branch));
    repo.sh("git switch -q main; git reset -q --hard HEAD~; git update-ref refs/remotes/origin/main HEAD");
    assert_eq!(codes(Undo::last(1)), Err(Code::Published));
    repo.sh("git update-ref -d refs/remotes/origin/main; git rev-parse HEAD >.git/MERGE_HEAD");
    assert_eq!(codes(Undo::last(1)), Err(Code::InProgress));
    repo.sh("rm .git/MERGE_HEAD; touch .git/index.lock");
    assert_eq!(codes(Undo::last(1)), Err(Code::Locked));
    repo.sh("rm .git/index.lock; git update-ref refs/oxundo/timeline HEAD");
    assert_eq!(worktree.list(1).expect_err("that is no timeline").code, Code::Corrupt);
}

/// The one warning that there is.
#[track_caller]
fn assert_warned(warnings: &[Warning], begins: &str) {
    let told: Vec<_> = warnings.iter().map(ToString::to_string).collect();
    assert!(told.len() == 1 && told[0].starts_with(begins), "'{begins}': {told:?}");
}

#[test]
fn warnings_come_with_the_turn_that_they_are_about() {
    let repo = Sandbox::new();
    repo.append_to_config("[oxundo]\n\tmaxFileSize = 100\n\tonUndo = false\n\tverify = true\n");
    let worktree = opened(&repo);
    let info = by("editor", "work");
    repo.write("big", "x".repeat(200));
    assert_warned(&worktree.begin(&info).expect("it begins").warnings, "not covered by undo: big");
    repo.write("big", "y".repeat(300)).write("a.txt", "1\n");
    let ended = worktree.end(&info).expect("it ends");
    assert_warned(&ended.warnings, "the turn changed 'big', which undo does not cover");
    let preview = worktree.preview(Undo::last(1)).expect("a plan");
    assert_warned(&preview.warnings, "'big' was changed too, and is not covered");
    let done = worktree.apply(&preview).expect("it is done").warnings;
    assert_warned(&done[..1], "'big' was changed too, and is not covered");
    assert_warned(&done[1..], "oxundo.onUndo failed: ");

    assert_eq!(worktree.begin(&info).expect("it begins").warnings, []);
    repo.write("id_ed25519", "key\n");
    assert_warned(&worktree.end(&info).expect("it ends").warnings, "not committed: id_ed25519 (looks like a secret)");

    worktree.begin(&info).expect("it begins");
    repo.write("b.txt", "1\n")
        .write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
        .chmod(".git/hooks/pre-commit", 0o755);
    assert_warned(&worktree.end(&info).expect("it ends").warnings, "the turn's changes were not committed: ");
    repo.sh("rm .git/hooks/pre-commit");

    worktree.begin(&info).expect("it begins");
    repo.sh("echo a >b.txt; git add b.txt; git rev-parse HEAD >.git/MERGE_HEAD");
    assert_warned(
        &worktree.end(&info).expect("it ends").warnings,
        "the turn's changes were not committed: the agent left a merge in progress",
    );
    assert_warned(&worktree.begin(&info).expect("it begins").warnings, "recorded without commits: ");
    repo.sh("rm .git/MERGE_HEAD");
    worktree.end(&info).expect("it ends");

    repo.sh("git add -A; git commit -qm mine");
    worktree.begin(&info).expect("it begins");
    repo.sh("id=$(git hash-object -w b.txt); printf '100644 %s 1\\tc\\n100644 %s 2\\tc\\n' $id $id | git update-index --index-info");
    assert_warned(
        &worktree.end(&info).expect("it ends").warnings,
        "the turn's changes were not committed: the agent left 'c' unmerged",
    );
}

#[test]
fn warnings_come_with_the_call_that_finds_things_out_of_order() {
    let (repo, worktree) = ready();
    let info = by("editor", "work");
    worktree.begin(&info).expect("it begins");
    repo.write("a.txt", "1\n");
    let preview = worktree.preview(Undo::last(1)).expect("a plan");
    assert_eq!((preview.turns, preview.warnings.len()), (vec![1], 0), "a look closes nothing");
    assert_eq!(worktree.checkpoint(Some("@~1")).expect_err("no name").code, Code::Usage);
    assert_eq!(worktree.status().expect("a status").open.map(|turn| turn.number), Some(1));
    assert_warned(
        &worktree.undo(Undo::last(1)).expect("it is undone").warnings,
        "closed turn 1, in which editor was at work",
    );
}

#[cfg(target_os = "linux")]
#[test]
fn warnings_of_what_changes_while_it_is_read_come_with_the_call_that_reads_it() {
    // It is written whenever it is read.
    let Some(repo) = crate::fuse::Mounted::new(&["busy"]) else { return };
    repo.write("busy.log", "busy\n");
    let began = opened(&repo).begin(&by("editor", "work")).expect("it begins");
    assert_warned(&began.warnings, "'busy.log' kept changing while it was read");
}

#[test]
fn an_interrupted_operation_is_told_of() {
    let (repo, worktree) = ready();
    repo.agent("mkdir d; for i in $(seq 200); do echo $i >d/$i; done; head -c 30000000 /dev/urandom >z");
    repo.undo();
    let journal = repo.path(".git/refs/oxundo/pending");
    for _ in 0..100 {
        let mut child = repo.spawn(&["redo", "-q"]);
        while !journal.exists() && child.try_wait().expect("look at it").is_none() {
            std::hint::spin_loop();
        }
        child.kill().expect("kill it");
        child.wait().expect("it is gone");
        if !journal.exists() {
            let _ = repo.oxundo(["undo", "-q"]);
            continue;
        }
        repo.write("d/1", "mine\n");
        let warnings = worktree.list(1).expect("a list").warnings;
        assert!(warnings[0].message.ends_with("an interrupted operation: redo 1 (sh)"), "{warnings:?}");
        assert_warned(&warnings[1..], "left 'd/1' as it is: it was changed since");
        assert_eq!(worktree.list(1).expect("a list").warnings, [], "once");
        return;
    }
    panic!("no kill came between the journal and its end");
}

#[test]
fn threads_share_a_worktree_and_take_turns() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let (repo, worktree) = ready();
    is_shared(&worktree);
    is_shared(&worktree.status().expect("a status"));
    repo.agent("echo 1 >a.txt");
    std::thread::scope(|scope| {
        let walker = scope.spawn(|| {
            for _ in 0..5 {
                let preview = worktree.preview(Undo::last(1)).expect("a plan");
                worktree.apply(&preview).expect("it is undone");
                worktree.redo(Redo::next(1)).expect("it is redone");
            }
        });
        while !walker.is_finished() {
            let list = worktree.list(5).expect("a list").turns;
            assert_eq!((list.len(), list[0].number), (1, 1));
            assert!(matches!(list[0].state, State::Done | State::Undone), "{:?}", list[0].state);
            assert_eq!(worktree.read("1", "a.txt"), Ok(b"1\n".to_vec()));
        }
    });
    repo.assert_file("a.txt", "1\n", "it is redone");
    repo.assert_sound();
}

#[test]
fn patience_is_the_callers() {
    let (repo, worktree) = ready();
    repo.agent("echo 1 >a.txt");
    let lock = std::fs::File::options().write(true).open(repo.path(".git/oxundo/lock")).expect("open the lock");
    lock.lock().expect("take it");
    for patience in [Duration::ZERO, Duration::from_millis(300)] {
        worktree.set_patience(patience);
        let start = Instant::now();
        assert_eq!(worktree.undo(Undo::last(1)).expect_err("it is taken").code, Code::Busy);
        assert_eq!(worktree.begin(&by("editor", "m")).expect_err("it is taken").code, Code::Busy);
        assert!(start.elapsed() >= patience * 2 && start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    }
    worktree.set_patience(Duration::from_secs(60));
    std::thread::scope(|scope| {
        let undo = scope.spawn(|| worktree.undo(Undo::last(1)));
        std::thread::sleep(Duration::from_millis(100));
        lock.unlock().expect("let go of it");
        undo.join().expect("no panic").expect("it has waited");
    });
}

#[test]
fn what_takes_its_time_is_told() {
    let (repo, worktree) = ready();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = Arc::clone(&told);
    worktree.set_progress(move |progress| {
        if let Progress::Begins(phase, files) = progress {
            listener.lock().expect("nobody panics").push((phase, files));
        }
    });
    worktree.begin(&by("editor", "m")).expect("it begins");
    repo.write("a.txt", "one\n");
    worktree.end(&by("editor", "m")).expect("it ends");
    worktree.undo(Undo::last(1)).expect("it is undone");
    let told = told.lock().expect("nobody panics");
    for phase in [Phase::Scan, Phase::Read, Phase::Apply] {
        assert!(told.contains(&(phase, 1)), "{phase:?}: {told:?}");
    }
}

/// The words of a text that are names of types.
fn type_names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| word.len() > 1 && word.starts_with(|c: char| c.is_ascii_uppercase())).collect()
}

/// The public signatures, fields and variants of a source, and what its types implement by hand.
fn public_surface(code: &str) -> String {
    let mut surface = String::new();
    let (mut in_signature, mut in_enum) = (false, false);
    for line in code.lines().filter(|line| !line.trim_start().starts_with(['/', '#'])) {
        let text = line.trim_start();
        let is_trait = line.starts_with("impl") && line.contains(" for ");
        in_signature |= is_trait || text.starts_with("pub fn") || text.starts_with("pub type");
        let is_item = text.starts_with("pub ") && !text.starts_with("pub use");
        // Of a variant, what it holds.
        let held = text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        in_enum &= line != "}";
        if in_signature || is_item || in_enum {
            surface.push_str(if in_enum { held } else { text });
            surface.push('\n');
        }
        in_enum |= line.starts_with("pub enum");
        in_signature &= !text.ends_with(['{', ';']);
    }
    surface
}

/// The names in a public surface that are neither the library's own nor the standard library's.
fn foreign_names<'a>(surface: &'a str, exported: &BTreeSet<&str>) -> Vec<&'a str> {
    let standard = "String Vec Option Self Box Path Duration Send Sync Into AsRef From Display Debug PartialEq OsString \
                    IntoIterator Item Fn Formatter";
    let standard = type_names(standard);
    let mut foreign: Vec<&str> =
        type_names(surface).into_iter().filter(|name| !standard.contains(name) && !exported.contains(name)).collect();
    foreign.extend(["gix", "bstr", "anyhow", "serde", "model::"].into_iter().filter(|name| surface.contains(name)));
    foreign
}

#[test]
fn what_is_public_names_no_type_of_another_crate() {
    let sources = code();
    let source = |name: &str| &sources.iter().find(|(source, _)| source == name).expect("it is there").1;
    let (library, _) = source("lib.rs").split_once("#[cfg(feature = \"cli\")]\npub use").expect("the API comes first");
    let exported: Vec<&str> = library.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next()).collect();
    let exported = exported.join("\n");
    assert!(!exported.contains("gix") && !exported.contains("model"), "{exported}");
    let exported = type_names(&exported);
    assert!(exported.len() > 30, "{exported:?}");
    for (name, code) in sources.iter().filter(|(name, _)| name.starts_with("api/")) {
        assert_eq!(foreign_names(&public_surface(code), &exported), Vec::<&str>::new(), "{name}");
    }
    for (name, item) in [
        ("error/mod.rs", "enum Code"),
        ("ops/list.rs", "enum State"),
        ("progress.rs", "enum Phase"),
        ("progress.rs", "enum Progress<"),
        ("warning.rs", "struct Warning"),
    ] {
        let (_, rest) = source(name).split_once(&format!("pub {item}")).expect("it is declared");
        let body = rest.split("\n}").next().unwrap_or_default();
        let declared = public_surface(&format!("pub {item}{body}\n}}\n"));
        assert_eq!(foreign_names(&declared, &exported), Vec::<&str>::new(), "{name}: {item}");
    }
    for breach in [
        "pub fn id(&self) -> ObjectId {",
        "pub fn read(\n    &self,\n    path: &BStr,\n) -> u64 {",
        "    pub id: Option<gix::ObjectId>,",
        "impl From<ObjectId> for Id {",
        "pub enum Path {\n    Bytes(BString),\n}",
        "pub plan: crate::model::plan::Plan,",
    ] {
        assert!(!foreign_names(&public_surface(breach), &exported).is_empty(), "{breach}");
    }
}

#[test]
fn the_process_belongs_to_the_front_end() {
    let having = |words: &str| -> Vec<String> {
        code().into_iter().filter(|(_, code)| code.contains(words)).map(|(name, _)| name).collect()
    };
    let allowed = |words: &str, places: &[&str]| {
        let others: Vec<_> =
            having(words).into_iter().filter(|name| !places.iter().any(|place| name.starts_with(place))).collect();
        assert_eq!(others, Vec::<String>::new(), "{words}");
    };
    // A `run`'s agent, git's own pager, and what a command is to do when it is interrupted.
    allowed("signal_hook::", &["agents/spawn.rs", "git/repo/process.rs", "program/"]);
    allowed("spawn::run", &["program/"]);
    allowed("print_diff(", &["program/", "git/objects/print.rs"]);
    allowed("print_tree(", &["program/", "git/objects/print.rs"]);
    allowed("set_current_dir", &["program/"]);
    allowed("set_var", &[]);
    allowed("process::exit", &["program/"]);
}

#[test]
fn a_worktree_that_is_open_for_long_sees_what_others_do() {
    let (repo, worktree) = ready();
    let before = repo.state();
    repo.agent("echo 1 >a.txt");
    assert_eq!(worktree.status().expect("a status").undo_depth, 1);
    repo.agent("echo 2 >a.txt");
    repo.sh("git repack -adq; git pack-refs --all; git prune-packed; git switch -q -c other; git switch -q main");
    assert_eq!(worktree.list(9).expect("a list").turns.len(), 2);
    assert_eq!(worktree.read("1", "a.txt"), Ok(b"1\n".to_vec()));
    repo.git(["branch", "-D", "other"]);
    worktree.undo(Undo::last(2)).expect("they are undone");
    repo.state().assert_is(&before, "undo is exact");
    repo.git(["config", "oxundo.mode", "ghost"]);
    assert_eq!(worktree.status().expect("a status").mode, Mode::Ghost, "settings are those of now");
}

#[test]
fn a_plan_is_applied_by_its_id_once_whoever_asks() {
    let (repo, worktree) = ready();
    let before = repo.state();
    repo.agent("echo 1 >a.txt");
    let after = repo.state();
    let plan = worktree.plan(Undo::last(1)).expect("a plan");
    assert_eq!(worktree.preview(Undo::last(1)).expect("a plan").id, plan.id, "the same would be done");
    repo.state().assert_is(&after, "to plan changes nothing");
    let unknown = worktree.apply_plan("no-such-plan");
    assert!(matches!(&unknown, Applied::Refused(error) if error.code == Code::NotFound), "{unknown:?}");
    // Two ask at once: it is one undo.
    let other = Worktree::open(repo.root()).expect("it is a repository");
    let (one, two) = std::thread::scope(|scope| {
        let (one, two) = (scope.spawn(|| worktree.apply_plan(&plan.id)), scope.spawn(|| other.apply_plan(&plan.id)));
        (one.join().expect("no panic"), two.join().expect("no panic"))
    });
    assert!(one.is_done() && two.is_done(), "{one:?} {two:?}");
    let counted = [one, two].into_iter().filter(|applied| matches!(applied, Applied::Done(_))).count();
    assert_eq!(counted, 1);
    repo.state().assert_is(&before, "it is undone");
    assert_eq!(repo.json(["apply", &plan.id]).0, 0, "the command line says the same");
    worktree.redo(Redo::next(1)).expect("it is redone");
    let applied = worktree.apply_plan(&plan.id);
    assert!(
        matches!(&applied, Applied::DoneBefore(what) if what.starts_with("Undid turn 1 (sh); it was taken back")),
        "{applied:?}"
    );
    repo.state().assert_is(&after, "and is not undone again by a plan of before");

    let plan = worktree.plan(Restore::of("1:before")).expect_err("nothing would be restored");
    assert_eq!(plan.code, Code::Nothing);
    let plan = worktree.plan(Undo::last(1).paths(["a.txt"])).expect("a plan");
    repo.write("a.txt", "2\n");
    let applied = worktree.apply_plan(&plan.id);
    assert!(matches!(&applied, Applied::Refused(error) if error.code == Code::Stale), "{applied:?}");
    repo.assert_file("a.txt", "2\n", "nothing is touched");
}

#[test]
fn what_fails_on_its_way_is_rolled_back_and_says_so() {
    let (repo, worktree) = ready();
    repo.agent("echo 1 >a.txt; echo 2 >b.txt");
    let plan = worktree.plan(Undo::last(1)).expect("a plan");
    let after = repo.state();
    // The files are written by then.
    repo.write(".git/refs/heads/main.lock", "");
    let applied = worktree.apply_plan(&plan.id);
    assert!(matches!(&applied, Applied::RolledBack(error) if error.code == Code::Locked), "{applied:?}");
    repo.sh("rm .git/refs/heads/main.lock");
    repo.state().assert_is(&after, "everything is as it was");
    repo.write(".git/index.lock", "");
    let applied = worktree.apply_plan(&plan.id);
    assert!(matches!(&applied, Applied::Refused(error) if error.code == Code::Stale), "{applied:?}");
    repo.sh("rm .git/index.lock");
    assert!(worktree.apply_plan(&plan.id).is_done(), "the plan is still the same");
    repo.assert_absent("a.txt", "undone");
}

#[test]
fn two_worktrees_in_two_threads_keep_out_of_each_others_way() {
    let repos = [Sandbox::new(), Sandbox::new()];
    let before = repos.each_ref().map(Sandbox::state);
    let (directory, environment) = (std::env::current_dir().expect("there is one"), std::env::vars_os().count());
    std::thread::scope(|scope| {
        for (at, repo) in repos.iter().enumerate() {
            scope.spawn(move || {
                let worktree = opened(repo);
                for turn in 1..=3 {
                    let info = by("editor", &format!("turn {turn} of {at}"));
                    worktree.begin(&info).expect("it begins");
                    repo.write("own.txt", format!("{at} {turn}\n"));
                    let ended = worktree.end(&info).expect("it ends").turn.expect("it changed something");
                    assert_eq!((ended.number, ended.title), (turn, format!("turn {turn} of {at}")));
                }
                let plan = worktree.plan(Undo::last(3)).expect("a plan");
                assert!(worktree.apply_plan(&plan.id).is_done());
            });
        }
    });
    for (repo, before) in repos.iter().zip(&before) {
        repo.state().assert_is(before, "each is undone");
    }
    let after = (std::env::current_dir().expect("there is one"), std::env::vars_os().count());
    assert_eq!(after, (directory, environment), "and nothing of the process is changed");
}
