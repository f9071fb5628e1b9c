//! `.keep` files: while a command is at work, git leaves the packs alone that it has just written.

use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What stands in oxundo's own.
const REASON: &[u8] = b"oxundo is writing\n";

/// The packs that were written and must stay while the command is at work.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Mutex<Vec<Keep>>>);

impl Kept {
    /// Leaves the packs to git.
    pub fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keeps one more.
    pub fn add(&self, keep: Keep) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(keep);
    }
}

/// A `.keep` file. Its lock tells others that its owner is alive.
#[derive(Debug)]
pub struct Keep {
    path: PathBuf,
    _file: File,
}

impl Drop for Keep {
    fn drop(&mut self) {
        // One that stays is removed when packs are taken together.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Keep {
    /// Makes the file beside a pack that is about to be written there.
    pub fn make(path: PathBuf) -> Result<Self> {
        // Locked before anybody sees it.
        let hidden = temporary(&path);
        let mut file = create(&hidden)?;
        let made = file.try_lock().map_err(Into::into).and_then(|()| file.write_all(REASON));
        let made = made.and_then(|()| std::fs::rename(&hidden, &path));
        if made.is_err() {
            let _ = std::fs::remove_file(&hidden);
        }
        made.with_context(|| format!("write '{}'", path.display()))?;
        Ok(Self { path, _file: file })
    }

    /// Whether a pack must stay: somebody wants it kept, or is about to name its objects. What a dead oxundo left is
    /// removed.
    pub fn stands(pack: &Path) -> bool {
        let path = pack.with_extension("keep");
        let Ok(file) = File::open(&path) else { return path.symlink_metadata().is_ok() };
        let dead = std::fs::read(&path).is_ok_and(|reason| reason == REASON) && file.try_lock().is_ok();
        !(dead && std::fs::remove_file(&path).is_ok())
    }
}

/// Where a file of the pack directory is written before it is whole. git sweeps away what a kill leaves there.
pub fn temporary(path: &Path) -> PathBuf {
    let mut name = OsString::from("tmp_");
    name.push(path.file_name().unwrap_or_default());
    path.with_file_name(name)
}

/// A new file that nobody changes.
pub fn create(path: &Path) -> Result<File> {
    let file = File::options().write(true).create_new(true).mode(0o444).open(path);
    file.with_context(|| format!("make '{}'", path.display()))
}
