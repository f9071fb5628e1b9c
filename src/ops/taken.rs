//! Files that turns of oxundo's own have taken out of others, and that are not there again since: `git restore` or a stash may have
//! brought back what was taken out.

use crate::git::checkpoint::Checkpoints;
use crate::git::timeline::stored::Side;
use crate::model::bytes::unquoted;
use crate::model::checkpoint::{Change, Checkpoint, FileState};
use crate::model::merge::{self, Merged, Verdict};
use crate::model::turn::{Made, Turn};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

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

    /// The last turn that took this file out of a turn.
    pub fn by(&self, turn: u64, path: &str) -> Option<u64> {
        self.0.get(&turn)?.get(path).copied()
    }

    /// Those of these files, as records name them, that were taken out of a turn and are out now.
    pub fn out_of<'p>(
        &self,
        view: &View<'_>,
        turn: u64,
        paths: impl Iterator<Item = &'p str>,
        now: &Checkpoint,
    ) -> Result<BTreeSet<String>> {
        let (mut out, mut ends) = (BTreeSet::new(), BTreeMap::new());
        let Some(taken) = self.0.get(&turn) else { return Ok(out) };
        for path in paths {
            let Some(by) = taken.get(path) else { continue };
            if !ends.contains_key(by) {
                let state = |side| view.timeline.checkpoint(*by, side);
                ends.insert(*by, [state(Side::Before)?, state(Side::After)?]);
            }
            if is_out(view, path, &ends[by], now)? {
                out.insert(path.to_owned());
            }
        }
        Ok(out)
    }
}

/// Whether what a turn took out of a file is out, by the states before and after that turn: to do it once more would change nothing,
/// or could not be done.
fn is_out(view: &View<'_>, path: &str, [before, after]: &[Checkpoint; 2], now: &Checkpoint) -> Result<bool> {
    let path = unquoted(path).unwrap_or_else(|| path.into());
    let file = |state: &Checkpoint| Checkpoints::new(view.repo).captured_file(state, path.as_bstr());
    Ok(would_change(view, &path, &Change::new(file(before)?, file(after)?), now)? != Some(true))
}

/// Whether this would change a file that is as in a state now; none where it could not be done.
pub fn would_change(
    view: &View<'_>,
    path: &BString,
    change: &Change<Option<FileState>>,
    now: &Checkpoint,
) -> Result<Option<bool>> {
    let checkpoints = Checkpoints::new(view.repo);
    let now = checkpoints.captured_file(now, path.as_bstr())?;
    Ok(match merge::file(now, change) {
        Verdict::Becomes(next) => Some(next != now),
        Verdict::Overlap(_) => None,
        Verdict::Merge(_, blobs) => match checkpoints.merging(|merge| merge(path.as_bstr(), blobs))? {
            Merged::Clean(id) => Some(Some(id) != now.map(|now| now.id)),
            Merged::Overlap(_) => None,
        },
    })
}
