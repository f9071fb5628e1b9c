//! What a front end needs: one type, [`Worktree`], and what it takes and gives. What oxundo works with inside is made
//! into plain values here, at the edge.

pub(crate) mod answers;
pub(crate) mod plain;
pub(crate) mod plan;
pub(crate) mod turns;

use crate::agents::spawn::is_inside;
use crate::api::answers::{Changes, Checkpoint, Collected, Error, Patch, Result, Status};
use crate::api::plain::RelativePath;
use crate::api::plan::{Applied, Operation, Outcome, Preview, Redo, Restore, Undo};
use crate::api::turns::{Began, Ended, FileChange, Mode, Turn, TurnInfo, Turns};
use crate::config::Config;
use crate::error::{Code, Refusal};
use crate::git::objects::Objects;
use crate::git::repo::Repo;
use crate::model::bytes::in_quotes;
use crate::model::checkpoint::short_branch;
use crate::model::plan::Op;
use crate::model::session::Signal;
use crate::model::turn;
use crate::ops::list::{State, every, here};
use crate::ops::offer::{Asked, apply, offer};
use crate::ops::resolve::{shown_by, state_at};
use crate::ops::status::{refusal_of, status};
use crate::ops::turn::message_of_prompt;
use crate::ops::turn::session::{
    By, Command, SignalCall, beside_turn, check_not_busy, handle_signal, look, look_ahead, settled_for,
};
use crate::ops::undo::range::{Extent, changed_since};
use crate::ops::view::View;
use crate::ops::{checkpoint, diff, gc, offer, side_effects, undo};
use crate::progress::{Progress, ProgressSink};
use crate::warning::{Warn, Warning};
use gix::bstr::ByteSlice;
use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long to wait for another oxundo's moment to pass, unless the caller says.
const PATIENCE: Duration = Duration::from_secs(5);

/// A worktree with its timeline.
///
/// Nothing here prints, handles signals or changes what the process has as a whole. Each call finishes or rolls back
/// what an interrupted one left, takes the worktree's lock for as long as it needs it, and changes everything or
/// nothing. What the user should hear of though nothing failed is in `warnings` of what a call gives, or of its error.
///
/// It can be kept for long: each call sees the repository and its settings as they are then. Threads can share it: their
/// calls take turns, as those of several processes do. A state is named in words, as on
/// the command line: a turn's number for the state after it, `17:before`, `@~2`, `0` for the one before the first
/// turn, a step such as `17.3`, a commit of a turn, a checkpoint's name, `@rescue`, or an operation such as `op:12`.
///
/// # Examples
///
/// ```
/// use oxundo::{Redo, Restore, TurnInfo, Undo, Worktree};
///
/// # let directory = tempfile::tempdir()?;
/// # let setup = "cd \"$0\" && git init -q . && git config user.name me && git config user.email me@example.com &&
/// #     git config commit.gpgSign false && echo one >file && git add . && git commit -qm one";
/// # let set_up = std::process::Command::new("sh").arg("-c").arg(setup).arg(directory.path()).status()?;
/// # assert!(set_up.success());
/// # let directory = directory.path();
/// let worktree = Worktree::open(directory)?;
/// let info = TurnInfo::by("my-editor").message("add a cache");
/// worktree.begin(&info)?;
/// std::fs::write(directory.join("cache"), "what an agent writes")?;
/// let turn = worktree.end(&info)?.turn.expect("it changed something");
/// assert_eq!((turn.number, turn.title.as_str()), (1, "add a cache"));
/// assert!(worktree.status()?.can_undo());
///
/// // Look at the plan, then have just that done.
/// let preview = worktree.preview(Undo::last(1))?;
/// let files: Vec<_> = preview.plan.files.iter().map(|file| format!("{} {}", file.action, file.path)).collect();
/// assert_eq!(files, ["delete cache"]);
/// worktree.apply(&preview)?;
/// assert!(!directory.join("cache").exists());
///
/// worktree.redo(Redo::next(1))?;
/// assert!(directory.join("cache").exists());
///
/// // Any recorded state as a whole, what is new since taken away; undo takes that back.
/// std::fs::write(directory.join("notes"), "what came later")?;
/// worktree.restore(Restore::exact("1:before"))?;
/// assert!(!directory.join("cache").exists() && !directory.join("notes").exists());
/// worktree.undo(Undo::last(1))?;
/// assert!(directory.join("notes").exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Worktree {
    top: PathBuf,
    repo: Mutex<Repo>,
}

impl Worktree {
    /// Finds the repository that a directory is in, or oxundo's own store for it.
    ///
    /// # Errors
    ///
    /// [`Code::NotFound`] where there is neither; [`Code::Io`] for a repository that cannot be read.
    pub fn open(directory: &Path) -> Result<Self> {
        Self::of(Repo::open(directory))
    }

    /// As [`Self::open`], but makes a store for a directory that is in no repository.
    ///
    /// # Errors
    ///
    /// A refusal for directories such as `/`; [`Code::Io`].
    pub fn open_or_make(directory: &Path) -> Result<Self> {
        Self::of(Repo::open_or_make(directory))
    }

    fn of(repo: anyhow::Result<Repo>) -> Result<Self> {
        let mut repo = repo.map_err(|error| Error::of(&error, Vec::new()))?;
        repo.set_patience(PATIENCE);
        Ok(Self { top: repo.top().to_owned(), repo: Mutex::new(repo) })
    }

    /// The top of the worktree, absolute.
    pub fn top(&self) -> &Path {
        &self.top
    }

    /// Has this called from now on with what takes its time, for a progress bar: from any thread, and while a call to
    /// the worktree lasts, so that it must not call the worktree itself.
    pub fn set_progress(&self, listener: impl Fn(Progress<'_>) + Send + Sync + 'static) {
        self.repo().set_progress(ProgressSink::new(listener));
    }

    /// Waits at most so long, from now on, for another oxundo's moment to pass before a call is refused as
    /// [`Code::Busy`]. It is 5 seconds unless set; with zero nothing waits. While the agent of an `oxundo run` is at
    /// work, which may take hours, what would change the worktree is refused at once.
    pub fn set_patience(&self, patience: Duration) {
        self.repo().set_patience(patience);
    }

    /// What is kept of a repository is a cache: that a thread panicked over it does no harm.
    fn repo(&self) -> MutexGuard<'_, Repo> {
        self.repo.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acts, and gives what was warned of meanwhile.
    fn act<T>(&self, act: impl FnOnce(&Repo, Warn<'_>) -> anyhow::Result<T>) -> Result<(T, Vec<Warning>)> {
        let warnings = RefCell::new(Vec::new());
        let mut repo = self.repo();
        let done = repo.reopen().and_then(|()| act(&repo, &|warning| warnings.borrow_mut().push(warning)));
        drop(repo);
        let warnings = warnings.into_inner();
        match done {
            Ok(done) => Ok((done, warnings)),
            Err(error) => Err(Error::of(&error, warnings)),
        }
    }

    /// How the timeline stands, for buttons: what can be undone and redone, and why not. The worktree is looked at for
    /// each of them, and nothing is listed.
    ///
    /// # Errors
    ///
    /// [`Code::Corrupt`] when the timeline cannot be read; [`Code::Io`].
    pub fn status(&self) -> Result<Status> {
        let (status, warnings) = self.act(status_of)?;
        Ok(Status { warnings, ..status })
    }

    /// Begins a turn, in the mode that `oxundo.mode` says; gives its number. One of the same session that is open
    /// still is closed as interrupted.
    ///
    /// # Errors
    ///
    /// [`Code::Nothing`] where `oxundo.enabled` is false; [`Code::Busy`], [`Code::Corrupt`] or [`Code::Io`], with no turn begun. Where no commits can be made the turn is
    /// begun without, and a warning says so.
    pub fn begin(&self, info: &TurnInfo) -> Result<Began> {
        let (open, Ended { warnings, .. }) = self.signal(Signal::Begin, info)?;
        if let Some(turn) = open {
            return Ok(Began { turn, warnings });
        }
        let refusal =
            Refusal::new(Code::Io, "the turn did not begin").hint("run 'oxundo status' to see what is at work");
        Err(Error { warnings, ..Error::from_refusal(refusal) })
    }

    /// Ends the turn that this agent began in this session: commits what it changed.
    ///
    /// # Errors
    ///
    /// [`Code::Busy`], [`Code::Corrupt`] or [`Code::Io`]; the turn is open still then.
    ///
    /// # Examples
    ///
    /// An agent's loop: each prompt is a turn.
    ///
    /// ```
    /// use oxundo::{Turn, TurnInfo, Worktree};
    ///
    /// fn turn(worktree: &Worktree, prompt: &str, work: impl FnOnce() -> bool) -> oxundo::Result<Option<Turn>> {
    ///     let info = TurnInfo::by("my-agent").session("s1").prompt(prompt);
    ///     worktree.begin(&info)?;
    ///     let ended = if work() { worktree.end(&info)? } else { worktree.abort(&info)? };
    ///     for warning in &ended.warnings {
    ///         eprintln!("{warning}");
    ///     }
    ///     Ok(ended.turn)
    /// }
    /// ```
    pub fn end(&self, info: &TurnInfo) -> Result<Ended> {
        Ok(self.signal(Signal::End { interrupted: false }, info)?.1)
    }

    /// As [`Self::end`], for a turn that was cut off: it is marked as interrupted.
    ///
    /// # Errors
    ///
    /// As for [`Self::end`].
    pub fn abort(&self, info: &TurnInfo) -> Result<Ended> {
        Ok(self.signal(Signal::End { interrupted: true }, info)?.1)
    }

    /// Gives the number of the turn that is open then, and the turn that was closed.
    fn signal(&self, signal: Signal, info: &TurnInfo) -> Result<(Option<u64>, Ended)> {
        let TurnInfo { agent, session, message, prompt } = info.clone();
        let ((open, turn), warnings) = self.act(|repo, heard| {
            if !signal.only_ends() && !Config(repo).enabled()? {
                let refusal = Refusal::new(Code::Nothing, "oxundo.enabled is false: nothing is recorded");
                return Err(refusal.hint("run 'git config oxundo.enabled true' to record turns here").into());
            }
            let part = turn::Participant { agent, session, ..turn::Participant::default() };
            let (inside, patience) = (is_inside(repo), repo.patience());
            let told = || message_of_prompt(Config(repo), prompt.as_deref()?, heard);
            let message = message.or_else(told);
            let call = SignalCall {
                signal,
                part,
                message,
                prompt,
                tool: None,
                inside,
                has_process: false,
                patience,
                partial: false,
            };
            let done = handle_signal(repo, heard, &call)?;
            let closed = done.closed.map(|closed| Turn::of(&done.view, closed, State::Done)).transpose()?;
            Ok((done.view.timeline.state.open, closed))
        })?;
        Ok((open, Ended { turn, warnings }))
    }

    /// The turns of the line on which HEAD stands, newest first, the undone ones and the open one included; at most so many.
    ///
    /// # Errors
    ///
    /// [`Code::Corrupt`] when the timeline cannot be read; [`Code::Io`].
    ///
    /// # Examples
    ///
    /// In CI, after an agent has run: what it must not have touched.
    ///
    /// ```
    /// fn stays_out_of_ci(worktree: &oxundo::Worktree) -> oxundo::Result<bool> {
    ///     let turns = worktree.list(100)?.turns;
    ///     Ok(turns.iter().flat_map(|turn| &turn.files).all(|file| !file.path.to_string().starts_with(".github/")))
    /// }
    /// ```
    pub fn list(&self, most: usize) -> Result<Turns> {
        self.turns(|view| here(view, most))
    }

    /// The turns of all branches, newest first, also those that can be redone no more; at most so many.
    ///
    /// # Errors
    ///
    /// As for [`Self::list`].
    pub fn list_all(&self, most: usize) -> Result<Turns> {
        self.turns(|view| every(&view.timeline, Some(view), most))
    }

    fn turns(&self, find: impl FnOnce(&View<'_>) -> anyhow::Result<Vec<(turn::Turn, State)>>) -> Result<Turns> {
        let (turns, warnings) = self.act(|repo, heard| {
            let view = look(repo, heard, "log")?;
            find(&view)?.into_iter().map(|(turn, state)| Turn::of(&view, turn, state)).collect()
        })?;
        Ok(Turns { turns, warnings })
    }

    /// What an operation would change now: an [`Undo`], a [`Redo`] or a [`Restore`]. Every check is made, and nothing
    /// is changed. A turn that is open is seen as it would be if it ended now.
    ///
    /// # Errors
    ///
    /// The refusal that the operation itself would get.
    pub fn preview(&self, operation: impl Into<Operation>) -> Result<Preview> {
        let operation = operation.into();
        let request = operation.request();
        let command = Command { op: request.op(), by: By::FrontEnd };
        let ((id, answer), warnings) = self.act(|repo, heard| {
            look_ahead(repo, heard, command, |view| {
                let planned = request.plan(view)?;
                planned.announce(view);
                side_effects::name_who_is_asked(view, command.op);
                Ok((planned.digest(view)?, planned.preview()))
            })
        })?;
        Ok(Preview::of(operation, id, answer, warnings))
    }

    /// As [`Self::preview`], and the plan is remembered: [`Self::apply_plan`] carries it out by its id, once, in this process
    /// or another, and so does `oxundo apply`. The last fifty are remembered.
    ///
    /// # Errors
    ///
    /// As for [`Self::preview`].
    pub fn plan(&self, operation: impl Into<Operation>) -> Result<Preview> {
        let operation = operation.into();
        let offer = |repo: &Repo, heard: Warn<'_>| offer(repo, heard, &operation.request(), Asked::FRONT_END);
        let ((id, answer), warnings) = self.act(offer)?;
        Ok(Preview::of(operation, id, answer, warnings))
    }

    /// Carries a plan out by its id, as it was shown or not at all. The id is the key by which the same again is the same, and is
    /// done once: whoever has heard no answer can ask again.
    ///
    /// # Examples
    ///
    /// An editor's button: the plan was shown, and the user has said yes.
    ///
    /// ```
    /// use oxundo::{Applied, Worktree};
    ///
    /// fn confirmed(worktree: &Worktree, plan: &str) -> String {
    ///     match worktree.apply_plan(plan) {
    ///         Applied::Done(outcome) => format!("{}. {}", outcome.summary, outcome.hints.join(". ")),
    ///         Applied::DoneBefore(what) => what,
    ///         // Either way nothing has changed.
    ///         Applied::Refused(error) | Applied::RolledBack(error) => format!("{error}. {}", error.hints.join(". ")),
    ///         _ => unreachable!("this version knows no other end"),
    ///     }
    /// }
    /// ```
    pub fn apply_plan(&self, id: &str) -> Applied {
        let rolled_back = Cell::new(false);
        let applied = self.act(|repo, heard| {
            repo.take_rolled_back();
            let applied = apply(repo, heard, id, Asked::FRONT_END);
            rolled_back.set(repo.take_rolled_back());
            applied
        });
        match applied {
            Ok((offer::Applied::Now(answer), warnings)) => Applied::Done(Box::new(Outcome::of(*answer, warnings))),
            Ok((offer::Applied::Before(done), _)) => Applied::DoneBefore(done.what),
            Err(error) if rolled_back.get() => Applied::RolledBack(error),
            Err(error) => Applied::Refused(error),
        }
    }

    /// Does what was looked at, and only that.
    ///
    /// # Errors
    ///
    /// [`Code::Conflict`] when something has changed so that another plan would be needed now; any other refusal of the
    /// operation's, or a failure, with everything as it was.
    pub fn apply(&self, preview: &Preview) -> Result<Outcome> {
        self.carry_out(&preview.operation, Some(preview))
    }

    /// Takes turns back, without a look before.
    ///
    /// # Errors
    ///
    /// [`Code::Nothing`] where there is no turn to undo; [`Code::Conflict`] where the user's edits overlap;
    /// [`Code::Published`], [`Code::Merge`], [`Code::Foreign`] or [`Code::Branch`] for commits that cannot leave;
    /// [`Code::NotFound`] for a turn that is not there; [`Code::InProgress`], [`Code::Busy`], [`Code::Locked`] and
    /// failures. Everything is as it was then.
    pub fn undo(&self, undo: Undo) -> Result<Outcome> {
        self.carry_out(&undo.into(), None)
    }

    /// Brings turns back that were undone, without a look before.
    ///
    /// # Errors
    ///
    /// As for [`Self::undo`].
    pub fn redo(&self, redo: Redo) -> Result<Outcome> {
        self.carry_out(&redo.into(), None)
    }

    /// Brings files of an earlier state into the worktree, without a look before.
    ///
    /// # Errors
    ///
    /// [`Code::NotFound`] for no such state or file, [`Code::Conflict`] for edits that overlap, [`Code::Nothing`] when
    /// they are like that already; [`Code::Busy`] and failures. Everything is as it was then.
    pub fn restore(&self, restore: Restore) -> Result<Outcome> {
        self.carry_out(&restore.into(), None)
    }

    fn carry_out(&self, operation: &Operation, preview: Option<&Preview>) -> Result<Outcome> {
        let (answer, warnings) = self.act(|repo, heard| {
            let looked_at = OnceCell::new();
            let request = operation.request();
            let command = Command { op: request.op(), by: By::FrontEnd };
            let prepare = |view: &View<'_>| {
                let planned = request.plan(view)?;
                let Some(preview) = preview else { return Ok(planned) };
                // When an open turn was closed for it, the timeline is another one, and the files are the same.
                let files = &planned.plan().files;
                let is_it = match looked_at.get() {
                    Some(looked_at) => looked_at == files,
                    None => planned.digest(view)? == preview.id,
                };
                if !is_it {
                    return Err(changed_since(planned.plan().op).into());
                }
                looked_at.get_or_init(|| files.clone());
                Ok(planned)
            };
            settled_for(repo, heard, command, prepare, |locked, planned, _| planned.carry_out(locked))
        })?;
        Ok(Outcome::of(answer, warnings))
    }

    /// Gives the present state a name, for [`Restore::of`], [`Undo::to`], [`Self::changes`] and [`Self::read`]; without
    /// one it gets the next free of `c1`, `c2` and so on.
    ///
    /// # Errors
    ///
    /// [`Code::Usage`] for a name that is taken or cannot be one; [`Code::Busy`] and failures.
    pub fn checkpoint(&self, name: Option<&str>) -> Result<Checkpoint> {
        let (name, warnings) = self.act(|repo, heard| {
            let mut locked = beside_turn(repo, heard, "checkpoint")?;
            Ok(checkpoint::name(&mut locked, name)?.0)
        })?;
        Ok(Checkpoint { name, warnings })
    }

    /// The files that differ between two states, or between one and the worktree as it is.
    ///
    /// # Errors
    ///
    /// [`Code::NotFound`] for no such state; failures.
    pub fn changes(&self, from: &str, to: Option<&str>) -> Result<Changes> {
        let (files, warnings) = self.act(|repo, heard| {
            let view = look(repo, heard, "diff")?;
            let files = diff::changes(&view, &diff::states(&view, from, to)?, &[])?;
            Ok(files.into_iter().map(|(path, change)| FileChange::of(path, &change)).collect())
        })?;
        Ok(Changes { files, warnings })
    }

    /// How one file differs between two states, or between one and the worktree as it is. The path is seen from the top
    /// of the worktree.
    ///
    /// # Errors
    ///
    /// [`Code::NotFound`] for no such state; failures.
    pub fn diff(&self, from: &str, to: Option<&str>, path: impl AsRef<[u8]>) -> Result<Patch> {
        let (text, warnings) = self.act(|repo, heard| {
            let view = look(repo, heard, "diff")?;
            diff::patch(&view, &diff::states(&view, from, to)?, path.as_ref().as_bstr())
        })?;
        Ok(Patch { text, warnings })
    }

    /// A file as it was in a state, or for a link its target. The path is seen from the top of the worktree.
    ///
    /// # Errors
    ///
    /// [`Code::NotFound`] for no such state or file; failures.
    pub fn read(&self, state: &str, path: impl AsRef<[u8]>) -> Result<Vec<u8>> {
        let path = path.as_ref().as_bstr();
        let read = |repo: &Repo, heard: Warn<'_>| {
            let view = View::open(repo, heard)?;
            let tree = state_at(&view, state)?.worktree;
            let objects = Objects::new(repo);
            let found = objects.tree_file(tree, path)?.map(|(_, id)| objects.blob(id)).transpose()?;
            found.ok_or_else(|| {
                Refusal::new(Code::NotFound, format!("there was no file {} then", in_quotes(path)))
                    .hint(format!("run {} to see what it has", shown_by(&view, state)))
                    .into()
            })
        };
        // There is nothing to warn of in a look at what is recorded.
        self.act(read).map(|(content, _)| content)
    }

    /// Lets turns go that are older than `keep`, or than `oxundo.keep` says, but never the newest fifty of a branch. A
    /// front end that ends turns itself calls this now and then.
    ///
    /// # Errors
    ///
    /// [`Code::Busy`] while a turn is running; failures.
    pub fn gc(&self, keep: Option<Duration>) -> Result<Collected> {
        let (collected, warnings) = self.act(|repo, heard| {
            let mut locked = beside_turn(repo, heard, "gc")?;
            let keep = age(&locked, keep)?;
            gc::collect(&mut locked, keep, gc::Effort::Asked)
        })?;
        Ok(Collected::of(collected, warnings))
    }

    /// What [`Self::gc`] would let go now.
    ///
    /// # Errors
    ///
    /// As for [`Self::gc`].
    pub fn preview_gc(&self, keep: Option<Duration>) -> Result<Collected> {
        let (collected, warnings) = self.act(|repo, heard| {
            let locked = beside_turn(repo, heard, "gc")?;
            Ok(gc::plan(&locked, age(&locked, keep)?, gc::Effort::Asked)?.preview(&locked))
        })?;
        Ok(Collected::of(collected, warnings))
    }
}

/// The age in seconds from which on turns go; nothing where they stay.
fn age(view: &View<'_>, keep: Option<Duration>) -> anyhow::Result<Option<u64>> {
    keep.map_or_else(|| view.config().keep(None), |keep| Ok(Some(keep.as_secs())))
}

fn status_of(repo: &Repo, heard: Warn<'_>) -> anyhow::Result<Status> {
    let view = look(repo, heard, "status")?;
    let found = status(&view, By::FrontEnd)?;
    let busy = refusal_of(check_not_busy(&view))?;
    let undo_refusal = found.undo.and_then(|undo| busy.clone().or(undo.err()));
    let redo_refusal = match busy {
        _ if found.redo_depth == 0 => None,
        None => refusal_of(undo::plan(&view, Op::Redo, &Extent::Steps(1), None))?,
        busy => busy,
    };
    let turn = |turn: Option<turn::Turn>, state| turn.map(|turn| Turn::of(&view, turn, state)).transpose();
    Ok(Status {
        branch: found.branch.as_deref().map(|name| short_branch(name).into_owned()),
        enabled: found.enabled,
        mode: Mode::of(found.mode),
        undo_depth: found.undo_depth,
        redo_depth: found.redo_depth as u64,
        last: turn(found.top, State::Done)?,
        open: turn(found.open, State::Open)?,
        undo_refusal: undo_refusal.map(Error::from_refusal),
        redo_refusal: redo_refusal.map(Error::from_refusal),
        not_covered: found.not_covered.into_iter().map(|skipped| RelativePath::of(skipped.path)).collect(),
        warnings: Vec::new(),
    })
}
