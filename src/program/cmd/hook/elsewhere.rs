//! Where a session is at work beside the worktree of its project: an agent goes into another one in the middle of a prompt, and
//! comes out of it, and its project stays the same. What it does there is in a turn of that worktree.

use crate::agents::payload::HookEvent;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::bytes::lossless;
use crate::model::session::Signal;
use crate::model::turn::{Participant, Turn};
use crate::ops::turn::calls::in_open_turn;
use anyhow::Result;
use gix::bstr::ByteSlice;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What is to be told in which other worktree, once its project's has been told.
pub fn elsewhere(repo: &Repo, heard: &HookEvent) -> Result<Vec<(Repo, HookEvent)>> {
    let mut all = Vec::new();
    let here = heard.directory.as_deref().and_then(|place| other(repo, place));
    // That it goes on counts wherever it is at work: another prompt's end is the end then.
    let is_of_all = heard.signal.only_ends() || heard.signal == Signal::GoOn;
    if is_of_all || heard.signal == Signal::Called {
        let is_here = |left: &Repo| here.as_ref().is_some_and(|here| here.git_dir() == left.git_dir());
        let left = tops_with_calls(repo, &heard.part)?.into_iter().filter_map(|top| other(repo, &top));
        for left in left.filter(|left| !is_here(left)).collect::<Vec<_>>() {
            let is_its = is_of_all || has_begun(&left, heard);
            if is_its && part_in(&left, &heard.part)?.is_some_and(|part| part.at_work) {
                all.push((left, heard.clone()));
            }
        }
    }
    let Some(here) = here else { return Ok(all) };
    let is_call = matches!(heard.signal, Signal::Call | Signal::Called);
    if is_call && !part_in(&here, &heard.part)?.is_some_and(|part| part.at_work) {
        // It has told of its prompt where it was then.
        let asked = part_in(repo, &heard.part)?.and_then(|part| part.asked.last().cloned());
        let prompt = asked.and_then(|asked| asked.prompt.or(asked.message));
        let begun = HookEvent { signal: Signal::Work, prompt, tool: None, ..heard.clone() };
        let Some(again) = other(repo, here.top()) else { return Ok(all) };
        all.push((again, begun));
        if heard.signal == Signal::Called {
            return Ok(all);
        }
    }
    all.push((here, heard.clone()));
    Ok(all)
}

/// Another worktree of the same repository.
fn other(repo: &Repo, place: &Path) -> Option<Repo> {
    let there = Some(place).filter(|place| place.is_absolute() && !place.starts_with(repo.git_dir()));
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
    let session = serde_json::to_string(&who.session)?;
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
