//! Nothing is lost: what the user made or changed stays, whatever is undone or redone.

use crate::sandbox::{Mode, Sandbox, check_all, in_both_modes};
use serde_json::json;
use std::fs;

/// `a.txt`, `b.txt` and `dir/c.txt` in one commit.
fn three_files() -> Sandbox {
    let repo = Sandbox::new();
    repo.write("a.txt", "one\n").write("b.txt", "one\n").write("dir/c.txt", "one\n");
    repo.sh("git add -A; git commit -qm three");
    repo
}

#[test]
fn edits_elsewhere_survive_undo_and_redo() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo two >>a.txt");
        repo.write("b.txt", "mine\n");
        repo.undo();
        repo.assert_file("a.txt", "one\n", "undo takes the turn back");
        repo.assert_file("b.txt", "mine\n", "undo leaves what no turn changed");
        repo.redo();
        repo.assert_file("a.txt", "one\ntwo\n", "redo brings the turn back");
        repo.assert_file("b.txt", "mine\n", "redo leaves what no turn changed");
    });
}

#[test]
fn files_made_after_the_turn_survive_undo_and_redo() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo two >>a.txt; mkdir made; echo agent >made/agent.txt");
        repo.write("mine.txt", "mine\n").write("made/mine.txt", "mine\n").write("my/own.txt", "mine\n");
        repo.undo();
        repo.assert_absent("made/agent.txt", "the turn made it");
        for path in ["mine.txt", "made/mine.txt", "my/own.txt"] {
            repo.assert_file(path, "mine\n", "the user made it after the turn");
        }
        repo.redo();
        repo.assert_file("made/agent.txt", "agent\n", "redo brings it back");
        for path in ["mine.txt", "made/mine.txt", "my/own.txt"] {
            repo.assert_file(path, "mine\n", "the user made it after the turn");
        }
    });
}

#[test]
fn deletions_elsewhere_survive_undo_and_redo() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo two >>a.txt");
        repo.sh("rm b.txt; chmod +x dir/c.txt");
        repo.undo();
        repo.assert_absent("b.txt", "the user deleted it");
        assert_eq!(repo.mode("dir/c.txt"), 0o755, "the user made it executable");
        repo.redo();
        repo.assert_absent("b.txt", "the user deleted it");
        repo.assert_file("a.txt", "one\ntwo\n", "redo brings the turn back");
    });
}

#[test]
fn empty_directories_made_after_the_turn_survive() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "mkdir made; echo new >made/new.txt");
        repo.sh("mkdir -p void made/void");
        repo.undo();
        assert!(repo.exists("void") && repo.exists("made/void"), "the user made them");
        repo.assert_absent("made/new.txt", "the turn made it");
    });
}

#[test]
fn staging_survives_undo_and_redo() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo two >>a.txt");
        repo.sh("echo staged >>b.txt; git add b.txt; echo 1 >>dir/c.txt; git add dir/c.txt; echo 2 >>dir/c.txt");
        repo.sh("echo new >new.txt; git add new.txt; echo ita >ita.txt; git add -N ita.txt");
        let staged = |repo: &Sandbox| repo.git(["diff", "--cached", "--", "b.txt", "dir/c.txt", "new.txt", "ita.txt"]);
        let unstaged = |repo: &Sandbox| repo.git(["diff", "--", "b.txt", "dir/c.txt", "new.txt", "ita.txt"]);
        let before = (staged(&repo), unstaged(&repo));
        repo.undo();
        repo.assert_file("a.txt", "one\n", "undo takes the turn back");
        assert_eq!((staged(&repo), unstaged(&repo)), before, "what the user staged stays staged after undo");
        repo.assert_file("dir/c.txt", "one\n1\n2\n", "and the rest stays in the worktree");
        repo.redo();
        assert_eq!((staged(&repo), unstaged(&repo)), before, "what the user staged stays staged after redo");
    });
}

#[test]
fn branches_and_stash_entries_made_after_the_turn_survive() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo two >>a.txt; git branch agents");
        repo.sh("git branch mine; echo s >>b.txt; git stash push -q -m mine -- b.txt");
        let (mine, stash) = (repo.git(["rev-parse", "mine"]), repo.git(["stash", "list"]));
        repo.undo();
        assert_eq!(repo.git(["rev-parse", "mine"]), mine, "the user's branch stays");
        assert_eq!(repo.git(["stash", "list"]), stash, "the user's stash entry stays");
        repo.try_git(["rev-parse", "-q", "--verify", "agents"]).exits(1);
        repo.redo();
        assert_eq!(repo.git(["rev-parse", "mine"]), mine, "the user's branch stays");
        assert_eq!(repo.git(["stash", "list"]), stash, "the user's stash entry stays");
    });
}

#[test]
fn edits_that_overlap_are_refused() {
    let cases: &[(&str, &str, &str, &str)] = &[
        ("the same line", "echo two >a.txt", "echo mine >a.txt", "a.txt"),
        ("a binary", "printf 'a\\000b' >a.txt", "printf 'a\\000c' >a.txt", "a.txt"),
        ("a new file", "echo new >new.txt", "echo mine >>new.txt", "new.txt"),
        ("a new untracked secret", "echo new >.env", "echo mine >>.env", ".env"),
        ("an edited file that the user deleted", "echo two >>a.txt", "rm a.txt", "a.txt"),
        ("a deleted file that the user made again", "rm a.txt", "echo mine >a.txt", "a.txt"),
        ("a file that became a directory", "echo two >>a.txt", "rm a.txt; mkdir a.txt; echo mine >a.txt/x", "a.txt"),
        ("a directory that became a file", "echo two >>dir/c.txt", "rm -r dir; echo mine >dir", "dir"),
        ("a deleted directory that the user made a file", "rm -r dir", "echo mine >dir", "dir"),
        ("a directory that became a symlink", "echo two >>dir/c.txt", "rm -r dir; ln -s ../home dir", "dir"),
        ("a deleted directory that the user made a symlink", "rm -r dir", "ln -s ../home dir", "dir"),
        ("a symlink that the user retargeted", "ln -s a.txt link", "ln -sfn b.txt link", "link"),
        ("an edited file that became a symlink", "echo two >>a.txt", "rm a.txt; ln -s b.txt a.txt", "a.txt"),
        ("an ignored file in the way", "git rm -q a.txt", "echo a.txt >>.git/info/exclude; echo mine >a.txt", "a.txt"),
        (
            "an ignored directory in the way",
            "git rm -q a.txt",
            "echo a.txt >>.git/info/exclude; mkdir a.txt; echo mine >a.txt/x",
            "a.txt",
        ),
        (
            "an ignored file in place of a directory",
            "git rm -rq dir",
            "echo dir >>.git/info/exclude; echo mine >dir",
            "dir",
        ),
        ("a renamed file's old name", "mv a.txt z.txt", "echo mine >a.txt", "a.txt"),
    ];
    let mut table = Vec::new();
    for case in cases {
        table.extend(Mode::BOTH.map(|mode| (format!("{} ({mode:?})", case.0), (mode, case))));
    }
    check_all(table, |(mode, (_, turn, user, path))| {
        let repo = three_files();
        repo.signal("c.txt");
        repo.turn(*mode, turn);
        repo.sh(user);
        let error = repo.refuses(&["undo"], "conflict");
        let paths = error["paths"].as_array().expect("a conflict names the paths");
        assert!(
            paths.iter().filter_map(|found| found.as_str()).any(|found| found.starts_with(path)),
            "the path in the way is named: {error}"
        );
        assert_eq!(fs::read(repo.home().join("c.txt")).ok(), Some(Vec::new()), "nothing is written outside");
    });
}

#[test]
fn edits_in_the_way_of_redo_are_refused() {
    let cases: &[(&str, &str, &str)] = &[
        ("an edit", "echo two >a.txt", "echo mine >a.txt"),
        ("a file where the turn made one", "echo new >new.txt", "echo mine >new.txt"),
        ("a directory where the turn made a file", "echo new >new.txt", "mkdir new.txt; echo mine >new.txt/x"),
        ("a file where the turn made a directory", "mkdir new; echo new >new/x", "echo mine >new"),
        ("an ignored file", "echo new >new.txt", "echo new.txt >>.git/info/exclude; echo mine >new.txt"),
        ("an edit of what the turn deleted", "rm a.txt", "echo mine >>a.txt"),
        ("a symlink to elsewhere", "mkdir new; echo new >new/x", "ln -s ../home new"),
    ];
    let mut table = Vec::new();
    for case in cases {
        table.extend(Mode::BOTH.map(|mode| (format!("{} ({mode:?})", case.0), (mode, case))));
    }
    check_all(table, |(mode, (_, turn, user))| {
        let repo = three_files();
        repo.turn(*mode, turn);
        repo.undo();
        repo.sh(user);
        repo.refuses(&["redo"], "conflict");
        assert!(!repo.home().join("x").exists(), "nothing is written outside");
    });
}

#[test]
fn an_edit_in_another_part_of_the_same_file_is_never_lost() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.commit("long.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
        repo.turn(mode, "sed -i s/2/agent/ long.txt");
        repo.sh("sed -i s/8/mine/ long.txt");
        repo.undo();
        repo.assert_file("long.txt", "1\n2\n3\n4\n5\n6\n7\nmine\n9\n", "a clean merge keeps the user's edit");
        repo.redo();
        repo.assert_file("long.txt", "1\nagent\n3\n4\n5\n6\n7\nmine\n9\n", "and so does redo");
    });
}

#[test]
fn what_the_user_took_back_by_hand_is_no_conflict() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo two >>a.txt; echo new >new.txt; rm b.txt");
        repo.sh("echo one >a.txt; rm new.txt; echo one >b.txt");
        repo.undo();
        repo.assert_file("a.txt", "one\n", "as before the turn");
        repo.assert_file("b.txt", "one\n", "as before the turn");
        repo.assert_absent("new.txt", "as before the turn");
    });
}

#[test]
fn edits_between_turns_survive_the_undo_of_both() {
    in_both_modes(|mode| {
        let repo = three_files();
        let start = repo.head();
        repo.turn(mode, "echo turn1 >>a.txt");
        let after_one = repo.head();
        repo.sh("echo mine >>b.txt; echo mine >mine.txt");
        let before_two = repo.state();
        repo.turn(mode, "echo turn2 >>dir/c.txt");
        let after_two = repo.state();

        repo.undo();
        repo.state().assert_is(&before_two, "the state before the second turn, with the user's edits in it");
        repo.undo();
        repo.assert_file("a.txt", "one\n", "as before the first turn");
        repo.assert_file("dir/c.txt", "one\n", "as before the first turn");
        repo.assert_file("b.txt", "one\nmine\n", "the user's edit between the turns");
        repo.assert_file("mine.txt", "mine\n", "the user's file between the turns");
        assert_eq!(repo.head(), start, "HEAD is where it was before the first turn");
        repo.redo();
        assert_eq!(repo.head(), after_one, "HEAD is where it was after the first turn");
        repo.state().assert_is(&before_two, "the state before the second turn, with the user's edits in it");
        repo.redo();
        repo.state().assert_is(&after_two, "the state after the second turn");

        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.assert_file("a.txt", "one\n", "both turns at once");
        repo.assert_file("dir/c.txt", "one\n", "both turns at once");
        repo.assert_file("b.txt", "one\nmine\n", "the user's edit between the turns");
        repo.assert_file("mine.txt", "mine\n", "the user's file between the turns");
        assert_eq!(repo.head(), start, "HEAD is where it was before the first turn");
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.state().assert_is(&after_two, "the state after the second turn");
    });
}

#[test]
fn the_rescue_checkpoint_is_there_and_git_keeps_it() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo two >>a.txt");
        repo.write("b.txt", "mine\n").write("mine.txt", "mine\n");
        for op in ["undo", "redo"] {
            let (code, done) = repo.json([op]);
            assert_eq!(code, 0, "{done}");
            let rescue = done["rescue"].as_str().expect("it says its rescue checkpoint");
            assert_eq!(repo.git(["cat-file", "-t", rescue]), "tree", "the rescue checkpoint is a tree");
            repo.prune();
            assert_eq!(repo.git(["cat-file", "-t", rescue]), "tree", "and hangs on a ref");
        }
    });
}

#[test]
fn files_that_do_not_differ_are_not_touched() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.write("mine.txt", "mine\n");
        repo.turn(mode, "echo two >>a.txt");
        repo.sh("touch -d '2001-02-03 04:05:06' b.txt dir/c.txt mine.txt README.txt");
        repo.undo();
        repo.redo();
        for path in ["b.txt", "dir/c.txt", "mine.txt", "README.txt"] {
            assert_eq!(repo.sh(&format!("stat -c %Y {path}")), "981173106", "{path} keeps its time");
        }
    });
}

// Ignored files

#[test]
fn ignored_files_stay_as_they_are() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.commit(".gitignore", "*.log\nlogs/\n");
        repo.write("logs/old.log", "old\n").write("changed.log", "old\n").write("deleted.log", "old\n");
        repo.turn(
            mode,
            "echo two >>a.txt; echo new >>changed.log; rm deleted.log; echo new >logs/new.log; mkdir logs/d",
        );
        for op in ["undo", "redo"] {
            repo.oxundo([op]).success();
            repo.assert_file("logs/old.log", "old\n", "ignored files are never touched");
            repo.assert_file("logs/new.log", "new\n", "ignored files are never touched");
            repo.assert_file("changed.log", "old\nnew\n", "ignored files are never touched");
            repo.assert_absent("deleted.log", "ignored files are not captured");
        }
        repo.assert_file("a.txt", "one\ntwo\n", "redo brings the turn back");
    });
}

#[test]
fn an_ignored_file_lives_through_its_rule_and_an_edit() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.commit(".gitignore", "secret.env\n");
        repo.write("secret.env", "the only copy\n");
        repo.turn(mode, ": >.gitignore; echo more >>secret.env; echo two >>a.txt");
        for op in ["undo", "redo", "undo"] {
            repo.oxundo([op]).success();
            repo.assert_file(
                "secret.env",
                "the only copy\nmore\n",
                "what was ignored when the turn began is never touched",
            );
        }
        repo.assert_file(".gitignore", "secret.env\n", "the rule is back");
    });
}

#[test]
fn an_included_file_is_captured_though_ignored() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.commit(".gitignore", ".env\n");
        repo.write(".env", "KEY=1\n");
        repo.git(["config", "oxundo.include", ".env"]);
        repo.turn(mode, "echo KEY=2 >.env; echo two >>a.txt");
        repo.undo();
        repo.assert_file(".env", "KEY=1\n", "oxundo.include names it");
        repo.redo();
        repo.assert_file(".env", "KEY=2\n", "oxundo.include names it");
        assert_eq!(repo.git(["log", "--all", "--format=%H", "--", ".env"]), "", "and it is in no commit");
    });
}

// Where today's tools lose work

#[test]
fn loosening_gitignore_does_not_cost_the_ignored_files() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.commit(".gitignore", "secret.env\ncache/\n");
        repo.write("secret.env", "the only copy\n").write("cache/deep/x", "cached\n");
        repo.turn(mode, ": >.gitignore; echo new >new.txt");
        repo.undo();
        repo.assert_file("secret.env", "the only copy\n", "ignored when the turn began");
        repo.assert_file("cache/deep/x", "cached\n", "ignored when the turn began");
        repo.assert_absent("new.txt", "the turn made it");
        repo.redo();
        repo.assert_file("secret.env", "the only copy\n", "ignored when the turn began");
        repo.assert_file("new.txt", "new\n", "redo makes it again");
        assert_eq!(repo.git(["ls-files", "secret.env", "cache"]), "", "and it got into no commit");
    });
}

#[test]
fn a_file_that_the_user_makes_after_the_turn_is_not_deleted() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo new >new.txt");
        repo.write("after.txt", "mine\n");
        repo.undo();
        repo.assert_file("after.txt", "mine\n", "no turn made it");
    });
}

#[test]
fn two_modified_files_with_names_in_other_scripts_are_restored() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.write("文件.txt", "一\n").write("файл.txt", "один\n").write("目录/文件.txt", "一\n");
        repo.sh("git add -A; git commit -qm names");
        repo.turn(mode, "echo more >>文件.txt; echo more >>файл.txt; echo more >>目录/文件.txt");
        repo.undo();
        repo.assert_file("文件.txt", "一\n", "restored, not deleted");
        repo.assert_file("файл.txt", "один\n", "restored, not deleted");
        repo.assert_file("目录/文件.txt", "一\n", "restored, not deleted");
    });
}

#[test]
fn a_directory_that_the_agent_replaced_by_a_file_comes_back() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.write("dir/untracked.txt", "mine\n").write("loose/untracked.txt", "mine\n");
        repo.turn(mode, "rm -r dir loose; echo file >dir; echo file >loose");
        repo.undo();
        repo.assert_file("dir/c.txt", "one\n", "the directory is back");
        repo.assert_file("dir/untracked.txt", "mine\n", "with what was untracked in it");
        repo.assert_file("loose/untracked.txt", "mine\n", "also one without tracked files");
    });
}

#[test]
fn rm_cached_does_not_cost_the_file() {
    in_both_modes(|mode| {
        let repo = three_files();
        let before = repo.state();
        repo.turn(mode, "git rm -q --cached a.txt");
        repo.assert_file("a.txt", "one\n", "it is only untracked");
        repo.undo();
        repo.state().assert_is(&before, "the file is there and tracked");
    });
}

#[test]
fn commits_of_the_user_are_not_dropped() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo two >>a.txt; git commit -qam two");
        let commit = repo.commit("mine.txt", "mine\n");
        let error = repo.refuses(&["undo"], "foreign");
        assert!(
            error["commits"].as_array().is_some_and(|commits| commits.contains(&json!(commit))),
            "it is named: {error}"
        );
    });
}

#[test]
fn a_commit_after_a_ghost_turn_is_never_moved_off() {
    let repo = three_files();
    repo.turn(Mode::Ghost, "echo two >>a.txt");
    let commit = repo.commit("mine.txt", "mine\n");
    let before = repo.everything();
    let output = repo.oxundo(["undo"]);
    assert_eq!(repo.head(), commit, "the user's commit stays where it is\n{output:?}");
    if output.code != 0 {
        output.exits(3);
        repo.everything().assert_is(&before, "a refusal changes nothing");
    }
    repo.assert_file("mine.txt", "mine\n", "the user's file stays");
}

#[test]
fn what_an_uncommitted_gitignore_hid_stays() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.write(".gitignore", "hidden.txt\n").write("hidden.txt", "mine\n");
        repo.turn(mode, "rm .gitignore; echo two >>a.txt");
        repo.undo();
        repo.assert_file("hidden.txt", "mine\n", "the rule was in force when the turn began");
        repo.assert_file(".gitignore", "hidden.txt\n", "the rule is back");
        assert_eq!(repo.git(["status", "--short"]), "?? .gitignore", "as before the turn");
    });
}

#[test]
fn a_large_untracked_file_that_the_agent_shrank_is_not_deleted() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.sh("dd if=/dev/zero of=large.bin bs=1024 count=11264 2>/dev/null");
        let output = repo.turn(mode, "echo small >large.bin; echo two >>a.txt");
        output.warns("large.bin");
        repo.undo();
        repo.assert_file("large.bin", "small\n", "what is not captured is never deleted");
        repo.assert_file("a.txt", "one\n", "undo takes the rest back");
        repo.redo();
        repo.assert_file("large.bin", "small\n", "what is not captured is never deleted");
    });
}

#[test]
fn a_touched_file_of_26_mib_is_not_deleted() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.sh("dd if=/dev/zero of=large.bin bs=1024 count=26624 2>/dev/null");
        repo.turn(mode, "echo more >>large.bin; touch large.bin; echo two >>a.txt");
        repo.undo();
        assert_eq!(repo.read("large.bin").len(), 26624 * 1024 + 5, "what is not captured is never touched");
    });
}

#[test]
fn private_files_come_back_private() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.write("key", "secret\n").chmod("key", 0o600).chmod("a.txt", 0o640);
        repo.turn(mode, "rm key; echo two >a.txt; chmod 644 a.txt");
        repo.undo();
        assert_eq!(repo.mode("key"), 0o600, "an untracked key");
        assert_eq!(repo.mode("a.txt"), 0o640, "a tracked file");
        repo.assert_file("key", "secret\n", "its content");
    });
}

#[test]
fn line_ends_come_back_whatever_the_attributes_say() {
    let table = ["* text=auto", "* text eol=crlf", "* text eol=lf", "*.txt text", "* ident"]
        .map(|rule| (rule.to_owned(), rule));
    check_all(table, |rule| {
        for (mode, autocrlf) in
            [(Mode::Commit, "false"), (Mode::Ghost, "input"), (Mode::Commit, "true"), (Mode::Ghost, "true")]
        {
            let repo = Sandbox::new();
            repo.commit(".gitattributes", &format!("{rule}\n"));
            repo.git(["config", "core.autocrlf", autocrlf]);
            repo.write("tracked.txt", "one\r\ntwo\n$Id$\n");
            repo.sh("git add tracked.txt 2>/dev/null; git commit -qm tracked");
            repo.write("crlf.txt", "one\r\ntwo\r\n")
                .write("lf.txt", "one\ntwo\n")
                .write("mixed.txt", "one\r\ntwo\n$Id: x $\n");
            repo.write("tracked.txt", "ONE\r\ntwo\n$Id: mine $\n");
            let before = repo.state();
            repo.turn(
                mode,
                "for f in crlf lf mixed tracked; do echo agent >$f.txt; done; printf 'n\\r\\nm\\n' >new.txt",
            );
            let after = repo.state();
            repo.undo();
            repo.state().assert_is(&before, &format!("bytes come back with autocrlf={autocrlf}, {mode:?}"));
            repo.redo();
            repo.state().assert_is(&after, &format!("bytes come back with autocrlf={autocrlf}, {mode:?}"));
        }
    });
}

#[test]
fn bytes_come_back_through_a_filter_that_loses_them() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.commit(".gitattributes", "*.up filter=upper\n");
        repo.git(["config", "filter.upper.clean", "tr a-z A-Z"]);
        repo.git(["config", "filter.upper.smudge", "cat"]);
        repo.write("tracked.up", "Mixed Case\n");
        repo.sh("git add tracked.up; git commit -qm up");
        repo.write("untracked.up", "Also Mixed\n");
        let before = repo.state();
        repo.turn(mode, "echo Agent >tracked.up; rm untracked.up; echo New >new.up");
        let after = repo.state();
        repo.undo();
        repo.state().assert_is(&before, "the raw bytes come back");
        repo.redo();
        repo.state().assert_is(&after, "the raw bytes come back");
    });
}

#[test]
fn a_nested_repository_without_commits_is_left_alone() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.sh("git init -q nested; echo mine >nested/file.txt");
        repo.turn(mode, "echo two >>a.txt; echo new >new.txt");
        repo.undo();
        repo.assert_file("a.txt", "one\n", "the checkpoint did not fail");
        repo.assert_absent("new.txt", "the checkpoint did not fail");
        repo.assert_file("nested/file.txt", "mine\n", "never entered");
        assert!(repo.exists("nested/.git/HEAD"), "never moved");
        repo.redo();
        repo.assert_file("nested/file.txt", "mine\n", "never entered");
    });
}

#[test]
fn a_nested_repository_of_the_agent_is_never_deleted() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.turn(mode, "echo two >>a.txt; git init -q nested; cd nested; echo its >file.txt; git add -A; git -c user.name=a -c user.email=b commit -qm its");
        repo.undo();
        repo.assert_file("a.txt", "one\n", "the rest is undone");
        repo.assert_file("nested/file.txt", "its\n", "nested repositories are never deleted");
        assert!(repo.exists("nested/.git/HEAD"), "never moved");
    });
}

#[test]
fn a_submodule_is_never_entered() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.sh("git init -q ../lib; cd ../lib; git config user.name a; git config user.email b; echo 1 >lib.txt; git add -A; git commit -qm lib");
        repo.sh("git -c protocol.file.allow=always submodule add -q ../lib vendor/lib 2>/dev/null; git commit -qm lib");
        let script = "echo two >>a.txt; cd vendor/lib; echo 2 >>lib.txt; git -c user.name=a -c user.email=b commit -qam two; cd ../..; git add vendor/lib";
        let output = repo.turn(mode, script);
        output.warns("vendor/lib");
        let recorded = repo.git(["ls-files", "-s", "vendor/lib"]);
        repo.undo();
        repo.assert_file("a.txt", "one\n", "the rest is undone");
        repo.assert_file("vendor/lib/lib.txt", "1\n2\n", "what is inside is not covered");
        assert_ne!(
            repo.git(["ls-files", "-s", "vendor/lib"]),
            recorded,
            "the recorded commit in the index is restored"
        );
        repo.redo();
        assert_eq!(repo.git(["ls-files", "-s", "vendor/lib"]), recorded, "the recorded commit in the index is back");
    });
}

#[test]
fn redo_deletes_again_what_the_turn_deleted() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.write("mine.txt", "mine\n");
        repo.turn(mode, "rm a.txt mine.txt; git rm -q b.txt");
        repo.undo();
        repo.redo();
        for path in ["a.txt", "b.txt", "mine.txt"] {
            repo.assert_absent(path, "the turn deleted it");
        }
    });
}

#[test]
fn undo_removes_a_link_and_not_its_target() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.signal("outside");
        repo.turn(mode, "ln -s a.txt link; ln -s ../home/outside out; ln -s dir dirlink; echo more >>dirlink/c.txt");
        repo.undo();
        repo.assert_file("a.txt", "one\n", "the target of a link");
        repo.assert_file("dir/c.txt", "one\n", "what was edited through a link");
        assert!(repo.home().join("outside").exists(), "the target of a link outside");
        repo.assert_absent("out", "the turn made it");
    });
}

// What is over the limits

#[test]
fn what_is_not_captured_is_said_and_never_deleted() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.write("node_modules/pkg/index.js", "1\n").write(".venv/lib/pkg.py", "1\n");
        repo.sh("mkdir models; for i in $(seq 0 200); do echo $i >models/w$i.bin; done");
        let output = repo.turn(mode, "echo 2 >node_modules/pkg/index.js; echo new >node_modules/pkg/extra.js; rm models/w7.bin; echo two >>a.txt");
        output.warns("models");
        for op in ["undo", "redo"] {
            repo.oxundo([op]).success();
            repo.assert_file("node_modules/pkg/index.js", "2\n", "not captured");
            repo.assert_file("node_modules/pkg/extra.js", "new\n", "not captured");
            repo.assert_file(".venv/lib/pkg.py", "1\n", "not captured");
            repo.assert_file("models/w8.bin", "8\n", "not captured");
        }
        let (_, status) = repo.json(["status"]);
        assert!(status["not_covered"].is_array(), "status says what is not covered: {status}");
    });
}

#[test]
fn limits_lowered_or_raised_after_the_turn_do_not_matter() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.write("large.txt", "a large file\n");
        repo.git(["config", "oxundo.maxFileSize", "5"]);
        repo.turn(mode, "echo changed, and large >large.txt; echo 2 >a.txt");
        repo.git(["config", "oxundo.maxFileSize", "1m"]);
        repo.undo();
        repo.assert_file("large.txt", "changed, and large\n", "it was not captured then");
        repo.assert_file("a.txt", "one\n", "undo takes the rest back");
    });
}

#[test]
fn the_sizes_of_what_a_turn_made_do_not_matter() {
    in_both_modes(|mode| {
        let repo = three_files();
        repo.git(["config", "oxundo.maxFileSize", "100"]);
        repo.git(["config", "oxundo.maxDirEntries", "3"]);
        let before = repo.state();
        repo.turn(mode, "seq 1000 >large.txt; mkdir -p many build; for i in 1 2 3 4 5 6; do seq 99 >many/$i; echo $i >build/$i; done");
        let after = repo.state();
        for _ in 0..2 {
            repo.undo();
            repo.state().assert_is(&before, "what the turn made is removed");
            repo.redo();
            repo.state().assert_is(&after, "and brought back");
        }
    });
}

#[test]
fn a_file_whose_directory_the_user_deleted_is_overwritten_in_a_new_one() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.sh("mkdir -p d/e; echo 1 >d/e/f; echo other >d/e/other; git add -A; git commit -qm files");
        let before = repo.state();
        repo.turn(mode, "echo 2 >>d/e/f; echo 3 >new");
        repo.sh("rm -r d");
        let edited = repo.state();
        assert_eq!(repo.json(["undo"]).1["error"]["code"], "conflict");
        repo.state().assert_is(&edited, "a refusal changes nothing");
        for words in [&["undo", "--edits=overwrite"][..], &["restore", "--exact", "1:before"]] {
            repo.oxundo(words).success();
            let here = |fact: &str| fact.starts_with("on disk ") && !fact.contains("other");
            repo.state().only(here).assert_is(&before.clone().only(here), "all that the turn changed is as it was");
            let back = if words[0] == "undo" { "redo" } else { "undo" };
            repo.oxundo([back]).success();
            repo.state().assert_is(&edited, "and as the user had left it");
        }
        repo.assert_sound();
    }
}

#[test]
fn what_leads_on_where_a_directory_is_in_the_place_of_a_file_leads_on() {
    for put in ["echo mine >a.txt/in", "true"] {
        let repo = three_files();
        repo.turn(Mode::Commit, "echo two >>a.txt");
        repo.turn(Mode::Commit, "echo two >>b.txt");
        repo.sh(&format!("rm a.txt; mkdir a.txt; {put}"));
        let before = repo.everything();
        let refused = repo.refuses(&["undo", "2"], "conflict");
        repo.everything().assert_is(&before, "a refusal changes nothing");
        let hints = refused["hints"].to_string();
        assert!(!hints.contains("overwrite"), "it would be refused too: {hints}");
        let stash = hints.split('\'').find(|line| line.starts_with("git stash")).expect("a stash");
        repo.sh(stash);
        repo.oxundo(["undo", "2"]).success();
        repo.assert_file("a.txt", "one\n", "the turn is undone");
        if put != "true" {
            assert_eq!(repo.git(["show", "stash^3:a.txt/in"]), "mine", "and the user's is there");
        }
    }
}

#[test]
fn what_leads_on_where_a_file_is_in_the_place_of_a_directory_leads_on() {
    let repo = three_files();
    repo.turn(Mode::Commit, "echo two >>dir/c.txt");
    repo.sh("rm -r dir; echo mine >dir");
    let refused = repo.refuses(&["undo"], "conflict");
    assert!(!refused["hints"].to_string().contains("overwrite"), "it would be refused too: {refused}");
    assert_eq!(refused["paths"], json!(["dir"]));
    repo.sh("mv dir mine");
    repo.oxundo(["undo", "--edits=overwrite"]).success();
    repo.assert_file("dir/c.txt", "one\n", "the turn is undone");
    repo.assert_file("mine", "mine\n", "and the user's is there");
}

#[test]
fn the_line_that_tells_of_overwritten_edits_brings_them_back() {
    in_both_modes(|mode| {
        for name in ["a.txt", "odd *name"] {
            let repo = three_files();
            repo.write(name, "one\n");
            repo.git(["add", "-A"]);
            repo.git(["commit", "-q", "--allow-empty", "-m", "files"]);
            repo.turn(mode, &format!("echo two >'{name}'"));
            repo.write(name, "mine\n");
            let text = repo.oxundo(["undo", "--edits=overwrite"]).out();
            let told =
                text.lines().find_map(|line| line.strip_prefix("They are in @rescue: '")).expect("it says where");
            repo.sh(told.strip_suffix("' brings them back").expect("a line"));
            repo.assert_file(name, "mine\n", told);
        }
    });
}
