//! `oxundo show`: what a turn changed, through git's own diff, or a file as it
//! was before or after a turn.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::git::repo::clock::local;
use crate::git::timeline::Timelines;
use crate::git::timeline::others::Other;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::bytes::{in_quotes, quoted, quoted_line, sanitized};
use crate::model::checkpoint::{Checkpoint, Delta, short_branch};
use crate::model::step::StepName;
use crate::model::timeline::{TurnSpec, range_ends};
use crate::model::turn::{FileChange, Session, Turn};
use crate::ops::diff::changes;
use crate::ops::elsewhere::without_own_name;
use crate::ops::list::{delta_of, only};
use crate::ops::resolve::{check_is_of_state, ended_turn, kept_prefix, shown_by, state_at, step_of};
use crate::ops::trace;
use crate::ops::turn::session::look;
use crate::ops::turn::states;
use crate::ops::undo::range::line_between;
use crate::ops::view::View;
use crate::program::args::{ShowArgs, ShowFormat};
use crate::program::cmd::log::line_of;
use crate::program::text::line::{InWorktree, Line, StepLine, others};
use crate::program::text::outcome::{head_to, moved};
use crate::program::ui::{Answer, Ui};
use crate::program::usage::line;
use anyhow::{Error, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use serde::Serialize;
use serde_json::json;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

/// Shows a turn or a file. Gives what is to be answered, or nothing when git has printed it.
pub fn run(repo: &Repo, ui: &Ui, args: &ShowArgs) -> Result<Option<Shown>> {
    let heard = ui.heard();
    let mut view = look(repo, &heard, "show")?;
    let given = args.turn.as_bytes();
    // A turn of another worktree's, be it one that was removed.
    let Some(Elsewhere { timeline, rest, other }) = elsewhere(&view, given)? else {
        return shown(&view, ui, args, given);
    };
    view.timeline = timeline;
    let mut shown = shown(&view, ui, args, rest)?;
    let lines = match &mut shown {
        Some(Shown::Turn(line)) => std::slice::from_mut(&mut **line),
        Some(Shown::Turns(lines)) => lines,
        _ => &mut [],
    };
    if let Some((id, removed)) = other {
        let place = Rc::new(InWorktree { id, here: false, removed });
        for line in lines {
            line.place = Rc::clone(&place);
        }
    }
    Ok(shown)
}

/// Shows what these words mean in a worktree's timeline.
fn shown(view: &View<'_>, ui: &Ui, args: &ShowArgs, given: &[u8]) -> Result<Option<Shown>> {
    let stored = &view.timeline;
    if args.prompt {
        return prompt(view, &given.to_str_lossy()).map(Some);
    }
    if args.format == Some(ShowFormat::AgentTrace) {
        let turn = stored.require_turn(ended_turn(view, &given.to_str_lossy())?)?;
        return Ok(Some(Shown::Trace(trace::record(view, stored, &turn)?)));
    }
    let spec = given;
    let whole = spec.to_str_lossy();
    // A name that the user gave may have a colon in it.
    let named = stored.state.named.contains_key(&*whole);
    let (turn, rest) = match spec[kept_prefix(&whole)..].find_byte(b':').filter(|_| !named) {
        Some(colon) => (&spec[..kept_prefix(&whole) + colon], Some(&spec[kept_prefix(&whole) + colon + 1..])),
        None => (spec, None),
    };
    let turn = turn.to_str_lossy().into_owned();
    if rest.is_some() || stored.state.named.contains_key(&turn) || turn == "@rescue" || kept_prefix(&turn) > 0 {
        return content(view, ui, args, &turn, rest.unwrap_or_default());
    }
    let paths: Vec<OsString> = args.path.iter().cloned().collect();
    if let Some(name) = StepName::parse(&turn) {
        return step(view, ui, args.stat, &name, &paths);
    }
    if let Some(ends) = range_ends(&turn) {
        let turns = line_between(view, ends, |view, words| stored.require_turn(ended_turn(view, words)?))?;
        return whole_turns(view, ui, args.stat, &turns, &paths);
    }
    let number = ended_turn(view, &turn).map_err(|error| or_path(error, &turn))?;
    if ui.json {
        return Ok(Some(Shown::Turn(Box::new(with_files(view, number, &paths)?))));
    }
    print(view, args.stat, &stored.require_turn(number)?, &paths)?;
    Ok(None)
}

/// Shows turns, the newest first.
fn whole_turns(view: &View<'_>, ui: &Ui, stat: bool, turns: &[Turn], paths: &[OsString]) -> Result<Option<Shown>> {
    if ui.json {
        let lines = turns.iter().map(|turn| with_files(view, turn.turn, paths));
        return lines.collect::<Result<_>>().map(Shown::Turns).map(Some);
    }
    for (at, turn) in turns.iter().enumerate() {
        if at > 0 {
            Ui::raw(b"\n")?;
        }
        print(view, stat, turn, paths)?;
    }
    Ok(None)
}

/// A turn, with the files that are meant.
fn with_files(view: &View<'_>, number: u64, paths: &[OsString]) -> Result<Line> {
    let mut line = line_of(view, number)?;
    if !paths.is_empty() {
        line.files = changed(view, &sides(view, number)?, paths)?;
    }
    Ok(line)
}

/// A turn's beginning and end.
fn sides(view: &View<'_>, number: u64) -> Result<[Checkpoint; 2]> {
    Ok([view.timeline.undone_to(number)?, view.timeline.checkpoint(number, Side::After)?])
}

/// What a turn changed of what these pathspecs match; that it is nothing, the user is told.
fn changed(view: &View<'_>, sides: &[Checkpoint; 2], paths: &[OsString]) -> Result<Vec<FileChange>> {
    let files: Vec<_> = changes(view, sides, paths)?.into_iter().map(|(_, change)| change).collect();
    if files.is_empty() {
        let words: Vec<String> = paths.iter().map(|path| in_quotes(path.as_bytes().as_bstr())).collect();
        view.warn(format!("nothing was changed that {} matches", words.join(", ")));
    }
    Ok(files)
}

/// Prints a turn and its diff.
fn print(view: &View<'_>, stat: bool, turn: &Turn, paths: &[OsString]) -> Result<()> {
    let sides = sides(view, turn.turn)?;
    let has_any = paths.is_empty() || !changed(view, &sides, paths)?.is_empty();
    let delta = delta_of(&view.timeline, turn)?;
    let mut head = heading(turn, &delta);
    if let Some(only) = only(turn, &delta).filter(|_| turn.totals.files == 0) {
        head.push_str(&format!("{only}\n"));
    }
    Ui::raw(head.as_bytes())?;
    if has_any {
        let [before, after] = sides;
        Objects::new(view.repo).print_diff(before.worktree, after.worktree, Ui::diff_style(stat), paths)?;
    }
    Ok(())
}

/// A word that is no turn, and a file, is one of which the turns may be wanted.
fn or_path(error: Error, word: &str) -> Error {
    match error.downcast::<Refusal>() {
        Ok(refusal) if refusal.code == Code::NotFound && Path::new(word).symlink_metadata().is_ok() => {
            let mut refusal = refusal;
            let log = quoted_line(&line(["log", "--", word]));
            refusal.hints.insert(0, format!("run {log} to see the turns that changed that file"));
            refusal.into()
        }
        Ok(refusal) => refusal.into(),
        Err(error) => error,
    }
}

/// Shows what is in a state, or one of its files: what stands behind the name, or is given besides.
fn content(view: &View<'_>, ui: &Ui, args: &ShowArgs, state: &str, rest: &[u8]) -> Result<Option<Shown>> {
    check_is_of_state(args.turn.as_bytes())?;
    let given = || args.path.as_deref().map(OsStr::as_bytes);
    let (side, path) = match rest {
        b"" | b"after" => ("", given()),
        b"before" => (":before", given()),
        _ => match rest.strip_prefix(b"before:") {
            Some(path) => (":before", Some(path)),
            None => ("", Some(rest.strip_prefix(b"after:").unwrap_or(rest))),
        },
    };
    let tree = state_at(view, &format!("{state}{side}"))?.worktree;
    match path {
        Some(path) => {
            let words = args.turn.as_bytes();
            let words = words.strip_suffix(path).and_then(|words| words.strip_suffix(b":")).unwrap_or(words);
            file(view, ui, tree, from_prefix(view.repo, path)?.as_bstr(), &words.to_str_lossy())
        }
        None if ui.json => Ok(Some(Shown::Tree(Objects::new(view.repo).paths_of(tree)?))),
        None => Objects::new(view.repo).print_tree(tree).map(|()| None),
    }
}

/// What stands behind the name of a worktree and a colon.
struct Elsewhere<'r, 'w> {
    timeline: Stored<'r>,
    rest: &'w [u8],
    /// Where it is another worktree, how refs call that, and whether it was removed.
    other: Option<(String, bool)>,
}

/// The timeline of the worktree whose name stands before a colon, and what stands behind it.
fn elsewhere<'r, 'w>(view: &View<'r>, words: &'w [u8]) -> Result<Option<Elsewhere<'r, 'w>>> {
    if let Ok(text) = std::str::from_utf8(words)
        && let own = without_own_name(view, text)
        && own.len() < text.len()
    {
        return Ok(Some(Elsewhere { timeline: view.timeline.clone(), rest: own.as_bytes(), other: None }));
    }
    let Some((name, rest)) = words.split_once_str(":") else { return Ok(None) };
    let name = name.to_str_lossy();
    let named = &view.timeline.state.named;
    if named.contains_key(&*words.to_str_lossy()) || named.contains_key(&*name) || TurnSpec::parse(&name).is_ok() {
        return Ok(None);
    }
    let other = Timelines::new(view.repo).other_timeline(&name)?;
    let found = |other: Other<'r>| {
        Ok(Elsewhere { timeline: other.stored?, rest, other: Some((other.worktree, other.removed)) })
    };
    other.map(found).transpose()
}

/// Shows what a step changed.
fn step(view: &View<'_>, ui: &Ui, stat: bool, name: &StepName, paths: &[OsString]) -> Result<Option<Shown>> {
    let (turn, step) = step_of(view, name)?;
    let [before, after] = [states::before, states::after].map(|end| end(&view.timeline, &turn, step.step));
    let sides = [before?, after?];
    let files = match paths {
        [] => view.timeline.step_files(turn.turn, step.step)?,
        _ => changed(view, &sides, paths)?,
    };
    let line = StepLine { step, files };
    if ui.json {
        return Ok(Some(Shown::Step(Box::new(line))));
    }
    let step = &line.step;
    let what = sanitized(&format!("step {} ({}: {})", step.name(), step.agent, step.label()));
    let when = sanitized(&format!("began {}, ended {}", local(&step.began_at), local(&step.ended_at)));
    Ui::raw(format!("{what}\n{when}\n\n").as_bytes())?;
    if paths.is_empty() || !line.files.is_empty() {
        let [before, after] = sides;
        Objects::new(view.repo).print_diff(before.worktree, after.worktree, Ui::diff_style(stat), paths)?;
    }
    Ok(None)
}

/// The turn's prompt, or those of its sessions. An older record has it as the message.
fn prompt(view: &View<'_>, spec: &str) -> Result<Shown> {
    let turn = view.timeline.require_turn(ended_turn(view, spec)?)?;
    let owned = |one: &Session<'_>, prompt: &str| Asked {
        agent: one.agent.to_owned(),
        session: one.id.map(str::to_owned),
        prompt: prompt.to_owned(),
    };
    let sessions = turn.sessions();
    let of = |one| Session::prompts(one).into_iter().map(move |prompt| owned(one, prompt));
    let prompts: Vec<Asked> = sessions.iter().flat_map(of).collect();
    match turn.prompt.clone().or(turn.message.clone()) {
        Some(prompt) => Ok(Shown::Prompt(turn.turn, prompt, prompts)),
        None => Err(Refusal::new(Code::NotFound, format!("turn {} has no prompt on record", turn.turn))
            .hint(format!("run 'oxundo show {}' to see what it changed", turn.turn))
            .into()),
    }
}

fn file(view: &View<'_>, ui: &Ui, tree: ObjectId, path: &BStr, state: &str) -> Result<Option<Shown>> {
    let Some((_, id)) = Objects::new(view.repo).tree_file(tree, path)? else {
        return Err(Refusal::new(Code::NotFound, format!("there was no file {} then", in_quotes(path)))
            .hint(format!("run {} to see the files there were", shown_by(view, state)))
            .into());
    };
    let bytes = Objects::new(view.repo).blob(id)?;
    if ui.json {
        return Ok(Some(Shown::File(path.to_owned(), id, bytes)));
    }
    Ui::raw(&bytes)?;
    Ok(None)
}

fn heading(turn: &Turn, delta: &Delta) -> String {
    let mut text = format!("turn {} ({})\n", turn.turn, sanitized(&turn.label()));
    for other in others(turn) {
        text.push_str(&format!("with {other}\n"));
    }
    let ended = turn.ended_at.as_deref().map_or_else(|| "still open".to_owned(), local);
    text.push_str(&format!("began {}, ended {ended}\n", local(&turn.began_at)));
    for commit in &turn.commits {
        text.push_str(&format!("commit {} ({:?})\n", commit.id, commit.kind).to_lowercase());
    }
    for (name, change) in &delta.branches {
        // What its own commits do to its branch is told.
        if turn.commits.is_empty() || turn.branch.as_ref() != Some(name) {
            let name = sanitized(&short_branch(name));
            text.push_str(&format!("branch {}\n", moved(&name, change.from, change.to)));
        }
    }
    if let Some(head) = delta.head.as_ref().filter(|head| head.from.branch != head.to.branch) {
        text.push_str(&format!("{}\n", head_to(&head.to)));
    }
    text.push('\n');
    text
}

/// A path that the user gave, seen from the top of the worktree.
pub fn from_prefix(repo: &Repo, path: &[u8]) -> Result<BString> {
    // Two forms that lead from elsewhere, as in pathspecs.
    let top = repo.top().as_os_str().as_bytes();
    let from_the_top = path.strip_prefix(b":/").or_else(|| path.strip_prefix(top)?.strip_prefix(b"/"));
    let full =
        from_the_top.map_or_else(|| repo.prefix().join(OsStr::from_bytes(path)), |path| OsStr::from_bytes(path).into());
    let mut parts: Vec<&[u8]> = Vec::new();
    let outside = || {
        Refusal::new(Code::Usage, format!("{} leads out of the worktree", in_quotes(path.as_bstr())))
            .hint("run 'git ls-files' to see paths: a state has what is below the top of the worktree")
    };
    if full.is_absolute() {
        return Err(outside().into());
    }
    for part in full.as_os_str().as_bytes().split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop().ok_or_else(outside)?;
            }
            _ => parts.push(part),
        }
    }
    Ok(parts.join(&b'/').into())
}

/// A text of many lines as a terminal may have it, with a newline at its end.
fn harmless(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(sanitized).collect::<Vec<_>>().join("\t") + "\n";
    text.lines().map(line).collect()
}

/// What a session was asked for.
#[derive(Serialize)]
pub struct Asked {
    agent: String,
    session: Option<String>,
    prompt: String,
}

impl Asked {
    fn text(&self) -> String {
        let session = self.session.as_ref().map(|id| format!(" (session {id})")).unwrap_or_default();
        format!("{}:\n{}", sanitized(&format!("{}{session}", self.agent)), harmless(&self.prompt))
    }
}

/// What is shown, where git does not print it itself.
pub enum Shown {
    /// A turn, its prompt and its record.
    Turn(Box<Line>),
    /// Some turns, the newest first.
    Turns(Vec<Line>),
    /// A step and its files.
    Step(Box<StepLine>),
    /// A turn's number, its whole prompt, and each session's.
    Prompt(u64, String, Vec<Asked>),
    /// An Agent Trace record.
    Trace(serde_json::Value),
    /// The files of a state.
    Tree(Vec<BString>),
    /// A file of a state: its path, blob and content.
    File(BString, ObjectId, Vec<u8>),
}

/// A turn with its whole prompt and its record.
fn whole(line: &Line) -> serde_json::Result<serde_json::Value> {
    let mut value = line.json()?;
    value["prompt"] = json!(line.turn.prompt);
    value["record"] = serde_json::to_value(&line.turn)?;
    Ok(value)
}

impl Answer for Shown {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        Ok(match self {
            Self::Turn(line) => whole(line)?,
            Self::Turns(lines) => json!({"turns": lines.iter().map(whole).collect::<serde_json::Result<Vec<_>>>()?}),
            Self::Step(line) => line.json()?,
            Self::Trace(record) => json!({"trace": record}),
            Self::Prompt(turn, prompt, prompts) => json!({"turn": turn, "prompt": prompt, "prompts": prompts}),
            Self::Tree(paths) => {
                json!({"paths": paths.iter().map(|path| quoted(path.as_bstr())).collect::<Vec<_>>()})
            }
            // What is not UTF-8 is to be had by its id, from git.
            Self::File(path, id, bytes) => json!({
                "path": quoted(path.as_bstr()),
                "blob": id.to_string(),
                "size": bytes.len(),
                "text": std::str::from_utf8(bytes).ok(),
            }),
        })
    }

    fn text(&self) -> String {
        match self {
            Self::Prompt(_, prompt, prompts) if prompts.len() < 2 => harmless(prompt),
            Self::Prompt(_, _, prompts) => prompts.iter().map(Asked::text).collect::<Vec<_>>().join("\n"),
            Self::Trace(record) => format!("{record}\n"),
            _ => String::new(),
        }
    }
}
