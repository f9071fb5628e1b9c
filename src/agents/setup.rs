//! Where each agent's hooks are set up, and what is put there: a row an agent.

use crate::agents::adapters::adapter;
use crate::agents::edit;
use crate::agents::edit::{GUARD, HookEntry, Level};
use anyhow::{Result, bail};
use serde_json::{Value, json};

/// Where hooks are set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// This repository, in a file that is not committed where the agent has one.
    Local,
    /// This repository, in the file that is committed.
    Project,
    /// Every repository of the user's.
    User,
}

/// How one agent's hooks are set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The agent.
    pub agent: &'static str,
    /// The file that is not committed, below the top of the worktree; a directory, with a
    /// slash at its end, where there are files of our own.
    local: &'static str,
    project: &'static str,
    user: Home,
    form: Form,
    /// What else there is to do, or to know.
    pub advice: Option<&'static str>,
}

/// A path below the user's configuration.
#[derive(Clone, Copy, Debug)]
pub struct Home {
    /// The variable that names the directory, where the agent has one.
    pub variable: Option<&'static str>,
    /// The directory otherwise, below the home directory.
    pub directory: &'static str,
    /// The file in it.
    pub file: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// `hooks.EVENT`, or `EVENT` itself, is a list of groups, each with a list `hooks` of commands.
    Groups { events: &'static [(&'static str, u64)], named: bool, level: Level },
    /// `hooks.EVENT` is a list of commands.
    Flat { events: &'static [(&'static str, Option<u64>)], versioned: bool },
    /// Files of our own, in a directory.
    OwnFile(&'static [OwnFile]),
    /// Nothing is written.
    None,
}

/// A file of our own.
#[derive(Clone, Copy, Debug)]
struct OwnFile {
    path: &'static str,
    text: fn() -> String,
    executable: bool,
}

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit {
    /// The file, below the place of its scope.
    pub path: String,
    /// Its text now; none where it is not there.
    pub before: Option<String>,
    /// Its text then; none where it goes.
    pub after: Option<String>,
    /// Whether it is a program.
    pub executable: bool,
}

const fn own(path: &'static str, text: fn() -> String) -> OwnFile {
    OwnFile { path, text, executable: false }
}

const fn script(path: &'static str, text: fn() -> String) -> OwnFile {
    OwnFile { path, text, executable: true }
}

const fn home(variable: &'static str, directory: &'static str, file: &'static str) -> Home {
    Home { variable: Some(variable), directory, file }
}

const fn plain_home(directory: &'static str, file: &'static str) -> Home {
    Home { variable: None, directory, file }
}

/// Every agent's.
pub const SETUPS: &[Setup] = &[
    Setup {
        agent: "claude",
        local: ".claude/settings.local.json",
        project: ".claude/settings.json",
        user: home("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        form: Form::Groups {
            events: &[
                ("UserPromptSubmit", 30),
                ("PreToolUse", 10),
                ("PostToolUse", 10),
                ("PostToolUseFailure", 10),
                ("Stop", 60),
                ("StopFailure", 60),
                ("SessionEnd", 10),
            ],
            named: false,
            level: Level::Hooks,
        },
        advice: Some("hooks are loaded when a session starts: start it anew"),
    },
    Setup {
        agent: "codex",
        local: ".codex/hooks.json",
        project: ".codex/hooks.json",
        user: home("CODEX_HOME", ".codex", "hooks.json"),
        form: Form::Groups {
            events: &[
                ("UserPromptSubmit", 30),
                ("PreToolUse", 10),
                ("PostToolUse", 10),
                ("Stop", 60),
                ("Interrupt", 3),
                ("SessionEnd", 3),
            ],
            named: false,
            level: Level::Hooks,
        },
        advice: Some(
            "Codex runs no hook that you have not approved: start it and answer 'Hooks need review', or type '/hooks'",
        ),
    },
    Setup {
        agent: "gemini",
        local: ".gemini/settings.json",
        project: ".gemini/settings.json",
        user: plain_home(".gemini", "settings.json"),
        // Milliseconds.
        form: Form::Groups {
            events: &[
                ("BeforeAgent", 30_000),
                ("BeforeTool", 10_000),
                ("AfterTool", 10_000),
                ("AfterAgent", 60_000),
                ("SessionEnd", 10_000),
            ],
            named: true,
            level: Level::Hooks,
        },
        advice: None,
    },
    Setup {
        agent: "cursor",
        local: ".cursor/hooks.json",
        project: ".cursor/hooks.json",
        user: plain_home(".cursor", "hooks.json"),
        // It drops the whole file when it does not know an event.
        form: Form::Flat {
            events: &[
                ("beforeSubmitPrompt", None),
                ("preToolUse", None),
                ("postToolUse", None),
                ("postToolUseFailure", None),
                ("stop", None),
            ],
            versioned: true,
        },
        advice: Some("'cursor-agent -p' fires no hooks: use 'oxundo run -- cursor-agent -p ...'"),
    },
    Setup {
        agent: "copilot",
        local: ".github/hooks/",
        project: ".github/hooks/",
        user: plain_home(".copilot", "hooks/"),
        form: Form::OwnFile(&[own("oxundo.json", copilot)]),
        advice: None,
    },
    Setup {
        agent: "qwen",
        local: ".qwen/settings.json",
        project: ".qwen/settings.json",
        user: plain_home(".qwen", "settings.json"),
        // Milliseconds.
        form: Form::Groups {
            events: &[
                ("UserPromptSubmit", 30_000),
                ("PreToolUse", 10_000),
                ("PostToolUse", 10_000),
                ("PostToolUseFailure", 10_000),
                ("Stop", 60_000),
                ("SessionEnd", 10_000),
            ],
            named: true,
            level: Level::Hooks,
        },
        advice: None,
    },
    Setup {
        agent: "droid",
        local: ".factory/hooks.json",
        project: ".factory/hooks.json",
        user: plain_home(".factory", "hooks.json"),
        // In its settings the events are in 'hooks'; in this file it ignores them there.
        form: Form::Groups {
            events: &[
                ("UserPromptSubmit", 30),
                ("PreToolUse", 10),
                ("PostToolUse", 10),
                ("Stop", 60),
                ("SessionEnd", 10),
            ],
            named: false,
            level: Level::Top,
        },
        advice: Some("'droid exec' does not tell where a turn begins: use 'oxundo run -- droid exec ...'"),
    },
    Setup {
        agent: "goose",
        local: ".agents/plugins/oxundo/",
        project: ".agents/plugins/oxundo/",
        user: plain_home(".agents/plugins/oxundo", ""),
        form: Form::OwnFile(&[own("plugin.json", goose_plugin), own("hooks/hooks.json", goose_hooks)]),
        advice: None,
    },
    Setup {
        agent: "crush",
        local: ".crush.json",
        project: "crush.json",
        user: home("XDG_CONFIG_HOME", ".config", "crush/crush.json"),
        form: Form::Flat { events: &[("PreToolUse", Some(10))], versioned: false },
        advice: Some("Crush does not tell where a turn ends: use 'oxundo run -- crush ...'"),
    },
    Setup {
        agent: "opencode",
        local: ".opencode/plugins/",
        project: ".opencode/plugins/",
        user: home("XDG_CONFIG_HOME", ".config", "opencode/plugins/"),
        form: Form::OwnFile(&[own("oxundo.js", || include_str!("plugins/opencode.js").to_owned())]),
        advice: None,
    },
    Setup {
        agent: "amp",
        local: ".amp/plugins/",
        project: ".amp/plugins/",
        user: home("XDG_CONFIG_HOME", ".config", "amp/plugins/"),
        form: Form::OwnFile(&[own("oxundo.ts", || include_str!("plugins/amp.ts").to_owned())]),
        advice: Some("Amp's plugins are experimental"),
    },
    Setup {
        agent: "cline",
        local: ".clinerules/hooks/",
        project: ".clinerules/hooks/",
        user: plain_home("Documents/Cline/Hooks", ""),
        form: Form::OwnFile(&[
            script("UserPromptSubmit", || cline("UserPromptSubmit")),
            script("PreToolUse", || cline("PreToolUse")),
            script("PostToolUse", || cline("PostToolUse")),
            script("TaskStart", || cline("TaskStart")),
            script("TaskResume", || cline("TaskResume")),
            script("TaskComplete", || cline("TaskComplete")),
            script("TaskError", || cline("TaskError")),
            script("TaskCancel", || cline("TaskCancel")),
            script("SessionShutdown", || cline("SessionShutdown")),
        ]),
        advice: None,
    },
    Setup {
        agent: "pi",
        local: ".pi/extensions/",
        project: ".pi/extensions/",
        user: plain_home(".pi/agent/extensions", ""),
        form: Form::OwnFile(&[own("oxundo.ts", || include_str!("plugins/pi.ts").to_owned())]),
        advice: Some("since 0.79 it loads extensions of a project that you trust only: answer it, or type '/trust'"),
    },
    Setup {
        agent: "aider",
        local: "",
        project: "",
        user: plain_home("", ""),
        form: Form::None,
        advice: Some(
            "Aider has no hooks: use 'oxundo run -- aider --notifications --notifications-command \"oxundo hook aider\"', \
             which makes a turn of each prompt",
        ),
    },
];

/// How an agent's hooks are set up.
pub fn setup(agent: &str) -> Option<&'static Setup> {
    SETUPS.iter().find(|setup| setup.agent == agent)
}

/// The mark by which a command is recognised as ours.
fn mark(agent: &str) -> String {
    format!("oxundo hook {agent}")
}

/// What a hook calls. Where oxundo is not installed it does nothing, so that a hook that is
/// committed breaks nobody's agent; and the agent is the process above it, not a shell.
fn command(agent: &str, event: &str) -> String {
    let mark = mark(agent);
    format!("{GUARD}exec {mark}{event}")
}

impl Setup {
    /// The file, or the directory with a slash at its end, in a scope; for the user's, below the
    /// directory of [`Setup::user`].
    pub fn place(&self, scope: Scope) -> &'static str {
        match scope {
            Scope::Local => self.local,
            Scope::Project => self.project,
            Scope::User => self.user.file,
        }
    }

    /// Where the user's own is.
    pub fn user(&self) -> Home {
        self.user
    }

    /// The mark by which its hooks are recognised as ours.
    pub fn mark(&self) -> String {
        mark(self.agent)
    }

    /// Whether anything is written for it.
    pub fn writes(&self) -> bool {
        !matches!(self.form, Form::None)
    }

    /// The events that are set up.
    #[cfg(test)]
    fn events(&self) -> Vec<&'static str> {
        match self.form {
            Form::Groups { events, .. } => events.iter().map(|(event, _)| *event).collect(),
            Form::Flat { events, .. } => events.iter().map(|(event, _)| *event).collect(),
            Form::OwnFile(_) | Form::None => Vec::new(),
        }
    }

    /// What is changed to set it up. `read` gives the text of a file below the place of the scope.
    pub fn install(&self, scope: Scope, read: impl Fn(&str) -> Result<Option<String>>) -> Result<Vec<FileEdit>> {
        let place = self.place(scope);
        match self.form {
            Form::None => Ok(Vec::new()),
            Form::OwnFile(files) => files
                .iter()
                .map(|file| {
                    let path = format!("{place}{}", file.path);
                    let before = read(&path)?;
                    if before.as_ref().is_some_and(|text| !text.contains(&mark(self.agent))) {
                        bail!("'{path}' is there already, and is not oxundo's");
                    }
                    Ok(FileEdit { path, before, after: Some((file.text)()), executable: file.executable })
                })
                .collect(),
            Form::Groups { .. } | Form::Flat { .. } => {
                let before = read(place)?;
                let after = edit::with(
                    before.as_deref(),
                    &self.entries(),
                    &mark(self.agent),
                    self.is_versioned(),
                    self.level(),
                )?;
                Ok(vec![FileEdit { path: place.to_owned(), before, after: Some(after), executable: false }])
            }
        }
    }

    /// What is changed to take it away again.
    pub fn remove(&self, scope: Scope, read: impl Fn(&str) -> Result<Option<String>>) -> Result<Vec<FileEdit>> {
        let place = self.place(scope);
        let mut changes = Vec::new();
        match self.form {
            Form::None => {}
            Form::OwnFile(files) => {
                for file in files {
                    let path = format!("{place}{}", file.path);
                    if let Some(before) = read(&path)?.filter(|text| text.contains(&mark(self.agent))) {
                        changes.push(FileEdit { path, before: Some(before), after: None, executable: file.executable });
                    }
                }
            }
            Form::Groups { .. } | Form::Flat { .. } => {
                if let Some(before) = read(place)?.filter(|text| text.contains(&mark(self.agent))) {
                    let after = edit::without(&before, &mark(self.agent))?;
                    changes.push(FileEdit { path: place.to_owned(), before: Some(before), after, executable: false });
                }
            }
        }
        Ok(changes)
    }

    fn is_versioned(&self) -> bool {
        matches!(self.form, Form::Flat { versioned: true, .. })
    }

    fn level(&self) -> Level {
        match self.form {
            Form::Groups { level, .. } => level,
            _ => Level::Hooks,
        }
    }

    fn entries(&self) -> Vec<HookEntry> {
        match self.form {
            Form::Groups { events, named, .. } => events
                .iter()
                .map(|(event, timeout)| {
                    let mut hook = serde_json::Map::new();
                    if named {
                        hook.insert("name".to_owned(), json!(format!("oxundo-{event}")));
                    }
                    hook.insert("type".to_owned(), json!("command"));
                    hook.insert("command".to_owned(), json!(command(self.agent, "")));
                    hook.insert("timeout".to_owned(), json!(timeout));
                    HookEntry { event, hook: Value::Object(hook), grouped: true }
                })
                .collect(),
            Form::Flat { events, .. } => events
                .iter()
                .map(|(event, timeout)| {
                    let mut hook = json!({"command": command(self.agent, "")});
                    if let Some(timeout) = timeout {
                        hook["timeout"] = json!(timeout);
                    }
                    HookEntry { event, hook, grouped: false }
                })
                .collect(),
            Form::OwnFile(_) | Form::None => Vec::new(),
        }
    }
}

fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn copilot() -> String {
    let event = |event: &str| {
        let word = format!(" {event}");
        json!([{"type": "command", "bash": command("copilot", &word), "powershell": mark("copilot") + &word, "timeoutSec": 30}])
    };
    let events = ["userPromptSubmitted", "preToolUse", "postToolUse", "agentStop", "sessionEnd"];
    let hooks: serde_json::Map<_, _> = events.iter().map(|name| ((*name).to_owned(), event(name))).collect();
    pretty(&json!({"version": 1, "hooks": hooks}))
}

fn goose_plugin() -> String {
    let about = "Tells 'oxundo hook goose' where each prompt's turn begins and ends";
    pretty(&json!({"name": "oxundo", "version": env!("CARGO_PKG_VERSION"), "description": about}))
}

fn goose_hooks() -> String {
    let group = json!([{"hooks": [{"type": "command", "command": command("goose", ""), "timeout": 30}]}]);
    let events = ["UserPromptSubmit", "Stop", "SessionEnd"];
    let hooks: serde_json::Map<_, _> = events.iter().map(|name| ((*name).to_owned(), group.clone())).collect();
    pretty(&json!({"hooks": hooks}))
}

/// Cline reads what its hooks print; this answer makes it go on.
fn cline(event: &str) -> String {
    let hook = mark("cline");
    format!(
        "#!/bin/sh\n# Made by 'oxundo init cline'; 'oxundo uninstall cline' takes it away.\n\
         if command -v oxundo >/dev/null 2>&1; then {hook} {event}; fi\necho '{{\"cancel\": false}}'\n"
    )
}

/// The names of the agents, for messages.
pub fn names() -> String {
    SETUPS.iter().map(|setup| setup.agent).collect::<Vec<_>>().join(", ")
}

/// An agent's name as people write it.
pub fn title(agent: &str) -> &str {
    adapter(agent).map_or(agent, |adapter| adapter.title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::adapters::{ADAPTERS, Meaning};

    #[test]
    fn every_agent_has_a_row_in_both_tables() {
        let (setups, adapters): (Vec<_>, Vec<_>) =
            (SETUPS.iter().map(|setup| setup.agent).collect(), ADAPTERS.iter().map(|adapter| adapter.name).collect());
        assert_eq!(setups.len(), adapters.len());
        assert!(adapters.iter().all(|name| setups.contains(name)));
    }

    #[test]
    fn the_events_that_are_set_up_are_those_that_are_understood() {
        for setup in SETUPS {
            let adapter = adapter(setup.agent).expect("it has a row");
            let meanings: Vec<_> = setup.events().iter().map(|event| adapter.meaning(event)).collect();
            assert!(meanings.iter().all(Option::is_some), "{}: {meanings:?}", setup.agent);
            let begins = meanings.iter().any(|m| matches!(m, Some(Meaning::Begin | Meaning::Work)));
            assert!(begins || meanings.is_empty(), "{}", setup.agent);
        }
    }

    #[test]
    fn no_hook_is_set_up_that_takes_a_worktrees_making_or_removal_over() {
        for setup in SETUPS {
            assert!(setup.events().iter().all(|event| !event.starts_with("Worktree")), "{}", setup.agent);
        }
    }

    #[test]
    fn cline_has_a_script_for_each_event_that_is_understood() {
        let files = setup("cline").expect("it has a row").install(Scope::Local, |_| Ok(None)).expect("it is set up");
        for (event, _) in adapter("cline").expect("it has a row").events {
            let script = files.iter().find(|file| file.path == format!(".clinerules/hooks/{event}")).expect(event);
            assert!(script.after.as_ref().is_some_and(|text| text.contains(&format!("oxundo hook cline {event};"))));
        }
        assert_eq!(files.len(), adapter("cline").expect("it has a row").events.len());
    }

    #[test]
    fn every_agent_has_its_row_in_the_documentation() {
        let page = include_str!("../../docs/agents.md");
        let (_, table) = page.split_once("| agent | `oxundo init` |").expect("the agents' table");
        for adapter in ADAPTERS {
            let start = format!("| {} |", adapter.title);
            let row = table.lines().find(|line| line.starts_with(&start)).expect(adapter.title);
            let setup = setup(adapter.name).expect("it has a row");
            assert!(row.contains(setup.place(Scope::Local)), "{row}");
            for command in [adapter.resume, adapter.rewind].into_iter().flatten() {
                assert!(row.contains(&command.replace("{}", "ID")), "{row} has '{command}'");
            }
        }
    }

    #[test]
    fn setting_up_twice_changes_nothing_and_taking_away_leaves_nothing() {
        for setup in SETUPS.iter().filter(|setup| setup.writes()) {
            for scope in [Scope::Local, Scope::Project, Scope::User] {
                let first = setup.install(scope, |_| Ok(None)).expect("it is set up");
                let there = |path: &str| {
                    let change = first.iter().find(|change| change.path == path);
                    Ok(change.and_then(|change| change.after.clone()))
                };
                for change in setup.install(scope, there).expect("it is set up again") {
                    assert_eq!(change.before, change.after, "{}", setup.agent);
                }
                let gone = setup.remove(scope, there).expect("it is taken away");
                assert_eq!(gone.len(), first.len(), "{}", setup.agent);
                assert!(gone.iter().all(|change| change.after.is_none()), "{}: {gone:?}", setup.agent);
                for change in &first {
                    let text = change.after.as_deref().expect("it is written");
                    assert!(text.contains(&format!("oxundo hook {}", setup.agent)), "{text}");
                    assert!(!text.contains("://"), "Cursor refuses a command with a URL in it");
                }
            }
        }
    }

    /// A user's settings files, of every shape. `EVENT` is one of the agent's, `MINE` a hook of the user's.
    const FILES: [&str; 40] = [
        "",
        "\n",
        " \n\t\n",
        "{}",
        "{}\n",
        "{ }\n",
        "{\n}\n",
        "{\r\n}\r\n",
        "{ // c\n}\n",
        "// c\n{}\n",
        "{}\n// c\n",
        "{\"hooks\":{}}",
        "{\"hooks\": {}}\n",
        "{\n  \"hooks\": {}\n}\n",
        "{\n  \"hooks\": {\n  }\n}\n",
        "{\"hooks\":{\"EVENT\":[]}}",
        "{ \"hooks\": { \"EVENT\": [ ] } }",
        "{\n  \"hooks\": {\n    \"EVENT\": [\n    ]\n  }\n}\n",
        "{\"hooks\":{\"EVENT\":[MINE]}}",
        "{\"hooks\":{\"EVENT\":[MINE,MINE]},\"a\":1}",
        "{\"hooks\":{\"Mine\":[],\"EVENT\":[MINE]}}\n",
        "{\"hooks\":{\"EVENT\":[MINE],\"Mine\":{}}}\n",
        "{\n\t\"permissions\": {\"allow\": []}, \"hooks\": {\"EVENT\": [MINE]}}",
        "{\"model\":\"opus\",\"hooks\":{\"EVENT\":[MINE]}}",
        "{\"version\": 1}",
        "{\n  \"version\": 1\n}\n",
        "{\n  \"version\": 1,\n  \"hooks\": {}\n}\n",
        "{\n  \"hooks\": {\n    \"EVENT\": [\n      MINE\n    ]\n  },\n  \"version\": 1\n}\n",
        "{\n  \"version\": 1,\n  \"hooks\": {\n    \"EVENT\": [\n      MINE\n    ]\n  }\n}",
        "{\r\n\t\"model\": \"opus\",\r\n\t\"hooks\": {\r\n\t\t\"EVENT\": [\r\n\t\t\tMINE\r\n\t\t]\r\n\t}\r\n}\r\n",
        "{\n  \"hooks\": {\n    \"EVENT\": [\n      MINE, // c\n      // d\n    ], /* e */\n  }, // f\n}\n",
        "{\n  \"hooks\": {\n    \"EVENT\": [\n      MINE // c\n      // d\n    ] /* e */\n  } // f\n}\n",
        "{\n  \"hooks\": { // c\n    \"EVENT\": [ // d\n    ]\n  }\n}\n",
        "{ \"hooks\": { /* c */ \"EVENT\": [ /* d */ ] } }",
        "{\"a\":1,\"a\":2,\"hooks\":{\"EVENT\":[]},\"hooks\":{\"EVENT\":[MINE],\"EVENT\":[]}}",
        "{\"hooks\":{\"EVENT\":[MINE]},\"hooks\":{}}",
        "  {\n    \"a\" : 1e400,\n    \"b\" : \"\\u00e9\\/\"\n  }",
        "{\"a\": {\"b\": {\"c\": [[], {}]}}   }\n\n\n",
        "{\n    \"hooks\": {\n        \"EVENT\": [ MINE ],\n        \"Mine\": [\n            MINE\n        ]\n    },\n    \"z\": []\n}\n",
        "{\n\n  \"a\": 1,\n\n  \"b\": 2\n\n}\n",
    ];

    /// For every agent whose file may be the user's too.
    fn for_each_file(check: impl Fn(&Setup, &str)) {
        for setup in SETUPS {
            let Some(event) = setup.events().first().copied() else { continue };
            let mine = if matches!(setup.form, Form::Groups { .. }) {
                "{\"matcher\": \"*\", \"hooks\": [{\"type\": \"command\", \"command\": \"make\"}]}"
            } else {
                "{\"command\": \"make\"}"
            };
            for file in FILES {
                check(setup, &file.replace("EVENT", event).replace("MINE", mine));
            }
        }
    }

    fn edited(changes: &[FileEdit]) -> Option<String> {
        let [change] = changes else { panic!("one file: {changes:?}") };
        change.after.clone()
    }

    fn set_up(setup: &Setup, text: &str) -> String {
        let changes = setup.install(Scope::Local, |_| Ok(Some(text.to_owned())));
        edited(&changes.unwrap_or_else(|error| panic!("{}: {error}\n{text}", setup.agent))).expect("it is written")
    }

    fn taken_away(setup: &Setup, text: &str) -> Option<String> {
        let changes = setup.remove(Scope::Local, |_| Ok(Some(text.to_owned())));
        edited(&changes.unwrap_or_else(|error| panic!("{}: {error}\n{text}", setup.agent)))
    }

    #[test]
    fn the_users_file_comes_back_byte_for_byte() {
        for_each_file(|setup, text| {
            let after = set_up(setup, text);
            assert_eq!(set_up(setup, &after), after, "{}: once is enough", setup.agent);
            let found = edit::found(&after, &mark(setup.agent)).expect("it is JSON");
            assert_eq!(found.len(), setup.events().len(), "{}: {after}", setup.agent);
            assert_eq!(taken_away(setup, &after).as_deref(), Some(text), "{}: {after}", setup.agent);
        });
    }

    #[test]
    fn what_the_user_changes_meanwhile_stays() {
        for_each_file(|setup, text| {
            if !text.contains(':') {
                return; // Where nothing else is, nobody ends a property with a comma.
            }
            let after = set_up(setup, text);
            let first = |text: &str| text.replacen('{', "{\"new\": [1],", 1);
            let last = |text: &str| {
                let at = text[..text.rfind('}')?].trim_end().len();
                let is_comment = text[..at].lines().last()?.contains("//");
                (!is_comment).then(|| format!("{},\"new\": [1]{}", &text[..at], &text[at..]))
            };
            let edits = [(Some(first(&after)), Some(first(text))), (last(&after), last(text))];
            for (edit, wanted) in edits.into_iter().filter_map(|(edit, wanted)| edit.zip(wanted)) {
                if edit::events(&edit).is_ok() && edit::events(&wanted).is_ok() {
                    assert_eq!(taken_away(setup, &edit), Some(wanted), "{}: {edit}", setup.agent);
                }
            }
        });
    }

    #[test]
    fn an_older_hook_of_ours_is_replaced_and_goes_without_a_trace() {
        for_each_file(|setup, text| {
            let old = set_up(setup, text).replace("exec oxundo", "oxundo").replace("\"timeout\": ", "\"timeout\": 7");
            assert_eq!(set_up(setup, &old), set_up(setup, text), "{}: {old}", setup.agent);
        });
    }

    #[test]
    fn a_file_of_the_users_is_not_overwritten() {
        let setup = setup("opencode").expect("it has a row");
        assert!(setup.install(Scope::Local, |_| Ok(Some("// mine".to_owned()))).is_err());
        assert_eq!(setup.remove(Scope::Local, |_| Ok(Some("// mine".to_owned()))).expect("nothing to do"), []);
    }
}
