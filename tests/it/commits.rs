//! What a turn commits, what it leaves out, and what it records.

use crate::sandbox::{Mode, Output, Sandbox, check_all};
use crate::steps::{edit, hook, tick};
use serde_json::{Value, json};

fn with(files: &[(&str, &str)]) -> Sandbox {
    let repo = Sandbox::new();
    for (path, content) in files {
        repo.write(path, content);
    }
    repo.sh("git add -A; git commit -qm files");
    repo
}

/// The subjects on the branch, newest first, down to the user's own.
fn subjects(repo: &Sandbox) -> Vec<String> {
    repo.git(["log", "--format=%s"]).lines().map(str::to_owned).collect()
}

/// The paths that a commit changed.
fn changed(repo: &Sandbox, commit: &str) -> Vec<String> {
    let paths = repo.git(["diff-tree", "-r", "--root", "--no-commit-id", "--name-only", commit]);
    paths.lines().map(str::to_owned).collect()
}

/// The lines of a commit's note.
#[track_caller]
fn notes(repo: &Sandbox, commit: &str) -> Vec<Value> {
    let note = repo.git(["notes", "--ref=oxundo", "show", commit]);
    let line = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("JSON in a note: {error}: {line}"));
    note.lines().filter(|line| !line.is_empty()).map(line).collect()
}

// Commits

#[test]
fn the_turn_is_one_commit_by_the_user_with_one_trailer() {
    let repo = with(&[("a.txt", "one\n")]);
    let base = repo.head();
    let output = repo.agent("echo two >>a.txt; echo new >new.txt; rm README.txt; chmod +x a.txt");
    assert!(output.stdout.is_empty(), "stdout belongs to the agent\n{output:?}");
    assert_eq!(repo.git(["rev-parse", "HEAD^"]), base, "one commit, on top of the user's");
    assert_eq!(repo.git(["log", "-1", "--format=%B"]), "sh: turn 1\n\nAssisted-by: sh\n", "subject and trailer");
    assert_eq!(
        repo.git(["log", "-1", "--format=%an <%ae> %cn <%ce>"]),
        "User Name <user@example.com> User Name <user@example.com>"
    );
    assert_eq!(changed(&repo, "HEAD"), ["README.txt", "a.txt", "new.txt"], "everything the turn changed");
    assert_eq!(repo.git(["status", "--porcelain"]), "", "nothing is left");
}

#[test]
fn a_commit_has_the_time_at_which_it_was_made() {
    let repo = with(&[("a.txt", "one\n")]);
    // An agent that works into another second.
    repo.agent("echo two >>a.txt; n=$(date +%s); until [ $(date +%s) -gt $n ]; do sleep 0.05; done; date +%s >ended");
    let ended: i64 = repo.sh("cat ended").trim().parse().expect("a time");
    for (what, args) in [
        ("the author's", ["log", "-1", "--format=%at"].as_slice()),
        ("the committer's", &["log", "-1", "--format=%ct"]),
        ("the branch's log", &["log", "-1", "-g", "--date=unix", "--format=%gd", "main"]),
        ("the timeline's", &["log", "-1", "--format=%ct", "refs/oxundo/timeline"]),
    ] {
        let time = repo.git(args);
        let time = time.trim().trim_start_matches("main@{").trim_end_matches('}');
        assert!(time.parse::<i64>().expect("a time") >= ended, "{what} time, {time}, is not before {ended}");
    }
}

#[test]
fn names_and_zones_are_written_as_git_writes_them() {
    for (name, zone) in [
        ("A. U. Thor", Some("Asia/Kathmandu")),
        (" \"Thor, A. <U>\";", Some("XYZ3:30")),
        ("Jos\u{e9} <x>\ny", Some("")),
        ("Plain", None),
    ] {
        let repo = with(&[("a.txt", "one\n")]);
        repo.git(["config", "user.name", name]);
        let mut command =
            repo.oxundo_command(["run", "--", "sh", "-c", "git commit -q --allow-empty -m its; echo 2 >>a.txt"]);
        match zone {
            Some(zone) => command.env("TZ", zone),
            None => command.env_remove("TZ"),
        };
        Output::of(&mut command).success();
        let written = |commit: &str| {
            let who = repo.git(["log", "-1", "--date=format:%z", "--format=%an %ae %ad %cn %ce %cd", commit]);
            (who, repo.git(["log", "-1", "--format=%s", commit]))
        };
        let ((git, its), (ours, ..)) = (written("HEAD^"), written("HEAD"));
        assert_eq!((ours, its.trim()), (git, "its"), "{name:?} in {zone:?}");
    }
}

#[test]
fn subjects_say_message_and_agent() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.oxundo(["run", "-m", "Add a cache", "--", "sh", "-c", "echo 2 >>a.txt"]).success();
    repo.oxundo(["run", "--agent", "claude", "--session", "s1", "--", "sh", "-c", "echo 3 >>a.txt"]).success();
    repo.oxundo(["run", "--", "/bin/sh", "-c", "echo 4 >>a.txt"]).success();
    repo.oxundo(["run", "touch", "new.txt"]).success();
    assert_eq!(
        subjects(&repo),
        ["touch: turn 4", "sh: turn 3", "claude: turn 2", "Add a cache", "files", "base"],
        "the agent is the command's last component, or what --agent says"
    );
    assert_eq!(repo.git(["log", "-1", "--format=%(trailers)", "HEAD~2"]), "Assisted-by: claude\n");
    assert_eq!(repo.git(["log", "-1", "--format=%B", "HEAD~3"]), "Add a cache\n\nAssisted-by: sh\n");
    let log = repo.log();
    assert_eq!(log[2]["agent"], "claude");
    assert_eq!(log[2]["session"], "s1");
    assert_eq!(log[3]["message"], "Add a cache");
}

#[test]
fn the_trailer_can_be_changed_and_left_out() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.git(["config", "oxundo.trailer", "Written-by"]);
    repo.agent("echo 2 >>a.txt");
    assert_eq!(repo.git(["log", "-1", "--format=%B"]), "sh: turn 1\n\nWritten-by: sh\n");
    repo.git(["config", "oxundo.trailer", ""]);
    repo.agent("echo 3 >>a.txt");
    assert_eq!(repo.git(["log", "-1", "--format=%B"]), "sh: turn 2\n");
    // What the environment says stands over the configuration.
    let mut command = repo.oxundo_command(["run", "--", "sh", "-c", "echo 4 >>a.txt"]);
    Output::of(command.env("OXUNDO_TRAILER", "Helped-by")).success();
    assert_eq!(repo.git(["log", "-1", "--format=%B"]), "sh: turn 3\n\nHelped-by: sh\n");
}

#[test]
fn a_command_of_the_user_can_write_the_message() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.git(["config", "oxundo.messageCommand", "grep -c '^+two' | sed 's/^/lines: /'"]);
    repo.agent("echo two >>a.txt");
    assert_eq!(subjects(&repo)[0], "lines: 1", "it gets the diff on stdin and prints the message");
    // A flag stands over the configuration, what an agent was asked does not.
    repo.oxundo(["run", "-m", "given", "--", "sh", "-c", "echo two >>a.txt"]).success();
    assert_eq!(subjects(&repo)[0], "given");
    hook(&repo, "s", "UserPromptSubmit", &json!({"prompt": "asked"}));
    repo.sh("echo two >>a.txt; echo two >>a.txt");
    hook(&repo, "s", "Stop", &json!({}));
    assert_eq!(subjects(&repo)[0], "lines: 2");
}

#[test]
fn what_the_user_had_not_committed_is_a_commit_of_its_own() {
    let repo = with(&[("a.txt", "one\n"), ("b.txt", "one\n"), ("c.txt", "one\n"), ("d.txt", "one\n")]);
    let base = repo.head();
    repo.sh("echo staged >>a.txt; git add a.txt; echo unstaged >>b.txt; rm c.txt; echo new >new.txt; git add new.txt; echo u >u.txt");
    repo.agent("echo agent >>d.txt");
    assert_eq!(repo.git(["rev-parse", "HEAD~2"]), base, "a dirty commit and an auto-commit");
    assert_eq!(
        changed(&repo, "HEAD~1"),
        ["a.txt", "b.txt", "c.txt", "new.txt"],
        "the dirty commit has all tracked files"
    );
    assert_eq!(changed(&repo, "HEAD"), ["d.txt"], "the auto-commit has what the turn changed");
    assert_eq!(
        repo.git(["log", "-1", "--format=%an %(trailers)", "HEAD~1"]),
        "User Name ",
        "the dirty commit is the user's"
    );
    assert_eq!(repo.git(["status", "--porcelain"]), "?? u.txt", "untracked files stay untracked");
    let log = repo.log();
    assert_eq!(log[0]["dirty_commit"], repo.git(["rev-parse", "HEAD~1"]));
    assert_eq!(log[0]["commits"], json!([repo.head()]));
}

#[test]
fn a_clean_tree_needs_no_dirty_commit() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.write("u.txt", "untracked\n");
    repo.agent("echo two >>a.txt");
    assert_eq!(subjects(&repo), ["sh: turn 1", "files", "base"]);
    assert_eq!(repo.log()[0]["dirty_commit"], Value::Null);
}

#[test]
fn what_the_agent_committed_is_not_committed_again() {
    let repo = with(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    repo.agent("echo two >>a.txt; git commit -qam mine; echo two >>b.txt; git commit -qam more");
    assert_eq!(subjects(&repo), ["more", "mine", "files", "base"], "nothing is left for an auto-commit");
    repo.agent("echo three >>a.txt; git commit -qam mine; echo three >>b.txt");
    assert_eq!(subjects(&repo)[..2], ["sh: turn 2", "mine"], "the rest is the auto-commit");
    assert_eq!(changed(&repo, "HEAD"), ["b.txt"]);
    let log = repo.log();
    assert_eq!(log[1]["commits"].as_array().map(Vec::len), Some(2), "the log has the agent's commits: {log:?}");
    assert_eq!(log[0]["commits"].as_array().map(Vec::len), Some(2), "and the auto-commit too: {log:?}");
}

#[test]
fn ghost_turns_make_no_commits_and_move_nothing() {
    let repo = with(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    repo.sh("echo staged >>a.txt; git add a.txt; echo unstaged >>a.txt; echo u >u.txt");
    let index = |repo: &Sandbox| repo.git(["ls-files", "-s", "-v"]);
    let before = (repo.head(), index(&repo));
    repo.turn(Mode::Ghost, "echo agent >>b.txt; echo new >new.txt");
    assert_eq!((repo.head(), index(&repo)), before, "HEAD and index stay as they were");
    assert_eq!(repo.git(["status", "--porcelain"]), "MM a.txt\n M b.txt\n?? new.txt\n?? u.txt");
    assert_eq!(repo.log()[0]["mode"], "ghost");
    assert_eq!(repo.git(["for-each-ref", "refs/notes"]), "", "no commit, no note");

    repo.git(["config", "oxundo.mode", "ghost"]);
    repo.agent("echo more >>b.txt");
    assert_eq!((repo.head(), index(&repo)), before, "oxundo.mode says the same as --ghost");
    repo.oxundo(["undo", "--steps", "2"]).success();
    assert_eq!(repo.git(["status", "--porcelain"]), "MM a.txt\n?? u.txt", "as before both turns");
}

#[test]
fn flags_of_the_index_last_through_a_turn() {
    for mode in Mode::tried() {
        let repo = with(&[("a.txt", "one\n"), ("sw.txt", "one\n"), ("au.txt", "one\n")]);
        repo.sh("echo local >sw.txt; echo local >au.txt; git update-index --skip-worktree sw.txt; git update-index --assume-unchanged au.txt");
        repo.sh("echo dirty >>a.txt");
        repo.turn(mode, "echo two >>a.txt");
        assert_eq!(repo.git(["ls-files", "-v", "sw.txt", "au.txt"]), "h au.txt\nS sw.txt", "the flags stay ({mode:?})");
        repo.assert_file("sw.txt", "local\n", "the user's local version stays");
        assert_eq!(repo.git(["show", "HEAD:sw.txt"]), "one", "and does not get into a commit");
        assert_eq!(repo.git(["show", "HEAD:au.txt"]), "one", "and does not get into a commit");
    }
}

// What stays out

#[test]
fn secrets_are_left_out_named_and_undone() {
    let repo = with(&[("a.txt", "one\n")]);
    let before = repo.state();
    let secrets = [".env", ".env.local", "certs/server.pem", "deploy.key", "id_ed25519", "credentials.json"];
    let script = "mkdir certs; for f in .env .env.local certs/server.pem deploy.key id_ed25519 credentials.json open.txt; do echo s >$f; done";
    let output = repo.agent(script);
    assert_eq!(changed(&repo, "HEAD"), ["open.txt"], "secrets do not enter history");
    for secret in secrets {
        output.warns(secret);
        assert!(repo.exists(secret), "{secret} stays");
    }
    let untracked = repo.git(["ls-files", "--others", "--exclude-standard"]);
    assert_eq!(untracked.lines().count(), secrets.len(), "they stay untracked: {untracked}");
    let after = repo.state();
    repo.undo();
    repo.state().assert_is(&before, "they are undone all the same");
    repo.redo();
    repo.state().assert_is(&after, "and brought back");
    repo.undo();
    assert_eq!(repo.git(["log", "--branches", "--format=%H", "--", ".env"]), "", "they are in no commit of a branch");
}

#[test]
fn the_names_of_secrets_can_be_added_to() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.git(["config", "oxundo.secret", "*.vault"]);
    repo.agent("echo s >team.vault; echo s >.env; echo o >open.txt");
    let committed = changed(&repo, "HEAD");
    assert!(!committed.contains(&"team.vault".to_owned()), "a name that the user gave: {committed:?}");
    assert!(committed.contains(&"open.txt".to_owned()), "the rest is committed: {committed:?}");
}

#[test]
fn a_turn_of_nothing_but_secrets_is_a_turn_without_a_commit() {
    let repo = with(&[("a.txt", "one\n")]);
    let before = repo.state();
    repo.agent("echo s >.env");
    assert_eq!(subjects(&repo), ["files", "base"], "there is nothing to commit");
    let after = repo.state();
    assert_eq!(repo.log()[0]["commits"], json!([]));
    repo.undo();
    repo.state().assert_is(&before, "but something to undo");
    repo.redo();
    repo.state().assert_is(&after, "and to redo");
}

#[test]
fn a_secret_that_is_tracked_is_committed_as_any_file() {
    let repo = with(&[("a.txt", "one\n"), (".env.example", "KEY=\n")]);
    repo.agent("echo OTHER= >>.env.example");
    assert_eq!(changed(&repo, "HEAD"), [".env.example"], "the guard is for new files");
}

#[test]
fn new_ignored_files_are_not_committed() {
    let repo = with(&[("a.txt", "one\n"), (".gitignore", "*.log\n")]);
    repo.agent("echo l >build.log; echo two >>a.txt; echo '*.tmp' >>.gitignore; echo t >x.tmp");
    assert_eq!(changed(&repo, "HEAD"), [".gitignore", "a.txt"], "the current rules are for what is committed");
    repo.undo();
    assert!(repo.exists("build.log"), "what was ignored when the turn began is never touched");
    repo.assert_absent("x.tmp", "the rule that hides it is the turn's own");
}

#[test]
fn what_was_untracked_or_ignored_before_is_not_committed() {
    let repo = with(&[("a.txt", "one\n"), (".gitignore", "secret.env\n")]);
    repo.write("secret.env", "s\n").write("mine.txt", "mine\n").write("my/own.txt", "mine\n");
    repo.agent(": >.gitignore; echo two >>a.txt; echo new >my/new.txt");
    assert_eq!(changed(&repo, "HEAD"), [".gitignore", "a.txt", "my/new.txt"], "only what the turn made is new");
    assert_eq!(repo.git(["status", "--porcelain", "-uall"]), "?? mine.txt\n?? my/own.txt\n?? secret.env");
}

#[test]
fn new_files_over_the_limit_are_not_committed() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.git(["config", "oxundo.maxFileSize", "1k"]);
    let output = repo.agent("seq 1000 >large.txt; echo small >small.txt");
    assert_eq!(changed(&repo, "HEAD"), ["small.txt"], "large files do not enter history unasked");
    output.warns("large.txt");
}

#[test]
fn untracked_files_are_committed_when_the_user_wants_it() {
    let repo = with(&[("a.txt", "one\n"), (".gitignore", "*.log\n")]);
    repo.git(["config", "oxundo.untracked", "commit"]);
    repo.write("mine.txt", "mine\n").write("x.log", "ignored\n");
    let before = repo.state();
    repo.agent("echo two >>a.txt");
    assert_eq!(changed(&repo, "HEAD~1"), ["mine.txt"], "the dirty commit has the untracked files");
    assert_eq!(changed(&repo, "HEAD"), ["a.txt"]);
    repo.undo();
    repo.state().assert_is(&before, "they are untracked again");
}

#[test]
fn the_dirty_commit_stays_when_the_user_wants_it() {
    let repo = with(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    repo.git(["config", "oxundo.dirty", "keep"]);
    repo.sh("echo mine >>a.txt; echo u >u.txt");
    repo.agent("echo two >>b.txt");
    let dirty = repo.git(["rev-parse", "HEAD^"]);
    let after = repo.state();
    repo.undo();
    assert_eq!(repo.head(), dirty, "HEAD stays on the dirty commit");
    repo.assert_file("a.txt", "one\nmine\n", "the files are the same");
    repo.assert_file("b.txt", "one\n", "the files are the same");
    assert_eq!(repo.git(["status", "--porcelain"]), "?? u.txt");
    repo.redo();
    repo.state().assert_is(&after, "redo goes on from there");
}

#[test]
fn a_dirty_commit_that_has_stayed_is_said_to_be_the_users_work_and_how_to_go_below_it() {
    let repo = with(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    repo.git(["config", "oxundo.dirty", "keep"]);
    let before = repo.head();
    repo.write("a.txt", "one\nfirst\n").agent("echo two >>b.txt");
    repo.write("a.txt", "one\nfirst\nsecond\n").agent("echo three >>b.txt");
    let after = repo.state();
    repo.undo();
    let kept = repo.state();
    let error = repo.refuses(&["undo"], "foreign");
    assert!(error["message"].to_string().contains("has your work from before turn 2, which is undone"), "{error}");
    assert!(error["hints"][0].to_string().contains("'git reset -q --soft HEAD~1'"), "{error}");
    repo.state().assert_is(&kept, "a refusal changes nothing");
    // What is staged is nowhere else.
    repo.sh("echo staged >c.txt; git add c.txt; echo saved >c.txt");
    repo.git(["reset", "-q", "--soft", "HEAD~1"]);
    repo.undo();
    assert_eq!(repo.git(["show", ":c.txt"]), "staged", "it is staged still");
    repo.sh("git rm -q -f c.txt");
    repo.assert_file("a.txt", "one\nfirst\nsecond\n", "it is uncommitted, and all there");
    repo.assert_file("b.txt", "one\n", "both turns are undone");
    assert_eq!(repo.git(["rev-parse", "HEAD^"]), before, "HEAD is on the dirty commit of the first turn");
    repo.redo();
    repo.redo();
    repo.state().assert_is(&after, "redo brings both back, and the work between them is a commit again");
    // By another commit on top it is below what the user has.
    repo.undo();
    repo.git(["commit", "-q", "--allow-empty", "-m", "on top"]);
    let error = repo.refuses(&["undo"], "foreign");
    assert!(error["message"].to_string().contains("(on top) on 'main' was not made by a turn"), "{error}");
}

#[test]
fn a_published_dirty_commit_stays() {
    let repo = with(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    repo.remote("origin");
    repo.sh("echo mine >>a.txt");
    repo.agent("echo two >>b.txt");
    let dirty = repo.git(["rev-parse", "HEAD^"]);
    repo.git(["push", "-q", "origin", &format!("{dirty}:refs/heads/main")]);
    let after = repo.state();
    repo.undo();
    assert_eq!(repo.head(), dirty, "HEAD stays on what has been published");
    repo.assert_file("a.txt", "one\nmine\n", "the files are the same");
    repo.assert_file("b.txt", "one\n", "the turn is undone");
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    repo.redo();
    repo.state().assert_is(&after, "redo goes on from there");
}

// Empty turns

#[test]
fn a_turn_that_changed_nothing_leaves_no_trace() {
    for script in [
        "true",
        "echo x >x; rm x",
        "cp a.txt t; echo two >>a.txt; mv t a.txt",
        "touch a.txt",
        "git status; git stash list",
    ] {
        for mode in Mode::tried() {
            let repo = with(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
            repo.sh("echo 1 >>a.txt; git add a.txt; echo 2 >>a.txt; echo 3 >>b.txt; echo u >u.txt; echo i >i.txt; git add -N i.txt");
            let (before, refs) = (repo.printed(), repo.refs());
            repo.turn(mode, script);
            repo.printed().assert_is(&before, &format!("{script:?} changed nothing, {mode:?}"));
            let refs_now = repo.refs().into_iter().filter(|(name, _)| !name.starts_with("refs/oxundo/"));
            assert!(refs_now.eq(refs), "no branch and no note is left by {script:?}");
            assert!(repo.log().is_empty(), "no turn is recorded for {script:?}");
            repo.refuses(&["undo"], "nothing");
        }
    }
}

#[test]
fn an_empty_turn_among_others_leaves_no_trace() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.agent("echo two >>a.txt");
    repo.sh("echo mine >>README.txt");
    let (before, log) = (repo.printed(), repo.log());
    repo.agent("true");
    repo.printed().assert_is(&before, "the dirty commit is taken back");
    assert_eq!(repo.log(), log, "the timeline is the same");
}

#[test]
fn an_empty_turn_on_an_unborn_branch_leaves_no_commit() {
    let repo = Sandbox::unborn();
    repo.sh("echo one >a.txt; git add a.txt; echo two >>a.txt; echo u >u.txt");
    let before = repo.printed();
    repo.agent("true");
    repo.printed().assert_is(&before, "the branch is unborn again");
}

// Identity and hooks

#[test]
fn without_an_identity_no_agent_is_started() {
    let repo = Sandbox::init(&[]);
    repo.write("a.txt", "one\n");
    repo.sh("git add a.txt; git -c user.name=a -c user.email=b commit -qm base; echo dirty >>a.txt");
    let before = repo.everything();
    let output = repo.oxundo(["run", "--", "sh", "-c", "touch started"]);
    output.exits(125);
    output.warns("error: ");
    output.warns("hint: ");
    repo.everything().assert_is(&before, "the agent is not started, nothing is recorded");
    let (code, value) = repo.json(["run", "--", "sh", "-c", "touch started"]);
    assert_eq!((code, &value["error"]["code"]), (125, &json!("no_identity")), "{value}");
    repo.everything().assert_is(&before, "the agent is not started, nothing is recorded");
}

#[test]
fn ghost_turns_need_no_identity() {
    let repo = Sandbox::init(&[]);
    repo.write("a.txt", "one\n");
    repo.sh("git add a.txt; git -c user.name=a -c user.email=b commit -qm base");
    let before = repo.state();
    repo.turn(Mode::Ghost, "echo two >>a.txt");
    repo.undo();
    repo.state().assert_is(&before, "there is nothing to be committed in the user's name");
}

#[test]
fn the_identity_in_the_environment_counts() {
    let repo = Sandbox::init(&[]);
    repo.write("a.txt", "one\n");
    repo.sh("git add a.txt; git -c user.name=a -c user.email=b commit -qm base");
    let mut command = repo.oxundo_command(["run", "--", "sh", "-c", "echo two >>a.txt"]);
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), format!("The {who}")).env(format!("GIT_{who}_EMAIL"), "e@x");
    }
    Output::of(&mut command).success();
    assert_eq!(repo.git(["log", "-1", "--format=%an, %cn"]), "The AUTHOR, The COMMITTER");
}

/// Hooks that leave a mark in home and fail, as those can that git asks.
const HOOKS: &str = "mkdir -p .git/hooks; cd .git/hooks
for h in pre-commit prepare-commit-msg commit-msg post-commit post-checkout post-rewrite post-merge; do
    printf '#!/bin/sh\\ntouch ../home/%s\\nexit 1\\n' $h >$h; chmod +x $h
done";

#[test]
fn hooks_of_the_repository_do_not_run() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.sh(HOOKS);
    repo.sh("echo dirty >>a.txt");
    repo.agent("echo two >>a.txt");
    repo.undo();
    repo.redo();
    assert_eq!(repo.sh("ls ../home"), "", "no hook has run");
    assert_eq!(subjects(&repo)[0], "sh: turn 1");
}

#[test]
fn a_failing_hook_is_reported_and_the_turn_recorded() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.sh(HOOKS);
    repo.git(["config", "oxundo.verify", "true"]);
    let before = repo.state();
    let output = repo.oxundo(["run", "--", "sh", "-c", "echo two >>a.txt"]);
    assert!(repo.home().join("pre-commit").exists(), "the hook has run\n{output:?}");
    output.warns("hook");
    assert_eq!(repo.log().len(), 1, "the turn is recorded");
    repo.undo();
    repo.state().assert_is(&before, "and can be undone");
}

#[test]
fn what_a_hook_makes_of_the_turns_files_is_the_turns() {
    for (code, subject) in [(0, "sh: turn 1"), (1, "files")] {
        let repo = with(&[("a.txt", "one\n")]);
        repo.git(["config", "oxundo.verify", "true"]);
        let hook = format!("#!/bin/sh\nsed -i s/two/TWO/ a.txt new.txt; git add -u; exit {code}\n");
        repo.write(".git/hooks/pre-commit", hook);
        repo.sh("chmod +x .git/hooks/pre-commit");
        let before = repo.state();
        repo.oxundo(["run", "--", "sh", "-c", "echo two >>a.txt; echo two >new.txt"]).success();
        repo.assert_file("a.txt", "one\nTWO\n", "the hook has run");
        assert_eq!(subjects(&repo)[0], subject, "one that fails keeps the commit away");
        let after = repo.state();
        repo.undo();
        repo.state().assert_is(&before, "it is undone");
        repo.redo();
        repo.state().assert_is(&after, "and redone");
    }
}

/// As in git's own commit of some files; but for what was there before, and nobody has added.
#[test]
fn what_a_hook_makes_and_adds_is_in_the_commit_and_goes_with_the_turn() {
    let repo = with(&[("a.txt", "one\n"), ("log.txt", "one\n")]);
    repo.git(["config", "oxundo.verify", "true"]);
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\necho hook >gen.txt; echo hook >>log.txt; git add -A\n");
    repo.sh("chmod +x .git/hooks/pre-commit");
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    edit(&repo, 1, "a.txt", "echo its >>a.txt");
    repo.sh("echo mine >mine.txt");
    tick();
    edit(&repo, 2, "a.txt", "echo its >>a.txt");
    let before = repo.sh("git show HEAD:a.txt HEAD:log.txt");
    hook(&repo, "s", "Stop", &json!({}));
    assert_eq!(repo.git(["show", "--format=", "--name-only", "HEAD"]), "a.txt\ngen.txt\nlog.txt");
    let after = repo.state();
    repo.undo();
    assert_eq!(repo.sh("cat a.txt log.txt"), before);
    assert!(!repo.exists("gen.txt") && repo.exists("mine.txt"), "the hook's goes, the user's stays");
    repo.redo();
    repo.state().assert_is(&after, "redo");
    repo.assert_sound();
}

/// As with git's own commit of some files, it sees these alone: one that formats what is staged leaves the user's as it is.
#[test]
fn a_hook_sees_nothing_of_what_the_user_has_staged_beside_the_turn() {
    let repo = with(&[("a.txt", "one\n"), ("mine.txt", "one\n"), ("gone.txt", "one\n")]);
    repo.git(["config", "oxundo.verify", "true"]);
    let script = "#!/bin/sh\nfor f in $(git diff --cached --name-only); do sed -i 's/  */ /g' $f; git add $f; echo $f >>../home/seen; done\n";
    repo.write(".git/hooks/pre-commit", script);
    repo.sh("chmod +x .git/hooks/pre-commit");
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    edit(&repo, 1, "a.txt", "echo 'its   own' >>a.txt");
    repo.sh("echo 'my   own' >>mine.txt; echo 'my   new' >new.txt; git add mine.txt new.txt; git rm -q gone.txt");
    tick();
    edit(&repo, 2, "a.txt", "echo 'its   more' >>a.txt");
    let staged = || repo.sh("git diff --cached -- mine.txt new.txt gone.txt; cat mine.txt new.txt");
    let before = staged();
    hook(&repo, "s", "Stop", &json!({}));
    assert_eq!(repo.sh("cat ../home/seen"), "a.txt");
    assert_eq!(repo.git(["show", "--format=%s", "--name-only", "HEAD"]), "work of s\n\na.txt");
    repo.assert_file("a.txt", "one\nits own\nits more\n", "the hook has run");
    assert_eq!(staged(), before, "the user's is as it was");
    repo.undo();
    assert_eq!(staged(), before);
    repo.redo();
    assert_eq!(staged(), before);
    repo.assert_sound();
}

// Records

#[test]
fn every_commit_of_a_turn_has_a_note() {
    let repo = with(&[("a.txt", "one\n"), ("b.txt", "one\n")]);
    repo.sh("echo dirty >>a.txt");
    let script = "echo two >>b.txt; git commit -qam mine; echo three >>b.txt";
    repo.oxundo(["run", "--agent", "claude", "--session", "s1", "--", "sh", "-c", script]).success();
    for (revision, kind) in [("HEAD", "agent"), ("HEAD~1", "agent"), ("HEAD~2", "dirty")] {
        let commit = repo.git(["rev-parse", revision]);
        let notes = notes(&repo, &commit);
        assert_eq!(notes.len(), 1, "{revision} has one line: {notes:?}");
        let note = &notes[0];
        assert_eq!(note["v"], 1);
        assert_eq!(note["turn"], 1);
        assert_eq!(note["kind"], kind, "{revision}");
        assert_eq!(note["commit"], commit, "a note says whose it is");
        assert_eq!(note["agent"], "claude");
        assert_eq!(note["session"], "s1");
        assert!(note["worktree"].is_string() && note["at"].is_string(), "{note}");
    }
    repo.try_git(["notes", "--ref=oxundo", "show", "HEAD~3"]).exits(1);
    assert!(repo.git(["log", "--notes=oxundo", "-1"]).contains("\"turn\":1"), "git log shows the notes");
}

#[test]
fn notes_of_others_stay() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.git(["notes", "--ref=oxundo", "add", "-m", "somebody's", "HEAD"]);
    repo.git(["notes", "add", "-m", "mine", "HEAD"]);
    let commit = repo.head();
    repo.agent("echo two >>a.txt");
    repo.agent("echo three >>a.txt");
    repo.oxundo(["undo", "--steps", "2"]).success();
    assert_eq!(repo.git(["notes", "--ref=oxundo", "show", &commit]), "somebody's");
    assert_eq!(repo.git(["notes", "show", &commit]), "mine");
}

#[test]
fn the_reflog_reads_as_the_operation_log() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.agent("echo two >>a.txt");
    repo.agent("echo three >>a.txt");
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.redo();
    let log = repo.git(["reflog", "show", "--format=%gs", "refs/oxundo/timeline"]);
    let lines: Vec<_> = log.lines().map(str::to_lowercase).collect();
    assert!(lines.len() >= 4, "an entry each: {log}");
    assert!(lines[0].contains("redo") && lines[0].contains('1'), "newest first: {log}");
    assert!(lines[1].contains("undo") && lines[1].contains('2'), "then the undo: {log}");
    assert!(lines.iter().all(|line| line.len() > 3), "each says what was done: {log}");
    let (code, ops) = repo.json(["log", "--ops"]);
    assert_eq!(code, 0, "{ops}");
    repo.oxundo(["log", "--ops"]).says("redo");
}

#[test]
fn all_hangs_on_one_ref() {
    let repo = with(&[("a.txt", "one\n")]);
    repo.agent("echo two >>a.txt");
    repo.undo();
    repo.turn(Mode::Ghost, "echo three >>a.txt");
    let refs: Vec<_> = repo.refs().into_keys().collect();
    assert_eq!(refs, ["refs/heads/main", "refs/notes/oxundo", "refs/oxundo/timeline"], "and on no other");
    assert_eq!(repo.git(["cat-file", "-t", "refs/oxundo/timeline"]), "commit");
    repo.assert_sound();
}

#[test]
fn turns_of_a_linked_worktree_are_its_own() {
    let repo = with(&[("a.txt", "one\n")]);
    let linked = repo.linked("other");
    repo.agent("echo main >>a.txt");
    linked.agent("echo linked >>a.txt; echo new >new.txt");
    linked.agent("echo more >>a.txt");
    assert_eq!((repo.log().len(), linked.log().len()), (1, 2), "each worktree has its timeline");
    let refs: Vec<_> = repo.refs().into_keys().filter(|name| name.starts_with("refs/oxundo/")).collect();
    assert_eq!(refs, ["refs/oxundo/timeline", "refs/oxundo/worktrees/other/timeline"]);
    let main = repo.state();
    linked.oxundo(["undo", "--steps", "2"]).success();
    linked.assert_file("a.txt", "one\n", "undone there");
    repo.state().without("ref refs/heads/other").assert_is(&main.without("ref refs/heads/other"), "and not here");
    repo.undo();
    linked.redo();
    linked.assert_file("a.txt", "one\nlinked\n", "redone there");
    repo.assert_file("a.txt", "one\n", "undone here");
    repo.sh("git worktree remove --force ../other; git reflog expire --expire=now --all; git gc -q --prune=now");
    assert!(
        repo.refs().contains_key("refs/oxundo/worktrees/other/timeline"),
        "removing the worktree keeps its history"
    );
}

#[test]
fn a_branch_made_at_an_amended_commit_goes_with_its_turn() {
    let repo = Sandbox::new();
    repo.commit("a.txt", "1\n");
    // A branch that stays, further down than where history divides.
    repo.commit("a.txt", "2\n");
    repo.git(["branch", "side", "HEAD~1"]);
    repo.agent("echo 3 >>a.txt");
    let before = repo.state();
    repo.agent("git commit -q --amend -m amended");
    repo.agent("git branch made");
    let after = repo.state();
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.state().assert_is(&before, "no commit leaves all branches but the turn's own");
    repo.oxundo(["redo", "--steps", "2"]).success();
    repo.state().assert_is(&after, "and all of it comes back");
}

#[test]
fn a_signature_that_does_not_come_is_not_waited_for_for_ever() {
    let repo = Sandbox::new();
    repo.sh("printf '#!/bin/sh\\nsleep 20\\n' >../home/gpg; chmod +x ../home/gpg
        git config gpg.program \"$PWD/../home/gpg\"; git config commit.gpgSign true; git config oxundo.signTimeout 1");
    repo.sh("echo dirty >>README.txt");
    let before = repo.everything();
    let output = repo.oxundo(["run", "--", "sh", "-c", "echo ran >ran"]);
    output.exits(125);
    output.warns("sign the commit");
    output.warns("oxundo.sign never");
    repo.everything().assert_is(&before, "the agent did not run, and nothing changed");
    repo.sh("git checkout -q README.txt");
    let output = repo.agent("echo ran >ran");
    output.warns("the turn's changes were not committed");
    repo.undo();
    repo.assert_absent("ran", "the turn is recorded all the same");
}

/// Whether or not the turn has written to it: an untracked file that it edits in its place is not committed either.
#[test]
fn an_untracked_file_to_which_a_turn_gives_another_name_stays_untracked() {
    let moves = ["mv mine other", "mv mine other; echo its >>other", "mkdir d; mv mine d/other; echo 2 >README.txt"];
    check_all(moves.map(|script| (script.to_owned(), script)), |script| {
        let repo = Sandbox::new();
        repo.sh("seq 20 >mine");
        let before = repo.state();
        repo.agent(script);
        let tracked = repo.git(["ls-tree", "-r", "--name-only", "HEAD"]);
        assert!(!tracked.contains("other"), "{tracked}");
        assert!(repo.sh("git status -s -uall").contains("?? "), "it is there");
        let after = repo.state();
        repo.undo();
        repo.state().assert_is(&before, "undo");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    });
    let repo = Sandbox::new();
    repo.sh("seq 20 >mine");
    repo.agent("mv mine other; git add other");
    assert!(repo.git(["ls-tree", "--name-only", "HEAD"]).contains("other"), "the agent has added it itself");
}

#[test]
fn what_an_agent_pushes_of_the_users_uncommitted_work_is_said_and_stays_committed() {
    let repo = Sandbox::new();
    repo.sh("git init -q --bare -b main ../up.git; git remote add origin ../up.git; git push -qu origin main; echo USER >>README.txt");
    repo.turn(Mode::Commit, "git push -q; echo AGENT >own")
        .warns("what you had uncommitted before turn 1 is published, as commit ");
    let after = repo.state();
    let undone = repo.oxundo(["undo"]);
    undone.success();
    undone.warns("what you had uncommitted before turn 1 stays committed: ");
    assert_eq!(repo.sh("cat README.txt; git status --porcelain"), "readme\nUSER");
    repo.redo();
    repo.state().assert_is(&after, "redo");
}
