//! Files that turns of oxundo's own have taken out of others, and that are not there again since: `git restore` or a stash may have
//! brought back what was taken out.

use crate::git::checkpoint::Checkpoints;
use crate::git::timeline::stored::Side;
use crate::model::bytes::{quoted, unquoted};
use crate::model::checkpoint::{Change, Checkpoint, Delta};
use crate::model::merge::{self, Merged, Verdict};
use crate::model::turn::{Made, Turn};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;

/// For each turn the paths that were taken out of it, as records have them, and the last turn that did.
#[derive(Default)]
pub struct Taken(BTreeMap<u64, BTreeMap<String, u64>>);

impl Taken {
    /// What the turns above this one took out.
    pub fn above(view: &View<'_>, turn: u64) -> Result<Self> {
        let mut taken = Self::default();
        let mut at = view.top()?;
        while let Some(number) = at.filter(|number| *number > turn) {
            let above = view.timeline.require_turn(number)?;
            taken.add(view, &above)?;
            at = above.previous;
        }
        Ok(taken)
    }

    /// Adds what a turn took out that is below those that were added before.
    pub fn add(&mut self, view: &View<'_>, turn: &Turn) -> Result<()> {
        let partly: &[String] = match &turn.made {
            Some(Made::Hunks { partly, .. }) => partly,
            _ => &[],
        };
        for out in turn.takes_out() {
            for file in view.timeline.turn_files(turn.turn)?.into_iter().filter(|file| !partly.contains(&file.path)) {
                self.0.entry(*out).or_default().entry(file.path).or_insert(turn.turn);
            }
        }
        Ok(())
    }

    /// Whether a file was taken out of a turn, and is out now.
    pub fn has(&self, view: &View<'_>, turn: u64, path: &str, now: &Checkpoint) -> Result<bool> {
        let by = self.0.get(&turn).and_then(|paths| paths.get(path));
        by.map_or(Ok(false), |by| is_out(view, *by, path, now))
    }

    /// The files of a turn's that were taken out of it, and are out now.
    pub fn of(&self, view: &View<'_>, turn: u64, delta: &Delta, now: &Checkpoint) -> Result<Vec<BString>> {
        let mut out = Vec::new();
        for path in delta.files.keys() {
            if self.has(view, turn, &quoted(path.as_bstr()), now)? {
                out.push(path.clone());
            }
        }
        Ok(out)
    }
}

/// Whether what a turn took out of a file is out: to do it once more would change nothing, or could not be done.
fn is_out(view: &View<'_>, by: u64, path: &str, now: &Checkpoint) -> Result<bool> {
    let path = unquoted(path).unwrap_or_else(|| path.into());
    let checkpoints = Checkpoints::new(view.repo);
    let [before, after] = [Side::Before, Side::After].map(|side| view.timeline.checkpoint(by, side));
    let file = |state: &Checkpoint| checkpoints.captured_file(state, path.as_bstr());
    let (now, change) = (file(now)?, Change::new(file(&before?)?, file(&after?)?));
    Ok(match merge::file(now, &change) {
        Verdict::Becomes(next) => next == now,
        Verdict::Overlap(_) => true,
        Verdict::Merge(_, blobs) => {
            let merged = checkpoints.merging(|merge| merge(path.as_bstr(), blobs))?;
            !matches!(merged, Merged::Clean(id) if Some(id) != now.map(|now| now.id))
        }
    })
}
