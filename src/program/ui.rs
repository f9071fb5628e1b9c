//! The only place that prints: answers on stdout, all else on stderr.

use crate::error::{Refusal, without_number};
use crate::git::objects::print::{DiffForm, DiffStyle};
use crate::model::bytes::{sanitized, with_quoted_lines};
use crate::ops::outcome::versioned;
use crate::program::args::Color;
use crate::program::going_on;
use crate::program::typed::{as_typed, for_the_same_place, note_place};
use crate::progress::{Phase, Progress, ProgressSink};
use crate::warning::Warning;
use anyhow::Result;
use console::Term;
use serde::Serialize;
use std::ffi::OsString;
use std::io;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// The line that was typed, which hints speak of.
static TYPED: OnceLock<Vec<OsString>> = OnceLock::new();

/// How to talk to the user.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Ui {
    /// One JSON object instead of text.
    pub json: bool,
    /// Answers and errors only.
    pub quiet: bool,
    /// What is done, and how long it takes.
    pub verbose: bool,
    /// Whether hints are wanted.
    pub hints: bool,
    /// When to use colours, as the command line has it.
    pub color: Color,
}

/// What the place allows that an answer goes to.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The columns of the terminal; `None` where there is no end to a line.
    pub width: Option<usize>,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
}

impl Look {
    /// What stands where something was cut off.
    pub fn ellipsis(self) -> &'static str {
        if self.unicode { "…" } else { "..." }
    }
}

/// What a command has to say: text for people, one object for tools.
pub trait Answer {
    /// The JSON object's keys, without `v`.
    fn json(&self) -> serde_json::Result<serde_json::Value>;
    /// The lines for people; none for a command that has printed through git.
    fn text(&self) -> String;
    /// What to do next.
    fn hints(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Ui {
    /// How git is to show a difference on this terminal.
    pub fn diff_style(stat: bool) -> DiffStyle {
        let form = if stat { DiffForm::Stat } else { DiffForm::Patch };
        DiffStyle { form, colored: console::colors_enabled(), waits: false }
    }

    /// Who shows the warnings of an operation, as they come.
    pub fn heard(&self) -> impl Fn(Warning) + '_ {
        |warning| if warning.is_vital { Self::note("warning", &warning.message) } else { self.warn(&warning.message) }
    }

    /// Sets the colours up. `configured` is git's `color.ui`.
    pub fn colors(&self, configured: Option<&str>) {
        let wanted = Wanted {
            flag: self.color,
            never: is_set("NO_COLOR"),
            force: std::env::var("CLICOLOR_FORCE").is_ok_and(|value| !value.is_empty() && value != "0"),
            off: std::env::var("CLICOLOR").is_ok_and(|value| value == "0")
                || std::env::var("TERM").is_ok_and(|value| value == "dumb"),
            configured,
        };
        // git itself says that it has put its pager in the terminal's place.
        let paged = std::env::var("GIT_PAGER_IN_USE").is_ok_and(|value| matches!(value.as_str(), "true" | "1"));
        console::set_colors_enabled(wanted.colors(io::stdout().is_terminal() || paged));
        console::set_colors_enabled_stderr(wanted.colors(io::stderr().is_terminal()));
    }

    /// What stdout allows.
    pub fn look() -> Look {
        let terminal = Term::stdout();
        let width = terminal.is_term().then(|| terminal.size().1.into());
        Look { width, unicode: is_unicode(|name| std::env::var(name).ok()) }
    }

    /// How many lines a terminal shows; `None` where there is no end to them.
    pub fn rows() -> Option<usize> {
        let terminal = Term::stdout();
        terminal.is_term().then(|| terminal.size().0.into())
    }

    /// Prints an answer.
    ///
    /// # Errors
    ///
    /// [`Unanswered`] where stdout takes no more.
    pub fn answer(&self, answer: &dyn Answer) -> Result<()> {
        self.page(answer, |_| false)
    }

    /// Prints an answer; one that is longer than the terminal's screen through `pager`, which tells whether
    /// it has shown it.
    pub fn page(&self, answer: &dyn Answer, pager: impl FnOnce(&[u8]) -> bool) -> Result<()> {
        if self.json {
            let text = without_controls(&versioned(answer.json()?).to_string());
            return Ok(print(format!("{text}\n").as_bytes()).map_err(Unanswered)?);
        }
        let text = answer.text();
        let terminal = Term::stdout();
        let is_long = terminal.is_term() && text.lines().count() >= usize::from(terminal.size().0);
        if !is_long || !pager(text.as_bytes()) {
            print(text.as_bytes()).map_err(Unanswered)?;
        }
        if !self.quiet && self.hints {
            let typed = TYPED.get().map(Vec::as_slice).unwrap_or_default();
            for hint in answer.hints() {
                Self::note("hint", &for_the_same_place(&with_quoted_lines(hint), typed));
            }
        }
        Ok(())
    }

    /// Who shows on stderr what is going on: a line on a terminal, for what lasts longer than a second, and
    /// all of it, with times, where much is wanted.
    pub fn watch(&self) -> ProgressSink {
        let shown = Term::stderr().is_term()
            && !self.quiet
            && !self.json
            && std::env::var("TERM").is_ok_and(|term| term != "dumb");
        let (verbose, quiet) = (self.verbose, self.quiet);
        let says = move |key: &str, line: &str| {
            if !quiet {
                Self::note(&format!("oxundo.{key}"), line);
            }
        };
        if !verbose && !shown {
            return ProgressSink::new(move |progress| {
                if let Progress::Says(key, line) = progress {
                    says(key, line);
                }
            });
        }
        let unicode = is_unicode(|name| std::env::var(name).ok());
        let timed: Mutex<Option<Timed>> = Mutex::default();
        ProgressSink::new(move |progress| {
            if shown {
                show(progress, unicode);
            }
            let mut timed = timed.lock().unwrap_or_else(PoisonError::into_inner);
            match progress {
                Progress::Begins(work, files) => *timed = Some(Timed::new(work, files)),
                Progress::Advances(files) => timed.iter_mut().for_each(|timed| timed.done += files),
                Progress::Ends => {
                    if let Some((name, text)) = timed.take().filter(|_| verbose).map(|timed| timed.told()) {
                        Self::note(name, &text);
                    }
                }
                Progress::Runs(line) if verbose => Self::note("run", line),
                Progress::Opens(what) if verbose => Self::note("open", what),
                Progress::Says(key, line) => says(key, line),
                Progress::Runs(_) | Progress::Opens(_) | Progress::Starts(_) | Progress::Finishes => {}
            }
        })
    }

    /// Prints bytes as they are.
    pub fn raw(bytes: &[u8]) -> Result<(), Unanswered> {
        print(bytes).map_err(Unanswered)
    }

    /// Where answers go.
    pub fn out() -> io::Stdout {
        io::stdout()
    }

    /// Prints one of many lines, at once.
    pub fn line(line: &str) -> Result<(), Unanswered> {
        print(format!("{}\n", without_controls(line)).as_bytes()).map_err(Unanswered)
    }

    /// Says something on stderr that is no answer.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            Self::note("warning", text);
        }
    }

    /// Whether somebody looks on at a terminal, who wants to be told what was done.
    pub fn is_watched(&self) -> bool {
        !self.json && !self.quiet && Term::stderr().is_term()
    }

    /// Whether there is somebody at a terminal to be asked.
    pub fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && Term::stderr().is_term()
    }

    /// Where a screen is drawn: what is asked is no answer.
    pub fn screen() -> io::Stderr {
        io::stderr()
    }

    /// Whether a whole screen can be drawn on the terminal.
    pub fn can_draw() -> bool {
        let is_able = std::env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb");
        is_able && Term::stderr().size_checked().is_some()
    }

    /// How a screen may look: whether in colours, and with more than ASCII.
    pub fn screen_look() -> (bool, bool) {
        (console::colors_enabled_stderr(), is_unicode(|name| std::env::var(name).ok()))
    }

    /// Asks for a line; `None` at the end of what is typed.
    pub fn ask(prompt: &str) -> io::Result<Option<String>> {
        Self::show(prompt);
        let mut line = String::new();
        let is_end = io::stdin().read_line(&mut line)? == 0;
        Ok((!is_end).then(|| line.trim().to_owned()))
    }

    /// Asks for a yes or no, where yes is what cannot be taken back; `None` when the user leaves it open.
    pub fn confirm_loss(prompt: &str) -> Result<Option<bool>, dialoguer::Error> {
        dialoguer::Confirm::new().with_prompt(prompt).default(false).interact_on_opt(&Term::stderr())
    }

    /// Shows something on stderr that belongs to a question.
    pub fn show(text: &str) {
        // With stderr gone there is nobody left to ask.
        let _ = going_on::aside(|| io::stderr().write_all(text.as_bytes()));
    }

    /// Says on stderr what went wrong where nothing may come of it.
    pub fn complain(text: &str) {
        // With stderr gone there is nobody left to tell.
        let _ = going_on::aside(|| writeln!(io::stderr(), "oxundo: {}", text.trim_end()));
    }

    /// Remembers the line that was typed.
    pub fn was_typed(line: &[OsString]) {
        note_place();
        let _ = TYPED.set(line.to_vec());
    }

    /// Reports an error or refusal.
    pub fn refuse(&self, refusal: &Refusal) {
        let typed = TYPED.get().map_or(&[][..], Vec::as_slice);
        let refusal = &as_typed(refusal.clone(), typed);
        if self.json {
            #[derive(Serialize)]
            struct Report<'a> {
                v: u32,
                error: &'a Refusal,
            }
            let report = Report { v: 1, error: refusal };
            let told =
                serde_json::to_string(&report).map(|text| print(format!("{}\n", without_controls(&text)).as_bytes()));
            if matches!(told, Ok(Ok(()))) {
                return;
            }
        }
        Self::note("error", &refusal.message);
        if self.hints {
            for hint in &refusal.hints {
                Self::note("hint", hint);
            }
        }
    }

    fn note(word: &str, text: &str) {
        let label = console::style(format!("{word}:")).for_stderr();
        let label = match word {
            "error" => label.red().bold(),
            "warning" => label.yellow(),
            _ => label.cyan(),
        };
        // Whoever wrote the paths and messages in it: a terminal is shown lines of text.
        let text: Vec<_> = without_number(text.to_owned()).lines().map(sanitized).collect();
        // With stderr gone there is nobody left to tell.
        let _ = going_on::aside(|| writeln!(io::stderr(), "{label} {}", text.join("\n")));
    }
}

/// stdout did not take an answer, though what was asked for is done.
#[derive(Debug)]
pub struct Unanswered(pub io::Error);

impl std::error::Error for Unanswered {}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "the answer cannot be written: {}", self.0)
    }
}

fn print(bytes: &[u8]) -> io::Result<()> {
    going_on::aside(|| {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    })
}

/// JSON in which the characters are escaped that some terminals take for commands, and JSON itself does not escape: they are
/// nowhere but in texts.
fn without_controls(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '\u{7f}'..='\u{9f}' => safe.push_str(&format!("\\u{:04x}", u32::from(char))),
            char => safe.push(char),
        }
    }
    safe
}

/// Has the terminal show what is going on.
fn show(progress: Progress<'_>, unicode: bool) {
    match progress {
        Progress::Starts(what) => going_on::starts(what, unicode),
        Progress::Finishes => going_on::finishes(),
        Progress::Begins(phase, files) => going_on::begins(phase, files),
        Progress::Advances(files) => going_on::advances(files),
        Progress::Ends => going_on::ends(),
        Progress::Runs(line) => going_on::runs(line),
        Progress::Opens(_) | Progress::Says(..) => {}
    }
}

/// A work, and how long it takes.
struct Timed {
    name: &'static str,
    since: Instant,
    done: u64,
    files: u64,
}

impl Timed {
    fn new(work: Phase, files: u64) -> Self {
        let name = match work {
            Phase::Scan => "scan",
            Phase::Read => "read",
            Phase::Count => "count",
            Phase::Stage => "stage",
            Phase::Apply => "apply",
        };
        Self { name, since: Instant::now(), done: 0, files }
    }

    fn told(&self) -> (&'static str, String) {
        let took = self.since.elapsed();
        let (files, tenths) = (self.files.max(self.done), took.subsec_micros() % 1000 / 100);
        (self.name, format!("{files} files in {}.{tenths} ms", took.as_millis()))
    }
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Whether the locale's characters are Unicode's, by the variables that tell.
fn is_unicode(variable: impl Fn(&str) -> Option<String>) -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.into_iter().filter_map(variable).find(|value| !value.is_empty()).unwrap_or_default();
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// All that has a say in whether there are colours.
struct Wanted<'a> {
    flag: Color,
    never: bool,
    force: bool,
    off: bool,
    configured: Option<&'a str>,
}

impl Wanted<'_> {
    /// The command line, then the environment, then git's configuration, then what is there.
    fn colors(&self, is_terminal: bool) -> bool {
        match (self.flag, self.never, self.force) {
            (Color::Always, ..) => return true,
            (Color::Never, ..) | (_, true, _) => return false,
            (_, _, true) => return true,
            (Color::Auto, false, false) => {}
        }
        match self.configured.map(str::to_ascii_lowercase).as_deref() {
            Some("always") => true,
            Some("false" | "never" | "no" | "off" | "0") => false,
            _ => is_terminal && !self.off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_by_flag_environment_configuration_and_terminal() {
        let auto = || Wanted { flag: Color::Auto, never: false, force: false, off: false, configured: None };
        assert!(auto().colors(true) && !auto().colors(false));
        assert!(!Wanted { off: true, ..auto() }.colors(true), "a dumb terminal");
        assert!(Wanted { force: true, off: true, ..auto() }.colors(false));
        assert!(!Wanted { force: true, never: true, ..auto() }.colors(true), "NO_COLOR has the last word");
        assert!(Wanted { flag: Color::Always, never: true, ..auto() }.colors(false), "but for the command line's");
        assert!(!Wanted { flag: Color::Never, force: true, ..auto() }.colors(true));
        assert!(Wanted { configured: Some("always"), ..auto() }.colors(false));
        for none in ["false", "never", "No"] {
            assert!(!Wanted { configured: Some(none), ..auto() }.colors(true), "{none}");
            assert!(Wanted { configured: Some(none), force: true, ..auto() }.colors(false), "{none}");
        }
        for usual in ["auto", "true", ""] {
            let wanted = Wanted { configured: Some(usual), ..auto() };
            assert!(wanted.colors(true) && !wanted.colors(false), "{usual}");
        }
    }

    #[test]
    fn the_first_variable_that_is_set_tells_the_locale() {
        let locale = |set: &[(&str, &str)]| {
            is_unicode(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(locale(&[("LANG", "de_DE.UTF-8")]) && locale(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!locale(&[]) && !locale(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(locale(&[("LC_ALL", ""), ("LANG", "en_US.UTF-8")]), "an empty one is not set");
    }
}
