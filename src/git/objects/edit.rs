//! Trees with some paths replaced or removed. The work is in proportion to the length of the paths, however deep they are:
//! gix's own editor goes down from the top for each, by the whole path of each directory on the way.

use crate::git::objects::Objects;
use crate::git::objects::tree::TreeChange;
use crate::model::bytes::in_quotes;
use anyhow::{Context, Result, bail};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::objs::Tree;
use gix::objs::tree::{Entry, EntryKind};
use gix::validate::path::component;
use gix::validate::path::component::Options;
use std::cmp::Ordering;
use std::collections::BTreeMap;

impl Objects<'_> {
    /// A tree with some paths replaced or removed.
    pub fn edited_tree(&self, base: ObjectId, changes: &[TreeChange]) -> Result<ObjectId> {
        if changes.is_empty() {
            return Ok(base);
        }
        let mut editor = Editor { objects: *self, directories: Vec::new(), path: BString::default(), open: Vec::new() };
        editor.read(base, None)?;
        // Removals first: a file may make way for a directory, or a directory for a file.
        for (path, _) in changes.iter().filter(|(_, entry)| entry.is_none()) {
            editor.change(path.as_bstr(), None)?;
        }
        for (path, entry) in changes {
            if let Some(entry) = entry {
                check_components(path.as_bstr())?;
                editor.change(path.as_bstr(), Some(*entry))?;
            }
        }
        editor.write()
    }
}

/// A tree while it is edited: each directory that is on the way to a change.
struct Editor<'r> {
    objects: Objects<'r>,
    /// Each behind the one that it is in. The first is the top.
    directories: Vec<Directory>,
    /// The path that was changed last.
    path: BString,
    /// The directories on the way to it below the top: where their names end in it, and their numbers.
    open: Vec<(usize, usize)>,
}

struct Directory {
    tree: Tree,
    /// Those in it that are edited, by name.
    below: BTreeMap<BString, usize>,
    /// The directory that it is in, and its name there.
    parent: Option<(usize, BString)>,
}

impl Editor<'_> {
    /// Reads a directory, or begins an empty one.
    fn read(&mut self, tree: ObjectId, parent: Option<(usize, BString)>) -> Result<usize> {
        let empty = self.objects.empty_tree();
        let tree = if tree == empty { Tree::empty() } else { self.objects.read_tree(tree)? };
        self.directories.push(Directory { tree, below: BTreeMap::new(), parent });
        Ok(self.directories.len() - 1)
    }

    /// Puts an entry at a path, or removes what is there.
    fn change(&mut self, path: &BStr, entry: Option<(EntryKind, ObjectId)>) -> Result<()> {
        let shared = self.path.iter().zip(path.iter()).take_while(|(one, other)| one == other).count();
        self.open.retain(|(end, _)| *end <= shared && path.get(*end) == Some(&b'/'));
        path.clone_into(&mut self.path);
        let (mut start, mut at) = self.open.last().map_or((0, 0), |(end, number)| (*end + 1, *number));
        while let Some(length) = path[start..].find_byte(b'/') {
            let end = start + length;
            let Some(below) = self.enter(at, path[start..end].as_bstr(), entry.is_some())? else { return Ok(()) };
            self.open.push((end, below));
            (start, at) = (end + 1, below);
        }
        let (directory, name) = (&mut self.directories[at], path[start..].as_bstr());
        directory.below.remove(name);
        match entry {
            Some((kind, id)) => directory.put(name, kind, id),
            None => directory.remove(name),
        }
        Ok(())
    }

    /// The directory of this name in another. It takes the place of what is there, or is made, where something will be put
    /// into it; else `None` where there is none.
    fn enter(&mut self, at: usize, name: &BStr, make: bool) -> Result<Option<usize>> {
        let directory = &mut self.directories[at];
        if let Some(known) = directory.below.get(name) {
            return Ok(Some(*known));
        }
        let there =
            directory.find(name).ok().map(|at| &directory.tree.entries[at]).filter(|entry| entry.mode.is_tree());
        let empty = self.objects.empty_tree();
        let tree = match there {
            Some(entry) => entry.oid,
            None if make => {
                directory.put(name, EntryKind::Tree, empty);
                empty
            }
            None => return Ok(None),
        };
        let number = self.read(tree, Some((at, name.to_owned())))?;
        self.directories[at].below.insert(name.to_owned(), number);
        Ok(Some(number))
    }

    /// Writes what was edited, each directory before the one that it is in; one without entries is gone.
    fn write(mut self) -> Result<ObjectId> {
        while let Some(Directory { tree, parent, .. }) = self.directories.pop() {
            let is_empty = tree.entries.is_empty();
            let Some((parent, name)) = parent else { return self.put(&tree) };
            let number = self.directories.len();
            // Something else may have been put into its place.
            if self.directories[parent].below.get(&name) != Some(&number) {
                continue;
            }
            if is_empty {
                self.directories[parent].remove(name.as_bstr());
            } else {
                let id = self.put(&tree)?;
                self.directories[parent].put(name.as_bstr(), EntryKind::Tree, id);
            }
        }
        bail!("a tree has no top")
    }

    /// gix's own way of writing looks for each object of each directory, also for what was there before.
    fn put(&self, tree: &Tree) -> Result<ObjectId> {
        self.objects.put_tree(tree).context("write a tree")
    }
}

impl Directory {
    /// Where a name is, or is to be as that of a file.
    fn find(&self, name: &BStr) -> Result<usize, usize> {
        let as_file = self.search(name, false);
        as_file.or_else(|place| self.search(name, true).map_err(|_| place))
    }

    fn search(&self, name: &BStr, is_tree: bool) -> Result<usize, usize> {
        self.tree.entries.binary_search_by(|entry| in_order(entry, name, is_tree))
    }

    fn put(&mut self, name: &BStr, kind: EntryKind, oid: ObjectId) {
        if let Ok(at) = self.find(name) {
            let entry = &mut self.tree.entries[at];
            if entry.mode.is_tree() == (kind == EntryKind::Tree) {
                (entry.mode, entry.oid) = (kind.into(), oid);
                return;
            }
            self.tree.entries.remove(at);
        }
        let place = self.search(name, kind == EntryKind::Tree).unwrap_or_else(|place| place);
        self.tree.entries.insert(place, Entry { mode: kind.into(), filename: name.into(), oid });
    }

    fn remove(&mut self, name: &BStr) {
        if let Ok(at) = self.find(name) {
            self.tree.entries.remove(at);
        }
    }
}

/// git's order of names: that of a directory is as if it had a slash behind.
fn in_order(entry: &Entry, name: &BStr, is_tree: bool) -> Ordering {
    let slash = |is_tree: bool| is_tree.then_some(&b'/');
    let one = entry.filename.iter().chain(slash(entry.mode.is_tree()));
    one.cmp(name.iter().chain(slash(is_tree)))
}

/// Refuses a path that leads out of a tree. What else git has against a name, it had when the name came into the index.
fn check_components(path: &BStr) -> Result<()> {
    let options = Options { protect_windows: false, protect_hfs: false, protect_ntfs: false };
    let bad = path.split_str("/").find(|name| component(name.as_bstr(), None, options).is_err());
    if bad.is_some() {
        bail!("{} cannot be in a tree", in_quotes(path));
    }
    Ok(())
}
