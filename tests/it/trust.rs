//! What git does not trust, oxundo does not: nothing that is configured there is run, nothing is recorded.

use crate::sandbox::{Output, Sandbox, announce};

/// Every command, in words that need nothing; each of them opens the repository.
const COMMANDS: [&[&str]; 14] = [
    &["status"],
    &["undo"],
    &["redo"],
    &["log"],
    &["show", "1"],
    &["diff", "1"],
    &["run", "--", "true"],
    &["turn", "begin"],
    &["checkpoint", "x"],
    &["restore", "1"],
    &["gc"],
    &["doctor"],
    &["hook", "claude"],
    &["init"],
];

/// A repository whose own settings run a command that leaves a trace.
const TRAP: &str = "printf '#!/bin/sh\\ntouch \"%s\"\\n' \"$PWD/../home/sprung\" >../home/trap; chmod +x ../home/trap
    set_trap() {
        git --git-dir=\"$1\" config core.fsmonitor \"$PWD/../home/trap\"
        git --git-dir=\"$1\" config oxundo.onUndo \"$PWD/../home/trap\"
        git --git-dir=\"$1\" config oxundo.messageCommand \"$PWD/../home/trap\"
    }";

/// A place that is in a trap, and whether git refuses it.
#[track_caller]
fn does_as_git(place: &Sandbox, what: &str, refused: bool) {
    let sprung = place.home().join("sprung");
    let git = place.try_git(["status"]);
    assert_eq!(git.code != 0, refused, "{what}: git {git:?}");
    let _ = std::fs::remove_file(&sprung);
    for args in COMMANDS {
        let mut words = args.to_vec();
        // These make something of their own where there is no repository.
        if !refused && ["run", "turn", "init", "checkpoint"].contains(&args[0]) {
            words = vec!["status"];
        }
        let output = place.oxundo(&words);
        if refused {
            assert!(!sprung.exists(), "{what}: {args:?} runs what is configured there");
            if args[0] != "hook" {
                assert_ne!(output.code, 0, "{what}: {output:?}");
                assert!(output.err().contains("hint: "), "{what}: {output:?}");
            }
        }
    }
    let mut complete = place.oxundo_command(["__complete", "undo", "--to", ""]);
    let _ = Output::of(complete.env("COMPLETE", "bash"));
    assert!(!refused || !sprung.exists(), "{what}: completion runs what is configured there");
}

/// Whether files can be given to another user here, which is said aloud where they cannot.
fn can_give_away(repo: &Sandbox) -> bool {
    let can = Output::of(&mut repo.shell("touch ../home/mine; chown 12345 ../home/mine")).code == 0;
    if !can {
        announce("SKIPPED, NOTHING IS PROVED: only the superuser can give a file away");
    }
    can
}

#[test]
fn a_bare_repository_among_the_files_is_used_only_where_git_uses_it() {
    for (explicit, refused) in [(true, true), (false, false)] {
        let repo = Sandbox::new();
        let inner = repo.beside("repo/sub/inner");
        repo.sh(&format!(
            "{TRAP}; mkdir -p sub; git clone -q --bare . sub/inner; set_trap sub/inner
             git --git-dir=sub/inner config core.bare false; git --git-dir=sub/inner config core.worktree .
             git config --global safe.bareRepository {}",
            if explicit { "explicit" } else { "all" }
        ));
        does_as_git(&inner, "a bare repository", refused);
        repo.oxundo(["status"]).success();
        // Where one stands in a git directory, it is found and refused as such.
        let linked = repo.linked(if explicit { "one" } else { "two" });
        linked.oxundo(["status"]).success();
        for inside in [".git", ".git/refs", if explicit { ".git/worktrees/one" } else { ".git/worktrees/two" }] {
            let mut here = repo.clone();
            here.start_in(inside);
            here.oxundo(["status"]).warns("is in a git directory");
        }
    }
}

#[test]
fn a_gitfile_of_another_users_is_not_followed() {
    let repo = Sandbox::new();
    if !can_give_away(&repo) {
        return;
    }
    let shared = repo.beside("shared");
    let mine = repo.beside("shared/mine");
    repo.sh(&format!(
        "{TRAP}; git clone -q . ../theirs; set_trap ../theirs/.git; mkdir -p ../shared/mine
         git --git-dir=../theirs/.git config core.worktree \"$PWD/../shared\"
         echo \"gitdir: $PWD/../theirs/.git\" >../shared/.git; chown -h 12345 ../shared/.git"
    ));
    does_as_git(&mine, "below a gitfile of another's", true);
    does_as_git(&shared, "beside a gitfile of another's", true);
    repo.sh("git config --global safe.directory \"$(cd ../shared; pwd -P)\"");
    does_as_git(&shared, "what the user trusts", false);
    assert_eq!(shared.oxundo(["status"]).code, 0);
}

#[test]
fn a_worktree_of_another_users_is_not_used() {
    let repo = Sandbox::new();
    if !can_give_away(&repo) {
        return;
    }
    let theirs = repo.beside("theirs");
    repo.sh(&format!("{TRAP}; git clone -q . ../theirs; set_trap ../theirs/.git; chown 12345 ../theirs"));
    does_as_git(&theirs, "another's worktree", true);
    repo.sh("git config --global safe.directory '*'");
    does_as_git(&theirs, "what the user trusts", false);
    assert_eq!(theirs.oxundo(["status"]).code, 0);
}

#[test]
fn no_repository_is_looked_for_above_a_ceiling() {
    let repo = Sandbox::new();
    repo.sh(&format!("{TRAP}; mkdir -p a/b/c; set_trap .git; ln -s a link"));
    let top = repo.root().to_owned();
    let base = repo.base();
    for (ceiling, place, found) in [
        (top.join("a"), "a/b", false),
        (top.join("a"), "a", true),
        (top.join("a/b"), "a/b/c", false),
        (top.clone(), "a/b/c", false),
        (top.join("link"), "a/b", false),
        (base.clone(), "a/b/c", true),
        (top.clone(), "", true),
    ] {
        let mut here = repo.clone().with_variable("GIT_CEILING_DIRECTORIES", &ceiling);
        here.start_in(place);
        let git = Output::of(
            repo.shell("git rev-parse --show-toplevel")
                .current_dir(repo.path(place))
                .env("GIT_CEILING_DIRECTORIES", &ceiling),
        );
        assert_eq!(git.code == 0, found, "{ceiling:?} {place}: {git:?}");
        let said = here.oxundo(["log"]);
        assert_eq!(said.code == 0, found, "{ceiling:?} {place}: {said:?}");
        assert!(found || said.err().contains("is in no git repository"), "{said:?}");
    }
}
