//! What a look needs and writes nowhere: files that are kept open, and a directory of objects that is gone with it.

use crate::git::repo::large::Exactly;
use anyhow::{Context, Result, ensure};
use gix::ObjectId;
use gix::objs::{Kind, Write};
use std::collections::BTreeMap;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// So many files are kept open at most; more are written at once.
pub const OPEN: usize = 64;

/// What a look needs and has not written.
#[derive(Debug, Default)]
pub struct Look {
    /// Files, by the ids that they have as blobs.
    pub large: BTreeMap<ObjectId, File>,
    /// Where git has to see what was made.
    pub apart: Option<Apart>,
}

/// A directory of objects that nobody else knows.
#[derive(Debug)]
pub struct Apart(pub PathBuf);

impl Apart {
    /// Makes one, under a name that nobody can know before.
    pub fn make() -> Result<Self> {
        loop {
            let chance = RandomState::new().build_hasher().finish();
            let path = std::env::temp_dir().join(format!("oxundo-look-{chance:016x}"));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                made => return made.map(|()| Self(path.clone())).with_context(|| format!("make '{}'", path.display())),
            }
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Makes a file a blob, not through memory. None where it cannot be read.
pub fn stream(store: &dyn Write, file: &File) -> Result<Option<ObjectId>> {
    let mut bytes = Exactly::of(file)?;
    match store.write_stream(Kind::Blob, bytes.left, &mut bytes) {
        Ok(id) => Ok(Some(id)),
        Err(_) if bytes.shorter => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub fn stream_as(store: &dyn Write, file: &File, id: ObjectId) -> Result<()> {
    ensure!(stream(store, file)? == Some(id), "a large file was changed while it was looked at");
    Ok(())
}
