//! Prompts are private: git is told their first line, without what looks like a secret; the whole is in the turn's
//! record alone. And the model, which git may know.

use crate::sandbox::{Output, Sandbox, check_all};
use oxundo::{TurnInfo, Worktree};
use serde_json::{Value, json};

fn repo() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo
}

#[track_caller]
fn hook(repo: &Sandbox, payload: &Value) -> Output {
    let output = Output::fired(&mut repo.oxundo_command(["hook", "claude"]), payload.to_string().as_bytes());
    output.success();
    output
}

fn stop(more: &Value) -> Value {
    let mut payload = json!({"hook_event_name": "Stop", "session_id": "s"});
    for (key, value) in more.as_object().into_iter().flatten() {
        payload[key] = value.clone();
    }
    payload
}

/// A turn by a prompt; what its hooks wrote down.
#[track_caller]
fn prompted(repo: &Sandbox, prompt: &str) -> String {
    let begin = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": prompt});
    assert_eq!(hook(repo, &begin).err(), "");
    repo.sh("echo x >>a.txt");
    hook(repo, &stop(&Value::Null));
    std::fs::read_to_string(repo.path(".git/oxundo/hooks.log")).unwrap_or_default()
}

fn message(repo: &Sandbox) -> String {
    repo.git(["log", "-1", "--format=%B"]).trim_end().to_owned()
}

/// All that git keeps or prints of a repository but the timeline's own objects, and all that oxundo lists.
fn told(repo: &Sandbox) -> String {
    let by_git = repo.sh(
        "git log --all --not refs/oxundo/timeline --not --remotes --format=%B; git log --format='%B %N' --notes=oxundo; \
         git reflog show refs/oxundo/timeline; git reflog; cat .git/logs/refs/oxundo/timeline .git/logs/HEAD; \
         git for-each-ref --format='%(contents)'; git notes --ref=oxundo list | while read note _; do git cat-file -p $note; done",
    );
    let by_oxundo = [
        &["log"][..],
        &["log", "--ops"],
        &["log", "--all", "--graph"],
        &["--json", "log"],
        &["status"],
        &["show", "--stat"],
    ];
    let listed: Vec<_> = by_oxundo.iter().map(|args| repo.oxundo(*args).out()).collect();
    format!("{by_git}\n{}", listed.join("\n"))
}

#[test]
fn a_prompts_first_line_is_the_subject_and_the_rest_stays_in_the_record() {
    let repo = repo();
    let key = format!("sk-ant-{}", "q7Rk2ZtP9wX4mB6vL1nC8sD3gH5jF0yT");
    let prompt = format!(
        "add a cache with {key}\n\nthe rest is confidential\n\nSigned-off-by: A <a@example.com>\nCo-authored-by: B <b@example.com>"
    );
    prompted(&repo, &prompt);
    assert_eq!(message(&repo), "add a cache with ***\n\nAssisted-by: claude");
    assert_eq!(repo.git(["log", "-1", "--format=%(trailers)"]).trim_end(), "Assisted-by: claude");
    let undone = repo.oxundo(["undo"]);
    let redone = repo.oxundo(["redo"]);
    let told = told(&repo) + &undone.out() + &redone.out();
    for secret in [&key[..], "confidential", "Signed-off-by", "Co-authored-by"] {
        assert!(!told.contains(secret), "{secret} is nowhere in what git and oxundo print\n{told}");
    }
    assert!(told.contains("claude: add a cache with ***"), "the subject is\n{told}");
    assert_eq!(repo.log()[0]["message"], "add a cache with ***");

    let output = repo.oxundo(["show", "--prompt"]);
    output.success();
    assert_eq!(output.out(), prompt, "all of it is on record");
    let prompts = json!([{"agent": "claude", "session": "s", "prompt": prompt}]);
    let wanted = json!({"v": 1, "turn": 1, "prompt": prompt, "prompts": prompts});
    assert_eq!(repo.json(["show", "1", "--prompt"]).1, wanted);
    let (_, turn) = repo.json(["show", "1"]);
    assert_eq!((&turn["prompt"], &turn["message"]), (&json!(prompt), &json!("add a cache with ***")));
}

#[test]
fn a_subject_that_is_a_trailer_or_nothing_falls_back_to_the_agent_and_the_turn() {
    let cases = [
        "Signed-off-by: A <a@example.com>\nadd a cache",
        "Co-Authored-By : B <b@example.com>",
        "ghp_q7Rk2ZtP9wX4mB6vL1nC",
        "\n \n",
        "-----BEGIN RSA PRIVATE KEY-----\nabc",
    ];
    check_all(cases.map(|prompt| (prompt.to_owned(), prompt)), |prompt| {
        let repo = repo();
        prompted(&repo, prompt);
        assert_eq!(message(&repo), "claude: turn 1\n\nAssisted-by: claude");
    });
}

#[test]
fn what_is_a_secret_is_the_users_to_say() {
    let repo = repo();
    repo.git(["config", "oxundo.secretText", "ACME-*"]);
    let token = "ghp_q7Rk2ZtP9wX4mB6vL1nC";
    prompted(&repo, &format!("use ACME-1 and {token}"));
    assert_eq!(message(&repo).lines().next(), Some("use *** and ***"));
    repo.git(["config", "oxundo.secretText", ""]);
    prompted(&repo, &format!("use ACME-1 and {token}"));
    assert_eq!(
        message(&repo).lines().next(),
        Some(&*format!("use ACME-1 and {token}")),
        "an empty value clears the list"
    );
    repo.git(["config", "oxundo.secretText", "["]);
    let said = prompted(&repo, "use it");
    assert!(said.contains("oxundo.secretText is '['"), "{said}");
    assert_eq!(message(&repo).lines().next(), Some("claude: turn 3"), "what cannot be cleaned is not told");
    assert_eq!(repo.oxundo(["show", "3", "--prompt"]).out(), "use it");
}

#[test]
fn a_message_that_is_given_is_used_whole() {
    let repo = repo();
    let given = "Add it, token: x\n\nWhy: y\n\nSigned-off-by: A <a@example.com>";
    repo.oxundo(["run", "-m", given, "--", "sh", "-c", "echo x >>a.txt"]).success();
    assert_eq!(message(&repo), format!("{given}\n\nAssisted-by: sh"));
    repo.oxundo(["turn", "begin", "-m", given]).success();
    repo.sh("echo x >>a.txt");
    repo.oxundo(["turn", "end"]).success();
    assert_eq!(message(&repo), format!("{given}\n\nAssisted-by: script"));
    assert_eq!(repo.oxundo(["show", "--prompt"]).out(), given, "nothing else was asked for");
}

#[test]
fn a_prompt_within_a_run_that_has_a_message_is_on_record() {
    let repo = repo();
    let begin = json!({"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "first\nsecond"});
    let script = format!(
        "echo '{begin}' | {oxundo} hook claude; echo x >>a.txt; echo '{end}' | {oxundo} hook claude",
        oxundo = env!("CARGO_BIN_EXE_oxundo"),
        end = stop(&Value::Null),
        begin = begin.to_string().replace('\\', "\\\\"),
    );
    repo.oxundo(["run", "-m", "Mine", "--agent", "claude", "--", "sh", "-c", &script]).success();
    assert_eq!(message(&repo).lines().next(), Some("Mine"));
    assert_eq!(repo.oxundo(["show", "--prompt"]).out(), "first\nsecond");
}

#[test]
fn a_turn_without_a_prompt_says_so_and_a_prompt_is_harmless_on_a_terminal() {
    let repo = repo();
    repo.agent("echo x >>a.txt");
    let (code, answer) = repo.json(["show", "1", "--prompt"]);
    assert_eq!((code, &answer["error"]["message"]), (1, &json!("turn 1 has no prompt on record")));
    let tree = Worktree::open(repo.root()).expect("open it");
    let info = TurnInfo::by("editor").prompt("one\u{1b}[2J\ttab\r\ntwo\u{7}");
    tree.begin(&info).expect("begin a turn");
    repo.sh("echo y >>a.txt");
    tree.end(&info).expect("end it");
    assert_eq!(repo.oxundo(["show", "--prompt"]).out(), "one\u{fffd}[2J\ttab\ntwo\u{fffd}");
    assert_eq!(message(&repo).lines().next(), Some("one [2J tab"), "an editor's prompt is cleaned too");
    let (_, shown) = repo.json(["show", "--prompt"]);
    assert_eq!(shown["prompt"], "one\u{1b}[2J\ttab\r\ntwo\u{7}");
}

#[test]
fn the_trailer_names_the_model_where_the_agent_tells_it() {
    let cases = [
        (json!({"model": "claude-opus-4-5"}), "", "claude:claude-opus-4-5"),
        (json!({"model": {"id": "Opus 4.5"}}), "", "claude:Opus-4.5"),
        (Value::Null, r#"{"message":{"model":"claude-x"}} {"message":{"model":"<synthetic>"}}"#, "claude:claude-x"),
        (json!({"model": "x\nSigned-off-by: A <a@example.com>"}), "", "claude"),
        (Value::Null, "", "claude"),
    ];
    check_all(cases.map(|case| (case.2.to_owned(), case)), |(begin, transcript, wanted)| {
        let repo = repo();
        let file = repo.home().join("transcript.jsonl");
        std::fs::write(&file, transcript).expect("write a transcript");
        let mut payload = stop(begin);
        payload["hook_event_name"] = json!("UserPromptSubmit");
        payload["prompt"] = json!("add");
        payload["transcript_path"] = json!(file.to_string_lossy());
        hook(&repo, &payload);
        repo.sh("echo x >>a.txt");
        hook(&repo, &stop(&Value::Null));
        assert_eq!(message(&repo), format!("add\n\nAssisted-by: {wanted}"));
        repo.agent("echo y >>a.txt");
        repo.oxundo(["squash", "-m", "both"]).success();
        assert_eq!(message(&repo), format!("both\n\nAssisted-by: {wanted}\nAssisted-by: sh"));
    });
}
