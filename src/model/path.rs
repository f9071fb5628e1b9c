//! Paths, as bytes, from the top of the worktree.

use gix::bstr::{BStr, ByteSlice};
use std::collections::BTreeSet;

/// Every directory above a path, the nearest first.
pub fn parents(path: &BStr) -> impl Iterator<Item = &BStr> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let slash = rest.rfind_byte(b'/')?;
        rest = rest[..slash].as_bstr();
        Some(rest)
    })
}

/// A path, and every directory above it, the nearest first.
pub fn up_from(path: &BStr) -> impl Iterator<Item = &BStr> {
    std::iter::once(path).chain(parents(path))
}

/// Every directory above any of these paths. Each is looked up once, and not again for each path that is below it.
pub fn all_parents<'p>(paths: impl IntoIterator<Item = &'p BStr>) -> BTreeSet<&'p BStr> {
    let mut all = BTreeSet::new();
    for path in paths {
        // Where one is known, those above it are.
        let _ = parents(path).find(|parent| !all.insert(*parent));
    }
    all
}

/// Whether a path is this one, or below it.
pub fn is_at_or_below(path: &BStr, top: &BStr) -> bool {
    path.strip_prefix(top.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
