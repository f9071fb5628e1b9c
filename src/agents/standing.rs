//! The hooks of an agent as they stand in its files, and when one of them last fired.

use crate::agents::adapters::adapter;
use crate::agents::edit;
use crate::agents::files::SettingsDirectory;
use crate::agents::setup::{FileEdit, SETUPS, Scope, Setup};
use crate::error::SilentHooks;
use crate::git::repo::Repo;
use crate::git::repo::clock::rfc3339_of;
use anyhow::Result;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// For so long a hook may take at most.
const LONGEST: Duration = Duration::from_secs(10);

/// The hooks of an agent that stand in one place.
#[derive(Debug)]
pub struct Standing {
    /// The agent.
    pub setup: &'static Setup,
    /// Where.
    pub scope: Scope,
    /// The directory of the files.
    pub place: SettingsDirectory,
    /// What `init` would make of the files.
    pub edits: Vec<FileEdit>,
}

/// A hook, as the agent calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCall {
    /// How.
    pub how: How,
    /// Whether it is as `init` writes it.
    pub is_ours: bool,
    /// How long it may take.
    pub limit: Duration,
}

/// How a hook is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// This line is given to this shell.
    Line(&'static str, String),
    /// The file is executed.
    File(PathBuf),
    /// oxundo itself is called, by a plugin.
    Plugin,
}

/// The scopes in which an agent's files are different ones.
pub fn scopes(setup: &Setup) -> impl Iterator<Item = Scope> {
    let is_twice = setup.place(Scope::Project) == setup.place(Scope::Local);
    [Scope::Local, Scope::Project, Scope::User].into_iter().filter(move |scope| !is_twice || *scope != Scope::Project)
}

/// The hooks of an agent in a scope, for the worktree with this top; none where there are none.
pub fn find(top: &Path, setup: &'static Setup, scope: Scope) -> Result<Option<Standing>> {
    let place = SettingsDirectory::of(top, setup, scope)?;
    let edits = setup.install(scope, |name| place.read(name))?;
    // The mark alone may be in what the user wrote, as in a list of commands that need no question.
    let is_there = setup.remove(scope, |name| place.read(name))?.iter().any(|edit| edit.before != edit.after);
    Ok(is_there.then_some(Standing { setup, scope, place, edits }))
}

/// Where an agent's hooks stand, files that cannot be read left out.
pub fn all(top: &Path, setup: &'static Setup) -> Vec<Standing> {
    scopes(setup).filter_map(|scope| find(top, setup, scope).ok().flatten()).collect()
}

/// Whether one of an agent's programs is found.
pub fn is_installed(agent: &str) -> bool {
    adapter(agent).is_some_and(|row| row.programs.iter().any(|program| which::which(program).is_ok()))
}

/// When a hook of an agent's last fired in a worktree.
pub fn fired(repo: &Repo, agent: &str) -> Option<SystemTime> {
    repo.scratch_path("fired").join(agent).metadata().ok()?.modified().ok()
}

/// A time as it is told.
pub fn rfc3339(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    rfc3339_of(i64::try_from(seconds).unwrap_or_default())
}

/// The agents whose hooks are set up for this worktree, and since when none of them has fired.
pub fn silent(repo: &Repo) -> Vec<SilentHooks> {
    let about = |setup: &'static Setup| {
        let since = all(repo.top(), setup).iter().filter_map(Standing::since).min();
        since.map(|since| SilentHooks {
            agent: setup.agent.to_owned(),
            installed: is_installed(setup.agent),
            set_up: rfc3339(since),
            last_fired: fired(repo, setup.agent).map(rfc3339),
        })
    };
    SETUPS.iter().filter(|setup| setup.writes()).filter_map(about).collect()
}

impl Standing {
    /// The file, or the first of them.
    pub fn path(&self) -> PathBuf {
        self.place.path(self.edits.first().map_or(self.setup.place(self.scope), |edit| &edit.path))
    }

    /// Since when the files are as they are.
    pub fn since(&self) -> Option<SystemTime> {
        let times = self.edits.iter().filter_map(|edit| self.place.path(&edit.path).metadata().ok()?.modified().ok());
        times.max()
    }

    /// Whether the text is another than the one that `init` writes.
    pub fn is_outdated(&self) -> bool {
        self.edits.iter().any(|edit| edit.before != edit.after)
    }

    /// The hooks with their files, each different call once.
    pub fn calls(&self) -> Vec<(PathBuf, HookCall)> {
        let mut calls: Vec<(PathBuf, HookCall)> = Vec::new();
        for edit in &self.edits {
            let path = self.place.path(&edit.path);
            for call in edit.before.iter().flat_map(|text| self.calls_of(edit, text, &path)) {
                if calls.iter().all(|(_, other)| other.how != call.how) {
                    calls.push((path.clone(), call));
                }
            }
        }
        calls
    }

    fn calls_of(&self, edit: &FileEdit, text: &str, path: &Path) -> Vec<HookCall> {
        let is_ours = edit.before == edit.after;
        if edit.executable {
            return vec![HookCall { how: How::File(path.to_owned()), is_ours, limit: LONGEST }];
        }
        let lines = |text: &str| self.lines(text);
        let Some(found) = lines(text) else {
            // A script of a plugin's language; its other files hold no call.
            let is_plugin = path.extension().is_some_and(|name| name == "js" || name == "ts");
            let call = HookCall { how: How::Plugin, is_ours: true, limit: LONGEST };
            return is_plugin.then_some(call).into_iter().collect();
        };
        let ours: Vec<_> = edit.after.as_deref().and_then(lines).into_iter().flatten().map(|(how, _)| how).collect();
        found.into_iter().map(|(how, limit)| HookCall { is_ours: ours.contains(&how), how, limit }).collect()
    }

    /// The command lines in a file, with the time that the agent gives them; none where it is not JSON.
    fn lines(&self, text: &str) -> Option<Vec<(How, Duration)>> {
        let hooks = edit::found(text, &self.setup.mark()).ok()?;
        let line = |hook: &Value| {
            let (shell, line) = hook["bash"]
                .as_str()
                .map(|line| ("bash", line))
                .or(hook["command"].as_str().map(|line| ("sh", line)))?;
            Some((How::Line(shell, line.to_owned()), self.limit(hook)))
        };
        Some(hooks.iter().filter_map(|(_, hook)| line(hook)).collect())
    }

    fn limit(&self, hook: &Value) -> Duration {
        let unit = adapter(self.setup.agent).filter(|row| row.milliseconds).map_or(1.0, |_| 0.001);
        let given = hook["timeout"].as_f64().or(hook["timeoutSec"].as_f64()).filter(|time| *time > 0.0);
        let given = given.and_then(|time| Duration::try_from_secs_f64(time * unit).ok());
        given.map_or(LONGEST, |given| given.min(LONGEST))
    }
}
