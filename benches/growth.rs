//! What oxundo costs as a repository grows: files, turns, remote branches, commits, ignored files, files
//! that a sparse checkout leaves out; in time, memory and bytes on disk.
//!
//! `cargo bench --bench growth` prints the tables; `-- files turns` only these of `files`, `turns`, `calls`, `steps`,
//! `history`, `ignored`, `switches`, `sparse` and `disk`. `OXUNDO_BENCH_MOST=500000` sets the largest tree,
//! `OXUNDO_BENCH_TURNS` the number of turns, `OXUNDO_BENCH_STEPS` that of steps. Nothing here can fail a build.

#![expect(clippy::print_stdout, reason = "the tables are what this program is for")]

use expectrl::session::OsSession;
use expectrl::{Expect, Regex};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const OXUNDO: &str = env!("CARGO_BIN_EXE_oxundo");

/// How often each command is timed.
const RUNS: usize = 5;

/// A repository below the system's directory for such things, removed when it is dropped.
struct Bench {
    base: PathBuf,
}

impl Bench {
    fn new() -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let base = std::env::temp_dir().join(format!("oxundo-growth-{}-{number}", std::process::id()));
        fs::create_dir_all(base.join("home")).expect("make a home");
        fs::create_dir_all(base.join("repo")).expect("make a repository");
        let bench = Self { base };
        // A git that tidies up in the background would be in the way.
        bench.sh("git init -q -b main . && git config gc.auto 0 && git config maintenance.auto false");
        bench
    }

    /// With so many files, a hundred a directory, committed.
    fn with_files(files: usize) -> Self {
        let bench = Self::new();
        for file in 0..files {
            bench.write(&format!("d{}/f{}", file / 100, file % 100), &format!("{file}\n").repeat(20));
        }
        bench.sh("git add -A && git commit -qm base && git gc -q && git status");
        bench.settle();
        bench
    }

    /// What was changed in the last two seconds is looked at twice.
    fn settle(&self) {
        std::thread::sleep(Duration::from_millis(3200));
        self.sh("git status");
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.base.join("repo").join(path);
        fs::create_dir_all(path.parent().expect("it is in the repository")).expect("make a directory");
        fs::write(path, content).expect("write a file");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.current_dir(self.base.join("repo")).env_clear().env("PATH", path).stdin(Stdio::null());
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "bench").env(format!("GIT_{role}_EMAIL"), "bench@example.com");
        }
        command.env("HOME", self.base.join("home")).env("GIT_CONFIG_NOSYSTEM", "1");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn sh(&self, script: &str) -> Duration {
        time(self.command("sh").args(["-c", script]))
    }

    /// As [`Self::sh`], with this on its input.
    fn fed(&self, script: &str, input: &str) {
        let file = self.base.join("home/input");
        fs::write(&file, input).expect("write the input");
        time(self.command("sh").args(["-c", script]).stdin(fs::File::open(file).expect("open it")));
    }

    fn oxundo(&self, args: &[&str]) -> Duration {
        time(self.command(OXUNDO).args(args))
    }

    /// A hook of Claude Code's, with more in what it tells.
    fn hook(&self, event: &str, more: &str) -> Duration {
        let payload = format!(r#"{{"hook_event_name":"{event}","session_id":"s","prompt":"p"{more}}}"#);
        let file = self.base.join("home/payload");
        fs::write(&file, payload).expect("write a payload");
        let mut command = self.command(OXUNDO);
        time(command.args(["hook", "claude"]).stdin(fs::File::open(file).expect("open it")))
    }

    /// Until the timeline screen shows turns; where there are none, until it has said so.
    fn screen(&self) -> Duration {
        let mut command = self.command(OXUNDO);
        command.arg("rewind").env("TERM", "xterm-256color").stdin(Stdio::inherit());
        command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let start = Instant::now();
        let mut session = OsSession::spawn(command).expect("start a program in a terminal");
        session.expect(Regex("bench|no turn")).expect("it shows something");
        start.elapsed()
    }

    /// A turn that changes so many files.
    fn turn(&self, files: usize, word: &str) -> Duration {
        self.oxundo(&["run", "--agent", "bench", "--", "sh", "-c", &edit(files, word)])
    }

    /// The largest amount of memory that a command has at once, in megabytes, as GNU time tells it.
    fn memory(&self, args: &[&str]) -> Option<u64> {
        let output = self.command("time").args(["-f", "%M", OXUNDO]).args(args).stderr(Stdio::piped()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        text.lines().last()?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes / 1024)
    }

    /// The bytes of all files in the git directory.
    fn size(&self) -> u64 {
        size_of(&self.base.join("repo/.git"))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // What cannot be removed is left to the system.
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// A script that adds a line to so many files.
fn edit(files: usize, word: &str) -> String {
    format!("i=0; while [ $i -lt {files} ]; do echo {word} >>d$((i / 100))/f$((i % 100)); i=$((i + 1)); done")
}

fn size_of(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_dir() => size_of(&entry.path()),
        Ok(about) => about.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.status().expect("start a program");
    let took = start.elapsed();
    assert!(status.success(), "{command:?} works: {status}");
    took
}

/// The medians, in milliseconds, of some commands that are timed in turn.
fn medians<const N: usize>(mut round: impl FnMut(usize) -> [Duration; N]) -> [f64; N] {
    let rounds: Vec<[Duration; N]> = (0..=RUNS).map(&mut round).collect();
    std::array::from_fn(|at| {
        // The first round fills the caches.
        median(rounds[1..].iter().map(|round| round[at]).collect())
    })
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Time and memory by the number of files.
fn files() {
    let most = setting("OXUNDO_BENCH_MOST", 500_000);
    println!("\n{:>8} files {:>10} {:>10} {:>10} {:>10} {:>10}", "", "git status", "run", "undo", "redo", "memory");
    for files in [1_000, 20_000, 100_000, 500_000].into_iter().filter(|files| *files <= most) {
        let bench = Bench::with_files(files);
        let [git, run, undo, redo] = medians(|n| {
            let git = bench.sh("git status");
            let run = bench.turn(8, &n.to_string());
            [git, run, bench.oxundo(&["undo"]), bench.oxundo(&["redo"])]
        });
        let memory = ["undo", "redo"].iter().filter_map(|op| bench.memory(&[op])).max();
        let memory = memory.map_or("?".to_owned(), |megabytes| format!("{megabytes} MB"));
        println!("{files:>14} {git:>7.1} ms {run:>7.1} ms {undo:>7.1} ms {redo:>7.1} ms {memory:>10}");
        println!("{:>14} {:>10} {:>10.2} {:>10.2} {:>10.2}", "by git status", "", run / git, undo / git, redo / git);
    }
}

/// Time by the number of turns that are recorded, beside a repository that has none, in turn.
fn turns() {
    let most = setting("OXUNDO_BENCH_TURNS", 10_000);
    let (young, old) = (Bench::with_files(1_000), Bench::with_files(1_000));
    println!("\n{:>8} turns {:>10} {:>10} {:>10} {:>10}", "", "run", "undo", "redo", "log");
    let mut made = 0;
    for turns in [0, most / 10, most] {
        while made < turns {
            // One file after the other: a turn on one that grows costs more by that alone.
            let script = format!("echo {made} >d{}/f{}", made / 100 % 10, made % 100);
            old.oxundo(&["run", "--agent", "bench", "--", "sh", "-c", &script]);
            made += 1;
        }
        let times = [&young, &old].map(|bench| {
            bench.sh("git gc -q --prune=now && git status");
            [const { Vec::new() }; 4]
        });
        let [mut first, mut now] = times;
        for n in 0..4 * RUNS {
            for (bench, times) in [(&young, &mut first), (&old, &mut now)] {
                times[0].push(bench.turn(8, &format!("m{n}")));
                times[1].push(bench.oxundo(&["undo"]));
                times[2].push(bench.oxundo(&["redo"]));
                times[3].push(bench.oxundo(&["log"]));
            }
        }
        let [run, undo, redo, log] = now.map(median);
        println!("{turns:>14} {run:>7.1} ms {undo:>7.1} ms {redo:>7.1} ms {log:>7.1} ms");
        let [a, b, c, d] = first.map(median);
        println!("{:>14} {:>10.2} {:>10.2} {:>10.2} {:>10.2}", "by none", run / a, undo / b, redo / c, log / d);
        looks(&old);
    }
}

/// What only looks at the turns.
fn looks(bench: &Bench) {
    let commands: [&[&str]; 7] = [
        &["log", "--all", "--graph"],
        &["log", "--ops"],
        &["status"],
        &["undo", "--dry-run"],
        &["show", "--json", "@"],
        &["find", "d1/f1"],
        &["find", "-S", "nowhere"],
    ];
    let times = medians(|_| commands.map(|args| bench.oxundo(args)));
    let [screen] = medians(|_| [bench.screen()]);
    for (args, took) in commands.iter().zip(times) {
        let most =
            if args.starts_with(&["find"]) && args.len() == 2 { bar(took / 1000.0, 2.0, " s") } else { String::new() };
        println!("{:>30} {took:>7.1} ms{most}", args.join(" "));
    }
    println!("{:>30} {screen:>7.1} ms", "the screen, with its turns");
}

/// What is wanted at most, and whether it is kept to.
fn bar(found: f64, most: f64, unit: &str) -> String {
    let word = if found <= most { "kept" } else { "MISSED" };
    format!("  (at most {most:.1}{unit}: {word})")
}

/// What the two hooks of a call of a tool take together, beside `git status`: one that names the file, one that does not, and one
/// that changes nothing. With few steps in the turn, and with many.
fn calls() {
    let files = setting("OXUNDO_BENCH_MOST", 20_000).min(20_000);
    println!("\n{files:>8} files {:>20} {:>14} {:>14}", "git status", "both hooks", "by git status");
    let bench = Bench::with_files(files);
    bench.hook("UserPromptSubmit", "");
    let most = setting("OXUNDO_BENCH_STEPS", 500);
    let mut made = 0;
    for steps in [0, most] {
        while made < steps {
            call(&bench, "Edit", made, Some("d0/f0"));
            made += 1;
        }
        println!("{made:>14} steps");
        for (name, tool, path, limit) in [
            ("a named file", "Edit", Some("d1/f1"), 0.5),
            ("a shell's, one file", "Bash", Some("d2/f2"), 1.0),
            ("a shell's, nothing", "Bash", None, 1.0),
        ] {
            let [git, both] = medians(|n| [bench.sh("git status"), call(&bench, tool, made + n, path)]);
            made += RUNS + 1;
            let ratio = both / git;
            println!("{name:>28} {git:>7.1} ms {both:>11.1} ms {ratio:>14.2}{}", bar(ratio, limit, ""));
        }
    }
    bench.hook("Stop", "");
}

/// A call of a tool in which this file is changed: what its two hooks take.
fn call(bench: &Bench, tool: &str, id: usize, path: Option<&str>) -> Duration {
    let input = match path.filter(|_| tool == "Edit") {
        Some(path) => format!(r#"{{"file_path":"{path}"}}"#),
        None => r#"{"command":"make"}"#.to_owned(),
    };
    let about = format!(r#","tool_name":"{tool}","tool_use_id":"{id}","tool_input":{input}"#);
    let before = bench.hook("PreToolUse", &about);
    if let Some(path) = path {
        bench.write(path, &format!("{id} {tool}\n"));
    }
    before + bench.hook("PostToolUse", &about)
}

/// The end of a turn by the number of its steps, beside the end of one that has none and changed as much.
fn steps() {
    println!("\n{:>8} steps {:>10} {:>10} {:>12} {:>10}", "", "a call", "the end", "without them", "ratio");
    let bench = Bench::with_files(setting("OXUNDO_BENCH_MOST", 20_000).min(20_000));
    let most = setting("OXUNDO_BENCH_STEPS", 500);
    for steps in [most / 10, most] {
        let mut ends = [Vec::new(), Vec::new()];
        let mut calls = Vec::new();
        for n in 0..RUNS {
            for (setting, ends) in ["hooks", "off"].iter().zip(&mut ends) {
                bench.sh(&format!("git config oxundo.steps {setting}"));
                bench.hook("UserPromptSubmit", "");
                for step in 0..steps {
                    let file = format!("d{}/f{}", step / 100, step % 100);
                    let call =
                        format!(r#","tool_name":"Edit","tool_use_id":"{step}","tool_input":{{"file_path":"{file}"}}"#);
                    // Without steps, calls cost next to nothing and change nothing of the end.
                    let before = if *setting == "hooks" { bench.hook("PreToolUse", &call) } else { Duration::ZERO };
                    bench.write(&file, &format!("{n} {step} {setting}\n"));
                    if *setting == "hooks" {
                        calls.push(before + bench.hook("PostToolUse", &call));
                    }
                }
                // What was written just now is read again: here nothing is, as after an agent's last words.
                std::thread::sleep(Duration::from_millis(2100));
                ends.push(bench.hook("Stop", ""));
            }
        }
        let ([with, without], call) = (ends.map(median), median(calls));
        println!("{steps:>14} {call:>7.1} ms {with:>7.1} ms {without:>9.1} ms {:>10.2}", with / without);
    }
}

/// In milliseconds.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

/// What it takes to know that nothing is published, by remote branches and commits.
fn history() {
    println!("\n{:>30} {:>10} {:>14}", "remote branches, commits", "undo", "without graph");
    for (refs, commits) in [(0, 1), (5_000, 100_000)] {
        let bench = Bench::new();
        bench.fed("git fast-import --quiet && git reset -q --hard && git gc -q", &stream(commits, refs));
        let undo = |bench: &Bench| {
            let [undo] = medians(|n| {
                bench.sh(&format!("'{OXUNDO}' run --agent bench -- sh -c 'echo {n} >>d0/f0'"));
                [bench.oxundo(&["undo"])]
            });
            undo
        };
        bench.sh("git commit-graph write --reachable");
        let with = undo(&bench);
        bench.sh(
            "rm -rf .git/objects/info/commit-graph .git/objects/info/commit-graphs; git config core.commitGraph false",
        );
        println!("{:>30} {with:>7.1} ms {:>11.1} ms", format!("{refs}, {commits}"), undo(&bench));
    }
    own_commits();
}

/// What it takes to find the last turn below one's own commits.
fn own_commits() {
    println!("\n{:>30} {:>10} {:>10} {:>14}", "own commits above", "log", "status", "without graph");
    for commits in [1, 100_000] {
        let bench = Bench::with_files(1_000);
        bench.turn(8, "turn");
        // On top of what is there.
        let stream = stream(commits, 0).replacen("data 1\nx\n", "data 1\nx\nfrom refs/heads/main^0\n", 1);
        bench.fed("git fast-import --quiet && git reset -q --hard && git gc -q && git status", &stream);
        bench.sh("git commit-graph write --reachable");
        let looks = |bench: &Bench| medians(|_| [bench.oxundo(&["log"]), bench.oxundo(&["status"])]);
        let [log, status] = looks(&bench);
        bench.sh(
            "rm -rf .git/objects/info/commit-graph .git/objects/info/commit-graphs; git config core.commitGraph false",
        );
        let [without, _] = looks(&bench);
        println!("{commits:>30} {log:>7.1} ms {status:>7.1} ms {without:>11.1} ms");
    }
}

/// A history for `git fast-import`: one line of commits, with so many remote branches along it.
fn stream(commits: usize, refs: usize) -> String {
    let mut stream = String::new();
    for n in 1..=commits {
        let (at, length) = (1_700_000_000 + n, n.to_string().len() + 1);
        let _ = write!(
            stream,
            "commit refs/heads/main\nmark :{n}\ncommitter bench <bench@example.com> {at} +0000\n\
             data 1\nx\nM 644 inline d0/f0\ndata {length}\n{n}\n\n"
        );
        if refs > 0 && n % (commits / refs) == 0 {
            let _ = write!(stream, "reset refs/remotes/origin/b{n}\nfrom :{n}\n\n");
        }
    }
    stream
}

/// Time by the number of ignored files.
fn ignored() {
    println!("\n{:>8} ignored {:>10} {:>10} {:>10}", "", "git status", "run", "undo");
    for files in [0, 200_000] {
        let bench = Bench::with_files(1_000);
        bench.write(".gitignore", "/out/\n");
        for file in 0..files {
            bench.write(&format!("out/{}/{file}", file / 500), "");
        }
        bench.sh("git add -A && git commit -qm ignore");
        let [git, run, undo] = medians(|n| {
            let git = bench.sh("git status");
            let run = bench.turn(8, &n.to_string());
            [git, run, bench.oxundo(&["undo"])]
        });
        println!("{files:>16} {git:>7.1} ms {run:>7.1} ms {undo:>7.1} ms");
    }
}

/// Time by what git's users switch on for many files. Every tenth directory has a file that is ignored.
fn switches() {
    let files = setting("OXUNDO_BENCH_MOST", 100_000).min(100_000);
    let bench = Bench::with_files(files);
    for directory in (0..files / 100).step_by(10) {
        bench.write(&format!("d{directory}/x.o"), "");
    }
    bench.write(".gitignore", "*.o\n");
    // It watches nothing, and knows where the turns are.
    bench.write("../home/monitor", "#!/bin/sh\nprintf 'bench\\0d0/\\0'\n");
    bench.sh("chmod +x ../home/monitor; git add -A && git commit -qm ignore");
    std::thread::sleep(Duration::from_millis(3200));
    println!("\n{files:>8} files {:>18} {:>10} {:>10} {:>10}", "", "git status", "status", "undo");
    let mut first = None;
    for (name, setup) in [
        ("nothing", "git config core.untrackedCache false; git update-index --no-untracked-cache"),
        ("index.threads=4", "git config index.threads 4; git update-index --force-write-index"),
        ("untracked cache as well", "git config core.untrackedCache true; git update-index --untracked-cache"),
        ("a monitor as well", "git config core.fsmonitor ../home/monitor; git update-index --fsmonitor"),
    ] {
        bench.sh(&format!("{setup}; git status"));
        let times = medians(|n| {
            bench.turn(8, &n.to_string());
            [bench.sh("git status"), bench.oxundo(&["status"]), bench.oxundo(&["undo"])]
        });
        let first = first.get_or_insert(times);
        let [git, status, undo] = times;
        println!("{name:>32} {git:>7.1} ms {status:>7.1} ms {undo:>7.1} ms");
        let [git, status, undo] = std::array::from_fn(|at| times[at] / first[at]);
        println!("{:>32} {git:>10.2} {status:>10.2} {undo:>10.2}", "by nothing");
    }
}

/// Time in a sparse checkout that has one file in fifty, with a full index and with a sparse one.
fn sparse() {
    let files = setting("OXUNDO_BENCH_MOST", 100_000).min(100_000);
    println!("\n{:>25} {:>10} {:>10} {:>10} {:>10}", "sparse checkout", "git status", "run", "undo", "redo");
    let bench = Bench::with_files(files);
    let cone: String = (0..files.div_ceil(5_000)).map(|directory| format!(" d{directory}")).collect();
    for (name, checkout) in [
        ("none", "true".to_owned()),
        ("with a full index", format!("git sparse-checkout set --cone --no-sparse-index{cone}")),
        ("with a sparse index", format!("git sparse-checkout set --cone --sparse-index{cone}")),
    ] {
        bench.sh(&checkout);
        bench.settle();
        let [git, run, undo, redo] = medians(|n| {
            let git = bench.sh("git status");
            let run = bench.turn(8, &n.to_string());
            [git, run, bench.oxundo(&["undo"]), bench.oxundo(&["redo"])]
        });
        println!("{name:>25} {git:>7.1} ms {run:>7.1} ms {undo:>7.1} ms {redo:>7.1} ms");
    }
}

/// Bytes on disk by the size of the change.
fn disk() {
    println!("\n{:>14} {:>16} {:>16}", "changed files", "bytes a turn", "of git's own");
    for files in [1, 10, 1_000] {
        let bench = Bench::with_files(20_000);
        // The first turn keeps what all others share.
        bench.turn(1, "first");
        let before = bench.size();
        bench.turn(files, "turn");
        let turn = bench.size() - before;
        drop(bench);
        let bench = Bench::with_files(20_000);
        let before = bench.size();
        bench.sh(&format!("{}; git commit -qam turn", edit(files, "turn")));
        println!("{files:>14} {turn:>16} {:>16}", bench.size() - before);
    }
    let bench = Bench::with_files(20_000);
    let before = bench.size();
    for turn in 0..1_000 {
        bench.turn(3, &turn.to_string());
    }
    let loose = bench.size() - before;
    bench.sh("git gc -q");
    println!("1000 turns of 3 files: {loose} bytes, after git gc {}", bench.size().saturating_sub(before));
}

fn main() {
    let tables: [(&str, fn()); 9] = [
        ("files", files),
        ("turns", turns),
        ("calls", calls),
        ("steps", steps),
        ("history", history),
        ("ignored", ignored),
        ("switches", switches),
        ("sparse", sparse),
        ("disk", disk),
    ];
    let asked: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, table) in tables {
        if asked.is_empty() || asked.iter().any(|asked| asked == name) {
            table();
        }
    }
}
