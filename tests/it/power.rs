//! The power is cut at any system call that changes something or flushes: what was on the disk when a command began is there
//! after the next command, in the worktree, in an object or in a file that is named, and git works.
//!
//! `cargo test` cuts at few points of each operation; `OXUNDO_THOROUGH=1` at every one, in every way. `OXUNDO_CASE` and
//! `OXUNDO_POINT` as in `kill_points.rs`; with `OXUNDO_CASES=n` so many ways at each point.

use crate::crash::locks;
use crate::disk::{Disk, Loss};
use crate::form::part_of;
use crate::kill_points::{has_journal, in_parallel, killed_at, points_of};
use crate::sandbox::{Mode, Sandbox, State, announce};
use crate::tracer::{Kill, LAUNCH, Point, Victim, trace_flushes};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// What the user has when the first turn comes, and in an index that is not HEAD's.
const USER: &str = "
git config oxundo.maxFileSize 2k
for f in edit gone swap staged both; do echo $f >$f.txt; done
echo run >mode.sh; chmod 755 mode.sh; ln -s edit.txt link; mkdir tree; echo 1 >tree/one; echo 2 >tree/two
echo key >private; chmod 600 private; seq 300 >long.txt
git add -A; git commit -qm files
echo edited >>edit.txt; echo staged >>staged.txt; git add staged.txt; echo staged >>both.txt; git add both.txt
echo unstaged >>both.txt; rm tree/two; echo intent >intent.txt; git add -N intent.txt
echo untracked >untracked.txt; chmod 600 untracked.txt; mkdir -p void/void";

/// What an agent does to it without git: git does not flush what it writes.
const TURN: &str = "
echo more >>edit.txt; echo more >>untracked.txt; mkdir -p new/deep; echo new >new/deep/file; rm gone.txt
rm swap.txt; mkdir swap.txt; echo in >swap.txt/in; rm link; echo plain >link; rm -r void; mkdir hollow
head -c 5000 /dev/zero >big.bin; echo more >>both.txt; chmod 644 private; seq 200 >long.txt; chmod 600 mode.sh; echo k >.env";

/// A turn that closes directories, to others than the superuser.
const CLOSES: &str = "
echo more >>edit.txt; echo three >tree/three; chmod 0 tree; rm -r void; mkdir -p shut/deep; echo s >shut/deep/file; echo p >shut/private
chmod 600 shut/private; chmod 500 shut/deep; chmod 0 shut";

/// A turn that leaves the branch and puts something on the stash.
const SECOND: &str = "
echo own >>swap.txt/in; git add -A swap.txt; git commit -qm own; git checkout -q -b topic; echo second >>staged.txt; echo stashed >>edit.txt; git stash -q
echo s >second.txt; rm -r swap.txt; echo file >swap.txt";

/// The file that the user writes again when undo or redo are done.
const LATER: &str = "edit.txt";

/// A commit to pick that conflicts.
const PICK: &str = "
echo base >a.txt; git add -A; git commit -qm files; git checkout -q -b side; echo side >a.txt; echo new >side.txt; git add -A
git commit -qm side; git checkout -q main; echo main >a.txt; git commit -qam main";

struct Operation {
    name: &'static str,
    repo: Sandbox,
    args: Vec<&'static str>,
    /// The files at its two ends; a turn that an agent is in the middle of has none.
    ends: Option<[State; 2]>,
    /// What is on the disk when it begins.
    bytes: BTreeSet<String>,
}

/// The files, and what git is in the middle of.
fn on_disk(repo: &Sandbox) -> State {
    repo.state().only(|fact| fact.starts_with("on disk ") || fact.starts_with("git dir "))
}

/// After a turn that gave up the user's merge.
fn given_up(repo: Sandbox) -> Sandbox {
    repo.sh("echo base >a.txt; git add -A; git commit -qm files; git checkout -q -b side; echo side >a.txt; git commit -qam side
        git checkout -q main; echo main >a.txt; git commit -qam main; git merge -q side >/dev/null || :");
    repo.turn(Mode::Ghost, "git merge --abort; echo agent >agents.txt");
    repo
}

impl Operation {
    fn new(name: &'static str, repo: Sandbox, args: &[&'static str]) -> Self {
        let goal = repo.copy();
        let before = on_disk(&goal);
        goal.oxundo(args).success();
        Self { name, ends: Some([before, on_disk(&goal)]), bytes: bytes_of(&repo), repo, args: args.to_vec() }
    }

    fn turn(name: &'static str, repo: Sandbox, args: &[&'static str]) -> Self {
        Self { name, bytes: bytes_of(&repo), repo, args: args.to_vec(), ends: None }
    }

    /// What was interrupted before is finished, in its turn.
    fn recovery(&self, name: &'static str, repo: Sandbox) -> Self {
        Self { name, repo, args: vec!["status"], ends: self.ends.clone(), bytes: self.bytes.clone() }
    }
}

fn operations() -> Vec<Operation> {
    let start = Sandbox::new();
    start.sh(USER);
    let done = start.copy();
    done.turn(Mode::Commit, TURN);
    let undone = done.copy();
    undone.undo();
    let ghost = start.copy();
    ghost.turn(Mode::Ghost, TURN);
    let ghost_undone = ghost.copy();
    ghost_undone.undo();
    let three = done.copy();
    three.turn(Mode::Commit, "echo second >second.txt; echo two >>mode.sh");
    three.turn(Mode::Commit, "echo third >third.txt; rm -f private");
    let edited = done.copy();
    edited.sh("echo mine >edit.txt; echo mine >>untracked.txt; echo mine >new/deep/file");
    let two = done.copy();
    two.turn(Mode::Commit, SECOND);
    two.git(["pack-refs", "--all"]);
    let tables = Sandbox::has_tables().then(|| {
        let tables = Sandbox::with_tables(&[]);
        tables.sh(USER);
        tables.turn(Mode::Commit, TURN);
        tables.turn(Mode::Commit, SECOND);
        let two = Operation::new("undo of two, refs in tables", tables, &["undo", "--steps", "2"]);
        let merge = given_up(Sandbox::with_tables(&[]));
        let picks = Sandbox::with_tables(&[]);
        picks.sh(PICK);
        let picking = picks.copy();
        picking.turn(Mode::Ghost, "git cherry-pick side >/dev/null 2>&1 || :; echo agent >agents.txt");
        let undone = picking.copy();
        undone.undo();
        [
            two,
            Operation::new("undo of a merge that was given up, refs in tables", merge, &["undo"]),
            Operation::new("undo of a pick half way, refs in tables", picking, &["undo"]),
            Operation::new("redo of a pick half way, refs in tables", undone, &["redo"]),
        ]
    });
    let open = start.copy();
    open.oxundo(["turn", "begin", "--agent", "sh"]).success();
    open.sh(TURN);
    let linked = start.linked("linked");
    linked.sh("echo mine >>edit.txt; echo mine >untracked.txt");
    let kept = three.copy();
    kept.oxundo(["undo"]).success();
    kept.turn(Mode::Commit, "echo fourth >fourth.txt");
    let undo = Operation::new("undo", done.copy(), &["undo"]);
    let killed = killed_at(&undo.repo, &undo.args, ["renameat", ".oxundo-tmp"]);
    let committed = killed_at(&undo.repo, &undo.args, ["rename", "refs/heads/main"]);
    let torn = undo.cut_at("rename", "refs/heads/main", Loss::Content);
    let merge = given_up(Sandbox::new());
    let closed = Sandbox::new().unprivileged();
    closed.sh(USER);
    closed.turn(Mode::Commit, CLOSES);
    let opened = closed.copy();
    opened.undo();
    let merging = merge.copy();
    merging.undo();
    let all = vec![
        Operation::new("undo of a merge that was given up", merge, &["undo"]),
        Operation::new("redo of a merge that was given up", merging, &["redo"]),
        Operation::turn("run", start.copy(), &["run", "--", "sh", "-ec", TURN]),
        Operation::turn("run, ghost", start.copy(), &["run", "--ghost", "--", "sh", "-ec", TURN]),
        Operation::turn("run of nothing", start.copy(), &["run", "--", "true"]),
        Operation::turn(
            "run in a linked worktree",
            linked,
            &["run", "--", "sh", "-ec", "echo a >>edit.txt; rm untracked.txt"],
        ),
        Operation::turn("turn begin", start.copy(), &["turn", "begin", "--agent", "sh"]),
        Operation::turn("turn end", open, &["turn", "end"]),
        undo.recovery("recovery of a killed undo, in the files", killed),
        undo.recovery("recovery of a killed undo, behind the branch", committed),
        undo.recovery("recovery of an undo after a power cut", torn),
        undo,
        Operation::new("redo", undone, &["redo"]),
        Operation::new("undo that opens what is closed", closed, &["undo"]),
        Operation::new("redo that closes directories", opened, &["redo"]),
        Operation::new("undo, ghost", ghost, &["undo"]),
        Operation::new("redo, ghost", ghost_undone, &["redo"]),
        Operation::new("undo of two, over a stash and a switch", two, &["undo", "--steps", "2"]),
        Operation::new("undo that overwrites edits", edited, &["undo", "--edits=overwrite"]),
        Operation::new("undo --only", three.copy(), &["undo", "--only", "2"]),
        Operation::new("undo --revert", three.copy(), &["undo", "--revert"]),
        Operation::new("undo -- PATH", three.copy(), &["undo", "--", "third.txt", "private"]),
        Operation::new("restore", done.copy(), &["restore", "1:before", "--", "edit.txt", "gone.txt", "private"]),
        Operation::new("checkpoint", done.copy(), &["checkpoint", "here"]),
        Operation::new("squash", three, &["squash", "2..3", "-m", "one"]),
        Operation::new("branch", done, &["branch", "other", "1"]),
        Operation::new("gc", kept, &["gc", "--keep", "0d"]),
    ];
    all.into_iter().chain(tables.into_iter().flatten()).collect()
}

/// The contents that must not be lost: of the files that are captured, and what is staged.
fn bytes_of(repo: &Sandbox) -> BTreeSet<String> {
    let staged = repo.git(["ls-files", "-s"]);
    let staged = staged.lines().filter_map(|line| line.split(' ').nth(1).map(str::to_owned));
    let stashed = repo.git(["stash", "list", "--format=%H"]);
    staged.chain(stashed.lines().map(str::to_owned)).chain(files_of(repo, repo.root())).collect()
}

/// The ids of the files below a directory, without git's.
fn files_of(repo: &Sandbox, directory: &Path) -> BTreeSet<String> {
    let (mut paths, mut left) = (String::new(), vec![directory.to_owned()]);
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().expect("look at a file"));
            if kind.is_dir() && entry.file_name() != ".git" {
                left.push(path);
            } else if kind.is_file() && entry.file_name() != ".git" {
                let _ = writeln!(paths, "{}", path.display());
            }
        }
    }
    // Some are closed to everybody else.
    let args = ["-c", "safe.directory=*", "hash-object", "--no-filters", "--stdin-paths"];
    let ids = repo.as_root().git_fed(&args, paths.as_bytes());
    ids.lines().map(str::to_owned).collect()
}

/// The contents of these that are nowhere.
fn lost(repo: &Sandbox, bytes: &BTreeSet<String>) -> Vec<String> {
    let mut there = files_of(repo, repo.root());
    let kept = repo.git(["rev-parse", "--path-format=absolute", "--git-path", "oxundo/kept"]);
    there.extend(files_of(repo, Path::new(kept.trim())));
    let aside = repo.git(["rev-parse", "--path-format=absolute", "--git-path", "oxundo/aside"]);
    there.extend(files_of(repo, Path::new(aside.trim())));
    let asked: String = bytes.iter().filter(|id| !there.contains(*id)).map(|id| format!("{id}\n")).collect();
    let found = repo.git_fed(&["cat-file", "--batch-check"], asked.as_bytes());
    found.lines().filter(|line| line.ends_with("missing")).map(str::to_owned).collect()
}

/// What oxundo knows: the turns, and the state of the timeline.
fn recorded(repo: &Sandbox) -> String {
    let notes = repo.try_git(["ls-tree", "-r", "refs/notes/oxundo"]).out();
    repo.oxundo(["log", "--all", "--json"]).out() + &repo.git(["for-each-ref", "refs/oxundo"]) + &notes
}

/// One way to lose power, and to go on.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// The call before which the power is cut; none is when the command is done.
    number: Option<usize>,
    loss: Loss,
    next: usize,
    /// The flush that is not made.
    without: Option<usize>,
}

/// What there was of an operation when the power was cut.
struct Cut {
    repo: Sandbox,
    /// The call that it was about to make.
    at: String,
    said: String,
    /// The log, if it was done.
    log: Option<String>,
}

impl Case {
    fn at_the_end(loss: Loss) -> Self {
        Self { number: None, loss, next: 0, without: None }
    }
}

impl Operation {
    /// The repository after a power cut at the first call that has these words.
    fn cut_at(&self, call: &str, path: &str, loss: Loss) -> Sandbox {
        let points = points_of(&self.repo, &self.args).expect("it can be traced: it was before");
        let point = points.iter().find(|point| point.text.contains(call) && point.text.contains(path));
        let number = Some(point.expect("it makes the call").number + 1);
        self.cut(Case { number, loss, next: 0, without: None }).expect("it comes so far").repo
    }

    /// Runs it up to a point, where the power is cut; none if it makes no call of this number.
    fn cut(&self, case: Case) -> Option<Cut> {
        let repo = self.repo.copy();
        let mut disk = Disk::below(&repo.base());
        if let Some(number) = case.without {
            disk = disk.without_flush(number);
        }
        let kill = case.number.map(|number| Kill { number, done: false, victim: Victim::All });
        let flushed = |call: &str| disk.flush(call);
        let mut command = repo.launched_command(LAUNCH, &self.args);
        let trace = trace_flushes(&mut command, kill, &flushed).expect("it was traced before");
        if !trace.killed && kill.is_some() {
            return None;
        }
        let log = kill.is_none().then(|| recorded(&repo));
        if kill.is_none() && self.is_edited_later() {
            // What was there before is the user's by now, and an editor that flushes has put it there.
            let path = repo.write(LATER, self.repo.read(LATER)).path(LATER);
            disk.flush_now(&path);
            disk.flush_now(repo.root());
        }
        disk.cut(case.loss);
        let repo = repo.owned();
        let at = kill.and_then(|_| trace.points.last()).map_or("its end".to_owned(), |point| point.text.clone());
        Some(Cut { repo, at, said: trace.stderr, log })
    }

    fn is_edited_later(&self) -> bool {
        ["undo", "redo"].contains(&self.name)
    }

    /// Cuts the power, goes on, and judges; whether the point was reached.
    fn check(&self, case: Case) -> bool {
        let Some(cut) = self.cut(case) else { return false };
        if let Err(what) = self.judge(&cut, case) {
            panic!("cut at {}, it had said: {}\n{what}", cut.at, cut.said);
        }
        true
    }

    fn judge(&self, cut: &Cut, case: Case) -> Result<(), String> {
        let repo = &cut.repo;
        let args: &[&str] = match case.next % 5 {
            0 => &["status"],
            1 => &["log"],
            2 => &["undo", "--dry-run"],
            3 => &["turn", "end"],
            _ => &["run", "--ghost", "--", "true"],
        };
        let next = repo.oxundo(args);
        let may_be_nothing = case.next % 5 == 2 && [3, 4].contains(&next.code) || case.next % 5 == 3;
        let check = |is: bool, what: &str| if is { Ok(()) } else { Err(format!("{what}\n{next:?}")) };
        check(next.code == 0 || may_be_nothing, "the next command works")?;
        for args in [
            &["fsck", "--full", "--strict", "--no-dangling", "--no-progress"][..],
            &["status"],
            &["log", "--all", "--oneline"],
            &["fetch", "-q", ".", "HEAD"],
            &["gc", "-q", "--prune=now"],
        ] {
            let ran = repo.try_git(args);
            check(ran.code == 0, &format!("git works: {ran:?}"))?;
        }
        let lost = lost(repo, &self.bytes);
        check(lost.is_empty(), &format!("every byte is somewhere: {lost:?}"))?;
        if let Some(log) = cut.log.as_ref().filter(|_| !self.args.starts_with(&["turn", "begin"])) {
            let now = recorded(repo);
            check(now == *log, &format!("what was recorded is recorded\n{log}\n{now}"))?;
        }
        if let Some([before, after]) = &self.ends {
            let now = on_disk(repo);
            let after = match before.fact(&format!("on disk {LATER}")) {
                Some(fact) if cut.log.is_some() && self.is_edited_later() => {
                    &after.clone().with(&format!("on disk {LATER}"), fact)
                }
                _ => after,
            };
            // What was done is done; a recovery may have gone back.
            let ends = [if cut.log.is_some() && self.args != ["status"] { after } else { before }, after];
            let differences = ends.map(|end| now.difference(end));
            let is_one = differences.iter().any(String::is_empty);
            check(
                is_one,
                &format!("the files are those of one end\n== before\n{}\n== after\n{}", differences[0], differences[1]),
            )?;
        }
        check(!has_journal(repo), "the journal is gone")?;
        let left = locks(&repo.base().join("repo/.git"));
        check(left.is_empty(), &format!("no lock is left: {left:?}"))?;
        let second = repo.oxundo(["status"]);
        let is_settled = !second.err().contains("interrupted operation") && !second.err().contains("mended");
        check(second.code == 0 && is_settled, &format!("all was settled at once\n{second:?}"))?;
        let doctor = repo.oxundo(["doctor"]);
        check(!doctor.out().contains("error:"), &format!("nothing is wrong\n{doctor:?}"))
    }
}

/// Points of one operation that `cargo test` cuts at, beside those right before and behind a flush.
const SAMPLE: usize = 1;

fn chosen(points: &[Point]) -> BTreeSet<usize> {
    let flush = points.iter().enumerate().filter(|(_, point)| is_flush(point)).map(|(at, _)| at);
    let (first, last) = (flush.clone().next(), flush.clone().next_back());
    let sample = (0..SAMPLE).map(|nth| (2 * nth + 1) * points.len() / (2 * SAMPLE));
    first.into_iter().chain(last.map(|last| last + 1)).chain(sample).collect()
}

#[test]
fn whenever_the_power_is_cut_nothing_is_lost_and_git_works() {
    let thorough = crate::form::is_thorough();
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<usize>().ok());
    let wanted = std::env::var("OXUNDO_CASE").unwrap_or_default();
    if let Err(error) = points_of(&Sandbox::new(), &["status"]) {
        let skipped = format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})");
        assert!(!thorough, "{skipped}");
        return announce(&skipped);
    }
    let (mut failures, mut bad, mut all) = (String::new(), 0, 0);
    for operation in part_of(operations(), &wanted, |operation| operation.name) {
        let points = points_of(&operation.repo, &operation.args).expect("it was traced before");
        let at: Vec<usize> = match (number("OXUNDO_POINT"), thorough) {
            (Some(point), _) => vec![point],
            (None, true) => (0..points.len()).collect(),
            (None, false) => chosen(&points).into_iter().collect(),
        };
        let mut cases = Vec::new();
        for at in at {
            let Some(point) = points.get(at).filter(|point| !point.by_agent || thorough) else { continue };
            let seed = u64::try_from(at).expect("a number");
            let ways = [Loss::All, Loss::Content, Loss::Ordered, Loss::Any(2 * seed), Loss::Any(2 * seed + 1)];
            // In the short form they take turns.
            let most = if thorough { number("OXUNDO_CASES").unwrap_or(ways.len()) } else { 1 };
            let ways = ways.into_iter().enumerate().cycle().skip(at).take(most);
            cases.extend(ways.map(|(way, loss)| Case {
                number: Some(point.number),
                loss,
                next: at + way,
                without: None,
            }));
        }
        let ends = [Loss::All, Loss::Content, Loss::Ordered, Loss::Any(7), Loss::Any(8)].map(Case::at_the_end);
        cases.extend(ends.into_iter().take(if thorough { 5 } else { 1 }));
        let (begun, cuts) = (Instant::now(), AtomicUsize::new(0));
        let failed = in_parallel(&cases, |case| {
            cuts.fetch_add(usize::from(operation.check(*case)), Ordering::Relaxed);
        });
        if thorough || !wanted.is_empty() {
            let (points, cuts, took) = (points.len(), cuts.into_inner(), begun.elapsed());
            announce(&format!("{}: {points} points, {cuts} cuts, {} bad, {took:.0?}", operation.name, failed.len()));
        }
        all += cases.len();
        bad += failed.len();
        for (at, text) in failed {
            let _ = writeln!(failures, "== {}: {:?}\n{text}\n", operation.name, cases[at]);
        }
    }
    assert!(failures.is_empty(), "{bad} of {all} power cuts lost something:\n{failures}");
}

#[test]
fn without_any_one_of_its_flushes_an_operation_would_lose_something() {
    if let Err(error) = points_of(&Sandbox::new(), &["status"]) {
        return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    let thorough = crate::form::is_thorough();
    let named = std::env::var("OXUNDO_CASE").ok();
    let wanted: &[&str] = match &named {
        Some(name) => &[name],
        None if thorough => &["undo", "checkpoint", "run", "turn begin"],
        None => &["checkpoint"],
    };
    // One that has nothing to do in one operation has in another.
    let (mut needless, mut needed) = (BTreeSet::new(), BTreeSet::new());
    for operation in operations().into_iter().filter(|operation| wanted.contains(&operation.name)) {
        let points = points_of(&operation.repo, &operation.args).expect("it was traced before");
        let flushes: Vec<usize> = (0..points.len()).filter(|at| is_flush(&points[*at])).collect();
        for (number, at) in flushes.iter().enumerate() {
            let behind =
                (at + 1..points.len()).step_by(if thorough { 5 } else { 25 }).map(|at| Some(points[at].number));
            let cases = [None]
                .into_iter()
                .chain(behind)
                .flat_map(|at| [Loss::All, Loss::Content].map(|loss| Case { number: at, ..Case::at_the_end(loss) }));
            let cases: Vec<Case> = cases.map(|case| Case { without: Some(number), ..case }).collect();
            // One that loses something is enough.
            let loses = |cases: &[Case]| !in_parallel(cases, |case| _ = operation.check(*case)).is_empty();
            let is_needed = cases.chunks(4).any(loses);
            let what = place_of(&points[*at].text);
            if is_needed { &mut needed } else { &mut needless }.insert(what);
        }
    }
    let never: Vec<&String> = needless.difference(&needed).collect();
    assert!(never.is_empty() && !needed.is_empty(), "nothing is lost without {never:?}");
}

/// What is flushed, wherever the repository is.
fn place_of(flush: &str) -> String {
    flush.split_once("/repo").map_or(flush, |(_, place)| place).to_owned()
}

fn is_flush(point: &Point) -> bool {
    ["fsync ", "fdatasync ", "syncfs "].iter().any(|call| point.text.contains(call))
}

/// How often a command waits for the disk: flushes between which nothing is done but to add to the log are one.
fn flush_points(repo: &Sandbox, args: &[&str]) -> usize {
    let points = points_of(repo, args).expect("it was traced before");
    let points: Vec<_> = points.into_iter().filter(|point| !is_for_the_log(point)).collect();
    let groups = points.chunk_by(|one, other| is_flush(one) && is_flush(other));
    groups.filter(|group| is_flush(&group[0])).count()
}

fn is_for_the_log(point: &Point) -> bool {
    ["openat ", "write "].iter().any(|call| point.text.contains(call)) && point.text.contains("/oxundo/log/")
}

#[test]
fn a_run_waits_for_the_disk_three_times_at_most_and_an_undo_twice() {
    let repo = Sandbox::new();
    if let Err(error) = points_of(&repo, &["status"]) {
        return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    repo.sh(USER);
    // What is made once for all is made.
    repo.turn(Mode::Commit, "echo once >once.txt");
    let most = |args: &[&str], most: usize| {
        let points = flush_points(&repo, args);
        assert!((1..=most).contains(&points), "{args:?} waits {points} times");
        repo.oxundo(args).success();
    };
    for mode in ["--ghost", "--"] {
        most(&["run", mode, "sh", "-ec", TURN], 3);
        most(&["undo"], 2);
        most(&["redo"], 2);
        repo.undo();
    }
    repo.git(["config", "oxundo.fsync", "false"]);
    assert_eq!(flush_points(&repo, &["redo"]), 0, "nothing waits where nothing is to");
}

#[test]
fn the_index_is_flushed_for_who_has_git_flush_it() {
    let repo = Sandbox::new();
    if let Err(error) = points_of(&repo, &["status"]) {
        return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    repo.sh("echo 1 >f; git add f; git commit -qm f");
    repo.turn(Mode::Commit, "echo 2 >f");
    repo.git(["config", "oxundo.fsync", "false"]);
    let flushes = || {
        let points = points_of(&repo, &["undo"]).expect("it was traced before");
        points.iter().filter(|point| is_flush(point) && point.text.contains(".git/index")).count()
    };
    assert_eq!(flushes(), 0, "nothing waits where nothing is to");
    repo.git(["config", "core.fsync", "all"]);
    assert_ne!(flushes(), 0, "git would");
    repo.git(["config", "--unset", "oxundo.fsync"]);
    let points = flush_points(&repo, &["undo"]);
    assert!((1..=2).contains(&points), "it is, with the files, and not by itself: {points}");
}
