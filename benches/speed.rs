//! How long oxundo takes, beside what git takes for the same on the same machine in the same run.
//!
//! `cargo bench` prints medians and ratios; `OXUNDO_BENCH_FILES=100000` sets the size of the tree and
//! `OXUNDO_BENCH_RUNS=21` how often each command is timed. Nothing here can fail a build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What an agent does in a turn: eight files changed, one made.
const AGENT: &str = "for i in 1 2 3 4 5 6 7 8; do echo \"$0\" >>d$i/f$i; done; echo \"$0\" >new$0";

/// A repository to time commands in.
struct Bench {
    root: PathBuf,
    runs: usize,
}

impl Bench {
    fn new(files: usize, runs: usize) -> Self {
        let directory = std::env::temp_dir().join(format!("oxundo-bench-{}", std::process::id()));
        let bench = Self { root: directory.join("repo"), runs };
        fs::create_dir_all(directory.join("home")).expect("make a home");
        fs::create_dir_all(&bench.root).expect("make a repository");
        for file in 0..files {
            bench.write(&format!("d{}/f{}", file / 100, file % 100), &format!("{file}\n").repeat(60));
        }
        for file in 0..files / 5 {
            bench.write(&format!("out/{}/f{file}", file / 500), "ignored\n");
        }
        bench.write(".gitignore", "/out/\n");
        // Aider wants a name in the configuration.
        bench.sh("git init -q -b main . && git config user.name bench && git config user.email bench@example.com");
        // oxundo's writes outlive a power cut: so do those of git that it is compared with.
        bench.sh("git config core.fsync all && git config core.fsyncMethod batch");
        bench.sh("git add -A && git commit -qm base && git status");
        // Whoever begins to work has files that are older than the two seconds in which nobody can tell by its times
        // whether a file was changed.
        std::thread::sleep(Duration::from_secs(3));
        bench
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("it is in the repository")).expect("make a directory");
        fs::write(path, content).expect("write a file");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.current_dir(&self.root).env_clear().env("PATH", path).stdin(Stdio::null());
        for (role, name) in [("AUTHOR", "bench"), ("COMMITTER", "bench")] {
            command.env(format!("GIT_{role}_NAME"), name).env(format!("GIT_{role}_EMAIL"), "bench@example.com");
        }
        command.env("HOME", self.root.join("../home")).env("GIT_CONFIG_NOSYSTEM", "1");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn sh(&self, script: &str) -> Duration {
        self.time(self.command("sh").args(["-c", script]))
    }

    fn oxundo(&self, args: &[&str]) -> Duration {
        self.time(self.command(env!("CARGO_BIN_EXE_oxundo")).args(args))
    }

    fn hook(&self, event: &str) -> Duration {
        let file = self.root.join("../home/payload");
        let payload = format!("{{\"hook_event_name\":\"{event}\",\"session_id\":\"s\",\"prompt\":\"p\"}}");
        fs::write(&file, payload).expect("write a payload");
        let mut command = self.command(env!("CARGO_BIN_EXE_oxundo"));
        self.time(command.args(["hook", "claude"]).stdin(fs::File::open(file).expect("open it")))
    }

    #[expect(clippy::unused_self, reason = "what is timed is timed here")]
    fn time(&self, command: &mut Command) -> Duration {
        let start = Instant::now();
        let status = command.status().expect("start a program");
        let took = start.elapsed();
        assert!(status.success(), "{command:?} works: {status}");
        took
    }

    /// What Aider's part of a turn takes, where Aider is installed: its own Python is told by the program's
    /// first line.
    fn aider(&self, made: &str) -> Option<Duration> {
        let program = fs::read_to_string(which::which("aider").ok()?).ok()?;
        let mut command = self.command(program.lines().next()?.strip_prefix("#!")?);
        command.args(["-c", include_str!("aider.py")]).args((1..=8).map(|n| format!("d{n}/f{n}"))).arg(made);
        let output = command.stdout(Stdio::piped()).output().ok()?;
        let milliseconds: f64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
        Some(Duration::from_secs_f64(milliseconds / 1000.0))
    }

    /// The medians of some commands that are timed in turn, so that a slow moment hits them all.
    fn medians<const N: usize>(&self, mut round: impl FnMut(&Self, usize) -> [Duration; N]) -> [Duration; N] {
        let rounds: Vec<[Duration; N]> = (0..=self.runs).map(|n| round(self, n)).collect();
        std::array::from_fn(|at| {
            // The first round fills the caches.
            let mut times: Vec<Duration> = rounds[1..].iter().map(|round| round[at]).collect();
            times.sort();
            times[times.len() / 2]
        })
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = fs::remove_dir_all(self.root.parent().unwrap_or(Path::new("/nowhere")));
    }
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// One line of the table: what oxundo takes, what git takes, how they compare, what is wanted.
#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn line(what: &str, ours: Duration, git: Duration, wanted: &str) {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "{what:46} {:8.1} ms {:8.1} ms {:6.2} {wanted}",
        ms(ours),
        ms(git),
        ours.as_secs_f64() / git.as_secs_f64()
    );
}

#[expect(clippy::print_stdout, reason = "the table is what this program is for")]
fn main() {
    let (files, runs) = (setting("OXUNDO_BENCH_FILES", 20_000), setting("OXUNDO_BENCH_RUNS", 9));
    let bench = Bench::new(files, runs);
    println!("{files} tracked files, {} ignored; medians of {runs}", files / 5);
    println!("{:46} {:>11} {:>11} {:>6}", "", "oxundo", "git", "ratio");

    let mut turn = Duration::ZERO;
    let dirtied = "for i in 1 2 3 4 5; do echo x >>d$i/f50; done";
    for (name, dirty, wanted) in [("run", "", "(0.45 wanted)"), ("run, 5 dirty files", dirtied, "(0.6 wanted)")] {
        let [agent, git, ours] = bench.medians(|bench, n| {
            let made = format!("{n}");
            let script = |extra: &str| format!("set -- {made}{extra}; {}", AGENT.replace("$0", "$1"));
            let agent = bench.sh(&script("a"));
            bench.sh(dirty);
            let commit = "git add -A && git commit -q --allow-empty --no-verify -m turn";
            let git = bench.sh(commit) + bench.sh(commit);
            bench.sh(dirty);
            let script = script("b");
            let ours = bench.oxundo(&["run", "--agent", "bench", "--", "sh", "-c", &script]);
            [agent, git, ours]
        });
        line(&format!("{name}; git add -A and commit, twice"), ours.saturating_sub(agent), git, wanted);
        turn = git;

        let [status, git, undo, redo] = bench.medians(|bench, _| {
            let undo = bench.oxundo(&["undo"]);
            let redo = bench.oxundo(&["redo"]);
            let status = bench.sh("git status");
            let git = status + bench.sh("git reset -q --keep HEAD~1");
            bench.sh("git reset -q --keep HEAD@{1}");
            [status, git, undo, redo]
        });
        let after = name.trim_start_matches("run");
        line(&format!("undo{after}; git status and reset --keep"), undo, git, "(0.6 wanted)");
        line(&format!("redo{after}"), redo, git, "(0.6 wanted)");
        line(&format!("{name}, with its agent; git status"), ours, status, "(3 wanted with 1,000 files)");
        line(&format!("undo{after}; git status"), undo, status, "(2 wanted with 1,000 files)");
    }

    let [ours, git] = bench.medians(|bench, _| {
        bench.oxundo(&["undo"]);
        let ours = bench.sh("git status");
        bench.oxundo(&["redo"]);
        bench.sh("git reset -q --keep HEAD~1");
        let git = bench.sh("git status");
        bench.sh("git reset -q --keep HEAD@{1}");
        [ours, git]
    });
    line("git status after undo; after git reset --keep", ours, git, "(1 wanted)");
    for turn in 0..20 {
        bench.oxundo(&["run", "--agent", "bench", "--", "sh", "-c", AGENT, &format!("s{turn}")]);
    }
    let [twenty, one] = bench.medians(|bench, _| {
        let twenty = bench.oxundo(&["undo", "--steps", "20"]);
        bench.oxundo(&["redo", "--steps", "20"]);
        let one = bench.oxundo(&["undo"]);
        bench.oxundo(&["redo"]);
        [twenty, one]
    });
    line("undo --steps 20; one undo", twenty, one, "(3 wanted)");

    let [git, begin, end, log, status, short] = bench.medians(|bench, _| {
        let git = bench.sh("git status");
        let begin = bench.hook("UserPromptSubmit");
        let end = bench.hook("Stop");
        [git, begin, end, bench.oxundo(&["log"]), bench.oxundo(&["status"]), bench.oxundo(&["status", "--short"])]
    });
    line("hook, a prompt's beginning; git status", begin, git, "(+ 10 ms wanted)");
    line("hook, its end, nothing changed", end, git, "(+ 10 ms wanted)");
    line("log", log, git, "(20 ms wanted)");
    line("status", status, git, "");
    line("status --short; git status", short, git, "(0.7 wanted)");

    // Last, for its commits are nobody's turns. Three times is enough for what takes seconds.
    let mut aider: Vec<Duration> = (0..3).filter_map(|n| bench.aider(&format!("aider{n}"))).collect();
    aider.sort();
    if let [_, median, _] = aider[..] {
        line("(Aider's git part of a turn)", median, turn, "");
    }

    bench.oxundo(&["run", "--agent", "bench", "--", "sh", "-c", "for f in d*/*; do echo all >>$f; done"]);
    std::thread::sleep(Duration::from_secs(3));
    bench.sh("git status");
    let [git, short] = bench.medians(|bench, _| [bench.sh("git status"), bench.oxundo(&["status", "--short"])]);
    line("status --short, where a turn changed all", short, git, "(0.7 wanted)");
}
