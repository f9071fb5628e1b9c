//! What stands where while a journal is there: an apply that was interrupted, or could not be rolled back, has done some of it.

use crate::git::apply::Apply;
use crate::git::worktree::Worktree;
use crate::model::bytes::in_quotes;
use crate::model::plan::Plan;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};

/// How something stands that a plan changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// As before the plan.
    Before,
    /// As after it.
    After,
    /// Neither: it was changed since, or is out of its place.
    Neither,
    /// Nobody knows: it cannot be read.
    Unreadable,
}

impl Stands {
    fn of<T: PartialEq>(now: Result<T>, from: &T, to: &T) -> Self {
        match now {
            Err(_) => Self::Unreadable,
            Ok(now) if now == *from => Self::Before,
            Ok(now) if now == *to => Self::After,
            Ok(_) => Self::Neither,
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Before => "as before",
            Self::After => "as after it",
            Self::Neither => "neither as before nor as after it",
            Self::Unreadable => "cannot be read",
        }
    }
}

impl Apply<'_> {
    /// How each file, and each thing that is moved aside, of an interrupted command's plan stands.
    pub fn standing(&self) -> Result<Vec<(BString, Stands)>> {
        let Some(plan) = self.interrupted_plan()? else { return Ok(Vec::new()) };
        let Plan { files, aside, .. } = plan;
        let (worktree, hash) = (Worktree::new(self.repo), self.repo.hash_kind());
        let files = files.into_iter().map(|file| {
            let stands = Stands::of(worktree.state(file.path.as_bstr(), hash), &file.from, &file.to);
            (file.path, stands)
        });
        let aside = aside.into_iter().map(|aside| {
            let is_out = worktree.stat(aside.path.as_bstr()).map(|stat| stat.is_none());
            let stands = Stands::of(is_out, &!aside.out, &aside.out);
            (aside.path, stands)
        });
        Ok(files.chain(aside).collect())
    }
}

/// How something stands, in a line.
pub fn line((path, stands): &(BString, Stands)) -> String {
    format!("{}: {}", in_quotes(path.as_bstr()), stands.words())
}
