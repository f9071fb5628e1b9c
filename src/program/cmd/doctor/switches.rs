//! What turns an agent's hooks off, wherever they are set up.

use crate::agents::adapters::{Switch, adapter};
use crate::agents::files::SettingsDirectory;
use crate::agents::setup::{Scope, Setup, title};
use crate::agents::switch::{broken, deciding};
use crate::git::repo::Repo;
use crate::program::cmd::doctor::finding::{Finding, Severity, quoted_word};
use std::path::{Path, PathBuf};

/// The settings that turn an agent's hooks off here, or with which it does not start.
pub fn check(repo: &Repo, setup: &Setup) -> Vec<Finding> {
    let switches = adapter(setup.agent).map_or(&[][..], |row| row.switches);
    let mut findings: Vec<Finding> = switches.iter().filter_map(|switch| off(repo, setup, switch)).collect();
    // Its switches are in the same files.
    for (path, (name, text)) in switches.first().map(|switch| files(repo, setup, switch)).unwrap_or_default() {
        let why = text.and_then(|text| broken(&name, &text));
        findings.extend(why.map(|why| finding(setup, &format!("it does not start with this file ({why})"), &path)));
    }
    findings
}

/// The files that may have a switch, the one that decides first: where each is, its name, and its text.
fn files(repo: &Repo, setup: &Setup, switch: &Switch) -> Vec<(PathBuf, (String, Option<String>))> {
    let mut files = Vec::new();
    for (scope, names) in [(Scope::Project, switch.project), (Scope::User, switch.user)] {
        let Ok(place) = SettingsDirectory::of(repo.top(), setup, scope) else { continue };
        let file = |name: &&str| (place.path(name), ((*name).to_owned(), place.read(name).ok().flatten()));
        files.extend(names.iter().map(file));
    }
    files
}

fn off(repo: &Repo, setup: &Setup, switch: &Switch) -> Option<Finding> {
    let (paths, files): (Vec<PathBuf>, Vec<_>) = files(repo, setup, switch).into_iter().unzip();
    let path = paths.get(deciding(switch, &files)?)?;
    Some(finding(setup, &format!("its hooks are turned off by '{}'", switch.keys.join(".")), path))
}

fn finding(setup: &Setup, what: &str, path: &Path) -> Finding {
    Finding::new(Severity::Warning, format!("{}: {what}: '{}'", title(setup.agent), path.display()))
        .mend(format!("\"${{EDITOR:-vi}}\" {}", quoted_word(path)))
}
