//! Where git keeps tables of refs (`extensions.refStorage`), and what it calls them.

use crate::git::refs::Refs;
use crate::git::repo::told::LIST;
use crate::model::bytes::lossless;
use anyhow::{Context, Result, ensure};
use gix::bstr::ByteSlice;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The git directory in the scratch in which git makes new ones.
pub const COPY: &str = "reftable";

/// The names in a list.
pub fn table_names(list: &Path) -> Result<Vec<String>> {
    match std::fs::read_to_string(list) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        read => {
            let text = read.with_context(|| format!("read '{}'", list.display()))?;
            let names: Vec<String> = text.lines().map(str::to_owned).collect();
            let is_name = |name: &String| !name.is_empty() && !name.contains(['/', '\0']);
            ensure!(names.iter().all(is_name), "'{}' names no tables", list.display());
            Ok(names)
        }
    }
}

impl Refs<'_> {
    /// The names of the lists of tables: that of all worktrees, and a linked worktree's own. None where refs are in files.
    pub fn table_lists(&self) -> Vec<String> {
        if !self.repo.has_tables() {
            return Vec::new();
        }
        let own = self.repo.git_dir.strip_prefix(&self.repo.common_dir).ok().filter(|own| !own.as_os_str().is_empty());
        let own = own.map(|own| format!("{}/{LIST}", lossless::encode(own.as_os_str().as_bytes().as_bstr())));
        [LIST.to_owned()].into_iter().chain(own).collect()
    }
}
