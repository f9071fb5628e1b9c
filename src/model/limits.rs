//! Which untracked content is captured.

use gix::bstr::BString;
use std::collections::HashSet;

/// Which untracked content is captured.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest file captured, in bytes.
    pub max_file_size: u64,
    /// The most files in an untracked directory.
    pub max_directory_entries: u64,
    /// The most bytes of new untracked content in one checkpoint.
    pub max_bytes: u64,
    /// The most untracked files with new content in one checkpoint.
    pub max_files: u64,
    /// Names of directories that are not entered.
    pub skip_directories: HashSet<BString>,
    /// Paths that are not captured.
    pub exclude: globset::GlobSet,
    /// Patterns of ignored paths that are captured all the same.
    pub include: Vec<String>,
    /// Patterns of untracked paths that are as if ignored.
    pub left_alone: Vec<String>,
}
