//! What is on the terminal, cell by cell; what is to be there and is not is written. How wide some writing is, terminals do not
//! agree: lines with such are written as a whole, each piece where it belongs, so that nothing is left of what was there.

use ratatui::backend::{Backend, ClearType, CrosstermBackend};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::Position;
use ratatui::text::Span;
use std::io::{self, Write};

/// A terminal's screen, and what is on it.
pub struct Picture<W: Write> {
    terminal: CrosstermBackend<W>,
    shown: Buffer,
}

impl<W: Write> Picture<W> {
    /// Of a terminal on which nothing is.
    pub fn blank(out: W) -> Self {
        Self { terminal: CrosstermBackend::new(out), shown: Buffer::default() }
    }

    /// Shows this, and the cursor where there is one.
    pub fn show(&mut self, next: Buffer, cursor: Option<Position>) -> io::Result<()> {
        if self.shown.area != next.area {
            if !self.shown.area.is_empty() {
                self.terminal.clear_region(ClearType::All)?;
            }
            self.shown = Buffer::empty(next.area);
        }
        let rows: Vec<u16> = (0..next.area.height).filter(|row| self.is_whole(&next, *row)).collect();
        self.terminal.draw(self.shown.diff_iter(&next).filter(|(_, row, _)| !rows.contains(row)))?;
        for piece in rows.into_iter().flat_map(|row| pieces(&next, row)) {
            // Each begins where it is told to.
            self.terminal.draw(piece.into_iter())?;
        }
        match cursor {
            Some(at) => self.terminal.set_cursor_position(at).and_then(|()| self.terminal.show_cursor())?,
            None => self.terminal.hide_cursor()?,
        }
        self.shown = next;
        Backend::flush(&mut self.terminal)
    }

    /// Whether a line has changed, and is to be written as a whole.
    fn is_whole(&self, next: &Buffer, row: u16) -> bool {
        let (before, after) = (line(&self.shown, row), line(next, row));
        before != after && before.iter().chain(after).any(is_disputed)
    }
}

fn line(buffer: &Buffer, row: u16) -> &[Cell] {
    let width = usize::from(buffer.area.width);
    &buffer.content[usize::from(row) * width..][..width]
}

/// Whether terminals do not agree how wide it is: what is put together, as emoji, flags and the syllables of some scripts are,
/// and what is younger than many of them.
fn is_disputed(cell: &Cell) -> bool {
    let mut chars = cell.symbol().chars();
    chars.next().is_some_and(|first| first >= '\u{1f000}') || chars.next().is_some()
}

/// A line in pieces, each of which ends with what is disputed.
fn pieces(buffer: &Buffer, row: u16) -> Vec<Vec<(u16, u16, &Cell)>> {
    let mut pieces = vec![Vec::new()];
    let mut free = 0;
    for (column, cell) in (0..).zip(line(buffer, row)) {
        // What is wide has the cells behind it, too.
        if column < free {
            continue;
        }
        free = column + u16::try_from(Span::raw(cell.symbol()).width()).unwrap_or(1).max(1);
        if let Some(piece) = pieces.last_mut() {
            piece.push((column, row, cell));
        }
        if is_disputed(cell) {
            pieces.push(Vec::new());
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;
    use std::cell::RefCell;
    use std::num::NonZeroU16;
    use std::rc::Rc;

    /// A terminal that has a view of its own of how wide things are, and is read as people see it.
    #[derive(Clone)]
    struct Seen(Rc<RefCell<vt100::Parser>>);

    impl Write for Seen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().process(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn of(lines: [&str; 2]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 2));
        for (row, line) in (0..).zip(lines) {
            buffer.set_stringn(0, row, line, 30, Style::new());
            buffer.set_string(30, row, "[here]", Style::new());
        }
        buffer
    }

    #[test]
    fn what_terminals_do_not_agree_about_moves_nothing_and_leaves_nothing() {
        for words in [
            "family \u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466} name",
            "\u{1f1e9}\u{1f1ea}\u{1f1eb}\u{1f1f7} flags",
            "\u{1f469}\u{1f3fd}\u{200d}\u{1f4bb} skin \u{2764}\u{fe0f} keycap 1\u{fe0f}\u{20e3}",
            "\u{939}\u{93f}\u{928}\u{94d}\u{926}\u{940} \u{e19}\u{e49}\u{e33}",
        ] {
            let [lines, columns] = [2, 40].map(|size| NonZeroU16::new(size).expect("a screen has a size"));
            let seen = Seen(Rc::new(RefCell::new(vt100::Parser::new(lines, columns, 0))));
            let mut picture = Picture::blank(seen.clone());
            picture.show(of([words, "second"]), None).expect("show it");
            let shown = |row: u16, columns: std::ops::Range<u16>| -> String {
                let seen = seen.0.borrow();
                columns.filter_map(|column| seen.screen().cell(row, column)).map(vt100::Cell::contents).collect()
            };
            assert_eq!(shown(0, 30..36), "[here]", "{words:?}: what is behind it is where it belongs");
            assert_eq!(seen.0.borrow().screen().contents().lines().nth(1).map(str::len), Some(36), "{words:?}");
            picture.show(of(["", "second"]), None).expect("show it");
            assert_eq!(shown(0, 0..30).trim(), "", "{words:?}: nothing is left of it");
        }
    }
}
