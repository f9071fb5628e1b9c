//! What calls left in files that the user has changed: that is committed as the turn's, whatever the user saved beside it. What the user
//! commits of such a file in the middle of the turn is what the calls go on from.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::model::checkpoint::{Change, Checkpoint, FileState, Head};
use crate::model::leftover::Ends;
use crate::ops::turn::checkouts::Checkout;
use crate::ops::turn::renamed::{Files, Origin, Renames};
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;

/// Makes a change to a file, where the two go together: what there is then, of which the file may be gone.
type MadeTo<'m> =
    dyn FnMut(&BString, Option<FileState>, &Change<Option<FileState>>) -> Result<Option<Option<FileState>>> + 'm;

/// A file that the user has changed, what it was without that, and what it is with it.
#[derive(Clone)]
struct Chain {
    /// Its path in the beginning.
    origin: BString,
    change: Change<Option<FileState>>,
    /// What it was without that before later calls.
    were: Vec<Option<FileState>>,
    /// What calls had left in it as the user last took back all of it, and what they have since.
    taken_back: Option<Change<Option<FileState>>>,
}

/// What calls left in a file that the user has changed.
#[derive(Clone, Debug)]
pub struct LeftByCalls {
    /// All that they left.
    pub file: Option<FileState>,
    /// What they had left before later ones.
    pub were: Vec<Option<FileState>>,
}

impl Chain {
    /// With what a call has made of it; none where that does not go together with what it was without the user's.
    fn changed(mut self, path: &BString, to: Option<FileState>, made_to: &mut MadeTo<'_>) -> Result<Option<Self>> {
        let change = Change::new(self.change.to, to);
        let left = made_to(path, self.change.from, &change)?;
        self.were.push(self.change.from);
        if let Some(Change { from, to }) = self.taken_back.take() {
            self.taken_back = made_to(path, to, &change)?.map(|to| Change::new(from, to));
        }
        Ok(left.map(|left| Self { change: Change::new(left, to), ..self }))
    }

    /// With what the user has made of it.
    fn saved(mut self, first: Option<FileState>, to: Option<FileState>) -> Self {
        if to == first && first.is_some() && self.change.from != first {
            self.taken_back = Some(Change::new(self.change.from, first));
        }
        Self { change: Change::new(self.change.from, to), ..self }
    }

    /// What calls left in it: without what the user took back and has not brought back since, as by a stash, where that is all of it.
    fn left(&self, view: &View<'_>, first: Option<FileState>) -> Result<Option<FileState>> {
        let Some(Change { from: taken, to: rest }) = self.taken_back else { return Ok(self.change.from) };
        let content = |file: Option<FileState>| match file {
            Some(file) => Checkpoints::new(view.repo).content_of(file.id),
            None => Ok(None),
        };
        let [first, taken, now] = [content(first)?, content(taken)?, content(self.change.to)?];
        let ends = |to| Ends { from: first.as_deref(), to };
        Ok(if ends(taken.as_deref()).is_in(ends(now.as_deref())) { self.change.from } else { rest })
    }
}

/// What the user did between two calls, or after the last.
pub struct Between<'g> {
    /// The files that they changed.
    pub files: &'g Files,
    /// Those to which they gave other names.
    pub renames: &'g Renames,
    /// What git wrote as they led HEAD.
    pub checkout: Option<&'g Checkout>,
    /// The files that it goes from, as a tree.
    pub was: ObjectId,
    /// Where HEAD was, and where it is.
    pub head: Change<&'g Head>,
}

/// What calls left of files that the user has changed, by the paths that they have at the end. `changes` are the user's,
/// in order. `made_to` makes a change to a file, where the two go together: a call's, to what there is without what the user had
/// saved before it.
pub fn left_by_calls<'g>(
    view: &View<'_>,
    changes: impl Iterator<Item = Between<'g>>,
    (before, after): (&Checkpoint, &Checkpoint),
    made_to: &mut MadeTo<'_>,
) -> Result<BTreeMap<BString, LeftByCalls>> {
    let file_at = |state: &Checkpoint, path: &BString| Checkpoints::new(view.repo).captured_file(state, path.as_bstr());
    let mut chains: BTreeMap<BString, Option<Chain>> = BTreeMap::new();
    let mut gone: BTreeMap<BString, Option<Option<Chain>>> = BTreeMap::new();
    for between in changes {
        let was = chains.clone();
        for path in &between.renames.gone {
            gone.insert(path.clone(), chains.insert(path.clone(), None));
        }
        for (path, change) in between.files {
            // What git wrote is committed, and no part of it is left over.
            if between.checkout.is_some_and(|checkout| checkout.wrote(path, change)) {
                chains.remove(path);
                continue;
            }
            let origin = match between.renames.came.get(path) {
                Some(origin) => origin.clone(),
                None if between.renames.gone.contains(path) => continue,
                None => Origin { path: path.clone(), file: change.from },
            };
            let Origin { path: old, file } = origin;
            let known = gone.get(&old).map_or_else(|| was.get(&old), Option::as_ref);
            let chain = match known.cloned() {
                None => {
                    let (origin, change) = (old.clone(), Change::new(file, file));
                    Some(Chain { origin, change, were: Vec::new(), taken_back: None })
                }
                // A call has changed it in between.
                Some(Some(chain)) if chain.change.to != file => chain.changed(path, file, made_to)?,
                Some(chain) => chain,
            };
            let first = chain.as_ref().map_or(Ok(None), |chain| file_at(before, &chain.origin))?;
            chains.insert(path.clone(), chain.map(|chain| chain.saved(first, change.to)));
        }
        between.go_on_from_committed(view, &mut chains, made_to)?;
    }
    let mut left = BTreeMap::new();
    for (path, chain) in chains {
        let (Some(chain), now) = (chain, file_at(after, &path)?) else { continue };
        let first = file_at(before, &chain.origin)?;
        let chain = match chain {
            chain if chain.change.to == now => Some(chain),
            // A call has changed it last.
            chain if now.is_some() => chain.changed(&path, now, made_to)?,
            _ => None,
        };
        let Some(chain) = chain.filter(|chain| chain.change.from != first) else { continue };
        let file = chain.left(view, first)?;
        if file != first {
            left.insert(path, LeftByCalls { file, were: chain.were });
        }
    }
    Ok(left)
}

/// Whether what is committed of a file has nothing of what the user has made of what calls left in it.
pub fn is_without(view: &View<'_>, committed: ObjectId, (left, now): (ObjectId, ObjectId)) -> Result<bool> {
    let content = |id| Checkpoints::new(view.repo).content_of(id);
    let (Some(committed), Some(left), Some(now)) = (content(committed)?, content(left)?, content(now)?) else {
        return Ok(false);
    };
    let to = |to| Ends { from: Some(&left), to: Some(to) };
    Ok(left != now && !to(&now).is_in(to(&committed)))
}

impl Between<'_> {
    /// What the user has committed of a file is what calls have left in it since, and go on from; what was beside that in the file is
    /// the user's, but for what calls had left there that is not committed.
    fn go_on_from_committed(
        &self,
        view: &View<'_>,
        chains: &mut BTreeMap<BString, Option<Chain>>,
        made_to: &mut MadeTo<'_>,
    ) -> Result<()> {
        if self.head.from.commit == self.head.to.commit {
            return Ok(());
        }
        let objects = Objects::new(view.repo);
        let (was, now) = (objects.head_tree(self.head.from)?, objects.head_tree(self.head.to)?);
        let mut all_committed = Vec::new();
        for (path, slot) in chains.iter_mut() {
            let Some(chain) = slot else { continue };
            let committed = objects.tree_file(now, path.as_bstr())?;
            if committed.is_none() || committed == objects.tree_file(was, path.as_bstr())? {
                continue;
            }
            let known = chain.change.to.map(|file| (file.kind, file.id));
            let there =
                if self.files.contains_key(path) { known } else { objects.tree_file(self.was, path.as_bstr())? };
            if there == committed {
                all_committed.push(path.clone());
                continue;
            }
            let old = self.renames.came.get(path).map_or(path, |origin| &origin.path);
            let mode = chain.change.to.map_or(0o644, |file| file.mode);
            let file = |(kind, id)| FileState { kind, id, mode };
            let (before, committed) = (objects.tree_file(was, old.as_bstr())?.map(file), committed.map(file));
            let left = if there == known {
                let merged = made_to(path, committed, &Change::new(before, chain.change.from))?;
                match (merged, committed, chain.change.from, chain.change.to) {
                    // A new file is no change to what is committed of it: all that calls left is theirs still.
                    (None, Some(committed), Some(left), Some(now))
                        if is_without(view, committed.id, (left.id, now.id))? =>
                    {
                        Some(Some(left))
                    }
                    (merged, ..) => merged,
                }
            } else {
                // A call has changed it in between.
                None
            };
            let change = |left| Change::new(left, chain.change.to);
            let (origin, were) = (chain.origin.clone(), vec![committed]);
            *slot = left.map(|left| Chain { origin, change: change(left), were, taken_back: None });
        }
        chains.retain(|path, _| !all_committed.contains(path));
        Ok(())
    }
}
