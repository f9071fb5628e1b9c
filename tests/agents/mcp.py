"""Real agents that ask `oxundo mcp` for a plan, and have it carried out where they may, against a model on loopback.

Run by `tests/agents/run --mcp [AGENT…]`. The model calls the tools by the names that the agent itself has given it.
"""

import json
import re
import shutil
import sys
import traceback

import mock
from agents import AGENTS
from mock import Tool
from world import OXUNDO, World, prompt, same

# How each is told of the server where 'oxundo init --mcp' does not write it, and what it is started with.
TOLD = {"codex": lambda world: open(world.home / ".codex/config.toml", "a", encoding="utf-8").write(
    f'[mcp_servers.oxundo]\ncommand = "{OXUNDO}"\nargs = ["mcp"]\n')}
STARTED = {
    "claude": lambda text: ["claude", "--mcp-config", ".mcp.json", "--allowedTools", "mcp__oxundo", "-p", text],
}
WANTED = ("claude", "codex", "gemini", "qwen", "opencode")


def names(request):
    """The names of all tools that an agent tells its model of."""
    return re.findall(r'"name": ?"([^"]*)"', json.dumps(request))


def asks(agent):
    """What the model does: it calls a tool of oxundo's, and takes the plan's id from the last result that has one."""
    seen = {"names": [], "plan": None, "said": ""}
    original = mock.Model.answer

    def answer(self, conversation, has_tools):
        said = original(self, conversation, has_tools)
        if isinstance(said, tuple) and said[0].startswith("oxundo:"):
            tool = said[0].split(":")[1]
            found = next((name for name in seen["names"] if name.endswith(tool) and "oxundo" in name), None)
            if not found or agent.name == "codex":
                # There the server is a namespace.
                found = f"mcp__oxundo/{tool}"
            return found, {"plan": seen["plan"] or "?"} if tool == "apply" else {}
        return said

    def look(request):
        text = json.dumps(request)
        seen["names"] = names(request)
        seen["said"] = text
        if found := re.findall(r'plan[\\]*":\s*[\\]*"([0-9a-f]{16})', text):
            seen["plan"] = found[-1]
    return seen, answer, look


def works(agent):
    world = World(agent)
    seen, answer, look = asks(agent)
    world.model.tools = {**agent.tools, "plan": ("oxundo:plan_undo", dict), "apply": ("oxundo:apply", dict)}
    world.model.answer = answer.__get__(world.model)
    formats = mock.FORMATS
    mock.FORMATS = [(ending, lambda request, says=says: (look(request), says(request))[1], tell) for ending, says, tell in formats]
    try:
        world.prepare()
        world.oxundo("run", "--", "sh", "-c", "echo agent-0 >turn.txt")
        if agent.name in TOLD:
            TOLD[agent.name](world)
        else:
            world.oxundo("init", "--mcp", agent.name)
            world.commit("server")
            world.oxundo("run", "--", "sh", "-c", "echo agent-1 >second.txt")
        start = STARTED.get(agent.name, agent.headless)
        world.run(start(prompt(world.job(Tool("plan"), Tool("apply")))), limit=100)
        plans = json.loads(world.oxundo("--json", "doctor", check=False).stdout)["about"]["plans"]
        assert plans, f"no plan was asked for; the tools were {[name for name in seen['names'] if 'plan' in name or 'oxundo' in name]}"
        same([plan["done"] for plan in plans], [False], "it may plan, and not apply")
        world.git("config", "oxundo.mcp", "full")
        world.run(start(prompt(world.job(Tool("plan"), Tool("apply")))), limit=100)
        plans = json.loads(world.oxundo("--json", "doctor", check=False).stdout)["about"]["plans"]
        done = [plan["done"] for plan in plans]
        assert True in done, f"it is carried out: {plans}"
        same(world.turns()[-1]["state"], "undone", "the turn is undone")
        return f"as {plans[0].get('by')}"
    finally:
        mock.FORMATS = formats
        world.close()


def main():
    wanted, failed = sys.argv[1:], 0
    for agent in AGENTS:
        if agent.name not in (wanted or WANTED):
            continue
        if not shutil.which(agent.command):
            print(f"{agent.name}: skipped, it is not installed")
            continue
        try:
            print(f"{agent.name}: ok, {works(agent)}", flush=True)
        except Exception:
            failed += 1
            print(f"{agent.name}: FAILED\n{traceback.format_exc(limit=-2)}", flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
