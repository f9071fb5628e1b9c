"""The undo of other programs, and oxundo's, on the same scenes: what each brings back, judged byte for byte.

Run by hand: `tests/agents/run --compare [PROGRAM…]`. The turn is a real agent's, with the model on loopback, and the undo is that agent's
own, typed where its user types it. What only wraps a command (oxundo, stepback) is given the same steps as a script. Nothing passes or
fails here: a line says what was found. docs/comparison.md is written from these lines, with their date.
"""

import dataclasses
import datetime
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import agents
from agents import Agent
from mock import Tool
from suite import version
from world import LIMIT, OXUNDO, Session, Skip, World, prompt

MANY = 300
# With a call of its own for each: the fewer the sooner.
MANY_BY_TOOL = 20
LINES = "".join(f"line {number}\n" for number in range(1, 11))


# The scenes: what is there, what the agent does, what the user does then, and what should be there after the undo

@dataclasses.dataclass
class Scene:
    name: str
    there: dict
    steps: list
    # What the user does after the turn.
    user: list = ()
    # What is to be otherwise than before the turn: what the user did.
    kept: dict = dataclasses.field(default_factory=dict)
    killed: bool = False
    # What git has is to be as before, too: the index, and the commits.
    git: bool = False
    # What the user has staged before the turn.
    staged: tuple = ()
    # Told of by the shell alone, and so of no use where only an agent's own tools are kept.
    of_the_shell: bool = False


def text(content, mode=0o644):
    return (mode, content.encode())


SCENES = [
    Scene("shell", {}, [("shell", "echo agent >> a.txt; echo agent > made.txt; rm sub/b.txt")]),
    Scene("shell, in place", {}, [("shell", "sed -i s/one/agent/ a.txt")]),
    Scene("shell, by a program", {}, [("shell", """python3 -c "open('a' + '.txt', 'a').write('agent')\"""")]),
    Scene("edits since", {"f.txt": text(LINES)},
          [("change", "f.txt", "line 2\n", "agent 2\n"), ("make", "made.txt", "agent\n")],
          ["echo mine >> f.txt", "echo mine >> mine.txt", "echo mine > yours.txt"],
          {"f.txt": text(LINES + "mine\n"), "mine.txt": text("one\nmine\n"), "yours.txt": text("mine\n")}),
    Scene("untracked, by the shell", {"notes.txt": text("mine\n"), "gone.txt": text("mine\n"), "crlf.txt": text("mine\r\n")},
          [("shell", "echo agent >> notes.txt; echo agent >> crlf.txt; rm gone.txt; mkdir new; echo agent > new/made.txt")]),
    Scene("untracked, by its own tool", {"notes.txt": text("mine\n")}, [("change", "notes.txt", "mine", "agent")]),
    Scene("ignored, .gitignore emptied", {"secret.env": text("mine\n"), ".gitignore": text("secret.env\n")},
          [("shell", "echo agent >> a.txt; : > .gitignore")]),
    Scene("ignored, by its own tool", {"local.env": text("mine\n"), ".gitignore": text("local.env\n")},
          [("change", "local.env", "mine", "agent")]),
    Scene("modes and links, by the shell", {"run.sh": text("echo\n", 0o755), "key": text("mine\n", 0o600), "link": "a.txt"},
          [("shell", "chmod -x run.sh; echo agent >> key; chmod 644 key; rm link; echo agent > link")]),
    Scene("modes, by its own tool", {"run.sh": text("echo\n", 0o755), "key": text("mine\n", 0o600)},
          [("change", "run.sh", "echo", "agent"), ("change", "key", "mine", "agent")]),
    Scene("after a commit", {"f.txt": text(LINES)},
          [("change", "f.txt", "line 2\n", "agent 2\n"), ("make", "made.txt", "agent\n")],
          ["echo mine >> mine.txt", "git add mine.txt", "git commit -q -m mine"], {"mine.txt": text("one\nmine\n")}),
    Scene("a file in a directory's place", {"d/one": text("mine\n"), "d/two": text("mine\n")},
          [("shell", "rm -r d; echo agent > d")], of_the_shell=True),
    Scene("names beyond ASCII", {"\u6587.txt": text("mine\n"), "\u0444.txt": text("mine\n")},
          [("shell", "echo agent >> \u6587.txt; echo agent >> \u0444.txt")], of_the_shell=True),
    Scene("untracked, with CRLF and '* text'", {".gitattributes": text("* text\n"), "crlf.txt": text("mine\r\n")},
          [("shell", "echo agent >> crlf.txt")], of_the_shell=True),
    Scene("untracked, 11 MiB", {"large": text("mine\n" * (11 << 20 >> 3))}, [("shell", "echo agent > large")], of_the_shell=True),
    Scene("a nested repository without a commit", {}, [("shell", "echo agent >> a.txt")], staged=("git init -q inner",), of_the_shell=True),
    Scene("the index", {"f.txt": text(LINES)}, [("shell", "echo agent >> a.txt; git add -A")], git=True,
          staged=("echo staged >> f.txt", "git add f.txt", "echo unstaged >> f.txt", "echo mine > notes.txt"), of_the_shell=True),
    Scene("its own commit", {}, [("shell", "echo agent >> a.txt; git commit -qam agents")], git=True, of_the_shell=True),
    Scene("killed", {}, [("many",)], killed=True),
]

# What git does not track of these.
UNTRACKED = ("notes.txt", "gone.txt", "crlf.txt", "secret.env", "local.env", "key", "large")


def lay(world, scene):
    for path, entry in scene.there.items():
        if isinstance(entry, str):
            (world.repo / path).symlink_to(entry)
            continue
        mode, content = entry
        (world.repo / path).parent.mkdir(exist_ok=True)
        (world.repo / path).write_bytes(content)
        (world.repo / path).chmod(mode)
    world.git("config", "core.quotePath", "false")
    tracked = [path for path in scene.there if path not in UNTRACKED]
    if tracked:
        world.git("add", *tracked)
        world.git("commit", "-q", "-m", "there")
    for line in scene.staged:
        world.run(["sh", "-c", line])


# The programs

@dataclasses.dataclass
class Program:
    """One that has agents' turns, and the way to its undo."""
    name: str
    agent: Agent
    # What is typed for its undo, each with what is on the screen then, without its blanks.
    keys: tuple = ()
    # How it goes on with its last session.
    goes_on: tuple = ()
    # What is typed before anything else.
    first: tuple = ()
    # It keeps what its own tools change only: so a great many files are made with them.
    own_tool_only: bool = False

    def steps(self, world, scene):
        tools = world.agent.tools
        for role, *words in scene.steps:
            if "text" in tools and role in ("shell", "many"):
                raise Skip("it runs no commands by itself")
            if role == "many" and self.own_tool_only:
                yield from (Tool("edit", str(world.repo / f"many-{number:03}"), "agent\n") for number in range(MANY_BY_TOOL))
            elif role == "shell" or role == "many":
                yield Tool("shell", f"cd {world.repo} && {words[0] if words else many()}")
            elif "text" in tools:
                before = (world.repo / words[0]).read_text() if role == "change" else ""
                yield Tool("edit", words[0], before.replace(words[1], words[2]) if role == "change" else words[1])
            elif role == "make":
                yield Tool("edit", str(world.repo / words[0]), words[1])
            else:
                path = str(world.repo / words[0])
                if "read" in tools:
                    yield Tool("read", path)
                yield Tool("change", path, *words[1:])

    def begin(self, world):
        self.session = self.start(world, self.agent.interactive())

    def start(self, world, command):
        session = Session(world, command, None)
        session.wrapped = False
        world.sessions.append(session)
        for key in self.first:
            session.type(key, 2)
        return session

    def turn(self, world, scene):
        steps = list(self.steps(world, scene))
        self.ups = len(steps) + 1
        self.begin(world)
        self.session.prompt(*steps)
        quiet(self.session)

    def undo(self, world):
        for key, shown in self.keys:
            if key == "ESC ESC":
                self.escape_twice(shown)
                continue
            times = self.ups if key == "UPS" else 1
            for _ in range(times):
                mark = len(self.session.seen)
                self.session.type("\x1b[A" if key == "UPS" else key, 0.5)
            if shown:
                wait_for(self.session, mark, shown)
        quiet(self.session)
        return ""

    def escape_twice(self, shown):
        """The second in time."""
        for _ in range(5):
            mark = len(self.session.seen)
            self.session.type("\x1b", 0.25)
            self.session.type("\x1b", 0.25)
            end = time.monotonic() + 15
            while time.monotonic() < end:
                if re.search(shown, bare(self.session.seen[mark:])):
                    time.sleep(1)
                    return
                time.sleep(0.1)
        raise AssertionError(f"{shown!r} is not shown")

    def undo_again(self, world):
        """After it was killed: what its user would do."""
        if not self.goes_on:
            raise Skip("it cannot go on with a session")
        self.session = self.start(world, [*self.agent.interactive(), *(self.goes_on(world) if callable(self.goes_on) else self.goes_on)])
        return self.undo(world)

    def pids(self, world):
        return of_home(world)

    def version(self):
        return version(self.agent)

    def is_there(self):
        return shutil.which(self.agent.command)


def many():
    return f"for n in $(seq 100 {99 + MANY}); do echo agent > many-$n; done"


def bare(text):
    return re.sub(r"\s+|[│┃]", "", re.sub(r"\x1b\[[0-9;?<>=]*[A-Za-z]|\x1b[\]P].*?(?:\x07|\x1b\\)|\x1b[()>=].?", "", text))


def wait_for(session, mark, shown):
    end = time.monotonic() + LIMIT
    while not re.search(shown, bare(session.seen[mark:])):
        if time.monotonic() > end:
            raise AssertionError(f"{shown!r} is not shown:\n{bare(session.seen[mark:])[-1500:]}")
        time.sleep(0.1)
    time.sleep(1)


def quiet(session):
    """Until nothing has been written to the screen for a while, or it goes on for long."""
    end = time.monotonic() + 15
    while time.monotonic() - session.last < 3 and time.monotonic() < end:
        time.sleep(0.2)


def of_home(world):
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"HOME={world.home}".encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


class OpenCode(Program):
    """By the server that its screen talks to."""

    def begin(self, world):
        self.server = subprocess.Popen(["opencode", "serve", "--port", "0"], cwd=world.repo, env=world.env, text=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in self.server.stdout:
            if "listening on" in line:
                self.url = line.split()[-1]
                break
        threading.Thread(target=lambda: self.server.stdout.read(), daemon=True).start()

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return json.loads(urllib.request.urlopen(request, timeout=LIMIT * 2).read() or "null")

    def turn(self, world, scene):
        self.begin(world)
        self.id = self.post("/session", {})["id"]
        job = world.job(*self.steps(world, scene))
        model = {"providerID": "mock", "modelID": "mock"}
        said = self.post(f"/session/{self.id}/message", {"parts": [{"type": "text", "text": prompt(job)}], "model": model})
        assert job in world.model.finished, "it did its work"
        self.message = said["info"]["parentID"]

    def undo(self, world):
        try:
            self.post(f"/session/{self.id}/revert", {"messageID": self.message})
        except OSError as error:
            return str(error)
        return ""

    def undo_again(self, world):
        self.begin(world)
        return self.undo(world)


class Wrapper(Program):
    """What wraps a command: the steps are a script's."""

    def __init__(self, name, run, undo, again, program):
        super().__init__(name, Agent(name=name, install=(), tools={}, prepare=lambda home: None, headless=None, program=program))
        self.run_line, self.undo_lines, self.again_lines = run, undo, again
        self.command = None

    def turn(self, world, scene):
        lines = []
        for role, *words in scene.steps:
            if role == "change":
                changed = (world.repo / words[0]).read_text().replace(words[1], words[2])
                lines.append(f"printf %s {shlex.quote(changed)} > {words[0]}")
            elif role == "make":
                lines.append(f"printf %s {shlex.quote(words[1])} > {words[0]}")
            else:
                lines.append(words[0] if words else many())
        script = world.base / "work.sh"
        # A watcher is given time to look.
        script.write_text("sleep 2\n" + "\n".join(lines) + "\nsleep 2\n")
        world.run([*self.run_line, "sh", str(script)], limit=LIMIT * 2)

    def do(self, world, lines):
        said = []
        for line in lines:
            self.command = subprocess.Popen(line(world), cwd=world.repo, env=world.env, text=True, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            out, _ = self.command.communicate(timeout=LIMIT * 2)
            if self.command.returncode:
                said.append(" ".join(out.split())[-300:])
        return "; ".join(said)

    def undo(self, world):
        return self.do(world, self.undo_lines)

    def undo_again(self, world):
        return self.do(world, self.again_lines)

    def pids(self, world):
        return [self.command.pid] if self.command else []

    def version(self):
        told = super().version()
        # stepback does not tell its own.
        return told if "Usage" not in told else "version " + package_version(self.agent.command)


def package_version(program):
    """Of the Python package that has a program."""
    python = Path(shutil.which(program)).resolve().read_text().splitlines()[0].removeprefix("#!")
    code = f"import importlib.metadata as m; print(m.version('{program}'))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()


def stepback_rewind(world):
    """To the first checkpoint of its session: what was there when the command began."""
    listed = world.run(["stepback", "list"]).stdout
    numbers = [int(found) for found in re.findall(r"^\D{0,4}#?(\d+)\b", listed, re.M)]
    return ["stepback", "rewind", str(min(numbers)), "--yes"] if numbers else ["stepback", "rewind", "--yes"]


def with_tools(agent, **more):
    return dataclasses.replace(agent, tools=agent.tools | more, no_screen="")


def snake(path, old, new):
    return {"file_path": path, "old_string": old, "new_string": new}


def newest(directory):
    return max(filter(Path.is_dir, directory.iterdir()), key=lambda path: path.stat().st_mtime)


def interactive_aider():
    return [word for word in agents.AIDERS if word not in ("--no-auto-commits", "--no-dirty-commits")]


CLAUDE = with_tools(agents.CLAUDE, read=("Read", lambda path: {"file_path": path}), change=("Edit", snake))
GEMINI = with_tools(agents.GEMINI, change=("replace", lambda *words: {**snake(*words), "instruction": "change it"}))
QWEN = with_tools(agents.QWEN, read=("read_file", lambda path: {"file_path": path}), change=("edit", snake))
COPILOT = with_tools(agents.COPILOT, change=("edit", lambda path, old, new: {"path": path, "old_str": old, "new_str": new}))
CLINE = with_tools(agents.CLINE, change=("editor", lambda path, old, new: {"path": path, "old_text": old, "new_text": new}))
OPENCODE = with_tools(agents.OPENCODE, read=("read", lambda path: {"filePath": path}),
                      change=("edit", lambda path, old, new: {"filePath": path, "oldString": old, "newString": new}))
AIDER = dataclasses.replace(agents.AIDER, interactive=interactive_aider)

PROGRAMS = [
    Wrapper("oxundo", [OXUNDO, "run", "--"], [lambda world: [OXUNDO, "undo"]], [lambda world: [OXUNDO, "undo"]], OXUNDO),
    Wrapper("oxundo --revert", [OXUNDO, "run", "--"], [lambda world: [OXUNDO, "undo", "--revert"]], [lambda world: [OXUNDO, "undo"]], OXUNDO),
    Wrapper("stepback", ["stepback", "run", "--"], [stepback_rewind], [lambda world: ["stepback", "recover"], stepback_rewind], "stepback"),
    Program("Claude Code /rewind", CLAUDE, (
        ("/rewind", "/rewind"), ("\r", "Restorethecodeand/or"), ("\x1b[A", ""), ("\r", "tothepointbeforeyou"), ("\r", "")),
        ("--continue",), own_tool_only=True),
    OpenCode("OpenCode /undo", OPENCODE),
    Program("Cline /undo", CLINE, (
        ("/undo", "Restoretoaprevious"), ("\r", "RestoretoCheckpoint"), ("\r", "Restorechatandworkspace"), ("\x1b[B", ""), ("\r", "")),
        lambda world: ("--id", newest(world.home / ".cline/data/sessions").name), first=("\x1b",)),
    Program("Gemini CLI /rewind", GEMINI, (
        ("/rewind", "rewind"), ("\r", "Stayatcurrent"), ("UPS", ""), ("\r", "ConfirmRewind"), ("\r", "")),
        ("--resume", "latest"), own_tool_only=True),
    Program("Qwen Code /rewind", QWEN, (
        ("ESC ESC", "RewindConversation"), ("\r", "Restorec"), ("\r", "")), ("--continue",), own_tool_only=True),
    Program("Copilot CLI /rewind", COPILOT, (
        ("/rewind", ""), ("\r", "Rewindtoaprevious"), ("\r", "Conversationonly"), ("\x1b[B", ""), ("\r", ""), ("\r", "")),
        ("--continue",)),
    Program("Aider /undo", AIDER, (("/undo\r", "Removed:|uncommitted|lastcommit|Unable|can't|cannot|not"),)),
]


# What is found

def state(world):
    return world.files(), world.git("log", "--format=%s").split()


def of_git(world):
    """What of git is not as it was, is in this."""
    return {"the commits": world.git("log", "--format=%H %s"), "the index": world.git("ls-files", "-s")}


def named(entry):
    if entry is None:
        return "is not there"
    mode, content = entry
    return f"{mode[-3:]} {content[:40]!r}" if content is not None else f"{mode[-3:]} a directory"


def differences(found, wanted, after):
    """Each path that is not as it should be, and how it is instead."""
    said = []
    for path in sorted(found.keys() | wanted.keys()):
        is_, should, was = found.get(path), wanted.get(path), after.get(path)
        if is_ == should:
            continue
        how = "as the turn left it" if is_ == was else named(is_)
        said.append(f"{path} {how}" + ("" if is_ == was else f", wanted {named(should)}"))
    if len(said) > 8:
        return f"{len(said)} paths, such as {said[0]}"
    return "; ".join(said)


def wanted_files(before, scene):
    files = dict(before)
    for path, (mode, content) in scene.kept.items():
        files[path] = (oct(0o100000 | mode), content)
    return files


def kill_in_the_middle(world, program):
    """Kills it once the first of the many files is gone again; gives how many were gone then."""
    def made():
        return sum(name.startswith("many-") for name in os.listdir(world.repo))
    total, over = made(), threading.Event()

    def watch():
        pids = program.pids(world)
        while made() == total and not over.is_set():
            continue
        for pid in program.pids(world) if isinstance(program, Wrapper) else pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        program.undo(world)
    except (AssertionError, OSError):
        pass
    time.sleep(5)
    over.set()
    watcher.join()
    for session in world.sessions:
        session.close()
    world.end_daemons()
    return total, total - made()


def play(world, program, scene):
    world.prepare()
    lay(world, scene)
    before, _ = state(world)
    git = of_git(world)
    program.turn(world, scene)
    # One that has no tools does its work when it has heard all.
    world.until(lambda: state(world)[0] != before, "the turn did something")
    time.sleep(1)
    turned_git = of_git(world)
    for line in scene.user:
        world.run(["sh", "-c", line])
    after, log = state(world)
    if scene.killed:
        total, gone = kill_in_the_middle(world, program)
        middle = f"killed when {gone} of {total} were taken back; then again: "
    else:
        middle = ""
    try:
        said = program.undo_again(world) if scene.killed else program.undo(world)
    except AssertionError as error:
        if not scene.killed:
            raise
        said = f"its undo could not be reached again: {str(error)[-200:]}"
    found, commits = state(world)
    lost = [subject for subject in log if subject in ("base", "there", "mine") and subject not in commits]
    if lost:
        middle += f"the commit {lost} is gone; "
    if scene.git and of_git(world) != git:
        for what, was in git.items():
            now = of_git(world)[what]
            if now != was:
                middle += f"{what}: " + ("as the turn left it; " if now == turned_git[what] else "as neither before nor after; ")
    files = wanted_files(before, scene)
    told = f" ({said})" if said else ""
    if found == files:
        return middle + "exact" + told
    if found == after:
        return middle + "nothing is changed: " + differences(found, files, after) + told
    return middle + differences(found, files, after) + told


def attempt(program, scene):
    if scene.of_the_shell and program.own_tool_only:
        return "not run: it keeps what its own tools change"
    world = World(program.agent)
    try:
        return play(world, program, scene)
    except Skip as reason:
        return f"not run: {reason}"
    except (AssertionError, OSError, subprocess.SubprocessError) as error:
        return f"not run: {type(error).__name__}: {error}"
    finally:
        server = getattr(program, "server", None)
        if server:
            server.kill()
        world.close()


def main():
    wanted = [word.lower() for word in sys.argv[1:]]
    only = os.environ.get("OXUNDO_CASE", "")
    print(datetime.date.today().isoformat())
    for program in PROGRAMS:
        if wanted and not any(program.name.lower().startswith(word) for word in wanted):
            continue
        if not program.is_there():
            print(f"{program.name}: not installed")
            continue
        print(f"{program.name}: {program.version()}", flush=True)
        for scene in SCENES:
            if re.search(only, scene.name):
                print(f"  {scene.name}: {attempt(program, scene)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
