//! What is no plain file of this repository: left alone, or restored by a stated rule, and named where a
//! change to it is not covered.

use crate::sandbox::{Mode, Sandbox, check_all, in_both_modes};
use std::os::unix::fs::{FileTypeExt, MetadataExt};

const GIT: &str = "git -c user.name=a -c user.email=a@b -c commit.gpgSign=false";

#[test]
fn sockets_and_fifos_are_left_alone() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.sh("mkdir d; mkfifo pipe d/pipe");
        // A socket's name is short: it is bound from within.
        let bound = std::os::unix::net::UnixListener::bind(repo.path("socket"));
        let socket = bound.is_ok();
        repo.turn(mode, "echo two >README.txt; mkfifo made; echo new >d/new");
        for op in ["undo", "redo"] {
            repo.oxundo([op]).success();
            assert_eq!(repo.pipes(), ["d/pipe", "made", "pipe"], "they stay where they are");
            assert!(!socket || repo.path("socket").symlink_metadata().is_ok_and(|found| found.file_type().is_socket()));
        }
        repo.undo();
        repo.assert_file("README.txt", "readme\n", "the rest is undone");
        repo.assert_absent("d/new", "the rest is undone");
    });
}

impl Sandbox {
    /// Where the FIFOs are.
    fn pipes(&self) -> Vec<String> {
        let mut found: Vec<_> = self.sh("find . -type p").lines().map(|path| path[2..].to_owned()).collect();
        found.sort();
        found
    }
}

#[test]
fn the_mode_of_a_file_with_several_names_comes_and_goes_under_all_of_them() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.sh("echo x >one; ln one two; ln one own; git add one two; git commit -qm linked");
        let before = repo.files();
        repo.turn(mode, "chmod 755 one");
        let after = repo.files();
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.oxundo([op]).success();
            repo.files().assert_is(wanted, op);
        }
    });
}

#[test]
fn a_pipe_in_a_files_place_is_never_opened_and_never_lost() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.write("loose", "mine\n");
        let output = repo.turn(mode, "rm README.txt loose; mkfifo README.txt loose");
        output.success();
        repo.refuses(&["undo"], "conflict");
        repo.sh("rm README.txt loose");
        repo.undo();
        repo.assert_file("README.txt", "readme\n", "once they are out of the way");
        repo.assert_file("loose", "mine\n", "once they are out of the way");
    });
}

#[test]
fn a_hard_link_is_cut_where_the_turn_wrote_and_nowhere_else() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.write("one", "shared\n").write("still", "shared too\n");
        repo.sh("ln one two; ln still quiet; echo outside >../home/out; ln ../home/out in");
        let quiet = repo.path("quiet").metadata().expect("it is there").ino();
        repo.there_and_back(mode, "echo agent >>one; rm in; echo agent >in; echo two >README.txt");
        assert_eq!(repo.sh("cat ../home/out"), "outside", "what is outside is not written through a link");
        assert_eq!(repo.path("still").metadata().expect("it is there").ino(), quiet, "links that no turn touched stay");
    });
}

#[test]
fn a_sparse_file_comes_back_with_its_bytes() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.sh("truncate -s 3M sparse; printf end >>sparse");
        repo.there_and_back(
            mode,
            "printf x | dd of=sparse bs=1 seek=1000000 conv=notrunc 2>/dev/null; truncate -s 1M new",
        );
    });
}

#[test]
fn an_unreadable_file_is_named_and_left_alone() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.write("locked", "mine\n").write("shut/file", "mine\n");
        repo.chmod("locked", 0o000).chmod("shut", 0o000);
        // Nothing is unreadable to the superuser: as anyone else, this is another test.
        let readable = std::fs::read(repo.path("locked")).is_ok();
        let output = repo.turn(mode, "echo two >README.txt");
        if !readable {
            output.warns("locked");
            output.warns("shut");
        }
        repo.undo();
        assert_eq!((repo.mode("locked"), repo.mode("shut")), (0, 0), "as they were");
        repo.chmod("locked", 0o600).chmod("shut", 0o700);
        repo.assert_file("locked", "mine\n", "never deleted");
        repo.assert_file("shut/file", "mine\n", "never deleted");
        repo.assert_file("README.txt", "readme\n", "the rest is undone");
    });
}

// Other repositories

/// A repository in `name`, with or without a commit.
fn nest(repo: &Sandbox, name: &str, commit: bool) {
    repo.sh(&format!("git init -q {name}; echo its >{name}/file"));
    if commit {
        repo.sh(&format!("cd {name}; git add .; {GIT} commit -qm its"));
    }
}

#[test]
fn nested_repositories_are_never_entered_and_named_when_changed() {
    check_all([false, true].map(|commit| (format!("with a commit: {commit}"), commit)), |&commit| {
        for (at, (what, script, named)) in [
            ("nothing", ":", false),
            ("a commit", &*format!("cd n; echo more >>file; git add .; {GIT} commit -qm more"), true),
            ("staged", "cd n; echo more >>file; git add file", true),
            ("edited", "echo more >>n/file", true),
            ("added to", "echo new >n/new", true),
            ("deleted", "rm -rf n", true),
        ]
        .into_iter()
        .enumerate()
        {
            let mode = Mode::BOTH[at % 2];
            let repo = Sandbox::new();
            nest(&repo, "n", commit);
            let output = repo.turn(mode, &format!("echo two >README.txt; {script}"));
            assert_eq!(output.err().contains("'n'"), named, "{what}, with a commit: {commit}\n{output:?}");
            let inside = |state: crate::sandbox::State| state.only(|fact| fact.starts_with("on disk n"));
            let after = inside(repo.state());
            for op in ["undo", "redo"] {
                let output = repo.oxundo([op]);
                output.success();
                assert_eq!(output.err().contains("'n'"), named, "{what}, with a commit: {commit}\n{output:?}");
                inside(repo.state()).assert_is(&after, "it is never entered, moved or deleted");
            }
            repo.undo();
            repo.assert_file("README.txt", "readme\n", "the rest is undone");
        }
    });
}

#[test]
fn what_the_user_made_a_repository_since_is_never_entered() {
    for script in ["echo its >n/new", "mkdir -p n/deep; echo its >n/deep/new", "rm n/mine", "echo its >>n/mine"] {
        let repo = Sandbox::new();
        repo.write("n/mine", "mine\n").write("n/other", "other\n");
        repo.turn(Mode::Ghost, &format!("echo two >README.txt; {script}"));
        repo.sh(&format!("cd n; git init -q; git add -A; {GIT} commit -qm 'a repository of its own'"));
        let left = repo.state();
        for line in [&["undo"][..], &["undo", "--only", "1"], &["undo", "--revert"], &["restore", "1:before"]] {
            let error = repo.refuses(line, "conflict");
            assert!(!error["hints"].to_string().contains("1:before -- "), "{script}: {error}");
        }
        repo.state().assert_is(&left, script);
        repo.sh("mv n/.git aside.git");
        repo.undo();
        repo.assert_file("n/mine", "mine\n", "moved out of the way, as the hint says");
    }
}

#[test]
fn a_repository_that_the_agent_makes_stays() {
    in_both_modes(|mode| {
        for (name, script) in [
            ("new", format!("git init -q n; cd n; echo its >file; git add .; {GIT} commit -qm its")),
            ("cloned", "git clone -q . n".to_owned()),
            ("unborn", "git init -q n; echo its >n/file".to_owned()),
            ("bare", "git init -q --bare n; echo its >n/file".to_owned()),
            ("around files that were there", "git init -q d".to_owned()),
        ] {
            let repo = Sandbox::new();
            repo.write("d/mine", "mine\n");
            repo.turn(mode, &format!("{script}; cd {}; echo two >README.txt", repo.root().display()));
            let inside = |state: crate::sandbox::State| {
                state.only(|fact| fact.starts_with("on disk n") || fact.starts_with("on disk d"))
            };
            let after = inside(repo.state());
            for op in ["undo", "redo", "undo"] {
                repo.oxundo([op]).success();
                if name != "bare" {
                    inside(repo.state()).assert_is(&after, &format!("{name}: it is never deleted"));
                }
            }
            repo.assert_file("README.txt", "readme\n", "the rest is undone");
            repo.assert_file("d/mine", "mine\n", "the user's");
        }
    });
}

/// A repository with a submodule in `sub`.
fn with_submodule() -> Sandbox {
    let repo = Sandbox::new();
    repo.sh(&format!("git init -q ../lib; cd ../lib; echo 1 >lib.txt; git add .; {GIT} commit -qm lib"));
    repo.sh("git -c protocol.file.allow=always submodule add -q ../lib sub 2>/dev/null; git commit -qm sub");
    repo
}

#[test]
fn a_submodule_is_never_entered_whatever_is_in_it() {
    for (at, (what, prepare, script, named)) in [
        ("clean", ":", ":", false),
        ("dirty before", "echo mine >>sub/lib.txt; echo new >sub/new", ":", false),
        ("dirtied", ":", "echo more >>sub/lib.txt", true),
        ("added to", ":", "echo new >sub/new", true),
        ("moved", ":", &*format!("cd sub; echo 2 >lib.txt; {GIT} commit -qam two"), true),
        (
            "moved and staged",
            ":",
            &*format!("cd sub; echo 2 >lib.txt; {GIT} commit -qam two; cd ..; git add sub"),
            true,
        ),
        (
            "moved and committed",
            ":",
            &*format!("cd sub; echo 2 >lib.txt; {GIT} commit -qam two; cd ..; git add sub; git commit -qm sub"),
            true,
        ),
        ("moved before", &*format!("cd sub; echo 2 >lib.txt; {GIT} commit -qam two"), "git add sub", false),
    ]
    .into_iter()
    .enumerate()
    {
        let mode = Mode::BOTH[at / 2 % 2];
        let repo = with_submodule();
        repo.sh(prepare);
        let recorded = repo.git(["ls-files", "-s", "sub"]);
        let output = repo.turn(mode, &format!("echo two >README.txt; {script}"));
        assert_eq!(output.err().contains("'sub'"), named, "{what}\n{output:?}");
        let (after, staged) = (repo.state(), repo.git(["ls-files", "-s", "sub"]));
        let inside = |state: crate::sandbox::State| state.only(|fact| fact.starts_with("on disk sub"));
        for (op, wanted) in [("undo", &recorded), ("redo", &staged), ("undo", &recorded)] {
            let output = repo.oxundo([op]);
            output.success();
            assert_eq!(output.err().contains("'sub'"), named, "{what}\n{output:?}");
            inside(repo.state()).assert_is(&inside(after.clone()), &format!("{what}: it is never entered"));
            assert_eq!(&repo.git(["ls-files", "-s", "sub"]), wanted, "{what}: the index's commit after {op}");
        }
        repo.assert_file("README.txt", "readme\n", "the rest is undone");
    }
}

#[test]
fn a_submodule_that_the_agent_adds_is_taken_out_of_the_index_and_stays_on_disk() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.sh(&format!("git init -q ../lib; cd ../lib; echo 1 >lib.txt; git add .; {GIT} commit -qm lib"));
        let index = |repo: &Sandbox| repo.git(["ls-files", "-s"]);
        let before = index(&repo);
        repo.turn(
            mode,
            "git -c protocol.file.allow=always submodule add -q ../lib sub 2>/dev/null; echo two >README.txt",
        );
        let after = index(&repo);
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            repo.oxundo([op]).success();
            assert_eq!(&index(&repo), wanted, "the index after {op}");
            repo.assert_file("sub/lib.txt", "1\n", "never deleted");
            assert_eq!(repo.exists(".gitmodules"), op == "redo", "a file like any other");
        }
    });
}

#[test]
fn a_submodule_that_the_agent_removes_comes_back_in_the_index() {
    in_both_modes(|mode| {
        for script in ["git rm -q --cached sub", "git rm -qf sub", "git rm -qf sub; echo file >sub; git add sub"] {
            let repo = with_submodule();
            let index = |repo: &Sandbox| repo.git(["ls-files", "-s"]);
            let before = index(&repo);
            let output = repo.turn(mode, script);
            let after = index(&repo);
            for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
                repo.oxundo([op]).success();
                assert_eq!(&index(&repo), wanted, "the index after {op} of '{script}'\n{output:?}");
            }
        }
    });
}

#[test]
fn a_worktree_inside_the_worktree_is_left_alone() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.git(["worktree", "add", "-q", "-b", "side", "wt"]);
        repo.write("wt/mine", "mine\n");
        let inside = |state: crate::sandbox::State| state.only(|fact| fact.starts_with("on disk wt"));
        let output =
            repo.turn(mode, "echo two >README.txt; echo agent >wt/README.txt; git worktree add -q -b other made");
        output.warns("'wt'");
        let after = inside(repo.state());
        for op in ["undo", "redo", "undo"] {
            let output = repo.oxundo([op]);
            if output.code == 3 {
                // The branch that it made is checked out in there.
                output.warns("checked out");
                repo.sh("git worktree remove --force made");
                repo.oxundo([op]).success();
            } else {
                output.success();
            }
            inside(repo.state()).assert_is(&after, "it is a worktree of its own");
        }
        repo.assert_file("README.txt", "readme\n", "the rest is undone");
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_that_changes_all_the_while_is_recorded_and_said() {
    // It is written whenever it is read.
    let Some(repo) = crate::fuse::Mounted::new(&["busy"]) else { return };
    repo.write("busy.log", "busy\n");
    let output = repo.agent("echo more >>README.txt");
    output.warns("'busy.log' kept changing while it was read");
    let record = repo.git(["show", "refs/oxundo/timeline:turns/00/00/01/turn.json"]);
    assert!(record.contains("busy.log"), "{record}");
}

#[test]
fn names_that_git_refuses_are_in_no_commit() {
    let repo = Sandbox::new();
    let before = repo.state();
    repo.agent("echo x >'x\\.git'; mkdir d; ln -s nowhere d/.gitmodules; ln -s nowhere 'gitmod~1'; echo own >own");
    assert_eq!(
        repo.git(["ls-tree", "-r", "--name-only", "HEAD"]),
        "README.txt\nown",
        "what git would take is committed"
    );
    let clone = repo.home().join("clone");
    repo.git(["clone", "-q", ".", &clone.to_string_lossy()]);
    repo.undo();
    repo.state().assert_is(&before, "all of them are gone");
    repo.redo();
    assert!(repo.exists("x\\.git") && repo.exists("own"), "and come back");
}
