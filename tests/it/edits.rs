//! The user's own edits, between turns and after them: merged where they go together with an undo
//! or a redo, refused where they do not, overwritten only when that was asked for.

use crate::form::random_cases;
use crate::sandbox::{Mode, Sandbox, State, check_all};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What may stand at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Thing {
    Nothing,
    File(u32, Vec<u8>),
    Link(&'static str),
    /// With one file, `in`, in it.
    Directory,
}

fn text(edit: impl Fn(usize) -> Option<&'static str>) -> Vec<u8> {
    (1..=9).map(|n| edit(n).map_or(format!("line {n}\n"), str::to_owned)).collect::<String>().into_bytes()
}

fn things() -> Vec<(&'static str, Thing)> {
    let at = |wanted: usize, with: &'static str| text(move |n| (n == wanted).then_some(with));
    let ends = text(|n| [1, 9].contains(&n).then_some("both ends\n"));
    vec![
        ("nothing", Thing::Nothing),
        ("text", Thing::File(0o644, text(|_| None))),
        ("top", Thing::File(0o644, at(1, "top\n"))),
        ("other_top", Thing::File(0o644, at(1, "another top\n"))),
        ("bottom", Thing::File(0o644, at(9, "no newline at the end"))),
        ("ends", Thing::File(0o644, ends)),
        ("script", Thing::File(0o755, text(|_| None))),
        ("top_script", Thing::File(0o755, at(1, "top\n"))),
        ("private", Thing::File(0o600, text(|_| None))),
        ("binary", Thing::File(0o644, b"a\0b\n".to_vec())),
        ("other_binary", Thing::File(0o644, b"a\0c\n".to_vec())),
        ("link", Thing::Link("nowhere")),
        ("other_link", Thing::Link("elsewhere")),
        ("directory", Thing::Directory),
    ]
}

/// The three-way rule, told once more and by lines that never move.
fn becomes(before: &Thing, after: &Thing, now: &Thing) -> Option<Thing> {
    fn three<'a, T: PartialEq + ?Sized>(base: &'a T, ours: &'a T, theirs: &'a T) -> Option<&'a T> {
        if ours == base {
            Some(theirs)
        } else if theirs == base || ours == theirs {
            Some(ours)
        } else {
            None
        }
    }
    if let (Thing::File(base_mode, base), Thing::File(ours_mode, ours), Thing::File(theirs_mode, theirs)) =
        (after, now, before)
    {
        let mode = *three(base_mode, ours_mode, theirs_mode)?;
        if let Some(content) = three(base, ours, theirs) {
            return Some(Thing::File(mode, content.clone()));
        }
        if [base, ours, theirs].iter().any(|bytes| bytes.contains(&0)) {
            return None;
        }
        let lines = |bytes: &[u8]| bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
        let merged: Option<Vec<_>> = (lines(base).into_iter().zip(lines(ours)))
            .zip(lines(theirs))
            .map(|((base, ours), theirs)| three(&base, &ours, &theirs).cloned())
            .collect();
        return Some(Thing::File(mode, merged?.concat()));
    }
    // A directory is the file in it and nothing beside.
    let parts = |thing: &Thing| match thing {
        Thing::Directory => (Thing::Nothing, true),
        thing => (thing.clone(), false),
    };
    let (before, after, now) = (parts(before), parts(after), parts(now));
    match (three(&after.0, &now.0, &before.0)?, three(&after.1, &now.1, &before.1)?) {
        (Thing::Nothing, true) => Some(Thing::Directory),
        (_, true) => None,
        (thing, false) => Some(thing.clone()),
    }
}

/// A way a path goes: its name, and what is there before the turn, after it, and now.
struct Way {
    name: String,
    before: Thing,
    after: Thing,
    now: Thing,
}

impl Way {
    fn becomes(&self) -> Option<Thing> {
        becomes(&self.before, &self.after, &self.now)
    }
}

fn every_way() -> Vec<Way> {
    let things = things();
    let mut ways = Vec::new();
    for (b, before) in &things {
        for (a, after) in things.iter().filter(|(_, after)| after != before) {
            for (n, now) in &things {
                let name = format!("{b}-{a}-{n}");
                ways.push(Way { name, before: before.clone(), after: after.clone(), now: now.clone() });
            }
        }
    }
    ways
}

/// Puts things at paths, all but those that are there already.
fn put<'a>(directory: &std::path::Path, things: impl IntoIterator<Item = (&'a String, &'a Thing, &'a Thing)>) {
    for (name, old, new) in things {
        let path = directory.join(name);
        if old == new {
            continue;
        }
        match old {
            Thing::Nothing => {}
            Thing::Directory => std::fs::remove_dir_all(&path).expect("remove a directory"),
            _ => std::fs::remove_file(&path).expect("remove a file"),
        }
        match new {
            Thing::Nothing => {}
            Thing::File(mode, bytes) => {
                std::fs::write(&path, bytes).expect("write a file");
                std::fs::set_permissions(&path, PermissionsExt::from_mode(*mode)).expect("change a mode");
            }
            Thing::Link(target) => std::os::unix::fs::symlink(target, &path).expect("make a symlink"),
            Thing::Directory => {
                std::fs::create_dir(&path).expect("make a directory");
                std::fs::write(path.join("in"), "in\n").expect("write a file");
            }
        }
    }
}

fn found(repo: &Sandbox, name: &str) -> Thing {
    let path = repo.path(name);
    let Ok(metadata) = path.symlink_metadata() else { return Thing::Nothing };
    if metadata.is_dir() {
        return Thing::Directory;
    }
    if metadata.is_symlink() {
        let target = std::fs::read_link(&path).expect("read a symlink");
        return Thing::Link(if target.as_os_str() == "nowhere" { "nowhere" } else { "elsewhere" });
    }
    Thing::File(repo.mode(name), std::fs::read(&path).expect("read a file"))
}

/// A repository where one turn and then the user went all these ways, and the state before the turn.
fn gone(mode: Mode, ways: &[Way]) -> (Sandbox, State) {
    let repo = Sandbox::new();
    let stage = repo.beside("stage");
    std::fs::create_dir(stage.root()).expect("make a directory");
    put(stage.root(), ways.iter().map(|way| (&way.name, &Thing::Nothing, &way.after)));
    put(repo.root(), ways.iter().map(|way| (&way.name, &Thing::Nothing, &way.before)));
    repo.sh("git add -A && git commit -qm before");
    let before = repo.state();
    repo.turn(
        mode,
        "find . -mindepth 1 -maxdepth 1 ! -name .git ! -name README.txt -exec rm -r {} +; cp -a ../stage/. .",
    );
    put(repo.root(), ways.iter().map(|way| (&way.name, &way.after, &way.now)));
    (repo, before)
}

#[test]
fn what_goes_together_is_merged_and_comes_back() {
    let ways: Vec<_> = every_way().into_iter().filter(|way| way.becomes().is_some()).collect();
    assert!(ways.len() > 500, "there are many of them: {}", ways.len());
    for mode in Mode::tried() {
        let (repo, _) = gone(mode, &ways);
        let edited = repo.state();
        let (code, undone) = repo.json(["undo"]);
        assert_eq!(code, 0, "nothing overlaps: {undone}");
        let kept = undone["kept_edits"].as_array().expect("the kept edits are a list");
        let wrong: Vec<_> = (ways.iter())
            .filter(|way| Some(found(&repo, &way.name)) != way.becomes())
            .map(|way| (&way.name, found(&repo, &way.name), way.becomes()))
            .collect();
        assert!(
            wrong.is_empty(),
            "{} paths are not as they should be: {:?}",
            wrong.len(),
            &wrong[..wrong.len().min(5)]
        );
        let unnamed = ways.iter().filter(|way| {
            let file = |thing: &Thing| *thing != Thing::Directory;
            way.becomes().as_ref() != Some(&way.before)
                && file(&way.before)
                && way.becomes().as_ref().is_some_and(file)
                && !kept.contains(&json!(way.name))
        });
        assert_eq!(unnamed.map(|way| &way.name).collect::<Vec<_>>(), [""; 0], "what is kept is named");
        let undone = repo.state();
        repo.redo();
        repo.state().assert_is(&edited, "redo brings back the very state before the undo");
        repo.undo();
        repo.state().assert_is(&undone, "and undo the one after it");
    }
}

#[test]
fn what_overlaps_is_refused_and_all_of_it_named() {
    let ways: Vec<_> = every_way().into_iter().filter(|way| way.becomes().is_none()).collect();
    assert!(ways.len() > 500, "there are many of them: {}", ways.len());
    for mode in Mode::tried() {
        let (repo, _) = gone(mode, &ways);
        let before = repo.everything();
        let (code, refused) = repo.json(["undo"]);
        assert_eq!((code, &refused["error"]["code"]), (3, &json!("conflict")));
        let paths = refused["error"]["paths"].as_array().expect("a conflict names the paths").iter();
        let named: BTreeSet<_> =
            paths.filter_map(Value::as_str).map(|path| path.strip_suffix("/in").unwrap_or(path)).collect();
        let all: BTreeSet<_> = ways.iter().map(|way| way.name.as_str()).collect();
        assert_eq!(all.difference(&named).collect::<Vec<_>>(), [&""; 0], "every overlap is named");
        repo.everything().assert_is(&before, "a refusal changes nothing");
    }
}

#[test]
fn overwriting_is_exact_and_redo_brings_the_edits_back() {
    let has_directory = |way: &Way| [&way.before, &way.after, &way.now].contains(&&Thing::Directory);
    let ways: Vec<_> = every_way().into_iter().filter(|way| !has_directory(way)).step_by(3).collect();
    for mode in Mode::tried() {
        let (repo, before) = gone(mode, &ways);
        let edited = repo.state();
        let output = repo.oxundo(["undo", "--edits=overwrite"]);
        output.success();
        repo.state().assert_is(&before, "the exact state before the turn");
        output.says("They are in @rescue: ");
        repo.redo();
        repo.state().assert_is(&edited, "redo brings back what was overwritten");
        let (code, refused) = repo.json(["undo"]);
        assert_eq!((code, &refused["error"]["code"]), (3, &json!("conflict")), "they are edits again, not the turn's");
    }
}

/// Nine lines, with some replaced.
fn lines(edits: &[(usize, &str)]) -> String {
    (1..=9)
        .map(|n| match edits.iter().find(|(at, _)| *at == n) {
            Some((_, line)) => format!("{line}\n"),
            None => format!("line {n}\n"),
        })
        .collect()
}

fn set(line: usize, to: &str) -> String {
    format!("sed -i '{line}s/.*/{to}/' a.txt")
}

fn nine_lines() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", &lines(&[]));
    repo
}

#[test]
fn the_lines_that_overlap_are_named() {
    let repo = nine_lines();
    repo.agent("sed -i '3,5s/$/ of the agent/; 9s/$/ of the agent/' a.txt");
    repo.sh("sed -i '1i first' a.txt; sed -i '6s/.*/mine/; 10s/.*/mine/' a.txt");
    let error = repo.refuses(&["undo"], "conflict");
    assert_eq!(error["paths"], json!(["a.txt"]));
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("'a.txt' (lines 6, 10)"), "{message}");
}

#[test]
fn edits_between_turns_and_after_them_survive_the_undo_of_all() {
    for mode in Mode::tried() {
        let repo = nine_lines();
        let head = repo.head();
        repo.turn(mode, &set(1, "turn 1"));
        repo.sh(&set(3, "between"));
        repo.turn(mode, &set(5, "turn 2"));
        repo.sh(&set(7, "more"));
        repo.turn(mode, &set(1, "turn 3"));
        repo.sh(&set(9, "after"));
        let last = repo.state();
        let edits = [(3, "between"), (7, "more"), (9, "after")];
        let (code, undone) = repo.json(["undo", "--steps", "3"]);
        assert_eq!((code, &undone["kept_edits"]), (0, &json!(["a.txt"])), "{undone}");
        repo.assert_file("a.txt", lines(&edits), "only the turns' lines went back");
        assert_eq!(repo.head(), head, "HEAD is where it was before the first turn");
        repo.redo();
        repo.assert_file("a.txt", lines(&[&edits[..], &[(1, "turn 1")]].concat()), "one turn forward");
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.state().assert_is(&last, "redo of all is the very state before the undo");
        repo.undo();
        repo.undo();
        repo.undo();
        repo.assert_file("a.txt", lines(&edits), "step by step, it is the same");
    }
}

#[test]
fn edits_made_while_a_turn_is_undone_go_forward_with_it() {
    for mode in Mode::tried() {
        let repo = nine_lines();
        repo.turn(mode, &set(1, "turn"));
        repo.sh(&set(4, "after"));
        repo.undo();
        repo.sh(&set(7, "undone"));
        let output = repo.oxundo(["redo"]);
        output.success();
        output.says("Kept your edits in a.txt");
        repo.assert_file("a.txt", lines(&[(1, "turn"), (4, "after"), (7, "undone")]), "all of it");
        repo.undo();
        repo.assert_file("a.txt", lines(&[(4, "after"), (7, "undone")]), "and back");
    }
}

#[test]
fn edits_go_along_with_a_file_that_was_renamed() {
    for mode in Mode::tried() {
        let repo = nine_lines();
        repo.turn(mode, "mkdir d; git mv a.txt d/b.txt");
        repo.sh("sed -i '9s/.*/mine/' d/b.txt");
        let renamed = repo.state();
        let (code, undone) = repo.json(["undo"]);
        assert_eq!((code, &undone["kept_edits"]), (0, &json!(["a.txt"])), "{undone}");
        repo.assert_file("a.txt", lines(&[(9, "mine")]), "under its old name");
        repo.assert_absent("d", "and not under the new one");
        repo.redo();
        repo.state().assert_is(&renamed, "and back");
        repo.undo();
        repo.sh(&set(1, "more"));
        repo.redo();
        repo.assert_file("d/b.txt", lines(&[(1, "more"), (9, "mine")]), "with what came later");
        repo.assert_absent("a.txt", "it is renamed");
    }
}

#[test]
fn what_was_staged_stays_staged() {
    let repo = nine_lines();
    repo.agent(&set(1, "turn"));
    repo.sh(&set(5, "staged"));
    repo.sh("git add a.txt");
    repo.sh(&set(9, "not staged"));
    let edited = repo.state();
    let (code, undone) = repo.json(["undo"]);
    assert_eq!((code, &undone["unstaged"]), (0, &json!([])), "{undone}");
    assert_eq!(repo.git(["show", ":a.txt"]) + "\n", lines(&[(5, "staged")]), "the index has the staged line alone");
    repo.assert_file("a.txt", lines(&[(5, "staged"), (9, "not staged")]), "and the worktree both");
    repo.redo();
    repo.state().assert_is(&edited, "redo brings it back");
}

#[test]
fn what_cannot_stay_staged_is_said_or_refused() {
    let repo = nine_lines();
    repo.agent(&set(1, "turn"));
    // Staged as a deletion; the file is there.
    repo.sh("git rm -q --cached a.txt");
    let (code, undone) = repo.json(["undo"]);
    assert_eq!((code, &undone["unstaged"]), (0, &json!(["a.txt"])), "{undone}");
    repo.assert_file("a.txt", lines(&[]), "the turn is undone");
    repo.redo();
    // Staged, and nowhere else.
    repo.sh(&set(1, "staged"));
    repo.sh("git add a.txt");
    repo.sh(&set(1, "turn"));
    let error = repo.refuses(&["undo"], "conflict");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("staged")), "{error}");
}

#[test]
fn what_the_user_took_out_of_the_index_and_committed_so_stays_out_of_it() {
    for turn in [&format!("{}; git add a.txt", set(1, "turn")), &set(1, "turn")] {
        let repo = nine_lines();
        repo.turn(Mode::Ghost, turn);
        repo.sh("git rm -q --cached a.txt; git commit -qm 'a.txt is tracked no more'");
        let left = repo.state();
        let (_, undone) = repo.json(["undo"]);
        assert_eq!(undone["unstaged"], json!([]), "{undone}");
        repo.assert_file("a.txt", lines(&[]), "the turn is undone");
        assert_eq!(repo.git(["status", "-s"]), "?? a.txt", "and git tracks it no more");
        repo.redo();
        repo.state().assert_is(&left, turn);
    }
}

#[test]
fn what_the_user_tracks_again_goes_with_the_ghost_turn_that_staged_it() {
    let repo = nine_lines();
    repo.turn(Mode::Ghost, &format!("{}; git add a.txt", set(1, "turn")));
    let staged = repo.state();
    repo.sh("git rm -q --cached a.txt; git commit -qm 'a.txt is tracked no more'");
    repo.undo();
    repo.redo();
    repo.sh("git reset -q --soft HEAD~1; git reset -q; git add a.txt");
    repo.state().assert_is(&staged, "tracked again");
    repo.undo();
    assert_eq!(repo.git(["status", "-s"]), "", "as it began");
}

#[test]
fn lines_staged_with_a_ghost_turns_stay_staged_when_more_than_that_is_undone() {
    for edited_since in ["true", &set(9, "and more")] {
        let repo = nine_lines();
        repo.turn(Mode::Commit, &set(5, "turn"));
        repo.turn(Mode::Ghost, &set(5, "ghost"));
        repo.sh(&format!("{}; git add a.txt; {edited_since}", set(1, "mine")));
        let staged = repo.state();
        repo.oxundo(["undo", "--steps", "2"]).success();
        assert_eq!(
            repo.git(["show", ":a.txt"]) + "\n",
            lines(&[(1, "mine")]),
            "the user's line is staged, without the agent's"
        );
        let undone =
            if edited_since == "true" { lines(&[(1, "mine")]) } else { lines(&[(1, "mine"), (9, "and more")]) };
        repo.assert_file("a.txt", undone, "both turns are undone, and the user's lines are there");
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.state().assert_is(&staged, "redo: staged as it was");
    }
}

#[test]
fn the_merge_attribute_decides() {
    let cases = [
        ("text", "a.txt merge=text", Some(lines(&[(9, "mine")]))),
        ("none", "a.txt -merge", None),
        ("binary macro", "a.txt binary", None),
        ("binary driver", "a.txt merge=binary", None),
        ("unknown driver", "a.txt merge=unheard", Some(lines(&[(9, "mine")]))),
        ("driver of the user", "a.txt merge=mine", None),
    ];
    check_all(cases.map(|case| (case.0.to_owned(), case)), |(_, attribute, wanted)| {
        let repo = nine_lines();
        repo.commit(".gitattributes", &format!("{attribute}\n"));
        repo.sh("git config merge.mine.driver 'touch ../ran; false'");
        repo.agent(&set(1, "turn"));
        repo.sh(&set(9, "mine"));
        match wanted {
            Some(wanted) => {
                repo.undo();
                repo.assert_file("a.txt", wanted, "merged by lines");
            }
            None => drop(repo.refuses(&["undo"], "conflict")),
        }
        assert!(!repo.beside("ran").root().exists(), "no command of a configuration is run");
    });
}

#[test]
fn a_union_keeps_the_lines_of_both() {
    let repo = nine_lines();
    repo.commit(".gitattributes", "a.txt merge=union\n");
    repo.agent(&set(5, "turn"));
    repo.sh(&set(5, "mine"));
    repo.undo();
    repo.assert_file("a.txt", lines(&[(5, "mine\nline 5")]), "the lines of both sides");
}

#[test]
fn edits_can_be_refused_in_general() {
    for (args, config) in [(vec!["undo", "--edits=refuse"], ""), (vec!["undo"], "git config oxundo.edits refuse")] {
        let repo = nine_lines();
        repo.sh(&format!("{config}\ntrue"));
        repo.agent(&set(1, "turn"));
        repo.write("b.txt", "mine\n");
        repo.sh(&set(9, "mine"));
        let error = repo.refuses(&args, "conflict");
        assert_eq!(error["paths"], json!(["a.txt"]), "only what the turn changed too");
        repo.oxundo(["undo", "--edits=merge"]).success();
        repo.assert_file("a.txt", lines(&[(9, "mine")]), "an option stands over the configuration");
    }
}

#[test]
fn what_is_in_no_checkpoint_is_not_overwritten() {
    let repo = nine_lines();
    repo.agent("git rm -q a.txt");
    repo.sh("echo a.txt >>.git/info/exclude; echo mine >a.txt");
    repo.refuses(&["undo", "--edits=overwrite"], "conflict");
    repo.assert_file("a.txt", "mine\n", "the only copy");
}

#[test]
fn what_was_staged_over_a_dirty_commit_that_goes_too_stays_staged() {
    for (ghost, edited_since) in [("true", "true"), ("true", "more"), ("ghost", "true"), ("ghost", "more")] {
        let repo = nine_lines();
        repo.sh(&set(1, "dirty"));
        repo.turn(Mode::Commit, &set(5, "turn"));
        let mut steps = "1";
        if ghost == "ghost" {
            repo.turn(Mode::Ghost, &set(5, "ghost"));
            steps = "2";
        }
        repo.sh(&format!("{}; git add a.txt", set(1, "mine")));
        let mut wanted = vec![(1, "mine")];
        if edited_since == "more" {
            repo.sh(&set(9, "and more"));
            wanted.push((9, "and more"));
        }
        let staged = repo.state();
        let (code, undone) = repo.json(["undo", "--steps", steps]);
        assert_eq!((code, &undone["unstaged"]), (0, &json!([])), "{undone}");
        repo.assert_file("a.txt", lines(&wanted), "the turns are undone, and the user's lines are there");
        assert_eq!(repo.git(["show", ":a.txt"]) + "\n", lines(&[(1, "mine")]), "staged, without the agent's lines");
        repo.oxundo(["redo", "--steps", steps]).success();
        repo.state().assert_is(&staged, "redo: staged as it was");
    }
}

#[test]
fn what_is_staged_loses_the_lines_of_turns_that_were_undone_before() {
    let repo = nine_lines();
    repo.turn(Mode::Commit, &set(5, "turn"));
    repo.turn(Mode::Ghost, &set(5, "ghost"));
    repo.turn(Mode::Ghost, &set(5, "ghost again"));
    repo.sh(&format!("{}; git add a.txt", set(1, "mine")));
    let staged = repo.state();
    repo.oxundo(["undo", "--steps", "2"]).success();
    let between = repo.state();
    repo.oxundo(["undo"]).success();
    repo.assert_file("a.txt", lines(&[(1, "mine")]), "all turns are undone");
    assert_eq!(repo.git(["show", ":a.txt"]) + "\n", lines(&[(1, "mine")]), "staged, without the agent's lines");
    repo.oxundo(["redo"]).success();
    repo.state().assert_is(&between, "redo of one");
    repo.oxundo(["redo", "--steps", "2"]).success();
    repo.state().assert_is(&staged, "redo of all");
}

#[test]
fn a_line_that_was_changed_between_turns_and_again_since_stays_staged() {
    for ghosts in 1..3 {
        let repo = nine_lines();
        repo.turn(Mode::Commit, &set(5, "turn"));
        for ghost in 0..ghosts {
            repo.sh(&set(1, &format!("mine {ghost}")));
            repo.turn(Mode::Ghost, &set(5, &format!("ghost {ghost}")));
        }
        repo.sh(&format!("{}; git add a.txt; {}", set(1, "mine"), set(9, "and more")));
        let staged = repo.state();
        let steps = (ghosts + 1).to_string();
        let (code, undone) = repo.json(["undo", "--steps", &steps]);
        assert_eq!((code, &undone["unstaged"]), (0, &json!([])), "{undone}");
        repo.assert_file(
            "a.txt",
            lines(&[(1, "mine"), (9, "and more")]),
            "the turns are undone, the user's lines stay",
        );
        assert_eq!(repo.git(["show", ":a.txt"]) + "\n", lines(&[(1, "mine")]), "staged, without the agent's lines");
        repo.oxundo(["redo", "--steps", &steps]).success();
        repo.state().assert_is(&staged, "redo: staged as it was");
        // The last ones are undone before.
        repo.oxundo(["undo", "--steps", &ghosts.to_string()]).success();
        repo.oxundo(["undo"]).success();
        assert_eq!(repo.git(["show", ":a.txt"]) + "\n", lines(&[(1, "mine")]), "likewise one after the other");
    }
}

#[test]
fn a_line_of_a_ghost_turns_is_not_left_staged_when_more_than_that_is_undone() {
    for steps in [&["2"][..], &["1", "1"]] {
        let repo = nine_lines();
        repo.turn(Mode::Commit, &set(5, "turn"));
        repo.turn(Mode::Ghost, &set(8, "ghost"));
        repo.sh(&format!("{}; git add a.txt; {}", set(1, "mine"), set(3, "and more")));
        let staged = repo.state();
        for steps in steps {
            repo.oxundo(["undo", "--steps", steps]).success();
        }
        repo.assert_file("a.txt", lines(&[(1, "mine"), (3, "and more")]), "both are undone");
        assert_eq!(repo.git(["show", ":a.txt"]) + "\n", lines(&[(1, "mine")]), "staged, without the agent's lines");
        for steps in steps {
            repo.oxundo(["redo", "--steps", steps]).success();
        }
        repo.state().assert_is(&staged, "redo: staged as it was");
    }
}

/// Someone works on the lines of a file, or on what is before line 1.
#[derive(Clone, Debug)]
enum Act {
    /// A turn that sets its own lines.
    Turn(bool, Vec<(usize, u8)>),
    /// The user sets lines, stages them or not.
    Edit(Vec<(usize, u8)>, bool),
    /// So many steps back.
    Undo(usize),
    /// So many steps forward.
    Redo(usize),
}

/// Lines of the agent: 0, 4, 8…; of the user: 2, 6, 10…; with one between that nobody touches.
const SHARES: usize = 6;

#[derive(Clone, PartialEq, Eq)]
struct Lines {
    agents: [u8; SHARES],
    users: [u8; SHARES],
}

impl Lines {
    fn text(&self) -> String {
        let pair = |n: usize| format!("agent {n} {}\n-\nuser {n} {}\n-\n", self.agents[n], self.users[n]);
        (0..SHARES).map(pair).collect()
    }
}

fn act() -> impl Strategy<Value = Act> {
    let sets = || vec((0..SHARES, 1..200_u8), 1..4);
    prop_oneof![
        3 => (any::<bool>(), sets()).prop_map(|(ghost, sets)| Act::Turn(ghost, sets)),
        3 => (sets(), any::<bool>()).prop_map(|(sets, stage)| Act::Edit(sets, stage)),
        2 => (1..3_usize).prop_map(Act::Undo),
        2 => (1..3_usize).prop_map(Act::Redo),
    ]
}

fn live(acts: &[Act]) {
    let repo = Sandbox::new();
    let mut users = [0; SHARES];
    let mut states = vec![[0; SHARES]];
    let mut position = 0;
    repo.commit("a.txt", &Lines { agents: states[0], users }.text());
    let mut last = None;
    for act in acts {
        let agents = states[position];
        match act {
            Act::Turn(ghost, sets) => {
                let mut agents = agents;
                for (line, value) in sets {
                    agents[*line] = *value;
                }
                if agents == states[position] {
                    continue;
                }
                let after = Lines { agents, users }.text();
                repo.turn(if *ghost { Mode::Ghost } else { Mode::Commit }, &format!("printf '{after}' >a.txt"));
                states.truncate(position + 1);
                states.push(agents);
                position += 1;
                last = None;
            }
            Act::Edit(sets, stage) => {
                for (line, value) in sets {
                    users[*line] = *value;
                }
                repo.write("a.txt", Lines { agents, users }.text());
                repo.sh(if *stage { "git add a.txt" } else { "true" });
                last = None;
            }
            Act::Undo(steps) | Act::Redo(steps) => {
                let back = matches!(act, Act::Undo(_));
                let wanted =
                    if back { position.saturating_sub(*steps) } else { (position + steps).min(states.len() - 1) };
                if wanted == position {
                    continue;
                }
                let left = repo.state();
                let count = wanted.abs_diff(position).to_string();
                repo.oxundo([if back { "undo" } else { "redo" }, "--steps", &count]).success();
                if let Some((from, state)) = &last
                    && *from == wanted
                {
                    repo.state().assert_is(state, "there and back is the very state");
                }
                last = Some((position, left));
                position = wanted;
            }
        }
        let wanted = Lines { agents: states[position], users }.text();
        repo.assert_file("a.txt", wanted, "the agent's lines as of this turn, and all of the user's");
    }
    repo.assert_sound();
}

#[test]
fn edits_of_other_lines_survive_every_walk() {
    let cases = random_cases(12);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let outcome = TestRunner::new(config).run(&vec(act(), 4..12), |acts| {
        catch_unwind(AssertUnwindSafe(|| live(&acts))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
            TestCaseError::fail(format!("{text}\n{acts:?}"))
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
