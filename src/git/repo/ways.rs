//! The ways through trees that were gone last. Whoever looks for one path after the other goes on from there, and reads each
//! tree once: not all of them again for each path.

use gix::ObjectId;
use gix::bstr::{BStr, BString};

/// So many are remembered: a checkpoint has two trees, and two are compared.
const MOST: usize = 4;

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
