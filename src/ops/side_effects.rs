//! What undo and redo do outside the worktree: the user's own commands, which are asked before anything is touched
//! (`oxundo.beforeUndo`, `beforeRedo`) and told what was done (`oxundo.onUndo`, `onRedo`).

use crate::error::{Code, Refusal};
use crate::git::repo::listen::Said;
use crate::model::bytes::sanitized;
use crate::model::plan::Op;
use crate::ops::outcome::{Outcome, versioned};
use crate::ops::view::View;
use crate::progress::Progress;
use anyhow::Result;

/// So many characters of what a command says are told.
const TOLD: usize = 2000;

/// Something that is to be carried out, and can be shown before.
pub trait Foreseen {
    /// What would be done; none where nothing would, and nobody need be asked.
    fn foreseen(&self) -> Option<Outcome>;
    /// A word for it: the same only as long as it would do the same.
    fn digest(&self, view: &View<'_>) -> Result<String>;
}

/// Whether somebody is to be asked before this is done.
pub fn is_asked(view: &View<'_>, op: Op) -> bool {
    before(view, op).is_some()
}

/// Says of a preview whose word is still to be heard.
pub fn name_who_is_asked(view: &View<'_>, op: Op) {
    if let Some((key, _)) = before(view, op) {
        view.warn(format!("oxundo.{key} is asked before this is done, and may refuse"));
    }
}

/// Asks the user's command, which has the plan as JSON. It refuses by its exit code, or by not answering in time.
pub fn ask(view: &View<'_>, op: Op, planned: &Outcome) -> Result<()> {
    let Some((key, command)) = before(view, op) else { return Ok(()) };
    let limit = view.config().before_timeout()?;
    let told = versioned(planned.json()).to_string();
    let said = view.repo.run_user_command(&command, told.as_bytes(), Some(limit))?;
    show(view, key, &said);
    said.done.map_err(|error| {
        let why = in_one_line(&format!("{error:#}"));
        Refusal::new(Code::Vetoed, format!("oxundo.{key} refused: {why}"))
            .hint("see to what it says, and run this again")
            .hint(format!("'git config oxundo.{key}' shows what was asked"))
            .into()
    })
}

/// The refusal to do what is not any more what the user's command was asked about.
pub fn changed_by_asking(op: Op) -> Refusal {
    let key = if op == Op::Redo { "beforeRedo" } else { "beforeUndo" };
    Refusal::new(Code::Stale, format!("oxundo.{key} changed what it was asked about"))
        .hint("run 'oxundo status' to see what would be done now")
        .hint(format!("'git config oxundo.{key}' shows what changed it"))
}

/// Tells the user's command what was done.
pub fn tell(view: &View<'_>, op: Op, done: &Outcome) {
    let (key, command) = match op {
        Op::Undo => ("onUndo", view.config().on_undo()),
        Op::Redo => ("onRedo", view.config().on_redo()),
        _ => return,
    };
    let Some(command) = command.filter(|_| !done.dry_run) else { return };
    let told = versioned(done.json()).to_string();
    let said = view.repo.run_user_command(&command, told.as_bytes(), None).and_then(|said| {
        show(view, key, &said);
        said.done
    });
    if let Err(error) = said {
        view.warn(format!("oxundo.{key} failed: {}", in_one_line(&format!("{error:#}"))));
    }
}

fn before(view: &View<'_>, op: Op) -> Option<(&'static str, String)> {
    Some(match op {
        Op::Undo => ("beforeUndo", view.config().before_undo()?),
        Op::Redo => ("beforeRedo", view.config().before_redo()?),
        _ => return None,
    })
}

/// Shows what a command printed.
fn show(view: &View<'_>, key: &str, said: &Said) {
    let lines = said.out.lines().chain(said.err.lines()).map(str::trim_end).filter(|line| !line.is_empty());
    for line in lines {
        view.repo.emit(Progress::Says(key, &sanitized(line)));
    }
}

/// What a command said, where it is told in a line.
fn in_one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    sanitized(&lines.join("; ")).chars().take(TOLD).collect()
}
