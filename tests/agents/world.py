"""A home with a repository, an agent in it, and what is compared there."""

import fcntl
import fnmatch
import itertools
import json
import os
import pty
import re
import select
import shutil
import signal
import stat
import struct
import subprocess
import tempfile
import termios
import threading
import time
from pathlib import Path

import mock
from agents import write
from mock import Tool

OXUNDO = os.environ.get("OXUNDO_BIN", "oxundo")
LIMIT = float(os.environ.get("OXUNDO_AGENT_SECONDS", "60"))
# How long after the model's last word a turn may still be open.
SETTLING = LIMIT / 4
TOKEN = re.compile(r"\b(?:agent|user)-\d+\b")


class Skip(Exception):
    """The agent cannot do this, and why."""


def same(found, wanted, what):
    assert found == wanted, f"{what}:\n  found  {found}\n  wanted {wanted}"


class World:
    """A repository in which an agent is at work, with nothing of the machine's configuration."""

    def __init__(self, agent, fault=None):
        self.agent, self.fault = agent, fault
        self.base = Path(tempfile.mkdtemp(prefix="oxundo-agents-"))
        self.home, self.repo = self.base / "home", self.base / "repo"
        for directory in (self.home, self.repo, self.base / "bin"):
            directory.mkdir()
        self.model, self.url = mock.serve(agent.tools)
        self.env = {
            "PATH": str(self.base / "bin") + os.pathsep + os.environ["PATH"],
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
        self.numbers = itertools.count(1)
        self.sessions, self.turns_wanted = [], []
        self.set_up_oxundo()
        for line in ("init -q -b main .", "config user.name User", "config user.email user@example.com"):
            self.run(["git", *line.split()])
        (self.repo / "sub").mkdir()
        for name in ("a.txt", "mine.txt", "sub/b.txt"):
            (self.repo / name).write_text("one\n")
        self.commit("base")

    def prepare(self):
        self.agent.prepare(self)
        if self.agent.theirs_always:
            write(self.repo / self.agent.settings, self.agent.theirs_always)
            self.commit("settings")

    def set_up_oxundo(self):
        """What the hooks call: oxundo, or what hands some of their calls to it, and keeps a copy of them."""
        link = self.base / "bin/oxundo"
        self.heard = self.base / "heard"
        link.write_text(f'#!/bin/sh\nexec "{shutil.which("python3")}" -I "{Path(__file__).parent / "listener.py"}" "$@"\n')
        link.chmod(0o755)
        self.heard.mkdir()
        self.env |= {"LISTENER_OXUNDO": OXUNDO, "LISTENER_HEARD": str(self.heard), "LISTENER_FAULT": self.fault or ""}

    # Commands

    def run(self, args, check=True, cwd=None, limit=LIMIT):
        done = subprocess.run(args, cwd=cwd or self.repo, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=limit)
        if check and done.returncode:
            raise AssertionError(f"{args} exits with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return done

    def git(self, *args):
        return self.run(["git", *args]).stdout

    def commit(self, message):
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)

    def oxundo(self, *args, check=True, cwd=None):
        return self.run([OXUNDO, *args], check=check, cwd=cwd)

    def refused(self, code, *command):
        """It is refused with this code, and nothing is another than before."""
        before = self.everything()
        done = self.oxundo("--json", *command, check=False)
        same((done.returncode, error(done.stdout)), (3, code), f"{command} is refused")
        same(self.everything(), before, f"{command} is refused, and nothing changed")

    def kill_next_hook(self):
        """The next hook that an agent calls is killed in the middle, as by an agent that has waited for long enough."""
        if self.fault != "no kill":
            (self.base / "kill").touch()

    def warned(self):
        """What status warns of."""
        return self.oxundo("status").stderr

    def findings(self, cwd=None):
        """What doctor says is wrong."""
        return json.loads(self.oxundo("--json", "doctor", check=False, cwd=cwd).stdout)["findings"]

    def turns(self):
        """The turns, the oldest first."""
        return json.loads(self.oxundo("--json", "log").stdout)["turns"][::-1]

    def worktrees(self):
        """The linked worktrees."""
        listed = self.git("worktree", "list", "--porcelain").split("\n")
        return [Path(line[9:]) for line in listed if line.startswith("worktree ")][1:]

    def turns_of(self, worktree):
        """How each turn of a worktree stands, and its message, the oldest first."""
        turns = json.loads(self.oxundo("--json", "log", cwd=worktree).stdout)["turns"][::-1]
        return [(turn["state"], turn["message"]) for turn in turns]

    def doctor(self):
        """What doctor says of the agent."""
        told = json.loads(self.oxundo("--json", "doctor", check=False).stdout)
        return next(row for row in told["about"]["agents"] if row["agent"] == self.agent.name)

    def set_up_hooks(self, *more):
        self.oxundo("init", self.agent.name, *more)
        self.commit("hooks")

    # Jobs

    def token(self, whose):
        return f"{whose}-{next(self.numbers)}"

    def job(self, *steps):
        """A job for the model; gives its name."""
        name = f"job-{next(self.numbers)}"
        self.model.job(name, *steps)
        return name

    def shell(self, path="a.txt", role="shell"):
        """A step that appends a line of the agent's; in a file of its own where the agent runs no commands."""
        if "text" in self.agent.tools:
            return self.edit(path)
        return Tool(role, f"echo {self.token('agent')} >> {self.repo / path}")

    def edit(self, path="a.txt"):
        """A step that makes a file with the agent's own tool; one that asks before it does may only write to another."""
        line = self.token("agent")
        if self.agent.asks_before_files and self.sessions:
            return Tool("edit", path, (self.repo / path).read_text() + f"{line}\n")
        name = f"made-{line}.txt"
        path = name if "text" in self.agent.tools else str(self.repo / name)
        return Tool("edit", path, f"{line}\n")

    def waiting_shell(self):
        """A step that appends a line of the agent's and is at work then, in a process, until `let_go`; and the line."""
        if "text" in self.agent.tools:
            raise Skip("it runs no commands")
        self.fifo, line = self.base / "fifo", self.token("agent")
        os.mkfifo(self.fifo)
        role = "long shell" if "long shell" in self.agent.tools else "shell"
        return line, Tool(role, f"echo {line} >> {self.repo / 'a.txt'}; cat {self.fifo}")

    def is_there(self, line):
        return line in (self.repo / "a.txt").read_text().splitlines()

    def let_go(self):
        os.close(os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK))

    def types(self, command):
        """A step in which the agent itself types a command of oxundo's; and what gives what that said, and its exit code."""
        if "text" in self.agent.tools:
            raise Skip("it runs no commands")
        said = self.base / f"said-{next(self.numbers)}"

        def came():
            *lines, code = said.read_text().splitlines()
            return int(code), "\n".join(lines)
        return Tool("shell", f"{OXUNDO} {command} > {said} 2>&1; echo $? >> {said}"), came

    def task(self, *steps):
        """A step that gives a job to a sub-agent."""
        return Tool("task", prompt(self.job(*steps)))

    def user_edits(self):
        """The user's own work: in a file that is tracked, and in one that is not."""
        with open(self.repo / "mine.txt", "a", encoding="utf-8") as file:
            file.write(self.token("user") + "\n")
        line = self.token("user")
        (self.repo / f"mine-{line}.txt").write_text(line + "\n")

    # States

    def files(self):
        """Every file, link and directory of the worktree, byte for byte; but not what the agent keeps for itself."""
        found = {}
        for directory, names, files in os.walk(self.repo):
            if Path(directory) == self.repo:
                names.remove(".git")
            for name in names + files:
                path = Path(directory, name)
                short = str(path.relative_to(self.repo))
                if any(fnmatch.fnmatch(short, pattern) for pattern in self.agent.own_files):
                    continue
                mode = path.lstat().st_mode
                content = None if stat.S_ISDIR(mode) else os.readlink(path) if path.is_symlink() else path.read_bytes()
                found[short] = (oct(mode), content)
        return found

    def home_files(self):
        """Every conversation in the agent's own directories, byte for byte."""
        return {path: path.read_bytes() for path in self.home.rglob("*.jsonl") if path.is_file()}

    def state(self):
        git = self.git("rev-parse", "HEAD"), self.git("symbolic-ref", "HEAD"), self.git("ls-files", "-s"), self.git("stash", "list")
        return self.files(), git

    def everything(self):
        return self.state(), self.git("for-each-ref"), self.git("show", "refs/oxundo/timeline:state.json")

    def until(self, holds, what, limit=LIMIT):
        end = time.monotonic() + limit
        while not holds():
            assert time.monotonic() < end, f"{what} within {limit:.0f} s"
            time.sleep(0.2)

    def settled(self, number):
        """Waits until so many turns are closed, and none is open but that of an 'oxundo run' which waits for a prompt."""
        def holds():
            states = [turn["state"] for turn in self.turns()]
            if self.running() and states and states[-1] == "open":
                states.pop()
            return [state for state in states if state != "undone"] == ["done"] * number
        try:
            self.until(holds, "", SETTLING)
        except AssertionError:
            told = [(turn["message"], turn["state"], turn["interrupted"]) for turn in self.turns()]
            raise AssertionError(f"{number} turns, and none of them open: {told}") from None

    # Prompts

    def wrap(self, command, wrapped):
        wrapped = wrapped and self.fault != "no run"
        return [OXUNDO, "run", "--", *command] if wrapped else command

    def headless(self, *steps, wrapped=False, cwd=None):
        """One prompt, and the agent ends. What it prints is given."""
        job = self.job(*steps)
        done = self.run(self.wrap(self.agent.headless(prompt(job)), wrapped), cwd=cwd, limit=LIMIT * 2)
        assert job in self.model.finished, f"it did its work:\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        return job

    def session(self, wrapped=False, cwd=None):
        if self.agent.no_screen or not self.agent.interactive():
            raise Skip(self.agent.no_screen or "it has no screen")
        wrapped = wrapped or self.agent.only_in_run
        session = Session(self, self.wrap(self.agent.interactive(), wrapped), cwd)
        session.wrapped = wrapped
        self.sessions.append(session)
        return session

    def running(self):
        """Whether an 'oxundo run' is at work."""
        return any(session.wrapped and session.pid for session in self.sessions)

    # What is checked of the turns

    def message(self, job, number):
        return self.agent.message.format(prompt=prompt(job), number=number)

    def check_turns(self, jobs, interrupted=(), shared=(), hooked=True):
        """Each prompt is a turn of its own, in this order, with a note a commit."""
        turns = self.turns()
        if hooked:
            # 'opencode run' puts it into quotes.
            wanted = [self.message(job, number) if job else turns[number - 1]["message"] for number, job in enumerate(jobs, 1)]
            same([turn["message"].strip('"') for turn in turns], wanted, "each prompt is its turn's message")
        else:
            same(len(turns), len(jobs), "turns")
        for number, turn in enumerate(turns, 1):
            told = number in interrupted and self.agent.tells_interruption != "never"
            same(turn["interrupted"], told, f"turn {number} was interrupted")
            same(turn["shared"], number in shared, f"turn {number} is shared")
            same(turn["agent"], self.agent.name, "the agent")
            if hooked and not self.agent.only_in_run:
                assert turn["session"], f"the session is known: {turn}"
            for commit in turn["commits"]:
                note = json.loads(self.git("notes", "--ref=oxundo", "show", commit).splitlines()[0])
                same((note["turn"], note["kind"]), (turn["turn"], "agent"), "the commit's note")
        self.check_whose(turns)

    def check_calls(self, turn, *roles):
        """The turn's record has these calls of the agent's tools, in any order."""
        if not self.agent.tells_calls:
            return
        digits = f"{turn['turn']:06}"
        path = f"turns/{digits[:2]}/{digits[2:4]}/{digits[4:]}/calls"
        calls = [json.loads(line) for line in self.git("show", f"refs/oxundo/timeline:{path}").splitlines()]
        names = self.agent.called or {role: name for role, (name, _) in self.agent.tools.items()}
        same(sorted(call["tool"] for call in calls), sorted(names[role] for role in roles), "the tools that were called")
        for call in calls:
            ends = call["ended_at"] and call["began_at"] <= call["ended_at"]
            assert ends or self.agent.forgets_ends, f"it is over: {call}"
            same(call["session"], turn["session"], "it is the session's")
            wanted = call["tool"] == names["edit"] and self.agent.tells_paths
            same(bool(call["path"]), wanted, f"the file is named: {call}")

    def check_whose(self, turns):
        """Each line has a token that says whose it is: the user's is in no commit of an agent's, and the other way round."""
        agents = {commit for turn in turns for commit in turn["commits"]}
        dirty = {turn["dirty_commit"] for turn in turns} - {None}
        seen = set()
        for commit in self.git("rev-list", "HEAD").split():
            shown = self.git("show", "--format=", "--unified=0", "--text", commit)
            tokens = {token for line in shown.splitlines() if line[:1] == "+" for token in TOKEN.findall(line)}
            seen |= tokens
            other = "user-" if commit in agents else "agent-"
            wrong = sorted(token for token in tokens if token.startswith(other))
            subject = self.git("log", "-1", "--format=%s", commit).strip()
            assert not wrong, f"{wrong} in the commit '{subject}'"
            if commit in dirty:
                same(re.sub(r"\d+", "N", subject), "oxundo: uncommitted changes before turn N", "the subject of a dirty commit")
        # All that agents did is in a commit.
        now = {token for _, content in self.files().values() for token in TOKEN.findall((content or b"").decode("utf-8", "replace"))
               if isinstance(content, bytes)}
        missing = sorted(token for token in now - seen if token.startswith("agent-"))
        assert not missing, f"{missing} in no commit"

    def check_undo(self, steps):
        """Undoes and redoes each turn. `steps` has the states around each of them: (before, after)."""
        later = {}
        mine = [{path: entry for path, entry in before[0].items() if path.startswith("mine")} for before, _ in steps]
        for number, (before, _) in reversed(list(enumerate(steps, 1))):
            self.oxundo("undo")
            if self.fault == "one byte":
                with open(self.repo / "a.txt", "ab") as file:
                    file.write(b"x")
            files, git = self.state()
            # What the user did after this turn stays.
            same_files(files, before[0] | later, f"turn {number} is undone")
            if not later:
                same(git, before[1], f"what git has when turn {number} is undone")
            if number > 1 and mine[number - 1] != mine[number - 2]:
                later |= mine[number - 1]
        for number, (_, after) in enumerate(steps, 1):
            self.oxundo("redo")
            files, git = self.state()
            newer = later if number < len(steps) else {}
            same_files(files, after[0] | newer, f"turn {number} is redone")
            if not newer:
                same(git, after[1], f"what git has when turn {number} is redone")

    def close(self):
        self.model.close()
        for session in self.sessions:
            session.close()
        self.end_daemons()
        kept = os.environ.get("OXUNDO_AGENT_PAYLOADS")
        if kept and not self.fault:
            place = Path(kept) / self.agent.name / getattr(self, "scenario", "-").replace(" ", "-")
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(self.heard, place)
        shutil.rmtree(self.base, ignore_errors=True)

    def end_daemons(self):
        """Some leave a daemon behind, which would serve the next home as well."""
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if f"HOME={self.home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:
                continue

    def has_told_an_end(self):
        """Whether a hook has told that a prompt is done."""
        return any("agentStop" in path.name or '"Stop"' in path.read_text() for path in self.heard.iterdir())

    def story(self):
        """What the hooks told, in order."""
        lines = []
        for path in sorted(self.heard.iterdir()):
            lines.append(f"{path.name}: {path.read_text()[:300]}")
        return "\n".join(lines)


def same_files(found, wanted, what):
    wrong = {path: (found.get(path), wanted.get(path)) for path in found.keys() | wanted.keys() if found.get(path) != wanted.get(path)}
    lines = "".join(f"\n  {path}\n    found  {is_}\n    wanted {was}" for path, (is_, was) in sorted(wrong.items()))
    assert not wrong, f"{what}, byte for byte:{lines}"


def error(text):
    """The code of an error that was told with '--json'."""
    return (json.loads(text).get("error") or {}).get("code")


def prompt(job):
    return f"please do {job}"


# What a screen asks its terminal: where the cursor is, what it is, what it can do, its colours and its size.
QUESTIONS = re.compile(rb"\x1b\[6n|\x1b\[c|\x1b\[0c|\x1b\[>0?q|\x1b\[\?\d+\$p|\x1b\[14t|\x1b\][01][01];\?|\x1b\]4;\d+;\?|\x1bP\+q\w+")


def answer(question):
    """What a plain terminal says to it."""
    if question.endswith(b"$p"):
        return question[:-2] + b";0$y"
    if question.startswith(b"\x1b]"):
        return question[:-1] + (b"rgb:ffff/ffff/ffff" if question.startswith(b"\x1b]10") else b"rgb:0000/0000/0000") + b"\x1b\\"
    if question.startswith(b"\x1bP"):
        return b"\x1bP0+r" + question[4:] + b"\x1b\\"
    if question.endswith(b"q"):
        return b"\x1bP>|xterm(390)\x1b\\"
    return {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[14t": b"\x1b[4;800;1200t"}.get(question, b"\x1b[?62;22c")


class Session:
    """An agent in a terminal of its own."""

    def __init__(self, world, args, cwd):
        self.world, self.seen, self.lock, self.last = world, "", threading.Lock(), time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            os.chdir(cwd or world.repo)
            os.execvpe(args[0], args, world.env)
        threading.Thread(target=self.read, daemon=True).start()
        ready = world.agent.ready
        end = time.monotonic() + LIMIT
        # It is ready when what it shows at its end is there, and stays.
        while not (re.search(ready, self.screen()) and len(self.seen) > 20 and time.monotonic() - self.last > 2):
            if time.monotonic() > end:
                raise AssertionError(f"no prompt can be typed; the terminal:\n{self.screen()[-2000:]}")
            time.sleep(0.2)

    def read(self):
        while True:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return
            if not data:
                return
            self.seen += data.decode("utf-8", "replace")
            self.last = time.monotonic()
            try:
                os.write(self.fd, b"".join(answer(question) for question in QUESTIONS.findall(data)))
            except OSError:
                return

    def screen(self):
        return re.sub(r"\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b[\]P].*?(?:\x07|\x1b\\)|\x1b[()>=].?", "", self.seen)

    def type(self, text, rest=0.7):
        os.write(self.fd, text.encode())
        time.sleep(rest)

    def say(self, *steps):
        """A prompt; it is given when the model was asked."""
        job = self.world.job(*steps)
        self.type(prompt(job))
        for _ in range(3):
            self.type(self.world.agent.enter, 0)
            try:
                self.world.until(lambda: job in self.world.model.asked, "", LIMIT / 6)
                return job
            except AssertionError:
                continue
        raise AssertionError(f"the prompt was given; the terminal:\n{self.screen()[-2000:]}")

    def wait(self, job):
        try:
            self.world.until(lambda: job in self.world.model.finished, "the work is done")
        except AssertionError as error:
            raise AssertionError(f"{error}; the terminal:\n{self.screen()[-2000:]}") from None

    def prompt(self, *steps):
        job = self.say(*steps)
        self.wait(job)
        return job

    def escape(self):
        for key in self.world.agent.interrupt:
            self.type(key, 0.3)

    def interrupt(self):
        self.escape()
        time.sleep(2)
        if self.world.agent.clear:
            self.type(self.world.agent.clear)

    def close(self):
        if self.pid is None:
            return
        end = time.monotonic() + 10
        while time.monotonic() < end:
            try:
                os.write(self.fd, b"\x03")
            except OSError:
                pass
            time.sleep(0.3)
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
        else:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.pid = None
        os.close(self.fd)
