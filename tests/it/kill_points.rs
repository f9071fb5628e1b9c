//! Killed at any system call that changes something, `run`, `undo` and `redo` leave a state that
//! the next command, whichever it is, makes whole: the one before or the one after.
//!
//! `cargo test` kills at a few points spread over all of them; `OXUNDO_THOROUGH=1` at every one, in
//! every way. `OXUNDO_CASE=words` takes only the operations whose name has these words, and
//! `OXUNDO_POINT=n` only that point.

use crate::crash::locks;
use crate::form::{part_of, sample};
use crate::sandbox::{Mode, Output, Sandbox, State, announce};
use crate::tracer::{Kill, LAUNCH, Point, Trace, Victim, trace};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// What the user has committed, staged, changed and left untracked when the agent comes.
const USER: &str = "
git config oxundo.maxFileSize 2k
for f in edit gone swap staged both cold hidden; do echo $f >$f.txt; done
echo run >mode.sh; chmod 755 mode.sh; ln -s edit.txt link; mkdir tree; echo 1 >tree/one; echo 2 >tree/two
echo key >private; chmod 600 private; echo '*.ignored' >.gitignore; echo never >x.ignored
git add -A; git commit -qm files
echo edited >>edit.txt; echo staged >>staged.txt; git add staged.txt; echo staged >>both.txt; git add both.txt
echo unstaged >>both.txt; rm tree/two; echo intent >intent.txt; git add -N intent.txt; git rm -q --cached cold.txt
git update-index --skip-worktree hidden.txt
echo untracked >untracked.txt; chmod 600 untracked.txt; mkdir -p void/void; ln -s nowhere dangling";

/// A turn with everything that is to be put back in one way or another.
const FIRST: &str = "
echo more >>edit.txt; echo more >>untracked.txt; mkdir -p new/deep; echo new >new/deep/file; rm gone.txt
chmod 600 mode.sh; git commit -qam own; rm swap.txt; mkdir swap.txt; echo in >swap.txt/in
rm link; echo plain >link; rm -r void; mkdir hollow; head -c 5000 /dev/zero >big.bin
echo more >>both.txt; git add both.txt; git branch made; git symbolic-ref refs/heads/alias refs/heads/made; echo later >>edit.txt; chmod 644 private; echo k >.env";

/// A turn that leaves the branch and puts something on the stash.
const SECOND: &str = "
git checkout -q -b topic; git update-ref --no-deref refs/heads/alias main; echo second >>staged.txt; echo stashed >>edit.txt; git stash -q; echo s >second.txt
rm -r swap.txt; echo file >swap.txt; git mv new/deep/file moved";

/// Something that is killed, with all that it takes to judge what is left of it.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    /// The repository in which it starts.
    pub(crate) repo: Sandbox,
    /// What is killed.
    pub(crate) args: Vec<&'static str>,
    pub(crate) judge: Judge,
}

pub(crate) enum Judge {
    /// It leads from one state to another, and back again.
    Travel(Box<Travel>),
    /// It makes a turn, from this state; the turn may have been begun, and killed, before.
    Turn(Box<State>),
}

pub(crate) struct Travel {
    pub(crate) ends: [State; 2],
    /// The arguments that lead to the second end, and to the first.
    there: Vec<&'static str>,
    back: Vec<&'static str>,
    /// Whether all of git's reflogs may be emptied in between: the stash hangs on one.
    prunable: bool,
    /// Whether it is recorded as a turn, in which the clock tells the time.
    is_turn: bool,
}

/// The state with all that oxundo keeps, but for what the clock puts into it.
pub(crate) fn whole(repo: &Sandbox) -> State {
    let mut state = repo.printed();
    for (name, id) in repo.refs() {
        let fact = match name.as_str() {
            "refs/oxundo/timeline" => repo.git(["log", "-1", "--no-notes", "--format=%T %P", &id]),
            "refs/notes/oxundo" => repo.git(["rev-parse", &format!("{id}^{{tree}}")]),
            _ => id,
        };
        state = state.with(&format!("any ref {name}"), fact);
    }
    state
}

/// What only oxundo's records say.
pub(crate) fn without_records(state: &State) -> State {
    state.clone().without("any ref refs/oxundo/timeline")
}

fn user() -> Sandbox {
    let repo = Sandbox::new();
    repo.sh(USER);
    repo
}

/// A turn that is watched: when there has been a step, or its oxundo is dead, the agent goes on.
const WATCHED: &str = "
step() { n=0; until git cat-file -e refs/oxundo/timeline:turns/00/00/01/steps/00/0$1/step.json 2>/dev/null || [ $n = 60 ]; do
    sleep 0.02; n=$((n + 1)); done; }
echo one >>edit.txt; echo new >new.txt; step 1; echo two >>edit.txt; rm gone.txt; chmod 600 mode.sh; step 2; echo more >>both.txt";

fn in_mode(mode: Mode, script: &'static str) -> Vec<&'static str> {
    let mut args = vec!["run"];
    args.extend((mode == Mode::Ghost).then_some("--ghost"));
    args.extend(["--", "sh", "-ec", script]);
    args
}

/// The repository after undo or redo was killed at this part of its way.
pub(crate) fn killed_at(repo: &Sandbox, args: &[&str], call: [&str; 2]) -> Sandbox {
    let is_wanted = |point: &&Point| call.iter().all(|part| point.text.contains(part));
    for _ in 0..20 {
        let points = points_of(repo, args).expect("it can be traced: it was before");
        let point = points.iter().find(is_wanted);
        let number = point.unwrap_or_else(|| panic!("{args:?} makes the call {call:?}: {points:#?}")).number;
        let copy = repo.copy();
        let trace = traced(&copy, args, Some(Kill { number, done: true, victim: Victim::All }));
        let trace = trace.expect("it was traced before");
        // The calls of what was started have not the same numbers each time.
        if trace.killed && trace.points.iter().any(|point| point.number == number && is_wanted(&point)) {
            return copy;
        }
    }
    panic!("{args:?} was killed at other calls than {call:?} each time");
}

fn traced(repo: &Sandbox, args: &[&str], kill: Option<Kill>) -> nix::Result<Trace> {
    trace(&mut repo.launched_command(LAUNCH, args), kill)
}

/// All the points of an operation, of which it has a few more or less from one time to the next.
pub(crate) fn points_of(repo: &Sandbox, args: &[&str]) -> nix::Result<Vec<Point>> {
    let copy = repo.copy();
    let trace = traced(&copy, args, None)?;
    assert_eq!(trace.code, Some(0), "{args:?} succeeds when nothing disturbs it\n{}", trace.stderr);
    Ok(trace.points)
}

fn travel(
    name: &'static str,
    repo: Sandbox,
    there: &[&'static str],
    back: &[&'static str],
    prunable: bool,
) -> Operation {
    let goal = repo.copy();
    goal.oxundo(there).success();
    let ends = [whole(&repo), whole(&goal)];
    let is_turn = !matches!(there, ["undo" | "redo"] | [_, "--steps", _]);
    let travel = Travel { ends, there: there.to_vec(), back: back.to_vec(), prunable, is_turn };
    Operation { name, repo, args: there.to_vec(), judge: Judge::Travel(Box::new(travel)) }
}

/// A turn of two sessions, a step of each: both change the file that the user edits meanwhile, far apart.
fn with_steps(mode: Mode) -> Sandbox {
    let repo = user();
    repo.sh("seq 30 >edit.txt");
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    let told = |session: &str, event: &str, script: &str| {
        let about = format!(
            r#"{{"hook_event_name": "{event}", "session_id": "{session}", "prompt": "p", "tool_name": "Bash", "tool_use_id": "of {session}"}}"#
        );
        fire(&repo, &about);
        repo.sh(script);
    };
    told("one", "UserPromptSubmit", "");
    told("other", "UserPromptSubmit", "");
    told(
        "one",
        "PreToolUse",
        "sed -i s/^3$/three/ edit.txt; echo one >one.txt; rm both.txt; echo more >>untracked.txt",
    );
    told("one", "PostToolUse", "");
    let script =
        "sed -i s/^28$/last/ edit.txt; rm swap.txt; mkdir swap.txt; echo in >swap.txt/in; rm link; echo plain >link;
        rm -r void tree; chmod 600 mode.sh; echo other >other.txt";
    told("other", "PreToolUse", script);
    for (session, event) in [("other", "PostToolUse"), ("one", "Stop"), ("other", "Stop")] {
        told(session, event, "");
    }
    repo
}

/// A run that is watched. It has calls more or less from one time to the next.
fn run_with_steps() -> Operation {
    let repo = user();
    let judge = Judge::Turn(Box::new(repo.printed()));
    Operation { name: "run --steps", repo, args: vec!["run", "--steps", "--", "sh", "-ec", WATCHED], judge }
}

/// What goes to a state, or takes a part of a turn out.
fn parts() -> Vec<Operation> {
    let mut all = Vec::new();
    let done = user();
    done.turn(Mode::Commit, FIRST);
    let staged = Sandbox::new();
    staged.sh("echo edit >edit.txt; echo gone >gone.txt; git add -A; git commit -qm files; echo own >>README.txt; git stash -q");
    staged.turn(Mode::Ghost, "echo more >>edit.txt; echo new >new.txt; rm gone.txt; git stash drop -q");
    staged.git(["add", "-A"]);
    all.push(travel("undo of what is staged of a ghost turn", staged.copy(), &["undo"], &["redo"], false));
    all.push(travel("undo --only of what is staged", staged, &["undo", "--only", "1"], &["redo"], false));
    let exact = ["restore", "--exact", "1:before"];
    all.push(travel("restore --exact", done, &exact, &["undo"], true));
    let done = with_steps(Mode::Commit);
    all.push(travel("undo --to a step", done, &["undo", "--to", "1.1"], &["redo"], true));
    let done = with_steps(Mode::Ghost);
    all.push(travel("undo --only a step", done.copy(), &["undo", "--only", "1.2"], &["redo"], true));
    all.push(travel("undo --session", done, &["undo", "--session", "other"], &["redo"], true));
    all
}

/// What began, gave up or ended something that git is in the middle of: the names of the undo of each, and of a recovery.
const IN_FILES: [&str; 4] = [
    "undo of a rebase half way",
    "undo of the end of a merge",
    "undo of a merge that was given up",
    "recovery of undo, in a merge",
];

/// The same with refs in tables.
const IN_TABLES: [&str; 4] = [
    "undo of a rebase half way, refs in tables",
    "undo of the end of a pick, refs in tables",
    "undo of a pick that was given up, refs in tables",
    "recovery of undo, in a pick, refs in tables",
];

fn operations_of_git(start: Sandbox, [rebase, end, given_up, recovery]: [&'static str; 4]) -> Vec<Operation> {
    let fork = "echo edit >edit.txt; echo base >a.txt; git add -A; git commit -qm files; git checkout -q -b side; echo side >a.txt
        echo new >side.txt; git add -A; git commit -qm side; git checkout -q main; echo main >a.txt; git commit -qam main";
    start.sh(fork);
    let in_tables = given_up == IN_TABLES[2];
    let left = start.copy();
    left.turn(Mode::Ghost, "git rebase -q side >/dev/null 2>&1 || :; echo more >>edit.txt");
    let undo = travel(rebase, left, &["undo"], &["redo"], true);
    // What is being merged is said by a file, what is being picked by a ref.
    let (begin, abort) = if in_tables { ("cherry-pick", "cherry-pick --abort") } else { ("merge -q", "merge --abort") };
    start.sh(&format!("git {begin} side >/dev/null 2>&1 || :"));
    let ended = start.copy();
    ended.turn(Mode::Ghost, "echo resolved >a.txt; git commit -qam merged; echo more >>edit.txt");
    let again = travel(end, ended, &["undo"], &["redo"], true);
    start.turn(Mode::Ghost, &format!("git {abort}; echo more >>edit.txt"));
    let given_up = travel(given_up, start, &["undo"], &["redo"], true);
    let call = if in_tables { ["oxundo: rename", "tables.list"] } else { ["rename", "MERGE_HEAD"] };
    let recovery = given_up.recovery(recovery, call);
    vec![undo, again, recovery, given_up]
}

impl Operation {
    /// The recovery of this operation, killed in its turn.
    fn recovery(&self, name: &'static str, call: [&str; 2]) -> Self {
        let Judge::Travel(of) = &self.judge else { panic!("only what travels is recovered like this") };
        let repo = killed_at(&self.repo, &self.args, call);
        let Travel { ends, there, back, prunable, is_turn } = &**of;
        let (ends, there, back) = (ends.clone(), there.clone(), back.clone());
        let travel = Travel { ends, there, back, prunable: *prunable, is_turn: *is_turn };
        Operation { name, repo, args: vec!["status"], judge: Judge::Travel(Box::new(travel)) }
    }
}

pub(crate) fn operations() -> Vec<Operation> {
    let mut all = Vec::new();
    let both = |commit, ghost, mode| if mode == Mode::Commit { commit } else { ghost };
    for mode in Mode::tried() {
        let start = user();
        let done = start.copy();
        done.turn(mode, FIRST);
        let undone = done.copy();
        undone.undo();
        let before = start.printed();
        // A turn of its own comes before in ghost mode, none in commit mode.
        if mode == Mode::Ghost {
            start.turn(mode, "echo earlier >earlier.txt");
        }
        let undo = travel(both("undo", "undo, ghost", mode), done.copy(), &["undo"], &["redo"], true);
        if mode == Mode::Commit {
            all.push(undo.recovery("recovery of undo, in the files", ["renameat", ".oxundo-tmp"]));
            all.push(undo.recovery("recovery of undo, before the branch", ["oxundo: rename", "index.oxundo-"]));
        }
        all.push(undo);
        let redo = travel(both("redo", "redo, ghost", mode), undone, &["redo"], &["undo"], true);
        if mode == Mode::Commit {
            all.push(redo.recovery("recovery of redo, behind the branch", ["rename", "refs/heads/main"]));
        }
        all.push(redo);
        if mode == Mode::Commit {
            let restore = ["restore", "1:before", "--", "edit.txt", "gone.txt", "private"];
            all.push(travel("restore", done.copy(), &restore, &["undo"], true));
            done.turn(mode, SECOND);
            done.git(["pack-refs", "--all"]);
            let two = ["undo", "--steps", "2"];
            let back = ["redo", "--steps", "2"];
            all.push(travel("undo of two", done, &two, &back, false));
            if Sandbox::has_tables() {
                let tables = Sandbox::with_tables(&[]);
                tables.sh(USER);
                tables.turn(mode, FIRST);
                tables.turn(mode, SECOND);
                all.push(travel("undo of two, refs in tables", tables, &two, &back, false));
            }
        }
        let before = if mode == Mode::Ghost { start.printed() } else { before };
        let args = in_mode(mode, FIRST);
        if mode == Mode::Commit {
            let killed = killed_at(&start, &args, ["openat", "big.bin"]);
            let judge = Judge::Turn(Box::new(before.clone()));
            all.push(Operation { name: "undo after a killed run", repo: killed, args: vec!["undo"], judge });
        }
        if mode == Mode::Commit {
            let judge = Judge::Turn(Box::new(before.clone()));
            all.push(Operation { name: "run of nothing", repo: start.copy(), args: in_mode(mode, "true"), judge });
        }
        let name = both("run", "run, ghost", mode);
        all.push(Operation { name, repo: start, args, judge: Judge::Turn(Box::new(before)) });
    }
    all.extend(parts());
    all.extend(operations_of_git(Sandbox::new(), IN_FILES));
    if Sandbox::has_tables() {
        all.extend(operations_of_git(Sandbox::with_tables(&[]), IN_TABLES));
    }
    all
}

/// What happens between the kill and the next command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// git throws away all that hangs on no ref.
    Pruned,
    /// The user edits a file that the operation changes.
    Edited,
}

/// One way to kill an operation, and to go on.
#[derive(Clone, Copy, Debug)]
struct Case {
    kill: Kill,
    meanwhile: Meanwhile,
    next: usize,
}

/// The file that the user edits meanwhile: a turn's operations all change it.
const AFFECTED: &str = "edit.txt";

impl Case {
    /// The way that falls to a point, which is the `at`th of them: all ways take turns.
    fn nth(number: usize, at: usize, way: usize) -> Self {
        let (done, victim) = match way {
            0 => (false, Victim::All),
            1 => (true, Victim::All),
            2 => (false, Victim::Oxundo),
            _ => (false, Victim::Caller),
        };
        let meanwhile = match (at + way) % 4 {
            1 => Meanwhile::Pruned,
            3 => Meanwhile::Edited,
            _ => Meanwhile::Nothing,
        };
        Self { kill: Kill { number, done, victim }, meanwhile, next: at + 2 * way }
    }
}

impl Operation {
    /// Kills, goes on, and judges; whether the point was reached. Panics where anything is not as it should be.
    fn check(&self, case: Case) -> bool {
        let repo = self.repo.copy();
        let trace = traced(&repo, &self.args, Some(case.kill)).expect("it was traced before");
        if !trace.killed {
            return false;
        }
        let point = trace.points.last().expect("it was reached");
        let outcome = catch_unwind(AssertUnwindSafe(|| match &self.judge {
            Judge::Travel(travel) => travel.judge(&repo, case),
            Judge::Turn(before) => judge_turn(&repo, before, case, &trace, self.args[0] == "undo"),
        }));
        if let Err(panic) = outcome {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
            panic!("killed at {}, it said: {}\n{text}", point.text, trace.stderr);
        }
        true
    }
}

impl Judge {
    /// Whether it is recorded as a turn of oxundo's own.
    fn is_turn(&self) -> bool {
        matches!(self, Self::Travel(travel) if travel.is_turn)
    }

    /// Lets the next command, one after the other in turn, go on from what a failure left; panics
    /// where anything is not as it should be.
    pub(crate) fn go_on(&self, repo: &Sandbox, trace: &Trace, undoing: bool) {
        let number = trace.points.len();
        let case = Case {
            kill: Kill { number, done: true, victim: Victim::All },
            meanwhile: Meanwhile::Nothing,
            next: number,
        };
        match self {
            Self::Travel(travel) => travel.judge(repo, case),
            Self::Turn(before) => judge_turn(repo, before, case, trace, undoing),
        }
    }
}

impl Travel {
    fn judge(&self, repo: &Sandbox, mut case: Case) {
        let journal = has_journal(repo);
        if case.meanwhile == Meanwhile::Pruned && !self.prunable {
            case.meanwhile = Meanwhile::Nothing;
        }
        match case.meanwhile {
            Meanwhile::Nothing => {}
            Meanwhile::Pruned => prune_what_can_be(repo),
            Meanwhile::Edited => drop(repo.write(AFFECTED, "by the user, meanwhile\n")),
        }
        let edited = case.meanwhile == Meanwhile::Edited;
        // With an edit in its way neither undo nor redo would go on.
        // The way back from a turn that was not made is that of the turn before.
        let next = case.next % if edited { 5 } else { 7 - usize::from(self.is_turn) };
        let args: Vec<&str> = match next {
            0 => vec!["status"],
            1 => vec!["log"],
            2 => vec!["show", "1"],
            3 => vec!["diff", "1"],
            4 => vec!["run", "--ghost", "--", "true"],
            5 => self.there.clone(),
            _ => self.back.clone(),
        };
        let output = repo.oxundo(&args);
        if journal {
            output.warns("an interrupted operation");
        }
        let may_be_nothing = next > 4;
        // The branch that it leads to may have none.
        let is_nothing = || may_be_nothing && (output.code == 4 || output.err().contains("has no turns"));
        assert!(output.code == 0 || is_nothing(), "the next command works\n{output:?}");
        if edited {
            repo.assert_file(AFFECTED, "by the user, meanwhile\n", "the user's edit is left");
            if journal {
                output.warns(&format!("left '{AFFECTED}'"));
            }
            let put_back = |end: &State| {
                let path = format!("on disk {AFFECTED}");
                let fact = end.fact(&path).expect("it is there at both ends");
                let content = fact.splitn(3, |byte| *byte == b' ').nth(2).expect("a mode stands before it");
                repo.write(AFFECTED, content);
            };
            // Whichever end it is: all else says.
            let rest = |state: &State| without_records(state).without("on disk edit.txt").without("git ");
            let now = rest(&whole(repo));
            let end = usize::from(now != rest(&self.ends[0]));
            put_back(&self.ends[end]);
        }
        settled(repo);
        let found = whole(repo);
        let at = match next {
            5 => 1,
            6 => 0,
            _ => usize::from(without_records(&found) != without_records(&self.ends[0])),
        };
        let view = if next == 6 || self.is_turn { without_records } else { State::clone };
        view(&found).assert_is(&view(&self.ends[at]), "the state is the one before or the one after");
        // From there, there and back again.
        for (args, end) in match at {
            0 => [(&self.there, 1), (&self.back, 0)],
            _ => [(&self.back, 0), (&self.there, 1)],
        } {
            repo.oxundo(args).success();
            without_records(&whole(repo)).assert_is(&without_records(&self.ends[end]), "there and back again");
        }
        repo.assert_sound();
    }
}

fn judge_turn(repo: &Sandbox, before: &State, case: Case, trace: &Trace, undoing: bool) {
    let earlier = before.fact("on disk earlier.txt").is_some();
    let number = if earlier { 2 } else { 1 };
    let point = trace.points.last().expect("it was reached");
    if point.by_agent {
        // git's hint, which oxundo repeats, is to remove what a crashed git left.
        for lock in locks(&repo.root().join(".git")) {
            std::fs::remove_file(lock).expect("remove a lock");
        }
    }
    if case.meanwhile == Meanwhile::Pruned {
        prune_what_can_be(repo);
    }
    let on_disk = |state: State| state.only(|fact| fact.starts_with("on disk "));
    let at_death = on_disk(repo.state());
    let journal = has_journal(repo);
    let next = case.next % 6;
    let args: Vec<&str> = match next {
        0 => vec!["status"],
        1 => vec!["log"],
        2 => vec!["show", "1"],
        3 => vec!["diff", "1"],
        4 => vec!["run", "--ghost", "--", "true"],
        _ => vec!["redo"],
    };
    let output = repo.oxundo(&args);
    let no_turn = output.err().contains("there is no turn") || output.err().contains("nothing to redo");
    assert!(output.code == 0 || no_turn, "the next command works\n{output:?}");
    if journal {
        output.warns("an interrupted operation");
    }
    settled(repo);
    let turns = repo.log();
    let turn = turns.iter().find(|turn| turn["turn"] == number);
    if !undoing {
        on_disk(repo.state()).assert_is(&at_death, "what the agent had done is kept as it is");
    }
    let here = repo.printed();
    let Some(turn) = turn else {
        here.assert_is(before, "without a turn all is as it was");
        let notes = repo.refs().contains_key("refs/notes/oxundo");
        assert!(!notes, "no note without a turn");
        return repo.assert_sound();
    };
    for commit in turn["commits"].as_array().expect("a turn has commits") {
        let commit = commit.as_str().expect("a commit has an id");
        repo.git(["notes", "--ref=oxundo", "show", commit]);
    }
    if turn["state"] == "done" {
        repo.undo();
        repo.printed().assert_is(before, "undo of a killed turn is the state before it");
        repo.redo();
        repo.printed().assert_is(&here, "redo of a killed turn is what there was of it");
    } else {
        here.assert_is(before, "an undone turn is the state before it");
        repo.redo();
        repo.undo();
        repo.printed().assert_is(before, "undone once more");
    }
    repo.assert_sound();
}

pub(crate) fn has_journal(repo: &Sandbox) -> bool {
    !repo.git(["for-each-ref", "refs/oxundo/pending"]).is_empty()
}

/// As [`Sandbox::prune`], as far as what a kill left lets git.
fn prune_what_can_be(repo: &Sandbox) {
    let _ = repo.try_git(["reflog", "expire", "--expire=now", "--all"]);
    let _ = repo.try_git(["gc", "-q", "--prune=now"]);
}

/// Nothing is left of the kill, and a second command finds nothing to do.
#[track_caller]
fn settled(repo: &Sandbox) {
    assert_eq!(locks(&repo.root().join(".git")), Vec::<String>::new(), "no lock stands in git's way");
    let left: Vec<_> = std::fs::read_dir(repo.root().join(".git/oxundo"))
        .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect())
        .unwrap_or_default();
    let kept =
        ["lock", "run", "notes", "log", "aside", "timeline", "journal.key", "replaced", "fired", "begun", "sessions"];
    let is_kept = |name: &OsString| kept.iter().any(|kept| name == kept) || name.as_bytes().starts_with(b"seen-");
    // The next operation has the directory, where it could not be removed.
    let is_empty =
        |name: &OsString| repo.path(".git/oxundo").join(name).read_dir().is_ok_and(|mut all| all.next().is_none());
    let left: Vec<_> = left.iter().filter(|name| !(is_kept(name) || *name == "out" && is_empty(name))).collect();
    assert!(left.is_empty(), "no scratch is left: {left:?}");
    assert!(!has_journal(repo), "the journal is gone");
    let second: Output = repo.oxundo(["status"]);
    second.success();
    assert!(!second.err().contains("interrupted"), "a second recovery finds nothing to do\n{second:?}");
}

/// Does all the work on twice as many threads as there are processors: a case often waits for a child. Each that panics is a
/// failure.
pub(crate) fn in_parallel<T: Sync>(cases: &[T], check: impl Fn(&T) + Sync) -> Vec<(usize, String)> {
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(at) else { return };
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(case))) {
                        let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
                        failures.lock().expect("nobody panics with it").push((at, text));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().expect("nobody panics with it");
    failures.sort();
    failures
}

/// Points of one operation that `cargo test` kills at.
const SAMPLE: usize = 5;

/// As many, where several operations go the same way.
const FEW: usize = 4;

/// Calls at which a kill once lost something: the short form tries them too.
const ONCE_BAD: [[&str; 2]; 3] = [
    ["oxundo: linkat", "refs/oxundo/pending.lock"],
    ["oxundo: rename", "logs/refs/stash"],
    ["oxundo: unlink", "logs/refs/stash"],
];

#[test]
fn a_kill_at_another_call_than_was_meant_is_noticed() {
    let repo = Sandbox::new();
    if let Err(error) = points_of(&repo, &["status"]) {
        return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    let times = repo.home().join("times");
    // The second time, which is the first kill, another call has the number of the one that is meant.
    let script =
        format!("echo >>'{0}'; if [ $(wc -l <'{0}') = 2 ]; then echo >other; else echo >meant; fi", times.display());
    let killed = killed_at(&repo, &["run", "--", "sh", "-c", &script], ["openat", "meant"]);
    assert!(
        killed.exists("meant") && !killed.exists("other"),
        "the one that is given back was killed where it was meant"
    );
    let runs = std::fs::read(times).expect("it was run").len();
    assert!(runs >= 4, "it was tried again: {runs}");
}

#[test]
fn killed_at_any_call_every_operation_is_made_whole_by_the_next_command() {
    let thorough = crate::form::is_thorough();
    let wanted = std::env::var("OXUNDO_CASE").unwrap_or_default();
    let only: Option<usize> = std::env::var("OXUNDO_POINT").ok().and_then(|point| point.parse().ok());
    if let Err(error) = points_of(&Sandbox::new(), &["status"]) {
        let skipped = format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})");
        assert!(!thorough, "{skipped}");
        return announce(&skipped);
    }
    let (mut failures, mut bad) = (String::new(), 0);
    let all = operations().into_iter().chain([run_with_steps()]);
    for operation in part_of(all, &wanted, |operation| operation.name) {
        let points = points_of(&operation.repo, &operation.args).expect("it was traced before");
        let chosen: Vec<usize> = match (only, thorough) {
            (Some(point), _) => vec![point],
            (None, true) => (0..points.len()).collect(),
            (None, false) => {
                let once_bad = |call: &[&str; 2]| {
                    let is_it = |point: &Point| call.iter().all(|part| point.text.contains(part));
                    points.iter().position(is_it)
                };
                // What is a turn of oxundo's own goes one way, whatever its plan is.
                let many = sample(if operation.judge.is_turn() { FEW } else { SAMPLE });
                let spread = (0..many).map(|nth| (2 * nth + 1) * points.len() / (2 * many));
                spread.chain(ONCE_BAD.iter().filter_map(once_bad)).collect()
            }
        };
        let mut cases = Vec::new();
        for at in chosen {
            let Some(point) = points.get(at) else { continue };
            // Where oxundo itself makes the call, it mostly is alone.
            let ways = if point.text.starts_with("oxundo: ") { 2 } else { 4 };
            // In the short form the ways take turns.
            let chosen = if thorough { 0..ways } else { at % ways..at % ways + 1 };
            cases.extend(chosen.map(|way| Case::nth(point.number, at, way)));
        }
        let (begun, kills) = (Instant::now(), AtomicUsize::new(0));
        // One time an operation makes a call more than another.
        let failed = in_parallel(&cases, |case| {
            kills.fetch_add(usize::from(operation.check(*case)), Ordering::Relaxed);
        });
        if thorough {
            let (points, kills, took) = (points.len(), kills.into_inner(), begun.elapsed());
            announce(&format!(
                "{}: {points} points, {kills} kills made whole, {} bad, {took:.0?}",
                operation.name,
                failed.len()
            ));
        }
        bad += failed.len();
        for (at, text) in failed {
            let _ = writeln!(failures, "== {}: {:?}\n{text}\n", operation.name, cases[at]);
        }
    }
    assert!(failures.is_empty(), "{bad} kills lost something:\n{failures}");
}

/// What an agent's hooks tell, and what it does after each.
type Told = [&'static str; 3];

/// Hooks that are killed, and what the agent goes on to do.
const HOOKS: [(&str, Told, &[Told]); 5] = [
    (
        "the next prompt, while the last one's turn is open",
        ["UserPromptSubmit", "2", ""],
        &[["PreToolUse", "2", "echo agents-two >>first.txt"], ["PostToolUse", "2", ""], ["Stop", "2", ""]],
    ),
    (
        "a call begins",
        ["PreToolUse", "1", ""],
        // What no hook is of the call's.
        &[["Notification", "1", "echo agents-two >>first.txt"], ["PostToolUse", "1", ""], ["Stop", "1", ""]],
    ),
    ("a call ends", ["PostToolUse", "1", ""], &[["PreToolUse", "1", "echo agents-two >>two.txt"], ["Stop", "1", ""]]),
    (
        "an edit ends, and another one of the same file begins",
        ["PostToolUse of first.txt", "1", ""],
        &[
            ["PreToolUse of first.txt", "1", "echo agents-two >>first.txt"],
            ["PostToolUse of first.txt", "1", ""],
            ["Stop", "1", ""],
        ],
    ),
    (
        "the end",
        ["Stop", "1", ""],
        &[
            ["UserPromptSubmit", "2", ""],
            ["PreToolUse", "2", "echo agents-two >>first.txt"],
            ["PostToolUse", "2", ""],
            ["Stop", "2", ""],
        ],
    ),
];

fn payload([event, prompt, script]: Told) -> String {
    let call = if script.contains("agents-one") { "first" } else { prompt };
    let (event, about) = match event.split_once(" of ") {
        Some((event, file)) => (event, format!(r#""Edit", "tool_input": {{"file_path": "{file}"}}"#)),
        None => (event, r#""Bash""#.to_owned()),
    };
    format!(
        r#"{{"hook_event_name": "{event}", "session_id": "s", "prompt_id": "{prompt}", "prompt": "p", "tool_name": {about},
            "tool_use_id": "{call}"}}"#
    )
}

#[track_caller]
fn tell(repo: &Sandbox, told: Told) {
    fire(repo, &payload(told));
    repo.sh(told[2]);
}

#[track_caller]
pub(crate) fn fire(repo: &Sandbox, payload: &str) {
    let mut command = repo.oxundo_command(["hook", "claude"]);
    // The agent is to be no child of a thread that waits for all that it traces.
    let fired = std::thread::scope(|scope| scope.spawn(|| Output::fired(&mut command, payload.as_bytes())).join());
    let output = fired.expect("a hook is fired");
    assert_eq!((output.code, output.out()), (0, String::new()), "{output:?}");
}

/// A hook was killed: whose is what, when the agent has gone on?
fn judge_hook(repo: &Sandbox, before: &State, rest: &[Told], at: usize) {
    let left = repo.files();
    match at % 4 {
        0 => repo.oxundo(["status"]).success(),
        1 => repo.oxundo(["checkpoint"]).success(),
        _ => {}
    }
    repo.files().assert_is(&left, "what is there is left as it is");
    for told in rest {
        tell(repo, *told);
    }
    let of = |whose: &str| repo.git(["log", "HEAD", &format!("--grep={whose}"), "-p", "--format="]);
    assert!(!of("^oxundo: uncommitted").contains("+agents-"), "what is the agent's is not saved as the user's");
    assert!(!of("^Assisted-by").contains("+users-"), "what is the user's is in no commit of the agent's");
    let now = repo.files();
    let undo = repo.oxundo(["undo", "--to", "0"]);
    undo.success();
    repo.state().assert_is(before, "undo of all is the state before the first prompt");
    repo.oxundo(["redo", "--to", "1"]).success();
    let more = repo.oxundo(["redo", "--steps", "1"]);
    assert!([0, 4].contains(&more.code), "{more:?}");
    repo.files().assert_is(&now, "redo brings all of it back");
    assert_eq!(repo.oxundo(["status"]).err(), "", "what was missed has been told");
    // What a hook had to warn of stays for the doctor to tell.
    let _ = std::fs::remove_file(repo.path(".git/oxundo/hooks.log"));
    settled(repo);
    repo.assert_sound();
}

#[test]
fn a_hook_killed_at_any_call_loses_nothing_and_gives_nobodys_work_to_another() {
    let thorough = crate::form::is_thorough();
    let only: Option<usize> = std::env::var("OXUNDO_POINT").ok().and_then(|point| point.parse().ok());
    if let Err(error) = points_of(&Sandbox::new(), &["status"]) {
        return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    let mut failures = String::new();
    for (name, killed, rest) in HOOKS {
        let repo = Sandbox::new();
        repo.sh("echo one >first.txt; git add .; git commit -qm one; echo users-first >>README.txt");
        let before = repo.state();
        tell(&repo, ["UserPromptSubmit", "1", ""]);
        tell(&repo, ["PreToolUse", "1", "echo agents-one >>first.txt; echo agents-new >new.txt"]);
        tell(&repo, ["PostToolUse", "1", "true agents-one"]);
        match killed[0] {
            "PostToolUse" => tell(&repo, ["PreToolUse", "1", ""]),
            "PostToolUse of first.txt" => {
                tell(&repo, ["PreToolUse of first.txt", "1", "echo agents-more >>first.txt"]);
            }
            _ => {}
        }
        let payload = payload(killed);
        let args = ["hook", "claude", &payload];
        let points = points_of(&repo, &args).expect("it was traced before");
        let most = 2 * sample(SAMPLE);
        let step = if thorough || points.len() < most { 1 } else { points.len() / most };
        let chosen: Vec<usize> = only.map_or_else(|| (0..points.len()).step_by(step).collect(), |point| vec![point]);
        let failed = in_parallel(&chosen, |at| {
            let Some(point) = points.get(*at) else { return };
            let victim = if at % 3 == 2 { Victim::Oxundo } else { Victim::All };
            let copy = repo.copy();
            let kill = Kill { number: point.number, done: at % 2 == 1, victim };
            if traced(&copy, &args, Some(kill)).expect("it was traced before").killed {
                judge_hook(&copy, &before, rest, *at);
            }
        });
        for (at, text) in failed {
            let point = chosen[at];
            let _ = writeln!(failures, "== {name}: {point}, {}\n{text}\n", points[point].text);
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// What takes records away: git is started for some of it, and what a killed git leaves of its locks nobody could remove.
const REMOVALS: [&[&str]; 2] = [&["gc", "--keep", "now"], &["uninstall", "--purge", "--yes"]];

/// With a turn that goes, rescues, notes and a checkpoint.
fn with_what_goes(start: Sandbox) -> Sandbox {
    start.turn(Mode::Commit, "echo 0 >first.txt");
    for n in 0..3 {
        start.turn(Mode::Ghost, &format!("echo {n} >second.txt"));
        start.undo();
    }
    start.turn(Mode::Ghost, "head -c 11000000 /dev/zero >big.bin; mkdir d; echo 1 >d/one");
    start.undo();
    // It is left, and no turn of the newest.
    start.turn(Mode::Ghost, "echo 4 >third.txt");
    start
}

#[test]
fn what_takes_records_away_leaves_no_lock_of_its_own_wherever_it_is_killed() {
    let thorough = crate::form::is_thorough();
    if let Err(error) = points_of(&Sandbox::new(), &["status"]) {
        return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
    }
    let mut failures = String::new();
    let tables = Sandbox::has_tables().then(|| ("refs in tables", Sandbox::with_tables(&[])));
    for (store, start) in [("refs in files", Sandbox::new())].into_iter().chain(tables) {
        let repo = with_what_goes(start);
        let before = repo.files();
        for args in REMOVALS {
            let points = points_of(&repo, args).expect("it was traced before");
            // A lock is taken by git, or by oxundo, and the kill comes before it is gone.
            let is_lock = |point: &Point| point.text.contains(".lock");
            let step = if thorough { 1 } else { points.len().div_ceil(2 * sample(SAMPLE)) };
            let mut chosen: Vec<usize> = (0..points.len()).step_by(step).collect();
            let held: Vec<usize> = (0..points.len()).filter(|at| is_lock(&points[*at])).collect();
            chosen.extend(held.iter().step_by(held.len().div_ceil(sample(SAMPLE)).max(1)).filter(|_| !thorough));
            let failed = in_parallel(&chosen, |at| {
                let copy = repo.copy();
                let kill = Kill { number: points[*at].number, done: true, victim: Victim::All };
                if !traced(&copy, args, Some(kill)).expect("it was traced before").killed {
                    return;
                }
                if at % 2 == 0 {
                    copy.oxundo(["status"]).success();
                    assert_eq!(locks(&copy.root().join(".git")), Vec::<String>::new(), "no lock stands in git's way");
                }
                copy.oxundo(args).success();
                copy.git(["update-ref", "refs/heads/new", "HEAD"]);
                assert_eq!(locks(&copy.root().join(".git")), Vec::<String>::new(), "no lock is left");
                copy.files().assert_is(&before, "no file is touched");
                copy.turn(Mode::Ghost, "echo more >more.txt");
                copy.undo();
                copy.assert_sound();
            });
            for (at, text) in failed {
                let point = chosen[at];
                let _ = writeln!(failures, "== {store}, {args:?}: {point}, {}\n{text}\n", points[point].text);
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
