//! In step with an agent that is at work: looking ends nothing, a plan says what then happens, and what the agent does
//! after a command is its own, on evidence.

use crate::form::part;
use crate::sandbox::{Mode, Output, Sandbox, announce};
use serde_json::{Value, json};
use std::fs::File;

const TWO_TURNS: [&str; 2] = ["echo one >>README.txt; echo first >first.txt", "echo two >>README.txt"];

/// A repository with two turns and the user's work, and the mode of the next turn.
fn repo(mode: Mode) -> Sandbox {
    let repo = Sandbox::new();
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    for script in TWO_TURNS {
        repo.turn(mode, script);
    }
    repo.sh("echo mine >mine.txt; git add mine.txt; echo edited >>first.txt");
    repo
}

#[track_caller]
fn hook(repo: &Sandbox, event: &str, prompt: &str) {
    hook_of(repo, "claude", event, prompt, "s");
}

#[track_caller]
fn hook_of(repo: &Sandbox, agent: &str, event: &str, prompt: &str, session: &str) {
    let text = format!("prompt {prompt}");
    let payload = json!({"hook_event_name": event, "session_id": session, "prompt_id": prompt, "prompt": text});
    let output = Output::fired(&mut repo.oxundo_command(["hook", agent]), payload.to_string().as_bytes());
    output.success();
    assert_eq!((output.out(), output.err()), (String::new(), String::new()));
}

/// What is in commits of agents', by their trailer.
fn agents_commits(repo: &Sandbox) -> String {
    repo.git(["log", "HEAD", "--branches", "--grep=Assisted-by", "-p", "--format="])
}

const BEGIN: &str = "UserPromptSubmit";
const END: &str = "Stop";

/// Every file, git's objects too, but oxundo's locks, whose content says who had them last.
fn disk(repo: &Sandbox) -> String {
    repo.sh("find . -path ./.git/oxundo/lock -prune -o -type f -print0 | sort -z | xargs -0 sha1sum;
        find . -printf '%p %y %m %l\\n' | sort")
}

fn messages(repo: &Sandbox) -> Vec<String> {
    repo.log().iter().map(|turn| turn["message"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn looking_ends_nothing_and_changes_nothing() {
    let looks: &[&[&str]] = &[
        &["status"],
        &["log", "--all"],
        &["log", "--ops"],
        &["show", "1"],
        &["show", "1:README.txt"],
        &["diff"],
        &["diff", "0"],
        &["diff", "--stat"],
        &["checkpoint", "--list"],
        &["undo", "--dry-run"],
        &["undo", "--to", "0", "--dry-run"],
        &["undo", "--only", "1", "--dry-run"],
        &["undo", "--revert", "--dry-run"],
        &["undo", "--dry-run", "--", "README.txt"],
        &["restore", "1", "--dry-run"],
        &["restore", "1", "--dry-run", "--", "README.txt"],
        &["branch", "other", "2", "--dry-run"],
        &["branch", "other", "1", "--dry-run"],
        &["branch", "other", "0", "--dry-run"],
        &["squash", "--dry-run"],
        &["squash", "--dry-run", "--all", "-m", "one"],
        &["squash", "--dry-run", "--author", "A <a@example.com>"],
        &["gc", "--dry-run"],
        &["uninstall", "--dry-run"],
        &["init", "claude", "--dry-run"],
        &["redo", "--dry-run"],
        &["completions", "bash"],
        // Refused.
        &["redo"],
        &["undo", "--steps", "99"],
        &["undo", "--", "no-such-file"],
        &["restore", "99"],
        &["branch", "main", "1"],
        &["branch", "a..b", "1"],
        &["undo", "--only", "99"],
        &["undo", "--edits", "refuse", "--to", "0"],
        &["squash", "7..9"],
        &["checkpoint", "HEAD"],
        &["checkpoint", "--delete", "none"],
    ];
    for mode in Mode::tried() {
        let repo = repo(mode);
        let look = |args: &[&str]| {
            let wanted = disk(&repo);
            let output = repo.oxundo(args);
            assert!(!output.err().contains("closed turn"), "{output:?}");
            assert_eq!(disk(&repo), wanted, "{args:?} changes nothing\n{output:?}");
        };
        repo.sh("echo between >>README.txt; head -c 4200000 /dev/urandom >large.bin");
        repo.oxundo(["status"]).success();
        for args in part(looks) {
            look(args);
        }
        repo.sh("rm large.bin");
        let before = repo.state();
        hook(&repo, BEGIN, "1");
        repo.sh("echo early >>README.txt; echo new >new.txt; head -c 4200000 /dev/urandom >large.bin");
        for args in part(looks) {
            look(args);
        }
        repo.oxundo(["checkpoint", "named"]).success();
        repo.oxundo(["gc"]).success();
        repo.sh("echo late >>README.txt; echo late >late.txt");
        hook(&repo, END, "1");
        let after = repo.state();
        assert_eq!(messages(&repo)[0], "prompt 1", "all of it is one turn");
        assert_eq!(repo.log().len(), 3, "and there is no other");
        repo.undo();
        repo.state().assert_is(&before, "undo takes back what came before the looks and after");
        repo.redo();
        repo.state().assert_is(&after, "redo brings it back");
    }
}

#[test]
fn squash_knows_of_the_commit_that_the_end_of_the_open_turn_makes() {
    let squash = |repo: &Sandbox, args: &[&str]| repo.oxundo([&["squash"], args].concat());
    // How many commits of which turns.
    let said = |output: &Output| {
        let text = output.out();
        let (_, said) = text.split_once(" squash").or(text.split_once("Squash")).expect("it says so");
        said.trim_start_matches("ed").split(':').next().expect("the first part").to_owned()
    };
    // Nothing is to be squashed: its only commit is that of its end.
    let alone = || {
        let repo = Sandbox::new();
        hook(&repo, BEGIN, "1");
        repo.sh("echo early >>README.txt");
        repo
    };
    let repo = alone();
    repo.oxundo(["status"]).success();
    let before = disk(&repo);
    for args in [&["--dry-run"][..], &[]] {
        let output = squash(&repo, args);
        assert_eq!((output.code, disk(&repo)), (4, before.clone()), "it is refused, and ends nothing: {output:?}");
    }
    hook(&repo, END, "1");
    assert_eq!(
        (messages(&repo).as_slice(), repo.log()[0]["state"].as_str()),
        (&["prompt 1".to_owned()][..], Some("done"))
    );
    // It is one more than there are.
    for (own, args) in [("git commit -qam own; echo more >>README.txt", &[][..]), ("", &["--message", "mine"])] {
        let repo = alone();
        repo.sh(own);
        let planned = squash(&repo, &[&["--dry-run"], args].concat());
        let done = squash(&repo, args);
        assert_eq!((planned.code, done.code), (0, 0), "{planned:?}\n{done:?}");
        assert_eq!(said(&planned), said(&done));
        assert_eq!(repo.git(["rev-list", "--count", "HEAD~1..HEAD"]), "1");
        repo.assert_sound();
    }
}

/// What a plan says, but for what is only known once the open turn is closed: the ids of its commits.
fn said(answer: &Value) -> Value {
    let keys = ["turns", "files", "kept_edits", "unstaged", "directories"];
    json!([keys.map(|key| answer[key].clone()), answer["head"]["to"], answer["head"]["branch"]])
}

#[test]
fn what_a_dry_run_and_status_say_is_what_undo_then_does() {
    let states: &[(&str, &[&str])] = &[
        ("open, and the agent has changed files", &["b1", "echo early >>README.txt; echo new >new.txt"]),
        ("open, and it has committed", &["b1", "echo early >>README.txt; git commit -qam own; echo more >>README.txt"]),
        ("done, and nothing since", &["b1", "echo early >>README.txt", "e1"]),
        ("done, and edited since", &["b1", "echo early >early.txt", "e1", "echo mine >>README.txt"]),
        ("cut off, and a new prompt", &["b1", "echo early >>README.txt", "b2", "echo late >late.txt"]),
        ("open, closed by a command, and at work again", &["b1", "echo early >early.txt", "u", "echo late >late.txt"]),
    ];
    for mode in Mode::tried() {
        for (state, steps) in states {
            let repo = repo(mode);
            for step in *steps {
                match *step {
                    "u" => repo.undo(),
                    "b1" => hook(&repo, BEGIN, "1"),
                    "b2" => hook(&repo, BEGIN, "2"),
                    "e1" => hook(&repo, END, "1"),
                    script => drop(repo.sh(script)),
                }
            }
            for op in ["undo", "redo", "undo", "undo"] {
                let (_, told) = repo.json(["status"]);
                let (planned, plan) = repo.json([op, "--dry-run"]);
                let (code, done) = repo.json([op]);
                assert_eq!(planned, code, "{state} ({mode:?}), {op}: {plan} {done}");
                if code != 0 {
                    // Its hints only look, too.
                    let plan = plan["error"].to_string().replace(" --dry-run", "");
                    assert_eq!(plan, done["error"].to_string(), "{state} ({mode:?}), {op}");
                    continue;
                }
                assert_eq!(said(&plan), said(&done), "{state} ({mode:?}), {op}");
                if op == "undo" {
                    assert_eq!(said(&told["undo"]), said(&done), "{state} ({mode:?}), status");
                }
            }
            repo.assert_sound();
        }
    }
}

#[test]
fn what_an_agent_does_after_a_command_is_its_next_turn() {
    for mode in Mode::tried() {
        let repo = repo(mode);
        let before = repo.state();
        hook(&repo, BEGIN, "1");
        repo.sh("echo early >>README.txt; echo early >early.txt");
        repo.oxundo(["undo"]).success();
        repo.state().assert_is(&before, "what it did until then is undone");
        repo.sh("echo late >>README.txt; echo late >late.txt");
        hook(&repo, END, "1");
        assert_eq!(messages(&repo)[0], "prompt 1", "the end of the same prompt shows that it was at work");
        repo.undo();
        repo.state().assert_is(&before, "all that it did since is undone");
    }
}

#[test]
fn what_changes_after_a_command_is_the_users_without_a_sign_of_the_agent() {
    for mode in Mode::tried() {
        for next in [BEGIN, "SessionEnd", "command"] {
            let repo = repo(mode);
            hook(&repo, BEGIN, "1");
            repo.sh("echo early >>README.txt");
            repo.undo();
            // Escape tells of no end: the user goes on.
            repo.sh("echo users-own >>README.txt; echo users-own >own.txt");
            let users = repo.state();
            match next {
                "command" => repo.oxundo(["status"]).success(),
                event => hook(&repo, event, "2"),
            }
            repo.sh("echo late >late.txt");
            hook(&repo, END, "2");
            if next == BEGIN {
                repo.undo();
            } else {
                repo.sh("rm late.txt");
            }
            repo.state().assert_is(&users, "the user's edits are as the user left them");
            let agents = agents_commits(&repo);
            assert!(!agents.contains("users-own"), "and are in no commit of the agent's ({next}, {mode:?}): {agents}");
        }
    }
}

#[test]
fn a_look_right_after_the_prompt_takes_nothing_from_the_agent() {
    let looks: &[&[&str]] = &[
        &["undo", "--dry-run"],
        &["restore", "1", "--dry-run"],
        &["redo"],
        &["undo", "--steps", "99"],
        &["branch", "main", "1"],
        &["undo", "--only", "9"],
    ];
    for look in looks {
        let repo = repo(Mode::Commit);
        repo.sh("git stash -q; echo users-own >>README.txt");
        let before = repo.state();
        hook(&repo, BEGIN, "1");
        let there = disk(&repo);
        drop(repo.oxundo(*look));
        assert_eq!(disk(&repo), there, "{look:?} changes nothing");
        repo.sh("echo late >late.txt; echo agents >>first.txt");
        hook(&repo, "SessionEnd", "1");
        assert_eq!(messages(&repo)[0], "prompt 1", "{look:?} ends nothing, so that this is the turn's");
        assert!(!agents_commits(&repo).contains("users-own"), "{look:?}: the user's work is saved apart");
        repo.undo();
        repo.state().assert_is(&before, &format!("{look:?}: all of it is undone"));
    }
}

#[test]
fn right_after_the_prompt_what_is_planned_is_what_is_done() {
    let repo = repo(Mode::Commit);
    repo.sh("git stash -q; echo staged >staged.txt; git add staged.txt");
    hook(&repo, BEGIN, "1");
    let told = repo.json(["status"]).1["undo"].clone();
    let (code, planned) = repo.json(["undo", "--dry-run"]);
    let (done_code, done) = repo.json(["undo"]);
    assert_eq!((code, done_code), (0, 0), "{planned} {done}");
    for part in ["turns", "files", "head", "branches", "kept_edits"] {
        assert_eq!((&planned[part], &told[part]), (&done[part], &done[part]), "{part}");
    }
    assert!(repo.git(["status", "--porcelain"]).contains("A  staged.txt"), "the user's work is as it was");
}

#[test]
fn the_users_work_is_in_no_agents_commit_when_a_command_broke_in() {
    let repo = Sandbox::new();
    repo.sh("echo users-own >>README.txt");
    let before = repo.state();
    hook(&repo, BEGIN, "1");
    repo.sh("echo early >early.txt");
    repo.undo();
    repo.state().assert_is(&before, "what the agent did until then is undone");
    repo.sh("echo late >>README.txt");
    hook(&repo, END, "1");
    assert_eq!((messages(&repo)[0].as_str(), agents_commits(&repo).as_str()), ("prompt 1", ""));
    repo.undo();
    repo.state().assert_is(&before, "and what it did after it too");
}

#[test]
fn nobody_shares_a_turn_that_waits_for_a_sign_of_its_agent() {
    // Another session, which is the first to go on; and one that is older.
    for first_goes_on in [false, true] {
        let repo = Sandbox::new();
        hook_of(&repo, "claude", BEGIN, "1", "a");
        repo.sh("echo early >>README.txt");
        repo.undo();
        repo.sh("echo users-own >own.txt; git add own.txt");
        let users = repo.state();
        hook_of(&repo, "claude", BEGIN, "2", "b");
        repo.sh("echo late >>README.txt");
        hook_of(&repo, "claude", END, "2", "b");
        if first_goes_on {
            hook_of(&repo, "claude", END, "1", "a");
        }
        assert_eq!(messages(&repo)[0], "prompt 2");
        assert!(!agents_commits(&repo).contains("users-own"));
        repo.undo();
        repo.state().assert_is(&users, "the other session's prompt is a turn of its own");
    }
    // Two sessions at once: the end of one shows that it went on, whatever the other does.
    let repo = Sandbox::new();
    let before = repo.state();
    hook_of(&repo, "claude", BEGIN, "1", "a");
    hook_of(&repo, "claude", BEGIN, "1", "b");
    repo.sh("echo early >>README.txt");
    repo.undo();
    repo.sh("echo late >late.txt");
    hook_of(&repo, "claude", END, "1", "a");
    hook_of(&repo, "claude", "SessionEnd", "1", "b");
    repo.undo();
    repo.state().assert_is(&before, "what came after the command is a turn");
}

#[test]
fn an_agent_that_says_that_it_is_at_work_is_from_then_on() {
    let repo = Sandbox::new();
    let tool = || hook_of(&repo, "crush", "PreToolUse", "", "s");
    tool();
    repo.sh("echo early >>README.txt");
    repo.undo();
    repo.sh("echo users-own >>README.txt");
    let users = repo.state();
    tool();
    repo.sh("echo late >late.txt");
    repo.undo();
    repo.state().assert_is(&users, "what it did since is its own, and what the user did before is the user's");
    tool();
    repo.sh("echo later >later.txt");
    repo.undo();
    repo.state().assert_is(&users, "again");
}

#[test]
fn in_a_run_what_comes_after_undo_and_redo_is_recorded_too() {
    let repo = Sandbox::new();
    let before = repo.state();
    let wait = |name: &str| format!("until [ -e \"$HOME/{name}\" ]; do sleep 0.02; done");
    let script = format!(
        "echo a >a; oxundo hook aider </dev/null; : >\"$HOME/first\"; {}; echo b >b; oxundo hook aider </dev/null; echo c >c",
        wait("go")
    );
    let run = repo.spawn(&["run", "--", "sh", "-ec", &script]);
    repo.wait_for("first");
    repo.undo();
    repo.redo();
    assert_eq!(repo.oxundo(["redo"]).code, 4, "there is nothing to redo");
    repo.signal("go");
    Output::awaited(run).success();
    assert_eq!(repo.log().len(), 3, "a turn each for what comes before the first notification, the second and the end");
    assert_eq!(repo.state().tracked_changes(), Vec::<String>::new());
    repo.oxundo(["undo", "--steps", "3"]).success();
    repo.state().assert_is(&before, "all of it is undone");
}

#[test]
fn in_a_run_the_users_edit_after_an_empty_prompt_is_saved_apart() {
    let repo = Sandbox::new();
    let (b, e) = (|n| call(BEGIN, n, ""), |n| call(END, n, ""));
    let script =
        [b(1), e(1), "echo user >>README.txt".to_owned(), b(2), e(2), b(3), "echo agent >>README.txt".to_owned(), e(3)]
            .join("; ");
    repo.oxundo(["run", "--", "sh", "-ec", &script]).success();
    let agents = repo.git(["show", "--format=%s", "HEAD"]);
    assert!(agents.contains("+agent") && !agents.contains("+user"), "{agents}");
    let dirty = repo.git(["show", "--format=%s", "HEAD~1"]);
    assert!(dirty.contains("uncommitted changes") && dirty.contains("+user"), "{dirty}");
}

/// The line of a script with which an agent's hook tells of a prompt.
fn call(event: &str, prompt: u32, more: &str) -> String {
    format!(
        "printf '%s' '{{\"hook_event_name\":\"{event}\",\"session_id\":\"s\",\"prompt_id\":\"{prompt}\",\"prompt\":\"p{prompt}\"{more}}}' | oxundo hook claude"
    )
}

#[test]
fn in_a_run_the_users_work_after_undo_is_in_no_agents_commit() {
    let background = r#","background_tasks":[{"status":"running"}]"#;
    let ways: [(&str, Vec<String>); 4] = [
        ("a prompt", vec![call(BEGIN, 2, ""), "WORK".to_owned(), call(END, 2, "")]),
        ("an end without a beginning", vec!["WORK".to_owned(), call(END, 2, "")]),
        ("a task in the background", vec!["WORK".to_owned(), call(END, 2, background), call(END, 2, "")]),
        ("the end of the run", vec![call("SessionEnd", 1, ""), "WORK".to_owned()]),
    ];
    for (way, steps) in ways {
        let repo = Sandbox::new();
        repo.commit("README.txt", "1\n2\n3\n4\n5\n6\n");
        let first = [call(BEGIN, 1, ""), "echo one >>README.txt".to_owned(), call(END, 1, "")].join("; ");
        let late = "echo agents-own >>README.txt; echo agents-own >late.txt";
        let second = steps.join("; ").replace("WORK", late);
        // A prompt later it is still not known whose what is uncommitted is.
        let third = match way {
            "the end of the run" => "true".to_owned(),
            _ => [call(BEGIN, 3, ""), "echo agents-third >>README.txt".to_owned(), call(END, 3, "")].join("; "),
        };
        let wait = "while [ -d \"$HOME\" -a ! -e \"$HOME/go\" ]; do sleep 0.02; done";
        let script = format!("{first}; : >\"$HOME/first\"; {wait}; {second}; {third}");
        let run = repo.spawn(&["run", "--", "sh", "-ec", &script]);
        repo.wait_for("first");
        repo.sh("echo users-own >own.txt; git add own.txt; sed -i 1iusers-own README.txt");
        repo.oxundo(["undo"]).success();
        let users = repo.state();
        repo.signal("go");
        Output::awaited(run).success();
        let agents = agents_commits(&repo);
        assert!(!agents.contains("+users-own"), "{way}: {agents}");
        let dirty = repo.git(["log", "HEAD", "--branches", "--grep=uncommitted changes", "-p", "--format="]);
        assert!(!dirty.contains("+agents-"), "{way}: {dirty}");
        repo.oxundo(["undo", "--to", "0"]).success();
        repo.state().assert_is(&users, &format!("{way}: all that the agent did since is undone"));
    }
}

/// The commands that an agent may not give.
const USERS: [&[&str]; 8] = [
    &["undo"],
    &["undo", "--only", "1"],
    &["undo", "--revert"],
    &["undo", "--", "README.txt"],
    &["undo", "--dry-run"],
    &["redo"],
    &["branch", "other", "1"],
    &["squash"],
];

/// What an agent types in its turn: what is not its to say is refused, and what is ends nothing.
fn typed_by_an_agent() -> String {
    let refused = USERS.iter().filter(|args| args[0] != "rewind").map(|args| {
        format!("code=0; oxundo --json {} >>../home/refused || code=$?; echo $code >>../home/codes\n", args.join(" "))
    });
    let may = "echo early >>README.txt
        oxundo checkpoint own; oxundo show 1 >/dev/null; oxundo log >/dev/null; oxundo diff 1 >/dev/null; oxundo status >/dev/null
        oxundo restore --dry-run 1; oxundo restore 1 -- README.txt first.txt
        echo late >>README.txt\n";
    format!("{}oxundo --json status >../home/status\n{may}", refused.collect::<String>())
}

#[track_caller]
fn assert_refused(repo: &Sandbox) {
    let read = |name: &str| std::fs::read_to_string(repo.home().join(name)).expect("it was said");
    let said = read("refused");
    let codes: Vec<Value> = serde_json::Deserializer::from_str(&said)
        .into_iter::<Value>()
        .map(|value| value.expect("an object")["error"]["code"].clone())
        .collect();
    assert_eq!(codes, vec![json!("agent"); USERS.len()], "{said}");
    assert_eq!(read("codes"), "3\n".repeat(USERS.len()));
    let status: Value = serde_json::from_str(&read("status")).expect("an object");
    assert_eq!(status["refusal"]["code"], "agent", "status says what undo does for whoever asks: {status}");
}

#[test]
fn an_agents_own_undo_is_refused_and_its_checkpoint_and_restore_are_part_of_its_turn() {
    for mode in Mode::tried() {
        for in_run in [false, true] {
            let repo = repo(mode);
            let before = repo.state();
            let (begin, end) = (call(BEGIN, 1, ""), call(END, 1, ""));
            if in_run {
                repo.turn(mode, &typed_by_an_agent());
            } else {
                repo.by_agent(&format!("{begin}\n{}{end}", typed_by_an_agent())).success();
            }
            assert_refused(&repo);
            repo.assert_file("README.txt", "readme\none\nlate\n", "restored, and written to after that");
            assert_eq!(repo.log().len(), 3, "all of it is one turn");
            let after = repo.state();
            repo.undo();
            repo.state().assert_is(&before, "and is undone as one");
            repo.redo();
            repo.state().assert_is(&after, "and redone");
            repo.oxundo(["restore", "own", "--", "README.txt"]).success();
            repo.assert_file("README.txt", "readme\none\ntwo\nearly\n", "what its checkpoint has");
            repo.assert_sound();
        }
    }
}

#[test]
fn what_an_agents_restore_replaces_is_kept() {
    let repo = repo(Mode::Commit);
    let output = repo.by_agent(&format!(
        "{}; echo only-copy >README.txt; oxundo --json restore 1 -- README.txt",
        call(BEGIN, 1, "")
    ));
    output.success();
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an object");
    let rescue = answer["rescue"].as_str().expect("a tree").to_owned();
    let kept = repo
        .sh(&format!("git ls-tree -r {rescue} | awk '{{print $3}}' | while read -r id; do git cat-file -p $id; done"));
    assert!(kept.contains("only-copy"), "{kept}");
}

#[test]
fn what_an_agent_has_started_is_its_word_though_its_parent_is_gone() {
    // Once its parent is gone, it says undo; whoever has started it waits for that.
    let cut_off = "p=$PPID; echo >../home/begun
        while [ \"$(ps -o ppid= -p $$ | tr -d ' ')\" = $p ]; do sleep .01; done
        oxundo --json undo </dev/null >../home/said; echo $? >../home/code";
    let until = |file: &str| format!("until [ -s ../home/{file} ]; do sleep .01; done");
    let started = format!("(sh ../home/cut-off & {})", until("begun"));
    let ways = [
        // Who leads its session is the agent's.
        format!("setsid sh -c '{started}; {}'", until("code")),
        // It has a session of its own, and what Claude Code sets for what its tools run.
        format!("CLAUDECODE=1 setsid sh -c '{started}'; {}", until("code")),
    ];
    for way in ways {
        let repo = repo(Mode::Commit);
        std::fs::write(repo.home().join("cut-off"), cut_off).expect("write a script");
        repo.by_agent(&format!("{}; echo early >>README.txt; {way}", call(BEGIN, 1, ""))).success();
        let said = repo.sh("cat ../home/said ../home/code");
        assert!(said.contains("\"code\":\"agent\"") && said.ends_with("\n3"), "{way}: {said}");
        repo.undo();
    }
}

/// What takes over the processes whose parent is gone has started all that runs since, and is nobody's agent.
#[test]
fn who_takes_over_a_hook_whose_parent_is_gone_is_no_agent() {
    let repo = Sandbox::new();
    let payload =
        |event: &str, rest: &str| format!(r#"{{"hook_event_name":"{event}","session_id":"s","prompt":"p"{rest}}}"#);
    let (call, oxundo) = (r#","tool_name":"Bash","tool_use_id":"c","tool_input":{}"#, env!("CARGO_BIN_EXE_oxundo"));
    let tell = |event: &str, rest: &str| {
        std::fs::write(repo.home().join("payload"), payload(event, rest)).expect("write what the agent tells");
        repo.sh(&format!(
            "setsid -f sh -c '{oxundo} hook claude <../home/payload; echo >../home/told'
            until [ -s ../home/told ]; do sleep .01; done; rm ../home/told"
        ));
    };
    tell("UserPromptSubmit", "");
    for script in ["echo agent >three", "echo agent >four"] {
        tell("PreToolUse", call);
        repo.sh(script);
        // Something is started that goes on, by whomever.
        repo.sh("setsid -f sh -c 'echo $$ >>../home/beside; while [ -e ../home ] && [ ! -e ../home/over ]; do sleep .01; done' >&- 2>&-");
        tell("PostToolUse", call);
        repo.sh("echo user >>three");
    }
    tell("Stop", "");
    repo.write("../home/over", "");
    let steps = repo.json(["show", "1.2"]).1;
    assert_eq!(steps["files"].as_array().map(Vec::len), Some(1), "{steps}");
    repo.oxundo(["undo", "--session", "s"])
        .warns("'three' has what you saved during turn 1 beside what its calls wrote");
}

/// As in a sandbox, or where a container's first process was started from outside.
#[test]
fn in_a_container_whose_leaders_are_outside_of_it_an_agents_word_is_its_own() {
    let repo = repo(Mode::Commit);
    let inside = |script: &str| {
        // `find` is the agent: it is the first process there, and no shell.
        let mut command = repo.shell("exec unshare -Urpf --mount-proc find . -maxdepth 0 -exec sh -c \"$1\" sh {} +");
        Output::of(command.args(["sh", script]))
    };
    let tried = inside("test \"$(cut -d' ' -f5,6 /proc/self/stat)\" = '0 0'");
    if tried.code != 0 {
        return announce(&format!("SKIPPED: no container can be made here ({})", tried.err()));
    }
    let output = inside(&format!("{}; echo early >>README.txt; oxundo --json undo", call(BEGIN, 1, "")));
    assert!(output.out().contains("\"code\":\"agent\""), "{output:?}");
    assert_eq!(repo.json(["status"]).1["open_turn"], 3, "its turn goes on");
}

#[test]
fn the_user_may_undo_what_an_agent_at_work_may_not() {
    let repo = repo(Mode::Commit);
    let before = repo.state();
    // An agent that is at work, and is no ancestor of the user's commands.
    repo.by_agent(&format!("{}; echo early >>README.txt", call(BEGIN, 1, ""))).success();
    repo.undo();
    repo.state().assert_is(&before, "the user's word counts");
    let again = repo.by_agent("oxundo --json undo");
    again.exits(3);
    assert!(again.out().contains("\"code\":\"agent\""), "nor after that: {again:?}");
}

#[test]
fn an_agents_own_state_is_in_no_turn() {
    let repo = Sandbox::new();
    let before = repo.state();
    let prompt = "echo asked >>.aider.chat.history.md; echo asked >>.aider.input.history
        mkdir -p .aider.tags.cache.v4; echo $$ >.aider.tags.cache.v4/cache.db; echo own >.aider.conf.yml";
    for work in ["echo one >>README.txt; echo '.aider*' >>.gitignore", "echo two >>README.txt", "true"] {
        repo.agent(&format!("{prompt}; {work}"));
    }
    assert_eq!(repo.log().len(), 2, "a prompt that only adds to the agent's history is no turn");
    let tracked = repo.git(["ls-files"]);
    assert!(!tracked.contains("history"), "it is not committed: {tracked}");
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.assert_file(".aider.chat.history.md", "asked\n".repeat(3), "it stays as the agent left it");
    repo.sh("rm -r .aider.chat.history.md .aider.input.history .aider.tags.cache.v4");
    repo.state().assert_is(&before, "all else is undone");
}

const CALL: &str = "PreToolUse";
const CALLED: &str = "PostToolUse";

/// The hook of a tool's call is called.
#[track_caller]
fn tool(repo: &Sandbox, event: &str, id: &str, session: &str) {
    let payload = json!({"hook_event_name": event, "session_id": session, "tool_name": "Edit", "tool_use_id": id,
        "tool_input": {"file_path": "README.txt", "command": "never kept"}});
    let output = Output::fired(&mut repo.oxundo_command(["hook", "claude"]), payload.to_string().as_bytes());
    output.success();
    assert_eq!((output.out(), output.err()), (String::new(), String::new()));
    if event == CALL {
        call_began(repo, "2999");
    }
}

/// Has all calls in the open turn begun in this year, by the only clock: a call that has no process is in flight for some
/// seconds.
fn call_began(repo: &Sandbox, year: &str) {
    let script = format!("s/\"at\":\"[0-9]*/\"at\":\"{year}/; s/\"since_boot\":[0-9]*,//");
    repo.sh(&format!("! [ -e .git/oxundo/calls ] || sed -i '{script}' .git/oxundo/calls"));
}

/// The calls in the record of a turn.
fn calls_of(repo: &Sandbox, turn: u64) -> Vec<Value> {
    let text = repo.git(["show", &format!("refs/oxundo/timeline:turns/00/00/{turn:02}/calls")]);
    assert!(!text.contains("never kept"), "{text}");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

#[test]
fn the_calls_of_tools_are_in_the_turns_record() {
    let repo = repo(Mode::Commit);
    hook(&repo, BEGIN, "1");
    tool(&repo, CALL, "t1", "s");
    repo.sh("echo early >>README.txt");
    tool(&repo, CALLED, "t1", "s");
    tool(&repo, CALL, "t2", "s");
    // What is no line of ours is no call.
    repo.sh("printf 'no JSON\\n{}\\n' >>.git/oxundo/calls");
    hook(&repo, END, "1");
    let calls = calls_of(&repo, 3);
    let told =
        |call: &Value| json!([call["session"], call["tool"], call["path"], call["id"], call["ended_at"].is_string()]);
    let wanted = |id: &str, ended: bool| json!(["s", "Edit", "README.txt", id, ended]);
    assert_eq!(calls.iter().map(told).collect::<Vec<_>>(), [wanted("t1", true), wanted("t2", false)]);
    assert!(
        calls.iter().all(|call| call["began_at"].as_str().is_some_and(|time| time.ends_with("+00:00"))),
        "{calls:?}"
    );
    assert!(!repo.exists(".git/oxundo/calls"), "they are kept once");
    hook(&repo, BEGIN, "2");
    repo.sh("echo late >>README.txt");
    hook(&repo, END, "2");
    assert_eq!(repo.try_git(["show", "refs/oxundo/timeline:turns/00/00/04/calls"]).code, 128, "not in another's");
    repo.assert_sound();
}

/// What Claude Code tells of a call of this tool, on README.
fn call_of(tool: &str, event: &str) -> String {
    let input = json!({"file_path": "README.txt"});
    json!({"hook_event_name": event, "session_id": "s", "tool_name": tool, "tool_use_id": tool, "tool_input": input})
        .to_string()
}

#[test]
fn each_end_of_a_call_that_names_no_file_costs_one_look_at_the_worktree_and_one_that_does_none() {
    let repo = repo(Mode::Commit);
    hook(&repo, BEGIN, "1");
    // The first of a turn asks once more, in case its session has ended.
    for event in [CALL, CALLED] {
        Output::fired(&mut repo.oxundo_command(["hook", "claude"]), call_of("Read", event).as_bytes()).success();
    }
    let steps = [(CALL, "Bash", 1), (CALLED, "Bash", 1), (CALL, "Edit", 0), (CALLED, "Edit", 0), (CALLED, "Read", 0)];
    for (event, tool, scans) in steps {
        repo.sh("echo more >>README.txt");
        let output = Output::fired(&mut repo.oxundo_command(["-v", "hook", "claude"]), call_of(tool, event).as_bytes());
        let said = output.err();
        let count = |word: &str| said.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!((count("open: the timeline"), count("scan: ")), (1, scans), "{event}: {said}");
    }
}

#[test]
fn a_clock_that_is_set_back_keeps_no_call_in_flight() {
    let repo = repo(Mode::Commit);
    hook(&repo, BEGIN, "1");
    let payload = json!({"hook_event_name": CALL, "session_id": "s", "tool_name": "Edit", "tool_use_id": "t"});
    Output::fired(&mut repo.oxundo_command(["hook", "claude"]), payload.to_string().as_bytes()).success();
    repo.sh("echo early >>README.txt");
    // It began as the system was started, and in what is the future now.
    repo.sh("sed -i 's/\"at\":\"[0-9]*/\"at\":\"2999/; s/\"since_boot\":[0-9]*,/\"since_boot\":0,/' .git/oxundo/calls");
    assert!(repo.sh("cat .git/oxundo/calls").contains("\"since_boot\":0,"));
    repo.undo();
}

#[test]
fn while_a_call_is_in_flight_the_users_commands_are_busy() {
    let commands: &[&[&str]] =
        &[&["undo"], &["undo", "--only", "1"], &["redo"], &["restore", "1"], &["branch", "other", "1"], &["squash"]];
    for way_out in [CALLED, "PostToolUseFailure", BEGIN, "abort"] {
        let repo = repo(Mode::Commit);
        let before = repo.state();
        hook(&repo, BEGIN, "1");
        tool(&repo, CALL, "t0", "s");
        repo.sh("echo early >>README.txt");
        tool(&repo, CALL, "t1", "s");
        tool(&repo, CALLED, "t0", "s");
        for command in commands {
            let error = repo.refuses(command, "busy");
            assert!(error["message"].as_str().is_some_and(|text| text.contains("(Edit README.txt)")), "{error}");
            assert_eq!(
                error["hints"][1],
                "if you have stopped the agent: 'oxundo turn abort --session s' ends its turn"
            );
        }
        assert_eq!(repo.json(["status"]).1["refusal"]["code"], "busy");
        repo.oxundo(["checkpoint", "meanwhile"]).success();
        let mut steps = 1;
        match way_out {
            // Escape: nothing tells of the call's end, or of the prompt's.
            BEGIN => {
                hook(&repo, BEGIN, "2");
                tool(&repo, CALL, "t2", "s");
                repo.sh("echo second >>README.txt");
                tool(&repo, CALLED, "t2", "s");
                steps = 2;
            }
            "abort" => repo.oxundo(["turn", "abort", "--session", "s"]).success(),
            event => tool(&repo, event, "t1", "s"),
        }
        repo.oxundo(["undo", "--steps", &steps.to_string()]).success();
        repo.state().assert_is(&before, &format!("after {way_out}"));
    }
}

#[test]
fn after_escape_in_the_middle_of_a_call_undo_is_not_busy() {
    let repo = repo(Mode::Commit);
    repo.sh("mkfifo ../home/tool ../home/more; echo early >>README.txt");
    let before = repo.state();
    // The agent is git, which lives on. It had a process already when the call began: its shell. The call is a 'cat'.
    let begins = call(CALL, 1, ",\"tool_name\":\"Bash\"");
    let lines = [
        &call(BEGIN, 1, ""),
        &begins,
        "echo work >>README.txt; cat ../home/tool & touch ../home/at-work; wait",
        "touch ../home/escaped; read line <../home/more",
    ];
    std::fs::write(repo.home().join("agent"), lines.join("\n")).expect("write the agent");
    let mut agent = repo.git_command(["-c", "alias.agent=!sh ../home/agent", "agent"]).spawn().expect("start an agent");
    repo.wait_for("at-work");
    call_began(&repo, "2001");
    repo.refuses(&["undo"], "busy");
    // Escape: the agent kills what it has started, and no hook tells of it.
    repo.sh("true >../home/tool");
    repo.wait_for("escaped");
    repo.undo();
    repo.sh("true >../home/more");
    agent.wait().expect("it ends");
    repo.state().assert_is(&before, "the prompt is undone");
}

#[test]
fn what_the_user_saves_after_a_call_was_denied_is_theirs_from_the_next_call_on() {
    for denied in ["Bash", "Edit"] {
        for next in ["Bash", "Edit", "none"] {
            let repo = Sandbox::new();
            repo.sh("mkfifo ../home/more; seq 9 >f; echo g >g; git add .; git commit -qm files");
            let file = repo.path("f").display().to_string();
            let about = |tool: &str, id: u32| {
                format!(
                    ",\"tool_name\":\"{tool}\",\"tool_use_id\":\"t{id}\",\"tool_input\":{{\"file_path\":\"{file}\"}}"
                )
            };
            let mut lines = vec![
                call(BEGIN, 1, ""),
                call(CALL, 1, &about("Edit", 1)),
                "sed -i s/^1$/its/ f".to_owned(),
                call(CALLED, 1, &about("Edit", 1)),
                call(CALL, 1, &about(denied, 2)),
                "touch ../home/at-work; read line <../home/more".to_owned(),
            ];
            if next != "none" {
                lines.push(call(CALL, 1, &about(next, 3)));
                lines.push("sed -i s/^9$/its/ f".to_owned());
                lines.push(call(CALLED, 1, &about(next, 3)));
            }
            lines.push(call(END, 1, ""));
            std::fs::write(repo.home().join("agent"), lines.join("\n")).expect("write the agent");
            let mut agent =
                repo.git_command(["-c", "alias.agent=!sh ../home/agent", "agent"]).spawn().expect("start an agent");
            repo.wait_for("at-work");
            // It began long ago.
            call_began(&repo, "2001");
            repo.sh(r#"perl -pi -e 's/"clock":(\d+)/q("clock":) . ($1 - 20_000_000_000)/e' .git/oxundo/calls"#);
            repo.sh("sed -i s/^5$/mine/ f; echo mine >>g; echo mine >new; true >../home/more");
            agent.wait().expect("it ends");
            let its = repo.git(["show", "--format=", "-U0", "HEAD"]);
            // Without another call nobody knows what it was that was not denied.
            assert_eq!(its.contains("+mine"), next == "none", "{denied}, {next}: {its}");
            if next == "none" {
                continue;
            }
            let after = repo.state();
            repo.undo();
            repo.assert_file("f", "1\n2\n3\n4\nmine\n6\n7\n8\n9\n", "the agent's goes, and what is the user's stays");
            repo.assert_file("g", "g\nmine\n", "it is the user's");
            repo.assert_file("new", "mine\n", "it is the user's");
            repo.redo();
            repo.state().assert_is(&after, "redo");
        }
    }
}

#[test]
fn a_call_that_outlasts_its_prompt_is_still_its_sessions() {
    for outlasts in [true, false] {
        let repo = repo(Mode::Commit);
        repo.sh("mkfifo ../home/tool ../home/more");
        let before = repo.state();
        // The agent is git. It lists nothing of what is in the background, and does not tell of this call's end.
        let told = |event, more| call(event, 1, more).replace("hook claude", "hook codex");
        let work = "(cat ../home/tool; echo late >>late.txt; touch ../home/late) >../home/said 2>&1 &";
        let lines = [
            told(BEGIN, ""),
            told(CALL, ",\"tool_name\":\"Bash\""),
            format!("echo work >>README.txt; {}", if outlasts { work } else { "true" }),
            told(END, ""),
            "touch ../home/stopped; read line <../home/more; wait".to_owned(),
        ];
        std::fs::write(repo.home().join("agent"), lines.join("\n")).expect("write the agent");
        let agent = ["-c", "alias.agent=!sh ../home/agent", "agent"];
        let mut agent = repo.git_command(agent).spawn().expect("start an agent");
        repo.wait_for("stopped");
        let open = if outlasts { json!(3) } else { Value::Null };
        assert_eq!(repo.json(["status"]).1["open_turn"], open);
        assert_eq!(repo.json(["status"]).1["refusal"], Value::Null, "the user need not wait for it");
        if outlasts {
            repo.sh("true >../home/tool");
            repo.wait_for("late");
            hook_of(&repo, "codex", BEGIN, "2", "s");
            assert!(agents_commits(&repo).contains("+late"), "what it did after the prompt's end is its own");
            let turns = repo.log();
            assert_eq!((&turns[1]["turn"], &turns[1]["interrupted"]), (&json!(3), &json!(false)), "{turns:?}");
        }
        repo.sh("true >../home/more");
        agent.wait().expect("it ends");
        repo.undo();
        repo.state().assert_is(&before, "the prompt is undone with it");
    }
}

#[test]
fn the_call_of_an_agent_that_is_gone_is_not_in_flight() {
    let repo = repo(Mode::Commit);
    let before = repo.state();
    let call = call(CALL, 1, ",\"tool_name\":\"Bash\"");
    // git is the agent, and is gone when this is done.
    std::fs::write(
        repo.home().join("agent"),
        format!("{}; {call}; echo early >>README.txt\n:", self::call(BEGIN, 1, "")),
    )
    .expect("write the agent");
    repo.sh("git -c alias.agent='!sh ../home/agent; :' agent");
    repo.undo();
    repo.state().assert_is(&before, "its turn is closed, and undone");
}

#[test]
fn a_call_after_a_command_is_its_agents_and_what_was_before_it_the_users() {
    for mode in Mode::tried() {
        for after in ["undo", END] {
            let repo = repo(mode);
            hook(&repo, BEGIN, "1");
            repo.sh("echo early >>README.txt");
            match after {
                "undo" => repo.undo(),
                event => hook(&repo, event, "1"),
            }
            repo.sh("echo users-own >>first.txt; echo users-own >own.txt");
            let users = repo.state();
            tool(&repo, CALL, "t1", "s");
            repo.sh("echo late >>README.txt");
            repo.refuses(&["undo"], "busy");
            tool(&repo, CALLED, "t1", "s");
            hook(&repo, END, "1");
            let agents = agents_commits(&repo);
            assert!(!agents.contains("+users-own"), "{mode:?}, {after}: {agents}");
            assert!(mode == Mode::Ghost || agents.contains("+late"), "{mode:?}, {after}: {agents}");
            if after == "undo" {
                assert_eq!(messages(&repo)[0], "prompt 1", "of the same prompt");
            }
            repo.undo();
            repo.state().assert_is(&users, &format!("{mode:?}, {after}: what the agent did since its call is undone"));
        }
    }
}

#[test]
fn what_a_call_changes_that_waited_over_an_undo_is_its_agents() {
    let repo = repo(Mode::Commit);
    hook(&repo, BEGIN, "1");
    tool(&repo, CALL, "t0", "s");
    repo.sh("echo early >>README.txt");
    tool(&repo, CALLED, "t0", "s");
    // It waits for a permission: a call without a process is in flight for some seconds.
    tool(&repo, CALL, "t1", "s");
    call_began(&repo, "2001");
    repo.undo();
    repo.sh("echo users-own >own.txt");
    let users = repo.state();
    repo.sh("echo late >>README.txt");
    tool(&repo, CALLED, "t1", "s");
    tool(&repo, CALL, "t2", "s");
    repo.sh("echo later >>README.txt");
    tool(&repo, CALLED, "t2", "s");
    hook(&repo, END, "1");
    hook(&repo, BEGIN, "2");
    hook(&repo, END, "2");
    // The user's work is beside it: it is kept without commits, and in no commit of the user's.
    let commits = repo.git(["log", "-p"]);
    assert!(!commits.contains("+late") && !commits.contains("users-own"), "{commits}");
    repo.undo();
    repo.state().assert_is(&users, "what its calls changed is undone");
}

#[test]
fn a_session_whose_prompt_changed_nothing_goes_on_in_a_turn_of_its_own() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.sh("echo a >a; git add a; git commit -qm a");
        if mode == Mode::Ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        hook(&repo, BEGIN, "1");
        hook(&repo, END, "1");
        assert!(repo.log().is_empty(), "it changed nothing");
        repo.sh("echo mine >>a");
        let before = repo.state();
        tool(&repo, "PreToolUse", "c1", "s");
        repo.sh("echo its >README.txt");
        tool(&repo, "PostToolUse", "c1", "s");
        let again = json!({"hook_event_name": END, "session_id": "s", "prompt_id": "1", "stop_hook_active": true});
        Output::fired(&mut repo.oxundo_command(["hook", "claude"]), again.to_string().as_bytes()).success();
        let turns = repo.log();
        assert_eq!(turns.len(), 1, "{turns:?}");
        assert_eq!(turns[0]["session"], "s");
        let after = repo.state();
        assert_eq!(
            repo.json(["show", "1"]).1["files"].as_array().map(Vec::len),
            Some(1),
            "what the user saved is theirs"
        );
        repo.undo();
        repo.state().assert_is(&before, "undo");
        repo.redo();
        repo.state().assert_is(&after, "redo");
        repo.assert_sound();
    }
}

#[test]
fn a_call_of_a_session_that_tells_of_no_prompt_begins_nothing() {
    let repo = repo(Mode::Commit);
    tool(&repo, CALL, "t1", "other");
    repo.sh("echo late >late.txt");
    assert_eq!(repo.json(["status"]).1["open_turn"], Value::Null);
    assert!(!repo.exists(".git/oxundo/calls"));
    repo.undo();
    assert!(repo.exists("late.txt"), "it is taken for the user's");
}

#[test]
fn a_call_that_begins_in_the_middle_of_an_undo_waits_for_it() {
    let repo = repo(Mode::Commit);
    repo.git(["config", "oxundo.onUndo", ": >../home/undoing; until [ -e ../home/calling ]; do sleep 0.02; done"]);
    let before = repo.state();
    hook(&repo, BEGIN, "1");
    repo.sh("echo early >>README.txt");
    let undo = repo.spawn(&["undo"]);
    repo.wait_for("undoing");
    let calling = format!(": >../home/calling; {}; echo late >late.txt", call(CALL, 1, ",\"tool_name\":\"Bash\""));
    repo.by_agent(&calling).success();
    Output::awaited(undo).success();
    repo.refuses(&["undo"], "busy");
    hook(&repo, END, "1");
    assert_eq!(messages(&repo)[0], "prompt 1", "what the agent did is its own");
    repo.undo();
    repo.state().assert_is(&before, "and is undone");
}

#[test]
fn what_a_turn_could_not_commit_is_not_saved_as_the_users() {
    for blocked in [BEGIN, END] {
        let repo = repo(Mode::Commit);
        let lock = |event: &str| {
            if event == blocked {
                repo.sh("touch .git/index.lock");
            }
        };
        repo.sh("echo users-first >>first.txt");
        lock(BEGIN);
        hook(&repo, BEGIN, "1");
        repo.sh("rm -f .git/index.lock; echo agents-own >>README.txt");
        lock(END);
        hook(&repo, END, "1");
        repo.sh("rm -f .git/index.lock; echo users-second >>first.txt");
        let before = repo.state();
        hook(&repo, BEGIN, "2");
        repo.sh("echo agents-second >>README.txt");
        hook(&repo, END, "2");
        let dirty = repo.git(["log", "HEAD", "--branches", "--grep=uncommitted changes", "-p", "--format="]);
        assert!(!dirty.contains("+agents-"), "{blocked}: {dirty}");
        assert!(!agents_commits(&repo).contains("+users-"), "{blocked}");
        repo.undo();
        repo.state().assert_is(&before, blocked);
        repo.sh("git commit -qam mine");
        hook(&repo, BEGIN, "3");
        repo.sh("echo agents-third >>README.txt");
        hook(&repo, END, "3");
        assert!(agents_commits(&repo).contains("+agents-third"), "committed as ever once all is committed");
        repo.assert_sound();
    }
}

/// Two turns, and a program that signs commits and leaves a sign of that.
fn signing() -> Sandbox {
    let repo = Sandbox::new();
    repo.write(
        "../home/gpg",
        "#!/bin/sh\ncat >/dev/null; touch ~/signed; echo '[GNUPG:] SIG_CREATED ' >&2; echo signature\n",
    );
    repo.sh("chmod +x ~/gpg; git config gpg.program ~/gpg; git config commit.gpgSign true");
    for script in TWO_TURNS {
        repo.agent(script);
    }
    repo.sh("rm ~/signed");
    repo
}

#[test]
fn what_is_only_shown_is_not_signed() {
    let repo = signing();
    for args in [&["squash"][..], &["undo", "--revert"], &["undo", "--only", "2"]] {
        repo.oxundo([args, &["--dry-run"]].concat()).success();
        assert!(!repo.home().join("signed").exists(), "{args:?}");
    }
    repo.oxundo(["squash"]).success();
    assert!(repo.home().join("signed").exists(), "what is made is signed");
}

#[test]
fn what_a_killed_look_left_in_the_temporary_directory_goes_with_the_next() {
    let repo = signing();
    let place = repo.home().join("tmp");
    let repo = repo.with_variable("TMPDIR", &place);
    repo.sh("cd ~; mkdir -p tmp/oxundo-look-old/ab tmp/oxundo-look-used tmp/oxundo-look-new tmp/own
        echo object >tmp/oxundo-look-old/ab/cd; touch -d '2 hours ago' tmp/*; touch tmp/oxundo-look-new");
    let used = File::open(place.join("oxundo-look-used")).expect("open a directory");
    used.lock().expect("it is in use");
    // What signs has to see what was only looked at.
    repo.oxundo(["squash"]).success();
    assert_eq!(repo.sh("ls ~/tmp"), "own\noxundo-look-new\noxundo-look-used", "what nobody uses is gone");
    drop(used);
}

#[test]
fn what_a_turn_left_uncommitted_is_in_no_dirty_commit_whatever_came_in_between() {
    type Story = (&'static str, fn(&Sandbox));
    // Uncommitted work of the user's and of an agent's, in one file.
    fn broken_into(repo: &Sandbox) {
        repo.sh("echo users-first >>README.txt");
        hook(repo, BEGIN, "1");
        repo.sh("echo early >early.txt");
        repo.undo();
        repo.sh("echo agents-late >>README.txt");
        hook(repo, END, "1");
    }
    // A file with an agent's line that nobody has committed.
    fn ghost(repo: &Sandbox) {
        repo.sh("seq 9 >long.txt; git add .; git commit -qm long");
        repo.turn(Mode::Ghost, "echo agents-late >>long.txt");
    }
    let stories: [Story; 14] = [
        ("git mv", |repo| {
            ghost(repo);
            repo.sh("git mv long.txt moved.txt; echo users-first >>moved.txt");
        }),
        ("mv, and git add", |repo| {
            ghost(repo);
            repo.sh("mv long.txt moved.txt; git add -A");
        }),
        ("a copy", |repo| {
            ghost(repo);
            repo.sh("cp long.txt copy.txt; git checkout -q long.txt; git add copy.txt");
        }),
        ("a secret under another name", |repo| {
            repo.turn(Mode::Commit, "echo agents-own=1 >.env");
            repo.sh("mv .env plain.txt; git add plain.txt");
        }),
        ("a new file, and a turn that leaves nothing meanwhile", |repo| {
            repo.turn(Mode::Ghost, "echo agents-own >new.txt");
            repo.turn(Mode::Commit, "echo agents-next >>first.txt");
            repo.sh("git add new.txt");
        }),
        ("another branch", |repo| {
            broken_into(repo);
            repo.sh("git switch -qc other");
        }),
        ("another name", |repo| {
            broken_into(repo);
            repo.sh("git branch -m renamed");
        }),
        ("no branch", |repo| {
            broken_into(repo);
            repo.sh("git switch -q --detach");
        }),
        ("oxundo branch", |repo| {
            broken_into(repo);
            repo.oxundo(["branch", "other"]).success();
        }),
        ("oxundo restore", |repo| {
            broken_into(repo);
            repo.sh("rm first.txt");
            repo.oxundo(["restore", "1", "--", "first.txt"]).success();
        }),
        ("the stash, and a prompt meanwhile", |repo| {
            broken_into(repo);
            repo.sh("git stash -q");
            repo.hook_turn("between", "echo between >between.txt");
            repo.sh("git stash pop -q");
        }),
        ("a part of it committed", |repo| {
            broken_into(repo);
            repo.sh("sed -i /agents/d README.txt; git commit -qam mine; echo agents-late >>README.txt");
        }),
        ("ghost mode", |repo| {
            repo.git(["config", "oxundo.mode", "ghost"]);
            repo.hook_turn("ghost", "echo agents-late >>README.txt");
            repo.git(["config", "oxundo.mode", "commit"]);
        }),
        ("a merge that the agent left", |repo| {
            repo.sh("git switch -qc side; echo side >side.txt; git add .; git commit -qm side; git switch -q main");
            hook(repo, BEGIN, "m");
            repo.sh("git merge -q --no-ff --no-commit side; echo agents-late >>README.txt");
            hook(repo, END, "m");
            repo.sh("rm .git/MERGE_*");
        }),
    ];
    for (what, story) in stories {
        let repo = repo(Mode::Commit);
        repo.sh("git commit -qam mine");
        story(&repo);
        repo.sh("echo users-second >>first.txt");
        let before = repo.state();
        repo.hook_turn("next", "echo agents-next >next.txt");
        let dirty = repo.git(["log", "HEAD", "--branches", "--grep=uncommitted changes", "-p", "--format="]);
        assert!(!dirty.contains("+agents-"), "{what}: {dirty}");
        assert!(!agents_commits(&repo).contains("+users-"), "{what}");
        repo.undo();
        repo.state().assert_is(&before, what);
        // All is committed, or what is left is only the user's.
        repo.sh("git commit -qam all; echo users-third >>README.txt");
        repo.hook_turn("last", "echo agents-last >>first.txt");
        let dirty = repo.git(["log", "-1", "--grep=uncommitted changes", "-p", "--format="]);
        assert!(dirty.contains("+users-third"), "{what}: {dirty}");
        assert!(agents_commits(&repo).contains("+agents-last"), "{what}: it is committed as ever");
        repo.assert_sound();
    }
}

#[test]
fn what_looks_like_a_turns_file_and_has_nothing_of_it_is_committed() {
    let repo = repo(Mode::Commit);
    repo.sh("seq 9 >long.txt; git add .; git commit -qm long");
    repo.turn(Mode::Ghost, "echo agents-late >>long.txt; : >empty.txt");
    repo.sh("git checkout -q long.txt; cp long.txt copy.txt; : >other.txt; git add copy.txt other.txt");
    repo.turn(Mode::Commit, "echo agents-next >next.txt");
    let subjects = repo.git(["log", "-2", "--format=%s"]);
    assert!(subjects.contains("uncommitted changes"), "a copy of what was committed, and an empty file: {subjects}");
    assert!(agents_commits(&repo).contains("+agents-next"));
}

#[test]
fn a_turn_that_is_kept_without_commits_says_so() {
    let repo = repo(Mode::Commit);
    repo.sh("git commit -qam mine");
    let says = |script: &str, verb: &str, why: &str| {
        let output = repo.agent(script);
        output.success();
        output.warns(why);
        repo.oxundo(["status"]).says(&format!(" {verb} no commits: {why}"));
        let (_, status) = repo.json(["status"]);
        assert_eq!(status["obstacle"], why);
    };
    repo.turn(Mode::Ghost, "echo ghost >>README.txt");
    assert!(!repo.oxundo(["status"]).out().contains("no commits"), "it was not to make any");
    says("echo next >next.txt", "made", "'README.txt' has what turn 3 left uncommitted");
    hook(&repo, BEGIN, "1");
    repo.oxundo(["status"]).says("Turn 5 makes no commits: 'README.txt' has what turn 3 left uncommitted");
    repo.sh("echo more >>next.txt");
    hook(&repo, END, "1");
    repo.oxundo(["status"]).says("Turn 5 made no commits: 'README.txt' has what turn 3 left uncommitted");
    let begun = repo.oxundo(["turn", "begin"]);
    begun.warns("recorded without commits: 'README.txt' has what turn 3 left uncommitted");
    repo.oxundo(["turn", "end"]).success();
    repo.sh("git add -A; git commit -qm all; echo note >note.txt");
    says("echo noted >>note.txt", "made", "git tracks none of these files, or is told to leave them alone");
    says("echo late >>first.txt; : >.git/MERGE_HEAD", "made", "the agent left a merge in progress");
    repo.sh("rm .git/MERGE_HEAD; git commit -qam late");
    repo.agent("echo last >>first.txt").success();
    assert!(!repo.oxundo(["status"]).out().contains("no commits"), "it made one");
    assert_eq!(repo.json(["status"]).1["obstacle"], Value::Null);
    repo.agent("git branch only-a-branch").success();
    assert!(!repo.oxundo(["status"]).out().contains("no commits"), "there is nothing to commit");
}

#[test]
fn a_secret_that_an_agent_staged_is_in_no_commit() {
    let repo = repo(Mode::Commit);
    hook(&repo, BEGIN, "1");
    repo.sh("echo TOKEN=agents-own >.env; git add -f .env; echo agents-first >>README.txt");
    hook(&repo, END, "1");
    assert!(agents_commits(&repo).contains("+agents-first"));
    repo.sh("echo users-own >>first.txt");
    let before = repo.state();
    hook(&repo, BEGIN, "2");
    repo.sh("echo agents-second >>README.txt");
    hook(&repo, END, "2");
    let all = repo.git(["log", "--branches", "-p", "--format="]);
    assert!(!all.contains("TOKEN"), "{all}");
    repo.undo();
    repo.state().assert_is(&before, "it stays staged");
}

impl Sandbox {
    /// A prompt, and what its agent does.
    #[track_caller]
    fn hook_turn(&self, prompt: &str, script: &str) {
        hook(self, BEGIN, prompt);
        self.sh(script);
        hook(self, END, prompt);
    }
}

/// An end of a prompt that was announced: another hook made the agent go on after the first one.
#[track_caller]
fn end_again(repo: &Sandbox, prompt: &str) {
    let payload =
        json!({"hook_event_name": END, "session_id": "s", "prompt_id": prompt, "stop_hook_active": true}).to_string();
    let output = Output::fired(&mut repo.oxundo_command(["hook", "claude"]), payload.as_bytes());
    output.success();
    assert_eq!((output.out(), output.err()), (String::new(), String::new()));
}

#[test]
fn what_an_agent_does_between_two_ends_of_its_prompt_is_a_turn_of_its_own() {
    for mode in Mode::tried() {
        let repo = repo(mode);
        let before = repo.state();
        hook(&repo, BEGIN, "1");
        repo.sh("echo early >>README.txt");
        hook(&repo, END, "1");
        let first = repo.state();
        // What only gets a name is as it was.
        repo.oxundo(["checkpoint", "named"]).success();
        repo.oxundo(["keep", "3"]).success();
        repo.oxundo(["checkpoint", "--delete", "named"]).success();
        repo.sh("echo again >>README.txt; echo again >again.txt; git add again.txt; git commit -qm own again.txt");
        end_again(&repo, "1");
        let second = repo.state();
        repo.sh("echo third >third.txt");
        end_again(&repo, "1");
        assert_eq!(messages(&repo)[..3], ["prompt 1", "prompt 1", "prompt 1"], "{mode:?}");
        end_again(&repo, "1");
        assert_eq!(repo.log().len(), 5, "told twice, it is once");
        if mode == Mode::Commit {
            assert!(agents_commits(&repo).contains("+again"));
            assert_eq!(repo.state().tracked_changes(), Vec::<String>::new());
        }
        for state in [&second, &first, &before] {
            repo.undo();
            repo.state().assert_is(state, &format!("{mode:?}: one after the other is undone"));
        }
        repo.assert_sound();
    }
}

#[test]
fn without_the_state_at_the_first_end_what_came_before_the_second_is_the_users() {
    // A turn that was undone, one that changed nothing, another prompt, and somebody else's part in it.
    for between in ["undo", "nothing", "another", "shared", "undo and redo", "nothing of another's"] {
        let repo = repo(Mode::Commit);
        hook(&repo, BEGIN, "1");
        repo.sh("echo early >>README.txt");
        if between == "shared" {
            hook_of(&repo, "claude", BEGIN, "1", "o");
            hook(&repo, END, "1");
            hook_of(&repo, "claude", END, "1", "o");
        } else {
            hook(&repo, END, "1");
        }
        repo.sh("echo users-own >own.txt");
        match between {
            "undo" => repo.undo(),
            "undo and redo" => {
                repo.undo();
                repo.redo();
            }
            "nothing of another's" => {
                hook_of(&repo, "claude", BEGIN, "1", "o");
                hook_of(&repo, "claude", END, "1", "o");
            }
            "nothing" => {
                hook(&repo, BEGIN, "2");
                hook(&repo, END, "2");
            }
            _ => {}
        }
        let (turns, users) = (repo.log().len(), repo.state());
        end_again(&repo, if matches!(between, "nothing" | "another") { "2" } else { "1" });
        assert_eq!(repo.log().len(), turns, "{between}: no turn");
        repo.state().assert_is(&users, between);
    }
}
