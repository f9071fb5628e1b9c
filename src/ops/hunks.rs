//! `undo -p` and `restore -p`: what git's own questions were answered makes of a plan another one, of the parts that were chosen.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::repo::ask;
use crate::git::repo::ask::{Question, Sheet, Way};
use crate::model::bytes::{exact, in_quotes, quoted, quoted_line, shell_word, size};
use crate::model::checkpoint::{Change, Delta, FileState, Kind};
use crate::model::merge::{Cause, Edits};
use crate::model::path::is_at_or_below;
use crate::model::plan::{DirectoryMove, FileMove, Op, Plan};
use crate::model::planner::{TurnDelta, conflict, plan as planned};
use crate::model::turn::Made;
use crate::ops::made::PlannedTurn;
use crate::ops::undo::conflict::as_git_does;
use crate::ops::undo::range::nothing;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is larger is asked about as a whole.
const LARGE: u64 = 4 * 1024 * 1024;

/// What was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// Of which turns, or of what state.
    of: String,
    files: Vec<Choice>,
}

/// What was chosen of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Choice {
    #[serde(with = "exact")]
    path: BString,
    /// As it was when this was asked.
    from: Option<FileState>,
    /// A part of its changes; none is all of them.
    part: Option<Part>,
}

/// A file with some of its changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    /// As it was when this was asked.
    from: Option<FileState>,
    /// What was in it then: it may be recorded nowhere.
    #[serde(with = "exact")]
    was: BString,
    /// What is to be in it.
    #[serde(with = "exact")]
    becomes: BString,
    kind: Kind,
    mode: u32,
}

/// What is to be asked of a plan.
pub struct Asked {
    of: String,
    files: Vec<(Question, Answered)>,
    op: Op,
}

/// What an answer is about.
enum Answered {
    /// A file, of which a part can be chosen.
    Parts(FileMove),
    /// A file, or one in whose place a directory is or was and all that is in that: all or nothing.
    Whole(Vec<FileMove>),
}

impl Asked {
    /// What git can ask of what a plan does to files, and what the plan is of. The user is told what it cannot.
    pub fn of(view: &View<'_>, plan: &Plan, of: String) -> Result<Self> {
        for aside in &plan.aside {
            let (path, op) = (in_quotes(aside.path.as_bstr()), plan.op.word());
            let rest = quoted_line(&format!("-- {}", shell_word(aside.path.as_slice())));
            view.warn(format!("{path} is not asked about, and stays: 'oxundo {op}' with {rest} moves it as a whole"));
        }
        let mut files = Vec::new();
        for file in &plan.files {
            let is_below = |other: &&FileMove| below(other, file);
            if !plan.files.iter().any(|other| below(file, other)) {
                files.push(question(view, file, plan.files.iter().filter(is_below).cloned().collect())?);
            }
        }
        Ok(Self { of, files, op: plan.op })
    }

    /// Has git ask.
    pub fn ask(self, repo: &Repo) -> Result<Chosen> {
        let way = if self.op == Op::Restore { Way::Apply } else { Way::Discard };
        let (questions, files): (Vec<Question>, Vec<Answered>) = self.files.into_iter().unzip();
        let Some(answers) = ask::ask(repo, &questions, way)? else {
            return Err(Refusal::new(Code::Interrupted, "interrupted: nothing is changed")
                .hint("run the same command again")
                .into());
        };
        let mut chosen = Vec::new();
        for ((question, about), answer) in questions.into_iter().zip(files).zip(answers) {
            let whole = |file: FileMove| Choice { path: file.path, from: file.from, part: None };
            match about {
                _ if answer == question.now => {}
                Answered::Parts(file) if answer == question.goal => chosen.push(whole(file)),
                Answered::Whole(files) if answer == question.goal => chosen.extend(files.into_iter().map(whole)),
                Answered::Parts(file) if answer.is_some() => {
                    let part = Some(part(question, &file, answer)?);
                    chosen.push(Choice { path: file.path, from: file.from, part });
                }
                _ => return Err(fits_no_part(&question).into()),
            }
        }
        if chosen.is_empty() {
            return Err(nothing(self.op, "no change was chosen").into());
        }
        Ok(Chosen { of: self.of, files: chosen })
    }
}

/// Whether a file is in a directory that is, or was, in the place of another one.
fn below(file: &FileMove, other: &FileMove) -> bool {
    file.path != other.path && is_at_or_below(file.path.as_bstr(), other.path.as_bstr())
}

/// What is asked about a file, and about those in a directory in its place: git could not have the one without the others go.
fn question(view: &View<'_>, file: &FileMove, others: Vec<FileMove>) -> Result<(Question, Answered)> {
    let path = file.path.clone();
    if !others.is_empty() {
        let directory =
            Some(Sheet { content: format!("directory with {}\n", so_many(others.len())).into(), executable: false });
        let [now, goal] = [file.from, file.to].map(|state| named(view, state, None));
        let (now, goal) = (now?.or_else(|| directory.clone()), goal?.or(directory));
        let all = [file.clone()].into_iter().chain(others).collect();
        return Ok((Question { path, now, goal }, Answered::Whole(all)));
    }
    let [now, goal] = [readable(view, file.from)?, readable(view, file.to)?];
    let is_same = matches!((&file.from, &file.to), (Some(from), Some(to)) if from.id == to.id && from.kind == to.kind);
    Ok(match (now, goal) {
        (Ok(now), Ok(goal)) if !is_same => (Question { path, now, goal }, Answered::Parts(file.clone())),
        (now, goal) => {
            let (now, goal) = (named(view, file.from, now.err())?, named(view, file.to, goal.err())?);
            (Question { path, now, goal }, Answered::Whole(vec![file.clone()]))
        }
    })
}

fn so_many(files: usize) -> String {
    if files == 1 { "1 file".to_owned() } else { format!("{files} files") }
}

/// What of a file can be asked about line by line, or why it cannot.
fn readable(view: &View<'_>, state: Option<FileState>) -> Result<Result<Option<Sheet>, &'static str>> {
    let Some(state) = state else { return Ok(Ok(None)) };
    if state.kind == Kind::Symlink {
        return Ok(Err("link"));
    }
    let objects = Objects::new(view.repo);
    if objects.size(state.id)? > LARGE {
        return Ok(Err("large file"));
    }
    let content = objects.blob(state.id)?;
    if content.contains(&0) {
        return Ok(Err("binary file"));
    }
    Ok(Ok(Some(Sheet { content, executable: state.kind == Kind::Executable })))
}

/// A line in the place of what can be chosen as a whole alone.
fn named(view: &View<'_>, state: Option<FileState>, why: Option<&str>) -> Result<Option<Sheet>> {
    let Some(state) = state else { return Ok(None) };
    let objects = Objects::new(view.repo);
    let line = if state.kind == Kind::Symlink {
        format!("link to {}\n", quoted(objects.blob(state.id)?.as_bstr()))
    } else {
        let (kind, bytes) = (why.unwrap_or("file"), size(objects.size(state.id)?));
        format!("{kind}, {bytes}, mode {:04o}, content {}\n", state.mode, state.id)
    };
    Ok(Some(Sheet { content: line.into_bytes(), executable: false }))
}

fn fits_no_part(question: &Question) -> Refusal {
    let path = in_quotes(question.path.as_bstr());
    Refusal::new(Code::Usage, format!("what was edited of {path} fits no part of it"))
        .hint("run the same command again, and answer it with y or n")
}

fn part(question: Question, file: &FileMove, answer: Option<Sheet>) -> Result<Part> {
    let from = file.from;
    let Some(answer) = answer else { return Err(fits_no_part(&question).into()) };
    let kind = if answer.executable { Kind::Executable } else { Kind::File };
    // The other permission bits are those of the side that it has this one from.
    let of_kind = |state: &&FileState| state.kind == kind;
    let mode = file.from.iter().chain(&file.to).find(of_kind).map_or(0o644, |state| state.mode);
    let was = question.now.map(|now| now.content).unwrap_or_default().into();
    Ok(Part { from, was, becomes: answer.content.into(), kind, mode })
}

impl Chosen {
    /// Whether something was chosen of this file.
    pub fn has(&self, path: &BString) -> bool {
        self.files.iter().any(|choice| choice.path == *path)
    }

    /// Whether it was chosen of this.
    pub fn is_of(&self, of: &str) -> bool {
        self.of == of
    }
}

/// The part of a plan that was chosen.
pub fn narrowed(view: &View<'_>, mut made: PlannedTurn, chosen: &Chosen, edits: Edits) -> Result<PlannedTurn> {
    let (whole, checkpoints) = (made.plan, Checkpoints::new(view.repo));
    let saved: Vec<BString> = saved_since(&whole, chosen);
    if !saved.is_empty() {
        return Err(changed_since_asked(&saved).into());
    }
    let left = left_behind(&whole, chosen);
    if !left.is_empty() {
        return Err(conflict(&left, whole.op, edits).into());
    }
    let mut files = BTreeMap::new();
    let mut partly = Vec::new();
    for file in &whole.files {
        let Some(choice) = chosen.files.iter().find(|choice| choice.path == file.path) else { continue };
        let change = match &choice.part {
            None => Change::new(file.from, file.to),
            Some(part) => {
                partly.push(quoted(file.path.as_bstr()));
                part.change(view)?
            }
        };
        files.insert(file.path.clone(), change);
    }
    let directories = directories(&whole, &files);
    let within = made.capture.checkpoint.operation.clone();
    let delta = Delta { files, directories, ..Delta::default() };
    let deltas = [TurnDelta { turn: 0, delta, within, ..TurnDelta::default() }];
    let present = checkpoints.present(&deltas, &made.capture.checkpoint, &made.capture.index)?;
    let plan = checkpoints.merging(|merge| planned(whole.op, &deltas, &present, edits, merge));
    made.plan = plan.map_err(|error| as_git_does(view, error, &made.capture.checkpoint))?;
    if made.plan.is_empty() {
        return Err(nothing(whole.op, "what was chosen is so already").into());
    }
    made.plan.turns = whole.turns;
    made.plan.kept_edits = whole.kept_edits;
    // Of a file of which a part was chosen the edit may be in another.
    let is_whole = |path: &BString| chosen.files.iter().any(|choice| choice.path == *path && choice.part.is_none());
    made.plan.overwritten = whole.overwritten.into_iter().filter(is_whole).collect();
    if let Made::PartialRevert(turns) = made.made {
        made.made = Made::Hunks { turns, partly };
    }
    Ok(made)
}

/// The files that would go with the user's edits in them, which are to go along to another name: that was not chosen.
fn left_behind(whole: &Plan, chosen: &Chosen) -> BTreeMap<BString, Cause> {
    let is_whole =
        |file: &&FileMove| chosen.files.iter().any(|choice| choice.path == file.path && choice.part.is_none());
    let edited = || whole.files.iter().filter(|file| whole.kept_edits.contains(&file.path));
    if edited().filter(|file| file.from.is_none()).all(|file| is_whole(&file)) {
        return BTreeMap::new();
    }
    edited().filter(|file| file.to.is_none()).filter(is_whole).map(|file| (file.path.clone(), Cause::Changed)).collect()
}

/// The files that were chosen as a whole, and that somebody has saved since: nobody was asked about what is there now.
fn saved_since(whole: &Plan, chosen: &Chosen) -> Vec<BString> {
    let asked = |file: &FileMove| chosen.files.iter().find(|choice| choice.path == file.path);
    let is_another = |file: &&FileMove| asked(file).is_some_and(|it| it.part.is_none() && it.from != file.from);
    whole.files.iter().filter(is_another).map(|file| file.path.clone()).collect()
}

/// The refusal of answers to questions about what is another by now: these files, or all of it.
pub fn changed_since_asked(paths: &[BString]) -> Refusal {
    let what = match paths {
        [] => "something has".to_owned(),
        [path] => format!("{} has", in_quotes(path.as_bstr())),
        [path, others @ ..] => format!("{} and {} more have", in_quotes(path.as_bstr()), so_many(others.len())),
    };
    Refusal::new(Code::Conflict, format!("{what} changed since you were asked"))
        .hint("run the same command again")
        .paths(paths.iter().cloned())
}

impl Part {
    /// It as a change of what was there when it was asked: what was saved since is merged, or refused.
    fn change(&self, view: &View<'_>) -> Result<Change<Option<FileState>>> {
        view.repo.put_blob(&self.was)?;
        let to = FileState { kind: self.kind, id: view.repo.put_blob(&self.becomes)?, mode: self.mode };
        Ok(Change::new(self.from, Some(to)))
    }
}

/// The directories that go with all that is in them, and those that come with what is to be in them.
fn directories(
    whole: &Plan,
    files: &BTreeMap<BString, Change<Option<FileState>>>,
) -> BTreeMap<BString, Change<Option<u32>>> {
    let is_chosen = |directory: &DirectoryMove| {
        let is_below = |path: &BString| is_at_or_below(path.as_bstr(), directory.path.as_bstr());
        let goes = |path: &BString| files.get(path).is_some_and(|change| change.to.is_none());
        let mut there = whole.files.iter().filter(|file| file.from.is_some() && is_below(&file.path)).peekable();
        match (directory.from, directory.to) {
            (_, None) => there.peek().is_some() && there.all(|file| goes(&file.path)),
            (None, Some(_)) => files.iter().any(|(path, change)| change.to.is_some() && is_below(path)),
            (Some(_), Some(_)) => false,
        }
    };
    let chosen = whole.directories.iter().filter(|directory| is_chosen(directory));
    chosen.map(|directory| (directory.path.clone(), Change::new(directory.from, directory.to))).collect()
}
