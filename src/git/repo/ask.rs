//! git's own questions about changes, hunk by hunk. They are asked in a repository made for them alone: whatever becomes of the
//! questions, of git or of the terminal, nothing else is touched.

use crate::git::repo::Repo;
use crate::git::repo::platform::process;
use crate::git::repo::process::Git;
use crate::git::repo::scratch::remove_tree;
use crate::model::bytes::shell_word;
use anyhow::{Context, Result, bail};
use gix::bstr::{BStr, BString, ByteSlice};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// How git asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Which changes go: they are shown as they were made.
    Discard,
    /// Which changes come: they are shown as they would be made.
    Apply,
}

/// A file as it is, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sheet {
    /// What is in it.
    pub content: Vec<u8>,
    /// Whether it is executable.
    pub executable: bool,
}

/// A file that differs.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its path.
    pub path: BString,
    /// As it is.
    pub now: Option<Sheet>,
    /// As it is if all of it is chosen.
    pub goal: Option<Sheet>,
}

/// How the directories are called in which this is asked; behind it comes the process.
const ASKED: &str = "asked-";

/// What its process has locked.
const ASKER: &str = ".git/asker";

/// What the user has set of how git asks.
const LOOKS: &str = r"^(color|interactive|pager)\.|^core\.(editor|pager)$|^diff\.(algorithm|context|interhunkcontext|wserrorhighlight)$";

/// What makes it a repository.
const REPOSITORY: [&str; 2] = ["core.repositoryFormatVersion=0", "core.bare=false"];

/// Bytes as they are, whatever else is set.
const PLAIN: [&str; 15] = [
    "core.fileMode=true",
    "core.symlinks=true",
    "core.ignoreCase=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.sparseCheckout=false",
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.bigFileThreshold=512m",
    "core.hooksPath=/dev/null",
    "apply.whitespace=nowarn",
    "apply.ignoreWhitespace=no",
    "submodule.recurse=false",
];

/// Settings in the environment, which win over those of a repository.
const SET_FOR_ALL: [&str; 2] = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];

/// These win over what a file of attributes says that is among those asked about.
const ATTRIBUTES: &str = "* diff -text !eol -ident -filter -working-tree-encoding\n";

/// Has git ask, on the terminal. Gives each file as it is with what was chosen; none where that was cut off.
pub fn ask(repo: &Repo, questions: &[Question], way: Way) -> Result<Option<Vec<Option<Sheet>>>> {
    sweep(repo);
    let place = Place::make(repo)?;
    let goal = place.lay_out(questions)?;
    let source = match way {
        Way::Discard => "--source=HEAD".to_owned(),
        Way::Apply => format!("--source={goal}"),
    };
    let asking = place.git(["restore", "-p", &source]);
    let asking = match editor(repo) {
        Some(editor) => asking.env("GIT_EDITOR", editor),
        None => asking,
    };
    let Some(status) = asking.asks()? else { return Ok(None) };
    if !status.success() {
        bail!("git restore -p: {status}");
    }
    questions.iter().map(|question| place.answer(question)).collect::<Result<_>>().map(Some)
}

/// The line that starts the user's editor at the top of the worktree, as git does; none where git finds none, or that does nothing.
fn editor(repo: &Repo) -> Option<String> {
    let editor = text(repo.git(["var", "GIT_EDITOR"]).run(b"").ok()?).ok()?;
    (editor != ":").then(|| format!("cd {} && {editor}", shell_word(repo.top().as_os_str().as_bytes())))
}

/// Removes what is left there of questions that were killed.
pub fn sweep(repo: &Repo) {
    for entry in std::fs::read_dir(repo.scratch_path("")).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let asker = name.to_str().and_then(|name| name.strip_prefix(ASKED)?.parse().ok());
        let is_left = |asker| is_of_the_dead(&entry.path()).unwrap_or_else(|| process(asker).is_none());
        if asker.is_some_and(is_left) {
            let _ = remove_tree(&entry.path());
        }
    }
}

/// Whether nobody has the lock in it any more, whoever has the process's number now; none where there is no lock yet.
fn is_of_the_dead(place: &Path) -> Option<bool> {
    Some(File::open(place.join(ASKER)).ok()?.try_lock().is_ok())
}

/// A repository of its own, for nobody else to read; it is gone when this is dropped.
struct Place {
    path: PathBuf,
    /// The lock of whoever asks.
    _asker: File,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = remove_tree(&self.path);
    }
}

impl Place {
    fn make(repo: &Repo) -> Result<Self> {
        let path = repo.scratch()?.join(format!("{ASKED}{}", std::process::id()));
        if path.exists() {
            remove_tree(&path)?;
        }
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.with_context(|| format!("make '{}'", path.display()))?;
        for directory in [".git/objects", ".git/refs", ".git/info"] {
            std::fs::create_dir_all(path.join(directory)).context("make a repository to ask in")?;
        }
        // Under its name it is never there without its lock.
        let (lock, new) = (path.join(ASKER), path.join(".git/asker.new"));
        let asker = File::create(&new).context("lock the repository to ask in")?;
        asker.lock().context("lock the repository to ask in")?;
        std::fs::rename(&new, &lock).context("lock the repository to ask in")?;
        let place = Self { path, _asker: asker };
        place.put(b".git/HEAD".as_bstr(), b"ref: refs/heads/asked\n", 0o600)?;
        place.put(b".git/info/attributes".as_bstr(), ATTRIBUTES.as_bytes(), 0o600)?;
        let own: String =
            REPOSITORY.iter().chain(&PLAIN).filter_map(|set| setting(&set.replacen('=', "\n", 1))).collect();
        let config = looks(repo)? + &own;
        place.put(b".git/config".as_bstr(), config.as_bytes(), 0o600)?;
        Ok(place)
    }

    fn git<const N: usize>(&self, args: [&str; N]) -> Git {
        let outranks = SET_FOR_ALL.iter().any(|name| std::env::var_os(name).is_some());
        // Only then: what git starts, as the user's editor, is told of them.
        let settings = PLAIN.iter().filter(|_| outranks).flat_map(|set| ["-c", set]);
        Git::found_in(&self.path, settings.chain(args))
    }

    /// Makes it so that git finds these differences; gives the commit that has the other side of them.
    fn lay_out(&self, questions: &[Question]) -> Result<String> {
        for question in questions {
            self.write(&question.path, question.goal.as_ref())?;
        }
        self.add(questions.iter().filter(|question| question.goal.is_some()))?;
        let tree = text(self.git(["write-tree"]).run(b"")?)?;
        let mut commit = self.git(["commit-tree", "-m", "asked", &tree]);
        for role in ["AUTHOR", "COMMITTER"] {
            commit = commit.env(&format!("GIT_{role}_NAME"), "oxundo").env(&format!("GIT_{role}_EMAIL"), "oxundo");
        }
        let goal = text(commit.run(b"")?)?;
        self.put(b".git/HEAD".as_bstr(), format!("{goal}\n").as_bytes(), 0o600)?;
        // First what goes: something else may be in its place.
        for question in questions.iter().filter(|question| question.goal.is_some()) {
            self.remove(&question.path)?;
        }
        for question in questions {
            self.write(&question.path, question.now.as_ref())?;
        }
        self.add(questions.iter().filter(|question| question.now.is_some()))?;
        Ok(goal)
    }

    fn add<'q>(&self, questions: impl Iterator<Item = &'q Question>) -> Result<()> {
        let paths: Vec<u8> = questions.flat_map(|question| [question.path.as_slice(), b"\0"].concat()).collect();
        self.git(["update-index", "--add", "--replace", "-z", "--stdin"]).run(&paths).map(drop)
    }

    fn write(&self, path: &BString, sheet: Option<&Sheet>) -> Result<()> {
        let Some(Sheet { content, executable }) = sheet else { return Ok(()) };
        self.put(path.as_bstr(), content, if *executable { 0o700 } else { 0o600 })
    }

    fn put(&self, path: &BStr, content: &[u8], mode: u32) -> Result<()> {
        let place = self.path(path);
        let written = || {
            std::fs::create_dir_all(place.parent().unwrap_or(&self.path))?;
            let _ = std::fs::remove_file(&place);
            File::options().write(true).create_new(true).mode(mode).open(&place)?.write_all(content)
        };
        written().with_context(|| format!("write '{}'", place.display()))
    }

    /// Removes a file, and the directories that it leaves empty.
    fn remove(&self, path: &BString) -> Result<()> {
        let place = self.path(path.as_bstr());
        std::fs::remove_file(&place).with_context(|| format!("remove '{}'", place.display()))?;
        let above = place.ancestors().skip(1).take_while(|above| *above != self.path);
        let _ = above.map(std::fs::remove_dir).take_while(std::io::Result::is_ok).count();
        Ok(())
    }

    fn answer(&self, question: &Question) -> Result<Option<Sheet>> {
        let answer = self.read(&question.path)?;
        // Of a file that comes or goes git asks no mode; and one that comes back is executable no more (seen in 2.47).
        let only = match (&question.now, &question.goal) {
            (Some(one), None) | (None, Some(one)) => Some(one.executable),
            _ => None,
        };
        Ok(answer.map(|sheet| Sheet { executable: only.unwrap_or(sheet.executable), ..sheet }))
    }

    fn read(&self, path: &BString) -> Result<Option<Sheet>> {
        let place = self.path(path.as_bstr());
        let Ok(about) = place.symlink_metadata() else { return Ok(None) };
        // In the place of a file that was not chosen there may be the directory of one that was.
        if !about.is_file() {
            return Ok(None);
        }
        let content = std::fs::read(&place).with_context(|| format!("read '{}'", place.display()))?;
        Ok(Some(Sheet { content, executable: about.mode() & 0o100 != 0 }))
    }

    fn path(&self, path: &BStr) -> PathBuf {
        self.path.join(Path::new(OsStr::from_bytes(path)))
    }
}

fn text(printed: Vec<u8>) -> Result<String> {
    Ok(String::from_utf8(printed)?.trim().to_owned())
}

/// What the repository's own configuration says of how git asks, as git writes it.
fn looks(repo: &Repo) -> Result<String> {
    let (_, printed) = repo.git_apart(["config", "--local", "--null", "--get-regexp", LOOKS]).ask()?;
    let lines = printed.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    Ok(lines.filter_map(|line| setting(&line.to_str_lossy())).collect())
}

/// A key and its value as a line of a file of git's.
fn setting(line: &str) -> Option<String> {
    let (key, value) = line.split_once('\n').map_or((line, None), |(key, value)| (key, Some(value)));
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let (section, rest) = key.split_once('.')?;
    let header = match rest.rsplit_once('.') {
        Some((middle, _)) => format!("[{section} \"{}\"]", escaped(middle)),
        None => format!("[{section}]"),
    };
    let name = rest.rsplit('.').next()?;
    let value = value.map(|value| format!(" = \"{}\"", escaped(value))).unwrap_or_default();
    Some(format!("{header}\n\t{name}{value}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_as_git_reads_them() {
        assert_eq!(setting("core.editor\nvi \"-n\"").as_deref(), Some("[core]\n\teditor = \"vi \\\"-n\\\"\"\n"));
        assert_eq!(setting("color.diff.meta\nred").as_deref(), Some("[color \"diff\"]\n\tmeta = \"red\"\n"));
        assert_eq!(setting("interactive.singlekey").as_deref(), Some("[interactive]\n\tsinglekey\n"));
    }
}
