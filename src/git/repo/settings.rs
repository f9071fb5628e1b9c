//! git's configuration: read as git reads it, and changed by git. Of many values the last counts; a key without a
//! value is true.

use crate::git::repo::Repo;
use anyhow::{Context, Result};
use gix::bstr::{BString, ByteSlice};
use gix::config::{Boolean, File, Integer, Source};
use std::path::PathBuf;

/// How a key is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// Without a value.
    Bare,
    /// With this one, which may be empty.
    Value(String),
}

/// Where the value of a key stands that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetIn {
    /// In a file, once, or in none.
    File,
    /// In a file that has several.
    Twice,
    /// In the file of this worktree alone.
    Worktree,
    /// In a variable of git's, or behind its `-c`.
    Environment,
}

impl Repo {
    /// Where the value of a key without a subsection stands that counts.
    pub fn set_in(&self, key: &str) -> SetIn {
        let snapshot = self.gix.config_snapshot();
        let Some((section, name)) = key.split_once('.') else { return SetIn::File };
        let plain = snapshot.plumbing().sections_by_name(section).into_iter().flatten();
        let plain = plain.filter(|section| section.header().subsection_name().is_none());
        let sources = plain.flat_map(|section| {
            let source = section.meta().source;
            let is_it = |other: &String| other.eq_ignore_ascii_case(name);
            section.value_names().filter(is_it).map(|_| source).collect::<Vec<_>>()
        });
        let sources: Vec<Source> = sources.collect();
        match &sources[..] {
            [.., Source::Env | Source::EnvOverride | Source::Cli | Source::Api] => SetIn::Environment,
            [.., Source::Worktree] => SetIn::Worktree,
            [.., Source::Local, Source::Local] => SetIn::Twice,
            _ => SetIn::File,
        }
    }

    /// Where git looks for this repository's hooks.
    pub fn hooks_directory(&self) -> Result<PathBuf> {
        let printed = self.git(["rev-parse", "--git-path", "hooks"]).run(b"")?;
        Ok(self.top().join(printed.trim_end().to_str().context("a path that is not UTF-8")?))
    }

    /// The last value of a configuration key, whatever its scope.
    pub fn setting(&self, key: &str) -> Option<BString> {
        self.gix.config_snapshot().string(key)
    }

    /// How a configuration key is set the last time.
    pub fn given(&self, key: &str) -> Option<Given> {
        let value = self.gix.config_snapshot().plumbing().string_implicit(key)?;
        Some(value.map_or(Given::Bare, |value| Given::Value(value.to_str_lossy().into_owned())))
    }

    /// All values of a configuration key.
    pub fn settings(&self, key: &str) -> Vec<BString> {
        self.gix.config_snapshot().plumbing().strings(key).unwrap_or_default()
    }

    /// A boolean of the configuration.
    pub fn boolean(&self, key: &str) -> Result<Option<bool>, String> {
        let read = self.gix.config_snapshot().try_boolean(key);
        read.map_err(|_| self.setting(key).unwrap_or_default().to_str_lossy().into_owned())
    }

    /// The names that sections of this kind have: those of the remotes, of the branches.
    pub fn subsections(&self, section: &str) -> Vec<String> {
        let snapshot = self.gix.config_snapshot();
        let sections = snapshot.plumbing().sections_by_name(section).into_iter().flatten();
        let names =
            sections.filter_map(|section| Some(section.header().subsection_name()?.to_str_lossy().into_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        names.dedup();
        names
    }

    /// The names of all keys that a section of this kind has, each with the file that it stands in.
    pub fn names_in(&self, section: &str) -> Vec<(String, Option<PathBuf>)> {
        let snapshot = self.gix.config_snapshot();
        let sections = snapshot.plumbing().sections_by_name(section).into_iter().flatten();
        let plain = sections.filter(|section| section.header().subsection_name().is_none());
        let named = |section: gix::config::file::SectionRef<'_>| {
            let path = section.meta().path.clone();
            section.value_names().map(|name| (name, path.clone())).collect::<Vec<_>>()
        };
        plain.flat_map(named).collect()
    }

    /// Adds a value to a configuration key of this repository, or of the user's.
    pub fn add_setting(&self, user: bool, key: &str, value: &str) -> Result<()> {
        self.git(["config", scope(user), "--add", key, value]).run(b"").map(drop)
    }

    /// Removes a value of a configuration key of this repository, or of the user's.
    pub fn remove_setting(&self, user: bool, key: &str, value: &str) -> Result<()> {
        self.git(["config", scope(user), "--fixed-value", "--unset-all", key, value]).run(b"").map(drop)
    }

    /// The values of a key in the configuration of this repository, or of the user's.
    pub fn settings_in(&self, user: bool, key: &str) -> Vec<String> {
        // git fails where there is none.
        let printed = self.git(["config", scope(user), "-z", "--get-all", key]).run(b"").unwrap_or_default();
        let values = printed.split(|byte| *byte == 0).filter(|value| !value.is_empty());
        values.map(|value| value.to_str_lossy().into_owned()).collect()
    }

    /// The remotes to which a push copies all refs: the remote, and the key and value that say so.
    pub fn mirrors(&self) -> Vec<(String, String, String)> {
        let mut found = Vec::new();
        for remote in self.subsections("remote") {
            let (mirror, push) = (format!("remote.{remote}.mirror"), format!("remote.{remote}.push"));
            if self.boolean(&mirror) == Ok(Some(true)) {
                let value = self.setting(&mirror).unwrap_or_default().to_string();
                found.push((remote.clone(), mirror, value));
            }
            let all = self.settings(&push).into_iter().map(|value| value.to_string());
            let all = all.filter(|value| value.trim_start_matches('+').starts_with("refs/*:"));
            found.extend(all.map(|value| (remote.clone(), push.clone(), value)));
        }
        found
    }
}

/// The value of a configuration key that the user has for all repositories.
pub fn setting_of_user(key: &str) -> Option<BString> {
    File::from_globals().ok()?.string(key)
}

/// The boolean that the user has for all repositories.
pub fn boolean_of_user(key: &str) -> Option<bool> {
    File::from_globals().ok()?.boolean(key).ok()?
}

/// The boolean that git reads here.
pub fn boolean_of(text: &str) -> Option<bool> {
    Boolean::try_from(text).ok().map(Into::into)
}

/// The number that git reads here; none when it is negative.
pub fn number_of(text: &str) -> Option<u64> {
    Integer::from_bytes(text).ok()
}

/// The `-c` settings that git hands to the commands it starts, as `key=value`.
pub fn config_parameters(value: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = value.trim_start();
    while let Some(start) = rest.strip_prefix('\'') {
        let (mut word, mut after) = shell_unquoted(start);
        // The newer form quotes key and value apart: 'key'='value'.
        if let Some(quoted) = after.strip_prefix("='") {
            let (value, next) = shell_unquoted(quoted);
            word = format!("{word}={value}");
            after = next;
        } else if let Some(next) = after.strip_prefix('=') {
            after = next;
        }
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// The text between single quotes, and the rest after it; git writes `'` and `!` as `'\''` and `'\!'`.
fn shell_unquoted(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut rest = text;
    while let Some(end) = rest.find('\'') {
        word.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        let mut inner = rest.chars();
        match (inner.next(), inner.next(), inner.next()) {
            (Some('\\'), Some(escaped @ ('\'' | '!')), Some('\'')) => {
                word.push(escaped);
                rest = inner.as_str();
            }
            _ => return (word, rest),
        }
    }
    (word + rest, "")
}

fn scope(user: bool) -> &'static str {
    if user { "--global" } else { "--local" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_given_to_git_are_read_in_both_of_its_forms() {
        assert_eq!(config_parameters(r"'oxundo.mode'='ghost' 'a.b=c d'"), ["oxundo.mode=ghost", "a.b=c d"]);
        assert_eq!(config_parameters(r"'a.b'='it'\''s'"), ["a.b=it's"]);
        assert_eq!(config_parameters(r"'a.flag'="), ["a.flag"]);
        assert!(config_parameters("").is_empty());
        assert!(config_parameters("junk").is_empty());
    }

    #[test]
    fn booleans_are_gits() {
        for (text, value) in [("true", true), ("Yes", true), ("on", true), ("2", true), ("1k", true), ("-1", true)] {
            assert_eq!(boolean_of(text), Some(value), "{text:?}");
        }
        for (text, value) in [("false", false), ("No", false), ("off", false), ("0", false), ("", false)] {
            assert_eq!(boolean_of(text), Some(value), "{text:?}");
        }
        for bad in ["maybe", "y", "tru", " ", "1t"] {
            assert_eq!(boolean_of(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn numbers_are_gits() {
        for (text, value) in [("7", 7), ("10m", 10 << 20), ("3K", 3 << 10), ("1g", 1 << 30), ("0x10", 16)] {
            assert_eq!(number_of(text), Some(value), "{text:?}");
        }
        for bad in ["", "m", "-1", "1t", "1.5", "99999999999999999999", "9223372036854775807k"] {
            assert_eq!(number_of(bad), None, "{bad:?}");
        }
    }
}
