//! The worktrees of a repository.

use crate::git::repo::Repo;
use crate::model::bytes::lossless;
use anyhow::Result;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

impl Repo {
    /// The tops of all worktrees that are there, the main one first. A bare repository has no main one.
    pub fn worktrees(&self) -> Result<Vec<PathBuf>> {
        if self.is_shadow() || !self.common_dir.join("worktrees").is_dir() {
            return Ok(vec![self.top().to_owned()]);
        }
        let listed = self.git(["worktree", "list", "--porcelain", "-z"]).run(b"")?;
        Ok(parse(&listed).into_iter().filter(|top| top.is_dir()).collect())
    }
}

impl Repo {
    /// The top of the worktree that notes and refs call so, where it is there.
    pub fn top_of(&self, worktree: &str) -> Result<Option<PathBuf>> {
        if worktree == "main" {
            return Ok(self.worktrees()?.into_iter().find(|top| top.join(".git").is_dir()));
        }
        let name = lossless::decode(worktree);
        let link = self.common_dir.join("worktrees").join(OsStr::from_bytes(&name)).join("gitdir");
        // It is for a hint alone.
        let Ok(text) = std::fs::read(link) else { return Ok(None) };
        let file = Path::new(OsStr::from_bytes(text.trim_ascii_end()));
        Ok(file.parent().filter(|top| top.is_dir()).map(Path::to_path_buf))
    }
}

/// What `git worktree list --porcelain -z` says.
fn parse(listed: &[u8]) -> Vec<PathBuf> {
    let mut tops = Vec::new();
    for line in listed.split(|byte| *byte == 0) {
        if let Some(top) = line.strip_prefix(b"worktree ") {
            tops.push(PathBuf::from(OsStr::from_bytes(top)));
        } else if line == b"bare" {
            tops.pop();
        }
    }
    tops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worktree_is_listed_but_a_bare_one() {
        let listed = b"worktree /r/main\0HEAD 1\0branch refs/heads/main\0\0worktree /r/a\nb\0HEAD 1\0detached\0\0";
        assert_eq!(parse(listed), [PathBuf::from("/r/main"), PathBuf::from("/r/a\nb")]);
        assert_eq!(parse(b"worktree /r/x.git\0bare\0\0worktree /r/w\0HEAD 1\0\0"), [PathBuf::from("/r/w")]);
        assert_eq!(parse(b""), Vec::<PathBuf>::new());
    }
}
