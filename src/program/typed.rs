//! Hints for the line that was typed: they have it as it was, and their own lines have the options with which it was.

use crate::error::Refusal;
use crate::git::repo::settings::boolean_of;
use crate::model::bytes::{quoted_line, shell_word, with_quoted_lines};
use crate::program::args::Cli;
use crate::program::usage::{command_at, in_one_place, line, own_end, place, run};
use clap::error::ErrorKind;
use gix::bstr::ByteSlice;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Commands that lead from state to state: what one of them refuses another may do.
const WALKS: [&str; 5] = ["undo", "redo", "restore", "branch", "squash"];

/// Options that say how something is done, and not what: whether a value follows each, and whether every command takes it.
const MANNERS: [(&str, bool, bool); 16] = [
    ("--json", false, true),
    ("-q", false, true),
    ("--quiet", false, true),
    ("-v", false, true),
    ("--verbose", false, true),
    ("--color", true, true),
    ("--dry-run", false, false),
    ("--plan", false, false),
    ("-p", false, false),
    ("--patch", false, false),
    ("--edits", true, false),
    ("--branches", true, false),
    ("--conversation", false, false),
    ("--mcp", false, false),
    ("--user", false, false),
    ("--project", false, false),
];

/// A refusal whose hints have the line that was typed where they speak of it, and its options.
pub fn as_typed(mut refusal: Refusal, args: &[OsString]) -> Refusal {
    let args = seen_from_the_shell(args);
    let words = words(&args);
    for hint in &mut refusal.hints {
        *hint = typed_hint(hint, &words);
    }
    refusal
}

/// A refusal of a line that is wrong: the lines of its hints have its options too.
pub fn in_the_same_way(mut refusal: Refusal, args: &[OsString]) -> Refusal {
    let args = seen_from_the_shell(args);
    let words = words(&args);
    for hint in &mut refusal.hints {
        *hint = with_magic(&from_there(in_this_manner(hint, &words), &words));
    }
    refusal
}

/// A hint whose lines are for where this line was.
pub fn for_the_same_place(hint: &str, args: &[OsString]) -> String {
    from_there(hint.to_owned(), &words(&seen_from_the_shell(args)))
}

/// Where git has led oxundo, before that goes elsewhere itself.
static LED: LazyLock<Option<PathBuf>> = LazyLock::new(led_by_git);

/// Remembers where this was typed.
pub fn note_place() {
    LazyLock::force(&LED);
}

/// A line as if oxundo and not git had been led to another directory.
fn seen_from_the_shell(args: &[OsString]) -> Vec<OsString> {
    let Some((led, program)) = LED.as_ref().zip(args.first()) else { return args.to_vec() };
    let words = words(args);
    let there = place(&words).map_or_else(|| led.clone(), |place| led.join(place));
    [program.clone()].into_iter().chain(in_one_place(&words, there)).collect()
}

fn words(args: &[OsString]) -> Vec<&[u8]> {
    args.iter().skip(1).map(|arg| arg.as_encoded_bytes()).collect()
}

/// What is said behind a line that takes turns out together, of the same paths.
const ALL_FROM: &str = "to take out all turns from";

/// A hint with the line that was typed in the place of the words for it.
fn typed_hint(hint: &str, words: &[&[u8]]) -> String {
    let elsewhere = hint.strip_prefix("run 'cd ").and_then(|rest| rest.strip_suffix("', then the same command again"));
    if let Some([there]) = elsewhere.and_then(|there| shell_words::split(there).ok()).as_deref()
        && place(words).is_some()
    {
        let placed = in_one_place(words, PathBuf::from(there));
        return run(&line(placed.iter().map(|word| word.as_encoded_bytes())));
    }
    for (spoken, option) in [
        ("pass --edits=overwrite", "--edits=overwrite"),
        ("pass --edits=merge", "--edits=merge"),
        ("pass --ghost", "--ghost"),
        ("pass --all", "--all"),
    ] {
        if hint.contains(spoken) {
            return hint.replace(spoken, &run(&with_option(words, option)));
        }
    }
    if let Some(line) = with_another_word(hint, words) {
        return run(&line);
    }
    let is_undo = command_at(words).is_some_and(|at| words[at] == b"undo");
    if hint.contains("'oxundo undo --revert'") && is_undo {
        return hint.replace("'oxundo undo --revert'", &quoted_line(&with_option(words, "--revert")));
    }
    let paths = words.iter().position(|word| *word == b"--").filter(|_| is_undo && hint.contains(ALL_FROM));
    let hint = &paths.map_or_else(|| hint.to_owned(), |at| with_paths(hint, &words[at..]));
    let again = quoted_line(&line(words));
    with_magic(&from_there(in_this_manner(hint, words), words))
        .replace("run the same command again", &format!("run {again} again"))
        .replace("then the same command again", &format!("then {again} again"))
        .replace("run this again", &format!("run {again} again"))
}

/// Where `git -C DIR oxundo` has gone, seen from where it was typed: git leaves the shell's word for that as it is.
fn led_by_git() -> Option<PathBuf> {
    let is_by_git = std::env::args_os().next()?.as_bytes().ends_with(b"git-oxundo");
    let typed_in = PathBuf::from(std::env::var_os("PWD").filter(|_| is_by_git)?).canonicalize().ok()?;
    let here = std::env::current_dir().ok()?.canonicalize().ok()?;
    match here.strip_prefix(&typed_in) {
        Ok(below) => Some(below.to_owned()).filter(|below| !below.as_os_str().is_empty()),
        Err(_) => Some(here),
    }
}

/// A hint whose lines are for the directory that `-C` names: they are typed where this one was.
fn from_there(hint: String, words: &[&[u8]]) -> String {
    let Some(place) = place(words).filter(|_| !hint.ends_with(" here")) else { return hint };
    let option = format!("-C {} ", shell_word(place.as_os_str().as_bytes()));
    let is_placed = |line: &str| line.split(' ').any(|word| word == "-C");
    with_quoted_lines(each_line(&hint, &["git ", "oxundo "], |line, _| match line.split_once(' ') {
        // One that names its directory already is right.
        Some((program, rest)) if !is_placed(line) => format!("{program} {option}{rest}"),
        _ => line.to_owned(),
    }))
}

/// A hint whose line is of these paths alone, as the one that was typed.
fn with_paths(hint: &str, paths: &[&[u8]]) -> String {
    let paths: Vec<String> = paths.iter().map(shell_word).collect();
    with_quoted_lines(each_line(hint, &["oxundo undo --only "], |line, _| format!("{line} {}", paths.join(" "))))
}

/// A hint whose pathspecs are read as they are meant, where the user has said that all are but names.
fn with_magic(hint: &str) -> String {
    let is_set = |value: String| boolean_of(&value) == Some(true);
    if !std::env::var("GIT_LITERAL_PATHSPECS").is_ok_and(is_set) {
        return hint.to_owned();
    }
    let has_magic = |line: &str| line.contains(" :/") || line.contains(" ':(");
    each_line(hint, &["git ", "oxundo "], |line, behind| {
        // A word in quotes is not part of the line here, but begins behind it.
        let is_meant =
            has_magic(line) || (line.ends_with(' ') && behind.get(1..).is_some_and(|word| word.starts_with(":(")));
        if is_meant { format!("GIT_LITERAL_PATHSPECS=0 {line}") } else { line.to_owned() }
    })
}

/// A hint with its lines made others, by themselves and what is said behind them.
fn each_line(hint: &str, programs: &[&str], other: impl Fn(&str, &str) -> String) -> String {
    let (mut told, mut rest) = (String::new(), hint);
    let starts = |rest: &str| {
        let quoted = |(at, _): (usize, &str)| programs.iter().any(|program| rest[at + 1..].starts_with(program));
        rest.match_indices(['\'', '`']).find(|found| quoted(*found)).map(|(at, _)| at + 1)
    };
    while let Some(start) = starts(rest) {
        // Words of it that are in quotes themselves come last, and stay as they are.
        let end = rest[start..].find(['\'', '`']).map_or(rest.len(), |end| start + end);
        told.push_str(&rest[..start]);
        told.push_str(&other(&rest[start..end], &rest[end..]));
        rest = &rest[end..];
    }
    told + rest
}

/// A hint whose lines do it in the manner of this line: who only looks, wants JSON or is asked is led on to no less.
fn in_this_manner(hint: &str, words: &[&[u8]]) -> String {
    let manner = manner(words);
    let Some(typed) = command_at(words).map(|at| String::from_utf8_lossy(words[at])) else { return hint.to_owned() };
    let is_walk = |name: &str| WALKS.contains(&name);
    each_line(hint, &["oxundo "], |line, behind| {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let at = command_at(&words[1..].iter().map(String::as_bytes).collect::<Vec<_>>());
        let Some(at) = at.map(|at| at + 1).filter(|_| !line.contains(" && ") && !is_help(line)) else {
            return line.to_owned();
        };
        // What has to be done before something else leads to that only where it is done.
        let is_first = behind.contains(" first") || behind.contains(", then");
        let is_alike = *words[at] == *typed || is_walk(&words[at]) && is_walk(&typed);
        for (option, is_global) in manner.iter().rev() {
            let name = option.split('=').next().unwrap_or(option);
            let has_it = words.iter().any(|word| word.split('=').next() == Some(name));
            if !has_it && (*is_global || is_alike && !is_first) && is_taken(&words, at, option) {
                words.insert(at + 1, option.clone());
            }
        }
        words.join(" ")
    })
}

/// The options of a line that say how, and whether every command takes each.
fn manner(words: &[&[u8]]) -> Vec<(String, bool)> {
    let end = own_end(words);
    let said = (0..end).filter_map(|at| {
        let text = std::str::from_utf8(words[at]).ok()?;
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let (_, has_value, is_global) = MANNERS.into_iter().find(|(known, ..)| *known == name)?;
        let next = || words.get(at + 1).and_then(|next| std::str::from_utf8(next).ok());
        let value = value.or_else(next).filter(|value| has_value && !value.starts_with('-'));
        if has_value && value.is_none() {
            return None;
        }
        Some((value.map_or_else(|| name.to_owned(), |value| format!("{name}={}", shell_word(value))), is_global))
    });
    said.collect()
}

fn is_help(line: &str) -> bool {
    line.starts_with("oxundo help ") || line.ends_with(" -h")
}

/// Whether a line's command takes an option, beside its own.
fn is_taken(words: &[String], command: usize, option: &str) -> bool {
    let mut words: Vec<OsString> = words.iter().map(Into::into).collect();
    words.insert(command + 1, option.into());
    let kind = Cli::parsed(&words).map_err(|error| error.kind());
    !matches!(kind, Err(ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict))
}

/// The line with one word for another, as [`instead`](crate::model::bytes::instead) has it.
fn with_another_word(hint: &str, words: &[&[u8]]) -> Option<String> {
    let (new, old) = hint.strip_prefix("give ")?.split_once(" instead of ")?;
    let old = old.strip_suffix(" where that is a name").unwrap_or(old);
    let replaced = words.iter().map(|given| match given.split_once_str("=") {
        _ if shell_word(given) == old => new.to_owned(),
        Some((option, value)) if shell_word(value) == old => format!("{}={new}", option.to_str_lossy()),
        _ => shell_word(given),
    });
    Some(format!("oxundo {}", replaced.collect::<Vec<_>>().join(" ")))
}

/// The line with an option right behind its command, in the place of what was said with `--edits`.
fn with_option(words: &[&[u8]], option: &str) -> String {
    let end = words.iter().position(|word| *word == b"--").unwrap_or(words.len());
    let is_edits =
        |at: usize| at < end && (words[at].starts_with(b"--edits") || (at > 0 && words[at - 1] == b"--edits"));
    let mut kept: Vec<&[u8]> = (0..words.len()).filter(|at| !is_edits(*at)).map(|at| words[at]).collect();
    let command = command_at(&kept).map_or(0, |at| at + 1);
    kept.insert(command, option.as_bytes());
    line(kept)
}
