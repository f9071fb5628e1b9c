//! Trees: looking things up in them, editing and comparing them.

use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::repo::find::again;
use crate::git::repo::ways::Named;
use crate::model::checkpoint::{Change, Head, IndexEntry, Kind};
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::diff::tree::recorder::Change as TreeDiff;
use gix::diff::tree::{Recorder, State, Visit};
use gix::objs::tree::{EntryKind, EntryMode};
use gix::objs::{Tree, TreeRefIter};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

pub type TreeSlot = Option<(EntryMode, ObjectId)>;

/// A path, and the entry that a tree is to have there.
pub type TreeChange = (BString, Option<(EntryKind, ObjectId)>);

/// How many directories may be in each other. git reads 2048 levels; what has many more was made to stop whoever reads it,
/// since paths become longer with each.
const LEVELS: usize = 8192;

/// A record of differences that ends where there are too many levels.
struct Levels {
    recorder: Recorder,
    too_many: bool,
}

impl Visit for Levels {
    fn pop_front_tracked_path_and_set_current(&mut self) {
        self.recorder.pop_front_tracked_path_and_set_current();
    }

    fn push_back_tracked_path_component(&mut self, component: &BStr) {
        self.recorder.push_back_tracked_path_component(component);
    }

    fn push_path_component(&mut self, component: &BStr) {
        self.recorder.push_path_component(component);
    }

    fn pop_path_component(&mut self) {
        self.recorder.pop_path_component();
    }

    fn visit(&mut self, change: gix::diff::tree::visit::Change) -> std::ops::ControlFlow<()> {
        let go_on = self.recorder.visit(change);
        let path = self.recorder.records.last().map(|record| match record {
            TreeDiff::Addition { path, .. } | TreeDiff::Deletion { path, .. } | TreeDiff::Modification { path, .. } => {
                path
            }
        });
        // Each level takes two bytes.
        self.too_many |= path.is_some_and(|path| path.len() > 2 * LEVELS && path.find_iter(b"/").count() > LEVELS);
        if self.too_many { std::ops::ControlFlow::Break(()) } else { go_on }
    }
}

impl Objects<'_> {
    /// The tree of HEAD's commit; the empty tree on an unborn branch.
    pub fn head_tree(&self, head: &Head) -> Result<ObjectId> {
        match head.commit {
            Some(commit) => self.commit_tree(commit),
            None => self.write_empty_tree(),
        }
    }

    /// The tree of a commit, as git sees it: of what `git replace` has in the commit's place.
    pub fn commit_tree(&self, commit: ObjectId) -> Result<ObjectId> {
        let mut replaced = self.repo.gix.objects.store_ref().replacements();
        let commit = replaced.find_map(|(id, by)| (id == commit).then_some(by)).unwrap_or(commit);
        let commit = self.repo.find_commit(commit).with_context(|| format!("read commit {commit}"))?;
        Ok(commit.tree_id()?.detach())
    }

    /// The file or link at a path of a tree.
    pub fn tree_file(&self, tree: ObjectId, path: &BStr) -> Result<Option<(Kind, ObjectId)>> {
        let entry = self.tree_entry(tree, path)?;
        Ok(entry.and_then(|(kind, id)| Some((file_kind(kind)?, id))))
    }

    /// Whether a tree has a file, link or submodule at a path.
    pub fn tree_has_entry(&self, tree: ObjectId, path: &BStr) -> Result<bool> {
        Ok(self.tree_entry(tree, path)?.is_some_and(|(kind, _)| kind != EntryKind::Tree))
    }

    /// Whatever is at a path of a tree.
    pub fn tree_entry(&self, tree: ObjectId, path: &BStr) -> Result<Option<(EntryKind, ObjectId)>> {
        let known = self.repo.ways.borrow_mut().take(tree);
        let shared = known.path.iter().zip(path.iter()).take_while(|(one, other)| one == other).count();
        let is_on_the_way = |end: usize| end <= shared && path.get(end) == Some(&b'/');
        let usable = known.trees.partition_point(|(end, _)| is_on_the_way(*end));
        let (mut start, mut at) = (known.trees[..usable].last()).map_or((0, tree), |(end, tree)| (end + 1, *tree));
        let mut further = Vec::new();
        let found = loop {
            let end = path[start..].find_byte(b'/').map(|length| start + length);
            let name = &path.as_bytes()[start..end.unwrap_or(path.len())];
            match (end, self.entry_in(at, name)?) {
                (Some(end), Some((EntryKind::Tree, below))) => {
                    further.push((end, below));
                    (start, at) = (end + 1, below);
                }
                (Some(_), _) => break None,
                (None, entry) => break entry,
            }
        };
        self.repo.ways.borrow_mut().keep(known, usable, path, further);
        Ok(found)
    }

    /// What has a name in a tree.
    fn entry_in(&self, tree: ObjectId, name: &[u8]) -> Result<Option<Named>> {
        let mut levels = self.repo.levels.borrow_mut();
        if let Some(names) = levels.names(tree) {
            return Ok(names.get(BStr::new(name)).copied());
        }
        let read = self.repo.find_tree(tree)?;
        if levels.count(tree) {
            let entries = read.decode()?.entries.into_iter();
            levels.keep(
                entries.map(|entry| (entry.filename.to_owned(), (entry.mode.kind(), entry.oid.to_owned()))).collect(),
            );
        }
        let entry = read.lookup_entry([name])?;
        Ok(entry.map(|entry| (entry.mode().kind(), entry.object_id())))
    }

    /// What a tree has of files, links and directories, without what is below these.
    pub fn level(&self, tree: ObjectId) -> Result<Vec<(BString, ObjectId, Level)>> {
        let level = |kind| match kind {
            EntryKind::Tree => Some(Level::Directory),
            kind => file_kind(kind).map(|_| Level::File),
        };
        let entries = self.read_tree(tree)?.entries.into_iter();
        Ok(entries.filter_map(|entry| Some((entry.filename, entry.oid, level(entry.mode.kind())?))).collect())
    }

    /// All of a tree.
    pub fn read_tree(&self, tree: ObjectId) -> Result<Tree> {
        Ok(self.repo.find_tree(tree)?.decode()?.to_owned())
    }

    /// Makes a tree.
    pub fn put_tree(&self, tree: &Tree) -> Result<ObjectId> {
        Ok(self.repo.gix.write_object(tree)?.detach())
    }

    /// The entries that differ between two trees, submodules and directories left out or not
    /// as the trees have them; no tree itself is listed.
    pub fn tree_changes(&self, before: ObjectId, after: ObjectId) -> Result<BTreeMap<BString, Change<TreeSlot>>> {
        let mut all: BTreeMap<BString, Change<TreeSlot>> = BTreeMap::new();
        if before == after {
            return Ok(all);
        }
        // By the plumbing: gix's own comparison of trees reads the index first, for attributes.
        let (before, after) = (self.repo.find_tree(before)?, self.repo.find_tree(after)?);
        let mut recorder = Levels { recorder: Recorder::default(), too_many: false };
        let compared = again(|| {
            recorder.recorder = Recorder::default();
            let [before, after] = [&before, &after].map(|tree| TreeRefIter::from_bytes(&tree.data, tree.id.kind()));
            gix::diff::tree(before, after, State::default(), &self.repo.gix.objects, &mut recorder)
        });
        if recorder.too_many {
            return Err(Refusal::new(Code::Corrupt, format!("a tree has more than {LEVELS} levels of directories"))
                .hint("run 'oxundo doctor': it says how to go on")
                .into());
        }
        compared?;
        let entry = |mode: EntryMode, id| (!mode.is_tree()).then_some((mode, id));
        let none = || Change::new(None, None);
        for change in recorder.recorder.records {
            match change {
                TreeDiff::Addition { path, entry_mode, oid, .. } => {
                    all.entry(path).or_insert_with(none).to = entry(entry_mode, oid);
                }
                TreeDiff::Deletion { path, entry_mode, oid, .. } => {
                    all.entry(path).or_insert_with(none).from = entry(entry_mode, oid);
                }
                TreeDiff::Modification { path, previous_entry_mode, previous_oid, entry_mode, oid } => {
                    let change = all.entry(path).or_insert_with(none);
                    change.from = change.from.or(entry(previous_entry_mode, previous_oid));
                    change.to = change.to.or(entry(entry_mode, oid));
                }
            }
        }
        all.retain(|_, change| change.from.is_some() || change.to.is_some());
        Ok(all)
    }

    /// The entries that differ between two trees, as index entries.
    pub fn entry_changes(
        &self,
        before: ObjectId,
        after: ObjectId,
    ) -> Result<BTreeMap<BString, Change<Vec<IndexEntry>>>> {
        let changes = self.tree_changes(before, after)?.into_iter();
        let entries = |entry| plain_entry(entry, false);
        Ok(changes.map(|(path, change)| (path, Change::new(entries(change.from), entries(change.to)))).collect())
    }

    /// The entry of a tree at a path, as an index entry.
    pub fn plain_entries(&self, tree: ObjectId, path: &BStr) -> Result<Vec<IndexEntry>> {
        Ok(plain_entry(self.entry_at(tree, path)?, false))
    }

    pub fn entry_at(&self, tree: ObjectId, path: &BStr) -> Result<TreeSlot> {
        let found = self.tree_entry(tree, path)?;
        Ok(found.filter(|(kind, _)| *kind != EntryKind::Tree).map(|(kind, id)| (kind.into(), id)))
    }

    /// Every file of a tree.
    pub fn paths_of(&self, tree: ObjectId) -> Result<Vec<BString>> {
        self.changed_paths(self.write_empty_tree()?, tree)
    }

    /// The files that one tree has and another has not.
    pub fn removed_paths(&self, before: ObjectId, after: ObjectId) -> Result<Vec<BString>> {
        let changes = self.tree_changes(before, after)?;
        Ok(changes.into_iter().filter(|(_, change)| change.to.is_none()).map(|(path, _)| path).collect())
    }

    /// The files that differ between two trees.
    pub fn changed_paths(&self, before: ObjectId, after: ObjectId) -> Result<Vec<BString>> {
        Ok(self.tree_changes(before, after)?.into_keys().collect())
    }

    /// All that is below a directory of a tree.
    pub fn entries_below(&self, tree: ObjectId, directory: &BStr) -> Result<Vec<(BString, TreeSlot)>> {
        let Some((EntryKind::Tree, below)) = self.tree_entry(tree, directory)? else { return Ok(Vec::new()) };
        let found = self.tree_changes(self.write_empty_tree()?, below)?.into_iter();
        Ok(found.map(|(path, change)| ([directory.as_bytes(), b"/", &path].concat().into(), change.to)).collect())
    }

    pub fn empty_tree(&self) -> ObjectId {
        ObjectId::empty_tree(self.repo.hash_kind())
    }

    pub fn write_empty_tree(&self) -> Result<ObjectId> {
        Ok(self.repo.gix.write_object(Tree::empty())?.detach())
    }

    pub fn blob_at(&self, tree: ObjectId, path: &str) -> Result<Option<Vec<u8>>> {
        let Some((_, id)) = self.tree_entry(tree, path.into())? else {
            return Ok(None);
        };
        Ok(Some(self.repo.find_blob(id)?.data.clone()))
    }

    pub fn json_at<T: DeserializeOwned>(&self, tree: ObjectId, path: &str) -> Result<Option<T>> {
        let Some(text) = self.blob_at(tree, path)? else {
            return Ok(None);
        };
        serde_json::from_slice(&text).with_context(|| format!("read {path}")).map(Some)
    }
}

/// What kind of file a tree entry is; `None` for a tree or a submodule.
/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A directory.
    Directory,
    /// A file or a link.
    File,
}

pub fn file_kind(kind: EntryKind) -> Option<Kind> {
    match kind {
        EntryKind::Blob => Some(Kind::File),
        EntryKind::BlobExecutable => Some(Kind::Executable),
        EntryKind::Link => Some(Kind::Symlink),
        EntryKind::Tree | EntryKind::Commit => None,
    }
}

/// What a tree says of a file or link.
pub fn entry_kind(kind: Kind) -> EntryKind {
    match kind {
        Kind::File => EntryKind::Blob,
        Kind::Executable => EntryKind::BlobExecutable,
        Kind::Symlink => EntryKind::Link,
    }
}

/// The mode that a file of this kind has in a tree and in the index.
pub fn entry_mode(kind: Kind) -> u32 {
    EntryMode::from(entry_kind(kind)).value().into()
}

/// The entry of a tree as one of the index.
pub fn plain_entry(entry: TreeSlot, skip_worktree: bool) -> Vec<IndexEntry> {
    let plain = |(mode, id): (EntryMode, ObjectId)| IndexEntry::plain(u32::from(mode.value()), id);
    entry.map(|entry| IndexEntry { skip_worktree, ..plain(entry) }).into_iter().collect()
}

/// What a tree has where the index has these entries.
pub fn tree_change(path: &BString, entries: &[IndexEntry]) -> TreeChange {
    let entry = entries.iter().find(|entry| entry.stage == 0 && !entry.intent_to_add);
    let kind = entry.map(|entry| match entry.mode {
        0o100_755 => (EntryKind::BlobExecutable, entry.id),
        0o120_000 => (EntryKind::Link, entry.id),
        0o160_000 => (EntryKind::Commit, entry.id),
        _ => (EntryKind::Blob, entry.id),
    });
    (path.clone(), kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::repo::testing::Fixture;
    use proptest::prelude::*;

    /// What git says is in a tree, by path.
    fn listed(f: &Fixture, tree: ObjectId) -> BTreeMap<BString, String> {
        let printed = f.git(&["ls-tree", "-r", "-z", &tree.to_string()]);
        let lines = printed.split(|byte| *byte == 0).filter(|line| !line.is_empty());
        let entry = |line: &[u8]| {
            let (about, path) = line.split_once_str("\t").expect("a line of ls-tree");
            (path.into(), about.to_str_lossy().into_owned())
        };
        lines.map(entry).collect()
    }

    /// The tree that git makes of these entries, in an index of its own.
    fn built(f: &Fixture, entries: &BTreeMap<BString, (EntryKind, ObjectId)>) -> ObjectId {
        f.git(&["read-tree", "--empty"]);
        let mut input = Vec::new();
        for (path, (kind, id)) in entries {
            let mode = EntryMode::from(*kind).value();
            input.extend([format!("{mode:o} {id} 0\t").as_bytes(), path, b"\0"].concat());
        }
        f.git_fed(&["update-index", "-z", "--index-info"], &input);
        f.id(&["write-tree", "--missing-ok"])
    }

    fn put(path: &str, kind: EntryKind, id: ObjectId) -> TreeChange {
        (path.into(), Some((kind, id)))
    }

    #[test]
    fn a_name_is_found_however_often_names_were_looked_up() {
        let f = Fixture::new();
        let (objects, blob) = (Objects::new(&f.repo), f.blob("x"));
        let names: BTreeMap<BString, _> = (0..20)
            .map(|n| (format!("d/{n}").into(), (EntryKind::Blob, blob)))
            .chain([("e/x".into(), (EntryKind::Link, blob))])
            .collect();
        let tree = built(&f, &names);
        for _ in 0..2 {
            for (path, entry) in &names {
                assert_eq!(objects.tree_entry(tree, path.as_bstr()).expect("read"), Some(*entry), "{path}");
            }
            for path in ["d/20", "d/1/x", "e/", "f", "e/y"] {
                assert_eq!(objects.tree_entry(tree, path.into()).expect("read"), None, "{path}");
            }
            let kind = objects.tree_entry(tree, "e".into()).expect("read").map(|(kind, _)| kind);
            assert_eq!(kind, Some(EntryKind::Tree));
        }
    }

    #[test]
    fn a_file_makes_place_for_a_directory_and_a_directory_for_a_file() {
        let f = Fixture::new();
        let (objects, one, two) = (Objects::new(&f.repo), f.blob("one"), f.blob("two"));
        let entries = |all: &[(&str, ObjectId)]| {
            built(&f, &all.iter().map(|(p, id)| ((*p).into(), (EntryKind::Blob, *id))).collect())
        };
        let base = entries(&[("a", one), ("d/e/x", one), ("d/y", one), ("z", two)]);
        for (changes, wanted) in [
            (
                vec![("a".into(), None), put("a/b", EntryKind::Blob, two)],
                vec![("a/b", two), ("d/e/x", one), ("d/y", one), ("z", two)],
            ),
            (
                vec![put("a/b/c", EntryKind::Blob, two), ("a".into(), None)],
                vec![("a/b/c", two), ("d/e/x", one), ("d/y", one), ("z", two)],
            ),
            (
                vec![put("d", EntryKind::Blob, two), ("d/e/x".into(), None), ("d/y".into(), None)],
                vec![("a", one), ("d", two), ("z", two)],
            ),
            (
                vec![("d/e/x".into(), None), put("d/e", EntryKind::Blob, two)],
                vec![("a", one), ("d/e", two), ("d/y", one), ("z", two)],
            ),
            (vec![("d/e/x".into(), None)], vec![("a", one), ("d/y", one), ("z", two)]),
            (
                vec![("none".into(), None), ("d/none/x".into(), None)],
                vec![("a", one), ("d/e/x", one), ("d/y", one), ("z", two)],
            ),
            (vec![("a".into(), None), ("d/e/x".into(), None), ("d/y".into(), None), ("z".into(), None)], vec![]),
        ] {
            let edited = objects.edited_tree(base, &changes).expect("edit a tree");
            assert_eq!(edited, entries(&wanted), "git makes the same tree of {changes:?}: {:?}", listed(&f, edited));
        }
        assert_eq!(objects.edited_tree(base, &[]).expect("nothing to do"), base);
        assert_eq!(
            objects.write_empty_tree().expect("write a tree"),
            f.id(&["hash-object", "-t", "tree", "/dev/null"])
        );
    }

    #[test]
    fn an_entry_has_the_mode_of_its_kind_and_the_order_is_gits() {
        let f = Fixture::new();
        let (objects, blob) = (Objects::new(&f.repo), f.blob("one"));
        let commit = f.commit("x", "");
        let kinds = [EntryKind::Blob, EntryKind::BlobExecutable, EntryKind::Link];
        let mut changes: Vec<_> =
            (["d-", "d.x", "d0"].into_iter().zip(kinds)).map(|(path, kind)| put(path, kind, blob)).collect();
        changes.push(put("d/in", EntryKind::Blob, blob));
        changes.push(put("sub", EntryKind::Commit, commit));
        changes.push(((&b"\xff\n"[..]).into(), Some((EntryKind::Blob, blob))));
        let empty = objects.write_empty_tree().expect("write a tree");
        let edited = objects.edited_tree(empty, &changes).expect("edit a tree");
        let wanted = changes.iter().map(|(path, entry)| (path.clone(), entry.expect("it is put"))).collect();
        assert_eq!(edited, built(&f, &wanted));
        assert!(f.git_agrees(&["fsck", "--strict", "--no-dangling"]), "git finds nothing odd about it");
        for (path, kind) in [
            ("d-", Some(Kind::File)),
            ("d.x", Some(Kind::Executable)),
            ("d0", Some(Kind::Symlink)),
            ("d", None),
            ("sub", None),
            ("none", None),
            ("d-/x", None),
        ] {
            let found = objects.tree_file(edited, path.into()).expect("look it up");
            assert_eq!(found.map(|(kind, _)| kind), kind, "{path}");
            let there = listed(&f, edited).contains_key(BStr::new(path));
            assert_eq!(
                objects.tree_has_entry(edited, path.into()).expect("look it up"),
                there,
                "{path}: as ls-tree -r has it"
            );
        }
        let mut paths = objects.paths_of(edited).expect("list a tree");
        paths.sort();
        assert_eq!(paths, listed(&f, edited).into_keys().collect::<Vec<_>>());
        let below = objects.entries_below(edited, "d".into()).expect("list a directory");
        assert_eq!(below, [("d/in".into(), Some((EntryKind::Blob.into(), blob)))]);
        assert_eq!(objects.entries_below(edited, "d-".into()).expect("list no directory"), []);
    }

    #[test]
    fn what_the_index_has_is_what_git_writes_of_it() {
        let f = Fixture::new();
        let id = f.blob("one");
        let entry = |mode| IndexEntry::plain(mode, id);
        for (mode, kind) in [
            (0o100_644, EntryKind::Blob),
            (0o100_755, EntryKind::BlobExecutable),
            (0o120_000, EntryKind::Link),
            (0o160_000, EntryKind::Commit),
        ] {
            assert_eq!(tree_change(&"a".into(), &[entry(mode)]), ("a".into(), Some((kind, id))));
            let flagged = IndexEntry { skip_worktree: true, assume_unchanged: true, ..entry(mode) };
            assert_eq!(tree_change(&"a".into(), &[flagged]).1, Some((kind, id)), "a flag changes no tree");
            assert_eq!(plain_entry(Some((kind.into(), id)), false), [entry(mode)], "and back");
        }
        let intended = IndexEntry { intent_to_add: true, ..entry(0o100_644) };
        let conflict = [1, 2, 3].map(|stage| IndexEntry { stage, ..entry(0o100_644) });
        for entries in [&[][..], &[intended], &conflict] {
            assert_eq!(tree_change(&"a".into(), entries).1, None, "no tree has these: {entries:?}");
        }
    }

    #[test]
    fn two_trees_differ_as_git_says_and_one_edited_by_the_difference_is_the_other() {
        let f = Fixture::new();
        let objects = Objects::new(&f.repo);
        let blobs = ["one", "two"].map(|content| f.blob(content));
        let kinds = [EntryKind::Blob, EntryKind::BlobExecutable, EntryKind::Link, EntryKind::Commit];
        let names = ["a", "a-", "a/x", "a/x/y", "a/z", "b", "b/c", "\u{e9}/\n", "\u{e9}"];
        let entry = || prop::option::of((prop::sample::select(kinds.to_vec()), prop::sample::select(blobs.to_vec())));
        // No path is below another that is a file.
        let whole = |all: [Option<(EntryKind, ObjectId)>; 9]| {
            let mut entries = BTreeMap::<BString, _>::new();
            for (name, entry) in names.iter().zip(all) {
                let above = crate::model::path::parents(BStr::new(*name)).any(|parent| entries.contains_key(parent));
                let below = format!("{name}/");
                let below = entries.keys().any(|path| path.starts_with(below.as_bytes()));
                if let Some(entry) = entry.filter(|_| !above && !below) {
                    entries.insert(BString::from(*name), entry);
                }
            }
            entries
        };
        let config = ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() };
        proptest!(config, |(before in names.map(|_| entry()), after in names.map(|_| entry()))| {
            let (before, after) = (whole(before), whole(after));
            let (from, to) = (built(&f, &before), built(&f, &after));
            let found = objects.tree_changes(from, to).expect("compare trees");
            let printed = f.git(&["diff-tree", "-r", "-z", "--name-only", "--no-renames", &from.to_string(), &to.to_string()]);
            let wanted: Vec<&[u8]> = printed.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
            prop_assert_eq!(found.keys().map(|path| path.as_slice()).collect::<Vec<_>>(), wanted, "the same paths differ");
            for (path, change) in &found {
                let plain = |entries: &BTreeMap<BString, (EntryKind, ObjectId)>| entries.get(path).map(|(kind, id)| ((*kind).into(), *id));
                prop_assert_eq!(&(change.from, change.to), &(plain(&before), plain(&after)), "{} changes so", path);
            }
            let changes: Vec<TreeChange> = found.into_iter().map(|(path, change)| (path, change.to.map(|(mode, id)| (mode.kind(), id)))).collect();
            prop_assert_eq!(objects.edited_tree(from, &changes).expect("edit a tree"), to, "the difference leads there");
            let gone: Vec<BString> = before.keys().filter(|path| !after.contains_key(*path)).cloned().collect();
            prop_assert_eq!(objects.removed_paths(from, to).expect("compare trees"), gone);
            let entries = objects.entry_changes(from, to).expect("compare trees");
            prop_assert!(entries.iter().all(|(path, change)| change.from.len() == usize::from(before.contains_key(path))));
        });
    }

    #[test]
    fn a_tree_that_is_gone_is_an_error_and_no_empty_one() {
        let f = Fixture::new();
        let objects = Objects::new(&f.repo);
        let (none, blob) = (ObjectId::null(f.repo.hash_kind()), f.blob("one"));
        let empty = objects.write_empty_tree().expect("write a tree");
        for tree in [none, blob] {
            assert!(objects.tree_entry(tree, "a".into()).is_err(), "nothing can be looked up in {tree}");
            assert!(objects.tree_changes(empty, tree).is_err(), "{tree} cannot be compared");
            assert!(objects.edited_tree(tree, &[put("a", EntryKind::Blob, blob)]).is_err(), "nor edited");
        }
        assert!(objects.json_at::<u64>(empty, "a").expect("it is not there").is_none());
        let odd = objects.edited_tree(empty, &[put("a", EntryKind::Blob, blob)]).expect("edit a tree");
        let error = objects.json_at::<u64>(odd, "a").expect_err("it is no JSON");
        assert!(error.to_string().contains("read a"), "it says what it read: {error:#}");
    }
}
