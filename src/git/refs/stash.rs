//! The stash list, entry by entry.

use crate::git::refs::Refs;
use crate::model::bytes::lossless;
use crate::model::checkpoint;
use crate::model::checkpoint::StashEntry;
use anyhow::{Result, bail};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

impl Refs<'_> {
    /// The stash list, newest first.
    pub fn stash(&self) -> Result<Vec<StashEntry>> {
        let Some(reference) = self.repo.gix.try_find_reference("refs/stash")? else {
            return Ok(Vec::new());
        };
        let mut log = reference.log_iter();
        let Some(lines) = log.rev()? else {
            return Ok(Vec::new());
        };
        lines
            .map(|line| {
                let line = line?;
                Ok(StashEntry {
                    id: line.new_oid,
                    name: lossless::encode(&line.signature.name),
                    email: lossless::encode(&line.signature.email),
                    date: line.signature.time.to_string(),
                    message: lossless::encode(&line.message),
                })
            })
            .collect()
    }

    /// Makes the stash list what a change leads to, entry by entry, keeping entries that are there already.
    pub fn set_stash(&self, change: &checkpoint::Change<Vec<StashEntry>>) -> Result<()> {
        let (now, to) = (self.stash()?, &change.to);
        if now.is_empty()
            && let Some(id) = self.ref_id("refs/stash")?
            && change.from.iter().chain(to).any(|entry| entry.id == id)
        {
            // Its reflog was wiped, or git was killed when it had dropped the last entry from it:
            // git would log no move to where the ref is already.
            self.repo.git(["update-ref", "-d", "refs/stash"]).run(b"")?;
        }
        let shared = now.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
        for _ in shared..now.len() {
            self.repo.git(["stash", "drop", "-q", "stash@{0}"]).run(b"")?;
        }
        let exactly = |text: &str| OsString::from_vec(lossless::decode(text));
        for entry in to[..to.len() - shared].iter().rev() {
            let store = ["stash", "store", "-q", "-m"].map(OsString::from);
            self.repo
                .git(store.into_iter().chain([exactly(&entry.message), entry.id.to_string().into()]))
                .env("GIT_COMMITTER_NAME", exactly(&entry.name))
                .env("GIT_COMMITTER_EMAIL", exactly(&entry.email))
                .env("GIT_COMMITTER_DATE", format!("@{}", entry.date))
                .run(b"")?;
        }
        // git calls it a success when it has dropped the last entry and could not delete the ref.
        let left = self.ref_id("refs/stash")?;
        if to.is_empty() && left.is_some_and(|id| change.from.iter().any(|entry| entry.id == id)) {
            bail!("git stash drop: refs/stash is still there");
        }
        Ok(())
    }
}
