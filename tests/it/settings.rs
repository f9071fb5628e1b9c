//! Settings are read as git reads them: a boolean without a value is true, an empty one is false, and what is
//! neither is refused before anything is done.

use crate::sandbox::{Mode, Sandbox, check_all};
use std::fs::OpenOptions;
use std::io::Write as _;

/// Appends to the repository's configuration, as an editor would.
fn configure(repo: &Sandbox, lines: &str) {
    let mut config = OpenOptions::new().append(true).open(repo.path(".git/config")).expect("open the configuration");
    config.write_all(lines.as_bytes()).expect("write the configuration");
}

#[test]
fn line_ends_come_back_where_autocrlf_has_no_value() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        configure(&repo, "[core]\n\tautocrlf\n");
        assert_eq!(repo.git(["config", "--type=bool", "core.autocrlf"]), "true", "that is what it is for git");
        repo.write("clean.txt", "one\r\ntwo\r\n").write("lf.txt", "one\ntwo\n");
        repo.sh("git add . 2>/dev/null; git commit -qm files");
        assert_eq!(repo.git(["cat-file", "-s", ":clean.txt"]), "8", "git keeps it without CR");
        repo.there_and_back(
            mode,
            "printf 'agent\\r\\n' >clean.txt; printf 'agent\\n' >lf.txt; printf 'n\\r\\n' >new.txt",
        );
        repo.assert_file("clean.txt", "one\r\ntwo\r\n", "the very bytes are back");
    }
}

#[test]
fn commits_are_signed_where_gpgsign_has_no_value() {
    let repo = Sandbox::new();
    repo.sh("printf '#!/bin/sh\\necho >>\"$HOME/asked\"\\nexit 1\\n' >../home/gpg; chmod +x ../home/gpg");
    repo.git(["config", "gpg.program", &repo.home().join("gpg").to_string_lossy()]);
    configure(&repo, "[commit]\n\tgpgSign\n");
    let by_git = repo.try_git(["commit", "--allow-empty", "-qm", "signed"]);
    assert_ne!(by_git.code, 0, "git asks for a signature, and gives up\n{by_git:?}");
    repo.sh("rm ../home/asked");
    let output = repo.agent("echo ran >ran");
    output.warns("the turn's changes were not committed");
    assert!(repo.home().join("asked").exists(), "and so does oxundo");
    repo.undo();
    repo.assert_absent("ran", "the turn is recorded all the same");
}

#[test]
fn hooks_run_as_the_boolean_says() {
    let table = [
        ("without a value", "[oxundo]\n\tverify\n", true),
        ("empty", "[oxundo]\n\tverify =\n", false),
        ("another word", "[oxundo]\n\tverify = On\n", true),
        ("a number", "[oxundo]\n\tverify = 2\n", true),
        ("zero", "[oxundo]\n\tverify = 0\n", false),
        ("the last of many", "[oxundo]\n\tverify = false\n[oxundo]\n\tverify\n", true),
    ];
    let cases = table.map(|(name, lines, runs)| (name.to_owned(), (lines, runs)));
    check_all(cases, |(lines, runs)| {
        let repo = Sandbox::new();
        repo.sh("mkdir -p .git/hooks; printf '#!/bin/sh\\necho >.git/checked\\n' >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit");
        configure(&repo, lines);
        assert_eq!(repo.git(["config", "--type=bool", "oxundo.verify"]), runs.to_string(), "git reads the same");
        repo.agent("echo more >>README.txt");
        assert_eq!(repo.exists(".git/checked"), *runs);
    });
}

#[test]
fn what_is_no_boolean_and_no_number_is_refused() {
    let table = [
        ("[oxundo]\n\tverify = maybe\n", "oxundo.verify is 'maybe': a boolean"),
        ("[commit]\n\tgpgSign = maybe\n", "commit.gpgSign is 'maybe': a boolean"),
        ("[oxundo]\n\tmaxFileSize = 1.5m\n", "oxundo.maxFileSize is '1.5m': a number"),
        ("[oxundo]\n\tmaxFileSize\n", "oxundo.maxFileSize is '': a number"),
        ("[oxundo]\n\tmaxDirEntries = -1\n", "oxundo.maxDirEntries is '-1': a number"),
        ("[oxundo]\n\tmode\n", "oxundo.mode is '': one of commit, ghost"),
    ];
    let cases = table.map(|case| (case.1.to_owned(), case));
    check_all(cases, |(lines, words)| {
        let repo = Sandbox::new();
        configure(&repo, lines);
        let before = repo.everything();
        let output = repo.oxundo(["run", "--", "sh", "-c", "echo more >>README.txt"]);
        assert_ne!(output.code, 0, "{output:?}");
        output.warns(words);
        repo.everything().assert_is(&before, "nothing is done");
    });
}

#[test]
fn a_remote_is_a_mirror_as_the_boolean_says() {
    let table = [
        ("without a value", "[remote \"a.b\"]\n\turl = ../x\n\tmirror\n", true),
        ("empty", "[remote \"a.b\"]\n\turl = ../x\n\tmirror =\n", false),
        ("one", "[remote \"a.b\"]\n\turl = ../x\n\tmirror = 1\n", true),
        ("a refspec", "[remote \"a.b\"]\n\turl = ../x\n\tpush = +refs/*:refs/*\n", true),
    ];
    let cases = table.map(|(name, lines, is)| (name.to_owned(), (lines, is)));
    check_all(cases, |(lines, is)| {
        let repo = Sandbox::new();
        configure(&repo, lines);
        let output = repo.oxundo(["doctor"]);
        assert_eq!(output.out().contains("'git push a.b' copies oxundo's refs"), *is, "{output:?}");
    });
}
