//! Ignore rules as values: read once, frozen in a checkpoint, and applied again
//! when the turn ends, whatever the agent did to the files they came from. With
//! them goes `oxundo.include`: what is captured although it is ignored.

use crate::git::repo::Repo;
use crate::git::worktree::Worktree;
use crate::model::checkpoint::Checkpoint;
use crate::model::path::{all_parents, parents};
use anyhow::{Context, Result};
use gix::bstr::{BStr, BString, ByteSlice};
use gix::glob::pattern::Case;
use gix::ignore::search::{Ignore, pattern_matching_relative_path};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Included, Unbounded};
use std::path::Path;

type IgnoreList = gix::glob::search::pattern::List<Ignore>;

/// The record's names for rule files outside the worktree: no path in it begins with a slash.
const EXCLUDE: &str = "/exclude";

const GLOBAL: &str = "/global";

const INCLUDE: &str = "/include";

/// The last of them in the record's order: the user's own rules come first.
const LEFT_ALONE: &str = "/left-alone";

/// All ignore rules of a worktree at one instant.
#[derive(Clone, Debug)]
pub struct Rules {
    sources: BTreeMap<BString, Vec<u8>>,
    directories: BTreeMap<BString, IgnoreList>,
    shared: Vec<IgnoreList>,
    include: Vec<IgnoreList>,
    /// The directories in which something can be included.
    above_included: Vec<IgnoreList>,
    case: Case,
}

impl Rules {
    /// The rules of `info/exclude` and of `core.excludesFile`, which hold everywhere.
    pub fn new(exclude: Option<Vec<u8>>, global: Option<Vec<u8>>, ignore_case: bool) -> Self {
        let mut rules = Self {
            sources: BTreeMap::new(),
            directories: BTreeMap::new(),
            shared: Vec::new(),
            include: Vec::new(),
            above_included: Vec::new(),
            case: if ignore_case { Case::Fold } else { Case::Sensitive },
        };
        for (name, text) in [(EXCLUDE, exclude), (GLOBAL, global)] {
            if let Some(text) = text {
                rules.add(name.into(), text);
            }
        }
        rules
    }

    /// The rules that hold in another repository, with its own `info/exclude`.
    #[must_use]
    pub fn elsewhere(&self, exclude: Option<Vec<u8>>) -> Self {
        let global = self.sources.get(BStr::new(GLOBAL)).cloned();
        Self::new(exclude, global, self.case == Case::Fold)
    }

    /// Sets what is captured although it is ignored: patterns as in a `.gitignore` file at the top.
    pub fn include(&mut self, patterns: &[String]) {
        if !patterns.is_empty() {
            self.add(INCLUDE.into(), patterns.join("\n").into_bytes());
        }
    }

    /// Sets what is as if it were ignored, unless the user's rules say otherwise: patterns as in a `.gitignore` file at the
    /// top.
    pub fn leave_alone(&mut self, patterns: &[String]) {
        if !patterns.is_empty() {
            self.add(LEFT_ALONE.into(), patterns.join("\n").into_bytes());
        }
    }

    /// Adds the rules of a `.gitignore` file at this path.
    pub fn add(&mut self, path: BString, text: Vec<u8>) {
        let mut list = list_of(&text);
        if path == INCLUDE {
            self.above_included.push(list_of(&directories_above(&text)));
            self.include.push(list);
        } else if path.starts_with(b"/") {
            self.shared.push(list);
        } else {
            let directory = directory_of(path.as_bstr());
            list.base = (!directory.is_empty()).then(|| directory.to_owned());
            self.directories.insert(directory.to_owned(), list);
        }
        self.sources.insert(path, text);
    }

    /// Whether a list of patterns ignores a path; `None` where none matches.
    fn verdict(&self, list: &IgnoreList, path: &BStr, is_directory: bool) -> Option<bool> {
        let basename = path.rfind_byte(b'/').map(|slash| slash + 1);
        pattern_matching_relative_path(list, path, basename, Some(is_directory), self.case)
            .map(|found| !found.pattern.is_negative())
    }

    /// Whether a path is captured even where it is ignored.
    pub fn includes(&self, path: &BStr, is_directory: bool) -> bool {
        let named = |path: &BStr, is_directory| {
            (self.include.iter()).find_map(|list| self.verdict(list, path, is_directory)).unwrap_or(false)
        };
        !self.include.is_empty() && (named(path, is_directory) || parents(path).any(|parent| named(parent, true)))
    }

    /// Whether something in an ignored directory may be captured all the same. A pattern without a
    /// slash reaches into no ignored directory: there may be a hundred thousand files in there.
    pub fn includes_below(&self, directory: &BStr) -> bool {
        self.includes(directory, true)
            || self.above_included.iter().any(|list| self.verdict(list, directory, true) == Some(true))
    }

    /// Whether a path is ignored, given that no directory above it is.
    pub fn matches(&self, path: &BStr, is_directory: bool) -> bool {
        let matching = |list: &IgnoreList| self.verdict(list, path, is_directory);
        // The nearest directory above that has rules, whatever the number of those between: it is the greatest that is not
        // behind the path, or what both begin with is above it.
        let mut above = directory_of(path);
        while let Some((known, list)) = self.directories.range::<BStr, _>((Unbounded, Included(above))).next_back() {
            if let Some(below) = above.strip_prefix(known.as_bytes()) {
                if let Some(verdict) = matching(list) {
                    return verdict;
                }
                let Some(end) = above.len().checked_sub(below.len() + 1) else { break };
                above = directory_of(above[..end].as_bstr());
            } else {
                let shared = known.iter().zip(above.iter()).take_while(|(one, other)| one == other).count();
                above = directory_of(above[..shared].as_bstr());
            }
        }
        self.shared.iter().find_map(matching).unwrap_or(false)
    }

    /// The record of these rules: each file as `<bytes> <path>`, a NUL, the bytes, a newline.
    pub fn to_record(&self) -> Vec<u8> {
        let mut record = Vec::new();
        for (path, text) in &self.sources {
            record.extend_from_slice(text.len().to_string().as_bytes());
            record.push(b' ');
            record.extend_from_slice(path);
            record.push(0);
            record.extend_from_slice(text);
            record.push(b'\n');
        }
        record
    }

    /// The rules that a record holds.
    pub fn from_record(record: &[u8], ignore_case: bool) -> Result<Self> {
        let mut rules = Self::new(None, None, ignore_case);
        let mut rest = record;
        while !rest.is_empty() {
            let (path, text, next) = one_source(rest).context("the record of ignore rules is damaged")?;
            rules.add(path.into(), text.to_vec());
            rest = next;
        }
        Ok(rules)
    }
}

/// Which paths are ignored, or below a directory that is; what was found of directories is remembered.
pub struct Ignored<'r> {
    rules: &'r Rules,
    directories: HashMap<BString, bool>,
}

impl<'r> Ignored<'r> {
    /// By these rules.
    pub fn by(rules: &'r Rules) -> Self {
        Self { rules, directories: HashMap::new() }
    }

    /// Whether this path is.
    pub fn has(&mut self, path: &BStr) -> bool {
        self.has_above(path) || self.rules.matches(path, false)
    }

    /// Whether a directory above it is.
    pub fn has_above(&mut self, path: &BStr) -> bool {
        let known = |directory: &BStr| self.directories.get(directory).copied();
        let unknown: Vec<&BStr> = parents(path).take_while(|parent| known(parent).is_none()).collect();
        let top = unknown.last().copied().unwrap_or(path);
        let mut verdict = parents(top).next().and_then(known).unwrap_or_default();
        for directory in unknown.into_iter().rev() {
            verdict = verdict || self.rules.matches(directory, true);
            self.directories.insert(directory.to_owned(), verdict);
        }
        verdict
    }
}

/// The ignore rules that a checkpoint was taken by.
pub fn rules_of(repo: &Repo, checkpoint: &Checkpoint) -> Result<Rules> {
    let record = repo.find_blob(checkpoint.rules).context("read the ignore rules")?;
    Rules::from_record(&record.data, repo.gix.filesystem_options()?.ignore_case)
}

/// The ignore rules that are not in the worktree: `info/exclude` and `core.excludesFile`.
pub fn shared_rules(repo: &Repo, ignore_case: bool) -> Result<Rules> {
    let configured = match repo.gix.config_snapshot().trusted_path("core.excludesFile")? {
        Some(path) => Some(path),
        None => std::env::var_os("XDG_CONFIG_HOME")
            .filter(|value| !value.is_empty())
            .map(std::path::PathBuf::from)
            .or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".config")))
            .map(|config| config.join("git/ignore")),
    };
    let exclude = read_rules(&repo.common_dir.join("info/exclude"))?;
    let global = configured.map(|path: std::path::PathBuf| read_rules(&repo.top().join(path)));
    let global = global.transpose()?.flatten();
    Ok(Rules::new(exclude, global, ignore_case))
}

fn list_of(text: &[u8]) -> IgnoreList {
    let patterns = gix::ignore::parse(text, false).map(|(pattern, sequence_number, value)| {
        gix::glob::search::pattern::Mapping { pattern, value, sequence_number }
    });
    IgnoreList { patterns: patterns.collect(), source: None, base: None }
}

/// For every pattern with a slash, the patterns of the directories on the way to what it names.
fn directories_above(patterns: &[u8]) -> Vec<u8> {
    let mut above = Vec::new();
    for pattern in patterns.lines() {
        for directory in parents(pattern.trim_end_with(|c| c == '/').trim_start_with(|c| c == '/').as_bstr()) {
            above.extend_from_slice(&[b"/", directory.as_bytes(), b"/\n"].concat());
        }
    }
    above
}

fn one_source(record: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, rest) = record.split_once_str(" ")?;
    let (path, rest) = rest.split_once_str("\0")?;
    let length: usize = length.to_str().ok()?.parse().ok()?;
    let text = rest.get(..length)?;
    Some((path, text, rest[length..].strip_prefix(b"\n")?))
}

/// The directory of a path with a slash behind; empty for the top.
fn directory_of(path: &BStr) -> &BStr {
    path[..path.rfind_byte(b'/').map_or(0, |slash| slash + 1)].as_bstr()
}

/// The bytes of a file of rules, where there is one that the user may read. That it cannot be read now is no reason to think
/// that there are no rules.
pub fn read_rules(path: &Path) -> Result<Option<Vec<u8>>> {
    use std::io::ErrorKind as Kind;
    match std::fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => Ok(None),
        Err(error) => match error.kind() {
            Kind::NotFound | Kind::PermissionDenied | Kind::NotADirectory | Kind::IsADirectory => Ok(None),
            _ => Err(error).with_context(|| format!("read '{}'", path.display())),
        },
    }
}

/// Which of these paths the present ignore rules exclude.
pub fn ignored_now<'a>(repo: &Repo, paths: impl Iterator<Item = &'a BString>) -> Result<BTreeSet<BString>> {
    let paths: Vec<&BString> = paths.collect();
    if paths.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut rules = shared_rules(repo, repo.gix.filesystem_options()?.ignore_case)?;
    for directory in all_parents(paths.iter().map(|path| path.as_bstr())).into_iter().chain([BStr::new(b"")]) {
        let separator: &[u8] = if directory.is_empty() { b"" } else { b"/" };
        let file = BString::from([directory.as_bytes(), separator, b".gitignore"].concat());
        if let Some(text) = Worktree::new(repo).read_plain_file(file.as_bstr())? {
            rules.add(file, text);
        }
    }
    let mut ignored = Ignored::by(&rules);
    Ok(paths.into_iter().filter(|path| ignored.has(path.as_bstr())).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(rules: &Rules, path: &str) -> bool {
        Ignored::by(rules).has(path.into())
    }

    #[test]
    fn nearer_rules_win_and_survive_their_record() {
        let mut rules = Rules::new(Some(b"*.tmp\n".to_vec()), Some(b"*.log\n".to_vec()), false);
        rules.add(".gitignore".into(), b"build/\n!keep.log\n*.o\n".to_vec());
        rules.add("sub/.gitignore".into(), b"!*.o\n/only-here\n".to_vec());
        let again = Rules::from_record(&rules.to_record(), false).expect("own record");
        for rules in [rules, again] {
            assert!(ignored(&rules, "a.tmp"));
            assert!(ignored(&rules, "x/a.log"));
            assert!(!ignored(&rules, "keep.log"));
            assert!(ignored(&rules, "build/anything"));
            assert!(ignored(&rules, "a.o"));
            assert!(!ignored(&rules, "sub/a.o"));
            assert!(ignored(&rules, "sub/only-here"));
            assert!(!ignored(&rules, "only-here"));
        }
    }

    #[test]
    fn included_paths_are_found_in_ignored_directories() {
        let mut rules = Rules::new(None, None, false);
        rules.include(&[".env", "secrets/*.key", "/a/*/deep/", "!x.key"].map(str::to_owned));
        let again = Rules::from_record(&rules.to_record(), false).expect("own record");
        for rules in [rules, again] {
            for path in [".env", "any/.env", "secrets/a.key", "a/b/deep/all/of/it"] {
                assert!(rules.includes(path.into(), false), "{path} is included");
            }
            for path in ["secrets/b.txt", "other/a.key", "a/deep/x", "env", "x.key"] {
                assert!(!rules.includes(path.into(), false), "{path} is not");
            }
            for directory in ["secrets", "a", "a/b", "a/b/deep", "a/b/deep/all"] {
                assert!(rules.includes_below(directory.into()), "{directory} is entered");
            }
            for directory in ["node_modules", "secrets/more", "b"] {
                assert!(!rules.includes_below(directory.into()), "{directory} is not");
            }
        }
    }

    #[test]
    fn a_damaged_record_is_an_error() {
        for bad in [b"3 .gitignore\0ab".as_slice(), b"x y\0", b"5", b"1 a\0bc"] {
            assert!(Rules::from_record(bad, false).is_err(), "{bad:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn rules_that_cannot_be_read_are_an_error_and_not_none() {
        // The memory of this process is a file of which nothing can be read from its beginning.
        read_rules(Path::new("/proc/self/mem")).expect_err("it is there");
        for none in ["/none/of/it", "/proc/self/status/below", "/proc/self"] {
            assert_eq!(read_rules(Path::new(none)).expect("there are no rules"), None, "{none}");
        }
        assert!(read_rules(Path::new("/proc/self/status")).expect("it can be read").is_some());
    }
}
