//! What turns an agent's hooks off, wherever they are set up.

use crate::agents::adapters::{Switch, adapter};
use crate::agents::files::SettingsDirectory;
use crate::agents::setup::{Scope, Setup, title};
use crate::agents::switch::deciding;
use crate::git::repo::Repo;
use crate::program::cmd::doctor::finding::{Finding, Severity, quoted_word};
use std::path::PathBuf;

/// The settings that turn an agent's hooks off here.
pub fn check(repo: &Repo, setup: &Setup) -> Vec<Finding> {
    let switches = adapter(setup.agent).map_or(&[][..], |row| row.switches);
    switches.iter().filter_map(|switch| off(repo, setup, switch)).collect()
}

fn off(repo: &Repo, setup: &Setup, switch: &Switch) -> Option<Finding> {
    let (mut paths, mut files): (Vec<PathBuf>, Vec<_>) = Default::default();
    for (scope, names) in [(Scope::Project, switch.project), (Scope::User, switch.user)] {
        let Ok(place) = SettingsDirectory::of(repo.top(), setup, scope) else { continue };
        for name in names {
            paths.push(place.path(name));
            files.push(((*name).to_owned(), place.read(name).ok().flatten()));
        }
    }
    let path = paths.get(deciding(switch, &files)?)?;
    let what = format!("{}: its hooks are turned off by '{}'", title(setup.agent), switch.keys.join("."));
    Some(
        Finding::new(Severity::Warning, format!("{what}: '{}'", path.display()))
            .mend(format!("\"${{EDITOR:-vi}}\" {}", quoted_word(path))),
    )
}
