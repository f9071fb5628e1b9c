//! Which repository, and which worktree of it: oxundo works on what git would work on, or refuses.

use crate::sandbox::{Mode, Output, Sandbox, check_all};

/// A repository, and another one beside it, in 'other/'.
fn two() -> Sandbox {
    let repo = Sandbox::new();
    repo.sh("mkdir sub ../plain; git init -q ../other; cd ../other; git config user.name U; git config user.email u@e
             echo other >other.txt; git add .; git commit -qm other");
    repo
}

#[test]
fn what_the_environment_names_is_worked_on_or_refused_and_nothing_else_is() {
    // What is set, where one stands, and whether that works on 'repo', or is refused.
    let cases: [(&str, &str, bool); 15] = [
        ("GIT_DIR=$PWD/.git", "repo", true),
        ("GIT_DIR=.git", "repo", true),
        ("GIT_DIR=$PWD/.git", "repo/sub", false),
        ("GIT_DIR=$PWD/.git GIT_WORK_TREE=$PWD", "repo/sub", true),
        ("GIT_DIR=$PWD/.git GIT_WORK_TREE=..", "repo/sub", true),
        ("GIT_DIR=$PWD/.git", "other", false),
        ("GIT_DIR=$PWD/.git", "plain", false),
        ("GIT_DIR=$PWD/.git GIT_WORK_TREE=$PWD", "other", false),
        ("GIT_DIR=$PWD/nothing", "repo", false),
        ("GIT_WORK_TREE=$PWD/../other", "repo", false),
        ("GIT_WORK_TREE=$PWD", "repo", true),
        ("GIT_INDEX_FILE=$PWD/../index", "repo", false),
        ("GIT_INDEX_FILE=$PWD/.git/next-index-1.lock", "repo", true),
        ("GIT_COMMON_DIR=$PWD/../other/.git", "repo", false),
        ("GIT_NAMESPACE=some", "repo", true),
    ];
    let cases = cases.map(|case| (format!("{} in {}", case.0, case.1), case));
    check_all(cases, |(set, place, works)| {
        let repo = two();
        let before =
            repo.sh("cd ..; find other plain repo -path '*/.git/*' -prune -o -print | sort; git -C other for-each-ref");
        let script =
            format!("export {set}; cd ../{place}; oxundo run -- sh -c 'echo two >>../repo/README.txt; echo new >new'");
        let output = Output::of(&mut repo.shell(&script));
        if *works {
            output.success();
            assert_eq!(repo.log().len(), 1, "the turn is there");
            repo.undo();
        } else {
            output.exits(125);
            output.warns("unset GIT_");
        }
        let after =
            repo.sh("cd ..; find other plain repo -path '*/.git/*' -prune -o -print | sort; git -C other for-each-ref");
        assert_eq!(after, before, "nothing else was touched");
    });
}

#[test]
fn git_dash_dash_git_dir_is_refused_where_it_would_be_another_worktree() {
    let repo = two();
    repo.sh("git config --global alias.ox '!oxundo'");
    let output = Output::of(&mut repo.shell("cd ../other; git --git-dir=../repo/.git ox run -- sh -c 'echo x >x'"));
    output.exits(125);
    assert!(!repo.path("../other/x").exists(), "the agent was not started");
    Output::of(&mut repo.shell("cd ..; git -C repo ox run -- sh -c 'echo x >x'")).success();
    assert_eq!(repo.log().len(), 1);
}

#[test]
fn what_is_beside_a_git_that_is_no_repository_is_captured() {
    let stale = [
        ("a submodule's that is gone", "echo 'gitdir: ../.git/modules/gone' >sub/.git"),
        ("an empty directory", "mkdir sub/.git"),
        ("a link that leads nowhere", "ln -s /nowhere sub/.git"),
        ("nonsense", "echo nonsense >sub/.git"),
        ("half a git directory", "mkdir sub/.git; echo 'ref: refs/heads/main' >sub/.git/HEAD"),
    ];
    let mut cases = Vec::new();
    for (name, made) in stale {
        for tracked in [false, true] {
            cases.push((format!("{name}, beside tracked files: {tracked}"), (made, tracked)));
        }
    }
    check_all(cases, |(made, tracked)| {
        let repo = Sandbox::new();
        repo.sh("mkdir sub");
        if *tracked {
            repo.commit("sub/tracked", "one\n");
        }
        repo.sh(&format!("echo mine >sub/mine; {made}"));
        for mode in Mode::tried() {
            let before = repo.files();
            repo.turn(mode, "echo agent >sub/mine; echo new >sub/new; mkdir sub/d; echo d >sub/d/d");
            let after = repo.files();
            for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
                repo.oxundo([op]).success();
                repo.files().assert_is(wanted, op);
            }
        }
    });
}

#[test]
fn a_repository_with_files_that_are_tracked_outside_is_named_and_what_else_is_in_it_stays() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.commit("sub/tracked", "one\n");
        repo.sh("git init -q sub; echo mine >sub/mine; echo mine >sub/other");
        let before = repo.state();
        let output = repo.turn(mode, "echo agent >sub/mine; echo two >>sub/tracked; git update-index --add sub/other");
        output.warns("the turn changed 'sub', which undo does not cover");
        repo.undo();
        repo.assert_file("sub/mine", "agent\n", "it is not covered");
        repo.sh("echo mine >sub/mine");
        repo.state().assert_is(&before, "the user's own file is not deleted since the agent tracked it");
    }
}

#[test]
fn what_the_user_made_right_before_a_turn_is_not_the_turns() {
    // By how much it is earlier differs each time.
    for _ in 0..8 {
        let repo = Sandbox::new();
        repo.sh("git init -q sub; git status >/dev/null; echo mine >sub/other");
        repo.turn(Mode::Ghost, "git update-index --add sub/other; echo new >new");
        repo.undo();
        repo.assert_file("sub/other", "mine\n", "it was there");
        repo.assert_absent("new", "and this was not");
    }
}

#[test]
fn a_repository_in_a_files_place_is_in_the_way_and_stays() {
    let repo = Sandbox::new();
    repo.commit("sub", "a file\n");
    repo.agent("rm sub; git init -q sub; echo n >sub/n; echo two >>README.txt");
    let error = repo.refuses(&["undo"], "conflict");
    assert_eq!(error["paths"][0], "sub/.git", "{error}");
}

#[test]
fn a_file_named_as_git_in_other_letters_stops_nothing() {
    for name in [".GIT", ".Git", ".git ", ".git.", "git~1", ".gIT/x", "sub/.GIT"] {
        for mode in Mode::tried() {
            let repo = Sandbox::new();
            repo.sh("mkdir sub .gIT");
            repo.write(name, "the user's\n");
            let before = repo.state();
            repo.turn(mode, "echo two >>README.txt; echo new >new").warns("a name git refuses");
            repo.undo();
            repo.state().assert_is(&before, name);
        }
        let repo = Sandbox::new();
        repo.sh("mkdir sub .gIT");
        repo.agent(&format!("echo two >>README.txt; echo new >'{name}'"));
        repo.undo();
        repo.assert_file("README.txt", Sandbox::new().read("README.txt"), "what can be undone is");
        assert!(repo.exists(name), "what git could not store stays: {name}");
    }
}

#[test]
fn new_files_in_a_directory_that_the_agent_untracked_go() {
    for name in ["build", "node_modules"] {
        for mode in Mode::tried() {
            let repo = Sandbox::new();
            repo.commit(&format!("{name}/kept"), "one\n");
            repo.there_and_back(
                mode,
                &format!(
                    "git rm -rq --cached {name}; echo {name} >.gitignore; git add .gitignore; git commit -qm untracked
                     echo n >{name}/new; mkdir {name}/d; echo d >{name}/d/d; echo two >>{name}/kept"
                ),
            );
        }
    }
}

#[test]
fn the_branch_that_a_bare_repository_names_is_checked_out_nowhere_else() {
    let repo = Sandbox::new();
    repo.sh("git clone -q --bare . ../bare.git; git -C ../bare.git remote remove origin; git -C ../bare.git worktree add -q ../tree main");
    let tree = repo.beside("tree");
    tree.sh("git config user.name U; git config user.email u@e");
    for mode in Mode::tried() {
        tree.there_and_back(mode, "echo two >>README.txt; git commit -qam two; echo new >new");
    }
}
