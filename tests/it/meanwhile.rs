//! What the user saves, stages and commits between an agent's calls: it is in no commit of the agent's, and undo keeps it.

use crate::sandbox::{Mode, Output, Sandbox, State, check_all};
use crate::steps::{call, edit, hook, shell, tick};
use serde_json::json;

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n";

/// A repository with some files, in which a prompt has begun.
fn begun(mode: Mode, before: &str) -> Sandbox {
    let repo = Sandbox::new();
    repo.write("a.txt", "a\n").write("both.txt", LINES).write("staged.txt", "s\n").write("late.txt", "l\n");
    repo.sh("git add -A; git commit -qm files");
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    repo.sh(before);
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    repo
}

fn ends(repo: &Sandbox) {
    hook(repo, "s", "Stop", &json!({}));
}

fn text(repo: &Sandbox, path: &str) -> String {
    String::from_utf8_lossy(&repo.read(path)).into_owned()
}

/// The user saves, in another window.
fn user(repo: &Sandbox, script: &str) {
    repo.sh(script);
    tick();
}

#[test]
fn what_the_user_saves_and_stages_between_calls_is_in_no_commit_of_the_agents() {
    let repo = begun(Mode::Commit, "echo mine >>late.txt");
    edit(&repo, 1, "a.txt", "echo its >>a.txt");
    user(
        &repo,
        "sed -i s/8/mine/ both.txt; echo mine >mine.txt; echo mine >new.txt; echo mine >>staged.txt
         git add both.txt mine.txt staged.txt",
    );
    edit(&repo, 2, "both.txt", "sed -i s/1/its/ both.txt");
    shell(&repo, 3, "echo its >its.txt");
    user(&repo, "echo late >>late.txt");
    let planned = repo.json(["undo", "--dry-run"]).1;
    ends(&repo);
    assert_eq!(
        repo.git(["show", "--format=%s", "--name-only", "-U0", "HEAD"]),
        "work of s\n\na.txt\nboth.txt\nits.txt"
    );
    let its = repo.git(["show", "--format=", "-U0", "HEAD"]);
    assert!(its.contains("+its") && !its.contains("+mine"), "{its}");
    assert_eq!(repo.json(["show", "1"]).1["files"].as_array().map(Vec::len), Some(3), "nor is it the turn's");
    let staged = || repo.git(["diff", "--cached", "-U0", "--format="]);
    let users = staged();
    let count = |what: &str| users.lines().filter(|line| *line == what).count();
    assert_eq!((count("+mine"), count("+its"), count("-its")), (3, 0, 0), "what was staged still is: {users}");
    assert_eq!(repo.git(["status", "--porcelain"]), "M  both.txt\n M late.txt\nA  mine.txt\nM  staged.txt\n?? new.txt");
    let after = repo.state();
    let done = repo.json(["undo"]).1;
    assert_eq!(done["files"], planned["files"], "it was planned so, with the turn open");
    repo.assert_file("a.txt", "a\n", "the agent's is taken back");
    repo.assert_file("both.txt", LINES.replace('8', "mine"), "in this file too, and the user's stays");
    assert_eq!(
        repo.git(["status", "--porcelain"]),
        "M  both.txt\n M late.txt\nA  mine.txt\nM  staged.txt\n?? new.txt",
        "staged as it was"
    );
    repo.redo();
    repo.state().assert_is(&after, "redo");
    // The next prompt saves it as the user's.
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    edit(&repo, 4, "a.txt", "echo more >>a.txt");
    ends(&repo);
    assert_eq!(repo.git(["log", "-2", "--format=%s"]), "work of s\noxundo: uncommitted changes before turn 2");
    let users = repo.git(["show", "--format=", "-U0", "HEAD~"]);
    assert!(users.matches("+mine").count() == 3 && !users.contains("+its"), "{users}");
    repo.oxundo(["undo", "--to", "0"]).success();
    repo.assert_file("late.txt", "l\nmine\nlate\n", "the user's from before the turn, and within it");
    repo.assert_sound();
}

/// It is neither what the turn left, nor in the way of undoing the one below.
#[test]
fn what_the_user_saves_between_calls_is_passed_by_undo_after_undo() {
    for mode in Mode::BOTH {
        for mine in [
            "echo mine >>late.txt",
            "echo mine >new.txt",
            "echo '*.o' >.gitignore",
            "echo mine >>staged.txt; git add staged.txt",
        ] {
            let repo = begun(mode, "true");
            edit(&repo, 1, "a.txt", "echo its >>a.txt");
            ends(&repo);
            hook(&repo, "s", "UserPromptSubmit", &json!({}));
            edit(&repo, 2, "both.txt", "sed -i s/1/its/ both.txt");
            user(&repo, mine);
            edit(&repo, 3, "both.txt", "sed -i s/5/its/ both.txt");
            ends(&repo);
            let after = repo.state();
            repo.undo();
            repo.undo();
            repo.assert_file("a.txt", "a\n", "the first is undone");
            repo.assert_file("both.txt", LINES, "and the second");
            let status = repo.git(["status", "--porcelain", "-uall"]);
            assert_eq!(status.lines().count(), 1, "{mode:?}: the user's alone is left: {status}");
            repo.redo();
            repo.redo();
            repo.state().assert_is(&after, mine);
        }
    }
}

/// What is uncommitted of a file that an earlier turn made is to be put away before undo deletes that.
#[test]
fn the_hint_of_an_undo_over_what_the_user_edits_beside_a_later_turn_puts_that_away() {
    for (mode, args) in Mode::BOTH
        .into_iter()
        .flat_map(|mode| [&["undo", "--to", "0"][..], &["undo", "--only", "1"]].map(|args| (mode, args)))
    {
        let repo = begun(mode, "true");
        shell(&repo, 1, "echo its >new.txt");
        ends(&repo);
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 2, "both.txt", "sed -i s/1/its/ both.txt");
        user(&repo, "echo mine >>new.txt");
        ends(&repo);
        let error = repo.refuses(args, "conflict");
        let hints: Vec<_> = error["hints"].as_array().expect("hints").iter().filter_map(|hint| hint.as_str()).collect();
        let line = hints.iter().find_map(|hint| Some(hint.split_once("run 'git stash")?.1.split_once('\'')?.0));
        let line = line.unwrap_or_else(|| panic!("{mode:?}, {args:?}: {hints:?}"));
        repo.sh(&format!("git stash{line}"));
        let done = repo.oxundo(args);
        assert!(done.code == 0 || done.err().contains("taken out already"), "{mode:?}, {args:?}: {done:?}");
        assert!(!repo.exists("new.txt"), "{mode:?}, {args:?}");
        let kept = repo.sh("git show stash@{0}:new.txt 2>/dev/null || git show stash@{0}^3:new.txt");
        assert!(kept.contains("mine"), "{mode:?}, {args:?}: {kept}");
    }
}

#[test]
fn a_commit_of_the_users_between_calls_is_the_users_and_undo_leads_to_it() {
    for mode in Mode::tried() {
        let repo = begun(mode, "echo mine >>late.txt");
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        user(&repo, "echo own >own.txt; git add own.txt; git commit -qm own -- own.txt");
        let own = repo.head();
        shell(&repo, 2, "echo its >its.txt");
        ends(&repo);
        assert_eq!(repo.git(["log", "--format=%s", "--grep=own", "HEAD"]), "own");
        assert_eq!(repo.try_git(["notes", "--ref=oxundo", "show", &own]).code, 1, "it is no turn's");
        let turn = &repo.log()[0];
        let commits = turn["commits"].as_array().expect("commits");
        assert!(!commits.contains(&json!(own)), "{turn}");
        let after = repo.state();
        repo.undo();
        assert_eq!(repo.head(), own, "{mode:?}");
        repo.assert_file("own.txt", "own\n", "the user's");
        repo.assert_file("a.txt", "a\n", "the agent's is taken back");
        assert!(!repo.exists("its.txt"));
        repo.assert_file("late.txt", "l\nmine\n", "the user's from before the turn");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.oxundo(["undo", "--revert"]).success();
        repo.assert_file("own.txt", "own\n", "the user's");
        repo.assert_file("a.txt", "a\n", "taken out");
        repo.assert_sound();
    }
}

#[test]
fn a_commit_of_the_users_with_the_agents_work_in_it_stays_and_the_files_are_taken_back() {
    let repo = begun(Mode::Commit, "true");
    edit(&repo, 1, "both.txt", "sed -i s/1/its/ both.txt");
    user(&repo, "git commit -qam own");
    let own = repo.head();
    edit(&repo, 2, "both.txt", "sed -i s/8/more/ both.txt");
    ends(&repo);
    let after = repo.state();
    repo.undo();
    assert_eq!(repo.head(), own);
    repo.assert_file("both.txt", LINES, "all of the agent's is taken back");
    assert_eq!(repo.git(["status", "--porcelain"]), " M both.txt");
    repo.redo();
    repo.state().assert_is(&after, "redo");
    repo.assert_sound();
}

#[test]
fn between_the_agents_own_commits_the_users_is_refused_and_reverting_leaves_it() {
    let repo = begun(Mode::Commit, "true");
    shell(&repo, 1, "echo its >>a.txt; git commit -qam its");
    user(&repo, "echo own >own.txt; git add own.txt; git commit -qm own");
    shell(&repo, 2, "echo its >its.txt; git add its.txt; git commit -qm more");
    ends(&repo);
    let own = repo.git(["rev-parse", "HEAD~"]);
    let before = repo.everything();
    let refused = repo.refuses(&["undo"], "foreign");
    assert_eq!(refused["commits"], json!([own]), "{refused}");
    repo.everything().assert_is(&before, "a refusal changes nothing");
    repo.oxundo(["undo", "--revert"]).success();
    repo.assert_file("a.txt", "a\n", "taken out");
    assert!(!repo.exists("its.txt"));
    assert_eq!(repo.git(["show", "HEAD:own.txt"]), "own", "the user's stays, and stays committed");
    repo.redo();
    repo.assert_file("its.txt", "its\n", "and back");
    repo.assert_sound();
}

/// The agent's commits are all there again, made anew.
#[test]
fn what_the_user_puts_between_or_into_the_agents_commits_by_a_rebase_is_theirs() {
    let to = |script: &str| format!("GIT_SEQUENCE_EDITOR={script:?} git rebase -q -i HEAD~2 2>/dev/null");
    let cases = [
        ("below the second", format!("git commit -qam own; {}", to("sed -i '1{h;d};2{G}'"))),
        ("into the first", format!("git commit -qa --fixup=HEAD~1; {} --autosquash", to("true").replace("~2", "~3"))),
        ("into the second", format!("git commit -qa --fixup=HEAD; {} --autosquash", to("true").replace("~2", "~3"))),
        ("below both", format!("git commit -qam own; {}", to("sed -n -i '1h;2H;3{p;g;p}'").replace("~2", "~3"))),
        (
            "while it stands",
            format!(
                "git stash -q; {}; git stash pop -q; git commit -qam own; git rebase --continue 2>/dev/null",
                to("sed -i 1s/pick/edit/")
            ),
        ),
        (
            "into what is there at a stop",
            format!(
                "git stash -q; {}; git stash pop -q; git commit -qa --amend --no-edit; git rebase --continue 2>/dev/null",
                to("sed -i 1s/pick/edit/")
            ),
        ),
    ];
    let cases = cases.into_iter().flat_map(|(name, script)| {
        Mode::tried().into_iter().map(move |mode| (format!("{mode:?}: {name}"), (mode, script.clone())))
    });
    check_all(cases, |(mode, script)| {
        let repo = begun(*mode, "true");
        shell(&repo, 1, "sed -i s/1/its/ both.txt; git commit -qam its");
        shell(&repo, 2, "echo its >>a.txt; git commit -qam more");
        user(&repo, &format!("echo USER >>late.txt; {script}"));
        edit(&repo, 3, "staged.txt", "echo its >>staged.txt");
        ends(&repo);
        assert!(repo.sh("git log -p").contains("+USER"), "it is committed");
        let files = repo.json(["show", "1"]).1["files"].clone();
        assert!(!files.to_string().contains("late.txt"), "{files}");
        let before = repo.state();
        repo.oxundo(["undo", "--revert"]).success();
        repo.assert_file("late.txt", "l\nUSER\n", "the user's stays");
        assert!(!repo.sh("cat *.txt").contains("its"), "the agent's is taken out");
        repo.redo();
        repo.state().assert_is(&before, "and back");
        repo.assert_sound();
    });
}

#[test]
fn where_only_the_user_changed_something_there_is_no_turn() {
    for (script, head) in [("echo own >>a.txt", 0), ("echo own >>a.txt; git commit -qam own", 1)] {
        let repo = begun(Mode::Commit, "echo mine >>late.txt");
        let dirty = repo.head();
        shell(&repo, 1, "true");
        user(&repo, script);
        shell(&repo, 2, "true");
        assert_eq!(repo.json(["undo", "--dry-run"]).1["error"]["code"], "nothing", "{script}");
        ends(&repo);
        assert_eq!(repo.log().len(), 0, "{script}");
        repo.assert_file("a.txt", "a\nown\n", script);
        let below = repo.git(["rev-parse", &format!("HEAD~{head}")]);
        assert_eq!(below == dirty, head == 1, "the dirty commit is taken back, unless the user's stands on it");
        repo.assert_sound();
    }
}

#[test]
fn a_commit_of_the_users_in_the_moment_in_which_the_turn_ends_is_the_users() {
    let repo = begun(Mode::Commit, "true");
    edit(&repo, 1, "a.txt", "echo its >>a.txt");
    // It runs when the end has been looked at, and the index is locked.
    let commit = "[ -e .git/done ] || { : >.git/done; git update-ref HEAD $(git commit-tree -p HEAD -m own HEAD^{tree}); }; echo message";
    repo.git(["config", "oxundo.messageCommand", commit]);
    let stop = json!({"hook_event_name": "Stop", "session_id": "s"}).to_string();
    let told = Output::fired(&mut repo.oxundo_command(["hook", "claude"]), stop.as_bytes());
    assert_eq!((told.code, told.out()), (0, String::new()), "{told:?}");
    let own = repo.git(["log", "-1", "--grep=^own$", "--format=%H"]);
    assert_ne!(own, "", "nobody takes it off the branch");
    // The hook gave up, and the next command ends the turn.
    let planned = repo.json(["undo", "--dry-run"]).1;
    repo.undo();
    assert_eq!(repo.head(), own, "{planned}");
    repo.assert_file("a.txt", "a\n", "the agent's is taken back");
    repo.redo();
    repo.assert_file("a.txt", "a\nits\n", "and back");
    repo.assert_sound();
}

#[test]
fn what_the_user_saves_in_the_moment_in_which_the_turn_ends_is_in_no_commit_of_the_agents() {
    for (save, late) in [
        ("echo late >>both.txt", "late"),
        ("sed s/8/late/ both.txt >../home/new; mv ../home/new both.txt", "late"),
        ("rm both.txt", ""),
        ("rm both.txt; ln -s late both.txt", ""),
    ] {
        let repo = begun(Mode::Commit, "true");
        edit(&repo, 1, "both.txt", "sed -i s/1/its/ both.txt");
        // It runs when the end has been looked at, and nothing is staged yet.
        let command = format!("[ -e .git/done ] || {{ : >.git/done; {save}; }}; echo message");
        repo.git(["config", "oxundo.messageCommand", &command]);
        ends(&repo);
        let made = repo.git(["show", "--format=%s", "HEAD"]);
        assert!(made.starts_with("message") && made.contains("+its") && !made.contains("+late"), "{save}: {made}");
        let left = repo.state();
        if late.is_empty() {
            repo.refuses(&["undo"], "conflict");
        } else {
            repo.undo();
            assert!(text(&repo, "both.txt").contains(late), "{save}: undo keeps it");
            assert!(!text(&repo, "both.txt").contains("its"), "{save}: and takes the rest");
            repo.redo();
        }
        repo.state().assert_is(&left, save);
        repo.assert_sound();
    }
}

#[test]
fn what_the_user_saves_in_the_moment_in_which_their_work_is_committed_is_taken_out_by_nobody() {
    let saves = ["echo late >>both.txt", "sed s/8/late/ both.txt >../home/new; mv ../home/new both.txt", "rm both.txt"];
    for (save, converts) in saves.into_iter().flat_map(|save| [(save, ""), (save, "both.txt filter=marks\n")]) {
        let repo = Sandbox::new();
        repo.git(["config", "filter.marks.clean", "sed s/^/#/"]);
        let attributes = format!("*.flt filter=late\n{converts}");
        repo.write("a.flt", "a\n").write("both.txt", LINES).write(".gitattributes", attributes);
        repo.sh("git add -A; git commit -qm files; echo mine >>both.txt; echo mine >>a.flt");
        // It runs when all has been looked at, and this file comes to be staged before the other.
        let filter = format!("[ ! -e .git/armed ] || {{ rm .git/armed; {save}; }}; cat");
        repo.git(["config", "filter.late.clean", &filter]);
        repo.sh(": >.git/armed");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        assert!(!repo.exists(".git/armed"), "it was saved");
        tick();
        edit(&repo, 1, "both.txt", "[ ! -e both.txt ] || sed -i s/1/its/ both.txt");
        edit(&repo, 2, "two.txt", "echo 2 >two.txt");
        ends(&repo);
        let commits = repo.git(["log", "-p", "--format=%s", "-2"]);
        let (its, theirs) = commits.split_once("\noxundo: ").expect("two commits");
        let has_late = |text: &str| text.lines().any(|line| line.starts_with(['+', '-']) && line.contains("late"));
        assert!(theirs.contains("mine") && !has_late(theirs), "{save}, {converts}: {commits}");
        // Lines that git converts are not told apart within the turn.
        assert!(!converts.is_empty() || !has_late(its), "{save}: {commits}");
        assert!(!its.lines().any(|line| line.starts_with('-') && line.contains("late")), "{save}: {commits}");
        let left = repo.state();
        repo.undo();
        assert_eq!(repo.exists("both.txt"), !save.starts_with("rm"), "as the user left it");
        assert!(save.starts_with("rm") || text(&repo, "both.txt").contains("late"), "{save}: undo keeps it");
        repo.redo();
        repo.state().assert_is(&left, save);
        repo.assert_sound();
    }
}

/// What the user does with git between two calls, with what has to be there before the turn, and what is to be seen of it.
const WITH_GIT: [(&str, &str, &str); 13] = [
    ("git branch a new branch", "true", "git branch theirs"),
    ("a branch is deleted", "git branch theirs", "git branch -D theirs"),
    ("a branch is renamed", "git branch theirs", "git branch -m theirs ours"),
    (
        "a commit on another branch",
        "git branch theirs",
        "git update-ref refs/heads/theirs $(git commit-tree -p theirs -m own theirs^{tree})",
    ),
    ("a branch becomes another's name", "git branch theirs", "git symbolic-ref refs/heads/link refs/heads/theirs"),
    (
        "a new branch, with a commit",
        "true",
        "git switch -qc theirs; echo own >own.txt; git add own.txt; git commit -qm own -- own.txt",
    ),
    ("a new branch", "true", "git switch -qc theirs"),
    ("a stash entry", "git stash list", "echo own >>late.txt; git stash push -q -- late.txt"),
    ("a stash entry is popped", "echo own >>late.txt; git stash push -q -- late.txt", "git stash pop -q"),
    (
        "a stash entry is dropped, and another made",
        "for n in 1 2; do echo own >>late.txt; git stash push -qm $n -- late.txt; done",
        "git stash drop -q; echo mine >>late.txt; git stash push -qm mine -- late.txt",
    ),
    ("HEAD's branch under another name", "true", "git branch -m trunk"),
    ("and under a third", "git branch beside", "git branch -m trunk; git branch -m last"),
    ("its old name anew", "true", "git branch -m trunk; git branch main"),
];

/// HEAD's branch, what each branch but the one with this name points to, and the stash list.
fn pointers(repo: &Sandbox) -> (String, String, String) {
    let on = repo.git(["symbolic-ref", "HEAD"]);
    let format = format!("--format=%(if:equals={on})%(refname)%(then)%(else)%(refname) %(objectname) %(symref)%(end)");
    (on.clone(), repo.git(["for-each-ref", &format, "refs/heads"]), repo.git(["stash", "list", "--format=%H %gs"]))
}

#[test]
fn what_the_user_does_with_branches_and_the_stash_between_calls_is_theirs() {
    for mode in Mode::tried() {
        for (what, before, script) in WITH_GIT {
            let repo = begun(mode, before);
            edit(&repo, 1, "a.txt", "echo its >>a.txt");
            user(&repo, script);
            let theirs = pointers(&repo);
            let own = repo.head();
            shell(&repo, 2, "echo its >its.txt");
            edit(&repo, 3, "both.txt", "sed -i s/1/its/ both.txt");
            ends(&repo);
            assert_eq!(pointers(&repo), theirs, "{what}, {mode:?}: nobody else did anything there");
            let after = repo.state();
            repo.undo();
            assert_eq!(pointers(&repo), theirs, "{what}, {mode:?}: the user's stays");
            if what.starts_with("a new branch") {
                assert_eq!(repo.head(), own, "{what}, {mode:?}: HEAD too");
            }
            repo.assert_file("a.txt", "a\n", "the agent's is taken back");
            assert!(!repo.exists("its.txt"), "{what}, {mode:?}");
            repo.redo();
            repo.state().assert_is(&after, what);
            repo.undo();
            assert_eq!(pointers(&repo), theirs, "{what}, {mode:?}: once more");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_a_call_does_with_branches_and_the_stash_is_the_turns_beside_the_users() {
    for mode in Mode::tried() {
        let repo = begun(mode, "git branch theirs; echo own >>late.txt; git stash push -qm own -- late.txt");
        let (on, branches, stash) = pointers(&repo);
        shell(&repo, 1, "git branch its; git stash drop -q; echo its >>both.txt; git stash push -qm its -- both.txt");
        user(&repo, "git branch mine; echo mine >>a.txt; git stash push -qm mine -- a.txt; git branch -D theirs");
        let mine = repo.git(["rev-parse", "stash"]);
        shell(&repo, 2, "echo its >its.txt; git branch more");
        ends(&repo);
        let after = repo.state();
        repo.undo();
        let kept = branches.replacen("theirs", "mine", 1);
        assert_eq!(pointers(&repo), (on, kept, format!("{mine} On main: mine\n{stash}")), "{mode:?}");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.assert_sound();
    }
}

#[test]
fn switching_to_another_branch_between_calls_is_the_users() {
    for mode in Mode::tried() {
        let repo = begun(
            mode,
            "git switch -qc topic; echo topic >topic.txt; git add topic.txt; git commit -qm topic; git switch -q main",
        );
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        user(&repo, "git switch -q topic");
        let (topic, main) = (repo.head(), repo.git(["rev-parse", "main"]));
        shell(&repo, 2, "echo its >its.txt");
        ends(&repo);
        let after = repo.state();
        repo.undo();
        assert_eq!(repo.git(["symbolic-ref", "--short", "HEAD"]), "topic", "{mode:?}");
        assert_eq!((repo.head(), repo.git(["rev-parse", "main"])), (topic, main), "{mode:?}");
        repo.assert_file("topic.txt", "topic\n", "the user's branch has it");
        repo.assert_file("a.txt", "a\n", "the agent's is taken back");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{mode:?}");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.assert_sound();
    }
}

/// What is done by turns, the agent first: then the branch where undo leads to, and what the user has there that is not committed.
const THERE_AND_BACK: [(&[&str], &str, &str); 8] = [
    (
        &[
            "echo its >>a.txt; git commit -qam its",
            "git switch -q topic",
            "echo its >>late.txt; git commit -qam its",
            "git switch -q main",
        ],
        "main",
        "",
    ),
    // One file is another on each branch, and in each commit.
    (
        &["sed -i s/1/its/ both.txt; git commit -qam its", "git switch -q topic", "true", "git switch -q main"],
        "main",
        "",
    ),
    (
        &[
            "sed -i s/1/its/ both.txt; git commit -qam its",
            "git switch -q topic",
            "sed -i s/topic/more/ both.txt; git commit -qam its",
        ],
        "topic",
        "",
    ),
    // The user's own edits are carried along.
    (
        &[
            "echo its >>a.txt; git commit -qam its",
            "echo mine >>staged.txt; git add staged.txt; echo mine >>late.txt; git switch -q topic",
            "echo its >>a.txt; git commit -qm its a.txt",
            "git switch -q main; echo mine >>both.txt",
        ],
        "main",
        " M both.txt\n M late.txt\nM  staged.txt",
    ),
    (
        &[
            "echo its >>a.txt; git commit -qam its",
            "git switch -q topic; echo mine >>both.txt; git add both.txt",
            "echo its >its.txt",
        ],
        "topic",
        "M  both.txt",
    ),
    // To a branch that the agent has moved from elsewhere, and to one that it has made: undo takes that away.
    (
        &[
            "git switch -q topic; echo its >>a.txt; git commit -qam its; git switch -q main",
            "git switch -q topic",
            "true",
        ],
        "topic",
        "",
    ),
    (
        &[
            "git switch -qc its; mkdir d; echo its >d/its; git rm -q late.txt; git add .; git commit -qam its; git switch -q main",
            "git switch -q its",
            "echo its >>a.txt",
        ],
        "main",
        "",
    ),
    (
        &[
            "echo its >>a.txt; git commit -qam its",
            "git switch -q --detach topic; git switch -q main",
            "echo its >>late.txt",
        ],
        "main",
        "",
    ),
];

#[test]
fn what_git_writes_as_the_user_switches_between_the_agents_commits_is_not_the_users() {
    for mode in Mode::tried() {
        for (lines, on, status) in THERE_AND_BACK {
            let repo = begun(
                mode,
                "git switch -qc topic; sed -i s/1/topic/ both.txt; echo topic >topic.txt; git add .; git commit -qm topic; git switch -q main",
            );
            let branches =
                |repo: &Sandbox| repo.git(["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads"]);
            let start = branches(&repo);
            for (number, line) in (1..).zip(lines) {
                if number % 2 == 1 { shell(&repo, number, line) } else { user(&repo, line) }
            }
            ends(&repo);
            let after = repo.state();
            let planned = repo.json(["undo", "--dry-run"]).1;
            let done = repo.json(["undo"]).1;
            assert_eq!((&planned["files"], &planned["head"]), (&done["files"], &done["head"]), "{lines:?}, {mode:?}");
            assert_eq!(branches(&repo), start, "{lines:?}, {mode:?}");
            assert_eq!(repo.git(["symbolic-ref", "--short", "HEAD"]), on, "{lines:?}, {mode:?}");
            assert_eq!(
                repo.sh("git status --porcelain; find . -type d -empty ! -path './.git/*'"),
                status,
                "{lines:?}, {mode:?}"
            );
            assert_eq!(repo.git(["diff", "HEAD"]).matches("+its").count(), 0, "{lines:?}, {mode:?}");
            repo.redo();
            repo.state().assert_is(&after, &format!("{lines:?}, {mode:?}"));
            repo.assert_sound();
        }
    }
}

#[test]
fn what_the_user_merges_of_the_agents_commits_between_calls_is_taken_back_or_refused() {
    let commits = |text: &str, file: &str| format!("echo {text} >>{file}; git commit -qam {text}");
    for (is_own_there, comes) in [
        (false, "git branch u; git switch -q u"),
        (true, "git switch -qc u; echo own >own.txt; git add own.txt; git commit -qm own"),
    ] {
        let repo = begun(Mode::Commit, "true");
        let before = repo.head();
        shell(&repo, 1, &commits("its1", "a.txt"));
        user(&repo, comes);
        shell(&repo, 2, &commits("its2", "both.txt"));
        user(&repo, "git switch -q main; git merge -q u");
        shell(&repo, 3, "echo its >its.txt");
        ends(&repo);
        let after = repo.state();
        if is_own_there {
            repo.refuses(&["undo"], "foreign");
            repo.state().assert_is(&after, "nothing is changed");
            repo.oxundo(["undo", "--revert"]).success();
            repo.assert_file("own.txt", "own\n", "the user's");
        } else {
            repo.undo();
            assert_eq!((repo.head(), repo.git(["rev-parse", "u"])), (before.clone(), before));
            repo.redo();
            repo.state().assert_is(&after, "redo");
            repo.undo();
        }
        assert_eq!(text(&repo, "a.txt"), "a\n");
        assert_eq!(text(&repo, "both.txt"), LINES, "none of the agent's lines stays");
        assert!(!repo.exists("its.txt"));
        repo.assert_sound();
    }
}

#[test]
fn what_the_user_commits_below_the_agents_commits_and_brings_to_heads_branch_is_theirs() {
    for brings in [
        "git switch -q main; git merge -q u",
        "git switch -q main; git reset -q --keep u",
        "git switch -q main; git rebase -q u",
        "git branch -f main u; git switch -q main",
        "git switch -q -C main u",
    ] {
        let repo = begun(Mode::Commit, "true");
        user(&repo, "git switch -qc u; echo own >own.txt; git add own.txt; git commit -qm own");
        let own = repo.head();
        shell(&repo, 1, "echo its >>a.txt; git commit -qam its");
        user(&repo, brings);
        ends(&repo);
        let after = repo.state();
        repo.undo();
        assert_eq!((repo.git(["rev-parse", "main"]), repo.git(["rev-parse", "u"])), (own.clone(), own), "{brings}");
        assert_eq!((text(&repo, "a.txt"), text(&repo, "own.txt")), ("a\n".to_owned(), "own\n".to_owned()));
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{brings}");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.oxundo(["undo", "--revert"]).success();
        assert_eq!((text(&repo, "a.txt"), text(&repo, "own.txt")), ("a\n".to_owned(), "own\n".to_owned()), "{brings}");
    }
}

#[test]
fn what_the_user_saves_in_a_file_that_comes_to_other_attributes_is_theirs() {
    let mine = |line: u32, path: &str| format!("sed -i 's/^line {line}$/mine/' {path}");
    for is_by_agent in [true, false] {
        let repo = Sandbox::new();
        repo.sh("git config filter.x.clean 'sed s/^line/LINE/'; git config filter.x.smudge 'sed s/^LINE/line/'
             echo 'd/* filter=x' >.gitattributes; mkdir d; seq -f 'line %g' 60 | tee f.txt >d/x; touch d/y
             git add -A; git commit -qm files");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        let (path, lines) = if is_by_agent {
            user(&repo, &mine(20, "d/x"));
            shell(&repo, 1, "git mv d/x x");
            user(&repo, &mine(40, "x"));
            ("x", 2)
        } else {
            user(&repo, &mine(20, "f.txt"));
            user(&repo, "git mv f.txt d/f");
            ("d/f", 1)
        };
        edit(&repo, 2, path, &format!("sed -i 's/^line 50$/its/' {path}"));
        ends(&repo);
        let commit = repo.git(["show", "--format=%s", "-U0", "HEAD"]);
        assert_eq!((commit.matches("+its").count(), commit.matches("+mine").count()), (1, 0), "{commit}");
        let after = repo.state();
        repo.undo();
        let left = repo.sh("grep -rhox --exclude-dir=.git 'mine\\|its' .");
        assert_eq!(left, "mine\n".repeat(lines).trim_end(), "undo takes out the agent's line, and no other");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    }
}

#[test]
fn what_the_agent_commits_where_a_rebase_of_the_users_stands_still_is_not_left_by_undo() {
    for does in
        ["echo its >n2; git add n2; git commit -qm its", "echo its >n2; git add n2; git commit -q --amend --no-edit"]
    {
        let repo = begun(Mode::Commit, "for n in 1 2; do echo $n >own$n; git add -A; git commit -qm own$n; done");
        shell(&repo, 1, "echo its >n1");
        user(&repo, "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2 2>/dev/null");
        shell(&repo, 2, does);
        user(&repo, "git rebase --continue 2>/dev/null");
        shell(&repo, 3, "echo its >n3");
        ends(&repo);
        let after = repo.state();
        repo.refuses(&["undo"], "foreign");
        repo.state().assert_is(&after, "nothing is changed");
        repo.oxundo(["undo", "--revert"]).success();
        assert!(["n1", "n2", "n3"].iter().all(|name| !repo.exists(name)), "{does}");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "no deletion is left to be committed");
        repo.assert_sound();
    }
}

#[test]
fn what_the_user_saves_in_a_file_of_which_the_agent_turns_the_line_ends_is_theirs() {
    let attributes = "echo '*.txt eol=crlf' >.gitattributes; git add .gitattributes; git commit -qm attributes";
    for (setting, saves_again) in [
        ("git config core.autocrlf true", false),
        ("git config core.autocrlf true", true),
        (attributes, true),
        ("true", true),
    ] {
        let repo = Sandbox::new();
        repo.sh(setting);
        repo.write("f.txt", (1..=60).map(|n| format!("line {n}\r\n")).collect::<String>());
        repo.sh("git add f.txt 2>/dev/null; git commit -qm file; git status");
        let before = repo.read("f.txt");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 1, "f.txt", "sed -i 's/^line 3\r/its\r/' f.txt");
        user(&repo, "sed -i 's/^line 20\r/mine\r/' f.txt");
        edit(&repo, 2, "f.txt", "sed -i 's/\r$//; s/^line 30$/its/' f.txt");
        if saves_again {
            user(&repo, "sed -i 's/^line 45$/mine/' f.txt");
        }
        ends(&repo);
        let commit = repo.git(["show", "--format=%s", "-U0", "HEAD"]);
        assert_eq!((commit.matches("+its").count(), commit.matches("+mine").count()), (2, 0), "{setting}: {commit}");
        assert_eq!(repo.git(["status", "--porcelain"]), " M f.txt", "{setting}");
        let after = repo.state();
        repo.undo();
        let mine = if saves_again { vec![20, 45] } else { vec![20] };
        let left = mine.iter().fold(String::from_utf8_lossy(&before).into_owned(), |text, line| {
            text.replace(&format!("line {line}\r"), "mine\r")
        });
        assert_eq!(text(&repo, "f.txt"), left, "{setting}");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    }
}

#[test]
fn a_commit_that_the_user_words_anew_between_calls_is_the_turns_and_keeps_their_words() {
    for mode in [Mode::Commit, Mode::Ghost] {
        for user_does in ["commit -q --amend -m better", "rebase -q -x 'git commit -q --amend -m better' HEAD~1"] {
            let repo = begun(mode, "true");
            let before = repo.state();
            shell(&repo, 1, "echo 1 >one.txt; git add -A; git commit -qm its");
            user(&repo, &format!("git {user_does}"));
            let there = repo.state();
            edit(&repo, 2, "two.txt", "echo 2 >two.txt");
            ends(&repo);
            let after = repo.state();
            repo.oxundo(["undo", "--to", "1.1"]).success();
            repo.state().assert_is(&there, user_does);
            repo.redo();
            repo.state().assert_is(&after, "on");
            repo.undo();
            repo.state().assert_is(&before, "it is undone with its turn, as where it was worded anew after that");
            repo.redo();
            repo.state().assert_is(&after, "and comes back with the user's words");
            repo.assert_sound();
        }
    }
}

#[test]
fn a_commit_to_which_the_user_adds_something_between_calls_is_not_the_turns() {
    for mode in [Mode::Commit, Mode::Ghost] {
        let repo = begun(mode, "true");
        shell(&repo, 1, "echo 1 >one.txt; git add -A; git commit -qm its");
        user(&repo, "echo mine >mine.txt; git add mine.txt; git commit -q --amend -m better");
        edit(&repo, 2, "two.txt", "echo 2 >two.txt");
        ends(&repo);
        let after = repo.state();
        for line in [&["undo"][..], &["undo", "--to", "1.1"]] {
            assert_eq!(repo.json(line).1["error"]["code"], "foreign", "{line:?}");
        }
        repo.state().assert_is(&after, "nothing is changed");
    }
}

#[test]
fn a_commit_that_the_user_reset_away_between_calls_is_there_again_after_its_step_and_nothing_is_staged() {
    for mode in [Mode::Commit, Mode::Ghost] {
        let repo = begun(mode, "true");
        shell(&repo, 1, "echo 1 >>README.txt; git commit -qam its");
        let there = repo.state();
        user(&repo, "git reset -q --hard HEAD~1");
        edit(&repo, 2, "two.txt", "echo 2 >two.txt");
        ends(&repo);
        let after = repo.state();
        repo.oxundo(["undo", "--to", "1.1"]).success();
        repo.state().assert_is(&there, "as it was after the step");
        repo.redo();
        repo.state().assert_is(&after, "on");
        repo.assert_sound();
    }
}

#[test]
fn a_commit_while_an_edit_is_in_flight_is_the_users() {
    let repo = begun(Mode::Commit, "true");
    let commit = "echo own >own.txt; git add own.txt; git commit -qm own -- own.txt; git branch theirs";
    edit(&repo, 1, "a.txt", &format!("echo its >>a.txt; {commit}"));
    let own = repo.head();
    shell(&repo, 2, "echo its >its.txt");
    ends(&repo);
    let after = repo.state();
    repo.undo();
    assert_eq!((repo.head(), repo.git(["rev-parse", "theirs"])), (own.clone(), own), "no edit commits");
    repo.assert_file("own.txt", "own\n", "the user's");
    repo.assert_file("a.txt", "a\n", "the agent's is taken back");
    repo.redo();
    repo.state().assert_is(&after, "redo");
    repo.assert_sound();
}

#[test]
fn a_commit_in_a_call_whose_beginning_nobody_told_is_the_calls() {
    let repo = begun(Mode::Commit, "echo mine >>staged.txt; git add staged.txt");
    shell(&repo, 1, "echo its >>late.txt");
    repo.sh("echo its >>a.txt; git commit -qm its a.txt");
    hook(&repo, "s", "PostToolUse", &json!({"tool_name": "Bash", "tool_use_id": "s2", "tool_input": {}}));
    shell(&repo, 3, "echo its >>both.txt");
    ends(&repo);
    let after = repo.state();
    repo.undo();
    assert_eq!(repo.git(["log", "-1", "--format=%s"]), "files", "all that was committed since is undone");
    assert_eq!(repo.git(["diff", "--cached", "--name-only"]), "staged.txt", "what the user had staged is staged");
    assert_eq!(repo.git(["diff", "--name-only"]), "", "and nothing else has changed");
    repo.redo();
    repo.state().assert_is(&after, "redo");
}

#[test]
fn the_branch_that_undo_leads_to_is_there_though_the_user_took_it_off() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.sh("git branch topic; git switch -q topic");
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        let before = repo.state();
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, "echo its >its.txt; git switch -q main");
        user(&repo, "git branch -qD topic");
        shell(&repo, 2, "echo more >>its.txt");
        ends(&repo);
        let after = repo.state();
        repo.undo();
        repo.state().assert_is(&before, "undo");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.assert_sound();
    }
}

/// An editor does that as it saves, or a hook of the agent's behind each edit. What the user writes beside it is theirs.
#[test]
fn what_a_formatter_makes_of_lines_of_calls_is_theirs() {
    for (mode, (saves, mine)) in Mode::tried().into_iter().flat_map(|mode| {
        let saves = [
            "sed -i 's/ *$//' both.txt",
            "sed -i 's/ *$//; 6s/.*/mine/' both.txt",
            "sed 's/ *$//' both.txt >new; mv new both.txt",
        ];
        saves.map(|saves| (mode, (saves, saves.contains("mine"))))
    }) {
        let repo = begun(mode, "true");
        edit(&repo, 1, "both.txt", "sed -i '3s/.*/its  /' both.txt; printf 'more  \\nits \\n' >>both.txt");
        user(&repo, saves);
        edit(&repo, 2, "a.txt", "echo its >>a.txt");
        ends(&repo);
        let there = LINES.replace('3', "its").replace('6', if mine { "mine" } else { "6" }) + "more\nits\n";
        repo.assert_file("both.txt", &there, saves);
        if mode == Mode::Commit {
            let left = repo.git(["status", "--porcelain"]);
            assert_eq!(left, if mine { " M both.txt" } else { "" }, "{saves}: it is committed as it is");
        }
        let done = repo.state();
        repo.undo();
        repo.assert_file("both.txt", LINES.replace('6', if mine { "mine" } else { "6" }), saves);
        repo.redo();
        repo.state().assert_is(&done, saves);
        repo.assert_sound();
    }
}

/// It is not in the worktree, and so in no commit; unless they bring it back.
#[test]
fn what_the_user_took_back_of_a_file_is_not_committed_with_what_calls_made_of_it_since() {
    const FIRST: &str = "sed -i s/1/ITS1/ both.txt";
    for (takes, brings, committed) in [
        ("git stash -q", "true", "+ITS8"),
        ("git stash -q; git stash drop -q", "true", "+ITS8"),
        ("git checkout -q -- both.txt", "true", "+ITS8"),
        ("sed -i s/ITS1/1/ both.txt", "true", "+ITS8"),
        ("git stash -q; git stash drop -q", FIRST, "+ITS1 +ITS8"),
        ("sed -i s/ITS1/mine/ both.txt", "true", "+ITS1 +ITS8"),
    ] {
        let repo = begun(Mode::Commit, "true");
        edit(&repo, 1, "both.txt", FIRST);
        user(&repo, takes);
        edit(&repo, 2, "both.txt", "sed -i s/8/ITS8/ both.txt");
        user(&repo, brings);
        let there = text(&repo, "both.txt");
        ends(&repo);
        let lines = "git show --format= -U0 HEAD | grep '^+[^+]' | sort | tr '\\n' ' '";
        assert_eq!(repo.sh(lines).trim(), committed, "{takes}; {brings}");
        assert_eq!(text(&repo, "both.txt"), there, "{takes}");
        if there.contains("mine") {
            // It overlaps with what the turn is to take back.
            continue;
        }
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{takes}");
        let after = repo.state();
        repo.undo();
        repo.assert_file("both.txt", LINES, takes);
        repo.redo();
        repo.state().assert_is(&after, takes);
        repo.assert_sound();
    }
}

#[test]
fn a_stash_entry_of_a_call_takes_nothing_of_the_users_along() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        user(&repo, "echo mine >>late.txt; echo mine >mine.txt");
        shell(&repo, 2, "git stash push -q -- a.txt; echo its >its.txt");
        user(&repo, "echo more >>both.txt");
        ends(&repo);
        let its = repo.git(["log", "-p", "--format=", "--grep=^work of s$"]);
        assert!(!its.contains("+mine") && !its.contains("+more"), "{mode:?}: {its}");
        let after = repo.state();
        repo.undo();
        repo.assert_file("late.txt", "l\nmine\n", "the user's");
        repo.assert_file("mine.txt", "mine\n", "the user's");
        repo.assert_file("both.txt", format!("{LINES}more\n"), "the user's");
        repo.assert_file("a.txt", "a\n", "the agent's is taken back");
        assert_eq!(repo.git(["stash", "list"]), "", "{mode:?}");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.assert_sound();
    }
}

/// What the user does after a commit of the agent's; where HEAD is after undo, and its branches with where they point:
/// A is where the turn began, U where the user's own commit is.
const AFTER_A_COMMIT: [(&str, &str, &str); 4] = [
    ("git branch -m ours", "ours", "ours=A"),
    ("git switch -qc ours", "ours", "main=A ours=A"),
    ("git switch -q theirs; git commit -q --allow-empty -m own", "theirs", "main=A theirs=U"),
    ("git branch ours; git tag mark", "main", "main=A ours=its theirs=A"),
];

#[test]
fn after_a_commit_of_the_agents_the_user_may_switch_branches_and_undo_stays_there() {
    for mode in Mode::tried() {
        for (script, on, wanted) in AFTER_A_COMMIT {
            let repo = begun(mode, "git branch theirs");
            let start = repo.head();
            shell(&repo, 1, "echo its >>a.txt; git commit -qam its");
            let its = repo.head();
            user(&repo, script);
            let own = repo.head();
            shell(&repo, 2, "echo its >its.txt");
            ends(&repo);
            let after = repo.state();
            repo.undo();
            assert_eq!(repo.git(["symbolic-ref", "--short", "HEAD"]), on, "{script}, {mode:?}");
            for part in wanted.split(' ') {
                let (branch, at) = part.split_once('=').expect("a branch and where it points");
                let at = match at {
                    "A" => &start,
                    "its" => &its,
                    _ => &own,
                };
                assert_eq!(repo.git(["rev-parse", branch]), *at, "{script}, {mode:?}: {branch}");
            }
            assert!(!repo.exists("its.txt"), "{script}, {mode:?}");
            repo.assert_file("a.txt", "a\n", "the agent's is taken back");
            repo.redo();
            repo.state().assert_is(&after, script);
            repo.assert_sound();
        }
    }
}

#[test]
fn what_the_user_saves_and_the_next_call_takes_away_comes_back() {
    for mode in Mode::tried() {
        for script in [
            "rm mine.txt late.txt",
            "git clean -fdq; git checkout -q -- late.txt",
            "echo x >mine.txt; echo x >late.txt",
        ] {
            let repo = begun(mode, "true");
            shell(&repo, 1, "echo its >>a.txt");
            user(&repo, "echo mine >mine.txt; echo mine >>late.txt");
            shell(&repo, 2, &format!("{script}; echo its >>staged.txt"));
            ends(&repo);
            let after = repo.state();
            repo.undo();
            repo.assert_file("mine.txt", "mine\n", "it was looked at before the call");
            repo.assert_file("late.txt", "l\nmine\n", "it was looked at before the call");
            repo.assert_file("a.txt", "a\n", "the agent's is taken back");
            repo.redo();
            repo.state().assert_is(&after, script);
            repo.assert_sound();
        }
    }
}

#[test]
fn what_the_user_saves_is_told_from_calls_that_overlap() {
    for (calls, what) in [
        (
            &[("pre", "s", 1), ("pre", "t", 2), ("writes", "t", 2), ("post", "t", 2), ("post", "s", 1)][..],
            "one in another",
        ),
        (&[("pre", "s", 1), ("pre", "t", 2), ("writes", "t", 2), ("post", "s", 1), ("post", "t", 2)], "by halves"),
        (&[("pre", "s", 1), ("pre", "s", 2), ("writes", "s", 2), ("post", "s", 2), ("post", "s", 1)], "of one session"),
        (&[("pre", "s", 1), ("edit", "t", 2), ("post", "s", 1)], "an edit in a shell"),
        (
            &[("pre", "s", 1), ("edit", "t", 2), ("writes", "s", 1), ("post", "s", 1)],
            "an edit in a shell that writes too",
        ),
        (
            &[("other", "t", 2), ("pre", "s", 1), ("writes", "s", 1), ("post", "s", 1), ("end", "t", 2)],
            "a shell in an edit",
        ),
    ] {
        let repo = begun(Mode::Commit, "true");
        hook(&repo, "t", "UserPromptSubmit", &json!({}));
        edit(&repo, 9, "a.txt", "echo its >>a.txt");
        let tell = |event: &str, session: &str, tool: &str, id: u32, input: serde_json::Value| {
            let about = json!({"tool_name": tool, "tool_use_id": format!("{session}{id}"), "tool_input": input});
            hook(&repo, session, event, &about);
        };
        let file = |path: &str| json!({"file_path": repo.path(path)});
        tick();
        if !matches!(calls[0].0, "other") {
            user(&repo, "sed -i s/8/mine/ both.txt");
        }
        for (at, (event, session, id)) in calls.iter().copied().enumerate() {
            match event {
                "pre" => tell("PreToolUse", session, "Bash", id, json!({})),
                "post" => tell("PostToolUse", session, "Bash", id, json!({})),
                "writes" => drop(repo.sh("sed -i s/1/its/ both.txt")),
                "other" => {
                    tell("PreToolUse", session, "Edit", id, file("late.txt"));
                    user(&repo, "sed -i s/8/mine/ both.txt");
                }
                "end" => {
                    repo.sh("echo its >>late.txt");
                    tell("PostToolUse", session, "Edit", id, file("late.txt"));
                }
                _ => {
                    tell("PreToolUse", session, "Edit", id, file("both.txt"));
                    repo.sh(if at == 1 { "sed -i s/4/its/ both.txt" } else { "true" });
                    tell("PostToolUse", session, "Edit", id, file("both.txt"));
                }
            }
        }
        ends(&repo);
        hook(&repo, "t", "Stop", &json!({}));
        assert!(!repo.git(["show", "HEAD"]).contains("+mine"), "{what}: it is in no commit of the agents'");
        let after = repo.state();
        repo.undo();
        repo.assert_file("both.txt", LINES.replace('8', "mine"), what);
        repo.assert_file("late.txt", "l\n", what);
        repo.redo();
        repo.state().assert_is(&after, what);
        repo.assert_sound();
    }
}

#[test]
fn a_sessions_share_is_refused_where_it_cannot_be_told_from_what_the_user_saved() {
    for (write, save, path) in [
        ("seq 1 9 >new.txt", "echo mine >>new.txt", "new.txt"),
        ("sed -i '4a its' both.txt", "sed -i '5a mine' both.txt", "both.txt"),
    ] {
        let repo = begun(Mode::Commit, "true");
        shell(&repo, 1, write);
        user(&repo, save);
        ends(&repo);
        let before = repo.everything();
        let refused = repo.refuses(&["undo", "--session", "s"], "conflict");
        assert_eq!(refused["paths"], json!([path]), "{refused}");
        repo.everything().assert_is(&before, "nothing has changed");
        repo.oxundo(["undo", "--only", "1"]).success();
    }
}

#[test]
fn undo_of_a_turn_is_refused_where_what_the_user_saved_in_it_would_go_with_it() {
    for (mode, write, save, path) in [
        (Mode::Commit, "seq 1 9 >new.txt", "echo mine >>new.txt", "new.txt"),
        (Mode::Ghost, "seq 1 9 >new.txt", "echo mine >>new.txt", "new.txt"),
        (Mode::Commit, "sed -i '4a its' both.txt", "sed -i '5a mine' both.txt", "both.txt"),
        (Mode::Ghost, "sed -i '4a its' both.txt", "sed -i '5a mine' both.txt", "both.txt"),
        (Mode::Ghost, "rm late.txt", "echo mine >late.txt", "late.txt"),
    ] {
        for is_last in [true, false] {
            let repo = begun(mode, "echo before >>staged.txt");
            let start = repo.state();
            edit(&repo, 1, "a.txt", "echo its >>a.txt");
            shell(&repo, 2, write);
            user(&repo, save);
            if !is_last {
                shell(&repo, 3, "echo its >its.txt");
            }
            let open = repo.refuses(&["undo"], "conflict");
            assert_eq!(open["paths"], json!([path]), "with the turn open: {open}");
            ends(&repo);
            let after = repo.state();
            let before = repo.everything();
            let path_alone = ["undo", "--", path];
            for args in [&["undo"][..], &path_alone, &["undo", "--to", "1.1"], &["undo", "--edits=refuse"]] {
                let refused = repo.refuses(args, "conflict");
                assert_eq!(refused["paths"], json!([path]), "{args:?}: {refused}");
            }
            let status = repo.json(["status"]).1;
            assert_eq!(status["refusal"]["code"], "conflict", "{status}");
            repo.everything().assert_is(&before, "nothing has changed");
            // All else goes, and this stays as it is.
            let kept = repo.exists(path).then(|| repo.read(path));
            let others = format!(":(top,exclude,literal){path}");
            repo.oxundo(["undo", "--only", "1", "--", ":/", &others]).success();
            assert_eq!(repo.exists(path).then(|| repo.read(path)), kept, "it stays");
            repo.assert_file("a.txt", "a\n", "all else goes");
            repo.redo();
            repo.state().assert_is(&after, "redo");
            repo.oxundo(["undo", "--only", "1", "--dry-run"])
                .warns(&format!("what you saved in '{path}' during turn 1 goes with it"));
            repo.oxundo(["undo", "--edits=overwrite", "--", path]).success();
            repo.redo();
            repo.state().assert_is(&after, "redo of the path alone");
            // Or both go.
            repo.oxundo(["undo", "--edits=overwrite"]).success();
            if mode == Mode::Ghost {
                repo.state().assert_is(&start, "both are gone");
            }
            repo.redo();
            repo.state().assert_is(&after, "and both come back");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_the_user_saves_in_the_place_of_what_a_call_deleted_is_in_the_way_of_undo() {
    let its = "rm late.txt u; mkdir late.txt u; echo its >late.txt/i; echo its >u/i";
    for (removes, saves, paths) in [
        ("rm u", "mkdir u; echo mine >u/k", &["u/k"][..]),
        ("rm u", "mkdir -p u/sub/void; chmod 700 u/sub; echo mine >u/sub/k", &["u/sub/k"]),
        ("rm -r d", "echo mine >d", &["d"]),
        ("rm late.txt", "mkdir late.txt; echo mine >late.txt/k", &["late.txt/k"]),
        (its, "echo mine >late.txt/k; echo mine >u/k", &["late.txt/k", "u/k"]),
    ] {
        for (mode, more) in [(Mode::Commit, ""), (Mode::Ghost, ""), (Mode::Commit, "echo its >>a.txt")] {
            // The user's alone: git has no copy of it.
            let repo = begun(mode, "seq 5 >u; mkdir d; seq 7 >d/u");
            let start = repo.files();
            shell(&repo, 1, &format!("{removes}; {more}"));
            user(&repo, saves);
            assert_eq!(repo.refuses(&["undo"], "conflict")["paths"], json!(paths), "with the turn open");
            ends(&repo);
            repo.prune();
            let after = repo.state();
            assert_eq!(repo.refuses(&["undo"], "conflict")["paths"], json!(paths), "{removes}");
            repo.state().assert_is(&after, "nothing has changed");
            repo.oxundo(["undo", "--edits=overwrite"]).success();
            repo.files().assert_is(&start, "both are gone");
            repo.redo();
            repo.state().assert_is(&after, "and both come back");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_comes_back_is_there_though_the_user_took_away_what_a_call_had_put_in_its_place() {
    let repo = begun(Mode::Commit, "mkdir d; seq 7 >d/u");
    let start = repo.files();
    shell(&repo, 1, "rm -r d; echo its >d");
    user(&repo, "rm d");
    ends(&repo);
    repo.undo();
    repo.files().assert_is(&start, "all is back");
}

#[test]
fn what_the_user_saved_before_two_edits_of_one_file_at_once_is_theirs() {
    for (other, ends_too) in [("o", true), ("o", false), ("s", true), ("s", false)] {
        let repo = begun(Mode::Commit, "true");
        hook(&repo, "o", "UserPromptSubmit", &json!({}));
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        call(&repo, "o", 1, "Edit", &json!({"file_path": repo.path("staged.txt")}), "echo its >>staged.txt");
        user(&repo, "sed -i s/4/mine/ both.txt");
        let about =
            json!({"tool_name": "Edit", "tool_use_id": "beside", "tool_input": {"file_path": repo.path("both.txt")}});
        hook(&repo, other, "PreToolUse", &about);
        edit(&repo, 2, "both.txt", "sed -i s/8/its/ both.txt");
        if ends_too {
            repo.sh("sed -i s/1/others/ both.txt");
            hook(&repo, other, "PostToolUse", &about);
        }
        hook(&repo, "o", "Stop", &json!({}));
        ends(&repo);
        let commit = repo.git(["show", "--format=", "-U0", "HEAD", "--", "both.txt"]);
        assert!(commit.contains("+its") && !commit.contains("+mine"), "{commit}");
        assert_eq!(commit.contains("+others"), ends_too, "{commit}");
        assert_eq!(repo.git(["status", "--porcelain"]), " M both.txt", "what the user saved is uncommitted");
        let log = repo.json(["log", "--steps"]).1;
        let of_file = log["turns"][0]["steps"].as_array().expect("steps").iter().skip(2);
        assert!(of_file.clone().all(|step| step["files"][0]["insertions"] == 1), "a line of each: {log}");
        repo.undo();
        repo.assert_file("both.txt", LINES.replace('4', "mine"), "only what the user saved is left");
    }
}

#[test]
fn what_the_agent_has_committed_of_the_users_is_not_taken_out_by_the_turns_end() {
    for commits in ["git commit -qam own", "git add -A; git commit -qm own", "git commit -qm own both.txt"] {
        for later in ["true", "sed -i s/6/mine/ both.txt"] {
            let repo = begun(Mode::Commit, "true");
            edit(&repo, 1, "both.txt", "sed -i s/1/its/ both.txt");
            user(&repo, "sed -i s/4/mine/ both.txt; echo mine >>late.txt");
            shell(&repo, 2, commits);
            user(&repo, later);
            let (own, status) = (repo.head(), repo.git(["status", "--porcelain"]));
            ends(&repo);
            assert_eq!(repo.head(), own, "{commits}; {later}: there is nothing left to commit");
            assert_eq!(repo.git(["status", "--porcelain"]), status, "{commits}; {later}");
            repo.undo();
            assert!(!repo.read("both.txt").starts_with(b"its"), "what is the agent's goes");
            assert!(repo.read("both.txt").windows(4).any(|four| four == b"mine"), "what is the user's stays");
            repo.assert_file("late.txt", "l\nmine\n", "what is the user's stays");
        }
    }
}

#[test]
fn what_the_user_makes_between_calls_that_is_beyond_the_limits_is_theirs() {
    let makes = |whose: &str| {
        format!(
            "head -c 3000 /dev/zero >{whose}.big; mkdir {whose}; mkdir {whose}/node_modules; echo x >{whose}/node_modules/x"
        )
    };
    // With no further call, with one that names another file, and with one that may do anything.
    for (next, is_last) in [("true", true), ("edit", false), ("shell", false), ("write", false)] {
        for mode in Mode::tried() {
            let repo = begun(mode, "git config oxundo.maxFileSize 2k");
            edit(&repo, 1, "a.txt", "echo its >>a.txt");
            user(&repo, &makes("mine"));
            let after_user = repo.files();
            match next {
                "edit" => edit(&repo, 2, "both.txt", "sed -i s/1/its/ both.txt"),
                "shell" => shell(&repo, 2, &format!("echo its >>both.txt; {}", makes("its"))),
                "write" => {
                    let write = |id, path: &str, script: &str| {
                        call(&repo, "s", id, "Write", &json!({"file_path": repo.path(path)}), script);
                    };
                    write(2, "its.big", "head -c 3000 /dev/zero >its.big");
                    write(3, "its/node_modules/x", "mkdir its its/node_modules; echo x >its/node_modules/x");
                }
                _ => {}
            }
            if !is_last {
                user(&repo, "head -c 4000 /dev/zero >late.big");
            }
            ends(&repo);
            let files = repo.json(["show", "1"]).1["files"].to_string();
            assert!(!files.contains("mine") && !files.contains("late.big"), "{next}: it is no turn's: {files}");
            assert_eq!(files.contains("its.big"), ["shell", "write"].contains(&next), "{next}: {files}");
            let after = repo.state();
            repo.undo();
            for kept in ["mine.big", "mine/node_modules/x"] {
                assert!(repo.exists(kept), "{next}: it is the user's");
            }
            assert_eq!(repo.exists("late.big"), !is_last);
            assert!(!repo.exists("its.big") && !repo.exists("its"), "{next}: what a call made goes");
            repo.sh("rm -f late.big; echo its >>a.txt");
            repo.files().assert_is(&after_user, "and nothing else");
            repo.sh("git checkout -q a.txt 2>/dev/null || echo a >a.txt");
            if !is_last {
                repo.sh("head -c 4000 /dev/zero >late.big");
            }
            repo.redo();
            repo.state().without("on disk late.big").assert_is(&after.without("on disk late.big"), "redo");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_comes_when_nothing_is_at_work_in_the_background_any_more_is_the_users() {
    let listed = json!({"background_tasks": [{"id": "b1", "type": "shell", "status": "running"}]});
    let notified = json!({"prompt": "<task-notification>\n<task-id>b1</task-id></task-notification>"});
    for mode in Mode::tried() {
        for over in ["Notified", "SessionEnd", "UserPromptSubmit"] {
            for beside in [true, false] {
                let repo = begun(mode, "true");
                edit(&repo, 1, "a.txt", "echo its >>a.txt");
                hook(&repo, "two", "UserPromptSubmit", &json!({}));
                call(&repo, "two", 1, "Edit", &json!({"file_path": repo.path("both.txt")}), "sed -i s/1/two/ both.txt");
                user(&repo, "echo mine >early.txt; sed -i s/3/mine/ both.txt");
                hook(&repo, "two", "Stop", &listed);
                repo.sh("echo two >two.txt; sed -i s/5/two/ both.txt");
                tick();
                if beside {
                    edit(&repo, 2, "a.txt", "echo its >>a.txt");
                    repo.sh("echo two >>two.txt");
                    tick();
                }
                if over == "Notified" {
                    hook(&repo, "two", "UserPromptSubmit", &notified);
                    hook(&repo, "two", "Stop", &json!({"background_tasks": []}));
                } else {
                    hook(&repo, "two", over, &json!({}));
                }
                user(&repo, "sed -i s/8/mine/ both.txt; echo mine >mine.txt; echo mine >>late.txt");
                edit(&repo, 3, "a.txt", "echo its >>a.txt");
                if over == "UserPromptSubmit" {
                    hook(&repo, "two", "Stop", &json!({}));
                }
                ends(&repo);
                let files = repo.json(["show", "1"]).1["files"].to_string();
                assert!(
                    files.contains("two.txt") && !files.contains("early") && !files.contains("late"),
                    "{over}, {beside}: {files}"
                );
                if mode == Mode::Commit {
                    let its = repo.git(["show", "--format=", "-U0", "HEAD"]);
                    assert!(!its.contains("+mine"), "{over}, {beside}: {its}");
                    assert_eq!(its.matches("+two").count(), 3 + usize::from(beside), "{over}, {beside}: {its}");
                }
                let after = repo.state();
                repo.undo();
                repo.assert_file("a.txt", "a\n", "what is the agents' goes");
                repo.assert_file("both.txt", LINES.replace(['3', '8'], "mine"), "and what is the user's stays");
                for (file, content) in [("mine.txt", "mine\n"), ("early.txt", "mine\n"), ("late.txt", "l\nmine\n")] {
                    repo.assert_file(file, content, "it is the user's");
                }
                repo.assert_absent("two.txt", "what was done in the background goes");
                repo.redo();
                repo.state().assert_is(&after, "redo");
                repo.assert_sound();
            }
        }
    }
}

#[test]
fn what_the_user_committed_and_then_removed_is_not_deleted_by_the_turns_commit() {
    for removes in
        ["rm mine.txt", "mv mine.txt other.txt", "git rm -q mine.txt", "git mv mine.txt other.txt", "rm late.txt"]
    {
        for last in [false, true] {
            let repo = begun(Mode::Commit, "true");
            edit(&repo, 1, "a.txt", "echo its >>a.txt");
            user(&repo, "seq 30 >mine.txt; echo mine >>late.txt; git add mine.txt late.txt; git commit -qm uc");
            user(&repo, removes);
            if last {
                edit(&repo, 2, "a.txt", "echo its >>a.txt");
            }
            let status = repo.git(["status", "--porcelain"]);
            ends(&repo);
            assert_eq!(repo.git(["show", "--format=", "--name-only", "HEAD"]), "a.txt", "{removes}");
            assert_eq!(repo.git(["status", "--porcelain"]), status.replace(" M a.txt\n", ""), "{removes}");
            let after = repo.state();
            repo.undo();
            repo.assert_file("a.txt", "a\n", "the agent's is undone");
            assert_eq!(repo.exists("mine.txt"), removes == "rm late.txt", "what the user removed stays away");
            repo.redo();
            repo.state().assert_is(&after, "redo");
        }
    }
}

#[test]
fn what_the_user_begins_after_a_call_has_taken_what_they_had_prepared_is_not_ended_by_undo() {
    let repo = begun(Mode::Commit, "true");
    edit(&repo, 1, "a.txt", "echo its >>a.txt");
    user(&repo, "printf 'a message\\n' >.git/MERGE_MSG");
    shell(&repo, 2, "echo its >>a.txt; git commit -qm its -- a.txt");
    user(&repo, "git bisect start -q");
    ends(&repo);
    let after = repo.state();
    repo.undo();
    assert!(repo.exists(".git/BISECT_LOG") && repo.exists(".git/BISECT_START"), "it goes on");
    repo.assert_file("a.txt", "a\n", "the agent's is undone");
    repo.redo();
    repo.state().assert_is(&after, "redo");
}

#[test]
fn a_large_file_that_the_user_names_twice_is_followed_as_a_small_one() {
    for lines in [60, 400] {
        let large = format!("seq {lines} | sed 's/$/ line/' >large.txt; git add large.txt; git commit -qm large");
        let repo = begun(Mode::Commit, &large);
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        user(&repo, "mv large.txt once.txt");
        edit(&repo, 2, "once.txt", "sed -i 's/^20 /its /' once.txt");
        user(&repo, "sed -i 's/^30 /mine /' once.txt");
        user(&repo, "mv once.txt twice.txt");
        edit(&repo, 3, "a.txt", "echo its >>a.txt");
        ends(&repo);
        let its = repo.git(["show", "--format=", "-U0", "HEAD"]);
        assert!(its.contains("+its line") && !its.contains("+mine"), "{lines}: {its}");
        assert_eq!(repo.git(["status", "--porcelain"]), " M twice.txt", "{lines}");
        let after = repo.state();
        repo.undo();
        let left = String::from_utf8(repo.read("twice.txt")).expect("text");
        assert!(left.contains("mine line") && !left.contains("its line"), "{lines}: the agent's goes");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    }
}

#[test]
fn what_the_user_saved_before_all_that_may_go_on_is_theirs() {
    let listed = json!({"background_tasks": [{"id": "b1", "type": "shell", "status": "running"}]});
    let bash = |id: &str| json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": "x"}});
    let saves = "sed -i s/8/mine/ both.txt; echo mine >mine.txt";
    for mode in Mode::tried() {
        for story in
            ["a prompt without a call", "two shells, of which one never ends", "the same, and something is listed"]
        {
            let repo = begun(mode, "true");
            edit(&repo, 1, "a.txt", "echo its >>a.txt");
            if story == "a prompt without a call" {
                hook(&repo, "s", "Stop", &listed);
                hook(&repo, "s", "UserPromptSubmit", &json!({}));
                user(&repo, saves);
                hook(&repo, "s", "Stop", &listed);
                hook(&repo, "s", "UserPromptSubmit", &json!({}));
            } else {
                user(&repo, saves);
                hook(&repo, "s", "PreToolUse", &bash("one"));
                hook(&repo, "s", "PreToolUse", &bash("two"));
                hook(&repo, "s", "PostToolUse", &bash("two"));
                if story.ends_with("listed") {
                    hook(&repo, "s", "Stop", &listed);
                }
            }
            ends(&repo);
            let turns = repo.log();
            assert_eq!(turns.len(), 1, "{story}: {turns:?}");
            assert_eq!(repo.json(["show", "1"]).1["files"].as_array().map(Vec::len), Some(1), "{story}");
            let after = repo.state();
            repo.undo();
            repo.assert_file("a.txt", "a\n", "what is the agent's goes");
            repo.assert_file("both.txt", LINES.replace('8', "mine"), "what is the user's stays");
            repo.assert_file("mine.txt", "mine\n", "it is the user's");
            repo.redo();
            repo.state().assert_is(&after, "redo");
        }
    }
}

#[test]
fn what_the_user_leaves_out_of_their_commit_of_a_name_that_a_call_gave_stays_uncommitted() {
    // What the call does, and what the user commits of it.
    for (moves, commits) in [
        ("git mv both.txt m.txt", "git commit -qm uc"),
        (
            "mv both.txt m.txt",
            "git rm -q --cached both.txt; git update-index --add --cacheinfo 100644,$(git rev-parse HEAD:both.txt),m.txt; git commit -qm uc",
        ),
        ("git mv both.txt m.txt", "true"),
    ] {
        for before in ["true", "sed -i s/8/eight/ both.txt"] {
            let repo = begun(Mode::Commit, "true");
            edit(&repo, 1, "both.txt", before);
            shell(&repo, 2, moves);
            user(&repo, "sed -i s/4/mine/ m.txt");
            user(&repo, commits);
            edit(&repo, 3, "m.txt", "sed -i s/1/its/ m.txt");
            ends(&repo);
            let its = repo.git(["show", "--format=", "-U0", "HEAD"]);
            assert!(its.contains("+its") && !its.contains("+mine"), "{moves}; {commits}: {its}");
            let left = repo.git(["diff", "-U0"]);
            assert!(left.contains("+mine") && !left.contains("+its"), "{moves}; {commits}: {left}");
            let after = repo.state();
            repo.undo();
            repo.assert_file("both.txt", LINES.replace('4', "mine"), "what is the user's stays");
            repo.redo();
            repo.state().assert_is(&after, "redo");
        }
    }
}

#[test]
fn what_comes_when_the_prompt_of_an_unended_call_is_over_is_not_that_calls() {
    let begun = |tool: &str, path: &str| json!({"tool_name": tool, "tool_use_id": "never-ends", "tool_input": {"command": "x", "file_path": path}});
    for tool in ["Bash", "Edit"] {
        for over in ["UserPromptSubmit", "Stop", "SessionEnd"] {
            // Whether it was denied, or had written by then.
            for wrote in [false, true] {
                let repo = self::begun(Mode::Commit, "true");
                edit(&repo, 1, "a.txt", "echo its >>a.txt");
                hook(&repo, "two", "UserPromptSubmit", &json!({}));
                hook(&repo, "two", "PreToolUse", &begun(tool, &repo.path("both.txt").display().to_string()));
                if wrote {
                    repo.sh("sed -i s/1/two/ both.txt");
                    tick();
                }
                hook(&repo, "two", over, &json!({}));
                user(&repo, "sed -i s/8/mine/ both.txt; echo mine >mine.txt; echo mine >>late.txt");
                edit(&repo, 2, "a.txt", "echo its >>a.txt");
                if over == "UserPromptSubmit" {
                    hook(&repo, "two", "Stop", &json!({}));
                }
                ends(&repo);
                let its = repo.git(["show", "--format=", "-U0", "HEAD"]);
                assert!(!its.contains("+mine"), "{tool}, {over}, {wrote}: {its}");
                assert_eq!(its.contains("+two"), wrote, "{tool}, {over}: {its}");
                let after = repo.state();
                repo.undo();
                repo.assert_file("a.txt", "a\n", "what is the agents' goes");
                repo.assert_file("both.txt", LINES.replace('8', "mine"), "and what is the user's stays");
                repo.assert_file("mine.txt", "mine\n", "it is the user's");
                repo.assert_file("late.txt", "l\nmine\n", "it is the user's");
                repo.redo();
                repo.state().assert_is(&after, "redo");
            }
        }
    }
}

#[test]
fn what_the_user_made_beyond_the_limits_and_a_call_moved_goes_back_to_its_name() {
    let moves = [
        "mv mine.big its.big",
        "mv node_modules its-modules",
        "mv mine.big its.big; mv node_modules its-modules; echo its >its-modules/its",
        "mv node_modules .venv",
    ];
    for mode in Mode::tried() {
        for moves in moves {
            let repo = begun(mode, "git config oxundo.maxFileSize 2k");
            edit(&repo, 1, "a.txt", "echo its >>a.txt");
            user(
                &repo,
                "{ head -c 3000 /dev/zero; echo only-copy; } >mine.big; mkdir -p node_modules/d; echo only >node_modules/d/x",
            );
            let after_user = repo.files();
            shell(&repo, 2, &format!("echo its >>both.txt; {moves}"));
            ends(&repo);
            let after = repo.state();
            repo.undo();
            repo.sh("echo its >>a.txt; rm -f node_modules/its");
            repo.files().assert_is(&after_user, moves);
            repo.sh("git checkout -q a.txt 2>/dev/null || echo a >a.txt");
            repo.redo();
            repo.state().assert_is(&after, "redo");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_the_user_saves_in_what_a_call_made_beyond_the_limits_is_asked_after() {
    let edits = "head -c 9 /dev/zero >>its.big; echo its >node_modules/its";
    let ways = [
        // What the user saves, whether in a file, and whether it is the last that happens.
        ("head -c 7 /dev/zero >>its.big", true, false),
        ("head -c 7 /dev/zero >>its.big", true, true),
        ("echo mine >node_modules/mine", false, false),
        ("echo mine >>node_modules/d/x", false, true),
        ("true", false, true),
    ];
    for mode in Mode::tried() {
        for (saves, in_file, is_last) in ways {
            let repo = begun(mode, "git config oxundo.maxFileSize 2k");
            shell(&repo, 1, "head -c 3000 /dev/zero >its.big; mkdir -p node_modules/d; echo its >node_modules/d/x");
            // What its own calls save there is no question.
            edit(&repo, 2, "its.big", "head -c 5 /dev/zero >>its.big");
            shell(&repo, 3, edits);
            user(&repo, saves);
            if !is_last {
                shell(&repo, 4, "echo its >>a.txt");
            }
            ends(&repo);
            let after = repo.state();
            if in_file {
                let error = repo.refuses(&["undo"], "conflict");
                assert_eq!(error["paths"], json!(["its.big"]), "{saves}: {error}");
                assert!(error["message"].as_str().expect("a message").contains("has what you saved"), "{error}");
                repo.state().assert_is(&after, "nothing is changed");
            }
            let undone = repo.oxundo(["undo", "--edits=overwrite"]);
            undone.success();
            let is_told = undone.err().contains("what you saved in");
            assert_eq!(is_told, saves != "true", "{saves}: {undone:?}");
            assert!(!repo.exists("its.big") && !repo.exists("node_modules"), "{saves}: all of it goes");
            repo.redo();
            repo.state().assert_is(&after, "redo");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_overlaps_with_what_calls_did_is_known_under_the_name_that_its_file_gets_later() {
    for by_a_call in [false, true] {
        let repo = begun(Mode::Commit, "true");
        edit(&repo, 1, "both.txt", "sed -i 's/^4$/4\\nits/' both.txt");
        user(&repo, "sed -i 's/^its$/its\\nmine/; s/^8$/8\\nmine too/' both.txt");
        if by_a_call {
            shell(&repo, 2, "mv both.txt other.txt");
        } else {
            shell(&repo, 2, "echo its >>a.txt");
            user(&repo, "mv both.txt other.txt");
        }
        ends(&repo);
        let before = repo.state();
        assert_eq!(repo.refuses(&["undo"], "conflict")["paths"], json!(["other.txt"]), "by a call: {by_a_call}");
        repo.state().assert_is(&before, "a refusal");
    }
}

#[test]
fn undo_of_a_turn_is_not_refused_for_what_it_does_not_touch() {
    for (calls, save) in [
        // The file that both wrote is gone again, or the user's lines are apart from the agent's.
        (["seq 1 9 >new.txt", "rm new.txt; echo its >>a.txt"], "echo mine >>new.txt"),
        (["sed -i s/1/its/ both.txt", "echo its >>a.txt"], "sed -i s/8/mine/ both.txt"),
        (["seq 1 9 >new.txt", "echo its >>a.txt"], "rm new.txt"),
        (["sed -i s/1/its/ both.txt", "echo its >>a.txt"], "git checkout -q both.txt"),
    ] {
        let repo = begun(Mode::Commit, "true");
        shell(&repo, 1, calls[0]);
        user(&repo, save);
        shell(&repo, 2, calls[1]);
        ends(&repo);
        let after = repo.state();
        repo.undo();
        repo.redo();
        repo.state().assert_is(&after, save);
        repo.assert_sound();
    }
}

#[test]
fn a_file_that_the_user_takes_away_within_a_turn_does_not_come_back_with_undo() {
    for mode in Mode::tried() {
        // Where a call had written it, nobody can tell what is left without the turn.
        let repo = begun(mode, "true");
        shell(&repo, 1, "sed -i s/1/its/ both.txt");
        user(&repo, "rm both.txt");
        shell(&repo, 2, "echo its >>a.txt");
        ends(&repo);
        let before = repo.everything();
        let refused = repo.refuses(&["undo"], "conflict");
        assert_eq!(refused["paths"], json!(["both.txt"]), "{refused}");
        repo.everything().assert_is(&before, "nothing has changed");
        // Under another name it is what it was without the turn.
        for away in ["mv both.txt moved.txt", "git mv both.txt moved.txt"] {
            let repo = begun(mode, "true");
            shell(&repo, 1, "sed -i s/1/its/ both.txt");
            user(&repo, away);
            shell(&repo, 2, "echo its >>a.txt");
            ends(&repo);
            let after = repo.state();
            repo.undo();
            repo.assert_absent("both.txt", away);
            repo.assert_file("moved.txt", LINES, away);
            repo.assert_file("a.txt", "a\n", "all else is undone");
            repo.redo();
            repo.state().assert_is(&after, "redo");
        }
        // Where none had, it is gone, though one has made it anew: also one that names it, for which nothing else is looked at.
        for named in [true, false] {
            let repo = begun(mode, "true");
            edit(&repo, 1, "a.txt", "echo its >>a.txt");
            user(&repo, "rm both.txt");
            let again = "echo its >both.txt";
            if named {
                edit(&repo, 2, "both.txt", again);
            } else {
                shell(&repo, 2, again);
            }
            ends(&repo);
            let after = repo.state();
            repo.undo();
            repo.assert_absent("both.txt", "the user took it away");
            repo.assert_file("a.txt", "a\n", "all else is undone");
            repo.redo();
            repo.state().assert_is(&after, "redo");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_a_call_takes_away_that_the_user_saved_beside_its_lines_is_named() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        shell(&repo, 1, "sed -i '4a its' both.txt");
        user(&repo, "sed -i '5a mine' both.txt");
        shell(&repo, 2, "git checkout -q both.txt; echo its >>a.txt");
        ends(&repo);
        let told = "what you saved in 'both.txt' during turn 1, and a later call took away, does not come back: \
             'oxundo find :/both.txt' tells where it is";
        repo.oxundo(["undo", "--dry-run"]).warns(told);
        repo.oxundo(["undo"]).warns(told);
        let found = repo.oxundo(["find", ":/both.txt"]).out();
        assert!(found.contains("oxundo restore 1.2:before -- both.txt"), "{found}");
        repo.oxundo(["restore", "1.2:before", "--", "both.txt"]).success();
        assert!(String::from_utf8_lossy(&repo.read("both.txt")).contains("mine"), "there it is");
    }
}

#[test]
fn what_goes_with_a_turn_that_is_overwritten_is_named() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        shell(&repo, 1, "sed -i '4a its' both.txt; echo its >>a.txt");
        user(&repo, "sed -i '5a mine' both.txt");
        shell(&repo, 2, "echo its >its.txt");
        ends(&repo);
        let told = "what you saved in 'both.txt' during turn 1 goes with it";
        for args in [&["undo", "--edits=overwrite"][..], &["undo", "--edits=overwrite", "--", "both.txt"]] {
            repo.oxundo([&["undo", "--dry-run"], &args[1..]].concat()).warns(told);
            repo.oxundo(args).warns(told);
            repo.redo();
        }
        // A step's own lines go alone, or not at all: its hints name the other files, and the state before it.
        let refused = repo.oxundo(["undo", "--only", "1.1"]);
        refused.exits(3);
        let lines = [
            "run `oxundo undo --only 1.1 -- :/ ':(top,exclude,literal)both.txt'` to take out all but it",
            "run `oxundo restore 1.1:before -- ':(top,literal)both.txt'` to go back there with it alone",
        ];
        for line in lines {
            assert!(refused.err().contains(line), "{line}: {refused:?}");
        }
        let alone = repo.oxundo(["undo", "--only", "1.1", "--", ":/", ":(top,exclude,literal)both.txt"]);
        assert!(!alone.err().contains("goes with it"), "{alone:?}");
        repo.assert_file("a.txt", "a\n", "its line there is out");
        repo.oxundo(["restore", "1.1:before", "--", ":(top,literal)both.txt"]).success();
        repo.assert_file("both.txt", LINES, "as it was");
        repo.assert_sound();
    }
}

#[test]
fn a_session_that_calls_nothing_makes_nothing_of_the_users_anybodys() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        user(&repo, "echo mine >>late.txt");
        hook(&repo, "t", "UserPromptSubmit", &json!({}));
        edit(&repo, 2, "a.txt", "echo more >>a.txt");
        hook(&repo, "t", "Stop", &json!({}));
        ends(&repo);
        assert!(!repo.git(["log", "-p", "-1"]).contains("+mine"), "it is in no commit of the agents'");
        repo.undo();
        repo.assert_file("a.txt", "a\n", "the agent's is undone");
        repo.assert_file("late.txt", "l\nmine\n", "the user's stays");
    }
}

#[test]
fn what_the_user_saves_in_a_prompt_without_a_call_is_theirs_where_its_session_has_told_of_calls() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        ends(&repo);
        for _ in 0..2 {
            hook(&repo, "s", "UserPromptSubmit", &json!({}));
            user(&repo, "echo mine >>late.txt; echo mine >>new.txt");
            let planned = repo.json(["undo", "--dry-run"]).1;
            assert_eq!(planned["files"][0]["path"], "a.txt", "undo is of the turn before: {planned}");
            ends(&repo);
            assert_eq!(repo.log().len(), 1, "a prompt that changed nothing is no turn");
        }
        assert!(!repo.git(["log", "-p"]).contains("+mine"), "it is in no commit");
        // What is at work in the background changes what it likes, but only from then on where it is listed.
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        user(&repo, "echo mine >>staged.txt");
        hook(&repo, "s", "Stop", &json!({"background_tasks": [{"status": "running"}]}));
        repo.sh("echo later >>a.txt");
        ends(&repo);
        assert_eq!(repo.log().len(), 2);
        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.assert_file("a.txt", "a\n", "the agent's is undone");
        repo.assert_file("staged.txt", "s\nmine\n", "the user's stays");
        repo.assert_file("late.txt", "l\nmine\nmine\n", "the user's stays");
    }
}

#[test]
fn a_prompt_without_a_call_is_its_agents_once_nobody_heeds_its_calls() {
    let repo = begun(Mode::Commit, "true");
    edit(&repo, 1, "a.txt", "echo its >>a.txt");
    ends(&repo);
    repo.git(["config", "oxundo.steps", "off"]);
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    edit(&repo, 2, "late.txt", "echo its >>late.txt");
    ends(&repo);
    assert_eq!(repo.log().len(), 2, "nobody can tell, and it counts as the agent's");
    repo.undo();
    repo.assert_file("late.txt", "l\n", "it is undone");
}

#[test]
fn a_branch_starts_at_the_state_before_a_turn_or_a_step_in_both_modes() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        let start = repo.files();
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        let first = repo.files();
        edit(&repo, 2, "both.txt", "sed -i s/1/its/ both.txt");
        ends(&repo);
        let end = repo.state();
        for (state, files) in [("1:before", &start), ("1.1:before", &start), ("1.2:before", &first), ("0", &start)] {
            repo.oxundo(["branch", "there", state]).success();
            repo.files().assert_is(files, &format!("{mode:?}: {state}"));
            repo.undo();
            repo.state().assert_is(&end, "and back");
        }
    }
}

#[test]
fn a_commit_that_came_and_went_is_kept_though_the_turn_changed_nothing() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        let before = repo.state();
        shell(&repo, 1, "echo lost >lost.txt; git add lost.txt; git commit -qm lost; git reset -q --hard HEAD~1");
        let lost = repo.git(["rev-parse", "HEAD@{1}"]);
        ends(&repo);
        repo.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
        repo.git(["cat-file", "-e", &lost]);
        let found = repo.oxundo(["find", "-S", "lost"]).out();
        assert!(found.contains("lost.txt"), "{found}");
        repo.oxundo(["undo"]).success();
        repo.redo();
        repo.state().assert_is(&before, "there is nothing to undo in it");
    }
}

#[test]
fn a_call_that_is_denied_makes_nothing_of_the_users_its_own() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        // It begins, and nothing tells of its end.
        let denied =
            json!({"tool_name": "Edit", "tool_use_id": "9", "tool_input": {"file_path": repo.path("both.txt")}});
        hook(&repo, "s", "PreToolUse", &denied);
        user(&repo, "echo mine >>late.txt");
        edit(&repo, 2, "staged.txt", "echo its >>staged.txt");
        user(&repo, "echo mine >mine.txt");
        ends(&repo);
        assert!(!repo.git(["log", "-p", "-1"]).contains("+mine"), "it is in no commit of the agent's");
        repo.undo();
        repo.assert_file("late.txt", "l\nmine\n", "the user's stays");
        repo.assert_file("mine.txt", "mine\n", "and this");
        repo.assert_file("staged.txt", "s\n", "the agent's is undone");
    }
}

#[test]
fn who_denies_an_edit_and_makes_it_themself_keeps_what_else_they_saved() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        hook(&repo, "other", "UserPromptSubmit", &json!({}));
        call(&repo, "other", 1, "Edit", &json!({"file_path": repo.path("a.txt")}), "echo its >>a.txt");
        user(&repo, "sed -i s/8/mine/ both.txt");
        let denied =
            json!({"tool_name": "Edit", "tool_use_id": "9", "tool_input": {"file_path": repo.path("both.txt")}});
        hook(&repo, "s", "PreToolUse", &denied);
        user(&repo, "sed -i s/1/hand/ both.txt; echo mine >>late.txt; echo mine >mine.txt; mv staged.txt moved.txt");
        hook(&repo, "other", "Stop", &json!({}));
        ends(&repo);
        assert!(!repo.git(["log", "-p", "-1"]).contains("mine"), "it is in no commit of the agent's");
        let (_, refused) = repo.json(["undo", "--session", "other"]);
        assert_eq!(refused["error"]["paths"], json!(["both.txt"]), "whose it is nobody can tell: {refused}");
        let after = repo.state();
        repo.undo();
        assert_eq!(
            repo.sh("cat a.txt late.txt mine.txt moved.txt; ls staged.txt 2>&1 | wc -l"),
            "a\nl\nmine\nmine\ns\n1"
        );
        repo.assert_file("both.txt", LINES.replace('8', "mine"), "what they had saved before that stays too");
        repo.redo();
        repo.state().assert_is(&after, "and on again");
    }
}

#[test]
fn what_the_user_saves_while_the_agent_asks_them_is_theirs() {
    for tool in ["ExitPlanMode", "AskUserQuestion", "TaskCreate"] {
        let repo = begun(Mode::Commit, "true");
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        call(&repo, "s", 2, tool, &json!({"plan": "x"}), "echo mine >>late.txt");
        edit(&repo, 3, "a.txt", "echo more >>a.txt");
        ends(&repo);
        repo.undo();
        repo.assert_file("late.txt", "l\nmine\n", tool);
    }
}

/// What the user saves at these places is theirs, whatever hooks told before.
#[track_caller]
fn is_the_users(repo: &Sandbox, what: &str) {
    ends(repo);
    assert_eq!(repo.git(["status", "--porcelain"]), " M late.txt\n?? mine.txt", "{what}: it is in no commit");
    repo.undo();
    repo.assert_file("late.txt", "l\nmine\n", what);
    repo.assert_file("mine.txt", "mine\n", what);
    repo.assert_file("a.txt", "a\n", what);
}

const SAVES: &str = "echo mine >>late.txt; echo mine >mine.txt";

#[test]
fn an_edit_that_names_a_directory_changes_nothing_in_it() {
    let repo = begun(Mode::Commit, "mkdir d; echo e >d/e; echo f >d/f; git add d; git commit -qm d");
    edit(&repo, 1, "a.txt", "echo its >>a.txt");
    user(&repo, "echo more >>d/e");
    call(&repo, "s", 2, "Edit", &json!({"file_path": repo.path("d")}), "true");
    assert_eq!(repo.json(["log", "--steps"]).1["turns"][0]["steps"].as_array().map(Vec::len), Some(1));
    user(&repo, SAVES);
    ends(&repo);
    assert_eq!(repo.git(["show", "--format=", "--name-only", "HEAD"]), "a.txt");
    repo.undo();
    repo.assert_file("d/e", "e\nmore\n", "it is the user's");
}

#[test]
fn an_end_without_an_id_is_that_of_the_call_that_is_about_the_same() {
    let repo = begun(Mode::Commit, "true");
    let about = |path: &str| json!({"tool_name": "Edit", "tool_input": {"file_path": repo.path(path)}});
    hook(&repo, "s", "PreToolUse", &about("a.txt"));
    hook(&repo, "s", "PreToolUse", &about("late.txt"));
    repo.sh("echo its >>a.txt");
    hook(&repo, "s", "PostToolUse", &about("late.txt"));
    user(&repo, SAVES);
    repo.sh("echo its too >>a.txt");
    hook(&repo, "s", "PostToolUse", &about("a.txt"));
    is_the_users(&repo, "its call had ended");
}

#[test]
fn what_the_user_saves_while_a_sub_agent_is_at_work_is_theirs_where_that_tells_of_its_calls() {
    let repo = begun(Mode::Commit, "true");
    let task = json!({"tool_name": "Agent", "tool_use_id": "t", "tool_input": {"prompt": "x"}});
    hook(&repo, "s", "PreToolUse", &task);
    let of_sub_agent = |event: &str| {
        hook(
            &repo,
            "s",
            event,
            &json!({"agent_id": "b", "tool_name": "Edit", "tool_use_id": "e",
            "tool_input": {"file_path": repo.path("a.txt")}}),
        );
    };
    of_sub_agent("PreToolUse");
    repo.sh("echo its >>a.txt");
    of_sub_agent("PostToolUse");
    user(&repo, SAVES);
    assert_eq!(repo.refuses(&["undo"], "busy")["code"], "busy", "it is at work still");
    hook(&repo, "s", "PostToolUse", &task);
    is_the_users(&repo, "no call was in flight");
}

#[test]
fn after_a_call_whose_beginning_nobody_told_calls_tell_again_whose_is_what() {
    let repo = begun(Mode::Commit, "true");
    shell(&repo, 1, "echo its >>a.txt");
    repo.sh("echo its >its.txt");
    let lost = json!({"tool_name": "Bash", "tool_use_id": "lost", "tool_input": {"command": "x"}});
    hook(&repo, "s", "PostToolUse", &lost);
    user(&repo, SAVES);
    is_the_users(&repo, "it came after the end of that call");
    repo.assert_absent("its.txt", "what came before that is its");
}

/// A call begins, and nothing tells of its end: it was denied, or stopped.
fn begins(repo: &Sandbox, id: u32, tool: &str) {
    let about = json!({"tool_name": tool, "tool_use_id": id.to_string(), "tool_input": {"command": "make"}});
    hook(repo, "s", "PreToolUse", &about);
}

#[test]
fn what_the_user_did_before_a_call_that_ends_nowhere_is_theirs() {
    let acts = [
        ("saved", "echo mine >>late.txt; echo mine >mine.txt; sed -i s/8/mine/ both.txt"),
        ("staged", "echo mine >mine.txt; git add mine.txt; sed -i s/8/mine/ both.txt"),
        ("committed", "echo mine >mine.txt; git add mine.txt; git commit -qm own; echo mine >>late.txt"),
        ("committed nothing", "git commit -q --allow-empty -m own"),
        ("made a branch", "git branch mine"),
    ];
    for (what, act) in acts {
        let ways = [
            (Mode::Commit, "Bash", "Stop"),
            (Mode::Ghost, "Bash", "UserPromptSubmit"),
            (Mode::Commit, "Skill", "SessionEnd"),
        ];
        for (mode, tool, ends_by) in ways {
            let repo = begun(mode, "true");
            let twin = repo.copy();
            edit(&repo, 1, "both.txt", "sed -i s/1/its/ both.txt");
            // The commit has one name in both.
            let act =
                &format!("export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'; {act}");
            user(&repo, act);
            twin.sh(act);
            begins(&repo, 2, tool);
            user(&repo, "echo its >its.txt");
            // What only looks or names one file says nothing of it.
            call(&repo, "s", 3, "Read", &json!({"file_path": repo.path("a.txt")}), "true");
            edit(&repo, 4, "a.txt", "echo its >>a.txt");
            // As if it had been so for long.
            repo.sh("sed -i 's/\"since_boot\":[0-9]*,/\"since_boot\":0,/' .git/oxundo/calls");
            let told = repo.json(["undo", "--dry-run"]).1["files"].clone();
            hook(&repo, "s", ends_by, &json!({}));
            if ends_by == "UserPromptSubmit" {
                ends(&repo);
            }
            let its = repo.git(["log", "-p", "--format=", "--grep=work of s"]);
            assert!(!its.contains("+mine"), "{what}, {mode:?}: {its}");
            let after = repo.state();
            assert_eq!(repo.json(["undo"]).1["files"], told, "it was planned so, with the turn open");
            repo.state().assert_is(&twin.state(), &format!("{what}, {mode:?}, {tool}, {ends_by}"));
            repo.redo();
            repo.state().assert_is(&after, "and on again");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_the_user_saved_before_a_call_that_ends_nowhere_stays_where_undo_leads_to_a_step() {
    let repo = begun(Mode::Commit, "true");
    edit(&repo, 1, "a.txt", "echo its >>a.txt");
    edit(&repo, 2, "both.txt", "sed -i s/1/its/ both.txt");
    user(&repo, "echo mine >>late.txt; echo mine >mine.txt");
    begins(&repo, 3, "Bash");
    ends(&repo);
    repo.oxundo(["undo", "--to", "1.1"]).success();
    assert_eq!(repo.sh("cat a.txt late.txt mine.txt; head -1 both.txt"), "a\nits\nl\nmine\nmine\n1");
}

#[test]
fn an_edit_through_another_name_of_a_file_is_the_agents() {
    let links = [
        ("ln -s both.txt link", "link", "sed -i --follow-symlinks s/1/its/ link"),
        ("ln -s \"$PWD/both.txt\" link", "link", "sed -i --follow-symlinks s/1/its/ link"),
        ("echo link >.gitignore; ln -s both.txt link", "link", "sed -i --follow-symlinks s/1/its/ link"),
        ("ln -s new.txt link", "link", "echo its >link"),
        ("ln -s both.txt link", "link", "rm link; echo its >link"),
        ("ln both.txt hard.txt", "hard.txt", "sed s/1/its/ both.txt >hard.tmp; cat hard.tmp >hard.txt; rm hard.tmp"),
    ];
    for (before, named, script) in links {
        for mode in Mode::tried() {
            let repo = begun(mode, &format!("{before}; git add -A; git commit -qm link; echo dirty >>late.txt"));
            shell(&repo, 1, "echo its >>a.txt");
            user(&repo, "echo mine >>staged.txt");
            let before = repo.state();
            edit(&repo, 2, named, script);
            user(&repo, "echo mine >mine.txt");
            ends(&repo);
            let steps = repo.json(["log", "--steps"]).1;
            assert_eq!(steps["turns"][0]["steps"].as_array().map(Vec::len), Some(2), "{script}: {steps}");
            assert_eq!(repo.json(["status"]).1["undo_depth"], 1);
            let after = repo.state();
            repo.oxundo(["undo", "--to", "1.1"]).success();
            let files = |state: State| state.only(|fact| fact.starts_with("on disk ") && !fact.contains("mine.txt"));
            files(repo.state()).assert_is(&files(before), script);
            repo.redo();
            repo.undo();
            assert_eq!(repo.sh("cat * | grep -c its || :"), "0", "{script}: all of it is undone");
            repo.assert_file("staged.txt", "s\nmine\n", "the user's stays");
            repo.redo();
            repo.state().assert_is(&after, "and on again");
        }
    }
}

#[test]
fn what_a_call_left_is_committed_alone_where_the_user_saved_in_its_lines_later() {
    let crlf =
        "echo 'a.txt text eol=crlf' >.gitattributes; seq 30 | sed 's/$/\\r/' >a.txt; git add -A; git commit -qm crlf";
    let cases = [
        ("in the same lines", "true", "echo its >>a.txt", "echo mine >>a.txt; sed -i 1imine a.txt"),
        ("the mode", "true", "echo its >>a.txt", "chmod +x a.txt"),
        ("line ends that git converts", crlf, "sed -i '20aits\\r' a.txt", "sed -i '1imine\\r' a.txt"),
    ];
    check_all(
        cases.map(|(name, before, call, saved)| (name.to_owned(), (before, call, saved))),
        |(before, call, saved)| {
            let repo = begun(Mode::Commit, before);
            edit(&repo, 1, "a.txt", call);
            user(&repo, saved);
            let left = repo.read("a.txt");
            ends(&repo);
            let committed = repo.git(["show", "HEAD"]);
            assert!(
                committed.contains("+its") && !committed.contains("mine") && !committed.contains("mode 100755"),
                "{committed}"
            );
            assert_eq!(repo.git(["status", "--porcelain"]).trim(), "M a.txt", "the user's is uncommitted");
            assert_eq!(repo.read("a.txt"), left, "and as they saved it");
            hook(&repo, "s", "UserPromptSubmit", &json!({}));
            edit(&repo, 2, "late.txt", "echo its >>late.txt");
            ends(&repo);
            assert!(
                !repo.git(["show", "HEAD", "HEAD~1", "--", "a.txt"]).contains("+its"),
                "nothing of it is in the next commits"
            );
        },
    );
}

#[test]
fn a_file_of_a_calls_that_the_user_gives_another_name_is_in_the_turns_commit() {
    for (file, call, renamed) in [
        ("n.txt", "echo its >n.txt", "mv n.txt c.txt; git add c.txt"),
        ("a.txt", "echo its >>a.txt", "git mv a.txt c.txt"),
    ] {
        let repo = begun(Mode::Commit, "true");
        edit(&repo, 1, file, call);
        user(&repo, renamed);
        edit(&repo, 2, "both.txt", "echo its >>both.txt");
        ends(&repo);
        assert!(repo.git(["show", "HEAD:c.txt"]).contains("its"), "{renamed}");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{renamed}");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 3, "late.txt", "echo its >>late.txt");
        ends(&repo);
        assert_eq!(
            repo.git(["log", "--format=%s", "-3"]).lines().filter(|line| line.contains("uncommitted")).count(),
            0
        );
        repo.oxundo(["undo", "2"]).success();
        assert!(!repo.sh("cat *.txt").contains("its"), "what calls wrote is undone");
        assert!(file != "a.txt" || repo.exists("c.txt") && !repo.exists("a.txt"), "the user's name stays");
    }
}

#[test]
fn what_changes_while_something_is_listed_as_running_is_the_turns() {
    let repo = begun(Mode::Commit, "true");
    edit(&repo, 1, "both.txt", "echo its >>both.txt");
    hook(&repo, "s", "Stop", &json!({"background_tasks": [{"id": "b", "type": "shell", "status": "running"}]}));
    repo.sh("echo its >>a.txt");
    hook(&repo, "s", "UserPromptSubmit", &json!({"prompt": "<task-notification>b</task-notification>"}));
    edit(&repo, 2, "both.txt", "echo its >>both.txt");
    ends(&repo);
    let log = repo.log();
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(repo.git(["show", "HEAD:a.txt"]).contains("its"), "it is in its commit");
    let output = repo.oxundo(["undo"]);
    output.success();
    output
        .warns("'a.txt' changed outside of turn 1's calls, while one may have been at work: what you saved there goes");
    repo.assert_file("a.txt", "a\n", "and undone with it");
}

/// A server that runs in the background makes no commits and no branches.
#[test]
fn what_the_user_commits_while_something_is_listed_as_running_is_theirs() {
    let cases = [
        ("on the branch", "echo mine >m; git add m; git commit -qm mine"),
        ("on another one", "git switch -qc feat; echo mine >m; git add m; git commit -qm mine; git branch keep"),
        ("of a file of its own", "git commit -qm mine -- late.txt"),
    ];
    let calls: [fn(&Sandbox); 4] = [
        |_| {},
        |repo| edit(repo, 2, "b.txt", "echo its >>b.txt"),
        |repo| shell(repo, 2, "echo its >>b.txt"),
        |repo| {
            shell(repo, 2, "echo its >>b.txt");
            shell(repo, 3, "true");
        },
    ];
    check_all(cases.map(|(name, script)| (name.to_owned(), script)), |script| {
        for (mode, call) in Mode::tried().into_iter().flat_map(|mode| calls.map(|call| (mode, call))) {
            let repo = begun(mode, "true");
            edit(&repo, 1, "a.txt", "echo its >>a.txt");
            hook(&repo, "s", "Stop", &json!({"background_tasks": [{"id": "b", "type": "shell", "status": "running"}]}));
            repo.sh(&format!("echo mine >>late.txt; {script}"));
            let made = repo.git(["log", "--branches", "--format=%H", "--grep=^mine$"]);
            call(&repo);
            ends(&repo);
            let note = repo.sh(&format!("git notes --ref=oxundo show {made} 2>/dev/null || :"));
            assert!(!note.contains(r#""kind":"agent""#), "{note}");
            let branches = || repo.sh("git for-each-ref --format='%(refname)' refs/heads");
            let there = branches();
            let output = repo.oxundo(["undo"]);
            assert_eq!(repo.git(["log", "--branches", "--format=%H", "--grep=^mine$"]), made, "it is on its branch");
            assert_eq!(branches(), there);
            assert!(repo.sh("git show HEAD:m 2>/dev/null || cat late.txt").contains("mine"), "{output:?}");
            repo.assert_file("a.txt", "a\n", "what the agent did is undone");
            assert!(!repo.path("b.txt").exists(), "and later: {output:?}");
            repo.assert_sound();
        }
    });
}

#[test]
fn what_the_user_saved_before_something_was_listed_as_running_is_theirs() {
    for mode in Mode::tried() {
        let repo = begun(mode, "true");
        edit(&repo, 1, "a.txt", "echo its >>a.txt");
        user(&repo, "echo mine >>late.txt");
        hook(&repo, "s", "Stop", &json!({"background_tasks": [{"id": "b", "type": "shell", "status": "running"}]}));
        repo.sh("echo its >>both.txt");
        ends(&repo);
        assert!(!repo.git(["log", "-p"]).contains("+mine"), "it is in no commit");
        repo.undo();
        repo.assert_file("late.txt", "l\nmine\n", "the user's stays");
        repo.assert_file("a.txt", "a\n", "the call's is undone");
        repo.assert_file("both.txt", LINES, "and what came later");
    }
}

#[test]
fn what_the_user_adds_to_a_new_file_between_calls_is_in_no_commit_of_the_agents() {
    let repo = begun(Mode::Commit, "true");
    edit(&repo, 1, "n.txt", "echo its >n.txt");
    user(&repo, "echo mine >>n.txt");
    shell(&repo, 2, "echo its >>both.txt");
    ends(&repo);
    assert_eq!(repo.git(["show", "HEAD:n.txt"]), "its");
    repo.assert_file("n.txt", "its\nmine\n", "the user's is there");
}

/// The line is the agent's now, and nothing else of the file.
#[test]
fn where_a_call_overwrites_a_line_that_the_user_saved_all_else_of_theirs_is_in_no_commit() {
    let calls: [fn(&Sandbox); 3] = [
        |repo| edit(repo, 1, "n", "sed -i '12s/.*/AGENT/' n"),
        |repo| shell(repo, 1, "sed -i '12s/.*/AGENT/' n"),
        |repo| shell(repo, 1, "sed -i '12d' n; echo AGENT >>n"),
    ];
    for call in calls {
        let repo = begun(Mode::Commit, "seq 20 >n; git add n; git commit -qm n");
        user(&repo, "sed -i '2s/.*/USER1/; 12s/.*/USER2/; 17s/$/\\nUSER3/' n");
        let saved = repo.read("n");
        call(&repo);
        ends(&repo);
        let (commit, left) = (repo.git(["show", "--format="]), repo.git(["diff"]));
        assert!(commit.contains("+AGENT") && commit.contains("-12") && !commit.contains("USER"), "{commit}");
        assert!(left.contains("+USER1") && left.contains("+USER3") && !left.contains("+AGENT"), "{left}");
        let before = repo.state();
        repo.undo();
        repo.assert_file("n", &saved, "all that the user had saved is there");
        repo.redo();
        repo.state().assert_is(&before, "redo brings it back");
        repo.assert_sound();
    }
}

/// Whoever has committed it since.
#[test]
fn what_the_user_saves_in_a_new_file_of_the_agents_that_is_committed_is_in_no_commit_of_its() {
    let new: fn(&Sandbox) = |repo| edit(repo, 1, "n", "seq 15 | sed '$s/.*/AGENT/' >n");
    let users: fn(&Sandbox) = |repo| user(repo, "git add n; git commit -qm users");
    let agents: fn(&Sandbox) = |repo| shell(repo, 2, "git add n; git commit -qm agents");
    let more: fn(&Sandbox) = |repo| edit(repo, 3, "n", "sed -i '10s/.*/AGENT/' n");
    let saves: fn(&Sandbox) = |repo| user(repo, "sed -i '4s/.*/USER/' n");
    let other: fn(&Sandbox) = |repo| edit(repo, 4, "a.txt", "echo AGENT >>a.txt");
    let stories: [&[fn(&Sandbox)]; 8] = [
        &[new, users, saves],
        &[new, users, saves, other],
        &[new, agents, saves, other],
        &[new, agents, more, saves, other],
        &[new, users, more, saves],
        &[new, users, saves, more],
        &[new, agents, saves, more],
        &[new, saves, more, other],
    ];
    for (at, story) in stories.iter().enumerate() {
        let repo = begun(Mode::Commit, "true");
        story.iter().for_each(|act| act(&repo));
        ends(&repo);
        let commits = repo.git(["log", "-p", "--format=%s"]);
        assert!(!commits.contains("USER"), "{at}: {commits}");
        let file = text(&repo, "n");
        assert!(file.contains("USER") && file.contains("AGENT"), "{at}: {file}");
        assert_eq!(repo.git(["diff", "--name-only"]), "n", "{at}: it is uncommitted, and all else is committed");
        assert!(!repo.git(["diff"]).contains("+AGENT"), "{at}: the agent's is committed");
        repo.assert_sound();
    }
}

/// Before an edit only the file that it names is looked at.
#[test]
fn what_the_user_gave_another_name_in_the_index_is_staged_so_whatever_call_comes_next() {
    let calls: [fn(&Sandbox); 3] = [
        |repo| edit(repo, 2, "z", "sed -i '12s/.*/AGENT/' z"),
        |repo| shell(repo, 2, "sed -i '12s/.*/AGENT/' z"),
        |repo| edit(repo, 2, "a.txt", "echo AGENT >>a.txt"),
    ];
    let saves = ["sed -i '2s/.*/USER/' z", "true", "echo USER >>late.txt; git add late.txt"];
    let stories = Mode::tried().into_iter().flat_map(|mode| calls.map(|call| (mode, call)));
    for ((mode, call), saves) in stories.flat_map(|story| saves.map(|saves| (story, saves))) {
        let status = |repo: &Sandbox| {
            repo.sh("git status --porcelain=v2 | cut -d' ' -f1,2,4-; git ls-files -s; cat n z 2>&1 || :")
        };
        let moves = format!("git mv n z; {saves}");
        let of_user = begun(mode, "seq 20 >n; git add n; git commit -qm n");
        of_user.sh(&moves);
        let repo = begun(mode, "seq 20 >n; git add n; git commit -qm n");
        edit(&repo, 1, "n", "sed -i '18s/.*/AGENT/' n");
        user(&repo, &moves);
        call(&repo);
        ends(&repo);
        let before = repo.state();
        repo.undo();
        assert_eq!(status(&repo), status(&of_user), "{mode:?} {saves}");
        repo.redo();
        repo.state().assert_is(&before, "redo brings it back");
        repo.assert_sound();
    }
}

/// Who commits next commits nothing that nobody has staged.
#[test]
fn what_a_call_committed_of_the_users_is_staged_as_it_is_committed_where_the_turn_is_taken_out() {
    for (mode, way) in
        Mode::tried().into_iter().flat_map(|mode| [["undo", "--revert"], ["undo", "--only=1"]].map(|way| (mode, way)))
    {
        let repo = begun(mode, "true");
        edit(&repo, 1, "a.txt", "sed -i 1iAGENT a.txt");
        user(&repo, "echo USER >>late.txt; sed -i '5s/.*/USER/' both.txt");
        shell(&repo, 2, "sed -i '1s/.*/AGENT/' both.txt; git add -A; git commit -qm agents");
        ends(&repo);
        let before = repo.state();
        let done = repo.oxundo(way);
        done.success();
        let head = repo.sh("git show HEAD:a.txt HEAD:both.txt HEAD:late.txt");
        assert_eq!((head.matches("USER").count(), head.matches("AGENT").count()), (2, 0), "{done:?}");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{done:?}");
        repo.redo();
        repo.state().assert_is(&before, "redo brings it back");
        repo.assert_sound();
    }
}

/// What happens in a turn, by whom: `a` a call of a shell, `e` one that names the file of the first letter, `u` the user.
type Story<'a> = (&'a str, &'a [(char, &'a str)]);

/// Files with lines enough to be known again, one in a directory.
const LIKE: &str = "for file in a b d/x; do mkdir -p d; seq -f \"$file %g\" 40 >$file; done; echo '*.log' >.gitignore
                    git add -A; git commit -qm like";

const RENAMES: [Story<'_>; 20] = [
    ("written to", &[('a', "echo its1 >>a"), ('u', "mv a c; sed -i 3imine1 c")]),
    (
        "for a time",
        &[
            ('e', "a echo its1 >>a"),
            ('u', "mv a c"),
            ('e', "c sed -i 20iits2 c"),
            ('u', "mv c a"),
            ('a', "true"),
            ('u', "sed -i 3imine1 a"),
        ],
    ),
    ("by git", &[('a', "echo its1 >>a"), ('u', "git mv a c; sed -i 3imine1 c")]),
    ("and staged", &[('a', "echo its1 >>a"), ('u', "mv a c; sed -i 3imine1 c; git add -A")]),
    ("a call goes on", &[('a', "echo its1 >>a"), ('u', "mv a c; sed -i 3imine1 c"), ('a', "sed -i 20iits2 c")]),
    ("a call goes on in what git moved", &[('u', "git mv a c; sed -i 3imine1 c"), ('a', "sed -i 20iits1 c")]),
    ("an edit goes on", &[('e', "a echo its1 >>a"), ('u', "mv a c; sed -i 3imine1 c"), ('e', "c sed -i 20iits2 c")]),
    (
        "in exchange between edits",
        &[('e', "a echo its1 >>a"), ('u', "mv a c; mv b a; mv c b; sed -i 3imine1 b"), ('e', "a sed -i 9iits2 a")],
    ),
    ("and another file is put there", &[('a', "echo its1 >>a"), ('u', "mv a c; seq -f 'mine1 %g' 9 >a")]),
    (
        "and git writes the old one again",
        &[
            ('a', "echo its1 >>a"),
            ('u', "mv a c; git checkout -q a"),
            ('a', "echo its2 >>b"),
            ('u', "sed -i 3imine1 c"),
        ],
    ),
    ("back", &[('a', "git mv a c; echo its1 >>c"), ('u', "git mv c a; sed -i 3imine1 a")]),
    ("over another", &[('a', "echo its1 >>a"), ('u', "mv a b; sed -i 3imine1 b")]),
    (
        "in exchange",
        &[('a', "echo its1 >>a; echo its2 >>b"), ('u', "mv a c; mv b a; mv c b"), ('u', "sed -i 3imine1 a")],
    ),
    ("with its directory", &[('a', "echo its1 >>d/x"), ('u', "mv d e; sed -i 3imine1 e/x")]),
    ("twice", &[('a', "echo its1 >>a"), ('u', "mv a c; sed -i 3imine1 c"), ('a', "echo its2 >>b"), ('u', "mv c e")]),
    ("after what they wrote", &[('u', "sed -i 3imine1 a"), ('a', "echo its1 >>a"), ('u', "mv a c; sed -i 9imine2 c")]),
    ("by a call, with what the user saved", &[('u', "sed -i 3imine1 a"), ('a', "mv a c"), ('a', "echo its1 >>b")]),
    (
        "by the user and then a call",
        &[('a', "echo its1 >>b"), ('u', "git mv a c; sed -i 3imine1 c"), ('a', "git mv c e")],
    ),
    ("a new one", &[('a', "seq -f 'its1 %g' 40 >n"), ('u', "mv n c; sed -i 3imine1 c")]),
    ("to an ignored name", &[('a', "echo its1 >>a"), ('u', "mv a a.log; sed -i 3imine1 a.log")]),
];

#[test]
fn whose_a_line_is_stays_known_where_the_user_gives_the_file_another_name() {
    check_all(RENAMES.map(|(name, story)| (name.to_owned(), story)), |story| {
        let repo = begun(Mode::Commit, LIKE);
        told(&repo, story);
        ends(&repo);
        let after = repo.state();
        let its = || repo.git(["log", "-p", "--grep=work of s", "--format="]);
        let all = story.iter().filter(|(who, _)| *who != 'u').map(|(_, done)| done.matches("its").count());
        let committed = ["its1", "its2"].into_iter().filter(|token| its().contains(token)).count();
        assert_eq!(committed, all.sum::<usize>(), "what calls wrote is in its commit: {}", its());
        assert!(!its().contains("mine"), "nothing of the user's is: {}", its());
        // Where all that is there of the user's would go with it, undo has to be told.
        repo.oxundo(["undo", "--edits=overwrite"]).success();
        let there = repo.sh("cat $(git ls-files -co --exclude-standard) 2>/dev/null || :");
        assert!(!there.contains("its"), "what calls wrote is undone: {there}");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edit(&repo, 9, "late.txt", "echo late >>late.txt");
        ends(&repo);
        let users = repo.git(["log", "-p", "--grep=uncommitted changes", "--format="]);
        assert!(!users.contains("+its"), "nor is anything of theirs in the user's: {users}");
        repo.assert_sound();
    });
}

#[test]
fn what_the_user_wrote_stays_in_a_file_with_another_name_as_the_turn_is_undone() {
    check_all(RENAMES[..16].iter().map(|(name, story)| ((*name).to_owned(), *story)), |story| {
        let repo = begun(Mode::Ghost, LIKE);
        told(&repo, story);
        let names = repo.sh("ls -d * d/* e/* 2>/dev/null || :");
        ends(&repo);
        repo.undo();
        assert_eq!(repo.sh("ls -d * d/* e/* 2>/dev/null || :"), names, "the names are the user's");
        let there = repo.sh("cat * d/* e/* 2>/dev/null || :");
        assert!(there.contains("mine1") && !there.contains("its"), "{there}");
        assert_eq!(there.contains("mine2"), story.iter().any(|(_, done)| done.contains("mine2")), "{there}");
    });
}

#[test]
fn what_calls_left_is_committed_where_the_user_has_taken_the_file_away() {
    let cases: [(Story<'_>, &str, &str); 5] = [
        (("deletes it", &[('a', "echo its1 >>a"), ('u', "rm a")]), " D a", "its1"),
        (("and stages that", &[('a', "echo its1 >>a"), ('u', "git rm -qf a")]), "D  a", "its1"),
        (("puts a link there", &[('a', "echo its1 >>a"), ('u', "ln -sf b a")]), " T a", "its1"),
        (("puts a file there", &[('a', "rm a"), ('u', "echo mine1 >a")]), "?? a", ""),
        (("stages one there", &[('a', "rm a"), ('u', "echo mine1 >a; git add a")]), "A  a", ""),
    ];
    check_all(
        cases.map(|(story, status, left)| (story.0.to_owned(), (story.1, status, left))),
        |(story, status, left)| {
            let repo = begun(Mode::Commit, LIKE);
            told(&repo, story);
            ends(&repo);
            let after = repo.state();
            let committed = repo.git(["show", "HEAD"]);
            assert!(!committed.contains("mine") && committed.contains("/a"), "{committed}");
            let content = repo.try_git(["show", "HEAD:a"]);
            assert!(
                if left.is_empty() { content.code != 0 } else { repo.git(["show", "HEAD:a"]).contains(left) },
                "{committed}"
            );
            assert_eq!(repo.sh("git status --porcelain"), *status, "the rest is the user's");
            repo.oxundo(["undo", "--edits=overwrite"]).success();
            repo.redo();
            repo.state().assert_is(&after, "redo");
            repo.assert_sound();
        },
    );
}

fn told(repo: &Sandbox, story: &[(char, &str)]) {
    for (number, (who, done)) in (1..).zip(story) {
        match who {
            'a' => shell(repo, number, done),
            'e' => edit(repo, number, &done[..1], &done[2..]),
            _ => user(repo, done),
        }
    }
}

#[test]
fn a_file_of_the_users_that_git_does_not_have_is_in_no_commit_of_the_agents() {
    let cases = [
        ("a call stages it", "echo its >>a.txt; git add -A", "true", "A  new.txt"),
        ("the user does, and a call writes to it", "echo its >>a.txt", "git add new.txt", "AM new.txt"),
        (
            "a call writes to it, and the user renames it",
            "echo its >>a.txt; echo its >>new.txt",
            "mv new.txt c.txt",
            "?? c.txt",
        ),
    ];
    check_all(
        cases.map(|(name, call, saved, status)| (name.to_owned(), (call, saved, status))),
        |(call, saved, status)| {
            let repo = begun(Mode::Commit, "seq -f 'mine %g' 20 >new.txt");
            shell(&repo, 1, call);
            user(&repo, saved);
            if status.starts_with("AM") {
                edit(&repo, 2, "new.txt", "echo its >>new.txt");
            }
            ends(&repo);
            assert_eq!(repo.git(["show", "--format=", "--name-only", "HEAD"]), "a.txt");
            assert_eq!(repo.git(["status", "--porcelain"]), *status, "it is as it was");
            let after = repo.state();
            repo.undo();
            assert!(!repo.sh("cat *.txt").contains("its"));
            repo.redo();
            repo.state().assert_is(&after, "redo");
        },
    );
}

#[test]
fn undo_to_a_step_leaves_staged_what_the_user_staged_and_nothing_else() {
    let cases = [
        ("not by git", "mv a n", " D a\n?? n"),
        ("by git", "git mv a n", "D  a\nAM n"),
        ("of another file, deleted", "rm b", " D b"),
        ("of another file, by git", "git rm -q b", "D  b"),
    ];
    check_all(cases.map(|(name, done, status)| (name.to_owned(), (done, status))), |(done, status)| {
        let repo = begun(Mode::Commit, LIKE);
        told(&repo, &[('a', "sed -i 3aits1 a"), ('u', done), ('a', "sed -i 9aits2 [an]")]);
        ends(&repo);
        let after = repo.state();
        repo.oxundo(["undo", "--to", "1.1"]).success();
        let left = repo.git(["status", "--porcelain", "--no-renames"]);
        let rest: Vec<&str> = left.lines().filter(|line| !line.ends_with("M a")).collect();
        assert_eq!(rest.join("\n"), status.trim_start_matches('\n'), "{left}");
        let there = repo.sh("cat [an]");
        assert!(there.contains("its1") && !there.contains("its2"), "{there}");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    });
}

#[test]
fn what_the_user_saves_stays_theirs_where_a_call_renames_the_file_and_changes_it() {
    let cases: [Story<'_>; 10] = [
        ("after it", &[('a', "mv a m; sed -i 3aits1 m"), ('u', "sed -i 20amine1 m")]),
        ("after it, staged", &[('a', "git mv a m; sed -i 3aits1 m"), ('u', "sed -i 20amine1 m; git add -A")]),
        ("after it, under a third name", &[('a', "mv a m; sed -i 3aits1 m"), ('u', "mv m k; sed -i 20amine1 k")]),
        ("before it", &[('u', "sed -i 20amine1 a"), ('a', "mv a m; sed -i 3aits1 m")]),
        (
            "before it and after it",
            &[('u', "sed -i 20amine1 a"), ('a', "mv a m; sed -i 3aits1 m"), ('u', "sed -i 10amine2 m")],
        ),
        (
            "before it and after it, by git",
            &[('u', "sed -i 20amine1 a"), ('a', "git mv a m; sed -i 3aits1 m"), ('u', "sed -i 10amine2 m; git add m")],
        ),
        (
            "around two of them",
            &[
                ('u', "sed -i 20amine1 a"),
                ('a', "mv a m; sed -i 3aits1 m"),
                ('u', "sed -i 10amine2 m"),
                ('a', "mv m k; sed -i 30aits2 k"),
                ('u', "sed -i 36amine1 k"),
            ],
        ),
        (
            "between two of them",
            &[('a', "mv a m; sed -i 3aits1 m"), ('u', "sed -i 20amine1 m"), ('a', "mv m k; sed -i 30aits2 k")],
        ),
        ("before it, over another", &[('u', "sed -i 20amine1 a"), ('a', "mv a b; sed -i 3aits1 b")]),
        (
            "in its directory",
            &[('u', "sed -i 20amine1 d/x"), ('a', "mv d e; sed -i 3aits1 e/x"), ('u', "sed -i 10amine2 e/x")],
        ),
    ];
    let both = Mode::BOTH.into_iter();
    let cases = both.flat_map(|mode| cases.map(|(name, story)| (format!("{name}, {mode:?}"), (mode, story))));
    check_all(cases, |(mode, story)| {
        let repo = begun(*mode, LIKE);
        told(&repo, story);
        ends(&repo);
        let all: String = story.iter().map(|(_, done)| *done).collect();
        let its = repo.git(["log", "-p", "--grep=work of s", "--format="]);
        assert!(!its.contains("mine"), "nothing of the user's is in its commit: {its}");
        let is_its = |token: &str| *mode == Mode::Ghost || its.contains(token) == all.contains(token);
        assert!(is_its("its1") && is_its("its2"), "what calls wrote is: {its}");
        let after = repo.state();
        repo.undo();
        let there = repo.sh("cat $(git ls-files -co --exclude-standard) 2>/dev/null || :");
        assert!(!there.contains("its"), "what calls wrote is undone: {there}");
        for token in ["mine1", "mine2"] {
            assert_eq!(there.matches(token).count(), all.matches(token).count(), "what the user saved stays: {there}");
        }
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.assert_sound();
    });
}

#[test]
fn what_stays_where_undo_leads_to_a_step_is_not_said_to_go() {
    let repo = begun(Mode::Commit, "true");
    call(&repo, "s", 1, "Write", &json!({"file_path": repo.path("new.txt")}), "echo its >new.txt");
    user(&repo, "echo mine >>new.txt");
    edit(&repo, 2, "new.txt", "echo its too >>new.txt");
    ends(&repo);
    let back = repo.oxundo(["undo", "--to", "1.1"]);
    back.success();
    assert!(!back.err().contains("goes with it"), "{back:?}");
    repo.assert_file("new.txt", "its\nmine\n", "it does not go");
}

#[test]
fn a_step_above_which_the_user_has_committed_is_refused_with_lines_that_lead_there() {
    let repo = begun(Mode::Commit, "true");
    edit(&repo, 1, "both.txt", "sed -i s/1/its/ both.txt");
    user(&repo, "echo mine >>late.txt; git commit -qam mine");
    edit(&repo, 2, "both.txt", "sed -i s/8/its/ both.txt");
    ends(&repo);
    let refused = repo.refuses(&["undo", "--to", "1.1"], "foreign");
    let hints = refused["hints"].to_string();
    assert!(!hints.contains("--revert"), "no step is gone back to on top: {hints}");
    assert!(hints.contains("'oxundo undo --only 1.2'") && hints.contains("'oxundo restore 1.1'"), "{hints}");
    for way in [["undo", "--only", "1.2"], ["restore", "1.1", "--quiet"]] {
        let copy = repo.copy();
        copy.oxundo(way).success();
        copy.assert_file("both.txt", LINES.replace('1', "its"), "it leads there");
    }
}

#[test]
fn a_file_that_the_user_committed_under_one_of_its_names_is_committed_under_the_last() {
    for (first, second, last) in [
        ("mv both.txt m", "git mv m q", "q"),
        ("git mv both.txt m", "mv m q", "q"),
        ("mv both.txt m", "mv m both.txt; echo its >>a.txt", "both.txt"),
    ] {
        let repo = begun(Mode::Commit, "true");
        shell(&repo, 1, first);
        user(&repo, "sed -i s/4/mine/ m; git add -A; git commit -qm mine");
        shell(&repo, 2, second);
        ends(&repo);
        assert_eq!(repo.git(["show", &format!("HEAD:{last}")]) + "\n", LINES.replace('4', "mine"), "{first}; {second}");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{first}; {second}: it is in HEAD under its name of now");
        repo.undo();
        assert_eq!(repo.git(["log", "-1", "--format=%s"]), "mine");
        repo.redo();
        repo.assert_sound();
    }
}

#[test]
fn what_the_user_saved_before_a_shell_and_an_edit_at_once_is_theirs() {
    // Where the edit ends, and where nothing tells of its end and another one of the same file follows.
    for (session, last) in [("s", "edit"), ("o", "edit"), ("s", "again"), ("o", "again")] {
        let repo = begun(Mode::Commit, "true");
        hook(&repo, "o", "UserPromptSubmit", &json!({}));
        call(&repo, "o", 1, "Edit", &json!({"file_path": repo.path("staged.txt")}), "echo its >>staged.txt");
        edit(&repo, 1, "both.txt", "sed -i s/1/its/ both.txt");
        user(&repo, "sed -i s/4/mine/ both.txt; echo mine >mine.txt");
        let told = |session: &str, event: &str, id: &str, tool: &str| {
            let about = json!({"tool_name": tool, "tool_use_id": id, "tool_input": {"file_path": repo.path("both.txt"), "command": "x"}});
            hook(&repo, session, event, &about);
        };
        told(session, "PreToolUse", "shell", "Bash");
        told("s", "PreToolUse", "edit", "Edit");
        repo.sh("sed -i s/6/its/ both.txt");
        told(session, "PostToolUse", "shell", "Bash");
        if last == "again" {
            told("s", "PreToolUse", last, "Edit");
        }
        repo.sh("sed -i s/8/its/ both.txt");
        told("s", "PostToolUse", last, "Edit");
        hook(&repo, "o", "Stop", &json!({}));
        ends(&repo);
        let commit = repo.git(["show", "--format=", "-U0", "HEAD", "--", "both.txt"]);
        assert!(!commit.contains("+mine") && commit.matches("+its").count() == 3, "{session}, {last}: {commit}");
        repo.undo();
        repo.assert_file("both.txt", LINES.replace('4', "mine"), "only what the user saved is left");
        repo.assert_file("mine.txt", "mine\n", "this too");
    }
}

#[test]
fn a_commit_on_a_new_branch_above_the_agents_is_refused_as_on_the_old_one() {
    for begins in ["git switch -qc theirs", "git branch -m theirs"] {
        for edit_between in [false, true] {
            let repo = begun(Mode::Commit, "true");
            shell(&repo, 1, "sed -i s/1/AGENT1/ both.txt; git commit -qam its");
            user(&repo, begins);
            if edit_between {
                edit(&repo, 2, "both.txt", "sed -i s/4/AGENT2/ both.txt");
            }
            user(&repo, "sed -i s/8/USER/ both.txt; git commit -qam mine");
            ends(&repo);
            let after = repo.state();
            repo.refuses(&["undo"], "foreign");
            repo.state().assert_is(&after, "nothing is changed");
            repo.oxundo(["undo", "--revert"]).success();
            let left = repo.sh("cat both.txt");
            assert_eq!(
                (left.contains("AGENT1"), left.contains("USER")),
                (false, true),
                "{begins}, {edit_between}: {left}"
            );
            assert_eq!(repo.git(["branch", "--show-current"]), "theirs", "{begins}");
            repo.redo();
            repo.state().assert_is(&after, "redo");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_calls_left_is_committed_without_what_the_user_had_saved_beside_it_before() {
    for last in ["echo USER2 >long.txt", "rm long.txt", "sed -i s/^AGENT1/USER2/ long.txt"] {
        for rounds in 1..=2 {
            let repo = begun(Mode::Commit, "seq 100 >long.txt; git add long.txt; git commit -qm long");
            shell(&repo, 9, "true");
            for round in 1..=rounds {
                user(&repo, &format!("sed -i 's/^{round}5$/USER1/' long.txt"));
                edit(&repo, round, "long.txt", &format!("sed -i 's/^{round}0$/AGENT1/' long.txt"));
            }
            user(&repo, last);
            ends(&repo);
            let commit = repo.git(["show", "--format="]);
            let count = |what: &str| commit.matches(what).count();
            assert_eq!((count("+AGENT1"), count("USER")), (rounds as usize, 0), "{last}, {rounds}: {commit}");
            assert_eq!(
                repo.sh("git status --porcelain -- long.txt").len(),
                " M long.txt".len(),
                "the rest is uncommitted"
            );
            repo.refuses(&["undo"], "conflict");
        }
    }
}

#[test]
fn what_the_user_saved_before_two_edits_at_once_of_which_one_fails_is_theirs() {
    for (other, event) in [("s", "PostToolUse"), ("s", "PostToolUseFailure"), ("o", "PostToolUse")] {
        for fails_first in [true, false] {
            let repo = begun(Mode::Commit, "true");
            hook(&repo, "o", "UserPromptSubmit", &json!({}));
            shell(&repo, 1, "true");
            call(&repo, "o", 1, "Bash", &json!({"command": "x"}), "true");
            user(&repo, "sed -i s/4/mine/ both.txt");
            let about = |id: &str| json!({"tool_name": "Edit", "tool_use_id": id, "tool_input": {"file_path": repo.path("both.txt")}});
            hook(&repo, "s", "PreToolUse", &about("writes"));
            hook(&repo, other, "PreToolUse", &about("fails"));
            if fails_first {
                hook(&repo, other, event, &about("fails"));
            }
            repo.sh("sed -i s/8/its/ both.txt");
            hook(&repo, "s", "PostToolUse", &about("writes"));
            if !fails_first {
                hook(&repo, other, event, &about("fails"));
            }
            hook(&repo, "o", "Stop", &json!({}));
            ends(&repo);
            let commit = repo.git(["show", "--format=", "-U0", "HEAD", "--", "both.txt"]);
            assert!(commit.contains("+its") && !commit.contains("mine"), "{other}, {event}, {fails_first}: {commit}");
            repo.undo();
            repo.assert_file("both.txt", LINES.replace('4', "mine"), "what the user saved is left");
        }
    }
}

/// A formatter has changed nothing of the agent's there: each line was the user's.
#[test]
fn what_an_editor_makes_of_the_users_file_that_a_call_has_moved_is_theirs() {
    for (is_known, by) in [(false, "mv"), (true, "git mv"), (true, "mv")] {
        for mode in Mode::tried() {
            let keeps = if is_known { "git add u.js; git commit -qm u" } else { ":" };
            let repo = begun(mode, &format!("printf 'a(1);\\nb( 2);\\nc(3);\\nd(4);\\n' >u.js; {keeps}"));
            shell(&repo, 1, &format!("mkdir src; {by} u.js src/u.js"));
            user(&repo, "sed -i 's/[(] */( /; s/ *[)]/ )/' src/u.js");
            shell(&repo, 2, "true");
            ends(&repo);
            let committed = repo.sh("git show HEAD:src/u.js 2>/dev/null || :");
            assert!(!committed.contains("( 1 )"), "{by}, {is_known}: {committed}");
            let done = repo.state();
            repo.undo();
            repo.assert_file("u.js", "a( 1 );\nb( 2 );\nc( 3 );\nd( 4 );\n", "as the user has formatted it");
            repo.redo();
            repo.state().assert_is(&done, "redo");
        }
    }
}

#[test]
fn where_both_have_changed_one_line_the_others_are_still_whose_they_are() {
    let stories: [&[(&str, &str)]; 2] = [
        &[
            ("its", "5s/.*/its/"),
            ("user", "5s/.*/mine/; 1s/.*/TOP/"),
            ("its", "5s/.*/again/"),
            ("user", "5s/.*/mine2/; 8s/.*/END/"),
        ],
        &[
            ("its", "5s/.*/its/"),
            ("user", "4,5d; 1s/.*/TOP/"),
            ("its", "4s/.*/again/"),
            ("user", "4s/.*/mine2/; $s/.*/END/"),
        ],
    ];
    for (story, mode) in stories.iter().flat_map(|story| Mode::tried().into_iter().map(move |mode| (story, mode))) {
        let repo = begun(mode, "true");
        for (at, (who, edits)) in (1..).zip(story.iter()) {
            let line = format!("sed -i '{edits}' both.txt");
            if *who == "its" { edit(&repo, at, "both.txt", &line) } else { user(&repo, &line) }
        }
        shell(&repo, 9, "true");
        ends(&repo);
        if mode == Mode::Commit {
            let commit = repo.git(["show", "--format=", "-U0", "HEAD"]);
            assert!(!commit.contains("TOP") && !commit.contains("END"), "{story:?}: {commit}");
            let rest = repo.git(["diff", "-U0"]);
            assert!(rest.contains("+TOP") && rest.contains("+END"), "{story:?}: {rest}");
        }
        let done = repo.state();
        repo.refuses(&["undo"], "conflict");
        repo.oxundo(["undo", "--edits=overwrite"]).success();
        let left = text(&repo, "both.txt");
        assert!(left.starts_with("TOP\n") && left.ends_with("END\n"), "{story:?}: {left}");
        repo.redo();
        repo.state().assert_is(&done, "redo");
    }
}
