//! Looking writes nothing where others find it. What is made for a look is in memory; where git has to see it, it is
//! below a temporary directory that is gone with the look, and a file too large for memory is known by its content's id
//! and kept open. Whoever acts on what was looked at keeps all of it first.

use crate::git::repo::Repo;
use crate::git::repo::apart::{Apart, Look, OPEN, stream, stream_as};
use anyhow::Result;
use gix::ObjectId;
use std::fs::File;
use std::path::PathBuf;

impl Repo {
    /// From here on, until [`Self::keep`] or [`Self::act`], nothing is to be written.
    pub fn look(&self) {
        *self.look.borrow_mut() = Some(Look::default());
    }

    /// From here on things are written where they belong. What was looked at is forgotten.
    pub fn act(&self) {
        *self.look.borrow_mut() = None;
    }

    /// As [`Self::act`], but what was looked at is kept: a plan names it.
    pub fn keep(&self) -> Result<()> {
        let Some(look) = self.look.take() else { return Ok(()) };
        for (id, file) in &look.large {
            stream_as(&*self.gix.objects, file, *id)?;
            self.share_object(*id)?;
        }
        if let Some(apart) = &look.apart {
            self.take_in(&apart.path)?;
        }
        Ok(())
    }

    /// Whether this is only a look.
    pub fn is_looking(&self) -> bool {
        self.look.borrow().is_some()
    }

    /// Makes a file too large for memory a blob, which has this id most likely; none where it cannot be read. At a look
    /// it is only remembered.
    pub fn put_large(&self, file: File, id: ObjectId) -> Result<Option<ObjectId>> {
        if let Some(look) = &mut *self.look.borrow_mut()
            && look.large.len() < OPEN
        {
            look.large.insert(id, file);
            return Ok(Some(id));
        }
        let id = stream(&*self.gix.objects, &file)?;
        id.map_or(Ok(()), |id| self.share_object(id))?;
        Ok(id)
    }

    /// A large file that was only looked at.
    pub fn looked_at(&self, id: ObjectId) -> Option<File> {
        self.look.borrow().as_ref()?.large.get(&id)?.try_clone().ok()
    }

    /// Puts what was made for a look where only a git that is started for it finds it; gives the directory.
    pub(in crate::git::repo) fn set_apart(&self) -> Result<PathBuf> {
        let mut look = self.look.borrow_mut();
        let look = look.get_or_insert_default();
        let directory = match &look.apart {
            Some(apart) => apart.path.clone(),
            None => look.apart.insert(Apart::make()?).path.clone(),
        };
        self.copy_unwritten(&directory)?;
        let store = gix::odb::loose::Store::at(directory.clone(), self.hash_kind());
        for (id, file) in &look.large {
            stream_as(&store, file, *id)?;
        }
        Ok(directory)
    }
}
