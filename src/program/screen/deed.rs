//! What can be done from the timeline screen: planned as its command plans it, and carried out only as it was shown.

use crate::error::{Code, Refusal};
use crate::git::checkpoint::Checkpoints;
use crate::git::repo::Repo;
use crate::model::bytes::{in_quotes, quoted_line, shown};
use crate::model::checkpoint::{Change, Delta};
use crate::model::merge::Edits;
use crate::model::plan::{Op, Plan};
use crate::model::step::{StepName, StepRange};
use crate::ops::outcome::Outcome;
use crate::ops::planned::Planned;
use crate::ops::request::Request;
use crate::ops::revert::Which;
use crate::ops::turn::session::{By, Command, look_ahead, settled_for};
use crate::ops::undo::range::Extent;
use crate::ops::undo::range::changed_since;
use crate::ops::view::View;
use crate::ops::{branch, exact, restore, revert, steps, undo};
use crate::program::interrupt;
use crate::program::usage::line;
use crate::warning::Warn;
use anyhow::{Error, Result};
use gix::ObjectId;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Of so many files the lines are counted.
const COUNTED: usize = 200;

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Undo or redo until this is the last turn done.
    Go { to: String, forward: bool },
    /// Go to a state as a whole.
    Exact(String),
    /// Take one turn or step out.
    Only(String),
    /// Take the turns above this one out by commits on top.
    Revert(u64),
    /// Bring one path back as it was then.
    Path { state: String, path: BString },
    /// Bring back what was chosen hunk by hunk.
    Hunks(Box<Request>),
    /// Start a branch.
    Branch { name: String, turn: String },
}

/// What to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub deed: Deed,
    /// The file whose difference is shown; of the first one where none is chosen.
    pub path: Option<BString>,
}

/// A file that would change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub path: BString,
    pub shown: String,
    pub action: &'static str,
    /// Lines that come and go, where they were counted.
    pub lines: Option<(u64, u64)>,
}

/// What would be done now.
#[derive(Clone, Debug)]
pub struct Told {
    /// In a few lines.
    pub lines: Vec<String>,
    pub files: Vec<Changed>,
    /// A word for what it does.
    pub id: String,
    /// The worktree's files before and after.
    pub trees: [ObjectId; 2],
}

impl Deed {
    /// Plans it, and changes nothing.
    pub fn told<'r>(&self, repo: &'r Repo, heard: Warn<'r>, edits: Option<Edits>) -> Result<Told> {
        look_ahead(repo, heard, self.command(), |view| {
            let planned = self.plan(view, edits)?;
            let (plan, before, id) = (planned.plan().clone(), planned.present().worktree, planned.digest(view)?);
            let after = Checkpoints::new(view.repo).tree_after(before, &plan)?;
            let files = changed(view, &plan)?;
            let lines = planned.preview().in_short().lines().map(str::to_owned).collect();
            Ok(Told { lines, files, id, trees: [before, after] })
        })
    }

    /// Does it, if it is still what was shown.
    pub fn done(&self, repo: &Repo, heard: Warn<'_>, edits: Option<Edits>, looked_at: &Told) -> Result<Outcome> {
        interrupt::watch(repo)?;
        let plan = |view: &View<'_>| {
            let planned = self.plan(view, edits)?;
            if planned.digest(view)? == looked_at.id {
                return Ok(planned);
            }
            Err(changed_since(planned.plan().op).into())
        };
        settled_for(repo, heard, self.command(), plan, |locked, planned, _| planned.carry_out(locked))
    }

    /// The command line that does it.
    pub fn line(&self, edits: Option<Edits>) -> Vec<OsString> {
        let (name, words): (&str, Vec<OsString>) = match self {
            Self::Go { to, forward: true } => ("redo", ["--to", to].map(Into::into).into()),
            Self::Go { to, .. } => ("undo", ["--to", to].map(Into::into).into()),
            Self::Exact(state) => ("restore", ["--exact", state].map(Into::into).into()),
            Self::Only(name) => ("undo", ["--only", name].map(Into::into).into()),
            Self::Revert(turn) => ("undo", ["--revert", "--to", &turn.to_string()].map(Into::into).into()),
            Self::Path { state, path } => ("restore", vec![state.into(), "--".into(), literal(path)]),
            Self::Hunks(request) => {
                return request.words().into_iter().filter(|word| word != "--plan").collect();
            }
            Self::Branch { name, turn } => ("branch", [name, turn].map(Into::into).into()),
        };
        // restore asks nobody's leave.
        let edits = edits.filter(|_| name != "restore").map(|edits| format!("--edits={}", edits.word()).into());
        ["oxundo", name].map(Into::into).into_iter().chain(edits).chain(words).collect()
    }

    fn command(&self) -> Command {
        let op = match self {
            Self::Go { forward: true, .. } => Op::Redo,
            Self::Go { .. } | Self::Only(_) | Self::Revert(_) => Op::Undo,
            Self::Exact(_) | Self::Path { .. } | Self::Hunks(_) => Op::Restore,
            Self::Branch { .. } => Op::Branch,
        };
        Command { op, by: By::Typed }
    }

    fn plan(&self, view: &View<'_>, edits: Option<Edits>) -> Result<Planned> {
        let view = &view.forking(view.config().forks_conversations()?);
        let made = match self {
            Self::Go { to, .. } => {
                let Some(step) = StepName::parse(to) else {
                    let walk = undo::plan(view, self.command().op, &Extent::To(to.clone()), edits)?;
                    return Ok(Planned::Walk(Box::new(walk)));
                };
                steps::plan_to(view, &step, edits)?
            }
            Self::Exact(state) => exact::plan(view, state)?,
            Self::Hunks(request) => return request.plan(view),
            Self::Only(name) => match StepRange::parse(name) {
                Some(step) => steps::plan_only(view, &step, &[], edits)?,
                None => revert::plan(view, &Which::Only(name.clone()), &[], edits)?,
            },
            Self::Revert(turn) => revert::plan(view, &Which::Last(Extent::To(turn.to_string())), &[], edits)?,
            Self::Path { state, path } => {
                restore::plan(view, state, &[literal(path)]).map_err(|error| was_not_there(error, state, path))?
            }
            Self::Branch { name, turn } => branch::plan(view, name, turn, edits)?,
        };
        Ok(Planned::Made(Box::new(made)))
    }
}

/// The refusal to bring back what would be taken away, in words for who has typed no pathspec.
pub fn was_not_there(error: Error, state: &str, path: &BString) -> Error {
    match error.downcast::<Refusal>() {
        Ok(refusal) if refusal.code == Code::NotFound && state.parse::<u64>().is_ok() => {
            let away = quoted_line(&line([&b"undo"[..], b"--to", state.as_bytes(), b"--", literal(path).as_bytes()]));
            Refusal::new(Code::NotFound, format!("{} was not there then", in_quotes(path.as_bstr())))
                .hint(format!("run {away} to take it away"))
                .into()
        }
        Ok(refusal) => refusal.into(),
        Err(error) => error,
    }
}

/// The pathspec of this very path.
pub fn literal(path: &BString) -> OsString {
    OsString::from_vec([b":(top,literal)", path.as_slice()].concat())
}

fn changed(view: &View<'_>, plan: &Plan) -> Result<Vec<Changed>> {
    let moves = plan.files.iter().take(COUNTED);
    let files = moves.map(|file| (file.path.clone(), Change::new(file.from, file.to))).collect();
    let delta = Delta { files, ..Delta::default() };
    let (counted, _) = Checkpoints::new(view.repo).file_stats(&delta)?;
    let lines: BTreeMap<&BString, (u64, u64)> =
        delta.files.keys().zip(counted.iter().map(|file| (file.insertions, file.deletions))).collect();
    let all = plan.actions().into_iter().map(|(path, action)| {
        let lines = lines.get(path).copied();
        Changed { path: path.clone(), shown: shown(path.as_bstr()), action, lines }
    });
    Ok(all.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::args::Cli;

    #[test]
    fn the_line_of_a_deed_says_what_becomes_of_edits_and_can_be_typed() {
        let deeds = [
            (Deed::Go { to: "1".into(), forward: false }, "oxundo undo --edits=overwrite --to 1"),
            (Deed::Go { to: "2".into(), forward: true }, "oxundo redo --edits=overwrite --to 2"),
            (Deed::Only("2.1".into()), "oxundo undo --edits=overwrite --only 2.1"),
            (Deed::Revert(1), "oxundo undo --edits=overwrite --revert --to 1"),
            (Deed::Branch { name: "b".into(), turn: "1".into() }, "oxundo branch --edits=overwrite b 1"),
            (Deed::Exact("1".into()), "oxundo restore --exact 1"),
        ];
        for (deed, expected) in deeds {
            let line = deed.line(Some(Edits::Overwrite));
            assert_eq!(line.join(" ".as_ref()), expected);
            assert!(Cli::parsed(&line).is_ok(), "{expected}");
        }
    }
}
