"""What is done with each agent, written once. A scenario is a function of a world, and the faults with which it must fail."""

import json
import time
from pathlib import Path

from agents import write
from mock import Gate, Tool
from world import SETTLING, Skip, error, prompt, same, same_files

SCENARIOS = []


def scenario(name, *faults):
    def add(function):
        SCENARIOS.append((name, faults, function))
        return function
    return add


def needs_hooks_headless(world):
    if world.agent.headless_hooks != "yes":
        raise Skip(world.agent.headless_hooks)


# One prompt, and the agent ends

@scenario("headless in run", "no run", "one byte")
def headless_in_run(world):
    world.user_edits()
    before = world.state()
    world.headless(world.edit(), world.shell(), wrapped=True)
    world.check_turns([None], hooked=False)
    world.check_undo([(before, world.state())])


@scenario("headless with hooks", "no hooks", "no calls")
def headless_with_hooks(world):
    needs_hooks_headless(world)
    world.set_up_hooks()
    world.user_edits()
    before = world.state()
    job = world.headless(world.edit(), world.shell())
    world.settled(1)
    world.check_turns([job])
    world.check_calls(world.turns()[0], "edit", "shell")
    world.check_undo([(before, world.state())])


@scenario("headless in run with hooks", "no hooks")
def headless_in_run_with_hooks(world):
    needs_hooks_headless(world)
    world.set_up_hooks()
    before = world.state()
    job = world.headless(world.edit(), world.shell(), wrapped=True)
    world.settled(1)
    world.check_turns([job])
    world.check_undo([(before, world.state())])


@scenario("headless in a subdirectory", "no run")
def headless_in_a_subdirectory(world):
    before = world.state()
    world.headless(world.shell("sub/b.txt"), world.shell(), wrapped=True, cwd=world.repo / "sub")
    world.check_turns([None], hooked=False)
    world.check_undo([(before, world.state())])


@scenario("a killed beginning", "no hooks", "no calls", "no kill")
def killed_beginning(world):
    """Its turn begins with the first call of a tool, before that changes anything."""
    needs_hooks_headless(world)
    world.set_up_hooks()
    world.user_edits()
    before = world.state()
    world.kill_next_hook()
    job = world.headless(world.edit(), world.shell())
    world.settled(1)
    assert "begun late, and is partial" in world.warned(), f"it is told of: {world.warned()}"
    world.check_turns([job])
    same(world.turns()[0]["partial"], True, "it is partial")
    world.check_calls(world.turns()[0], "edit", "shell")
    world.check_undo([(before, world.state())])


@scenario("a killed beginning, and no sign of the work", "no kill")
def killed_beginning_without_calls(world):
    """Nothing shows whose it is: it is kept, and told of."""
    needs_hooks_headless(world)
    world.env["LISTENER_FAULT"] = "no calls"
    world.set_up_hooks()
    world.kill_next_hook()
    world.headless(world.edit(), world.shell())
    after = world.state()
    same(world.turns(), [], "there is no turn")
    assert "the prompt was not recorded: what it changed counts as yours" in world.warned(), f"it is told of: {world.warned()}"
    undo = world.oxundo("undo", check=False)
    assert undo.returncode and "the prompt was not recorded" in undo.stderr, f"there is nothing to undo: {undo.stderr}"
    same(world.state(), after, "all of it stays")


# With a screen

def three_prompts(world, wrapped):
    world.set_up_hooks()
    world.user_edits()
    steps, jobs = [], []
    # A run begins its first turn at once.
    at_start = world.state()
    session = world.session(wrapped)
    for number, work in enumerate(([world.edit()], [world.shell()], []), 1):
        if number == 2 and world.agent.tells_beginning:
            world.user_edits()
        before = at_start if number == 1 else world.state()
        if world.fault == "late user" and number == 2:
            gate = Gate()
            job = session.say(*work, gate)
            assert gate.reached.wait(60)
            world.user_edits()
            gate.open()
            session.wait(job)
        else:
            job = session.prompt(*work)
        # A prompt that changes nothing is no turn.
        if work:
            jobs.append(job)
            world.settled(len(jobs))
            steps.append((before, world.state()))
        else:
            world.settled(len(jobs))
            same_files(world.files(), before[0], "nothing was done")
    session.close()
    world.settled(len(jobs))
    world.check_turns(jobs)
    for turn, role in zip(world.turns(), ("edit", "shell")):
        world.check_calls(turn, role)
    world.check_undo(steps)


@scenario("three prompts", "no hooks", "no calls", "late user", "one byte")
def three_prompts_with_hooks(world):
    if world.agent.only_in_run:
        raise Skip("its hooks are heard inside 'oxundo run' only")
    three_prompts(world, False)


@scenario("three prompts in run", "no hooks")
def three_prompts_in_run(world):
    three_prompts(world, True)


@scenario("escape", "no hooks")
def escape(world):
    world.set_up_hooks()
    steps = []
    session = world.session()

    def around(prompt):
        before = world.state()
        job = prompt()
        steps.append((before, world.state()))
        return job

    def cut_off():
        gate = Gate()
        job = session.say(world.shell(), gate)
        assert gate.reached.wait(60), "it is at work"
        session.interrupt()
        gate.open()
        if world.agent.tells_interruption != "later":
            world.settled(2)
        return job

    def finished(number):
        job = session.prompt(world.shell())
        world.settled(number)
        return job

    jobs = [around(lambda: finished(1)), around(cut_off)]
    jobs.append(around(lambda: finished(3)))
    session.close()
    world.settled(3)
    world.check_turns(jobs, interrupted=[2])
    # What git has after the second one is seen with the third.
    first, second, third = steps
    steps[1] = (second[0], third[0] if world.agent.tells_interruption != "later" else None)
    check_undo_with_gap(world, steps)


def check_undo_with_gap(world, steps):
    """As `check_undo`, where the state after a turn was not seen by git when it was there."""
    for number, (before, _) in reversed(list(enumerate(steps, 1))):
        world.oxundo("undo")
        files, git = world.state()
        same_files(files, before[0], f"turn {number} is undone")
        if number == 1 or steps[number - 2][1] is not None:
            same(git, before[1], f"what git has when turn {number} is undone")
    for number, (_, after) in enumerate(steps, 1):
        world.oxundo("redo")
        files, git = world.state()
        wanted = after or steps[number][0]
        same_files(files, wanted[0], f"turn {number} is redone")
        if after:
            same(git, after[1], f"what git has when turn {number} is redone")


@scenario("sub-agent", "no hooks")
def sub_agent(world):
    world.set_up_hooks()
    session = world.session()
    before = world.state()
    gate = Gate()
    job = session.say(world.task(world.shell(), world.shell("sub/b.txt")), gate, world.shell())
    # One that does not wait for it is not done before it.
    world.until(lambda: "agent-" in (world.repo / "sub/b.txt").read_text(), "the sub-agent's work")
    time.sleep(1)
    gate.open()
    session.wait(job)
    world.settled(1)
    session.close()
    world.settled(1)
    world.check_turns([job])
    world.check_calls(world.turns()[0], "task", "shell", "shell", "shell")
    world.check_undo([(before, world.state())])


@scenario("sub-agent in the background", "no hooks", "no list")
def sub_agent_in_the_background(world):
    if world.fault == "no list" and world.agent.background != "listed":
        raise Skip("it lists nothing")
    world.set_up_hooks()
    session = world.session()
    before = world.state()
    gate = Gate()
    job = session.prompt(world.task(gate, world.shell("sub/b.txt")), world.shell())
    assert gate.reached.wait(60), "the sub-agent is at work"
    # It has said that it is done, and what it has started is not.
    world.until(world.has_told_an_end, "a hook tells of the end", 20)
    gate.open()
    world.until(lambda: "agent-" in (world.repo / "sub/b.txt").read_text(), "the sub-agent's work")
    if world.agent.background == "listed":
        world.settled(1)
        session.close()
        world.settled(1)
        world.check_turns([job])
        world.check_undo([(before, world.state())])
        return
    # Its calls tell of it: a turn of its own. Where nothing tells of its end, that is the session's, or the next prompt.
    if world.agent.background == "told":
        world.settled(2)
    else:
        world.until(lambda: [turn["state"] for turn in world.turns()] == ["done", "open"], "a turn of its own", SETTLING)
        time.sleep(2)
    session.close()
    world.settled(2)
    world.check_turns([job, None], interrupted=[] if world.agent.background == "told" else [2])
    world.check_calls(world.turns()[1], "shell")
    after = world.state()
    for _ in range(2):
        world.oxundo("undo")
    same(world.state(), before, "both are undone")
    for _ in range(2):
        world.oxundo("redo")
    same(world.state(), after, "both are redone")


@scenario("sub-agent in a worktree of its own", "no hooks")
def sub_agent_apart(world):
    if "task apart" not in world.agent.tools:
        raise Skip("it has no sub-agents in worktrees of their own")
    world.set_up_hooks()
    session = world.session()
    before = world.state()
    line = world.token("agent")
    apart = Tool("task apart", prompt(world.job(Tool("shell", f"echo {line} >> a.txt"))))
    job = session.prompt(apart, world.shell())
    world.settled(1)
    session.close()
    world.settled(1)
    assert not world.is_there(line), "it is at work in another worktree"
    (place,) = world.worktrees()
    same(world.turns_of(place), [("done", prompt(job))], "it is a turn there")
    wrote = (place / "a.txt").read_bytes()
    assert line.encode() in wrote, f"it has done its work there: {wrote}"
    world.oxundo("undo", cwd=place)
    same((place / "a.txt").read_bytes(), b"one\n", "it is undone there")
    world.oxundo("redo", cwd=place)
    same((place / "a.txt").read_bytes(), wrote, "it is redone there")
    world.check_turns([job])
    world.check_undo([(before, world.state())])
    same((place / "a.txt").read_bytes(), wrote, "what its agent's undo and redo leave alone")


@scenario("another hook makes it go on", "no hooks")
def goes_on(world):
    if not world.agent.goes_on:
        raise Skip("no hook makes it go on")
    world.set_up_hooks()
    second = world.job(world.shell("sub/b.txt"))
    script = world.base / "go-on"
    once = world.base / "went-on"
    script.write_text(f'#!/bin/sh\n[ -e "{once}" ] && exit 0\n: >"{once}"\n'
                      f'echo \'{{"decision": "block", "reason": "please do {second}"}}\'\n')
    script.chmod(0o755)
    path, settings = world.agent.goes_on(str(script))
    if path.startswith("home:"):
        merge(world.home / path[5:], settings)
    else:
        merge(world.repo / path, settings)
        world.commit("theirs")
    steps = []
    session = world.session(wrapped=True)
    before = world.state()
    first = session.prompt(world.shell())
    session.wait(second)
    world.settled(2)
    session.close()
    world.settled(2)
    after = world.state()
    world.check_turns([first, None])
    for _ in range(2):
        world.oxundo("undo")
    same(world.state(), before, "both are undone")
    for _ in range(2):
        world.oxundo("redo")
    same(world.state(), after, "both are redone")


def merge(path, settings):
    there = json.loads(path.read_text()) if path.exists() else {}
    there.setdefault("hooks", {}).update(settings.pop("hooks"))
    write(path, there | settings)


@scenario("status and checkpoint meanwhile", "no hooks", "undo instead")
def status_and_checkpoint_meanwhile(world):
    if "text" in world.agent.tools:
        raise Skip("its work is one step")
    world.set_up_hooks()
    before = world.state()
    session = world.session()
    gate = Gate()
    job = session.say(world.shell(), gate, world.shell("sub/b.txt"))
    assert gate.reached.wait(60), "it is at work"
    if world.fault == "undo instead":
        world.oxundo("undo")
    for command in ("status", "checkpoint", "log"):
        world.oxundo(command)
    same([turn["state"] for turn in world.turns()], ["open"], "the turn is open")
    gate.open()
    session.wait(job)
    world.settled(1)
    session.close()
    world.check_turns([job])
    world.check_undo([(before, world.state())])


@scenario("undo meanwhile", "no hooks")
def undo_meanwhile(world):
    if "text" in world.agent.tools:
        raise Skip("its work is one step")
    world.set_up_hooks()
    session = world.session()
    zero = world.state()
    first = session.prompt(world.shell())
    world.settled(1)
    before = world.state()
    gate = Gate()
    job = session.say(world.shell(), gate, world.shell("sub/b.txt"))
    assert gate.reached.wait(60), "it is at work"
    world.oxundo("undo")
    same(world.state(), before, "the half that was done is undone")
    gate.open()
    session.wait(job)
    world.settled(2)
    session.close()
    world.check_turns([first, None])
    world.check_undo([(zero, before), (before, world.state())])


@scenario("undo in a tool call", "no hooks", "no calls")
def undo_in_a_tool_call(world):
    world.set_up_hooks()
    line, step = world.waiting_shell()
    session = world.session()
    zero = world.state()
    first = session.prompt(world.shell())
    world.settled(1)
    before = world.state()
    job = session.say(step, world.shell("sub/b.txt"))
    world.until(lambda: world.is_there(line), "the command is at work")
    for seconds in (0, 11):
        # When the call is that old it is in flight since it has a process.
        time.sleep(seconds)
        for command in ("undo", "redo", "squash"):
            world.refused("busy", command)
    world.let_go()
    session.wait(job)
    world.settled(2)
    session.close()
    world.check_turns([first, job])
    world.check_calls(world.turns()[1], "shell", "shell")
    world.check_undo([(zero, before), (before, world.state())])


def escape_in_a_tool_call(world, age):
    world.set_up_hooks()
    line, step = world.waiting_shell()
    session = world.session()
    zero = world.state()
    first = session.prompt(world.shell())
    world.settled(1)
    before = world.state()
    session.say(step)
    world.until(lambda: world.is_there(line), "the command is at work")
    began = time.monotonic()
    time.sleep(age)
    session.escape()
    # It ends its command, and tells of it, as fast as it can; where it does not tell, the call must be ten seconds old.
    until = 3 if age > 10 or world.agent.tells_interruption != "later" else began + 12 - time.monotonic()
    refusals = []

    def undone():
        done = world.oxundo("--json", "undo", check=False)
        if done.returncode:
            refusals.append(done.stdout)
            same((done.returncode, error(done.stdout)), (3, "busy"), "undo is refused")
        return not done.returncode
    try:
        world.until(undone, "", until)
    except AssertionError:
        raise AssertionError(f"undo works after {until:.1f} s: {refusals[-1]}") from None
    same(world.state(), before, "what was done before Escape is undone")
    time.sleep(2)
    same(world.state(), before, "and stays so")
    world.oxundo("redo")
    assert world.is_there(line), "it is redone"
    world.oxundo("undo")
    same(world.state(), before, "it is undone again")
    if world.agent.clear:
        session.type(world.agent.clear)
    session.prompt(world.shell("sub/b.txt"))
    world.settled(2)
    session.close()
    world.check_turns([first, None])
    world.check_undo([(zero, before), (before, world.state())])


@scenario("escape in a tool call", "no hooks", "one byte")
def escape_in_an_old_call(world):
    escape_in_a_tool_call(world, 11)


@scenario("escape in a young tool call", "no hooks", "one byte")
def escape_in_a_young_call(world):
    escape_in_a_tool_call(world, 1)


# What the agent itself types

def its_own_undo(world, give, hooked):
    step, came = world.types("--json undo")
    zero = world.state()
    first = give(world.shell())
    world.settled(1)
    before = world.state()
    job = give(world.shell(), step, world.shell("sub/b.txt"))
    world.settled(2)
    code, said = came()
    same((code, error(said)), (3, "agent"), "its own undo is refused")
    for session in world.sessions:
        session.close()
    world.check_turns([first, job], hooked=hooked)
    world.check_undo([(zero, before), (before, world.state())])


@scenario("its own undo", "no hooks")
def its_own_undo_with_a_screen(world):
    world.set_up_hooks()
    its_own_undo(world, world.session().prompt, True)


@scenario("its own undo, headless", "no hooks")
def its_own_undo_headless(world):
    needs_hooks_headless(world)
    world.set_up_hooks()
    its_own_undo(world, world.headless, True)


@scenario("its own undo, headless in run", "no run")
def its_own_undo_in_run(world):
    its_own_undo(world, lambda *steps: world.headless(*steps, wrapped=True), False)


def its_own_restore(world, give, hooked):
    world.user_edits()
    checkpoint, came_of_checkpoint = world.types("checkpoint mine")
    restore, came_of_restore = world.types("restore mine -- sub")
    before = world.state()
    wanted = (world.repo / "sub/b.txt").read_text()
    job = give(world.shell(), checkpoint, world.shell(), world.shell("sub/b.txt"), restore, world.shell())
    world.settled(1)
    for came in (came_of_checkpoint, came_of_restore):
        code, said = came()
        same(code, 0, f"it can: {said}")
    same((world.repo / "sub/b.txt").read_text(), wanted, "it is restored")
    same((world.repo / "a.txt").read_text().count("agent-"), 3, "what it did not restore stays")
    for session in world.sessions:
        session.close()
    world.check_turns([job], hooked=hooked)
    world.check_undo([(before, world.state())])


@scenario("its own checkpoint and restore", "no hooks")
def its_own_restore_with_a_screen(world):
    world.set_up_hooks()
    its_own_restore(world, world.session().prompt, True)


@scenario("its own checkpoint and restore, headless", "no hooks")
def its_own_restore_headless(world):
    needs_hooks_headless(world)
    world.set_up_hooks()
    its_own_restore(world, world.headless, True)


@scenario("its own checkpoint and restore, headless in run", "no run")
def its_own_restore_in_run(world):
    its_own_restore(world, lambda *steps: world.headless(*steps, wrapped=True), False)


@scenario("a subdirectory", "no hooks")
def subdirectory(world):
    world.set_up_hooks(*world.agent.init_for_subdirectory)
    session = world.session(cwd=world.repo / "sub")
    before = world.state()
    job = session.prompt(world.shell("sub/b.txt"), world.shell())
    world.settled(1)
    session.close()
    world.check_turns([job])
    world.check_undo([(before, world.state())])


@scenario("two sessions in turn", "no hooks", "one session")
def two_sessions_in_turn(world):
    if world.agent.only_in_run:
        raise Skip("it tells of no session")
    world.set_up_hooks()
    one, other = world.session(), world.session()
    steps, jobs = [], []
    for session in (one, other, one):
        before = world.state()
        jobs.append(session.prompt(world.shell()))
        world.settled(len(jobs))
        steps.append((before, world.state()))
    one.close()
    other.close()
    world.check_turns(jobs)
    sessions = [turn["session"] for turn in world.turns()]
    assert sessions[0] == sessions[2] != sessions[1], f"two sessions: {sessions}"
    world.check_undo(steps)


@scenario("two sessions at once", "no hooks", "one session")
def two_sessions_at_once(world):
    if world.agent.only_in_run:
        raise Skip("it tells of no session")
    world.set_up_hooks()
    one, other = world.session(), world.session()
    before = world.state()
    gate = Gate()
    job = one.say(world.shell(), gate, world.shell("sub/b.txt"))
    assert gate.reached.wait(60), "the first one is at work"
    other.prompt(world.shell())
    gate.open()
    one.wait(job)
    world.settled(1)
    one.close()
    other.close()
    world.check_turns([None], shared=[1])
    world.check_undo([(before, world.state())])


# The settings

@scenario("init, doctor, uninstall", "no hooks", "one byte in settings")
def settings(world):
    agent = world.agent
    name = agent.name
    if world.fault == "one byte in settings" and not agent.settings:
        raise Skip("its file is oxundo's alone")
    for theirs in (None, agent.theirs) if agent.settings else (None,):
        if theirs is not None:
            write(world.repo / agent.settings, theirs)
        before = world.files()
        world.oxundo("init", name)
        with_hooks = world.files()
        assert with_hooks != before, "init writes something"
        world.oxundo("init", name)
        same_files(world.files(), with_hooks, "a second init changes nothing")
    nothing = json.loads(world.oxundo("--json", "undo", check=False).stdout)["error"]
    silent = [(hooks["agent"], hooks["last_fired"]) for hooks in nothing["hooks"]]
    same((nothing["code"], silent), ("nothing", [(name, None)]), "undo knows that its hooks were never heard")
    fired = use_it_once(world)
    check_doctor(world)
    doctor = world.doctor()
    assert doctor["installed"] and doctor["hooks"], f"doctor knows it: {doctor}"
    if fired:
        assert doctor["last_fired"], f"its hooks have fired: {doctor}"
    if world.fault == "one byte in settings":
        place = Path(doctor["hooks"][0])
        place = place if place.is_file() else next(path for path in place.rglob("*") if path.is_file())
        place.write_text(place.read_text() + " ")
    world.oxundo("uninstall", name)
    work = {path: entry for path, entry in world.files().items() if path in ("a.txt",) or path.startswith("made")}
    same_files(world.files(), before | work, "uninstall leaves what was there")
    same(world.doctor()["hooks"], [], "doctor knows that they are gone")


def check_doctor(world):
    """Nothing is wrong, but where it would be started in a directory from which it does not see its hooks."""
    same(world.findings(), [], "doctor finds nothing")
    found = world.findings(cwd=world.repo / "sub")
    if world.agent.init_for_subdirectory:
        said = json.dumps(found)
        assert len(found) == 1 and "'sub'" in said and f"oxundo init {world.agent.name} --user" in said, f"it names it: {found}"
    else:
        same(found, [], "doctor finds nothing in a subdirectory")


def use_it_once(world):
    """A prompt, so that its hooks fire; whether they should have."""
    if world.agent.headless_hooks == "yes":
        world.headless(world.shell())
        return True
    if world.agent.no_screen:
        return False
    session = world.session()
    session.prompt(world.shell())
    world.settled(1)
    session.close()
    return True
