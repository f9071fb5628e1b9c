"""Real agents in an editor's hands: a client of the Agent Client Protocol, `oxundo acp`, and the agent, against a model on loopback.

Run by `tests/agents/run --acp [AGENT…]`. What each side says is kept beside it and compared byte for byte.
"""

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
import traceback

from agents import AGENTS
from mock import Gate
from world import LIMIT, OXUNDO, Skip, World, prompt as worded, same

# How each of them is started to speak the protocol, the first that is installed.
SPEAKS = {
    "claude": [["claude-agent-acp"], ["claude-code-acp"]],
    "codex": [["codex-acp"]],
    "gemini": [["gemini", "--experimental-acp", "--yolo", "-m", "gemini-2.5-flash"]],
    "qwen": [["qwen", "--acp", "--yolo"]],
    "opencode": [["opencode", "acp"]],
    "copilot": [["copilot", "--acp", "--allow-all-tools"]],
}

# Stands before the agent, and keeps a copy of what it hears and says.
TEE = """
import subprocess, sys, threading
heard, said, *command = sys.argv[1:]
agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def copy(source, target, name):
    with open(name, "wb", 0) as kept:
        while block := source.read1(65536):
            kept.write(block); target.write(block); target.flush()
    target.close()
threading.Thread(target=copy, args=(sys.stdin.buffer, agent.stdin, heard), daemon=True).start()
copy(agent.stdout, sys.stdout.buffer, said)
sys.exit(agent.wait())
"""


class Client:
    """An editor, as far as the protocol goes: it allows what it is asked for."""

    def __init__(self, world, command):
        self.heard, self.said, self.world = b"", b"", world
        self.agent_heard, self.agent_said = world.base / "agent-heard", world.base / "agent-said"
        tee = [sys.executable, "-c", TEE, str(self.agent_heard), str(self.agent_said)]
        self.errors = open(world.base / "stderr", "wb")
        self.process = subprocess.Popen([OXUNDO, "acp", "--", *tee, *command], cwd=world.repo, env=world.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors)
        self.answers, self.updates, self.ids, self.lock = {}, [], 0, threading.Lock()
        self.news = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.heard += line
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if "method" not in message:
                self.answers[message["id"]] = message
                self.news.put(None)
            elif "id" in message:
                self.say({"jsonrpc": "2.0", "id": message["id"], **self.allowed(message)})
            else:
                self.updates.append(message)

    @staticmethod
    def allowed(message):
        if message["method"] != "session/request_permission":
            return {"error": {"code": -32601, "message": "this editor cannot do that"}}
        options = message["params"]["options"]
        chosen = next((option for option in options if option["kind"].startswith("allow")), options[0])
        return {"result": {"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}}}

    def say(self, message):
        line = json.dumps(message).encode() + b"\n"
        with self.lock:
            if not str(message.get("method", "")).startswith("_oxundo/"):
                self.said += line
            self.process.stdin.write(line)
            self.process.stdin.flush()

    def request(self, method, params):
        self.ids += 1
        self.say({"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params})
        return self.ids

    def answer(self, number):
        end = time.monotonic() + LIMIT
        while number not in self.answers:
            assert self.process.poll() is None and time.monotonic() < end, (
                f"request {number} is answered; {self.stderr()}")
            try:
                self.news.get(timeout=1)
            except queue.Empty:
                pass
        return self.answers[number]

    def ask(self, method, params):
        answer = self.answer(self.request(method, params))
        assert "result" in answer, f"{method}: {answer}\n{self.stderr()}"
        return answer["result"]

    def stderr(self):
        return (self.world.base / "stderr").read_text(errors="replace")[-2000:]

    def begin(self):
        """Begins a session."""
        about = self.ask("initialize", {"protocolVersion": 1, "clientInfo": {"name": "test", "version": "1"},
                                        "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}}})
        self.methods = about["agentCapabilities"]["_meta"]["oxundo"]["methods"]
        wanted = {"cwd": str(self.world.repo), "mcpServers": []}
        answer = self.answer(self.request("session/new", wanted))
        for method in about.get("authMethods", []):
            if "result" in answer:
                break
            self.answer(self.request("authenticate", {"methodId": method["id"]}))
            answer = self.answer(self.request("session/new", wanted))
        assert "result" in answer, f"session/new: {answer}\n{self.stderr()}"
        self.session = answer["result"]["sessionId"]

    def prompt(self, text):
        return self.request("session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait(15)
        self.errors.close()

    def compare(self):
        """What went through is what came, but for the one line."""
        key = re.compile(rb'("_meta":\{)?"oxundo":\{"methods":\[[^]]*\]\}(?(1)\}),?')
        said = self.agent_said.read_bytes()
        same(self.agent_heard.read_bytes() == self.said, True, "the agent heard what the client said")
        same(key.sub(b"", self.heard, count=1).count(b"\n"), said.count(b"\n"), "as many lines")
        others = [line for line in said.splitlines(True) if line not in self.heard.splitlines(True)]
        same(len(others), 1, "one line of the agent's is another")
        same(key.sub(b"", self.heard, count=1) in (said, self.heard), True, "and that by one key")


def works(world, command):
    """Two prompts, undone and redone; one that is cancelled; and the streams."""
    client = Client(world, command)
    try:
        client.begin()
        before = world.state()
        name = world.job(world.edit(), world.shell())
        same(client.ask("session/prompt", {"sessionId": client.session, "prompt": [{"type": "text", "text": worded(name)}]})["stopReason"],
             "end_turn", "it is done")
        after = world.state()
        turns = world.turns()
        same([(turn["state"], turn["interrupted"], len(turn["files"])) for turn in turns], [("done", False, 2)], "one turn")
        assert name in turns[0]["message"] and turns[0]["session"] == client.session, turns
        steps = json.loads(world.oxundo("--json", "log", "--steps").stdout)["turns"][0].get("steps") or []
        own = lambda what: client.answer(client.request(f"_oxundo/{what}", {"sessionId": client.session}))
        answer = own("undo")
        assert "result" in answer, answer
        same(world.state(), before, "undone")
        assert "result" in own("redo")
        same(world.state(), after, "redone")
        gate = Gate()
        second = world.job(world.edit(), gate)
        prompt = client.prompt(worded(second))
        world.until(gate.reached.is_set, "the model is asked")
        client.say({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": client.session}})
        gate.open()
        answer = client.answer(prompt)
        last = world.turns()[-1]
        cut = answer.get("result", {}).get("stopReason") != "end_turn"
        same((last["state"], last["interrupted"]), ("done", cut), f"it was cancelled: {answer}")
        world.oxundo("undo")
        same(world.state(), after, "what was cancelled is undone")
        client.close()
        heard = client.said == client.agent_heard.read_bytes()
        same(heard, True, "the agent heard what the client said")
        own_answers = [line for line in client.heard.splitlines(True) if b'"op":"' in line]
        without = b"".join(line for line in client.heard.splitlines(True) if line not in own_answers)
        client.heard = without
        client.compare()
        if os.environ.get("OXUNDO_STORY"):
            print("\n".join(line.decode()[:600] for line in client.heard.splitlines() if b"tool_call" in line))
        return f"{len(steps)} steps: {', '.join(step['tool'] for step in steps)}; said at the cancellation: " + str(
            answer.get("result", {}).get("stopReason") or answer.get("error", {}).get("message"))
    finally:
        if client.process.poll() is None:
            client.close()


def main():
    wanted, failed = sys.argv[1:], 0
    for agent in AGENTS:
        ways = SPEAKS.get(agent.name, [])
        if not ways or (wanted and agent.name not in wanted):
            continue
        command = next((way for way in ways if shutil.which(way[0])), None)
        if not command:
            print(f"{agent.name}: skipped, {ways[0][0]} is not installed")
            continue
        world = World(agent)
        try:
            world.prepare()
            print(f"{' '.join(command)}: ok, {works(world, command)}", flush=True)
        except Skip as reason:
            print(f"{' '.join(command)}: skipped, {reason}")
        except Exception:
            failed += 1
            print(f"{' '.join(command)}: FAILED\n{traceback.format_exc(limit=-3)}", flush=True)
        finally:
            world.close()
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
