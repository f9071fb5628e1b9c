//! What is asked for: undo, redo or restore in any of their forms, as it can be written down and planned at any time.

use crate::error::{Code, Refusal};
use crate::git::index::Index;
use crate::model::bytes::{exact as lossless, shell_word};
use crate::model::merge::Edits;
use crate::model::plan::Op;
use crate::model::step::{StepName, StepRange};
use crate::ops::hunks::{Asked, Chosen, changed_since_asked, narrowed};
use crate::ops::made::PlannedTurn;
use crate::ops::planned::Planned;
use crate::ops::resolve::{pathspec_of, state_and_path, state_at};
use crate::ops::revert::Which;
use crate::ops::undo::range::{Extent, nothing};
use crate::ops::view::View;
use crate::ops::{exact, restore, revert, sessions, steps, undo};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// What was asked for. Without a word more it is to undo the last turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub struct Request {
    /// Whether to redo.
    pub redo: bool,
    /// Until this turn is the last one done, or back to this step.
    pub to: Option<String>,
    /// Over so many turns.
    pub steps: u64,
    /// This turn or step alone.
    pub only: Option<String>,
    /// What this session did.
    pub session: Option<String>,
    /// By commits on top.
    pub revert: bool,
    /// To bring files of this state back, in place of an undo.
    pub restore: Option<String>,
    /// To go to it as a whole.
    pub exact: bool,
    /// Only the paths that these pathspecs match, in which no byte is lost; none at all is refused.
    pub paths: Option<Vec<String>>,
    /// What becomes of the user's edits, in the word of the command line.
    pub edits: Option<String>,
    /// Whether copies of agents' conversations are made.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub conversation: bool,
    /// Whether the branches move too that others have moved.
    pub all_branches: bool,
    /// What was chosen of it, hunk by hunk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            redo: false,
            to: None,
            steps: 1,
            only: None,
            session: None,
            revert: false,
            restore: None,
            exact: false,
            paths: None,
            edits: None,
            conversation: false,
            all_branches: false,
            chosen: None,
        }
    }
}

impl Request {
    /// To redo.
    pub fn redo() -> Self {
        Self { redo: true, ..Self::default() }
    }

    /// To bring files of this state back.
    pub fn restore(state: impl Into<String>) -> Self {
        Self { restore: Some(state.into()), ..Self::default() }
    }

    /// Over turns, so far.
    #[must_use]
    pub fn over(self, extent: &Extent) -> Self {
        match extent {
            Extent::Steps(steps) => Self { steps: *steps, ..self },
            Extent::To(turn) => Self { to: Some(turn.clone()), ..self },
        }
    }

    /// Only what these pathspecs match, where they are given.
    #[must_use]
    pub fn paths(self, pathspecs: Option<&[OsString]>) -> Self {
        let written = |path: &OsString| lossless::encode(path.as_bytes());
        Self { paths: pathspecs.map(|all| all.iter().map(written).collect()), ..self }
    }

    /// What becomes of the user's edits, where that is said.
    #[must_use]
    pub fn edits(self, edits: Option<Edits>) -> Self {
        Self { edits: edits.map(|edits| edits.word().to_owned()), ..self }
    }

    /// What it is.
    pub fn op(&self) -> Op {
        match (&self.restore, self.redo) {
            (Some(_), _) => Op::Restore,
            (None, true) => Op::Redo,
            (None, false) => Op::Undo,
        }
    }

    /// Whether it moves the timeline's cursor, and makes no turn.
    pub fn is_walk(&self) -> bool {
        let is_of_parts = self.paths.is_some() || self.chosen.is_some();
        let is_to_step = self.to.as_deref().is_some_and(|to| StepName::parse(to).is_some());
        let is_taken_out = self.only.is_some() || self.session.is_some() || self.revert;
        self.restore.is_none() && !is_of_parts && !is_to_step && !is_taken_out
    }

    /// The line that asks for a plan of it.
    pub fn line(&self) -> String {
        let words: Vec<String> = self.words().iter().map(|word| shell_word(word.as_bytes())).collect();
        words.join(" ")
    }

    /// The words of that line.
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = ["oxundo", self.op().word()].map(Into::into).into();
        if let Some(state) = &self.restore {
            words.extend(self.exact.then(|| "--exact".into()));
            words.push(state.into());
        }
        let steps = Some(self.steps.to_string()).filter(|_| self.steps > 1 && self.to.is_none());
        let values = [
            ("--to", &self.to),
            ("--steps", &steps),
            ("--only", &self.only),
            ("--session", &self.session),
            ("--edits", &self.edits),
        ];
        let given = values.into_iter().filter_map(|(option, value)| Some((option, value.as_ref()?)));
        words.extend(given.flat_map(|(option, value)| [option.into(), value.into()]));
        let switches = [
            (self.revert, "--revert"),
            (self.chosen.is_some(), "-p"),
            (self.conversation, "--conversation"),
            (self.all_branches, "--branches=all"),
            (true, "--plan"),
        ];
        words.extend(switches.into_iter().filter(|(is_on, _)| *is_on).map(|(_, switch)| switch.into()));
        let paths: Vec<OsString> = self.paths.iter().flatten().filter_map(|path| read(path)).collect();
        if !paths.is_empty() {
            words.push("--".into());
            words.extend(paths);
        }
        words
    }

    /// Makes every check.
    pub fn plan(&self, view: &View<'_>) -> Result<Planned> {
        match &self.chosen {
            Some(_) => Ok(self.plan_parts(view)?.into()),
            None => self.plan_whole(view),
        }
    }

    /// As [`Self::plan`], of what of it is in files: all of that, or what was chosen.
    pub fn plan_parts(&self, view: &View<'_>) -> Result<PlannedTurn> {
        let spelled = self.with_the_path_apart(view)?;
        let (made, _) = spelled.plan_files(view)?;
        let Some(chosen) = &self.chosen else { return Ok(made) };
        if !chosen.is_of(&spelled.subject(view, &made)?) {
            return Err(changed_since_asked(&[]).into());
        }
        // What was saved since the questions is the user's, whatever was to become of earlier edits.
        let edits = match self.given_edits() {
            Some(Edits::Refuse) => Edits::Refuse,
            _ => Edits::Merge,
        };
        narrowed(view, made, chosen, edits)
    }

    /// What of it git can ask.
    pub fn questions(&self, view: &View<'_>) -> Result<Asked> {
        let spelled = self.with_the_path_apart(view)?;
        let (made, refused) = spelled.plan_files(view)?;
        if let Some(refused) = refused {
            view.warn(format!("{}: not asked about", refused.message));
        }
        Asked::of(view, &made.plan, spelled.subject(view, &made)?)
    }

    /// Of `17:src/a.rs` the state, and the path as one of those that are asked about.
    fn with_the_path_apart(&self, view: &View<'_>) -> Result<Self> {
        let Some(words) = self.restore.as_deref().filter(|_| self.paths.is_none()) else { return Ok(self.clone()) };
        let (_, state, path) = state_and_path(view, words)?;
        let request = Self { restore: Some(state.to_owned()), ..self.clone() };
        Ok(match path {
            Some(path) => request.paths(Some(&[pathspec_of(path)])),
            None => request,
        })
    }

    /// What of it is in files; without those that it would be refused for, where others are left, and that refusal.
    fn plan_files(&self, view: &View<'_>) -> Result<(PlannedTurn, Option<Refusal>)> {
        let index = Index::new(view.repo);
        let paths = self.paths.clone().unwrap_or_else(|| vec![index.whole()]);
        let of = |paths: &[String], edits: Option<String>| Self { paths: Some(paths.to_vec()), edits, ..self.clone() };
        let refusal = match of(&paths, self.edits.clone()).made(view) {
            Ok(made) => return Ok((made, None)),
            Err(error) => error.downcast::<Refusal>()?,
        };
        let is_chosen = self.chosen.as_ref().is_some_and(|chosen| refusal.paths.iter().any(|path| chosen.has(path)));
        let others = index.all_but(&refusal.paths).filter(|_| refusal.code == Code::Conflict && !is_chosen);
        let Some(others) = others else { return Err(refusal.into()) };
        let Ok(rest) = of(&[paths.clone(), others].concat(), self.edits.clone()).made(view) else {
            return Err(refusal.into());
        };
        // Of these paths alone it may be another turn that changed some last, where none is named.
        let all = || of(&paths, Some(Edits::Overwrite.word().to_owned())).made(view);
        let is_of_it = self.only.is_some() || all().is_ok_and(|all| all.turns == rest.turns);
        if is_of_it { Ok((rest, Some(refusal))) } else { Err(refusal.into()) }
    }

    fn made(&self, view: &View<'_>) -> Result<PlannedTurn> {
        match self.plan_whole(view)? {
            Planned::Made(made) => Ok(*made),
            Planned::Walk(_) => Err(Refusal::new(Code::Usage, "this goes as a whole: there are no hunks to choose")
                .hint("leave -p out")
                .into()),
        }
    }

    /// Of which turns, or of what state, it is. Another turn may have been made since the user was asked.
    fn subject(&self, view: &View<'_>, made: &PlannedTurn) -> Result<String> {
        let state = self.restore.as_deref().map(|words| state_at(view, words)).transpose()?;
        Ok(format!("{:?} {:?}", made.turns, state.map(|state| state.worktree)))
    }

    fn given_edits(&self) -> Option<Edits> {
        let word = self.edits.as_deref()?;
        Edits::ALL.into_iter().find(|edits| edits.word() == word)
    }

    fn plan_whole(&self, view: &View<'_>) -> Result<Planned> {
        let mut view = view.clone();
        view.takes_all_branches |= self.all_branches;
        let edits = self.given_edits();
        let extent = self.to.clone().map_or(Extent::Steps(self.steps), Extent::To);
        let paths: Option<Vec<OsString>> =
            self.paths.as_ref().map(|all| all.iter().filter_map(|path| read(path)).collect());
        let paths = paths.as_deref();
        match (&self.restore, self.redo) {
            (Some(state), _) if self.exact => {
                whole(paths, "a state that is gone to exactly")?;
                Ok(exact::plan(&view, state)?.into())
            }
            (Some(state), _) => Ok(restore::plan(&view, state, given(Op::Restore, paths)?)?.into()),
            (None, true) => Ok(Planned::Walk(Box::new(undo::plan(&view, Op::Redo, &extent, edits)?))),
            (None, false) => self.plan_undo(&view, extent, paths, edits),
        }
    }

    fn plan_undo(
        &self,
        view: &View<'_>,
        extent: Extent,
        paths: Option<&[OsString]>,
        edits: Option<Edits>,
    ) -> Result<Planned> {
        if let Some(session) = &self.session {
            whole(paths, "a session's share")?;
            return Ok(sessions::plan(view, session, edits)?.into());
        }
        if let Some(step) = self.only.as_deref().and_then(StepRange::parse) {
            return Ok(steps::plan_only(view, &step, given(Op::Undo, paths)?, edits)?.into());
        }
        if let Some(step) = self.to.as_deref().and_then(StepName::parse).filter(|_| self.only.is_none()) {
            whole(paths, "a step that is gone back to")?;
            return Ok(steps::plan_to(view, &step, edits)?.into());
        }
        let which = match &self.only {
            Some(turn) => Which::Only(turn.clone()),
            None if self.revert => Which::Last(extent),
            None if paths.is_some() => Which::PartsOf(extent),
            None => return Ok(Planned::Walk(Box::new(undo::plan(view, Op::Undo, &extent, edits)?))),
        };
        Ok(revert::plan(view, &which, given(Op::Undo, paths)?, edits)?.into())
    }
}

fn read(path: &str) -> Option<OsString> {
    Some(OsString::from_vec(lossless::decode(path)?.into()))
}

/// Refuses paths of what goes as a whole.
fn whole(paths: Option<&[OsString]>, what: &str) -> Result<()> {
    if paths.is_none() {
        return Ok(());
    }
    Err(Refusal::new(Code::Usage, format!("{what} has no paths: it goes as a whole"))
        .hint("leave the paths out")
        .into())
}

fn given(op: Op, pathspecs: Option<&[OsString]>) -> Result<&[OsString]> {
    match pathspecs {
        Some([]) => Err(nothing(op, "no path was asked for").into()),
        pathspecs => Ok(pathspecs.unwrap_or_default()),
    }
}
