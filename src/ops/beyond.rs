//! What steps did beyond the limits, where they are taken out of a turn: what they made goes aside as a whole, what they gave
//! another name goes back.
//!
//! ```text
//! step 1   makes big            big goes with 1 and 2, and with both of them as big2
//! step 2   moves big to big2    2 alone: big2 goes back to big
//! step 3   writes to big2       1 and 2 without 3 are refused: it is not as they left it
//! ```

use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::delta::touched_beyond_limits;
use crate::git::index::Index;
use crate::git::scan::nested::{own_state, whole_state};
use crate::git::timeline::stored::Side;
use crate::model::checkpoint::{Aside, Change, Checkpoint};
use crate::model::turn::Turn;
use crate::ops::turn::states;
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

/// What becomes of it.
#[derive(Default)]
pub struct Beyond {
    /// What goes, and what comes back.
    pub inverse: BTreeMap<BString, Change<Option<Aside>>>,
    /// What the steps changed, and stays.
    pub stay: BTreeSet<BString>,
}

/// Something by one of its names on the way back over steps.
struct Thing {
    /// Its name at the end of the turn.
    now: BString,
    /// What it is to be there.
    left: Aside,
}

impl Beyond {
    /// Follows it back over some steps of a turn, of which the last one is the first here, as far as these pathspecs match.
    pub fn of(view: &View<'_>, turn: &Turn, steps: &[u64], pathspecs: &[OsString]) -> Result<Self> {
        let mut beyond = Self::default();
        let end = view.timeline.checkpoint(turn.turn, Side::After)?;
        let checkpoints = Checkpoints::new(view.repo);
        let whole = checkpoints.made_beyond_limits(turn.turn, &view.timeline.undone_to(turn.turn)?, &end)?;
        let mut things: BTreeMap<BString, Thing> = BTreeMap::new();
        for step in steps {
            let (before, after) =
                (states::before(&view.timeline, turn, *step)?, states::after(&view.timeline, turn, *step)?);
            let made = checkpoints.made_beyond_limits(turn.turn, &before, &after)?;
            let touched = touched_beyond_limits(&before, &after).into_iter().map(|it| it.path.clone());
            for path in touched.chain(made.iter().filter(|(_, it)| it.to.is_some()).map(|(path, _)| path.clone())) {
                let known = things.remove(&path).or_else(|| thing_at(&whole, &after, &path));
                let Some(thing) = known else {
                    beyond.stay.insert(path);
                    continue;
                };
                let Some(Change { to: Some(aside), .. }) = made.get(&path) else {
                    // An earlier one may have made it.
                    things.insert(path, thing);
                    continue;
                };
                let came_from = made.iter().find(|(_, it)| it.from.as_ref().is_some_and(|it| it.store == aside.store));
                match came_from {
                    Some((old, _)) => drop(things.insert(old.clone(), thing)),
                    None => drop(beyond.inverse.insert(thing.now, Change::new(Some(thing.left), None))),
                }
            }
        }
        for (old, Thing { now, left }) in things {
            if old == now {
                beyond.stay.insert(old);
                continue;
            }
            beyond.inverse.insert(old, Change::new(None, Some(left.clone())));
            beyond.inverse.insert(now, Change::new(Some(left), None));
        }
        beyond.restrict(view, pathspecs)?;
        Ok(beyond)
    }

    fn restrict(&mut self, view: &View<'_>, pathspecs: &[OsString]) -> Result<()> {
        if !pathspecs.is_empty() {
            let mut selection = Index::new(view.repo).selection(pathspecs)?;
            let store = |change: &Change<Option<Aside>>| {
                change.from.as_ref().or(change.to.as_ref()).map(|aside| aside.store.clone())
            };
            // Both of its names, or neither.
            let matched = self.inverse.iter().filter(|(path, _)| selection.takes(path.as_bstr()));
            let stores: BTreeSet<_> = matched.map(|(_, change)| store(change)).collect();
            self.inverse.retain(|_, change| stores.contains(&store(change)));
            self.stay.retain(|path| selection.takes(path.as_bstr()));
        }
        Ok(())
    }
}

/// What is at a path after a step, if it is at the end of its turn, which made it, or moved it there.
fn thing_at(whole: &BTreeMap<BString, Change<Option<Aside>>>, after: &Checkpoint, path: &BString) -> Option<Thing> {
    let store = whole.get(path)?.to.as_ref()?.store.clone();
    let found = after.skipped.iter().find(|skipped| skipped.path == *path)?;
    let left = Aside { store, state: own_state(found), tree: whole_state(found) };
    Some(Thing { now: path.clone(), left })
}
