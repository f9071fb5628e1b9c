//! The file system monitor: it says in which directories nothing has changed since the last scan, so that the scan
//! skips them. It is the one that the user has switched on for git (`core.fsmonitor`): a hook, or git's own daemon.
//! It is believed as git believes it, and never needed: after an odd answer, or none, everything is scanned.
//!
//! What git records of it in the index cannot be used: git does not look at permission bits, and every `git status`
//! of the user's starts a new record. So oxundo has a token and a record of its own.

use crate::git::repo::Repo;
use crate::git::repo::scratch::{take_number, verify, write_record};
use crate::git::repo::shell::Shell;
use crate::model::path::{parents, up_from};
use gix::bstr::{BStr, BString, ByteSlice};
use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The name of the record in the scratch directory.
const RECORD: &str = "watched";

/// How long to wait for an answer: a full scan takes no longer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Who watches the worktree.
#[derive(Debug)]
enum Source {
    /// A command of the user's.
    Hook(BString),
    /// git's own daemon, which listens here. git starts it.
    Daemon(PathBuf),
}

impl Source {
    /// The one that is configured for git.
    fn of(repo: &Repo) -> Option<Self> {
        let config = repo.gix.config_snapshot();
        if repo.is_shadow() {
            return None;
        }
        match config.try_boolean("core.fsmonitor") {
            Ok(on) => on?.then(|| Self::Daemon(repo.git_dir.join("fsmonitor--daemon.ipc"))),
            // The first version of the protocol has times instead of tokens.
            Err(_) if config.integer("core.fsmonitorHookVersion") == Some(1) => None,
            Err(_) => {
                let command = config.trusted_path("core.fsmonitor").ok()??;
                Some(Self::Hook(command.as_os_str().as_bytes().into()))
            }
        }
    }

    /// A first token, as git makes one. No monitor knows it, and so the answer is that anything may have changed.
    fn first_token(&self) -> BString {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        match self {
            Self::Hook(_) => since.as_nanos().to_string().into(),
            Self::Daemon(_) => "builtin:fake".into(),
        }
    }

    /// The answer: a new token, and the paths that have changed since the given one, each followed by a NUL.
    fn ask(&self, repo: &Repo, token: &BStr) -> Option<Vec<u8>> {
        match self {
            Self::Hook(command) => {
                let hook = Shell::new([command.as_bytes(), b" \"$@\""].concat(), repo.top());
                hook.args([command.as_bstr(), "2".into(), token]).run_within(PATIENCE).ok()
            }
            Self::Daemon(socket) => ask_daemon(socket, token).ok(),
        }
    }
}

/// What has changed since the last scan.
#[derive(Debug, PartialEq, Eq)]
enum Changed {
    /// Nobody knows.
    Anything,
    /// These paths (files, or directories with all that is below them), and the directories that they are in.
    Paths(HashSet<BString>, HashSet<BString>),
}

impl Changed {
    /// Reads an answer that begins with the new token; `None` for one that makes no sense. `since` is the token that
    /// was given.
    fn parse<'a>(answer: &'a [u8], since: &BStr, case_insensitive: bool) -> Option<(&'a BStr, Self)> {
        let (token, paths) = answer.split_once_str("\0")?;
        if token.is_empty() {
            return None;
        }
        // A daemon that was restarted has not seen earlier changes, and may not say so.
        if instance(token) != instance(since) {
            return Some((token.as_bstr(), Self::Anything));
        }
        let (mut changed, mut parents_of_changed) = (HashSet::new(), HashSet::new());
        for path in paths.strip_suffix(b"\0").unwrap_or(paths).split_str("\0").filter(|_| !paths.is_empty()) {
            let path = path.strip_suffix(b"/").unwrap_or(path);
            let is_odd = |part: &[u8]| part.is_empty() || part == b"." || part == b"..";
            if path.split_str("/").any(is_odd) || (case_insensitive && !path.is_ascii()) {
                return Some((token.as_bstr(), Self::Anything));
            }
            let path: BString = if case_insensitive { path.to_ascii_lowercase().into() } else { path.into() };
            parents_of_changed.insert(parents(path.as_bstr()).next().unwrap_or_default().to_owned());
            changed.insert(path);
        }
        Some((token.as_bstr(), Self::Paths(changed, parents_of_changed)))
    }

    /// Whether anything may have changed that is directly in a directory, or above it.
    fn touches(&self, directory: &BStr) -> bool {
        let Self::Paths(changed, parents_of_changed) = self else { return true };
        let mut here_and_above = up_from(directory);
        parents_of_changed.contains(directory) || here_and_above.any(|path| changed.contains(path))
    }
}

/// What the monitor said at the beginning of a scan.
#[derive(Debug)]
pub struct Monitor {
    fingerprint: u64,
    token: BString,
    changed: Changed,
    /// Whether the file system ignores case, or composes letters, in names.
    case_insensitive: bool,
    /// The fingerprints of the directories in which nothing differed at the last scan, sorted.
    plain: Vec<u64>,
}

impl Monitor {
    /// Asks the monitor before the scan begins, so that later changes are in its next answer. `rules` is what the
    /// record depends on. `None` where there is no monitor, or none that answers.
    pub fn ask(repo: &Repo, case_insensitive: bool, rules: impl Debug) -> Option<Self> {
        let source = Source::of(repo)?;
        let top = std::fs::metadata(repo.top()).ok()?;
        let mut hasher = DefaultHasher::new();
        (env!("CARGO_PKG_VERSION"), repo.top(), top.dev(), top.ino()).hash(&mut hasher);
        format!("{source:?} {case_insensitive} {rules:?}").hash(&mut hasher);
        let fingerprint = hasher.finish();
        let record = std::fs::read(repo.scratch_path(RECORD)).ok();
        let (since, plain) = record.and_then(|record| Self::parse(&record, fingerprint)).unwrap_or_default();
        let given = if since.is_empty() { source.first_token() } else { since };
        let answer = source.ask(repo, given.as_bstr())?;
        let (token, changed) = Changed::parse(&answer, given.as_bstr(), case_insensitive)?;
        Some(Self { fingerprint, token: token.to_owned(), changed, case_insensitive, plain })
    }

    /// Whether a directory is known to be as the index says: no other names, all files clean, with the usual permission
    /// bits. `fingerprint` is of its entries in the index.
    pub fn knows(&self, directory: &BStr, fingerprint: u64) -> bool {
        let touched = if self.case_insensitive {
            !directory.is_ascii() || self.changed.touches(directory.to_ascii_lowercase().as_bstr())
        } else {
            self.changed.touches(directory)
        };
        !touched && self.plain.binary_search(&fingerprint).is_ok()
    }

    /// Writes what a scan has found, for the next scan: the fingerprints of directories in which nothing differs.
    pub fn save(self, repo: &Repo, plain: &[u64]) {
        let mut plain = plain.to_vec();
        plain.sort_unstable();
        // The old record still holds, with its token.
        let nothing_new = matches!(&self.changed, Changed::Paths(changed, _) if changed.is_empty());
        if nothing_new && plain == self.plain {
            return;
        }
        let mut record = [&self.fingerprint.to_be_bytes()[..], &self.token, b"\0"].concat();
        record.extend(plain.iter().flat_map(|fingerprint| fingerprint.to_be_bytes()));
        write_record(repo, RECORD, &record);
    }

    fn parse(record: &[u8], fingerprint: u64) -> Option<(BString, Vec<u64>)> {
        let mut record = verify(record)?;
        if take_number(&mut record)? != fingerprint {
            return None;
        }
        let (token, mut numbers) = record.split_once_str("\0")?;
        let plain = std::iter::from_fn(|| take_number(&mut numbers)).collect();
        Some((token.into(), plain))
    }
}

/// Asks git's daemon, in packets: a length of four hexadecimal digits, which counts itself, and the bytes. 0000 ends.
fn ask_daemon(socket: &Path, token: &BStr) -> std::io::Result<Vec<u8>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let asked = Instant::now();
    stream.write_all(&[format!("{:04x}", token.len() + 4).as_bytes(), token, b"0000"].concat())?;
    let mut answer = Vec::new();
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = length.to_str().ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
        match length {
            Some(0) => return Ok(answer),
            Some(length @ 4..) if asked.elapsed() < PATIENCE => {
                let start = answer.len();
                answer.resize(start + length - 4, 0);
                stream.read_exact(&mut answer[start..])?;
            }
            _ => return Err(std::io::ErrorKind::InvalidData.into()),
        }
    }
}

/// The daemon that made a token: Watchman and git's daemon both end it with a colon and a counter.
fn instance(token: &[u8]) -> &[u8] {
    token.rfind_byte(b':').map_or(b"", |colon| &token[..colon])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(paths: &str) -> Option<Changed> {
        let answer = format!("c:1:2\0{paths}");
        Some(Changed::parse(answer.as_bytes(), "c:1:1".into(), false)?.1)
    }

    #[test]
    fn what_is_told_touches_itself_its_directory_and_all_below() {
        for (told, touched, left) in [
            ("", vec![], vec!["", "a", "a/b"]),
            ("f", vec!["", "f", "f/x"], vec!["a", "a/b", "ff"]),
            ("a/f", vec!["a"], vec!["", "a/b", "ab"]),
            ("a/b/", vec!["a", "a/b", "a/b/c/d"], vec!["", "b", "a/bc"]),
            ("a/f\0b/c\0", vec!["a", "b", "b/c", "b/c/d"], vec!["", "c"]),
        ] {
            let changed = changed(told).expect("it makes sense");
            assert!(touched.iter().all(|path| changed.touches((*path).into())), "{told:?} touches {touched:?}");
            assert!(!left.iter().any(|path| changed.touches((*path).into())), "{told:?} leaves {left:?}");
        }
    }

    #[test]
    fn what_makes_no_sense_may_be_anything() {
        for told in ["/", "/\0", "/\0a", "a\0/", "\0", "a\0\0b", "../a", "a/./b", "a//b", "."] {
            assert_eq!(changed(told), Some(Changed::Anything), "{told:?}");
        }
        for answer in ["", "no token", "\0a"] {
            assert_eq!(Changed::parse(answer.as_bytes(), "c:1:1".into(), false), None, "{answer:?}");
        }
        let parse = |answer: &'static str, case_insensitive| {
            Some(Changed::parse(answer.as_bytes(), "c:1:1".into(), case_insensitive)?.1)
        };
        assert_eq!(parse("c:2:1\0", false), Some(Changed::Anything), "another daemon's token");
        assert_eq!(parse("c:1:2\0é", true), Some(Changed::Anything), "a name that may be another one");
        let folded = parse("c:1:2\0A/F", true).expect("it makes sense");
        assert!(folded.touches("a".into()), "names that are the same for the file system");
    }
}
