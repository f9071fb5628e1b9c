//! The timeline follows the commits: whatever the user does with git's own commands between the turns, where HEAD stands
//! decides which are done. Real git makes the states that undo and redo must come to.

use crate::sandbox::{Mode, Sandbox, State, check_all, in_both_modes};
use serde_json::Value;

/// A turn that ends on a commit of its own, whatever the mode.
fn turn(repo: &Sandbox, mode: Mode, script: &str) {
    let commits = match mode {
        Mode::Commit => String::new(),
        Mode::Ghost => "; git add -A; git commit -qm \"ghost's\"".to_owned(),
    };
    repo.turn(mode, &format!("{script}{commits}"));
}

/// Two turns with commits, and at last a ghost turn; and a copy of each state, the first one first.
fn with_turns(mode: Mode) -> (Sandbox, Vec<Sandbox>) {
    let repo = Sandbox::new();
    let mut states = vec![repo.copy()];
    turn(&repo, mode, "echo one >>README.txt; echo one >one.txt");
    states.push(repo.copy());
    turn(&repo, mode, "echo two >>one.txt; mkdir d; echo two >d/two.txt");
    states.push(repo.copy());
    repo.turn(Mode::Ghost, "echo three >three.txt; echo three >>README.txt");
    states.push(repo.copy());
    (repo, states)
}

/// The numbers and words of `log`'s turns, newest first.
pub(crate) fn told(repo: &Sandbox) -> Vec<String> {
    repo.log().iter().map(|turn| format!("{} {}", turn["turn"], turn["state"].as_str().unwrap_or_default())).collect()
}

/// A state, without what the user's own git commands alone leave behind.
fn seen(repo: &Sandbox) -> State {
    repo.state()
}

#[track_caller]
fn at(repo: &Sandbox, wanted: &State, what: &str) {
    seen(repo).assert_is(wanted, what);
}

#[test]
fn undo_and_redo_go_on_wherever_the_commits_are_taken() {
    // What the user does, and how git makes the same of each earlier state; TIP is the last turn's commit.
    let ways = [
        ("renamed", "git branch -m trunk", "git branch -m trunk"),
        ("a new branch", "git switch -qc feature", "git branch -m feature; git branch main TIP"),
        ("detached", "git switch -q --detach", "git switch -q --detach; git branch -f main TIP"),
        ("the old branch is gone", "git switch -qc feature; git branch -qD main", "git branch -m feature"),
        (
            "fast-forwarded",
            "git switch -qc old BASE; git merge -q --ff-only main",
            "git branch -m old; git branch main TIP",
        ),
        ("packed", "git pack-refs --all; git switch -qc feature; git branch -qM main", "true"),
    ];
    in_both_modes(|mode| {
        check_all(ways.map(|(name, git, same)| (name.to_owned(), (git, same))), |(git, same)| {
            let (repo, states) = with_turns(mode);
            // The ghost turn's files would be in the way of a switch to an older state.
            let moved = git.contains("BASE");
            let top = if moved { 2 } else { 3 };
            let repo = if moved { states[2].copy() } else { repo };
            let [tip, base] = ["HEAD", "HEAD~2"].map(|rev| repo.git(["rev-parse", rev]).trim().to_owned());
            repo.sh(&git.replace("BASE", &base));
            let wanted: Vec<State> = states[..=top]
                .iter()
                .map(|state| {
                    // git gives that commit to each of them.
                    state.sh(&format!("git fetch -q '{}' {tip}", repo.root().display()));
                    state.sh("rm -f .git/FETCH_HEAD");
                    state.sh(&same.replace("TIP", &tip));
                    seen(state)
                })
                .collect();
            at(&repo, &wanted[top], "the user's own command and its double agree");
            assert_eq!(told(&repo).len(), top, "log tells of all turns: {:?}", told(&repo));
            for (place, wanted) in wanted[..top].iter().enumerate().rev() {
                repo.undo();
                at(&repo, wanted, &format!("undo leads to the state after turn {place} ({mode:?})"));
            }
            for wanted in &wanted[1..] {
                repo.redo();
                at(&repo, wanted, &format!("redo leads back ({mode:?})"));
            }
            repo.oxundo(["undo", "--steps", &top.to_string()]).success();
            at(&repo, &wanted[0], "all at once");
            repo.oxundo(["redo", "--to", &top.to_string()]).success();
            at(&repo, &wanted[top], "and back");
            repo.assert_sound();
        });
    });
}

#[test]
fn the_other_forms_of_undo_go_along() {
    check_all(
        ["git branch -m trunk", "git switch -qc feature", "git switch -q --detach"].map(|git| (git.to_owned(), git)),
        |git| {
            for args in [&["undo", "--revert"][..], &["undo", "--only", "1"], &["undo", "--", "d"]] {
                let repo = Sandbox::new();
                repo.agent("echo one >one.txt");
                repo.agent("mkdir d; echo two >d/two.txt");
                repo.sh(git);
                repo.oxundo(args).success();
                let gone = if args.contains(&"--only") { "one.txt" } else { "d/two.txt" };
                repo.assert_absent(gone, &format!("{args:?} takes it out after {git}"));
                repo.oxundo(["redo"]).success();
                assert!(repo.exists(gone), "redo brings it back");
            }
        },
    );
}

#[test]
fn squash_goes_along() {
    let reword = "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/reword/' GIT_EDITOR='sed -i 1s/$/./' git rebase -q -i HEAD~3";
    let ways = [
        "git branch -m trunk",
        "git switch -qc feature",
        "git switch -q --detach",
        "git commit -q --amend -m other",
        reword,
    ];
    check_all(ways.map(|git| (git.to_owned(), git)), |git| {
        let repo = Sandbox::new();
        repo.agent("echo one >one.txt");
        repo.write("README.txt", "mine\n");
        repo.agent("echo two >two.txt");
        let began = repo.git(["rev-parse", "HEAD~3"]);
        repo.sh(git);
        let before = repo.state();
        for args in [&["squash"][..], &["squash", "1..2"]] {
            repo.oxundo(args).success();
            assert_eq!(repo.git(["rev-parse", "HEAD~2"]), began, "what is the user's, and one commit");
            assert_eq!(repo.git(["diff", "--name-only", "HEAD~2", "HEAD~1"]).trim(), "README.txt", "{args:?}");
            repo.undo();
            repo.state().assert_is(&before, "undo takes it back");
        }
    });
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "echo one >one.txt");
    repo.refuses(&["squash"], "nothing");
}

#[test]
fn what_is_done_on_a_branch_that_oxundo_began_is_not_done_where_git_leads_back_to() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        turn(&repo, mode, "echo one >one.txt");
        turn(&repo, mode, "echo two >two.txt");
        let main = repo.state();
        repo.oxundo(["branch", "try"]).success();
        let on_try = repo.state();
        for more in [false, true] {
            if more {
                repo.turn(Mode::Ghost, "echo four >four.txt");
            }
            let there = repo.state();
            repo.git(["switch", "-q", "main"]);
            assert_eq!(told(&repo), ["2 done", "1 done"]);
            assert_eq!(repo.json(["status"]).1["undo_depth"], 2);
            repo.oxundo(["undo"]).says("Undid turn 2");
            assert_eq!(repo.exists("four.txt"), more, "what stays in the worktree is as edits are");
            repo.git(["rev-parse", "-q", "--verify", "try"]);
            repo.redo();
            repo.git(["switch", "-q", "try"]);
            repo.state().assert_is(&there, "and there it goes on");
        }
        repo.undo();
        repo.state().assert_is(&on_try, "turn 4 is undone on its branch");
        repo.undo();
        repo.state().assert_is(&main, "and the branch");
    });
}

#[test]
fn a_turn_that_the_user_took_off_is_undone_by_hand_and_redo_brings_it_back() {
    in_both_modes(|mode| {
        let (_, states) = with_turns(mode);
        let resets = [("hard", 1, 1), ("hard", 2, 0), ("soft", 1, 1), ("mixed", 2, 0), ("keep", 1, 1)];
        check_all(resets.map(|case| (format!("{case:?}"), case)), |(how, many, place)| {
            let repo = states[2].copy();
            let end = repo.state();
            repo.sh(&format!("git reset -q --{how} HEAD~{many}"));
            let after = repo.state();
            let mut words: Vec<String> = (place + 1..=2).rev().map(|turn| format!("{turn} undone")).collect();
            words.extend((1..=*place).rev().map(|turn| format!("{turn} done")));
            assert_eq!(told(&repo), words);
            repo.oxundo(["log"]).says("[undone by hand]");
            repo.oxundo(["redo", "--steps", &many.to_string()]).success();
            repo.state().assert_is(&end, &format!("redo brings back what reset --{how} took off ({mode:?})"));
            repo.oxundo(["undo", "--steps", &many.to_string()]).success();
            if *how == "hard" || *how == "keep" {
                repo.state().assert_is(&after, "and undo takes it off again");
            }
            repo.assert_sound();
        });
    });
}

#[test]
fn what_a_soft_reset_kept_of_several_turns_is_each_turns_own_when_they_are_redone_one_by_one() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.commit("g", "1\n");
        let mut states = vec![repo.state()];
        for script in ["echo one >>README.txt; echo one >one.txt", "echo two >>g; echo two >two.txt"] {
            turn(&repo, mode, script);
            states.push(repo.state());
        }
        repo.sh("git reset -q --soft HEAD~2");
        for op in ["redo", "undo", "redo", "redo"] {
            repo.oxundo([op]).success();
        }
        repo.state().assert_is(&states[2], "redo brings both back");
        for turn in [1, 0] {
            repo.undo();
            repo.state().assert_is(&states[turn], &format!("undo leads to the end of turn {turn} ({mode:?})"));
        }
    });
}

#[test]
fn undo_goes_on_below_what_the_user_took_off() {
    in_both_modes(|mode| {
        let (_, states) = with_turns(mode);
        let repo = states[2].copy();
        repo.sh("git reset -q --hard HEAD~1");
        repo.undo();
        repo.state().assert_is(&states[0].state(), "the turn below is undone");
        repo.oxundo(["redo", "--to", "2"]).success();
        repo.state().assert_is(&states[2].state(), "redo brings both back");
    });
}

#[test]
fn a_reset_forward_again_is_followed() {
    in_both_modes(|mode| {
        let (_, states) = with_turns(mode);
        let repo = states[2].copy();
        repo.oxundo(["undo", "--steps", "2"]).success();
        let last = states[2].head();
        repo.sh(&format!("git reset -q --hard {}", last.trim()));
        assert_eq!(told(&repo), ["2 done", "1 done"]);
        repo.state().assert_is(&states[2].state(), "git's own reset leads to the same");
        repo.undo();
        repo.state().assert_is(&states[1].state(), "undo takes the last turn off again");
        repo.sh("git reset -q --hard HEAD~1");
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.state().assert_is(&states[2].state(), "redo goes on from there");
    });
}

#[test]
fn commits_that_git_alone_took_off_are_kept_as_soon_as_oxundo_writes() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    let end = repo.state();
    repo.sh("git reset -q --hard HEAD~1");
    repo.turn(Mode::Ghost, "echo two >two.txt");
    repo.prune();
    repo.oxundo(["redo", "--to", "1"]).success();
    repo.state().assert_is(&end, "the commit that the user took off is there");
}

#[test]
fn what_was_rebased_or_picked_is_recognised_and_reverted() {
    let cases = [
        (
            "rebased",
            "git switch -qc new HEAD~1; git commit -q --allow-empty -m new; git switch -q main; git rebase -q new",
        ),
        ("picked", "git switch -qc new HEAD~1; git commit -q --allow-empty -m new; git cherry-pick main >/dev/null"),
        ("amended", "echo mine >>one.txt; git commit -qa --amend --no-edit"),
    ];
    check_all(cases.map(|(name, git)| (name.to_owned(), git)), |git| {
        let repo = Sandbox::new();
        repo.agent("echo one >one.txt");
        repo.sh(git);
        let before = repo.state();
        let error = repo.refuses(&["undo"], "foreign");
        assert!(message(&error).contains("turn 1"), "it says whose it was: {error}");
        assert!(error["hints"].to_string().contains("undo --revert"), "{error}");
        if !git.contains("mine") {
            repo.oxundo(["undo", "--revert"]).success();
            repo.assert_absent("one.txt", "the turn is taken out by a commit on top");
            repo.undo();
            repo.state().assert_is(&before, "which can be undone");
        }
    });
}

fn message(error: &Value) -> &str {
    error["message"].as_str().unwrap_or_default()
}

#[test]
fn a_merge_of_the_branch_is_refused_and_reverted() {
    let repo = Sandbox::new();
    repo.git(["switch", "-q", "-c", "feature"]);
    repo.agent("echo one >one.txt");
    repo.sh("git switch -q main; git commit -q --allow-empty -m other; git merge -q --no-edit feature");
    assert_eq!(told(&repo), ["1 done"]);
    repo.refuses(&["undo"], "merge");
    repo.oxundo(["undo", "--revert"]).success();
    repo.assert_absent("one.txt", "it is taken out on top of the merge");
}

#[test]
fn the_way_back_that_redo_names_is_one_that_is_not_refused() {
    let side = "git switch -q -c side; git commit -q --allow-empty -m own; git switch -q main";
    let merge = "git merge -q --no-ff --no-edit side; echo 1 >n1";
    let [off, all_off] = ["git reset -q --hard HEAD~1", "git reset -q --hard HEAD~2"];
    let push = "git init -q --bare ../up; git push -q ../up main; git remote add up ../up; git fetch -q up";
    let cases = [
        ("a merge", merge, all_off.to_owned(), "redo"),
        ("published since", "echo 1 >n1", format!("{push}; {off}"), "redo"),
        ("the state itself", "echo 1 >n1", format!("{push}; {off}"), "restore --exact 1"),
        ("a branch", "echo 1 >n1", format!("{push}; {off}"), "branch other 1"),
        ("neither", "echo 1 >n1", off.to_owned(), "redo"),
        (
            "another line",
            merge,
            format!("{all_off}; '{}' run -- sh -c 'echo 2 >n2'", env!("CARGO_BIN_EXE_oxundo")),
            "redo --to 1",
        ),
    ];
    check_all(cases.map(|case| (case.0.to_owned(), case)), |(_, turn, then, line)| {
        let repo = Sandbox::new();
        repo.sh(side);
        repo.agent(turn);
        repo.sh(then);
        let before = repo.files();
        let told = repo.oxundo(line.split(' '));
        told.success();
        repo.assert_file("n1", "1\n", "it is there");
        let told = told.err();
        let way = told.split("hint: '").nth(1).and_then(|rest| rest.split('\'').next()).expect("a line to type");
        repo.sh(&way.replace("oxundo", &format!("'{}'", env!("CARGO_BIN_EXE_oxundo"))));
        repo.files().assert_is(&before, &format!("{way} goes back"));
    });
}

#[test]
fn own_commits_after_an_undo_are_called_own_commits() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.agent("echo two >two.txt");
    repo.undo();
    repo.commit("own.txt", "own\n");
    let error = repo.refuses(&["redo"], "foreign");
    assert!(message(&error).ends_with("was not made by a turn"), "nothing was rewritten: {error}");
    repo.sh("git reset -q --hard HEAD~1");
    repo.redo();
    repo.assert_file("two.txt", "two\n", "redo works once it is gone");
}

#[test]
fn a_branch_without_turns_says_where_they_are() {
    let repo = Sandbox::new();
    repo.sh("git branch other; git switch -q other; git commit -q --allow-empty -m other; git switch -q main");
    repo.agent("echo one >one.txt");
    repo.sh("git switch -q other");
    repo.oxundo(["log"]).says("no turns here");
    let error = repo.refuses(&["undo"], "branch");
    assert_eq!(message(&error), "'other' has no turns: turn 1, the last one, was made on 'main'");
    assert_eq!(error["hints"][0], "run 'git switch main' first");
    repo.sh("git branch -qm main trunk");
    let error = repo.refuses(&["undo"], "branch");
    assert!(!error["hints"].to_string().contains("switch main"), "no hint names a branch that is gone: {error}");
}

#[test]
fn turns_that_led_to_another_branch_and_are_undone_are_not_elsewhere() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.agent("git switch -qc topic; echo two >two.txt");
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.refuses(&["undo"], "nothing");
    repo.oxundo(["redo", "--steps", "2"]).success();
    repo.assert_file("two.txt", "two\n", "redo leads there again");
}

#[test]
fn ghost_turns_need_no_permission_from_history() {
    let others = [
        ("committed", "echo own >>own.txt; git add own.txt; git commit -qm own"),
        ("committed all", "git add -A; git commit -qm all"),
        ("committed and went on", "git commit -q --allow-empty -m own; git switch -qc feature"),
        ("pulled", "git fetch -q up; git merge -q --ff-only up/main"),
        ("merged", "git fetch -q up; git commit -q --allow-empty -m own; git merge -q --no-edit up/main"),
    ];
    check_all(others.map(|(name, git)| (name.to_owned(), git)), |git| {
        let repo = Sandbox::new();
        repo.write("shared.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n").sh("git add -A; git commit -qm shared");
        repo.remote("up").sh("git push -q up main");
        repo.sh(
            "sed -i 's/^9$/nine/' shared.txt; git commit -qam upstream; git push -q up main; git reset -q --hard HEAD~1
                 git update-ref -d refs/remotes/up/main",
        );
        repo.turn(Mode::Ghost, "echo new >new.txt; echo more >>README.txt");
        repo.sh(git);
        let (head, shared) = (repo.head(), repo.read("shared.txt"));
        let new = repo.read("new.txt");
        repo.undo();
        repo.assert_absent("new.txt", "what the turn made is gone");
        repo.assert_file("README.txt", "readme\n", "what it changed is back");
        assert_eq!((repo.head(), repo.read("shared.txt")), (head.clone(), shared), "nothing of the user's has moved");
        repo.redo();
        assert_eq!((repo.head(), repo.read("new.txt")), (head, new), "redo brings it back");
        repo.commit("later.txt", "later\n");
        repo.undo();
        repo.commit("latest.txt", "latest\n");
        repo.redo();
        repo.assert_file("new.txt", "new\n", "over commits in between as well");
        repo.assert_sound();
    });
}

/// The turn had put it away: as it comes back with undo, it is committed, and redo does not take it from that.
#[test]
fn what_the_user_has_committed_since_an_undo_stays_with_redo() {
    for away in ["git stash -qu", "git checkout -q -- README.txt; rm new.txt", "git stash -qu; git stash drop -q"] {
        let repo = Sandbox::new();
        repo.sh("echo USER >>README.txt; echo USER >new.txt");
        repo.turn(Mode::Ghost, &format!("{away}; echo ITS >its.txt"));
        repo.undo();
        repo.sh("git add -A; git commit -qm mine");
        let committed = repo.state();
        repo.redo();
        assert_eq!(repo.git(["status", "--porcelain"]), "?? its.txt", "{away}");
        repo.undo();
        repo.state().assert_is(&committed, away);
        repo.redo();
        assert_eq!(repo.git(["status", "--porcelain"]), "?? its.txt", "{away}");
        repo.assert_sound();
    }
}

/// Whatever the turn did to what the user had uncommitted: once that is committed, no walk stages its removal or takes it out.
#[test]
fn what_the_user_has_committed_of_their_own_is_taken_out_by_no_walk() {
    let turns = [
        "git add README.txt",
        "git reset -q",
        "git stash -q; git stash pop -q",
        "git stash -q; git stash pop -q --index",
        "git stash -q",
        "git checkout -q HEAD -- README.txt",
        "sed -i '1s/.*/AGENT/' README.txt; git add README.txt",
    ];
    let owns = ["echo USERA >>README.txt", "echo USERA >>README.txt; git add README.txt; echo USERW >>README.txt"];
    let commits = [
        "git add README.txt; git commit -qm u",
        "git commit -qam u",
        "git commit -qm u 2>/dev/null || git commit -qam u",
    ];
    let stories =
        turns.iter().flat_map(|turn| owns.iter().flat_map(move |own| commits.map(|commit| (*turn, *own, commit))));
    let stories = stories.flat_map(|story| [true, false].map(|after_undo| (story, after_undo)));
    check_all(stories.map(|story| (format!("{story:?}"), story)), |((turn, own, commit), after_undo)| {
        let repo = Sandbox::new();
        repo.sh("for n in 1 2 3 4 5 6 7 8 9; do echo $n; done >README.txt; git commit -qam nine");
        repo.sh(own);
        repo.turn(Mode::Ghost, &format!("{turn}; echo AGENT >>its.txt"));
        if *after_undo {
            repo.undo();
        }
        repo.sh(&format!("({commit}) || :"));
        let committed = repo.git(["show", "HEAD:README.txt"]);
        let users =
            |text: &str| text.lines().filter(|line| line.starts_with("USER")).map(str::to_owned).collect::<Vec<_>>();
        let mut walks = if *after_undo { ["redo", "undo", "redo"] } else { ["undo", "redo", "undo"] }.into_iter();
        for walk in walks.by_ref() {
            repo.oxundo([walk]).success();
            let staged = repo.git(["diff", "--cached", "-U0"]);
            assert!(!staged.contains("\n-USER"), "{walk} stages the removal of what is committed: {staged}");
            let there = repo.sh("cat README.txt");
            for line in users(&committed) {
                assert!(there.contains(&line), "{walk} has taken out {line}: {there}");
            }
        }
        repo.assert_sound();
    });
}

/// In the index as well: whatever of it is staged, by the user or by a turn above.
#[test]
fn undo_of_two_turns_is_two_undos_though_something_is_staged_or_committed_between() {
    let stories = [
        ("sed -i 3aITS1 README.txt", "git commit -qam own", "echo ITS2 >>README.txt; git add README.txt"),
        ("sed -i 3aITS1 README.txt", "git commit -qam own; sed -i 6aMINE README.txt", "git add README.txt"),
        ("sed -i 3aITS1 README.txt", "git add -A; sed -i 8aMINE README.txt", "git reset -q; echo ITS2 >its.txt"),
        ("sed -i 3aITS1 README.txt", "git add -A; sed -i 8aMINE README.txt", "git stash -qu; echo ITS2 >its.txt"),
    ];
    check_all(stories.map(|story| (format!("{story:?}"), story)), |(first, between, second)| {
        let repo = Sandbox::new();
        repo.sh("seq 9 >README.txt; git commit -qam nine");
        repo.turn(Mode::Ghost, first);
        repo.sh(between);
        repo.turn(Mode::Ghost, second);
        let other = repo.copy();
        repo.oxundo(["undo", "2"]).success();
        other.undo();
        other.undo();
        let seen = |repo: &Sandbox| repo.sh("git status --porcelain; git diff; git diff --cached; cat README.txt");
        assert_eq!(seen(&repo), seen(&other));
        assert!(!repo.git(["diff", "--cached"]).contains("ITS"), "none of it is staged, or staged to be removed");
    });
}

/// What a redo left, as it was committed, is none of what the next undo brings back.
#[test]
fn what_a_redo_left_as_it_was_is_left_by_undo() {
    for (since, there) in [("echo USER3 >>README.txt", "USER1 USER3 "), ("sed -i /USER1/d README.txt", "")] {
        let repo = Sandbox::new();
        repo.sh("echo USER1 >>README.txt");
        repo.turn(Mode::Ghost, "git checkout -q README.txt; echo ITS >its.txt");
        repo.undo();
        repo.sh(&format!("git commit -qam own; {since}"));
        let before = repo.state();
        for _ in 0..2 {
            repo.redo();
            assert_eq!(repo.sh("grep USER README.txt | tr '\\n' ' ' || :"), there, "{since}");
            repo.undo();
            repo.state().assert_is(&before, since);
        }
    }
}

#[test]
fn a_ghost_turn_that_is_rebased_with_the_turn_below_it_stays_the_last_one_done() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.sh("git switch -qc feature");
    repo.agent("echo two >two.txt");
    repo.turn(Mode::Ghost, "echo ghost >ghost.txt");
    repo.sh("git add -A; git commit -qm own; git switch -q main");
    repo.agent("echo main >main.txt");
    repo.sh("git switch -q feature; git rebase -q main");
    assert_eq!(told(&repo)[..2], ["3 done", "2 done"]);
    repo.undo();
    repo.assert_absent("ghost.txt", "the ghost turn's");
    for file in ["one", "two", "main"] {
        repo.assert_file(&format!("{file}.txt"), format!("{file}\n"), "the others' stays");
    }
    let (_, reverted) = repo.json(["undo", "--revert"]);
    assert_eq!(reverted["turns"], serde_json::json!([2]), "{reverted}");
}

#[test]
fn a_ghost_turn_and_the_users_commit_of_the_same_file_are_merged() {
    let repo = Sandbox::new();
    repo.write("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n").sh("git add -A; git commit -qm f");
    repo.turn(Mode::Ghost, "sed -i 's/^1$/one/' f");
    repo.sh("sed -i 's/^9$/nine/' f; git commit -qam own");
    let (code, undone) = repo.json(["undo"]);
    assert_eq!((code, &undone["kept_edits"]), (0, &serde_json::json!(["f"])), "{undone}");
    repo.assert_file("f", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n", "the turn's line is back, the user's stays");
    repo.redo();
    repo.assert_file("f", "one\n2\n3\n4\n5\n6\n7\n8\nnine\n", "and the turn's is there again");
    repo.sh("sed -i 's/^one$/eins/' f; git commit -qam own");
    let error = repo.refuses(&["undo"], "conflict");
    let hints: Vec<_> = error["hints"].as_array().expect("hints").iter().filter_map(Value::as_str).collect();
    assert!(!hints.iter().any(|hint| hint.contains("stash") || hint.contains("commit")), "they are: {hints:?}");
    assert!(hints.contains(&"or run 'oxundo restore 1:before -- :/f' to have the files of then"), "{hints:?}");
    let reverted = repo.refuses(&["undo", "--revert"], "conflict");
    assert!(reverted["hints"].to_string().contains("oxundo restore 1:before -- :/f"), "{reverted}");
    repo.copy().oxundo(["undo", "--edits=overwrite"]).success();
    repo.oxundo(["restore", "1:before", "--", "f"]).success();
    repo.assert_file("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "the hint leads on");
}

#[test]
fn the_hints_of_a_conflict_lead_out_of_it() {
    let repo = Sandbox::new();
    repo.write("f", "1\n").sh("git add -A; git commit -qm f");
    repo.agent("echo 2 >f");
    repo.write("f", "mine\n");
    let error = repo.refuses(&["undo"], "conflict");
    assert!(!error["hints"].to_string().contains("commit"), "a commit would be in the way as well: {error}");
    let stashed = repo.copy();
    stashed.sh("git stash -q");
    stashed.undo();
    stashed.assert_file("f", "1\n", "as the hint says");
    repo.sh("git commit -qam mine");
    repo.refuses(&["undo"], "foreign");
    let error = repo.refuses(&["undo", "--revert"], "conflict");
    assert!(error["hints"].to_string().contains("oxundo restore 1:before -- :/f"), "{error}");
    repo.oxundo(["restore", "1:before", "--", "f"]).success();
    repo.assert_file("f", "1\n", "the hint leads on");
}

#[test]
fn a_commit_with_another_message_is_still_the_turns() {
    in_both_modes(|mode| {
        let (_, states) = with_turns(mode);
        let repo = states[2].copy();
        repo.sh("git commit -q --amend -m 'a better message'");
        let reworded = repo.state();
        assert_eq!(told(&repo), ["2 done", "1 done"]);
        repo.undo();
        repo.state().assert_is(&states[1].state(), "it is undone");
        repo.redo();
        repo.state().assert_is(&reworded, "redo brings the changed message back");
        assert_eq!(repo.git(["log", "-1", "--format=%s"]).trim(), "a better message");
        repo.oxundo(["undo", "--steps", "2"]).success();
        repo.state().assert_is(&states[0].state(), "with the turn below");
        repo.oxundo(["redo", "--steps", "2"]).success();
        repo.state().assert_is(&reworded, "and back");
        repo.prune();
        repo.undo();
        repo.prune();
        repo.redo();
        repo.state().assert_is(&reworded, "git prunes nothing of it");
    });
}

#[test]
fn a_changed_message_below_another_turn_is_known_too() {
    let repo = Sandbox::new();
    let before = repo.state();
    repo.agent("echo one >one.txt");
    repo.sh("git commit -q --amend -m better");
    let reworded = repo.state();
    repo.agent("echo two >two.txt");
    let end = repo.state();
    repo.undo();
    repo.state().assert_is(&reworded, "the turn on top is undone");
    repo.redo();
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.state().assert_is(&before, "both are");
    repo.oxundo(["redo", "--steps", "2"]).success();
    repo.state().assert_is(&end, "and both are back");
}

#[test]
fn a_new_message_under_an_undone_turn_is_not_lost_by_redo() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.agent("echo two >two.txt");
    repo.undo();
    repo.sh("git commit -q --amend -m better");
    repo.redo();
    let subjects = repo.git(["log", "--format=%s"]);
    assert_eq!(subjects.lines().nth(1), Some("better"), "{subjects}");
    repo.assert_file("two.txt", "two\n", "the turn is on top of it");
}

#[test]
fn a_turn_that_began_on_commits_that_are_gone_says_how_to_get_them_back() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.commit("own.txt", "own\n");
    repo.agent("echo two >two.txt");
    let end = repo.state();
    repo.sh("git reset -q --hard HEAD~2");
    assert_eq!(told(&repo), ["2 undone", "1 done"]);
    let error = repo.refuses(&["redo"], "branch");
    let hint = error["hints"][0].as_str().unwrap_or_default().to_owned();
    let command = hint.split('\'').nth(1).unwrap_or_default().to_owned();
    repo.sh(&format!("{command} >/dev/null"));
    repo.redo();
    repo.state().assert_is(&end, "the hint works as it stands");
}

#[test]
fn nothing_drops_out_of_the_tree() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        let base = repo.state();
        turn(&repo, mode, "echo one >one.txt");
        let one = repo.state();
        turn(&repo, mode, "echo two >one.txt");
        turn(&repo, mode, "echo three >one.txt");
        let three = repo.state();
        repo.oxundo(["undo", "--steps", "2"]).success();
        let output = repo.turn(mode, "echo four >four.txt; git add -A; git commit -qm four");
        output.warns("warning: turns 2, 3 are left beside turn 4: 'oxundo redo --to 3' goes back there");
        let four = repo.state();
        turn(&repo, mode, "echo five >one.txt");
        assert!(!repo.oxundo(["log"]).err().contains("left beside"), "it is said once");
        let five = repo.state();
        let (_, log) = repo.json(["log", "--all"]);
        let words: Vec<_> = log["turns"].as_array().expect("turns").iter().map(|turn| turn["state"].clone()).collect();
        assert_eq!(words, ["done", "done", "left", "left", "done"]);
        let (code, plan) = repo.json(["redo", "--to", "3", "--dry-run"]);
        assert_eq!((code, &plan["turns"]), (0, &serde_json::json!([5, 4, 2, 3])), "the plan has the way: {plan}");
        assert_eq!(plan["undone"], serde_json::json!([5, 4]));
        let output = repo.oxundo(["redo", "--to", "3"]);
        output.says("Undid turns 5, 4 and redid turns 2, 3: ");
        output.warns("hint: 'oxundo redo --to 5' goes back");
        repo.state().assert_is(&three, "down and up again");
        repo.oxundo(["redo", "--to", "5"]).success();
        repo.state().assert_is(&five, "and back");
        repo.oxundo(["branch", "old", "3"]).success();
        repo.assert_file("one.txt", "three\n", "a branch starts at any turn");
        repo.undo();
        repo.state().assert_is(&five, "undo takes the branch away");
        repo.undo();
        repo.state().assert_is(&four, "down the newest line");
        repo.undo();
        repo.state().assert_is(&one, "to where the lines part");
        repo.redo();
        repo.state().assert_is(&four, "redo alone takes the line that was undone last");
        repo.oxundo(["undo", "--to", "0"]).success();
        repo.state().assert_is(&base, "all of it");
        repo.prune();
        repo.oxundo(["redo", "--to", "3"]).success();
        repo.state().assert_is(&three, "git prunes nothing of it");
        repo.assert_sound();
    });
}

#[test]
fn after_a_reset_of_the_users_redo_takes_the_newest_line() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.agent("echo two >two.txt");
    repo.agent("echo three >three.txt");
    let three = repo.state();
    repo.oxundo(["undo", "--steps", "2"]).success();
    repo.agent("echo four >four.txt");
    let second = repo.log().first().map(|turn| turn["turn"].clone());
    assert_eq!(second, Some(4.into()));
    let (_, shown) = repo.json(["show", "2"]);
    let commit = shown["commits"][0].as_str().expect("a commit").to_owned();
    repo.git(["reset", "-q", "--hard", &commit]);
    repo.redo();
    repo.state().assert_is(&three, "the line goes on from there");
}

#[test]
fn paths_are_taken_out_step_by_step() {
    in_both_modes(|mode| {
        let repo = Sandbox::new();
        repo.write("f", "0\n").sh("git add -A; git commit -qm f");
        for number in 1..=3 {
            repo.turn(mode, &format!("echo {number} >f; echo {number} >g{number}"));
        }
        repo.turn(mode, "echo other >other");
        let end = repo.state();
        let (_, answer) = repo.json(["undo", "--", "f"]);
        let error = &answer["error"];
        assert_eq!(error["code"], "not_found");
        assert!(message(error).contains("turn 3 ("), "it names the last turn that did: {error}");
        assert_eq!(error["hints"][0], "run 'oxundo undo --only 3 -- f' to take that out");
        repo.oxundo(["undo", "--only", "3", "--", "f"]).success();
        repo.assert_file("f", "2\n", "the hint works");
        for number in [1, 0] {
            let output = repo.oxundo(["undo", "--", "f"]);
            output.success();
            assert!(!output.out().contains("Kept your edits"), "they are nobody's edits: {}", output.out());
            repo.assert_file("f", format!("{number}\n"), "each goes further back");
        }
        repo.refuses(&["undo", "--", "f"], "nothing");
        for number in 1..=3 {
            repo.redo();
            repo.assert_file("f", format!("{number}\n"), "redo goes forth again");
        }
        repo.state().assert_is(&end, "all is back");
        for steps in ["2", "4"] {
            repo.oxundo(["undo", "--steps", steps, "--", "f"]).success();
        }
        repo.assert_file("f", "0\n", "what is out already is no conflict");
        repo.oxundo(["undo", "--steps", "4"]).success();
        repo.assert_file("f", "0\n", "a whole undo goes over it");
    });
}

#[test]
fn a_reset_that_took_the_dirty_commit_too_is_redone_with_it() {
    check_all([("hard", 2), ("soft", 2), ("hard", 1)].map(|case| (format!("{case:?}"), case)), |(how, many)| {
        let repo = Sandbox::new();
        repo.write("f", "1\n2\n3\n").write("g", "g\n").sh("git add -A; git commit -qm files");
        repo.write("f", "one\n2\n3\n").write("g", "mine\n").write("new", "new\n").sh("git add g");
        let before = repo.state();
        repo.agent("echo 4 >>f");
        let end = repo.state();
        repo.sh(&format!("git reset -q --{how} HEAD~{many}"));
        repo.redo();
        repo.state().assert_is(&end, "what the dirty commit had saved is back as well");
        repo.undo();
        repo.state().assert_is(&before, "and undo leads to where the turn began");
    });
}

/// Makes of the timeline what the first release would have written.
pub(crate) fn as_of_the_first_release(repo: &Sandbox) {
    let name = "refs/oxundo/timeline";
    let old = repo.clone().with_variable("GIT_INDEX_FILE", repo.path(".git/old"));
    old.git(["read-tree", name]);
    for path in repo.git(["ls-tree", "-r", "--name-only", name]).lines() {
        if path.ends_with("above") {
            old.git(["update-index", "--force-remove", path]);
        }
        if !path.ends_with("state.json") && !path.ends_with("turn.json") {
            continue;
        }
        let mut record: Value = serde_json::from_str(&repo.git(["show", &format!("{name}:{path}")])).expect("a record");
        let keys = record.as_object_mut().expect("an object");
        for key in ["at", "footing", "kept"] {
            keys.remove(key);
        }
        for stack in record["stacks"].as_object_mut().into_iter().flat_map(serde_json::Map::values_mut) {
            stack.as_object_mut().expect("an object").remove("lifted");
        }
        let id = repo.git_fed(&["hash-object", "-w", "--stdin"], record.to_string().as_bytes());
        old.git(["update-index", "--cacheinfo", &format!("100644,{},{path}", id.trim())]);
    }
    let tree = old.git(["write-tree"]);
    let parents = repo.git(["log", "-1", "--format=%P", name]);
    let parents: String = parents.split_whitespace().map(|parent| format!(" -p {parent}")).collect();
    repo.sh(&format!("rm .git/old; git update-ref -m old {name} $(git commit-tree {} {parents} -m old)", tree.trim()));
}

#[test]
fn timelines_of_the_first_release_are_followed_as_well() {
    let ways =
        ["true", "git branch -m trunk", "git switch -qc feature; git branch -qD main", "git reset -q --hard HEAD~1"];
    in_both_modes(|mode| {
        check_all(ways.map(|git| (git.to_owned(), git)), |git| {
            let (_, states) = with_turns(mode);
            let repo = states[2].copy();
            repo.undo();
            repo.redo();
            as_of_the_first_release(&repo);
            repo.sh(git);
            let is_reset = git.contains("reset");
            assert_eq!(told(&repo), [if is_reset { "2 undone" } else { "2 done" }, "1 done"]);
            let only_files = |state: &State| state.clone().only(|fact| fact.starts_with("on disk "));
            if is_reset {
                repo.redo();
            }
            only_files(&repo.state()).assert_is(&only_files(&states[2].state()), "the last turn is done");
            repo.oxundo(["undo", "--steps", "2"]).success();
            only_files(&repo.state()).assert_is(&only_files(&states[0].state()), "both are undone");
            turn(&repo, mode, "echo new >new.txt");
            repo.oxundo(["redo", "--to", "2"]).success();
            only_files(&repo.state()).assert_is(&only_files(&states[2].state()), "and redone, past a new one");
            repo.assert_sound();
        });
    });
}

#[test]
fn turns_far_below_own_commits_are_found_and_those_of_another_history_are_not() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.agent("echo two >two.txt");
    let stream = |name: &str, from: &str, time: u64| {
        let commits = (0..400).map(|n| {
            let from = if n == 0 { from.to_owned() } else { String::new() };
            format!("commit refs/heads/{name}\ncommitter U <u@example.com> {} +0000\ndata 2\nc\n{from}\n", time + n)
        });
        repo.git_fed(&["fast-import", "--quiet"], commits.collect::<String>().as_bytes());
    };
    stream("long", "from refs/heads/main\n", 4_000_000_000);
    stream("other", "", 1_000_000_000);
    repo.git(["switch", "-q", "long"]);
    assert_eq!(told(&repo), ["2 done", "1 done"]);
    repo.refuses(&["undo"], "foreign");
    repo.oxundo(["undo", "--revert"]).success();
    repo.assert_absent("two.txt", "it is taken out on top");
    repo.sh("git switch -q -f other");
    assert!(told(&repo).is_empty(), "none of them is in its history");
    repo.refuses(&["undo"], "branch");
}

/// The numbers and words of all turns, newest first.
fn told_of_all(repo: &Sandbox) -> Vec<String> {
    let (_, log) = repo.json(["log", "--all"]);
    let turns = log["turns"].as_array().expect("turns");
    turns.iter().map(|turn| format!("{} {}", turn["turn"], turn["state"].as_str().unwrap_or_default())).collect()
}

#[test]
fn what_was_left_is_told_apart_from_what_is_undone_and_what_is_done_elsewhere() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.turn(Mode::Ghost, "echo two >two.txt");
    repo.undo();
    repo.git(["switch", "-q", "-c", "feature"]);
    assert_eq!(told_of_all(&repo), ["2 undone", "1 done"]);
    repo.agent("echo three >three.txt");
    assert_eq!(told_of_all(&repo), ["3 done", "2 left", "1 done"]);
    repo.git(["switch", "-q", "main"]);
    assert_eq!(told_of_all(&repo), ["3 done", "2 undone", "1 done"], "3 is done on its branch");
    repo.git(["branch", "-q", "-D", "feature"]);
    assert_eq!(told_of_all(&repo), ["3 left", "2 undone", "1 done"]);
    repo.oxundo(["redo", "--to", "3"]).success();
    repo.assert_file("three.txt", "three\n", "git has not deleted it yet");
}

#[test]
fn own_commits_between_a_ghost_turn_and_the_next_one_are_in_nobodys_way() {
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "echo ghost >ghost.txt");
    repo.commit("own.txt", "own\n");
    repo.agent("echo two >two.txt");
    let end = repo.state();
    let (own, steps) = (repo.git(["rev-parse", "HEAD~1"]), ["--steps", "2"]);
    repo.oxundo(["undo"].into_iter().chain(steps)).success();
    assert_eq!(repo.git(["rev-parse", "HEAD"]), own, "the user's commit stays");
    repo.oxundo(["redo"].into_iter().chain(steps)).success();
    repo.state().assert_is(&end, "both are back");
}

#[test]
fn turns_that_switch_branches_are_redone_as_many_at_once_as_were_undone() {
    let stories = [
        [
            "git checkout -q --orphan o",
            "git checkout -q --orphan p; git rm -rqf .; echo 2 >two; git add two; git commit -qm two",
        ],
        ["git checkout -q --orphan o; git commit -qm o", "git switch -q main"],
        ["git switch -q -c o; echo 1 >one", "git switch -q main; echo 2 >two"],
        ["git switch -q --orphan o; echo 1 >one", "git switch -q -c p"],
    ];
    in_both_modes(|mode| {
        for [first, second] in stories {
            for more in [&[][..], &["git switch -q -c q"], &["git checkout -q --orphan q", "echo 4 >four"]] {
                let repo = Sandbox::new();
                repo.turn(mode, "echo 0 >zero");
                let before = repo.state();
                for script in [&[first, second], more].concat() {
                    repo.turn(mode, script);
                }
                let (after, steps) = (repo.state(), (2 + more.len()).to_string());
                let undone = repo.oxundo(["undo", "--steps", &steps]);
                undone.success();
                repo.state().assert_is(&before, "all are undone");
                undone.warns(&format!("'oxundo redo --steps {steps}' brings them back"));
                repo.oxundo(["redo", "--steps", &steps]).success();
                repo.state().assert_is(&after, &format!("the hint holds: {first}; {second}; {more:?}"));
            }
        }
    });
}

#[test]
fn a_branch_at_a_turn_has_nothing_of_what_is_committed_elsewhere_alone() {
    // The turn is of another history, with something of the user's below it.
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.sh("git switch -q --orphan pages; echo mine >index.html; git add .; git commit -qm mine");
    repo.agent("echo two >page.html");
    repo.sh("git switch -q main");
    repo.oxundo(["branch", "fix", "2"]).success();
    assert_eq!(repo.sh("git status --porcelain; ls"), "index.html\npage.html");
    repo.undo();
    assert_eq!(repo.sh("git status --porcelain; git symbolic-ref HEAD; ls"), "refs/heads/main\nREADME.txt\none.txt");
    // The user has committed on this branch since, and a turn that moved no ref is above that.
    let repo = Sandbox::new();
    repo.commit("g", "1\n");
    repo.agent("rm g");
    repo.undo();
    repo.sh("echo mine >g; git commit -qam mine");
    repo.oxundo(["run", "--ghost", "--", "sh", "-c", "echo three >>README.txt"]).success();
    repo.oxundo(["branch", "try", "1"]).success();
    assert!(!repo.exists("g") && repo.sh("git show main:g") == "mine", "it is on its branch");
}

#[test]
fn files_that_are_as_the_walk_leaves_them_are_in_nobodys_way() {
    let repo = Sandbox::new();
    let lines: String = (1..=20).map(|line| format!("{line}\n")).collect();
    repo.commit("f", &lines);
    for (line, token) in [(10, "A1"), (11, "A2")] {
        let edit = format!("sed -i '{line}s/.*/{token}/' f");
        repo.oxundo(["run", "--ghost", "--", "sh", "-c", &edit]).success();
    }
    // The user has thrown away what they did.
    repo.sh("git reset -q --hard");
    let before = repo.state();
    repo.oxundo(["undo", "2"]).success();
    repo.state().assert_is(&before, "it is as it was before them");
    repo.oxundo(["redo", "2"]).success();
    repo.state().assert_is(&before, "and what the user made of it comes back");
}

#[test]
fn redo_leads_to_the_turn_that_was_named_though_a_branch_began_there() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    let after = repo.state();
    repo.undo();
    repo.oxundo(["branch", "kk", "1"]).success();
    repo.undo();
    repo.oxundo(["redo", "--to", "1"]).success();
    repo.state().assert_is(&after, "on the branch where it was made");
}

#[test]
fn a_branch_is_not_given_the_name_of_one_that_stands_for_another() {
    let repo = Sandbox::new();
    repo.agent("echo one >one.txt");
    repo.sh("git symbolic-ref refs/heads/cur refs/heads/main; git symbolic-ref refs/heads/gone refs/heads/nowhere");
    repo.oxundo(["branch", "cur", "1"]).warns("there is a branch 'cur' already");
    repo.oxundo(["branch", "gone/x", "1"]).warns("there is a branch 'gone', beside which git cannot keep one 'gone/x'");
}

#[test]
fn what_a_turn_takes_from_a_branch_of_another_worktree_is_kept_and_named() {
    let repo = Sandbox::new();
    repo.sh("git worktree add -q ../w -b w; cd ../w; echo mine >mine; git add mine; git commit -qm mine");
    repo.agent("git worktree remove --force ../w; git branch -q -D w; echo q >>README.txt");
    let undone = repo.oxundo(["undo"]);
    undone.warns("'w' lost commits during turn 1, and stays: 'git branch -f w ");
    let told = undone.err();
    let line = told.split('\'').find(|part| part.starts_with("git branch -f w ")).expect("a line to type").to_owned();
    repo.sh("git reflog expire --expire=now --all; git gc -q --prune=now");
    repo.sh(&line);
    assert_eq!(repo.git(["show", "w:mine"]), "mine");
}

#[test]
fn all_branches_are_moved_where_that_is_asked_for_those_too_that_other_worktrees_had() {
    let branches = |repo: &Sandbox| repo.sh("git for-each-ref --format='%(refname:short) %(objectname)' refs/heads");
    for agents in
        ["git worktree remove --force ../w; git branch -q -D w", "git -C ../w switch -q --detach; git branch -f w"]
    {
        let repo = Sandbox::new();
        repo.sh("git worktree add -q ../w -b w; cd ../w; echo mine >mine; git add mine; git commit -qm mine");
        let before = branches(&repo);
        repo.agent(&format!("{agents}; echo q >>README.txt; git commit -qam q"));
        let after = branches(&repo);
        let undone = repo.oxundo(["undo", "--branches=all"]);
        undone.success();
        assert!(!undone.err().contains("lost commits"), "{undone:?}");
        assert_eq!(branches(&repo), before, "{agents}");
        repo.oxundo(["redo", "--branches=all"]).success();
        assert_eq!(branches(&repo), after, "{agents}");
    }
}

#[test]
fn a_branch_at_a_named_state_has_what_was_there_then() {
    let repo = Sandbox::new();
    repo.commit("c", "c\n");
    repo.agent("echo one >one.txt");
    repo.sh("echo mine >>c");
    repo.oxundo(["checkpoint", "-m", "cp"]).success();
    repo.sh("git checkout -q c; echo more >>README.txt; git commit -qam more");
    repo.oxundo(["branch", "kept", "cp"]).success();
    repo.assert_file("c", "c\nmine\n", "the edit of then");
    assert_eq!(repo.sh("git log --format=%s -1; git symbolic-ref --short HEAD").lines().last(), Some("kept"));
    assert!(!repo.sh("cat README.txt").contains("more"));
}

/// It stays on its branch, and is neither staged nor uncommitted there; what is uncommitted goes along.
#[test]
fn a_branch_at_a_turn_has_nothing_of_what_was_committed_between_that_and_the_next_one() {
    let commits = [
        "echo OTHERS >>README.txt; git commit -qm others -- README.txt",
        "echo OTHERS >new.txt; git add new.txt; git commit -qm others -- new.txt",
        "git rm -q gone.txt; git commit -qm others -- gone.txt",
        "git stash -qu 2>/dev/null; git switch -qc o HEAD~1; echo OTHERS >new.txt; git add new.txt; git commit -qm others
         git switch -q main; git merge -q --no-edit o; git stash pop -q 2>/dev/null || :",
    ];
    for (mode, commits) in Mode::tried().into_iter().flat_map(|mode| commits.map(|commits| (mode, commits))) {
        for (wanted, has_one) in [("1", true), ("2:before", true), ("0", false), ("1:before", false)] {
            let repo = Sandbox::new();
            repo.sh("for f in gone one two mine; do echo $f >$f.txt; done; git add -A; git commit -qm files");
            repo.commit("below.txt", "below\n");
            repo.turn(mode, "echo ITS1 >>one.txt");
            repo.sh(commits);
            repo.turn(mode, "echo ITS2 >>two.txt; echo ITS2 >its.txt");
            repo.sh("echo MINE >>mine.txt");
            let before = repo.state();
            let args = ["branch", "there", wanted];
            repo.oxundo(args).success();
            let is_others_there = wanted == "2:before";
            let others = repo.sh("cat README.txt *.txt; git diff HEAD; git diff --cached");
            assert_eq!(
                others.contains("OTHERS"),
                is_others_there && commits.contains("OTHERS"),
                "{mode:?}: {commits}: {wanted}: {others}"
            );
            let texts = repo.sh("cat one.txt two.txt mine.txt; ls gone.txt its.txt 2>/dev/null || :");
            assert_eq!(texts.contains("ITS1"), has_one, "{commits}: {wanted}");
            assert!(texts.contains("MINE") && !texts.contains("ITS2"), "{commits}: {wanted}: {texts}");
            let is_gone = is_others_there && commits.contains("rm");
            assert_eq!(texts.contains("gone.txt"), !is_gone, "{commits}: {wanted}");
            assert!(!texts.contains("its.txt"), "{commits}: {wanted}");
            let left = repo.git(["status", "--porcelain"]);
            let uncommitted = if mode == Mode::Ghost && has_one { " M mine.txt\n M one.txt" } else { " M mine.txt" };
            assert_eq!(left, uncommitted, "{commits}: {wanted}");
            repo.undo();
            repo.state().assert_is(&before, "and goes back");
            repo.redo();
            repo.assert_sound();
        }
    }
}

/// Whatever has been committed of the turns below: none of the last one's work goes along, and what was uncommitted then is so.
#[test]
fn a_branch_at_any_turn_has_nothing_of_the_turns_above_it() {
    let commits = [
        "git add -A; git commit -qm own",
        "git add a.txt; git commit -qm own",
        ":",
        "git commit -qm own --allow-empty",
    ];
    let stories = commits.into_iter().flat_map(|first| commits.map(|second| [first, second, ":"]));
    let stories =
        stories.chain([[":", ":", "git add -A; git commit -qm own"], [":", ":", "git add a.txt; git commit -qm own"]]);
    check_all(stories.map(|story| (format!("{story:?}"), story)), |commits| {
        let repo = Sandbox::new();
        repo.sh("for f in a b c; do seq 9 >$f.txt; done; git add -A; git commit -qm files");
        let mut states = vec![repo.sh("cat *.txt; git ls-files -o")];
        for (n, commit) in (1..).zip(commits) {
            repo.turn(
                Mode::Ghost,
                &format!("sed -i s/{n}/ITS{n}/ a.txt; echo ITS{n} >>b.txt; echo ITS{n} >>new.txt; [ {n} != 1 ] || git add new.txt"),
            );
            states.push(repo.sh("cat *.txt"));
            repo.sh(commit);
        }
        let before = repo.state();
        for (turn, state) in states.iter().enumerate() {
            repo.oxundo(["branch", "there", &turn.to_string()]).success();
            assert_eq!(repo.sh("cat *.txt"), *state, "the files of turn {turn}");
            repo.undo();
            repo.state().assert_is(&before, "and goes back");
        }
        repo.assert_sound();
    });
}

/// Whether a turn lies between or not: what is committed since is on its own branch, what is not goes along.
#[test]
fn a_branch_at_a_turn_has_nothing_of_what_the_user_did_since_and_committed() {
    for between in [":", "turn"] {
        let repo = Sandbox::new();
        repo.sh("for f in a b c; do seq 9 >$f.txt; done; git add -A; git commit -qm files");
        repo.turn(Mode::Ghost, "echo ITS1 >>a.txt");
        repo.sh("echo USER2 >>b.txt; echo MINE >>mine.txt; sed -i 1iMINE c.txt");
        if between == "turn" {
            repo.turn(Mode::Ghost, "echo ITS2 >>c.txt");
        }
        repo.sh("sed -i 2aUSER4 b.txt; git commit -qm own -- b.txt");
        let before = repo.state();
        repo.oxundo(["branch", "there", "1"]).success();
        assert!(!repo.sh("cat b.txt").contains("USER"), "it is on main alone");
        assert_eq!(repo.sh("grep -h '[A-Z]' *.txt"), "ITS1\nMINE\nMINE", "the rest goes along");
        repo.undo();
        repo.state().assert_is(&before, "and goes back");
    }
}

/// The user's edit of a file that the turn made goes along though a commit was made since, be it an empty one.
#[test]
fn a_branch_at_the_last_turn_after_a_commit_has_the_users_edits_of_its_files() {
    for commit in ["git reset -q; git commit -qm own --allow-empty", "git commit -qm own --allow-empty"] {
        let repo = Sandbox::new();
        repo.turn(Mode::Ghost, "echo ITS >new.txt; git add new.txt");
        repo.sh(&format!("{commit}; echo MINE >>new.txt"));
        let before = repo.state();
        repo.oxundo(["branch", "there", "1"]).success();
        assert_eq!(repo.sh("cat new.txt"), "ITS\nMINE");
        repo.undo();
        repo.state().assert_is(&before, "and goes back");
    }
}

#[test]
fn a_branch_begins_where_head_was_on_a_name_that_stands_for_another() {
    let repo = Sandbox::new();
    repo.sh("git symbolic-ref refs/heads/sym refs/heads/main; git switch -q sym");
    for script in ["echo 1 >one", "echo 2 >two"] {
        repo.agent(script);
    }
    let before = repo.state();
    for (turn, has_two) in [("1", false), ("2", true)] {
        repo.oxundo(["branch", "b2", turn]).success();
        assert_eq!(repo.git(["symbolic-ref", "HEAD"]), "refs/heads/b2", "HEAD goes along");
        assert_eq!(
            (repo.exists("one"), repo.exists("two"), repo.git(["status", "-s"])),
            (true, has_two, String::new())
        );
        repo.undo();
        repo.state().assert_is(&before, "the branch goes, and no turn");
    }
    repo.assert_sound();
}

#[test]
fn what_was_the_users_and_is_in_a_turns_commit_comes_back_with_a_turn_undone_by_hand() {
    let stories = [
        (Mode::Commit, "echo mine >mine.txt", "echo 1 >>README.txt; git add -A; git commit -qm its", 1),
        (Mode::Ghost, "echo mine >>README.txt", "echo 1 >one; git add -A; git commit -qm its", 1),
        (Mode::Commit, "echo mine >>README.txt; echo mine >mine.txt", "echo 1 >one; git add -A; git commit -qm its", 2),
        (
            Mode::Ghost,
            "echo mine >mine.txt",
            "git add -A; git commit -qm its; echo 1 >one; git add -A; git commit -qm its",
            1,
        ),
    ];
    check_all(stories.map(|story| (format!("{story:?}"), story)), |(mode, own, script, back)| {
        let repo = Sandbox::new();
        repo.sh(own);
        let before = repo.state();
        repo.turn(*mode, script);
        let after = repo.state();
        repo.sh(&format!("git reset -q --hard HEAD~{back}"));
        let done = repo.oxundo(["redo"]);
        done.success();
        assert!(!done.out().contains("your edits"), "{}", done.out());
        repo.state().assert_is(&after, "what the reset left is no edit");
        repo.undo();
        repo.state().assert_is(&before, "as the turn began");
        repo.redo();
        repo.state().assert_is(&after, "and once more");
        repo.assert_sound();
    });
}

#[test]
fn what_git_took_away_with_the_branch_is_no_edit_though_the_turn_was_once_undone() {
    let stories = [
        (Mode::Commit, "git switch -qc b1"),
        (Mode::Ghost, "git switch -qc b1"),
        (Mode::Commit, "git switch -q --detach"),
        (Mode::Ghost, "git switch -q --detach"),
    ];
    check_all(stories.map(|story| (format!("{story:?}"), story)), |(mode, switch)| {
        let repo = Sandbox::new();
        repo.write("mine.txt", "mine\n");
        let before = repo.state();
        repo.turn(*mode, &format!("{switch}; echo 1 >one; git add -A; git commit -qm its"));
        let after = repo.state();
        repo.undo();
        repo.redo();
        repo.sh("git switch -q main");
        assert!(!repo.exists("mine.txt"), "git took it along");
        repo.redo();
        repo.state().assert_is(&after, "and it comes back");
        repo.undo();
        repo.state().assert_is(&before, "as the turn began");
        repo.assert_sound();
    });
}

#[test]
fn a_commit_that_stands_for_a_turns_names_it() {
    for git in [
        "git commit -q --amend -m better",
        "git switch -qc x HEAD~1; echo u >u; git add u; git commit -qm own; git switch -q main; git rebase -q x",
    ] {
        let repo = Sandbox::new();
        repo.agent("echo 1 >one");
        repo.sh(git);
        let head = repo.head();
        repo.oxundo(["log"]).says(&head[..7]);
        for words in [&head[..7], "HEAD"] {
            repo.oxundo(["show", words]).says("one");
            assert_eq!(repo.json(["show", words]).1["turn"], 1, "{git}: {words}");
        }
        repo.oxundo(["describe", "HEAD", "-m", "named"]).success();
        assert_eq!(repo.json(["show", "HEAD~1"]).0, 1, "no other commit does");
    }
}

#[test]
fn a_ghost_turn_that_is_left_was_not_merged() {
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "echo 1 >>README.txt");
    repo.undo();
    repo.agent("echo 2 >two");
    let refusal = repo.refuses(&["undo", "--to", "1"], "branch");
    assert!(message(&refusal).contains("is not among the turns of"), "{refusal}");
    repo.oxundo(["redo", "--to", "1"]).success();
    repo.assert_file("README.txt", "readme\n1\n", "the line of the hint leads there");
}

#[test]
fn the_word_of_what_is_left_beside_a_turn_leads_there() {
    for (own, line) in
        [("true", "oxundo redo --to 2"), ("echo u >u; git add u; git commit -qm own", "oxundo branch turn-2 2")]
    {
        let repo = Sandbox::new();
        repo.agent("echo 1 >one");
        repo.agent("echo 2 >two");
        repo.oxundo(["undo", "2"]).success();
        repo.sh(own);
        repo.agent("echo 3 >three").warns(&format!("turns 1, 2 are left beside turn 3: '{line}' goes back there"));
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        repo.oxundo(words).success();
        assert_eq!(["one", "two", "three"].map(|path| repo.exists(path)), [true, true, false], "{line}");
    }
}

#[test]
fn what_is_left_has_a_branch_of_its_own_where_a_branch_that_it_moved_is_somebody_elses_by_now() {
    let ways = [
        ("made again", "git switch -qc b1; echo 1 >one; git add one; git commit -qm c", "git branch b1"),
        (
            "in another worktree",
            "git branch other; echo 1 >one; git add one; git commit -qm c; git branch -f other",
            "git worktree add -q ../other -b other",
        ),
        ("moved", "echo 1 >one; git add one; git commit -qm c; git branch -f there", "git branch -f there HEAD~1"),
    ];
    check_all(ways.map(|(name, turn, own)| (name.to_owned(), (turn, own))), |(turn, own)| {
        let repo = Sandbox::new();
        repo.commit("base", "base\n");
        repo.sh("git branch there");
        repo.agent(turn);
        repo.undo();
        repo.sh(own);
        let line = "oxundo branch turn-1 1";
        repo.agent("echo 2 >two").warns(&format!("turn 1 is left beside turn 2: '{line}' goes back there"));
        let theirs = || repo.git(["for-each-ref", "refs/heads/b1", "refs/heads/other", "refs/heads/there"]);
        let before = theirs();
        repo.oxundo(["branch", "turn-1", "1"]).success();
        repo.assert_file("one", "1\n", "the line leads there");
        assert_eq!(theirs(), before, "and leaves theirs alone");
    });
}

/// An undo before, the way back from which was never gone, says nothing of the next one.
#[test]
fn a_directory_that_the_user_took_away_does_not_come_back_by_the_way_of_an_earlier_undo() {
    let repo = Sandbox::new();
    repo.turn(Mode::Ghost, "mkdir d; echo 1 >d/one; git add -A");
    repo.git(["reset", "-q", "--hard"]);
    repo.agent("echo 2 >two");
    repo.oxundo(["undo", "2"]).success();
    repo.sh("git commit -q --allow-empty -m own; git reset -q 'HEAD@{2}'");
    let before = repo.state();
    for round in 1..=2 {
        repo.oxundo(["undo", "--to", "0"]).success();
        repo.oxundo(["redo", "2"]).success();
        repo.state().assert_is(&before, &format!("undo and redo, {round} times"));
    }
}

/// What is done on another line is not undone here: no redo comes before the turn.
#[test]
fn the_hint_of_a_turn_that_switched_branches_leads_to_it_from_any_other_branch() {
    let ways = [
        ("undone", "git switch -qc feat; echo 2 >>two", "oxundo -q undo; git switch -qc other HEAD~2"),
        (
            "with an own commit",
            "git switch -qc feat; echo 2 >>two",
            "oxundo -q undo; git switch -qc other HEAD~2; echo u >u; git add u; git commit -qm own",
        ),
        ("detached", "git checkout -q --detach; echo 2 >>two", "git switch -q --orphan oo"),
    ];
    check_all(ways.map(|(name, turn, own)| (name.to_owned(), (turn, own))), |(turn, own)| {
        let repo = Sandbox::new();
        repo.commit("base", "base\n");
        repo.agent("echo 1 >one");
        repo.agent(turn);
        let after = repo.state();
        repo.sh(own);
        let refusal = repo.refuses(&["redo", "--to", "2"], "branch");
        assert_eq!(refusal["hints"][0], "run 'git switch main' first", "{refusal}");
        repo.git(["switch", "-q", "main"]);
        repo.oxundo(["redo", "--to", "2"]).success();
        assert_eq!(repo.sh("cat one two"), "1\n2", "it leads there");
        repo.sh("git branch -q -D other 2>/dev/null || :");
        repo.state().assert_is(&after, "exactly");
    });
}

#[test]
fn status_counts_what_redo_brings_back() {
    let stories: [&[&str]; 3] = [
        &["--ghost run", "undo", "run git switch -qc b1; echo 2 >two", "undo"],
        &["run", "run", "undo", "undo -- new0", "undo"],
        &["run", "run", "undo 2"],
    ];
    for story in stories {
        let repo = Sandbox::new();
        for (at, words) in story.iter().enumerate() {
            match words.split_once("run") {
                Some((ghost, script)) => {
                    let mode = if ghost.is_empty() { Mode::Commit } else { Mode::Ghost };
                    let script = if script.is_empty() { "true" } else { script };
                    repo.turn(mode, &format!("{script}; echo {at} >>new; echo {at} >new{at}"));
                }
                None => repo.oxundo(words.split(' ')).success(),
            }
        }
        let count = repo.json(["status"]).1["redo_depth"].as_u64().expect("a number");
        assert!(count > 0, "{story:?}");
        assert_eq!(repo.json(["redo", "--dry-run", &(count + 1).to_string()]).0, 4, "{story:?}: no more than {count}");
        repo.oxundo(["redo", &count.to_string()]).success();
    }
}

#[test]
fn what_the_user_wrote_between_turns_comes_back_with_all_that_are_undone_by_hand() {
    let sweep = "echo 2 >two; git add -A; git commit -qm its";
    let stories = [
        (Mode::Commit, "echo mine >>README.txt", "echo 2 >two", 3),
        (Mode::Commit, "echo mine >mine.txt", sweep, 2),
        (Mode::Ghost, "echo mine >>README.txt; echo mine >mine.txt", sweep, 2),
        (Mode::Commit, "echo mine >>README.txt; git add README.txt; echo more >>README.txt", "echo 2 >two", 3),
    ];
    check_all(stories.map(|story| (format!("{story:?}"), story)), |(mode, own, script, back)| {
        for line in [&["redo", "2"][..], &["redo", "--to", "2"]] {
            let repo = Sandbox::new();
            turn(&repo, *mode, "echo 1 >one");
            repo.sh(own);
            let before = repo.state();
            repo.turn(*mode, script);
            let after = repo.state();
            repo.sh(&format!("git reset -q --hard HEAD~{back}"));
            let done = repo.oxundo(line);
            done.success();
            assert!(!done.out().contains("your edits"), "{line:?}: {}", done.out());
            repo.state().assert_is(&after, "what the reset left is no edit");
            repo.undo();
            repo.state().assert_is(&before, "as the second one began");
            repo.redo();
            repo.state().assert_is(&after, "and once more");
            repo.assert_sound();
        }
    });
}

#[test]
fn what_the_user_wrote_before_a_turn_comes_back_with_it_from_another_line() {
    for (mode, own, back) in [
        (Mode::Commit, "echo mine >>README.txt", 2),
        (Mode::Commit, "echo mine >mine.txt", 1),
        (Mode::Ghost, "echo mine >>README.txt", 1),
    ] {
        let repo = Sandbox::new();
        repo.sh(own);
        let before = repo.state();
        repo.turn(mode, "echo 1 >one; git add -A; git commit -qm its");
        let after = repo.state();
        repo.sh(&format!("git reset -q --hard HEAD~{back}"));
        repo.agent("echo 2 >two");
        repo.oxundo(["redo", "--to", "1"]).success();
        repo.state().assert_is(&after, own);
        repo.oxundo(["redo", "--to", "2"]).success();
        let mine = repo.sh("grep -hs '^mine$' README.txt mine.txt || true");
        assert_eq!((repo.exists("two"), mine.trim_end()), (true, "mine"), "and back, with it");
        repo.oxundo(["redo", "--to", "1"]).success();
        repo.state().assert_is(&after, "and once more");
        repo.undo();
        repo.state().assert_is(&before, "as it began");
        repo.assert_sound();
    }
}
