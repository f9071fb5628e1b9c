//! Operations, what they would change, and what they did.

use crate::api::answers::Error;
use crate::api::plain::{Change, Id, RelativePath};
use crate::model::bytes::with_quoted_lines;
use crate::model::checkpoint::{self, short_branch};
use crate::model::merge;
use crate::model::plan;
use crate::ops::outcome::Outcome as Answer;
use crate::ops::request::Request;
use crate::ops::undo::range::Extent;
use crate::warning::Warning;
use gix::bstr::BString;
use std::ffi::OsString;
use std::fmt;

/// What is done with the user's own edits to what an operation changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edits {
    /// They are kept by a three-way merge; where they overlap, it is refused.
    Merge,
    /// Wherever there are any, it is refused.
    Refuse,
    /// They are overwritten; redo brings them back.
    Overwrite,
}

impl Edits {
    fn model(self) -> merge::Edits {
        match self {
            Self::Merge => merge::Edits::Merge,
            Self::Refuse => merge::Edits::Refuse,
            Self::Overwrite => merge::Edits::Overwrite,
        }
    }
}

/// Which turns to take back: of this branch, the last ones or a single one, whole or some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    turns: Back,
    pathspecs: Option<Vec<OsString>>,
    edits: Option<Edits>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Back {
    Over(Extent),
    Only(String),
    Session(String),
}

impl Undo {
    fn of(turns: Back) -> Self {
        Self { turns, pathspecs: None, edits: None }
    }

    /// The last turns, so many.
    pub fn last(turns: u64) -> Self {
        Self::of(Back::Over(Extent::Steps(turns)))
    }

    /// As many as it takes until this turn is the last one done: a number, `@~2`, a checkpoint's name or a commit. A step,
    /// `17.3`, is gone back to within its turn; that is a turn itself, of oxundo's own.
    pub fn to(turn: impl Into<String>) -> Self {
        Self::of(Back::Over(Extent::To(turn.into())))
    }

    /// This turn alone, or this step, named likewise; later ones stay. It is a turn itself, of oxundo's own.
    pub fn only(turn: impl Into<String>) -> Self {
        Self::of(Back::Only(turn.into()))
    }

    /// What this session did in the last turn in which it took part; what others did there stays. It is a turn itself, of
    /// oxundo's own.
    pub fn session(session: impl Into<String>) -> Self {
        Self::of(Back::Session(session.into()))
    }

    /// Only the paths that these pathspecs of git match, in the worktree alone: HEAD and the index stay. No
    /// pathspec at all is refused, and does not mean everything.
    #[must_use]
    pub fn paths(self, pathspecs: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { pathspecs: Some(pathspecs.into_iter().map(Into::into).collect()), ..self }
    }

    /// What is done with the user's own edits, instead of what `oxundo.edits` says.
    #[must_use]
    pub fn edits(self, edits: Edits) -> Self {
        Self { edits: Some(edits), ..self }
    }
}

/// How far to go forward over turns that are undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redo {
    extent: Extent,
    edits: Option<Edits>,
}

impl Redo {
    /// The next turns, so many.
    pub fn next(turns: u64) -> Self {
        Self { extent: Extent::Steps(turns), edits: None }
    }

    /// As many as it takes until this turn is the last one done: a number, a checkpoint's name or a commit.
    pub fn to(turn: impl Into<String>) -> Self {
        Self { extent: Extent::To(turn.into()), edits: None }
    }

    /// What is done with the user's own edits, instead of what `oxundo.edits` says.
    #[must_use]
    pub fn edits(self, edits: Edits) -> Self {
        Self { edits: Some(edits), ..self }
    }
}

/// Which files of an earlier state to bring into the worktree, or a state to go to as a whole. It is a turn itself that undo
/// takes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    state: String,
    pathspecs: Option<Vec<OsString>>,
    exact: bool,
}

impl Restore {
    /// All files of a state, and nothing is deleted: a turn for the state after it, `17:before`, a step, `0`, a checkpoint's
    /// name, `@rescue`, or an operation such as `op:12`.
    pub fn of(state: impl Into<String>) -> Self {
        Self { state: state.into(), pathspecs: None, exact: false }
    }

    /// A state as a whole, named likewise: files, empty directories, the index, and where HEAD's branch points; what is new
    /// since goes. Edits are overwritten: undo brings them back.
    pub fn exact(state: impl Into<String>) -> Self {
        Self { state: state.into(), pathspecs: None, exact: true }
    }

    /// Only those that these pathspecs of git match. No pathspec at all is refused, and does not mean everything.
    #[must_use]
    pub fn paths(self, pathspecs: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { pathspecs: Some(pathspecs.into_iter().map(Into::into).collect()), ..self }
    }
}

/// What can be looked at before it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Turns are taken back.
    Undo(Undo),
    /// Turns are brought back.
    Redo(Redo),
    /// Files are brought back.
    Restore(Restore),
}

impl From<Undo> for Operation {
    fn from(undo: Undo) -> Self {
        Self::Undo(undo)
    }
}

impl From<Redo> for Operation {
    fn from(redo: Redo) -> Self {
        Self::Redo(redo)
    }
}

impl From<Restore> for Operation {
    fn from(restore: Restore) -> Self {
        Self::Restore(restore)
    }
}

impl Operation {
    /// It as it can be written down.
    pub(crate) fn request(&self) -> Request {
        match self {
            Self::Undo(Undo { turns, pathspecs, edits }) => {
                let request = match turns {
                    Back::Over(extent) => Request::default().over(extent),
                    Back::Only(turn) => Request { only: Some(turn.clone()), ..Request::default() },
                    Back::Session(session) => Request { session: Some(session.clone()), ..Request::default() },
                };
                request.paths(pathspecs.as_deref()).edits(edits.map(Edits::model))
            }
            Self::Redo(Redo { extent, edits }) => Request::redo().over(extent).edits(edits.map(Edits::model)),
            Self::Restore(Restore { state, pathspecs, exact }) => {
                Request { exact: *exact, ..Request::restore(state) }.paths(pathspecs.as_deref())
            }
        }
    }
}

/// What an operation would change now, to be looked at and then applied.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Preview {
    /// What would be done, in a few words.
    pub summary: String,
    /// The turns that it is about, in the order in which it goes over them.
    pub turns: Vec<u64>,
    /// What would change.
    pub plan: Plan,
    /// What the user should hear of before.
    pub warnings: Vec<Warning>,
    /// The plan's id: the same as long as the same would be done. One of [`Worktree::plan`](crate::Worktree::plan) can be
    /// applied by it.
    pub id: String,
    pub(crate) operation: Operation,
}

impl Preview {
    pub(crate) fn of(operation: Operation, id: String, answer: Answer, warnings: Vec<Warning>) -> Self {
        let plan = Plan::of(answer.plan);
        Self { summary: answer.what, turns: answer.turns, plan, warnings, id, operation }
    }
}

/// What was done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// What was done, in a few words.
    pub summary: String,
    /// The turns that it was about, in the order in which it went over them.
    pub turns: Vec<u64>,
    /// The number of the turn that it was recorded as itself, where it was.
    pub turn: Option<u64>,
    /// What changed.
    pub plan: Plan,
    /// The state right before, kept: the id of a tree in the repository.
    pub rescue: Option<Id>,
    /// What the user can do next, one sentence each.
    pub hints: Vec<String>,
    /// What the user should hear of.
    pub warnings: Vec<Warning>,
}

impl Outcome {
    pub(crate) fn of(answer: Answer, warnings: Vec<Warning>) -> Self {
        Self {
            summary: answer.what,
            turns: answer.turns,
            turn: answer.turn,
            plan: Plan::of(answer.plan),
            rescue: answer.rescue.map(Id::of),
            hints: answer.hints.into_iter().map(with_quoted_lines).collect(),
            warnings,
        }
    }
}

/// What became of a plan that was applied by its id.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Applied {
    /// It was carried out.
    Done(Box<Outcome>),
    /// It had been carried out before, in these words, and nothing was done now.
    DoneBefore(String),
    /// It was refused before anything was touched: [`Code::Stale`](crate::Code::Stale) where it would not do the same any more.
    Refused(Error),
    /// It failed on its way, and everything is as it was before.
    RolledBack(Error),
}

impl Applied {
    /// Whether the plan is carried out, now or before.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_) | Self::DoneBefore(_))
    }
}

/// All that an operation changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// HEAD.
    pub head: Change<Head>,
    /// The branches that move, appear or go.
    pub branches: Vec<BranchMove>,
    /// The stash list's commits, newest first, where it changes.
    pub stash: Option<Change<Vec<Id>>>,
    /// The paths whose entries in the index change.
    pub index: Vec<RelativePath>,
    /// The files that change in the worktree.
    pub files: Vec<FileMove>,
    /// The directories that are made, removed, or given another mode.
    pub directories: Vec<DirectoryMove>,
    /// The files in which edits of the user's are kept.
    pub kept_edits: Vec<RelativePath>,
    /// What was staged and will not be any more, though the worktree still has it.
    pub unstaged: Vec<RelativePath>,
    /// The files whose edits are overwritten, as was asked for.
    pub overwritten: Vec<RelativePath>,
}

/// Where HEAD is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The branch that it is on, as git shows it; none where it is detached.
    pub branch: Option<String>,
    /// The commit that it is at; none before the first.
    pub commit: Option<Id>,
}

/// A branch that moves, appears or goes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BranchMove {
    /// The branch, as git shows it.
    pub name: String,
    /// The commit that it points to; none where there is no such branch.
    pub commit: Change<Option<Id>>,
}

/// What is done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// It is made, or given other content.
    Write,
    /// It is deleted.
    Delete,
    /// Its permission bits change, and no more.
    Mode,
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write",
            Self::Delete => "delete",
            Self::Mode => "mode",
        })
    }
}

/// A file that changes in the worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileMove {
    /// The file. What is beyond the limits may be a whole directory, which is moved aside or back.
    pub path: RelativePath,
    /// What is done to it.
    pub action: Action,
    /// What is there; none where nothing is, or what is there is beyond the limits.
    pub state: Change<Option<FileState>>,
}

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A regular file.
    File,
    /// A regular file that its owner may execute.
    Executable,
    /// A symbolic link; its content is the target.
    Symlink,
}

/// A file as it is, or will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileState {
    /// What kind.
    pub kind: Kind,
    /// The blob of its content as it is in the worktree, no filter applied.
    pub id: Id,
    /// The permission bits; 0 for a link.
    pub mode: u32,
}

/// A directory that is made, removed, or given another mode.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryMove {
    /// The directory.
    pub path: RelativePath,
    /// Its permission bits; none where it does not exist.
    pub mode: Change<Option<u32>>,
}

impl Plan {
    fn of(plan: plan::Plan) -> Self {
        let paths = |paths: Vec<BString>| paths.into_iter().map(RelativePath::of).collect();
        let stash = |list: Vec<checkpoint::StashEntry>| list.iter().map(|entry| Id::of(entry.id)).collect();
        let files = plan.files.into_iter().map(file_move).chain(plan.aside.into_iter().map(aside_move));
        Self {
            head: Change::of(plan.head, head),
            branches: plan.branches.iter().map(branch_move).collect(),
            stash: plan.stash.map(|change| Change::of(change, stash)),
            index: plan.index.into_iter().map(|entry| RelativePath::of(entry.path)).collect(),
            files: files.collect(),
            directories: plan.directories.into_iter().map(directory_move).collect(),
            kept_edits: paths(plan.kept_edits),
            unstaged: paths(plan.unstaged),
            overwritten: paths(plan.overwritten),
        }
    }
}

fn head(head: checkpoint::Head) -> Head {
    Head { branch: head.branch.map(|name| short_branch(&name).into_owned()), commit: head.commit.map(Id::of) }
}

fn branch_move(branch: &plan::BranchMove) -> BranchMove {
    let commit = Change { from: branch.from.map(Id::of), to: branch.to.map(Id::of) };
    BranchMove { name: short_branch(&branch.name).into_owned(), commit }
}

fn file_move(file: plan::FileMove) -> FileMove {
    let action = match file.action() {
        "delete" => Action::Delete,
        "mode" => Action::Mode,
        _ => Action::Write,
    };
    let state = Change { from: file.from.map(file_state), to: file.to.map(file_state) };
    FileMove { path: RelativePath::of(file.path), action, state }
}

fn aside_move(aside: plan::AsideMove) -> FileMove {
    let action = if aside.out { Action::Delete } else { Action::Write };
    FileMove { path: RelativePath::of(aside.path), action, state: Change { from: None, to: None } }
}

fn directory_move(directory: plan::DirectoryMove) -> DirectoryMove {
    let mode = Change { from: directory.from, to: directory.to };
    DirectoryMove { path: RelativePath::of(directory.path), mode }
}

fn file_state(state: checkpoint::FileState) -> FileState {
    let kind = match state.kind {
        checkpoint::Kind::File => Kind::File,
        checkpoint::Kind::Executable => Kind::Executable,
        checkpoint::Kind::Symlink => Kind::Symlink,
    };
    FileState { kind, id: Id::of(state.id), mode: state.mode }
}
