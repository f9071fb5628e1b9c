//! `oxundo doctor`: what is wrong, and the command that mends it. It changes nothing but the agents' files, with `--fix`.

mod agents;
mod finding;
mod fix;
mod journal;
mod privacy;
mod repair;
mod repository;
mod switches;
mod trial;
mod typos;
mod versions;
pub mod worktrees;

use crate::agents::setup::title;
use crate::error::Refusal;
use crate::git::apply::recover::Recovered;
use crate::git::index::lock::is_own;
use crate::git::refs::{OwnRef, Refs};
use crate::git::repo::Repo;
use crate::git::timeline::Timelines;
use crate::git::timeline::oplog::Operation;
use crate::model::bytes::sanitized;
use crate::ops::removed;
use crate::ops::view::mend;
use crate::program::args::DoctorArgs;
use crate::program::cmd::doctor::finding::{Finding, Fixed, Overview, PlanAsked, Severity};
use crate::program::ui::Answer;
use crate::warning::Warn;
use anyhow::Result;
use console::style;
use serde_json::json;
use std::process::ExitCode;

/// All that is wrong.
pub struct Diagnosis {
    fixed: Vec<Fixed>,
    recovered: Option<Recovered>,
    findings: Vec<Finding>,
    about: Overview,
}

impl Diagnosis {
    /// 0 when everything works, 1 when something does not.
    pub fn exit(&self) -> ExitCode {
        u8::from(self.findings.iter().any(|finding| finding.severity == Severity::Error)).into()
    }
}

/// Checks everything, after it has mended what it can if that is wanted.
pub fn run(repo: &Repo, heard: Warn<'_>, args: &DoctorArgs) -> Result<Diagnosis> {
    let (mut fixed, mut findings) = if args.fix { fix::fix(repo) } else { Default::default() };
    mend(repo, heard)?;
    if args.fix {
        repair::repair(repo, heard)?;
        fixed.extend(privacy::fix(repo)?);
    }
    let recovered = if args.finish { journal::finish(repo, heard)? } else { None };
    findings.extend(repair::check(repo)?);
    let mut about = Overview::default();
    if !Refs::new(repo).torn_lists().is_empty() {
        // All else is in refs that nobody can read.
        return Ok(Diagnosis { fixed, recovered, findings, about });
    }
    findings.extend(journal::check(repo, heard)?);
    findings.extend(timeline(repo)?);
    findings.extend(locks(repo));
    findings.extend(privacy::check(repo)?);
    findings.extend(repository::check(repo, &mut about));
    about.removed_worktrees = removed::list(repo)?.into_iter().map(|one| (one.worktree, one.kept)).collect();
    about.plans = PlanAsked::all(repo);
    findings.extend(typos::check(repo));
    findings.extend(agents::check(repo, &mut about));
    findings.extend(worktrees::check(repo));
    Ok(Diagnosis { fixed, recovered, findings, about })
}

fn timeline(repo: &Repo) -> Result<Vec<Finding>> {
    let stored = match Timelines::new(repo).timeline() {
        Ok(stored) => stored,
        Err(error) => {
            let Some(refusal) = error.downcast_ref::<Refusal>() else { return Err(error) };
            let finding = Finding::new(Severity::Error, &refusal.message);
            // Nothing of it is damaged.
            if Timelines::new(repo).is_newer() {
                return Ok(vec![finding]);
            }
            return Ok(vec![match Timelines::new(repo).last_good_timeline()? {
                Some(good) => go_back(repo, finding, &good),
                None => begin_anew(repo, finding),
            }]);
        }
    };
    if stored.commit.is_none() {
        let lost = Timelines::new(repo).last_good_timeline()?;
        let finding =
            Finding::new(Severity::Warning, "no turn is recorded here, but the objects of a timeline are there");
        return Ok(lost.iter().map(|lost| go_back(repo, finding.clone(), lost)).collect());
    }
    let damaged = stored.damaged_turns();
    let mut findings: Vec<_> = (damaged.iter())
        .map(|(turn, why)| {
            Finding::new(Severity::Error, format!("turn {turn} cannot be undone or redone: {why}"))
                .mend("git fetch --refetch, or copy the object from another clone or a backup")
        })
        .collect();
    if !damaged.is_empty()
        && let Some(good) = Timelines::new(repo).last_good_timeline()?
    {
        let finding =
            Finding::new(Severity::Warning, "later turns are no longer known if you go back to a sound timeline");
        findings.push(go_back(repo, finding, &good));
    }
    Ok(findings)
}

/// How to go back to a good state of the timeline.
fn go_back(repo: &Repo, finding: Finding, good: &Operation) -> Finding {
    let name = Refs::new(repo).own_ref(OwnRef::Timeline);
    let message = format!("{}; the last good state is of {}, after: {}", finding.message, good.at, good.what);
    // What was put in the ref's place may be a symbolic ref to a branch.
    let mut mend = format!("git update-ref --no-deref --create-reflog {name} {}", good.commit);
    if let Some(file) = Timelines::new(repo).broken_timeline_ref() {
        // git itself refuses to touch it.
        mend = format!("rm '{}' && {mend}", file.display());
    }
    Finding { message, ..finding }.mend(mend)
}

/// How to begin without any turns.
fn begin_anew(repo: &Repo, finding: Finding) -> Finding {
    let (name, mark) = (Refs::new(repo).own_ref(OwnRef::Timeline), repo.scratch_path("timeline"));
    let message = format!("{}; no good state is left", finding.message);
    Finding { message, ..finding }.mend(format!("git update-ref --no-deref -d {name}; rm -f '{}'", mark.display()))
}

fn locks(repo: &Repo) -> Vec<Finding> {
    let finding = |path: std::path::PathBuf| {
        let lock = path.display();
        let finding = Finding::new(Severity::Warning, format!("'{lock}' has been there for over a minute"));
        // What oxundo has left there goes with what it was there for.
        let is_own = is_own(&path);
        finding.mend(if is_own {
            "oxundo status".to_owned()
        } else {
            format!("rm '{lock}', if no git command is running")
        })
    };
    Refs::new(repo).stale_locks().into_iter().map(finding).collect()
}

impl Answer for Diagnosis {
    fn json(&self) -> serde_json::Result<serde_json::Value> {
        let ok = self.findings.iter().all(|finding| finding.severity != Severity::Error);
        let recovered = self.recovered.as_ref().map(journal::json);
        Ok(
            json!({"ok": ok, "fixed": self.fixed, "recovered": recovered, "findings": self.findings, "about": self.about}),
        )
    }

    fn text(&self) -> String {
        let fixed = |fixed: &Fixed| format!("{}: mended '{}'\n", title(fixed.agent), sanitized(&fixed.path));
        let recovered = self.recovered.iter().map(journal::text);
        let mut text: String = self.fixed.iter().map(fixed).chain(recovered).chain([self.about.text()]).collect();
        if self.findings.is_empty() {
            text.push_str("nothing is wrong\n");
        }
        for finding in &self.findings {
            let word = match finding.severity {
                Severity::Error => style("error:").red().bold(),
                Severity::Warning => style("warning:").yellow(),
            };
            text.push_str(&format!("{word} {}\n", sanitized(&finding.message)));
            for detail in &finding.details {
                text.push_str(&format!("    {}\n", sanitized(detail)));
            }
            for command in &finding.mend {
                text.push_str(&format!("  {} {}\n", style("mend:").cyan(), sanitized(command)));
            }
        }
        text
    }

    fn hints(&self) -> Vec<String> {
        let mut hints: Vec<String> = Vec::new();
        for fixed in &self.fixed {
            let hint = fixed.advice.map(|advice| format!("{}: {advice}", title(fixed.agent)));
            hints.extend(hint.filter(|hint| !hints.contains(hint)));
        }
        hints
    }
}
