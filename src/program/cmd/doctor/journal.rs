//! What `doctor` says of a command that was interrupted, and carries out with `--finish`.

use crate::config::Config;
use crate::git::apply::Apply;
use crate::git::apply::journal::damaged_journal;
use crate::git::apply::recover::{Foreign, Recovered};
use crate::git::apply::standing::line;
use crate::git::refs::{OwnRef, Refs};
use crate::git::repo::Repo;
use crate::model::bytes::{in_quotes, quoted, sanitized};
use crate::model::checkpoint::short_branch;
use crate::model::plan::Plan;
use crate::program::cmd::doctor::finding::{Finding, Severity};
use crate::warning::Warn;
use anyhow::Result;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use serde_json::{Value, json};

/// Of how many files it is said what would become of each.
const SHOWN: usize = 50;

/// What is wrong with a journal that is there.
pub fn check(repo: &Repo, heard: Warn<'_>) -> Result<Option<Finding>> {
    let name = Refs::new(repo).own_ref(OwnRef::Pending);
    if let Some((commit, why)) = damaged_journal(repo)? {
        let what = format!(
            "a command was interrupted, and its journal {name} cannot be read ({why}): \
             it may have changed some files and not others; see 'git diff'"
        );
        return Ok(Some(Finding::new(Severity::Error, what).mend(format!("git update-ref -d {name} {commit}"))));
    }
    if let Some(foreign) = Apply::new(repo, Config(repo).lock_timeout()?, heard).foreign()? {
        return Ok(Some(of_foreign(&name, &foreign)));
    }
    if !Apply::is_interrupted(repo)? {
        return Ok(None);
    }
    let standing = Apply::new(repo, Config(repo).lock_timeout()?, heard).standing()?;
    let more = standing.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more: the journal's journal.json has them all"));
    let details = standing.iter().take(SHOWN).map(line).chain(more).collect();
    let finding = Finding::new(Severity::Warning, "a command was interrupted").mend("oxundo status");
    Ok(Some(Finding { details, ..finding }))
}

fn of_foreign(name: &str, foreign: &Foreign) -> Finding {
    let Foreign { commit, what, finishes, plan } = foreign;
    let would = if *finishes { "finish it" } else { "roll it back" };
    let message = format!(
        "{name} is the journal of a command that was interrupted in another git directory: {what}; if this is a copy of that \
         one, and the lines below are what you want, 'oxundo doctor --finish' would {would}; if a fetch brought it, put it away"
    );
    // Not deleted: it may hold the only copy of something.
    let away = format!("git update-ref {name}-elsewhere/{commit} {commit} && git update-ref -d {name} {commit}");
    let finding = Finding { details: details(plan), ..Finding::new(Severity::Error, message) };
    finding.mend(away).mend("oxundo doctor --finish")
}

/// What a plan would change, a line each.
fn details(plan: &Plan) -> Vec<String> {
    let id = |id: Option<ObjectId>| id.map_or("nothing".to_owned(), |id| id.to_hex_with_len(7).to_string());
    let refs = plan.branches.iter();
    let refs = refs.map(|it| format!("move {} from {} to {}", short_branch(&it.name), id(it.from), id(it.to)));
    let head = plan.moves_head().then(|| {
        let to = &plan.head.to;
        format!(
            "move HEAD to {}",
            to.branch.as_deref().map_or_else(|| id(to.commit), |name| short_branch(name).into_owned())
        )
    });
    let stash = plan.stash.as_ref().map(|change| {
        let goes = change.from.iter().filter(|entry| !change.to.contains(entry)).count();
        let comes = change.to.iter().filter(|entry| !change.from.contains(entry)).count();
        format!("drop {goes} stash entries, and bring {comes} back")
    });
    let staged = (!plan.index.is_empty()).then(|| format!("change {} entries of the index", plan.index.len()));
    let mut files = plan.files.iter().map(|file| {
        let mode = file.to.map(|to| format!(" (mode {:o})", to.mode & 0o7777)).unwrap_or_default();
        format!("{} {}{mode}", file.action(), quoted(file.path.as_bstr()))
    });
    let directories = plan.directories.iter().map(|directory| {
        let word = if directory.to.is_some() { "make or change" } else { "remove" };
        format!("{word} {}/", quoted(directory.path.as_bstr()))
    });
    let aside = plan.aside.iter().map(|aside| {
        let word = if aside.out { "move aside" } else { "move back" };
        format!("{word} {}", quoted(aside.path.as_bstr()))
    });
    let shown: Vec<String> = files.by_ref().chain(directories).chain(aside).take(SHOWN).collect();
    let all = plan.files.len() + plan.directories.len() + plan.aside.len();
    let more = all.saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("and {more} more: the journal's journal.json has them all"));
    refs.chain(head).chain(stash).chain(staged).chain(shown).chain(more).collect()
}

/// Finishes or rolls back what was interrupted, wherever that was.
pub fn finish(repo: &Repo, heard: Warn<'_>) -> Result<Option<Recovered>> {
    let _lock = repo.lock_beside_run("doctor --finish", repo.patience())?;
    Apply::new(repo, Config(repo).lock_timeout()?, heard).recover_any()
}

/// What was done, as JSON.
pub fn json(recovered: &Recovered) -> Value {
    let left: Vec<_> = recovered.left.paths.iter().map(|path| quoted(path.as_bstr())).collect();
    json!({"what": recovered.what, "finished": recovered.finished, "left": left})
}

/// What was done, as text.
pub fn text(recovered: &Recovered) -> String {
    let how = if recovered.finished { "finished" } else { "rolled back" };
    let done = format!("{how} an interrupted operation: {}\n", sanitized(&recovered.what));
    let left = recovered.left.paths.iter();
    let left = left.map(|path| format!("left {} as it is: it was changed since\n", in_quotes(path.as_bstr())));
    [done].into_iter().chain(left).collect()
}
