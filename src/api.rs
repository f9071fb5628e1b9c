//! What a front end needs: one type, [`Worktree`], and what it takes and gives.

use crate::cli::{CheckpointArgs, DiffArgs, Distance, GcArgs, RestoreArgs};
use crate::cmd;
use crate::error::failure::refusal_of;
use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::model::bytes::shown;
use crate::model::merge::Edits;
use crate::model::plan::{Op, Plan};
use crate::model::progress::Watch;
use crate::model::session::{Part, Signal};
use crate::model::turn::{FileChange, Turn};
use crate::turns::session::{Call, tell};
use crate::ui::Ui;
use gix::ObjectId;
use gix::bstr::{BStr, ByteSlice};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use crate::cmd::gc::Collected;
pub use crate::cmd::log::State;

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
    steps: Option<u64>,
    to: Option<String>,
    edits: Option<Edits>,
}

impl Walk {
    /// Back over the last `steps` turns of this branch.
    pub fn undo(steps: u64) -> Self {
        Self { op: Op::Undo, steps: Some(steps), to: None, edits: None }
    }

    /// Forward over the next `steps` turns that are undone.
    pub fn redo(steps: u64) -> Self {
        Self { op: Op::Redo, ..Self::undo(steps) }
    }

    /// Back until this turn is the last one done: a number, `@~2`, a checkpoint's name or a commit.
    pub fn undo_to(turn: &str) -> Self {
        Self { op: Op::Undo, steps: None, to: Some(turn.to_owned()), edits: None }
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

    fn distance(&self, dry_run: bool) -> Distance {
        Distance { number: None, steps: self.steps, to: self.to.clone(), edits: self.edits, dry_run }
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

impl From<cmd::outcome::Outcome> for Done {
    fn from(outcome: cmd::outcome::Outcome) -> Self {
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
    pub fn watched_by(&mut self, watch: Watch) {
        self.repo.watched_by(watch);
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
        let done = self.signal(Signal::Begin, who)?;
        done.open.ok_or_else(|| {
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
        Ok(self.signal(Signal::End { interrupted: false }, who)?.closed)
    }

    /// As [`Self::end`], for a turn that was cut off: it is marked as interrupted.
    ///
    /// # Errors
    ///
    /// As for [`Self::end`].
    pub fn abort(&self, who: &Who) -> Result<Option<Turn>> {
        Ok(self.signal(Signal::End { interrupted: true }, who)?.closed)
    }

    fn signal(&self, signal: Signal, who: &Who) -> Result<crate::turns::session::Done> {
        let part = Part { agent: who.agent.clone(), session: who.session.clone(), ..Part::default() };
        let inside = crate::agent::is_inside(&self.repo);
        let message = who.message.clone();
        let call = Call { signal, part, message, inside, has_process: false, patience: PATIENCE };
        told(tell(&self.repo, &silent(), &call))
    }

    /// The turns of this branch, newest first, the undone ones and the open one included; at most so many.
    ///
    /// # Errors
    ///
    /// `corrupt` when the timeline cannot be read.
    pub fn list(&self, most: usize) -> Result<Vec<Entry>> {
        told(
            self.entries(|stored| cmd::log::on_branch(&self.repo, stored, Refs::new(&self.repo).head()?.stack(), most)),
        )
    }

    /// The turns of all branches, newest first, also those that can be redone no more; at most so many.
    ///
    /// # Errors
    ///
    /// `corrupt` when the timeline cannot be read.
    pub fn list_all(&self, most: usize) -> Result<Vec<Entry>> {
        told(self.entries(|stored| cmd::log::every(&self.repo, stored, most)))
    }

    fn entries(
        &self,
        turns: impl FnOnce(&crate::git::timeline::stored::Stored) -> anyhow::Result<Vec<(Turn, State)>>,
    ) -> anyhow::Result<Vec<Entry>> {
        cmd::settle_if_idle(&self.repo, &silent(), "log")?;
        let stored = Timelines::new(&self.repo).timeline()?;
        let entry = |(turn, state): (Turn, State)| Ok(Entry { files: stored.turn_files(turn.turn)?, turn, state });
        turns(&stored)?.into_iter().map(entry).collect()
    }

    /// What a walk would do now. Every check is made; nothing is changed.
    ///
    /// # Errors
    ///
    /// The refusal that the walk itself would get.
    pub fn plan(&self, walk: &Walk) -> Result<Planned> {
        let outcome = told(cmd::travel::run(&self.repo, &silent(), walk.op, &walk.distance(true)))?;
        Ok(Planned { walk: walk.clone(), turns: outcome.turns, plan: outcome.plan })
    }

    /// Does what was planned, and only that.
    ///
    /// # Errors
    ///
    /// `conflict` when the worktree has changed so that the plan would be another one now; a refusal or failure, with
    /// everything as it was.
    pub fn apply(&self, planned: &Planned) -> Result<Done> {
        self.travel(&planned.walk, Some(&planned.plan))
    }

    /// Plans a walk and does it.
    ///
    /// # Errors
    ///
    /// A refusal or failure, with everything as it was.
    pub fn walk(&self, walk: &Walk) -> Result<Done> {
        self.travel(walk, None)
    }

    fn travel(&self, walk: &Walk, wanted: Option<&Plan>) -> Result<Done> {
        let (repo, ui) = (&self.repo, &silent());
        let outcome = told(cmd::travel::run_as(repo, ui, walk.op, &walk.distance(false), wanted))?;
        cmd::conversation::hand_over(repo, ui, walk.op, &outcome);
        Ok(outcome.into())
    }

    /// Captures the present state under a name, for [`Self::restore`], [`Walk::undo_to`] and [`Self::changes`].
    ///
    /// # Errors
    ///
    /// `usage` for a name that is taken or cannot be one; a failure.
    pub fn capture(&self, name: &str) -> Result<()> {
        let args = CheckpointArgs { name: Some(name.to_owned()), message: None, delete: false, list: false };
        told(cmd::checkpoint::run(&self.repo, &silent(), &args)).map(drop)
    }

    /// Brings files of a state into the worktree: those that these pathspecs match, or all. It deletes nothing, and is a
    /// turn itself that undo takes back.
    ///
    /// # Errors
    ///
    /// `not_found` for no such state or file, `conflict` for edits that overlap, `nothing` when they are like that already.
    pub fn restore(&self, state: &str, pathspecs: &[OsString]) -> Result<Done> {
        self.bring(state, pathspecs, false).map(Into::into)
    }

    /// What [`Self::restore`] would change now.
    ///
    /// # Errors
    ///
    /// As for [`Self::restore`].
    pub fn plan_restore(&self, state: &str, pathspecs: &[OsString]) -> Result<Plan> {
        self.bring(state, pathspecs, true).map(|outcome| outcome.plan)
    }

    fn bring(&self, state: &str, pathspecs: &[OsString], dry_run: bool) -> Result<cmd::outcome::Outcome> {
        let args = RestoreArgs { state: state.to_owned(), pathspecs: pathspecs.to_vec(), dry_run };
        told(cmd::restore::run(&self.repo, &silent(), &args))
    }

    /// The files that differ between two states, or between one and the worktree: a turn for the state after it,
    /// `17:before`, `0`, or a checkpoint's name.
    ///
    /// # Errors
    ///
    /// `not_found` for no such state.
    pub fn changes(&self, from: &str, to: Option<&str>) -> Result<Vec<FileChange>> {
        let turns = std::iter::once(from).chain(to).map(str::to_owned).collect();
        let args = DiffArgs { turns, stat: false, pathspecs: Vec::new() };
        let changes = told(cmd::diff::run(&self.repo, &silent(), &args))?;
        Ok(changes.map(cmd::diff::Changes::into_files).unwrap_or_default())
    }

    /// A file as it was in a state; the path is seen from the top of the worktree.
    ///
    /// # Errors
    ///
    /// `not_found` for no such state or file.
    pub fn read(&self, state: &str, path: &BStr) -> Result<Vec<u8>> {
        let found = told(Timelines::new(&self.repo).timeline().and_then(|stored| {
            let tree = cmd::state_at(&self.repo, &stored, state)?.worktree;
            let file = Objects::new(&self.repo).tree_file(tree, path)?;
            file.map(|(_, id)| Objects::new(&self.repo).blob(id)).transpose()
        }))?;
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
        let keep = keep.map(|keep| format!("{}s", keep.as_secs()));
        let args = GcArgs { keep, dry_run, auto: false, stores: false, remove: Vec::<PathBuf>::new() };
        told(cmd::gc::run(&self.repo, &silent(), &args))
    }
}

/// Says nothing at all.
fn silent() -> Ui {
    Ui { json: true, quiet: true, ..Ui::default() }
}

fn told<T>(result: anyhow::Result<T>) -> Result<T> {
    result.map_err(|error| refusal_of(&error))
}
