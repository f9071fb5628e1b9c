//! The timeline screen: `rewind`, `undo -i` and `ui`. `state` is what it is, `keys` what events do to it, `draw` how it looks;
//! `looker` reads and plans on threads of its own, so that no key waits.

mod deed;
mod draw;
mod glyphs;
mod keys;
mod list;
mod looker;
mod panes;
mod picture;
mod read;
mod row;
mod state;
mod terminal;

use crate::error::failure::to_refusal;
use crate::git::repo::Repo;
use crate::model::merge::Edits;
use crate::ops::request::Request;
use crate::ops::turn::session::beside_turn;
use crate::ops::{checkpoint, describe};
use crate::program::cmd::hunks;
use crate::program::typed::as_typed;
use crate::program::ui::Ui;
use anyhow::{Result, bail};
use deed::{Deed, Told, Wanted, was_not_there};
use draw::{Paint, draw};
use gix::bstr::BString;
use glyphs::Glyphs;
use looker::{Looker, News};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{Event, poll, read as next_event};
use ratatui::crossterm::terminal::size;
use ratatui::layout::Rect;
use signal_hook::consts::SIGHUP;
use state::{Action, Mode, Screen};
use std::collections::VecDeque;
use std::process::ExitCode;
use std::time::Duration;
use terminal::{Taken, end_by, is_gone};

/// As a shell reports an interrupt: whoever goes on after a choice does not.
const LEFT: u8 = 130;

/// How long an event is waited for, while something is looked at and while nothing is.
const BUSY: Duration = Duration::from_millis(10);
const IDLE: Duration = Duration::from_millis(150);

/// What is there is heard within it; of none at all crossterm hears nothing.
const AT_ONCE: Duration = Duration::from_millis(1);

/// For so long the first picture waits for what is to be on it.
const FIRST: Duration = Duration::from_millis(40);

/// Lets the user choose what to do, and does it.
pub fn run(repo: &Repo, ui: &Ui, edits: Option<Edits>) -> Result<ExitCode> {
    let chosen = if Ui::can_draw() {
        on_screen(repo, edits)?
    } else {
        list::choose(repo, ui, edits)?.ok_or(Left { recorded: false })
    };
    let (deed, told) = match chosen {
        Ok(chosen) => chosen,
        Err(Left { recorded }) => {
            Ui::show(if recorded { "Nothing else is changed\n" } else { "Nothing is changed\n" });
            return Ok(ExitCode::from(LEFT));
        }
    };
    let heard = ui.heard();
    let done =
        deed.done(repo, &heard, edits, &told).map_err(|error| as_typed(to_refusal(&error), &deed.line(edits)))?;
    ui.answer(&done)?;
    Ok(ExitCode::SUCCESS)
}

/// The screen was left without a choice; whether something was recorded before, a checkpoint or what a turn was about.
struct Left {
    recorded: bool,
}

/// What was chosen on the screen, which is gone then.
fn on_screen(repo: &Repo, edits: Option<Edits>) -> Result<std::result::Result<(Deed, Told), Left>> {
    let (colored, unicode) = Ui::screen_look();
    let paint = Paint { glyphs: Glyphs::of(unicode), colored };
    let looker = Looker::start(repo, edits);
    let first = looker.news(FIRST);
    let screen = Screen::new(size()?);
    let early = VecDeque::new();
    let mut shown =
        Shown { screen, looker, paint, edits, asked: None, recorded: false, reading: 1, is_drawn: false, early };
    let mut taken = Taken::take()?;
    if let Some(news) = first {
        shown.hear(news)?;
    }
    let mut ended = shown.run(repo, &mut taken);
    if ended.is_err() && is_gone() {
        ended = Ok(Ended::Signal(SIGHUP));
    }
    drop(taken);
    match ended? {
        Ended::Chosen(deed, told) => Ok(Ok((deed, *told))),
        Ended::Left => Ok(Err(Left { recorded: shown.recorded })),
        Ended::Signal(signal) => end_by(signal).map(|()| Err(Left { recorded: shown.recorded })),
    }
}

enum Ended {
    Chosen(Deed, Box<Told>),
    Left,
    Signal(i32),
}

/// The screen at work.
struct Shown {
    screen: Screen,
    looker: Looker,
    paint: Paint,
    edits: Option<Edits>,
    /// What was asked for last.
    asked: Option<Wanted>,
    /// Whether something was recorded.
    recorded: bool,
    /// By which reading of the timeline the rows are.
    reading: u64,
    /// Whether the terminal shows it.
    is_drawn: bool,
    /// What was typed before there was anything to see.
    early: VecDeque<Event>,
}

impl Shown {
    fn run(&mut self, repo: &Repo, taken: &mut Taken) -> Result<Ended> {
        loop {
            if let Some(signal) = taken.heed()? {
                return Ok(Ended::Signal(signal));
            }
            self.ask();
            // Each picture tells the terminal something, be it only that the cursor is still hidden.
            let size = size()?;
            if !self.is_drawn || taken.is_new || size != self.screen.size {
                self.draw(taken, size)?;
                (self.is_drawn, taken.is_new) = (true, false);
            }
            if let Some(ended) = self.step(repo, taken)? {
                return Ok(ended);
            }
        }
    }

    fn draw(&mut self, taken: &mut Taken, size: (u16, u16)) -> Result<()> {
        // The event that tells of another size may still be on its way.
        if size != self.screen.size {
            keys::update(&mut self.screen, &Event::Resize(size.0, size.1));
        }
        let mut picture = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        let cursor = draw(&self.screen, &mut picture, self.paint);
        Ok(taken.picture.show(picture, cursor)?)
    }

    /// Hears what there is: keys and news.
    fn step(&mut self, repo: &Repo, taken: &mut Taken) -> Result<Option<Ended>> {
        let mut actions = Vec::new();
        while let Some(news) = self.looker.news(Duration::ZERO) {
            actions.push(self.hear(news)?);
            self.is_drawn = false;
        }
        if !self.early.is_empty() && self.screen.is_read || poll(if self.is_waiting() { BUSY } else { IDLE })? {
            self.is_drawn = false;
            // What comes fast is all heeded before the next picture.
            while let Some(event) = self.next_event()? {
                let action = keys::update(&mut self.screen, &event);
                let is_done = !matches!(action, Action::Stay);
                actions.push(action);
                if is_done {
                    break;
                }
            }
        }
        for action in actions {
            match action {
                Action::Stay => {}
                Action::Leave => return Ok(Some(Ended::Left)),
                Action::Do(deed, told) if self.is_still(repo, &deed, &told) => {
                    return Ok(Some(Ended::Chosen(deed, told)));
                }
                Action::Do(..) => self.look_again(),
                Action::Suspend => taken.suspend()?,
                Action::Page(wanted) => {
                    taken.lend(|| self.looker.page(self.reading, wanted))?;
                    // What was told meanwhile was not heard.
                    self.looker.read();
                }
                Action::Ask(request, path) => self.choose(repo, taken, *request, &path)?,
                Action::Checkpoint(name) => self.checkpoint(repo, &name),
                Action::Describe(turn, words) => self.describe(repo, turn, &words),
            }
        }
        Ok(None)
    }

    /// Whether it would do what was shown. What is refused by now is told of by who does it.
    fn is_still(&self, repo: &Repo, deed: &Deed, told: &Told) -> bool {
        deed.told(repo, &|_| {}, self.edits).map_or(true, |now| now.id == told.id)
    }

    /// Something else acted: nothing that was asked is answered by what is on the screen.
    fn look_again(&mut self) {
        self.screen.forget();
        self.looker.read();
    }

    /// The next event that there is. Keys are for what the screen shows: before it shows anything they wait, but for those that
    /// need nothing.
    fn next_event(&mut self) -> Result<Option<Event>> {
        if self.screen.is_read
            && let Some(event) = self.early.pop_front()
        {
            return Ok(Some(event));
        }
        while poll(AT_ONCE)? {
            let event = next_event()?;
            if self.screen.is_read || keys::needs_nothing(&event) {
                return Ok(Some(event));
            }
            self.early.push_back(event);
        }
        Ok(None)
    }

    /// Whether something is still to come.
    fn is_waiting(&self) -> bool {
        let wanted = self.screen.wanted();
        let is_told = self.screen.told.as_ref().map(|(deed, _)| deed) == wanted.as_ref().map(|wanted| &wanted.deed);
        let is_refused = self.screen.told.as_ref().is_some_and(|(_, told)| told.is_err());
        let path = self.screen.path();
        let is_shown = path.is_none() || self.screen.diff.as_ref().map(|(_, path, _)| path) == path.as_ref();
        !self.screen.is_read
            || self.screen.timeline.more
            || (wanted.is_some() && !(is_told && (is_refused || is_shown)))
    }

    /// Asks for what the screen is to show.
    fn ask(&mut self) {
        let wanted = self.screen.wanted();
        if wanted != self.asked
            && let Some(wanted) = &wanted
        {
            self.looker.look(self.reading, wanted.clone());
        }
        self.asked = wanted;
    }

    fn hear(&mut self, news: News) -> Result<Action> {
        match news {
            // Whoever has seen all rows is not shown the first ones alone again.
            News::Timeline(_, timeline) if timeline.more && self.screen.is_read && !self.screen.timeline.more => {}
            News::Timeline(reading, timeline) if self.looker.is_last(reading) => {
                // What was planned before something was recorded may be another plan now.
                if reading != self.reading {
                    (self.reading, self.asked, self.screen.told) = (reading, None, None);
                }
                self.screen.read(timeline);
            }
            News::Told(reading, deed, told) if reading == self.reading => {
                return Ok(self.screen.know(deed, told.map(|told| *told)));
            }
            News::Diff(deed, path, lines) => self.screen.diff = Some((deed, path, lines)),
            News::Moved => self.look_again(),
            News::Failed(refusal) => bail!(refusal),
            News::Timeline(..) | News::Told(..) | News::Paged => {}
        }
        Ok(Action::Stay)
    }

    /// Has git ask; what was chosen is a plan like any other, which is shown and asked about.
    fn choose(&mut self, repo: &Repo, taken: &mut Taken, request: Request, path: &BString) -> Result<()> {
        let (mut asked, state) = (None, request.restore.clone().unwrap_or_default());
        taken.lend(|| {
            asked = Some(hunks::asked(repo, &|_| {}, request));
            Ok(())
        })?;
        match asked {
            Some(Ok(request)) => self.screen.mode = Mode::Confirm(Deed::Hunks(Box::new(request)), false),
            Some(Err(error)) => {
                let refusal = to_refusal(&was_not_there(error, &state, path));
                self.screen.said = row::harmless(&refusal.message);
            }
            None => {}
        }
        Ok(())
    }

    fn checkpoint(&mut self, repo: &Repo, name: &str) {
        let heard = |_| {};
        let given = Some(name).filter(|name| !name.is_empty());
        let named = beside_turn(repo, &heard, "checkpoint").and_then(|mut locked| checkpoint::name(&mut locked, given));
        self.say(named.map(|(name, _)| format!("checkpoint '{name}'")));
    }

    fn describe(&mut self, repo: &Repo, turn: u64, words: &str) {
        let heard = |_| {};
        let said = beside_turn(repo, &heard, "describe")
            .and_then(|mut locked| describe::describe(&mut locked, &turn.to_string(), words));
        self.say(said.map(|turn| format!("described turn {}", turn.turn)));
    }

    /// Says what was done, or why not, and reads the timeline again.
    fn say(&mut self, done: Result<String>) {
        self.recorded |= done.is_ok();
        let said = done.unwrap_or_else(|error| to_refusal(&error).message);
        self.screen.said = row::harmless(&said);
        self.looker.read();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{Code, Refusal};
    use crate::ops::list::State;
    use crate::program::screen::deed::Changed;
    use crate::program::screen::row::{Checkpoint, Place, Recorded, Timeline};
    use crate::program::screen::state::Asked;
    use gix::ObjectId;
    use gix::hash::Kind;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseEvent, MouseEventKind};

    fn turn(number: u64, previous: u64, state: State, label: &str) -> Recorded {
        Recorded {
            number,
            previous: (previous > 0).then_some(previous),
            state,
            here: state != State::Left,
            part: false,
            age: "2 hours ago".into(),
            label: label.into(),
            marks: Vec::new(),
            changes: (1, 12, 3),
            words: label.to_lowercase(),
            steps: Vec::new(),
        }
    }

    fn timeline() -> Timeline {
        let wide = "claude: \u{6f22}\u{5b57} \u{1f389} in a message that is quite long";
        Timeline {
            branch: "main".into(),
            top: 3,
            turns: vec![
                turn(5, 2, State::Left, "claude: another way"),
                turn(4, 3, State::Undone, "codex: undone since"),
                turn(3, 2, State::Done, "claude: add a cache"),
                turn(2, 1, State::Done, wide),
                turn(1, 0, State::Done, "claude: first"),
            ],
            checkpoints: vec![Checkpoint { name: "good".into(), top: Some(1), age: "1 day ago".into(), number: 1 }],
            rescues: Vec::new(),
            more: false,
        }
    }

    fn told(paths: &[&str]) -> Told {
        let file =
            |path: &&str| Changed { path: (*path).into(), shown: (*path).into(), action: "write", lines: Some((1, 2)) };
        Told {
            lines: vec![
                "Would undo turn 3 (claude: add a cache): 2 files".into(),
                "Would keep your edits in c.rs".into(),
            ],
            files: paths.iter().map(file).collect(),
            id: String::new(),
            trees: [ObjectId::null(Kind::Sha1); 2],
        }
    }

    /// A screen on which what undo would do is known.
    fn screen(width: u16, height: u16) -> Screen {
        let mut screen = Screen::new((width, height));
        screen.read(timeline());
        let deed = screen.deed().expect("something is chosen");
        screen.know(deed.clone(), Ok(told(&["src/a.rs", "src/b.rs"])));
        let lines = ["@@ -1 +1 @@", "-old", "+new"].map(str::to_owned).to_vec();
        screen.diff = Some((deed, "src/a.rs".into(), lines));
        screen
    }

    fn press(screen: &mut Screen, code: KeyCode) -> Action {
        keys::update(screen, &Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn types(screen: &mut Screen, text: &str) {
        text.chars().for_each(|c| drop(press(screen, KeyCode::Char(c))));
    }

    fn shown(screen: &Screen) -> String {
        let area = Rect { x: 0, y: 0, width: screen.size.0, height: screen.size.1 };
        let mut buffer = Buffer::empty(area);
        draw(screen, &mut buffer, Paint { glyphs: Glyphs::of(false), colored: false });
        let line = |y| {
            let mut skipped = 0;
            let mut line = String::new();
            for x in 0..area.width {
                let symbol = buffer.cell((x, y)).map_or("", |cell| cell.symbol());
                if skipped == 0 {
                    line.push_str(symbol);
                    skipped = ratatui::text::Span::raw(symbol).width().saturating_sub(1);
                } else {
                    skipped -= 1;
                }
            }
            line.trim_end().to_owned() + "\n"
        };
        (0..area.height).map(line).collect()
    }

    /// Holds what is drawn against what was looked at once, in a file of the screen's size.
    #[track_caller]
    fn assert_golden(screen: &Screen) {
        let (width, height) = screen.size;
        let path = format!("{}/src/program/screen/golden/{width}x{height}.txt", env!("CARGO_MANIFEST_DIR"));
        let shown = shown(screen);
        if std::env::var_os("OXUNDO_BLESS").is_some() {
            std::fs::write(&path, &shown).expect("write a golden screen");
        }
        let golden = std::fs::read_to_string(&path).expect("read a golden screen");
        assert_eq!(shown, golden, "\n{shown}");
    }

    #[test]
    fn the_smallest_screen_has_the_turns_and_what_enter_does() {
        assert_golden(&screen(40, 10));
    }

    #[test]
    fn a_usual_screen_has_files_and_their_difference_below_the_turns() {
        assert_golden(&screen(80, 24));
    }

    #[test]
    fn a_wide_screen_has_them_beside_each_other() {
        assert_golden(&screen(110, 12));
    }

    #[test]
    fn no_size_is_too_small_or_too_large() {
        for size in [(0, 0), (1, 1), (2, 3), (7, 4), (39, 9), (300, 80), (20, 200)] {
            for key in ['x', '?', '/', 'b', '\t'] {
                let mut screen = screen(80, 24);
                press(&mut screen, if key == '\t' { KeyCode::Tab } else { KeyCode::Char(key) });
                keys::update(&mut screen, &Event::Resize(size.0, size.1));
                shown(&screen);
            }
        }
    }

    #[test]
    fn help_that_is_longer_than_the_screen_is_gone_through() {
        let mut screen = screen(40, 10);
        press(&mut screen, KeyCode::Char('?'));
        let first = shown(&screen);
        assert!(first.contains("Enter  go there") && !first.contains("Escape"), "{first}");
        for (key, is_last) in
            [(KeyCode::Down, false), (KeyCode::PageDown, false), (KeyCode::End, true), (KeyCode::Down, true)]
        {
            press(&mut screen, key);
            let now = shown(&screen);
            assert!(!now.contains("Enter  go there") && now.contains("Escape") == is_last, "{key:?}: {now}");
        }
        press(&mut screen, KeyCode::Home);
        assert_eq!(shown(&screen), first);
        press(&mut screen, KeyCode::Esc);
        assert_eq!(screen.mode, Mode::List);
    }

    #[test]
    fn at_first_the_choice_is_what_one_undo_leads_to() {
        let screen = screen(80, 24);
        assert_eq!(screen.deed(), Some(Deed::Go { to: "2".into(), forward: false }));
    }

    #[test]
    fn enter_asks_and_a_second_one_does_it_even_before_the_plan_is_there() {
        let mut screen = screen(80, 24);
        assert!(matches!(press(&mut screen, KeyCode::Enter), Action::Stay));
        assert!(matches!(press(&mut screen, KeyCode::Enter), Action::Do(Deed::Go { .. }, _)));

        let mut fast = Screen::new((80, 24));
        fast.read(timeline());
        press(&mut fast, KeyCode::Enter);
        assert!(matches!(press(&mut fast, KeyCode::Enter), Action::Stay), "nothing is known yet");
        let other = Deed::Only("1".into());
        assert!(matches!(fast.know(other, Ok(told(&[]))), Action::Stay), "it is another's");
        let deed = fast.deed().expect("a choice");
        assert!(matches!(fast.know(deed, Ok(told(&[]))), Action::Do(..)));
    }

    #[test]
    fn what_is_refused_is_told_and_no_key_does_it() {
        let mut screen = screen(80, 24);
        let deed = screen.deed().expect("a choice");
        let refusal = Refusal::new(Code::Published, "commit a1b2c3d is published").hint("type this");
        screen.know(deed, Err(refusal));
        assert!(shown(&screen).contains("refused: commit a1b2c3d is published\nhint: type this\n"));
        press(&mut screen, KeyCode::Enter);
        for key in [KeyCode::Enter, KeyCode::Char('y')] {
            assert!(matches!(press(&mut screen, key), Action::Stay));
        }
        assert!(shown(&screen).contains("this cannot be done now"));
        press(&mut screen, KeyCode::Esc);
        assert_eq!(screen.mode, Mode::List, "no stays on the screen");
    }

    #[test]
    fn each_deed_has_its_key() {
        let deed = |keys: &str| {
            let mut screen = screen(80, 24);
            types(&mut screen, keys);
            screen.deed()
        };
        assert_eq!(deed("o"), Some(Deed::Only("2".into())));
        assert_eq!(deed("r"), Some(Deed::Revert(2)));
        assert_eq!(deed("p"), Some(Deed::Path { state: "2".into(), path: "src/a.rs".into() }));
        let mut screen = screen(80, 24);
        types(&mut screen, "bnew");
        press(&mut screen, KeyCode::Enter);
        assert_eq!(screen.deed(), Some(Deed::Branch { name: "new".into(), turn: "2".into() }));
        press(&mut screen, KeyCode::Char('n'));
        types(&mut screen, "cq");
        assert!(matches!(press(&mut screen, KeyCode::Enter), Action::Checkpoint(name) if name == "q"));
        types(&mut screen, "dx y");
        assert!(matches!(press(&mut screen, KeyCode::Enter), Action::Describe(2, words) if words == "x y"));
        press(&mut screen, KeyCode::Tab);
        press(&mut screen, KeyCode::Down);
        let paged = press(&mut screen, KeyCode::Char('v'));
        assert!(matches!(paged, Action::Page(Wanted { path: Some(path), .. }) if path == "src/b.rs"));
        assert!(matches!(press(&mut screen, KeyCode::Esc), Action::Stay), "out of the files first");
        assert!(matches!(press(&mut screen, KeyCode::Esc), Action::Leave));
    }

    #[test]
    fn a_search_is_seen_as_it_is_typed_and_escape_ends_it() {
        let mut screen = screen(80, 24);
        types(&mut screen, "/another");
        assert_eq!(screen.row().map(|row| row.place.clone()), Some(Place::Turn(5)), "though it is folded");
        assert!(shown(&screen).contains("/another (1 found)"));
        press(&mut screen, KeyCode::Enter);
        assert_eq!(screen.deed(), Some(Deed::Go { to: "5".into(), forward: true }));
        press(&mut screen, KeyCode::Left);
        press(&mut screen, KeyCode::Esc);
        assert_eq!((screen.search.as_str(), screen.shown.len()), ("", 6));
        types(&mut screen, "/");
        keys::update(&mut screen, &Event::Paste("fir\nst".into()));
        assert_eq!(screen.mode, Mode::Words(Asked::Search, "fir st".into()), "what is pasted presses no key");
        types(&mut screen, "zzz");
        assert!(shown(&screen).contains("nothing found"));
        assert!(screen.deed().is_none());
    }

    #[test]
    fn rows_fold_page_and_stay_in_sight() {
        let mut screen = screen(40, 10);
        press(&mut screen, KeyCode::Right);
        press(&mut screen, KeyCode::Down);
        assert_eq!(screen.row().and_then(row::Row::turn), Some(5), "below the turn that it was made on");
        press(&mut screen, KeyCode::Left);
        assert_eq!((screen.row().and_then(row::Row::turn), screen.shown.len()), (Some(2), 6));
        let turns = (1..=2000).rev().map(|n| turn(n, n - 1, State::Done, "claude: one of many")).collect();
        screen.read(Timeline { turns, top: 2000, ..Timeline::default() });
        press(&mut screen, KeyCode::End);
        assert_eq!(screen.row().map(row::Row::name).as_deref(), Some("0"));
        let (at, first) = (screen.at, screen.first);
        press(&mut screen, KeyCode::PageUp);
        assert_eq!((screen.at, screen.first), (at - 5, first));
        let wheel = MouseEvent { kind: MouseEventKind::ScrollUp, column: 1, row: 5, modifiers: KeyModifiers::NONE };
        keys::update(&mut screen, &Event::Mouse(wheel));
        assert_eq!((screen.at, screen.first), (at - 8, at - 8));
        keys::update(&mut screen, &Event::Resize(80, 24));
        assert!(screen.first <= screen.at && screen.at < screen.first + screen.panes().rows());
    }

    #[test]
    fn the_oldest_is_chosen_also_of_what_is_still_being_read() {
        let whole = timeline();
        let first = Timeline { turns: whole.turns[..2].to_vec(), more: true, ..whole.clone() };
        let place = |screen: &Screen| screen.row().map(|row| row.place.clone());
        let mut screen = Screen::new((80, 24));
        screen.read(first.clone());
        press(&mut screen, KeyCode::End);
        screen.read(whole.clone());
        assert_eq!(place(&screen), Some(Place::Start));
        let mut screen = Screen::new((80, 24));
        screen.read(first);
        press(&mut screen, KeyCode::End);
        press(&mut screen, KeyCode::Home);
        screen.read(whole.clone());
        assert_eq!(screen.at, 0, "that was before another key");
        press(&mut screen, KeyCode::End);
        press(&mut screen, KeyCode::Up);
        let chosen = place(&screen);
        screen.read(whole);
        assert_eq!(place(&screen), chosen, "nothing is on its way");
    }

    #[test]
    fn what_is_not_found_yet_may_be_on_its_way() {
        let mut screen = Screen::new((80, 24));
        let whole = timeline();
        screen.read(Timeline { turns: whole.turns[..2].to_vec(), more: true, ..whole.clone() });
        types(&mut screen, "/first");
        let text = shown(&screen);
        assert!(text.contains("(0 found so far)") && text.contains("reading the timeline"), "{text}");
        screen.read(whole);
        // Its words, and the row before the first turn.
        assert!(shown(&screen).contains("(2 found)"));
    }

    #[test]
    fn a_question_is_not_answered_by_who_saw_something_else() {
        let mut screen = screen(80, 24);
        press(&mut screen, KeyCode::Enter);
        assert!(matches!(screen.mode, Mode::Confirm(..)));
        screen.forget();
        assert_eq!(screen.mode, Mode::List);
        assert!(shown(&screen).contains("something else has changed: look again"));
        assert!(matches!(press(&mut screen, KeyCode::Char('y')), Action::Stay));
    }
}
