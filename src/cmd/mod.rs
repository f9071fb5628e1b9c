//! One file per subcommand. Each opens nothing and prints nothing: it gets the
//! repository, decides with the model, lets the git layer act, and answers.

pub mod branch;
pub mod checkpoint;
pub mod complete;
pub mod completions;
pub mod conversation;
pub mod diff;
pub mod doctor;
pub mod gc;
pub mod hook;
pub mod init;
pub mod log;
pub mod man;
pub mod outcome;
pub mod restore;
pub mod rewind;
pub mod run;
pub mod show;
pub mod squash;
pub mod status;
pub mod stores;
pub mod take_out;
pub mod travel;
pub mod turn;

use crate::config::Config;
use crate::error::{Code, Refusal};
use crate::git::apply::Apply;
use crate::git::objects::Objects;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::settings::setting_of_user;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::model::checkpoint::Checkpoint;
use crate::model::timeline::TurnSpec;
use crate::model::turn::Made;
use crate::ui::Ui;
use anyhow::Result;
use outcome::Outcome;

/// Talks to the user as they have configured it, and shows what takes its time.
pub fn heed(repo: &mut Repo, ui: &mut Ui) {
    repo.watched_by(ui.watch());
    let config = Config(repo);
    ui.hints = config.hints();
    ui.colors(config.colors().as_deref());
}

/// As [`heed`], where there is no repository.
pub fn heed_user(ui: &mut Ui) {
    ui.hints = crate::config::hints_of_user();
    ui.colors(setting_of_user("color.ui").map(|value| value.to_string()).as_deref());
}

/// Brings the records in order if nobody else is at work in the worktree.
///
/// # Errors
///
/// When that fails.
pub fn settle_if_idle(repo: &Repo, ui: &Ui, who: &str) -> Result<()> {
    let stored = Timelines::new(repo).timeline()?;
    if stored.state.open.is_none() && !Apply::new(repo).is_interrupted()? {
        return Ok(());
    }
    match repo.try_lock(who)? {
        Some(_lock) => crate::turns::settle_unless_live(repo, ui),
        None => Ok(()),
    }
}

/// Says where the turns are that were made before this was a git repository.
pub fn tell_of_earlier_store(repo: &Repo, ui: &Ui) {
    if let Some(store) = repo.earlier_store() {
        let (directory, git_dir) = (store.directory.display(), store.git_dir.display());
        ui.warn(&format!(
            "the turns in '{directory}' from before 'git init' are in a store of their own: \
             'GIT_DIR={git_dir} oxundo log' shows them, and undo works likewise"
        ));
    }
}

/// The number of the turn that a user's words mean.
///
/// # Errors
///
/// A refusal `not_found` for words that mean none, and for a turn that is not there.
pub fn resolve(repo: &Repo, stored: &Stored, text: &str) -> Result<u64> {
    if let Some(named) = stored.state.named.get(text) {
        return Ok(named.top.unwrap_or(0));
    }
    let spec = TurnSpec::parse(text)
        .map_err(|message| Refusal::new(Code::NotFound, message).hint("run 'oxundo log --all' to see the turns"))?;
    let missing = || {
        Refusal::new(Code::NotFound, format!("there is no turn '{text}' here"))
            .hint("run 'oxundo log --all' to see the turns")
    };
    match spec {
        TurnSpec::Number(0) => Ok(0),
        TurnSpec::Number(number) => match stored.turn(number)? {
            Some(_) => Ok(number),
            None => Err(missing().into()),
        },
        TurnSpec::Below(n) => {
            let head = Refs::new(repo).head()?;
            let mut at = stored.state.top(head.stack());
            at = last_whole(repo, stored, at)?;
            for _ in 0..n {
                let Some(number) = at else { break };
                at = last_whole(repo, stored, stored.known_turn(number)?.previous)?;
            }
            at.ok_or_else(|| missing().into())
        }
        TurnSpec::Commit(digits) => {
            let Ok(commit) = Objects::new(repo).find_commit_id(&digits) else {
                return Err(missing().into());
            };
            for note in Refs::new(repo).notes_on(&[commit])?.into_iter().flatten() {
                if note.worktree == repo.worktree_id()
                    && stored.turn(note.turn)?.is_some_and(|turn| turn.knows(&commit))
                {
                    return Ok(note.turn);
                }
            }
            Err(missing().into())
        }
    }
}

/// Does what an outcome plans, as a turn that oxundo makes.
///
/// # Errors
///
/// A refusal or failure, with everything as it was.
pub fn make(repo: &Repo, ui: &Ui, made: Made, message: String, outcome: &mut Outcome) -> Result<()> {
    Apply::new(repo).check_names(&outcome.plan)?;
    let turn = crate::turns::make(repo, ui, made, message, &outcome.plan)?;
    if let Some(turn) = turn {
        outcome.rescue = Timelines::new(repo).timeline()?.checkpoint_id(turn.turn, Side::Before)?;
        outcome.turn = Some(turn.turn);
    }
    Ok(())
}

/// The state that a user's words mean: after a turn, before it with `:before`, or one they named.
///
/// # Errors
///
/// A refusal `not_found` when there is none.
pub fn state_at(repo: &Repo, stored: &Stored, text: &str) -> Result<Checkpoint> {
    if let Some(named) = stored.state.named.get(text) {
        return stored.named_checkpoint(named.number);
    }
    let (turn, side) = match text.rsplit_once(':') {
        Some((turn, "before")) => (turn, Side::Before),
        Some((turn, "after")) => (turn, Side::After),
        _ => (text, Side::After),
    };
    if turn == "0" {
        let first = stored.turn(1)?.ok_or_else(|| show::missing("there is no first turn, or it has expired"))?;
        return stored.checkpoint(first.turn, Side::Before);
    }
    stored.checkpoint(show::existing(repo, stored, turn)?, side)
}

/// The code of a refusal.
pub fn code_of(error: &anyhow::Error) -> Option<Code> {
    error.downcast_ref::<Refusal>().map(|refusal| refusal.code)
}

/// The first turn from here down that is not only a part taken out of others.
///
/// # Errors
///
/// When the timeline cannot be read.
pub fn last_whole(_repo: &Repo, stored: &Stored, from: Option<u64>) -> Result<Option<u64>> {
    let mut at = from;
    while let Some(number) = at {
        let turn = stored.known_turn(number)?;
        if !turn.is_part() {
            break;
        }
        at = turn.previous;
    }
    Ok(at)
}
