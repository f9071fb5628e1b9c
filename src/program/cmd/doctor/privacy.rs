//! What others cannot read in the worktree, and can, or could, in the git directory.

use crate::git::checkpoint::Checkpoints;
use crate::git::index::Index;
use crate::git::repo::Repo;
use crate::git::repo::audience::Audience;
use crate::git::timeline::Timelines;
use crate::git::timeline::stored::{Side, Stored};
use crate::git::worktree::Worktree;
use crate::git::worktree::privacy::Privacy;
use crate::model::bytes::quoted;
use crate::model::checkpoint::{Checkpoint, Reason};
use crate::program::cmd::doctor::finding::{Finding, Fixed, Severity, quoted_word};
use anyhow::Result;
use gix::bstr::{BString, ByteSlice};
use std::collections::BTreeSet;

/// How many files are named.
const NAMED: usize = 10;

type Paths = BTreeSet<BString>;

/// Names what is private: what undo does not cover for that, what an earlier version recorded, and what git publishes.
pub fn check(repo: &Repo) -> Result<Vec<Finding>> {
    // A timeline that cannot be read is a finding of its own.
    let (false, Ok(stored)) = (repo.audience() == Audience::Nobody, Timelines::new(repo).timeline()) else {
        return Ok(Vec::new());
    };
    let close = |finding: Finding| match repo.closing() {
        Some(closing) => finding.mend(format!("chmod {} {}", closing.words, quoted_word(repo.common_dir()))),
        None => finding,
    };
    let not_covered = told(&not_covered(&stored)?, |number| {
        let (files, are, them) = if number == 1 { ("file", "is", "it") } else { ("files", "are", "them") };
        format!("{number} {files} {are} private: undo does not cover {them}, since others can read the git directory")
    });
    let recorded = told(&recorded(repo, &stored)?, |number| {
        let (files, are, were, them) =
            if number == 1 { ("file", "is", "was", "it") } else { ("files", "are", "were", "them") };
        format!(
            "{number} {files} that {are} private {were} recorded all the same: others can read {them} in git's objects"
        )
    });
    let recorded = recorded.map(|finding| {
        close(finding)
            .mend("oxundo uninstall --purge && git gc --prune=now, which takes all turns along; change their passwords")
    });
    let tracked = told(&tracked(repo)?, |number| {
        format!(
            "{number} tracked files are closed to others: what git tracks, it publishes to all who can read the git directory"
        )
    });
    Ok(not_covered.map(close).into_iter().chain(recorded).chain(tracked.map(close)).collect())
}

/// Closes the git directory where something is private that is oxundo's to care for.
pub fn fix(repo: &Repo) -> Result<Vec<Fixed>> {
    let (Some(closing), Ok(stored)) = (repo.closing(), Timelines::new(repo).timeline()) else { return Ok(Vec::new()) };
    if not_covered(&stored)?.is_empty() && recorded(repo, &stored)?.is_empty() {
        return Ok(Vec::new());
    }
    repo.close_git_directory(&closing)?;
    Ok(vec![Fixed { agent: "git", path: repo.common_dir().display().to_string(), advice: None }])
}

fn told(paths: &Paths, what: impl FnOnce(usize) -> String) -> Option<Finding> {
    let more = paths.len().checked_sub(NAMED).filter(|more| *more > 0).map(|more| format!("and {more} more"));
    let details = paths.iter().take(NAMED).map(|path| quoted(path.as_bstr())).chain(more).collect();
    (!paths.is_empty()).then(|| Finding { details, ..Finding::new(Severity::Warning, what(paths.len())) })
}

/// What was private when a turn began last.
fn not_covered(stored: &Stored<'_>) -> Result<Paths> {
    let Some(newest) = stored.turn_numbers()?.pop() else { return Ok(Paths::new()) };
    let skipped = stored.checkpoint(newest, Side::Before)?.skipped;
    Ok(skipped.into_iter().filter(|it| it.reason == Reason::Private).map(|it| it.path).collect())
}

fn recorded(repo: &Repo, stored: &Stored<'_>) -> Result<Paths> {
    let mut found = Paths::new();
    let mut look = |state: Result<Checkpoint>| -> Result<()> {
        // A record that is damaged is a finding of its own.
        if let Ok(state) = state {
            found.extend(Checkpoints::new(repo).exposed(&state)?);
        }
        Ok(())
    };
    for number in stored.turn_numbers()? {
        look(stored.checkpoint(number, Side::Before))?;
        look(stored.checkpoint(number, Side::After))?;
    }
    for number in stored.rescue_numbers()? {
        look(stored.rescue(number))?;
    }
    for named in stored.state.named.values() {
        look(stored.named_checkpoint(named.number))?;
    }
    Ok(found)
}

fn tracked(repo: &Repo) -> Result<Paths> {
    let index = Index::new(repo).read_index()?;
    let (worktree, privacy) = (Worktree::new(repo), Privacy::new(repo));
    let mut found = Paths::new();
    for entry in index.entries() {
        let path = entry.path(&index);
        // What cannot be looked at is told of where it matters.
        if let Ok(Some((stat, _))) = worktree.stat(path)
            && privacy.hides(path, &stat)
        {
            found.insert(path.to_owned());
        }
    }
    Ok(found)
}
