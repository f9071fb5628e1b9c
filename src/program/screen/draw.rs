//! Draws the timeline screen, cell by cell.

use crate::error::Refusal;
use crate::program::screen::deed::{Deed, Told};
use crate::program::screen::glyphs::Glyphs;
use crate::program::screen::keys::help_rows;
use crate::program::screen::row::{Mark, Row, harmless};
use crate::program::screen::state::{Asked, Mode, Screen};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Widget, Wrap};

/// How it is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    pub glyphs: Glyphs,
    pub colored: bool,
}

impl Paint {
    fn color(self, color: Color) -> Style {
        if self.colored { Style::new().fg(color) } else { Style::new() }
    }
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// Draws all of it; gives where the cursor is, where words are typed.
pub fn draw(screen: &Screen, buffer: &mut Buffer, paint: Paint) -> Option<Position> {
    let panes = screen.panes();
    put(buffer, panes.title, 0, &title(screen, paint), paint);
    if let Mode::Help(first) = screen.mode {
        help(buffer, panes.help, first, paint);
    } else {
        list(screen, buffer, panes.list, paint);
        files(screen, buffer, panes.files, paint);
        diff(screen, buffer, panes.diff, paint);
    }
    let lines = told(screen, paint);
    match screen.mode {
        // Whoever is asked is to have all of it before their eyes.
        Mode::Confirm(..) => folded(buffer, panes.told.union(panes.help), &lines, paint),
        _ => folded(buffer, panes.told, &lines, paint),
    }
    keys(screen, buffer, panes.keys, paint)
}

/// Puts a line into a pane; what does not fit is cut off, and that is seen.
fn put(buffer: &mut Buffer, pane: Rect, row: u16, line: &Line<'_>, paint: Paint) {
    if row < pane.height && pane.width > 0 {
        buffer.set_line(pane.x, pane.y + row, line, pane.width);
        if line.width() > pane.width.into() {
            cut_at(buffer, pane.right() - 1, pane.y + row, paint);
        }
    }
}

/// Puts lines into a pane, each in as many rows as it needs where those after it have one still; what is below them stays.
fn folded(buffer: &mut Buffer, pane: Rect, lines: &[Line<'_>], paint: Paint) {
    let mut rest = if pane.width > 0 { pane } else { Rect::ZERO };
    for (at, line) in lines.iter().enumerate() {
        let text = Paragraph::new(line.clone()).wrap(Wrap { trim: false });
        let needed = rows_of(&text, pane);
        let later = u16::try_from(lines.len() - at - 1).unwrap_or(u16::MAX);
        let rows = needed.min(rest.height.saturating_sub(later).max(1)).min(rest.height);
        let area = Rect { height: rows, ..rest };
        Clear.render(area, buffer);
        if rows < needed.min(2) {
            put(buffer, area, 0, line, paint);
        } else {
            text.render(area, buffer);
            if rows < needed {
                cut_at(buffer, area.right() - 1, area.bottom() - 1, paint);
            }
        }
        rest = Rect { y: rest.y + rows, height: rest.height - rows, ..rest };
    }
}

/// How many rows a text takes, so far as they fit.
fn rows_of(text: &Paragraph<'_>, pane: Rect) -> u16 {
    let mut scratch = Buffer::empty(Rect { height: pane.height + 1, ..pane });
    text.render(scratch.area, &mut scratch);
    let is_used = |y: &u16| (scratch.area.left()..scratch.area.right()).any(|x| scratch[(x, *y)].symbol() != " ");
    let last = (scratch.area.top()..scratch.area.bottom()).rev().find(is_used);
    last.map_or(1, |y| y + 1 - scratch.area.top())
}

/// Shows in a cell that what is before it goes on.
fn cut_at(buffer: &mut Buffer, x: u16, y: u16, paint: Paint) {
    let before = x.saturating_sub(1);
    if before < x && is_wide(buffer, before, y) {
        buffer[(before, y)].set_symbol(" ");
    }
    if let Some(cell) = buffer.cell_mut((x, y)) {
        cell.set_symbol(paint.glyphs.cut);
    }
}

fn is_wide(buffer: &Buffer, x: u16, y: u16) -> bool {
    buffer.cell((x, y)).is_some_and(|cell| Span::raw(cell.symbol()).width() > 1)
}

fn title(screen: &Screen, paint: Paint) -> Line<'static> {
    let turns = screen.timeline.turns.len();
    let more = if screen.timeline.more { "+" } else { "" };
    let noun = if turns == 1 && !screen.timeline.more { "turn" } else { "turns" };
    let mut line = Line::from(vec![
        Span::styled("oxundo", bold()),
        Span::raw(format!("  {}, {turns}{more} {noun}", screen.timeline.branch)),
    ]);
    if !screen.search.is_empty() {
        let (found, so_far) = (screen.shown.len(), if screen.timeline.more { " so far" } else { "" });
        line.push_span(Span::styled(
            format!("  /{} ({found} found{so_far})", screen.search),
            paint.color(Color::Yellow),
        ));
    }
    line
}

/// What Enter would do now.
fn told(screen: &Screen, paint: Paint) -> Vec<Line<'static>> {
    let Some(deed) = screen.deed() else {
        let words = match screen.row() {
            _ if !screen.is_read => "reading the timeline",
            None if screen.timeline.more => "reading the timeline",
            None => "nothing is found",
            Some(_) => "this turn is still in progress",
        };
        return vec![Line::styled(words, dim())];
    };
    let known = screen.told.as_ref().filter(|(known, _)| *known == deed);
    match known.map(|(_, told)| told) {
        None => vec![Line::styled(format!("Enter: {} {}", of(&deed), paint.glyphs.ellipsis), dim())],
        Some(Ok(told)) => plan(told, paint),
        Some(Err(refusal)) => refused(refusal, paint),
    }
}

fn of(deed: &Deed) -> String {
    match deed {
        Deed::Go { to, .. } => format!("go to {}", harmless(to)),
        Deed::Exact(state) => format!("go to {} as a whole", harmless(state)),
        Deed::Only(turn) => format!("take {turn} out"),
        Deed::Revert(turn) => format!("revert what is later than {turn}"),
        Deed::Path { state, .. } => format!("bring a file back from {}", harmless(state)),
        Deed::Hunks(_) => "bring back what was chosen".to_owned(),
        Deed::Branch { name, .. } => format!("start branch {}", harmless(name)),
    }
}

fn plan(told: &Told, paint: Paint) -> Vec<Line<'static>> {
    let line = |(at, line): (usize, &String)| match at {
        0 => Line::styled(format!("Enter: {}", harmless(line.strip_prefix("Would ").unwrap_or(line))), bold()),
        _ => Line::styled(harmless(line), paint.color(Color::Yellow)),
    };
    told.lines.iter().enumerate().map(line).collect()
}

fn refused(refusal: &Refusal, paint: Paint) -> Vec<Line<'static>> {
    let red = paint.color(Color::Red).add_modifier(Modifier::BOLD);
    // What it says is that there is nothing to do, and no line leads on from there.
    if refusal.code == crate::error::Code::Nothing {
        return vec![Line::styled(harmless(&refusal.message), bold())];
    }
    let word = "refused: ";
    let mut lines = vec![Line::from(vec![Span::styled(word, red), Span::raw(harmless(&refusal.message))])];
    lines.extend(
        refusal.hints.iter().map(|hint| Line::styled(format!("hint: {}", harmless(hint)), paint.color(Color::Cyan))),
    );
    lines
}

fn list(screen: &Screen, buffer: &mut Buffer, pane: Rect, paint: Paint) {
    if screen.shown.is_empty() && screen.is_read {
        let words = if screen.search.is_empty() { "no turns yet" } else { "nothing found" };
        return put(buffer, pane, 0, &Line::styled(words, dim()), paint);
    }
    let shown = screen.shown.iter().enumerate().skip(screen.first);
    let numbers = screen.timeline.turns.iter().map(|turn| turn.number.to_string().len()).max().unwrap_or(1);
    for (row, (at, index)) in (0..pane.height).zip(shown) {
        let is_chosen = at == screen.at;
        let of_row = &screen.rows[*index];
        let is_open = screen.unfolded.contains(&of_row.place);
        put(buffer, pane, row, &left(of_row, is_chosen, is_open, numbers, paint), paint);
        right(buffer, pane, row, of_row, paint);
        if is_chosen && screen.mode != Mode::Files {
            let line = Rect { y: pane.y + row, height: 1, ..pane };
            buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
}

/// A row from its left: what it is.
fn left(row: &Row, is_chosen: bool, is_open: bool, numbers: usize, paint: Paint) -> Line<'_> {
    let glyphs = paint.glyphs;
    let (glyph, style) = match row.mark {
        Mark::Now => (glyphs.now, paint.color(Color::Green).add_modifier(Modifier::BOLD)),
        Mark::Done => (glyphs.done, Style::new()),
        Mark::Undone => (glyphs.undone, dim()),
        Mark::Open => (glyphs.open, paint.color(Color::Yellow)),
        Mark::Left => (glyphs.left, dim()),
        Mark::Step => (glyphs.step, if row.forward { dim() } else { Style::new() }),
        Mark::Named => (glyphs.named, paint.color(Color::Cyan)),
        Mark::Rescue => (glyphs.rescue, paint.color(Color::Cyan)),
    };
    let fold = match (row.below, is_open) {
        (0, _) => " ",
        (_, true) => "-",
        (_, false) => "+",
    };
    let cursor = if is_chosen { ">" } else { " " };
    let number = row.number();
    let words = format!("{cursor}{fold}{:indent$}{glyph} {number:>numbers$} ", "", indent = 2 * row.depth);
    Line::from(vec![Span::styled(words, style), Span::styled(row.label.as_str(), style)])
}

/// A row from its right, where there is room: where it stands, its size, its age.
fn right(buffer: &mut Buffer, pane: Rect, row: u16, of_row: &Row, paint: Paint) {
    let word = match of_row.mark {
        Mark::Now => "now",
        Mark::Done => "",
        Mark::Step => "step",
        Mark::Undone => "undone",
        Mark::Open => "open",
        Mark::Left => "left",
        Mark::Named => "checkpoint",
        Mark::Rescue => "rescue",
    };
    let words: Vec<&str> =
        [word].into_iter().chain(of_row.marks.iter().copied()).filter(|word| !word.is_empty()).collect();
    let mut spans = Vec::new();
    if !words.is_empty() {
        spans.push(Span::styled(format!(" [{}]", words.join(", ")), bold()));
    }
    if let Some((_, plus, minus)) = of_row.changes.filter(|_| pane.width >= 50) {
        spans.push(Span::styled(format!(" +{plus}"), paint.color(Color::Green)));
        spans.push(Span::styled(format!(" -{minus}"), paint.color(Color::Red)));
    }
    if pane.width >= 60 && !of_row.age.is_empty() {
        spans.push(Span::styled(format!("  {}", of_row.age), dim()));
    }
    let line = Line::from(spans);
    let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
    if width > 0 && width < pane.width {
        let x = pane.right() - width;
        cut(buffer, Rect { x, y: pane.y + row, width, height: 1 }, paint);
        buffer.set_line(x, pane.y + row, &line, width);
    }
}

/// Makes room; what was there before it and goes on into it is cut off.
fn cut(buffer: &mut Buffer, room: Rect, paint: Paint) {
    let before = room.x.saturating_sub(1);
    let is_over = buffer.cell((room.x, room.y)).is_some_and(|cell| cell.symbol() != " ");
    let is_over = is_over || is_wide(buffer, before, room.y);
    for x in room.left()..room.right() {
        if let Some(cell) = buffer.cell_mut((x, room.y)) {
            cell.reset();
        }
    }
    if is_over {
        cut_at(buffer, before, room.y, paint);
    }
}

fn files(screen: &Screen, buffer: &mut Buffer, pane: Rect, paint: Paint) {
    let Some(told) = screen.plan() else { return };
    let count = told.files.len();
    let noun = if count == 1 { "file" } else { "files" };
    put(buffer, pane, 0, &heading(&format!("{count} {noun} would change"), pane, paint), paint);
    let is_focus = screen.mode == Mode::Files;
    for (row, (at, file)) in (1..pane.height).zip(told.files.iter().enumerate().skip(screen.first_file)) {
        let cursor = if at == screen.file { ">" } else { " " };
        let mut spans = vec![Span::raw(format!("{cursor}{:6} ", file.action))];
        if let Some((plus, minus)) = file.lines {
            spans.push(Span::styled(format!("+{plus} "), paint.color(Color::Green)));
            spans.push(Span::styled(format!("-{minus} "), paint.color(Color::Red)));
        }
        spans.push(Span::raw(file.shown.as_str()));
        put(buffer, pane, row, &Line::from(spans), paint);
        if is_focus && at == screen.file {
            let line = Rect { y: pane.y + row, height: 1, ..pane };
            buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
        }
    }
}

fn heading(words: &str, pane: Rect, paint: Paint) -> Line<'static> {
    let rule = paint.glyphs.rule;
    let rest = usize::from(pane.width).saturating_sub(words.len() + 4);
    Line::styled(format!("{rule}{rule} {words} {}", rule.repeat(rest)), dim())
}

fn diff(screen: &Screen, buffer: &mut Buffer, pane: Rect, paint: Paint) {
    let Some(told) = screen.plan() else { return };
    let Some(file) = told.files.get(screen.file) else { return };
    put(buffer, pane, 0, &heading(&file.shown, pane, paint), paint);
    let known =
        screen.diff.as_ref().filter(|(deed, path, _)| Some(deed) == screen.deed().as_ref() && *path == file.path);
    let Some((_, _, lines)) = known else { return };
    for (row, line) in (1..pane.height).zip(lines.iter().skip(screen.diff_first)) {
        let style = match line.as_bytes().first() {
            Some(b'+') => paint.color(Color::Green),
            Some(b'-') => paint.color(Color::Red),
            Some(b'@') => paint.color(Color::Cyan),
            _ => Style::new(),
        };
        put(buffer, pane, row, &Line::styled(line.as_str(), style), paint);
    }
}

fn help(buffer: &mut Buffer, pane: Rect, first: usize, paint: Paint) {
    for (row, (key, words)) in (0..pane.height).zip(help_rows(pane.width).into_iter().skip(first)) {
        let line = Line::from(vec![Span::styled(key, bold()), Span::raw(words)]);
        put(buffer, pane, row, &line, paint);
    }
}

/// Whether the help is longer than its pane.
fn is_longer(pane: Rect) -> bool {
    usize::from(pane.height) < help_rows(pane.width).len()
}

/// The line at the bottom: what was said, what is asked, or the keys.
fn keys(screen: &Screen, buffer: &mut Buffer, pane: Rect, paint: Paint) -> Option<Position> {
    let prompt = match &screen.mode {
        Mode::Words(what, text) => Some(format!("{}{text}", asks(what))),
        _ => None,
    };
    if let Some(prompt) = prompt {
        let line = Line::raw(prompt);
        let width = u16::try_from(line.width()).unwrap_or(u16::MAX);
        // Of what is longer than the line its end is shown.
        let over = width.saturating_sub(pane.width.saturating_sub(1));
        let words: String = skipped(&line.to_string(), over.into());
        put(buffer, pane, 0, &Line::styled(words, bold()), paint);
        return Some(Position { x: pane.x + width.saturating_sub(over), y: pane.y });
    }
    let words = match &screen.mode {
        Mode::Confirm(..) => question(screen),
        Mode::Help(_) if is_longer(screen.panes().help) => "Up, Down; any other key leaves the help".to_owned(),
        Mode::Help(_) => "any key leaves the help".to_owned(),
        _ if !screen.said.is_empty() => screen.said.clone(),
        Mode::Files => fitting(&FILE_KEYS, pane.width),
        _ => fitting(&LIST_KEYS, pane.width),
    };
    let style = match (&screen.mode, screen.said.is_empty()) {
        (Mode::Confirm(..), _) => bold(),
        (_, true) => dim(),
        (_, false) => paint.color(Color::Yellow),
    };
    put(buffer, pane, 0, &Line::styled(words, style), paint);
    None
}

/// The keys that are told of at the bottom, those first that are told of on the narrowest screen.
const LIST_KEYS: [&str; 13] = [
    "Enter go",
    "/ search",
    "? help",
    "q leave",
    "o only",
    "r revert",
    "p path",
    "P hunks",
    "b branch",
    "c checkpoint",
    "d describe",
    "v pager",
    "Tab files",
];
const FILE_KEYS: [&str; 7] =
    ["Tab back", "p this path", "P its hunks", "? help", "q leave", "v pager", "PageDown its difference"];

/// As many of them as there is room for.
fn fitting(keys: &[&str], width: u16) -> String {
    let mut line = String::new();
    for key in keys {
        let gap = if line.is_empty() { "" } else { "  " };
        if line.len() + gap.len() + key.len() > width.into() {
            break;
        }
        line.push_str(gap);
        line.push_str(key);
    }
    line
}

fn question(screen: &Screen) -> String {
    let is_refused = screen
        .deed()
        .is_some_and(|deed| screen.told.as_ref().is_some_and(|(known, told)| *known == deed && told.is_err()));
    match (&screen.mode, is_refused) {
        (_, true) => "this cannot be done now; Escape goes back".to_owned(),
        (Mode::Confirm(_, true), _) => "as soon as it is known; Escape goes back".to_owned(),
        _ => "do this? Enter or y does, Escape or n goes back".to_owned(),
    }
}

fn asks(what: &Asked) -> String {
    match what {
        Asked::Search => "/".to_owned(),
        Asked::Branch(turn) => format!("new branch at {}: ", harmless(turn)),
        Asked::Checkpoint => "name of the present state: ".to_owned(),
        Asked::Describe(turn) => format!("turn {turn} was about: "),
    }
}

/// A text without its first columns.
fn skipped(text: &str, columns: usize) -> String {
    let mut left = columns;
    let rest = text.char_indices().find(|(_, c)| {
        let is_there = left == 0;
        left = left.saturating_sub(Span::raw(c.to_string()).width());
        is_there
    });
    rest.map_or_else(String::new, |(at, _)| text[at..].to_owned())
}
