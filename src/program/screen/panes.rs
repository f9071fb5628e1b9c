//! Where on the screen what is: side by side where it is wide, one below the other where it is not.

use ratatui::layout::Rect;

/// From so many columns on, the list and what would change are side by side.
const WIDE: u16 = 90;

/// The places of a screen. What there is no room for is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Panes {
    pub title: Rect,
    /// What Enter would do now.
    pub told: Rect,
    pub list: Rect,
    pub files: Rect,
    pub diff: Rect,
    /// In the place of these three.
    pub help: Rect,
    pub keys: Rect,
}

impl Panes {
    /// Shares a screen out.
    pub fn of(width: u16, height: u16) -> Self {
        let told = if height >= 20 { 3 } else { 2 };
        let row =
            |y: u16, rows: u16| Rect { x: 0, y: y.min(height), width, height: rows.min(height.saturating_sub(y)) };
        let body = row(1 + told, height.saturating_sub(told + 2));
        let keys = row(height.saturating_sub(1), 1);
        let mut panes = Self { title: row(0, 1), told: row(1, told), help: body, keys, ..Self::default() };
        if width >= WIDE {
            let left = width * 9 / 20;
            let right = Rect { x: left + 1, width: width - left - 1, ..body };
            let files = (body.height / 3).max(2).min(body.height);
            panes.list = Rect { width: left, ..body };
            panes.files = Rect { height: files, ..right };
            panes.diff = Rect { y: right.y + files, height: right.height - files, ..right };
            return panes;
        }
        let list = if body.height < 8 { body.height } else { body.height / 2 };
        let rest = body.height - list;
        let files = if rest < 9 { rest } else { rest / 3 };
        panes.list = Rect { height: list, ..body };
        panes.files = Rect { y: body.y + list, height: files, ..body };
        panes.diff = Rect { y: body.y + list + files, height: rest - files, ..body };
        panes
    }

    /// How many rows of the list fit.
    pub fn rows(&self) -> usize {
        self.list.height.into()
    }

    /// How many files fit, below their heading.
    pub fn files(&self) -> usize {
        usize::from(self.files.height).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_lies_outside_of_the_screen_or_over_another() {
        for (width, height) in [(1, 1), (3, 4), (40, 10), (80, 24), (89, 50), (90, 12), (300, 80)] {
            let panes = Panes::of(width, height);
            let all = [panes.title, panes.told, panes.list, panes.files, panes.diff, panes.keys];
            let screen = Rect { x: 0, y: 0, width, height };
            for (at, pane) in all.iter().enumerate() {
                assert_eq!(pane.intersection(screen), *pane, "{width}x{height}: {pane:?}");
                let over = all[..at].iter().filter(|other| pane.intersects(**other) && height > 3);
                assert_eq!(over.count(), 0, "{width}x{height}: {pane:?} of {panes:?}");
            }
        }
        assert_eq!(Panes::of(40, 10).rows(), 6, "on the smallest the list has all of it");
    }
}
