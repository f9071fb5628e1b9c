//! Where a terminal shows lines and nothing else: the same choice from a numbered list.

use crate::git::repo::Repo;
use crate::model::merge::Edits;
use crate::ops::turn::session::look;
use crate::program::screen::deed::{Deed, Told};
use crate::program::screen::read::newest;
use crate::program::screen::row::{Mark, Row, rows};
use crate::program::ui::Ui;
use anyhow::Result;

/// So many turns are listed.
const LISTED: usize = 50;

/// Lists the turns, has one chosen by its number, and says what going there changes; none where it is left.
pub fn choose(repo: &Repo, ui: &Ui, edits: Option<Edits>) -> Result<Option<(Deed, Told)>> {
    let heard = ui.heard();
    let timeline = newest(&look(repo, &heard, "rewind")?, LISTED)?;
    let all = rows(&timeline);
    for row in all.iter().filter(|row| !matches!(row.mark, Mark::Open | Mark::Step)) {
        Ui::show(&line(row));
    }
    if timeline.turns.len() == LISTED {
        Ui::show("older ones: 'oxundo log', and their numbers work here too\n");
    }
    let Some(name) = Ui::ask("Go to the state after turn (Enter leaves): ")?.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let forward = all.iter().find(|row| row.name() == name).is_some_and(|row| row.forward);
    let deed = Deed::Go { to: name, forward };
    let told = deed.told(repo, &heard, edits)?;
    Ui::show(&(told.lines.join("\n") + "\n"));
    let is_meant = Ui::ask("Go there? [y/N] ")?.is_some_and(|said| matches!(said.as_str(), "y" | "Y" | "yes"));
    Ok(is_meant.then_some((deed, told)))
}

fn line(row: &Row) -> String {
    let mark = match row.mark {
        Mark::Now => "  [now]",
        Mark::Undone => "  [undone]",
        Mark::Left => "  [left]",
        Mark::Named => "  [checkpoint]",
        Mark::Rescue => "  [rescue]",
        Mark::Done | Mark::Open | Mark::Step => "",
    };
    let name = row.turn().map_or_else(|| row.name(), |turn| turn.to_string());
    match row.turn() {
        None if row.mark == Mark::Named => format!("{:>5}  {}{mark}\n", "", row.label),
        _ => format!("{name:>5}  {}  {}{mark}\n", row.age, row.label),
    }
}
