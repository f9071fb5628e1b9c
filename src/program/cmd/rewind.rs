//! `oxundo rewind`, `oxundo undo -i` and `oxundo ui`: the timeline screen.

use crate::error::{Code, Refusal};
use crate::git::repo::Repo;
use crate::model::merge::Edits;
use crate::model::plan::Op;
use crate::ops::turn::session::look;
use crate::ops::undo::range::nothing;
use crate::program::screen;
use crate::program::ui::Ui;
use anyhow::Result;
use std::process::ExitCode;

/// Lets the user choose, and does what was chosen.
pub fn run(repo: &Repo, ui: &Ui, edits: Option<Edits>) -> Result<ExitCode> {
    if !ui.can_ask() {
        return Err(Refusal::new(Code::Usage, "there is no terminal to choose a turn on")
            .hint("run 'oxundo undo --dry-run' to see what undo of the last turn would do, 'oxundo undo' to have it")
            .hint("run 'oxundo log' to see the turns: undo and redo take '--to' and a turn's number")
            .into());
    }
    let heard = ui.heard();
    if look(repo, &heard, "rewind")?.timeline.state.next == 1 {
        return Err(nothing(Op::Undo, "no turn is recorded here").into());
    }
    screen::run(repo, ui, edits)
}
