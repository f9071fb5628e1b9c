//! `log --format`: a line of the user's own for each turn, by git's placeholders where they fit a turn, and names for the rest.

use crate::error::{Code, Refusal};
use crate::git::repo::date_form::{DateForm, ISO, ISO_STRICT, RFC};
use crate::model::bytes::sanitized;
use crate::model::turn::Turn;
use crate::program::text::line::Line;
use crate::program::ui::Look;
use console::{Alignment, measure_text_width, pad_str, truncate_str};

/// What is asked for.
#[derive(Debug)]
pub struct Format {
    parts: Vec<Part>,
    /// Whether a line ends behind each turn, as git has it but for `format:`.
    ends_lines: bool,
}

#[derive(Debug)]
enum Part {
    Text(String),
    Color(String),
    Place(Place),
    Value(Value),
}

/// So many columns for the next value.
#[derive(Clone, Copy, Debug)]
struct Place {
    columns: usize,
    alignment: Alignment,
    cuts: bool,
}

/// What of a turn is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Commit,
    ShortCommit,
    Subject,
    Body,
    Whole,
    Agent,
    Date(DateForm),
    /// As `--date` or `log.date` has it.
    UsualDate,
    Refs,
    RefsInBrackets,
    Named(&'static str),
}

/// The names of what git has no letter for.
const NAMES: [&str; 16] = [
    "turn",
    "state",
    "agent",
    "agents",
    "session",
    "sessions",
    "model",
    "branch",
    "worktree",
    "mode",
    "exit",
    "files",
    "renames",
    "insertions",
    "deletions",
    "prompt",
];

/// What a line is made of beside the turn itself.
pub struct Beside<'a> {
    pub dates: &'a DateForm,
    /// The branches whose tip is the turn's last commit, HEAD's first.
    pub refs: Vec<String>,
    pub look: Look,
}

impl Format {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// `usage` where something in it is no placeholder of a turn.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let own = text.strip_prefix("format:");
        let rest = own.or_else(|| text.strip_prefix("tformat:")).unwrap_or(text);
        if !rest.contains('%') && rest.len() == text.len() {
            return Err(unknown(text));
        }
        let mut parts = Vec::new();
        let mut rest = rest;
        while let Some(at) = rest.find('%') {
            parts.push(Part::Text(rest[..at].to_owned()));
            let (part, behind) = placeholder(&rest[at + 1..]).ok_or_else(|| unknown(&rest[at..]))?;
            parts.push(part);
            rest = behind;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self { parts, ends_lines: own.is_none() })
    }

    /// What is printed of these turns.
    pub fn text<'a>(&self, lines: impl Iterator<Item = (&'a Line, Beside<'a>)>) -> String {
        let lines: Vec<String> = lines.map(|(line, beside)| self.line(line, &beside)).collect();
        let text = lines.join("\n");
        if self.ends_lines && !lines.is_empty() { text + "\n" } else { text }
    }

    fn line(&self, line: &Line, beside: &Beside<'_>) -> String {
        let (mut text, mut place) = (String::new(), None);
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Color(code) if console::colors_enabled() => text.push_str(code),
                Part::Color(_) => {}
                Part::Place(next) => place = Some(*next),
                Part::Value(value) => {
                    let value = value.of(line, beside);
                    match place.take() {
                        Some(place) => text.push_str(&place.fill(&value, beside.look)),
                        None => text.push_str(&value),
                    }
                }
            }
        }
        text
    }
}

fn unknown(text: &str) -> Refusal {
    // It ends before the next one, or what no name has.
    let goes_on = |c: char| c.is_alphanumeric() || "(<>:-_ )".contains(c);
    let mut behind = text.char_indices().enumerate().skip(1);
    let end = behind.find(|(at, (_, c))| *at == 12 || !goes_on(*c)).map_or(text.len(), |(_, (at, _))| at);
    let message = format!("'{}' is no placeholder of a turn", sanitized(&text[..end]));
    let names = NAMES.map(|name| format!("%({name})")).join(" ");
    Refusal::new(Code::Usage, message).hint("run 'oxundo log --format=%h,%an,%ar,%s' to see how it goes").hint(format!(
        "beside git's %H %h %s %b %B %an %ad %ar %at %ai %aI %as %d %D %n %x09 %C(red) %<(9) there are {names}"
    ))
}

/// What stands behind a percent sign, and the rest.
fn placeholder(text: &str) -> Option<(Part, &str)> {
    let first = text.chars().next()?;
    let behind = &text[first.len_utf8()..];
    let value = |value| Some((Part::Value(value), behind));
    match first {
        '%' => Some((Part::Text("%".to_owned()), behind)),
        'n' => Some((Part::Text("\n".to_owned()), behind)),
        'x' => {
            let byte = u8::from_str_radix(behind.get(..2)?, 16).ok().filter(u8::is_ascii)?;
            Some((Part::Text(char::from(byte).to_string()), &behind[2..]))
        }
        'H' => value(Value::Commit),
        'h' => value(Value::ShortCommit),
        's' => value(Value::Subject),
        'b' => value(Value::Body),
        'B' => value(Value::Whole),
        'd' => value(Value::RefsInBrackets),
        'D' => value(Value::Refs),
        'a' | 'c' => {
            let letter = behind.chars().next()?;
            Some((Part::Value(of_person(letter)?), &behind[letter.len_utf8()..]))
        }
        '(' => {
            let (name, behind) = behind.split_once(')')?;
            let name = NAMES.iter().find(|known| **known == name)?;
            Some((Part::Value(Value::Named(name)), behind))
        }
        'C' => color(behind),
        '<' | '>' => place(text),
        _ => None,
    }
}

/// The agent is author and committer.
fn of_person(letter: char) -> Option<Value> {
    let pattern = |pattern: &str| Value::Date(DateForm::Pattern(pattern.to_owned()));
    Some(match letter {
        'n' | 'N' => Value::Agent,
        'd' => Value::UsualDate,
        'r' => Value::Date(DateForm::Relative),
        'h' => Value::Date(DateForm::Human),
        't' => pattern("%s"),
        'i' => pattern(ISO),
        'I' => pattern(ISO_STRICT),
        's' => pattern("%Y-%m-%d"),
        'D' => pattern(RFC),
        _ => return None,
    })
}

/// `%Cred`, `%C(bold red)`, `%C(auto)`.
fn color(text: &str) -> Option<(Part, &str)> {
    if let Some(words) = text.strip_prefix('(') {
        let (words, behind) = words.split_once(')')?;
        let codes = words.split([' ', ',']).filter(|word| !word.is_empty()).map(code).collect::<Option<Vec<_>>>()?;
        let codes: Vec<_> = codes.into_iter().filter(|code| !code.is_empty()).collect();
        let sign = if codes.is_empty() { String::new() } else { format!("\x1b[{}m", codes.join(";")) };
        return Some((Part::Color(sign), behind));
    }
    let word = ["reset", "red", "green", "blue"].into_iter().find(|word| text.starts_with(word))?;
    Some((Part::Color(format!("\x1b[{}m", code(word)?)), &text[word.len()..]))
}

fn code(word: &str) -> Option<&'static str> {
    Some(match word {
        "auto" | "always" => "",
        "reset" => "0",
        "bold" => "1",
        "dim" => "2",
        "italic" => "3",
        "ul" => "4",
        "reverse" => "7",
        "black" => "30",
        "red" => "31",
        "green" => "32",
        "yellow" => "33",
        "blue" => "34",
        "magenta" => "35",
        "cyan" => "36",
        "white" => "37",
        _ => return None,
    })
}

/// `%<(20)`, `%>(20,trunc)`, `%><(20)`.
fn place(text: &str) -> Option<(Part, &str)> {
    let (sign, rest) = text.split_once('(')?;
    let (inside, behind) = rest.split_once(')')?;
    let alignment = match sign {
        "<" => Alignment::Left,
        ">" => Alignment::Right,
        "><" => Alignment::Center,
        _ => return None,
    };
    let (columns, how) = inside.split_once(',').unwrap_or((inside, ""));
    let cuts = match how.trim() {
        "" => false,
        "trunc" => true,
        _ => return None,
    };
    let columns = columns.trim().parse().ok().filter(|columns| *columns <= 1000)?;
    Some((Part::Place(Place { columns, alignment, cuts }), behind))
}

impl Place {
    fn fill(self, value: &str, look: Look) -> String {
        let is_long = measure_text_width(value) > self.columns;
        let value =
            if is_long && self.cuts { truncate_str(value, self.columns, look.ellipsis()) } else { value.into() };
        pad_str(&value, self.columns, self.alignment, None).into_owned()
    }
}

impl Value {
    fn of(&self, line: &Line, beside: &Beside<'_>) -> String {
        let turn = &line.turn;
        let refs = || beside.refs.join(", ");
        match self {
            Self::Commit => line.commit().map(|id| id.to_string()).unwrap_or_default(),
            Self::ShortCommit => line.commit().map(|id| id.to_hex_with_len(7).to_string()).unwrap_or_default(),
            Self::Subject => sanitized(&subject_and_body(turn).0),
            Self::Body => safe_lines(&subject_and_body(turn).1),
            Self::Whole => safe_lines(&whole(turn)),
            Self::Agent => sanitized(&turn.agent),
            Self::Date(form) => form.in_lines(line.time()),
            Self::UsualDate => beside.dates.in_lines(line.time()),
            Self::Refs => refs(),
            Self::RefsInBrackets if beside.refs.is_empty() => String::new(),
            Self::RefsInBrackets => format!(" ({})", refs()),
            Self::Named(name) => named(name, line),
        }
    }
}

fn named(name: &str, line: &Line) -> String {
    let (turn, totals) = (&line.turn, line.turn.totals);
    let text = match name {
        "turn" => turn.turn.to_string(),
        "state" => line.state.word().to_owned(),
        "agent" => turn.agent.clone(),
        "session" => turn.session.clone().unwrap_or_default(),
        "sessions" => turn.sessions().iter().filter_map(|one| one.id).collect::<Vec<_>>().join(", "),
        "agents" => turn.assistants().join(", "),
        "model" => line.model().unwrap_or_default().to_owned(),
        "branch" => line.branch_name().unwrap_or_default().into_owned(),
        "worktree" => line.worktree().to_owned(),
        "mode" => turn.mode.word().to_owned(),
        "exit" => turn.exit_code.map(|code| code.to_string()).unwrap_or_default(),
        "files" => totals.files.to_string(),
        "renames" => line.renames().to_string(),
        "insertions" => totals.insertions.to_string(),
        "deletions" => totals.deletions.to_string(),
        _ => return safe_lines(&whole(turn)),
    };
    sanitized(&text)
}

/// What was asked for, or the message that was given, all of it.
fn whole(turn: &Turn) -> String {
    let said = turn.prompt.as_deref().or(turn.message.as_deref()).map(str::trim).filter(|text| !text.is_empty());
    said.map_or_else(|| turn.title(), str::to_owned)
}

/// As git parts a message: its first paragraph in one line, and the rest. Of a prompt git was told the first line.
fn subject_and_body(turn: &Turn) -> (String, String) {
    let whole = whole(turn);
    let lines: Vec<&str> = whole.lines().collect();
    let first = lines.iter().map(|line| line.trim_end()).take_while(|line| !line.is_empty());
    let (subject, behind) = if turn.prompt.is_some() {
        (turn.title(), 1)
    } else {
        let first: Vec<&str> = first.collect();
        (first.join(" "), first.len())
    };
    let body = lines.iter().skip(behind).skip_while(|line| line.trim().is_empty()).copied();
    (subject, body.collect::<Vec<_>>().join("\n"))
}

fn safe_lines(text: &str) -> String {
    text.lines().map(sanitized).collect::<Vec<_>>().join("\n")
}
