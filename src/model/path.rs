//! Paths, as bytes, from the top of the worktree.

use gix::bstr::{BStr, ByteSlice};

/// Every directory above a path, the nearest first.
pub fn parents(path: &BStr) -> impl Iterator<Item = &BStr> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let slash = rest.rfind_byte(b'/')?;
        rest = rest[..slash].as_bstr();
        Some(rest)
    })
}
