//! The index as a turn found it. It knows which file each tracked one was, by the number of its inode, whatever git makes of
//! the index meanwhile.

use crate::git::index::Index;
use crate::git::repo::Stamp;
use crate::git::repo::scratch::remove_if_there;
use anyhow::Result;
use gix::index::File;

/// Its name in the scratch.
const BEGUN: &str = "begun";

impl Index<'_> {
    /// Keeps the index as it is now, as another name of the file: git makes a new one whenever it writes. Where there are no
    /// hard links none is kept, nor of an index that has parts of it in another file.
    pub fn keep_begun(&self) -> Result<()> {
        self.forget_begun()?;
        let _ = std::fs::hard_link(self.index_path(), self.repo.scratch()?.join(BEGUN));
        Ok(())
    }

    /// That index, where there is one that can be read.
    pub fn begun(&self) -> Option<File> {
        let path = self.repo.scratch_path(BEGUN);
        path.exists().then(|| self.decode_index(&path).ok())?
    }

    /// Whether the index is still that one.
    pub fn is_as_begun(&self) -> bool {
        let now = Stamp::of(&self.index_path());
        now.is_some() && now == Stamp::of(&self.repo.scratch_path(BEGUN))
    }

    /// When the turn is over.
    pub fn forget_begun(&self) -> Result<()> {
        remove_if_there(&self.repo.scratch_path(BEGUN))
    }
}
