//! The manual: made from the command line's definitions, the table of keys and the texts in `src/help` and
//! `man/sections`, and held against what is committed. `OXUNDO_BLESS=1` writes it anew.

use crate::sandbox::{Sandbox, announce};
use clap::builder::ValueRange;
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use oxundo::internals::Cli;
use oxundo::internals::PAGES;
use oxundo::internals::{KEYS, variable};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

/// When the manual last changed in more than its wording.
const DATE: &str = "2026-11-21";

/// What stands before examples and meanings in the texts.
const DEEP: &str = "      ";

/// A line of roff is no longer than this: mandoc wants at most 80.
const WIDTH: usize = 72;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("man")
}

fn section(name: &str) -> String {
    let file = directory().join("sections").join(format!("{name}.txt"));
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("read {}: {error}", file.display()))
}

/// Every page as it should be, by its file's name.
fn pages() -> BTreeMap<String, String> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    // The manual has what the short help leaves out.
    command = command.mut_args(|arg| arg.hide_short_help(false));
    let mut pages = BTreeMap::new();
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let name = format!("oxundo-{}", sub.get_name());
        let text = sub.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let sub = sub.clone().mut_args(|arg| {
            let is_hidden = arg.is_hide_set() || arg.is_global_set() || arg.get_id() == "help";
            let arg = arg.hide_short_help(false);
            // What more there is to say of it goes on in the same lines.
            match arg.get_long_help().map(|help| help.to_string().replacen("\n\n", ". ", 1)) {
                Some(help) => arg.hide(is_hidden).long_help(help),
                None => arg.hide(is_hidden),
            }
        });
        let mut page = head(&name, "1", &about(&sub));
        page.push_str(&generated(&sub));
        page.push_str(&roff("  The options of every command, -C, --color, -q, -v and --json, are in oxundo(1)."));
        page.push_str(&roff(&text));
        page.push_str(&see_also(&name));
        pages.insert(format!("{name}.1"), page);
    }
    let mut page = head("oxundo", "1", &about(&command));
    page.push_str(&generated(&command));
    page.push_str(&commands(&command));
    page.push_str(&roff(&section("oxundo")));
    page.push_str(&roff(&command.get_after_long_help().map(ToString::to_string).unwrap_or_default()));
    page.push_str(&see_also("oxundo"));
    pages.insert("oxundo.1".to_owned(), page);
    for (name, number, about, text) in [
        ("git-oxundo", "1", "undo and redo for any coding agent, as a git command", roff(&section("git-oxundo"))),
        ("oxundo-config", "7", "the configuration of oxundo", keys(&section("config"))),
        ("oxundo-json", "7", "what oxundo prints as JSON", roff(&section("json"))),
        ("oxundo-storage", "7", "what oxundo keeps in git", roff(&section("storage"))),
    ] {
        pages.insert(format!("{name}.{number}"), head(name, number, about) + &text + &see_also(name));
    }
    pages
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let (first, rest) = about.split_at(1);
    first.to_lowercase() + rest
}

fn head(name: &str, number: &str, about: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let name = escaped(name);
    format!(
        ".\\\" Made by 'OXUNDO_BLESS=1 cargo test --test it manual' from src/program/args.rs, src/program/help and man/sections.\n\
         .TH {} {number} {DATE} \"oxundo {version}\" \"oxundo manual\"\n.ad l\n.nh\n.SH NAME\n{}",
        name.to_uppercase(),
        wrapped(&format!("{name} \\- {}", escaped(about)))
    )
}

/// What clap knows: synopsis, description and options.
fn generated(command: &Command) -> String {
    let man = Man::new(command.clone());
    let mut bytes = Vec::new();
    man.render_description_section(&mut bytes).expect("render the description");
    man.render_options_section(&mut bytes).expect("render the options");
    let text = String::from_utf8(bytes).expect("the manual is UTF-8");
    let is_preamble = |line: &str| line.starts_with(".ie ") || line.starts_with(".el ");
    let lines = text.lines().filter(|line| !is_preamble(line));
    let mut lines: Vec<_> = lines.map(|line| wrapped(&marked(&line.replace("\\*(Aq", "\\(aq")))).collect();
    lines.retain(|line| !line.is_empty());
    lines.dedup_by(|next, line| next == ".br\n" && line == ".br\n");
    let mut text = lines.concat();
    // The first words are the name's already.
    if command.get_long_about().is_some() {
        let (_, rest) = text.split_once(".PP\n").expect("the description goes on");
        text = format!(".SH DESCRIPTION\n{rest}");
    }
    format!(".SH SYNOPSIS\n{}{text}", wrapped(&synopsis(command)))
}

fn synopsis(command: &Command) -> String {
    let mut words = vec![format!("\\fB{}\\fR", escaped(command.get_bin_name().unwrap_or("oxundo")))];
    for arg in command.get_opts().chain(command.get_arguments().filter(|arg| !arg.get_num_args().is_some_and(takes))) {
        if arg.is_hide_set() {
            continue;
        }
        let short = arg.get_short().map(|short| format!("\\-{short}"));
        let long = arg.get_long().map(|long| escaped(&format!("--{long}")));
        let names: Vec<_> = short.into_iter().chain(long).map(|name| format!("\\fB{name}\\fR")).collect();
        let value = match arg.get_num_args() {
            Some(range) if range.min_values() > 0 => format!(" {}", value(arg)),
            Some(range) if takes(range) => format!(" [{}]", value(arg)),
            _ => String::new(),
        };
        words.push(format!("[{}{value}]", names.join("|")));
    }
    for arg in command.get_positionals() {
        let many = if arg.get_num_args().is_some_and(|range| range.max_values() > 2) { "..." } else { "" };
        let dashes = if arg.is_last_set() { "\\-\\- " } else { "" };
        let text = format!("{dashes}{}{many}", value(arg));
        words.push(if arg.is_required_set() { text } else { format!("[{text}]") });
    }
    if command.has_subcommands() {
        words.push("\\fICOMMAND\\fR".to_owned());
    }
    words.join(" ")
}

fn takes(range: ValueRange) -> bool {
    range.takes_values()
}

fn value(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    names.iter().map(|name| format!("\\fI{}\\fR", escaped(name))).collect::<Vec<_>>().join(" ")
}

/// `word` in bold.
fn marked(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return line.to_owned();
    }
    let part = |(at, part): (usize, &&str)| if at % 2 == 0 { (*part).to_owned() } else { format!("\\fB{part}\\fR") };
    parts.iter().enumerate().map(part).collect()
}

fn commands(command: &Command) -> String {
    let mut text = ".SH COMMANDS\n".to_owned();
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        text.push_str(&format!(".TP\n\\fBoxundo\\-{}\\fR(1)\n{}", sub.get_name(), wrapped(&escaped(&about(sub)))));
    }
    text
}

fn keys(text: &str) -> String {
    let (description, examples) = text.split_once("Examples:\n").expect("it has examples");
    let mut page = roff(description) + ".SH KEYS\n";
    for key in KEYS {
        let default = if key.default.is_empty() { "none" } else { key.default };
        page.push_str(&format!(".TP\n\\fBoxundo.{}\\fR\n", key.name));
        page.push_str(&wrapped(&escaped(&format!("{} Takes {}. Default: {default}.", key.about, key.values))));
        let command = if key.list { "git config --add" } else { "git config" };
        let quoted =
            if key.example.contains([' ', '*']) { format!("'{}'", key.example) } else { key.example.to_owned() };
        page.push_str(&format!(
            ".RS\n.nf\n{}\n.fi\n.RE\n",
            escaped(&format!("$ {command} oxundo.{} {quoted}", key.name))
        ));
    }
    page.push_str(".SH ENVIRONMENT\n");
    let variables: Vec<String> = KEYS.iter().map(|key| variable(key.name)).collect();
    page.push_str(&wrapped(&escaped(&format!("{}. Each stands over its key.", variables.join(", ")))));
    page + &roff(&format!("Examples:\n{examples}"))
}

fn see_also(name: &str) -> String {
    let near: &[&str] = match name {
        "oxundo" => &["git-oxundo(1)", "git(1)"],
        "git-oxundo" => &["oxundo-man(1)", "git(1)"],
        "oxundo-undo" => &["oxundo-redo(1)", "oxundo-rewind(1)", "oxundo-restore(1)", "oxundo-log(1)"],
        "oxundo-redo" => &["oxundo-undo(1)", "oxundo-rewind(1)"],
        "oxundo-rewind" => &["oxundo-undo(1)", "oxundo-redo(1)", "oxundo-log(1)"],
        "oxundo-run" => &["oxundo-undo(1)", "oxundo-init(1)", "oxundo-turn(1)"],
        "oxundo-log" => &["oxundo-show(1)", "oxundo-status(1)"],
        "oxundo-show" => &["oxundo-diff(1)", "oxundo-log(1)"],
        "oxundo-diff" => &["oxundo-show(1)", "git-diff(1)"],
        "oxundo-checkpoint" => &["oxundo-restore(1)", "oxundo-undo(1)"],
        "oxundo-describe" => &["oxundo-log(1)", "oxundo-show(1)"],
        "oxundo-keep" => &["oxundo-gc(1)", "oxundo-checkpoint(1)"],
        "oxundo-restore" => &["oxundo-show(1)", "oxundo-undo(1)"],
        "oxundo-init" => &["oxundo-uninstall(1)", "oxundo-hook(1)", "oxundo-doctor(1)"],
        "oxundo-uninstall" => &["oxundo-init(1)"],
        "oxundo-hook" | "oxundo-turn" => &["oxundo-init(1)", "oxundo-run(1)"],
        "oxundo-storage" => &["git-notes(1)", "git-reflog(1)"],
        "oxundo-json" => &["oxundo-log(1)", "oxundo-status(1)", "oxundo-undo(1)"],
        "oxundo-config" => &["git-config(1)"],
        _ => &[],
    };
    let all = ["oxundo(1)", "oxundo-config(7)", "oxundo-json(7)", "oxundo-storage(7)"];
    let others = all.into_iter().filter(|other| !other.starts_with(&format!("{name}(")));
    let names: Vec<_> = near.iter().copied().chain(others).map(escaped).collect();
    format!(".SH SEE ALSO\n{}", wrapped(&names.join(", ")))
}

/// The texts' own form: headings begin a line and end with a colon; paragraphs are indented by two. What is indented by
/// six or more is to be taken literally below a line that ends with a colon, and says what a term means below any other;
/// a short term has its meaning behind two spaces.
fn roff(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut page = String::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let below: Vec<&str> = lines[at + 1..].iter().copied().take_while(|line| line.starts_with(DEEP)).collect();
        at += 1 + below.len();
        let said = line.trim();
        let literal = |below: &[&str]| {
            let lines = below.iter().map(|line| escaped(line.strip_prefix(DEEP).unwrap_or(line)) + "\n");
            format!(".PP\n.nf\n.RS\n{}.RE\n.fi\n", lines.collect::<String>())
        };
        if said.is_empty() {
        } else if let Some(heading) = line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            page.push_str(&format!(".SH {}\n", quoted(&escaped(&heading.to_uppercase()))));
        } else if let Some((term, meaning)) = said.split_once("  ") {
            let meaning = format!("{} {}", meaning.trim(), below.join(" "));
            page.push_str(&format!(".TP\n\\fB{}\\fR\n{}", escaped(term), wrapped(&escaped(&meaning))));
        } else if below.is_empty() {
            page.push_str(&format!(".PP\n{}", wrapped(&marked(&escaped(said)))));
        } else if said.ends_with([':', '.']) {
            page.push_str(&format!(".PP\n{}{}", wrapped(&escaped(said)), literal(&below)));
        } else {
            page.push_str(&format!(".TP\n\\fB{}\\fR\n{}", escaped(said), wrapped(&escaped(&below.join(" ")))));
        }
    }
    // A heading has its own distance.
    let mut tidy = String::new();
    for line in page.lines() {
        let after_heading = tidy.lines().last().is_some_and(|last| last.starts_with(".SH"));
        if !(line == ".PP" && after_heading) {
            tidy.push_str(&format!("{line}\n"));
        }
    }
    tidy
}

fn quoted(words: &str) -> String {
    if words.contains(' ') { format!("\"{words}\"") } else { words.to_owned() }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '~' => escaped.push_str("\\(ti"),
            '^' => escaped.push_str("\\(ha"),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Text, in lines that are not too long. Requests are left as they are.
fn wrapped(text: &str) -> String {
    if text.starts_with('.') {
        return format!("{text}\n");
    }
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
            lines.push_str(&format!("{line}\n"));
            line.clear();
        }
        match line.is_empty() {
            // It is no request.
            true if word.starts_with('.') => line.push_str("\\&"),
            true => {}
            false => line.push(' '),
        }
        line.push_str(word);
    }
    if line.is_empty() { lines } else { format!("{lines}{line}\n") }
}

#[test]
fn the_pages_are_those_that_the_definitions_make() {
    let pages = pages();
    if std::env::var_os("OXUNDO_BLESS").is_some() {
        for (name, page) in &pages {
            fs::write(directory().join(name), page).expect("write a page");
        }
    }
    let mut stale: Vec<_> = pages
        .iter()
        .filter(|(name, page)| fs::read_to_string(directory().join(name)).ok().as_ref() != Some(page))
        .map(|(name, _)| name.clone())
        .collect();
    let committed = fs::read_dir(directory()).expect("list the manual").flatten();
    let names = committed.map(|entry| entry.file_name().to_string_lossy().into_owned());
    stale.extend(names.filter(|name| name != "sections" && !pages.contains_key(name)));
    assert!(stale.is_empty(), "run 'OXUNDO_BLESS=1 cargo test --test it manual', and look at: {stale:?}");
}

#[test]
fn every_page_is_in_the_program() {
    let mut embedded: Vec<_> = PAGES.iter().map(|(name, _)| (*name).to_owned()).collect();
    embedded.sort();
    assert_eq!(embedded, pages().into_keys().collect::<Vec<_>>(), "src/program/cmd/man.rs names every page");
}

#[test]
fn mandoc_finds_nothing_wrong() {
    let directory = tempfile::tempdir().expect("make a directory");
    for (name, page) in pages() {
        fs::write(directory.path().join(name), page).expect("write a page");
    }
    let lint = "command -v mandoc >/dev/null || exit 127; exec mandoc -Tlint -Wall *.[17]";
    let found = Process::new("sh").args(["-c", lint]).current_dir(directory.path()).output().expect("run sh");
    if found.status.code() == Some(127) {
        return skipped("mandoc");
    }
    let text = String::from_utf8_lossy(&found.stdout).into_owned() + &String::from_utf8_lossy(&found.stderr);
    assert!(found.status.success() && text.is_empty(), "mandoc -Tlint: {text}");
}

/// Says that a test could not be made here.
pub(crate) fn skipped(program: &str) {
    announce(&format!("SKIPPED: {program} is not installed"));
}

/// Runs oxundo without a repository, with these programs in the path.
fn oxundo(sandbox: &Sandbox, path: &str, args: &[&str]) -> (i32, String) {
    let mut command = sandbox.oxundo_command(args);
    let output = command.env("PATH", path).stdin(Stdio::null()).output().expect("run oxundo");
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_page_is_plain_text_where_there_is_no_man() {
    let sandbox = Sandbox::without_repository();
    for (name, page) in PAGES {
        let (code, text) = oxundo(&sandbox, "/nowhere", &["man", name]);
        assert_eq!(code, 0, "{name}");
        assert!(
            !text.contains("\\f") && !text.contains("\\-") && !text.contains("\n."),
            "{name} has roff in it: {text}"
        );
        assert!(text.lines().all(|line| line.len() <= 100), "{name} fits into a terminal: {text}");
        // clap says by itself what it is about, and leads to no other page.
        let own = ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "OPTIONS", "SEE ALSO", "ENVIRONMENT"];
        let headings = page.lines().filter_map(|line| line.strip_prefix(".SH ")).map(|line| line.trim_matches('"'));
        for heading in headings.map(|heading| heading.replace("\\(aq", "'")).filter(|name| !own.contains(&&**name)) {
            let wanted = format!("{heading}:");
            assert!(text.lines().any(|line| line.eq_ignore_ascii_case(&wanted)), "{name} has {heading}: {text}");
        }
    }
    let of = |page| oxundo(&sandbox, "/nowhere", &["man", page]);
    assert_eq!(of("ui"), of("rewind"), "a command's other name is its page's, too");
    let (_, text) = oxundo(&sandbox, "/nowhere", &["man", "undo"]);
    assert!(text.contains("      --to <TURN>\n          Go until this turn is the last one done\n"), "{text}");
    assert!(text.contains("\n      $ oxundo undo 3 --dry-run\n"), "{text}");
    let (_, text) = oxundo(&sandbox, "/nowhere", &["man", "config"]);
    assert!(KEYS.iter().all(|key| text.contains(&format!("\n  oxundo.{}\n      ", key.name))), "every key: {text}");
    let (_, text) = oxundo(&sandbox, "/nowhere", &["man"]);
    assert!(text.contains("\nExit status:\n") && text.contains("OXUNDO_STORE"), "{text}");
}

#[test]
fn a_page_is_shown_by_man() {
    let sandbox = Sandbox::without_repository();
    let programs = sandbox.home().join("bin");
    fs::create_dir(&programs).expect("make a directory");
    for (script, shown) in [("cat \"$1\"", true), ("exit 16", false)] {
        fs::write(programs.join("man"), format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")).expect("write a program");
        fs::set_permissions(programs.join("man"), fs::Permissions::from_mode(0o755)).expect("make it a program");
        let (code, text) = oxundo(&sandbox, &programs.to_string_lossy(), &["man", "config"]);
        assert_eq!(code, 0);
        assert_eq!(text.starts_with(".\\\""), shown, "what man cannot show is shown as text: {text}");
        assert!(text.contains("maxFileSize"), "{text}");
    }
    let left = fs::read_dir(std::env::temp_dir()).expect("list the temporary files").flatten();
    let mine = |name: String| name.starts_with("oxundo-man-");
    assert!(!left.map(|entry| entry.file_name().to_string_lossy().into_owned()).any(mine), "nothing is left behind");
}

#[test]
fn a_page_that_is_not_there_is_not_found() {
    let sandbox = Sandbox::without_repository();
    let (code, text) = oxundo(&sandbox, "/nowhere", &["--json", "man", "nothing"]);
    assert_eq!(code, 1);
    assert!(text.contains("\"not_found\"") && text.contains("storage"), "{text}");
}

#[test]
fn all_pages_are_installed_without_a_repository() {
    let sandbox = Sandbox::without_repository();
    for (args, wanted) in [
        (&["man", "--install"][..], sandbox.home().join(".local/share/man")),
        (&["man", "--install", "there"][..], sandbox.root().join("there")),
    ] {
        for _ in 0..2 {
            let (code, text) = oxundo(&sandbox, "/nowhere", args);
            assert_eq!(code, 0, "{text}");
            assert!(text.contains(&*wanted.to_string_lossy()), "{text}");
        }
        for (name, page) in PAGES {
            let section = &name[name.len() - 1..];
            let file = wanted.join(format!("man{section}")).join(name);
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), Some(*page), "{}", file.display());
        }
    }
}

#[test]
fn git_finds_the_page_of_its_command() {
    if Process::new("man").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skipped("man");
    }
    let sandbox = Sandbox::new();
    sandbox.oxundo(["man", "--install"]).success();
    let text = sandbox.sh("MANPATH=\"$HOME/.local/share/man\" git help oxundo");
    assert!(text.contains("git oxundo COMMAND"), "{text}");
}

#[test]
fn every_key_that_the_code_reads_is_in_the_table() {
    let config =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config.rs")).expect("read a source");
    for key in KEYS {
        assert!(config.contains(&format!("(\"{}\"", key.name)), "oxundo.{} is read", key.name);
    }
    let called = ["given(\"", "text(\"", "command(\"", "words(\"", "choice(\"", "flag(\"", "number(\""];
    let read = called.iter().flat_map(|call| config.split(call).skip(1)).filter_map(|rest| rest.split('"').next());
    let mut count = 0;
    for name in read {
        assert!(KEYS.iter().any(|key| key.name == name), "oxundo.{name} is in src/config/keys.rs");
        count += 1;
    }
    assert!(count >= KEYS.len(), "every key is read: {count}");
}

/// Every key of an object and of those in it.
fn all_keys(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(keys) => {
            for (key, value) in keys {
                found.push(key.clone());
                all_keys(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| all_keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_key_of_the_json_is_in_the_manual() {
    let json = section("json");
    let repo = Sandbox::new();
    repo.write("README.txt", "dirty\n");
    repo.agent("echo 1 >one.txt");
    repo.agent("echo 2 >one.txt");
    let commands: &[&[&str]] = &[
        &["checkpoint", "here"],
        &["checkpoint", "--list"],
        &["describe", "1", "-m", "the first"],
        &["keep", "1"],
        &["status"],
        &["log"],
        &["log", "--ops"],
        &["show", "1"],
        &["show", "1:one.txt"],
        &["show", "1:"],
        &["diff", "1"],
        &["undo", "--dry-run"],
        &["undo"],
        &["redo"],
        &["undo", "--only", "1", "--dry-run"],
        &["restore", "1"],
        &["branch", "other", "1"],
        &["squash", "--dry-run", "-m", "one"],
        &["turn", "begin"],
        &["turn", "end"],
        &["init", "claude"],
        &["doctor"],
        &["uninstall", "--dry-run"],
        &["gc"],
        &["gc", "--stores"],
        &["man"],
        &["man", "--install"],
        &["completions", "bash"],
        &["undo", "--to", "999"],
    ];
    for args in commands {
        let (_, value) = repo.json(args.iter().copied());
        let mut found = Vec::new();
        all_keys(&value, &mut found);
        for key in found {
            assert!(json.contains(&format!("\"{key}\"")), "{args:?} prints {key:?}: it is in man/sections/json.txt");
        }
    }
}

#[test]
fn every_command_and_argument_has_a_line_of_help() {
    let mut command = Cli::command();
    command.build();
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
        assert!(sub.get_about().is_some(), "{} says what it does", sub.get_name());
        assert!(sub.get_after_long_help().is_some(), "{} has examples", sub.get_name());
        for arg in sub.get_arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let place = format!("{} {}", sub.get_name(), arg.get_id());
            assert!(help.chars().next().is_some_and(char::is_uppercase), "{place} begins with a capital: {help:?}");
            assert!(!help.ends_with('.') && help.lines().count() == 1, "{place} is one line: {help:?}");
        }
    }
    let text = Sandbox::without_repository().oxundo(["help", "undo"]).out();
    assert!(text.contains("$ oxundo undo --to 12"), "the help shows examples: {text}");
}
