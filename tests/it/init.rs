//! `oxundo init` and `uninstall`: agents' files are changed where they must be, and nowhere else.

use crate::sandbox::{Output, Sandbox};
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn parsed(repo: &Sandbox, path: &str) -> Value {
    serde_json::from_slice(&repo.read(path)).expect("it is JSON")
}

#[test]
fn claudes_hooks_are_set_up_work_and_go_again() {
    let repo = Sandbox::new();
    let settings = "{\n  \"permissions\": { \"allow\": [\"Bash\"] }, // mine\n  \"model\": \"opus\"\n}\n";
    repo.write(".claude/settings.local.json", settings);
    let config = repo.read(".git/config");
    let output = repo.oxundo(["init", "claude"]);
    output.success();
    output.says("changed   .claude/settings.local.json (Claude Code)");
    let text = String::from_utf8(repo.read(".claude/settings.local.json")).expect("text");
    assert!(text.starts_with(settings.trim_end_matches("\n}\n")), "all else is as it was: {text}");
    assert_eq!(repo.git(["config", "--get-all", "notes.displayRef"]), "refs/notes/oxundo*");
    assert_eq!(repo.git(["config", "--get-all", "notes.rewriteRef"]), "refs/notes/oxundo*");

    let shown = repo.git_command(["show", "-s"]).output().expect("run git");
    assert_eq!(String::from_utf8_lossy(&shown.stderr), "", "git does not complain that there are no notes yet");

    let again = repo.oxundo(["init", "claude"]);
    again.says("unchanged .claude/settings.local.json");
    assert_eq!(String::from_utf8(repo.read(".claude/settings.local.json")).expect("text"), text, "once is enough");
    assert_eq!(repo.git(["config", "--get-all", "notes.displayRef"]), "refs/notes/oxundo*", "once is enough");

    // The command that was set up, as the agent would run it.
    let plain: String = text.replace(" // mine", "");
    let value: Value = serde_json::from_str(&plain).expect("it is JSON");
    let command = |event: &str| value["hooks"][event][0]["hooks"][0]["command"].as_str().expect("a command").to_owned();
    let run = |event: &str| {
        let payload = json!({"hook_event_name": event, "session_id": "s", "prompt": "p"});
        repo.sh(&format!("printf '%s' '{payload}' | sh -c '{}'", command(event)))
    };
    assert_eq!(run("UserPromptSubmit"), "", "silent");
    repo.sh("echo two >>README.txt");
    run("Stop");
    assert_eq!(repo.log().len(), 1);
    assert_eq!(repo.json(["status"]).1["open_turn"], Value::Null);

    repo.oxundo(["uninstall"]).says("changed   .claude/settings.local.json");
    repo.assert_file(".claude/settings.local.json", settings, "exactly as it was");
    let config_now = String::from_utf8(repo.read(".git/config")).expect("text");
    assert_eq!(config_now.replace("[notes]\n", ""), String::from_utf8(config).expect("text"));
    repo.oxundo(["uninstall"]).says("nothing to do");
}

#[test]
fn every_agent_is_set_up_and_taken_away() {
    let repo = Sandbox::new();
    repo.write(".gemini/settings.json", "{\"ui\": {\"theme\": \"x\"}}");
    let before = repo.state();
    let agents = [
        "claude", "codex", "gemini", "cursor", "copilot", "qwen", "droid", "goose", "crush", "opencode", "amp",
        "cline", "pi", "aider",
    ];
    let (code, report) = repo.json(["init"].iter().chain(&agents));
    assert_eq!(code, 0, "{report}");
    let changes = report["changes"].as_array().expect("changes");
    for agent in &agents[..13] {
        assert!(
            changes.iter().any(|change| change["agent"] == *agent && change["action"] != "left"),
            "{agent}: {report}"
        );
    }
    assert_eq!(parsed(&repo, ".gemini/settings.json")["hooks"]["BeforeAgent"][0]["hooks"][0]["timeout"], 30_000, "ms");
    assert_eq!(parsed(&repo, ".codex/hooks.json")["hooks"]["Stop"][0]["hooks"][0]["timeout"], 60, "s");
    assert_eq!(parsed(&repo, ".cursor/hooks.json")["version"], 1);
    assert_eq!(repo.mode(".clinerules/hooks/TaskComplete"), 0o755);
    assert_eq!(repo.sh("echo '{}' | .clinerules/hooks/TaskComplete"), "{\"cancel\": false}");
    repo.oxundo(["uninstall", "codex"]).success();
    repo.assert_absent(".codex", "it was made for the hooks");
    assert!(repo.exists(".qwen/settings.json"), "the others are left");
    repo.oxundo(["uninstall"]).success();
    repo.state()
        .without("on disk .gemini")
        .without("git status")
        .assert_is(&before.without("on disk .gemini").without("git status"), "nothing else is left");
    assert_eq!(parsed(&repo, ".gemini/settings.json"), json!({"ui": {"theme": "x"}}));
}

#[test]
fn settings_that_are_tracked_come_back_as_they_were_committed() {
    let repo = Sandbox::new();
    let one_line =
        "{\"model\":\"opus\",\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"true\"}]}]}}";
    let files = [
        (".claude/settings.json", one_line),
        (".claude/settings.local.json", "{\"hooks\": {}}\r\n"),
        (".codex/hooks.json", "{}\n"),
        (".cursor/hooks.json", "{\n\t\"hooks\": {} // none yet\n}"),
        ("crush.json", "{\"hooks\":{\"PreToolUse\":[]}}"),
        (".qwen/settings.json", ""),
    ];
    for (path, text) in files {
        repo.write(path, text);
    }
    repo.git(["add", "-A"]);
    repo.git(["commit", "-qm", "settings"]);
    repo.oxundo(["init", "claude", "codex", "cursor", "qwen"]).success();
    repo.oxundo(["init", "claude", "crush", "--project"]).success();
    assert_eq!(repo.git(["status", "--short"]).lines().count(), files.len(), "all of them are changed");
    // Committed like this, it is taken away in a clone as well.
    repo.git(["commit", "-qam", "hooks"]);
    repo.sh("git clone -q . ../clone");
    repo.oxundo(["-C", "../clone", "uninstall"]).success();
    for (path, text) in files {
        assert_eq!(repo.sh(&format!("cat ../clone/{path}; echo .")), format!("{text}."), "{path}");
    }
    repo.oxundo(["uninstall"]).success();
    assert_eq!(repo.git(["diff", "HEAD~", "--stat"]), "", "nothing is left, and nothing is gone");
}

#[test]
fn droids_events_are_where_it_looks_for_them_and_an_older_inits_are_taken_away() {
    let repo = Sandbox::new();
    repo.oxundo(["init", "droid"]).success();
    let right = parsed(&repo, ".factory/hooks.json");
    assert_eq!(right["Stop"][0]["hooks"][0]["timeout"], 60);
    assert_eq!(right["hooks"], Value::Null, "in this file Droid knows no event 'hooks'");

    let older = format!("{:#}\n", json!({"hooks": right}));
    let mine =
        "{\n  \"PreToolUse\": [\n    { \"hooks\": [{ \"type\": \"command\", \"command\": \"make\" }] }\n  ]\n}\n";
    let both = format!("{},\n  \"hooks\": {right:#}\n}}\n", mine.trim_end_matches("\n}\n"));
    repo.write(".factory/hooks.json", &older);
    repo.oxundo(["uninstall", "droid"]).says("removed   .factory/hooks.json");
    repo.assert_absent(".factory", "it was made for the hooks");
    repo.write(".factory/hooks.json", &older);
    repo.oxundo(["init", "droid"]).says("changed   .factory/hooks.json");
    assert_eq!(parsed(&repo, ".factory/hooks.json"), right, "rewritten");
    repo.write(".factory/hooks.json", &both);
    repo.oxundo(["init", "droid"]).success();
    assert_eq!(parsed(&repo, ".factory/hooks.json")["hooks"], Value::Null);
    repo.oxundo(["uninstall", "droid"]).success();
    repo.assert_file(".factory/hooks.json", mine, "the user's own stays as it was");
}

#[test]
fn a_dry_run_shows_the_difference_and_changes_nothing() {
    let repo = Sandbox::new();
    repo.write(".claude/settings.json", "{\n  \"a\": 1\n}\n");
    let before = repo.everything();
    let output = repo.oxundo(["init", "claude", "opencode", "--project", "--alias", "--pre-push", "--dry-run"]);
    output.success();
    output.says("--- a/.claude/settings.json\n+++ b/.claude/settings.json\n@@ -1,3 +1,");
    output.says("\n-  \"a\": 1\n+  \"a\": 1,\n+  \"hooks\": {\n");
    output.says("--- /dev/null\n+++ b/.opencode/plugins/oxundo.js");
    output.says("would be written   alias.undo = oxundo undo");
    repo.everything().assert_is(&before, "nothing is changed");
    assert!(!repo.exists(".git/hooks/pre-push"));
}

#[test]
fn a_file_that_cannot_be_understood_is_left_and_said_so() {
    let repo = Sandbox::new();
    for bad in ["{ broken", "[]", "{\"hooks\": 1}"] {
        repo.write(".claude/settings.local.json", bad);
        let output = repo.oxundo(["init", "claude", "qwen"]);
        output.exits(1);
        output.says("left      .claude/settings.local.json (it");
        output.says(".qwen/settings.json");
        repo.assert_file(".claude/settings.local.json", bad, "untouched");
    }
    repo.write(".opencode/plugins/oxundo.js", "// mine\n");
    repo.oxundo(["init", "opencode"]).exits(1);
    repo.oxundo(["uninstall", "opencode"]).success();
    repo.assert_file(".opencode/plugins/oxundo.js", "// mine\n", "untouched");
}

#[test]
fn no_link_leads_out_of_the_worktree_and_the_users_own_are_followed() {
    let repo = Sandbox::new();
    let home = repo.home();
    std::fs::create_dir_all(home.join("elsewhere")).expect("make a directory");
    repo.link(".claude", "../home/elsewhere");
    repo.write(".qwen/x", "");
    std::fs::write(home.join("settings.json"), "{}\n").expect("write a file");
    repo.link(".qwen/settings.json", "../../home/settings.json");
    let output = repo.oxundo(["init", "claude", "qwen"]);
    output.exits(1);
    output.says("it leads out of the worktree");
    assert_eq!(std::fs::read_dir(home.join("elsewhere")).expect("read it").count(), 0);
    assert_eq!(std::fs::read_to_string(home.join("settings.json")).expect("read it"), "{}\n");

    // Dotfiles of the user's are often links.
    std::fs::create_dir_all(home.join(".gemini")).expect("make a directory");
    std::fs::write(home.join("dotfile"), "{}\n").expect("write a file");
    std::fs::set_permissions(home.join("dotfile"), std::fs::Permissions::from_mode(0o600)).expect("change its mode");
    std::os::unix::fs::symlink("../dotfile", home.join(".gemini/settings.json")).expect("make a link");
    let mut command = repo.oxundo_command(["init", "gemini", "--user"]);
    let global = home.join("gitconfig");
    Output::of(command.env("GIT_CONFIG_GLOBAL", &global)).success();
    let link = home.join(".gemini/settings.json");
    assert!(link.symlink_metadata().expect("it is there").is_symlink(), "the link stays");
    let text = std::fs::read_to_string(home.join("dotfile")).expect("read it");
    assert!(text.contains("oxundo hook gemini"), "{text}");
    let mode = home.join("dotfile").metadata().expect("look at it").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "its mode stays");
    assert!(std::fs::read_to_string(&global).expect("read it").contains("refs/notes/oxundo"), "the user's own");
    Output::of(repo.oxundo_command(["uninstall", "--user"]).env("GIT_CONFIG_GLOBAL", &global)).success();
    assert!(!std::fs::read_to_string(&global).expect("read it").contains("refs/notes/oxundo"));
}

#[test]
fn aliases_are_set_unless_they_are_taken() {
    let repo = Sandbox::new();
    repo.oxundo(["init", "aider"]).warns("'oxundo init --alias' makes it 'git undo'");
    repo.git(["config", "alias.redo", "!echo mine"]);
    // Without a terminal: it is about no agent.
    let output = repo.oxundo(["init", "--alias"]);
    output.success();
    output.warns("'git redo' is an alias of yours already");
    repo.agent("echo two >>README.txt");
    repo.git(["undo"]);
    repo.assert_file("README.txt", "readme\n", "the alias works");
    repo.oxundo(["uninstall"]).success();
    assert_eq!(repo.git(["config", "--get-regexp", "^alias"]), "alias.redo !echo mine");
}

#[test]
fn what_the_pre_push_hook_saw_is_published() {
    let repo = Sandbox::new();
    repo.sh("git init -q --bare ../elsewhere.git");
    repo.oxundo(["init", "--pre-push"]).says("git's pre-push hook");
    repo.agent("echo two >>README.txt");
    // By URL: no remote-tracking ref tells of it.
    repo.git(["push", "-q", "../elsewhere.git", "main"]);
    repo.refuses(&["undo"], "published");
    repo.oxundo(["init", "aider", "--pre-push"]).success();
    repo.oxundo(["uninstall"]).says("pre-push");
    repo.assert_absent(".git/hooks/pre-push", "it is ours");

    repo.write(".git/hooks/pre-push", "#!/bin/sh\n");
    repo.oxundo(["init", "aider", "--pre-push"]).exits(1);
    repo.assert_file(".git/hooks/pre-push", "#!/bin/sh\n", "the user's is left");
    repo.write(".husky/pre-push", "");
    repo.oxundo(["init", "aider"]).warns("put this line into .husky/pre-push");
}

#[test]
fn purge_leaves_no_trace() {
    let repo = Sandbox::new();
    let linked = repo.linked("other");
    repo.oxundo(["init", "claude"]).success();
    let refs = repo.refs();
    repo.agent("echo two >>README.txt");
    linked.agent("echo two >>README.txt");
    linked.undo();
    repo.undo();
    let planned = repo.oxundo(["uninstall", "--purge", "--dry-run"]).out();
    assert!(!planned.contains("would be kept"), "nobody has saved anything meanwhile: {planned}");
    let output = repo.oxundo(["uninstall", "--purge"]);
    output.success();
    assert_eq!(repo.refs(), refs, "the branches are all there is");
    assert_eq!(repo.sh("find .git -name '*oxundo*'"), "");
    repo.assert_sound();
    repo.oxundo(["undo"]).exits(4);
}

/// What an earlier release had set up: a ref alone, of which git warns where it is not there.
#[test]
fn the_notes_of_an_earlier_release_are_set_up_anew_and_go_again() {
    let repo = Sandbox::new();
    let config = repo.read(".git/config");
    for key in ["notes.displayRef", "notes.rewriteRef"] {
        repo.git(["config", key, "refs/notes/oxundo"]);
    }
    let earlier = repo.copy();
    repo.oxundo(["init", "claude"]).success();
    assert_eq!(
        repo.git(["config", "--get-regexp", "^notes"]),
        "notes.displayref refs/notes/oxundo*\nnotes.rewriteref refs/notes/oxundo*"
    );
    for repo in [repo, earlier] {
        repo.oxundo(["uninstall"]).success();
        let now = String::from_utf8(repo.read(".git/config")).expect("text").replace("[notes]\n", "");
        assert_eq!(now, String::from_utf8(config.clone()).expect("text"));
    }
}

#[test]
fn what_is_for_the_user_is_set_up_and_goes_where_there_is_no_repository() {
    let repo = Sandbox::without_repository();
    let home = repo.sh("ls -A . ../home; cat ../home/.gitconfig || :");
    repo.oxundo(["init", "claude", "--alias", "--user", "--dry-run"]).says("would be written");
    assert_eq!(repo.sh("ls -A . ../home; cat ../home/.gitconfig || :"), home, "nothing is written");
    repo.oxundo(["init", "claude", "--alias", "--user"]).success();
    assert!(repo.sh("cat ../home/.claude/settings.json").contains("oxundo hook claude"));
    assert_eq!(repo.git(["config", "--global", "alias.undo"]), "oxundo undo");
    repo.oxundo(["uninstall", "--user"]).success();
    assert_eq!(repo.sh("grep -c oxundo ../home/.gitconfig || :"), "0");
    assert!(!repo.sh("cat ../home/.claude/settings.json 2>/dev/null || :").contains("oxundo"));
    assert_eq!(repo.sh("ls -A"), "README.txt", "nothing is left here");
    let here = repo.oxundo(["init", "claude"]);
    here.exits(1);
    here.warns("is in no git repository");
}

#[test]
fn without_a_terminal_agents_must_be_named() {
    let repo = Sandbox::new();
    let before = repo.everything();
    for (args, code) in [(&["init"] as &[_], 2), (&["init", "nobody"], 2), (&["uninstall", "nobody"], 2)] {
        let output = repo.oxundo(args);
        output.exits(code);
        output.warns("hint: ");
    }
    repo.everything().assert_is(&before, "nothing is changed");
    // Those that are installed: here, one that is on PATH.
    std::fs::create_dir_all(repo.home().join("bin")).expect("make a directory");
    repo.sh("printf '#!/bin/sh\\n' >../home/bin/goose; chmod +x ../home/bin/goose");
    let path = repo.sh("echo \"$HOME/bin:/usr/bin:/bin\"");
    Output::of(repo.oxundo_command(["init", "--all"]).env("PATH", path)).says(".agents/plugins/oxundo/plugin.json");
    assert!(repo.exists(".agents/plugins/oxundo/hooks/hooks.json"));
}

#[test]
fn on_a_terminal_the_agents_that_are_installed_are_proposed() {
    let repo = Sandbox::new();
    repo.sh("mkdir ../home/bin; printf '#!/bin/sh\\n' >../home/bin/claude; chmod +x ../home/bin/claude");
    let mut command = repo.oxundo_command(["init"]);
    command.env("PATH", repo.sh("echo \"$HOME/bin:/usr/bin:/bin\""));
    let mut terminal = Terminal::start(command);
    terminal.shows("Set up the hooks of").shows("Claude Code").shows("not found on PATH").types("\r").shows_end();
    assert!(repo.exists(".claude/settings.local.json"), "what was proposed is set up");
    assert!(!repo.exists(".codex"), "and nothing else");
}
