//! Whether the agent of a session is still running. Its hooks are short processes, which can hold no lock for it:
//! instead the process that runs them is recorded.

use crate::agents::adapters::adapter;
use crate::git::repo::platform;
use crate::git::repo::platform::ProcessEntry;
use crate::model::session::Descent;
use crate::model::turn::{Participant, Process, Turn};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Programs that an agent runs its hooks with, and that end with the hook.
const SHELLS: [&str; 8] = ["sh", "dash", "bash", "zsh", "fish", "ksh", "ash", "busybox"];

/// Programs that take over the processes that lost their parent.
const REAPERS: [&str; 7] = ["systemd", "init", "launchd", "tini", "dumb-init", "docker-init", "catatonit"];

/// How many of these there may be between an agent and its hook.
const DEEPEST: usize = 6;

/// How far up an agent is looked for.
const HIGHEST: usize = 64;

/// The process that called this one: the nearest that is no shell; none where that is gone.
pub fn caller() -> Option<Process> {
    let mut pid = parent_id()?;
    for _ in 0..DEEPEST {
        let seen = platform::process(pid)?;
        if is_reaper(pid, &seen.name) {
            return None;
        }
        if !SHELLS.contains(&seen.name.trim_start_matches('-')) {
            return Some(Process { pid, started: seen.started, space: platform::process_space() });
        }
        pid = seen.parent;
    }
    None
}

/// Whether a process is no agent's, but the one above all. The first of a container may be an agent: it leads what it has
/// started, as far as the leaders are in the container.
fn is_reaper(pid: u32, name: &str) -> bool {
    let leads = || {
        let leaders = platform::leaders();
        leaders.is_empty() || leaders.contains(&pid)
    };
    REAPERS.contains(&name) || (pid == 1 && !leads())
}

/// Whether a session's process may still be running; true where that cannot be seen.
pub fn is_alive(part: &Participant) -> bool {
    let Some(process) = &part.process else { return true };
    process.space != platform::process_space()
        || platform::process(process.pid).is_some_and(|seen| seen.started == process.started)
}

/// The sessions in a turn that are at work and whose process is alive.
pub fn at_work(turn: &Turn) -> impl Iterator<Item = &Participant> {
    turn.origin.parts.iter().filter(|part| part.at_work && is_alive(part))
}

/// The processes that an agent of this name has started, also those that its calls have left behind in this directory; none where
/// they cannot be seen.
pub fn processes_of(name: &str, agent: Option<&Process>, top: &Path) -> Option<Vec<u32>> {
    let agent = agent.filter(|process| process.space == platform::process_space())?;
    let (mut all, mut orphans) = platform::descendants_and_orphans(agent.pid, is_reaper)?;
    let is_its = left_behind_by(name, agent.pid, top);
    orphans.retain(|id| is_its(*id));
    all.extend(orphans);
    Some(all)
}

/// What a shell starts with `&` has no parent any more when that is over. It is the agent's where it is in its group still, or has
/// what that sets for its calls, and is here: other sessions of the same agent may be at work elsewhere.
fn left_behind_by(name: &str, agent: u32, top: &Path) -> impl Fn(u32) -> bool {
    let variables = adapter(name).map_or(&[][..], |adapter| adapter.call_variables);
    let (group, top) = (platform::group(agent), top.canonicalize().ok());
    move |orphan| {
        let is_here =
            top.as_ref().is_some_and(|top| platform::directory_of(orphan).is_some_and(|at| at.starts_with(top)));
        is_here
            && (group.is_some() && platform::group(orphan) == group
                || platform::has_any_set(orphan, variables) == Some(true))
    }
}

/// Whether a process that an agent did not have before a call may come of that, in this directory. One that is elsewhere is the
/// agent's own, or of a session there; and where the agent sets a variable for what its calls run, so is one without it, as a server
/// or a status line's command. Of what cannot be seen it may.
pub fn may_be_of_call(part: &Participant, process: u32, top: &Path) -> bool {
    let is_elsewhere = |at: PathBuf| top.canonicalize().is_ok_and(|top| !at.starts_with(top));
    if platform::directory_of(process).is_some_and(is_elsewhere) {
        return false;
    }
    let variables = adapter(&part.agent).map_or(&[][..], |adapter| adapter.call_variables);
    // A hook has what it sets, but where all that it starts has it that tells nothing.
    let agent = part.process.as_ref().map(|agent| agent.pid);
    let is_sign = variables.iter().any(|name| is_set(name))
        && agent.is_some_and(|agent| platform::has_any_set(agent, variables) == Some(false));
    !is_sign || platform::has_any_set(process, variables) != Some(false)
}

/// Whether a process was started by one of others, or by one that they have started: a server starts its workers anew. A shell in which
/// an agent runs all its commands starts what these leave.
pub fn is_of_any(process: u32, others: impl Fn(&u32) -> bool) -> bool {
    let mut above = platform::process(process).map(|seen| seen.parent);
    for _ in 0..HIGHEST {
        let Some((at, seen)) = above.and_then(|id| Some((id, platform::process(id)?))) else { return false };
        if others(&at) {
            return !SHELLS.contains(&seen.name.trim_start_matches('-')) || runs_one_thing(at);
        }
        above = Some(seen.parent);
    }
    false
}

/// Whether a shell was started for a command or a script, and not for all that comes.
fn runs_one_thing(shell: u32) -> bool {
    let is_one = |word: &String| match word.strip_prefix('-') {
        Some(option) => !option.starts_with('-') && option.contains('c'),
        None => !word.is_empty(),
    };
    platform::arguments(shell).is_none_or(|words| words.iter().skip(1).any(is_one))
}

/// Of these processes those that are no hook of oxundo's: an agent may have several at once. What runs one is none either, nor what
/// one has started.
pub fn without_hooks(ids: Vec<u32>) -> Vec<u32> {
    let seen: BTreeMap<u32, ProcessEntry> = ids.iter().filter_map(|id| Some((*id, platform::process(*id)?))).collect();
    let is_hook = |id: u32, name: &str| {
        let words = || platform::arguments(id).is_none_or(|words| words.iter().any(|word| word == "hook"));
        is_own_name(name) && words()
    };
    let mut hooks: BTreeSet<u32> =
        seen.iter().filter(|(id, seen)| is_hook(**id, &seen.name)).map(|(id, _)| *id).collect();
    if hooks.is_empty() {
        return ids;
    }
    for _ in 0..DEEPEST {
        let is_below = |seen: &ProcessEntry| hooks.contains(&seen.parent);
        let runs_hooks = |id: u32, name: &str| {
            let mut below = seen.iter().filter(|(_, seen)| seen.parent == id).peekable();
            SHELLS.contains(&name) && below.peek().is_some() && below.all(|(below, _)| hooks.contains(below))
        };
        let more: Vec<u32> =
            seen.iter().filter(|(id, it)| is_below(it) || runs_hooks(**id, &it.name)).map(|(id, _)| *id).collect();
        hooks.extend(more);
    }
    ids.into_iter().filter(|id| !hooks.contains(id)).collect()
}

/// Those that this process has started.
pub fn processes_below() -> Vec<u32> {
    platform::descendants(std::process::id()).unwrap_or_default()
}

/// This process and those above it.
pub fn own_line() -> Vec<u32> {
    let mut line = vec![std::process::id()];
    while let Some(seen) = line.last().and_then(|id| platform::process(*id)).filter(|_| line.len() < HIGHEST) {
        line.push(seen.parent);
    }
    line
}

/// Whether a session's process is an ancestor of this one.
pub fn is_above(part: &Participant) -> bool {
    entry_above(part).is_some()
}

/// Whether a session's process is an ancestor of this one, and not the server alone that has started this one to answer: that
/// tells of its agent's session, and so its process is that session's.
pub fn is_above_server(part: &Participant) -> bool {
    let is_server = |process: &Process| parent_id() == Some(process.pid) && is_own(process.pid);
    is_above(part) && !part.process.as_ref().is_some_and(is_server)
}

/// Whether a process is oxundo's own, also where a packager's wrapper has given it a longer name.
fn is_own(pid: u32) -> bool {
    platform::process(pid).is_some_and(|seen| is_own_name(&seen.name))
}

fn is_own_name(name: &str) -> bool {
    name.contains("oxundo")
}

/// How this command comes about, if the session's process is an ancestor of this one, or has been: a process that outlives
/// the one which has started it has another parent then.
pub fn descent(part: &Participant) -> Option<Descent> {
    let in_call = adapter(&part.agent).is_some_and(|adapter| adapter.call_variables.iter().any(|name| is_set(name)));
    let reads_terminal = std::io::stdin().is_terminal();
    let Some(agent) = entry_above(part) else {
        // What a call set is left to all that it has started: a server of terminals, too, on which the user types.
        let is_cut_off = in_call && !reads_terminal;
        return is_cut_off.then_some(Descent { reads_terminal, has_agents_terminal: false, in_call });
    };
    let own = platform::process(std::process::id());
    let terminal = own.and_then(|own| own.terminal);
    let has_agents_terminal = agent.terminal.is_none() || agent.terminal == terminal;
    Some(Descent { reads_terminal, has_agents_terminal, in_call })
}

/// How this command comes about within a `run`.
pub fn descent_of_run() -> Descent {
    Descent { reads_terminal: std::io::stdin().is_terminal(), has_agents_terminal: true, in_call: false }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// The session's process, if it is above this one, or above those that lead its session and its group: whoever these are,
/// this process comes from them, whichever parent it has now.
fn entry_above(part: &Participant) -> Option<ProcessEntry> {
    let process = part.process.as_ref().filter(|process| process.space == platform::process_space())?;
    parent_id().into_iter().chain(platform::leaders()).find_map(|from| entry_from(from, process))
}

/// The process, if it is this one or above it.
fn entry_from(from: u32, process: &Process) -> Option<ProcessEntry> {
    let mut pid = from;
    for _ in 0..HIGHEST {
        let seen = platform::process(pid)?;
        if pid == process.pid {
            return (seen.started == process.started).then_some(seen);
        }
        pid = seen.parent;
    }
    None
}

fn parent_id() -> Option<u32> {
    u32::try_from(rustix::process::getppid()?.as_raw_nonzero().get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("start a process");
        let seen = platform::process(child.id()).expect("it is there");
        let process = Process { pid: child.id(), started: seen.started, space: platform::process_space() };
        let mut part = Participant { process: Some(process.clone()), ..Participant::default() };
        assert!(is_alive(&part));
        child.kill().expect("kill it");
        child.wait().expect("it is gone");
        assert!(!is_alive(&part));
        let own = platform::process(std::process::id()).expect("this process is there");
        assert_ne!(own.started, "", "its start is known");
        part.process =
            Some(Process { pid: std::process::id(), started: "at another time".to_owned(), ..process.clone() });
        assert!(!is_alive(&part), "another process with the same number is not the same");
        part.process = Some(Process { space: "elsewhere".to_owned(), ..process });
        assert!(is_alive(&part), "what cannot be looked at may be alive");
    }

    #[test]
    fn the_caller_is_no_shell() {
        let caller = caller().expect("something runs this test");
        let name = platform::process(caller.pid).expect("it is there").name;
        assert!(!SHELLS.contains(&name.as_str()), "{name}");
    }
}
