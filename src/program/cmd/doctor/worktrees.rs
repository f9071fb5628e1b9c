//! Whether the hooks that are set up in one worktree are in the others too: files that are not committed are not.

use crate::agents::adapters::adapter;
use crate::agents::setup::{SETUPS, Scope, Setup, title};
use crate::agents::standing::{Standing, all, find, fired};
use crate::agents::version::is_older;
use crate::git::repo::Repo;
use crate::program::cmd::doctor::finding::{Finding, Severity, quoted_word};
use crate::program::cmd::doctor::versions::installed;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An agent's hooks in each worktree, in the order of these.
struct Spread {
    setup: &'static Setup,
    standings: Vec<Vec<Standing>>,
}

/// Looks into every worktree of the repository.
pub fn check(repo: &Repo) -> Vec<Finding> {
    let Ok(worktrees) = repo.worktrees() else { return Vec::new() };
    if worktrees.len() < 2 {
        return Vec::new();
    }
    let mut missing: BTreeMap<usize, Vec<&'static Setup>> = BTreeMap::new();
    for setup in SETUPS.iter().filter(|setup| setup.writes()) {
        let spread = Spread::of(&worktrees, setup);
        for at in (0..worktrees.len()).filter(|at| spread.is_missing(&worktrees, *at)) {
            missing.entry(at).or_default().push(setup);
        }
    }
    missing.into_iter().map(|(at, setups)| told(&worktrees, at, &setups)).collect()
}

/// The agents whose hooks are set up in another worktree, and not in this one.
pub fn missing_here(repo: &Repo) -> Vec<&'static Setup> {
    let worktrees = repo.worktrees().unwrap_or_default();
    let Some(at) = worktrees.iter().position(|top| top == repo.top()) else { return Vec::new() };
    let is_missing =
        |setup: &&'static Setup| setup.writes() && Spread::of(&worktrees, setup).is_missing(&worktrees, at);
    if worktrees.len() < 2 { Vec::new() } else { SETUPS.iter().filter(is_missing).collect() }
}

impl Spread {
    fn of(worktrees: &[PathBuf], setup: &'static Setup) -> Self {
        Self { setup, standings: worktrees.iter().map(|top| all(top, setup)).collect() }
    }

    /// Whether the hooks are set up in another worktree, and the agent has none in this one.
    fn is_missing(&self, worktrees: &[PathBuf], at: usize) -> bool {
        let is_elsewhere = self.standings.iter().any(|standings| !standings.is_empty());
        is_elsewhere && self.standings[at].is_empty() && !has_fired(&worktrees[at], self.setup) && !self.is_shared(at)
    }

    /// Whether the agent reads the main worktree's own file in a linked one.
    fn is_shared(&self, at: usize) -> bool {
        let is_local = |standing: &Standing| standing.scope == Scope::Local;
        let is_in_main = at > 0 && self.standings.first().is_some_and(|main| main.iter().any(is_local));
        let since = adapter(self.setup.agent).and_then(|row| row.shares_local_since).filter(|_| is_in_main);
        since.is_some_and(|since| reads_it(self.setup, since))
    }
}

/// The main worktree's own file, where an agent reads it in this linked one.
pub fn of_main(repo: &Repo, setup: &'static Setup) -> Option<PathBuf> {
    let since = adapter(setup.agent)?.shares_local_since.filter(|_| repo.linked_id().is_some())?;
    let main = repo.worktrees().ok()?.into_iter().next()?;
    let standing = find(&main, setup, Scope::Local).ok()??;
    reads_it(setup, since).then(|| standing.path())
}

/// Whether the installed version is not older than this one.
fn reads_it(setup: &Setup, since: &str) -> bool {
    installed(setup.agent).is_some_and(|version| !is_older(&version, since))
}

/// Whether a hook has fired there all the same: agents have ways of their own to copy files into a worktree.
fn has_fired(top: &Path, setup: &Setup) -> bool {
    Repo::open(top).is_ok_and(|repo| fired(&repo, setup.agent).is_some())
}

fn told(worktrees: &[PathBuf], at: usize, setups: &[&'static Setup]) -> Finding {
    let titles: Vec<_> = setups.iter().map(|setup| title(setup.agent)).collect();
    let names: Vec<_> = setups.iter().map(|setup| setup.agent).collect();
    let (titles, names, top) = (titles.join(", "), names.join(" "), &worktrees[at]);
    let what = format!("no hooks of {titles} are set up in the worktree '{}', as they are in another", top.display());
    Finding::new(Severity::Warning, what)
        .mend(format!("oxundo init {names} --user"))
        .mend(format!("oxundo -C {} init {names}", quoted_word(top)))
}
