//! Sessions that overlap in one worktree: each is named, with its own prompt and model, wherever the turn is told of.

use crate::sandbox::{Mode, Output, Sandbox, in_both_modes};
use crate::steps::{self, tick};
use serde_json::{Value, json};

/// Calls a hook of an agent's, for a session whose model it tells.
#[track_caller]
fn hook(repo: &Sandbox, [agent, session, model]: [&str; 3], event: &str, more: &Value) {
    let mut payload = json!({"hook_event_name": event, "session_id": session, "model": model});
    for (key, value) in more.as_object().into_iter().flatten() {
        payload[key] = value.clone();
    }
    let output = Output::fired(&mut repo.oxundo_command(["hook", agent]), payload.to_string().as_bytes());
    assert_eq!((output.code, output.out(), output.err()), (0, String::new(), String::new()));
}

#[track_caller]
fn asked(repo: &Sandbox, who: [&str; 3], prompt: &str) {
    hook(repo, who, "UserPromptSubmit", &json!({"prompt": prompt, "prompt_id": prompt, "turn_id": prompt}));
}

/// A line of the session's at the end of the file, by a call of its own.
#[track_caller]
fn writes(repo: &Sandbox, who: [&str; 3], line: &str) {
    calls(repo, who, ["Edit", line, "f"], &format!("echo '{line}' >>f"));
}

/// A call of a tool, which may name a file, around what it does.
#[track_caller]
fn calls(repo: &Sandbox, who: [&str; 3], [tool, id, path]: [&str; 3], script: &str) {
    let input = json!({"file_path": repo.path(path), "command": script});
    let about = json!({"tool_name": tool, "tool_use_id": id, "tool_input": input});
    hook(repo, who, "PreToolUse", &about);
    repo.sh(script);
    hook(repo, who, "PostToolUse", &about);
    tick();
}

/// A repository in which these files are committed.
fn with_files(mode: Mode, script: &str) -> Sandbox {
    let repo = Sandbox::new();
    repo.sh(&format!("{script}; git add -A; git commit -qm files"));
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    repo
}

const ONE: [&str; 3] = ["claude", "one", "opus-5"];
const TWO: [&str; 3] = ["claude", "two", "haiku-5"];
const THREE: [&str; 3] = ["codex", "three", "gpt-6"];

/// A turn of three sessions, one of which gets another prompt while the others are at work.
fn overlapping(mode: Mode) -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("f", "user\n");
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    asked(&repo, ONE, "add a cache\nas large as it gets");
    writes(&repo, ONE, "by one");
    asked(&repo, TWO, "fix the tests with password=hunter2\nall of them");
    writes(&repo, TWO, "by two");
    hook(&repo, ONE, "Stop", &json!({}));
    asked(&repo, THREE, "write the docs");
    asked(&repo, ONE, "and a bound");
    writes(&repo, THREE, "by three");
    for who in [TWO, ONE, THREE] {
        hook(&repo, who, "Stop", &json!({}));
    }
    repo
}

#[test]
fn each_session_of_a_turn_is_named_with_its_own_prompts_and_model() {
    in_both_modes(|mode| {
        let repo = overlapping(mode);
        let log = repo.log();
        assert_eq!((log.len(), &log[0]["shared"], &log[0]["model"]), (1, &json!(true), &json!("opus-5")));
        let wanted = json!([
            {"agent": "claude", "session": "one", "model": "opus-5", "messages": ["add a cache", "and a bound"]},
            {"agent": "claude", "session": "two", "model": "haiku-5", "messages": ["fix the tests with password=***"]},
            {"agent": "codex", "session": "three", "model": "gpt-6", "messages": ["write the docs"]},
        ]);
        assert_eq!(log[0]["sessions"], wanted);
        let text = repo.oxundo(["log"]).out();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        let others =
            ["      with claude:haiku-5: fix the tests with password=***", "      with codex:gpt-6: write the docs"];
        assert_eq!(lines, others, "{text}");
        repo.oxundo(["show", "1"]).says("with codex:gpt-6: write the docs\n");
        let names = repo.oxundo(["log", "--format=%(agents)|%(sessions)"]).out();
        assert_eq!(names, "claude:opus-5, claude:haiku-5, codex:gpt-6|one, two, three");
        assert!(!repo.sh("oxundo log; oxundo log --json").contains("hunter2"), "what is listed is what git may know");
        // The whole of each is in the record.
        let prompts = "claude (session one):\nadd a cache\nas large as it gets\n\nclaude (session one):\nand a bound\n\n\
                       claude (session two):\nfix the tests with password=hunter2\nall of them\n\ncodex (session three):\nwrite the docs";
        assert_eq!(repo.oxundo(["show", "1", "--prompt"]).out(), prompts);
        for (word, found) in [("as large", 1), ("all of them", 1), ("the docs", 1), ("nowhere", 0)] {
            let (_, log) = repo.json(["log", "--grep", word]);
            assert_eq!(log["turns"].as_array().map(Vec::len), Some(found), "{word}");
        }
        let (_, blamed) = repo.json(["blame", "f"]);
        let by = |line: usize| {
            let by = &blamed["lines"][line]["by"];
            json!([by["agent"], by["session"], by["model"], by["prompt"]])
        };
        assert_eq!(by(1), json!(["claude", "one", "opus-5", "add a cache / and a bound"]));
        assert_eq!(by(2), json!(["claude", "two", "haiku-5", "fix the tests with password=hunter2"]));
        assert_eq!(by(3), json!(["codex", "three", "gpt-6", "write the docs"]));
        repo.undo();
        repo.redo();
        assert_eq!(repo.log()[0]["sessions"], wanted, "redone it is the same");
        repo.assert_sound();
    });
}

#[test]
fn the_commit_of_several_sessions_has_a_trailer_and_a_note_of_each() {
    let repo = overlapping(Mode::Commit);
    let trailers = || repo.git(["log", "-1", "--format=%(trailers:key=Assisted-by,valueonly,separator=|)"]);
    assert_eq!(trailers().trim_end(), "claude:opus-5|claude:haiku-5|codex:gpt-6");
    assert_eq!(repo.git(["log", "-1", "--format=%s"]).trim_end(), "add a cache");
    let noted = || {
        let notes = repo.git(["notes", "--ref=oxundo", "show", "HEAD"]);
        let all = notes.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        all.map(|note| json!([note["turn"], note["agent"], note["session"]])).collect::<Vec<_>>()
    };
    let wanted = [json!([1, "claude", "one"]), json!([1, "claude", "two"]), json!([1, "codex", "three"])];
    assert_eq!(noted(), wanted);
    repo.undo();
    repo.redo();
    assert_eq!(noted(), wanted, "each once");
    // The turn's own commit is still its own, by whichever of its notes.
    assert_eq!(repo.oxundo(["show", "HEAD", "--prompt"]).out().lines().next(), Some("claude (session one):"));
    repo.agent("echo more >>f");
    repo.oxundo(["squash", "-m", "all"]).success();
    assert_eq!(trailers().trim_end(), "claude:haiku-5|claude:opus-5|codex:gpt-6|sh");
}

#[test]
fn a_line_that_several_may_have_written_is_told_as_nobodys_in_particular() {
    let repo = Sandbox::new();
    repo.git(["config", "oxundo.steps", "off"]);
    repo.commit("f", "user\n");
    asked(&repo, ONE, "first");
    asked(&repo, THREE, "second");
    repo.sh("echo whose >>f");
    for who in [ONE, THREE] {
        hook(&repo, who, "Stop", &json!({}));
    }
    let by = || {
        let (_, blamed) = repo.json(["blame", "f"]);
        let by = &blamed["lines"][1]["by"];
        json!([by["agent"], by["session"], by["model"]])
    };
    assert_eq!(by(), json!(["claude and codex", null, null]));
    // The note is all that is left when the turn has gone.
    repo.sh("git update-ref -d refs/oxundo/timeline; rm -rf .git/oxundo");
    assert_eq!(by(), json!(["claude and codex", null, null]));
}

#[test]
fn a_session_beside_a_run_is_named_beside_the_runs_own_agent() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.commit("f", "user\n");
        repo.sh("mkfifo ../go ../come");
        let script = "echo run >>f; echo >../come; read -r go <../go";
        let ghost: &[&str] = if mode == Mode::Ghost { &["--ghost"] } else { &[] };
        let args = [&["run", "--agent", "aider", "-m", "by hand"], ghost, &["--", "sh", "-c", script]].concat();
        let run = repo.spawn(&args);
        repo.sh("read -r come <../come");
        asked(&repo, TWO, "fix the tests");
        repo.sh("echo two >>f");
        hook(&repo, TWO, "Stop", &json!({}));
        repo.sh("echo >../go");
        assert!(Output::awaited(run).code == 0, "the run is over");
        let sessions = &repo.log()[0]["sessions"];
        let wanted = json!([
            {"agent": "aider", "session": null, "model": null, "messages": ["by hand"]},
            {"agent": "claude", "session": "two", "model": "haiku-5", "messages": ["fix the tests"]},
        ]);
        assert_eq!(sessions, &wanted);
        if mode == Mode::Commit {
            let trailers = repo.git(["log", "-1", "--format=%(trailers:key=Assisted-by,valueonly,separator=|)"]);
            assert_eq!(trailers.trim_end(), "aider|claude:haiku-5");
        }
    });
}

#[test]
fn a_session_beside_a_run_is_taken_out_without_what_the_runs_own_agent_wrote() {
    in_both_modes(|mode| {
        for by_shell in [false, true] {
            let repo = Sandbox::new();
            repo.commit("f", "user\n");
            repo.sh("mkfifo ../go ../come");
            let script = "echo run >g; sed -i '1i run' f; echo >../come; read -r go <../go; echo more >>g; echo >../come; read -r go <../go";
            let ghost: &[&str] = if mode == Mode::Ghost { &["--ghost"] } else { &[] };
            let args = [&["run", "--agent", "aider"], ghost, &["--", "sh", "-c", script]].concat();
            let run = repo.spawn(&args);
            repo.sh("read -r come <../come");
            asked(&repo, TWO, "fix the tests");
            writes(&repo, TWO, "by two");
            let meanwhile = "echo >../go; read -r come <../come";
            if by_shell {
                let shell = json!({"tool_name": "Bash", "tool_use_id": "shell", "tool_input": {"command": "echo >>h"}});
                hook(&repo, TWO, "PreToolUse", &shell);
                repo.sh(&format!("{meanwhile}; echo two >>h"));
                hook(&repo, TWO, "PostToolUse", &shell);
            } else {
                repo.sh(meanwhile);
            }
            hook(&repo, TWO, "Stop", &json!({}));
            repo.sh("echo >../go");
            assert!(Output::awaited(run).code == 0, "the run is over");
            let done = repo.state();
            if by_shell {
                let error = repo.refuses(&["undo", "--session", "two"], "conflict");
                let message = error["message"].as_str().expect("a message");
                assert!(message.contains("nobody can tell whose it is"), "the run wrote meanwhile, too: {message}");
                repo.state().assert_is(&done, "nothing is changed");
                continue;
            }
            repo.oxundo(["undo", "--session", "two"]).success();
            repo.assert_file("f", "run\nuser\n", "its line alone is out");
            repo.assert_file("g", "run\nmore\n", "it is the run's");
            repo.redo();
            repo.state().assert_is(&done, "redo");
        }
    });
}

#[test]
fn what_a_session_did_and_is_undone_is_nothing_to_undo() {
    let repo = Sandbox::new();
    let none = repo.state();
    for (session, file) in [("one", "a"), ("one", "b"), ("two", "c")] {
        repo.oxundo(["run", "--session", session, "--", "touch", file]).success();
    }
    repo.oxundo(["undo", "3"]).success();
    let error = repo.refuses(&["undo", "--session", "one"], "nothing");
    assert_eq!(error["message"], "nothing to undo: what session 'one' did is undone already");
    assert_eq!(error["hints"][1], "run 'oxundo redo --to 2' to bring it back", "both its turns");
    repo.state().assert_is(&none, "nothing is changed");
    repo.oxundo(["redo", "--to", "2"]).success();
    repo.oxundo(["undo", "--session", "one"]).success();
    assert_eq!(repo.json(["undo", "--session", "three"]).1["error"]["code"], "not_found");
}

/// Two sessions at work, whose calls these acts are: the session, the tool, what it is about or nothing, and what it does.
fn acted(acts: &[(&str, &str, &str, &str)]) -> Sandbox {
    acted_from("true", acts)
}

/// The same, with something there before that.
fn acted_from(begun: &str, acts: &[(&str, &str, &str, &str)]) -> Sandbox {
    let repo = Sandbox::new();
    repo.sh("seq 20 >f; seq 20 >g; git add .; git commit -qm files");
    repo.sh(begun);
    tick();
    for session in ["a", "b"] {
        steps::hook(&repo, session, "UserPromptSubmit", &json!({}));
    }
    for (id, (session, tool, path, script)) in acts.iter().enumerate() {
        let about = json!({"tool_name": tool, "tool_use_id": format!("{session}{id}"),
            "tool_input": {"command": "x", "file_path": repo.path(path)}});
        match *tool {
            "listed" => steps::hook(&repo, session, "Stop", &json!({"background_tasks": [{"status": "running"}]})),
            "prompt" => steps::hook(&repo, session, "UserPromptSubmit", &json!({})),
            "begins" => {
                let about = json!({"tool_name": "Edit", "tool_use_id": "never", "tool_input": about["tool_input"]});
                steps::hook(&repo, session, "PreToolUse", &about);
            }
            _ => steps::hook(&repo, session, "PreToolUse", &about),
        }
        repo.sh(script);
        if ["Bash", "Edit"].contains(tool) {
            steps::hook(&repo, session, "PostToolUse", &about);
        }
        tick();
    }
    for session in ["a", "b"] {
        steps::hook(&repo, session, "Stop", &json!({}));
    }
    repo
}

#[test]
fn a_session_is_taken_out_of_a_file_that_another_has_moved_and_it_has_edited_since() {
    let made = ("a", "Bash", "", "seq 30 | sed s/^/its/ >new.txt");
    let edited = ("a", "Edit", "moved.txt", "sed -i s/^its9$/more/ moved.txt");
    let repo = acted(&[made, ("b", "Bash", "", "mv new.txt moved.txt"), edited]);
    let done = repo.state();
    repo.oxundo(["undo", "--session", "a"]).success();
    assert!(!repo.exists("moved.txt") && !repo.exists("new.txt"), "all of it is the session's");
    repo.redo();
    repo.state().assert_is(&done, "redo");
    let repo = acted(&[made, ("b", "Bash", "", "mv new.txt moved.txt; echo others >>moved.txt"), edited]);
    let done = repo.state();
    let error = repo.refuses(&["undo", "--session", "a"], "conflict");
    assert_eq!(error["paths"], json!(["moved.txt"]));
    repo.state().assert_is(&done, "nothing is changed");
}

/// None of the hints is refused with the same words: the later turn is named, and the files of then are to be had.
#[test]
fn the_hints_over_a_session_beside_which_somebody_has_written_lead_on() {
    for (later, is_turns) in [("echo MINE >>f", false), ("echo LATER >>f", true)] {
        let repo = acted(&[("b", "Edit", "g", "echo AGENT2 >>g"), ("a", "Edit", "f", "echo AGENT1 >>f")]);
        if is_turns {
            repo.turn(Mode::Commit, later);
        } else {
            repo.sh(later);
        }
        let error = repo.refuses(&["undo", "--session", "a"], "conflict");
        let hints: Vec<_> = error["hints"].as_array().expect("hints").iter().filter_map(|hint| hint.as_str()).collect();
        assert!(hints.iter().all(|hint| !hint.contains("overwrite")), "{hints:?}");
        assert_eq!(error["message"].as_str().is_some_and(|message| message.contains("; turn 2 ")), is_turns, "{error}");
        assert_eq!(hints.iter().any(|hint| hint.contains("'oxundo undo --only 1..2'")), is_turns, "{hints:?}");
        assert_eq!(hints.iter().any(|hint| hint.contains("git stash")), !is_turns, "{hints:?}");
    }
}

/// What is ignored and one session moves, changes and moves back comes back with the whole turn, and with no session's share alone.
#[test]
fn a_session_is_taken_out_beside_what_another_has_moved_that_is_ignored() {
    let begun = "echo '*.ig' >.gitignore; git add .gitignore; git commit -qm ignore; seq 30 >s.ig; echo USER1 >>s.ig";
    let repo = acted_from(
        begun,
        &[
            ("a", "Bash", "", "mv s.ig s.txt"),
            ("a", "Bash", "", "sed -i 3s/.*/AGENT1/ s.txt"),
            ("a", "Bash", "", "mv s.txt s.ig"),
            ("b", "Bash", "", "echo AGENT2 >>f"),
        ],
    );
    let done = repo.state();
    repo.oxundo(["undo", "--session", "b"]).success();
    assert_eq!(repo.sh("sed -n 3p s.ig; tail -1 s.ig; grep -c AGENT2 f || :").trim(), "AGENT1\nUSER1\n0");
    repo.redo();
    repo.state().assert_is(&done, "redo");
    repo.undo();
    assert_eq!(repo.sh("sed -n 3p s.ig; tail -1 s.ig; grep -c AGENT2 f || :").trim(), "3\nUSER1\n0");
}

#[test]
fn what_changed_in_the_background_or_under_another_sessions_edit_is_no_ones_alone() {
    let own = ("a", "Edit", "f", "sed -i s/^1$/its/ f");
    let background = [
        own,
        ("a", "listed", "", "echo its >new.txt; sed -i s/^18$/its/ g"),
        ("b", "Bash", "", "echo others >other.txt"),
        ("a", "prompt", "", "true"),
        ("a", "Edit", "f", "sed -i s/^5$/its/ f"),
    ];
    // A file that an edit of another session's names, of which nothing tells the end.
    let under = [
        own,
        ("a", "begins", "g", "true"),
        ("b", "Bash", "", "sed -i s/^2$/others/ g"),
        ("a", "Edit", "g", "sed -i s/^18$/its/ g"),
    ];
    for acts in [&background[..], &under[..]] {
        let repo = acted(acts);
        let done = repo.state();
        let error = repo.refuses(&["undo", "--session", "a"], "conflict");
        assert_eq!(error["paths"][0], "g", "{error}");
        repo.state().assert_is(&done, "nothing is changed");
        let shares = repo.json(["log", "--steps"]).1["turns"][0]["steps"].to_string();
        assert!(shares.contains("shared"), "{shares}");
        repo.undo();
        repo.redo();
        repo.state().assert_is(&done, "redo");
    }
}

/// Whichever of the two goes on, or says first that it is done.
#[test]
fn what_changed_while_both_had_something_in_the_background_is_neithers_alone() {
    for (first, then) in [("a", "b"), ("b", "a")] {
        let repo = acted(&[
            ("a", "Edit", "f", "sed -i s/^1$/its/ f"),
            ("b", "Edit", "f", "sed -i s/^18$/others/ f"),
            (first, "listed", "", "true"),
            (then, "listed", "", "sed -i s/^9$/nobodys/ g"),
            (first, "prompt", "", "true"),
            (then, "prompt", "", "true"),
            (first, "Bash", "", "true"),
        ]);
        let done = repo.state();
        for session in ["a", "b"] {
            let error = repo.refuses(&["undo", "--session", session], "conflict");
            assert_eq!(error["paths"], json!(["g"]), "{first} goes on first: {error}");
        }
        repo.state().assert_is(&done, "nothing is changed");
        repo.undo();
        assert_eq!(repo.sh("grep -c 'its\\|others\\|nobodys' f g || :"), "f:0\ng:0");
        repo.redo();
        repo.state().assert_is(&done, "redo");
    }
}

#[test]
fn what_a_session_wrote_is_taken_out_of_a_file_that_has_another_name_by_now() {
    let mv = "mkdir -p d; mv new.txt d/moved.txt; mv f moved-too";
    for by in ["the user", "another session", "the user, later"] {
        for args in [["undo", "--session", "a"], ["undo", "--only", "1.1"]] {
            let repo = Sandbox::new();
            repo.sh("seq 20 >f; git add f; git commit -qm f");
            let tell = |session: &str, event: &str, id: u32| {
                let about = json!({"tool_name": "Bash", "tool_use_id": format!("{session}{id}"), "tool_input": {"command": "x"}});
                steps::hook(&repo, session, event, &about);
            };
            let calls = |session: &str, id: u32, script: &str| {
                tell(session, "PreToolUse", id);
                repo.sh(script);
                tell(session, "PostToolUse", id);
                tick();
            };
            for session in ["a", "b"] {
                tell(session, "UserPromptSubmit", 0);
            }
            calls("a", 1, "seq 60 | sed s/^/its/ >new.txt; sed -i s/^3$/its/ f");
            calls("b", 1, "sed -i s/^18$/others/ f; echo b >b.txt");
            match by {
                "the user" => drop(repo.sh(mv)),
                "another session" => calls("b", 2, mv),
                _ => {}
            }
            tick();
            for session in ["a", "b"] {
                tell(session, "Stop", 0);
            }
            if by == "the user, later" {
                repo.sh(mv);
            }
            let before = repo.files();
            repo.oxundo(args).success();
            assert!(!repo.exists("d/moved.txt") && !repo.exists("new.txt"), "{by}, {args:?}: what it made is gone");
            let left: String =
                (1..21).map(|n| if n == 18 { "others\n".to_owned() } else { format!("{n}\n") }).collect();
            repo.assert_file("moved-too", left, "its line is out, and nothing else");
            repo.redo();
            repo.files().assert_is(&before, "redo brings it back");
        }
    }
}

/// What a session moved and another or the user has moved back is where it was: there is nothing to take out.
#[test]
fn a_file_that_a_session_moved_and_that_is_back_stays_where_the_session_is_taken_out() {
    let back = ["git mv o f", "mv o f; git add -A", "git stash -q", "git checkout -q HEAD f; git rm -qf o"];
    in_both_modes(|mode| {
        for back in back {
            let repo = with_files(mode, "printf 'one\\ntwo\\nthree\\n' >f; echo g >g");
            asked(&repo, ONE, "one");
            asked(&repo, TWO, "two");
            writes(&repo, ONE, "by one");
            calls(&repo, TWO, ["Bash", "m", ""], "git mv f o; echo 'by two' >>g");
            repo.sh(back);
            tick();
            hook(&repo, TWO, "Stop", &json!({}));
            hook(&repo, ONE, "Stop", &json!({}));
            let (file, before) = (repo.read("f"), repo.state());
            let done = repo.oxundo(["undo", "--session", "two"]);
            assert_eq!(repo.read("f"), file, "{back}: {done:?}");
            if done.code == 0 {
                assert_eq!(repo.sh("cat g; ls"), "g\nREADME.txt\nf\ng", "{back}: {done:?}");
                repo.redo();
            }
            repo.state().assert_is(&before, "as it was");
            repo.assert_sound();
        }
    });
}

/// What changed beside the calls of one session is another's, which has something at work, or the user's; and what the user commits is
/// theirs, whatever is at work.
#[test]
fn a_session_is_taken_out_beside_one_that_has_a_server_in_the_background() {
    let saves = ["true", "echo LATER >>k", "git switch -qc feat"];
    for (mode, saves) in Mode::tried().into_iter().flat_map(|mode| saves.map(|saves| (mode, saves))) {
        let repo = with_files(mode, "for f in f g h k; do echo $f >$f; done");
        asked(&repo, ONE, "one");
        asked(&repo, TWO, "two");
        writes(&repo, ONE, "by one");
        hook(&repo, ONE, "Stop", &at_work_still());
        calls(&repo, TWO, ["Edit", "1", "g"], "echo 'by two' >>g");
        repo.sh(&format!("{saves}; echo USER >>h; git add h; git commit -qm mine"));
        tick();
        calls(&repo, TWO, ["Bash", "2", ""], "echo 'by two' >>g");
        hook(&repo, TWO, "Stop", &json!({}));
        let (user, before) = (repo.head(), repo.sh("cat f g h k"));
        if saves.contains("LATER") {
            repo.oxundo(["undo", "--only", "1.3"]).success();
            assert_eq!(repo.sh("cat h k; git show HEAD:h"), "h\nUSER\nk\nh\nUSER", "it is committed");
            repo.redo();
            assert_eq!(repo.sh("cat f g h k"), before);
        }
        let done = repo.oxundo(["undo", "--session", "two"]);
        done.success();
        assert_eq!(repo.sh("cat f g h"), "f\nby one\ng\nh\nUSER", "{saves}: {done:?}");
        assert_eq!(repo.git(["log", "-1", "--format=%s", &user]), "mine");
        repo.git(["merge-base", "--is-ancestor", &user, "HEAD"]);
        repo.assert_sound();
    }
}

/// While one has a server, each prompt given to another is a turn of its own, which undo takes back alone; what the server writes
/// meanwhile is in the turn in which it does.
#[test]
fn a_prompt_beside_a_server_in_the_background_begins_a_turn() {
    for (mode, writes_too) in Mode::tried().into_iter().flat_map(|mode| [true, false].map(|too| (mode, too))) {
        let repo = with_files(mode, "for f in f g server; do echo $f >$f; done");
        let mut states = vec![repo.state()];
        asked(&repo, ONE, "of one");
        writes(&repo, ONE, "by one");
        hook(&repo, ONE, "Stop", &at_work_still());
        for prompt in ["first of two", "second of two", "third of two"] {
            let open = repo.json(["status"]).1["open_turn"].as_u64();
            asked(&repo, TWO, prompt);
            assert_ne!(repo.json(["status"]).1["open_turn"].as_u64(), open, "it begins a turn");
            if prompt != "third of two" {
                states.push(repo.state());
            }
            if writes_too {
                repo.sh(&format!("echo '{prompt}' >>server"));
                tick();
            }
            calls(&repo, TWO, ["Edit", prompt, "g"], &format!("echo '{prompt}' >>g"));
            // Of its end nothing tells.
            if prompt != "second of two" {
                hook(&repo, TWO, "Stop", &json!({}));
            }
        }
        hook(&repo, ONE, "Stop", &json!({}));
        let done = repo.state();
        let turns = repo.json(["log"]).1["turns"].as_array().expect("they are listed").clone();
        let about = |turn: &Value| (turn["message"].clone(), turn["sessions"].as_array().map(Vec::len));
        let wanted = ["third of two", "second of two", "first of two", "of one"];
        for (at, message) in wanted.into_iter().enumerate() {
            assert_eq!(about(&turns[at]), (json!(message), Some(if at < 3 { 2 } else { 1 })), "{turns:?}");
            if mode == Mode::Commit {
                let body = repo.git(["log", "-1", "--format=%s%n%b", &format!("HEAD~{at}")]);
                assert!(body.starts_with(message), "{body}");
                // Who only has something in the background is credited where that has changed something.
                let credited = if writes_too && at < 3 { 2 } else { 1 };
                assert_eq!(body.matches("Assisted-by").count(), credited, "{writes_too}: {body}");
            }
        }
        assert_eq!(turns[1]["interrupted"], json!(true), "nothing told of its end");
        let mut back = vec![done];
        for wanted in ["third of two", "second of two", "first of two", "of one"] {
            repo.undo();
            assert!(!repo.sh("cat f g server").contains(wanted) || wanted == "of one", "it is undone");
            back.push(repo.state());
        }
        repo.state().assert_is(&states[0], "all of it is undone");
        for state in back.iter().rev().skip(1) {
            repo.redo();
            repo.state().assert_is(state, "redo");
        }
        repo.assert_sound();
    }
}

/// The end of a prompt with something in the background.
fn at_work_still() -> Value {
    json!({"background_tasks": [{"id": "b", "type": "shell", "status": "running"}]})
}

/// Two sessions share a turn, of which one has something in the background as the user saves, and is done before the other.
#[test]
fn what_the_user_saves_beside_a_server_is_named_as_it_goes_and_theirs_as_they_commit_it() {
    let notified = json!({"prompt": "<task-notification>\n<task-id>b</task-id></task-notification>", "prompt_id": "n"});
    for (mode, over) in
        Mode::tried().into_iter().flat_map(|mode| ["Stop", "notified", "SessionEnd", "prompt"].map(|over| (mode, over)))
    {
        for (commits, edits) in [(false, false), (false, true), (true, false)] {
            let repo = with_files(mode, "for f in f g h; do echo $f >$f; done");
            asked(&repo, ONE, "of one");
            asked(&repo, TWO, "of two");
            calls(&repo, TWO, ["Edit", "1", "g"], "echo 'by two' >>g");
            hook(&repo, TWO, "Stop", &at_work_still());
            repo.sh("echo USER >>h");
            tick();
            if edits {
                calls(&repo, ONE, ["Edit", "named", "h"], "sed -i 's/^h$/by one/' h");
            }
            match over {
                "notified" => {
                    hook(&repo, TWO, "UserPromptSubmit", &notified);
                    hook(&repo, TWO, "Stop", &json!({}));
                }
                "prompt" => asked(&repo, TWO, "again of two"),
                _ => hook(&repo, TWO, over, &json!({})),
            }
            if commits {
                repo.sh("git add h; git commit -qm mine");
                tick();
            }
            writes(&repo, ONE, "by one");
            if over == "prompt" {
                hook(&repo, TWO, "Stop", &json!({}));
            }
            hook(&repo, ONE, "Stop", &json!({}));
            let done = repo.state();
            let undone = repo.oxundo(["undo"]);
            undone.success();
            if commits {
                assert_eq!(
                    repo.sh("cat f g h; git status --short; git show HEAD:h"),
                    "f\ng\nh\nUSER\nh\nUSER",
                    "{over}"
                );
            } else {
                assert_eq!(repo.sh("cat f g h; git status --short"), "f\ng\nh", "{over}");
                assert!(undone.err().contains("'h' changed outside of turn 1's calls"), "{over}: {undone:?}");
            }
            repo.redo();
            repo.state().assert_is(&done, over);
            repo.assert_sound();
        }
    }
}

/// It is under another name by the time that it goes.
#[test]
fn what_the_user_saves_beside_a_server_and_renames_later_is_named_as_it_goes() {
    for (mode, renames) in Mode::tried().into_iter().flat_map(|mode| ["mv h new", "git mv h new"].map(|it| (mode, it)))
    {
        let repo = with_files(mode, "for f in f g; do echo $f >$f; done");
        asked(&repo, ONE, "of one");
        asked(&repo, TWO, "of two");
        calls(&repo, TWO, ["Edit", "1", "g"], "echo 'by two' >>g");
        hook(&repo, TWO, "Stop", &at_work_still());
        repo.sh("echo USER >h; git add -N h");
        tick();
        hook(&repo, TWO, "Stop", &json!({}));
        repo.sh(renames);
        tick();
        writes(&repo, ONE, "by one");
        hook(&repo, ONE, "Stop", &json!({}));
        let done = repo.state();
        let undone = repo.oxundo(["undo"]);
        undone.success();
        assert_eq!(repo.sh("cat f g; ls"), "f\ng\nREADME.txt\nf\ng", "{renames}");
        assert!(undone.err().contains("'new' changed outside of turn 1's calls"), "{renames}: {undone:?}");
        repo.redo();
        repo.state().assert_is(&done, renames);
    }
}

/// Nothing shows yet that such a session tells of its calls.
#[test]
fn what_the_user_saves_during_a_sessions_first_prompt_that_only_asks_is_named_as_it_goes() {
    in_both_modes(|mode| {
        let repo = with_files(mode, "echo f >f");
        asked(&repo, ONE, "what is this?");
        repo.sh("echo USER >>f");
        hook(&repo, ONE, "Stop", &json!({}));
        let undone = repo.oxundo(["undo"]);
        undone.success();
        assert!(undone.err().contains("'f' changed outside of turn 1's calls"), "{undone:?}");
        repo.git(["config", "oxundo.steps", "off"]);
        asked(&repo, ONE, "and this?");
        repo.sh("echo USER >>f");
        hook(&repo, ONE, "Stop", &json!({}));
        let undone = repo.oxundo(["undo"]);
        undone.success();
        assert!(!undone.err().contains("changed outside"), "none is told of, and each would be named: {undone:?}");
    });
}

/// Who only had something in the background while the user committed has changed nothing; and its last turn is the one before.
#[test]
fn a_session_that_only_has_a_server_is_neither_credited_with_the_users_commits_nor_taken_out_of_anothers_turn() {
    in_both_modes(|mode| {
        let repo = with_files(mode, "for f in f g h; do echo $f >$f; done");
        asked(&repo, ONE, "of one");
        writes(&repo, ONE, "by one");
        hook(&repo, ONE, "Stop", &at_work_still());
        asked(&repo, TWO, "of two");
        repo.sh("echo USER >>h; git commit -qm mine h");
        tick();
        calls(&repo, TWO, ["Bash", "1", ""], "echo 'by two' >>g");
        repo.sh("echo USER >>h; git commit -qm mine-too h");
        tick();
        hook(&repo, TWO, "Stop", &json!({}));
        hook(&repo, ONE, "Stop", &json!({}));
        if mode == Mode::Commit {
            let body = repo.git(["log", "-1", "--format=%B"]);
            assert!(body.contains("haiku") && !body.contains("opus"), "{body}");
        }
        let done = repo.state();
        repo.oxundo(["undo", "--session", "one"]).success();
        assert_eq!(repo.sh("cat f g h; git log --format=%s | grep -c mine"), "f\ng\nby two\nh\nUSER\nUSER\n2");
        repo.undo();
        repo.state().assert_is(&done, "it comes back");
        repo.oxundo(["undo", "--session", "two"]).success();
        assert_eq!(repo.sh("cat f g h"), "f\nby one\ng\nh\nUSER\nUSER");
    });
}

/// What it was asked for before is in the turn before.
#[test]
fn what_a_session_does_on_its_next_prompt_beside_another_is_called_after_that() {
    in_both_modes(|mode| {
        let repo = with_files(mode, "echo f >f");
        asked(&repo, ONE, "first of one");
        writes(&repo, ONE, "by one");
        hook(&repo, ONE, "Stop", &at_work_still());
        asked(&repo, TWO, "of two");
        asked(&repo, ONE, "second of one");
        writes(&repo, ONE, "by one again");
        hook(&repo, ONE, "Stop", &json!({}));
        hook(&repo, TWO, "Stop", &json!({}));
        let messages = repo.json(["log"]).1["turns"]
            .as_array()
            .map(|turns| turns.iter().map(|turn| turn["message"].clone()).collect::<Vec<_>>());
        assert_eq!(messages, Some(vec![json!("second of one"), json!("first of one")]));
    });
}

/// A server neither begins nor ends what git is in the middle of.
#[test]
fn what_the_user_ends_of_gits_operations_beside_a_server_stays_ended() {
    let solve = "printf 'USER\\n' >c; git add c; GIT_EDITOR=: git";
    for (begins, ends) in [
        ("git merge -q o", format!("{solve} commit -qm merged")),
        ("git merge -q o", "git merge --abort".to_owned()),
        ("git cherry-pick o", format!("{solve} cherry-pick --continue")),
        ("git cherry-pick o", "git cherry-pick --abort".to_owned()),
        ("git bisect start", "git bisect reset".to_owned()),
    ] {
        for late in [false, true] {
            let repo = with_files(Mode::Commit, "for f in a b c; do echo $f >$f; done");
            repo.sh("git switch -qc o; echo o >c; git commit -qam o; git switch -q main; echo m >c; git commit -qam m");
            asked(&repo, ONE, "of one");
            calls(&repo, ONE, ["Edit", "1", "a"], "echo ITS >>a; git commit -qm its a");
            hook(&repo, ONE, "Stop", &at_work_still());
            let begin = || repo.sh(&format!("{{ {begins} || :; }} >/dev/null 2>&1"));
            if !late {
                begin();
            }
            asked(&repo, TWO, "of two");
            calls(&repo, TWO, ["Edit", "2", "b"], "echo ITS >>b");
            if late {
                begin();
            }
            repo.sh(&format!("{{ {ends}; }} >/dev/null 2>&1"));
            tick();
            hook(&repo, TWO, "Stop", &json!({}));
            hook(&repo, ONE, "Stop", &json!({}));
            let (done, head) = (repo.state(), repo.head());
            let undone = repo.oxundo(["undo"]);
            assert_eq!(undone.code, 0, "{begins}, {ends}, {late}: {undone:?}");
            let left = repo.sh("ls -d .git/*_HEAD .git/rebase-* .git/BISECT_LOG .git/sequencer 2>/dev/null | grep -v 'ORIG_HEAD\\|FETCH_HEAD' || :");
            assert_eq!(
                (left.as_str(), repo.sh("git status --short -uno; cat b")),
                ("", "b".to_owned()),
                "{begins}, {ends}, {late}"
            );
            repo.git(["merge-base", "--is-ancestor", &repo.head(), &head]);
            repo.redo();
            repo.state().assert_is(&done, "redo");
            repo.assert_sound();
        }
    }
}

/// Of an agent of which nothing shows yet that its calls are told of, all since its prompt may be the work, and nothing before.
#[test]
fn a_question_to_another_agent_makes_nothing_its_own_that_was_there() {
    const OTHER: [&str; 3] = ["qwen", "three", "coder"];
    for (mode, asks) in Mode::BOTH
        .into_iter()
        .flat_map(|mode| ["alone", "beside a save", "and looks", "in a call", "first"].map(|asks| (mode, asks)))
    {
        let repo = with_files(mode, "for f in f g h k; do echo $f >$f; done");
        asked(&repo, ONE, "of one");
        if asks != "first" {
            writes(&repo, ONE, "by one");
        }
        repo.sh("echo USER >>h");
        tick();
        let about = json!({"tool_name": "Bash", "tool_use_id": "long", "tool_input": {"command": "x"}});
        if asks == "in a call" {
            hook(&repo, ONE, "PreToolUse", &about);
        }
        asked(&repo, OTHER, "what is this?");
        if asks == "beside a save" {
            repo.sh("echo NOBODY >>k");
            tick();
        }
        if asks == "and looks" {
            calls(&repo, OTHER, ["run_shell_command", "1", ""], "true");
            repo.sh("echo USER >>k");
            tick();
        }
        hook(&repo, OTHER, "Stop", &json!({}));
        if asks == "in a call" {
            repo.sh("echo 'by one' >>g");
            hook(&repo, ONE, "PostToolUse", &about);
            tick();
        }
        writes(&repo, ONE, "by one again");
        repo.sh("echo USER >>h");
        tick();
        hook(&repo, ONE, "Stop", &json!({}));
        if mode == Mode::Commit {
            let its = repo.git(["show", "--format=%b"]);
            assert!(!its.contains("+USER"), "{asks}: {its}");
            assert_eq!(its.contains("qwen"), asks == "beside a save", "{asks}: {its}");
        }
        let done = repo.state();
        let undone = repo.oxundo(["undo"]);
        undone.success();
        let k = if asks == "and looks" { "k\nUSER" } else { "k" };
        assert_eq!(repo.sh("cat f g h k"), format!("f\ng\nh\nUSER\nUSER\n{k}"), "{asks}");
        assert_eq!(
            undone.err().contains("'k' changed outside of turn 1's calls"),
            asks == "beside a save",
            "{undone:?}"
        );
        repo.redo();
        repo.state().assert_is(&done, "redo");
        repo.assert_sound();
    }
}

/// A sub-agent's call is in flight as its session says that it goes on.
#[test]
fn what_the_user_had_saved_before_the_call_within_which_a_list_begins_is_theirs() {
    in_both_modes(|mode| {
        let repo = with_files(mode, "for f in f g h; do echo $f >$f; done");
        asked(&repo, ONE, "of one");
        writes(&repo, ONE, "by one");
        repo.sh("echo USER >>h");
        tick();
        let about = json!({"tool_name": "Bash", "tool_use_id": "sub", "tool_input": {"command": "x"}});
        hook(&repo, ONE, "PreToolUse", &about);
        repo.sh("echo 'by one' >>g");
        hook(&repo, ONE, "Stop", &json!({"background_tasks": [{"id": "b", "type": "subagent", "status": "running"}]}));
        hook(&repo, ONE, "PostToolUse", &about);
        tick();
        hook(&repo, ONE, "Stop", &json!({}));
        if mode == Mode::Commit {
            assert!(!repo.git(["show", "--format="]).contains("+USER"));
        }
        let done = repo.state();
        repo.undo();
        assert_eq!(repo.sh("cat f g h"), "f\ng\nh\nUSER");
        repo.redo();
        repo.state().assert_is(&done, "redo");
    });
}

/// Its end was told before; and what goes on behind the undo is its alone.
#[test]
fn a_turn_that_is_open_for_a_server_alone_is_not_interrupted_by_undo() {
    in_both_modes(|mode| {
        let repo = with_files(mode, "for f in f g; do echo $f >$f; done");
        asked(&repo, ONE, "of one");
        asked(&repo, TWO, "of two");
        writes(&repo, ONE, "by one");
        calls(&repo, TWO, ["Edit", "1", "g"], "echo 'by two' >>g");
        hook(&repo, TWO, "Stop", &json!({}));
        hook(&repo, ONE, "Stop", &at_work_still());
        repo.undo();
        assert_eq!(repo.sh("cat f g"), "f\ng");
        let turns = repo.json(["log", "--all"]).1["turns"].clone();
        assert_eq!((&turns[1]["turn"], &turns[1]["interrupted"]), (&json!(1), &json!(false)), "{turns}");
        writes(&repo, ONE, "by one again");
        hook(&repo, ONE, "Stop", &json!({}));
        let turn = repo.json(["log", "-1"]).1["turns"][0].clone();
        assert_eq!(turn["sessions"].as_array().map(Vec::len), Some(1), "{turn}");
        assert_eq!(turn["shared"], json!(false), "{turn}");
    });
}

/// A call in flight is more than something in the background.
#[test]
fn a_prompt_beside_a_call_in_flight_shares_its_turn() {
    let listed = json!({"background_tasks": [{"id": "b", "type": "subagent", "status": "running"}]});
    let about = json!({"tool_name": "Bash", "tool_use_id": "late", "tool_input": {"command": "x"}});
    in_both_modes(|mode| {
        let repo = with_files(mode, "for f in f g; do echo $f >$f; done");
        let before = repo.state();
        asked(&repo, ONE, "of one");
        hook(&repo, ONE, "Stop", &listed);
        hook(&repo, ONE, "PreToolUse", &about);
        repo.sh("echo half >>f");
        asked(&repo, TWO, "of two");
        repo.sh("echo whole >>f");
        hook(&repo, ONE, "PostToolUse", &about);
        writes(&repo, TWO, "by two");
        hook(&repo, TWO, "Stop", &json!({}));
        hook(&repo, ONE, "Stop", &json!({}));
        let done = repo.state();
        assert_eq!(repo.log().len(), 1);
        repo.undo();
        repo.state().assert_is(&before, "both are undone");
        repo.redo();
        repo.state().assert_is(&done, "redo");
    });
}

/// Whoever was done before that has no part in it.
#[test]
fn what_a_session_does_after_an_undo_is_called_after_its_own_prompt() {
    in_both_modes(|mode| {
        for undo in [&["undo"][..], &["undo", "--session", "one"]] {
            let repo = with_files(mode, "echo f >f; echo g >g");
            asked(&repo, ONE, "prompt of one");
            asked(&repo, TWO, "prompt of two");
            writes(&repo, ONE, "by one");
            hook(&repo, ONE, "Stop", &json!({}));
            tick();
            repo.oxundo(undo).success();
            writes(&repo, TWO, "by two");
            hook(&repo, TWO, "Stop", &json!({}));
            let turn = repo.json(["log", "-1"]).1["turns"][0].clone();
            assert_eq!((&turn["session"], &turn["message"]), (&json!("two"), &json!("prompt of two")), "{turn}");
            assert_eq!(turn["sessions"].as_array().map(Vec::len), Some(1), "{turn}");
            if mode == Mode::Commit {
                assert_eq!(repo.git(["log", "-1", "--format=%s"]), "prompt of two");
            }
        }
    });
}

/// Each of the lines that refusals name is another one, until there is nothing that nobody can tell.
#[test]
fn what_nobody_can_tell_and_is_taken_out_is_no_reason_to_refuse_any_more() {
    in_both_modes(|mode| {
        for session in ["one", "two"] {
            let repo = with_files(mode, "echo f >f; seq 40 >g");
            asked(&repo, ONE, "one");
            asked(&repo, TWO, "two");
            writes(&repo, ONE, "by one");
            let test = json!({"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "npm test"}});
            hook(&repo, ONE, "PreToolUse", &test);
            let two_writes =
                |at: usize| calls(&repo, TWO, ["Edit", &at.to_string(), "g"], &format!("sed -i '{at}5s/.*/by two/' g"));
            two_writes(1);
            two_writes(2);
            hook(&repo, ONE, "PostToolUse", &test);
            tick();
            // Nobody else is at work by now.
            two_writes(3);
            hook(&repo, TWO, "Stop", &json!({}));
            hook(&repo, ONE, "Stop", &json!({}));
            let way = ["undo", "--session", session];
            for step in ["1.2", "1.3"] {
                let error = repo.refuses(&way, "conflict");
                assert!(error["hints"].to_string().contains(&format!("'oxundo undo --only {step}'")), "{error}");
                repo.oxundo(["undo", "--only", step]).success();
            }
            repo.oxundo(way).success();
            let left = if session == "one" { "f\n1" } else { "f\nby one\n0" };
            assert_eq!(repo.sh("cat f; grep -c 'by two' g || :"), left, "{session}");
            repo.assert_sound();
        }
    });
}

/// Who only asked has changed nothing, and is named for no commit.
#[test]
fn a_session_that_changed_nothing_is_named_for_no_work_of_anothers() {
    let repo = with_files(Mode::Commit, "echo f >f");
    for (at, first) in ["asks", "works"].into_iter().enumerate() {
        let asks = |event: &str, more: Value| hook(&repo, ONE, event, &more);
        let prompt = |at: usize| json!({"prompt": "a question", "prompt_id": at.to_string()});
        if first == "asks" {
            asks("UserPromptSubmit", prompt(at));
        }
        asked(&repo, TWO, &format!("work {at}"));
        if first == "works" {
            asks("UserPromptSubmit", prompt(at));
        }
        calls(&repo, ONE, ["Bash", &format!("l{at}"), ""], "cat f");
        writes(&repo, TWO, &format!("by two {at}"));
        asks("Stop", json!({}));
        hook(&repo, TWO, "Stop", &json!({}));
        let commit = repo.git(["log", "-1", "--format=%B"]);
        assert!(commit.starts_with(&format!("work {at}")), "{first}: {commit}");
        assert!(commit.contains("haiku") && !commit.contains("opus"), "{first}: {commit}");
        let notes = repo.git(["notes", "--ref=oxundo", "show", "HEAD"]);
        assert!(notes.contains(r#""two""#) && !notes.contains(r#""one""#), "{first}: {notes}");
        let turn = repo.json(["log", "-1"]).1["turns"][0].clone();
        assert_eq!(turn["sessions"].as_array().map(Vec::len), Some(2), "both took part: {turn}");
    }
    repo.assert_sound();
}
