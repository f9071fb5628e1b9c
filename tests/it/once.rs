//! A command opens the timeline once and looks at the worktree once, `run` twice: at the beginning and at the end.

use crate::sandbox::Sandbox;
use std::fs;

/// How often a command opened the timeline, and looked at the worktree, by what it says with `-v`.
fn counted(repo: &Sandbox, args: &[&str]) -> (usize, usize) {
    let output = repo.oxundo([&["-v"], args].concat());
    output.success();
    let said = output.err();
    let count = |word: &str| said.lines().filter(|line| line.starts_with(word)).count();
    (count("open: the timeline"), count("scan: "))
}

#[test]
fn what_a_command_has_seen_it_does_not_look_at_again() {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\n");
    repo.write("dirty", "the user's\n");
    repo.sh("echo x >x; echo y >y; echo z >z; git add x y z; git commit -qm xyz");
    let edit = |text: &str| format!("echo {text} >>{text}; mkdir -p d; echo {text} >d/{text}");
    assert_eq!(counted(&repo, &["run", "--", "sh", "-c", &edit("x")]), (2, 2), "run");
    assert_eq!(counted(&repo, &["run", "--", "sh", "-c", &edit("y")]), (2, 2), "a second run");
    assert_eq!(counted(&repo, &["run", "--ghost", "--", "sh", "-c", &edit("z")]), (2, 2), "run without commits");
    for (args, wanted) in [
        (&["undo"][..], (1, 1)),
        (&["redo"], (1, 1)),
        (&["undo", "--dry-run"], (1, 1)),
        (&["status"], (1, 1)),
        (&["log"], (1, 1)),
        (&["log", "--json"], (1, 0)),
        (&["show", "1"], (1, 0)),
        (&["show", "1:a.txt"], (1, 0)),
        (&["diff", "1"], (1, 1)),
        (&["diff", "1", "2"], (1, 0)),
        (&["checkpoint", "here"], (1, 1)),
        (&["checkpoint", "--list"], (1, 0)),
        (&["undo", "--", "d/z"], (1, 1)),
        (&["redo"], (1, 1)),
        (&["restore", "1:before"], (1, 1)),
        (&["undo"], (1, 1)),
        (&["undo", "--steps", "2"], (1, 1)),
        (&["redo", "--to", "2"], (1, 1)),
        (&["undo", "--only", "1"], (1, 1)),
        (&["undo"], (1, 1)),
        (&["squash"], (1, 1)),
        (&["branch", "other", "@"], (1, 1)),
        (&["gc"], (1, 0)),
    ] {
        assert_eq!(counted(&repo, args), wanted, "{args:?}");
    }
}

/// The states before and after a turn that oxundo makes are known without a look: what a look finds is the very same.
#[test]
fn what_is_known_without_a_look_is_what_a_look_finds() {
    let repo = Sandbox::new();
    repo.commit("a.txt", "one\ntwo\nthree\n");
    repo.sh("mkdir -p empty/below deep/er; echo k >deep/er/kept; git add deep; git commit -qm deep");
    repo.agent("echo more >>a.txt; rm -r deep; mkdir -p new/dir; echo n >new/dir/n; chmod 600 a.txt; ln -s a.txt link");
    repo.agent("rmdir empty/below; echo x >new/x; chmod 755 new/x; echo b >b; git add b; git commit -qm b");
    repo.agent("mkdir gone; echo g >gone/g; chmod 700 new; echo staged >s; git add s; echo more >>s");
    for args in [
        &["undo", "--steps", "3", "--", "new"][..],
        &["restore", "1"],
        &["undo", "--only", "1"],
        &["restore", "0"],
        &["undo", "--revert"],
        &["branch", "other", "@"],
        &["restore", "2:before"],
    ] {
        repo.oxundo(args).success();
        let turn = repo.log()[0]["turn"].as_u64().expect("there is a turn");
        repo.oxundo(["checkpoint", "look"]).success();
        let known = format!("refs/oxundo/timeline:turns/{}/after", fan(turn));
        let tree = |name: &str| repo.git(["ls-tree", "-r", name]);
        let found = repo.git(["ls-tree", "-r", "--name-only", "refs/oxundo/timeline:named"]);
        let directory = found.lines().next().and_then(|line| line.rsplit_once('/')).expect("it is named").0.to_owned();
        let looked =
            format!("refs/oxundo/timeline:named/{}", directory.split('/').take(3).collect::<Vec<_>>().join("/"));
        // The rules are those of the turn's beginning; all else must be the same.
        let rest = |text: String| {
            text.lines().filter(|line| !line.ends_with("\trules")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(rest(tree(&known)), rest(tree(&looked)), "{args:?}");
        repo.oxundo(["checkpoint", "--delete", "look"]).success();
        repo.undo();
    }
}

#[test]
fn with_own_commits_on_top_nobody_reads_what_is_further_below() {
    let repo = Sandbox::new();
    for turn in 1..=3 {
        repo.agent(&format!("echo {turn} >f"));
    }
    repo.commit("own", "own\n");
    let record = repo.git(["rev-parse", &format!("refs/oxundo/timeline:turns/{}/turn.json", fan(1))]);
    let object = repo.path(format!(".git/objects/{}/{}", &record[..2], &record[2..]));
    let away = object.with_extension("away");
    fs::rename(&object, &away).expect("it is a loose one");
    repo.oxundo(["status"]).success();
    repo.agent("echo 4 >f");
    fs::rename(&away, &object).expect("move it back");
    repo.undo();
    repo.refuses(&["undo"], "foreign");
}

fn fan(number: u64) -> String {
    format!("{:02}/{:02}/{:02}", number / 10_000, number / 100 % 100, number % 100)
}

#[test]
fn what_is_tracked_again_or_stays_is_in_the_record_of_the_turn_that_did_it() {
    let repo = Sandbox::new();
    repo.write(".gitignore", "*.log\n").write("k.log", "v1\n");
    repo.sh("git add -f .; git commit -qm logs");
    repo.agent("git rm -q --cached k.log; mkdir -p d/e; echo z >d/e/z; echo l >d/i.log");
    repo.write("k.log", "the user's\n");
    repo.oxundo(["undo", "--revert"]).success();
    assert_eq!(repo.oxundo(["show", "2:k.log"]).out(), "the user's", "tracked again, it is captured");
    let empty = repo.git(["cat-file", "blob", "refs/oxundo/timeline:turns/00/00/02/after/directories"]);
    assert_eq!(empty, "[\"d\"]", "what is ignored keeps its directory");
}
