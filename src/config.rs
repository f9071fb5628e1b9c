//! The `oxundo.*` keys of git's configuration, one function each; their defaults are in
//! the table of keys. `OXUNDO_*` in the environment overrides them: `oxundo.maxFileSize`
//! is `OXUNDO_MAX_FILE_SIZE`.

pub mod keys;

use crate::config::keys::variable;
use crate::error::{Code, Refusal};
use crate::git::objects::commit::Sign;
use crate::git::repo::Repo;
use crate::git::repo::settings::{Given, SetIn, boolean_of, boolean_of_user, number_of};
use crate::model::bytes::shell_word;
use crate::model::limits::Limits;
use crate::model::merge::Edits;
use crate::model::tokens::Tokens;
use crate::model::turn::Mode;
use anyhow::Result;
use gix::bstr::{BStr, BString, ByteSlice};
use gix::glob::Pattern;
use gix::glob::pattern::Case;
use gix::glob::wildmatch::Mode as Wildmatch;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// What a message names as the valid values.
const BOOLEAN: &str = "a boolean, like true, yes, on, 1, or false, no, off, 0,";

/// Reads the configuration of one repository.
#[derive(Clone, Copy)]
pub struct Config<'repo>(pub &'repo Repo);

/// What is done with the user's uncommitted work and untracked files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untracked {
    /// They stay untracked.
    Leave,
    /// They go into the dirty commit.
    Commit,
}

impl Config<'_> {
    /// What is set, in the environment or in git's configuration.
    fn given(self, key: &str) -> Option<Given> {
        let in_environment = std::env::var(variable(key)).ok().map(Given::Value);
        in_environment.or_else(|| self.0.given(&format!("oxundo.{key}")))
    }

    fn text(self, key: &str) -> String {
        match self.given(key) {
            Some(Given::Value(text)) => text,
            Some(Given::Bare) => String::new(),
            None => keys::default(key).to_owned(),
        }
    }

    /// A shell command; none when empty.
    fn command(self, key: &str) -> Option<String> {
        Some(self.text(key)).filter(|command| !command.trim().is_empty())
    }

    /// A list: every value of the key, each of one or more words. An empty value clears
    /// what came before it.
    fn words(self, key: &str) -> Vec<String> {
        let given: Vec<BString> = match std::env::var(variable(key)) {
            Ok(value) => vec![value.into()],
            Err(_) => self.0.settings(&format!("oxundo.{key}")),
        };
        let mut words: Vec<String> = keys::default(key).split_whitespace().map(str::to_owned).collect();
        for value in given {
            if value.is_empty() {
                words.clear();
            }
            words.extend(value.to_str_lossy().split_whitespace().map(str::to_owned));
        }
        words
    }

    fn choice<T>(self, key: &str, choices: &[(&str, T)]) -> Result<T>
    where
        T: Copy,
    {
        let text = self.text(key);
        let found = choices.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            self.bad(key, &text, &format!("one of {}", words.join(", ")))
        })
    }

    fn flag(self, key: &str) -> Result<bool> {
        if self.given(key) == Some(Given::Bare) {
            return Ok(true);
        }
        let text = self.text(key);
        boolean_of(&text).ok_or_else(|| self.bad(key, &text, BOOLEAN))
    }

    fn number(self, key: &str) -> Result<u64> {
        let text = self.text(key);
        number_of(&text).ok_or_else(|| self.bad(key, &text, "a number such as 200 or 10m"))
    }

    /// `oxundo.enabled`: whether turns are recorded.
    pub fn enabled(self) -> Result<bool> {
        self.flag("enabled")
    }

    /// `oxundo.mode`: `commit` (default) or `ghost`. Without a repository of the user's there is
    /// nothing to commit to.
    pub fn mode(self) -> Result<Mode> {
        if self.0.is_shadow() {
            return Ok(Mode::Ghost);
        }
        self.choice("mode", &[("commit", Mode::Commit), ("ghost", Mode::Ghost)])
    }

    /// `oxundo.untracked`: `leave` (default) or `commit`.
    pub fn untracked(self) -> Result<Untracked> {
        let choices = [("leave", Untracked::Leave), ("commit", Untracked::Commit)];
        self.choice("untracked", &choices)
    }

    /// `oxundo.dirty=keep`: undo leaves the dirty commit where it is.
    pub fn keep_dirty(self) -> Result<bool> {
        self.choice("dirty", &[("undo", false), ("keep", true)])
    }

    /// `oxundo.edits`: what undo and redo do with the user's edits: `merge` (default), `refuse`
    /// or `overwrite`.
    pub fn edits(self) -> Result<Edits> {
        let choices = Edits::ALL.map(|edits| (edits.word(), edits));
        self.choice("edits", &choices)
    }

    /// What was asked for on the command line, else `oxundo.edits`.
    pub fn edits_or(self, asked: Option<Edits>) -> Result<Edits> {
        asked.map_or_else(|| self.edits(), Ok)
    }

    /// `oxundo.trailer`: what is put before the agent's name at the end of the auto-commit's
    /// message; `Assisted-by` by default, none when empty. What git takes for no part of a trailer's name is a hyphen in it.
    pub fn trailer(self) -> String {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        self.text("trailer").trim().chars().map(|c| if is_of_name(c) { c } else { '-' }).collect()
    }

    /// `oxundo.messageCommand`: reads the diff and prints the auto-commit's message.
    pub fn message_command(self) -> Option<String> {
        self.command("messageCommand")
    }

    /// `oxundo.onUndo`: is given what undo did, as JSON.
    pub fn on_undo(self) -> Option<String> {
        self.command("onUndo")
    }

    /// `oxundo.onRedo`: is given what redo did, as JSON.
    pub fn on_redo(self) -> Option<String> {
        self.command("onRedo")
    }

    /// `oxundo.beforeUndo`: is given what undo would do, as JSON, and may refuse it.
    pub fn before_undo(self) -> Option<String> {
        self.command("beforeUndo")
    }

    /// `oxundo.beforeRedo`: is given what redo would do, as JSON, and may refuse it.
    pub fn before_redo(self) -> Option<String> {
        self.command("beforeRedo")
    }

    /// `oxundo.beforeTimeout`: for how many seconds these two are waited for; 60 by default.
    pub fn before_timeout(self) -> Result<Duration> {
        Ok(Duration::from_secs(self.number("beforeTimeout")?))
    }

    /// `oxundo.mcp`: what agents may do by way of `oxundo mcp`.
    pub fn mcp(self) -> Result<Access> {
        self.choice("mcp", &[("read", Access::Read), ("full", Access::Full), ("off", Access::Off)])
    }

    /// `oxundo.conversation`: whether undo makes copies of agents' conversations.
    pub fn forks_conversations(self) -> Result<bool> {
        self.choice("conversation", &[("hint", false), ("fork", true)])
    }

    /// `oxundo.verify`: whether the repository's commit hooks run.
    pub fn verify(self) -> Result<bool> {
        self.flag("verify")
    }

    /// `oxundo.sign`: `auto` (as `commit.gpgSign` says), `always` or `never`.
    pub fn sign(self) -> Result<Sign> {
        let choice = self.choice("sign", &[("auto", None), ("always", Some(true)), ("never", Some(false))])?;
        let signs = if let Some(signs) = choice {
            signs
        } else {
            let set = self.0.boolean("commit.gpgSign");
            set.map_err(|value| bad_setting("commit.gpgSign", &value, BOOLEAN, self.0.set_in("commit.gpgSign")))?
                .unwrap_or(false)
        };
        Ok(if signs { Sign::Within(self.sign_timeout()?) } else { Sign::Never })
    }

    /// `oxundo.signTimeout`: for how many seconds a signature is waited for; 60 by default.
    fn sign_timeout(self) -> Result<Duration> {
        Ok(Duration::from_secs(self.number("signTimeout")?))
    }

    /// `oxundo.lockTimeout`: for how many milliseconds a lock on git's index is waited for; 1500
    /// by default.
    pub fn lock_timeout(self) -> Result<Duration> {
        Ok(Duration::from_millis(self.number("lockTimeout")?))
    }

    /// `oxundo.fsync`: whether what oxundo relies on is flushed to the disk.
    pub fn fsync(self) -> Result<bool> {
        self.flag("fsync")
    }

    /// `oxundo.steps`: whether what changes around each call of an agent's tools is kept.
    pub fn steps(self) -> Result<bool> {
        self.choice("steps", &[("hooks", true), ("watch", true), ("off", false)])
    }

    /// Whether a `run` watches the worktree for them.
    pub fn watches(self) -> Result<bool> {
        self.choice("steps", &[("hooks", false), ("watch", true), ("off", false)])
    }

    /// `oxundo.hookTimeout`: for how many milliseconds an agent's hook works before it gives up; 25000 by default.
    pub fn hook_timeout(self) -> Result<Duration> {
        Ok(Duration::from_millis(self.number("hookTimeout")?))
    }

    /// `oxundo.hints`: whether hints are printed.
    pub fn hints(self) -> bool {
        self.flag("hints").unwrap_or(true)
    }

    /// git's own `log.date`.
    pub fn dates(self) -> Option<String> {
        Some(self.0.setting("log.date")?.to_str_lossy().into_owned())
    }

    /// git's own `color.ui`.
    pub fn colors(self) -> Option<String> {
        Some(self.0.setting("color.ui")?.to_str_lossy().into_owned())
    }

    /// `oxundo.secret`: globs of names that are never committed for the agent.
    pub fn secrets(self) -> Result<Names> {
        self.names("secret")
    }

    /// `oxundo.othersBranches`: globs of branches that other tools own.
    pub fn others_branches(self) -> Result<Names> {
        self.names("othersBranches")
    }

    /// `oxundo.secretText`: globs of words that git is never told of a prompt.
    pub fn secret_text(self) -> Result<Tokens> {
        let mut tokens = Tokens::default();
        for word in self.words("secretText") {
            tokens.add(&word).map_err(|error| self.bad("secretText", &word, &unreadable(&error)))?;
        }
        Ok(tokens)
    }

    fn names(self, key: &str) -> Result<Names> {
        Names::new(&self.words(key)).map_err(|bad| self.bad(key, &bad.glob, &bad.why))
    }

    fn bad(self, key: &str, value: &str, wanted: &str) -> anyhow::Error {
        bad_setting(&format!("oxundo.{key}"), value, wanted, self.0.set_in(&format!("oxundo.{key}")))
    }

    /// What is wrong with the values that are set.
    pub fn wrong(self) -> Vec<anyhow::Error> {
        let all = [
            self.enabled().err(),
            self.mode().err(),
            self.untracked().err(),
            self.keep_dirty().err(),
            self.edits().err(),
            self.before_timeout().err(),
            self.mcp().err(),
            self.forks_conversations().err(),
            self.verify().err(),
            self.sign().err(),
            self.sign_timeout().err(),
            self.flag("hints").err(),
            self.lock_timeout().err(),
            self.fsync().err(),
            self.steps().err(),
            self.watches().err(),
            self.hook_timeout().err(),
            self.secrets().err(),
            self.others_branches().err(),
            self.secret_text().err(),
            self.keep(None).err(),
            self.max_size().err(),
            self.limits().err(),
        ];
        all.into_iter().flatten().collect()
    }

    /// `oxundo.keep`: for how many seconds turns are kept; `None` for ever.
    pub fn keep(self, given: Option<&str>) -> Result<Option<u64>> {
        let configured = self.text("keep");
        let text = given.unwrap_or(&configured);
        if text.trim().eq_ignore_ascii_case("never") {
            return Ok(None);
        }
        let wrong = || match given {
            Some(text) => Refusal::new(Code::Usage, format!("'{text}' is no age"))
                .hint("run 'oxundo gc --keep 30d'; '2 weeks', 'now' and 'never' are ages too")
                .into(),
            None => self.bad("keep", text, "an age, like 30d, 2 weeks, now or never,"),
        };
        age(text).map(Some).ok_or_else(wrong)
    }

    /// `oxundo.maxSize`: how many bytes oxundo takes at most; `None` for as many as it needs.
    pub fn max_size(self) -> Result<Option<u64>> {
        let is_never = self.text("maxSize").trim().eq_ignore_ascii_case("never");
        if is_never { Ok(None) } else { self.number("maxSize").map(Some) }
    }

    fn include(self) -> Result<Vec<String>> {
        let patterns = self.words("include");
        if let Some(outside) = patterns.iter().find(|pattern| pattern.split('/').any(|part| part == "..")) {
            return Err(self.bad("include", outside, "a pattern for paths in the worktree"));
        }
        // git matches nothing with one that cannot be read, and says nothing of it. It has no choices in braces.
        let plain = |pattern: &String| GlobBuilder::new(&pattern.replace(['{', '}'], "_")).build().err();
        match patterns.iter().find_map(|pattern| Some((pattern, plain(pattern)?))) {
            Some((pattern, error)) => Err(self.bad("include", pattern, &unreadable(&error))),
            None => Ok(patterns),
        }
    }

    fn skipped_directories(self) -> Result<HashSet<BString>> {
        let names = self.words("skipDir").into_iter();
        names
            .map(|name| match name.trim_end_matches('/') {
                // No directory has such a name, or hardly one: somebody took it for a glob or a path.
                bare if bare.contains(['/', '*', '?']) => Err(self.bad(
                    "skipDir",
                    &name,
                    "a directory's name, no glob and no path (oxundo.exclude takes these),",
                )),
                bare => Ok(bare.into()),
            })
            .collect()
    }

    /// `oxundo.maxFileSize`, `maxDirEntries`, `maxCapture`, `maxCaptureFiles`, `skipDir`, `exclude` and `include`.
    pub fn limits(self) -> Result<Limits> {
        // Without a repository every file is untracked, the user's work too.
        let exclude = self.words("exclude");
        let roomy = |key: &str, configured: u64, most: u64| {
            if self.0.is_shadow() && self.given(key).is_none() { most } else { configured }
        };
        Ok(Limits {
            max_file_size: self.number("maxFileSize")?,
            max_directory_entries: roomy("maxDirEntries", self.number("maxDirEntries")?, 10_000),
            max_bytes: roomy("maxCapture", self.number("maxCapture")?, 2 << 30),
            max_files: roomy("maxCaptureFiles", self.number("maxCaptureFiles")?, 200_000),
            skip_directories: self.skipped_directories()?,
            exclude: glob_set(&exclude.iter().map(String::as_str).collect::<Vec<_>>(), false)
                .map_err(|bad| self.bad("exclude", &bad.glob, &bad.why))?,
            include: self.include()?,
            left_alone: Vec::new(),
        })
    }
}

/// What agents may do by way of `oxundo mcp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Look, name states, and plan.
    Read,
    /// Carry out what they have planned, too.
    Full,
    /// Nothing.
    Off,
}

/// `oxundo.hints` where there is no repository: as the user has it for all of them.
pub fn hints_of_user() -> bool {
    let hints = match std::env::var(variable("hints")) {
        Ok(text) => boolean_of(&text),
        Err(_) => boolean_of_user("oxundo.hints"),
    };
    hints.unwrap_or(true)
}

/// `oxundo.enabled` where there is no repository, or before one is looked for.
pub fn enabled_of_user() -> bool {
    enabled_in_environment().or_else(|| boolean_of_user("oxundo.enabled")).unwrap_or(true)
}

/// What `OXUNDO_ENABLED` says, which stands over all configuration.
pub fn enabled_in_environment() -> Option<bool> {
    boolean_of(&std::env::var(variable("enabled")).ok()?)
}

/// Globs that are matched with a path's last component, or with the whole path where they have a slash, in whatever case.
#[derive(Clone, Debug)]
pub struct Names {
    names: Globs,
    exceptions: Globs,
}

impl Names {
    fn new(patterns: &[String]) -> Result<Self, BadGlob> {
        let exceptions: Vec<&str> = patterns.iter().filter_map(|pattern| pattern.strip_prefix('!')).collect();
        let names: Vec<&str> = patterns.iter().map(String::as_str).filter(|glob| !glob.starts_with('!')).collect();
        Ok(Self { names: Globs::new(&names)?, exceptions: Globs::new(&exceptions)? })
    }

    /// Whether the path has such a name.
    pub fn matches(&self, path: &BStr) -> bool {
        self.names.is_match(path) && !self.exceptions.is_match(path)
    }
}

/// Globs, most of which are as git has them, and need not be made ready: that would take a tenth of a small turn.
#[derive(Clone, Debug)]
struct Globs {
    plain: Vec<Pattern>,
    others: GlobSet,
}

impl Globs {
    fn new(globs: &[&str]) -> Result<Self, BadGlob> {
        let (mut plain, mut others) = (Vec::new(), Vec::new());
        for glob in globs {
            match choices(glob) {
                Some(all) => plain.extend(all),
                None => others.push(*glob),
            }
        }
        let plain = plain.iter().map(|glob| glob.trim_end_matches('/').as_bytes());
        let plain = plain.filter_map(Pattern::from_bytes_without_negation).collect();
        Ok(Self { plain, others: glob_set(&others, true)? })
    }

    fn is_match(&self, path: &BStr) -> bool {
        let name = path.rfind_byte(b'/').map(|slash| slash + 1);
        let mode = Wildmatch::NO_MATCH_SLASH_LITERAL;
        self.plain.iter().any(|glob| glob.matches_repo_relative_path(path, name, Some(false), Case::Fold, mode))
            || self.others.is_match(OsStr::from_bytes(path))
    }
}

/// A glob as git has them for each choice of one with braces and classes, where these are of plain words and characters, and not too many.
fn choices(glob: &str) -> Option<Vec<String>> {
    let Some(open) = glob.find(['{', '[']) else { return (!glob.contains(SPECIAL)).then(|| vec![glob.to_owned()]) };
    let (before, rest) = glob.split_at(open);
    let is_class = rest.starts_with('[');
    let (inner, after) = rest[1..].split_once(if is_class { ']' } else { '}' })?;
    let is_range = is_class && (inner.starts_with(['!', '^']) || inner.chars().skip(1).any(|c| c == '-'));
    let words: Vec<&str> =
        if is_class { inner.split("").filter(|c| !c.is_empty()).collect() } else { inner.split(',').collect() };
    let is_odd = is_range || words.iter().any(|word| word.is_empty() || word.contains(SPECIAL) || word.contains('/'));
    if before.contains(SPECIAL) || words.is_empty() || is_odd {
        return None;
    }
    let ends = choices(after)?;
    (words.len() * ends.len() <= MOST_CHOICES)
        .then(|| words.iter().flat_map(|word| ends.iter().map(move |end| format!("{before}{word}{end}"))).collect())
}

/// So many globs are looked through one by one.
const MOST_CHOICES: usize = 64;

/// What git's globs have not, or not in the same way.
const SPECIAL: [char; 5] = ['{', '}', '[', ']', '\\'];

/// What is wanted in the place of a glob that cannot be read, and why that cannot.
fn unreadable(error: &globset::Error) -> String {
    format!("a glob that can be read ({})", error.kind())
}

/// One that cannot be read.
#[derive(Debug)]
struct BadGlob {
    glob: String,
    why: String,
}

/// As in .gitignore: a pattern without a slash holds in every directory.
fn glob_set(patterns: &[&str], any_case: bool) -> Result<GlobSet, BadGlob> {
    let bad = |glob: &str, error: globset::Error| BadGlob { glob: glob.to_owned(), why: unreadable(&error) };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let anywhere = if pattern.trim_end_matches('/').contains('/') {
            pattern.trim_start_matches('/').to_owned()
        } else {
            format!("**/{pattern}")
        };
        let mut glob = GlobBuilder::new(anywhere.trim_end_matches('/'));
        let glob = glob.literal_separator(true).case_insensitive(any_case).build();
        set.add(glob.map_err(|error| bad(pattern, error))?);
    }
    set.build().map_err(|error| bad(&patterns.join(" "), error))
}

fn bad_setting(key: &str, value: &str, wanted: &str, set_in: SetIn) -> anyhow::Error {
    let refusal = Refusal::new(Code::Usage, format!("{key} is '{value}': {wanted} is wanted"));
    let known = key.strip_prefix("oxundo.").and_then(|name| keys::KEYS.iter().find(|known| known.name == name));
    let variable = known.map(|known| variable(known.name));
    let scope = if set_in == SetIn::Worktree { "--worktree " } else { "" };
    let line = match (variable, known) {
        (Some(variable), _) if std::env::var_os(&variable).is_some() => format!("unset {variable}"),
        // It wins over what git's own variables say.
        (Some(variable), Some(known)) if set_in == SetIn::Environment => {
            format!("export {variable}={}", shell_word(known.default.as_bytes()))
        }
        (_, Some(known)) if known.list || known.default.is_empty() => format!("git config {scope}--unset-all {key}"),
        (_, Some(known)) => {
            let all = if set_in == SetIn::Twice { "--replace-all " } else { "" };
            format!("git config {scope}{all}{key} {}", shell_word(known.default.as_bytes()))
        }
        (_, None) => format!("git config {scope}{key} false"),
    };
    refusal.hint(format!("run '{line}' to go on with the default, or give another value")).into()
}

/// `30d`, `2 weeks`, `90` (days), `1.month.ago` or `now` in seconds.
fn age(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace('.', " ");
    if text == "now" {
        return Some(0);
    }
    let text = text.strip_suffix(" ago").unwrap_or(&text);
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[end..].trim() {
        "s" | "sec" | "second" | "seconds" => 1,
        "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3_600,
        "" | "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 7 * 86_400,
        "m" | "month" | "months" => 30 * 86_400,
        "y" | "year" | "years" => 365 * 86_400,
        _ => return None,
    };
    text[..end].parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_numbers_with_units() {
        for (text, days) in [("30", 30), ("30d", 30), ("2 weeks", 14), ("1.month.ago", 30), ("1 year", 365), ("now", 0)]
        {
            assert_eq!(age(text), Some(days * 86_400), "{text:?}");
        }
        assert_eq!(age("90min"), Some(5_400));
        for bad in ["", "d", "-1d", "1 fortnight", "1.5 days", "99999999999999999999"] {
            assert_eq!(age(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn names_have_globs_classes_and_braces() {
        let names = |globs: &[&str]| Names::new(&globs.iter().map(|glob| (*glob).to_owned()).collect::<Vec<_>>());
        for bad in ["{x", "a}", "[x", "*.pem\\"] {
            let error = names(&[bad]).expect_err(bad).glob;
            assert_eq!(error, bad);
        }
        let some = [
            "*.{pem,k{ey,dbx}}",
            "*.pem{~,.bak}",
            "[ab]c",
            "{[c,d].t,zz}",
            "x[-_.]{y,z}",
            "n[!a-c]",
            "r[a-c]",
            "{a/b,cc}.u",
            "\\{e\\}.f",
            "/top",
            "sub/*.txt",
            "Dir/",
            "!*.EXAMPLE.*",
        ];
        let some = names(&some).expect("these are globs");
        for yes in [
            "a.pem",
            "d/A.KEY",
            "d/a.kdbx",
            "a.pem.bak",
            "bc",
            "c.t",
            "ZZ",
            "{e}.f",
            "top",
            "sub/a.txt",
            "deep/down/dir",
            "d/x-y",
            "X.Z",
            "nd",
            "rb",
            "a/b.u",
            "cc.u",
        ] {
            assert!(some.matches(yes.into()), "{yes}");
        }
        for no in [
            "a.pe",
            "a.kpem",
            "cc",
            "e.f",
            "d/top",
            "sub/d/a.txt",
            "a.example.pem",
            "a.pem.bak.bak",
            "x-",
            "xay",
            "na",
            "r-",
            "d/cc.u",
        ] {
            assert!(!some.matches(no.into()), "{no}");
        }
    }

    #[test]
    fn the_defaults_need_nothing_that_takes_long_to_be_made_ready() {
        for glob in keys::default("secret").split_whitespace() {
            assert!(choices(glob).is_some(), "{glob}");
        }
        let all = |glob: &str| choices(glob).map(|all| all.join(" "));
        assert_eq!(all("a{b,c}[-d].e").as_deref(), Some("ab-.e abd.e ac-.e acd.e"));
        for other in
            ["{a,{b}}", "a\\", "{a,}", "[]a]", "[a-c]", "[^a]", "{a/b,c}", "{a", "[a", "a}", &"{a,b}".repeat(7)]
        {
            assert_eq!(all(other), None, "{other}");
        }
    }

    #[test]
    fn secret_names_are_found_in_every_directory_whatever_their_case() {
        let words: Vec<String> = keys::default("secret").split_whitespace().map(str::to_owned).collect();
        let secrets = Names::new(&words).expect("the defaults are globs");
        let found = include_str!("config/secret-names.txt").lines().filter(|line| !line.is_empty());
        for line in found.filter(|line| !line.starts_with('#')) {
            let (is_one, name) = line.strip_prefix('!').map_or((true, line), |name| (false, name));
            for path in
                [name.to_owned(), format!("a/b.c/{name}"), name.to_uppercase(), format!("A/{}", name.to_uppercase())]
            {
                assert_eq!(secrets.matches(path.as_str().into()), is_one, "{path}");
            }
        }
    }
}
