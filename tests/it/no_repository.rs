//! A directory that is in no repository: ghost turns on a store of oxundo's own, and nothing is made in it.

use crate::sandbox::{Mode, Output, Sandbox, announce};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory with files of every sort, none of them in a repository.
fn plain() -> Sandbox {
    let dir = Sandbox::without_repository();
    dir.write("a.txt", "one\n")
        .write("sub/b.bin", b"\0\xff\r\n")
        .write(".gitignore", "*.log\n")
        .write("x.log", "mine\n");
    dir.write("key", "secret\n").chmod("key", 0o600).chmod("sub", 0o750).link("link", "a.txt");
    fs::create_dir(dir.path("empty")).expect("make a directory");
    dir
}

const SCRIPT: &str = "echo two >>a.txt; rm -r sub key empty link; mkdir made; echo new >made/new; chmod 755 README.txt; echo agent >>x.log; ln -s made link";

/// The stores, as `gc --stores` lists them.
#[track_caller]
fn stores(dir: &Sandbox) -> Vec<Value> {
    let (code, list) = dir.json(["gc", "--stores"]);
    assert_eq!(code, 0, "{list}");
    list["stores"].as_array().expect("a list").clone()
}

fn store(dir: &Sandbox) -> PathBuf {
    PathBuf::from(stores(dir)[0]["store"].as_str().expect("a path"))
}

#[test]
fn every_command_works_and_nothing_is_made_in_the_directory() {
    let dir = plain();
    let before = dir.files();
    dir.turn(Mode::Commit, SCRIPT);
    let first = dir.files();
    assert!(!dir.exists(".git"), "nothing is made in the directory");
    dir.turn(Mode::Ghost, "echo 3 >>a.txt; echo other >other");
    let second = dir.files();
    // What is ignored is not captured.
    let captured = |state: crate::sandbox::State| state.without("on disk x.log");
    let is =
        |wanted: &crate::sandbox::State, what: &str| captured(dir.files()).assert_is(&captured(wanted.clone()), what);
    dir.undo();
    is(&first, "undo");
    dir.undo();
    is(&before, "undo");
    dir.oxundo(["undo"]).exits(4);
    dir.oxundo(["redo", "--steps", "2"]).success();
    is(&second, "redo");
    dir.oxundo(["undo", "--to", "0"]).success();
    is(&before, "undo to the beginning");
    dir.oxundo(["redo", "--to", "1"]).success();
    is(&first, "redo to a turn");
    dir.redo();
    dir.oxundo(["log"]).says("sh");
    let turn = &dir.log()[1];
    assert_eq!((&turn["mode"], &turn["commits"]), (&"ghost".into(), &Value::Array(Vec::new())), "{turn}");
    assert_eq!(dir.json(["status"]).1["undo_depth"], 2);
    assert_eq!(dir.oxundo(["show", "1:a.txt"]).out(), "one\ntwo");
    dir.oxundo(["show", "1"]).says("+two");
    dir.write("a.txt", "mine\n");
    dir.oxundo(["diff"]).says("+mine");
    dir.refuses_plainly(&["undo"], "conflict");
    dir.write("a.txt", "one\ntwo\n3\n");
    dir.oxundo(["gc", "--keep", "now"]).success();
    dir.undo();
    is(&first, "undo after a gc");
    assert!(!dir.exists(".git"), "nothing is made in the directory");
    let held = store(&dir);
    assert_eq!(dir.sh(&format!("GIT_DIR='{}' git fsck --full --strict --no-dangling", held.display())), "");
    assert!(held.starts_with(dir.home().join(".local/state/oxundo")), "the store is elsewhere: {held:?}");
    assert_eq!(mode(&held), 0o700, "and private");
}

fn mode(path: &Path) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&path.metadata().expect("it is there").permissions()) & 0o777
}

impl Sandbox {
    /// Where there is no repository: refused with this code, and no file changes.
    #[track_caller]
    fn refuses_plainly(&self, args: &[&str], code: &str) -> Value {
        let before = self.files();
        let (exit, value) = self.json(args);
        assert_ne!(exit, 0, "{value}");
        assert_eq!(value["error"]["code"], code, "{value}");
        assert!(
            value["error"]["hints"].as_array().is_some_and(|hints| !hints.is_empty()),
            "it says what to do: {value}"
        );
        self.files().assert_is(&before, "a refusal changes nothing");
        value["error"].clone()
    }

    /// The same sandbox, started in another of its directories.
    fn at(&self, directory: &str) -> Self {
        fs::create_dir_all(self.path(format!("../{directory}"))).expect("make a directory");
        self.beside(directory)
    }
}

#[test]
fn a_script_can_bound_turns_too() {
    let dir = plain();
    dir.refuses_plainly(&["turn", "end"], "not_found");
    dir.oxundo(["turn", "begin", "--session", "s"]).success();
    dir.write("a.txt", "agent\n");
    dir.oxundo(["turn", "end", "--session", "s"]).success();
    dir.undo();
    dir.assert_file("a.txt", "one\n", "the turn is undone");
}

#[test]
fn looking_makes_no_store() {
    let dir = plain();
    for args in [&["undo"] as &[_], &["redo"], &["log"], &["status"], &["diff"], &["show"], &["gc"]] {
        dir.refuses_plainly(args, "not_found");
    }
    assert!(stores(&dir).is_empty() && !dir.home().join(".local").exists(), "nothing is made anywhere");
    dir.oxundo(["gc", "--stores"]).says("no stores");
}

#[test]
fn the_place_of_the_stores_can_be_chosen() {
    for (variable, place) in [("OXUNDO_STORE", "stores"), ("XDG_STATE_HOME", "state")] {
        let dir = plain();
        let at = dir.home().join(place);
        let run = |args: &[&str]| {
            let mut command = dir.oxundo_command(args);
            Output::of(command.env(variable, &at)).success();
        };
        run(&["run", "--", "sh", "-c", "echo two >a.txt"]);
        assert!(at.exists() && !dir.home().join(".local").exists(), "{variable} is heeded");
        run(&["undo"]);
        dir.assert_file("a.txt", "one\n", "and found again");
    }
}

#[test]
fn roots_are_refused_with_the_reason() {
    let dir = plain();
    let inside = dir.at("home/projects/x");
    inside.write("file", "mine\n");
    inside.turn(Mode::Commit, "echo agent >file");
    inside.undo();
    inside.assert_file("file", "mine\n", "a directory inside HOME is fine");
    let base = dir.home().parent().expect("it has a parent").to_owned();
    let state = dir.home().join(".local/state");
    for (directory, reason) in [
        (Path::new("/"), "root of the file system"),
        (&dir.home(), "your home directory"),
        (&base, "your home directory is in it"),
        (Path::new("/usr"), "directory of the system"),
        (
            Path::new("/tmp"),
            if base.starts_with("/tmp") { "your home directory is in it" } else { "directory of the system" },
        ),
        (&state, "stores are in it"),
        (&state.join("oxundo"), "stores are in it"),
    ] {
        let mut command = dir.oxundo_command(["--json", "run", "--", "touch", "made-by-the-agent"]);
        let output = Output::of(command.current_dir(directory));
        output.exits(125);
        let value: Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert!(value["error"]["message"].as_str().is_some_and(|text| text.contains(reason)), "{directory:?}: {value}");
        assert!(!directory.join("made-by-the-agent").exists(), "no agent was started in {directory:?}");
    }
    assert_eq!(stores(&dir).len(), 1, "and no store was made");
}

#[test]
fn a_subdirectory_belongs_to_the_directory_that_has_the_store() {
    let mut dir = plain();
    let before = dir.files();
    dir.agent("echo two >>a.txt");
    dir.start_in("sub");
    dir.agent("echo more >>b.bin; echo 3 >>../a.txt");
    assert_eq!((stores(&dir).len(), dir.log().len()), (1, 2), "one store, two turns");
    dir.oxundo(["undo", "--steps", "2"]).success();
    dir.files().assert_is(&before, "from a subdirectory");
}

#[test]
fn a_directory_that_is_moved_takes_its_turns_along() {
    let dir = plain();
    if !born(dir.root()) {
        return;
    }
    let before = dir.files();
    dir.agent("echo two >>a.txt");
    dir.sh("mv ../repo ../moved; mkdir ../repo; echo other >../repo/a.txt");
    let moved = dir.beside("moved");
    assert_eq!(moved.log().len(), 1, "it is found where it is now");
    moved.undo();
    moved.files().assert_is(&before, "and undone there");
    dir.refuses_plainly(&["undo"], "not_found");
    dir.agent("echo turn >a.txt");
    assert_eq!((dir.log().len(), moved.log().len(), stores(&dir).len()), (1, 1, 2), "each has its own turns");
    dir.undo();
    dir.assert_file("a.txt", "other\n", "each has its own turns");
    moved.redo();
    moved.assert_file("a.txt", "one\ntwo\n", "each has its own turns");
}

/// Whether the file system says when a directory was made.
fn born(directory: &Path) -> bool {
    let born = directory.metadata().is_ok_and(|about| about.created().is_ok());
    if !born {
        announce("SKIPPED: this file system does not say when a directory was made");
    }
    born
}

#[test]
fn another_directory_at_the_same_path_starts_anew() {
    let dir = plain();
    if !born(dir.root()) {
        return;
    }
    dir.agent("echo two >>a.txt");
    // A new turn in the new directory is made before the old one is looked for.
    dir.sh("mv ../repo ../moved; mkdir ../repo; echo other >../repo/a.txt");
    dir.agent("echo turn >a.txt");
    assert_eq!(dir.log().len(), 1, "the other's turns are not its own");
    let moved = dir.beside("moved");
    assert_eq!(moved.log().len(), 1, "and they are not lost");
    moved.undo();
    moved.assert_file("a.txt", "one\n", "and they are not lost");
    dir.undo();
    dir.assert_file("a.txt", "other\n", "each has its own turns");
}

#[test]
fn directories_of_the_same_name_have_their_own_turns() {
    let dir = plain();
    let (one, two) = (dir.at("one/app"), dir.at("two/app"));
    one.write("f", "1\n").agent("echo agent >f");
    two.write("f", "2\n").agent("echo agent >f");
    two.agent("echo more >f");
    assert_eq!((one.log().len(), two.log().len()), (1, 2));
    one.undo();
    two.oxundo(["undo", "--steps", "2"]).success();
    one.assert_file("f", "1\n", "its own");
    two.assert_file("f", "2\n", "its own");
}

#[test]
fn a_git_init_in_between_is_noticed() {
    let dir = plain();
    let before = dir.files();
    dir.agent("echo two >>a.txt");
    let held = store(&dir);
    dir.sh("git init -q; git config user.name U; git config user.email u@e; git add -A; git commit -qm all");
    for args in [&["log"] as &[_], &["status"], &["undo"]] {
        let output = dir.oxundo(args);
        output.warns(held.to_str().expect("the path is UTF-8"));
    }
    let output = dir.agent("echo 3 >>a.txt");
    output.warns("git init");
    assert_eq!(dir.git(["log", "--format=%s", "-1"]), "sh: turn 1", "turns are commits now");
    dir.undo();
    dir.assert_file("a.txt", "one\ntwo\n", "the turn in the repository");
    let earlier = |args: &[&str]| {
        let mut command = dir.oxundo_command(args);
        Output::of(command.env("GIT_DIR", &held))
    };
    earlier(&["log"]).says("sh");
    let refs = dir.refs();
    earlier(&["undo"]).success();
    dir.files().assert_is(&before, "the turn from before");
    assert_eq!(dir.refs(), refs, "and the repository is not its business");
}

#[test]
fn a_git_init_by_the_agent_is_left_alone() {
    let dir = plain();
    dir.agent("echo two >>a.txt; git init -q; git -c user.name=a -c user.email=b commit -qm empty --allow-empty; git init -q sub");
    let git_dir = store(&dir);
    let head = dir.head();
    let mut command = dir.oxundo_command(["undo"]);
    Output::of(command.env("GIT_DIR", &git_dir)).success();
    dir.assert_file("a.txt", "one\n", "the turn is undone");
    assert_eq!(dir.head(), head, "the repository that it made stays");
    assert!(dir.exists("sub/.git/HEAD"), "the other too");
}

#[test]
fn the_agent_sees_no_repository() {
    let dir = plain();
    dir.agent("env >../env; git rev-parse --git-dir >../git 2>&1 || :; echo two >a.txt");
    let seen = dir.sh("grep ^GIT_DIR= ../env || :; cat ../git");
    assert!(seen.contains("not a git repository"), "{seen}");
}

#[test]
fn stores_are_listed_and_removed() {
    let dir = plain();
    let (one, two) = (dir.at("one"), dir.at("two"));
    one.write("f", "1\n").agent("echo agent >f");
    two.write("f", "2\n").agent("echo agent >f");
    dir.sh("rm -r ../two");
    let listed = stores(&dir);
    let facts: Vec<_> = listed.iter().map(|store| (store["there"].clone(), store["turns"].clone())).collect();
    assert_eq!(facts, [(true.into(), 1.into()), (false.into(), 1.into())], "{listed:?}");
    assert!(listed.iter().all(|store| store["bytes"].as_u64() > Some(0) && store["last"].is_string()), "{listed:?}");
    dir.oxundo(["gc", "--stores"]).says("the directory is gone");
    let gone = listed[1]["directory"].as_str().expect("a path");
    dir.refuses_plainly(&["gc", "--stores", "--remove", "nowhere"], "not_found");
    dir.oxundo(["gc", "--stores", "--remove", gone, "--dry-run"]).says("Would remove");
    assert_eq!(stores(&dir).len(), 2, "a dry run removes nothing");
    dir.oxundo(["gc", "--stores", "--remove", gone]).says("Removed");
    let left = stores(&dir);
    assert_eq!((left.len(), &left[0]["there"]), (1, &true.into()), "the other stays");
    one.oxundo(["gc", "--stores", "--remove", "."]).success();
    assert!(stores(&dir).is_empty());
    one.assert_file("f", "agent\n", "the directory itself is not touched");
    one.refuses_plainly(&["log"], "not_found");
    dir.oxundo(["gc", "--remove", "x"]).exits(2);
}

#[test]
fn a_store_in_use_is_not_removed() {
    let dir = plain();
    let child = dir.spawn(&[
        "run",
        "--",
        "sh",
        "-c",
        "touch ../home/started; while [ ! -e ../home/go ]; do sleep 0.02; done; echo two >a.txt",
    ]);
    dir.wait_for("started");
    dir.refuses_plainly(&["gc", "--stores", "--remove", "."], "busy");
    dir.signal("go");
    Output::awaited(child).success();
    dir.undo();
    dir.assert_file("a.txt", "one\n", "the turn was recorded");
}

#[test]
fn a_broken_repository_is_not_taken_for_none() {
    let dir = plain();
    dir.write(".git/config", "");
    dir.refuses_plainly(&["undo"], "not_found");
    let output = dir.oxundo(["run", "--", "touch", "made"]);
    output.exits(125);
    output.warns(".git");
    dir.assert_absent("made", "no agent was started");
}

#[test]
fn a_directory_without_git_has_its_limits_too() {
    let dir = plain();
    dir.sh("mkdir node_modules src; echo mine >node_modules/a; for i in $(seq 300); do echo $i >src/$i; done; truncate -s 11M large");
    let before = dir.files();
    let output = dir.agent("rm -r src; echo two >a.txt; mkdir -p build; echo x >build/x");
    output.warns("node_modules");
    output.warns("large");
    dir.undo();
    dir.files().assert_is(&before, "three hundred files are no reason to leave a directory out");
}

#[test]
fn a_repository_that_was_broken_is_said_to_be_there() {
    let repo = Sandbox::new();
    repo.agent("echo agent >>README.txt");
    repo.sh("rm -r .git/objects");
    for command in ["undo", "log", "doctor"] {
        let (code, value) = repo.json([command]);
        let message = value["error"]["message"].as_str().unwrap_or_default();
        assert_eq!((code, message.contains("that is no repository")), (1, true), "{command}: {value}");
    }
}

#[test]
fn where_no_turn_was_ever_made_undo_says_how_to_make_one() {
    let repo = Sandbox::new();
    let error = repo.refuses(&["undo"], "nothing");
    assert!(error["hints"][0].as_str().is_some_and(|hint| hint.contains("oxundo run")), "{error}");
    repo.agent("echo agent >>README.txt");
    repo.undo();
    let error = repo.refuses(&["undo"], "nothing");
    assert_eq!(error["message"], "nothing to undo: no turn is done");
}
