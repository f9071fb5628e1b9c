//! What git runs for the user, hooks and filters, has the user's environment, not what oxundo sets for itself.

use crate::sandbox::Sandbox;

/// A script that notes what it has of these.
const NOTE: &str = "echo \"$LC_ALL $LANG [$GIT_LITERAL_PATHSPECS]\"";

#[test]
fn hooks_have_the_users_locale_and_pathspecs() {
    let repo = Sandbox::new();
    repo.git(["config", "oxundo.verify", "true"]);
    repo.sh(&format!(
        "mkdir -p .git/hooks; printf '%s\\n' '#!/bin/sh' '{NOTE} $LANGUAGE >../hook; git diff --cached --name-only -- \"*.js\" >>../hook' >.git/hooks/pre-commit
         chmod +x .git/hooks/pre-commit"
    ));
    let mut run = repo.oxundo_command(["run", "--", "sh", "-ec", "echo 1 >one.js; echo 2 >two.txt"]);
    run.env("LC_ALL", "C.UTF-8").env("LANG", "de_DE.UTF-8").env("LANGUAGE", "de");
    crate::sandbox::Output::of(&mut run).success();
    assert_eq!(repo.sh("cat ../hook"), "C.UTF-8 de_DE.UTF-8 [] de\none.js");
}

#[test]
fn filters_have_the_users_locale_and_pathspecs() {
    let repo = Sandbox::new();
    repo.sh(&format!("printf '%s\\n' '{NOTE} >>../filter; cat' >../clean; git config filter.note.clean 'sh ../clean'"));
    repo.commit(".gitattributes", "*.x filter=note\n");
    let mut run = repo.oxundo_command(["run", "--", "sh", "-ec", "echo 1 >one.x"]);
    run.env("LC_ALL", "C.UTF-8").env("LANG", "de_DE.UTF-8");
    crate::sandbox::Output::of(&mut run).success();
    let told = repo.sh("sort -u ../filter");
    assert_eq!(told, "C.UTF-8 de_DE.UTF-8 []", "each time");
}

/// A script that notes all that may tell git, or a program of the user's, to do otherwise; but for what the tests set for git,
/// and the index that is staged on.
const ALL: &str =
    "env | grep -E \"^(GIT_|LC_|LANG|OXUNDO)\" | grep -vE \"^GIT_(INDEX_FILE|CONFIG_(COUNT|KEY|VALUE)|TEST)\" | sort";

#[test]
fn filters_hooks_and_what_signs_have_the_environment_that_git_gives_them() {
    let repo = Sandbox::new();
    repo.sh(&format!(
        "cd ../home; printf '%s\\n' '#!/bin/sh' '{ALL} >../told; cat' >clean
         printf '%s\\n' '#!/bin/sh' '{ALL} >../told' >hook
         printf '%s\\n' '#!/bin/sh' '{ALL} >../told; cat >/dev/null; echo \"[GNUPG:] SIG_CREATED \" >&2; echo signature' >gpg
         chmod +x clean hook gpg; cd ../repo; mkdir -p .git/hooks; cp ../home/hook .git/hooks/pre-commit
         git config filter.note.clean ../home/clean; git config gpg.program ../home/gpg"
    ));
    repo.commit(".gitattributes", "*.x filter=note\n");
    let cases = [
        ("a filter", "echo 1 >one.x", "echo 2 >two.x; git add two.x", &[][..]),
        ("a hook", "echo 1 >one.js", "git hook run pre-commit", &["-c", "oxundo.verify=true"]),
        (
            "what signs",
            "echo 1 >one.y",
            "echo 2 >two.y; git add two.y; git commit-tree -S -m x HEAD^{tree}",
            &["-c", "commit.gpgSign=true"],
        ),
    ];
    for linked in [false, true] {
        let repo = if linked { repo.linked("linked") } else { repo.copy() };
        for (what, script, by_git, set) in cases {
            let told = |output: crate::sandbox::Output| {
                output.success();
                let told = repo.sh("cat ../told; rm ../told");
                assert!(told.contains("LC_ALL"), "{what} was run");
                told
            };
            let with = |mut command: std::process::Command| {
                for pair in set.chunks(2) {
                    let (key, value) = pair[1].split_once('=').expect("a key and a value");
                    repo.git(["config", key, value]);
                }
                command.env("LC_ALL", "C.UTF-8").env("LANGUAGE", "de").env("GIT_TERMINAL_PROMPT", "1");
                crate::sandbox::Output::of(&mut command)
            };
            let by_oxundo = told(with(repo.oxundo_command(["run", "--", "sh", "-ec", script])));
            let by_git = told(with(repo.shell(by_git)));
            assert_eq!(by_oxundo, by_git, "{what}, linked: {linked}");
        }
    }
}

#[test]
fn no_hook_hears_of_the_index_that_a_commit_is_made_of() {
    let repo = Sandbox::new();
    repo.sh("git config core.hooksPath .hooks; mkdir -p .hooks .git/hooks; printf '#!/bin/sh\\necho >>../heard\\n' >.hooks/post-index-change
        chmod +x .hooks/post-index-change; cp .hooks/post-index-change .git/hooks; rm -f ../heard");
    repo.agent("echo 1 >>README.txt");
    repo.oxundo(["undo"]).success();
    assert_eq!(repo.sh("ls .."), "home\nrepo", "it was not run");
}
