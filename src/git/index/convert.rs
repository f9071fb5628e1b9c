//! Whether something may stand between a file and its blob.

use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::attrs::StateRef as S;
use gix::bstr::{BStr, ByteSlice};
use gix::index::entry::Mode;
use gix::worktree::stack::state::attributes::Source;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The attributes by which git converts what is in a file.
pub const CONVERTING: [&str; 6] = ["text", "crlf", "eol", "ident", "filter", "working-tree-encoding"];

/// Those that convert more than the ends of lines.
pub const MORE: [&str; 3] = ["ident", "filter", "working-tree-encoding"];

/// The settings and attributes of now.
pub struct Conversion<'r> {
    repo: &'r Repo,
    attributes: gix::AttributeStack<'r>,
    /// Whether it may be any file, whatever its attributes.
    is_any: bool,
}

impl<'r> Index<'r> {
    /// The blob that git makes of a file at this path with the bytes of that blob, by the filters of now.
    pub fn converted(&self, path: &BStr, content: ObjectId) -> Result<ObjectId> {
        let named = [b"--path=".as_slice(), path].concat();
        let words = [b"hash-object".as_slice(), b"-w", &named, b"--stdin"].map(OsStr::from_bytes);
        let printed = self.repo.git(words).run(&Objects::new(self.repo).blob(content)?)?;
        ObjectId::from_hex(printed.trim_ascii()).context("read what git says of a blob")
    }

    /// What may convert files with this index.
    pub fn conversion(&self, index: &gix::index::File) -> Result<Conversion<'r>> {
        let attributes = self.repo.gix.attributes_only(index, Source::WorktreeThenIdMapping)?;
        Ok(Conversion {
            repo: self.repo,
            attributes,
            is_any: converts_line_ends(self.repo) || !self.repo.knows_attributes(),
        })
    }
}

impl Conversion<'_> {
    /// Whether git may convert this file on its way to its blob, or from it.
    pub fn may_convert(&mut self, path: &BStr) -> Result<bool> {
        Ok(self.is_any || self.has_any(path, CONVERTING)?)
    }

    /// Whether that may be more than the ends of its lines.
    pub fn may_convert_more(&mut self, path: &BStr) -> Result<bool> {
        Ok(!self.repo.knows_attributes() || self.has_any(path, MORE)?)
    }

    /// Whether git converts this file where it has that blob of it: the ends of lines stay where the blob has those of Windows.
    pub fn converts_with(&mut self, path: &BStr, blob: ObjectId) -> Result<bool> {
        Ok(self.may_convert(path)?
            && (self.has_any(path, MORE)? || !Objects::new(self.repo).blob(blob)?.contains_str("\r\n")))
    }

    fn has_any<const N: usize>(&mut self, path: &BStr, names: [&str; N]) -> Result<bool> {
        let mut outcome = self.attributes.selected_attribute_matches(names);
        let matched = self.attributes.at_entry(path, Some(Mode::FILE))?.matching_attributes(&mut outcome);
        let is_set = |state: S<'_>| !matches!(state, S::Unset | S::Unspecified);
        Ok(matched && outcome.iter_selected().any(|found| is_set(found.assignment.state)))
    }
}

fn converts_line_ends(repo: &Repo) -> bool {
    // `input` is no boolean.
    !matches!(repo.boolean("core.autocrlf"), Ok(None | Some(false)))
}
