//! The commits that git needs to go on with what it is in the middle of: its files name them, and nothing else may hold them.

use crate::git::objects::Objects;
use crate::model::operation::Operation;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use std::collections::{BTreeSet, HashSet};

/// So many ids are looked at: a rebase of more commits has a branch that holds them.
const MOST: usize = 4096;

impl Objects<'_> {
    /// The commits that an operation names, without those that others of them hold.
    pub fn commits_named(&self, operation: &Operation) -> Result<BTreeSet<ObjectId>> {
        let digits = self.repo.hash_kind().len_in_hex();
        let mut named = BTreeSet::new();
        for blob in operation.files.values() {
            // Where a power cut took it, the operation does not come back anyway.
            let Ok(content) = self.blob(*blob) else { continue };
            let words = content.split(|byte| !byte.is_ascii_alphanumeric()).filter(|word| word.len() == digits);
            named.extend(words.filter_map(|word| ObjectId::from_hex(word).ok()).take(MOST));
        }
        named.retain(|id| self.has_commit(*id));
        if named.len() < 2 {
            return Ok(named);
        }
        let mut below = HashSet::new();
        for commit in &named {
            below.extend(self.parents(*commit)?);
        }
        let (below, all): (Vec<_>, Vec<_>) = (below.into_iter().collect(), named.iter().copied().collect());
        let held = self.reachable_from(&below, &all)?;
        named.retain(|id| !held.contains(id));
        Ok(named)
    }

    /// The commits that are being merged.
    pub fn merged_by(&self, operation: &Operation) -> Result<Vec<ObjectId>> {
        let Some(blob) = operation.files.get(BStr::new("MERGE_HEAD")) else { return Ok(Vec::new()) };
        Ok(self.blob(*blob)?.lines().filter_map(|line| ObjectId::from_hex(line).ok()).collect())
    }
}
