//! What a power cut has left of git's own files, where no log of oxundo's told of it.

use crate::git::durable::Durable;
use crate::git::repo::Repo;
use crate::program::cmd::doctor::finding::{Finding, Severity};
use crate::warning::{Warn, Warning};
use anyhow::Result;

/// Files that git stops at.
pub fn check(repo: &Repo) -> Result<Option<Finding>> {
    let details = Durable::new(repo).damage()?;
    let what = "git stops at files that a power cut has left, or something else has damaged";
    if details.is_empty() {
        return Ok(None);
    }
    Ok(Some(Finding { details, ..Finding::new(Severity::Error, what) }.mend("oxundo doctor --fix")))
}

/// Mends them, as far as anything tells what they were.
pub fn repair(repo: &Repo, heard: Warn<'_>) -> Result<()> {
    if !Durable::new(repo).damage()?.is_empty() {
        Durable::new(repo).mend_all()?.words().iter().for_each(|words| heard(Warning::new(words)));
    }
    Ok(())
}
