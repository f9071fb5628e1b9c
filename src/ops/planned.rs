//! Something planned, whichever kind it is: a walk over turns, or a turn of oxundo's own.

use crate::model::checkpoint::Checkpoint;
use crate::model::plan::Plan;
use crate::model::turn::Turn;
use crate::ops::fingerprint::fingerprint;
use crate::ops::locked::Locked;
use crate::ops::made::PlannedTurn;
use crate::ops::outcome::Outcome;
use crate::ops::side_effects;
use crate::ops::side_effects::Foreseen;
use crate::ops::undo::PlannedUndo;
use crate::ops::view::View;
use anyhow::Result;

/// What would be done, with all checks made.
pub enum Planned {
    /// An undo or a redo.
    Walk(Box<PlannedUndo>),
    /// A turn of oxundo's own.
    Made(Box<PlannedTurn>),
}

impl Foreseen for Planned {
    fn foreseen(&self) -> Option<Outcome> {
        Some(self.preview())
    }

    fn digest(&self, view: &View<'_>) -> Result<String> {
        Self::digest(self, view)
    }
}

impl From<PlannedTurn> for Planned {
    fn from(made: PlannedTurn) -> Self {
        Self::Made(Box::new(made))
    }
}

impl Planned {
    /// Warns of what it leaves.
    pub fn announce(&self, view: &View<'_>) {
        match self {
            Self::Walk(walk) => walk.announce(view),
            Self::Made(made) => made.announce(view),
        }
    }

    /// What it changes.
    pub fn plan(&self) -> &Plan {
        match self {
            Self::Walk(walk) => walk.plan(),
            Self::Made(made) => &made.plan,
        }
    }

    /// The present that it is planned for.
    pub fn present(&self) -> &Checkpoint {
        match self {
            Self::Walk(walk) => walk.present(),
            Self::Made(made) => &made.capture.checkpoint,
        }
    }

    /// What would be done.
    pub fn preview(&self) -> Outcome {
        match self {
            Self::Walk(walk) => walk.preview(),
            Self::Made(made) => made.preview(),
        }
    }

    /// Does it, and tells the user's own command of it; after a failure everything is as it was.
    pub fn carry_out(self, locked: &mut Locked<'_>) -> Result<Outcome> {
        self.announce(locked);
        let op = self.plan().op;
        let done = match self {
            Self::Walk(walk) => walk.carry_out(locked),
            Self::Made(made) => made.carry_out(locked),
        }?;
        side_effects::tell(locked, op, &done);
        Ok(done)
    }

    /// Does it within a turn that is open: what an agent may do within its own is a turn of oxundo's own otherwise.
    pub fn carry_out_within(self, locked: &mut Locked<'_>, turn: Turn) -> Result<Outcome> {
        match self {
            Self::Walk(_) => self.carry_out(locked),
            Self::Made(made) => made.carry_out_within(locked, turn),
        }
    }

    /// A word for this plan where the timeline stands: the same only as long as it would do the same. Commits that it makes
    /// have other ids each time: what is in them counts.
    pub fn digest(&self, view: &View<'_>) -> Result<String> {
        fingerprint(self.plan(), matches!(self, Self::Made(_)), view)
    }
}
