//! The only place that prints: answers on stdout, all else on stderr.

use crate::cli::Color;
use crate::error::Refusal;
use crate::model::bytes::sanitized;
use console::Term;
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// How to talk to the user.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    /// One JSON object instead of text.
    pub json: bool,
    /// Answers and errors only.
    pub quiet: bool,
    /// Whether hints are wanted.
    pub hints: bool,
}

/// What a command has to say: text for people, one object for tools.
pub trait Answer {
    /// The JSON object's keys, without `v`.
    ///
    /// # Errors
    ///
    /// When it cannot be serialised.
    fn json(&self) -> serde_json::Result<serde_json::Value>;
    /// The lines for people; none for a command that has printed through git.
    fn text(&self) -> String;
    /// What to do next.
    fn hints(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Ui {
    /// Sets the colours up.
    pub fn colors(color: Color) {
        match color {
            Color::Auto => {}
            Color::Always => {
                console::set_colors_enabled(true);
                console::set_colors_enabled_stderr(true);
            }
            Color::Never => {
                console::set_colors_enabled(false);
                console::set_colors_enabled_stderr(false);
            }
        }
    }

    /// Prints an answer.
    ///
    /// # Errors
    ///
    /// When stdout cannot be written.
    pub fn answer(&self, answer: &dyn Answer) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        if self.json {
            writeln!(stdout, "{}", versioned(answer.json()?))?;
            return stdout.flush();
        }
        stdout.write_all(answer.text().as_bytes())?;
        stdout.flush()?;
        if !self.quiet && self.hints {
            for hint in answer.hints() {
                Self::note("hint", &hint);
            }
        }
        Ok(())
    }

    /// Prints bytes as they are.
    ///
    /// # Errors
    ///
    /// When stdout cannot be written.
    pub fn raw(bytes: &[u8]) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()
    }

    /// Says something on stderr that is no answer.
    pub fn warn(&self, text: &str) {
        if !self.quiet {
            Self::note("warning", text);
        }
    }

    /// Whether there is somebody at a terminal to be asked.
    pub fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && Term::stderr().is_term()
    }

    /// How wide the terminal is.
    pub fn width() -> usize {
        Term::stderr().size().1.into()
    }

    /// Lets the user search a list and choose from it; `None` when they leave it.
    ///
    /// # Errors
    ///
    /// When the terminal fails.
    pub fn choose(prompt: &str, lines: &[String], start: usize) -> Result<Option<usize>, dialoguer::Error> {
        let theme = dialoguer::theme::ColorfulTheme::default();
        let terminal = Term::stderr();
        let rows = usize::from(terminal.size().0).saturating_sub(4).clamp(3, 20);
        dialoguer::FuzzySelect::with_theme(&theme)
            .with_prompt(prompt)
            .items(lines)
            .default(start)
            .max_length(rows)
            .highlight_matches(true)
            .interact_on_opt(&terminal)
    }

    /// Asks for a yes or no; `None` when the user leaves it open.
    ///
    /// # Errors
    ///
    /// When the terminal fails.
    pub fn confirm(prompt: &str) -> Result<Option<bool>, dialoguer::Error> {
        dialoguer::Confirm::new().with_prompt(prompt).default(true).interact_on_opt(&Term::stderr())
    }

    /// Shows something on stderr that belongs to a question.
    pub fn show(text: &str) {
        // With stderr gone there is nobody left to ask.
        let _ = io::stderr().write_all(text.as_bytes());
    }

    /// Says on stderr what went wrong where nothing may come of it.
    pub fn complain(text: &str) {
        // With stderr gone there is nobody left to tell.
        let _ = writeln!(io::stderr(), "oxundo: {}", text.trim_end());
    }

    /// Reports an error or refusal.
    pub fn refuse(&self, refusal: &Refusal) {
        if self.json {
            #[derive(Serialize)]
            struct Report<'a> {
                v: u32,
                error: &'a Refusal,
            }
            let report = Report { v: 1, error: refusal };
            if let Ok(text) = serde_json::to_string(&report) {
                // With stdout gone there is nobody left to tell.
                let _ = writeln!(io::stdout(), "{text}");
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
        let text: Vec<_> = text.lines().map(sanitized).collect();
        // With stderr gone there is nobody left to tell.
        let _ = writeln!(io::stderr(), "{label} {}", text.join("\n"));
    }
}

/// The object that a command prints: its keys behind the version of their format.
pub fn versioned(value: serde_json::Value) -> serde_json::Value {
    let mut object = serde_json::Map::new();
    object.insert("v".to_owned(), 1.into());
    if let serde_json::Value::Object(keys) = value {
        object.extend(keys);
    }
    serde_json::Value::Object(object)
}
