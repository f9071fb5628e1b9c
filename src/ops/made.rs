//! A plan recorded as a turn of oxundo's own, as for `restore`: its two checkpoints are the states before and after the
//! plan, and undo and redo treat it as any other turn.

use crate::git::apply::Apply;
use crate::git::checkpoint::Checkpoints;
use crate::git::checkpoint::capture::Capture;
use crate::git::timeline::stored::Side;
use crate::model::bytes::{exact, in_quotes};
use crate::model::plan::Plan;
use crate::model::record::Record;
use crate::model::turn::{Made, Turn};
use crate::ops::conversation::Conversations;
use crate::ops::fingerprint::fingerprint;
use crate::ops::locked::Locked;
use crate::ops::outcome::Outcome;
use crate::ops::side_effects::Foreseen;
use crate::ops::turn::begin::begin_made;
use crate::ops::turn::end::{Ending, drop_open, end_as_seen};
use crate::ops::turn::meanwhile::warn_of_both;
use crate::ops::turn::since::Since;
use crate::ops::turn::skipped::{announce_whole, warn_of_changed, warn_of_overwritten, warn_of_unignored};
use crate::ops::view::View;
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};

/// A turn that oxundo would make, with all checks made.
pub struct PlannedTurn {
    /// What would happen.
    pub plan: Plan,
    /// The present that it is planned for.
    pub capture: Capture,
    /// What kind of turn it is.
    pub made: Made,
    /// What it is called.
    pub words: Words,
    /// The turns that it is about.
    pub turns: Vec<u64>,
    /// The agents' conversations that go with the turns.
    pub conversations: Conversations,
    /// What stays as it is, and may not be as the state has it that is gone to.
    pub staying: Vec<BString>,
    /// What else one should know of it.
    pub warnings: Vec<String>,
}

/// What a turn that oxundo makes is called.
pub struct Words {
    /// In its record.
    pub message: String,
    /// How the sentence begins once it is done, and before: `Restored`, `Would restore`.
    pub verbs: [&'static str; 2],
    /// The rest of the sentence.
    pub object: String,
    /// What to do next.
    pub hint: String,
}

impl Foreseen for PlannedTurn {
    fn foreseen(&self) -> Option<Outcome> {
        Some(self.preview())
    }

    fn digest(&self, view: &View<'_>) -> Result<String> {
        fingerprint(&self.plan, true, view)
    }
}

impl PlannedTurn {
    /// One that is about no turn, takes no conversation along, and leaves nothing of which one should know.
    pub fn new(plan: Plan, capture: Capture, made: Made, words: Words) -> Self {
        let (turns, conversations) = (Vec::new(), Conversations::default());
        Self { plan, capture, made, words, turns, conversations, staying: Vec::new(), warnings: Vec::new() }
    }

    /// Warns of what it leaves.
    pub fn announce(&self, view: &View<'_>) {
        self.conversations.warn(view);
        announce_whole(view, &self.plan);
        for path in &self.staying {
            view.warn(format!("{} stays as it is: that state does not say what was there", in_quotes(path.as_bstr())));
        }
        self.warnings.iter().for_each(|warning| view.warn(warning.clone()));
        let (Made::Revert(turns) | Made::PartialRevert(turns) | Made::BackTo { turns, .. }) = &self.made else {
            return;
        };
        let mut turns: Vec<Turn> = turns.iter().filter_map(|turn| view.timeline.find_turn(*turn).ok()?).collect();
        if matches!(self.made, Made::PartialRevert(_)) {
            for turn in &mut turns {
                self.leave_kept(view, turn);
            }
        }
        // Of what is back at a step it was said which of it goes.
        if !matches!(self.made, Made::BackTo { .. }) {
            warn_of_both(view, turns.iter(), &self.plan);
        }
        warn_of_overwritten(view, turns.iter(), &self.plan);
        warn_of_changed(view, turns.iter(), &self.plan);
        warn_of_unignored(view, turns.iter(), &self.plan, &self.capture.checkpoint);
    }

    /// Leaves out of what a turn has of the user's beside its own what does not go back as a whole: of a step, its lines go alone.
    fn leave_kept(&self, view: &View<'_>, turn: &mut Turn) {
        let Ok(goal) = view.timeline.undone_to(turn.turn) else { return };
        let goes = |path: &BString| {
            let file = self.plan.files.iter().find(|file| file.path == *path);
            file.is_some_and(|file| {
                Checkpoints::new(view.repo).captured_file(&goal, path.as_bstr()).is_ok_and(|then| then == file.to)
            })
        };
        // A directory has a slash at its end.
        let goes_aside = |path: &BString| {
            let path = path.trim_end_with(|c| c == '/');
            self.plan.aside.iter().any(|aside| aside.out && aside.path == path)
        };
        turn.overlaps.retain(|path| exact::decode(path).is_some_and(|path| goes(&path) || goes_aside(&path)));
    }

    /// What would be done.
    pub fn preview(&self) -> Outcome {
        let [_, would] = self.words.verbs;
        self.outcome(would, &self.conversations, true)
    }

    /// Does it; after a refusal or failure everything is as it was. The turn's first checkpoint is the rescue.
    pub fn carry_out(self, locked: &mut Locked<'_>) -> Result<Outcome> {
        let mut conversations = self.conversations.clone();
        let turn = conversations.go_with(locked, |locked| self.apply(locked))?;
        let [done, _] = self.words.verbs;
        let mut outcome = self.outcome(done, &conversations, false);
        let Some(turn) = turn else {
            locked.warn("no turn records this: neither undo nor redo takes it back");
            outcome.hints.clear();
            return Ok(outcome);
        };
        outcome.hints.extend(conversations.ways_back());
        outcome.rescue = locked.timeline.checkpoint_id(turn.turn, Side::Before)?;
        outcome.turn = Some(turn.turn);
        Ok(outcome)
    }

    /// Applies the plan; gives the turn that records it.
    fn apply(&self, locked: &mut Locked<'_>) -> Result<Option<Turn>> {
        Apply::check_names(&self.plan)?;
        self.capture.opened.close();
        let mut capture = self.capture.clone();
        let checkpoints = Checkpoints::new(locked.repo);
        let wrote = checkpoints.written_though_left_out(&mut capture.checkpoint, &self.plan)?;
        capture.checkpoint = checkpoints.with_what_goes_though_left_out(&capture.checkpoint, &self.plan)?;
        let number = begin_made(
            locked,
            self.words.message.clone(),
            self.made.clone(),
            wrote,
            self.plan.aside.clone(),
            &capture,
        )?;
        let commit = locked.timeline.commit;
        let message = format!("{} as turn {number}", self.plan.op.word());
        let record = Record { timeline_from: commit, timeline_to: commit, notes: Vec::new(), message };
        let plan = &self.plan;
        let made = locked.apply()?.apply_and(plan, &record, None, || {
            let Some(turn) = locked.open_turn()? else { return Ok(None) };
            let since = Since::told(locked, &turn, capture, plan)?;
            end_as_seen(locked, turn, since, Ending::default())
        });
        if made.is_err() {
            // Where that fails too, the next command does it.
            let _ = drop_open(locked);
        }
        made
    }

    /// Does it within a turn that is open, and is then part of it. What it replaces is in a rescue checkpoint.
    pub fn carry_out_within(self, locked: &mut Locked<'_>, mut turn: Turn) -> Result<Outcome> {
        Apply::check_names(&self.plan)?;
        self.capture.opened.close();
        let mut present = self.capture.checkpoint.clone();
        turn.moved.extend(self.plan.aside.iter().cloned());
        turn.wrote.extend(Checkpoints::new(locked.repo).written_though_left_out(&mut present, &self.plan)?);
        let mut update = locked.timeline.update();
        let rescue = update.put_rescue(&self.capture.checkpoint, &self.plan.replaced(|_, _| false))?;
        update.put_turn(&turn)?;
        let message = format!("{} within turn {}", self.plan.op.word(), turn.turn);
        locked.carry_out(&self.plan, update, message, Vec::new(), None)?;
        let [done, _] = self.words.verbs;
        let mut outcome = self.outcome(done, &Conversations::default(), false);
        outcome.hints = vec![format!("it is part of turn {}, and is undone with it", turn.turn)];
        outcome.rescue = Some(rescue);
        Ok(outcome)
    }

    fn outcome(&self, verb: &str, conversations: &Conversations, dry_run: bool) -> Outcome {
        Outcome {
            plan: self.plan.clone(),
            turns: self.turns.clone(),
            undone: Vec::new(),
            turn: None,
            what: format!("{verb} {}", self.words.object),
            hints: vec![self.words.hint.clone()],
            rescue: None,
            conversations: conversations.json(),
            forks: conversations.lines(dry_run),
            dry_run,
        }
    }
}
