//! A temporary repository for the tests beside the code: real git makes it, and says what is in it.

use crate::git::repo::{Repo, hermetic};
use crate::model::checkpoint::{Checkpoint, Head, IndexState, Modes, UsualModes};
use crate::model::operation::Operation;
use gix::ObjectId;
use gix::bstr::ByteSlice;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A repository in a temporary directory. Its branch is `main`, without a commit.
pub struct Fixture {
    outside: TempDir,
    /// The repository, opened when it was made.
    pub repo: Repo,
}

impl Fixture {
    /// An empty repository with these settings, each `key=value`.
    #[track_caller]
    pub fn with(settings: &[&str]) -> Self {
        Self::made("sha1", settings)
    }

    /// An empty repository whose objects have this format.
    #[track_caller]
    pub fn of_format(format: &str) -> Self {
        Self::made(format, &[])
    }

    #[track_caller]
    fn made(format: &str, settings: &[&str]) -> Self {
        hermetic::ensure();
        let outside = tempfile::tempdir().expect("make a directory");
        let top = outside.path().join("repo");
        std::fs::create_dir(&top).expect("make a directory");
        let own = ["user.name=A User", "user.email=user@example.com", "core.fileMode=true", "gc.auto=0"];
        expect_success(run(&top, &["init", "-q", "-b", "main", "--template=", "--object-format", format], b""));
        for setting in own.iter().chain(settings) {
            let (key, value) = setting.split_once('=').expect("a key and a value");
            expect_success(run(&top, &["config", key, value], b""));
        }
        let repo = Repo::open(&top).expect("open the repository");
        repo.act();
        Self { outside, repo }
    }

    /// An empty repository.
    #[track_caller]
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// Opens the repository again, with its present configuration.
    #[track_caller]
    pub fn reopened(self) -> Self {
        let repo = Repo::open(self.repo.top()).expect("open the repository");
        repo.act();
        Self { repo, ..self }
    }

    /// The directory that the worktree is in.
    pub fn outside(&self) -> &Path {
        self.outside.path()
    }

    /// Where a path of the worktree is.
    pub fn path(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.repo.top().join(OsStr::from_bytes(path.as_ref()))
    }

    /// Writes a file, with the directories above it.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a directory above")).expect("make directories");
        std::fs::write(path, content).expect("write a file");
    }

    /// The permission bits of what is at a path.
    #[track_caller]
    pub fn mode(&self, path: impl AsRef<[u8]>) -> u32 {
        self.path(path).symlink_metadata().expect("look at a file").permissions().mode() & 0o7777
    }

    /// What git prints.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> Vec<u8> {
        self.git_fed(args, b"")
    }

    /// What git prints, given this input.
    #[track_caller]
    pub fn git_fed(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        self.repo.flush().expect("write new objects");
        expect_success(run(self.repo.top(), args, input))
    }

    /// Whether git calls it a success.
    #[track_caller]
    pub fn git_agrees(&self, args: &[&str]) -> bool {
        run(self.repo.top(), args, b"").status.success()
    }

    /// What git prints, as lines of text.
    #[track_caller]
    pub fn lines(&self, args: &[&str]) -> Vec<String> {
        self.git(args).lines().map(|line| line.to_str_lossy().into_owned()).collect()
    }

    /// The id that git prints.
    #[track_caller]
    pub fn id(&self, args: &[&str]) -> ObjectId {
        ObjectId::from_hex(self.git(args).trim()).expect("git prints an id")
    }

    /// A blob of this content.
    #[track_caller]
    pub fn blob(&self, content: impl AsRef<[u8]>) -> ObjectId {
        let printed = self.git_fed(&["hash-object", "-w", "--stdin"], content.as_ref());
        ObjectId::from_hex(printed.trim()).expect("git prints an id")
    }

    /// A checkpoint of an index and a worktree with the files of this tree, and nothing else: no branch, no commit.
    #[track_caller]
    pub fn checkpoint(&self, tree: ObjectId) -> Checkpoint {
        Checkpoint {
            head: Head::default(),
            branches: BTreeMap::new(),
            symbolic: BTreeMap::new(),
            elsewhere: BTreeSet::new(),
            stash: Vec::new(),
            operation: Operation::default(),
            index: IndexState { tree, sparse: BTreeSet::new(), special: BTreeMap::new() },
            worktree: tree,
            modes: Modes { usual: UsualModes::from_umask(0o022), unusual: BTreeMap::new() },
            directories: BTreeSet::new(),
            skipped: Vec::new(),
            uncaptured: BTreeMap::new(),
            rules: self.blob(""),
        }
    }

    /// Writes a file and commits all that there is.
    #[track_caller]
    pub fn commit(&self, path: &str, content: &str) -> ObjectId {
        self.write(path, content);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", path]);
        self.id(&["rev-parse", "HEAD"])
    }

    /// The index as git prints it, with all stages and flags.
    #[track_caller]
    pub fn index(&self) -> String {
        self.git(&["ls-files", "-s", "-v", "-z"]).to_str_lossy().replace('\0', "\n")
    }
}

fn run(top: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut git = Command::new("git");
    git.args(args).current_dir(top).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    git.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("HOME", top.join(".."));
    git.env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("LC_ALL", "C")
        .env("TZ", "UTC");
    for role in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{role}_DATE"), "@1700000000 +0100");
    }
    let mut child = git.spawn().expect("run git");
    // One that wants no input may have ended.
    let _ = child.stdin.take().expect("a way to its input").write_all(input);
    child.wait_with_output().expect("run git")
}

#[track_caller]
fn expect_success(output: Output) -> Vec<u8> {
    assert!(output.status.success(), "git failed: {}", output.stderr.as_bstr());
    output.stdout
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixture_is_no_repository_that_the_environment_names() {
        let theirs = Fixture::new();
        let mut tests = Command::new(std::env::current_exe().expect("the tests are a program"));
        tests.args(["--exact", "git::repo::testing::tests::a_fixture_is_where_it_was_made"]);
        tests.env("GIT_DIR", theirs.repo.git_dir()).env("GIT_WORK_TREE", "/").env("OXUNDO_MODE", "no mode");
        let said = expect_success(tests.output().expect("start the tests"));
        assert!(said.contains_str("1 passed"), "{}", said.as_bstr());
    }

    #[test]
    fn a_fixture_is_where_it_was_made() {
        let f = Fixture::new();
        assert!(f.repo.git_dir().starts_with(f.outside().canonicalize().expect("it is there")));
    }
}
