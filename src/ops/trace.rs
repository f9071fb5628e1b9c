//! What a turn wrote, as an Agent Trace record (version 0.1.0): which lines of which files, in which conversation, by which
//! model. It is made when it is asked for, and kept nowhere.

use crate::git::objects::Objects;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::bytes::unquoted;
use crate::model::checkpoint::Kind;
use crate::model::turn::Turn;
use crate::ops::blame::{By, written_by};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use serde_json::{Map, Value, json};

/// The version of the format.
const VERSION: &str = "0.1.0";

/// The record of a turn.
pub fn record(view: &View<'_>, timeline: &Stored<'_>, turn: &Turn) -> Result<Value> {
    let mut files = Vec::new();
    for file in timeline.turn_files(turn.turn)?.into_iter().filter(|file| file.status != 'D') {
        let path = unquoted(&file.path).unwrap_or_else(|| BString::from(file.path.as_str()));
        let after = timeline.checkpoint(turn.turn, Side::After)?.worktree;
        let is_file =
            Objects::new(view.repo).tree_file(after, path.as_bstr())?.is_some_and(|(kind, _)| kind != Kind::Symlink);
        let written = if is_file { written_by(view, timeline, turn, path.as_bstr())? } else { Vec::new() };
        files.push(json!({"path": file.path, "conversations": conversations(written)}));
    }
    let mut record = Map::new();
    record.insert("version".to_owned(), VERSION.into());
    record.insert("id".to_owned(), id(view, turn).into());
    record.insert("timestamp".to_owned(), turn.ended_at.as_deref().unwrap_or(&turn.began_at).into());
    // What is not committed is in no revision.
    if let Some(commit) = turn.commits.last() {
        record.insert("vcs".to_owned(), json!({"type": "git", "revision": commit.id.to_string()}));
    }
    record.insert("tool".to_owned(), json!({"name": turn.agent}));
    record.insert("files".to_owned(), files.into());
    let own = json!({"turn": turn.turn, "worktree": view.repo.worktree_id(), "session": turn.session});
    record.insert("metadata".to_owned(), json!({"oxundo": own}));
    Ok(record.into())
}

/// The lines of a file, by who wrote them.
fn conversations(written: Vec<(usize, By)>) -> Vec<Value> {
    let mut all: Vec<(By, Vec<[usize; 2]>)> = Vec::new();
    for (line, by) in written {
        let is_its = |(other, _): &&mut (By, Vec<_>)| (&other.agent, &other.session) == (&by.agent, &by.session);
        match all.iter_mut().find(is_its) {
            Some((_, ranges)) => match ranges.last_mut() {
                Some(range) if range[1] + 1 == line => range[1] = line,
                _ => ranges.push([line, line]),
            },
            None => all.push((by, vec![[line, line]])),
        }
    }
    let told = all.into_iter().map(|(by, ranges)| {
        let mut contributor = json!({"type": "ai"});
        if let Some(model) = by.model {
            contributor["model_id"] = model.into();
        }
        let ranges: Vec<Value> =
            ranges.into_iter().map(|[first, last]| json!({"start_line": first, "end_line": last})).collect();
        json!({"contributor": contributor, "ranges": ranges})
    });
    told.collect()
}

/// A turn has the same one each time.
fn id(view: &View<'_>, turn: &Turn) -> String {
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(format!("{} {} {}", view.repo.worktree_id(), turn.turn, turn.began_at).as_bytes());
    let digest = hasher.try_finalize().map_or_else(|_| "0".repeat(40), |id| id.to_hex().to_string());
    // As one that is made of a name.
    format!("{}-{}-5{}-8{}-{}", &digest[..8], &digest[8..12], &digest[13..16], &digest[17..20], &digest[20..32])
}
