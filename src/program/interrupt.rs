//! Signals that end a program, while a command is at work that must not be cut off: the first one has it rolled back, the
//! second one leaves that to the next command.

use crate::error::Code;
use crate::git::index::Index;
use crate::git::repo::Repo;
use crate::git::repo::platform::descendants;
use crate::git::repo::threads::start;
use crate::program::ui::Ui;
use crate::progress::Asked;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// From now on, to the end of this process, hears of signals for what this repository is changed by.
pub fn watch(repo: &Repo) -> Result<()> {
    let Some(stop) = repo.stop_switch() else { return Ok(()) };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).context("watch signals")?;
    let top = repo.top().to_owned();
    start(move || {
        let mut told = false;
        for signal in signals.forever() {
            match stop.ask() {
                // It does what it does in every program. Where it cannot, nothing is lost by going on.
                Asked::Idle => drop(emulate_default_handler(signal)),
                Asked::Stops => {
                    Ui::complain("interrupted: rolling back; once more leaves that to the next command");
                    end_children();
                }
                Asked::Settled if !told => {
                    Ui::complain("interrupted, and nearly done; once more leaves that to the next command");
                }
                Asked::Settled => {
                    // git must not be kept out until then.
                    let freed = Repo::open(&top).and_then(|repo| Index::new(&repo).clear_own_index_lock());
                    let but = if freed.is_ok() { "" } else { ", and so is git's lock on the index" };
                    Ui::complain(&format!("left as it is{but}: the next oxundo command finishes it or rolls it back"));
                    std::process::exit(Code::Interrupted.exit().into());
                }
            }
            told = true;
        }
    })?;
    Ok(())
}

/// Whoever waits for them goes on at once.
fn end_children() {
    for child in descendants(std::process::id()).unwrap_or_default() {
        if let Some(child) = i32::try_from(child).ok().and_then(Pid::from_raw) {
            // It may be gone by now.
            let _ = kill_process(child, Signal::TERM);
        }
    }
}
