//! Timelines that the first release made are read, undone and redone by today's: one of each kind of turn, recorded by that
//! release's own binary, and kept as git's own export. What is in its checkpoints, read by git, says what must come.

use crate::sandbox::Sandbox;

/// The repository as the first release left it: 14 turns on two branches, the last two of them undone.
fn recorded() -> Sandbox {
    let repo = Sandbox::unborn();
    repo.git_fed(&["fast-import", "--quiet"], include_bytes!("fixtures/first-release.export"));
    repo.sh("git symbolic-ref HEAD refs/heads/other; git reset -q --hard");
    repo.write("ghost", "ghost\n").write("mine", "mine\n");
    // An export has no reflog, and git lists no entry of the stash without it.
    repo.sh("s=$(git rev-parse refs/stash); git update-ref -d refs/stash; git stash store -m \"$(git log -1 --format=%s $s)\" $s");
    repo
}

/// The worktree as a tree of git's.
fn worktree(repo: &Sandbox) -> String {
    let apart = repo.clone().with_variable("GIT_INDEX_FILE", repo.path(".git/apart"));
    let tree = apart.sh("rm -f .git/apart; git add -A; git write-tree");
    tree.trim().to_owned()
}

/// What a checkpoint of a turn has of the worktree, as the first release wrote it.
fn then(repo: &Sandbox, turn: u64, side: &str) -> String {
    repo.git(["rev-parse", &format!("refs/heads/recorded:turns/00/00/{turn:02}/{side}/worktree")]).trim().to_owned()
}

/// The turns that a command walked over.
fn walked(repo: &Sandbox, args: &[&str]) -> Option<Vec<u64>> {
    let (code, answer) = repo.json(args);
    assert!([0, 4].contains(&code), "{args:?}: {answer}");
    (code == 0).then(|| serde_json::from_value(answer["turns"].clone()).expect("numbers"))
}

#[test]
fn what_the_first_release_recorded_is_undone_and_redone() {
    let repo = recorded();
    let (_, log) = repo.json(["log", "--all"]);
    let turns = log["turns"].as_array().expect("turns");
    assert_eq!(turns.iter().filter(|turn| turn["state"] == "done").count(), 12, "{log}");
    assert_eq!(turns.iter().filter(|turn| turn["state"] == "undone").count(), 2);
    repo.oxundo(["checkpoint", "--list"]).says("before the squash");
    repo.oxundo(["doctor"]).says("nothing is wrong");
    // Beside the branches, so that nothing of it is pruned.
    repo.git(["update-ref", "refs/heads/recorded", "refs/oxundo/timeline"]);
    let end = repo.state();
    let mut undone = Vec::new();
    while let Some(turns) = walked(&repo, &["undo"]) {
        let last = *turns.last().expect("a turn");
        assert_eq!(worktree(&repo), then(&repo, last, "before"), "undo of {turns:?}");
        undone.push(last);
    }
    assert_eq!(undone.len(), 11, "a turn that took a part out goes with the one below: {undone:?}");
    assert_eq!(repo.git(["branch", "--format=%(refname:short)"]).replace('\n', " "), "main recorded");
    repo.prune();
    while let Some(turns) = walked(&repo, &["redo"]) {
        let last = *turns.last().expect("a turn");
        // What took a part of it out comes with it.
        let whole = if last == 6 { 7 } else { last };
        assert_eq!(worktree(&repo), then(&repo, whole, "after"), "redo of {turns:?}");
        if last == 12 {
            repo.state().assert_is(&end, "all is as the first release left it");
        }
    }
    for turn in [1, 2, 4, 11] {
        repo.oxundo(["show", "--stat", &turn.to_string()]).success();
    }
    repo.oxundo(["restore", "--exact", "before the squash"]).success();
    assert_eq!(worktree(&repo), then(&repo, 11, "after"), "a checkpoint of then");
    repo.agent("echo today >today");
    repo.undo();
    repo.oxundo(["log", "--ops"]).says("op:");
    repo.assert_sound();
}

#[test]
fn a_newer_oxundo_timeline_is_refused_and_stays_as_it_is() {
    let repo = recorded();
    let state = |repo: &Sandbox| -> serde_json::Value {
        serde_json::from_str(&repo.git(["show", "refs/oxundo/timeline:state.json"])).expect("a record")
    };
    assert_eq!(state(&repo)["v"], 1, "the first release's");
    repo.undo();
    assert_eq!(state(&repo)["v"], 2, "the first release refuses this");
    let mut newer = state(&repo);
    newer["v"] = 3.into();
    let apart = repo.clone().with_variable("GIT_INDEX_FILE", repo.path(".git/apart"));
    let id = repo.git_fed(&["hash-object", "-w", "--stdin"], newer.to_string().as_bytes());
    apart.sh(&format!(
        "git read-tree refs/oxundo/timeline; git update-index --cacheinfo 100644,{id},state.json
         git update-ref refs/oxundo/timeline $(git commit-tree -m newer $(git write-tree)); rm .git/apart"
    ));
    let before = repo.everything();
    for args in [&["undo"][..], &["log"], &["run", "true"], &["restore", "1"]] {
        let output = repo.oxundo(args);
        output.warns("version 3 was made by a newer oxundo");
        assert_ne!(output.code, 0);
    }
    let told = repo.oxundo(["doctor"]);
    assert!(!told.out().contains("update-ref"), "nothing of it is damaged: {told:?}");
    repo.everything().assert_is(&before, "nothing is changed");
}
