//! What a front end needs: one type, [`Worktree`], and what it takes and gives.

use crate::error::failure::to_refusal;
use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::model::bytes::shown;
use crate::model::merge::Edits;
use crate::model::plan::{Op, Plan};
use crate::model::session::Signal;
use crate::model::turn::{FileChange, Participant, Turn};
use crate::ops::conversation::hand_over;
use crate::ops::list::{every, on_branch};
use crate::ops::outcome::Outcome;
use crate::ops::resolve::state_at;
use crate::ops::turn::session::{SignalCall, handle_signal, look, settled};
use crate::ops::undo::range::Extent;
use crate::ops::view::View;
use crate::ops::{checkpoint, diff, gc, restore, undo};
use crate::progress::ProgressSink;
use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

pub use crate::ops::gc::Collected;
pub use crate::ops::list::State;

/// What a front end gets, or why it does not: a code, a message, and what to do next.
pub type Result<T> = std::result::Result<T, Refusal>;

/// How long to wait for another oxundo's moment to pass.
const PATIENCE: Duration = Duration::from_secs(5);

/// A worktree with its timeline.
///
/// Nothing here prints. Each call finishes or rolls back what an interrupted one left, takes the
/// worktree's lock for as long as it needs it, and changes everything or nothing.
///
/// # Examples
///
/// ```
/// use oxundo::{Walk, Who, Worktree};
///
/// # let directory = tempfile::tempdir()?;
/// # let setup = "cd \"$0\" && git init -q . && git config user.name me && git config user.email me@example.com &&
/// #     git config commit.gpgSign false && echo one >file && git add . && git commit -qm one";
/// # let set_up = std::process::Command::new("sh").arg("-c").arg(setup).arg(directory.path()).status()?;
/// # assert!(set_up.success());
/// # let directory = directory.path();
/// let worktree = Worktree::open(directory)?;
/// let who = Who { agent: "my-editor".to_owned(), message: Some("add a cache".to_owned()), session: None };
/// worktree.begin(&who)?;
/// std::fs::write(directory.join("cache"), "what an agent writes")?;
/// let turn = worktree.end(&who)?.expect("it changed something");
/// assert_eq!((turn.turn, turn.title().as_str()), (1, "add a cache"));
///
/// // Look at the plan, then have just that done.
/// let planned = worktree.plan(&Walk::undo(1))?;
/// let preview: Vec<_> = planned.plan.actions().into_iter().map(|(path, action)| format!("{action} {path}")).collect();
/// assert_eq!(preview, ["delete cache"]);
/// worktree.apply(&planned)?;
/// assert!(!directory.join("cache").exists());
///
/// worktree.walk(&Walk::redo(1))?;
/// assert!(directory.join("cache").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Worktree {
    repo: Repo,
}

/// Who makes a turn, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// The agent.
    pub agent: String,
    /// Its session: turns of two sessions that overlap are recorded as one that they share.
    pub session: Option<String>,
    /// What it was asked for, which becomes the commit's message.
    pub message: Option<String>,
}

/// One turn of the timeline.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its record.
    pub turn: Turn,
    /// Where it stands.
    pub state: State,
    /// The files that it changed.
    pub files: Vec<FileChange>,
}

/// How far to go, and which way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    op: Op,
    extent: Extent,
    edits: Option<Edits>,
}

impl Walk {
    /// Back over the last `steps` turns of this branch.
    pub fn undo(steps: u64) -> Self {
        Self { op: Op::Undo, extent: Extent::Steps(steps), edits: None }
    }

    /// Forward over the next `steps` turns that are undone.
    pub fn redo(steps: u64) -> Self {
        Self { op: Op::Redo, ..Self::undo(steps) }
    }

    /// Back until this turn is the last one done: a number, `@~2`, a checkpoint's name or a commit.
    pub fn undo_to(turn: &str) -> Self {
        Self { op: Op::Undo, extent: Extent::To(turn.to_owned()), edits: None }
    }

    /// Forward until this turn is the last one done.
    pub fn redo_to(turn: &str) -> Self {
        Self { op: Op::Redo, ..Self::undo_to(turn) }
    }

    /// What is done with the user's own edits, instead of what `oxundo.edits` says.
    #[must_use]
    pub fn edits(mut self, edits: Edits) -> Self {
        self.edits = Some(edits);
        self
    }
}

/// A walk, and all that it would change now.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The walk.
    pub walk: Walk,
    /// The turns that it goes over, in that order.
    pub turns: Vec<u64>,
    /// What would change.
    pub plan: Plan,
}

/// What was done.
#[derive(Clone, Debug)]
pub struct Done {
    /// The turns that it was about.
    pub turns: Vec<u64>,
    /// The turn that it was recorded as itself, where it was.
    pub turn: Option<u64>,
    /// What changed.
    pub plan: Plan,
    /// The state right before, kept: the id of a tree in the repository.
    pub rescue: Option<ObjectId>,
}

impl From<Outcome> for Done {
    fn from(outcome: Outcome) -> Self {
        Self { turns: outcome.turns, turn: outcome.turn, plan: outcome.plan, rescue: outcome.rescue }
    }
}

impl Worktree {
    /// Finds the repository that a directory is in, or oxundo's own store for it.
    ///
    /// # Errors
    ///
    /// `not_found` where there is neither.
    pub fn open(directory: &Path) -> Result<Self> {
        told(Repo::open(directory)).map(|repo| Self { repo })
    }

    /// As [`Self::open`], but makes a store for a directory that is in no repository.
    ///
    /// # Errors
    ///
    /// A refusal for directories such as `/`, or a failure.
    pub fn open_or_make(directory: &Path) -> Result<Self> {
        told(Repo::open_or_make(directory)).map(|repo| Self { repo })
    }

    /// Has what takes its time told from now on, for a progress bar.
    pub fn set_progress(&mut self, watch: ProgressSink) {
        self.repo.set_progress(watch);
    }

    /// The top of the worktree.
    pub fn top(&self) -> &Path {
        self.repo.top()
    }

    /// Begins a turn, in the mode that `oxundo.mode` says; gives its number. One of the same session that is open
    /// still is closed as interrupted.
    ///
    /// # Errors
    ///
    /// A refusal such as `busy`, `in_progress` or `no_identity`, with nothing changed, or a failure.
    pub fn begin(&self, who: &Who) -> Result<u64> {
        let (open, _) = self.signal(Signal::Begin, who)?;
        open.ok_or_else(|| {
            Refusal::new(Code::Io, "the turn did not begin").hint("run 'oxundo status' to see what is at work")
        })
    }

    /// Ends the turn that this agent began in this session: commits what it changed. Gives the turn, or nothing where
    /// none was open or nothing was changed.
    ///
    /// # Errors
    ///
    /// `busy`, or a failure; the turn is open still then.
    pub fn end(&self, who: &Who) -> Result<Option<Turn>> {
        Ok(self.signal(Signal::End { interrupted: false }, who)?.1)
    }

    /// As [`Self::end`], for a turn that was cut off: it is marked as interrupted.
    ///
    /// # Errors
    ///
    /// As for [`Self::end`].
    pub fn abort(&self, who: &Who) -> Result<Option<Turn>> {
        Ok(self.signal(Signal::End { interrupted: true }, who)?.1)
    }

    fn signal(&self, signal: Signal, who: &Who) -> Result<(Option<u64>, Option<Turn>)> {
        let part = Participant { agent: who.agent.clone(), session: who.session.clone(), ..Participant::default() };
        let inside = crate::agents::spawn::is_inside(&self.repo);
        let message = who.message.clone();
        let call = SignalCall { signal, part, message, inside, has_process: false, patience: PATIENCE };
        let done = told(handle_signal(&self.repo, &|_| {}, &call))?;
        Ok((done.view.timeline.state.open, done.closed))
    }

    /// The turns of this branch, newest first, the undone ones and the open one included; at most so many.
    ///
    /// # Errors
    ///
    /// `corrupt` when the timeline cannot be read.
    pub fn list(&self, most: usize) -> Result<Vec<Entry>> {
        told(self.entries(|view| on_branch(&view.timeline, view.head.stack(), most)))
    }

    /// The turns of all branches, newest first, also those that can be redone no more; at most so many.
    ///
    /// # Errors
    ///
    /// `corrupt` when the timeline cannot be read.
    pub fn list_all(&self, most: usize) -> Result<Vec<Entry>> {
        told(self.entries(|view| every(&view.timeline, most)))
    }

    fn entries(
        &self,
        turns: impl FnOnce(&View<'_>) -> anyhow::Result<Vec<(Turn, State)>>,
    ) -> anyhow::Result<Vec<Entry>> {
        let view = look(&self.repo, &|_| {}, "log")?;
        let entry =
            |(turn, state): (Turn, State)| Ok(Entry { files: view.timeline.turn_files(turn.turn)?, turn, state });
        turns(&view)?.into_iter().map(entry).collect()
    }

    /// What a walk would do now. Every check is made; nothing is changed.
    ///
    /// # Errors
    ///
    /// The refusal that the walk itself would get.
    pub fn plan(&self, walk: &Walk) -> Result<Planned> {
        told((|| {
            let locked = settled(&self.repo, &|_| {}, walk.op.word())?;
            let outcome = undo::plan(&locked, walk.op, &walk.extent, walk.edits)?.preview();
            Ok(Planned { walk: walk.clone(), turns: outcome.turns, plan: outcome.plan })
        })())
    }

    /// Does what was planned, and only that.
    ///
    /// # Errors
    ///
    /// `conflict` when the worktree has changed so that the plan would be another one now; a refusal or failure, with
    /// everything as it was.
    pub fn apply(&self, planned: &Planned) -> Result<Done> {
        told(self.carry_out(&planned.walk, Some(&planned.plan)))
    }

    /// Plans a walk and does it.
    ///
    /// # Errors
    ///
    /// A refusal or failure, with everything as it was.
    pub fn walk(&self, walk: &Walk) -> Result<Done> {
        told(self.carry_out(walk, None))
    }

    fn carry_out(&self, walk: &Walk, wanted: Option<&Plan>) -> anyhow::Result<Done> {
        let mut locked = settled(&self.repo, &|_| {}, walk.op.word())?;
        let planned = undo::plan(&locked, walk.op, &walk.extent, walk.edits)?;
        wanted.map_or(Ok(()), |wanted| planned.check_is(wanted))?;
        let done = planned.carry_out(&mut locked)?;
        hand_over(&locked.into_view(), walk.op, &done);
        Ok(done.into())
    }

    /// Captures the present state under a name, for [`Self::restore`], [`Walk::undo_to`] and [`Self::changes`].
    ///
    /// # Errors
    ///
    /// `usage` for a name that is taken or cannot be one; a failure.
    pub fn capture(&self, name: &str) -> Result<()> {
        let named = settled(&self.repo, &|_| {}, "checkpoint");
        told(named.and_then(|mut locked| checkpoint::name(&mut locked, Some(name))).map(drop))
    }

    /// Brings files of a state into the worktree: those that these pathspecs match, or all. It deletes nothing, and is a
    /// turn itself that undo takes back.
    ///
    /// # Errors
    ///
    /// `not_found` for no such state or file, `conflict` for edits that overlap, `nothing` when they are like that already.
    pub fn restore(&self, state: &str, pathspecs: &[OsString]) -> Result<Done> {
        told((|| {
            let mut locked = settled(&self.repo, &|_| {}, "restore")?;
            Ok(restore::plan(&locked, state, pathspecs)?.carry_out(&mut locked)?.into())
        })())
    }

    /// What [`Self::restore`] would change now.
    ///
    /// # Errors
    ///
    /// As for [`Self::restore`].
    pub fn plan_restore(&self, state: &str, pathspecs: &[OsString]) -> Result<Plan> {
        told((|| Ok(restore::plan(&*settled(&self.repo, &|_| {}, "restore")?, state, pathspecs)?.plan))())
    }

    /// The files that differ between two states, or between one and the worktree: a turn for the state after it,
    /// `17:before`, `0`, or a checkpoint's name.
    ///
    /// # Errors
    ///
    /// `not_found` for no such state.
    pub fn changes(&self, from: &str, to: Option<&str>) -> Result<Vec<FileChange>> {
        told((|| {
            let view = look(&self.repo, &|_| {}, "diff")?;
            diff::changes(&view, &diff::states(&view, from, to)?, &[])
        })())
    }

    /// A file as it was in a state; the path is seen from the top of the worktree.
    ///
    /// # Errors
    ///
    /// `not_found` for no such state or file.
    pub fn read(&self, state: &str, path: &BStr) -> Result<Vec<u8>> {
        let found = told((|| {
            let tree = state_at(&View::open(&self.repo, &|_| {})?, state)?.worktree;
            let objects = Objects::new(&self.repo);
            objects.tree_file(tree, path)?.map(|(_, id)| objects.blob(id)).transpose()
        })())?;
        found.ok_or_else(|| {
            Refusal::new(Code::NotFound, format!("there was no file '{}' then", shown(path.as_bstr())))
                .hint(format!("run 'oxundo show {state}' to see what it has"))
        })
    }

    /// Lets turns go that are older than `keep`, or than `oxundo.keep` says, but never the newest fifty of a branch;
    /// with `dry_run` it only says which. A front end that ends turns itself calls this now and then.
    ///
    /// # Errors
    ///
    /// `busy` while a turn is running, or a failure.
    pub fn gc(&self, keep: Option<Duration>, dry_run: bool) -> Result<Collected> {
        told((|| {
            let mut locked = settled(&self.repo, &|_| {}, "gc")?;
            let keep = keep.map_or_else(|| locked.config().keep(None), |keep| Ok(Some(keep.as_secs())))?;
            if dry_run {
                return Ok(gc::plan(&locked, keep, gc::Effort::Asked)?.preview(&locked));
            }
            gc::collect(&mut locked, keep)
        })())
    }
}

fn told<T>(result: anyhow::Result<T>) -> Result<T> {
    result.map_err(|error| to_refusal(&error))
}
