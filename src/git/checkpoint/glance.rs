//! Whether the worktree differs from the index, without a checkpoint.

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::scan::glance::{Difference, Glance};
use crate::git::worktree::Worktree;
use crate::model::checkpoint::UsualModes;
use anyhow::{Context, Result};
use gix::bstr::BString;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

impl Checkpoints<'_> {
    /// Whether any tracked file differs from the index, as git's own status sees it: no file is read that git does not read.
    pub fn differs_from_index(&self, usual: UsualModes) -> Result<bool> {
        let index = Index::new(self.repo);
        let opened = index.expanded_where_present(index.read_index()?)?;
        let (looks, monitor) = self.looks(usual)?;
        let glance = Glance {
            worktree: Worktree::new(self.repo),
            index: &opened,
            looks,
            monitor: monitor.as_ref(),
            shows_left_out: index.is_sparse_checkout() && index.shows_what_is_there()?,
        };
        match glance.first()? {
            None => Ok(false),
            Some((at, Difference::Bytes)) => {
                let path = opened.entries()[at].path(&opened);
                if index.conversion(&opened)?.may_convert(path)? { self.git_sees_changes() } else { Ok(true) }
            }
            Some((_, Difference::Sure)) => Ok(true),
        }
    }

    /// Whether git sees anything in these paths that is not committed, by what its filters make of it, or that it does not have: a
    /// stash takes that.
    pub fn has_uncommitted(&self, paths: &[BString]) -> Result<bool> {
        self.git_sees("--untracked-files=all", paths)
    }

    /// Whether git sees any tracked file changed, by what its filters make of it.
    fn git_sees_changes(&self) -> Result<bool> {
        self.git_sees("--untracked-files=no", &[])
    }

    /// Whether git's status names anything, in these paths or in all.
    fn git_sees(&self, untracked: &str, paths: &[BString]) -> Result<bool> {
        let words = ["status", "--porcelain", untracked, "--ignore-submodules=all", "--no-renames", "--"];
        let words = words.into_iter().map(OsStr::new).chain(paths.iter().map(|path| OsStr::from_bytes(path)));
        let git = self.repo.git_apart(words).env("GIT_OPTIONAL_LOCKS", "0").env("GIT_LITERAL_PATHSPECS", "1");
        Ok(!git.run(b"").context("ask git what has changed")?.is_empty())
    }
}
