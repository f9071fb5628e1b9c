//! Which paths the user means: git's pathspecs, from where the command was called.

use crate::error::{Code, Refusal};
use crate::git::index::Index;
use crate::model::bytes::shown;
use anyhow::Result;
use gix::bstr::{BStr, ByteSlice};
use gix::worktree::stack::state::attributes::Source;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

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
        let patterns = pathspecs.iter().map(|pathspec| {
            // gix takes what leads to the top for the beginning of a name.
            if leads_to_the_top(self.repo.prefix(), pathspec) { ":/".into() } else { pathspec.as_bytes().as_bstr() }
        });
        let search = self.repo.gix.pathspec(false, patterns, true, &index, Source::WorktreeThenIdMapping);
        search.map(Selection).map_err(|error| {
            let given: Vec<_> = pathspecs.iter().map(|spec| shown(spec.as_bytes().as_bstr())).collect();
            Refusal::new(Code::Usage, format!("'{}' is no pathspec here: {error}", given.join(" ")))
                .hint("give paths below the top of the worktree; 'git help glossary' says what a pathspec is")
                .into()
        })
    }
}

/// Whether a pathspec, seen from a directory below the top, is the top: `.` there, or `..` below it.
fn leads_to_the_top(prefix: &Path, pathspec: &OsStr) -> bool {
    let mut depth = prefix.components().count();
    for part in Path::new(pathspec).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    depth == 0 && !pathspec.is_empty()
}
