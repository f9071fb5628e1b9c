//! `doctor` tries the hooks that are set up, as the agents call them: an event that records nothing goes through the very
//! command line in the agent's file.

use crate::doctor::{doctor, finding, nothing, with_programs};
use crate::sandbox::{Output, Sandbox};
use oxundo::internals::ADAPTERS;
use serde_json::{Value, json};

/// Goose is installed: it asks for no approval.
fn repo() -> (Sandbox, String) {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["goose", "qwen", "cline"]);
    (repo, path)
}

/// PATH without the directory of this oxundo.
fn without_oxundo(repo: &Sandbox, path: &str) -> String {
    let own = env!("CARGO_BIN_EXE_oxundo").trim_end_matches("/oxundo");
    let path: Vec<_> = path.split(':').filter(|directory| *directory != own).collect();
    assert!(!repo.sh(&format!("PATH='{}' command -v oxundo || :", path.join(":"))).contains("oxundo"), "{path:?}");
    path.join(":")
}

#[test]
fn every_agents_hooks_work_and_a_trial_records_nothing() {
    let repo = Sandbox::new();
    let with_hooks = ADAPTERS.iter().filter(|adapter| !adapter.sessionless);
    let programs: Vec<_> = with_hooks.clone().map(|adapter| adapter.programs[0]).collect();
    let path = with_programs(&repo, &programs);
    for adapter in with_hooks {
        repo.oxundo(["init", adapter.name]).success();
    }
    repo.sh("echo dirty >>README.txt");
    let (before, outside) = (repo.everything(), repo.outside());
    let found = doctor(&repo, &path);
    assert_eq!(found["ok"], true, "{found}");
    for agent in found["about"]["agents"].as_array().expect("agents") {
        assert_eq!(agent["last_fired"], Value::Null, "{agent}");
    }
    repo.everything().assert_is(&before, "nothing is recorded");
    repo.outside().assert_is(&outside, "and nothing written");
    assert!(!repo.exists(".git/oxundo/hooks.log"));
}

#[test]
fn a_trial_of_an_open_turn_leaves_it_open() {
    let (repo, path) = repo();
    repo.oxundo(["init", "goose"]).success();
    repo.oxundo(["turn", "begin", "--session", "s"]).success();
    repo.sh("echo half >>README.txt");
    let before = repo.everything();
    nothing(&doctor(&repo, &path));
    repo.everything().assert_is(&before, "the turn goes on");
    assert_eq!(repo.json(["status"]).1["open_turn"], 1);
}

#[test]
fn hooks_do_nothing_where_oxundo_is_not_on_path() {
    let (repo, path) = repo();
    for agent in ["goose", "cline"] {
        repo.oxundo(["init", agent]).success();
        let found = doctor(&repo, &without_oxundo(&repo, &path));
        let (message, mend) = finding(&found, "there is no oxundo on PATH");
        assert!(message.contains(&repo.root().display().to_string()), "{message}");
        assert_eq!(found["ok"], false);
        let mended = repo.sh(&format!("PATH='{}'; {mend}; echo \"$PATH\"", without_oxundo(&repo, &path)));
        nothing(&doctor(&repo, &mended));
        repo.oxundo(["uninstall", agent]).success();
    }
}

#[test]
fn another_oxundo_is_told_of_and_so_is_an_older_one_that_does_not_answer() {
    let (repo, path) = repo();
    repo.oxundo(["init", "goose"]).success();
    let answer = json!({"oxundo_answer": {"version": "0.0.1", "program": "/elsewhere/oxundo"}});
    repo.sh(&format!(
        "printf '#!/bin/sh\\necho '\\''{answer}'\\''\\n' >../home/bin/oxundo; chmod +x ../home/bin/oxundo"
    ));
    finding(&doctor(&repo, &path), "call another oxundo, 0.0.1 in '/elsewhere'");
    repo.sh("printf '#!/bin/sh\\ncat\\n' >../home/bin/oxundo");
    let (message, _) = finding(&doctor(&repo, &path), "do not reach this oxundo");
    assert!(message.contains("home/bin/oxundo"), "{message}");
}

#[test]
fn a_mistake_in_the_command_line_is_found_and_mended() {
    let (repo, path) = repo();
    let settings = ".qwen/settings.json";
    repo.write(settings, "{\n  \"model\": \"m\"\n}\n");
    for (good, bad) in [
        ("exec oxundo hook qwen", "exec 'oxundo hook qwen"),
        ("exec oxundo hook qwen", "exec 'oxundo hook qwen'"),
        ("exec oxundo hook qwen", "oxundo hook qwen; exit 2"),
    ] {
        repo.oxundo(["init", "qwen"]).success();
        let right = String::from_utf8(repo.read(settings)).expect("UTF-8");
        repo.write(settings, right.replace(good, bad));
        let (message, mend) = finding(&doctor(&repo, &path), "its hook fails (exit code ");
        assert!(message.contains(settings), "{message}");
        assert_eq!(mend, "oxundo doctor --fix");
        repo.sh(&mend);
        repo.assert_file(settings, &right, "it is as init writes it");
        nothing(&doctor(&repo, &path));
    }
    repo.oxundo(["uninstall", "qwen"]).success();
    repo.assert_file(settings, "{\n  \"model\": \"m\"\n}\n", "and goes without a trace");
}

#[test]
fn a_hook_that_hangs_is_given_up() {
    let (repo, path) = repo();
    repo.oxundo(["init", "qwen"]).success();
    let text = String::from_utf8(repo.read(".qwen/settings.json")).expect("UTF-8");
    let hanging = text.replace("exec oxundo hook qwen", "sleep 100000; exec oxundo hook qwen");
    repo.write(".qwen/settings.json", hanging.replace("\"timeout\": 30000", "\"timeout\": 1000"));
    finding(&doctor(&repo, &path), "does not end within 1 s");
}

#[test]
fn a_committed_line_that_is_not_oxundos_is_not_run() {
    let (repo, path) = repo();
    repo.oxundo(["init", "qwen"]).success();
    let text = String::from_utf8(repo.read(".qwen/settings.json")).expect("UTF-8");
    repo.write(".qwen/settings.json", text.replace("exec oxundo hook qwen", "touch ran; exec oxundo hook qwen"));
    finding(&doctor(&repo, &path), "not as 'oxundo init' sets them up");
    assert!(repo.exists("ran"), "the user's own file is tried");
    repo.sh("rm ran; git add -f .qwen; git commit -qm theirs");
    finding(&doctor(&repo, &path), "they are not tried");
    repo.sh("mv .qwen kept; ln -s kept .qwen; git add -A; git commit -qm linked");
    finding(&doctor(&repo, &path), "they are not tried");
    assert!(!repo.exists("ran"), "what anybody may have committed is not");
    repo.oxundo(["doctor", "--fix"]).success();
    nothing(&doctor(&repo, &path));
}

#[test]
fn a_line_that_came_with_another_repository_is_not_run() {
    let (repo, path) = repo();
    repo.oxundo(["init", "qwen"]).success();
    let text = String::from_utf8(repo.read(".qwen/settings.json")).expect("UTF-8");
    repo.write(".qwen/settings.json", text.replace("exec oxundo hook qwen", "touch ran; exec oxundo hook qwen"));
    // As a submodule, or a clone, whose directory the agent's is.
    repo.sh("git init -q .qwen; cd .qwen; git add -A; git -c user.name=E -c user.email=e@x commit -qm theirs");
    finding(&doctor(&repo, &path), "they are not tried");
    repo.sh("mv .qwen module; ln -s module .qwen");
    finding(&doctor(&repo, &path), "they are not tried");
    repo.sh("rm .qwen; mkdir .qwen; ln -s ../module/settings.json .qwen/settings.json");
    finding(&doctor(&repo, &path), "they are not tried");
    repo.sh("rm -rf .qwen; cp -r module .qwen; rm -rf .qwen/.git; git add -f .qwen");
    let path = path.as_str();
    let mut strict = repo.oxundo_command(["--json", "doctor"]);
    strict.env("PATH", path).env("GIT_LITERAL_PATHSPECS", "1");
    assert!(Output::of(&mut strict).out().contains("they are not tried"));
    assert!(!repo.exists("ran"));
}

#[test]
fn a_script_that_may_not_be_executed_is_found_and_mended() {
    let (repo, path) = repo();
    repo.oxundo(["init", "cline"]).success();
    nothing(&doctor(&repo, &path));
    for mends in ["oxundo doctor --fix", "oxundo init cline"] {
        repo.chmod(".clinerules/hooks/TaskStart", 0o640);
        let (message, mend) = finding(&doctor(&repo, &path), "its hook may not be executed");
        assert!(
            message.ends_with("/.clinerules/hooks/TaskStart'") && mend == "oxundo doctor --fix",
            "{message} {mend}"
        );
        repo.sh(mends);
        assert_eq!(repo.mode(".clinerules/hooks/TaskStart") & 0o777, 0o750);
        nothing(&doctor(&repo, &path));
    }
}
