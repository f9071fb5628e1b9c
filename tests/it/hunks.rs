//! `undo -p` and `restore -p`: git asks hunk by hunk, and the answers are a plan like any other.

use crate::sandbox::{Mode, Output, Sandbox, State, in_both_modes};
use crate::screen::opened_terminal;
use crate::terminal::{Terminal, Watched};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;

/// Thirty lines, of which these say something else.
fn lines(other: &[(usize, &str)]) -> String {
    (1..=30).fold(String::new(), |mut text, n| {
        let word = other.iter().find(|(at, _)| *at == n).map(|(_, word)| (*word).to_owned());
        let _ = writeln!(text, "{}", word.unwrap_or_else(|| format!("line {n}")));
        text
    })
}

/// A turn that changes two lines of a file far apart, makes a file in a directory of its own, and deletes one.
fn turn_of_hunks(mode: Mode) -> Sandbox {
    let repo = Sandbox::new();
    repo.write("a.txt", lines(&[])).write("old.txt", "old\n");
    repo.git(["add", "."]);
    repo.git(["commit", "-qm", "lines"]);
    repo.turn(mode, "sed -i '3s/.*/three/;20s/.*/twenty/' a.txt; mkdir d; echo new >d/new.txt; rm old.txt");
    repo
}

/// Answers what git asks.
fn answered(repo: &Sandbox, args: &[&str], answers: &str) -> Output {
    Output::fed(&mut repo.oxundo_command(args), answers.as_bytes())
}

#[test]
fn what_is_chosen_goes_and_all_else_stays() {
    in_both_modes(|mode| {
        let repo = turn_of_hunks(mode);
        repo.sh("echo mine >mine.txt; sed -i '30s/.*/mine/' a.txt");
        let before = repo.state();
        let dry = repo.everything();
        answered(&repo, &["undo", "-p", "--dry-run"], "y\nn\ny\nn\n").says("Would take out parts of turn 1");
        repo.everything().assert_is(&dry, "a dry run changes nothing");

        let done = answered(&repo, &["undo", "-p"], "y\nn\ny\nn\n");
        done.success();
        done.says("Took out parts of turn 1");
        done.warns("Discard this hunk from worktree");
        repo.assert_file("a.txt", lines(&[(20, "twenty"), (30, "mine")]), "one hunk is gone");
        repo.assert_absent("d", "the directory goes with the file in it");
        repo.assert_absent("old.txt", "this was not chosen");
        repo.assert_file("mine.txt", "mine\n", "it is the user's");
        repo.redo();
        repo.state().assert_is(&before, "redo brings it back");
        answered(&repo, &["undo", "-p"], "n\ny\nn\ny\n").success();
        repo.assert_file("a.txt", lines(&[(3, "three"), (30, "mine")]), "the other hunk");
        repo.assert_file("old.txt", "old\n", "this was chosen");
        let chosen = repo.state();
        repo.undo();
        repo.assert_file("a.txt", lines(&[(30, "mine")]), "undo takes the rest of the turn back");
        repo.redo();
        repo.state().assert_is(&chosen, "and redo leads to what was chosen");
        repo.redo();
        repo.state().assert_is(&before, "and on to all of it");
        repo.assert_sound();
    });
}

#[test]
fn what_is_left_of_a_file_is_asked_about_again() {
    let repo = turn_of_hunks(Mode::Commit);
    answered(&repo, &["undo", "-p", "--", "a.txt"], "y\nn\n").success();
    repo.assert_file("a.txt", lines(&[(20, "twenty")]), "the first hunk is gone");
    answered(&repo, &["undo", "-p"], "y\nn\nn\n").success();
    repo.assert_file("a.txt", lines(&[]), "the other too");
    answered(&repo, &["undo", "-p"], "y\ny\n").success();
    repo.assert_file("old.txt", "old\n", "and the rest");
    repo.assert_absent("d/new.txt", "and the rest");
    answered(&repo, &["undo", "-p"], "").exits(4);
    repo.undo();
    assert_eq!(repo.git(["log", "-1", "--format=%s"]), "lines", "the turn is undone as a whole");
    repo.assert_sound();
}

#[test]
fn an_edit_goes_along_to_the_old_name_or_the_file_stays() {
    let repo = turn_of_hunks(Mode::Ghost);
    repo.turn(Mode::Ghost, "mv a.txt b.txt");
    repo.sh("sed -i '30s/.*/mine/' b.txt");
    let edited = lines(&[(3, "three"), (20, "twenty"), (30, "mine")]);
    let (before, files) = (repo.everything(), repo.files());
    let refused = answered(&repo, &["undo", "-p"], "n\ny\n");
    refused.exits(3);
    refused.warns("undo would overwrite changes in 'b.txt' (changed since, and it would be deleted)");
    repo.everything().assert_is(&before, "a refusal changes nothing");
    for (answers, stays) in [("y\nn\n", true), ("y\ny\n", false)] {
        answered(&repo, &["undo", "-p"], answers).success();
        repo.assert_file("a.txt", &edited, "the edit is in it");
        assert_eq!(repo.path("b.txt").exists(), stays);
        repo.redo();
        repo.files().assert_is(&files, "redo brings it back");
    }
}

#[test]
fn nothing_chosen_is_nothing_done() {
    let repo = turn_of_hunks(Mode::Commit);
    let before = repo.everything();
    for answers in ["n\nn\nn\nn\n", "q\n", ""] {
        let left = answered(&repo, &["undo", "-p"], answers);
        left.exits(4);
        left.warns("error: nothing to undo: no change was chosen");
        repo.everything().assert_is(&before, answers);
    }
}

#[test]
fn files_come_back_in_parts() {
    in_both_modes(|mode| {
        let repo = turn_of_hunks(mode);
        repo.agent("seq 5 >a.txt; rm d/new.txt");
        let before = repo.state();
        let done = answered(&repo, &["restore", "-p", "1"], "y\ny\n");
        done.success();
        done.warns("Apply addition to worktree");
        repo.assert_file("d/new.txt", "new\n", "it came back");
        repo.assert_file("a.txt", lines(&[(3, "three"), (20, "twenty")]), "it came back");
        let back = repo.state();
        repo.undo();
        repo.state().assert_is(&before, "it is a turn");
        repo.redo();
        repo.state().assert_is(&back, "like any other");
        repo.undo();
        // One of its files, in each form.
        for typed in [&["restore", "-p", "1:d/new.txt"][..], &["restore", "-p", "1", "--", "d"]] {
            answered(&repo, typed, "y\nq\n").success();
            repo.assert_file("d/new.txt", "new\n", "it came back");
            repo.assert_file("a.txt", "1\n2\n3\n4\n5\n", "it did not");
            repo.undo();
        }
    });
}

#[test]
fn an_editor_in_the_worktree_is_started_at_its_top() {
    for editor in ["tools/edit", "cd tools && ./edit", "where=../there; pwd >$where; :", "'tools/edit' with \"a word\""]
    {
        let repo = turn_of_hunks(Mode::Commit);
        repo.write("tools/edit", "#!/bin/sh\ncd \"$(git rev-parse --show-toplevel)\"; pwd >../there\n");
        repo.chmod("tools/edit", 0o755);
        let mut command = repo.oxundo_command(["undo", "-p"]);
        command.current_dir(repo.path("d")).env("GIT_EDITOR", editor);
        Output::fed(&mut command, b"e\nq\n").success();
        assert_eq!(repo.sh("cat ../there"), repo.root().display().to_string(), "{editor}");
    }
}

#[test]
fn what_git_cannot_ask_about_line_by_line_goes_as_a_whole() {
    let repo = Sandbox::new();
    repo.write("binary", b"a\0b".as_slice()).write("shut", "key\n").write("tool", "#!/bin/sh\n").write("empty", "");
    repo.link("link", "binary");
    repo.git(["add", "."]);
    repo.git(["commit", "-qm", "all kinds"]);
    repo.chmod("shut", 0o600);
    let first = repo.files();
    let script = "printf 'c\\0d' >binary; chmod 640 shut; chmod +x tool; ln -sf tool link; rm empty; : >new; \
                  printf '\\0' >blob; printf 'n\\n' >--; ln -s new other";
    repo.turn(Mode::Ghost, script);
    let turned = repo.files();
    answered(&repo, &["undo", "-p"], &"n\n".repeat(20)).exits(4);
    repo.files().assert_is(&turned, "no is no");
    let all = answered(&repo, &["undo", "-p"], &"y\n".repeat(20));
    all.success();
    repo.files().assert_is(&first, "yes to all is all");
    all.warns("binary file, 3 bytes");
    all.warns("link to tool");
    all.warns("mode 0640");
    repo.redo();
    repo.files().assert_is(&turned, "and back");
}

#[test]
fn what_is_set_for_git_is_no_obstacle() {
    for (name, value) in [("GIT_LITERAL_PATHSPECS", "1"), ("GIT_DIFF_OPTS", "-u0")] {
        let repo = turn_of_hunks(Mode::Ghost);
        let mut below = repo.clone();
        below.start_in("d");
        let mut ask = below.oxundo_command(["undo", "-p"]);
        let asked = Output::fed(ask.env(name, value), b"y\nn\nn\ny\n");
        asked.success();
        repo.assert_file("a.txt", lines(&[(20, "twenty")]), name);
        repo.assert_file("old.txt", "old\n", name);
        let mut rest = repo.oxundo_command(["undo", "--", "."]);
        Output::of(rest.env(name, value)).success();
        repo.assert_file("a.txt", lines(&[]), name);
    }
}

/// `git restore -p` brings a deleted file back as one that cannot be executed.
#[test]
fn a_file_that_comes_back_is_executable_as_it_was() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.write("tool", "#!/bin/sh\n").write("a tool of mine", "#!/bin/sh\n");
        repo.chmod("tool", 0o755);
        repo.git(["add", "."]);
        repo.git(["commit", "-qm", "tools"]);
        repo.chmod("a tool of mine", 0o755);
        let first = repo.files();
        repo.turn(mode, "rm tool 'a tool of mine'; echo new >new; chmod +x new");
        let turned = repo.files();
        answered(&repo, &["undo", "-p"], "y\ny\ny\n").success();
        repo.files().assert_is(&first, "yes to all is all");
        repo.redo();
        repo.files().assert_is(&turned, "and back");
        answered(&repo, &["restore", "-p", "1:before"], "y\ny\n").success();
        assert_eq!(repo.sh("stat -c %a tool").trim(), "755", "restored");
    });
}

#[test]
fn bytes_are_bytes_whatever_is_set() {
    let repo = Sandbox::new();
    let crlf = |text: &str| text.replace('\n', "\r\n");
    repo.write(".gitattributes", "*.txt text eol=crlf\n").write("a.txt", crlf(&lines(&[])));
    repo.git(["add", "."]);
    repo.git(["commit", "-qm", "lines"]);
    repo.sh("git config apply.whitespace fix; git config core.autocrlf true; git config diff.noprefix true");
    repo.append_to_config("[core]\n\thooksPath = /hooks\n[interactive]\n\tdiffFilter = sed s/^/seen:/\n");
    let changed = crlf(&lines(&[(3, "three  "), (20, "twenty\t")]));
    repo.write("changed", &changed);
    repo.turn(Mode::Ghost, "cp changed a.txt; echo '*.txt -text -diff filter=none' >.gitattributes");
    let asked = answered(&repo, &["undo", "-p", "--", "a.txt"], "n\ny\n");
    asked.success();
    repo.assert_file("a.txt", crlf(&lines(&[(3, "three  ")])), "to the byte");
}

#[test]
fn bytes_are_bytes_whatever_the_environment_sets() {
    let sets =
        ["'apply.whitespace=fix'", "'apply.whitespace=error-all'", "'core.autocrlf=input' 'core.bigfilethreshold=1'"];
    for set in sets {
        let repo = Sandbox::new();
        let (before, after) = ("trailing \t \r\n\n", "changed \r\n");
        repo.commit("f", before);
        repo.agent(&format!("printf '{}' >f", after.escape_default()));
        let in_parts = |args: &[&str]| {
            let mut command = repo.oxundo_command(args);
            Output::fed(command.env("GIT_CONFIG_PARAMETERS", set), b"y\n").success();
        };
        in_parts(&["undo", "-p"]);
        repo.assert_file("f", before, set);
        repo.redo();
        in_parts(&["restore", "-p", "1:before"]);
        repo.assert_file("f", before, set);
    }
}

/// Whatever ends the questions leaves all as it was.
#[test]
fn questions_that_are_cut_off_change_nothing() {
    let repo = turn_of_hunks(Mode::Commit);
    let before = repo.everything();
    let asked = |end: &dyn Fn(&mut Watched)| {
        let command =
            repo.launched_command("trap : INT; sh -c 'echo $$ >../pid; exec \"$0\" undo -p' \"$0\"; echo code $?", &[]);
        let mut screen = Watched::start(command, 80, 24);
        screen.shows("(1/2) Discard this hunk").types("y\r").shows("(2/2) Discard");
        end(&mut screen);
        screen.ends();
        repo.everything().assert_is(&before, "nothing is changed");
        screen.screen().contents()
    };
    let said = asked(&|screen| {
        screen.types("\x03");
    });
    assert!(said.contains("interrupted: nothing is changed") && said.contains("code 130"), "{said}");
    for signal in ["TERM", "HUP"] {
        let said = asked(&|_| drop(repo.sh(&format!("kill -{signal} $(cat ../pid)"))));
        assert!(said.contains("code 130"), "{signal}: {said}");
    }
}

#[test]
fn what_killed_questions_leave_goes_with_gc_whoever_has_the_number_now_and_living_ones_stay() {
    let repo = turn_of_hunks(Mode::Commit);
    let asked = || {
        let listed = repo.sh("ls -d .git/oxundo/asked-* 2>/dev/null || true");
        listed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let begin = || {
        let mut screen =
            Watched::start(repo.launched_command("echo $$ >../pid; exec \"$0\" undo -p -- a.txt", &[]), 80, 24);
        screen.shows("(1/2) Discard this hunk");
        screen
    };
    let mut killed = begin();
    repo.sh("kill -KILL $(cat ../pid)");
    killed.ends();
    let left = asked();
    assert_eq!(left.len(), 1, "it is left: {left:?}");
    // The number is that of a living process now.
    repo.sh(&format!("mv {} .git/oxundo/asked-{}", left[0], std::process::id()));
    let mut living = begin();
    repo.oxundo(["gc", "--dry-run"]).success();
    assert_eq!(asked().len(), 1, "the next question has swept already");
    repo.sh(&format!("cp -r {} .git/oxundo/asked-{}", asked()[0], std::process::id()));
    repo.oxundo(["gc"]).success();
    assert_eq!(asked().len(), 1, "of the two the living one stays: {:?}", asked());
    living.types("y\r").shows("(2/2) Discard").types("n\r").ends();
    assert!(living.screen().contents().contains("Took out parts"), "{}", living.screen().contents());
    assert_eq!(asked(), Vec::<String>::new());
}

#[test]
fn a_terminal_that_is_gone_gives_no_answer() {
    let repo = turn_of_hunks(Mode::Commit);
    let before = repo.everything();
    // Of a terminal that is not its own nobody tells.
    let (mut outside, inside) = opened_terminal().expect("open a terminal");
    let end = || Stdio::from(inside.try_clone().expect("one more end of the terminal"));
    let mut command = repo.launched_command("exec timeout 60 \"$0\" undo -p", &[]);
    let mut child = command.env("TERM", "xterm").stdin(end()).stdout(end()).stderr(end()).spawn().expect("start it");
    drop((command, inside));
    let mut shown = String::new();
    let mut until = |outside: &mut File, text: &str| {
        while !shown.contains(text) {
            let mut part = [0; 4096];
            let n = outside.read(&mut part).expect("read what it shows");
            shown.push_str(&String::from_utf8_lossy(&part[..n]));
        }
    };
    until(&mut outside, "(1/2) Discard this hunk");
    outside.write_all(b"y\n").expect("answer");
    until(&mut outside, "(2/2) Discard this hunk");
    drop(outside);
    // git takes that for the end of the answers, and does what was chosen until then.
    assert_eq!(child.wait().expect("wait").code(), Some(130));
    repo.everything().assert_is(&before, "nothing is changed");
}

#[test]
fn git_that_fails_changes_nothing() {
    let repo = turn_of_hunks(Mode::Commit);
    let before = repo.everything();
    for end in ["exit 1", "kill -9 $$", "kill -13 $$"] {
        let git = format!("#!/bin/sh\ncase $1 in restore) echo x >a.txt; {end};; esac\nexec $REAL \"$@\"\n");
        repo.write("../bin/git", git).chmod("../bin/git", 0o755);
        let real = repo.sh("command -v git");
        let mut command = repo.oxundo_command(["undo", "-p"]);
        let path = format!("{}:{}", repo.path("../bin").display(), std::env::var("PATH").unwrap_or_default());
        command.env("REAL", real.trim()).env("PATH", path);
        let failed = Output::fed(&mut command, b"y\n");
        assert!(failed.code != 0 && failed.err().contains("git restore -p: "), "it is git that failed: {failed:?}");
        repo.everything().assert_is(&before, end);
    }
}

/// While the user answers, another program saves: what it saved is kept, or all is refused.
#[test]
fn what_is_saved_while_git_asks_stays() {
    for (line, is_kept) in [(28, true), (3, false)] {
        let repo = turn_of_hunks(Mode::Commit);
        let editor = format!("sed -i '{line}s/.*/saved/' {}; true", repo.path("a.txt").display());
        let mut command = repo.oxundo_command(["undo", "-p", "--", "a.txt"]);
        command.env("GIT_EDITOR", editor);
        // The editor leaves the hunk as it is.
        let done = Output::fed(&mut command, b"e\nn\n");
        if is_kept {
            done.success();
            repo.assert_file("a.txt", lines(&[(20, "twenty"), (28, "saved")]), "both are there");
        } else {
            done.exits(3);
            repo.assert_file("a.txt", lines(&[(3, "saved"), (20, "twenty")]), "it is what was saved");
        }
        repo.assert_sound();
    }
}

/// While the user answers, another turn is undone, or made: the answers are of none but what was asked about.
#[test]
fn the_answers_are_of_the_turn_that_was_shown() {
    for (args, meanwhile) in [
        (&["undo", "-p"][..], "undo"),
        (&["undo", "-p"], "run -- sh -c 'sed -i 20s/.*/another/ a.txt'"),
        (&["undo", "-p", "--steps", "2"], "undo"),
        (&["restore", "-p", "@~1"], "undo"),
        (&["restore", "-p", "@~1"], "run -- sh -c 'sed -i 20s/.*/another/ a.txt'"),
    ] {
        let repo = turn_of_hunks(Mode::Commit);
        repo.agent("sed -i '3s/.*/THREE/;28s/.*/last/' a.txt");
        repo.agent("sed -i '3s/.*/3/;12s/.*/twelve/' a.txt");
        let other = repo.copy();
        other.sh(&format!("oxundo -q {meanwhile}"));
        let wanted = other.state();
        let top = repo.root().display().to_string();
        // It is started as git starts it, in a worktree of git's own.
        let editor = format!("unset $(git rev-parse --local-env-vars); cd {top} && oxundo -q {meanwhile}; true");
        let mut command = repo.oxundo_command(args);
        command.env("GIT_EDITOR", editor);
        let refused = Output::fed(&mut command, b"e\ny\ny\ny\ny\n");
        refused.exits(3);
        refused.warns("something has changed since");
        let changes = |state: &State| state.clone().only(|fact| fact.starts_with("on disk"));
        changes(&repo.state()).assert_is(&changes(&wanted), &format!("{args:?}, {meanwhile}: that alone is done"));
    }
}

/// What is saved in a file of which nothing was chosen is in nobody's way.
#[test]
fn what_is_saved_while_git_asks_keeps_no_other_file_from_being_taken_back() {
    for args in [&["undo", "-p"][..], &["restore", "-p", "1:before"]] {
        let repo = Sandbox::new();
        repo.sh("echo a >a; echo b >b; git add .; git commit -qm ab");
        repo.agent("echo A >a; echo B >b");
        let editor = format!("echo saved >{}; true", repo.path("a").display());
        let mut command = repo.oxundo_command(args);
        // The editor leaves the hunk of a as it is, and it is not chosen.
        Output::fed(command.env("GIT_EDITOR", editor), b"n\ne\n").success();
        repo.assert_file("a", "saved\n", "it is the user's");
        repo.assert_file("b", "b\n", "this was chosen");
        repo.assert_sound();
    }
}

#[test]
fn edits_that_are_overwritten_are_not_said_to_be_kept() {
    for args in [&["undo", "-p", "--edits=overwrite"][..], &["undo", "--edits=overwrite", "--", "a.txt"]] {
        let repo = turn_of_hunks(Mode::Commit);
        repo.sh("sed -i '12s/.*/mine/' a.txt");
        let mut command = repo.oxundo_command([&["--json"], args].concat());
        let done: Value = serde_json::from_slice(&Output::fed(&mut command, b"a\nn\nn\n").stdout).expect("one object");
        assert_eq!((&done["kept_edits"], &done["overwritten"]), (&json!([]), &json!(["a.txt"])), "{args:?}");
        repo.assert_file("a.txt", lines(&[]), "as before the turn");
        repo.redo();
        repo.assert_file("a.txt", lines(&[(3, "three"), (12, "mine"), (20, "twenty")]), "it is there again");
    }
}

#[test]
fn a_file_with_edits_in_the_way_is_not_asked_about_and_the_others_are() {
    let repo = Sandbox::new();
    repo.sh("echo a >a; echo b >b; git add .; git commit -qm ab");
    repo.agent("echo A >a; echo B >b");
    repo.sh("echo mine >a");
    for args in [&["undo", "-p"][..], &["undo", "-p", "--only", "1"]] {
        let done = answered(&repo, args, "y\n");
        done.success();
        done.warns("undo would overwrite changes in 'a' (line 1): not asked about");
        repo.assert_file("a", "mine\n", "it stays");
        repo.assert_file("b", "b\n", "this was chosen");
        assert!(!repo.oxundo(["log"]).out().contains("exclude"), "the turn is called by what was taken out");
        repo.redo();
    }
    let before = repo.everything();
    answered(&repo, &["undo", "-p", "--", "a"], "y\n").exits(3);
    repo.everything().assert_is(&before, "alone it is refused");
}

/// The same, where all of a file was chosen: nobody was asked about what was saved since.
#[test]
fn what_is_saved_while_git_asks_stays_where_all_was_chosen() {
    for args in [&["undo", "-p", "--", "a.txt"][..], &["restore", "-p", "1:before", "--", "a.txt"]] {
        let repo = turn_of_hunks(Mode::Commit);
        let editor = format!("sed -i '12s/.*/saved/' {}; true", repo.path("a.txt").display());
        let mut command = repo.oxundo_command(args);
        command.env("GIT_EDITOR", editor);
        // The editor leaves the hunk as it is.
        let done = Output::fed(&mut command, b"e\ny\n");
        repo.assert_file("a.txt", lines(&[(3, "three"), (12, "saved"), (20, "twenty")]), "it is refused");
        done.exits(3);
        done.warns("'a.txt' has changed since you were asked");
        let again = answered(&repo, args, "y\n");
        again.success();
        repo.assert_file("a.txt", lines(&[(12, "saved"), (20, "twenty")]), "asked again, it goes along");
    }
}

/// A file in the place of a directory is asked about with all that is in that: neither could be had alone.
#[test]
fn a_file_in_a_directorys_place_comes_and_goes_as_a_whole() {
    for (turn, back) in [("rm f; mkdir -p f/d; echo y >f/d/y; echo z >f/z", "f"), ("rm -r g; echo file >g", "g/a")] {
        let repo = Sandbox::new();
        repo.sh("echo f >f; mkdir g; echo a >g/a; echo b >g/b; git add -A; git commit -qm base");
        let before = repo.files();
        repo.agent(&format!("{turn}; echo two >>README.txt"));
        let after = repo.files();
        // The names come in their order.
        answered(&repo, &["undo", "-p"], "n\ny\n").success();
        assert!(repo.read("README.txt").ends_with(b"two\n") && repo.path(back).is_file(), "{turn}");
        repo.redo();
        repo.files().assert_is(&after, turn);
        answered(&repo, &["undo", "-p"], "y\ny\n").success();
        repo.files().assert_is(&before, turn);
        repo.assert_sound();
    }
}

#[test]
fn the_answers_are_a_plan_like_any_other() {
    let repo = turn_of_hunks(Mode::Commit);
    let before = repo.everything();
    let offered = answered(&repo, &["undo", "-p", "--plan", "--json", "--", "a.txt"], "n\ny\n");
    offered.success();
    repo.everything().without("git oxundo/plans").assert_is(&before, "a plan changes nothing");
    let plan: Value = serde_json::from_str(&offered.out()).expect("JSON alone");
    let id = plan["plan"].as_str().expect("it has an id");
    repo.oxundo(["apply", id]).says("Took out parts of turn 1");
    repo.assert_file("a.txt", lines(&[(3, "three")]), "what was chosen");
    repo.oxundo(["apply", id]).says("Done before");
    repo.redo();
    repo.sh("sed -i '20s/.*/mine/' a.txt");
    repo.oxundo(["undo", "-p", "--plan", "--json", "--", "a.txt"]).exits(3);
}

#[test]
fn what_has_no_hunks_says_so() {
    let repo = turn_of_hunks(Mode::Commit);
    for args in [&["undo", "-p", "--revert"][..], &["restore", "-p", "--exact", "1"], &["undo", "-p", "-i"]] {
        repo.oxundo(args).exits(2);
    }
    let mut terminal = Terminal::start(repo.oxundo_command(["undo", "-p", "--only", "1", "--", "d"]));
    terminal.shows("Discard addition").types("y\r").shows("Took out parts of turn 1");
}
