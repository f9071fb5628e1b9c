//! One file per subcommand. Each opens nothing and prints nothing: it gets the
//! repository, decides with the model, lets the git layer act, and answers.

pub mod conversation;
pub mod diff;
pub mod doctor;
pub mod gc;
pub mod hook;
pub mod init;
pub mod log;
pub mod run;
pub mod show;
pub mod status;
pub mod stores;
pub mod travel;
pub mod turn;

use crate::error::{Code, Refusal};
use crate::git::Repo;
use crate::git::store::Stored;
use crate::model::timeline::TurnSpec;
use crate::ui::Ui;
use anyhow::Result;

/// Brings the records in order if nobody else is at work in the worktree.
///
/// # Errors
///
/// When that fails.
pub fn settle_if_idle(repo: &Repo, ui: &Ui, who: &str) -> Result<()> {
    let stored = repo.timeline()?;
    if stored.state.open.is_none() && !repo.is_interrupted()? {
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
    let spec = TurnSpec::parse(text)
        .map_err(|message| Refusal::new(Code::NotFound, message).hint("run 'oxundo log --all' to see the turns"))?;
    let missing = || {
        Refusal::new(Code::NotFound, format!("there is no turn '{text}' here"))
            .hint("run 'oxundo log --all' to see the turns")
    };
    match spec {
        TurnSpec::Number(0) => Ok(0),
        TurnSpec::Number(number) => match repo.turn(stored, number)? {
            Some(_) => Ok(number),
            None => Err(missing().into()),
        },
        TurnSpec::Below(n) => {
            let head = repo.head()?;
            let mut at = stored.state.top(head.stack());
            for _ in 0..n {
                let Some(number) = at else { break };
                at = repo.known_turn(stored, number)?.previous;
            }
            at.ok_or_else(|| missing().into())
        }
        TurnSpec::Commit(digits) => {
            let Ok(commit) = repo.find_commit_id(&digits) else {
                return Err(missing().into());
            };
            for note in repo.notes_on(&[commit])?.into_iter().flatten() {
                if note.worktree == repo.worktree_id()
                    && repo.turn(stored, note.turn)?.is_some_and(|turn| turn.knows(&commit))
                {
                    return Ok(note.turn);
                }
            }
            Err(missing().into())
        }
    }
}
