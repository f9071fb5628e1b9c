//! `doctor --fix` writes the hooks that are set up as `init` writes them now, and nothing else.

use crate::doctor::{doctor, finding, nothing, with_programs};
use crate::sandbox::{Output, Sandbox};
use serde_json::{Value, json};

const MINE: &str = "{\n  // mine\n  \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"make\"}]}]\n}\n";

fn fix(repo: &Sandbox, path: &str) -> Value {
    let output = Output::of(repo.oxundo_command(["--json", "doctor", "--fix"]).env("PATH", path));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// Droid's file as an older `init` left it: its events within `hooks`, where Droid does not look.
fn wrapped(repo: &Sandbox) {
    let hook = r#"[ { "hooks": [ { "type": "command", "command": "oxundo hook droid", "timeout": 30 } ] } ]"#;
    let events = ["UserPromptSubmit", "Stop", "SessionEnd"].map(|event| format!("    \"{event}\": {hook}"));
    let ours = format!(",\n  \"hooks\": {{\n{}\n  }}\n}}\n", events.join(",\n"));
    repo.write(".factory/hooks.json", MINE.replace("\n}\n", &ours));
}

#[test]
fn what_an_older_init_wrote_is_written_anew_and_goes_without_a_trace() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["droid"]);
    repo.write(".factory/hooks.json", MINE);
    repo.oxundo(["init", "droid"]).success();
    let right = repo.read(".factory/hooks.json");
    wrapped(&repo);
    finding(&doctor(&repo, &path), "not as 'oxundo init' sets them up");
    let fixed = fix(&repo, &path);
    assert_eq!(fixed["fixed"][0]["agent"], "droid", "{fixed}");
    assert!(fixed["fixed"][0]["path"].as_str().is_some_and(|path| path.ends_with("/.factory/hooks.json")), "{fixed}");
    nothing(&fixed);
    let found: Value = serde_json::from_str(&repo.sh("sed '/mine/d' .factory/hooks.json")).expect("it is JSON");
    assert!(found.get("hooks").is_none(), "{found}");
    for event in ["UserPromptSubmit", "Stop", "SessionEnd"] {
        assert!(found[event].to_string().contains("exec oxundo hook droid"), "{found}");
    }
    assert_eq!(fix(&repo, &path)["fixed"], json!([]), "once is enough");
    repo.oxundo(["uninstall", "droid"]).success();
    repo.oxundo(["init", "droid"]).success();
    assert_eq!(repo.read(".factory/hooks.json"), right);
    repo.oxundo(["uninstall", "droid"]).success();
    repo.assert_file(".factory/hooks.json", MINE, "as it was before init");
}

#[test]
fn missing_scripts_are_written_and_no_agent_is_set_up_that_was_not() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["cline", "goose", "claude"]);
    assert_eq!(fix(&repo, &path)["fixed"], json!([]));
    repo.oxundo(["init", "cline"]).success();
    repo.sh("rm .clinerules/hooks/SessionShutdown .clinerules/hooks/TaskError");
    repo.write(".clinerules/hooks/Mine", "#!/bin/sh\n");
    finding(&doctor(&repo, &path), "files are missing that 'oxundo init' writes");
    let fixed = fix(&repo, &path);
    assert_eq!(fixed["fixed"].as_array().map(Vec::len), Some(2), "{fixed}");
    nothing(&fixed);
    assert_eq!(repo.mode(".clinerules/hooks/SessionShutdown") & 0o111, 0o111);
    assert!(!repo.exists(".claude") && !repo.exists(".agents"), "nothing else is set up");
    repo.oxundo(["uninstall", "cline"]).success();
    assert_eq!(repo.sh("ls .clinerules/hooks"), "Mine");
}

#[test]
fn the_users_own_and_the_projects_files_are_mended_as_well() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["claude"]);
    for flag in ["--project", "--user"] {
        repo.oxundo(["init", "claude", flag]).success();
    }
    let right = (repo.read(".claude/settings.json"), std::fs::read(repo.home().join(".claude/settings.json")));
    repo.sh("sed -i.bak 's/exec oxundo/exec  oxundo/' .claude/settings.json ../home/.claude/settings.json");
    repo.sh("sed -i.bak 's/\"StopFailure\"/\"Gone\"/' .claude/settings.json; rm .claude/*.bak ../home/.claude/*.bak");
    assert_eq!(fix(&repo, &path)["fixed"].as_array().map(Vec::len), Some(2));
    assert_eq!(repo.read(".claude/settings.json"), right.0);
    assert_eq!(std::fs::read(repo.home().join(".claude/settings.json")).ok(), right.1.ok());
    let said = Output::of(repo.oxundo_command(["doctor", "--fix"]).env("PATH", &path));
    assert!(!said.out().contains("mended"), "{said:?}");
}

#[test]
fn a_file_that_is_no_json_is_left() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["qwen"]);
    repo.write(".qwen/settings.json", "{ \"hooks\": { // oxundo hook qwen\n");
    let found = fix(&repo, &path);
    finding(&found, "cannot be used: it is not JSON");
    assert_eq!(found["fixed"], json!([]));
    repo.assert_file(".qwen/settings.json", "{ \"hooks\": { // oxundo hook qwen\n", "it is as it was");
}

#[test]
fn nobody_waits_for_settings_that_are_a_fifo() {
    let repo = Sandbox::new();
    repo.sh("mkdir .qwen; mkfifo .qwen/settings.json");
    for args in [&["init", "qwen"][..], &["uninstall", "qwen"], &["doctor", "--fix"]] {
        let output = repo.oxundo(args);
        assert!(args[0] == "doctor" || output.out().contains("it is no file"), "{output:?}");
    }
}

/// The agent saves its settings while they are mended: what it wrote stays, and is mended too.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
#[test]
fn settings_that_change_while_they_are_mended_are_read_anew() {
    use crate::sandbox::announce;
    use crate::tracer::{LAUNCH, interrupt};
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["droid"]);
    wrapped(&repo);
    let saved = String::from_utf8(repo.read(".factory/hooks.json")).expect("UTF-8").replace("// mine", "// saved");
    let save = || std::fs::write(repo.path(".factory/hooks.json"), &saved).expect("save the settings");
    let mut command = repo.launched_command(&format!("{LAUNCH} >../out"), &["--json", "doctor", "--fix"]);
    let moment = ".factory/.oxundo-tmp-";
    match interrupt(command.env("PATH", &path), moment, &save) {
        Ok(trace) => {
            assert!(trace.points.iter().any(|point| point.text.contains(moment)), "it was met");
        }
        Err(error) => {
            return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
        }
    }
    let found: Value = serde_json::from_str(&repo.sh("cat ../out")).expect("an answer");
    assert_eq!(found["fixed"].as_array().map(Vec::len), Some(1), "{found}");
    nothing(&doctor(&repo, &path));
    repo.oxundo(["uninstall", "droid"]).success();
    repo.assert_file(".factory/hooks.json", MINE.replace("// mine", "// saved"), "what was saved meanwhile is there");
}
