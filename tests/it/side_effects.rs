//! The user's own commands that are asked before an undo or a redo, and told after it; and databases that go with them.

use crate::sandbox::{Mode, Sandbox, State, announce};
use oxundo::{Code, Progress, Undo, Worktree};
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

/// A repository with three turns, the last of which is undone.
fn repo(mode: Mode) -> Sandbox {
    let repo = Sandbox::new();
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    let lines = "printf 'a\\nb\\nc\\nd\\ne\\nf\\ng\\n'";
    for script in [format!("{lines} >1.txt"), format!("{lines} >2.txt; sed -i s/a/A/ 1.txt"), ":>3.txt".to_owned()] {
        repo.oxundo(["run", "--", "sh", "-c", &script]).success();
    }
    repo.oxundo(["undo"]).success();
    repo
}

fn ask(repo: &Sandbox, script: &str) {
    repo.git(["config", "oxundo.beforeUndo", script]);
    repo.git(["config", "oxundo.beforeRedo", script]);
}

/// Sees to it that the line is refused, by people's words and as JSON, and changes nothing. Gives the message.
#[track_caller]
fn refused(repo: &Sandbox, line: &[&str], code: &str) -> String {
    let before = repo.everything();
    let (exit, told) = repo.json(line);
    assert_eq!((exit, told["error"]["code"].as_str()), (3, Some(code)), "{line:?}: {told}");
    repo.everything().assert_is(&before, &format!("{line:?} changes nothing"));
    let spoken = repo.oxundo(line);
    assert!(spoken.code == 3 && spoken.err().contains("\nhint: "), "{spoken:?}");
    repo.everything().assert_is(&before, &format!("{line:?} changes nothing"));
    told["error"]["message"].as_str().expect("it says why").to_owned()
}

/// All that is in the worktree.
fn on_disk(repo: &Sandbox) -> State {
    repo.state().only(|fact| fact.starts_with("on disk "))
}

/// What a file in home has, once: then it goes.
fn taken(repo: &Sandbox, name: &str) -> Option<Vec<u8>> {
    let file = repo.home().join(name);
    let text = std::fs::read(&file).ok()?;
    std::fs::remove_file(file).expect("it is there");
    Some(text)
}

const FORMS: [&[&str]; 8] = [
    &["undo"],
    &["undo", "-n", "2"],
    &["undo", "--to", "1"],
    &["undo", "--only", "2"],
    &["undo", "--revert"],
    &["undo", "--", "2.txt"],
    &["redo"],
    &["redo", "--to", "3"],
];

#[test]
fn every_form_of_undo_and_redo_asks_before_anything_is_touched() {
    for mode in Mode::tried() {
        let repo = repo(mode);
        ask(&repo, "cat >../home/asked; echo noise; echo the server is up >&2; echo stop it >&2; exit 3");
        for form in FORMS {
            let key = if form[0] == "redo" { "beforeRedo" } else { "beforeUndo" };
            assert_eq!(refused(&repo, form, "vetoed"), format!("oxundo.{key} refused: sh: the server is up; stop it"));
            let told: Value = serde_json::from_slice(&taken(&repo, "asked").expect("it was asked")).expect("JSON");
            let dry: Vec<&str> = [&form[..1], &["--dry-run"], &form[1..]].concat();
            let (code, plan) = repo.json(&dry);
            // Commits that it would make have another id each second.
            let parts = |plan: &Value| ["v", "op", "dry_run", "turns", "undone", "files"].map(|key| plan[key].clone());
            assert_eq!((code, parts(&plan)), (0, parts(&told)), "it has the plan");
            let looked = repo.oxundo(&dry);
            assert!(looked.err().contains(&format!("warning: oxundo.{key} is asked before")), "{looked:?}");
            assert_eq!(taken(&repo, "asked"), None, "a dry run does not ask");
        }
        let (_, plan) = repo.json(["undo", "--plan"]);
        let id = plan["plan"].as_str().expect("it has an id").to_owned();
        refused(&repo, &["apply", &id], "vetoed");
        assert!(taken(&repo, "asked").is_some());
        let worktree = Worktree::open(repo.root()).expect("it is a repository");
        assert_eq!(worktree.undo(Undo::last(1)).expect_err("it refuses").code, Code::Vetoed);
        assert!(taken(&repo, "asked").is_some());
        repo.oxundo(["restore", "1", "--", "1.txt"]).success();
        assert_eq!(taken(&repo, "asked"), None, "restore asks nobody");
    }
}

#[test]
fn what_is_agreed_to_is_done_and_told() {
    for mode in Mode::tried() {
        for form in FORMS {
            let repo = repo(mode);
            let wanted = repo.copy();
            wanted.oxundo(form).success();
            ask(&repo, "cat >../home/asked; echo mine >own.txt");
            repo.git(["config", "oxundo.onUndo", "cat >../home/told"]);
            repo.git(["config", "oxundo.onRedo", "cat >../home/told"]);
            let (code, done) = repo.json(form);
            assert_eq!(code, 0, "{done}");
            let told: Value = serde_json::from_slice(&taken(&repo, "told").expect("it was told")).expect("JSON");
            assert_eq!(told, done, "{form:?}");
            let asked: Value = serde_json::from_slice(&taken(&repo, "asked").expect("it was asked")).expect("JSON");
            assert_eq!((&asked["files"], &asked["turns"]), (&done["files"], &done["turns"]), "{form:?}");
            repo.assert_file("own.txt", "mine\n", "what it wrote elsewhere stays");
            repo.sh("rm own.txt");
            on_disk(&repo).assert_is(&on_disk(&wanted), &format!("{form:?} does what it does without being asked"));
        }
    }
}

#[test]
fn a_command_that_is_asked_cannot_change_what_it_is_asked_about() {
    let meddling = [
        // Undo of turn 2 writes line 1 of this file: the edit would be kept, and nobody has agreed to that.
        ("sed -i s/g/G/ 1.txt", "stale"),
        ("sed -i s/A/B/ 1.txt", "conflict"),
        ("git commit -q --allow-empty -m theirs", "foreign"),
        ("git init -q --bare ../up; git push -q ../up main; git fetch -q ../up main:refs/remotes/up/main", "published"),
        ("git switch -q -c other", "stale"),
        ("git rev-parse HEAD >.git/MERGE_HEAD", "in_progress"),
    ];
    for (script, code) in meddling {
        let (repo, by_hand) = (repo(Mode::Commit), repo(Mode::Commit));
        ask(&repo, script);
        by_hand.sh(script);
        let timeline = repo.git(["rev-parse", "refs/oxundo/timeline"]);
        let (exit, told) = repo.json(["undo"]);
        assert_eq!((exit, told["error"]["code"].as_str()), (3, Some(code)), "{script}: {told}");
        assert_eq!(repo.git(["rev-parse", "refs/oxundo/timeline"]), timeline, "{script}");
        on_disk(&repo).assert_is(&on_disk(&by_hand), "it is as the command left it");
        repo.assert_sound();
    }
}

#[test]
fn a_command_that_is_asked_can_use_oxundo_and_undoes_nothing() {
    for (end, code) in [("", 3), ("; true", 0)] {
        let repo = repo(Mode::Commit);
        ask(&repo, &format!("oxundo log >../home/log && oxundo undo{end}"));
        let output = repo.oxundo(["undo"]);
        assert_eq!(output.code, code, "{output:?}");
        assert!(output.err().contains("another oxundo is at work in this worktree: undo"), "{output:?}");
        assert!(taken(&repo, "log").is_some_and(|log| !log.is_empty()));
        let undone = repo.json(["log"]).1["turns"].as_array().expect("turns").len();
        assert_eq!(undone, 3);
        let depth = repo.json(["status"]).1["undo_depth"].as_u64();
        assert_eq!(depth, Some(if code == 0 { 1 } else { 2 }), "one undo, or none");
    }
}

#[test]
fn a_command_that_does_not_answer_is_ended_with_all_that_it_started() {
    let repo = repo(Mode::Commit);
    repo.git(["config", "oxundo.beforeTimeout", "1"]);
    ask(&repo, "sleep 600 & echo $! >../home/pid; wait");
    let before = repo.everything();
    let output = repo.oxundo(["undo"]);
    assert_eq!(output.code, 3, "{output:?}");
    assert!(output.err().contains("error: oxundo.beforeUndo refused: sh: no answer within 1 s"), "{output:?}");
    repo.everything().assert_is(&before, "nothing is touched");
    if let Some(id) = taken(&repo, "pid") {
        let id = String::from_utf8(id).expect("a number").trim().to_owned();
        // It is on its way; where it were not, this would take ten minutes.
        repo.sh(&format!("while kill -0 {id} 2>/dev/null && ! grep -q '^State:.Z' /proc/{id}/status; do :; done"));
    }
    repo.git(["config", "oxundo.beforeTimeout", "soon"]);
    assert_eq!(repo.json(["undo"]).1["error"]["code"], "usage");
    repo.everything().assert_is(&before, "nothing is touched");
}

#[test]
fn a_command_that_is_killed_has_not_agreed() {
    let repo = repo(Mode::Commit);
    ask(&repo, "kill -9 $$");
    assert!(refused(&repo, &["undo"], "vetoed").contains("signal: 9"));
    ask(&repo, "no-such-command");
    refused(&repo, &["undo"], "vetoed");
    ask(&repo, "exit 0");
    repo.oxundo(["undo"]).success();
    repo.assert_absent("2.txt", "undone");
}

#[test]
fn oxundo_killed_while_it_asks_leaves_everything_as_it_was() {
    let repo = repo(Mode::Commit);
    let (before, files) = (repo.everything(), on_disk(&repo));
    ask(&repo, ": >../home/asking; until [ -e ../home/go ] || [ ! -e ../home/asking ]; do sleep 0.02; done");
    let mut undo = repo.spawn(&["undo"]);
    repo.wait_for("asking");
    undo.kill().expect("kill it");
    undo.wait().expect("it is gone");
    repo.everything().assert_is(&before, "nothing is touched");
    // Its command goes on alone, and nothing waits for it.
    ask(&repo, "");
    repo.oxundo(["undo"]).success();
    repo.signal("go");
    repo.oxundo(["redo"]).success();
    on_disk(&repo).assert_is(&files, "redone");
}

#[test]
fn a_veto_leaves_the_open_turn_open() {
    let repo = Sandbox::new();
    repo.oxundo(["turn", "begin"]).success();
    repo.write("open.txt", "1\n");
    ask(&repo, "exit 1");
    refused(&repo, &["undo"], "vetoed");
    assert_eq!(repo.json(["status"]).1["open_turn"], 1);
    // What it is asked about has another commit's id each time, and is the same.
    ask(&repo, "exit 0");
    repo.oxundo(["undo"]).success();
    repo.assert_absent("open.txt", "undone");
}

#[test]
fn what_the_commands_print_is_shown_and_nothing_else_of_them() {
    let repo = repo(Mode::Commit);
    ask(&repo, "echo asked; printf 'to\\033[31mx\\n' >&2");
    repo.git([
        "config",
        "oxundo.onUndo",
        "sleep 600 & echo $! >../home/pid; echo restored; echo; echo on two lines >&2",
    ]);
    let copy = repo.copy();
    let output = repo.oxundo(["undo"]);
    output.success();
    // What it has left running has its output still, and is not waited for.
    repo.sh("kill $(cat ../home/pid)");
    let shown: Vec<String> =
        output.err().lines().filter(|line| line.starts_with("oxundo.")).map(str::to_owned).collect();
    let wanted = [
        "oxundo.beforeUndo: asked",
        "oxundo.beforeUndo: to\u{fffd}[31mx",
        "oxundo.onUndo: restored",
        "oxundo.onUndo: on two lines",
    ];
    assert_eq!(shown, wanted);
    let quiet = copy.oxundo(["-q", "undo"]);
    copy.sh("kill $(cat ../home/pid)");
    assert_eq!(quiet.err(), "", "unless nothing is to be said");
    // No pipe is too small for what is told, or for what is said.
    copy.oxundo(["run", "--", "sh", "-c", "for i in $(seq 3000); do echo >a-file-with-a-long-name-$i; done"]).success();
    ask(&copy, "head -c 1 >/dev/null; seq 100000");
    copy.git(["config", "oxundo.onUndo", "exec <&-; seq 100000 >&2; exit 1"]);
    let output = copy.oxundo(["undo"]);
    output.success();
    assert!(output.err().contains("oxundo.beforeUndo: 1000\n"), "it is shown");
    assert!(output.err().contains("warning: oxundo.onUndo failed: sh: 1; 2; 3"), "and why it failed");
    assert!(output.err().len() < 500_000, "as far as anybody reads");
}

#[test]
fn a_front_end_hears_what_the_commands_print() {
    let repo = repo(Mode::Commit);
    repo.git(["config", "oxundo.onUndo", "echo one; echo two >&2"]);
    let worktree = Worktree::open(repo.root()).expect("it is a repository");
    let said = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&said);
    worktree.set_progress(move |progress| {
        if let Progress::Says(setting, line) = progress {
            hears.lock().expect("nobody panics").push(format!("{setting}: {line}"));
        }
    });
    worktree.undo(Undo::last(1)).expect("it is undone");
    assert_eq!(*said.lock().expect("nobody panics"), ["onUndo: one", "onUndo: two"]);
}

/// A program of the documentation, from the line in which it begins.
fn documented(begins: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/databases.md");
    let page = std::fs::read_to_string(page).expect("read the page");
    let rest = &page[page.find(&format!("\n    {begins}")).expect("it is there") + 1..];
    let lines = rest.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or_default())).collect()
}

/// A repository with the page's script as `dbturn`, set up as the page says.
fn with_script(repo: Sandbox, script: &str) -> Sandbox {
    let bin = repo.home().join("bin");
    std::fs::create_dir(&bin).expect("make a directory");
    std::fs::write(bin.join("dbturn"), script).expect("write the script");
    let path = repo.sh("echo \"$PATH\"");
    let repo = repo.with_variable("PATH", format!("{}:{path}", bin.display()));
    repo.sh("chmod +x ../home/bin/dbturn; echo dev.db >.gitignore; git add .gitignore; git commit -qm ignore");
    let set_up = documented("git config oxundo.beforeUndo");
    repo.sh(&set_up.lines().filter(|line| line.starts_with("git config ")).collect::<Vec<_>>().join("\n"));
    repo
}

/// Sees to it that a database goes back and forth with the turns. `run` runs SQL and prints what it gives.
fn goes_with_the_turns(repo: &Sandbox, run: &dyn Fn(&str) -> String) {
    let rows = || run("SELECT word FROM words ORDER BY word").replace('\n', " ");
    run("CREATE TABLE words (word TEXT)");
    for word in ["one", "two", "three"] {
        let script = format!("echo {word} >{word}.txt; $SQL \"INSERT INTO words VALUES ('{word}')\"");
        let output = repo.oxundo(["run", "--agent", "claude", "--", "dbturn", "run", "sh", "-c", &script]);
        output.success();
    }
    assert_eq!(rows(), "one three two");
    run("INSERT INTO words VALUES ('zz mine')");
    repo.oxundo(["undo", "-n", "2"]).success();
    assert_eq!(rows(), "one", "two turns back at once");
    repo.assert_absent("two.txt", "the files too");
    repo.oxundo(["redo", "-n", "2"]).success();
    assert_eq!(rows(), "one three two zz mine", "with what the user did since");
    repo.oxundo(["undo"]).success();
    assert_eq!(rows(), "one two");
    repo.oxundo(["redo", "--to", "3"]).success();
    assert_eq!(rows(), "one three two zz mine");
    let output = repo.oxundo(["undo", "--only", "2"]);
    output.success();
    assert!(output.err().contains("it stays as it is"), "{output:?}");
    assert_eq!(rows(), "one three two zz mine", "one turn in the middle is not to be taken out of a database");
    repo.oxundo(["undo"]).success();
    assert_eq!(rows(), "one three two zz mine");
}

/// Whether a program is there; says aloud where it is not.
fn has(program: &str) -> bool {
    let has = which::which(program).is_ok();
    if !has {
        announce(&format!("SKIPPED, NOTHING IS PROVED: there is no {program} here"));
    }
    has
}

#[test]
fn the_documented_sqlite_database_goes_with_the_turns() {
    if !has("sqlite3") || !has("jq") {
        return;
    }
    let repo = with_script(Sandbox::new(), &documented("#!/bin/sh")).with_variable("SQL", "sqlite3 dev.db");
    goes_with_the_turns(&repo, &|sql| repo.sh(&format!("sqlite3 dev.db \"{sql}\"")));
    let mut writer = client(&repo, "sqlite3 dev.db", "BEGIN EXCLUSIVE;\n.shell : >../home/there\n");
    assert!(refused(&repo, &["undo"], "vetoed").contains("database is locked"), "somebody is writing to it");
    drop(writer.stdin.take());
    writer.wait().expect("it ends");
}

/// A client of a database, which has done as it was told and waits for more.
fn client(repo: &Sandbox, program: &str, told: &str) -> Child {
    let mut client = repo.shell(&format!("exec {program}")).stdin(Stdio::piped()).spawn().expect("start a client");
    client.stdin.as_mut().expect("it listens").write_all(told.as_bytes()).expect("it hears");
    repo.wait_for("there");
    client
}

/// A server of databases, for as long as a test lasts.
struct Server<'a>(&'a Sandbox, PathBuf);

impl Drop for Server<'_> {
    fn drop(&mut self) {
        self.0.sh(&format!("{}/pg_ctl -D ../home/pg -m immediate stop >/dev/null", self.1.display()));
    }
}

/// Where the newest of these servers is, as Debian has it or on the path.
fn server() -> Option<PathBuf> {
    let on_path = which::which("pg_ctl").ok().and_then(|program| Some(program.parent()?.to_owned()));
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.sort();
    on_path.or_else(|| found.pop().filter(|bin| bin.join("pg_ctl").exists()))
}

#[test]
fn the_documented_postgresql_database_goes_with_the_turns() {
    let Some(bin) = server().filter(|_| has("psql") && has("jq")) else {
        return announce("SKIPPED, NOTHING IS PROVED: there is no PostgreSQL here");
    };
    let (sqlite, postgres) = (documented("#!/bin/sh"), documented("db=${DBTURN:-dev}\n"));
    let (head, rest) = sqlite.split_once("db=").expect("it names the database");
    let script = format!("{head}{postgres}{}", &rest[rest.find("# Which states").expect("the rest is there")..]);
    let repo = with_script(Sandbox::new(), &script).unprivileged();
    let repo = repo.with_variable("SQL", "psql -qXd dev -c").with_variable("PGUSER", "me");
    let run = repo.home().display().to_string();
    let repo = repo.with_variable("PGHOST", run.as_str());
    let start = format!(
        "{bin}/initdb -D ../home/pg -A trust -U me -N >/dev/null &&
        {bin}/pg_ctl -D ../home/pg -l ../home/pg.log -w -o \"-F -c listen_addresses='' -k $PGHOST\" start >/dev/null",
        bin = bin.display()
    );
    repo.sh(&start);
    let _server = Server(&repo, bin);
    repo.sh("createdb dev");
    goes_with_the_turns(&repo, &|sql| repo.sh(&format!("psql -qAtXd dev -c \"{sql}\"")));
    let mut client = client(&repo, "psql -qX dev", "\\! : >../home/there\n");
    assert!(refused(&repo, &["undo"], "vetoed").contains("is being accessed by other users"));
    drop(client.stdin.take());
    client.wait().expect("it ends");
}
