//! Files that somebody gives other names after a turn, and commits: what takes the turn out follows them. `git revert` is the judge.

use crate::sandbox::{Mode, Sandbox, check_all, in_both_modes};
use serde_json::json;

/// Files of lines that are each file's own.
const FILES: &str =
    "mkdir -p src; for f in a src/b src/c; do seq -f \"$f %g\" 30 >$f; done; git add -A; git commit -qm files";

const TURN: &str = "sed -i '5s/.*/AGENT1/' a; sed -i '9s/.*/AGENT2/' src/b";

/// And a file of its own. What git reverts it does not follow: it has a conflict there.
const NEW: &str = "sed -i '5s/.*/AGENT1/' a; sed -i '9s/.*/AGENT2/' src/b; echo AGENT3 >src/n";

/// Whether a word is in a file or in a commit of HEAD's tree.
fn is_anywhere(repo: &Sandbox, word: &str) -> bool {
    let found = repo.sh(&format!("git grep -l {word} HEAD || :; grep -rl {word} . --exclude-dir=.git || :"));
    !found.is_empty()
}

/// The tree and the files to which git's own revert leads, tried in a copy.
fn as_git_reverts(repo: &Sandbox, commit: &str) -> String {
    repo.sh(&format!(
        "rm -rf ../home/copy; git clone -q . ../home/copy; cd ../home/copy; git fetch -q .. 2>/dev/null || :
        git -c user.name=x -c user.email=x@x revert --no-edit {commit} >/dev/null; git rev-parse 'HEAD^{{tree}}'"
    ))
}

#[test]
fn a_turn_is_taken_out_of_files_that_were_renamed_and_committed_since() {
    let renames = [
        ("a file", "mkdir lib; git mv a lib/z"),
        ("a directory", "git mv src lib"),
        ("both, with what somebody adds", "git mv src lib; git mv a lib/z; sed -i '20s/.*/USER1/' lib/b lib/z"),
        ("twice", "git mv src tmp; git commit -qm once; git mv tmp lib; git mv a b"),
        ("one of them copied", "cp a copy; git mv src/b b"),
    ];
    let ways: [&[&str]; 2] = [&["undo", "--revert"], &["undo", "--only", "1"]];
    let cases =
        renames.into_iter().flat_map(|(name, rename)| ways.map(|way| (format!("{name}: {way:?}"), (rename, way))));
    check_all(cases, |(rename, way)| {
        let repo = Sandbox::new();
        repo.sh(FILES);
        repo.agent(TURN);
        let turn = repo.head();
        repo.sh(&format!("{rename}; git add -A; git commit -qm renamed"));
        let (users, before) = (repo.head(), repo.state());
        let tree = as_git_reverts(&repo, &turn);
        let refused = repo.oxundo(["undo"]);
        assert!(refused.err().contains("oxundo undo --revert"), "{refused:?}");
        repo.state().assert_is(&before, "a refusal changes nothing");
        let done = repo.oxundo(way.iter());
        done.success();
        assert!(!done.err().contains("Kept your edits"), "renames are none: {done:?}");
        assert_eq!(repo.git(["rev-parse", "HEAD^{tree}"]), tree, "as git reverts it: {done:?}");
        assert_eq!(repo.git(["rev-parse", "HEAD~"]), users, "on top of what they have committed");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{done:?}");
        let after = repo.state();
        repo.redo();
        repo.state().assert_is(&before, "redo brings it back");
        repo.oxundo(way.iter()).success();
        assert_eq!(repo.git(["rev-parse", "HEAD^{tree}"]), tree, "and so on");
        drop(after);
        repo.assert_sound();
    });
}

#[test]
fn a_turn_is_taken_out_of_files_whose_new_names_are_in_no_commit() {
    let renames = ["mkdir lib; mv a lib/z; mv src lib/src", "mkdir lib; git mv a lib/z; git mv src lib/src"];
    let ways: [&[&str]; 2] = [&["undo", "--revert"], &["undo", "--only", "1"]];
    let cases = renames.into_iter().flat_map(|rename| ways.map(|way| (format!("{rename}: {way:?}"), (rename, way))));
    check_all(cases, |(rename, way)| {
        in_both_modes(|mode| {
            let repo = Sandbox::new();
            repo.sh(FILES);
            let expected = "find . -type f -not -path './.git/*' | sort | xargs head -50";
            repo.sh(&format!("cp -r . ../home/copy; cd ../home/copy; {rename}; echo USER1 >>lib/z"));
            let files = repo.sh(&format!("cd ../home/copy; {expected}"));
            repo.turn(mode, NEW);
            repo.sh(&format!("{rename}; echo USER1 >>lib/z"));
            let before = repo.state();
            let refused = repo.oxundo(["undo"]);
            assert_eq!(refused.err().matches("run 'oxundo undo --only 1' to take it out").count(), 1, "{refused:?}");
            assert_eq!(refused.err().matches("hint:").count(), 1, "a stash would leave the agent's: {refused:?}");
            repo.state().assert_is(&before, "a refusal changes nothing");
            let done = repo.oxundo(way.iter());
            done.success();
            assert_eq!(repo.sh(expected), files, "the agent's is out, and all else as the user has it: {done:?}");
            assert!(!is_anywhere(&repo, "AGENT"), "in no file, nor in HEAD");
            repo.redo();
            repo.state().assert_is(&before, "redo brings it back");
            repo.assert_sound();
        });
    });
}

#[test]
fn a_new_file_of_a_turn_goes_under_the_name_that_it_was_committed_by() {
    let repo = Sandbox::new();
    repo.sh(FILES);
    let files = "find . -type f -not -path './.git/*' | sort | xargs head -50";
    repo.sh("cp -r . ../home/copy; cd ../home/copy; git mv src lib");
    let expected = repo.sh(&format!("cd ../home/copy; {files}"));
    repo.agent(NEW);
    repo.sh("git mv src lib; git commit -qm renamed");
    let before = repo.state();
    repo.oxundo(["undo", "--revert"]).success();
    assert_eq!(repo.sh(files), expected);
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    repo.redo();
    repo.state().assert_is(&before, "redo brings it back");
    repo.sh("echo USER1 >>lib/n; git commit -qam more");
    let before = repo.state();
    let refused = repo.oxundo(["undo", "--revert"]);
    assert!(refused.code == 3 && refused.err().contains("lib/n"), "somebody has gone on in it: {refused:?}");
    repo.state().assert_is(&before, "a refusal changes nothing");
}

#[test]
fn a_new_file_of_a_turn_is_not_left_under_another_name_as_the_users() {
    for (mode, rename) in
        Mode::tried().into_iter().flat_map(|mode| ["mv n m", "mkdir d; git add n; git mv n d/m"].map(|it| (mode, it)))
    {
        let repo = Sandbox::new();
        repo.sh(FILES);
        repo.turn(mode, "seq 20 | sed 's/^/AGENT /' >n; sed -i '5s/.*/AGENT/' a");
        repo.sh(&format!("{rename}; cp a copy"));
        let before = repo.state();
        let (_, refused) = repo.json(["undo"]);
        assert_eq!(refused["error"]["code"], "conflict", "{refused}");
        repo.state().assert_is(&before, "a refusal changes nothing");
        repo.oxundo(["undo", "--edits=overwrite"]).success();
        assert!(is_anywhere(&repo, "AGENT"), "it is left where that is asked for");
        repo.redo();
        repo.state().assert_is(&before, "redo brings it back");
        repo.oxundo(["undo", "--only", "1"]).success();
        assert_eq!(repo.sh("git ls-files -o -s; cat m d/m 2>/dev/null || :").matches("AGENT").count(), 0);
        assert!(repo.read("copy").windows(5).any(|word| word == b"AGENT"), "a copy is theirs");
        repo.assert_sound();
    }
}

#[test]
fn several_turns_of_one_file_are_taken_out_of_it_under_its_new_name() {
    let stories = [
        ("renamed after both", "sed -i '20s/.*/AGENT2/' a", "mkdir lib; git mv a lib/z"),
        ("renamed by the second", "mkdir lib; git mv a lib/z; sed -i '20s/.*/AGENT2/' lib/z", "true"),
        ("renamed by the second and once more", "git mv a z; sed -i '20s/.*/AGENT2/' z", "mkdir lib; git mv z lib/z"),
    ];
    check_all(stories.map(|(name, second, user)| (name.to_owned(), (second, user))), |(second, user)| {
        for way in [&["undo", "--only", "1"][..], &["undo", "--revert", "--steps", "2"], &["undo", "--only", "2"]] {
            let repo = Sandbox::new();
            repo.sh(FILES);
            repo.agent("sed -i '5s/.*/AGENT1/' a");
            repo.agent(second);
            repo.sh(&format!("{user}; echo USER1 >own; git add -A; git commit -qm mine"));
            let before = repo.state();
            let done = repo.oxundo(way.iter());
            if done.code != 0 {
                assert!(way.ends_with(&["2"]), "{way:?}: {done:?}");
                repo.state().assert_is(&before, "a refusal changes nothing");
                continue;
            }
            let left = |word: &str| is_anywhere(&repo, word);
            let (first, second) = (way.ends_with(&["--only", "2"]), way.ends_with(&["1"]));
            assert_eq!([left("AGENT1"), left("AGENT2")], [first, second], "{way:?}: {done:?}");
            assert!(left("USER1"));
            repo.redo();
            repo.state().assert_is(&before, "redo brings it back");
            repo.assert_sound();
        }
    });
}

#[test]
fn of_two_files_that_may_be_it_none_is_taken_for_the_one() {
    for since in ["cp a z1; git mv a z2", "git mv a z; echo USER >a"] {
        let repo = Sandbox::new();
        repo.sh(FILES);
        repo.agent("sed -i '5s/.*/AGENT1/' a");
        repo.sh(&format!("{since}; git add -A; git commit -qm two"));
        let before = repo.state();
        let (code, refused) = repo.json(["undo", "--revert"]);
        assert_eq!((code, &refused["error"]["code"]), (3, &json!("conflict")), "{refused}");
        repo.state().assert_is(&before, "a refusal changes nothing");
    }
}

#[test]
fn a_path_is_the_one_that_the_file_has_or_had() {
    let ways: [&[&str]; 2] = [&["undo", "--only", "1", "--"], &["undo", "--"]];
    for (way, path) in ways.into_iter().flat_map(|way| ["lib/b", "src/b"].map(|path| (way, path))) {
        let repo = Sandbox::new();
        repo.sh(FILES);
        repo.turn(Mode::Ghost, NEW);
        repo.sh("git mv src lib");
        let done = repo.oxundo(way.iter().chain(&[path]));
        done.success();
        assert!(!done.err().contains("nothing was changed"), "{done:?}");
        assert_eq!(repo.sh("sed -n 9p lib/b; sed -n 5p a; cat lib/n"), "src/b 9\nAGENT1\nAGENT3", "{done:?}");
        repo.assert_absent("src/b", "no second one");
    }
}

/// It is ignored from this turn on, and one that an earlier turn made is not any more.
#[test]
fn a_file_that_is_there_and_ignored_has_no_other_name() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        let before = repo.printed();
        for number in 0..2 {
            repo.turn(mode, &format!("rm -f .gitignore; echo hidden{number} >>.gitignore; echo h >hidden{number}"));
        }
        repo.sh("echo mine >mine.txt");
        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.sh("rm mine.txt");
        repo.printed().assert_is(&before, "both are undone");
        repo.oxundo(["redo", "--steps", "2"]).success();
        assert_eq!(repo.sh("cat hidden0 hidden1 .gitignore"), "h\nh\nhidden1");
        repo.undo();
        repo.assert_absent("hidden1", "the last one is undone");
    });
}
