//! What is typed wrong is told in words of what it is about, with a line that can be typed; and what oxundo says by itself.

use crate::sandbox::{Output, Sandbox};
use crate::terminal::Terminal;
use clap::CommandFactory;
use gix::bstr::ByteSlice;
use oxundo::internals::Cli;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

/// A wrong command line, what it is told, and the line that is offered, where there is one.
const WRONG: &[(&str, &str, &str)] = &[
    ("undo README.txt", "'README.txt' is no number of turns", "oxundo undo -- README.txt"),
    ("undo gone.txt", "'gone.txt' is no number of turns", "oxundo undo --to gone.txt"),
    ("undo @~2", "'@~2' is no number of turns", "oxundo undo --to @~2"),
    ("undo 0", "0 is no turn to undo", "oxundo undo"),
    ("undo --to -1", "'-1' cannot be the value of '--to'", "oxundo undo -h"),
    ("log -n -1", "'-1' cannot be the value of '-n'", "oxundo log -h"),
    ("undo 2..3", "'2..3' is no number of turns", "oxundo undo --only 2..3"),
    ("undo HEAD", "'HEAD' is no number of turns", "oxundo undo"),
    ("undo --only ..1", "a range of turns begins with the older one", "oxundo log"),
    ("undo --force", "'undo' has no option '--force'", "oxundo undo --edits=overwrite"),
    ("reflog", "'reflog' is no command", "oxundo -h"),
    ("log --reverse", "'log' has no option '--reverse'", "oxundo log -h"),
    ("log -5x", "'-5x' is no number of turns", "oxundo log -5"),
    ("-C . -C .git log", "'-C' was given twice", "oxundo -C ./.git log"),
    ("-C . undo -C .git", "'-C' was given twice", "oxundo -C ./.git undo"),
    ("-qC. run -m hi -C=.git --ghost -- true", "'-C' was given twice", "oxundo -C ./.git -q run -m hi --ghost -- true"),
    ("-C. undo --frce", "'undo' has no option '--frce'", "oxundo -C . undo -h"),
    ("show 0", "0 is the state before the first turn, not a turn", "oxundo log"),
    ("--jsn log", "oxundo has no option '--jsn'", "oxundo --json log"),
    ("-c a=b log", "oxundo has no option '-c'", "oxundo -h"),
    ("completions ksh", "'ksh' is none of bash, zsh, fish, powershell", ""),
    ("gc --remove x", "'gc' needs '--stores'", "oxundo gc -h"),
    ("help undo log", "'help' takes one command", "oxundo help undo"),
    ("uninstall claud", "'claud' is not an agent that oxundo knows", "oxundo doctor"),
    ("squash 0..2", "0 is the state before the first turn, not a turn", "oxundo squash"),
    ("undo -2", "'undo' takes a number of turns without '-'", "oxundo undo 2"),
    ("redo 99999999999999999999", "99999999999999999999 is no number of turns to redo", "oxundo redo"),
    ("undo 2 README.txt", "'README.txt' is one word too many for 'undo'", "oxundo undo 2 -- README.txt"),
    ("undo 'a b'", "'a b' is no number of turns", "oxundo undo --to 'a b'"),
    ("restore 1 README.txt", "'README.txt' is one word too many for 'restore'", "oxundo restore 1 -- README.txt"),
    ("show 1 a b", "'b' is one word too many for 'show'", "oxundo show -h"),
    ("redo README.txt", "'README.txt' is no number of turns", "oxundo restore @ -- README.txt"),
    ("redo -- README.txt", "'README.txt' is no number of turns", "oxundo restore @ -- README.txt"),
    ("redo -p", "'redo' has no option '-p'", ""),
    ("help undo --frce", "'help' has no option '--frce'", "oxundo help undo"),
    ("show 2..1", "a range of turns begins with the older one", "oxundo show 1..2"),
    ("squash 2..1", "a range of turns begins with the older one", "oxundo squash 1..2"),
    ("undo -- ../outside", "'../outside' leads out of the worktree", ""),
    ("undo -- /etc/passwd", "'/etc/passwd' leads out of the worktree", ""),
    ("undo -- ''", "an empty word is no pathspec", ""),
    ("undo -- ':(bad)x'", "':(bad)x' is no pathspec: git knows no such magic", "oxundo undo -- './:(bad)x'"),
    ("blame -L foo README.txt", "'foo' is no range of lines here: git does not understand it", "oxundo blame -h"),
    ("undo --", "there is no path behind '--'", ""),
    ("restore 1 --", "there is no path behind '--'", ""),
    (
        "restore 1 -- README.txt nosuch --dry-run",
        "'--dry-run' stands behind '--', where paths are",
        "oxundo restore 1 --dry-run -- README.txt nosuch",
    ),
    ("undo -- --dry-run", "'--dry-run' stands behind '--', where paths are", "oxundo undo --dry-run"),
    ("undo --force", "'undo' has no option '--force'", ""),
    ("redo --all", "'redo' has no option '--all'", "oxundo log"),
    ("undo --dry-rnu", "'undo' has no option '--dry-rnu'", "oxundo undo --dry-run"),
    ("undo --edit=merge", "'undo' has no option '--edit'", "oxundo undo --edits=merge"),
    ("undo --edits=mrge", "'mrge' is none of merge, refuse, overwrite", "oxundo undo --edits=merge"),
    ("undo --edits", "'--edits' needs a value", "oxundo undo -h"),
    ("undo --steps=2 --to 0", "'--steps' and '--to' do not go together", "oxundo undo -h"),
    ("undo --dry-run --dry-run", "'--dry-run' was given twice", "oxundo undo -h"),
    ("--color=red log", "'red' is none of auto, always, never", "oxundo log -h"),
    ("unod", "'unod' is no command", "oxundo undo"),
    ("stauts --short", "'stauts' is no command", "oxundo status --short"),
    ("claude -p 'add a cache'", "'claude' is no command", "oxundo run -- claude -p 'add a cache'"),
    ("true", "'true' is no command", "oxundo run -- true"),
    ("no-such-thing-at-all", "'no-such-thing-at-all' is no command", "oxundo -h"),
    ("op log", "'op' is no command", "oxundo -h"),
    ("log README.txt", "'README.txt' is one word too many for 'log'", "oxundo log -- README.txt"),
    ("log main", "'main' is one word too many for 'log'", "oxundo log -h"),
    ("log --oneline", "'log' has no option '--oneline'", "oxundo log"),
    ("log --stat", "'log' has no option '--stat'", "oxundo show --stat"),
    ("-x", "oxundo has no option '-x'", "oxundo -h"),
    ("run", "'run' needs CMD", "oxundo run -- claude"),
    ("run --ghost -m 'a b' --", "'run' needs CMD", "oxundo run --ghost -m 'a b' -- claude"),
    ("--session foo undo", "oxundo has no option '--session'", "oxundo undo --session foo"),
    ("--session=s --dry-run undo", "oxundo has no option '--session'", "oxundo undo --dry-run --session=s"),
    ("-m x run -- true", "oxundo has no option '-m'", "oxundo run -m x -- true"),
    ("--sesion foo undo", "oxundo has no option '--sesion'", "oxundo -h"),
    ("undo last 2", "'2' is one word too many for 'undo'", "oxundo undo 2"),
    ("undo steps 2", "'2' is one word too many for 'undo'", "oxundo undo 2"),
    ("undo --dry-run 2 steps", "'steps' is one word too many for 'undo'", "oxundo undo --dry-run 2"),
    ("redo 1 turn", "'turn' is one word too many for 'redo'", "oxundo redo 1"),
    ("run --yes claude", "'run' has no option '--yes'", ""),
    ("restore", "'restore' needs TURN", "oxundo restore -h"),
    ("turn middle", "'middle' is none of begin, end, abort", "oxundo turn -h"),
    ("-C", "'-C' needs a value", "oxundo -h"),
    ("revert 2", "'revert' is no command", "oxundo undo --only 2"),
    ("diff 1 -- ../x", "'../x' leads out of the worktree", ""),
    ("diff 1:../x", "'../x' leads out of the worktree", ""),
    ("restore -p 1:../x", "'../x' leads out of the worktree", ""),
    ("show 1 ../x", "'../x' leads out of the worktree", ""),
    ("blame /etc/passwd", "'/etc/passwd' leads out of the worktree", ""),
    ("diff -- ':(bad)x'", "':(bad)x' is no pathspec: git knows no such magic", "oxundo diff -- './:(bad)x'"),
];

/// The lines in a hint that can be typed; one that has quotes itself is between other signs.
fn offered(hint: &str) -> Vec<String> {
    let sign = if hint.contains('`') { '`' } else { '\'' };
    hint.split(sign).skip(1).step_by(2).filter(|part| part.starts_with("oxundo")).map(str::to_owned).collect()
}

#[test]
fn what_is_typed_wrong_gets_the_line_to_type() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >>README.txt");
    repo.agent("echo 2 >>README.txt");
    let before = repo.everything();
    for (typed, message, line) in WRONG {
        let args = shell_words::split(typed).expect("words");
        let output = repo.oxundo(&args);
        // The agent's own code may be any other.
        let exit = if args.iter().any(|word| word == "run") { 125 } else { 2 };
        output.exits(exit);
        assert!(output.stdout.is_empty(), "{output:?}");
        let told = output.err();
        assert_eq!(told.lines().next(), Some(&*format!("error: {message}")), "{typed}");
        let hints: Vec<_> = told.lines().skip(1).collect();
        assert!(!hints.is_empty() && hints.iter().all(|hint| hint.starts_with("hint: ")), "{typed}: {told}");
        let offered: Vec<String> = hints.iter().flat_map(|hint| offered(hint)).collect();
        assert!(line.is_empty() || offered.contains(&(*line).to_owned()), "{typed}: {line} is not in {offered:?}");
        let (code, told) = repo.json(&args);
        let error = &told["error"];
        assert_eq!((code, &error["code"], &error["message"]), (exit, &"usage".into(), &(*message).into()), "{told}");
    }
    repo.everything().assert_is(&before, "nothing is changed");
}

#[test]
fn a_path_that_is_no_text_or_has_any_quote_gets_a_line_that_every_shell_reads() {
    for name in [&b"n\xe9"[..], b"it`s '8'.txt", b"n\xe9 100% -x"] {
        let repo = Sandbox::new();
        repo.write("README.txt", "one\n");
        fs::write(repo.path(name), "1\n").expect("write a file");
        repo.sh("git add -A; git commit -qm base");
        repo.agent("for f in *; do echo 2 >>\"./$f\"; done");
        let given = OsStr::from_bytes(name);
        let told = repo.oxundo(["undo".as_ref(), given]);
        told.exits(2);
        let told = told.err();
        let line = told.split_once("`oxundo ").and_then(|(_, line)| line.split('`').next());
        let line = format!("oxundo {}", line.unwrap_or_else(|| panic!("a line: {told}")));
        let program = concat!(env!("CARGO_BIN_EXE_oxundo"), " ");
        repo.sh(&line.replacen("oxundo ", program, 1));
        assert_eq!(repo.read(name), b"1\n", "{line}");
        assert_eq!(repo.read("README.txt"), b"one\n2\n", "{line}");
        let of_state = [&b"1:before:"[..], name].concat();
        let told = repo.oxundo(["restore".as_ref(), OsStr::from_bytes(&of_state)]).err();
        if name.to_str().is_err() {
            let line = told.split_once("`oxundo ").and_then(|(_, line)| line.split('`').next());
            fs::write(repo.path(name), "mine\n").expect("write a file");
            repo.sh(&format!("{program}{}", line.unwrap_or_else(|| panic!("a line: {told}"))));
        }
        assert_eq!(repo.read(name), b"1\n", "{told}");
        let told = repo.oxundo(["show".as_ref(), OsStr::from_bytes(&[b":", name].concat())]).err();
        let line = told.split_once("`oxundo ").and_then(|(_, line)| line.split('`').next());
        repo.sh(&format!("{program}{}", line.unwrap_or_else(|| panic!("a line: {told}"))));
    }
}

#[test]
fn the_line_that_is_offered_is_a_right_one() {
    let repo = Sandbox::new();
    for (typed, _, _) in WRONG {
        let told = repo.oxundo(shell_words::split(typed).expect("words")).err();
        for line in told.lines().flat_map(offered).filter(|line| !line.contains("TURN")) {
            // What it is about may not be there, and no agent is started.
            let words = shell_words::split(&line).expect("words");
            if words.get(1).is_none_or(|word| word != "run") {
                let output = repo.oxundo(&words[1..]);
                assert_ne!(output.code, 2, "{typed} leads to {line}: {output:?}");
            }
        }
    }
}

#[test]
fn one_path_has_the_same_forms_in_every_command() {
    let repo = Sandbox::new();
    repo.write("sub/below", "one\n").sh("git add -A; git commit -qm base");
    repo.agent("echo two >>README.txt");
    let top = repo.path("README.txt");
    let top = top.to_str().expect("text");
    let below = |args: &[&str]| Output::of(repo.oxundo_command(args).current_dir(repo.path("sub")));
    for file in ["../README.txt", ":/README.txt", top] {
        below(&["blame", file]).says("two");
        below(&["show", "1:after", file]).says("readme\ntwo");
        below(&["show", &format!("1:{file}")]).says("readme\ntwo");
        below(&["diff", &format!("0:{file}")]).says("+two");
        below(&["restore", &format!("0:{file}"), "--dry-run"]).says("README.txt");
        below(&["undo", "--only", &format!("1:{file}"), "--dry-run"]).says("README.txt");
    }
    let changed = below(&["diff", "0", "--", "../README.txt"]);
    changed.says("+two");
    for typed in
        [&["diff", "0:../README.txt"][..], &["diff", "1:before:../README.txt"], &["diff", "0:../README.txt", "1"]]
    {
        assert_eq!(below(typed).out(), changed.out(), "{typed:?}");
    }
    below(&["undo", "../README.txt"]).warns("oxundo undo -- ../README.txt");
    let dry = below(&["restore", "0:../README.txt", "--dry-run"]);
    dry.says("README.txt");
    below(&["undo", "--only", "1:../README.txt", "--dry-run"]).says("README.txt");
}

#[test]
fn what_no_state_has_leads_to_what_it_has() {
    let repo = Sandbox::new();
    repo.write("gone", "here\n").sh("git add -A; git commit -qm base");
    repo.agent("git rm -q gone");
    repo.oxundo(["checkpoint", "-m", "named"]).success();
    for (typed, line) in [
        (["restore", "0", "--", "no"], "show 0:after"),
        (["restore", "1", "--", "gone"], "show 1:after"),
        (["restore", "1:before", "--", "no"], "show 1:before"),
        (["restore", "named", "--", "no"], "show named"),
        (["restore", "op:1", "--", "no"], "show op:1"),
    ] {
        repo.oxundo(typed).warns(&format!("'oxundo {line}'"));
        let words: Vec<&str> = line.split(' ').collect();
        repo.oxundo(words).says("README.txt");
    }
    repo.oxundo(["show", "1:gone"]).warns("'oxundo show 1:after'");
    repo.oxundo(["show", "1:before:no"]).warns("'oxundo show 1:before'");
}

#[test]
fn a_turn_of_branches_is_told_as_that() {
    let repo = Sandbox::new();
    repo.sh("git branch old");
    repo.agent("git branch zz");
    repo.agent("git branch -D old");
    repo.agent("git switch -q zz");
    let log = repo.oxundo(["log"]);
    assert_eq!((log.out().matches("branches only").count(), log.out().matches("HEAD only").count()), (2, 1), "{log:?}");
    let at = &repo.head()[..7].to_owned();
    repo.oxundo(["show", "1"]).says(&format!("branch zz made at {at}"));
    repo.oxundo(["show", "2"]).says(&format!("branch old deleted at {at}"));
    repo.oxundo(["show", "3"]).says("HEAD to zz");
    repo.agent("mkdir made");
    repo.oxundo(["show", "4"]).says("directories only");
    repo.undo();
    let shown = Terminal::start(repo.oxundo_command(["run", "--", "git", "switch", "-q", "main"])).all();
    assert!(shown.contains(": 0 files +0 -0, HEAD to main"), "{shown}");
}

#[test]
fn a_run_that_starts_no_agent_is_125_and_is_reported() {
    let repo = Sandbox::new();
    let report = repo.path("../report");
    let report = report.to_str().expect("text");
    repo.oxundo(["-C", "nowhere", "run", "--report", report, "--", "touch", "started"]).exits(125);
    let told = fs::read_to_string(report).expect("a report");
    assert!(told.contains("\"code\":\"not_found\""), "{told}");
    repo.assert_absent("started", "no agent was started");
}

#[test]
fn turns_are_shown_from_one_to_another_and_a_file_leads_to_the_turns_that_changed_it() {
    let repo = Sandbox::new();
    for number in 1..=3 {
        repo.agent(&format!("echo {number} >n{number}"));
    }
    let shown = repo.oxundo(["show", "2.."]).out();
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text} is in {shown}"));
    assert!(at("turn 3 (") < at("+3") && at("+3") < at("turn 2 (") && at("turn 2 (") < at("+2"), "{shown}");
    assert!(!shown.contains("turn 1 ("), "{shown}");
    let (two, range) = (repo.json(["show", "2"]).1, repo.json(["show", "2..3"]).1);
    assert_eq!(
        (range["turns"][1]["turn"].clone(), range["turns"][1]["record"].clone()),
        (two["turn"].clone(), two["record"].clone())
    );
    let one = repo.json(["show", "1..3", "n2"]).1;
    let changed =
        one["turns"].as_array().expect("turns").iter().map(|turn| turn["files"].as_array().map_or(0, Vec::len));
    assert_eq!(changed.collect::<Vec<_>>(), [0, 1, 0]);
    let output = repo.oxundo(["show", "n2"]);
    output.exits(1);
    output.warns("run 'oxundo log -- n2' to see the turns that changed that file");
}

#[test]
fn a_failure_of_the_system_is_told_without_its_number() {
    let repo = Sandbox::new();
    let output = repo.oxundo(["-C", "nowhere", "undo"]);
    output.exits(1);
    assert_eq!(output.err().lines().next(), Some("error: cannot go to 'nowhere': No such file or directory"));
}

#[test]
fn an_agents_command_in_one_word_is_told_apart() {
    let repo = Sandbox::new();
    let output = repo.oxundo(["run", "--", "sh -c 'echo x'"]);
    output.exits(127);
    output.warns("`oxundo run -- sh -c 'echo x'`");
    let output = repo.oxundo(["run", "--", "no-such-agent -p x"]);
    output.exits(127);
    assert!(!output.err().contains("in words of its own"), "{output:?}");
}

#[test]
fn a_directory_is_told_apart_from_a_command() {
    let repo = Sandbox::new();
    repo.write("src/a.rs", "a\n");
    for (name, code) in [("src", 127), ("./src", 126)] {
        let output = repo.oxundo(["run", "--", name]);
        output.exits(code);
        output.warns(&format!("error: '{name}': a directory, not a command"));
        output.warns(&format!("hint: to run a command there: 'oxundo -C {name} run -- COMMAND'"));
    }
    assert!(repo.log().is_empty(), "nothing is recorded");
}

#[test]
fn each_line_that_is_offered_for_a_wrong_one_can_be_typed() {
    let repo = Sandbox::new();
    for (typed, meant) in [
        ("lgo", "run 'oxundo log'"),
        ("statu", "run 'oxundo status'"),
        ("go", "run 'oxundo -h' to see the commands"),
        ("version", "run 'oxundo --version'"),
        ("config", "run 'oxundo man config'"),
        ("oxundo undo 2", "run 'oxundo undo 2'"),
        ("git undo", "run 'oxundo undo'"),
        ("reset --hard", "run 'oxundo undo -h' to see what it takes"),
        ("undoo --dryrun", "run 'oxundo undo --dry-run'"),
        ("undo --dry", "run 'oxundo undo --dry-run'"),
        ("undo --branch main", "run 'oxundo undo -h' to see what it takes"),
        ("undo all", "'oxundo undo --to 0' takes every turn back"),
        ("undo last", "run 'oxundo undo' for one turn"),
        ("undo turn 3", "'oxundo undo --only 3' takes turn 3 alone out, 'oxundo undo --to 3' all later ones back"),
        ("undo #3", "'oxundo undo --only 3' takes turn 3 alone out, 'oxundo undo --to 3' all later ones back"),
        ("redo turn3", "'oxundo redo --to 3' brings turn 3 back"),
        ("log 3", "to see what it changed: 'oxundo show 3'"),
        ("log 1..3", "to see what it changed: 'oxundo show 1..3'"),
        ("checkpoint before lunch", "run `oxundo checkpoint 'before lunch'`"),
        ("describe 3 hello there", "run `oxundo describe 3 -m 'hello there'`"),
        ("branch 3", "run 'oxundo branch turn-3 3' to start one at that turn"),
        ("branch @", "run 'oxundo branch new @' to start one at that turn"),
        ("UNDO", "run 'oxundo undo'"),
        ("3", "if it is a turn: 'oxundo show 3'"),
        ("undo --dry-run=1", "run 'oxundo undo --dry-run'"),
        ("init claud", "run 'oxundo init claude'"),
        ("turn bgin", "run 'oxundo turn begin'"),
    ] {
        let output = repo.oxundo(typed.split(' '));
        output.exits(2);
        let hint = output.err().lines().find_map(|line| line.strip_prefix("hint: ").map(str::to_owned));
        assert_eq!(hint.as_deref(), Some(meant), "{typed}: {output:?}");
    }
    repo.oxundo(["undo 3"]).warns("hint: run 'oxundo undo 3'");
    repo.oxundo(["log", "-C", "/nowhere"]).warns("hint: run 'oxundo log' to do it here");
    repo.oxundo(["run", "-C", "/nowhere", "grep", "-C", "3"]).warns("hint: run 'oxundo run grep -C 3' to do it here");
    repo.oxundo(["blame", ""]).warns("error: 'blame' needs FILE");
    repo.oxundo(["turn"]).warns("error: 'turn' needs begin, end or abort");
}

#[test]
fn a_number_of_turns_is_given_to_log_as_to_git() {
    let repo = Sandbox::new();
    for number in 0..3 {
        repo.agent(&format!("echo {number} >>README.txt"));
    }
    assert_eq!(repo.json(["log", "-2"]), repo.json(["log", "-n", "2"]));
    assert_eq!(repo.oxundo(["log", "--all", "-1"]).out().lines().count(), 1);
    repo.oxundo(["log", "-x"]).exits(2);
    // What is the agent's stays as it is.
    repo.oxundo(["run", "--", "sh", "-c", "test \"$1$2\" = log-5", "sh", "log", "-5"]).success();
}

#[test]
fn the_short_help_has_every_command_on_one_screen() {
    let repo = Sandbox::new();
    let help = repo.oxundo(["-h"]).out();
    // With the line that asks for it, and the one after it.
    assert!(help.lines().count() <= 22, "{}", help.lines().count());
    assert!(help.lines().all(|line| line.len() <= 80), "{help}");
    let command = Cli::command();
    for subcommand in command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set()) {
        let name = subcommand.get_name();
        assert!(name == "help" || help.contains(name), "{name} is in it");
        if ["help", "hook"].contains(&name) {
            continue;
        }
        let mut command = repo.oxundo_command([name, "-h"]);
        let help =
            String::from_utf8(command.env("COLUMNS", "80").output().expect("ask for help").stdout).expect("text");
        let fits = help.lines().count() <= 24 && help.lines().all(|line| line.chars().count() <= 80);
        assert!(fits, "{} lines: {help}", help.lines().count());
        let (own, global) = help.split_once("\nGlobal options: ").expect("what every command takes comes last");
        assert!(own.contains("-h, --help") && !own.contains("--json") && global.contains("--json"), "{help}");
    }
    assert!(repo.oxundo(["--help"]).out().contains("Examples:"), "the long one is clap's");
}

#[test]
fn oxundo_alone_says_where_one_is() {
    let repo = Sandbox::new();
    let output = repo.oxundo([""; 0]);
    output.success();
    output.says("On 'main': no turns to undo");
    for number in 1..=7 {
        repo.agent(&format!("echo {number} >>README.txt"));
    }
    let before = repo.everything();
    let output = repo.oxundo([""; 0]);
    output.says("On 'main': 7 turns to undo");
    let turns: Vec<_> = output.out().lines().skip_while(|line| !line.is_empty()).skip(1).map(str::to_owned).collect();
    assert_eq!(turns.len(), 5, "{output:?}");
    assert!(turns[0].starts_with('7') && turns[4].starts_with('3'), "{output:?}");
    output.warns("hint: 'oxundo log' shows the others");
    let (_, told) = repo.json([""; 0]);
    assert_eq!((told["undo_depth"].as_u64(), told["turns"].as_array().map(Vec::len)), (Some(7), Some(5)));
    assert_eq!(told["more"], true);
    repo.everything().assert_is(&before, "it looks only");

    fs::create_dir(repo.home().join("elsewhere")).expect("make a directory");
    let elsewhere = repo.beside("home/elsewhere");
    assert_eq!(elsewhere.oxundo([""; 0]).out(), repo.oxundo(["-h"]).out(), "where no turn is, the commands");
    let (code, told) = elsewhere.json([""; 0]);
    assert_eq!((code, told["error"]["code"].as_str()), (1, Some("not_found")), "{told}");
}

#[test]
fn the_short_status_has_what_a_prompt_shows() {
    let repo = Sandbox::new();
    let short = || repo.oxundo(["status", "--short"]);
    assert_eq!(short().out(), "");
    repo.agent("echo 1 >>README.txt");
    repo.agent("echo 2 >>README.txt");
    assert_eq!(short().out(), "undo:2");
    repo.undo();
    assert_eq!(short().out(), "undo:1 redo:1");
    repo.write("README.txt", "mine\n");
    let before = repo.everything();
    assert_eq!(short().out(), "undo:1 redo:1 dirty");
    let (_, told) = repo.json(["status", "--short"]);
    assert_eq!((told["redo_depth"].as_u64(), told["dirty"].as_bool()), (Some(1), Some(true)), "{told}");
    repo.everything().assert_is(&before, "it looks only");
    repo.oxundo(["turn", "begin"]).success();
    assert_eq!(short().out(), "undo:1 redo:1 open:3");
}

#[test]
fn on_a_terminal_a_run_ends_with_a_line_about_its_turn() {
    let repo = Sandbox::new();
    let last = |args: &[&str]| {
        let shown = Terminal::start(repo.oxundo_command(args)).all();
        shown.lines().last().unwrap_or_default().trim_end().to_owned()
    };
    let head = || repo.head()[..7].to_owned();
    let before = head();
    let line = last(&["run", "--", "sh", "-c", "echo more >>README.txt; echo new >new.txt"]);
    assert_eq!(line, format!("turn 1: 2 files +2 -0, main {before}..{}", head()));
    assert_eq!(last(&["run", "--ghost", "--", "sh", "-c", "echo more >>new.txt"]), "turn 2: 1 file +1 -0");
    assert_eq!(last(&["run", "--", "true"]), "no turn: nothing changed");
    let line = last(&["run", "--ghost", "--", "sh", "-c", "echo x >x; kill -INT $$"]);
    assert_eq!(line, "turn 3 (interrupted): 1 file +1 -0");
    assert_eq!(last(&["-q", "run", "--ghost", "--", "sh", "-c", "echo y >y; echo said"]), "said", "it can be silenced");
    let output = repo.oxundo(["run", "--ghost", "--", "sh", "-c", "echo z >z"]);
    assert_eq!(output.err(), "", "it is for a terminal only");
}

#[test]
fn a_line_that_is_written_for_a_shell_is_offered_to_one() {
    let repo = Sandbox::new();
    for (given, line) in [("echo a && echo b >c", "sh -c 'echo a && echo b >c'"), ("echo a b", "echo a b")] {
        let output = repo.oxundo(["run", "--", given]);
        output.warns(&format!("oxundo run -- {line}"));
        repo.sh(&format!("oxundo run -- {line}"));
    }
    repo.assert_file("c", "b\n", "the hint does what was meant");
}

#[test]
fn help_takes_the_options_that_all_commands_have() {
    let repo = Sandbox::new();
    let help = repo.oxundo(["help", "undo"]).out();
    for words in
        [&["help", "undo", "--help"][..], &["help", "-h", "undo"], &["help", "-q", "undo"], &["undo", "--help"]]
    {
        assert_eq!(repo.oxundo(words).out(), help, "{words:?}");
    }
    assert_eq!(repo.oxundo(["help", "--help"]).out(), repo.oxundo(["help"]).out());
}
