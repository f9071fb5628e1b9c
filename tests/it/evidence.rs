//! Whose a change is, in any order of what two agents and the user do: with evidence it is its session's, without any the
//! user's.
//!
//! Each line that is written is a token of its own. What happened when it was written, and what was told after that, say
//! whose it is; commits and files show whose oxundo took it for. oxundo's own records are asked for nothing.

use crate::form::{part, random_cases};
use crate::sandbox::{Output, Sandbox};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Child;

/// What may happen next. What makes no sense then does not happen.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A prompt is given.
    Begin(usize),
    /// The agent is done, and tells so. Where this does not come, somebody has pressed Escape.
    End(usize),
    /// The agent's session is over.
    Gone(usize),
    /// A tool's call begins, of an agent that tells of calls.
    Call(usize),
    /// It is over.
    Called(usize),
    /// The agent writes, in its prompt or late.
    Writes(usize, bool),
    /// The user saves a file, or makes one.
    Saves(bool),
    /// `oxundo run` begins; whether the first session's hooks come from within it.
    Runs(bool),
    /// Its agent ends; or `oxundo run` itself is killed.
    RunEnds(bool),
    Undo,
    Redo,
    /// The user brings back the files of that turn.
    Restores(usize),
    /// A branch at the last turn, or one commit of the last ones.
    Makes(bool),
    /// The user's own git.
    Git(usize),
    Look(usize),
}

/// Whose a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    /// An agent's, on evidence.
    Agents,
    /// The user's, or an agent's without evidence.
    Users,
    /// The user's while an agent was at work, or the like: nobody can tell.
    Anybodys,
}

/// What there is evidence of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AtWork {
    Nobody,
    /// These sessions, for all that is known.
    Sure(BTreeSet<usize>),
    /// A command of the user's came in between: these may be.
    Perhaps(BTreeSet<usize>),
}

/// A `run` in progress.
struct Run {
    process: Child,
    /// Whether the first session is its agent's, and tells of its prompts.
    hooked: bool,
    /// Whether its agent has told of anything yet: until then it is at work for all that anybody knows.
    told: bool,
    /// Whether it is between two prompts that it has told of.
    waits: bool,
    number: usize,
}

/// A `run`'s own agent, where it tells of nothing.
const RUN: usize = 2;

#[allow(clippy::struct_excessive_bools, reason = "each is seen by itself")]
struct Story {
    repo: Sandbox,
    run: Option<Run>,
    /// Whether a `run` was killed, and its turn is not closed yet.
    killed: bool,
    at_work: AtWork,
    prompts: [usize; 2],
    /// How many calls each has in flight.
    calls: [usize; 2],
    /// Whether oxundo takes steps: then an agent writes within its calls, and what the user saves between them is the
    /// user's.
    steps: bool,
    /// Who takes part in the open turn, and whether it has called; or `run`'s agent, which tells of nothing.
    parts: BTreeMap<usize, bool>,
    /// Whether a call's end was not told of.
    lost: bool,
    /// What the user saved between calls in the open turn, and whether in a new file.
    between: Vec<(usize, bool)>,
    /// Whether it has made a turn.
    known: [bool; 2],
    tokens: BTreeMap<usize, Whose>,
    /// Those that are not decided yet, and whether an agent wrote them that may be at work.
    open: Vec<(usize, bool)>,
    /// Agents' that the user has brought back.
    restored: BTreeSet<usize>,
    /// What of their own a restore of theirs has put away.
    restored_over: BTreeSet<usize>,
    told: String,
    /// Whether the user's git has made the turns' branch another, or put a commit upon them: not all can be undone.
    strays: bool,
}

/// `N` is another number each time.
const GIT: [&str; 5] =
    ["git commit -qam own", "git switch -qc bN", "git branch -m rN", "git stash -q; git stash pop -q", "git add -A"];

const LOOKS: [&[&str]; 5] =
    [&["status"], &["log"], &["undo", "--dry-run"], &["undo", "--to", "0", "--dry-run"], &["diff"]];

fn event() -> impl Strategy<Value = Event> {
    let who = || prop_oneof![3 => Just(0_usize), 1 => Just(1)];
    let is_new = || prop::bool::weighted(0.3);
    prop_oneof![
        3 => who().prop_map(Event::Begin),
        4 => who().prop_map(Event::End),
        1 => who().prop_map(Event::Gone),
        2 => who().prop_map(Event::Call),
        3 => who().prop_map(Event::Called),
        8 => (who(), is_new()).prop_map(|(who, new)| Event::Writes(who, new)),
        4 => is_new().prop_map(Event::Saves),
        1 => prop::bool::ANY.prop_map(Event::Runs),
        2 => prop::bool::weighted(0.3).prop_map(Event::RunEnds),
        3 => is_new().prop_map(|new| Event::Writes(RUN, new)),
        4 => Just(Event::Undo),
        1 => Just(Event::Redo),
        1 => (1..4_usize).prop_map(Event::Restores),
        1 => prop::bool::ANY.prop_map(Event::Makes),
        1 => (0..GIT.len()).prop_map(Event::Git),
        2 => (0..LOOKS.len()).prop_map(Event::Look),
    ]
}

/// One thing, or what often comes one after the other.
fn phrase() -> impl Strategy<Value = Vec<Event>> {
    use Event::{Begin, Call, End, Git, Saves, Undo, Writes};
    let who = || 0..2_usize;
    prop_oneof![
        12 => event().prop_map(|event| vec![event]),
        1 => who().prop_map(|who| vec![Saves(false), Begin(who), Writes(who, false), Undo]),
        1 => who().prop_map(|who| vec![Writes(who, false), Undo, Writes(who, false), End(who)]),
        1 => who().prop_map(|who| vec![Undo, Saves(false), Call(who), Writes(who, false)]),
        2 => (who(), prop::bool::ANY)
            .prop_map(|(who, new)| vec![Begin(who), Writes(who, true), Saves(new), Writes(who, true), End(who)]),
        1 => who().prop_map(|who| vec![Begin(who), Writes(who, false), Saves(false), Git(0), Writes(who, true), End(who)]),
    ]
}

/// A file that is tracked, and that all of them write to.
const TRACKED: &str = "one.txt";

/// Its content, in which every token has a place of its own, so that no two changes overlap.
fn ruled() -> String {
    (0..100).fold(String::new(), |text, line| text + &format!("line {line}\n-\n-\n"))
}

fn name(who: usize) -> &'static str {
    ["a", "b", "the run's agent"][who]
}

impl Story {
    fn begin(ghost: bool, steps: bool) -> Self {
        let repo = Sandbox::new();
        repo.write(TRACKED, ruled());
        repo.sh("git add -A; git commit -qm ruled");
        if !steps {
            repo.git(["config", "oxundo.steps", "off"]);
        }
        if ghost {
            repo.git(["config", "oxundo.mode", "ghost"]);
        }
        Self {
            repo,
            run: None,
            killed: false,
            at_work: AtWork::Nobody,
            prompts: [0; 2],
            calls: [0; 2],
            steps,
            parts: BTreeMap::new(),
            lost: false,
            between: Vec::new(),
            known: [false; 2],
            tokens: BTreeMap::new(),
            open: Vec::new(),
            restored: BTreeSet::new(),
            restored_over: BTreeSet::new(),
            told: String::new(),
            strays: false,
        }
    }

    fn at_work(&self) -> BTreeSet<usize> {
        match &self.at_work {
            AtWork::Nobody => BTreeSet::new(),
            AtWork::Sure(who) | AtWork::Perhaps(who) => who.clone(),
        }
    }

    fn hook(&self, event: &str, who: usize, call: usize) {
        self.hook_of("Bash", event, who, call);
    }

    fn hook_of(&self, tool: &str, event: &str, who: usize, call: usize) {
        let prompt = format!("{}{}", name(who), self.prompts[who]);
        let payload = json!({"hook_event_name": event, "session_id": name(who), "prompt_id": prompt, "prompt": "p",
            "tool_name": tool, "tool_input": {"file_path": self.repo.path(TRACKED)}, "tool_use_id": call.to_string()});
        let mut command = self.repo.oxundo_command(["hook", "claude"]);
        if who == 0 && self.run.as_ref().is_some_and(|run| run.hooked) {
            command.env("OXUNDO_RUN", self.repo.path(".git"));
        }
        let output = Output::fired(&mut command, payload.to_string().as_bytes());
        assert_eq!((output.code, output.out()), (0, String::new()), "{output:?}");
        assert!(self.killed || output.err().is_empty(), "{output:?}");
    }

    fn begins_run(&mut self, hooked: bool) {
        // The session would be in two places.
        if self.run.is_some() || hooked && self.at_work().contains(&0) {
            return;
        }
        let number = self.told.len();
        let script = format!("echo >$HOME/runs{number}; while [ -e $HOME/runs{number} ]; do sleep 0.01; done");
        let process = self.repo.spawn(&["run", "--", "sh", "-c", &script]);
        self.repo.wait_for(&format!("runs{number}"));
        let _ = writeln!(self.told, "a run begins{}", if hooked { ", of a's" } else { "" });
        self.settles();
        self.closes();
        self.run = Some(Run { process, hooked, told: false, waits: false, number });
        self.joins(RUN);
        if let (true, AtWork::Sure(at_work)) = (hooked, &mut self.at_work) {
            // Its prompts tell when it is at work.
            at_work.remove(&RUN);
        }
    }

    fn ends_run(&mut self, killed: bool) {
        let Some(mut run) = self.run.take() else { return };
        let _ = writeln!(self.told, "the run {}", if killed { "is killed" } else { "ends" });
        let end = || fs::remove_file(self.repo.home().join(format!("runs{}", run.number))).expect("end the run");
        if killed {
            run.process.kill().expect("kill oxundo");
            run.process.wait().expect("wait for oxundo");
            end();
            self.killed = true;
            return;
        }
        end();
        let output = Output::awaited(run.process);
        assert_eq!(output.code, 0, "{output:?}");
        if run.hooked {
            self.calls[0] = 0;
        }
        let mut left = self.at_work();
        left.retain(|who| *who != RUN && !(run.hooked && *who == 0));
        self.at_work = if left.is_empty() { AtWork::Nobody } else { AtWork::Sure(left) };
    }

    /// A command or a hook has closed the turn of a `run` that was killed.
    fn settles(&mut self) {
        if std::mem::take(&mut self.killed) {
            let mut left = self.at_work();
            left.remove(&RUN);
            self.at_work = if left.is_empty() { AtWork::Nobody } else { AtWork::Sure(left) };
        }
    }

    /// What was written since a command is decided: who had written it is an agent or not.
    fn decide(&mut self, agents: Whose, users: Whose) {
        for (token, by_agent) in std::mem::take(&mut self.open) {
            self.tokens.insert(token, if by_agent { agents } else { users });
        }
    }

    /// The open turn is over: what the user saved between its calls is the user's where all of them are told of.
    fn closes(&mut self) {
        let all_told = !self.lost && self.calls == [0; 2] && self.parts.values().all(|has_called| *has_called);
        let whose = if all_told { Whose::Users } else { Whose::Anybodys };
        for (token, _) in std::mem::take(&mut self.between) {
            self.tokens.insert(token, whose);
        }
        self.parts = self.at_work().into_iter().map(|who| (who, false)).collect();
        self.lost = false;
    }

    /// What the user saved in the tracked file cannot be told from what a call writes there that names no file.
    fn blurs(&mut self) {
        for (token, _) in self.between.extract_if(.., |(_, new)| !*new) {
            self.tokens.insert(token, Whose::Anybodys);
        }
    }

    /// The agent writes, in a call of its own where steps are taken and it is at work.
    fn works(&mut self, who: usize, new: bool) {
        let is_in_call = self.calls[who] > 0;
        if !self.steps || !self.at_work().contains(&who) || is_in_call {
            if is_in_call && !new {
                self.blurs();
            }
            return self.write(Some(who), new);
        }
        let others_call = self.calls != [0; 2];
        let tool = if new || self.tokens.len().is_multiple_of(2) { "Bash" } else { "Edit" };
        if !new && (others_call || tool == "Bash") {
            self.blurs();
        }
        self.calls_tool(tool, who);
        self.write(Some(who), new);
        let _ = writeln!(self.told, "{} has called {tool}", name(who));
        self.hook_of(tool, "PostToolUse", who, self.calls[who]);
        self.calls[who] -= 1;
    }

    fn calls_tool(&mut self, tool: &str, who: usize) {
        let _ = writeln!(self.told, "{} calls {tool}", name(who));
        if !matches!(&self.at_work, AtWork::Sure(at_work) if at_work.contains(&who)) {
            self.joins(who);
        }
        self.parts.insert(who, true);
        self.calls[who] += 1;
        self.hook_of(tool, "PreToolUse", who, self.calls[who]);
    }

    fn write(&mut self, by: Option<usize>, new: bool) {
        let token = self.tokens.len() + self.open.len();
        let text = format!("token{token}.");
        if new {
            self.repo.write(format!("new{token}.txt"), format!("{text}\n"));
        } else {
            let file = TRACKED;
            let place = format!("line {token}\n");
            let content = String::from_utf8(self.repo.read(file)).expect("it is text");
            assert!(content.contains(&place), "{file} is the user's and has its lines");
            self.repo.write(file, content.replacen(&place, &format!("{place}{text}\n"), 1));
        }
        let whose = match (&self.at_work, by) {
            (AtWork::Sure(at_work), Some(who)) if at_work.contains(&who) => Some(Whose::Agents),
            (AtWork::Sure(_), None) if self.run.as_ref().is_some_and(|run| run.waits) => Some(Whose::Users),
            (AtWork::Sure(_), None) if self.steps && self.calls == [0; 2] => {
                self.between.push((token, new));
                Some(Whose::Anybodys)
            }
            (AtWork::Sure(_), _) => Some(Whose::Anybodys),
            (AtWork::Nobody, _) => Some(Whose::Users),
            (AtWork::Perhaps(_), _) => None,
        };
        if let (Some(Whose::Agents), Some(who)) = (whose, by) {
            self.known.get_mut(who).into_iter().for_each(|known| *known = true);
        }
        // Of another session, which has told of its end, nothing is evidence.
        let may_be_its = by.is_some_and(|who| self.at_work().contains(&who));
        match whose {
            Some(whose) => drop(self.tokens.insert(token, whose)),
            None => self.open.push((token, may_be_its)),
        }
        let by = by.map_or("the user", name);
        let _ = writeln!(self.told, "{by} writes {text} ({})", if new { "a new file" } else { "a tracked file" });
    }

    /// A turn of this session's begins, beside others that are surely at work.
    fn joins(&mut self, who: usize) {
        self.run.iter_mut().for_each(|run| run.told |= run.hooked && who == 0);
        let others = match &self.at_work {
            AtWork::Sure(at_work) => at_work.iter().copied().filter(|other| *other != who).collect(),
            _ => BTreeSet::new(),
        };
        if others.is_empty() {
            self.lost |= self.calls != [0; 2];
            self.closes();
            self.calls = [0; 2];
            self.parts.clear();
            if self.run.as_ref().is_some_and(|run| !run.told) {
                self.parts.insert(RUN, false);
            }
        }
        self.parts.entry(who).or_insert(false);
        self.decide(Whose::Users, Whose::Users);
        self.at_work = AtWork::Sure(others.into_iter().chain([who]).collect());
        self.run.iter_mut().for_each(|run| run.waits = false);
    }

    fn leaves(&mut self, who: usize, ended: bool) {
        let is_sure = ended || matches!(self.at_work, AtWork::Sure(_));
        let mut left = self.at_work();
        if !left.remove(&who) {
            return;
        }
        self.lost |= self.calls[who] > 0;
        self.calls[who] = 0;
        if left.is_empty() {
            self.closes();
        }
        if ended {
            // It was at work: what the user did in the same time cannot be told apart.
            self.decide(Whose::Agents, Whose::Anybodys);
        }
        self.at_work = match (left.is_empty(), is_sure) {
            (true, true) if let Some(run) = &mut self.run => {
                run.waits |= run.told;
                AtWork::Sure(left)
            }
            (true, _) => {
                self.decide(Whose::Users, Whose::Users);
                AtWork::Nobody
            }
            (false, true) => AtWork::Sure(left),
            (false, false) => AtWork::Perhaps(left),
        };
    }

    /// Every file, and what is committed. The id of a dirty commit that is made again has the time in it.
    fn bytes(&self) -> String {
        self.repo.sh("find . -name .git -prune -o -type f -print0 | sort -z | xargs -0 sha1sum; git log --format=%T%s; git diff --cached")
    }

    fn command(&mut self, op: &[&str]) {
        let before = self.bytes();
        let in_call = |who: &usize| self.calls.get(*who).is_some_and(|calls| *calls > 0);
        let in_flight = self.run.as_ref().is_some_and(|run| !run.waits)
            || matches!(&self.at_work, AtWork::Sure(at_work) if at_work.iter().any(in_call));
        let output = self.repo.oxundo([&["--json"], op].concat());
        self.settles();
        let _ = writeln!(self.told, "{op:?}: {}", output.code);
        assert!([0, 1, 3, 4].contains(&output.code), "{output:?}");
        let is_nothing = output.code == 4 && self.run.is_some();
        assert!(
            output.out().contains("\"busy\"") == in_flight || is_nothing,
            "busy while a call is in flight: {output:?}"
        );
        if output.code != 0 {
            assert_eq!(self.bytes(), before, "a refusal changes nothing: {output:?}");
            return;
        }
        self.decide(Whose::Users, Whose::Users);
        self.closes();
        if self.at_work != AtWork::Nobody && self.run.is_none() {
            self.at_work = AtWork::Perhaps(self.at_work());
        }
    }

    fn happens(&mut self, event: Event) {
        let is_there = |story: &Self, who: usize| story.at_work().contains(&who);
        match event {
            Event::Begin(who) => {
                self.prompts[who] += 1;
                let _ = writeln!(self.told, "{} begins", name(who));
                self.hook("UserPromptSubmit", who, 0);
                self.settles();
                self.joins(who);
            }
            Event::End(who) | Event::Gone(who) if is_there(self, who) => {
                let (ended, hook) = if matches!(event, Event::End(_)) { (true, "Stop") } else { (false, "SessionEnd") };
                let _ = writeln!(self.told, "{} {hook}", name(who));
                self.hook(hook, who, 0);
                self.leaves(who, ended);
            }
            Event::Call(who) if is_there(self, who) || self.known[who] => {
                self.calls_tool("Bash", who);
                // One that has no process is in flight for some seconds only.
                self.repo
                    .sh("! [ -e .git/oxundo/calls ] || sed -i 's/\"at\":\"20[0-9]*/\"at\":\"2999/; s/\"since_boot\":[0-9]*,//' .git/oxundo/calls");
            }
            Event::Called(who) if self.calls[who] > 0 => {
                let _ = writeln!(self.told, "{} has called", name(who));
                self.hook("PostToolUse", who, self.calls[who]);
                self.calls[who] -= 1;
            }
            Event::Writes(RUN, new) if self.run.is_some() => self.write(Some(RUN), new),
            Event::Writes(who, new) if who != RUN && self.prompts[who] > 0 => self.works(who, new),
            Event::Saves(new) => {
                self.write(None, new);
                if self.steps {
                    crate::steps::tick();
                }
            }
            Event::Undo => self.command(&["undo"]),
            Event::Redo => self.command(&["redo"]),
            Event::Runs(hooked) => self.begins_run(hooked),
            Event::RunEnds(killed) => self.ends_run(killed),
            Event::Restores(turn) => self.restores(turn),
            Event::Makes(false) => self.command(&["squash"]),
            Event::Makes(true) => {
                self.strays = true;
                let name = format!("branch{}", self.told.len());
                self.command(&["branch", &name]);
            }
            // Beside an agent at work it is part of the turn, and what it adds is the agent's: but for a commit between its
            // calls.
            Event::Git(which) if !matches!(self.at_work, AtWork::Sure(_)) || (self.steps && which == 0) => {
                self.strays = true;
                let script = GIT[which].replace('N', &self.told.len().to_string());
                let _ = writeln!(self.told, "{script}");
                self.repo.sh(&format!("{script} || true"));
            }
            Event::Look(look) => {
                let before = self.bytes();
                let _ = writeln!(self.told, "{:?}", LOOKS[look]);
                let output = self.repo.oxundo(LOOKS[look]);
                // But what nobody is at work in.
                if !self.killed {
                    assert!(!output.err().contains("closed turn"), "looking ends nothing: {output:?}");
                    assert_eq!(self.bytes(), before, "looking changes nothing");
                }
                self.settles();
            }
            _ => {}
        }
    }

    /// What the user brings back of an agent's is on the user's word.
    fn restores(&mut self, turn: usize) {
        let files = |repo: &Sandbox| repo.sh("find . -name .git -prune -o -type f -print0 | xargs -0 cat");
        let before = files(&self.repo);
        self.command(&["restore", &turn.to_string()]);
        let after = files(&self.repo);
        for token in self.tokens_in(&after, "", Whose::Agents) {
            if !before.contains(&format!("token{token}.")) {
                self.restored.insert(token);
            }
        }
        let mut gone = self.tokens_in(&before, "", Whose::Users);
        gone.retain(|token| !after.contains(&format!("token{token}.")));
        self.restored_over.extend(gone);
    }

    /// Whose tokens these lines are.
    fn tokens_in<'a>(&'a self, text: &'a str, before: &'a str, whose: Whose) -> Vec<usize> {
        let is_in = |token: &usize| text.contains(&format!("{before}token{token}."));
        self.tokens.iter().filter(|(_, is)| **is == whose).map(|(token, _)| *token).filter(is_in).collect()
    }

    /// Every commit that was ever made.
    fn judge_commits(&self) {
        let commits = self.repo.sh(
            "git cat-file --batch-all-objects --batch-check='%(objecttype) %(objectname)' | sed -n 's/^commit //p' |
             xargs git show -s --format='%H %s%x09%(trailers:key=Assisted-by)' | sed '/^$/d'",
        );
        for line in commits.lines() {
            let Some((id, about)) = line.split_once(' ') else { continue };
            let added = || self.repo.git(["show", "--format=", "-U0", id]);
            if about.starts_with("oxundo: uncommitted") {
                let mut agents = self.tokens_in(&added(), "+", Whose::Agents);
                agents.retain(|token| !self.restored.contains(token));
                assert_eq!(agents, Vec::<usize>::new(), "what is an agent's is not saved as the user's");
            } else if about.contains("Assisted-by") {
                let users = self.tokens_in(&added(), "+", Whose::Users);
                assert_eq!(users, Vec::<usize>::new(), "what is the user's is in no commit of an agent's");
            }
        }
    }

    fn ends(mut self) {
        self.ends_run(false);
        for who in 0..2 {
            while self.calls[who] > 0 {
                self.happens(Event::Called(who));
            }
        }
        self.decide(Whose::Users, Whose::Users);
        let output = self.repo.oxundo(["undo", "--to", "0"]);
        let _ = writeln!(self.told, "undo --to 0: {}", output.code);
        assert!(self.strays || [0, 4].contains(&output.code), "all of it can be undone: {output:?}");
        self.judge_commits();
        let files = self.repo.sh("find . -name .git -prune -o -type f -print0 | xargs -0 cat");
        // What the user's restore has put away comes back with its undo.
        let is_away = |token: &usize| output.code != 0 && self.restored_over.contains(token);
        let is_users = |(token, whose): (&usize, &Whose)| (*whose == Whose::Users).then_some(*token);
        let mut users: Vec<usize> = self.tokens.iter().filter_map(is_users).collect();
        // What they committed is where they committed it.
        let committed =
            if self.strays { self.repo.git(["log", "--branches", "-p", "--format="]) } else { String::new() };
        let mut there = self.tokens_in(&format!("{files}{committed}"), "", Whose::Users);
        users.retain(|token| !is_away(token));
        there.retain(|token| !is_away(token));
        assert_eq!(there, users, "all that is the user's is there");
        if self.strays {
            return self.repo.assert_sound();
        }
        assert_eq!(self.tokens_in(&files, "", Whose::Agents), Vec::<usize>::new(), "nothing of an agent's is");
        let text = String::from_utf8(self.repo.read(TRACKED)).expect("it is text");
        let lines = text.lines().filter(|line| !line.starts_with("token")).map(|line| format!("{line}\n"));
        assert_eq!(lines.collect::<String>(), ruled(), "all else is as it was before the first turn");
        self.repo.assert_sound();
    }
}

#[test]
fn with_evidence_a_change_is_its_sessions_and_without_any_the_users() {
    let cases = random_cases(16);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 400, ..Config::default() };
    // The same stories each time, but for who asks for others.
    let rng = match std::env::var("OXUNDO_SEED").ok().and_then(|seed| seed.parse::<u8>().ok()) {
        Some(seed) => TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]),
        None => TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    };
    let outcome = TestRunner::new_with_rng(config, rng).run(
        &(prop::bool::weighted(0.25), prop::bool::weighted(0.75), vec(phrase(), 6..24)),
        |(ghost, steps, events)| {
            let mut story = Story::begin(ghost, steps);
            let told = std::cell::RefCell::new(String::new());
            catch_unwind(AssertUnwindSafe(|| {
                for event in events.into_iter().flatten() {
                    story.happens(event);
                    told.borrow_mut().clone_from(&story.told);
                }
                story.ends();
            }))
            .map_err(|panic| {
                let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
                TestCaseError::fail(format!("{text}\nghost: {ghost}, steps: {steps}\n{}", told.borrow()))
            })
        },
    );
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn stories_that_chance_seldom_tells() {
    use Event::{Begin, Call, Called, End, Git, Gone, Look, Makes, Redo, RunEnds, Runs, Saves, Undo, Writes};
    let (saves, writes) = (Saves(false), Writes(0, false));
    let stories: [&[Event]; 20] = [
        &[Begin(0), writes, End(0), Begin(1), Writes(1, false), Runs(true), Call(0), RunEnds(false), saves, Undo],
        // Beside a run: one that is killed, and one whose agent waits for a prompt.
        &[saves, Begin(0), Runs(false), writes, RunEnds(true), Look(0), writes, End(0), saves, Begin(0)],
        &[Runs(true), Begin(1), Writes(1, false), End(1), Begin(0), writes, End(0), RunEnds(false), saves, Begin(0)],
        &[
            Runs(true),
            Begin(0),
            writes,
            End(0),
            Begin(1),
            Writes(1, false),
            Undo,
            End(1),
            RunEnds(false),
            saves,
            Begin(0),
        ],
        &[Begin(1), Call(1), Runs(false), Writes(1, false), RunEnds(false), Undo, Called(1), Undo, saves, Begin(0)],
        // The other's prompt while that agent waits for its own, and what is saved in the middle of it; undo after that.
        &[Runs(true), Begin(0), writes, End(0), Begin(1), Writes(1, true), saves, Writes(1, true), End(1)],
        &[
            Runs(true),
            Begin(0),
            writes,
            End(0),
            Begin(1),
            Writes(1, true),
            End(1),
            saves,
            Undo,
            Begin(0),
            writes,
            End(0),
        ],
        &[Runs(true), Begin(0), writes, Begin(1), End(0), Writes(1, true), Gone(1), saves, Undo, Redo],
        &[Runs(true), Begin(0), writes, Gone(0), saves, Undo, Begin(0), writes, End(0)],
        // Its agent has told of nothing yet: what is saved between the other's calls may be its.
        &[Runs(true), Begin(1), Writes(1, true), saves, Writes(1, true), End(1), Begin(0), writes, End(0)],
        // The second prompt in a run, which is called by another name than its agent's hooks give.
        &[
            Runs(true),
            Begin(0),
            Writes(0, true),
            End(0),
            saves,
            Begin(0),
            Writes(0, true),
            saves,
            Writes(0, true),
            End(0),
            Begin(0),
        ],
        // The user's work is uncommitted again, and in the file that the agent goes on to write.
        &[saves, Begin(0), writes, Undo, writes, End(0)],
        &[Begin(0), writes, Undo, saves, Undo, writes, End(0)],
        // And what the agent has written there is uncommitted when the next prompt comes.
        &[saves, Begin(0), writes, Undo, writes, End(0), Begin(0), writes, End(0)],
        &[saves, Begin(0), writes, Undo, writes, End(0), saves, Begin(1), Writes(1, false), Begin(1)],
        // On another branch, of another name, or of oxundo's.
        &[saves, Begin(0), writes, Undo, writes, End(0), Git(1), saves, Begin(0), writes, End(0)],
        &[saves, Begin(0), writes, Undo, writes, End(0), Git(2), Git(3), Begin(0), writes, End(0)],
        &[saves, Begin(0), writes, Undo, writes, End(0), Makes(true), saves, Begin(0), writes, End(0)],
        // A call of the last prompt that nothing told the end of, and one of the next.
        &[Begin(0), Begin(1), writes, Call(0), End(0), Call(0), Called(0), writes, Undo],
        &[Begin(0), writes, Undo, Begin(1), Writes(1, true), End(1), Call(0), writes, Called(0), saves, End(0)],
    ];
    for ghost in [false, true] {
        for events in part(stories) {
            let mut story = Story::begin(ghost, true);
            for event in events {
                story.happens(*event);
            }
            story.ends();
        }
    }
}
