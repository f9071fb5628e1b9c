//! A plan: which refs, files, directories and index entries change, from what and to
//! what. It is the one value that is previewed, serialised, applied, and kept as the
//! journal from which an interrupted apply is finished or rolled back.

use crate::model::bytes::exact;
use crate::model::checkpoint::{Change, FileState, Head, IndexEntry, StashEntry, hex_option, short_branch};
use crate::model::operation::Operation;
use gix::ObjectId;
use gix::bstr::{BStr, BString};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Take turns back.
    Undo,
    /// Bring turns back.
    Redo,
    /// Bring files of an earlier state into the worktree.
    Restore,
    /// Start a branch at a turn.
    Branch,
    /// Make one commit out of several.
    Squash,
    /// Name the present state.
    Checkpoint,
    /// Save the user's work in a dirty commit before a turn.
    Begin,
    /// Commit what a turn changed.
    End,
    /// Let old turns go.
    Gc,
}

impl Op {
    /// As it reads in the operation log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Restore => "restore",
            Self::Branch => "branch",
            Self::Squash => "squash",
            Self::Checkpoint => "checkpoint",
            Self::Begin => "begin",
            Self::End => "end",
            Self::Gc => "gc",
        }
    }

    /// Whether it is about the commits of turns: of an open one too, whose end makes one.
    pub fn is_about_commits(self) -> bool {
        matches!(self, Self::Branch | Self::Squash)
    }
}

/// A file that moves from one state to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMove {
    /// The path.
    #[serde(with = "exact")]
    pub path: BString,
    /// What is there before the plan is applied.
    pub from: Option<FileState>,
    /// What is there after.
    pub to: Option<FileState>,
}

impl FileMove {
    /// Whether there is a file on both sides.
    pub fn is_change(&self) -> bool {
        self.from.is_some() && self.to.is_some()
    }

    /// `write`, `delete` or `mode`.
    pub fn action(&self) -> &'static str {
        match (&self.from, &self.to) {
            (_, None) => "delete",
            (Some(from), Some(to)) if from.same_content(to) => "mode",
            _ => "write",
        }
    }
}

/// A directory that is made, removed, or given another mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryMove {
    /// The path, without a slash at its end.
    #[serde(with = "exact")]
    pub path: BString,
    /// Its mode before, where it exists.
    pub from: Option<u32>,
    /// Its mode after, where it exists.
    pub to: Option<u32>,
}

/// Something beyond the limits that is moved out of the worktree, or back into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AsideMove {
    /// The path.
    #[serde(with = "exact")]
    pub path: BString,
    /// Where it is kept while it is aside, below oxundo's scratch directory.
    pub store: String,
    /// Out of the worktree, or back.
    pub out: bool,
    /// Which file or directory it is: after a kill this tells it from what else is in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// A fingerprint of all of it as it was found: what somebody has saved in it since does not go with it. None where the plan
    /// changes something in it, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl AsideMove {
    /// A move of whatever is there.
    pub fn new(path: BString, store: String, out: bool) -> Self {
        Self { path, store, out, file: None, state: None }
    }
}

/// An index path whose entries are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexMove {
    /// The path.
    #[serde(with = "exact")]
    pub path: BString,
    /// Its entries before.
    pub from: Vec<IndexEntry>,
    /// Its entries after.
    pub to: Vec<IndexEntry>,
}

impl IndexMove {
    /// Removes all entries of a path from the index.
    pub fn removal(path: &BStr) -> Self {
        Self { path: path.to_owned(), from: Vec::new(), to: Vec::new() }
    }
}

/// A branch that moves, appears or goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BranchMove {
    /// Its full name.
    pub name: String,
    /// Where it points before.
    #[serde(with = "hex_option")]
    pub from: Option<ObjectId>,
    /// Where it points after.
    #[serde(with = "hex_option")]
    pub to: Option<ObjectId>,
}

/// A branch that comes to stand for another ref, or no more: beside its move, where it is a branch of its own on one side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SymbolicMove {
    /// Its full name.
    pub name: String,
    /// The ref that it stands for before.
    pub from: Option<String>,
    /// The ref that it stands for after.
    pub to: Option<String>,
}

/// All that one operation changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The version of this record's format.
    pub v: u32,
    /// What it is for.
    pub op: Op,
    /// The turns it walks over, in the order of the walk.
    pub turns: Vec<u64>,
    /// HEAD before and after.
    pub head: Change<Head>,
    /// Branches.
    pub branches: Vec<BranchMove>,
    /// Branches that stand for other refs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbolic: Vec<SymbolicMove>,
    /// The stash list, where it changes.
    pub stash: Option<Change<Vec<StashEntry>>>,
    /// What git is in the middle of, which must not change meanwhile; `None` where that is no matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Change<Operation>>,
    /// Index entries.
    pub index: Vec<IndexMove>,
    /// Files.
    pub files: Vec<FileMove>,
    /// Directories.
    pub directories: Vec<DirectoryMove>,
    /// What is beyond the limits.
    pub aside: Vec<AsideMove>,
    /// The user's edits that survive it.
    #[serde(skip)]
    pub kept_edits: Vec<BString>,
    /// What will no longer be staged.
    #[serde(skip)]
    pub unstaged: Vec<BString>,
    /// What stays staged, and may have lines of the turns.
    #[serde(skip)]
    pub still_staged: Vec<BString>,
    /// The files whose edits it overwrites, where that was asked for.
    #[serde(skip)]
    pub overwritten: Vec<BString>,
    /// The directories that it moves aside though something in them has changed since.
    #[serde(skip)]
    pub touched: Vec<BString>,
    /// The directories that stay, since a repository is in them.
    #[serde(skip)]
    pub staying: Vec<BString>,
    /// What the way back over each turn needs to know.
    #[serde(skip)]
    #[serde(rename = "carried")]
    pub returns: Vec<(u64, ReturnState)>,
}

impl Plan {
    /// A plan that changes nothing.
    pub fn empty(op: Op, head: Head) -> Self {
        Self {
            v: 1,
            op,
            turns: Vec::new(),
            head: Change::new(head.clone(), head),
            branches: Vec::new(),
            symbolic: Vec::new(),
            stash: None,
            operation: None,
            index: Vec::new(),
            files: Vec::new(),
            directories: Vec::new(),
            aside: Vec::new(),
            kept_edits: Vec::new(),
            unstaged: Vec::new(),
            still_staged: Vec::new(),
            overwritten: Vec::new(),
            touched: Vec::new(),
            staying: Vec::new(),
            returns: Vec::new(),
        }
    }

    /// Whether nothing moves.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.directories.is_empty()
            && self.aside.is_empty()
            && self.index.is_empty()
            && self.branches.is_empty()
            && self.symbolic.is_empty()
            && self.stash.is_none()
            && self.moved_operation().is_none()
            && !self.moves_head()
    }

    /// What git is in the middle of, if that changes.
    pub fn moved_operation(&self) -> Option<&Change<Operation>> {
        self.operation.as_ref().filter(|operation| operation.from != operation.to)
    }

    /// Whether it changes more than the index and where branches are.
    pub fn changes_files(&self) -> bool {
        !(self.files.is_empty() && self.directories.is_empty() && self.aside.is_empty())
            || self.stash.is_some()
            || self.moved_operation().is_some()
            || self.moves_head()
    }

    /// The plan that takes all of this back.
    #[must_use]
    pub fn inverse(mut self) -> Self {
        self.head = self.head.inverse();
        self.stash = self.stash.map(Change::inverse);
        self.operation = self.operation.map(Change::inverse);
        for branch in &mut self.branches {
            std::mem::swap(&mut branch.from, &mut branch.to);
        }
        for symbolic in &mut self.symbolic {
            std::mem::swap(&mut symbolic.from, &mut symbolic.to);
        }
        for entry in &mut self.index {
            std::mem::swap(&mut entry.from, &mut entry.to);
        }
        for file in &mut self.files {
            std::mem::swap(&mut file.from, &mut file.to);
        }
        for directory in &mut self.directories {
            std::mem::swap(&mut directory.from, &mut directory.to);
        }
        for aside in &mut self.aside {
            aside.out = !aside.out;
        }
        self
    }

    /// Every path that changes in the worktree, with what is done to it: `write`, `delete` or `mode`.
    pub fn actions(&self) -> Vec<(&BString, &'static str)> {
        // What makes way for something else is no second change.
        let comes = |path: &BString| self.aside.iter().any(|aside| !aside.out && aside.path == *path);
        let file_comes = |path: &BString| self.files.iter().any(|file| file.path == *path && file.to.is_some());
        let files = self.files.iter().filter(|file| file.to.is_some() || !comes(&file.path));
        let files = files.map(|file| (&file.path, file.action()));
        let stays = |aside: &&AsideMove| !aside.out || !(comes(&aside.path) || file_comes(&aside.path));
        let aside = self.aside.iter().filter(stays);
        let aside = aside.map(|aside| (&aside.path, if aside.out { "delete" } else { "write" }));
        files.chain(aside).collect()
    }

    /// The contents of files and index entries that it replaces or deletes, without those that are known.
    pub fn replaced(&self, is_known: impl Fn(&BString, ObjectId) -> bool) -> BTreeSet<(BString, ObjectId)> {
        let files = self.files.iter().filter_map(|file| {
            let (from, to) = (file.from?, file.to);
            (to.is_none_or(|to| to.id != from.id)).then_some((&file.path, from.id))
        });
        let entries = self.index.iter().flat_map(|moved| {
            let goes = moved.from.iter().filter(|entry| moved.to.iter().all(|to| to.id != entry.id));
            goes.filter(|entry| !entry.is_gitlink()).map(|entry| (&moved.path, entry.id))
        });
        let all = files.chain(entries).filter(|(path, id)| !is_known(path, *id));
        all.map(|(path, id)| (path.clone(), id)).collect()
    }

    /// Whether HEAD itself is rewritten: another branch, or a detached commit.
    pub fn moves_head(&self) -> bool {
        self.head.from.given() != self.head.to.given()
            || self.head.from.branch != self.head.to.branch
            || (self.head.to.branch.is_none() && self.head.from.commit != self.head.to.commit)
    }

    /// Every tip that moves, and that commits may leave: `(name, from, to)`.
    pub fn tips(&self) -> Vec<(String, Option<ObjectId>, Option<ObjectId>)> {
        let mut tips: Vec<_> = self
            .branches
            .iter()
            .map(|branch| (short_branch(&branch.name).into_owned(), branch.from, branch.to))
            .collect();
        if self.head.from.branch.is_none() && self.moves_head() {
            tips.push(("HEAD".to_owned(), self.head.from.commit, self.head.to.commit));
        }
        tips
    }
}

/// Where an undo or redo of one turn did not start or end at the turn's own states, because the user's edits
/// were kept, or overwritten. The changes are inverted: the next walk over the turn, the other way, applies
/// them to come back to the very state that this one started from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnState {
    /// The edits were overwritten: the way back restores them, and then they are edits again.
    pub overwritten: bool,
    /// Files, in the order of their paths, as all three lists are.
    pub files: Vec<FileMove>,
    /// Directories.
    pub directories: Vec<DirectoryMove>,
    /// Index entries.
    pub index: Vec<IndexMove>,
    /// What was made beyond the limits and was not there: it is not kept aside, and does not come back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<String>,
    /// Branches that were not where the turn had left them: one that the user has deleted stays deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<BranchMove>,
    /// The stash list, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stash: Option<Change<Vec<StashEntry>>>,
    /// What git was in the middle of, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Change<Operation>>,
    /// HEAD's commit, where somebody has committed beside a turn that moved no ref.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex_option")]
    pub head: Option<ObjectId>,
}

impl ReturnState {
    /// Whether the walk went exactly from one of the turn's states to the other.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
            && self.directories.is_empty()
            && self.index.is_empty()
            && self.absent.is_empty()
            && self.branches.is_empty()
            && self.stash.is_none()
            && self.operation.is_none()
            && self.head.is_none()
    }

    /// What is remembered of a branch.
    pub fn branch(&self, name: &str) -> Option<Change<Option<ObjectId>>> {
        let found = self.branches.iter().find(|branch| branch.name == name)?;
        Some(Change::new(found.from, found.to))
    }

    /// Whether something beyond the limits was not there when the walk came by.
    pub fn was_absent(&self, path: &BStr) -> bool {
        !self.absent.is_empty() && self.absent.contains(&exact::encode(path))
    }

    /// What is remembered of a file.
    pub fn file(&self, path: &BString) -> Option<Change<Option<FileState>>> {
        let found = &self.files[self.files.binary_search_by(|file| file.path.cmp(path)).ok()?];
        Some(Change::new(found.from, found.to))
    }

    /// What is remembered of a directory.
    pub fn directory(&self, path: &BString) -> Option<Change<Option<u32>>> {
        let found = &self.directories[self.directories.binary_search_by(|directory| directory.path.cmp(path)).ok()?];
        Some(Change::new(found.from, found.to))
    }

    /// What is remembered of a path's index entries.
    pub fn entries(&self, path: &BString) -> Option<Change<Vec<IndexEntry>>> {
        let found = &self.index[self.index.binary_search_by(|entry| entry.path.cmp(path)).ok()?];
        Some(Change::new(found.from.clone(), found.to.clone()))
    }

    /// Every blob that it needs.
    pub fn blobs(&self) -> impl Iterator<Item = ObjectId> {
        let files = self.files.iter().flat_map(|file| [file.from, file.to]).flatten().map(|state| state.id);
        let entries = self.index.iter().flat_map(|entry| entry.from.iter().chain(&entry.to));
        let operations =
            self.operation.iter().flat_map(|change| change.from.files.values().chain(change.to.files.values()));
        files.chain(entries.filter(|entry| !entry.is_gitlink()).map(|entry| entry.id)).chain(operations.copied())
    }
}
