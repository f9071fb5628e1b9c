//! `oxundo hook`: what an agent's own hook calls. It prints nothing on stdout, where the agent
//! would read it, never keeps its agent waiting for long, and never fails as far as the agent
//! can see: what goes wrong is told on stderr and in a log. What it would warn of is in the log alone: nobody reads it
//! there and then but the agent.

mod elsewhere;

use crate::agents::adapters::Adapter;
use crate::agents::payload::HookEvent;
use crate::agents::{adapters, payload, probe, spawn};
use crate::config::{Config, enabled_of_user};
use crate::error::Code;
use crate::error::failure::to_refusal;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::repo::clock::rfc3339_now;
use crate::git::repo::platform;
use crate::git::repo::process::about_to_end;
use crate::git::repo::threads::start;
use crate::git::timeline::Timelines;
use crate::model::bytes::sanitized;
use crate::model::call::ToolUse;
use crate::model::session::Signal;
use crate::ops::checkpoint;
use crate::ops::turn::message_of_prompt;
use crate::ops::turn::missed;
use crate::ops::turn::missed::{Attempt, Missed};
use crate::ops::turn::session::{SignalCall, beside_turn, handle_signal};
use crate::program::args::HookArgs;
use crate::program::cmd::gc::start_if_due;
use crate::program::ui::Ui;
use crate::warning::Warning;
use anyhow::{Context, Result};
use elsewhere::elsewhere;
use rustix::process::{Pid, kill_process};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long the agent may take to write its JSON.
const INPUT_TIME: Duration = Duration::from_secs(5);

/// How much of it is read.
const INPUT_SIZE: u64 = 32 << 20;

/// How long to wait for another oxundo's moment to pass.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long at the end of a session, when the agent itself waits for no more than 1.5 s.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// How long a hook works at most that cannot find out how long it may.
const LONGEST: Duration = Duration::from_secs(28);

/// The name of the state in which a worktree was removed.
const LAST: &str = "before removal";

/// How large the log may grow.
const LOG_SIZE: u64 = 64 << 10;

/// Whether a command line that cannot be read is a hook's.
pub fn is_meant(args: &[OsString]) -> bool {
    let mut words = args.iter().skip(1);
    while let Some(word) = words.next() {
        if word == "-C" || word == "--color" {
            words.next();
        } else if !word.to_string_lossy().starts_with('-') {
            return word == "hook";
        }
    }
    false
}

/// Acts on a hook's call, whatever it is.
pub fn run(directory: Option<&Path>, ui: &Ui, args: &HookArgs) {
    let words: Vec<String> = args.words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let acted = catch_unwind(AssertUnwindSafe(|| act(directory, ui, &words)));
    if let Ok(Err(error)) = acted {
        Ui::complain(&sanitized(&format!("{error:#}")));
    }
}

fn act(directory: Option<&Path>, ui: &Ui, words: &[String]) -> Result<()> {
    let (text, event) = given(words)?;
    // Whatever blocks, also before the settings are known.
    watch(LONGEST, Arc::default(), || ());
    let name = words.first().map_or("", String::as_str);
    if name == "git" {
        let repo = Repo::open(directory.unwrap_or(Path::new(".")))?;
        return Objects::new(&repo).record_pushed(&text);
    }
    anyhow::ensure!(
        adapters::host(name, |_| false, |_| false).is_some(),
        "there are no hooks of '{name}'; known are {}",
        adapters::ADAPTERS.iter().map(|adapter| adapter.name).collect::<Vec<_>>().join(", ")
    );
    let (payload, unread) = read(&text);
    if probe::is_trial(&payload) {
        // It is no agent that asks, and nothing has happened.
        return Ok(Ui::raw(probe::answer(&probe::own()?).as_bytes())?);
    }
    let is_set = |variable: &str| std::env::var_os(variable).is_some_and(|value| !value.is_empty());
    let adapter = adapters::host(name, is_set, |key| payload::has(&payload, key)).context("no such agent")?;
    if let Some(top) = payload::removed_worktree(adapter, event, &payload) {
        return keep_last(adapter, event, &top);
    }
    let variable = |name: Option<&str>| std::env::var(name?).ok().filter(|value| !value.is_empty());
    let heard = payload::parse(adapter, event, &payload, variable(adapter.session_variable));
    if heard.is_none() && unread.is_none() {
        return Ok(());
    }
    let project = variable(adapter.directory_variable).map(PathBuf::from);
    let may_be_elsewhere = directory.is_none();
    let place = place(directory, project, heard.as_ref());
    let heard = heard.map(|heard| heard.told_at(&place));
    let mut repo = match Repo::open(&place) {
        Ok(repo) => repo,
        // An agent works anywhere; where there is no repository there is no turn.
        Err(error) if to_refusal(&error).code == Code::NotFound || !enabled_of_user() => return Ok(()),
        Err(error) => return Err(error),
    };
    if ui.verbose {
        repo.set_progress(ui.watch());
    }
    let done = match (is_heard(&repo, heard.as_ref()), heard, unread) {
        (Ok(false), ..) => return Ok(()),
        (Err(error), ..) => Err(error),
        (Ok(true), Some(heard), _) => {
            let of_project = told(&repo, &Logged::new(&repo, adapter, event).heard(), heard.clone());
            if may_be_elsewhere {
                let done = told_elsewhere(&repo, adapter, event, &heard);
                note(&repo, adapter, event, done.as_ref().err());
            }
            of_project
        }
        (Ok(true), None, Some(error)) => return unheard(&repo, adapter, event, error),
        (Ok(true), None, None) => Ok(()),
    };
    note(&repo, adapter, event, done.as_ref().err());
    done
}

/// The JSON, and the event where a word tells it.
fn given(words: &[String]) -> Result<(Vec<u8>, Option<&str>)> {
    match words.get(1..).unwrap_or_default() {
        // Codex's notification gives its JSON as the last word.
        [.., last] if last.starts_with('{') => Ok((last.as_bytes().to_vec(), None)),
        [event, ..] => Ok((input()?, Some(event.as_str()))),
        [] => Ok((input()?, None)),
    }
}

/// What the JSON says, and why it cannot be read.
fn read(text: &[u8]) -> (Value, Option<serde_json::Error>) {
    let error = match serde_json::from_slice(text) {
        Ok(payload) => return (payload, None),
        Err(_) if text.trim_ascii().is_empty() => return (Value::Null, None),
        Err(error) => error,
    };
    match payload::in_part(&lenient(text)) {
        Some(payload) => (payload, None),
        None => (Value::Null, Some(error)),
    }
}

/// Writes down that something was told which cannot be read. The agent hears nothing of it.
fn unheard(repo: &Repo, adapter: &Adapter, event: Option<&str>, error: serde_json::Error) -> Result<()> {
    let error = anyhow::Error::new(error).context("read the hook's JSON");
    note(repo, adapter, event, Some(&error));
    if event.is_some_and(|event| adapter.meaning(event).is_none()) {
        return Ok(());
    }
    missed::note_unread(repo, adapter.name, &format!("{error:#}"))
}

/// JSON of which what no text can hold is replaced: bytes that are not UTF-8, control characters, and halves of characters,
/// which JavaScript writes where it cuts one off. A signal must not be lost for a prompt's sake.
fn lenient(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let text = text.trim_start_matches('\u{feff}').replace(|c: char| c.is_ascii_control(), " ");
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        clean.push_str(before);
        let length = if half(escape).is_some() { 6 } else { escape.chars().take(2).map(char::len_utf8).sum() };
        let (escape, after) = escape.split_at(length);
        let is_pair = |next: &str| matches!((half(escape), half(next)), (Some(0xd800..0xdc00), Some(0xdc00..)));
        let (taken, after) = if is_pair(after) { (12, &after[6..]) } else { (length, after) };
        let is_lone = half(escape).is_some() && taken == 6;
        clean.push_str(if is_lone { "\\ufffd" } else { &rest[at..at + taken] });
        rest = after;
    }
    clean + rest
}

/// The number of an escape that stands for half a character, at the beginning of a text.
fn half(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(digits, 16).ok().filter(|number| (0xd800..0xe000).contains(number))
}

/// Takes a last checkpoint of a linked worktree that is about to be removed: its timeline stays.
fn keep_last(adapter: &Adapter, event: Option<&str>, top: &Path) -> Result<()> {
    let Some(repo) = Repo::open_existing(top)? else { return Ok(()) };
    // Another directory below a worktree takes nothing of it along.
    let is_top = top.canonicalize().is_ok_and(|top| repo.top().canonicalize().is_ok_and(|own| own == top));
    if repo.linked_id().is_none() || !is_top || !Config(&repo).enabled()? {
        return Ok(());
    }
    let logged = Logged::new(&repo, adapter, event);
    let heard = logged.heard();
    let done = beside_turn(&repo, &heard, "a worktree's removal").and_then(|mut locked| {
        let name = (!locked.timeline.state.named.contains_key(LAST)).then_some(LAST);
        checkpoint::name(&mut locked, name).map(drop)
    });
    note(&repo, adapter, event, done.as_ref().err());
    done
}

/// Tells of it in the other worktrees in which its session is at work.
fn told_elsewhere(repo: &Repo, adapter: &Adapter, event: Option<&str>, heard: &HookEvent) -> Result<()> {
    for (other, heard) in elsewhere(repo, heard)? {
        if is_heard(&other, Some(&heard))? {
            let done = told(&other, &Logged::new(&other, adapter, event).heard(), heard);
            note(&other, adapter, event, done.as_ref().err());
        }
    }
    Ok(())
}

/// Whether anything is to be done: where nothing is recorded any more, only what is open is ended.
fn is_heard(repo: &Repo, heard: Option<&HookEvent>) -> Result<bool> {
    if Config(repo).enabled()? {
        return Ok(true);
    }
    let ends = heard.is_some_and(|heard| heard.signal.only_ends());
    Ok(ends && Timelines::new(repo).timeline()?.state.open.is_some())
}

fn told(repo: &Repo, listener: &dyn Fn(Warning), heard: HookEvent) -> Result<()> {
    let patience = if matches!(heard.signal, Signal::Left | Signal::Gone) { LAST_PATIENCE } else { PATIENCE };
    let limit = Config(repo).hook_timeout()?;
    let message = heard.prompt.as_deref().and_then(|prompt| message_of_prompt(Config(repo), prompt, listener));
    // It may have a password in it.
    let told = |line: String| message_of_prompt(Config(repo), &line, listener);
    let tool = heard.tool.map(|tool| ToolUse { command: tool.command.and_then(told), ..tool });
    let call = SignalCall {
        signal: heard.signal,
        part: heard.part,
        message,
        prompt: heard.prompt,
        tool,
        inside: spawn::is_inside(repo),
        has_process: true,
        patience: patience.min(limit / 2),
        partial: false,
    };
    let missed = Missed::of(repo, call.signal, &call.part, call.message.as_deref());
    // Where that cannot be written, nothing else can: the hook may still succeed.
    let attempt = missed.as_ref().and_then(|missed| Attempt::begin(repo, missed).ok());
    let is_told = Arc::new(AtomicBool::new(false));
    let give_up = give_up(repo.scratch()?.to_owned(), missed.clone(), attempt.as_ref(), limit);
    watch(limit, is_told.clone(), give_up);
    let done = handle_signal(repo, listener, &call);
    // It may take as long in another worktree.
    is_told.store(true, Ordering::SeqCst);
    let is_kept = match (&done, missed) {
        (Err(error), Some(missed)) => missed.write(repo.scratch()?, &to_refusal(error).message).is_ok(),
        _ => true,
    };
    attempt.filter(|_| is_kept).map_or(Ok(()), Attempt::end)?;
    let done = done?;
    if done.closed.is_some() {
        start_if_due(&done.view);
    }
    Ok(())
}

/// Writes down what was missed for want of time. There is nobody to tell that it cannot be written.
fn give_up(
    scratch: PathBuf,
    missed: Option<Missed>,
    attempt: Option<&Attempt>,
    limit: Duration,
) -> impl FnOnce() + Send + 'static {
    let attempt = attempt.map(|attempt| attempt.path().to_owned());
    move || {
        let why = format!("it took longer than {} ms", limit.as_millis());
        let is_written = missed.is_some_and(|missed| missed.write(&scratch, &why).is_ok());
        if let Some(attempt) = attempt.filter(|_| is_written) {
            let _ = std::fs::remove_file(attempt);
        }
    }
}

/// Ends this process when it takes longer than that, as where a file blocks whoever reads it: the agent must not wait. The
/// next command cleans up, as after any other end in the middle.
fn watch(limit: Duration, is_done: Arc<AtomicBool>, note: impl FnOnce() + Send + 'static) {
    // Where the system gives no thread, nobody watches.
    let _ = start(move || {
        std::thread::sleep(limit);
        if is_done.load(Ordering::SeqCst) {
            return;
        }
        note();
        // A git that waits for the same would wait for ever. What waits for it must not go on without it.
        about_to_end();
        let started = platform::descendants(std::process::id()).unwrap_or_default();
        for process in started.into_iter().filter_map(|id| Pid::from_raw(id.try_into().ok()?)) {
            let _ = kill_process(process, rustix::process::Signal::KILL);
        }
        std::process::exit(0);
    });
}

/// Where the turn is: as the command line says, or the agent, and else here.
fn place(given: Option<&Path>, project: Option<PathBuf>, heard: Option<&HookEvent>) -> PathBuf {
    let told = project.or_else(|| heard.and_then(|heard| heard.directory.clone()));
    let place = given.map(Path::to_owned).or_else(|| told.filter(|place| place.is_absolute() && place.is_dir()));
    place.unwrap_or_else(|| PathBuf::from("."))
}

/// What comes on stdin, within a limit of size and time.
fn input() -> Result<Vec<u8>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(Vec::new());
    }
    let (sender, receiver) = mpsc::channel();
    start(move || {
        let mut text = Vec::new();
        let read = stdin.take(INPUT_SIZE).read_to_end(&mut text);
        // Whoever has stopped waiting needs it no more.
        drop(sender.send(read.map(|_| text)));
    })?;
    match receiver.recv_timeout(INPUT_TIME) {
        Ok(text) => text.context("read stdin"),
        Err(_) => anyhow::bail!("nothing came on stdin for {} s", INPUT_TIME.as_secs()),
    }
}

/// Writes down what a hook would warn of.
struct Logged<'a> {
    repo: &'a Repo,
    adapter: &'a Adapter,
    event: Option<&'a str>,
}

impl<'a> Logged<'a> {
    fn new(repo: &'a Repo, adapter: &'a Adapter, event: Option<&'a str>) -> Self {
        Self { repo, adapter, event }
    }

    fn heard(&self) -> impl Fn(Warning) + '_ {
        // There is nobody to tell that the log cannot be written.
        |warning| drop(write_line(self.repo, self.adapter, self.event, &format!("warning: {}", warning.message)))
    }
}

/// Remembers that the agent's hooks fire, and what went wrong.
fn note(repo: &Repo, adapter: &Adapter, event: Option<&str>, error: Option<&anyhow::Error>) {
    // As above.
    drop(write_note(repo, adapter, event, error));
}

fn write_note(repo: &Repo, adapter: &Adapter, event: Option<&str>, error: Option<&anyhow::Error>) -> Result<()> {
    let fired = repo.scratch()?.join("fired");
    repo.make_private(&fired)?;
    File::create(fired.join(adapter.name))?;
    error.map_or(Ok(()), |error| write_line(repo, adapter, event, &format!("{error:#}")))
}

fn write_line(repo: &Repo, adapter: &Adapter, event: Option<&str>, text: &str) -> Result<()> {
    let path = repo.scratch()?.join("hooks.log");
    if path.metadata().is_ok_and(|about| about.len() > LOG_SIZE) {
        std::fs::rename(&path, path.with_extension("log.1"))?;
    }
    let mut log = File::options().create(true).append(true).open(&path)?;
    let line = format!("{} {} {}: {text}", rfc3339_now(), adapter.name, event.unwrap_or("-"));
    let line: String = sanitized(&line).chars().take(2000).collect();
    writeln!(log, "{line}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_text_can_hold_is_replaced_and_the_rest_is_read() {
        let json = |text: &[u8]| {
            let (payload, unread) = read(text);
            assert!(unread.is_none(), "{unread:?}");
            payload["a"].as_str().expect("a text").to_owned()
        };
        assert_eq!(json(br#"{"a": "\ud83d cut"}"#), "\u{fffd} cut");
        assert_eq!(json(br#"{"a": "cut \ud83d"}"#), "cut \u{fffd}");
        assert_eq!(json(br#"{"a": "\ud83d\ude00\ude00\ud83d\n\\ud83d"}"#), "\u{1f600}\u{fffd}\u{fffd}\n\\ud83d");
        assert_eq!(json(b"{\"a\": \"\xff\x01\"}"), "\u{fffd} ");
        assert_eq!(json("\u{feff}{\"a\": \"\u{e9}\"}".as_bytes()), "\u{e9}");
        for broken in [&b"{"[..], b"{\"a\": \"\\u\"}", b"{\"a\": \"\\ud8", b"\\", "\\\u{e9}".as_bytes(), b"\\u\xff"] {
            assert!(read(broken).1.is_some(), "{}", String::from_utf8_lossy(broken));
        }
    }
}
