//! What setting oxundo up in a repository takes: configuration, git's own hooks, and taking
//! every trace away again.

use super::Repo;
use anyhow::{Context, Result};
use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::diff::blob::unified_diff::{ConsumeBinaryHunk, ContextSize};
use gix::diff::blob::{Algorithm, Diff, InternedInput, UnifiedDiff};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

/// Every ref of oxundo's.
const REFS: [&str; 2] = ["refs/oxundo", "refs/notes/oxundo"];

impl Repo {
    /// The difference of two texts, as a patch has it.
    ///
    /// # Errors
    ///
    /// When it cannot be put into words.
    pub fn text_diff(name: &str, from: Option<&str>, to: Option<&str>) -> Result<String> {
        let label = |side: &str, text: Option<&str>| match text {
            Some(_) => format!("{side}/{name}"),
            None => "/dev/null".to_owned(),
        };
        let input = InternedInput::new(from.unwrap_or_default(), to.unwrap_or_default());
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let consume = ConsumeBinaryHunk::new(String::new(), "\n");
        let hunks = UnifiedDiff::new(&diff, &input, consume, ContextSize::symmetrical(3)).consume()?;
        Ok(format!("--- {}\n+++ {}\n{hunks}", label("a", from), label("b", to)))
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

    /// Where git looks for this repository's hooks.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn hooks_directory(&self) -> Result<PathBuf> {
        let printed = self.git(["rev-parse", "--git-path", "hooks"]).run(b"")?;
        Ok(self.top().join(printed.trim_end().to_str().context("a path that is not UTF-8")?))
    }

    /// Remembers what git is about to push, from what it tells its pre-push hook.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn record_pushed(&self, told: &[u8]) -> Result<()> {
        let path = self.common_dir.join("oxundo/pushed");
        let known = std::fs::read(&path).unwrap_or_default();
        let known: BTreeSet<&[u8]> = known.lines().filter_map(|line| line.split(|byte| *byte == b' ').next()).collect();
        let mut added = Vec::new();
        for line in told.lines() {
            let mut words = line.split(|byte| *byte == b' ');
            let (Some(_), Some(id), Some(remote)) = (words.next(), words.next(), words.next()) else { continue };
            let is_commit = ObjectId::from_hex(id).is_ok_and(|id| !id.is_null());
            if is_commit && !known.contains(id) {
                writeln!(added, "{} {}", id.to_str_lossy(), remote.to_str_lossy())?;
            }
        }
        if added.is_empty() {
            return Ok(());
        }
        std::fs::create_dir_all(self.common_dir.join("oxundo"))?;
        let mut file = std::fs::File::options().create(true).append(true).open(path)?;
        Ok(file.write_all(&added)?)
    }

    /// git's version; none where git cannot be run.
    pub fn git_version(&self) -> Option<String> {
        let printed = self.git(["--version"]).run(b"").ok()?;
        let text = printed.to_str_lossy();
        text.trim().strip_prefix("git version ").map(str::to_owned)
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

    /// Every ref of oxundo's, of all worktrees.
    ///
    /// # Errors
    ///
    /// When the refs cannot be listed.
    pub fn own_refs(&self) -> Result<Vec<String>> {
        let args = ["for-each-ref", "--format=%(refname)"].into_iter().chain(REFS);
        let printed = self.git(args).run(b"")?;
        Ok(printed.lines().map(|line| line.to_str_lossy().into_owned()).collect())
    }

    /// Every scratch directory, of all worktrees.
    pub fn scratches(&self) -> Vec<PathBuf> {
        let linked = std::fs::read_dir(self.common_dir.join("worktrees")).into_iter().flatten().flatten();
        let all = linked.map(|entry| entry.path()).chain([self.common_dir.clone()]);
        all.map(|directory| directory.join("oxundo")).filter(|scratch| scratch.is_dir()).collect()
    }

    /// Removes every ref and all scratch, of all worktrees.
    ///
    /// # Errors
    ///
    /// When one cannot be removed.
    pub fn purge(&self) -> Result<()> {
        let deletions: String = self.own_refs()?.iter().map(|name| format!("delete {name}\n")).collect();
        self.git(["update-ref", "--no-deref", "--stdin"]).run(deletions.as_bytes())?;
        for scratch in self.scratches() {
            std::fs::remove_dir_all(&scratch).with_context(|| format!("remove '{}'", scratch.display()))?;
        }
        // What git leaves of refs that are gone: empty directories, and their logs.
        for name in REFS {
            for place in [self.common_dir.join("logs").join(name), self.common_dir.join(name)] {
                let _ = std::fs::remove_dir_all(&place).or_else(|_| std::fs::remove_file(&place));
            }
        }
        Ok(())
    }
}

fn scope(user: bool) -> &'static str {
    if user { "--global" } else { "--local" }
}
