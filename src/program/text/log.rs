//! The timeline, or the operations on it, as people and tools read it.

use crate::git::timeline::oplog::Operation;
use crate::model::bytes::sanitized;
use crate::model::checkpoint::{short_branch, shown_name};
use crate::model::turn::CommitKind;
use crate::ops::list::State;
use crate::ops::status::Status;
use crate::program::text::line::{Line, StepLine, Taken};
use crate::program::text::table::{Mark, Row};
use crate::program::text::{graph, table};
use crate::program::ui::{Answer, Look};
use console::style;
use serde_json::json;

/// The log.
pub struct Log {
    pub branch: Option<String>,
    pub worktree: String,
    pub lines: Vec<Line>,
    /// Whether there are turns at all.
    pub recorded: bool,
    pub graph: bool,
    pub look: Look,
}

/// Where the timeline stands, and the last turns.
pub struct Overview {
    pub status: Status,
    pub log: Log,
    /// Whether there are more of them.
    pub more: bool,
}

impl Answer for Overview {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let mut all = self.status.json()?;
        all["turns"] = self.log.json()?["turns"].take();
        all["more"] = self.more.into();
        Ok(all)
    }

    fn text(&self) -> String {
        if self.log.lines.is_empty() { self.status.text() } else { self.status.text() + "\n" + &self.log.text() }
    }

    fn hints(&self) -> Vec<String> {
        let mut hints = self.status.hints();
        hints.extend(self.log.hints());
        if self.more {
            hints.push("'oxundo log' shows the others".to_owned());
        }
        hints.push("'oxundo -h' lists the commands".to_owned());
        hints
    }
}

/// The operations, with their numbers.
pub struct Operations(pub Vec<(u64, Operation)>);

impl Answer for Log {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let turns: Vec<_> = (self.lines.iter())
            .map(|line| {
                let turn = &line.turn;
                let steps = line.steps.iter().flatten().map(StepLine::json).collect::<serde_json::Result<Vec<_>>>()?;
                let commits: Vec<_> = (turn.commits.iter())
                    .filter(|commit| commit.kind != CommitKind::Dirty)
                    .map(|commit| commit.id.to_string())
                    .collect();
                let mut value = json!({
                    "turn": turn.turn,
                    "state": line.state.word(),
                    "agent": turn.agent,
                    "session": turn.session,
                    "message": turn.title(),
                    "branch": turn.branch_name(),
                    "worktree": shown_name(line.worktree()),
                    "worktree_removed": line.place.removed,
                    "mode": turn.mode,
                    "began_at": turn.began_at,
                    "ended_at": turn.ended_at,
                    "exit_code": turn.exit_code,
                    "interrupted": turn.interrupted,
                    "shared": turn.origin.shared,
                    "partial": turn.origin.partial,
                    "by_hand": line.state == State::UndoneByHand,
                    "kept": turn.kept,
                    "model": turn.origin.parts.iter().find_map(|part| part.model.clone()),
                    "dirty_commit": turn.dirty_commit.map(|id| id.to_string()),
                    "commits": commits,
                    "taken_out": line.taken_out.map(Taken::word),
                    "files": line.files,
                });
                if line.steps.is_some() {
                    value["steps"] = steps.into();
                }
                Ok(value)
            })
            .collect::<serde_json::Result<_>>()?;
        let branch = self.branch.as_deref().map(short_branch);
        Ok(json!({"branch": branch, "worktree": shown_name(&self.worktree), "turns": turns}))
    }

    fn text(&self) -> String {
        if self.lines.is_empty() {
            return if self.recorded { "no turns here\n" } else { "no turns yet\n" }.to_owned();
        }
        let rows: Vec<Row> = self.lines.iter().map(|line| self.row(line)).collect();
        let graph: Vec<String> = if self.graph { graph::drawn(&self.lines, self.look) } else { Vec::new() };
        let text = table::text(&rows, &graph, self.look);
        if self.lines.iter().all(|line| line.steps.is_none()) {
            return text;
        }
        let with_steps = |(row, line): (&str, &Line)| {
            let steps = line.steps.iter().flatten().map(|step| format!("      {}\n", step.text()));
            format!("{row}\n{}", steps.collect::<String>())
        };
        text.lines().zip(&self.lines).map(with_steps).collect()
    }

    fn hints(&self) -> Vec<String> {
        if self.lines.is_empty() {
            return vec![
                "'oxundo run -- COMMAND' makes one; 'oxundo log --all' shows those of other branches".to_owned(),
            ];
        }
        Vec::new()
    }
}

impl Log {
    fn row(&self, line: &Line) -> Row {
        let turn = &line.turn;
        let mut marks = Vec::new();
        match line.state {
            State::Done => {}
            State::Open => marks.push(Mark::Live("open".to_owned())),
            State::Undone | State::Left => marks.push(Mark::Plain(line.state.word().to_owned())),
            State::UndoneByHand => marks.push(Mark::Plain("undone by hand".to_owned())),
        }
        if turn.kept {
            marks.push(Mark::Plain("kept".to_owned()));
        }
        if turn.interrupted {
            marks.push(Mark::Alert("interrupted".to_owned()));
        }
        marks.extend(line.taken_out.map(|taken| Mark::Plain(taken.word().to_owned())));
        if turn.origin.shared {
            marks.push(Mark::Plain("shared".to_owned()));
        }
        if turn.origin.partial {
            marks.push(Mark::Alert("partial".to_owned()));
        }
        if !line.place.here || turn.branch != self.branch {
            let branch = turn.branch_name().map_or_else(|| "a detached HEAD".to_owned(), |name| sanitized(&name));
            marks.push(Mark::Plain(format!("on {branch}")));
        }
        if !line.place.here {
            let which = if line.place.removed { "removed worktree" } else { "worktree" };
            marks.push(Mark::Plain(format!("{which} {}", sanitized(&shown_name(line.worktree())))));
        }
        let totals = turn.totals;
        Row {
            number: turn.turn,
            age: line.age.clone(),
            label: sanitized(&turn.label()),
            agent: sanitized(&turn.agent),
            marks,
            changes: turn.ended_at.is_some().then_some((totals.files, totals.insertions, totals.deletions)),
            dim: matches!(line.state, State::Undone | State::UndoneByHand | State::Left),
        }
    }
}

impl Answer for Operations {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let operations: Vec<_> = (self.0.iter())
            .map(|(number, op)| {
                json!({
                    "state": format!("op:{number}"), "timeline": op.commit.to_string(), "at": op.at, "message": op.what,
                })
            })
            .collect();
        Ok(json!({"operations": operations}))
    }

    fn text(&self) -> String {
        if self.0.is_empty() {
            return "no operations yet\n".to_owned();
        }
        let line = |(number, op): &(u64, Operation)| {
            let name = format!("op:{number}");
            format!("{}  {}  {}\n", style(name).yellow(), style(&op.at).dim(), sanitized(&op.what))
        };
        self.0.iter().map(line).collect()
    }
}
