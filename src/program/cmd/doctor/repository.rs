//! What stands in oxundo's way in git itself: its version, its configuration, what it is in the
//! middle of.

use crate::config::{Config, enabled_in_environment};
use crate::git::index::Index;
use crate::git::objects::commit::Sign;
use crate::git::repo::Repo;
use crate::git::repo::process::git_version;
use crate::git::repo::scratch::{KEPT, disk_usage};
use crate::git::timeline::Timelines;
use crate::model::bytes::{quoted, sanitized, size};
use crate::program::cmd::doctor::finding::{Finding, Overview, Severity, quoted_word};
use gix::bstr::BStr;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The oldest git that is tried.
const OLDEST: (u32, u32) = (2, 39);

/// How many files are named that look like secrets.
const NAMED: usize = 10;

/// How much scratch is worth a word.
const LARGE: u64 = 1 << 30;

/// Looks at git and its configuration.
pub fn check(repo: &Repo, about: &mut Overview) -> Vec<Finding> {
    let version = git_version();
    about.git.clone_from(&version);
    about.scratch_bytes = repo.scratches().iter().map(|scratch| disk_usage(scratch)).sum();
    // Where that cannot be said, it is a finding of its own.
    about.taken_bytes = Timelines::new(repo).space().unwrap_or(about.scratch_bytes);
    repo.remember_space(about.taken_bytes);
    about.turns = Timelines::new(repo).timeline().map_or(0, |stored| stored.state.next.saturating_sub(1));
    [
        old_git(version.as_deref()),
        switched_off(repo),
        hooks_path(repo, about),
        signing(repo),
        in_progress(repo),
        large(about.scratch_bytes),
        over_size(repo, about.taken_bytes),
    ]
    .into_iter()
    .flatten()
    .chain(kept(repo))
    .chain(secrets(repo))
    .chain(mirrors(repo))
    .collect()
}

fn old_git(version: Option<&str>) -> Option<Finding> {
    let Some(version) = version else {
        let what = "git is not found on PATH";
        return Some(Finding::new(Severity::Error, what).mend("install git, with your system's package manager"));
    };
    let mut numbers = version.split(['.', ' ']).map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next()?, numbers.next()?);
    (found < OLDEST).then(|| {
        let what = format!("git {version} is older than {}.{}", OLDEST.0, OLDEST.1);
        Finding::new(Severity::Warning, sanitized(&what)).mend("upgrade git, with your system's package manager")
    })
}

fn switched_off(repo: &Repo) -> Option<Finding> {
    let mend = match enabled_in_environment() {
        Some(true) => return None,
        Some(false) => "unset OXUNDO_ENABLED",
        None => "git config oxundo.enabled true",
    };
    let off = Config(repo).enabled().is_ok_and(|enabled| !enabled);
    off.then(|| Finding::new(Severity::Warning, "oxundo.enabled is false: nothing is recorded").mend(mend))
}

fn hooks_path(repo: &Repo, about: &mut Overview) -> Option<Finding> {
    let path = repo.setting("core.hooksPath").map(|path| path.to_string()).filter(|path| !path.is_empty())?;
    about.hooks_path = Some(path.clone());
    let missing = repo.hooks_directory().is_ok_and(|directory| !directory.is_dir());
    missing.then(|| {
        let what = format!("core.hooksPath is '{path}', which is not there: git runs no hooks");
        Finding::new(Severity::Warning, what).mend("git config --unset core.hooksPath")
    })
}

fn signing(repo: &Repo) -> Option<Finding> {
    let signs = Config(repo).sign().is_ok_and(|sign| sign != Sign::Never);
    signs.then(|| {
        let what = "commits are signed: an agent's hook has no terminal to ask for a passphrase on";
        Finding::new(Severity::Warning, what).mend("git config oxundo.sign never")
    })
}

fn in_progress(repo: &Repo) -> Option<Finding> {
    let doing = repo.in_progress()?;
    let message = format!(
        "a {} is in progress: turns make no commits, and undo goes no further than to its beginning",
        doing.word
    );
    Some(Finding::new(Severity::Warning, message).mend(doing.giving_up()).mend("git status"))
}

/// The tracked files that oxundo would not have committed for an agent: whoever gets the history has them.
fn secrets(repo: &Repo) -> Option<Finding> {
    let names = Config(repo).secrets().ok()?;
    let index = Index::new(repo).read_index().ok()?;
    let tracked = index.entries().iter().map(|entry| entry.path(&index)).filter(|path| names.matches(path));
    let found: BTreeSet<&BStr> = tracked.collect();
    let first = found.first()?;
    let what = format!("{} of the tracked files look like secrets: a push sends them", found.len());
    let more = found.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    let details = found.iter().take(NAMED).map(|path| quoted(path)).chain(more).collect();
    let finding = Finding { details, ..Finding::new(Severity::Warning, what) };
    let path = quoted_word(Path::new(OsStr::from_bytes(first)));
    let top = quoted_word(repo.top());
    Some(
        finding
            .mend(format!(
                "git -C {top} rm --cached -- {path}, and name it in .gitignore; what is pushed needs a new password"
            ))
            .mend("git config --add oxundo.secret '!NAME', if it is none"),
    )
}

/// What was not oxundo's to delete, and nobody has looked at since.
fn kept(repo: &Repo) -> Option<Finding> {
    let all = repo.kept();
    let directory = all.first()?.ancestors().find(|above| above.ends_with(KEPT))?;
    let what = format!(
        "{} files are kept that other programs saved while oxundo replaced them, or that were in the way",
        all.len()
    );
    let more = all.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more"));
    let details = all.iter().take(NAMED).map(|path| quoted(path.as_os_str().as_bytes().into())).chain(more).collect();
    let mend = format!("move away what you need of it, then: rm -r {}", quoted_word(directory));
    Some(Finding { details, ..Finding::new(Severity::Warning, what) }.mend(mend))
}

fn over_size(repo: &Repo, taken: u64) -> Option<Finding> {
    let most = Config(repo).max_size().ok().flatten().filter(|most| taken > *most)?;
    let what = format!("oxundo takes {}, more than oxundo.maxSize, {}", size(taken), size(most));
    Some(Finding::new(Severity::Warning, what).mend("oxundo gc"))
}

fn large(bytes: u64) -> Option<Finding> {
    (bytes > LARGE).then(|| {
        let what = format!("what was moved aside takes {}", size(bytes));
        Finding::new(Severity::Warning, what).mend("oxundo gc")
    })
}

/// Remotes to which a push copies every ref, oxundo's included.
fn mirrors(repo: &Repo) -> impl Iterator<Item = Finding> {
    repo.mirrors().into_iter().map(|(remote, key, value)| {
        let what = format!("'git push {remote}' copies oxundo's refs to it, with every state of the worktree");
        Finding::new(Severity::Warning, sanitized(&what)).mend(format!(
            "git config --fixed-value --unset '{}' '{}'",
            sanitized(&key),
            sanitized(&value)
        ))
    })
}
