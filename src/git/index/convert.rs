//! Whether something may stand between a file and its blob.

use crate::git::index::Index;
use crate::git::repo::Repo;
use anyhow::Result;
use gix::attrs::StateRef as S;
use gix::bstr::BStr;
use gix::index::entry::Mode;
use gix::worktree::stack::state::attributes::Source;

/// The attributes by which git converts what is in a file.
pub const CONVERTING: [&str; 6] = ["text", "crlf", "eol", "ident", "filter", "working-tree-encoding"];

/// The settings and attributes of now.
pub struct Conversion<'r> {
    attributes: gix::AttributeStack<'r>,
    /// Whether it may be any file, whatever its attributes.
    is_any: bool,
}

impl<'r> Index<'r> {
    /// What may convert files with this index.
    pub fn conversion(&self, index: &gix::index::File) -> Result<Conversion<'r>> {
        let attributes = self.repo.gix.attributes_only(index, Source::WorktreeThenIdMapping)?;
        Ok(Conversion { attributes, is_any: converts_line_ends(self.repo) || !self.repo.knows_attributes() })
    }
}

impl Conversion<'_> {
    /// Whether git may convert this file on its way to its blob, or from it.
    pub fn may_convert(&mut self, path: &BStr) -> Result<bool> {
        let mut outcome = self.attributes.selected_attribute_matches(CONVERTING);
        let matched = self.attributes.at_entry(path, Some(Mode::FILE))?.matching_attributes(&mut outcome);
        let is_set = |state: S<'_>| !matches!(state, S::Unset | S::Unspecified);
        Ok(self.is_any || matched && outcome.iter_selected().any(|found| is_set(found.assignment.state)))
    }
}

fn converts_line_ends(repo: &Repo) -> bool {
    // `input` is no boolean.
    !matches!(repo.boolean("core.autocrlf"), Ok(None | Some(false)))
}
