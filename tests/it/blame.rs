//! `oxundo blame` and `show --format=agent-trace`: each line of a story is written by somebody who is known, and is told as theirs.

use crate::sandbox::{Mode, Sandbox, in_both_modes};
use crate::steps::{call, hook, tick};
use serde_json::{Value, json};

/// What is told of each line: its content's first word, which says who wrote it, and the turn or step, or who made the commit.
#[track_caller]
fn told(repo: &Sandbox, args: &[&str], path: &str) -> Vec<String> {
    let before = repo.everything();
    let (code, value) = repo.json([&["blame"], args, &[path]].concat());
    repo.everything().assert_is(&before, "a look changes nothing");
    assert_eq!(code, 0, "{value}");
    let content = String::from_utf8(repo.read(path)).expect("text");
    let content: Vec<&str> = content.lines().collect();
    let lines = value["lines"].as_array().expect("lines");
    let line = |line: &Value| {
        let number = usize::try_from(line["line"].as_u64().expect("a number")).expect("small");
        let by = &line["by"];
        let whose = match (by["step"].as_str(), by["turn"].as_u64(), line["author"].as_str()) {
            (Some(step), ..) => step.to_owned(),
            (None, Some(turn), _) => turn.to_string(),
            (None, None, author) => author.unwrap_or("nobody").to_owned(),
        };
        format!("{} {whose}", content[number - 1])
    };
    lines.iter().map(line).collect()
}

fn edits(repo: &Sandbox, session: &str, id: u32, script: &str) {
    call(repo, session, id, "Edit", &json!({"file_path": repo.path("f")}), script);
}

#[test]
fn each_line_is_told_as_its_writers_whether_it_is_committed_or_not() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.commit("f", "user\n");
        repo.turn(mode, "echo one >>f; echo one >>new");
        repo.write("f", "mine\nuser\none\n");
        repo.turn(mode, "echo two >>f");
        repo.write("f", "mine\nuser\none\nlate\ntwo\n");
        let mine = if mode == Mode::Commit { "mine User Name" } else { "mine nobody" };
        assert_eq!(told(&repo, &[], "f"), [mine, "user User Name", "one 1", "late nobody", "two 2"]);
        assert_eq!(told(&repo, &[], "new"), ["one 1"]);
        assert_eq!(told(&repo, &["-L", "3,4"], "f"), ["one 1", "late nobody"]);
        assert_eq!(told(&repo, &["-L1,1", "-L5,+1"], "f"), [mine, "two 2"]);
        repo.write("f", "mine\nuser\none\ntwo\n");
        repo.undo();
        assert_eq!(told(&repo, &[], "f"), ["mine nobody", "user User Name", "one 1"], "what is undone wrote nothing");
        repo.assert_sound();
    });
}

#[test]
fn a_line_of_a_turn_with_steps_has_its_step_its_session_and_its_prompt() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        repo.commit("f", "user\nuser\n");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edits(&repo, "s", 1, "sed -i '1s/.*/first/' f");
        hook(&repo, "t", "UserPromptSubmit", &json!({}));
        edits(&repo, "t", 2, "echo second >>f");
        edits(&repo, "s", 3, "sed -i '1i third' f");
        let lines = ["third 1.3", "first 1.1", "user User Name", "second 1.2"];
        assert_eq!(told(&repo, &[], "f"), lines, "while it is open ({mode:?})");
        hook(&repo, "s", "Stop", &json!({}));
        hook(&repo, "t", "Stop", &json!({}));
        assert_eq!(told(&repo, &[], "f"), lines, "and when it has ended ({mode:?})");
        let (_, value) = repo.json(["blame", "f"]);
        let by = |line: usize| value["lines"][line]["by"].clone();
        assert_eq!((&by(3)["session"], &by(3)["agent"]), (&json!("t"), &json!("claude")));
        assert_eq!((&by(1)["session"], &by(1)["prompt"]), (&json!("s"), &json!("work of s")));
        let text = repo.oxundo(["blame", "f"]).out();
        assert!(
            text.lines().next().is_some_and(|line| line.starts_with("1.3") && line.ends_with("1) third")),
            "{text}"
        );
        // As the record for other tools has it.
        let (_, traced) = repo.json(["show", "1", "--format=agent-trace"]);
        let file = &traced["trace"]["files"][0];
        assert_eq!((&traced["trace"]["version"], &file["path"]), (&json!("0.1.0"), &json!("f")), "{traced}");
        let ranges: Vec<&Value> =
            file["conversations"].as_array().expect("a list").iter().map(|one| &one["ranges"]).collect();
        let range = |first: u32, last: u32| json!({"start_line": first, "end_line": last});
        assert_eq!(ranges, [&json!([range(1, 2)]), &json!([range(4, 4)])], "{traced}");
        assert_eq!(traced["trace"]["vcs"].is_object(), mode == Mode::Commit, "what is not committed has no revision");
        let line = repo.oxundo(["show", "1", "--format=agent-trace"]).out();
        assert_eq!(serde_json::from_str::<Value>(&line).expect("it is JSON"), traced["trace"]);
        assert_eq!(repo.git(["for-each-ref", "refs/notes/ai"]), "", "no other tool's notes are written");
    }
}

#[test]
fn a_line_that_a_turn_found_and_committed_is_not_the_turns() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.commit("f", "user\nuser\nuser\n");
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
            repo.sh("echo before >>f");
            repo.turn(mode, "echo first >>f");
        }
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edits(&repo, "s", 1, "sed -i '1i second' f");
        repo.sh("sed -i '3i between' f");
        tick();
        call(&repo, "s", 2, "Bash", &json!({}), "sed -i '5i third' f; git commit -qam own");
        hook(&repo, "s", "Stop", &json!({}));
        let turn = if mode == Mode::Ghost { 2 } else { 1 };
        let mut lines = vec![format!("second {turn}.1"), "user User Name".into(), "between User Name".into()];
        lines.extend(["user User Name".into(), format!("third {turn}.2"), "user User Name".into()]);
        if mode == Mode::Ghost {
            lines.extend(["before User Name".into(), "first 1".into()]);
        }
        assert_eq!(told(&repo, &[], "f"), lines, "{mode:?}");
        // The next turn puts its own commit in the place of that one.
        repo.turn(mode, "echo amended >>f; git commit -q --amend -am own");
        let next = turn + 1;
        lines.push(format!("amended {next}"));
        assert_eq!(told(&repo, &[], "f"), lines, "amended, {mode:?}");
        repo.assert_sound();
    }
}

#[test]
fn lines_are_told_under_another_name_too() {
    let repo = Sandbox::new();
    let lines: String = (1..20).map(|line| format!("user\t{line}\n")).collect();
    repo.commit("f", &lines);
    repo.turn(Mode::Ghost, "sed -i '3i one' f");
    // The user gives it another name, then a turn does, and commits it.
    repo.sh("git mv f g");
    let whose = || told(&repo, &[], "g").into_iter().find(|line| line.starts_with("one ")).expect("the line");
    assert_eq!(whose(), "one 1");
    repo.sh("git mv g f");
    repo.turn(Mode::Ghost, "sed -i '7i two' f; git mv f 'h\u{e9}'; git commit -qam moved");
    let all = told(&repo, &[], "h\u{e9}");
    assert_eq!((all[2].as_str(), all[6].as_str(), all[0].as_str()), ("one 1", "two 2", "user\t1 User Name"), "{all:?}");
    repo.turn(Mode::Ghost, "sed -i '9i three' 'h\u{e9}'; git mv 'h\u{e9}' f");
    let all = told(&repo, &[], "f");
    assert_eq!((all[2].as_str(), all[6].as_str(), all[8].as_str()), ("one 1", "two 2", "three 3"), "{all:?}");
    repo.assert_sound();
}

#[test]
fn a_path_is_meant_literally_and_seen_from_where_one_is() {
    let mut repo = Sandbox::new();
    repo.turn(Mode::Commit, "mkdir 'd'; echo odd >'d/*[a]?.txt'; echo :x >'d/:x'; echo 1 >d/other");
    repo.turn(Mode::Ghost, "echo ghost >>'d/*[a]?.txt'");
    assert_eq!(told(&repo, &[], "d/*[a]?.txt"), ["odd 1", "ghost 2"]);
    repo.start_in("d");
    for path in ["*[a]?.txt", ":x", "../README.txt"] {
        repo.oxundo(["blame", "--", path]).success();
    }
    for (path, code) in [("nope", 1), ("../../x", 2), (".", 1)] {
        repo.oxundo(["blame", "--", path]).exits(code);
    }
}

#[test]
fn lines_with_other_ends_and_copied_notes_are_told_all_the_same() {
    let repo = Sandbox::new();
    repo.git(["config", "core.autocrlf", "true"]);
    repo.git(["config", "notes.rewriteRef", "refs/notes/oxundo"]);
    repo.write("f", "user\r\n").sh("git add f; git commit -qm f");
    repo.agent("printf 'one\\r\\n' >>f");
    repo.turn(Mode::Ghost, "printf 'two\\r\\n' >>f");
    assert_eq!(told(&repo, &[], "f"), ["user User Name", "one 1", "two 2"]);
    repo.sh("git stash -q; git commit -q --amend -m better; git stash pop -q");
    assert_eq!(told(&repo, &[], "f"), ["user User Name", "one 1", "two 2"], "an amended commit is the turn's still");
}

#[test]
fn lines_that_touch_an_agents_are_the_users_where_no_call_wrote_them() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        repo.commit("f", "one\ntwo\nthree\n");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        edits(&repo, "s", 1, "sed -i '1a its' f");
        repo.sh("sed -i '2a mine' f; echo far >>f");
        tick();
        edits(&repo, "s", 2, "sed -i '1i its' f");
        repo.sh("sed -i '/^mine/a late' f");
        hook(&repo, "s", "Stop", &json!({}));
        // None of theirs is in the turn's commit.
        let user = |line: &str| format!("{line} nobody");
        assert_eq!(
            told(&repo, &[], "f"),
            ["its 1.2".into(), "one User Name".into(), "its 1.1".into(), user("mine"), user("late")]
                .into_iter()
                .chain(["two User Name".into(), "three User Name".into(), user("far")])
                .collect::<Vec<String>>(),
            "{mode:?}"
        );
        let (_, traced) = repo.json(["show", "1", "--format=agent-trace"]);
        let conversations = &traced["trace"]["files"][0]["conversations"];
        let mut lines: Vec<(u64, u64)> = (conversations.as_array().expect("a list").iter())
            .flat_map(|one| one["ranges"].as_array().expect("ranges"))
            .filter_map(|range| range["start_line"].as_u64().zip(range["end_line"].as_u64()))
            .collect();
        lines.sort_unstable();
        assert_eq!(lines, [(1, 1), (3, 3)], "{mode:?}: {traced}");
    }
}

#[test]
fn what_the_user_puts_into_a_commit_of_a_turns_is_theirs() {
    for copied in [true, false] {
        let repo = Sandbox::new();
        if copied {
            repo.git(["config", "notes.rewriteRef", "refs/notes/oxundo"]);
        }
        repo.commit("f", "one\ntwo\nthree\n");
        repo.turn(Mode::Commit, "sed -i s/two/its/ f");
        repo.turn(Mode::Commit, "echo later >>f");
        repo.sh("echo mine >>f; echo alone >mine; git add mine; git commit -qa --amend -m mine");
        let whose = ["one User Name", "its 1", "three User Name", "later 2", "mine User Name"];
        assert_eq!(told(&repo, &[], "f"), whose, "{copied}");
        assert_eq!(told(&repo, &[], "mine"), ["alone User Name"], "{copied}");
        // Anew upon another base, and then as one commit.
        repo.sh("git switch -qc up HEAD~2; echo up >up; git add up; git commit -qm up; git switch -q main; git rebase -q up");
        assert_eq!(told(&repo, &[], "f"), whose, "{copied}: rebased");
        repo.sh("git reset -q --soft HEAD~2; git commit -qm all");
        assert_eq!(told(&repo, &[], "f"), whose, "{copied}: as one commit");
        assert_eq!(told(&repo, &[], "mine"), ["alone User Name"], "{copied}");
        repo.turn(Mode::Ghost, "echo ghost >>f");
        repo.sh("echo more >>f; git commit -qam more");
        let whose: Vec<&str> = whose.into_iter().chain(["ghost 3", "more User Name"]).collect();
        assert_eq!(told(&repo, &[], "f"), whose, "{copied}: the user has committed what a turn left");
    }
}

#[test]
fn lines_in_a_file_to_which_the_user_gave_another_name_are_told_as_before() {
    let lines: String = (1..20).map(|line| format!("user\t{line}\n")).collect();
    for staged in [false, true] {
        let repo = Sandbox::new();
        repo.commit("f", &lines);
        let moved = |from: &str, to: &str| drop(repo.sh(&format!("mv {from} {to}; ! {staged} || git add -A {to}")));
        repo.turn(Mode::Ghost, "seq 5 | sed s/^/one/ >new");
        moved("new", "other");
        let whose: Vec<String> = (1..6).map(|line| format!("one{line} 1")).collect();
        assert_eq!(told(&repo, &[], "other"), whose);
        repo.turn(Mode::Ghost, "echo two >>f");
        repo.sh("git mv f g");
        repo.turn(Mode::Ghost, "echo three >>g");
        repo.sh("git mv g h; echo mine >>h");
        let all = told(&repo, &[], "h");
        assert_eq!(all[19..], ["two 2", "three 3", "mine nobody"], "{staged}");
        assert_eq!(all[0], "user\t1 User Name");
        repo.assert_sound();
    }
}

#[test]
fn a_step_that_only_renames_a_file_wrote_none_of_its_lines() {
    for (mode, moves) in [(Mode::Commit, "git mv f d/g"), (Mode::Commit, "mv f d/g"), (Mode::Ghost, "mv f d/g")] {
        let repo = Sandbox::new();
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        repo.sh("mkdir d; seq 20 >f; git add f; git commit -qm f");
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        hook(&repo, "o", "UserPromptSubmit", &json!({}));
        edits(&repo, "o", 1, "sed -i s/^8$/its/ f");
        call(&repo, "s", 1, "Bash", &json!({"command": "x"}), moves);
        call(&repo, "s", 2, "Edit", &json!({"file_path": repo.path("d/g")}), "sed -i s/^15$/late/ d/g");
        hook(&repo, "s", "Stop", &json!({}));
        hook(&repo, "o", "Stop", &json!({}));
        let all = told(&repo, &[], "d/g");
        let its: Vec<&String> = all.iter().filter(|line| line.contains(" 1.")).collect();
        assert_eq!(its, ["its 1.1", "late 1.3"], "{mode:?}: {moves}");
    }
}

/// The lines of a file that a turn's record says that it wrote, from and to.
fn traced(repo: &Sandbox, turn: &str, path: &str) -> Vec<(u64, u64)> {
    let (_, traced) = repo.json(["show", turn, "--format=agent-trace"]);
    let files = traced["trace"]["files"].as_array().expect("files").clone();
    let file = files.into_iter().find(|file| file["path"] == path).expect("the file");
    let ranges = file["conversations"].as_array().expect("conversations").iter().map(|one| one["ranges"].clone());
    let ranges = ranges.flat_map(|ranges| ranges.as_array().cloned().expect("ranges"));
    let line = |range: &Value, end: &str| range[end].as_u64().expect("a line");
    ranges.map(|range| (line(&range, "start_line"), line(&range, "end_line"))).collect()
}

#[test]
fn a_line_keeps_its_writer_over_all_names_that_the_user_gives_its_file() {
    // When the user gives it which name, and commits it.
    let stories = [
        "turn; mv f g; turn b",
        "turn; git mv f g || mv f g; turn b; git commit -qam mine",
        "turn, mv f g; turn b",
        "turn, mv f g, commit; turn b; mv g h",
        "turn; mv f g; turn b; mv g h; turn b; git add -A; git commit -qm mine",
        "turn; turn b, mv f g; turn b",
        "turn; turn b, agent mv f q, mv q g; git commit -qam mine; turn b",
        "turn; turn b, agent mv f q, mv q g, git commit -qam mine; turn b",
        "turn; git mv f g || mv f g; git commit -qa --amend -m mine",
        "turn; git mv f g || mv f g; git add -A; git commit -qm mine; turn b",
    ];
    for (mode, new) in [(Mode::Commit, false), (Mode::Commit, true), (Mode::Ghost, false)] {
        for story in stories {
            let repo = Sandbox::new();
            let lines: String = (1..=20).map(|line| format!("user{line}\n")).collect();
            repo.sh("git config notes.rewriteRef refs/notes/oxundo; echo b >b; git add b; git commit -qm b");
            if !new {
                repo.commit("f", &lines);
            }
            if mode == Mode::Ghost {
                repo.git(["config", "oxundo.mode", "ghost"]);
            }
            let mut calls = 0;
            for act in story.split("; ") {
                let mut parts = act.split(", ");
                let first = parts.next().expect("a part");
                if !first.starts_with("turn") {
                    repo.sh(&format!("{act} || :"));
                    tick();
                    continue;
                }
                hook(&repo, "s", "UserPromptSubmit", &json!({}));
                calls += 1;
                let (path, script) = match first {
                    "turn" if new => ("f", "seq 30 | sed 's/^/old /' >f; echo its >>f"),
                    "turn" => ("f", "sed -i s/^user10$/its/ f"),
                    _ => ("b", "echo more >>b"),
                };
                call(&repo, "s", calls, "Write", &json!({"file_path": repo.path(path)}), script);
                for part in parts {
                    match part.strip_prefix("agent ") {
                        Some(script) => {
                            calls += 1;
                            call(&repo, "s", calls, "Bash", &json!({"command": "x"}), script);
                        }
                        None => drop(repo.sh(&format!("{part} || :"))),
                    }
                    tick();
                }
                if act.contains(", ") {
                    calls += 1;
                    call(&repo, "s", calls, "Write", &json!({"file_path": repo.path("b")}), "echo more >>b");
                }
                hook(&repo, "s", "Stop", &json!({}));
            }
            let path = ["h", "g"].into_iter().find(|path| repo.exists(path)).expect("it is there");
            let all = told(&repo, &[], path);
            let its: Vec<&String> = all.iter().filter(|line| line.starts_with("its ")).collect();
            assert_eq!(its, ["its 1.1"], "{mode:?}, {new}: {story}: {all:#?}");
        }
    }
}

#[test]
fn a_record_of_what_a_turn_wrote_knows_of_lines_in_whose_place_the_user_has_saved() {
    let lines: String = (1..=20).map(|line| format!("user{line}\n")).collect();
    // What a call does, what the user saves then, and what of which file is the turn's in its commit.
    for (script, saves, path, wanted) in [
        ("sed -i s/^user5$/its/ f", "sed -i s/^user15$/mine/ f", "f", [(5, 5)]),
        ("sed -i s/^user5$/its/ f", "sed -i '1imine' f; sed -i s/^user15$/mine/ f", "f", [(5, 5)]),
        ("seq 9 | sed s/^/its/ >f2", "sed -i s/^its3$/mine/ f2", "f2", [(1, 9)]),
        ("seq 9 | sed s/^/its/ >f2", "sed -i /^its3$/d f2", "f2", [(1, 9)]),
        ("seq 9 | sed s/^/its/ >f2", "mv f2 f3; echo mine >>f3", "f3", [(1, 9)]),
        ("seq 9 | sed s/^/its/ >f2", "sed -i s/^its3$/mine/ f2; mv f2 f3", "f3", [(1, 9)]),
    ] {
        for others in [false, true] {
            let repo = Sandbox::new();
            repo.commit("f", &lines);
            hook(&repo, "s", "UserPromptSubmit", &json!({}));
            if others {
                hook(&repo, "o", "UserPromptSubmit", &json!({}));
            }
            call(&repo, "s", 1, "Bash", &json!({"command": "x"}), script);
            repo.sh(saves);
            tick();
            if others {
                call(&repo, "o", 1, "Edit", &json!({"file_path": repo.path("b")}), "echo b >b");
                hook(&repo, "o", "Stop", &json!({}));
            }
            hook(&repo, "s", "Stop", &json!({}));
            assert!(!repo.git(["show", "--format=", "HEAD"]).contains("+mine"), "the user's line is not committed");
            assert_eq!(traced(&repo, "1", path), wanted, "{script}; {saves}; {others}");
        }
    }
}

#[test]
fn a_record_of_what_a_turn_wrote_has_no_line_that_came_along_with_a_file() {
    for (mode, moves) in [(Mode::Commit, "git mv f g"), (Mode::Commit, "mv f g"), (Mode::Ghost, "mv f g")] {
        let repo = Sandbox::new();
        repo.commit("f", &(1..=20).map(|line| format!("user{line}\n")).collect::<String>());
        repo.turn(mode, &format!("{moves}; echo its >>g"));
        assert_eq!(traced(&repo, "1", "g"), [(21, 21)], "{mode:?}: {moves}");
    }
    // What the user saved above is in no commit of the turn's: its lines are those of the commit.
    let repo = Sandbox::new();
    repo.commit("f", &(1..=20).map(|line| format!("user{line}\n")).collect::<String>());
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    call(&repo, "s", 1, "Bash", &json!({"command": "x"}), "git mv f g; echo its >>g");
    repo.sh("sed -i 1imine g");
    tick();
    edits(&repo, "s", 2, "true");
    hook(&repo, "s", "Stop", &json!({}));
    assert_eq!(repo.git(["show", "HEAD:g"]).lines().count(), 21, "the user's line is not committed");
    assert_eq!(traced(&repo, "1", "g"), [(21, 21)]);
}
