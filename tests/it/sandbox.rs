//! A hermetic home and repository to run git and oxundo in, and git's own view of it.

use crate::copies::{self, Template};
use crate::form::{is_whole, part_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Whether turns make commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Commit,
    Ghost,
}

impl Mode {
    pub(crate) const BOTH: [Self; 2] = [Self::Commit, Self::Ghost];

    /// Those in which a story is told: both, or in the short form one of them, which is another one from test to test.
    pub(crate) fn tried() -> Vec<Self> {
        let test = std::thread::current().name().unwrap_or_default().bytes().map(usize::from).sum::<usize>();
        if is_whole() { Self::BOTH.to_vec() } else { vec![Self::BOTH[test % 2]] }
    }
}

/// A temporary directory with `home/` and `repo/`, and nothing of the machine's configuration.
#[derive(Clone, Debug)]
pub(crate) struct Sandbox {
    dir: Arc<TempDir>,
    root: PathBuf,
    cwd: PathBuf,
    /// What is in every program's environment besides.
    variables: Vec<(&'static str, OsString)>,
    /// The user as whom programs run, and the group, where it is another than the test's.
    user: Option<(u32, u32)>,
}

/// Nobody's number, where the tests are the superuser's.
const NOBODY: u32 = 65534;

/// Repositories.
impl Sandbox {
    /// A repository on `main` with `README.txt` in one commit, "base".
    pub(crate) fn new() -> Self {
        // git makes the first of them, and tells each other one which files it has.
        static BASE: LazyLock<Template> = LazyLock::new(|| {
            let sandbox = Sandbox::unborn();
            sandbox.write("README.txt", "readme\n");
            sandbox.sh("git add -A && git commit -qm base");
            Template::read(&sandbox.root)
        });
        let sandbox = Self::empty();
        fs::create_dir(sandbox.home()).expect("make home");
        BASE.write(&sandbox.root);
        sandbox.git(["update-index", "-q", "--refresh"]);
        sandbox
    }

    /// A repository without a commit, with an identity.
    pub(crate) fn unborn() -> Self {
        let sandbox = Self::init(&[]);
        sandbox.identify();
        sandbox
    }

    /// A repository without a commit or an identity.
    pub(crate) fn init(options: &[&str]) -> Self {
        let sandbox = Self::empty();
        fs::create_dir(sandbox.home()).expect("make home");
        fs::create_dir(&sandbox.root).expect("make repo");
        let mut args = vec!["init", "-q", "-b", "main", "--template="];
        args.extend(options);
        sandbox.git(args);
        fs::create_dir(sandbox.root.join(".git/info")).expect("make a directory for the user's own rules");
        sandbox
    }

    /// Whether git can keep refs in tables; says aloud where it cannot.
    pub(crate) fn has_tables() -> bool {
        static HAS: LazyLock<bool> = LazyLock::new(|| {
            let has = Sandbox::new().try_git(["init", "-q", "--ref-format=reftable", "../probe"]).code == 0;
            if !has {
                announce("SKIPPED, NOTHING IS PROVED: this git has no reftable");
            }
            has
        });
        *HAS
    }

    /// As [`Self::new`], with its refs in tables.
    pub(crate) fn with_tables(options: &[&str]) -> Self {
        let sandbox = Self::init(&[&["--ref-format=reftable"], options].concat());
        sandbox.identify();
        sandbox.write("README.txt", "readme\n");
        sandbox.sh("git add -A && git commit -qm base");
        sandbox
    }

    /// A home, and a directory that is in no repository, with `README.txt`.
    pub(crate) fn without_repository() -> Self {
        let sandbox = Self::empty();
        fs::create_dir(sandbox.home()).expect("make home");
        sandbox.write("README.txt", "readme\n");
        sandbox
    }

    fn empty() -> Self {
        crate::hermetic::ensure();
        let dir = copies::directory();
        // As homes are closed on most systems: nothing in it is private from anybody who could read what git has.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).expect("close it");
        let base = fs::canonicalize(dir.path()).expect("resolve the temporary directory");
        let root = base.join("repo");
        Self { dir: Arc::new(dir), cwd: root.clone(), root, variables: Vec::new(), user: None }
    }

    /// Configures the user's name and address.
    pub(crate) fn identify(&self) {
        self.append_to_config("[user]\n\tname = User Name\n\temail = user@example.com\n");
    }

    /// Adds lines to the repository's configuration as they are: `git config` writes no key without a value.
    pub(crate) fn append_to_config(&self, text: &str) {
        let config = fs::OpenOptions::new().append(true).open(self.root.join(".git/config"));
        config.and_then(|mut config| config.write_all(text.as_bytes())).expect("write the configuration");
    }

    /// The same repository, with this variable in the environment of all that is run from here.
    pub(crate) fn with_variable(mut self, name: &'static str, value: impl Into<OsString>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    /// The same home, with a linked worktree on a new branch as the place to be.
    pub(crate) fn linked(&self, name: &str) -> Self {
        let root = self.base().join(name);
        self.git([
            OsStr::new("worktree"),
            OsStr::new("add"),
            OsStr::new("-q"),
            OsStr::new("-b"),
            OsStr::new(name),
            root.as_os_str(),
        ]);
        Self { cwd: root.clone(), root, ..self.clone() }
    }

    /// The same home, with another directory beside `repo/` as the place to be.
    pub(crate) fn beside(&self, name: &str) -> Self {
        let root = self.base().join(name);
        Self { cwd: root.clone(), root, ..self.clone() }
    }

    /// Another sandbox with all that is in this one, in a linked worktree too. Much faster than to build it again.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::empty();
        let (from, to) = (self.base(), copy.base());
        let name = self.root.strip_prefix(&from).expect("the root is in the sandbox");
        let root = to.join(name);
        let cwd = root.join(self.cwd.strip_prefix(&self.root).expect("it is started in the root"));
        for directory in [Path::new("home"), Path::new("repo"), name] {
            if !to.join(directory).exists() {
                copies::copy(&from.join(directory), &to.join(directory));
            }
        }
        if name != Path::new("repo") {
            // Each of the two has the other's path in it.
            let git_dir = to.join("repo/.git/worktrees").join(name);
            fs::write(root.join(".git"), format!("gitdir: {}\n", git_dir.display())).expect("write a path");
            fs::write(git_dir.join("gitdir"), format!("{}/.git\n", root.display())).expect("write a path");
        }
        let copy = Self { root, cwd, variables: self.variables.clone(), ..copy };
        let copy = Self { user: self.user, ..copy }.owned();
        // The index knows each file by its inode.
        let _ = copy.try_git(["update-index", "-q", "--refresh"]);
        copy
    }

    /// A bare repository beside this one, as a remote of that name.
    pub(crate) fn remote(&self, name: &str) -> &Self {
        self.sh(&format!("git init -q --bare -b main ../{name}.git && git remote add {name} ../{name}.git"));
        self
    }
}

/// Paths and files.
impl Sandbox {
    pub(crate) fn base(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).expect("resolve the temporary directory")
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.base().join("home")
    }

    /// From now on oxundo is started in this subdirectory.
    pub(crate) fn start_in(&mut self, directory: &str) {
        self.cwd = self.root.join(directory);
    }

    pub(crate) fn path(&self, path: impl AsRef<[u8]>) -> PathBuf {
        self.root.join(OsStr::from_bytes(path.as_ref()))
    }

    /// Writes a file, and the directories above it.
    pub(crate) fn write(&self, path: impl AsRef<[u8]>, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("make the directories of a file");
        }
        fs::write(&path, content).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
        self
    }

    pub(crate) fn chmod(&self, path: impl AsRef<[u8]>, mode: u32) -> &Self {
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(mode)).expect("change a mode");
        self
    }

    pub(crate) fn link(&self, path: impl AsRef<[u8]>, target: &str) -> &Self {
        symlink(target, self.path(path)).expect("make a symlink");
        self
    }

    #[track_caller]
    pub(crate) fn read(&self, path: impl AsRef<[u8]>) -> Vec<u8> {
        let path = self.path(path);
        fs::read(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()))
    }

    /// Whether there is anything at that path, be it a dangling symlink.
    pub(crate) fn exists(&self, path: impl AsRef<[u8]>) -> bool {
        self.path(path).symlink_metadata().is_ok()
    }

    pub(crate) fn mode(&self, path: impl AsRef<[u8]>) -> u32 {
        let path = self.path(path);
        path.symlink_metadata().expect("look at a file").permissions().mode() & 0o7777
    }

    #[track_caller]
    pub(crate) fn assert_file(&self, path: &str, content: impl AsRef<[u8]>, why: &str) {
        let found = fs::read(self.path(path)).map(|bytes| bytes.escape_ascii().to_string());
        let wanted = content.as_ref().escape_ascii().to_string();
        assert_eq!(found.ok(), Some(wanted), "{path}: {why}");
    }

    #[track_caller]
    pub(crate) fn assert_absent(&self, path: &str, why: &str) {
        assert!(!self.exists(path), "{path} should not be there: {why}");
    }
}

/// Programs.
impl Sandbox {
    fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let path = self.variables.iter().rfind(|(name, _)| *name == "PATH").map(|(_, path)| path.clone());
        let path = path.unwrap_or_else(search_path);
        // By its place: for a name that is not looked up on the tests' own PATH, the standard library forks, and the
        // kernel copies the page tables of all tests each time.
        let mut command =
            Command::new(which::which_in(program.as_ref(), Some(&path), directory).expect("it is installed"));
        command
            .current_dir(directory)
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            // Not there until a test writes it: a git that runs as root would replace a device.
            .env("GIT_CONFIG_GLOBAL", self.home().join(".gitconfig"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// The same, as a user to whom something may be denied: to the superuser nothing is.
    pub(crate) fn unprivileged(mut self) -> Self {
        if rustix::process::geteuid().is_root() {
            let all = self.base();
            let owner = format!("{NOBODY}:{NOBODY}");
            let chown = Command::new("chown").args(["-R", &owner]).arg(&all).status();
            assert!(chown.is_ok_and(|status| status.success()), "give it all away");
            self.user = Some((NOBODY, NOBODY));
        }
        self
    }

    /// The same, where all that is in it is its user's again.
    pub(crate) fn owned(self) -> Self {
        if self.user.is_some() { self.unprivileged() } else { self }
    }

    /// The same, as the user whom the tests run as.
    pub(crate) fn as_root(&self) -> Self {
        Self { user: None, ..self.clone() }
    }

    /// Another member of nobody's group, with the same home, who trusts what is the others'.
    pub(crate) fn member(&self, number: u32) -> Self {
        let mut member = self.clone();
        member.user = Some((NOBODY - number, NOBODY));
        member
    }

    /// Somebody who is in no group with nobody.
    pub(crate) fn stranger(&self) -> Self {
        let mut stranger = self.clone();
        stranger.user = Some((NOBODY - 9, NOBODY - 9));
        stranger
    }

    /// A program with which the test itself builds and judges: git leaves out what only costs time there. oxundo and its
    /// agents have the git of every day.
    fn tool(&self, program: &str) -> Command {
        let mut command = self.command(program, &self.root);
        // Nothing has to survive a power cut.
        command.env("GIT_TEST_FSYNC", "0");
        for (at, key) in ["maintenance.auto", "gc.auto"].iter().enumerate() {
            command.env(format!("GIT_CONFIG_KEY_{at}"), key).env(format!("GIT_CONFIG_VALUE_{at}"), "0");
        }
        command.env("GIT_CONFIG_COUNT", "2");
        command
    }

    /// The command line `git ARGS…`, ready to be started.
    pub(crate) fn git_command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.tool("git");
        command.args(args);
        command
    }

    /// A git command that may fail.
    #[must_use]
    pub(crate) fn try_git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Output {
        Output::of(&mut self.git_command(args))
    }

    /// What a git command prints that is fed these bytes, without the last newline.
    #[track_caller]
    pub(crate) fn git_fed(&self, args: &[&str], input: &[u8]) -> String {
        let output = Output::fed(self.tool("git").args(args), input);
        output.success();
        output.out()
    }

    /// What a git command prints, without the last newline.
    #[track_caller]
    pub(crate) fn git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> String {
        let output = self.try_git(args);
        output.success();
        output.out()
    }

    /// A shell script, ready to be started.
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = self.tool("sh");
        command.args(["-ec", script]);
        command
    }

    /// What a shell script prints, without the last newline.
    #[track_caller]
    pub(crate) fn sh(&self, script: &str) -> String {
        let output = Output::of(&mut self.shell(script));
        output.success();
        output.out()
    }

    /// The user commits a file; gives the commit's id.
    #[track_caller]
    pub(crate) fn commit(&self, path: &str, content: &str) -> String {
        self.write(path, content);
        self.git(["add", "--", path]);
        self.git(["commit", "-qm", &format!("user: {path}")]);
        self.head()
    }

    #[track_caller]
    pub(crate) fn head(&self) -> String {
        self.git(["rev-parse", "HEAD"])
    }

    /// The command line `oxundo ARGS…`, ready to be started.
    pub(crate) fn oxundo_command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_oxundo"), &self.cwd);
        command.args(args);
        command
    }

    /// The same behind `sh -c LAUNCH`.
    pub(crate) fn launched_command(&self, launch: &str, args: &[&str]) -> Command {
        let mut command = self.command("sh", &self.cwd);
        command.args(["-c", launch, env!("CARGO_BIN_EXE_oxundo")]).args(args);
        command
    }

    /// What an agent's own process runs, all of it by one: `sh -c SCRIPT`.
    #[must_use]
    pub(crate) fn by_agent(&self, script: &str) -> Output {
        let mut command = self.command("sh", &self.cwd);
        Output::fired(command.args(["-c", script]), b"")
    }

    #[must_use]
    pub(crate) fn oxundo<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Output {
        Output::of(&mut self.oxundo_command(args))
    }

    /// Runs `oxundo --json ARGS…`; gives the exit code and the one object on stdout.
    #[track_caller]
    pub(crate) fn json<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> (i32, Value) {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        let output = self.oxundo([OsString::from("--json")].into_iter().chain(args));
        let Ok(mut value) = serde_json::from_slice::<Value>(&output.stdout) else {
            panic!("--json prints exactly one object on stdout\n{output:?}");
        };
        assert_eq!(value["v"], 1, "every object says its version\n{output:?}");
        // They are compared as people get them.
        for hint in value.pointer_mut("/error/hints").and_then(Value::as_array_mut).into_iter().flatten() {
            *hint = hint.as_str().unwrap_or_default().replace(" --json", "").into();
        }
        (output.code, value)
    }

    /// The turns of `oxundo log --json`, newest first.
    #[track_caller]
    pub(crate) fn log(&self) -> Vec<Value> {
        let (code, log) = self.json(["log"]);
        assert_eq!(code, 0, "log works: {log}");
        log["turns"].as_array().unwrap_or_else(|| panic!("log has turns: {log}")).clone()
    }

    /// A turn by `sh -c SCRIPT`, in commit mode.
    #[track_caller]
    pub(crate) fn agent(&self, script: &str) -> Output {
        self.turn(Mode::Commit, script)
    }

    /// A turn by `sh -c SCRIPT`.
    #[track_caller]
    pub(crate) fn turn(&self, mode: Mode, script: &str) -> Output {
        let output = match mode {
            Mode::Commit => self.oxundo(["run", "--", "sh", "-ec", script]),
            Mode::Ghost => self.oxundo(["run", "--ghost", "--", "sh", "-ec", script]),
        };
        output.success();
        output
    }

    #[track_caller]
    pub(crate) fn undo(&self) {
        self.oxundo(["undo"]).success();
    }

    #[track_caller]
    pub(crate) fn redo(&self) {
        self.oxundo(["redo"]).success();
    }

    /// A turn by `sh -c SCRIPT`, undone, redone and undone again: each time the very state is back.
    #[track_caller]
    pub(crate) fn there_and_back(&self, mode: Mode, script: &str) {
        let before = self.state();
        self.turn(mode, script);
        let after = self.state();
        assert_ne!(before, after, "the turn changes something");
        for (op, wanted) in [("undo", &before), ("redo", &after), ("undo", &before)] {
            self.oxundo([op]).success();
            self.state().assert_is(wanted, &format!("{op} brings back the very state ({mode:?})"));
        }
        self.assert_sound();
    }

    /// Sees to it that the command is refused with this code and that nothing at all changes: as
    /// JSON, for people, and as a dry run where it is an undo or a redo. Gives the error object.
    #[track_caller]
    pub(crate) fn refuses(&self, args: &[&str], code: &str) -> Value {
        let error = self.refuses_any(args, &[code]);
        assert_eq!(error["code"], code);
        error
    }

    /// As [`Sandbox::refuses`], where more than one code fits.
    #[track_caller]
    pub(crate) fn refuses_any(&self, args: &[&str], codes: &[&str]) -> Value {
        let exit = match codes {
            ["nothing"] => 4,
            ["corrupt" | "io"] => 1,
            _ => 3,
        };
        let before = self.everything();
        let (status, value) = self.json(args);
        self.everything().assert_is(&before, "a refusal changes nothing");
        let error = value["error"].clone();
        let found = error["code"].as_str().unwrap_or_default();
        assert!(codes.contains(&found), "{args:?} is refused with {codes:?}: {value}");
        assert_eq!(status, exit, "the exit code of a refusal: {value}");
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "it says why: {value}");

        let mut spoken = self.oxundo(args);
        assert_eq!(spoken.code, exit, "JSON or not, the exit code is the same\n{spoken:?}");
        assert!(spoken.err().starts_with("error: "), "a refusal is an error on stderr\n{spoken:?}");
        assert!(
            exit == 4 || spoken.err().lines().any(|line| line.starts_with("hint: ")),
            "a refusal says what to do next\n{spoken:?}"
        );
        assert!(spoken.stdout.is_empty(), "no answer on stdout\n{spoken:?}");

        // A dry run takes no lock.
        if matches!(args[0], "undo" | "redo") && found != "locked" {
            spoken = self.oxundo(with_dry_run(args));
            assert_eq!(spoken.code, exit, "a dry run is refused like the real one\n{spoken:?}");
        }
        self.everything().assert_is(&before, "a refusal changes nothing");
        error
    }

    /// Starts `oxundo ARGS…` and leaves it running.
    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        let mut command = self.oxundo_command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("start oxundo")
    }

    /// Waits until a file in home is there.
    #[track_caller]
    pub(crate) fn wait_for(&self, name: &str) {
        let file = self.home().join(name);
        let start = Instant::now();
        while !file.exists() {
            assert!(start.elapsed() < Duration::from_secs(60), "{name} appears");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Writes a file in home.
    pub(crate) fn signal(&self, name: &str) {
        fs::write(self.home().join(name), "").expect("write a file in home");
    }

    /// What throws away all that only a reflog holds.
    pub(crate) fn prune(&self) {
        self.sh("git reflog expire --expire=now --all && git gc -q --prune=now");
    }

    /// Sees to it that git finds no fault with the repository.
    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let output = self.try_git(["fsck", "--full", "--strict", "--no-dangling", "--no-progress"]);
        output.success();
        // Of a sparse index it also says which entries are unmerged.
        let is_said =
            |line: &&str| line.starts_with("notice: ") || line.starts_with("hint: ") || line.contains(": unmerged (");
        let is_fault = |line: &&str| !is_said(line);
        let faults: Vec<_> = output.err().lines().filter(is_fault).map(str::to_owned).collect();
        assert_eq!((output.out().as_str(), faults), ("", Vec::new()), "fsck finds nothing");
    }
}

/// Where git and both binaries are found.
fn search_path() -> OsString {
    let binaries = Path::new(env!("CARGO_BIN_EXE_git-oxundo")).parent().expect("binaries have a directory");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(binaries.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(all).expect("directories of PATH have no colon")
}

/// What a program said, and how it ended.
#[derive(Clone)]
pub(crate) struct Output {
    what: String,
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Output {
    pub(crate) fn of(command: &mut Command) -> Self {
        let what = format!("{command:?}");
        let output = command.output().unwrap_or_else(|error| panic!("start {what}: {error}"));
        Self::new(&what, output)
    }

    /// Starts the command and feeds it these bytes.
    pub(crate) fn fed(command: &mut Command, input: &[u8]) -> Self {
        let what = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("start {what}: {error}"));
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        let input = input.to_owned();
        let feeder = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output().expect("wait for the program");
        feeder.join().expect("join the feeder").expect("the program reads its input");
        Self::new(&what, output)
    }

    /// As [`Self::fed`], by a process that is an agent's: so hooks are fired.
    pub(crate) fn fired(command: &mut Command, input: &[u8]) -> Self {
        let ran = crate::agent::run(command, input);
        Self { what: format!("{command:?}"), code: ran.code, stdout: ran.stdout, stderr: ran.stderr }
    }

    /// Waits for a program that was left running.
    pub(crate) fn awaited(child: Child) -> Self {
        Self::new("a program in the background", child.wait_with_output().expect("wait for a program"))
    }

    fn new(what: &str, output: std::process::Output) -> Self {
        // Never the environment: it only makes failures hard to read.
        let what = what.rsplit_once(" TZ=\"UTC\" ").map_or(what, |(_, what)| what);
        let code = output.status.code().or_else(|| output.status.signal().map(|signal| -signal));
        Self {
            what: what.to_owned(),
            code: code.expect("a program that ended has a code or a signal"),
            stdout: output.stdout,
            stderr: output.stderr,
        }
    }

    /// stdout as text, without the last newline.
    pub(crate) fn out(&self) -> String {
        text(&self.stdout)
    }

    /// stderr as text, without the last newline.
    pub(crate) fn err(&self) -> String {
        text(&self.stderr)
    }

    #[track_caller]
    pub(crate) fn success(&self) {
        assert_eq!(self.code, 0, "it succeeds\n{self:?}");
    }

    #[track_caller]
    pub(crate) fn exits(&self, code: i32) {
        assert_eq!(self.code, code, "the exit code\n{self:?}");
    }

    #[track_caller]
    pub(crate) fn says(&self, part: &str) {
        assert!(self.out().contains(part), "stdout says {part:?}\n{self:?}");
    }

    #[track_caller]
    pub(crate) fn warns(&self, part: &str) {
        assert!(self.err().contains(part), "stderr says {part:?}\n{self:?}");
    }
}

fn text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.strip_suffix('\n').unwrap_or(&text).to_owned()
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}\n-- exit code {}", self.what, self.code)?;
        writeln!(f, "-- stdout\n{}", self.out())?;
        writeln!(f, "-- stderr\n{}", self.err())
    }
}

/// Files of a git directory, with their bytes.
type Stored = BTreeMap<PathBuf, Vec<u8>>;

/// The largest index, in bytes, of which what git says is remembered.
const MOST_REMEMBERED: usize = 1 << 16;

/// What git said, by its arguments and the files that it read.
type Said = BTreeMap<(String, Stored), Vec<u8>>;

/// What `git stash list OPTION` runs where there is a stash; where there is none it prints nothing.
fn stash_list(option: &str) -> [&str; 7] {
    ["log", "--format=%gd: %gs", "-g", "--first-parent", option, "refs/stash", "--"]
}

/// The name of the fact that is the stash.
const STASH: &str = "git stash list";

/// Git's whole view of a repository, and every file and directory of its worktree: facts by name.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct State(BTreeMap<String, Vec<u8>>);

impl Sandbox {
    /// The state that undo and redo are to bring back. Looking changes nothing, not even the index.
    #[track_caller]
    pub(crate) fn state(&self) -> State {
        let mut facts = BTreeMap::new();
        // First: it says what is what after a refresh, in memory only.
        let status = self.look(&["status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all"]);
        let (branch, status): (Vec<_>, Vec<_>) =
            status.split(|byte| *byte == 0).partition(|line| line.starts_with(b"# "));
        for line in branch.iter().filter(|line| !line.starts_with(b"# branch.ab")) {
            let at = line.iter().skip(2).position(|byte| *byte == b' ').map_or(line.len(), |at| at + 2);
            facts.insert(line[..at].escape_ascii().to_string(), line[at..].to_vec());
        }
        facts.insert("git status".to_owned(), status.join(&b'\n'));
        for (name, id) in self.refs_below(&["refs/heads", "refs/stash"]) {
            if name == "refs/stash" {
                facts.insert(STASH.to_owned(), self.stash_list());
            } else {
                facts.insert(format!("ref {name}"), id.into());
            }
        }
        facts.entry(STASH.to_owned()).or_default();
        for entry in self.index_entries().split(|byte| *byte == 0) {
            let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
            let (meta, path) = (&entry[..tab], &entry[tab + 1..]);
            let stage = char::from(meta[tab - 1]);
            facts.insert(format!("index {} {stage}", path.escape_ascii()), meta.to_vec());
        }
        for (name, content) in self.operation() {
            facts.insert(format!("git dir {name}"), content);
        }
        walk(&self.root, &mut Vec::new(), &mut facts);
        State(facts)
    }

    /// What git is in the middle of, as its own files and refs say it; of what it leaves behind when it is in the middle of
    /// nothing, only what is prepared for the next commit.
    #[track_caller]
    pub(crate) fn operation(&self) -> BTreeMap<String, Vec<u8>> {
        let git_dir = self.git_dir();
        let mut all = BTreeMap::new();
        for place in ["rebase-merge", "rebase-apply", "sequencer", "refs/bisect", "refs/rewritten"] {
            if git_dir.join(place).is_dir() {
                let mut facts = BTreeMap::new();
                walk(&git_dir.join(place), &mut Vec::new(), &mut facts);
                // An empty one of refs is none.
                if !place.starts_with("refs/") {
                    all.insert(format!("{place}/"), Vec::new());
                }
                all.extend(
                    facts.into_iter().map(|(name, fact)| (name.replace("on disk ", &format!("{place}/")), fact)),
                );
            }
        }
        for name in fs::read_dir(&git_dir).expect("list the git directory").flatten().map(|entry| entry.file_name()) {
            let name = name.to_string_lossy().into_owned();
            let is_one =
                ["MERGE_", "BISECT_", "CHERRY_PICK_", "REVERT_", "REBASE_", "SQUASH_", "AUTO_MERGE", "ORIG_HEAD"];
            if is_one.iter().any(|start| name.starts_with(start)) && !name.contains(".lock") {
                all.insert(name.clone(), fs::read(git_dir.join(&name)).expect("read a file"));
            }
        }
        if self.common_dir().join("reftable").exists() {
            let printed = self.look(&["for-each-ref", "--include-root-refs", "--format=%(refname) %(objectname)"]);
            let is_branchs = |name: &str| {
                name == "HEAD"
                    || name.starts_with("refs/")
                        && !name.starts_with("refs/bisect/")
                        && !name.starts_with("refs/rewritten/")
            };
            let refs = lines(&printed)
                .into_iter()
                .filter_map(|line| line.split_once(' ').map(|(name, id)| (name.to_owned(), id.into())));
            all.extend(refs.filter(|(name, _)| !is_branchs(name)));
        }
        let marks = [
            "MERGE_HEAD",
            "CHERRY_PICK_HEAD",
            "REVERT_HEAD",
            "BISECT_LOG",
            "rebase-merge/",
            "rebase-apply/",
            "sequencer/",
        ];
        let is_under_way = marks.iter().any(|mark| all.contains_key(*mark));
        let is_am = all.contains_key("rebase-apply/");
        all.retain(|name, _| match name.as_str() {
            "MERGE_MSG" | "SQUASH_MSG" => true,
            "ORIG_HEAD" => is_am,
            _ => is_under_way,
        });
        all
    }

    /// Every entry of the index, with its flags.
    #[track_caller]
    fn index_entries(&self) -> Vec<u8> {
        let shared = |name: &OsStr| name.as_bytes().starts_with(b"sharedindex.");
        self.said(&["ls-files", "-s", "-v", "-z"], || {
            let git_dir = self.git_dir();
            let names = fs::read_dir(&git_dir).ok()?.flatten().map(|entry| entry.file_name());
            let is_whole =
                !names.into_iter().any(|name| shared(&name)) && !git_dir.join("info/sparse-checkout").exists();
            let config = fs::read(self.common_dir().join("config")).ok()?;
            let index = fs::read(git_dir.join("index")).ok()?;
            (is_whole && index.len() <= MOST_REMEMBERED)
                .then(|| Stored::from([("config".into(), config), ("index".into(), index)]))
        })
    }

    /// Every file and directory, `.git` at the top left out.
    pub(crate) fn files(&self) -> State {
        let mut facts = BTreeMap::new();
        walk(&self.root, &mut Vec::new(), &mut facts);
        State(facts)
    }

    /// The state, and what git's other commands print. It follows from the state: a few tests
    /// see to that.
    #[track_caller]
    pub(crate) fn printed(&self) -> State {
        let mut state = self.state();
        let has_stash = state.fact(STASH).is_some_and(|list| !list.is_empty());
        let stash = stash_list("-p");
        for (name, args) in [
            ("git diff --binary", &["diff", "--binary"] as &[_]),
            ("git diff --cached --binary", &["diff", "--cached", "--binary"]),
            ("git stash list -p", if has_stash { &stash } else { &[] }),
        ] {
            let print = || Output::of(self.git_command(args).env("GIT_OPTIONAL_LOCKS", "0")).stdout;
            state.0.insert(name.to_owned(), if args.is_empty() { Vec::new() } else { print() });
        }
        state.0.insert("HEAD".to_owned(), self.head_file());
        state
    }

    /// What HEAD's file says, or its link.
    fn head_file(&self) -> Vec<u8> {
        let head = self.git_dir().join("HEAD");
        match fs::read_link(&head) {
            Ok(target) => [b"ref: ", target.as_os_str().as_bytes(), b"\n"].concat(),
            Err(_) => fs::read(head).expect("read HEAD"),
        }
    }

    /// The state, what git prints, and every ref there is.
    #[track_caller]
    pub(crate) fn everything(&self) -> State {
        let mut state = self.printed();
        for (name, id) in self.refs() {
            state.0.insert(format!("any ref {name}"), id.into());
        }
        state
    }

    /// All that is outside the repository, and of the git directory what oxundo never writes.
    pub(crate) fn outside(&self) -> State {
        let mut facts = BTreeMap::new();
        walk(&self.base(), &mut Vec::new(), &mut facts);
        let ours = ["objects", "logs", "refs", "oxundo", "index", "packed-refs"];
        State(facts).only(|fact| match fact.strip_prefix("on disk repo/") {
            Some(inside) => {
                inside.strip_prefix(".git/").is_some_and(|it| !ours.iter().any(|ours| it.starts_with(ours)))
            }
            None => true,
        })
    }

    /// Every ref there is, with its id.
    #[track_caller]
    pub(crate) fn refs(&self) -> BTreeMap<String, String> {
        // Not remembered where some are of a worktree's own.
        if self.root.join(".git").is_dir() { self.refs_below(&["refs"]) } else { self.refs_below(&[]) }
    }

    /// Every ref below these, with its id.
    #[track_caller]
    fn refs_below(&self, places: &[&str]) -> BTreeMap<String, String> {
        let args = [&["for-each-ref", "--format=%(refname) %(objectname)"], places].concat();
        let stored = || (!places.is_empty()).then(|| self.stored(&[places, &["packed-refs"]].concat()))?;
        let refs = lines(&self.said(&args, stored));
        let pairs = refs.iter().filter_map(|line| line.split_once(' '));
        pairs.map(|(name, id)| (name.to_owned(), id.to_owned())).collect()
    }

    #[track_caller]
    fn stash_list(&self) -> Vec<u8> {
        self.said(&stash_list("--format=%gd %H %gs"), || {
            let stored = self.stored(&["refs/stash", "packed-refs", "logs/refs/stash"])?;
            let entries = lines(stored.get(Path::new("logs/refs/stash"))?);
            // git would miss a commit that is gone. What is in a pack is for git to find.
            let commits = entries.iter().map(|entry| entry.split(' ').nth(1)?.split_at_checked(2));
            let loose = |(start, rest): (&str, &str)| self.common_dir().join("objects").join(start).join(rest);
            commits.map(|id| id.map(loose)).all(|path| path.is_some_and(|path| path.exists())).then_some(stored)
        })
    }

    /// What a git command prints that only asks for what is in `stored`: from the same bytes it always says the same.
    #[track_caller]
    fn said(&self, args: &[&str], stored: impl Fn() -> Option<Stored>) -> Vec<u8> {
        static SAID: LazyLock<Mutex<Said>> = LazyLock::new(Mutex::default);
        let key = stored().map(|stored| (args.join(" "), stored));
        let known = key.as_ref().and_then(|key| SAID.lock().expect("nobody panics with it").get(key).cloned());
        known.unwrap_or_else(|| {
            let said = self.look(args);
            // Unless it has changed meanwhile.
            if let Some(key) = key.filter(|(_, known)| stored().as_ref() == Some(known)) {
                SAID.lock().expect("nobody panics with it").insert(key, said.clone());
            }
            said
        })
    }

    /// These files of the git directory, and those below, where refs are in files.
    fn stored(&self, places: &[&str]) -> Option<Stored> {
        let common = self.common_dir();
        if !common.join("HEAD").exists() || common.join("reftable").exists() {
            return None;
        }
        let mut left: Vec<_> = places.iter().map(|place| common.join(place)).collect();
        let mut stored = Stored::new();
        while let Some(path) = left.pop() {
            if path.is_dir() {
                for entry in fs::read_dir(&path).ok()? {
                    left.push(entry.ok()?.path());
                }
            } else if path.symlink_metadata().is_ok() {
                stored.insert(path.strip_prefix(&common).ok()?.to_owned(), fs::read(&path).ok()?);
            }
        }
        Some(stored)
    }

    /// The git directory of this worktree.
    fn git_dir(&self) -> PathBuf {
        let link = fs::read_to_string(self.root.join(".git")).unwrap_or_default();
        self.root.join(link.strip_prefix("gitdir: ").unwrap_or(".git").trim_end())
    }

    /// The git directory that has the branches and the stash of all worktrees.
    fn common_dir(&self) -> PathBuf {
        let git_dir = self.git_dir();
        match fs::read_to_string(git_dir.join("commondir")) {
            Ok(common) => git_dir.join(common.trim_end()),
            Err(_) => git_dir,
        }
    }

    #[track_caller]
    fn look(&self, args: &[&str]) -> Vec<u8> {
        let output = Output::of(self.git_command(args).env("GIT_OPTIONAL_LOCKS", "0"));
        output.success();
        output.stdout
    }
}

/// Lines as text, in which no byte is lost.
fn lines(bytes: &[u8]) -> Vec<String> {
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| line.escape_ascii().to_string()).collect()
}

/// Gathers each file's type, mode and content, and each directory's mode.
fn walk(directory: &Path, prefix: &mut Vec<u8>, facts: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(directory).expect("list a directory") {
        let entry = entry.expect("read a directory's entry");
        let name = entry.file_name().into_vec();
        if prefix.is_empty() && name == b".git" {
            continue;
        }
        let length = prefix.len();
        prefix.extend(&name);
        let metadata = entry.metadata().expect("look at a file");
        let mode = metadata.permissions().mode() & 0o7777;
        let (kind, content) = if metadata.is_dir() {
            ("directory", Vec::new())
        } else if metadata.is_symlink() {
            let target = fs::read_link(entry.path()).expect("read a symlink");
            ("symlink", target.into_os_string().into_vec())
        } else if !metadata.is_file() {
            // To read a pipe is to wait for a writer.
            ("special", Vec::new())
        } else {
            ("file", fs::read(entry.path()).expect("read a file"))
        };
        let mode = if metadata.is_symlink() { 0 } else { mode };
        let mut fact = format!("{kind} {mode:04o} ").into_bytes();
        fact.extend(content);
        facts.insert(format!("on disk {}", prefix.escape_ascii()), fact);
        if metadata.is_dir() {
            prefix.push(b'/');
            walk(&entry.path(), prefix, facts);
        }
        prefix.truncate(length);
    }
}

impl State {
    /// All but the facts whose name starts so.
    pub(crate) fn without(mut self, prefix: &str) -> Self {
        self.0.retain(|name, _| !name.starts_with(prefix));
        self
    }

    /// Only the facts with such a name.
    pub(crate) fn only(mut self, wanted: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|name, _| wanted(name));
        self
    }

    /// The first lines of `git status` about tracked files.
    pub(crate) fn tracked_changes(&self) -> Vec<String> {
        let status = self.0.get("git status").map_or("".into(), |status| String::from_utf8_lossy(status));
        let tracked = |line: &&str| ["1 ", "2 ", "u "].iter().any(|start| line.starts_with(start));
        status.lines().filter(tracked).take(9).map(str::to_owned).collect()
    }

    /// What HEAD is: a branch's name, or `(detached)`.
    pub(crate) fn branch(&self) -> &[u8] {
        self.0.get("# branch.head").map_or(b"", Vec::as_slice)
    }

    /// One fact.
    pub(crate) fn fact(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// Adds a fact, or puts it in the place of the one with its name. For those who trace.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    pub(crate) fn with(mut self, name: &str, fact: impl Into<Vec<u8>>) -> Self {
        self.0.insert(name.to_owned(), fact.into());
        self
    }

    /// Sees to it that this is the wanted state; else says what differs, and only that.
    #[track_caller]
    pub(crate) fn assert_is(&self, wanted: &Self, invariant: &str) {
        let difference = self.difference(wanted);
        assert!(difference.is_empty(), "{invariant}; (-) wanted, (+) found:\n{difference}");
    }

    pub(crate) fn difference(&self, wanted: &Self) -> String {
        let mut difference = String::new();
        let mut names: Vec<&String> = wanted.0.keys().chain(self.0.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let (old, new) = (wanted.0.get(name), self.0.get(name));
            if old != new {
                for (sign, value) in [('-', old), ('+', new)] {
                    let value = value.map_or("(not there)".to_owned(), |value| abridged(value));
                    let _ = writeln!(difference, "{sign} {name}: {value}");
                }
            }
        }
        difference
    }
}

fn abridged(bytes: &[u8]) -> String {
    const MOST: usize = 400;
    let text = bytes[..bytes.len().min(MOST)].escape_ascii().to_string().replace("\\n", "\n    ");
    if bytes.len() > MOST { format!("{text}… ({} bytes)", bytes.len()) } else { text }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.0 {
            writeln!(f, "{name}: {}", abridged(value))?;
        }
        Ok(())
    }
}

/// Says it whether or not the test harness shows what tests print: a test that is skipped is not silent.
pub(crate) fn announce(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Checks something in both modes, or in the short form in one of them, and then names all that failed.
#[track_caller]
pub(crate) fn in_both_modes(check: impl Fn(Mode)) {
    check_all(Mode::tried().into_iter().map(|mode| (format!("{mode:?}"), mode)), |mode| check(*mode));
}

/// Checks every case of a table, or a part of a long one, and then names all that failed, not only the first.
#[track_caller]
pub(crate) fn check_all<T>(cases: impl IntoIterator<Item = (String, T)>, check: impl Fn(&T)) {
    let wanted = std::env::var("OXUNDO_CASE").unwrap_or_default();
    let (mut count, mut failures) = (0, Vec::new());
    for (name, case) in part_of(cases, &wanted, |(name, _)| name) {
        count += 1;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&case))) {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            failures.push((name, text.to_owned()));
        }
    }
    let names: Vec<_> = failures.iter().map(|(name, _)| format!("  {name}")).collect();
    let texts: Vec<_> = failures.iter().map(|(name, text)| format!("== {name}\n{text}")).collect();
    assert!(
        failures.is_empty(),
        "{} of {count} cases failed:\n{}\n\n{}",
        failures.len(),
        names.join("\n"),
        texts.join("\n\n")
    );
}

/// The same command line as a dry run: behind `--` are paths.
fn with_dry_run<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let at = args.iter().position(|arg| *arg == "--").unwrap_or(args.len());
    [&args[..at], &["--dry-run"], &args[at..]].concat()
}
