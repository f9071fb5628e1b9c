//! The ways through trees that were gone last. Whoever looks for one path after the other goes on from there, and reads each
//! tree once: not all of them again for each path.

use gix::ObjectId;
use gix::bstr::{BStr, BString};
use gix::objs::tree::EntryKind;
use std::collections::HashMap;

/// So many are remembered: a checkpoint has two trees, and two are compared.
const MOST: usize = 4;

/// A tree in which so many names were looked up is read into a map: to go through all of it for each of its names takes as
/// long as these are many, squared.
const OFTEN: u32 = 8;

/// What has a name in a tree.
pub type Named = (EntryKind, ObjectId);

/// A tree in which names are looked up.
#[derive(Debug)]
struct Level {
    tree: ObjectId,
    lookups: u32,
    names: Option<HashMap<BString, Named>>,
}

/// The trees in which names were looked up last, the newest first.
#[derive(Debug, Default)]
pub struct Levels(Vec<Level>);

impl Levels {
    /// The names of a tree, where they are known; none where it has to be read.
    pub fn names(&mut self, tree: ObjectId) -> Option<&HashMap<BString, Named>> {
        let at = self.0.iter().position(|level| level.tree == tree)?;
        self.0[..=at].rotate_right(1);
        self.0[0].names.as_ref()
    }

    /// Counts a lookup; tells whether all names are wanted.
    pub fn count(&mut self, tree: ObjectId) -> bool {
        if let Some(level) = self.0.first_mut().filter(|level| level.tree == tree) {
            level.lookups += 1;
            return level.lookups >= OFTEN;
        }
        self.0.truncate(MOST - 1);
        self.0.insert(0, Level { tree, lookups: 1, names: None });
        false
    }

    /// Keeps the names of the tree that was counted last.
    pub fn keep(&mut self, names: HashMap<BString, Named>) {
        if let Some(level) = self.0.first_mut() {
            level.names = Some(names);
        }
    }
}

/// The directories on the way to a path of a tree.
#[derive(Debug)]
pub struct Way {
    root: ObjectId,
    /// The path.
    pub path: BString,
    /// Where the name of each directory ends in it, and its tree.
    pub trees: Vec<(usize, ObjectId)>,
}

/// The ways that were gone last, the newest first.
#[derive(Debug, Default)]
pub struct Ways(Vec<Way>);

impl Ways {
    /// The way that was gone last through this tree; one that leads nowhere where none was.
    pub fn take(&mut self, root: ObjectId) -> Way {
        let known = self.0.iter().position(|way| way.root == root);
        known.map_or_else(|| Way { root, path: BString::default(), trees: Vec::new() }, |at| self.0.remove(at))
    }

    /// Remembers a way. `usable` directories of the one before are on this one too, and `further` ones follow: where there
    /// are none, the one before leads at least as far.
    pub fn keep(&mut self, mut way: Way, usable: usize, path: &BStr, further: Vec<(usize, ObjectId)>) {
        if !further.is_empty() {
            way.trees.truncate(usable);
            way.trees.extend(further);
            path.clone_into(&mut way.path);
        }
        self.0.truncate(MOST - 1);
        self.0.insert(0, way);
    }
}
