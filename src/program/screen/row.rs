//! The rows of the timeline screen, as plain data: turns newest first, what was left folded below the turn that it was
//! made on, checkpoints above the turn that they were made after.

use crate::ops::list::State;
use std::collections::{BTreeMap, BTreeSet};

/// A turn, as it was read.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub number: u64,
    pub previous: Option<u64>,
    pub state: State,
    /// Whether it is on the line on which HEAD stands.
    pub here: bool,
    /// Whether it only takes parts of other turns out.
    pub part: bool,
    pub age: String,
    pub label: String,
    /// What else is told of it in a word: how it ended, that it is kept.
    pub marks: Vec<&'static str>,
    pub changes: (u64, u64, u64),
    /// What search looks through, in lower case.
    pub words: String,
    pub steps: Vec<Part>,
}

/// A step of a turn.
#[derive(Clone, Debug)]
pub struct Part {
    pub number: u64,
    pub label: String,
    pub age: String,
    pub changes: (u64, u64, u64),
    pub words: String,
}

/// What was kept before something was written.
#[derive(Clone, Debug)]
pub struct Rescue {
    pub number: u64,
    /// The last turn done then.
    pub top: Option<u64>,
    pub age: String,
    pub label: String,
}

/// A checkpoint that the user named.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    pub name: String,
    pub top: Option<u64>,
    pub age: String,
    pub number: u64,
}

/// All that is shown of a timeline.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub branch: String,
    pub top: u64,
    pub turns: Vec<Recorded>,
    pub checkpoints: Vec<Checkpoint>,
    /// The newest first.
    pub rescues: Vec<Rescue>,
    /// Whether there is something that was not read yet.
    pub more: bool,
}

/// What a row stands for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    Turn(u64),
    /// A turn's, and which.
    Step(u64, u64),
    Checkpoint(String),
    Rescue(u64),
    /// Before the first turn.
    Start,
}

/// Where a row stands, which is told by a glyph and a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Now,
    Done,
    Undone,
    Open,
    Left,
    Step,
    Named,
    Rescue,
}

/// A line of the list.
#[derive(Clone, Debug)]
pub struct Row {
    pub place: Place,
    pub mark: Mark,
    /// How deep it is in the tree: what has a depth is folded with the row above it that has none.
    pub depth: usize,
    /// How many rows are folded below it.
    pub below: usize,
    pub age: String,
    pub label: String,
    pub marks: Vec<&'static str>,
    pub changes: Option<(u64, u64, u64)>,
    pub words: String,
    /// Whether redo leads there.
    pub forward: bool,
}

/// The rows of a timeline.
pub fn rows(timeline: &Timeline) -> Vec<Row> {
    let by_number: BTreeMap<u64, &Recorded> = timeline.turns.iter().map(|turn| (turn.number, turn)).collect();
    let mut below: BTreeMap<u64, Vec<&Recorded>> = BTreeMap::new();
    for turn in timeline.turns.iter().filter(|turn| !is_on_top(turn)) {
        below.entry(base(turn, &by_number)).or_default().push(turn);
    }
    let mut kept: BTreeMap<u64, Vec<&Rescue>> = BTreeMap::new();
    for rescue in &timeline.rescues {
        let at = rescue.top.and_then(|top| by_number.get(&top));
        let at = at.map_or(0, |turn| if is_on_top(turn) { turn.number } else { base(turn, &by_number) });
        kept.entry(at).or_default().push(rescue);
    }
    let mut rows = Vec::new();
    let mut add = |turn: Option<&Recorded>| {
        let at = turn.map_or(0, |turn| turn.number);
        let below =
            Below { rescues: kept.remove(&at).unwrap_or_default(), left: below.remove(&at).unwrap_or_default() };
        add(&mut rows, timeline, turn, below);
    };
    timeline.turns.iter().filter(|turn| is_on_top(turn)).for_each(|turn| add(Some(turn)));
    if !timeline.more {
        add(None);
    }
    rows
}

/// What is folded below a turn, beside its steps.
struct Below<'t> {
    rescues: Vec<&'t Rescue>,
    left: Vec<&'t Recorded>,
}

fn is_on_top(turn: &Recorded) -> bool {
    turn.here && !turn.part
}

/// The row that a turn is folded below: the last one that it was made on; 0 is the start.
fn base(turn: &Recorded, by_number: &BTreeMap<u64, &Recorded>) -> u64 {
    let mut at = turn.previous;
    while let Some(number) = at {
        match by_number.get(&number) {
            Some(turn) if is_on_top(turn) => return number,
            Some(turn) => at = turn.previous,
            None => return 0,
        }
    }
    0
}

/// Adds a turn or the start, the checkpoints made after it, and what is below it.
fn add(rows: &mut Vec<Row>, timeline: &Timeline, turn: Option<&Recorded>, below: Below<'_>) {
    checkpoints(rows, timeline, turn, 0);
    let at = rows.len();
    rows.push(turn.map_or_else(|| start(timeline), |turn| row(timeline, turn, 0)));
    if let Some(turn) = turn {
        rows.extend(turn.steps.iter().rev().map(|part| step(turn, part)));
    }
    rows.extend(below.rescues.into_iter().map(rescue));
    for turn in below.left {
        checkpoints(rows, timeline, Some(turn), 1);
        rows.push(row(timeline, turn, 1));
    }
    rows[at].below = rows.len() - at - 1;
}

fn checkpoints(rows: &mut Vec<Row>, timeline: &Timeline, turn: Option<&Recorded>, depth: usize) {
    let top = turn.map(|turn| turn.number);
    let mut here: Vec<&Checkpoint> = timeline.checkpoints.iter().filter(|named| named.top == top).collect();
    here.sort_by_key(|named| std::cmp::Reverse(named.number));
    rows.extend(here.into_iter().map(|named| Row {
        place: Place::Checkpoint(named.name.clone()),
        mark: Mark::Named,
        depth,
        below: 0,
        age: named.age.clone(),
        label: harmless(&named.name),
        marks: Vec::new(),
        changes: None,
        words: named.name.to_lowercase(),
        forward: turn.is_some_and(is_forward),
    }));
}

fn is_forward(turn: &Recorded) -> bool {
    !turn.here || !matches!(turn.state, State::Done | State::Open)
}

fn row(timeline: &Timeline, turn: &Recorded, depth: usize) -> Row {
    let mark = match turn.state {
        State::Open => Mark::Open,
        State::Undone | State::UndoneByHand => Mark::Undone,
        State::Done if turn.number == timeline.top => Mark::Now,
        State::Done if turn.here => Mark::Done,
        _ => Mark::Left,
    };
    Row {
        place: Place::Turn(turn.number),
        mark,
        depth,
        below: 0,
        age: turn.age.clone(),
        label: turn.label.clone(),
        marks: turn.marks.clone(),
        changes: (mark != Mark::Open).then_some(turn.changes),
        words: turn.words.clone(),
        forward: is_forward(turn),
    }
}

fn step(turn: &Recorded, part: &Part) -> Row {
    Row {
        place: Place::Step(turn.number, part.number),
        mark: Mark::Step,
        depth: 1,
        below: 0,
        age: part.age.clone(),
        label: part.label.clone(),
        marks: Vec::new(),
        changes: Some(part.changes),
        words: part.words.clone(),
        forward: is_forward(turn),
    }
}

fn rescue(rescue: &Rescue) -> Row {
    Row {
        place: Place::Rescue(rescue.number),
        mark: Mark::Rescue,
        depth: 1,
        below: 0,
        age: rescue.age.clone(),
        label: rescue.label.clone(),
        marks: Vec::new(),
        changes: None,
        words: format!("rescue {}", rescue.label.to_lowercase()),
        forward: true,
    }
}

fn start(timeline: &Timeline) -> Row {
    Row {
        place: Place::Start,
        mark: if timeline.top == 0 { Mark::Now } else { Mark::Done },
        depth: 0,
        below: 0,
        age: String::new(),
        label: "before the first turn".to_owned(),
        marks: Vec::new(),
        changes: None,
        words: "before the first turn".to_owned(),
        forward: false,
    }
}

impl Row {
    /// Whether all these words, in lower case, are in it; a number is a turn's, or in what it is about.
    pub fn matches(&self, words: &[String]) -> bool {
        let number = self.number();
        words.iter().all(|word| number == *word || self.words.contains(word.as_str()))
    }

    /// The number that it is known by, where it is a turn or a step.
    pub fn number(&self) -> String {
        match &self.place {
            Place::Turn(number) => number.to_string(),
            Place::Step(turn, step) => format!("{turn}.{step}"),
            Place::Checkpoint(_) | Place::Rescue(_) => String::new(),
            Place::Start => "0".to_owned(),
        }
    }

    /// As a command line has it.
    pub fn name(&self) -> String {
        match &self.place {
            Place::Checkpoint(name) => name.clone(),
            Place::Rescue(number) => format!("rescue:{number}"),
            _ => self.number(),
        }
    }

    /// The turn, where it is one.
    pub fn turn(&self) -> Option<u64> {
        if let Place::Turn(number) = self.place { Some(number) } else { None }
    }
}

/// Which rows are shown: those on top, what is unfolded below them; of a search, all that match.
pub fn visible(rows: &[Row], unfolded: &BTreeSet<Place>, search: &str) -> Vec<usize> {
    let words: Vec<String> = search.to_lowercase().split_whitespace().map(str::to_owned).collect();
    if !words.is_empty() {
        return (0..rows.len()).filter(|at| rows[*at].matches(&words)).collect();
    }
    let mut shown = Vec::new();
    let mut is_open = false;
    for (at, row) in rows.iter().enumerate() {
        // The checkpoint of what is folded is folded with it.
        if row.depth == 0 {
            is_open = unfolded.contains(&row.place);
            shown.push(at);
        } else if is_open {
            shown.push(at);
        }
    }
    shown
}

/// A text that someone else wrote, made harmless for a screen that is drawn cell by cell: no control characters, and none that
/// turn the direction of what is around them.
pub fn harmless(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let is_harmful = |c: char| c.is_control() || turns(c);
    text.chars().map(|c| if is_harmful(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(number: u64, previous: u64, state: State, here: bool) -> Recorded {
        Recorded {
            number,
            previous: (previous > 0).then_some(previous),
            state,
            here,
            part: false,
            age: "1 minute ago".into(),
            label: format!("claude: step {number}"),
            marks: Vec::new(),
            changes: (1, 2, 3),
            words: format!("claude: step {number} src/a{number}.rs"),
            steps: Vec::new(),
        }
    }

    fn timeline() -> Timeline {
        Timeline {
            branch: "main".into(),
            top: 2,
            turns: vec![
                turn(6, 5, State::Left, false),
                turn(5, 1, State::Left, false),
                turn(4, 2, State::Undone, true),
                turn(2, 1, State::Done, true),
                turn(1, 0, State::Done, true),
            ],
            checkpoints: vec![Checkpoint { name: "good".into(), top: Some(1), age: String::new(), number: 1 }],
            rescues: Vec::new(),
            more: false,
        }
    }

    fn names(rows: &[Row], shown: &[usize]) -> String {
        shown.iter().map(|at| rows[*at].name()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_was_left_is_folded_below_the_turn_that_it_was_made_on() {
        let rows = rows(&timeline());
        assert_eq!(names(&rows, &visible(&rows, &BTreeSet::new(), "")), "4 2 good 1 0");
        let open = BTreeSet::from([Place::Turn(1)]);
        assert_eq!(names(&rows, &visible(&rows, &open, "")), "4 2 good 1 6 5 0");
        assert_eq!(rows.iter().map(|row| row.below).collect::<Vec<_>>(), [0, 0, 0, 2, 0, 0, 0]);
        let marks: Vec<Mark> = rows.iter().map(|row| row.mark).collect();
        assert_eq!(marks[..4], [Mark::Undone, Mark::Now, Mark::Named, Mark::Done]);
        assert!(rows[4].forward && rows[0].forward && !rows[1].forward);
    }

    #[test]
    fn steps_and_rescues_are_folded_below_the_turn_that_they_are_of() {
        let mut timeline = timeline();
        let part = |number, label: &str| Part {
            number,
            label: label.into(),
            age: String::new(),
            changes: (1, 1, 0),
            words: label.to_lowercase(),
        };
        timeline.turns[3].steps = vec![part(1, "Edit a.rs"), part(2, "Bash cargo test")];
        let rescue = |number, top| Rescue { number, top, age: String::new(), label: "before undo".into() };
        timeline.rescues = vec![rescue(3, Some(6)), rescue(2, Some(2)), rescue(1, None)];
        let rows = rows(&timeline);
        let shown = |place| names(&rows, &visible(&rows, &BTreeSet::from([place]), ""));
        assert_eq!(shown(Place::Turn(2)), "4 2 2.2 2.1 rescue:2 good 1 0");
        assert_eq!(shown(Place::Turn(1)), "4 2 good 1 rescue:3 6 5 0", "that turn was left");
        assert_eq!(shown(Place::Start), "4 2 good 1 0 rescue:1");
        let found = |search: &str| names(&rows, &visible(&rows, &BTreeSet::new(), search));
        assert_eq!(
            (found("cargo"), found("2.1"), found("rescue")),
            ("2.2".into(), "2.1".into(), "rescue:2 rescue:3 rescue:1".into())
        );
    }

    #[test]
    fn search_finds_words_paths_and_numbers_also_in_what_is_folded() {
        let rows = rows(&timeline());
        let found = |search: &str| names(&rows, &visible(&rows, &BTreeSet::new(), search));
        assert_eq!(found("SRC/A6"), "6");
        assert_eq!(found("step claude"), "4 2 1 6 5");
        assert_eq!(found("2"), "2");
        assert_eq!(found("minute"), "", "an age is no word of it");
        assert_eq!(found("good"), "good");
    }

    #[test]
    fn what_would_steer_a_terminal_is_replaced() {
        assert_eq!(harmless("a\x1b[2Jb\u{202e}c\u{9b}d\ne"), "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d\u{fffd}e");
        assert_eq!(
            harmless("\u{5e9}\u{5dc} \u{6f22}\u{5b57} \u{1f469}\u{200d}\u{1f4bb}"),
            "\u{5e9}\u{5dc} \u{6f22}\u{5b57} \u{1f469}\u{200d}\u{1f4bb}"
        );
    }
}
