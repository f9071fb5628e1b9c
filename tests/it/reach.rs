//! Which sessions the hooks reach that are set up: in subdirectories, in linked worktrees, and where a setting turns them
//! off; and what `undo` says where none has fired.

use crate::doctor::{doctor, finding, nothing, with_programs};
use crate::sandbox::{Output, Sandbox};
use serde_json::{Value, json};

fn hook(repo: &Sandbox, agent: &str, payload: &Value) -> Output {
    let output = Output::fed(&mut repo.oxundo_command(["hook", agent]), payload.to_string().as_bytes());
    output.success();
    assert!(output.stdout.is_empty(), "a hook is silent on stdout\n{output:?}");
    output
}

fn trust(repo: &Sandbox) {
    let folders = json!({repo.base().to_string_lossy(): "TRUST_FOLDER"});
    std::fs::create_dir_all(repo.home().join(".gemini")).expect("make a directory");
    std::fs::write(repo.home().join(".gemini/trustedFolders.json"), folders.to_string()).expect("write it");
}

/// The advice of an `init`.
fn advice(repo: &Sandbox, args: &[&str]) -> String {
    repo.json([&["init"], args].concat()).1["advice"].to_string()
}

#[test]
fn agents_that_look_where_they_start_are_told_of_in_a_subdirectory() {
    for (agent, title, flag) in [("gemini", "Gemini CLI", ""), ("qwen", "Qwen Code", ""), ("pi", "pi", "")] {
        let mut repo = Sandbox::new();
        let path = with_programs(&repo, &["gemini", "qwen", "pi", "goose"]);
        trust(&repo);
        repo.sh("mkdir -p sub/deep");
        assert!(!advice(&repo, &[agent, "goose"]).contains("does not see"), "{flag}");
        nothing(&doctor(&repo, &path));
        repo.start_in("sub/deep");
        let (message, mend) = finding(&doctor(&repo, &path), "would not see its hooks");
        assert!(message.starts_with(&format!("{title} started in 'sub/deep'")), "{message}");
        assert_eq!(mend, format!("oxundo init {agent} --user"));
        assert!(advice(&repo, &[agent]).contains(&format!("{title} started in 'sub/deep' does not see this")));
        assert!(!advice(&repo, &[agent, "--user"]).contains("does not see"));
        nothing(&doctor(&repo, &path));
    }
}

#[test]
fn settings_that_turn_hooks_off_are_told_of() {
    let home = "../home";
    for (agent, file, off, on) in [
        ("claude", ".claude/settings.json", json!({"disableAllHooks": true}), json!({"disableAllHooks": false})),
        ("claude", "../home/.claude/settings.json", json!({"disableAllHooks": true}), json!({})),
        (
            "gemini",
            "../home/.gemini/settings.json",
            json!({"hooksConfig": {"enabled": false}}),
            json!({"hooksConfig": {}}),
        ),
        (
            "gemini",
            "../home/.gemini/settings.json",
            json!({"hooksConfig": {"disabled": ["oxundo-BeforeAgent"]}}),
            json!({"hooksConfig": {"disabled": ["mine"]}}),
        ),
        ("qwen", "../home/.qwen/settings.json", json!({"disableAllHooks": true}), json!({"disableAllHooks": "no"})),
        ("droid", ".factory/settings.json", json!({"hooksDisabled": true}), json!({"hooksDisabled": false})),
        ("copilot", "../home/.copilot/settings.json", json!({"disableAllHooks": true}), json!({})),
    ] {
        let repo = Sandbox::new();
        let path = with_programs(&repo, &["claude", "gemini", "qwen", "droid", "copilot"]);
        trust(&repo);
        std::fs::write(
            repo.home().join(".claude.json"),
            json!({"projects": {repo.root().to_string_lossy(): {"hasTrustDialogAccepted": true}}}).to_string(),
        )
        .expect("write it");
        repo.oxundo(["init", agent]).success();
        repo.sh(&format!("mkdir -p '{}'", file.rsplit_once('/').expect("a directory").0));
        repo.write(file, off.to_string());
        let (message, mend) = finding(&doctor(&repo, &path), "its hooks are turned off by");
        assert!(message.contains(file.trim_start_matches(home)) && mend.contains("EDITOR"), "{message} {mend}");
        repo.write(file, on.to_string());
        nothing(&doctor(&repo, &path));
    }
}

#[test]
fn the_more_particular_file_decides() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["claude"]);
    repo.sh("mkdir -p ../home/.claude; echo '{\"disableAllHooks\": true}' >../home/.claude/settings.json");
    repo.write(".claude/settings.local.json", "{\"disableAllHooks\": false}");
    repo.oxundo(["init", "claude"]).success();
    hook(&repo, "claude", &json!({"hook_event_name": "UserPromptSubmit", "session_id": "s"}));
    nothing(&doctor(&repo, &path));
    repo.sh("mkdir -p ../home/.codex; printf '[features]\\nhooks = false # not now\\n' >../home/.codex/config.toml");
    repo.oxundo(["init", "codex"]).success();
    finding(&doctor(&repo, &path), "its hooks are turned off by 'features.hooks'");
}

#[test]
fn an_agent_that_is_older_than_the_form_of_its_hooks_is_told_of_until_they_have_fired() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["droid"]);
    repo.oxundo(["init", "droid"]).success();
    nothing(&doctor(&repo, &path));
    repo.sh("printf '#!/bin/sh\\necho droid v0.99.1\\n' >../home/bin/droid");
    finding(&doctor(&repo, &path), "Droid 0.99.1 may not load its hooks");
    repo.sh("printf '#!/bin/sh\\necho 0.215.0\\n' >../home/bin/droid");
    nothing(&doctor(&repo, &path));
    repo.sh("printf '#!/bin/sh\\necho 0.99.1\\n' >../home/bin/droid");
    hook(&repo, "droid", &json!({"hook_event_name": "UserPromptSubmit", "session_id": "s"}));
    nothing(&doctor(&repo, &path));
}

#[test]
fn hooks_that_are_missing_in_a_linked_worktree_are_told_of_in_each() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["qwen", "goose"]);
    repo.oxundo(["init", "qwen"]).success();
    repo.oxundo(["init", "goose", "--project"]).success();
    repo.sh("git add -f .agents; git commit -qm hooks");
    nothing(&doctor(&repo, &path));
    let linked = repo.linked("o'ther");
    for place in [&repo, &linked] {
        let (message, mend) = finding(&doctor(place, &path), "no hooks of Qwen Code are set up in the worktree");
        assert!(message.contains(&linked.root().display().to_string()), "{message}");
        assert_eq!(mend, "oxundo init qwen --user");
    }
    assert!(advice(&repo, &["qwen"]).contains("'oxundo init qwen --user' reaches the others"));
    let found = doctor(&repo, &path);
    let second = found["findings"][0]["mend"][1].as_str().expect("another remedy").to_owned();
    repo.sh(&second);
    nothing(&doctor(&repo, &path));
    linked.oxundo(["uninstall", "qwen"]).success();
    repo.oxundo(["init", "qwen", "--user"]).success();
    nothing(&doctor(&repo, &path));
    repo.linked("later");
    nothing(&doctor(&repo, &path));
}

#[test]
fn an_agents_own_way_into_a_linked_worktree_counts() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["claude"]);
    repo.oxundo(["init", "claude"]).success();
    let begin = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s"});
    hook(&repo, "claude", &begin);
    let linked = repo.linked("other");
    repo.sh("printf '#!/bin/sh\\necho 2.1.197 \\\\(Claude Code\\\\)\\n' >../home/bin/claude");
    finding(&doctor(&repo, &path), "no hooks of Claude Code are set up in the worktree");
    assert_eq!(doctor(&linked, &path)["about"]["agents"][0]["set_up_with"], "oxundo init claude");
    repo.sh("printf '#!/bin/sh\\necho 2.1.330 \\\\(Claude Code\\\\)\\n' >../home/bin/claude");
    nothing(&doctor(&repo, &path));
    let there = doctor(&linked, &path);
    nothing(&there);
    assert_eq!(there["about"]["agents"][0]["set_up_with"], Value::Null, "it reads the main worktree's file: {there}");
    repo.sh("printf '#!/bin/sh\\necho 2.1.197\\n' >../home/bin/claude");
    hook(&linked, "claude", &begin);
    nothing(&doctor(&repo, &path));
}

#[test]
fn a_worktree_that_is_removed_leaves_its_last_state() {
    let repo = Sandbox::new();
    let linked = repo.linked("other");
    linked.write("README.txt", "late\n").write("new.txt", "new\n");
    let removal = |top: &std::path::Path| json!({"hook_event_name": "WorktreeRemove", "session_id": "s", "cwd": repo.root(), "worktree_path": top});
    let before = repo.refs();
    for top in [repo.root().to_owned(), repo.home(), linked.path(".git"), linked.path("gone")] {
        hook(&repo, "claude", &removal(&top));
    }
    assert_eq!(repo.refs(), before, "only a linked worktree is meant");
    hook(&repo, "claude", &removal(linked.root()));
    hook(&repo, "claude", &removal(linked.root()));
    let listed = linked.oxundo(["checkpoint", "--list"]);
    assert!(listed.out().contains("before removal") && listed.out().contains("c1"), "{listed:?}");
    assert!(linked.exists("new.txt"), "nothing is moved");
    repo.sh("git worktree remove --force ../other");
    let name = "refs/oxundo/worktrees/other/timeline";
    let trees = repo.git(["ls-tree", "-r", "-d", "--name-only", name]);
    let tree = trees.lines().find(|line| line.ends_with("/worktree")).unwrap_or_else(|| panic!("{trees}"));
    assert_eq!(repo.git(["cat-file", "blob", &format!("{name}:{tree}/new.txt")]), "new");
    assert_eq!(repo.git(["cat-file", "blob", &format!("{name}:{tree}/README.txt")]), "late");
}

#[test]
fn undo_with_nothing_to_undo_says_which_hooks_have_been_silent() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["claude", "goose"]);
    let undo = |args: &[&str]| {
        let output = Output::of(repo.oxundo_command(args).env("PATH", &path));
        output.exits(4);
        output
    };
    let error = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).expect("an object")["error"].clone();
    assert!(!undo(&["undo"]).err().contains("hooks"));
    assert_eq!(error(&undo(&["--json", "undo"]))["hooks"], Value::Null);
    repo.oxundo(["init", "claude", "qwen"]).success();
    let silent = undo(&["undo"]);
    silent.warns("hint: Claude Code's hooks are set up here since 2");
    silent.warns(", and none has fired: 'oxundo doctor' tries them");
    assert!(!silent.err().contains("Qwen"), "an agent that is not installed is of no use\n{silent:?}");
    let hooks = error(&undo(&["--json", "undo", "--dry-run"]))["hooks"].clone();
    assert_eq!((&hooks[0]["agent"], &hooks[0]["installed"]), (&json!("claude"), &json!(true)), "{hooks}");
    assert_eq!((&hooks[1]["agent"], &hooks[1]["installed"]), (&json!("qwen"), &json!(false)), "{hooks}");
    assert_eq!(hooks[0]["last_fired"], Value::Null);
    let linked = repo.linked("linked");
    let there = Output::of(linked.oxundo_command(["undo"]).env("PATH", &path));
    there.warns("hint: Claude Code's hooks are set up in another worktree, not in this one: run 'oxundo init claude'");
    std::fs::remove_file(repo.home().join("bin/claude")).expect("remove it");
    undo(&["undo"]).warns("hint: Claude Code's hooks are set up here, but it is not installed (not found on PATH)");
    with_programs(&repo, &["claude"]);
    hook(&repo, "claude", &json!({"hook_event_name": "UserPromptSubmit", "session_id": "s"}));
    hook(&repo, "claude", &json!({"hook_event_name": "Stop", "session_id": "s"}));
    undo(&["undo"]).warns("hint: Claude Code's hooks last fired ");
    assert!(error(&undo(&["--json", "undo"]))["hooks"][0]["last_fired"].is_string());
}
