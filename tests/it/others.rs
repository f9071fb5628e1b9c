//! Branches that others move while a turn is open.

use crate::sandbox::Sandbox;

/// What others do to branches while an agent is at work, and what it does itself.
const BUSY: &str = "
    git update-ref refs/heads/entire/checkpoints/v1 HEAD
    git fetch -q ../up main:fetched
    git worktree add -q -b theirs ../w && git -C ../w commit -q --allow-empty -m theirs && git worktree remove ../w
    git branch own
    git switch -qc mine && git commit -q --allow-empty -m mine && git switch -q main
    echo work >work.txt";

fn branches(repo: &Sandbox) -> Vec<String> {
    let all = repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    all.lines().map(str::to_owned).collect()
}

#[test]
fn branches_that_others_moved_during_a_turn_stay_and_are_named() {
    let repo = Sandbox::new();
    repo.sh("git clone -q . ../up; cd ../up; git -c user.name=U -c user.email=u@x commit -q --allow-empty -m up");
    let before = repo.state();
    repo.agent(BUSY);
    let after = repo.state();
    let others = ["entire/checkpoints/v1", "fetched", "main", "theirs"];
    let planned = repo.json(["undo", "--dry-run"]).1;
    let undone = repo.oxundo(["undo"]);
    undone.success();
    for name in ["entire/checkpoints/v1", "fetched", "theirs"] {
        let said = format!("'{name}' moved during turn 1, not by it, and stays: '--branches=all' moves it too");
        assert!(undone.err().contains(&said), "{undone:?}");
        assert!(!planned["branches"].to_string().contains(name), "{planned}");
    }
    assert_eq!(branches(&repo), others);
    assert!(!repo.exists("work.txt"));
    repo.oxundo(["redo"]).success();
    repo.state().assert_is(&after, "all is as it was");
    // Commits that no turn has made leave no branch.
    repo.refuses(&["undo", "--branches=all"], "foreign");
    repo.sh("git branch -qD fetched theirs");
    repo.oxundo(["undo", "--branches=all"]).success();
    repo.state().assert_is(&before, "another tool's is back where it was too");
}

#[test]
fn on_another_tools_branch_a_turn_makes_no_commit_and_says_so() {
    let repo = Sandbox::new();
    repo.sh("git switch -qc gitbutler/workspace; echo mine >>README.txt");
    let before = repo.state();
    let said = repo.agent("echo work >>README.txt").err();
    assert!(said.contains("recorded without commits: 'gitbutler/workspace' is another tool's branch"), "{said}");
    assert_eq!(repo.git(["rev-list", "--count", "HEAD"]), "1");
    repo.undo();
    repo.state().assert_is(&before, "the turn is undone all the same");
}
