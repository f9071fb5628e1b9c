//! A file a subcommand: arguments in, the operation called, an answer out.

#[cfg(feature = "acp")]
pub mod acp;
pub mod apply;
pub mod blame;
pub mod branch;
pub mod checkpoint;
pub mod complete;
pub mod completions;
pub mod describe;
pub mod diff;
pub mod doctor;
pub mod find;
pub mod follow;
pub mod gc;
pub mod hook;
pub mod hunks;
pub mod init;
pub mod log;
pub mod man;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod request;
pub mod restore;
pub mod rewind;
pub mod run;
pub mod show;
pub mod squash;
pub mod status;
pub mod stores;
pub mod turn;
pub mod undo;

use crate::config::{Config, enabled_in_environment, enabled_of_user, hints_of_user};
use crate::git::repo::Repo;
use crate::git::repo::settings::setting_of_user;
use crate::model::plan::Op;
use crate::ops::made::PlannedTurn;
use crate::ops::outcome::Outcome;
use crate::ops::side_effects;
use crate::ops::turn::missed;
use crate::ops::turn::session::{By, Command, look_ahead, settled_for};
use crate::ops::view::View;
use crate::program::interrupt;
use crate::program::ui::Ui;
use anyhow::Result;
use std::path::Path;

/// Talks to the user as they have configured it, and shows what takes its time.
pub fn apply_user_settings(repo: &mut Repo, ui: &mut Ui) {
    repo.set_progress(ui.watch());
    let config = Config(repo);
    ui.hints = config.hints();
    ui.colors(config.colors().as_deref());
}

/// As [`apply_user_settings`], where there is no repository.
pub fn apply_global_settings(ui: &mut Ui) {
    ui.hints = hints_of_user();
    ui.colors(setting_of_user("color.ui").map(|value| value.to_string()).as_deref());
}

/// Where turns are recorded, made where there is nothing yet; nothing where they are not to be recorded.
pub fn open_to_record(directory: &Path) -> Result<Option<Repo>> {
    if enabled_in_environment() == Some(false) {
        return Ok(None);
    }
    let repo = match Repo::open_existing(directory)? {
        Some(repo) => repo,
        None if !enabled_of_user() => return Ok(None),
        None => Repo::open_or_make(directory)?,
    };
    Ok(Config(&repo).enabled()?.then_some(repo))
}

/// Says that no turn begins.
pub fn tell_of_no_record(ui: &mut Ui) {
    apply_global_settings(ui);
    ui.warn("oxundo.enabled is false: nothing is recorded");
}

/// Says where the turns are that were made before this was a git repository.
pub fn tell_of_earlier_store(repo: &Repo, ui: &Ui) {
    if let Some(store) = repo.earlier_shadow() {
        let (directory, git_dir) = (store.directory.display(), store.git_dir.display());
        ui.warn(&format!(
            "the turns in '{directory}' from before 'git init' are in a store of their own: \
             'GIT_DIR={git_dir} oxundo log' shows them, and undo works likewise"
        ));
    }
}

/// Says what the agents' hooks could not do. A command that changes something tells it for the last time.
pub fn tell_of_missed(repo: &Repo, ui: &Ui, is_last: bool) {
    let told = missed::told(repo);
    for told in &told {
        ui.warn(told);
    }
    if is_last && !told.is_empty() {
        // It is told once more then.
        let _ = missed::forget(repo);
    }
}

/// Makes a turn of oxundo's own, or only says what it would do.
fn make(
    repo: &Repo,
    ui: &Ui,
    op: Op,
    dry_run: bool,
    plan: impl Fn(&View<'_>) -> Result<PlannedTurn>,
) -> Result<Outcome> {
    let (heard, command) = (ui.heard(), Command { op, by: By::Typed });
    if dry_run {
        return look_ahead(repo, &heard, command, |view| {
            let planned = plan(view)?;
            planned.announce(view);
            side_effects::name_who_is_asked(view, op);
            Ok(planned.preview())
        });
    }
    interrupt::watch(repo)?;
    settled_for(repo, &heard, command, plan, |locked, planned, within| {
        planned.announce(locked);
        let done = match within {
            Some(turn) => planned.carry_out_within(locked, turn),
            None => planned.carry_out(locked),
        }?;
        side_effects::tell(locked, op, &done);
        Ok(done)
    })
}
