//! What `doctor` says of agents' hooks and of git's configuration: each finding with the command
//! that mends it.

use crate::sandbox::{Output, Sandbox};
use serde_json::{Value, json};

/// Programs of these names on PATH, that do nothing.
pub(crate) fn with_programs(repo: &Sandbox, names: &[&str]) -> String {
    std::fs::create_dir_all(repo.home().join("bin")).expect("make a directory");
    for name in names {
        repo.sh(&format!("printf '#!/bin/sh\\n' >../home/bin/{name}; chmod +x ../home/bin/{name}"));
    }
    repo.sh("echo \"$HOME/bin:$PATH\"")
}

pub(crate) fn doctor(repo: &Sandbox, path: &str) -> Value {
    let output = Output::of(repo.oxundo_command(["--json", "doctor"]).env("PATH", path));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

/// The one finding about these words: its message and its first remedy.
#[track_caller]
pub(crate) fn finding(diagnosis: &Value, words: &str) -> (String, String) {
    let findings = diagnosis["findings"].as_array().expect("findings");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut found = findings.iter().filter(|finding| text(&finding["message"]).contains(words));
    let one = found.next().unwrap_or_else(|| panic!("{words:?} is found: {diagnosis}"));
    assert!(found.next().is_none(), "{words:?} is found once: {diagnosis}");
    (text(&one["message"]), text(&one["mend"][0]))
}

#[track_caller]
pub(crate) fn nothing(diagnosis: &Value) {
    assert_eq!(diagnosis["findings"], json!([]), "{diagnosis}");
}

#[test]
fn agents_that_are_installed_set_up_and_have_fired_are_told_of() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["claude", "goose"]);
    let found = doctor(&repo, &path);
    nothing(&found);
    assert_eq!(found["about"]["agents"][0]["set_up_with"], "oxundo init claude");
    assert_eq!(found["about"]["agents"][1]["agent"], "goose");

    repo.oxundo(["init", "claude"]).success();
    let found = doctor(&repo, &path);
    let (_, mend) = finding(&found, "does not trust this folder");
    assert!(mend.ends_with("&& claude"), "{mend}");
    let trusted = json!({"projects": {repo.root().to_string_lossy(): {"hasTrustDialogAccepted": true}}});
    std::fs::write(repo.home().join(".claude.json"), trusted.to_string()).expect("write it");
    nothing(&doctor(&repo, &path));

    std::fs::remove_file(repo.home().join(".claude.json")).expect("remove it");
    let begin = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s"}).to_string();
    Output::fired(&mut repo.oxundo_command(["hook", "claude"]), begin.as_bytes()).success();
    let found = doctor(&repo, &path);
    nothing(&found);
    assert!(found["about"]["agents"][0]["last_fired"].is_string(), "what has fired is trusted: {found}");
    let text = Output::of(repo.oxundo_command(["doctor"]).env("PATH", &path));
    text.says("Claude Code: its hooks last fired ");
    text.says("Goose: its hooks are not set up: 'oxundo init goose'");
    text.says("nothing is wrong");
}

#[test]
fn a_project_that_pi_does_not_trust_is_told_of() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["pi"]);
    repo.oxundo(["init", "pi"]).warns("or type '/trust'");
    nothing(&doctor(&repo, &path));
    let top = repo.root().to_string_lossy().into_owned();
    let above = repo.root().parent().expect("it is in a directory").to_string_lossy().into_owned();
    repo.sh("mkdir -p ../home/.pi/agent");
    let put = |name: &str, value: Value| {
        std::fs::write(repo.home().join(".pi/agent").join(name), value.to_string()).expect("write it");
    };
    for (known, trusted) in [
        (json!({}), false),
        (json!({&top: true}), true),
        (json!({&above: true}), true),
        (json!({&above: true, &top: false}), false),
        (json!({&above: false, &top: true}), true),
        (json!({&top: null}), false),
    ] {
        put("trust.json", known);
        let found = doctor(&repo, &path);
        if trusted {
            nothing(&found);
        } else {
            let (_, mend) = finding(&found, "does not trust this folder");
            assert!(mend.ends_with("&& pi"), "{mend}");
        }
    }
    put("settings.json", json!({"defaultProjectTrust": "always"}));
    nothing(&doctor(&repo, &path));
}

#[test]
fn an_agent_that_is_gone_leaves_its_hooks_to_be_taken_away() {
    let repo = Sandbox::new();
    repo.oxundo(["init", "qwen"]).success();
    let (_, mend) = finding(&repo.json(["doctor"]).1, "it is not installed");
    assert_eq!(mend, "oxundo uninstall qwen");
    repo.sh(&mend);
    nothing(&repo.json(["doctor"]).1);
}

#[test]
fn time_outs_in_the_wrong_unit_are_mended_by_init() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["gemini", "qwen", "droid"]);
    let trusted = json!({repo.root().to_string_lossy(): "TRUST_FOLDER"});
    std::fs::create_dir_all(repo.home().join(".gemini")).expect("make a directory");
    std::fs::write(repo.home().join(".gemini/trustedFolders.json"), trusted.to_string()).expect("write it");
    for (agent, file, right, wrong, words) in [
        ("gemini", ".gemini/settings.json", "30000", "30", "in milliseconds"),
        ("qwen", ".qwen/settings.json", "30000", "30", "in milliseconds"),
        ("droid", ".factory/hooks.json", "30", "30000", "in seconds"),
    ] {
        repo.oxundo(["init", agent]).success();
        nothing(&doctor(&repo, &path));
        repo.sh(&format!("sed -i.bak 's/\"timeout\": {right} /\"timeout\": {wrong} /' {file}; rm {file}.bak"));
        let (_, mend) = finding(&doctor(&repo, &path), words);
        assert_eq!(mend, format!("oxundo init {agent}"));
        repo.sh(&mend);
        nothing(&doctor(&repo, &path));
    }
}

#[test]
fn hooks_where_droid_does_not_look_for_them_are_mended_by_init() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["droid"]);
    repo.oxundo(["init", "droid"]).success();
    let right: Value = serde_json::from_slice(&repo.read(".factory/hooks.json")).expect("it is JSON");
    repo.write(".factory/hooks.json", json!({"hooks": right}).to_string());
    let (_, mend) = finding(&doctor(&repo, &path), "its hooks are not as 'oxundo init' sets them up");
    assert_eq!(mend, "oxundo init droid");
    repo.sh(&mend);
    nothing(&doctor(&repo, &path));
}

#[test]
fn a_form_that_an_agent_does_not_read_is_told_of() {
    let (comment, comma, key) = ("{ // mine\n", "{\"a\": [1,],\n", "{\"a\": 1,\n");
    let cases = [
        ("claude", ".claude/settings.local.json", vec![comment, comma], vec![key]),
        ("codex", ".codex/hooks.json", vec![comment, comma, key], vec!["{\"description\": \"mine\",\n"]),
        ("gemini", ".gemini/settings.json", vec![comma], vec![comment, key]),
        ("qwen", ".qwen/settings.json", vec![comma], vec![comment, key]),
    ];
    for (agent, file, bad, good) in cases {
        let repo = Sandbox::new();
        let path = with_programs(&repo, &[agent]);
        repo.oxundo(["init", agent]).success();
        let text = String::from_utf8(repo.read(file)).expect("it is UTF-8");
        let what = "it reads nothing of the file";
        for (beginning, is_bad) in bad.into_iter().map(|it| (it, true)).chain(good.into_iter().map(|it| (it, false))) {
            repo.write(file, text.replacen('{', beginning, 1));
            repo.oxundo(["init", agent]).success();
            let found = doctor(&repo, &path);
            assert_eq!(found.to_string().contains(what), is_bad, "{agent}, {beginning:?}: {found}");
            if is_bad {
                let (message, mend) = finding(&found, what);
                assert!(message.contains(file) && mend.contains(file), "{message} {mend}");
            }
        }
    }
}

#[test]
fn files_that_an_agent_would_not_read_are_errors() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["cursor-agent"]);
    repo.oxundo(["init", "cursor"]).success();
    nothing(&doctor(&repo, &path));
    repo.sh("sed -i.bak 's/\"stop\"/\"halt\": [],\\n\"stop\"/' .cursor/hooks.json; rm .cursor/hooks.json.bak");
    let (message, mend) = finding(&doctor(&repo, &path), "drops the whole file");
    assert!(message.contains("'halt'") && mend.contains(".cursor/hooks.json"), "{message} {mend}");
    repo.write(".cursor/hooks.json", "{");
    let found = doctor(&repo, &path);
    finding(&found, "cannot be used: it is not JSON");
    assert_eq!(found["ok"], false);
}

#[test]
fn codexs_hooks_must_be_approved() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["codex"]);
    repo.oxundo(["init", "codex"]).success();
    let (_, mend) = finding(&doctor(&repo, &path), "has not been told that its hooks may run");
    assert!(mend.ends_with("type '/hooks'"), "{mend}");
    std::fs::create_dir_all(repo.home().join(".codex")).expect("make a directory");
    let file = repo.path(".codex/hooks.json");
    let state = format!("[hooks.state.\"{}:stop:0:0\"]\ntrusted_hash = \"sha256:1\"\n", file.display());
    std::fs::write(repo.home().join(".codex/config.toml"), state).expect("write it");
    nothing(&doctor(&repo, &path));
}

#[test]
fn a_hook_that_failed_is_told_of_until_one_succeeds() {
    let repo = Sandbox::new();
    Output::fired(&mut repo.oxundo_command(["hook", "claude"]), b"{").success();
    let (message, _) = finding(&repo.json(["doctor"]).1, "the last call of a hook failed");
    assert!(message.contains("read the hook's JSON"), "{message}");
    // Which came later, the times of two files say, which go by the ticks of the kernel's clock.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let end = json!({"hook_event_name": "Stop", "session_id": "s"}).to_string();
    Output::fired(&mut repo.oxundo_command(["hook", "claude"]), end.as_bytes()).success();
    nothing(&repo.json(["doctor"]).1);
}

#[test]
fn gits_configuration_is_looked_at() {
    let repo = Sandbox::new();
    nothing(&repo.json(["doctor"]).1);
    let cases = [
        ("git config core.hooksPath no-such-directory", "which is not there"),
        ("git remote add --mirror=push copy ../copy.git", "'git push copy' copies oxundo's refs"),
        ("git remote add all ../all.git; git config remote.all.push '+refs/*:refs/*'", "'git push all' copies"),
        (
            "git checkout -qb side; echo side >README.txt; git commit -qam side; git checkout -q main; \
          echo main >README.txt; git commit -qam main; ! git merge -q side",
            "a merge is in progress",
        ),
        ("git config oxundo.maxFileSiz 1m", "'oxundo.maxFileSize' is one"),
        ("git config oxundo.somethingElse 1", "which is no setting"),
        ("git config oxundo.edits some", "oxundo.edits is 'some'"),
        ("git config oxundo.hookTimeout abc", "oxundo.hookTimeout is 'abc'"),
        ("git config commit.gpgSign true", "no terminal to ask for a passphrase on"),
    ];
    for (spoil, words) in cases {
        repo.sh(spoil);
        let (_, mend) = finding(&repo.json(["doctor"]).1, words);
        repo.sh(&mend);
        nothing(&repo.json(["doctor"]).1);
    }
    let about = &repo.json(["doctor"]).1["about"];
    assert!(about["git"].as_str().is_some_and(|version| version.starts_with("2.")), "{about}");
}

#[test]
fn hooks_of_before_there_were_calls_of_tools_go_on_and_are_mended_by_init() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["droid"]);
    repo.write(".factory/hooks.json", "{\n  \"mine\": []\n}\n");
    repo.oxundo(["init", "droid"]).success();
    let new = String::from_utf8(repo.read(".factory/hooks.json")).expect("it is text");
    let old: Vec<&str> = new.split_inclusive('\n').filter(|line| !line.contains("ToolUse\":")).collect();
    assert_eq!(old.len() + 2, new.lines().count(), "an event has a line: {new}");
    repo.write(".factory/hooks.json", old.concat());
    for event in ["UserPromptSubmit", "Stop"] {
        let payload = json!({"hook_event_name": event, "session_id": "s"}).to_string();
        Output::fired(&mut repo.oxundo_command(["hook", "droid"]), payload.as_bytes()).success();
        repo.sh("echo more >>README.txt");
    }
    assert_eq!(repo.log().len(), 1, "a prompt is a turn as ever");
    let (_, mend) = finding(&doctor(&repo, &path), "its hooks are not as 'oxundo init' sets them up");
    repo.sh(&mend);
    nothing(&doctor(&repo, &path));
    repo.oxundo(["uninstall", "droid"]).success();
    repo.assert_file(".factory/hooks.json", "{\n  \"mine\": []\n}\n", "as it was before the first of them");
}

#[test]
fn tracked_files_that_look_like_secrets_are_named_and_no_new_one_is_committed() {
    let repo = Sandbox::new();
    repo.oxundo(["doctor"]).success();
    assert!(!repo.oxundo(["doctor"]).out().contains("secrets"));
    repo.sh("mkdir conf; touch conf/.ENV .env.example conf/prod.tfvars; git add -A; git commit -qm conf");
    let said = repo.oxundo(["doctor"]);
    said.says("2 of the tracked files look like secrets");
    said.says("conf/.ENV");
    said.says("conf/prod.tfvars");
    assert!(!said.out().contains("example"), "{said:?}");
    repo.git(["config", "oxundo.secret", "!*.tfvars"]);
    repo.oxundo(["doctor"]).says("1 of the tracked files look like secrets");
    repo.agent("echo s >SERVER.PEM; echo t >more.tfvars; echo e >.env.sample; echo k >id_rsa.pub").warns("SERVER.PEM");
    let names = repo.git(["show", "--format=", "--name-only", "HEAD"]);
    assert_eq!(names.lines().collect::<Vec<_>>(), [".env.sample", "id_rsa.pub", "more.tfvars"]);
}

#[test]
fn the_timeline_of_another_worktree_is_not_one_that_was_lost_here() {
    let repo = Sandbox::new();
    let linked = repo.linked("linked");
    linked.agent("echo two >>README.txt");
    linked.undo();
    for removed in [false, true] {
        if removed {
            repo.git(["worktree", "remove", "--force", "../linked"]);
        }
        let (_, found) = repo.json(["doctor"]);
        assert!(!found.to_string().contains("objects of a timeline"), "removed: {removed}: {found}");
    }
}

#[test]
fn what_codex_does_not_start_with_is_told() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["codex"]);
    repo.oxundo(["init", "codex"]).success();
    repo.write(".codex/config.toml", "model = \"m\"\n[features\nhooks = true\n");
    let (message, mend) = finding(&doctor(&repo, &path), "it does not start with this file (line 2");
    assert!(message.ends_with("/.codex/config.toml'"), "{message}");
    assert!(mend.ends_with("/.codex/config.toml'"), "{mend}");
    repo.write(".codex/config.toml", "features = { hooks = false }\n");
    finding(&doctor(&repo, &path), "its hooks are turned off by 'features.hooks'");
}

#[test]
fn a_hook_that_is_not_called_for_all_is_told_of() {
    let repo = Sandbox::new();
    let path = with_programs(&repo, &["claude"]);
    repo.oxundo(["init", "claude"]).success();
    let file = ".claude/settings.local.json";
    let set_up: Value = serde_json::from_slice(&repo.read(file)).expect("it is JSON");
    let mut narrow = set_up.clone();
    narrow["hooks"]["PreToolUse"][0]["matcher"] = json!("Bash");
    repo.write(file, narrow.to_string());
    finding(&doctor(&repo, &path), "its hook on 'PreToolUse' is called for 'Bash' alone");
    // Claude Code calls nothing that is in no group.
    let mut bare = set_up.clone();
    bare["hooks"]["Stop"] = bare["hooks"]["Stop"][0]["hooks"].clone();
    repo.write(file, bare.to_string());
    let (_, mend) = finding(&doctor(&repo, &path), "its hooks are not as 'oxundo init' sets them up");
    repo.sh(&mend);
    let mended: Value = serde_json::from_slice(&repo.read(file)).expect("it is JSON");
    assert_eq!(mended["hooks"]["Stop"], set_up["hooks"]["Stop"]);
}

#[test]
fn a_lock_that_a_killed_oxundo_left_is_told_apart_from_gits() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    for (content, mend) in [("oxundo's\n", "oxundo status"), ("", "rm ")] {
        repo.write(".git/index.lock", content);
        repo.sh("cp .git/index.lock .git/oxundo/index.mark; touch -d '2 minutes ago' .git/index.lock");
        let (_, told) = finding(&doctor(&repo, &with_programs(&repo, &[])), "has been there for over a minute");
        assert!(told.starts_with(mend), "{told}");
        repo.oxundo(["status"]).success();
        assert_eq!(repo.exists(".git/index.lock"), content.is_empty(), "oxundo's own goes with that");
    }
}
