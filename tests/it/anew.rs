//! Histories that the user has made anew in whatever way: a turn is done where its work is in HEAD, and only there; what is done
//! is taken out by its number, and brought back.

use crate::sandbox::{Sandbox, State, check_all};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A repository with a file of many lines, and a branch `up` that has gone on by itself, all at this time.
fn started(at: u64) -> Sandbox {
    let repo = at_time(Sandbox::new(), at);
    let lines: String = (1..=80).map(|line| format!("a{line}\n")).collect();
    repo.write("a", lines).sh("git add a; git commit -qm files; git branch up; git tag files");
    repo.sh("git switch -q up; echo up >up; git add up; git commit -qm up; git switch -q main");
    repo
}

/// What a turn does, by its number: a file of its own, and a line of one that all change.
fn work(number: u64) -> String {
    format!("echo {number} >n{number}; sed -i '{}s/$/ T{number}/' a", number * 3)
}

/// Says of a turn whether its work is in HEAD; nothing where it is there in part.
fn there(repo: &Sandbox) -> impl Fn(u64) -> Option<bool> {
    let (files, lines) = (repo.git(["ls-tree", "--name-only", "HEAD"]), repo.git(["show", "HEAD:a"]));
    move |number| {
        let has_file = files.lines().any(|name| name == format!("n{number}"));
        let has_line = lines.lines().any(|line| line.ends_with(&format!(" T{number}")));
        (has_file == has_line).then_some(has_file)
    }
}

fn is_there(repo: &Sandbox, number: u64) -> Option<bool> {
    there(repo)(number)
}

/// Each turn's number, and where it stands.
fn standing(repo: &Sandbox) -> BTreeMap<u64, String> {
    let log = repo.json(["log", "--all"]).1;
    let turns = log["turns"].as_array().expect("turns").iter();
    turns
        .map(|turn| (turn["turn"].as_u64().expect("a number"), turn["state"].as_str().expect("a word").into()))
        .collect()
}

fn at_time(repo: Sandbox, time: u64) -> Sandbox {
    let at = format!("{time} +0000");
    repo.with_variable("GIT_AUTHOR_DATE", at.clone()).with_variable("GIT_COMMITTER_DATE", at)
}

/// When the first turn begins.
const BEGIN: u64 = 1_700_000_000;

/// Clocks go on between all that happens, or stand still.
struct Clock(Option<u64>);

impl Clock {
    fn tick(&mut self, repo: Sandbox) -> Sandbox {
        let Some(time) = &mut self.0 else { return repo };
        *time += 7;
        at_time(repo, *time)
    }
}

/// So many turns, and then what the user does with git, each at its own time or all at one.
fn turns_then(count: u64, is_one_second: bool, lines: &[&str]) -> Sandbox {
    let mut clock = Clock(Some(BEGIN).filter(|_| !is_one_second));
    let mut repo = started(BEGIN);
    for number in 1..=count {
        repo = clock.tick(repo);
        repo.oxundo(["run", "-m", &format!("t{number}"), "--", "sh", "-ec", &work(number)]).success();
    }
    for line in lines {
        repo = clock.tick(repo);
        repo.sh(&format!("OXUNDO={}; {line}", env!("CARGO_BIN_EXE_oxundo")));
    }
    repo
}

/// Each of these turns is done, and taken out by its number, and comes back.
fn all_are_done(repo: &Sandbox, turns: impl IntoIterator<Item = u64>) {
    for number in turns {
        assert_eq!(standing(repo)[&number], "done", "turn {number}: {}", repo.oxundo(["log", "--all"]).out());
        let before = repo.state();
        repo.oxundo(["undo", "--only", &number.to_string()]).success();
        assert_eq!(is_there(repo, number), Some(false), "turn {number} is taken out");
        repo.oxundo(["redo"]).success();
        repo.state().assert_is(&before, "and back");
    }
}

const SWAP: &str = "GIT_SEQUENCE_EDITOR=\"sed -i '1{h;d};2G'\" git rebase -q -i HEAD~2";

fn at_any_time<T: Copy>(cases: &[(&str, T)]) -> Vec<(String, (bool, T))> {
    let both = |(name, case): &(&str, T)| {
        [(format!("{name}, at one time"), (true, *case)), ((*name).to_owned(), (false, *case))]
    };
    cases.iter().flat_map(both).collect()
}

#[test]
fn a_turn_whose_work_is_in_head_is_done_whatever_became_of_its_commit() {
    let reword = "GIT_SEQUENCE_EDITOR=\"sed -i '1{h;d};2{s/pick/reword/;G}'\" GIT_EDITOR=\"sed -i 1s/.*/better/\" git rebase -q -i HEAD~2";
    let ways: [(&str, &[&str]); 11] = [
        ("in another order, with another message", &[SWAP, "git commit -q --amend -m better"]),
        ("the other one with another message", &[reword]),
        ("with another author, in another order", &["git commit -q --amend --no-edit --reset-author", SWAP]),
        ("made one of, in another order", &["git reset -q --soft HEAD~2; git commit -qm both", SWAP]),
        ("in other parts", &["git reset -q HEAD~2; git add n3 n2; git commit -qm news; git commit -qam lines"]),
        (
            "in other parts, on another base",
            &["git reset -q HEAD~2; git add n3 n2; git commit -qm news; git commit -qam lines", "git rebase -q up"],
        ),
        (
            "made one of, with others on top, at other times",
            &[
                "git reset -q --soft HEAD~2; git commit -qm both; git commit -q --allow-empty -m u; echo u >u; git add u; git commit -qm u2",
                "git rebase -q --force-rebase --ignore-date HEAD~3",
            ],
        ),
        ("made one of, on another base", &["git reset -q --soft HEAD~2; git commit -qm both", "git rebase -q up"]),
        ("made one of by oxundo, on another base", &["\"$OXUNDO\" -q squash 2..", "git rebase -q up"]),
        (
            "made one of with work of the user's",
            &["git reset -q --soft HEAD~2; echo u >u; git add u; git commit -qm all"],
        ),
        (
            "taken into the one below, on another base",
            &["GIT_SEQUENCE_EDITOR='sed -i 3s/pick/fixup/' git rebase -q -i HEAD~3", "git rebase -q up"],
        ),
    ];
    check_all(at_any_time(&ways), |&(is_one_second, lines)| {
        let repo = turns_then(3, is_one_second, lines);
        assert!((1..=3).all(|number| is_there(&repo, number) == Some(true)), "git did it");
        all_are_done(&repo, 1..=3);
        // What is on top may be the user's own.
        let refused = repo.oxundo(["undo"]).err();
        assert!(
            ["was rewritten since turn", "was not made by a turn"].iter().any(|words| refused.contains(words)),
            "{refused}"
        );
        repo.assert_sound();
    });
}

#[test]
fn a_turn_whose_commit_a_later_one_amended_goes_along_with_that() {
    let ways: [(&str, &[&str]); 3] = [
        ("rebased", &["git rebase -q up"]),
        ("amended", &["git commit -q --amend -m better"]),
        (
            "amended by a fixup",
            &[
                "echo u >>README.txt; git commit -qa --fixup HEAD",
                "GIT_SEQUENCE_EDITOR=true git rebase -q -i --autosquash HEAD~2",
            ],
        ),
    ];
    check_all(at_any_time(&ways), |&(is_one_second, lines)| {
        let repo = turns_then(2, is_one_second, &[]);
        repo.agent(&format!("{}; git add n3; git commit -qa --amend --no-edit", work(3)));
        for line in lines {
            repo.sh(line);
        }
        all_are_done(&repo, 1..=3);
    });
}

#[test]
fn what_the_user_made_one_of_goes_along_with_a_turn_that_amended_it() {
    for is_one_second in [true, false] {
        let repo = turns_then(2, is_one_second, &["git reset -q --soft HEAD~2; git commit -qm both"]);
        repo.agent(&format!("{}; git add n3; git commit -qa --amend --no-edit", work(3)));
        all_are_done(&repo, 1..=3);
    }
}

#[test]
fn what_is_in_parts_is_done_where_a_turn_amended_one_of_them() {
    let parts = "git reset -q HEAD~2; git add n*; git commit -qm news; git commit -qam lines";
    for is_one_second in [true, false] {
        for more in ["", "; git commit -q --amend -m again"] {
            let repo = turns_then(2, is_one_second, &[parts]);
            repo.agent(&format!("{}; git add -A; git commit -q --amend --no-edit{more}", work(3)));
            all_are_done(&repo, 1..=3);
            repo.sh("git rebase -q up");
            all_are_done(&repo, 1..=3);
        }
    }
}

#[test]
fn what_was_dropped_is_not_in_what_the_user_makes_one_of_later() {
    for is_one_second in [true, false] {
        let repo = turns_then(2, is_one_second, &["GIT_SEQUENCE_EDITOR='sed -i 1d' git rebase -q -i HEAD~2"]);
        repo.agent(&format!("{}; git add -A; git commit -qm agent", work(3)));
        repo.agent(&work(4));
        repo.sh("git reset -q --soft HEAD~3; git commit -qm all");
        assert_eq!(is_there(&repo, 1), Some(false), "git did it");
        assert_eq!(standing(&repo)[&1], "left");
        all_are_done(&repo, 2..=4);
    }
}

#[test]
fn a_copy_of_the_users_commit_that_a_turn_amended_is_not_the_turns() {
    let turns = [
        ("adds to it", "echo T >n1; sed -i 9s/$/T/ a; git add -A; git commit -q --amend --no-edit"),
        ("takes from it", "git rm -q own2; git commit -q --amend --no-edit"),
        ("says it in other words", "git commit -q --amend -m better"),
    ];
    let made_anew = [
        "git rebase -q up",
        "git commit -q --amend --no-edit --reset-author",
        "echo u >>README.txt; git commit -q -a --amend --no-edit",
        "git rebase -q up; git commit -q --amend -m other",
    ];
    check_all(at_any_time(&turns), |&(is_one_second, script)| {
        // Nobody can tell whose words came first where all that a turn did was to change these, and the user did so again.
        let is_words = script.ends_with("better");
        for line in made_anew.into_iter().filter(|line| !is_words || !line.ends_with("-m other")) {
            let own = "echo own >own; echo own >own2; git add -A; git commit -qm own";
            let mut clock = Clock(Some(BEGIN + 700).filter(|_| !is_one_second));
            let mut repo = clock.tick(turns_then(0, is_one_second, &[own]));
            repo.agent(script);
            repo.undo();
            repo = clock.tick(repo);
            repo.sh(line);
            assert_ne!(standing(&repo)[&1], "done", "{line}: {}", repo.oxundo(["log", "--all"]).out());
            // What the turn left is there where its own commit is made anew so.
            let mut repo = clock.tick(turns_then(0, is_one_second, &[own]));
            repo.agent(script);
            repo = clock.tick(repo);
            repo.sh(line);
            assert_eq!(standing(&repo)[&1], "done", "{line}: {}", repo.oxundo(["log", "--all"]).out());
        }
    });
}

#[test]
fn what_oxundo_made_one_of_is_the_squashs_under_another_message_too() {
    for is_one_second in [true, false] {
        let squash = "\"$OXUNDO\" -q squash 1..";
        let reword = "GIT_SEQUENCE_EDITOR='sed -i 1s/pick/reword/' GIT_EDITOR='sed -i 1s/^/X/' git rebase -q -i HEAD~2";
        for above in [false, true] {
            let repo = turns_then(2, is_one_second, &[squash]);
            if above {
                repo.agent(&work(4));
                repo.sh(reword);
            } else {
                repo.sh("git commit -q --amend -m reworded");
                repo.agent(&work(4));
            }
            let log = repo.oxundo(["log"]).out();
            assert!((1..=4).all(|turn| standing(&repo)[&turn] == "done"), "{log}");
            assert_eq!(repo.json(["status"]).1["undo_depth"], 4, "{log}");
            let before = repo.state();
            repo.oxundo(["undo", "2"]).success();
            assert_eq!(repo.git(["log", "-1", "--format=%s"]), "t2", "the squash is undone");
            repo.oxundo(["redo", "2"]).success();
            repo.state().assert_is(&before, "and on again");
        }
    }
}

#[test]
fn log_names_the_commit_that_history_has_below_a_newer_turn_too() {
    let repo = turns_then(2, false, &["git reset -q --soft HEAD~2; git commit -qm both"]);
    let both = repo.git(["rev-parse", "--short=7", "HEAD"]);
    repo.agent(&work(3));
    let log = repo.oxundo(["log"]).out();
    assert_eq!(log.matches(&both).count(), 2, "{both}: {log}");
}

#[test]
fn a_copy_of_an_amended_commit_is_not_one_of_the_commit_that_it_became() {
    for is_one_second in [true, false] {
        let repo = turns_then(2, is_one_second, &["git branch two"]);
        repo.agent(&format!("{}; git add n3; git commit -qa --amend --no-edit", work(3)));
        repo.sh("git reset -q --hard HEAD~1; echo u >u; git add u; git commit -qm u; git cherry-pick two >/dev/null");
        assert_eq!(standing(&repo)[&3], "undone", "its work is not there");
        all_are_done(&repo, 1..=2);
    }
}

#[test]
fn what_went_back_to_a_turn_does_not_stand_for_it() {
    for line in ["git rebase -q --onto HEAD~2 HEAD~1", "git rebase -q up"] {
        let repo = turns_then(3, false, &["\"$OXUNDO\" -q restore --exact 2"]);
        repo.agent(&work(5));
        repo.sh(line);
        assert_eq!(is_there(&repo, 2), Some(line.contains("up")), "git did it");
    }
}

#[test]
fn a_turn_that_was_left_and_whose_commit_was_picked_is_done() {
    for is_one_second in [true, false] {
        let repo = turns_then(3, is_one_second, &["git branch three; \"$OXUNDO\" -q undo"]);
        repo.agent(&work(4));
        assert_eq!(standing(&repo)[&3], "left");
        repo.sh("git cherry-pick three >/dev/null");
        let refused = repo.oxundo(["undo"]);
        refused.warns("was rewritten since turn 3 made it");
        refused.warns("run 'oxundo undo --only 3'");
        all_are_done(&repo, 1..=4);
        repo.agent(&work(20));
        all_are_done(&repo, 3..=4);
    }
}

#[test]
fn what_is_picked_beside_itself_hides_no_turn() {
    for switch in ["", "git switch -qc other; "] {
        for is_one_second in [true, false] {
            let repo = turns_then(1, is_one_second, &[]);
            repo.agent(&format!("{}; {switch}git add n2; git commit -qam ag", work(2)));
            repo.agent(&format!("{}; git add n3; git commit -qam ag", work(3)));
            repo.agent(&work(4));
            repo.oxundo(["undo", "--only", "2..3"]).success();
            repo.sh("git cherry-pick HEAD~4 >/dev/null");
            assert_eq!((is_there(&repo, 2), is_there(&repo, 3)), (Some(true), Some(false)), "git did it");
            let standing = standing(&repo);
            assert!((1..=5).all(|turn| standing[&turn] == "done"), "their commits are in HEAD's history: {standing:?}");
        }
    }
}

#[test]
fn what_is_taken_out_on_a_branch_below_is_there_on_the_one_above() {
    for is_one_second in [true, false] {
        for up in ["git rebase -q --update-refs up", "git rebase -q up; git branch -f s1 HEAD~2"] {
            let mut repo = turns_then(1, is_one_second, &["git branch s1"]);
            let mut clock = Clock(Some(BEGIN + 1_000).filter(|_| !is_one_second));
            for number in 2..=3 {
                repo = clock.tick(repo);
                repo.agent(&work(number));
            }
            repo.sh(up);
            repo.sh("git switch -q s1");
            repo = clock.tick(repo);
            repo.oxundo(["undo", "--revert"]).success();
            assert_eq!(is_there(&repo, 1), Some(false));
            repo.sh("git switch -q main");
            all_are_done(&repo, 1..=3);
        }
    }
}

#[test]
fn a_branch_that_was_undone_is_not_done_where_it_would_have_begun() {
    let repo = turns_then(2, false, &[]);
    let other = repo.linked("other");
    other.agent(&work(5));
    other.oxundo(["branch", "bx", "main:1"]).success();
    other.undo();
    other.sh("git switch -q --detach main");
    assert!(other.log().iter().all(|turn| turn["state"] != "done"), "{:?}", other.log());
    assert_eq!(other.json(["status"]).1["undo_depth"], 0);
    assert!(!other.oxundo(["undo"]).err().contains("bx"), "no line is hinted at that makes the branch again");
}

/// A colleague does that on the remote, in another name and other words, while main has moved.
#[test]
fn the_only_turn_of_a_branch_that_others_have_squashed_is_there() {
    for work in [
        "sed -i 3s/.*/ITS/ a",
        "echo ITS >n",
        "sed -i 3s/.*/ITS/ a; echo ITS >n; git add n; git commit -qam its; echo ITS >o",
    ] {
        let repo = Sandbox::new();
        repo.sh("seq 9 >a; seq 9 >c; git add -A; git commit -qm base; git switch -qc feat");
        repo.agent(work);
        let squash = "git switch -q main; echo COLLEAGUE >>c; git commit -qam colleague; git merge -q --squash feat
             GIT_COMMITTER_DATE=@$(($(date +%s) + 60)) git -c user.name=C commit -qm 'feat (#1)' --author 'C <c@example.org>'
             git branch -qD feat";
        repo.sh(squash);
        let before = repo.state();
        assert_eq!(repo.log().len(), 1, "{work}");
        repo.oxundo(["undo", "--revert"]).success();
        assert_eq!(repo.sh("cat a c; ls n o 2>/dev/null || :").matches("ITS").count(), 0, "{work}");
        assert_eq!(repo.sh("tail -1 c; ls n o 2>/dev/null || :"), "COLLEAGUE", "{work}");
        repo.redo();
        repo.state().assert_is(&before, work);
    }
}

/// What the user adds to the branch in a review is in it, and main may have turns of its own.
#[test]
fn the_turns_of_a_branch_that_others_have_squashed_with_the_users_commits_are_there() {
    let reviews = [
        ("nothing", ":"),
        ("a file", "echo MINE >fix; git add fix; git commit -qm review"),
        ("a line beside its", "sed -i 8s/.*/MINE/ a; git commit -qam review"),
        ("its line", "sed -i 3s/ITS/MINE/ a; git commit -qam review"),
    ];
    let after = ["git branch -qD feat", ":"];
    let all = reviews.iter().flat_map(|review| after.map(|after| (review, after)));
    let all = all.flat_map(|it| [(false, false), (true, false), (true, true)].map(|which| (it, which)));
    check_all(
        all.map(|(((name, review), after), (below, later))| {
            (format!("{name}, {after}, {below}, {later}"), (*review, after, below, later))
        }),
        |&(review, after, below, later)| {
            let repo = Sandbox::new();
            repo.sh("seq 9 >a; seq 9 >c; git add -A; git commit -qm base");
            if below {
                repo.agent("echo BELOW >below");
            }
            repo.sh("git switch -qc feat");
            repo.agent("sed -i 3s/.*/ITS/ a");
            repo.sh(review);
            if later {
                repo.agent("echo ITS >n");
            }
            repo.sh(&format!(
                "git switch -q main; echo COLLEAGUE >>c; git commit -qam colleague; git merge -q --squash feat
                 GIT_COMMITTER_DATE=@$(($(date +%s) + 60)) git -c user.name=C commit -qm 'feat (#1)' --author 'C <c@example.org>'
                 {after}"
            ));
            let before = repo.state();
            let states: Vec<_> = repo.log().iter().map(|turn| turn["state"].clone()).collect();
            assert_eq!(states, vec!["done"; 1 + usize::from(below) + usize::from(later)]);
            let output = repo.oxundo(["undo", "--revert"]);
            assert_eq!(output.code == 0, later || !review.contains("ITS"), "{output:?}");
            if output.code == 0 {
                assert!(!repo.exists("n"));
                assert_eq!(
                    repo.sh("grep -c ITS a || :") == "0",
                    !later || review.contains("ITS"),
                    "the last one's alone"
                );
                let mine = usize::from(review != ":");
                assert_eq!(repo.sh("cat a fix 2>/dev/null || :").matches("MINE").count(), mine, "the user's stays");
                repo.redo();
            }
            assert_eq!(repo.exists("below"), below);
            repo.state().assert_is(&before, "as it was");
        },
    );
}

/// What a forge has made of a pull request, and what others had before, is below what is made one of.
#[test]
fn squash_takes_all_that_is_on_top_of_what_others_have() {
    let forge = |merges: &str| {
        format!(
            "git push -q origin feat; cd ../colleague; echo COLLEAGUE >theirs; git add -A; git commit -qm c; git fetch -q; {merges}
             git push -q; git push -q origin :feat; cd ../repo; git switch -q main; git pull -q --prune; git branch -qD feat; git switch -qc next"
        )
    };
    for (name, line, squashed) in [
        ("squashed", forge("git merge -q --squash origin/feat; git commit -qm 'feat (#1)'"), "Squashed 2 commits of turns 3, 4:"),
        (
            "rebased",
            forge("git switch -qc x origin/feat; git rebase -q main; git switch -q main; git merge -q x"),
            "Squashed 2 commits of turns 3, 4:",
        ),
        (
            "onto what others have",
            "cd ../colleague; echo COLLEAGUE >theirs; git add -A; git commit -qm c; git push -q; cd ../repo; git fetch -q; git rebase -q origin/main"
                .to_owned(),
            "Squashed 4 commits of turns 1..4:",
        ),
    ] {
        let repo = Sandbox::new();
        repo.sh("git init -q --bare -b main ../up.git; git remote add origin ../up.git; git push -qu origin main
                 git clone -q ../up.git ../colleague; cd ../colleague; git config user.name C; git config user.email c@example.org
                 cd ../repo; git switch -qc feat");
        let work = |number: u64| repo.agent(&format!("echo {number} >n{number}"));
        work(1);
        work(2);
        if name == "onto what others have" {
            work(3);
            work(4);
        }
        repo.sh(&line);
        if name != "onto what others have" {
            work(3);
            work(4);
        }
        let (before, tree) = (repo.state(), repo.git(["rev-parse", "HEAD^{tree}"]));
        let output = repo.oxundo(["squash"]);
        output.success();
        assert!(output.out().contains(squashed), "{name}: {output:?}");
        assert_eq!(repo.git(["rev-parse", "HEAD^{tree}"]), tree, "{name}");
        assert_eq!(repo.git(["rev-parse", "HEAD~1"]), repo.git(["rev-parse", "origin/main"]), "{name}");
        repo.undo();
        repo.state().assert_is(&before, name);
    }
}

#[test]
fn a_commit_that_was_there_before_a_turn_is_not_one_made_of_the_turns() {
    let picked = "git cherry-pick up >/dev/null";
    let agents = [
        ("picked", picked),
        ("picked and amended", "git cherry-pick up >/dev/null; sed -i 9s/$/T/ a; git commit -qa --amend --no-edit"),
        ("on top of it", "git rebase -q up"),
        ("another message", "git commit -q --amend -m better"),
        ("more in it", "echo T >n; git add n; git commit -q --amend --no-edit"),
        ("made again", "git reset -q --soft HEAD~1; echo T >n; git add n; git commit -q -C ORIG_HEAD"),
    ];
    check_all(at_any_time(&agents), |&(is_one_second, line)| {
        for (after, here) in
            [("true", "up"), ("true", "side"), ("\"$OXUNDO\" -q undo", "up"), ("\"$OXUNDO\" -q undo", "main")]
        {
            let own = "echo own >own; git add own; git commit -qm own; git branch side";
            let switch = format!("{after}; git switch -q {here}; echo w >w; git add w; git commit -qm w");
            let mut clock = Clock(Some(BEGIN + 700).filter(|_| !is_one_second));
            let mut repo = clock.tick(turns_then(0, is_one_second, &[own]));
            repo.agent(line);
            repo = clock.tick(repo);
            repo.sh(&format!("OXUNDO={}; {switch}", env!("CARGO_BIN_EXE_oxundo")));
            assert_eq!(repo.json(["status"]).1["undo_depth"], 0, "{after}, on {here}: {}", repo.oxundo(["log"]).out());
            let state = repo.state();
            for words in [&["undo"][..], &["undo", "--revert"], &["undo", "--only", "1"]] {
                assert_ne!(repo.oxundo(words).code, 0, "{words:?}, {after}, on {here}");
            }
            repo.state().assert_is(&state, "nothing of the user's is taken out");
        }
    });
}

#[test]
fn what_a_teammate_has_made_and_an_agent_has_picked_is_the_teammates() {
    let repo = started(BEGIN);
    repo.sh("git switch -qc theirs; echo t >t; git add t; git commit -qm t");
    repo.sh("git update-ref refs/remotes/origin/theirs HEAD; git switch -q main; git branch -qD theirs");
    let repo = at_time(repo, BEGIN + 7);
    repo.agent("git cherry-pick origin/theirs >/dev/null");
    repo.undo();
    repo.sh("git merge -q --no-edit origin/theirs; echo w >w; git add w; git commit -qm w");
    assert_eq!(standing(&repo)[&1], "undone");
}

#[test]
fn turns_in_another_order_of_which_gits_own_notes_tell_are_all_done() {
    for is_one_second in [true, false] {
        let repo = turns_then(4, is_one_second, &["git config notes.rewriteRef refs/notes/oxundo", SWAP]);
        assert_eq!(repo.json(["status"]).1["redo_depth"], 0);
        all_are_done(&repo, 1..=4);
    }
}

#[test]
fn what_takes_a_taken_out_turn_back_has_it_done_again() {
    let repo = turns_then(3, false, &["\"$OXUNDO\" -q undo --only 2"]);
    let taken = |repo: &Sandbox| repo.json(["show", "2"]).1["taken_out"].clone();
    assert_eq!(taken(&repo), "taken out");
    repo.oxundo(["undo", "--revert"]).success();
    assert_eq!((is_there(&repo, 2), taken(&repo)), (Some(true), serde_json::Value::Null));
    repo.oxundo(["undo", "--revert"]).success();
    assert_eq!((is_there(&repo, 2), taken(&repo)), (Some(false), "taken out".into()), "and once more");
}

#[test]
fn of_turns_with_one_message_that_was_amended_is_done_whose_lines_are_there() {
    for is_one_second in [true, false] {
        let mut clock = Clock(Some(BEGIN + 1_000).filter(|_| !is_one_second));
        let mut repo = turns_then(0, is_one_second, &[]);
        for number in 1..=3 {
            repo = clock.tick(repo);
            repo.oxundo(["run", "-m", "same", "--", "sh", "-ec", &work(number)]).success();
        }
        repo.undo();
        repo.sh("git switch -qc other HEAD~2; git cherry-pick main >/dev/null");
        repo.sh("echo u >u; git add u; git commit -q --amend --no-edit");
        assert_eq!((is_there(&repo, 2), is_there(&repo, 3)), (Some(true), Some(false)), "git did it");
        assert_ne!(standing(&repo)[&3], "done", "{}", repo.oxundo(["log", "--all"]).out());
        all_are_done(&repo, [2]);
    }
}

#[test]
fn what_oxundo_made_one_of_and_the_user_took_into_an_own_commit_is_done() {
    for is_one_second in [true, false] {
        let own = "echo own >own; git add own; git commit -qm own";
        let repo = turns_then(0, is_one_second, &[own]);
        for number in 1..=2 {
            repo.agent(&work(number));
        }
        repo.oxundo(["squash", "1.."]).success();
        repo.agent(&work(4));
        repo.sh("git rebase -q up; GIT_SEQUENCE_EDITOR='sed -i 2s/pick/fixup/' git rebase -q -i HEAD~3");
        all_are_done(&repo, [1, 2, 4]);
    }
}

/// What happens next.
#[derive(Clone, Debug)]
enum Event {
    /// A turn that does its work; it may make commits of its own before that, or amend the last one.
    Turn(&'static str),
    /// A command of oxundo's.
    Oxundo(&'static str),
    /// A line of the user's.
    User(String),
}

fn event() -> impl Strategy<Value = Event> {
    let turn = prop_oneof![
        5 => Just(""),
        1 => Just("; git add -A; git commit -q --amend --no-edit"),
        1 => Just("; git add -A; git commit -qm agent"),
        1 => Just("; git add -A; git commit -qm agent; git commit -q --amend -m 'agent, again'"),
    ];
    // What is below the turns stays.
    let above = |n: u8, line: &str| format!("git merge-base --is-ancestor files HEAD~{n} && {{ {line}; }}");
    let line = |line: &str| Just(line.to_owned());
    let two = |line: &str| Just(above(2, line));
    let parts =
        "git reset -q HEAD~2; git add n*; git commit -qm news; git commit -qam lines; git add -A; git commit -qm rest";
    let user = prop_oneof![
        2 => (0..100u8).prop_map(|n| format!("echo {n} >own{n}; git add own{n}; git commit -qm 'own {n}'")),
        2 => line("git rebase -q up"),
        1 => line("git switch -q up; echo more >>up; git commit -qam more; git switch -q main; git rebase -q up"),
        1 => two("git rebase -q --force-rebase --ignore-date HEAD~2"),
        2 => two(SWAP),
        2 => (1..4u8).prop_map(move |n| above(n, &format!("GIT_SEQUENCE_EDITOR='sed -i 1s/pick/reword/' GIT_EDITOR='sed -i 1s/$/./' git rebase -q -i HEAD~{n}"))),
        2 => (2..4u8).prop_map(move |n| above(n, &format!("GIT_SEQUENCE_EDITOR='sed -i 1d' git rebase -q -i HEAD~{n}"))),
        2 => (2..4u8).prop_map(move |n| above(3, &format!("GIT_SEQUENCE_EDITOR='sed -i {n}s/pick/fixup/' git rebase -q -i HEAD~3"))),
        1 => two("git reset -q --soft HEAD~2; git commit -qm both"),
        1 => two(parts),
        1 => line("git commit -q --amend -m better"),
        1 => line("git commit -q --amend --no-edit --reset-author"),
        1 => line("echo more >>README.txt; git commit -q -a --amend --no-edit"),
        1 => Just(above(1, "git reset -q --hard HEAD~1")),
        2 => line("git cherry-pick gone || git cherry-pick --abort"),
    ];
    let oxundo = prop_oneof![
        2 => Just("undo"), 2 => Just("redo"), 1 => Just("squash 2.."),
    ];
    prop_oneof![5 => turn.prop_map(Event::Turn), 1 => oxundo.prop_map(Event::Oxundo), 5 => user.prop_map(Event::User)]
}

fn told(event: &Event) -> String {
    match event {
        Event::Turn(more) => format!("a turn{more}"),
        Event::Oxundo(words) => format!("oxundo {words}"),
        Event::User(line) => line.clone(),
    }
}

fn tell(events: &[Event], is_one_second: bool) {
    let mut clock = Clock(Some(BEGIN + 1_000).filter(|_| !is_one_second));
    let mut repo = turns_then(1, is_one_second, &["git branch gone"]);
    let mut works = vec![1];
    for event in events {
        repo = clock.tick(repo);
        match event {
            Event::Turn(more) => {
                let number = standing(&repo).into_keys().next_back().unwrap_or(0) + 1;
                let script = format!("{}{more}", work(number));
                repo.oxundo(["run", "-m", &format!("t{number}"), "--", "sh", "-ec", &script]).success();
                works.push(number);
                // What is picked later, should it be gone by then.
                repo.sh("git branch -f gone");
            }
            Event::Oxundo(line) => drop(repo.oxundo(line.split(' '))),
            Event::User(line) => {
                let line = format!("{{ {line}; }} >/dev/null 2>&1 || git rebase --abort >/dev/null 2>&1 || true");
                repo.shell(&line).status().expect("run a shell");
            }
        }
        all_is_as_it_is_there(&repo, &works);
    }
    each_is_taken_out(&repo, &works);
    repo.assert_sound();
}

/// A turn is done where its work is there, and nowhere else.
fn all_is_as_it_is_there(repo: &Sandbox, works: &[u64]) {
    let (standing, is_there) = (standing(repo), there(repo));
    for number in works {
        if let Some(there) = is_there(*number) {
            let log = || repo.oxundo(["log", "--all"]).out() + &repo.git(["log", "--stat", "--format=%h %s"]);
            assert_eq!(standing[number] == "done", there, "turn {number} of\n{}", log());
        }
    }
}

fn each_is_taken_out(repo: &Sandbox, works: &[u64]) {
    let is_done = there(repo);
    let rest = |state: State| state.only(|fact| !fact.contains("oxundo"));
    for number in works.iter().filter(|number| is_done(**number) == Some(true)) {
        let before = repo.state();
        repo.oxundo(["undo", "--only", &number.to_string()]).success();
        let is_there = there(repo);
        assert_eq!(is_there(*number), Some(false), "turn {number} is taken out");
        for other in works.iter().filter(|other| *other != number) {
            assert_eq!(is_there(*other), is_done(*other), "turn {other} stays as it is");
        }
        repo.oxundo(["redo"]).success();
        rest(repo.state()).assert_is(&rest(before), "and back");
    }
}

#[test]
fn a_turn_is_done_where_its_work_is() {
    let cases = std::env::var("OXUNDO_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(2);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 100, ..Config::default() };
    let events = prop::collection::vec(event(), 2..9);
    let outcome = TestRunner::new(config).run(&(events, any::<bool>()), |(events, is_one_second)| {
        catch_unwind(AssertUnwindSafe(|| tell(&events, is_one_second))).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
            let told: Vec<String> = events.iter().map(told).collect();
            TestCaseError::fail(format!("{text}\none second: {is_one_second}\n{}", told.join("\n")))
        })
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
