//! What the timeline screen is at a moment: plain data, which keys change and which is drawn.

use crate::error::Refusal;
use crate::ops::request::Request;
use crate::program::screen::deed::{Deed, Told, Wanted};
use crate::program::screen::panes::Panes;
use crate::program::screen::row::{Mark, Place, Row, Timeline, rows, visible};
use gix::bstr::BString;
use std::collections::BTreeSet;

/// What is asked for in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Search,
    Branch(String),
    Checkpoint,
    Describe(u64),
}

/// What keys mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// They move in the list.
    #[default]
    List,
    /// They move among the files that would change.
    Files,
    /// They are letters.
    Words(Asked, String),
    /// They say yes or no; whether a yes was said before the plan was there.
    Confirm(Deed, bool),
    /// They move in the help, whose first row is this one; any other leaves it.
    Help(usize),
}

/// What is to be done outside of the screen.
#[derive(Clone, Debug)]
pub enum Action {
    Stay,
    Leave,
    Suspend,
    Do(Deed, Box<Told>),
    Page(Wanted),
    /// Have git ask what to bring back of this.
    Ask(Box<Request>, BString),
    Checkpoint(String),
    Describe(u64, String),
}

/// The screen.
#[derive(Default)]
pub struct Screen {
    pub timeline: Timeline,
    pub rows: Vec<Row>,
    /// Which rows are shown, from the top.
    pub shown: Vec<usize>,
    /// Which of those is chosen.
    pub at: usize,
    /// The first of them that fits on the screen.
    pub first: usize,
    pub unfolded: BTreeSet<Place>,
    pub search: String,
    pub mode: Mode,
    pub told: Option<(Deed, Result<Told, Refusal>)>,
    pub diff: Option<(Deed, BString, Vec<String>)>,
    /// The chosen file, and the first one that fits.
    pub file: usize,
    pub first_file: usize,
    pub diff_first: usize,
    /// What was done last, or could not be.
    pub said: String,
    pub size: (u16, u16),
    pub is_read: bool,
    /// Whether the last row is wanted, while rows are still being read.
    pub at_end: bool,
}

impl Screen {
    pub fn new(size: (u16, u16)) -> Self {
        Self { size, ..Self::default() }
    }

    pub fn panes(&self) -> Panes {
        Panes::of(self.size.0, self.size.1)
    }

    /// The chosen row.
    pub fn row(&self) -> Option<&Row> {
        self.shown.get(self.at).and_then(|at| self.rows.get(*at))
    }

    /// The timeline was read. What was chosen stays chosen; at first it is what one undo leads to.
    pub fn read(&mut self, timeline: Timeline) {
        let chosen = self.row().map(|row| row.place.clone());
        self.rows = rows(&timeline);
        self.timeline = timeline;
        self.show();
        let now = |row: &Row| row.mark == Mark::Now;
        let below = || {
            let now = self.shown.iter().position(|at| now(&self.rows[*at]))?;
            // Undo takes an open turn back first.
            if self.rows.iter().any(|row| row.mark == Mark::Open) {
                return Some(now);
            }
            let is_goal =
                |at: &usize| self.rows[self.shown[*at]].turn().is_some() || self.shown[*at] + 1 == self.rows.len();
            (now + 1..self.shown.len()).find(is_goal).or(Some(now))
        };
        let kept = |place| self.shown.iter().position(|at| self.rows[*at].place == place);
        let at = match chosen {
            _ if self.at_end => Some(self.shown.len().saturating_sub(1)),
            Some(chosen) if self.is_read => kept(chosen),
            _ => below(),
        };
        self.at = at.unwrap_or(0);
        self.at_end &= self.timeline.more;
        self.is_read = true;
        self.scroll();
    }

    /// Finds which rows are shown.
    pub fn show(&mut self) {
        self.shown = visible(&self.rows, &self.unfolded, &self.search);
    }

    /// What search or folding has changed: the chosen row stays where it is still shown.
    pub fn show_again(&mut self) {
        let chosen = self.row().map(|row| row.place.clone());
        self.show();
        let kept = chosen.and_then(|place| self.shown.iter().position(|at| self.rows[*at].place == place));
        self.choose(kept.unwrap_or(0));
    }

    /// No question that is on the screen is answered any more.
    pub fn forget(&mut self) {
        if matches!(self.mode, Mode::Confirm(..)) {
            self.mode = Mode::List;
            "something else has changed: look again".clone_into(&mut self.said);
        }
    }

    /// Chooses a shown row; the last one where there are fewer.
    pub fn choose(&mut self, at: usize) {
        self.at = at.min(self.shown.len().saturating_sub(1));
        self.at_end = at == usize::MAX && self.timeline.more;
        (self.file, self.first_file, self.diff_first) = (0, 0, 0);
        self.scroll();
    }

    pub fn go(&mut self, by: isize) {
        self.choose(self.at.saturating_add_signed(by));
    }

    /// Chooses a file that would change.
    pub fn choose_file(&mut self, at: usize) {
        self.file = at.min(self.files().saturating_sub(1));
        self.diff_first = 0;
        let fits = self.panes().files().max(1);
        self.first_file = self.first_file.clamp((self.file + 1).saturating_sub(fits), self.file);
    }

    pub fn go_file(&mut self, by: isize) {
        self.choose_file(self.file.saturating_add_signed(by));
    }

    pub fn go_diff(&mut self, by: isize) {
        let lines = self.diff.as_ref().map_or(0, |(_, _, lines)| lines.len());
        let fits = usize::from(self.panes().diff.height).saturating_sub(1);
        self.diff_first = self.diff_first.saturating_add_signed(by).min(lines.saturating_sub(fits));
    }

    /// The screen has another size, or other rows: the chosen one is on it.
    pub fn scroll(&mut self) {
        let fits = self.panes().rows().max(1);
        let last = self.shown.len().saturating_sub(fits);
        self.first = self
            .first
            .clamp((self.at + 1).saturating_sub(fits), self.at)
            .min(last.max(self.at.saturating_sub(fits - 1)));
    }

    /// What the choice would do.
    pub fn deed(&self) -> Option<Deed> {
        if let Mode::Confirm(deed, _) = &self.mode {
            return Some(deed.clone());
        }
        let row = self.row()?;
        match (&row.place, row.mark) {
            (_, Mark::Open) => None,
            (Place::Rescue(_), _) => Some(Deed::Exact(row.name())),
            // Redo leads to the ends of turns alone.
            (Place::Step(..), _) if row.forward => Some(Deed::Exact(row.name())),
            _ => Some(Deed::Go { to: row.name(), forward: row.forward }),
        }
    }

    /// What is to be looked at for what is shown.
    pub fn wanted(&self) -> Option<Wanted> {
        let deed = self.deed()?;
        let path = self.plan_of(&deed).and_then(|told| Some(told.files.get(self.file)?.path.clone()));
        Some(Wanted { deed, path })
    }

    /// What would be done, where that is known and not refused.
    pub fn plan_of(&self, deed: &Deed) -> Option<&Told> {
        let (known, told) = self.told.as_ref()?;
        told.as_ref().ok().filter(|_| known == deed)
    }

    /// The plan that is shown.
    pub fn plan(&self) -> Option<&Told> {
        self.plan_of(&self.deed()?)
    }

    /// How many files would change.
    pub fn files(&self) -> usize {
        self.plan().map_or(0, |told| told.files.len())
    }

    /// The path that is chosen.
    pub fn path(&self) -> Option<BString> {
        Some(self.plan()?.files.get(self.file)?.path.clone())
    }

    /// A plan came.
    pub fn know(&mut self, deed: Deed, told: Result<Told, Refusal>) -> Action {
        let is_ready = self.mode == Mode::Confirm(deed.clone(), true);
        self.told = Some((deed.clone(), told));
        match (is_ready, self.plan_of(&deed)) {
            (true, Some(told)) => Action::Do(deed, Box::new(told.clone())),
            (true, None) => {
                self.mode = Mode::Confirm(deed, false);
                Action::Stay
            }
            _ => Action::Stay,
        }
    }
}
