//! Sparse checkouts, with git's sparse index and without: what is left out of the worktree comes back
//! as it was, and is not looked at where nothing touches it.

use crate::sandbox::{Mode, Sandbox, State, check_all};

/// How a sparse checkout is made.
const FORMS: [(&str, &str); 4] = [
    ("full index", "git sparse-checkout set --cone --no-sparse-index in"),
    ("sparse index", "git sparse-checkout set --cone --sparse-index in"),
    ("sparse index, nothing below the top", "git sparse-checkout set --cone --sparse-index"),
    ("not cone", "git sparse-checkout set --no-cone /README.txt '/in/*' '!/in/second.txt'"),
];

/// What agents do.
const SCRIPTS: [&str; 24] = [
    "echo two >>README.txt; echo loose >loose.txt; mkdir -p in; echo new >in/new.txt; git add --sparse in/new.txt; git commit -qm its; echo more >>in/new.txt",
    "mkdir -p out/deep far; echo there >out/deep/a.txt; echo new >out/new.txt; echo more >>README.txt",
    "mkdir -p out; echo there >out/a.txt; git add --sparse out/a.txt; git commit -qm outside",
    "mkdir -p out/fresh; echo new >out/fresh/new.txt; git add --sparse out/fresh; echo two >>README.txt",
    "mkdir -p out far/empty",
    "rm -rf out; echo file >out; ln -s in far",
    "git sparse-checkout add out; rm out/b.txt; echo two >>out/deep/b.txt",
    "git sparse-checkout set far; echo two >>far/a.txt",
    "git sparse-checkout set out/deep; git commit -qm none --allow-empty; echo two >>README.txt",
    "git sparse-checkout disable; echo two >>out/a.txt; rm -r far; echo two >>README.txt",
    "git sparse-checkout reapply; git commit -qm none --allow-empty; git reset -q --hard; echo two >README.txt",
    "git rm -q --cached --sparse out/a.txt; echo two >>README.txt",
    "git rm -rq --sparse out; git commit -qm gone",
    "git mv --sparse out/a.txt out/moved.txt; echo two >>README.txt",
    "git update-index --no-skip-worktree far/a.txt; echo two >>README.txt",
    "git sparse-checkout disable; git update-index --assume-unchanged out/b.txt; git sparse-checkout set in",
    "echo new >meant.txt; git add -N --sparse meant.txt",
    "git checkout -qf other; echo two >>README.txt",
    "git checkout -qf other; git sparse-checkout add out; echo two >>out/more/new.txt; git commit -qam other",
    "git reset -q --soft HEAD~1; echo two >>README.txt",
    "git reset -q --hard other; git sparse-checkout reapply",
    "echo two >>README.txt; git stash -q; echo three >>README.txt",
    "echo two >>README.txt; git stash -q; git stash pop -q; git commit -qam popped",
    "git merge -q --squash other; echo two >>README.txt",
];

/// Files at the top and in `in/`, `out/`, `out/deep/` and `far/`, and a branch that differs out there.
fn filled() -> Sandbox {
    let repo = Sandbox::new();
    for directory in ["in", "out", "out/deep", "far"] {
        for name in ["a.txt", "b.txt"] {
            repo.write(format!("{directory}/{name}"), format!("{directory} {name}\n"));
        }
    }
    repo.write("in/second.txt", "second\n");
    repo.sh("git add . && git commit -qm files");
    repo.sh("git checkout -q -b other; mkdir out/more; echo n >out/more/new.txt; git rm -rq out/deep; echo o >>out/a.txt; git add .; git commit -qm other; git checkout -q main");
    repo.commit("in/last.txt", "last\n");
    repo
}

fn check(repo: &Sandbox, mode: Mode, script: &str) {
    let before = repo.state();
    repo.turn(mode, &format!("set +e; exec 2>/dev/null; {script}; exit 0"));
    let after = repo.state();
    let turns = repo.log().len();
    if turns == 0 {
        after.assert_is(&before, &format!("'{script}' is no turn ({mode:?})"));
        return;
    }
    let walk: [(&str, &State); 3] = [("undo", &before), ("redo", &after), ("undo", &before)];
    for (op, wanted) in walk {
        repo.oxundo([op]).success();
        repo.state().assert_is(wanted, &format!("{op} of '{script}' ({mode:?})"));
    }
    repo.assert_sound();
}

/// What the user has done before.
const WORKS: [&str; 3] = [
    "true",
    "echo dirty >README.txt; echo mine >mine.txt; mkdir -p in; echo staged >in/staged.txt; git add --sparse in/staged.txt",
    "mkdir -p out/deep/er; echo mine >out/deep/a.txt; echo mine >out/mine.txt; git rm -q --cached --sparse far/b.txt",
];

/// The scripts in the forms of a sparse checkout, over a work. The short form has each script in each form, over each
/// work, and in each mode; the long form has all combinations.
fn check_over(work: usize) {
    let thorough = crate::form::is_thorough();
    let base = filled();
    let mut table = Vec::new();
    for (nth, (name, form)) in FORMS.into_iter().enumerate() {
        let original = base.copy();
        original.sh(form);
        original.sh(WORKS[work]);
        for (at, script) in SCRIPTS.into_iter().enumerate() {
            for mode in Mode::tried() {
                if thorough || ((at + nth) % WORKS.len() == work && mode == Mode::BOTH[(at + nth) % 2]) {
                    table.push((format!("{name}: {script} ({mode:?})"), (original.clone(), mode, script)));
                }
            }
        }
    }
    check_all(table, |(original, mode, script)| check(&original.copy(), *mode, script));
}

#[test]
fn every_turn_comes_and_goes_in_a_sparse_checkout() {
    check_over(0);
}

#[test]
fn every_turn_comes_and_goes_over_work_in_a_sparse_checkout() {
    check_over(1);
}

#[test]
fn every_turn_comes_and_goes_over_work_outside_of_a_sparse_checkout() {
    check_over(2);
}

/// The sparse index's entries for directories.
fn folded(repo: &Sandbox) -> Vec<String> {
    repo.git(["ls-files", "--sparse"]).lines().filter(|line| line.ends_with('/')).map(str::to_owned).collect()
}

#[test]
fn a_sparse_index_stays_sparse() {
    let base = filled();
    base.sh("git sparse-checkout set --cone --sparse-index in");
    let scripts = [
        "echo two >>in/a.txt; echo new >in/new.txt",
        "mkdir -p out/deep; echo there >out/deep/a.txt; echo new >out/new.txt",
        "git rm -rq --sparse out; git commit -qm gone",
        "git checkout -qf other; echo two >>README.txt",
        "git sparse-checkout set far; echo two >>far/a.txt; git sparse-checkout set in",
    ];
    check_all(scripts.map(|script| (script.to_owned(), script)), |script| {
        for mode in Mode::tried() {
            let repo = base.copy();
            let before = folded(&repo);
            assert_eq!(before, ["far/", "out/"], "git makes such an index");
            repo.turn(mode, script);
            repo.undo();
            assert_eq!(folded(&repo), before, "{mode:?}");
        }
    });
}

#[test]
fn what_is_left_out_and_untouched_is_not_even_read() {
    for form in ["--sparse-index", "--no-sparse-index"] {
        let repo = filled();
        repo.sh(&format!("git sparse-checkout set --cone {form} in"));
        let id = repo.git(["rev-parse", "HEAD:out"]);
        let tree = repo.path(format!(".git/objects/{}/{}", &id[..2], &id[2..]));
        let without_it = |act: &dyn Fn(&Sandbox)| {
            std::fs::rename(&tree, repo.home().join("tree")).expect("take the tree away");
            act(&repo);
            std::fs::rename(repo.home().join("tree"), &tree).expect("put the tree back");
            repo.state()
        };
        let before = repo.state();
        let after = without_it(&|repo| drop(repo.agent("echo two >>in/a.txt; echo new >in/new.txt")));
        without_it(&Sandbox::undo).assert_is(&before, form);
        without_it(&Sandbox::redo).assert_is(&after, form);
    }
}

#[test]
fn an_edit_outside_is_committed_as_git_would() {
    for (name, form) in FORMS {
        let repo = filled();
        repo.sh(form);
        repo.agent(
            "mkdir -p out/deep far/a.txt; echo there >out/deep/a.txt; echo new >out/new.txt; echo x >far/a.txt/x",
        );
        let committed = repo.git(["show", "--format=", "--name-only", "HEAD"]);
        assert_eq!(committed, "far/a.txt\nfar/a.txt/x\nout/deep/a.txt\nout/new.txt", "{name}");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{name}: nothing is left uncommitted");
    }
}

#[test]
fn what_the_user_expects_outside_stays_hidden() {
    let repo = filled();
    repo.sh("git sparse-checkout set --cone in; git config sparse.expectFilesOutsideOfPatterns true; mkdir -p out/deep; echo mine >out/deep/a.txt");
    repo.there_and_back(Mode::Commit, "echo there >out/deep/a.txt; echo two >>README.txt");
    repo.redo();
    assert_eq!(repo.git(["show", "--format=", "--name-only", "HEAD"]), "README.txt", "git takes no notice of it");
}

#[test]
fn what_a_restore_brings_though_it_is_left_out_is_left_out_again() {
    let forms =
        FORMS.iter().flat_map(|(form, set)| ["1:before", "1"].map(|state| (format!("{form}: {state}"), (*set, state))));
    check_all(forms, |(set, state)| {
        let repo = filled();
        repo.agent("echo 2 >>far/a.txt; echo 2 >>in/a.txt");
        repo.sh(set);
        let before = repo.state();
        repo.oxundo(["restore", state, "--", "far/a.txt"]).success();
        // Whoever asks git writes down what it sees.
        repo.sh("git status --porcelain");
        let after = repo.state();
        repo.undo();
        repo.state().assert_is(&before, "undo");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.undo();
        repo.agent("echo 3 >>README.txt");
        assert_eq!(repo.git(["log", "--format=", "--name-only", "-1"]), "README.txt", "nothing else is committed");
        repo.assert_sound();
    });
}

#[test]
fn a_turn_that_changes_nothing_over_work_outside_leaves_no_trace() {
    for (name, form) in FORMS {
        let repo = filled();
        repo.sh(form);
        repo.sh("git config oxundo.untracked commit; mkdir -p out/deep; echo mine >out/deep/a.txt; echo mine >out/deep/mine.txt; echo mine >out/mine.txt; mkdir -p far out/b.txt; echo mine >far/mine.txt; echo mine >>README.txt");
        let before = repo.everything();
        repo.agent("true");
        repo.everything().assert_is(&before, name);
        repo.there_and_back(Mode::Commit, "echo two >>out/mine.txt; echo two >>README.txt");
    }
}

#[test]
fn a_submodule_that_is_left_out_comes_back_in_the_index() {
    for form in ["--sparse-index", "--no-sparse-index"] {
        let repo = filled();
        let id = repo.head();
        repo.git(["update-index", "--add", "--cacheinfo", &format!("160000,{id},out/sub")]);
        repo.sh(&format!("git commit -qm sub; git sparse-checkout set --cone {form} in"));
        repo.there_and_back(
            Mode::Commit,
            "echo two >>README.txt; git rm -rq --cached --sparse out; git commit -qm gone",
        );
        repo.there_and_back(Mode::Ghost, "mkdir -p out; echo there >out/a.txt");
    }
}

#[test]
fn a_checkpoint_of_an_earlier_version_lists_every_entry() {
    for form in ["--sparse-index", "--no-sparse-index"] {
        let repo = filled();
        repo.sh(&format!("git sparse-checkout set --cone {form} in"));
        let before = repo.state();
        repo.agent("echo two >>in/a.txt; mkdir -p out; echo there >out/a.txt");
        let after = repo.state();
        let turn = "turns/00/00/01";
        let listed: Vec<String> = (repo.git(["ls-tree", "-r", &format!("refs/oxundo/timeline:{turn}/before/index")]).lines())
            .filter(|line| line.contains("\tout/") || line.contains("\tfar/"))
            .map(|line| {
                let (meta, path) = line.split_once('\t').expect("an entry has a path");
                let id = meta.rsplit(' ').next().expect("an entry has an id");
                format!("{{\"path\":\"{path}\",\"entries\":[{{\"mode\":33188,\"id\":\"{id}\",\"stage\":0,\"intent_to_add\":false,\"skip_worktree\":true,\"assume_unchanged\":false}}]}}\n")
            })
            .collect();
        assert_eq!(listed.len(), 6, "as many as there are");
        let special = repo.git_fed(&["hash-object", "-w", "--stdin"], listed.concat().as_bytes());
        repo.sh(&format!(
            "export GIT_INDEX_FILE=.git/rewritten; git read-tree refs/oxundo/timeline
             git rm -q --sparse --cached {turn}/before/sparse
             git update-index --cacheinfo 100644,{special},{turn}/before/special
             git update-ref refs/oxundo/timeline $(git commit-tree -p HEAD -m earlier $(git write-tree))"
        ));
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.oxundo([op]).success();
            repo.state().assert_is(wanted, &format!("{op}, {form}"));
        }
    }
}
