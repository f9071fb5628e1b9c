//! `doctor --fix`: what an older `init` wrote, or somebody broke, is written as `init` writes it now. Nothing is set up
//! that was not, and all else in the files stays as it is.

use crate::agents::files::Changed;
use crate::agents::setup::{SETUPS, Scope, Setup, title};
use crate::agents::standing::{Standing, find, scopes};
use crate::git::repo::Repo;
use crate::program::cmd::doctor::finding::{Finding, Fixed, Severity};
use anyhow::Result;

/// How often a file is read anew that somebody else changes in between.
const TRIES: usize = 3;

/// Mends the agents' files; gives what was mended, and what could not be.
pub fn fix(repo: &Repo) -> (Vec<Fixed>, Vec<Finding>) {
    let (mut fixed, mut findings) = (Vec::new(), Vec::new());
    for setup in SETUPS.iter().filter(|setup| setup.writes()) {
        for scope in scopes(setup) {
            match fix_place(repo, setup, scope) {
                Ok(files) => fixed.extend(files),
                Err(error) => {
                    let what = format!("{}: '{}' is not mended: {error:#}", title(setup.agent), setup.place(scope));
                    findings.push(Finding::new(Severity::Error, what).mend("oxundo doctor --fix"));
                }
            }
        }
    }
    (fixed, findings)
}

fn fix_place(repo: &Repo, setup: &'static Setup, scope: Scope) -> Result<Vec<Fixed>> {
    let mut fixed = Vec::new();
    for left in (0..TRIES).rev() {
        // What cannot be read is a finding of its own.
        let Ok(Some(standing)) = find(repo.top(), setup, scope) else { break };
        match fix_files(&standing, &mut fixed) {
            Ok(()) => break,
            Err(error) if left == 0 || !error.is::<Changed>() => return Err(error),
            Err(_) => {}
        }
    }
    Ok(fixed)
}

fn fix_files(standing: &Standing, fixed: &mut Vec<Fixed>) -> Result<()> {
    for edit in standing.edits.iter().filter(|edit| !standing.place.is_done(edit)) {
        standing.place.apply(edit)?;
        let path = standing.place.path(&edit.path).display().to_string();
        fixed.push(Fixed { agent: standing.setup.agent, path, advice: standing.setup.advice });
    }
    Ok(())
}
