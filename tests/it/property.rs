//! Random turns in a random repository, and a random walk over them: each position is the very state
//! that was recorded there.
//!
//! Turns are lines of shell, so that a failing case can be read and run.

use crate::form::random_cases;
use crate::sandbox::{Mode, Sandbox, State};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The files that turns work on, as shell variables `$n0`…
const NAMES: [&[u8]; 10] = [
    b"p/one",
    b"p/two.txt",
    b"plain",
    b"run.sh",
    "d\u{e9}/\u{fc}.txt".as_bytes(),
    b"sp ace",
    b"./-dash",
    b"tab\there",
    b"new\nline",
    b"lat\xe9in1",
];

/// Every line may fail, as an agent's do.
const PREAMBLE: &str = "exec 2>/dev/null; set +e
n0=p/one n1=p/two.txt n2=plain n3=run.sh n4='d\u{e9}/\u{fc}.txt' n5='sp ace' n6=./-dash n7=$(printf 'tab\\there')
n8=$(printf 'new\\nline') n9=$(printf 'lat\\351in1')
put() { mkdir -p \"$(dirname \"$1\")\"; printf \"$2\" >\"$1\"; }";

/// One line of a turn.
#[derive(Clone, Debug)]
struct Line {
    /// It can destroy what is ignored when the turn begins, which no checkpoint has.
    reckless: bool,
    /// It hides a file from git, or brings one to light.
    hides: bool,
    text: String,
}

/// A repository, its turns, a walk over them.
#[derive(Clone, Debug)]
struct Story {
    start: usize,
    turns: Vec<(bool, Vec<Line>)>,
    /// Whether lines may hide files; else they may be reckless.
    hiding: bool,
    /// Backward or forward, how many, whether git prunes first.
    walk: Vec<(bool, usize, bool)>,
}

/// What the user has done before the first turn.
const STARTS: [&str; 5] = [
    "true",
    "echo w >>plain; git add plain; echo w >>plain; echo w >>p/one; echo u >u.txt; mkdir -p void/void",
    "echo i >ita; git add -N ita; git rm -q --cached run.sh; git update-index --skip-worktree plain; echo s >>plain; chmod 600 p/one",
    "echo s >>plain; git stash -q; git checkout -q --detach; rm p/two.txt; mkdir p/two.txt; echo u >p/two.txt/u",
    "git sparse-checkout set --cone --sparse-index p; echo w >>p/one",
];

fn line() -> impl Strategy<Value = Line> {
    let name = || 0..NAMES.len();
    let plain = |text: String| Line { reckless: false, hides: false, text };
    let reckless = |text: &str| Line { reckless: true, hides: false, text: text.to_owned() };
    let files = prop_oneof![
        4 => (name(), 0..100u8).prop_map(|(n, text)| format!("put \"$n{n}\" 'text {text}\\n'")),
        2 => (name(), 0..100u8).prop_map(|(n, text)| format!("echo more {text} >>\"$n{n}\"")),
        1 => name().prop_map(|n| format!("put \"$n{n}\" ''")),
        1 => name().prop_map(|n| format!("put \"$n{n}\" 'a\\000b\\377\\r\\n'")),
        2 => name().prop_map(|n| format!("rm -rf \"$n{n}\"")),
        1 => Just("rm -rf p".to_owned()),
        2 => (name(), name()).prop_map(|(n, m)| format!("mkdir -p \"$(dirname \"$n{m}\")\"; mv \"$n{n}\" \"$n{m}\"")),
        1 => (name(), name()).prop_map(|(n, m)| format!("cp -r \"$n{n}\" \"$n{m}\"")),
        1 => name().prop_map(|n| format!("rm -rf \"$n{n}\"; mkdir -p \"$n{n}/in\"")),
        1 => name().prop_map(|n| format!("rm -rf \"$n{n}\"; put \"$n{n}/in/file\" 'in\\n'")),
        1 => Just("rm -rf p; echo file >p".to_owned()),
        1 => (name(), name()).prop_map(|(n, m)| format!("rm -rf \"$n{n}\"; mkdir -p \"$(dirname \"$n{n}\")\"; ln -s \"$n{m}\" \"$n{n}\"")),
        1 => Just("rm -rf p; ln -s nowhere p".to_owned()),
        2 => (name(), prop::sample::select(vec!["600", "644", "755", "640", "444"]))
            .prop_map(|(n, mode)| format!("[ -L \"$n{n}\" ] || [ -d \"$n{n}\" ] || chmod {mode} \"$n{n}\"")),
        1 => (0..3u8).prop_map(|n| format!("mkdir -p void{n}/deep")),
        1 => Just("find . -path ./.git -prune -o -type d -empty -print0 | xargs -0 -r rmdir".to_owned()),
    ];
    let index = prop_oneof![
        3 => Just("git add -A".to_owned()),
        2 => name().prop_map(|n| format!("git add -A -- \"$n{n}\"")),
        1 => name().prop_map(|n| format!("git add -N -- \"$n{n}\"")),
        1 => name().prop_map(|n| format!("git rm -rq --cached -- \"$n{n}\"")),
        1 => Just("git reset -q".to_owned()),
        1 => name().prop_map(|n| format!("git update-index --skip-worktree -- \"$n{n}\"")),
        1 => name().prop_map(|n| format!("git update-index --assume-unchanged -- \"$n{n}\"")),
        1 => name().prop_map(|n| format!("git update-index --chmod=+x -- \"$n{n}\"")),
    ];
    let history = prop_oneof![
        3 => Just("git commit -qam all".to_owned()),
        2 => Just("git add -A; git commit -qm everything".to_owned()),
        1 => Just("git commit -qm staged".to_owned()),
        1 => Just("git commit -q --allow-empty -m nothing".to_owned()),
        1 => Just("git commit -q --amend --allow-empty -m amended".to_owned()),
        1 => Just("git reset -q --soft HEAD~1".to_owned()),
        1 => Just("git reset -q HEAD~1".to_owned()),
        1 => (0..3u8).prop_map(|n| format!("git branch b{n}")),
        1 => (0..3u8).prop_map(|n| format!("git branch -qD b{n}")),
        // Names and words that are not UTF-8, and branches that stand for others.
        1 => (1..4u8).prop_map(|n| format!("git branch \"b$(printf '\\35{n}')\"")),
        1 => (1..4u8).prop_map(|n| format!("git branch -qD \"b$(printf '\\35{n}')\"")),
        1 => (0..3u8).prop_map(|n| format!("git symbolic-ref refs/heads/alias{n} refs/heads/main")),
        1 => (0..3u8).prop_map(|n| format!("git symbolic-ref -d refs/heads/alias{n}")),
        1 => Just("GIT_AUTHOR_NAME=$n9 git commit -qam \"$n9\"".to_owned()),
    ];
    let wild = prop::sample::select(vec![
        "git reset -q --hard",
        "git reset -q --hard HEAD~1",
        "git clean -fdq",
        "git stash -q",
        "git stash -qu",
        "git stash pop -q || git reset -q --hard",
        "git stash pop -q --index || git reset -q --hard",
        "git stash drop -q",
        "git checkout -q -- .",
        "git checkout -q main",
        "git checkout -q side",
        "git checkout -q -B topic",
        "git checkout -q --detach",
        // Where the user has one: whether there is one is a setting, in which undo does not meddle.
        "git sparse-checkout list && git sparse-checkout set --sparse-index p",
        "git sparse-checkout list && git sparse-checkout set --no-sparse-index d\u{e9}",
        "git sparse-checkout list && git sparse-checkout add p",
        "git sparse-checkout list && git sparse-checkout reapply",
        // What git is left in the middle of, and what ends it.
        "git merge -q --no-commit fork",
        "git merge -q --no-commit --no-ff -s ours fork",
        "git merge -q --squash fork",
        "git merge --abort",
        "git rebase -q fork",
        "git rebase -q --autostash fork",
        "git rebase -q --apply fork",
        "git rebase --abort",
        "git add -A; GIT_EDITOR=true git rebase --continue",
        "git cherry-pick fork~1 fork",
        "git cherry-pick -n fork",
        "git cherry-pick --abort",
        "git revert --no-edit HEAD~1",
        "git bisect start; git bisect bad; git bisect good HEAD~1",
        "git bisect reset",
    ]);
    let hiding = prop::sample::select(vec![
        "echo hidden$turn >>.gitignore; echo h >hidden$turn",
        "mkdir -p hidden$turn/deep; echo \"/hidden$turn/\" >>.gitignore; echo h >hidden$turn/deep/h",
        "echo hidden$turn >>.git/info/exclude; echo h >hidden$turn",
        "git add .gitignore; git commit -qm ignore",
        "rm -f .gitignore",
        ": >.gitignore",
    ]);
    prop_oneof![
        8 => files.prop_map(plain),
        3 => index.prop_map(plain),
        3 => history.prop_map(plain),
        3 => wild.prop_map(reckless),
        1 => hiding.prop_map(|text| Line { reckless: false, hides: true, text: text.to_owned() }),
    ]
}

fn story() -> impl Strategy<Value = Story> {
    let turns = vec((any::<bool>(), vec(line(), 1..7)), 1..5);
    let walk = vec((any::<bool>(), 1..4usize, prop::bool::weighted(0.05)), 4..10);
    (0..STARTS.len(), turns, any::<bool>(), walk).prop_map(|(start, turns, hiding, walk)| Story {
        start,
        turns,
        hiding,
        walk,
    })
}

impl Story {
    /// The mode and the whole script of each turn.
    fn scripts(&self) -> impl Iterator<Item = (Mode, String)> {
        self.turns.iter().enumerate().map(|(turn, (ghost, lines))| {
            let fitting = lines.iter().filter(|line| if self.hiding { !line.reckless } else { !line.hides });
            let text: Vec<_> = fitting.map(|line| line.text.as_str()).collect();
            let mode = if *ghost { Mode::Ghost } else { Mode::Commit };
            (mode, format!("{PREAMBLE}\nturn={turn}\n{}\nexit 0", text.join("\n")))
        })
    }

    fn repository(&self) -> Sandbox {
        let repo = Sandbox::new();
        // In the first commit: no `reset` may bring to light what `clean` then destroys.
        repo.write(".gitignore", "*.ignored\n").write("x.ignored", "never touched\n");
        repo.sh("git add -A; git commit -q --amend --no-edit");
        for name in NAMES {
            repo.write(name, [name, b"\n"].concat());
        }
        repo.sh("chmod 755 run.sh; git add -A; git commit -qm names; echo 2 >>p/one; git commit -qam second; git branch side HEAD~1
            git checkout -q -b fork side; echo fork >>p/one; echo f >fork.txt; git add -A; git commit -qm fork
            echo f >>fork.txt; git commit -qam more; git checkout -q main");
        repo.sh(STARTS[self.start]);
        repo
    }

    /// The story for a human.
    fn told(&self) -> String {
        let mut told = format!("before the first turn: {}\n", STARTS[self.start]);
        for (mode, script) in self.scripts() {
            let script = script.strip_prefix(PREAMBLE).unwrap_or(&script).trim();
            let _ = writeln!(told, "--- {mode:?} turn\n{script}");
        }
        told
    }
}

/// The repository after all turns, and the state at each position of the timeline.
fn tell(story: &Story) -> (Sandbox, Vec<State>) {
    let repo = story.repository();
    let mut states = vec![repo.printed()];
    for (mode, script) in story.scripts() {
        // In the middle of something no turn makes commits.
        let is_idle = repo.operation().keys().all(|name| ["MERGE_MSG", "SQUASH_MSG"].contains(&name.as_str()))
            && repo.git(["ls-files", "--unmerged"]).is_empty();
        repo.turn(if is_idle { mode } else { Mode::Ghost }, &script);
        let state = repo.printed();
        if repo.log_of_all() == states.len() {
            states.push(state);
        } else {
            let before = states.last().expect("there is a first state");
            state.assert_is(before, "a turn that is not recorded changed nothing");
        }
    }
    (repo, states)
}

impl Sandbox {
    /// How many turns there are, on any branch.
    fn log_of_all(&self) -> usize {
        let (_, log) = self.json(["log", "--all"]);
        log["turns"].as_array().map_or(0, Vec::len)
    }
}

/// Whether all positions from here to there are on one branch, and are so one timeline.
fn on_one_branch(states: &[State], from: usize, to: usize) -> bool {
    let range = &states[from.min(to)..=from.max(to)];
    range.iter().all(|state| state.branch() == range[0].branch())
}

fn walk(story: &Story, repo: &Sandbox, states: &[State], view: impl Fn(&State) -> State) {
    let mut position = states.len() - 1;
    let mut went = vec![position];
    // Without its reflog there is no stash, be it git's own of a rebase, and that is then the user's doing.
    let may_prune = !story.told().contains("stash");
    for &(back, steps, prune) in &story.walk {
        let mut wanted = if back { position.saturating_sub(steps) } else { (position + steps).min(states.len() - 1) };
        if !on_one_branch(states, position, wanted) {
            wanted = if back { position - 1 } else { position + 1 };
        }
        if prune && may_prune {
            repo.prune();
        }
        if wanted != position {
            let op = if wanted < position { "undo" } else { "redo" };
            let output = repo.oxundo([op, "--steps", &wanted.abs_diff(position).to_string()]);
            // A merge that a turn both began and ended does not leave its branch.
            let is_merge = output.code == 3 && output.err().contains(" is a merge");
            assert!(output.code == 0 || is_merge, "{op} from {went:?} to {wanted}\n{output:?}");
            if !is_merge {
                position = wanted;
            }
        }
        went.push(position);
        let invariant = format!("the state at each position of the walk {went:?}");
        view(&repo.printed()).assert_is(&view(&states[position]), &invariant);
    }
    repo.assert_sound();
}

/// Runs a property over random stories; says the failing one in full.
fn check(property: impl Fn(&Story)) {
    let cases = random_cases(20);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let outcome = TestRunner::new(config).run(&story(), |story| {
        catch_unwind(AssertUnwindSafe(|| property(&story))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
            TestCaseError::fail(format!("{text}\n{}", story.told()))
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn every_position_of_a_walk_is_the_state_recorded_there() {
    check(|story| {
        let (repo, states) = tell(story);
        walk(story, &repo, &states, State::clone);
    });
}

/// Whether a fact is about a file that the user has made.
fn is_mine(fact: &str) -> bool {
    fact.starts_with("on disk ") && fact.contains("mine")
}

#[test]
fn what_the_user_makes_after_the_turns_survives_every_walk() {
    check(|story| {
        let (repo, states) = tell(story);
        repo.write("mine/own.txt", "mine\n").write("mine.txt", "mine\n");
        let before = repo.state().only(is_mine);
        let theirs = |state: &State| {
            state.clone().only(|fact| (fact.starts_with("on disk ") || fact.starts_with("ref ")) && !is_mine(fact))
        };
        walk(story, &repo, &states, theirs);
        repo.state().only(is_mine).assert_is(&before, "what the user made is as it was");
    });
}
