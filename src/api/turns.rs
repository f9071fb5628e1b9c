//! Turns: who makes one, what is known of it, and what begin, end and list give.

use crate::api::plain::{Id, RelativePath};
use crate::git::objects::Objects;
use crate::git::timeline::stored::Side;
use crate::model::bytes::unquoted;
use crate::model::checkpoint::short_branch;
use crate::model::turn;
use crate::ops::list::State;
use crate::ops::view::View;
use crate::warning::Warning;
use gix::bstr::{BString, ByteSlice};

/// Who makes a turn, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnInfo {
    pub(crate) agent: String,
    pub(crate) session: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) prompt: Option<String>,
}

impl TurnInfo {
    /// The agent that makes it.
    pub fn by(agent: impl Into<String>) -> Self {
        Self { agent: agent.into(), session: None, message: None, prompt: None }
    }

    /// Its session: turns of two sessions that overlap are recorded as one that they share. Without it an agent has
    /// one session.
    #[must_use]
    pub fn session(self, session: impl Into<String>) -> Self {
        Self { session: Some(session.into()), ..self }
    }

    /// The commit's message, in the caller's own words: all of it is used.
    #[must_use]
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
    }

    /// What the agent was asked for. It stays in the turn's record; only its first line, without what looks like a
    /// secret, becomes the commit's subject, where no message is given.
    #[must_use]
    pub fn prompt(self, prompt: impl Into<String>) -> Self {
        Self { prompt: Some(prompt.into()), ..self }
    }
}

/// How a turn is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// On the user's branch, as commits.
    Commit,
    /// As checkpoints alone.
    Ghost,
}

impl Mode {
    pub(crate) fn of(mode: turn::Mode) -> Self {
        match mode {
            turn::Mode::Commit => Self::Commit,
            turn::Mode::Ghost => Self::Ghost,
        }
    }
}

/// What a commit of a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommitKind {
    /// The commit of what the agent changed, or one that the agent made itself.
    Agent,
    /// The user's uncommitted work, committed before the turn.
    Dirty,
    /// A commit that was there before and that the turn brought onto the branch.
    Found,
}

/// A commit that belongs to a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnCommit {
    /// Its id.
    pub id: Id,
    /// What it is.
    pub kind: CommitKind,
}

/// A turn that oxundo made itself, at the user's word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Made {
    /// Files of an earlier state, brought into the worktree.
    Restore,
    /// A branch, started at a turn.
    Branch,
    /// One commit out of several.
    Squash,
    /// The turns with these numbers, taken out while later ones stay.
    Revert(Vec<u64>),
    /// Some paths of the turns with these numbers, taken out.
    PartialRevert(Vec<u64>),
}

/// A session's part in a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Participant {
    /// The agent.
    pub agent: String,
    /// Its session.
    pub session: Option<String>,
    /// The agent's own id of the prompt.
    pub prompt: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The file in which the agent keeps the conversation.
    pub transcript: Option<String>,
    /// What it was asked for, in that order, where that is known.
    pub asked: Vec<String>,
}

/// How one file differs between two states.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileChange {
    /// The file.
    pub path: RelativePath,
    /// As git has it: `A` for added, `M` modified, `D` deleted, `T` where a file became a link or a link a file.
    pub status: char,
    /// Lines added; 0 for what is not text.
    pub insertions: u64,
    /// Lines removed; 0 for what is not text.
    pub deletions: u64,
}

impl FileChange {
    pub(crate) fn of(path: BString, change: &turn::FileChange) -> Self {
        let &turn::FileChange { status, insertions, deletions, .. } = change;
        Self { path: RelativePath::of(path), status, insertions, deletions }
    }
}

/// One turn of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turn {
    /// Its number, from 1 on.
    pub number: u64,
    /// Where it stands.
    pub state: State,
    /// Who made it.
    pub agent: String,
    /// The agent's session, where it has one.
    pub session: Option<String>,
    /// The message given, or what of the prompt is told to git.
    pub message: Option<String>,
    /// The whole prompt, where one is known.
    pub prompt: Option<String>,
    /// Its agent, and the first line of its message where it has one: `claude: add a cache`.
    pub label: String,
    /// The first line of its message, or what stands in for it: the subject of its commits.
    pub title: String,
    /// How it is kept.
    pub mode: Mode,
    /// The branch that it belongs to, on which it ended, as git shows it; none for a detached HEAD.
    pub branch: Option<String>,
    /// The branch on which it began, likewise.
    pub began_on: Option<String>,
    /// When it began, in UTC as RFC 3339 has it, to the second.
    pub began_at: String,
    /// When it ended, likewise; none while it is open.
    pub ended_at: Option<String>,
    /// How the agent exited, where oxundo ran it.
    pub exit_code: Option<i32>,
    /// Whether it was cut off.
    pub interrupted: bool,
    /// The commits that it made or found, oldest first, with the user's uncommitted work as the first.
    pub commits: Vec<TurnCommit>,
    /// The files that it changed.
    pub files: Vec<FileChange>,
    /// The files that something kept changing while they were captured.
    pub torn: Vec<RelativePath>,
    /// The sessions that took part, in the order in which they came.
    pub participants: Vec<Participant>,
    /// What it is, when oxundo made it itself.
    pub made: Option<Made>,
}

impl Turn {
    pub(crate) fn of(view: &View<'_>, turn: turn::Turn, state: State) -> anyhow::Result<Self> {
        let files = view.timeline.turn_files(turn.turn)?;
        let files = files.iter().map(|file| FileChange::of(recorded_path(view, turn.turn, &file.path), file)).collect();
        let branch = |name: &Option<String>| name.as_deref().map(|name| short_branch(name).into_owned());
        Ok(Self {
            number: turn.turn,
            state,
            label: turn.label(),
            title: turn.title(),
            mode: Mode::of(turn.mode),
            branch: branch(&turn.branch),
            began_on: branch(&turn.began_on),
            files,
            torn: turn.torn.iter().map(|path| RelativePath::of(recorded_path(view, turn.turn, path))).collect(),
            commits: turn.commits.iter().map(commit).collect(),
            participants: turn.origin.parts.into_iter().map(participant).collect(),
            made: turn.made.map(made),
            agent: turn.agent,
            session: turn.session,
            message: turn.message,
            prompt: turn.prompt,
            began_at: turn.began_at,
            ended_at: turn.ended_at,
            exit_code: turn.exit_code,
            interrupted: turn.interrupted,
        })
    }
}

/// The path that a record has in quotes where it is not UTF-8. Another path may have those quotes in its name.
fn recorded_path(view: &View<'_>, turn: u64, text: &str) -> BString {
    let is_name = |side| {
        let state = view.timeline.checkpoint(turn, side);
        state.and_then(|state| Objects::new(view.repo).tree_has_entry(state.worktree, text.as_bytes().as_bstr()))
    };
    match unquoted(text) {
        Some(path) if ![Side::Before, Side::After].into_iter().any(|side| is_name(side).unwrap_or(false)) => path,
        _ => text.into(),
    }
}

fn commit(commit: &turn::TurnCommit) -> TurnCommit {
    let kind = match commit.kind {
        turn::CommitKind::Agent => CommitKind::Agent,
        turn::CommitKind::Dirty => CommitKind::Dirty,
        turn::CommitKind::Found => CommitKind::Found,
    };
    TurnCommit { id: Id::of(commit.id), kind }
}

fn participant(part: turn::Participant) -> Participant {
    let turn::Participant { agent, session, prompt, model, transcript, asked, .. } = part;
    let asked = asked.into_iter().filter_map(|asked| asked.prompt.or(asked.message)).collect();
    Participant { agent, session, prompt, model, transcript, asked }
}

fn made(made: turn::Made) -> Made {
    match made {
        turn::Made::Restore => Made::Restore,
        turn::Made::Branch => Made::Branch,
        turn::Made::Squash => Made::Squash,
        turn::Made::Revert(turns) | turn::Made::BackTo { turns, .. } => Made::Revert(turns),
        turn::Made::PartialRevert(turns) | turn::Made::Hunks { turns, .. } => Made::PartialRevert(turns),
    }
}

/// A turn that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Began {
    /// Its number.
    pub turn: u64,
    /// What the user should hear of.
    pub warnings: Vec<Warning>,
}

/// A turn that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ended {
    /// The turn; none where none was open or nothing was changed.
    pub turn: Option<Turn>,
    /// What the user should hear of.
    pub warnings: Vec<Warning>,
}

/// Turns of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Turns {
    /// They, newest first.
    pub turns: Vec<Turn>,
    /// What the user should hear of.
    pub warnings: Vec<Warning>,
}
