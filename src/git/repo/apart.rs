//! What a look needs and writes nowhere: files that are kept open, and a directory of objects that is gone with it.

use crate::git::repo::large::Exactly;
use anyhow::{Context, Result, ensure};
use gix::ObjectId;
use gix::objs::{Kind, Write};
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// How the names of such directories begin.
const PREFIX: &str = "oxundo-look-";

/// How old one is at least that is taken for a dead one's, so that whoever has just made one has locked it.
const OLD: Duration = Duration::from_secs(60);

/// A directory of objects that nobody else knows.
#[derive(Debug)]
pub struct Apart {
    /// The directory.
    pub path: PathBuf,
    /// A lock on it: it is in use.
    _lock: Option<File>,
}

impl Apart {
    /// Makes one, under a name that nobody can know before. What others left that were killed goes.
    pub fn make() -> Result<Self> {
        let place = std::env::temp_dir();
        sweep(&place);
        loop {
            let chance = RandomState::new().build_hasher().finish();
            let path = place.join(format!("{PREFIX}{chance:016x}"));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made.with_context(|| format!("make '{}'", path.display()))?,
            }
            let lock = File::open(&path).ok().filter(|file| file.try_lock().is_ok());
            return Ok(Self { path, _lock: lock });
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// Removes such directories that nobody holds any more. Those of others are theirs, and cannot be opened.
fn sweep(place: &Path) {
    let found = std::fs::read_dir(place).into_iter().flatten().flatten();
    for entry in found.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let path = entry.path();
        let age = |about: Metadata| about.modified().ok()?.elapsed().ok();
        let is_old = |path: &Path| path.symlink_metadata().ok().filter(Metadata::is_dir).and_then(age) > Some(OLD);
        if is_old(&path) && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = std::fs::remove_dir_all(&path);
        }
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
