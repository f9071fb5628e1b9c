//! Reading refs.

use crate::error::{Code, Refusal};
use crate::git::refs::{Refs, full_name, transaction};
use crate::model::bytes::lossless;
use crate::model::checkpoint;
use crate::model::checkpoint::Head;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Every ref of oxundo's.
pub const REFS: [&str; 2] = ["refs/oxundo", "refs/notes/oxundo"];

/// How often listing the branches may fail while others delete some.
const TRIES: u32 = 10;

/// How long it waits after each failure.
const PAUSE: Duration = Duration::from_millis(10);

impl Refs<'_> {
    /// The full name of a branch that is to be made.
    pub fn new_branch_name(&self, short: &str) -> Result<String> {
        let full = format!("refs/heads/{short}");
        let checked = self.repo.git(["check-ref-format", "--branch", short]).ask()?;
        if checked.0 != 0 || checked.1.trim() != short.as_bytes() {
            return Err(Refusal::new(Code::Usage, format!("'{short}' cannot be a branch's name"))
                .hint("'git help check-ref-format' says what can")
                .into());
        }
        let refused = |why: String| {
            Err(Refusal::new(Code::Branch, why).hint("give another name, or run 'git branch' to see them").into())
        };
        if self.ref_id(&full)?.is_some() {
            return refused(format!("there is a branch '{short}' already"));
        }
        let below = |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
        if let Some(other) = self.branches()?.keys().find(|other| below(&full, other) || below(other, &full)) {
            let other = checkpoint::short_branch(other);
            return refused(format!("there is a branch '{other}', beside which git cannot keep one '{short}'"));
        }
        Ok(full)
    }

    /// Where HEAD is now.
    pub fn head(&self) -> Result<Head> {
        let head = self.repo.gix.head().context("read HEAD")?;
        let branch = head.referent_name().map(|name| lossless::encode(name.as_bstr()));
        let commit = match head.kind {
            gix::head::Kind::Unborn(_) => None,
            _ => head.id().map(gix::Id::detach),
        };
        Ok(Head { branch, commit })
    }

    /// Every branch and where it points.
    pub fn branches(&self) -> Result<BTreeMap<String, ObjectId>> {
        let packed = self.repo.gix.refs.packed_refs_path();
        let stamp =
            || packed.metadata().ok().map(|about| (about.ino(), about.mtime(), about.mtime_nsec(), about.len()));
        let mut tries = 1..TRIES;
        loop {
            let before = stamp();
            let _ = self.repo.gix.refs.force_refresh_packed_buffer();
            match self.listed_branches() {
                Ok(branches) if stamp() == before => return Ok(branches),
                // gix reads the packed refs first: it misses a ref that is packed and pruned while it lists. git reads
                // them last.
                Ok(_) => return self.branches_by_git(),
                Err(error) if tries.next().is_none() => return Err(error),
                // gix fails at a file that was there when it read the directory. Whoever deletes branches is done with
                // some in a moment; a file that is damaged fails each time, and nobody is to wait long for that.
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    fn listed_branches(&self) -> Result<BTreeMap<String, ObjectId>> {
        let mut branches = BTreeMap::new();
        for reference in self.repo.gix.references()?.local_branches()? {
            let reference = reference.map_err(|error| anyhow::anyhow!("read the branches: {error}"))?;
            if let Some(id) = reference.target().try_id() {
                branches.insert(lossless::encode(reference.name().as_bstr()), id.to_owned());
            }
        }
        Ok(branches)
    }

    fn branches_by_git(&self) -> Result<BTreeMap<String, ObjectId>> {
        let args = ["for-each-ref", "--format=%(objectname) %(symref) %(refname)", "refs/heads"];
        let printed = self.repo.git(args).run(b"").context("read the branches")?;
        let mut branches = BTreeMap::new();
        for line in printed.lines() {
            let words: Vec<_> = line.splitn(3, |byte| *byte == b' ').collect();
            // One that stands for another has no value of its own.
            if let [id, b"", name] = words[..] {
                branches.insert(lossless::encode(name), ObjectId::from_hex(id)?);
            }
        }
        Ok(branches)
    }

    /// Where a ref points; `None` when there is no such ref.
    pub fn ref_id(&self, name: &str) -> Result<Option<ObjectId>> {
        let target = transaction::value(&self.repo.gix.refs, full_name(name)?.as_ref());
        Ok(target.with_context(|| format!("read {name}"))?.and_then(|target| target.try_id().map(ToOwned::to_owned)))
    }

    /// The branches that other worktrees have checked out, with these worktrees' directories.
    pub fn branches_elsewhere(&self) -> Result<BTreeMap<String, String>> {
        let mut elsewhere = BTreeMap::new();
        if !self.repo.common_dir.join("worktrees").exists() {
            return Ok(elsewhere);
        }
        for worktree in self.repo.gix.worktrees_including_main()? {
            let Ok(other) = worktree else { continue };
            if is_same_place(other.git_dir(), &self.repo.git_dir) {
                continue;
            }
            let Ok(Some(name)) = other.head_name() else { continue };
            let place = other.workdir().unwrap_or(other.git_dir()).display().to_string();
            elsewhere.insert(lossless::encode(name.as_bstr()), place);
        }
        Ok(elsewhere)
    }

    /// Every ref of oxundo's, of all worktrees.
    pub fn own_refs(&self) -> Result<Vec<String>> {
        let args = ["for-each-ref", "--format=%(refname)"].into_iter().chain(REFS);
        let printed = self.repo.git(args).run(b"")?;
        Ok(printed.lines().map(|line| line.to_str_lossy().into_owned()).collect())
    }
}

fn is_same_place(a: &Path, b: &Path) -> bool {
    std::fs::canonicalize(a).is_ok_and(|a| a == b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;

    #[test]
    fn git_lists_the_branches_as_gix_does() {
        let f = Fixture::new();
        let refs = Refs::new(&f.repo);
        assert_eq!(refs.branches_by_git().expect("ask git"), BTreeMap::new());
        let [first, second] = ["1", "2"].map(|name| f.commit(name, name));
        f.git(&["branch", "a/packed", &first.to_string()]);
        f.git(&["pack-refs", "--all"]);
        f.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/main"]);
        f.git(&["branch", "b", &second.to_string()]);
        let branches = refs.branches().expect("list them");
        assert_eq!(branches.len(), 3, "one that stands for another is none: {branches:?}");
        assert_eq!(refs.branches_by_git().expect("ask git"), branches);
    }
}
