//! The index written by oxundo itself, in the plain case: an index with nothing but entries and the cached trees, and
//! paths whose content nothing converts. A git for it takes longer than all the rest of a small undo. Everything
//! else is git's to write, see [`super::stage`]: each function here says so, and has then changed nothing.

use crate::git::index::Index;
use crate::git::index::convert::{CONVERTING, MORE};
use crate::git::index::lock::IndexLock;
use crate::git::objects::Objects;
use crate::git::objects::tree::entry_mode;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::worktree::names::is_storable;
use crate::git::worktree::stat::{index_stat, kind_of, mode_of};
use crate::git::worktree::{Lookup, Worktree};
use crate::model::checkpoint::{FileState, IndexEntry};
use crate::model::path::parents;
use crate::model::plan::IndexMove;
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::index::entry::stat::{Options as StatOptions, Time};
use gix::index::entry::{Flags, Mode, Stage, Stat};
use gix::index::extension::Tree;
use gix::index::{File as IndexFile, State, Version};
use gix::objs::Exists as _;
use std::sync::Arc;

/// With more files than these the trees of their directories are named in the index again, as git names them when it commits:
/// whoever looks at the index next, git too, would read each of them.
const FEW: usize = if cfg!(test) { 4 } else { 64 };

/// So many files that changed in the second in which the index was written are compared by content at most.
const MOST_RACY: usize = 64;

/// What one path is to have in the index: an entry with its file's stat data, or none.
type Wanted = (BString, Option<(IndexEntry, Stat)>);

/// Stages these files as they are, and removes the entries of those that are gone. Tells whether it did.
pub fn stage(lock: &IndexLock<'_>, paths: &[&BStr]) -> Result<bool> {
    let Some(mut plain) = Plain::of(lock)? else { return Ok(false) };
    let mut wanted = Vec::new();
    for path in paths {
        let Some(found) = plain.found(path)? else { return Ok(false) };
        wanted.push(((*path).to_owned(), found));
    }
    plain.write(wanted)
}

/// Sets the entries of each path as the move says, with the stat data of its file where that is `fresh` and the file
/// has the very content. Tells whether it did.
pub fn set(lock: &IndexLock<'_>, moves: &[IndexMove], fresh: impl Fn(&IndexMove) -> bool) -> Result<bool> {
    let Some(mut plain) = Plain::of(lock)? else { return Ok(false) };
    let mut wanted = Vec::new();
    for entry in moves {
        let found = if fresh(entry) { plain.found(entry.path.as_bstr())? } else { Some(None) };
        let to = match (&entry.to[..], found) {
            ([], Some(_)) => None,
            ([to], Some(found)) if to.is_plain() && !to.is_gitlink() => {
                let same = found.filter(|(found, _)| (found.id, found.mode) == (to.id, to.mode));
                Some((*to, same.map(|(_, stat)| stat).unwrap_or_default()))
            }
            _ => return Ok(false),
        };
        wanted.push((entry.path.clone(), to));
    }
    plain.write(wanted)
}

/// Whether oxundo may write this index itself, whatever the paths.
pub fn is_plain(lock: &IndexLock<'_>) -> Result<bool> {
    Ok(Plain::of(lock)?.is_some())
}

/// An index that oxundo may write.
struct Plain<'l, 'r> {
    lock: &'l IndexLock<'r>,
    index: Arc<IndexFile>,
    /// Made ready for the first file.
    attributes: Option<gix::AttributeStack<'r>>,
}

impl<'l, 'r> Plain<'l, 'r> {
    fn of(lock: &'l IndexLock<'r>) -> Result<Option<Self>> {
        if !lock.path().exists() || !has_plain_settings(lock.repo) || is_split(lock.repo) {
            return Ok(None);
        }
        let index = lock.read()?;
        let is_plain = matches!(index.version(), Version::V2 | Version::V3)
            && index.checksum().is_some_and(|checksum| !checksum.is_null())
            && !index.is_sparse()
            && !index.had_offset_table()
            && (index.untracked().is_none() && index.fs_monitor().is_none() && index.resolve_undo().is_none());
        Ok(is_plain.then_some(Self { lock, index, attributes: None }))
    }

    fn repo(&self) -> &'r Repo {
        self.lock.repo
    }

    /// The entry that git would make of a path of the worktree, none for nothing there; `None` where only git
    /// knows.
    #[expect(clippy::option_option, reason = "what is not known is not what is not there")]
    fn found(&mut self, path: &BStr) -> Result<Option<Option<(IndexEntry, Stat)>>> {
        let worktree = Worktree::new(self.repo());
        // To read a file that may not be read is to change the time of its last change.
        let stat_now = |stat: &rustix::fs::Stat| {
            let stat_now = index_stat(stat);
            if mode_of(stat) & 0o400 == 0 { Stat { ctime: Time::default(), ..stat_now } } else { stat_now }
        };
        let before = match worktree.find(path)? {
            Lookup::There(stat) if kind_of(&stat).is_some() => stat_now(&stat),
            Lookup::Absent => return Ok(Some(None)),
            _ => return Ok(None),
        };
        let Ok(Some(FileState { kind, id, .. })) = worktree.state(path, self.repo().hash_kind()) else {
            return Ok(None);
        };
        // Between, it may have become another file, which is not the one that was captured.
        let is_same = matches!(worktree.find(path)?, Lookup::There(stat) if stat_now(&stat) == before);
        if !is_same || !self.repo().gix.objects.exists(&id) || self.converts(path, before.size)? {
            return Ok(None);
        }
        Ok(Some(Some((IndexEntry::plain(entry_mode(kind), id), before))))
    }

    /// Whether an attribute may have the content of this file converted on its way to its blob.
    fn converts(&mut self, path: &BStr, size: u32) -> Result<bool> {
        use gix::attrs::StateRef as S;
        use gix::worktree::stack::state::attributes::Source;
        let attributes = match &mut self.attributes {
            Some(ready) => ready,
            none => none.insert(self.lock.repo.gix.attributes_only(&self.index, Source::WorktreeThenIdMapping)?),
        };
        let mut outcome = attributes.selected_attribute_matches(CONVERTING);
        if !attributes.at_entry(path, Some(Mode::FILE))?.matching_attributes(&mut outcome) {
            return Ok(false);
        }
        let is_set = |state: S<'_>| !matches!(state, S::Unset | S::Unspecified);
        let set: Vec<_> = outcome.iter_selected().filter(|found| is_set(found.assignment.state)).collect();
        if set.iter().any(|found| MORE.contains(&found.assignment.name.as_str())) {
            return Ok(true);
        }
        // Line ends are what the others convert.
        let read = || Worktree::new(self.repo()).read_plain_file(path);
        let has_returns = || !read().is_ok_and(|read| read.is_some_and(|bytes| !bytes.contains(&b'\r')));
        Ok(!set.is_empty() && (u64::from(size) > READ_AGAIN || has_returns()))
    }

    /// Writes an index with these entries; not if it would have to touch entries that are not plain, or a file in the
    /// place of a directory.
    fn write(&self, wanted: Vec<Wanted>) -> Result<bool> {
        if !wanted.iter().all(|wanted| self.fits(wanted)) || !self.knows_racy(&wanted) {
            return Ok(false);
        }
        let mut index = self.lock.draft_of(&self.index);
        let (known, new): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|(path, _)| index.entry_range(path.as_bstr()).is_some());
        let (goes, comes) = (known.iter().any(|(_, to)| to.is_none()), !new.is_empty());
        let names_trees = known.len() + new.len() > FEW;
        // First those that are found where they are: what is added makes an end of the order.
        for (path, to) in known.into_iter().chain(new) {
            put(&mut index, path.as_bstr(), to);
        }
        if goes {
            index.remove_entries(|_, _, entry| entry.flags.contains(Flags::REMOVE));
        }
        if comes {
            index.sort_entries();
        }
        if names_trees && index.tree().is_some() {
            let base = Objects::new(self.repo()).head_tree(&Refs::new(self.repo()).head()?)?;
            let named = Index::new(self.repo()).cache_tree(&index, base)?;
            if let Some(tree) = index.tree_mut() {
                *tree = named;
            }
        }
        self.lock.replace_copy(index)?;
        Ok(true)
    }

    /// Whether a path can have an entry, or lose one, without a change to others, or to flags.
    fn fits(&self, (path, to): &Wanted) -> bool {
        let path = path.as_bstr();
        let entries = self.index.entry_range(path).map_or(&[][..], |range| &self.index.entries()[range]);
        let marks = Flags::ASSUME_VALID | Flags::SKIP_WORKTREE | Flags::INTENT_TO_ADD;
        let is_plain = |entry: &gix::index::Entry| {
            entry.stage() == Stage::Unconflicted && !entry.flags.intersects(marks) && entry.mode != Mode::COMMIT
        };
        let is_link = to.as_ref().is_some_and(|(entry, _)| entry.mode == Mode::SYMLINK.bits());
        if may_be_refused(path, is_link) || !entries.iter().all(is_plain) {
            return false;
        }
        let is_free = || {
            let below = [path.as_bytes(), b"/"].concat();
            self.index.prefixed_entries_range(below.as_bstr()).is_none_or(|range| range.is_empty())
                && parents(path).all(|parent| self.index.entry_range(parent).is_none())
        };
        to.is_none() || !entries.is_empty() || is_free()
    }

    /// Whether all other files are as their stat data say. Of one that changed in the very second in which the index
    /// was written git says nothing before it has compared the content; a later index would make it sure.
    fn knows_racy(&self, wanted: &[Wanted]) -> bool {
        let options = StatOptions { use_nsec: false, ..StatOptions::default() };
        let timestamp = self.index.timestamp();
        let mut looked_at = 0;
        for entry in self.index.entries().iter().filter(|entry| entry.stat.is_racy(timestamp, options)) {
            let path = entry.path(&self.index);
            if wanted.iter().any(|(wanted, _)| wanted == path) {
                continue;
            }
            looked_at += 1;
            if looked_at > MOST_RACY || !self.is_sure(entry, path) {
                return false;
            }
        }
        true
    }

    /// Whether the file is another by its stat data, however little of these git compares, or has the entry's content.
    fn is_sure(&self, entry: &gix::index::Entry, path: &BStr) -> bool {
        let least = StatOptions { trust_ctime: false, check_stat: false, use_nsec: false, use_stdev: false };
        let worktree = Worktree::new(self.repo());
        let stat = match worktree.find(path) {
            Ok(Lookup::There(stat)) => stat,
            Ok(_) => return true,
            // It is in a directory that may not be looked into.
            Err(_) => return false,
        };
        if kind_of(&stat).is_none() || !index_stat(&stat).matches(&entry.stat, least) {
            return true;
        }
        let found = worktree.state(path, self.repo().hash_kind());
        found.is_ok_and(|found| found.is_some_and(|found| found.id == entry.id))
    }
}

/// The largest file, in bytes, that is read once more for its line ends.
const READ_AGAIN: u64 = 1 << 20;

/// Sets, adds or marks as removed one entry.
fn put(index: &mut State, path: &BStr, to: Option<(IndexEntry, Stat)>) {
    let known = index.entry_mut_by_path_and_stage(path, Stage::Unconflicted);
    let is_changed = match (known, to) {
        (Some(entry), Some((to, stat))) => {
            let mode = Mode::from_bits_truncate(to.mode);
            let is_changed = (entry.id, entry.mode) != (to.id, mode);
            (entry.id, entry.mode, entry.stat) = (to.id, mode, stat);
            is_changed
        }
        (Some(entry), None) => {
            entry.flags.insert(Flags::REMOVE);
            true
        }
        (None, Some((to, stat))) => {
            index.dangerously_push_entry(stat, to.id, Flags::empty(), Mode::from_bits_truncate(to.mode), path);
            true
        }
        (None, None) => false,
    };
    if is_changed && let Some(tree) = index.tree_mut() {
        invalidate(tree, path);
    }
}

/// Marks the cached trees that hold a path as no longer known.
fn invalidate(tree: &mut Tree, path: &BStr) {
    tree.num_entries = None;
    if let Some(slash) = path.find_byte(b'/')
        && let Some(child) = tree.children.iter_mut().find(|child| child.name[..] == path[..slash])
    {
        invalidate(child, path[slash + 1..].as_bstr());
    }
}

/// Whether git may refuse a name, by the rules of any file system: what is its own there, also behind a backslash; and a
/// link in the place of a file that git reads.
fn may_be_refused(path: &BStr, is_link: bool) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_ascii_lowercase();
    // What is no ASCII may count for nothing.
    let name: Vec<u8> = name.into_iter().filter(u8::is_ascii).collect();
    let is_odd = || name.contains_str("git") || name.starts_with(b"gi7") || name.contains(&b'~');
    !is_storable(path, true) || path.contains(&b'\\') || (is_link && is_odd())
}

/// Whether no setting has git keep more in the index, or see other files, than is seen here.
fn has_plain_settings(repo: &Repo) -> bool {
    let off =
        ["core.ignoreCase", "core.precomposeUnicode", "core.ignoreStat", "core.splitIndex", "core.sparseCheckout"];
    let more = ["core.fsmonitor", "core.untrackedCache", "core.sharedRepository", "feature.manyFiles"];
    // Extensions that git writes for itself to read the index faster.
    let unset = ["index.threads", "index.recordEndOfIndexEntries", "index.recordOffsetTable"];
    let usual = |key, usual| repo.boolean(key).is_ok_and(|value| value.unwrap_or(usual) == usual);
    // `input` is no boolean.
    usual("core.autocrlf", false)
        && usual("core.fileMode", true)
        && usual("core.symlinks", true)
        && usual("index.skipHash", false)
        && off.iter().all(|key| usual(key, false))
        && more.iter().all(|key| usual(key, false))
        && unset.iter().all(|key| repo.given(key).is_none())
        && repo.knows_attributes()
}

/// Whether a part of the index may be in another file.
fn is_split(repo: &Repo) -> bool {
    let Ok(files) = std::fs::read_dir(&repo.git_dir) else { return true };
    files.flatten().any(|file| file.file_name().as_encoded_bytes().starts_with(b"sharedindex."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::index::Index;
    use crate::git::repo::testing::Fixture;
    use proptest::prelude::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

    /// What somebody does to one path.
    #[derive(Clone, Copy, Debug)]
    enum Act {
        Write(u8),
        Append(u8),
        Run,
        Link,
        Remove,
    }

    const NAMES: [&str; 9] = ["a", "a.b", "a0/x", "d/e/f", "d/e/g", "d/h", "d-e", "\u{e9} \n", "z/y/x/w"];

    fn act(f: &Fixture, name: &str, act: Act) {
        let path = f.path(name);
        match act {
            Act::Write(n) => {
                let _ = std::fs::remove_file(&path);
                // Of the same size as what is committed, in the same second, nobody could tell it from that.
                f.write(name, [n; 40]);
            }
            Act::Append(n) if path.is_file() && !path.is_symlink() => {
                let content = std::fs::read(&path).expect("read a file");
                f.write(name, [content, vec![n]].concat());
            }
            Act::Run if path.is_file() && !path.is_symlink() => {
                std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("set a mode");
            }
            Act::Link => {
                let _ = std::fs::remove_file(&path);
                std::fs::create_dir_all(path.parent().expect("a directory above")).expect("make directories");
                symlink("nowhere", &path).expect("make a link");
            }
            Act::Remove => drop(std::fs::remove_file(&path)),
            Act::Append(_) | Act::Run => {}
        }
    }

    /// All that git keeps of an index, and the tree that it makes by the trees that it has cached. Times are whole
    /// seconds: git heeds no more, and keeps what it had for a file that was made again within one.
    fn all(f: &Fixture) -> (Vec<String>, Vec<String>) {
        let shown = f.git(&["ls-files", "-s", "-v", "--debug", "-z"]);
        let whole_seconds = |line: &[u8]| match line.find("time: ") {
            Some(_) => line[..line.rfind_byte(b':').expect("a fraction")].to_str_lossy().into_owned(),
            None => line.to_str_lossy().into_owned(),
        };
        (shown.split(|byte| *byte == b'\n').map(whole_seconds).collect(), f.lines(&["write-tree"]))
    }

    /// Takes in each file, as a capture does before anything is staged.
    fn capture(f: &Fixture) {
        for name in NAMES {
            let Lookup::There(stat) = Worktree::new(&f.repo).find(name.into()).expect("look at a file") else {
                continue;
            };
            let Some(kind) = kind_of(&stat) else { continue };
            let content = Worktree::new(&f.repo).read(name.into(), kind).expect("read a file");
            f.repo.put_blob(&content.expect("it is there")).expect("make a blob");
        }
    }

    /// Whether it was written.
    fn write(f: &Fixture, paths: &[&str]) -> bool {
        let lock = Index::new(&f.repo).lock_index(Duration::ZERO).expect("lock the index");
        let paths: Vec<&BStr> = paths.iter().map(|path| BStr::new(*path)).collect();
        let done = stage(&lock, &paths).expect("nothing fails");
        lock.commit().expect("replace the index");
        done
    }

    fn captured(f: &Fixture, paths: &[&str]) -> bool {
        capture(f);
        write(f, paths)
    }

    /// An index with a file in each of several directories, and all trees cached.
    fn several() -> Fixture {
        let f = Fixture::new();
        for name in ["a", "d/e/f", "d/h", "far/away/file"] {
            f.commit(name, name);
        }
        f.git(&["write-tree"]);
        f
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn every_index_is_the_one_that_git_would_write(
            rounds in prop::collection::vec(prop::collection::vec((0..NAMES.len(), prop_oneof![
                any::<u8>().prop_map(Act::Write), any::<u8>().prop_map(Act::Append), Just(Act::Run), Just(Act::Link),
                Just(Act::Remove),
            ]), 1..8), 1..4),
            is_much in any::<bool>(),
        ) {
            let f = several();
            let names = if is_much { &NAMES[..] } else { &NAMES[..FEW] };
            let index = f.repo.git_dir().join("index");
            for acts in rounds {
                for (name, what) in acts {
                    act(&f, NAMES[name], what);
                }
                let kept = f.outside().join("index");
                std::fs::copy(&index, &kept).expect("copy the index");
                let modified = std::fs::metadata(&index).and_then(|about| about.modified()).expect("a time");
                prop_assert!(captured(&f, names), "it is a plain one");
                let read = Index::new(&f.repo).read_index().expect("read the index");
                prop_assert!(!is_much || read.tree().is_some_and(is_named), "each tree is named");
                let ours = all(&f);
                let names = names.join("\0") + "\0";
                std::fs::rename(&kept, &index).expect("bring the index back");
                std::fs::File::options().write(true).open(&index).and_then(|file| file.set_modified(modified)).expect("set a time");
                f.git_fed(&["update-index", "-z", "--add", "--remove", "--replace", "--stdin"], names.as_bytes());
                let gits = all(&f);
                prop_assert_eq!(ours.0, gits.0, "entry by entry, with stat data and flags");
                prop_assert_eq!(ours.1, gits.1, "no tree that changed is cached");
            }
        }
    }

    fn is_named(tree: &Tree) -> bool {
        tree.num_entries.is_some() && tree.children.iter().all(is_named)
    }

    /// What is to be staged, what keeps oxundo from it, and whether something does.
    fn staged_after(what: &str, settings: &[&str], prepare: impl Fn(&Fixture)) -> bool {
        let f = Fixture::with(settings);
        for name in ["a", "d/e/f", "d/h"] {
            f.commit(name, name);
        }
        f.write("a", "two");
        prepare(&f);
        let f = f.reopened();
        capture(&f);
        let index = f.repo.git_dir().join("index");
        let before = std::fs::read(&index).expect("read the index");
        let done = write(&f, &["a", "d/h"]);
        assert_eq!(done, std::fs::read(&index).expect("read the index") != before, "{what}: all or nothing");
        done
    }

    #[test]
    fn what_only_git_can_write_is_left_to_it() {
        assert!(staged_after("nothing in the way", &[], |_| ()));
        assert!(staged_after("it is flushed", &["core.fsync=all"], |_| ()));
        let settings = [
            "core.ignoreCase=true",
            "core.precomposeUnicode=true",
            "core.ignoreStat=true",
            "core.splitIndex=true",
            "core.sparseCheckout=true",
            "core.fsmonitor=true",
            "core.fsmonitor=.git/hook",
            "core.untrackedCache=true",
            "core.untrackedCache=keep",
            "core.sharedRepository=group",
            "feature.manyFiles=true",
            "core.autocrlf=true",
            "core.autocrlf=input",
            "core.fileMode=false",
            "core.symlinks=false",
            "index.skipHash=true",
            "index.threads=2",
            "index.recordEndOfIndexEntries=true",
            "attr.tree=HEAD",
            "core.attributesFile=.git/attributes",
        ];
        for setting in settings {
            assert!(!staged_after(setting, &[setting], |_| ()), "{setting}");
        }
        let usual =
            ["core.autocrlf=false", "core.sharedRepository=umask", "core.attributesFile=~/none", "index.skipHash=no"];
        assert!(!staged_after("a word that says the same is not known", &usual[1..2], |_| ()));
        assert!(staged_after("the usual settings", &[usual[0], usual[2], usual[3]], |_| ()));
        let commands: [&[&str]; 10] = [
            &["update-index", "--split-index"],
            &["update-index", "--index-version", "4"],
            &["update-index", "--force-untracked-cache"],
            &["update-index", "--assume-unchanged", "a"],
            &["update-index", "--skip-worktree", "d/h"],
            &["rm", "-q", "-r", "--cached", "d/e", "--", "d/h"],
            &["update-index", "--add", "--replace", "--cacheinfo", "160000,1111111111111111111111111111111111111111,a"],
            &[
                "update-index",
                "--add",
                "--replace",
                "--cacheinfo",
                "100644,1111111111111111111111111111111111111111,a/b",
            ],
            &["update-index", "--add", "--replace", "--cacheinfo", "100644,1111111111111111111111111111111111111111,d"],
            &["-c", "index.threads=4", "-c", "index.recordOffsetTable=true", "update-index", "--force-write-index"],
        ];
        for command in commands {
            let expected = command.contains(&"rm");
            assert_eq!(staged_after(&command.join(" "), &[], |f| drop(f.git(command))), expected, "{command:?}");
        }
    }

    #[test]
    fn content_that_something_converts_is_left_to_git() {
        let attributes = |text: &'static str| move |f: &Fixture| f.write(".gitattributes", text);
        for text in ["a ident\n", "* filter=lfs\n", "a working-tree-encoding=UTF-16\n", "d/h -text\na ident\n"] {
            assert!(!staged_after(text, &[], attributes(text)), "{text}");
        }
        for text in ["* text=auto\n", "* text eol=lf\n", "*.h ident\n", "a -text\n", "a diff=x\n", "a -filter\n"] {
            assert!(staged_after(text, &[], attributes(text)), "{text}");
            let with_returns = |f: &Fixture| {
                attributes(text)(f);
                f.write("a", "one\r\ntwo\r\n");
            };
            let is_text = text.contains(" text");
            assert_eq!(staged_after(text, &[], with_returns), !is_text, "{text}, with line ends that it converts");
        }
        assert!(!staged_after("a directory", &[], |f| {
            std::fs::remove_file(f.path("a")).expect("remove a file");
            std::fs::create_dir(f.path("a")).expect("make a directory");
        }));
    }

    #[test]
    fn a_name_that_git_refuses_is_left_to_it() {
        for name in ["x\\.git", "d/y\\.GIT\\config", ".git\\x", "git~1", ".git ", ".g\u{200c}it"] {
            assert!(may_be_refused(name.into(), false), "{name:?}");
        }
        for link in [
            ".gitmodules",
            "d/.GITMODULES",
            ".gitmodules ",
            "gitmod~1",
            ".g\u{200c}itmodules",
            "GI7EBA~1",
            ".gitmod\u{200c}ules",
        ] {
            assert!(may_be_refused(link.into(), true), "{link:?}");
        }
        for name in [".gitignore", ".github/x", "\u{e9}", "a b", "gi", "legit.rs"] {
            assert!(!may_be_refused(name.into(), false), "{name:?}");
        }
        assert!(!may_be_refused("d/.git.d/link".into(), true), "only its own name is a link's");
    }

    #[test]
    fn what_changes_after_it_was_captured_is_left_to_git() {
        let f = several();
        f.write("a", "captured");
        capture(&f);
        f.write("a", "edited since");
        assert!(!write(&f, &["a"]), "oxundo has no object for it");
        capture(&f);
        assert!(write(&f, &["a"]));
    }

    #[test]
    fn a_file_that_changed_in_the_second_of_the_index_is_not_called_clean() {
        let f = several();
        let index = f.repo.git_dir().join("index");
        let times = || {
            let of =
                |path: &std::path::Path| std::fs::metadata(path).and_then(|about| about.modified()).expect("a time");
            (of(&f.path("d/h")), of(&index))
        };
        // git compares whole seconds: an edit of the same size with the time of the one before.
        let (was, _) = times();
        f.write("d/h", "D/H");
        std::fs::File::options().write(true).open(f.path("d/h")).and_then(|file| file.set_modified(was)).expect("set");
        std::fs::File::options().write(true).open(&index).and_then(|file| file.set_modified(was)).expect("set a time");
        f.write("a", "two");
        assert!(!captured(&f, &["a"]), "a later index would call d/h clean");
        f.write("d/h", "d/h");
        std::fs::File::options().write(true).open(f.path("d/h")).and_then(|file| file.set_modified(was)).expect("set");
        assert!(captured(&f, &["a"]), "it has the content that the entry says");
    }
}
