//! Where a session is at work beside the worktree of its project, or that in which it is: an agent goes into another one in the
//! middle of a prompt, and comes out of it, or writes a file there by its whole path. What it does there is in a turn of that
//! worktree.

use crate::agents::payload::HookEvent;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::bytes::lossless;
use crate::model::call::ToolUse;
use crate::model::session::Signal;
use crate::model::turn::{Participant, Turn};
use crate::ops::turn::calls::{in_open_turn, outlasts};
use anyhow::Result;
use gix::bstr::ByteSlice;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is to be told in which other worktree, once that of its project, or where it is, has been told.
pub fn elsewhere(repo: &Repo, heard: &HookEvent) -> Result<Vec<(Repo, HookEvent)>> {
    let mut here: Vec<Repo> = Vec::new();
    for found in places(heard).iter().filter_map(|place| other(repo, place)) {
        if !is_among(&found, &here) {
            here.push(found);
        }
    }
    let mut all = in_those_left(repo, heard, &here)?;
    for here in here {
        all.extend(told_in(repo, here, heard)?);
    }
    Ok(all)
}

/// Where the session is at work: where it says, and where the file is that a call writes, wherever it is called from.
fn places(heard: &HookEvent) -> Vec<PathBuf> {
    let file = heard.tool.as_ref().filter(|tool| !tool.only_reads()).and_then(ToolUse::only_file).map(Path::new);
    // It may make the directories that it writes in.
    let above = file.and_then(|file| file.ancestors().skip(1).find(|above| above.is_dir()));
    heard.directory.as_deref().into_iter().chain(above).map(Path::to_owned).collect()
}

fn is_among(one: &Repo, all: &[Repo]) -> bool {
    all.iter().any(|other| other.git_dir() == one.git_dir())
}

/// What is to be told where it is at work.
fn told_in(repo: &Repo, here: Repo, heard: &HookEvent) -> Result<Vec<(Repo, HookEvent)>> {
    let mut all = Vec::new();
    let is_call = matches!(heard.signal, Signal::Call | Signal::Called);
    if is_call && !part_in(&here, &heard.part)?.is_some_and(|part| part.at_work) {
        // It has told of its prompt where it was then.
        let asked = part_in(repo, &heard.part)?.and_then(|part| part.asked.last().cloned());
        let prompt = asked.and_then(|asked| asked.prompt.or(asked.message));
        let begun = HookEvent { signal: Signal::Work, prompt, tool: None, ..heard.clone() };
        let again = || other(repo, here.top());
        all.extend(again().map(|here| (here, begun)));
        if let (Signal::Called, Some(tool)) = (heard.signal, &heard.tool) {
            // What it did began before, or elsewhere. That it tells of its calls is known by it, and so is where its end is to be told.
            let tool = ToolUse { path: None, command: None, is_told_by_others: true, ..tool.clone() };
            let seen = |signal| HookEvent { signal, tool: Some(tool.clone()), ..heard.clone() };
            all.extend(again().map(|here| (here, seen(Signal::Call))));
            all.push((here, seen(Signal::Called)));
            return Ok(all);
        }
    }
    all.push((here, heard.clone()));
    Ok(all)
}

/// What is to be told where the session has been at work and is no more.
fn in_those_left(repo: &Repo, heard: &HookEvent, here: &[Repo]) -> Result<Vec<(Repo, HookEvent)>> {
    let mut all = Vec::new();
    if matches!(heard.signal, Signal::Work | Signal::Call) {
        return Ok(all);
    }
    for top in tops_with_calls(repo, &heard.part)? {
        let Some(left) = other(repo, &top).filter(|left| !is_among(left, here)) else { continue };
        let Some(part) = part_in(&left, &heard.part)?.filter(|part| part.at_work) else { continue };
        if let Some(told) = as_told_where_left(&left, part, heard) {
            all.push((left, told));
        }
    }
    Ok(all)
}

/// What it says of the session's part in the turn of a worktree that it has left.
fn as_told_where_left(left: &Repo, part: Participant, heard: &HookEvent) -> Option<HookEvent> {
    match heard.signal {
        Signal::Called if !has_begun(left, heard) => None,
        Signal::Begin if part.goes_on || part.is_prompt_of(&heard.part) => None,
        // What it has started there is still at work: the end of this prompt is the end then.
        Signal::Begin if outlasts(left, &part) => {
            Some(HookEvent { signal: Signal::GoOn, prompt: None, ..heard.clone() })
        }
        // The prompt before was cut off, and nothing told of that.
        Signal::Begin => {
            let part = Participant { prompt: part.prompt, ..heard.part.clone() };
            Some(HookEvent { signal: Signal::End { interrupted: true }, part, prompt: None, ..heard.clone() })
        }
        // That it goes on counts wherever it is at work: another prompt's end is the end then.
        _ => Some(heard.clone()),
    }
}

/// Another worktree of the same repository.
fn other(repo: &Repo, place: &Path) -> Option<Repo> {
    let is_top = |above: &&Path| above.join(".git").symlink_metadata().is_ok();
    // That the place is in this one is seen without opening it again.
    let is_here = || place.ancestors().find(is_top) == Some(repo.top());
    let there = Some(place).filter(|place| place.is_absolute() && !place.starts_with(repo.git_dir()) && !is_here());
    let found = Repo::open_existing(there?).ok().flatten()?;
    (found.common_dir() == repo.common_dir() && found.git_dir() != repo.git_dir()).then_some(found)
}

/// The part of a session in the open turn.
fn part_in(repo: &Repo, who: &Participant) -> Result<Option<Participant>> {
    let timeline = Timelines::new(repo).timeline()?;
    let Some(open) = timeline.state.open else { return Ok(None) };
    let turn: Turn = timeline.require_turn(open)?;
    Ok(turn.origin.part_of(who).cloned())
}

/// Whether the call whose end this is has begun there: it has led the agent out of that worktree.
fn has_begun(left: &Repo, heard: &HookEvent) -> bool {
    let Some(tool) = heard.tool.as_ref().filter(|tool| tool.id.is_some()) else { return false };
    in_open_turn(left).iter().any(|call| call.session == heard.part.session && call.tool.id == tool.id)
}

/// Where calls of this session have been told of since a turn began.
fn tops_with_calls(repo: &Repo, who: &Participant) -> Result<Vec<PathBuf>> {
    // Who tells no session is not known anywhere else.
    let Some(session) = who.session.as_ref().map(serde_json::to_string).transpose()? else { return Ok(Vec::new()) };
    let has_calls = |git_dir: &Path| {
        let calls = std::fs::read(git_dir.join("oxundo/calls"));
        calls.is_ok_and(|calls| calls.contains_str(&session))
    };
    let mut tops = Vec::new();
    for linked in std::fs::read_dir(repo.common_dir().join("worktrees")).into_iter().flatten() {
        let linked = linked?;
        if has_calls(&linked.path()) {
            tops.extend(repo.top_of(&lossless::encode(linked.file_name().as_bytes()))?);
        }
    }
    if repo.linked_name().is_some() && has_calls(repo.common_dir()) {
        tops.extend(repo.top_of("main")?);
    }
    Ok(tops)
}
