//! From the turns to walk over and the present state to a plan: which refs,
//! files, directories and index entries move from what to what. The plan is
//! the one value that is previewed, serialised, applied, and kept as the
//! journal from which an interrupted apply is finished or rolled back.
//!
//! Every value is carried over by the same rule. With `from` what the turn
//! left, `to` what it found, and `now` what is there:
//!
//! | now | result |
//! |---|---|
//! | = from | to |
//! | = to | stays |
//! | else | a conflict |
//!
//! Nothing that no turn changed is ever in a plan, so all else stays as it is.

use super::bytes::{exact, quoted, shown};
use super::checkpoint::{
    Aside, Change, Delta, FileState, Head, IndexEntry, Kind, StashEntry, hex_option, short_branch,
};
use crate::error::{Code, Refusal};
use gix::ObjectId;
use gix::bstr::{BStr, BString, ByteSlice};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What stands at a path of the worktree now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Present {
    /// Nothing.
    Absent,
    /// A file or link.
    File(FileState),
    /// A directory, with every file and every empty directory (a slash behind) below it.
    Directory(Vec<BString>),
    /// Nothing, because this parent of it is not a directory.
    Behind(BString),
    /// Something that oxundo never touches: a FIFO, a repository, an unreadable file.
    Other,
}

impl Present {
    fn file(&self) -> Option<FileState> {
        match self {
            Self::File(state) => Some(*state),
            _ => None,
        }
    }
}

/// The present state of all that the turns touch.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Files, by path.
    pub files: BTreeMap<BString, Present>,
    /// What the turns made beyond the limits, where it is there, with its present state; and
    /// whether it is kept aside.
    pub aside: BTreeMap<BString, (Option<Option<String>>, bool)>,
    /// The modes of the directories that exist.
    pub directories: BTreeMap<BString, u32>,
    /// Index entries, by path.
    pub index: BTreeMap<BString, Vec<IndexEntry>>,
    /// All branches.
    pub branches: BTreeMap<String, ObjectId>,
    /// HEAD.
    pub head: Head,
    /// The stash list.
    pub stash: Vec<StashEntry>,
    /// Files that differ from the newest turn's end, the user's edits.
    pub edited: Vec<BString>,
}

/// What a plan is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// Take turns back.
    Undo,
    /// Bring turns back.
    Redo,
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
            Self::Begin => "begin",
            Self::End => "end",
            Self::Gc => "gc",
        }
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
    /// The path, without a slash behind.
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
    /// Takes whatever entries a path has out of the index.
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
    /// The stash list, where it changes.
    pub stash: Option<Change<Vec<StashEntry>>>,
    /// Index entries.
    pub index: Vec<IndexMove>,
    /// Files.
    pub files: Vec<FileMove>,
    /// Directories.
    pub directories: Vec<DirectoryMove>,
    /// What is beyond the limits.
    pub aside: Vec<AsideMove>,
    /// The user's later edits, which stay.
    #[serde(skip)]
    pub kept_edits: Vec<BString>,
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
            stash: None,
            index: Vec::new(),
            files: Vec::new(),
            directories: Vec::new(),
            aside: Vec::new(),
            kept_edits: Vec::new(),
        }
    }

    /// The way back from where this plan leads.
    #[must_use]
    pub fn inverse(mut self) -> Self {
        self.head = self.head.inverse();
        self.stash = self.stash.map(Change::inverse);
        for branch in &mut self.branches {
            std::mem::swap(&mut branch.from, &mut branch.to);
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
        let files = self.files.iter().map(|file| (&file.path, file.action()));
        let aside = self.aside.iter().map(|aside| (&aside.path, if aside.out { "delete" } else { "write" }));
        files.chain(aside).collect()
    }

    /// Whether HEAD itself is rewritten: another branch, or a detached commit.
    pub fn moves_head(&self) -> bool {
        self.head.from.branch != self.head.to.branch
            || (self.head.to.branch.is_none() && self.head.from.commit != self.head.to.commit)
    }

    /// Every tip that commits may leave: `(name, from, to)`.
    pub fn tips(&self) -> Vec<(String, Option<ObjectId>, Option<ObjectId>)> {
        let mut tips: Vec<_> = self
            .branches
            .iter()
            .map(|branch| (short_branch(&branch.name).to_owned(), branch.from, branch.to))
            .collect();
        if self.head.from.branch.is_none() && self.moves_head() {
            tips.push(("HEAD".to_owned(), self.head.from.commit, self.head.to.commit));
        }
        tips
    }
}

/// Plans a walk over turns: `steps` in walking order, each turned so that
/// `from` is where the walk comes from.
///
/// # Errors
///
/// A refusal `branch` when a ref is not where the last turn left it, and
/// `conflict` with every path whose present state the walk would overwrite.
pub fn travel(op: Op, steps: &[(u64, Delta)], facts: &Facts) -> Result<Plan, Refusal> {
    let mut walk = Walk::new(facts);
    for (_, delta) in steps {
        walk.step(delta);
    }
    walk.check_places();
    let mut plan = walk.finish(op)?;
    plan.turns = steps.iter().map(|(turn, _)| *turn).collect();
    Ok(plan)
}

struct Walk<'a> {
    facts: &'a Facts,
    files: BTreeMap<BString, Option<FileState>>,
    directories: BTreeMap<BString, Option<u32>>,
    aside: BTreeMap<BString, AsideMove>,
    index: BTreeMap<BString, Vec<IndexEntry>>,
    branches: BTreeMap<String, Option<ObjectId>>,
    head: Head,
    stash: Vec<StashEntry>,
    conflicts: Vec<BString>,
    moved: Vec<String>,
}

/// The rule of this module's table; `None` is a conflict.
fn carried<T: PartialEq + Clone>(now: &T, change: &Change<T>) -> Option<T> {
    if *now == change.from {
        Some(change.to.clone())
    } else if *now == change.to || change.from == change.to {
        Some(now.clone())
    } else {
        None
    }
}

/// The rule for a file: its content and its mode are carried each on its own.
fn carried_file(now: Option<FileState>, change: &Change<Option<FileState>>) -> Result<Option<FileState>, Overlap> {
    if let Some(done) = carried(&now, change) {
        return Ok(done);
    }
    match (now, change.from, change.to) {
        (Some(now), Some(from), Some(to)) => carried_parts(now, from, to).map(Some).ok_or(Overlap),
        _ => Err(Overlap),
    }
}

/// The present state is neither end of the change.
struct Overlap;

fn carried_parts(now: FileState, from: FileState, to: FileState) -> Option<FileState> {
    let content = carried(
        &(now.kind == Kind::Symlink, now.id),
        &Change::new((from.kind == Kind::Symlink, from.id), (to.kind == Kind::Symlink, to.id)),
    )?;
    let (kind, mode) = carried(&(now.kind, now.mode), &Change::new((from.kind, from.mode), (to.kind, to.mode)))?;
    ((kind == Kind::Symlink) == content.0).then_some(FileState { kind, id: content.1, mode })
}

/// The rule for the stash list: what the change takes off goes, what it puts back comes on
/// top, and every other entry stays.
fn carried_stash(now: &[StashEntry], change: &Change<Vec<StashEntry>>) -> Vec<StashEntry> {
    if now == change.from {
        return change.to.clone();
    }
    let gone = |entry: &&StashEntry| change.from.contains(entry) && !change.to.contains(entry);
    let back = |entry: &&StashEntry| !change.from.contains(entry) && !now.contains(entry);
    let back = change.to.iter().filter(back);
    back.chain(now.iter().filter(|entry| !gone(entry))).cloned().collect()
}

impl<'a> Walk<'a> {
    fn new(facts: &'a Facts) -> Self {
        Self {
            facts,
            files: BTreeMap::new(),
            directories: BTreeMap::new(),
            aside: BTreeMap::new(),
            index: BTreeMap::new(),
            branches: BTreeMap::new(),
            head: facts.head.clone(),
            stash: facts.stash.clone(),
            conflicts: Vec::new(),
            moved: Vec::new(),
        }
    }

    fn step(&mut self, delta: &Delta) {
        for (path, change) in &delta.files {
            self.file(path, change);
        }
        for (path, change) in &delta.directories {
            let present = self.facts.directories.get(path).copied();
            let now = *self.directories.entry(path.clone()).or_insert(present);
            // A directory that the user changed stays; only empty ones are ever removed.
            if let Some(next) = carried(&now, change) {
                self.directories.insert(path.clone(), next);
            }
        }
        for (path, change) in &delta.aside {
            self.aside(path, change);
        }
        for (path, change) in &delta.index {
            let now = self.index.get(path).or_else(|| self.facts.index.get(path));
            match carried(&now.cloned().unwrap_or_default(), change) {
                Some(next) => drop(self.index.insert(path.clone(), next)),
                None => self.conflict(path),
            }
        }
        for (name, change) in &delta.branches {
            let now = *self.branches.entry(name.clone()).or_insert_with(|| self.facts.branches.get(name).copied());
            // The branch that HEAD is on must be just where the turn left it: if it went back
            // already, something else than undo moved it.
            let current = self.facts.head.branch.as_ref() == Some(name);
            match carried(&now, change).filter(|_| !current || now == change.from) {
                Some(next) => drop(self.branches.insert(name.clone(), next)),
                None => self.moved.push(name.clone()),
            }
        }
        if let Some(change) = &delta.head {
            if self.head == change.from {
                self.head = change.to.clone();
            } else {
                self.moved.push(self.head.stack().to_owned());
            }
        }
        if let Some(change) = &delta.stash {
            self.stash = carried_stash(&self.stash, change);
        }
    }

    fn file(&mut self, path: &BString, change: &Change<Option<FileState>>) {
        let present = self.facts.files.get(path).unwrap_or(&Present::Absent);
        let now = self.files.get(path).copied().unwrap_or_else(|| present.file());
        if *present == Present::Other {
            self.conflict(path);
        } else if let Ok(next) = carried_file(now, change) {
            self.files.insert(path.clone(), next);
        } else {
            self.conflict(path);
        }
    }

    /// What is still as the turn left it goes aside; what is kept aside comes back where
    /// nothing else has taken its place.
    fn aside(&mut self, path: &BString, change: &Change<Option<Aside>>) {
        let (present, kept) = self.facts.aside.get(path).cloned().unwrap_or_default();
        let moved = self.aside.get(path).map(|aside| aside.out);
        let there = moved.map_or(present.is_some(), |out| !out);
        match (&change.from, &change.to) {
            (Some(left), None) if there => {
                if moved.is_none() && present != Some(left.state.clone()) {
                    self.conflict(path);
                } else {
                    let store = left.store.clone();
                    self.aside.insert(path.clone(), AsideMove { path: path.clone(), store, out: true });
                }
            }
            (None, Some(_)) if there => self.conflict(path),
            (None, Some(back)) if kept => {
                let store = back.store.clone();
                self.aside.insert(path.clone(), AsideMove { path: path.clone(), store, out: false });
            }
            _ => {}
        }
    }

    fn conflict(&mut self, path: &BString) {
        self.conflicts.push(path.clone());
    }

    /// Nothing that stays may stand where a file is to be written.
    fn check_places(&mut self) {
        let mut blocked = Vec::new();
        for (path, state) in &self.files {
            if state.is_none() {
                continue;
            }
            match self.facts.files.get(path) {
                Some(Present::Directory(below)) => {
                    blocked.extend(below.iter().filter(|inner| !self.goes(inner)).cloned());
                }
                Some(Present::Behind(parent)) if !self.goes(parent) => blocked.push(parent.clone()),
                _ => {}
            }
            blocked.extend(parents(path.as_bstr()).filter_map(|parent| {
                let stays = matches!(self.files.get(parent), Some(Some(_)));
                stays.then(|| parent.to_owned())
            }));
        }
        self.conflicts.extend(blocked);
    }

    /// Whether the plan takes away what is at a path now; a slash behind names a directory.
    fn goes(&self, path: &BString) -> bool {
        let out = |at: &BStr| self.aside.get(at).is_some_and(|aside| aside.out);
        if out(path.as_bstr()) || parents(path.as_bstr()).any(out) {
            return true;
        }
        match path.strip_suffix(b"/") {
            Some(directory) => self.directories.get(directory.as_bstr()) == Some(&None),
            None => self.files.get(path) == Some(&None),
        }
    }

    fn finish(self, op: Op) -> Result<Plan, Refusal> {
        if let Some(name) = self.moved.first() {
            return Err(moved_ref(name, op));
        }
        if !self.conflicts.is_empty() {
            return Err(conflict(self.conflicts, op));
        }
        let facts = self.facts;
        let files = self.files.into_iter().filter_map(|(path, to)| {
            let from = facts.files.get(&path).and_then(Present::file);
            (from != to).then_some(FileMove { path, from, to })
        });
        let directories = self.directories.into_iter().filter_map(|(path, to)| {
            let from = facts.directories.get(&path).copied();
            (from != to).then_some(DirectoryMove { path, from, to })
        });
        let index = self.index.into_iter().filter_map(|(path, to)| {
            let from = facts.index.get(&path).cloned().unwrap_or_default();
            (from != to).then_some(IndexMove { path, from, to })
        });
        let branches = self.branches.into_iter().filter_map(|(name, to)| {
            let from = facts.branches.get(&name).copied();
            (from != to).then_some(BranchMove { name, from, to })
        });
        let files: Vec<_> = files.collect();
        Ok(Plan {
            v: 1,
            op,
            turns: Vec::new(),
            head: Change::new(facts.head.clone(), self.head),
            branches: branches.collect(),
            stash: (facts.stash != self.stash).then(|| Change::new(facts.stash.clone(), self.stash)),
            index: index.collect(),
            directories: directories.collect(),
            aside: self.aside.into_values().collect(),
            kept_edits: (facts.edited.iter())
                .filter(|path| files.iter().all(|file| file.path != **path))
                .cloned()
                .collect(),
            files,
        })
    }
}

/// Every directory above a path, the nearest first.
pub fn parents(path: &BStr) -> impl Iterator<Item = &BStr> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let slash = rest.rfind_byte(b'/')?;
        rest = rest[..slash].as_bstr();
        Some(rest)
    })
}

fn moved_ref(name: &str, op: Op) -> Refusal {
    let shown = short_branch(name);
    Refusal::new(Code::Branch, format!("'{shown}' is not where the turn left it"))
        .hint(format!("run 'oxundo log' to see the turns, and put '{shown}' back to {} with git", op.word()))
}

fn conflict(mut paths: Vec<BString>, op: Op) -> Refusal {
    paths.sort();
    paths.dedup();
    let first = shown(paths[0].as_bstr());
    let message = match paths.len() {
        1 => format!("{} would overwrite changes made since in '{first}'", op.word()),
        n => format!("{} would overwrite changes made since in '{first}' and {} more", op.word(), n - 1),
    };
    Refusal::new(Code::Conflict, message)
        .hint("run 'oxundo diff' to see what changed since the turn")
        .hint(format!("commit, stash or move these changes away, then run 'oxundo {}' again", op.word()))
        .paths(paths.iter().map(|path| quoted(path.as_bstr())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> ObjectId {
        ObjectId::from_bytes_or_panic(&[n; 20])
    }

    fn file(n: u8) -> FileState {
        FileState { kind: Kind::File, id: id(n), mode: 0o644 }
    }

    fn delta(files: &[(&str, Option<FileState>, Option<FileState>)]) -> Delta {
        Delta {
            files: files.iter().map(|(path, from, to)| (BString::from(*path), Change::new(*from, *to))).collect(),
            ..Delta::default()
        }
    }

    fn facts(files: &[(&str, Present)]) -> Facts {
        Facts {
            files: files.iter().map(|(path, present)| (BString::from(*path), present.clone())).collect(),
            ..Facts::default()
        }
    }

    fn plan_of(steps: &[Delta], facts: &Facts) -> Result<Plan, Refusal> {
        let steps: Vec<_> = (1..).zip(steps.iter().cloned()).collect();
        travel(Op::Undo, &steps, facts)
    }

    #[test]
    fn an_unchanged_file_goes_back() {
        let plan = plan_of(&[delta(&[("a", Some(file(2)), Some(file(1)))])], &facts(&[("a", Present::File(file(2)))]))
            .expect("no obstacle");
        assert_eq!(plan.files.len(), 1);
        assert_eq!(plan.files[0].to, Some(file(1)));
        assert_eq!(plan.files[0].action(), "write");
    }

    #[test]
    fn an_edited_file_is_a_conflict_and_is_named() {
        let refusal =
            plan_of(&[delta(&[("a", Some(file(2)), Some(file(1)))])], &facts(&[("a", Present::File(file(9)))]))
                .expect_err("the edit would be lost");
        assert_eq!((refusal.code, refusal.paths), (Code::Conflict, vec!["a".to_owned()]));
    }

    #[test]
    fn a_file_that_is_already_back_is_left_alone() {
        let plan = plan_of(
            &[delta(&[("a", Some(file(2)), Some(file(1))), ("b", Some(file(3)), None)])],
            &facts(&[("a", Present::File(file(1))), ("b", Present::Absent)]),
        )
        .expect("no obstacle");
        assert_eq!(plan.files, []);
    }

    #[test]
    fn a_chmod_by_the_user_survives_the_return_of_the_content() {
        let private = FileState { mode: 0o600, ..file(2) };
        let plan = plan_of(&[delta(&[("a", Some(file(2)), Some(file(1)))])], &facts(&[("a", Present::File(private))]))
            .expect("no obstacle");
        assert_eq!(plan.files[0].to, Some(FileState { mode: 0o600, ..file(1) }));
    }

    #[test]
    fn two_steps_make_one_move() {
        let plan = plan_of(
            &[delta(&[("a", Some(file(3)), Some(file(2)))]), delta(&[("a", Some(file(2)), None)])],
            &facts(&[("a", Present::File(file(3)))]),
        )
        .expect("no obstacle");
        assert_eq!(plan.files.len(), 1);
        assert_eq!((plan.files[0].from, plan.files[0].to), (Some(file(3)), None));
    }

    #[test]
    fn a_file_of_the_users_in_a_directory_that_must_go_is_a_conflict() {
        let swap = delta(&[("x/y", Some(file(2)), None), ("x", None, Some(file(1)))]);
        let below = |names: &[&str]| Present::Directory(names.iter().map(|n| BString::from(*n)).collect());
        let mut now = facts(&[("x/y", Present::File(file(2))), ("x", below(&["x/y"]))]);
        assert!(plan_of(std::slice::from_ref(&swap), &now).is_ok(), "only the turn's file is there");
        now.files.insert("x".into(), below(&["x/mine", "x/y"]));
        let refusal = plan_of(&[swap], &now).expect_err("x/mine would be in the way");
        assert_eq!(refusal.paths, ["x/mine"]);
    }

    #[test]
    fn nothing_is_written_behind_a_link_that_stays() {
        let refusal =
            plan_of(&[delta(&[("x/y", None, Some(file(1)))])], &facts(&[("x/y", Present::Behind("x".into()))]))
                .expect_err("x is not a directory");
        assert_eq!(refusal.paths, ["x"]);
    }

    #[test]
    fn the_inverse_of_the_inverse_is_the_plan() {
        let plan = plan_of(&[delta(&[("a", Some(file(2)), Some(file(1)))])], &facts(&[("a", Present::File(file(2)))]))
            .expect("no obstacle");
        assert_eq!(plan.clone().inverse().inverse(), plan);
    }

    #[test]
    fn a_later_stash_of_the_users_stays() {
        let entry = |n: u8| StashEntry {
            id: id(n),
            name: "A User".into(),
            email: "user@example.com".into(),
            date: "0 +0000".into(),
            message: format!("stash {n}"),
        };
        let change = Change::new(vec![entry(2), entry(1)], vec![entry(3), entry(1)]);
        assert_eq!(carried_stash(&change.from, &change), change.to);
        let now = [entry(9), entry(2), entry(1)];
        assert_eq!(carried_stash(&now, &change), [entry(3), entry(9), entry(1)]);
        assert_eq!(carried_stash(&[], &change), [entry(3)], "what is gone already is no obstacle");
    }

    #[test]
    fn a_branch_that_moved_is_refused() {
        let step = Delta {
            branches: [("refs/heads/side".to_owned(), Change::new(Some(id(2)), None))].into(),
            ..Delta::default()
        };
        let mut now = Facts::default();
        now.branches.insert("refs/heads/side".into(), id(3));
        assert_eq!(plan_of(&[step], &now).map_err(|r| r.code), Err(Code::Branch));
    }
}
