//! What keys and the mouse do to the timeline screen: an event in, what is to be done out.

use crate::ops::request::Request;
use crate::program::screen::deed::{Deed, Wanted, literal};
use crate::program::screen::row::{Mark, Place, harmless};
use crate::program::screen::state::{Action, Asked, Mode, Screen};
use ratatui::crossterm::event::{
    Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind,
};
use ratatui::layout::Position;

/// So many rows a turn of the wheel goes.
const WHEEL: isize = 3;

/// What the keys are, as the help has them.
pub const KEYS: [(&str, &str); 18] = [
    ("Enter", "go there: undo or redo until this turn is the last one done"),
    ("o", "only this turn: take it out, and leave later ones"),
    ("r", "revert: take all later turns out by commits on top"),
    ("p", "this path: bring the chosen file back as it was then"),
    ("P", "hunks: git asks which changes of the file to bring back"),
    ("b", "branch: start one after this turn"),
    ("c", "checkpoint: name the present state"),
    ("d", "describe: say what this turn was about"),
    ("v", "view the difference in your pager"),
    ("/", "search: words, prompts, paths, agents, sessions, numbers"),
    ("Tab", "to the files that would change, and back"),
    ("Right, Left", "unfold, fold what is below a row (+): steps, rescues"),
    ("Up, Down", "one row (also k, j; the wheel: three)"),
    ("PageUp, PageDown", "a screen; among the files, their difference"),
    ("Home, End", "the newest, the oldest (also g, G)"),
    ("?", "this help"),
    ("Ctrl-Z", "suspend"),
    ("Escape, q, Ctrl-C", "leave, with nothing changed"),
];

/// The rows of the help: what stands first in each, and the words behind it. Where these have no room beside the keys, they go on below.
pub fn help_rows(width: u16) -> Vec<(String, String)> {
    let (width, margin) = (usize::from(width), 20);
    if KEYS.iter().all(|(_, words)| margin + words.len() <= width) {
        return KEYS.iter().map(|(key, words)| (format!("{key:>18}  "), (*words).to_owned())).collect();
    }
    KEYS.iter().flat_map(|(key, words)| wrapped(format!("{key}  "), words, width)).collect()
}

fn wrapped(key: String, words: &str, width: usize) -> Vec<(String, String)> {
    let mut rows = vec![(key, String::new())];
    for word in words.split(' ') {
        match rows.last_mut() {
            Some((_, text)) if text.is_empty() => text.push_str(word),
            Some((before, text)) if before.len() + text.len() + 1 + word.len() <= width => {
                text.push(' ');
                text.push_str(word);
            }
            _ => rows.push(("    ".to_owned(), word.to_owned())),
        }
    }
    rows
}

/// What an event does.
pub fn update(screen: &mut Screen, event: &Event) -> Action {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => on_key(screen, *key),
        Event::Mouse(mouse) => {
            on_mouse(screen, *mouse);
            Action::Stay
        }
        Event::Resize(width, height) => {
            screen.size = (*width, *height);
            screen.scroll();
            screen.choose_file(screen.file);
            Action::Stay
        }
        // What is pasted is text, and no keys.
        Event::Paste(text) => {
            type_in(screen, text);
            Action::Stay
        }
        _ => Action::Stay,
    }
}

/// Whether an event means the same whatever the screen shows: another size, and the keys that leave it or stop it.
pub fn needs_nothing(event: &Event) -> bool {
    match event {
        Event::Key(key) => {
            key.modifiers.contains(KeyModifiers::CONTROL) && matches!(key.code, KeyCode::Char('c' | 'z'))
        }
        Event::Resize(..) => true,
        _ => false,
    }
}

fn on_key(screen: &mut Screen, key: KeyEvent) -> Action {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        match key.code {
            KeyCode::Char('c') => return Action::Leave,
            KeyCode::Char('z') => return Action::Suspend,
            KeyCode::Char('u') => return in_words(screen, KeyCode::Delete),
            _ => return Action::Stay,
        }
    }
    screen.said.clear();
    match &screen.mode {
        Mode::Words(..) => in_words(screen, key.code),
        Mode::Confirm(..) => in_question(screen, key.code),
        Mode::Help(first) => {
            screen.mode = in_help(screen, *first, key.code);
            Action::Stay
        }
        Mode::List | Mode::Files => in_list(screen, key.code),
    }
}

/// Where a key leads in the help, or out of it.
fn in_help(screen: &Screen, first: usize, key: KeyCode) -> Mode {
    let pane = screen.panes().help;
    let rows = usize::from(pane.height);
    let last = help_rows(pane.width).len().saturating_sub(rows);
    let to = match key {
        KeyCode::Up | KeyCode::Char('k') => first.saturating_sub(1),
        KeyCode::Down | KeyCode::Char('j') => first + 1,
        KeyCode::PageUp => first.saturating_sub(rows),
        KeyCode::PageDown => first + rows,
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => last,
        _ => return Mode::List,
    };
    Mode::Help(to.min(last))
}

fn in_list(screen: &mut Screen, key: KeyCode) -> Action {
    if screen.mode == Mode::Files && in_files(screen, key) {
        return Action::Stay;
    }
    let page = isize::try_from(screen.panes().rows().saturating_sub(1)).unwrap_or(isize::MAX);
    match key {
        KeyCode::Up | KeyCode::Char('k') => screen.go(-1),
        KeyCode::Down | KeyCode::Char('j') => screen.go(1),
        KeyCode::PageUp => screen.go(-page),
        KeyCode::PageDown => screen.go(page),
        KeyCode::Home | KeyCode::Char('g') => screen.choose(0),
        KeyCode::End | KeyCode::Char('G') => screen.choose(usize::MAX),
        KeyCode::Right | KeyCode::Char('l') => fold(screen, false),
        KeyCode::Left | KeyCode::Char('h') => fold(screen, true),
        KeyCode::Tab if screen.files() > 0 => screen.mode = Mode::Files,
        KeyCode::Char('?') => screen.mode = Mode::Help(0),
        KeyCode::Char('/') => screen.mode = Mode::Words(Asked::Search, screen.search.clone()),
        KeyCode::Char('q') => return Action::Leave,
        KeyCode::Esc => return back(screen),
        key => return deed(screen, key),
    }
    Action::Stay
}

/// Whether a key meant the files.
fn in_files(screen: &mut Screen, key: KeyCode) -> bool {
    let page = isize::try_from(screen.panes().diff.height).unwrap_or(isize::MAX).saturating_sub(2).max(1);
    match key {
        KeyCode::Up | KeyCode::Char('k') => screen.go_file(-1),
        KeyCode::Down | KeyCode::Char('j') => screen.go_file(1),
        KeyCode::Home | KeyCode::Char('g') => screen.choose_file(0),
        KeyCode::End | KeyCode::Char('G') => screen.choose_file(usize::MAX),
        KeyCode::PageUp => screen.go_diff(-page),
        KeyCode::PageDown => screen.go_diff(page),
        KeyCode::Tab | KeyCode::BackTab | KeyCode::Left => screen.mode = Mode::List,
        _ => return false,
    }
    true
}

/// One step back: out of the files, out of the search, out of the screen.
fn back(screen: &mut Screen) -> Action {
    if screen.mode == Mode::Files {
        screen.mode = Mode::List;
    } else if screen.search.is_empty() {
        return Action::Leave;
    } else {
        screen.search.clear();
        screen.show_again();
    }
    Action::Stay
}

fn fold(screen: &mut Screen, is_folded: bool) {
    let Some(row) = screen.row() else { return };
    let (place, depth) = (row.place.clone(), row.depth);
    if is_folded && depth > 0 {
        let above = (0..screen.at).rev().find(|at| screen.rows[screen.shown[*at]].below > 0);
        // Of a search, what it is below may not be shown.
        let Some(above) = above else { return };
        screen.choose(above);
        return fold(screen, true);
    }
    if is_folded {
        screen.unfolded.remove(&place);
    } else {
        // What is below it may still be on its way.
        screen.unfolded.insert(place);
    }
    screen.show_again();
}

/// What is done with the chosen turn.
fn deed(screen: &mut Screen, key: KeyCode) -> Action {
    let Some(row) = screen.row() else { return Action::Stay };
    let (name, turn) = (row.name(), row.turn());
    let is_open = row.mark == Mark::Open;
    let deed = match (key, turn) {
        (KeyCode::Char('c'), _) => return ask(screen, Asked::Checkpoint),
        (KeyCode::Enter | KeyCode::Char('o' | 'r' | 'p' | 'P' | 'b' | 'd'), _) if is_open => {
            return say(screen, "this turn is still in progress");
        }
        (KeyCode::Enter, _) => screen.deed(),
        (KeyCode::Char('o'), Some(_)) => Some(Deed::Only(name)),
        (KeyCode::Char('o'), None) if matches!(row.place, Place::Step(..)) => Some(Deed::Only(name)),
        (KeyCode::Char('r'), _) if turn.is_some() || name == "0" => Some(Deed::Revert(turn.unwrap_or(0))),
        (KeyCode::Char('d'), Some(turn)) => return ask(screen, Asked::Describe(turn)),
        (KeyCode::Char('b'), _) if name != "0" => return ask(screen, Asked::Branch(name)),
        (KeyCode::Char('p' | 'P'), _) => {
            let Some(path) = screen.path() else { return say(screen, "there is no file to choose") };
            // Before the first turn is a state of its own.
            let state = if name == "0" { "1:before".to_owned() } else { name };
            if key == KeyCode::Char('P') {
                return Action::Ask(Box::new(Request::restore(state).paths(Some(&[literal(&path)]))), path);
            }
            Some(Deed::Path { state, path })
        }
        (KeyCode::Char('v'), _) => {
            let is_known = screen.plan().is_some();
            let all = screen.mode != Mode::Files;
            return match screen.wanted().filter(|_| is_known) {
                Some(wanted) if all => Action::Page(Wanted { path: None, ..wanted }),
                Some(wanted) => Action::Page(wanted),
                None => Action::Stay,
            };
        }
        (KeyCode::Char('o' | 'r' | 'd' | 'b'), _) => return say(screen, "this is no turn"),
        _ => return Action::Stay,
    };
    if let Some(deed) = deed {
        screen.mode = Mode::Confirm(deed, false);
    }
    Action::Stay
}

fn say(screen: &mut Screen, words: &str) -> Action {
    words.clone_into(&mut screen.said);
    Action::Stay
}

fn ask(screen: &mut Screen, what: Asked) -> Action {
    screen.mode = Mode::Words(what, String::new());
    Action::Stay
}

fn in_question(screen: &mut Screen, key: KeyCode) -> Action {
    let Mode::Confirm(deed, _) = screen.mode.clone() else { return Action::Stay };
    let is_refused = screen.told.as_ref().is_some_and(|(known, told)| *known == deed && told.is_err());
    match key {
        KeyCode::Enter | KeyCode::Char('y') if is_refused => {}
        KeyCode::Enter | KeyCode::Char('y') => match screen.plan_of(&deed) {
            Some(told) => return Action::Do(deed, Box::new(told.clone())),
            None => screen.mode = Mode::Confirm(deed, true),
        },
        KeyCode::Esc | KeyCode::Char('n' | 'q') => screen.mode = Mode::List,
        KeyCode::PageUp | KeyCode::PageDown | KeyCode::Up | KeyCode::Down => drop(in_files(screen, key)),
        _ => {}
    }
    Action::Stay
}

fn in_words(screen: &mut Screen, key: KeyCode) -> Action {
    let Mode::Words(what, text) = &mut screen.mode else { return Action::Stay };
    match key {
        KeyCode::Char(c) => text.push_str(&harmless(&c.to_string())),
        KeyCode::Backspace => drop(text.pop()),
        KeyCode::Delete => text.clear(),
        KeyCode::Esc => {
            let is_search = *what == Asked::Search;
            screen.mode = Mode::List;
            if is_search {
                screen.search.clear();
                screen.show_again();
            }
            return Action::Stay;
        }
        KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown if *what == Asked::Search => {
            screen.mode = Mode::List;
            return in_list(screen, key);
        }
        KeyCode::Enter => return said(screen),
        _ => return Action::Stay,
    }
    search_on(screen);
    Action::Stay
}

fn type_in(screen: &mut Screen, pasted: &str) {
    if let Mode::Words(_, text) = &mut screen.mode {
        text.push_str(&harmless(&pasted.split_whitespace().collect::<Vec<_>>().join(" ")));
        search_on(screen);
    }
}

/// A search is seen as it is typed.
fn search_on(screen: &mut Screen) {
    if let Mode::Words(Asked::Search, text) = &screen.mode {
        screen.search.clone_from(text);
        screen.show_again();
    }
}

/// What was asked for was said.
fn said(screen: &mut Screen) -> Action {
    let Mode::Words(what, text) = std::mem::take(&mut screen.mode) else { return Action::Stay };
    let text = text.trim().to_owned();
    match what {
        Asked::Search => Action::Stay,
        Asked::Checkpoint => Action::Checkpoint(text),
        _ if text.is_empty() => Action::Stay,
        Asked::Describe(turn) => Action::Describe(turn, text),
        Asked::Branch(turn) => {
            screen.mode = Mode::Confirm(Deed::Branch { name: text, turn }, false);
            Action::Stay
        }
    }
}

fn on_mouse(screen: &mut Screen, mouse: MouseEvent) {
    if !matches!(screen.mode, Mode::List | Mode::Files) {
        return;
    }
    let at = Position { x: mouse.column, y: mouse.row };
    let panes = screen.panes();
    let by = match mouse.kind {
        MouseEventKind::ScrollUp => -WHEEL,
        MouseEventKind::ScrollDown => WHEEL,
        MouseEventKind::Down(MouseButton::Left) => 0,
        _ => return,
    };
    if panes.diff.contains(at) {
        screen.go_diff(by);
    } else if panes.files.contains(at) {
        let row = usize::from(at.y - panes.files.y);
        if by == 0 && row > 0 && screen.files() > 0 {
            screen.mode = Mode::Files;
            screen.choose_file(screen.first_file + row - 1);
        } else {
            screen.go_file(by);
        }
    } else if panes.list.contains(at) {
        screen.mode = Mode::List;
        if by == 0 {
            screen.choose(screen.first + usize::from(at.y - panes.list.y));
        } else {
            screen.go(by);
        }
    }
}
