//! `oxundo blame`: which turn wrote each line of a file.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::git::repo::clock::ago;
use crate::model::bytes::{quoted, sanitized};
use crate::ops::blame::{By, Line, blame};
use crate::ops::turn::session::look;
use crate::program::args::BlameArgs;
use crate::program::cmd::show::from_prefix;
use crate::program::ui::{Answer, Ui};
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use serde_json::json;
use std::os::unix::ffi::OsStrExt;

/// How wide who wrote a line, and what for, may be.
const WIDE: [usize; 2] = [20, 30];

/// The lines of a file.
pub struct Blamed {
    path: BString,
    lines: Vec<Line>,
}

/// Looks.
pub fn run(repo: &Repo, ui: &Ui, args: &BlameArgs) -> Result<Blamed> {
    let heard = ui.heard();
    let view = look(repo, &heard, "blame")?;
    if args.file.is_empty() {
        let (command, what) = ("blame", "FILE");
        let refusal = Refusal::new(Code::Usage, format!("'{command}' needs {what}"));
        return Err(refusal.hint("run 'git ls-files' to see paths").into());
    }
    let path = from_prefix(repo, args.file.as_bytes())?;
    let lines = blame(&view, path.as_bstr(), &args.lines)?;
    Ok(Blamed { path, lines })
}

/// The turn, with its step, as other commands take it.
fn name(by: &By) -> String {
    let step = by.step.map(|step| format!(".{step}")).unwrap_or_default();
    let worktree = by.worktree.as_ref().map(|name| format!("{name}:")).unwrap_or_default();
    format!("{worktree}{}{step}", by.turn)
}

fn cut(text: &str, width: usize) -> String {
    let text = sanitized(text);
    if text.chars().count() <= width {
        return text;
    }
    text.chars().take(width - 3).collect::<String>() + "..."
}

/// Which turn or commit, who, when, and what for.
fn row(line: &Line) -> [String; 4] {
    let age = line.at.as_deref().map(ago).unwrap_or_default();
    match (&line.by, line.commit) {
        (Some(by), _) => {
            let who = by.model.as_ref().map_or_else(|| by.agent.clone(), |model| format!("{}:{model}", by.agent));
            [name(by), cut(&who, WIDE[0]), age, cut(by.prompt.as_deref().unwrap_or_default(), WIDE[1])]
        }
        (None, Some(commit)) => {
            let author = cut(line.author.as_deref().unwrap_or_default(), WIDE[0]);
            let subject = cut(line.subject.as_deref().unwrap_or_default(), WIDE[1]);
            [commit.to_hex_with_len(7).to_string(), author, age, subject]
        }
        (None, None) => ["-".to_owned(), "not committed".to_owned(), age, String::new()],
    }
}

impl Answer for Blamed {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let lines: Vec<_> = (self.lines.iter())
            .map(|line| {
                let by = line.by.as_ref().map(|by| {
                    json!({
                        "turn": by.turn,
                        "step": by.step.map(|step| format!("{}.{step}", by.turn)),
                        "worktree": by.worktree,
                        "agent": by.agent,
                        "model": by.model,
                        "session": by.session,
                        "prompt": by.prompt,
                    })
                });
                json!({
                    "line": line.number,
                    "commit": line.commit.map(|id| id.to_string()),
                    "author": line.author,
                    "subject": line.subject,
                    "at": line.at,
                    "by": by,
                })
            })
            .collect();
        Ok(json!({"path": quoted(self.path.as_bstr()), "lines": lines}))
    }

    fn text(&self) -> String {
        let rows: Vec<[String; 4]> = self.lines.iter().map(row).collect();
        let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or_default();
        let widths = [width(0), width(1), width(2), width(3)];
        let digits = self.lines.last().map_or(1, |line| line.number.to_string().len());
        let mut text = String::new();
        for (line, [id, who, age, what]) in self.lines.iter().zip(&rows) {
            let [a, b, c, d] = widths;
            let content = sanitized(&line.content.to_str_lossy());
            text.push_str(&format!("{id:a$}  {who:b$}  {age:c$}  {what:d$}  {:digits$}) {content}\n", line.number));
        }
        text
    }
}
