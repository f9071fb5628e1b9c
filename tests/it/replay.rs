//! A history replayed: each commit is a turn, the user edits files between the turns, and undo, redo
//! and `--only` are tried all along. Whatever comes of them, nothing is lost.
//!
//! The history is a made-up one of a few commits. `OXUNDO_REPLAY=/a/repository/.git` takes the newest
//! of a real one, `OXUNDO_CASES` of them, and prints what became of each kind of undo.

use crate::sandbox::{Mode, Sandbox};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// A generator of numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).expect("a number of 48 bits") % sides
    }
}

/// A repository to take commits from, its newest commits with the oldest first.
struct Source {
    sandbox: Sandbox,
    git_dir: PathBuf,
    commits: Vec<String>,
}

impl Source {
    /// One that is there.
    fn real(git_dir: PathBuf, count: usize) -> Self {
        let mut source = Self { sandbox: Sandbox::unborn(), git_dir, commits: Vec::new() };
        let listed = source.git(&["log", "--first-parent", "--reverse", "--format=%H"]);
        let all: Vec<_> = String::from_utf8(listed).expect("ids are text").lines().map(str::to_owned).collect();
        source.commits = all[all.len().saturating_sub(count + 1)..].to_vec();
        source
    }

    /// One of random commits.
    fn made_up(dice: &mut Dice, count: usize) -> Self {
        let sandbox = Sandbox::new();
        for commit in 0..=count {
            let file = format!("src/file{}.txt", dice.roll(4));
            let line = dice.roll(30) + 1;
            let script = match dice.roll(8) {
                _ if commit == 0 => {
                    "mkdir src; for f in 0 1 2 3; do for l in $(seq 30); do echo $f line $l; done >src/file$f.txt; done"
                        .to_owned()
                }
                0 => format!("rm -f {file}"),
                1 => format!("mkdir -p src; seq 30 >{file}"),
                2 => format!("mkdir -p src; git mv -f {file} {file}.moved || echo new >{file}"),
                3 => format!("mkdir -p src; chmod 755 {file} || seq 30 >{file}"),
                4 => format!("mkdir -p src; sed -i '{line}d' {file} || seq 30 >{file}"),
                _ => format!("mkdir -p src; sed -i '{line}s/$/ {commit}/' {file} || seq 30 >{file}"),
            };
            sandbox
                .sh(&format!("({script}) 2>/dev/null; git add -A; git commit -q --allow-empty -m 'commit {commit}'"));
        }
        Self::real(sandbox.root().join(".git"), count).keeping(sandbox)
    }

    /// The directory lives as long as its sandbox.
    fn keeping(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }

    fn git(&self, args: &[&str]) -> Vec<u8> {
        let directory = format!("--git-dir={}", self.git_dir.display());
        let output = self.sandbox.try_git([&[directory.as_str()], args].concat());
        output.success();
        output.stdout
    }

    fn file(&self, commit: &str, path: &str) -> Vec<u8> {
        self.git(&["cat-file", "blob", &format!("{commit}:{path}")])
    }

    /// The files that differ between two commits: status and path. Links and modules are left out.
    fn changes(&self, from: &str, to: &str) -> Vec<(char, String)> {
        let listed = self.git(&["diff-tree", "-r", "-z", "--no-renames", from, to]);
        let parts: Vec<_> = listed.split(|byte| *byte == 0).collect();
        let pairs = parts.chunks_exact(2);
        pairs
            .filter_map(|pair| {
                let about = String::from_utf8_lossy(pair[0]).into_owned();
                let is_file = |mode: &str| mode.starts_with("100") || mode.starts_with("000");
                let files = is_file(about.get(1..)?) && is_file(about.get(8..)?);
                files.then(|| (about.chars().last().unwrap_or('M'), String::from_utf8_lossy(pair[1]).into_owned()))
            })
            .collect()
    }
}

/// How often each kind of undo was clean, and how often refused.
#[derive(Default)]
struct Count(BTreeMap<String, usize>);

impl Count {
    fn add(&mut self, what: &str, how: &str) {
        *self.0.entry(format!("{what}: {how}")).or_default() += 1;
    }
}

struct Replay<'a> {
    repo: Sandbox,
    source: &'a Source,
    dice: Dice,
    /// What the user wrote, each a line like no other.
    marks: Vec<String>,
    count: Count,
}

impl Replay<'_> {
    fn files(&self) -> Vec<String> {
        let listed = self.repo.git(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
        let there = |path: &&str| self.repo.path(path).metadata().is_ok_and(|about| about.is_file());
        let mut files: Vec<_> =
            listed.split('\0').filter(|path| !path.is_empty()).filter(there).map(str::to_owned).collect();
        files.sort();
        files.dedup();
        files
    }

    /// All that is in the files, in one string.
    fn everything_written(&self) -> Vec<u8> {
        self.files().iter().flat_map(|path| [self.repo.read(path), b"\n".to_vec()].concat()).collect()
    }

    /// The user writes a line somewhere, or a new file.
    fn edit(&mut self) {
        let mark = format!("mark {} of the user", self.marks.len());
        let files: Vec<_> = self.files();
        let path = files[self.dice.roll(files.len())].clone();
        let text = self.repo.read(&path);
        match String::from_utf8(text) {
            Ok(text) if !text.contains('\0') && self.dice.roll(6) > 0 => {
                let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
                let at = self.dice.roll(lines.len() + 1);
                let line = format!("{mark}\n");
                lines.insert(at, &line);
                // The line before may have no newline at its end.
                let text = if at > 0 && !lines[at - 1].ends_with('\n') {
                    format!("{}\n{line}", lines[..at].concat())
                } else {
                    lines.concat()
                };
                self.repo.write(&path, text);
            }
            _ => drop(self.repo.write(format!("mine/{}.txt", self.marks.len()), format!("{mark}\n"))),
        }
        if self.dice.roll(4) == 0 {
            self.repo.sh("git add -A");
        }
        self.marks.push(mark);
    }

    /// An agent that does to the worktree what a commit did, beside what the user wrote there.
    fn turn(&mut self, from: &str, to: &str) {
        let stage = self.repo.beside("stage");
        self.repo.sh("rm -rf ../stage ../gone; mkdir ../stage; : >../gone");
        let mut gone = String::new();
        for (status, path) in self.source.changes(from, to) {
            if status == 'D' {
                let _ = write!(gone, "{path}\0");
                continue;
            }
            let theirs = self.source.file(to, &path);
            let now = std::fs::read(self.repo.path(&path)).unwrap_or_default();
            let base = if status == 'A' { Vec::new() } else { self.source.file(from, &path) };
            stage.write(&path, &theirs);
            if now != base && !now.is_empty() {
                stage.write("../ours", &now).write("../base", &base).write("../theirs", &theirs);
                let merged = self.repo.try_git(["merge-file", "-p", "--theirs", "../ours", "../base", "../theirs"]);
                if merged.code == 0 {
                    stage.write(&path, &merged.stdout);
                }
            }
        }
        self.repo.write("../gone", gone);
        let mode = if self.dice.roll(5) == 0 { Mode::Ghost } else { Mode::Commit };
        self.repo.turn(mode, "xargs -0 rm -f <../gone; cp -a ../stage/. .");
    }

    /// Tries one way of undo; then all is as it was, byte for byte.
    fn try_undo(&mut self, what: &str, args: &[&str]) {
        let before = self.repo.state();
        let written = self.everything_written();
        let there = |mark: &String, written: &[u8]| String::from_utf8_lossy(written).contains(&format!("{mark}\n"));
        let output = self.repo.oxundo(args);
        match output.code {
            0 => {
                let now = self.everything_written();
                let lost: Vec<_> =
                    self.marks.iter().filter(|mark| there(mark, &written) && !there(mark, &now)).collect();
                assert!(lost.is_empty(), "{args:?} keeps what the user wrote: {lost:?}\n{output:?}");
                let kept = if output.out().contains("Kept your edits") { "clean, edits kept" } else { "clean" };
                self.count.add(what, kept);
                let steps = args.windows(2).find(|pair| pair[0] == "--steps").map_or("1", |pair| pair[1]);
                let redo = self.repo.oxundo(if args.contains(&"--only") {
                    vec!["redo"]
                } else {
                    vec!["redo", "--steps", steps]
                });
                redo.success();
                self.repo.state().assert_is(&before, "redo brings back the very state");
            }
            3 => {
                self.repo.state().assert_is(&before, "a refusal changes nothing");
                let why = output.err();
                let code = if why.contains("would overwrite") { "refused, edits overlap" } else { "refused" };
                self.count.add(what, code);
            }
            // A turn that another took out already.
            4 => self.count.add(what, "nothing to do"),
            _ => panic!("{args:?} is clean or refused\n{output:?}"),
        }
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "a measurement is to be read")]
fn a_history_with_edits_of_the_users_between_its_turns_loses_nothing() {
    let count = std::env::var("OXUNDO_CASES").ok().and_then(|cases| cases.parse().ok());
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let source = match std::env::var_os("OXUNDO_REPLAY") {
        Some(git_dir) => Source::real(git_dir.into(), count.unwrap_or(300)),
        None => Source::made_up(&mut dice, count.unwrap_or(14)),
    };
    let repo = Sandbox::new();
    let mut replay = Replay { repo, source: &source, dice, marks: Vec::new(), count: Count::default() };
    replay.repo.sh("git rm -q README.txt");
    for (_, path) in source.changes(&replay.repo.git(["hash-object", "-t", "tree", "/dev/null"]), &source.commits[0]) {
        replay.repo.write(&path, source.file(&source.commits[0], &path));
    }
    replay.repo.sh("git add -A; git commit -q --allow-empty -m start");
    let mut turns = 0;
    for pair in source.commits.windows(2) {
        while replay.dice.roll(2) == 0 {
            replay.edit();
        }
        replay.turn(&pair[0], &pair[1]);
        let newest = replay.repo.log().first().and_then(|turn| turn["turn"].as_u64()).unwrap_or_default();
        if newest == turns {
            replay.count.add("turn", "changed nothing");
            continue;
        }
        turns = newest;
        replay.count.add("turn", "recorded");
        while replay.dice.roll(2) == 0 {
            replay.edit();
        }
        replay.try_undo("undo", &["undo"]);
        let depth = replay.repo.log().len();
        if depth > 1 {
            let steps = (2 + replay.dice.roll(5)).min(depth).to_string();
            replay.try_undo("undo --steps", &["undo", "--steps", &steps]);
            let only = format!("@~{}", 1 + replay.dice.roll(depth.min(10) - 1));
            replay.try_undo("undo --only", &["undo", "--only", &only]);
        }
    }
    replay.repo.assert_sound();
    let told: String = replay.count.0.iter().fold(String::new(), |mut told, (what, count)| {
        let _ = writeln!(told, "{count:5}  {what}");
        told
    });
    assert!(turns > 5, "there are turns:\n{told}");
    if std::env::var_os("OXUNDO_REPLAY").is_some() {
        eprintln!("{told}{:5}  edits of the user", replay.marks.len());
    }
}
