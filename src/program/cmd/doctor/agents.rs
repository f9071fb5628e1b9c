//! What is wrong with the agents' hooks.

use crate::agents::adapters::adapter;
use crate::agents::edit;
use crate::agents::files::SettingsDirectory;
use crate::agents::json::{Reads, stops_at};
use crate::agents::setup::{SETUPS, Scope, Setup, title};
use crate::agents::standing::{Standing, find, fired, is_installed, rfc3339, scopes};
use crate::git::repo::Repo;
use crate::model::bytes::sanitized;
use crate::program::cmd::doctor::finding::{Finding, Overview, Severity, quoted_word};
use crate::program::cmd::doctor::{switches, trial, versions, worktrees};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The events that Cursor knows. One that it does not makes it drop the whole file.
const CURSORS: [&str; 20] = [
    "beforeSubmitPrompt",
    "stop",
    "sessionStart",
    "sessionEnd",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "subagentStart",
    "subagentStop",
    "beforeShellExecution",
    "afterShellExecution",
    "beforeMCPExecution",
    "afterMCPExecution",
    "beforeReadFile",
    "afterFileEdit",
    "preCompact",
    "afterAgentResponse",
    "afterAgentThought",
    "beforeTabFileRead",
    "afterTabFileEdit",
];

/// An agent's hooks as they stand in one place, and what is known of the agent.
struct SetUp<'a> {
    repo: &'a Repo,
    standing: &'a Standing,
    path: PathBuf,
    fired: Option<SystemTime>,
}

/// Looks at every agent.
pub fn check(repo: &Repo, about: &mut Overview) -> Vec<Finding> {
    let mut findings = Vec::new();
    for setup in SETUPS.iter().filter(|setup| setup.writes()) {
        let (installed, fired) = (is_installed(setup.agent), fired(repo, setup.agent));
        let standings = stand(repo, setup, &mut findings);
        for standing in &standings {
            let found = SetUp { repo, standing, path: standing.path(), fired };
            findings.extend(found.findings(installed));
        }
        findings.extend(subdirectory(repo, setup, &standings));
        if !standings.is_empty() {
            findings.extend(switches::check(repo, setup));
            findings.extend(versions::check(setup, &standings, fired));
        }
        about.agents.extend(described(repo, setup, &standings, installed, fired));
    }
    findings.extend(last_failure(repo));
    findings
}

/// What is there of an agent, if anything is.
fn described(
    repo: &Repo,
    setup: &'static Setup,
    standings: &[Standing],
    installed: bool,
    fired: Option<SystemTime>,
) -> Option<Value> {
    let mut places: Vec<_> = standings.iter().map(Standing::path).collect();
    if places.is_empty() && installed {
        places.extend(worktrees::of_main(repo, setup));
    }
    let hint = places.is_empty().then(|| format!("oxundo init {}", setup.agent));
    (installed || !places.is_empty()).then(|| {
        json!({
            "agent": setup.agent,
            "installed": installed,
            "hooks": places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>(),
            "last_fired": fired.map(rfc3339),
            "set_up_with": hint,
        })
    })
}

/// Where an agent's hooks stand; files that cannot be read are findings.
fn stand(repo: &Repo, setup: &'static Setup, findings: &mut Vec<Finding>) -> Vec<Standing> {
    let mut standings = Vec::new();
    for scope in scopes(setup) {
        match find(repo.top(), setup, scope) {
            Ok(standing) => standings.extend(standing),
            Err(error) => {
                let place = SettingsDirectory::of(repo.top(), setup, scope);
                findings
                    .extend(place.ok().and_then(|place| unreadable(setup, &place.path(setup.place(scope)), &error)));
            }
        }
    }
    standings
}

/// An agent that is started where the user is may not look for its hooks at the top.
fn subdirectory(repo: &Repo, setup: &Setup, standings: &[Standing]) -> Option<Finding> {
    let is_only_here = adapter(setup.agent).is_some_and(|row| row.only_where_started)
        && !standings.is_empty()
        && standings.iter().all(|standing| standing.scope != Scope::User);
    let here = Some(repo.prefix()).filter(|prefix| is_only_here && !prefix.as_os_str().is_empty())?;
    let what = format!(
        "{} started in '{}' would not see its hooks: it reads those of the directory that it starts in only",
        title(setup.agent),
        here.display()
    );
    let program = adapter(setup.agent).and_then(|row| row.programs.first()).copied().unwrap_or(setup.agent);
    let finding = Finding::new(Severity::Warning, what).mend(format!("oxundo init {} --user", setup.agent));
    Some(finding.mend(format!("cd {} && {program}", quoted_word(repo.top()))))
}

fn unreadable(setup: &Setup, path: &Path, error: &anyhow::Error) -> Option<Finding> {
    // Another plugin of that name is the user's own matter.
    path.is_file().then(|| {
        Finding::new(Severity::Error, format!("{}: '{}' cannot be used: {error:#}", title(setup.agent), path.display()))
            .mend(format!("\"${{EDITOR:-vi}}\" '{}'", path.display()))
    })
}

/// The flag that names a scope, for `init` or for `uninstall`.
fn flag(scope: Scope, for_init: bool) -> &'static str {
    match scope {
        Scope::Project if for_init => " --project",
        Scope::User => " --user",
        _ => "",
    }
}

impl SetUp<'_> {
    fn setup(&self) -> &'static Setup {
        self.standing.setup
    }

    fn finding(&self, what: &str) -> Finding {
        let name = title(self.setup().agent);
        Finding::new(Severity::Warning, format!("{name}: {what}: '{}'", self.path.display()))
    }

    /// All that is wrong with the hooks in this place.
    fn findings(&self, installed: bool) -> Vec<Finding> {
        let (agent, mut findings) = (self.setup().agent, Vec::new());
        let text = self.standing.edits.first().and_then(|edit| edit.before.as_deref());
        if self.standing.is_outdated() {
            findings.push(self.outdated(text));
        }
        findings.extend(text.and_then(|text| self.unread(text)));
        findings.extend(text.and_then(|text| self.unknown_events(text)));
        findings.extend(text.and_then(|text| self.narrowed(text)));
        if !installed {
            let mend = format!("oxundo uninstall {agent}{}", flag(self.standing.scope, false));
            findings.push(self.finding("its hooks are set up, but it is not installed (not found on PATH)").mend(mend));
        }
        findings.extend(self.trust());
        findings.extend(trial::check(self.repo, self.standing));
        findings
    }

    fn outdated(&self, text: Option<&str>) -> Finding {
        let agent = self.setup().agent;
        let hooks = text.and_then(|text| edit::found(text, &self.setup().mark()).ok()).unwrap_or_default();
        let timeout = |hook: &Value| hook["timeout"].as_f64();
        let short = hooks.iter().filter_map(|(_, hook)| timeout(hook)).any(|time| time < 1000.0);
        let long = hooks.iter().filter_map(|(_, hook)| timeout(hook)).any(|time| time >= 1000.0);
        let is_missing = self.standing.edits.iter().any(|edit| edit.before.is_none());
        let what = match adapter(agent).is_some_and(|row| row.milliseconds) {
            _ if is_missing => "files are missing that 'oxundo init' writes",
            true if short => "the time-out of its hooks is in milliseconds, and is too short",
            false if long => "the time-out of its hooks is in seconds, and is too long",
            _ => "its hooks are not as 'oxundo init' sets them up",
        };
        let init = format!("oxundo init {agent}{}", flag(self.standing.scope, true));
        self.finding(what).mend(init).mend("oxundo doctor --fix")
    }

    /// A file that 'oxundo init' can write into, and the agent leaves out as a whole: as Claude Code 2.1.332, Codex 0.169, Gemini CLI
    /// 0.61 and Qwen Code 0.24 did when they were run with such files.
    fn unread(&self, text: &str) -> Option<Finding> {
        let reads = match self.setup().agent {
            "claude" | "codex" => Reads::Plain,
            "gemini" | "qwen" => Reads::Comments,
            _ => return None,
        };
        let unknown_key = || {
            let keys: BTreeMap<String, Value> =
                serde_json::from_str(text).ok().filter(|_| self.setup().agent == "codex")?;
            let key = keys.into_keys().find(|key| !["hooks", "description"].contains(&key.as_str()))?;
            Some(format!("it knows no '{key}'"))
        };
        let why = stops_at(text, reads).or_else(unknown_key)?;
        let finding = self.finding(&format!("it reads nothing of the file ({why})"));
        Some(finding.mend(format!("\"${{EDITOR:-vi}}\" '{}'", self.path.display())))
    }

    /// Somebody has put a matcher before a hook of ours: of all other tools' calls nothing is told.
    fn narrowed(&self, text: &str) -> Option<Finding> {
        let (event, matcher) = edit::narrowed(text, &self.setup().mark()).ok()?.into_iter().next()?;
        let what = format!("its hook on '{event}' is called for '{}' alone", sanitized(&matcher));
        Some(self.finding(&what).mend(format!("\"${{EDITOR:-vi}}\" '{}'", self.path.display())))
    }

    fn unknown_events(&self, text: &str) -> Option<Finding> {
        if self.setup().agent != "cursor" {
            return None;
        }
        let unknown = edit::events(text).ok()?.into_iter().find(|event| !CURSORS.contains(&event.as_str()))?;
        let what = format!("it drops the whole file, as it knows no event '{unknown}'");
        Some(self.finding(&what).mend(format!("\"${{EDITOR:-vi}}\" '{}'", self.path.display())))
    }

    /// Agents run no hooks of a folder, or at all, that the user has not approved. One that has
    /// fired since it was set up has been.
    fn trust(&self) -> Option<Finding> {
        let set_up = self.path.metadata().and_then(|about| about.modified()).ok()?;
        if self.fired.is_some_and(|fired| fired >= set_up) {
            return None;
        }
        let user = self.setup().user();
        let base = user.variable.and_then(std::env::var_os).map(PathBuf::from);
        let home = PathBuf::from(std::env::var_os("HOME")?);
        let config = base.clone().unwrap_or_else(|| home.join(user.directory));
        let top = self.repo.top().to_string_lossy().into_owned();
        let text = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let program = adapter(self.setup().agent)?.programs.first()?;
        let here = self.standing.scope != Scope::User;
        let folder = || {
            let what = "it does not trust this folder yet, and runs none of its hooks";
            self.finding(what).mend(format!("cd '{top}' && {program}"))
        };
        match self.setup().agent {
            "claude" => {
                // Beside the directory, or in the one that the variable names.
                let file = base.map_or_else(|| home.join(".claude.json"), |base| base.join(".claude.json"));
                let known: Value = serde_json::from_str(&text(file)).unwrap_or_default();
                let trusted = known["projects"][&top]["hasTrustDialogAccepted"] == true;
                (here && !trusted).then(folder)
            }
            "gemini" => {
                let known: Value = serde_json::from_str(&text(config.join("trustedFolders.json"))).unwrap_or_default();
                let trusted = known.as_object().is_some_and(|folders| {
                    folders.iter().any(|(folder, level)| level != "DO_NOT_TRUST" && Path::new(&top).starts_with(folder))
                });
                (here && !trusted).then(folder)
            }
            "codex" => {
                let known = text(config.join("config.toml"));
                let key = format!("{}:", self.path.display());
                let approved = known.lines().any(|line| line.starts_with("[hooks.state.") && line.contains(&key));
                let what = "it has not been told that its hooks may run";
                (!approved).then(|| self.finding(what).mend(format!("cd '{top}' && {program}, and type '/hooks'")))
            }
            "pi" => (here && !pi_loads(&home.join(".pi/agent"), self.repo.top())).then(folder),
            _ => None,
        }
    }
}

/// Whether pi loads what a project has: the nearest folder that the user has decided on says so, or else a setting. One that
/// asks nobody, before 0.79, has written no such file.
fn pi_loads(directory: &Path, top: &Path) -> bool {
    let read = |name: &str| serde_json::from_str::<Value>(&std::fs::read_to_string(directory.join(name)).ok()?).ok();
    let decided = |known: &Value| top.ancestors().find_map(|folder| known[&*folder.to_string_lossy()].as_bool());
    let always = || read("settings.json").is_some_and(|settings| settings["defaultProjectTrust"] == "always");
    read("trust.json").is_none_or(|known| decided(&known).unwrap_or_else(always))
}

/// The last call of a hook, if it failed.
fn last_failure(repo: &Repo) -> Option<Finding> {
    let log = repo.scratch_path("hooks.log");
    let failed = log.metadata().ok()?.modified().ok()?;
    let later = SETUPS.iter().filter_map(|setup| fired(repo, setup.agent)).any(|fired| fired > failed);
    let text = std::fs::read_to_string(&log).ok()?;
    // A warning is none.
    let last = text.lines().last().filter(|line| !later && !line.contains(": warning: "))?;
    Some(
        Finding::new(Severity::Warning, format!("the last call of a hook failed: {last}"))
            .mend(format!("cat '{}'", log.display())),
    )
}
