//! git's configuration: read as git reads it, and changed by git.

use crate::git::repo::Repo;
use anyhow::{Context, Result};
use gix::bstr::{BString, ByteSlice};
use std::path::PathBuf;

impl Repo {
    /// Where git looks for this repository's hooks.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn hooks_directory(&self) -> Result<PathBuf> {
        let printed = self.git(["rev-parse", "--git-path", "hooks"]).run(b"")?;
        Ok(self.top().join(printed.trim_end().to_str().context("a path that is not UTF-8")?))
    }

    /// git's version; none where git cannot be run.
    pub fn git_version(&self) -> Option<String> {
        let printed = self.git(["--version"]).run(b"").ok()?;
        let text = printed.to_str_lossy();
        text.trim().strip_prefix("git version ").map(str::to_owned)
    }

    /// The last value of a configuration key, whatever its scope.
    pub fn setting(&self, key: &str) -> Option<BString> {
        self.gix.config_snapshot().string(key)
    }

    /// All values of a configuration key.
    pub fn settings(&self, key: &str) -> Vec<BString> {
        let snapshot = self.gix.config_snapshot();
        let values = snapshot.plumbing().strings(key).unwrap_or_default();
        values.into_iter().collect()
    }

    /// Adds a value to a configuration key of this repository, or of the user's.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn add_setting(&self, user: bool, key: &str, value: &str) -> Result<()> {
        self.git(["config", scope(user), "--add", key, value]).run(b"").map(drop)
    }

    /// Removes a value of a configuration key of this repository, or of the user's.
    ///
    /// # Errors
    ///
    /// When git fails.
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
        let args = ["config", "-z", "--get-regexp", r"^remote\..*\.(mirror|push)$"];
        // git fails where there is none.
        let printed = self.git(args).run(b"").unwrap_or_default();
        let mut found = Vec::new();
        for entry in printed.split(|byte| *byte == 0) {
            let Ok(text) = entry.to_str() else { continue };
            let (key, value) = text.split_once('\n').unwrap_or((text, "true"));
            let Some((remote, what)) = key.strip_prefix("remote.").and_then(|rest| rest.rsplit_once('.')) else {
                continue;
            };
            let all = match what {
                "mirror" => !matches!(value, "false" | "no" | "off" | "0"),
                _ => value.trim_start_matches('+').starts_with("refs/*:"),
            };
            if all {
                found.push((remote.to_owned(), key.to_owned(), value.to_owned()));
            }
        }
        found
    }
}

/// The value of a configuration key that the user has for all repositories.
pub fn setting_of_user(key: &str) -> Option<BString> {
    let config = gix::config::File::from_globals().ok()?;
    config.string(key)
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

/// What stands between single quotes, and what comes behind; git writes `'` and `!` as `'\''` and `'\!'`.
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
    use super::config_parameters;

    #[test]
    fn settings_given_to_git_are_read_in_both_of_its_forms() {
        assert_eq!(config_parameters(r"'oxundo.mode'='ghost' 'a.b=c d'"), ["oxundo.mode=ghost", "a.b=c d"]);
        assert_eq!(config_parameters(r"'a.b'='it'\''s'"), ["a.b=it's"]);
        assert_eq!(config_parameters(r"'a.flag'="), ["a.flag"]);
        assert!(config_parameters("").is_empty());
        assert!(config_parameters("junk").is_empty());
    }
}
