//! The timeline, or the operations on it, as people and tools read it.

use crate::git::repo::date_form::DateForm;
use crate::git::timeline::oplog::Operation;
use crate::model::bytes::{quoted_line, sanitized};
use crate::model::checkpoint::{short_branch, shown_name};
use crate::ops::list::State;
use crate::ops::status::Status;
use crate::program::text::format::{Beside, Format};
use crate::program::text::line::{Line, others};
use crate::program::text::outcome::line as paths_line;
use crate::program::text::table::{Changes, Mark, Row, cut};
use crate::program::text::{graph, table};
use crate::program::ui::{Answer, Look};
use console::style;
use gix::ObjectId;
use gix::bstr::BString;
use serde_json::json;
use std::collections::BTreeMap;

/// The log.
pub struct Log {
    pub branch: Option<String>,
    pub worktree: String,
    pub lines: Vec<Line>,
    /// Why there are none where there are none.
    pub none: NoTurns,
    pub graph: bool,
    pub look: Look,
    /// How many turns there are besides.
    pub more: u64,
    /// The command line that shows it, before and behind how many turns that is.
    pub asked: [String; 2],
    /// The last turn done where HEAD stands.
    pub top: Option<u64>,
    /// Where other branches stand.
    pub heads: BTreeMap<ObjectId, Vec<String>>,
    /// Where HEAD stands.
    pub head: Option<ObjectId>,
    /// What is uncommitted since the last turn, and which one that is.
    pub since: Option<(u64, Vec<BString>)>,
    pub dates: DateForm,
    /// Lines of the user's own.
    pub format: Option<Format>,
}

/// Why a log is of no turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTurns {
    /// Nothing is recorded.
    Yet,
    /// They were made elsewhere.
    Here,
    /// None is as was asked for.
    Match,
    /// None was asked for.
    Wanted,
}

/// Where the timeline stands, and the last turns.
pub struct Overview {
    pub status: Status,
    pub log: Log,
}

impl Answer for Overview {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let mut all = self.status.json()?;
        all["turns"] = self.log.json()?["turns"].take();
        all["more"] = (self.log.more > 0).into();
        Ok(all)
    }

    fn text(&self) -> String {
        if self.log.lines.is_empty() { self.status.text() } else { self.status.text() + "\n" + &self.log.text() }
    }

    fn hints(&self) -> Vec<String> {
        let mut hints = self.status.hints();
        if self.log.more > 0 {
            hints.push("'oxundo log' shows the others".to_owned());
        } else {
            hints.extend(self.log.hints());
        }
        hints.push("'oxundo -h' lists the commands".to_owned());
        hints
    }
}

/// The operations, with their numbers.
pub struct Operations {
    /// With the number by which its state is named, where it is.
    pub list: Vec<(Option<u64>, Operation)>,
    pub dates: DateForm,
    /// Whether there are older ones.
    pub more: bool,
}

impl Answer for Log {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let turns = self.lines.iter().map(Line::json).collect::<serde_json::Result<Vec<_>>>()?;
        let branch = self.branch.as_deref().map(short_branch);
        Ok(
            json!({"branch": branch, "worktree": shown_name(&self.worktree), "turn": self.top, "turns": turns, "more": self.more > 0}),
        )
    }

    fn text(&self) -> String {
        if let Some(format) = &self.format {
            return format.text(self.lines.iter().map(|line| (line, self.beside(line))));
        }
        if self.lines.is_empty() {
            let text = match self.none {
                NoTurns::Yet => "no turns yet\n",
                NoTurns::Here => "no turns here\n",
                NoTurns::Match => "no turn matches\n",
                NoTurns::Wanted => "",
            };
            return text.to_owned();
        }
        let rows: Vec<Row> = self.lines.iter().map(|line| self.row(line)).collect();
        let graph: Vec<String> = if self.graph { graph::drawn(&self.lines, self.look) } else { Vec::new() };
        let text = self.since() + &table::text(&rows, &graph, self.look);
        if self.graph {
            return text;
        }
        let width = self.look.width.unwrap_or(usize::MAX);
        let with_more = |(row, line): (&str, &Line)| {
            let beside = others(&line.turn)
                .into_iter()
                .map(|other| cut(&format!("      with {other}"), width, self.look) + "\n");
            let steps = line.steps.iter().flatten().map(|step| format!("      {}\n", step.text()));
            format!("{row}\n{}", beside.chain(steps).collect::<String>())
        };
        let since = text.lines().count() - self.lines.len();
        let above: String = text.lines().take(since).map(|line| format!("{line}\n")).collect();
        above + &text.lines().skip(since).zip(&self.lines).map(with_more).collect::<String>()
    }

    fn hints(&self) -> Vec<String> {
        if self.format.is_some() {
            return Vec::new();
        }
        if self.lines.is_empty() {
            return match self.none {
                NoTurns::Yet | NoTurns::Here => vec![
                    "'oxundo run -- COMMAND' makes one; 'oxundo log --all' shows those of other branches".to_owned(),
                ],
                NoTurns::Match | NoTurns::Wanted => Vec::new(),
            };
        }
        if self.more > 0 {
            let [before, behind] = &self.asked;
            let line = format!("oxundo {before} -n {}{behind}", self.lines.len() as u64 + self.more);
            return vec![format!("{} more: {} shows them too", self.more, quoted_line(&line))];
        }
        Vec::new()
    }
}

impl Log {
    /// A line on what is uncommitted since the last turn.
    fn since(&self) -> String {
        let Some((turn, paths)) = &self.since else { return String::new() };
        format!("{}\n", style(paths_line(&format!("Uncommitted since turn {turn}:"), paths).trim_end()).dim())
    }

    /// What a line of the user's own may show beside the turn.
    fn beside(&self, line: &Line) -> Beside<'_> {
        let commit = line.commit();
        let own = self.branch.as_deref().filter(|_| commit.is_some() && commit == self.head);
        let own = own.map(|branch| format!("HEAD -> {}", sanitized(&short_branch(branch))));
        let others = commit.and_then(|commit| self.heads.get(&commit)).into_iter().flatten();
        let refs = own.into_iter().chain(others.map(|name| sanitized(name))).collect();
        Beside { dates: &self.dates, refs, look: self.look }
    }

    fn row(&self, line: &Line) -> Row {
        let turn = &line.turn;
        let mut marks = Vec::new();
        match line.state {
            State::Done => {}
            State::UndoneByHand if line.is_elsewhere => marks.push(Mark::Plain("not here".to_owned())),
            State::Open => marks.push(Mark::Live("open".to_owned())),
            State::Undone | State::Left => marks.push(Mark::Plain(line.state.word().to_owned())),
            State::UndoneByHand => marks.push(Mark::Plain("undone by hand".to_owned())),
        }
        // Where nothing is undone it goes without saying.
        let is_undone = |line: &Line| matches!(line.state, State::Undone | State::UndoneByHand);
        let is_first = !self.lines.iter().any(is_undone);
        if line.place.here && self.top == Some(turn.turn) && !is_first {
            marks.push(Mark::Live("you are here".to_owned()));
        }
        if turn.kept {
            marks.push(Mark::Plain("kept".to_owned()));
        }
        if turn.interrupted {
            marks.push(Mark::Alert("interrupted".to_owned()));
        } else if let Some(code) = turn.exit_code.filter(|code| *code != 0) {
            marks.push(Mark::Alert(format!("exit {code}")));
        }
        marks.extend(line.taken_out.map(|taken| Mark::Plain(taken.word().to_owned())));
        if turn.origin.shared {
            marks.push(Mark::Plain("shared".to_owned()));
        }
        if turn.origin.partial {
            marks.push(Mark::Alert("partial".to_owned()));
        }
        if !line.place.here || line.branch != self.branch {
            let branch = line.branch_name().map_or_else(|| "a detached HEAD".to_owned(), |name| sanitized(&name));
            marks.push(Mark::Plain(format!("on {branch}")));
        }
        if !line.place.here {
            let which = if line.place.removed { "removed worktree" } else { "worktree" };
            marks.push(Mark::Plain(format!("{which} {}", sanitized(&shown_name(line.worktree())))));
        }
        let commit = line.commit();
        let heads = commit.and_then(|commit| self.heads.get(&commit)).into_iter().flatten();
        // Where the turn was made is told already.
        let heads = heads.filter(|name| line.branch_name().is_none_or(|own| own != **name));
        marks.extend(heads.map(|name| Mark::Plain(format!("branch {}", sanitized(name)))));
        let totals = turn.totals;
        Row {
            commit: commit.map(|id| id.to_hex_with_len(7).to_string()),
            number: turn.turn,
            age: line.age.clone(),
            label: sanitized(&turn.label()),
            agent: sanitized(&turn.agent),
            marks,
            changes: turn.ended_at.is_some().then_some(Changes {
                files: totals.files,
                renames: line.renames(),
                insertions: totals.insertions,
                deletions: totals.deletions,
                instead: line.instead,
            }),
            dim: matches!(line.state, State::Undone | State::UndoneByHand | State::Left),
        }
    }
}

impl Answer for Operations {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let operations: Vec<_> = (self.list.iter())
            .map(|(number, op)| {
                json!({
                    "state": number.map(|number| format!("op:{number}")), "timeline": op.commit.to_string(), "at": op.at, "message": op.what,
                })
            })
            .collect();
        Ok(json!({"operations": operations, "more": self.more}))
    }

    fn text(&self) -> String {
        if self.list.is_empty() {
            // None was asked for where there are some.
            return if self.more { "" } else { "no operations yet\n" }.to_owned();
        }
        let line = |(number, op): &(Option<u64>, Operation)| {
            let name = number.map_or_else(|| "-".to_owned(), |number| format!("op:{number}"));
            format!("{}  {}  {}\n", style(name).yellow(), style(self.dates.of(&op.at)).dim(), sanitized(&op.what))
        };
        self.list.iter().map(line).collect()
    }
}
