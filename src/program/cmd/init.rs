//! `oxundo init` and `oxundo uninstall`: setting a repository and its agents' hooks up, and
//! taking that away again.

use crate::agents::adapters::adapter;
use crate::agents::files::SettingsDirectory;
use crate::agents::servers;
use crate::agents::setup;
use crate::agents::setup::{FileEdit, SETUPS, Scope, Setup};
use crate::agents::spawn;
use crate::error::{Code, Refusal};
use crate::git::durable::Durable;
use crate::git::objects::print::text_diff;
use crate::git::refs::Refs;
use crate::git::repo::Repo;
use crate::git::repo::scratch::replace_synced;
use crate::git::repo::scratch::{KEPT_AT_PURGE, REPLACED};
use crate::git::timeline::Timelines;
use crate::model::bytes::{instead, sanitized, shell_word};
use crate::model::checkpoint::shown_name;
use crate::ops::purge::only_copies;
use crate::ops::turn::session::settled;
use crate::program::args::{InitArgs, ScopeArgs, UninstallArgs};
use crate::program::ui::{Answer, Ui};
use crate::program::usage;
use anyhow::Result;
use dialoguer::MultiSelect;
use serde_json::{Value, json};
use std::io::IsTerminal;

/// The notes that git shows and copies. Of one ref alone git warns in every repository that has no turn yet, of a glob it does not.
const NOTES: &str = "refs/notes/oxundo*";

/// How earlier releases called them.
const FORMER_NOTES: &str = "refs/notes/oxundo";

/// The keys that name them.
const NOTES_KEYS: [&str; 2] = ["notes.displayRef", "notes.rewriteRef"];

/// The aliases on offer: the name, and what it stands for.
const ALIASES: [(&str, &str); 2] = [("undo", "oxundo undo"), ("redo", "oxundo redo")];

/// git's own pre-push hook, as `--pre-push` writes it.
const PRE_PUSH: &str = "#!/bin/sh\n# Made by 'oxundo init --pre-push'; 'oxundo uninstall' takes it away.\n\
                        command -v oxundo >/dev/null 2>&1 || exit 0\nexec oxundo hook git pre-push \"$@\"\n";

/// Sets up.
pub fn install(repo: &Repo, ui: &Ui, args: &InitArgs) -> Result<SetupReport> {
    let scope = scope_of(&args.scope);
    let mut report = SetupReport::new("init", args.dry_run);
    let setups = chosen(ui, args)?;
    if args.mcp {
        for setup in setups {
            report.server(repo, setup, scope);
        }
        return Ok(report);
    }
    let user = scope == Scope::User;
    if repo.is_shadow() && (args.pre_push || args.alias && !user) {
        let what = if args.pre_push { "--pre-push" } else { "--alias" };
        return Err(Refusal::new(Code::Usage, format!("{what} is for git, and this directory has none"))
            .hint("run 'oxundo init --alias --user' to have 'git undo' in all your repositories")
            .into());
    }
    // They come first: where git cannot write them now, nothing is half set up.
    for key in NOTES_KEYS {
        let known = match scope {
            Scope::User => repo.settings_in(user, key).iter().any(|value| value == NOTES),
            _ => repo.settings(key).iter().any(|value| value == NOTES),
        };
        if !known {
            report.set(repo, user, key, NOTES)?;
        }
        if repo.settings_in(user, key).iter().any(|value| value == FORMER_NOTES) {
            report.unset(repo, user, key, FORMER_NOTES)?;
        }
    }
    for setup in &setups {
        report.agent(repo, setup, scope, |place| setup.install(scope, |name| place.read(name)));
        if let Some(advice) = setup.advice {
            report.advice.push(format!("{}: {advice}", setup::title(setup.agent)));
        }
    }
    if !user {
        reach(repo, args, &setups, &mut report);
    }
    // Where there is no git, neither is of use here.
    if !repo.is_shadow() || args.alias {
        aliases(repo, args, user, &mut report)?;
    }
    if !repo.is_shadow() {
        pre_push(repo, args, &mut report)?;
    }
    Ok(report)
}

/// Takes away what [`install`] set up.
pub fn uninstall(repo: &Repo, ui: &Ui, args: &UninstallArgs) -> Result<SetupReport> {
    let mut report = SetupReport::new("uninstall", args.dry_run);
    if args.purge && !args.dry_run && !args.yes {
        check_wanted(ui, &only_copies(repo)?)?;
    }
    let scopes: &[Scope] = if args.user { &[Scope::User] } else { &[Scope::Local, Scope::Project] };
    for setup in if args.agents.is_empty() { SETUPS.iter().collect() } else { named(&args.agents)? } {
        if let Some(row) = servers::row(setup.agent) {
            let place = SettingsDirectory::below(repo.top(), row.user, scopes[0]);
            report.edit(setup, row.place(scopes[0]), scopes[0], place, |place| {
                row.remove(scopes[0], |name| place.read(name))
            });
        }
        for scope in scopes {
            if *scope == Scope::Project && setup.place(Scope::Project) == setup.place(Scope::Local) {
                continue;
            }
            report.agent(repo, setup, *scope, |place| setup.remove(*scope, |name| place.read(name)));
        }
    }
    // Without names all goes; with names the rest is still in use.
    if args.agents.is_empty() {
        let notes = NOTES_KEYS.iter().flat_map(|key| [NOTES, FORMER_NOTES].map(|value| ((*key).to_owned(), value)));
        for (key, value) in notes.chain(aliased()) {
            if repo.settings_in(args.user, &key).iter().any(|found| found == value) {
                report.unset(repo, args.user, &key, value)?;
            }
        }
        let hook = repo.hooks_directory()?.join("pre-push");
        if std::fs::read_to_string(&hook).is_ok_and(|text| text == PRE_PUSH) {
            report.say(&hook.display().to_string(), "removed", "git's pre-push hook");
            if !args.dry_run {
                std::fs::remove_file(&hook)?;
            }
        }
    }
    if args.purge {
        purge(repo, ui, args, &mut report)?;
    }
    Ok(report)
}

/// Says which sessions the files of this repository do not reach.
fn reach(repo: &Repo, args: &InitArgs, setups: &[&'static Setup], report: &mut SetupReport) {
    let written = || setups.iter().filter(|setup| setup.writes());
    let here = repo.prefix();
    for setup in written().filter(|setup| adapter(setup.agent).is_some_and(|row| row.only_where_started)) {
        if !here.as_os_str().is_empty() {
            report.advice.push(sanitized(&format!(
                "{} started in '{}' does not see this: start it in '{}', or run 'oxundo init {} --user'",
                setup::title(setup.agent),
                here.display(),
                repo.top().display(),
                setup.agent
            )));
        }
    }
    let names: Vec<_> = written().map(|setup| setup.agent).collect();
    if !args.scope.project && !names.is_empty() && repo.worktrees().is_ok_and(|worktrees| worktrees.len() > 1) {
        let names = names.join(" ");
        report.advice.push(format!(
            "what is not committed is in this worktree only: 'oxundo init {names} --user' reaches the others, later ones too"
        ));
    }
}

fn purge(repo: &Repo, ui: &Ui, args: &UninstallArgs, report: &mut SetupReport) -> Result<()> {
    let heard = ui.heard();
    let dry_run = args.dry_run;
    let locked = if dry_run { None } else { Some(settled(repo, &heard, "uninstall")?) };
    for copy in &repo.moved_aside() {
        report.say(&copy.display().to_string(), "removed", "moved aside by undo: it may be the only copy");
    }
    let (refs, scratches) = (Refs::new(repo).own_refs()?, repo.scratches());
    if let Some(locked) = &locked {
        let apply = locked.apply()?;
        for place in repo.keeping() {
            apply.sweep_replaced(&place.join(REPLACED), true);
        }
    }
    for name in &refs {
        report.say(&shown_name(name), "removed", "a ref");
    }
    for scratch in &scratches {
        report.say(&scratch.display().to_string(), "removed", "scratch");
    }
    let kept = repo.keeping().into_iter().flat_map(|place| KEPT_AT_PURGE.map(|name| place.join(name)));
    for kept in kept.filter(|kept| kept.exists()) {
        let shown = kept.display().to_string();
        if dry_run && kept.ends_with(REPLACED) {
            report.say(&shown, "removed", "what undo replaced; what other programs have saved in it meanwhile is kept");
        } else {
            report.say(&shown, "kept", "what other programs saved while oxundo replaced their files");
        }
    }
    if dry_run {
        return Ok(());
    }
    // First: a power cut must not bring back what is gone.
    Durable::new(repo).forget()?;
    Timelines::new(repo).purge()
}

/// How many are named in a question.
const NAMED: usize = 5;

/// Asks whether what may be the only copies of something are to be deleted; refuses where nobody can be asked.
fn check_wanted(ui: &Ui, copies: &[String]) -> Result<()> {
    if copies.is_empty() {
        return Ok(());
    }
    let more = copies.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", {more} more") } else { String::new() };
    let what = sanitized(&format!("{}{more}", copies[..copies.len().min(NAMED)].join(", ")));
    if ui.can_ask()
        && Ui::confirm_loss(&format!("Delete {what}? It may be the only copy of something of yours."))? == Some(true)
    {
        return Ok(());
    }
    let message = format!("the only copy of something of yours may be in {what}, and would be deleted");
    Err(Refusal::new(Code::Conflict, message)
        .hint("run 'oxundo log' to see the turns: restore and redo bring back what is in them")
        .hint("or run 'oxundo uninstall --purge --yes'")
        .into())
}

fn scope_of(args: &ScopeArgs) -> Scope {
    match (args.project, args.user) {
        (true, _) => Scope::Project,
        (_, true) => Scope::User,
        _ => Scope::Local,
    }
}

fn is_installed(setup: &Setup) -> bool {
    adapter(setup.agent).is_some_and(|adapter| adapter.programs.iter().any(|program| which::which(program).is_ok()))
}

fn chosen(ui: &Ui, args: &InitArgs) -> Result<Vec<&'static Setup>> {
    if !args.agents.is_empty() {
        return named(&args.agents);
    }
    let installed: Vec<_> = SETUPS.iter().filter(|setup| is_installed(setup)).collect();
    if args.all {
        return Ok(installed);
    }
    // Both are for git.
    if args.alias || args.pre_push {
        return Ok(Vec::new());
    }
    if ui.json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Refusal::new(Code::Usage, "no agent was named, and there is no terminal to ask on")
            .hint("run 'oxundo init --all' for every agent that is installed")
            .hint(format!("or name some of {}", setup::names()))
            .into());
    }
    let items: Vec<_> = (SETUPS.iter())
        .map(|setup| {
            let there = if is_installed(setup) { "" } else { " (not found on PATH)" };
            (format!("{}{there}", setup::title(setup.agent)), is_installed(setup))
        })
        .collect();
    let asked = MultiSelect::new().with_prompt("Set up the hooks of (space to choose)").items_checked(items);
    let picked = asked.interact_opt().map_err(|error| Refusal::new(Code::Io, error.to_string()))?;
    match picked {
        Some(picked) => Ok(picked.into_iter().filter_map(|at| SETUPS.get(at)).collect()),
        None => Err(Refusal::new(Code::Usage, "nothing was chosen").hint("run 'oxundo init' again").into()),
    }
}

fn named(names: &[String]) -> Result<Vec<&'static Setup>> {
    let unknown = |name: &String| {
        let refusal = Refusal::new(Code::Usage, format!("'{}' is not an agent that oxundo knows", sanitized(name)))
            .hints(usage::near(name, setup::names().split(", ").map(str::to_owned)).map(|near| instead(name, &near)))
            .hint(format!("known are {}", setup::names()));
        // What is not there can be run no more than it can be set up.
        match spawn::find(name.as_ref()) {
            Ok(_) => refusal.hint(format!(
                "run 'oxundo run -- {}' to make a turn of what another one does",
                shell_word(name.as_bytes())
            )),
            Err(_) => refusal.hint("run 'oxundo doctor' to see which of them are set up"),
        }
    };
    names.iter().map(|name| setup::setup(name).ok_or_else(|| unknown(name).into())).collect()
}

fn aliased() -> impl Iterator<Item = (String, &'static str)> {
    ALIASES.into_iter().map(|(name, command)| (format!("alias.{name}"), command))
}

fn aliases(repo: &Repo, args: &InitArgs, user: bool, report: &mut SetupReport) -> Result<()> {
    let mut free = Vec::new();
    for (name, command) in ALIASES {
        let key = format!("alias.{name}");
        let known = repo.setting(&key);
        let taken = which::which(format!("git-{name}")).is_ok();
        if known.as_ref().is_some_and(|value| value == command) {
            continue;
        }
        if !args.alias {
            if known.is_none() && !taken {
                free.push(format!("'git {name}'"));
            }
        } else if let Some(known) = known {
            report.advice.push(format!("'git {name}' is an alias of yours already: {}", sanitized(&known.to_string())));
        } else if taken {
            report.advice.push(format!("'git {name}' is a command of git-extras already"));
        } else {
            report.set(repo, user, &key, command)?;
        }
    }
    if !free.is_empty() {
        report.advice.push(format!("'oxundo init --alias' makes it {}", free.join(" and ")));
    }
    Ok(())
}

/// The hook that remembers what is pushed: where a tool manages git's hooks, its own words.
fn pre_push(repo: &Repo, args: &InitArgs, report: &mut SetupReport) -> Result<()> {
    const CALL: &str = "oxundo hook git pre-push \"$@\"";
    let there = |name: &str| repo.top().join(name).exists();
    let managed = if there(".husky") {
        Some(format!("put this line into .husky/pre-push: {CALL}"))
    } else if there("lefthook.yml") || there(".lefthook.yml") {
        let words = "pre-push: {commands: {oxundo: {run: 'oxundo hook git pre-push', use_stdin: true}}}";
        Some(format!("put this into lefthook.yml: {words}"))
    } else if there(".pre-commit-config.yaml") {
        let words = "{repo: local, hooks: [{id: oxundo, name: oxundo, language: system, stages: [pre-push], \
                     always_run: true, pass_filenames: false, entry: oxundo hook git pre-push}]}";
        Some(format!("put this into .pre-commit-config.yaml, below repos: - {words}"))
    } else {
        None
    };
    let hook = repo.hooks_directory()?.join("pre-push");
    let found = std::fs::read_to_string(&hook).ok();
    let shown = hook.display().to_string();
    match (managed, found) {
        (_, Some(text)) if text.contains("oxundo hook git pre-push") => {}
        (Some(managed), _) => report.advice.push(format!("to have undo refuse what was pushed by URL too, {managed}")),
        (None, _) if !args.pre_push => {
            report.advice.push("'oxundo init --pre-push' has undo refuse what was pushed by URL too".to_owned());
        }
        (None, _) if hook.symlink_metadata().is_ok() => {
            report.say(&shown, "left", &format!("it is there already; let it call: {CALL}"));
        }
        (None, _) => {
            report.say(&shown, "written", "git's pre-push hook");
            if !args.dry_run {
                if let Some(directory) = hook.parent() {
                    std::fs::create_dir_all(directory)?;
                }
                replace_synced(&hook, PRE_PUSH.as_bytes(), 0o755)?;
            }
        }
    }
    Ok(())
}

/// What was done, or would be.
pub struct SetupReport {
    op: &'static str,
    dry_run: bool,
    lines: Vec<Item>,
    diffs: String,
    advice: Vec<String>,
}

struct Item {
    what: String,
    action: &'static str,
    about: String,
    agent: Option<&'static str>,
}

impl SetupReport {
    fn new(op: &'static str, dry_run: bool) -> Self {
        Self { op, dry_run, lines: Vec::new(), diffs: String::new(), advice: Vec::new() }
    }

    /// Whether something was left that should have been changed.
    pub fn has_failed(&self) -> bool {
        self.lines.iter().any(|line| line.action == "left")
    }

    fn say(&mut self, what: &str, action: &'static str, about: &str) {
        self.lines.push(Item { what: sanitized(what), action, about: sanitized(about), agent: None });
    }

    /// Changes an agent's files. One that cannot be understood is left, and the others go on.
    fn agent(
        &mut self,
        repo: &Repo,
        setup: &'static Setup,
        scope: Scope,
        changes: impl FnOnce(&SettingsDirectory) -> Result<Vec<FileEdit>>,
    ) {
        let place = SettingsDirectory::of(repo.top(), setup, scope);
        self.edit(setup, setup.place(scope), scope, place, changes);
    }

    /// Tells an agent of the server that `oxundo mcp` is.
    fn server(&mut self, repo: &Repo, setup: &'static Setup, scope: Scope) {
        let Some(row) = servers::row(setup.agent) else {
            return self.line(setup, setup::title(setup.agent), "left", servers::by_hand(setup.agent));
        };
        let place = SettingsDirectory::below(repo.top(), row.user, scope);
        self.edit(setup, row.place(scope), scope, place, |place| row.install(scope, |name| place.read(name)));
    }

    fn edit(
        &mut self,
        setup: &'static Setup,
        name: &str,
        scope: Scope,
        place: Result<SettingsDirectory>,
        changes: impl FnOnce(&SettingsDirectory) -> Result<Vec<FileEdit>>,
    ) {
        let (changes, place) = match place.and_then(|place| Ok((changes(&place)?, place))) {
            Ok(found) => found,
            Err(error) => return self.line(setup, name, "left", &format!("{error:#}")),
        };
        for change in changes {
            let shown = place.path(&change.path).display().to_string();
            let shown = if scope == Scope::User { shown } else { change.path.clone() };
            let action = match (&change.before, &change.after) {
                _ if place.is_done(&change) => "unchanged",
                (None, _) => "written",
                (_, None) => "removed",
                _ => "changed",
            };
            match self.make(&place, &shown, &change) {
                Ok(()) => self.line(setup, &shown, action, ""),
                Err(error) => self.line(setup, &shown, "left", &format!("{error:#}")),
            }
        }
    }

    fn make(&mut self, place: &SettingsDirectory, shown: &str, change: &FileEdit) -> Result<()> {
        if place.is_done(change) {
            return Ok(());
        }
        if !self.dry_run {
            return place.apply(change);
        }
        self.diffs.push_str(&text_diff(shown, change.before.as_deref(), change.after.as_deref())?);
        Ok(())
    }

    fn line(&mut self, setup: &'static Setup, what: &str, action: &'static str, about: &str) {
        let about = if about.is_empty() { setup::title(setup.agent).to_owned() } else { sanitized(about) };
        self.lines.push(Item { what: sanitized(what), action, about, agent: Some(setup.agent) });
    }

    fn set(&mut self, repo: &Repo, user: bool, key: &str, value: &str) -> Result<()> {
        self.say(&format!("{key} = {value}"), "written", "git's configuration");
        if self.dry_run { Ok(()) } else { repo.add_setting(user, key, value) }
    }

    fn unset(&mut self, repo: &Repo, user: bool, key: &str, value: &str) -> Result<()> {
        self.say(&format!("{key} = {value}"), "removed", "git's configuration");
        if self.dry_run { Ok(()) } else { repo.remove_setting(user, key, value) }
    }
}

impl Answer for SetupReport {
    fn json(&self) -> serde_json::Result<Value> {
        let changes: Vec<_> = (self.lines.iter())
            .map(|line| json!({"what": line.what, "action": line.action, "agent": line.agent, "about": line.about}))
            .collect();
        Ok(
            json!({"op": self.op, "dry_run": self.dry_run, "changes": changes, "diff": self.diffs, "advice": self.advice}),
        )
    }

    fn text(&self) -> String {
        let would = if self.dry_run { "would be " } else { "" };
        let line = |line: &Item| match line.action {
            "unchanged" | "left" => format!("{:9} {} ({})\n", line.action, line.what, line.about),
            action => format!("{would}{action:9} {} ({})\n", line.what, line.about),
        };
        let mut text: String = self.lines.iter().map(line).collect();
        if text.is_empty() {
            text.push_str("nothing to do\n");
        }
        // Item by line: a diff of someone else's file may hold anything.
        text.extend(self.diffs.lines().map(|line| sanitized(line) + "\n"));
        text
    }

    fn hints(&self) -> Vec<String> {
        self.advice.clone()
    }
}
