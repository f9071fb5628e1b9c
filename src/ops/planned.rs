//! Something planned, whichever kind it is: a walk over turns, or a turn of oxundo's own.

use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::repo::scratch::checksum;
use crate::git::timeline::Timelines;
use crate::model::checkpoint::Checkpoint;
use crate::model::plan::Plan;
use crate::ops::conversation::hand_over;
use crate::ops::locked::Locked;
use crate::ops::made::PlannedTurn;
use crate::ops::outcome::Outcome;
use crate::ops::undo::PlannedUndo;
use crate::ops::view::View;
use anyhow::Result;
use gix::ObjectId;

/// What would be done, with all checks made.
pub enum Planned {
    /// An undo or a redo.
    Walk(Box<PlannedUndo>),
    /// A turn of oxundo's own.
    Made(Box<PlannedTurn>),
}

impl From<PlannedTurn> for Planned {
    fn from(made: PlannedTurn) -> Self {
        Self::Made(Box::new(made))
    }
}

impl Planned {
    /// Warns of what it leaves.
    pub fn announce(&self, view: &View<'_>) {
        if let Self::Walk(walk) = self {
            walk.announce(view);
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
    pub fn preview(self) -> Outcome {
        match self {
            Self::Walk(walk) => walk.preview(),
            Self::Made(made) => made.preview(),
        }
    }

    /// Does it; after a failure everything is as it was.
    pub fn carry_out(self, locked: &mut Locked<'_>) -> Result<Outcome> {
        self.announce(locked);
        match self {
            Self::Walk(walk) => {
                let op = walk.plan().op;
                let done = walk.carry_out(locked)?;
                hand_over(locked, op, &done);
                Ok(done)
            }
            Self::Made(made) => made.carry_out(locked),
        }
    }

    /// A word for this plan where the timeline stands: the same only as long as it would do the same. Commits that it makes
    /// have other ids each time: what is in them counts.
    pub fn digest(&self, view: &View<'_>) -> Result<String> {
        let mut plan = self.plan().clone();
        let objects = Objects::new(view.repo);
        let tree = |commit: &mut Option<ObjectId>| -> Result<()> {
            *commit = commit.map(|commit| objects.commit_tree(commit)).transpose()?;
            Ok(())
        };
        if matches!(self, Self::Made(_)) {
            tree(&mut plan.head.to.commit)?;
            plan.branches.iter_mut().try_for_each(|branch| tree(&mut branch.to))?;
        }
        if view.as_if_ended.is_some() {
            // The commit that an open turn would get is another one each time.
            tree(&mut plan.head.from.commit)?;
            plan.branches.iter_mut().try_for_each(|branch| tree(&mut branch.from))?;
        }
        let stands = (Timelines::new(view.repo).tip()?, Refs::new(view.repo).head()?);
        // The edits that it keeps are none of its business.
        let told = (&plan.unstaged, &plan.overwritten, stands);
        let text = format!("{}\n{told:?}", serde_json::to_string(&plan)?);
        Ok(checksum(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect())
    }
}
