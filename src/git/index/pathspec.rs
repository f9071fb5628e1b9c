//! Which paths the user means: git's pathspecs, from where the command was called.

use crate::error::{Code, Refusal};
use crate::git::index::Index;
use crate::model::bytes::shown;
use anyhow::Result;
use gix::bstr::{BStr, ByteSlice};
use gix::worktree::stack::state::attributes::Source;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// Paths that match.
pub struct Selection<'repo>(gix::Pathspec<'repo>);

impl Selection<'_> {
    /// Whether a file is meant.
    pub fn takes(&mut self, path: &BStr) -> bool {
        self.0.is_included(path, Some(false))
    }
}

impl<'r> Index<'r> {
    /// Reads pathspecs as git does.
    pub fn selection(&self, pathspecs: &[OsString]) -> Result<Selection<'r>> {
        let index = self.read_index()?;
        let patterns = pathspecs.iter().map(|pathspec| pathspec.as_bytes().as_bstr());
        let search = self.repo.gix.pathspec(false, patterns, true, &index, Source::WorktreeThenIdMapping);
        search.map(Selection).map_err(|error| {
            let given: Vec<_> = pathspecs.iter().map(|spec| shown(spec.as_bytes().as_bstr())).collect();
            Refusal::new(Code::Usage, format!("'{}' is no pathspec here: {error}", given.join(" ")))
                .hint("give paths below the top of the worktree; 'git help glossary' says what a pathspec is")
                .into()
        })
    }
}
