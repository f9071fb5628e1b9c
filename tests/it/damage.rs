//! Records that are gone, replaced, of another format or damaged: refused as `corrupt` with nothing
//! changed, and `doctor` gives the command that mends it.

use crate::sandbox::Sandbox;
use serde_json::Value;
use std::collections::BTreeSet;

/// Three turns, with the user's own work between them and after them.
fn worked() -> Sandbox {
    let repo = Sandbox::new();
    repo.commit("dir/file", "base\n");
    for turn in 1..=3 {
        repo.sh(&format!("echo user {turn} >>README.txt"));
        repo.agent(&format!("echo agent {turn} >>dir/file; echo new >new{turn}"));
    }
    repo.write("mine.txt", "mine\n");
    repo
}

impl Sandbox {
    /// What doctor finds; its exit code says whether there is an error among it.
    fn findings(&self) -> Vec<Value> {
        let before = self.everything();
        let (code, diagnosis) = self.json(["doctor"]);
        self.everything().assert_is(&before, "doctor changes nothing");
        let findings = diagnosis["findings"].as_array().expect("doctor has findings").clone();
        let errors = findings.iter().any(|finding| finding["severity"] == "error");
        assert_eq!((code, &diagnosis["ok"]), (i32::from(errors), &Value::Bool(!errors)), "{diagnosis}");
        findings
    }

    /// Runs the first command that doctor names.
    fn mend(&self) {
        let findings = self.findings();
        let command = findings.first().and_then(|finding| finding["mend"][0].as_str()).expect("doctor names a command");
        self.sh(command);
    }
}

/// Ways to spoil the timeline's ref, as shell.
const SPOILED: [(&str, &str); 10] = [
    ("deleted", "git update-ref -d refs/oxundo/timeline"),
    ("its file deleted", "rm .git/refs/oxundo/timeline"),
    ("a commit of the user's", "git update-ref refs/oxundo/timeline HEAD"),
    ("a blob", "git update-ref refs/oxundo/timeline HEAD:README.txt"),
    ("an annotated tag", "git tag -a -m tag tag; git update-ref refs/oxundo/timeline tag"),
    ("a symbolic ref to a branch", "git symbolic-ref refs/oxundo/timeline refs/heads/main"),
    ("garbage", "echo garbage >.git/refs/oxundo/timeline"),
    ("an empty file", ": >.git/refs/oxundo/timeline"),
    ("the null id", "printf '%040d\\n' 0 >.git/refs/oxundo/timeline"),
    ("an object that is not there", "printf '%040d\\n' 7 >.git/refs/oxundo/timeline"),
];

#[test]
fn a_spoiled_timeline_is_refused_and_brought_back_by_the_command_that_doctor_names() {
    let original = worked();
    let end = original.state();
    assert_eq!(original.findings(), Vec::<Value>::new(), "nothing is wrong yet");
    for (how, script) in SPOILED {
        let repo = original.copy();
        repo.sh(script);
        let main = repo.git(["rev-parse", "main"]);
        for command in [&["undo"][..], &["redo"], &["log"], &["status"], &["show"], &["diff"]] {
            repo.refuses_any(command, &["corrupt"]);
        }
        let before = repo.everything();
        let run = repo.oxundo(["run", "--", "sh", "-c", "echo ran >ran"]);
        assert_eq!(run.code, 125, "{how}: {run:?}");
        repo.everything().assert_is(&before, &format!("{how}: run changed nothing, the agent did not run"));
        repo.mend();
        assert_eq!(repo.git(["rev-parse", "main"]), main, "{how}: the branch stays where it is");
        repo.oxundo(["undo", "--steps", "3"]).success();
        repo.assert_file("dir/file", "base\n", how);
        repo.oxundo(["redo", "--steps", "3"]).success();
        repo.state().only(|fact| !fact.contains("tag")).assert_is(&end, how);
    }
}

#[test]
fn a_timeline_of_another_format_is_refused_and_says_which() {
    let repo = worked();
    repo.sh("new=$(git cat-file -p refs/oxundo/timeline:state.json | sed 's/\"v\": 2/\"v\": 0/' | git hash-object -w --stdin)
        export GIT_INDEX_FILE=.git/old; git read-tree refs/oxundo/timeline
        git update-index --cacheinfo 100644,$new,state.json
        git update-ref refs/oxundo/timeline $(git commit-tree -m old $(git write-tree)); rm $GIT_INDEX_FILE");
    let error = repo.refuses_any(&["undo"], &["corrupt"]);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("version 0")), "{error}");
    repo.mend();
    repo.undo();
}

#[test]
fn where_all_is_lost_doctor_tells_how_to_begin_anew() {
    let repo = worked();
    repo.sh("git update-ref -d refs/oxundo/timeline; git reflog expire --expire=now --all; git gc -q --prune=now");
    repo.refuses_any(&["undo"], &["corrupt"]);
    repo.mend();
    assert_eq!(repo.findings(), Vec::<Value>::new());
    repo.agent("echo again >>dir/file");
    repo.undo();
}

#[test]
fn a_timeline_lost_with_its_scratch_is_still_found_while_git_has_its_objects() {
    let repo = worked();
    repo.sh("git update-ref -d refs/oxundo/timeline; rm -r .git/oxundo");
    repo.mend();
    assert_eq!(repo.log().len(), 3);
    repo.undo();
}

#[test]
fn a_journal_that_cannot_be_read_stops_everything_until_it_is_taken_away() {
    let repo = worked();
    repo.sh("git update-ref refs/oxundo/pending HEAD");
    repo.refuses_any(&["undo"], &["corrupt"]);
    repo.refuses_any(&["status"], &["corrupt"]);
    repo.mend();
    repo.undo();
}

/// The files of the objects that only the timeline holds.
fn own_objects(repo: &Sandbox) -> Vec<String> {
    let reachable = |from: &str| -> BTreeSet<String> {
        let list = repo.git(["rev-list", "--objects", "--no-object-names", from]);
        list.lines().map(str::to_owned).collect()
    };
    let own = &reachable("refs/oxundo/timeline") - &reachable("--branches");
    own.iter().map(|id| format!(".git/objects/{}/{}", &id[..2], &id[2..])).collect()
}

#[test]
fn any_object_missing_or_damaged_is_refused_and_never_half_applied() {
    let original = worked();
    let objects = own_objects(&original);
    assert!(objects.len() > 30, "there are objects to damage");
    let commands: [&[&str]; 3] = [&["undo"], &["undo", "--steps", "3"], &["run", "--", "true"]];
    let damages = ["rm -f", "truncate -s 12", "cp -f /dev/null"];
    let mut refused = 0;
    for (object, damage) in objects.iter().zip(damages.iter().cycle()) {
        for command in commands {
            let repo = original.copy();
            repo.sh(&format!("chmod u+w {object}; {damage} {object}"));
            let before = repo.state();
            let output = repo.oxundo(command);
            if output.code == 0 {
                // It could do without.
                continue;
            }
            refused += 1;
            repo.state().assert_is(&before, &format!("{damage} {object}; {command:?} changes nothing"));
            let said = output.err();
            assert!(said.starts_with("error: ") && said.contains("hint: "), "{output:?}");
            assert!([1, 125].contains(&output.code), "{output:?}");
        }
    }
    assert!(refused > 30, "most objects are needed: {refused}");
}
