//! What a command sees: the timeline and HEAD, each read once.

use crate::agents::adapters::state_files;
use crate::config::Config;
use crate::error::Refusal;
use crate::git::apply::Apply;
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::durable::Durable;
use crate::git::index::Index;
use crate::git::objects::Objects;
use crate::git::objects::commit::Sign;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::stat::umask_modes;
use crate::model::checkpoint::{Head, UsualModes};
use crate::model::limits::Limits;
use crate::model::place::Place;
use crate::model::turn::Turn;
use crate::ops::place;
use crate::warning::{Warn, Warning};
use anyhow::Result;
use gix::bstr::BStr;
use std::cell::{LazyCell, OnceCell};

/// A repository as a command sees it, as of the moment of reading.
#[derive(Clone)]
pub struct View<'r> {
    /// The repository.
    pub repo: &'r Repo,
    /// The timeline.
    pub timeline: Stored<'r>,
    /// Where HEAD is.
    pub head: Head,
    /// The turn that is seen as ended though it is not: what it recorded has no notes yet.
    pub as_if_ended: Option<u64>,
    /// The present as it would be then, where that is another than what is there.
    pub as_if_present: Option<Capture>,
    /// Whether undo and redo move the branches too that others have moved during a turn.
    pub takes_all_branches: bool,
    /// Whether undo makes copies of the agents' conversations that end before it.
    pub takes_conversation: bool,
    /// Whether what is planned is only shown.
    pub is_preview: bool,
    place: OnceCell<Place>,
    heard: Warn<'r>,
}

impl<'r> View<'r> {
    /// Reads the timeline and HEAD, and changes nothing but what a power cut has left.
    pub fn open(repo: &'r Repo, heard: Warn<'r>) -> Result<Self> {
        Index::new(repo).read_ahead();
        look_after(repo, heard)?;
        let timeline = Timelines::new(repo).timeline()?;
        let now = Refs::new(repo).head()?;
        Ok(Self {
            repo,
            timeline: standing(timeline, &now),
            head: now,
            as_if_ended: None,
            as_if_present: None,
            takes_all_branches: false,
            takes_conversation: false,
            is_preview: false,
            place: OnceCell::new(),
            heard,
        })
    }

    /// The same, which makes copies of the agents' conversations, or does not.
    #[must_use]
    pub fn forking(&self, takes_conversation: bool) -> Self {
        Self { takes_conversation, ..self.clone() }
    }

    /// As the function of this name, before anything is changed.
    pub fn mend(&self) -> Result<()> {
        mend(self.repo, self.heard)
    }

    /// Reads again; the timeline only if it has moved.
    pub fn refreshed(self) -> Result<Self> {
        let is_same = Timelines::new(self.repo).tip()? == self.timeline.commit;
        let timeline = if is_same { self.timeline } else { Timelines::new(self.repo).timeline()? };
        let head = Refs::new(self.repo).head()?;
        Ok(Self { timeline: standing(timeline, &head), head, place: OnceCell::new(), ..self })
    }

    /// The timeline and HEAD are these from now on.
    pub fn became(&mut self, timeline: Stored<'r>, head: Head) {
        (self.timeline, self.head, self.place) = (standing(timeline, &head), head, OnceCell::new());
    }

    /// Where HEAD stands on the timeline.
    pub fn place(&self) -> Result<&Place> {
        if let Some(place) = self.place.get() {
            return Ok(place);
        }
        let place = place::find(self.repo, &self.timeline, &self.head)?;
        Ok(self.place.get_or_init(|| place))
    }

    /// The user's settings.
    pub fn config(&self) -> Config<'r> {
        Config(self.repo)
    }

    /// Whether commits are signed. What is only looked at needs no signature: nobody is asked for a password.
    pub fn sign(&self) -> Result<Sign> {
        if self.is_preview || self.as_if_ended.is_some() { Ok(Sign::Never) } else { self.config().sign() }
    }

    /// Passes a warning on.
    pub fn warn(&self, message: impl Into<String>) {
        (self.heard)(Warning::new(message));
    }

    /// For carrying plans out, with the user's lock time-out.
    pub fn apply(&self) -> Result<Apply<'r>> {
        Ok(Apply::new(self.repo, self.config().lock_timeout()?, self.heard))
    }

    /// Captures the present state, with this timeline's usual permission bits.
    pub fn present(&self) -> Result<Capture> {
        if let Some(present) = &self.as_if_present {
            return Ok(present.clone());
        }
        // What the last turn left is asked for only where something is closed.
        let left = LazyCell::new(|| self.timeline.checkpoint(self.top().ok()??, Side::After).ok());
        let left_closed =
            |path: &BStr, mode: u32| left.as_ref().is_some_and(|left| left.modes.unusual.get(path) == Some(&mode));
        Checkpoints::new(self.repo).capture(self.usual_modes(), &self.limits()?, None, &left_closed)
    }

    /// Whether anything tracked is not committed, as git's own status sees it: not for a plan.
    pub fn is_dirty(&self) -> Result<bool> {
        let index = Index::new(self.repo);
        let is_staged = !index.equals_tree(&*index.read_index()?, Objects::new(self.repo).head_tree(&self.head)?)?;
        Ok(is_staged || Checkpoints::new(self.repo).differs_from_index(self.usual_modes())?)
    }

    fn usual_modes(&self) -> UsualModes {
        self.timeline.state.usual_modes.unwrap_or_else(umask_modes)
    }

    /// What is captured of untracked content. An agent's own state is nobody's work.
    pub fn limits(&self) -> Result<Limits> {
        let mut left_alone = state_files();
        if self.repo.why_no_project().is_some() {
            left_alone.push("/*".to_owned());
        }
        Ok(Limits { left_alone, ..self.config().limits()? })
    }

    /// The open turn.
    pub fn open_turn(&self) -> Result<Option<Turn>> {
        self.timeline.state.open.map(|number| self.timeline.require_turn(number)).transpose()
    }

    /// The last turn done where HEAD is.
    pub fn top(&self) -> Result<Option<u64>> {
        Ok(self.place()?.top)
    }

    /// The last turn done where HEAD is, without turns that only took parts of others out.
    pub fn last_whole(&self) -> Result<Option<u64>> {
        last_whole(&self.timeline, self.top()?)
    }
}

/// The timeline as it stands where HEAD is. What cannot be read of it is said where it is needed.
fn standing<'r>(mut timeline: Stored<'r>, head: &Head) -> Stored<'r> {
    if place::lift(&mut timeline, head).is_err() {
        timeline.state.stand_as_made();
    }
    timeline
}

/// As [`mend`]; where something is out of reach for now, this is only said.
fn look_after(repo: &Repo, heard: Warn<'_>) -> Result<()> {
    match mend(repo, heard) {
        Err(error) => match error.downcast_ref::<Refusal>() {
            Some(refusal) => {
                heard(Warning::new(&refusal.message));
                Ok(())
            }
            None => Err(error),
        },
        mended => mended,
    }
}

/// Mends what a power cut has left, and says so. To be called before anything is changed.
pub fn mend(repo: &Repo, heard: Warn<'_>) -> Result<()> {
    repo.set_flushes(Config(repo).fsync()?);
    let mended = Durable::new(repo).mend()?;
    mended.words().iter().for_each(|words| heard(Warning::new(words)));
    Ok(())
}

/// The first turn from here down that did not only take parts of others out.
pub fn last_whole(timeline: &Stored<'_>, from: Option<u64>) -> Result<Option<u64>> {
    let mut at = from;
    while let Some(number) = at {
        let turn = timeline.require_turn(number)?;
        if !turn.is_part() {
            break;
        }
        at = turn.previous;
    }
    Ok(at)
}
