//! The timeline as people see it: colours, widths, lanes, the pager, hints, and the turns of other worktrees.

use crate::sandbox::{Output, Sandbox, check_all};
use crate::terminal::Terminal;
use serde_json::json;
use std::process::Command;

/// The agent is at work, and nothing was ever committed.
#[test]
fn an_open_turn_is_shown_on_a_branch_without_a_commit() {
    for repo in [Sandbox::unborn(), Sandbox::without_repository()] {
        repo.agent("echo one >one");
        repo.undo();
        repo.oxundo(["turn", "begin"]).success();
        for args in [&["log"][..], &["log", "--all"], &["log", "--graph"], &["log", "--steps"], &["log", "--json"]] {
            repo.oxundo(args).says("open");
        }
        repo.oxundo(&[] as &[&str]).says("open");
        repo.oxundo(["turn", "end"]).success();
    }
}

/// Who switches branches has taken nothing off.
#[test]
fn what_another_branch_has_is_not_undone_by_hand() {
    let repo = Sandbox::new();
    repo.git(["switch", "-qc", "feat"]);
    repo.agent("echo one >one");
    repo.agent("echo two >two");
    repo.git(["switch", "-q", "main"]);
    let log = repo.oxundo(["log"]).out();
    assert_eq!(log.matches("[not here, on feat]").count(), 2, "{log}");
    repo.sh("git switch -q feat; git reset -q --hard HEAD~1; git switch -q main");
    let log = repo.oxundo(["log"]).out();
    assert!(log.contains("[undone by hand, on feat]") && log.contains("[not here, on feat]"), "{log}");
    repo.oxundo(["redo"]).success();
    repo.assert_file("one", "one\n", "redo brings it here");
}

/// A turn of a session.
fn turn(repo: &Sandbox, session: &str, agent: &str, message: &str, script: &str) {
    repo.oxundo(["run", "--session", session, "--agent", agent, "-m", message, "--", "sh", "-c", script]).success();
}

/// Text without its ages: they are those of a test's few seconds.
fn ageless(text: &str) -> String {
    let mut words: Vec<&str> = text.split_inclusive(' ').collect();
    for at in 2..words.len() {
        if words[at].starts_with("ago") && ["s ", "min "].contains(&words[at - 1]) {
            let digits = words[at - 2].trim_end().trim_start_matches(|c: char| !c.is_ascii_digit());
            let start = words[at - 2].len() - digits.len() - 1;
            words[at - 2] = &words[at - 2][..start];
            words[at - 1] = "";
        }
    }
    let is_commit = |word: &str| word.len() == 7 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let commitless = |line: &str| match line.rsplit_once("  ") {
        Some((before, last)) if is_commit(last) => before.to_owned(),
        _ => line.to_owned(),
    };
    words.concat().lines().map(commitless).collect::<Vec<_>>().join("\n")
}

/// Two branches and two sessions, with turns that are undone, given up and interrupted.
fn busy() -> Sandbox {
    let repo = Sandbox::new();
    turn(&repo, "a", "claude", "add a cache", "echo 1 >>a");
    turn(&repo, "b", "codex", "describe it", "echo 1 >>doc; echo 2 >>doc");
    turn(&repo, "a", "claude", "make it faster", "echo 2 >>a");
    turn(&repo, "b", "codex", "more of it", "echo 3 >doc");
    repo.git(["switch", "-q", "-c", "topic"]);
    turn(&repo, "a", "claude", "try it", "echo 3 >>a");
    turn(&repo, "a", "claude", "give it up", "echo 4 >>a");
    repo.undo();
    turn(&repo, "a", "claude", "do it well", "echo 5 >>a");
    turn(&repo, "a", "claude", "go too far", "echo 6 >>a");
    repo.undo();
    repo
}

#[test]
fn the_timeline_is_drawn_in_lanes() {
    let repo = busy();
    assert_eq!(
        ageless(&repo.oxundo(["log", "--all", "--graph"]).out()),
        "\
o  8  ago  claude: go too far [undone]  1 file +1 -0
*  7  ago  claude: do it well [you are here]  1 file +1 -0
| o  6  ago  claude: give it up [left]  1 file +1 -0
|/
*  5  ago  claude: try it  1 file +1 -0
| *  4  ago  codex: more of it [on main]  1 file +1 -2
* |  3  ago  claude: make it faster [on main]  1 file +1 -0
| *  2  ago  codex: describe it [on main]  1 file +2 -0
|/
*  1  ago  claude: add a cache [on main]  1 file +1 -0"
    );
    let mut command = repo.oxundo_command(["log", "--graph"]);
    let output = Output::of(command.env("LC_ALL", "C.UTF-8"));
    assert_eq!(
        ageless(&output.out()),
        "\
○  8  ago  claude: go too far [undone]  1 file +1 -0
●  7  ago  claude: do it well [you are here]  1 file +1 -0
●  5  ago  claude: try it  1 file +1 -0
│ ●  4  ago  codex: more of it [on main]  1 file +1 -2
● │  3  ago  claude: make it faster [on main]  1 file +1 -0
│ ●  2  ago  codex: describe it [on main]  1 file +2 -0
├─╯
●  1  ago  claude: add a cache [on main]  1 file +1 -0"
    );
}

#[test]
fn an_open_and_an_interrupted_turn_are_marked() {
    let repo = Sandbox::new();
    repo.oxundo(["turn", "begin", "--session", "s", "--agent", "claude"]).success();
    repo.write("README.txt", "one\n");
    repo.oxundo(["turn", "abort", "--session", "s"]).success();
    repo.oxundo(["turn", "begin", "--session", "s", "--agent", "claude", "-m", "目录"]).success();
    assert_eq!(
        ageless(&repo.oxundo(["log", "--graph"]).out()),
        "@  2  ago  claude: 目录 [open]\n*  1  ago  claude [interrupted]  1 file +1 -1"
    );
}

#[test]
fn colours_tell_what_is_what() {
    let repo = busy();
    let output = repo.oxundo(["log", "--all", "-n", "5", "--color=always"]);
    let mut shown = ageless(&output.out()).replace('\x1b', "^");
    for turn in repo.json(["log", "--all"]).1["turns"].as_array().expect("turns") {
        let commit = turn["commits"][0].as_str().expect("each has one");
        shown = shown.replace(&commit[..7], "COMMIT");
    }
    let wanted = "\
^[2m8  ago  claude: go too far [undone]  1 file +1 -0  COMMIT^[0m
^[33m7^[0m^[2m  ago^[0m  ^[1mclaude^[0m: do it well [^[32myou are here^[0m]^[2m  1 file ^[0m^[32m+1^[0m ^[31m-0^[0m^[33m^[2m  COMMIT^[0m
^[2m6  ago  claude: give it up [left]  1 file +1 -0  COMMIT^[0m
^[33m5^[0m^[2m  ago^[0m  ^[1mclaude^[0m: try it^[2m  1 file ^[0m^[32m+1^[0m ^[31m-0^[0m^[33m^[2m  COMMIT^[0m
^[33m4^[0m^[2m  ago^[0m  ^[1mcodex^[0m: more of it [^[36mon main^[0m]^[2m  1 file ^[0m^[32m+1^[0m ^[31m-2^[0m^[33m^[2m  COMMIT^[0m";
    assert_eq!(shown, wanted);
}

/// A name, variables, `color.ui`, and whether there are colours on a terminal and in a pipe.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static str, bool, bool);

#[test]
fn colours_are_there_where_they_are_wanted() {
    let repo = Sandbox::new();
    repo.agent("echo one >a");
    let cases: [Case; 12] = [
        ("usual", &[], "", true, false),
        ("--color=always", &[], "", true, true),
        ("--color=never", &[("CLICOLOR_FORCE", "1")], "always", false, false),
        ("NO_COLOR", &[("NO_COLOR", "1")], "always", false, false),
        ("NO_COLOR, empty", &[("NO_COLOR", "")], "", true, false),
        ("CLICOLOR_FORCE", &[("CLICOLOR_FORCE", "1")], "never", true, true),
        ("CLICOLOR_FORCE=0", &[("CLICOLOR_FORCE", "0")], "", true, false),
        ("CLICOLOR=0", &[("CLICOLOR", "0")], "", false, false),
        ("TERM=dumb", &[("TERM", "dumb")], "", false, false),
        ("color.ui=always", &[], "always", true, true),
        ("color.ui=false", &[], "false", false, false),
        ("git's pager", &[("GIT_PAGER_IN_USE", "true")], "", true, true),
    ];
    let table = cases.map(|case| (case.0.to_owned(), case));
    check_all(table, |(name, variables, configured, on_terminal, in_pipe)| {
        let repo = repo.copy();
        repo.git(["config", "color.ui", if configured.is_empty() { "auto" } else { configured }]);
        for args in [&["log"][..], &["show", "1"]] {
            let command = || {
                let flag = if name.starts_with("--") { *name } else { "--color=auto" };
                let mut command = repo.oxundo_command([&[flag], args].concat());
                command.envs(variables.iter().copied()).env("GIT_PAGER", "cat");
                command
            };
            let piped = Output::of(&mut command());
            piped.success();
            assert_eq!(piped.out().contains('\x1b'), *in_pipe, "in a pipe: {piped:?}");
            // The terminal's own `TERM` is a good one.
            let term = variables.iter().find(|(name, _)| *name == "TERM").map_or("xterm", |(_, value)| *value);
            let shown = Terminal::start_as(command(), term).all();
            assert_eq!(shown.contains('\x1b'), *on_terminal, "on a terminal: {shown:?}");
        }
    });
}

/// What `oxundo ARGS` shows in a terminal of this size.
fn shown_in(repo: &Sandbox, (columns, rows): (usize, usize), args: &str, variables: &[(&str, &str)]) -> String {
    // The terminal has its usual size only when the program runs already: then comes the line that is read.
    let launch = format!("read line; stty cols {columns} rows {rows}; exec \"$0\" {args}");
    let mut command = repo.launched_command(&launch, &[]);
    command.envs(variables.iter().copied());
    Terminal::start(command).types("\n").all()
}

#[test]
fn lines_end_where_the_terminal_does() {
    let repo = busy();
    turn(&repo, "a", "claude", &"目录 caché ".repeat(30), "echo 7 >>a");
    for columns in [20, 40, 80, 200] {
        for locale in ["C", "C.UTF-8"] {
            let shown = shown_in(&repo, (columns, 100), "log --all --graph", &[("LC_ALL", locale)]);
            let plain = console::strip_ansi_codes(&shown).replace("\r\n", "\n");
            let widest = plain.lines().map(console::measure_text_width).max().unwrap_or_default();
            assert!(widest <= columns && widest + 25 > columns.min(80), "{widest} of {columns} columns:\n{plain}");
            assert!(plain.contains(if locale == "C" { "..." } else { "…" }), "it is cut:\n{plain}");
            let drawn = plain.chars().filter(|c| "●○│├─╯…".contains(*c)).count();
            assert_eq!(drawn == 0, locale == "C", "only ASCII is drawn in {locale}:\n{plain}");
            assert!(plain.contains("claude"), "{plain}");
        }
    }
    let message = "目录 caché ".repeat(30);
    repo.oxundo(["log"]).says(message.trim());
}

#[test]
fn a_timeline_that_is_longer_than_the_screen_goes_through_the_pager() {
    let repo = busy();
    repo.git(["config", "core.pager", "sed s/^/paged./"]);
    let shown = |rows, args: &str, pager: Option<&str>| {
        let variables: Vec<_> = pager.map(|pager| ("GIT_PAGER", pager)).into_iter().collect();
        shown_in(&repo, (80, rows), args, &variables)
    };
    let paged = shown(5, "log --all", None);
    assert_eq!(paged.matches("paged.").count(), 8, "{paged}");
    assert!(paged.contains("\x1b[33m7"), "with its colours: {paged}");
    assert!(!shown(30, "log --all", None).contains("paged."), "what fits is just shown");
    assert!(shown(5, "log --all", Some("sed s/^/other./")).contains("other."), "as git has it");
    for none in ["cat", ""] {
        let shown = shown(5, "log --all", Some(none));
        assert!(shown.contains("add a cache") && !shown.contains("paged."), "{none:?}: {shown}");
    }
    assert!(!shown(5, "--json log --all", None).contains("paged."), "an object is for tools");
    assert!(!repo.oxundo(["log", "--all"]).out().contains("paged."), "nor is there a screen in a pipe");
    let shown = shown(5, "log --all", Some("no-such-pager"));
    assert!(shown.contains("no-such-pager"), "the shell says what is wrong: {shown}");
}

#[test]
fn turns_of_other_worktrees_are_shown_with_all() {
    let repo = Sandbox::new();
    turn(&repo, "m", "claude", "at home", "echo 1 >>a");
    let feature = repo.linked("feature");
    turn(&feature, "f", "codex", "abroad", "echo 1 >>b");
    turn(&feature, "f", "codex", "still abroad", "echo 2 >>b");
    let all = ["log", "--all"];
    assert!(!repo.oxundo(["log"]).out().contains("abroad"), "only where one is");
    let output = repo.oxundo(all);
    assert!(output.out().lines().any(|line| line.starts_with("2  ")), "its number is in the first column: {output:?}");
    output.says("codex: still abroad [on feature, worktree feature]");
    feature.oxundo(all).says("claude: at home [on main, worktree main]");
    repo.git(["worktree", "remove", "--force", "../feature"]);
    let output = repo.oxundo(all);
    output.says("codex: abroad [on feature, removed worktree feature]");
    let (_, log) = repo.json(all);
    assert_eq!(log["worktree"], "main");
    let places: Vec<_> = (log["turns"].as_array().expect("turns").iter())
        .map(|turn| json!([turn["turn"], turn["worktree"], turn["worktree_removed"], turn["branch"]]))
        .collect();
    assert!(places.contains(&json!([1, "main", false, "main"])), "{log}");
    assert!(places.contains(&json!([2, "feature", true, "feature"])), "{log}");
    assert_eq!(repo.json(["log", "--all", "-n", "2"]).1["turns"].as_array().map(Vec::len), Some(2));
    assert_eq!(repo.json(["log"]).1["turns"].as_array().map(Vec::len), Some(1));

    for (args, wanted) in [
        (&["--worktree", "feature"][..], &["2", "1"][..]),
        (&["--worktree", "feature", "--grep", "still"], &["2"]),
        (&["--worktree", "feature", "-1"], &["2"]),
        (&["--worktree", "feature", "--", "a"], &[]),
        (&["--worktree", "main"], &["1"]),
    ] {
        let lines = repo.oxundo(["log", "--format", "%(turn)"].iter().chain(args)).out();
        assert_eq!(lines.lines().collect::<Vec<_>>(), wanted, "{args:?}");
    }
    let cut = repo.oxundo(["log", "--worktree", "feature", "--agent", "codex", "-1", "--", "b"]);
    cut.warns("1 more: 'oxundo log --worktree feature --agent codex -n 2 -- b' shows them too");
    assert_eq!(repo.json(["log", "--worktree", "gone"]).1["error"]["code"], "not_found");

    repo.git(["update-ref", "refs/oxundo/worktrees/feature/timeline", "HEAD"]);
    let output = repo.oxundo(all);
    output.says("claude: at home");
    output.warns("refs/oxundo/worktrees/feature/timeline cannot be read: its turns are left out");
}

#[test]
fn hints_can_be_switched_off() {
    let repo = Sandbox::new();
    repo.agent("echo one >a");
    repo.git(["config", "oxundo.hints", "false"]);
    let outside = repo.beside("home");
    let cases: [(&str, &Sandbox, &[&str]); 8] = [
        ("undo", &repo, &["undo"]),
        ("redo", &repo, &["redo"]),
        ("a refusal", &repo, &["redo"]),
        ("not found", &repo, &["show", "99"]),
        ("no such command", &repo, &["run", "--", "no-such-command"]),
        ("run refuses", &repo, &["run", "--agent", "x", "--", "sh", "-c", "echo 2 >>a"]),
        ("status", &repo, &["status"]),
        ("outside", &outside, &["log"]),
    ];
    for (name, place, args) in cases {
        if name == "run refuses" {
            repo.write(".git/MERGE_HEAD", format!("{}\n", repo.head()));
        }
        let mut command = place.oxundo_command(args);
        let output = Output::of(command.env("OXUNDO_HINTS", if name == "outside" { "no" } else { "false" }));
        assert!(!output.err().contains("hint:"), "{name}: {output:?}");
        let mut command = place.oxundo_command(args);
        let configured = Output::of(&mut command);
        let wanted = name == "outside" || name == "no such command";
        assert_eq!(configured.err().contains("hint:"), wanted, "{name}, by configuration: {configured:?}");
    }
    let mut command = outside.oxundo_command(["log"]);
    repo.write("../home/config", "[oxundo]\n\thints = false\n");
    let output = Output::of(command.env("GIT_CONFIG_GLOBAL", outside.path("config")));
    assert!(!output.err().contains("hint:"), "the user's own configuration: {output:?}");
}

#[test]
fn verbose_says_what_is_done_and_quiet_next_to_nothing() {
    let repo = Sandbox::new();
    repo.agent("echo one >>README.txt");
    let output = repo.oxundo(["-v", "undo"]);
    output.says("Undid turn 1");
    output.warns("scan: 1 files in ");
    output.warns("apply: 1 files in ");
    repo.oxundo(["-v", "diff", "1"]).warns("run: git -c color.ui=never diff ");
    let output = repo.oxundo(["redo"]);
    assert!(!output.err().contains("scan:"), "{output:?}");
    let output = repo.oxundo(["-q", "undo"]);
    assert_eq!((output.out().is_empty(), output.err()), (false, String::new()), "{output:?}");
    repo.oxundo(["-q", "-v", "undo"]).exits(2);
    let shown = Terminal::start(repo.oxundo_command(["redo"])).all();
    assert!(shown.starts_with("Redid turn 1") || shown.starts_with('\x1b'), "nothing but the answer: {shown:?}");
    assert!(!shown.contains("scan"), "no bar for what is fast: {shown:?}");
}

#[test]
fn turns_are_found_by_who_made_them_what_they_changed_when_and_what_for() {
    let repo = busy();
    let numbers = |args: &[&str]| {
        let (code, log) = repo.json([&["log"][..], args].concat());
        assert_eq!(code, 0, "{log}");
        let turns = log["turns"].as_array().expect("turns").iter();
        turns.map(|turn| turn["turn"].as_u64().expect("a number")).collect::<Vec<_>>()
    };
    for (args, wanted) in [
        (&["--all", "--agent", "codex"][..], &[4, 2][..]),
        (&["--all", "--session", "b"], &[4, 2]),
        (&["--session", "a", "-2"], &[8, 7]),
        (&["--grep", "^(do|give) it"], &[7]),
        (&["--all", "--grep", "^(do|give) it"], &[7, 6]),
        (&["--all", "--", "doc"], &[4, 2]),
        (&["--all", "-n", "1", "--", "doc"], &[4]),
        (&["--since", "1 hour ago", "--until", "2090-01-01", "--agent", "claude", "-1"], &[8]),
        (&["--since", "2090-01-01"], &[]),
        (&["--since", "Today", "--agent", "nobody"], &[]),
        (&["--until", "2 days ago"], &[]),
        (&["--agent", "nobody"], &[]),
    ] {
        assert_eq!(numbers(args), wanted, "{args:?}");
    }
    assert_eq!(repo.json(["log", "--grep", "("]).0, 2);
}

#[test]
fn a_renamed_file_is_one_file() {
    let repo = Sandbox::new();
    let ten: String = (0..10).map(|n| format!("line {n}\n")).collect();
    for n in 0..21 {
        repo.write(format!("f{n}"), format!("{n}\n{ten}"));
    }
    repo.sh("git add -A; git commit -qm files");
    turn(&repo, "a", "claude", "move all", "mkdir d; git mv f* d/");
    turn(&repo, "a", "claude", "and change", "git mv d/f1 one; sed -i 's/line 3/LINE 3/' one; rm d/f2; echo x >new");
    let log = ageless(&repo.oxundo(["log", "-n", "2"]).out());
    assert_eq!(
        log,
        "2  ago  claude: and change  3 files, 1 renamed +2 -12\n1  ago  claude: move all  21 renames +0 -0",
        "as git counts: {}",
        repo.git(["show", "--stat", "-M", "HEAD"])
    );
    let files = repo.log()[0]["files"].clone();
    let renamed = json!({"path": "one", "status": "A", "insertions": 11, "deletions": 0, "from": "d/f1"});
    let gone = json!({"path": "d/f1", "status": "D", "insertions": 0, "deletions": 11, "to": "one"});
    let files = files.as_array().expect("they are listed");
    assert!(files.contains(&renamed) && files.contains(&gone), "{files:?}");
    repo.undo();
    repo.undo();
    assert!(repo.exists("f20") && !repo.exists("d"), "it is undone as ever");
}

#[test]
fn what_is_no_change_of_files_is_named() {
    let repo = Sandbox::new();
    repo.write("README.txt", "mine\n");
    turn(&repo, "a", "claude", "put it away", "git stash -q; echo x >new; git add new; git commit -qm new");
    repo.write("staged", "s\n");
    repo.oxundo(["run", "--ghost", "-m", "stage it", "--", "git", "add", "staged"]).success();
    let log = ageless(&repo.oxundo(["log"]).out());
    assert!(log.contains("stage it") && log.contains("staging only"), "{log}");
}

#[test]
fn what_is_uncommitted_since_the_last_turn_stands_above_it() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    assert!(!repo.oxundo(["log"]).out().contains("Uncommitted"), "nothing is");
    repo.commit("committed", "it is\n");
    for n in 0..6 {
        repo.write(format!("new{n}"), "mine\n");
    }
    repo.write("one", "mine\n");
    let first = |args: &[&str]| repo.oxundo(args).out().lines().next().unwrap_or_default().to_owned();
    assert_eq!(first(&["log"]), "Uncommitted since turn 1: new0, new1, new2, new3, new4, 2 more");
    assert_eq!(first(&["log", "--graph"]), "Uncommitted since turn 1: new0, new1, new2, new3, new4, 2 more");
    let before = repo.everything();
    repo.oxundo(["log", "--steps"]).says("Uncommitted since turn 1: ");
    repo.everything().assert_is(&before, "to look changes nothing");
    assert!(!repo.oxundo(["log", "--agent", "sh"]).out().contains("Uncommitted"), "only some turns are asked for");
    repo.oxundo(["turn", "begin", "--session", "s"]).success();
    assert!(!repo.oxundo(["log"]).out().contains("Uncommitted"), "it may be the open turn's");
}

#[test]
fn dates_have_gits_forms() {
    let repo = Sandbox::new().with_variable("TZ", "America/New_York");
    turn(&repo, "a", "claude", "one", "echo 1 >one");
    let at = repo.oxundo(["log", "--format=%at"]).out();
    let forms = [
        "default",
        "local",
        "iso",
        "iso8601",
        "iso-strict",
        "iso-local",
        "rfc",
        "rfc2822",
        "short",
        "raw",
        "unix",
        "default-local",
        "format:%d.%m.%y %H~%M",
        "format:%s %z",
        "auto:human",
    ];
    repo.sh(&format!("GIT_AUTHOR_DATE='{} -0500' git commit -q --allow-empty -m at", at.trim()));
    for form in forms {
        let git = repo.git(["log", "-1", "--format=%ad", &format!("--date={form}")]);
        let ours = repo.oxundo(["log", "--format=%ad", &format!("--date={form}")]).out();
        assert_eq!(ours.trim_end(), git.trim_end(), "{form}");
        repo.git(["config", "log.date", form]);
        assert_eq!(repo.oxundo(["log", "--format=%cd"]).out(), ours, "log.date={form}");
        let log = repo.oxundo(["log"]).out();
        assert!(log.starts_with(&format!("1  {}  claude: one", git.trim_end())), "{log}");
    }
    for letter in ["ad", "ai", "aI", "as", "aD", "at"] {
        let format = format!("--format=%{letter}");
        assert_eq!(
            repo.oxundo(["log", &format]).out().trim_end(),
            repo.git(["log", "-1", &format]).trim_end(),
            "%{letter}"
        );
    }
    repo.git(["config", "log.date", "nonsense"]);
    repo.oxundo(["log"]).says("s ago  claude: one");
}

#[test]
fn a_pattern_of_dates_is_read_as_c_has_it() {
    let repo = Sandbox::new().with_variable("TZ", "America/New_York");
    turn(&repo, "a", "claude", "one", "echo 1 >one");
    let at = repo.oxundo(["log", "--format=%at"]).out();
    let zone = repo.oxundo(["log", "--format=%ad", "--date=format:%z"]).out();
    repo.sh(&format!("GIT_AUTHOR_DATE='{} {}' git commit -q --allow-empty -m at", at.trim(), zone.trim()));
    let date = |program: &mut Command, pattern: &str| {
        let output = program.args(["--format=%ad", &format!("--date=format:{pattern}")]).output().expect("run it");
        String::from_utf8(output.stdout).expect("it is text")
    };
    // Of the commit's zone git knows no name, and C nothing.
    let letters: Vec<char> = ('A'..='Z').chain('a'..='y').filter(|letter| *letter != 'Z').collect();
    let all = |before: &str| letters.iter().map(|letter| format!("%{before}{letter}|")).collect::<String>();
    for pattern in [
        &all("")[..],
        &all("E"),
        &all("O"),
        "a%tb%nc\td",
        "%-d %B %_H %_m %^a %^B %#p %5Y %3d %05e",
        "100%% %: %é %Q %F %",
        "a%-",
        "%E",
    ] {
        let (ours, git) =
            (date(&mut repo.oxundo_command(["log"]), pattern), date(&mut repo.git_command(["log", "-1"]), pattern));
        assert_eq!(ours, git, "{pattern}");
    }
    repo.oxundo(["log", "--date=format:%F%nand%tmore"]).says(" and more  claude: one");
    repo.oxundo(["log", "--ops", "--date=format:%F%nand%tmore"]).says(" and more  end 1");
    assert!(!repo.oxundo(["log", "--format=%ad", "--date=format:\u{1b}[2J%n"]).out().contains('\u{1b}'));
}

#[test]
fn a_line_of_ones_own_is_made_of_gits_placeholders() {
    let repo = Sandbox::new();
    turn(&repo, "a", "claude", "目录 it", "echo 1 >one");
    repo.git(["branch", "side"]);
    let ours = |format: &str| repo.oxundo(["log", "-n", "1", "--format", format]).out();
    for format in [
        "%H",
        "%h",
        "%s",
        "%D",
        "a%d",
        "100%%%n%x09|",
        "%<(20)%s|",
        "%>(20)%s|",
        "%<(20,trunc)%h|",
        "format:%h",
        "tformat:%h",
    ] {
        let git = repo.git(["log", "-1", "--decorate=short", &format!("--format={format}")]);
        assert_eq!(ours(format).replace("...", "..").trim_end(), git.trim_end(), "{format}");
    }
    for format in ["--format=format:%h", "--format=%h"] {
        let ours = repo.oxundo_command(["log", format]).output().expect("run it").stdout;
        assert_eq!(ours, repo.git_command(["log", "-1", format]).output().expect("run git").stdout, "where lines end");
    }
    assert_eq!(
        ours("%(turn) %(state) %an %(session) %(files) +%(insertions) -%(deletions) %(exit) %(mode) %(branch)"),
        "1 done claude a 1 +1 -0 0 commit main"
    );
    let coloured = repo.oxundo(["--color=always", "log", "--format=%C(yellow)%h%Creset"]).out();
    assert!(coloured.starts_with("\x1b[33m") && coloured.ends_with("\x1b[0m"), "{coloured:?}");
    assert!(!ours("%Cred%h").contains('\x1b'));
    let before = repo.everything();
    for format in ["%q", "oneline", "%(nonsense)", "%C(mauve)", "%<(x)%h", "%x9", "%", "%a", "%("] {
        repo.oxundo(["log", "--format", format]).exits(2);
    }
    repo.everything().assert_is(&before, "nothing is changed");
    repo.oxundo(["run", "-m", "\u{1b}[2J", "--agent", "\u{1b}]0;x\u{7}", "--", "sh", "-c", "echo 2 >one"]).success();
    assert!(!ours("%an %s %B").contains('\x1b'), "what others wrote is shown without harm");
}

#[test]
fn what_git_finds_a_commit_by_names_its_turn_and_two_dots_a_range() {
    let repo = Sandbox::new();
    for n in 1..=3 {
        repo.agent(&format!("echo {n} >file{n}"));
    }
    repo.git(["tag", "release", "HEAD~1"]);
    for (words, turn) in [("HEAD", 3), ("HEAD~1", 2), ("main^", 2), ("release", 2), ("main@{0}", 3)] {
        assert_eq!(repo.json(["show", words]).1["turn"], turn, "{words}");
        assert_eq!(repo.oxundo(["show", &format!("{words}:file{turn}")]).out(), turn.to_string(), "{words}:PATH");
    }
    for (range, two) in [("1..3", ["1", "3"]), ("HEAD~2..HEAD", ["1", "3"]), ("2..", ["2", "3"]), ("..1", ["3", "1"])] {
        assert_eq!(repo.oxundo(["diff", range]).out(), repo.oxundo(["diff", two[0], two[1]]).out(), "{range}");
    }
    assert!(!repo.oxundo(["diff", "1..3"]).out().is_empty());
    let before = repo.everything();
    for words in ["HEAD~3", "nonsense", "--all", "-x", "HEAD:nothing", "@{upstream}", "1..nonsense"] {
        assert_ne!(repo.oxundo(["diff", "--", words]).code, 101);
        assert_eq!(repo.json(["show", words]).0, if words.starts_with('-') { 2 } else { 1 }, "{words}");
    }
    repo.everything().assert_is(&before, "nothing is changed");
    repo.oxundo(["restore", "HEAD~2", "--", "file1"]).exits(4);
    repo.oxundo(["undo", "--to", "release"]).success();
    repo.assert_absent("file3", "turn 2 is the last one done");
    repo.oxundo(["branch", "other", "HEAD"]).success();
}

#[test]
fn a_message_of_several_lines_is_parted_as_git_parts_it() {
    let repo = Sandbox::new();
    for message in ["one\ntwo  \n three\n\n\nbody 1\n\n  body 2\n", "only\ntwo", "\n \nfirst\n\nbody", "one"] {
        turn(&repo, "a", "claude", message, "echo 1 >>one");
        for format in ["%s", "%b", "%B"] {
            let git = repo.git(["log", "-1", &format!("--format={format}")]).replace("Assisted-by: claude", "");
            let ours = repo.oxundo(["log", "-n1", "--format", format]).out();
            assert_eq!(ours.trim_end(), git.trim_end(), "{format} of {message:?}");
        }
    }
}

#[test]
fn where_none_is_as_was_asked_for_it_says_so_and_where_none_is_asked_for_nothing() {
    let repo = Sandbox::new();
    repo.oxundo(["log", "--agent", "nobody"]).says("no turns yet");
    repo.agent("echo 1 >one");
    for args in [&["--until=1960-06-01"][..], &["--agent", "nobody"], &["--grep", "nothing"], &["--all", "--", "none"]]
    {
        let output = repo.oxundo([&["log"][..], args].concat());
        assert_eq!((output.out().trim_end(), output.err().as_str()), ("no turn matches", ""), "{args:?}");
    }
    for args in
        [&["-n", "0"][..], &["-n0", "--all"], &["-n0", "--ops"], &["-n0", "--until=1960-06-01"], &["-n0", "--graph"]]
    {
        let output = repo.oxundo([&["log"][..], args].concat());
        assert_eq!((output.out().as_str(), output.err().as_str()), ("", ""), "{args:?}");
    }
    assert_eq!(repo.json(["log", "-n", "0"]).1["more"], true);
}

#[test]
fn a_turn_is_not_marked_as_taken_out_by_one_of_another_branch() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.agent("echo two >two.txt");
    repo.sh("git switch -qc other");
    repo.oxundo(["undo", "--only", "1"]).success();
    let taken = || {
        let turns = repo.json(["log", "--all"]).1["turns"].as_array().cloned().unwrap_or_default();
        turns.iter().map(|turn| turn["taken_out"].clone()).collect::<Vec<_>>()
    };
    let null = serde_json::Value::Null;
    assert_eq!(taken(), [null.clone(), null.clone(), "taken out".into()], "there it is");
    repo.sh("git switch -q main");
    assert_eq!(taken(), [null.clone(), null.clone(), null], "here it is not");
}

#[test]
fn a_branch_that_was_renamed_is_called_as_it_is_now() {
    let repo = Sandbox::new();
    repo.agent("echo 1 >one");
    repo.agent("git switch -qc side; echo 2 >two");
    repo.sh("git switch -q main; git commit -q --allow-empty -m own; git branch -m side s2; git branch -m main m2");
    let log = repo.oxundo(["log", "--all"]).out();
    assert!(log.contains("on s2]") && !log.contains("on main"), "{log}");
    for another in [false, true] {
        if another {
            repo.sh("git branch side; git branch main");
        }
        let branches = repo.oxundo(["log", "--all", "--format=%(branch)"]).out();
        assert_eq!(branches.lines().collect::<Vec<_>>(), ["s2", "m2"], "whatever has the old names: {another}");
    }
}
