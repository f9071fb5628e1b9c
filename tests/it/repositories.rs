//! Every kind of repository: undo and redo lead there and back in it, or it is refused before anything is
//! recorded.

use crate::sandbox::{Mode, Output, Sandbox, check_all};
use std::fs;

/// What an agent does in `wide()`: it edits, adds, stages, deletes and commits.
const SCRIPT: &str = "echo two >>in/a.txt; rm in/b.txt; echo new >in/new.txt; git add in/new.txt; echo 3 >>README.txt; git commit -qm its README.txt; echo loose >loose.txt; echo over >>mine.txt";

/// Files in two directories, in two commits, with something dirty, staged and untracked.
fn fill(repo: &Sandbox) {
    for directory in ["in", "out", "out/deep"] {
        for name in ["a.txt", "b.txt"] {
            repo.write(format!("{directory}/{name}"), format!("{directory} {name}\n"));
        }
    }
    repo.sh("git add . && git commit -qm files");
    repo.commit("in/second.txt", "second\n");
}

fn make_dirty(repo: &Sandbox) {
    repo.write("in/a.txt", "dirty\n").write("staged.txt", "staged\n").write("mine.txt", "mine\n");
    repo.git(["add", "staged.txt"]);
}

fn filled() -> Sandbox {
    let repo = Sandbox::new();
    fill(&repo);
    repo
}

fn comes_and_goes(prepare: impl Fn() -> Sandbox) {
    for mode in Mode::tried() {
        let repo = prepare();
        make_dirty(&repo);
        repo.there_and_back(mode, SCRIPT);
    }
}

/// Where a clone of `filled()` is, made with these options.
fn clone(options: &str) -> Sandbox {
    let origin = filled();
    origin.git(["config", "uploadpack.allowFilter", "true"]);
    let clone = origin.beside("clone");
    origin.sh(&format!(
        "git clone -q {options} 'file://{}' ../clone; cd ../clone; git config user.name U; git config user.email u@e",
        origin.root().display()
    ));
    clone
}

#[test]
fn shallow_and_partial_clones() {
    let options = [
        "--depth=1",
        "--filter=blob:none",
        "--filter=tree:0",
        "--filter=blob:none --sparse",
        "--filter=tree:0 --sparse",
        "--filter=blob:limit=1 --no-checkout",
    ];
    check_all(options.map(|options| (options.to_owned(), options)), |options| {
        for mode in Mode::tried() {
            let repo = clone(options);
            if options.contains("no-checkout") {
                repo.git(["checkout", "-q", "HEAD"]);
            }
            if options.contains("sparse") {
                repo.git(["sparse-checkout", "add", "in"]);
                repo.git(["sparse-checkout", "reapply", "--sparse-index"]);
            }
            make_dirty(&repo);
            repo.there_and_back(mode, SCRIPT);
            // What a commit below needs may never have been fetched.
            if !options.contains("depth") && mode == Mode::Commit {
                repo.there_and_back(
                    mode,
                    "git stash -q -u; git checkout -q HEAD~1 -- .; echo x >>out.txt; git stash pop -q || :",
                );
            }
        }
    });
}

/// What git can be told to see in the place of the last commit: other parents, another tree, and other contents.
const REPLACED: [(&str, &str); 4] = [
    ("a commit's parents", "git replace --graft HEAD HEAD~2"),
    ("a commit's tree", "git replace HEAD $(git commit-tree -p HEAD~ -m other HEAD~^{tree}); git reset -q --hard"),
    ("a tree", "git replace HEAD^{tree} HEAD~^{tree}"),
    ("a file's content", "git replace HEAD:in/a.txt HEAD:in/b.txt"),
];

#[test]
fn replaced_objects() {
    check_all(REPLACED.map(|(what, script)| (what.to_owned(), script)), |script| {
        for mode in Mode::tried() {
            let repo = filled();
            repo.sh(script);
            repo.there_and_back(mode, "echo two >>in/a.txt; git rm -q --cached README.txt");
            repo.there_and_back(mode, "echo two >>in/a.txt; git commit -qam its; git replace --graft HEAD HEAD~2");
        }
        let repo = filled();
        repo.sh(script);
        if repo.git(["status", "--porcelain"]).is_empty() {
            let head = repo.head();
            repo.agent("echo 3 >>README.txt");
            assert_eq!(repo.git(["rev-parse", "HEAD~"]), head, "what git calls clean needs no dirty commit");
        }
    });
}

/// Blobs, trees and commits that an agent has git see others for: what it is told is no part of the turn, what was there is.
#[test]
fn objects_that_are_replaced_in_a_turn() {
    let other = "$(echo other | git hash-object -w --stdin)";
    let empty = "$(git hash-object -t tree -w /dev/null)";
    let told = [
        "git replace HEAD^{tree} $(git rev-parse HEAD~^{tree})".to_owned(),
        format!("git replace HEAD^{{tree}} {empty}"),
        format!("git replace HEAD:in/a.txt {other}"),
        format!("git replace HEAD $(git commit-tree -m other {empty})"),
        "git rev-parse HEAD >.git/shallow".to_owned(),
    ];
    let cases = told.iter().flat_map(|told| Mode::BOTH.map(|mode| (format!("{told} {mode:?}"), (told, mode))));
    check_all(cases, |(told, mode)| {
        let repo = filled();
        let before = repo.files();
        repo.turn(*mode, &format!("{told}; echo two >>in/a.txt; rm README.txt; echo new >new"));
        let after = repo.files();
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.oxundo([op]).success();
            repo.files().assert_is(wanted, op);
        }
    });
}

#[test]
fn other_peoples_history_that_git_is_told_to_see_below_a_turn_is_not_the_turns() {
    let others = "git switch -q --orphan others; git commit -q --allow-empty -m 1; git commit -q --allow-empty -m 2
        git tag others; git switch -q main; git branch -q -D others";
    let replace = "git replace --graft HEAD others HEAD~";
    let graft = "mkdir -p .git/info; git rev-parse HEAD others HEAD~ | tr '\n' ' ' >.git/info/grafts";
    for told in ["", replace, graft] {
        // A branch that was not there leaves none that it alone is compared with.
        for branch in ["", "git switch -q -c topic"] {
            let repo = Sandbox::new();
            repo.sh(others);
            repo.commit("a.txt", "a\n");
            let before = repo.state();
            repo.agent(&format!("{branch}\necho own >>a.txt; git commit -qam own; {told}"));
            let commits = repo.log()[0]["commits"].as_array().map(Vec::len);
            assert_eq!(commits, Some(1), "{branch} {told}: the turn made one commit");
            repo.undo();
            repo.sh("git replace -l | xargs -r git replace -d; rm -f .git/info/grafts");
            repo.state().assert_is(&before, told);
        }
    }
}

#[test]
fn alternates_and_shared_clones() {
    comes_and_goes(|| clone("--shared"));
    comes_and_goes(|| clone("--local"));
}

#[test]
fn every_form_of_the_index() {
    let forms = [
        ("version 4", "git config index.version 4; git update-index --index-version 4"),
        ("version 3", "git add -N . ; git update-index --index-version 3"),
        (
            "split",
            "git config core.splitIndex true; git update-index --split-index; git config splitIndex.maxPercentChange 90",
        ),
        (
            "untracked cache",
            "git config core.untrackedCache true; git update-index --force-untracked-cache; git status >/dev/null",
        ),
        ("many files", "git config feature.manyFiles true; git update-index --force-write-index"),
        (
            "read by threads",
            "git config index.threads 3; git update-index --force-write-index; grep -aq IEOT .git/index",
        ),
        ("no checksum", "git config index.skipHash true; git update-index --force-write-index"),
    ];
    check_all(forms.map(|(name, script)| (name.to_owned(), script)), |script| {
        comes_and_goes(|| {
            let repo = filled();
            repo.sh(script);
            // A split index has entries of both parts.
            repo.commit("after.txt", "after\n");
            repo
        });
    });
}

#[test]
fn a_split_index_stays_split() {
    let repo = filled();
    repo.sh("git config core.splitIndex true; git update-index --split-index");
    repo.agent("echo two >>in/a.txt; echo new >in/new.txt");
    repo.undo();
    repo.redo();
    assert_eq!(repo.git(["status", "--short"]), "", "git reads it");
    assert!(!repo.sh("ls .git/sharedindex.*").is_empty(), "and it still is one");
}

#[test]
fn a_git_directory_elsewhere() {
    for name in ["apart", "apart.git"] {
        comes_and_goes(|| {
            let repo = filled();
            repo.sh(&format!("git init -q --separate-git-dir ../{name}"));
            repo
        });
    }
}

#[test]
fn a_worktree_elsewhere() {
    for mode in Mode::tried() {
        let repo = filled();
        repo.sh("mkdir ../tree; mv README.txt in out ../tree; mv .git ../real.git; echo 'gitdir: ../real.git' >../tree/.git; git config -f ../real.git/config core.worktree ../tree");
        let tree = repo.beside("tree");
        tree.sh("git update-index --refresh");
        make_dirty(&tree);
        tree.there_and_back(mode, SCRIPT);
    }
}

#[test]
fn git_dir_and_work_tree_in_the_environment() {
    for mode in Mode::tried() {
        let repo = filled();
        repo.sh("mv .git ../real.git; git --git-dir ../real.git config core.worktree ../repo");
        let run = |args: &[&str]| {
            let mut command = repo.oxundo_command(args);
            let base = repo.root().parent().expect("it has a parent").to_owned();
            command.env("GIT_DIR", base.join("real.git")).env("GIT_WORK_TREE", repo.root());
            Output::of(&mut command).success();
        };
        make_dirty_with(&repo);
        let files = |repo: &Sandbox| {
            repo.sh("find . -type f | sort | xargs cat; git --git-dir ../real.git ls-files -s; git --git-dir ../real.git rev-parse HEAD")
        };
        let before = files(&repo);
        let ghost: &[&str] = if mode == Mode::Ghost { &["run", "--ghost"] } else { &["run"] };
        run(&[ghost, &["--", "sh", "-ec", SCRIPT]].concat());
        let after = files(&repo);
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            run(&[op]);
            assert_eq!(&files(&repo), wanted, "{op}");
        }
        assert!(!repo.exists(".git"), "nothing is made in the worktree");
    }
}

fn make_dirty_with(repo: &Sandbox) {
    repo.write("in/a.txt", "dirty\n").write("staged.txt", "staged\n").write("mine.txt", "mine\n");
    repo.sh("git --git-dir ../real.git add staged.txt");
}

#[test]
fn names_that_differ_only_in_case() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.write("Tracked.txt", "upper\n").write("Dir/file", "one\n").write(".gitignore", "*.LOG\nBuild/\n");
        repo.sh("git add . && git commit -qm files");
        repo.git(["config", "core.ignoreCase", "true"]);
        repo.write("a.log", "ignored by its rule\n").write("build/x", "ignored by its rule\n");
        repo.there_and_back(mode, "echo two >>Tracked.txt; echo new >new.txt; echo agent >>Dir/file; rm .gitignore");
        repo.assert_file("a.log", "ignored by its rule\n", "it was ignored");
        repo.there_and_back(mode, "git mv Tracked.txt tracked.txt; echo two >>tracked.txt");
        repo.there_and_back(mode, "mv Tracked.txt tracked.txt; echo two >>tracked.txt");
    }
}

#[test]
fn linked_worktrees_keep_their_history_when_they_are_removed() {
    for mode in Mode::tried() {
        let repo = filled();
        let linked = repo.linked("side");
        make_dirty(&linked);
        linked.there_and_back(mode, SCRIPT);
        linked.redo();
        repo.turn(mode, "echo main >>README.txt");
        assert_eq!((repo.log().len(), linked.log().len()), (1, 1), "each has its own timeline");
        let name = "refs/oxundo/worktrees/side/timeline";
        let timeline = repo.refs()[name].clone();
        repo.git(["worktree", "remove", "--force", "../side"]);
        repo.prune();
        assert_eq!(repo.refs().get(name), Some(&timeline), "its history stays");
        assert_eq!(
            repo.git(["show", &format!("{name}:turns/00/00/01/before/worktree/mine.txt")]),
            "mine",
            "and can be read"
        );
        repo.undo();
        repo.assert_file("README.txt", "readme\n", "the other goes on");
    }
}

#[test]
fn a_repository_of_another_user_is_refused_unless_it_is_safe() {
    let repo = filled();
    repo.turn(Mode::Ghost, "echo two >README.txt");
    if !Output::of(&mut repo.shell("chown -R 12345 .")).err().is_empty() {
        #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
        {
            eprintln!("SKIPPED: only the superuser can give a repository away");
        }
        return;
    }
    let output = repo.oxundo(["undo"]);
    output.exits(1);
    output.warns("hint: ");
    output.warns("safe.directory");
    let output = repo.oxundo(["run", "--", "true"]);
    output.exits(125);
    let global = repo.home().join("gitconfig");
    fs::write(&global, format!("[safe]\n\tdirectory = {}\n", repo.root().display())).expect("write a configuration");
    let mut command = repo.oxundo_command(["undo"]);
    Output::of(command.env("GIT_CONFIG_GLOBAL", &global)).success();
    repo.assert_file("README.txt", "readme\n", "it is safe now");
}

#[test]
fn a_bare_repository_is_refused() {
    let repo = Sandbox::new();
    let bare = repo.beside("bare.git");
    repo.sh("git clone -q --bare . ../bare.git");
    let before = bare.sh("find . | sort; git for-each-ref");
    for args in [&["run", "--", "true"] as &[_], &["undo"], &["log"], &["status"]] {
        let output = bare.oxundo(args);
        assert_ne!(output.code, 0, "{output:?}");
        output.warns("bare");
        output.warns("hint: ");
    }
    assert_eq!(bare.sh("find . | sort; git for-each-ref"), before, "nothing is recorded");
    // Within `.git` there is no worktree either.
    let mut inside = repo.clone();
    inside.start_in(".git");
    let output = inside.oxundo(["run", "--", "true"]);
    output.exits(125);
    output.warns("hint: ");
}

#[test]
fn a_hash_function_that_is_not_sha1() {
    comes_and_goes(|| {
        let repo = Sandbox::init(&["--object-format=sha256"]);
        repo.identify();
        repo.commit("README.txt", "readme\n");
        fill(&repo);
        repo
    });
}
