//! Names and messages that are not UTF-8: git keeps them as bytes, and so does oxundo.

use crate::sandbox::{Mode, Sandbox, check_all};

/// A repository with the branch `caf\xe9`; scripts find its name in `$b`.
fn with_branch() -> Sandbox {
    let repo = Sandbox::new();
    repo.sh(&named("git branch \"$b\"; git branch \"in/$b\""));
    repo
}

fn named(script: &str) -> String {
    format!("b=$(printf 'caf\\351'); {script}")
}

#[test]
fn a_turn_beside_a_branch_that_is_not_utf8_leaves_it_alone() {
    for mode in Mode::tried() {
        let repo = with_branch();
        let before = repo.refs();
        repo.there_and_back(mode, "echo two >>README.txt; git branch other; git add README.txt");
        repo.sh("git pack-refs --all");
        repo.there_and_back(mode, "git tag v1; echo three >>README.txt");
        let left = repo.refs();
        assert!(before.iter().all(|(name, id)| left.get(name) == Some(id)), "{before:?} {left:?}");
    }
}

#[test]
fn branches_that_are_not_utf8_come_and_go_byte_by_byte() {
    let turns = [
        ("deleted", "git branch -D \"$b\""),
        ("deleted, packed", "git pack-refs --all; git branch -D \"$b\""),
        ("made", "git branch \"new-$b\""),
        ("moved", "git commit -q --allow-empty -m on; git branch -f \"$b\""),
        ("renamed", "git branch -m \"$b\" \"$(printf 'caf\\303\\251')\""),
        ("switched to", "git switch -q \"$b\"; echo two >>README.txt; git commit -qam on"),
        ("switched to, and left", "git switch -q \"$b\"; git switch -q main; echo two >>README.txt"),
    ];
    let cases =
        turns.iter().flat_map(|(name, turn)| Mode::BOTH.map(|mode| (format!("{name} {mode:?}"), (*turn, mode))));
    check_all(cases, |(turn, mode)| with_branch().there_and_back(*mode, &named(turn)));
}

#[test]
fn turns_on_a_branch_that_is_not_utf8_are_its_turns() {
    for mode in Mode::tried() {
        let repo = with_branch();
        repo.sh(&named("git switch -q \"$b\""));
        repo.there_and_back(mode, "echo two >>README.txt; echo new >new; git add new");
        repo.redo();
        let (_, status) = repo.json(["status"]);
        assert_eq!(status["branch"], "\"caf\\351\"", "as git quotes it");
        repo.oxundo(["status"]).says("\"caf\\351\"");
        repo.git(["switch", "-q", "main"]);
        if mode == Mode::Ghost {
            // It moved no ref, and goes with the worktree.
            repo.undo();
            repo.assert_absent("new", "the turn is undone");
            continue;
        }
        let error = repo.refuses(&["undo"], "branch");
        assert!(error["message"].as_str().is_some_and(|text| text.contains("\"caf\\351\"")), "{error}");
    }
}

#[test]
fn the_line_that_leads_to_a_branch_that_is_not_utf8_can_be_typed() {
    let repo = with_branch();
    repo.sh(&named("git switch -q \"$b\""));
    repo.agent("echo two >>README.txt");
    repo.git(["switch", "-q", "main"]);
    let error = repo.refuses(&["undo"], "branch");
    let hint = error["hints"][0].as_str().expect("a hint").to_owned();
    let line = hint.split('`').nth(1).unwrap_or_else(|| panic!("a line: {hint}"));
    repo.sh(line);
    assert_eq!(repo.sh(&named("test \"$(git branch --show-current)\" = \"$b\" && echo there")), "there", "{line}");
}

#[test]
fn a_stash_in_another_encoding_comes_and_goes_byte_by_byte() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        let stash = |text: &str| {
            let message = format!("$(printf '{text} caf\\351')");
            format!("echo {text} >README.txt; GIT_COMMITTER_NAME=\"{message}\" git stash push -q -m \"{message}\"")
        };
        repo.sh(&stash("first"));
        let log = || repo.read(".git/logs/refs/stash");
        let before = log();
        repo.there_and_back(mode, &format!("git stash drop -q; {}; {}", stash("second"), stash("third")));
        assert_eq!(log(), before, "the reflog is the very same");
    }
}

#[test]
fn commits_in_another_encoding_come_and_go() {
    for mode in Mode::tried() {
        let repo = Sandbox::new();
        repo.sh("git config i18n.commitEncoding ISO-8859-1; git config user.name \"$(printf 'Ren\\351')\"");
        repo.sh("echo mine >mine; git add mine; git commit -qm \"$(printf 'd\\351j\\340')\"; echo dirty >>mine");
        repo.there_and_back(mode, "echo two >>README.txt; git commit -qam \"$(printf 'd\\351j\\340 vu')\"; echo x >x");
    }
}

#[test]
fn worktrees_whose_names_are_not_utf8_have_a_timeline_each() {
    let repo = Sandbox::new();
    let inside = |n: u8, script: &str| repo.sh(&format!("cd \"../$(printf 'wt\\35{n}')\"; {script}"));
    repo.git(["config", "oxundo.maxFileSize", "1k"]);
    for n in [1, 2] {
        repo.sh(&format!("git worktree add -q -b w{n} \"../$(printf 'wt\\35{n}')\""));
        inside(n, &format!("oxundo run -- sh -c 'echo {n} >>README.txt; head -c 2000 /dev/zero >big'"));
    }
    assert_eq!(repo.sh("git for-each-ref refs/oxundo/worktrees | wc -l"), "2", "each has a ref of its own");
    let changed = |n| inside(n, "git status --porcelain; git log --format=%s -1; ls big || :");
    let second = changed(2);
    inside(1, "oxundo undo");
    assert_eq!(changed(2), second, "the other is as it was");
    inside(1, "oxundo redo; test -e big");
    let log: serde_json::Value = serde_json::from_str(&inside(1, "oxundo log --json")).expect("it is JSON");
    assert_eq!((log["turns"].as_array().map(Vec::len), &log["worktree"]), (Some(1), &"\"wt\\351\"".into()), "{log}");
    repo.sh("git worktree remove --force \"../$(printf 'wt\\351')\"");
    repo.oxundo(["log", "--all"]).says("removed worktree \"wt\\351\"");
}

#[test]
fn a_remote_that_is_not_utf8_is_named_as_git_quotes_it() {
    let repo = Sandbox::new();
    repo.sh("git init -q --bare ../remote; git remote add \"$(printf 'r\\351')\" ../remote");
    repo.agent("echo two >>README.txt");
    repo.sh("git push -q \"$(printf 'r\\351')\" main");
    let error = repo.refuses(&["undo"], "published");
    assert!(error["message"].as_str().is_some_and(|text| text.contains("r\\351/main")), "{error}");
}
