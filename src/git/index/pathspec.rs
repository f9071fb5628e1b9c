//! Which paths the user means: git's pathspecs, from where the command was called.

use crate::error::{Code, Refusal};
use crate::git::index::Index;
use crate::model::bytes::{in_quotes, lossless, shell_word};
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::pathspec::{MagicSignature, SearchMode};
use gix::worktree::stack::state::attributes::Source;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

/// How a pathspec begins that takes one path out of what others take.
pub const ALL_BUT: &[u8] = b":(top,exclude,literal)";

/// Paths that match.
pub struct Selection<'repo> {
    given: gix::Pathspec<'repo>,
    /// They lead to the top, and nothing is taken out of that.
    takes_all: bool,
}

impl Selection<'_> {
    /// Whether a file is meant.
    pub fn takes(&mut self, path: &BStr) -> bool {
        self.takes_all || self.given.is_included(path, Some(false))
    }

    /// Whether a directory is meant, with or without what is in it.
    pub fn takes_directory(&mut self, path: &BStr) -> bool {
        self.takes_all || self.given.is_included(path, Some(true))
    }
}

impl<'r> Index<'r> {
    /// Reads pathspecs as git does.
    pub fn selection(&self, pathspecs: &[OsString]) -> Result<Selection<'r>> {
        let index = self.read_index()?;
        let patterns = pathspecs.iter().map(|pathspec| {
            // gix takes what leads to the top for the beginning of a name.
            let is_top = leads_to_the_top(self.repo.prefix(), pathspec);
            if is_top { ":/".into() } else { self.seen_from_the_top(pathspec.as_bytes().as_bstr()) }
        });
        // Where all are literal gix has no word for the top.
        let takes_all =
            self.are_literal() && pathspecs.iter().any(|pathspec| leads_to_the_top(self.repo.prefix(), pathspec));
        let search = self.repo.gix.pathspec(false, patterns, true, &index, Source::WorktreeThenIdMapping);
        match search {
            Ok(given) => Ok(Selection { given, takes_all }),
            Err(error) => Err(self.refusal(pathspecs).map_or_else(|| error.into(), Into::into)),
        }
    }

    /// What is wrong with pathspecs that git would not take.
    fn refusal(&self, pathspecs: &[OsString]) -> Option<Refusal> {
        let defaults = self.repo.gix.pathspec_defaults().ok()?;
        let is_none = |spec: &&OsString| gix::pathspec::parse(spec.as_bytes(), defaults).is_err();
        let files =
            "run 'git ls-files' to see paths: a pathspec is one below the top of the worktree, or a glob of some";
        let Some(none) = pathspecs.iter().find(is_none) else {
            // Of what oxundo has made literal, the user knows the path.
            let bare =
                |spec: &'_ OsString| spec.as_bytes().strip_prefix(b":(literal)").unwrap_or(spec.as_bytes()).to_vec();
            let given: Vec<_> = pathspecs.iter().map(bare).collect();
            let given = in_quotes(given.join(&b' ').as_bstr());
            return Some(Refusal::new(Code::Usage, format!("{given} leads out of the worktree")).hint(files));
        };
        if none.is_empty() {
            return Some(Refusal::new(Code::Usage, "an empty word is no pathspec").hint(files));
        }
        let given = none.as_bytes().as_bstr();
        let message = format!("{} is no pathspec: git knows no such magic", in_quotes(given));
        let name = shell_word([b"./", none.as_bytes()].concat());
        Some(
            Refusal::new(Code::Usage, message)
                .hint(format!("give {name} instead of {} where that is a name", shell_word(none.as_bytes()))),
        )
    }
}

impl Index<'_> {
    /// A pathspec that takes all.
    pub fn whole(&self) -> String {
        // It is but a name where all are literal.
        if self.are_literal() {
            format!("./{}", "../".repeat(self.repo.prefix().components().count()))
        } else {
            ":/".to_owned()
        }
    }

    /// Pathspecs, as they are kept, that take these paths out of what others take. None where all are literal, or there is no path.
    pub fn all_but(&self, paths: &[BString]) -> Option<Vec<String>> {
        let but = |path: &BString| lossless::encode(&[ALL_BUT, path.as_slice()].concat());
        (!self.are_literal() && !paths.is_empty()).then(|| paths.iter().map(but).collect())
    }

    /// Whether the user has said so, as in `GIT_LITERAL_PATHSPECS`.
    fn are_literal(&self) -> bool {
        self.repo.gix.pathspec_defaults().is_ok_and(|defaults| defaults.literal)
    }

    /// A pathspec as it is from the top, if the name of the directory that one stands in could be taken for a pattern: git
    /// takes it as it is, and gix does not.
    fn seen_from_the_top(&self, pathspec: &BStr) -> BString {
        let prefix = self.repo.prefix();
        let given = || pathspec.to_owned();
        if !prefix.as_os_str().as_bytes().iter().any(|byte| PATTERN.contains(byte)) {
            return given();
        }
        let Ok(defaults) = self.repo.gix.pathspec_defaults() else { return given() };
        if defaults.literal {
            return given();
        }
        let Ok(mut pattern) = gix::pathspec::parse(pathspec, defaults) else { return given() };
        if pattern.signature.contains(MagicSignature::TOP) || pattern.is_nil() || pattern.path().starts_with(b"/") {
            return given();
        }
        let own = Path::new(OsStr::from_bytes(pattern.path())).to_owned();
        let mut above: Vec<Vec<u8>> = prefix.iter().map(|name| name.as_bytes().to_owned()).collect();
        let mut below = own.components();
        while let Some(first @ (Component::CurDir | Component::ParentDir)) = below.clone().next() {
            below.next();
            if first == Component::ParentDir && above.pop().is_none() {
                return given();
            }
        }
        let below = below.as_path().as_os_str().as_bytes();
        if pattern.search_mode != SearchMode::Literal && below.iter().any(|byte| PATTERN.contains(byte)) {
            for name in &mut above {
                *name = escaped(name);
            }
        } else {
            pattern.search_mode = SearchMode::Literal;
        }
        pattern.signature |= MagicSignature::TOP;
        // Its path is behind its magic, and a slash at its end is part of that.
        let mut text: Vec<u8> = pattern.to_bstring().into();
        let end = if pattern.signature.contains(MagicSignature::MUST_BE_DIR) { &b"/"[..] } else { b"" };
        let magic = text.len() - pattern.path().len() - end.len();
        text.truncate(magic);
        let names = above.iter().map(Vec::as_slice).chain((!below.is_empty()).then_some(below));
        text.extend_from_slice(&names.collect::<Vec<_>>().join(&b"/"[..]));
        text.extend_from_slice(end);
        text.into()
    }
}

/// What has a meaning in a pattern.
const PATTERN: &[u8] = b"*?[\\";

/// A pattern that only this name matches.
fn escaped(name: &[u8]) -> Vec<u8> {
    name.iter().flat_map(|byte| PATTERN.contains(byte).then_some(b'\\').into_iter().chain([*byte])).collect()
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
