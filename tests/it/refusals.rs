//! What undo and redo refuse, why, and that a refusal changes nothing at all.
//!
//! [`Sandbox::refuses`] compares the whole repository before and after, as JSON, for people and dry.

use crate::sandbox::{Mode, Output, Sandbox, check_all};
use serde_json::{Value, json};

/// Two commits of the user, and a remote `origin` that has them.
fn with_remote() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo.remote("origin").sh("git push -q origin main");
    repo
}

/// A repository with a turn in it; gives the turn's commit too.
fn with_turn() -> (Sandbox, String) {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo.agent("echo two >>a.txt");
    let commit = repo.head();
    (repo, commit)
}

#[track_caller]
fn assert_names(error: &Value, commit: &str) {
    let commits = error["commits"].as_array().expect("a refusal has a list of commits");
    assert!(commits.contains(&json!(commit)), "it names {commit}: {error}");
}

/// Message and hints in one.
fn words(error: &Value) -> String {
    format!("{} {}", error["message"], error["hints"])
}

// Published

#[test]
fn a_commit_on_any_remote_under_any_name_is_published() {
    let cases = [
        ("the branch's own", "git push -q origin main"),
        ("the upstream", "git push -q -u origin main"),
        ("another branch's name", "git push -q origin HEAD:refs/heads/agents/try-1"),
        (
            "another remote",
            "git init -q --bare ../backup.git; git remote add backup ../backup.git; git push -q backup HEAD:x",
        ),
        (
            "a remote with a slash",
            "git init -q --bare ../b.git; git remote add team/b ../b.git; git push -q team/b HEAD:x",
        ),
        ("packed refs", "git push -q origin main; git pack-refs --all"),
        ("a remote that is gone ahead", AHEAD),
        ("fetched by name only", "git push -q ../origin.git HEAD:refs/heads/y; git fetch -q origin"),
    ];
    let mut table = Vec::new();
    for (name, script) in cases {
        table.extend(Mode::BOTH.map(|mode| (format!("{name} ({mode:?})"), (mode, script))));
    }
    check_all(table, |(mode, script)| {
        let repo = with_remote();
        repo.turn(*mode, "echo two >>a.txt; git commit -qam two");
        let commit = repo.head();
        repo.sh(script);
        let error = repo.refuses(&["undo"], "published");
        assert_names(&error, &commit);
    });
}

/// Somebody else pushes on top, and the user fetches.
const AHEAD: &str = "git push -q origin main
git clone -q ../origin.git ../clone; cd ../clone
echo theirs >theirs.txt; git add -A; git -c user.name=a -c user.email=b commit -qm theirs; git push -q origin main
cd ../repo; git fetch -q origin";

#[test]
fn an_agent_that_pushes_is_not_undone() {
    for mode in Mode::tried() {
        let repo = with_remote();
        repo.turn(mode, "echo two >>a.txt; git commit -qam two; git push -q origin main; echo three >>a.txt");
        repo.refuses(&["undo"], "published");
    }
}

#[test]
fn a_commit_that_was_pushed_and_forced_back_is_published() {
    let repo = with_remote();
    repo.agent("echo two >>a.txt");
    let commit = repo.head();
    repo.sh("git push -q origin main; git push -qf origin HEAD~1:main");
    let error = repo.refuses(&["undo"], "published");
    assert_names(&error, &commit);
}

#[test]
fn what_a_remote_has_is_published_whatever_git_is_told_to_see_in_its_place() {
    let replace = "git replace --graft theirs base";
    let graft = "mkdir -p .git/info; git rev-parse theirs base | tr '\n' ' ' >.git/info/grafts";
    for told in ["", replace, graft] {
        let repo = Sandbox::new();
        repo.git(["tag", "base"]);
        repo.agent("echo 1 >>README.txt");
        repo.sh("git tag theirs $(git commit-tree -p HEAD -m theirs HEAD^{tree})");
        repo.sh(&format!("git update-ref refs/remotes/origin/main theirs; {told}"));
        // A push has sent the commits as they were made.
        repo.refuses(&["undo"], "published");
    }
}

#[test]
fn published_is_exact_under_clock_skew() {
    for length in [1, 3, 4, 30] {
        let repo = with_remote();
        repo.agent("echo two >>a.txt");
        let commit = repo.head();
        // Older and older commits on top, published from another branch.
        repo.sh(&format!(
            "git checkout -q -b skewed
             for i in $(seq {length}); do
                 date=\"$((1000000000 - i * 100000)) +0000\"
                 GIT_COMMITTER_DATE=$date GIT_AUTHOR_DATE=$date git commit -q --allow-empty -m skewed$i
             done
             git push -q origin skewed; git checkout -q main; git branch -qD skewed"
        ));
        let error = repo.refuses(&["undo"], "published");
        assert_names(&error, &commit);
    }
}

#[test]
fn published_is_exact_under_clock_skew_the_other_way() {
    // The turn's commit is newer than what is above it by years, and the remote's older yet.
    let repo = with_remote();
    repo.agent("echo two >>a.txt; GIT_COMMITTER_DATE='4000000000 +0000' git commit -qam two");
    repo.agent("GIT_COMMITTER_DATE='1000000000 +0000' git commit -q --allow-empty -m old");
    repo.sh("git push -q origin main");
    repo.refuses(&["undo"], "published");
    repo.refuses(&["undo", "--steps", "2"], "published");
}

#[test]
fn n_steps_are_checked_before_the_first_is_made() {
    let repo = with_remote();
    repo.agent("echo 1 >>a.txt");
    let first = repo.head();
    repo.agent("echo 2 >>a.txt");
    repo.sh("git push -q origin HEAD~1:refs/heads/part");
    let after = repo.state();
    let error = repo.refuses(&["undo", "--steps", "2"], "published");
    assert_names(&error, &first);
    repo.refuses(&["undo", "--to", "0"], "published");
    repo.undo();
    repo.assert_file("a.txt", "one\n1\n", "the second alone can be undone");
    repo.refuses(&["undo"], "published");
    repo.redo();
    repo.state().assert_is(&after, "and redone");
}

#[test]
fn what_is_not_published_is_undone_with_a_remote_there() {
    let repo = with_remote();
    let before = repo.printed();
    repo.agent("echo two >>a.txt");
    repo.sh("git fetch -q origin");
    repo.undo();
    repo.printed().assert_is(&before, "the remote has only the user's commits");
}

#[test]
fn a_ghost_turn_without_commits_is_undone_on_a_published_branch() {
    let repo = with_remote();
    repo.turn(Mode::Ghost, "echo two >>a.txt");
    repo.undo();
    repo.assert_file("a.txt", "one\n", "no commit would leave the branch");
}

// Merge

#[test]
fn a_merge_is_not_undone() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.commit("a.txt", "one\n");
        repo.sh("git checkout -q -b side; echo side >side.txt; git add -A; git commit -qm side; git checkout -q main");
        repo.commit("b.txt", "one\n");
        repo.turn(mode, "git merge -q --no-ff --no-edit side");
        let commit = repo.head();
        let error = repo.refuses(&["undo"], "merge");
        assert_names(&error, &commit);
    }
}

#[test]
fn a_merge_of_the_user_on_top_is_not_undone() {
    let (repo, _) = with_turn();
    repo.sh(
        "git checkout -q -b side HEAD~1; echo side >side.txt; git add -A; git commit -qm side; git checkout -q main",
    );
    repo.sh("git merge -q --no-ff --no-edit side");
    repo.refuses_any(&["undo"], &["merge", "foreign"]);
}

// Foreign

#[test]
fn a_commit_of_the_user_on_top_is_foreign() {
    for script in ["echo 1 >new.txt; git add -A; git commit -qm mine", "git commit -q --allow-empty -m 'sh: turn 1'"] {
        let (repo, _) = with_turn();
        repo.sh(script);
        let head = repo.head();
        let error = repo.refuses(&["undo"], "foreign");
        assert_names(&error, &head);
    }
}

#[test]
fn a_commit_of_the_user_in_the_middle_is_foreign() {
    let (repo, _) = with_turn();
    let foreign = repo.commit("mine.txt", "mine\n");
    let between = repo.printed();
    repo.agent("echo three >>a.txt");
    let after = repo.printed();
    let error = repo.refuses(&["undo", "--steps", "2"], "foreign");
    assert_names(&error, &foreign);
    repo.refuses(&["undo", "--to", "0"], "foreign");
    repo.undo();
    repo.printed().assert_is(&between, "the turn on top of it can be undone");
    repo.refuses(&["undo"], "foreign");
    repo.redo();
    repo.printed().assert_is(&after, "and redone");
}

#[test]
fn a_rewritten_commit_is_foreign_and_says_its_turn() {
    let cases = [
        ("amended content", "echo mine >>a.txt; git commit -qa --amend --no-edit"),
        (
            "amended with the note copied",
            "echo x >>a.txt; git commit -qa --amend -m x; git notes --ref=oxundo copy ORIG_HEAD HEAD",
        ),
        (
            "amended with the note rewritten",
            "echo x >>a.txt; git -c notes.rewriteRef=refs/notes/oxundo commit -qa --amend -m x",
        ),
        ("rebased", "git checkout -q -b base HEAD~1; git commit -q --allow-empty -m base; git rebase -q base main"),
        (
            "cherry-picked",
            "git reset -q --hard HEAD~1; git commit -q --allow-empty -m x; git cherry-pick ORIG_HEAD >/dev/null",
        ),
    ];
    check_all(cases.map(|(name, script)| (name.to_owned(), script)), |script| {
        let (repo, commit) = with_turn();
        repo.git(["update-ref", "ORIG_HEAD", &commit]);
        repo.sh(&script.replace("ORIG_HEAD", &commit));
        let head = repo.head();
        assert_ne!(head, commit, "the commit is another");
        let error = repo.refuses(&["undo"], "foreign");
        assert_names(&error, &head);
    });
}

#[test]
fn an_amended_commit_says_which_turn_it_came_from() {
    for script in
        ["git commit -qa --amend --no-edit", "git -c notes.rewriteRef=refs/notes/oxundo commit -qa --amend -m x"]
    {
        let (repo, _) = with_turn();
        repo.agent("echo three >>a.txt");
        repo.sh(&format!("echo four >>a.txt; {script}"));
        let error = repo.refuses(&["undo"], "foreign");
        assert!(words(&error).contains("turn 2"), "it says which turn: {error}");
    }
}

#[test]
fn what_another_branch_holds_does_not_leave_with_a_branch_that_goes() {
    let repo = Sandbox::new();
    repo.sh("git branch side");
    repo.commit("b.txt", "b\n");
    let before = repo.printed();
    repo.agent("git commit -q --allow-empty -m one; git branch old; git commit -q --amend --allow-empty -m two");
    repo.agent("git branch new; git branch -D -q old");
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.printed().assert_is(&before, "a branch goes though it and a branch that stays share a past");
}

#[test]
fn a_forged_note_permits_nothing() {
    let (repo, commit) = with_turn();
    let own = repo.git(["notes", "--ref=oxundo", "show", &commit]);
    let foreign = repo.commit("mine.txt", "mine\n");
    let forged = own.replace(&commit, &foreign);
    repo.git(["notes", "--ref=oxundo", "add", "-f", "-m", &forged, &foreign]);
    let error = repo.refuses(&["undo"], "foreign");
    assert_names(&error, &foreign);
}

#[test]
fn a_note_copied_to_a_commit_of_the_user_permits_nothing() {
    let (repo, commit) = with_turn();
    let foreign = repo.commit("mine.txt", "mine\n");
    repo.git(["notes", "--ref=oxundo", "copy", &commit, &foreign]);
    repo.refuses(&["undo"], "foreign");
}

#[test]
fn a_commit_without_its_note_is_foreign() {
    let (repo, commit) = with_turn();
    repo.sh("git update-ref -d refs/notes/oxundo");
    let error = repo.refuses(&["undo"], "foreign");
    assert_names(&error, &commit);
}

#[test]
fn a_fresh_clone_has_nothing_to_undo() {
    let (repo, _) = with_turn();
    repo.sh("git clone -q --no-local . ../clone; cd ../clone; git config user.name a; git config user.email b");
    let clone = repo.beside("clone");
    clone.refuses(&["undo"], "nothing");
    clone.sh("git fetch -q origin '+refs/notes/*:refs/notes/*'");
    clone.refuses(&["undo"], "nothing");
    clone.refuses(&["redo"], "nothing");
}

#[test]
fn a_branch_that_the_user_reset_below_the_turn_stays_there() {
    let (repo, _) = with_turn();
    repo.sh("git reset -q --hard HEAD~1");
    let before = repo.printed();
    let output = repo.oxundo(["undo"]);
    assert!(matches!(output.code, 0 | 3 | 4), "all that undo would do is done\n{output:?}");
    repo.printed().assert_is(&before, "nothing is changed");
}

// Branch

#[test]
fn turns_that_are_not_in_heads_history_are_not_undone() {
    for script in ["git checkout -q -b feature HEAD~1", "git checkout -q --orphan feature; git rm -rqf ."] {
        let (repo, _) = with_turn();
        repo.sh(script);
        let before = repo.everything();
        for args in [&["undo"] as &[_], &["undo", "--to", "0"]] {
            let (code, value) = repo.json(args);
            let refusal = value["error"]["code"].as_str().unwrap_or_default().to_owned();
            assert!(
                (code, refusal.as_str()) == (3, "branch") || (code, refusal.as_str()) == (4, "nothing"),
                "the turn was made on main, {script:?}: {value}"
            );
            repo.everything().assert_is(&before, "nothing is changed");
        }
        repo.sh("git checkout -q main");
        repo.undo();
        repo.assert_file("a.txt", "one\n", "back on its branch the turn is undone");
    }
}

#[test]
fn each_branch_has_its_own_turns() {
    let (repo, _) = with_turn();
    repo.sh("git checkout -q -b feature");
    repo.agent("echo feature >>a.txt");
    repo.undo();
    repo.assert_file("a.txt", "one\ntwo\n", "the turn of this branch");
    repo.redo();
    repo.sh("git checkout -q main");
    repo.agent("echo main >>a.txt");
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.assert_file("a.txt", "one\n", "the turns of this branch");
    repo.sh("git checkout -q feature");
    repo.assert_file("a.txt", "one\ntwo\nfeature\n", "the other branch is as it was");
    repo.undo();
    repo.assert_file("a.txt", "one\ntwo\n", "the turn of this branch");
    let (_, status) = repo.json(["status"]);
    assert_eq!(status["branch"], "feature");
}

#[test]
fn a_branch_that_is_checked_out_elsewhere_is_not_moved() {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo.agent("git branch side; git checkout -q side; echo side >>a.txt; git commit -qam side; git checkout -q main; echo two >>a.txt");
    repo.sh("git worktree add -q ../side side");
    let before = repo.everything();
    let (code, value) = repo.json(["undo"]);
    assert_eq!(code, 3, "another worktree stands on a branch that would go: {value}");
    repo.everything().assert_is(&before, "nothing is changed");
}

// In progress

/// Operations in the middle, with no conflict and no change of HEAD's commit.
const OPERATIONS: [(&str, &str); 6] = [
    ("merge", "git merge -q --no-ff --no-commit side >/dev/null 2>&1"),
    ("bisect", "git bisect start >/dev/null"),
    ("rebase", "GIT_SEQUENCE_EDITOR='echo break >' git rebase -q -i HEAD~1 >/dev/null 2>&1"),
    ("cherry-pick", "git cherry-pick clash >/dev/null 2>&1 || true"),
    ("revert", "echo x >>a.txt; git commit -qam x; git revert --no-edit HEAD~1 >/dev/null 2>&1 || true"),
    ("am", "git format-patch -q -1 --stdout clash >../home/p; git am -q ../home/p >/dev/null 2>&1 || true"),
];

/// A turn, and branches `side` and `clash` to get into trouble with.
fn before_trouble() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo.sh("git checkout -q -b side; echo side >side.txt; git add -A; git commit -qm side");
    repo.sh("git checkout -q -b clash main; echo clash >a.txt; git commit -qam clash; git checkout -q main");
    repo.agent("echo two >>a.txt");
    repo
}

#[test]
fn nothing_is_undone_in_the_middle_of_an_operation() {
    check_all(OPERATIONS.map(|(name, script)| (name.to_owned(), script)), |script| {
        let repo = before_trouble();
        repo.sh(script);
        repo.refuses(&["undo"], "in_progress");
    });
}

#[test]
fn nothing_is_redone_in_the_middle_of_an_operation() {
    let repo = before_trouble();
    repo.undo();
    repo.sh("git bisect start >/dev/null");
    repo.refuses(&["redo"], "in_progress");
    repo.sh("git bisect reset >/dev/null 2>&1");
    repo.redo();
}

#[test]
fn no_turn_with_commits_begins_in_the_middle_of_an_operation() {
    check_all(OPERATIONS.map(|(name, script)| (name.to_owned(), script)), |script| {
        let repo = before_trouble();
        repo.sh(script);
        let before = repo.everything();
        let output = repo.oxundo(["run", "--", "sh", "-c", "touch started"]);
        output.exits(125);
        output.warns("error: ");
        output.warns("--ghost");
        let (code, value) = repo.json(["run", "--", "sh", "-c", "touch started"]);
        assert_eq!((code, &value["error"]["code"]), (125, &json!("in_progress")), "{value}");
        repo.everything().assert_is(&before, "the agent is not started, nothing is recorded");
        repo.turn(Mode::Ghost, "touch started");
        assert!(repo.exists("started"), "a ghost turn is possible");
    });
}

// Busy

#[test]
fn one_thing_at_a_time() {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo.agent("echo two >>a.txt");
    let script = "touch ../home/started; while [ ! -e ../home/go ]; do sleep 0.05; done; echo three >>a.txt";
    let first = repo.spawn(&["run", "--agent", "slowpoke", "--", "sh", "-c", script]);
    repo.wait_for("started");

    let before = repo.everything();
    let second = repo.oxundo(["run", "--", "sh", "-c", "touch second"]);
    second.exits(125);
    second.warns("error: ");
    assert!(second.err().contains("slowpoke") || second.err().contains("turn 2"), "it names the first\n{second:?}");
    let (code, value) = repo.json(["run", "--ghost", "--", "sh", "-c", "touch second"]);
    assert_eq!((code, &value["error"]["code"]), (125, &json!("busy")), "{value}");
    for op in ["undo", "redo"] {
        let (code, value) = repo.json([op]);
        assert_eq!((code, &value["error"]["code"]), (3, &json!("busy")), "{op}: {value}");
    }
    let (code, status) = repo.json(["status"]);
    assert_eq!(code, 0, "looking is always possible: {status}");
    assert_eq!(status["open_turn"], 2, "{status}");
    assert_eq!(repo.log()[0]["state"], "open", "the log has the open turn");
    repo.everything().assert_is(&before, "nothing is changed");

    repo.signal("go");
    Output::awaited(first).success();
    repo.assert_file("a.txt", "one\ntwo\nthree\n", "the first turn goes on to its end");
    repo.undo();
    repo.assert_file("a.txt", "one\ntwo\n", "and can be undone");
}

#[test]
fn linked_worktrees_do_not_wait_for_each_other() {
    let repo = Sandbox::new();
    let linked = repo.linked("other");
    let script = "touch ../home/started; while [ ! -e ../home/go ]; do sleep 0.05; done; echo slow >slow.txt";
    let first = repo.spawn(&["run", "--", "sh", "-c", script]);
    repo.wait_for("started");
    linked.agent("echo quick >quick.txt");
    linked.undo();
    linked.assert_absent("quick.txt", "undone while the other worktree's turn is open");
    repo.signal("go");
    Output::awaited(first).success();
    repo.undo();
    repo.assert_absent("slow.txt", "undone");
}

// Locked, nothing, moved, not found

#[test]
fn a_locked_ref_is_left_alone() {
    let repo = Sandbox::new();
    repo.agent("echo agent >>README.txt");
    repo.git(["pack-refs", "--all"]);
    for lock in ["refs/heads/main.lock", "HEAD.lock", "packed-refs.lock"] {
        let lock = format!(".git/{lock}");
        repo.write(&lock, "");
        let error = repo.refuses(&["undo"], "locked");
        let place = repo.path(&lock).display().to_string();
        assert!(error["message"].as_str().is_some_and(|text| text.contains(&place)), "it names the lock: {error}");
        assert!(repo.exists(&lock), "it is git's");
        repo.sh(&format!("rm {lock}"));
    }
    repo.undo();
}

#[test]
fn a_locked_index_is_left_alone() {
    let (repo, _) = with_turn();
    repo.write(".git/index.lock", "");
    repo.refuses(&["undo"], "locked");
    assert!(repo.exists(".git/index.lock"), "the lock is not deleted");
    repo.sh("rm .git/index.lock");
    repo.undo();
    repo.write(".git/index.lock", "");
    repo.refuses(&["redo"], "locked");
}

#[test]
fn more_steps_than_there_are_undo_none() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.refuses(&["undo"], "nothing");
        repo.refuses(&["redo"], "nothing");
        repo.turn(mode, "echo 1 >>README.txt");
        repo.turn(mode, "echo 2 >>README.txt");
        repo.refuses(&["undo", "--steps", "3"], "nothing");
        repo.refuses(&["redo"], "nothing");
        repo.undo();
        repo.refuses(&["undo", "--steps", "2"], "nothing");
        repo.refuses(&["redo", "--steps", "2"], "nothing");
        repo.undo();
        repo.refuses(&["undo"], "nothing");
    }
}

#[test]
fn there_is_no_way_to_a_turn_that_is_not_there() {
    let (repo, _) = with_turn();
    for args in [["undo", "--to", "7"], ["redo", "--to", "7"]] {
        let before = repo.everything();
        let (code, value) = repo.json(args);
        assert_eq!(value["error"]["code"], "not_found", "{args:?}: {value}");
        assert_eq!(code, 1, "{args:?}: {value}");
        repo.everything().assert_is(&before, "nothing is changed");
    }
}

#[test]
fn malformed_steps_are_a_usage_error() {
    let (repo, _) = with_turn();
    let before = repo.everything();
    for steps in ["0", "-1", "x", "1.5", ""] {
        let output = repo.oxundo(["undo", &format!("--steps={steps}")]);
        output.exits(2);
        let (code, value) = repo.json(["undo", &format!("--steps={steps}")]);
        assert_eq!((code, &value["error"]["code"]), (2, &json!("usage")), "{value}");
    }
    for args in [["undo", "0"], ["undo", "x"], ["redo", "1.5"]] {
        repo.oxundo(args).exits(2);
    }
    for more in [["--steps", "1"], ["--to", "0"], ["--only", "1"]] {
        repo.oxundo(["undo", "1"].into_iter().chain(more)).exits(2);
    }
    repo.oxundo(["undo", "--steps", "1", "--to", "0"]).exits(2);
    repo.oxundo(["no-such-command"]).exits(2);
    repo.everything().assert_is(&before, "nothing is changed");
}

#[test]
fn redo_is_refused_when_head_moved_since_the_undo() {
    for script in [
        "echo mine >mine.txt; git add -A; git commit -qm mine",
        "echo other >>README.txt; git commit -q --amend -am other",
        "git reset -q --hard HEAD~1",
    ] {
        let (repo, _) = with_turn();
        repo.undo();
        repo.sh(script);
        let before = repo.everything();
        let (code, value) = repo.json(["redo"]);
        assert!(matches!(code, 3 | 4), "HEAD moved by {script:?}: {value}");
        repo.everything().assert_is(&before, "nothing is changed");
    }
}

#[test]
fn redo_works_again_when_head_moved_back() {
    let (repo, _) = with_turn();
    let after = repo.printed();
    repo.undo();
    repo.sh("git commit -q --allow-empty -m mine; git reset -q --hard HEAD~1");
    repo.redo();
    repo.printed().assert_is(&after, "HEAD is where undo left it");
}

// Repositories

#[test]
fn a_repository_with_tables_of_refs_is_refused_with_a_git_that_is_too_old_for_them() {
    if !Sandbox::has_tables() {
        return;
    }
    let repo = Sandbox::init(&["--ref-format=reftable"]);
    repo.identify();
    repo.commit("a.txt", "one\n");
    let before = repo.everything();
    let old = "#!/bin/sh\n[ \"$1\" = --version ] && echo git version 2.45.2 && exit\nexec GIT \"$@\"\n";
    let git = repo.sh("command -v git");
    repo.write("../old/git", old.replace("GIT", git.trim())).chmod("../old/git", 0o755);
    let path = format!("{}:{}", repo.base().join("old").display(), std::env::var("PATH").expect("there is one"));
    let repo = repo.with_variable("PATH", path);
    let output = repo.oxundo(["run", "--", "sh", "-c", "touch started"]);
    output.exits(125);
    output.warns("oxundo needs git 2.46; this is git 2.45.2");
    assert_eq!(repo.oxundo(["undo"]).code, 1, "a clear error, not a refusal");
    repo.everything().assert_is(&before, "nothing is changed");
}

#[test]
fn unmerged_entries_are_in_progress_whoever_left_them() {
    let repo = before_trouble();
    // A conflict of `git stash pop` leaves unmerged entries and no operation.
    repo.sh("echo stashed >>a.txt; git stash -q; echo other >>a.txt; git commit -qam other; git stash pop -q >/dev/null 2>&1 || true");
    let before = repo.everything();
    let output = repo.oxundo(["run", "--", "sh", "-c", "touch started"]);
    output.exits(125);
    output.warns("--ghost");
    repo.everything().assert_is(&before, "the agent is not started, nothing is recorded");
    repo.turn(Mode::Ghost, "touch started");
}

#[test]
fn a_commit_of_a_turn_that_ended_elsewhere_is_said_to_be_its() {
    let (repo, _) = with_turn();
    repo.write("README.txt", "the user's\n");
    let dirty = repo.state();
    repo.agent("git checkout -q -b topic; echo topic >topic.txt");
    repo.sh("git switch -q main");
    let error = repo.refuses(&["undo"], "foreign");
    assert!(
        error["message"].as_str().is_some_and(|text| text.ends_with("belongs to turn 2, which ended on 'topic'")),
        "{error}"
    );
    assert!(error["hints"][0].as_str().is_some_and(|hint| hint.contains("git switch topic")), "{error}");
    repo.sh("git switch -q topic");
    repo.undo();
    repo.state().assert_is(&dirty, "the way that it names works");
}

#[test]
fn a_turn_that_was_left_is_reached_by_redo_and_the_refusals_say_so() {
    let (repo, _) = with_turn();
    let end = repo.state();
    repo.undo();
    repo.agent("echo other >other.txt")
        .warns("warning: turn 1 is left beside turn 2: 'oxundo redo --to 1' goes back there");
    let error = repo.refuses(&["undo", "--to", "1"], "branch");
    assert_eq!(error["hints"][0], "run 'oxundo redo --to 1' to go to it: undo and redo lead there");
    let error = repo.refuses(&["undo", "--only", "1"], "branch");
    assert_eq!(error["hints"][0], "run 'oxundo redo --to 1' to go to where it is done");
    repo.oxundo(["redo", "--to", "1"]).success();
    repo.state().assert_is(&end, "the way that it names works");
}
