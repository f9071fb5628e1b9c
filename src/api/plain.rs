//! What the API's values are made of: ids, paths and changes, in types of its own.

use crate::model::bytes::shown;
use crate::model::checkpoint::Change as ModelChange;
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;

/// The id of an object in the repository: a commit, a tree or a blob. It is shown as git shows it, in hex.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    bytes: [u8; 32],
    length: usize,
}

impl Id {
    pub(crate) fn of(id: ObjectId) -> Self {
        let mut bytes = [0; 32];
        let length = id.as_slice().len();
        bytes[..length].copy_from_slice(id.as_slice());
        Self { bytes, length }
    }

    /// Its bytes: 20 in a SHA-1 repository, 32 in a SHA-256 one.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A path from the top of the worktree, with `/` between its parts: exactly the bytes that git has for it, UTF-8 or
/// not. What is listed can be handed back, to [`Worktree::read`](crate::Worktree::read) as it is and wherever
/// pathspecs are taken by [`Self::pathspec`]. It is shown as git shows it: quoted where it holds control characters or
/// is not UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelativePath(Vec<u8>);

impl RelativePath {
    pub(crate) fn of(path: impl Into<BString>) -> Self {
        Self(path.into().into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The pathspec that means this path and what is below it, wherever it is used and whatever signs are in its name.
    pub fn pathspec(&self) -> OsString {
        OsString::from_vec([b":(top,literal)", self.as_bytes()].concat())
    }
}

impl From<&str> for RelativePath {
    fn from(path: &str) -> Self {
        Self(path.into())
    }
}

impl From<&[u8]> for RelativePath {
    fn from(path: &[u8]) -> Self {
        Self(path.into())
    }
}

impl AsRef<[u8]> for RelativePath {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl PartialEq<&str> for RelativePath {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(self.0.as_bstr()))
    }
}

impl fmt::Debug for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        BStr::new(&self.0).fmt(f)
    }
}

/// A value before something happens, and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change<T> {
    /// Before.
    pub from: T,
    /// After.
    pub to: T,
}

impl<T> Change<T> {
    pub(crate) fn of<S>(change: ModelChange<S>, plain: impl Fn(S) -> T) -> Self {
        Self { from: plain(change.from), to: plain(change.to) }
    }
}
