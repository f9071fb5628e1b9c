//! The keys of a terminal, job control and signals behave as they would without the wrapper, and the
//! turn is recorded whatever the agent died of.

use crate::sandbox::Sandbox;
use crate::terminal::Terminal;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// A shell with job control in a terminal, as a user has it.
pub(crate) fn shell(repo: &Sandbox) -> Terminal {
    let mut bash = repo.oxundo_command([""; 0]);
    let mut command = Command::new("bash");
    command.args(["--norc", "--noprofile", "-i"]).current_dir(repo.root());
    command.envs(bash.env("PS1", "$ ").get_envs().filter_map(|(key, value)| Some((key, value?))));
    let mut terminal = Terminal::start(command);
    terminal.shows("$ ");
    terminal
}

/// Types `oxundo run` with an agent that runs a script; waits until that says `ready`.
fn run(terminal: &mut Terminal, repo: &Sandbox, script: &str) {
    std::fs::write(repo.home().join("agent"), script).expect("write the agent");
    terminal.types("oxundo run -- sh ../home/agent\n").shows("ready");
}

impl Terminal {
    /// The shell has its prompt back, and the last command this exit code.
    #[track_caller]
    fn ended(&mut self, code: i32) -> &mut Self {
        self.types("echo \"it ended with\" $?\n").shows(&format!("it ended with {code}\r\n"))
    }
}

fn only_turn(repo: &Sandbox) -> Value {
    let mut log = repo.log();
    assert_eq!(log.len(), 1, "the turn is recorded: {log:?}");
    log.remove(0)
}

#[test]
fn ctrl_c_and_ctrl_backslash_are_the_agents() {
    for (key, signal, code) in [("\x03", "INT", 7), ("\x1c", "QUIT", 8)] {
        let repo = Sandbox::new();
        let before = repo.state();
        let mut terminal = shell(&repo);
        let script =
            format!("trap 'echo caught >caught; exit {code}' {signal}; echo re''ady; while :; do sleep 0.05; done");
        run(&mut terminal, &repo, &script);
        terminal.types(key).shows("$ ").ended(code);
        let turn = only_turn(&repo);
        assert_eq!((&turn["exit_code"], &turn["interrupted"]), (&code.into(), &false.into()), "{turn}");
        repo.assert_file("caught", "caught\n", "the agent got it, once");
        repo.undo();
        repo.state().assert_is(&before, "the turn is undone");
    }
}

#[test]
fn a_turn_that_ctrl_c_ended_is_recorded_as_interrupted() {
    let repo = Sandbox::new();
    let before = repo.state();
    let mut terminal = shell(&repo);
    run(&mut terminal, &repo, "echo half >half; echo re''ady; exec sleep 600");
    terminal.types("\x03").shows("$ ").ended(130);
    let turn = only_turn(&repo);
    assert_eq!((&turn["exit_code"], &turn["interrupted"]), (&130.into(), &true.into()), "{turn}");
    repo.undo();
    repo.state().assert_is(&before, "and undone");
}

#[test]
fn ctrl_z_stops_the_turn_and_fg_goes_on_with_it() {
    let repo = Sandbox::new();
    let mut terminal = shell(&repo);
    run(&mut terminal, &repo, "echo one >one; echo re''ady; read line; echo \"$line\" >two");
    for _ in 0..3 {
        terminal.types("\x1a").shows("Stopped").shows("$ ");
        repo.refuses(&["undo"], "busy");
        terminal.types("fg\n").shows("oxundo run");
        // The shell says so before it hands the terminal on: a key until then is its own.
        repo.sh("while ps -C oxundo -o stat= | grep -q T; do :; done");
    }
    terminal.types("typed\n").shows("$ ").ended(0);
    repo.assert_file("two", "typed\n", "the terminal is the agent's again");
    assert_eq!(only_turn(&repo)["files"].as_array().map(Vec::len), Some(2));
}

#[test]
fn an_agent_that_stops_itself_gives_the_shell_its_prompt_back() {
    let repo = Sandbox::new();
    let mut terminal = shell(&repo);
    run(&mut terminal, &repo, "echo re''ady; kill -STOP $$; echo on >on; kill -TSTP $$; echo two >two");
    terminal.shows("Stopped").shows("$ ").types("fg\n").shows("oxundo run");
    terminal.shows("Stopped").shows("$ ").types("fg\n").shows("oxundo run");
    terminal.shows("$ ").ended(0);
    repo.assert_file("two", "two\n", "the agent went on");
    repo.undo();
    repo.assert_absent("on", "it was one turn");
}

#[test]
fn a_signal_to_go_on_that_reaches_the_wrapper_alone_is_passed_on() {
    let repo = Sandbox::new();
    let mut terminal = shell(&repo);
    run(&mut terminal, &repo, "echo re''ady; kill -STOP $$; : >../home/on");
    terminal.shows("Stopped").shows("$ ").types("kill -CONT $(jobs -p)\n");
    repo.wait_for("on");
}

#[test]
fn a_terminal_that_is_closed_ends_the_agent_and_the_turn_is_recorded() {
    let repo = Sandbox::new();
    let mut terminal = shell(&repo);
    let script = "trap 'echo hung up >end; exit 0' HUP; echo re''ady; while :; do sleep 0.05; done";
    run(&mut terminal, &repo, script);
    drop(terminal);
    let start = Instant::now();
    while repo.log().first().is_none_or(|turn| turn["state"] == "open") {
        assert!(start.elapsed() < Duration::from_secs(60), "the turn is closed: {:?}", repo.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    repo.assert_file("end", "hung up\n", "the agent was told");
    assert_eq!(only_turn(&repo)["exit_code"], 0);
    repo.undo();
    repo.assert_absent("end", "it is undone");
}

#[test]
fn hanging_up_and_terminating_reach_the_agent_through_the_wrapper() {
    for (signal, code) in [("HUP", 3), ("TERM", 4)] {
        let repo = Sandbox::new();
        let script = format!(
            "trap 'echo caught >>caught; exit {code}' {signal}; : >../home/ready; while :; do sleep 0.05; done"
        );
        let mut child = repo.spawn(&["run", "--", "sh", "-c", &script]);
        repo.wait_for("ready");
        repo.sh(&format!("kill -{signal} {}", child.id()));
        assert_eq!(child.wait().expect("it ends").code(), Some(code));
        repo.assert_file("caught", "caught\n", "once");
        assert_eq!(only_turn(&repo)["exit_code"], code);
    }
}

#[test]
fn the_turn_is_recorded_whatever_the_agent_died_of() {
    for (signal, code) in [("KILL", 137), ("SEGV", 139), ("ABRT", 134), ("PIPE", 141), ("USR1", 138)] {
        let repo = Sandbox::new();
        let before = repo.state();
        repo.oxundo(["run", "--", "sh", "-c", &format!("ulimit -c 0; echo x >x; kill -{signal} $$")]).exits(code);
        let turn = only_turn(&repo);
        assert_eq!((&turn["exit_code"], &turn["interrupted"]), (&code.into(), &true.into()), "{turn}");
        repo.undo();
        repo.state().assert_is(&before, signal);
    }
}

// While an undo is at work

/// An undo in a process group of its own, as a shell starts it, which has replaced its files and waits for a filter that
/// git runs; and its stderr.
fn undo_that_waits(repo: &Sandbox, trap: &str) -> (Child, BufReader<ChildStderr>) {
    repo.write("../home/filter", format!(
        "if [ -e \"$HOME/armed\" ] && [ ! -e \"$HOME/ready\" ]; then {trap} echo $$ >\"$HOME/pid\"; : >\"$HOME/ready\"; exec sleep 600; fi; cat"
    ));
    repo.git(["config", "filter.slow.clean", "sh \"$HOME/filter\""]);
    repo.write(".gitattributes", "*.slow filter=slow\n");
    for number in 0..20 {
        repo.write(format!("{number}.slow"), "before\n");
    }
    repo.sh("git add -A; git commit -qm files");
    repo.agent("for f in *.slow; do echo after >>$f; done; rm 1.slow");
    repo.signal("armed");
    let mut undo = repo.oxundo_command(["undo"]);
    undo.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut undo = undo.spawn().expect("start oxundo");
    repo.wait_for("ready");
    let stderr = BufReader::new(undo.stderr.take().expect("stderr is a pipe"));
    (undo, stderr)
}

/// Sends a signal to all of a job, as the keys of a terminal do.
fn send(repo: &Sandbox, signal: &str, job: &Child) {
    repo.sh(&format!("kill -{signal} -{}", job.id()));
}

#[track_caller]
fn says(stderr: &mut BufReader<ChildStderr>, words: &str) {
    let mut line = String::new();
    stderr.read_line(&mut line).expect("read stderr");
    assert!(line.contains(words), "{line}");
}

#[test]
fn a_signal_in_the_middle_of_an_undo_has_it_rolled_back() {
    for signal in ["INT", "TERM", "HUP"] {
        let repo = Sandbox::new();
        let (mut undo, mut stderr) = undo_that_waits(&repo, "");
        assert_eq!(repo.read("0.slow"), b"before\n", "it is in the middle of it");
        send(&repo, signal, &undo);
        says(&mut stderr, "interrupted: rolling back");
        says(&mut stderr, "error: interrupted: nothing is changed");
        assert_eq!(undo.wait().expect("it ends").code(), Some(130), "{signal}");
        assert_eq!(repo.read("0.slow"), b"before\nafter\n", "{signal}: all is as it was");
        repo.assert_absent("1.slow", "the deletion too");
        assert_eq!(repo.git(["status", "--porcelain"]), "");
        assert!(!repo.exists(".git/index.lock"), "git is not kept out");
        assert_eq!(repo.git(["for-each-ref", "refs/oxundo/pending"]), "", "nothing is left to do");
        repo.undo();
        assert_eq!(repo.read("0.slow"), b"before\n", "and once more");
    }
}

#[test]
fn a_second_signal_leaves_the_rest_to_the_next_command() {
    let repo = Sandbox::new();
    let (mut undo, mut stderr) = undo_that_waits(&repo, "trap '' TERM INT;");
    send(&repo, "INT", &undo);
    says(&mut stderr, "interrupted: rolling back");
    send(&repo, "INT", &undo);
    says(&mut stderr, "the next oxundo command");
    assert_eq!(undo.wait().expect("it ends").code(), Some(130));
    repo.sh("kill -KILL $(cat ../home/pid)");
    assert!(!repo.exists(".git/index.lock"), "git is not kept out meanwhile");
    assert_ne!(repo.git(["for-each-ref", "refs/oxundo/pending"]), "", "the journal is left");
    repo.oxundo(["status"]).warns("rolled back an interrupted operation");
    assert_eq!(repo.read("0.slow"), b"before\nafter\n", "all is as it was");
    repo.undo();
}
