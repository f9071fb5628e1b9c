//! The recipes of docs/recovery.md, run as they stand there, by plain git.

use crate::sandbox::{Mode, Output, Sandbox};
use std::collections::BTreeSet;
use std::path::Path;

/// The recipes by name.
fn recipes() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recovery.md");
    let page = std::fs::read_to_string(page).expect("read the page");
    let blocks = page.split("<!-- recipe: ").skip(1);
    let recipes: Vec<(String, String)> = blocks
        .map(|block| {
            let (name, rest) = block.split_once(" -->\n```sh\n").expect("a recipe has a name and a block of shell");
            let (script, _) = rest.split_once("```\n").expect("the block ends");
            (name.to_owned(), script.to_owned())
        })
        .collect();
    assert_eq!(page.matches("```sh").count(), recipes.len(), "every block of shell is a recipe");
    recipes
}

impl Sandbox {
    /// Follows a recipe, in a shell that finds no oxundo; gives what it prints.
    #[track_caller]
    fn follow(&self, name: &str) -> String {
        let recipes = recipes();
        let (_, script) = recipes.iter().find(|(known, _)| known == name).expect("there is such a recipe");
        let mut shell = self.shell(script);
        shell.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let output = Output::of(&mut shell);
        output.success();
        output.out()
    }
}

/// Work of the user's, staged and not, and a turn that changes it, commits, makes and deletes.
fn worked(mode: Mode) -> (Sandbox, crate::sandbox::State) {
    let repo = Sandbox::new();
    repo.commit("gone.txt", "gone\n");
    repo.write("README.txt", "staged\n");
    repo.git(["add", "README.txt"]);
    repo.write("README.txt", "the user's\n").write("notes.txt", "untracked\r\n");
    repo.write(".gitattributes", "* text eol=lf\n").write("key", "secret\n").chmod("key", 0o600);
    let before = repo.state();
    repo.turn(
        mode,
        "echo agent >README.txt; git commit -qam own; echo more >>notes.txt; echo new >new.txt; rm gone.txt",
    );
    (repo, before)
}

#[test]
fn every_recipe_is_tried() {
    let source = include_str!("recovery.rs");
    let names: BTreeSet<String> = recipes().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() > 8, "{names:?}");
    for name in names {
        assert!(source.contains(&format!(".follow(\"{name}\")")), "'{name}' is followed by a test");
    }
}

#[test]
fn what_there_is_can_be_looked_at() {
    let (repo, _) = worked(Mode::Commit);
    let shown = repo.follow("look");
    for part in ["end 1 (sh)", "turns/00/00/01", "\"agent\": \"sh\"", "\"path\":\"new.txt\"", "\"kind\":\"agent\""] {
        assert!(shown.contains(part), "it shows {part}: {shown}");
    }
}

#[test]
fn one_file_is_brought_back() {
    let (repo, _) = worked(Mode::Commit);
    repo.follow("one file");
    repo.assert_file("README.txt", "the user's\n", "as before the turn");
}

#[test]
fn all_files_are_brought_back_beside_byte_by_byte() {
    for mode in Mode::tried() {
        let (repo, _) = worked(mode);
        let shown = repo.follow("all files");
        let beside = repo.beside("as-it-was");
        beside.assert_file("README.txt", "the user's\n", "as before the turn");
        beside.assert_file("notes.txt", "untracked\r\n", "no attribute changes a byte");
        beside.assert_file("gone.txt", "gone\n", "what the turn deleted is there");
        beside.assert_absent("new.txt", "what the turn made is not");
        assert!(shown.contains("\"key\":\"0600\""), "modes are told: {shown}");
    }
}

#[test]
fn the_whole_state_is_brought_back() {
    for mode in Mode::tried() {
        let (repo, before) = worked(mode);
        let tip = repo.head();
        repo.follow("whole state");
        let same = |fact: &str| {
            let added = ["before-recovery", "stash", "refs/", "notes.txt", "key"];
            !added.iter().any(|part| fact.contains(part))
        };
        repo.state().only(same).assert_is(&before.only(same), &format!("{mode:?}: as before the turn"));
        repo.assert_file("README.txt", "the user's\n", "unstaged as it was");
        assert_eq!(repo.git(["cat-file", "-p", ":README.txt"]), "staged", "staged as it was");
        assert_eq!(repo.git(["rev-parse", "before-recovery"]), tip, "the turn's commits are kept");
    }
}

#[test]
fn a_timeline_is_brought_back_from_its_reflog() {
    let (repo, _) = worked(Mode::Commit);
    let good = repo.git(["rev-parse", "refs/oxundo/timeline"]);
    repo.git(["update-ref", "-m", "oops", "refs/oxundo/timeline", "HEAD"]);
    repo.follow("moved timeline");
    assert_eq!(repo.git(["rev-parse", "refs/oxundo/timeline"]), good);
    repo.undo();
}

#[test]
fn a_timeline_that_was_removed_is_brought_back() {
    let (repo, before) = worked(Mode::Commit);
    let good = repo.git(["rev-parse", "refs/oxundo/timeline"]);
    repo.git(["update-ref", "-d", "refs/oxundo/timeline"]);
    let shown = repo.follow("removed timeline");
    assert!(shown.lines().any(|line| line.starts_with(&good) && line.ends_with("end 1 (sh)")), "{shown}");
    repo.undo();
    repo.state().assert_is(&before, "oxundo goes on from there");
}

#[test]
fn what_undo_overwrote_is_brought_back() {
    let (repo, _) = worked(Mode::Commit);
    repo.write("README.txt", "a later edit\n");
    repo.oxundo(["undo", "--edits=overwrite"]).success();
    let shown = repo.follow("rescue");
    assert_eq!(shown, "rescues/00/00/01");
    repo.assert_file("README.txt.rescued", "a later edit\n", "it was kept");
}

#[test]
fn the_commits_of_an_undone_turn_are_brought_back() {
    let (repo, _) = worked(Mode::Commit);
    let tip = repo.head();
    repo.undo();
    repo.prune();
    let shown = repo.follow("undone commits");
    assert!(shown.contains(&tip[..7]) && shown.contains("\"turn\":1"), "{shown}");
    assert_eq!(repo.git(["rev-parse", "undone"]), tip);
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn an_interrupted_undo_is_taken_back() {
    let (repo, _) = worked(Mode::Ghost);
    if crate::kill_points::points_of(&repo, &["undo"]).is_err() {
        crate::sandbox::announce("SKIPPED: an interrupted undo taken back by hand: no permission to trace");
        return;
    }
    let after = repo.state();
    let killed = crate::kill_points::killed_at(&repo, &["undo"], ["renameat", "README.txt"]);
    assert!(crate::kill_points::has_journal(&killed), "it was in the middle of it");
    let shown = killed.follow("pending");
    assert!(shown.contains("undo 1 (sh)") && shown.contains("README.txt"), "{shown}");
    let same = |fact: &str| !fact.contains("notes.txt") && !fact.contains("key");
    killed.state().only(same).assert_is(&after.only(same), "the files and the index are as after the turn");
    killed.oxundo(["log"]).says("1");
    killed.undo();
}

#[test]
fn every_trace_is_removed() {
    let (repo, _) = worked(Mode::Commit);
    let tip = repo.head();
    repo.oxundo(["init", "claude"]).success();
    repo.follow("uninstall");
    assert_eq!(repo.git(["for-each-ref", "refs/oxundo", "refs/notes"]), "");
    assert!(!repo.exists(".git/oxundo"), "its scratch is gone");
    assert_eq!(repo.try_git(["config", "--get-regexp", "^notes"]).out(), "", "so is its configuration");
    assert_eq!(repo.head(), tip, "commits stay");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn a_kill_in_the_rehearsal_leaves_nothing_where_only_something_large_was_made() {
    let repo = Sandbox::new();
    repo.git(["config", "oxundo.maxFileSize", "50"]);
    repo.commit("d/small.txt", "small\n");
    repo.agent("head -c 200 /dev/zero >d/big.bin");
    if crate::kill_points::points_of(&repo, &["undo"]).is_err() {
        return crate::sandbox::announce("SKIPPED: a kill in the rehearsal: no permission to trace");
    }
    let after = repo.state();
    let killed = crate::kill_points::killed_at(&repo, &["undo"], ["renameat", ".oxundo-tmp-"]);
    assert_ne!(killed.files(), repo.files(), "it had begun");
    killed.oxundo(["status"]).warns("an interrupted operation");
    killed.state().assert_is(&after, "the next command takes away what was tried");
}
