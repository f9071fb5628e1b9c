"""The agents, a row each: how one is installed, prepared and started, what its tools are called, and what it can do.

Whatever a row says that an agent cannot do is printed where a scenario is skipped for it.
"""

import json
from dataclasses import dataclass, field
from typing import Callable


@dataclass(frozen=True)
class Agent:
    name: str
    # What installs it: ("npm", package) or ("pip", package).
    install: tuple
    # The model's tools by role: the tool's name, and its arguments from the step's words.
    tools: dict
    # Makes the agent's configuration in a home.
    prepare: Callable
    # The command with a prompt, and the one that stays; each of them from the prompt or nothing.
    headless: Callable
    interactive: Callable = lambda: None
    # Why it is not run with a screen, where it has one.
    no_screen: str = ""
    program: str = ""
    # What is on the screen when a prompt can be typed.
    ready: str = ""
    # What is typed there to interrupt, to clear what is typed, to send it, and to leave.
    interrupt: tuple = ("\x1b",)
    clear: str = "\x15"
    enter: str = "\r"
    # How an interruption is told: "at once", "later" (with the next prompt) or "never".
    tells_interruption: str = "at once"
    # How 'oxundo log' names a turn where no hook tells the prompt.
    message: str = "{prompt}"
    # The hooks fire only inside 'oxundo run', or headless not at all, or not without a reason.
    only_in_run: bool = False
    headless_hooks: str = "yes"
    # The file with settings into which 'oxundo init' writes, and what somebody may have in it.
    settings: str = ""
    theirs: str = ""
    # The same where nobody has made settings, for an agent that writes into them when it starts.
    theirs_always: str = ""
    # Where another hook that makes it go on is set up: the path and the text, from the command.
    goes_on: Callable = None
    # What 'oxundo init' is told where the agent is started below the top, and reads no project's settings there.
    init_for_subdirectory: tuple = ()
    # No hook tells that a prompt was given: what the user does before it is taken for the agent's.
    tells_beginning: bool = True
    # Its notification comes with a question too: it is not asked to make files where that counts.
    asks_before_files: bool = False
    # Files that the agent keeps in the worktree for itself, which are in no turn.
    own_files: tuple = ()
    # What a sub-agent in the background is to the end of its agent's prompt: "listed" there, "told" when it is done, or "not told".
    background: str = "listed"
    # The hooks tell of calls of tools, and of the file that the one which edits is about.
    tells_calls: bool = True
    tells_paths: bool = True
    # Not of the end of each of them.
    forgets_ends: bool = False
    # What a tool is called there by role, where that is another name than the model's.
    called: dict = field(default_factory=dict)
    # Reasons, by scenario, for what it cannot do.
    cannot: dict = field(default_factory=dict)

    @property
    def command(self):
        return self.program or self.name


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def groups(event, command, **more):
    """A hook in the form of Claude Code's settings."""
    return {"hooks": {event: [{"hooks": [{"type": "command", "command": command, **more}]}]}}


# Settings that somebody has made, in a form of his own.
THEIRS = '{\n   "model" : "mock",\t"x-theirs": [1,2 , 3],\n\n "hooks": { "Stop": [ ] }\n}'

KEY = "sk-mock-0123456789012345678901234567890123456789"


def claude(home):
    home.env |= {"ANTHROPIC_BASE_URL": home.url, "ANTHROPIC_API_KEY": KEY, "IS_SANDBOX": "1",
                 "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    write(home.home / ".claude.json", {
        "hasCompletedOnboarding": True, "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
        "projects": {str(home.repo): trusted, str(home.repo / "sub"): trusted}})


CLAUDES = ["claude", "--permission-mode", "acceptEdits", "--allowedTools", "Bash,Edit,Write,Agent,Task"]

CLAUDE = Agent(
    name="claude",
    install=("npm", "@anthropic-ai/claude-code"),
    tools={
        "shell": ("Bash", lambda command: {"command": command, "description": "write"}),
        "background": ("Bash", lambda command: {"command": command, "description": "write", "run_in_background": True}),
        "edit": ("Write", lambda path, text: {"file_path": path, "content": text}),
        "task": ("Agent", lambda prompt: {"description": "write", "prompt": prompt, "subagent_type": "general-purpose",
                                          "run_in_background": True}),
        "task apart": ("Agent", lambda prompt: {"description": "write", "prompt": prompt, "subagent_type": "general-purpose",
                                                "isolation": "worktree"}),
    },
    prepare=claude,
    headless=lambda prompt: [*CLAUDES, "-p", prompt],
    interactive=lambda: CLAUDES,
    ready=r"❯|>",
    tells_interruption="later",
    settings=".claude/settings.local.json",
    # What is in them is looked at by itself.
    own_files=(".claude/worktrees", ".claude/worktrees/*"),
    theirs=THEIRS,
    goes_on=lambda command: (".claude/settings.json", groups("Stop", command)),
)


def codex(home):
    home.env |= {"MOCK_KEY": "x"}
    write(home.home / ".codex/config.toml", (
        f'model = "mock"\nmodel_provider = "mock"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
        f'check_for_update_on_startup = false\n[analytics]\nenabled = false\n'
        f'[model_providers.mock]\nname = "mock"\nbase_url = "{home.url}/v1"\nwire_api = "responses"\nenv_key = "MOCK_KEY"\n'
        f'[projects."{home.repo}"]\ntrust_level = "trusted"\n'))


def codex_patch(path, text):
    added = "".join(f"+{line}\n" for line in text.splitlines())
    return {"cmd": f"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\nEOF\n"}


CODEX = Agent(
    name="codex",
    install=("npm", "@openai/codex"),
    tools={
        "shell": ("exec_command", lambda command: {"cmd": command}),
        "long shell": ("exec_command", lambda command: {"cmd": command, "yield_time_ms": 30000}),
        "edit": ("exec_command", codex_patch),
        "task": ("multi_agent_v1/spawn_agent", lambda prompt: {"message": prompt}),
    },
    prepare=codex,
    # Its shell takes out what is a patch, and tells then of no end.
    called={"shell": "Bash", "edit": "Bash", "task": "spawn_agent"},
    tells_paths=False,
    forgets_ends=True,
    background="not told",
    headless=lambda prompt: ["codex", "exec", "--dangerously-bypass-hook-trust", prompt],
    interactive=lambda: ["codex", "--dangerously-bypass-hook-trust"],
    ready=r"›",
    settings=".codex/hooks.json",
    theirs='{\n\t "hooks" : { "Stop": [ ] }\n}',
    goes_on=lambda command: ("home:.codex/hooks.json", groups("Stop", command)),
)


def gemini(home):
    home.env |= {"GOOGLE_GEMINI_BASE_URL": home.url, "GEMINI_API_KEY": "x", "GEMINI_CLI_NO_RELAUNCH": "1"}
    write(home.home / ".gemini/settings.json", {
        "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False}, "general": {"disableAutoUpdate": True, "disableUpdateNag": True}})
    write(home.home / ".gemini/trustedFolders.json", {str(home.repo): "TRUST_FOLDER"})


GEMINI = Agent(
    name="gemini",
    install=("npm", "@google/gemini-cli"),
    tools={
        "shell": ("run_shell_command", lambda command: {"command": command, "description": "write"}),
        "edit": ("write_file", lambda path, text: {"file_path": path, "content": text}),
        "task": ("invoke_agent", lambda prompt: {"agent_name": "generalist", "prompt": prompt}),
    },
    prepare=gemini,
    headless=lambda prompt: ["gemini", "--yolo", "-m", "gemini-2.5-flash", "-p", prompt],
    interactive=lambda: ["gemini", "--yolo", "-m", "gemini-2.5-flash"],
    ready=r"Type your message",
    tells_interruption="never",
    settings=".gemini/settings.json",
    theirs='{\n   "x-theirs": [1,2 , 3],\n\n "hooks": { "AfterAgent": [ ] }\n}',
    init_for_subdirectory=("--user",),
    cannot={"sub-agent in the background": "it waits for its sub-agents"},
    goes_on=lambda command: ("home:.gemini/settings.json", groups("AfterAgent", command)),
)


def qwen(home):
    home.env |= {"OPENAI_BASE_URL": f"{home.url}/v1", "OPENAI_API_KEY": "x", "OPENAI_MODEL": "mock"}
    write(home.home / ".qwen/settings.json", {
        "security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False}, "general": {"disableAutoUpdate": True}})


QWEN = Agent(
    name="qwen",
    install=("npm", "@qwen-code/qwen-code"),
    tools={
        "shell": ("run_shell_command", lambda command: {"command": command, "description": "write", "is_background": False}),
        "edit": ("write_file", lambda path, text: {"file_path": path, "content": text}),
        "task": ("agent", lambda prompt: {"description": "write", "prompt": prompt, "subagent_type": "general-purpose",
                                          "run_in_background": True}),
    },
    prepare=qwen,
    headless=lambda prompt: ["qwen", "--yolo", "-m", "mock", "-p", prompt],
    interactive=lambda: ["qwen", "--yolo", "-m", "mock"],
    ready=r"Type your message",
    tells_interruption="later",
    settings=".qwen/settings.json",
    # Where its version is missing it writes that in, when it starts.
    theirs='{\n   "x-theirs": [1,2 , 3],\t"$version": 4,\n\n "hooks": { "Stop": [ ] }\n}',
    theirs_always='{"$version": 4}',
    init_for_subdirectory=("--user",),
    cannot={"a killed beginning, and no sign of the work": "what each tool has told comes as a prompt, which is a sign"},
    goes_on=lambda command: ("home:.qwen/settings.json", groups("Stop", command)),
)


def cline(home):
    write(home.home / ".cline/data/settings/providers.json", {
        "version": 1, "lastUsedProvider": "openai-compatible", "modes": {},
        "providers": {"openai-compatible": {
            "settings": {"provider": "openai-compatible", "apiKey": "x", "model": "mock", "baseUrl": f"{home.url}/v1"},
            "updatedAt": "2026-11-22T00:00:00.000Z", "tokenSource": "manual"}}})


CLINE = Agent(
    name="cline",
    install=("npm", "cline"),
    tools={
        "shell": ("run_commands", lambda command: {"commands": [command]}),
        "edit": ("editor", lambda path, text: {"path": path, "new_text": text}),
        "task": ("multi_agent_v1/spawn_agent", lambda prompt: {"systemPrompt": "You help.", "task": prompt}),
    },
    prepare=cline,
    headless=lambda prompt: ["cline", prompt],
    interactive=lambda: ["cline"],
    no_screen="its screen takes no key in a terminal of ours",
    message="cline: turn {number}",
    cannot={"sub-agent in the background": "it waits for its sub-agents", "another hook makes it go on": "no hook does"},
)


def pi(home):
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    model = {"id": "mock", "name": "mock", "contextWindow": 100000, "maxTokens": 1000, "input": ["text"],
             "reasoning": False, "cost": cost}
    write(home.home / ".pi/agent/models.json", {"providers": {"mock": {
        "baseUrl": f"{home.url}/v1", "api": "openai-completions", "apiKey": "x", "models": [model]}}})
    write(home.home / ".pi/agent/trust.json", {str(home.repo.resolve()): True})


PI = Agent(
    name="pi",
    # Later ones want a package that is not in the registry.
    install=("npm", "@earendil-works/pi-coding-agent@<1.4"),
    tools={
        "shell": ("bash", lambda command: {"command": command}),
        "edit": ("write", lambda path, text: {"path": path, "content": text}),
    },
    prepare=pi,
    headless=lambda prompt: ["pi", "--provider", "mock", "--model", "mock", "-p", prompt],
    interactive=lambda: ["pi", "--provider", "mock", "--model", "mock"],
    cannot={"sub-agent": "it has none", "sub-agent in the background": "it has no sub-agents", "another hook makes it go on": "no hook of its extensions does"},
    init_for_subdirectory=("--user",),
)


def opencode(home):
    write(home.home / ".config/opencode/opencode.json", {
        "model": "mock/mock", "small_model": "mock/mock", "autoupdate": False, "share": "disabled", "permission": "allow",
        "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock",
                              "options": {"baseURL": f"{home.url}/v1", "apiKey": "x"},
                              "models": {"mock": {"name": "mock", "tool_call": True}}}}})
    home.env |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                 # With a plugin it asks a registry for a package of its own: there is none.
                 "npm_config_registry": home.url, "npm_config_fetch_retries": "0",
                 "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}


OPENCODE = Agent(
    name="opencode",
    install=("npm", "opencode-ai"),
    tools={
        "shell": ("bash", lambda command: {"command": command, "description": "write"}),
        "edit": ("write", lambda path, text: {"filePath": path, "content": text}),
        "task": ("task", lambda prompt: {"description": "write", "prompt": prompt, "subagent_type": "general"}),
    },
    prepare=opencode,
    headless=lambda prompt: ["opencode", "run", prompt],
    interactive=lambda: ["opencode"],
    ready=r"anything",
    interrupt=("\x1b", "\x1b"),
    # It is ignored by git, as it says in itself.
    own_files=(".opencode", ".opencode/.gitignore", ".opencode/node_modules", ".opencode/node_modules/*", ".opencode/package*.json"),
    cannot={"sub-agent in the background": "it waits for its sub-agents", "another hook makes it go on": "no hook makes it go on"},
)


def copilot(home):
    home.env |= {"COPILOT_PROVIDER_BASE_URL": f"{home.url}/v1", "COPILOT_PROVIDER_API_KEY": "x", "COPILOT_MODEL": "mock",
                 "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000", "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "1000",
                 "COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false"}
    write(home.home / ".copilot/config.json", {"trusted_folders": [str(home.repo)], "banner": "never"})


COPILOT = Agent(
    name="copilot",
    install=("npm", "@github/copilot"),
    tools={
        "shell": ("bash", lambda command: {"command": command, "description": "write"}),
        "long shell": ("bash", lambda command: {"command": command, "description": "write", "initial_wait": 60}),
        "edit": ("create", lambda path, text: {"path": path, "file_text": text}),
        "task": ("task", lambda prompt: {"description": "write", "prompt": prompt, "agent_type": "general-purpose",
                                         "name": "helper", "mode": "background"}),
    },
    prepare=copilot,
    headless=lambda prompt: ["copilot", "--allow-all-tools", "--allow-all-paths", "-p", prompt],
    interactive=lambda: ["copilot", "--allow-all-tools", "--allow-all-paths"],
    ready=r"❯|>",
    interrupt=("\x1b", "\x1b"),
    tells_interruption="later",
    background="told",
    goes_on=lambda command: (".github/hooks/theirs.json", {
        "version": 1, "hooks": {"agentStop": [{"type": "command", "bash": command, "timeoutSec": 30}]}}),
)


def droid(home):
    model = {"model": "mock", "displayName": "mock", "baseUrl": f"{home.url}/v1", "apiKey": "x",
             "provider": "generic-chat-completion-api", "maxOutputTokens": 1000}
    write(home.home / ".factory/settings.json", {"customModels": [model], "model": "custom:mock-0", "cloudSessionSync": False})
    home.env |= {"FACTORY_API_KEY": "fk-mock", "FACTORY_API_BASE_URL": home.url, "FACTORY_DISABLE_KEYRING": "1",
                 "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false"}


DROID = Agent(
    name="droid",
    install=("npm", "@factory/cli-linux-x64"),
    tools={
        "shell": ("Execute", lambda command: {"command": command, "summary": "write", "riskLevel": "low",
                                              "riskLevelReason": "none", "timeout": 30}),
        "edit": ("Create", lambda path, text: {"file_path": path, "content": text}),
        "task": ("Task", lambda prompt: {"description": "write", "prompt": prompt, "subagent_type": "worker"}),
    },
    prepare=droid,
    headless=lambda prompt: ["droid", "exec", "--skip-permissions-unsafe", "-m", "custom:mock-0", prompt],
    interactive=lambda: ["droid", "--auto", "high"],
    no_screen="it wants an account at its maker's",
    tells_interruption="later",
    settings=".factory/hooks.json",
    theirs='{\n   "Stop": [ ]\n}',
    goes_on=lambda command: ("home:.factory/settings.json", groups("Stop", command)),
    headless_hooks="'droid exec' does not tell where a turn begins",
)


def aider(home):
    home.env |= {"OPENAI_API_BASE": f"{home.url}/v1", "OPENAI_API_KEY": "x", "AIDER_ANALYTICS": "false",
                 "AIDER_CHECK_UPDATE": "false", "AIDER_SHOW_MODEL_WARNINGS": "false"}


AIDERS = ["aider", "--model", "openai/mock", "--edit-format", "whole", "--yes-always", "--no-auto-commits",
          "--no-dirty-commits", "--no-stream", "--no-gitignore", "--no-show-release-notes", "--map-tokens", "0", "--no-pretty",
          "--no-fancy-input"]

AIDER = Agent(
    name="aider",
    install=("pip", "aider-chat"),
    # It has no tools: whole files are taken out of the text.
    tools={"text": lambda path, text: f"{path}\n```\n{text}```\n"},
    prepare=aider,
    headless=lambda prompt: [*AIDERS, "--message", prompt],
    interactive=lambda: [*AIDERS, "--notifications", "--notifications-command", "oxundo hook aider", "a.txt"],
    ready=r"> ",
    clear="",
    interrupt=("\x03",),
    message="aider: turn {number}",
    only_in_run=True,
    tells_calls=False,
    headless_hooks="it has no hooks",
    own_files=(".aider*",),
    asks_before_files=True,
    tells_beginning=False,
    cannot={"sub-agent": "it has none", "sub-agent in the background": "it has no sub-agents", "another hook makes it go on": "it has no hooks", "escape": "its work is one step",
            "a subdirectory": "a file is named from the top: see the one without a screen",
            "init, doctor, uninstall": "it has no settings for hooks"},
)


AGENTS = [CLAUDE, CODEX, GEMINI, OPENCODE, QWEN, COPILOT, DROID, CLINE, PI, AIDER]
