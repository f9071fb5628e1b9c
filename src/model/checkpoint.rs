//! A checkpoint is the whole state at one instant, as plain data.

use crate::model::bytes::{exact, lossless, quoted, shell_word};
use crate::model::operation::Operation;
use crate::model::path::{is_at_or_below, parents};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Where HEAD is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The full name of the branch HEAD is on; `None` when it is detached.
    pub branch: Option<String>,
    /// The commit HEAD is at; `None` on an unborn branch.
    #[serde(with = "hex_option")]
    pub commit: Option<ObjectId>,
    /// The name that HEAD gives, where that is a branch which stands for the one that HEAD is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
}

impl Head {
    /// The name that HEAD gives; `None` when it is detached.
    pub fn given(&self) -> Option<&String> {
        self.through.as_ref().or(self.branch.as_ref())
    }

    /// The name under which the timeline keeps this HEAD's turns.
    pub fn stack(&self) -> &str {
        self.branch.as_deref().unwrap_or("HEAD")
    }

    /// Whether HEAD is on a ref that is no branch.
    pub fn is_on_other_ref(&self) -> bool {
        self.branch.as_deref().is_some_and(|name| !name.starts_with("refs/heads/"))
    }
}

/// A branch name as people write it; quoted as git quotes paths where it is not UTF-8.
pub fn short_branch(name: &str) -> Cow<'_, str> {
    shown_name(name.strip_prefix("refs/heads/").unwrap_or(name))
}

/// A branch as a word of a shell's command line, by the very bytes of its name.
pub fn branch_word(name: &str) -> String {
    shell_word(lossless::decode(name.strip_prefix("refs/heads/").unwrap_or(name)))
}

/// Where HEAD is or was, as people write it.
pub fn shown_place(branch: Option<&str>) -> String {
    branch.map_or_else(|| "a detached HEAD".to_owned(), |name| format!("'{}'", short_branch(name)))
}

/// A name of git's, such as a ref's or a worktree's, as people write it; quoted as git quotes paths where it is not UTF-8.
pub fn shown_name(name: &str) -> Cow<'_, str> {
    if name.contains('\0') { quoted(lossless::decode(name).as_bstr()).into() } else { name.into() }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A regular file.
    File,
    /// A regular file that its owner may execute.
    Executable,
    /// A symbolic link; its content is the target.
    Symlink,
}

impl Kind {
    /// `Executable` or `File` for a regular file with these permission bits: git looks at the owner's only.
    pub fn of_mode(mode: u32) -> Self {
        if mode & 0o100 == 0 { Self::File } else { Self::Executable }
    }
}

/// One captured file: what it is, its raw content, and its permission bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// File, executable or link.
    pub kind: Kind,
    /// The blob of its raw bytes, as they are in the worktree, no filter applied.
    #[serde(with = "hex")]
    pub id: ObjectId,
    /// The twelve mode bits; 0 for a link.
    pub mode: u32,
}

impl FileState {
    /// Whether `other` differs in its permission bits alone.
    pub fn same_content(&self, other: &Self) -> bool {
        self.id == other.id && (self.kind == Kind::Symlink) == (other.kind == Kind::Symlink)
    }
}

/// One index entry, with everything that git keeps of it except the stat data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexEntry {
    /// The mode as git writes it, for example `0o100644`.
    pub mode: u32,
    /// The content.
    #[serde(with = "hex")]
    pub id: ObjectId,
    /// 0, or 1 to 3 for an unmerged entry.
    pub stage: u8,
    /// Added with `git add -N`.
    pub intent_to_add: bool,
    /// Left out of the worktree by a sparse checkout.
    pub skip_worktree: bool,
    /// Marked with `git update-index --assume-unchanged`.
    pub assume_unchanged: bool,
}

impl IndexEntry {
    /// An ordinary entry: stage 0 and no flags.
    pub fn plain(mode: u32, id: ObjectId) -> Self {
        Self { mode, id, stage: 0, intent_to_add: false, skip_worktree: false, assume_unchanged: false }
    }

    /// Whether it is a submodule's.
    pub fn is_gitlink(&self) -> bool {
        self.mode & 0o170_000 == 0o160_000
    }

    /// Whether a tree can hold this entry: stage 0 and no flag set.
    pub fn is_plain(&self) -> bool {
        self.stage == 0 && !self.intent_to_add && !self.skip_worktree && !self.assume_unchanged
    }
}

/// The index: its ordinary entries as a tree, what a sparse checkout leaves out by directories, and
/// all other entries with a flag or a stage one by one.
#[derive(Clone, Debug)]
pub struct IndexState {
    /// All stage 0 entries that are not intent-to-add.
    pub tree: ObjectId,
    /// The directories below which every entry is left out of the worktree.
    pub sparse: BTreeSet<BString>,
    /// Every other entry that carries a flag or a stage, by path.
    pub special: BTreeMap<BString, Vec<IndexEntry>>,
}

impl IndexState {
    /// Whether git leaves a file out of the worktree.
    pub fn leaves_out(&self, path: &BString) -> bool {
        let is_marked = |entries: &Vec<IndexEntry>| entries.iter().any(|entry| entry.skip_worktree);
        self.special.get(path).is_some_and(is_marked) || self.sparse_directory(path.as_bstr()).is_some()
    }

    /// The paths of which the sides of a merge are staged.
    pub fn unmerged(&self) -> Vec<BString> {
        let is_unmerged = |entries: &Vec<IndexEntry>| entries.iter().any(|entry| entry.stage > 0);
        self.special.iter().filter(|(_, entries)| is_unmerged(entries)).map(|(path, _)| path.clone()).collect()
    }

    /// The sparse directory that a path is in.
    pub fn sparse_directory<'a>(&self, path: &'a BStr) -> Option<&'a BStr> {
        if self.sparse.is_empty() { None } else { parents(path).find(|directory| self.sparse.contains(*directory)) }
    }
}

/// One entry of `git stash list`, newest first, with its reflog line's exact data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StashEntry {
    /// The stash commit.
    #[serde(with = "hex")]
    pub id: ObjectId,
    /// The name in the reflog line.
    pub name: String,
    /// The e-mail address in the reflog line.
    pub email: String,
    /// Its date as `<seconds> <zone>`.
    pub date: String,
    /// The message that `git stash list` shows.
    pub message: String,
}

/// The usual permission bits, and the files that have others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Modes {
    /// What ordinary files, executables and directories have.
    pub usual: UsualModes,
    /// The files, and the directories (ending with a slash), that have other bits.
    pub unusual: BTreeMap<BString, u32>,
}

/// The permission bits that most files and directories of a worktree have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsualModes {
    /// Of a regular file.
    pub file: u32,
    /// Of an executable.
    pub executable: u32,
    /// Of a directory.
    pub directory: u32,
}

impl UsualModes {
    /// What a process with this umask gives to new files.
    pub fn from_umask(umask: u32) -> Self {
        Self { file: 0o666 & !umask, executable: 0o777 & !umask, directory: 0o777 & !umask }
    }

    /// The usual mode of a file of this kind.
    pub fn of(&self, kind: Kind) -> u32 {
        match kind {
            Kind::File => self.file,
            Kind::Executable => self.executable,
            Kind::Symlink => 0,
        }
    }
}

/// Why something that exists is not in a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A file larger than `oxundo.maxFileSize`.
    Large,
    /// A directory with more files than `oxundo.maxDirEntries`.
    Many,
    /// A directory that `oxundo.skipDir` names.
    SkipDir,
    /// A path that `oxundo.exclude` names.
    Excluded,
    /// A submodule or another repository.
    Repository,
    /// A socket, a FIFO or a device.
    Special,
    /// A file that could not be read.
    Unreadable,
    /// A name that git refuses to store.
    Name,
    /// A directory with more directories above it than git allows.
    Deep,
    /// A directory or file with more bytes than fit into `oxundo.maxCapture`.
    TooMuch,
    /// A directory with more files than fit into `oxundo.maxCaptureFiles`.
    TooMany,
    /// A file or directory that others cannot read, though they could read what git has of it.
    Private,
}

/// Something that exists in the worktree but was not captured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Skipped {
    /// Its path; a directory includes everything below it.
    #[serde(with = "exact")]
    pub path: BString,
    /// Why.
    pub reason: Reason,
    /// Its size in bytes, or where there are too many files their number.
    pub size: u64,
    /// A fingerprint to tell whether it changed, where there is one: a large file's size and time, a
    /// repository's HEAD.
    #[serde(default)]
    pub state: Option<String>,
}

/// Something that was there before a turn and was not captured, ignored files among it: which file or directory it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncaptured {
    /// What tells it from every other, whatever it is called.
    pub file: String,
    /// Its permission bits.
    pub mode: u32,
    /// What a copy has in common with it: of a file its size and the time of its last change, of a directory that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl Skipped {
    /// Whether a turn that makes such a thing can have it moved aside and back.
    pub fn is_movable(&self) -> bool {
        use Reason as R;
        matches!(self.reason, R::Large | R::SkipDir | R::Excluded | R::Deep | R::TooMuch | R::TooMany | R::Private)
    }
}

/// Whether a branch belongs to another worktree: all worktrees share the branches, and what happens in another
/// is not part of a turn.
fn is_elsewhere(before: &Checkpoint, after: &Checkpoint, name: &String) -> bool {
    let ends = [before, after];
    let ours = ends.iter().any(|end| end.head.branch.as_ref() == Some(name));
    !ours && ends.iter().any(|end| end.elsewhere.contains(name))
}

/// The branches that a turn moved, made or deleted.
pub fn branch_changes(before: &Checkpoint, after: &Checkpoint) -> BTreeMap<String, Change<Option<ObjectId>>> {
    let names = before.branches.keys().chain(after.branches.keys());
    let changes = names.filter(|name| !is_elsewhere(before, after, name)).map(|name| {
        let (from, to) = (before.branches.get(name), after.branches.get(name));
        (name.clone(), Change::new(from.copied(), to.copied()))
    });
    changes.filter(|(_, change)| change.from != change.to).collect()
}

/// The branches that a turn made stand for another ref, or no more.
pub fn symbolic_changes(before: &Checkpoint, after: &Checkpoint) -> BTreeMap<String, Change<Option<String>>> {
    let names = before.symbolic.keys().chain(after.symbolic.keys());
    let changes = names
        .filter(|name| !is_elsewhere(before, after, name))
        .map(|name| (name.clone(), Change::new(before.symbolic.get(name).cloned(), after.symbolic.get(name).cloned())));
    changes.filter(|(_, change)| change.from != change.to).collect()
}

/// A stash list with the entries of a change as that has them: what the reflog does
/// not know any more was read out of its commit.
pub fn known_as(now: Vec<StashEntry>, change: &Change<Vec<StashEntry>>) -> Vec<StashEntry> {
    let known: Vec<&StashEntry> = change.from.iter().chain(&change.to).collect();
    let as_there = |entry: StashEntry| match known.iter().find(|other| other.id == entry.id) {
        Some(other) if !known.contains(&&entry) => (*other).clone(),
        _ => entry,
    };
    now.into_iter().map(as_there).collect()
}

/// What a turn did to the stash list, without entries that were made in another worktree.
pub fn stash_change(before: &Checkpoint, after: &Checkpoint) -> Option<Change<Vec<StashEntry>>> {
    // An entry's message names the branch that it was made on.
    let made_elsewhere = |entry: &StashEntry| {
        let on = entry.message.strip_prefix("WIP on ").or_else(|| entry.message.strip_prefix("On "));
        let branch = on.and_then(|on| on.split_once(':')).map(|(branch, _)| format!("refs/heads/{branch}"));
        branch.is_some_and(|branch| is_elsewhere(before, after, &branch))
    };
    let ours = after.stash.iter().filter(|entry| before.stash.contains(entry) || !made_elsewhere(entry));
    let stash = Change::new(before.stash.clone(), ours.cloned().collect());
    (stash.from != stash.to).then_some(stash)
}

/// What existed but was not captured before a turn, and has changed or is gone after it; and what is new, and cannot be moved.
pub fn uncovered_changes<'a>(before: &'a Checkpoint, after: &'a Checkpoint) -> Vec<&'a Skipped> {
    let changed = |old: &&Skipped| {
        let now = after.skipped.iter().find(|new| new.path == old.path);
        now.is_none_or(|new| new.reason != old.reason || new.state != old.state)
    };
    let is_old = |new: &&Skipped| before.skipped.iter().any(|old| old.path == new.path);
    let new = after.skipped.iter().filter(|new| !new.is_movable() && new.reason != Reason::Many && !is_old(new));
    before.skipped.iter().filter(changed).chain(new).collect()
}

/// The whole state at one instant.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// HEAD's branch and commit.
    pub head: Head,
    /// Every branch and where it points.
    pub branches: BTreeMap<String, ObjectId>,
    /// The branches that stand for another ref, and for which.
    pub symbolic: BTreeMap<String, String>,
    /// The branches that other worktrees have checked out: their changes are not this turn's.
    pub elsewhere: BTreeSet<String>,
    /// The stash list, newest first.
    pub stash: Vec<StashEntry>,
    /// What git was in the middle of.
    pub operation: Operation,
    /// The index.
    pub index: IndexState,
    /// A tree of every captured file with its raw bytes.
    pub worktree: ObjectId,
    /// Permission bits.
    pub modes: Modes,
    /// Directories that hold no captured file.
    pub directories: BTreeSet<BString>,
    /// What exists and was not captured.
    pub skipped: Vec<Skipped>,
    /// What exists and was not captured, ignored or not, by path, as far as a turn may move it; only before a turn.
    pub uncaptured: BTreeMap<BString, Uncaptured>,
    /// The ignore rules by which this was captured.
    pub rules: ObjectId,
}

impl Checkpoint {
    /// Without what only the end of a turn asks for: which files those are that it does not have.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self { uncaptured: BTreeMap::new(), ..self.clone() }
    }

    /// Whether something of this name exists and was not captured.
    pub fn skips(&self, path: &BString) -> bool {
        self.skipped.iter().any(|skipped| skipped.path == *path)
    }

    /// Whether a path is one of what exists and was not captured, or in it.
    pub fn is_beyond(&self, path: &BStr) -> bool {
        self.skipped.iter().any(|skipped| is_at_or_below(path, skipped.path.as_bstr()))
    }

    /// Whether a path is in a repository within this one, which was not captured.
    pub fn is_in_repository(&self, path: &BStr) -> bool {
        let is_below = |above: &BString| above.as_bstr() != path && is_at_or_below(path, above.as_bstr());
        self.skipped.iter().any(|skipped| skipped.reason == Reason::Repository && is_below(&skipped.path))
    }

    /// The commits that its branches are at, and HEAD.
    pub fn tips(&self) -> Vec<ObjectId> {
        self.branches.values().copied().chain(self.head.commit).collect()
    }

    /// HEAD, with its branch if it is on one, is at another commit.
    pub fn advance(&mut self, commit: ObjectId) {
        self.head.commit = Some(commit);
        if let Some(branch) = &self.head.branch {
            self.branches.insert(branch.clone(), commit);
        }
    }
}

/// Something beyond the limits that a turn made: not captured, but moved aside by undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aside {
    /// Where it is kept while it is aside, below oxundo's scratch directory.
    pub store: String,
    /// A fingerprint to tell whether it is still what the turn left, where there is one.
    pub state: Option<String>,
    /// Of a directory, one of all that is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
}

/// A value before and after a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change<T> {
    /// Where the change starts.
    pub from: T,
    /// Where it leads.
    pub to: T,
}

impl<T> Change<T> {
    /// From one value to another.
    pub fn new(from: T, to: T) -> Self {
        Self { from, to }
    }

    /// The way back.
    #[must_use]
    pub fn inverse(self) -> Self {
        Self { from: self.to, to: self.from }
    }
}

/// All that differs between two checkpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Files, by path.
    pub files: BTreeMap<BString, Change<Option<FileState>>>,
    /// Directories whose existence without captured files, or whose mode, changed.
    /// `None` means that nothing but captured files keeps it.
    pub directories: BTreeMap<BString, Change<Option<u32>>>,
    /// What the turn made beyond the limits, by path: whether it is there, and its state.
    pub aside: BTreeMap<BString, Change<Option<Aside>>>,
    /// Index entries, by path.
    pub index: BTreeMap<BString, Change<Vec<IndexEntry>>>,
    /// Branches, by full name.
    pub branches: BTreeMap<String, Change<Option<ObjectId>>>,
    /// Branches that stand for another ref before or after, and for which.
    pub symbolic: BTreeMap<String, Change<Option<String>>>,
    /// HEAD.
    pub head: Option<Change<Head>>,
    /// The stash list.
    pub stash: Option<Change<Vec<StashEntry>>>,
    /// What git is in the middle of.
    pub operation: Option<Change<Operation>>,
}

impl Delta {
    /// Whether the two checkpoints are the same.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Leads branches from where they are before it to where they are after it.
    pub fn lead(&self, tips: &mut BTreeMap<String, ObjectId>) {
        for (name, change) in &self.branches {
            match change.to {
                Some(to) => tips.insert(name.clone(), to),
                None => tips.remove(name),
            };
        }
    }

    /// The same change the other way round.
    #[must_use]
    pub fn inverse(self) -> Self {
        fn turned<K: Ord, T>(map: BTreeMap<K, Change<T>>) -> BTreeMap<K, Change<T>> {
            map.into_iter().map(|(key, change)| (key, change.inverse())).collect()
        }
        Self {
            files: turned(self.files),
            directories: turned(self.directories),
            aside: turned(self.aside),
            index: turned(self.index),
            branches: turned(self.branches),
            symbolic: turned(self.symbolic),
            head: self.head.map(Change::inverse),
            stash: self.stash.map(Change::inverse),
            operation: self.operation.map(Change::inverse),
        }
    }
}

/// Object ids as hexadecimal strings in records and JSON.
pub mod hex {
    use gix::ObjectId;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// For `#[serde(with)]`.
    pub fn serialize<S: Serializer>(id: &ObjectId, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(id)
    }

    /// For `#[serde(with)]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectId, D::Error> {
        ObjectId::from_hex(String::deserialize(from)?.as_bytes()).map_err(D::Error::custom)
    }
}

/// Optional object ids as hexadecimal strings or null.
pub mod hex_option {
    #![expect(clippy::ref_option, reason = "serde hands the field over by reference")]

    use gix::ObjectId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    /// For `#[serde(with)]`.
    pub fn serialize<S: Serializer>(id: &Option<ObjectId>, to: S) -> Result<S::Ok, S::Error> {
        id.map(|id| id.to_string()).serialize(to)
    }

    /// For `#[serde(with)]`.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<ObjectId>, D::Error> {
        Option::<String>::deserialize(from)?
            .map(|text| ObjectId::from_hex(text.as_bytes()).map_err(D::Error::custom))
            .transpose()
    }
}
