//! Finding objects while git moves them about: one that it packs at this moment is in no file of its own any more, and in no
//! pack that was known. gix looks for new packs once, as git does; beside one repack after another that is not enough.

use crate::git::repo::Repo;
use gix::ObjectId;

/// How often an object is looked for.
const TRIES: u32 = 5;

impl Repo {
    /// An object.
    pub fn find_object(&self, id: ObjectId) -> gix::Result<gix::Object<'_>> {
        again(|| self.gix.find_object(id))
    }

    /// An object, where it is there.
    pub fn try_find_object(&self, id: ObjectId) -> gix::Result<Option<gix::Object<'_>>> {
        for _ in 1..TRIES {
            if let Some(found) = self.gix.try_find_object(id)? {
                return Ok(Some(found));
            }
        }
        self.gix.try_find_object(id)
    }

    /// A commit.
    pub fn find_commit(&self, id: ObjectId) -> gix::Result<gix::Commit<'_>> {
        again(|| self.gix.find_commit(id))
    }

    /// A tree.
    pub fn find_tree(&self, id: ObjectId) -> gix::Result<gix::Tree<'_>> {
        again(|| self.gix.find_tree(id))
    }

    /// A blob.
    pub fn find_blob(&self, id: ObjectId) -> gix::Result<gix::Blob<'_>> {
        again(|| self.gix.find_blob(id))
    }

    /// Whether an object is there that is expected to be: each further look lists all packs.
    pub fn has_object(&self, id: ObjectId) -> bool {
        (0..TRIES).any(|_| self.gix.has_object(id))
    }
}

/// What is found, if need be at a later look.
pub fn again<T, E>(mut look: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    for _ in 1..TRIES {
        if let Ok(found) = look() {
            return Ok(found);
        }
    }
    look()
}
