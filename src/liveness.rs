//! Whether the agent that told of a session is still there. Its hooks come and go, so no lock
//! can tell: the process that runs them is remembered instead.

use crate::model::session::{Part, Process};

/// What stands between an agent and its hook, and is gone when the hook is.
const SHELLS: [&str; 8] = ["sh", "dash", "bash", "zsh", "fish", "ksh", "ash", "busybox"];

/// How many shells may stand between.
const DEEPEST: usize = 6;

/// How far up an agent is looked for.
const HIGHEST: usize = 64;

/// The process that called this one: the nearest that is no shell.
pub fn caller() -> Option<Process> {
    let mut pid = parent_id()?;
    for _ in 0..DEEPEST {
        let seen = look(pid)?;
        if !SHELLS.contains(&seen.name.trim_start_matches('-')) {
            return Some(Process { pid, started: seen.started, space: space() });
        }
        pid = seen.parent;
    }
    None
}

/// Whether a session's process may still be at work. What cannot be looked at may.
pub fn is_alive(part: &Part) -> bool {
    let Some(process) = &part.process else { return true };
    process.space != space() || look(process.pid).is_some_and(|seen| seen.started == process.started)
}

/// Whether a session's process is one of those that led to this one.
pub fn is_above(part: &Part) -> bool {
    let Some(process) = part.process.as_ref().filter(|process| process.space == space()) else { return false };
    let mut at = parent_id();
    for _ in 0..HIGHEST {
        let Some((pid, seen)) = at.and_then(|pid| Some((pid, look(pid)?))) else { return false };
        if pid == process.pid {
            return seen.started == process.started;
        }
        at = Some(seen.parent);
    }
    false
}

fn parent_id() -> Option<u32> {
    let parent = rustix::process::getppid()?;
    u32::try_from(parent.as_raw_nonzero().get()).ok()
}

struct Seen {
    name: String,
    parent: u32,
    started: String,
}

/// Where process ids count: those of another container are not to be compared.
#[cfg(target_os = "linux")]
fn space() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid");
    link.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn look(pid: u32) -> Option<Seen> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, name) = text.split_once('(')?;
    // A program's name may have parentheses itself.
    let (name, rest) = name.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let dead = matches!(*fields.first()?, "Z" | "X");
    let seen =
        Seen { name: name.to_owned(), parent: fields.get(1)?.parse().ok()?, started: (*fields.get(19)?).to_owned() };
    (!dead).then_some(seen)
}

#[cfg(not(target_os = "linux"))]
fn space() -> String {
    String::new()
}

#[cfg(not(target_os = "linux"))]
fn look(pid: u32) -> Option<Seen> {
    let mut ps = std::process::Command::new("ps");
    ps.env("LC_ALL", "C").args(["-o", "ppid=,lstart=,comm=", "-p", &pid.to_string()]);
    let output = ps.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let words: Vec<&str> = text.split_whitespace().collect();
    // The parent, five words of time, and the program.
    let (parent, started, program) = (words.first()?, words.get(1..6)?, words.get(6)?);
    let name = program.rsplit('/').next().unwrap_or(program);
    Some(Seen { name: name.to_owned(), parent: parent.parse().ok()?, started: started.join(" ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_alive_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("start a process");
        let seen = look(child.id()).expect("it is there");
        let process = Process { pid: child.id(), started: seen.started, space: space() };
        let mut part = Part { process: Some(process.clone()), ..Part::default() };
        assert!(is_alive(&part));
        child.kill().expect("kill it");
        child.wait().expect("it is gone");
        assert!(!is_alive(&part));
        let own = look(std::process::id()).expect("this process is there");
        assert_ne!(own.started, "", "its start is known");
        part.process = Some(Process { pid: std::process::id(), ..process.clone() });
        assert!(!is_alive(&part), "another process with the same number is not the same");
        part.process = Some(Process { space: "elsewhere".to_owned(), ..process });
        assert!(is_alive(&part), "what cannot be looked at may be alive");
    }

    #[test]
    fn the_caller_is_no_shell() {
        let caller = caller().expect("something runs this test");
        let name = look(caller.pid).expect("it is there").name;
        assert!(!SHELLS.contains(&name.as_str()), "{name}");
    }
}
