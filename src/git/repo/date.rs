//! Dates as git reads them: git is asked.

use crate::git::repo::Repo;
use anyhow::{Context, Result};
use gix::bstr::ByteSlice;

impl Repo {
    /// The time that these words mean to git, such as `2026-01-02` or `two weeks ago`, in seconds since 1970.
    pub fn time_meant(&self, words: &str) -> Result<i64> {
        let printed = self.git(["rev-parse", &format!("--since={words}")]).run(b"")?;
        let time = printed.trim().strip_prefix(b"--max-age=").and_then(|time| time.to_str().ok()?.parse().ok());
        time.with_context(|| format!("git says no time for '{words}'"))
    }
}
