//! Directories that a turn closed, even to their owner: they are opened while what is in them is looked at, and get their
//! modes back. What the user closed stays closed.

use crate::git::checkpoint::Checkpoints;
use crate::git::scan::found::Scan;
use crate::git::worktree::Worktree;
use crate::git::worktree::stat::mode_of;
use crate::git::worktree::write::set_mode_of;
use crate::model::checkpoint::{Checkpoint, Reason};
use crate::model::path::is_at_or_below;
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// The directories that are open though they were not: their paths, they themselves, and their modes.
#[derive(Debug, Default)]
pub struct Opened(Mutex<Vec<(BString, OwnedFd, u32)>>);

impl Opened {
    /// Opens what a scan could not look into, where a turn closed it: since the checkpoint of its beginning, or as
    /// `left_closed` says. Tells whether there is more to see now.
    pub fn open(
        &self,
        checkpoints: &Checkpoints<'_>,
        scan: &Scan,
        earlier: Option<&Checkpoint>,
        left_closed: &dyn Fn(&BStr, u32) -> bool,
    ) -> Result<bool> {
        let mut is_more = false;
        for skipped in scan.skipped.iter().filter(|skipped| skipped.reason == Reason::Unreadable) {
            let (path, worktree) = (skipped.path.as_bstr(), Worktree::new(checkpoints.repo));
            let Ok(Some((stat, _))) = worktree.stat(path) else { continue };
            let is_turns = match earlier {
                Some(earlier) => {
                    checkpoints.captured_directory(earlier, path)?.is_some()
                        || !earlier.skipped.iter().any(|old| is_at_or_below(path, old.path.as_bstr()))
                }
                None => left_closed([path.as_bytes(), b"/"].concat().as_bstr(), mode_of(&stat)),
            };
            if is_turns && let Some((directory, mode)) = worktree.open_closed_directory(path)? {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), directory, mode));
                is_more = true;
            }
        }
        Ok(is_more)
    }

    /// The modes that they had, each by its path with a slash behind.
    pub fn modes(&self) -> Vec<(BString, u32)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(path, _, mode)| ([path.as_bytes(), b"/"].concat().into(), *mode)).collect()
    }

    /// Closes them.
    pub fn close(&self) {
        for (_, directory, mode) in self.0.lock().unwrap_or_else(PoisonError::into_inner).drain(..).rev() {
            // It is as it was a moment ago: there is nothing to fail.
            let _ = set_mode_of(directory, mode);
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.close();
    }
}
