//! Completion: what is offered, that nothing is touched for it, and each shell with its real script.

use crate::manual::skipped;
use crate::sandbox::{Output, Sandbox};
use crate::steps::{call, hook};
use crate::terminal::Terminal;
use serde_json::json;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Three turns, the last one undone, and a checkpoint.
fn with_turns() -> Sandbox {
    let repo = Sandbox::new();
    for (agent, message) in [("claude", "add a cache"), ("codex", "mend the cache"), ("claude", "drop it")] {
        repo.oxundo(["run", "--agent", agent, "-m", message, "--", "sh", "-c", "echo x >>cache.txt"]).success();
    }
    repo.oxundo(["checkpoint", "before lunch"]).success();
    repo.undo();
    repo
}

/// What may follow: the last of the words is the one that is completed.
fn complete(repo: &Sandbox, words: &[&str]) -> String {
    let index = words.len().to_string();
    let output = repo.oxundo(["__complete", index.as_str(), "oxundo"].iter().chain(words));
    assert_eq!((output.code, output.err().as_str()), (0, ""), "it never fails: {output:?}");
    output.out()
}

/// The values without what they mean.
fn values(repo: &Sandbox, words: &[&str]) -> Vec<String> {
    let lines = complete(repo, words);
    lines.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn turns_are_offered_newest_first_with_their_messages() {
    let repo = with_turns();
    let text = complete(&repo, &["undo", "--to", ""]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "done turns and checkpoints: {text}");
    assert!(lines[0].starts_with("2\tcodex: mend the cache ("), "{text}");
    assert!(lines[1].starts_with("1\tclaude: add a cache ("), "{text}");
    assert!(lines[2].starts_with("before lunch\tcheckpoint ("), "{text}");
    let text = complete(&repo, &["redo", "--to="]);
    assert!(text.starts_with("--to=3\tclaude: drop it (") && text.contains(", undone)"), "{text}");
    for (words, wanted) in [
        (&["show", ""][..], &["3", "2", "1", "before lunch"][..]),
        (&["undo", "--only", ""], &["2", "1", "before lunch"]),
        (&["undo", "--only", "2"], &["2"]),
        (&["restore", "@"], &["@", "@~1"]),
        (&["diff", "1", ""], &["3", "2", "1", "before lunch"]),
        (&["squash", "1.."], &["1..2", "1..1"]),
        (&["checkpoint", "--delete", "be"], &["before lunch"]),
    ] {
        assert_eq!(values(&repo, words), wanted, "{words:?}");
    }
}

#[test]
fn commands_options_and_words_are_offered() {
    let repo = Sandbox::new();
    for (words, wanted) in [
        (&["un"][..], &["undo", "uninstall"][..]),
        (&["help", "re"], &["redo", "rewind", "restore"]),
        (&["undo", "--re"], &["--revert"]),
        (&["--color", ""], &["auto", "always", "never"]),
        (&["undo", "--edits", "m"], &["merge"]),
        (&["turn", ""], &["begin", "end", "abort"]),
        (&["init", "co"], &["codex", "copilot"]),
        (&["run", "--agent", "cl"], &["claude", "cline"]),
        (&["man", "ch"], &["checkpoint"]),
        (&["completions", ""], &["bash", "zsh", "fish", "powershell"]),
    ] {
        assert_eq!(values(&repo, words), wanted, "{words:?}");
    }
    assert!(!values(&repo, &[""]).iter().any(|value| value.starts_with('-') || value.starts_with('_')));
}

#[test]
fn what_the_shell_does_better_is_left_to_it() {
    let repo = Sandbox::new();
    for (words, wanted) in [
        (&["undo", "--", ""][..], "\tfiles"),
        (&["diff", "--", "s"], "\tfiles"),
        (&["show", "1", ""], "\tfiles"),
        (&["blame", "n"], "\tfiles"),
        (&["-C", ""], "\tdirs"),
        (&["man", "--install="], "\tdirs"),
        (&["run", "--", "gi"], "\tcommand\t3"),
        (&["run", "-m", "add", "claude", "--res"], "\tcommand\t4"),
        (&["run", "-m", "add", ""], "\tcommand\t4"),
    ] {
        assert_eq!(complete(&repo, words), wanted, "{words:?}");
    }
}

#[test]
fn a_directory_that_is_named_counts() {
    let repo = with_turns();
    let elsewhere = repo.beside("home");
    let text = complete(&elsewhere, &["-C", "../repo", "undo", "--to", "2"]);
    assert!(text.starts_with("2\tcodex: mend the cache"), "{text}");
}

/// [`with_turns`], and three worktrees: one of two turns, of which the second has two steps, was removed.
fn with_worktrees() -> Sandbox {
    let repo = with_turns();
    repo.linked("empty");
    repo.linked("there").oxundo(["run", "--agent", "codex", "-m", "there", "--", "touch", "t"]).success();
    let tree = repo.linked("tree");
    tree.oxundo(["run", "--agent", "claude", "-m", "abroad", "--", "touch", "one"]).success();
    tree.oxundo(["checkpoint", "theirs"]).success();
    hook(&tree, "s", "UserPromptSubmit", &json!({}));
    for (id, script) in [(1, "echo first >one"), (2, "echo second >one")] {
        call(&tree, "s", id, "Bash", &json!({"command": script}), script);
    }
    hook(&tree, "s", "Stop", &json!({}));
    repo.git(["worktree", "remove", "--force", "../tree"]);
    repo
}

#[test]
fn states_of_other_worktrees_are_offered_behind_their_names() {
    let repo = with_worktrees();
    let usual = ["3", "2", "1", "before lunch", "there:", "tree:"];
    for (words, wanted) in [
        (&["show", ""][..], &usual[..]),
        (&["diff", "1", ""], &usual),
        (&["restore", "t"], &["there:", "tree:"]),
        (&["branch", "again", "tr"], &["tree:"]),
        (&["show", "tree:"], &["tree:2", "tree:1", "tree:theirs"]),
        (&["describe", "tree:"], &["tree:2", "tree:1", "tree:theirs"]),
        (&["keep", "tree:1"], &["tree:1"]),
        (&["restore", "tree:2."], &["tree:2.1", "tree:2.2"]),
        (&["log", "--worktree", ""], &["there", "tree"]),
        // What is done to a turn is done where it was made.
        (&["undo", "--to", ""], &["2", "1", "before lunch"]),
        (&["undo", "--to", "tree:"], &[]),
    ] {
        assert_eq!(values(&repo, words), wanted, "{words:?}");
    }
    let text = complete(&repo, &["show", "t"]);
    assert_eq!(text, "there:\tworktree, 1 turn\ntree:\tremoved worktree, 2 turns");
    let text = complete(&repo, &["show", "tree:2.2"]);
    assert_eq!(text, "tree:2.2\tBash echo second >one");
}

/// Every file there is, `.git` and all, with what changes when it is written.
fn every_file(repo: &Sandbox) -> Vec<String> {
    let mut found = Vec::new();
    let mut directories = vec![repo.base()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).expect("list a directory").flatten() {
            let about = entry.metadata().expect("look at a file");
            if about.is_dir() {
                directories.push(entry.path());
            }
            let changed = (about.ino(), about.len(), about.ctime(), about.ctime_nsec());
            found.push(format!("{} {changed:?}", entry.path().display()));
        }
    }
    found.sort();
    found
}

#[test]
fn completion_changes_nothing() {
    let repo = with_turns();
    // A turn that is to be settled: its session is over.
    repo.oxundo(["turn", "begin", "--session", "one"]).success();
    repo.write("cache.txt", "more\n");
    let before = every_file(&repo);
    for words in
        [&["undo", "--to", ""][..], &["show", "@"], &["checkpoint", "--delete", ""], &["redo", "--to", ""], &[""]]
    {
        complete(&repo, words);
    }
    assert_eq!(every_file(&repo), before, "completion reads only");
    let first = complete(&repo, &["show", ""]);
    assert!(first.starts_with("4\t") && first.lines().next().is_some_and(|line| line.ends_with(", open)")), "{first}");
}

#[test]
fn completion_is_silent_where_nothing_can_be_read() {
    let nowhere = Sandbox::without_repository();
    let before = every_file(&nowhere);
    assert_eq!(complete(&nowhere, &["undo", "--to", ""]), "");
    assert_eq!(complete(&nowhere, &["-C", "/not/there", "undo", "--to", ""]), "");
    assert_eq!(every_file(&nowhere), before, "and makes nothing");
    let new = Sandbox::unborn();
    let before = every_file(&new);
    assert_eq!(complete(&new, &["undo", "--to", ""]), "");
    assert_eq!(every_file(&new), before, "nothing is made before the first turn");
    let damaged = with_turns();
    damaged.sh("git update-ref refs/oxundo/timeline HEAD");
    assert_eq!(complete(&damaged, &["undo", "--to", ""]), "");
    let output = damaged.oxundo(["__complete", "2", "oxundo", "un"]);
    assert_eq!((output.code, output.err().as_str()), (0, ""), "a word that a shell dropped is taken for empty");
}

fn is_there(program: &str) -> bool {
    let there = Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    if there.is_err() {
        skipped(program);
    }
    there.is_ok()
}

fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("completions").join(name).display().to_string()
}

/// A shell in a terminal, with the sandbox's environment.
fn terminal(repo: &Sandbox, program: &str, args: &[&str]) -> Terminal {
    let with = repo.oxundo_command([""; 0]);
    let mut command = Command::new(program);
    command.env_clear().args(args).current_dir(repo.root());
    command.envs(with.get_envs().filter_map(|(key, value)| Some((key, value?))));
    Terminal::start(command)
}

#[test]
fn the_scripts_are_what_the_command_prints() {
    let nowhere = Sandbox::without_repository();
    for (shell, name) in
        [("bash", "oxundo.bash"), ("zsh", "oxundo.zsh"), ("fish", "oxundo.fish"), ("powershell", "oxundo.ps1")]
    {
        let text = std::fs::read_to_string(script(name)).expect("read a script");
        let output = nowhere.oxundo(["completions", shell]);
        assert_eq!((output.code, output.stdout.as_slice()), (0, text.as_bytes()), "{shell}");
        assert!(text.contains("oxundo __complete"), "{shell} asks oxundo");
    }
    nowhere.oxundo(["completions", "tcsh"]).exits(2);
}

#[test]
fn bash_completes() {
    if !is_there("bash") {
        return;
    }
    let repo = with_turns();
    let complete = |words: &str| {
        let test = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; {}; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script("oxundo.bash"),
            if words.starts_with("git") { "_git_oxundo" } else { "_oxundo" },
        );
        let mut bash = terminal_less(&repo, "bash");
        let output = Output::of(bash.args(["--norc", "--noprofile", "-c", &test]));
        assert_eq!((output.code, output.err().as_str()), (0, ""), "{output:?}");
        output.out()
    };
    assert_eq!(complete("oxundo un"), "undo\nuninstall");
    assert_eq!(complete("oxundo undo --to ''"), "2\n1\nbefore\\ lunch");
    assert_eq!(complete("oxundo redo --to = ''"), "3\nbefore\\ lunch", "bash takes '--to=' for two words");
    assert_eq!(complete("oxundo redo --to ="), "3\nbefore\\ lunch");
    assert_eq!(complete("oxundo undo -- ca"), "cache.txt");
    assert_eq!(complete("git oxundo un"), "undo\nuninstall");
    repo.git(["config", "alias.back", "oxundo undo"]);
    assert_eq!(complete("git back --to ''"), "2\n1\nbefore\\ lunch", "an alias is seen through");
    assert_eq!(complete("git status --to ''"), "");
}

/// A shell without a terminal.
fn terminal_less(repo: &Sandbox, program: &str) -> Command {
    let with = repo.oxundo_command([""; 0]);
    let mut command = Command::new(program);
    command.env_clear().current_dir(repo.root()).stdin(Stdio::null());
    command.envs(with.get_envs().filter_map(|(key, value)| Some((key, value?))));
    command
}

#[test]
fn bash_completes_in_a_terminal() {
    if !is_there("bash") {
        return;
    }
    let repo = with_turns();
    let mut bash = terminal(&repo, "bash", &["--norc", "--noprofile", "-i"]);
    bash.types(&format!("PS1='re''ady> '; source {}\n", script("oxundo.bash"))).shows("ready> ");
    bash.types("oxundo undo --to \t\t").shows("codex: mend the cache").shows("claude: add a cache");
    bash.types("2\x01echo \x05 --dry-run\n").shows("oxundo undo --to 2 --dry-run\r\n").shows("ready> ");
    bash.types("oxundo redo --to be\t\x01echo \x05\n").shows("oxundo redo --to before lunch\r\n");
}

#[test]
fn bash_completes_behind_a_colon() {
    if !is_there("bash") {
        return;
    }
    let repo = with_worktrees();
    let mut bash = terminal(&repo, "bash", &["--norc", "--noprofile", "-i"]);
    bash.types(&format!("PS1='re''ady> '; source {}\n", script("oxundo.bash"))).shows("ready> ");
    for breaks in ["", "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}; "] {
        bash.types(&format!("{breaks}echo o''k\n")).shows("ok\r\n").shows("ready> ");
        bash.types("oxundo show tr\t2\x01echo \x05\n").shows("oxundo show tree:2\r\n").shows("ready> ");
        bash.types("oxundo show tree:th\t\x01echo \x05\n").shows("oxundo show tree:theirs\r\n").shows("ready> ");
        bash.types("oxundo show tree:\t\t").shows("tree:2").shows("claude: work of s").shows("tree:1");
        bash.types("2.\t1\x01echo \x05\n").shows("oxundo show tree:2.1\r\n").shows("ready> ");
    }
}

#[test]
fn zsh_completes() {
    if !is_there("zsh") {
        return;
    }
    let repo = with_worktrees();
    // As a package installs it: a file in a directory of functions.
    let functions = repo.home().join("functions");
    std::fs::create_dir(&functions).expect("make a directory");
    for name in ["_oxundo", "_git-oxundo"] {
        std::fs::copy(script("oxundo.zsh"), functions.join(name)).expect("install the script");
    }
    for begin in [
        format!("fpath=({} $fpath); autoload -U compinit; compinit -D -u", functions.display()),
        format!("autoload -U compinit; compinit -D -u; source {}", script("oxundo.zsh")),
    ] {
        let mut zsh = terminal(&repo, "zsh", &["-f", "-i"]);
        zsh.types(&format!("{begin}; PS1='re''ady> '\n")).shows("\x1b[Jready> ");
        zsh.types("oxundo undo --to \t").shows("codex: mend the cache").shows("claude: add a cache");
        zsh.types("1 --dr\t\n").shows("Would undo turn 2").shows("ready> ");
        zsh.types("git oxundo redo --to=\t").shows("claude: drop it");
        zsh.types("3 --dr\t\n").shows("Would redo turn 3").shows("ready> ");
        zsh.types("oxundo show tr\t2.\t").shows("Bash echo second >one");
        zsh.types("2 --stat\n").shows("step 2.2 (claude: Bash echo second >one)").shows("ready> ");
    }
}

#[test]
fn fish_completes() {
    if !is_there("fish") {
        return;
    }
    let repo = with_worktrees();
    let complete = |line: &str| {
        let mut fish = terminal_less(&repo, "fish");
        let test = format!("source {}; complete -C '{line}'", script("oxundo.fish"));
        let output = Output::of(fish.args(["-c", &test]));
        assert_eq!((output.code, output.err().as_str()), (0, ""), "{output:?}");
        output.out()
    };
    for line in ["oxundo undo --to ", "git oxundo undo --to ", "git -C . oxundo undo --to "] {
        let text = complete(line);
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].starts_with("2\tcodex: mend the cache ("), "{line}: {text}");
        assert!(lines[1].starts_with("1\tclaude: add a cache ("), "{line}: {text}");
    }
    assert!(complete("oxundo un").starts_with("undo\tTake turns back"));
    assert!(complete("oxundo redo --to=").starts_with("--to=3\tclaude: drop it"));
    assert!(complete("oxundo undo -- ca").starts_with("cache.txt"));
    assert_eq!(complete("oxundo restore tr"), "tree:\tremoved worktree, 2 turns");
    assert!(complete("oxundo restore tree:").starts_with("tree:2\tclaude: work of s ("));
    assert!(complete("oxundo run -- git check").contains("checkout"), "the agent's command is completed as ever");
}

/// There is no PowerShell to be had where this is tested: what its script must say.
#[test]
fn powershell_registers_what_the_others_do() {
    let text = std::fs::read_to_string(script("oxundo.ps1")).expect("read a script");
    for part in [
        "Register-ArgumentCompleter -Native -CommandName oxundo, git-oxundo -ScriptBlock {",
        "param($wordToComplete, $commandAst, $cursorPosition)",
        "oxundo __complete $index @words 2>$null",
        "$value, $about = $_ -split \"`t\", 2",
        "[System.Management.Automation.CompletionResult]::new($text, $value, 'ParameterValue', $about)",
    ] {
        assert!(text.contains(part), "the script has {part:?}");
    }
    for (open, close) in [('{', '}'), ('(', ')')] {
        assert_eq!(text.matches(open).count(), text.matches(close).count(), "{open} and {close} are in pairs");
    }
}
