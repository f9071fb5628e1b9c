//! `oxundo __complete INDEX WORDS…`: what the word at INDEX may become, for the shells' scripts. Each line is a value, a
//! tab and what it means; a line that begins with a tab asks the shell for what it does better itself: `files`, `dirs`,
//! or `command N`, the completion of the agent's command, which begins at word N. It reads, never writes and never
//! waits; where it fails, there is nothing to offer.

use crate::agents::adapters::ADAPTERS;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::clock::ago;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::Stored;
use crate::model::bytes::sanitized;
use crate::model::step::Step;
use crate::model::turn::Turn;
use crate::ops::list::{State, along, every};
use crate::ops::place;
use crate::program::args::{Cli, Command, CompleteArgs};
use crate::program::cmd::man;
use anyhow::Result;
use clap::builder::StyledStr;
use clap::{Arg, CommandFactory, Parser, ValueHint};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// How many turns are offered.
const MOST: usize = 100;

/// Gives the lines.
pub fn run(args: &CompleteArgs) -> String {
    let mut words = args.words.clone();
    // Some shells drop an empty word at the end.
    words.resize(args.index + 1, OsString::new());
    if let Some(directory) = directory(&words[..args.index]) {
        // Where that fails, there is nothing to read.
        let _ = std::env::set_current_dir(directory);
    }
    if let Some(at) = agents_command(&words) {
        return format!("\tcommand\t{at}\n");
    }
    if words[..args.index].iter().any(|word| word == "--") {
        return "\tfiles\n".to_owned();
    }
    let command = Cli::command().mut_args(|arg| with_values("", arg));
    let mut command = command.mut_subcommands(|subcommand| {
        let name = subcommand.get_name().to_owned();
        subcommand.mut_args(|arg| with_values(&name, arg))
    });
    let is_option = words[args.index].as_encoded_bytes().starts_with(b"-");
    let offered = complete(&mut command, words, args.index, None).unwrap_or_default();
    let mut offered: Vec<_> = offered.iter().map(line).collect();
    // Options are for those who ask for them.
    if offered.iter().any(|line| !line.starts_with('-')) && !is_option {
        offered.retain(|line| !line.starts_with('-'));
    }
    offered.concat()
}

/// The last directory that `-C` names.
fn directory(words: &[OsString]) -> Option<&Path> {
    let ours = words.split(|word| word == "--").next().unwrap_or_default();
    ours.windows(2).rfind(|pair| pair[0] == "-C").map(|pair| Path::new(&pair[1]))
}

/// Where the command of `run` begins, when it is that which is completed.
fn agents_command(words: &[OsString]) -> Option<usize> {
    let mut words = words.to_vec();
    let last = words.last_mut()?;
    if last.is_empty() {
        last.push("x");
    }
    match Cli::try_parse_from(&words).ok()?.command {
        Some(Command::Run(run)) => Some(words.len() - run.command.len()),
        _ => None,
    }
}

fn line(candidate: &CompletionCandidate) -> String {
    let value = candidate.get_value().to_string_lossy();
    // What the shell does itself comes with the option before it, as in `--install=`.
    if let Some(at) = value.find('\t') {
        return format!("{}\n", &value[at..]);
    }
    let help = candidate.get_help().map(StyledStr::to_string).unwrap_or_default();
    format!("{value}\t{}\n", help.lines().next().unwrap_or_default())
}

fn with_values(command: &str, arg: Arg) -> Arg {
    let value = arg.get_value_names().and_then(<[_]>::first).map(|name| name.as_str().to_owned()).unwrap_or_default();
    let asks = |what: &'static str| ArgValueCompleter::new(move |_: &OsStr| vec![CompletionCandidate::new(what)]);
    let wanted = match command {
        "undo" | "squash" => Some(State::Done),
        "redo" => Some(State::Undone),
        _ => None,
    };
    match (value.as_str(), arg.get_id().as_str()) {
        ("TURN", _) => arg.add(ArgValueCompleter::new(move |word: &OsStr| turns(word, wanted, true))),
        ("TURN..TURN", _) => arg.add(ArgValueCompleter::new(range)),
        ("AGENT" | "AGENT [EVENT]", _) | ("NAME", "agent") => arg.add(ArgValueCompleter::new(agents)),
        ("NAME", "name") if command == "checkpoint" => arg.add(ArgValueCompleter::new(checkpoints)),
        ("NAME", "worktree") => arg.add(ArgValueCompleter::new(worktrees)),
        // It needs a `--` before it.
        _ if arg.is_last_set() => arg.add(ArgValueCompleter::new(|_: &OsStr| Vec::new())),
        ("PAGE", _) => arg.add(ArgValueCompleter::new(pages)),
        _ => match arg.get_value_hint() {
            ValueHint::AnyPath | ValueHint::FilePath => arg.add(asks("\tfiles")),
            ValueHint::DirPath => arg.add(asks("\tdirs")),
            _ => arg,
        },
    }
}

fn fitting(word: &OsStr, all: impl IntoIterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    all.into_iter()
        .filter(|(value, _)| value.starts_with(&*word) && !value.contains(char::is_control))
        .map(|(value, about)| CompletionCandidate::new(value).help(Some(sanitized(&about).into())))
        .collect()
}

fn turns(word: &OsStr, wanted: Option<State>, names: bool) -> Vec<CompletionCandidate> {
    fitting(word, read_turns(word, wanted, names).unwrap_or_default())
}

fn read_turns(word: &OsStr, wanted: Option<State>, names: bool) -> Result<Vec<(String, String)>> {
    let repo = Repo::open(Path::new("."))?;
    if wanted.is_none()
        && let Some((name, rest)) = word.to_str().and_then(|word| word.split_once(':'))
        && let Some(other) = Timelines::new(&repo).other_timeline(name)?
    {
        let theirs = states_elsewhere(&other.stored?, rest)?.into_iter();
        return Ok(theirs.map(|(value, about)| (format!("{name}:{value}"), about)).collect());
    }
    let stored = Timelines::new(&repo).timeline()?;
    let place = place::find(&repo, &stored, &Refs::new(&repo).head()?)?;
    let known = along(&stored, &place, MOST)?;
    let mut all = Vec::new();
    if let Some(steps) = word.to_str().and_then(|word| steps(&stored, word)) {
        return steps;
    }
    if word.as_encoded_bytes().starts_with(b"@") {
        let done = known.iter().filter(|(turn, state)| *state == State::Done && !turn.is_part());
        for (below, (turn, state)) in done.enumerate() {
            let value = if below == 0 { "@".to_owned() } else { format!("@~{below}") };
            all.push((value, about(turn, *state)));
        }
        return Ok(all);
    }
    let fits = |state: State| wanted.is_none_or(|wanted| state.word() == wanted.word());
    all.extend(
        known
            .iter()
            .filter(|(_, state)| fits(*state))
            .map(|(turn, state)| (turn.turn.to_string(), about(turn, *state))),
    );
    if names {
        all.extend(read_checkpoints(&stored));
    }
    if names && wanted.is_none() {
        all.extend(read_worktrees(&repo)?.into_iter().map(|(name, about)| (name + ":", about)));
    }
    Ok(all)
}

/// What a turn is, in a few words.
fn about(turn: &Turn, state: State) -> String {
    let age = ago(turn.ended_at.as_deref().unwrap_or(&turn.began_at));
    let mark = if state == State::Done { String::new() } else { format!(", {}", state.word()) };
    format!("{} ({age}{mark})", turn.label())
}

/// The steps of a turn, where a word names one of them.
fn steps(stored: &Stored<'_>, word: &str) -> Option<Result<Vec<(String, String)>>> {
    let turn = word.split_once('.')?.0.parse().ok()?;
    let named = |steps: Vec<Step>| steps.into_iter().map(|step| (step.name().to_string(), step.label())).collect();
    Some(stored.steps(turn).map(named))
}

/// The states of another worktree's that a word behind its name may mean.
fn states_elsewhere(stored: &Stored<'_>, word: &str) -> Result<Vec<(String, String)>> {
    if let Some(steps) = steps(stored, word) {
        return steps;
    }
    let turns = every(stored, None, MOST)?.into_iter();
    let turns = turns.map(|(turn, state)| (turn.turn.to_string(), about(&turn, state)));
    Ok(turns.chain(read_checkpoints(stored)).collect())
}

/// The other worktrees that have turns.
fn read_worktrees(repo: &Repo) -> Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for other in Timelines::new(repo).other_timelines()? {
        let words = other.words();
        let Ok(many) = other.stored.and_then(|stored| Ok(stored.turn_numbers()?.len())) else { continue };
        let which = if other.removed { "removed worktree" } else { "worktree" };
        let turns = if many == 1 { "turn" } else { "turns" };
        all.push((words, format!("{which}, {many} {turns}")));
    }
    Ok(all)
}

fn worktrees(word: &OsStr) -> Vec<CompletionCandidate> {
    let read = || read_worktrees(&Repo::open(Path::new("."))?);
    fitting(word, read().unwrap_or_default())
}

fn read_checkpoints(stored: &Stored<'_>) -> Vec<(String, String)> {
    let mut named: Vec<_> = stored.state.named.iter().collect();
    named.sort_by_key(|(_, named)| std::cmp::Reverse(named.number));
    named.into_iter().map(|(name, named)| (name.clone(), format!("checkpoint ({})", ago(&named.at)))).collect()
}

fn checkpoints(word: &OsStr) -> Vec<CompletionCandidate> {
    let read = || {
        let repo = Repo::open(Path::new("."))?;
        Ok(read_checkpoints(&Timelines::new(&repo).timeline()?))
    };
    fitting(word, read().unwrap_or_else(|_: anyhow::Error| Vec::new()))
}

/// One end of `12..15`.
fn range(word: &OsStr) -> Vec<CompletionCandidate> {
    let word = word.to_string_lossy();
    let (from, to) = match word.split_once("..") {
        Some((from, to)) => (format!("{from}.."), to),
        None => (String::new(), &*word),
    };
    let ends = turns(OsStr::new(to), Some(State::Done), false);
    ends.into_iter().map(|end| end.add_prefix(&from)).collect()
}

fn agents(word: &OsStr) -> Vec<CompletionCandidate> {
    fitting(word, ADAPTERS.iter().map(|agent| (agent.name.to_owned(), agent.title.to_owned())))
}

fn pages(word: &OsStr) -> Vec<CompletionCandidate> {
    fitting(word, man::PAGES.iter().map(|page| (man::short(page.0).to_owned(), man::about(page.1).to_owned())))
}
