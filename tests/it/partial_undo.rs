//! Undo of just a part: one turn in the middle, some paths, by commits on top; and what the user
//! does with turns beside: restore, checkpoint, branch, squash. Each of them is undone as a turn is.

use crate::sandbox::{Mode, Sandbox, check_all, in_both_modes};
use serde_json::json;

/// Three turns that edit lines of `a.txt` far apart, and a file each.
fn three_turns(mode: Mode) -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", &lines(&[]));
    for n in 1..=3 {
        repo.turn(mode, &format!("sed -i '{0}s/.*/turn {n}/' a.txt; echo {n} >f{n}.txt", n * 4));
    }
    repo
}

fn lines(turns: &[usize]) -> String {
    (1..=14)
        .map(|line| {
            if line % 4 == 0 && turns.contains(&(line / 4)) {
                format!("turn {}\n", line / 4)
            } else {
                format!("line {line}\n")
            }
        })
        .collect()
}

#[test]
fn some_turns_in_the_middle_are_taken_out_at_once() {
    for mode in Mode::tried() {
        let repo = three_turns(mode);
        repo.turn(mode, "sed -i '14s/.*/turn 4/' a.txt; echo 4 >f4.txt");
        repo.sh("echo mine >mine.txt; sed -i '1s/.*/mine/' a.txt");
        let (before, head) = (repo.state(), repo.head());
        let (code, refused) = repo.json(["undo", "--only", "3..2"]);
        assert_eq!((code, refused["error"]["code"].as_str()), (2, Some("usage")), "{refused}");
        repo.state().assert_is(&before, "turn 3 is above turn 2");
        let (code, done) = repo.json(["undo", "--only", "2..3"]);
        assert_eq!((code, &done["turns"], &done["turn"]), (0, &json!([3, 2]), &json!(5)), "{done}");
        let left = lines(&[1]).replacen("line 1\n", "mine\n", 1).replace("line 14\n", "turn 4\n");
        repo.assert_file("a.txt", left, "what turns 1 and 4 and the user wrote is there");
        for (name, is_there) in [("f1.txt", true), ("f2.txt", false), ("f3.txt", false), ("f4.txt", true)] {
            assert_eq!(repo.path(name).exists(), is_there, "{name}");
        }
        if mode == Mode::Commit {
            assert_eq!(repo.git(["rev-parse", "HEAD~2"]), head, "a commit for each on top, nothing is rewritten");
        }
        repo.redo();
        repo.state().assert_is(&before, "redo brings them back");
        repo.oxundo(["undo", "--only", "3.."]).success();
        repo.assert_absent("f4.txt", "to the last one");
        repo.assert_file("f2.txt", "2\n", "and no further down");
        repo.assert_sound();
    }
}

#[test]
fn what_was_taken_out_and_somebody_makes_anew_stays_where_the_rest_is_undone() {
    let stories = [
        ("sed -i '4s/.*/AGENT/' a.txt", "a.txt", "sed -i '4s/.*/USER/' a.txt"),
        ("sed -i '4s/.*/AGENT/' a.txt", "a.txt", "sed -i '9s/.*/USER/' a.txt"),
        ("rm a.txt", "a.txt", "sed -i '4s/.*/USER/' a.txt"),
        ("echo AGENT >new.txt", "new.txt", "echo USER >new.txt"),
        ("mkdir build; echo AGENT >build/f", "build", "mkdir build; echo USER >build/g"),
        ("mkdir build; echo AGENT >build/f", "build", "echo USER >build"),
        ("mkdir out; echo AGENT >out/f", "out", "mkdir out; echo USER >out/f"),
    ];
    for (mode, (turn, taken, theirs)) in Mode::tried().into_iter().flat_map(|mode| stories.map(|story| (mode, story))) {
        let name = format!("{mode:?}: {turn}; {theirs}");
        let repo = Sandbox::new();
        repo.commit("a.txt", &lines(&[]));
        repo.turn(mode, &format!("{turn}; echo AGENT >b.txt"));
        repo.oxundo(["undo", "--", taken]).success();
        repo.sh(theirs);
        let files = || repo.sh("grep -r . --exclude-dir=.git --exclude=b.txt . | sort");
        let (before, mine) = (repo.state(), files());
        assert!(mine.contains("USER"), "{name}: {mine}");
        repo.undo();
        assert_eq!((files(), repo.exists("b.txt")), (mine.clone(), false), "{name}");
        repo.redo();
        repo.state().assert_is(&before, &name);
        repo.undo();
        assert_eq!((files(), repo.exists("b.txt")), (mine, false), "{name}: once more");
        repo.assert_sound();
    }
}

#[test]
fn what_was_taken_out_and_somebody_has_committed_anew_stays_where_the_rest_is_taken_out() {
    let ways: [&[&str]; 3] = [&["undo", "--only", "1"], &["undo", "--revert"], &["undo", "--only", "1..2"]];
    for (mode, way) in Mode::tried().into_iter().flat_map(|mode| ways.map(|way| (mode, way))) {
        for commit in [":", "git add a.txt; git commit -qm mine"] {
            let repo = Sandbox::new();
            repo.commit("a.txt", &lines(&[]));
            repo.turn(mode, "sed -i '4s/.*/AGENT/' a.txt; echo AGENT >b.txt");
            repo.oxundo(["undo", "--", "a.txt"]).success();
            repo.sh(&format!("sed -i '4s/.*/USER/' a.txt; {commit}"));
            let (before, mine) = (repo.state(), repo.read("a.txt"));
            repo.oxundo(way).success();
            repo.assert_absent("b.txt", &format!("{mode:?}: {way:?}: it is taken out"));
            assert_eq!(repo.read("a.txt"), mine, "{mode:?}: {way:?}: {commit}");
            repo.redo();
            repo.state().assert_is(&before, &format!("{mode:?}: {way:?}: {commit}"));
        }
    }
}

#[test]
fn a_file_that_a_turn_gave_another_name_is_one_thing_by_both_names() {
    for (mode, path) in Mode::tried().into_iter().flat_map(|mode| ["a.txt", "b.txt"].map(|path| (mode, path))) {
        for way in [&["undo", "--"][..], &["undo", "--only", "1", "--"]] {
            let repo = Sandbox::new();
            repo.commit("a.txt", &lines(&[]));
            repo.turn(mode, "git mv a.txt b.txt; sed -i '4s/.*/turn 1/' b.txt; echo 1 >f1.txt");
            let before = repo.state();
            let done = repo.oxundo(way.iter().chain(&[path]));
            done.success();
            repo.assert_file("a.txt", lines(&[]), "it has its name again");
            repo.assert_absent("b.txt", "and not the other");
            repo.assert_file("f1.txt", "1\n", "all else is there");
            repo.redo();
            repo.state().assert_is(&before, "redo brings it back");
        }
    }
}

#[test]
fn the_users_edits_that_a_turn_only_committed_stay_where_they_have_gone_on() {
    for how in [&["undo", "--revert"][..], &["undo", "--only", "1"]] {
        let repo = Sandbox::new();
        repo.commit("b", "base\n");
        repo.sh("echo mine >>b");
        repo.turn(Mode::Ghost, "echo 1 >c; git add c; git commit -qam 'all of it'");
        repo.sh("echo more >>b; git commit -qam mine");
        let before = repo.state();
        let done = repo.oxundo(how);
        done.success();
        assert!(done.err().contains("'b' stays as it is: turn 1 changed only what was staged of it"), "{done:?}");
        repo.assert_file("b", "base\nmine\nmore\n", "it is the user's");
        repo.assert_absent("c", "it is the turn's");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "and so it is in the commit on top");
        repo.redo();
        repo.state().assert_is(&before, "redo brings it back");
    }
}

#[test]
fn one_turn_in_the_middle_is_taken_out() {
    for mode in Mode::tried() {
        let repo = three_turns(mode);
        repo.sh("echo mine >mine.txt; sed -i '1s/.*/mine/' a.txt");
        let before = repo.state();
        let head = repo.head();
        let dry = repo.everything();
        repo.oxundo(["undo", "--only", "2", "--dry-run"]).success();
        repo.everything().assert_is(&dry, "a dry run changes nothing");
        let (code, done) = repo.json(["undo", "--only", "2"]);
        assert_eq!((code, &done["turns"], &done["turn"]), (0, &json!([2]), &json!(4)), "{done}");
        assert_eq!(done["kept_edits"], json!(["a.txt", "mine.txt"]), "{done}");
        repo.assert_file("a.txt", lines(&[1, 3]).replacen("line 1\n", "mine\n", 1), "the lines of turn 2 are gone");
        repo.assert_absent("f2.txt", "turn 2 made it");
        repo.assert_file("f3.txt", "3\n", "later turns stay");
        if mode == Mode::Commit {
            assert_eq!(repo.git(["rev-parse", "HEAD~"]), head, "one commit on top, nothing is rewritten");
            assert_eq!(repo.git(["show", "HEAD:a.txt"]) + "\n", lines(&[1, 3]), "with the turn's part alone");
            assert_eq!(repo.git(["diff", "--name-only"]), "a.txt", "what is the user's stays uncommitted");
        }
        repo.redo();
        repo.state().assert_is(&before, "redo brings it back");
        repo.oxundo(["undo", "--only", "2"]).success();
        let without = repo.state();
        repo.undo();
        repo.state().assert_is(&before, "undo takes the taking out back");
        repo.redo();
        repo.state().assert_is(&without, "and redo does it again");
        repo.assert_sound();
    }
}

#[test]
fn all_turns_are_undone_though_one_was_taken_out() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.commit("a.txt", &lines(&[]));
        let first = repo.state();
        for n in 1..=3 {
            repo.turn(mode, &format!("sed -i '{0}s/.*/turn {n}/' a.txt; echo {n} >f{n}.txt", n * 4));
        }
        repo.oxundo(["undo", "--only", "1"]).success();
        let last = repo.state();
        repo.oxundo(["undo", "--steps", "4"]).success();
        repo.state().assert_is(&first, "the very state before the first turn");
        repo.oxundo(["redo", "--steps", "4"]).success();
        repo.state().assert_is(&last, "and after the last");
    }
}

#[test]
fn a_turn_that_later_ones_built_on_is_refused_and_they_are_named() {
    for mode in Mode::tried() {
        let repo = three_turns(mode);
        repo.turn(mode, "sed -i 's/turn 1/and more/' a.txt");
        let error = repo.refuses(&["undo", "--only", "1"], "conflict");
        assert_eq!(error["paths"], json!(["a.txt"]), "{error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("turn 4 (sh)")), "{error}");
    }
}

#[test]
fn what_goes_together_with_what_and_what_not() {
    let repo = three_turns(Mode::Commit);
    for args in [
        &["undo", "--only", "2", "--steps", "2"] as &[_],
        &["undo", "--only", "2", "--to", "1"],
        &["undo", "--revert", "--", "a.txt"],
        &["undo", "--only", "0"],
        &["undo", "--only", "1", "--edits=overwrite"],
        &["redo", "--", "a.txt"],
        &["squash", "2..2"],
        &["checkpoint", "17"],
        &["checkpoint", "@"],
        &["branch", "a..b"],
    ] {
        let before = repo.everything();
        assert_eq!(repo.json(args).0, 2, "{args:?} is a usage error");
        repo.everything().assert_is(&before, "nothing is changed");
    }
    repo.refuses(&["undo", "--only", "1", "--edits=refuse"], "conflict");
    repo.undo();
    repo.refuses(&["undo", "--only", "3"], "nothing");
}

#[test]
fn turns_are_reverted_where_undo_is_refused() {
    let obstacles = [
        ("published", "git remote add o ../o.git; git init -q --bare ../o.git; git push -q o main; git fetch -q o"),
        ("foreign", "echo own >own.txt; git add own.txt; git commit -qm own"),
        ("foreign", "echo own >own.txt; git add own.txt; git commit -q --amend -m amended"),
        (
            "merge",
            "git checkout -q -b b HEAD~; echo b >b.txt; git add b.txt; git commit -qm b; git checkout -q main; git merge -q b -m merge",
        ),
    ];
    for (code, script) in obstacles {
        let repo = three_turns(Mode::Commit);
        repo.sh(script);
        repo.refuses(&["undo", "--steps", "2"], code);
        let before = repo.state();
        let head = repo.head();
        let (status, done) = repo.json(["undo", "--revert", "--steps", "2"]);
        assert_eq!((status, &done["turns"]), (0, &json!([3, 2])), "{done}");
        assert_eq!(repo.git(["rev-parse", "HEAD~2"]), head, "two commits on top");
        repo.assert_file("a.txt", lines(&[1]), "both turns are out");
        assert_eq!(repo.git(["status", "--porcelain"]), "", "all of it committed");
        repo.undo();
        repo.state().assert_is(&before, "undo takes them back");
    }
}

#[test]
fn turns_of_which_one_took_out_the_other_are_not_taken_out_by_commits_that_change_nothing() {
    let repo = three_turns(Mode::Commit);
    repo.oxundo(["undo", "--revert", "--steps", "3"]).success();
    let before = repo.state();
    for _ in 0..2 {
        repo.refuses(&["undo", "--revert", "--to", "0"], "nothing");
        repo.state().assert_is(&before, "no commit is made");
    }
}

#[test]
fn some_paths_are_undone_and_the_turn_stays() {
    for mode in Mode::tried() {
        let mut repo = Sandbox::new();
        repo.sh("mkdir sub; echo a >sub/a.txt; echo b >b.txt; git add -A; git commit -qm base");
        let before = repo.state();
        repo.turn(mode, "echo A >sub/a.txt; echo B >b.txt; mkdir sub/new; echo N >sub/new/n.txt");
        let after = repo.state();
        let head = repo.head();
        repo.start_in("sub");
        let (code, done) = repo.json(["undo", "--", "a.txt"]);
        assert_eq!((code, &done["turns"]), (0, &json!([1])), "{done}");
        repo.assert_file("sub/a.txt", "a\n", "the path, from where the command was called");
        repo.assert_file("b.txt", "B\n", "others stay");
        assert_eq!(repo.head(), head, "HEAD stays");
        let partly = repo.state();
        repo.redo();
        repo.state().assert_is(&after, "redone");
        repo.oxundo(["undo", "--", "a.txt"]).success();
        repo.oxundo(["undo", "--", "new", ":/b.*"]).success();
        repo.assert_file("b.txt", "b\n", "partly undone further");
        repo.assert_absent("sub/new", "with the directory");
        repo.redo();
        repo.state().assert_is(&partly, "one part after the other");
        repo.undo();
        repo.state().assert_is(&before, "one undo undoes the turn in full");
        repo.redo();
        repo.state().assert_is(&partly, "and redo is back where that was");
        repo.redo();
        repo.state().assert_is(&after, "and then at the turn's end");
        repo.undo();
        repo.state().assert_is(&before, "which is undone as ever");
        repo.refuses(&["undo", "--", "a.txt"], "nothing");
    }
}

#[test]
fn what_was_taken_out_of_a_file_and_came_back_by_git_is_taken_out_again() {
    let text = "1\n2\n3\n";
    let stories = [
        ("echo turn >>f", "git restore f", text),
        ("echo turn >>f", "git stash -q", text),
        ("echo turn >>f", "git reset -q --hard; sed -i '1i mine' f", "mine\n1\n2\n3\n"),
        ("echo turn >f", "git checkout -q -- f", text),
        ("rm f", "git clean -qf f", text),
    ];
    check_all(stories.map(|story| (format!("{story:?}"), story)), |(script, back, out)| {
        let repo = Sandbox::new();
        repo.write("f", text);
        repo.sh("git add f; git commit -qm f");
        repo.agent(script);
        repo.oxundo(["undo", "--", "f"]).success();
        repo.assert_file("f", text, "it is out");
        repo.sh(back);
        let left = repo.state();
        repo.oxundo(["undo", "--", "f"]).success();
        repo.assert_file("f", *out, "and once more");
        repo.refuses(&["undo", "--", "f"], "nothing");
        repo.redo();
        repo.state().assert_is(&left, "brought back");
        repo.assert_sound();
    });
}

#[test]
fn what_was_taken_out_and_is_out_still_is_not_taken_out_of_what_the_user_wrote_since() {
    for script in ["true", "sed -i '1i mine' f", "printf 'all new\n' >f", "rm f", "git commit -qam out"] {
        let repo = Sandbox::new();
        repo.write("f", "1\n2\n3\n");
        repo.sh("git add f; git commit -qm f");
        repo.agent("echo below >>f");
        repo.agent("sed -i s/1/turn/ f");
        repo.oxundo(["undo", "--", "f"]).success();
        repo.sh(script);
        let (_, next) = repo.json(["undo", "--dry-run", "--", "f"]);
        assert_ne!(next["turns"], json!([2]), "{script}: {next}");
    }
}

#[test]
fn a_pathspec_that_matches_nothing_is_said() {
    let repo = three_turns(Mode::Commit);
    let (code, said) = repo.json(["undo", "--", "nowhere.txt"]);
    assert_eq!((code, &said["error"]["code"]), (1, &json!("not_found")), "{said}");
    let (code, said) = repo.json(["undo", "--", "../out"]);
    assert_eq!((code, &said["error"]["code"]), (2, &json!("usage")), "{said}");
}

#[test]
fn paths_of_several_turns_and_of_one_in_the_middle() {
    for mode in Mode::tried() {
        let repo = three_turns(mode);
        let last = repo.state();
        repo.oxundo(["undo", "--steps", "2", "--", "a.txt"]).success();
        repo.assert_file("a.txt", lines(&[1]), "two turns of one file");
        repo.assert_file("f3.txt", "3\n", "not of others");
        repo.redo();
        repo.state().assert_is(&last, "both at once");
        repo.oxundo(["undo", "--only", "1", "--", "a.txt", "f1.txt"]).success();
        repo.assert_file("a.txt", lines(&[2, 3]), "one turn of it");
        repo.assert_absent("f1.txt", "and of the other");
        repo.redo();
        repo.state().assert_is(&last, "back");
    }
}

#[test]
fn what_was_undone_before_a_part_can_still_be_redone() {
    let repo = three_turns(Mode::Ghost);
    let last = repo.state();
    repo.undo();
    let two = repo.state();
    repo.oxundo(["undo", "--", "a.txt"]).success();
    repo.redo();
    repo.state().assert_is(&two, "the newest first");
    repo.redo();
    repo.state().assert_is(&last, "then the one before");
}

#[test]
fn files_of_any_turn_are_restored_and_that_is_undone() {
    for mode in Mode::tried() {
        let mut repo = three_turns(mode);
        repo.sh("mkdir deep; rm f1.txt; echo mine >mine.txt; sed -i '1s/.*/mine/' a.txt");
        let before = repo.state();
        repo.start_in("deep");
        repo.oxundo(["restore", "1", "--", "../f1.txt"]).success();
        repo.assert_file("f1.txt", "1\n", "one file");
        repo.oxundo(["restore", "1"]).success();
        repo.assert_file("a.txt", lines(&[1]), "every file of that state");
        repo.assert_file("f3.txt", "3\n", "nothing is deleted");
        repo.assert_file("mine.txt", "mine\n", "nor touched");
        let restored = repo.state();
        repo.oxundo(["restore", "0", "--", ":/a.txt"]).success();
        repo.assert_file("a.txt", lines(&[]), "as before the first turn");
        repo.oxundo(["undo", "--steps", "3"]).success();
        repo.state().assert_is(&before, "undo takes all of it back");
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.state().assert_is(&restored, "and redo brings it again");
        repo.refuses(&["restore", "1"], "nothing");
        assert_eq!(repo.json(["restore", "99"]).0, 1, "no such turn");
        assert_eq!(repo.json(["restore", "1", "--", "nowhere"]).0, 1, "no such file");
    }
}

#[test]
fn a_pathspec_of_several_that_matches_nothing_is_told() {
    let repo = three_turns(Mode::Commit);
    let told = repo.oxundo(["undo", "--", "f3.txt", "nosuch", ":!a.txt"]);
    told.success();
    repo.assert_absent("f3.txt", "the other is taken out");
    assert_eq!(told.err().matches("nothing was changed that").count(), 1, "{told:?}");
    told.warns("nothing was changed that 'nosuch' matches");
}

#[test]
fn an_empty_directory_is_named_by_a_pathspec_too() {
    in_both_modes(|mode| {
        let made = Sandbox::new();
        let before = made.state();
        made.turn(mode, "mkdir -p e/m e/n; echo b >b; chmod 700 e/m").success();
        let after = made.state();
        for named in ["e/m", "e", "e/m/", ":/e", "e/*"] {
            let repo = made.copy();
            let told = repo.oxundo(["undo", "--", named]);
            told.success();
            told.says(if named.starts_with("e/m") { ": 1 directory" } else { "directories" });
            assert_eq!((repo.exists("e/m"), repo.exists("b")), (false, true), "{named}");
            assert_eq!(repo.exists("e/n"), named.starts_with("e/m"), "{named}");
            repo.redo();
            repo.state().assert_is(&after, named);
            repo.sh("rm -r e");
            let there = repo.state();
            repo.oxundo(["restore", "1", "--", named]).success();
            assert_eq!((repo.exists("e/m"), repo.exists("e/n")), (true, !named.starts_with("e/m")), "{named}");
            repo.undo();
            repo.state().assert_is(&there, named);
        }
        // What the user has put there stays, and what has no such name is not denied of another.
        made.sh("echo mine >e/m/mine");
        made.oxundo(["undo", "--", "e/m"]).success();
        assert!(made.exists("e/m/mine"));
        made.sh("rm e/m/mine");
        let there = made.state();
        assert_ne!(made.oxundo(["undo", "--", "nosuch"]).code, 0);
        assert_ne!(made.oxundo(["restore", "1", "--", "nosuch"]).code, 0);
        made.state().assert_is(&there, "nothing");
        made.undo();
        made.state().assert_is(&before, "as a whole");
    });
}

#[test]
fn an_empty_directory_comes_back_with_those_above_that_are_gone() {
    in_both_modes(|mode| {
        for (turn, users, line) in [
            ("rmdir n/o/p; echo g >g", "git clean -fdq", "undo"),
            ("rmdir n/o/p; echo g >g", "rm -r n", "undo --only 1"),
            ("rm -r n; echo g >g", "true", "undo -- n/o"),
            ("rm -r n; echo g >g", "true", "undo -- :(glob)**/p"),
        ] {
            let repo = Sandbox::new();
            repo.sh("mkdir -p n/o/p");
            repo.turn(mode, turn).success();
            repo.sh(users);
            let there = repo.state();
            repo.oxundo(line.split(' ').map(str::to_owned)).success();
            assert!(repo.exists("n/o"), "{line}");
            repo.redo();
            repo.state().assert_is(&there, line);
        }
        let repo = Sandbox::new();
        repo.sh("mkdir n; echo k >n/k; git add n; git commit -qm k");
        repo.turn(mode, "mkdir n/o; echo g >g").success();
        repo.undo();
        repo.sh("rm -r n");
        repo.redo();
        assert!(repo.exists("n/o") && !repo.exists("n/k"));
        repo.undo();
        assert!(!repo.exists("n/o"));
    });
}

#[test]
fn what_a_turn_put_in_the_place_of_what_is_restored_goes() {
    for (was, script) in [
        ("rm -f README.txt; mkdir -p dd; echo 1 >dd/f", "rm -r dd; echo file >dd; echo A >a"),
        ("echo dd >dd", "rm dd; mkdir -p dd/e; echo f >dd/e/f; echo A >a"),
    ] {
        for mode in Mode::tried() {
            let repo = Sandbox::new();
            repo.sh(&format!("{was}; echo a >a; git add -A; git commit -qm base"));
            let base = repo.files();
            repo.turn(mode, script);
            let swapped = repo.state();
            let done = repo.oxundo(["restore", "1:before"]);
            assert_eq!(done.code, 0, "{script}: {done:?}");
            repo.files().assert_is(&base, script);
            repo.undo();
            repo.state().assert_is(&swapped, script);
            repo.redo();
            repo.files().assert_is(&base, script);
            repo.undo();
            let (_, inner) = script.split_once("dd/e/f").map_or(("", "dd/f"), |_| ("", "dd"));
            repo.oxundo(["restore", "1:before", "--", inner]).success();
            repo.undo();
            repo.state().assert_is(&swapped, script);
            // What the user has made of it is in the way, as ever.
            repo.sh("test -d dd && echo mine >dd/mine || echo mine >dd");
            repo.refuses(&["restore", "1:before"], "conflict");
        }
    }
}

#[test]
fn an_ignored_file_is_not_restored_over() {
    let repo = three_turns(Mode::Commit);
    repo.sh("git rm -q f1.txt; git commit -qm gone; echo f1.txt >>.git/info/exclude; echo mine >f1.txt");
    repo.refuses(&["restore", "1"], "conflict");
}

/// Two turns, the second of which makes these files or deletes them.
fn made_or_deleted(deletes: bool) -> Sandbox {
    const MAKE: &str = "echo a >new; mkdir -p d/deep; echo b >d/deep/new";
    const DELETE: &str = "rm -r new d";
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "echo one >README.txt");
    if deletes {
        repo.sh(MAKE);
    }
    repo.turn(Mode::Ghost, if deletes { DELETE } else { MAKE });
    if !deletes {
        repo.sh(DELETE);
    }
    repo
}

#[test]
fn what_is_brought_back_and_left_out_by_now_is_taken_away_again() {
    const IGNORED: &str = "printf 'new\\nd/\\n' >.git/info/exclude; mkdir d; chmod 700 d";
    for left_out in [
        IGNORED,
        "git config oxundo.maxDirEntries 2; mkdir -p d/deep; touch d/deep/1 d/deep/2 d/deep/3",
        &format!("{IGNORED}; git config core.fileMode false"),
    ] {
        for (deletes, command, hint, steps) in [
            (false, &["restore", "2"][..], "undo", &["undo", "redo", "undo"][..]),
            (true, &["undo", "--only", "2"], "redo", &["undo", "redo", "undo"]),
            (true, &["undo", "--revert"], "redo", &["undo", "redo", "undo"]),
            (true, &["undo", "--revert"], "redo", &["redo"]),
            (true, &["undo", "--", "new", "d"], "redo", &["redo"]),
        ] {
            let repo = made_or_deleted(deletes);
            repo.sh(left_out);
            let before = repo.state();
            let output = repo.oxundo(command);
            output.success();
            assert!(output.err().contains(&format!("'oxundo {hint}'")), "{left_out}: the hint\n{output:?}");
            repo.assert_file("new", "a\n", "it is back");
            repo.assert_file("d/deep/new", "b\n", "and what is deeper");
            let after = repo.state();
            assert_eq!(repo.log().len(), 3, "{left_out}: {command:?} is a turn");
            for (at, step) in steps.iter().enumerate() {
                repo.oxundo([step]).success();
                let wanted = if at == 1 { &after } else { &before };
                repo.state().assert_is(wanted, &format!("{left_out}: {step} after {command:?}"));
            }
            repo.assert_sound();
        }
    }
}

#[test]
fn an_edit_of_what_was_brought_back_and_is_ignored_is_kept() {
    let repo = made_or_deleted(false);
    repo.sh("printf 'new\\nd/\\n' >.git/info/exclude");
    repo.oxundo(["restore", "2"]).success();
    repo.turn(Mode::Ghost, "echo three >README.txt");
    assert_eq!(repo.log().len(), 4, "the restore is a turn");
    repo.write("new", "mine\n");
    repo.refuses(&["undo", "--steps", "2"], "conflict");
    repo.write("new", "a\n");
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.assert_absent("new", "the restore is taken back");
    repo.oxundo(["redo", "--steps", "2"]).success();
    repo.assert_file("new", "a\n", "and brought again");
}

#[test]
fn what_no_turn_records_is_not_said_to_be_taken_back() {
    let repo = Sandbox::new();
    repo.git(["config", "oxundo.maxFileSize", "50"]);
    repo.agent("echo two >README.txt; head -c 200 /dev/zero >big");
    let output = repo.oxundo(["undo", "--", "big"]);
    output.success();
    repo.assert_absent("big", "it is aside");
    let recorded = repo.log().len() == 2;
    assert_eq!(output.err().contains("'oxundo redo' brings it back"), recorded, "the hint is true\n{output:?}");
    assert_eq!(output.err().contains("no turn records this"), !recorded, "else it says so\n{output:?}");
}

#[test]
fn what_a_turn_made_and_the_user_keeps_as_ignored_files_is_taken_out_and_comes_back() {
    for mode in Mode::tried() {
        for out in [["undo", "--only=1"], ["undo", "--revert"]] {
            let repo = Sandbox::new();
            repo.turn(mode, "echo its >n1; mkdir d; echo its >d/n2; chmod +x n1");
            repo.sh("git add -A; printf 'n1\\nd/\\n' >.gitignore; git add .gitignore; git rm -rqf --cached n1 d; git commit -qm local");
            let before = repo.state();
            repo.assert_file("n1", "its\n", "it is there, and ignored");
            repo.oxundo(out).success();
            repo.assert_absent("n1", "it is taken out");
            let after = repo.state();
            assert_eq!(repo.log().len(), 2, "{mode:?}, {out:?}: a turn records it");
            let undone = repo.copy();
            undone.undo();
            undone.state().assert_is(&before, &format!("{mode:?}, {out:?}: undo of that"));
            undone.redo();
            undone.state().assert_is(&after, "and redo");
            repo.redo();
            repo.state().assert_is(&before, &format!("{mode:?}, {out:?}: redo right after it"));
        }
    }
}

#[test]
fn a_named_state_is_a_goal_and_a_source() {
    for mode in Mode::tried() {
        let repo = three_turns(mode);
        repo.sh("echo mine >mine.txt; sed -i '1s/.*/mine/' a.txt; git add a.txt");
        let here = repo.state();
        let (code, said) = repo.json(["checkpoint", "-m", "before the cache"]);
        assert_eq!((code, &said["checkpoint"], &said["turn"]), (0, &json!("before the cache"), &json!(3)), "{said}");
        repo.state().assert_is(&here, "nothing but the timeline changes");
        repo.turn(mode, "sed -i '14s/.*/turn 4/' a.txt; rm mine.txt");
        repo.turn(mode, "echo 5 >f5.txt");
        let last = repo.state();
        repo.oxundo(["restore", "before the cache", "--", "mine.txt"]).success();
        repo.assert_file("mine.txt", "mine\n", "a file of that state");
        repo.undo();
        repo.oxundo(["undo", "--to", "before the cache"]).success();
        repo.state().assert_is(&here, "the very state");
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.state().assert_is(&last, "and forward");
        assert_eq!(repo.json(["checkpoint", "before the cache"]).0, 2, "a name is given once");
        repo.oxundo(["checkpoint"]).says("c1");
        let (_, listed) = repo.json(["checkpoint", "--list"]);
        assert_eq!(listed["checkpoints"][1]["name"], "before the cache", "{listed}");
        repo.oxundo(["checkpoint", "--delete", "before the cache"]).success();
        assert_eq!(repo.json(["restore", "before the cache"]).0, 1, "forgotten");
        repo.assert_sound();
    }
}

#[test]
fn a_name_that_means_something_else_is_refused() {
    let repo = three_turns(Mode::Ghost);
    let head = repo.head();
    repo.oxundo(["checkpoint", "mine"]).success();
    repo.oxundo(["checkpoint", "fix: a cache"]).success();
    let before = repo.everything();
    let abbreviated = [&head, &head[..7], &head[..4], &format!("{}:f", &head[..9])].map(str::to_owned);
    let words = [
        "1",
        "0",
        "@",
        "@~2",
        "@~-1",
        "@~x",
        "@^",
        "@{1}",
        "@:a.txt",
        "1:before",
        "1:after",
        "1:a.txt",
        "@~1:before:a",
        "17:before",
        "1.2",
        "1.2:before",
        "..",
        "1..2",
        "@~1..",
        "..@",
        "a..b",
        "HEAD",
        "HEAD~1",
        "HEAD^",
        "HEAD:a.txt",
        "HEAD@{1}",
        "mine:before",
        "mine:a.txt",
        "fix",
        "deadbeef",
        "deadbeef:before",
    ];
    for name in words.map(str::to_owned).iter().chain(&abbreviated) {
        for args in [&["checkpoint", name][..], &["checkpoint", "-m", name]] {
            let (code, said) = repo.json(args);
            assert_eq!((code, &said["error"]["code"]), (2, &json!("usage")), "{name}: {said}");
            assert_eq!(
                said["error"]["hints"],
                json!(["run 'oxundo checkpoint': it gives a name itself"]),
                "{name}: {said}"
            );
        }
    }
    repo.everything().assert_is(&before, "nothing is named");
    for name in ["HEADS", "@home", "v1.2", "before: it", "1 before", "a.b", "1 2"] {
        repo.oxundo(["checkpoint", name]).success();
        repo.oxundo(["diff", name]).success();
    }
}

#[test]
fn a_name_given_by_an_older_release_hides_no_turn() {
    let repo = three_turns(Mode::Ghost);
    repo.write("f1.txt", "mine\n");
    repo.oxundo(["checkpoint", "c1"]).success();
    let rename = |to: &str| {
        repo.sh(&format!(
            "export GIT_INDEX_FILE=$PWD/.git/scratch; git read-tree refs/oxundo/timeline
             new=$(git cat-file -p refs/oxundo/timeline:state.json | sed 's/\"c1\"/\"{to}\"/' | git hash-object -w --stdin)
             git update-index --cacheinfo 100644,$new,state.json
             git update-ref refs/oxundo/timeline $(git commit-tree -m older $(git write-tree))
             rm .git/scratch"
        ));
    };
    let file = |state: &str| repo.oxundo(["show", &format!("{state}:f1.txt")]).out();
    let old = repo.git(["rev-parse", "refs/oxundo/timeline"]);
    rename("2:before");
    assert_eq!(file("2:before"), "1", "the state before turn 2");
    assert_eq!(repo.oxundo(["show", "2:before", "f1.txt"]).out(), "1", "however it is asked");
    repo.oxundo(["restore", "2:before", "--", "f1.txt"]).success();
    repo.assert_file("f1.txt", "1\n", "the state before turn 2");
    for name in ["17:before", "HEAD", "1..2", "..", "@~-1"] {
        repo.git(["update-ref", "refs/oxundo/timeline", &old]);
        rename(name);
        assert_eq!(file(name), "mine", "{name} means nothing else");
        repo.write("f1.txt", "other\n");
        repo.oxundo(["restore", name, "--", "f1.txt"]).success();
        repo.assert_file("f1.txt", "mine\n", name);
        repo.oxundo(["checkpoint", "--delete", name]).success();
    }
}

#[test]
fn a_branch_starts_at_a_turn_and_goes_away_again() {
    for mode in Mode::tried() {
        let repo = three_turns(mode);
        repo.oxundo(["undo", "--steps", "2"]).success();
        let one = repo.state();
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.write("mine.txt", "mine\n");
        let before = repo.state();
        repo.oxundo(["branch", "other", "1"]).success();
        assert_eq!(repo.git(["symbolic-ref", "HEAD"]), "refs/heads/other");
        let files = |fact: &str| fact.starts_with("on disk ") && !fact.contains("mine");
        repo.state().only(files).assert_is(&one.only(files), "the files are as after turn 1");
        repo.assert_file("mine.txt", "mine\n", "and the user's are there");
        repo.turn(mode, "echo another way >way.txt");
        repo.undo();
        repo.undo();
        repo.state().assert_is(&before, "undo takes the branch away and goes back");
        repo.refuses(&["branch", "main", "1"], "branch");
        repo.refuses(&["branch", "main/below", "1"], "branch");
        repo.oxundo(["branch", "here"]).success();
        assert_eq!(repo.git(["rev-parse", "here"]), repo.git(["rev-parse", "main"]));
    }
}

#[test]
fn turns_are_squashed_into_one_clean_commit() {
    let repo = Sandbox::new();
    repo.commit("a.txt", &lines(&[]));
    let base = repo.head();
    repo.sh("sed -i '1s/.*/mine/' a.txt");
    let mine = repo.read("a.txt");
    repo.oxundo(["run", "-m", "one", "--", "sh", "-c", "sed -i '4s/.*/turn 1/' a.txt"]).success();
    repo.sh("sed -i '14s/.*/mine too/' a.txt");
    repo.oxundo([
        "run",
        "-m",
        "two",
        "--",
        "sh",
        "-c",
        "sed -i '8s/.*/turn 2/' a.txt; git commit -qam own; echo x >x.txt",
    ])
    .success();
    repo.write("later.txt", "later\n");
    let before = repo.state();
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]);
    let (code, done) = repo.json(["squash", "-m", "Add a cache", "--author", "A Name <a@example.com>"]);
    assert_eq!((code, &done["turns"]), (0, &json!([1, 2])), "{done}");
    assert_eq!(repo.git(["rev-parse", "HEAD^{tree}"]), tree, "the content is the same");
    assert_eq!(repo.git(["rev-parse", "HEAD~3"]), base, "two commits of the user's and one");
    assert_eq!(
        repo.git(["log", "-1", "--format=%an <%ae>|%s|%(trailers:only,unfold)"]),
        "A Name <a@example.com>|Add a cache|Assisted-by: sh\n"
    );
    assert_eq!(repo.git(["diff", "--numstat", "HEAD~2", "HEAD~1"]), "1\t1\ta.txt", "the user's own line alone");
    assert_eq!(repo.git(["show", "-s", "--format=%s", "HEAD~1"]), "oxundo: uncommitted changes before turn 2");
    repo.state().only(|fact| fact.starts_with("on disk ") || fact.starts_with("index ")).assert_is(
        &before.clone().only(|fact| fact.starts_with("on disk ") || fact.starts_with("index ")),
        "worktree and index stay",
    );
    repo.agent("echo 4 >four.txt");
    repo.oxundo(["squash"]).success();
    assert_eq!(repo.git(["rev-parse", "HEAD~3"]), base, "and so it is with that one and a later turn");
    repo.oxundo(["undo", "3"]).success();
    repo.state().assert_is(&before, "undo takes it back");
    // An empty message is none.
    repo.oxundo(["squash", "--all", "-m", " "]).success();
    assert_eq!(repo.git(["rev-parse", "HEAD~1"]), base, "one commit of all");
    assert_eq!(repo.git(["log", "-1", "--format=%s"]), "sh: turns 1 to 2");
    repo.oxundo(["undo", "--steps", "3"]).success();
    repo.assert_file("a.txt", String::from_utf8_lossy(&mine).replace("line 14", "mine too"), "the turns below as well");
    assert_eq!(repo.head(), base);
    repo.assert_sound();
}

#[test]
fn squash_can_be_looked_at_whatever_commits_it_makes_on_the_way() {
    let repo = Sandbox::new();
    repo.commit("a.txt", &lines(&[]));
    for (turn, line) in [(1, 1), (2, 5), (3, 9), (4, 13)] {
        repo.sh(&format!("sed -i '{line}s/.*/mine/' a.txt"));
        repo.agent(&format!("echo {turn} >>its"));
    }
    let before = repo.everything();
    repo.oxundo(["squash", "--dry-run"]).says("Would squash");
    repo.everything().assert_is(&before, "a look changes nothing");
    let tree = repo.git(["rev-parse", "HEAD^{tree}"]);
    repo.oxundo(["squash"]).success();
    assert_eq!(repo.git(["rev-parse", "HEAD^{tree}"]), tree, "the content is the same");
    assert_eq!(repo.git(["log", "--format=%an", "-5"]).lines().count(), 5, "four of the user's and one");
    repo.assert_sound();
}

#[test]
fn squash_refuses_what_it_must_not_rewrite() {
    let repo = three_turns(Mode::Commit);
    repo.commit("own.txt", "own\n");
    repo.refuses(&["squash"], "foreign");
    repo.sh("git reset -q --hard HEAD~; git init -q --bare ../o.git; git remote add o ../o.git; git push -q o HEAD~:refs/heads/x; git fetch -q o");
    repo.refuses(&["squash", "1..3"], "published");
    repo.refuses(&["squash"], "nothing");
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo.agent("echo two >a.txt");
    repo.sh("echo mine >a.txt");
    repo.agent("echo three >>a.txt");
    let error = repo.refuses(&["squash"], "conflict");
    assert!(error["hints"][0].as_str().is_some_and(|hint| hint.contains("--all")), "{error}");
    repo.oxundo(["squash", "--all"]).success();
}

#[test]
fn a_refused_restore_names_no_flag_that_it_has_not() {
    let repo = Sandbox::new();
    repo.agent("rm README.txt; mkdir README.txt; echo in >README.txt/in");
    repo.write("README.txt/mine", "mine\n");
    let error = repo.refuses(&["restore", "1:before"], "conflict");
    let hints = error["hints"].to_string();
    assert!(hints.contains("then run 'oxundo restore 1:before' again") && !hints.contains("--edits"), "{error}");
}

#[test]
fn the_name_of_the_directory_one_stands_in_is_no_pattern() {
    let files = ["app/[slug]/page.tsx", "app/[slug]/d/x", "app/s/page.tsx", "app/*/page.tsx", "page.tsx"];
    let mut repo = Sandbox::new();
    for file in files {
        repo.write(file, "1\n");
    }
    repo.sh("git add -A; git commit -qm all; mkdir 'app/\\'");
    for (here, pathspec) in [
        ("app/[slug]", "page.tsx"),
        ("app/[slug]", "*.tsx"),
        ("app/[slug]", "."),
        ("app/[slug]", ".."),
        ("app/[slug]", "d"),
        ("app/[slug]/d", "../*"),
        ("app/[slug]", "../s/page.tsx"),
        ("app/[slug]", ":(glob)**/x"),
        ("app/[slug]", ":(icase)PAGE.TSX"),
        ("app/[slug]", ":/page.tsx"),
        ("app/*", "page.tsx"),
        ("app/*", "*"),
        ("app/\\", "../s"),
        ("app/s", "../[slug]/page.tsx"),
    ] {
        repo.agent("find . -path ./.git -prune -o -type f -exec sh -c 'echo 2 >>\"$1\"' sh {} \\;");
        let listed = repo.sh(&format!(
            "cd '{here}'; git -c core.quotePath=false ls-files -z --full-name -- '{pathspec}' | tr '\\0' '\\n'"
        ));
        repo.start_in(here);
        repo.oxundo(["undo", "--", pathspec]).success();
        repo.start_in("");
        for file in files {
            let is_meant = listed.lines().any(|line| line == file);
            let is_back = repo.read(file) == b"1\n";
            assert_eq!(is_back, is_meant, "{file}: '{pathspec}' in '{here}' is for git {listed:?}");
        }
        repo.undo();
    }
}

#[test]
fn a_dot_is_the_directory_one_stands_in() {
    let mut repo = Sandbox::new();
    repo.write("a", "1\n").write("sub/b", "1\n").write(".env", "1\n");
    repo.sh("git add -f .; git commit -qm all");
    for (here, pathspec, taken) in
        [("", ".", ["a", "sub/b", ".env"].as_slice()), ("sub", "..", &["a", "sub/b", ".env"]), ("sub", ".", &["sub/b"])]
    {
        let before = repo.state();
        repo.agent("for f in a sub/b .env; do echo 2 >>\"$(git rev-parse --show-toplevel)/$f\"; done");
        repo.start_in(here);
        repo.oxundo(["undo", "--", pathspec]).success();
        repo.start_in("");
        for file in ["a", "sub/b", ".env"] {
            let content = if taken.contains(&file) { "1\n" } else { "1\n2\n" };
            repo.assert_file(file, content, &format!("'{pathspec}' in '{here}'"));
        }
        repo.undo();
        repo.state().assert_is(&before, "undo goes over the turn and what was taken out of it");
    }
}

#[test]
fn the_hint_to_take_later_turns_out_too_is_of_the_same_paths() {
    let repo = Sandbox::new();
    repo.sh("seq 3 >a; seq 3 >b; seq 3 >c; git add .; git commit -qm files");
    repo.agent("for file in a b c; do echo one >$file; done");
    repo.agent("for file in a b c; do echo two >$file; done");
    let refused = repo.oxundo(["undo", "--only", "1", "--", "a", "b"]);
    refused.warns("turn 2 (sh) changed 'a' and 1 more too");
    refused.warns("run 'oxundo undo --only 1..2 -- a b' to take out all turns from 1 to 2");
    repo.oxundo(["undo", "--only", "1..2", "--", "a", "b"]).success();
    let held = |file: &str| String::from_utf8(repo.read(file)).expect("text");
    assert_eq!(["a", "b", "c"].map(held), ["1\n2\n3\n", "1\n2\n3\n", "two\n"]);
}
