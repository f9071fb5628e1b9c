//! Whether the hooks that are set up work: each is called as its agent would, with a payload that records nothing.

use crate::agents::fire::{Fired, fire};
use crate::agents::probe::{Trouble, judge, own, payload};
use crate::agents::setup::{Scope, title};
use crate::agents::standing::{HookCall, How, Standing};
use crate::git::repo::Repo;
use crate::model::bytes::sanitized;
use crate::program::cmd::doctor::finding::{Finding, Severity, quoted_word};
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tries each call of an agent's hooks in one place, and says once what is wrong.
pub fn check(repo: &Repo, standing: &Standing) -> Vec<Finding> {
    let (mut findings, mut seen): (Vec<Finding>, Vec<Option<Trouble>>) = Default::default();
    for (file, call) in standing.calls() {
        let is_tried = may_try(repo, standing, &file, &call);
        let trouble = match is_tried.then(|| tried(repo, standing, &call)) {
            Some(Ok(None)) => continue,
            Some(Ok(trouble)) => trouble,
            Some(Err(error)) => Some(Trouble::Fails(format!("{error:#}"))),
            None => None,
        };
        if !seen.contains(&trouble) {
            findings.push(match &trouble {
                Some(trouble) => told(standing, &file, &call, trouble),
                None => untried(standing, &file),
            });
            seen.push(trouble);
        }
    }
    findings
}

/// A command line that somebody else may have committed is not run: the agent itself would ask first.
fn may_try(repo: &Repo, standing: &Standing, file: &Path, call: &HookCall) -> bool {
    call.is_ours || standing.scope == Scope::User || !may_be_tracked(repo, file)
}

/// Whether git has the file, or that cannot be told.
fn may_be_tracked(repo: &Repo, file: &Path) -> bool {
    !is_this_repositorys(repo, file) || {
        // Where the letters' case makes no difference, a file has other names than git's.
        let mut spec = OsString::from(":(icase,literal)");
        spec.push(file);
        let list = repo.git_apart([OsStr::new("ls-files"), OsStr::new("-z"), OsStr::new("--"), &spec]);
        let listed = list.env("GIT_LITERAL_PATHSPECS", "0").run(b"");
        listed.map_or(true, |listed| !listed.is_empty())
    }
}

/// Whether a file is in this worktree itself: behind a link, or in a repository within it, it may be another's.
fn is_this_repositorys(repo: &Repo, file: &Path) -> bool {
    let (Ok(top), Ok(real)) = (repo.top().canonicalize(), file.canonicalize()) else { return false };
    let below = |path: &Path, top: &Path| path.strip_prefix(top).ok().map(Path::to_owned);
    let (Some(named), Some(found)) = (below(file, repo.top()), below(&real, &top)) else { return false };
    let mut above = found.ancestors().skip(1).filter(|directory| !directory.as_os_str().is_empty());
    named == found && !above.any(|directory| top.join(directory).join(".git").symlink_metadata().is_ok())
}

fn tried(repo: &Repo, standing: &Standing, call: &HookCall) -> Result<Option<Trouble>> {
    let fired = fire(command(repo, standing, call), payload().as_bytes(), call.limit)?;
    if fired == Fired::NotFound && matches!(call.how, How::File(_)) {
        // The file was there a moment ago: it is its interpreter.
        return Ok(Some(Trouble::Fails("its first line names a program that is not there".to_owned())));
    }
    Ok(judge(&fired, &own()?, which::which("oxundo").ok().as_deref()))
}

fn command(repo: &Repo, standing: &Standing, call: &HookCall) -> Command {
    let mut command = match &call.how {
        How::Line(shell, line) => {
            // Some systems have no bash.
            let shell = if which::which(shell).is_ok() { shell } else { "sh" };
            let mut command = Command::new(shell);
            command.arg("-c").arg(line);
            command
        }
        How::File(path) => Command::new(path),
        How::Plugin => {
            let mut command = Command::new("oxundo");
            command.args(["hook", standing.setup.agent]);
            command
        }
    };
    command.current_dir(repo.top());
    command
}

fn finding(standing: &Standing, file: &Path, what: &str) -> Finding {
    let name = title(standing.setup.agent);
    Finding::new(Severity::Error, sanitized(&format!("{name}: {what}: '{}'", file.display())))
}

fn untried(standing: &Standing, file: &Path) -> Finding {
    let what = "its hooks are not those of 'oxundo init' and are committed: they are not tried, as anybody may have written them";
    Finding { severity: Severity::Warning, ..finding(standing, file, what) }.mend(format!("cat {}", quoted_word(file)))
}

/// Says what is wrong, and what to do.
fn told(standing: &Standing, file: &Path, call: &HookCall, trouble: &Trouble) -> Finding {
    let say = |what: &str| finding(standing, file, what);
    let directory = || quoted_word(own().ok().as_ref().and_then(|own| own.file.parent()).unwrap_or(Path::new("/")));
    let edit = || format!("\"${{EDITOR:-vi}}\" {}", quoted_word(file));
    match trouble {
        Trouble::NotOnPath => say("its hooks do nothing, as there is no oxundo on PATH")
            .mend(format!("export PATH={}:\"$PATH\"", directory())),
        Trouble::Another(program) => Finding {
            severity: Severity::Warning,
            ..say(&format!("its hooks call another oxundo, {} in '{}'", program.version, parent(&program.file)))
        }
        .mend(format!("export PATH={}:\"$PATH\"", directory())),
        Trouble::Silent(program) => {
            let what = format!(
                "its hooks do not reach this oxundo; on PATH is '{}', which may be an older one",
                program.display()
            );
            say(&what).mend("oxundo doctor --fix").mend(format!("export PATH={}:\"$PATH\"", directory()))
        }
        Trouble::Fails(how) => say(&format!("its hook fails ({how})")).mend("oxundo doctor --fix").mend(edit()),
        Trouble::Slow => {
            let what = format!("its hook does not end within {} s", call.limit.as_secs_f64());
            say(&what).mend("oxundo doctor --fix").mend(edit())
        }
        Trouble::NotExecutable => say("its hook may not be executed")
            .mend("oxundo doctor --fix")
            .mend(format!("chmod +x {}", quoted_word(file))),
    }
}

fn parent(file: &Path) -> String {
    file.parent().map_or(PathBuf::new(), Path::to_owned).display().to_string()
}
