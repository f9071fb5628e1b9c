"""Real agents that take a conversation up which `oxundo undo --conversation` has taken back, against a model on loopback.

Run by `tests/agents/run --conversation [AGENT…]`. What is compared is what the model is sent: all that was said before the
undone prompt, and nothing from there on.
"""

import json
import re
import shutil
import sys
import time
import traceback
from pathlib import Path

import mock
from agents import AGENTS
from suite import version
from world import Skip, World, prompt, same

# The command that goes on in a session without a screen, from its id and a prompt.
RESUMED = {
    "claude": lambda session, text: ["claude", "--permission-mode", "acceptEdits", "--allowedTools", "Bash,Edit,Write", "--resume", session, "-p", text],
    "codex": lambda session, text: ["codex", "exec", "--dangerously-bypass-hook-trust", "resume", session, text],
    "gemini": lambda session, text: ["gemini", "--yolo", "-m", "gemini-2.5-flash", "--resume", session, "-p", text],
    "qwen": lambda session, text: ["qwen", "--yolo", "-m", "mock", "--resume", session, "-p", text],
    "pi": lambda session, text: ["pi", "--provider", "mock", "--model", "mock", "--session", session, "-p", text],
}

# What is typed to have what was said so far summarised.
SUMMARISE = {"claude": "/compact", "codex": "/compact", "gemini": "/compress", "qwen": "/compress"}


class Seen:
    """What the model was sent, and which tools it called."""

    def __init__(self):
        self.requests = []
        self.formats = mock.FORMATS
        mock.FORMATS = [(ending, lambda request, says=says: self.look(request, says), tell) for ending, says, tell in self.formats]

    def look(self, request, says):
        said = list(says(request))
        self.requests.append(said)
        return said

    def jobs(self, job):
        """The jobs that were named by then, in order, in the first request that names this one; and what was said by tools."""
        for said in self.requests:
            named = [name for kind, text in said if kind == "user" for name in re.findall(r"\bjob-\d+\b", text)]
            if job in named:
                return named, sum(kind == "result" for kind, _ in said)
        raise AssertionError(f"the model was asked for {job}")

    def close(self):
        mock.FORMATS = self.formats


def fork(world, *args):
    """Undoes with the conversation; gives the copy's session, and checks that no other file has changed."""
    before = world.home_files()
    undone = json.loads(world.oxundo("--json", "undo", "--conversation", *args).stdout)
    conversations = undone["conversations"]
    forks = [conversation["fork"] for conversation in conversations]
    assert all(forks), f"it is forked: {conversations}"
    made = {Path(fork["transcript"]) for fork in forks}
    after = world.home_files()
    same({path: text for path, text in after.items() if path not in made}, before, "no other file of the agent's changed")
    original = Path(conversations[0]["transcript"])
    same(oct(forks[0] and Path(forks[0]["transcript"]).stat().st_mode), oct(original.stat().st_mode), "the copy's mode")
    return forks[0]["session"], conversations[0]["session"]


def goes_on(world, seen, session, *steps):
    """Takes a session up with another prompt; gives what the model was sent."""
    job = world.job(*steps)
    seen.requests.clear()
    world.run(RESUMED[world.agent.name](session, prompt(job)), limit=100)
    named, results = seen.jobs(job)
    return job, named, results


def in_world(agent, scene):
    world, seen = World(agent), Seen()
    try:
        world.prepare()
        world.set_up_hooks()
        scene(world, seen)
    finally:
        seen.close()
        world.close()


def summarised(world, seen):
    """What was said is summarised between the first prompt and the second."""
    if world.agent.name not in SUMMARISE:
        raise Skip("it summarises nothing that is as short")
    session = world.session()
    jobs = [session.prompt(world.shell(), world.edit())]
    world.settled(1)
    seen.requests.clear()
    session.type(SUMMARISE[world.agent.name])
    session.type(world.agent.enter, 3)
    world.until(lambda: seen.requests, "the model is asked for a summary")
    time.sleep(3)
    for number in range(2, 4):
        jobs.append(session.prompt(world.shell(), world.edit()))
        world.settled(number)
    session.close()
    copy, original = fork(world)
    job, named, _ = goes_on(world, seen, copy)
    assert named[-2:] == [jobs[1], job] and jobs[2] not in named, f"the third prompt is gone: {named}"
    other, told, _ = goes_on(world, seen, original)
    same([*named[:-1], jobs[2], other], told, "what the model is sent of the original: the same, and the third prompt")


def taken_back(world, seen):
    """Three prompts, and what becomes of them."""
    session = world.session()
    jobs = []
    for number in range(1, 4):
        jobs.append(session.prompt(world.shell(), world.edit()))
        world.settled(number)
    session.close()

    # The last prompt, and the copy is gone on with.
    copy, original = fork(world)
    job, named, results = goes_on(world, seen, copy, world.shell())
    same(named, [*jobs[:2], job], "what the model is sent, of the first copy")
    world.settled(3)

    # That is undone too, and two more: one conversation.
    world.oxundo("undo")
    world.oxundo("redo")
    other, _ = fork(world, "2")
    assert other not in (copy, original), "another copy"
    job, named, _ = goes_on(world, seen, other)
    same(named, [jobs[0], job], "what the model is sent, of the second copy")

    # The original is as it was.
    job, named, told = goes_on(world, seen, original)
    same(named, [*jobs, job], "what the model is sent, of the original")
    same(results * 3, told * 2, "what tools had said, of the first copy: as much as of the original, without the third")


def main():
    wanted, failed = sys.argv[1:], 0
    for agent in AGENTS:
        if agent.name not in (wanted or RESUMED):
            continue
        if not shutil.which(agent.command):
            print(f"{agent.name}: skipped, it is not installed")
            continue
        print(f"{agent.name}: {version(agent)}", flush=True)
        for scene in (taken_back, summarised):
            try:
                in_world(agent, scene)
                print(f"  ok      {scene.__name__}", flush=True)
            except Skip as reason:
                print(f"  skipped {scene.__name__}: {reason}", flush=True)
            except Exception:
                failed += 1
                print(f"  FAILED  {scene.__name__}\n{traceback.format_exc(limit=-3)}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
