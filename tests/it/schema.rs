//! What `--json` prints has the shapes of docs/json.schema.json, and each shape is of something.

use crate::events::Listener;
use crate::sandbox::{Mode, Sandbox};
use crate::steps::story;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

fn schema() -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/json.schema.json");
    serde_json::from_slice(&std::fs::read(file).expect("read the schema")).expect("it is JSON")
}

/// What is wrong with a value: as much of JSON Schema as the schema needs.
fn wrong(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let said = |what: &str| vec![format!("{at}: {what}: {value}")];
    let mut found = Vec::new();
    for (keyword, rule) in schema.as_object().expect("a schema is an object") {
        found.extend(match keyword.as_str() {
            "$ref" => {
                let name = rule.as_str().and_then(|rule| rule.strip_prefix('#')).expect("a place in the schema");
                wrong(root, root.pointer(name).expect("it is there"), value, at)
            }
            "type" if !is_of(value, rule.as_str().unwrap_or_default()) => said(&format!("is no {rule}")),
            "const" if value != rule => said(&format!("is not {rule}")),
            "enum" if !rule.as_array().is_some_and(|all| all.contains(value)) => said(&format!("is none of {rule}")),
            "anyOf" => {
                let any = rule.as_array().expect("a list").iter().map(|one| wrong(root, one, value, at));
                let least = any.min_by_key(Vec::len).unwrap_or_default();
                if least.is_empty() { least } else { said(&format!("has no such shape: {least:?}")) }
            }
            "required" => {
                let all = rule.as_array().expect("a list").iter().filter_map(Value::as_str);
                all.filter(|key| value.get(key).is_none()).flat_map(|key| said(&format!("has no {key:?}"))).collect()
            }
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                items.flat_map(|(n, item)| wrong(root, rule, item, &format!("{at}/{n}"))).collect()
            }
            "properties" => {
                let there = rule.as_object().expect("an object").iter();
                let there = there.filter_map(|(key, rule)| Some((key, rule, value.get(key)?)));
                there.flat_map(|(key, rule, value)| wrong(root, rule, value, &format!("{at}/{key}"))).collect()
            }
            "additionalProperties" => {
                let known = schema["properties"].as_object().expect("it has properties");
                let keys = value.as_object().into_iter().flat_map(|object| object.keys());
                keys.filter(|key| !known.contains_key(*key)).flat_map(|key| said(&format!("has {key:?}"))).collect()
            }
            _ => Vec::new(),
        });
    }
    found
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    }
}

#[test]
fn the_schema_is_what_the_commands_print() {
    let (root, repo) = (schema(), Sandbox::new());
    repo.write("README.txt", "dirty\n");
    repo.oxundo([
        "run",
        "--agent",
        "claude",
        "-m",
        "one",
        "--report",
        "../one.json",
        "--",
        "sh",
        "-c",
        "echo 1 >one.txt",
    ])
    .success();
    repo.agent("echo 2 >one.txt; rm README.txt");
    repo.oxundo(["run", "--report", "../none.json", "--", "true"]).success();
    repo.oxundo(["run", "--report", "../bad.json", "--", "no-such-agent"]).exits(127);
    let commands: &[(&str, &[&str])] = &[
        ("checkpoint", &["checkpoint", "here"]),
        ("checkpoints", &["checkpoint", "--list"]),
        ("said", &["describe", "1", "-m", "the first"]),
        ("said", &["keep", "1"]),
        ("status", &["status"]),
        ("status_short", &["status", "--short"]),
        ("overview", &[]),
        ("log", &["log", "-n", "1"]),
        ("log", &["log", "--all"]),
        ("operations", &["log", "--ops", "-n", "1"]),
        ("show", &["show", "1"]),
        ("show", &["show", "2", "one.txt"]),
        ("shown", &["show", "1..2"]),
        ("prompt", &["show", "1", "--prompt"]),
        ("content", &["show", "1:one.txt"]),
        ("paths", &["show", "1:"]),
        ("diff", &["diff", "1"]),
        ("find", &["find", "one.txt"]),
        ("blame", &["blame", "one.txt"]),
        ("trace", &["show", "1", "--format=agent-trace"]),
        ("done", &["undo", "--dry-run"]),
        ("done", &["undo"]),
        ("log", &["log"]),
        ("done", &["redo"]),
        ("done", &["undo", "--plan"]),
        ("done", &["squash", "--dry-run", "-m", "one"]),
        ("done", &["undo", "--only", "2"]),
        ("done", &["restore", "2"]),
        ("done", &["branch", "other", "1"]),
        ("turn_end", &["turn", "begin"]),
        ("turn_end", &["turn", "end"]),
        ("setup", &["init", "claude"]),
        ("error", &["undo", "--to", "999"]),
        ("error", &["undo", "--no-such-flag"]),
        ("doctor", &["doctor"]),
        ("setup", &["uninstall", "--dry-run"]),
        ("gc", &["gc"]),
        ("stores", &["gc", "--stores"]),
        ("help", &["help", "undo"]),
        ("help", &["-h"]),
        ("help", &["undo", "--help"]),
        ("help", &["--version"]),
        ("page", &["man"]),
        ("installed", &["man", "--install"]),
        ("script", &["completions", "bash"]),
    ];
    let mut seen = BTreeSet::new();
    let mut check = |name: &str, what: &str, value: &Value| {
        assert_eq!(
            wrong(&root, &json!({"$ref": format!("#/$defs/{name}")}), value, ""),
            Vec::<String>::new(),
            "{what}"
        );
        seen.insert(name.to_owned());
    };
    for (name, args) in commands {
        check(name, &args.join(" "), &repo.json(args.iter().copied()).1);
    }
    let mut events = Listener::new(&repo);
    repo.agent("echo 3 >three.txt");
    for event in events.until("end") {
        check("event", "log --follow", &event);
    }
    events.ends_quietly();
    let steps = story(Mode::Commit);
    check("log", "log --steps", &steps.json(["log", "--steps"]).1);
    check("step", "show 1.1", &steps.json(["show", "1.1"]).1);
    for (name, file) in [("report", "../one.json"), ("report", "../none.json"), ("error", "../bad.json")] {
        let value: Value = serde_json::from_slice(&repo.read(file)).expect("a report is JSON");
        check(name, file, &value);
    }
    let of_answers = root["anyOf"].as_array().expect("a list").iter().filter_map(|one| one["$ref"].as_str());
    let unseen: Vec<&str> = of_answers.filter(|name| !seen.contains(name.trim_start_matches("#/$defs/"))).collect();
    assert_eq!(unseen, Vec::<&str>::new(), "each shape was printed");
}

#[test]
fn a_value_of_another_shape_is_found() {
    let root = schema();
    let refusal =
        json!({"v": 1, "error": {"code": "conflict", "message": "m", "hints": [], "commits": [], "paths": []}});
    let is_wrong = |value: &Value| !wrong(&root, &json!({"$ref": "#/$defs/error"}), value, "").is_empty();
    assert!(!is_wrong(&refusal));
    for (place, value) in
        [("/v", json!(2)), ("/error/code", json!("oh")), ("/error/hints", json!([1])), ("/error", json!({}))]
    {
        let mut other = refusal.clone();
        *other.pointer_mut(place).expect("it is there") = value;
        assert!(is_wrong(&other), "{other}");
    }
    let mut more = refusal;
    more["what"] = json!(1);
    assert!(is_wrong(&more));
}

#[test]
fn a_part_says_how_much_there_is_besides() {
    let repo = Sandbox::new();
    for n in 1..=4 {
        repo.agent(&format!("echo {n} >a.txt"));
    }
    repo.undo();
    for (args, turns, more) in
        [(&["log", "-n", "1"][..], 1, 3), (&["log", "-3"], 3, 1), (&["log"], 4, 0), (&["log", "--all", "-2"], 2, 2)]
    {
        let (_, log) = repo.json(args.iter().copied());
        assert_eq!((log["turns"].as_array().map(Vec::len), &log["more"]), (Some(turns), &json!(more > 0)), "{args:?}");
        let output = repo.oxundo(args);
        let told = output.err();
        assert_eq!(told.contains(&format!("{more} more: ")), more > 0, "{args:?}: {told}");
    }
    let (_, shown) = repo.json(["show", "1", "no-such-file"]);
    assert_eq!(shown["files"], json!([]), "only what was asked for");
    assert_eq!(repo.json(["log"]).1["turns"][3], {
        let (_, mut one) = repo.json(["show", "1"]);
        for key in ["v", "prompt", "record"] {
            one.as_object_mut().expect("an object").remove(key);
        }
        one
    });
}
