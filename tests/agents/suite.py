"""Real agents against a model on loopback: each prompt is a turn, with notes, undone and redone.

Run by `tests/agents/run`. Every agent that is not installed is skipped.
"""

import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import fcntl
import time
import traceback
from pathlib import Path

import mock

OXUNDO = os.environ["OXUNDO_BIN"]
LIMIT = float(os.environ.get("OXUNDO_AGENT_SECONDS", "90"))


class Home:
    """A home, a repository, and nothing of the machine's configuration."""

    def __init__(self, url):
        self.url = url
        self.base = Path(tempfile.mkdtemp(prefix="oxundo-agents-"))
        self.home, self.repo = self.base / "home", self.base / "repo"
        self.home.mkdir()
        self.repo.mkdir()
        self.env = {
            "PATH": os.path.dirname(OXUNDO) + os.pathsep + os.environ["PATH"],
            "HOME": str(self.home),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "GIT_CONFIG_NOSYSTEM": "1",
            # Whatever tries to leave loopback ends here.
            "HTTP_PROXY": "http://127.0.0.1:9",
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
            "DO_NOT_TRACK": "1",
        }
        self.sh("git init -q -b main . && git config user.name User && git config user.email user@example.com")
        (self.repo / "a.txt").write_text("one\n")
        self.sh("git add -A && git commit -qm base")

    def run(self, args, check=True, limit=LIMIT, **kwargs):
        done = subprocess.run(args, cwd=self.repo, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=limit, **kwargs)
        if check and done.returncode:
            raise AssertionError(f"{args} exits with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done

    def sh(self, script):
        return self.run(["sh", "-ec", script]).stdout

    def oxundo(self, *args, check=True):
        return self.run([OXUNDO, *args], check=check)

    def turns(self):
        return json.loads(self.oxundo("--json", "log").stdout)["turns"]

    def state(self):
        # What is ignored is the agent's own, and not covered.
        names = [name for name in self.sh("git ls-files -z -co --exclude-standard").split("\0") if name]
        files = {name: (self.repo / name).read_bytes() for name in sorted(names) if (self.repo / name).is_file()}
        return files, self.sh("git rev-parse HEAD; git status --porcelain; git diff")

    def close(self):
        shutil.rmtree(self.base, ignore_errors=True)


def same(found, wanted, what):
    assert found == wanted, f"{what}:\n  found  {found}\n  wanted {wanted}"


class Claude:
    name = "claude"
    program = "claude"

    def __init__(self, home):
        home.env |= {"ANTHROPIC_BASE_URL": home.url, "ANTHROPIC_API_KEY": "sk-mock-0123456789012345678901234567890123456789",
                     "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1",
                     "DISABLE_AUTOUPDATER": "1", "IS_SANDBOX": "1"}
        (home.home / ".claude.json").write_text(json.dumps({
            "hasCompletedOnboarding": True, "theme": "dark",
            "customApiKeyResponses": {"approved": [home.env["ANTHROPIC_API_KEY"][-20:]], "rejected": []},
            "projects": {str(home.repo): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
        }))

    def headless(self, prompt):
        return ["claude", "-p", prompt, "--allowedTools", "Bash"]

    def interactive(self):
        return ["claude", "--allowedTools", "Bash"]


class Codex:
    name = "codex"
    program = "codex"

    def __init__(self, home):
        home.env |= {"MOCK_KEY": "x"}
        (home.home / ".codex").mkdir()
        (home.home / ".codex/config.toml").write_text(
            f'model = "mock"\nmodel_provider = "mock"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
            f'check_for_update_on_startup = false\n[analytics]\nenabled = false\n'
            f'[model_providers.mock]\nname = "mock"\nbase_url = "{home.url}/v1"\nwire_api = "responses"\nenv_key = "MOCK_KEY"\n'
            f'[projects."{home.repo}"]\ntrust_level = "trusted"\n')

    def headless(self, prompt):
        return ["codex", "exec", "--dangerously-bypass-hook-trust", prompt]

    def interactive(self):
        return ["codex", "--dangerously-bypass-hook-trust"]


class Gemini:
    # Its AfterAgent fires after an interruption too, and does not tell.
    tells_interruptions = False
    name = "gemini"
    program = "gemini"

    def __init__(self, home):
        home.env |= {"GOOGLE_GEMINI_BASE_URL": home.url, "GEMINI_API_KEY": "x", "GEMINI_CLI_NO_RELAUNCH": "1"}
        (home.home / ".gemini").mkdir()
        (home.home / ".gemini/settings.json").write_text(json.dumps({
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False}, "general": {"disableAutoUpdate": True, "disableUpdateNag": True}}))
        (home.home / ".gemini/trustedFolders.json").write_text(json.dumps({str(home.repo): "TRUST_FOLDER"}))

    def headless(self, prompt):
        return ["gemini", "--yolo", "-m", "gemini-2.5-flash", "-p", prompt]

    def interactive(self):
        return ["gemini", "--yolo", "-m", "gemini-2.5-flash"]


class OpenCode:
    name = "opencode"
    program = "opencode"

    def __init__(self, home):
        config = home.home / ".config/opencode"
        config.mkdir(parents=True)
        (config / "opencode.json").write_text(json.dumps({
            "model": "mock/mock", "small_model": "mock/mock", "autoupdate": False, "share": "disabled", "permission": "allow",
            "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "name": "mock",
                                  "options": {"baseURL": f"{home.url}/v1", "apiKey": "x"},
                                  "models": {"mock": {"name": "mock", "tool_call": True}}}}}))
        home.env |= {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
                     # With a plugin it asks a registry for a package of its own: there is none.
                     "npm_config_registry": home.url, "npm_config_fetch_retries": "0",
                     "OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1"}

    def headless(self, prompt):
        return ["opencode", "run", prompt]

    def interactive(self):
        return None


class Aider:
    name = "aider"
    program = "aider"

    def __init__(self, home):
        home.env |= {"OPENAI_API_BASE": f"{home.url}/v1", "OPENAI_API_KEY": "x", "AIDER_ANALYTICS": "false",
                     "AIDER_CHECK_UPDATE": "false", "AIDER_SHOW_MODEL_WARNINGS": "false"}

    def headless(self, prompt):
        return ["aider", "--model", "openai/mock", "--edit-format", "whole", "--yes-always", "--no-auto-commits",
                "--no-dirty-commits", "--no-stream", "--no-gitignore", "--no-show-release-notes", "--map-tokens", "0",
                "--message", prompt, "a.txt"]

    def interactive(self):
        return None


AGENTS = [Claude, Codex, Gemini, OpenCode, Aider]


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, home, args):
        self.seen = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(home.repo)
            os.execvpe(args[0], args, home.env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def read(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            ready, _, _ = select.select([self.fd], [], [], left)
            if not ready:
                return
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return
            if not data:
                return
            self.seen += data.decode("utf-8", "replace")
            # Some ask the terminal where its cursor is, and what it is.
            if "\x1b[6n" in self.seen[-2000:] and b"\x1b[6n" in data:
                os.write(self.fd, b"\x1b[1;1R")
            if b"\x1b[c" in data:
                os.write(self.fd, b"\x1b[?62c")

    def until(self, holds, what):
        end = time.monotonic() + LIMIT
        while not holds():
            assert time.monotonic() < end, f"{what} within {LIMIT} s; the terminal:\n{self.screen()[-3000:]}"
            self.read(0.3)

    def screen(self):
        return re.sub(r"\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b[\]P].*?(?:\x07|\x1b\\)|\x1b[()>=].?", "", self.seen)

    def type(self, text):
        os.write(self.fd, text.encode())
        self.read(1.0)

    def say(self, prompt):
        self.type(prompt)
        self.type("\r")

    def close(self):
        for _ in range(3):
            try:
                os.write(self.fd, b"\x03")
            except OSError:
                break
            self.read(0.5)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                os.close(self.fd)
                return
            self.read(0.2)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def undo_and_redo(home, before, after, turns):
    for steps in range(1, turns + 1):
        home.oxundo("undo")
    same(home.state()[0], before[0], "undo gives back every file")
    same(home.state()[1], before[1], "undo gives back what git sees")
    home.oxundo("redo", "--steps", str(turns))
    same(home.state(), after, "redo gives back everything")


def noted(home, turn):
    for commit in turn["commits"]:
        note = home.sh(f"git notes --ref=oxundo show {commit}")
        same(json.loads(note.splitlines()[0])["turn"], turn["turn"], "the commit's note")


def headless(agent_type, url, wrapped, hooked):
    home = Home(url)
    try:
        agent = agent_type(home)
        if hooked:
            home.oxundo("init", agent.name)
            home.sh("git add -A; git commit -qm setup || true")
        before = home.state()
        command = agent.headless("please WRITE a.txt two")
        home.run([OXUNDO, "run", "--", *command] if wrapped else command)
        text = (home.repo / "a.txt").read_text()
        assert "two" in text, f"the agent did its work: {text!r}"
        turns = home.turns()
        same(len(turns), 1, f"one prompt is one turn: {turns}")
        if hooked:
            # 'opencode run' puts it into quotes.
            same(turns[0]["message"].strip('"'), "please WRITE a.txt two", "the prompt is the message")
            assert turns[0]["session"], "the session is known"
        same(len(turns[0]["commits"]), 1, "one commit")
        same(turns[0]["interrupted"], False, "not interrupted")
        noted(home, turns[0])
        undo_and_redo(home, before, home.state(), 1)
    finally:
        home.close()


def interactive(agent_type, url, wrapped):
    home = Home(url)
    try:
        agent = agent_type(home)
        home.oxundo("init", agent.name)
        home.sh("git add -A; git commit -qm setup || true")
        before = home.state()
        command = agent.interactive()
        terminal = Terminal(home, [OXUNDO, "run", "--", *command] if wrapped else command)
        try:
            terminal.read(8)
            content = lambda: (home.repo / "a.txt").read_text()
            done = lambda: [turn for turn in home.turns() if turn["state"] == "done"]
            terminal.say("please WRITE a.txt first")
            terminal.until(lambda: "first" in content(), "the first change")
            terminal.until(lambda: len(done()) == 1, "the first turn")
            terminal.say("please WRITE a.txt second")
            terminal.until(lambda: len(done()) == 2, "the second turn")
            terminal.say("please HANG a.txt third")
            terminal.until(lambda: "third" in content(), "the third change")
            terminal.read(2)
            terminal.type("\x1b")
            terminal.read(3)
            terminal.type("\x15")
            terminal.say("please WRITE a.txt fourth")
            terminal.until(lambda: "fourth" in content() and len(done()) == 4, "the fourth turn")
        except BaseException:
            print(terminal.screen()[-3000:])
            raise
        finally:
            terminal.close()
        turns = home.turns()
        told = getattr(agent, "tells_interruptions", True)
        same([turn["interrupted"] for turn in turns], [False, told, False, False], "the third was interrupted")
        messages = [turn["message"].split()[-1] for turn in turns]
        same(messages, ["fourth", "third", "second", "first"], "each prompt is its turn's message")
        same({turn["session"] for turn in turns}, {turns[0]["session"]}, "one session")
        for turn in turns:
            noted(home, turn)
        subjects = home.sh("git log --format=%s")
        assert "uncommitted changes" not in subjects, f"no dirty commit:\n{subjects}"
        undo_and_redo(home, before, home.state(), 4)
    finally:
        home.close()


def main():
    wanted = sys.argv[1:]
    url = mock.serve()
    passed, failed, skipped = 0, 0, 0
    for agent in AGENTS:
        if wanted and agent.name not in wanted:
            continue
        if not shutil.which(agent.program):
            print(f"{agent.name}: skipped, it is not installed")
            skipped += 1
            continue
        version = subprocess.run([agent.program, "--version"], capture_output=True, text=True, timeout=60)
        print(f"{agent.name}: {version.stdout.strip().splitlines()[0] if version.stdout.strip() else '?'}", flush=True)
        cases = {"run": lambda: headless(agent, url, True, False)}
        if agent is not Aider:
            cases["hooks"] = lambda: headless(agent, url, False, True)
            cases["run and hooks"] = lambda: headless(agent, url, True, True)
        if agent.interactive(None):
            cases["interactive"] = lambda: interactive(agent, url, False)
            cases["interactive in run"] = lambda: interactive(agent, url, True)
        for what, case in cases.items():
            if os.environ.get("OXUNDO_CASE", "") not in what:
                continue
            begin = time.monotonic()
            try:
                case()
                passed += 1
                print(f"  ok      {what} ({time.monotonic() - begin:.0f} s)", flush=True)
            except Exception:
                failed += 1
                print(f"  FAILED  {what}\n{traceback.format_exc(limit=3)}", flush=True)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
