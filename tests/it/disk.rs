//! A model of the disk below a traced program: what of its files and names a power cut leaves.
//!
//! A file has what was last flushed of it, and what is in memory; a directory likewise has the names that were last flushed.
//! At a power cut, of all else nothing is left, or any part. Two things hold on every file system that has a journal: a
//! rename happens or does not, and neither takes the file along.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What a power cut leaves of what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Nothing: neither what was written, nor a name that was given, nor that one was taken away.
    All,
    /// All names, and nothing of what is in the files: those that are new are empty.
    Content,
    /// As ext4 does it: as before, but a file that was renamed over another one is whole.
    Ordered,
    /// Any part: chance says of each name and each block.
    Any(u64),
}

/// Something with an inode.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    File(u32, Vec<u8>),
    Link(PathBuf),
    Directory(u32, BTreeMap<OsString, u64>),
}

type Nodes = BTreeMap<u64, Node>;

/// A disk, as far as it is below a directory.
pub(crate) struct Disk {
    top: PathBuf,
    root: u64,
    durable: RefCell<Nodes>,
    /// How many flushes there were, and the one that does nothing.
    flushes: Cell<usize>,
    broken: Option<usize>,
}

/// A block of a disk.
const BLOCK: usize = 512;

impl Disk {
    /// One on which all is that is there.
    pub(crate) fn below(top: &Path) -> Self {
        let mut durable = Nodes::new();
        let root = read(top, &mut durable);
        Self { top: top.to_owned(), root, durable: durable.into(), flushes: Cell::default(), broken: None }
    }

    /// The same, on which the flush of this number does nothing.
    pub(crate) fn without_flush(self, number: usize) -> Self {
        Self { broken: Some(number), ..self }
    }

    /// A program flushes: the words of its call.
    pub(crate) fn flush(&self, call: &str) {
        let (call, path) = call.split_once(' ').expect("a call names a file");
        let path = Path::new(path);
        let durable = &mut *self.durable.borrow_mut();
        if !path.starts_with(&self.top) || self.broken == Some(self.flushes.replace(self.flushes.get() + 1)) {
            return;
        }
        if call == "syncfs" {
            read(&self.top, durable);
            return;
        }
        // It may be gone again.
        if let Some((inode, node)) = node(path) {
            durable.insert(inode, node);
        }
    }

    /// The same of something that is flushed by nobody who is traced.
    pub(crate) fn flush_now(&self, path: &Path) {
        let flushed = node(path).expect("it is there");
        self.durable.borrow_mut().insert(flushed.0, flushed.1);
    }

    /// The power is cut. Locks and logs are of another boot from now on.
    pub(crate) fn cut(&self, loss: Loss) {
        let mut now = Nodes::new();
        assert_eq!(read(&self.top, &mut now), self.root, "the directory itself stays");
        let left = Left { durable: &self.durable.borrow(), now: &now, loss, chance: RefCell::new(Chance::of(loss)) };
        let kept = left.names(self.root);
        let mut done = BTreeSet::new();
        left.write(&self.top, self.root, &kept, &mut done);
        start_anew(&self.top);
    }
}

/// What is left after a power cut.
struct Left<'a> {
    durable: &'a Nodes,
    now: &'a Nodes,
    loss: Loss,
    chance: RefCell<Chance>,
}

impl Left<'_> {
    /// The names that are left, by directory.
    fn names(&self, root: u64) -> BTreeMap<u64, BTreeMap<OsString, u64>> {
        let (mut names, mut todo) = (BTreeMap::new(), vec![root]);
        while let Some(directory) = todo.pop() {
            if names.contains_key(&directory) {
                continue;
            }
            let entries = |nodes: &Nodes| match nodes.get(&directory) {
                Some(Node::Directory(_, entries)) => entries.clone(),
                _ => BTreeMap::new(),
            };
            let (old, new) = (entries(self.durable), entries(self.now));
            let all: BTreeSet<&OsString> = old.keys().chain(new.keys()).collect();
            let kept = all.into_iter().filter_map(|name| {
                let (old, new) = (old.get(name), new.get(name));
                let is_new = old == new || !self.loses_name();
                Some((name.clone(), *if is_new { new } else { old }?))
            });
            let kept: BTreeMap<OsString, u64> = kept.collect();
            todo.extend(kept.values().copied().filter(|inode| self.is_directory(*inode)));
            names.insert(directory, kept);
        }
        self.keep_renamed(&mut names);
        names
    }

    fn loses_name(&self) -> bool {
        match self.loss {
            Loss::All => true,
            Loss::Content | Loss::Ordered => false,
            Loss::Any(_) => self.below(2) == 0,
        }
    }

    fn below(&self, most: usize) -> usize {
        self.chance.borrow_mut().below(most)
    }

    fn is_directory(&self, inode: u64) -> bool {
        [self.now, self.durable].iter().any(|nodes| matches!(nodes.get(&inode), Some(Node::Directory(..))))
    }

    /// Whether it has, or had, several names at a time.
    fn has_names(&self, inode: u64) -> bool {
        let count = |nodes: &Nodes| {
            let entries = nodes.values().filter_map(|node| match node {
                Node::Directory(_, entries) => Some(entries.values().filter(|it| **it == inode).count()),
                _ => None,
            });
            entries.sum::<usize>()
        };
        count(self.durable) > 1 || count(self.now) > 1
    }

    /// Of what had a name on the disk, and has one now, one is left.
    fn keep_renamed(&self, names: &mut BTreeMap<u64, BTreeMap<OsString, u64>>) {
        let places = |nodes: &Nodes| {
            let mut places: BTreeMap<u64, (u64, OsString)> = BTreeMap::new();
            for (directory, node) in nodes {
                let Node::Directory(_, entries) = node else { continue };
                places.extend(entries.iter().map(|(name, inode)| (*inode, (*directory, name.clone()))));
            }
            places
        };
        let (old, new) = (places(self.durable), places(self.now));
        for (inode, place) in &old {
            let Some(other) = new.get(inode) else { continue };
            let has =
                |(directory, name): &(u64, OsString)| names.get(directory).and_then(|it| it.get(name)) == Some(inode);
            if place != other && has(place) && has(other) && !self.has_names(*inode) {
                let (directory, name) = if self.below(2) == 0 { place } else { other };
                let entries = names.get_mut(directory).expect("it is there");
                entries.remove(name);
                // What it was renamed over is there again.
                let before = self::entries(self.durable, *directory).remove(name).filter(|before| before != inode);
                entries.extend(before.map(|before| (name.clone(), before)));
            }
            if names.values().any(|entries| entries.values().any(|it| it == inode)) {
                continue;
            }
            for (directory, name) in [other, place] {
                if let Some(entries) = names.get_mut(directory)
                    && !entries.contains_key(name)
                {
                    entries.insert(name.clone(), *inode);
                    break;
                }
            }
        }
    }

    /// What is left of a file. `replaced`: whether it has the name of another one that was flushed.
    fn content(&self, inode: u64, replaced: bool) -> Node {
        let (old, new) = (self.durable.get(&inode), self.now.get(&inode));
        let (Some(Node::File(mode, bytes)), false) = (new, old == new) else {
            return old.or(new).cloned().unwrap_or(Node::File(0o644, Vec::new()));
        };
        let empty = Node::File(*mode, Vec::new());
        match self.loss {
            Loss::Ordered if replaced && old.is_none() => Node::File(*mode, bytes.clone()),
            Loss::Any(_) => match (self.below(4), old) {
                (0, _) => Node::File(*mode, bytes.clone()),
                (1, _) => Node::File(*mode, self.torn(old, bytes)),
                (_, Some(old)) => old.clone(),
                (_, None) => empty,
            },
            _ => old.cloned().unwrap_or(empty),
        }
    }

    /// A file of which some blocks were written.
    fn torn(&self, old: Option<&Node>, bytes: &[u8]) -> Vec<u8> {
        let old = match old {
            Some(Node::File(_, old)) => &old[..],
            _ => &[],
        };
        // What was only added to does not become shorter than it was.
        let least = if bytes.starts_with(old) { old.len() } else { 0 };
        let length = least + self.below(bytes.len() - least + 1);
        let mut torn = bytes[..length].to_vec();
        for (number, block) in torn.chunks_mut(BLOCK).enumerate() {
            if self.below(2) == 0 {
                let was = old.get(number * BLOCK..).unwrap_or_default();
                for (at, byte) in block.iter_mut().enumerate() {
                    *byte = was.get(at).copied().unwrap_or_default();
                }
            }
        }
        torn
    }

    /// Makes a directory what is left of it.
    fn write(
        &self,
        path: &Path,
        directory: u64,
        names: &BTreeMap<u64, BTreeMap<OsString, u64>>,
        done: &mut BTreeSet<u64>,
    ) {
        let none = BTreeMap::new();
        let kept = names.get(&directory).unwrap_or(&none);
        let (old, now) = (entries(self.durable, directory), entries(self.now, directory));
        for name in fs::read_dir(path).expect("list a directory").flatten().map(|entry| entry.file_name()) {
            if kept.get(&name) != now.get(&name) {
                remove(&path.join(name));
            }
        }
        for (name, inode) in kept {
            let path = path.join(name);
            if self.is_directory(*inode) {
                // It has one name only.
                if !done.insert(*inode) {
                    remove(&path);
                    continue;
                }
                if !path.is_dir() {
                    fs::create_dir(&path).expect("make a directory");
                }
                self.write(&path, *inode, names, done);
                if let Some(Node::Directory(mode, _)) = self.durable.get(inode).or_else(|| self.now.get(inode)) {
                    fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).expect("set a mode");
                }
                continue;
            }
            let replaced = old.get(name).is_some_and(|old| old != inode);
            put(&path, &self.content(*inode, replaced));
        }
    }
}

fn entries(nodes: &Nodes, directory: u64) -> BTreeMap<OsString, u64> {
    match nodes.get(&directory) {
        Some(Node::Directory(_, entries)) => entries.clone(),
        _ => BTreeMap::new(),
    }
}

/// Makes what is at a path this, unless it is.
fn put(path: &Path, wanted: &Node) {
    if node(path).is_some_and(|(_, now)| now == *wanted) {
        return;
    }
    // Never into a file: it may be another sandbox's too.
    remove(path);
    match wanted {
        Node::File(mode, bytes) => {
            fs::write(path, bytes).expect("write a file");
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).expect("set a mode");
        }
        Node::Link(target) => symlink(target, path).expect("make a link"),
        Node::Directory(..) => unreachable!("directories are walked"),
    }
}

fn remove(path: &Path) {
    let is_directory = path.symlink_metadata().is_ok_and(|about| about.is_dir());
    // It may not be there at all.
    let _ = if is_directory { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// Reads all below a path; gives its inode.
fn read(path: &Path, nodes: &mut Nodes) -> u64 {
    let (inode, found) = node(path).expect("read what is there");
    if let Node::Directory(_, entries) = &found {
        for name in entries.keys() {
            let below = path.join(name);
            if below.symlink_metadata().is_ok() {
                read(&below, nodes);
            }
        }
    }
    nodes.insert(inode, found);
    inode
}

fn node(path: &Path) -> Option<(u64, Node)> {
    let about = path.symlink_metadata().ok()?;
    let mode = about.mode() & 0o7777;
    let node = if about.is_dir() {
        let entries = fs::read_dir(path).ok()?.flatten();
        let entries = entries.filter_map(|entry| Some((entry.file_name(), entry.metadata().ok()?.ino())));
        Node::Directory(mode, entries.collect())
    } else if about.is_symlink() {
        Node::Link(fs::read_link(path).ok()?)
    } else if about.is_file() {
        Node::File(mode, fs::read(path).ok()?)
    } else {
        return None;
    };
    Some((about.ino(), node))
}

/// The system has another boot id, and what is there was there before.
pub(crate) fn start_anew(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is = |end: &str| path.as_os_str().as_bytes().ends_with(end.as_bytes());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            start_anew(&path);
        } else if is(".lock") || path.iter().any(|part| part == "logs") {
            let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
            let file = fs::File::options().append(true).open(&path);
            file.and_then(|file| file.set_modified(long_ago)).expect("set a time");
        } else if directory.ends_with("oxundo/log") {
            let mut log = fs::read(&path).expect("read a log");
            if let Some(id) = log.get_mut(b"oxundo log 1 ".len()..).and_then(|rest| rest.get_mut(..36)) {
                id.fill(b'x');
                fs::write(&path, log).expect("write a log");
            }
        }
    }
}

/// Chance that can be had again.
struct Chance(u64);

impl Chance {
    fn of(loss: Loss) -> Self {
        Self(if let Loss::Any(seed) = loss { seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 } else { 1 })
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next()).expect("32 bits") % most.max(1)
    }
}

#[test]
fn what_is_flushed_stays_and_of_all_else_no_more_than_the_loss_allows() {
    let top = crate::copies::directory();
    let path = |name: &str| top.path().join(name);
    let make = |name: &str, content: &str| fs::write(path(name), content).expect("write a file");
    make("old", "old");
    let build = || {
        let disk = Disk::below(top.path());
        make("new", "new");
        make("named", "named");
        make("flushed", "flushed");
        disk.flush(&format!("fsync {}", path("flushed").display()));
        disk.flush(&format!("fsync {}", top.path().display()));
        fs::rename(path("named"), path("old")).expect("rename a file");
        make("flushed", "later");
        make("late", "late");
        disk
    };
    let listed = || {
        let names = ["old", "new", "named", "flushed", "late"];
        let all = names.map(|name| fs::read_to_string(path(name)).ok());
        for name in names.iter().filter(|name| **name != "old") {
            remove(&path(name));
        }
        make("old", "old");
        all.map(|content| {
            content.map_or("-".to_owned(), |content| if content.is_empty() { "0".into() } else { content })
        })
    };
    build().cut(Loss::All);
    assert_eq!(listed(), ["old", "0", "0", "flushed", "-"]);
    build().cut(Loss::Content);
    assert_eq!(listed(), ["0", "0", "-", "flushed", "0"]);
    build().cut(Loss::Ordered);
    assert_eq!(listed(), ["named", "0", "-", "flushed", "0"]);
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        build().cut(Loss::Any(seed));
        let [old, new, _, flushed, late] = listed();
        assert!(
            ["old", "named", "0"].contains(&old.as_str()) || old.contains('\0') || "named".starts_with(&old),
            "{old:?}"
        );
        assert!(new != "-", "its name was flushed");
        assert!(flushed.len() <= 7 && late != "flushed", "{flushed:?}");
        seen.insert((old, new, late));
    }
    assert!(seen.len() > 10, "chance takes many ways: {seen:?}");
}
