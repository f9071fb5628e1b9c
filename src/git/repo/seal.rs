//! What only this git directory can say of an object: a fetch or a clone brings records too, and nothing in them is carried out,
//! or left where git would carry it out.

use crate::git::repo::Repo;
use crate::git::repo::scratch::replace_synced;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::objs::Kind;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

/// The file in the scratch directory by which this git directory knows its own.
const KEY: &str = "journal.key";

impl Repo {
    /// A checksum of the object's id, of a secret, and of what file the secret is in. A fetch or a clone brings no secret, and
    /// an archive or a copy has it in another file.
    pub fn seal(&self, id: ObjectId) -> Result<String> {
        if let Some(sealed) = self.sealed(id)? {
            return Ok(sealed);
        }
        let (path, mut key) = (self.scratch()?.join(KEY), [0; 32]);
        File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut key)).context("make a key")?;
        replace_synced(&path, &key, 0o600)
            // Whoever may write here may finish what another has begun.
            .and_then(|()| self.sharing().share(&path))
            // Its name too.
            .and_then(|()| File::open(self.scratch_path(""))?.sync_all())
            .with_context(|| format!("write '{}'", path.display()))?;
        self.sealed(id)?.with_context(|| format!("read '{}'", path.display()))
    }

    /// Whether this is the seal of an object.
    pub fn is_sealed(&self, id: ObjectId, seal: &[u8]) -> Result<bool> {
        Ok(self.sealed(id)?.is_some_and(|sealed| sealed.as_bytes() == seal))
    }

    fn sealed(&self, id: ObjectId) -> Result<Option<String>> {
        let path = self.scratch_path(KEY);
        let read = || -> std::io::Result<Vec<u8>> {
            let about = path.symlink_metadata()?;
            // Where a file system does not tell when a file was made, its number must do.
            let made = about.created().ok().and_then(|made| made.duration_since(SystemTime::UNIX_EPOCH).ok());
            let file = format!("{} {}", about.ino(), made.unwrap_or_default().as_nanos());
            Ok([std::fs::read(&path)?, file.into_bytes(), id.as_bytes().to_vec()].concat())
        };
        match read() {
            Ok(all) => Ok(Some(gix::objs::compute_hash(self.hash_kind(), Kind::Blob, &all)?.to_string())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("read '{}'", path.display())),
        }
    }
}
