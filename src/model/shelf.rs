//! Where things are that go out of the worktree, and back, as a whole, on a walk over turns: what is in its first place in the
//! end does not move at all, and what goes from store to store moves once.

use crate::model::path::up_from;
use crate::model::plan::AsideMove;
use gix::bstr::{BString, ByteSlice};
use std::collections::{BTreeMap, BTreeSet};

/// A place for one thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the worktree.
    Path(BString),
    /// Kept aside.
    Store(String),
}

/// Something that moves as a whole.
#[derive(Clone, Debug)]
pub struct Thing {
    /// Where it was found.
    pub origin: Place,
    /// The store that it was in last.
    via: String,
}

impl Thing {
    fn new(origin: Place) -> Self {
        let via = if let Place::Store(store) = &origin { store.clone() } else { String::new() };
        Self { origin, via }
    }
}

/// What is where after a part of the walk.
#[derive(Debug, Default)]
pub struct Shelf {
    /// What has moved, or may have moved back, by where it is.
    now: BTreeMap<Place, Thing>,
    /// The places that something was taken from.
    left: BTreeSet<Place>,
}

impl Shelf {
    /// What is at a path; `standing` says whether something was found there.
    pub fn at_path(&self, path: &BString, standing: bool) -> Option<Thing> {
        self.at(&Place::Path(path.clone()), standing)
    }

    /// What is in a store; `kept` are the stores in which something was found.
    pub fn in_store(&self, store: &String, kept: &BTreeSet<String>) -> Option<Thing> {
        self.at(&Place::Store(store.clone()), kept.contains(store))
    }

    fn at(&self, place: &Place, is_found: bool) -> Option<Thing> {
        let found = (is_found && !self.left.contains(place)).then(|| Thing::new(place.clone()));
        self.now.get(place).cloned().or(found)
    }

    /// What has come to a path from somewhere else.
    pub fn arrived(&self, path: &BString) -> Option<Thing> {
        let place = Place::Path(path.clone());
        self.now.get(&place).filter(|thing| thing.origin != place).cloned()
    }

    /// Moves what has come to a path back to the store that it came from.
    pub fn put_back(&mut self, thing: Thing, path: &BString) {
        let store = Place::Store(thing.via.clone());
        self.put(thing, Place::Path(path.clone()), store);
    }

    /// Moves a thing.
    pub fn put(&mut self, mut thing: Thing, from: Place, to: Place) {
        self.now.remove(&from);
        self.left.insert(from);
        if let Place::Store(store) = &to {
            thing.via.clone_from(store);
        }
        self.now.insert(to, thing);
    }

    /// Whether what was found at a path, or above it, is elsewhere.
    pub fn has_taken(&self, path: &BString) -> bool {
        // In nearly all walks there is none.
        if self.left.is_empty() {
            return false;
        }
        let mut tops = up_from(path.as_bstr());
        tops.any(|top| {
            let place = Place::Path(top.to_owned());
            self.left.contains(&place) && self.now.get(&place).is_none_or(|thing| thing.origin != place)
        })
    }

    /// The moves that bring all to where it is; `states` has the fingerprints of what was found.
    pub fn into_moves(self, states: &BTreeMap<Place, String>) -> Vec<AsideMove> {
        let mut moves = Vec::new();
        for (place, Thing { origin, via }) in self.now.into_iter().filter(|(place, thing)| *place != thing.origin) {
            let state = states.get(&origin);
            // Where it is, or is to be; between two paths it is in a store for a moment.
            let store = match (&origin, &place) {
                (Place::Store(store), _) | (_, Place::Store(store)) => store.clone(),
                _ => via,
            };
            let goes = if let Place::Path(path) = origin { Some((path, true)) } else { None };
            let comes = if let Place::Path(path) = place { Some((path, false)) } else { None };
            // What is kept in another store than one turn says is found by the turn that put it there.
            let both = goes.into_iter().chain(comes);
            moves.extend(
                both.map(|(path, out)| AsideMove { state: state.cloned(), ..AsideMove::new(path, store.clone(), out) }),
            );
        }
        moves.sort_by(|one, other| (&one.path, !one.out).cmp(&(&other.path, !other.out)));
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> Place {
        Place::Path(name.into())
    }

    fn store(name: &str) -> Place {
        Place::Store(name.into())
    }

    /// Walks from place to place, all of which but the stores have something in them at first.
    fn walk(moves: &[(Place, Place)]) -> (Shelf, Vec<(String, String, bool)>) {
        let run = || {
            let mut shelf = Shelf::default();
            for (from, to) in moves {
                let thing = shelf.at(from, matches!(from, Place::Path(_))).expect("something is there");
                shelf.put(thing, from.clone(), to.clone());
            }
            shelf
        };
        let told = run()
            .into_moves(&BTreeMap::new())
            .into_iter()
            .map(|one| (one.path.to_string(), one.store, one.out))
            .collect();
        (run(), told)
    }

    #[test]
    fn two_things_change_places_and_what_is_back_in_its_place_has_not_moved() {
        let [a, b, one, two] = [path("a"), path("b"), store("1"), store("2")];
        let there = [(a.clone(), one.clone()), (b.clone(), two.clone())];
        let (_, moved) = walk(&[&there[..], &[(two.clone(), a.clone()), (one.clone(), b.clone())]].concat());
        let told = |path: &str, store: &str, out| (path.to_owned(), store.to_owned(), out);
        assert_eq!(moved, [told("a", "1", true), told("a", "2", false), told("b", "2", true), told("b", "1", false)]);
        let (shelf, moved) = walk(&[&there[..], &[(one.clone(), a.clone())]].concat());
        assert_eq!(moved, [told("b", "2", true)]);
        assert!(shelf.has_taken(&"b/below".into()) && !shelf.has_taken(&"a".into()) && !shelf.has_taken(&"bb".into()));
        let (_, moved) = walk(&[(a.clone(), one.clone()), (one, path("c")), (path("c"), two)]);
        assert_eq!(moved, [told("a", "2", true)], "it never comes to where it goes on from");
        let mut shelf = Shelf::default();
        let thing = shelf.at(&store("1"), true).expect("it is kept");
        shelf.put(thing, store("1"), path("c"));
        let thing = shelf.arrived(&"c".into()).expect("it came");
        shelf.put(thing, path("c"), store("2"));
        let thing = shelf.at(&store("2"), false).expect("it went on");
        shelf.put(thing, store("2"), path("d"));
        assert_eq!(
            shelf.into_moves(&BTreeMap::new()),
            [AsideMove::new("d".into(), "1".into(), false)],
            "from where it is kept"
        );
    }
}
