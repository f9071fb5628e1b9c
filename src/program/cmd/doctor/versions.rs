//! What depends on the version of an agent that is installed.

use crate::agents::adapters::adapter;
use crate::agents::fire::{Fired, fire};
use crate::agents::setup::{Setup, title};
use crate::agents::standing::Standing;
use crate::agents::version::{is_older, number_in};
use crate::program::cmd::doctor::finding::{Finding, Severity};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// For so long an agent may take to say its version.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether an agent may be too old for the form in which its hooks are set up. What has fired has shown that it is not.
pub fn check(setup: &Setup, standings: &[Standing], fired: Option<SystemTime>) -> Option<Finding> {
    let since = adapter(setup.agent)?.form_since?;
    let set_up = standings.iter().filter_map(Standing::since).max();
    if fired >= set_up {
        return None;
    }
    let version = installed(setup.agent).filter(|version| is_older(version, since))?;
    let what = format!(
        "{} {version} may not load its hooks: their form is that of {since}, and older ones had another",
        title(setup.agent)
    );
    let program = adapter(setup.agent)?.programs.first()?;
    Some(Finding::new(Severity::Warning, what).mend(format!("update {program}")))
}

/// The version that an agent says that it has.
pub fn installed(agent: &str) -> Option<String> {
    let program = adapter(agent)?.programs.iter().find_map(|program| which::which(program).ok())?;
    let mut command = Command::new(program);
    command.arg("--version");
    match fire(command, b"", PATIENCE).ok()? {
        Fired::Ended { out, .. } => number_in(&out),
        _ => None,
    }
}
