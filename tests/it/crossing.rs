//! HEAD and branches go to each other's places in the middle of a turn, by the agent or by the user: undo leaves none of the agent's
//! lines on HEAD's branch, and `--revert` takes out those alone.

use crate::sandbox::{Mode, Sandbox, check_all};
use crate::steps::{edit, hook, shell};
use serde_json::json;

/// Files of a line `own` each, on `main` and on `topic`, which differ.
fn two_branches(mode: Mode) -> Sandbox {
    let repo = Sandbox::new();
    for name in ["a.txt", "b.txt"] {
        repo.write(name, (1..=20).map(|line| format!("line {line}\n")).collect::<String>());
    }
    repo.sh("git add -A; git commit -qm files; git commit -q --allow-empty -m one
         git switch -qc topic; echo own >>b.txt; echo own >topic.txt; git add -A; git commit -qm topic
         git switch -q main; echo own >main.txt; git add -A; git commit -qm main");
    if mode == Mode::Ghost {
        repo.git(["config", "oxundo.mode", "ghost"]);
    }
    repo
}

/// The lines of somebody in the worktree, each with its file.
fn lines_of(repo: &Sandbox, token: &str) -> String {
    repo.sh(&format!("grep -rx --exclude-dir=.git '{token}' . | sort | paste -sd' '"))
}

#[test]
fn what_two_branches_differ_in_is_not_the_turns_that_went_from_one_to_the_other() {
    let to_topic = "git switch -q topic; echo its >>a.txt";
    for (does, own) in [
        (to_topic.to_owned(), "./b.txt:own ./topic.txt:own"),
        (format!("{to_topic}; git commit -qam its"), "./b.txt:own ./topic.txt:own"),
        ("git switch -qc new topic; echo its >>a.txt; git commit -qam its".to_owned(), "./b.txt:own ./topic.txt:own"),
        ("git switch -qc new HEAD~1; echo its >>a.txt".to_owned(), ""),
        ("git switch -q theirs 2>/dev/null; echo its >>a.txt; git commit -qam its".to_owned(), "./theirs.txt:own"),
        ("git switch -qc new; echo its >>a.txt; git commit -qam its; git push -q o new".to_owned(), "./main.txt:own"),
    ] {
        for out in [["undo", "--revert"], ["undo", "--only=1"]] {
            let repo = two_branches(Mode::Commit);
            repo.sh("git init -q --bare ../o.git; git remote add o ../o.git
                 git switch -qc theirs HEAD~1; echo own >theirs.txt; git add -A; GIT_COMMITTER_DATE=2020-01-01T00:00:00Z git commit -qm theirs
                 git push -q o theirs; git switch -q main; git branch -qD theirs");
            repo.oxundo(["run", "--", "sh", "-c", &does]).success();
            let (on, after) = (repo.git(["symbolic-ref", "HEAD"]), repo.state());
            assert_eq!(lines_of(&repo, "its"), "./a.txt:its", "{does}");
            repo.oxundo(out).success();
            assert_eq!((lines_of(&repo, "its"), lines_of(&repo, "own")), (String::new(), own.to_owned()), "{does}");
            assert_eq!(repo.git(["symbolic-ref", "HEAD"]), on, "{does}");
            assert_eq!(repo.git(["status", "--porcelain"]), "", "{does}");
            repo.redo();
            repo.state().assert_is(&after, &does);
            if own.contains("b.txt") {
                let blame = repo.oxundo(["blame", "b.txt"]).out();
                assert!(blame.lines().last().is_some_and(|line| line.contains("topic")), "{does}: {blame}");
            }
        }
    }
}

#[test]
fn what_two_branches_differ_in_is_not_a_steps_that_went_from_one_to_the_other() {
    for out in ["--only=1.1", "--session=s"] {
        let repo = two_branches(Mode::Commit);
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, "git switch -q topic; echo its >>a.txt; git commit -qam its");
        hook(&repo, "s", "Stop", &json!({}));
        let after = repo.state();
        repo.oxundo(["undo", out]).success();
        assert_eq!(
            (lines_of(&repo, "its"), lines_of(&repo, "own")),
            (String::new(), "./b.txt:own ./topic.txt:own".to_owned()),
            "{out}"
        );
        assert_eq!(repo.git(["symbolic-ref", "--short", "HEAD"]), "topic", "{out}");
        repo.redo();
        repo.state().assert_is(&after, out);
    }
}

#[test]
fn what_a_turn_committed_before_it_went_elsewhere_is_taken_out_where_that_is() {
    let repo = two_branches(Mode::Commit);
    repo.oxundo(["run", "--", "sh", "-c", "echo its >>a.txt; git commit -qam its; git switch -q topic"]).success();
    let refused = repo.json(["undo", "--only=1"]).1;
    let hint = refused["error"]["hints"][0].as_str().unwrap_or_default().to_owned();
    assert!(hint.contains("git switch main"), "{refused}");
    repo.git(["switch", "-q", "main"]);
    repo.oxundo(["undo", "--only=1"]).success();
    assert_eq!((lines_of(&repo, "its"), lines_of(&repo, "own")), (String::new(), "./main.txt:own".to_owned()));
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

/// What the agent does, and the user, in turn; whether undo is refused for it, and with which code.
type Story = (&'static str, &'static [&'static str], Option<&'static str>);

const ITS: &str = "echo its >>a.txt; git commit -qam its";
const ON_ITS_BRANCH: &str = "git switch -qc its; echo its >>a.txt; git commit -qam its";
const OWN: &str = "echo own >>b.txt; git commit -qam own";
const STORIES: [Story; 17] = [
    ("rebased onto what was there before", &[ITS, "git rebase -q topic"], Some("foreign")),
    (
        "picked there",
        &[ITS, "at=$(git rev-parse HEAD); git reset -q --hard topic; git cherry-pick $at >/dev/null"],
        Some("foreign"),
    ),
    (
        "a branch on a branch of its",
        &[ON_ITS_BRANCH, "git switch -qc new; echo own >>b.txt; git commit -qam own", "echo its >n"],
        Some("foreign"),
    ),
    ("a branch there with nothing on it", &[ON_ITS_BRANCH, "git switch -qc new", "echo its >n"], None),
    (
        "made from elsewhere",
        &[
            "git switch -qc its; echo its >>a.txt; git commit -qam its; git switch -q -",
            "git switch -qC new its",
            "echo its >n",
        ],
        None,
    ),
    (
        "one of two commits dropped after it went away",
        &[
            "echo its >>a.txt; git commit -qam its; echo its >>b.txt; git commit -qam its
             git switch -q --detach; echo its >n; git add n; git commit -qm its",
            "git switch -q main; git reset -q --hard HEAD~1",
        ],
        None,
    ),
    (
        "amended and a branch made there",
        &[ITS, "echo own >>b.txt; git commit -qa --amend --no-edit; git switch -qc new"],
        Some("foreign"),
    ),
    (
        "a true merge into a branch of its",
        &[
            "git switch -qc its; echo its >>a.txt; git commit -qam its; git switch -q -; echo its >n; git add n; git commit -qm its",
            "git switch -q its; git merge -q --no-edit main",
        ],
        Some("merge"),
    ),
    (
        "picked from another branch",
        &[
            "git switch -q topic; echo its >>a.txt; git commit -qam its",
            "git switch -q main; echo own >>b.txt; git commit -qam own; git cherry-pick topic >/dev/null",
            "true",
        ],
        Some("foreign"),
    ),
    (
        "rebased and merged",
        &[
            ON_ITS_BRANCH,
            "git switch -q main; echo own >>b.txt; git commit -qam own; git rebase -q main its; git switch -q main; git merge -q its",
        ],
        Some("foreign"),
    ),
    (
        "picked from no branch",
        &[
            "git switch -q --detach; echo its >>a.txt; git commit -qam its",
            "at=$(git rev-parse HEAD); git switch -q main; echo own >>b.txt; git commit -qam own; git cherry-pick $at >/dev/null",
        ],
        Some("foreign"),
    ),
    (
        "brought back after it was gone",
        &[
            ON_ITS_BRANCH,
            "git tag its-tag; git reset -q --hard topic",
            "sed -i 's/^line 3$/its/' a.txt; git commit -qam its",
            "git reset -q --keep its-tag; git tag -d its-tag >/dev/null",
        ],
        None,
    ),
    ("a commit on top", &[ITS, OWN, "echo its >n"], Some("foreign")),
    ("put there from beside", &[ON_ITS_BRANCH, "git branch -qf main its", "echo its >n"], None),
    (
        "merged there in passing",
        &[ON_ITS_BRANCH, "git switch -q main; git merge -q its; git switch -q its", "echo its >n"],
        None,
    ),
    ("nothing of it is committed", &["echo its >>a.txt", "git switch -q topic; git switch -q main"], None),
    (
        "merged by itself",
        &["git switch -qc its; echo its >>a.txt; git commit -qam its; git switch -q main; git merge -q its"],
        None,
    ),
];

#[test]
fn what_the_user_brings_to_heads_branch_leaves_none_of_the_agents_lines_there() {
    for mode in Mode::tried() {
        let named = STORIES.map(|(name, story, refused)| (format!("{name}, {mode:?}"), (story, refused)));
        check_all(named, |(story, refused)| {
            let repo = two_branches(mode);
            hook(&repo, "s", "UserPromptSubmit", &json!({}));
            for (number, line) in (1..).zip(*story) {
                if number % 2 == 1 { shell(&repo, number, line) } else { drop(repo.sh(line)) }
            }
            hook(&repo, "s", "Stop", &json!({}));
            let (own, after) = (lines_of(&repo, "own"), repo.state());
            match refused {
                Some(code) => {
                    repo.refuses(&["undo"], code);
                    repo.state().assert_is(&after, "nothing is changed");
                    repo.oxundo(["undo", "--revert"]).success();
                    assert_eq!(lines_of(&repo, "own"), own, "and none of the user's goes");
                }
                None => repo.undo(),
            }
            assert_eq!(lines_of(&repo, "its"), "");
            assert_eq!(
                repo.sh("git log -p --format= | grep -c '^+its' || true") != "0",
                refused.is_some(),
                "nor in a commit"
            );
            assert_eq!(repo.git(["status", "--porcelain"]), "", "nor is anything left to be committed");
            repo.redo();
            repo.state().assert_is(&after, "redo");
            repo.assert_sound();
        });
    }
}

#[test]
fn what_the_user_brings_to_the_branch_that_the_agent_went_to_stays_there() {
    let brings =
        ["git merge -q --no-edit main", "git cherry-pick main", "git merge -q --squash main; git commit -qm own"];
    for bring in brings.into_iter().chain(["git checkout -q main -- main.txt; git commit -qm own"]) {
        for (goes, is_users) in [
            ("git switch -q topic", false),
            ("git switch -q topic", true),
            ("git switch -qc new topic", false),
            ("git switch -qc new HEAD~1", true),
        ] {
            for out in [["undo", "--revert"], ["undo", "--only=1"]] {
                let (repo, what) = (two_branches(Mode::Commit), format!("{bring}, {goes}, {is_users}, {out:?}"));
                hook(&repo, "s", "UserPromptSubmit", &json!({}));
                if is_users {
                    drop(repo.sh(goes));
                } else {
                    shell(&repo, 1, goes);
                }
                shell(&repo, 2, ITS);
                repo.sh(bring);
                shell(&repo, 3, "echo its >>its.txt");
                hook(&repo, "s", "Stop", &json!({}));
                let (own, after) = (lines_of(&repo, "own"), repo.state());
                assert!(own.contains("main.txt"), "{what}: {own}");
                repo.oxundo(out).success();
                assert_eq!((lines_of(&repo, "its"), lines_of(&repo, "own")), (String::new(), own), "{what}");
                assert_eq!(repo.git(["status", "--porcelain"]), "", "{what}");
                repo.redo();
                repo.state().assert_is(&after, &what);
            }
        }
    }
}

#[test]
fn what_came_from_another_repository_while_a_turn_ran_is_not_the_turns() {
    let stories = [
        ("git switch -q theirs", "./theirs.txt:own"),
        ("git switch -qc new o/theirs", "./theirs.txt:own"),
        ("git switch -q --detach o/theirs", "./theirs.txt:own"),
        ("git switch -q here", "./here.txt:own"),
        // It brought that there, but did not write it: others have it.
        ("git pull -q --no-rebase --no-edit o theirs", "./theirs.txt:own"),
    ];
    check_all(stories.map(|(goes, stays)| (goes.to_owned(), (goes, stays))), |(goes, stays)| {
        let repo = two_branches(Mode::Commit);
        // One was made here, in the second in which the turn begins, and only the other repository has it still.
        repo.sh(
            "git init -q --bare ../o.git; git remote add o ../o.git; git push -q o main; git clone -q ../o.git ../other
             git switch -qc here HEAD~1; echo own >here.txt; git add -A; git commit -qm here
             git push -q o here; git switch -q main; git branch -qD here",
        );
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, "echo its >>b.txt");
        repo.sh("cd ../other; git switch -qc theirs origin/main~1; echo own >theirs.txt; git add -A
             git -c user.name=Other -c user.email=other@example.com commit -qm theirs; git push -q origin theirs");
        shell(&repo, 2, &format!("git fetch -q o; {goes}; echo its >>a.txt; git add -A; git commit -qm its"));
        shell(&repo, 3, "git push -q o HEAD:refs/heads/its");
        hook(&repo, "s", "Stop", &json!({}));
        for (file, line) in [("theirs.txt", "theirs"), ("here.txt", "here"), ("a.txt", "claude")] {
            if repo.path(file).exists() {
                let blame = repo.oxundo(["blame", file]).out();
                assert!(blame.lines().last().is_some_and(|last| last.contains(line)), "{blame}");
            }
        }
        let notes = repo.git(["log", "--notes=oxundo", "--format=%s %N", "-6"]);
        let of_others =
            |line: &&str| (line.starts_with("theirs ") || line.starts_with("here ")) && line.contains("turn");
        let found: Vec<&str> = notes.lines().filter(of_others).collect();
        let may_be_found = goes.contains("pull") || goes.contains("--detach");
        assert!(found.is_empty() || (may_be_found && found.iter().all(|it| it.contains("found"))), "{notes}");
        repo.refuses(&["undo"], "published");
        let after = repo.state();
        repo.oxundo(["undo", "--revert"]).success();
        let own = lines_of(&repo, "own").replace("./main.txt:own", "").trim().to_owned();
        assert_eq!((lines_of(&repo, "its"), own), (String::new(), (*stays).to_owned()));
        assert_eq!(repo.git(["status", "--porcelain"]), "");
        repo.redo();
        repo.state().assert_is(&after, "redo");
    });
}

#[test]
fn a_submodules_commit_on_the_branch_that_the_agent_went_to_is_taken_out_of_what_is_staged_too() {
    let repo = two_branches(Mode::Commit);
    repo.sh("git init -q ../sub; (cd ../sub; git config user.name Sub; git config user.email sub@example.com
         echo own >s; git add s; git commit -qm s; git commit -q --allow-empty -m s2)
         git -c protocol.file.allow=always submodule -q add ../sub sub; git commit -qm sub
         git switch -qc u; git -C sub checkout -q HEAD~1; git commit -qam back; git switch -q main; git submodule -q update");
    let of_branch = repo.git(["ls-tree", "u", "sub"]);
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    shell(
        &repo,
        1,
        "git switch -q u; git submodule -q update; echo its >>a.txt; cd sub; echo its >>s
         git -c user.name=Sub -c user.email=sub@example.com commit -qam its; cd ..; git commit -qam its",
    );
    hook(&repo, "s", "Stop", &json!({}));
    repo.oxundo(["undo", "--revert"]).success();
    assert_eq!(repo.git(["diff", "--cached", "--name-only"]), "");
    assert_eq!(repo.git(["ls-tree", "HEAD", "sub"]), of_branch);
    assert_eq!(lines_of(&repo, "its"), "./sub/s:its", "what is in a submodule is not covered");
}

#[test]
fn what_git_writes_as_the_user_merges_is_the_agents_though_it_edits_that_file_next() {
    for merges in [
        "git merge -q its",
        "git reset -q --keep its",
        "git cherry-pick its >/dev/null",
        "GIT_COMMITTER_DATE=2031-01-01T00:00:00Z git cherry-pick its >/dev/null",
        "echo own >>main.txt; git stash -q; git merge -q its; git stash pop -q",
    ] {
        for saves in ["true", "sed -i 's/^line 12$/own/' a.txt"] {
            let repo = two_branches(Mode::Commit);
            hook(&repo, "s", "UserPromptSubmit", &json!({}));
            shell(
                &repo,
                1,
                "git switch -qc its; sed -i 's/^line 3$/its/' a.txt; git commit -qam its; git switch -q main",
            );
            repo.sh(merges);
            repo.sh(saves);
            edit(&repo, 2, "a.txt", "sed -i 's/^line 18$/its/' a.txt");
            hook(&repo, "s", "Stop", &json!({}));
            assert_eq!(lines_of(&repo, "its"), "./a.txt:its ./a.txt:its", "{merges}");
            let (own, after) = (lines_of(&repo, "own"), repo.state());
            repo.undo();
            assert_eq!((lines_of(&repo, "its"), lines_of(&repo, "own")), (String::new(), own), "{merges}, {saves}");
            assert_eq!(repo.git(["diff", "--cached"]), "", "{merges}, {saves}");
            repo.redo();
            repo.state().assert_is(&after, merges);
        }
    }
}

#[test]
fn a_move_of_the_agents_that_the_user_throws_away_leaves_nothing_staged() {
    for throws in
        ["git reset -q --hard", "git reset -q --hard HEAD~1", "git checkout -qf HEAD -- a.txt && git rm -qf c.txt"]
    {
        let repo = two_branches(Mode::Commit);
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, "echo its >n.txt; echo its >>a.txt; git mv a.txt c.txt");
        repo.sh(throws);
        hook(&repo, "s", "Stop", &json!({}));
        repo.undo();
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{throws}");
        assert_eq!(lines_of(&repo, "its"), "", "{throws}");
    }
}

#[test]
fn what_the_user_committed_before_a_pick_of_theirs_stood_still_stays_where_the_agent_ended_it() {
    let repo = two_branches(Mode::Commit);
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    shell(&repo, 1, ITS);
    repo.sh("echo own >n.txt; echo own2 >>b.txt; git add n.txt; git commit -qam own; git cherry-pick topic >/dev/null 2>&1 || true");
    shell(&repo, 2, "git checkout -q --ours b.txt; echo its >>a.txt; git add -A; git commit -qm its");
    hook(&repo, "s", "Stop", &json!({}));
    let (own, after) = (lines_of(&repo, "own2*"), repo.state());
    assert_eq!(own, "./b.txt:own2 ./main.txt:own ./n.txt:own ./topic.txt:own");
    repo.refuses(&["undo"], "foreign");
    repo.oxundo(["undo", "--revert"]).success();
    assert_eq!((lines_of(&repo, "its"), lines_of(&repo, "own2*")), (String::new(), own));
    assert_eq!(repo.git(["status", "--porcelain"]), "");
    repo.redo();
    repo.state().assert_is(&after, "redo");
}

#[test]
fn what_the_agent_stages_after_the_user_has_given_head_another_branch_is_the_agents() {
    let names = ["git switch -qc new", "git switch -q --detach", "git branch -m new", "git branch new"];
    let stages =
        ["git rm -q b.txt", "git mv b.txt c.txt", "echo its >n.txt; git add n.txt", "echo its >>a.txt; git add a.txt"];
    let cases =
        names.iter().flat_map(|name| stages.iter().map(move |stages| (format!("{name}, {stages}"), (name, stages))));
    check_all(cases, |(name, stages)| {
        let repo = two_branches(Mode::Commit);
        let before = repo.git(["ls-files", "-s"]);
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        repo.sh(name);
        shell(&repo, 1, stages);
        hook(&repo, "s", "Stop", &json!({}));
        let after = repo.state();
        repo.undo();
        assert_eq!((repo.git(["status", "--porcelain"]), repo.git(["ls-files", "-s"])), (String::new(), before));
        repo.redo();
        repo.state().assert_is(&after, "redo");
    });
}

#[test]
fn what_a_turn_committed_to_a_branch_beside_its_own_is_all_that_is_taken_out_there() {
    for users in ["echo own >n.txt; git add n.txt", "git rm -q b.txt", "echo own >>b.txt"] {
        let repo = two_branches(Mode::Commit);
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, &format!("{ITS}; git switch -qc other; echo its >n1; git add n1; git commit -qm its"));
        repo.sh(&format!("{users}; git commit -qam own"));
        hook(&repo, "s", "Stop", &json!({}));
        repo.git(["switch", "-q", "main"]);
        repo.oxundo(["undo", "--only=1"]).success();
        assert_eq!((lines_of(&repo, "its"), lines_of(&repo, "own")), (String::new(), "./main.txt:own".to_owned()));
        assert_eq!(repo.git(["status", "--porcelain"]), "", "{users}");
    }

    let repo = two_branches(Mode::Commit);
    let there = "git switch -q topic; echo its >>b.txt; git commit -qam its; git switch -q main";
    repo.oxundo(["run", "--", "sh", "-c", &format!("{ITS}; {there}")]).success();
    repo.git(["switch", "-q", "topic"]);
    repo.oxundo(["undo", "--only=1"]).success();
    assert_eq!(
        (lines_of(&repo, "its"), lines_of(&repo, "own")),
        (String::new(), "./b.txt:own ./topic.txt:own".to_owned())
    );
    assert_eq!(repo.git(["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_the_agent_has_left_and_the_user_puts_back_stays_there() {
    let repo = two_branches(Mode::Commit);
    hook(&repo, "s", "UserPromptSubmit", &json!({}));
    shell(&repo, 1, "git switch -qc its; echo its >>a.txt; git commit -qam its");
    repo.sh("git branch -qf main main~1");
    shell(&repo, 2, "echo its >>b.txt");
    hook(&repo, "s", "Stop", &json!({}));
    let after = repo.state();
    // On no branch there would be what is the user's.
    repo.refuses(&["undo"], "foreign");
    repo.state().assert_is(&after, "nothing is changed");
    repo.git(["branch", "kept", "main@{1}"]);
    let (put, after) = (repo.git(["rev-parse", "main"]), repo.state());
    repo.undo();
    assert_eq!((repo.head(), repo.git(["symbolic-ref", "--short", "HEAD"])), (put, "main".to_owned()));
    assert_eq!((lines_of(&repo, "its"), repo.git(["status", "--porcelain"])), (String::new(), String::new()));
    repo.redo();
    repo.state().assert_is(&after, "redo");
}

#[test]
fn a_branch_that_the_agent_has_left_and_the_user_renames_has_its_new_name_and_head() {
    for own in ["true", "git switch -q trunk; echo own >>b.txt; git commit -qam own; git switch -q its"] {
        let repo = two_branches(Mode::Commit);
        hook(&repo, "s", "UserPromptSubmit", &json!({}));
        shell(&repo, 1, ON_ITS_BRANCH);
        repo.sh(&format!("git branch -m main trunk; {own}"));
        shell(&repo, 2, "echo its >>a.txt");
        hook(&repo, "s", "Stop", &json!({}));
        let (trunk, after) = (repo.git(["rev-parse", "trunk"]), repo.state());
        repo.undo();
        assert_eq!((repo.head(), repo.git(["symbolic-ref", "--short", "HEAD"])), (trunk, "trunk".to_owned()), "{own}");
        assert_eq!(repo.git(["for-each-ref", "--format=%(refname:short)", "refs/heads/main", "refs/heads/its"]), "");
        assert_eq!((lines_of(&repo, "its"), repo.git(["status", "--porcelain"])), (String::new(), String::new()));
        repo.redo();
        repo.state().assert_is(&after, "redo");
    }
}
