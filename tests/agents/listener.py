"""Stands between an agent's hooks and oxundo: keeps what they say, and hands it on, as it is or with a fault."""

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

FAULT, HEARD = os.environ["LISTENER_FAULT"], os.environ["LISTENER_HEARD"]
NAMES = ("hook_event_name", "hookEventName", "hookName")
SESSIONS = ("session_id", "sessionId", "conversation_id")


def is_call(event):
    """Whether it is an event of a tool's call: PreToolUse, AfterTool, or a plugin's 'call'."""
    return event and (event.startswith("call") or "tool" in event.lower())


def with_fault(payload):
    """What is handed on: nothing where the hook is not to be heard."""
    if FAULT == "no hooks":
        return None
    if FAULT == "one session":
        for key in SESSIONS:
            if key in payload:
                payload[key] = "the-only-one"
        if "session_context" in payload:
            payload["session_context"]["root_session_id"] = "the-only-one"
    if FAULT == "no list":
        payload.pop("background_tasks", None)
    if FAULT == "no calls" and any(is_call(name) for name in (sys.argv[-1], *map(payload.get, NAMES))):
        return None
    return payload


def is_to_be_killed():
    """Whether a scenario has said so of the next hook, which nothing else says."""
    try:
        (Path(HEARD).parent / "kill").unlink()
        return True
    except FileNotFoundError:
        return False


def kill_in_the_middle(args, data):
    """As an agent does with a hook that takes too long: it waits for a lock that another one holds."""
    place = Path(HEARD).parent / "repo/.git/oxundo"
    place.mkdir(exist_ok=True)
    with open(place / "lock", "a", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        hook = subprocess.Popen([os.environ["LISTENER_OXUNDO"], *args], stdin=subprocess.PIPE)
        hook.stdin.write(data)
        hook.stdin.close()
        attempt, end = place / f"attempt-{hook.pid}", time.monotonic() + 5
        while not (attempt.exists() and attempt.read_text()) and time.monotonic() < end:
            time.sleep(0.01)
        hook.kill()
        hook.wait()


def main():
    args = sys.argv[1:]
    if args[:1] == ["hook"]:
        at_terminal = sys.stdin.isatty()
        data = b"" if at_terminal else sys.stdin.buffer.read()
        with open(f"{HEARD}/{time.time_ns()}-{'-'.join(args[1:])}.json", "wb") as file:
            file.write(data)
        try:
            payload = with_fault(json.loads(data))
        except ValueError:
            payload = None if FAULT == "no hooks" else data.decode()
        if payload is None:
            return
        if is_to_be_killed():
            kill_in_the_middle(args, data)
            return
        if at_terminal:
            os.execv(os.environ["LISTENER_OXUNDO"], ["oxundo", *args])
        handed_on = data if not FAULT else (payload if isinstance(payload, str) else json.dumps(payload)).encode()
        file = os.memfd_create("payload")
        os.write(file, handed_on)
        os.lseek(file, 0, os.SEEK_SET)
        os.dup2(file, 0)
    os.execv(os.environ["LISTENER_OXUNDO"], ["oxundo", *args])


main()
