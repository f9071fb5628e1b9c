//! A checkpoint as a tree, and back.

use crate::git::checkpoint::Checkpoints;
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::model::bytes::exact;
use crate::model::checkpoint::{
    Checkpoint, Head, IndexEntry, IndexState, Modes, Skipped, StashEntry, Uncaptured, UsualModes,
};
use crate::model::operation::Operation;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::tree::{Entry, EntryKind};
use gix::objs::{Kind, Tree};
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
    /// Only where there are any, and earlier records have none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    symbolic: BTreeMap<String, String>,
    usual_modes: UsualModes,
    /// Only where git was in the middle of something that is not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unread_operation: Option<String>,
    /// Only where git was in the middle of something that may run commands: that this git directory says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation_seal: Option<String>,
}

/// Where the files are by which git says what it is in the middle of.
const OPERATION: &str = "operation";

/// What is known of an operation that was not recorded here: that it is not as what is there.
const FOREIGN: &str = "recorded in another git directory";

#[derive(Serialize, Deserialize)]
struct Special {
    #[serde(with = "exact")]
    path: BString,
    entries: Vec<IndexEntry>,
}

impl Checkpoints<'_> {
    /// Writes a checkpoint as a tree.
    pub fn write_checkpoint(&self, checkpoint: &Checkpoint) -> Result<ObjectId> {
        let operation = self.operation_tree(&checkpoint.operation)?;
        let is_sealed = checkpoint.operation.runs_commands();
        let about = Header {
            v: 1,
            head: checkpoint.head.clone(),
            elsewhere: checkpoint.elsewhere.clone(),
            symbolic: checkpoint.symbolic.clone(),
            usual_modes: checkpoint.modes.usual,
            unread_operation: checkpoint.operation.unread.clone(),
            operation_seal: operation.filter(|_| is_sealed).map(|tree| self.repo.seal(tree)).transpose()?,
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
        if !checkpoint.uncaptured.is_empty() {
            let uncaptured: BTreeMap<String, &Uncaptured> =
                checkpoint.uncaptured.iter().map(|(path, known)| (exact::encode(path), known)).collect();
            entries.push(blob("uncaptured", serde_json::to_vec(&uncaptured)?)?);
        }
        entries.extend(operation.map(|tree| tree_entry(OPERATION, EntryKind::Tree, tree)));
        entries.extend(self.auto_merge(&checkpoint.operation)?);
        entries.extend(self.unmerged(&checkpoint.index)?);
        if !sparse.is_empty() {
            entries.push(blob("sparse", serde_json::to_vec(&sparse)?)?);
        }
        entries.sort();
        Ok(self.repo.gix.write_object(&Tree { entries })?.detach())
    }

    /// What git was in the middle of, as a tree of its files.
    fn operation_tree(&self, operation: &Operation) -> Result<Option<ObjectId>> {
        if operation.files.is_empty() {
            return Ok(None);
        }
        let objects = Objects::new(self.repo);
        let files: Vec<_> =
            operation.files.iter().map(|(path, id)| (path.clone(), Some((EntryKind::Blob, *id)))).collect();
        objects.edited_tree(objects.write_empty_tree()?, &files).map(Some)
    }

    /// The tree that it merged into, which git keeps by its name alone.
    fn auto_merge(&self, operation: &Operation) -> Result<Option<Entry>> {
        let Some(merged) = operation.files.get(BStr::new("AUTO_MERGE")) else { return Ok(None) };
        let merged = ObjectId::from_hex(Objects::new(self.repo).blob(*merged)?.trim()).ok();
        let is_tree = |id: &ObjectId| self.repo.gix.find_header(*id).is_ok_and(|header| header.kind() == Kind::Tree);
        Ok(merged.filter(is_tree).map(|merged| tree_entry("auto-merge", EntryKind::Tree, merged)))
    }

    /// What is staged in a way that no tree has, as the sides of a conflict, by its ids: so it is kept as all else is.
    fn unmerged(&self, index: &IndexState) -> Result<Option<Entry>> {
        let objects = Objects::new(self.repo);
        let staged = index.special.values().flatten().filter(|entry| entry.stage > 0 && !entry.is_gitlink());
        let ids: BTreeSet<ObjectId> = staged.map(|entry| entry.id).filter(|id| objects.has_object(*id)).collect();
        if ids.is_empty() {
            return Ok(None);
        }
        let blobs: Vec<_> = ids.into_iter().map(|id| (id.to_string().into(), Some((EntryKind::Blob, id)))).collect();
        let tree = objects.edited_tree(objects.write_empty_tree()?, &blobs)?;
        Ok(Some(tree_entry("unmerged", EntryKind::Tree, tree)))
    }

    fn read_operation(&self, tree: ObjectId, unread: Option<String>, seal: Option<String>) -> Result<Operation> {
        let mut operation = Operation { unread, ..Operation::default() };
        for (path, entry) in Objects::new(self.repo).entries_below(tree, OPERATION.into())? {
            let (path, id) = (path[OPERATION.len() + 1..].into(), entry.context("a file is missing")?.1);
            operation.files.insert(path, id);
        }
        if operation.runs_commands() && !self.is_own_operation(tree, seal)? {
            // Somebody else's: git would run what it says.
            return Ok(Operation { files: BTreeMap::new(), unread: Some(FOREIGN.to_owned()) });
        }
        Ok(operation)
    }

    fn is_own_operation(&self, tree: ObjectId, seal: Option<String>) -> Result<bool> {
        let entry = Objects::new(self.repo).tree_entry(tree, OPERATION.into())?;
        let (Some((_, operation)), Some(seal)) = (entry, seal) else { return Ok(false) };
        self.repo.is_sealed(operation, seal.as_bytes())
    }

    /// Where HEAD was by the checkpoint that a tree holds; nothing else of it is read.
    pub fn read_head(&self, tree: ObjectId) -> Result<Head> {
        let about: Option<Header> = Objects::new(self.repo).json_at(tree, "checkpoint.json")?;
        Ok(about.context("checkpoint.json is missing")?.head)
    }

    /// The checkpoint that a tree holds.
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
            symbolic: about.symbolic,
            branches: parse_branches(&blob("branches")?)?,
            stash: lines::<StashEntry>(&blob("stash")?)?,
            operation: self.read_operation(tree, about.unread_operation, about.operation_seal)?,
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
            uncaptured: read_uncaptured(self.repo, tree)?,
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

/// Which files and directories the state in this tree says that they are which it does not have: nothing may be there, and earlier
/// records do not say.
pub fn read_uncaptured(repo: &Repo, tree: ObjectId) -> Result<BTreeMap<BString, Uncaptured>> {
    let all: BTreeMap<String, Uncaptured> = Objects::new(repo).json_at(tree, "uncaptured")?.unwrap_or_default();
    all.into_iter().map(|(name, known)| Ok((exact::decode(&name).context("a path is damaged")?, known))).collect()
}

fn parse_branches(text: &[u8]) -> Result<BTreeMap<String, ObjectId>> {
    text.lines()
        .map(|line| {
            let (id, name) = line.split_once_str(" ").context("a branch is damaged")?;
            Ok((name.to_str()?.to_owned(), ObjectId::from_hex(id)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use crate::model::checkpoint::Reason;
    use proptest::prelude::*;

    /// All that a checkpoint says, for one to be held against another.
    fn said(checkpoint: &Checkpoint) -> String {
        format!("{checkpoint:?}")
    }

    fn any_path() -> impl Strategy<Value = BString> {
        prop::collection::vec(prop_oneof![Just(b'/'), Just(b'\n'), Just(b'"'), 1..=255_u8], 1..12)
            .prop_map(BString::from)
    }

    fn any_id() -> impl Strategy<Value = ObjectId> {
        any::<u8>().prop_map(|byte| ObjectId::from_bytes_or_panic(&[byte; 20]))
    }

    fn any_entry() -> impl Strategy<Value = IndexEntry> {
        let mode = prop::sample::select(vec![0o100_644, 0o100_755, 0o120_000, 0o160_000]);
        (mode, any_id(), 0..4_u8, any::<[bool; 3]>()).prop_map(
            |(mode, id, stage, [intent_to_add, skip_worktree, assume_unchanged])| IndexEntry {
                mode,
                id,
                stage,
                intent_to_add,
                skip_worktree,
                assume_unchanged,
            },
        )
    }

    fn any_reason() -> impl Strategy<Value = Reason> {
        use Reason as R;
        prop::sample::select(vec![
            R::Large,
            R::Many,
            R::SkipDir,
            R::Excluded,
            R::Repository,
            R::Special,
            R::Unreadable,
            R::Name,
        ])
    }

    prop_compose! {
        fn any_checkpoint(tree: ObjectId, blob: ObjectId)(
            branch in prop::option::of("refs/heads/[a-z\u{e9}]{1,5}"),
            commit in prop::option::of(any_id()),
            through in prop::option::of("refs/heads/[a-z\u{e9}]{1,5}"),
            branches in prop::collection::btree_map("refs/heads/[a-z/\u{0}\u{e9}]{1,8}", any_id(), 0..4),
            symbolic in prop::collection::btree_map("refs/heads/[a-z]{1,3}", "refs/[a-z\u{0}]{1,5}", 0..3),
            elsewhere in prop::collection::btree_set("refs/heads/[a-z]{1,3}", 0..3),
            stash in prop::collection::vec((any_id(), any::<[String; 4]>()), 0..3),
            operation in prop::sample::subsequence(vec!["MERGE_HEAD", "MERGE_MSG", "AUTO_MERGE", "rebase-merge/done", "refs/bisect/bad"], 0..5),
            unread in prop::option::of("[a-f0-9]{4}"),
            (sparse, directories) in (prop::collection::btree_set(any_path(), 0..3), prop::collection::btree_set(any_path(), 0..4)),
            special in prop::collection::btree_map(any_path(), prop::collection::vec(any_entry(), 1..4), 0..4),
            unusual in prop::collection::btree_map(any_path(), 0..0o10000_u32, 0..5),
            usual in (0..0o10000_u32, 0..0o10000_u32, 0..0o10000_u32),
            uncaptured in prop::collection::btree_map(any_path(), (any::<String>(), 0..0o10000_u32, any::<Option<String>>()), 0..3),
            skipped in prop::collection::vec((any_path(), any_reason(), any::<u64>(), prop::option::of(any::<String>())), 0..4),
        ) -> Checkpoint {
            let entry = |(id, [name, email, date, message]): (ObjectId, [String; 4])| StashEntry { id, name, email, date, message };
            Checkpoint {
                head: Head { branch, commit, through },
                branches,
                elsewhere,
                symbolic,
                stash: stash.into_iter().map(entry).collect(),
                operation: Operation { files: operation.into_iter().map(|name| (name.into(), blob)).collect(), unread },
                index: IndexState { tree, sparse, special },
                worktree: tree,
                modes: Modes { usual: UsualModes { file: usual.0, executable: usual.1, directory: usual.2 }, unusual },
                directories,
                skipped: skipped.into_iter().map(|(path, reason, size, state)| Skipped { path, reason, size, state }).collect(),
                uncaptured: uncaptured.into_iter().map(|(path, (file, mode, state))| (path, Uncaptured { file, mode, state })).collect(),
                rules: blob,
            }
        }
    }

    #[test]
    fn a_checkpoint_that_was_written_is_read_as_it_was() {
        let f = Fixture::new();
        let (checkpoints, blob) = (Checkpoints::new(&f.repo), f.blob("rules"));
        f.commit("a", "one");
        let tree = f.id(&["rev-parse", "HEAD^{tree}"]);
        let config = ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
        proptest!(config, |(checkpoint in any_checkpoint(tree, blob))| {
            let written = checkpoints.write_checkpoint(&checkpoint).expect("write a checkpoint");
            let read = checkpoints.read_checkpoint(written).expect("read a checkpoint");
            prop_assert_eq!(said(&read), said(&checkpoint), "not a byte of it is lost");
            let again = checkpoints.write_checkpoint(&read).expect("write a checkpoint");
            prop_assert_eq!(again, written, "the same state is the same tree");
        });
        assert!(f.git_agrees(&["fsck", "--strict", "--no-dangling"]), "git finds its trees sound");
    }

    #[test]
    fn git_reads_the_tree_of_a_checkpoint_and_sees_all_that_it_keeps_alive() {
        let f = Fixture::new();
        f.commit("d/a", "one");
        let tree = f.id(&["rev-parse", "HEAD^{tree}"]);
        let whole = f.checkpoint(tree);
        let written = Checkpoints::new(&f.repo).write_checkpoint(&whole).expect("write a checkpoint").to_string();
        let names = [
            "branches",
            "checkpoint.json",
            "directories",
            "index",
            "modes",
            "rules",
            "skipped",
            "special",
            "stash",
            "worktree",
        ];
        assert_eq!(f.lines(&["ls-tree", "--name-only", &written]), names);
        for side in ["index", "worktree"] {
            assert_eq!(f.git(&["show", &format!("{written}:{side}/d/a")]), b"one", "{side}");
        }
    }

    #[test]
    fn a_record_that_lacks_something_or_makes_no_sense_is_an_error() {
        let f = Fixture::new();
        let (checkpoints, objects) = (Checkpoints::new(&f.repo), Objects::new(&f.repo));
        let mut plain = f.checkpoint(objects.write_empty_tree().expect("write a tree"));
        plain.branches.insert("refs/heads/main".into(), f.blob(""));
        let whole = checkpoints.write_checkpoint(&plain).expect("write a checkpoint");
        let names = f.lines(&["ls-tree", "--name-only", &whole.to_string()]);
        let odd = f.blob(b"\xff{ 12\0");
        for name in &names {
            let without = objects.edited_tree(whole, &[(name.as_str().into(), None)]).expect("edit a tree");
            let error = checkpoints.read_checkpoint(without).expect_err("something is missing");
            assert!(format!("{error:#}").contains(name.as_str()), "it says what: {error:#}");
            if ["index", "worktree", "rules"].contains(&name.as_str()) {
                continue;
            }
            let damaged = [(name.as_str().into(), Some((EntryKind::Blob, odd)))];
            let damaged = objects.edited_tree(whole, &damaged).expect("edit a tree");
            checkpoints.read_checkpoint(damaged).expect_err("it makes no sense");
        }
        for (name, text) in [
            ("modes", r#"{"a":"0o644"}"#),
            ("modes", r#"{"\u0000zz":"0644"}"#),
            ("directories", r#"["\u0000f"]"#),
            ("branches", "1234 a\n"),
        ] {
            let damaged = objects
                .edited_tree(whole, &[(name.into(), Some((EntryKind::Blob, f.blob(text))))])
                .expect("edit a tree");
            checkpoints.read_checkpoint(damaged).expect_err("neither does this");
        }
    }
}
