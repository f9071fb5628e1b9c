//! A command line that is wrong, said in words of what it is about, with the line to type instead.

use crate::agents::adapters::adapter;
use crate::agents::spawn;
use crate::error::{Code, Refusal};
use crate::model::bytes::{in_quotes, quoted_line, shell_word};
use crate::model::step::StepName;
use crate::model::timeline::range_ends;
use crate::program::args::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};
use gix::bstr::ByteSlice;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use strsim::damerau_levenshtein;

/// All commands at one look.
pub const SHORT: &str = include_str!("help/short.txt");

/// Whether a command line asks for the short help of all commands.
pub fn is_for_all(args: &[OsString]) -> bool {
    let words: Vec<_> = args.iter().skip(1).collect();
    words.iter().any(|word| *word == "-h") && words.iter().all(|word| word.as_encoded_bytes().starts_with(b"-"))
}

/// Options that others have for what is something else here, by the command: the option, and what to do.
const ELSEWHERE: &[(&[&str], &[&str], &str)] = &[
    (&["undo"], &["--all", "-a"], "'oxundo undo --to 0' takes every turn back"),
    (&["undo"], &["--yes", "-y"], "undo asks nothing, and redo takes it back"),
    (&["redo"], &["--all", "-a"], "'oxundo log' shows the turns: redo takes '--to' and the number of the last one"),
    (&["undo", "restore"], &["--path", "--file", "--paths"], "paths come last, behind ' -- '"),
    (
        &["redo"],
        &["--path", "--file", "--paths", "-p", "--patch"],
        "restore brings paths of a turn back, and parts of files with '-p': 'oxundo restore -h' says how",
    ),
    (&["run"], &["--yes", "-y", "--continue", "-c", "-p"], "what is the agent's comes behind ' -- '"),
    (&["log"], &["--oneline"], "'oxundo log' has a line for each turn, and '--format' makes others"),
    (
        &["log"],
        &["--stat", "--name-only", "--name-status", "--numstat"],
        "'oxundo show --stat' has the files of a turn",
    ),
    (
        &["log", "show", "diff"],
        &["-p", "--patch"],
        "'oxundo show' has what the last turn changed, 'oxundo diff' what changed since",
    ),
];

/// The commands that leave your edits alone, unless they are told not to.
const FORCED: [&str; 4] = ["undo", "redo", "rewind", "branch"];

/// Words that others have for what is something else here.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("checkout", &["restore", "--exact"]),
    ("goto", &["restore", "--exact"]),
    ("reset", &["undo", "--to"]),
    ("revert", &["undo", "--only"]),
    ("rollback", &["undo"]),
    ("back", &["undo"]),
    ("forward", &["redo"]),
    ("list", &["log"]),
    ("history", &["log"]),
    ("snapshot", &["checkpoint", "-m"]),
    ("save", &["checkpoint", "-m"]),
    ("stash", &["checkpoint", "-m"]),
    ("tag", &["checkpoint", "-m"]),
    ("clean", &["gc"]),
    ("prune", &["gc"]),
    ("config", &["man", "config"]),
    ("version", &["--version"]),
    ("turns", &["log"]),
    ("timeline", &["log"]),
    ("steps", &["log", "--steps"]),
    ("ops", &["log", "--ops"]),
    ("checkpoints", &["checkpoint", "--list"]),
    ("st", &["status"]),
    ("cat", &["show"]),
    ("annotate", &["blame"]),
    ("search", &["find"]),
    ("grep", &["find", "-G"]),
    ("edit", &["restore", "--exact"]),
    ("abandon", &["undo", "--only"]),
    ("fork", &["branch"]),
    ("prev", &["undo"]),
    ("next", &["redo"]),
    ("setup", &["init"]),
    ("enable", &["init"]),
    ("disable", &["uninstall"]),
    ("purge", &["uninstall", "--purge"]),
    // What stands before the command already.
    ("oxundo", &[]),
    ("git", &[]),
];

/// So often a line is put right: it may have more than one slip.
const SLIPS: usize = 3;

/// What a wrong command line is told.
pub fn refusal(error: &Error, args: &[OsString]) -> Refusal {
    refused(error, args, SLIPS)
}

fn refused(error: &Error, args: &[OsString], slips: usize) -> Refusal {
    if let Some(refusal) = misplaced(args) {
        return refusal;
    }
    let typed = Typed { slips, ..Typed::new(error, args) };
    match error.kind() {
        ErrorKind::InvalidSubcommand => typed.no_command(),
        ErrorKind::UnknownArgument => typed.unknown(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => typed.wrong_value(),
        ErrorKind::TooManyValues => typed.one_too_many(&typed.context(ContextKind::InvalidValue).unwrap_or_default()),
        ErrorKind::ArgumentConflict => typed.conflict(),
        ErrorKind::MissingRequiredArgument => typed.missing(),
        ErrorKind::InvalidUtf8 => typed.no_text(),
        _ => typed.other(),
    }
}

/// What is told where `--` stands before the command, for clap takes the command for something else then.
fn misplaced(args: &[OsString]) -> Option<Refusal> {
    let words: Vec<&[u8]> = args.iter().skip(1).map(|arg| arg.as_encoded_bytes()).collect();
    let command = command_at(&words)?;
    let (before, rest) = words.split_at(command);
    let without: Vec<&[u8]> = before.iter().filter(|word| **word != b"--").chain(rest).copied().collect();
    (without.len() < words.len())
        .then(|| Refusal::new(Code::Usage, "'--' stands before the command").hint(run(&line(without))))
}

/// What was typed, and what clap found wrong with it.
struct Typed<'a> {
    error: &'a Error,
    /// As they were given, and as text.
    given: Vec<&'a [u8]>,
    words: Vec<String>,
    /// Where the subcommand is in them.
    command: Option<usize>,
    /// So often it can be put right.
    slips: usize,
}

impl<'a> Typed<'a> {
    fn new(error: &'a Error, args: &'a [OsString]) -> Self {
        let words: Vec<String> = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
        let given: Vec<&[u8]> = args.iter().skip(1).map(|arg| arg.as_encoded_bytes()).collect();
        let command = command_at(&given);
        Self { error, given, words, command, slips: 0 }
    }

    /// The subcommand's name.
    fn name(&self) -> &str {
        self.command.map_or("", |at| &self.words[at])
    }

    fn context(&self, kind: ContextKind) -> Option<String> {
        match self.error.get(kind)? {
            ContextValue::String(text) => Some(text.clone()),
            ContextValue::Strings(texts) => texts.last().cloned(),
            ContextValue::StyledStrs(texts) => texts.last().map(ToString::to_string),
            ContextValue::StyledStr(text) => Some(text.to_string()),
            _ => None,
        }
    }

    /// Which option was meant.
    fn option(&self, given: &str) -> Option<String> {
        let mut program = Cli::command();
        program.build();
        let command = program.find_subcommand(self.name()).unwrap_or(&program);
        let options = command.get_arguments().filter(|option| !option.is_hide_set()).filter_map(clap::Arg::get_long);
        near(given, options.map(|option| format!("--{option}")))
    }

    /// Whether a path is there, in the directory that the line is for.
    fn is_there(&self, path: &str) -> bool {
        let places = self.words.windows(2).filter(|pair| pair[0] == "-C").map(|pair| &pair[1]);
        places.map(Path::new).chain([Path::new(path)]).collect::<PathBuf>().symlink_metadata().is_ok()
    }

    /// Whether an option of the subcommand has a value behind it.
    fn takes_value(&self, option: &str) -> bool {
        let mut program = Cli::command();
        program.build();
        let command = program.find_subcommand(self.name()).unwrap_or(&program);
        command
            .get_arguments()
            .find(|known| is_called(known, option))
            .is_some_and(|known| known.get_action().takes_values())
    }

    /// The hint to type the whole line with another word in the place of one.
    fn with(&self, old: &str, new: &str) -> String {
        let as_value = format!("{old}=");
        self.run(self.words.iter().map(|word| match word.strip_prefix(&as_value) {
            _ if word == old => new.to_owned(),
            Some(value) => format!("{new}={value}"),
            None => word.clone(),
        }))
    }

    /// The hint to type this line; where something is wrong with that too, what is told of it.
    fn run<W: Into<OsString>>(&self, words: impl IntoIterator<Item = W>) -> String {
        let words: Vec<OsString> = ["oxundo".into()].into_iter().chain(words.into_iter().map(Into::into)).collect();
        let error = Cli::parsed(&words).err().filter(Error::use_stderr);
        let told = error.and_then(|error| {
            let slips = self.slips.checked_sub(1)?;
            refused(&error, &words, slips).hints.into_iter().next()
        });
        told.unwrap_or_else(|| run(&line(words[1..].iter().map(|word| word.as_encoded_bytes()))))
    }

    /// The whole line with `--` before a word and those behind it that are no options.
    fn with_paths(&self, first: &str) -> String {
        self.with_paths_from(self.words.iter().rposition(|word| word == first).unwrap_or(self.words.len()))
    }

    fn with_paths_from(&self, at: usize) -> String {
        let (before, behind) = self.given.split_at(at);
        let (mut options, mut paths, mut behind) = (Vec::new(), Vec::new(), behind.iter().copied());
        while let Some(word) = behind.next() {
            match word {
                b"--" => paths.extend(behind.by_ref()),
                [b'-', _, ..] => {
                    options.push(word);
                    if self.takes_value(&word.to_str_lossy()) {
                        options.extend(behind.next());
                    }
                }
                _ => paths.push(word),
            }
        }
        line(before.iter().copied().chain(options).chain([&b"--"[..]]).chain(paths))
    }

    fn help(&self) -> String {
        match self.name() {
            "" => "run 'oxundo -h' to see the commands".to_owned(),
            name => format!("run 'oxundo {name} -h' to see what it takes"),
        }
    }

    fn no_command(&self) -> Refusal {
        let name = self.context(ContextKind::InvalidSubcommand).unwrap_or_else(|| self.name().to_owned());
        if self.name() == "help" && name.starts_with('-') {
            let words = self.words.iter().filter(|word| !word.starts_with('-'));
            let whose = "'help'";
            return Refusal::new(Code::Usage, format!("{whose} has no option '{name}'")).hint(self.run(words));
        }
        if self.name() == "help" {
            let first = self.command.map(|at| &self.words[..self.words.len().min(at + 2)]);
            if let Some(first) = first.filter(|first| first.len() < self.words.len()) {
                return Refusal::new(Code::Usage, "'help' takes one command").hint(run(&line(first)));
            }
        }
        let refusal = Refusal::new(Code::Usage, format!("'{name}' is no command"));
        let agents = self
            .command
            .map(|at| line(["run".to_owned(), "--".to_owned()].into_iter().chain(self.words[at..].to_vec())));
        let is_program = adapter(&name).is_some() || spawn::find(name.as_ref()).is_ok();
        let apart = shell_words::split(&name).ok().filter(|words| words.len() > 1);
        if let (Some(apart), Some(at)) = (apart, self.command) {
            let words = self.words[..at].iter().cloned().chain(apart).chain(self.words[at + 1..].iter().cloned());
            return refusal.hint(self.run(words));
        }
        if let Some(meant) = self.synonym() {
            return refusal.hint(self.run(meant));
        }
        let program = Cli::command();
        let commands = program.get_subcommands().filter(|command| !command.is_hide_set());
        let names = commands.flat_map(|command| [command.get_name()].into_iter().chain(command.get_visible_aliases()));
        match (near(&name, names.map(str::to_owned)), agents) {
            (Some(near), _) if !is_program => refusal.hint(self.with(&name, &near)),
            _ if is_turn(&name) => refusal.hint(format!("if it is a turn: {}", quoted_line(&line(["show", &name])))),
            (_, Some(agents)) if is_program => refusal.hint(format!("to run it as an agent: {}", quoted_line(&agents))),
            _ => refusal.hint("run 'oxundo -h' to see the commands"),
        }
    }

    /// The line with the command that is meant by another's name.
    fn synonym(&self) -> Option<Vec<&str>> {
        let at = self.command?;
        let (_, meant) = SYNONYMS.iter().find(|(name, _)| *name == self.words[at])?;
        // An option that takes what follows needs something.
        let is_bare = self.words.len() == at + 1;
        let meant = meant.iter().filter(|word| !(is_bare && meant.len() > 1 && word.starts_with('-')));
        let [before, after] = [&self.words[..at], &self.words[at + 1..]];
        Some(before.iter().map(String::as_str).chain(meant.copied()).chain(after.iter().map(String::as_str)).collect())
    }

    fn unknown(&self) -> Refusal {
        let given = self.context(ContextKind::InvalidArg).unwrap_or_default();
        let name = self.name();
        let is_number = |word: &&String| {
            word.starts_with(&given) && word.len() > 1 && word[1..].bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_options = |at: usize| at > 0 && self.takes_value(&self.words[at - 1]);
        if let Some(at) = self.words.iter().position(|word| is_number(&word)).filter(|at| is_options(*at)) {
            let (value, option) = (&self.words[at], &self.words[at - 1]);
            let what = format!("the value of '{option}'");
            return Refusal::new(Code::Usage, format!("'{value}' cannot be {what}")).hint(self.help());
        }
        if matches!(name, "undo" | "redo")
            && let Some(number) = self.words.iter().find(is_number)
        {
            return Refusal::new(Code::Usage, format!("'{name}' takes a number of turns without '-'"))
                .hint(self.with(number, &number[1..]));
        }
        if !given.starts_with('-') {
            return self.one_too_many(&given);
        }
        let is_count =
            |word: &&String| word.starts_with(&given) && given[1..].bytes().all(|byte| byte.is_ascii_digit());
        if let Some(word) = self.words.iter().find(is_count).filter(|_| name == "log" && given.len() > 1) {
            return Refusal::new(Code::Usage, format!("'{word}' is no number of turns")).hint(self.with(word, &given));
        }
        let at = self.words.iter().position(|word| word.split('=').next() == Some(&given));
        let is_before = name.is_empty() || (at.is_some() && at < self.command);
        let whose = if is_before { "oxundo".to_owned() } else { format!("'{name}'") };
        let refusal = Refusal::new(Code::Usage, format!("{whose} has no option '{given}'"));
        if is_before {
            if let Some(moved) = at.and_then(|at| self.behind_command(at, &given)) {
                return refusal.hint(moved);
            }
            // Who gives a command asks for no version.
            let is_of_commands =
                |near: &String| self.command.is_none() || !near.starts_with("--ver") && near != "--help";
            return match self.option(&given).filter(is_of_commands) {
                Some(near) => refusal.hint(self.with(&given, &near)),
                None => refusal.hint("run 'oxundo -h' to see the commands"),
            };
        }
        if FORCED.contains(&name) && ["--force", "-f", "--hard"].contains(&given.as_str()) {
            let exactly = self.with(&given, "--edits=overwrite");
            let is_it = exactly.starts_with("run ") && exactly.contains("--edits=overwrite");
            let why = if is_it { " to restore exactly what was there: redo has your edits" } else { "" };
            return refusal.hint(exactly + why);
        }
        let known =
            ELSEWHERE.iter().find(|(names, options, _)| names.contains(&name) && options.contains(&given.as_str()));
        match (known, self.option(&given)) {
            (Some((.., what)), _) => refusal.hint(*what),
            (None, Some(near)) => refusal.hint(self.with(&given, &near)),
            (None, None) => refusal.hint(self.help()),
        }
    }

    /// The line with an option that stands before the command that it is of behind that.
    fn behind_command(&self, at: usize, option: &str) -> Option<String> {
        let mut program = Cli::command();
        program.build();
        let (command, known) = (at + 1..self.words.len()).find_map(|at| {
            let command = program.find_subcommand(&self.words[at])?;
            let known =
                command.get_arguments().filter(|known| !known.is_hide_set()).find(|known| is_called(known, option));
            Some((at, known?))
        })?;
        let has_value = known.get_action().takes_values() && !self.words[at].contains('=');
        let end = at + 1 + usize::from(has_value);
        let words = |range: std::ops::Range<usize>| self.words[range].iter().cloned();
        (end <= command).then(|| {
            let (before, rest) = (words(0..at).chain(words(end..command + 1)), words(command + 1..self.words.len()));
            self.run(before.chain(words(at..end)).chain(rest))
        })
    }

    fn one_too_many(&self, given: &str) -> Refusal {
        let name = self.name();
        let is_value = |word: &&String| word.starts_with('-') && word.ends_with(&format!("={given}"));
        if let Some(word) = self.words.iter().find(is_value) {
            let option = bare(word);
            return Refusal::new(Code::Usage, format!("'{option}' takes no value")).hint(self.with(word, option));
        }
        let refusal = Refusal::new(Code::Usage, format!("'{given}' is one word too many for '{name}'"));
        let is_path = self.is_there(given);
        if let Some(meant) = self.more_words(given).filter(|_| !is_path) {
            return refusal.hint(meant);
        }
        if is_path && name == "log" || matches!(name, "undo" | "restore" | "diff") {
            refusal.hint(format!("paths come behind ' -- ': {}", quoted_line(&self.with_paths(given))))
        } else {
            refusal.hint(self.help())
        }
    }

    /// What was meant by a word too many, where that is known: a turn, or words that belong together.
    fn more_words(&self, given: &str) -> Option<String> {
        let (at, name) = (self.command?, self.name());
        let words: Vec<&str> = self.words[at + 1..].iter().map(String::as_str).collect();
        let is_plain = words.iter().all(|word| !word.starts_with('-'));
        let first = words.iter().find(|word| !word.starts_with('-'));
        let line = |words: &[&str]| self.run(self.words[..at].iter().map(String::as_str).chain(words.iter().copied()));
        match (name, &words[..]) {
            ("undo" | "redo", _) => self
                .counted(first?, given)
                .map(|counted| self.run(counted))
                .or_else(|| of_turn(name, &format!("{}{given}", first?))),
            ("log", _) if is_turn(given) => Some(format!("to see what it changed: 'oxundo show {given}'")),
            ("checkpoint", [..]) if is_plain => Some(line(&[name, &words.join(" ")])),
            ("describe", [turn, words @ ..]) if is_plain => Some(line(&[name, turn, "-m", &words.join(" ")])),
            _ => None,
        }
    }

    /// The line without the word that says what is counted: `last 2`, `2 turns`.
    fn counted(&self, first: &str, second: &str) -> Option<Vec<String>> {
        let is_number = |word: &str| word.parse::<u64>().is_ok_and(|number| number > 0);
        let counted = match (first, second) {
            ("last" | "steps" | "turns", number) if is_number(number) => first,
            (number, "step" | "steps" | "turn" | "turns") if is_number(number) => second,
            _ => return None,
        };
        Some(self.words.iter().filter(|word| *word != counted).cloned().collect())
    }

    fn wrong_value(&self) -> Refusal {
        let what = self.context(ContextKind::InvalidArg).unwrap_or_default();
        let given = self.context(ContextKind::InvalidValue).unwrap_or_default();
        let name = self.name();
        if given.is_empty() {
            return Refusal::new(Code::Usage, format!("'{}' needs a value", bare(&what))).hint(self.help());
        }
        if matches!(name, "undo" | "redo") && ["[N]", "<N>"].iter().any(|number| what.contains(number)) {
            return self.no_number(&given, !what.starts_with('-'));
        }
        let values = match self.error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(values)) if !values.is_empty() => values.join(", "),
            _ if what.contains('|') => bare(&what).replace('|', ", "),
            _ => return Refusal::new(Code::Usage, format!("'{given}' cannot be {}", named(&what))).hint(self.help()),
        };
        let refusal = Refusal::new(Code::Usage, format!("'{given}' is none of {values}"));
        match near(&given, values.split(", ").map(str::to_owned)) {
            Some(near) => refusal.hint(self.with_value(&given, &near)),
            None => refusal.hint(self.help()),
        }
    }

    /// The hint to type the whole line with another value.
    fn with_value(&self, old: &str, new: &str) -> String {
        let behind = format!("={old}");
        self.run(self.words.iter().map(|word| match word.strip_suffix(&behind) {
            _ if word == old => new.to_owned(),
            Some(option) => format!("{option}={new}"),
            None => word.clone(),
        }))
    }

    /// A number of turns that is none.
    fn no_number(&self, given: &str, is_word: bool) -> Refusal {
        let name = self.name();
        let digits = given.trim_start_matches('-');
        if digits.parse::<u64>().is_ok() || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let what = if digits == "0" { "no turn" } else { "no number of turns" };
            return Refusal::new(Code::Usage, format!("{given} is {what} to {name}"))
                .hint(format!("run 'oxundo {name}' for one turn, 'oxundo {name} 2' for two"));
        }
        let refusal = Refusal::new(Code::Usage, format!("'{given}' is no number of turns"));
        if let Some(meant) = of_turn(name, given).filter(|_| is_word) {
            return refusal.hint(meant);
        }
        if is_word && given == "all" {
            let all = ELSEWHERE.iter().find(|(names, options, _)| names.contains(&name) && options.contains(&"--all"));
            return refusal.hints(all.map(|(.., what)| (*what).to_owned()));
        }
        if is_word && ["@", "HEAD", "last"].contains(&given) {
            return refusal.hint(format!("run 'oxundo {name}' for one turn"));
        }
        let numbers =
            given.split_once('-').filter(|ends| [ends.0, ends.1].iter().all(|end| end.parse::<u64>().is_ok()));
        let range = numbers.map_or_else(|| given.to_owned(), |(first, last)| format!("{first}..{last}"));
        if is_word && name == "undo" && range_ends(&range).is_some() {
            let range = quoted_line(&line([name, "--only", &range]));
            return refusal.hint(format!("if these are turns: {range}"));
        }
        if is_word && name == "undo" && self.is_there(given) {
            return refusal
                .hint(format!("to take back what the last turn did to it: {}", quoted_line(&self.with_paths(given))));
        }
        if is_word && name == "redo" && self.is_there(given) {
            let meant = quoted_line(&line(["restore", "@", "--", given]));
            return refusal.hint(format!("to have it as the last turn left it: {meant}"));
        }
        if name == "redo" && StepName::parse(given).is_some() {
            let [show, go] = [&["show", given][..], &["restore", "--exact", given]]
                .map(|words| quoted_line(&line(words.iter().copied())));
            return refusal.hint(format!("if it is a step: {show} shows it, {go} goes there"));
        }
        let refusal = refusal.hint(format!("if it is a turn: {}", quoted_line(&line([name, "--to", given]))));
        // A file that is not there is one that a turn may have deleted.
        let is_path = is_word && name == "undo" && given.contains(['/', '.']) && !is_turn(given);
        let path = is_path.then(|| format!("if it is a path: {}", quoted_line(&self.with_paths(given))));
        refusal.hints(path)
    }

    fn conflict(&self) -> Refusal {
        let one = self.context(ContextKind::InvalidArg).unwrap_or_default();
        let other = self.context(ContextKind::PriorArg).unwrap_or_default();
        let message = if other.is_empty() || one == other {
            format!("'{}' was given twice", bare(&one))
        } else {
            format!("'{}' and '{}' do not go together", bare(&one), bare(&other))
        };
        let refusal = Refusal::new(Code::Usage, message);
        match place(&self.given).filter(|_| bare(&one) == "-C") {
            Some(place) => refusal.hint(self.run(in_one_place(&self.given, place))),
            None => refusal.hint("leave one of them out").hint(self.help()),
        }
    }

    fn missing(&self) -> Refusal {
        let what = self.context(ContextKind::InvalidArg).unwrap_or_default();
        let needed = match named(&what).rsplit_once(", ") {
            Some((some, last)) => format!("{some} or {last}"),
            None if what.starts_with('-') => format!("'{}'", bare(&what)),
            None => named(&what),
        };
        let refusal = Refusal::new(Code::Usage, format!("'{}' needs {needed}", self.name()));
        match self.name() {
            "run" => {
                let given = self.given.iter().copied().filter(|word| *word != b"--");
                let whole = quoted_line(&line(given.chain([&b"--"[..], b"claude"])));
                refusal.hint(format!("give the command to run: {whole}"))
            }
            _ => refusal.hint(self.help()),
        }
    }

    /// A word that is no UTF-8, where only a path may be that.
    fn no_text(&self) -> Refusal {
        let Some(at) = self.given.iter().position(|word| word.to_str().is_err()) else { return self.other() };
        let what = in_quotes(self.given[at].as_bstr());
        let refusal = Refusal::new(Code::Usage, format!("{what} is not UTF-8, as only a path may be"));
        // Of a state's path, that is no text, the state is.
        if let Some((state, path)) = self.given[at].rsplit_once_str(":").filter(|(state, _)| state.to_str().is_ok())
            && matches!(self.name(), "undo" | "restore" | "diff")
            && !state.is_empty()
        {
            let rest = self.given[at + 1..].iter().copied().filter(|word| *word != b"--");
            let words = self.given[..at].iter().copied().chain([state]).chain(rest).chain([&b"--"[..], path]);
            return refusal.hint(run(&line(words)));
        }
        let is_value = at > 0 && self.takes_value(&self.words[at - 1]);
        if !is_value && matches!(self.name(), "undo" | "restore" | "diff" | "log") {
            return refusal.hint(format!("paths come behind ' -- ': {}", quoted_line(&self.with_paths_from(at))));
        }
        refusal.hint(self.help())
    }

    fn other(&self) -> Refusal {
        Refusal::new(Code::Usage, in_its_words(self.error)).hint(self.help())
    }
}

/// The options of `run` and `acp` with a value behind them, and those of every command.
const WITH_VALUE: [&[u8]; 7] = [b"-C", b"--color", b"-m", b"--message", b"--agent", b"--session", b"--report"];

/// Where the words of a line end that are its own: paths, and an agent's words, come behind.
pub fn own_end(words: &[&[u8]]) -> usize {
    let command = command_at(words).unwrap_or(words.len());
    let starts_one = words.get(command).is_some_and(|name| [&b"run"[..], b"acp"].contains(name));
    let is_value = |at: usize| at > 0 && WITH_VALUE.contains(&words[at - 1]);
    let is_agents = |at: usize| starts_one && at > command && !words[at].starts_with(b"-") && !is_value(at);
    (0..words.len()).find(|at| words[*at] == b"--" || is_agents(*at)).unwrap_or(words.len())
}

/// The value of `-C` in a word that has it with it, and what stands before that in it: `-qCr`, `-C=r`.
fn joined_place(word: &[u8]) -> Option<(&[u8], &[u8])> {
    let (before, place) =
        word.split_once_str("C").filter(|(before, place)| !place.is_empty() && before.starts_with(b"-"))?;
    let are_flags = before[1..].iter().all(|flag| b"qv".contains(flag));
    are_flags.then(|| (before, place.strip_prefix(b"=").unwrap_or(place)))
}

/// The places that `-C` names, and the words of a line that are its own without them.
fn apart<'w>(words: &[&'w [u8]]) -> (Vec<&'w [u8]>, Vec<&'w [u8]>) {
    let (mut places, mut others) = (Vec::new(), Vec::new());
    let mut own = words[..own_end(words)].iter().copied();
    while let Some(word) = own.next() {
        if word == b"-C" {
            places.extend(own.next());
        } else if let Some((before, place)) = joined_place(word) {
            places.push(place);
            others.extend(Some(before).filter(|before| before.len() > 1));
        } else {
            others.push(word);
        }
    }
    (places, others)
}

/// The directory that `-C` names, or several of them, as git takes them.
pub fn place(words: &[&[u8]]) -> Option<PathBuf> {
    let place: PathBuf = apart(words).0.into_iter().map(OsStr::from_bytes).collect();
    Some(place).filter(|place| !place.as_os_str().is_empty())
}

/// Whether an option has this name.
fn is_called(known: &clap::Arg, option: &str) -> bool {
    let short = known.get_short().is_some_and(|short| option == format!("-{short}"));
    short || known.get_long().is_some_and(|long| option == format!("--{long}"))
}

/// Which of some words was meant, where it is that but for a slip, or its end: for what is likely, a line is offered that may do
/// something else.
pub fn near(given: &str, words: impl IntoIterator<Item = String>) -> Option<String> {
    let given = &given.to_lowercase();
    let words = words.into_iter().map(|word| (damerau_levenshtein(given, &word), word));
    let (ends, others): (Vec<_>, Vec<_>) =
        words.partition(|(_, word)| given.trim_matches('-').len() > 2 && word.starts_with(given));
    // What is so short is near to anything.
    let most = if given.len() < 3 { 0 } else { given.len().div_ceil(4).min(2) };
    let slip = others.into_iter().filter(|(slips, _)| *slips <= most).min();
    let end = ends.into_iter().min().map(|(_, word)| word);
    slip.map(|(_, word)| word).or(end)
}

/// Whether a word may name a turn, or several.
fn is_turn(word: &str) -> bool {
    word.starts_with(['@', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) || word.starts_with("HEAD")
}

/// What is said of a turn's number where a number of turns is wanted: `turn 3`, `#3`.
fn of_turn(command: &str, word: &str) -> Option<String> {
    let number: u64 = word.strip_prefix("turn").or_else(|| word.strip_prefix('#'))?.parse().ok()?;
    Some(match command {
        "undo" => format!(
            "'oxundo undo --only {number}' takes turn {number} alone out, 'oxundo undo --to {number}' all later ones back"
        ),
        _ => format!("'oxundo redo --to {number}' brings turn {number} back"),
    })
}

/// What clap says of it.
fn in_its_words(error: &Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}

/// An option without what stands for its value.
fn bare(what: &str) -> &str {
    what.split([' ', '=']).next().unwrap_or(what).trim_end_matches("...").trim_matches(['<', '>', '[', ']'])
}

/// What an argument is called in a sentence.
fn named(what: &str) -> String {
    match what.strip_prefix('-') {
        Some(option) if option.contains([' ', '=']) => format!("the value of '{}'", bare(what)),
        Some(_) => format!("'{what}'"),
        None => bare(what).replace('|', ", "),
    }
}

/// A line that can be typed.
pub fn line<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> String {
    let words: Vec<String> = words.into_iter().map(shell_word).collect();
    format!("oxundo {}", words.join(" "))
}

pub fn run(line: &str) -> String {
    format!("run {}", quoted_line(line))
}

/// A command line whose agent's command was given as one word, in words, or for a shell where it is written for one.
pub fn in_words(command: &OsString) -> Option<String> {
    let text = command.to_str()?;
    let mut words = shell_words::split(text).ok().filter(|words| words.len() > 1)?;
    spawn::find(words[0].as_ref()).ok()?;
    if text.contains(['&', '|', ';', '<', '>', '$', '*']) {
        words = ["sh", "-c", text].map(str::to_owned).to_vec();
    }
    Some(quoted_line(&line(["run", "--"].map(str::to_owned).into_iter().chain(words))))
}

/// The line without `-C DIR`.
pub fn without_directory(args: &[OsString]) -> String {
    let words: Vec<&[u8]> = args.iter().skip(1).map(|arg| arg.as_encoded_bytes()).collect();
    let is_directory = |at: usize| words[at].starts_with(b"-C") || (at > 0 && words[at - 1] == b"-C");
    let command = command_at(&words).unwrap_or(words.len());
    // What is the agent's is as it stands.
    let is_agents = |at: &usize| {
        let is_first =
            !words[*at].starts_with(b"-") && !is_directory(*at) && [&b"run"[..], b"acp"].contains(&words[command]);
        is_first || words[*at] == b"--"
    };
    let end = (command + 1..words.len()).find(is_agents).unwrap_or(words.len());
    quoted_line(&line((0..words.len()).filter(|at| *at >= end || !is_directory(*at)).map(|at| words[at])))
}

/// Whether a line runs an agent.
pub fn is_run(args: &[OsString]) -> bool {
    let words: Vec<&[u8]> = args.iter().skip(1).map(|arg| arg.as_encoded_bytes()).collect();
    let is_value = |at: usize| at > 0 && WITH_VALUE.contains(&words[at - 1]);
    (0..words.len()).find(|at| !words[*at].starts_with(b"-") && !is_value(*at)).is_some_and(|at| words[at] == b"run")
}

/// Where the command is in a line.
pub fn command_at(words: &[&[u8]]) -> Option<usize> {
    let is_value = |at: usize| at > 0 && [&b"-C"[..], b"--color"].contains(&words[at - 1]);
    (0..words.len()).find(|at| !words[*at].starts_with(b"-") && !is_value(*at))
}

/// The words with one `-C` in the place of whatever others there are.
pub fn in_one_place(words: &[&[u8]], place: PathBuf) -> Vec<OsString> {
    let own = apart(words).1;
    let rest = own.iter().chain(&words[own_end(words)..]).map(|word| OsStr::from_bytes(word).to_owned());
    ["-C".into(), place.into_os_string()].into_iter().chain(rest).collect()
}

/// What is told where `-C` stands before the command and behind it: clap goes by the last one alone.
pub fn two_places(args: &[OsString]) -> Option<Refusal> {
    let words: Vec<&[u8]> = args.iter().skip(1).map(|arg| arg.as_encoded_bytes()).collect();
    let place = place(&words).filter(|_| apart(&words).0.len() > 1)?;
    let placed = in_one_place(&words, place);
    let line = line(placed.iter().map(|word| word.as_encoded_bytes()));
    Some(Refusal::new(Code::Usage, format!("'{}' was given twice", "-C")).hint(run(&line)))
}

/// What is told of a command that ends with `--`, as the paths behind it were to be some, and would be all; or that has an option there.
pub fn no_paths(args: &[OsString]) -> Option<Refusal> {
    let first = args.iter().position(|arg| *arg == "--")?;
    let bytes = |arg: &OsString| arg.as_encoded_bytes().to_vec();
    let before = || args[1..first].iter().map(bytes);
    if first + 1 == args.len() {
        let refusal = Refusal::new(Code::Usage, "there is no path behind '--'");
        return Some(
            refusal.hint(format!("give the paths, or run {} where all are meant", quoted_line(&line(before())))),
        );
    }
    let is_option = |arg: &&OsString| bytes(arg).starts_with(b"--") && Path::new(arg).symlink_metadata().is_err();
    let (options, paths): (Vec<&OsString>, Vec<&OsString>) = args[first + 1..].iter().partition(is_option);
    let option = in_quotes(options.first()?.as_encoded_bytes().as_bstr());
    let apart = (!paths.is_empty()).then(|| b"--".to_vec());
    let placed =
        line(before().chain(options.into_iter().map(bytes)).chain(apart).chain(paths.iter().copied().map(bytes)));
    Some(Refusal::new(Code::Usage, format!("{option} stands behind '--', where paths are")).hint(run(&placed)))
}

/// What changes nothing of the help.
const IN_HELP: [&str; 6] = ["-h", "--help", "-q", "--quiet", "-v", "--verbose"];

/// `log -5` as `log -n 5`, and `help` without the options that it does without, as `help --help`.
pub fn spelled_out(args: Vec<OsString>) -> Vec<OsString> {
    let words: Vec<&[u8]> = args.iter().skip(1).map(|arg| arg.as_encoded_bytes()).collect();
    if let Some(help) = command_at(&words).filter(|at| words[*at] == b"help") {
        let is_option = |arg: &OsString| IN_HELP.iter().any(|option| arg == option);
        let kept = args.iter().enumerate().filter(|(at, arg)| *at <= help + 1 || !is_option(arg));
        return kept.map(|(_, arg)| arg.clone()).collect();
    }
    let Some(log) = args.iter().position(|arg| arg == "log") else { return args };
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let number = |arg: &OsString| {
        let digits = arg.to_str()?.strip_prefix('-')?;
        (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| OsString::from(format!("-n{digits}")))
    };
    let is_one = |at: usize| log < at && at < end && args[at - 1] != "-n" && args[at - 1] != "--number";
    args.iter().enumerate().map(|(at, arg)| number(arg).filter(|_| is_one(at)).unwrap_or_else(|| arg.clone())).collect()
}
