//! A line of the terminal that says what is going on: from its first second on, until it is over.

use crate::progress::Phase;
use console::{Term, measure_text_width, truncate_str};
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For so long nothing is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// So often it is drawn.
const TICK: Duration = Duration::from_millis(100);

/// A bar is as long as there is room, and no longer than this.
const BAR: usize = 30;

static LINE: Mutex<Option<Line>> = Mutex::new(None);

/// What is going on.
#[derive(Debug)]
struct Line {
    since: Instant,
    unicode: bool,
    /// What it is on the whole, `undoing turn 2`, behind what it began within.
    wholes: Vec<String>,
    part: Part,
    is_drawn: bool,
}

/// What of it is being done.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Nothing,
    Files {
        doing: &'static str,
        done: u64,
        all: u64,
    },
    Git(String),
    /// Something that may want the terminal for itself.
    Others,
}

fn line() -> MutexGuard<'static, Option<Line>> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a bar says of a phase.
fn words(phase: Phase) -> &'static str {
    match phase {
        Phase::Scan => "looking at",
        Phase::Read => "reading",
        Phase::Count => "comparing",
        Phase::Stage => "staging",
        Phase::Apply => "writing",
    }
}

/// Something begins; the last that began within it names it as long as that goes on.
pub fn starts(whole: &str, unicode: bool) {
    let mut line = line();
    if let Some(line) = &mut *line {
        line.wholes.push(whole.to_owned());
        return;
    }
    let (wholes, part) = (vec![whole.to_owned()], Part::Nothing);
    *line = Some(Line { since: Instant::now(), unicode, wholes, part, is_drawn: false });
    drop(line);
    // Where the system gives no thread, nothing is shown.
    let _ = std::thread::Builder::new().name("progress".to_owned()).spawn(tick);
}

/// It is over.
pub fn finishes() {
    let mut line = line();
    if let Some(now) = &mut *line {
        now.wholes.pop();
        if now.wholes.is_empty() {
            now.clear();
            *line = None;
        }
    }
}

/// Files are worked on.
pub fn begins(phase: Phase, all: u64) {
    set(Part::Files { doing: words(phase), done: 0, all });
}

pub fn advances(files: u64) {
    if let Some(Line { part: Part::Files { done, .. }, .. }) = &mut *line() {
        *done += files;
    }
}

pub fn ends() {
    set(Part::Nothing);
}

/// A git command runs.
pub fn runs(command: &str) {
    let name: Vec<&str> = command.split(' ').take(2).collect();
    // It may ask for a password, and hooks print what they like.
    let is_quiet = !["git hook", "git commit-tree"].contains(&name.join(" ").as_str());
    set(if is_quiet { Part::Git(name.join(" ")) } else { Part::Others });
}

fn set(part: Part) {
    if let Some(line) = &mut *line() {
        if part == Part::Others {
            line.clear();
        }
        line.part = part;
    }
}

/// Has something else printed, and the line not in its way.
pub fn aside<T>(print: impl FnOnce() -> T) -> T {
    let mut line = line();
    if let Some(line) = &mut *line {
        line.clear();
    }
    print()
}

/// Draws the line as long as there is one.
fn tick() {
    loop {
        std::thread::sleep(TICK);
        let mut line = line();
        let Some(line) = &mut *line else { return };
        if line.since.elapsed() >= PATIENCE && line.part != Part::Others {
            line.draw();
        }
    }
}

impl Line {
    fn draw(&mut self) {
        let terminal = Term::stderr();
        let text = self.text(usize::from(terminal.size().1).saturating_sub(1));
        // With the terminal gone there is nobody left to tell.
        let _ = (&terminal).write_all(format!("\r{text}\x1b[K").as_bytes());
        self.is_drawn = true;
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = (&Term::stderr()).write_all(b"\r\x1b[K");
        }
    }

    /// `undoing turn 2 · writing 48,619 of 100,000`, and a bar where there is room.
    fn text(&self, width: usize) -> String {
        let (dot, more) = if self.unicode { (" \u{b7} ", "\u{2026}") } else { (" - ", "...") };
        let part = match &self.part {
            Part::Nothing | Part::Others => String::new(),
            // What is in no index is found on the way: nobody knows how much there is.
            Part::Files { doing, done, all } if done > all => format!("{doing} {} files", grouped(*done)),
            Part::Files { doing, done: 0, all } => format!("{doing} {} files", grouped(*all)),
            Part::Files { doing, done, all } => format!("{doing} {} of {}", grouped(*done), grouped(*all)),
            Part::Git(name) => name.clone(),
        };
        let whole = self.wholes.last().map_or("", String::as_str);
        let text = match (whole.is_empty(), part.is_empty()) {
            (_, true) => format!("{whole}{more}"),
            (true, false) => part,
            (false, false) => format!("{whole}{dot}{part}"),
        };
        let room = width.saturating_sub(measure_text_width(&text) + 1);
        match self.part {
            Part::Files { done, all, .. } if (1..=all).contains(&done) && room >= 10 => {
                format!("{text} {}", self.bar(done, all, room.min(BAR)))
            }
            _ => truncate_str(&text, width, "").into_owned(),
        }
    }

    fn bar(&self, done: u64, all: u64, room: usize) -> String {
        let filled = usize::try_from(done.saturating_mul(room as u64) / all.max(1)).unwrap_or(room).min(room);
        let (full, tip) = if self.unicode { ("\u{2501}", "\u{2578}") } else { ("=", ">") };
        let tip = if filled < room { tip } else { "" };
        full.repeat(filled) + tip
    }
}

/// A number as people read it.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(part: Part) -> Line {
        let wholes = vec!["undoing".to_owned(), "undoing turn 2".to_owned()];
        Line { since: Instant::now(), unicode: false, wholes, part, is_drawn: false }
    }

    #[test]
    fn a_line_says_what_is_done_of_what() {
        let writing = || Part::Files { doing: "writing", done: 48_619, all: 100_000 };
        assert_eq!(line(writing()).text(44), "undoing turn 2 - writing 48,619 of 100,000");
        assert_eq!(line(writing()).text(64), "undoing turn 2 - writing 48,619 of 100,000 ==========>");
        assert_eq!(line(writing()).text(20), "undoing turn 2 - wri");
        assert_eq!(line(Part::Nothing).text(80), "undoing turn 2...");
        assert_eq!(line(Part::Git("git update-index".into())).text(80), "undoing turn 2 - git update-index");
        let found = Part::Files { doing: "looking at", done: 12, all: 10 };
        assert_eq!(line(found).text(80), "undoing turn 2 - looking at 12 files");
        for width in 0..100 {
            assert!(measure_text_width(&line(writing()).text(width)) <= width.max(1), "{width}");
        }
    }

    #[test]
    fn what_has_begun_within_something_names_it_until_it_is_over() {
        let shown = || super::line().as_ref().map(|line| line.text(80));
        starts("redoing", false);
        starts("rolling back", false);
        assert_eq!(shown().as_deref(), Some("rolling back..."));
        finishes();
        assert_eq!(shown().as_deref(), Some("redoing..."));
        finishes();
        assert_eq!(shown(), None);
    }

    #[test]
    fn numbers_are_read_in_threes() {
        assert_eq!([0, 999, 1_000, 100_000, 1_234_567].map(grouped).join(" "), "0 999 1,000 100,000 1,234,567");
    }
}
