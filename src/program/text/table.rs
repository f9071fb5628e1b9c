//! The timeline as people see it: a line a turn, within the width of the terminal.

use crate::program::text::graph::PLACE;
use crate::program::ui::Look;
use console::{Style, measure_text_width, style, truncate_str};

/// So many columns of what was asked for are worth more than anything beside it but its marks.
const ROOM: usize = 20;

/// So many of them stay, be it that a mark is cut.
const LEAST: usize = 8;

/// One turn, in words.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its number.
    pub number: u64,
    /// How long ago it was.
    pub age: String,
    /// Who made it, and what was asked for.
    pub label: String,
    /// With what the label begins.
    pub agent: String,
    /// What is special about it.
    pub marks: Vec<Mark>,
    /// What changed, as far as that is known.
    pub changes: Option<Changes>,
    /// Its last commit, in short.
    pub commit: Option<String>,
    /// Whether it is not done.
    pub dim: bool,
}

/// How much a turn changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Changes {
    pub files: u64,
    /// So many of the files have another name now.
    pub renames: u64,
    pub insertions: u64,
    pub deletions: u64,
    /// What else it changed, where it changed no file.
    pub instead: Option<&'static str>,
}

impl Changes {
    fn of_files(&self) -> String {
        let counted = |number: u64, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        match self.renames {
            0 => counted(self.files, "file"),
            all if all == self.files => counted(all, "rename"),
            some => format!("{}, {some} renamed", counted(self.files, "file")),
        }
    }
}

/// What is special about a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It is worth a look.
    Alert(String),
    /// It is still going on.
    Live(String),
    /// Anything else.
    Plain(String),
}

impl Mark {
    fn text(&self) -> &str {
        match self {
            Self::Alert(text) | Self::Live(text) | Self::Plain(text) => text,
        }
    }

    fn style(&self) -> Style {
        match self {
            Self::Alert(_) => Style::new().red(),
            Self::Live(_) => Style::new().green(),
            Self::Plain(_) => Style::new().cyan(),
        }
    }
}

/// What is left out on a narrow terminal, the most dispensable first.
const LEFT_OUT: [Layout; 5] = [
    Layout { commit: true, files: true, lines: true, age: true },
    Layout { commit: false, files: true, lines: true, age: true },
    Layout { commit: false, files: false, lines: true, age: true },
    Layout { commit: false, files: false, lines: false, age: true },
    Layout { commit: false, files: false, lines: false, age: false },
];

#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column of its own")]
struct Layout {
    commit: bool,
    files: bool,
    lines: bool,
    age: bool,
}

/// The text of the timeline. A graph has a place for each row.
pub fn text(rows: &[Row], graph: &[String], look: Look) -> String {
    let number = rows.iter().map(|row| row.number.to_string().len()).max().unwrap_or(1);
    let age = rows.iter().map(|row| measure_text_width(&row.age)).max().unwrap_or_default();
    let indent = graph.iter().map(|drawn| indent(drawn)).max().unwrap_or_default();
    let widths = Widths { number, age, room: look.width.map(|width| width.saturating_sub(indent)) };
    let fits = |shown: &Layout| rows.iter().all(|row| row.room(*shown, widths) >= row.label_width().min(ROOM));
    let shown = LEFT_OUT.into_iter().find(fits).unwrap_or(LEFT_OUT[4]);
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        let line = row.line(shown, widths, look);
        match graph.get(at) {
            Some(drawn) => text.push_str(&drawn.replace(PLACE, &line)),
            None => text.push_str(&line),
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// The columns before a row's place.
fn indent(drawn: &str) -> usize {
    let line = drawn.lines().find_map(|line| line.split_once(PLACE));
    line.map_or(0, |(before, _)| measure_text_width(before))
}

#[derive(Clone, Copy)]
struct Widths {
    number: usize,
    age: usize,
    /// The columns for a line; `None` where there is no end to it.
    room: Option<usize>,
}

impl Row {
    fn label_width(&self) -> usize {
        measure_text_width(&self.label)
    }

    fn mark(&self) -> String {
        let marks: Vec<_> = self.marks.iter().map(Mark::text).collect();
        if marks.is_empty() { String::new() } else { format!(" [{}]", marks.join(", ")) }
    }

    fn changes(&self, shown: Layout) -> String {
        let mut text = String::new();
        let Some(changes) = self.changes else { return text };
        if let Some(what) = changes.instead {
            return if shown.files { format!("  {what}") } else { text };
        }
        if shown.files {
            text.push_str(&format!("  {}", changes.of_files()));
        }
        if shown.lines {
            let Changes { insertions, deletions, .. } = changes;
            text.push_str(&format!("{}+{insertions} -{deletions}", if shown.files { " " } else { "  " }));
        }
        text
    }

    fn commit(&self, shown: Layout) -> String {
        let commit = self.commit.as_ref().filter(|_| shown.commit);
        commit.map_or_else(String::new, |commit| format!("  {commit}"))
    }

    /// The columns that are left for the label.
    fn room(&self, shown: Layout, widths: Widths) -> usize {
        let age = if shown.age { widths.age + 2 } else { 0 };
        let taken = widths.number + 2 + age + measure_text_width(&self.mark());
        let taken = taken + self.changes(shown).len() + self.commit(shown).len();
        widths.room.map_or(usize::MAX, |room| room.saturating_sub(taken).max(LEAST))
    }

    fn line(&self, shown: Layout, widths: Widths, look: Look) -> String {
        let number = format!("{:>1$}", self.number, widths.number);
        let pad = widths.age.saturating_sub(measure_text_width(&self.age));
        let age = if shown.age { format!("  {}{:pad$}", self.age, "") } else { String::new() };
        let label = cut(&self.label, self.room(shown, widths), look);
        let line = if self.dim {
            let behind = self.changes(shown) + &self.commit(shown);
            style(format!("{number}{age}  {label}{}{behind}", self.mark())).dim().to_string()
        } else {
            // What was cut may have less than the agent's name.
            let (agent, message) = label.split_at_checked(self.agent.len()).unwrap_or((&label, ""));
            format!(
                "{}{}  {}{message}{}{}{}",
                style(number).yellow(),
                if age.is_empty() { age } else { style(age).dim().to_string() },
                style(agent).bold(),
                self.coloured_marks(),
                self.coloured_changes(shown),
                self.coloured_commit(shown)
            )
        };
        // Where even this is too much, the terminal would break it.
        cut(&line, widths.room.unwrap_or(usize::MAX), look)
    }

    fn coloured_marks(&self) -> String {
        if self.marks.is_empty() {
            return String::new();
        }
        let marks: Vec<_> = self.marks.iter().map(|mark| mark.style().apply_to(mark.text()).to_string()).collect();
        format!(" [{}]", marks.join(", "))
    }

    fn coloured_commit(&self, shown: Layout) -> String {
        let text = self.commit(shown);
        if text.is_empty() { text } else { style(text).yellow().dim().to_string() }
    }

    fn coloured_changes(&self, shown: Layout) -> String {
        let text = self.changes(shown);
        let (Some((files, _)), Some(changes)) = (text.rsplit_once('+'), self.changes) else {
            return style(text).dim().to_string();
        };
        let Changes { insertions, deletions, .. } = changes;
        let (plus, minus) = (format!("+{insertions}"), format!("-{deletions}"));
        format!("{}{} {}", style(files).dim(), style(plus).green(), style(minus).red())
    }
}

/// Cut to so many columns, with a sign that it was.
pub fn cut(text: &str, width: usize, look: Look) -> String {
    if measure_text_width(text) <= width {
        return text.to_owned();
    }
    let tail = look.ellipsis();
    truncate_str(text, width, if measure_text_width(tail) < width { tail } else { "" }).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let row = |number: u64, age: &str, agent: &str, message: &str| Row {
            number,
            age: age.to_owned(),
            label: if message.is_empty() { agent.to_owned() } else { format!("{agent}: {message}") },
            agent: agent.to_owned(),
            marks: Vec::new(),
            changes: Some(Changes {
                files: number % 4,
                insertions: number * 3,
                deletions: number,
                ..Changes::default()
            }),
            commit: None,
            dim: false,
        };
        vec![
            Row {
                marks: vec![Mark::Plain("undone".to_owned())],
                dim: true,
                ..row(101, "3 s ago", "claude", "try it another way, as the first one has come to nothing")
            },
            row(100, "12 min ago", "codex", "añade una caché 目录目录目录目录目录目录目录目录"),
            Row {
                marks: vec![Mark::Alert("interrupted".to_owned()), Mark::Plain("shared".to_owned())],
                ..row(9, "4 d ago", "claude", "add a cache")
            },
            row(1, "30 d ago", "sh", ""),
        ]
    }

    fn shown(width: Option<usize>, unicode: bool, graph: &[&str]) -> String {
        let graph: Vec<String> = graph.iter().map(|drawn| (*drawn).to_owned()).collect();
        let text = text(&rows(), &graph, Look { width, unicode });
        let plain = console::strip_ansi_codes(&text).into_owned();
        let widest = plain.lines().map(measure_text_width).max().unwrap_or_default();
        assert!(width.is_none_or(|width| widest <= width), "{widest} columns of {width:?}:\n{plain}");
        plain
    }

    #[test]
    fn in_a_pipe_nothing_is_cut() {
        let wanted = "\
101  3 s ago     claude: try it another way, as the first one has come to nothing [undone]  1 file +303 -101
100  12 min ago  codex: añade una caché 目录目录目录目录目录目录目录目录  0 files +300 -100
  9  4 d ago     claude: add a cache [interrupted, shared]  1 file +27 -9
  1  30 d ago    sh  1 file +3 -1
";
        assert_eq!(shown(None, true, &[]), wanted);
        assert_eq!(shown(Some(300), true, &[]), wanted, "nor on a wide terminal");
    }

    #[test]
    fn on_a_terminal_subjects_are_cut_by_columns() {
        assert_eq!(
            shown(Some(80), true, &[]),
            "\
101  3 s ago     claude: try it another way, as the … [undone]  1 file +303 -101
100  12 min ago  codex: añade una caché 目录目录目录目录目录…  0 files +300 -100
  9  4 d ago     claude: add a cache [interrupted, shared]  1 file +27 -9
  1  30 d ago    sh  1 file +3 -1
"
        );
    }

    #[test]
    fn what_matters_least_goes_first() {
        assert_eq!(
            shown(Some(60), false, &[]),
            "\
101  3 s ago     claude: try it another way, as ... [undone]
100  12 min ago  codex: añade una caché 目录目录目录目录...
  9  4 d ago     claude: add a cache [interrupted, shared]
  1  30 d ago    sh
"
        );
        assert_eq!(
            shown(Some(20), true, &[]),
            "\
101  claude:… [undo…
100  codex: añade u…
  9  claude:… [inte…
  1  sh
"
        );
        for width in 0..120 {
            shown(Some(width), true, &[]);
            shown(Some(width), false, &[]);
        }
    }

    #[test]
    fn a_graph_takes_its_columns() {
        let graph = ["○  \0\n", "│ ●  \0\n", "● │  \0\n├─╯\n", "●  \0\n"];
        assert_eq!(
            shown(Some(40), true, &graph),
            "\
○  101  claude: try it anoth… [undone]
│ ●  100  codex: añade una caché 目录目…
● │    9  claude:… [interrupted, shared]
├─╯
●    1  sh
"
        );
    }
}
