//! The keys of a terminal, job control and signals behave as they would without the wrapper, and the
//! turn is recorded whatever the agent died of.

use crate::sandbox::Sandbox;
use crate::terminal::Terminal;
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// A shell with job control in a terminal, as a user has it.
fn shell(repo: &Sandbox) -> Terminal {
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
