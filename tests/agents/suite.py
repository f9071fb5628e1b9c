"""Real agents against a model on loopback: every scenario with every agent that is installed.

Run by `tests/agents/run`. `--prove` runs the scenarios with their faults instead: each of them must fail.
"""

import os
import re
import shutil
import subprocess
import sys
import time
import traceback

from agents import AGENTS
from scenarios import SCENARIOS
from world import Skip, World


def attempt(agent, name, function, fault=None):
    """Runs a scenario; gives what came of it: 'ok', 'skipped' or 'FAILED', and why."""
    if reason := agent.cannot.get(name):
        return "skipped", reason
    world = World(agent, fault)
    world.scenario = name
    try:
        world.prepare()
        function(world)
        return "ok", ""
    except Skip as reason:
        return "skipped", str(reason)
    except Exception as error:
        if fault and isinstance(error, AssertionError):
            return "FAILED", str(error).splitlines()[0]
        heard = f"\nthe hooks told:\n{world.story()}" if os.environ.get("OXUNDO_STORY") else ""
        return "FAILED", traceback.format_exc(limit=-3) + heard
    finally:
        world.close()


def version(agent):
    told = subprocess.run([agent.command, "--version"], capture_output=True, text=True, timeout=60)
    lines = (told.stdout.strip() or told.stderr.strip()).splitlines()
    return lines[0] if lines else "?"


def main():
    words = sys.argv[1:]
    if words == ["--packages"]:
        print("npm node")
        print("npm @agentclientprotocol/claude-agent-acp")
        print("npm @agentclientprotocol/codex-acp")
        print("pip stepback")
        for row in AGENTS:
            print(*row.install)
        return 0
    prove = "--prove" in words
    wanted = [word for word in words if not word.startswith("--")]
    only = os.environ.get("OXUNDO_CASE", "")
    counts = {"ok": 0, "FAILED": 0, "skipped": 0}
    for agent in AGENTS:
        if wanted and agent.name not in wanted:
            continue
        if not shutil.which(agent.command):
            print(f"{agent.name}: skipped, it is not installed")
            counts["skipped"] += 1
            continue
        print(f"{agent.name}: {version(agent)}", flush=True)
        for name, faults, function in SCENARIOS:
            if not re.search(only, name):
                continue
            for fault in faults if prove else (None,):
                begin = time.monotonic()
                came, why = attempt(agent, name, function, fault)
                if fault and came != "skipped":
                    came = "ok" if came == "FAILED" else "FAILED"
                counts[came] += 1
                what = f"{name}, with {fault!r}: {why or 'it passes'}" if fault else name + (f": {why}" if came != "ok" else "")
                print(f"  {came:7} {what} ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{counts['ok']} passed, {counts['FAILED']} failed, {counts['skipped']} skipped")
    return counts["FAILED"] > 0


if __name__ == "__main__":
    sys.exit(main())
