//! What other tools keep in the repository: branches that they move while a turn is open, notes, refs and files of their own.

use crate::sandbox::{Mode, Sandbox, State, in_both_modes};
use crate::steps::{hook, shell};
use serde_json::json;

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
fn an_undo_that_moves_branches_of_others_too_names_the_redo_that_does() {
    let repo = Sandbox::new();
    repo.agent("echo work >work.txt; git fetch -q . HEAD:fetched");
    let after = repo.state();
    let undone = repo.oxundo(["undo", "--branches=all"]);
    undone.warns("'oxundo redo --branches=all' brings it back");
    assert_eq!(branches(&repo), ["main"]);
    let redone = repo.oxundo(["redo", "--branches=all"]);
    redone.warns("'oxundo undo --branches=all' takes it back");
    repo.state().assert_is(&after, "redo");
    // Where it moves none, there is nothing to say of it.
    let plain = repo.oxundo(["undo"]);
    plain.warns("'oxundo redo' brings it back");
}

#[test]
fn a_branch_that_was_checked_out_elsewhere_is_put_back_by_the_line_that_is_named() {
    for begun in ["true", "git branch wb"] {
        let repo = Sandbox::new();
        repo.sh(begun);
        let add = if begun == "true" { "-b wb" } else { "" };
        let script = format!(
            "echo work >work.txt; git worktree add -q {add} ../w wb 2>/dev/null || git worktree add -q -b wb ../w
            cd ../w; echo q >q; git add q; git commit -qm q; git switch -q --detach"
        );
        repo.agent(&script);
        let refused = repo.refuses(&["undo", "--branches=all"], "foreign");
        let hints = refused["hints"].as_array().expect("hints");
        let line =
            hints.iter().find_map(|hint| Some(hint.as_str()?.split_once("run 'git branch ")?.1.split_once('\'')?.0));
        repo.sh(&format!("git branch {}", line.expect("a line that leads on")));
        repo.oxundo(["undo", "--branches=all"]).success();
        assert_eq!(repo.git(["log", "-1", "--format=%s", "wb-kept"]), "q", "it is kept");
    }
}

#[test]
fn a_branch_that_another_worktrees_turn_may_have_moved_stays_and_is_named() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.sh("git branch old; git branch gone");
        let tree = repo.linked("tree");
        tree.agent("git branch earlier; echo earlier >earlier");
        let before = repo.state();
        // While the other one is at work, each makes, moves and deletes branches; and it has been on one of its own.
        let theirs = "git branch theirs; git branch -qf old HEAD; git branch -qD gone; echo x >x";
        let nested = format!("(cd ../tree; oxundo -q run -- sh -ec '{theirs}')");
        let own = "git branch before-it; echo own >own";
        let mine = "git switch -qc mine; git commit -q --allow-empty -m mine; git switch -q main; git branch after-it";
        repo.turn(mode, &format!("{own}; {nested}; {mine}"));
        let (after, all) = (repo.state(), branches(&repo));
        let undone = repo.oxundo(["undo"]);
        undone.success();
        for name in ["theirs", "old", "gone"] {
            let said = format!("'{name}' moved during turn 1, not by it, and stays: '--branches=all' moves it too");
            assert!(undone.err().contains(&said), "{name}: {undone:?}");
        }
        assert_eq!(branches(&repo), ["earlier", "main", "old", "theirs", "tree"], "what is the turn's has gone");
        let rest = |state: State| {
            ["theirs", "old", "gone", "tree"]
                .iter()
                .fold(state, |state, name| state.without(&format!("ref refs/heads/{name}")))
        };
        rest(repo.state()).assert_is(&rest(before.clone()), "all else is undone");
        repo.redo();
        assert_eq!(branches(&repo), all);
        repo.state().assert_is(&after, "and redone");
        // Nor does that of the other one: nobody can tell.
        tree.oxundo(["undo"]).warns("'theirs' moved during turn 2");
        assert_eq!(branches(&repo), all);
        tree.oxundo(["undo"]).success();
        assert!(!branches(&repo).contains(&"earlier".to_owned()), "what it alone did is undone");
    });
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

/// The tool commits on its branch while a turn is at work there, as the agent may have it do: the branch stays.
#[test]
fn another_tools_branch_stays_where_it_went_in_a_turn_and_is_named() {
    let commit = "git commit -q --allow-empty -m Workspace";
    let update = "git update-ref -m GitButler HEAD $(git commit-tree -p HEAD -m Workspace HEAD^{tree})";
    for (script, by_hooks) in [(commit, false), (update, false), (commit, true), ("git commit -qam Workspace", true)] {
        let repo = Sandbox::new();
        repo.write("staged.txt", "1\n").sh("git add -A; git commit -qm files; git switch -qc gitbutler/workspace");
        repo.sh("echo mine >>staged.txt; git add staged.txt; echo mine >mine.txt");
        let (before, head) = (repo.files(), repo.git(["rev-parse", "HEAD"]));
        let script = format!("echo work >>README.txt; {script}");
        if by_hooks {
            hook(&repo, "s", "UserPromptSubmit", &json!({}));
            shell(&repo, 1, &script);
            hook(&repo, "s", "Stop", &json!({}));
        } else {
            repo.agent(&script);
        }
        let (after, moved) = (repo.files(), repo.git(["rev-parse", "HEAD"]));
        assert_ne!(head, moved, "{script}");
        let planned = repo.json(["undo", "--dry-run"]).1;
        let undone = repo.oxundo(["undo"]);
        undone.success();
        undone.warns("'gitbutler/workspace' moved during turn 1, and stays: it is another tool's branch");
        assert_eq!(repo.git(["rev-parse", "HEAD"]), moved, "{script}: the branch stays");
        assert_eq!(planned["head"]["from"], planned["head"]["to"], "{planned}");
        repo.files().assert_is(&before, &script);
        // It goes on there, as the tool does all the time.
        repo.sh("git commit -q --allow-empty -m 'Workspace again'");
        let again = repo.git(["rev-parse", "HEAD"]);
        repo.oxundo(["redo"]).success();
        assert_eq!(repo.git(["rev-parse", "HEAD"]), again, "{script}: redo leaves it too");
        repo.files().assert_is(&after, &script);
        repo.assert_sound();
    }
    // On any other branch it is the turn's.
    let repo = Sandbox::new();
    let before = repo.files();
    repo.agent("git commit -q --allow-empty -m own; git switch -qc gitbutler/workspace; echo work >>README.txt");
    let tip = repo.git(["rev-parse", "gitbutler/workspace"]);
    repo.oxundo(["undo"]).success();
    assert_eq!(repo.git(["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(repo.git(["rev-parse", "gitbutler/workspace"]), tip, "nor is it taken away");
    repo.files().assert_is(&before, "the files");
    repo.assert_sound();
}

/// What Entire and git-ai have git do: of each commit there is a trailer and an archive of Entire's, which takes in what was on a
/// shadow branch, and a note of git-ai's. Both have files of their own in the git directory.
const TOOLS: &str = r#"
mkdir -p .git/hooks .git/entire-sessions .git/ai/working_logs
echo '{"phase":"active"}' >.git/entire-sessions/one.json; echo '{"files":[]}' >.git/ai/working_logs/log.json
cat >.git/hooks/prepare-commit-msg <<'E'
#!/bin/sh
git interpret-trailers --in-place --trailer 'Entire-Checkpoint: a1b2c3d4e5f6' "$1"
E
cat >.git/hooks/post-commit <<'E'
#!/bin/sh
archive=refs/heads/entire/checkpoints/v1
told=$(git rev-parse HEAD | git hash-object -w --stdin)
tree=$(printf '100644 blob %s\tmetadata.json\n' $told | git mktree)
tree=$(printf '040000 tree %s\tb2c3d4e5f6\n' $tree | git mktree)
tree=$(printf '040000 tree %s\ta1\n' $tree | git mktree)
parent=$(git rev-parse -q --verify $archive)
git update-ref $archive $(git commit-tree ${parent:+-p $parent} -m 'Checkpoint: a1b2c3d4e5f6' $tree)
git update-ref -d refs/heads/entire/1234567-e3b0c4
echo '{"phase":"ended"}' >.git/entire-sessions/one.json
printf 'f\n  s_0123456789abcd::t_0123456789abcd 1-2\n---\n{"schema_version":"authorship/3.0.0"}\n' | git notes --ref=ai add -f -F - HEAD
E
chmod +x .git/hooks/*
"#;

/// What Entire's hooks in an agent do at each call: its shadow branch goes on.
const SHADOW: &str =
    "git update-ref refs/heads/entire/1234567-e3b0c4 $(git commit-tree -p HEAD -m shadow 'HEAD^{tree}'); ";

/// All that other tools keep.
fn of_tools(repo: &Sandbox) -> String {
    repo.sh("git for-each-ref --format='%(refname) %(objectname)' refs/heads/entire refs/notes/ai refs/jj
         for f in .git/entire-sessions/* .git/ai/working_logs/*; do echo $f; cat $f; done
         git notes --ref=ai list | while read note _; do git cat-file -p $note; done")
}

/// The state without other tools' branches.
fn without_tools(state: State) -> State {
    state.without("ref refs/heads/entire/")
}

#[test]
fn what_entire_and_git_ai_keep_survives_every_command_beside_them() {
    in_both_modes(|mode| {
        // Their refs are made in the turn, or move in it; a shadow branch goes in it, and another comes.
        for there in [false, true] {
            let repo = Sandbox::new();
            repo.sh(TOOLS);
            repo.sh("echo user >>f; git add f");
            repo.sh(if there { "git commit -qm first" } else { "git -c core.hooksPath=/dev/null commit -qm first" });
            repo.sh(&format!("{SHADOW} echo mine >>f"));
            let before = without_tools(repo.state());
            let script = "echo own >own; git add own; git commit -qm own; echo more >>f; echo new >new; ";
            repo.turn(mode, &format!("{SHADOW}{script}{SHADOW}"));
            let after = without_tools(repo.state());
            let theirs = of_tools(&repo);
            for name in ["entire/checkpoints/v1", "entire/1234567-e3b0c4", "refs/notes/ai", "\"ended\""] {
                assert!(theirs.contains(name), "{name} is there: {theirs}");
            }
            let own = repo.git(["rev-list", "HEAD", "--grep=^own", "--max-count=1"]);
            let lines: &[(&[&str], Option<&State>)] = &[
                (&["undo"], Some(&before)),
                (&["redo"], Some(&after)),
                (&["undo", "--revert"], None),
                (&["redo"], None),
                (&["undo", "--only", "1"], None),
                (&["redo"], None),
                (&["undo", "--to", "1"], Some(&after)),
                (&["restore", "1:before", "--", "f"], None),
                (&["undo"], Some(&after)),
                (&["restore", "--exact", "1:before"], None),
                (&["undo"], Some(&after)),
                (&["gc", "--keep", "now"], Some(&after)),
                (&["undo"], Some(&before)),
                (&["redo"], Some(&after)),
            ];
            // A ghost turn's changes are in no commit.
            let squash: &[(&[&str], Option<&State>)] = &[(&["squash", "-m", "one"], None), (&["undo"], Some(&after))];
            let squash = if mode == Mode::Commit { squash } else { &[] };
            for (line, wanted) in squash.iter().chain(lines) {
                let output = repo.oxundo(*line);
                assert!(output.code == 0 || *line == ["undo", "--to", "1"], "{line:?}: {output:?}");
                assert_eq!(of_tools(&repo), theirs, "{line:?}: theirs is as they left it");
                if let Some(wanted) = wanted {
                    without_tools(repo.state()).assert_is(wanted, &format!("{line:?}"));
                }
            }
            // The same commit is back, with what git-ai said of it.
            repo.git(["merge-base", "--is-ancestor", own.trim(), "HEAD"]);
            let shown = repo.git(["notes", "--ref=ai", "show", own.trim()]);
            assert!(shown.contains("s_0123456789abcd"), "{shown}");
            repo.prune();
            assert_eq!(of_tools(&repo), theirs, "nothing of theirs is pruned");
            repo.assert_sound();
        }
    });
}

#[test]
fn a_hook_of_another_tools_that_acts_while_oxundo_commits_keeps_what_it_does() {
    let repo = Sandbox::new();
    repo.sh(TOOLS);
    repo.sh("git config oxundo.verify true; cp .git/hooks/post-commit .git/hooks/pre-commit");
    let before = without_tools(repo.state());
    repo.agent("echo more >>README.txt");
    assert_eq!(repo.git(["log", "-1", "--format=%(trailers:key=Entire-Checkpoint,valueonly)"]).trim(), "a1b2c3d4e5f6");
    let (after, theirs) = (without_tools(repo.state()), of_tools(&repo));
    assert!(theirs.contains("entire/checkpoints/v1") && theirs.contains("refs/notes/ai"), "{theirs}");
    repo.undo();
    without_tools(repo.state()).assert_is(&before, "undone");
    repo.redo();
    without_tools(repo.state()).assert_is(&after, "and redone");
    assert_eq!(of_tools(&repo), theirs, "theirs stays");
    // One that commits itself, in the midst of it: what it did is on its branch.
    let commits = "#!/bin/sh\ngit update-ref HEAD $(git commit-tree -p HEAD -m theirs HEAD^{tree})\n";
    repo.write(".git/hooks/pre-commit", commits);
    let output = repo.oxundo(["run", "--", "sh", "-c", "echo again >>README.txt"]);
    let log = repo.git(["log", "--format=%s"]);
    assert!(log.lines().any(|line| line == "theirs"), "{log}\n{output:?}");
    repo.sh("rm .git/hooks/pre-commit");
    assert!(String::from_utf8_lossy(&repo.read("README.txt")).contains("again"), "what the agent did is there");
    repo.oxundo(["status"]).success();
    repo.assert_sound();
}

/// A repository that jj works in as well: HEAD is detached at the parent of jj's working copy, whose commits only jj's refs hold.
const JJ: &str = "
    git checkout -q --detach; mkdir -p .jj/repo/store .jj/repo/op_heads/heads .jj/working_copy
    printf '/*\\n' >.jj/.gitignore; printf git >.jj/repo/store/type; printf ../../../.git >.jj/repo/store/git_target
    touch .jj/repo/op_heads/heads/op1; echo one >.jj/working_copy/checkout
    w=$(git commit-tree -p HEAD -m '' 'HEAD^{tree}'); git update-ref refs/jj/keep/$w $w";

/// What 'jj commit' does: the working copy's commit has a message, HEAD is at it, and it has an empty one on top.
const JJ_COMMIT: &str = "
    git add -A; w=$(git commit-tree -p HEAD -m own $(git write-tree)); git update-ref refs/jj/keep/$w $w
    git update-ref --no-deref -m 'export from jj' HEAD $w
    n=$(git commit-tree -p $w -m '' $(git write-tree)); git update-ref refs/jj/keep/$n $n
    git update-ref -m 'export from jj' refs/heads/main $w
    mv .jj/repo/op_heads/heads/op1 .jj/repo/op_heads/heads/op2; echo two >.jj/working_copy/checkout";

#[test]
fn a_repository_that_jj_works_in_as_well_goes_there_and_back() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.sh(JJ);
        repo.sh("echo mine >>README.txt; echo new >mine.txt");
        let of_git = |repo: &Sandbox| repo.state().without("on disk .jj");
        let of_jj = |repo: &Sandbox| repo.sh("git for-each-ref refs/jj; grep -r '' .jj; ls .jj/repo/op_heads/heads");
        let before = of_git(&repo);
        repo.turn(mode, &format!("echo work >>README.txt; echo work >work.txt; {JJ_COMMIT}; echo more >>README.txt"));
        let (after, theirs) = (of_git(&repo), of_jj(&repo));
        assert_eq!(after.branch(), b" (detached)");
        for _ in 0..2 {
            repo.undo();
            of_git(&repo).assert_is(&before, "undone: HEAD is detached where it was, and the bookmark is back");
            assert_eq!(of_jj(&repo), theirs, "jj's own refs and files are its own");
            repo.prune();
            repo.redo();
            of_git(&repo).assert_is(&after, "redone");
            assert_eq!(of_jj(&repo), theirs);
        }
        repo.oxundo(["undo", "--only", "1"]).success();
        repo.undo();
        of_git(&repo).assert_is(&after, "taken out on top, and back");
        repo.oxundo(["gc", "--keep", "now"]).success();
        assert_eq!(of_jj(&repo), theirs);
        repo.undo();
        of_git(&repo).assert_is(&before, "undone at last");
        repo.assert_sound();
    });
}

/// Other tools act at any instant of oxundo's.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod instants {
    use super::{SHADOW, TOOLS};
    use crate::kill_points::{in_parallel, points_of};
    use crate::sandbox::{Output, Sandbox, announce};
    use crate::tracer::{LAUNCH, interrupt_each};
    use std::cell::{Cell, RefCell};

    /// What they do: the archive goes on, the shadow branch goes, a note comes, jj keeps a commit.
    const ACTS: &str = "c=$(git commit-tree -p refs/heads/entire/checkpoints/v1 -m theirs 'HEAD^{tree}') || exit 1
        git update-ref refs/heads/entire/checkpoints/v1 $c || exit 1
        git update-ref -d refs/heads/entire/1234567-e3b0c4; git update-ref refs/jj/keep/$c $c
        git notes --ref=ai append -m more main; echo $c";

    /// What became of a command beside which they acted.
    struct Outcome {
        code: Option<i32>,
        said: String,
        instants: usize,
        /// The commit that they made, if they could.
        made: Option<String>,
    }

    /// Runs a command, and lets them act before its change of this number.
    fn act_at(repo: &Sandbox, line: &[&str], number: usize) -> Outcome {
        let (seen, made) = (Cell::new(0), RefCell::new(None));
        let each = |_: &str| {
            if seen.replace(seen.get() + 1) == number {
                let output = Output::of(&mut repo.shell(ACTS));
                *made.borrow_mut() = (output.code == 0).then(|| output.out().trim().to_owned());
            }
        };
        let trace =
            interrupt_each(&mut repo.launched_command(LAUNCH, line), None, &each).expect("it was traced before");
        Outcome { code: trace.code, said: trace.stderr, instants: seen.get(), made: made.into_inner() }
    }

    fn check(repo: &Sandbox, line: &[&str], number: usize) {
        let Outcome { code, said, made, .. } = act_at(repo, line, number);
        // Their branches are oxundo's business where it was asked to move them.
        let is_asked = line.contains(&"--branches=all");
        assert!(code == Some(0) || (is_asked && code == Some(3)), "{code:?}: {said}");
        if let Some(made) = made {
            let archive = repo.git(["rev-list", "refs/heads/entire/checkpoints/v1"]);
            assert!(archive.lines().any(|id| id == made), "their commit is on their branch: {code:?} {said}");
            assert!(repo.refs().contains_key(&format!("refs/jj/keep/{made}")), "jj keeps its commit: {said}");
            let notes = repo.sh("git notes --ref=ai list | while read note _; do git cat-file -p $note; done");
            assert!(notes.contains("s_0123456789abcd") && notes.contains("more"), "{notes}");
            let is_gone = !repo.refs().contains_key("refs/heads/entire/1234567-e3b0c4");
            assert!(is_gone || is_asked, "what they deleted stays deleted: {said}");
        }
        repo.oxundo(["status"]).success();
        repo.assert_sound();
    }

    #[test]
    fn whatever_they_do_at_any_instant_stays_and_stops_nothing() {
        let start = Sandbox::new();
        if let Err(error) = points_of(&start, &["status"]) {
            return announce(&format!("SKIPPED, NOTHING IS PROVED: no process can be traced here ({error})"));
        }
        start.sh(TOOLS);
        start.sh(&format!("echo user >>f; git add f; git commit -qm first; {SHADOW} echo mine >>f"));
        let done = start.copy();
        done.agent(&format!("echo own >own; git add own; git commit -qm own; echo more >>f; {SHADOW}"));
        let undone = done.copy();
        undone.undo();
        let operations: [(&Sandbox, &[&str]); 6] = [
            (&done, &["undo"]),
            (&done, &["undo", "--branches=all"]),
            (&undone, &["redo"]),
            (&done, &["squash", "-m", "one"]),
            (&done, &["restore", "--exact", "1:before"]),
            (&start, &["run", "--", "sh", "-c", "echo more >>f"]),
        ];
        let thorough = crate::form::is_thorough();
        let mut cases = Vec::new();
        for (nth, (repo, line)) in operations.iter().enumerate() {
            let many = act_at(&repo.copy(), line, usize::MAX).instants;
            let chosen = (0..many).filter(|number| thorough || (number + 3 * nth) % (many / 4).max(1) == 0);
            cases.extend(chosen.map(|number| (*repo, *line, number)));
        }
        let failed = in_parallel(&cases, |(repo, line, number)| check(&repo.copy(), line, *number));
        let told: String = (failed.iter())
            .map(|(at, text)| format!("== {:?} at {}\n{text}\n\n", cases[*at].1, cases[*at].2))
            .collect();
        assert!(failed.is_empty(), "{} of {} are wrong:\n{told}", failed.len(), cases.len());
    }
}
