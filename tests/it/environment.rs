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
