//! Settings that nobody reads, and values that nobody can: a typo in one is silent otherwise until it is needed.

use crate::config::Config;
use crate::config::keys::KEYS;
use crate::error::failure::to_refusal;
use crate::git::repo::Repo;
use crate::program::cmd::doctor::finding::{Finding, Severity, quoted_word};
use std::path::Path;

/// The keys below `oxundo` in git's configuration that are none.
pub fn check(repo: &Repo) -> Vec<Finding> {
    let mut names = repo.names_in("oxundo");
    names.retain(|(name, _)| !KEYS.iter().any(|key| key.name.eq_ignore_ascii_case(name)));
    names.dedup();
    let unknown = names.into_iter().map(|(name, file)| finding(&name, file.as_deref()));
    unknown.chain(Config(repo).wrong().iter().map(wrong)).collect()
}

/// A value with which the setting's commands are refused; the refusal says what mends it.
fn wrong(error: &anyhow::Error) -> Finding {
    let refusal = to_refusal(error);
    let line = refusal.hints.iter().find_map(|hint| hint.strip_prefix("run '")?.split('\'').next().map(str::to_owned));
    Finding::new(Severity::Error, refusal.message).mend(line.unwrap_or_else(|| "oxundo man config".to_owned()))
}

fn finding(name: &str, file: Option<&Path>) -> Finding {
    let near = nearest(name);
    let told = near.map_or_else(String::new, |near| format!("; 'oxundo.{near}' is one"));
    let what = format!("git's configuration has 'oxundo.{name}', which is no setting{told}");
    let finding = Finding::new(Severity::Warning, what);
    // Without a file the environment has it.
    let Some(file) = file else { return finding.mend("oxundo man config") };
    let config = format!("git config --file {}", quoted_word(file));
    let removed = format!("{config} --unset-all oxundo.{name}");
    match near {
        Some(near) => finding.mend(format!("{config} oxundo.{near} \"$({config} oxundo.{name})\" && {removed}")),
        None => finding.mend(removed),
    }
}

/// The key that was meant, most likely.
fn nearest(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    let keys = KEYS.iter().map(|key| (distance(&name, &key.name.to_ascii_lowercase()), key.name));
    keys.min().filter(|(far, _)| *far <= 1 + name.len() / 4).map(|(_, near)| near)
}

/// How many letters are to be added, taken away or changed.
fn distance(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (at, a) in from.bytes().enumerate() {
        let mut above = std::mem::replace(&mut row[0], at + 1);
        for (next, b) in to.bytes().enumerate() {
            let changed = above + usize::from(a != b);
            above = row[next + 1];
            row[next + 1] = changed.min(above + 1).min(row[next] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_found_if_one_is_near() {
        assert_eq!((distance("", "abc"), distance("kitten", "sitting"), distance("same", "same")), (3, 3, 0));
        assert_eq!(nearest("maxfilesiz"), Some("maxFileSize"));
        assert_eq!(nearest("MODES"), Some("mode"));
        assert_eq!(nearest("somethingelse"), None);
    }
}
