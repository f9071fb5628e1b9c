//! A checkpoint as a tree, and back.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::model::bytes::exact;
use crate::model::checkpoint::{Checkpoint, Head, IndexEntry, IndexState, Modes, Skipped, StashEntry, UsualModes};
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use gix::objs::Tree;
use gix::objs::tree::{Entry, EntryKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The part of a checkpoint that is kept as `checkpoint.json`.
#[derive(Serialize, Deserialize)]
struct Header {
    v: u32,
    head: Head,
    #[serde(default)]
    elsewhere: BTreeSet<String>,
    usual_modes: UsualModes,
}

#[derive(Serialize, Deserialize)]
struct Special {
    #[serde(with = "exact")]
    path: BString,
    entries: Vec<IndexEntry>,
}

impl Checkpoints<'_> {
    /// Writes a checkpoint as a tree.
    pub fn write_checkpoint(&self, checkpoint: &Checkpoint) -> Result<ObjectId> {
        let about = Header {
            v: 1,
            head: checkpoint.head.clone(),
            elsewhere: checkpoint.elsewhere.clone(),
            usual_modes: checkpoint.modes.usual,
        };
        let branches: String = (checkpoint.branches.iter()).map(|(name, id)| format!("{id} {name}\n")).collect();
        let modes: BTreeMap<String, String> = (checkpoint.modes.unusual.iter())
            .map(|(path, mode)| (exact::encode(path), format!("{mode:04o}")))
            .collect();
        let directories: Vec<String> = checkpoint.directories.iter().map(|path| exact::encode(path)).collect();
        let special: Vec<Special> = (checkpoint.index.special.iter())
            .map(|(path, entries)| Special { path: path.clone(), entries: entries.clone() })
            .collect();
        let sparse: Vec<String> = checkpoint.index.sparse.iter().map(|path| exact::encode(path)).collect();
        let blob = |name: &str, bytes: Vec<u8>| -> Result<Entry> {
            let id = self.repo.gix.write_blob(bytes)?.detach();
            Ok(tree_entry(name, EntryKind::Blob, id))
        };
        let mut entries = vec![
            blob("checkpoint.json", serde_json::to_vec(&about)?)?,
            blob("branches", branches.into_bytes())?,
            blob("stash", json_lines(&checkpoint.stash)?)?,
            blob("special", json_lines(&special)?)?,
            blob("modes", serde_json::to_vec(&modes)?)?,
            blob("directories", serde_json::to_vec(&directories)?)?,
            blob("skipped", json_lines(&checkpoint.skipped)?)?,
            tree_entry("rules", EntryKind::Blob, checkpoint.rules),
            tree_entry("index", EntryKind::Tree, checkpoint.index.tree),
            tree_entry("worktree", EntryKind::Tree, checkpoint.worktree),
        ];
        if !sparse.is_empty() {
            entries.push(blob("sparse", serde_json::to_vec(&sparse)?)?);
        }
        entries.sort();
        Ok(self.repo.gix.write_object(&Tree { entries })?.detach())
    }

    pub fn read_checkpoint(&self, tree: ObjectId) -> Result<Checkpoint> {
        let about: Header =
            Objects::new(self.repo).json_at(tree, "checkpoint.json")?.context("checkpoint.json is missing")?;
        let blob =
            |name: &str| Objects::new(self.repo).blob_at(tree, name)?.with_context(|| format!("{name} is missing"));
        let id = |name: &str| -> Result<ObjectId> {
            let entry = Objects::new(self.repo).tree_entry(tree, name.into())?;
            Ok(entry.with_context(|| format!("{name} is missing"))?.1)
        };
        let modes: BTreeMap<String, String> = serde_json::from_slice(&blob("modes")?)?;
        let directories: Vec<String> = serde_json::from_slice(&blob("directories")?)?;
        let special: Vec<Special> = lines(&blob("special")?)?;
        // Only a sparse checkout has it, and earlier records have none.
        let sparse: Vec<String> = Objects::new(self.repo).json_at(tree, "sparse")?.unwrap_or_default();
        let path = |text: &str| exact::decode(text).context("a path is damaged");
        Ok(Checkpoint {
            head: about.head,
            elsewhere: about.elsewhere,
            branches: parse_branches(&blob("branches")?)?,
            stash: lines::<StashEntry>(&blob("stash")?)?,
            index: IndexState {
                tree: id("index")?,
                sparse: sparse.iter().map(|name| path(name)).collect::<Result<_>>()?,
                special: special.into_iter().map(|special| (special.path, special.entries)).collect(),
            },
            worktree: id("worktree")?,
            modes: Modes {
                usual: about.usual_modes,
                unusual: (modes.iter())
                    .map(|(name, mode)| Ok((path(name)?, u32::from_str_radix(mode, 8)?)))
                    .collect::<Result<_>>()?,
            },
            directories: directories.iter().map(|name| path(name)).collect::<Result<BTreeSet<_>>>()?,
            skipped: lines::<Skipped>(&blob("skipped")?)?,
            rules: id("rules")?,
        })
    }
}

pub fn tree_entry(name: &str, kind: EntryKind, oid: ObjectId) -> Entry {
    Entry { mode: kind.into(), filename: name.into(), oid }
}

pub fn json_lines<T: Serialize>(values: &[T]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for value in values {
        serde_json::to_writer(&mut text, value)?;
        text.push(b'\n');
    }
    Ok(text)
}

pub fn lines<T: DeserializeOwned>(text: &[u8]) -> Result<Vec<T>> {
    text.lines().map(|line| Ok(serde_json::from_slice(line)?)).collect()
}

fn parse_branches(text: &[u8]) -> Result<BTreeMap<String, ObjectId>> {
    text.lines()
        .map(|line| {
            let (id, name) = line.split_once_str(" ").context("a branch is damaged")?;
            Ok((name.to_str()?.to_owned(), ObjectId::from_hex(id)?))
        })
        .collect()
}
