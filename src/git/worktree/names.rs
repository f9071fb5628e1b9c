//! Which names git would store.

use gix::bstr::{BStr, ByteSlice};

/// Whether git would store a file of this name: under the rules of every file system, or, where
/// git itself looks at what is tracked, without those of Apple's.
pub fn is_storable(path: &BStr, protect_hfs: bool) -> bool {
    let options = gix::validate::path::component::Options { protect_windows: false, protect_hfs, protect_ntfs: true };
    path.split(|byte| *byte == b'/')
        .all(|component| gix::validate::path::component(component.as_bstr(), None, options).is_ok())
}
