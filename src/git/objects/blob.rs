//! Blobs, however large they are.

use crate::git::objects::Objects;
use crate::git::repo::find::again;
use crate::git::repo::large::{Exactly, IN_MEMORY};
use anyhow::Result;
use gix::ObjectId;
use std::io::Read;

impl Objects<'_> {
    /// Copies a blob's content. git reads large ones, since it streams them, and missing ones, since it may
    /// know where to fetch them.
    pub fn copy_blob(&self, id: ObjectId, out: &mut dyn std::io::Write) -> Result<()> {
        if self.is_small(id).unwrap_or(false) {
            return Ok(out.write_all(&self.blob(id)?)?);
        }
        let threshold = format!("core.bigFileThreshold={IN_MEMORY}");
        self.repo.git(["-c", &threshold, "cat-file", "blob", &id.to_string()]).copy_to(out)
    }

    /// The raw content of a blob; none where that is too large for memory.
    pub fn small_blob(&self, id: ObjectId) -> Result<Option<Vec<u8>>> {
        self.is_small(id)?.then(|| self.blob(id)).transpose()
    }

    /// Whether a blob is not too large for memory. To ask for the size of what is in a file of its own takes as long as to read it.
    fn is_small(&self, id: ObjectId) -> Result<bool> {
        Ok(self.repo.is_in_small_file(id) || self.size(id)? <= IN_MEMORY)
    }

    /// The size of a blob.
    pub fn size(&self, id: ObjectId) -> Result<u64> {
        match self.repo.looked_at(id) {
            Some(file) => Ok(file.metadata()?.len()),
            None => Ok(again(|| self.repo.gix.find_header(id))?.size()),
        }
    }

    /// The raw content of a blob.
    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>> {
        let Some(file) = self.repo.looked_at(id) else { return Ok(self.repo.find_blob(id)?.data.clone()) };
        let mut bytes = Vec::new();
        Exactly::of(&file)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
