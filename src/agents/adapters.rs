//! The table of agents: a row each.

use crate::model::session::Signal;
use Meaning::{Begin, Call, Called, Cut, End, Gone, Work};

/// What is known of one agent's hooks. Names of events and fields are compared without regard
/// to case and punctuation, so that `hook_event_name` is `hookEventName`.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Adapter {
    /// The name, as in `oxundo hook NAME`.
    pub name: &'static str,
    /// The name as people write it.
    pub title: &'static str,
    /// Its programs; if one of them is found, the agent is installed.
    pub programs: &'static [&'static str],
    /// What its events mean; all others mean nothing.
    pub events: &'static [(&'static str, Meaning)],
    /// The fields that name the session, the first one first.
    pub session: &'static [&'static str],
    /// The fields that name the prompt, in its beginning and in its end alike.
    pub prompt_id: &'static [&'static str],
    /// The fields of which one is there, and no null, in what a sub-agent sends.
    pub sub_agent: &'static [&'static str],
    /// The field that is true at another end of a prompt: after the first one, somebody's hook made the agent go on.
    pub again: &'static str,
    /// Where the end of a prompt lists what is still at work for it.
    pub background: Option<Background>,
    /// How what comes as a prompt begins when nobody gave it: something is done that was at work in the background.
    pub notifications: &'static [&'static str],
    /// A field of a prompt's beginning; without it the event may be the continuation of a prompt.
    pub proof: Option<&'static str>,
    /// Tools that change nothing, where the use of a tool is the only sign of a beginning.
    pub harmless_tools: &'static [&'static str],
    /// Variables that hold the session's id where the payload does not.
    pub session_variable: Option<&'static str>,
    /// Variables that hold the project's directory, which outlasts an agent's `cd`.
    pub directory_variable: Option<&'static str>,
    /// Variables that are set in what its tools run, and not in a terminal that it opens for the user.
    pub call_variables: &'static [&'static str],
    /// Whether there is one session only, without an id.
    pub sessionless: bool,
    /// Files at the top of the worktree in which the agent keeps its own state, as patterns of a `.gitignore` file.
    pub state_files: &'static [&'static str],
    /// The command that takes a conversation up again, with `{}` for the session's id.
    pub resume: Option<&'static str>,
    /// What is typed there to go back to an earlier prompt, where the agent can.
    pub rewind: Option<&'static str>,
    /// How it keeps a conversation in a file, where a copy of a part of that was seen to be taken up as any other.
    pub transcript: Option<TranscriptForm>,
    /// Whether it reads a project's hooks in the directory only in which it is started, and in none above.
    pub only_where_started: bool,
    /// Whether the time-outs of its hooks are in milliseconds; all others' are in seconds.
    pub milliseconds: bool,
    /// The settings that turn its hooks off, wherever these are set up.
    pub switches: &'static [Switch],
    /// The oldest version that was seen to load hooks in the form in which they are set up, where the form has changed.
    pub form_since: Option<&'static str>,
    /// The oldest version that was seen to read, in a linked worktree, the uncommitted settings of the main one.
    pub shares_local_since: Option<&'static str>,
    /// The event that a worktree is removed, and the field that says which. `init` never sets it up: Claude Code fires
    /// it only for what a hook of the user's has made, and takes a hook that succeeds for the removal itself.
    pub removal: Option<(&'static str, &'static str)>,
    /// Whether it tells of each call of each of its tools: what changes outside of them is not its work.
    pub all_calls: bool,
    /// The tools, in lower case and without punctuation, whose work sub-agents do, which tell of each call of their own.
    pub delegates: &'static [&'static str],
}

/// How an agent keeps a conversation in a file: a line of JSON for each thing that happened. The name of the file has the session's
/// id in it, or the first eight characters of that.
#[derive(Clone, Copy, Debug)]
pub struct TranscriptForm {
    /// Where all of them are: a variable that names a directory, and a path below that.
    pub places: &'static [(&'static str, &'static str)],
    /// The keys of the session's id, at whatever depth.
    pub session: &'static [&'static str],
    /// The fields and values that show that a line is something said to the agent; none where only the prompt's id does.
    pub prompt: &'static [(&'static str, &'static str)],
    /// The field with its text.
    pub text: &'static str,
    /// The field with the prompt's id, as hooks tell it.
    pub prompt_id: Option<&'static str>,
    /// The field with the line's own id, which a copy of it has as well.
    pub id: Option<&'static str>,
    /// The fields with the id of the line before it, where lines are a tree; the first that is there counts.
    pub parent: &'static [&'static str],
    /// Whether lines may hang beside the way that leads from line to line, as calls do that run at the same time.
    pub has_side_lines: bool,
    /// The types of lines that say where the conversation ends, or what is still to be said to the agent.
    pub about_end: &'static [&'static str],
}

/// A setting that turns an agent's hooks off.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// The keys that lead to it, the outermost first.
    pub keys: &'static [&'static str],
    /// What is off.
    pub off: Off,
    /// The files below the top of the worktree that may have it, the one that decides first.
    pub project: &'static [&'static str],
    /// Those of the user, beside the file that hooks are written to.
    pub user: &'static [&'static str],
}

/// When a setting turns hooks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Off {
    /// When it has this value.
    When(bool),
    /// When it is a list that names a hook of oxundo's.
    Names,
}

/// A list of what an agent has started and does not wait for.
#[derive(Clone, Copy, Debug)]
pub struct Background {
    /// The field that is the list.
    pub list: &'static str,
    /// The field of each of them that tells how it stands.
    pub status: &'static str,
    /// What is said there of one that is at work. One that is done may be listed too.
    pub at_work: &'static str,
}

/// What an event means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A prompt was given.
    Begin,
    /// The agent is at work.
    Work,
    /// A call of a tool begins.
    Call,
    /// A call of a tool is over, however it went.
    Called,
    /// It is done.
    End,
    /// It was cut off.
    Cut,
    /// The session is over.
    Gone,
}

impl Meaning {
    /// The signal for it, unless the payload says something else.
    pub fn signal(self) -> Signal {
        match self {
            Self::Begin => Signal::Begin,
            Self::Work => Signal::Work,
            Self::Call => Signal::Call,
            Self::Called => Signal::Called,
            Self::End => Signal::End { interrupted: false },
            Self::Cut => Signal::End { interrupted: true },
            Self::Gone => Signal::Gone,
        }
    }
}

const PLAIN: Adapter = Adapter {
    name: "",
    title: "",
    programs: &[],
    events: &[],
    session: &["session_id", "conversation_id", "thread_id", "task_id"],
    prompt_id: &["turn_id", "prompt_id", "generation_id"],
    sub_agent: &["agent_id", "parent_session_id", "parent_id", "subagent_id"],
    again: "stop_hook_active",
    background: None,
    notifications: &[],
    proof: None,
    harmless_tools: &[],
    session_variable: None,
    directory_variable: None,
    call_variables: &[],
    sessionless: false,
    state_files: &[],
    resume: None,
    rewind: None,
    transcript: None,
    only_where_started: false,
    milliseconds: false,
    switches: &[],
    form_since: None,
    shares_local_since: None,
    removal: None,
    all_calls: false,
    delegates: &[],
};

/// Claude Code's switch, which other agents have adopted.
const fn disable_all(project: &'static [&'static str], user: &'static [&'static str]) -> Switch {
    Switch { keys: &["disableAllHooks"], off: Off::When(true), project, user }
}

const fn codexs_switch(keys: &'static [&'static str]) -> Switch {
    Switch { keys, off: Off::When(false), project: &[".codex/config.toml"], user: &["config.toml"] }
}

/// Claude Code's events, which other agents have adopted.
const CLAUDES: &[(&str, Meaning)] = &[
    ("UserPromptSubmit", Begin),
    ("PreToolUse", Call),
    ("PostToolUse", Called),
    ("PostToolUseFailure", Called),
    ("Stop", End),
    ("StopFailure", Cut),
    ("SessionEnd", Gone),
];

/// Claude Code's list of sub-agents and commands, which Qwen Code has adopted.
const TASKS: Background = Background { list: "background_tasks", status: "status", at_work: "running" };

/// A tree of lines, each of which names itself and the one before it.
const TREE: TranscriptForm = TranscriptForm {
    places: &[],
    session: &["sessionId"],
    prompt: &[("type", "user")],
    text: "message.content",
    prompt_id: None,
    id: Some("uuid"),
    parent: &["parentUuid"],
    has_side_lines: false,
    about_end: &[],
};

const CLAUDES_TRANSCRIPT: TranscriptForm = TranscriptForm {
    places: &[("CLAUDE_CONFIG_DIR", "projects"), ("HOME", ".claude/projects")],
    prompt_id: Some("promptId"),
    // Where it was summarised, the line before it is only logically that.
    parent: &["parentUuid", "logicalParentUuid"],
    has_side_lines: true,
    about_end: &["last-prompt", "queue-operation"],
    ..TREE
};

const CODEXS_TRANSCRIPT: TranscriptForm = TranscriptForm {
    places: &[("CODEX_HOME", "sessions"), ("HOME", ".codex/sessions")],
    session: &["id", "session_id", "thread_id"],
    // What it says to its model by itself looks as what the user says.
    prompt: &[],
    text: "",
    prompt_id: Some("payload.turn_id"),
    id: None,
    parent: &[],
    ..TREE
};

const GEMINIS_TRANSCRIPT: TranscriptForm = TranscriptForm {
    places: &[("GEMINI_CLI_HOME", ".gemini/tmp"), ("HOME", ".gemini/tmp")],
    text: "content",
    id: Some("id"),
    parent: &[],
    ..TREE
};

const QWENS_TRANSCRIPT: TranscriptForm = TranscriptForm {
    places: &[("QWEN_RUNTIME_DIR", "projects"), ("QWEN_HOME", "projects"), ("HOME", ".qwen/projects")],
    text: "message.parts",
    ..TREE
};

const PIS_TRANSCRIPT: TranscriptForm = TranscriptForm {
    places: &[("PI_CODING_AGENT_SESSION_DIR", ""), ("PI_CODING_AGENT_DIR", "sessions"), ("HOME", ".pi/agent/sessions")],
    session: &["id"],
    prompt: &[("type", "message"), ("message.role", "user")],
    id: Some("id"),
    parent: &["parentId"],
    ..TREE
};

/// The events of oxundo's own plugins, where these do not hear that a session is over.
const PLUGINS: &[(&str, Meaning)] = &[];

/// The same where they do.
const PLUGINS_TO_THE_END: &[(&str, Meaning)] = &[("gone", Gone)];

/// An agent that `oxundo acp` stands before, which tells of its prompts and calls in the agent's place. It hears of a call when
/// that may have begun, so that nothing shows what the user changed meanwhile.
pub const BY_PROTOCOL: Adapter = Adapter { name: "acp", title: "an agent", ..PLAIN };

/// Every agent whose hooks are known.
pub const ADAPTERS: &[Adapter] = &[
    Adapter {
        name: "claude",
        title: "Claude Code",
        programs: &["claude"],
        events: CLAUDES,
        background: Some(TASKS),
        notifications: &["<task-notification>"],
        directory_variable: Some("CLAUDE_PROJECT_DIR"),
        call_variables: &["CLAUDECODE"],
        resume: Some("claude --resume {}"),
        transcript: Some(CLAUDES_TRANSCRIPT),
        rewind: Some("/rewind"),
        switches: &[disable_all(&[".claude/settings.local.json", ".claude/settings.json"], &["settings.json"])],
        shares_local_since: Some("2.1.330"),
        removal: Some(("WorktreeRemove", "worktree_path")),
        all_calls: true,
        delegates: &["agent", "task"],
        ..PLAIN
    },
    Adapter {
        name: "codex",
        title: "Codex",
        programs: &["codex"],
        events: &[
            ("UserPromptSubmit", Begin),
            ("PreToolUse", Call),
            ("PostToolUse", Called),
            ("Stop", End),
            ("StopFailure", Cut),
            ("Interrupt", Cut),
            ("SessionEnd", Gone),
            ("agent-turn-complete", End),
        ],
        call_variables: &["CODEX_CI", "CODEX_SANDBOX"],
        resume: Some("codex resume {}"),
        transcript: Some(CODEXS_TRANSCRIPT),
        // Under its older name too.
        switches: &[codexs_switch(&["features", "hooks"]), codexs_switch(&["features", "codex_hooks"])],
        ..PLAIN
    },
    Adapter {
        name: "gemini",
        title: "Gemini CLI",
        programs: &["gemini"],
        events: &[
            ("BeforeAgent", Begin),
            ("BeforeTool", Call),
            ("AfterTool", Called),
            ("AfterAgent", End),
            ("SessionEnd", Gone),
        ],
        directory_variable: Some("GEMINI_PROJECT_DIR"),
        call_variables: &["GEMINI_CLI"],
        resume: Some("gemini --resume {}"),
        transcript: Some(GEMINIS_TRANSCRIPT),
        rewind: Some("/rewind"),
        only_where_started: true,
        milliseconds: true,
        switches: &[
            Switch {
                keys: &["hooksConfig", "enabled"],
                off: Off::When(false),
                project: &[".gemini/settings.json"],
                user: &["settings.json"],
            },
            Switch {
                keys: &["hooksConfig", "disabled"],
                off: Off::Names,
                project: &[".gemini/settings.json"],
                user: &["settings.json"],
            },
        ],
        all_calls: true,
        ..PLAIN
    },
    Adapter {
        name: "cursor",
        title: "Cursor",
        programs: &["cursor-agent", "cursor"],
        events: &[
            ("beforeSubmitPrompt", Begin),
            ("UserPromptSubmit", Begin),
            ("preToolUse", Call),
            ("postToolUse", Called),
            ("postToolUseFailure", Called),
            ("stop", End),
            ("sessionEnd", Gone),
        ],
        directory_variable: Some("CURSOR_PROJECT_DIR"),
        call_variables: &["CURSOR_AGENT"],
        resume: Some("cursor-agent --resume {}"),
        ..PLAIN
    },
    Adapter {
        name: "copilot",
        title: "Copilot CLI",
        programs: &["copilot"],
        events: &[
            ("userPromptSubmitted", Begin),
            ("UserPromptSubmit", Begin),
            ("preToolUse", Call),
            ("postToolUse", Called),
            ("agentStop", End),
            ("Stop", End),
            ("sessionEnd", Gone),
        ],
        notifications: &["<system_notification>"],
        // A sub-agent has a session of its own.
        session: &["parent_agent_id", "session_id"],
        resume: Some("copilot --resume {}"),
        rewind: Some("/rewind"),
        switches: &[disable_all(
            &[".github/copilot/settings.local.json", ".github/copilot/settings.json"],
            &["settings.json", "config.json"],
        )],
        ..PLAIN
    },
    Adapter {
        name: "qwen",
        title: "Qwen Code",
        programs: &["qwen"],
        events: CLAUDES,
        background: Some(TASKS),
        // There the result of a tool comes as a prompt.
        proof: Some("submitted_prompt"),
        directory_variable: Some("QWEN_PROJECT_DIR"),
        call_variables: &["QWEN_CODE"],
        resume: Some("qwen --resume {}"),
        transcript: Some(QWENS_TRANSCRIPT),
        only_where_started: true,
        milliseconds: true,
        switches: &[disable_all(&[".qwen/settings.json"], &["settings.json"])],
        all_calls: true,
        ..PLAIN
    },
    Adapter {
        name: "droid",
        title: "Droid",
        programs: &["droid"],
        events: CLAUDES,
        directory_variable: Some("FACTORY_PROJECT_DIR"),
        resume: Some("droid --resume {}"),
        rewind: Some("/rewind-conversation"),
        switches: &[Switch {
            keys: &["hooksDisabled"],
            off: Off::When(true),
            project: &[".factory/settings.local.json", ".factory/settings.json"],
            user: &["settings.json"],
        }],
        form_since: Some("0.215.0"),
        all_calls: true,
        ..PLAIN
    },
    Adapter { name: "goose", title: "Goose", programs: &["goose"], events: CLAUDES, ..PLAIN },
    Adapter {
        name: "crush",
        title: "Crush",
        programs: &["crush"],
        // It has no event for a prompt, and none for its end.
        events: &[("PreToolUse", Work)],
        harmless_tools: &["view", "ls", "glob", "grep", "fetch", "sourcegraph", "diagnostics", "references"],
        session_variable: Some("CRUSH_SESSION_ID"),
        directory_variable: Some("CRUSH_CWD"),
        ..PLAIN
    },
    Adapter {
        name: "opencode",
        title: "OpenCode",
        programs: &["opencode"],
        events: PLUGINS_TO_THE_END,
        prompt_id: &["message_id"],
        resume: Some("opencode --session {}"),
        ..PLAIN
    },
    Adapter {
        name: "amp",
        title: "Amp",
        programs: &["amp"],
        events: PLUGINS,
        resume: Some("amp threads continue {}"),
        ..PLAIN
    },
    Adapter {
        name: "cline",
        title: "Cline",
        programs: &["cline"],
        events: &[
            ("TaskStart", Work),
            ("TaskResume", Work),
            ("UserPromptSubmit", Begin),
            ("PreToolUse", Call),
            ("PostToolUse", Called),
            ("TaskComplete", End),
            ("TaskError", Cut),
            ("TaskCancel", Cut),
            ("SessionShutdown", Gone),
        ],
        // A task is one prompt of a session, and 'agent_id' is the main agent's too.
        session: &["session_context.root_session_id", "task_id"],
        sub_agent: &["parent_agent_id"],
        resume: Some("cline --id {}"),
        ..PLAIN
    },
    Adapter {
        name: "pi",
        title: "pi",
        programs: &["pi"],
        events: PLUGINS_TO_THE_END,
        resume: Some("pi --session {}"),
        transcript: Some(PIS_TRANSCRIPT),
        rewind: Some("/tree"),
        only_where_started: true,
        ..PLAIN
    },
    Adapter {
        name: "aider",
        title: "Aider",
        programs: &["aider"],
        // Its notification command says nothing but that it waits for the user again.
        events: &[("", End)],
        sessionless: true,
        state_files: &[
            "/.aider.chat.history.md",
            "/.aider.input.history",
            "/.aider.llm.history",
            "/.aider.tags.cache.v*/",
        ],
        ..PLAIN
    },
];

/// Agents that also run the hooks in Claude Code's settings, by the variable that shows which one it is.
const HOSTS: &[(&str, &str)] = &[("CURSOR_VERSION", "cursor"), ("COPILOT_CLI", "copilot"), ("DROID_CLI", "droid")];

/// The files in which agents keep their own state: no turn has them.
pub fn state_files() -> Vec<String> {
    ADAPTERS.iter().flat_map(|adapter| adapter.state_files).map(|&pattern| pattern.to_owned()).collect()
}

/// The row of an agent.
pub fn adapter(name: &str) -> Option<&'static Adapter> {
    ADAPTERS.iter().find(|adapter| adapter.name == name)
}

/// The row of the agent that really runs a hook that was set up for `name`.
pub fn host(name: &str, is_set: impl Fn(&str) -> bool, payload_key: impl Fn(&str) -> bool) -> Option<&'static Adapter> {
    if name == BY_PROTOCOL.name {
        return Some(&BY_PROTOCOL);
    }
    if name == "claude" {
        if payload_key("cursor_version") {
            return adapter("cursor");
        }
        if let Some((_, host)) = HOSTS.iter().find(|(variable, _)| is_set(variable)) {
            return adapter(host);
        }
    }
    adapter(name)
}

/// A name without regard to case and punctuation.
pub fn folded(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

impl Adapter {
    /// What an event means. Beside the agent's own names, `begin`, `work`, `call`, `called`, `end`, `abort` and
    /// `gone` are understood.
    pub fn meaning(&self, event: &str) -> Option<Meaning> {
        let wanted = folded(event);
        let own = self.events.iter().find(|(name, _)| folded(name) == wanted).map(|(_, meaning)| *meaning);
        own.or(match wanted.as_str() {
            "begin" => Some(Begin),
            "work" => Some(Work),
            "call" => Some(Call),
            "called" => Some(Called),
            "end" => Some(End),
            "abort" => Some(Cut),
            "gone" => Some(Gone),
            _ => None,
        })
    }

    /// Whether one of its own events tells that a session is over.
    pub fn tells_it_is_gone(&self) -> bool {
        self.events.iter().any(|(_, meaning)| *meaning == Gone)
    }

    /// The command that takes a session up again. An id with anything unusual in it is not
    /// put on a command line.
    pub fn resume_command(&self, session: &str) -> Option<String> {
        let plain = !session.is_empty()
            && !session.starts_with('-')
            && session.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
        self.resume.filter(|_| plain).map(|command| command.replace("{}", session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_events_are_told_apart() {
        for (at, adapter) in ADAPTERS.iter().enumerate() {
            assert!(ADAPTERS[..at].iter().all(|other| other.name != adapter.name), "{}", adapter.name);
            let mut names: Vec<String> = adapter.events.iter().map(|(name, _)| folded(name)).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), adapter.events.len(), "{}", adapter.name);
        }
    }

    #[test]
    fn events_have_the_same_meaning_in_every_spelling() {
        let claude = adapter("claude").expect("it is in the table");
        for spelling in ["UserPromptSubmit", "user_prompt_submit", "userPromptSubmit", "user-prompt-submit", "begin"] {
            assert_eq!(claude.meaning(spelling), Some(Begin), "{spelling}");
        }
        for other in ["SubagentStop", "PreCompact", "SessionStart", "", "\u{0}"] {
            assert_eq!(claude.meaning(other), None, "{other}");
        }
    }

    #[test]
    fn only_a_plain_session_id_is_put_on_a_command_line() {
        let claude = adapter("claude").expect("it is in the table");
        assert_eq!(claude.resume_command("a-1_b.2").as_deref(), Some("claude --resume a-1_b.2"));
        for bad in ["", "-p", "a b", "$(x)", "a;b", "a\nb", "é"] {
            assert_eq!(claude.resume_command(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_hook_of_claudes_that_another_agent_runs_is_that_agents() {
        let name = |set: &str, key: bool| host("claude", |name| name == set, |_| key).map(|adapter| adapter.name);
        assert_eq!(name("", false), Some("claude"));
        assert_eq!(name("COPILOT_CLI", false), Some("copilot"));
        assert_eq!(name("", true), Some("cursor"));
        assert_eq!(host("codex", |_| true, |_| true).map(|adapter| adapter.name), Some("codex"));
    }
}
